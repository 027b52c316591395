"""Base parameters by the algorithms of the literature, each with a choice of its own.

All span the same space: the one that random states determine. What differs is which combinations
stand for it, and so their names and values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.text import format_combination
from dynident.dynamics.base import TOLERANCE, draw_random_rows
from dynident.dynamics.equations import PLAIN
from dynident.dynamics.idim import Idim

CLEAR = 1e3
"""By how much the last singular value that counts is above the first that does not, at least."""
ROUNDING = 1e-9
"""Share of a combination's largest coefficient below which one is rounding."""


@dataclass(frozen=True)
class Basis:
    """Combinations of standard parameters that stand for all that motion determines."""

    idim: Idim
    matrix: Array
    """Shape (count, standard parameters). ``beta = matrix @ theta``. The regressor of the base
    parameters is ``Y_base = Y pinv(matrix)``, for the kept parameters of `qr` and `rref` their
    columns."""
    kept: tuple[int, ...]
    """Which standard parameter stands for each; empty where none does."""

    @property
    def count(self) -> int:
        """Number of base parameters."""
        return len(self.matrix)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kept parameters, with an R where others are regrouped; or numbers."""
        if not self.kept:
            return tuple(f"b{k + 1}" for k in range(self.count))
        alone = np.count_nonzero(self.matrix, axis=1) == 1
        pairs = zip(self.kept, alone, strict=True)
        return tuple(self.idim.names[k] + "R" * (not own) for k, own in pairs)

    @property
    def regroupings(self) -> tuple[str, ...]:
        """Each as a combination of standard parameters, what is kept first."""
        names, every = self.idim.names, range(len(self.idim.names))
        found = []
        for k, row in enumerate(self.matrix):
            first = self.kept[k : k + 1]
            places = (*first, *(i for i in every if i not in first))
            found.append(format_combination((row[i], names[i]) for i in places))
        return tuple(found)


def find_basis(idim: Idim, by: str) -> Basis:
    """Base parameters by an algorithm of `ALGORITHMS`, from the regressor at random states.

    Of `svd` the combinations depend on these states, their space does not. Refused where the rank
    is not clear-cut.
    """
    W = draw_random_rows(idim, 0, PLAIN)
    # a triangle has the dependencies of all rows, and their lengths
    R = np.asarray(np.linalg.qr(W, mode="r"))
    matrix, kept = ALGORITHMS[by](R, find_rank(R, idim.robot.name))
    matrix = np.where(np.abs(matrix) < ROUNDING * np.abs(matrix).max(axis=1)[:, None], 0.0, matrix)
    return Basis(idim, matrix, kept)


def find_rank(R: Array, name: str) -> int:
    """Rank of rows whose columns are scaled alike, where it is clear-cut."""
    norms = np.linalg.norm(R, axis=0)
    acting = R[:, norms > TOLERANCE * norms.max()]
    s = np.linalg.svd(acting / np.linalg.norm(acting, axis=0), compute_uv=False)
    rank = int(np.sum(s > TOLERANCE * s[0]))
    if rank < len(s) and s[rank - 1] < CLEAR * s[rank]:
        raise ComputationError(
            f"{name}: the rank is not clear-cut: singular values {s[rank - 1]:.1e} and "
            f"{s[rank]:.1e}; lengths of the robot file may differ by rounding where they should "
            "be equal"
        )
    return rank


Found = tuple[Array, tuple[int, ...]]


def find_singular_basis(R: Array, rank: int) -> Found:
    """The first right singular vectors, ``Y_base = Y V_1``, orthonormal; nothing is kept."""
    _, _, V = np.linalg.svd(R)
    found = V[:rank]
    # of a singular vector the sign is nobody's: its largest entry gets the positive one
    largest = np.take_along_axis(found, np.abs(found).argmax(axis=1)[:, None], axis=1)
    return np.asarray(found * np.sign(largest)), ()


def pivot_columns(R: Array, rank: int) -> Found:
    """QR decomposition with pivots (Gautier 1990): ``Y P = Q [R_1 R_2]``, ``K = R_1^-1 R_2``.

    Kept are the columns that are longest beside those kept before.
    """
    _, T, order = linalg.qr(R, mode="economic", pivoting=True)
    matrix = np.zeros((rank, R.shape[1]))
    matrix[:, order[:rank]] = np.eye(rank)
    matrix[:, order[rank:]] = linalg.solve_triangular(T[:rank, :rank], T[:rank, rank:])
    return matrix, tuple(int(k) for k in order[:rank])


def reduce_to_echelon(R: Array, rank: int) -> Found:
    """The reduced row echelon form, whose rows are the combinations.

    Kept is each parameter that does not depend on those before it, in the order of the standard
    parameters.
    """
    norms = np.linalg.norm(R, axis=0)
    # divided by infinity: columns that act on nothing become zero, and no pivots
    norms = np.where(norms > TOLERANCE * norms.max(), norms, np.inf)
    A = R / norms
    kept: list[int] = []
    for column in range(A.shape[1]):
        done = len(kept)
        if done == rank:
            break
        pivot = done + int(np.argmax(np.abs(A[done:, column])))
        if abs(A[pivot, column]) <= TOLERANCE:
            continue
        A[[done, pivot]] = A[[pivot, done]]
        A[done] /= A[done, column]
        others = np.arange(len(A)) != done
        A[others] -= np.outer(A[others, column], A[done])
        kept.append(column)
    finite = np.where(np.isfinite(norms), norms, 0.0)
    return A[:rank] * finite / norms[kept][:, None], tuple(kept)


ALGORITHMS: dict[str, Callable[[Array, int], Found]] = {
    "svd": find_singular_basis,
    "qr": pivot_columns,
    "rref": reduce_to_echelon,
}
"""From a triangle of rows and its rank to combinations, and which parameters stand for them."""
