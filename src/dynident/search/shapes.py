"""Shapes of friction: what the torque is not linear in, found with what it is linear in.

The linear parameters are eliminated by least squares at given shapes (variable projection, Golub
and Pereyra 1973); Gauss-Newton steps on the shapes alone go down the projected problem with its
exact gradient (Kaufman 1975), from several starts, within bounds. Then any method estimates the
model that is linearised there, shapes included (zhang2018, eq. 14), until linearising it again
changes nothing: its covariances, instruments and constraints are those of all parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.errors import UnsettledError
from dynident.core.factors import Factors, System, triangularise_rows
from dynident.core.progress import Progress, ignore_progress
from dynident.dynamics.following import find_conditions, view_friction
from dynident.dynamics.parameters import DriveFriction, ShapeParameter
from dynident.estimators.estimate import Estimate, RoughEstimate, ShapeEstimate
from dynident.friction.model import DriveSignals, FrictionModel
from dynident.friction.model import ShapeTerm as Bounds
from dynident.regression.problem import Problem
from dynident.regression.rows import collect_conditions
from dynident.regression.statistics import compute_residuals
from dynident.regression.weighted import (
    REMEMBERED,
    TOLERANCE,
    Past,
    estimate_group_sigma,
    mix_past_steps,
    remember_step,
)

ROUNDS = 60
"""Linearisations of a method's model."""
PATIENCE = 15
"""Linearisations after which a shape that still moves is held where it is."""
BLUNTER = 3.0
"""By which loads are farther apart that slopes of friction are taken between, where an estimate
does not settle."""
SWINGING = 1.0 / 64.0
"""Share of its steps at which a shape that keeps turning back is held where it is."""
FACT = "is known"
UNDETERMINED = "is not determined by the log"
LEAST = 0.1
"""Size of a shape near zero: a step doubles a shape at most, or halves it."""
CLOSE = 1e-2
"""Change of an estimate, in standard deviations of white errors, below which it has settled."""
NEAR = 0.3
"""The same where only errors on other rows are asked for, which are hardly another then."""
FAR = 0.1
"""Change of a shape, of itself or `LEAST`, that is not a small step, however little it changes."""
DESCENTS = 60
SIGMAS = 30
"""Renewals of the sigmas at given shapes."""
CANDIDATES = 24
"""Shapes that are tried on each drive alone, for each of its shapes."""
DAMPING = 1e-3
MOST_DAMPING = 1e8
FLAT = 1e-4
"""Increase of the log-likelihood below which a descent has ended: a hundredth of a sigma."""
LEVEL = 0.1
"""The same where only errors on other rows are asked for: less than half a sigma."""
ALIKE = 0.02
"""Difference of two shapes that need not be told apart."""
SLOW_ROWS = 10
"""Rows that have to be slower than a speed among the shapes."""
AT_BOUND = 1e-6
"""Share of its range within which a shape is at a bound."""


