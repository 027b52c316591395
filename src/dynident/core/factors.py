"""Triangular factors: all that linear estimation needs of a log, whatever its length.

Per group of rows (a joint) only the factor ``A`` with ``A^T A = [X y]^T [X y]`` is kept, by
QR and never through a normal matrix. Factors of logs add by stacking.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular

from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.threads import map_in_threads

UNEXCITED = 1e7
"""Condition number of the scaled regressor above which the rows do not excite it."""
CLEARLY = 100.0
"""By how much a condition number that is only estimated has to be better than that."""
FEW, SELDOM = 5, 0.02
"""Rows for each parameter of a group, and share of all rows: fewer do not tell its noise."""


def triangularise_rows(rows: Array) -> Array:
    """Upper-triangular (or, with few rows, trapezoidal) factor of a matrix."""
    return np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)


def triangularise_occupied(rows: Array) -> Array:
    """A factor of a matrix by its columns that are not empty, whose own lines are empty, too."""
    occupied = np.flatnonzero(rows.any(axis=0))
    if len(occupied) == rows.shape[1]:
        return triangularise_rows(rows)
    R = spread_columns(triangularise_rows(rows[:, occupied]), occupied, rows.shape[1])
    found = np.zeros((rows.shape[1], rows.shape[1]))
    found[occupied[: len(R)]] = R
    return found


def spread_columns(A: Array, places: Integers, width: int) -> Array:
    """Columns in these places of so many, zeros in the others."""
    found = np.zeros((len(A), width))
    found[:, places] = A
    return found


def fix_signs(R: Array) -> Array:
    """The same factor with a diagonal that is not negative, which makes it unique."""
    return np.asarray(R * np.where(np.diag(R) < 0.0, -1.0, 1.0)[:, None])


def measure_columns(A: Array) -> Array:
    """Lengths of columns, to scale them by: 1 for empty ones."""
    norms = np.linalg.norm(A, axis=0)
    return np.where(norms > 0.0, norms, 1.0)


@dataclass(frozen=True)
class GroupFactor:
    """The rows of one group, compressed."""

    name: str
    factor: Array
    """``factor^T factor = [X y]^T [X y]``, shape (k, parameters + 1)."""
    rows: int
    """How many rows it stands for."""
    noise: str = ""
    """Whatever has the same here has the same sigma: the group alone where it is empty."""

    def select(self, columns: Sequence[int]) -> GroupFactor:
        """The same rows with only some of the columns of [X y]."""
        return replace(self, factor=triangularise_rows(self.factor[:, columns]))

    def spread(self, places: Integers, width: int) -> GroupFactor:
        """The same rows with their columns in these places of so many, zeros in the others."""
        return replace(self, factor=spread_columns(self.factor, places, width))

    def merge(self, other: GroupFactor) -> GroupFactor:
        """Both sets of rows together."""
        both = triangularise_rows(np.vstack([self.factor, other.factor]))
        return replace(self, factor=both, rows=self.rows + other.rows)

    @cached_property
    def columns(self) -> Integers:
        """Parameters that act in the group."""
        return np.flatnonzero(np.any(self.factor[:, :-1], axis=0))

    def transform(self, matrix: Array) -> GroupFactor:
        """The same rows in other parameters, of which these are ``matrix @ others``."""
        factor = np.column_stack([self.factor[:, :-1] @ matrix, self.factor[:, -1]])
        return replace(self, factor=triangularise_rows(factor))


def stack_weighted_groups(groups: Sequence[GroupFactor], sigma: Array) -> Array:
    """All groups, each divided by its sigma, in one square triangle."""
    found = [g.factor / s for g, s in zip(groups, sigma, strict=True) if g.rows]
    return stack_triangles(found) if found else np.zeros((groups[0].factor.shape[1],) * 2)


def stack_triangles(triangles: Sequence[Array]) -> Array:
    """What all of them tell together, as one square triangle."""
    R = triangularise_rows(np.vstack(triangles))
    return np.vstack([R, np.zeros((R.shape[1] - len(R), R.shape[1]))])


@dataclass(frozen=True)
class Factors:
    """Compressed rows ``[X | y]`` of a problem, group by group."""

    groups: tuple[GroupFactor, ...]

    @cached_property
    def stacked(self) -> tuple[Array, Integers]:
        """All groups one below the other, as they are, and which group each line is of."""
        sizes = [len(group.factor) for group in self.groups]
        return np.vstack([group.factor for group in self.groups]), np.repeat(
            np.arange(len(sizes)), sizes
        )

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(group.rows for group in self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the groups."""
        return tuple(group.name for group in self.groups)

    @property
    def shared(self) -> tuple[str, ...]:
        """What the groups of each sigma have in common."""
        return tuple(group.noise or group.name for group in self.groups)

    @property
    def counts(self) -> Array:
        """Rows of each group."""
        return np.array([group.rows for group in self.groups], dtype=float)

    def pool(self) -> tuple[Factors, Integers]:
        """Groups of one noise as one, and which of these each group is in."""
        numbers = {noise: k for k, noise in enumerate(dict.fromkeys(self.shared))}
        place = np.array([numbers[noise] for noise in self.shared])
        if len(numbers) == len(self.groups):
            return self, place
        pools = [
            [g for g, k in zip(self.groups, place, strict=True) if k == n] for n in numbers.values()
        ]
        merged = [
            own if len(own) == 1 else merge_at_once(list(map(Factors, zip(own)))).groups
            for own in pools
        ]
        return Factors(tuple(group for (group,) in merged)), place

    @cached_property
    def scarce(self) -> Booleans:
        """Groups with too few rows for a noise of their own, beside some that share one.

        Those of a leg that seldom leaves the ground: of fewer than `FEW` rows for each parameter in
        them, and than the share `SELDOM` of all rows.
        """
        alone = np.array([not group.noise for group in self.groups])
        needed = np.array([FEW * len(group.columns) for group in self.groups])
        few = self.counts < np.minimum(needed, SELDOM * self.rows)
        return np.asarray(alone & (not alone.all()) & few)

    @property
    def ones(self) -> Array:
        """A sigma of one for every group: rows as they are."""
        return np.ones(len(self.groups))

    @property
    def parameters(self) -> int:
        """Columns of X."""
        return int(self.groups[0].factor.shape[1]) - 1

    def merge(self, other: Factors) -> Factors:
        """Factors of both sets of rows together."""
        pairs = zip(self.groups, other.groups, strict=True)
        return Factors(tuple(a.merge(b) for a, b in pairs))

    def transform(self, matrix: Array) -> Factors:
        """The same rows in other parameters, of which these are ``matrix @ others``."""
        return Factors(tuple(group.transform(matrix) for group in self.groups))

    def select(self, columns: Iterable[int]) -> Factors:
        """The same rows with only some of the columns of X."""
        chosen = [*columns, self.parameters]
        return Factors(tuple(group.select(chosen) for group in self.groups))

    def weighted(self, sigma: Array) -> System:
        """All groups in one least-squares system, each divided by its sigma.

        Parameters
        ----------
        sigma : ndarray, shape (groups,)
            Standard deviation of each group's error.
        """
        return System.of(stack_weighted_groups(self.groups, sigma))

    def squared_residuals(self, beta: Array) -> Array:
        """``||y_j - X_j beta||^2`` of each group."""
        factors = [group.factor for group in self.groups]
        return np.array([np.sum((own[:, -1] - own[:, :-1] @ beta) ** 2) for own in factors])

    def singular_values(self) -> Array:
        """Of all rows of X, unweighted and unscaled, largest first."""
        X = self.weighted(self.ones).A
        return np.asarray(np.linalg.svd(X, compute_uv=False), dtype=np.float64)

    @property
    def squared_torques(self) -> Array:
        """``||y_j||^2`` of each group."""
        return np.array([float(np.sum(group.factor[:, -1] ** 2)) for group in self.groups])


