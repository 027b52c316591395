"""One sample at a time: rows, their absorption and the test for a change, in one compiled function.

What a tracker is told once (`TrackerModel`) and what it remembers (`Memory`) go to kernels as
bundles: to hand over fifty arrays would take longer than the update.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.jit import entry, inner, jit
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.equations import SINGULAR
from dynident.dynamics.parameters import DriveColumn
from dynident.dynamics.regressor import fill_regressor_samples
from dynident.dynamics.tree import Tree
from dynident.friction.kernel import BY_STATE, VALUE, DriveInstant, consult_law, find_law_address
from dynident.online.recursion import AgeingRule, Recursion, absorb_row, follow_rows, solve_for_beta

LOAD = 10
"""Parameters of a load."""
ROTOR, WEIGHTED, LAW = 0, 1, 2
"""Kinds of a drive's columns."""
TURNING = 0.05
"""Distance of a filtered sign from 1 from which rows are in no test until the filter has settled:
when a joint turns is known to half a sample, and its Coulomb friction is many times the noise."""
LEARNT = 60.0
"""Time constant of what is learnt of the innovations [s]."""
RELEASED = 3.0
"""Normal quantile below which a load is none."""
MISFIT = 25.0
"""Mean square of the first innovations above which a start does not fit: five times its sigma, for
noise in a stream of a tenth of the log's rate has three times its sigma."""


class TrackerModel(NamedTuple):
    """What a tracker is told: the robot, its drives' columns, weights and ageing."""

    tree: Tree
    slot: Integers
    """Of the entries of its packed regressor."""
    start: Integers
    stop: Integers
    column: Integers
    """`start`, `stop`, `column`: entries of each equation's packed row, and the column of each."""
    entry: Integers
    """Of the drives, shape (e, 5): kind, gear, law, row of the law, slot."""
    law: Integers
    """Shape (laws, 5). Address, gear, rows of each nonlinear friction law, address of its states'
    step (0 for none), and how many states it has."""
    first: Integers
    """The first column of each equation's row, shape (dof,)."""
    load: Integers
    """Columns of the own parameters of the link that carries a load, shape (LOAD,)."""
    weight: Array
    """Of the drives' entries, shape (e, 4): the friction's column as ``a + b v + c s(v)`` and the
    factor with which it acts."""
    turns: Array
    """Shape (gears, n)."""
    shape: Array
    """Shape parameters of the laws, shape (laws, most shapes)."""
    gate: Array
    """Speeds of coupled drives at their own joint, shape (n, n)."""
    slow: Array
    """Thresholds [rad/s or m/s], shape (n,)."""
    sigma: Array
    """Of each equation of motion, those of a floating base first; infinite of those that are not
    followed, shape (dof,)."""
    rule: AgeingRule
    load_std: Array
    """What is believed of a load, shape (LOAD,)."""
    turnover: Array
    """What stands for the sign of a speed about the instant at which it changes, shape
    (TURN_POINTS,)."""
    wide: int
    """Columns of a row: base parameters, then what a load has beside them."""
    half: int
    settle: int
    """`half`, `settle`: samples of half a window, and half windows until the level is learnt."""
    forces: int
    """Components of what contacts do that nothing measures."""
    linked: int
    """Joints, all of them, of a closed chain; else none."""
    period: float
    """Between samples [s]."""
    quantile: float
    """Normal quantile of the test's threshold."""
    reach: float
    """From the instant at which a speed changes its sign to where `turnover` ends [s]; zero where
    samples are not filtered."""


class Memory(NamedTuple):
    """What a tracker remembers."""

    place: Integers
    """Shape (2,)."""
    kept_place: Integers
    """Shape (2, 2)."""
    counts: Integers
    """Shape (COUNTS,)."""
    R: Array
    beta: Array
    due: Array
    """`R`, `beta`, `due`: the recursion."""
    load_factor: Array
    load_beta: Array
    """`load_factor`, `load_beta`: that of a load, shapes (LOAD, LOAD + 1), (LOAD,)."""
    kept_factor: Array
    kept_beta: Array
    kept_due: Array
    """`kept_factor`, `kept_beta`, `kept_due`: the recursion at the ends of the last two half
    windows, the older first."""
    total: Array
    """Shape (TOTALS,)."""
    rest: Integers
    """Samples until each equation's rows are tested again, after its joint turned, shape (dof,)."""
    state: Array
    """Those of all friction laws, one after another, shape (states,)."""


