"""A stage of an implicit integrator: Newton's method on the acceleration."""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from dynident.core.address import generate_call
from dynident.core.bundle import Bundle
from dynident.core.compiled import compile_callback
from dynident.core.jit import NO_COUNTS, inner, spliced
from dynident.plant.state import (
    DONE,
    NOT_POSITIVE,
    STUCK,
    add_all_friction,
    add_element_slopes,
    add_friction_slope,
    add_load_to_mass,
    differentiate_plant,
    fill_drive_loads,
    fill_mass_and_bias,
    fill_residual,
    fill_sensitivity_rhs,
    judge_locking,
    linearise_bodies,
    solve_dense,
)
from dynident.plant.vectors import copy_matrix, copy_vector
from dynident.simulation.law import fill_linear_output, fill_output_tangent, fill_plain_tangent

NEWTON = 1000
"""Trials: some three where nothing sticks or slips, some twenty for each joint that does."""
ROUNDS = 30
"""Of the bodies' torque: some three, for it is all but a line along a step."""
CLOSE = 1e-13
FIRST_CLOSE = 1e-8
"""Changes of a stage's speeds below which it is solved: at last, and in the first round."""
PATIENCE = 8
"""Trials, or rounds, after which rounding may be what is left."""
SMALLEST_STEP = 1e-9
BEFORE, BEYOND = 0.5, 0.1
"""Shares of the residual along a step that may be left at its end, short of it and beyond: of the
latter more could be an ascent."""
MOST_STATUS = 100
"""Statuses are less, in the one number that a stage ends with."""


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
    fill_plain_tangent(law, s.v, s.raw, law.parameter, s.Sraw, s.U)


@spliced
def add_stage_stiffness(plant, s, g):  # type: ignore[no-untyped-def]
    """``M + g D + g^2 K``: what an acceleration takes that moves the stage itself, into s.M."""
    M, K, D = s.M, s.K, s.D
    add_load_to_mass(plant.bearing, plant.rotors, s.L, M, s.row)
    for i in range(len(M)):
        for j in range(len(M)):
            M[i, j] += g * (D[i, j] + g * K[i, j])


@spliced
def linearise_stage(tree, plant, s, g, ddq, fresh):  # type: ignore[no-untyped-def]
    """The bodies' torque about an acceleration that moves the stage, ``s.J ddq + s.bias``.

    After `fill_mass_and_bias`. The slopes s.J are those of the first round unless `fresh`: along a
    step they hardly change, and the torque here is exact.
    """
    M, J, K, D = s.M, s.J, s.K, s.D
    if fresh:
        linearise_bodies(tree, s, ddq)
        for i in range(len(M)):
            for j in range(len(M)):
                J[i, j] = M[i, j] + g * (D[i, j] + g * K[i, j])
    for i in range(len(M)):
        s.bias[i] = s.tau[i]
        for j in range(len(M)):
            s.bias[i] += (M[i, j] - J[i, j]) * ddq[j]


@spliced
def fill_drive_slopes(plant, law, s, continuous):  # type: ignore[no-untyped-def]
    """Slopes of all but the bodies, after `add_all_friction` and `evaluate_law`: s.K and s.D."""
    for i in range(len(s.K)):
        for j in range(len(s.K)):
            s.K[i, j] = s.D[i, j] = 0.0
    add_friction_slope(plant.gears, plant.friction, plant.width, s.sign, s.D)
    if len(plant.elements.gear):
        add_element_slopes(plant.gears, plant.elements, s.table, s.K, s.D)
    if continuous:
        subtract_law_slope(law, s)


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
def estimate_left(change, last):  # type: ignore[no-untyped-def]
    """How far a step leaves the solution, of steps that shrink as it did against the last one."""
    if not change < last:
        return change
    return change * change / (last - change) if last < np.inf else change


@inner
def settle_drives(plant, law, s, g, q, dq, memory, kv, close):  # type: ignore[no-untyped-def]
    """Solve a stage for the bodies' torque ``s.J ddq + s.bias``, from kv on: status and velocity.

    Friction bends within a fraction of a step where the bodies' torque is all but a line: its
    trials are many, and cheap. kv becomes the acceleration, q and dq those of the stage; `close` is
    how far they may be off.
    """
    continuous, dof = law.hold == 0, len(dq)
    trial, step, way, M = s.trial, s.step, s.way, s.M
    # along a step: its part that is tried, between one too short and one too long
    part, short, long, begun, previous, last = 1.0, 0.0, np.inf, 0.0, np.inf, np.inf
    copy_vector(kv, s.guess)
    copy_vector(kv, trial)
    for iteration in range(NEWTON):
        # the second half of the trials takes no slope for that of a convex function: see `cut_step`
        falling = iteration >= NEWTON // 2
        if iteration == NEWTON // 2:
            begun, previous = 0.0, np.inf
            copy_vector(s.guess, trial)
        place_stage(s, g, trial, q, dq)
        copy_matrix(s.J, M)
        copy_vector(s.bias, s.tau)
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
        fill_drive_slopes(plant, law, s, continuous)
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
        left, last = estimate_left(change, last), change
        if left < close or (iteration > PATIENCE and change < 1e3 * CLOSE):
            copy_vector(trial, kv)
            place_stage(s, g, kv, q, dq)
            return DONE, -1
    status, failed = judge_locking(plant.bearing, plant, s, q, dq, memory)
    if status != DONE:
        return status, failed
    return STUCK, find_largest(step)


