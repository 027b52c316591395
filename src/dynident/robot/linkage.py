"""Loops of a robot as kernels read them: gaps, their slopes, and passive joints by driven ones.

Everything of one state, on arrays that the caller owns; see `dynident.robot.closure` for what is
solved. Where a robot has no loops, its linkage is None, and what rollouts call does nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.jit import inner, jit, spliced
from dynident.robot.model import Robot
from dynident.robot.rotations import expand_turn

KINDS: dict[str, tuple[int, ...]] = {
    "point": (0, 1, 2),
    "axis": (0, 1, 2, 3, 4),
    "planar": (0, 1),
    "weld": (0, 1, 2, 3, 4, 5),
}
"""What of two frames meets, in the axes of the first: place (0-2) and turn (3-5)."""
COUPLING = "joint"
"""The other kind: a joint that follows another."""
ALONG, TURNED, FOLLOWS = 1, 2, 3
"""How gaps are told: of an `axis` by its direction, of a `weld` by its turn, of a coupling."""
SINGULAR = 1e-3
"""Least singular value of the passive joints' Jacobian, over its largest, of a closed chain."""
CLOSED = 1e-8
"""Gap of a closed loop, over the robot's length."""
NEWTON = 25
"""Steps; near a solution three or four do."""
SWEEPS = 30
"""Of turning columns against each other; four or five do."""


class Linkage(NamedTuple):
    """A robot's tree and loops, and room for one state."""

    parent: Integers
    revolute: Integers
    rotation: Array
    translation: Array
    axis: Array
    """`parent`, `revolute`, `rotation`, `translation`, `axis`: of the joints: see
    `dynident.dynamics.tree.Tree`; body 0 is the base, and axes are the parents'."""
    moves: Integers
    """Which joints move which body, shape (bodies, n)."""
    passive: Integers
    driven: Integers
    kind: Integers
    bodies: Integers
    """`kind`, `bodies`: shapes (loops,) and (loops, 2)."""
    row: Integers
    """Of each part of a gap, or -1, shape (loops, 6)."""
    turns: Array
    places: Array
    polynomial: Array
    """`turns`, `places`, `polynomial`: shapes (loops, 2, 3, 3), (loops, 2, 3) and (loops, most)."""
    length: float
    """By which turns are put beside places [m]."""
    q: Array
    dq: Array
    """`q`, `dq`: the state that is looked at, shape (n,)."""
    R: Array
    p: Array
    z: Array
    arm: Array
    w: Array
    v: Array
    al: Array
    a: Array
    """`R`, `p`, `z`, `arm`, `w`, `v`, `al`, `a`: bodies and joints in the base's axes there:
    rotations, origins, axes, ways from the parents' origins, velocities and accelerations without
    those of the joints."""
    F: Array
    turn: Array
    d: Array
    ends: Array
    r: Array
    """`F`, `turn`, `d`, `ends`, `r`: of a loop: its first frame's axes, the turn and the way to the
    other, both frames' arms; vectors."""
    e: Array
    J: Array
    bend: Array
    """`e`, `J`, `bend`: shapes (constraints, 1), (constraints, n) and (constraints, 1). Gaps, their
    Jacobian, ``dJ/dt dq``."""
    U: Array
    V: Array
    s: Array
    step: Array
    """`U`, `V`, `s`, `step`: of the passive joints' Jacobian: columns that are square to each
    other, what they are of the joints, their lengths; what a right-hand side makes of the
    joints."""
    G: Array
    gamma: Array
    """`G`, `gamma`: ``dq_p = G dq_a``, ``ddq_p = G ddq_a + gamma``, shapes (passive, driven) and
    (passive,)."""
    ddq: Array
    Vo: Array
    Ao: Array
    So: Array
    Sw: Array
    x: Array
    """`ddq`, `Vo`, `Ao`, `So`, `Sw`, `x`: accelerations of the joints, motions of bodies and screws
    about the origin, vectors."""
    Hq: Array
    Cq: Array
    Cv: Array
    right: Array
    """`Hq`, `Cq`, `Cv`, `right`: shape (constraints, n) and (constraints, 1). Slopes of ``J dq`` by
    q, and of ``J ddq + dJ/dt dq`` by q and dq; a right-hand side."""


