"""Copies and sums inside the kernel, where slices would allocate."""

from __future__ import annotations

from dynident.core.jit import inner, wide


@inner
def copy_vector(x, out):  # type: ignore[no-untyped-def]
    """``out[:] = x``."""
    for i in range(len(x)):
        out[i] = x[i]


@wide
def copy_matrix(x, out):  # type: ignore[no-untyped-def]
    """``out[:] = x`` of two axes."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]


@inner
def add_vector(factor, x, out):  # type: ignore[no-untyped-def]
    """``out += factor x``."""
    for i in range(len(x)):
        out[i] += factor * x[i]


@wide
def add_matrix(factor, x, out):  # type: ignore[no-untyped-def]
    """``out += factor x`` of two axes."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] += factor * x[i, j]
