"""The front door: from a problem to a `Fit`, and from that to other logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from dynident.core.arrays import Array
from dynident.core.compiled import tells_compilations
from dynident.core.errors import ComputationError, InfeasibleError, InputError, check_type
from dynident.core.options import Options, build_options, collect_options
from dynident.core.progress import Progress, Stopwatch, ignore_progress
from dynident.core.side_by_side import HERE, Engine, Runner, choose_engine
from dynident.core.threads import limit_to_one_thread
from dynident.estimators.closed_loop import (
    FreeError,
    HinderedStretch,
    SimulatedFigure,
    Simulation,
    build_auxiliary_model,
    compare_with_simulation,
    fill_missing_torque,
    lacks_torque,
    warn_of_chatter,
)
from dynident.estimators.estimate import DrivesEstimate
from dynident.estimators.hindered import examine_free_motion, measure_free_motion
from dynident.estimators.instrumental import size_rejections
from dynident.fit.doctor import Doctor, Findings, find_faults, tell_faults
from dynident.fit.facts import gather_log_facts
from dynident.fit.figures import (
    MOVING,
    FitFigure,
    Scoring,
    check_lowpass,
    collect_log_settings,
    score_model,
    tell_torque_source,
)
from dynident.fit.floor import measure_floor
from dynident.fit.logs import LogsAtHand, put_logs_into_words
from dynident.fit.provenance import hash_log, record_provenance
from dynident.fit.reasons import list_position_reasons, list_smoothing_reasons
from dynident.fit.residuals import summarise_residuals
from dynident.fit.result import ValidationFigures
from dynident.fit.springs import weigh_springs
from dynident.fit.warnings import (
    find_repeated_logs,
    warn_of_lack_of_fit,
    warn_of_poor_fit,
    warn_of_repeated_logs,
    warn_of_unfitted_joints,
)
from dynident.methods import DEFAULT_METHOD, OWN_SHAPES, TORQUE_FREE, Estimate
from dynident.methods.keywords import IdentifyOptions
from dynident.methods.options import (
    SIMULATION,
    check_options,
    estimate,
    estimate_roughly,
    fits_positions,
    list_methods_with_option,
    list_option_families,
    list_option_names,
    refuse_absurd_estimate,
    refuse_idle_engine,
    refuse_loads,
    switch_error_bars_off,
)
from dynident.methods.settings import collect_model_settings
from dynident.recording.prepare import Preparation, Samples
from dynident.recording.read import Files
from dynident.recording.recording import Recording
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem, require_torque
from dynident.regression.row_kinds import ROWS, RowKind
from dynident.regression.scatter import LackOfFit, measure_scatter, run_lack_of_fit_test
from dynident.regression.standing import check_bearing
from dynident.report.fit import Fit, conclude_fit
from dynident.search.ranges import SearchRegion
from dynident.search.shape_search import EXACT, search_start_shapes
from dynident.search.shapes import (
    ProjectedSquares,
    estimate_with_shapes,
    follow_shapes,
    search_problem_shapes,
)

__all__ = [
    "EVERY_METHOD",
    "ProjectedSquares",
    "estimate_alone",
    "follow_shapes",
    "identify",
    "search_problem_shapes",
    "validate",
]

EVERY_METHOD: tuple[type[Options], ...] = (RowKind, Scoring, Doctor)
"""Families of options that are of the identification, whatever the method."""
ROUNDS, SETTLED, NEAR = 12, 1e-4, 1e-6
"""Linearisations of springs at most, and the change of stiffness that is none, as a share."""
EARLIER = {
    **dict.fromkeys(("columns", "units", "rate", "side"), "dynident.read_log(files, robot)"),
    **dict.fromkeys(collect_options([Preparation]), "dynident.prepare(recording)"),
    **dict.fromkeys(("friction", "rotor", "elements"), "dynident.Problem(robot, samples)"),
}
"""Options of what stands before the identification, and the calls that take them."""


@tells_compilations
@limit_to_one_thread
def identify(
    problem: Problem,
    method: str = DEFAULT_METHOD,
    *,
    validation: Sequence[Samples] = (),
    decided: Sequence[str] = (),
    searched: ProjectedSquares | None = None,
    progress: Progress = ignore_progress,
    engine: Runner = None,
    **options: Unpack[IdentifyOptions],
) -> Fit:
    """Identify a model and measure it.

    >>> fit = di.identify(problem, "pc-idim-ls", validation=[held_out])
    >>> fit.consistent
    True

    Parameters
    ----------
    problem : Problem
    method : str
        Name in `dynident.methods.ESTIMATORS`.
    validation : sequence of Samples
        Held-out logs.
    decided : sequence of str
        Settings of the problem that were decided from the logs, names of
        `dynident.decide.decision.DECISIONS`; the verdict does not question them.
    searched : ProjectedSquares, optional
        Shapes of the problem's friction found by
        `dynident.search.shapes.search_problem_shapes`; by default they are searched.
    progress : callable
        See `Progress`.
    engine : Engine, distributed.Client or str, optional
        What runs the bootstrap of a constrained method, and the evaluations of ga and pf; this
        process by default.
    **options
        Those of the method, and of every method, by name; None is not given. The reference
        page of options has them all.

    Raises
    ------
    InputError
        For unknown names, options that the method does not have or admit, and an engine for
        which it has no tasks.
    ComputationError
        When no trustworthy answer came out.
    """
    check_type("identify", problem, Problem, "dynident.Problem(robot, samples) makes one")
    watch = Stopwatch()
    asked = read_request(method, options, "friction" in decided, choose_engine(1, engine))
    progress("rows", 0.0)
    held_out = problem.on(validation).samples if validation else ()
    if any(lacks_torque(log) for log in (*problem.samples, *held_out)):
        problem, asked = see_without_torque(problem, asked)
        held_out = tuple(
            fill_missing_torque(log, asked.loop, problem.robot.passive) for log in held_out
        )
    logs = (*problem.samples, *held_out)
    unmeasured = [note for log in logs for note in check_bearing(problem.idim, log)]
    require_torque(problem)

    problem, fitted, found = fit_or_tell_faults(problem, held_out, asked, progress, watch, searched)
    found, lack = run_estimate_tests(problem, fitted, found, held_out)
    # what follows asks for torques along the motion, no more for rows of the regressor
    for each in (problem, fitted):
        each.source.release()

    progress("validation", 0.0)
    theta = list_standard(problem, found)
    figures = measure_estimate(problem, held_out, asked.simulation, found, theta, asked.scoring)
    floor, lacking = measure_floor(problem.idim, theta, logs, figures.lowpass_hz)
    watch.lap("validation")
    findings = find_faults_of_fit(problem, held_out, found, theta, asked, progress, watch)
    springs, untold = weigh_springs(problem, found, theta, held_out)

    facts = [gather_log_facts(problem.idim, log) for log in problem.samples]
    twins = find_repeated_logs(logs)
    positions = found.fitted is not None
    against = None
    if positions:
        against = list_position_reasons(
            problem, found, findings, figures.simulated, figures.held_out, held_out
        )
    return conclude_fit(
        problem,
        fitted,
        found,
        theta,
        facts,
        against=against,
        foreign=[*untold, *([] if asked.blind else list_smoothing_reasons(problem, theta))],
        rest="standstill" not in decided,
        logs_apart=len(logs) - len(twins),
        noticed=[
            *(note for log in logs for note in log.warnings),
            *unmeasured,
            *warn_of_repeated_logs(twins, held_out),
            *(note for each in figures.held_out for note in each.hindered),
            *check_lowpass(figures.lowpass_hz, logs),
            *warn_of_unfitted_joints(fitted, facts),
            *(() if asked.blind and positions else warn_of_poor_fit(figures.model[0])),
        ],
        beside=[
            *([] if lack is None else warn_of_lack_of_fit(lack, fitted.factors.names)),
            *figures.stiff,
        ],
        last=lacking,
        findings=findings,
        floor=floor,
        springs=springs,
        **describe_measurements(problem, held_out, asked, found, figures),
        timings=watch.total(),
    )


class IdentificationRequest(NamedTuple):
    """What is asked of an identification."""

    method: str
    given: dict[str, Any]
    common: dict[str, Any]
    """`given`, `common`: options of the method, and of every method, that were given."""
    rows: str
    """Name in `ROWS`."""
    scoring: Scoring
    doctor: Doctor
    usual: bool
    """Whether the friction was decided by the logs; see `find_faults`."""
    blind: bool = False
    """Whether a log lacks torque, for which the law of the loop then stands."""
    engine: Engine = HERE
    """Of what repeats in the method."""

    @property
    def simulation(self) -> Simulation | None:
        """The loop of a method that simulates one."""
        return self.given.get(SIMULATION)

    @property
    def loop(self) -> Simulation:
        """The loop of a method that cannot do without."""
        loop: Simulation = self.given[SIMULATION]
        return loop


def read_request(
    method: str, options: Mapping[str, Any], usual: bool = False, engine: Engine = HERE
) -> IdentificationRequest:
    """Options sorted by whose they are, and checked."""
    given, common = split_options(options)
    kind, scoring = build_options(RowKind, common), build_options(Scoring, common)
    doctor = build_options(Doctor, common)
    common.pop("law", None)  # tells what is wrong, and shapes no result
    check_options(method, given)
    refuse_idle_engine(method, engine)
    if SIMULATION in given:
        hint = "dynident.Simulation(controller) makes one"
        check_type(f"method {method}", given[SIMULATION], Simulation, hint)
    return IdentificationRequest(
        method, given, common, kind.rows, scoring, doctor, usual, engine=engine
    )


def fit_or_tell_faults(
    problem: Problem,
    held_out: Sequence[Samples],
    asked: IdentificationRequest,
    progress: Progress,
    watch: Stopwatch,
    searched: ProjectedSquares | None,
) -> tuple[Problem, Problem, Estimate]:
    """See `fit_model`; a fit that fails says what is wrong with the logs, too.

    Raises
    ------
    ComputationError
        As of the method, with what the doctor finds.
    """
    try:
        found = fit_model(problem, asked, progress, watch, searched)
        refuse_absurd_estimate(found[2])
    except InfeasibleError:
        raise  # of what was stated, not of the logs
    except ComputationError as error:
        if not asked.doctor.doctor:
            raise
        said = tell_faults(problem, held_out, asked.loop if asked.blind else None, asked.usual)
        if said:
            raise type(error)("; ".join([str(error), *said])) from error
        raise
    return found


def find_faults_of_fit(
    problem: Problem,
    held_out: Sequence[Samples],
    found: Estimate,
    theta: Array,
    asked: IdentificationRequest,
    progress: Progress,
    watch: Stopwatch,
) -> Findings:
    """What the doctor finds in the logs, given the fit; nothing where `doctor` is off."""
    if not asked.doctor.doctor:
        return ()
    progress("doctor", 0.0)
    loop = asked.given.get(SIMULATION, asked.doctor.law)
    loop = choose_fitted_loop(asked.loop, found) if asked.blind else loop
    findings = find_faults(problem, held_out, theta, asked.usual, loop, asked.blind)
    watch.lap("doctor")
    return findings


def describe_measurements(
    problem: Problem,
    held_out: Sequence[GeneralisedSamples],
    asked: IdentificationRequest,
    found: Estimate,
    figures: MeasuredErrors,
) -> dict[str, Any]:
    """Fields of a `Fit` that tell which logs were fitted how, and with what errors."""
    fitted, lowpass_hz = problem.samples, figures.lowpass_hz
    model = collect_model_settings(
        problem, asked.method, {**asked.common, "rows": asked.rows}, asked.given, found
    )
    logs = (*fitted, *held_out)
    return {
        "method": asked.method,
        "logs": LogsAtHand(fitted, tuple(held_out)),
        "log_words": (
            *put_logs_into_words(problem.idim, fitted, "identify"),
            *put_logs_into_words(problem.idim, held_out, "validate"),
        ),
        "residuals": summarise_residuals(found),
        "preparation": fitted[0].preparation,
        "lowpass_hz": lowpass_hz,
        "identification": figures.model,
        "nominal": figures.nominal,
        "validation": figures.held_out,
        "simulated": figures.simulated,
        "settings": {
            **model,
            "lowpass_hz": lowpass_hz,
            "score": asked.scoring.score,
            "logs": [collect_log_settings(log, lowpass_hz) for log in fitted],
            "validation": [collect_log_settings(log, lowpass_hz) for log in held_out],
        },
        "provenance": record_provenance(
            {log.name: hash_log(log) for log in logs}, {log.name: log.size for log in logs}
        ),
        "simulation": build_free_loop(asked.simulation, found),
    }


def estimate_alone(
    problem: Problem,
    method: str,
    *,
    searched: ProjectedSquares | None = None,
    start: Array | None = None,
    **options: Any,
) -> tuple[Problem, Array]:
    """What `identify` finds, without error bars, figures and verdict.

    Parameters
    ----------
    problem, method, searched, **options
        See `identify`.
    start : ndarray, optional
        See `estimate_with_shapes`.

    Returns
    -------
    Problem
        Of the model that was found.
    theta : ndarray
        Its full set.
    """
    asked = read_request(method, options)
    if any(lacks_torque(log) for log in problem.samples):
        problem, asked = see_without_torque(problem, asked)
    require_torque(problem)
    asked = asked._replace(given={**asked.given, **switch_error_bars_off(method)})
    problem, _, found = fit_model(problem, asked, ignore_progress, Stopwatch(), searched, start)
    refuse_absurd_estimate(found)
    return problem, list_standard(problem, found)


def see_without_torque(
    problem: Problem, asked: IdentificationRequest
) -> tuple[Problem, IdentificationRequest]:
    """Logs without torque as methods that fit positions take them, and the loop likewise."""
    refuse_torque_methods(problem, asked.method)
    loop = asked.loop.of_encoders()
    seen = problem.on(
        [fill_missing_torque(log, loop, problem.robot.passive) for log in problem.samples]
    )
    return seen, asked._replace(given={**asked.given, SIMULATION: loop}, blind=True)


def fit_model(
    problem: Problem,
    asked: IdentificationRequest,
    progress: Progress,
    watch: Stopwatch,
    searched: ProjectedSquares | None = None,
    start: Array | None = None,
    settled: bool = False,
) -> tuple[Problem, Problem, Estimate]:
    """The problem with the shapes that were found, the same of the fitted rows, and the estimate.

    Shapes are not searched for a method that itself estimates what the torque is not linear in.
    """
    method, given, rows = asked.method, asked.given, ROWS[asked.rows]
    if any(log.deflection is not None for log in problem.samples) and not settled:
        return settle_springs(
            problem, lambda here: fit_model(here, asked, progress, watch, settled=True)
        )
    refuse_loads(problem, method, given)
    positions = fits_positions(problem, method, given)
    if problem.idim.nonlinear and method not in OWN_SHAPES and not positions:
        progress("shapes", 0.0)
        problem, found = fit_nonlinear(problem, asked, progress, searched, start)
        watch.lap("shapes")
        return problem, rows(problem), found
    if problem.idim.loaded:
        problem = problem.with_known_loads(problem.idim.nominal)
    fitted = rows(problem)
    _ = fitted.factors
    watch.lap("rows")
    progress("estimate", 0.0)
    found = estimate(fitted, method, progress, asked.engine, **given)
    watch.lap("estimate")
    if found.shape is not None:
        problem = problem.shaped(found.shape.values)
    if problem.idim.loaded and found.theta is not None:
        problem = problem.with_known_loads(found.theta)
    return problem, rows(problem) if problem.idim.nonlinear else fitted, found


def run_estimate_tests(
    problem: Problem, fitted: Problem, found: Estimate, validation: Sequence[Samples]
) -> tuple[Estimate, LackOfFit | None]:
    """The estimate with what tests say of it, and the one of the scatter of repeated states."""
    if found.instruments is not None and any(test.rejected for test in found.tests):
        # with many rows a bias of nothing is significant: its size is told on other logs
        other = {log.name: problem.on(log).factors for log in validation}
        found = size_rejections(found, other or {"the fitted rows": fitted.factors})
    noise = measure_scatter(fitted, found.beta)
    if noise is None:
        return found, None
    fit = run_lack_of_fit_test(fitted, found.beta, found.sigma, noise)
    return replace(found, tests=(*found.tests, fit.test)), fit


Fitted3 = tuple[Problem, Problem, Estimate]


def settle_springs(problem: Problem, fit: Callable[[Problem], Fitted3]) -> Fitted3:
    """The fit of joints with springs, about which the rows of their encoders are linearised.

    First about that of the stiff robot, whose bodies load the springs; of springs with hysteresis
    about that of springs without.
    """
    plain = problem.without_hysteresis()
    if plain is None:
        rigid, _, found = fit(problem.without_limbs())
    else:
        rigid, _, found = settle_springs(plain, fit)
    known = dict(zip(rigid.idim.names, list_standard(rigid, found), strict=True))
    theta = np.array([known.get(name, 0.0) for name in problem.idim.names])
    problem = problem.expecting(theta, begin=True)
    for _ in range(ROUNDS):
        every = fit(problem)
        after = every[0].expecting(list_standard(every[0], every[2]), step=True)
        before, now = (
            np.array([(*s[:-1], *s.bristles) for log in each.samples for _, s in log.springs])
            for each in (problem, after)
        )
        if np.allclose(before, now, rtol=SETTLED, atol=NEAR):
            return every
        problem = after
    words = f"springs did not settle in {ROUNDS} rounds: do the logs load them?"
    return (*every[:2], replace(every[2], warnings=(*every[2].warnings, words)))


def list_standard(problem: Problem, found: Estimate) -> Array:
    """Standard parameters of an estimate, or some that give the same torques."""
    return problem.base.standard(found.beta) if found.theta is None else found.theta


class MeasuredErrors(NamedTuple):
    """Errors of a model on the logs that were fitted, in the loop, and on others."""

    lowpass_hz: float
    model: tuple[FitFigure, ...]
    nominal: tuple[FitFigure, ...]
    """`model`, `nominal`: see `score_model`."""
    simulated: tuple[SimulatedFigure, ...]
    """Empty for methods that do not simulate the loop."""
    held_out: tuple[ValidationFigures, ...]
    stiff: list[str]
    """Warnings of drives that chatter in the loop."""


def measure_estimate(
    problem: Problem,
    validation: Sequence[Samples],
    simulation: Simulation | None,
    found: Estimate,
    theta: Array,
    scoring: Scoring,
) -> MeasuredErrors:
    """Measure an estimate; the loop is that of methods that simulate it."""
    lowpass_hz = scoring.lowpass_hz
    if lowpass_hz is None:
        lowpass_hz = max(f.cutoff for log in problem.samples for f in log.filters)
    model, nominal = score_model(problem, theta, lowpass_hz, scoring.score)
    loop = None if simulation is None else choose_fitted_loop(simulation, found)
    simulated, stiff = measure_loop_errors(problem, loop, found, theta)
    free = None if found.fitted is None else build_free_loop(loop, found)
    held_out = tuple(
        measure_held_out_log(
            log.name, problem.on(log), free, theta, lowpass_hz, scoring.score, found.fitted
        )
        for log in validation
    )
    return MeasuredErrors(lowpass_hz, model, nominal, simulated, held_out, stiff)


def measure_loop_errors(
    problem: Problem, simulation: Simulation | None, found: Estimate, theta: Array
) -> tuple[tuple[SimulatedFigure, ...], list[str]]:
    """Errors of the motions that a model makes in the loop, and what is to be said of them."""
    if simulation is None:
        return (), []
    auxiliary = build_auxiliary_model(problem, simulation)
    figures = compare_with_simulation(auxiliary, theta)
    if found.fitted is not None:
        free = measure_free_motion(problem, simulation, theta, found.fitted.hindered)
        figures = tuple(replace(each, free=own) for each, own in zip(figures, free, strict=True))
    return figures, warn_of_chatter(auxiliary, theta)


def fit_nonlinear(
    problem: Problem,
    asked: IdentificationRequest,
    progress: Progress,
    searched: ProjectedSquares | None = None,
    start: Array | None = None,
) -> tuple[Problem, Estimate]:
    """The estimate of a method where friction has shapes or bears loads, and its problem.

    Methods that search ranges search the shapes; what is linear then is their exact optimum's.
    """
    method, given, rows, engine = asked.method, asked.given, ROWS[asked.rows], asked.engine
    linear, words = method, ""
    if SearchRegion in list_option_families(method).values():
        problem, words = search_start_shapes(problem, method, given, progress, engine)
        linear, engine = EXACT.get(method, method), HERE
    own = {key: value for key, value in given.items() if key in list_option_names(linear)}
    problem, found = estimate_with_shapes(
        problem,
        lambda here: estimate(rows(here), linear, ignore_progress, engine, **own),
        lambda here, sigma: estimate_roughly(rows(here), linear, sigma, **own),
        progress,
        None if words else searched,
        start,
    )
    return problem, replace(found, message=f"{words}; {found.message}") if words else found


def refuse_torque_methods(problem: Problem, method: str) -> None:
    """Refuse methods that fit torque on logs without."""
    if method not in TORQUE_FREE:
        called = ", ".join(log.name for log in problem.samples if lacks_torque(log))
        raise InputError(
            f"{called}: has no torque, which method {method} fits; under a [controller] cloe fits "
            "positions, and clie the law's torque"
        )


def choose_fitted_loop(simulation: Simulation, found: Estimate) -> Simulation:
    """The loop as an estimate has it, where it was fitted with the drives."""
    return simulation if found.fitted is None else found.fitted.loop


def build_free_loop(simulation: Simulation | None, found: Estimate) -> Simulation | None:
    """The loop in which another log is simulated: without what is of one log."""
    if simulation is None:
        return None
    return replace(choose_fitted_loop(simulation, found), references=None, external=None)


def measure_held_out_log(
    name: str,
    problem: Problem,
    simulation: Simulation | None,
    theta: Array,
    lowpass_hz: float,
    score: str,
    fitted: DrivesEstimate | None = None,
) -> ValidationFigures:
    """Errors of a model on the one log of a problem; of a free simulation too, given the loop."""
    figures = score_model(problem, theta, lowpass_hz, score)
    free: tuple[FreeError, ...] = ()
    if simulation is not None:
        scatter = None if fitted is None else fitted.scatter
        told: tuple[tuple[HinderedStretch, ...], ...] = ((),)
        if scatter is not None:
            _, told = examine_free_motion(problem, simulation, theta, scatter)
        (free,) = measure_free_motion(problem, simulation, theta, told)
    return ValidationFigures(name, *figures, free, tell_torque_source(problem.samples[0]))


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those of a method, and those of every method; None is not given.

    Options of an earlier stage are refused with the call that takes them.
    """
    for name in options:
        if name in EARLIER and not list_methods_with_option(name):
            raise InputError(f"identify has no option {name!r}; {EARLIER[name]} takes it")
    given = {  # numbers of numpy as plain ones, as a result writes them
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in options.items()
        if value is not None
    }
    return given, {n: given.pop(n) for n in collect_options(EVERY_METHOD) if n in given}


