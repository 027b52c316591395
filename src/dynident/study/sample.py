"""Consistent draws of a result: from its covariance to sets of parameters that a robot can have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dynident.conic.cones import Cone
from dynident.consistency.bootstrap import Count
from dynident.consistency.constraints import ON_BASE, Constraint
from dynident.consistency.draws import (
    Normal,
    build_posterior,
    draw_within_cones,
    factor_covariance,
    project_into_cones,
)
from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.knowledge import HELD_OUT, Knowledge
from dynident.consistency.nearest import build_measured_system, nearest_to_base
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import Options, build_options
from dynident.dynamics.base import BaseParameters
from dynident.estimators.closed_loop import fill_missing_torque
from dynident.estimators.encoder_unknowns import Unknowns, build_admitted_set
from dynident.regression.problem import Problem
from dynident.results.draws import Calibration, Draws, certify_draws
from dynident.results.identification import Identification
from dynident.simulation.rollout import LoopColumn
from dynident.study.calibration import measure_position_calibration, measure_torque_calibration
from dynident.study.constraints import build_constraints
from dynident.study.loop import build_simulation
from dynident.study.stored import StoredResult
from dynident.study.study import read_study_samples

NO_PRIOR = Knowledge(prior="none")


@dataclass(frozen=True)
class Drawing(Options):
    """How many draws there are, and which."""

    n: Annotated[Annotated[int, Field(strict=True, ge=1, le=100_000)], "how many draws"] = 256
    seed: Annotated[Count, "of the random numbers"] = 0

    def generator(self) -> np.random.Generator:
        """The random numbers, from their beginning."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class Torques:
    """What a fit of torques leaves open.

    Attributes
    ----------
    base : BaseParameters
    beta, covariance : ndarray
        Of the base parameters.
    theta : ndarray or None
    knowledge : Knowledge
        What was known beside the log.
    """

    base: BaseParameters
    beta: Array
    covariance: Array
    theta: Array | None
    knowledge: Knowledge


@dataclass(frozen=True)
class Positions:
    """What a fit of positions leaves open: drives, loop, and links where these were fitted.

    Attributes
    ----------
    base : BaseParameters
    theta : ndarray
        The estimate.
    names : tuple of str
    values, covariance : ndarray
        Of the names, which end the list of standard parameters, then shapes and loop.
    cones : tuple of Cone
    """

    base: BaseParameters
    theta: Array
    names: tuple[str, ...]
    values: Array
    covariance: Array
    cones: tuple[Cone, ...]


def sample(fit: Identification, n: int = Drawing.n, seed: int = Drawing.seed) -> Draws:
    """Correlated draws from the covariance of a result, all of them physically consistent.

    Parameters
    ----------
    fit : Identification
    n : int
        How many.
    seed : int
        Of the random numbers.

    Raises
    ------
    InputError
        For counts and seeds that are none.
    ComputationError
        When no consistent set is near the result, or a draw is not certified.
    """
    wanted, found, base = Drawing(n, seed), fit.estimate, fit.base
    if found.fitted is not None:
        own = found.fitted
        draws = sample_position_fit(
            Positions(base, fit.theta, own.names, own.values, own.matrix, own.cones), wanted
        )
        return replace(draws, width=fit.width)
    knowledge = NO_PRIOR if found.knowledge is None else found.knowledge
    return sample_torque_fit(
        Torques(base, found.beta, found.covariance.matrix, found.theta, knowledge), wanted
    )


def sample_stored(stored: StoredResult, wanted: Drawing = Drawing()) -> Draws:
    """The same of a stored result.

    Raises
    ------
    InputError
        When it does not hold its covariance.
    ComputationError
    """
    document, base = stored.document, stored.base
    constraints = build_constraints(stored.study.constraint)
    if document.fitted:
        names = tuple(row.name for row in document.fitted)
        values = np.array([row.value for row in document.fitted])
        cones = build_fitted_cones(stored, names, constraints)
        draws = sample_position_fit(
            Positions(base, stored.theta(), names, values, stored.fitted_covariance(), cones),
            wanted,
        )
        return replace(draws, width=stored.width)
    beta = np.array([row.value for row in document.parameters])
    theta = None if document.standard is None else stored.theta()
    knowledge = restore_knowledge(stored, constraints)
    return sample_torque_fit(Torques(base, beta, stored.covariance(), theta, knowledge), wanted)


