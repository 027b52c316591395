"""What has a size: delays, zeros, filters of the logger, ripples.

Each is a `SizedReading`, with some numbers that are 0 for the log as it stands. By how much the
torque that a model leaves changes with them is a column beside the regressor: what least squares
leaves of it meets what it leaves of the torque (a score test), and steps of Gauss and Newton find
the size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.linalg import eigh, solve_triangular

from dynident.core.arrays import Array
from dynident.core.factors import System
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.scene import Scene
from dynident.diagnosis.suspicion import (
    LogCase,
    Reading,
    Suspicion,
    compute_column_rms,
    make_repairable_suspicion,
)
from dynident.filters.blocks import low_pass_signals
from dynident.filters.filters import interpolate_rows
from dynident.filters.shift import shift_in_time
from dynident.instants.motion import BASE, WRENCHES
from dynident.instants.squares import project_onto_span, sum_correlations
from dynident.recording.repairs import LogRepair, collapse_equal_values, undo_lowpass

EIGHTHS = 8
"""Of a log: where a gain may change, and between which sizes may differ."""
Column = tuple[list[Array] | None, ...]
"""Of a log and of those beside it, as `MotionAt.spread` has it; None where it is zero."""


@dataclass(frozen=True, eq=False)
class SizedReading:
    """Readings that differ by some numbers."""

    read: Callable[[Scene, Array], Scene]
    """A scene as it was with such numbers, shape (k,)."""
    tell: Callable[[Scene, Array, Array], Suspicion | None]
    """The suspicion that they are so, from the scene, the numbers and their standard errors; None
    for none."""
    step: float
    """Half of the step of differences."""
    longest: float
    """Step of a search at most."""
    count: int = 1
    """How many numbers."""
    least: float = -np.inf
    """They are at least so much."""
    starts: tuple[float, ...] = ()
    """Where a search may start, of one number that may be too large for a first step from 0."""
    most: float = np.inf
    """Of a size from there on no error bar is one: nothing was looked for beyond it."""

    def next(self, s: Scene, size: Array, turns: int) -> Array:
        """A size after some more steps of Gauss and Newton."""
        for _ in range(turns):
            now = self.read(s, size)
            beta = now.problem.system.solve()
            step = score_columns(now, differentiate_residuals(s, beta, [(self, size)])).together()
            size = np.maximum(size + np.clip(step, -self.longest, self.longest), self.least)
            if np.all(np.abs(step) < limit.SETTLED_STEP * self.step):
                break
        return size


def differentiate_residuals(
    s: Scene, beta: Array, families: Sequence[tuple[SizedReading, Array]]
) -> list[Column]:
    """By how much what a model leaves shrinks with each number of some families, about a size."""

    def fallen(less: Scene, more: Scene, step: float) -> list[Array] | None:
        if less is more:
            return None
        if less.motion is more.motion:
            pair = [each.motion.spread(each.applied) for each in (less, more)]
        else:
            pair = [each.motion.spread(each.rest(beta)) for each in (less, more)]
        return [(one - other) / step for one, other in zip(*pair, strict=True)]

    found: list[Column] = []
    for family, size in families:
        for k in range(family.count):
            turn = np.where(np.arange(family.count) == k, family.step, 0.0)
            pair = (family.read(s, each) for each in (size - turn, size + turn))
            logs = zip(*((x, *x.beside) for x in pair), strict=True)
            step = 2.0 * family.step
            found.append(tuple(fallen(less, more, step) for less, more in logs))
    return found


@dataclass(frozen=True, eq=False)
class SizeScores:
    """What least squares leaves of some columns and of the torque, products of these."""

    blind: Array
    """Of the columns with each other, shape (k, k)."""
    cross: Array
    """Of the columns with the torque, shape (k,)."""
    squares: Array
    """Of the columns before, shape (k,)."""
    rest: float
    """Of the torque with itself."""

    def together(self) -> Array:
        """How much of the columns is in the torque, of all at once."""
        scale = np.sqrt(np.maximum(self.squares, np.finfo(float).tiny))
        blind = self.blind / np.outer(scale, scale)
        return np.asarray(np.linalg.lstsq(blind, self.cross / scale, rcond=limit.UNSEEN)[0] / scale)

    @property
    def gained(self) -> Array:
        """By how much the square of the rest falls with each column alone, shape (k,)."""
        seen = np.diag(self.blind) > limit.UNSEEN * self.squares
        own = np.where(seen, np.diag(self.blind), 1.0)
        return np.asarray(np.where(seen, self.cross**2 / own, 0.0))

    def share(self, some: Sequence[int]) -> float:
        """Share of the squared error that is left with some of the columns."""
        some = [k for k in some if self.blind[k, k] > limit.UNSEEN * self.squares[k]]
        if not some or self.rest <= 0.0:
            return 1.0
        own = SizeScores(self.blind[np.ix_(some, some)], self.cross[some], self.squares[some], 0.0)
        return max(0.0, 1.0 - float(own.together() @ own.cross) / self.rest)


def score_columns(s: Scene, columns: Sequence[Column]) -> SizeScores:
    """Scores of columns, as `differentiate_residuals` has them along the model that is tested.

    Each group counts in what least squares leaves of it, or one that no model explains would hide
    what others gain.
    """
    weights = s.problem.sharp_scale
    return score_products(s.problem.weigh(weights), *sum_column_products(s, weights, columns))


def sum_column_products(
    s: Scene, weights: Array, columns: Sequence[Column]
) -> tuple[Array, Array, Array]:
    """Products of columns with the regressor, each other and the torque, joints weighed.

    Shapes (p, k), (k, k) and (k,).
    """
    count, p = len(columns), s.base.count
    products, blind, cross = np.zeros((p, count)), np.zeros((count, count)), np.zeros(count)
    for i, known in enumerate((s, *s.beside)):
        given = np.array([k for k in range(count) if columns[k][i] is not None], dtype=np.int64)
        if not len(given):
            continue
        every = [known.motion.gather(own) for k in given if (own := columns[k][i]) is not None]
        found = np.zeros((p, len(given)))
        for j, (places, X) in enumerate(known.motion.rows):
            rows = np.column_stack([each[j] for each in every])
            weighed = weights[i * s.groups + j] * rows
            found[places] += X.T @ weighed
            blind[given[:, None], given] += rows.T @ weighed
            cross[given] += known.sides[j] @ weighed
        products[:, given] += found
    return products, blind, cross


def score_products(system: System, products: Array, blind: Array, cross: Array) -> SizeScores:
    """What least squares leaves of columns, by their products."""
    solved = solve_triangular(system.A, products, trans="T", check_finite=False)
    squares = np.diag(blind).copy()
    return SizeScores(blind - solved.T @ solved, cross - solved.T @ system.b, squares, system.rest)


def suspect_families(case: LogCase, families: Sequence[SizedReading]) -> Iterator[Suspicion]:
    """What families make of a log, those whose first step, or one of whose starts, helps."""
    s, brief = case.scene, case.scene.brief
    starts = [(family, np.zeros(family.count)) for family in families]
    found = score_columns(brief, differentiate_residuals(brief, case.beta, starts))
    last = np.cumsum([family.count for family in families]).tolist()
    places = [range(end - family.count, end) for family, end in zip(families, last, strict=True)]
    for family, own in zip(families, places, strict=True):
        start = np.zeros(family.count)
        # one number may be a finding that explains no more
        most = limit.WORTH_SURE**2 if family.count == 1 else limit.PROMISING
        hopeful = found.share(own) < most
        if family.starts:
            reads = [family.read(brief, np.array([each])).problem for each in family.starts]
            errors = [r.free() if r.as_many_as(brief.problem) else np.inf for r in reads]
            if min(errors) < limit.PROMISING * brief.problem.free():
                start, hopeful = np.array([family.starts[int(np.argmin(errors))]]), True
        if hopeful:
            yield from suspect_size(s, family, family.next(brief, start, limit.TURNS))


def suspect_size(s: Scene, family: SizedReading, size: Array) -> Iterator[Suspicion]:
    """What a family makes of a scene at about some size."""
    if np.all(size == family.least):
        return

    def measure(s: Scene) -> Suspicion | None:
        exact, noise, error = measure_size(s, family, family.next(s, size, limit.TURNS))
        told = family.tell(s, exact, error) if np.all(np.isfinite(error)) else None
        unsure = np.maximum(noise, error * limit.SURE_OF_ALL / limit.SURE)
        unsure[np.abs(exact) >= family.most] = np.inf
        sure = float(np.min(np.abs(exact) / np.maximum(unsure, np.finfo(float).tiny)))
        return None if told is None else replace(told, sure=sure)

    first = family.tell(s, size, np.zeros(family.count))
    if first is not None:
        yield replace(first, measure=measure)


def measure_size(s: Scene, family: SizedReading, size: Array) -> tuple[Array, Array, Array]:
    """A size after one more step, with its standard errors.

    Rows are weighed by what least squares leaves of each joint. The error by noise is that of a
    sandwich with the correlations of neighbouring instants, their weights falling to zero. What a
    model lacks is not noise: it says the same at all instants that are like each other, and of each
    joint something else. With that the sandwich has clusters of two ways, joints and eighths of
    each log (Cameron, Gelbach and Miller, 2011), or noise in the place of eighths where it is more.

    Returns
    -------
    size, noise, error : ndarray, shape (k,)
        Errors are infinite where the model has the column already.
    """
    now = family.read(s, size)
    beta = now.problem.system.solve()
    columns = differentiate_residuals(s, beta, [(family, size)])
    A, y, logs, groups, instants = [], [], [], [], []
    for i, known in enumerate((now, *now.beside)):
        motion = known.motion
        given = [
            [np.zeros(len(at)) for at in motion.when] if (fallen := column[i]) is None
            else motion.gather(fallen)
            for column in columns
        ]  # fmt: skip
        for j, (places, X) in enumerate(motion.rows):
            rest = known.sides[j] - X @ beta[places]
            sigma = float(compute_column_rms(rest)) if len(rest) else 1.0
            rows = np.zeros((len(rest), now.base.count))
            rows[:, places] = X / sigma
            A.append(rows)
            y.append(np.column_stack([rest, *(own[j] for own in given)]) / sigma)
            logs.append(np.full(len(rows), i))
            groups.append(np.full(len(rows), j))
            instants.append(motion.when[j])
    rows, both = np.vstack(A), np.vstack(y)
    before = np.sum(both[:, 1:] ** 2, axis=0)
    both = both - project_onto_span(rows, both, limit.DEPENDENT)
    own = both[:, 1:]
    blind = own.T @ own
    if np.any(np.diag(blind) <= limit.UNSEEN * before):
        return size, *np.full((2, family.count), np.inf)
    inverse = np.linalg.pinv(blind, rcond=limit.UNSEEN**2, hermitian=True)
    step = inverse @ (own.T @ both[:, 0])
    influence = (own @ inverse) * (both[:, 0] - own @ step)[:, None]
    noise, eighths = np.zeros(family.count), np.zeros((0, now.groups, family.count))
    which, group, when = (np.concatenate(each) for each in (logs, groups, instants))
    for i, known in enumerate((now, *now.beside)):
        own, count = which == i, len(known.instant)
        scores_then = np.zeros((count, now.groups, family.count))
        np.add.at(scores_then, (when[own], group[own]), influence[own])
        at_once = np.sum(scores_then, axis=1)
        alike = [sum_correlations(each, limit.FARTHEST) for each in at_once.T]
        noise += np.sum(at_once**2, axis=0) * alike
        starts = np.arange(EIGHTHS) * count // EIGHTHS
        eighths = np.concatenate([eighths, np.add.reduceat(scores_then, starts)])
    in_time = np.maximum(noise, np.sum(np.sum(eighths, axis=1) ** 2, axis=0))
    few = now.groups / max(1, now.groups - 1)
    of_joints = few * np.sum(np.sum(eighths, axis=0) ** 2, axis=0)
    both_ways = in_time + of_joints - np.sum(eighths**2, axis=(0, 1))
    variance = np.max([in_time, of_joints, both_ways], axis=0)
    size = np.maximum(size + np.clip(step, -family.longest, family.longest), family.least)
    return size, np.sqrt(noise), np.sqrt(variance)


# ---- torque and motion at other times

SOON = 1e-3
"""Half of the step of differences of times [s]."""


def suspect_delays(case: LogCase) -> Iterator[Suspicion]:
    """Torques that stand later or earlier in the log than the motion: all, one joint's, or each."""
    s, n = case.scene, case.n
    times = np.arange(-limit.LATEST, limit.LATEST + 0.5 * limit.DELAY_STEP, limit.DELAY_STEP)
    together, single = evaluate_delay_errors(s, times)
    alike, rest = interpolate_minimum(times, together)
    yield from suspect_size(s, build_delay_family(np.ones((n, 1))), np.array([alike]))
    if n == 1:
        return
    now = s.problem.system.rest
    each = [interpolate_minimum(times, single[j]) for j in range(n)]
    some = [j for j in range(n) if each[j][1] < limit.PROMISING * now]
    for j in some:
        yield from suspect_size(s, build_delay_family(np.eye(n)[:, [j]]), np.array([each[j][0]]))
    if some or rest < limit.PROMISING * now:
        family = build_delay_family(np.eye(n))
        start = np.array([time if j in some else 0.0 for j, (time, _) in enumerate(each)])
        if len(some) < 2:  # short delays show together, not one by one
            start = np.full(n, alike)
        yield from suspect_size(s, family, family.next(s.brief, start, limit.TURNS))


