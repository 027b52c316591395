"""Whose speeds are fitted, those of the positions or the log's own, by rows that were left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dynident.consistency.feasible_set import FeasibleSet
from dynident.core.arrays import Array
from dynident.decide.blocks import lack_rows
from dynident.decide.decision import BLOCKS, DERIVATIVES, FREE, Decision, compute_gain_percent
from dynident.decide.folds import Folds
from dynident.recording.prepare import Samples
from dynident.regression.blocks import factor_blocks
from dynident.regression.problem import Problem

DIFFERENCES, MEASURED = "differences", "measured"


def choose_derivatives(
    problem: Problem,
    prepare: Callable[[str], Sequence[Samples]],
    admitted: FeasibleSet,
    sigma: Array,
) -> Decision:
    """The log's own speeds where their model predicts rows which were left out clearly better.

    Positions that were read at other instants than those of their rows have differences that are
    noise, while speeds and torques change little from one instant to the other.
    """
    blocks = [factor_blocks(problem, BLOCKS)]
    nothing = Decision(DERIVATIVES, DIFFERENCES, 0.0, "the log's own speeds are not clearly better")
    if lack_rows(problem, blocks[0]):
        return nothing
    blocks.append(factor_blocks(problem.on(prepare(MEASURED)), BLOCKS))
    folds = [Folds.of(own, admitted, sigma) for own in blocks]
    held, after = (own.leave(own.fit(np.arange(own.columns))) for own in folds)
    if not held.pays(after, worth=FREE):
        return nothing
    gain = compute_gain_percent(held.squares, after.squares)
    return Decision(DERIVATIVES, MEASURED, gain, "the log's own speeds, not the positions'")
