"""Random smooth motions of the hand: joints that lead it along a curve through points in space.

The points are where random joint positions have the hand, so that it reaches them. Between them
the joints are those nearest to a smooth curve of their own that have it on its curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.contacts import follow_frame
from dynident.dynamics.tree import Tree
from dynident.excitation.drawn import draw_ways
from dynident.excitation.limits import Limits
from dynident.excitation.trajectories import PER_MOVE, TrajectoryFamily

FOLLOWED = 1e-3
"""How far the hand may be from its curve [m]."""
STEPS = 12
"""Of Newton's method, from the joints' own curve to the hand's."""
SINGULAR = 1e-3
"""Singular value of the hand's Jacobian, over the largest, that moves no joint."""


@dataclass(frozen=True)
class HandMotions:
    """Draws motions of the last link's frame, and finds the joints' motions.

    The family are splines fine enough to follow the curve.
    """

    tree: Tree
    family: TrajectoryFamily

    @property
    def points(self) -> int:
        """Of the curve, equidistant in time, the first and the last among them."""
        return (len(self.family.parts[0].knots) - 1) // PER_MOVE + 1

    def draw(self, rng: np.random.Generator, place: Array, limits: Limits) -> Array:
        """Ways from a place to joint positions within ranges, the first of them none.

        Shape (points, n) [rad or m].
        """
        return draw_ways(rng, self.points, place, limits)

    def follow(self, joints: Array) -> Array | None:
        """Coefficients with which the hand follows a curve through points; None where it cannot.

        The joints' positions at the points have the shape (points, n) [rad or m], the coefficients
        (functions, n).
        """
        family = self.family
        knots = family.parts[0].knots
        times = np.unique(np.concatenate([np.linspace(a, b, 7) for a, b in pairwise(knots)]))
        at = np.linspace(family.start, family.stop, self.points)
        curve = join_smoothly(at, self.locate(joints)[0], times)
        q = join_smoothly(at, joints, times)
        for _ in range(STEPS):
            origin, J = self.locate(q)
            q += np.einsum("tji,ti->tj", np.linalg.pinv(J, rcond=SINGULAR), curve - origin)
        Phi = family.values(times)
        C = np.asarray(np.linalg.lstsq(Phi, q, rcond=None)[0])
        origin, J = self.locate(Phi @ C)
        missed = curve - origin
        if np.max(np.linalg.matrix_rank(J, tol=SINGULAR)) < 3:
            # few joints lead the hand along a surface or a line: to where that is nearest
            missed = np.einsum("tij,tj->ti", J @ np.linalg.pinv(J, rcond=SINGULAR), missed)
        return C if float(np.max(np.linalg.norm(missed, axis=1))) <= FOLLOWED else None

    def locate(self, q: Array) -> tuple[Array, Array]:
        """Where the hand is [m] and its Jacobian, shapes (samples, 3) and (samples, 3, n)."""
        found = follow_frame(self.tree, len(self.tree.kind) - 1, np.eye(3), np.zeros(3), q)
        return found.origin, found.turn @ found.jacobian[:, :3]


def join_smoothly(at: Array, points: Array, times: Array) -> Array:
    """The quintic spline through points that rests at its ends, at other times."""
    from scipy.interpolate import make_interp_spline

    zero = np.zeros(points.shape[1])
    rest = [(1, zero), (2, zero)]
    found = make_interp_spline(at, points, k=5, bc_type=(rest, rest))  # type: ignore[arg-type]
    return np.asarray(found(times))
