"""Rows left out in turn, and what a change of the model makes of their errors.

The rows are those of a wide model, which has a column for all that may be decided. A candidate is
a choice of columns; the columns of all candidates at once are projected on those that stand, so
that each candidate costs a small least-squares problem and no pass over a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dgeqrf, dormqr, dposv

from dynident.consistency.feasible_set import FeasibleSet
from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.factors import Factors, triangularise_rows
from dynident.decide.decision import LeftOutErrors

FAINT = 1e-8
"""Of a column's length: what keeps columns from being open that nothing excites."""
SAME = 1e-8
"""Share of its length that a column has to have beyond the others."""


@dataclass(frozen=True, eq=False)
class Folds:
    """Rows by block and group, in scaled unknowns, in units of each group's sigma."""

    rows: tuple[tuple[Array, ...], ...]
    """Of each block and each group: the columns of the unknowns, further ones, and y."""
    known: Array
    """Rows of the prior and of directions that nothing else sees, likewise, shape (k, columns +
    1)."""
    first: int = 0
    """So many of the columns, the first, are in every model."""

    @classmethod
    def of(
        cls,
        blocks: Sequence[Factors],
        admitted: FeasibleSet,
        sigma: Array,
        first: int | None = None,
    ) -> Folds:
        """Of factors whose first columns are base parameters, which unknowns x stand for.

        Every model has the first columns; all unknowns by default.
        """
        M = admitted.space.matrix
        p, further = len(M), blocks[0].parameters - len(M)
        rows = tuple(
            tuple(
                np.hstack([group.factor[:, :p] @ M, group.factor[:, p:]]) / s
                for group, s in zip(block.groups, sigma, strict=True)
            )
            for block in blocks
        )
        pull, target = admitted.pull()
        known = np.hstack([pull, np.zeros((len(pull), further)), target[:, None]])
        return cls(rows, known, M.shape[1] if first is None else first)

    @property
    def columns(self) -> int:
        """Of unknowns and beyond."""
        return int(self.known.shape[1]) - 1

    @cached_property
    def triangles(self) -> tuple[Array, ...]:
        """All groups of each block in one factor."""
        return tuple(triangularise_rows(np.vstack(block)) for block in self.rows)

    @cached_property
    def triangles_left_in(self) -> tuple[tuple[Array, Array], ...]:
        """All blocks but one with what is known, the first columns made a triangle.

        And what keeps each column from being open.
        """
        first, found = self.first, []
        for out in range(len(self.triangles)):
            others = [part for k, part in enumerate(self.triangles) if k != out]
            squares = [np.sum(part**2, axis=0) for part in (*others, self.known)]
            lengths = np.sqrt(np.sum(squares, axis=0))
            faint = FAINT * np.where(lengths > 0.0, lengths, 1.0)
            faint[-1] = 0.0
            # below their first rows the triangles have nothing in these columns
            head = np.vstack([*(part[:first] for part in others), self.known])
            head = begin_triangle(np.vstack([head, np.diag(faint)[:first]]), first)
            found.append((np.vstack([head, *(part[first:] for part in others)]), faint))
        return tuple(found)

    def fit(self, chosen: Integers) -> tuple[FoldFit, ...]:
        """The model of some columns, fitted to all blocks but one, one after another.

        The first of the columns are among them.
        """
        first = self.first
        if not np.array_equal(chosen[:first], np.arange(first)):
            raise ValueError("a model without some of the columns that every model has")
        ends, found = [*chosen, self.columns], []
        for rows, faint in self.triangles_left_in:
            factor = np.zeros((len(chosen), len(ends)))
            factor[:first] = rows[:first, ends]
            open_ = np.diag(faint[ends[first:]])[:-1]
            below = triangularise_rows(np.vstack([rows[first:, ends[first:]], open_]))
            factor[first:, first:] = below[: len(chosen) - first]
            found.append(FoldFit(chosen, factor))
        return tuple(found)

    def leave(self, fits: Sequence[FoldFit]) -> LeftOutErrors:
        """The same of all groups, where a decision is about all of them."""
        squares = np.minimum(*np.sum(self.squares_with_and_without(fits), axis=2))
        return LeftOutErrors(squares, float(np.sum(squares)))

    def measure(self, fits: Sequence[FoldFit]) -> Array:
        """Squared errors of the rows that were left out, shape (blocks, groups).

        At most those without a model: of what the other blocks do not excite they tell nothing,
        however wrong a model is there, and one such block would decide alone.
        """
        return np.asarray(np.minimum(*self.squares_with_and_without(fits)))

    def squares_with_and_without(self, fits: Sequence[FoldFit]) -> Array:
        """Of what a model leaves of these rows, and of the rows, shape (2, blocks, groups)."""
        left = [
            [(own[:, -1] - own[:, fit.chosen] @ fit.x, own[:, -1]) for own in block]
            for fit, block in zip(fits, self.rows, strict=True)
        ]
        squares = [[[float(y @ y) for y in pair] for pair in block] for block in left]
        return np.moveaxis(np.array(squares), 2, 0)


def begin_triangle(rows: Array, first: int) -> Array:
    """The same rows, turned so that their first columns, no more than rows, are a triangle."""
    if not first:
        return rows
    reflected, scales, _, _ = dgeqrf(rows[:, :first])
    rest = np.asfortranarray(rows[:, first:])
    turned, _, _ = dormqr("L", "T", reflected, scales, rest, 64 * rest.shape[1])
    found = np.zeros(rows.shape)
    found[:first, :first] = np.triu(reflected[:first])
    found[:, first:] = turned
    return found


