"""How far the truth may lie where constraints are active.

An estimate on its active constraints hardly moves with the data in the directions that these bar,
so its spread says next to nothing of where the true values may be there: of a parameter at its
bound, and of what goes together with it. They may lie wherever the constraints give way. In
coordinates in which the estimate without these constraints has unit variance that is a cone T
about the estimate, and a combination ``g`` of the coordinates reaches to ``1.96 ||P g||``, with the
projection P on T: the largest ``g^T y`` of all ``||y|| <= 1.96`` in T. Along directions that no
constraint bars it is the usual interval, of a parameter at its bound it begins there, and of what
is beside it is longer on the side on which a constraint gives way. How far beyond their constraints
the rows would be does not shorten it (Mandelkern and Schultz 2000).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dynident.conic.cones import Cone, NonnegativeCone, SemidefiniteCone, ZeroCone, smat
from dynident.conic.solve import RepeatedSolver
from dynident.consistency.active import build_face
from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet
from dynident.core.arrays import Array

SLIGHT = 0.15
"""Share of a standard deviation on the faces up to which what gives way beside is not measured, but
bounded: intervals are longer by 1.1 % at most."""
REPEATED = 1e-12
"""Variance over the largest of combinations of constraints that repeat each other."""


@dataclass(frozen=True)
class ReleasedDirections:
    """What gives way as active constraints do, by slacks."""

    sizes: tuple[int, ...]
    """Of the matrices, one after another, of whose `svec` the slacks are; 1 of a row."""
    moved: Array
    """How the unknowns follow the slacks, all else at its best, shape (unknowns, k)."""
    gain: Array
    """How the slacks of the estimate without these constraints follow ``A^T b``, shape
    (k, unknowns)."""

    def list_cones(self, root: Array) -> list[Cone]:
        """What y with the slacks ``root y`` may be, each constraint in units of its own."""
        cones, start = list[Cone](), 0
        for d in self.sizes:
            rows = root[start : start + count_entries(d)]
            start += len(rows)
            length = np.linalg.norm(rows)
            if length == 0.0:
                continue  # no error of the rows moves it
            rows = rows / length
            if d == 1:
                cones.append(NonnegativeCone(("",), rows, np.zeros(1)))
            else:
                cones.append(
                    SemidefiniteCone("", np.array([smat(row) for row in rows.T]), np.zeros((d, d)))
                )
        return cones


def count_entries(d: int) -> int:
    """Of a symmetric matrix, each once."""
    return d * (d + 1) // 2


def release_constraints(
    admitted: FeasibleSet, point: FeasiblePoint, faces: Sequence[np.ndarray]
) -> ReleasedDirections | None:
    """The active constraints that may give way; None where there are none.

    Without equalities, and without those beside which nothing tells how far anything may be.
    """
    moved, curvature = build_face(admitted, point, faces).release()
    told = np.diag(curvature) > 0.0
    places, sizes, place = list[int](), list[int](), 0
    for cone, on in zip(admitted.cones, faces, strict=True):
        for d in (on.shape[1],) if isinstance(cone, SemidefiniteCone) else (1,) * int(np.sum(on)):
            own = range(place, place + count_entries(d))
            place = own.stop
            if d and not isinstance(cone, ZeroCone) and np.all(told[own]):
                places += own
                sizes.append(d)
    if not places:
        return None
    of = curvature[np.ix_(places, places)]
    gain = np.linalg.pinv(of, rcond=REPEATED, hermitian=True) @ moved[:, places].T
    return ReleasedDirections(tuple(sizes), moved[:, places], gain)


@dataclass(frozen=True)
class Reach:
    """How far combinations of the unknowns may be from the estimate, in standard deviations."""

    covariance: Array
    """Of the unknowns on the active constraints, shape (unknowns, unknowns)."""
    released: ReleasedDirections | None = None
    variance: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """Of the slacks without these constraints, shape (k, k)."""

    def measure_sides(self, rows: Array) -> tuple[Array, Array]:
        """Downwards and upwards, of each row."""
        variances = np.einsum("ij,jk,ik->i", rows, self.covariance, rows)
        on_faces = np.sqrt(np.maximum(variances, 0.0))
        down, up = (
            np.hypot(on_faces, self.measure_release(sign * rows, SLIGHT * on_faces))
            for sign in (-1.0, 1.0)
        )
        return down, up

    def measure_std(self, rows: Array) -> Array:
        """Of the normal distributions whose intervals are as long."""
        return np.asarray(0.5 * np.add(*self.measure_sides(rows)))

    def measure_release(self, rows: Array, slight: Array | float = 0.0) -> Array:
        """Upwards, by what gives way alone; up to `slight`, a bound of it."""
        if self.released is None:
            return np.zeros(len(rows))
        slopes = rows @ self.released.moved @ self.root
        found = np.linalg.norm(slopes, axis=1)  # of no projection more
        asked = np.flatnonzero(found > slight)
        if len(asked) and self.projection is not None:
            inside = self.projection.minimisers(slopes[asked] / found[asked, None])
            found[asked] *= np.linalg.norm(inside, axis=1)
        return np.asarray(found)

    @cached_property
    def root(self) -> Array:
        """Of the slacks' variance, shape (k, rank)."""
        size, axes = np.linalg.eigh(self.variance)
        kept = size > REPEATED * size[-1]
        return np.asarray(axes[:, kept] * np.sqrt(size[kept]))

    @cached_property
    def projection(self) -> RepeatedSolver | None:
        """That of coordinates of unit variance on those whose slacks are admitted; None of all."""
        cones = [] if self.released is None else self.released.list_cones(self.root)
        none = np.zeros(self.root.shape[1])
        return RepeatedSolver(np.eye(len(none)), none, cones, none) if cones else None
