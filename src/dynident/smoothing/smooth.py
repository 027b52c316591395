"""Motion and parameters of logs at once: the equations of motion as soft constraints.

The derivation is in docs/theory/smoothing.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.inner import ConstrainedSolver
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array, Booleans
from dynident.core.errors import ComputationError, InputError
from dynident.core.factors import System, triangularise_rows
from dynident.core.options import Options, broadcast_to_joints
from dynident.core.schema import Number
from dynident.core.side_by_side import HERE, Engine
from dynident.core.text import format_count
from dynident.estimators.constrained import (
    ConstrainedFit,
    build_constrained_setting,
    finish_constrained_estimate,
)
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import Estimate
from dynident.plots.overview import find_step
from dynident.regression.generalised import GeneralisedSamples, has_only_joint_torques
from dynident.regression.problem import Problem, Regression, refuse_sensors
from dynident.regression.rows import Rows
from dynident.regression.statistics import OUTLYING, EstimatedMotion
from dynident.regression.weighted import Reweighting, compute_literature_std, find_smallest_sigma
from dynident.smoothing.ml import JointNoise, describe_noise, name_what_hides_noise
from dynident.smoothing.motion import (
    LEAST_FREEDOM,
    LEAST_JITTER,
    Equations,
    LinearRun,
    MotionRun,
    MotionShare,
    SampleSpreads,
    differentiate_torque,
    measure_taken,
    renew_spreads,
)
from dynident.smoothing.spline import Knots

STEP = 1e-2
"""Of beta, in standard deviations, below which it has settled."""
SAME = 1e-3
"""Share of what is settled by which a state that comes back differs from an earlier one."""
HALVINGS = 20
ROUNDING = 1e-9
"""Of the cost, by which a step may raise it."""
LAST_DIGITS = 8.0 * float(np.finfo(float).eps)
"""Of a position, that a spline's sum of six products is off by."""
BLURRED = float(np.sqrt(np.pi / 2.0))
"""Width of the sign of a speed over the standard deviation of that speed: ``E sign(v + n)``, an
error function, has there the slope of ``tanh(v / width)``."""
MOST_KNOTS = 50.0
"""In a second, unless more are asked for: no arm's motion is faster [Hz]."""
FELT = 0.1
"""Share of encoders' noise below which that of instants is not felt."""
ORDER = 6
"""Of the differences that show the positions' noise, to begin with."""
TINY = 1e-12
ROUNDS = 50
"""In which motions are fitted to positions alone, to begin with, at most."""
SETTLED = 1e-2
"""Relative change of standard deviations at which they rest."""


@dataclass(frozen=True)
class Smoothing(Options):
    """How the motion of logs is described."""

    knots_hz: Annotated[
        Annotated[Number, Field(gt=0.0)] | None,
        "knots per second of the motion's splines; by default twice position_hz, at most "
        f"{MOST_KNOTS:g} and one per sample [Hz]",
    ] = None


@dataclass(frozen=True, eq=False)
class KnownNoise:
    """Standard deviations that are given, not a number where they are to be found, (n,)."""

    position: Array
    torque: Array

    def or_known_torque(self, found: Array) -> Array:
        """What was found of torques, or what is given."""
        return np.where(np.isnan(self.torque), found, self.torque)


def collect_known_noise(problem: Problem, noise: JointNoise) -> KnownNoise:
    """Noise as it is given."""
    n = problem.robot.n
    if noise.position_std is not None and not np.all(np.array(noise.position_std) > 0.0):
        raise InputError("position_std has to be positive for smooth; ml takes zero, too")
    given = [
        np.full(n, np.nan) if own is None else np.array(broadcast_to_joints(own, n, name))
        for name, own in (("position_std", noise.position_std), ("torque_std", noise.torque_std))
    ]
    return KnownNoise(*given)


