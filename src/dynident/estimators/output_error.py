"""Simulated positions (CLOE), or torques (CLIE), fitted by Levenberg-Marquardt.

The Jacobians are the exact sensitivities of the simulated closed loop (brunot2019, eq. 17
to 23), from one rollout for all parameters; or differences of as many rollouts more, as there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Literal

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError, RolloutError
from dynident.core.factors import measure_columns
from dynident.core.options import Options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.schema import Rounds
from dynident.estimators.closed_loop import AuxiliaryModel, Simulation, build_auxiliary_model
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.damped import LocalProblem, StepPace, run_levenberg_marquardt
from dynident.estimators.didim import make_didim_step
from dynident.estimators.estimate import Estimate
from dynident.estimators.inner import FreeSolver, InnerSolver
from dynident.estimators.iteration import (
    CONVERGED,
    Settles,
    Weighting,
    choose_start_values,
    explain_failed_rollout,
    has_converged,
    make_gain_scale,
    simulate_and_step,
    simulate_towards_estimate,
)
from dynident.estimators.least_squares import WeightedSolution, finish_ls_estimate
from dynident.regression.decimate import GroupDecimator
from dynident.regression.problem import Problem, Regression
from dynident.regression.rows import Rows, list_position_groups, list_torque_groups, split_rows
from dynident.regression.weighted import compute_literature_std
from dynident.simulation.rollout import SensitiveStretch

APPROACH = 3
"""Pseudo-linear steps from a start that has not seen the log."""
DAMPING = 1e-3
LARGEST_DAMPING = 1e10
STALLED = 1e-9
"""Relative decrease of the criterion below which a step is the last."""
FINEST = 1e-11
"""Of an output's size: what no log resolves, and a simulation's rounding is below."""
STEP = 1e-6
"""Of a difference: a parameter over the value at which it makes torques as large as all of them."""

Output = tuple[str, Callable[[SensitiveStretch], Array], Callable[[SensitiveStretch], Array]]

POSITION: Output = ("q", lambda part: part.motion.q, lambda part: part.by_q)
TORQUE: Output = ("tau", lambda part: part.motion.tau, lambda part: part.by_tau)


@dataclass(frozen=True)
class SlopeOptions(Options):
    """How a simulated output is differentiated by the parameters."""

    sensitivities: Annotated[
        Literal["exact", "differences"] | None,
        "sensitivities of the simulated output: `exact`, from one simulation, by default; or "
        "forward `differences`, from one more simulation per parameter as in the literature, the "
        "default for closed chains, which have no exact ones",
    ] = None

    def are_differences(self, problem: Problem) -> bool:
        """Whether the simulated output of a problem's robot is differentiated by differences."""
        usual = "differences" if problem.robot.loops else "exact"
        return (self.sensitivities or usual) == "differences"


@dataclass(frozen=True)
class OutputDescent(Options):
    """Where steps towards a simulated output end."""

    tolerance: Settles = CONVERGED
    step_limit: Annotated[
        Rounds, "most damped steps before the output error method is given up"
    ] = 60


def clie(
    problem: Problem,
    simulation: Simulation,
    bars: ErrorBars = ErrorBars(),
    progress: Progress = ignore_progress,
    weighting: Weighting = Weighting(),
    slopes: SlopeOptions = SlopeOptions(),
    descent: OutputDescent = OutputDescent(),
) -> Estimate:
    """Closed-loop input error: the simulated torques fitted to the measured ones.

    Parameters and errors as those of CLOE. In the place of torque that no log has is the
    law's, along the measured motion.
    """
    return estimate_by_output_error(
        problem, simulation, TORQUE, bars, weighting, slopes, descent, progress
    )


