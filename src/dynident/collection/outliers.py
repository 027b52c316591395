"""Robots that do not belong to their fleet, and in what they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri, stdtr

from dynident.collection.member import EqualWeights
from dynident.collection.population import (
    Population,
    add_deviation,
    compare_triangles,
    count_freedom,
    fit_population,
    leave_each_out,
    solve_deviation,
)
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.factors import System, stack_triangles
from dynident.core.inertia import PER_BODY
from dynident.core.words import format_number

LEVEL = 0.01
"""Chance that a sound robot is named, for its links and for its drives."""
ROUNDS = 5
"""Of leaving odd robots out of the population."""
WIDE = 1e3
"""Spread of a deviation that may be anything, over what it usually is."""
UNEXPLAINED = (
    "its links are not those of the others, nor does one link explain it: a zero, a gear or "
    "another robot"
)


@dataclass(frozen=True, eq=False)
class FleetFit:
    """A fleet whose odd robots are told from the others."""

    population: Population
    """Of the robots that belong."""
    kept: tuple[int, ...]
    """Robots that belong."""
    others: tuple[Array, ...]
    """What all other robots that belong tell of the type, for each robot."""
    odd: tuple[str, ...]
    """In what each robot differs, empty for those that belong."""


def fit_fleet(team: EqualWeights) -> FleetFit:
    """Spreads and type of the robots that belong, and which do not.

    A robot's links contradict the others' where the sum of squares of both together exceeds what
    each leaves, its drives being free: chi squared over the fleet's median, which takes in what the
    model lacks. A drive is odd by its deviation over the spread of the others'.

    Raises
    ------
    ComputationError
        Where most robots contradict each other.
    """
    fleet = FleetSetting(team, team.extend(team.drives.M))
    links, found = leave_odd_links_out(fleet)
    odd, found = leave_odd_drives_out(fleet, links, found)
    kept = fleet.list_kept(odd)
    others = list_others(found, kept, team.triangles)
    words = tuple(odd.get(k, "") for k in range(len(team.members)))
    return FleetFit(found, kept, tuple(others), words)


@dataclass(frozen=True, eq=False)
class FleetSetting:
    """What is the same in every round."""

    team: EqualWeights
    M: Array
    """From deviations of drives to all that is shared, shape (P, q)."""

    def list_kept(self, odd: Mapping[int, str]) -> tuple[int, ...]:
        """Robots but for the odd ones, of which there may not be too many."""
        robots = len(self.team.members)
        kept = tuple(k for k in range(robots) if k not in odd)
        if len(kept) < max(2, robots / 2):
            raise ComputationError(
                f"{len(odd)} of {robots} robots contradict the others: they are not of one type, "
                "or their logs are damaged; look at each with dynident doctor"
            )
        return kept

    def fit(self, kept: Sequence[int]) -> Population:
        """The population of some of the robots."""
        team = self.team
        return fit_population([team.triangles[k] for k in kept], self.M, team.drives.start)


def leave_odd_links_out(fleet: FleetSetting) -> tuple[dict[int, str], Population]:
    """Robots whose links contradict the others', with the words, and the population without."""
    odd: dict[int, str] = {}
    triangles, start = fleet.team.triangles, fleet.team.drives.start
    for _ in range(ROUNDS):
        kept = fleet.list_kept(odd)
        found = fleet.fit(kept)
        others = list_others(found, kept, triangles)
        free = [add_deviation(other, fleet.M, WIDE * start)[0] for other in others]
        chances, scale = judge_links(triangles, free, kept)
        before, odd = (
            odd,
            {
                k: explain_links(fleet.team, k, free[k], scale)
                for k, chance in enumerate(chances)
                if chance < LEVEL
            },
        )
        if odd.keys() == before.keys():
            return odd, found
    return odd, fleet.fit(fleet.list_kept(odd))


def leave_odd_drives_out(
    fleet: FleetSetting, odd: Mapping[int, str], found: Population
) -> tuple[dict[int, str], Population]:
    """Robots that are odd by their drives, too: the farthest first, until one belongs."""
    odd = dict(odd)
    while len(found.triangles) > 3:
        kept = fleet.list_kept(odd)
        sizes = np.abs(found.found.deviations) / found.spread
        far = kept[int(np.argmax(np.max(sizes, axis=1)))]
        without = fleet.fit([k for k in kept if k != far])
        words = judge_drives(fleet, without, far)
        if not words:
            break
        odd[far], found = words, without
    return odd, found


def list_others(found: Population, kept: Sequence[int], triangles: Sequence[Array]) -> list[Array]:
    """What the robots that belong tell of the type, without each robot itself."""
    every = stack_triangles(found.triangles)
    without = dict(zip(kept, leave_each_out(found.triangles), strict=True))
    return [without.get(k, every) for k in range(len(triangles))]


def judge_links(
    triangles: Sequence[Array], others: Sequence[Array], kept: Sequence[int]
) -> tuple[list[float], float]:
    """Compare each robot with the others, its drives being free.

    Returns `chances`: of as much in a sound robot. `scale`: by which statistics exceed chi squared
    in the fleet's median, 1 at least.
    """
    found = [
        compare_triangles([triangle, other])
        for triangle, other in zip(triangles, others, strict=True)
    ]
    ratios = [found[k][0] / chdtri(found[k][1], 0.5) for k in kept if found[k][1]]
    scale = max(1.0, float(np.median(ratios)))
    return [float(chdtrc(freedom, value / scale)) for value, freedom in found], scale


