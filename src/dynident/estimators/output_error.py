"""CLOE and CLIE: simulated positions, or torques, fitted by Levenberg-Marquardt.

The Jacobians are the exact sensitivities of the simulated closed loop (brunot2019, eq. 17
to 23), from one rollout for all parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, RolloutError
from dynident.estimators.closed_loop import Auxiliary, Simulation, auxiliary_model
from dynident.estimators.estimate import Estimate
from dynident.estimators.inner import Free, Inner
from dynident.estimators.instrumental import CONVERGED
from dynident.estimators.iteration import (
    explained,
    gain_scale,
    settled,
    simulated_towards,
    start_values,
)
from dynident.estimators.least_squares import (
    finish,
    group_sigma,
    seed_std,
    weighted_solution,
)
from dynident.regression.factors import System
from dynident.regression.problem import Decimator, Problem, Rows
from dynident.simulation.rollout import Stretch

ITERATIONS = 60
APPROACH = 3
"""Pseudo-linear steps from a start that has not seen the log."""
DAMPING = 1e-3
LARGEST_DAMPING = 1e10
STALLED = 1e-9
"""Relative decrease of the criterion below which a step is the last."""

Output = tuple[str, Callable[[Stretch], Array], Callable[[Stretch], Array]]

POSITION: Output = ("q", lambda part: part.motion.q, lambda part: part.by_q)
TORQUE: Output = ("tau", lambda part: part.motion.tau, lambda part: part.by_tau)


def cloe(problem: Problem, simulation: Simulation) -> Estimate:
    """Closed-loop output error: the simulated positions fitted to the measured ones.

    Errors and Jacobian are filtered and decimated as the problem's rows are.

    Parameters
    ----------
    problem : Problem
    simulation : Simulation

    Raises
    ------
    InputError
        When a log has no reference or the controller does not fit.
    ComputationError
        When the loop cannot be simulated or the iterations do not settle.
    """
    estimate = free_output_error(problem, simulation, POSITION)
    # sigma is a torque's everywhere else: that of the inverse model's errors
    ones = np.ones(problem.robot.n)
    return replace(estimate, sigma=group_sigma(problem.factors, estimate.beta, ones))


def clie(problem: Problem, simulation: Simulation) -> Estimate:
    """Closed-loop input error: the simulated torques fitted to the measured ones.

    Parameters and errors as `cloe`.

    Raises
    ------
    InputError, ComputationError
    """
    return free_output_error(problem, simulation, TORQUE)


def free_output_error(problem: Problem, simulation: Simulation, output: Output) -> Estimate:
    """CLOE and CLIE without constraints."""
    auxiliary = auxiliary_model(problem, simulation)
    start = start_values(problem, simulation.start)
    return finished(output_error(auxiliary, start, output, Free(rcond=1e-12)), simulation)


@dataclass(frozen=True)
class Linear:
    """Where a Levenberg-Marquardt iteration ended.

    Attributes
    ----------
    linear : Problem
        Rows ``[Psi | e + Psi beta]`` of the simulated output around the estimate.
    beta : ndarray, shape (base parameters,)
    sigma : ndarray, shape (n,)
    history : ndarray, shape (steps + 1, base parameters)
    message : str
    """

    linear: Problem
    beta: Array
    sigma: Array
    history: Array
    message: str


def finished(found: Linear, simulation: Simulation) -> Estimate:
    """An unconstrained estimate of an output error."""
    steps = len(found.history) - 1
    estimate = finish(found.linear, found.beta, found.sigma, found.sigma, steps, found.message)
    return replace(
        estimate,
        history=found.history,
        warnings=() if simulation.assumed is None else (simulation.assumed,),
        singular_values=found.linear.factors.singular_values(),
    )


def output_error(auxiliary: Auxiliary, start: Array, output: Output, inner: Inner) -> Linear:
    """Levenberg-Marquardt on ``sum_j ||e_j||^2 / sigma_j^2`` with sigma_j renewed each step.

    Parameters
    ----------
    auxiliary : Auxiliary
    start : ndarray, shape (base parameters,)
    output : Output
    inner : Inner
        Minimises the damped linear problem over what is admitted.

    Raises
    ------
    ComputationError
    """
    simulation = auxiliary.simulation
    beta, damping, rollouts = start, DAMPING, 1
    history = [beta]
    try:
        if simulation.start != "least-squares":
            beta = approached(auxiliary, beta, inner)
        linear = linearised(auxiliary, beta, output)
    except RolloutError as error:
        raise explained(error, 1, simulation.start) from error
    penalty = np.inf  # of the start nothing is known yet
    for _ in range(ITERATIONS):
        factors = linear.factors
        sigma = error_sigma(linear, beta)
        system = factors.weighted(sigma)
        errors = float(np.sum(factors.squared_residuals(beta) / sigma**2))
        while True:
            new = inner(damped(system, beta, damping))
            if not np.isfinite(penalty):
                penalty = inner.penalty
            cost = errors + penalty
            rollouts += 1
            try:
                trial = linearised(auxiliary, new, output)
            except RolloutError:
                decrease = -np.inf
            else:
                after = float(np.sum(trial.factors.squared_residuals(new) / sigma**2))
                decrease = cost - after - inner.penalty
            close = settled(new, beta, seed_std(system), CONVERGED)
            if decrease > 0.0 or (close and decrease > -STALLED * cost):
                break
            damping = max(10.0 * damping, DAMPING)
            if damping > LARGEST_DAMPING:
                raise ComputationError(
                    f"no step from the start {simulation.start!r} lowers the error; try another "
                    "start, or idim-iv first"
                )
        damping = 0.1 * damping if damping > 1e-9 else 0.0
        beta, linear, penalty = new, trial, inner.penalty
        history.append(beta)
        if close or decrease < STALLED * cost:
            sigma = error_sigma(linear, beta)
            message = f"settled in {len(history) - 1} steps, {rollouts} rollouts"
            if simulation.start != "least-squares":
                message += f" after {APPROACH} pseudo-linear steps"
            return Linear(linear, beta, sigma, np.array(history), message)
    raise ComputationError(
        f"the output error did not settle in {ITERATIONS} steps; try another start"
    )


def approached(auxiliary: Auxiliary, beta: Array, inner: Inner) -> Array:
    """A few pseudo-linear steps towards the torques (those of DIDIM), which cost one rollout.

    Far from the answer an exact Jacobian is no better a guide, and many times as dear.

    Raises
    ------
    RolloutError
        When the start itself cannot be simulated.
    """
    scale = gain_scale(auxiliary, update=True)
    simulatable = beta
    for _ in range(APPROACH):
        simulated, halvings = simulated_towards(auxiliary, simulatable, beta, scale)
        simulatable = simulatable + 0.5**halvings * (beta - simulatable)
        factors = simulated.factors
        beta = inner(factors.weighted(weighted_solution(factors)[1]))
    _, halvings = simulated_towards(auxiliary, simulatable, beta)
    return np.asarray(simulatable + 0.5**halvings * (beta - simulatable))


def error_sigma(linear: Problem, beta: Array) -> Array:
    """Root mean square of each joint's error: what weighs it in the next step."""
    squares = linear.factors.squared_residuals(beta)
    rows = np.array([max(1, group.rows) for group in linear.factors.groups])
    sigma = np.sqrt(squares / rows)
    return np.asarray(np.maximum(sigma, 1e-9 * max(float(sigma.max()), 1e-300)))


