"""A stage of an implicit integrator: Newton's method on the acceleration."""

from __future__ import annotations

import numpy as np

from dynident.core.jit import inner, spliced
from dynident.plant.state import (
    DONE,
    NOT_POSITIVE,
    STUCK,
    add_all_friction,
    add_load_to_mass,
    differentiate_plant,
    fill_drive_loads,
    fill_mass_and_bias,
    fill_residual,
    fill_sensitivity_rhs,
    judge_locking,
    solve_dense,
)
from dynident.plant.vectors import copy_vector
from dynident.simulation.law import fill_linear_output, fill_output_tangent, fill_plain_torque

NEWTON = 1000
"""Trials: some three where nothing sticks or slips, some twenty for each joint that does."""
CLOSE = 1e-13
PATIENCE = 8
"""Trials after which rounding may be what is left."""
SMALLEST_STEP = 1e-9
BEFORE, BEYOND = 0.5, 0.1
"""Shares of the residual along a step that may be left at its end, short of it and beyond: of the
latter more could be an ascent."""


@inner
def evaluate_law(law, s, q, dq):  # type: ignore[no-untyped-def]
    """Torques of a continuous law whose states are held, at a motion and the stage's targets."""
    for j in range(len(s.now)):
        s.w[j, 3], s.w[j, 4] = q[law.reads[j]] + s.offset[j], dq[law.reads[j]]
    fill_linear_output(law, s.w, s.zs, s)
    for j in range(len(s.now)):
        s.now[j] = law.gain[j] * s.v[j] + s.push[j]


@inner
def subtract_law_slope(law, s):  # type: ignore[no-untyped-def]
    """Take the slopes of such a law from those of the plant's torque."""
    for j in range(len(s.now)):
        if s.v[j] == s.raw[j]:
            s.K[j, law.reads[j]] -= law.gain[j] * s.lean[j]
            s.D[j, law.reads[j]] -= law.gain[j] * law.D[j, 4]


@inner
def fill_law_tangent(law, s, SQ, SV):  # type: ignore[no-untyped-def]
    """What parameters and held states do to such a law's torques at a given motion, into s.U."""
    fill_output_tangent(law, s, s.zs, SQ, SV, s.Zs, 0, False)
    fill_plain_torque(law, s.v, s.raw, law.parameter, s.Sraw, s.u, s.U)


@spliced
def add_stage_stiffness(plant, s, g):  # type: ignore[no-untyped-def]
    """``M + g D + g^2 K``: what an acceleration takes that moves the stage itself, into s.M."""
    M, K, D = s.M, s.K, s.D
    add_load_to_mass(plant.bearing, plant.rotors, s.L, M, s.row)
    for i in range(len(M)):
        for j in range(len(M)):
            M[i, j] += g * (D[i, j] + g * K[i, j])


@spliced
def place_stage(s, g, trial, q, dq):  # type: ignore[no-untyped-def]
    """Where an acceleration takes the stage, from where it begins: s.q0 and s.v0."""
    for i in range(len(dq)):
        dq[i] = s.v0[i] + g * trial[i]
        q[i] = s.q0[i] + g * dq[i]


@spliced
def cut_step(along, begun, worse, falling, part, short, long):  # type: ignore[no-untyped-def]
    """Whether a part of a step is not to be taken, and which other one, between which two.

    The residual is the slope of a function that is convex where friction only grows with the speed:
    along a step it falls from `begun`, and far below zero a bend was jumped over. Where friction is
    `falling` that may end nowhere; then the residual may not be worse.
    """
    if falling:
        over, early = worse, False
    else:
        over = begun > 0.0 and along < -BEYOND * begun
        early = begun > 0.0 and along > BEFORE * begun and long < np.inf
    if not (over or early):
        return False, part, short, long
    if over:
        long = part
    else:
        short = part
    return long - short > SMALLEST_STEP, 0.5 * (short + long), short, long