def estimate_with_shapes(
    problem: Problem,
    method: Callable[[Problem], Estimate],
    quickly: Callable[[Problem, Array], RoughEstimate],
    progress: Progress = ignore_progress,
    searched: ProjectedSquares | None = None,
    start: Array | None = None,
) -> tuple[Problem, Estimate]:
    """What a method estimates together with the shapes of friction, and loads that agree with it.

    Parameters
    ----------
    method : callable
        Estimates the linear parameters of a problem.
    quickly : callable
        The same estimate, error bars aside, from sigmas to begin with.
    searched : ProjectedSquares, optional
        What `search_problem_shapes` finds, where that is known.
    start : ndarray, optional
        Linear parameters near those that the method will find, of which only errors on other rows
        are asked: it settles sooner from there, and to `NEAR`.

    Returns
    -------
    problem : Problem
        At the shapes, and under the loads, of the estimate.
    estimate : Estimate
        Of its parameters; the shapes are its `shape`.
    """
    if not problem.idim.nonlinear:
        return problem, method(problem)
    found = searched or search_problem_shapes(problem, progress)
    held, theta, sigma = find_shapes_to_hold(found), found.theta, found.sigma
    close = CLOSE if start is None else NEAR
    if start is not None:
        theta[: problem.idim.plain] = start
    walk = ShapeIterates(theta, np.zeros(len(theta)), np.ones(len(theta)))
    for turn in range(ROUNDS):
        progress("shapes", turn / ROUNDS)
        if turn and turn % PATIENCE == 0 and problem.idim.loaded:
            found, walk = blur_loads(found), replace(walk, past=())
        here = found.problem.linearised(walk.theta)
        here = here.only([k for k, name in enumerate(here.base.names) if name not in held])
        rough = quickly(here, sigma)
        new, sigma = expand_to_full_set(here, rough), rough.sigma
        beyond = find_shapes_beyond_bounds(here, walk.theta, new)
        change, left = measure_estimate_change(here, rough)
        if not beyond and change < close:
            # of a column that is almost nothing any step is small: the model would not follow it
            gone = find_shapes_gone_far(here, walk.theta, new)
            if not gone:
                estimate = method(here)
                new = expand_to_full_set(here, estimate)
                return here.settled(new), convert_from_linearised(here, estimate, new, held)
            held = {**held, **gone}
            continue
        walk = walk.on(new, here, sigma)
        held = {**held, **beyond, **walk.lost(here, left if turn >= PATIENCE else 0.0 * left)}
    raise UnsettledError(
        f"the shapes of the friction did not settle in {ROUNDS} rounds; try a simpler friction "
        "model, or another method"
    )


def blur_loads(found: ProjectedSquares) -> ProjectedSquares:
    """The same with slopes of friction by loads that are between loads farther apart.

    A minimum at which a load is zero, where friction turns over, has no slope, and steps by that of
    one side or the other swing about it. What friction is stays as it is.
    """
    base = found.problem.base
    blur = tuple(BLUNTER * each for each in base.idim.blur)
    blurred = replace(base, idim=replace(base.idim, blur=blur))
    return replace(found, problem=found.problem.under(blurred))


@dataclass(frozen=True, eq=False)
class ShapeIterates:
    """Full sets about which a method's model is linearised, one after another.

    Where errors are large and a shape is nearly a mixture of other columns, whole steps swing: a
    shape that turns back goes half as far.
    """

    theta: Array
    step: Array
    """The whole step that was due last."""
    shares: Array
    """Of a step that are taken."""
    past: Past = ()
    """Where bodies and friction were of late, and the steps that were due there."""

    def on(self, new: Array, here: Problem, sigma: Array) -> ShapeIterates:
        """Towards the full set that came out under these sigmas."""
        plain, step = here.idim.plain, new - self.theta
        turned = step * self.step < 0.0
        shares = np.where(turned, 0.5 * self.shares, np.minimum(1.2 * self.shares, 1.0))
        reach = np.maximum(np.abs(self.theta), LEAST)
        step[plain:] = np.clip(step, -0.5 * reach, reach)[plain:]
        theta = self.theta + shares * step
        past = (*self.past[-REMEMBERED:], (self.theta[:plain], step[:plain]))
        weigh = here.factors.weighted(sigma).A @ here.base.matrix[:, :plain]
        theta[:plain] = mix_past_steps(past, weigh)
        # the search takes rotors for their links', which the method may tell apart: it is forgotten
        return ShapeIterates(theta, step, shares, past if np.any(self.step) else ())

    def lost(self, here: Problem, left: Array) -> dict[str, str]:
        """Shapes that keep turning back, or still move by so many sigmas, and why they are held."""
        known = zip(here.idim.shape_parameters, self.shares[here.idim.plain :], strict=True)
        moving = {here.base.names[k] for k in np.flatnonzero(left > CLOSE)}
        return {
            shape.name: UNDETERMINED
            for shape, share in known
            if share < SWINGING or shape.name in moving
        }


