"""The front door: from a problem to an `Identification`, and from that to other logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.constraints import described
from dynident.consistency.disbelief import far
from dynident.core.arrays import Array, Booleans
from dynident.core.errors import ComputationError, InputError, expect
from dynident.core.options import Options, chosen, table
from dynident.core.progress import Progress, Stopwatch, silent
from dynident.core.threads import one_thread
from dynident.diagnosis.afloat import examine_floating
from dynident.diagnosis.examine import Doctor, Finding, examine, unexplained
from dynident.diagnosis.signals import signs
from dynident.diagnosis.standing import check_bearing
from dynident.diagnosis.verdict import (
    DOUBTFUL,
    GROWN,
    Reason,
    contradiction_reasons,
    error_reasons,
    excitation_reasons,
    finding_reasons,
    held_out_reasons,
    limit_reasons,
    negative_reasons,
    sign_reasons,
    standstill_reasons,
    verdict,
)
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.equations import PLAIN
from dynident.dynamics.idim import build_idim
from dynident.estimators import OWN_SHAPES, TORQUE_FREE, Estimate
from dynident.estimators.closed_loop import (
    FreeError,
    SimulatedFigure,
    Simulation,
    auxiliary_model,
    free_errors,
    law_driven,
    simulated_figures,
    stiffness_warnings,
)
from dynident.estimators.options import (
    SIMULATION,
    check_options,
    estimate,
    families,
    in_effect,
    names_of,
)
from dynident.estimators.ranges import Region
from dynident.estimators.shape_search import EXACT, begun
from dynident.estimators.shapes import with_shapes
from dynident.friction.energy import check_passive
from dynident.recording.floating import from_rpy, rotation, to_rpy
from dynident.recording.prepare import Samples, moving_joints
from dynident.recording.recording import Recording
from dynident.regression.factors import UNEXCITED, System
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem
from dynident.regression.row_kinds import ROWS, RowKind
from dynident.regression.scatter import LackOfFit, lack_of_fit, scatter_of
from dynident.regression.statistics import confidence_interval
from dynident.regression.weighted import weakest_combination
from dynident.results.figures import (
    MOVING,
    FitFigure,
    Scoring,
    check_lowpass,
    edge_samples,
    fitted_figure,
    model_figures,
    standstill,
)
from dynident.results.identification import Identification
from dynident.results.result import ValidationFigures
from dynident.robot.model import Robot

POOR_CONDITION = 1000.0
POOR_FIT_PERCENT = 50.0
NO_TORQUE = 1e-200
"""Sum of squared torques that is none: its square roots and quotients are no longer numbers."""
CONSTRAINTS = "constraints"
LINEAR = 0.03
"""Turn of a sensor whose square is no longer left out [rad]."""


EVERY_METHOD: tuple[type[Options], ...] = (RowKind, Scoring, Doctor)
"""Families of options that are of the identification, whatever the method."""


@one_thread
def identify(
    problem: Problem,
    method: str = "pc-idim-ls",
    *,
    validation: Sequence[Samples] = (),
    progress: Progress = silent,
    **options: Any,
) -> Identification:
    """Identify a model and measure it.

    Parameters
    ----------
    problem : Problem
    method : str
        Name in `dynident.estimators.ESTIMATORS`.
    validation : sequence of Samples
        Held-out logs.
    progress : callable
        See `Progress`.
    **options
        Those of the method, and of every method, by name; None is not given. The reference
        page of options has them all.

    Returns
    -------
    Identification

    Raises
    ------
    InputError
        For unknown names and options that the method does not have or admit.
    ComputationError
        When no trustworthy answer came out.
    """
    expect("identify", problem, Problem, "dynident.Problem(robot, samples) makes one")
    watch = Stopwatch()
    given = {name: plain(value) for name, value in options.items() if value is not None}
    common = {name: given.pop(name) for name in table(EVERY_METHOD) if name in given}
    kind, scoring, doctor = (chosen(family, common) for family in EVERY_METHOD)
    check_options(method, given)
    progress("rows", 0.0)
    validation = problem.on(validation).samples if validation else ()
    blind = any(lacks_torque(log) for log in (*problem.samples, *validation))
    if blind:
        refuse_torque_methods(problem, method)
        given[SIMULATION] = given[SIMULATION].of_encoders()
        problem = problem.on([with_law(log, given[SIMULATION]) for log in problem.samples])
        validation = tuple(with_law(log, given[SIMULATION]) for log in validation)
    logs = (*problem.samples, *validation)
    borne = [
        note
        for log in logs
        if isinstance(log, GeneralisedSamples)
        for note in check_bearing(problem.idim, log)
    ]
    require_torque(problem)

    own_shapes = method in OWN_SHAPES or (blind and method == "cloe")
    rows = ROWS[kind.rows]
    problem, fitted, found = fit_model(problem, method, rows, own_shapes, given, progress, watch)
    factors = fitted.factors
    noise = scatter_of(fitted, found.beta)
    fit = None if noise is None else lack_of_fit(fitted, found.beta, found.sigma, noise)
    if fit is not None:
        found = replace(found, tests=(*found.tests, fit.test))

    progress("validation", 0.0)
    lowpass_hz = scoring.lowpass_hz
    if lowpass_hz is None:
        lowpass_hz = max(f.cutoff for log in problem.samples for f in log.filters)
    base = problem.base
    theta = base.standard(found.beta) if found.theta is None else found.theta
    simulation = fitted_loop(given[SIMULATION], found) if SIMULATION in given else None
    identification, of_nominal = model_figures(problem, theta, lowpass_hz, scoring.score)
    simulated, stiff = loop_figures(problem, simulation, found, theta)
    held_out = tuple(
        replace(
            ValidationFigures(
                log.name, *model_figures(problem.on(log), theta, lowpass_hz, scoring.score)
            ),
            free=()
            if simulation is None or found.fitted is None
            else held_out_errors(problem, log, simulation, theta),
        )
        for log in validation
    )
    watch.lap("validation")

    findings: tuple[Finding, ...] = ()
    if doctor.doctor and not blind:
        progress("doctor", 0.0)
        findings = examined(problem, validation, theta)
        watch.lap("doctor")

    system = factors.weighted(found.sigma)
    condition, rank, _ = system.condition()
    warnings = [
        *problem.robot.warnings,
        *(note for log in logs for note in log.warnings),
        *borne,
        *check_lowpass(lowpass_hz, logs),
        *unfitted_warnings(fitted),
        *(() if blind and found.fitted is not None else poor_fit_warnings(identification[0])),
        *found.warnings,
        *([] if fit is None else lack_of_fit_warnings(fit, factors.names)),
        *stiff,
        *(() if found.fitted is not None else excitation_warnings(fitted, system, found)),
        *disbelief_warnings(problem, found),
        *sensor_warnings(problem, theta),
        *passivity_warnings(problem, theta),
    ]
    return Identification(
        method=method,
        base=base,
        estimate=found,
        samples=problem.samples,
        held_out=tuple(validation),
        lowpass_hz=lowpass_hz,
        identification=identification,
        nominal=of_nominal,
        validation=held_out,
        simulated=simulated,
        condition_number=condition,
        rank=rank,
        settings={
            **model_settings(problem, method, {**common, "rows": kind.rows}, given, found),
            "lowpass_hz": lowpass_hz,
            "score": scoring.score,
            "logs": [log_settings(log, lowpass_hz) for log in problem.samples],
            "validation": [log_settings(log, lowpass_hz) for log in validation],
        },
        warnings=tuple(dict.fromkeys(warnings)),
        timings=watch.total(),
        verdict=verdict(
            position_reasons(found, simulated, held_out)
            if found.fitted is not None
            else [
                *reasons(problem, system, findings, identification, of_nominal, held_out),
                *drive_reasons(problem, found),
                *rest_reasons(problem, found),
            ],
            len(logs),
        ),
        findings=findings,
    )


def fit_model(
    problem: Problem,
    method: str,
    rows: Callable[[Problem], Problem],
    own_shapes: bool,
    given: Mapping[str, Any],
    progress: Progress,
    watch: Stopwatch,
) -> tuple[Problem, Problem, Estimate]:
    """The estimate of a method.

    Parameters
    ----------
    problem : Problem
    method : str
    rows : callable
        Which rows are fitted.
    own_shapes : bool
        Whether the method itself estimates what the torque is not linear in.
    given : mapping
        Options of the method.
    progress : callable
    watch : Stopwatch

    Returns
    -------
    problem, fitted : Problem
        With the shapes that were found; and the same, of the rows that were fitted.
    found : Estimate
    """
    if problem.idim.nonlinear and not own_shapes:
        progress("shapes", 0.0)
        problem, found = nonlinear(problem, method, rows, given, progress)
        watch.lap("shapes")
        return problem, rows(problem), found
    fitted = rows(problem)
    _ = fitted.factors
    watch.lap("rows")
    progress("estimate", 0.0)
    found = estimate(fitted, method, progress, **given)
    watch.lap("estimate")
    if found.shape is not None:
        problem = problem.shaped(found.shape.values)
    return problem, rows(problem) if problem.idim.nonlinear else fitted, found


def loop_figures(
    problem: Problem, simulation: Simulation | None, found: Estimate, theta: Array
) -> tuple[tuple[SimulatedFigure, ...], list[str]]:
    """Errors of the motions that a model makes in the loop, and what is to be said of them.

    Parameters
    ----------
    problem : Problem
    simulation : Simulation or None
        The loop; none of methods that do not simulate it.
    found : Estimate
    theta : ndarray
        Standard parameters.
    """
    if simulation is None:
        return (), []
    auxiliary = auxiliary_model(problem, simulation)
    figures = simulated_figures(auxiliary, theta)
    if found.fitted is not None:
        free = free_errors(problem, simulation, theta)
        figures = tuple(replace(each, free=own) for each, own in zip(figures, free, strict=True))
    return figures, stiffness_warnings(auxiliary, theta)


def examined(problem: Problem, validation: Sequence[Samples], theta: Array) -> tuple[Finding, ...]:
    """What the doctor finds wrong with the logs, of which a limb's beyond a sensor are not read.

    Parameters
    ----------
    problem : Problem
    validation : sequence of Samples
        Held-out logs.
    theta : ndarray
        Standard parameters: what friction remembers is taken from the torques by them.
    """
    if any(isinstance(log, GeneralisedSamples) for log in problem.samples):
        if problem.robot.carrier is not None:
            return ()
        found = examine_floating(problem.base, problem.samples)
    else:
        count = len(problem.samples)
        base, logs = without_known(problem.base, theta, (*problem.samples, *validation))
        found = examine(base, logs[:count], logs[count:])
    return tuple(finding for own in found for finding in own)


def nonlinear(
    problem: Problem,
    method: str,
    rows: Callable[[Problem], Problem],
    given: Mapping[str, Any],
    progress: Progress,
) -> tuple[Problem, Estimate]:
    """The estimate of a method where friction has shapes or bears loads, and its problem.

    Methods that search ranges search the shapes; what is linear then is their exact optimum's.

    Parameters
    ----------
    problem : Problem
    method : str
    rows : callable
        Which rows are fitted.
    given : mapping
        Options of the method.
    progress : callable

    Raises
    ------
    ComputationError
        When the shapes do not settle.
    """
    linear, words = method, ""
    if Region in families(method).values():
        problem, words = begun(problem, method, given, progress)
        linear = EXACT.get(method, method)
    own = {key: value for key, value in given.items() if key in names_of(linear)}
    plainly = {"bootstrap": 0} if Bootstrap in families(linear).values() else {}
    problem, found = with_shapes(
        problem,
        lambda here: estimate(rows(here), linear, **own),
        lambda here: estimate(rows(here), linear, **{**own, **plainly}),
        progress,
    )
    return problem, replace(found, message=f"{words}; {found.message}") if words else found


def reasons(
    problem: Problem,
    system: System,
    findings: Sequence[Finding],
    fitted: Sequence[FitFigure],
    nominal: Sequence[FitFigure],
    held_out: Sequence[ValidationFigures],
) -> list[Reason]:
    """All that speaks against a result.

    Parameters
    ----------
    problem : Problem
    system : System
        Weighted rows.
    findings : sequence of Finding
    fitted, nominal : sequence of FitFigure
        Errors of the model and of the robot file, first of the fitted rows.
    held_out : sequence of ValidationFigures
    """
    every = finding_reasons(findings)
    for log in problem.samples:
        if isinstance(log, GeneralisedSamples):
            continue
        peaks = np.max([np.max(np.abs(log.tau[a:b]), axis=0) for a, b in log.runs], axis=0)
        limits = np.array([joint.effort for joint in problem.robot.joints])
        every += limit_reasons(log.name, peaks, limits)
        every += sign_reasons(log.name, problem.robot.joint_names, signs(problem.robot, log))
    every += excitation_reasons(system.condition()[1], problem.base.count)
    free = fitted_figure(problem.factors, system.solve())
    error = fitted[0].overall_percent
    # of a floating robot's joints the rows have what its contacts leave of the torques
    told = int(problem.robot.floating)
    own = fitted[told]
    every += error_reasons(
        "all samples" if told else "fitted rows",
        [joint.name for joint in own.joints],
        percents(own),
        percents(*nominal[told : told + 1]),
        left_over(problem.robot, own),
        spared(problem.robot),
    )
    every += contradiction_reasons(error, free.overall_percent)
    for figures in held_out:
        own = figures.entries[told]
        known = percents(*figures.nominal[told : told + 1])
        left = left_over(problem.robot, own)
        names = [joint.name for joint in own.joints]
        wrench = spared(problem.robot)
        every += error_reasons(figures.log, names, percents(own), known, left, wrench)
        every += held_out_reasons(figures.log, figures.entries[0].overall_percent, error)
    return every


def rest_reasons(problem: Problem, found: Estimate) -> list[Reason]:
    """Coulomb friction that is fitted to rows at standstill, too."""
    idim, n, rest = problem.idim, problem.robot.n, found.residuals
    rub = [c.turns for c in idim.drive_columns if c.parameter.symbol.startswith("fc")]
    if problem.robot.floating or not rub:
        return []
    speeds = np.max([standstill(log) for log in problem.samples], axis=0)
    drives = problem.robot.drives
    moving = [moving_joints(log.dq, tuple(speeds), drives) for log in problem.samples]
    shares, times = np.zeros(n), np.full(n, np.nan)
    for j in np.flatnonzero(np.any(rub, axis=0)):
        still = np.zeros(len(rest.error[j]), dtype=bool)
        for k, own in enumerate(moving):
            here = rest.log[j] == k
            still[here] = ~own[rest.sample[j][here], j]
        if 0 < np.sum(still) < len(still):
            squares = rest.error[j] ** 2
            shares[j] = np.mean(still)
            times[j] = np.sqrt(np.mean(squares[still]) / np.mean(squares[~still]))
    return standstill_reasons(problem.robot.joint_names, shares, times, speeds)


def drive_reasons(problem: Problem, found: Estimate) -> list[Reason]:
    """Rotors and friction that no drive can have."""
    base, idim = problem.base, problem.idim
    own = [
        k
        for k, place in enumerate(base.kept)
        if idim.positive[place] and place >= idim.inertial and not np.any(base.K[k])
    ]
    names = [base.names[k] for k in own]
    return negative_reasons(names, found.beta[own], found.covariance.std[own])


def percents(*figures: FitFigure) -> list[float]:
    """Errors of the joints of a figure, or none."""
    return [joint.relative_percent for figure in figures for joint in figure.joints]


def left_over(robot: Robot, figure: FitFigure) -> Array:
    """What is left of the joints' torques, as shares of their drives' effort limits."""
    rest = np.nan_to_num(np.array([joint.rmse for joint in figure.joints]))
    errors = np.nan_to_num(np.array(percents(figure))) / 100.0
    if robot.floating:
        return left_of_wrench(robot, rest, errors)
    torque = np.divide(rest, errors, out=np.zeros_like(rest), where=errors > 0.0)
    return unexplained(robot, torque, errors)


def spared(robot: Robot) -> int:
    """First entries of a figure of which a small rest is the noise of force sensors."""
    return 6 * robot.floating


def left_of_wrench(robot: Robot, rest: Array, errors: Array) -> Array:
    """The same of a floating robot: of its base's wrench, shares of its weight, on a limb's lever.

    Of combinations that are free of contacts, the last, nobody knows a limit.
    """
    size = np.divide(rest, errors, out=np.zeros_like(rest), where=errors > 0.0)
    shares = np.full(len(rest), np.inf)
    weight = max(float(np.max(size[:3])), NO_TORQUE)
    shares[:3] = rest[:3] / weight
    shares[3:6] = rest[3:6] / max(float(np.max(size[3:6])), weight * robot.reach)
    joints = slice(6, 6 + robot.n)
    shares[joints] = unexplained(robot, size[joints], errors[joints])
    return shares


def position_reasons(
    found: Estimate, fitted: Sequence[SimulatedFigure], held_out: Sequence[ValidationFigures]
) -> list[Reason]:
    """What speaks against drives that were fitted to positions."""
    every = [Reason(DOUBTFUL, f"{name} holds the fit back") for name in found.active]
    if found.fitted is not None:
        every += [Reason(DOUBTFUL, words) for words in found.fitted.doubts]
    squares = [each.free[-1].rms ** 2 for each in fitted]
    known = float(np.sqrt(np.mean(squares)))
    for figures in held_out:
        error = float(np.sqrt(np.mean(figures.free[-1].rms ** 2)))
        if error > GROWN * known:
            words = f"{1e3 * error:.2g} mrad on held-out {figures.log}, {1e3 * known:.2g} fitted"
            every.append(Reason(DOUBTFUL, words))
    return every


def lacks_torque(log: Samples) -> bool:
    """Whether a log has no torques, and equations that take them."""
    if isinstance(log, GeneralisedSamples) and log.observed.equations == "base":
        return False
    return log.torque != "measured"


def refuse_torque_methods(problem: Problem, method: str) -> None:
    """Refuse methods that fit torque on logs without.

    Raises
    ------
    InputError
    """
    if method not in TORQUE_FREE:
        called = ", ".join(log.name for log in problem.samples if lacks_torque(log))
        raise InputError(
            f"{called}: has no torque, which method {method} fits; under a [controller] cloe fits "
            "positions, and clie the law's torque"
        )


def with_law(log: Samples, simulation: Simulation) -> Samples:
    """A log without torque with that of the controllers' law in its place."""
    return log if log.torque == "measured" else law_driven(log, simulation)


