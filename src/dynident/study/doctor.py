"""The doctor on a study's logs, and a copy of the study in which they are repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from dynident.api import remove_known_torques
from dynident.core.compiled import tells_compilations
from dynident.core.errors import InputError
from dynident.core.options import list_options, read_options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.threads import limit_to_one_thread
from dynident.diagnosis.encoders import examine_encoders, follows_law
from dynident.diagnosis.examine import USUAL, Finding, examine
from dynident.diagnosis.signals import Sign, find_signs
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import Idim, build_idim
from dynident.recording.mend import Mending
from dynident.recording.prepare import Samples
from dynident.regression.generalised import has_only_joint_torques
from dynident.regression.problem import Problem
from dynident.regression.standing import check_bearing
from dynident.regression.weighted import solve_wls
from dynident.robot.model import Robot
from dynident.study.study import (
    Study,
    build_study_idim,
    build_study_problem,
    build_study_simulation,
    load_study_robot,
    read_study_logs,
)


@dataclass(frozen=True)
class Report:
    """What the doctor found in one log.

    Attributes
    ----------
    findings : tuple of Finding
        Each of the log after those before it were repaired.
    mending : Mending
        All that repairs it, with what the study repairs already.
    unit : str, tuple of str, or None
        Of its positions, where that is to be changed.
    rate : float or None
        Of the log, where that is to be changed and is in the study [Hz].
    gravity : tuple of float, or None
        Of the robot, where that is to be changed [m/s^2].
    mendable : bool
        Whether a study can undo something of it.
    """

    log: str
    findings: tuple[Finding, ...]
    signs: tuple[Sign, ...]
    mending: Mending
    unit: str | tuple[str, ...] | None
    rate: float | None
    gravity: tuple[float, ...] | None
    mendable: bool


@tells_compilations
@limit_to_one_thread
def doctor(study: Study, progress: Progress = ignore_progress) -> tuple[Report, ...]:
    """Look for everything that may be wrong with every log of a study.

    Parameters
    ----------
    study : Study
        As `read_study` reads it.
    progress : callable
        Called with the name of a step and the share of it that is done.

    Returns
    -------
    tuple of Report
        One a log, in the order of the study.

    Raises
    ------
    InputError
        For logs that cannot be read, or that do not belong to the robot.

    Examples
    --------
    >>> for report in di.doctor(di.read_study("study.toml")):
    ...     print(report.log, [found.words for found in report.findings])
    """
    robot = load_study_robot(study).bare  # what sensors in the chain feel is not looked at
    if robot.carrier is not None:
        raise InputError(
            f"{study.robot.file}: dynident doctor takes whole robots; leave out beyond = "
            f"{robot.base_link!r} to look at these logs"
        )
    logs = read_study_logs(study, robot, torque=study.controller is None, progress=progress)
    progress("doctor", 0.0)
    reports = []
    every: Sequence[tuple[Finding, ...]]
    notes: tuple[tuple[Sign, ...], ...]
    blind = any(log.torque != "measured" for log in logs)
    if blind:
        every, notes = look_at_encoders(study, robot, logs), ((),) * len(logs)
    elif all(has_only_joint_torques(robot, log) for log in logs):
        base, bare = fit_known_torques(build_study_idim(study, robot), logs)
        every = examine(base, bare, thorough=True)
        notes = ((),) * len(logs)
    else:
        every, notes = examine_generalised_logs(study, robot, logs)
    for section, samples, findings, beside in zip(study.log, logs, every, notes, strict=True):
        given = read_options(Mending, section)
        mending, unit, rate, gravity = given, None, None, None
        for found in findings:
            if found.mending is not None:
                mending = mending.then(found.mending, robot.n)
            unit, gravity = found.unit or unit, found.gravity or gravity
            if section.rate is not None:
                rate = found.rate or rate
        mendable = mending != given or any((unit, rate, gravity))
        reports.append(
            Report(
                samples.name,
                findings,
                (*(() if blind else find_signs(robot, samples)), *beside),
                mending,
                unit,
                rate,
                gravity,
                mendable,
            )
        )
    return tuple(reports)


def look_at_encoders(
    study: Study, robot: Robot, logs: Sequence[Samples]
) -> tuple[tuple[Finding, ...], ...]:
    """What is wrong with logs without torques, by the law of the study's controller."""
    idim, loop = build_study_idim(study, robot), build_study_simulation(study, robot, logs)
    if not follows_law(idim, loop.controller, logs):
        raise InputError(
            "logs without torques are looked at by their targets (qref) and the law of p, pd or "
            "p-p of a fixed robot whose file has inertials"
        )
    return examine_encoders(idim, loop.controller, logs, bias=loop.bias, thorough=True)


def fit_known_torques(
    idim: Idim, logs: Sequence[Samples]
) -> tuple[BaseParameters, Sequence[Samples]]:
    """The base parameters of a model without its known torques, and the logs without them.

    Their factors are those of least squares with usual friction.
    """
    if "known" not in idim.needs:
        return base_parameters(idim), logs
    usual = base_parameters(build_idim(idim.robot, USUAL, idim.rotor, elements=idim.elements))
    beta, _, _ = solve_wls(Problem.of(usual, logs).factors)
    _, bare = remove_known_torques(usual, usual.standard(beta), logs)
    rest = [each for each in idim.elements if "known" not in each.model.needs]
    own = build_idim(idim.robot, idim.friction, idim.rotor, idim.shape, rest)
    return base_parameters(own), bare


def examine_generalised_logs(
    study: Study, robot: Robot, logs: Sequence[Samples]
) -> tuple[tuple[tuple[Finding, ...], ...], tuple[tuple[Sign, ...], ...]]:
    """What is wrong with logs of a floating robot, of contacts or locked joints.

    Gravity and the log's other sensors are asked, too, as before each identification: what they
    refuse is a finding, and of what they warn a sign where nothing else was found.
    """
    problem = build_study_problem(study, robot, logs)
    every = list(examine(problem.base, problem.samples, thorough=True))
    notes: list[tuple[Sign, ...]] = []
    for k, log in enumerate(problem.samples):
        said: tuple[str, ...] = ()
        try:
            said = check_bearing(problem.idim, log)
        except InputError as error:
            what, _, mend = str(error).removeprefix(f"{log.name}: ").partition("; ")
            every[k] = (Finding(log.name, "gravity", what, mend, 0.0, 0.0), *every[k])
        # what follows from what was found is no sign of its own
        said = () if every[k] else said
        notes.append(tuple(Sign("gravity", note.removeprefix(f"{log.name}: ")) for note in said))
    return tuple(every), tuple(notes)


def render_mended_study(path: Path, reports: Sequence[Report]) -> str:
    """The text of a study with its logs repaired; all else, comments too, stays as it is."""
    document: Any = tomlkit.parse(path.read_text(encoding="utf-8-sig"))
    for table, report in zip(document["log"], reports, strict=True):
        for undone in {option.name for option in list_options(Mending)} & {*table}:
            del table[undone]
        for key, value in report.mending.given.items():
            table[key] = convert_to_toml(value)
        if report.unit is not None:
            units = table.setdefault("units", tomlkit.inline_table())
            units["q"] = convert_to_toml(report.unit)
        if report.rate is not None:
            table["rate"] = report.rate
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