def build_linkage(robot: Robot) -> Linkage:
    """A robot's loops with room for a state."""
    n, loops = robot.n, robot.loops
    rotation, moves = np.zeros((n, 3, 3, 3)), np.zeros((n + 1, n), dtype=np.int64)
    for k, joint in enumerate(robot.joints):
        rotation[k] = joint.rotation @ expand_turn(joint.axis)
        moves[k + 1] = moves[joint.parent]
        moves[k + 1, k] = 1
    passive = robot.passive
    row, m = np.full((len(loops), 6), -1), 0
    most = max((len(loop.polynomial) for loop in loops), default=0)
    polynomial = np.zeros((len(loops), most))
    for k, loop in enumerate(loops):
        own = [0] if loop.kind == COUPLING else list(KINDS[loop.kind])
        row[k, own] = np.arange(m, m + len(own))
        m += len(own)
        polynomial[k, : len(loop.polynomial)] = loop.polynomial
    kinds = {"axis": ALONG, "weld": TURNED, COUPLING: FOLLOWS}
    a, p = int(np.sum(~passive)), int(np.sum(passive))
    shapes = (
        (3, 3), (3, 3), (3,), (2, 3), (3, 3),
        (m, 1), (m, n), (m, 1), (m, p), (p, p), (p,), (p,), (p, a), (p,),
        (n,), (n + 1, 3), (n + 1, 3), (n, 3), (n, 3), (20, 3), (m, n), (m, n), (m, n), (m, 1),
    )  # fmt: skip
    return Linkage(
        np.array([joint.parent for joint in robot.joints], dtype=np.int64),
        np.array([joint.kind == "revolute" for joint in robot.joints], dtype=np.int64),
        rotation,
        np.array([joint.translation for joint in robot.joints], dtype=float),
        np.array([joint.rotation @ joint.axis for joint in robot.joints]),
        moves,
        np.flatnonzero(passive),
        np.flatnonzero(~passive),
        np.array([kinds.get(loop.kind, 0) for loop in loops], dtype=np.int64),
        np.array([loop.bodies for loop in loops], dtype=np.int64).reshape(-1, 2),
        row,
        np.array([loop.rotations for loop in loops], dtype=float).reshape(-1, 2, 3, 3),
        np.array([loop.translations for loop in loops], dtype=float).reshape(-1, 2, 3),
        polynomial,
        max(robot.reach, 1e-3),
        np.zeros(n),
        np.zeros(n),
        np.tile(np.eye(3), (n + 1, 1, 1)),
        *np.zeros((7, n + 1, 3)),
        *(np.zeros(shape) for shape in shapes),
    )


@spliced
def cross(a, b, c, x, y, z):  # type: ignore[no-untyped-def]
    """Cross product of two vectors."""
    return b * z - c * y, c * x - a * z, a * y - b * x


@inner
def add_cross(w, r, out):  # type: ignore[no-untyped-def]
    """``out += w x r``."""
    x, y, z = cross(w[0], w[1], w[2], r[0], r[1], r[2])
    out[0] += x
    out[1] += y
    out[2] += z


@inner
def add_cross_twice(w, r, out):  # type: ignore[no-untyped-def]
    """``out += w x (w x r)``."""
    x, y, z = cross(w[0], w[1], w[2], r[0], r[1], r[2])
    x, y, z = cross(w[0], w[1], w[2], x, y, z)
    out[0] += x
    out[1] += y
    out[2] += z


@inner
def place_joints(c):  # type: ignore[no-untyped-def]
    """Bodies and axes of the joints at c.q."""
    for k in range(len(c.q)):
        up, sine, versine, far = c.parent[k], 0.0, 0.0, c.q[k]
        if c.revolute[k]:
            sine, versine, far = np.sin(c.q[k]), 1.0 - np.cos(c.q[k]), 0.0
        for i in range(3):
            arm = z = 0.0
            for j in range(3):
                arm += c.R[up, i, j] * c.translation[k, j]
                z += c.R[up, i, j] * c.axis[k, j]
            c.z[k, i], c.arm[k, i] = z, arm + far * z
            c.p[k + 1, i] = c.p[up, i] + c.arm[k, i]
        for j in range(3):
            for i in range(3):
                c.R[k + 1, i, j] = 0.0
            for m in range(3):
                part = c.rotation[k, 0, m, j]
                part += sine * c.rotation[k, 1, m, j] + versine * c.rotation[k, 2, m, j]
                for i in range(3):
                    c.R[k + 1, i, j] += c.R[up, i, m] * part


