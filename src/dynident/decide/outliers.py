"""Whether samples that the rest of the logs contradicts are left out, by rows that were left out.

Outliers among the rows that are predicted must not decide what predicts them best. Their errors
are counted as Huber (1964) does, ``rho(u) = u^2`` up to a size k and ``2 k |u| - k^2`` beyond: what
a change d of the prediction makes of a row's count is at most ``2 k |d|``, however far off the row
is, where of its square it is ``2 |u| |d|``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from dynident.consistency.feasible_set import FeasibleSet
from dynident.core.arrays import Array, Integers, find_runs
from dynident.decide.blocks import lack_rows
from dynident.decide.decision import BLOCKS, OUTLIERS, Decision, LeftOutErrors, compute_gain_percent
from dynident.decide.folds import FoldFit, Folds
from dynident.recording.prepare import Samples
from dynident.regression.blocks import Label, factor_parts, label_blocks
from dynident.regression.problem import Problem
from dynident.regression.statistics import OUTLYING

HUBER = 1.345
"""k, in robust standard deviations of each group's errors."""
SURELY = 2.0
"""Standard errors by which leaving rows out has to pay: what they told is lost."""
KEPT = "kept"
"""The usual value."""

Where = tuple[int, int, Integers, Integers, Array]
"""A log, a group, and of its rows the samples, the blocks and the errors."""


def choose_outliers(
    problem: Problem, admitted: FeasibleSet, sigma: Array, firsts: Sequence[int]
) -> Decision:
    """Ranges of samples that are fitted: all but those about rows that the others contradict.

    The value is a list for each log of ranges, in samples of its files, of which the log begins at
    the one in `firsts`; or `KEPT`.
    """
    usual = Decision(OUTLIERS, KEPT, 0.0, "leaving out outliers is not clearly better")
    blocks = label_blocks(problem, BLOCKS)
    before = Folds.of(factor_parts(problem, blocks, BLOCKS), admitted, sigma)
    if any(not np.any(own) for block in before.rows for own in block):
        return usual
    chosen = np.arange(before.columns)
    M = admitted.space.matrix
    errors = predict_left_out(problem, blocks, before.fit(chosen), M)
    scale = estimate_scales(errors, len(problem.groups))
    kept = mark_kept_samples(problem.samples, errors, scale)
    if all(np.all(own) for own in kept):
        return usual

    def label(log: int, group: int, sample: Integers) -> Integers:
        return np.where(kept[log][sample], blocks(log, group, sample), BLOCKS)

    rest = factor_parts(problem, label, BLOCKS + 1)[:BLOCKS]
    if lack_rows(problem, rest):
        return usual
    after = predict_left_out(problem, blocks, Folds.of(rest, admitted, sigma).fit(chosen), M)
    held, left = (count_left(each, scale) for each in (errors, after))
    if not held.pays(left, SURELY):
        return usual
    gain = compute_gain_percent(held.squares, left.squares)
    ranges = [
        [(first + a, first + b) for a, b in find_runs(own)]
        for own, first in zip(kept, firsts, strict=True)
    ]
    share = 100.0 * (1.0 - np.mean(np.concatenate(kept)))
    words = f"outliers, {share:.2g} % of the samples, are left out"
    return Decision(OUTLIERS, json.dumps(ranges), gain, words)


def predict_left_out(
    problem: Problem, label: Label, fits: Sequence[FoldFit], matrix: Array
) -> list[Where]:
    """Errors of all rows under the model that was fitted without their block."""
    betas = np.array([matrix @ fit.x for fit in fits])
    found = []
    for k, stretches in enumerate(problem.passes()):
        for rows in stretches:
            for g, columns in enumerate(problem.columns):
                block = label(k, g, rows.sample[g])
                predicted = np.sum(rows.X[g] * betas[block][:, columns], axis=1)
                found.append((k, g, rows.sample[g], block, rows.y[g] - predicted))
    return found


def estimate_scales(errors: Sequence[Where], groups: int) -> Array:
    """Robust standard deviations of each group's errors: 1.4826 times the median size."""
    sizes = [
        np.concatenate([np.abs(error) for _, group, _, _, error in errors if group == g])
        for g in range(groups)
    ]
    found = np.array([1.4826 * float(np.median(own)) for own in sizes])
    return np.asarray(np.maximum(found, np.finfo(float).tiny))


def mark_kept_samples(
    samples: Sequence[Samples], errors: Sequence[Where], scale: Array
) -> list[np.ndarray]:
    """Samples of each log that are nearer to another row of a group than to an outlier of it."""
    kept = [np.ones(len(log.q), dtype=bool) for log in samples]
    for k, g, sample, _, error in errors:
        reach = samples[k].filter_of(g).step // 2
        for at in sample[np.abs(error) > OUTLYING * scale[g]].tolist():
            kept[k][max(0, at - reach) : at + reach + 1] = False
    return kept


def count_left(errors: Sequence[Where], scale: Array) -> LeftOutErrors:
    """Errors of the rows that were left out, as Huber counts them."""
    counts = np.zeros(BLOCKS)
    for _, g, _, block, error in errors:
        counts += np.bincount(block, weights=count_huber(error / scale[g]), minlength=BLOCKS)
    return LeftOutErrors(counts, float(np.sum(counts)))


def count_huber(u: Array) -> Array:
    """``u^2``, beyond `HUBER` as a line."""
    size = np.abs(u)
    return np.asarray(np.where(size < HUBER, u * u, HUBER * (2.0 * size - HUBER)))