@dataclass(frozen=True)
class InstrumentFactors:
    """Compressed rows ``[Z | X | y]`` of a problem with instruments, group by group."""

    groups: tuple[GroupFactor, ...]
    """Factors with the columns of Z before those of X."""
    instruments: int
    """Columns of Z."""

    def without(self, part: str) -> Factors:
        """Ordinary factors: ``[X | y]`` without "Z", ``[Z | y]`` without "X"."""
        z, last = self.instruments, self.groups[0].factor.shape[1] - 1
        kept = [*range(z, last + 1)] if part == "Z" else [*range(z), last]
        return Factors(tuple(group.select(kept) for group in self.groups))

    def weighted(self, sigma: Array) -> InstrumentSystem:
        """All groups in one system, each divided by its sigma."""
        R = stack_weighted_groups(self.groups, sigma)
        return InstrumentSystem(R, self.instruments, sum(g.rows for g in self.groups))


@dataclass(frozen=True)
class InstrumentSystem:
    """``R = [[R_ZZ, R_ZX, r_Zy], [0, R_XX, r_Xy], [0, 0, rest]]`` of all weighted rows."""

    R: Array
    """Shape (z + p + 1, z + p + 1)."""
    instruments: int
    """z in number."""
    rows: int

    @property
    def projected(self) -> System:
        """``||P_Z (y - X beta)||^2 = ||R_ZX beta - r_Zy||^2`` (ardiani2024, eq. 28).

        Instruments beyond one a parameter may nearly repeat each other: of their span only
        what `UNEXCITED` leaves is projected on.
        """
        z = self.instruments
        Zx, Zy = self.R[:z, z:-1], self.R[:z, -1]
        if z > Zx.shape[1]:
            span, _ = self.span
            Zx, Zy = span.T @ Zx, span.T @ Zy
        return System(Zx, Zy, float(np.sum(self.R[z:, -1] ** 2)))

    @property
    def gain(self) -> Array:
        """What the scores do to the estimate: ``beta - beta_true = gain Z^T W e``, (p, z)."""
        z = self.instruments
        span, inverse = self.span
        A = span.T @ self.R[:z, z:-1]
        return np.asarray(np.linalg.pinv(A, rcond=1.0 / UNEXCITED) @ inverse)

    @cached_property
    def span(self) -> tuple[Array, Array]:
        """Orthonormal U of the span of Z in R's coordinates, and U^T R_ZZ^-T."""
        Rz = self.R[: self.instruments, : self.instruments]
        norms = measure_columns(Rz)
        u, s, vt = np.linalg.svd(Rz / norms)
        rank = int(np.sum(s > s[0] / UNEXCITED))
        return u[:, :rank], vt[:rank] / s[:rank, None] / norms

    @property
    def Pi(self) -> Array:
        """``(Z^T Z)^-1 Z^T X`` (ardiani2024, eq. 22), shape (z, p)."""
        z = self.instruments
        return np.asarray(np.linalg.lstsq(self.R[:z, :z], self.R[:z, z:-1], rcond=None)[0])

    @property
    def correlation(self) -> float:
        """Smallest canonical correlation of Z with what X excites: 1 where Z spans it.

        One over it is by how much errors of some combination are larger than least squares'.
        """
        X = self.R[:, self.instruments : -1]
        u, s, _ = np.linalg.svd(X / measure_columns(X), full_matrices=False)
        excited = u[: self.instruments, s > s[0] / UNEXCITED]
        return float(np.linalg.svd(excited, compute_uv=False)[-1])