@inner
def find_largest(step):  # type: ignore[no-untyped-def]
    """The row of a column that is farthest from zero."""
    worst = 0
    for i in range(len(step)):
        if abs(step[i, 0]) > abs(step[worst, 0]):
            worst = i
    return worst


@inner
def solve_implicit_stage(tree, plant, law, s, g, q, dq, memory, SQ, SV, SM, kq, kv):  # type: ignore[no-untyped-def]
    """Solve ``ID(q + g dq', dq', ddq) = torques``, ``dq' = dq + g ddq``, for ddq (Newton).

    On a fixed base; states of friction are held, s.guess is where the iteration starts. The
    torques are held, or those of a continuous law whose states are held, too. q, dq become those of
    the stage, kq and kv its rates; SV and s.X the sensitivities of dq' and of ddq.

    The bodies' torque is evaluated once a round, and differentiated in the first one alone: a
    simplified Newton method, which ends by the rate at which its steps shrink (Hairer and Wanner,
    IV.8).
    """
    copy_vector(q, s.q0)
    copy_vector(dq, s.v0)
    copy_vector(s.guess, kv)
    last = np.inf
    for r in range(ROUNDS):
        place_stage(s, g, kv, q, dq)
        fill_mass_and_bias(tree, plant.phi, plant.rotors, s, q, dq)
        # slopes of before may lead nowhere in a long step
        linearise_stage(tree, plant, s, g, kv, r == 0 or r > PATIENCE)
        copy_vector(kv, kq)
        status, failed = settle_drives(
            plant, law, s, g, q, dq, memory, kv, CLOSE if r else FIRST_CLOSE
        )
        if status != DONE:
            return status, failed
        change = 0.0
        for i in range(len(kv)):
            change = max(change, g * abs(kv[i] - kq[i]) / (1.0 + abs(dq[i])))
        left, last = estimate_left(change, last), change
        if left < CLOSE or (r > PATIENCE and change < 1e3 * CLOSE):
            copy_vector(dq, kq)
            status, failed = judge_locking(plant.bearing, plant, s, q, dq, memory)
            if status == DONE and s.X.shape[1]:
                return differentiate_stage(tree, plant, law, s, g, q, dq, memory, kv, SQ, SV, SM)
            return status, failed
    return STUCK, find_largest(s.step)


@inner
def differentiate_stage(tree, plant, law, s, g, q, dq, memory, ddq, SQ, SV, SM):  # type: ignore[no-untyped-def]
    """``(M + g D + g^2 K) d ddq = U - W - K (dq0 + g dv0) - D dv0`` at the solution."""
    dof, columns = s.X.shape
    if law.hold == 0:
        fill_law_tangent(law, s, SQ, SV)
    for i in range(dof):
        for c in range(columns):
            SQ[i, c] += g * SV[i, c]
    fill_mass_and_bias(tree, plant.phi, plant.rotors, s, q, dq)
    fill_drive_loads(plant.bearing, plant.rotors, s, ddq)
    add_all_friction(plant, s, q, dq, memory)
    differentiate_plant(tree, plant, s, ddq)
    if law.hold == 0:
        subtract_law_slope(law, s)
    fill_sensitivity_rhs(plant, s, SQ, SV, SM)
    add_stage_stiffness(plant, s, g)
    if not solve_dense(s.M, s.X):
        return NOT_POSITIVE, 0
    for i in range(dof):
        for c in range(columns):
            SV[i, c] += g * s.X[i, c]
    return DONE, -1


def end_stage(tree, plant, law, state, s, g, i):  # type: ignore[no-untyped-def]
    """Solve stage i, which begins at s.qs and s.dqs: status, and a hundred times the velocity."""
    status, failed = solve_implicit_stage(
        tree, plant, law, s, g, s.qs, s.dqs, state.memory, s.Qs, s.Vs, state.SM, s.kq[i], s.kv[i]
    )
    return status + MOST_STATUS * failed


def _call_stage(typing, where, tree, plant, law, state, s, g, i):  # type: ignore[no-untyped-def]
    last = types.float64, types.int64
    return types.int64(types.int64, tree, plant, law, state, s, *last), generate_call


call_stage: Any = intrinsic(_call_stage)
"""``call_stage(address, ...)``: `end_stage` at an address. An explicit rollout is compiled without
it."""


@cache
def compile_stage(kinds: tuple[Any, ...]) -> Any:
    """`end_stage` for bundles of some types, kept as long as the process lives."""
    return compile_callback(end_stage, types.int64(*kinds, types.float64, types.int64), **NO_COUNTS)


def find_stage_address(*bundles: Bundle) -> int:
    """Where `end_stage` is, of tree, plant, law, state and scratch."""
    return int(compile_stage(tuple(map(numba.typeof, bundles))).address)
