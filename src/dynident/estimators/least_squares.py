"""IDIM-LS: ordinary, weighted and robust least squares on the base parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.factors import Factors
from dynident.core.options import Options
from dynident.core.schema import Name, make_choice_validator
from dynident.estimators.covariance import (
    ErrorBars,
    EstimateScores,
    estimate_covariance,
    name_covariance,
)
from dynident.estimators.estimate import Estimate, RoughEstimate
from dynident.regression.problem import Problem, Regression
from dynident.regression.rows import Rows
from dynident.regression.scatter import estimate_sigma_by_scatter
from dynident.regression.statistics import compute_residuals
from dynident.regression.weighted import (
    Reweighting,
    compute_literature_std,
    estimate_group_sigma,
    require_excitation,
    solve_wls,
)


def ols(problem: Problem, bars: ErrorBars = ErrorBars()) -> Estimate:
    """Ordinary least squares, all groups weighted alike (ardiani2024, eq. 9).

    Raises
    ------
    ComputationError
        When the log does not excite all base parameters.
    """
    require_excitation(problem, problem.factors.weighted(problem.factors.ones))
    return finish_ls_estimate(problem, solve_unweighted(problem.factors), bars)


def wls(
    problem: Problem, bars: ErrorBars = ErrorBars(), reweighting: Reweighting = Reweighting()
) -> Estimate:
    """Least squares weighted by each group's sigma, iterated until both agree.

    Of logs that were averaged over periods sigma is that of their scatter, where the model leaves
    nothing else (`estimate_sigma_by_scatter`).

    Raises
    ------
    ComputationError
        When the log does not excite all base parameters or sigma does not settle.
    """
    require_excitation(problem, problem.factors.weighted(problem.factors.ones))
    known = estimate_sigma_by_scatter(problem)
    found = solve_weighted(problem.factors, known, reweighting=reweighting)
    return finish_ls_estimate(problem, found, bars)


@dataclass(frozen=True)
class WeightedSolution:
    """A least-squares solution."""

    beta: Array
    """Shape (columns,)."""
    weights: Array
    """The sigmas that weighted it, shape (groups,)."""
    sigma: Array
    """Those of its errors, shape (groups,)."""
    iterations: int
    message: str


def solve_unweighted(factors: Factors) -> WeightedSolution:
    """All groups weighted alike."""
    beta = factors.weighted(factors.ones).solve()
    sigma = estimate_group_sigma(factors, beta, factors.ones)
    return WeightedSolution(beta, factors.ones, sigma, 1, "one solve")


def wls_roughly(
    problem: Problem, start: Array | None = None, reweighting: Reweighting = Reweighting()
) -> RoughEstimate:
    """What `wls` estimates, without its error bars.

    `start`: sigmas to begin with, shape (groups,).
    """
    factors = problem.factors
    require_excitation(problem, factors.weighted(factors.ones))
    found = solve_weighted(factors, estimate_sigma_by_scatter(problem), start, reweighting)
    return RoughEstimate(found.beta, None, found.sigma)


def solve_weighted(
    factors: Factors,
    known: Array | None = None,
    start: Array | None = None,
    reweighting: Reweighting = Reweighting(),
) -> WeightedSolution:
    """Each group weighted by its sigma, which may be known."""
    if known is not None:
        beta, words = factors.weighted(known).solve(), "sigma by the scatter between periods"
        return WeightedSolution(beta, known, known, 1, words)
    beta, sigma, rounds = solve_wls(factors, start, reweighting)
    return WeightedSolution(beta, sigma, sigma, rounds, f"sigma settled in {rounds} rounds")


HUBER = 1.345
BISQUARE = 4.685
"""Tuning constants, each 95 % efficient under normal errors."""


@dataclass(frozen=True)
class Loss:
    """An M-estimator's loss through its influence function psi."""

    weight: Callable[[Array], Array]
    """``psi(u) / u`` of standardised residuals."""
    slope: Callable[[Array], Array]
    """``psi'(u)``."""


LOSSES: dict[str, Loss] = {
    "huber": Loss(
        lambda u: np.minimum(1.0, HUBER / np.maximum(np.abs(u), 1e-12)),
        lambda u: np.where(np.abs(u) <= HUBER, 1.0, 0.0),
    ),
    "bisquare": Loss(
        lambda u: np.where(np.abs(u) < BISQUARE, (1.0 - (u / BISQUARE) ** 2) ** 2, 0.0),
        lambda u: np.where(
            np.abs(u) < BISQUARE,
            (1.0 - (u / BISQUARE) ** 2) * (1.0 - 5.0 * (u / BISQUARE) ** 2),
            0.0,
        ),
    ),
}
"""Losses by name."""


LossName = Annotated[Name, make_choice_validator(LOSSES)]