@dataclass(frozen=True)
class System:
    """``||y - X beta||^2 = ||A beta - b||^2 + rest``, A triangular for least squares.

    Attributes
    ----------
    A : ndarray, shape (p, p), or (instruments, p)
    b : ndarray, shape (p,), or (instruments,)
    rest : float
        What no beta can explain.
    """

    A: Array
    b: Array
    rest: float

    @classmethod
    def of(cls, R: Array) -> System:
        """That of a square triangle ``[A b; 0 root of the rest]``."""
        return cls(R[:-1, :-1], R[:-1, -1], float(R[-1, -1] ** 2))

    def _scaled(self) -> tuple[Array, Array]:
        """A with columns of unit length, and the lengths (1 for empty columns)."""
        norms = measure_columns(self.A)
        return self.A / norms, norms

    @cached_property
    def regular(self) -> bool:
        """Whether A is triangular, and so far from singular that no direction can be open."""
        rows, columns = self.A.shape
        if rows != columns or not columns or np.any(np.tril(self.A, -1)):
            return False
        # an estimate in the 1-norm, within a factor of a few and of the root of the columns
        rcond, _ = lapack.dtrcon(self._scaled()[0])
        return bool(rcond > CLEARLY / UNEXCITED)

    def solve(self, rcond: float = 1.0 / UNEXCITED) -> Array:
        """Least-squares estimate; of minimum scaled norm where the rows leave it open."""
        if self.regular and rcond <= 1.0 / UNEXCITED:
            return np.asarray(solve_triangular(self.A, self.b, check_finite=False))
        scaled, norms = self._scaled()
        return np.asarray(np.linalg.lstsq(scaled, self.b, rcond=rcond)[0] / norms)

    def inverse(self) -> Array:
        """Pseudo-inverse of A, open directions left out, shape (p, p)."""
        if self.regular:
            return np.asarray(lapack.dtrtri(self.A)[0])
        scaled, norms = self._scaled()
        return np.asarray(np.linalg.pinv(scaled, rcond=1.0 / UNEXCITED) / norms[:, None])

    def condition(self) -> tuple[float, int, Array]:
        """Condition number and rank of X with columns scaled to unit length.

        Returns
        -------
        condition : float
        rank : int
            Directions that the rows excite (see `UNEXCITED`).
        weak : ndarray, shape (p,)
            Share of each parameter in the directions that are not, or in the weakest one
            where all are: 0 to 1.
        """
        scaled, _ = self._scaled()
        _, s, vt = np.linalg.svd(scaled)
        rank = int(np.sum(s > s[0] / UNEXCITED))
        condition = float(s[0] / s[-1]) if s[-1] > 0.0 else np.inf
        return condition, rank, np.linalg.norm(vt[min(rank, len(s) - 1) :], axis=0)