@inner
def move_joints(c):  # type: ignore[no-untyped-def]
    """How the bodies move at c.dq and c.ddq, after `place_joints`."""
    for k in range(len(c.q)):
        up, b, turning = c.parent[k], k + 1, c.revolute[k]
        for i in range(3):
            c.w[b, i], c.al[b, i] = c.w[up, i], c.al[up, i]
            c.v[b, i], c.a[b, i] = c.v[up, i], c.a[up, i]
        add_cross(c.w[up], c.arm[k], c.v[b])
        add_cross(c.al[up], c.arm[k], c.a[b])
        add_cross_twice(c.w[up], c.arm[k], c.a[b])
        s = c.r[0]
        for i in range(3):
            s[i] = c.z[k, i] * c.dq[k]
        if turning:
            add_cross(c.w[up], s, c.al[b])
            for i in range(3):
                c.w[b, i] += s[i]
                c.al[b, i] += c.z[k, i] * c.ddq[k]
        else:
            add_cross(c.w[up], s, c.a[b])
            add_cross(c.w[up], s, c.a[b])
            for i in range(3):
                c.v[b, i] += s[i]
                c.a[b, i] += c.z[k, i] * c.ddq[k]


@inner
def find_gap(c, loop):  # type: ignore[no-untyped-def]
    """Frames of a loop: c.F, c.turn, c.d and c.ends."""
    one, other = c.bodies[loop, 0], c.bodies[loop, 1]
    for i in range(3):
        for side in range(2):
            c.ends[side, i] = 0.0
            for j in range(3):
                c.ends[side, i] += c.R[c.bodies[loop, side], i, j] * c.places[loop, side, j]
        c.d[i] = c.p[other, i] + c.ends[1, i] - c.p[one, i] - c.ends[0, i]
        for j in range(3):
            c.F[i, j] = 0.0
            for m in range(3):
                c.F[i, j] += c.R[one, i, m] * c.turns[loop, 0, m, j]
    for j in range(3):
        for i in range(3):
            c.turn[i, j] = 0.0
        for m in range(3):
            part = 0.0
            for r in range(3):
                part += c.R[other, m, r] * c.turns[loop, 1, r, j]
            for i in range(3):
                c.turn[i, j] += c.F[m, i] * part


@inner
def write_parts(c, loop, place, turn, out, column):  # type: ignore[no-untyped-def]
    """A vector of places and one of turns in the first frame's axes, into the rows of a loop."""
    for part in range(6):
        row, value = c.row[loop, part], 0.0
        if row >= 0:
            for j in range(3):
                value += c.F[j, part % 3] * (place[j] if part < 3 else c.length * turn[j])
            out[row, column] = value


@inner
def follow_polynomial(c, loop, order):  # type: ignore[no-untyped-def]
    """Where a coupling's leader puts its follower, or a derivative of that."""
    x, value = c.q[c.bodies[loop, 1] - 1], 0.0
    for k in range(c.polynomial.shape[1] - 1, order - 1, -1):
        factor = c.polynomial[loop, k]
        for i in range(order):
            factor *= k - i
        value = value * x + factor
    return value


@inner
def weigh_coupling(c, loop):  # type: ignore[no-untyped-def]
    """By what the gap of a coupling is counted [m]."""
    return c.length if c.revolute[c.bodies[loop, 0] - 1] else 1.0


@inner
def linearise_loops(c):  # type: ignore[no-untyped-def]
    """The gaps c.e at c.q and their Jacobian c.J, after `place_joints`."""
    for i in range(c.J.shape[0]):
        for k in range(c.J.shape[1]):
            c.J[i, k] = 0.0
    for loop in range(len(c.kind)):
        if c.kind[loop] == FOLLOWS:
            unit, row, follows = weigh_coupling(c, loop), c.row[loop, 0], c.bodies[loop, 0] - 1
            c.e[row, 0] = unit * (c.q[follows] - follow_polynomial(c, loop, 0))
            c.J[row, follows] = unit
            c.J[row, c.bodies[loop, 1] - 1] -= unit * follow_polynomial(c, loop, 1)
            continue
        find_gap(c, loop)
        one, other, turn, place, spin = c.bodies[loop, 0], c.bodies[loop, 1], c.turn, c.r[1], c.r[2]
        for part in range(3):
            i, j = (part + 1) % 3, (part + 2) % 3
            # of a whole turn first order in the angle: exact where the frames meet
            bent = 0.5 * (turn[j, i] - turn[i, j])
            if c.kind[loop] == ALONG:
                bent = -turn[1, 2] if part == 0 else turn[0, 2]
            if c.row[loop, 3 + part] >= 0:
                c.e[c.row[loop, 3 + part], 0] = c.length * bent
            if c.row[loop, part] >= 0:
                c.e[c.row[loop, part], 0] = 0.0
                for m in range(3):
                    c.e[c.row[loop, part], 0] += c.F[m, part] * c.d[m]
        for k in range(len(c.q)):
            sense = 1.0 * (c.moves[other, k] - c.moves[one, k])
            if sense == 0.0:
                continue
            for i in range(3):
                place[i], spin[i] = sense * c.z[k, i], 0.0
            if c.revolute[k]:  # the first frame's axes turn, too: both sides about the far end
                for i in range(3):
                    spin[i], place[i] = place[i], 0.0
                    c.r[0, i] = c.p[other, i] + c.ends[1, i] - c.p[k + 1, i]
                add_cross(spin, c.r[0], place)
            write_parts(c, loop, place, spin, c.J, k)


