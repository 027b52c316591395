"""The set of parameters that is admitted, and the point of it that fits rows best.

Whatever the method, its factors give ``(A, b)`` in base parameters, and the constrained
estimate is ``min ||A M x - b||^2 + kappa^2 w d^2(x)`` subject to the cones, with M the
regrouping, d the distance from the prior's centre and kappa^2 the variance ratio of rows
that are correlated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.conic.cones import Cone, SemidefiniteCone, measure_cone_violation
from dynident.conic.solve import ConeSolution, approximate_minimiser, solve_cone_problem
from dynident.consistency.constraints import ON_BASE, Bounds, Fixed, list_consistency
from dynident.consistency.constraints.checks import abbreviate_value, name_constraint_in_errors
from dynident.consistency.gyration import Gyration, list_radii
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.prior import Prior
from dynident.consistency.space import ParameterSpace, build_base_space, build_standard_space
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.factors import System
from dynident.core.inertia import to_inertial_parameters, to_pseudo_inertia
from dynident.dynamics.base import BaseParameters

ROUND = 0.1
"""Scaled pseudo-inertia of the bodies that nothing is known of, times the unit matrix."""
EQUIVALENT = 1e-2
"""Pull towards them along directions that nothing else sees, in standard
deviations: among sets with equal torques, and of drives that never moved."""
NEWTON_STEPS = 60
"""Of priors whose metric is not quadratic."""
LEAST_STEP = 1e-6
CLOSER = 0.9
SLIGHT = 1e-9
"""Violation that is rounding."""
DECREMENT = 1e-11
"""Squared length of a step, over the criterion, that ends them."""


@dataclass(frozen=True)
class FeasibleSet:
    """Unknowns, cones and prior of one problem."""

    space: ParameterSpace
    cones: tuple[Cone, ...]
    prior: Prior
    kappa: float
    """Standard deviation of the prior in units of the weighted rows."""
    open: Array
    """Directions that neither rows nor prior can be said to see, with a slight pull, shape (k,
    unknowns)."""

    def solve(self, system: System, warm: FeasiblePoint | None = None) -> FeasiblePoint:
        """The admitted parameters that fit a system best; those of one nearby make it quicker."""
        point = self._quadratic(system, None, warm)
        if self.prior.fixed or self.prior.empty:
            return point
        data = system.A @ self.space.matrix
        x = self._inside(point.x)
        cost = self._criterion(data, system.b, x)
        for _ in range(NEWTON_STEPS):
            new = self._quadratic(system, x, point)
            # half the squared Newton decrement: how far the quadratic model is above its minimum
            # where no cone is active (Boyd and Vandenberghe 2004, section 9.5.1)
            decrement = float(np.sum((new.A @ (new.x - x)) ** 2))
            if decrement <= DECREMENT * max(1.0, cost):
                return new
            step = self._longest(x, new.x)
            while True:
                moved = x + step * (new.x - x)
                trial = self._criterion(data, system.b, moved)
                if trial <= cost or step <= LEAST_STEP:
                    break
                step *= 0.5
            x, point, cost = moved, new, trial
        raise ComputationError(
            f"the prior's metric {self.prior.metric!r} did not settle in {NEWTON_STEPS} steps; "
            "try 'pullback', which is its quadratic form"
        )

    def roughly(self, system: System) -> Array:
        """Base parameters that fit a system best, to compare systems by: without a certificate.

        Of a prior whose metric is not quadratic its model at the centre.
        """
        A, b, _ = self.rows(system)
        return np.asarray(self.space.matrix @ approximate_minimiser(A, b, self.cones))

    def _longest(self, x: Array, new: Array) -> float:
        """Share of a step that takes a believed body at most `CLOSER` to its boundary.

        From there Newton's method on a log-det only doubles the small eigenvalues.
        """
        shrinking = CLOSER
        for k in self.prior.belief.bodies:
            span = slice(10 * k, 10 * k + 10)
            now = to_pseudo_inertia(self.space.unit[span] * x[span])
            change = to_pseudo_inertia(self.space.unit[span] * (new - x)[span])
            # J + s dJ is singular where s = -1 / an eigenvalue of J^-1 dJ
            slopes = np.linalg.eigvals(np.linalg.solve(now, change)).real
            shrinking = max(shrinking, -float(np.min(slopes)))
        return CLOSER / shrinking

    def _inside(self, x: Array) -> Array:
        """Half way from x to the prior's centre, where that is admitted."""
        centre = x.copy()
        for k, inflated in zip(self.prior.belief.bodies, self.prior.belief.inflated, strict=True):
            span = slice(10 * k, 10 * k + 10)
            centre[span] = to_inertial_parameters(inflated) / self.space.unit[span]
        half = 0.5 * (x + centre)
        admitted = all(measure_cone_violation(cone, half) <= SLIGHT for cone in self.cones)
        return half if admitted else x

    def rows(self, system: System, x: Array | None = None) -> tuple[Array, Array, int]:
        """Rows of the whole criterion, their right-hand side, and how many are the data's.

        Of a prior whose metric is not quadratic its model at x, or else at the centre.
        """
        data = system.A @ self.space.matrix
        pull, target = self.pull(x)
        return np.vstack([data, pull]), np.concatenate([system.b, target]), len(data)

    def pull(self, x: Array | None = None) -> tuple[Array, Array]:
        """Rows and target of the prior, at x or at its centre, and of open directions."""
        if not self.space.standard:
            return self.open, np.zeros(len(self.open))
        towards = self.open @ build_round_bodies(self.space)
        theta = None if x is None else self.space.value(x)
        rows, target = self.prior.rows(len(self.space.unit), theta)
        pull = np.vstack([self.kappa * rows * self.space.unit, self.open])
        return pull, np.concatenate([self.kappa * target, towards])

    def _criterion(self, data: Array, b: Array, x: Array) -> float:
        """What a metric that is not quadratic has minimised."""
        pull = self.kappa**2 * self.prior.distance(self.space.value(x))
        away = self.open @ (x - build_round_bodies(self.space))
        return float(np.sum((data @ x - b) ** 2) + pull + np.sum(away**2))

    def _quadratic(
        self, system: System, at: Array | None, warm: FeasiblePoint | None
    ) -> FeasiblePoint:
        A, b, data = self.rows(system, at)
        solution = solve_cone_problem(A, b, self.cones, None if warm is None else warm.solution)
        x = solution.x
        theta = self.space.value(x) if self.space.standard else None
        return FeasiblePoint(x, np.asarray(self.space.matrix @ x), theta, solution, A, b, data)


