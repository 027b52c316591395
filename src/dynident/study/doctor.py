"""The doctor on a study's logs, and a copy of the study in which they are repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tomlkit

from dynident.core.compiled import tells_compilations
from dynident.core.errors import InputError, check_type
from dynident.core.options import list_options, read_options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.threads import limit_to_one_thread
from dynident.fit.doctor import (
    Report,
    examine_generalised_logs,
    examine_joint_logs,
    look_at_encoders,
    report_log,
)
from dynident.recording.repairs import LogRepair
from dynident.regression.generalised import has_only_joint_torques
from dynident.regression.problem import Problem
from dynident.study.study import (
    Study,
    build_study_idim,
    build_study_problem,
    build_study_simulation,
    load_study_robot,
    read_study_logs,
)


@tells_compilations
@limit_to_one_thread
def doctor(source: Study | Problem, progress: Progress = ignore_progress) -> tuple[Report, ...]:
    """Test every log of a study, or of a problem, for all known faults.

    Parameters
    ----------
    source : Study or Problem
        As `read_study` reads it; or of logs in memory, with torques.
    progress : callable
        Called with the name of a step and the share of it that is done.

    Returns
    -------
    tuple of Report
        One a log, in order.

    Raises
    ------
    InputError
        For logs that cannot be read, or that do not belong to the robot.

    Examples
    --------
    >>> for report in di.doctor(di.read_study("study.toml")):
    ...     print(report.log, [found.found for found in report.findings])
    run1.csv [...]
    run2.csv [...]
    >>> len(di.doctor(di.Problem(robot, samples)))
    1
    """
    if isinstance(source, Problem):
        return examine_problem(source)
    check_type("doctor", source, Study, "dynident.read_study(path), or a Problem of logs")
    study, whole = source, load_study_robot(source)
    robot = whole.bare  # what sensors in the chain feel is not looked at
    if robot.carrier is not None:
        raise InputError(
            f"{study.robot.file}: dynident doctor examines whole robots; leave out beyond = "
            f"{robot.base_link!r} to look at these logs"
        )
    logs = read_study_logs(study, whole, torque=study.controller is None, progress=progress)
    felt = {gauge.name for gauge, _ in whole.sensed}
    logs = [
        replace(log, wrenches={k: own for k, own in log.wrenches.items() if k not in felt})
        for log in logs
    ]
    progress("doctor", 0.0)
    blind = any(log.torque in ("none", "law") for log in logs)
    if study.controller is None and robot.floating:  # what moves a base is measured all the same
        blind = False
    if blind:
        loop = build_study_simulation(study, robot, logs)
        every, notes = look_at_encoders(build_study_idim(study, robot), loop, logs)
    elif all(has_only_joint_torques(robot, log) for log in logs):
        known = None if study.controller is None else build_study_simulation(study, robot, logs)
        every, notes = examine_joint_logs(build_study_idim(study, robot), logs, known)
    else:
        every, notes = examine_generalised_logs(build_study_problem(study, robot, logs))
    found = zip(study.log, logs, every, notes, strict=True)
    return tuple(
        report_log(
            robot, log, findings, beside, read_options(LogRepair, section), section.rate, blind
        )
        for section, log, findings, beside in found
    )


def examine_problem(problem: Problem) -> tuple[Report, ...]:
    """The same on logs in memory: sensors in the chain are not looked at, nor encoders alone."""
    if problem.robot.carrier is not None:
        raise InputError("dynident.doctor examines whole robots, not a limb beyond a force sensor")
    if not problem.robot.floating and any(log.torque != "measured" for log in problem.samples):
        raise InputError(
            "dynident.doctor examines logs without torques by their controller's law: give a study "
            "with [controller] (dynident.read_study)"
        )
    if problem.robot.sensed:
        problem = problem.without_limbs()
    if all(has_only_joint_torques(problem.robot, log) for log in problem.samples):
        every, notes = examine_joint_logs(problem.idim, problem.samples)
    else:
        every, notes = examine_generalised_logs(problem)
    return tuple(
        report_log(problem.robot, log, findings, beside, LogRepair(), None, False)
        for log, findings, beside in zip(problem.samples, every, notes, strict=True)
    )


def render_repaired_study(text: str, reports: Sequence[Report]) -> str:
    """The text of a study with its logs repaired; all else, comments too, stays as it is."""
    document: Any = tomlkit.parse(text)
    for table, report in zip(document["log"], reports, strict=True):
        for undone in {option.name for option in list_options(LogRepair)} & {*table}:
            del table[undone]
        for key, value in report.repair.given.items():
            table[key] = convert_to_toml(value)
        for signal, unit in report.units.items():
            units = table.setdefault("units", tomlkit.inline_table())
            units[signal] = convert_to_toml(unit)
        for key, value in report.keys.items():
            table[key] = convert_to_toml(value)
        if report.gravity is not None:
            document["robot"]["gravity"] = convert_to_toml(report.gravity)
    return tomlkit.dumps(document)


def convert_to_toml(value: Any) -> Any:
    """Tuples as lists, as TOML has them, tables on one line."""
    if isinstance(value, dict):
        table = tomlkit.inline_table()
        table.update({key: convert_to_toml(own) for key, own in value.items()})
        return table
    return list(value) if isinstance(value, tuple) else value
