"""What was carried before the first sample: whether a load explains that a start does not fit.

A load phi on a link, there from the first sample on, moves the base parameters of which a start
speaks, ``b0 -> b0 + K phi``. Under a start with the covariance P0 and samples after which it is PN,
the cost at the best b falls with phi by ``2 g^T phi - phi^T H phi``,

``g = K^T P0^-1 (bN - b0)``, ``H = K^T (P0^-1 - P0^-1 PN P0^-1) K``,

so that the recursion without a load has all that is needed, and no sample is looked at again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from dynident.core.arrays import Array

MOST_LEFT = 0.5
"""Share of the squared innovations that a load leaves at most."""
LIGHTEST = 0.01
"""A load below is none: as much may be what causal filters differ by from those of the fit, where
the start is of a log without noise [kg]."""
SURE = 6.0
"""Standard errors of a mass from which it is there, by what is left with it."""


class CarriedParameters(NamedTuple):
    """What is carried beside the bodies of a start."""

    factor: Array
    """``[R | z]`` of its parameters, R upper triangular, shape (10, 11)."""
    phi: Array
    """Shape (10,)."""
    share: float
    """Of the squared innovations that are left with it."""
    level: float
    """Their mean, at least 1."""

    @property
    def statistic(self) -> float:
        """How many standard errors its mass is from none, squared; 0 of what does not explain."""
        if self.share > MOST_LEFT or self.phi[0] < LIGHTEST:
            return 0.0
        R = self.factor[:, :-1]
        half = linalg.solve_triangular(R, np.eye(len(R)))[0]
        return float(self.phi[0] ** 2 / (self.level * (half @ half)))


def weigh_load(
    start: Array, now: Array, shift: Array, std: Array, squares: float, rows: int
) -> CarriedParameters:
    """The load that explains best that samples do not fit a start.

    Parameters
    ----------
    start, now : ndarray, shape (p, p + 1)
        ``[R | z]`` of the base parameters before and after the samples.
    shift : ndarray, shape (p, 10)
        K: base parameters of a load.
    std : ndarray, shape (10,)
        What is believed of a load before it is seen, about none.
    squares : float
        Sum of the squared innovations without a load, over so many rows.
    """
    R0, R = start[:, :-1], now[:, :-1]
    before, after = (linalg.solve_triangular(each[:, :-1], each[:, -1]) for each in (start, now))
    moved = R0 @ (shift * std)
    # R0 PN R0^T = U s^2 U^T, where rounding alone has s above 1
    U, s, _ = np.linalg.svd(linalg.solve_triangular(R, R0.T, trans="T").T)
    told = np.sqrt(np.maximum(1.0 - s**2, 0.0))[:, None] * (U.T @ moved)
    half = np.linalg.qr(np.vstack([told, np.eye(len(std))]), mode="r")
    half *= np.sign(np.diag(half))[:, None]
    z = linalg.solve_triangular(half, moved.T @ (R0 @ (after - before)), trans="T")
    left = max(squares - float(z @ z), 0.0)
    return CarriedParameters(
        np.column_stack([half / std, z]),
        std * linalg.solve_triangular(half, z),
        left / squares if squares > 0.0 else 1.0,
        max(1.0, left / max(1, rows - len(z))),
    )
