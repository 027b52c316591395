"""Search within ranges of parameters: what nls, gradient, ga and pf share.

The criterion is least squares (zhang2018, eq. 16) on weighted rows, or the means and spreads of
the joints' errors (eq. 25). Populations are sets of base parameters, of which the rows' factors
are a matrix: the criterion of all sets is one product with it. They begin all over the ranges.
Ranges, consistency, constraints and the prior hold for the answer, by repair: it is the admitted
point next to the set that won, in the metric of the rows. As a projection on a convex set it is
no farther from the admitted optimum of least squares than the set was from the free one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.conic.cones import Cone, NonnegativeCone
from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.constraints import Bounds
from dynident.consistency.feasible_set import FeasiblePoint
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.prior import GYRATION
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError, refuse_unknown
from dynident.core.factors import UNEXCITED, System, measure_columns, triangularise_rows
from dynident.core.options import Of, Options
from dynident.core.schema import Name, Number, make_choice_validator
from dynident.estimators.constrained import (
    ConstrainedFit,
    ConstrainedSetting,
    build_constrained_setting,
    finish_constrained_estimate,
)
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import Estimate
from dynident.regression.problem import Problem
from dynident.regression.weighted import compute_literature_std, estimate_group_sigma
from dynident.search.search import Evaluate, Searchable

LEAST_SQUARES, MEAN_AND_SPREAD = "least-squares", "mean-and-spread"
OBJECTIVES = (LEAST_SQUARES, MEAN_AND_SPREAD)
"""Eq. (16) and (25) of zhang2018."""
WIDE = 3.0
"""Ranges of bodies that are not told otherwise, in their mass and size of the robot file."""
POSITIVE = ("m", "Ixx", "Iyy", "Izz")
"""Of a body that is consistent, whatever it is."""
IDLE = 1e-6
"""Norm of a drive's column, over the largest of its kind, that says nothing of its scale."""
PORTION = 4096
"""Sets whose criterion is one product of matrices."""
FAR = 0.1
"""Distance from the exact optimum, in standard deviations, that is a warning."""
ROUNDS = 100
SETTLED = 1e-6
"""Decrease of a criterion, in units of chi-squared, below which it has settled."""
NO_MEAN = 1e-2
"""Mean of a joint's errors that counts as none, in its standard deviations."""

Ranges = Mapping[Name, tuple[Number, Number]]
ObjectiveName = Annotated[Name, make_choice_validator(OBJECTIVES)]
SpreadWeight = Annotated[Number, Field(gt=0.0, le=1e6)]


@dataclass(frozen=True)
class SearchRegion(Options):
    """Where parameters are searched, and what for: options of nls, gradient, ga and pf."""

    ranges: Annotated[
        Ranges | None,
        "`[low, high]` of parameters by name; other ranges follow from the robot file's "
        "inertials and from the torque",
    ] = None
    objective: Annotated[
        ObjectiveName,
        "criterion of a search: weighted least squares, or the sum of the joints' mean errors "
        "and their standard deviations",
    ] = LEAST_SQUARES
    spread_weight: Annotated[
        SpreadWeight,
        "weight of the standard deviations in the objective `mean-and-spread`",
        Of("objective", MEAN_AND_SPREAD),
    ] = 1.0
    begin: Annotated[
        Mapping[Name, Number] | None,
        "values of base parameters at which a search begins, by name; others begin in the middle "
        "of their ranges",
    ] = None


# ---- the criterion


@dataclass(frozen=True, eq=False)
class ErrorSpreads:
    """Eq. (25), ``sum_i |mean e_i| + k_e sum_i std e_i``, of the errors of each group."""

    means: Array
    """``-mean e_i = means_i [beta, -1]``, shape (groups, parameters + 1)."""
    centred: tuple[Array, ...]
    """``std e_i = ||centred_i [beta, -1]||``, shapes (any, parameters + 1)."""
    k_e: float

    def parts(self, sets: Array) -> tuple[Array, Array]:
        """Means and standard deviations under each of many sets, shapes (sets, groups)."""
        extended = np.column_stack([sets, -np.ones(len(sets))])
        spread = [np.linalg.norm(extended @ C.T, axis=1) for C in self.centred]
        return extended @ self.means.T, np.column_stack(spread)


def measure_squares(A: Array, b: Array, sets: Array) -> Array:
    """``||A x - b||^2`` of many sets of parameters, shape (sets,)."""
    error = sets @ A.T - b
    return np.asarray(np.einsum("ij,ij->i", error, error))


def measure_spreads(spreads: ErrorSpreads, unit: float, sets: Array) -> Array:
    """The objective (25) of many sets of parameters in some unit, shape (sets,)."""
    mean, spread = spreads.parts(sets)
    sums = np.sum(np.abs(mean), axis=1) + spreads.k_e * np.sum(spread, axis=1)
    return np.asarray(sums / unit)


