"""Other routes from a log to standard parameters, to compare constrained estimates with.

Rows determine base parameters only, and each route fills in the rest by a rule of its own
(FloBaRoID, the notes' "Standard and Base Parameters" and what follows). Routes are plain linear
algebra on the weighted factor ``W = A M``: A of the base regressor, M the regrouping, so
that W is the factor of the weighted standard regressor. None but the corrections of Sousa
and Cortesao asks whether the links can exist; `measure_inconsistent_share` counts those that
cannot.

A log that does not excite all base parameters, and an answer that is not certified, are a
ComputationError; a robot file without the inertials that CAD values are, an InputError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynident.consistency.feasible_set import FeasibleSet, build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.nearest import consistent_witness
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.factors import System
from dynident.core.inertia import find_smallest_eigenvalue
from dynident.core.words import format_entry, format_table
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.idim import Idim
from dynident.estimators.essential import select_essential_parameters
from dynident.estimators.estimate import Estimate
from dynident.estimators.iteration import fit_nominal_drives
from dynident.methods import ESTIMATORS
from dynident.regression.problem import Problem
from dynident.regression.weighted import compute_literature_std, require_excitation, solve_wls

REPEATED = 1e-9
"""Singular value of a regrouping over its largest below which rows repeat each other."""


@dataclass(frozen=True)
class Weighed:
    """A problem as weighted least squares leaves it to the routes."""

    base: BaseParameters
    sigma: Array
    """Of each joint's rows [Nm or N], shape (n,)."""
    system: System
    """``||A beta - b||^2`` of the rows, each joint divided by its sigma."""

    @cached_property
    def beta(self) -> Array:
        """The weighted least-squares estimate, shape (base parameters,)."""
        return self.system.solve()

    @cached_property
    def regressor(self) -> Array:
        """``W = A M``, shape (base parameters, standard parameters)."""
        return np.asarray(self.system.A @ self.base.matrix)

    @cached_property
    def consistent_sets(self) -> FeasibleSet:
        """Consistent standard sets, nothing else being known."""
        return build_feasible_set(self.base, self.system, Knowledge(prior="none", gyration=0.0))


def weigh_rows(problem: Problem) -> Weighed:
    """Weights, factor and estimate that all routes share.

    ComputationError when the log does not excite all base parameters or sigma does not settle.
    """
    sigma = solve_wls(problem.factors)[1]
    system = problem.factors.weighted(sigma)
    require_excitation(problem, system)
    return Weighed(problem.base, sigma, system)


def fit_cad_values(problem: Problem) -> Array:
    """A priori standard parameters: the file's inertials, drives fitted to the log.

    Robot files know neither rotors nor friction; those take the values, none negative, that
    fit best beside the file's inertials.

    InputError when the file has no inertials.
    """
    if not problem.robot.has_nominal:
        raise InputError(
            f"{problem.robot.name}: its file has no inertials to identify a difference from; "
            "take minimum-norm or sousa-correction"
        )
    return fit_nominal_drives(problem)


def minimum_norm(problem: Problem) -> Array:
    """Base parameters projected back through an orthonormal basis of what is identifiable.

    With orthonormal columns B that span the rows of M, the estimate in that basis is
    ``x_B = (M B)^-1 beta`` and ``theta = B x_B``: of all sets with the torques of least
    squares the one of smallest Euclidean norm (Traversaro et al. 2015; FloBaRoID,
    ``x_std = B^T x_base`` with B by rows). That norm adds kilograms to kg m^2: with other
    units it is another set.
    """
    given = weigh_rows(problem)
    B = compute_identifiable_basis(given.base)
    return np.asarray(B @ np.linalg.solve(given.base.matrix @ B, given.beta))


def compute_identifiable_basis(base: BaseParameters) -> Array:
    """Orthonormal columns that span the identifiable subspace, shape (standard, base)."""
    return np.asarray(np.linalg.qr(base.matrix.T)[0])


def truncated_svd(problem: Problem, unit: Array | None = None) -> Array:
    """Standard parameters directly from the standard regressor (Gautier 2013).

    Singular values of W beyond the structural rank are removed and the rest inverted:
    ``theta = V1 S1^-1 U1^T b`` (FloBaRoID, "Direct identification of standard
    parameters").

    Without `unit` this is `minimum_norm`: a pseudo-inverse gives the least-squares answer of
    smallest norm, V1 spans the rows of M, and the removed values are zero but for rounding.
    The two differ when columns are scaled, which changes the norm that is smallest, and
    would when more is removed than structure asks for, which changes the torques.

    Parameters
    ----------
    unit : ndarray, shape (standard parameters,), optional
        Units in which parameters are counted: columns of W are multiplied by them [SI].

    Raises
    ------
    InputError
        When `unit` has another shape or is not positive.
    """
    given = weigh_rows(problem)
    return invert_scaled_regressor(given, unit) @ given.system.b


