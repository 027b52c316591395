"""What limits `smooth` on logs where it is no better: the motion, or the weights of errors.

Run from the top of the project: python benchmarks/smooth_limits.py
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

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
from dynident.regression.rows import Rows
from dynident.regression.weighted import solve_wls
from dynident.smoothing.smooth import Smoothing, fit_positions, take_log
from dynident.study.run import run_study
from dynident.study.study import Study, load_study_robot, read_study_samples

WAYS = (
    "motion by positions alone, white errors",
    "and errors whitened by AR(1)",
    "motion of the log at full rate, white errors",
)


def make_estimator(
    *, whitened: bool = False, fast: Samples | None = None
) -> Callable[..., Estimate]:
    """Constrained least squares of all samples along a motion that does not move with them."""

    @wraps(pc_idim_ls)
    def estimate(problem: Problem, *given: Any, **known: Any) -> Estimate:
        moved = []
        for log in problem.samples:
            taken = take_log(log, Smoothing())
            if fast is None:
                found = fit_positions(taken, np.full(problem.robot.n, np.nan))
                moved.append(found.log.log.along(*found.log.evaluate(found.coefficients)))
            else:
                step, count = round(fast.rate / SLOW), len(taken.log.tau)
                motion = (np.asarray(x)[::step][:count] for x in (fast.q, fast.dq, fast.ddq))
                moved.append(taken.log.along(*motion))
        along: Any = Problem.of(problem.base, moved)
        return pc_idim_ls(whiten(along) if whitened else along, *given, **known)

    return estimate


def whiten(problem: Problem) -> Any:
    """Rows less what the errors before let expect of theirs."""
    beta, logs = solve_wls(problem.factors)[0], []
    for stretches in problem.passes():
        every, X, y, sample = list(stretches), [], [], []
        for g, columns in enumerate(problem.columns):
            own = np.zeros((sum(len(rows.y[g]) for rows in every), len(beta)))
            own[:, columns] = np.vstack([rows.X[g] for rows in every])
            right = np.concatenate([rows.y[g] for rows in every])
            error = right - own @ beta
            rho = float(error[1:] @ error[:-1] / (error @ error))
            X.append(own[1:] - rho * own[:-1])
            y.append(right[1:] - rho * right[:-1])
            sample.append(np.concatenate([rows.sample[g] for rows in every])[1:])
        logs.append([Rows(tuple(X), tuple(y), tuple(sample))])
    return problem.given(problem.groups, logs)


def read_fast(study: Study) -> Samples:
    """What is fitted of a study, prepared at its full rate."""
    robot = load_study_robot(study)
    (log,) = (log for log in study.log if log.use == "identify")
    return read_study_samples(log, robot, study.prepare)


def measure(name: str) -> list[str]:
    """Held-out errors of both methods, and of what `smooth` might have known or assumed."""
    ESTIMATORS["along"] = make_estimator()
    ESTIMATORS["whitened"] = make_estimator(whitened=True)
    methods = ["pc-idim-ls", "smooth", "along", "whitened"]
    if name in COPIED:
        ESTIMATORS["known motion"] = make_estimator(fast=read_fast(decide.list_studies()[name][0]))
        methods.append("known motion")
    line = [label(name)]
    with tempfile.TemporaryDirectory() as folder:
        study, lowpass = find_study(name, Path(folder))
        for method in methods:
            fit = run_study(decide.with_given(study, lowpass, method=method, decide=NOTHING))
            line.append(f"{decide.held_out(fit):.2f}")
            if method == "smooth":
                rho = [np.corrcoef(e[1:], e[:-1])[0, 1] for e in fit.estimate.residuals.error]
                line.append(f"{min(rho):.2f} to {max(rho):.2f}")
    print(*line, flush=True)
    return [*line, "-"] if name not in COPIED else line


def main() -> None:
    lines = fit_beside_each_other(measure, [(name,) for name in ("Panda, split", *COPIED)])
    words = (
        "Held-out errors as of smooth-held-out.md, friction and bandwidth as given [%]: what "
        "remains where the motion does not move with the torques, where errors of torques are "
        "taken as correlated in time, and where the motion is known from the faster log."
    )
    table = markdown(
        ["log", "pc-idim-ls", "smooth", "correlation of its errors from sample to sample", *WAYS],
        lines,
    )
    lines = ["Made by `python benchmarks/smooth_limits.py`.", "", words, "", *table]
    (FIGURES / "smooth-limits.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