SAMPLES, MODE, IN_HALF, ROWS, ROWS_BEFORE, QUIET, MODE_AGE, FIRST_ROWS, COUNTS = range(9)
"""What is counted: samples, whether a load is carried, samples and rows of the present half
window, rows of the one before, quiet halves so far, half windows in this mode, rows until the level
is learnt."""
SUM, SUM_BEFORE, LEVEL, SCATTER, STATISTIC, THRESHOLD, FREEDOM, FIRST_SUM, TOTALS = range(9)
"""Sums of squared innovations, their mean and scatter as learnt, the last test, the sum over all
rows until the level is learnt."""
QUIETLY, BAD, CHANGED, RELEASE, SETTLED = 0, 1, 2, 3, 4
"""What a step comes back with; `SETTLED` once, when the level has been learnt."""


def begin_memory(first: Recursion, dof: int, states: int) -> Memory:
    """The memory of a tracker that begins with a recursion."""
    return Memory(
        first.place, np.zeros((2, 2), dtype=np.int64), np.zeros(COUNTS, dtype=np.int64), first.R,
        first.beta, first.due, np.zeros((LOAD, LOAD + 1)), np.zeros(LOAD),
        np.array([first.R, first.R]), np.array([first.beta, first.beta]),
        np.array([first.due, first.due]), np.zeros(TOTALS), np.zeros(dof, dtype=np.int64),
        np.zeros(states),
    )  # fmt: skip


@entry
def filter_speed_sign(speed, acceleration, reach, turnover):  # type: ignore[no-untyped-def]
    """The sign of a speed as a filter leaves it, that of ``speed / acceleration`` ago."""
    if abs(speed) >= reach * abs(acceleration):
        return np.sign(speed)
    at = (speed / acceleration / reach + 1.0) * 0.5 * (len(turnover) - 1)
    k = min(int(at), len(turnover) - 2)
    value = turnover[k] + (at - k) * (turnover[k + 1] - turnover[k])
    return value if acceleration > 0.0 else -value


@jit
def fill_rows(m, memory, q, dq, ddq, tau, G, rows):  # type: ignore[no-untyped-def]
    """``[X | y]`` of every equation in units of its sigma, shape (dof, wide + 1).

    Of a closed chain ``G^T X`` of its tree's rows, shape (linked, dof).

    States of friction go on by a sample, at first by half of one, as `FrictionModel.follow` has
    them.
    """
    n, dof, gears, laws, wide = len(m.slow), len(m.sigma), len(m.turns), len(m.law), m.wide
    before = dof - n  # equations of a floating base, whose configuration has one number more
    pose = len(q) - n
    packed = np.empty((1, len(m.column)))
    trigonometry = np.empty((1, 2, n))
    for j in range(n):
        trigonometry[0, 0, j] = np.sin(q[pose + j])
        trigonometry[0, 1, j] = 1.0 - np.cos(q[pose + j])
    one_q, one_dq, one_ddq = q.reshape((1, pose + n)), dq.reshape((1, dof)), ddq.reshape((1, dof))
    fill_regressor_samples(
        m.tree, one_q[:, min(pose, 3) : pose], one_q[:, pose:], trigonometry, one_dq, one_ddq,
        m.slot, packed,
    )  # fmt: skip
    motion = np.zeros((3, gears))
    for g in range(gears):
        for j in range(n):
            turns = m.turns[g, j]
            motion[0, g] += turns * q[pose + j]
            motion[1, g] += turns * dq[before + j]
            motion[2, g] += turns * ddq[before + j]
    most, longest = 0, 0
    for f in range(laws):
        most, longest = max(most, m.law[f, 2]), max(longest, m.law[f, 4])
    table = np.zeros((laws, most, BY_STATE + longest + m.shape.shape[1]))
    stepped = np.zeros((longest, BY_STATE + longest + m.shape.shape[1]))
    period = m.period if memory.counts[SAMPLES] > 0 else 0.5 * m.period
    place = 0
    for f in range(laws):
        g, states = m.law[f, 1], m.law[f, 4]
        z = memory.state[place : place + states]
        place += states
        if states > 0:
            at = DriveInstant(
                motion[1, g], motion[0, g], np.sign(motion[1, g]), 0.0, 0.0, 0.0, period
            )
            consult_law(m.law[f, 3], at, m.shape[f], z, stepped[:states])
            for k in range(states):
                z[k] = stepped[k, VALUE]
        sign = filter_speed_sign(motion[1, g], motion[2, g], m.reach, m.turnover)
        at = DriveInstant(motion[1, g], motion[0, g], sign, 0.0, 0.0, 0.0, 0.0)
        consult_law(m.law[f, 0], at, m.shape[f], z, table[f])
    for e in range(len(m.entry)):
        g = m.entry[e, 1]
        if m.entry[e, 0] == ROTOR:
            value = motion[2, g]
        elif m.entry[e, 0] == WEIGHTED:
            a, b, c = m.weight[e, 0], m.weight[e, 1], m.weight[e, 2]
            sign = filter_speed_sign(motion[1, g], motion[2, g], m.reach, m.turnover)
            value = b * motion[1, g] + c * sign
            if a != 0.0:
                value += a * abs(sign) if c != 0.0 and m.reach == 0.0 else a
        else:
            value = table[m.entry[e, 2], m.entry[e, 3], VALUE]
        packed[0, m.entry[e, 4]] = value * m.weight[e, 3]
    for j in range(dof):
        for k in range(wide):
            rows[j, k] = 0.0
        for k in range(m.start[j], m.stop[j]):
            rows[j, m.column[k]] = packed[0, k]
        rows[j, wide] = tau[j]
    for i in range(m.linked):
        for j in range(m.linked):
            if i != j and G[i, j] != 0.0:
                for k in range(wide):
                    rows[j, k] += G[i, j] * rows[i, k]
    for j in range(dof):
        scale = 1.0 / m.sigma[j]
        for k in range(wide + 1):
            rows[j, k] *= scale