def cad_difference(problem: Problem, unit: Array | None = None) -> Array:
    """The difference from CAD values that explains what they leave of the torque.

    ``theta = theta_cad + V1 S1^-1 U1^T (y - y_cad)`` (Gautier 2013; FloBaRoID,
    "Identification of difference between a priori parameters and optimal ones"): among the
    sets with the torques of least squares the one nearest to CAD. Nothing keeps it
    consistent where least squares is far from CAD.

    Parameters
    ----------
    unit : ndarray, shape (standard parameters,), optional
        As of `truncated_svd`: what "nearest" is measured in.

    Raises
    ------
    InputError
        When `unit` does not fit.
    """
    given, cad = weigh_rows(problem), fit_cad_values(problem)
    left = given.system.b - given.regressor @ cad
    return cad + invert_scaled_regressor(given, unit) @ left


def cad_difference_essential(problem: Problem) -> Array:
    """The difference from CAD values in essential parameters only (Gautier 2013).

    Base parameters are eliminated by their relative standard deviations (the ratio rule of
    `dynident.estimators.essential`). The difference ``y - y_cad`` is fitted with the others
    alone, and spread over the standard parameters that act in them by the smallest change that
    leaves the eliminated ones at CAD; a standard parameter that acts in no essential one stays
    at CAD itself. Torques are therefore not those of least squares.

    FloBaRoID keeps the largest singular values of the essential columns instead, as many as
    there are essential base parameters: then directions stay and go by their size in the
    regressor and not by the parameters that were eliminated.
    """
    given, cad = weigh_rows(problem), fit_cad_values(problem)
    kept = list(select_essential_parameters(problem.factors, given.sigma).kept)
    left = given.system.b - given.regressor @ cad
    change = np.zeros(given.base.count)
    change[kept] = System(given.system.A[:, kept], left, 0.0).solve()
    acting = np.flatnonzero(np.any(given.base.matrix[kept] != 0.0, axis=0))
    columns = given.base.matrix[:, acting]
    theta = cad.copy()
    theta[acting] += np.linalg.lstsq(columns, change, rcond=REPEATED)[0]
    return theta


def sousa_correction(problem: Problem) -> Array:
    """The least-squares estimate moved to the nearest feasible base parameters.

    Feasible are base parameters of which some consistent standard set exists (Sousa and
    Cortesao 2014; FloBaRoID, "Optimization with constraints"). The distance is
    weighted by the estimate's covariance, ``||A (beta' - beta)||^2``. That is the criterion
    of the rows up to a constant, so that this is constrained estimation without a prior;
    the authors' own distance is that of `sousa_correction_euclidean`.
    """
    given = weigh_rows(problem)
    return find_nearest_feasible(given, given.system)


def sousa_correction_euclidean(problem: Problem) -> Array:
    """The correction with the distance of its authors, ``||beta' - beta||``.

    It adds the squares of kg m^2, kg m and Nm, and moves a parameter that the log knows well
    as readily as one that it hardly knows (Sousa and Cortesao 2014, whose program has it).
    """
    given = weigh_rows(problem)
    # in units of a middling standard deviation, which the solver's tolerances refer to
    size = float(np.median(compute_literature_std(given.system)))
    return find_nearest_feasible(
        given, System(np.eye(given.base.count) / size, given.beta / size, 0.0)
    )


def find_nearest_feasible(given: Weighed, distance: System) -> Array:
    """A consistent set whose base parameters are nearest to those of least squares.

    Where these are feasible they are not moved: the slight pull between sets with equal torques
    (`dynident.consistency.feasible_set.EQUIVALENT`) would otherwise be felt on the boundary.
    """
    exact = find_exactly_consistent(given, given.beta)
    if exact is not None:
        return exact
    theta = given.consistent_sets.solve(distance).theta
    assert theta is not None  # the unknowns are standard parameters
    return theta


def find_exactly_consistent(given: Weighed, beta: Array) -> Array | None:
    """A consistent standard set with exactly these base parameters, or None.

    The feasibility test of Sousa and Cortesao (2014), the equality form of problem 47.

    ComputationError when it could not be decided.
    """
    return consistent_witness(
        given.base, beta, compute_literature_std(given.system), width=0.0
    ).theta


def invert_scaled_regressor(given: Weighed, unit: Array | None) -> Array:
    """``V1 S1^-1 U1^T`` of W at structural rank, columns in units; (standard, base).

    InputError when `unit` has another shape or is not positive.
    """
    W, rank = given.regressor, given.base.count
    scale = np.ones(W.shape[1]) if unit is None else np.asarray(unit, dtype=float)
    if scale.shape != (W.shape[1],) or not np.all(scale > 0.0):
        raise InputError(f"unit: give {W.shape[1]} positive numbers, one a standard parameter")
    U, s, Vt = np.linalg.svd(W * scale, full_matrices=False)
    return np.asarray(scale[:, None] * (Vt[:rank].T / s[:rank]) @ U[:, :rank].T)


