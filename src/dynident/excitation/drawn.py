"""Motions that are drawn and taken as they are, as wide as the limits let them be.

Sweeps go there and back at speeds that grow from move to move, which is what friction asks for;
rests hold random poses, which is what gravity asks for. A search would take the fastest alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dynident.core.arrays import Array
from dynident.excitation.limits import Limits
from dynident.excitation.trajectories import CRUISE, HOLD, Family

INSIDE = 0.95
"""Share of the joints' ranges in which points are drawn."""
SLOWEST = 0.03
"""Way of the shortest sweep over that of the longest: so are their speeds."""


class Drawn(Protocol):
    """What draws points about a place, and leads a motion through them."""

    def draw(self, rng: np.random.Generator, place: Array, limits: Limits) -> Array:
        """Ways from a place to points within limits, shape (points, n) [rad or m]."""

    def follow(self, joints: Array) -> Array | None:
        """Coefficients of the motion through points, shape (functions, n); None without one."""


def draw_ways(rng: np.random.Generator, points: int, place: Array, limits: Limits) -> Array:
    """Ways from a place to random positions within ranges, the first of them none."""
    middle = 0.5 * (limits.lower + limits.upper)
    half = 0.5 * INSIDE * (limits.upper - limits.lower)
    away = middle + half * rng.uniform(-1.0, 1.0, (points, len(place))) - place
    away[0] = 0.0
    return away


@dataclass(frozen=True)
class Poses:
    """Draws random poses, which the moves of `rests` lead to.

    Attributes
    ----------
    family : Family
        Whose coefficients are the points.
    """

    family: Family

    def draw(self, rng: np.random.Generator, place: Array, limits: Limits) -> Array:
        """See `Drawn`."""
        part = self.family
        move = (1.0 - HOLD) * (part.stop - part.start) / (part.count - 1)
        return keep_speeds(draw_ways(rng, part.count, place, limits), 0.5 * move, limits)

    def follow(self, joints: Array) -> Array:
        """See `Drawn`."""
        return joints


@dataclass(frozen=True)
class Ladder:
    """Draws points on both sides of a place in turn, farther and farther, or nearer and nearer.

    Every other joint goes the other way, so that not all are slow at once.

    Attributes
    ----------
    family : Family
        Whose coefficients are the points.
    """

    family: Family

    def draw(self, rng: np.random.Generator, place: Array, limits: Limits) -> Array:
        """See `Drawn`."""
        family = self.family
        rungs = np.arange(family.count)
        far = SLOWEST ** (1.0 - rungs / rungs[-1]) * (-1.0) ** rungs
        room = INSIDE * np.minimum(limits.upper - place, place - limits.lower)
        room *= rng.choice([-1.0, 1.0], len(place))
        away = far[:, None] * room
        away[:, 1::2] = away[::-1, 1::2]
        move = (family.stop - family.start) / (family.count - 1)
        return keep_speeds(away, 0.5 * (1.0 + CRUISE) * move, limits)

    def follow(self, joints: Array) -> Array:
        """See `Drawn`."""
        return joints


def keep_speeds(away: Array, move: float, limits: Limits) -> Array:
    """Ways made shorter where moves at a mean speed of this time [s] would be too fast."""
    speed = np.abs(np.diff(away, axis=0)).max(axis=0) / move
    return np.asarray(away * np.minimum(1.0, INSIDE * limits.speed / speed))
