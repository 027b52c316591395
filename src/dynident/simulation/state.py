"""One state of the simulated robot: its acceleration, and how that moves with all else.

Everything a stage of an integrator needs, on scratch arrays that the caller owns.
"""

from __future__ import annotations

import numpy as np

from dynident.core.jit import inner, spliced
from dynident.dynamics.cholesky import factorise, solve, solve_columns
from dynident.dynamics.spatial import accelerate, gather, move
from dynident.dynamics.tangent import inertial_columns, linearise
from dynident.friction.kernel import (
    BY_POSITION,
    BY_SPEED,
    BY_STATE,
    VALUE,
    At,
    consult,
    weighed,
)
from dynident.simulation.vectors import add_vector, copy_vector


@inner
def smooth_sign(x):  # type: ignore[no-untyped-def]
    """``tanh(x)``, which beyond 20 is the sign to the last bit."""
    if x > 20.0:
        return 1.0
    if x < -20.0:
        return -1.0
    e = np.exp(2.0 * x)
    return (e - 1.0) / (e + 1.0)


@inner
def drive_speed(gears, i, first, dq):  # type: ignore[no-untyped-def]
    """How fast drive i turns; the first n drives are the joints' own."""
    n = gears.shape[1]
    if i < n:
        return dq[first + i]
    v = 0.0
    for j in range(n):
        v += gears[i, j] * dq[first + j]
    return v


@inner
def pass_on(gears, i, first, f, tau):  # type: ignore[no-untyped-def]
    """Add drive i's torque f to those of the joints, through the transpose of its gear."""
    n = gears.shape[1]
    if i < n:
        tau[first + i] += f
    else:
        for j in range(n):
            tau[first + j] += gears[i, j] * f


@inner
def pass_slope(gears, i, first, slope, K):  # type: ignore[no-untyped-def]
    """Add a slope of drive i's torque to the derivatives K by positions or velocities."""
    n = gears.shape[1]
    if i < n:
        K[first + i, first + i] += slope
    else:
        for j in range(n):
            for k in range(n):
                K[first + j, first + k] += gears[i, j] * gears[i, k] * slope


@inner
def pass_column(gears, i, first, value, column, W):  # type: ignore[no-untyped-def]
    """Write drive i's entry of the regressor into a column of W."""
    for j in range(gears.shape[1]):
        if gears[i, j] != 0.0:
            W[first + j, column] = gears[i, j] * value


@inner
def turn(gears, width, rough, dq, speed, sign):  # type: ignore[no-untyped-def]
    """Speeds of all drives, and their signs where anything depends on them."""
    first = len(dq) - gears.shape[1]
    for i in range(len(gears)):
        speed[i] = drive_speed(gears, i, first, dq)
        if rough[i]:
            sign[i] = smooth_sign(speed[i] / width[i])


@inner
def resist(gears, friction, speed, sign, tau):  # type: ignore[no-untyped-def]
    """Add the drives' friction ``a + b v + c s(v)`` to the torques."""
    first = len(tau) - gears.shape[1]
    for i in range(len(gears)):
        f = friction[i, 0] + friction[i, 1] * speed[i] + friction[i, 2] * sign[i]
        pass_on(gears, i, first, f, tau)


@inner
def resist_slope(gears, friction, width, sign, D):  # type: ignore[no-untyped-def]
    """Add the slope of that to ``d tau / d dq``."""
    first = len(D) - gears.shape[1]
    for i in range(len(gears)):
        bend = friction[i, 2] * (1.0 - sign[i] * sign[i]) / width[i]
        pass_slope(gears, i, first, friction[i, 1] + bend, D)


@inner
def drive_columns(gears, gear, column, share, speed, sign, ddq, W):  # type: ignore[no-untyped-def]
    """The columns of rotors and of that friction, with the smoothed sign, into W."""
    first = len(W) - gears.shape[1]
    for c in range(len(gear)):
        i = gear[c]
        value = share[c, 0] + share[c, 1] * speed[i] + share[c, 2] * sign[i]
        if share[c, 3] != 0.0:
            value += share[c, 3] * drive_speed(gears, i, first, ddq)
        pass_column(gears, i, first, value, column[c], W)


@inner
def sight(gears, i, width, speed, sign, q, period):  # type: ignore[no-untyped-def]
    """What the laws see of drive i."""
    position = drive_speed(gears, i, len(q) - gears.shape[1], q)
    slope = (1.0 - sign[i] * sign[i]) / width[i]
    return At(speed[i], position, sign[i], slope, 0.0, 0.0, period)


# What follows is compiled away where no elements act: for `each` = None.


