"""DIDIM: direct and inverse dynamics, the torque fitted along the simulated motion.

``beta = (Z^T Z)^-1 Z^T y`` (ardiani2024, eq. 16; brunot2019, 3.3): weighted least squares
on the rows of the simulated motion, iterated; the motion's own dependence on beta is
neglected (pseudo-linear regression).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.errors import ComputationError, RolloutError
from dynident.estimators.auxiliary import (
    Simulation,
    auxiliary_model,
    explained,
    settled,
    start_values,
)
from dynident.estimators.estimate import Estimate
from dynident.estimators.instrumental import CONVERGED, ITERATIONS
from dynident.estimators.least_squares import finish, require_excitation, weighted_solution
from dynident.estimators.least_squares import seed_std as least_squares_std
from dynident.inertia import Array
from dynident.problem import Problem


def didim(problem: Problem, simulation: Simulation, gain_update: bool = False) -> Estimate:
    """Input error with the regressor of the simulated motion as its Jacobian.

    Parameters
    ----------
    problem : Problem
    simulation : Simulation
    gain_update : bool
        Scale the simulated gains with the estimated inertia, so that the simulated loop
        keeps the bandwidth that the actual one has: ``J(beta) / J(beta_LS)`` joint by
        joint (Gautier, Janot and Vandanjon 2013).

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
    history = [beta]
    inertia = None
    if gain_update:
        inertia = auxiliary.inertia(weighted_solution(problem.factors)[0])
    for iteration in range(1, ITERATIONS + 1):
        scale: Array | None = None
        if inertia is not None:
            scale = auxiliary.inertia(beta) / inertia
        try:
            simulated = auxiliary.simulated(beta, scale)
        except RolloutError as error:
            raise explained(error, iteration, simulation.start) from error
        factors = simulated.factors
        require_excitation(problem, factors.weighted(np.ones(problem.robot.n)))
        new, sigma, _ = weighted_solution(factors)
        done = settled(new, beta, least_squares_std(factors.weighted(sigma)), CONVERGED)
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
