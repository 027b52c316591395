"""One robot of a fleet: its sources as one triangle, each row weighed by what its noise allows.

Friction and offsets differ from session to session: the sessions of a robot are a population of
their own, and what each tells of the robot is its triangle with its own deviation eliminated.
Robots of a site may carry a tool: what its link differs by are parameters that they share.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np

from dynident.collection.identify import estimate_sigma, merge_sources
from dynident.collection.population import add_deviation, compare_triangles, fit_spreads
from dynident.collection.source import Source
from dynident.core.arrays import Array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.factors import UNEXCITED, Factors, System, stack_triangles, stack_weighted_groups
from dynident.core.inertia import PER_BODY
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.idim import Idim
from dynident.regression.blocks import measure_run_inflation
from dynident.regression.problem import Problem

ENOUGH = 5
"""Rows a column from which a robot's own sigma is taken, else that of the others."""
SMALLEST = 0.1
"""Spread between robots to begin with, as a share of a parameter's size."""
CLOSER = 0.1
"""Spread between sessions over that between robots, to begin with."""
DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T_ ](\d\d)[-:.]?(\d\d))?")
"""In names of sessions; and the time of the day."""
ROUNDS = 2
"""Of spreads between sessions and the inflation, which hardly move each other."""


@dataclass(frozen=True, eq=False)
class Member:
    """One robot."""

    name: str
    sources: tuple[Source, ...]
    """Its sessions, ordered by the dates in their names, else by these."""
    problem: Problem
    """Of all of them."""
    parts: tuple[Factors, ...]
    """Of each of them."""
    sigma: Array
    """That weigh its rows, shape (groups,)."""
    inflation: float
    """Variance of errors over that of white ones of these sigmas."""
    triangle: Array
    """``[R z]`` of all rows, of unit variance, deviations of sessions eliminated, shape (p + 1, p +
    1)."""

    @property
    def rows(self) -> float:
        """Independent rows that its correlated ones are worth."""
        return self.problem.factors.rows / self.inflation

    def whiten(self, part: Factors) -> Array:
        """Rows of one session as a triangle of unit variance."""
        return whiten_factors(part, self.sigma, self.inflation)


@dataclass(frozen=True, eq=False)
class MemberDrives:
    """Parameters that each robot has of its own."""

    places: tuple[int, ...]
    """Among the standard parameters."""
    M: Array
    """From these to base parameters, shape (p, q)."""
    values: Array
    """About what they are, to scale by, shape (q,)."""
    start: Array
    """Spreads between robots to begin with, shape (q,)."""
    varying: tuple[int, ...]
    """Those of them that differ from session to session, too."""


@dataclass(frozen=True)
class Site:
    """Robots that carry the same tool."""

    name: str
    robots: tuple[str, ...]
    """Patterns of their names."""
    tool: str
    """Link whose parameters differ from those of robots elsewhere."""


@dataclass(frozen=True, eq=False)
class Tool:
    """What a site's link may differ by."""

    site: Site
    axes: Array
    """Of its standard parameters, those combinations that logs can tell, shape (r, 10)."""
    columns: Array
    """What these do to base parameters, shape (p, r)."""


