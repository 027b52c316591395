"""Shapes of friction over all of their ranges, for nls, ga and pf.

Only shapes are searched: at each set of them the linear parameters are eliminated exactly, by
the least squares of `dynident.search.shapes`, so that a population has few coordinates. Its
best set is one of the starts from which exact steps go down, as for every method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import build_options
from dynident.core.progress import Progress
from dynident.core.side_by_side import Engine
from dynident.regression.problem import Problem
from dynident.search.ga import BreedingOptions, breed_generations
from dynident.search.pf import SwarmOptions, run_particle_filter
from dynident.search.search import Searchable, SearchKeeping, SearchRun
from dynident.search.shapes import (
    ProjectedSquares,
    fit_at_usual_shapes,
    fit_linear_parameters,
    limit_to_visible_speeds,
)

EXACT = {"ga": "nls", "pf": "nls"}
"""The method that finds what is linear, where only the shapes are searched."""
SETS = 24
"""Sets of shapes in a population: each is a pass over the log."""
GENERATIONS = 20
LULL = 6
"""Generations, or steps, without a gain that are the last."""
MOVES = 2
"""Of every particle after resampling."""


@dataclass(frozen=True, eq=False)
class ShapeLikelihood:
    """The likelihood of shapes, the linear parameters eliminated.

    Coordinates of positive shapes are logarithms, so that ratios count.
    """

    problem: Problem
    theta: Array
    """A full set."""
    sigma: Array
    """To begin with, shape (groups,)."""

    @property
    def ends(self) -> Array:
        """Bounds of the shapes, shape (2, shapes)."""
        known = [each.bounds for each in self.problem.idim.shape_parameters]
        return np.array([[b.lower for b in known], [b.upper for b in known]])

    def to_coordinates(self, shapes: Array) -> Array:
        """Coordinates of shapes, shape (any, shapes)."""
        by_ratio = self.ends[0] > 0.0
        return np.where(by_ratio, np.log(np.where(by_ratio, shapes, 1.0)), shapes)

    def within(self, sets: Array) -> Array:
        """Coordinates taken into the bounds."""
        return np.clip(sets, *self.to_coordinates(self.ends))

    def to_shapes(self, coordinates: Array) -> Array:
        """Shapes within their bounds."""
        inside, ends = self.within(coordinates), self.ends
        by_ratio = ends[0] > 0.0
        found = np.where(by_ratio, np.exp(np.where(by_ratio, inside, 0.0)), inside)
        return np.asarray(np.clip(found, *ends))

    def __call__(self, sets: Array) -> Array:
        """Minus twice the log-likelihood of many sets of coordinates, shape (sets,)."""
        about, found = self.theta.copy(), np.empty(len(sets))
        for k, coordinates in enumerate(sets):
            about[self.problem.idim.plain :] = self.to_shapes(coordinates)
            here = fit_linear_parameters(self.problem.linearised(about), self.sigma)
            found[k] = 2.0 * here.cost
        return found


def build_shape_task(usual: ProjectedSquares) -> tuple[Searchable, ShapeLikelihood]:
    """A search of shapes within their ranges, and what it searches in."""
    cost = ShapeLikelihood(usual.problem, usual.theta, usual.sigma)
    low, high = cost.to_coordinates(cost.ends)
    width = high - low
    identity = (low, high, usual.theta, usual.sigma, np.array(usual.cost))
    begin = cost.to_coordinates(np.array(usual.problem.idim.shape))
    triangle = np.diag(1.0 / np.where(width > 0.0, width, 1.0))
    task = Searchable(
        usual.problem, identity, low, high, begin, triangle, cost, 1, cost.within
    )  # fmt: skip
    return task, cost


def search_start_shapes(
    problem: Problem,
    method: str,
    given: Mapping[str, Any],
    progress: Progress,
    engine: Engine,
) -> tuple[Problem, str]:
    """A problem with the shapes that a search begins at, within the ranges that were given.

    And in words how they were searched; empty where they were not.
    """
    if not problem.idim.shape_parameters:
        return problem, ""
    ranges = given.get("ranges") or {}
    check_shape_ranges(problem, ranges)
    if method not in EXACT:
        return problem, ""
    seen = limit_shapes(limit_to_visible_speeds(problem), ranges)
    task, cost = build_shape_task(fit_at_usual_shapes(seen))
    of_ga = method == "ga"
    size = given.get("population" if of_ga else "particles", SETS)
    most = given.get("generations" if of_ga else "steps", GENERATIONS)
    options = size, most, given.get("seed", 0)
    run = SearchRun(most, LULL, build_options(SearchKeeping, given), "shapes", progress, engine)
    place, words = (
        breed_generations(task, BreedingOptions(*options), run)
        if of_ga
        else run_particle_filter(task, SwarmOptions(*options), run, MOVES)
    )
    idim = seen.idim.shaped(cost.to_shapes(place.best))
    return problem.under(replace(problem.base, idim=idim)), f"shapes {words}"


def check_shape_ranges(problem: Problem, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuse ranges of shapes that are none, or beyond the bounds of their models."""
    for shape in problem.idim.shape_parameters:
        if shape.name not in ranges:
            continue
        lower, upper = ranges[shape.name]
        if not shape.bounds.lower <= lower < upper <= shape.bounds.upper:
            raise InputError(
                f"ranges: {shape.name} is [{lower:g}, {upper:g}], but has to be a range within "
                f"[{shape.bounds.lower:g}, {shape.bounds.upper:g}], the bounds of its model"
            )


def limit_shapes(problem: Problem, ranges: Mapping[str, tuple[float, float]]) -> Problem:
    """A problem with the shapes within the ranges that name them."""
    known = [(each.name, each.bounds) for each in problem.idim.shape_parameters]
    limits = [
        tuple(np.clip(ranges.get(name, (b.lower, b.upper)), b.lower, b.upper)) for name, b in known
    ]
    base = replace(problem.base, idim=problem.idim.limited([(low, high) for low, high in limits]))
    return problem.under(base)
