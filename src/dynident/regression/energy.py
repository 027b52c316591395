"""Rows of the energy (integrated) model: the work of the torques over intervals.

``integral of dq^T tau dt = change of T + U + work of the friction`` (Gautier and Khalil 1988;
zhang2018, section 1): one equation for the whole robot, linear in the base parameters, and without
accelerations. Noise of the torques counts in it as much as joints move, so that intervals are
weighted by the speeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.columns import fill_rows
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.energy import evaluate_energy_columns
from dynident.dynamics.following import find_conditions
from dynident.filters.decimate import Decimator
from dynident.filters.filters import DecimationFilter
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem, Regression, refuse_sensors
from dynident.regression.rows import CHUNK, GivenRows, RowGroup, Rows, collect_conditions
from dynident.regression.weighted import estimate_group_sigma

GROUPS = (RowGroup("energy", "J"),)
STILL = 0.05
"""Noise of an interval's work, over the rms of all, that it has at least: what joints at rest leave
is not known more exactly than what rows of energy are."""
ROUNDS = 6
"""In which the variance of errors is fitted: more change weights by less than 1 %."""


def build_energy_rows(problem: Problem) -> Regression:
    """The energy of a problem's logs, an interval a row.

    An interval is as long as the rows are apart, of an odd number of samples, and both sides pass
    the torque's filter (the lowest of the joints'). Slow samples are not left out: without speed
    there is no power. Rows are divided by the standard deviation of their errors, relative to its
    rms. Of white noise of the torques, ``integral of dq^T e dt`` has a variance that goes with
    ``s = sum_j sigma_j^2 integral of dq_j^2 dt``, the sigma being those of least squares on the
    torques; of other noise it need not, and so it is `fit_variance` of s. Refused are robots that
    float, friction under load, and means of periods.
    """
    refuse_other_energies(problem)
    logs = tuple(replace(log, filters=(build_interval_filter(log),)) for log in problem.samples)
    factors, base = problem.factors, problem.base
    beta = factors.weighted(factors.ones).solve()
    sigma = estimate_group_sigma(factors, beta, factors.ones)
    found = [tuple(stream_energy_rows(base, log)) for log in logs]
    unweighted = build_regression(base, logs, [[rows for rows, _ in log] for log in found])
    beta = unweighted.factors.weighted(unweighted.factors.ones).solve()
    parts = [(rows.y[0] - rows.X[0] @ beta, turned) for log in found for rows, turned in log]
    s = np.concatenate([turned @ sigma**2 for _, turned in parts])
    variance = fit_variance(np.concatenate([error for error, _ in parts]) ** 2, s)
    spread = np.sqrt(variance / np.mean(variance))
    ends = np.cumsum([len(error) for error, _ in parts])[:-1]
    spreads = iter(np.split(spread, ends))
    weighted = [[weigh_rows(rows, next(spreads)) for rows, _ in log] for log in found]
    return build_regression(base, logs, weighted)


def build_regression(
    base: BaseParameters, logs: tuple[GeneralisedSamples, ...], rows: Sequence[Sequence[Rows]]
) -> Regression:
    """Rows of energy of each log, with all base parameters."""
    acting = (np.arange(base.count),) * len(GROUPS)
    return Regression(base, logs, GivenRows(GROUPS, tuple(map(tuple, rows)), acting))


def fit_variance(squares: Array, s: Array) -> Array:
    """The variance ``c_0 + c_1 s`` of errors with these squares, both c at least zero.

    By least squares whose rows are divided by the variance of the round before: squares of normal
    errors spread in proportion to it (Amemiya 1977). At least `STILL` squared of its mean. Shapes
    (r,).
    """
    s = s / max(float(np.mean(s)), np.finfo(float).tiny)
    F, variance = np.column_stack([np.ones(len(s)), s]), np.ones(len(s))
    for _ in range(ROUNDS):
        A, b = F / variance[:, None], squares / variance
        c = np.linalg.lstsq(A, b)[0]
        if np.min(c) < 0.0:  # the better one alone
            alone = np.maximum(A.T @ b, 0.0) / np.sum(A**2, axis=0)
            c = np.where(np.arange(2) == np.argmax(alone * (A.T @ b)), alone, 0.0)
        variance = F @ c
        variance = np.maximum(variance, max(STILL**2 * float(np.mean(variance)), 1e-300))
    return np.asarray(variance)


def weigh_rows(rows: Rows, spread: Array) -> Rows:
    """Rows over a standard deviation each, shape (r,)."""
    return Rows((rows.X[0] / spread[:, None],), (rows.y[0] / spread,), rows.sample)


def refuse_other_energies(problem: Problem) -> None:
    """Refuse robots and logs of which the energy is not known without accelerations."""
    refuse_sensors(problem.robot, "energy has")
    if problem.robot.floating or len(problem.groups) > problem.robot.dof:
        raise InputError("the energy model is that of a robot on a fixed base; take wls")
    if problem.idim.loaded:
        raise InputError(
            f"friction {problem.idim.friction!r} depends on loads, which need accelerations; take "
            "another friction, or wls"
        )
    for log in problem.samples:
        if log.averaging is not None:
            raise InputError(f"{log.name}: a mean of periods has another power; leave period out")


def build_interval_filter(log: GeneralisedSamples) -> DecimationFilter:
    """The sum over an interval of what the torque's filter passes."""
    lowest = min(log.filters, key=lambda each: each.cutoff)
    interval = np.ones(2 * (lowest.step // 2) + 1)
    return replace(lowest, taps=np.convolve(lowest.taps, interval))


def stream_energy_rows(
    base: BaseParameters, log: GeneralisedSamples
) -> Iterator[tuple[Rows, Array]]:
    """Rows ``[change of energy + work of friction | work of torques]`` of one log.

    Beside them the filtered integral of each joint's squared speed, shape (r, dof).
    """
    kept = np.ones(len(log.q), dtype=bool) if log.kept is None else log.kept
    for start, stop in log.segments:
        # changes between samples, of which there are one fewer
        p, width = base.count, base.count + 1 + log.dq.shape[1]
        decimator = Decimator(log.filters[0], start, stop - 1, width)
        conditions, last = None, np.empty((0, 2, width))
        for a in range(start, stop, CHUNK):
            part = slice(a, min(a + CHUNK, stop))
            new, conditions = evaluate_energy_and_power(base, log, part, conditions)
            known = np.concatenate([last, new])
            mean_power = 0.5 * (known[1:, 1] + known[:-1, 1])
            gained = np.diff(known[:, 0], axis=0) + mean_power / log.rate
            centres, rows = decimator.push(a - len(last), [gained])
            rows, centres, last = rows[kept[centres]], centres[kept[centres]], new[-1:]
            X, work, turned = rows[:, :p], rows[:, p], rows[:, p + 1 :]
            yield Rows((X,), (work + X @ base.shift,), (centres,)), turned


def evaluate_energy_and_power(
    base: BaseParameters, log: GeneralisedSamples, part: slice, previous: Conditions | None
) -> tuple[Array, Conditions]:
    """What bodies and rotors hold and what all else takes, of each parameter, then of the torques.

    Energy [J] and power [W], and squares of the speeds beside the powers, shape (samples, 2, base
    parameters + 1 + dof), and the conditions at the end, to go on from.
    """
    idim, q, dq = base.idim, log.q[part], log.dq[part]
    still = np.zeros(dq.shape)
    found = np.zeros((len(q), 2, base.count + 1 + dq.shape[1]))
    inertial = base.kept < idim.inertial
    of_bodies, of_drives = np.flatnonzero(inertial), np.flatnonzero(~inertial)
    bodies = evaluate_energy_columns(idim.tree, q, dq)
    found[:, 0, of_bodies] = bodies[:, base.kept[of_bodies]]
    for place in of_drives:
        column = idim.drive_columns[base.kept[place] - idim.inertial]
        if column.friction is None:  # a rotor
            found[:, 0, place] = 0.5 * (dq @ column.turns) ** 2
    packing = idim.packing(base.kept[of_drives])
    packed = np.empty((len(q), packing.width))
    around = collect_conditions(idim, log, part)
    met = find_conditions(idim, q, dq, still, log.rate, None, previous, around)
    # without acceleration rotors rest
    fill_rows(idim, packing, q, dq, still, packed, conditions=met)
    for speed, (entries, columns) in zip(dq.T, packing.joints, strict=True):
        found[:, 1, of_drives[columns]] += speed[:, None] * packed[:, entries]
    found[:, 1, base.count] = np.sum(dq * log.tau[part], axis=1)
    found[:, 1, base.count + 1 :] = dq**2
    return found, met
