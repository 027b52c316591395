"""Rows of the energy (integrated) model: the work of the torques over intervals.

``integral of dq^T tau dt = change of T + U + work of the friction`` (Gautier and Khalil 1988;
zhang2018, section 1): one equation for the whole robot, linear in the base parameters, and without
accelerations.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from dynident.regression.problem import Problem, Regression
from dynident.regression.rows import CHUNK, GivenRows, RowGroup, Rows, collect_conditions

GROUPS = (RowGroup("energy", "J"),)


def build_energy_rows(problem: Problem) -> Regression:
    """The energy of a problem's logs, an interval a row.

    An interval is as long as the rows are apart, of an odd number of samples, and both sides pass
    the torque's filter (the lowest of the joints'). Slow samples are not left out: without speed
    there is no power. Refused are robots that float, friction under load, and means of periods.
    """
    refuse_other_energies(problem)
    logs = tuple(replace(log, filters=(build_interval_filter(log),)) for log in problem.samples)
    stretches = tuple(tuple(stream_energy_rows(problem.base, log)) for log in logs)
    source = GivenRows(GROUPS, stretches, (np.arange(problem.base.count),) * len(GROUPS))
    return Regression(problem.base, logs, source)


def refuse_other_energies(problem: Problem) -> None:
    """Refuse robots and logs of which the energy is not known without accelerations."""
    if problem.robot.floating or len(problem.groups) > problem.robot.dof:
        raise InputError("the energy model is that of a robot on a fixed base; take wls")
    if problem.idim.loaded:
        raise InputError(
            f"friction {problem.idim.friction!r} depends on loads, which need accelerations; take "
            "another friction, or wls"
        )
    for log in problem.samples:
        if log.averaging is not None:
            raise InputError(
                f"{log.name}: a mean of periods has not the mean of their power; leave period out"
            )


def build_interval_filter(log: GeneralisedSamples) -> DecimationFilter:
    """The sum over an interval of what the torque's filter passes."""
    lowest = min(log.filters, key=lambda each: each.cutoff)
    interval = np.ones(2 * (lowest.step // 2) + 1)
    return replace(lowest, taps=np.convolve(lowest.taps, interval))


def stream_energy_rows(base: BaseParameters, log: GeneralisedSamples) -> Iterator[Rows]:
    """Rows ``[change of energy + work of friction | work of torques]`` of one log."""
    kept = np.ones(len(log.q), dtype=bool) if log.kept is None else log.kept
    for start, stop in log.segments:
        # changes between samples, of which there are one fewer
        decimator = Decimator(log.filters[0], start, stop - 1, base.count + 1)
        conditions, last = None, np.empty((0, 2, base.count + 1))
        for a in range(start, stop, CHUNK):
            part = slice(a, min(a + CHUNK, stop))
            new, conditions = evaluate_energy_and_power(base, log, part, conditions)
            known = np.concatenate([last, new])
            mean_power = 0.5 * (known[1:, 1] + known[:-1, 1])
            gained = np.diff(known[:, 0], axis=0) + mean_power / log.rate
            centres, rows = decimator.push(a - len(last), [gained])
            rows, centres, last = rows[kept[centres]], centres[kept[centres]], new[-1:]
            yield Rows((rows[:, :-1],), (rows[:, -1] + rows[:, :-1] @ base.shift,), (centres,))


def evaluate_energy_and_power(
    base: BaseParameters, log: GeneralisedSamples, part: slice, previous: Conditions | None
) -> tuple[Array, Conditions]:
    """What bodies and rotors hold and what all else takes, of each parameter, then of the torques.

    Energy [J] and power [W], shape (samples, 2, base parameters + 1), and the conditions at the
    end, to go on from.
    """
    idim, q, dq = base.idim, log.q[part], log.dq[part]
    still = np.zeros(dq.shape)
    found = np.zeros((len(q), 2, base.count + 1))
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
    fill_rows(
        idim, packing, q, dq, still, packed, conditions=met
    )  # without acceleration rotors rest
    for speed, (entries, columns) in zip(dq.T, packing.joints, strict=True):
        found[:, 1, of_drives[columns]] += speed[:, None] * packed[:, entries]
    found[:, 1, -1] = np.sum(dq * log.tau[part], axis=1)
    return found, met
