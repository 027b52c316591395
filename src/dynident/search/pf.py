"""A particle filter over ranges of parameters (zhang2018, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.consistency.bootstrap import Seed
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
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

EFFECTIVE = 0.5
"""Share of the particles that the weights of a step leave effective."""
MOVES = 20
"""Of every particle after resampling."""
REACH = 2.38
"""Length of a move in standard deviations (Roberts, Gelman and Gilks 1997), to begin with."""
ACCEPTED = 0.25
"""Share of the moves that should be accepted."""
STAGNANT = 1e-3
"""Decrease of the criterion at the mean, in chi-squared, that is none."""
PATIENCE = 10
"""Steps without one that are the last."""


Particles = Annotated[int, Field(strict=True, ge=10, le=10**6)]
Steps = Annotated[int, Field(strict=True, ge=1, le=10**6)]


@dataclass(frozen=True)
class SwarmOptions(Options):
    """The particles of pf."""

    particles: Annotated[Particles, "number of particles of the particle filter"] = 500
    steps: Annotated[Steps, "most steps of weighing and resampling"] = 1000
    seed: Seed = 0


@dataclass(frozen=True)
class ParticleCloud(SearchPlace):
    """Particles after a step."""

    power: float
    """That the likelihood is raised to."""
    reach: Array
    """Lengths of the two kinds of moves, shape (2,)."""


@limit_to_one_thread
def pf(
    problem: Problem,
    region: SearchRegion = SearchRegion(),
    swarm: SwarmOptions = SwarmOptions(),
    keeping: SearchKeeping = SearchKeeping(),
    knowledge: Knowledge = Knowledge(),
    bars: ErrorBars = ErrorBars(),
    progress: Progress = ignore_progress,
    engine: Engine = HERE,
) -> Estimate:
    """The mean of particles under the likelihood of the rows (zhang2018, eq. 16 or 25).

    Parameters
    ----------
    knowledge : Knowledge
        Consistency, constraints and prior: the mean is repaired by them.
    engine : Engine
        What evaluates the particles after each of their moves, where these are many.

    Raises
    ------
    InputError
        For ranges and starts that do not fit the robot or each other, and a state file of another
        search.
    ComputationError
        When nothing in the ranges is admitted.
    """
    found = build_search_task(problem, region, knowledge, bars)
    run = SearchRun(swarm.steps, PATIENCE, keeping, "estimate", progress, engine)
    place, words = run_particle_filter(found.searchable, swarm, run)
    return found.repaired(place.best, place.count, words)


def run_particle_filter(
    task: Searchable, swarm: SwarmOptions, run: SearchRun, moves: int = MOVES
) -> tuple[ParticleCloud, str]:
    """Where the steps end, the best mean of particles among it, and why there were no more.

    The likelihood ``exp(-criterion / 2)`` is raised to powers that grow as fast as the weights
    leave half of the particles effective, beyond one, where the particles close in on its top (Del
    Moral, Doucet and Jasra 2006). Resampling is systematic. Jitter alone makes particles collapse
    before they are there: here it is moves of random walks that the likelihood accepts or
    refuses, as wide as the particles and, in turn, as the rows' curvature, which does not shrink
    with their spread.
    """
    rng = np.random.default_rng(swarm.seed)
    size, n = swarm.particles, len(task.low)
    curvature = np.linalg.inv(task.triangle).T

    def first(evaluate: Evaluate) -> ParticleCloud:
        sets = rng.uniform(task.low, task.high, (size, n))
        sets[0] = task.begin
        costs = evaluate(sets)
        return ParticleCloud(
            sets, costs, sets[0], np.inf, 0, 0, 0.0, np.full(2, REACH / np.sqrt(n))
        )

    def step(now: ParticleCloud, evaluate: Evaluate) -> ParticleCloud:
        weights, more = temper_weights(now.costs, EFFECTIVE * size)
        power, reach = now.power + more, now.reach.copy()
        mean = weights @ now.sets
        spread = np.linalg.qr((now.sets - mean) * np.sqrt(weights)[:, None], mode="r")
        chosen = resample_systematically(weights, float(rng.uniform()))
        sets, costs = now.sets[chosen], now.costs[chosen]
        for move in range(moves):
            kind = move % 2
            root = curvature / np.sqrt(power) if kind else spread
            moved = sets + reach[kind] * rng.standard_normal((size, len(root))) @ root
            new = evaluate(moved)
            # Metropolis: the criterion is twice minus the log-likelihood
            goes = np.log(rng.uniform(size=size)) < 0.5 * power * (costs - new)
            goes &= np.all(task.within(moved) == moved, axis=1)
            sets[goes], costs[goes] = moved[goes], new[goes]
            # longer where more than the wanted share goes, shorter where less
            reach[kind] *= np.exp(np.mean(goes) - ACCEPTED)
        mean = np.mean(sets, axis=0)
        cost = float(evaluate(mean[None])[0])
        idle = power >= 1.0 and now.least - cost < STAGNANT
        best, least = (mean, cost) if cost < now.least else (now.best, now.least)
        since = now.since + 1 if idle else 0
        return ParticleCloud(sets, costs, best, least, since, now.count + 1, power, reach)

    options = f"pf {size} {swarm.seed} {moves}"
    place, why = run_search(task, options, rng, ParticleCloud, first, step, run)
    return place, f"{why} after {place.count} steps of {size} particles"


def temper_weights(costs: Array, effective: float) -> tuple[Array, float]:
    """Weights ``exp(-power costs / 2)`` that leave so many effective, and the power."""
    above = costs - np.min(costs)
    if not np.any(above):
        return np.full(len(costs), 1.0 / len(costs)), 1.0
    low, high = 0.0, 1e3 / float(np.mean(above))
    for _ in range(50):
        power = 0.5 * (low + high)
        weights = np.exp(-0.5 * power * above)
        # as many are effective as (sum w)^2 / sum w^2 says (Kong, Liu and Wong 1994)
        if np.sum(weights) ** 2 > effective * np.sum(weights**2):
            low = power
        else:
            high = power
    return np.asarray(weights / np.sum(weights)), power


def resample_systematically(weights: Array, u: float) -> np.ndarray:
    """Indices of particles, each as often as its weight says but for one."""
    size = len(weights)
    places = (np.arange(size) + u) / size
    return np.minimum(np.searchsorted(np.cumsum(weights), places), size - 1)
