"""The floor: how much of the torque no function of the motion explains.

What two records of the same motion have in common may be explained, by this model or by a better
one. What they differ by is explained by none: half of its mean square is the variance of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.dynamics.following import follow_friction
from dynident.dynamics.idim import Idim
from dynident.filters.blocks import cut_signal
from dynident.filters.filters import count_filter_edge, filter_zero_phase
from dynident.filters.repeats import (
    RepeatedMotion,
    RepeatedStretch,
    find_partners,
    find_period,
    find_repeated_motion,
)
from dynident.filters.spline import interpolate_cubically
from dynident.fit.figures import (
    ALL_SAMPLES,
    JointError,
    build_fit_figure,
    compute_relative_error,
    find_scored_samples,
    follow_log_friction,
)
from dynident.fit.verdict import SMALL
from dynident.recording.periods import FINER
from dynident.regression.generalised import GeneralisedSamples, has_only_joint_torques
from dynident.regression.rows import list_torque_groups
from dynident.robot.model import Robot

FAR = 2.0
"""Error over the floor from which the model lacks something: three quarters of its square, and
more, are then no noise, whatever their cause."""
CLEAR = 0.5
"""Share of the squares of what repeats that a signal goes with from which it is named: errors that
go with none, below 2 Hz and over 10 s, reach 0.46 in one of a hundred cases."""
ALIKE = 0.9
"""Share of what the best signal explains from which a simpler one is named."""
UNKNOWN = "no motion repeats in these logs, so the smallest attainable error is not known"
ONE_RECORD, ROUNDING = 0.9, 1e-9
"""Share of samples whose torques are the same, but for rounding (of the largest one), from which
two logs are one record, whole or in part."""
POINTS = 4000
"""Samples that signals are compared at, at most."""


@dataclass(frozen=True)
class Floor:
    """What of a log's torque does not repeat where its motion does.

    Attributes
    ----------
    log, against : str
        Where the motion was made again: another log, or the same where its periods are meant.
    what : {"logs", "periods"}
    lag_s : float
        From the motion in `log` to that in `against`, each from its first sample; or the period
        [s].
    joints : tuple of JointError
        Shares of each joint's torque, and in Nm or N, below the low-pass of the all-samples errors.
    overall_percent : float
        All joints stacked.
    repeating_percent : float
        What repeats of the model's errors, of all joints stacked: what a better model could
        explain.
    """

    log: str
    against: str
    what: Literal["logs", "periods"]
    lag_s: float
    joints: tuple[JointError, ...]
    overall_percent: float
    repeating_percent: float

    @property
    def words(self) -> str:
        """One line."""
        where = f"against {self.against}" if self.what == "logs" else "between its periods"
        return (
            f"{self.overall_percent:.3g} % of the torque of {self.log} does not repeat ({where}), "
            f"{self.repeating_percent:.3g} % repeats and is not explained"
        )


class ScoredSignals(NamedTuple):
    """Of the scored samples of a log: its motion, and low-passed torques, shape (samples, n)."""

    stretch: RepeatedStretch
    torque: Array
    error: Array


class Repetition(NamedTuple):
    """What repeats of a log, and what does not."""

    log: str
    against: str
    what: Literal["logs", "periods"]
    lag: float
    """[s]"""
    torque: Array
    spread: Array
    repeating: Array
    """`torque`, `spread`, `repeating`: mean squares of the torque, of what does not repeat of it,
    and of what repeats of the errors, shape (n,)."""
    error: Array
    """Mean of the errors over the repetitions, shape (same samples, n)."""
    motion: tuple[Array, Array, Array]
    """Positions, speeds and accelerations, shape (samples, n)."""
    same: Booleans
    """Those whose motion is made again, shape (samples,)."""
    rate: float
    """[Hz]"""


def measure_floor(
    idim: Idim, theta: Array, logs: Sequence[GeneralisedSamples], lowpass_hz: float
) -> tuple[tuple[Floor, ...], list[str]]:
    """The floor of each log whose motion is made again, and what the model lacks, in words.

    Logs of floating robots, with contacts, with locked joints or without a torque are left out.

    Parameters
    ----------
    theta : ndarray, shape (parameters,)
        Standard parameters of the model.
    lowpass_hz : float
        Of the all-samples errors [Hz].
    """
    found = find_repetitions(idim, theta, logs, lowpass_hz)
    names = [group.name for group in list_torque_groups(idim.robot)]
    floors = tuple(build_floor(names, each, lowpass_hz) for each in found)
    return floors, warn_of_lacking_model(idim, theta, found, floors, lowpass_hz)


def describe_floor(floors: Sequence[Floor], robot: Robot) -> list[str]:
    """What does not repeat of each log, in words; nothing of robots that have no floor."""
    if robot.floating or robot.contacts:
        return []
    return [floor.words for floor in floors] or [UNKNOWN]


def find_repetitions(
    idim: Idim, theta: Array, logs: Sequence[GeneralisedSamples], lowpass_hz: float
) -> list[Repetition]:
    """What repeats of each log: against the log that makes most of its motion, or by periods."""
    # torques that can be a function of the motion alone
    whole = (log for log in logs if log.torque == "measured" and log.rests is None)
    logs = [log for log in whole if has_only_joint_torques(idim.robot, log)]
    single = [k for k, log in enumerate(logs) if log.averaging is None]
    parts = {k: take_longest_stretch(logs[k], lowpass_hz) for k in single}
    matches: dict[int, list[tuple[int, RepeatedMotion]]] = {k: [] for k in single}
    for k, other in combinations([k for k in single if len(parts[k].q)], 2):
        pair = find_repeated_motion(parts[k], parts[other])
        for mine, partner, match in zip((k, other), (other, k), pair, strict=True):
            if match is not None:
                matches[mine].append((partner, match))
    kept: dict[int, ScoredSignals] = {}

    def read(k: int) -> ScoredSignals:
        if k not in kept:  # most logs have no repetition, and are not predicted again
            kept[k] = predict_stretch(idim, theta, logs[k], lowpass_hz)
        return kept[k]

    found = []
    for k, log in enumerate(logs):
        if log.averaging is None and not len(parts[k].q):
            continue
        if log.averaging is not None:
            repetition = compare_averaged_periods(idim, theta, log, lowpass_hz)
        else:
            repetition = compare_with_others(k, logs, matches[k], read)
            period = find_period(parts[k]) if repetition is None else None
            if period is not None:
                repetition = compare_matched(log, log, period, read(k), read(k))
        if repetition is not None:
            found.append(repetition)
    return found


def compare_with_others(
    k: int,
    logs: Sequence[GeneralisedSamples],
    matches: Sequence[tuple[int, RepeatedMotion]],
    read: Callable[[int], ScoredSignals],
) -> Repetition | None:
    """A log beside the one that makes most of its motion; None where none does."""
    for other, match in sorted(matches, key=lambda pair: -pair[1].share):
        found = compare_matched(logs[k], logs[other], match, read(k), read(other))
        if found is not None:
            return found
    return None


def find_longest_run(log: GeneralisedSamples, lowpass_hz: float) -> tuple[slice, slice] | None:
    """Of the scored samples in a row the most, as `find_scored_samples` has them."""
    scored = find_scored_samples(log, lowpass_hz)
    return max(scored, key=lambda pair: pair[1].stop - pair[1].start, default=None)


def take_longest_stretch(log: GeneralisedSamples, lowpass_hz: float) -> RepeatedStretch:
    """The motion of the scored samples of a log; empty where there are none."""
    found = find_longest_run(log, lowpass_hz)
    if found is None:
        return RepeatedStretch(0.0, log.rate, log.q[:0], log.dq[:0])
    run, inner = found
    some = slice(run.start + inner.start, run.start + inner.stop)
    q, dq = cut_signal(log.q, some), cut_signal(log.dq, some)
    return RepeatedStretch(some.start / log.rate, log.rate, q, dq)


def predict_stretch(
    idim: Idim, theta: Array, log: GeneralisedSamples, lowpass_hz: float
) -> ScoredSignals:
    """Torque and errors of the scored samples of a log, as its figures have them."""
    found = find_longest_run(log, lowpass_hz)
    assert found is not None
    run, inner = found
    motion = log.q[run], log.dq[run], log.ddq[run]
    predicted = idim.torque(theta, *motion, conditions=follow_log_friction(idim, log, run))
    torque, error = (
        filter_zero_phase(x, lowpass_hz, log.rate)[inner]
        for x in (log.tau[run], log.tau[run] - predicted)
    )
    return ScoredSignals(take_longest_stretch(log, lowpass_hz), torque, error)


def compare_matched(
    log: GeneralisedSamples,
    other: GeneralisedSamples,
    match: RepeatedMotion,
    one: ScoredSignals,
    two: ScoredSignals,
) -> Repetition | None:
    """A log's torques beside those of the same motion elsewhere; None where they are one record."""
    place, _ = find_partners(one.stretch, two.stretch, match.lag)
    place, inner = place[match.same], list_samples(one)
    own, others = log.tau[inner][match.same], other.tau[list_samples(two)]
    off = np.max(np.abs(own - others[np.round(place).astype(int)]), axis=1)
    if np.mean(off <= ROUNDING * np.max(np.abs(own))) > ONE_RECORD:
        return None
    n = one.torque.shape[1]
    both = interpolate_cubically(
        np.arange(len(two.torque), dtype=float), np.hstack([two.torque, two.error]), place
    )
    torque, error = one.torque[match.same], one.error[match.same]
    apart, unexplained = torque - both[:, :n], error - both[:, n:]
    squares = np.mean(torque**2, axis=0)
    # what the small difference of the motions explains is taken out with the model's torques;
    # not where that makes the difference larger, by noise of encoders or by a wrong model
    spread = 0.5 * np.minimum(np.mean(apart**2, axis=0), np.mean(unexplained**2, axis=0))
    return Repetition(
        log.name,
        other.name,
        "periods" if log is other else "logs",
        match.lag,
        squares,
        spread,
        np.mean(error * both[:, n:], axis=0),
        error - 0.5 * unexplained,
        (log.q[inner], log.dq[inner], log.ddq[inner]),
        match.same,
        log.rate,
    )


