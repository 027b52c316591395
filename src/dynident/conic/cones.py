"""Convex constraints on a vector of unknowns: equalities, inequalities, definite matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from dynident.core.arrays import Array


@dataclass(frozen=True)
class LinearCone:
    """Rows ``G x`` compared with ``h``."""

    name: tuple[str, ...]
    """One a row."""
    G: Array
    """Shape (rows, unknowns)."""
    h: Array
    """Shape (rows,)."""


class ZeroCone(LinearCone):
    """``G x = h``, row by row."""


class NonnegativeCone(LinearCone):
    """``G x >= h``, row by row."""


@dataclass(frozen=True)
class SemidefiniteCone:
    """``sum_k x_k basis[k] - floor`` is positive semidefinite.

    Attributes
    ----------
    name : str
    basis : ndarray, shape (unknowns, d, d)
    floor : ndarray, shape (d, d)
    """

    name: str
    basis: Array
    floor: Array

    @cached_property
    def support(self) -> np.ndarray:
        """Unknowns that the matrix depends on."""
        return np.flatnonzero(np.any(self.basis, axis=(1, 2)))

    @cached_property
    def part(self) -> Array:
        """`basis` of the support only."""
        return np.ascontiguousarray(self.basis[self.support])

    def matrix(self, x: Array) -> Array:
        """``sum_k x_k basis[k] - floor``."""
        d = len(self.floor)
        values = x[self.support] @ self.part.reshape(-1, d * d)
        return np.asarray(values.reshape(d, d) - self.floor)


Cone = ZeroCone | NonnegativeCone | SemidefiniteCone


def svec(matrix: Array) -> Array:
    """Upper triangle column by column, off-diagonal entries times sqrt(2)."""
    d = matrix.shape[-1]
    rows, columns = list_triangle_indices(d)
    # so that svec(A) . svec(B) = tr(A B); the order is that of Clarabel's PSDTriangleCone
    scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return np.asarray(matrix[..., rows, columns] * scale)


def smat(vector: Array) -> Array:
    """Symmetric matrix of an svec."""
    d = int((np.sqrt(8 * len(vector) + 1) - 1) / 2)  # of d (d + 1) / 2 entries
    rows, columns = list_triangle_indices(d)
    matrix = np.zeros((d, d))
    matrix[rows, columns] = vector / np.where(rows == columns, 1.0, np.sqrt(2.0))
    return matrix + np.triu(matrix, 1).T


@cache
def list_triangle_indices(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the upper triangle, column by column."""
    pairs = [(i, j) for j in range(d) for i in range(j + 1)]
    rows, columns = zip(*pairs, strict=True)
    return np.array(rows), np.array(columns)


def evaluate_slack(cone: Cone, x: Array) -> Array:
    """``G x - h`` of linear constraints, the matrix of a definite one."""
    if isinstance(cone, SemidefiniteCone):
        return cone.matrix(x)
    return np.asarray(cone.G @ x - cone.h)


def measure_cone_violation(cone: Cone, x: Array) -> float:
    """By how much a point misses a constraint, 0 inside; infinite where it is not a number."""
    s = evaluate_slack(cone, x)
    if not np.all(np.isfinite(s)):
        return np.inf
    if isinstance(cone, ZeroCone):
        return float(np.max(np.abs(s), initial=0.0))
    if isinstance(cone, NonnegativeCone):
        return float(np.max(-s, initial=0.0))
    return max(0.0, -float(np.linalg.eigvalsh(s)[0]))


def differentiate_slack(cone: Cone, multiplier: Array) -> tuple[np.ndarray, Array]:
    """Gradient of ``<multiplier, slack>``: the unknowns that it touches, and its values."""
    if isinstance(cone, SemidefiniteCone):
        d = len(cone.floor)
        return cone.support, cone.part.reshape(-1, d * d) @ multiplier.ravel()
    return np.arange(cone.G.shape[1]), cone.G.T @ multiplier


def project_on_dual_cone(cone: Cone, multiplier: Array) -> Array:
    """The nearest multiplier of the right sign: positive of rows, semidefinite of matrices."""
    if isinstance(cone, ZeroCone):
        return multiplier
    if isinstance(cone, NonnegativeCone):
        return np.maximum(multiplier, 0.0)
    values, vectors = np.linalg.eigh(multiplier)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def list_constraint_names(cones: Sequence[Cone]) -> tuple[str, ...]:
    """Names of all constraints, one a row of linear ones and one a matrix."""
    return tuple(
        name
        for cone in cones
        for name in ((cone.name,) if isinstance(cone, SemidefiniteCone) else cone.name)
    )
