"""Methods and friction models on one study, judged by what they were not fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from dynident.api import (
    EVERY_METHOD,
    Projected,
    estimate_alone,
    follow_shapes,
    identify,
    search_problem_shapes,
)
from dynident.core.arrays import Array
from dynident.core.compiled import tells_compilations
from dynident.core.errors import ComputationError, DynidentError, InputError
from dynident.core.options import collect_options
from dynident.core.progress import Progress, Stopwatch, ignore_progress
from dynident.core.text import format_one_line, suggest_nearest
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import BaseParameters
from dynident.friction.names import build_friction, split_friction_names
from dynident.methods import ESTIMATORS, OWN_SHAPES
from dynident.methods.options import SIMULATION, list_option_names, switch_bootstrap_off
from dynident.recording.prepare import Samples, count_felt_samples
from dynident.regression.problem import Problem
from dynident.regression.rows import RowGroup
from dynident.regression.statistics import estimate_long_run_ratio
from dynident.report.comparison import Candidate, Comparison, Failure, Scores
from dynident.study.constraints import build_constraints
from dynident.study.elements import build_elements
from dynident.study.study import Study, build_study_simulation, load_study_robot, read_study_logs

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

Span = tuple[int, int, int]
"""A log, a sample of it, and the one after the last."""
Fold = tuple[Problem, Problem]
"""The first model on logs that are fitted, and on logs that are scored."""


@tells_compilations
@limit_to_one_thread
def compare(
    study: Study,
    methods: Sequence[str] = METHODS,
    frictions: Sequence[str] = MODELS,
    blocks: int = BLOCKS,
    progress: Progress = ignore_progress,
) -> Comparison:
    """Identify a study by several methods with several friction models, and compare them.

    Parameters
    ----------
    study : Study
        Its method and friction model are not read; a method has those of its options that are
        its own.
    methods, frictions : sequence of str
        Names in `ESTIMATORS`, and of `build_friction`.
    blocks : int
        Contiguous blocks in time, of equal length: of the held-out logs, where the study has
        any, on which one fit is scored; else of the fitted logs, each held out in turn.
    progress : callable
        Called with "comparing" and the share that is done.

    Returns
    -------
    Comparison
        Held-out errors of each, and what is recommended for each joint.

    Raises
    ------
    InputError
        For names that are not known, and logs that are too short for so many blocks.

    Examples
    --------
    >>> found = di.compare(di.read_study("study.toml"), ["wls"], ["coulomb-viscous", "cube-root"])
    >>> print(found.summary())
    recommended ...
    """
    watch = Stopwatch()
    check_names("method", methods, ESTIMATORS)
    check_names("friction", frictions)
    for name in frictions:
        build_friction(name)
    if blocks < 2:
        raise InputError(f"blocks is {blocks}, but a standard error needs at least 2")
    robot = load_study_robot(study)
    logs = list(zip(study.log, read_study_logs(study, robot, progress=progress), strict=True))
    fitted, held_out = (
        tuple(log for section, log in logs if section.use == use)
        for use in ("identify", "validate")
    )
    rotor, elements = study.robot.rotor, build_elements(study.element, robot)
    first = Problem(robot, fitted, frictions[0], rotor, elements=elements)
    folds = build_folds(first, fitted, held_out, blocks)
    found: dict[tuple[str, str], Candidate | Failure] = {}
    kinds: tuple[str, ...] = ()
    shares = iter(np.linspace(0.0, 1.0, len(methods) * len(frictions) + 1).tolist())
    for friction in frictions:  # methods share what a model's rows and shapes are
        shared: Shared | None = None
        for method in methods:
            progress("comparing", next(shares))
            try:
                if shared is None:
                    problem = first.with_drives(friction, rotor, elements)
                    kinds = list_row_kinds(problem.on((*fitted, *held_out)))
                    shared = Shared(problem, folds, held_out)
                found[method, friction] = evaluate_candidate(study, shared, method, kinds)
            except DynidentError as error:
                found[method, friction] = Failure(method, friction, format_one_line(error))
    progress("comparing", next(shares))
    tried = [found[method, friction] for method in methods for friction in frictions]
    candidates = tuple(each for each in tried if isinstance(each, Candidate))
    failures = tuple(each for each in tried if isinstance(each, Failure))
    if not candidates:
        raise ComputationError(f"nothing gave an answer; {failures[0].reason}")
    return Comparison(
        robot,
        kinds,
        blocks,
        not held_out,
        candidates,
        failures,
        watch.total()["total"],
    )


def split_frictions(text: str) -> tuple[str, ...]:
    """Names of friction between commas, but for commas between shapes."""
    return tuple(split_friction_names(text))


def check_names(kind: str, given: Sequence[str], known: Iterable[str] | None = None) -> None:
    """Refuse empty lists, unknown names and repeated ones."""
    if not given:
        raise InputError(f"no {kind} is given")
    for name in given:
        if known is not None and name not in known:
            raise InputError(f"{kind} {name!r} is not known{suggest_nearest(name, known)}")
    if len(set(given)) < len(given):
        raise InputError(f"{kind}s {', '.join(given)} are not all different")


def split_into_blocks(logs: Sequence[Samples], count: int) -> list[list[Span]]:
    """Contiguous blocks of equal length of all that a fit may use of some logs, in time order."""
    stretches = [(k, a, b) for k, log in enumerate(logs) for a, b in log.segments]
    ends = np.cumsum([0, *(b - a for _, a, b in stretches)])
    found = []
    for low, high in pairwise(np.linspace(0, ends[-1], count + 1).round().astype(int).tolist()):
        spans = []
        for (k, a, _), first, last in zip(stretches, ends[:-1], ends[1:], strict=True):
            start, stop = max(low, int(first)), min(high, int(last))
            if start < stop:
                spans.append((k, a + start - int(first), a + stop - int(first)))
        found.append(spans)
    return found


def complement_spans(logs: Sequence[Samples], spans: Sequence[Span]) -> list[Span]:
    """What is left beside a block, but for the samples at its ends that filters mix with it."""
    left = []
    for k, log in enumerate(logs):
        guard = count_felt_samples(log.position_hz, log.rate)
        for start, stop in log.segments:
            first = start
            for a, b in ((a, b) for i, a, b in spans if i == k and start <= a and b <= stop):
                left.append((k, first, a - guard))
                first = b + guard
            left.append((k, first, stop))
    return left


def cut_logs(logs: Sequence[Samples], spans: Sequence[Span]) -> tuple[Samples, ...]:
    """Logs of which only some stretches are rows, where these are long enough for a row."""
    found = []
    for k, log in enumerate(logs):
        shortest = 2 * max(own.half for own in log.filters) + 1
        segments = tuple((a, b) for i, a, b in spans if i == k and b - a >= shortest)
        if segments:
            found.append(replace(log, segments=segments))
    return tuple(found)


def find_row_kind(group: RowGroup) -> str:
    """What errors of a group of rows are counted with: all that has its sigma."""
    return group.noise or group.name


def build_folds(
    problem: Problem, fitted: Sequence[Samples], held_out: Sequence[Samples], blocks: int
) -> tuple[Fold, ...]:
    """Blocks that are scored, with what is fitted then.

    Raises
    ------
    InputError
        For blocks that are too short, or in which no equation of a floating robot's log lasts.
    """
    found = []
    for spans in split_into_blocks(held_out or fitted, blocks):
        other = cut_logs(held_out or fitted, spans)
        own = () if held_out else cut_logs(fitted, complement_spans(fitted, spans))
        if not other or not (own or held_out):
            raise InputError(f"blocks of a {blocks}th are too short for the filters; ask for fewer")
        try:
            found.append((problem if held_out else problem.on(own), problem.on(other)))
        except InputError as error:
            raise InputError(
                f"{format_one_line(error)}; or ask for fewer blocks than {blocks}"
            ) from error
    return tuple(found)


def list_row_kinds(problem: Problem) -> tuple[str, ...]:
    """Kinds of rows of a problem by name: combinations that are free of some contacts are one."""
    return tuple(dict.fromkeys(find_row_kind(group) for group in problem.groups))


@dataclass(frozen=True, eq=False)
class Shared:
    """What all methods have in common on one friction model: rows and the search for shapes.

    Attributes
    ----------
    problem : Problem
        Of the fitted logs.
    folds : tuple of Fold
    held_out : tuple of Samples
        The study's own; without, each fold's block is scored on a fit to the others.
    """

    problem: Problem
    folds: tuple[Fold, ...]
    held_out: tuple[Samples, ...]

    @cached_property
    def searched(self) -> tuple[Projected, float]:
        """The shapes that fit best, and how long that took [s]."""
        watch = Stopwatch()
        return search_problem_shapes(self.problem), watch.total()["total"]

    @cached_property
    def rest(self) -> tuple[Problem, ...]:
        """What each fold is fitted to."""
        return tuple(own.under(self.problem.base) for own, _ in self.folds)

    @cached_property
    def followed(self) -> tuple[Projected, ...]:
        """Shapes that fit each of these best, down from those that fit all rows best."""
        found, _ = self.searched
        return tuple(follow_shapes(found, fold) for fold in self.rest)


def evaluate_candidate(
    study: Study, shared: Shared, method: str, kinds: Sequence[str]
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
        end = np.concatenate([whole.theta, whole.idim.shape]) if searches else None
        near = shared.followed if searches else (None,) * len(shared.rest)
        models = [
            fit_fold(study, fold, method, own, end)
            for fold, own in zip(shared.rest, near, strict=True)
        ]
    sums = [
        sum_squared_errors(*model, others, kinds)
        for model, (_, others) in zip(models, shared.folds, strict=True)
    ]
    squared_error, squared_torque, absolute, largest, rows = (
        np.array(each) for each in zip(*sums, strict=True)
    )
    peak = np.max(largest, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative_error = np.sum(absolute, axis=0) / np.sum(rows, axis=0) / peak
    found = whole.estimate
    errors = found.residuals.error
    names = [find_row_kind(group) for group in found.residuals.groups]
    sigmas = list(dict.fromkeys(names))
    by_sigma = np.zeros((2, len(sigmas)))
    for name, error in zip(names, errors, strict=True):
        by_sigma[:, sigmas.index(name)] += float(error @ error), len(error)
    shape = found.shape
    free = 0 if shape is None else int(np.sum(np.isfinite(shape.std)))
    count = whole.base.count if found.essential is None else len(found.essential.kept)
    return Candidate(
        method=method,
        friction=problem.idim.friction,
        parameters=count + free,
        fitted_percent=whole.identification[0].overall_percent,
        held_out=Scores(squared_error, squared_torque, relative_error),
        squared=by_sigma[0],
        rows=by_sigma[1],
        ratio=estimate_long_run_ratio(errors),
        seconds=seconds,
        verdict=whole.verdict.state,
        held=()
        if shape is None
        else tuple(n for n, s in zip(shape.names, shape.std, strict=True) if not np.isfinite(s)),
        series=whole.series(POINTS)[: len(whole.samples)],
    )


def fit_fold(
    study: Study, fold: Problem, method: str, searched: Projected | None, start: Array | None
) -> tuple[BaseParameters, Array]:
    """A method fitted to all rows but a block's, from where it ended with all rows.

    Where it does not settle from there, its shapes are searched as those of all rows were.
    """
    options = select_method_options(study, fold, method)
    if searched is not None:
        try:
            return estimate_alone(fold, method, searched=searched, start=start, **options)
        except ComputationError:
            pass
    return estimate_alone(fold, method, **options)


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


def sum_squared_errors(
    base: BaseParameters, theta: Array, near: Problem, kinds: Sequence[str]
) -> tuple[Array, Array, Array, Array, Array]:
    """Sums of squared errors and torques, of errors' sizes, the largest torque, and the rows.

    Each by kind of rows, of which the logs of the problem, of another model, may have some alone.
    """
    problem = near.under(base)
    beta = base.matrix @ theta
    places = [kinds.index(find_row_kind(group)) for group in problem.groups]
    found = np.zeros((5, len(kinds)))
    for rows in problem.rows():
        for g, columns, X, y in zip(places, problem.columns, rows.X, rows.y, strict=True):
            if not len(y):
                continue
            e = y - X @ beta[columns]
            found[:3, g] += e @ e, y @ y, np.sum(np.abs(e))
            found[3, g] = max(found[3, g], np.max(np.abs(y)))
            found[4, g] += len(y)
    return found[0], found[1], found[2], found[3], found[4]