@inner
def act(gears, width, each, speed, sign, q, memory, table, tau):  # type: ignore[no-untyped-def]
    """Add the torques of the elements; leaves their tables."""
    if each is not None:
        first = len(tau) - gears.shape[1]
        for e in range(len(each.gear)):
            i = each.gear[e]
            at = sight(gears, i, width, speed, sign, q, 0.0)
            consult(each.address[e, 0], at, each.shape[e], memory[e], table[e])
            pass_on(gears, i, first, weighed(each.values[e], table[e], VALUE), tau)


@inner
def act_slope(gears, each, table, K, D):  # type: ignore[no-untyped-def]
    """Add the slopes of the elements to the derivatives of the torques, after `act`."""
    if each is not None:
        first = len(D) - gears.shape[1]
        for e in range(len(each.gear)):
            i, values = each.gear[e], each.values[e]
            pass_slope(gears, i, first, weighed(values, table[e], BY_POSITION), K)
            pass_slope(gears, i, first, weighed(values, table[e], BY_SPEED), D)


@inner
def act_columns(gears, each, table, W):  # type: ignore[no-untyped-def]
    """The columns of the elements' linear parameters and shapes into W, after `act`."""
    if each is not None:
        first = len(W) - gears.shape[1]
        for c in range(len(each.parameter)):
            e, place = each.parameter[c, 0], each.parameter[c, 1]
            rows, states = each.counts[e, 0], each.counts[e, 1]
            if place < rows:
                value = table[e, place, VALUE]
            else:
                value = weighed(each.values[e], table[e], BY_STATE + states + place - rows)
            pass_column(gears, each.gear[e], first, value, each.parameter[c, 2], W)


@inner
def recall(gears, each, table, SM, X):  # type: ignore[no-untyped-def]
    """Take what the elements' states add from X, before the mass matrix divides it."""
    if each is not None:
        n = gears.shape[1]
        first = len(X) - n
        for e in range(len(each.gear)):
            i = each.gear[e]
            for k in range(each.counts[e, 1]):
                f = weighed(each.values[e], table[e], BY_STATE + k)
                for j in range(n):
                    if gears[i, j] != 0.0:
                        add_vector(-gears[i, j] * f, SM[e, k], X[first + j])


@inner
def remember(gears, width, rough, each, s, h, q, dq, memory, SQ, SV, SM):  # type: ignore[no-untyped-def]
    """Step the elements' states over a time h at the speed that is now, and their tangents."""
    if each is not None:
        turn(gears, width, rough, dq, s.speed, s.sign)
        n, columns, fresh = gears.shape[1], SQ.shape[1], s.fresh
        first = len(SV) - n
        for e in range(len(each.gear)):
            i, states = each.gear[e], each.counts[e, 1]
            if states == 0:
                continue
            rules = s.table[e]
            at = sight(gears, i, width, s.speed, s.sign, q, h)
            consult(each.address[e, 1], at, each.shape[e], memory[e], rules)
            for k in range(states):
                memory[e, k] = rules[k, VALUE]
                for c in range(columns):
                    fresh[k, c] = 0.0
                for r in range(states):
                    add_vector(rules[k, BY_STATE + r], SM[e, r], fresh[k])
                for j in range(n):
                    if gears[i, j] != 0.0:
                        add_vector(gears[i, j] * rules[k, BY_SPEED], SV[first + j], fresh[k])
                        add_vector(gears[i, j] * rules[k, BY_POSITION], SQ[first + j], fresh[k])
            for c in range(len(each.parameter)):
                place = each.parameter[c, 1] - each.counts[e, 0]
                if each.parameter[c, 0] == e and place >= 0:
                    for k in range(states):
                        fresh[k, each.parameter[c, 2]] += rules[k, BY_STATE + states + place]
            for k in range(states):
                copy_vector(fresh[k], SM[e, k])


@spliced
def inverse_terms(tree, phi, rotors, s, q, dq):  # type: ignore[no-untyped-def]
    """Mass matrix, rotors included, and the torques at zero acceleration: s.M and s.tau."""
    kind, parent, row, M = tree.kind, tree.parent, tree.row, s.M
    move(
        kind, parent, row, tree.rotation, tree.translation, tree.axis, tree.gravity, phi,
        q, dq, s.R, s.p, s.S, s.V, s.A, s.F, s.own,
    )  # fmt: skip
    gather(
        kind, parent, row, tree.path, tree.path_length, s.S, s.F, s.own, s.C, s.f, M, s.tau
    )  # fmt: skip
    for i in range(len(M)):
        for j in range(len(M)):
            M[i, j] += rotors[i, j]


@inner
def acceleration(M, tau, applied, external, ddq):  # type: ignore[no-untyped-def]
    """``M ddq = applied + external - tau``; the row where M fails, or -1. M is factorised."""
    dof, n = len(M), len(applied)
    failed = factorise(M)
    if failed >= 0:
        return failed
    for i in range(dof):
        ddq[i] = external[i] - tau[i]
    for j in range(n):
        ddq[dof - n + j] += applied[j]
    solve(M, ddq)
    return -1


