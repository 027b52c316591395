"""The energy (integrated) model: least squares on the work of the torques, no accelerations."""

from __future__ import annotations

from dynident.estimators.covariance import (
    ErrorBars,
    EstimateScores,
    estimate_covariance,
    name_covariance,
)
from dynident.estimators.estimate import Estimate
from dynident.estimators.least_squares import solve_unweighted
from dynident.regression.energy import build_energy_rows
from dynident.regression.problem import Problem
from dynident.regression.statistics import compute_residuals
from dynident.regression.weighted import (
    compute_literature_std,
    estimate_group_sigma,
    require_excitation,
)


def energy(problem: Problem, bars: ErrorBars = ErrorBars()) -> Estimate:
    """Least squares on the energy of the whole robot (zhang2018, section 1).

    One row an interval instead of one a joint, weighted by the speeds (`build_energy_rows`): which
    joint did the work is not told, and errors are larger than those of `wls`, but for logs whose
    accelerations are worse than that.
    Residuals and sigma are those of the torques.

    Raises
    ------
    InputError
        For robots that float, friction under load, and logs averaged over periods.
    ComputationError
        When the log's energy does not excite all base parameters.
    """
    rows = build_energy_rows(problem)
    require_excitation(rows, rows.factors.weighted(rows.factors.ones))
    found = solve_unweighted(rows.factors)
    inverse = rows.factors.weighted(found.weights).inverse()
    errors = compute_residuals(rows, found.beta)
    scores = EstimateScores(rows, found.beta, found.weights, found.sigma, errors)
    spread = estimate_covariance(scores, inverse @ inverse.T, bars)
    literature = compute_literature_std(rows.factors.weighted(found.sigma))
    torques = problem.factors
    return Estimate(
        found.beta,
        None,
        estimate_group_sigma(torques, found.beta, torques.ones),
        name_covariance("energy", spread, literature),
        compute_residuals(problem, found.beta),
        1,
        f"{rows.factors.rows} intervals, errors of {found.sigma[0]:.3g} J",
    )