@inner
def bend_loops(c):  # type: ignore[no-untyped-def]
    """``dJ/dt dq`` at c.q and c.dq into c.bend, after `move_joints`."""
    for loop in range(len(c.kind)):
        if c.kind[loop] == FOLLOWS:
            speed = c.dq[c.bodies[loop, 1] - 1]
            curve = follow_polynomial(c, loop, 2) * speed * speed
            c.bend[c.row[loop, 0], 0] = -weigh_coupling(c, loop) * curve
            continue
        find_gap(c, loop)
        one, rate, place, turn = c.bodies[loop, 0], c.r[0], c.r[1], c.r[2]
        for i in range(3):
            rate[i] = place[i] = 0.0
        for side in range(2):  # of both frames' origins
            b, arm = c.bodies[loop, side], c.ends[side]
            for i in range(3):
                rate[i], place[i] = c.v[b, i] - rate[i], c.a[b, i] - place[i]
            add_cross(c.w[b], arm, rate)
            add_cross(c.al[b], arm, place)
            add_cross_twice(c.w[b], arm, place)
        w, other = c.w[one], c.bodies[loop, 1]
        add_cross(c.d, c.al[one], place)
        add_cross_twice(w, c.d, place)
        add_cross(rate, w, place)
        add_cross(rate, w, place)
        for i in range(3):
            turn[i] = c.al[other, i] - c.al[one, i]
        add_cross(c.w[other], w, turn)
        write_parts(c, loop, place, turn, c.bend, 0)


@inner
def factorise_loops(c):  # type: ignore[no-untyped-def]
    """c.U, c.V and c.s of the passive joints' Jacobian (Hestenes 1958); how far from singular."""
    (m, p), U, V = c.U.shape, c.U, c.V
    for b in range(p):
        for i in range(m):
            U[i, b] = c.J[i, c.passive[b]]
        for i in range(p):
            V[i, b] = 1.0 * (i == b)
    for _ in range(SWEEPS):
        turned = False
        for a in range(p - 1):
            for b in range(a + 1, p):
                aa = bb = ab = 0.0
                for i in range(m):
                    aa += U[i, a] * U[i, a]
                    bb += U[i, b] * U[i, b]
                    ab += U[i, a] * U[i, b]
                if not abs(ab) > 1e-15 * np.sqrt(aa * bb):
                    continue  # square to each other but for rounding
                turned = True
                ratio = 0.5 * (bb - aa) / ab
                t = 1.0 / (abs(ratio) + np.sqrt(1.0 + ratio * ratio))
                if ratio < 0.0:
                    t = -t
                cosine = 1.0 / np.sqrt(1.0 + t * t)
                for i in range(m):
                    x, y = U[i, a], U[i, b]
                    U[i, a], U[i, b] = cosine * (x - t * y), cosine * (y + t * x)
                for i in range(p):
                    x, y = V[i, a], V[i, b]
                    V[i, a], V[i, b] = cosine * (x - t * y), cosine * (y + t * x)
        if not turned:
            break
    least, most = np.inf, 0.0
    for b in range(p):
        size = 0.0
        for i in range(m):
            size += U[i, b] * U[i, b]
        c.s[b] = np.sqrt(size)
        least, most = min(least, c.s[b]), max(most, c.s[b])
    for b in range(p):
        c.s[b] = max(c.s[b], 1e-12 * most)  # a divisor; how singular it is, is returned
    return least / most if most > 0.0 and m >= p else 0.0