def judge_drives(fleet: FleetSetting, others: Population, number: int) -> str:
    """What of a robot's drives is far from the others', in words; empty where nothing is.

    A shift is t distributed: its error has the spread of the others, with the degrees of freedom of
    that. Of those that are too large the one that explains most is named.
    """
    told, line = add_deviation(stack_triangles(others.triangles), fleet.M, others.spread)
    shifts = list_shifts(fleet, others, number)
    largest, words = 0.0, ""
    for name, unit, wide in shifts:
        values, root = find_shift(wide, told)
        size, variance = values[0], float(root[0] @ root[0])
        _, _, shared = solve_deviation(line, values[1:], root[1:])
        # the type is told by as many robots, and moves with the same spreads
        slopes = 2.0 * (shared @ root[0] / others.spread) ** 2 * (1.0 + 1.0 / len(others.triangles))
        freedom = count_freedom(np.array([variance]), slopes[None], others.unsure)[0]
        t = abs(size) / np.sqrt(variance)
        if 2.0 * float(stdtr(freedom, -t)) < LEVEL / len(shifts) and t > largest:
            amount = f"{100.0 * size:+.1f} %" if unit == "%" else format_number(size, 2)
            largest = t
            words = f"{name} differs by {amount}, {t:.1f} times what is usual among the others"
    return words


def list_shifts(
    fleet: FleetSetting, others: Population, number: int
) -> list[tuple[str, str, Array]]:
    """In what a robot's drives may be odd: name, unit, and its triangle behind a column of that.

    Each parameter in its own unit; all friction of a joint, which wear multiplies alike; and the
    scale of each torque.
    """
    team = fleet.team
    drives, triangle, idim = team.drives, team.triangles[number], team.base.idim
    parameters = [idim.parameters[k] for k in drives.places]
    names = [(parameter.name, "") for parameter in parameters]
    directions = [*np.eye(len(parameters))]
    for j, joint in enumerate(idim.robot.joint_names):
        rubs = [p.number == j + 1 and p.symbol[:2] not in ("Ia", "of") for p in parameters]
        if any(rubs):
            names.append((f"friction of {joint}", "%"))
            directions.append(np.where(rubs, drives.values, 0.0))
    columns = triangle[:, :-1] @ fleet.M @ np.array(directions).T
    found = [
        (*name, np.column_stack([column, triangle]))
        for name, column in zip(names, columns.T, strict=True)
    ]
    gains = [
        (f"torque constant or gear of {joint}", "%", team.tell_gain(number, j, others.found.beta))
        for j, joint in enumerate(idim.robot.joint_names)
    ]
    return [*found, *gains]


def find_shift(wide: Array, other: Array) -> tuple[Array, Array]:
    """A robot's shift and parameters, and a root of their covariance.

    `wide`, shape (k, 1 + p + 1): its triangle behind a column of the shift. `other`, shape (l, p +
    1): what others tell of its parameters but for the shift.
    """
    known = np.column_stack([np.zeros(len(other)), other])
    system = System.of(stack_triangles([wide, known]))
    return system.solve(), system.inverse()


def find_deviation(triangle: Array, other: Array, M: Array, spread: Array) -> tuple[Array, Array]:
    """A robot's deviation from the type that the others tell, and a root of its covariance."""
    told, line = add_deviation(other, M, spread)
    system = System.of(stack_triangles([triangle, told]))
    deviation, own, shared = solve_deviation(line, system.solve(), system.inverse())
    return -deviation, np.hstack([own, -shared])  # the type is the robot plus what was eliminated


def explain_links(team: EqualWeights, number: int, other: Array, scale: float) -> str:
    """The one link whose parameters explain a contradiction, or the one torque, in words.

    `other`: what the others tell, the robot's drives being free.
    """
    robot, triangle = team.base.idim.robot, team.triangles[number]
    shared = System.of(other).solve()
    best, words = LEVEL, UNEXPLAINED
    for k, link in enumerate(robot.links):
        own = team.extend(team.base.matrix[:, PER_BODY * k : PER_BODY * (k + 1)])
        told, _ = add_deviation(other, own, np.full(PER_BODY, WIDE))
        value, freedom = compare_triangles([triangle, told])
        chance = float(chdtrc(freedom, value / scale))
        if chance > best:
            deviation, root = find_deviation(triangle, other, own, np.full(PER_BODY, WIDE))
            mass, sure = deviation[0], np.linalg.norm(root[0])
            size = f" by {mass:+.3f} ± {1.96 * sure:.3f} kg" if abs(mass) > 2.0 * sure else ""
            best, words = chance, f"{link} differs{size}: a tool, a load or another part"
    for j, joint in enumerate(robot.joint_names):
        wide = team.tell_gain(number, j, shared)
        value, freedom = compare_triangles([wide[1:, 1:], other])
        chance = float(chdtrc(freedom, value / scale))
        if chance > best:
            values, root = find_shift(wide, other)
            sure = np.linalg.norm(root[0]) * np.sqrt(scale)
            best, size = chance, f"{100.0 * values[0]:+.1f} ± {196.0 * sure:.1f} %"
            words = f"torque constant or gear of {joint} differs by {size}"
    return words
