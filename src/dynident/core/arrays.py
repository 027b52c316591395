"""The array types that all rooms speak of, and arrays that nobody can change."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
"""Real numbers."""
Integers = npt.NDArray[np.int64]
"""Whole numbers: indices, counts, samples."""


def frozen(values: npt.ArrayLike) -> Array:
    """A read-only copy as contiguous floats; what the caller holds stays the caller's.

    Parameters
    ----------
    values : array_like

    Returns
    -------
    ndarray
    """
    array = np.array(values, dtype=float, order="C")
    array.setflags(write=False)
    return array
