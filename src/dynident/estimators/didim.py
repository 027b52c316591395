"""DIDIM: direct and inverse dynamics, the torque fitted along the simulated motion.

``beta = (Z^T Z)^-1 Z^T y`` (ardiani2024, eq. 16; brunot2019, 3.3): weighted least squares
on the rows of the simulated motion, iterated; the motion's own dependence on beta is
neglected (pseudo-linear regression).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.errors import ComputationError, RolloutError
from dynident.estimators.auxiliary import Simulation, auxiliary_model
from dynident.estimators.estimate import Estimate
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
from dynident.problem import Problem


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
    beta = start_values(problem, simulation.start)
    history, simulatable = [beta], beta
    scale = gain_scale(auxiliary, gain_update)
    for iteration in range(1, ITERATIONS + 1):
        try:
            simulated, halvings = simulated_towards(auxiliary, simulatable, beta, scale)
        except RolloutError as error:
            raise explained(error, iteration, simulation.start) from error
        simulatable = simulatable + 0.5**halvings * (beta - simulatable)
        factors = simulated.factors
        require_excitation(problem, factors.weighted(np.ones(problem.robot.n)))
        new, sigma, _ = weighted_solution(factors)
        std = least_squares_std(factors.weighted(sigma))
        done = halvings == 0 and settled(new, beta, std, CONVERGED)
        beta = new
        history.append(beta)
        if done:
            estimate = finish(
                simulated, beta, sigma, sigma, iteration, f"settled in {iteration} simulations"
            )
            return replace(
                estimate,
                history=np.array(history),
                warnings=() if simulation.assumed is None else (simulation.assumed,),
                singular_values=factors.singular_values(),
            )
    raise ComputationError(
        f"didim did not settle in {ITERATIONS} simulations: the controller or the reference may "
        "not be the robot's; idim-iv is robust to that"
    )