@spliced
def model_tangent(tree, s, ddq):  # type: ignore[no-untyped-def]
    """After `inverse_terms`: derivatives of the rigid bodies' torque, s.K and s.D."""
    kind, parent, row = tree.kind, tree.parent, tree.row
    accelerate(kind, parent, row, s.S, s.V, s.own, ddq, s.extra, s.A, s.F)
    linearise(
        kind, parent, row, tree.path, tree.path_length, tree.gravity, s.S, s.V, s.A, s.F, s.own,
        s.C, s.B, s.T, s.f, s.K, s.D,
    )  # fmt: skip


@spliced
def drag(plant, s, q, dq, memory):  # type: ignore[no-untyped-def]
    """Add all friction to s.tau; leaves the drives' speeds and signs, and the laws' tables."""
    gears, width = plant.gears, plant.width
    turn(gears, width, plant.rough, dq, s.speed, s.sign)
    resist(gears, plant.friction, s.speed, s.sign, s.tau)
    act(gears, width, plant.elements, s.speed, s.sign, q, memory, s.table, s.tau)


@spliced
def tangent(tree, plant, s, ddq):  # type: ignore[no-untyped-def]
    """Derivatives of the plant's torque by position, velocity, parameters: s.K, s.D, s.W.

    After `drag` at the same state.
    """
    gears = plant.gears
    model_tangent(tree, s, ddq)
    resist_slope(gears, plant.friction, plant.width, s.sign, s.D)
    inertial_columns(
        tree.kind, tree.path, tree.path_length, plant.slot, s.R, s.p, s.S, s.V, s.A, s.motion,
        s.e, s.W,
    )  # fmt: skip
    drive_columns(gears, plant.gear, plant.column, plant.share, s.speed, s.sign, ddq, s.W)
    act_slope(gears, plant.elements, s.table, s.K, s.D)
    act_columns(gears, plant.elements, s.table, s.W)


@spliced
def sensitivities(plant, s, SQ, SV, SM):  # type: ignore[no-untyped-def]
    """What the mass matrix turns into those of the acceleration, into s.X."""
    sensitivity(s.K, s.D, s.W, s.U, SQ, SV, s.X)
    recall(plant.gears, plant.elements, s.table, SM, s.X)


@inner
def sensitivity(K, D, W, U, SQ, SV, out):  # type: ignore[no-untyped-def]
    """``U - W - K SQ - D SV``: what the mass matrix turns into d ddq / d beta."""
    n, columns = out.shape
    for i in range(n):
        for c in range(columns):
            out[i, c] = U[i, c] - W[i, c]
        for j in range(n):
            k, d = K[i, j], D[i, j]
            for c in range(columns):
                out[i, c] -= k * SQ[j, c] + d * SV[j, c]


@spliced
def respond(tree, plant, s, q, dq, memory, SQ, SV, SM, ddq):  # type: ignore[no-untyped-def]
    """Acceleration under s.now and s.external, into ddq; its sensitivities into s.X.

    Returns the row where the mass matrix is not positive definite, or -1.
    """
    inverse_terms(tree, plant.phi, plant.rotors, s, q, dq)
    drag(plant, s, q, dq, memory)
    failed = acceleration(s.M, s.tau, s.now, s.external, ddq)
    if failed < 0 and s.X.shape[1]:
        tangent(tree, plant, s, ddq)
        sensitivities(plant, s, SQ, SV, SM)
        solve_columns(s.M, s.X)
    return failed


@inner
def solve_dense(J, X):  # type: ignore[no-untyped-def]
    """Gaussian elimination with row pivots: ``J X = X`` for all columns; False if singular."""
    n, columns = X.shape
    for i in range(n):
        pivot = i
        for r in range(i + 1, n):
            if abs(J[r, i]) > abs(J[pivot, i]):
                pivot = r
        if not abs(J[pivot, i]) > 0.0:
            return False
        if pivot != i:
            for c in range(n):
                J[i, c], J[pivot, c] = J[pivot, c], J[i, c]
            for c in range(columns):
                X[i, c], X[pivot, c] = X[pivot, c], X[i, c]
        for r in range(i + 1, n):
            factor = J[r, i] / J[i, i]
            if factor != 0.0:
                for c in range(i + 1, n):
                    J[r, c] -= factor * J[i, c]
                for c in range(columns):
                    X[r, c] -= factor * X[i, c]
    for i in range(n - 1, -1, -1):
        for c in range(columns):
            X[i, c] /= J[i, i]
        for r in range(i):
            factor = J[r, i]
            if factor != 0.0:
                for c in range(columns):
                    X[r, c] -= factor * X[i, c]
    return True