def build_delay_family(groups: Array) -> SizedReading:
    """Torques that are late [s], by one time for each group of joints.

    The groups have the shape (n, k), 1 where a joint is of one.
    """
    n, count = groups.shape

    def read(s: Scene, size: Array) -> Scene:
        return Reading(np.eye(n), groups @ size).of(s)

    def tell(s: Scene, size: Array, error: Array) -> Suspicion | None:
        delay = np.clip(groups @ size, -limit.LATEST, limit.LATEST)
        # where within its sample a torque stands, no log says
        largest = float(delay[np.argmax(np.abs(delay))])
        most = float(np.hypot(np.max(error), 1.0 / (np.sqrt(12.0) * s.log.rate)))
        if abs(largest) * s.log.rate < limit.SHORTEST_DELAY:
            return None
        names, moved = s.robot.joint_names, np.flatnonzero(delay)
        if np.all(delay == largest) or len(moved) == 1:
            whose = "the torque" if len(moved) == n else f"the torque of {names[moved[0]]}"
            word = "lags" if largest > 0.0 else "leads"
            what = f"{whose} {word} the motion by {1e3 * abs(largest):.2f} ± {1e3 * most:.2f} ms"
        else:
            times = ", ".join(f"{1e3 * time:.1f}" for time in delay)
            what = f"the torques lag the motion by {times} ± {1e3 * most:.1f} ms"
        repair = LogRepair(delay=collapse_equal_values(np.round(delay, 6)))
        return make_repairable_suspicion("delay", what, repair, n, count, most)

    longest = limit.DELAY_STEP * (1.0 if count == 1 else 2.0)
    return SizedReading(read, tell, SOON, longest, count, most=limit.LATEST)


