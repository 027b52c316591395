"""Methods and friction models on one study, judged by what they were not fitted to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from dynident.api import (
    EVERY_METHOD,
    ProjectedSquares,
    estimate_alone,
    follow_shapes,
    identify,
    search_problem_shapes,
)
from dynident.consistency.constraints.sections import build_constraints
from dynident.core.arrays import Array
from dynident.core.compiled import tells_compilations
from dynident.core.errors import ComputationError, DynidentError, InputError, refuse_unknown
from dynident.core.options import collect_options
from dynident.core.progress import Progress, Stopwatch, ignore_progress
from dynident.core.side_by_side import Engine, LostTask, Runner, choose_engine, run_side_by_side
from dynident.core.text import format_one_line
from dynident.core.threads import limit_to_one_thread
from dynident.decide.blocks import (
    Fold,
    Model,
    build_folds,
    find_row_kind,
    list_row_kinds,
    sum_squared_errors,
)
from dynident.fit.comparison import Candidate, Comparison, Failure
from dynident.fit.scores import BlockScores
from dynident.friction.names import build_friction, split_friction_names
from dynident.methods import ESTIMATORS, OWN_SHAPES
from dynident.methods.options import SIMULATION, list_option_names, switch_bootstrap_off
from dynident.recording.prepare import Samples
from dynident.regression.elements import build_elements
from dynident.regression.problem import Problem
from dynident.regression.statistics import compute_residuals, estimate_long_run_ratio
from dynident.report.fit import Fit
from dynident.study.study import (
    RobotSection,
    Study,
    build_study_simulation,
    list_logs_of,
    load_study_robot,
    pack_study,
    read_study_logs,
)
from dynident.study.target_delay import take_found_delay

METHODS = ("wls", "pc-idim-ls")
MODELS = (
    "coulomb-viscous",
    "coulomb-viscous-symmetric",
    "cube-root",
    "stribeck",
    "load",
    "stribeck-load",
    "tanh-sech",
)
BLOCKS = 5
POINTS = 1500
"""Of a log's friction curves."""
CONSTRAINTS, SEARCH_STATE = "constraints", "search_state"


@tells_compilations
@limit_to_one_thread
def compare(
    source: Study | Problem,
    methods: Sequence[str] = METHODS,
    frictions: Sequence[str] = MODELS,
    blocks: int = BLOCKS,
    progress: Progress = ignore_progress,
    *,
    validation: Sequence[Samples] = (),
    workers: int = 1,
    engine: Runner = None,
) -> Comparison:
    """Identify a study by several methods with several friction models, and compare them.

    Parameters
    ----------
    source : Study or Problem
        Its method and friction model are ignored; each method uses those of the study's options
        that it has. A problem has logs in memory, and is compared in this process only.
    methods, frictions : sequence of str
        Names in `ESTIMATORS`, and of `build_friction`.
    blocks : int
        Contiguous blocks in time, of equal length: of the held-out logs, if the study has
        any, on which one fit is scored; else of the fitted logs, for cross-validation.
    progress : callable
        Called with "comparing" and the share that is done.
    validation : sequence of Samples
        Held-out logs beside a problem; a study names its own.
    workers : int
        Processes of this machine, one per friction model.
    engine : Engine, distributed.Client or str, optional
        Runs the work instead: a Dask cluster by a client or its scheduler's address.

    Returns
    -------
    Comparison
        Held-out errors of each, and the recommendation for each joint.

    Raises
    ------
    InputError
        For names that are not known, and logs that are too short for so many blocks.

    Examples
    --------
    >>> found = di.compare(di.read_study("study.toml"), ["wls"], ["coulomb-viscous", "cube-root"])
    >>> print(found.summary())
    recommended ...
    >>> found = di.compare(problem, ["wls"], ["coulomb-viscous"], validation=[held_out])
    """
    watch = Stopwatch()
    check_names("method", methods, ESTIMATORS)
    check_names("friction", frictions)
    for name in frictions:
        build_friction(name)
    if blocks < 2:
        raise InputError(f"blocks is {blocks}, but a standard error needs at least 2")
    chosen = choose_engine(workers, engine)
    if isinstance(source, Problem):
        if chosen != Engine():
            raise InputError("a problem is compared in this process: several read a study")
        given: str | OpenedStudy = open_problem(source, validation, frictions[0], blocks)
        robot, held_out = source.robot, bool(validation)
    else:
        if validation:
            raise InputError(
                'a study names its held-out logs itself: [[log]] with use = "validate"'
            )
        robot, given = load_study_robot(source), pack_study(source)
        held_out = bool(list_logs_of(source, "validate"))
    tasks = [
        ComparisonTask(given, tuple(methods), name, frictions[0], blocks) for name in frictions
    ]
    every = [(name, method) for name in frictions for method in methods]
    found: dict[tuple[str, str], Candidate | Failure] = {}
    kinds: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    try:
        for k, own in run_side_by_side(compare_methods, tasks, chosen, progress, "comparing"):
            name = frictions[k]
            if isinstance(own, LostTask):
                found |= {(name, method): Failure(method, name, own.reason) for method in methods}
                continue
            kinds, warnings = own.kinds or kinds, own.warnings or warnings
            found |= {(name, each.method): each for each in own.found}
    finally:
        open_logs.cache_clear()
    tried = [found[each] for each in sorted(every, key=lambda each: methods.index(each[1]))]
    candidates = tuple(each for each in tried if isinstance(each, Candidate))
    failures = tuple(each for each in tried if isinstance(each, Failure))
    if not candidates:
        raise ComputationError(f"every candidate failed; {failures[0].reason}")
    return Comparison(
        robot,
        kinds,
        blocks,
        not held_out,
        candidates,
        failures,
        warnings,
        watch.total()["total"],
    )


