"""PC-IDIM-LS: physically consistent least squares over the standard parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.base import BaseParameters
from dynident.conic import Cone, ConeSolution, Positive, solve_cone_problem
from dynident.constraints import CONSTRAINTS, PRIORS, Prior, scales
from dynident.errors import ComputationError, InputError
from dynident.estimators.estimate import Estimate
from dynident.estimators.least_squares import (
    seed_std,
    weakest_combination,
    weighted_solution,
)
from dynident.factors import UNEXCITED
from dynident.inertia import Array, smallest_eigenvalue
from dynident.problem import Problem
from dynident.statistics import (
    Covariance,
    automatic_lag,
    long_run_ratio,
    residuals,
    score_covariance,
    whiteness_rejected,
)
from dynident.text import nearest

EQUIVALENT = 1e-2
"""Pull towards small parameters along directions that nothing else sees, in standard
deviations: among sets with equal torques, and of drives that never moved."""
VISIBLE = 1e-2
"""Multiplier, in chi-squared per unit of a scaled parameter, that counts as active."""


def pc_idim_ls(problem: Problem, prior: str | None = None) -> Estimate:
    """Weighted least squares with every link consistent and Ia, fv, fc positive.

    ``min ||A [I K] theta - b||^2 + kappa^2 ||P (theta - theta_0)||^2`` over the standard
    parameters, subject to the cones of `CONSTRAINTS` (ardiani2024, eq. 19 and 20). A, b
    come from the sigma-weighted factors; kappa^2 is the long-run variance ratio of the
    residuals, since correlated rows inform less than their number says.

    Parameters
    ----------
    problem : Problem
    prior : {"nominal", "none"}, optional
        By default the robot file's inertials where it has any.

    Raises
    ------
    InputError
        When the prior is not known, or the file has no inertials for it.
    ComputationError
        When no certified consistent answer was reached.
    """
    idim, base = problem.idim, problem.base
    belief = choose_prior(problem, prior)
    factors = problem.factors
    free, sigma, rounds = weighted_solution(factors)
    free_residuals = residuals(problem, free)
    correlated = whiteness_rejected(free_residuals.error)
    lag = automatic_lag(free_residuals.error) if correlated else 0
    kappa = np.sqrt(long_run_ratio(free_residuals.error)) if correlated else 1.0
    system = factors.weighted(sigma)
    data = system.A @ base.matrix
    unit = scales(idim, data, system.b)
    pull = kappa * belief.rows * unit
    equivalent = EQUIVALENT * open_directions(np.vstack([data * unit, pull]))
    target = np.concatenate([kappa * belief.target, np.zeros(len(equivalent))])
    pull = np.vstack([pull, equivalent])
    cones = [cone for build in CONSTRAINTS.values() for cone in build(idim)]
    solution = solve_cone_problem(
        np.vstack([data * unit, pull]), np.concatenate([system.b, target]), cones, VISIBLE
    )
    theta = solution.x * unit
    bodies = theta[: idim.inertial].reshape(-1, 10)
    positive = np.array([p.positive for p in idim.parameters])
    if smallest_eigenvalue(bodies).min() <= 0.0 or np.any(theta[positive] <= 0.0):
        raise ComputationError(
            "the solver's answer is not physically consistent; check units and scale of the torques"
        )
    beta = base.matrix @ theta
    found = residuals(problem, beta)
    score = base.matrix.T @ score_covariance(problem, beta, sigma, lag) @ base.matrix
    matrix = face_covariance(base, data, pull, kappa, score, unit, cones, solution)
    active = active_names(cones, solution)
    name = ("posterior, " if len(belief.rows) else "") + (
        f"hac rows (residuals are not white), Bartlett lag {lag}" if lag else "white rows"
    )
    if active:
        name += f", on the faces of {len(active)} active constraints (first order)"
    warnings = []
    condition, rank, _ = system.condition()
    if condition > UNEXCITED:
        weakest = weakest_combination(problem, system)
        warnings.append(
            f"the log does not excite {weakest} (condition {condition:.1e}, rank {rank} of "
            f"{base.count}); those values rest on the prior and the constraints"
        )
    return Estimate(
        beta,
        theta,
        sigma,
        Covariance(name, matrix, seed_std(system)),
        found,
        solution.iterations,
        True,
        f"solved; sigma settled in {rounds} rounds",
        certificate=solution.certificate,
        active=active,
        prior=belief.words,
        warnings=tuple(warnings),
    )


def choose_prior(problem: Problem, name: str | None) -> Prior:
    """The prior of a name, or the default.

    Raises
    ------
    InputError
    """
    if name is None:
        name = "nominal" if problem.robot.has_nominal else "none"
    if name not in PRIORS:
        raise InputError(f"prior {name!r} is not known{nearest(name, PRIORS)}")
    if name == "nominal" and not problem.robot.has_nominal:
        raise InputError(f"{problem.robot.name}: prior 'nominal', but its file has no inertials")
    return PRIORS[name](problem.idim)


def open_directions(rows: Array) -> Array:
    """Unit directions of scaled parameters that neither data nor prior can be said to see."""
    _, s, vt = np.linalg.svd(rows)
    return np.asarray(vt[int(np.sum(s > EQUIVALENT)) :])


def active_names(cones: Sequence[Cone], solution: ConeSolution) -> tuple[str, ...]:
    """Names of the constraints whose multipliers outweigh their slack."""
    names: list[str] = []
    for cone, face in zip(cones, solution.faces, strict=True):
        if isinstance(cone, Positive):
            names += [name for name, on in zip(cone.name, face, strict=True) if on]
        elif face.shape[1]:
            names.append(cone.name)
    return tuple(names)


def null_space(C: Array) -> Array:
    """Orthonormal basis of the null space of C, shape (columns, k)."""
    _, s, vt = np.linalg.svd(C)
    return np.asarray(vt[int(np.sum(s > 1e-12 * s[0])) :].T)


def face_covariance(
    base: BaseParameters,
    data: Array,
    pull: Array,
    kappa: float,
    score: Array,
    unit: Array,
    cones: Sequence[Cone],
    solution: ConeSolution,
) -> Array:
    """Covariance of the base parameters with the active constraints held.

    With C the linearised active constraints, N a basis of their null space and
    ``H = A^T A + kappa^2 P^T P``: ``N (N^T H N)^-1 N^T S N (N^T H N)^-1 N^T``, where S is
    the covariance of the data's scores plus that of the prior's, which is kappa^4 P^T P.
    To first order: faces move with the data, which this leaves out.
    """
    held = []
    for cone, face in zip(cones, solution.faces, strict=True):
        if isinstance(cone, Positive):
            held.append(cone.G[face])
        else:
            pairs = [(i, j) for i in range(face.shape[1]) for j in range(i + 1)]
            held += [(face[:, i] @ cone.basis @ face[:, j])[None] for i, j in pairs]
    C = np.vstack(held) if held else np.zeros((0, len(unit)))
    N = null_space(C) if len(C) else np.eye(len(unit))
    stacked = np.vstack([data * unit, pull]) @ N
    inverse = np.linalg.pinv(stacked, rcond=1e-12)
    middle = score * np.outer(unit, unit) + kappa**2 * pull.T @ pull
    image = base.matrix * unit @ N @ (inverse @ inverse.T)
    return np.asarray(image @ (N.T @ middle @ N) @ image.T)
