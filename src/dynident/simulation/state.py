"""One state of the simulated robot: its acceleration, and how that moves with all else.

Everything a stage of an integrator needs, on scratch arrays that the caller owns.
"""

from __future__ import annotations

import numpy as np

from dynident.dynamics.cholesky import factorise, solve, solve_columns
from dynident.dynamics.kinematics import jit
from dynident.dynamics.spatial import accelerate, gather, move
from dynident.dynamics.tangent import inertial_columns, linearise


@jit
def drive_speed(gears, i, first, dq):  # type: ignore[no-untyped-def]
    """How fast drive i turns."""
    v = 0.0
    for j in range(gears.shape[1]):
        v += gears[i, j] * dq[first + j]
    return v


@jit
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
            f += coulomb * np.tanh(v / width[i])
        for j in range(n):
            tau[first + j] += gears[i, j] * f


@jit
def resist_slope(gears, friction, width, dq, D):  # type: ignore[no-untyped-def]
    """Add the slope of the drives' friction to ``d tau / d dq``."""
    n = gears.shape[1]
    first = len(D) - n
    for i in range(len(gears)):
        v = drive_speed(gears, i, first, dq)
        s = np.tanh(v / width[i])
        fall = friction[i, 3] * np.exp(-((v / friction[i, 4]) ** 2))
        slope = friction[i, 1] + (friction[i, 2] + fall) * (1.0 - s * s) / width[i]
        slope -= 2.0 * v / friction[i, 4] ** 2 * fall * s
        for j in range(n):
            for k in range(n):
                D[first + j, first + k] += gears[i, j] * gears[i, k] * slope


@jit
def drive_columns(gears, width, gear, column, share, dq, ddq, W):  # type: ignore[no-untyped-def]
    """The drives' columns of the regressor, with the smoothed sign, into W."""
    n = gears.shape[1]
    first = len(W) - n
    for c in range(len(gear)):
        i = gear[c]
        v = drive_speed(gears, i, first, dq)
        value = share[c, 0] + share[c, 1] * v
        if share[c, 2] != 0.0:
            value += share[c, 2] * np.tanh(v / width[i])
        if share[c, 3] != 0.0:
            value += share[c, 3] * drive_speed(gears, i, first, ddq)
        for j in range(n):
            if gears[i, j] != 0.0:
                W[first + j, column[c]] = gears[i, j] * value


@jit
def inverse_terms(  # type: ignore[no-untyped-def]
    kind, parent, row, rotation, translation, axis, gravity, path, lengths, phi, rotors,
    q, dq, R, p, S, V, A, F, own, C, f, M, tau,
):  # fmt: skip
    """Mass matrix M, rotors included, and the torques at zero acceleration, into tau."""
    move(kind, parent, row, rotation, translation, axis, gravity, phi, q, dq, R, p, S, V, A, F, own)
    gather(kind, parent, row, path, lengths, S, F, own, C, f, M, tau)
    for i in range(len(M)):
        for j in range(len(M)):
            M[i, j] += rotors[i, j]


@jit
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


@jit
def tangent(  # type: ignore[no-untyped-def]
    kind, parent, row, gravity, path, lengths, slot, gears, friction, width, gear, column, share,
    dq, ddq, R, p, S, V, A, F, own, C, extra, B, T, f, motion, e, K, D, W,
):  # fmt: skip
    """Derivatives of the torque by position (K), velocity (D) and parameters (W)."""
    accelerate(kind, parent, row, S, V, own, ddq, extra, A, F)
    linearise(kind, parent, row, path, lengths, gravity, S, V, A, F, own, C, B, T, f, K, D)
    resist_slope(gears, friction, width, dq, D)
    inertial_columns(kind, path, lengths, slot, R, p, S, V, A, motion, e, W)
    drive_columns(gears, width, gear, column, share, dq, ddq, W)


@jit
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


@jit
def sensitive_acceleration(L, K, D, W, U, SQ, SV, out):  # type: ignore[no-untyped-def]
    """Sensitivities of the acceleration, from the factors of the mass matrix."""
    sensitivity(K, D, W, U, SQ, SV, out)
    solve_columns(L, out)


@jit
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
