"""A fleet identified: the type, how robots differ, which are odd or change, and one robot alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident.collection.drift import (
    LONG,
    follow_sessions,
    list_series,
    list_times,
    measure_sessions,
)
from dynident.collection.folder import FolderStatement, choose_sources, read_sources, read_statement
from dynident.collection.identify import fit_sources, merge_sources, refuse_what_needs_rows
from dynident.collection.member import EqualWeights, Site, weigh_members
from dynident.collection.outliers import WIDE, FleetFit, find_deviation, fit_fleet
from dynident.collection.population import describe_knowledge
from dynident.collection.source import Source
from dynident.core.arrays import Array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.factors import Factors, GroupFactor, System
from dynident.core.progress import Progress, Stopwatch, ignore_progress
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import BaseParameters
from dynident.fit.figures import score_fitted_rows
from dynident.regression.problem import Problem
from dynident.regression.rows import RowGroup
from dynident.report.fit import Fit
from dynident.report.fleet import DriveSpread, Fleet, FleetRobot

TOLD = 1e-6
"""Share of a mass that logs may leave open."""
GROUP = RowGroup("fleet", "1")
"""Rows of unit variance, whatever they were of."""


def make_problem(base: BaseParameters, triangle: Array, rows: float) -> Problem:
    """The problem of what is known of its parameters."""
    factor = GroupFactor(GROUP.name, triangle[np.any(triangle, axis=1)], round(rows))
    factors = Factors((factor,))
    return Problem.of_factors(base, (GROUP,), factors, [[factors]])


@dataclass(frozen=True, eq=False)
class OpenedFleet:
    """Robots of one type, weighed, their odd ones known."""

    folder: Path
    """Of the first robot."""
    statement: FolderStatement
    """That all of them have."""
    team: EqualWeights
    """Ordered by name."""
    fitted: FleetFit
    left: tuple[str, ...]
    """Logs that do not count, with the reasons."""


@limit_to_one_thread
def weigh(
    folders: Sequence[str | Path],
    sites: Sequence[Site] = (),
    progress: Progress = ignore_progress,
) -> OpenedFleet:
    """Read robots of one model and preparation, and tell the odd ones from the others.

    Raises
    ------
    InputError
        For folders without factors, of different models, or under one name.
    """
    robots: dict[str, list[Source]] = {}
    left: list[str] = []
    first: tuple[Path, FolderStatement] | None = None
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
    team = weigh_members(first[1].model, sorted(robots.items()), sites)
    return OpenedFleet(*first, team, fit_fleet(team), tuple(left))


@limit_to_one_thread
def identify_type(
    robots: OpenedFleet,
    method: str,
    given: Mapping[str, Any],
    progress: Progress = ignore_progress,
) -> Fit:
    """Identify what the robots share, their drives at the mean of the population.

    Every robot tells the type what its own deviation leaves; error bars know that the spreads of
    deviations are estimated.
    """
    watch = Stopwatch()
    refuse_what_needs_rows(method, given)
    kept = [robots.team.members[k] for k in robots.fitted.kept]
    rows = sum(each.rows for each in kept)
    base = robots.team.base
    own = robots.team.extend(np.eye(base.count)).T
    known = describe_knowledge(*robots.fitted.population.know_type(own), rows)
    sources = sorted((s for each in kept for s in each.sources), key=lambda s: s.about.key)
    whole, parts = merge_sources(base.idim, sources)
    given = {**given, "covariance": given.get("covariance") or "sandwich"}
    problem = make_problem(base, known, rows)
    return fit_sources(whole, sources, parts, method, given, progress, watch, problem)


@limit_to_one_thread
def identify_member(
    robots: OpenedFleet,
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
    names = [member.name for member in robots.team.members]
    refuse_unknown(name, names, f"no robot is called {name!r}")
    number = names.index(name)
    own, fitted = robots.team.members[number], robots.fitted
    if number in fitted.kept:
        rows = own.rows + sum(len(each) - 1 for each in fitted.population.triangles)
        known = describe_knowledge(*know_robot(robots.team, fitted, number), rows)
    else:
        rows, known = own.rows, own.triangle
    given = {**given, "covariance": given.get("covariance") or "sandwich"}
    problem = make_problem(own.problem.base, known, rows)
    return fit_sources(own.problem, own.sources, own.parts, method, given, progress, watch, problem)


def describe_fleet(robots: OpenedFleet, fit: Fit) -> Fleet:
    """What is said of every robot and of the type."""
    team, fitted, base = robots.team, robots.fitted, fit.base
    members = team.members
    betas = [find_own_parameters(team, fitted, k) for k in range(len(members))]
    times, clock = list_times(members)
    followed = [measure_sessions(*each) for each in zip(members, betas, times, strict=True)]
    series = list_series(followed, base.idim.robot.joint_names)
    names = [base.idim.parameters[k].name for k in team.drives.places]
    shared = fitted.population.found.beta.copy()
    shared[: base.count] = fit.estimate.beta
    rows = []
    for k, (member, beta) in enumerate(zip(members, betas, strict=True)):
        deviation, error = find_own_deviation(team, fitted, k)
        sessions = [source.name for source in member.sources]
        own = series if len(sessions) >= LONG else []
        rows.append(
            FleetRobot(
                member.name,
                len(sessions),
                member.problem.factors.rows,
                score_fitted_rows(member.problem.factors, beta).overall_percent,
                score_fitted_rows(
                    member.problem.factors, team.map_robot(k) @ shared
                ).overall_percent,
                fitted.odd[k],
                tuple(follow_sessions(followed[k], each, sessions) for each in own),
                tuple(dict.fromkeys(f.what for s in member.sources for f in s.about.findings)),
                tuple(deviation.tolist()),
                tuple(error.tolist()),
                tuple(times[k].tolist()),
            )
        )
    mean = dict(zip(base.names, fit.estimate.beta.tolist(), strict=True))
    drives = tuple(
        DriveSpread(name, mean.get(name), spread, session)
        for name, spread, session in zip(
            names, fitted.population.spread.tolist(), team.session.tolist(), strict=True
        )
    )
    tools = tuple(describe_site_tools(team, fitted))
    return Fleet(fit, tuple(rows), drives, clock, robots.left, tools)


def find_own_deviation(team: EqualWeights, fitted: FleetFit, number: int) -> tuple[Array, Array]:
    """Deviation of a robot's drives from the type's, and its standard errors."""
    if number in fitted.kept:
        return fitted.population.know_deviation(fitted.kept.index(number))
    spread = WIDE * fitted.population.spread
    others, M = fitted.others[number], team.extend(team.drives.M)
    deviation, root = find_deviation(team.triangles[number], others, M, spread)
    return deviation, np.linalg.norm(root, axis=1)


def find_own_parameters(team: EqualWeights, fitted: FleetFit, number: int) -> Array:
    """Base parameters of one robot: its own least squares, of one that belongs with the others'."""
    if number in fitted.kept:
        return know_robot(team, fitted, number)[0]
    return System.of(team.members[number].triangle).solve()


def know_robot(team: EqualWeights, fitted: FleetFit, number: int) -> tuple[Array, Array]:
    """Base parameters of a robot that belongs, and a root of their covariance."""
    place = fitted.kept.index(number)
    return fitted.population.know_robot(place, team.map_robot(number))


def describe_site_tools(team: EqualWeights, fitted: FleetFit) -> Iterator[str]:
    """By what the links of sites differ, in words."""
    column = team.base.count
    for tool in team.tools:
        count = len(tool.axes)
        mass = np.zeros((1, len(fitted.population.M)))
        mass[0, column : column + count] = tool.axes[:, 0]
        column += count
        (value,), root = fitted.population.know_type(mass)
        sure = 1.96 * float(np.linalg.norm(root))
        words = f" by {value:+.3f} ± {sure:.3f} kg"
        # of a mass that logs tell in part, or of no robot that belongs, nothing is said
        told = sure > 0.0 and np.sum(tool.axes[:, 0] ** 2) > 1.0 - TOLD
        yield f"{tool.site.name}: {tool.site.tool} differs{words if told else ''}"
