"""The rollout: robot, drives, friction and controller, one integration step after another.

Sensitivities are propagated by differentiating every operation of the step, so that they
are those of the numbers that come out, not of the differential equation that they
approximate.
"""

from __future__ import annotations

import numpy as np

from dynident.core.jit import inner
from dynident.simulation.implicit import implicit_stage
from dynident.simulation.law import decide, interpolate, measure, next_state, state_tangent
from dynident.simulation.ports import store
from dynident.simulation.state import DIVERGED, DONE, remember, respond
from dynident.simulation.vectors import add_matrix, add_vector, copy_matrix, copy_vector

FASTEST = 1e5
"""Speed above which a rollout is given up [rad/s or m/s]."""


@inner
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


@inner
def fastest(dq):  # type: ignore[no-untyped-def]
    """The first velocity that is out of bounds or no number, or -1."""
    for i in range(len(dq)):
        if not abs(dq[i]) < FASTEST:
            return i
    return -1


@inner
def settle(q, dq):  # type: ignore[no-untyped-def]
    """Renew the base's unit quaternion; the first velocity out of bounds, or -1."""
    if len(q) != len(dq):
        norm = np.sqrt(q[3] * q[3] + q[4] * q[4] + q[5] * q[5] + q[6] * q[6])
        for i in range(3, 7):
            q[i] /= norm
    return fastest(dq)