def list_samples(signals: ScoredSignals) -> slice:
    """Which of a log's samples they are."""
    first = round(signals.stretch.begin * signals.stretch.rate)
    return slice(first, first + len(signals.torque))


def compare_averaged_periods(
    idim: Idim, theta: Array, log: GeneralisedSamples, lowpass_hz: float
) -> Repetition | None:
    """The mean period of a log, of which what does not repeat is the mean, too."""
    averaging = log.averaging
    if averaging is None or not averaging.settled:
        return None
    rate, count = log.rate / FINER, averaging.periods
    motion, torques, errors = [], [], []
    for period in range(count):
        q, dq, ddq, tau = averaging.one(period)
        conditions = follow_friction(idim, q, dq, rate)
        error = tau - idim.torque(theta, q, dq, ddq, conditions=conditions)
        motion.append((q, dq, ddq))
        torques.append(filter_whole_period(tau, lowpass_hz, rate))
        errors.append(filter_whole_period(error, lowpass_hz, rate))
    torque, error = np.mean(torques, axis=0), np.mean(errors, axis=0)
    variances = [np.mean(np.var(x, axis=0, ddof=1), axis=0) / count for x in (torques, errors)]
    q, dq, ddq = (np.mean([each[i] for each in motion], axis=0) for i in range(3))
    return Repetition(
        log.name,
        log.name,
        "periods",
        averaging.period,
        np.mean(torque**2, axis=0),
        np.minimum(*variances),
        np.mean(error**2, axis=0) - variances[1],
        error,
        (q, dq, ddq),
        np.ones(len(q), dtype=bool),
        rate,
    )


