"""Small symmetric systems inside kernels: ``M = L D L^T`` without square roots."""

from __future__ import annotations

from dynident.core.jit import inner, wide


@inner
def factorise_ldl(M):  # type: ignore[no-untyped-def]
    """``M = L D L^T`` in place (L below the diagonal); the row that fails, or -1."""
    n = len(M)
    for j in range(n):
        d = M[j, j]
        for k in range(j):
            d -= M[j, k] * M[j, k] * M[k, k]
        if not d > 0.0:  # so that NaN fails, too
            return j
        M[j, j] = d
        for i in range(j + 1, n):
            value = M[j, i]  # the upper half still holds M
            for k in range(j):
                value -= M[i, k] * M[j, k] * M[k, k]
            M[i, j] = value / d
    return -1


@inner
def solve_ldl(L, x):  # type: ignore[no-untyped-def]
    """Solve with the factors of `factorise_ldl`, in place."""
    n = len(L)
    for i in range(n):
        for k in range(i):
            x[i] -= L[i, k] * x[k]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i + 1, n):
            x[i] -= L[k, i] * x[k]


@wide
def solve_ldl_columns(L, X):  # type: ignore[no-untyped-def]
    """Solve for all columns of X (n, columns) at once, in place."""
    n, columns = X.shape
    for i in range(n):
        for k in range(i):
            c = L[i, k]
            for j in range(columns):
                X[i, j] -= c * X[k, j]
    for i in range(n - 1, -1, -1):
        d = 1.0 / L[i, i]
        for j in range(columns):
            X[i, j] *= d
        for k in range(i + 1, n):
            c = L[k, i]
            for j in range(columns):
                X[i, j] -= c * X[k, j]
