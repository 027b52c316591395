"""Draws from a normal distribution, cut to the parameters that a robot can have.

An estimate and its covariance are of base parameters; a simulator needs a full set of standard
ones. Where something was believed of the bodies beforehand, the set is drawn as the posterior has
it: ``theta | beta`` under the prior, ``beta`` by its covariance. What neither log nor prior says
anything of moves least, in the prior's metric. All of it is one normal distribution,
``x = inside + factor z``, of which only the part within the cones is drawn from: by rejection
where enough of it is, else by hit-and-run (Smith 1984), one chain a draw, so that draws are
independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special
from scipy.linalg import null_space, solve_triangular

from dynident.conic.cones import Cone, NonnegativeCone, SemidefiniteCone, ZeroCone
from dynident.conic.solve import solve_cone_problem
from dynident.consistency.extremes import find_extreme_eigenvalues
from dynident.consistency.feasible_set import EQUIVALENT, FeasibleSet
from dynident.consistency.prior import Prior, build_belief
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.progress import ignore_progress
from dynident.core.side_by_side import HERE, Engine, gather_side_by_side
from dynident.core.threads import limit_to_one_thread

ROOM = 1e-6
"""By which the middle of the draws is moved inside of the active constraints, in scaled units: a
chain cannot begin on a face of the cones."""
TRIALS = 1000
"""Draws without cones that tell the share within them."""
LEAST_SHARE = 0.2
"""Share from which draws outside are simply thrown away."""
STEPS, FEWEST_STEPS = 5, 200
"""Of a chain, per direction, and in all."""
CHAINS = 256
"""That go together, with random numbers of their own."""
NEWTON_STEPS = 1000
SETTLED = 1e-9
CLOSE = 0.25
"""Of the squared decrement of Newton's step: whole steps are then good."""
NEARER = 1e-9
"""Share of their way that points go back to the centre first, from where rounding took them."""
SHORT = 1.0 - 1e-6
"""Share of a chord that a step may take."""
UNSEEN = 1e-9
"""Singular value over the largest of a direction that rows do not see."""
SEEN = 1e-10
"""Eigenvalue of a correlation below which a direction does not vary."""


@dataclass(frozen=True)
class NormalDraws:
    """``x = inside + factor @ z`` with z normal about `mean`, of variance one."""

    inside: Array
    """A point within the cones, with some room, shape (unknowns,)."""
    factor: Array
    """Shape (unknowns, directions)."""
    mean: Array
    """Shape (directions,)."""


@dataclass(frozen=True)
class ConeDraws:
    """Points within the cones, shape (count, unknowns), and how they were had.

    The share of the normal distribution that lies within the cones is as `TRIALS` draws of it tell.
    """

    x: Array
    share: float
    way: str