def evaluate_delay_errors(s: Scene, times: Array) -> tuple[Array, Array]:
    """Squared errors of least squares with torques as they stand m times later in the log [s].

    Those with all joints late, shape (m,), and with one of them late, shape (n, m).
    """
    problem = s.problem
    moved = [interpolate_rows(s.torque, np.asarray(s.instant + t * s.rate)) for t in times]
    weights, total = problem.scale, problem.system.b
    squares = weights * problem.squares
    projected: Array = np.repeat(total[:, None], len(times), axis=1)
    size: Array = np.full(len(times), np.sum(squares))
    single = np.zeros((s.n, len(times)))
    for j in range(s.n):
        own = np.column_stack([torque[s.moving[:, j], j] for torque in moved])
        sides = problem.factors[j].Q.T @ own - problem.sides[j][:, None]
        change = problem.project(j, weights[j] * sides)
        more = weights[j] * np.sum(own**2, axis=0) - squares[j]
        single[j] = np.sum(squares) + more - np.sum((total[:, None] + change) ** 2, axis=0)
        projected, size = projected + change, size + more
    return size - np.sum(projected**2, axis=0), single


def interpolate_minimum(places: Array, values: Array) -> tuple[float, float]:
    """Place and value of the smallest of evenly spaced values, by a parabola about it."""
    k = int(np.clip(np.argmin(values), 1, len(values) - 2))
    a, b, c = values[k - 1 : k + 2]
    bend = a - 2.0 * b + c
    shift = float(np.clip(0.5 * (a - c) / bend, -1.0, 1.0)) if bend > 0.0 else 0.0
    value = b - 0.25 * (a - c) * shift if bend > 0.0 else min(a, b, c)
    return float(places[k] + shift * (places[1] - places[0])), float(value)


