"""The weight of the prior, by rows that were left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.consistency.feasible_set import FeasibleSet, build_feasible_set
from dynident.consistency.knowledge import WEIGHT, Knowledge
from dynident.core.arrays import Array
from dynident.decide.blocks import lack_rows
from dynident.decide.decision import (
    BLOCKS,
    PRIOR_WEIGHT,
    Decision,
    LeftOutErrors,
    compute_gain_percent,
)
from dynident.decide.folds import Folds
from dynident.regression.blocks import factor_blocks
from dynident.regression.factors import System
from dynident.regression.problem import Problem

WEIGHTS = (0.1, 10.0)
"""That are tried beside the usual one."""
WORTH = 0.97
"""As that of other decisions: this one costs no parameters, only trust in the robot's file."""


def weigh_prior(
    problem: Problem, admitted: FeasibleSet, system: System, weight: float
) -> FeasibleSet:
    """The same prior with another weight; its cones do not count."""
    known = Knowledge(prior_weight=weight, gyration=0.0)
    return build_feasible_set(problem.base, system, known, admitted.kappa)


def choose_weight(problem: Problem, admitted: FeasibleSet, sigma: Array) -> Decision:
    """The weight of the prior with which rows that were left out are predicted best.

    Unlike `prior_weight = "held-out"`, which takes the best of many, it leaves the usual one
    unless another is clearly better.
    """
    usual = Decision(PRIOR_WEIGHT, f"{WEIGHT:g}", 0.0, "another weight is not clearly better")
    blocks = factor_blocks(problem, BLOCKS)
    if lack_rows(problem, blocks):
        return replace(usual, words=f"some joint has no rows in one of {BLOCKS} blocks of time")
    system = problem.factors.weighted(sigma)

    def leave(weight: float) -> LeftOutErrors:
        folds = Folds.of(blocks, weigh_prior(problem, admitted, system, weight), sigma)
        return folds.leave(folds.fit(np.arange(folds.columns)))

    first = leave(WEIGHT)
    found = [(weight, leave(weight)) for weight in WEIGHTS]
    paying = [each for each in found if first.pays(each[1], worth=WORTH)]
    if not paying:
        return usual
    weight, left = min(paying, key=lambda each: float(np.sum(each[1].squares)))
    gain = compute_gain_percent(first.squares, left.squares)
    words = "the robot file is trusted " + ("less" if weight < WEIGHT else "more") + " than usual"
    return Decision(PRIOR_WEIGHT, f"{weight:g}", gain, words)
