"""Combinations of equations on which contacts do not act, instant by instant."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.dynamics.equations import SINGULAR


def find_null_spaces(A: Array) -> tuple[Array, int]:
    """Combinations of rows of matrices (instants, m, k) that are zero, instant by instant.

    Orthonormal N, shape (instants, combinations, m), as many as some matrix has, the first zero
    where a matrix has fewer; and how many there are in all.
    """
    Q, R = np.linalg.qr(A, mode="complete")
    zero = np.arange(A.shape[1]) >= A.shape[2] + np.zeros((len(A), 1))
    doubtful = ~has_independent_columns(R[:, : A.shape[2]])  # whose rank singular values tell
    if np.any(doubtful):
        Q[doubtful], s, _ = np.linalg.svd(A[doubtful])
        zero[doubtful, : s.shape[1]] = s <= SINGULAR * s[:, :1]
    first = Q.shape[2] - int(np.max(np.sum(zero, axis=1), initial=0))
    N = np.swapaxes(Q * zero[:, None], 1, 2)[:, first:]
    return np.ascontiguousarray(N), int(np.sum(zero))


def has_independent_columns(R: Array) -> Booleans:
    """Whether columns of triangular matrices surely are, in less time than singular values take.

    The largest singular value over the least is at most ``||R|| ||R^-1||`` (Frobenius).
    """
    if R.shape[1] != R.shape[2]:
        return np.zeros(len(R), dtype=bool)
    size = np.linalg.norm(R, axis=(1, 2))
    found = np.min(np.abs(np.diagonal(R, axis1=1, axis2=2)), axis=1) > SINGULAR * size
    inverse = np.linalg.norm(np.linalg.inv(R[found]), axis=(1, 2))
    found[found] = SINGULAR * size[found] * inverse < 1.0
    return np.asarray(found)
