"""What limits `smooth` on logs where it is no better: the motion, the filters or its errors.

Run from the top of the project: python benchmarks/smooth_limits.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import decide
import numpy as np
from common import FIGURES, markdown
from smooth import COPIED, SLOW, find_study, fit_beside_each_other, label

from dynident.decide.decision import NOTHING
from dynident.estimators.constrained import pc_idim_ls
from dynident.estimators.estimate import Estimate
from dynident.methods import ESTIMATORS
from dynident.recording.prepare import Samples
from dynident.regression.problem import Problem
from dynident.smoothing.smooth import Smoothing, fit_positions, take_log
from dynident.study.run import run_study
from dynident.study.study import Study, load_study_robot, read_study_samples

WAYS = (
    "all torques counted",
    "motion by positions alone",
    "and torques filtered",
    "motion of the log at full rate",
    "pc-idim-ls of the log at full rate",
)


def make_estimator(
    *, filtered: bool = False, fast: Samples | None = None
) -> Callable[..., Estimate]:
    """Constrained least squares along a motion that does not move with the torques.

    Of all samples, or of what filters leave, as `pc-idim-ls` takes them.
    """

    @wraps(pc_idim_ls)
    def estimate(problem: Problem, *given: Any, **known: Any) -> Estimate:
        moved = []
        for log in problem.samples:
            taken = take_log(log, Smoothing(), clocked=filtered)
            if fast is None:
                found = fit_positions(taken, np.full(problem.robot.n, np.nan))
                motion = tuple(found.log.evaluate(found.coefficients))
            else:
                step, count = round(fast.rate / SLOW), len(taken.log.tau)
                motion = tuple(np.asarray(x)[::step][:count] for x in (fast.q, fast.dq, fast.ddq))
            moved.append((log if filtered else taken.log).along(*motion))
        along: Any = Problem.of(problem.base, moved)
        return pc_idim_ls(along, *given, **known)

    return estimate


def read_fast(study: Study) -> Samples:
    """What is fitted of a study, prepared at its full rate."""
    robot = load_study_robot(study)
    (log,) = (log for log in study.log if log.use == "identify")
    return read_study_samples(log, robot, study.prepare)


def measure(name: str) -> list[str]:
    """Held-out errors of both methods, and of what `smooth` might have known or assumed."""
    ESTIMATORS["along"] = make_estimator()
    ESTIMATORS["filtered"] = make_estimator(filtered=True)
    ways = ["along", "filtered"]
    if name in COPIED:
        ESTIMATORS["known motion"] = make_estimator(fast=read_fast(decide.list_studies()[name][0]))
        ways.append("known motion")
    with tempfile.TemporaryDirectory() as folder:
        study, lowpass = find_study(name, Path(folder))

        def fit(method: str) -> Any:
            return run_study(decide.with_given(study, lowpass, method=method, decide=NOTHING))

        least, smooth = fit("pc-idim-ls"), fit("smooth")
        rho = [np.corrcoef(e[1:], e[:-1])[0, 1] for e in smooth.estimate.residuals.error]
        with patch("dynident.smoothing.smooth.OUTLYING", np.inf):
            fits = [least, smooth, fit("smooth"), *map(fit, ways)]
        if name in COPIED:
            study = decide.list_studies()[name][0]
            fits.append(fit("pc-idim-ls"))
        shown = [f"{decide.held_out(each):.2f}" for each in fits]
    line = [label(name), *shown[:2], f"{min(rho):.2f} to {max(rho):.2f}", *shown[2:]]
    print(*line, flush=True)
    return line if name in COPIED else [*line, "-", "-"]


def main() -> None:
    lines = fit_beside_each_other(measure, [(name,) for name in ("Panda, split", *COPIED)])
    words = (
        "Held-out errors as of smooth-held-out.md, friction and bandwidth as given [%]: what "
        "remains where no outlier is left out, where the motion does not move with the torques, "
        "and least squares then takes all of them or what its filters leave, where the motion is "
        "known from the faster log, and what that log is worth."
    )
    table = markdown(
        ["log", "pc-idim-ls", "smooth", "correlation of its errors from sample to sample", *WAYS],
        lines,
    )
    lines = ["Made by `python benchmarks/smooth_limits.py`.", "", words, "", *table]
    (FIGURES / "smooth-limits.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
