"""Signals as they stand earlier or later."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array


def shift_in_time(columns: Array, samples: Array) -> Array:
    """Each column as it stands so many samples later, between samples linearly."""
    if np.ptp(samples) > 0.0:
        own = [
            shift_in_time(columns[:, j : j + 1], samples[j : j + 1]) for j in range(len(samples))
        ]
        return np.hstack(own)
    whole = int(np.floor(samples[0]))
    part, before = samples[0] - whole, shift_whole(columns, whole)
    if part > 0.0:
        before += part * (shift_whole(columns, whole + 1) - before)
    return before


def shift_whole(columns: Array, samples: int) -> Array:
    """Columns as they stand so many samples later; beyond their ends as there."""
    last = len(columns) - 1
    found = np.empty_like(columns)
    a, b = min(max(-samples, 0), last + 1), max(min(last + 1 - samples, last + 1), 0)
    found[:a], found[b:] = columns[0], columns[last]
    if a < b:
        found[a:b] = columns[a + samples : b + samples]
    return found