@inner
def measure_turnover(m, dq, ddq, j):  # type: ignore[no-untyped-def]
    """How far from 1 the filtered sign of what rubs on a joint is at most; 0 without a filter."""
    away = 0.0
    if m.reach > 0.0:
        for g in range(len(m.turns)):
            if m.turns[g, j] != 0.0:
                speed, acceleration = 0.0, 0.0
                for k in range(len(dq)):
                    speed += m.turns[g, k] * dq[k]
                    acceleration += m.turns[g, k] * ddq[k]
                sign = filter_speed_sign(speed, acceleration, m.reach, m.turnover)
                away = max(away, abs(abs(sign) - 1.0))
    return away


@inner
def has_clear_direction(m, dq, j):  # type: ignore[no-untyped-def]
    """Whether all that rubs on a joint is fast enough for the sign of its speed to be known."""
    if abs(dq[j]) < m.slow[j]:
        return False
    for i in range(len(dq)):
        if m.gate[i, j] != 0.0:
            speed = 0.0
            for k in range(len(dq)):
                speed += m.gate[i, k] * dq[k]
            if abs(speed) < m.slow[i]:
                return False
    return True


@inner
def approximate_chi2_quantile(freedom, quantile):  # type: ignore[no-untyped-def]
    """Quantile of chi-squared (Wilson and Hilferty 1931)."""
    part = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - part + quantile * np.sqrt(part)) ** 3


@jit
def reset_load(m, memory):  # type: ignore[no-untyped-def]
    """Forget what was carried."""
    for k in range(LOAD):
        memory.load_beta[k] = 0.0
        for j in range(LOAD + 1):
            memory.load_factor[k, j] = 0.0
        memory.load_factor[k, k] = 1.0 / m.load_std[k]


@jit
def keep_recursion(memory, which):  # type: ignore[no-untyped-def]
    """Remember the recursion as it is."""
    memory.kept_factor[which] = memory.R
    memory.kept_beta[which] = memory.beta
    memory.kept_due[which] = memory.due
    memory.kept_place[which] = memory.place


