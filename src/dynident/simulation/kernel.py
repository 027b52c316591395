"""The rollout: robot, drives, friction and controller, one integration step after another.

Sensitivities are propagated by differentiating every operation of the step, so that they
are those of the numbers that come out, not of the differential equation that they
approximate.
"""

from __future__ import annotations

import numpy as np

from dynident.dynamics.kinematics import jit
from dynident.simulation.implicit import implicit_stage
from dynident.simulation.law import (
    interpolate,
    linear_output,
    linear_tangent,
    measure,
    next_state,
    state_tangent,
    torque_of,
)
from dynident.simulation.ports import DIVERGED, DONE, NOT_POSITIVE, store
from dynident.simulation.state import (
    acceleration,
    inverse_terms,
    resist,
    sensitive_acceleration,
    tangent,
)

FASTEST = 1e5
"""Speed above which a rollout is given up [rad/s or m/s]."""


@jit
def configuration_rate(q, dq, out):  # type: ignore[no-untyped-def]
    """Rate of the configuration: of a free-flying base from its twist in its own axes."""
    if len(q) == len(dq):
        for i in range(len(q)):
            out[i] = dq[i]
        return
    x, y, z, w = q[3], q[4], q[5], q[6]
    v0, v1, v2, w0, w1, w2 = dq[0], dq[1], dq[2], dq[3], dq[4], dq[5]
    # rotation by a unit quaternion: v + 2 w (u x v) + 2 u x (u x v)
    c0, c1, c2 = y * v2 - z * v1, z * v0 - x * v2, x * v1 - y * v0
    out[0] = v0 + 2.0 * (w * c0 + y * c2 - z * c1)
    out[1] = v1 + 2.0 * (w * c1 + z * c0 - x * c2)
    out[2] = v2 + 2.0 * (w * c2 + x * c1 - y * c0)
    out[3] = 0.5 * (w * w0 + y * w2 - z * w1)
    out[4] = 0.5 * (w * w1 + z * w0 - x * w2)
    out[5] = 0.5 * (w * w2 + x * w1 - y * w0)
    out[6] = -0.5 * (x * w0 + y * w1 + z * w2)
    for i in range(7, len(q)):
        out[i] = dq[i - 1]


@jit
def settle(q, dq):  # type: ignore[no-untyped-def]
    """Renew the base's unit quaternion; the first velocity out of bounds, or -1."""
    if len(q) != len(dq):
        norm = np.sqrt(q[3] * q[3] + q[4] * q[4] + q[5] * q[5] + q[6] * q[6])
        for i in range(3, 7):
            q[i] /= norm
    for i in range(len(dq)):
        if not abs(dq[i]) < FASTEST:
            return i
    return -1


