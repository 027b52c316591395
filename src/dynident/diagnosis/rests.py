"""Where a signal stands still, and whether as a joint does that comes to rest."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.diagnosis import thresholds as limit


def stops_gently(q: Array, start: int, stop: int, borders: Integers) -> bool:
    """Whether a position slows down before it stands still, and starts gently, as a joint does."""
    steps = np.diff(q)
    sizes = np.abs(steps[steps != 0.0])
    if not len(sizes):
        return True
    # an encoder adds one of its steps
    most = 2.0 * limit.ABRUPT * np.sqrt(np.mean(sizes**2)) + np.min(sizes)
    ends = ((a, a + 2) for a in (start - 2, stop - 1))
    within = [(a, b) for a, b in ends if np.any((borders[:-1] <= a) & (b < borders[1:]))]
    return all(abs(q[b] - q[a]) <= most for a, b in within)