@jit
def examine_half_window(m, memory):  # type: ignore[no-untyped-def]
    """The test at the end of half a window."""
    count, total = memory.counts, memory.total
    outcome, settled = QUIETLY, count[QUIET]
    level, spread = max(1.0, total[LEVEL]), max(1.0, total[SCATTER])
    rows = count[ROWS] + count[ROWS_BEFORE]
    count[MODE_AGE] += 1
    if count[QUIET] >= m.settle and count[ROWS_BEFORE] > 0 and count[ROWS] > 0:
        # squares that vary as much more than those of a normal error are spread times chi-squared
        # with as many fewer degrees of freedom (Satterthwaite 1946)
        total[FREEDOM] = rows / spread
        total[STATISTIC] = (total[SUM] + total[SUM_BEFORE]) / (level * spread)
        total[THRESHOLD] = approximate_chi2_quantile(total[FREEDOM], m.quantile)
        if total[STATISTIC] > total[THRESHOLD]:
            if count[MODE] == 0:
                # what was learnt since the change may have begun is taken back
                memory.R[:] = memory.kept_factor[0]
                memory.beta[:] = memory.kept_beta[0]
                memory.due[:] = memory.kept_due[0]
                memory.place[:] = memory.kept_place[0]
            reset_load(m, memory)
            count[MODE], count[MODE_AGE] = 1, 0
            count[ROWS] = count[ROWS_BEFORE] = 0
            total[SUM] = total[SUM_BEFORE] = 0.0
            return CHANGED
    if count[ROWS] > 0:
        count[QUIET] += 1
        gain = max(1.0 / count[QUIET], m.half * m.period / LEARNT)
        total[LEVEL] += gain * (total[SUM] / count[ROWS] - total[LEVEL])
        away = total[SUM] / max(1.0, total[LEVEL]) - count[ROWS]
        total[SCATTER] += gain * (away * away / (2.0 * count[ROWS]) - total[SCATTER])
    if count[MODE] == 1 and count[MODE_AGE] >= 4:
        seen = 0.0
        for k in range(LOAD):
            seen += memory.load_factor[k, LOAD] ** 2
        if seen / (level * spread) < approximate_chi2_quantile(float(LOAD), RELEASED):
            count[MODE], count[MODE_AGE] = 0, 0
            keep_recursion(memory, 0)
            keep_recursion(memory, 1)
            outcome = RELEASE
    if count[MODE] == 0 and outcome == QUIETLY:
        memory.kept_factor[0] = memory.kept_factor[1]
        memory.kept_beta[0] = memory.kept_beta[1]
        memory.kept_due[0] = memory.kept_due[1]
        memory.kept_place[0] = memory.kept_place[1]
        keep_recursion(memory, 1)
    if settled < m.settle <= count[QUIET]:
        outcome = SETTLED
    count[ROWS_BEFORE], count[ROWS] = count[ROWS], 0
    total[SUM_BEFORE], total[SUM] = total[SUM], 0.0
    return outcome


@jit
def eliminate_forces(levers, sigma, acting, count, rows):  # type: ignore[no-untyped-def]
    """Combine rows such that what nothing measures acts on the first of them alone.

    Reflections that make ``J^T / sigma`` triangular, with columns in the order of what is left of
    them (Businger and Golub 1965), go over the rows: those behind its rank are an orthonormal basis
    of the null space of J, whose errors are alike as those of the equations are.

    Parameters
    ----------
    levers : ndarray, shape (forces, dof)
        J of the contacts that bear; zeros of all others.
    acting : ndarray of int
        The equations that they act on, so many as `count`.
    rows : ndarray, shape (count, columns)
        Changed in place.

    Returns
    -------
    int
        How many of the rows the forces act on.
    """
    forces, width = len(levers), rows.shape[1]
    A = np.empty((count, forces))
    for i in range(count):
        for k in range(forces):
            A[i, k] = levers[k, acting[i]] / sigma[acting[i]]
    v = np.empty(count)
    largest = 0.0
    for r in range(min(count, forces)):
        most, best = 0.0, r
        for k in range(r, forces):
            total = 0.0
            for i in range(r, count):
                total += A[i, k] * A[i, k]
            if total > most:
                most, best = total, k
        size = np.sqrt(most)
        largest = max(largest, size)
        if size <= SINGULAR * largest:
            return r
        for i in range(count):
            A[i, r], A[i, best] = A[i, best], A[i, r]
        head = A[r, r] + (size if A[r, r] >= 0.0 else -size)
        length = head * head
        v[r] = head
        for i in range(r + 1, count):
            v[i] = A[i, r]
            length += v[i] * v[i]
        for k in range(r, forces):
            total = 0.0
            for i in range(r, count):
                total += v[i] * A[i, k]
            for i in range(r, count):
                A[i, k] -= 2.0 * total / length * v[i]
        for k in range(width):
            total = 0.0
            for i in range(r, count):
                total += v[i] * rows[i, k]
            for i in range(r, count):
                rows[i, k] -= 2.0 * total / length * v[i]
    return min(count, forces)


