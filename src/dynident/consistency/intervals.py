"""Intervals of parameters beside bounds and active constraints, which need not be even."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynident.conic.cones import NonnegativeCone
from dynident.consistency.constraints.consistency import FLOOR
from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet
from dynident.consistency.reach import Reach
from dynident.consistency.standard_errors import find_seen_directions
from dynident.core.arrays import Array
from dynident.regression.statistics import NORMAL

ALONG = 1.0 - 1e-9
"""Cosine between a constraint and a parameter from which it is a bound of that one alone."""


@dataclass(frozen=True)
class Interval:
    """An interval of 95 % that is not that of a normal distribution [SI units]."""

    name: str
    low: float
    high: float
    std: float
    """Of the normal distribution whose interval would be as long: about the estimate, without
    bounds; of a parameter at its bound, about that bound."""
    at_bound: bool = False
    """Whether the estimate is at a bound of its own, where the interval begins."""


class OwnBound(NamedTuple):
    """A bound of one parameter, base or standard, alone."""

    name: str
    row: Array
    """The parameter among the unknowns, its sign that towards larger slacks."""
    lower: bool
    value: float
    """Zero where nothing but the sign is asked for."""
    active: bool


def measure_intervals(
    admitted: FeasibleSet, point: FeasiblePoint, faces: Sequence[np.ndarray], reach: Reach
) -> tuple[Interval, ...]:
    """Those of parameters at bounds of their own, and of base parameters beside constraints.

    The latter end at bounds of their own: what is beyond is known to be impossible. Without those
    of which neither rows nor prior say anything.
    """
    bounds = list(list_own_bounds(admitted, faces))
    found: dict[str, Interval] = {}
    for bound in bounds:
        far = float(reach.measure_release(bound.row[None])[0]) if bound.active else 0.0
        if far > 0.0:
            end = bound.value + (NORMAL if bound.lower else -NORMAL) * far
            low, high = min(bound.value, end), max(bound.value, end)
            found[bound.name] = Interval(bound.name, low, high, far, True)
    space = admitted.space
    down, up = reach.measure_sides(space.matrix)
    for name, beta, below, above in zip(space.base.names, point.beta, down, up, strict=True):
        own = [bound for bound in bounds if bound.name == name]
        least = max((bound.value for bound in own if bound.lower), default=-np.inf)
        most = min((bound.value for bound in own if not bound.lower), default=np.inf)
        low, high = float(beta - NORMAL * below), float(beta + NORMAL * above)
        if name not in found and (reach.released is not None or low < least or high > most):
            std = 0.5 * float(below + above)
            found[name] = Interval(name, max(low, least), min(high, most), std)
    return tuple(found.values())


def list_own_bounds(admitted: FeasibleSet, faces: Sequence[np.ndarray]) -> Iterator[OwnBound]:
    """All bounds of single parameters that rows or prior say something of."""
    space = admitted.space
    names, rows = space.base.names, space.matrix
    if space.standard:
        names, rows = (*space.idim.names, *names), np.vstack([np.diag(space.unit), rows])
    size, seen = np.linalg.norm(rows, axis=1), find_seen_directions(admitted)
    for cone, on in zip(admitted.cones, faces, strict=True):
        if not isinstance(cone, NonnegativeCone):
            continue
        for g, h, active in zip(cone.G, cone.h, on, strict=True):
            length = float(np.linalg.norm(g))
            share = rows @ g / (size * length)
            k = int(np.argmax(np.abs(share)))
            if abs(share[k]) <= ALONG or not np.all(seen[rows[k] != 0]):
                continue
            sign = float(np.sign(share[k]))
            # a floor that keeps values positive is not a bound that anybody stated
            stated = abs(h) > FLOOR * length
            value = sign * size[k] / length * float(h) if stated else 0.0
            yield OwnBound(names[k], sign * rows[k], sign > 0.0, value, bool(active))