def fitted_loop(simulation: Simulation, found: Estimate) -> Simulation:
    """The loop as an estimate has it, where it was fitted with the drives."""
    return simulation if found.fitted is None else found.fitted.loop


def held_out_errors(
    problem: Problem, log: Samples, simulation: Simulation, theta: Array
) -> tuple[FreeError, ...]:
    """Errors of free simulations of a held-out log."""
    own = replace(simulation, references=None, external=None)
    return free_errors(problem.on(log), own, theta)[0]


def plain(value: Any) -> Any:
    """A number of numpy as a plain one, as a result writes it."""
    return value.item() if isinstance(value, np.generic) else value


def require_torque(problem: Problem) -> None:
    """Refuse logs that say nothing of the robot.

    Raises
    ------
    ComputationError
    """
    if max(np.max(np.sum(log.tau**2, axis=0)) for log in problem.samples) < NO_TORQUE:
        called = ", ".join(log.name for log in problem.samples)
        raise ComputationError(
            f"{called}: the torque is zero throughout, which says nothing of the robot; "
            "check the torque columns"
        )


def poor_fit_warnings(fitted: FitFigure) -> list[str]:
    """A model that leaves most of the torque unexplained, in words."""
    if fitted.overall_percent <= POOR_FIT_PERCENT:
        return []
    return [
        f"the model leaves {fitted.overall_percent:.0f} % of the torque unexplained; check the "
        "signs, units and order of the joints' columns"
    ]


