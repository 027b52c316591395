"""The joints' bandwidth, by rows that were left out under low-passes that two have alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dynident.consistency.feasible_set import FeasibleSet
from dynident.core.arrays import Array
from dynident.decide.blocks import lack_rows, last_long_enough
from dynident.decide.decision import BANDWIDTH, BLOCKS, WORTH, Decision, compute_gain_percent
from dynident.decide.folds import Folds
from dynident.recording.prepare import Samples
from dynident.regression.blocks import factor_blocks
from dynident.regression.problem import Problem

SHARES = (0.5, 0.25)
"""Of the bandwidth that is assumed where none is given, as which is tried."""
WORTH_ALL = 0.5
"""Share of the squared error that a bandwidth may leave at which a log is too short for all other
decisions: friction leaves half and less of measured ones."""


def choose_bandwidth(
    problem: Problem,
    prepare: Callable[[float], Sequence[Samples]],
    admitted: FeasibleSet,
    sigma: Array,
) -> Decision:
    """The bandwidth whose model predicts rows which were left out best.

    The motion is filtered by each bandwidth [Hz], and the model fitted to rows as it asks for. The
    rows that are predicted are low-passed as those of the assumed bandwidth, with which the logs of
    the problem are prepared, whatever was fitted; or as those of the lower one, from its motion:
    noise in the motion shrinks a model, which predicts the noisy rows well for that, and no others.
    """
    assumed = max(problem.samples[0].bandwidth)
    blocks = factor_blocks(problem, BLOCKS)
    nothing = Decision(
        BANDWIDTH, f"{assumed:g}", 0.0, "as assumed: a lower one is not clearly better"
    )
    if lack_rows(problem, blocks):
        return replace(nothing, words=f"some joint has no rows in one of {BLOCKS} blocks of time")
    neutral = [log.filters for log in problem.samples]
    folds = Folds.of(blocks, admitted, sigma)
    chosen = np.arange(folds.columns)
    first = standing = folds.fit(chosen)
    started = held = folds.leave(first)
    value, gain = assumed, 0.0
    for share in SHARES:
        own = problem.on(prepare(share * assumed))
        worth = WORTH if last_long_enough(own.samples) else WORTH_ALL
        pairs = zip(own.samples, neutral, strict=True)
        alike = own.on([replace(log, filters=filters) for log, filters in pairs])
        lower = Folds.of(factor_blocks(own, BLOCKS), admitted, sigma)
        fits = lower.fit(chosen)
        after = Folds.of(factor_blocks(alike, BLOCKS), admitted, sigma).leave(fits)
        below = lower.leave(fits)
        if held.pays(after, worth=worth) or lower.leave(standing).pays(below, worth=worth):
            standing, held, value = fits, after, share * assumed
            both = (started, after), (lower.leave(first), below)
            gain = max(compute_gain_percent(a.squares, b.squares) for a, b in both)
        elif np.sum(after.squares) > np.sum(held.squares):
            break  # a lower one is worse still
    if value == assumed:
        return nothing
    return Decision(BANDWIDTH, f"{value:g}", gain, f"instead of the assumed {assumed:g} Hz")
