"""A genetic algorithm over ranges of parameters (zhang2018, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field
from scipy.linalg import solve_triangular

from dynident.consistency.bootstrap import Seed
from dynident.consistency.knowledge import Knowledge
from dynident.core.options import Options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.side_by_side import HERE, Engine
from dynident.core.threads import limit_to_one_thread
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import Estimate
from dynident.regression.problem import Problem
from dynident.search.ranges import SearchRegion, build_search_task
from dynident.search.search import (
    Evaluate,
    Searchable,
    SearchKeeping,
    SearchPlace,
    SearchRun,
    run_search,
)

ALIKE = 5.0
"""Distribution index of the simulated binary crossover: the larger, the more like their parents."""
MUTATED = 0.02
"""Share of the genes that mutate."""
STAGNANT = 1e-3
"""Gain of the best set, in chi-squared, that is none."""
PATIENCE = 40
"""Generations without a gain that are the last."""


Population = Annotated[int, Field(strict=True, ge=10, le=10**6)]
Generations = Annotated[int, Field(strict=True, ge=1, le=10**6)]


@dataclass(frozen=True)
class BreedingOptions(Options):
    """The population of ga."""

    population: Annotated[Population, "sets of parameters in each generation"] = 300
    generations: Annotated[Generations, "most generations of the genetic algorithm"] = 1000
    seed: Seed = 0


@limit_to_one_thread
def ga(
    problem: Problem,
    region: SearchRegion = SearchRegion(),
    breeding: BreedingOptions = BreedingOptions(),
    keeping: SearchKeeping = SearchKeeping(),
    knowledge: Knowledge = Knowledge(),
    bars: ErrorBars = ErrorBars(),
    progress: Progress = ignore_progress,
    engine: Engine = HERE,
) -> Estimate:
    """The best set of a real-coded genetic algorithm (zhang2018, eq. 16 or 25).

    Parameters
    ----------
    knowledge : Knowledge
        Consistency, constraints and prior: the set that wins is repaired by them.
    engine : Engine
        What evaluates the sets of a generation, where these are many.

    Raises
    ------
    InputError
        For ranges and starts that do not fit the robot or each other, and a state file of another
        search.
    ComputationError
        When nothing in the ranges is admitted.
    """
    found = build_search_task(problem, region, knowledge, bars)
    run = SearchRun(breeding.generations, PATIENCE, keeping, "estimate", progress, engine)
    place, words = breed_generations(found.searchable, breeding, run)
    return found.repaired(place.best, place.count, words)


def breed_generations(
    task: Searchable, breeding: BreedingOptions, run: SearchRun
) -> tuple[SearchPlace, str]:
    """Where the generations end, and why there were no more.

    Parents are winners of tournaments of two, children come of simulated binary crossover (Deb
    and Agrawal 1995) and mutation, and the best of parents and children go on. Both act in the
    coordinates R x in which least squares is a sphere: genes are independent of each other there.
    A generation is a few matrix products, whatever the number of its sets.
    """
    rng = np.random.default_rng(breeding.seed)
    R, size = task.triangle, breeding.population

    def first(evaluate: Evaluate) -> SearchPlace:
        sets = rng.uniform(task.low, task.high, (size, len(R)))
        sets[0] = task.begin
        costs = evaluate(sets)
        least = int(np.argmin(costs))
        return SearchPlace(sets, costs, sets[least], float(costs[least]), 0, 0)

    def generation(now: SearchPlace, evaluate: Evaluate) -> SearchPlace:
        sets, costs = now.sets, now.costs
        rivals = rng.integers(size, size=(2, size))
        parents = np.where(costs[rivals[0]] < costs[rivals[1]], *rivals)
        genes = sets[parents] @ R.T
        spread = np.std(genes, axis=0)
        left, right = genes[: size // 2], genes[size // 2 : 2 * (size // 2)]
        u = rng.uniform(size=left.shape)
        beta = np.where(u < 0.5, 2.0 * u, 0.5 / (1.0 - u)) ** (1.0 / (1.0 + ALIKE))
        middle, half = 0.5 * (left + right), 0.5 * beta * (left - right)
        half *= np.where(rng.uniform(size=half.shape) < 0.5, 1.0, -1.0)
        children = np.vstack([middle + half, middle - half])
        mutants = rng.uniform(size=children.shape) < MUTATED
        children += mutants * spread * rng.normal(size=children.shape)
        new = task.within(solve_triangular(R, children.T, check_finite=False).T)
        sets, costs = np.vstack([sets, new]), np.concatenate([costs, evaluate(new)])
        order = np.argsort(costs, kind="stable")[:size]
        sets, costs = sets[order], costs[order]
        gained = now.least - costs[0] > STAGNANT
        return SearchPlace(
            sets,
            costs,
            sets[0],
            float(costs[0]) if gained else now.least,
            0 if gained else now.since + 1,
            now.count + 1,
        )

    place, why = run_search(
        task, f"ga {size} {breeding.seed}", rng, SearchPlace, first, generation, run
    )
    return place, f"{why} after {place.count} generations of {size}"
