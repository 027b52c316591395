"""The rollout: robot, drives, friction and controller, one integration step after another.

Sensitivities are propagated by differentiating every operation of the step, so that they
are those of the numbers that come out, not of the differential equation that they
approximate.
"""

from __future__ import annotations

import numpy as np

from dynident.core.jit import entry, inner, spliced
from dynident.plant.state import DIVERGED, DONE, OPEN, solve_response, step_element_states
from dynident.plant.vectors import add_matrix, add_vector, copy_matrix, copy_vector
from dynident.robot.linkage import close_loops, follow_drives
from dynident.simulation.implicit import MOST_STATUS, call_stage
from dynident.simulation.law import (
    decide_torque,
    fill_next_state,
    fill_state_tangent,
    interpolate_signal,
    measure_positions,
)
from dynident.simulation.ports import store_sample

FASTEST = 1e5
"""Speed above which a rollout is given up [rad/s or m/s]."""


@inner
def fill_configuration_rate(q, dq, out):  # type: ignore[no-untyped-def]
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
def find_runaway(dq):  # type: ignore[no-untyped-def]
    """The first velocity that is out of bounds or no number, or -1."""
    for i in range(len(dq)):
        if not abs(dq[i]) < FASTEST:
            return i
    return -1


@inner
def end_step(chain, q, dq):  # type: ignore[no-untyped-def]
    """Close loops and renew the base's unit quaternion: status and first velocity out of bounds.

    Where a chain ends its speeds run away, too: loops come first.
    """
    if not close_loops(chain, q, dq):
        return OPEN, -1
    failed = normalise_quaternion(q, dq)
    return (DONE if failed < 0 else DIVERGED), failed


@inner
def normalise_quaternion(q, dq):  # type: ignore[no-untyped-def]
    """Renew the base's unit quaternion; the first velocity out of bounds, or -1."""
    if len(q) != len(dq):
        norm = np.sqrt(q[3] * q[3] + q[4] * q[4] + q[5] * q[5] + q[6] * q[6])
        for i in range(3, 7):
            q[i] /= norm
    return find_runaway(dq)


@inner
def follow_base(base, k, share, q, dq, rise):  # type: ignore[no-untyped-def]
    """Put a base whose motion is given where it is, the share of the way from sample k on."""
    if len(base):
        following = min(k + 1, len(base) - 1)
        norm = 0.0
        for i in range(19):
            value = base[k, i] + share * (base[following, i] - base[k, i])
            if i < 7:
                q[i] = value
            elif i < 13:
                dq[i - 7] = value
            else:
                rise[i - 13] = value
        for i in range(3, 7):
            norm += q[i] * q[i]
        for i in range(3, 7):
            q[i] /= np.sqrt(norm)


@inner
def choose_failure(status, failed, dq):  # type: ignore[no-untyped-def]
    """Why a stage failed, and at which velocity: one that ran away is what comes first."""
    runaway = find_runaway(dq)
    if runaway >= 0:
        return DIVERGED, runaway
    return status, failed


@inner
def run_sampled_controller(tree, law, inputs, state, s, k, sub, substeps, U):  # type: ignore[no-untyped-def]
    """A sampled controller looks and decides; its torques of `delay` steps ago act: s.now and U."""
    q, dq, z, ring, at = state.q, state.dq, state.z, state.ring, state.at
    SQ, SV, SZ, SU, zs, Zs = state.SQ, state.SV, state.SZ, state.SU, s.zs, s.Zs
    n, m, columns = z.shape[0], z.shape[1], SQ.shape[1]
    first, joints, delay = len(dq) - n, len(q) - n, law.delay
    if (k * substeps + sub) % law.hold == 0:
        measure_positions(q, law.bias, inputs.noise, k, inputs.counts, joints, s.measured)
        part = sub / substeps
        decide_torque(
            tree, law, inputs, s, k, part, part, 1.0 / substeps, dq, z, SQ, SV, SZ, s.u, columns > 0
        )
        if m:
            fill_next_state(law, s, z, zs)
        if columns and m:
            fill_state_tangent(law, s, z, SV, SZ, first, Zs)
            for j in range(n):
                copy_matrix(Zs[j], SZ[j])
        copy_matrix(zs, z)
        if k == 0 and sub == 0:  # nothing was decided before the start
            for i in range(delay + 1):
                copy_vector(s.u, ring[i])
                copy_matrix(s.Snow, SU[i])
    at[0] = (at[0] + 1) % (delay + 1)
    copy_vector(s.u, ring[at[0]])
    oldest = (at[0] + 1) % (delay + 1)
    copy_vector(ring[oldest], s.now)
    if columns:
        copy_matrix(s.Snow, SU[at[0]])
        copy_matrix(SU[oldest], U)