def damped(system: System, beta: Array, damping: float) -> System:
    """A system with rows ``sqrt(damping) diag(A^T A)^(1/2) (new - beta)`` added."""
    norms = np.linalg.norm(system.A, axis=0)
    norms = np.maximum(norms, 1e-12 * max(float(norms.max()), 1e-300))
    rows = np.sqrt(damping) * norms
    return System(
        np.vstack([system.A, np.diag(rows)]), np.concatenate([system.b, rows * beta]), system.rest
    )


def linearised(auxiliary: Auxiliary, beta: Array, output: Output) -> Problem:
    """Rows ``[Psi | e + Psi beta]`` of the simulated output around beta.

    Least squares on them is a Gauss-Newton step; at beta their residuals are the errors.

    Raises
    ------
    RolloutError
    """
    problem = auxiliary.problem
    name, signal, slope = output
    stretches: list[list[Rows]] = [[] for _ in problem.samples]
    decimators: dict[tuple[int, int, int], Decimator] = {}
    n, p = problem.robot.n, problem.base.count
    for index, run, part in auxiliary.sensitive(beta, name):
        log = problem.samples[index]
        measured = log.measured if name == "q" else log.tau
        psi, simulated = slope(part), signal(part)
        a = run + part.start
        for start, stop in log.segments:
            low, high = max(a, start), min(a + len(simulated), stop)
            if low >= high:
                continue
            inside = slice(low - a, high - a)
            X, y, sample = [], [], []
            for j in range(n):
                key = (index, start, j)
                if key not in decimators:
                    decimators[key] = Decimator(log.filters[j], start, stop, p + 1)
                error = measured[low:high, j] - simulated[inside, j]
                centres, rows = decimators[key].push(low, np.column_stack([psi[inside, j], error]))
                fast = log.moving[centres, j]
                X.append(rows[fast, :p])
                y.append(rows[fast, p] + rows[fast, :p] @ beta)
                sample.append(centres[fast])
            stretches[index].append(Rows(tuple(X), tuple(y), tuple(sample)))
    return problem.with_rows(tuple(tuple(rows) for rows in stretches))