def measure_estimate_change(here: Problem, estimate: RoughEstimate) -> tuple[float, Array]:
    """How far an estimate left what it was linearised about, where that matters, in sigmas.

    Of the shapes and, where there are loads, of the bodies; and of each shape, shape (base
    parameters,), zero of all others.
    """
    about = [*here.idim.about, *(here.idim.shape if here.idim.free else ())]
    step = estimate.beta - here.base.matrix @ np.array(about)
    shapes = here.base.kept >= here.idim.plain
    matters = shapes.copy()
    if here.idim.loaded:
        matters |= here.base.kept < here.idim.inertial
    A = here.factors.weighted(estimate.sigma).A
    norms = np.linalg.norm(A, axis=0)
    change = float(np.linalg.norm(A[:, matters] @ step[matters]))
    return change, np.asarray(np.where(shapes, norms * np.abs(step), 0.0))


def expand_to_full_set(problem: Problem, estimate: RoughEstimate | Estimate) -> Array:
    """The full set of an estimate; shapes that are held have the values of the model."""
    theta = problem.base.standard(estimate.beta)
    if estimate.theta is not None:
        theta[: problem.idim.plain] = estimate.theta[: problem.idim.plain]
    return theta


def find_shapes_beyond_bounds(problem: Problem, old: Array, new: Array) -> dict[str, str]:
    """Shapes that are at a bound and would go on beyond it, and why they are held then."""
    if not problem.idim.free:
        return {}
    places = range(problem.idim.plain, len(new))
    return {
        shape.name: "rests at its bound"
        for shape, k in zip(problem.idim.shape_parameters, places, strict=True)
        if shape.name in problem.base.names
        and find_bound_side(shape, old[k]) * (new[k] - old[k]) >= 0.0
        if find_bound_side(shape, old[k])
    }


def find_shapes_gone_far(problem: Problem, old: Array, new: Array) -> dict[str, str]:
    """Shapes that a step changes by more than `FAR` of themselves, and why they are held."""
    places = range(problem.idim.plain, len(new))
    return {
        shape.name: UNDETERMINED
        for shape, k in zip(problem.idim.shape_parameters, places, strict=True)
        if shape.name in problem.base.names and abs(new[k] - old[k]) > FAR * max(abs(old[k]), LEAST)
    }


def find_bound_side(shape: ShapeParameter, value: float) -> int:
    """-1 at the lower bound, 1 at the upper one, 0 between."""
    low, high = shape.bounds.lower, shape.bounds.upper
    margin = AT_BOUND * (high - low)
    return int(value > high - margin) - int(value < low + margin)


def convert_from_linearised(
    problem: Problem, estimate: Estimate, theta: Array, held: dict[str, str]
) -> Estimate:
    """An estimate of a linearised problem as one of the model at its shapes.

    Theta is the full set, `held` why some of the shapes were not estimated.
    """
    idim, base = problem.idim, problem.base
    own = base.kept < idim.plain
    matrix, literature = estimate.covariance.matrix, estimate.covariance.literature
    covariance = replace(
        estimate.covariance, matrix=matrix[np.ix_(own, own)], literature=literature[own]
    )
    at, plain = idim.settled(theta)
    names = tuple(each.name for each in idim.shape_parameters)
    known = dict(zip(base.names, estimate.covariance.std.tolist(), strict=True))
    values = dict(zip(names, at.shape, strict=True))
    notes = [
        f"{name} {why}; it is held at {values[name]:.4g}"
        for name, why in held.items()
        if why != FACT
    ]
    history, instruments = estimate.history, estimate.instruments
    if instruments is not None:
        simulated = instruments.simulated
        instruments = replace(
            instruments,
            least_squares=instruments.least_squares[own],
            simulated=None if simulated is None else simulated[own],
        )
    std = np.array([known.get(name, np.nan) for name in names])
    return replace(
        estimate,
        beta=estimate.beta[own],
        theta=None if estimate.theta is None else plain,
        covariance=covariance,
        history=None if history is None else history[:, own],
        instruments=instruments,
        shape=ShapeEstimate(names, np.array(at.shape), std) if names else None,
        warnings=(*estimate.warnings, *notes),
    )


