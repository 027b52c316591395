"""CLOE: simulated positions fitted to measured ones, by links and drives or by drives alone."""

from __future__ import annotations

from dataclasses import replace

from dynident.core.errors import InputError
from dynident.core.progress import Progress, ignore_progress
from dynident.encoders.drives import DriveFitOptions, fit_drives_and_loop, fits_drives
from dynident.estimators.closed_loop import Simulation, refuse_chatter
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import Estimate
from dynident.estimators.iteration import Weighting
from dynident.estimators.output_error import (
    POSITION,
    OutputDescent,
    SlopeOptions,
    estimate_by_output_error,
)
from dynident.regression.problem import Problem
from dynident.regression.weighted import estimate_group_sigma


def cloe(
    problem: Problem,
    simulation: Simulation,
    bars: ErrorBars = ErrorBars(),
    fitting: DriveFitOptions = DriveFitOptions(),
    progress: Progress = ignore_progress,
    weighting: Weighting = Weighting(),
    slopes: SlopeOptions = SlopeOptions(),
    descent: OutputDescent = OutputDescent(),
) -> Estimate:
    """Closed-loop output error: the simulated positions fitted to the measured ones.

    Errors and Jacobian are filtered and decimated as the problem's rows are. Where links are
    fixed, drives and loop are fitted to all samples instead.

    Raises
    ------
    InputError
        When a log has no reference or the controller does not fit.
    ComputationError
        When the loop cannot be simulated, chatters, or the iterations do not settle.
    """
    if fits_drives(problem, fitting):
        problem.robot.refuse_loops("a fit of drives to positions")
        if slopes.sensitivities == "differences":
            raise InputError(
                "drives are fitted by exact sensitivities; differences need links = 'free'"
            )
        if descent != OutputDescent():
            raise InputError(
                "tolerance and step_limit need links = 'free': fits of drives end by themselves"
            )
        return fit_drives_and_loop(problem, simulation, fitting, bars, progress)
    if fitting.loop or fitting.mount or fitting.constraints or fitting.hindered != "left-out":
        raise InputError(
            "loop, mount, hindered and constraints apply to cloe with links = 'fixed'; pc-clie "
            "takes constraints on links"
        )
    estimate = estimate_by_output_error(
        problem, simulation, POSITION, bars, weighting, slopes, descent, progress
    )
    # the position hardly moves with a torque that chatters: its fit looks precise and is not
    refuse_chatter(problem, simulation, problem.base.standard(estimate.beta))
    # sigma is a torque's everywhere else: that of the inverse model's errors
    factors = problem.factors
    return replace(estimate, sigma=estimate_group_sigma(factors, estimate.beta, factors.ones))