@spliced
def reach_stage(i, a, h, state, s, flowing):  # type: ignore[no-untyped-def]
    """Where stage i stands, by the rates of those before it: s.qs, s.dqs, s.zs, and tangents."""
    columns, n = state.SQ.shape[1], len(state.z)
    copy_vector(state.q, s.qs)
    copy_vector(state.dq, s.dqs)
    if columns:
        copy_matrix(state.SQ, s.Qs)
        copy_matrix(state.SV, s.Vs)
    if flowing:
        copy_matrix(state.z, s.zs)
        for j in range(n):
            copy_matrix(state.SZ[j], s.Zs[j])
    for r in range(i):
        factor = h * a[i, r]
        if factor != 0.0:
            add_stage_rates(factor, s, r, s.qs, s.dqs, s.zs, s.Qs, s.Vs, s.Zs, flowing)


@spliced
def add_stage_rates(factor, s, r, q, dq, z, SQ, SV, SZ, flowing):  # type: ignore[no-untyped-def]
    """Move a state, and its sensitivities, by the rates of stage r."""
    add_vector(factor, s.kq[r], q)
    add_vector(factor, s.kv[r], dq)
    if SQ.shape[1]:
        add_matrix(factor, s.KQ[r], SQ)
        add_matrix(factor, s.KV[r], SV)
    if flowing:
        add_matrix(factor, s.kz[r], z)
        for j in range(len(z)):
            add_matrix(factor, s.KZ[r, j], SZ[j])


@inner
def run_continuous_controller(  # type: ignore[no-untyped-def]
    tree, law, inputs, s, i, k, part, begin, span, flowing, U, sensitive
):
    """A continuous controller's torques in stage i, into s.now and U, and its states' rates."""
    noise, dqs, zs, Qs, Vs, Zs = inputs.noise, s.dqs, s.zs, s.Qs, s.Vs, s.Zs
    n = len(s.Snow)
    first, joints = len(dqs) - n, len(s.qs) - n
    for j in range(n):
        s.offset[j] = law.bias[j]
        if len(noise):
            s.offset[j] += noise[k, j]
        s.measured[j] = s.qs[joints + law.reads[j]] + s.offset[j]
    decide_torque(tree, law, inputs, s, k, part, begin, span, dqs, zs, Qs, Vs, Zs, s.now, sensitive)
    if flowing:
        fill_next_state(law, s, zs, s.kz[i])
        if sensitive:
            fill_state_tangent(law, s, zs, Vs, Zs, first, s.KZ[i])
    if sensitive:
        copy_matrix(s.Snow, U)


@inner
def step_held_states(tree, law, inputs, state, s, a, k, begin, span, h, U):  # type: ignore[no-untyped-def]
    """Step a continuous controller's states over a time h at the motion that is now.

    Implicit stages hold them, in the middle of their step as those of friction: s.zs and s.Zs.
    """
    reach_stage(0, a, 0.0, state, s, True)
    sensitive = U.shape[1] > 0
    run_continuous_controller(tree, law, inputs, s, 0, k, begin, begin, span, True, U, sensitive)
    add_matrix(h, s.kz[0], state.z)
    copy_matrix(state.z, s.zs)
    for j in range(len(state.z)):
        add_matrix(h, s.KZ[0, j], state.SZ[j])
        copy_matrix(state.SZ[j], s.Zs[j])