# ---- variable projection


@dataclass(frozen=True, eq=False)
class ProjectedSquares:
    """Weighted least squares at given shapes: the linear parameters are eliminated."""

    problem: Problem
    """Linearised at the shapes."""
    beta: Array
    """With the shapes as they are given, shape (base parameters,)."""
    sigma: Array
    cost: float
    """Minus the log-likelihood of normal errors, less a constant: ``sum_g r_g log sigma_g``."""

    @cached_property
    def free(self) -> Booleans:
        """Which of the base parameters are shapes."""
        return np.asarray(self.problem.base.kept >= self.problem.idim.plain)

    @property
    def theta(self) -> Array:
        """The full set, shapes included."""
        return self.problem.base.standard(self.beta)

    @cached_property
    def reduced(self) -> tuple[Array, Array]:
        """Columns of the shapes and the errors, beside all that is linear."""
        system = self.problem.factors.weighted(self.sigma)
        inside = ~self.free & (self.beta != 0.0)
        Q, _ = np.linalg.qr(system.A[:, inside])
        J, e = system.A[:, self.free], system.b - system.A @ self.beta
        return J - Q @ (Q.T @ J), e - Q @ (Q.T @ e)


def fit_linear_parameters(problem: Problem, sigma: Array | None = None) -> ProjectedSquares:
    """The best linear parameters at the shapes about which a problem is linearised.

    Friction is kept positive, whatever the method: without, the best shape is often one that
    imitates something else with a negative parameter, where no method recovers from it. Sigmas
    start from those that are given.
    """
    base = problem.base
    free = base.kept >= problem.idim.plain
    # what others are regrouped into may have any sign
    own = (base.kept >= problem.idim.inertial) & ~np.any(base.K, axis=1)
    positive = own & problem.idim.positive[base.kept] & ~free
    # columns of any sign, then positive ones, then shapes: one triangle solves for all
    order = np.argsort(positive + 2 * free, kind="stable")
    split, known = int(np.sum(~positive & ~free)), int(np.sum(~free))
    columns = [*order, problem.factors.parameters]
    factors = Factors(  # triangular no more
        tuple(replace(own, factor=own.factor[:, columns]) for own in problem.factors.groups)
    )
    x = base.shift[order]
    sigma = factors.ones if sigma is None else sigma
    past: Past = ()
    for _ in range(SIGMAS):
        system = factors.weighted(sigma)
        right = (system.b - system.A[:, known:] @ x[known:])[:known]
        x[:known] = solve_partly_positive(system.A[:known, :known], right, split)
        new = estimate_group_sigma(factors, x, sigma, system)
        past = remember_step(past, np.log(sigma), np.log(new / sigma))
        if np.all(np.abs(new - sigma) <= TOLERANCE * new):
            sigma = new
            break
        sigma = np.exp(mix_past_steps(past, np.eye(len(new))))
    beta = np.empty(len(x))
    beta[order] = x
    squares = factors.squared_residuals(x)
    counts = factors.counts
    used = counts > 0
    mean = np.maximum(squares[used] / counts[used], np.finfo(float).tiny)
    cost = float(0.5 * np.sum(counts[used] * np.log(mean)))
    return ProjectedSquares(problem, beta, sigma, cost)