@inner
def advance(tree, plant, law, a, b, c, substeps, h, inputs, state, s, start, stop, out):  # type: ignore[no-untyped-def]
    """Roll on from sample `start` to `stop`, recording each sample on the way.

    Returns
    -------
    (status, sample, velocity)
        DONE, or why not, when, and at which velocity.
    """
    noise, counts, external = inputs.noise, inputs.counts, inputs.external
    q, dq, z, ring, at, memory = state.q, state.dq, state.z, state.ring, state.at, state.memory
    SQ, SV, SZ, SU, SM = state.SQ, state.SV, state.SZ, state.SU, state.SM
    qs, dqs, zs, Qs, Vs, Zs, now, U = s.qs, s.dqs, s.zs, s.Qs, s.Vs, s.Zs, s.now, s.U
    kq, kv, kz, KQ, KV, KZ = s.kq, s.kv, s.kz, s.KQ, s.KV, s.KZ
    stages, nq, dof = len(b), len(q), len(dq)
    n, m, columns = z.shape[0], z.shape[1], SQ.shape[1]
    first, joints = dof - n, nq - n
    hold, delay = law.hold, law.delay
    implicit = a[0, 0] != 0.0
    flowing = hold == 0 and m > 0  # continuous controllers' states go with the stages
    for k in range(start, stop):
        record = k - start
        for sub in range(substeps):
            # ---- a sampled controller looks and decides
            if hold > 0:
                if (k * substeps + sub) % hold == 0:
                    measure(q, law.bias, noise, k, counts, joints, s.measured)
                    part = sub / substeps
                    decide(
                        tree, law, inputs, s, k, part, part, 1.0 / substeps, dq, z, SQ, SV, SZ, s.u
                    )
                    next_state(law.A, law.B, law.antiwindup, s.w, z, s.v, s.raw, zs)
                    if columns and m:
                        state_tangent(
                            law.A, law.B, law.antiwindup, s.v, s.raw, SQ, SV, SZ, first, s.Sraw, Zs
                        )
                        for j in range(n):
                            copy_matrix(Zs[j], SZ[j])
                    copy_matrix(zs, z)
                    if k == 0 and sub == 0:  # nothing was decided before the start
                        for i in range(delay + 1):
                            copy_vector(s.u, ring[i])
                            copy_matrix(s.Snow, SU[i])
                at[0] = (at[0] + 1) % (delay + 1)
                copy_vector(s.u, ring[at[0]])
                # what was decided `delay` steps ago acts now
                oldest = (at[0] + 1) % (delay + 1)
                copy_vector(ring[oldest], now)
                if columns:
                    copy_matrix(s.Snow, SU[at[0]])
                    copy_matrix(SU[oldest], U[first:])
            # ---- the friction's states, held over the step where they are in its middle
            part = 0.5 if k == 0 and sub == 0 else 1.0
            remember(
                plant.gears, plant.width, plant.rough, plant.elements, s, part * h, q, dq, memory,
                SQ, SV, SM,
            )  # fmt: skip
            # ---- the stages of the integrator
            for i in range(stages):
                part = (sub + c[i]) / substeps
                copy_vector(q, qs)
                copy_vector(dq, dqs)
                if columns:
                    copy_matrix(SQ, Qs)
                    copy_matrix(SV, Vs)
                if flowing:
                    copy_matrix(z, zs)
                    for j in range(n):
                        copy_matrix(SZ[j], Zs[j])
                for r in range(i):
                    factor = h * a[i, r]
                    if factor == 0.0:
                        continue
                    add_vector(factor, kq[r], qs)
                    add_vector(factor, kv[r], dqs)
                    if columns:
                        add_matrix(factor, KQ[r], Qs)
                        add_matrix(factor, KV[r], Vs)
                    if flowing:
                        add_matrix(factor, kz[r], zs)
                        for j in range(n):
                            add_matrix(factor, KZ[r, j], Zs[j])
                if hold == 0:
                    for j in range(n):
                        s.offset[j] = law.bias[j]
                        if len(noise):
                            s.offset[j] += noise[k, j]
                        s.measured[j] = qs[joints + j] + s.offset[j]
                    decide(
                        tree, law, inputs, s, k, part, sub / substeps, 1.0 / substeps, dqs, zs,
                        Qs, Vs, Zs, now,
                    )  # fmt: skip
                    if flowing:
                        next_state(law.A, law.B, law.antiwindup, s.w, zs, s.v, s.raw, kz[i])
                        if columns:
                            state_tangent(
                                law.A, law.B, law.antiwindup, s.v, s.raw, Qs, Vs, Zs, first,
                                s.Sraw, KZ[i],
                            )  # fmt: skip
                    if columns:
                        copy_matrix(s.Snow, U[first:])
                sample = i == 0 and sub == 0
                if not implicit or sample:
                    # an implicit integrator's sample is where it stands, not its stage
                    if len(external):
                        interpolate(external, k, sub / substeps if sample else part, s.external)
                    status, failed = respond(tree, plant, s, qs, dqs, memory, Qs, Vs, SM, kv[i])
                    if status != DONE:
                        runaway = fastest(dqs)
                        if runaway >= 0:
                            return DIVERGED, k, runaway
                        return status, k, failed
                    configuration_rate(qs, dqs, kq[i])
                if sample:
                    store(
                        out, record, joints, first, q, dq, kv[0], now, law.bias, noise, k, counts,
                        SQ, SV, s.X, U,
                    )  # fmt: skip
                if implicit:
                    if len(external):
                        interpolate(external, k, part, s.external)
                    copy_vector(kv[max(0, i - 1)], s.guess)
                    status, failed = implicit_stage(
                        tree, plant, law, s, h * a[i, i], qs, dqs, memory, Qs, Vs, SM, kq[i], kv[i]
                    )
                    if status != DONE:
                        runaway = fastest(dqs)
                        if runaway >= 0:
                            return DIVERGED, k, runaway
                        return status, k, failed
                if columns:
                    copy_matrix(Vs, KQ[i])
                    copy_matrix(s.X, KV[i])
            # ---- the step
            for r in range(stages):
                factor = h * b[r]
                add_vector(factor, kq[r], q)
                add_vector(factor, kv[r], dq)
                if columns:
                    add_matrix(factor, KQ[r], SQ)
                    add_matrix(factor, KV[r], SV)
                if flowing:
                    add_matrix(factor, kz[r], z)
                    for j in range(n):
                        add_matrix(factor, KZ[r, j], SZ[j])
            failed = settle(q, dq)
            if failed >= 0:
                return DIVERGED, k, failed
    return DONE, stop, -1
