"""Motions that are drawn and taken as they are, as wide as the limits let them be.

Sweeps go there and back at speeds that grow from move to move, which is what friction asks for;
rests hold random poses, which is what gravity asks for. A search would take the fastest alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array
from dynident.excitation.limits import Limits
from dynident.excitation.trajectories import CRUISE, HOLD, TrajectoryFamily

INSIDE = 0.95
"""Share of the joints' ranges in which points are drawn."""
SLOWEST = 0.03
"""Way of the shortest sweep over that of the longest: so are their speeds."""


class MotionDraw(NamedTuple):
    """What draws points about a place, and leads a motion through them."""

    draw: Callable[[np.random.Generator, Array, Limits], Array]
    """Ways from a place to points within limits, shape (points, n) [rad or m]."""
    follow: Callable[[Array], Array | None] = np.asarray
    """Coefficients of the motion through points, shape (functions, n); None where there is none."""


def draw_ways(rng: np.random.Generator, points: int, place: Array, limits: Limits) -> Array:
    """Ways from a place to random positions within ranges, the first of them none."""
    middle = 0.5 * (limits.lower + limits.upper)
    half = 0.5 * INSIDE * (limits.upper - limits.lower)
    away = middle + half * rng.uniform(-1.0, 1.0, (points, len(place))) - place
    away[0] = 0.0
    return away


def draw_poses(
    family: TrajectoryFamily, rng: np.random.Generator, place: Array, limits: Limits
) -> Array:
    """Random poses of `rests`."""
    return keep_speeds(
        draw_ways(rng, family.count, place, limits), family, 0.5 - 0.5 * HOLD, limits
    )


def draw_ladder(
    family: TrajectoryFamily, rng: np.random.Generator, place: Array, limits: Limits
) -> Array:
    """Points of `sweeps` on both sides of a place in turn, farther and farther.

    Every other joint comes nearer and nearer instead, so that not all are slow at once.
    """
    rungs = np.arange(family.count)
    far = SLOWEST ** (1.0 - rungs / rungs[-1]) * (-1.0) ** rungs
    room = INSIDE * np.minimum(limits.upper - place, place - limits.lower)
    away = far[:, None] * room * rng.choice([-1.0, 1.0], len(place))
    away[:, 1::2] = away[::-1, 1::2]
    return keep_speeds(away, family, 0.5 + 0.5 * CRUISE, limits)


def keep_speeds(away: Array, family: TrajectoryFamily, share: float, limits: Limits) -> Array:
    """Ways made shorter where they are too fast: a move at top speed takes a share of its time."""
    move = family.length / (family.count - 1)
    speed = np.abs(np.diff(away, axis=0)).max(axis=0) / (share * move)
    return np.asarray(away * np.minimum(1.0, INSIDE * limits.speed / np.maximum(speed, 1e-12)))