@dataclass(frozen=True, eq=False)
class LogInstants:
    """A log at its own instants."""

    log: GeneralisedSamples
    """Whose samples are those that were measured."""
    at: Array
    """Where these are among the samples on the log's clock, shape (samples,)."""
    runs: tuple[MotionRun, ...]
    floor: Array
    """Shape (n,). Of the positions' noise: that of the steps in which they are counted [rad or
    m]."""
    stamped: bool
    """Whether samples have instants of their own, which may be off."""

    def evaluate(self, coefficients: Sequence[Array]) -> Array:
        """Positions, speeds and accelerations, shape (3, samples, n); zero outside of runs."""
        motion = np.zeros((3, *self.log.measured.shape))
        for run, own in zip(self.runs, coefficients, strict=True):
            motion[:, run.own] = run.motion(own)[:3]
        return motion


def take_log(log: GeneralisedSamples, wanted: Smoothing, *, clocked: bool = False) -> LogInstants:
    """The samples of a log as they were measured, or on its clock, with its splines' knots."""
    hz = wanted.knots_hz
    if hz is None:
        hz = min(log.rate, 2.0 * max(log.position_hz), MOST_KNOTS)
    own = None if clocked else log.sampled
    at = np.arange(len(log.q), dtype=float) if own is None else own.at
    q, tau = (log.measured, log.tau) if own is None else (own.q, own.tau)
    # all else was resampled to the clock: each sample has what its nearest one there has
    near = np.minimum(np.round(at).astype(np.int64), len(log.q) - 1)
    beside: dict[str, Any] = {
        name: None if (signal := getattr(log, name)) is None else np.asarray(signal)[near]
        for name in ("temp", "known", "left_out", "moving", "stated")
    }
    none = np.zeros(np.shape(q))
    taken = replace(
        log.undecimated(),
        measured=np.asarray(q),
        tau=np.asarray(tau),
        segments=find_ranges(at, log.segments),
        runs=find_ranges(at, log.runs),
        sampled=None,
        qref=None,
        dqref=None,
        kept=None,
        q=none,
        dq=none,
        ddq=none,
        **beside,
    )
    time = at / log.rate
    runs = tuple(
        MotionRun(
            slice(a, b),
            time[a:b],
            taken.measured[a:b],
            Knots.over(time[a:b], 1.0 / hz),
            np.zeros(b - a),
        )
        for a, b in taken.runs
    )
    # what rounds to a step errs by the step over the root of 12
    floor = np.nan_to_num([find_step(column) for column in taken.measured.T]) / np.sqrt(12.0)
    return LogInstants(taken, at, runs, floor, own is not None)