def solve_partly_positive(R: Array, right: Array, split: int) -> Array:
    """Least squares of a triangle, ``R x = right``, with the parameters from `split` on positive.

    The others are what is left to them: ``R_11 x_1 = r_1 - R_12 x_2``.
    """
    whole = System(R, right, 0.0)
    x = whole.solve() if whole.regular else np.full(R.shape[1], -1.0)
    if np.all(x[split:] > 0.0) and whole.regular:
        return x
    if split < len(x):
        from scipy.optimize import nnls  # a quarter of a second that few runs need

        norms = np.linalg.norm(R[:, split:], axis=0)
        norms = np.maximum(norms, np.finfo(float).tiny)
        x[split:] = nnls(R[split:, split:] / norms, right[split:])[0] / norms
    rest = System(R[:split, :split], right[:split] - R[:split, split:] @ x[split:], 0.0)
    x[:split] = rest.solve()
    return x


def search_problem_shapes(
    problem: Problem, progress: Progress = ignore_progress
) -> ProjectedSquares:
    """The shapes that fit a problem best, its speeds no lower than what its logs can show.

    They are the same for all methods, which then go on from them.
    """
    return search_shapes(limit_to_visible_speeds(problem), progress)


def follow_shapes(near: ProjectedSquares, other: Problem) -> ProjectedSquares:
    """The shapes that fit other logs of the same model best, down from those of some, as known.

    Within the bounds that those were found in. Any method then estimates what is linear.
    """
    problem = other.under(near.problem.base).linearised(near.theta)
    found = fit_linear_parameters(problem, near.sigma)
    if not problem.idim.shape:
        return found
    found = descend_over_shapes(found, flat=LEVEL)
    base, plain = found.problem.base, problem.idim.plain
    known = base.idim.limited([(value, value) for value in found.theta[plain:].tolist()])
    return replace(found, problem=found.problem.under(replace(base, idim=known)))


def search_shapes(problem: Problem, progress: Progress = ignore_progress) -> ProjectedSquares:
    """The shapes that fit best, of descents from several starts.

    Under loads of the bodies that fit at the usual shapes: so all columns but those of friction
    stay as they are. At the end they are those of the bodies that were found.
    """
    first = fit_at_usual_shapes(problem)
    shapes = first.problem.idim.shape_parameters
    if all(each.bounds.lower == each.bounds.upper for each in shapes):
        return first
    first = renew_loads(first, first.theta[: problem.idim.plain])
    starts = [
        fit_linear_parameters(first.problem.linearised(theta), first.sigma)
        for theta in choose_shape_starts(first)
    ]
    ends = []
    for k, start in enumerate(starts):
        progress("shapes", k / len(starts))
        # from the usual shapes to other ends, of which single drives may be taken: no need of care
        ends.append(descend_over_shapes(start, learn=k == 0))
    best = reduce(combine_best_shapes, sorted(ends, key=lambda end: end.cost))
    return descend_over_shapes(renew_loads(best)) if problem.idim.loaded else best


def renew_loads(found: ProjectedSquares, bearing: Sequence[float] | Array = ()) -> ProjectedSquares:
    """The same under loads of a full set's bodies; of its own where none is given."""
    at = found.problem.base
    if not at.idim.loaded:
        return found
    base = replace(at, idim=replace(at.idim, bearing=tuple(float(value) for value in bearing)))
    problem = found.problem.under(base).linearised(found.theta)
    return fit_linear_parameters(problem, found.sigma)


def combine_best_shapes(best: ProjectedSquares, other: ProjectedSquares) -> ProjectedSquares:
    """The better end with the shapes of the other on drives where these are better.

    Drives hardly depend on each other: one descent may end well on some of them, and another on
    others.
    """
    idim = best.problem.idim
    found = best
    for friction in idim.frictions:
        own = slice(idim.plain + friction.shape.start, idim.plain + friction.shape.stop)
        theta = found.theta
        if np.allclose(theta[own], other.theta[own], rtol=ALIKE):
            continue
        theta[own] = other.theta[own]
        trial = fit_linear_parameters(found.problem.linearised(theta), found.sigma)
        if trial.cost < found.cost:
            found = trial
    return found if found is best else descend_over_shapes(found)