@jit
def choose_rows(m, memory, dq, levers, rows, kept, group, first, resting):  # type: ignore[no-untyped-def]
    """Rows that a sample has, into `kept`; how many.

    Equations by themselves, where their joints move clearly; those that unmeasured forces act on
    in the combinations that are free of these. `group`, `first` and `resting` are told of each: a
    number below dof, the first column that is not zero, and whether its joints have just turned.
    """
    dof, wide = len(m.sigma), m.wide
    before = dof - len(m.slow)
    acting = np.empty(dof, np.int64)
    count, found = 0, 0
    least, rests = wide, False
    for g in range(dof):
        if m.sigma[g] == np.inf:
            continue
        touched = False
        for k in range(m.forces):
            touched = touched or levers[k, g] != 0.0
        if touched:
            acting[count] = g
            count += 1
            least = min(least, m.first[g])
            rests = rests or memory.rest[g] > 0
        elif g < before or has_clear_direction(m, dq[before:], g - before):
            kept[found] = rows[g]
            group[found], first[found], resting[found] = g, m.first[g], memory.rest[g] > 0
            found += 1
    if count == 0:
        return found
    combined = np.empty((count, wide + 1))
    for i in range(count):
        combined[i] = rows[acting[i]]
    for i in range(eliminate_forces(levers, m.sigma, acting, count, combined), count):
        kept[found] = combined[i]
        group[found], first[found], resting[found] = acting[i], least, rests
        found += 1
    return found


@jit
def step(m, memory, sample):  # type: ignore[no-untyped-def]
    """Take in one sample ``[q | dq | ddq | tau | J]``; what it comes to.

    A sample with a number that is none leaves the memory as it was.
    """
    for k in range(len(sample)):
        if not np.isfinite(sample[k]):
            return BAD
    dof, p, wide = len(m.sigma), len(memory.beta), m.wide
    before = dof - len(m.slow)
    at = len(sample) - (3 + m.forces + m.linked) * dof
    q, dq, ddq = sample[:at], sample[at : at + dof], sample[at + dof : at + 2 * dof]
    tau, at = sample[at + 2 * dof : at + 3 * dof], at + 3 * dof
    levers = sample[at : at + m.forces * dof].reshape((m.forces, dof))
    G = sample[at + m.forces * dof :].reshape((m.linked, dof))
    rows = np.empty((dof, wide + 1))
    fill_rows(m, memory, q, dq, ddq, tau, G, rows)
    count, total = memory.counts, memory.total
    for j in range(len(m.slow)):
        g = before + j
        if measure_turnover(m, dq[before:], ddq[before:], j) > TURNING:
            memory.rest[g] = int(m.reach / m.period) + 1
        elif memory.rest[g] > 0:
            memory.rest[g] -= 1
    for i in range(m.linked):  # what rubs in passive joints is in the rows of drives
        for j in range(m.linked):
            if i != j and G[i, j] != 0.0:
                memory.rest[j] = max(memory.rest[j], memory.rest[i])
    chosen, group = np.empty((dof, wide + 1)), np.empty(dof, np.int64)
    first, resting = np.empty(dof, np.int64), np.empty(dof, np.bool_)
    kept = choose_rows(m, memory, dq, levers, rows, chosen, group, first, resting)
    squares = np.zeros(dof)
    if count[MODE] == 0:
        work, row = np.empty((kept, p + 1)), np.empty(p + 1)
        elapsed = np.zeros(kept)
        if kept > 0 and count[SAMPLES] > 0:
            elapsed[0] = m.period
        for i in range(kept):
            for k in range(p):
                work[i, k] = chosen[i, k]
            work[i, p] = chosen[i, wide]
        follow_rows(
            m.rule, memory.R, memory.beta, memory.due, memory.place, row, work, first[:kept],
            group[:kept], dof, elapsed, squares,
        )  # fmt: skip
    else:
        row = np.empty(LOAD + 1)
        for i in range(kept):
            rest = chosen[i, wide]
            for k in range(first[i], p):
                rest -= chosen[i, k] * memory.beta[k]
            for k in range(LOAD):
                row[k] = chosen[i, m.load[k]]
            row[LOAD] = rest
            e = absorb_row(memory.load_factor, row, 0)
            squares[i] = e * e
        solve_for_beta(memory.load_factor, memory.load_beta)
    for i in range(kept):
        if count[QUIET] < m.settle:
            total[FIRST_SUM] += squares[i]
            count[FIRST_ROWS] += 1
        if not resting[i]:
            total[SUM] += squares[i]
            count[ROWS] += 1
    count[IN_HALF] += 1
    count[SAMPLES] += 1
    if count[IN_HALF] < m.half:
        return QUIETLY
    count[IN_HALF] = 0
    return examine_half_window(m, memory)