def suspect_late_signals(case: LogCase) -> Iterator[Suspicion]:
    """Torques, wrenches or the base that stand later in the log than the joints' motion."""
    s, base = case.scene, case.scene.log.base
    moves = base is not None and not base.still
    sensors = {
        "torque delay": ("the torques stand", ("tau",) if s.log.torque != "none" else ()),
        "wrench delay": ("the contacts' wrenches stand", tuple(WRENCHES + n for n in s.wrenches)),
        "base delay": ("the base's motion stands", BASE if moves else ()),
    }
    families = [
        build_lateness_family(diagnosis, what, labels)
        for diagnosis, (what, labels) in sensors.items()
        if labels
    ]
    yield from suspect_families(case, families)


def build_lateness_family(diagnosis: str, what: str, labels: Sequence[str]) -> SizedReading:
    """Signals that stand later in the log than the joints' positions [s]."""

    def read(s: Scene, size: Array) -> Scene:
        own = {label: s.signals[label] for label in labels}
        late = size[0] * s.rate
        return s.saying({k: shift_in_time(x, np.full(x.shape[1], late)) for k, x in own.items()})

    def tell(s: Scene, size: Array, error: Array) -> Suspicion | None:
        time = float(size[0])
        if abs(time) * s.log.rate < limit.SHORTEST_DELAY or abs(time) > limit.LONGEST:
            return None
        word = "later" if time > 0.0 else "earlier"
        return Suspicion(
            diagnosis,
            f"{what} {1e3 * abs(time):.3g} ± {1e3 * error[0]:.2g} ms {word} in the log than the "
            "joints' positions",
            Reading.plain(s.n, lambda known: read(known, size)),
            LogRepair(delay=round(time, 6)) if "tau" in labels else None,
            f"shift these columns by {1e3 * abs(time):.3g} ms, or set one clock for all sensors",
            freedom=1,
            error=float(error[0]),
        )

    most = round(limit.LONGEST / limit.LATENESS_STEP)
    starts = tuple(limit.LATENESS_STEP * k for k in range(-most, most + 1))
    return SizedReading(read, tell, SOON, limit.LATENESS_STEP, starts=starts)


