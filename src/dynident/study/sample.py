"""Consistent draws of a result: from its covariance to sets of parameters that a robot can have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.consistency.bootstrap import Count
from dynident.consistency.constraints import ON_BASE
from dynident.consistency.draws import (
    ROOM,
    NormalDraws,
    build_posterior,
    draw_within_cones,
    factor_covariance,
    project_into_cones,
)
from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.nearest import build_measured_system, nearest_to_base
from dynident.core.errors import check_type
from dynident.core.options import Options
from dynident.core.side_by_side import Engine, Runner, choose_engine
from dynident.estimators.closed_loop import fill_missing_torque
from dynident.regression.problem import Problem
from dynident.report.draws import Calibration, Draws, certify_draws
from dynident.report.fit import Fit
from dynident.study.calibration import measure_position_calibration, measure_torque_calibration
from dynident.study.fits import AS_FITTED, LogLayout, read_fit_log, rebuild_loop

NO_PRIOR = Knowledge(prior="none")


@dataclass(frozen=True)
class DrawOptions(Options):
    """How many draws there are, and which."""

    n: Annotated[Annotated[int, Field(strict=True, ge=1, le=100_000)], "how many draws"] = 256
    seed: Annotated[Count, "of the random numbers"] = 0


def sample(
    fit: Fit,
    n: int = DrawOptions.n,
    seed: int = DrawOptions.seed,
    anyway: bool = False,
    engine: Runner = None,
) -> Draws:
    """Correlated draws from the covariance of a result, all of them physically consistent.

    >>> draws = di.sample(fit, 8, seed=1)

    Parameters
    ----------
    fit : Fit
    n : int
        How many.
    seed : int
        Of the random numbers.
    anyway : bool
        Also of a refuted result.
    engine : Engine, distributed.Client or str, optional
        What runs chains of draws, 256 a task; this process by default.

    Raises
    ------
    InputError
        For counts and seeds that are none.
    ComputationError
        For a refuted result; if no consistent set is near the result, or a draw is not certified.
    """
    check_type("sample", fit, Fit, "dynident.identify and read_result give one")
    fit.require_trust("a draw", anyway)
    wanted, chosen = DrawOptions(n, seed), choose_engine(1, engine)
    draw = sample_torque_fit if fit.estimate.fitted is None else sample_position_fit
    return replace(draw(fit, wanted, chosen), width=fit.width, stand_in=fit.stand_in)


def sample_torque_fit(fit: Fit, wanted: DrawOptions, engine: Engine) -> Draws:
    """Draws of standard parameters about those of a fit of torques."""
    base, found = fit.base, fit.estimate
    covariance, knowledge = found.covariance.matrix, found.knowledge
    if knowledge is None or knowledge.consistency in ON_BASE:
        knowledge = NO_PRIOR
    knowledge = replace(knowledge, consistency="pseudo-inertia")
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    theta = found.theta
    if theta is None:
        theta = nearest_to_base(base, found.beta, std).theta
        assert theta is not None
    # units of the parameters' own sizes: by errors those that a bound holds would scale all others
    sized = build_measured_system(found.beta, np.zeros(len(std)))
    feasible = build_feasible_set(base, sized, knowledge)
    normal = build_posterior(feasible, theta, found.beta, covariance)
    rng = np.random.default_rng(wanted.seed)
    drawn = draw_within_cones(normal, feasible.cones, wanted.n, rng, engine)
    return certify_draws(
        base, drawn.x * feasible.space.unit, (), np.zeros((wanted.n, 0)),
        seed=wanted.seed, share=drawn.share, way=drawn.way,
    )  # fmt: skip


def sample_position_fit(fit: Fit, wanted: DrawOptions, engine: Engine) -> Draws:
    """Draws of drives and loop, and of the links where these were fitted.

    What was fitted ends the list of standard parameters; then come shapes and loop.
    """
    idim, known = fit.base.idim, fit.estimate.fitted
    assert known is not None
    std = np.sqrt(np.maximum(np.diag(known.matrix), 0.0))
    # what is at a bound has no error, and may move by the room that it is given
    size = np.maximum(np.maximum(std, 1e-3 * np.abs(known.values)), ROOM)
    inside = project_into_cones(known.cones, known.values, 1.0 / size)
    factor = factor_covariance(known.matrix)
    normal = NormalDraws(inside, factor, np.zeros(factor.shape[1]))
    rng = np.random.default_rng(wanted.seed)
    found = draw_within_cones(normal, known.cones, wanted.n, rng, engine)
    first = idim.names.index(known.names[0])
    linear = len(idim.parameters) - first
    theta = np.tile(fit.theta, (wanted.n, 1))
    theta[:, first:] = found.x[:, :linear]
    return certify_draws(
        fit.base, theta, known.names[linear:], found.x[:, linear:],
        seed=wanted.seed, share=found.share, way=found.way,
    )  # fmt: skip


def measure_calibration(
    fit: Fit, draws: Draws, text: str, layout: LogLayout = AS_FITTED
) -> Calibration:
    """How much of a log, files with commas between, lies inside the band of the draws of a fit."""
    if fit.estimate.fitted is None:
        samples = read_fit_log(fit, text.split(","), layout)
        return measure_torque_calibration(fit, draws, samples)
    samples = read_fit_log(fit, text.split(","), layout, torque=False)
    simulation = rebuild_loop(fit, samples)
    problem = Problem.of(fit.base, fill_missing_torque(samples, simulation, fit.robot.passive))
    whole = [e.rms for log in fit.simulated for e in log.free[-1:]]
    sigma = np.sqrt(np.mean(np.square(whole), axis=0))
    return measure_position_calibration(draws, problem, simulation, sigma)