class OpenedStudy(NamedTuple):
    """A study, its fitted logs under a first model, those held out, and blocks."""

    study: Study
    first: Problem
    held_out: tuple[Samples, ...]
    folds: tuple[Fold, ...]


class ComparisonTask(NamedTuple):
    """A friction model by several methods, as plain data that cross processes; or of logs here."""

    source: str | OpenedStudy
    methods: tuple[str, ...]
    friction: str
    first: str
    blocks: int


class ComparedFriction(NamedTuple):
    """What became of a friction model, method by method; its kinds of rows, what logs warn of."""

    kinds: tuple[str, ...]
    warnings: tuple[str, ...]
    found: tuple[Candidate | Failure, ...]


@limit_to_one_thread
def compare_methods(task: ComparisonTask) -> ComparedFriction:
    """All methods with one friction model, which share its rows and shapes."""
    given = task.source
    study, first, held_out, folds = (
        open_logs(given, task.first, task.blocks) if isinstance(given, str) else given
    )
    name, shared, kinds, warnings = task.friction, None, tuple[str, ...](), tuple[str, ...]()
    found: list[Candidate | Failure] = []
    for method in task.methods:
        try:
            if shared is None:
                problem = first.with_drives(name, study.robot.rotor, first.idim.elements)
                every = problem.on((*problem.samples, *held_out))
                kinds, warnings = list_row_kinds(every), every.warnings
                shared = SharedSetting(problem, folds, held_out)
            found.append(evaluate_candidate(study, shared, method, kinds))
        except DynidentError as error:
            found.append(Failure(method, name, format_one_line(error)))
    return ComparedFriction(kinds, warnings, tuple(found))


def open_problem(
    problem: Problem, held_out: Sequence[Samples], friction: str, blocks: int
) -> OpenedStudy:
    """A problem as a study of it would be."""
    rotor = problem.idim.rotor
    study = Study(robot=RobotSection(file=problem.robot.name, rotor=rotor))
    first = problem.with_drives(friction, rotor, problem.idim.elements)
    return OpenedStudy(
        study, first, tuple(held_out), build_folds(first, first.samples, held_out, blocks)
    )


@lru_cache(maxsize=1)
def open_logs(text: str, friction: str, blocks: int) -> OpenedStudy:
    """A study from its text; once a process."""
    study = Study.model_validate_json(text)
    robot = load_study_robot(study)
    logs = list(zip(study.log, read_study_logs(study, robot), strict=True))
    fitted, held_out = (
        tuple(log for section, log in logs if section.use == use)
        for use in ("identify", "validate")
    )
    elements = build_elements(study.element, robot)
    first = Problem(robot, fitted, friction, study.robot.rotor, elements=elements)
    return OpenedStudy(study, first, held_out, build_folds(first, fitted, held_out, blocks))


def split_frictions(text: str) -> tuple[str, ...]:
    """Names of friction between commas, but for commas between shapes."""
    return tuple(split_friction_names(text))


def check_names(kind: str, given: Sequence[str], known: Collection[str] | None = None) -> None:
    """Refuse empty lists, unknown names and repeated ones."""
    if not given:
        raise InputError(f"no {kind} is given")
    if known is not None:
        for name in given:
            refuse_unknown(name, known, f"{kind} {name!r} is not known")
    if len(set(given)) < len(given):
        raise InputError(f"{kind}s {', '.join(given)} are not all different")


@dataclass(frozen=True, eq=False)
class SharedSetting:
    """What all methods have in common on one friction model: rows and the search for shapes."""

    problem: Problem
    """Of the fitted logs."""
    folds: tuple[Fold, ...]
    held_out: tuple[Samples, ...]
    """The study's own; without, each fold's block is scored on a fit to the others."""

    @cached_property
    def searched(self) -> tuple[ProjectedSquares, float]:
        """The shapes that fit best, and how long that took [s]."""
        watch = Stopwatch()
        return search_problem_shapes(self.problem), watch.total()["total"]

    @cached_property
    def rest(self) -> tuple[Problem, ...]:
        """What each fold is fitted to."""
        return tuple(own.under(self.problem.base) for own, _ in self.folds)

    @cached_property
    def followed(self) -> tuple[ProjectedSquares, ...]:
        """Shapes that fit each of these best, down from those that fit all rows, as known."""
        found, _ = self.searched
        return tuple(follow_shapes(found, fold) for fold in self.rest)