def restore_knowledge(stored: StoredResult, constraints: tuple[Constraint, ...]) -> Knowledge:
    """What a stored result knew beside its logs, the prior's weight as it was chosen."""
    if stored.document.standard is None:
        return NO_PRIOR
    options: dict[str, Any] = stored.study.identify.options()
    if options.get("prior_weight") == HELD_OUT:
        options["prior_weight"] = stored.document.prior_weight
    found: Knowledge = build_options(Knowledge, {**options, "constraints": constraints})
    return found


def build_fitted_cones(
    stored: StoredResult, names: tuple[str, ...], constraints: tuple[Constraint, ...]
) -> tuple[Cone, ...]:
    """What drives and loop of a stored result may be.

    Raises
    ------
    InputError
        When the names are not those of its model.
    """
    idim = stored.idim
    first = idim.names.index(names[0])
    own = []
    for name in names[len(idim.names) - first + len(idim.shape) :]:
        kind = name.rstrip("0123456789")
        own.append(LoopColumn(kind, int(name[len(kind) :] or 1) - 1))
    unknowns = Unknowns(idim, tuple(own), np.ones(len(names)), first, 0)
    if unknowns.names != names:
        raise InputError(f"{stored.path}: fitted: are not the unknowns of its model")
    return build_admitted_set(unknowns, constraints).cones


def sample_torque_fit(known: Torques, wanted: Drawing) -> Draws:
    """Draws of standard parameters about those of a fit of torques."""
    base, knowledge = known.base, known.knowledge
    if knowledge.consistency in ON_BASE:
        knowledge = NO_PRIOR
    knowledge = replace(knowledge, consistency="pseudo-inertia")
    std = np.sqrt(np.maximum(np.diag(known.covariance), 0.0))
    theta = known.theta
    if theta is None:
        theta = nearest_to_base(base, known.beta, std).theta
        assert theta is not None
    feasible = build_feasible_set(base, build_measured_system(known.beta, std), knowledge)
    normal = build_posterior(feasible, theta, known.beta, known.covariance)
    found = draw_within_cones(normal, feasible.cones, wanted.n, wanted.generator())
    return certify_draws(
        base, found.x * feasible.space.unit, (), np.zeros((wanted.n, 0)),
        seed=wanted.seed, share=found.share, way=found.way,
    )  # fmt: skip


def sample_position_fit(known: Positions, wanted: Drawing) -> Draws:
    """Draws of drives and loop, and of the links where these were fitted."""
    std = np.sqrt(np.maximum(np.diag(known.covariance), 0.0))
    size = np.maximum(np.maximum(std, 1e-3 * np.abs(known.values)), 1e-9)
    inside = project_into_cones(known.cones, known.values, 1.0 / size)
    factor = factor_covariance(known.covariance)
    normal = Normal(inside, factor, np.zeros(factor.shape[1]))
    found = draw_within_cones(normal, known.cones, wanted.n, wanted.generator())
    parameters = len(known.base.idim.parameters)
    linear = parameters - known.base.idim.names.index(known.names[0])
    theta = np.tile(known.theta, (wanted.n, 1))
    theta[:, parameters - linear :] = found.x[:, :linear]
    return certify_draws(
        known.base, theta, known.names[linear:], found.x[:, linear:],
        seed=wanted.seed, share=found.share, way=found.way,
    )  # fmt: skip


def measure_calibration(stored: StoredResult, draws: Draws, text: str) -> Calibration:
    """How much of a log lies inside the band of the draws of a stored result.

    Parameters
    ----------
    stored : StoredResult
    draws : Draws
    text : str
        The log's files, laid out as the result's first log; commas between those side by side.

    Raises
    ------
    InputError
        When the log does not fit the robot, or the result does not tell its errors.
    ComputationError
    """
    study = stored.study
    section = stored.locate_log(text.split(","))
    simulates = bool(stored.document.fitted)
    samples = read_study_samples(section, stored.idim.robot, study.prepare, torque=not simulates)
    if not simulates:
        sigma = stored.sigma()
        if sigma is None:
            raise InputError(f"{stored.path}: settings: has no sigma of its joints")
        return measure_torque_calibration(draws, Problem.of(stored.base, samples), sigma)
    if study.controller is None:
        raise InputError(f"{stored.path}: settings.study: has no 'controller'; was it edited?")
    simulation = build_simulation(
        study.controller, study.reference, study.simulation, stored.idim.robot, (samples,)
    ).of_encoders()
    problem = Problem.of(stored.base, fill_missing_torque(samples, simulation))
    return measure_position_calibration(draws, problem, simulation, stored.position_sigma())