@dataclass(frozen=True, eq=False)
class EqualWeights:
    """Robots that are weighed alike.

    What they share are the P parameters of the type and of the tools, base parameters first.
    """

    members: tuple[Member, ...]
    base: BaseParameters
    drives: MemberDrives
    session: Array
    """Shape (q,). Spreads between sessions of a robot; zero where none is told."""
    tools: tuple[Tool, ...]

    def extend(self, columns: Array) -> Array:
        """From changes of a robot's base parameters to all that is shared, shape (P, k)."""
        more = sum(tool.columns.shape[1] for tool in self.tools)
        return np.vstack([columns, np.zeros((more, columns.shape[1]))])

    def map_robot(self, number: int) -> Array:
        """From what is shared to a robot's base parameters, shape (p, P)."""
        name = self.members[number].name
        own = [tool.columns * carries(tool.site, name) for tool in self.tools]
        return np.hstack([np.eye(self.base.count), *own])

    @cached_property
    def triangles(self) -> tuple[Array, ...]:
        """What each robot tells of all that is shared, drives aside."""
        return tuple(self.tell(k, each.triangle) for k, each in enumerate(self.members))

    def tell(self, number: int, triangle: Array) -> Array:
        """A robot's triangle in all that is shared."""
        p = self.base.count
        own = triangle[:, :p] @ self.map_robot(number)
        return stack_triangles([np.column_stack([own, triangle[:, p:]])])

    def tell_gain(self, number: int, joint: int, shared: Array) -> Array:
        """What a robot tells where one torque may be wrong by a factor ``1 + g``.

        Parameters
        ----------
        shared : ndarray, shape (P,)
            That the factor multiplies.

        Returns
        -------
        triangle : ndarray, shape (1 + P + 1, 1 + P + 1)
            With a first column of g.
        """
        own, p = self.members[number], self.base.count
        beta = self.map_robot(number) @ shared
        name = self.base.idim.robot.joint_names[joint]
        sessions = []
        for part in own.parts:
            wide = []
            for g in part.groups:
                column = g.factor[:, :-1] @ beta * (g.name == name)
                wide.append(replace(g, factor=np.column_stack([column, g.factor])))
            sessions.append(whiten_factors(Factors(tuple(wide)), own.sigma, own.inflation))
        M = np.vstack([np.zeros(len(self.drives.varying)), self.drives.M[:, self.drives.varying]])
        told = eliminate_sessions(np.array(sessions), M, self.session[[*self.drives.varying]])
        whole = told[:, 1 : p + 1] @ self.map_robot(number)
        return stack_triangles([np.column_stack([told[:, :1], whole, told[:, -1:]])])


def carries(site: Site, name: str) -> bool:
    """Whether a robot is of a site."""
    return any(fnmatchcase(name, pattern) for pattern in site.robots)


def describe_tools(
    base: BaseParameters, names: Sequence[str], sites: Sequence[Site]
) -> tuple[Tool, ...]:
    """What the links of sites may differ by.

    InputError for links that there are not, sites without robots, and links without a robot that
    has no tool there.
    """
    links, found = base.idim.robot.links, []
    for site in sites:
        refuse_unknown(site.tool, links, f"site {site.name}: no link is called {site.tool!r}")
        if not any(carries(site, name) for name in names):
            raise InputError(f"site {site.name}: no robot is called {' or '.join(site.robots)}")
        alike = [each for each in sites if each.tool == site.tool]
        if all(any(carries(each, name) for each in alike) for name in names):
            raise InputError(
                f"site {site.name}: every robot carries a tool at {site.tool}; leave one site out, "
                "whose tool is then the type's"
            )
        k = PER_BODY * links.index(site.tool)
        columns = base.matrix[:, k : k + PER_BODY]
        _, sizes, axes = np.linalg.svd(columns)
        axes = axes[: int(np.sum(sizes > sizes[0] / UNEXCITED))]
        found.append(Tool(site, axes, columns @ axes.T))
    return tuple(found)


def find_date(name: str) -> datetime | None:
    """The date in the name of a session, and the time if one follows; None where there is none."""
    found = DATE.search(name)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2] or '00'}:{found[3] or '00'}")
    except ValueError:
        return None


def whiten_factors(part: Factors, sigma: Array, inflation: float) -> Array:
    """``[R z]`` of unit variance."""
    return np.asarray(stack_weighted_groups(part.groups, sigma) / np.sqrt(inflation))