@dataclass(frozen=True)
class FeasiblePoint:
    """An estimate under constraints.

    Attributes
    ----------
    x : ndarray, shape (unknowns,)
        Scaled.
    beta : ndarray, shape (base parameters,)
    theta : ndarray, shape (standard parameters,), or None
    solution : ConeSolution
    A, b : ndarray
        Rows of the criterion, those of prior and open directions after `data` ones.
    data : int
    """

    x: Array
    beta: Array
    theta: Array | None
    solution: ConeSolution
    A: Array
    b: Array
    data: int

    @property
    def penalty(self) -> float:
        """What prior and open directions add to the criterion."""
        return float(np.sum((self.A[self.data :] @ self.x - self.b[self.data :]) ** 2))


def build_feasible_set(
    base: BaseParameters,
    system: System,
    knowledge: Knowledge,
    kappa: float = 1.0,
    gyrations: tuple[Gyration, ...] | None = None,
) -> FeasibleSet:
    """The admissible set of a problem.

    Weighted rows scale the unknowns and tell which directions are open; the least radii of gyration
    are those that are known of the robot by default.
    """
    prior = knowledge.of(base.idim.robot)
    make = build_base_space if knowledge.consistency in ON_BASE else build_standard_space
    space = make(base, system.A, system.b)
    if gyrations is None:
        gyrations = knowledge.gyrations(base.idim.robot)
    parts = (
        *list_consistency(knowledge.consistency, list_radii(gyrations)),
        *bound_shapes(space),
    )
    cones = [cone for part in parts for cone in part.cones(space)]
    for k, constraint in enumerate(knowledge.constraints, 1):
        with name_constraint_in_errors(k):
            if isinstance(constraint, type) or not hasattr(constraint, "cones"):
                raise InputError(f"{abbreviate_value(constraint)} is not a constraint")
            cones += constraint.cones(space)
    rows = system.A @ space.matrix
    if space.standard:
        rows = np.vstack([rows, kappa * prior.rows(len(space.unit))[0] * space.unit])
    return FeasibleSet(space, tuple(cones), prior, kappa, EQUIVALENT * find_open_directions(rows))


def bound_shapes(space: ParameterSpace) -> tuple[Bounds | Fixed, ...]:
    """Bounds of the shapes that are parameters; those that are held are where they are.

    Among base parameters alone these are none.
    """
    base, idim = space.base, space.idim
    if not idim.free:
        return ()
    return tuple(
        Bounds(shape.name, shape.bounds.lower, shape.bounds.upper)
        if shape.name in base.names
        else Fixed(shape.name, value)
        for shape, value in zip(idim.shape_parameters, idim.shape, strict=True)
        if space.standard or shape.name in base.names
    )


NOTHING = 1e-9
"""Of a combination's largest factor: rounding."""
PARTS = (slice(0, 1), slice(1, 4), slice(4, 10))
"""Mass, first moment and inertia among a body's ten parameters."""


