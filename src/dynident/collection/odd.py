"""Robots that do not belong to their fleet, and in what they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri, stdtr

from dynident.collection.member import Member
from dynident.collection.population import (
    Population,
    add_deviation,
    compare_triangles,
    fit_population,
    leave_each_out,
    solve_deviation,
)
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.words import format_number
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.idim import Idim
from dynident.regression.factors import System, stack_triangles

LEVEL = 0.01
"""Chance that a sound robot is named, for its links and for its drives."""
ROUNDS = 5
"""Of leaving odd robots out of the population."""
WIDE = 1e3
"""Spread of a deviation that may be anything, over what it usually is."""
SMALLEST = 0.1
"""Spread to begin with, as a share of a parameter's size."""
BODY = 10


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fleet whose odd robots are told from the others.

    Attributes
    ----------
    population : Population
        Of the robots that belong.
    drives : tuple of int
        Standard parameters that each robot has of its own.
    M : ndarray, shape (p, q)
        From these to base parameters.
    kept : tuple of int
        Robots that belong.
    others : tuple of ndarray
        What all other robots that belong tell of the type, for each robot.
    odd : tuple of str
        In what each robot differs, empty for those that belong.
    """

    population: Population
    drives: tuple[int, ...]
    M: Array
    kept: tuple[int, ...]
    others: tuple[Array, ...]
    odd: tuple[str, ...]


def fit_fleet(members: Sequence[Member]) -> Fitted:
    """Spreads and type of the robots that belong, and which do not.

    A robot's links contradict the others' where the sum of squares of both together exceeds what
    each leaves, its drives being free: chi squared over the fleet's median, which takes in what the
    model lacks. A drive is odd by its deviation over the spread of the others'.

    Raises
    ------
    ComputationError
        Where most robots contradict each other.
    """
    base = members[0].problem.base
    idim = base.idim
    drives = tuple(range(idim.inertial, len(idim.parameters)))
    M = base.matrix[:, drives]
    triangles = [member.triangle for member in members]
    start = guess_spreads(idim, System.of(stack_triangles(triangles)).solve(), M)
    fleet = Fleetwide(base, drives, M, triangles, start)
    links, found = leave_odd_links_out(fleet)
    odd, found = leave_odd_drives_out(fleet, links, found)
    kept = fleet.list_kept(odd)
    others = list_others(found, kept, triangles)
    words = tuple(odd.get(k, "") for k in range(len(members)))
    return Fitted(found, drives, M, kept, tuple(others), words)


@dataclass(frozen=True, eq=False)
class Fleetwide:
    """What is the same in every round: see `Fitted`, and spreads to begin with."""

    base: BaseParameters
    drives: tuple[int, ...]
    M: Array
    triangles: Sequence[Array]
    start: Array

    def list_kept(self, odd: Mapping[int, str]) -> tuple[int, ...]:
        """Robots but for the odd ones, of which there may not be too many."""
        robots = len(self.triangles)
        kept = tuple(k for k in range(robots) if k not in odd)
        if len(kept) < max(2, robots / 2):
            raise ComputationError(
                f"{len(odd)} of {robots} robots contradict the others: they are of no one type, "
                "or their logs are damaged; look at each with dynident doctor"
            )
        return kept

    def fit(self, kept: Sequence[int]) -> Population:
        """The population of some of the robots."""
        return fit_population([self.triangles[k] for k in kept], self.M, self.start)


def leave_odd_links_out(fleet: Fleetwide) -> tuple[dict[int, str], Population]:
    """Robots whose links contradict the others', with the words, and the population without."""
    odd: dict[int, str] = {}
    for _ in range(ROUNDS):
        kept = fleet.list_kept(odd)
        found = fleet.fit(kept)
        others = list_others(found, kept, fleet.triangles)
        free = [add_deviation(other, fleet.M, WIDE * fleet.start)[0] for other in others]
        chances, scale = judge_links(fleet.triangles, free, kept)
        before, odd = (
            odd,
            {
                k: explain_links(fleet.base, fleet.triangles[k], free[k], scale)
                for k, chance in enumerate(chances)
                if chance < LEVEL
            },
        )
        if odd.keys() == before.keys():
            return odd, found
    return odd, fleet.fit(fleet.list_kept(odd))