def unfitted_warnings(problem: Problem) -> list[str]:
    """Joints of which no row is fitted, but those whose equations no log states."""
    stated = np.any([stated_at_all(log) for log in problem.samples], axis=0)
    return [
        f"no row of {group.name} is fitted: drop_below is above its speed"
        for group, possible in zip(problem.factors.groups, stated, strict=False)
        if possible and not group.rows
    ]


def stated_at_all(log: Samples) -> Booleans:
    """Equations that a log states at some of its samples, shape (dof,)."""
    stated = log.stated if isinstance(log, GeneralisedSamples) else None
    if stated is None:
        return np.ones(log.moving.shape[1], dtype=bool)
    return np.asarray(np.any([stated[a:b].any(axis=0) for a, b in log.segments], axis=0))


def lack_of_fit_warnings(fit: LackOfFit, names: Sequence[str]) -> list[str]:
    """Joints whose errors are more than the noise that the periods show, in words."""
    sizes = [f"{name} {fit.ratio[names.index(name)]:.2g} times" for name in fit.rejected]
    if not sizes:
        return []
    return [
        f"the errors exceed the noise between periods ({', '.join(sizes)}): the model, and not "
        "noise, limits the fit there"
    ]


def excitation_warnings(problem: Problem, system: System, found: Estimate) -> list[str]:
    """What the log does not determine well, in words."""
    condition, _, _ = system.condition()
    notes = []
    if POOR_CONDITION < condition <= UNEXCITED:
        weakest = weakest_combination(problem, system)
        notes.append(f"condition number {condition:.0f}: the log hardly excites {weakest}")
    low, high = confidence_interval(found.beta, found.covariance.std)
    weak = int(np.sum((low <= 0.0) & (high >= 0.0)))
    if found.essential is None and weak:
        notes.append(
            f"{weak} of {len(low)} base parameters have a 95 % interval that contains zero: small "
            "values, or little excited"
        )
    return notes