def limit_to_visible_speeds(problem: Problem) -> Problem:
    """The problem with speeds among its shapes no lower than what the log can show.

    A speed at which friction changes has to be above that of some of the rows: what happens below
    would be read off a single one.
    """
    idim = problem.idim
    limits = []
    for friction in idim.frictions:
        speeds = list_row_speeds(problem, friction)
        slow = float(speeds[min(SLOW_ROWS, len(speeds) - 1)]) if len(speeds) else 0.0
        for shape in (each.bounds for each in idim.shape_parameters[friction.shape]):
            low, high = shape.lower, shape.upper
            if low > 0.0 and shape.unit == "rad/s":
                low = min(max(low, slow), high)
            limits.append((low, high))
    base = replace(problem.base, idim=idim.limited(limits))
    return problem.under(base)


def list_row_speeds(problem: Problem, friction: DriveFriction) -> Array:
    """Sizes of a drive's speed about where its joint has rows, in order of size."""
    gear = problem.idim.gears[friction.gear]
    base = problem.robot.dof - problem.robot.n  # coordinates before those of the joints
    joint = base + gear.number - 1
    found = []
    for log in problem.samples:
        for start, stop in log.segments:
            some = slice(start, stop, log.filters[joint].step)
            found.append((log.dq[some, base:] @ gear.turns)[log.moving[some, joint]])
    return np.sort(np.abs(np.concatenate(found)))


def fit_at_usual_shapes(problem: Problem) -> ProjectedSquares:
    """At the usual shapes, under loads that agree with the bodies that are found."""
    found = fit_linear_parameters(problem.linearised(np.zeros(problem.idim.plain)))
    if problem.idim.loaded:
        at = found.problem.base
        blurred = replace(at, idim=replace(at.idim, blur=tuple(found.sigma.tolist())))
        found = replace(found, problem=found.problem.under(blurred))
        for _ in range(2):
            found = fit_linear_parameters(found.problem.linearised(found.theta), found.sigma)
    return found


def choose_shape_starts(first: ProjectedSquares) -> tuple[Array, Array]:
    """Full sets to start from: with shapes that fit each drive alone, and with the usual ones.

    The problem is given as it is fitted at the usual shapes.
    """
    idim = first.problem.idim
    usual, screened = first.theta, first.theta
    places = {
        (c.friction, c.term): idim.inertial + k for k, c in enumerate(idim.structure.linear_columns)
    }
    for k, friction in enumerate(idim.frictions):
        if not friction.model.shape:
            continue
        alone = gather_friction_signals(first, k, friction)
        if not len(alone.torque):
            continue  # a joint that loops move has no rows of its own
        own = idim.shape_parameters[friction.shape]
        for theta, shapes in (
            (usual, np.array([idim.shape[friction.shape]])),
            (
                screened,
                sample_shape_ranges([each.bounds for each in own], bool(friction.model.state)),
            ),
        ):
            shape, linear = find_best_shape(alone, shapes)
            theta[idim.plain :][friction.shape] = shape
            for term in friction.terms:
                theta[places[k, term]] = linear[term]
    return screened, usual


@dataclass(frozen=True, eq=False)
class FrictionView:
    """What one friction sees, and the torque that is left for it where its joint has rows.

    Filters are left out: it is for a start. Stretches of a motion come with their samples that have
    rows, and their rate [Hz].
    """

    model: FrictionModel
    stretches: tuple[tuple[DriveSignals, Integers, float], ...]
    torque: Array

    def columns(self, shape: Array) -> Array:
        """Columns of the friction at the rows, shape (rows, parameters)."""
        found = []
        for signals, rows, rate in self.stretches:
            trace = self.model.follow(signals, rate, shape) if self.model.state else None
            found.append(self.model.columns(replace(signals, trace=trace), shape)[rows])
        return np.vstack(found)


