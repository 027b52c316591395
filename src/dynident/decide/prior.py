"""The weight of the prior, by rows that were left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular

from dynident.consistency.feasible_set import FeasibleSet, build_feasible_set
from dynident.consistency.knowledge import WEIGHT, Knowledge
from dynident.core.arrays import Array
from dynident.core.factors import System, triangularise_rows
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


def confirm_weight(found: Decision, admitted: FeasibleSet, system: System) -> Decision:
    """A weight that was decided, unless the distance of the fit from the file speaks for the usual.

    Blocks of one short log resemble each other: what predicts one from the others may still be
    wrong elsewhere, as a file is whose links the same log contradicts.

    Parameters
    ----------
    admitted : FeasibleSet
        With the prior of the usual weight.
    system : System
        Of all rows, of the drives that were decided.
    """
    weight = float(found.value)
    if weight == WEIGHT:
        return found
    between = np.sqrt(weight * WEIGHT)
    if (estimate_weight(admitted, system) > between) == (weight > WEIGHT):
        return found
    words = f"cross-validation prefers {weight:g}, but the fit to all rows does not support it"
    return replace(found, value=f"{WEIGHT:g}", gain_percent=0.0, words=words)


def estimate_weight(admitted: FeasibleSet, system: System) -> float:
    """The weight at which the likelihood of the rows is largest, to one step.

    MacKay's (1992) ``gamma / d^2``, in units of the present weight: gamma of the directions are
    determined by the rows, ``tr(A^T A (A^T A + P^T P)^-1)``, and d is by how much the prior's rows
    are off, in its standard deviations. Cones do not count.
    """
    data = np.column_stack([system.A @ admitted.space.matrix, system.b])
    pull = np.column_stack(admitted.pull())
    R = triangularise_rows(np.vstack([data, pull]))[: data.shape[1] - 1]
    x = solve_triangular(R[:, :-1], R[:, -1])
    gamma = np.sum(solve_triangular(R[:, :-1], data[:, :-1].T, trans="T") ** 2)
    off = (pull[:, :-1] @ x - pull[:, -1]) / admitted.kappa
    return float(np.divide(gamma, off @ off))
