"""Errors that repeat: by how much they add up over rows that are alike, in time or in state.

What a model lacks is not noise. It lasts longer than a correlation that some rows show, and comes
again whenever a joint has the same speed or position. Sums over clusters of such rows say how
much more they add up than rows whose correlation is that of an autoregression: clusters in several
ways at once (Cameron, Gelbach and Miller 2011), with what a fit has taken from its own clusters
given back (Bell and McCaffrey 2002) in the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.jit import jit
from dynident.regression.blocks import RUNS, SOLE, STATES, label_blocks, label_states
from dynident.regression.covariance import (
    CovariancePart,
    ScoreRows,
    compute_freedom_factor,
    fit_innovations,
    stream_prewhitened_parts,
    sum_at_instants,
)
from dynident.regression.problem import Regression

UNSEEN = 1e-9
"""Share of the largest singular value below which a direction is not told by any row."""


@dataclass(eq=False)
class ClusterSums:
    """Scores and information of the clusters of one group's rows."""

    L: Array
    """Coordinates in which white errors of all groups have unit variance, shape (columns of the
    group, any)."""
    count: int
    """Clusters."""
    scores: Array = field(init=False)
    information: Array = field(init=False)

    def __post_init__(self) -> None:
        self.scores = np.zeros((self.count, len(self.L)))
        self.information = np.zeros((self.count, len(self.L), len(self.L)))

    def add(self, labels: Integers, part: CovariancePart) -> None:
        """Add rows to their clusters."""
        add_to_clusters(labels, part.Z, part.error[:, 0], self.scores, self.information)

    def measure(self) -> Array:
        """Squares of the scores, and their mean and variance if errors are white.

        Of a cluster with the share M of the information a fit leaves ``M (1 - M)`` of the variance
        M of its scores s, and ``s^T (1 - M)^-1 s`` has the mean ``tr M`` and, of normal errors, the
        variance ``2 tr M^2``.
        """
        found = np.zeros(3)
        for u, Z in zip(self.scores, self.information, strict=True):
            whole = Z + Z.T  # of what is below the diagonal, which is there twice
            whole.flat[:: len(Z) + 1] *= 0.5
            score, M = u @ self.L, self.L.T @ whole @ self.L
            rest = -M
            rest.flat[:: len(M) + 1] += 1.0 + SOLE
            square = float(score @ np.linalg.solve(rest, score))
            found += square, float(np.trace(M)), 2.0 * float(np.sum(M**2))
        return found


@jit
def add_to_clusters(
    labels: Integers, Z: Array, error: Array, scores: Array, information: Array
) -> None:
    """Add ``z e`` and ``z z^T``, of which the lower triangle, of each row to its cluster's."""
    for t in range(len(labels)):
        c = labels[t]
        for i in range(Z.shape[1]):
            z = Z[t, i]
            scores[c, i] += z * error[t]
            for j in range(i + 1):
                information[c, i, j] += z * Z[t, j]


@dataclass(frozen=True)
class ClusteredSum:
    """The variance of the sum of the scores where errors repeat."""

    total: Array
    """Shape (scores, scores)."""
    times: Array
    """What the groups' own variance is over that of prewhitened scores, shape (groups,)."""
    words: str


def sum_clustered_scores(scores: ScoreRows) -> ClusteredSum:
    """``S = S_hac + sum_g x_g S_hac,g``, with the excess x of what clusters add up to.

    Of each group ``x = sum_c max(0, L_c - 1 - var / (L_c - 1))``, shrunk as its scatter by chance
    asks (James and Stein 1961), over three ways c to cluster its rows: by runs of time, by its
    joint's speed and by its joint's position. L is what the scores of the clusters have of
    squares, over what those of independent clusters would have: one in the mean where the
    prewhitened sum S_hac is right.
    """
    rows, found = scores.rows, fit_innovations(scores)
    groups, width = rows.instruments, rows.scores
    whiteners = list_whiteners(rows, scores.weights)
    in_time, in_state = label_blocks(rows, RUNS), label_states(rows)
    total, own = np.zeros((width, width)), [np.zeros((len(c), len(c))) for c in groups]
    states = [[ClusterSums(L, STATES) for L in whiteners] for _ in range(2)]
    measured = np.zeros((1 + len(states), len(groups), 3))
    for k, log in enumerate(stream_prewhitened_parts(scores, found)):
        runs = [ClusterSums(L, RUNS) for L in whiteners]
        for parts, shares in log:
            _, (u,) = sum_at_instants(parts, shares, width)
            total += u.T @ u
            for g, (part, (Z, w)) in enumerate(zip(parts, shares, strict=True)):
                v = Z * w
                own[g] += v.T @ v
                runs[g].add(in_time(k, g, part.sample), part)
                for sums, labels in zip(states, in_state, strict=True):
                    if g in labels:
                        sums[g].add(labels[g](k, g, part.sample), part)
        measured[0] += [sums.measure() for sums in runs]
    measured[1:] = [[sums.measure() for sums in way] for way in states]
    factor, times = compute_freedom_factor(rows), np.ones(len(groups))
    for g, (columns, S, L) in enumerate(zip(groups, own, whiteners, strict=True)):
        hac = factor * float(np.sum((S @ L) * L))
        for squares, told, variance in measured[:, g]:
            if told > 0.0 and hac > 0.0:
                times[g] += shrink_excess(squares / hac - 1.0, variance / told**2)
        total[np.ix_(columns, columns)] += (times[g] - 1.0) * S
    words = f"hac by {found.words}, {describe_times(times)} for what repeats"
    return ClusteredSum(factor * total, times, words)


def shrink_excess(excess: float, variance: float) -> float:
    """What is left of an excess over what clusters have in any case, above their own scatter."""
    return max(0.0, excess - variance / excess) if excess > 0.0 else 0.0


def list_whiteners(rows: Regression, weights: Array) -> list[Array]:
    """Coordinates of each group's scores in which white errors of all have unit variance.

    Where those of all scores are B, with the inverse of the information ``B B^T``, a group's are
    the triangle L of ``L L^T = B_g B_g^T`` with the rows of its scores: all that is asked of them
    is the same, in fewer directions.
    """
    factors = rows.instrument_factors if rows.instrumented else rows.factors
    F = np.vstack([
        g.factor[:, : rows.scores] / w for g, w in zip(factors.groups, weights, strict=True)
    ])  # fmt: skip
    _, size, axes = np.linalg.svd(F, full_matrices=False)
    seen = size > UNSEEN * size[0]
    B = axes[seen].T / size[seen]
    return [np.asarray(np.linalg.qr(B[columns].T, mode="r")).T for columns in rows.instruments]


def describe_times(times: Array) -> str:
    """Factors on variances, from the least to the largest."""
    low, high = f"{np.min(times):.2g}", f"{np.max(times):.2g}"
    return f"{low} times" if low == high else f"{low} to {high} times"
