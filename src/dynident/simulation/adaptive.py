"""The rollout in steps that are as long as their error allows: an embedded pair of orders.

Steps end at each sample and wherever a controller may look, since what happens there has no
derivatives; in between, a step is taken again, shorter, where the two orders differ by more than
the tolerance. How long steps are depends on the motion, so nothing here is differentiated.
"""

from __future__ import annotations

import numpy as np

from dynident.core.jit import entry, inner
from dynident.plant.state import DONE, STUCK, solve_response
from dynident.robot.linkage import follow_drives
from dynident.simulation.kernel import (
    add_stage_rates,
    choose_failure,
    end_step,
    fill_configuration_rate,
    follow_base,
    reach_stage,
    run_continuous_controller,
    run_sampled_controller,
)
from dynident.simulation.law import interpolate_signal
from dynident.simulation.loop import MOST_STEPS
from dynident.simulation.ports import store_sample

SAFETY = 0.9
LEAST, MOST = 0.2, 5.0
"""By how much a step may shrink and grow."""


@inner
def measure_step_error(error, h, tolerance, s, q, dq, z, flowing):  # type: ignore[no-untyped-def]
    """How far the two orders are apart, over ``tolerance (1 + |value|)``: root mean square."""
    total, count = 0.0, len(q) + len(dq)
    for i in range(len(q)):
        off = 0.0
        for r in range(len(error)):
            off += error[r] * s.kq[r, i]
        total += (h * off / (tolerance * (1.0 + abs(q[i])))) ** 2
    for i in range(len(dq)):
        off = 0.0
        for r in range(len(error)):
            off += error[r] * s.kv[r, i]
        total += (h * off / (tolerance * (1.0 + abs(dq[i])))) ** 2
    if flowing:
        count += z.shape[0] * z.shape[1]
        for j in range(z.shape[0]):
            for i in range(z.shape[1]):
                off = 0.0
                for r in range(len(error)):
                    off += error[r] * s.kz[r, j, i]
                total += (h * off / (tolerance * (1.0 + abs(z[j, i])))) ** 2
    return np.sqrt(total / count)


@entry
def advance_paced(tree, plant, law, table, pace, substeps, h, inputs, state, s, start, stop, out):  # type: ignore[no-untyped-def]
    """`advance_rollout` with steps of at most h, without friction that remembers and sensitivities.

    Parameters
    ----------
    table : (a, b, c, error)
        Of an `Integrator`.
    pace : ndarray, shape (3,)
        The step to try next, over h; the tolerance; the order that the steps go by.
    """
    a, b, c, error = table
    external, base = inputs.external, inputs.base
    q, dq, z, memory, SQ, SV, SZ, SM = (
        state.q, state.dq, state.z, state.memory, state.SQ, state.SV, state.SZ, state.SM
    )  # fmt: skip
    qs, dqs, kq, kv = s.qs, s.dqs, s.kq, s.kv
    stages, nq, dof, n = len(b), len(q), len(dq), z.shape[0]
    first, joints = dof - n, nq - n
    flowing = law.hold == 0 and z.shape[1] > 0
    U = s.U[first:]
    for k in range(start, stop):
        for sub in range(substeps):
            if len(base):
                follow_base(base, k, sub / substeps, q, dq, s.rise)
            if law.hold > 0:
                run_sampled_controller(tree, law, inputs, state, s, k, sub, substeps, U)
            done, tries = 0.0, 0
            while done < 1.0:
                share = min(pace[0], 1.0 - done)
                begin, span, size = (sub + done) / substeps, share / substeps, 0.0
                for i in range(stages):
                    part = (sub + done + c[i] * share) / substeps
                    reach_stage(i, a, share * h, state, s, flowing)
                    if len(base):
                        follow_base(base, k, part, qs, dqs, s.rise)
                    follow_drives(s.chain, qs, dqs)
                    if law.hold == 0:
                        run_continuous_controller(
                            tree, law, inputs, s, i, k, part, begin, span, flowing, U, False
                        )
                    if len(external):
                        interpolate_signal(external, k, part, s.external)
                    status, failed = solve_response(
                        tree, plant, s, qs, dqs, memory, s.Qs, s.Vs, SM, kv[i], False
                    )
                    if status != DONE and i == 0:
                        status, failed = choose_failure(status, failed, dqs)
                        return status, k, failed
                    if status != DONE:
                        size = np.inf
                        break
                    fill_configuration_rate(qs, dqs, kq[i])
                    if i == 0 and sub == 0 and done == 0.0:
                        store_sample(
                            out, k - start, joints, first, q, dq, kv[0], s.now, law.bias,
                            inputs.noise, k, inputs.counts, SQ, SV, s.X, s.U,
                        )  # fmt: skip
                if size == 0.0:
                    size = measure_step_error(error, share * h, pace[1], s, q, dq, z, flowing)
                if size <= 1.0:
                    for r in range(stages):
                        add_stage_rates(share * h * b[r], s, r, q, dq, z, SQ, SV, SZ, flowing)
                    status, failed = end_step(s.chain, q, dq)
                    if status != DONE:
                        return status, k, failed
                    done = 1.0 if share >= 1.0 - done else done + share
                    # the lower order errs with h^order (Hairer, Norsett and Wanner 1993, section
                    # II.4)
                    growth = MOST if size == 0.0 else SAFETY * size ** (-1.0 / pace[2])
                    if share == pace[0]:  # what a sample cut short tells nothing
                        pace[0] = min(1.0, share * min(MOST, max(LEAST, growth)))
                else:
                    shrink = SAFETY * size ** (-1.0 / pace[2]) if size < np.inf else 0.0
                    pace[0] = share * max(LEAST, shrink)
                tries += 1
                if tries > MOST_STEPS:
                    return STUCK, k, 0
    return DONE, stop, -1