@jit
def advance(tree, plant, law, a, b, c, substeps, h, inputs, state, start, stop, out):  # type: ignore[no-untyped-def]
    """Roll on from sample `start` to `stop`, recording each sample on the way.

    Returns
    -------
    (status, sample, velocity)
        DONE, or why not, when, and at which velocity.
    """
    kind, parent, row, axis, gravity = tree.kind, tree.parent, tree.row, tree.axis, tree.gravity
    rotation, translation = tree.rotation, tree.translation
    path, lengths = tree.path, tree.path_length
    phi, rotors, gears = plant.phi, plant.rotors, plant.gears
    friction, width, slot = plant.friction, plant.width, plant.slot
    gear, column, share = plant.gear, plant.column, plant.share
    reference, forward, external = inputs.reference, inputs.forward, inputs.external
    noise, count = inputs.noise, inputs.counts
    q, dq, z, ring, at = state.q, state.dq, state.z, state.ring, state.at
    SQ, SV, SZ, SU = state.SQ, state.SV, state.SZ, state.SU
    LA, LB, LC, LD = law.A, law.B, law.C, law.D
    antiwindup, gain, limit = law.antiwindup, law.gain, law.limit
    hold, delay, compensation = law.hold, law.delay, law.compensation
    phi_c, rotors_c = law.phi, law.rotors

    stages, nq, dof = len(b), len(q), len(dq)
    n, m, columns = z.shape[0], z.shape[1], SQ.shape[1]
    first, joints = dof - n, nq - n
    bodies = len(kind)
    implicit = a[0, 0] != 0.0
    # scratch
    R, p, S = np.empty((bodies, 3, 3)), np.empty((bodies, 3)), np.empty((dof, 6))
    V, A, F = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 6))
    own, C, extra = np.empty((bodies, 10)), np.empty((bodies, 10)), np.empty((bodies, 6))
    B, T, f = np.empty((bodies, 12)), np.empty((3, dof, 6)), np.empty(6)
    motion, e = np.empty(9), np.empty(10)
    M, tau, K, D = np.empty((dof, dof)), np.empty(dof), np.empty((dof, dof)), np.empty((dof, dof))
    W, X, U = np.zeros((dof, columns)), np.empty((dof, columns)), np.zeros((dof, columns))
    still, ddq, guess = np.zeros(dof), np.zeros(dof), np.zeros(dof)
    ext, trial, step = np.zeros(dof), np.zeros(dof), np.empty((dof, 1))
    w, v, raw, u = np.zeros((n, 5)), np.zeros(n), np.zeros(n), np.zeros(n)
    now, measured = np.zeros(n), np.zeros(n)
    Sraw, Snow = np.empty((n, columns)), np.empty((n, columns))
    zs, Zs = np.empty((n, m)), np.empty((n, m, columns))
    qs, dqs = np.empty(nq), np.empty(dof)
    Qs, Vs = np.empty((dof, columns)), np.empty((dof, columns))
    kq, kv, kz = np.empty((stages, nq)), np.empty((stages, dof)), np.zeros((stages, n, m))
    KQ, KV = np.empty((stages, dof, columns)), np.empty((stages, dof, columns))
    KZ = np.zeros((stages, n, m, columns))

    for k in range(start, stop):
        record = k - start
        for sub in range(substeps):
            # ---- a sampled controller looks and decides
            if hold > 0 and (k * substeps + sub) % hold == 0:
                part = sub / substeps
                measure(q, noise, k, count, joints, measured)
                for j in range(n):
                    w[j, 3], w[j, 4] = measured[j], dq[first + j]
                for i in range(3):
                    interpolate(reference[i], k, part, now)
                    w[:, i] = now
                linear_output(LC, LD, limit, w, z, v, raw)
                if columns:
                    linear_tangent(LC, LD, v, raw, SQ, SV, SZ, first, Sraw)
                torque_of(
                    kind, parent, row, rotation, translation, axis, gravity, path, lengths,
                    compensation, phi_c, rotors_c, gain, q, dq, still, v, raw, Sraw, SQ, SV,
                    R, p, S, V, A, F, own, C, extra, B, T, f, M, tau, K, D, trial, u, Snow,
                )  # fmt: skip
                if len(forward):
                    interpolate(forward, k, part, now)
                    for j in range(n):
                        u[j] += now[j]
                next_state(LA, LB, antiwindup, w, z, v, raw, zs)
                if columns and m:
                    state_tangent(LA, LB, antiwindup, v, raw, SQ, SV, SZ, first, Sraw, Zs)
                    SZ[:] = Zs
                z[:] = zs
                if k == 0 and sub == 0:  # nothing was decided before the start
                    ring[:] = u
                    if columns:
                        SU[:] = Snow
            if hold > 0:
                at[0] = (at[0] + 1) % (delay + 1)
                ring[at[0]] = u
                # what was decided `delay` steps ago acts now
                oldest = (at[0] + 1) % (delay + 1)
                if columns:
                    SU[at[0]] = Snow
                    U[first:] = SU[oldest]
                for j in range(n):
                    now[j] = ring[oldest, j]
            # ---- the stages of the integrator
            for i in range(stages):
                part = (sub + c[i]) / substeps
                for r in range(nq):
                    qs[r] = q[r]
                for r in range(dof):
                    dqs[r] = dq[r]
                if columns:
                    Qs[:] = SQ
                    Vs[:] = SV
                if m and hold == 0:
                    zs[:] = z
                    Zs[:] = SZ
                for s in range(i):
                    factor = h * a[i, s]
                    if factor == 0.0:
                        continue
                    for r in range(nq):
                        qs[r] += factor * kq[s, r]
                    for r in range(dof):
                        dqs[r] += factor * kv[s, r]
                        for col in range(columns):
                            Qs[r, col] += factor * KQ[s, r, col]
                            Vs[r, col] += factor * KV[s, r, col]
                    if m and hold == 0:
                        for j in range(n):
                            for r in range(m):
                                zs[j, r] += factor * kz[s, j, r]
                                for col in range(columns):
                                    Zs[j, r, col] += factor * KZ[s, j, r, col]
                if hold == 0:
                    for r in range(3):
                        interpolate(reference[r], k, part, now)
                        w[:, r] = now
                    for j in range(n):
                        w[j, 3], w[j, 4] = qs[joints + j], dqs[first + j]
                        if len(noise):
                            w[j, 3] += noise[k, j]
                    linear_output(LC, LD, limit, w, zs, v, raw)
                    if columns:
                        linear_tangent(LC, LD, v, raw, Qs, Vs, Zs, first, Sraw)
                    torque_of(
                        kind, parent, row, rotation, translation, axis, gravity, path, lengths,
                        compensation, phi_c, rotors_c, gain, qs, dqs, still, v, raw, Sraw, Qs, Vs,
                        R, p, S, V, A, F, own, C, extra, B, T, f, M, tau, K, D, trial, u, Snow,
                    )  # fmt: skip
                    if m:
                        next_state(LA, LB, antiwindup, w, zs, v, raw, kz[i])
                        if columns:
                            state_tangent(
                                LA, LB, antiwindup, v, raw, Qs, Vs, Zs, first, Sraw, KZ[i]
                            )
                    if len(forward):
                        interpolate(forward, k, part, now)
                        for j in range(n):
                            u[j] += now[j]
                    now[:] = u
                    if columns:
                        U[first:] = Snow
                if len(external):
                    interpolate(external, k, part, ext)
                if implicit:
                    if sub == 0 and i == 0:
                        # a sample is recorded where it stands, not at the stage inside
                        inverse_terms(
                            kind, parent, row, rotation, translation, axis, gravity, path,
                            lengths, phi, rotors, qs, dqs, R, p, S, V, A, F, own, C, f, M, tau,
                        )  # fmt: skip
                        resist(gears, friction, width, dqs, tau)
                        failed = acceleration(M, tau, now, ext, ddq)
                        if failed >= 0:
                            return NOT_POSITIVE, k, failed
                        if columns:
                            tangent(
                                kind, parent, row, gravity, path, lengths, slot, gears, friction,
                                width, gear, column, share, dqs, ddq, R, p, S, V, A, F, own, C,
                                extra, B, T, f, motion, e, K, D, W,
                            )  # fmt: skip
                            sensitive_acceleration(M, K, D, W, U, Qs, Vs, X)
                        guess[:] = ddq
                        store(
                            out,
                            record,
                            joints,
                            first,
                            q,
                            dq,
                            ddq,
                            now,
                            noise,
                            k,
                            count,
                            SQ,
                            SV,
                            X,
                            U,
                        )
                    status, failed = implicit_stage(
                        kind, parent, row, rotation, translation, axis, gravity, path, lengths,
                        phi, rotors, gears, friction, width, slot, gear, column, share,
                        h * a[i, i], now, ext, qs, dqs, guess, Qs, Vs, U,
                        R, p, S, V, A, F, own, C, extra, B, T, f, motion, e, M, tau, K, D, W, X,
                        trial, step, kq[i], kv[i],
                    )  # fmt: skip
                    if status != DONE:
                        return status, k, failed
                    guess[:] = kv[i]
                else:
                    inverse_terms(
                        kind, parent, row, rotation, translation, axis, gravity, path, lengths,
                        phi, rotors, qs, dqs, R, p, S, V, A, F, own, C, f, M, tau,
                    )  # fmt: skip
                    resist(gears, friction, width, dqs, tau)
                    failed = acceleration(M, tau, now, ext, kv[i])
                    if failed >= 0:
                        return NOT_POSITIVE, k, failed
                    if columns:
                        tangent(
                            kind, parent, row, gravity, path, lengths, slot, gears, friction,
                            width, gear, column, share, dqs, kv[i], R, p, S, V, A, F, own, C,
                            extra, B, T, f, motion, e, K, D, W,
                        )  # fmt: skip
                        sensitive_acceleration(M, K, D, W, U, Qs, Vs, X)
                    configuration_rate(qs, dqs, kq[i])
                    if i == 0 and sub == 0:
                        store(
                            out, record, joints, first, q, dq, kv[0], now, noise, k, count,
                            SQ, SV, X, U,
                        )  # fmt: skip
                if columns:
                    KQ[i] = Vs
                    KV[i] = X
            # ---- the step
            for s in range(stages):
                factor = h * b[s]
                for r in range(nq):
                    q[r] += factor * kq[s, r]
                for r in range(dof):
                    dq[r] += factor * kv[s, r]
                    for col in range(columns):
                        SQ[r, col] += factor * KQ[s, r, col]
                        SV[r, col] += factor * KV[s, r, col]
                if m and hold == 0:
                    for j in range(n):
                        for r in range(m):
                            z[j, r] += factor * kz[s, j, r]
                            for col in range(columns):
                                SZ[j, r, col] += factor * KZ[s, j, r, col]
            failed = settle(q, dq)
            if failed >= 0:
                return DIVERGED, k, failed
    return DONE, stop, -1