def factor_covariance(covariance: Array) -> Array:
    """A factor of a covariance that may be singular: ``factor @ factor.T``."""
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(std > 0.0, std, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = values > SEEN
    return np.asarray(scale[:, None] * vectors[:, kept] * np.sqrt(values[kept]))


def tighten_cones(cones: Sequence[Cone], room: float) -> list[Cone]:
    """The same cones with so much room inside of them."""
    found: list[Cone] = []
    for cone in cones:
        if isinstance(cone, SemidefiniteCone):
            floor = cone.floor + room * np.eye(len(cone.floor))
            found.append(SemidefiniteCone(cone.name, cone.basis, floor))
        elif isinstance(cone, NonnegativeCone):
            size = np.linalg.norm(cone.G, axis=1)
            found.append(NonnegativeCone(cone.name, cone.G, cone.h + room * size))
        else:
            found.append(cone)
    return found


def project_into_cones(cones: Sequence[Cone], x: Array, weight: Array) -> Array:
    """The point nearest to x that has room within the cones, by weights of unknowns' changes."""
    return solve_cone_problem(np.diag(weight), weight * x, tighten_cones(cones, ROOM)).x


def build_posterior(
    admitted: FeasibleSet, theta: Array, beta: Array, covariance: Array
) -> NormalDraws:
    """The standard parameters behind an estimate of base parameters, as a distribution.

    With the prior's rows P and the regrouping M, both of scaled unknowns: ``M dx ~ N(0, C)``, the
    lift of which is least in P, and along ``M dx = 0`` the prior itself, about where it would
    have the set. Directions that P does not see are not spread. Of a metric that is not quadratic
    its model at the estimate. The unknowns are standard parameters, theta is near the estimate, or
    it.
    """
    space, prior = admitted.space, admitted.prior
    unit, count = space.unit, len(space.unit)
    inside = project_into_cones(admitted.cones, theta / unit, np.ones(count))
    equal = np.vstack(
        [np.zeros((0, count)), *(c.G for c in admitted.cones if isinstance(c, ZeroCone))]
    )
    free = null_space(equal, rcond=UNSEEN)
    at = space.value(inside)
    if prior.empty:
        prior = Prior(build_belief(space.idim.split(at)[0], space.links))
    rows, target = prior.rows(count, None if prior.fixed else at)
    P = rows * unit @ free
    M = space.matrix @ free
    slight = np.vstack([P, EQUIVALENT * np.eye(free.shape[1])])
    R: Array = np.asarray(np.linalg.qr(slight, mode="r"))
    spread = factor_covariance(covariance)
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(std > 0.0, std, max(float(std.max(initial=0.0)), 1.0))
    # least in R: u = R^-1 (M R^-1 / scale)^+ (spread / scale)
    MR = solve_triangular(R.T, M.T, lower=True).T / scale[:, None]
    lift = solve_triangular(R, np.linalg.lstsq(MR, spread / scale[:, None], rcond=SEEN)[0])
    # the whole distribution moves inside with its middle, by less than anyone sees
    away = (beta - space.base.matrix @ theta) / scale
    mean = np.linalg.lstsq(spread / scale[:, None], away, rcond=SEEN)[0]
    lengths = np.maximum(np.linalg.norm(M, axis=1, keepdims=True), 1e-300)
    still = null_space(M / lengths, rcond=UNSEEN)
    _, s, vt = np.linalg.svd(P @ still, full_matrices=False)
    seen = s > EQUIVALENT
    along = still @ vt[seen].T
    pull = -(along.T @ (P.T @ (rows @ at - target))) / s[seen]
    factor = np.hstack([free @ lift, free @ (along / s[seen])])
    return NormalDraws(inside, factor, np.concatenate([mean, pull]))


@dataclass(frozen=True)
class ConeRegion:
    """What cones ask of z: matrices of one size together, and rows."""

    constant: tuple[Array, ...]
    slope: tuple[Array, ...]
    """`constant`, `slope`: ``constant + z slope`` is definite, shapes (k, d, d) and (directions, k,
    d, d)."""
    offset: Array
    rows: Array
    """`offset`, `rows`: ``offset + rows z`` is positive, shapes (r,) and (r, directions)."""

    @classmethod
    def of(cls, cones: Sequence[Cone], normal: NormalDraws) -> ConeRegion:
        """Those of a distribution."""
        x, L = normal.inside, normal.factor
        matrices: dict[int, tuple[list[Array], list[Array]]] = {}
        offset, rows = [np.zeros(0)], [np.zeros((0, L.shape[1]))]
        for cone in cones:
            if isinstance(cone, SemidefiniteCone):
                constants, slopes = matrices.setdefault(len(cone.floor), ([], []))
                constants.append(cone.matrix(x))
                slopes.append(np.tensordot(L[cone.support].T, cone.part, axes=1))
            elif isinstance(cone, NonnegativeCone):
                offset.append(cone.G @ x - cone.h)
                rows.append(cone.G @ L)
        return cls(
            tuple(np.array(c) for c, _ in matrices.values()),
            tuple(np.stack(s, axis=1) for _, s in matrices.values()),
            np.concatenate(offset),
            np.vstack(rows),
        )

    def matrices(self, z: Array) -> list[Array]:
        """At several points, shapes (points, k, d, d)."""
        return [c + combine_slopes(s, z) for c, s in zip(self.constant, self.slope, strict=True)]

    def admits(self, z: Array) -> np.ndarray:
        """Which of several points lie inside, shape (points,)."""
        inside = np.all(self.offset + z @ self.rows.T > 0.0, axis=1)
        for found in self.matrices(z):
            inside &= np.all(np.linalg.eigvalsh(found)[..., 0] > 0.0, axis=1)
        return np.asarray(inside)

    def has_factors(self, z: Array) -> bool:
        """Whether all matrices of several points have Cholesky factors."""
        try:
            for found in self.matrices(z):
                np.linalg.cholesky(found)
        except np.linalg.LinAlgError:
            return False
        return True

    def chord(self, z: Array, d: Array) -> tuple[Array, Array]:
        """How far several points may move along directions, back and forth."""
        slack, change = self.offset + z @ self.rows.T, d @ self.rows.T
        with np.errstate(divide="ignore"):
            ratio = -slack / change
        low = np.max(np.where(change > 0.0, ratio, -np.inf), axis=1, initial=-np.inf)
        high = np.min(np.where(change < 0.0, ratio, np.inf), axis=1, initial=np.inf)
        for found, slope in zip(self.matrices(z), self.slope, strict=True):
            least, most = find_extreme_eigenvalues(
                np.linalg.cholesky(found).astype(float, copy=False), combine_slopes(slope, d)
            )
            with np.errstate(divide="ignore"):
                # S + t dS is singular where t = -1 / an eigenvalue of L^-1 dS L^-T
                low = np.maximum(low, np.where(most > 0.0, -1.0 / most, -np.inf))
                high = np.minimum(high, np.where(least < 0.0, -1.0 / least, np.inf))
        return SHORT * low, SHORT * high

    def barrier(self, z: Array) -> tuple[float, Array, Array]:
        """``-log det`` of all matrices and rows, its gradient and its second derivative."""
        slack = self.offset + self.rows @ z
        weighed = self.rows / slack[:, None]
        value, gradient = -float(np.sum(np.log(slack))), -np.sum(weighed, axis=0)
        second = weighed.T @ weighed
        for (found,), slope in zip(self.matrices(z[None]), self.slope, strict=True):
            inverse = np.linalg.inv(np.linalg.cholesky(found))
            own = inverse @ slope @ np.swapaxes(inverse, -1, -2)
            # -log det S = 2 sum log diag(L^-1)
            value += 2.0 * float(np.sum(np.log(np.diagonal(inverse, axis1=-2, axis2=-1))))
            gradient -= np.trace(own, axis1=-2, axis2=-1).sum(axis=1)
            flat = own.reshape(len(z), -1)
            second += flat @ flat.T
        return value, gradient, second


def combine_slopes(slope: Array, z: Array) -> Array:
    """``sum_i z_i slope_i`` at several points."""
    return np.asarray((z @ slope.reshape(len(slope), -1)).reshape(len(z), *slope.shape[1:]))


def find_region_centre(
    region: ConeRegion, mean: Array, start: Array | None = None
) -> tuple[Array, Array]:
    """Where the normal density and the barrier balance, and the barrier's curvature there.

    The ellipsoid of that curvature fits into the region, whose narrow directions a chain then
    takes as easily as the wide ones. The start is in the region: zero unless given.
    """
    z = np.zeros(len(mean)) if start is None else start
    value, gradient, second = region.barrier(z)
    for _ in range(NEWTON_STEPS):
        slope, H = z - mean + gradient, np.eye(len(z)) + second
        step = np.asarray(-np.linalg.solve(H, slope), dtype=float)
        decrement = float(-slope @ step)
        if decrement < SETTLED:
            return z, H
        end = min(1.0, 0.95 * float(region.chord(z[None], step[None])[1][0]))
        z = z + shorten_step(region, mean, (z, value), step, decrement, end) * step
        value, gradient, second = region.barrier(z)
    raise ComputationError(
        f"no interior point of the admitted parameters was found in {NEWTON_STEPS} steps "
        f"({value:.3g}); the constraints may imply an equality"
    )


def shorten_step(
    region: ConeRegion,
    mean: Array,
    here: tuple[Array, float],
    step: Array,
    decrement: float,
    end: float,
) -> float:
    """Share of a step of Newton that lowers density and barrier enough, of at most `end`.

    `here` is the point with its barrier. Of a self-concordant function `least` always does, with
    which there are thousands of steps far from the minimum.
    """
    z, value = here
    before = value + 0.5 * float(np.sum((z - mean) ** 2))
    length, least = end, 1.0 / (1.0 + np.sqrt(decrement))
    while decrement > CLOSE and length > least:
        there = z + length * step
        after = region.barrier(there)[0] + 0.5 * float(np.sum((there - mean) ** 2))
        if after < before - 0.25 * length * decrement:
            break
        length = max(least, 0.5 * length)
    return length


def draw_truncated_normal(low: Array, high: Array, generator: np.random.Generator) -> Array:
    """Standard normal numbers between bounds, far out in a tail as well."""
    turned = low + high > 0.0  # the lower tail is the one that logarithms tell exactly
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    share = generator.uniform(size=a.shape)
    with np.errstate(divide="ignore"):
        logs = np.logaddexp(
            special.log_ndtr(a) + np.log1p(-share), special.log_ndtr(b) + np.log(share)
        )
    found = np.clip(special.ndtri_exp(logs), a, b)
    return np.asarray(np.where(turned, -found, found))


def draw_by_hit_and_run(
    region: ConeRegion,
    mean: Array,
    count: int,
    generator: np.random.Generator,
    engine: Engine = HERE,
) -> tuple[Array, int]:
    """The last points of so many chains, and their steps."""
    start, H = find_region_centre(region, mean)
    # directions by the inverse of H: equally likely in the ellipsoid's own measure
    root = np.asarray(np.linalg.cholesky(H), dtype=float)
    steps = max(FEWEST_STEPS, STEPS * len(mean))
    sizes = [min(CHAINS, count - begun) for begun in range(0, count, CHAINS)]
    # the first have the generator itself, whose draws so do not depend on how many follow
    generators = [generator, *generator.spawn(len(sizes) - 1)]
    run = partial(run_chains, region, mean, start, root, steps)
    tasks = list(zip(sizes, generators, strict=True))
    found = gather_side_by_side(run, tasks, engine, ignore_progress, "drawing")
    return np.vstack(found), steps


@limit_to_one_thread
def run_chains(
    region: ConeRegion,
    mean: Array,
    start: Array,
    root: Array,
    steps: int,
    task: tuple[int, np.random.Generator],
) -> Array:
    """The last points of some chains, each from the start on."""
    count, generator = task
    z = np.tile(start, (count, 1))
    for _ in range(steps):
        free = generator.normal(size=z.shape)
        d = solve_triangular(root.T, free.T, lower=False).T
        length = np.linalg.norm(d, axis=1)
        d /= length[:, None]
        middle = np.einsum("ij,ij->i", d, mean - z)
        try:
            low, high = region.chord(z, d)
        except np.linalg.LinAlgError:  # where a mean far outside presses points onto the boundary
            z = bring_inside(region, z, start)
            middle = np.einsum("ij,ij->i", d, mean - z)
            low, high = region.chord(z, d)
        length = middle + draw_truncated_normal(low - middle, high - middle, generator)
        z = z + length[:, None] * d
    return bring_inside(region, z, start)


def bring_inside(region: ConeRegion, z: Array, centre: Array) -> Array:
    """Points, all nearer to the centre where rounding took one of them over the boundary."""
    share = NEARER
    while not region.has_factors(z):
        z = centre + (1.0 - share) * (z - centre)
        share = min(100.0 * share, 0.5)
    return z


@limit_to_one_thread
def draw_within_cones(
    normal: NormalDraws,
    cones: Sequence[Cone],
    count: int,
    generator: np.random.Generator,
    engine: Engine = HERE,
) -> ConeDraws:
    """Draws within the cones; chains run on an engine."""
    region = ConeRegion.of(cones, normal)
    directions = len(normal.mean)
    z = normal.mean + generator.normal(size=(max(TRIALS, count), directions))
    fits = region.admits(z)
    share = float(np.mean(fits))
    if share >= LEAST_SHARE:
        kept = [z[fits]]
        while sum(map(len, kept)) < count:
            more = normal.mean + generator.normal(size=(TRIALS, directions))
            kept.append(more[region.admits(more)])
        z, way = np.vstack(kept)[:count], "rejection"
    else:
        z, steps = draw_by_hit_and_run(region, normal.mean, count, generator, engine)
        way = f"hit-and-run, {steps} steps a draw"
    return ConeDraws(normal.inside + z @ normal.factor.T, share, way)