@inner
def solve_passive(c, right, column):  # type: ignore[no-untyped-def]
    """``-J_p^+`` times a column of a right-hand side, into c.step."""
    m, p = c.U.shape
    for i in range(p):
        c.step[i] = 0.0
    for b in range(p):
        along = 0.0
        for i in range(m):
            along += c.U[i, b] * right[i, column]
        for i in range(p):
            c.step[i] -= c.V[i, b] * along / (c.s[b] * c.s[b])


@inner
def slope_loops(c):  # type: ignore[no-untyped-def]
    """c.G, after `linearise_loops`; how far from singular."""
    share = factorise_loops(c)
    for j in range(len(c.driven)):
        solve_passive(c, c.J, c.driven[j])
        for i in range(len(c.passive)):
            c.G[i, j] = c.step[i]
    return share


@inner
def look_at_loops(c, q):  # type: ignore[no-untyped-def]
    """Everything of positions: c.e, c.J and c.G; how far from singular."""
    for k in range(len(c.q)):
        c.q[k] = q[k]
    place_joints(c)
    linearise_loops(c)
    return slope_loops(c)


@inner
def drift_loops(c, dq):  # type: ignore[no-untyped-def]
    """c.gamma of speeds, after `look_at_loops`."""
    for k in range(len(c.dq)):
        c.dq[k], c.ddq[k] = dq[k], 0.0
    move_joints(c)
    bend_loops(c)
    solve_passive(c, c.bend, 0)
    for i in range(len(c.passive)):
        c.gamma[i] = c.step[i]


@inner
def correct_loops(c):  # type: ignore[no-untyped-def]
    """Newton's steps of the passive joints from c.q on; the gap that is left, over the length."""
    gap = 0.0
    for _ in range(NEWTON):
        place_joints(c)
        linearise_loops(c)
        factorise_loops(c)
        solve_passive(c, c.e, 0)
        gap = moved = 0.0
        for i in range(len(c.e)):
            gap = max(gap, abs(c.e[i, 0])) if c.e[i, 0] == c.e[i, 0] else np.inf
        for i in range(len(c.passive)):
            moved = max(moved, abs(c.step[i]))
            c.q[c.passive[i]] += min(max(c.step[i], -0.5), 0.5)
        if not moved > 1e-12:  # the gap is that before a step that is none
            break
    for loop in range(len(c.kind)):  # the other way round the gap is none, too
        if c.kind[loop] == ALONG or c.kind[loop] == TURNED:
            find_gap(c, loop)
            sense = c.turn[2, 2]
            if c.kind[loop] == TURNED:
                sense += c.turn[0, 0] + c.turn[1, 1]
            if not sense > 0.0:
                gap = np.inf
    return gap / c.length


# slopes of the motion


@inner
def cross_motions(av, aw, bv, bw, v, w):  # type: ignore[no-untyped-def]
    """Cross product of motions about one point, into v and w."""
    for i in range(3):
        v[i] = w[i] = 0.0
    add_cross(aw, bv, v)
    add_cross(av, bw, v)
    add_cross(aw, bw, w)


@inner
def move_about_origin(c):  # type: ignore[no-untyped-def]
    """Motions of bodies, and joints' screws, about the base's origin, after `move_joints`."""
    for b in range(len(c.p)):
        for i in range(3):
            c.Vo[b, i], c.Ao[b, i] = c.v[b, i], c.a[b, i]
        add_cross(c.p[b], c.w[b], c.Vo[b])
        add_cross(c.p[b], c.al[b], c.Ao[b])
        add_cross(c.v[b], c.w[b], c.Ao[b])
    for k in range(len(c.q)):
        for i in range(3):
            c.So[k, i] = 0.0 if c.revolute[k] else c.z[k, i]
            c.Sw[k, i] = c.z[k, i] if c.revolute[k] else 0.0
        add_cross(c.p[k + 1], c.Sw[k], c.So[k])


