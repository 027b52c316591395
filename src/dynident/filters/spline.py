"""Cubic splines through samples, without `scipy.interpolate`, which takes long to import."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_banded

from dynident.core.arrays import Array


def interpolate_cubically(time: Array, signal: Array, wanted: Array) -> Array:
    """A signal between its samples, by the cubic spline that is smooth at all inner knots but two.

    The second and the last but one are not knots ("not a knot"). Fewer than four samples are joined
    by straight lines. Time increases; beyond it the first and last cubic go on. Signals have the
    shape (samples, signals), what is wanted at n times (n, signals).
    """
    step = np.diff(time)
    rise = np.diff(signal, axis=0) / step[:, None]
    place = np.clip(np.searchsorted(time, wanted, side="right") - 1, 0, len(step) - 1)
    after = (wanted - time[place])[:, None]
    if len(time) < 4:
        return np.asarray(signal[place] + after * rise[place])
    slope = find_slopes(step, rise)
    h = step[:, None]
    bend = (3.0 * rise - 2.0 * slope[:-1] - slope[1:]) / h
    twist = (slope[:-1] + slope[1:] - 2.0 * rise) / h**2
    return np.asarray(
        signal[place] + after * (slope[place] + after * (bend[place] + after * twist[place]))
    )


def find_slopes(step: Array, rise: Array) -> Array:
    """Slopes at the knots, with which second derivatives are continuous.

    From the steps of time and the rise of the lines over them, shape (samples - 1, signals).
    """
    before, after = step[:-1], step[1:]
    diagonals = np.zeros((3, len(step) + 1))
    diagonals[0, 2:], diagonals[1, 1:-1], diagonals[2, :-2] = before, 2.0 * (before + after), after
    right = np.empty((len(step) + 1, rise.shape[1]))
    right[1:-1] = 3.0 * (after[:, None] * rise[:-1] + before[:, None] * rise[1:])
    # the third derivative is continuous there, too; the next row took the third slope out of it
    for at, one, two in ((0, 0, 1), (-1, -1, -2)):
        both = step[one] + step[two]
        diagonals[1, at] = step[two]
        diagonals[0 if at == 0 else 2, 1 if at == 0 else -2] = both
        right[at] = (
            (step[one] + 2.0 * both) * step[two] * rise[one] + step[one] ** 2 * rise[two]
        ) / both
    return np.asarray(solve_banded((1, 1), diagonals, right))
