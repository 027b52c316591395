"""Figures 2 to 4: the torque of the first joint, as it was and as the model of PC-IV has it."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.filters.filters import filter_zero_phase
from dynident.regression.problem import Problem
from dynident_papers.ardiani2024.estimated import LOG, METHODS, TWIN, Results
from dynident_papers.ardiani2024.simulated import BANDWIDTH, TORQUE_FILTER
from dynident_papers.ardiani2024.tables import BESIDE
from dynident_papers.picture import Panel

METHOD, OTHERWISE = "pc-idim-iv", "idim-iv"
"""Whose model; the second where the first was not asked for, as in the reduced form."""
SHOWN = 1000
"""Points of a curve."""


def draw_figures(found: Results) -> tuple[tuple[Panel, ...], ...]:
    """A row a figure of the paper: direct on the log, cross-validation on the twin."""
    rows = []
    for number, (_, _, scenario, words) in enumerate(BESIDE, start=2):
        twin = found.checks[scenario.label][0]
        log = found.log.outcomes.get(scenario.label)
        sources = [(TWIN, found.outcomes[scenario.label], twin)]
        if log is not None:
            sources.insert(0, (LOG, log, log.problem))
        panels = []
        for source, outcome, problem in sources:
            method = METHOD if METHOD in outcome.fits else OTHERWISE
            beta = outcome.fits[method].beta
            kind = "direct" if source == LOG else "cross-validation"
            title = f"Figure {number}, {words}: {source}, {kind}, {METHODS[method]}"
            if beta is not None:
                panels.append(draw_torque(title, problem, beta))
        rows.append(tuple(panels))
    return tuple(row for row in rows if row)


def draw_torque(title: str, problem: Problem, beta: Array) -> Panel:
    """Torque of the first joint, low-passed as rows are, along all of a log."""
    (log,) = problem.samples
    theta = problem.base.standard(beta)
    model = problem.idim.torque(theta, log.q, log.dq, log.ddq)[:, :1]
    cutoff = TORQUE_FILTER * float(BANDWIDTH[0])
    actual, fitted = (
        filter_zero_phase(each, cutoff, log.rate)[:, 0] for each in (log.tau[:, :1], model)
    )
    step = max(1, len(actual) // SHOWN)
    curves = {"actual": actual, "model": fitted, "error": actual - fitted}
    return Panel(
        title,
        "time [s]",
        "torque of joint 1 [Nm]",
        np.arange(len(actual))[::step] / log.rate,
        {name: values[::step] for name, values in curves.items()},
    )
