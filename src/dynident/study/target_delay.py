"""How late the targets of drives come, of logs whose torque is what a stated law commanded."""

from __future__ import annotations

from collections.abc import Sequence

from dynident.core.errors import InputError
from dynident.core.progress import Progress
from dynident.fit.parameters import list_sensor_parameters
from dynident.fit.result import Result
from dynident.recording.commanded import LONGEST, command_torque
from dynident.recording.recording import Recording
from dynident.regression.weighted import estimate_group_sigma
from dynident.robot.model import LAW, Robot
from dynident.study.decide import prepare_logs
from dynident.study.study import Study, build_study_problem, read_law

CLOSE, APART, ROUNDS = 1e-5, 1e-3, 20
"""To which a delay is found, how far the longest is from others [s]; steps at most."""


def find_law_delay(
    study: Study, robot: Robot, recordings: Sequence[Recording], progress: Progress
) -> tuple[Study, list[Recording]]:
    """A study that states how late its drives have their targets, and its logs.

    Of one law for all logs whose torque it commands, and which do not say. What the commanded
    torque falls by with the delay stands beside the regressor: a step of Gauss and Newton after
    another, with a noise for each group of rows. The column stays, so that what is fitted has its
    error beside theirs.
    """
    open_ = [log.law_kp is not None and log.law_delay is None for log in map(read_law, study.log)]
    if not any(open_):
        return study, list(recordings)
    delay, sigma = 0.0, None
    for turn in range(ROUNDS):
        progress("delay", turn / ROUNDS)
        sections = tuple(
            log.model_copy(update={"law_delay": delay}) if late else log
            for log, late in zip(study.log, open_, strict=True)
        )
        logs = [
            command_torque(log, read_law(own), late) if late else log
            for own, log, late in zip(sections, recordings, open_, strict=True)
        ]
        found = study.model_copy(update={"log": sections}), logs
        problem = build_study_problem(found[0], robot, prepare_logs(*found))
        factors, _ = problem.factors.pool()
        sigma = factors.ones if sigma is None else sigma
        beta = factors.weighted(sigma).solve()
        sigma = estimate_group_sigma(factors, beta, sigma)
        if LAW not in problem.base.names:
            raise InputError(
                "law_delay is not estimated for mean periods and limbs beyond a sensor; state it"
            )
        before, step = delay, float(beta[problem.base.names.index(LAW)])
        delay = round(min(max(delay + step, 0.0), LONGEST), 6)  # no targets come early
        if turn and abs(delay - before) < CLOSE:
            break
    return found


def take_found_delay(study: Study, found: Study) -> Study:
    """A study whose drives have their targets as late as was found for the same logs."""
    logs = tuple(
        own.model_copy(update={"law_delay": read_law(own).law_delay or read_law(other).law_delay})
        for own, other in zip(study.log, found.log, strict=True)
    )
    return study.model_copy(update={"log": logs})


def tell_law_delay(study: Study, fit: Result) -> tuple[str, ...]:
    """How late drives have their targets, where that was found, with its error."""
    rows = [row for row in list_sensor_parameters(fit) if row.name == LAW]
    stated = [log.law_delay for log in map(read_law, study.log) if log.law_delay is not None]
    if not rows:
        return ()
    delay, std = stated[0] + rows[0].value, rows[0].std
    words = (
        f"the drives have their targets {1e3 * delay:.2f} ± {1e3 * std:.1g} ms late, which was "
        f"found (law_delay = {delay:.5f}); errors of viscous friction have its in them"
    )
    if delay > LONGEST - APART:
        words += ", the most that is looked for: check law_kp, law_kd and the targets' columns"
    return (words,)
