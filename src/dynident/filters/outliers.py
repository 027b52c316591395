"""Medians over windows: of positions, and by which outliers of torques are told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.arrays import Array, Booleans

FAR = 5.0
"""Robust standard deviations from the median beyond which a sample is an outlier."""
FLAT = 1e-3
"""Share of a signal's own range that the standard deviation counts as at least.

Of a signal without noise, whose samples often are the median to the last bit.
"""
ROBUST = 1.4826
"""Standard deviation of normal errors over their median size."""


def filter_by_median(x: Array, window: int | None) -> Array:
    """Each column behind a median filter of an odd window, ends repeated; as it is without one."""
    if window is None:
        return x
    from scipy import ndimage  # a tenth of a second that few runs need

    return np.asarray(ndimage.median_filter(x, size=(window, 1), mode="nearest"))


def find_outliers(x: Array, window: int) -> tuple[Booleans, Array]:
    """Samples that are far from the median of the window about them (Hampel 1974), and the medians.

    Far is more than `FAR` robust standard deviations: `ROBUST` times the median distance of the
    window's samples from these medians, and at least what the second differences of the whole
    column show of its noise, as few samples may be near each other by chance. Outliers that follow
    each other are told while they are less than half of the window, which is odd.
    """
    medians = filter_by_median(x, window)
    distance = np.abs(x - medians)
    low, high = np.quantile(x, (0.05, 0.95), axis=0)
    white = ROBUST / np.sqrt(6.0) * np.median(np.abs(np.diff(x, 2, axis=0)), axis=0)
    least = np.maximum(white, FLAT * (high - low))
    scale = np.maximum(ROBUST * filter_by_median(distance, window), least)
    return distance > FAR * scale, medians


def replace_outliers(
    x: Array, runs: Sequence[tuple[int, int]], window: int
) -> tuple[Array, Booleans]:
    """A signal with medians in the place of its outliers, run by run, and where these are."""
    smooth, every = x.copy(), np.zeros_like(x, dtype=bool)
    for start, stop in runs:
        found, medians = find_outliers(x[start:stop], window)
        smooth[start:stop][found] = medians[found]
        every[start:stop] = found
    return smooth, every