def suspect_position_lags(case: LogCase) -> Iterator[Suspicion]:
    """Positions of one joint that stand later or earlier in the log than all else."""
    if case.scene.course is not None and case.n > 1:
        yield from suspect_families(case, [build_lag_family(case.n, j) for j in case.robot.driven])


def build_lag_family(n: int, joint: int) -> SizedReading:
    """The position of a joint that lags [s]."""

    def lag(size: Array) -> Array:
        return np.where(np.arange(n) == joint, np.clip(size[0], -limit.LATEST, limit.LATEST), 0.0)

    def tell(s: Scene, size: Array, error: Array) -> Suspicion | None:
        time = float(lag(size)[joint])
        if abs(time) * s.log.rate < limit.SHORTEST_DELAY:
            return None
        word = "lags" if time > 0.0 else "leads"
        size_ms = f"{1e3 * abs(time):.2f} ± {1e3 * error[0]:.2f} ms"
        what = f"the position of {s.robot.joint_names[joint]} {word} all else by {size_ms}"
        repair = LogRepair(lag=collapse_equal_values(np.round(lag(size), 6)))
        return make_repairable_suspicion("position delay", what, repair, n, 1, float(error[0]))

    longest, most = 2.0 * limit.DELAY_STEP, limit.LATEST
    return SizedReading(lambda s, size: s.lagged(lag(size)), tell, SOON, longest, most=most)