def leave_odd_drives_out(
    fleet: Fleetwide, odd: Mapping[int, str], found: Population
) -> tuple[dict[int, str], Population]:
    """Robots that are odd by their drives, too: the farthest first, until one belongs."""
    odd = dict(odd)
    while len(found.deviations) > 3:
        kept = fleet.list_kept(odd)
        far = kept[int(np.argmax(np.max(np.abs(found.deviations) / found.spread, axis=1)))]
        without = fleet.fit([k for k in kept if k != far])
        words = judge_drives(fleet, without, fleet.triangles[far])
        if not words:
            break
        odd[far], found = words, without
    return odd, found


def guess_spreads(idim: Idim, beta: Array, M: Array) -> Array:
    """A tenth of the largest parameter of its kind."""
    size = np.abs(np.linalg.pinv(M) @ beta)
    symbols = [p.symbol for p in idim.parameters[idim.inertial :]]
    largest = [
        max(s for s, other in zip(size, symbols, strict=True) if other == own) for own in symbols
    ]
    return np.asarray(SMALLEST * np.maximum(largest, 1e-6))


def list_others(found: Population, kept: Sequence[int], triangles: Sequence[Array]) -> list[Array]:
    """What the robots that belong tell of the type, without each robot itself."""
    every = stack_triangles(found.triangles)
    without = dict(zip(kept, leave_each_out(found.triangles), strict=True))
    return [without.get(k, every) for k in range(len(triangles))]


def judge_links(
    triangles: Sequence[Array], others: Sequence[Array], kept: Sequence[int]
) -> tuple[list[float], float]:
    """Compare each robot with the others, its drives being free.

    Returns
    -------
    chances : list of float
        Of as much in a sound robot.
    scale : float
        By which statistics exceed chi squared in the fleet's median, 1 at least.
    """
    found = [
        compare_triangles(triangle, other)
        for triangle, other in zip(triangles, others, strict=True)
    ]
    ratios = [found[k][0] / chdtri(found[k][1], 0.5) for k in kept if found[k][1]]
    scale = max(1.0, float(np.median(ratios)))
    return [float(chdtrc(freedom, value / scale)) for value, freedom in found], scale


def judge_drives(fleet: Fleetwide, others: Population, triangle: Array) -> str:
    """The drive's parameter that is far from the others', in words; empty where none is.

    Each parameter's deviation is free in turn, the others keep their spreads. It is t distributed
    about the type, for so many others tell the spread.
    """
    told, parameters = stack_triangles(others.triangles), fleet.base.idim.parameters
    worst, words = 1.0, ""
    for k, place in enumerate(fleet.drives):
        free = others.spread.copy()
        free[k] *= WIDE
        deviation, error = find_deviation(triangle, told, fleet.M, free)
        t = deviation[k] / np.hypot(others.spread[k], error[k])
        chance = 2.0 * float(stdtr(len(others.deviations) - 1, -abs(t)))
        if chance < worst:
            worst = chance
            words = (
                f"{parameters[place].name} differs by {format_number(deviation[k], 2)}, "
                f"{abs(t):.1f} times the spread of the others"
            )
    return words if worst < LEVEL / len(fleet.drives) else ""


def find_deviation(triangle: Array, other: Array, M: Array, spread: Array) -> tuple[Array, Array]:
    """A robot's deviation from the type that the others tell, and its standard errors."""
    told, line = add_deviation(other, M, spread)
    system = System.of(stack_triangles([triangle, told]))
    deviation, error = solve_deviation(line, system.solve(), system.inverse())
    return -deviation, error  # the type is the robot plus what was eliminated


def explain_links(base: BaseParameters, triangle: Array, other: Array, scale: float) -> str:
    """The one link whose parameters explain a contradiction, in words.

    Parameters
    ----------
    other : ndarray
        What the others tell, the robot's drives being free.
    """
    robot = base.idim.robot
    best = np.inf, 0, 0
    for k in range(base.idim.inertial // BODY):
        told, _ = add_deviation(
            other, base.matrix[:, BODY * k : BODY * (k + 1)], np.full(BODY, WIDE)
        )
        value, freedom = compare_triangles(triangle, told)
        best = min(best, (value, freedom, k))
    value, freedom, k = best
    if chdtrc(freedom, value / scale) < LEVEL:
        return (
            "its links are not those of the others, nor does one link explain it: a zero, a gear "
            "or another robot"
        )
    own = base.matrix[:, BODY * k : BODY * (k + 1)]
    deviation, error = find_deviation(triangle, other, own, np.full(BODY, WIDE))
    name = robot.links[k]
    mass, sure = deviation[0], error[0]
    size = f" by {mass:+.3f} ± {1.96 * sure:.3f} kg" if abs(mass) > 2.0 * sure else ""
    return f"{name} differs{size}: a tool, a load or another part"