@inner
def vary_motion(c, k, b):  # type: ignore[no-untyped-def]
    """How the motion of a body varies with that of a joint that moves it.

    c.x[0:2] and c.x[2:4] of its velocity and acceleration by q, c.x[4:6] of the latter by dq
    (Carpentier and Mansard 2018): what is beyond the joint turns with it as a whole.
    """
    x, up, Sv, Sw = c.x, c.parent[k], c.So[k], c.Sw[k]
    for i in range(3):
        x[6, i], x[7, i] = c.Vo[b, i] - c.Vo[up, i], c.w[b, i] - c.w[up, i]
    cross_motions(Sv, Sw, x[6], x[7], x[0], x[1])
    cross_motions(c.Vo[up], c.w[up], x[6], x[7], x[4], x[5])
    for i in range(3):
        x[6, i] = c.Ao[b, i] - c.Ao[up, i] - x[4, i]
        x[7, i] = c.al[b, i] - c.al[up, i] - x[5, i]
    cross_motions(Sv, Sw, x[6], x[7], x[2], x[3])
    cross_motions(c.Vo[up], c.w[up], x[0], x[1], x[4], x[5])
    for i in range(3):
        x[2, i] += x[4, i]
        x[3, i] += x[5, i]
    cross_motions(c.Vo[up], c.w[up], Sv, Sw, x[4], x[5])
    for i in range(3):
        x[4, i] += x[0, i]
        x[5, i] += x[1, i]


@inner
def vary_coupling(c, loop):  # type: ignore[no-untyped-def]
    """Slopes of a coupling's motion."""
    row, leads, unit = c.row[loop, 0], c.bodies[loop, 1] - 1, weigh_coupling(c, loop)
    v, a, second = c.dq[leads], c.ddq[leads], follow_polynomial(c, loop, 2)
    c.Hq[row, leads] = -unit * second * v
    c.Cq[row, leads] = -unit * (second * a + follow_polynomial(c, loop, 3) * v * v)
    c.Cv[row, leads] = -2.0 * unit * second * v


@inner
def vary_loops(c):  # type: ignore[no-untyped-def]
    """c.Hq, c.Cq and c.Cv at c.q, c.dq and c.ddq, after `look_at_loops`."""
    for i in range(c.Hq.shape[0]):
        for k in range(c.Hq.shape[1]):
            c.Hq[i, k] = c.Cq[i, k] = c.Cv[i, k] = 0.0
    move_joints(c)
    move_about_origin(c)
    x = c.x
    end, speed, y, rate, w, turn, change = x[8], x[9], x[10], x[11], x[12], x[13], x[14]
    for loop in range(len(c.kind)):
        if c.kind[loop] == FOLLOWS:
            vary_coupling(c, loop)
            continue
        find_gap(c, loop)
        one, other = c.bodies[loop, 0], c.bodies[loop, 1]
        for i in range(3):
            end[i] = c.p[other, i] + c.ends[1, i]
            speed[i] = c.Vo[other, i]
            y[i], rate[i] = c.Vo[other, i] - c.Vo[one, i], c.Ao[other, i] - c.Ao[one, i]
            w[i], turn[i] = c.w[other, i] - c.w[one, i], c.al[other, i] - c.al[one, i]
            change[i] = turn[i]
        add_cross(c.w[other], end, speed)
        add_cross(w, end, y)
        add_cross(turn, end, rate)
        add_cross(w, speed, rate)
        add_cross(y, c.w[one], rate)  # in the first frame
        add_cross(w, c.w[one], turn)
        for k in range(len(c.q)):
            sense = 1.0 * (c.moves[other, k] - c.moves[one, k])
            if sense != 0.0:
                vary_motion(c, k, other if sense > 0.0 else one)
                vary_gap(c, loop, k, sense, True)
                write_parts(c, loop, x[16], x[17], c.Hq, k)
                write_parts(c, loop, x[18], x[19], c.Cq, k)
                for i in range(3):
                    x[0, i], x[1, i] = c.So[k, i], c.Sw[k, i]
                    x[2, i], x[3, i] = x[4, i], x[5, i]
                vary_gap(c, loop, k, sense, False)
                write_parts(c, loop, x[18], x[19], c.Cv, k)