def gather_friction_signals(
    first: ProjectedSquares, k: int, friction: DriveFriction
) -> FrictionView:
    """What one of the frictions sees of the logs."""
    problem, idim = first.problem, first.problem.idim
    joint = idim.gears[friction.gear].number - 1
    stretches = []
    for log, passed in zip(problem.samples, problem.passes(), strict=True):
        at = np.concatenate([rows.sample[joint] for rows in passed])
        for start, stop in log.segments:
            inside = at[(at >= start) & (at < stop)]
            # friction that remembers needs all that was before
            used = np.arange(start, stop) if friction.model.state else inside
            motion = log.q[used], log.dq[used], log.ddq[used]
            around = collect_conditions(idim, log, used)
            met = (
                around
                if idim.has_states
                else find_conditions(idim, *motion, log.rate, around=around)
            )
            signals = view_friction(idim, *motion[:2], conditions=met)(k)
            stretches.append((signals, np.searchsorted(used, inside), log.rate))
    error = compute_residuals(problem, first.beta).error[joint]
    found = FrictionView(friction.model, tuple(stretches), error)
    own = found.columns(np.array(idim.shape[friction.shape])) @ idim.linear(first.theta)[k]
    return replace(found, torque=error + own)


def find_best_shape(seen: FrictionView, shapes: Array) -> tuple[Array, Array]:
    """The shape, of some, whose columns explain a torque best, and their parameters."""
    positive = np.array([each.positive for each in seen.model.parameters])
    order, split = np.argsort(positive, kind="stable"), int(np.sum(~positive))
    best, found = np.inf, (shapes[0], np.zeros(len(positive)))
    for shape in shapes:
        columns = seen.columns(shape)
        R = triangularise_rows(np.column_stack([columns[:, order], seen.torque]))
        linear = np.empty(len(order))
        linear[order] = solve_partly_positive(R[: len(order), :-1], R[: len(order), -1], split)
        error = float(np.sum((seen.torque - columns @ linear) ** 2))
        if error < best:
            best, found = error, (shape, linear)
    return found


def sample_shape_ranges(bounds: Sequence[Bounds], few: bool) -> Array:
    """Shapes all over their ranges, by ratios where these are positive; shape (count, shapes)."""
    count = CANDIDATES if few or len(bounds) < 2 else CANDIDATES**2 // 2
    rng = np.random.default_rng(0)
    columns = []
    for k, own in enumerate(bounds):
        # a grid of one shape, a Latin hypercube of more
        u = (np.arange(count) + 0.5) / count
        u = u if k == 0 else rng.permutation(u)
        if own.lower > 0.0:
            columns.append(own.lower * (own.upper / own.lower) ** u)
        else:
            columns.append(own.lower + (own.upper - own.lower) * u)
    return np.column_stack(columns)


def descend_over_shapes(
    start: ProjectedSquares, learn: bool = True, flat: float = FLAT
) -> ProjectedSquares:
    """Down the projected problem by damped Gauss-Newton steps within the bounds.

    What Gauss-Newton leaves out of the curvature, large where errors are, is learnt for each shape
    as gradients at the places that were tried tell it (a secant, as Dennis, Gay and Welsch 1981,
    but of a diagonal: drives hardly depend on each other). Without, a single drive whose steps
    are too long has all others damped.
    """
    here, damping = start, DAMPING
    bend = np.zeros(int(np.sum(here.free)))
    for _ in range(DESCENTS):
        step = solve_shape_step(here, damping, bend)
        if predict_gain(here, step, bend) < flat:
            break
        shape = here.beta.copy()
        shape[here.free] += step
        moved = here.problem.linearised(here.problem.base.standard(shape))
        trial = fit_linear_parameters(moved, here.sigma)
        bend = measure_bend(here, trial, bend) if learn else bend
        gain = here.cost - trial.cost
        if gain > 0.0:
            here, damping = trial, 0.1 * damping
        else:
            damping = max(10.0 * damping, DAMPING)
        if damping > MOST_DAMPING or 0.0 < gain < flat:
            break
    return here