def measure_information_share(admitted: FeasibleSet, point: FeasiblePoint) -> Array | None:
    """Which share of what is known of each body the log tells, and not the prior.

    One less the posterior variance over that of the prior, constraints aside: 0 where the log
    says nothing, 1 where the prior does not matter. Of mass, first moment and inertia, shape
    (bodies, 3); NaN for bodies of which nothing was believed, or not all. None without a prior.
    """
    spreads = list_prior_spreads(admitted)
    if spreads is None:
        return None
    shares = np.full((admitted.space.idim.bodies, len(PARTS)), np.nan)
    inverse = invert_criterion(point)
    for k, before in spreads.items():
        after = inverse[10 * k : 10 * k + 10]
        for c, part in enumerate(PARTS):
            known, believed = np.sum(after[part] ** 2), np.sum(before[part] ** 2)
            shares[k, c] = np.clip(1.0 - known / believed, 0.0, 1.0)
    return shares


def list_prior_spreads(admitted: FeasibleSet) -> dict[int, Array] | None:
    """By body, a root of the covariance that the prior has of it, scaled; None without a prior.

    Without bodies of which a metric does not see all.
    """
    prior, space = admitted.prior, admitted.space
    if not space.standard or prior.empty:
        return None
    rows, _ = prior.rows(len(space.unit))
    scaled, found = admitted.kappa * rows * space.unit, {}
    for i, k in enumerate(prior.belief.bodies):
        block = scaled[10 * i : 10 * i + 10, 10 * k : 10 * k + 10]
        if np.linalg.matrix_rank(block) == len(block):
            found[k] = np.asarray(np.linalg.inv(block), dtype=float)
    return found


def invert_criterion(point: FeasiblePoint) -> Array:
    """A root of the covariance that rows and prior leave of the unknowns, constraints aside."""
    R = np.linalg.qr(point.A, mode="r")
    return np.asarray(np.linalg.solve(R, np.eye(len(R))))


def measure_base_share(admitted: FeasibleSet, point: FeasiblePoint) -> Array | None:
    """The same share of each base parameter, shape (base parameters,).

    1 of what the prior does not tell, as friction is in it; None without a prior.
    """
    spreads, matrix = list_prior_spreads(admitted), admitted.space.matrix
    if spreads is None:
        return None
    told = np.abs(matrix)
    told = told > NOTHING * np.max(told, axis=1, keepdims=True)
    believed = np.zeros(len(matrix))
    for k, before in spreads.items():
        own = slice(10 * k, 10 * k + 10)
        believed += np.sum((matrix[:, own] @ before) ** 2, axis=1)
        told[:, own] = False
    believed[np.any(told, axis=1)] = np.inf
    known = np.sum((matrix @ invert_criterion(point)) ** 2, axis=1)
    shares: Array = np.clip(1.0 - known / believed, 0.0, 1.0)
    return shares


def build_round_bodies(space: ParameterSpace) -> Array:
    """Small round bodies and weak drives: what is pulled to where nothing else decides.

    Well inside of the cones, so that no body lies on its boundary for want of knowledge.
    """
    x = np.zeros(len(space.unit))
    for k in range(space.idim.bodies):
        x[10 * k : 10 * k + 10] = ROUND * to_inertial_parameters(np.eye(4))
    for rest in space.idim.structure.rests:  # a part is the body's own, too
        of_part = rest.placed @ space.body(rest.part) @ x
        own = slice(10 * rest.body, 10 * rest.body + 10)
        x[own] += of_part / space.unit[own]
    positive = [k for k, p in enumerate(space.idim.parameters) if p.positive]
    x[positive] = 0.1 * ROUND
    return x


def find_open_directions(rows: Array) -> Array:
    """Unit directions of scaled unknowns that rows cannot be said to see."""
    R = np.linalg.qr(rows, mode="r")
    _, s, vt = np.linalg.svd(R)
    return np.asarray(vt[int(np.sum(s > EQUIVALENT)) :])


def require_consistent(base: BaseParameters, theta: Array, consistency: str) -> None:
    """Check a consistent answer without the solver's words."""
    if consistency == "pseudo-inertia" and not base.idim.is_consistent(theta):
        raise ComputationError(
            "the solver's answer is not physically consistent; check units and scale of the torques"
        )


def list_active_constraints(cones: Sequence[Cone], faces: Sequence[np.ndarray]) -> tuple[str, ...]:
    """Names of the constraints on whose faces an answer lies."""
    return tuple(
        name
        for cone, face in zip(cones, faces, strict=True)
        for name, on in (
            [(cone.name, face.shape[1])]
            if isinstance(cone, SemidefiniteCone)
            else zip(cone.name, face, strict=True)
        )
        if on
    )