@entry
def advance_rollout(  # type: ignore[no-untyped-def]
    tree, plant, law, a, b, c, substeps, h, solver, inputs, state, s, start, stop, out
):
    """Roll on from sample `start` to `stop`, recording each sample on the way.

    `solver` is the address of an implicit integrator's stages. Returns status, sample and velocity:
    DONE, or why not, when, and at which velocity.
    """
    external, base = inputs.external, inputs.base
    q, dq, z, memory, SQ, SV, SZ, SM = (
        state.q, state.dq, state.z, state.memory, state.SQ, state.SV, state.SZ, state.SM
    )  # fmt: skip
    qs, dqs, Qs, Vs, kq, kv = s.qs, s.dqs, s.Qs, s.Vs, s.kq, s.kv
    stages, nq, dof, n, columns = len(b), len(q), len(dq), z.shape[0], SQ.shape[1]
    first, joints = dof - n, nq - n
    implicit = a[0, 0] != 0.0
    stepping = law.hold == 0 and z.shape[1] > 0
    flowing = stepping and not implicit  # continuous controllers' states go with the stages
    # implicit stages have sensitivities of their own: others are of samples, where they are wanted
    sensitive = columns > 0 and (not implicit or len(out.by_ddq) > 0)
    steered = columns > 0 and (not implicit or len(out.by_tau) > 0 or sensitive)
    U = s.U[first:]
    for k in range(start, stop):
        for sub in range(substeps):
            begin, span = sub / substeps, 1.0 / substeps
            if len(base):
                follow_base(base, k, begin, q, dq, s.rise)
            if law.hold > 0:
                run_sampled_controller(tree, law, inputs, state, s, k, sub, substeps, U)
            # the friction's states are staggered against the motion: a step holds those of its
            # middle, so that the first one advances them by half a step
            part = 0.5 if k == 0 and sub == 0 else 1.0
            if len(plant.elements.gear):
                step_element_states(
                    plant.gears, plant.width, plant.rough, plant.elements, s, part * h, q, dq,
                    memory, SQ, SV, SM,
                )  # fmt: skip
            if stepping and implicit:
                step_held_states(tree, law, inputs, state, s, a, k, begin, span, part * h, U)
            for i in range(stages):
                part = (sub + c[i]) / substeps
                reach_stage(i, a, h, state, s, flowing)
                if len(base):
                    follow_base(base, k, part, qs, dqs, s.rise)
                follow_drives(s.chain, qs, dqs)
                if law.hold == 0:
                    run_continuous_controller(
                        tree, law, inputs, s, i, k, part, begin, span, flowing, U, steered
                    )
                sample = i == 0 and sub == 0
                if not implicit or sample:
                    # an implicit integrator's sample is where it stands, not its stage
                    if len(external):
                        interpolate_signal(external, k, begin if sample else part, s.external)
                    status, failed = solve_response(
                        tree, plant, s, qs, dqs, memory, Qs, Vs, SM, kv[i], sensitive
                    )
                    if status != DONE:
                        status, failed = choose_failure(status, failed, dqs)
                        return status, k, failed
                    fill_configuration_rate(qs, dqs, kq[i])
                if sample:
                    store_sample(
                        out, k - start, joints, first, q, dq, kv[0], s.now, law.bias, inputs.noise,
                        k, inputs.counts, SQ, SV, s.X, s.U,
                    )  # fmt: skip
                if implicit:
                    if len(external):
                        interpolate_signal(external, k, part, s.external)
                    # Newton's method begins at the acceleration of the stage before: that of the
                    # first one is the last of the step before, kv[-1]
                    copy_vector(kv[i - 1], s.guess)
                    ended = call_stage(solver, tree, plant, law, state, s, h * a[i, i], i)
                    if ended % MOST_STATUS != DONE:
                        status, failed = ended % MOST_STATUS, ended // MOST_STATUS
                        status, failed = choose_failure(status, failed, dqs)
                        return status, k, failed
                if columns:
                    copy_matrix(Vs, s.KQ[i])
                    copy_matrix(s.X, s.KV[i])
            for r in range(stages):
                add_stage_rates(h * b[r], s, r, q, dq, z, SQ, SV, SZ, flowing)
            status, failed = end_step(s.chain, q, dq)
            if status != DONE:
                return status, k, failed
    return DONE, stop, -1
