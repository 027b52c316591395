"""What the doctor says of each log on its own, and what repairs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import InPython, Options
from dynident.core.schema import Flag
from dynident.diagnosis.encoders import examine_encoders, follows_law
from dynident.diagnosis.examine import USUAL, Finding, examine
from dynident.diagnosis.signs import DEAD, STILL, Sign, find_signs
from dynident.diagnosis.thresholds import WORTH
from dynident.dynamics.base import BaseParameters, base_parameters, find_observed_base
from dynident.dynamics.idim import Idim, build_idim
from dynident.estimators.closed_loop import Simulation
from dynident.recording.checks import PARTS
from dynident.recording.prepare import Samples
from dynident.recording.repairs import LogRepair, format_keys, tell_repair
from dynident.regression.generalised import generalise_samples, has_only_joint_torques
from dynident.regression.problem import Problem
from dynident.regression.standing import MountError, check_bearing
from dynident.regression.weighted import solve_wls
from dynident.robot.model import Robot


@dataclass(frozen=True)
class Doctor(Options):
    """Whether logs are looked at."""

    doctor: Annotated[
        Flag,
        "test each log for faults (signs, units, delays) that would explain it better; "
        "nothing is repaired",
    ] = True
    law: Annotated[
        Simulation | None,
        InPython(),
        "closed loop whose control law the torques of logs with targets have to obey, for the "
        "doctor",
    ] = None


@dataclass(frozen=True)
class Report:
    """What the doctor found in one log.

    Attributes
    ----------
    findings : tuple of Finding
        Each of the log after those before it were repaired.
    repair : LogRepair
        All that repairs it, with what the study repairs already.
    units : dict of str to str or tuple of str
        Of its positions, and of its time, where these are to be changed.
    keys : dict of str to value
        Of the log's table beside these, what is to be changed: how the base's sensors are mounted,
        and its rate.
    gravity : tuple of float, or None
        Of the robot, where that is to be changed [m/s^2].
    repairable : bool
        Whether a study can undo something of it.
    warnings : tuple of str
        Of reading and preparing it.
    """

    log: str
    findings: tuple[Finding, ...]
    signs: tuple[Sign, ...]
    repair: LogRepair
    units: Mapping[str, str | tuple[str, ...]]
    keys: Mapping[str, Any]
    gravity: tuple[float, ...] | None
    repairable: bool
    warnings: tuple[str, ...] = ()

    @property
    def dead(self) -> tuple[Sign, ...]:
        """Signs of torques that are one number throughout, which come first."""
        return tuple(sign for sign in self.signs if sign.kind == DEAD)


OF_MOTORS = (
    "compare the log's columns of these motors with the robot's joints, those of positions and of "
    "torques, and name them in the joints' order in columns: their gear ratios differ, so order, "
    "which applies to the joints' signals, repairs nothing"
)
"""What is advised of motors' columns that are exchanged."""
Findings = tuple[Finding, ...]
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
    given: LogRepair,
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
    findings = withhold_orders(robot, [log], findings)
    repair, gravity = given, None
    units, keys = dict[str, str | tuple[str, ...]](), dict[str, Any]()
    for found in findings:
        if found.repair is not None:
            repair = repair.then(found.repair, robot.n)
        units |= {} if found.unit is None else {"q": found.unit}
        keys |= dict(found.keys)
        gravity = found.gravity or gravity
        if found.rate is not None:  # of a column of times, in another unit if in any
            quicker = found.rate / log.rate
            parts = {} if rate == log.rate else PARTS
            unit = next((u for u, x in parts.items() if abs(quicker / x - 1.0) < 1e-6), None)
            keys |= {"rate": found.rate, "clock": "rate"} if unit is None else {}
            units |= {} if unit is None else {"time": unit}
    repairable = repair != given or any((units, keys, gravity))
    told = {found.what for found in findings}
    shown = () if blind else find_signs(robot, log)
    beside = (*(sign for sign in shown if sign.what not in told), *beside)
    return Report(
        log.name, findings, beside, repair, units, keys, gravity, repairable, log.warnings
    )


