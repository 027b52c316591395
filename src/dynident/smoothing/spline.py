"""Quintic B-splines on equidistant knots: weights of their coefficients, derivatives included."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from dynident.core.arrays import Array, Integers

DEGREE = 5
ACTIVE = DEGREE + 1
"""Coefficients that act between two knots."""


@cache
def list_pieces() -> Array:
    """Polynomials of the active weights over ``u`` in [0, 1], lowest power first, (6, 6).

    De Boor's recursion on equidistant knots: ``p W_j^p = (u + p - j) W_{j-1}^{p-1} + (1 - u + j)
    W_j^{p-1}``, j the coefficients from the first one on.
    """
    pieces = [np.array([1.0])]
    for p in range(1, DEGREE + 1):
        none = np.zeros(1)
        before, same = [none, *pieces], [*pieces, none]
        pieces = [
            np.polynomial.polynomial.polyadd(
                np.polynomial.polynomial.polymul([(p - j) / p, 1.0 / p], a),
                np.polynomial.polynomial.polymul([(1.0 + j) / p, -1.0 / p], b),
            )
            for j, (a, b) in enumerate(zip(before, same, strict=True))
        ]
    return np.array([np.pad(each, (0, ACTIVE - len(each))) for each in pieces])


@dataclass(frozen=True)
class Knots:
    """Equidistant knots from a first instant on."""

    start: float
    step: float
    """`start`, `step`: [s]"""
    intervals: int

    @classmethod
    def over(cls, time: Array, step: float) -> Knots:
        """Knots over some instants, about so far apart [s]."""
        span = float(time[-1] - time[0])
        count = max(1, round(span / step))
        return cls(float(time[0]), span / count, count)

    @property
    def coefficients(self) -> int:
        """How many a signal has."""
        return self.intervals + DEGREE

    def weigh(self, time: Array) -> tuple[Integers, Array]:
        """Interval of each instant; weights of its coefficients, (instants, 4, 6).

        Those of the signal and its first three derivatives.
        """
        x = (time - self.start) / self.step
        # the last instant is the end of the last interval
        place = np.clip(x.astype(np.int64), 0, self.intervals - 1)
        u, pieces = x - place, list_pieces().T
        found = np.empty((len(time), 4, ACTIVE))
        for order in range(4):
            powers = np.zeros((len(time), ACTIVE))
            for k in range(order, ACTIVE):
                powers[:, k] = math.perm(k, order) * u ** (k - order)
            found[:, order] = powers @ pieces / self.step**order
        return place, found


def evaluate_spline(coefficients: Array, place: Integers, weights: Array) -> Array:
    """Signals and their first three derivatives, shape (4, instants, signals)."""
    own = coefficients[place[:, None] + np.arange(ACTIVE)]
    return np.moveaxis(weights @ own, 1, 0)
