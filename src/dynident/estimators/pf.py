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
from dynident.core.threads import one_thread
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import Estimate
from dynident.estimators.ranges import Region, Searchable, task
from dynident.regression.problem import Problem

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
class Swarm(Options):
    """The particles of pf."""

    particles: Annotated[Particles, "of the particle filter"] = 500
    steps: Annotated[Steps, "of weighing and resampling, at most"] = 1000
    seed: Seed = 0


@one_thread
def pf(
    problem: Problem,
    region: Region = Region(),
    swarm: Swarm = Swarm(),
    knowledge: Knowledge = Knowledge(),
    bars: ErrorBars = ErrorBars(),
) -> Estimate:
    """The mean of particles under the likelihood of the rows (zhang2018, eq. 16 or 25).

    Parameters
    ----------
    problem : Problem
    region : Region
    swarm : Swarm
    knowledge : Knowledge
        Consistency, constraints and prior: the mean is repaired by them.
    bars : ErrorBars

    Raises
    ------
    InputError
        For ranges and starts that do not fit the robot or each other.
    ComputationError
        When nothing in the ranges is admitted.
    """
    searched = task(problem, region, knowledge, bars)
    beta, count, why = filtered(searched, swarm)
    words = f"{why} after {count} steps of {swarm.particles} particles"
    return searched.repaired(beta, count, words)


def filtered(
    task: Searchable, swarm: Swarm, moves: int = MOVES, patience: int = PATIENCE
) -> tuple[Array, int, str]:
    """The mean of the particles, the steps, and why there were no more.

    The likelihood ``exp(-criterion / 2)`` is raised to powers that grow as fast as the weights
    leave half of the particles effective, beyond one, where the particles close in on its top (Del
    Moral, Doucet and Jasra 2006). Resampling is systematic. Jitter alone makes particles crowd
    before they are there: here it is moves of random walks that the likelihood accepts or
    refuses, as wide as the particles and, in turn, as the rows' curvature, which does not shrink
    where particles crowd.
    """
    rng = np.random.default_rng(swarm.seed)
    size, n = swarm.particles, len(task.low)
    sets = rng.uniform(task.low, task.high, (size, n))
    sets[0] = task.begin
    costs = task.cost(sets)
    best, least, since = sets[0], np.inf, 0
    power, reach = 0.0, np.full(2, REACH / np.sqrt(n))
    curvature = np.linalg.inv(task.triangle).T
    for count in range(1, swarm.steps + 1):
        weights, more = tempered(costs, EFFECTIVE * size)
        power += more
        mean = weights @ sets
        spread = np.linalg.qr((sets - mean) * np.sqrt(weights)[:, None], mode="r")
        chosen = systematic(weights, float(rng.uniform()))
        sets, costs = sets[chosen], costs[chosen]
        for move in range(moves):
            kind = move % 2
            root = curvature / np.sqrt(power) if kind else spread
            moved = sets + reach[kind] * rng.normal(size=(size, len(root))) @ root
            new = task.cost(moved)
            goes = np.log(rng.uniform(size=size)) < 0.5 * power * (costs - new)
            goes &= np.all(task.within(moved) == moved, axis=1)
            sets[goes], costs[goes] = moved[goes], new[goes]
            reach[kind] *= np.exp(np.mean(goes) - ACCEPTED)
        mean = np.mean(sets, axis=0)
        cost = float(task.cost(mean[None])[0])
        since = since + 1 if power >= 1.0 and least - cost < STAGNANT else 0
        if cost < least:
            best, least = mean, cost
        if since >= patience:
            return best, count, "stagnated"
    return best, swarm.steps, "stopped"


def tempered(costs: Array, effective: float) -> tuple[Array, float]:
    """Weights ``exp(-power costs / 2)`` that leave so many effective, and the power."""
    above = costs - np.min(costs)
    if not np.any(above):
        return np.full(len(costs), 1.0 / len(costs)), 1.0
    low, high = 0.0, 1e3 / float(np.mean(above))
    for _ in range(50):
        power = 0.5 * (low + high)
        weights = np.exp(-0.5 * power * above)
        if np.sum(weights) ** 2 > effective * np.sum(weights**2):
            low = power
        else:
            high = power
    return np.asarray(weights / np.sum(weights)), power


def systematic(weights: Array, u: float) -> np.ndarray:
    """Indices of particles, each as often as its weight says but for one."""
    size = len(weights)
    places = (np.arange(size) + u) / size
    return np.minimum(np.searchsorted(np.cumsum(weights), places), size - 1)
