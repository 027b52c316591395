"""Closed chains in C: passive joints by driven ones, and torques through the loops.

What `dynident.robot.linkage` does, on the same tables.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dynident.robot.linkage import CLOSED, NEWTON, SWEEPS, build_linkage
from dynident.robot.model import Robot

CODE = """
#define N %(n)d
#define M %(m)d
#define P %(p)d
#define A %(a)d
#define LOOPS %(loops)d
#define MOST %(most)d
%(tables)s

static void add_cross(const double *a, const double *b, double *out)
{
    out[0] += a[1] * b[2] - a[2] * b[1];
    out[1] += a[2] * b[0] - a[0] * b[2];
    out[2] += a[0] * b[1] - a[1] * b[0];
}

static void add_cross_twice(const double *w, const double *r, double *out)
{
    double x[3] = {0.0, 0.0, 0.0};
    add_cross(w, r, x);
    add_cross(w, x, out);
}

static double polynomial(int loop, int order, double x)
{
    double value = 0.0;
    for (int k = MOST - 1; k >= order; k--) {
        double factor = POLYNOMIAL[loop][k];
        for (int i = 0; i < order; i++) factor *= k - i;
        value = value * x + factor;
    }
    return value;
}

static void write_parts(int loop, double F[3][3], const double *place, const double *turn,
                        double *out, int stride)
{
    for (int part = 0; part < 6; part++) {
        double value = 0.0;
        if (ROW[loop][part] < 0) continue;
        for (int j = 0; j < 3; j++)
            value += F[j][part %% 3] * (part < 3 ? place[j] : LENGTH * turn[j]);
        out[ROW[loop][part] * stride] = value;
    }
}

/* gaps of the loops [m], their Jacobian, and dJ/dt dq */
static void look_at_loops(const double *q, const double *dq, double *e, double J[M][N],
                          double *bend)
{
    double R[N + 1][3][3] = {{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}}};
    double p[N + 1][3] = {{0.0}}, z[N][3], w[N + 1][3] = {{0.0}}, v[N + 1][3] = {{0.0}};
    double al[N + 1][3] = {{0.0}}, a[N + 1][3] = {{0.0}};
    for (int k = 0; k < N; k++) {
        int up = PARENT[k], b = k + 1, turning = REVOLUTE[k];
        double sine = turning ? sin(q[k]) : 0.0, versine = turning ? 1.0 - cos(q[k]) : 0.0;
        double arm[3], s[3];
        for (int i = 0; i < 3; i++) {
            arm[i] = z[k][i] = 0.0;
            for (int j = 0; j < 3; j++) {
                arm[i] += R[up][i][j] * TRANSLATION[k][j];
                z[k][i] += R[up][i][j] * AXIS[k][j];
            }
            if (!turning) arm[i] += q[k] * z[k][i];
            p[b][i] = p[up][i] + arm[i];
            s[i] = z[k][i] * dq[k];
            w[b][i] = w[up][i];
            v[b][i] = v[up][i];
            al[b][i] = al[up][i];
            a[b][i] = a[up][i];
            for (int j = 0; j < 3; j++) R[b][i][j] = 0.0;
        }
        for (int m = 0; m < 3; m++)
            for (int j = 0; j < 3; j++) {
                double part = ROTATION[k][0][m][j] + sine * ROTATION[k][1][m][j]
                              + versine * ROTATION[k][2][m][j];
                for (int i = 0; i < 3; i++) R[b][i][j] += R[up][i][m] * part;
            }
        add_cross(w[up], arm, v[b]);
        add_cross(al[up], arm, a[b]);
        add_cross_twice(w[up], arm, a[b]);
        add_cross(w[up], s, turning ? al[b] : a[b]);
        if (!turning) add_cross(w[up], s, a[b]);
        for (int i = 0; i < 3; i++) (turning ? w[b] : v[b])[i] += s[i];
    }
    for (int i = 0; i < M; i++)
        for (int k = 0; k < N; k++) J[i][k] = 0.0;
    for (int l = 0; l < LOOPS; l++) {
        int one = BODIES[l][0], other = BODIES[l][1];
        double F[3][3], turn[3][3], d[3], ends[2][3], x[3];
        if (KIND[l] == 3) {
            double unit = REVOLUTE[one - 1] ? LENGTH : 1.0, u = dq[other - 1];
            e[ROW[l][0]] = unit * (q[one - 1] - polynomial(l, 0, q[other - 1]));
            J[ROW[l][0]][one - 1] = unit;
            J[ROW[l][0]][other - 1] -= unit * polynomial(l, 1, q[other - 1]);
            bend[ROW[l][0]] = -unit * polynomial(l, 2, q[other - 1]) * u * u;
            continue;
        }
        for (int i = 0; i < 3; i++) {
            for (int side = 0; side < 2; side++) {
                ends[side][i] = 0.0;
                for (int j = 0; j < 3; j++)
                    ends[side][i] += R[BODIES[l][side]][i][j] * PLACES[l][side][j];
            }
            x[i] = p[other][i] + ends[1][i];
            d[i] = x[i] - p[one][i] - ends[0][i];
            for (int j = 0; j < 3; j++) {
                F[i][j] = 0.0;
                for (int m = 0; m < 3; m++) F[i][j] += R[one][i][m] * TURNS[l][0][m][j];
            }
        }
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                turn[i][j] = 0.0;
                for (int m = 0; m < 3; m++)
                    for (int r = 0; r < 3; r++)
                        turn[i][j] += F[m][i] * R[other][m][r] * TURNS[l][1][r][j];
            }
        for (int part = 0; part < 3; part++) {
            int i = (part + 1) %% 3, j = (part + 2) %% 3;
            double bent = 0.5 * (turn[j][i] - turn[i][j]);
            if (KIND[l] == 1) bent = part == 0 ? -turn[1][2] : turn[0][2];
            if (ROW[l][3 + part] >= 0) e[ROW[l][3 + part]] = LENGTH * bent;
            if (ROW[l][part] >= 0)
                e[ROW[l][part]] = F[0][part] * d[0] + F[1][part] * d[1] + F[2][part] * d[2];
        }
        for (int k = 0; k < N; k++) {
            double sense = MOVES[other][k] - MOVES[one][k];
            double place[3], spin[3] = {0.0, 0.0, 0.0}, arm[3];
            if (sense == 0.0) continue;
            for (int i = 0; i < 3; i++) place[i] = sense * z[k][i];
            if (REVOLUTE[k]) {
                for (int i = 0; i < 3; i++) {
                    spin[i] = place[i];
                    place[i] = 0.0;
                    arm[i] = x[i] - p[k + 1][i];
                }
                add_cross(spin, arm, place);
            }
            write_parts(l, F, place, spin, &J[0][k], N);
        }
        {
            double rate[3] = {0.0, 0.0, 0.0}, place[3] = {0.0, 0.0, 0.0}, spin[3];
            for (int side = 0; side < 2; side++) {
                int b = BODIES[l][side];
                for (int i = 0; i < 3; i++) {
                    rate[i] = v[b][i] - rate[i];
                    place[i] = a[b][i] - place[i];
                }
                add_cross(w[b], ends[side], rate);
                add_cross(al[b], ends[side], place);
                add_cross_twice(w[b], ends[side], place);
            }
            add_cross(d, al[one], place);
            add_cross_twice(w[one], d, place);
            add_cross(rate, w[one], place);
            add_cross(rate, w[one], place);
            for (int i = 0; i < 3; i++) spin[i] = al[other][i] - al[one][i];
            add_cross(w[other], w[one], spin);
            write_parts(l, F, place, spin, bend, 1);
        }
    }
}