# ---- filters of the logger


def suspect_slow_loggers(case: LogCase) -> Iterator[Suspicion]:
    """Torques, or positions, that went through a low-pass of the logger."""
    families = [build_filter_family("tau", 1), build_filter_family("tau", 2)]
    if case.scene.course is not None:
        families.append(build_filter_family("q", 1))
    yield from suspect_families(case, families)


def build_filter_family(signal: Literal["q", "tau"], order: int) -> SizedReading:
    """Signals behind a Butterworth filter, by one over the angular frequency of its cutoff [s]."""
    word = {"q": "position", "tau": "torque"}[signal]

    def slowness(size: Array) -> tuple[float, ...]:
        time = float(size[0])
        return (time,) if order == 1 else (np.sqrt(2.0) * time, time**2)

    def read(s: Scene, size: Array) -> Scene:
        if signal == "q":
            return s.quickened(slowness(size))
        polynomial = np.array([*reversed(slowness(size)), 1.0])
        return s.driven(undo_lowpass(s.torque, polynomial, s.rate))

    def tell(s: Scene, size: Array, error: Array) -> Suspicion | None:
        hz = 1.0 / (2.0 * np.pi * max(float(size[0]), np.finfo(float).tiny))
        if not limit.SLOWEST_FILTER < hz < limit.QUICKEST_FILTER:
            return None
        before, behind = (np.sum(np.std(x.torque, axis=0)) for x in (s, read(s, size)))
        if behind < limit.LEFT_BEHIND * before:
            return None
        rounded = tuple(float(f"{a:.6g}") for a in slowness(size))
        return make_repairable_suspicion(
            f"slow {word}",
            f"the {word}s went through a low-pass of order {order} at {hz:.3g} ± "
            f"{hz * float(error[0] / size[0]):.2g} Hz",
            LogRepair(unfilter={signal: rounded}),
            s.n,
            2,  # its order, too
            float(error[0]),
        )

    starts = tuple(1.0 / (2.0 * np.pi * hz) for hz in limit.FILTER_STARTS)
    return SizedReading(read, tell, SOON, 0.05, least=0.0, starts=starts)


# ---- zeros, ripples, drifts

TURN = 1e-4
"""Half of the step of differences of positions [rad or m]."""


def suspect_encoder_offsets(case: LogCase) -> Iterator[Suspicion]:
    """An encoder whose zero is elsewhere."""
    yield from suspect_families(case, [build_offset_family(case.n, j) for j in case.robot.driven])


def build_offset_family(n: int, joint: int) -> SizedReading:
    """A position that lacks something [rad or m]."""

    def offset(size: Array) -> Array:
        return np.where(np.arange(n) == joint, size[0], 0.0)

    def tell(s: Scene, size: Array, error: Array) -> Suspicion:
        own = s.robot.joints[joint]
        turn, unit = (180.0 / np.pi, "deg") if own.kind == "revolute" else (1.0, "m")
        return make_repairable_suspicion(
            "encoder offset",
            f"the position of {own.name} lacks {turn * size[0]:.2f} ± {turn * error[0]:.2f} {unit}",
            LogRepair(offset=collapse_equal_values(np.round(offset(size), 6))),
            n,
            1 if abs(size[0]) <= limit.LARGEST_ZERO else 2,  # its sine and cosine
            float(error[0]),
        )

    return SizedReading(
        lambda s, size: s.along(s.q + offset(size), s.dq, s.ddq), tell, TURN, limit.OFFSET_STEP
    )