def weigh_members(
    model: Idim, robots: Sequence[tuple[str, Sequence[Source]]], sites: Sequence[Site] = ()
) -> EqualWeights:
    """All robots, weighed alike.

    Sigmas are those of a robot's own least squares, or the fleet's median where it has few rows.
    Spreads between sessions and the inflation are those of all robots, for one tells little of
    either: by how much sessions contradict each other in what does not differ. Where no robot has
    two, runs of time tell the inflation.

    Raises
    ------
    InputError
        For robots whose logs determine other base parameters than those of the first.
    """
    names = [name for name, _ in robots]
    # sessions by the date in their name, and by that
    ordered = [
        sorted(sources, key=lambda own: (find_date(own.name) or datetime.min, own.name))
        for _, sources in robots
    ]
    merged = [merge_sources(model, sources) for sources in ordered]
    problems = [problem for problem, _ in merged]
    base = problems[0].base
    for name, problem in zip(names, problems, strict=True):
        if problem.base.names != base.names:
            raise InputError(
                f"{name}: its logs determine other base parameters than those of {names[0]}"
            )
    sigmas = share_sigmas(problems)
    parts = [tuple(own) for _, own in merged]
    families = [
        np.array([whiten_factors(part, sigma, 1.0) for part in own])
        for own, sigma in zip(parts, sigmas, strict=True)
    ]
    drives = describe_drives(base, np.vstack(families))
    spread, inflation = np.zeros(len(drives.places)), 1.0
    if max(map(len, families)) > 1:
        spread, inflation = weigh_sessions(families, drives)
    else:
        found = [measure_run_inflation(*each) for each in zip(problems, sigmas, strict=True)]
        inflation = max(1.0, float(np.median(found)))
    own = drives.M[:, drives.varying], spread[[*drives.varying]]
    members = []
    for k, name in enumerate(names):
        sessions = families[k] / np.sqrt(inflation)
        triangle = eliminate_sessions(sessions, *own)
        members.append(
            Member(name, tuple(ordered[k]), problems[k], parts[k], sigmas[k], inflation, triangle)
        )
    return EqualWeights(tuple(members), base, drives, spread, describe_tools(base, names, sites))


def eliminate_sessions(sessions: Array, M: Array, spread: Array) -> Array:
    """What sessions tell together, each with its own deviation."""
    told = add_deviation(sessions, M, spread)[0] if np.any(spread) else sessions
    return stack_triangles([*told])


def describe_drives(base: BaseParameters, triangles: Array) -> MemberDrives:
    """What robots of these triangles have of their own."""
    idim = base.idim
    places = tuple(range(idim.inertial, len(idim.parameters)))
    M = base.matrix[:, places]
    values = np.linalg.pinv(M) @ System.of(stack_triangles([*triangles])).solve()
    symbols = [idim.parameters[k].symbol for k in places]
    largest = [
        max(abs(v) for v, other in zip(values, symbols, strict=True) if other == own)
        for own in symbols
    ]
    start = SMALLEST * np.maximum(largest, 1e-6)
    varying = tuple(k for k, symbol in enumerate(symbols) if not symbol.startswith("Ia"))
    return MemberDrives(places, M, values, start, varying)


def weigh_sessions(families: Sequence[Array], drives: MemberDrives) -> tuple[Array, float]:
    """Spreads between sessions, and by how much these contradict each other in all else."""
    varying = [*drives.varying]
    M, spread, inflation = drives.M[:, varying], CLOSER * drives.start[varying], 1.0
    for _ in range(ROUNDS):
        scaled = [each / np.sqrt(inflation) for each in families]
        spread, _, found = fit_spreads(scaled, M, spread)
        compared = [compare_triangles([*each.triangles]) for each in found]
        value, freedom = np.sum(compared, axis=0)
        inflation *= float(value / freedom)
    whole = np.zeros(len(drives.places))
    whole[varying] = spread
    return whole, inflation


def share_sigmas(problems: Sequence[Problem]) -> Array:
    """Sigmas of all robots, shape (robots, groups), where its rows are few those of the others."""
    found = np.array([estimate_sigma(problem.factors) for problem in problems])
    enough = [
        [g.rows >= ENOUGH * len(g.columns) for g in problem.factors.groups] for problem in problems
    ]
    known = np.where(enough, found, np.nan)
    some = np.any(enough, axis=0)
    usual = np.median(found, axis=0)
    usual[some] = np.nanmedian(known[:, some], axis=0)
    return np.asarray(np.where(enough, found, usual))