def evaluate_candidate(
    study: Study, shared: SharedSetting, method: str, kinds: Sequence[str]
) -> Candidate:
    """One method on one friction model: fitted to all, and scored on what it was not fitted to."""
    problem, held_out = shared.problem, shared.held_out
    searches = problem.idim.nonlinear and method not in OWN_SHAPES
    searched, seconds = shared.searched if searches else (None, 0.0)
    # what the doctor looks for is the log's, whatever the model: it has a command of its own
    options = {
        **select_method_options(study, problem, method),
        **switch_bootstrap_off(method),
        "doctor": False,
    }
    whole = identify(problem, method, validation=held_out, searched=searched, **options)
    seconds += whole.timings["total"]
    if held_out:
        models = [(whole.base, whole.theta)] * len(shared.folds)
    else:
        end = whole.theta if searches else None
        near = shared.followed if searches else (None,) * len(shared.rest)
        models = [
            fit_fold(study, fold, method, own, end)
            for fold, own in zip(shared.rest, near, strict=True)
        ]
    scores = score_folds(models, shared.folds, kinds)
    found = whole.estimate
    residuals = found.residuals
    if residuals.motions:  # BIC are comparable on the same rows alone
        residuals = compute_residuals(problem.under(whole.base), found.beta)
    errors = residuals.error
    names = [find_row_kind(group) for group in residuals.groups]
    sigmas = list(dict.fromkeys(names))
    by_sigma = np.zeros((2, len(sigmas)))
    for name, error in zip(names, errors, strict=True):
        by_sigma[:, sigmas.index(name)] += float(error @ error), len(error)
    shape = found.shape
    return Candidate(
        method=method,
        friction=problem.idim.friction,
        parameters=count_estimated_parameters(whole),
        fitted_percent=whole.identification[0].overall_percent,
        held_out=scores,
        squared=by_sigma[0],
        rows=by_sigma[1],
        ratio=estimate_long_run_ratio(errors),
        seconds=seconds,
        verdict=whole.verdict.state,
        held=()
        if shape is None
        else tuple(n for n, s in zip(shape.names, shape.std, strict=True) if not np.isfinite(s)),
        series=tuple(each.evenly for each in whole.series(POINTS)[: len(whole.samples)]),
    )


def count_estimated_parameters(fit: Fit) -> int:
    """Base parameters that were estimated, and shapes of friction that were not held."""
    shape, essential = fit.estimate.shape, fit.estimate.essential
    free = 0 if shape is None else int(np.sum(np.isfinite(shape.std)))
    return free + (fit.base.count if essential is None else len(essential.kept))


def score_folds(
    models: Sequence[Model], folds: Sequence[Fold], kinds: Sequence[str]
) -> BlockScores:
    """Errors of a model of each fold on what is scored of it."""
    sums = [
        sum_squared_errors(*model, others, kinds)
        for model, (_, others) in zip(models, folds, strict=True)
    ]
    squared_error, squared_torque, absolute, largest, rows = (
        np.array(each) for each in zip(*sums, strict=True)
    )
    peak = np.max(largest, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative_error = np.sum(absolute, axis=0) / np.sum(rows, axis=0) / peak
    return BlockScores(squared_error, squared_torque, relative_error)


def score_held_out(fit: Fit, plain: Study, blocks: int) -> tuple[tuple[str, ...], BlockScores]:
    """Errors on the held-out logs as the study prepares them that varies nothing."""
    assert isinstance(fit.study, Study)
    plain = take_found_delay(plain, fit.study).model_copy(update={"identify": fit.study.identify})
    held_out = read_study_logs(plain, fit.robot, "validate")
    problem = Problem.of(fit.base, held_out)
    kinds = list_row_kinds(problem)
    folds = build_folds(problem, (), held_out, blocks)
    return kinds, score_folds([(fit.base, fit.theta)] * len(folds), folds, kinds)


def fit_fold(
    study: Study, fold: Problem, method: str, searched: ProjectedSquares | None, start: Array | None
) -> Model:
    """A method fitted to all rows but a block's, from where it ended with all rows.

    Where it does not settle from there, its shapes are searched as those of all rows were.
    """
    options = select_method_options(study, fold, method)
    if searched is not None:
        try:
            found, theta = estimate_alone(fold, method, searched=searched, start=start, **options)
            return found.base, theta
        except ComputationError:
            pass
    found, theta = estimate_alone(fold, method, **options)
    return found.base, theta


def select_method_options(study: Study, problem: Problem, method: str) -> dict[str, Any]:
    """What of a study's options is the method's own; a search's state is of one search."""
    names = {*list_option_names(method)} - {SEARCH_STATE}
    common = collect_options(EVERY_METHOD)
    given = study.identify.model_dump(exclude={"method"}, exclude_none=True)
    options = {key: value for key, value in given.items() if key in names or key in common}
    if study.constraint and CONSTRAINTS in names:
        options[CONSTRAINTS] = build_constraints(study.constraint)
    if SIMULATION in names and study.controller is not None:
        options[SIMULATION] = build_study_simulation(study, problem.robot, problem.samples)
    return options