def measure_bend(here: ProjectedSquares, trial: ProjectedSquares, before: Array) -> Array:
    """Curvature beyond that of Gauss-Newton, by how the gradient changed; zero where it is less."""
    (J, e), (K, f) = here.reduced, trial.reduced
    moved = trial.beta[trial.free] - here.beta[here.free]
    some = np.abs(moved) > 1e-9 * np.maximum(np.abs(here.beta[here.free]), 1e-9)
    change = J.T @ e - K.T @ f
    found = before.copy()
    found[some] = np.maximum(change[some] / moved[some] - np.sum(J**2, axis=0)[some], 0.0)
    return found


def predict_gain(here: ProjectedSquares, step: Array, bend: Array) -> float:
    """By how much a step of the shapes would raise the log-likelihood, by what is known of it."""
    J, e = here.reduced
    left = e - J @ step
    return 0.5 * float(e @ e - left @ left - step @ (bend * step))


def solve_shape_step(here: ProjectedSquares, damping: float, bend: Array) -> Array:
    """``min ||J d - e||^2 + ||diag(sqrt(damping J^2 + bend)) d||^2`` within the bounds.

    J and e are projected; the norms of J's columns are their scale.
    """
    from scipy.optimize import lsq_linear  # a quarter of a second that few runs need

    J, e = here.reduced
    shape = here.beta[here.free]
    norms = np.linalg.norm(J, axis=0)
    step = np.zeros(len(shape))
    bounds = here.problem.idim.shape_bounds
    known = np.equal(*bounds)
    largest = max(float(np.linalg.norm(e)), float(np.max(norms, initial=0.0)))
    acting = (norms > 1e-12 * largest) & ~known
    if not np.any(acting):
        return step
    low, high = (np.array(bounds) - shape)[:, acting] * norms[acting]
    unit = J[:, acting] / norms[acting]
    A = np.vstack([unit, np.diag(np.sqrt(damping + bend[acting] / norms[acting] ** 2))])
    b = np.concatenate([e, np.zeros(unit.shape[1])])
    tiny = 1e-12 * (high - low)
    found = lsq_linear(A, b, (np.minimum(low, 0.0) - tiny, np.maximum(high, 0.0) + tiny), "bvls")
    step[acting] = found.x / norms[acting]
    return np.clip(step, *(np.array(bounds) - shape))


def find_shapes_to_hold(found: ProjectedSquares) -> dict[str, str]:
    """Shapes that cannot be estimated, by name, and why."""
    idim = found.problem.idim
    if not idim.free:
        return {}
    shapes, held, room = found.beta[found.free], {}, np.empty(len(idim.shape))
    for k, (each, value) in enumerate(zip(idim.shape_parameters, shapes, strict=True)):
        low, high = each.bounds.lower, each.bounds.upper
        room[k] = value if low > 0.0 else 0.5 * (high - low)
        if low == high:
            held[each.name] = FACT
        elif find_bound_side(each, value):
            held[each.name] = "rests at its bound"
    if len(held) == len(idim.shape):
        return held
    J, _ = found.reduced
    while True:  # the worst is held first: others may be determined then
        left = [k for k, each in enumerate(idim.shape_parameters) if each.name not in held]
        spread = System(J[:, left], np.zeros(len(J)), 0.0).inverse() if left else np.zeros((0, 0))
        norms = np.linalg.norm(J[:, left], axis=0)
        std = np.where(norms > 0.0, np.sqrt(np.sum(spread**2, axis=1)), np.inf)
        share = std / room[left]
        if not left or np.max(share) < 1.0:
            return held
        k = left[int(np.argmax(share))]
        held[idim.shape_parameters[k].name] = UNDETERMINED
