"""Extreme eigenvalues of many small pairs of matrices, compiled.

A chain of draws asks for those of every body at each of its steps: LAPACK, called body by body,
would be most of what drawing takes.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.jit import inner, jit

SETTLED = 1e-30
"""Squares beside the diagonal over those on it, below which a matrix is diagonal."""
SWEEPS = 30
"""More than rounding ever needs: from the third or so on, each doubles the digits."""


def find_extreme_eigenvalues(factor: Array, change: Array) -> tuple[Array, Array]:
    """Least and largest eigenvalue of changes in units of what changes, ``L^-1 S L^-T``.

    Lower triangles L and symmetric S have the shape (points, k, d, d), the eigenvalues, of all k
    matrices of a point, (points,).
    """
    least, most = np.empty(len(factor)), np.empty(len(factor))
    fill_extreme_eigenvalues(*to_kernel_arrays(factor, change), least, most)
    return least, most


@jit
def fill_extreme_eigenvalues(factor, change, least, most):  # type: ignore[no-untyped-def]
    """See `find_extreme_eigenvalues`."""
    points, count, d, _ = change.shape
    A = np.empty((d, d))
    for n in range(points):
        least[n], most[n] = np.inf, -np.inf
        for k in range(count):
            whiten(factor[n, k], change[n, k], A)
            diagonalise(A)
            for i in range(d):
                least[n] = min(least[n], A[i, i])
                most[n] = max(most[n], A[i, i])


@inner
def whiten(L, S, A):  # type: ignore[no-untyped-def]
    """``A = L^-1 S L^-T``."""
    d = len(A)
    for i in range(d):
        for j in range(d):
            value = S[i, j]
            for k in range(i):
                value -= L[i, k] * A[k, j]
            A[i, j] = value / L[i, i]
    for j in range(d):
        for i in range(d):
            value = A[i, j]
            for k in range(j):
                value -= L[j, k] * A[i, k]
            A[i, j] = value / L[j, j]


@inner
def diagonalise(A):  # type: ignore[no-untyped-def]
    """The eigenvalues of a symmetric matrix, put on its diagonal by rotations (Jacobi 1846)."""
    d = len(A)
    for _ in range(SWEEPS):
        on, off = 0.0, 0.0
        for i in range(d):
            on += A[i, i] * A[i, i]
            for j in range(i):
                off += A[i, j] * A[i, j]
        if off <= SETTLED * on:
            return
        for p in range(d - 1):
            for q in range(p + 1, d):
                if A[p, q] == 0.0:
                    continue
                theta = 0.5 * (A[q, q] - A[p, p]) / A[p, q]
                # the tangent of the smaller angle (Golub and Van Loan 2013, section 8.5)
                t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
                if theta < 0.0:
                    t = -t
                c = 1.0 / np.sqrt(t * t + 1.0)
                s = t * c
                for k in range(d):
                    if k != p and k != q:  # noqa: PLR1714
                        a, b = A[k, p], A[k, q]
                        A[k, p] = A[p, k] = c * a - s * b
                        A[k, q] = A[q, k] = s * a + c * b
                A[p, p] -= t * A[p, q]
                A[q, q] += t * A[p, q]
                A[p, q] = A[q, p] = 0.0