FAN = 8
"""Factors that are merged at a time."""


def merge_all(parts: Sequence[Factors]) -> Factors:
    """Factors of all rows together, by a tree that the order of the parts alone decides.

    Householder's triangles with a diagonal that is not negative: the same parts give the same
    bits, whoever made them and when.
    """
    found = list(parts)
    while True:
        found = [merge_at_once(found[k : k + FAN]) for k in range(0, len(found), FAN)]
        if len(found) == 1:
            return found[0]


def merge_at_once(parts: Sequence[Factors]) -> Factors:
    """Factors of all rows together, group by group one triangle of all that are stacked."""
    merged = []
    for groups in zip(*(part.groups for part in parts), strict=True):
        factor = np.zeros((0, groups[0].factor.shape[1]))
        columns = np.flatnonzero(np.any([np.any(g.factor, axis=0) for g in groups], axis=0))
        if len(columns):
            own = np.vstack([g.factor[:, columns] for g in groups])
            R = fix_signs(triangularise_rows(own))
            factor = spread_columns(R, columns, factor.shape[1])
        merged.append(replace(groups[0], factor=factor, rows=sum(g.rows for g in groups)))
    return Factors(tuple(merged))


class Compression:
    """Streaming QR of rows ``[X_j y_j]`` as they come, one array of each block a group.

    Parameters
    ----------
    widths : sequence of int
        Columns of each group, y included.
    """

    def __init__(self, names: Sequence[str], widths: Sequence[int]) -> None:
        self._names, self._widths = names, widths
        self._pending: list[list[Array]] = [[] for _ in widths]
        self._kept = [0] * len(widths)
        self._counts = [0] * len(widths)

    def add(self, block: Sequence[Array]) -> None:
        """Take in rows of every group."""
        for j, rows in enumerate(block):
            self._pending[j].append(rows)
            self._kept[j] += len(rows)
            self._counts[j] += len(rows)
        full = [j for j, width in enumerate(self._widths) if self._kept[j] > 16 * width]
        for j, rows in zip(full, map_in_threads(self._triangularise, full), strict=True):
            self._pending[j], self._kept[j] = [rows], len(rows)

    def _triangularise(self, j: int) -> Array:
        """The factor of the rows of a group that came so far."""
        rows = self._pending[j]
        return triangularise_occupied(np.vstack(rows)) if rows else np.zeros((0, self._widths[j]))

    @property
    def groups(self) -> tuple[GroupFactor, ...]:
        """Factors of what came so far."""
        factors = map_in_threads(self._triangularise, range(len(self._widths)))
        found = zip(self._names, factors, self._counts, strict=True)
        return tuple(GroupFactor(*each) for each in found)


def compress_groups(
    blocks: Iterable[tuple[Array, ...]], names: Sequence[str], widths: Sequence[int]
) -> tuple[GroupFactor, ...]:
    """Factors of rows ``[X_j y_j]``, one array of each block a group; see `Compression`."""
    found = Compression(names, widths)
    for block in blocks:
        found.add(block)
    return found.groups