def estimate_by_output_error(
    problem: Problem,
    simulation: Simulation,
    output: Output,
    bars: ErrorBars,
    weighting: Weighting,
    slopes: SlopeOptions,
    descent: OutputDescent,
    progress: Progress,
) -> Estimate:
    """CLOE and CLIE without constraints."""
    auxiliary = build_auxiliary_model(problem, simulation)
    start = choose_start_values(problem, simulation.start)
    free = FreeSolver(rcond=1e-12)
    linear, found, history = minimise_output_error(
        auxiliary, start, output, free, progress, weighting, slopes, descent
    )
    return replace(
        finish_ls_estimate(linear, found, bars),
        history=history,
        warnings=simulation.warnings,
        singular_values=linear.factors.singular_values(),
    )


def minimise_output_error(
    auxiliary: AuxiliaryModel,
    start: Array,
    output: Output,
    inner: InnerSolver,
    progress: Progress = ignore_progress,
    weighting: Weighting = Weighting(),
    slopes: SlopeOptions = SlopeOptions(),
    descent: OutputDescent = OutputDescent(),
) -> tuple[Regression, WeightedSolution, Array]:
    """The least ``sum_j ||e_j||^2 / sigma_j^2`` of a simulated output from a start.

    Returns
    -------
    linear : Regression
        Rows ``[Psi | e + Psi beta]`` of the simulated output around the estimate.
    found : WeightedSolution
    history : ndarray, shape (steps + 1, base parameters)
    """
    given = auxiliary.simulation.start
    try:
        beta = start if given == "least-squares" else approach_by_didim(auxiliary, start, inner)
        linear = linearise_output(auxiliary, beta, output, slopes)
    except RolloutError as error:
        raise explain_failed_rollout(error, 1, given) from error
    finest = FINEST * measure_output_size(auxiliary.problem, output)
    pace = StepPace(
        *(DAMPING, LARGEST_DAMPING, STALLED),
        f"no step from the start {given!r} lowers the error; try another start, or idim-iv first",
        "try another start",
        unseen=STALLED * measure_unseen(linear, finest, weighting),
        limit=descent.step_limit,
    )
    ended = run_levenberg_marquardt(
        lambda at: linearise_output(auxiliary, at, output, slopes),
        lambda linear, at: build_local_problem(linear, at, finest, weighting, descent),
        *(inner, beta, linear, pace),
        progress=progress,
    )
    differences = slopes.are_differences(auxiliary.problem)
    each = 1 + auxiliary.problem.base.count if differences else 1
    message = f"settled in {len(ended.history) - 1} steps, {each * ended.rollouts} rollouts"
    history = ended.history
    if given != "least-squares":
        message += f" after {APPROACH} pseudo-linear steps"
        history[0] = start
    sigma = measure_error_sigma(ended.here, ended.x)
    return (
        ended.here,
        WeightedSolution(ended.x, weighting.weigh(sigma), sigma, len(history) - 1, message),
        history,
    )


def build_local_problem(
    linear: Regression, beta: Array, finest: float, weighting: Weighting, descent: OutputDescent
) -> LocalProblem[Regression]:
    """The problem of a step from beta, where errors below the finest are none."""
    sigma = np.maximum(measure_error_sigma(linear, beta), finest)
    weights, std = weighting.weigh(sigma), compute_literature_std(linear.factors.weighted(sigma))
    return LocalProblem(
        linear.factors.weighted(weights),
        lambda other, at: float(np.sum(other.factors.squared_residuals(at) / weights**2)),
        lambda new: has_converged(new, beta, std, descent.tolerance),
    )


def approach_by_didim(auxiliary: AuxiliaryModel, beta: Array, inner: InnerSolver) -> Array:
    """A few pseudo-linear steps towards the torques (those of DIDIM), which cost one rollout.

    Far from the answer an exact Jacobian is no better a guide, and many times as dear.
    """
    scale = make_gain_scale(auxiliary, update=True)
    walk = islice(simulate_and_step(auxiliary, beta, scale, make_didim_step(inner)), APPROACH)
    *_, last = walk
    missed = last.stepped.rows.factors.squared_residuals(last.simulated)
    _, halvings = simulate_towards_estimate(
        auxiliary, last.simulated, last.stepped.beta, missed=missed
    )
    return np.asarray(last.simulated + 0.5**halvings * (last.stepped.beta - last.simulated))


