"""Parameters at bounds of their own: how far beside the bound the rows let them be.

An estimate at its bound hardly moves with the data, so its spread says next to nothing of where
the true value may be. What does is how much the criterion rises as the parameter leaves the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.conic.cones import Definite, Positive
from dynident.consistency.active import build_face
from dynident.consistency.constraints.consistency import FLOOR
from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet
from dynident.consistency.standard_errors import find_seen_directions
from dynident.core.arrays import Array
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
class Released:
    """Parameters at bounds, each as the rows would have it without its own."""

    names: tuple[str, ...]
    bounds: Array
    """[SI units], shape (k,)."""
    unit: Array
    """What a parameter changes by per slack of its bound, negative of upper ones, shape (k,)."""
    beyond: Array
    """How far beyond its bound each would be, all else at its best on the other active
    constraints, in slack, shape (k,)."""
    gain: Array
    """How that follows ``A^T b``, shape (k, unknowns)."""

    def measure_intervals(self, variance: Array) -> tuple[OneSided, ...]:
        """The intervals, by the variance of `beyond`, shape (k,).

        Squares ``((slack + beyond) / std)^2`` are 3.84 larger at the other end than at the bound,
        where they are least: the interval of a likelihood ratio.
        """
        slack = np.sqrt(self.beyond**2 + NORMAL**2 * variance) - self.beyond
        rows = zip(self.names, self.bounds, self.bounds + self.unit * slack, strict=True)
        return tuple(OneSided(name, float(bound), float(end)) for name, bound, end in rows)


def release_bounds(
    admitted: FeasibleSet, point: FeasiblePoint, faces: Sequence[np.ndarray]
) -> Released | None:
    """The parameters that are at bounds of their own; None where there are none.

    Without those of which neither rows nor prior say anything.
    """
    space = admitted.space
    names, rows = space.base.names, space.matrix
    if space.standard:
        names, rows = (*space.idim.names, *names), np.vstack([np.diag(space.unit), rows])
    size, seen = np.linalg.norm(rows, axis=1), find_seen_directions(admitted)
    found: list[tuple[str, float, float, float, int]] = []
    place = 0  # among the active constraints
    for cone, on, force in zip(admitted.cones, faces, point.solution.multipliers, strict=True):
        if isinstance(cone, Definite):
            place += on.shape[1] * (on.shape[1] + 1) // 2
            continue
        for i in np.flatnonzero(on):
            length = float(np.linalg.norm(cone.G[i]))
            share = rows @ cone.G[i] / (size * length)
            k = int(np.argmax(np.abs(share)))
            if isinstance(cone, Positive) and abs(share[k]) > ALONG and np.all(seen[rows[k] != 0]):
                unit = float(np.copysign(size[k] / length, share[k]))
                # a floor that keeps values positive is no bound that anybody stated
                bound = 0.0 if abs(cone.h[i]) <= FLOOR * length else unit * float(cone.h[i])
                found.append((names[k], bound, unit, 0.5 * float(force[i]), place))
            place += 1
    moved, curvature = build_face(admitted, point, faces).release()
    # without curvature nothing tells how far a parameter may be
    found = [bound for bound in found if curvature[bound[-1]] > 0.0]
    if not found:
        return None
    told, bounds, units, forces, places = zip(*found, strict=True)
    own, each = list(places), curvature[list(places)]
    return Released(
        told, np.array(bounds), np.array(units), np.array(forces) / each, (moved[:, own] / each).T
    )