@inner
def solve_implicit_stage(tree, plant, law, s, g, q, dq, memory, SQ, SV, SM, kq, kv):  # type: ignore[no-untyped-def]
    """Solve ``ID(q + g dq', dq', ddq) = torques``, ``dq' = dq + g ddq``, for ddq (Newton).

    On a fixed base; states of friction are held, s.guess is where the iteration starts. The
    torques are held, or those of a continuous law whose states are held, too. q, dq become those of
    the stage, kq and kv its rates; SV and s.X the sensitivities of dq' and of ddq.
    """
    continuous = law.hold == 0
    dof = len(dq)
    trial, step, way, M = s.trial, s.step, s.way, s.M
    # along a step: its part that is tried, between one too short and one too long
    part, short, long, begun, previous = 1.0, 0.0, np.inf, 0.0, np.inf
    copy_vector(q, s.q0)
    copy_vector(dq, s.v0)
    copy_vector(s.guess, kv)
    copy_vector(s.guess, trial)
    for iteration in range(NEWTON):
        # the second half of the trials takes no slope for that of a convex function: see `cut_step`
        falling = iteration >= NEWTON // 2
        if iteration == NEWTON // 2:
            begun, previous = 0.0, np.inf
            copy_vector(s.guess, trial)
        place_stage(s, g, trial, q, dq)
        fill_mass_and_bias(tree, plant.phi, plant.rotors, s, q, dq)
        fill_drive_loads(plant.bearing, plant.rotors, s, trial)
        add_all_friction(plant, s, q, dq, memory)
        if continuous:
            evaluate_law(law, s, q, dq)
        size, along = fill_residual(s, trial, step), 0.0
        for i in range(dof):
            along += step[i, 0] * way[i]
        cut, part, short, long = cut_step(along, begun, size > previous, falling, part, short, long)
        if cut:
            for i in range(dof):
                trial[i] = kv[i] + part * way[i]
            continue
        previous = size
        copy_vector(trial, kv)
        differentiate_plant(tree, plant, s, trial)
        if continuous:
            subtract_law_slope(law, s)
        add_stage_stiffness(plant, s, g)
        for i in range(dof):
            way[i] = step[i, 0]
        if not solve_dense(M, step):
            return NOT_POSITIVE, 0
        part, short, long, begun = 1.0, 0.0, np.inf, 0.0
        change = 0.0
        for i in range(dof):
            begun += way[i] * step[i, 0]
            way[i] = step[i, 0]
            trial[i] += way[i]
            change = max(change, g * abs(way[i]) / (1.0 + abs(dq[i])))
        # what does not come closer with patience is as close as rounding of the torques lets it
        if change < CLOSE or (iteration > PATIENCE and change < 1e3 * CLOSE):
            place_stage(s, g, trial, q, dq)
            copy_vector(trial, kv)
            copy_vector(dq, kq)
            status, failed = judge_locking(plant.bearing, plant, s, q, dq, memory)
            if status != DONE:
                return status, failed
            if s.X.shape[1]:
                if continuous:
                    fill_law_tangent(law, s, SQ, SV)
                if not differentiate_stage(tree, plant, s, g, q, dq, SQ, SV, SM):
                    return NOT_POSITIVE, 0
            return DONE, -1
    status, failed = judge_locking(plant.bearing, plant, s, q, dq, memory)
    if status != DONE:
        return status, failed
    worst = 0
    for i in range(dof):
        if abs(step[i, 0]) > abs(step[worst, 0]):
            worst = i
    return STUCK, worst


@inner
def differentiate_stage(tree, plant, s, g, q, dq, SQ, SV, SM):  # type: ignore[no-untyped-def]
    """``(M + g D + g^2 K) d ddq = U - W - K (dq0 + g dv0) - D dv0`` at the solution."""
    dof, columns = s.X.shape
    for i in range(dof):
        for c in range(columns):
            SQ[i, c] += g * SV[i, c]
    fill_sensitivity_rhs(plant, s, SQ, SV, SM)
    fill_mass_and_bias(tree, plant.phi, plant.rotors, s, q, dq)
    add_stage_stiffness(plant, s, g)
    if not solve_dense(s.M, s.X):
        return False
    for i in range(dof):
        for c in range(columns):
            SV[i, c] += g * s.X[i, c]
    return True
