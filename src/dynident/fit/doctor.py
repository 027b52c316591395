"""What the doctor says of each log on its own, and what repairs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.diagnosis.encoders import examine_encoders, follows_law
from dynident.diagnosis.examine import USUAL, Finding, examine
from dynident.diagnosis.signs import Sign, find_signs
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import Idim, build_idim
from dynident.estimators.closed_loop import Simulation
from dynident.recording.mend import Mending
from dynident.recording.prepare import Samples
from dynident.regression.problem import Problem
from dynident.regression.standing import check_bearing
from dynident.regression.weighted import solve_wls
from dynident.robot.model import Robot


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


Examined = tuple[tuple[tuple[Finding, ...], ...], tuple[tuple[Sign, ...], ...]]
"""What was found in each log, and what its signals show beside."""


def examine_joint_logs(
    idim: Idim, logs: Sequence[Samples], loop: Simulation | None = None
) -> Examined:
    """What is wrong with logs of the joints' torques alone, and by the law of their controller."""
    base, bare = fit_known_torques(idim, logs)
    law = None if loop is None else loop.controller
    return examine(base, bare, thorough=True, law=law), ((),) * len(logs)


def report_log(
    robot: Robot,
    log: Samples,
    findings: tuple[Finding, ...],
    beside: tuple[Sign, ...],
    given: Mending,
    rate: float | None,
    blind: bool,
) -> Report:
    """What was found in one log, and what repairs it beside what is repaired already.

    Parameters
    ----------
    beside : tuple of Sign
        Beside those of logs with torque.
    rate : float or None
        Of the log, where its study states it [Hz].
    blind : bool
        Whether some log has no torque.
    """
    mending, unit, other_rate, gravity = given, None, None, None
    for found in findings:
        if found.mending is not None:
            mending = mending.then(found.mending, robot.n)
        unit, gravity = found.unit or unit, found.gravity or gravity
        if rate is not None:
            other_rate = found.rate or other_rate
    mendable = mending != given or any((unit, other_rate, gravity))
    beside = (*(() if blind else find_signs(robot, log)), *beside)
    return Report(log.name, findings, beside, mending, unit, other_rate, gravity, mendable)


def look_at_encoders(idim: Idim, loop: Simulation, logs: Sequence[Samples]) -> Examined:
    """What is wrong with logs without torques, by the law of the controller."""
    if not follows_law(idim, loop.controller, logs):
        raise InputError(
            "logs without torques are looked at by their targets (qref) and the law of p, pd or "
            "p-p of a fixed robot whose file has inertials"
        )
    found = examine_encoders(idim, loop.controller, logs, bias=loop.bias, thorough=True)
    return found, ((),) * len(logs)


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


def examine_generalised_logs(problem: Problem) -> Examined:
    """What is wrong with logs of a floating robot, of contacts or locked joints.

    Gravity and the log's other sensors are asked, too, as before each identification: what they
    refuse is a finding, and of what they warn a sign where nothing else was found.
    """
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


def remove_known_torques(
    base: BaseParameters, theta: Array, logs: Sequence[Samples]
) -> tuple[BaseParameters, tuple[Samples, ...]]:
    """The model and the logs without known torques, by the factors that were found.

    Other readings of a log are told apart beside them.
    """
    idim, n = base.idim, base.idim.robot.n
    if "known" not in idim.needs:
        return base, tuple(logs)
    factors = idim.linear(theta)[len(idim.frictions) - len(idim.elements) :]
    rest = [e for e in idim.elements if "known" not in e.model.needs]
    read = []
    for log in (log.of_joints(idim.robot.joint_names) for log in logs):
        tau = log.tau.copy()
        for element, factor in zip(idim.elements, factors, strict=True):
            if "known" in element.model.needs and log.known is not None:
                tau -= factor[0] * np.outer(log.known[:, element.joint], element.turns(n))
        read.append(log.driven(tau))
    bare = build_idim(idim.robot, idim.friction, idim.rotor, idim.shape, rest)
    return base_parameters(bare), tuple(read)
