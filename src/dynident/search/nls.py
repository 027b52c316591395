"""Nonlinear least squares within ranges: the gradient method of zhang2018, with exact gradients."""

from __future__ import annotations

from dynident.consistency.knowledge import Knowledge
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import Estimate
from dynident.regression.problem import Problem
from dynident.search.ranges import SearchRegion, build_search_task


def nls(
    problem: Problem,
    region: SearchRegion = SearchRegion(),
    knowledge: Knowledge = Knowledge(),
    bars: ErrorBars = ErrorBars(),
) -> Estimate:
    """The criterion's exact optimum within ranges (zhang2018, eq. 16 or 25).

    Where the torque is linear in the parameters, least squares is one cone problem with the
    ranges among its constraints, and means and spreads are some. Shapes of friction are found
    with these by Gauss-Newton steps with exact Jacobians, within their bounds, as for every
    method.

    Raises
    ------
    InputError
        For ranges and starts that do not fit the robot or each other.
    ComputationError
        When nothing in the ranges is admitted, or no certified answer was reached.
    """
    searched = build_search_task(problem, region, knowledge, bars)
    point, steps = searched.optimum
    return searched.estimate(point, steps, f"solved within ranges in {steps} steps")
