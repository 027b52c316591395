"""One state of the simulated robot: its acceleration, and how that moves with all else.

Everything a stage of an integrator needs, on scratch arrays that the caller owns.
"""

from __future__ import annotations

import numpy as np

from dynident.core.jit import inner, spliced
from dynident.dynamics.cholesky import factorise, solve, solve_columns
from dynident.dynamics.spatial import accelerate, gather, move
from dynident.dynamics.tangent import inertial_columns, linearise


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
def resist(gears, friction, width, dq, tau):  # type: ignore[no-untyped-def]
    """Add the drives' friction to the torques."""
    n = gears.shape[1]
    first = len(tau) - n
    for i in range(len(gears)):
        v = drive_speed(gears, i, first, dq)
        f = friction[i, 0] + friction[i, 1] * v
        coulomb = friction[i, 2]
        if friction[i, 3] != 0.0:
            coulomb += friction[i, 3] * np.exp(-((v / friction[i, 4]) ** 2))
        if coulomb != 0.0:
            f += coulomb * smooth_sign(v / width[i])
        if i < n:
            tau[first + i] += f
        else:
            for j in range(n):
                tau[first + j] += gears[i, j] * f


@inner
def resist_slope(gears, friction, width, dq, D):  # type: ignore[no-untyped-def]
    """Add the slope of the drives' friction to ``d tau / d dq``."""
    n = gears.shape[1]
    first = len(D) - n
    for i in range(len(gears)):
        v = drive_speed(gears, i, first, dq)
        s = smooth_sign(v / width[i])
        fall = friction[i, 3] * np.exp(-((v / friction[i, 4]) ** 2))
        slope = friction[i, 1] + (friction[i, 2] + fall) * (1.0 - s * s) / width[i]
        slope -= 2.0 * v / friction[i, 4] ** 2 * fall * s
        if i < n:
            D[first + i, first + i] += slope
        else:
            for j in range(n):
                for k in range(n):
                    D[first + j, first + k] += gears[i, j] * gears[i, k] * slope


@inner
def drive_columns(gears, width, gear, column, share, dq, ddq, W):  # type: ignore[no-untyped-def]
    """The drives' columns of the regressor, with the smoothed sign, into W."""
    n = gears.shape[1]
    first = len(W) - n
    for c in range(len(gear)):
        i = gear[c]
        v = drive_speed(gears, i, first, dq)
        value = share[c, 0] + share[c, 1] * v
        if share[c, 2] != 0.0:
            value += share[c, 2] * smooth_sign(v / width[i])
        if share[c, 3] != 0.0:
            value += share[c, 3] * drive_speed(gears, i, first, ddq)
        for j in range(n):
            if gears[i, j] != 0.0:
                W[first + j, column[c]] = gears[i, j] * value


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
def tangent(tree, plant, s, dq, ddq):  # type: ignore[no-untyped-def]
    """Derivatives of the plant's torque by position, velocity, parameters: s.K, s.D, s.W."""
    model_tangent(tree, s, ddq)
    resist_slope(plant.gears, plant.friction, plant.width, dq, s.D)
    inertial_columns(
        tree.kind, tree.path, tree.path_length, plant.slot, s.R, s.p, s.S, s.V, s.A, s.motion,
        s.e, s.W,
    )  # fmt: skip
    drive_columns(
        plant.gears, plant.width, plant.gear, plant.column, plant.share, dq, ddq, s.W
    )  # fmt: skip


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
def respond(tree, plant, s, q, dq, SQ, SV, ddq):  # type: ignore[no-untyped-def]
    """Acceleration under s.now and s.external, into ddq; its sensitivities into s.X.

    Returns the row where the mass matrix is not positive definite, or -1.
    """
    inverse_terms(tree, plant.phi, plant.rotors, s, q, dq)
    resist(plant.gears, plant.friction, plant.width, dq, s.tau)
    failed = acceleration(s.M, s.tau, s.now, s.external, ddq)
    if failed < 0 and s.X.shape[1]:
        tangent(tree, plant, s, dq, ddq)
        sensitivity(s.K, s.D, s.W, s.U, SQ, SV, s.X)
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
