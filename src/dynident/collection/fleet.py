"""A fleet identified: the type, how robots differ, which are odd or change, and one robot alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident.collection.changes import estimate_scatter, find_changes, measure_levels
from dynident.collection.folder import (
    Statement,
    choose_sources,
    read_sources,
    read_statement,
)
from dynident.collection.identify import (
    fit_sources,
    merge_sources,
    refuse_what_needs_rows,
)
from dynident.collection.member import Member, weigh_members
from dynident.collection.odd import WIDE, Fitted, find_deviation, fit_fleet
from dynident.collection.population import add_deviation
from dynident.collection.source import Source
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.progress import Progress, Stopwatch, ignore_progress
from dynident.core.text import suggest_nearest
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import BaseParameters
from dynident.fit.figures import score_fitted_rows
from dynident.regression.factors import Factors, GroupFactor, System, stack_triangles
from dynident.regression.problem import Problem
from dynident.regression.rows import RowGroup
from dynident.report.fit import Fit
from dynident.report.fleet import DriveSpread, Fleet, FleetRobot

GROUP = RowGroup("fleet", "1")
"""Rows of unit variance, whatever they were of."""


def make_problem(base: BaseParameters, parts: Sequence[Array], rows: Sequence[float]) -> Problem:
    """The problem of some triangles, each of which is one run for error bars."""
    found = [
        Factors((GroupFactor(GROUP.name, part[np.any(part, axis=1)], round(count)),))
        for part, count in zip(parts, rows, strict=True)
    ]
    whole = GroupFactor(GROUP.name, stack_triangles(parts), round(sum(rows)))
    return Problem.of_factors(base, (GROUP,), Factors((whole,)), [[each] for each in found])


@dataclass(frozen=True, eq=False)
class Opened:
    """Robots of one type, weighed, their odd ones known.

    Attributes
    ----------
    folder : Path
        Of the first robot.
    statement : Statement
        That all of them have.
    members : tuple of Member
        Ordered by name.
    left : tuple of str
        Logs that do not count, with the reasons.
    """

    folder: Path
    statement: Statement
    members: tuple[Member, ...]
    fitted: Fitted
    left: tuple[str, ...]


@limit_to_one_thread
def weigh(folders: Sequence[str | Path], progress: Progress = ignore_progress) -> Opened:
    """Read robots of one model and preparation, and tell the odd ones from the others.

    Raises
    ------
    InputError
        For folders without factors, of different models, or under one name.
    """
    robots: dict[str, list[Source]] = {}
    left: list[str] = []
    first: tuple[Path, Statement] | None = None
    for folder in map(Path, folders):
        statement = read_statement(folder)
        if statement is None:
            raise InputError(
                f"{folder}: holds no factors; dynident collect makes them, or give --study"
            )
        first = first or (folder, statement)
        if statement.fingerprint != first[1].fingerprint:
            raise InputError(
                f"{folder}: holds factors of another model, preparation or version than {first[0]}"
            )
        name = folder.resolve().name
        if name in robots:
            raise InputError(f"{folder}: another robot is called {name!r} already")
        found, damaged = read_sources(folder, statement)
        sources, others = choose_sources(found)
        left += [f"{name}: {entry.name}: {entry.reason}" for entry in (*damaged, *others)]
        if sources:
            robots[name] = sources
        else:
            left.append(f"{name}: holds no source that can be merged")
    if first is None or len(robots) < 2:
        words = "a fleet has two robots at least; give a folder of factors for each"
        raise InputError("; ".join([words, *left]))
    progress("population", 0.0)
    members = weigh_members(first[1].model, sorted(robots.items()))
    return Opened(*first, tuple(members), fit_fleet(members), tuple(left))


@limit_to_one_thread
def identify_type(
    robots: Opened,
    method: str,
    given: Mapping[str, Any],
    progress: Progress = ignore_progress,
) -> Fit:
    """Identify what the robots share, their drives at the mean of the population.

    Every robot tells the type what its own deviation leaves; error bars rest on how the robots
    scatter, each being one run.
    """
    watch = Stopwatch()
    refuse_what_needs_rows(method, given)
    kept = [robots.members[k] for k in robots.fitted.kept]
    base = kept[0].problem.base
    problem = make_problem(base, robots.fitted.population.triangles, [each.rows for each in kept])
    sources = sorted((s for each in kept for s in each.sources), key=lambda s: s.about.key)
    whole, parts = merge_sources(base.idim, sources)
    return fit_sources(whole, sources, parts, method, given, progress, watch, problem)


@limit_to_one_thread
def identify_member(
    robots: Opened,
    name: str,
    method: str,
    given: Mapping[str, Any],
    progress: Progress = ignore_progress,
) -> Fit:
    """Identify one robot from its own logs and what all others tell of it.

    The others' knowledge of the type is widened by the spread of the drives, so that a robot with
    few logs has the type's parameters and one with many its own. A robot that does not belong is
    identified by its own logs alone.
    """
    watch = Stopwatch()
    refuse_what_needs_rows(method, given)
    names = [member.name for member in robots.members]
    if name not in names:
        raise InputError(f"no robot is called {name!r}{suggest_nearest(name, names)}")
    number = names.index(name)
    own, told = robots.members[number], tell_of_member(robots.fitted, number)
    parts = [own.triangle] if told is None else [own.triangle, told]
    rows = [own.rows, *(float(len(each) - 1) for each in parts[1:])]
    problem = make_problem(own.problem.base, parts, rows)
    return fit_sources(
        own.problem,
        own.sources,
        own.parts,
        method,
        {"covariance": "sandwich", **given},
        progress,
        watch,
        problem,
    )


def tell_of_member(fitted: Fitted, number: int) -> Array | None:
    """What the others tell of one robot; None of one that does not belong."""
    if fitted.odd[number]:
        return None
    return add_deviation(fitted.others[number], fitted.M, fitted.population.spread)[0]


def describe_fleet(robots: Opened, fit: Fit) -> Fleet:
    """What is said of every robot and of the type."""
    members, fitted, base = robots.members, robots.fitted, fit.base
    betas = [find_own_parameters(each, fitted, k) for k, each in enumerate(members)]
    levels = [measure_levels(each, beta) for each, beta in zip(members, betas, strict=True)]
    scatter = estimate_scatter(levels)
    names = [base.idim.parameters[k].name for k in fitted.drives]
    joints = base.idim.robot.joint_names
    rows = []
    for k, (member, beta) in enumerate(zip(members, betas, strict=True)):
        spread = fitted.population.spread * (WIDE if fitted.odd[k] else 1.0)
        deviation, error = find_deviation(member.triangle, fitted.others[k], fitted.M, spread)
        sessions = [source.name for source in member.sources]
        rows.append(
            FleetRobot(
                member.name,
                len(sessions),
                member.problem.factors.rows,
                score_fitted_rows(member.problem.factors, beta).overall_percent,
                score_fitted_rows(member.problem.factors, fit.estimate.beta).overall_percent,
                fitted.odd[k],
                find_changes(levels[k], scatter, joints, sessions),
                tuple(dict.fromkeys(f.what for s in member.sources for f in s.about.findings)),
                tuple(deviation.tolist()),
                tuple(error.tolist()),
                tuple(map(tuple, levels[k].tolist())),
            )
        )
    mean = dict(zip(base.names, fit.estimate.beta.tolist(), strict=True))
    drives = tuple(
        DriveSpread(name, mean.get(name), spread)
        for name, spread in zip(names, fitted.population.spread.tolist(), strict=True)
    )
    return Fleet(fit, tuple(rows), drives, tuple(joints), tuple(scatter.tolist()), robots.left)


def find_own_parameters(member: Member, fitted: Fitted, number: int) -> Array:
    """Base parameters of one robot, by least squares and what the others tell of it."""
    told = tell_of_member(fitted, number)
    parts = [member.triangle] if told is None else [member.triangle, told]
    return System.of(stack_triangles(parts)).solve()