@dataclass(frozen=True, eq=False)
class FoldFit:
    """A model of some columns, fitted to all blocks but one.

    Its factor is triangular, of columns and y, shape (columns, columns + 1).
    """

    chosen: Integers
    factor: Array

    @cached_property
    def R(self) -> Array:
        """Of the columns alone."""
        return np.asarray(self.factor[:, :-1])

    @cached_property
    def x(self) -> Array:
        """What fits best."""
        return np.asarray(solve_triangular(self.R, self.factor[:, -1]))


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """The squared error of some rows as what coefficients of further columns make of it."""

    none: float
    linear: Array
    square: Array
    most: float
    """Without a model: see `Folds.measure`."""

    @classmethod
    def of(
        cls, rows: Array, fit: FoldFit, columns: Integers, lengths: Array, shift: Array
    ) -> SquaredErrors:
        """Of columns in units of their lengths, each of which moves what stands by its `shift`."""
        standing = rows[:, fit.chosen]
        error = rows[:, -1] - standing @ fit.x
        effect = standing @ shift - rows[:, columns] / lengths
        most = float(rows[:, -1] @ rows[:, -1])
        return cls(float(error @ error), effect.T @ error, effect.T @ effect, most)

    def sum(self, places: Integers, c: Array) -> float:
        """With coefficients of some of the columns."""
        own = self.square[places[:, None], places]
        found = self.none + float((2.0 * self.linear[places] + own @ c) @ c)
        return min(max(0.0, found), self.most)


@dataclass(frozen=True, eq=False)
class AddedColumns:
    """What further columns do to the rows that were left out, of each block."""

    normal: tuple[tuple[Array, Array], ...]
    """What is left of the columns beside those that stand, ``E^T E`` and ``E^T e``, of columns of
    unit length."""
    every: tuple[SquaredErrors, ...]
    own: tuple[SquaredErrors, ...]
    """`every`, `own`: of the rows that were left out: all, and those of the groups in which the
    columns act."""

    @classmethod
    def of(cls, folds: Folds, fits: Sequence[FoldFit], columns: Integers) -> AddedColumns:
        """What columns do that do not stand yet."""
        groups = range(len(folds.rows[0]))
        acting = [g for g in groups if any(np.any(block[g][:, columns]) for block in folds.rows)]
        whole = len(acting) == len(groups)
        none = np.zeros((0, folds.columns + 1))
        parts = (
            folds.triangles
            if whole
            else tuple(np.vstack([none, *(block[g] for g in acting)]) for block in folds.rows)
        )
        normal, every, own = [], [], []
        for out, fit in enumerate(fits):
            rows = np.vstack([part for k, part in enumerate(parts) if k != out])
            E = rows[:, columns]
            lengths = np.linalg.norm(E, axis=0)
            lengths[lengths == 0.0] = 1.0
            E /= lengths
            standing = rows[:, fit.chosen]
            # the columns are zero in all other rows: their projection takes these rows alone
            G = solve_triangular(fit.R, standing.T @ E, trans="T")
            normal.append((E.T @ E - G.T @ G, E.T @ (rows[:, -1] - standing @ fit.x)))
            shift = solve_triangular(fit.R, G)
            every.append(SquaredErrors.of(folds.triangles[out], fit, columns, lengths, shift))
            own.append(
                every[-1] if whole else SquaredErrors.of(parts[out], fit, columns, lengths, shift)
            )
        return cls(tuple(normal), tuple(every), tuple(own))

    def measure(
        self, some: Sequence[int], positive: Booleans, spare: Booleans
    ) -> LeftOutErrors | None:
        """Errors of the rows that were left out with some of the columns.

        None where these tell nothing new, or would have the wrong sign; a column that is `spare`
        is left out instead.
        """
        squares, acting = np.zeros(len(self.normal)), 0.0
        for k in range(len(self.normal)):
            found = self.solve(k, some, positive, spare)
            if found is None:
                return None
            places, c = found
            squares[k] = self.every[k].sum(places, c)
            acting += self.own[k].sum(places, c)
        return LeftOutErrors(squares, acting)

    def select(self, some: Sequence[int], positive: Booleans, spare: Booleans) -> list[int]:
        """Those of some columns that are not left out in most of the fits."""
        fits = (self.solve(k, some, positive, spare) for k in range(len(self.normal)))
        kept = [place for found in fits if found is not None for place in found[0].tolist()]
        return [place for place in some if 2 * kept.count(place) > len(self.normal)]

    def solve(
        self, out: int, some: Sequence[int], positive: Booleans, spare: Booleans
    ) -> tuple[Integers, Array] | None:
        """Which of some columns have a place in a fit, and their coefficients; see `measure`."""
        S, right = self.normal[out]
        places = np.array(some, dtype=int)
        while len(places):
            factor, c, failed = dposv(S[places[:, None], places], right[places])
            if failed or np.min(factor.diagonal()) ** 2 < SAME:
                return None
            wrong = positive[places] & (c < 0.0)
            if not wrong.any():
                return places, c
            if not spare[places[wrong]].all():
                return None
            places = np.delete(places, np.argmin(np.where(wrong, c, np.inf)))
        return places, np.zeros(0)