BINS = 2048
"""Of a joint's motion, in which what is left of its torque is added up."""


def suspect_ripples(case: LogCase) -> Iterator[Suspicion]:
    """Torques that go up and down with a joint's position: gears' teeth, motors' poles.

    How often, is where the spectrum of what is left over the position is largest; sine and cosine
    of that are columns beside the regressor.
    """
    s = case.scene
    if s.course is None:
        return
    beta = s.problem.system.solve()
    rest, weights = s.rest(beta), s.problem.sharp_scale
    orders = {j: find_loudest_order(s.q[at, j], rest[at, j]) for j, at in enumerate(s.moving.T)}
    heard = {
        j: (order, build_ripple_waves(s, j, order))
        for j, order in orders.items()
        if order is not None
    }
    if not heard:
        return
    alone = [(build_ripple_family(s.n, {j: wave}), np.zeros(2)) for j, wave in heard.items()]
    found = score_columns(s, differentiate_residuals(s, beta, alone))
    gained = {j: (1.0 - found.share((2 * k, 2 * k + 1))) * found.rest for k, j in enumerate(heard)}
    least = (1.0 - limit.PROMISING) * weights[: s.n] * np.sum(rest**2 * s.moving, axis=0)
    waves = {j: wave for j, wave in heard.items() if gained[j] > least[j]}
    if waves:
        family = build_ripple_family(s.n, waves)
        yield from suspect_size(s, family, family.next(s.brief, np.zeros(family.count), 1))


def find_loudest_order(q: Array, rest: Array) -> float | None:
    """How often a turn what is left of a torque goes up and down most, if the motion tells."""
    width = float(np.ptp(q)) if len(q) else 0.0
    if width * limit.MOST_PERIODS < 2.0 * np.pi * limit.FEWEST_PERIODS:
        return None
    place = np.minimum((BINS * (q - np.min(q)) / width).astype(int), BINS - 1)
    slow = np.vander((q - np.mean(q)) / width, 3)  # changes that are not a ripple's
    rest = rest - slow @ np.linalg.lstsq(slow, rest, rcond=None)[0]
    sums = np.bincount(place, rest, BINS)
    power = np.abs(np.fft.rfft(sums, 4 * BINS)) ** 2
    order = 2.0 * np.pi * np.fft.rfftfreq(4 * BINS, width / BINS)
    some = (order >= 2.0 * np.pi * limit.FEWEST_PERIODS / width) & (order <= limit.MOST_PERIODS)
    if np.sum(some) < 3:
        return None
    return interpolate_minimum(np.asarray(order[some], dtype=float), -np.asarray(power[some]))[0]


def build_ripple_waves(s: Scene, joint: int, order: float) -> Array:
    """Sine and cosine of a multiple of a position, low-passed like torque, (kept samples, 2)."""
    log = s.log
    turns = order * log.q[:, joint]
    waves = np.column_stack([np.sin(turns), np.cos(turns)])
    cutoffs = [(log.filters[joint].cutoff,) * 2]
    return low_pass_signals([waves], log.runs, log.rate, cutoffs, s.thin)[0]