def measure_inconsistent_share(theta: Array, idim: Idim) -> float:
    """Share of the links whose pseudo-inertia is not positive definite, 0 to 1.

    `theta`, shape (standard parameters,).
    """
    return float(np.mean(find_smallest_eigenvalue(idim.split(theta)[0]) <= 0.0))


def measure_positive_share(theta: Array, idim: Idim) -> float:
    """Share of rotor inertias and friction parameters that are positive as they must be.

    1 where the model has none.
    """
    signed = np.array([p.positive for p in idim.parameters])
    return float(np.mean(theta[signed] > 0.0)) if np.any(signed) else 1.0


ROUTES: dict[str, Callable[[Problem], Array]] = {
    "minimum-norm": minimum_norm,
    "truncated-svd": truncated_svd,
    "cad-difference": cad_difference,
    "cad-difference-essential": cad_difference_essential,
    "sousa-correction": sousa_correction,
    "sousa-correction-euclidean": sousa_correction_euclidean,
}
"""Routes by name: from a problem to standard parameters, shape (standard parameters,), SI units."""


@dataclass(frozen=True)
class Routed:
    """What a route came to."""

    theta: Array | None
    """None where it found no answer, shape (standard parameters,)."""
    failure: str = ""
    """Why there is none."""
    fitted_percent: float = np.nan
    """Relative error of the torques on the fitted rows."""
    inconsistent: int = 0
    lost: int = 0
    """`inconsistent`, `lost`: links, and rotor inertias and friction parameters, that cannot
    exist."""
    eigenvalue: float = np.nan
    """Smallest of the links' pseudo-inertias, kg and kg m^2 mixed."""
    distance: float = np.nan
    """Rms over the base parameters of their difference from weighted least squares, in its standard
    deviations."""


def measure_route(problem: Problem, theta: Array, best: Estimate) -> Routed:
    """Error, consistency and distance of a standard set.

    The estimate `best` is that of weighted least squares.
    """
    idim, factors = problem.idim, problem.factors
    beta = problem.base.matrix @ theta
    error = np.sum(factors.squared_residuals(beta)) / np.sum(factors.squared_torques)
    deviation = (beta - best.beta) / best.covariance.std
    positive = sum(p.positive for p in idim.parameters)
    return Routed(
        theta,
        fitted_percent=float(100.0 * np.sqrt(error)),
        inconsistent=round(idim.bodies * measure_inconsistent_share(theta, idim)),
        lost=round(positive * (1.0 - measure_positive_share(theta, idim))),
        eigenvalue=float(find_smallest_eigenvalue(idim.split(theta)[0]).min()),
        distance=float(np.sqrt(np.mean(deviation**2))),
    )


def follow_routes(problem: Problem) -> dict[str, Routed]:
    """What all routes come to, by name.

    Raises
    ------
    ComputationError
        When the log does not excite all base parameters.
    """
    best = ESTIMATORS["wls"](problem)
    found = {}
    for name, route in ROUTES.items():
        try:
            found[name] = measure_route(problem, route(problem), best)
        except (ComputationError, InputError) as error:
            found[name] = Routed(None, str(error))
    return found


def format_routes(idim: Idim, found: dict[str, Routed]) -> str:
    """A table of the routes as plain text, and below it why some have no answer."""
    links, solved = idim.bodies, {n: r for n, r in found.items() if not r.failure}
    drives = sum(p.positive for p in idim.parameters)
    columns = [
        ("fitted %", [f"{r.fitted_percent:.2f}" for r in solved.values()]),
        ("links impossible", [f"{r.inconsistent} of {links}" for r in solved.values()]),
        ("drives", [f"{r.lost} of {drives}" for r in solved.values()]),
        ("from WLS [std]", [f"{r.distance:.2f}" for r in solved.values()]),
    ]
    lines = format_table("route", list(solved), columns)
    for name, each in found.items():
        lines += format_entry(name, f"none: {each.failure}") if each.failure else []
    return "\n".join(lines)


def render_routes(idim: Idim, found: dict[str, Routed]) -> str:
    """Standard parameters by each route as CSV: a row a parameter, a column a route, SI units."""
    solved = {name: each.theta for name, each in found.items() if each.theta is not None}
    rows = [",".join(["parameter", *solved])]
    for k, name in enumerate(idim.names):
        rows.append(",".join([name, *(f"{theta[k]:.12g}" for theta in solved.values())]))
    return "\n".join([*rows, ""])