def disbelief_warnings(problem: Problem, found: Estimate) -> list[str]:
    """Links about which the log takes the estimate far from the robot file, prior or not."""
    robot, links = problem.robot, []
    for own in found.disbelieved:
        nominal = robot.nominal[own.body, 0]
        words = f"{own.mass * nominal:.3g} kg, in the file {nominal:.3g} kg"
        if not far(own.mass):
            words += f"; of its moments up to {own.most:.2g} times"
        links.append(f"{robot.links[own.body]} ({words})")
    return [f"the log disagrees with the robot file about {', '.join(links)}"] if links else []


def without_known(
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


def sensor_warnings(problem: Problem, theta: Array) -> list[str]:
    """Errors of force sensors that nothing tells from the bodies, or that are large."""
    idim, notes = problem.idim, []
    if idim.held:
        notes.append(
            f"{', '.join(idim.held)}: no motion of these logs can tell them from other parameters, "
            "so they are held at what [[contact]] states; let the base turn"
        )
    angles: dict[str, Array] = {}
    for value, column in zip(idim.sensor_values(theta), idim.sensor_columns, strict=True):
        if column.tilted:
            angles.setdefault(column.sensor.contact, np.zeros(3))[column.axis] = value
    for name, turned in angles.items():
        contact = next(each for each in idim.robot.contacts if each.name == name)
        if np.linalg.norm(turned) > LINEAR:
            rpy = to_rpy(from_rpy(contact.rpy) @ rotation(turned))
            notes.append(
                f"{name}: its sensor is turned by {np.degrees(np.linalg.norm(turned)):.2g} "
                "degrees, beyond what small angles hold for; identify again with rpy = "
                f"[{', '.join(f'{angle:.5g}' for angle in rpy)}] in [[contact]]"
            )
    return notes


def passivity_warnings(problem: Problem, theta: Array) -> list[str]:
    """Drives whose friction, by a law, gives energy away: a simulation of it would, too."""
    idim, notes = problem.idim, []
    rubbing = len(idim.frictions) - len(idim.elements)  # springs give back what they store
    for friction, linear in zip(idim.frictions[:rubbing], idim.linear(theta), strict=False):
        if friction.model.law is None:
            continue
        gear = idim.gears[friction.gear]
        try:
            check_passive(friction.model, linear, np.array(idim.shape[friction.shape]))
        except InputError as error:
            drive = "motor of " * gear.coupled + problem.robot.joint_names[gear.number - 1]
            notes.append(f"{drive}: {error}")
    return notes


def model_settings(
    problem: Problem,
    method: str,
    common: Mapping[str, Any],
    given: Mapping[str, Any],
    found: Estimate,
) -> dict[str, Any]:
    """All that shaped an estimate, the logs aside."""
    settings: dict[str, Any] = {
        "friction": problem.idim.friction,
        "rotor": problem.idim.rotor,
        "method": method,
        **common,
        **in_effect(method, given),
        "prior": prior_name(found),
        "prior_in_words": found.prior or "none",
        "sigma": [float(s) for s in found.sigma],
        "gravity": [float(g) for g in problem.robot.gravity],
        "robot_file": str(problem.robot.source) if problem.robot.source else None,
    }
    if problem.base.observed != (PLAIN,):
        settings["observed"] = [asdict(each) for each in problem.base.observed]
    if given.get(CONSTRAINTS):
        settings[CONSTRAINTS] = [described(c) for c in given[CONSTRAINTS]]
    if SIMULATION in given:
        simulation: Simulation = given[SIMULATION]
        if found.fitted is not None:
            simulation = simulation.of_log(problem.samples[0])
        settings[SIMULATION] = simulation.settings()
    if found.essential is not None:
        names, test = problem.base.names, found.essential.test
        settings["eliminated"] = [names[k] for k in found.essential.eliminated]
        settings["essential_f_test"] = {
            "distribution": test.distribution,
            "statistic": test.statistic,
            "p_value": test.p_value,
        }
    return settings


def log_settings(log: Samples, lowpass_hz: float) -> dict[str, Any]:
    """All that shaped a log, and how many samples of it are in no figure."""
    return {**log.settings(), "edge_samples": edge_samples(log, lowpass_hz)}


def prior_name(estimate: Estimate) -> str:
    """Name of the prior that acted, as a study has it."""
    return "none" if estimate.prior in (None, "none") else "nominal"


def validate(
    result: Identification, log: Recording | Samples, *, lowpass_hz: float | None = None
) -> tuple[FitFigure, ...]:
    """Errors of an identified model on another log, on rows as those of the identification.

    Parameters
    ----------
    result : Identification
    log : Recording or Samples
        A recording is prepared with the cutoffs of the identification.
    lowpass_hz : float, optional
        As in the identification by default [Hz].

    Raises
    ------
    InputError
        When the log does not fit the robot or its filters, or the low-pass leaves nothing of it.
    ComputationError
        When the model predicts something that is not finite.
    """
    samples = log if isinstance(log, Samples) else result.prepare(log)
    lowpass_hz = lowpass_hz or result.lowpass_hz
    check_lowpass(lowpass_hz, [samples])
    score = "moving" if any(f.rows == MOVING for f in result.identification) else "all"
    figures, _ = model_figures(Problem.of(result.base, samples), result.theta, lowpass_hz, score)
    if not np.isfinite(figures[1].overall_percent):
        raise ComputationError(f"{samples.name}: the torque is zero throughout, so no error is")
    return figures
