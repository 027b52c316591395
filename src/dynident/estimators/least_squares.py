"""IDIM-LS: ordinary, weighted and robust least squares on the base parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.text import nearest
from dynident.estimators.estimate import Estimate
from dynident.regression.factors import UNEXCITED, Factors, System, compress
from dynident.regression.problem import Problem, Regression
from dynident.regression.statistics import (
    Covariance,
    automatic_lag,
    residuals,
    score_covariance,
    whiteness_rejected,
)

RESOLUTION = 1e-5
"""Smallest sigma that is believed, relative to the largest rms torque of a joint."""
SHARE = 0.2
"""Share in the weakest directions, relative to the largest, above which it is named."""
MAX_ITERATIONS = 100
TOLERANCE = 1e-6


def ols(problem: Problem) -> Estimate:
    """Ordinary least squares, all joints weighted alike (ardiani2024, eq. 9).

    Raises
    ------
    ComputationError
        When the log does not excite all base parameters.
    """
    factors = problem.factors
    system = factors.weighted(factors.ones)
    require_excitation(problem, system)
    beta = system.solve()
    sigma = group_sigma(factors, beta, factors.ones)
    return finish(problem, beta, np.ones_like(sigma), sigma, 1, "one solve")


def wls(problem: Problem) -> Estimate:
    """Least squares weighted by each joint's sigma, iterated until both agree.

    Raises
    ------
    ComputationError
        When the log does not excite all base parameters or sigma does not settle.
    """
    factors = problem.factors
    require_excitation(problem, factors.weighted(factors.ones))
    beta, sigma, iterations = weighted_solution(factors)
    return finish(problem, beta, sigma, sigma, iterations, f"sigma settled in {iterations} rounds")


def weighted_solution(factors: Factors) -> tuple[Array, Array, int]:
    """WLS estimate, sigmas and rounds; minimum norm where the rows leave beta open.

    Raises
    ------
    ComputationError
        When sigma does not settle.
    """
    sigma = factors.ones
    for iteration in range(1, MAX_ITERATIONS + 1):
        system = factors.weighted(sigma)
        beta = system.solve()
        new = group_sigma(factors, beta, sigma)
        settled = np.all(np.abs(new - sigma) <= TOLERANCE * new)
        sigma = new
        if settled:
            return beta, sigma, iteration
    raise ComputationError(f"the joints' sigmas did not settle in {MAX_ITERATIONS} rounds; try ols")


def group_sigma(factors: Factors, beta: Array, weights: Array) -> Array:
    """Standard deviation of each group's error.

    ``sigma_j^2 = ||e_j||^2 / (r_j - h_j)`` with the leverage ``h_j`` of the group's rows
    under the weights that gave beta: the share of the parameters spent on them.
    """
    system = factors.weighted(weights)
    inverse = system.inverse()
    sigma = np.empty(len(factors.groups))
    largest = np.sqrt(np.max(factors.squared_torques / np.maximum(1.0, factors.counts)))
    for j, (group, weight) in enumerate(zip(factors.groups, weights, strict=True)):
        leverage = float(np.sum((group.factor[:, :-1] @ inverse / weight) ** 2))
        freedom = max(group.rows - leverage, 0.1 * group.rows, 1.0)
        sigma[j] = np.sqrt(group.squared_residual(beta) / freedom)
    # a noise-free simulation must neither divide by zero nor drown a prior in rounding
    return np.asarray(np.maximum(sigma, RESOLUTION * max(largest, np.finfo(float).tiny)))


HUBER = 1.345
BISQUARE = 4.685
"""Tuning constants, each 95 % efficient under normal errors."""


@dataclass(frozen=True)
class Loss:
    """An M-estimator's loss through its influence function psi.

    Attributes
    ----------
    weight : callable
        ``psi(u) / u`` of standardised residuals.
    slope : callable
        ``psi'(u)``.
    """

    weight: Callable[[Array], Array]
    slope: Callable[[Array], Array]


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


def irls(problem: Problem, loss: str = "huber") -> Estimate:
    """Iteratively reweighted least squares: robust against outliers of the torque.

    Parameters
    ----------
    problem : Problem
    loss : str
        Name in `LOSSES`. Bisquare starts from Huber's answer.

    Raises
    ------
    InputError
        When the loss is not known.
    ComputationError
        When the log does not excite all base parameters or the weights do not settle.
    """
    if loss not in LOSSES:
        raise InputError(f"loss {loss!r} is not known{nearest(loss, LOSSES)}")
    start = wls(problem)
    beta, sigma, rounds = start.beta, start.sigma, 0
    for name in dict.fromkeys(("huber", loss)):
        weigh = LOSSES[name].weight
        for _ in range(MAX_ITERATIONS):
            rounds += 1
            errors = residuals(problem, beta).error
            sigma = np.array([scale_of(e, s) for e, s in zip(errors, sigma, strict=True)])
            system = reweighted_factors(problem, beta, sigma, weigh).weighted(sigma)
            new = system.solve()
            change = np.linalg.norm(system.A @ (new - beta)) / np.linalg.norm(system.b)
            beta = new
            if change < TOLERANCE:
                break
        else:
            raise ComputationError(f"irls did not settle in {MAX_ITERATIONS} rounds; try wls")
    found = residuals(problem, beta)
    lag = automatic_lag(found.error) if whiteness_rejected(found.error) else 0
    score = score_covariance(problem, beta, sigma, lag, lambda u: u * weigh(u))
    # the score's mean slope, joint by joint (Huber 1981, section 7.6)
    slope = [
        float(np.mean(LOSSES[loss].slope(e / s))) if len(e) else 1.0
        for e, s in zip(found.error, sigma, strict=True)
    ]
    half = problem.factors.weighted(sigma / np.sqrt(np.maximum(slope, 0.1))).inverse()
    bread = half @ half.T
    covariance = Covariance(
        f"M-estimator sandwich ({loss}), {'hac' if lag else 'robust'}"
        + (f", Bartlett lag {lag}" if lag else ""),
        bread @ score @ bread,
        seed_std(problem.factors.weighted(sigma)),
    )
    return Estimate(
        beta, None, sigma, covariance, found, rounds, True, f"weights settled in {rounds} rounds"
    )


def scale_of(error: Array, fallback: float) -> float:
    """Robust standard deviation: 1.4826 times the median absolute error."""
    if not len(error):
        return fallback
    return max(1.4826 * float(np.median(np.abs(error))), 1e-9 * fallback)


def reweighted_factors(
    problem: Problem, beta: Array, sigma: Array, weigh: Callable[[Array], Array]
) -> Factors:
    """Factors of rows times the square root of their weights: one pass over the rows."""
    p = problem.base.count

    def block(j: int, X: Array, y: Array) -> Array:
        columns = problem.columns[j]
        root = np.sqrt(weigh((y - X @ beta[columns]) / sigma[j]))
        rows = np.zeros((len(y), p + 1))
        rows[:, columns] = X * root[:, None]
        rows[:, p] = y * root
        return rows

    blocks = (
        tuple(block(j, X, y) for j, (X, y) in enumerate(zip(rows.X, rows.y, strict=True)))
        for rows in problem.rows()
    )
    names = problem.factors.names
    return Factors(compress(blocks, names, [p + 1] * len(names)))


def require_excitation(problem: Regression, system: System) -> None:
    """Refuse rows that leave a combination of base parameters open.

    Raises
    ------
    ComputationError
        Naming the combination.
    """
    condition, _, _ = system.condition()
    if condition > UNEXCITED:
        raise ComputationError(
            f"the log does not excite {weakest_combination(problem, system)} (condition "
            f"{condition:.1e}); record a richer motion, or use pc-idim-ls with a prior"
        )


def weakest_combination(problem: Regression, system: System) -> str:
    """The base parameters that the rows determine worst, in words."""
    _, rank, weak = system.condition()
    order = np.argsort(-weak, kind="stable")
    main = [problem.base.names[k] for k in order if weak[k] > SHARE * weak[order[0]]]
    shown = ", ".join(main[:6]) + (f" and {len(main) - 6} more" if len(main) > 6 else "")
    if len(main) == 1:
        return shown
    return f"{len(weak) - rank or 'a'} combination{'s' * (len(weak) - rank > 1)} of {shown}"


def seed_std(system: System) -> Array:
    """Standard deviations by ``(X^T Omega^-1 X)^-1`` (ardiani2024, eq. 9)."""
    return np.asarray(np.sqrt(np.sum(system.inverse() ** 2, axis=1)))


def essential_fit(problem: Problem, method: str, kept: tuple[int, ...]) -> Estimate:
    """OLS or WLS with some of the base parameters; the others are zero, without error.

    Parameters
    ----------
    problem : Problem
    method : {"ols", "wls"}
    kept : tuple of int
        Base parameters that stay.
    """
    factors = problem.factors.select(kept)
    weights = factors.ones
    iterations = 1
    if method == "wls":
        part, weights, iterations = weighted_solution(factors)
    else:
        system = factors.weighted(weights)
        part = system.solve()
    sigma = group_sigma(factors, part, weights)
    beta = np.zeros(problem.base.count)
    beta[list(kept)] = part
    message = f"{len(kept)} essential of {problem.base.count} base parameters"
    return finish(problem, beta, weights, sigma, iterations, message, kept)


def finish(
    problem: Regression,
    beta: Array,
    weights: Array,
    sigma: Array,
    iterations: int,
    message: str,
    kept: tuple[int, ...] | None = None,
) -> Estimate:
    """Add residuals and the covariance that a least-squares estimate has.

    Parameters
    ----------
    kept : tuple of int, optional
        Base parameters that were estimated, all by default.
    weights : ndarray
        The sigmas that weighted the estimate: ones for `ols`.
    sigma : ndarray
        The sigmas of the errors.
    """
    found = residuals(problem, beta)
    p = problem.base.count
    chosen = list(range(p)) if kept is None else list(kept)
    factors = problem.factors.select(chosen)
    seed = np.zeros(p)
    seed[chosen] = seed_std(factors.weighted(sigma))
    inverse = factors.weighted(weights).inverse()
    bread = np.zeros((p, p))
    bread[np.ix_(chosen, chosen)] = inverse @ inverse.T
    if whiteness_rejected(found.error):
        lag = automatic_lag(found.error)
        score = score_covariance(problem, beta, weights, lag)
        name = f"hac sandwich (residuals are not white), Bartlett lag {lag}"
        matrix = bread @ score @ bread
    elif np.allclose(weights, sigma, rtol=1e-3):
        name, matrix = "weighted least squares, (X' W X)^-1", bread
    else:
        # under unequal joint noise, eq. (9) of an unweighted estimate does not cover
        score = sum(
            (s / w**2) ** 2 * (g.factor[:, :-1].T @ g.factor[:, :-1])
            for s, w, g in zip(sigma, weights, problem.factors.groups, strict=True)
        )
        name, matrix = "sandwich with a sigma per joint", bread @ score @ bread
    covariance = Covariance(name, np.asarray(matrix), seed)
    return Estimate(beta, None, sigma, covariance, found, iterations, True, message)
