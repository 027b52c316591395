"""A genetic algorithm over ranges of parameters (zhang2018, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field
from scipy.linalg import solve_triangular

from dynident.consistency.bootstrap import Seed
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.core.options import Options
from dynident.core.threads import one_thread
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import Estimate
from dynident.estimators.ranges import Region, Searchable, task
from dynident.regression.problem import Problem

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
class Breeding(Options):
    """The population of ga."""

    population: Annotated[Population, "sets of parameters in each generation"] = 300
    generations: Annotated[Generations, "of the genetic algorithm, at most"] = 1000
    seed: Seed = 0


@one_thread
def ga(
    problem: Problem,
    region: Region = Region(),
    breeding: Breeding = Breeding(),
    knowledge: Knowledge = Knowledge(),
    bars: ErrorBars = ErrorBars(),
) -> Estimate:
    """The best set of a real-coded genetic algorithm (zhang2018, eq. 16 or 25).

    Parameters
    ----------
    problem : Problem
    region : Region
    breeding : Breeding
    knowledge : Knowledge
        Consistency, constraints and prior: the set that wins is repaired by them.
    bars : ErrorBars

    Raises
    ------
    InputError
        For ranges and starts that do not fit the robot or each other.
    ComputationError
        When nothing in the ranges is admitted.
    """
    searched = task(problem, region, knowledge, bars)
    beta, count, why = bred(searched, breeding)
    words = f"{why} after {count} generations of {breeding.population}"
    return searched.repaired(beta, count, words)


def bred(task: Searchable, breeding: Breeding, patience: int = PATIENCE) -> tuple[Array, int, str]:
    """The best set, the generations, and why there were no more.

    Parents are winners of tournaments of two, children come of simulated binary crossover (Deb
    and Agrawal 1995) and mutation, and the best of parents and children go on. Both act in the
    coordinates R x in which least squares is a sphere: genes are independent of each other there.
    A generation is a few matrix products, whatever the number of its sets.
    """
    rng = np.random.default_rng(breeding.seed)
    R, size = task.triangle, breeding.population
    sets = rng.uniform(task.low, task.high, (size, len(R)))
    sets[0] = task.begin
    costs = task.cost(sets)
    best, since = float(np.min(costs)), 0
    for count in range(1, breeding.generations + 1):
        rivals = rng.integers(size, size=(2, size))
        parents = np.where(costs[rivals[0]] < costs[rivals[1]], *rivals)
        genes = sets[parents] @ R.T
        spread = np.std(genes, axis=0)
        first, second = genes[: size // 2], genes[size // 2 : 2 * (size // 2)]
        u = rng.uniform(size=first.shape)
        beta = np.where(u < 0.5, 2.0 * u, 0.5 / (1.0 - u)) ** (1.0 / (1.0 + ALIKE))
        middle, half = 0.5 * (first + second), 0.5 * beta * (first - second)
        half *= np.where(rng.uniform(size=half.shape) < 0.5, 1.0, -1.0)
        children = np.vstack([middle + half, middle - half])
        mutants = rng.uniform(size=children.shape) < MUTATED
        children += mutants * spread * rng.normal(size=children.shape)
        new = task.within(solve_triangular(R, children.T, check_finite=False).T)
        sets, costs = np.vstack([sets, new]), np.concatenate([costs, task.cost(new)])
        order = np.argsort(costs, kind="stable")[:size]
        sets, costs = sets[order], costs[order]
        if best - costs[0] > STAGNANT:
            best, since = float(costs[0]), 0
        else:
            since += 1
        if since >= patience:
            return sets[0], count, "stagnated"
    return sets[0], breeding.generations, "stopped"