def centre_row_factors(problem: Problem, k_e: float) -> ErrorSpreads:
    """Means and centred factors of the rows: two passes over them."""
    p = problem.base.count
    counts = np.maximum(problem.factors.counts, 1.0)
    sums = np.zeros((len(counts), p + 1))
    for rows in problem.rows():
        for j, (columns, X, y) in enumerate(zip(problem.columns, rows.X, rows.y, strict=True)):
            sums[j, columns] += np.sum(X, axis=0)
            sums[j, p] += np.sum(y)
    means = sums / counts[:, None]
    places = [[*columns, p] for columns in problem.columns]
    factors = problem.compress(
        tuple(block - means[j, places[j]] for j, block in enumerate(rows.blocks))
        for rows in problem.rows()
    )
    pairs = zip(factors.groups, counts, strict=True)
    return ErrorSpreads(means, tuple(group.factor / np.sqrt(count) for group, count in pairs), k_e)


@dataclass(frozen=True, eq=False)
class RangeProblem:
    """Ranges, a criterion on them, and the exact optimum of it."""

    given: ConstrainedSetting
    """Its admitted set has the ranges among its cones."""
    low: Array
    high: Array
    """`low`, `high`: shape (base parameters,)."""
    begin: Array
    """Shape (base parameters,)."""
    spreads: ErrorSpreads | None
    """Of the objective (25)."""

    @property
    def searchable(self) -> Searchable:
        """What searches see of it: the repair keeps the ranges, a free search has no corners.

        What is admitted beside the ranges counts in the repair alone.
        """
        system, own = self.given.system, self.spreads
        identity = (self.low, self.high, self.begin, system.A, system.b)
        if own is not None:
            identity += (own.means, *own.centred, np.array(own.k_e))
        return Searchable(
            self.given.problem, identity, self.low, self.high, self.begin, self.triangle, self.cost,
            PORTION,
        )  # fmt: skip

    @cached_property
    def unit(self) -> float:
        """Of the criterion (25), so that it counts as chi-squared.

        A standard deviation away from the optimum it is one larger.
        """
        if self.spreads is None:
            return 1.0
        rows = self.given.problem.factors.rows
        return self.spreads.k_e * float(np.sum(self.given.sigma)) / (2.0 * rows)

    @cached_property
    def metric(self) -> Array:
        """A: ``||A d||^2`` is what a step d from the free optimum adds to the criterion."""
        if self.spreads is None:
            return self.given.system.A
        return self.given.problem.factors.weighted(self.weights).A

    @cached_property
    def triangle(self) -> Array:
        """R: in the coordinates ``R beta`` the criterion is a sphere, or nearly one.

        With a trace of the columns' own lengths, where the rows leave a combination open.
        """
        A = self.metric
        return triangularise_rows(np.vstack([A, np.diag(measure_columns(A) / UNEXCITED)]))

    @property
    def cost(self) -> Evaluate:
        """The criterion of many sets of base parameters as chi-squared."""
        if self.spreads is not None:
            return partial(measure_spreads, self.spreads, self.unit)
        return partial(measure_squares, self.given.system.A, self.given.system.b)

    @cached_property
    def weights(self) -> Array:
        """What each group's rows are divided by, shape (groups,).

        Where the means are zero, the gradient of (25) is that of least squares with rows over
        the root of their standard deviation.
        """
        sigma = self.given.sigma
        if self.spreads is None:
            return sigma
        counts = self.given.problem.factors.counts
        return np.asarray(np.sqrt(2.0 * self.unit / self.spreads.k_e * sigma * counts))

    @cached_property
    def optimum(self) -> tuple[FeasiblePoint, int]:
        """The admitted point where the criterion is least, and the steps to it.

        Means and spreads by cone problems that lie above (25) and touch it: ``|m|`` below
        ``(m^2 / |m0| + |m0|) / 2`` (the mean next to zero smoothed), each with the last for m0.
        """
        given, parts = self.given, self.spreads
        inner = given.inner()
        if parts is None:
            inner(given.system)
            return inner.point, max(1, inner.point.solution.iterations)
        beta, before = self.begin, np.inf
        least = NO_MEAN / np.sqrt(np.maximum(given.problem.factors.counts, 1.0))
        for step in range(1, ROUNDS + 1):
            mean, spread = (part[0] for part in parts.parts(beta[None]))
            spread = np.maximum(spread, np.finfo(float).tiny)
            size = np.hypot(mean, least * spread)
            cost = float(np.sum(size) + parts.k_e * np.sum(spread)) / self.unit
            if before - cost < SETTLED * max(1.0, cost):
                return inner.point, step
            before = cost
            rows = [parts.means / np.sqrt(2.0 * size * self.unit)[:, None]]
            for C, s in zip(parts.centred, spread, strict=True):
                rows.append(C * np.sqrt(parts.k_e / (2.0 * s * self.unit)))
            R = triangularise_rows(np.vstack(rows))
            beta = inner(System(R[:, :-1], R[:, -1], 0.0))
        raise ComputationError(
            f"the objective {MEAN_AND_SPREAD!r} did not settle in {ROUNDS} rounds; try "
            f"{LEAST_SQUARES!r}"
        )

    def estimate(
        self, point: FeasiblePoint, iterations: int, message: str, gap: Array | None = None
    ) -> Estimate:
        """The estimate at an admitted point, with the error bars of its criterion.

        `gap`: see `ConstrainedFit`.
        """
        given = self.given
        system, sigma = given.system, given.sigma
        if self.spreads is not None:
            system = given.problem.factors.weighted(self.weights)
            sigma = estimate_group_sigma(given.problem.factors, point.beta, self.weights)
        std = compute_literature_std(given.problem.factors.weighted(sigma))
        fitted = ConstrainedFit(
            given.problem, system, sigma, std, message, iterations, weights=self.weights, gap=gap
        )
        return finish_constrained_estimate(given, point, fitted)

    def repaired(self, beta: Array, iterations: int, message: str) -> Estimate:
        """The estimate nearest the end of a search, and its distance from the optimum.

        Error bars have that distance in them. Its history is where the search began, and where it
        ended before the repair.
        """
        A, inner = self.metric, self.given.inner()
        inner(System(A, A @ beta, 0.0))
        try:
            away = self.distance(inner.point.beta)
            gap = inner.point.x - self.optimum[0].x
            words = f"{away:.2g} sigma from the exact optimum of its criterion"
            note = f"the search ended {words}; nls finds that"
        except ComputationError as error:
            away, gap, words = np.inf, None, "its exact optimum is not known"
            note = f"how far the search ended from the exact optimum is not known: {error}"
        estimate = self.estimate(inner.point, iterations, f"{message}, {words}", gap)
        estimate = replace(estimate, history=np.stack([self.begin, beta]))
        if away <= FAR:
            return estimate
        return replace(estimate, warnings=(*estimate.warnings, note))

    def distance(self, beta: Array) -> float:
        """Largest difference of a base parameter from its optimum, in standard deviations.

        Directions that the log leaves open are kept within their ranges.
        """
        A = self.given.system.A
        R = triangularise_rows(np.vstack([A, np.diag(1.0 / (self.high - self.low))]))
        std = np.linalg.norm(np.linalg.pinv(R, rcond=1.0 / UNEXCITED), axis=1)
        gap = np.abs(beta - self.optimum[0].beta)
        return float(np.max(gap / np.maximum(std, np.finfo(float).tiny)))


