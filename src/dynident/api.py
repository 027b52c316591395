"""The façade: from a problem, or a study, to an `Identification`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynident.consistency.constraints import Constraint, described
from dynident.core.errors import ComputationError, InputError
from dynident.core.progress import Progress, Stopwatch, silent
from dynident.core.text import nearest
from dynident.core.threads import one_thread
from dynident.estimators import ESTIMATORS, Estimate
from dynident.estimators.closed_loop import (
    SimulatedFigure,
    Simulation,
    auxiliary_model,
    simulated_figures,
    stiffness_warnings,
)
from dynident.estimators.least_squares import essential_fit, weakest_combination
from dynident.estimators.options import (
    arguments,
    check_options,
    plain_options,
)
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording
from dynident.regression.essential import Essential, essential_parameters
from dynident.regression.factors import UNEXCITED, System
from dynident.regression.problem import Problem
from dynident.regression.row_kinds import ROWS
from dynident.results.figures import FitFigure, check_lowpass, model_figures
from dynident.results.identification import Identification
from dynident.results.result import ValidationFigures

WEAK_STD_PERCENT = 100.0
"""Relative standard deviation of a base parameter above which it is not identified."""
POOR_CONDITION = 1000.0
POOR_FIT_PERCENT = 50.0


@one_thread
def identify(
    problem: Problem,
    method: str = "pc-idim-ls",
    *,
    prior: str | None = None,
    metric: str | None = None,
    prior_weight: float | str | None = None,
    consistency: str | None = None,
    constraints: Sequence[Constraint] | None = None,
    parametrisation: str | None = None,
    bootstrap: int | None = None,
    seed: int | None = None,
    loss: str | None = None,
    essential: str | None = None,
    simulation: Simulation | None = None,
    gain_update: bool | None = None,
    rows: str = "decimated",
    lowpass_hz: float | None = None,
    validation: Sequence[Samples] = (),
    progress: Progress = silent,
) -> Identification:
    """Identify a model and measure it.

    Parameters
    ----------
    problem : Problem
    method : str
        Name in `ESTIMATORS`.
    prior : {"nominal", "none"}, optional
        Of constrained methods; the robot file's inertials where it has any.
    metric : str, optional
        Of the prior: a name in `dynident.consistency.prior.METRICS`, "pullback" by default.
    prior_weight : float or "held-out", optional
        Of the prior, 1 by default: each link is believed within its own size.
    consistency : str, optional
        Of constrained methods: a name in `dynident.consistency.constraints.CONSISTENCY`,
        "pseudo-inertia" by default.
    constraints : sequence of Constraint, optional
        Of constrained methods: more of what is known; see `dynident.consistency.constraints`.
    parametrisation : {"cones", "log-cholesky"}, optional
        Of constrained methods: how the consistent set is searched, under its cones by
        default.
    bootstrap : int, optional
        Of constrained methods: replicates of the block bootstrap of the error bars where
        constraints are active, 60 by default; 0 for the covariance on their faces.
    seed : int, optional
        Of the bootstrap, 0 by default.
    loss : {"huber", "bisquare"}, optional
        Of irls.
    essential : {"ratio", "f-test", "torque-range"}, optional
        Of ols and wls: eliminate base parameters that the log does not determine.
    simulation : Simulation, optional
        The closed loop, for methods that simulate it.
    gain_update : bool, optional
        Of idim-iv, 2sls, didim: keep the bandwidth while the estimated inertia moves.
    rows : str
        Name in `dynident.regression.row_kinds.ROWS`: what the method fits. Errors are those of the
        decimated rows all the same.
    lowpass_hz : float, optional
        Of the all-samples figures; the largest torque cutoff by default [Hz].
    validation : sequence of Samples
        Held-out logs.
    progress : callable
        See `Progress`.

    Returns
    -------
    Identification

    Raises
    ------
    InputError
        For unknown names and options that the method does not have.
    ComputationError
        When no trustworthy answer came out.
    """
    watch = Stopwatch()
    options = plain_options({
        "prior": prior,
        "metric": metric,
        "prior_weight": prior_weight,
        "consistency": consistency,
        "constraints": None if constraints is None else tuple(constraints),
        "parametrisation": parametrisation,
        "bootstrap": bootstrap,
        "seed": seed,
        "loss": loss,
        "essential": essential,
        "simulation": simulation,
        "gain_update": gain_update,
    })  # fmt: skip
    check_options(method, options)
    if rows not in ROWS:
        raise InputError(f"rows {rows!r} is not known{nearest(rows, ROWS)}")
    progress("rows", 0.0)
    factors = problem.factors
    if not np.any(factors.squared_torques):
        called = ", ".join(log.name for log in problem.samples)
        raise ComputationError(
            f"{called}: the torque is zero throughout, which says nothing of the robot; "
            "check the torque columns"
        )
    watch.lap("rows")
    progress("estimate", 0.0)
    reduced: Essential | None = None
    fitted = ROWS[rows](problem)
    if essential is not None:
        reduced = surviving(fitted, method, essential)
        estimate = essential_fit(fitted, method, reduced.kept)
    else:
        estimate = ESTIMATORS[method](fitted, **arguments(method, options))
    watch.lap("estimate")

    progress("validation", 0.0)
    if lowpass_hz is None:
        lowpass_hz = max(f.cutoff for log in problem.samples for f in log.filters)
    base = problem.base
    theta = base.standard(estimate.beta) if estimate.theta is None else estimate.theta
    identification, of_nominal = model_figures(problem, theta, lowpass_hz)
    simulated: tuple[SimulatedFigure, ...] = ()
    stiff: list[str] = []
    if simulation is not None:
        auxiliary = auxiliary_model(problem, simulation)
        simulated = simulated_figures(auxiliary, estimate.beta)
        stiff = stiffness_warnings(auxiliary, theta)
    held_out = tuple(
        ValidationFigures(log.name, *model_figures(problem.on(log), theta, lowpass_hz))
        for log in validation
    )
    watch.lap("validation")

    system = factors.weighted(estimate.sigma)
    condition, rank, _ = system.condition()
    logs = (*problem.samples, *validation)
    warnings = [
        *problem.robot.warnings,
        *(note for log in logs for note in log.warnings),
        *check_lowpass(lowpass_hz, logs),
        *unfitted_warnings(problem),
        *poor_fit_warnings(identification[0]),
        *estimate.warnings,
        *stiff,
        *excitation_warnings(problem, system, estimate, reduced),
    ]
    return Identification(
        method=method,
        base=base,
        estimate=estimate,
        essential=None if reduced is None else reduced.kept,
        samples=problem.samples,
        held_out=tuple(validation),
        lowpass_hz=lowpass_hz,
        identification=identification,
        nominal=of_nominal,
        validation=held_out,
        simulated=simulated,
        condition_number=condition,
        rank=rank,
        settings=settings_of(
            problem, method, options, rows, estimate, reduced, lowpass_hz, validation
        ),
        warnings=tuple(dict.fromkeys(warnings)),
        timings=watch.total(),
    )


def surviving(problem: Problem, method: str, rule: str) -> Essential:
    """Which base parameters survive elimination under a rule."""
    full = ESTIMATORS[method](problem)
    return essential_parameters(problem.factors, full.sigma, rule)


def poor_fit_warnings(fitted: FitFigure) -> list[str]:
    """A model that leaves most of the torque unexplained, in words."""
    if fitted.overall_percent <= POOR_FIT_PERCENT:
        return []
    return [
        f"the model leaves {fitted.overall_percent:.0f} % of the torque unexplained; check the "
        "signs, units and order of the joints' columns"
    ]


def unfitted_warnings(problem: Problem) -> list[str]:
    """Joints of which no row is fitted."""
    return [
        f"no row of {group.name} is fitted: drop_below is above its speed"
        for group in problem.factors.groups
        if not group.rows
    ]


def excitation_warnings(
    problem: Problem, system: System, estimate: Estimate, reduced: Essential | None
) -> list[str]:
    """What the log does not determine well, in words."""
    condition, _, _ = system.condition()
    notes = []
    if POOR_CONDITION < condition <= UNEXCITED:
        weakest = weakest_combination(problem, system)
        notes.append(f"condition number {condition:.0f}: the log hardly excites {weakest}")
    std = estimate.covariance.std
    poor = 100.0 * std > WEAK_STD_PERCENT * np.abs(estimate.beta)
    if reduced is None and np.any(poor):
        notes.append(
            f"{int(poor.sum())} of {len(std)} base parameters have a relative standard deviation "
            "above 100 %: indistinguishable from zero in this log"
        )
    return notes


def settings_of(
    problem: Problem,
    method: str,
    options: Mapping[str, Any],
    rows: str,
    estimate: Estimate,
    reduced: Essential | None,
    lowpass_hz: float,
    validation: Sequence[Samples],
) -> dict[str, Any]:
    """All that shaped a result."""
    settings: dict[str, Any] = {
        "friction": problem.idim.friction,
        "rotor": problem.idim.rotor,
        "method": method,
        "rows": rows,
        **{
            name: value
            for name, value in options.items()
            if value is not None and name not in ("simulation", "constraints")
        },
        "prior": prior_name(estimate),
        "prior_in_words": estimate.prior or "none",
        "lowpass_hz": lowpass_hz,
        "logs": [log.settings() for log in problem.samples],
        "validation": [log.settings() for log in validation],
        "sigma": [float(s) for s in estimate.sigma],
        "gravity": [float(g) for g in problem.robot.gravity],
        "robot_file": str(problem.robot.source) if problem.robot.source else None,
    }
    if options["constraints"]:
        settings["constraints"] = [described(c) for c in options["constraints"]]
    if options["simulation"] is not None:
        settings["simulation"] = options["simulation"].settings()
    if reduced is not None:
        names = problem.base.names
        settings["eliminated"] = [names[k] for k in reduced.eliminated]
        settings["essential_f_test"] = {
            "distribution": reduced.test.distribution,
            "statistic": reduced.test.statistic,
            "p_value": reduced.test.p_value,
        }
    return settings


def prior_name(estimate: Estimate) -> str:
    """Name of the prior that acted, as a study has it."""
    return "none" if estimate.prior in (None, "none") else "nominal"


def validate(
    result: Identification, log: Recording | Samples, *, lowpass_hz: float | None = None
) -> tuple[FitFigure, ...]:
    """Errors of an identified model on another log, fitted rows and all samples.

    Parameters
    ----------
    result : Identification
    log : Recording or Samples
        A recording is prepared with the cutoffs of the identification.
    lowpass_hz : float, optional
        As in the identification by default [Hz].

    Raises
    ------
    InputError
        When the log does not fit the robot or its filters.
    ComputationError
        When the model predicts something that is not finite.
    """
    samples = log if isinstance(log, Samples) else result.prepare(log)
    rows = Problem(result.robot, samples, result.idim.friction, result.idim.rotor)
    figures, _ = model_figures(rows, result.theta, lowpass_hz or result.lowpass_hz)
    if not np.isfinite(figures[1].overall_percent):
        raise ComputationError(f"{samples.name}: the torque is zero throughout, so no error is")
    return figures