def withhold_orders(
    robot: Robot, logs: Sequence[Samples], findings: Iterable[Finding]
) -> tuple[Finding, ...]:
    """Findings without another order of columns where that is none of the joints' signals.

    Columns of motors whose gears differ, or their zeros, are not joints' in another order: what was
    found in such a log behind that was found of one that was repaired wrongly.
    """
    of_motors = {log.name for log in logs if log.of_motors}
    kept, eye = list[Finding](), np.eye(robot.n)
    reduction, zero, ended = robot.drives.reduction, robot.drives.zero, set[str]()
    for found in findings:
        if found.log in ended:
            continue
        orders = {} if found.repair is None else found.repair.order or {}
        moved = [eye[np.array(order) - 1] for order in orders.values()]
        same = all(
            np.allclose(reduction @ P, P @ reduction) and np.allclose(P @ zero, zero) for P in moved
        )
        if found.log in of_motors and not same:
            ended.add(found.log)
            found = replace(found, repair=None, remedy=OF_MOTORS)  # noqa: PLW2901
        kept.append(found)
    return tuple(kept)


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
            what, _, remedy = str(error).removeprefix(f"{log.name}: ").partition("; ")
            keys = error.keys if isinstance(error, MountError) else ()
            remedy = tell_repair(format_keys(keys)) if keys else remedy
            every[k] = (Finding(log.name, "gravity", what, remedy, 0.0, 0.0, keys=keys), *every[k])
        # what follows from what was found is not a sign of its own
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


def tell_faults(
    problem: Problem, validation: Sequence[Samples], loop: Simulation | None, usual: bool
) -> list[str]:
    """What is wrong with logs of which no model comes out, first of the signals, then of readings.

    Of logs of encoders alone by their loop. Nothing of logs with known torques, whose factors would
    be those of the model.
    """
    if loop is not None:
        return [each.words for each in find_encoder_faults(problem, validation, loop)]
    if "known" in problem.idim.needs:
        return []
    none = np.zeros(len(problem.idim.parameters))
    signs = [
        f"{log.name}: {sign.what}"
        for log in problem.samples
        for sign in find_signs(problem.robot, log)
        if sign.kind != STILL
    ]
    # of logs that no model explains anything explains a little
    faults = [
        fault.words
        for fault in find_log_faults(problem, validation, none, usual)
        if fault.before == fault.after or fault.share <= WORTH
    ]
    return [*signs[:1], *faults[:1]]


def find_faults(
    problem: Problem,
    validation: Sequence[Samples],
    theta: Array,
    usual: bool,
    loop: Simulation | None,
    blind: bool,
) -> tuple[Finding, ...]:
    """What the doctor finds wrong with the logs: by their torques, or of encoders alone."""
    if blind:
        assert loop is not None
        return find_encoder_faults(problem, validation, loop)
    return find_log_faults(problem, validation, theta, usual, loop)


def find_log_faults(
    problem: Problem,
    validation: Sequence[Samples],
    theta: Array,
    usual: bool = False,
    loop: Simulation | None = None,
) -> tuple[Finding, ...]:
    """What the doctor finds wrong with the logs.

    Those of a limb beyond a sensor are not examined, nor wrenches at sensors in the chain. Known
    torques are taken out by their factors.

    Parameters
    ----------
    usual : bool
        Whether logs are examined with the usual friction, for which the doctor's thresholds were
        found: the same is then wrong with a log whatever friction it decided.
    loop : Simulation, optional
        Whose law the torques obey.
    """
    if any(log.rests is not None for log in problem.samples):
        return ()
    if problem.robot.sensed:
        every = [*problem.samples, *(generalise_samples(problem.idim, log) for log in validation)]
        if any(log.torque != "measured" for log in every):
            return ()
        _, own = problem.idim.without_sensors(theta)
        validation = [log.without_limbs(problem.robot) for log in every[len(problem.samples) :]]
        return find_log_faults(problem.without_limbs(), validation, own, usual, loop)
    if not all(has_only_joint_torques(problem.robot, log) for log in problem.samples):
        if problem.robot.carrier is not None:
            return ()
        found = examine(problem.base, problem.samples)
    else:
        count = len(problem.samples)
        base, logs = remove_known_torques(problem.base, theta, (*problem.samples, *validation))
        if usual:
            plain = build_idim(base.idim.robot, rotor=base.idim.rotor, elements=base.idim.elements)
            base = find_observed_base(plain, base.observed)
        law = None if loop is None else loop.controller
        found = examine(base, logs[:count], logs[count:], law=law)
    told = (finding for own in found for finding in own)
    return withhold_orders(problem.robot, problem.samples, told)


def find_encoder_faults(
    problem: Problem, validation: Sequence[Samples], simulation: Simulation
) -> tuple[Finding, ...]:
    """What the doctor finds wrong with logs of encoders alone, in the loop as it is known."""
    every = (*problem.samples, *validation)
    if not follows_law(problem.idim, simulation.controller, every):
        return ()
    found = examine_encoders(
        problem.idim, simulation.controller, problem.samples, validation, simulation.bias
    )
    return tuple(finding for own in found for finding in own)
