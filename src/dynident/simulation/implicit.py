"""A stage of an implicit integrator: Newton's method on the acceleration."""

from __future__ import annotations

import numpy as np

from dynident.dynamics.kinematics import jit
from dynident.simulation.ports import DONE, NOT_POSITIVE, STUCK
from dynident.simulation.state import inverse_terms, resist, sensitivity, solve_dense, tangent

NEWTON = 60
CLOSE = 1e-13


@jit
def implicit_stage(  # type: ignore[no-untyped-def]
    kind, parent, row, rotation, translation, axis, gravity, path, lengths,
    phi, rotors, gears, friction, width, slot, gear, column, share,
    g, applied, external, qs, dqs, guess, Qs, Vs, U,
    R, p, S, V, A, F, own, C, extra, B, T, f, motion, e, M, tau, K, D, W, X,
    trial, step, kq, kv,
):  # fmt: skip
    """Solve ``ID(q + g dq', dq', ddq) = torques``, ``dq' = dq + g ddq``, for ddq (Newton).

    On a fixed base. Leaves the stage's rates in kq and kv; of their sensitivities, those of
    dq' in Vs and those of ddq in X.
    """
    dof, n = len(dqs), len(applied)
    q0, v0 = qs.copy(), dqs.copy()
    previous = np.inf
    damping = 1.0
    kv[:] = guess
    trial[:] = guess
    for iteration in range(NEWTON):
        for i in range(dof):
            dqs[i] = v0[i] + g * trial[i]
            qs[i] = q0[i] + g * dqs[i]
        inverse_terms(
            kind, parent, row, rotation, translation, axis, gravity, path, lengths,
            phi, rotors, qs, dqs, R, p, S, V, A, F, own, C, f, M, tau,
        )  # fmt: skip
        resist(gears, friction, width, dqs, tau)
        size = 0.0
        for i in range(dof):
            r = external[i] - tau[i]
            if i >= dof - n:
                r += applied[i - dof + n]
            for j in range(dof):
                r -= M[i, j] * trial[j]
            step[i, 0] = r
            size += r * r
        if size > previous and damping > 1e-3:
            # the friction's bend was jumped over: halve the step
            damping *= 0.5
            for i in range(dof):
                trial[i] = 0.5 * (trial[i] + kv[i])
            continue
        previous, damping = size, 1.0
        kv[:] = trial
        tangent(
            kind, parent, row, gravity, path, lengths, slot, gears, friction, width, gear, column,
            share, dqs, trial, R, p, S, V, A, F, own, C, extra, B, T, f, motion, e, K, D, W,
        )  # fmt: skip
        for i in range(dof):
            for j in range(dof):
                M[i, j] += g * (D[i, j] + g * K[i, j])
        change = 0.0
        if not solve_dense(M, step):
            return NOT_POSITIVE, 0
        for i in range(dof):
            trial[i] += step[i, 0]
            change = max(change, g * abs(step[i, 0]) / (1.0 + abs(dqs[i])))
        if change < CLOSE or (iteration > 8 and change < 1e3 * CLOSE):
            kv[:] = trial
            for i in range(dof):
                dqs[i] = v0[i] + g * trial[i]
                qs[i] = q0[i] + g * dqs[i]
                kq[i] = dqs[i]
            columns = X.shape[1]
            if columns:
                # at the solution: (M + g D + g^2 K) d ddq = -W - K (dq0 + g dv0) - D dv0
                for i in range(dof):
                    for col in range(columns):
                        Qs[i, col] += g * Vs[i, col]
                sensitivity(K, D, W, U, Qs, Vs, X)
                inverse_terms(
                    kind, parent, row, rotation, translation, axis, gravity, path, lengths,
                    phi, rotors, qs, dqs, R, p, S, V, A, F, own, C, f, M, tau,
                )  # fmt: skip
                for i in range(dof):
                    for j in range(dof):
                        M[i, j] += g * (D[i, j] + g * K[i, j])
                if not solve_dense(M, X):
                    return NOT_POSITIVE, 0
                for i in range(dof):
                    for col in range(columns):
                        Vs[i, col] += g * X[i, col]
            return DONE, -1
    return STUCK, 0