def filter_whole_period(x: Array, lowpass_hz: float, rate: float) -> Array:
    """A low-passed period, as if it had gone on for ever."""
    edge = count_filter_edge(lowpass_hz, rate)
    wrapped = x.take(np.arange(-edge, len(x) + edge), axis=0, mode="wrap")
    return filter_zero_phase(wrapped, lowpass_hz, rate)[edge : edge + len(x)]


def build_floor(names: Sequence[str], found: Repetition, lowpass_hz: float) -> Floor:
    """The floor of a log as shares of its torque."""
    figure = build_fit_figure(
        names, found.spread, found.torque, np.ones(len(names)), ALL_SAMPLES, lowpass_hz
    )
    repeating = max(0.0, float(np.sum(found.repeating)))
    return Floor(
        found.log,
        found.against,
        found.what,
        found.lag,
        figure.joints,
        figure.overall_percent,
        compute_relative_error(repeating, float(np.sum(found.torque))),
    )


def warn_of_lacking_model(
    idim: Idim,
    theta: Array,
    found: Sequence[Repetition],
    floors: Sequence[Floor],
    lowpass_hz: float,
) -> list[str]:
    """A model that leaves far more than the floor, and what the rest goes with; in words.

    Of the log of which it leaves most.
    """
    far = [
        (floor.repeating_percent, repetition, floor)
        for repetition, floor in zip(found, floors, strict=True)
        if is_far_above(floor)
    ]
    if not far:
        return []
    _, repetition, floor = max(far, key=lambda each: each[0])
    words = (
        f"the model is incomplete: {floor.repeating_percent:.2g} % of the torque of {floor.log} "
        f"repeats with the motion and is not explained, while {floor.overall_percent:.2g} % does "
        "not repeat"
    )
    joint = int(np.argmax(repetition.repeating))
    signal, share = find_likeliest_signal(idim, theta, repetition, joint, lowpass_hz)
    if share >= CLEAR:
        words += (
            f"; most of it is at {floor.joints[joint].name}, where {signal} explains "
            f"{100.0 * share:.0f} % of the squared residual"
        )
    return [words]


