"""One robot of a fleet: its sources as one triangle, each row weighed by what its noise allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.collection.identify import estimate_sigma, merge_sources
from dynident.collection.source import Source
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.idim import Idim
from dynident.regression.blocks import measure_run_inflation
from dynident.regression.factors import Factors, stack_weighted_groups
from dynident.regression.problem import Problem

ENOUGH = 5
"""Rows a column from which a robot's own sigma is taken, else that of the others."""


@dataclass(frozen=True, eq=False)
class Member:
    """One robot.

    Attributes
    ----------
    sources : tuple of Source
        Its sessions, ordered by name.
    problem : Problem
        Of all of them.
    parts : tuple of Factors
        Of each of them.
    sigma : ndarray, shape (groups,)
        That weigh its rows.
    inflation : float
        Variance of its scores over that of white errors of these sigmas.
    triangle : ndarray, shape (p + 1, p + 1)
        ``[R z]`` of all rows, of unit variance.
    """

    name: str
    sources: tuple[Source, ...]
    problem: Problem
    parts: tuple[Factors, ...]
    sigma: Array
    inflation: float
    triangle: Array

    @property
    def rows(self) -> float:
        """Independent rows that its correlated ones are worth."""
        return self.problem.factors.rows / self.inflation

    def whiten(self, part: Factors) -> Array:
        """Rows of one session as a triangle of unit variance."""
        return whiten_factors(part, self.sigma, self.inflation)


def whiten_factors(part: Factors, sigma: Array, inflation: float) -> Array:
    """``[R z]`` of unit variance."""
    return np.asarray(stack_weighted_groups(part.groups, sigma) / np.sqrt(inflation))


def weigh_members(model: Idim, robots: Sequence[tuple[str, Sequence[Source]]]) -> list[Member]:
    """All robots, weighed alike.

    Sigmas are those of a robot's own least squares, or the fleet's median where it has few rows.
    The inflation is the fleet's median: errors are correlated in time, and friction differs from
    session to session; a robot alone tells little of either.

    Raises
    ------
    InputError
        For robots whose logs determine other base parameters than those of the first.
    """
    names = [name for name, _ in robots]
    merged = [merge_sources(model, sources) for _, sources in robots]
    problems = [problem for problem, _ in merged]
    for name, problem in zip(names, problems, strict=True):
        if problem.base.names != problems[0].base.names:
            raise InputError(
                f"{name}: its logs determine other base parameters than those of {names[0]}"
            )
    sigmas = share_sigmas(problems)
    weighed = zip(problems, sigmas, strict=True)
    inflation = max(1.0, float(np.median([measure_run_inflation(*each) for each in weighed])))
    members = []
    for (name, sources), (problem, parts), sigma in zip(robots, merged, sigmas, strict=True):
        pairs = sorted(zip(sources, parts, strict=True), key=lambda pair: pair[0].name)
        ordered, own = zip(*pairs, strict=True)
        triangle = whiten_factors(problem.factors, sigma, inflation)
        members.append(Member(name, ordered, problem, own, sigma, inflation, triangle))
    return members


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