/* columns of the passive joints' Jacobian turned until they are square to each other */
static void factorise(double J[M][N], double U[M][P], double V[P][P], double *s)
{
    double most = 0.0;
    for (int b = 0; b < P; b++) {
        for (int i = 0; i < M; i++) U[i][b] = J[i][PASSIVE[b]];
        for (int i = 0; i < P; i++) V[i][b] = i == b;
    }
    for (int sweep = 0, turned = 1; turned && sweep < %(sweeps)d; sweep++) {
        turned = 0;
        for (int a = 0; a < P - 1; a++)
            for (int b = a + 1; b < P; b++) {
                double aa = 0.0, bb = 0.0, ab = 0.0, ratio, t, c;
                for (int i = 0; i < M; i++) {
                    aa += U[i][a] * U[i][a];
                    bb += U[i][b] * U[i][b];
                    ab += U[i][a] * U[i][b];
                }
                if (!(fabs(ab) > 1e-15 * sqrt(aa * bb))) continue;
                turned = 1;
                ratio = 0.5 * (bb - aa) / ab;
                t = 1.0 / (fabs(ratio) + sqrt(1.0 + ratio * ratio));
                if (ratio < 0.0) t = -t;
                c = 1.0 / sqrt(1.0 + t * t);
                for (int i = 0; i < M; i++) {
                    double x = U[i][a], y = U[i][b];
                    U[i][a] = c * (x - t * y);
                    U[i][b] = c * (y + t * x);
                }
                for (int i = 0; i < P; i++) {
                    double x = V[i][a], y = V[i][b];
                    V[i][a] = c * (x - t * y);
                    V[i][b] = c * (y + t * x);
                }
            }
    }
    for (int b = 0; b < P; b++) {
        double size = 0.0;
        for (int i = 0; i < M; i++) size += U[i][b] * U[i][b];
        s[b] = sqrt(size);
        most = fmax(most, s[b]);
    }
    for (int b = 0; b < P; b++) s[b] = fmax(s[b], 1e-12 * most);
}