@dataclass(frozen=True)
class Robustness(Options):
    """How outliers are met: an option of irls."""

    loss: Annotated[LossName, "robust loss; `bisquare` starts from the Huber estimate"] = "huber"


def irls(
    problem: Problem,
    robustness: Robustness = Robustness(),
    bars: ErrorBars = ErrorBars(),
    reweighting: Reweighting = Reweighting(),
) -> Estimate:
    """Iteratively reweighted least squares: robust against outliers of the torque.

    Raises
    ------
    ComputationError
        When the log does not excite all base parameters or the weights do not settle.
    """
    loss = robustness.loss
    start = wls(problem, reweighting=reweighting)
    beta, sigma, rounds = start.beta, start.sigma, 0
    # Huber's loss is convex; that of bisquare is not, and needs a start nearby
    for name in dict.fromkeys(("huber", loss)):
        weigh = LOSSES[name].weight
        for _ in range(reweighting.round_limit):
            rounds += 1
            errors = pool_errors(compute_residuals(problem, beta).error, problem.factors.shared)
            sigma = np.array(
                [estimate_robust_scale(e, s) for e, s in zip(errors, sigma, strict=True)]
            )
            system = reweight_factors(problem, beta, sigma, weigh).weighted(sigma)
            new = system.solve()
            change = np.linalg.norm(system.A @ (new - beta)) / np.linalg.norm(system.b)
            beta = new
            if change < reweighting.sigma_tolerance:
                break
        else:
            raise ComputationError(
                f"irls did not settle in {reweighting.round_limit} rounds; try wls"
            )
    found = compute_residuals(problem, beta)

    def psi(u: Array) -> Array:
        return u * weigh(u)

    # the score's mean slope, group by group (Huber 1981, section 7.6): half half^T below is
    # (sum_g E psi'_g X_g^T X_g / sigma_g^2)^-1, the outer part of his sandwich
    slope, size = np.ones(len(sigma)), np.ones(len(sigma))
    errors = pool_errors(found.error, problem.factors.shared)
    for g, (error, scale) in enumerate(zip(errors, sigma, strict=True)):
        if len(error):
            slope[g] = np.mean(LOSSES[loss].slope(error / scale))
            size[g] = np.sqrt(np.mean(psi(error / scale) ** 2))
    # bisquare's slope is negative beyond c / sqrt(5): of many outliers its mean may vanish
    half = problem.factors.weighted(sigma / np.sqrt(np.maximum(slope, 0.1))).inverse()
    scores = EstimateScores(problem, beta, sigma, sigma * size, found, psi)
    spread = estimate_covariance(scores, half @ half.T, bars, white="robust")
    return Estimate(
        beta,
        None,
        sigma,
        name_covariance(
            f"M-estimator ({loss})", spread, compute_literature_std(problem.factors.weighted(sigma))
        ),
        found,
        rounds,
        f"weights settled in {rounds} rounds",
    )


def pool_errors(errors: Sequence[Array], shared: Sequence[str]) -> list[Array]:
    """Per group the errors of all groups of its noise, which have one sigma."""
    kinds = {
        noise: np.concatenate([e for e, own in zip(errors, shared, strict=True) if own == noise])
        for noise in dict.fromkeys(shared)
    }
    return [kinds[noise] for noise in shared]


def estimate_robust_scale(error: Array, fallback: float) -> float:
    """Robust standard deviation: 1.4826 times the median absolute error, as of normal errors."""
    if not len(error):
        return fallback
    return max(1.4826 * float(np.median(np.abs(error))), 1e-9 * fallback)


def reweight_factors(
    problem: Problem, beta: Array, sigma: Array, weigh: Callable[[Array], Array]
) -> Factors:
    """Factors of rows times the square root of their weights: one pass over the rows."""

    def blocks(rows: Rows) -> tuple[Array, ...]:
        found = []
        for g, (block, columns) in enumerate(zip(rows.blocks, problem.columns, strict=True)):
            error = rows.y[g] - rows.X[g] @ beta[columns]
            found.append(block * np.sqrt(weigh(error / sigma[g]))[:, None])
        return tuple(found)

    return problem.compress(map(blocks, problem.rows()))


def finish_ls_estimate(rows: Regression, found: WeightedSolution, bars: ErrorBars) -> Estimate:
    """A least-squares estimate with its residuals and its covariance."""
    factors = rows.factors
    literature = compute_literature_std(factors.weighted(found.sigma))
    inverse = factors.weighted(found.weights).inverse()
    errors = compute_residuals(rows, found.beta)
    scores = EstimateScores(rows, found.beta, found.weights, found.sigma, errors)
    spread = estimate_covariance(scores, inverse @ inverse.T, bars)
    covariance = name_covariance("least squares", spread, literature)
    return Estimate(
        found.beta, None, found.sigma, covariance, errors, found.iterations, found.message
    )
