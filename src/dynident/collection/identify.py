"""From the factors of many logs to a fit: linear algebra on small triangles, without a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynident.collection.population import leave_each_out
from dynident.collection.source import Source
from dynident.core.arrays import Array
from dynident.core.errors import InputError, OptionError
from dynident.core.factors import (
    Factors,
    GroupFactor,
    System,
    merge_all,
    stack_triangles,
    stack_weighted_groups,
)
from dynident.core.options import collect_options
from dynident.core.progress import Progress, Stopwatch, ignore_progress
from dynident.core.side_by_side import HERE, Engine
from dynident.core.threads import limit_to_one_thread
from dynident.core.words import format_rough
from dynident.dynamics.base import find_observed_base
from dynident.dynamics.idim import Idim
from dynident.fit.figures import FitFigure, Scoring, score_fitted_rows
from dynident.fit.logs import LogsGone
from dynident.fit.provenance import record_provenance
from dynident.fit.residuals import summarise_without_rows
from dynident.fit.verdict import CHECK_LOG, DOUBTFUL, GROWN, SMALL, Reason
from dynident.fit.warnings import warn_of_poor_fit, warn_of_unfitted_joints
from dynident.methods import FACTORED
from dynident.methods.options import estimate, refuse_absurd_estimate
from dynident.methods.settings import collect_model_settings
from dynident.regression.problem import Problem
from dynident.regression.row_kinds import RowKind
from dynident.regression.rows import RowGroup
from dynident.regression.weighted import estimate_group_sigma
from dynident.report.fit import Fit, conclude_fit

OF_ROWS = frozenset(collect_options([RowKind, Scoring]))
"""Options of every method that take the logs themselves."""
ROUNDS = 4
"""Of least squares and sigmas: these settle at once, for groups hardly trade errors."""


def merge_sources(model: Idim, sources: Sequence[Source]) -> tuple[Problem, list[Factors]]:
    """The problem of all sources in the base parameters that these determine together.

    Beside it the factors of each of them.
    """
    kinds = tuple(dict.fromkeys(source.about.facts.observed for source in sources))
    base = find_observed_base(model, kinds)
    own = {kind: find_observed_base(model, (kind,)) for kind in kinds} if kinds[1:] else {}
    groups = tuple(dict.fromkeys(group for source in sources for group in source.about.groups))
    wholes, runs = [], []
    for source in sources:
        parts = tuple(spread_groups(part, groups) for part in (source.factors, *source.runs))
        told = own.get(source.about.facts.observed, base)
        if told.names != source.parameters:
            raise InputError(
                f"{source.name}: its base parameters are not those of the model; collect it again"
            )
        if told is not base:
            matrix = told.matrix[:, base.kept]  # beta of this kind = matrix @ beta of all kinds
            parts = tuple(part.transform(matrix) for part in parts)
        wholes.append(parts[0])
        runs.append(parts[1:])
    return Problem.of_factors(base, groups, merge_all(wholes), runs), wholes


def spread_groups(part: Factors, groups: Sequence[RowGroup]) -> Factors:
    """Factors with groups of which they have no rows, as those of unmeasured contacts elsewhere."""
    own = {group.name: group for group in part.groups}
    none = np.zeros((0, part.parameters + 1))
    return Factors(tuple(own.get(g.name, GroupFactor(g.name, none, 0, g.noise)) for g in groups))


@limit_to_one_thread
def identify_sources(
    model: Idim,
    sources: Sequence[Source],
    method: str,
    given: Mapping[str, Any],
    progress: Progress = ignore_progress,
    engine: Engine = HERE,
) -> Fit:
    """Identify a model from factors, as `dynident.identify` does from logs.

    What is given are options of the method by name, and ``doctor``; the engine solves the
    replicates of the bootstrap.
    """
    watch = Stopwatch()
    refuse_what_needs_rows(method, given)
    progress("merging", 0.0)
    problem, parts = merge_sources(model, sources)
    watch.lap("merge")
    return fit_sources(problem, sources, parts, method, given, progress, watch, engine=engine)


def fit_sources(
    problem: Problem,
    sources: Sequence[Source],
    parts: Sequence[Factors],
    method: str,
    given: Mapping[str, Any],
    progress: Progress,
    watch: Stopwatch,
    population: Problem | None = None,
    engine: Engine = HERE,
) -> Fit:
    """Estimate, with errors, reasons and the table of the sources.

    Parameters
    ----------
    problem : Problem
        Of all sources, in their own units.
    parts : sequence of Factors
        Of each source, in the base parameters of the problem.
    given : mapping
        See `identify_sources`; the engine, too.
    population : Problem, optional
        The same parameters by more than these sources: what is estimated. What other sources leave
        of one is then not told, for they may be of another robot.
    """
    progress("estimate", 0.0)
    keys = {name: value for name, value in given.items() if name != "doctor"}
    found = estimate(population or problem, method, progress, engine, **keys)
    refuse_absurd_estimate(found)
    watch.lap("estimate")
    left_out = [np.nan] * len(parts)
    if population is None:
        left_out = measure_left_out(parts, found.sigma)
    else:
        found = replace(found, sigma=estimate_sigma(problem.factors))
    watch.lap("held-out errors")
    order = sorted(range(len(sources)), key=lambda k: sources[k].name)
    sources, parts = [sources[k] for k in order], [parts[k] for k in order]
    left_out = [left_out[k] for k in order]
    base, factors = problem.base, problem.factors
    facts, names = [source.about.facts for source in sources], name_sources(sources)
    theta = base.standard(found.beta) if found.theta is None else found.theta
    fitted = score_fitted_rows(factors, base.matrix @ theta)
    nominal: tuple[FitFigure, ...] = ()
    if problem.robot.has_nominal:
        nominal = (score_fitted_rows(factors, base.matrix @ problem.idim.nominal),)
    told = () if given.get("doctor") is False else [f for s in sources for f in s.about.findings]
    errors = [score_fitted_rows(part, base.matrix @ theta).overall_percent for part in parts]
    lowpass_hz = max(fact.lowpass_hz for fact in facts)
    return conclude_fit(
        problem,
        problem,
        found,
        theta,
        facts,
        foreign=list_foreign_reasons(names, left_out),
        logs_apart=len(sources),
        noticed=[
            *(note for fact in facts for note in fact.warnings),
            *warn_of_unfitted_joints(problem, facts),
            *warn_of_poor_fit(fitted),
        ],
        method=method,
        logs=LogsGone("was made of factors, which hold no samples; identify the logs themselves"),
        log_words=tuple(fact.words for fact in facts),
        residuals=summarise_without_rows(problem.groups, factors, found.sigma),
        preparation=facts[0].preparation,
        lowpass_hz=lowpass_hz,
        identification=(fitted,),
        nominal=nominal,
        validation=(),
        settings={
            **collect_model_settings(problem, method, {"rows": "decimated"}, keys, found),
            "lowpass_hz": lowpass_hz,
            "score": "all",
            "logs": [fact.settings for fact in facts],
            "validation": [],
            "decided": [],
            "sources": tabulate_sources(names, sources, errors, left_out),
        },
        timings=watch.total(),
        provenance=record_provenance(
            {name: fact.digest for name, fact in zip(names, facts, strict=True)},
            {name: fact.size for name, fact in zip(names, facts, strict=True)},
        ),
        findings=tuple(told),
    )


def name_sources(sources: Sequence[Source]) -> list[str]:
    """Names of sources, with the beginning of their keys where several have the same."""
    names = [source.about.facts.name for source in sources]
    return [
        name if names.count(name) == 1 else f"{name} {source.about.key[:8]}"
        for name, source in zip(names, sources, strict=True)
    ]


def tabulate_sources(
    names: Sequence[str],
    sources: Sequence[Source],
    errors: Sequence[float],
    left_out: Sequence[float],
) -> list[dict[str, Any]]:
    """What the settings of a fit say of each source."""
    return [
        {
            "source": name,
            "key": source.about.key,
            "rows": source.factors.rows,
            "own_error_percent": source.about.own_percent,
            "error_percent": error,
            "left_out_error_percent": None if np.isnan(without) else without,
        }
        for name, source, error, without in zip(names, sources, errors, left_out, strict=True)
    ]


def list_foreign_reasons(names: Sequence[str], errors: Sequence[float]) -> list[Reason]:
    """Sources that the others predict far worse than they predict each other."""
    known = [error for error in errors if not np.isnan(error)]
    usual = float(np.median(known)) if len(known) > 2 else np.inf
    return [
        Reason(
            DOUBTFUL,
            f"{name}: error {format_rough(error)} % by the other logs, {usual:.2g} % is usual "
            "among them",
            advice=CHECK_LOG,
        )
        for name, error in zip(names, errors, strict=True)
        if error > max(SMALL, GROWN * usual)
    ]


def refuse_what_needs_rows(method: str, given: Mapping[str, Any]) -> None:
    """Refuse methods and options that factors are not enough for, in one line."""
    if method not in FACTORED:
        raise InputError(
            f"method {method} needs rows, which factors do not have: take {', '.join(FACTORED)}, "
            "or identify the logs themselves"
        )
    for name in given:
        if name in OF_ROWS:
            words = f"{name} takes the samples of logs, which factors do not have: leave it out"
            raise OptionError(name, words)


def measure_left_out(parts: Sequence[Factors], sigma: Array) -> list[float]:
    """Error of each source under the least-squares answer of all others [%].

    NaN where the others leave a combination open that all together tell, and of a source alone.
    """
    if len(parts) < 2:
        return [np.nan] * len(parts)
    triangles = [stack_weighted_groups(part.groups, sigma) for part in parts]
    rank = System.of(stack_triangles(triangles)).condition()[1]
    errors = []
    for part, others in zip(parts, leave_each_out(triangles), strict=True):
        system = System.of(others)
        known = system.condition()[1] == rank
        errors.append(score_fitted_rows(part, system.solve()).overall_percent if known else np.nan)
    return errors


def estimate_sigma(factors: Factors) -> Array:
    """Standard deviation of each group about its own weighted least squares."""
    sigma = factors.ones
    for _ in range(ROUNDS):
        system = factors.weighted(sigma)
        sigma = estimate_group_sigma(factors, system.solve(), sigma, system)
    return sigma
