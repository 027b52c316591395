"""What is drawn of a fit beside its torques: its parameters, and where its logs went."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.words import format_one_sided, format_with_error, raise_powers
from dynident.fit.figures import find_fitted_samples, thin_motion
from dynident.fit.parameters import list_base_parameters, list_file_parameters
from dynident.fit.result import Result
from dynident.plots.charts import Panel, label_joint, share_dots
from dynident.plots.coverage import DOTS, Range, build_coverage
from dynident.plots.parameters import build_forest
from dynident.regression.generalised import GeneralisedSamples


def show_parameters(fit: Result) -> Panel:
    """A forest of all base parameters but those that were eliminated."""
    both = zip(list_base_parameters(fit), list_file_parameters(fit), strict=True)
    kept = [(row, file) for row, file in both if row.essential]
    ends = {own.name: format_one_sided(own.low, own.high) for own in fit.estimate.bounded}
    labels = [
        f"{row.name}  {ends.get(row.name, format_with_error(row.value, row.std))} "
        f"{raise_powers(file.unit)}"
        for row, file in kept
    ]
    return build_forest([row for row, _ in kept], [file.value for _, file in kept], labels)


def show_coverage(fit: Result, logs: Sequence[GeneralisedSamples]) -> list[Panel]:
    """Speed against position of each joint in some logs, with its limits."""
    first, n = fit.robot.dof - fit.robot.n, fit.robot.n
    thinned = zip(logs, thin_motion(logs, share_dots(DOTS, n)), strict=True)
    shown = [(q, dq, find_fitted_samples(log, few)) for log, (few, q, dq) in thinned]
    q, dq, fitted = (np.concatenate(each) for each in zip(*shown, strict=True))
    return [
        build_coverage(
            label_joint(joint.name, fit.robot.joint_names),
            joint.kind == "prismatic",
            q[:, j - n],
            dq[:, first + j],
            fitted[:, first + j],
            Range(joint.lower, joint.upper, joint.velocity),
        )
        for j, joint in enumerate(fit.robot.joints)
    ]
