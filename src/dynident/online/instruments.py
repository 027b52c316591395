"""Instruments sample by sample: the regressor along the reference, beside that of the motion.

Rows ``[Z | X | y]`` are rotated into ``[R_ZZ | R_ZX | r_Zy]``, of which the estimate is the
solution of ``R_ZX b = r_Zy`` with the covariance ``(R_ZX^T R_ZX)^-1`` (ardiani2024, eq. 28 and 17,
in rows of unit variance). What is left of a row when R_ZZ has taken its share is orthogonal to the
instruments and tells nothing. The reference is the controller's, so that noise of the encoders is
in X and not in Z; behind a filter both go through the same one.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.bundle import Bundle
from dynident.core.jit import jit
from dynident.online.online import CHANGED, IN_HALF, MODE, choose_rows, fill_rows
from dynident.online.recursion import absorb_row


@jit
def absorb_instruments(m, memory, sample, reference, weight, S):  # type: ignore[no-untyped-def]
    """Take rows of one sample into ``S = [R_ZZ | R_ZX | r_Zy]``, all before it times `weight`."""
    n, p, wide = len(m.slow), len(memory.beta), m.wide
    q, dq, ddq, tau = sample[:n], sample[n : 2 * n], sample[2 * n : 3 * n], sample[3 * n :]
    X, Z = np.empty((n, wide + 1)), np.empty((n, wide + 1))
    G = np.empty((0, len(tau)))  # instruments are of trees
    fill_rows(m, memory, q, dq, ddq, tau, G, X)
    fill_rows(m, memory, reference[:n], reference[n : 2 * n], reference[2 * n :], tau, G, Z)
    kept, group = np.empty((n, wide + 1)), np.empty(n, np.int64)
    first, resting = np.empty(n, np.int64), np.empty(n, np.bool_)
    count = choose_rows(m, memory, dq, np.empty((0, n)), X, kept, group, first, resting)
    if weight < 1.0:
        S *= weight
    row = np.empty(2 * p + 1)
    for i in range(count):
        row[:p], row[p : 2 * p] = Z[group[i], :p], kept[i, :p]
        row[2 * p] = kept[i, wide]
        absorb_row(S, row, first[i])


class InstrumentAnswer:
    """The estimate by instruments beside a recursion.

    Parameters
    ----------
    R : ndarray, shape (p, p)
        Triangular factor of the information about the estimate that it starts from.
    beta : ndarray, shape (p,)
    weight : float
        By which rows are multiplied when a sample comes after them: 1 without forgetting.
    """

    def __init__(self, R: Array, beta: Array, weight: float) -> None:
        self.begin(R, beta)
        self._weight = weight

    def begin(self, R: Array, beta: Array) -> None:
        """Know what a start says, and no more."""
        self.S = np.ascontiguousarray(np.column_stack([R, R, R @ beta]))
        self.kept = np.stack([self.S, self.S])
        """S at the ends of the last two half windows, the older first."""

    def update(
        self,
        model: Bundle,
        memory: Bundle,
        counts: Integers,
        sample: Array,
        reference: Array,
        outcome: int,
    ) -> None:
        """Follow one sample, after the recursion that tells whether something is carried."""
        if outcome == CHANGED:
            self.S[:] = self.kept[0]
        if counts[MODE]:
            return
        absorb_instruments(model, memory, sample, reference, self._weight, self.S)
        if counts[IN_HALF] == 0:
            self.kept[0], self.kept[1] = self.kept[1], self.S

    def believe_less(self, weight: float, least: Array) -> None:
        """Let all so far weigh less, down to information `least` about the estimate, shape (p,)."""
        p, beta = len(self.S), self.solve()[1]
        self.S *= np.sqrt(weight)
        for k, floor in enumerate(least):
            row = np.zeros(2 * p + 1)
            row[k], row[p + k], row[-1] = floor, floor, floor * beta[k]
            absorb_row(self.S, row, k)
        self.kept[:] = self.S

    def solve(self) -> tuple[Array, Array]:
        """``[R | z]`` of ``||R_ZX b - r_Zy||^2``, triangular, and b at its minimum."""
        p = len(self.S)
        R = np.asarray(np.linalg.qr(self.S[:, p:], mode="r"))
        return R, np.linalg.solve(R[:, :p], R[:, p])
