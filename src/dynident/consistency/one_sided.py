"""Intervals of parameters where constraints are active, which need not be even about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.conic.cones import Positive
from dynident.consistency.constraints.consistency import FLOOR
from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet
from dynident.consistency.reach import Reach
from dynident.consistency.standard_errors import find_seen_directions
from dynident.regression.statistics import NORMAL

ALONG = 1.0 - 1e-9
"""Cosine between a constraint and a parameter from which it is a bound of that one alone."""


@dataclass(frozen=True)
class OneSided:
    """A parameter at a bound, and its interval of 95 %, which begins there [SI units]."""

    name: str
    bound: float
    """Zero where nothing but the sign is asked for."""
    end: float
    """The other end; below the bound where that is an upper one."""

    @property
    def interval(self) -> tuple[float, float]:
        """The lesser end and the greater one."""
        return min(self.bound, self.end), max(self.bound, self.end)

    @property
    def std(self) -> float:
        """Of the normal distribution about the bound whose 95 % end there."""
        return abs(self.end - self.bound) / NORMAL


@dataclass(frozen=True)
class Uneven:
    """A parameter beside active constraints, and its interval of 95 % [SI units]."""

    name: str
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    @property
    def std(self) -> float:
        """Of the normal distribution whose interval is as long."""
        return (self.high - self.low) / (2.0 * NORMAL)


def measure_one_sided(
    admitted: FeasibleSet, point: FeasiblePoint, faces: Sequence[np.ndarray], reach: Reach
) -> tuple[OneSided, ...]:
    """The parameters that are at bounds of their own.

    Without those of which neither rows nor prior say anything.
    """
    space = admitted.space
    names, rows = space.base.names, space.matrix
    if space.standard:
        names, rows = (*space.idim.names, *names), np.vstack([np.diag(space.unit), rows])
    size, seen = np.linalg.norm(rows, axis=1), find_seen_directions(admitted)
    found: list[OneSided] = []
    for cone, on in zip(admitted.cones, faces, strict=True):
        if not isinstance(cone, Positive):
            continue
        for i in np.flatnonzero(on):
            length = float(np.linalg.norm(cone.G[i]))
            share = rows @ cone.G[i] / (size * length)
            k = int(np.argmax(np.abs(share)))
            if abs(share[k]) <= ALONG or not np.all(seen[rows[k] != 0]):
                continue
            sign = float(np.sign(share[k]))
            far = float(reach.measure_release(sign * rows[k : k + 1])[0])
            if far > 0.0:
                # a floor that keeps values positive is no bound that anybody stated
                stated = abs(cone.h[i]) > FLOOR * length
                bound = sign * size[k] / length * float(cone.h[i]) if stated else 0.0
                found.append(OneSided(names[k], bound, bound + sign * NORMAL * far))
    return tuple(found)


def measure_uneven(
    admitted: FeasibleSet, point: FeasiblePoint, reach: Reach, known: Sequence[OneSided]
) -> tuple[Uneven, ...]:
    """The base parameters beside active constraints, without those that are at bounds."""
    if reach.released is None:
        return ()
    space, at = admitted.space, {own.name for own in known}
    down, up = reach.measure_sides(space.matrix)
    ends = zip(space.base.names, point.beta - NORMAL * down, point.beta + NORMAL * up, strict=True)
    return tuple(Uneven(name, float(a), float(b)) for name, a, b in ends if name not in at)