@inner
def vary_gap(c, loop, k, sense, placed):  # type: ignore[no-untyped-def]
    """How a loop's relative motion varies with that of one side, c.x[0:4], into c.x[16:20].

    By a joint's position (`placed`), or by its speed.
    """
    x, one, other = c.x, c.bodies[loop, 0], c.bodies[loop, 1]
    end, speed, y, rate, w, turn, change = x[8], x[9], x[10], x[11], x[12], x[13], x[14]
    by_y, by_w, by_rate, by_turn, by_end, by_speed = x[16], x[17], x[18], x[19], x[6], x[7]
    far = sense > 0.0
    for i in range(3):
        by_y[i], by_w[i] = sense * x[0, i], sense * x[1, i]
        by_rate[i], by_turn[i] = sense * x[2, i], sense * x[3, i]
        by_end[i] = c.So[k, i] if placed and far else 0.0
        by_speed[i] = x[0, i] if far else 0.0
    if placed and far:
        add_cross(c.Sw[k], end, by_end)
    if far:
        add_cross(x[1], end, by_speed)
        add_cross(c.w[other], by_end, by_speed)
    add_cross(by_w, end, by_y)
    add_cross(w, by_end, by_y)
    add_cross(by_turn, end, by_rate)
    add_cross(change, by_end, by_rate)
    add_cross(by_w, speed, by_rate)
    add_cross(w, by_speed, by_rate)
    add_cross(by_y, c.w[one], by_rate)
    add_cross(by_w, c.w[one], by_turn)
    if not far:
        add_cross(y, x[1], by_rate)
        add_cross(w, x[1], by_turn)
        if placed:  # the frame turns
            add_cross(y, c.Sw[k], by_y)
            add_cross(w, c.Sw[k], by_w)
            add_cross(rate, c.Sw[k], by_rate)
            add_cross(turn, c.Sw[k], by_turn)


@inner
def pull_slopes(c, H, G, out):  # type: ignore[no-untyped-def]
    """Add ``-J_p^+ H G`` to the rows of passive joints, in columns of driven ones."""
    m, n = H.shape
    for k in range(len(c.driven)):
        j = c.driven[k]
        for i in range(m):
            c.right[i, 0] = 0.0
            for r in range(n):
                c.right[i, 0] += H[i, r] * G[r, j]
        solve_passive(c, c.right, 0)
        for i in range(len(c.passive)):
            out[c.passive[i], j] += c.step[i]


@inner
def vary_extreme(c, which, factor, G, out):  # type: ignore[no-untyped-def]
    """Add a factor times the slope of a singular value of the passive joints' Jacobian to `out`."""
    for k in range(len(c.q)):
        c.dq[k] = c.ddq[k] = 0.0
    for i in range(len(c.passive)):
        c.dq[c.passive[i]] = c.V[i, which]
    vary_loops(c)
    for j in range(len(c.driven)):
        for i in range(len(c.e)):
            for k in range(len(c.q)):
                by = c.U[i, which] / c.s[which] * c.Hq[i, k]
                out[c.driven[j]] += factor * by * G[k, c.driven[j]]


# what rollouts call: of a robot without loops nothing


@inner
def follow_drives(c, q, dq):  # type: ignore[no-untyped-def]
    """Speeds of passive joints by those of the driven ones."""
    if c is None:
        return
    look_at_loops(c, q)
    move_passive(c, dq)


@inner
def move_passive(c, dq):  # type: ignore[no-untyped-def]
    """``dq_p = G dq_a``."""
    for i in range(len(c.passive)):
        dq[c.passive[i]] = 0.0
        for j in range(len(c.driven)):
            dq[c.passive[i]] += c.G[i, j] * dq[c.driven[j]]


@inner
def rest_passive(c, x):  # type: ignore[no-untyped-def]
    """None of what passive joints have."""
    if c is None:
        return
    for i in range(len(c.passive)):
        x[c.passive[i]] = 0.0


@inner
def fold_passive(c, tau):  # type: ignore[no-untyped-def]
    """``G^T tau`` in the places of the driven joints, none in those of the others."""
    if c is None:
        return
    for i in range(len(c.passive)):
        for j in range(len(c.driven)):
            tau[c.driven[j]] += c.G[i, j] * tau[c.passive[i]]
        tau[c.passive[i]] = 0.0


@inner
def bind_loops(c, q, dq, M, tau):  # type: ignore[no-untyped-def]
    """``G^T M G`` and ``G^T (tau + M gamma)`` in the places of M and tau; one of passive joints."""
    if c is None:
        return
    look_at_loops(c, q)
    drift_loops(c, dq)
    n = len(M)
    for r in range(n):
        for i in range(len(c.passive)):
            k = c.passive[i]
            tau[r] += M[r, k] * c.gamma[i]
            for j in range(len(c.driven)):
                M[r, c.driven[j]] += M[r, k] * c.G[i, j]
    fold_passive(c, tau)
    for i in range(len(c.passive)):
        k = c.passive[i]
        for j in range(len(c.driven)):
            for r in range(len(c.driven)):
                M[c.driven[j], c.driven[r]] += c.G[i, j] * M[k, c.driven[r]]
    for i in range(len(c.passive)):
        k = c.passive[i]
        for r in range(n):
            M[r, k] = M[k, r] = 0.0
        M[k, k] = 1.0