def is_far_above(floor: Floor) -> bool:
    """Whether an error with nothing but the floor in it that does not repeat is far above that."""
    error = np.hypot(floor.repeating_percent, floor.overall_percent)
    return bool(error > max(SMALL, FAR * floor.overall_percent))


def find_likeliest_signal(
    idim: Idim, theta: Array, found: Repetition, joint: int, lowpass_hz: float
) -> tuple[str, float]:
    """The signal that the repeating error of a joint goes with most, and the share of its squares.

    The simplest of those that explain about as much as the best. What of the mean error does not
    repeat counts as explained by nothing.
    """
    few = slice(None, None, max(1, len(found.error) // POINTS))
    bodies = theta.copy()
    bodies[idim.inertial :] = 0.0
    q, dq, ddq = found.motion
    load = idim.torque(bodies, q, dq, ddq)[:, joint]
    time = np.arange(len(q)) / found.rate
    shares = {
        name: measure_explained_share(
            found.error[few, joint],
            filter_zero_phase(columns, lowpass_hz, found.rate)[found.same][few],
        )
        for name, columns in list_signals(load, q[:, joint], dq[:, joint], time).items()
    }
    most = max(shares.values())
    return next((name, share) for name, share in shares.items() if share >= ALIKE * most)


def list_signals(load: Array, q: Array, dq: Array, time: Array) -> dict[str, Array]:
    """What an error may go with, each as the columns of a simple curve; the simplest first.

    Friction's two sides, its curve over speed, what warms up, a spring or a gear's unevenness,
    friction that grows with the load. The later ones stand beside the friction that a fit has
    bent in their place.
    """
    way = np.sign(dq)
    turned, fast = scale_to_one(q - q.mean()), scale_to_one(dq)
    bent = [way, fast]
    found = {
        "the direction of motion": [way],
        "the speed": [*bent, fast * np.abs(fast), way * np.sqrt(np.abs(fast))],
        "the time since the start": [*bent, time],
        "the position": [*bent, turned, turned**2, turned**3],
        "the load": [*bent, load, np.abs(load) * way],
    }
    return {name: np.column_stack(columns) for name, columns in found.items()}


def scale_to_one(x: Array) -> Array:
    """A signal over its largest size, so that its powers are of one size."""
    return np.asarray(x / max(float(np.max(np.abs(x), initial=0.0)), np.finfo(float).tiny))


def measure_explained_share(error: Array, columns: Array) -> float:
    """Share of an error's squares about its mean that a straight line over columns explains."""
    centred = error - error.mean()
    columns = columns - columns.mean(axis=0)
    size = np.linalg.norm(columns, axis=0)
    if not np.any(size) or not np.any(centred):
        return 0.0
    columns = columns[:, size > 0.0] / size[size > 0.0]
    fitted = columns @ np.linalg.lstsq(columns, centred, rcond=None)[0]
    return float(fitted @ fitted / (centred @ centred))