def measure_error_sigma(linear: Regression, beta: Array) -> Array:
    """Root mean square of each joint's error: what weighs it in the next step."""
    squares = linear.factors.squared_residuals(beta)
    sigma = np.sqrt(squares / np.maximum(linear.factors.counts, 1.0))
    # a joint that fits to rounding would outweigh all others
    return np.asarray(np.maximum(sigma, 1e-9 * max(float(sigma.max()), 1e-300)))


def measure_unseen(linear: Regression, finest: float, weighting: Weighting) -> float:
    """The criterion where all errors are the finest."""
    sigma = np.full(len(linear.factors.counts), finest)
    return float(np.sum(linear.factors.counts * (sigma / weighting.weigh(sigma)) ** 2))


def measure_output_size(problem: Problem, output: Output) -> float:
    """The largest root mean square of a joint's measured output in a log."""
    name, *_ = output
    logs = [log.measured if name == "q" else log.joint_torque for log in problem.samples]
    return max(float(np.sqrt(np.mean(np.square(y), axis=0)).max()) for y in logs)


def linearise_output(
    auxiliary: AuxiliaryModel, beta: Array, output: Output, slopes: SlopeOptions = SlopeOptions()
) -> Regression:
    """Rows ``[Psi | e + Psi beta]`` of the simulated output around beta.

    Least squares on them is a Gauss-Newton step; at beta their residuals are the errors.
    """
    problem = auxiliary.problem
    name, signal, slope = output
    stretches: list[list[Rows]] = [[] for _ in problem.samples]
    decimators: dict[tuple[int, int], GroupDecimator] = {}
    n, p = problem.robot.n, problem.base.count
    refuse_base_equations(problem)
    if slopes.are_differences(problem):
        parts = auxiliary.differenced(beta, name, choose_difference_steps(problem))
    else:
        parts = auxiliary.sensitive(beta, name)
    for index, run, part in parts:
        log = problem.samples[index]
        measured, left_out = log.joint_torque, log.left_out
        if name == "q":
            measured, left_out = log.measured, None
        psi, simulated = slope(part), signal(part)[:, -n:]
        a = run + part.start
        for start, stop in log.segments:
            low, high = max(a, start), min(a + len(simulated), stop)
            if low >= high:
                continue
            if (index, start) not in decimators:
                widths = [p + 1] * (log.first + n)
                decimators[index, start] = GroupDecimator(
                    log.filters, log.moving, start, stop, widths, left_out
                )
            inside = slice(low - a, high - a)
            error = measured[low:high] - simulated[inside]
            nothing = np.zeros((high - low, p)), np.zeros((high - low, 1))
            blocks = [nothing] * log.first  # of a base, whose equations have no rows
            blocks += [(psi[inside, j], error[:, j : j + 1]) for j in range(n)]
            rows = split_rows(*decimators[index, start].push(low, blocks))
            y = tuple(e + X @ beta for X, e in zip(rows.X, rows.y, strict=True))
            stretches[index].append(replace(rows, y=y))
    groups = list_torque_groups if name == "tau" else list_position_groups
    return problem.given(groups(problem.robot), stretches)


def choose_difference_steps(problem: Problem) -> Array:
    """A step of each base parameter for differences, far above what a motion is rounded to."""
    system = problem.factors.weighted(problem.factors.ones)
    return np.asarray(STEP * np.linalg.norm(system.b) / measure_columns(system.A))


def refuse_base_equations(problem: Problem) -> None:
    """Refuse parameters that only the base's wrench shows: the joints' outputs have none of it."""
    for log in problem.samples:
        if log.first and log.observed.equations != "joints":
            raise InputError(
                f"{log.name}: the fitted outputs are those of the joints: set equations = "
                "'joints', or take idim-iv or didim, which fit the base's wrench, too"
            )