def build_search_task(
    problem: Problem, region: SearchRegion, knowledge: Knowledge, bars: ErrorBars
) -> RangeProblem:
    """What is to be searched."""
    if region.objective == MEAN_AND_SPREAD:
        if knowledge.prior not in (None, "none"):
            raise InputError(
                f"objective {MEAN_AND_SPREAD!r} has no prior; leave it out, or take "
                f"{LEAST_SQUARES!r}"
            )
        knowledge = replace(knowledge, prior="none")
    given = build_constrained_setting(problem, knowledge, Bootstrap(bootstrap=0), bars)
    low, high, cones = bound_base_parameters(given, region.ranges)
    admitted = replace(given.admitted, cones=(*given.admitted.cones, *cones))
    given = replace(given, admitted=admitted, near=None)
    begin = choose_search_start(given, region.begin, low, high)
    parts = None
    if region.objective == MEAN_AND_SPREAD:
        parts = centre_row_factors(problem, region.spread_weight)
    return RangeProblem(given, low, high, begin, parts)


# ---- the ranges


def bound_base_parameters(
    given: ConstrainedSetting, ranges: Ranges | None
) -> tuple[Array, Array, list[Cone]]:
    """Bounds of the base parameters, and the ranges as cones on the unknowns.

    A base parameter's range is that of the combination of standard ones that it is.
    """
    base, idim, space = given.problem.base, given.problem.idim, given.admitted.space
    lower, upper = choose_usual_ranges(given)
    own: dict[int, tuple[float, float]] = {}
    if ranges is not None and not ranges:
        raise InputError("ranges is empty: give [low, high] by parameter, or leave it out")
    for name, (low, high) in (ranges or {}).items():
        known = [*base.names, *(n for n in idim.names if n not in base.names)]
        refuse_unknown(name, known, f"ranges: {name!r} is not a parameter")
        if low >= high:
            raise InputError(
                f"ranges: {name} is [{low:g}, {high:g}], but low has to be below high; what is "
                "known is a constraint of kind 'fixed'"
            )
        if name in idim.names:
            k = idim.names.index(name)
            lower[k], upper[k] = low, high
        if name in base.names:
            own[base.names.index(name)] = (low, high)
    ends = np.stack([base.matrix * lower, base.matrix * upper])
    least, most = np.sum(np.min(ends, axis=0), axis=1), np.sum(np.max(ends, axis=0), axis=1)
    for k, (low, high) in own.items():
        least[k], most[k] = low, high
    if not space.standard:
        return least, most, build_range_cones(base.names, np.diag(space.unit), least, most)
    # what consistency keeps above zero would be kept there twice, in a corner no solver resolves
    kept = np.array([p.positive or p.symbol in POSITIVE for p in idim.parameters])
    loose = np.where(kept & (lower == 0.0), -np.inf, lower)
    cones = build_range_cones(idim.names[: len(lower)], np.diag(space.unit), loose, upper)
    for k, (low, high) in own.items():
        if base.names[k] not in idim.names:
            cones += Bounds(base.names[k], low, high).cones(space)
    return least, most, cones