static void solve(double U[M][P], double V[P][P], const double *s, const double *right,
                  int stride, double *out)
{
    for (int i = 0; i < P; i++) out[i] = 0.0;
    for (int b = 0; b < P; b++) {
        double along = 0.0;
        for (int i = 0; i < M; i++) along += U[i][b] * right[i * stride];
        for (int i = 0; i < P; i++) out[i] -= V[i][b] * along / (s[b] * s[b]);
    }
}

/* Passive entries of q are moved to where the loops are closed, from where they are; 0 where they
   cannot be. */
int %(name)s_close(double q[N]);
int %(name)s_close(double q[N])
{
    double still[N] = {0.0}, e[M], J[M][N], bend[M], U[M][P], V[P][P], s[P], step[P];
    double gap = 0.0, moved = 1.0;
    for (int turn = 0; turn < %(newton)d && moved > 1e-12; turn++) {
        gap = moved = 0.0;
        look_at_loops(q, still, e, J, bend);
        factorise(J, U, V, s);
        solve(U, V, s, e, 1, step);
        for (int i = 0; i < M; i++) gap = fmax(gap, fabs(e[i]));
        for (int i = 0; i < P; i++) {
            moved = fmax(moved, fabs(step[i]));
            q[PASSIVE[i]] += fmin(fmax(step[i], -0.5), 0.5);
        }
    }
    return gap < %(closed)g * LENGTH;
}

void %(name)s_inverse_dynamics(const double q[N], const double dq[N], const double ddq[N],
                               double tau[N]);
void %(name)s_inverse_dynamics(const double q[N], const double dq[N], const double ddq[N],
                               double tau[N])
{
    double e[M], J[M][N], bend[M], U[M][P], V[P][P], s[P], G[A][P], gamma[P], v[N], a[N];
    look_at_loops(q, dq, e, J, bend);
    factorise(J, U, V, s);
    for (int k = 0; k < N; k++) {
        v[k] = dq[k];
        a[k] = ddq[k];
    }
    for (int i = 0; i < P; i++) v[PASSIVE[i]] = a[PASSIVE[i]] = 0.0;
    for (int j = 0; j < A; j++) {
        solve(U, V, s, &J[0][DRIVEN[j]], N, G[j]);
        for (int i = 0; i < P; i++) {
            v[PASSIVE[i]] += G[j][i] * dq[DRIVEN[j]];
            a[PASSIVE[i]] += G[j][i] * ddq[DRIVEN[j]];
        }
    }
    look_at_loops(q, v, e, J, bend);
    solve(U, V, s, bend, 1, gamma);
    for (int i = 0; i < P; i++) a[PASSIVE[i]] += gamma[i];
    tree_dynamics(q, v, a, tau);
    for (int i = 0; i < P; i++) {
        for (int j = 0; j < A; j++) tau[DRIVEN[j]] += G[j][i] * tau[PASSIVE[i]];
        tau[PASSIVE[i]] = 0.0;
    }
}
"""


def render_loops(robot: Robot, name: str) -> str:
    """Functions of a closed chain, by one ``tree_dynamics`` of its tree."""
    c = build_linkage(robot)
    tables = {
        "PARENT": c.parent, "REVOLUTE": c.revolute, "ROTATION": c.rotation,
        "TRANSLATION": c.translation, "AXIS": c.axis, "MOVES": c.moves, "PASSIVE": c.passive,
        "DRIVEN": c.driven, "KIND": c.kind, "BODIES": c.bodies, "ROW": c.row, "TURNS": c.turns,
        "PLACES": c.places, "POLYNOMIAL": np.hstack([c.polynomial, np.zeros((len(c.kind), 1))]),
    }  # fmt: skip
    m, n = c.J.shape
    return CODE % {
        "n": n, "m": m, "p": len(c.passive), "a": len(c.driven), "loops": len(c.kind),
        "most": tables["POLYNOMIAL"].shape[1], "name": name, "sweeps": SWEEPS, "newton": NEWTON,
        "closed": CLOSED,
        "tables": "\n".join([
            f"#define LENGTH {c.length!r}", *(render_table(*each) for each in tables.items())
        ]),
    }  # fmt: skip


def render_table(name: str, values: npt.NDArray[np.generic]) -> str:
    """An array as a constant of C."""
    whole = np.issubdtype(values.dtype, np.integer)
    shape = "".join(f"[{size}]" for size in values.shape)
    return f"static const {'int' if whole else 'double'} {name}{shape} = {nest(values.tolist())};"


def nest(values: object) -> str:
    """Nested lists in braces."""
    if isinstance(values, list):
        return "{" + ", ".join(nest(each) for each in values) + "}"
    return repr(values)
