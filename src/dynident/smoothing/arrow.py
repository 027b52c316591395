"""Least squares with a banded motion and a border of parameters, by orthogonal elimination.

Rows between two knots touch six coefficients a joint and all parameters. Knot after knot they
are triangularised together with what the knots before have left; the first coefficients' rows
are then done with, and what is left of the border alone belongs to the parameters. Nothing is
squared, and the cost grows with the number of knots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dynident.core.arrays import Array
from dynident.core.factors import triangularise_rows
from dynident.smoothing.spline import ACTIVE, DEGREE

GATHERED = 4096
"""Rows of the border that are triangularised together."""


@dataclass(frozen=True, eq=False)
class EliminatedMotion:
    """A motion eliminated from its rows."""

    n: int
    heads: Array
    """Shape (intervals - 1, n, 6 n + p + 1). Of each interval the rows that determine its first
    coefficients: ``[R | S | z]``."""
    tail: Array
    """Of the last interval all of them, shape (6 n, 6 n + p + 1)."""
    border: Array
    """Shape (k, p + 1). What is left of the parameters: ``[A | b]``, and a last row with the
    rest."""

    @classmethod
    def none(cls, n: int) -> EliminatedMotion:
        """Of no rows."""
        nothing = np.zeros((0, 0))
        return cls(n, nothing, nothing, nothing)

    def solve(self, beta: Array) -> Array:
        """Coefficients at some parameters, shape (coefficients, n)."""
        own = np.append(-beta, 1.0)
        return np.asarray(self._substitute(lambda rows: rows @ own[:, None])[..., 0])

    def slopes(self) -> Array:
        """Their derivatives by the parameters, shape (coefficients, n, p)."""
        return self._substitute(lambda rows: -rows[:, :-1])

    def _substitute(self, right: Callable[[Array], Array]) -> Array:
        n, a = self.n, ACTIVE * self.n
        last: Array = solve_triangular(self.tail[:, :a], right(self.tail[:, a:]))
        count = len(self.heads) + ACTIVE
        found = np.empty((count * n, last.shape[1]))
        found[len(self.heads) * n :] = last
        for k in range(len(self.heads) - 1, -1, -1):
            rows, start = self.heads[k], k * n
            rest = right(rows[:, a:]) - rows[:, n:a] @ found[start + n : start + a]
            found[start : start + n] = solve_triangular(rows[:, :n], rest)
        return found.reshape(count, n, last.shape[1])

    def roots(self) -> Iterator[tuple[int, Array]]:
        """Interval, from the last to the first, and a root of its coefficients' covariance.

        F of ``F F^T``, shape (6 n, 6 n), at known parameters: that of the coefficients behind, and
        of the first ones given these; in roots, which rounding leaves semidefinite.
        """
        n, a = self.n, ACTIVE * self.n
        F = solve_triangular(self.tail[:, :a], np.eye(a))
        yield len(self.heads), F
        for k in range(len(self.heads) - 1, -1, -1):
            rows = self.heads[k]
            # the next interval shares all but the last of these coefficients
            known = triangularise_rows(F[: a - n].T).T
            F = np.zeros((a, a))
            F[n:, n:] = known
            F[:n, :n] = np.eye(n)
            F[:n, n:] = -rows[:, n:a] @ known
            F[:n] = solve_triangular(rows[:, :n], F[:n])
            yield k, F


def eliminate_motion(n: int, p: int, intervals: Iterable[Array]) -> EliminatedMotion:
    """Triangularise rows ``[motion | parameters | right]`` of one interval after another.

    Parameters
    ----------
    intervals : iterable of ndarray, shape (rows, 6 n + p + 1)
        Coefficients of all joints at the interval's first knot, then at the next.
    """
    a, width = ACTIVE * n, ACTIVE * n + p + 1
    carried = np.zeros((0, width))
    heads: list[Array] = []
    left: list[Array] = [np.zeros((0, p + 1))]
    R = carried
    for rows in intervals:
        R = triangularise_rows(np.vstack([carried, rows]))
        left.append(R[a:, a:])
        if sum(map(len, left)) > GATHERED:
            left = [triangularise_rows(np.vstack(left))]
        heads.append(R[:n])
        # rows that say nothing of the first coefficients go on to the next interval
        carried = np.zeros((DEGREE * n, width))
        own = R[n:a]
        carried[: len(own), : a - n] = own[:, n:a]
        carried[: len(own), a:] = own[:, a:]
    return EliminatedMotion(n, np.array(heads[:-1]).reshape(-1, n, width), R[:a], np.vstack(left))
