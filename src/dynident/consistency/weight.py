"""The prior's weight chosen by the data: blocks of the log held out in turn."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np

from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.knowledge import WEIGHT, Knowledge
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.factors import Factors
from dynident.regression.blocks import factor_blocks
from dynident.regression.problem import Problem

FOLDS = 5
WEIGHTS = tuple(float(w) for w in np.logspace(-3.0, 3.0, 13))
"""Weights that are tried."""


def choose_prior_weight(
    problem: Problem, knowledge: Knowledge, sigma: Array, kappa: float
) -> Knowledge:
    """Knowledge with the weight that predicts held-out blocks of the rows best.

    Every log is cut into `FOLDS` runs of time; each run is predicted by the constrained
    least-squares estimate of the others, for all of `WEIGHTS`, and the weight with the
    smallest sum of squared errors in units of sigma is taken. No held-out log is looked at.
    """
    # refuses robots and options without a prior before any work
    replace(knowledge, prior_weight=WEIGHT).of(problem.robot)
    blocks = factor_blocks(problem, FOLDS)
    if any(np.min(block.counts) < 1 for block in blocks):
        raise ComputationError(
            f"prior_weight = 'held-out' needs rows of every joint in each of {FOLDS} blocks; "
            "give a number, or a longer log"
        )
    errors = np.zeros(len(WEIGHTS))
    for block in blocks:
        others = (other for other in blocks if other is not block)
        system = reduce(Factors.merge, others).weighted(sigma)
        point = None
        for i, weight in enumerate(WEIGHTS):
            known = replace(knowledge, prior_weight=weight)
            point = build_feasible_set(problem.base, system, known, kappa).solve(system, point)
            errors[i] += float(np.sum(block.squared_residuals(point.beta) / sigma**2))
    return replace(knowledge, prior_weight=WEIGHTS[int(np.argmin(errors))])