def build_ripple_family(n: int, waves: Mapping[int, tuple[float, Array]]) -> SizedReading:
    """Joints with sines and cosines of a multiple of their position in their torques."""

    def read(s: Scene, size: Array) -> Scene:
        torque = s.torque.copy()
        for (j, (_, wave)), own in zip(waves.items(), size.reshape(-1, 2), strict=True):
            torque[:, j] -= wave @ own
        return s.driven(torque)

    def tell(s: Scene, size: Array, error: Array) -> Suspicion:
        names, amplitude = s.robot.joint_names, np.hypot(size[0::2], size[1::2])
        whose = ", ".join(
            f"that of {names[j]} {order:.3g} times a turn by {own:.3g}"
            for (j, (order, _)), own in zip(waves.items(), amplitude, strict=True)
        )
        return Suspicion(
            "ripple", f"the torques ripple with the position, {whose}",
            Reading.plain(n, lambda known: read(known, size)),
            advice="add an [[element]] of kind 'ripple' at each", freedom=3 * len(waves),
            error=float(np.max(error)), fast=True,
        )  # fmt: skip

    return SizedReading(read, tell, 1.0, np.inf, 2 * len(waves))


def suspect_gain_steps(case: LogCase) -> Iterator[Suspicion]:
    """Torques whose gain is another from some eighth of the log on."""
    s = case.scene
    starts = [int(k * len(s.torque) // EIGHTHS) for k in range(1, EIGHTHS)]
    (_, factor), start = min(zip((measure_gain(s, each) for each in starts), starts, strict=True))
    if abs(factor - 1.0) < limit.OTHER or factor <= 0.0:
        return

    def change(s: Scene) -> Scene:
        torque = s.torque.copy()
        torque[start:] *= factor
        return s.driven(torque)

    times = f"from about {start / s.rate:.3g} s on are {1.0 / factor:.3g} times"
    yield Suspicion(
        "gain step", f"the torques {times} what they were before", Reading.plain(s.n, change),
        advice="fit the stretches before and behind as two logs, and check their gains",
        freedom=2,  # where it is, too
    )  # fmt: skip


def measure_gain(s: Scene, start: int = 0) -> tuple[float, float]:
    """The least share that least squares leaves with another gain from a sample on, and that gain.

    Of all else that is logged, ``y_1``, and these, ``y_2``, the combination ``v_1 y_1 + v_2 y_2``
    leaves the least share by the first ``E v = lambda N v``, with products E of what is left of
    both and N of themselves. By steps of Gauss and Newton, whose column is the measured torque,
    noise would become less by making the torque smaller. Nan where either is nothing.
    """
    problem, behind, square = s.problem, np.zeros(s.base.count), 0.0
    total = float(problem.scale @ problem.squares)
    for j, weight in enumerate(problem.scale[: s.n]):
        own = np.where(s.instant >= start, s.tau[:, j], 0.0)[s.moving[:, j]]
        square += weight * float(own @ own)
        behind += problem.project(j, weight * (problem.factors[j].Q.T @ own)[:, None])[:, 0]
    if not 0.0 < square < total:
        return np.inf, 1.0
    both, squares = np.array([problem.system.b - behind, behind]), np.diag([total - square, square])
    shares, combined = eigh(squares - both @ both.T, squares)
    return float(shares[0]), float(combined[1, 0] / (combined[0, 0] or limit.UNSEEN))


def suspect_drifts(case: LogCase) -> Iterator[Suspicion]:
    """Torques whose zero moves along the log; beside other logs it may stand elsewhere, too."""
    s, n = case.scene, case.n
    ramp = np.linspace(-1.0, 1.0, len(s.torque))
    zero = np.column_stack([ramp, np.ones_like(ramp)]) if s.beside else ramp[:, None]
    count = zero.shape[1]
    found = s.factorise(np.hstack([s.tau, zero[s.instant]]))
    size = found.extra(np.eye(n, n + count), count)

    def change(s: Scene) -> Scene:
        return s.driven(s.torque - zero @ size.T)

    worst = int(np.argmax(np.abs(size[:, 0]) / compute_column_rms(s.tau)))
    yield Suspicion(
        "drift",
        f"the torques drift, that of {case.names[worst]} by {2.0 * size[worst, 0]:.3g}",
        Reading.plain(n, change),
        freedom=n * count,
        advice="let the sensors and drives warm up, or fit a shorter stretch of the log",
    )
