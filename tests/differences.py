"""Slopes against central differences, which say themselves how far they are to be trusted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dynident.core.arrays import Array

ROUNDING = 16.0
"""Of a value, in units of its last place: sums of some hundred terms."""
CLAIMED = 1e-6
"""Share of a slope by which what is claimed of it may be rounded, too."""


def take_quotient(function: Callable[[float], ArrayLike], step: float) -> tuple[Array, float]:
    """Slope at 0 of a function of one variable, and how far it may be off.

    Central differences at one step and at two are extrapolated (Richardson). What the steps
    disagree by bounds the truncation; rounding shows in the fourth difference, which of a smooth
    function is nothing else, and is at least that of the values.

    Parameters
    ----------
    function : callable
        Of a shift; arrays of any one shape, or a number.
    step : float
        The smaller of the two shifts.

    Returns
    -------
    slope : ndarray
    tolerance : float
        For all entries; infinite where one of them is not finite.
    """
    values = [np.asarray(function(k * step), dtype=float) for k in (-2.0, -1.0, 0.0, 1.0, 2.0)]
    a, b, c, d, e = values
    near, far = (d - b) / (2.0 * step), (e - a) / (4.0 * step)
    fourth = a - 4.0 * b + 6.0 * c - 4.0 * d + e
    rounding = ROUNDING * np.finfo(float).eps * np.max(np.abs(values))
    off = np.abs(near - far) + (np.abs(fourth) + rounding) / step
    tolerance = float(np.max(off))
    return (4.0 * near - far) / 3.0, tolerance if np.isfinite(tolerance) else np.inf


def assert_slope(
    function: Callable[[float], ArrayLike],
    slope: ArrayLike,
    step: float,
    within: float = 1e-5,
    scale: float | None = None,
) -> None:
    """Fail where a slope at 0 is not that of differences, or differences are too rough to tell.

    Parameters
    ----------
    function, step
        As in `take_quotient`.
    slope : array_like
        What is claimed, of the function's shape.
    within : float
        How well differences have to know the slope, as a share of its scale: an error of twice
        that is noticed.
    scale : float, optional
        Size of a slope, where it may be nothing; its largest entry unless given.
    """
    found, tolerance = take_quotient(function, step)
    claimed = np.asarray(slope, dtype=float)
    assert claimed.shape == found.shape, f"slope of shape {claimed.shape}, values {found.shape}"
    size = float(np.max(np.abs(found))) if scale is None else scale
    assert tolerance <= within * size, (
        f"differences at {step:g} know the slope to {tolerance:.2g} of {size:.3g} alone"
    )
    off = float(np.max(np.abs(claimed - found)))
    assert off <= tolerance + CLAIMED * size, (
        f"off by {off:.3g} of {size:.3g}, differences by {tolerance:.2g}"
    )
