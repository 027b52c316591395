"""DIDIM: direct and inverse dynamics, the torque fitted along the simulated motion.

``beta = (Z^T Z)^-1 Z^T y`` (ardiani2024, eq. 16; brunot2019, 3.3): weighted least squares
on the rows of the simulated motion, iterated; the motion's own dependence on beta is
neglected (pseudo-linear regression).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, RolloutError
from dynident.estimators.closed_loop import Auxiliary, Simulation, auxiliary_model
from dynident.estimators.estimate import Estimate
from dynident.estimators.inner import Free, Inner
from dynident.estimators.instrumental import CONVERGED, ITERATIONS
from dynident.estimators.iteration import (
    explained,
    gain_scale,
    settled,
    simulated_towards,
    start_values,
)
from dynident.estimators.least_squares import finish, require_excitation, weighted_solution
from dynident.estimators.least_squares import seed_std as least_squares_std
from dynident.regression.problem import Problem, Regression


def didim(problem: Problem, simulation: Simulation, gain_update: bool = False) -> Estimate:
    """Input error with the regressor of the simulated motion as its Jacobian.

    Parameters
    ----------
    problem : Problem
    simulation : Simulation
    gain_update : bool
        Keep the simulated loop's bandwidth while the estimated inertia moves; see
        `dynident.estimators.iteration.gain_scale`.

    Raises
    ------
    InputError
        When a log has no reference or the controller does not fit.
    ComputationError
        When the loop cannot be simulated or the iterations do not settle, as under a
        controller that is not the robot's.
    """
    auxiliary = auxiliary_model(problem, simulation)
    inner = Free(lambda system: require_excitation(problem, system))
    start = start_values(problem, simulation.start)
    found = direct_inverse(auxiliary, start, gain_update, inner)
    iterations = len(found.history) - 1
    estimate = finish(
        found.simulated,
        found.beta,
        found.sigma,
        found.sigma,
        iterations,
        f"settled in {iterations} simulations",
    )
    return replace(
        estimate,
        history=found.history,
        warnings=() if simulation.assumed is None else (simulation.assumed,),
        singular_values=found.simulated.factors.singular_values(),
    )


@dataclass(frozen=True)
class Simulated:
    """Where a DIDIM iteration ended.

    Attributes
    ----------
    simulated : Regression
        Rows ``[Z | y]`` of the simulated motion.
    beta : ndarray, shape (base parameters,)
    sigma : ndarray, shape (n,)
    history : ndarray, shape (iterations + 1, base parameters)
    """

    simulated: Regression
    beta: Array
    sigma: Array
    history: Array


def direct_inverse(
    auxiliary: Auxiliary, start: Array, gain_update: bool, inner: Inner
) -> Simulated:
    """The iteration behind DIDIM and PC-DIDIM.

    Parameters
    ----------
    auxiliary : Auxiliary
    start : ndarray, shape (base parameters,)
    gain_update : bool
    inner : Inner
        Minimises ``||Z beta - y||^2`` over what is admitted.

    Raises
    ------
    ComputationError
        When the loop cannot be simulated or the iterations do not settle.
    """
    beta = start
    history, simulatable = [beta], beta
    scale = gain_scale(auxiliary, gain_update)
    for iteration in range(1, ITERATIONS + 1):
        try:
            simulated, halvings = simulated_towards(auxiliary, simulatable, beta, scale)
        except RolloutError as error:
            raise explained(error, iteration, auxiliary.simulation.start) from error
        simulatable = simulatable + 0.5**halvings * (beta - simulatable)
        factors = simulated.factors
        _, sigma, _ = weighted_solution(factors)
        system = factors.weighted(sigma)
        new = inner(system)
        done = halvings == 0 and settled(new, beta, least_squares_std(system), CONVERGED)
        beta = new
        history.append(beta)
        if done:
            return Simulated(simulated, beta, sigma, np.array(history))
    raise ComputationError(
        f"didim did not settle in {ITERATIONS} simulations: the controller or the reference may "
        "not be the robot's; idim-iv is robust to that"
    )