@jit
def predict(m, memory, beta, sample):  # type: ignore[no-untyped-def]
    """Right-hand sides of a sample by what was learnt before it, shape (dof,).

    NaN of equations that are not followed, and of those that unmeasured forces act on. The memory
    stays as it was.
    """
    dof, p = len(m.sigma), len(memory.beta)
    at = len(sample) - (3 + m.forces + m.linked) * dof
    q, dq, ddq = sample[:at], sample[at : at + dof], sample[at + dof : at + 2 * dof]
    tau, at = sample[at + 2 * dof : at + 3 * dof], at + 3 * dof
    levers = sample[at : at + m.forces * dof].reshape((m.forces, dof))
    G = sample[at + m.forces * dof :].reshape((m.linked, dof))
    rows = np.empty((dof, m.wide + 1))
    state = memory.state.copy()
    fill_rows(m, memory, q, dq, ddq, tau, G, rows)
    memory.state[:] = state
    found = np.full(dof, np.nan)
    for g in range(dof):
        touched = False
        for k in range(m.forces):
            touched = touched or levers[k, g] != 0.0
        if touched or m.sigma[g] == np.inf:
            continue
        total = 0.0
        for k in range(p):
            total += rows[g, k] * beta[k]
        if memory.counts[MODE] != 0:
            for k in range(LOAD):
                total += rows[g, m.load[k]] * memory.load_beta[k]
        found[g] = total * m.sigma[g]
    return found


def build_friction_tables(
    base: BaseParameters, drive: Sequence[tuple[DriveColumn, int, int]]
) -> tuple[Integers, Array, Integers, Array]:
    """Entries, weights, laws and shapes of the drives' columns, as `TrackerModel` has them."""
    idim = base.idim
    laws: dict[int, int] = {}
    law: list[list[int]] = []
    shape: list[list[float]] = []
    entry: list[list[int]] = []
    weight: list[list[float]] = []
    most = max((len(each.model.shape) for each in idim.frictions), default=0)
    for column, joint, slot in drive:
        factor = float(column.turns[joint])
        if column.friction is None:
            entry.append([ROTOR, column.gear, 0, 0, slot])
            weight.append([0.0, 0.0, 0.0, factor])
            continue
        assert column.term is not None
        model = idim.frictions[column.friction].model
        weights = model.parameters[column.term].weights
        if weights is not None:
            entry.append([WEIGHTED, column.gear, 0, 0, slot])
            weight.append([*weights, factor])
            continue
        if column.friction not in laws:
            laws[column.friction] = len(law)
            step = find_law_address(model.step)
            law.append(
                [find_law_address(model.law), column.gear, len(model.rows), step, len(model.state)]
            )
            own = idim.shape[idim.frictions[column.friction].shape]
            shape.append([*own, *(0.0,) * (most - len(own))])
        entry.append([LAW, column.gear, laws[column.friction], model.rows.index(column.term), slot])
        weight.append([0.0, 0.0, 0.0, factor])
    return (
        np.array(entry, dtype=np.int64).reshape(-1, 5),
        np.array(weight, dtype=float).reshape(-1, 4),
        np.array(law, dtype=np.int64).reshape(-1, 5),
        np.array(shape, dtype=float).reshape(len(law), most),
    )