def build_range_cones(names: tuple[str, ...], rows: Array, low: Array, high: Array) -> list[Cone]:
    """``low <= rows x <= high`` in units of the ranges; what has no width is not a range.

    An infinite low end is open.
    """
    cones: list[Cone] = []
    bounded = np.isfinite(low)
    width = high - np.where(bounded, low, 0.0)
    for title, sign, bound, known in (("low", 1.0, low, bounded), ("high", -1.0, high, True)):
        own = np.flatnonzero((width > 0.0) & known)
        G = sign * rows[own] / width[own, None]
        called = tuple(f"{names[k]} at its range's {title} end" for k in own)
        cones.append(NonnegativeCone(called, G, sign * bound[own] / width[own]))
    return cones


def choose_usual_ranges(given: ConstrainedSetting) -> tuple[Array, Array]:
    """Ranges of the standard parameters that nothing was said of, in SI units.

    Of bodies with inertials in the robot file: masses of up to `WIDE` times the file's, first
    moments and inertias as such a mass has within `WIDE` radii of gyration about the joint's
    frame. Of other bodies and of drives: what would explain all of the torque alone. Shapes of
    friction have their models' bounds.
    """
    problem, system = given.problem, given.system
    idim = problem.idim
    columns = np.linalg.norm(system.A @ problem.base.matrix, axis=0)
    symbols = np.array([parameter.symbol for parameter in idim.parameters])
    size = max(float(np.linalg.norm(system.b)), 1e-12)
    upper = np.ones(len(columns))
    for symbol in np.unique(symbols):
        same = symbols == symbol
        most = float(np.max(columns[same]))
        if most > 0.0:
            # of the joint that moves most, where one at rest says nothing of its own scale
            seen = np.where(columns[same] > IDLE * most, columns[same], most)
            upper[same] = size / seen
    lower = np.where(idim.positive, 0.0, -upper)
    for k in range(idim.bodies):
        own, phi = slice(10 * k, 10 * k + 10), idim.robot.nominal[k]
        if phi[0] > 0.0:
            mass = WIDE * phi[0]
            # half the trace of I is the second moment of the mass about the origin
            radius = np.sqrt(max(0.5 * float(phi[4] + phi[6] + phi[9]) / phi[0], GYRATION**2))
            reach = WIDE * radius
            # |integral of x y dm| is at most half that of x^2 + y^2
            moment, product = mass * reach**2, 0.5 * mass * reach**2
            upper[own] = [
                mass, *[mass * reach] * 3, moment, product, moment, product, product, moment,
            ]  # fmt: skip
            lower[own] = -upper[own]
        lower[10 * k + np.array([0, 4, 6, 9])] = 0.0
    if idim.free:
        for k, shape in enumerate(idim.shape_parameters, idim.plain):
            lower[k], upper[k] = shape.bounds.lower, shape.bounds.upper
    return lower, upper


def choose_search_start(
    given: ConstrainedSetting, begin: Mapping[str, float] | None, low: Array, high: Array
) -> Array:
    """Where a search begins."""
    beta, names = 0.5 * (low + high), given.problem.base.names
    for name, value in (begin or {}).items():
        refuse_unknown(name, names, f"begin: {name!r} is not a base parameter")
        k = names.index(name)
        if not low[k] <= value <= high[k]:
            raise InputError(
                f"begin: {name} is {value:g}, outside of its range [{low[k]:.4g}, {high[k]:.4g}]"
            )
        beta[k] = value
    return beta
