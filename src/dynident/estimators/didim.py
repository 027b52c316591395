"""DIDIM: direct and inverse dynamics, the torque fitted along the simulated motion.

``beta = (Z^T Z)^-1 Z^T y`` (ardiani2024, eq. 16; brunot2019, 3.3): weighted least squares
on the rows of the simulated motion, iterated; the motion's own dependence on beta is
neglected (pseudo-linear regression).
"""

from __future__ import annotations

from dataclasses import replace

from dynident.core.arrays import Array
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import Estimate
from dynident.estimators.inner import FreeSolver, InnerSolver
from dynident.estimators.iteration import (
    IterationOptions,
    MethodStep,
    Stepped,
    Weighting,
    choose_start_values,
    iterate_until_settled,
)
from dynident.estimators.least_squares import WeightedSolution, finish_ls_estimate
from dynident.regression.problem import Problem, Regression
from dynident.regression.weighted import compute_literature_std, require_excitation, solve_wls

DIDIM_ADVICE = "the controller or the reference may not be the robot's; idim-iv is robust to that"


def didim(
    problem: Problem,
    simulation: Simulation,
    search: IterationOptions = IterationOptions(),
    bars: ErrorBars = ErrorBars(),
    weighting: Weighting = Weighting(),
) -> Estimate:
    """Input error with the regressor of the simulated motion as its Jacobian.

    Raises
    ------
    InputError
        When a log has no reference or the controller does not fit.
    ComputationError
        When the loop cannot be simulated or the iterations do not settle, as under a
        controller that is not the robot's.
    """
    auxiliary = build_auxiliary_model(problem, simulation)
    start = choose_start_values(problem, simulation.start)
    step = make_didim_step(
        FreeSolver(lambda system: require_excitation(problem, system)), weighting
    )
    found = iterate_until_settled(auxiliary, start, search, step, DIDIM_ADVICE)
    message = f"settled in {found.simulations} simulations"
    last = WeightedSolution(found.beta, found.used, found.sigma, found.simulations, message)
    return replace(
        finish_ls_estimate(found.rows, last, bars),
        history=found.history,
        warnings=simulation.warnings,
        singular_values=found.rows.factors.singular_values(),
    )


def make_didim_step(inner: InnerSolver, weighting: Weighting = Weighting()) -> MethodStep:
    """The step behind DIDIM and PC-DIDIM."""

    def solve(simulated: Regression, sigma: Array) -> Stepped:
        factors = simulated.factors
        _, sigma, _ = solve_wls(factors)
        weights, std = weighting.weigh(sigma), compute_literature_std(factors.weighted(sigma))
        beta = inner(factors.weighted(weights))
        return Stepped(simulated, beta, sigma, std, weights=weights)

    return MethodStep(solve)
