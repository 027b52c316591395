"""What is drawn of a fit beside its torques: its parameters, and where its logs went."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.words import format_with_error, raise_powers
from dynident.fit.parameters import list_base_parameters, list_file_parameters
from dynident.fit.result import Result
from dynident.plots.charts import Panel
from dynident.plots.coverage import Range, build_coverage
from dynident.plots.parameters import build_forest
from dynident.regression.generalised import GeneralisedSamples


def show_parameters(fit: Result) -> Panel:
    """A forest of all base parameters but those that were eliminated."""
    both = zip(list_base_parameters(fit), list_file_parameters(fit), strict=True)
    kept = [(row, file) for row, file in both if row.essential]
    labels = [
        f"{row.name}  {format_with_error(row.value, row.std)} {raise_powers(file.unit)}"
        for row, file in kept
    ]
    return build_forest([row for row, _ in kept], [file.value for _, file in kept], labels)


def show_coverage(fit: Result, logs: Sequence[GeneralisedSamples]) -> list[Panel]:
    """Speed against position of each joint in some logs, with its limits."""
    first = fit.robot.dof - fit.robot.n
    panels = []
    for j, joint in enumerate(fit.robot.joints):
        panels.append(
            build_coverage(
                joint.name,
                joint.kind == "prismatic",
                np.concatenate([log.q[:, j - fit.robot.n] for log in logs]),
                np.concatenate([log.dq[:, first + j] for log in logs]),
                np.concatenate([find_fitted(log, first + j) for log in logs]),
                Range(joint.lower, joint.upper, joint.velocity),
            )
        )
    return panels


def find_fitted(log: GeneralisedSamples, column: int) -> np.ndarray:
    """At which samples of a log rows of a joint are fitted."""
    inside = np.zeros(len(log.q), dtype=bool)
    for start, stop in log.segments:
        inside[start:stop] = log.moving[start:stop, column]
    return inside if log.kept is None else inside & log.kept
