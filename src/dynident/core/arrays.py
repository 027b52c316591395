"""The array types that all rooms speak of, and arrays that nobody can change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dynident.core.errors import InputError

Array = npt.NDArray[np.float64]
"""Real numbers."""
Integers = npt.NDArray[np.int64]
"""Whole numbers: indices, counts, samples."""
Booleans = npt.NDArray[np.bool_]
"""Yes or no: which of many."""


def freeze_array(values: npt.ArrayLike) -> Array:
    """Values as contiguous floats that nobody can change; what the caller holds stays the caller's.

    They are copied, unless they are such an array already: one whose memory nobody can write
    through any array. So one's own arrays are passed on, or a part of them, without a copy once
    they are read-only.
    """
    if type(values) is np.ndarray and _is_frozen(values):
        return values
    array = np.array(values, dtype=float, order="C")
    array.setflags(write=False)
    return array


def to_kernel_arrays(*arrays: npt.ArrayLike) -> tuple[Array, ...]:
    """C-ordered floats that are read alone: the one kind of array that kernels are compiled for.

    A compiled function is compiled again for every other kind: strided, Fortran's, writable.
    """
    found = tuple(np.ascontiguousarray(values, dtype=float).view() for values in arrays)
    for array in found:
        array.setflags(write=False)
    return found


def check_states(
    name: str, states: Sequence[Array], widths: Sequence[int], many: bool = False
) -> None:
    """Refuse states of other shapes than (..., width); where they are `many`, (samples, width)."""
    ahead = states[0].shape[:-1]
    fit = (each.shape == (*ahead, k) for each, k in zip(states, widths, strict=False))
    if not all(fit) or (many and len(ahead) != 1):
        shapes = ", ".join(str(each.shape) for each in states)
        rest = "before them that of the samples" if many else "all others alike"
        raise InputError(
            f"{name}: states have shapes {shapes}; their last axes have to be {widths[0]} (q) and "
            f"{widths[1]}, {rest}"
        )


def check_rate(rate: object, who: str = "") -> None:
    """Refuse what is not a number of samples a second."""
    value = np.asarray(rate)
    if value.dtype.kind not in "iuf" or value.size != 1 or not 0.0 < value.item() < np.inf:
        words = f"rate = {value.tolist()!r} is not a sample rate; give it in Hz"
        raise InputError(f"{who}: {words}" if who else words)


FOLD = 64
"""Rows that are taken side by side: processors compare long rows faster than many short ones."""


def find_column_extremes(values: Array) -> tuple[Array, Array]:
    """The smallest and the largest value of each column, shape (columns,); NaN where one is."""
    samples, columns = values.shape
    whole = samples - samples % FOLD if columns and values.flags.c_contiguous else 0
    if not whole:
        return values.min(axis=0), values.max(axis=0)
    wide, rest = values[:whole].reshape(-1, FOLD * columns), values[whole:]
    lowest = wide.min(axis=0).reshape(FOLD, columns).min(axis=0)
    highest = wide.max(axis=0).reshape(FOLD, columns).max(axis=0)
    return (
        np.minimum(lowest, rest.min(axis=0, initial=np.inf)),
        np.maximum(highest, rest.max(axis=0, initial=-np.inf)),
    )


def _is_frozen(array: npt.NDArray[np.generic]) -> bool:
    """Whether an array is contiguous, of floats, and read-only down to the owner of its memory."""
    if array.dtype != np.float64 or not array.flags.c_contiguous:
        return False
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    return owner is None


def find_runs(known: Booleans) -> list[tuple[int, int]]:
    """Where what is true begins and ends, run by run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]])))
    return [(start, stop) for start, stop in edges.reshape(-1, 2).tolist()]


def find_longest_run(values: Array) -> tuple[int, int]:
    """First sample and length of the longest run of equal values."""
    changes = np.flatnonzero(np.diff(values)) + 1
    borders = np.concatenate([[0], changes, [len(values)]])
    lengths = np.diff(borders)
    k = int(np.argmax(lengths))
    return int(borders[k]), int(lengths[k])