@inner
def accelerate_passive(c, ddq):  # type: ignore[no-untyped-def]
    """``ddq_p = G ddq_a + gamma``, after `bind_loops`."""
    if c is None:
        return
    move_passive(c, ddq)
    for i in range(len(c.passive)):
        ddq[c.passive[i]] += c.gamma[i]


@inner
def close_loops(c, q, dq):  # type: ignore[no-untyped-def]
    """Close loops that have drifted; False where they cannot be, or are singular."""
    if c is None:
        return True
    for k in range(len(q)):
        c.q[k] = q[k]
    gap = correct_loops(c)
    for k in range(len(q)):
        q[k] = c.q[k]
    share = look_at_loops(c, q)
    move_passive(c, dq)
    return gap < CLOSED and share >= SINGULAR


# many states


@jit
def place_state(c, q):  # type: ignore[no-untyped-def]
    """Rotations and origins of all bodies at one state, the base's first."""
    for k in range(len(q)):
        c.q[k] = q[k]
    place_joints(c)
    return c.R.copy(), c.p.copy()


@jit
def linearise_states(c, q):  # type: ignore[no-untyped-def]
    """Gaps, their Jacobian, the slopes G, and how far from singular these are, state by state."""
    samples, (m, n), (p, a) = len(q), c.J.shape, c.G.shape
    e, J = np.empty((samples, m)), np.empty((samples, m, n))
    G, share = np.empty((samples, p, a)), np.empty(samples)
    for t in range(samples):
        share[t] = look_at_loops(c, q[t])
        for i in range(m):
            e[t, i] = c.e[i, 0]
            for k in range(n):
                J[t, i, k] = c.J[i, k]
        for i in range(p):
            for j in range(a):
                G[t, i, j] = c.G[i, j]
    return e, J, G, share


@jit
def move_states(c, q, dq, ddq):  # type: ignore[no-untyped-def]
    """Speeds and accelerations of all joints by those of the driven ones, state by state."""
    v, a = dq.copy(), ddq.copy()
    for t in range(len(q)):
        look_at_loops(c, q[t])
        move_passive(c, v[t])
        drift_loops(c, v[t])
        accelerate_passive(c, a[t])
    return v, a


@jit
def vary_states(c, q, dq, ddq, whole):  # type: ignore[no-untyped-def]
    """Slopes of closed motions by those of driven joints, state by state.

    Of positions by positions G, of speeds and accelerations by positions D and E, of accelerations
    by speeds B, shape (samples, n, n) each; of column j of G by positions, ``bent[:, j]``; and how
    far from singular states are, with its slope; these last where the `whole` is asked for. Columns
    of passive joints are zero.
    """
    n, a, samples = len(c.q), len(c.driven), len(q)
    shape = (samples, n, n)
    G, D, E, B = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape)
    bent, share, lean = np.zeros((samples, n, n, n)), np.empty(samples), np.zeros((samples, n))
    for t in range(samples):
        share[t] = look_at_loops(c, q[t])
        for j in range(a):
            G[t, c.driven[j], c.driven[j]] = 1.0
            for i in range(len(c.passive)):
                G[t, c.passive[i], c.driven[j]] = c.G[i, j]
        least, most = np.argmin(c.s), np.argmax(c.s)
        size = c.s[most]
        if whole:
            vary_extreme(c, least, 1.0 / size, G[t], lean[t])
            vary_extreme(c, most, -share[t] / size, G[t], lean[t])
            for j in c.driven:
                for k in range(n):
                    c.dq[k], c.ddq[k] = G[t, k, j], 0.0
                vary_loops(c)
                pull_slopes(c, c.Hq, G[t], bent[t, j])
        for k in range(n):
            c.dq[k], c.ddq[k] = dq[t, k], ddq[t, k]
        vary_loops(c)
        pull_slopes(c, c.Hq, G[t], D[t])
        pull_slopes(c, c.Cv, G[t], B[t])
        pull_slopes(c, c.Cq, G[t], E[t])
        pull_slopes(c, c.Cv, D[t], E[t])
    return G, D, E, B, bent, share, lean


@jit
def correct_states(c, q):  # type: ignore[no-untyped-def]
    """Closed loops near states, and the gaps that are left, over the length."""
    found, gap = q.copy(), np.empty(len(q))
    for t in range(len(q)):
        for k in range(q.shape[1]):
            c.q[k] = q[t, k]
        gap[t] = correct_loops(c)
        for k in range(q.shape[1]):
            found[t, k] = c.q[k]
    return found, gap