@limit_to_one_thread
def validate(
    result: Fit, log: Recording | Samples | Files, *, lowpass_hz: float | None = None
) -> tuple[FitFigure, ...]:
    """Errors of an identified model on another log, on the same kind of rows as in the fit.

    >>> fitted, every = di.validate(fit, held_out)
    >>> every.overall_percent < 10.0
    True

    Parameters
    ----------
    result : Fit
    log : Recording, Samples, path, DataFrame, or sequence of paths or frames
        Prepared with the cutoffs of the identification; see `Fit.prepare`.
    lowpass_hz : float, optional
        As in the identification by default [Hz].

    Raises
    ------
    InputError
        If the log does not match the robot or is too short for its filters, or the low-pass is
        not positive or leaves no samples.
    ComputationError
        If a prediction of the model is not finite.
    """
    check_type("validate", result, Fit, "dynident.identify(problem) makes one")
    samples = result.prepare(log)
    lowpass_hz = Scoring(lowpass_hz).lowpass_hz or result.lowpass_hz
    check_lowpass(lowpass_hz, [samples])
    score = "moving" if any(f.rows == MOVING for f in result.identification) else "all"
    figures, _ = score_model(Problem.of(result.base, samples), result.theta, lowpass_hz, score)
    if not np.isfinite(figures[0].overall_percent):
        raise ComputationError(f"{samples.name}: the torque is zero throughout: it has no error")
    return figures