def find_ranges(at: Array, ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Samples that were taken within ranges of those on the clock."""
    ends = np.searchsorted(at, [(a - 1e-6, b - 1e-6) for a, b in ranges])
    return tuple((a, b) for a, b in ends.tolist() if b - a > ORDER)


@dataclass(frozen=True, eq=False)
class InitialMotion:
    """The motion of a log by its positions alone, and the log at the instants of that."""

    log: LogInstants
    spreads: SampleSpreads
    coefficients: tuple[Array, ...]
    taken: list[MotionShare]
    evidence: float


def fit_positions(given: LogInstants, known: Array) -> InitialMotion:
    """As smooth a motion as the likelihood of the positions has it.

    Where all joints stand off by what one delay of a sample would make of them, it may be noise of
    stamps or of encoders: of both beginnings the likelier end counts. Without stamps it is what
    splines lack of joints that speed up together, and a joint alone cannot tell when it was
    measured. `known`: shape (n,). Standard deviations that are not to be found; not a number
    elsewhere.
    """
    n = given.log.measured.shape[1]
    changes = np.vstack([np.diff(run.q, ORDER, axis=0) for run in given.runs])
    # the k-th difference of white noise has binomial(2 k, k) times its variance
    rough = np.sqrt(np.mean(changes**2, axis=0) / math.comb(2 * ORDER, ORDER)) + TINY
    position = np.where(np.isnan(known), np.maximum(rough, given.floor), known)
    coefficients = tuple(np.zeros((run.knots.coefficients, n)) for run in given.runs)
    plain = improve_positions(
        given, SampleSpreads(position, rough, LEAST_JITTER), coefficients, known, timed=False
    )
    if n == 1 or not given.stamped:
        return plain
    motions = [run.motion(c) for run, c in zip(given.runs, plain.coefficients, strict=True)]
    measured = np.vstack([run.q for run in given.runs])
    errors, speeds = (
        measured - np.vstack([own[0] for own in motions]),
        np.vstack([own[1] for own in motions]),
    )
    scaled = speeds / plain.spreads.position**2
    # of each sample the delay that explains its n errors best, which leaves n - 1 of them
    late = np.sum(errors * scaled, axis=1) / np.maximum(np.sum(speeds * scaled, axis=1), TINY)
    rest = np.sqrt(np.mean((errors - late[:, None] * speeds) ** 2, axis=0) * n / (n - 1.0))
    position = np.where(np.isnan(known), np.maximum(rest, given.floor) + TINY, known)
    period = 1.0 / given.log.rate
    jitter = max(float(np.sqrt(np.mean(np.minimum(np.abs(late), period) ** 2))), LEAST_JITTER)
    spreads = SampleSpreads(position, plain.spreads.bend, jitter)
    other = improve_positions(given, spreads, plain.coefficients, known, timed=True)
    return other if other.evidence < plain.evidence else plain


def improve_positions(
    given: LogInstants,
    spreads: SampleSpreads,
    coefficients: tuple[Array, ...],
    known: Array,
    *,
    timed: bool,
) -> InitialMotion:
    """Steps of the motion, of its samples' instants and of the spreads until these rest."""
    for _ in range(ROUNDS):
        pairs = zip(given.runs, coefficients, strict=True)
        linears = [LinearRun.of(run, spreads, c, None) for run, c in pairs]
        steps = [each.eliminated.solve(np.zeros(0)) for each in linears]
        runs = tuple(
            replace(run, late=run.late + each.delays(step, np.zeros(0)))
            for run, each, step in zip(given.runs, linears, steps, strict=True)
        )
        coefficients = tuple(c + step for c, step in zip(coefficients, steps, strict=True))
        given = replace(given, runs=runs)
        ahead = tuple(zip(runs, coefficients, strict=True))
        taken = [measure_taken(each) for each in linears]
        renewed = renew_spreads(taken, ahead, given.floor, known)
        if not timed:
            renewed = replace(renewed, instant=LEAST_JITTER)
        change, spreads = measure_change(renewed, spreads, given), renewed
        if change < SETTLED:
            break
    evidence = sum(each.evidence for each in linears)
    return InitialMotion(given, spreads, coefficients, taken, evidence)


def measure_change(new: SampleSpreads, old: SampleSpreads, given: LogInstants) -> float:
    """The largest relative change of a standard deviation.

    Instants do not count where they are off by less than their encoders' noise shows.
    """
    changes = [np.max(np.abs(np.log([new.position / old.position, new.bend / old.bend])))]
    speed = np.max(
        [
            np.sqrt(np.mean(np.gradient(run.q, run.stamps, axis=0) ** 2, axis=0))
            for run in given.runs
        ],
        axis=0,
    )
    if np.any(max(new.instant, old.instant) * speed > FELT * new.position):
        changes.append(abs(np.log(new.instant / old.instant)))
    return float(max(changes))


class ReachedPoint(NamedTuple):
    """Where steps led: parameters, and spreads of samples and torques."""

    beta: Array
    spreads: tuple[SampleSpreads, ...]
    sigma: Array


@dataclass(frozen=True, eq=False)
class SmoothingState:
    """Motions and parameters, with what they are weighed by."""

    logs: tuple[LogInstants, ...]
    problem: Problem
    known: KnownNoise
    beta: Array
    coefficients: tuple[tuple[Array, ...], ...]
    """Of each run of each log."""
    spreads: tuple[SampleSpreads, ...]
    """Of each log."""
    widths: tuple[Array, ...]
    """Of the sign of each joint's speed, of each log [rad/s or m/s], shape (n,)."""
    sigma: Array
    """Standard deviation of each joint's torque, shape (n,)."""
    kappa: float
    """By how much more torques err in sum than as many independent ones: they count as if each had
    kappa times its standard deviation."""
    penalty: float
    """What the prior adds to the cost, in units of sigma."""

    @property
    def reached(self) -> ReachedPoint:
        """What tells it from other states."""
        return ReachedPoint(self.beta, self.spreads, self.sigma)

    def measure_changes(self, before: ReachedPoint) -> float:
        """The largest relative change of a standard deviation."""
        pairs = zip(self.spreads, before.spreads, self.logs, strict=True)
        change = max(measure_change(*each) for each in pairs)
        return max(change, float(np.max(np.abs(np.log(self.sigma / before.sigma)))))

    @cached_property
    def motions(self) -> list[Array]:
        """Positions, speeds and accelerations of each log, shape (3, samples, n)."""
        pairs = zip(self.logs, self.coefficients, strict=True)
        return [given.evaluate(coefficients) for given, coefficients in pairs]

    @cached_property
    def rows(self) -> Regression:
        """The equations along the motions."""
        motions = [(motion[0], motion[1], motion[2]) for motion in self.motions]
        return self.problem.along(motions, self.widths)

    @property
    def counted_sigma(self) -> Array:
        """What errors of torques are divided by, shape (n,)."""
        return self.kappa * self.sigma

    @cached_property
    def dense(self) -> list[tuple[Array, Array, Booleans]]:
        """X, y and which rows there are, of each log, a place for each sample and joint."""
        found = []
        for given, stretches in zip(self.logs, self.rows.passes(), strict=True):
            m, n = given.log.measured.shape
            X, y = np.zeros((m, n, len(self.beta))), np.zeros((m, n))
            stated = np.zeros((m, n), dtype=bool)
            for rows in stretches:
                for g, columns in enumerate(self.rows.columns):
                    at = rows.sample[g]
                    X[at[:, None], g, columns] = rows.X[g]
                    y[at, g], stated[at, g] = rows.y[g], True
            found.append((X, y, stated))
        return found

    @cached_property
    def errors(self) -> list[Array]:
        """``y - X beta`` of each log, zero where there is no row."""
        return [y - X @ self.beta for X, y, _ in self.dense]

    @cached_property
    def counted(self) -> list[Booleans]:
        """Which rows of each log are not outliers."""
        limit = OUTLYING * self.counted_sigma
        return [
            stated & (np.abs(error) <= limit)
            for error, (_, _, stated) in zip(self.errors, self.dense, strict=True)
        ]

    @cached_property
    def runs(self) -> list[tuple[MotionRun, Array, SampleSpreads, Array]]:
        """Each run with its coefficients, its log's spreads and its positions' errors by them."""
        return [
            (run, c, spreads, (run.q - run.motion(c)[0]) / spreads.position)
            for given, spreads, coefficients in zip(
                self.logs, self.spreads, self.coefficients, strict=True
            )
            for run, c in zip(given.runs, coefficients, strict=True)
        ]

    @cached_property
    def cost(self) -> float:
        """Sum of squared errors over their variances, with the prior's.

        Of outliers as much as the largest error that counts: leaving one out does not raise it.
        """
        total = self.penalty / self.kappa**2 + sum(
            float(np.sum(np.minimum((error / self.counted_sigma) ** 2, OUTLYING**2)))
            for error in self.errors
        )
        for run, c, spreads, error in self.runs:
            total += float(np.sum(error**2))
            total += float(np.sum((np.diff(c, 3, axis=0) / spreads.bend) ** 2))
            total += float(np.sum((run.late / spreads.instant) ** 2))
        return total

    @cached_property
    def rounding(self) -> float:
        """What the last digits of positions make of the cost, and those of all else.

        Encoders without noise leave standard deviations that are hardly more than these digits.
        """
        total = ROUNDING * self.cost
        for run, _, spreads, error in self.runs:
            digits = LAST_DIGITS * np.abs(run.q).max(axis=0) / spreads.position
            total += 2.0 * float(np.linalg.norm(error, axis=0) @ digits)
        return total

    def linearised(self) -> LinearisedState:
        """The equations linearised, and the motions eliminated."""
        theta, linears = self.problem.base.standard(self.beta), []
        for k, given in enumerate(self.logs):
            slopes = differentiate_torque(
                self.problem.idim, given.log, theta, self.motions[k], self.widths[k]
            )
            X, y, _ = self.dense[k]
            counted, sigma = self.counted[k], self.counted_sigma
            linears.append(
                [
                    LinearRun.of(
                        run,
                        self.spreads[k],
                        c,
                        Equations(X[run.own], y[run.own], slopes[run.own], counted[run.own], sigma),
                    )
                    for run, c in zip(given.runs, self.coefficients[k], strict=True)
                ]
            )
        return LinearisedState(self, linears)


@dataclass(frozen=True, eq=False)
class LinearisedState:
    """A state, linearised: the runs of each log."""

    state: SmoothingState
    linears: list[list[LinearRun]]

    @cached_property
    def system(self) -> System:
        """What the logs tell of the parameters, whatever the motion was, in units of sigma."""
        borders = [each.eliminated.border for log in self.linears for each in log]
        R = triangularise_rows(np.vstack([*borders, np.zeros((borders[0].shape[1],) * 2)]))
        return System.of(self.state.kappa * R)

    def advanced(self, beta: Array, penalty: float) -> SmoothingState:
        """The step to some parameters and the motions at these, halved until the cost decreases.

        Between two answers the prior's share is at most that of a line: it is convex.
        """
        now, change = self.state, beta - self.state.beta
        steps = [[each.eliminated.solve(beta) for each in log] for log in self.linears]
        delays = [
            [each.delays(step, beta) for each, step in zip(*log, strict=True)]
            for log in zip(self.linears, steps, strict=True)
        ]
        for halvings in range(HALVINGS):
            share = 0.5**halvings
            logs = tuple(
                replace(
                    given,
                    runs=tuple(
                        replace(run, late=run.late + share * late)
                        for run, late in zip(given.runs, own, strict=True)
                    ),
                )
                for given, own in zip(now.logs, delays, strict=True)
            )
            ahead = replace(
                now,
                logs=logs,
                beta=now.beta + share * change,
                coefficients=tuple(
                    tuple(c + share * step for c, step in zip(*log, strict=True))
                    for log in zip(now.coefficients, steps, strict=True)
                ),
                penalty=now.penalty + share * (penalty - now.penalty),
            )
            if ahead.cost <= now.cost + now.rounding:
                return ahead
        raise ComputationError(
            "no step of smooth lowers the errors; give position_std or knots_hz, or take pc-idim-ls"
        )

    @cached_property
    def taken(self) -> list[list[MotionShare]]:
        """What the motions take of each run's rows."""
        return [list(map(measure_taken, log)) for log in self.linears]

    def renewed(self, ahead: SmoothingState) -> SmoothingState:
        """A step ahead, with spreads by what is left of each kind of rows, and signs' widths."""
        state, taken, known = self.state, self.taken, self.state.known
        spreads = tuple(
            renew_spreads(
                own, tuple(zip(given.runs, coefficients, strict=True)), given.floor, known.position
            )
            for given, coefficients, own in zip(ahead.logs, ahead.coefficients, taken, strict=True)
        )
        inverse = self.system.inverse()
        counts, squares = np.zeros((2, len(state.sigma)))
        lost = np.sum([each.torque for log in taken for each in log], axis=0)
        for error, (X, _, _), counted in zip(ahead.errors, ahead.dense, ahead.counted, strict=True):
            counts += counted.sum(axis=0)
            squares += np.sum(error**2 * counted, axis=0)
            shares = np.sum((X @ inverse) ** 2, axis=2)
            lost += np.sum(shares * counted, axis=0) / state.sigma**2
        free = np.maximum(np.maximum(counts - lost, LEAST_FREEDOM * counts), 1.0)
        sigma = np.maximum(np.sqrt(squares / free), find_smallest_sigma(state.problem.factors))
        return replace(
            ahead,
            spreads=spreads,
            sigma=known.or_known_torque(sigma),
            widths=choose_widths(taken),
        )

    @cached_property
    def rows(self) -> Regression:
        """The equations along the motions: their scores are those of the whole."""
        logs = []
        for (X, y, _), counted in zip(self.state.dense, self.state.counted, strict=True):
            at = [np.flatnonzero(own) for own in counted.T]
            own = list(enumerate(at))
            logs.append(
                [Rows(tuple(X[t, g] for g, t in own), tuple(y[t, g] for g, t in own), tuple(at))]
            )
        return self.state.problem.given(self.state.problem.groups, logs)

    def motions(self, covariance: Array) -> tuple[EstimatedMotion, ...]:
        """What was found of the motions, with a covariance of the parameters."""
        size, axes = np.linalg.eigh(covariance)
        root = axes * np.sqrt(np.maximum(size, 0.0))
        found = []
        for given, motion, linears, taken in zip(
            self.state.logs, self.state.motions, self.linears, self.taken, strict=True
        ):
            std, time = np.full(motion.shape, np.nan), np.full(len(given.at), np.nan)
            for run, each, known in zip(given.runs, linears, taken, strict=True):
                slopes = each.eliminated.slopes() @ root
                moved = run.motion(slopes.reshape(len(slopes), -1))[:3]
                moved = moved.reshape(*moved.shape[:2], motion.shape[2], -1)
                std[:, run.own] = np.sqrt(known.variance + np.sum(moved**2, axis=3))
                time[run.own] = run.stamps + run.late
            inside = ~np.isnan(time)
            found.append(
                EstimatedMotion(
                    time[inside],
                    motion[0, inside],
                    motion[1, inside],
                    motion[2, inside],
                    std[:, inside],
                )
            )
        return tuple(found)


def choose_widths(taken: list[list[MotionShare]]) -> tuple[Array, ...]:
    """Over which speed the sign of each joint's speed changes, by how well that is known."""
    found = []
    for log in taken:
        variance = np.concatenate([each.variance[1] for each in log])
        found.append(BLURRED * np.sqrt(np.mean(variance, axis=0)))
    return tuple(found)


def smooth(
    problem: Problem,
    smoothing: Smoothing = Smoothing(),
    noise: JointNoise = JointNoise(),
    knowledge: Knowledge = Knowledge(),
    bootstrap: Bootstrap = Bootstrap(),
    bars: ErrorBars = ErrorBars(),
    reweighting: Reweighting = Reweighting(),
    engine: Engine = HERE,
) -> Estimate:
    """Motion and parameters at once, the equations of motion as soft constraints.

    The motion of each run is a spline; positions and torques are noisy samples of it, at their own
    instants: ``min sum (q_m - q)^2 / s_q^2 + sum (tau_m - X beta)^2 / s_tau^2 + sum (D^3 c)^2 /
    s_c^2`` over its coefficients c and the admitted parameters, with spreads that are found with
    them. Errors that are correlated tell as much less as the sums of least squares vary more
    (`measure_variance_inflation`), and a torque that is six standard deviations off tells nothing.
    Gauss and Newton's steps eliminate the motion by orthogonal rotations, knot by knot, which
    leaves a linear problem of the parameters: that of `pc_idim_ls`, constraints and prior
    included. The covariance is that of its scores, so that errors that the model lacks count. The
    engine solves the replicates of the bootstrap.

    Raises
    ------
    InputError
        As `pc_idim_ls`; when the samples were averaged, or are not those of a fixed robot's
        joints.
    ComputationError
        When no certified consistent answer was reached, or the steps do not settle.
    """
    refuse_unsmoothed(problem)
    # friction that remembers is followed from sample to sample of a clock
    clocked = problem.idim.has_states
    logs = tuple(take_log(log, smoothing, clocked=clocked) for log in problem.samples)
    known = collect_known_noise(problem, noise)
    fitted = [fit_positions(given, known.position) for given in logs]
    begun = [own.log.log.along(*own.log.evaluate(own.coefficients)) for own in fitted]
    along = Problem.of(problem.base, begun)
    setting = build_constrained_setting(
        along, knowledge, bootstrap, bars, reweighting=reweighting, engine=engine
    )
    inner, first = setting.inner(), setting.solve()
    state = SmoothingState(
        tuple(own.log for own in fitted),
        along,
        known,
        first.beta,
        tuple(own.coefficients for own in fitted),
        tuple(own.spreads for own in fitted),
        choose_widths([own.taken for own in fitted]),
        known.or_known_torque(setting.sigma),
        setting.admitted.kappa,
        first.penalty,
    )
    state, rounds = settle(state, inner, reweighting.round_limit)
    linear = state.linearised()
    inner(linear.system)
    words = describe_noise([own.position for own in state.spreads])
    pairs = zip(state.dense, state.counted, strict=True)
    outliers = sum(int(np.sum(stated & ~counted)) for (_, _, stated), counted in pairs)
    found = ConstrainedFit(
        linear.rows,
        linear.system,
        state.sigma,
        compute_literature_std(linear.system),
        f"settled in {format_count(rounds, 'round')}; noise of the positions {words}, of instants "
        f"{1e3 * max(each.instant for each in state.spreads):.2g} ms"
        + ("; samples at their own instants" if any(log.stamped for log in logs) else "")
        + (f"; {format_count(outliers, 'torque')} left out as outliers" if outliers else ""),
        rounds,
    )
    estimate = finish_constrained_estimate(setting, inner.point, found)
    places = zip(estimate.residuals.log, estimate.residuals.sample, strict=True)
    sample = tuple(
        np.array([np.round(logs[k].at[t]) for k, t in zip(of, at, strict=True)], dtype=np.int64)
        for of, at in places
    )
    # on the clock, as those of all methods are
    motions = linear.motions(estimate.covariance.matrix)
    residuals = replace(estimate.residuals, sample=sample, motions=motions)
    return replace(estimate, residuals=residuals)


def settle(
    state: SmoothingState, inner: ConstrainedSolver, limit: int
) -> tuple[SmoothingState, int]:
    """Steps until neither the parameters nor the spreads move, and how many.

    Each state follows from the one before: where an earlier one comes back, so will all between.
    """
    past, rounds = [state.reached], 0
    for rounds in range(1, limit + 1):
        linear = state.linearised()
        beta, A = inner(linear.system), linear.system.A
        length = float(np.linalg.norm(A @ (beta - state.beta)))
        state = linear.renewed(linear.advanced(beta, inner.penalty))
        if length < STEP and state.measure_changes(past[-1]) < SETTLED:
            return state, rounds
        near = [own for own in past if np.linalg.norm(A @ (state.beta - own.beta)) < SAME * STEP]
        if any(state.measure_changes(own) < SAME * SETTLED for own in near):
            break
        past.append(state.reached)
    raise ComputationError(
        f"smooth did not settle in {rounds} rounds; give position_std, or take pc-idim-ls"
    )


def refuse_unsmoothed(problem: Problem) -> None:
    """Refuse robots and logs whose samples are not those of joints with equations of their own."""
    refuse_sensors(problem.robot, "smooth takes")
    for log in problem.samples:
        cause = name_what_hides_noise(log)
        if not has_only_joint_torques(problem.robot, log):
            cause = "floating bases, contacts or joints locked in one log; fit these by wls"
        if cause is not None:
            raise InputError(f"{log.name}: smooth does not take {cause}, or take pc-idim-ls")
