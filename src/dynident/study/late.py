"""How late the targets of drives come, of logs whose torque is what a stated law commanded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.arrays import Array
from dynident.core.options import read_options
from dynident.core.progress import Progress
from dynident.recording.commanded import LONGEST, DriveLaw, command_torque
from dynident.recording.recording import COMMANDED, Recording
from dynident.regression.problem import Problem
from dynident.regression.statistics import compute_residuals, estimate_long_run_ratio
from dynident.regression.weighted import estimate_group_sigma
from dynident.robot.model import Robot
from dynident.study.decide import prepare_fitted
from dynident.study.study import LogSection, Study, build_study_problem

CLOSE, APART, ROUNDS = 1e-4, 1e-3, 10
"""To which a delay is found, and distance over which the likelihood bends [s]; rounds of weights
for each that is tried."""


def find_law_delay(
    study: Study, robot: Robot, recordings: Sequence[Recording], progress: Progress
) -> tuple[Study, list[Recording], tuple[str, ...]]:
    """A study that states how late its drives have their targets, its logs, and what to say.

    Of one law for all logs whose torque it commands, and which do not say. The delay is that of
    the largest likelihood of torques with a noise for each group of rows.
    """
    open_ = [log.law_kp is not None and log.law_delay is None for log in map(read_law, study.log)]
    if not any(open_):
        return study, list(recordings), ()
    from scipy import optimize  # a quarter of a second that few runs need

    def command(delay: float) -> tuple[Study, list[Recording]]:
        sections = tuple(
            log.model_copy(update={"law_delay": delay}) if late else log
            for log, late in zip(study.log, open_, strict=True)
        )
        pairs = zip(sections, recordings, strict=True)
        return study.model_copy(update={"log": sections}), [
            command_torque(log, read_law(own)) if log.torque == COMMANDED else log
            for own, log in pairs
        ]

    def fit(delay: float) -> tuple[float, Problem, Array]:
        own, logs = command(delay)
        problem = build_study_problem(own, robot, prepare_fitted(own, logs))
        factors, _ = problem.factors.pool()
        sigma = factors.ones
        beta = np.zeros(0)
        for _ in range(ROUNDS):
            beta = factors.weighted(sigma).solve()
            sigma = estimate_group_sigma(factors, beta, sigma)
        used = factors.counts > 0.0
        return float(factors.counts[used] @ np.log(sigma[used])), problem, beta

    progress("delay", 0.0)
    found = optimize.minimize_scalar(
        lambda delay: fit(float(delay))[0],
        bounds=(0.0, LONGEST),
        method="bounded",
        options={"xatol": CLOSE},
    )
    delay = round(float(found.x), 4)
    best, problem, beta = fit(delay)
    # minus the logarithm of the likelihood, for which rows count as many as are independent
    if delay < APART:  # no targets come early
        best, _, _ = fit(APART)
    middle = max(delay, APART)
    bend = (fit(middle + APART)[0] + fit(middle - APART)[0] - 2.0 * best) / APART**2
    ratio = estimate_long_run_ratio(compute_residuals(problem, beta).error)
    std = float(np.sqrt(ratio / max(bend, 1.0)))
    words = (
        f"the drives have their targets {1e3 * delay:.1f} ± {1e3 * std:.1g} ms late (law_delay = "
        f"{delay:g}); viscous friction depends on it: by law_kp times what it is off"
    )
    if delay > LONGEST - 10.0 * CLOSE:
        words += ", the most that is looked for: check law_kp, law_kd and the targets' columns"
    return *command(delay), (words,)


def read_law(section: LogSection) -> DriveLaw:
    """The law that a log section states."""
    return read_options(DriveLaw, section)
