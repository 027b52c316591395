"""References: what the controllers are asked to follow, with exact derivatives.

A maker turns a few numbers into a `Reference`; a new one is a function and one line in
`REFERENCES`. Point-to-point motions are sums of `Move` objects, of which
`dynident.control.reconstruct` finds those behind a measured motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.makers import Numbers, Table, Vector
from dynident.filters.filters import differentiate_twice

MOST_SAMPLES = 10**7
"""A longer reference is a mistake in the units of rate or duration."""


Positive = Annotated[float, Field(gt=0.0)]


@dataclass(frozen=True)
class Reference:
    """Reference motion of the controllers, uniformly sampled.

    >>> from dynident.control.reference import quintic
    >>> quintic(500.0, [[0.0, 0.0], [1.0, 0.5]], [0.0, 1.0]).q[-1]
    array([1. , 0.5])

    Attributes
    ----------
    rate : float
        Samples per second [Hz].
    q, dq, ddq : ndarray, shape (samples, n)
        Positions [rad or m] and their time derivatives.
    """

    rate: float
    q: Array
    dq: Array
    ddq: Array

    def __post_init__(self) -> None:
        _check_positive(rate=self.rate)
        for label in ("q", "dq", "ddq"):
            signal = _check_numbers(label, getattr(self, label), 2)
            if signal.shape != np.shape(self.q):
                raise InputError(
                    f"reference: {label} has shape {signal.shape}, q has {np.shape(self.q)}; "
                    "give all three one row per sample and one column per joint"
                )
            signal.setflags(write=False)
            object.__setattr__(self, label, signal)
        check_sample_count(len(self.q))

    @property
    def duration(self) -> float:
        """Samples over rate [s], as of a recording."""
        return len(self.q) / self.rate

    def rows(self, start: int, stop: int) -> Reference:
        """The same reference cut to samples ``start:stop``, two or more.

        Raises
        ------
        InputError
            For fewer than two samples, and samples outside of the reference.
        """
        if not 0 <= start <= stop - 2 <= len(self.q) - 2:
            raise InputError(
                f"reference: rows {start}-{stop} are not two or more of its {len(self.q)} samples"
            )
        part = slice(start, stop)
        return Reference(self.rate, self.q[part], self.dq[part], self.ddq[part])


@dataclass(frozen=True)
class Move:
    """A rest-to-rest motion of all joints in step: one velocity trapezoid, scaled per joint."""

    start: float
    duration: float
    """`start`, `duration`: [s], on the clock of the reference."""
    rise: float
    fall: float
    """`rise`, `fall`: time of speeding up and of slowing down, together at most `duration` [s]."""
    smoothing: float
    """Share of each ramp in which the acceleration itself ramps, from 0 (steps of acceleration) to
    1 (triangles of acceleration)."""
    displacement: Array
    """Way of each joint [rad or m], shape (n,)."""

    def __post_init__(self) -> None:
        _check_positive(duration=self.duration, rise=self.rise, fall=self.fall)
        if not (self.rise + self.fall <= self.duration * (1.0 + 1e-9) and 0 <= self.smoothing <= 1):
            raise InputError(
                "move: rise and fall exceed its duration, or smoothing is not in [0, 1]"
            )
        displacement = _check_numbers("displacement", self.displacement, 1)
        displacement.setflags(write=False)
        object.__setattr__(self, "displacement", displacement)

    def profile(self, time: Array) -> tuple[Array, Array, Array]:
        """Covered share of the way, from 0 to 1, and its derivatives [1, 1/s, 1/s^2].

        Parameters
        ----------
        time : ndarray, shape (samples,)
            [s], on the clock of the reference.
        """
        # The speed is a ramp up at the start minus a ramp up that ends with the move.
        t = np.clip(time - self.start, 0.0, self.duration)
        up = _evaluate_ramp(t / self.rise, self.smoothing)
        down = _evaluate_ramp((t - (self.duration - self.fall)) / self.fall, self.smoothing)
        speed = 1.0 / (self.duration - 0.5 * (self.rise + self.fall))
        return (
            speed * (self.rise * up[0] - self.fall * down[0]),
            speed * (up[1] - down[1]),
            speed * (up[2] / self.rise - down[2] / self.fall),
        )


def average_held_signals(signal: Array, at: Array, span: float = 1.0) -> Array:
    """Means of signals (samples, n) that are held from sample to sample, shape (k, n).

    Over steps that begin `at` places, shape (k,), and are as long as the span [samples].
    """
    cell = np.ceil(at).astype(int) - 1
    share = np.minimum(1.0, (cell + 1 - at) / span)[:, None]
    before, after = (np.clip(k, 0, len(signal) - 1) for k in (cell, cell + 1))
    return np.asarray(share * signal[before] + (1.0 - share) * signal[after])


def _evaluate_ramp(u: Array, smoothing: float) -> tuple[Array, Array, Array]:
    """A quantity that climbs from 0 at u = 0 to 1 at u = 1: its integral, itself, its slope."""
    half = 0.5 * smoothing
    peak = 1.0 / (1.0 - half)
    # Point symmetry about u = 1/2: only the lower half is written out.
    upper = u > 0.5
    v = np.clip(np.where(upper, 1.0 - u, u), 0.0, 0.5)
    soft = np.minimum(v, half)
    slope = peak * (soft / half if half else ((u > 0.0) & (u < 1.0)).astype(float))
    straight = v - soft
    value = peak * (straight + (0.5 * soft * soft / half if half else 0.0))
    area = peak * ((soft**3 / (6.0 * half) if half else 0.0) + 0.5 * straight * (half + straight))
    return np.where(upper, u - 0.5 + area, area), np.where(upper, 1.0 - value, value), slope


def sum_moves(
    rate: float, samples: int, origin: ArrayLike, moves: Sequence[Move], lead: ArrayLike = 0.0
) -> Reference:
    """Moves one after another or overlapping, from a resting position.

    Parameters
    ----------
    rate : float
        [Hz]
    samples : int
        The first is at time 0.
    origin : array_like, shape (n,)
        Position before the first move [rad or m].
    lead : float or array_like, shape (n,)
        Time by which each joint is ahead of the moves [s].
    """
    _check_positive(rate=rate)
    q = np.tile(_check_numbers("origin", origin, 1), (check_sample_count(samples), 1))
    dq, ddq = np.zeros_like(q), np.zeros_like(q)
    ahead = _check_vector("lead", lead, q.shape[1])
    for early in np.unique(ahead):
        joints = np.flatnonzero(ahead == early)
        arrived = np.zeros((samples + 1, len(joints)))
        for move in moves:
            way = move.displacement[joints]
            span = np.array([0.0, move.duration]) + (move.start - early)
            first, last = np.clip(np.ceil(span * rate), 0, samples).astype(int)
            s, ds, dds = move.profile(np.arange(first, last) / rate + early)
            part = np.s_[first:last, joints]
            q[part] += np.outer(s, way)
            dq[part] += np.outer(ds, way)
            ddq[part] += np.outer(dds, way)
            arrived[last] += way
        q[:, joints] += np.cumsum(arrived[:-1], axis=0)
    return Reference(rate, q, dq, ddq)


def sampled(
    q: ArrayLike, rate: float, dq: ArrayLike | None = None, ddq: ArrayLike | None = None
) -> Reference:
    """A logged reference; missing derivatives by central differences, unfiltered.

    Parameters
    ----------
    q : array_like, shape (samples, n)
        Positions of one run without a gap [rad or m].
    rate : float
        [Hz]
    dq, ddq : array_like, shape (samples, n), optional
        Logged derivatives; where only `dq` is given, `ddq` is differenced from it.
    """
    _check_positive(rate=rate)
    least = 5 if dq is None or ddq is None else 2  # differences take five samples
    position = _check_numbers("q", q, 2, least)
    first = None if dq is None else _check_numbers("dq", dq, 2, least)
    second = None if ddq is None else _check_numbers("ddq", ddq, 2)
    if second is None:
        second = (
            differentiate_twice(position, rate)[1]
            if first is None
            else differentiate_twice(first, rate)[0]
        )
    if first is None:
        first = differentiate_twice(position, rate)[0]
    return Reference(rate, position, first, second)


def fourier(
    rate: Positive,
    duration: Positive,
    frequency: Positive,
    offset: Vector,
    sine: Table,
    cosine: Table,
) -> Reference:
    """``q = offset + sum_k a_k / (w k) sin(w k t) - b_k / (w k) cos(w k t)``, of Swevers.

    Parameters
    ----------
    rate, duration : float
        [Hz], [s]; the last sample is one step before `duration`, so that periods join.
    frequency : float
        Of the fundamental, ``w = 2 pi frequency`` [Hz].
    offset : array_like, shape (n,)
        [rad or m]
    sine, cosine : array_like, shape (n, harmonics)
        a and b, which are amplitudes of velocity [rad/s or m/s].

    Raises
    ------
    InputError
        For coefficients of other shapes, harmonics at half the rate or above, values that are not
        positive, and too few or too many samples.
    """
    _check_positive(rate=rate, duration=duration, frequency=frequency)
    centre = _check_numbers("offset", offset, 1)
    a, b = _check_numbers("sine", sine, 2), _check_numbers("cosine", cosine, 2)
    if a.shape != b.shape or len(a) != len(centre):
        raise InputError(
            f"reference: sine has shape {a.shape}, cosine {b.shape}, offset {centre.shape}; "
            "give each joint a row of as many harmonics"
        )
    if a.shape[1] * frequency >= 0.5 * rate:
        highest = f"{a.shape[1] * frequency:g} Hz"
        raise InputError(f"reference: {highest} is not below half the rate; raise the rate")
    samples = check_sample_count(round(min(duration * rate, 2.0 * MOST_SAMPLES)))
    phase = (2.0 * np.pi * frequency / rate) * np.arange(samples)
    q = np.tile(centre, (samples, 1))
    dq, ddq = np.zeros_like(q), np.zeros_like(q)
    for k in range(1, a.shape[1] + 1):
        w = 2.0 * np.pi * frequency * k
        sin, cos = np.sin(k * phase), np.cos(k * phase)
        up, down = a[:, k - 1], b[:, k - 1]
        q += np.outer(sin, up / w) - np.outer(cos, down / w)
        dq += np.outer(cos, up) + np.outer(sin, down)
        ddq += np.outer(cos, down * w) - np.outer(sin, up * w)
    return Reference(rate, q, dq, ddq)


def bang_bang(
    rate: Positive,
    points: Table,
    velocity: Numbers,
    acceleration: Numbers,
    *,
    smoothing: float = 0.0,
    pause: float = 0.0,
) -> Reference:
    """Trapezoids of velocity from point to point, all joints in step, as fast as limits allow.

    The way in joint space is straight: all joints share one profile, whose speed and
    acceleration are the largest that no joint's limit forbids. Moves too short to reach
    that speed are triangles. The first sample at which the last rest is over ends it.

    Parameters
    ----------
    rate : float
        [Hz]
    points : array_like, shape (m, n)
        [rad or m]
    velocity, acceleration : float or array_like, shape (n,)
        Limits [rad/s or m/s], [rad/s^2 or m/s^2].
    smoothing : float
        In [0, 1): share of each ramp of speed in which the acceleration itself ramps
        (the smoothed bang-bang of Khalil and Dombre); 0 leaves steps of acceleration.
    pause : float
        Rest at each point, the first and the last included [s].

    Raises
    ------
    InputError
        For fewer than two points, limits of another count or not positive, a smoothing outside of
        [0, 1), a negative pause, and too few or too many samples.
    """
    _check_positive(rate=rate)
    way = _check_numbers("points", points, 2, least=2)
    fastest = _check_vector("velocity", velocity, way.shape[1])
    steepest = _check_vector("acceleration", acceleration, way.shape[1])
    _check_positive(velocity=fastest, acceleration=steepest)
    if not (0.0 <= smoothing < 1.0 and 0.0 <= pause < np.inf):
        given = f"{smoothing:g} and {pause:g} s"
        raise InputError(f"reference: smoothing is in [0, 1), pause 0 or more; got {given}")
    moves: list[Move] = []
    clock = pause
    for step in np.diff(way, axis=0):
        # in moves per second: the joint that needs longest decides
        slowest = float(np.max(np.abs(step) / fastest))
        hardest = float(np.max(np.abs(step) / steepest))
        if slowest > 0.0:
            # the acceleration is above its mean over a smoothed ramp
            hardest /= 1.0 - 0.5 * smoothing
            ramp = min(hardest / slowest, float(np.sqrt(hardest)))
            duration = max(slowest + ramp, 2.0 * ramp)
            moves.append(Move(clock, duration, ramp, ramp, smoothing, step))
            clock += duration
        clock += pause
    samples = np.ceil(min(clock * rate, 2.0 * MOST_SAMPLES) - 1e-6) + 1
    return sum_moves(rate, check_sample_count(int(samples)), way[0], moves)


def quintic(
    rate: Positive, points: Table, times: Vector, velocities: Table | None = None
) -> Reference:
    """Polynomials of fifth order from point to point, without acceleration at the points.

    The last sample is the last that is not behind the last time.

    Parameters
    ----------
    rate : float
        [Hz]
    points : array_like, shape (m, n)
        [rad or m]
    times : array_like, shape (m,)
        Increasing [s]; the first sample is at the first of them.
    velocities : array_like, shape (m, n), optional
        At the points; zero by default [rad/s or m/s].

    Raises
    ------
    InputError
        For another count of times than of points, times that do not increase, velocities of
        another shape, and too few or too many samples.
    """
    _check_positive(rate=rate)
    way = _check_numbers("points", points, 2, least=2)
    clock = _check_numbers("times", times, 1)
    if len(clock) != len(way):
        raise InputError(f"reference: {len(clock)} times for {len(way)} points; give one each")
    spans = np.diff(clock)
    if spans.min() <= 0.0:
        place = int(np.argmin(spans > 0.0)) + 2
        raise InputError(f"reference: time {place} is not after the one before; sort the times")
    speed = (
        np.zeros_like(way) if velocities is None else _check_numbers("velocities", velocities, 2)
    )
    if speed.shape != way.shape:
        raise InputError(f"reference: velocities have shape {speed.shape}, points {way.shape}")
    length = min((clock[-1] - clock[0]) * rate, 2.0 * MOST_SAMPLES)
    samples = check_sample_count(int(length + 1e-6) + 1)
    time = np.minimum(np.arange(samples) / rate, clock[-1] - clock[0])
    piece = np.searchsorted(clock[1:-1] - clock[0], time, side="right")
    u = ((time - (clock[:-1] - clock[0])[piece]) / spans[piece])[:, None]
    h = spans[:, None]
    # what the straight start leaves to be closed by u^3, u^4 and u^5
    gap = np.diff(way, axis=0) - h * speed[:-1]
    bend = h * np.diff(speed, axis=0)
    a = (10.0 * gap - 4.0 * bend)[piece]
    b = (-15.0 * gap + 7.0 * bend)[piece]
    c = (6.0 * gap - 3.0 * bend)[piece]
    start, v, h = way[piece], speed[piece], h[piece]
    return Reference(
        rate,
        q=start + u * (h * v + u**2 * (a + u * (b + u * c))),
        dq=v + u**2 * (3.0 * a + u * (4.0 * b + u * 5.0 * c)) / h,
        ddq=u * (6.0 * a + u * (12.0 * b + u * 20.0 * c)) / h**2,
    )


REFERENCES: dict[str, Callable[..., Reference]] = {
    "log": sampled,
    "fourier": fourier,
    "bang-bang": bang_bang,
    "quintic": quintic,
}
"""Makers of references by name."""


def _check_positive(**values: float | Array) -> None:
    """Refuse rates, times and limits that are not positive."""
    for label, value in values.items():
        if not 0.0 < np.min(value) <= np.max(value) < np.inf:
            raise InputError(f"reference: {label} {value!s} has to be positive and finite")


def check_sample_count(samples: int) -> int:
    """Refuse references too short to follow or too long to hold."""
    if not 2 <= samples <= MOST_SAMPLES:
        count = "fewer than two" if samples < 2 else f"more than {MOST_SAMPLES}"
        raise InputError(f"reference: {count} samples; check the units of rate and time")
    return samples


def _check_numbers(label: str, values: ArrayLike, dimensions: int, least: int = 1) -> Array:
    """A copy of finite numbers, refused in another layout or with fewer rows than `least`."""
    layout = ("a list of numbers", "a table of numbers, its rows equally long,")[dimensions - 1]
    try:
        array = np.array(values, dtype=float, order="C")
    except (TypeError, ValueError):
        raise InputError(f"reference: {label} is not numbers; give {layout}") from None
    if array.ndim != dimensions or array.size == 0 or len(array) < least:
        wanted = f"{layout} with {least} or more entries"
        raise InputError(f"reference: {label} has shape {array.shape}; give {wanted}")
    if not np.isfinite(array).all():
        row = np.argwhere(~np.isfinite(array))[0, 0] + 1
        raise InputError(f"reference: {label} is not finite in row {row}; repair or cut it there")
    return array


def _check_vector(label: str, values: ArrayLike, length: int) -> Array:
    """A finite number for each joint; a single one stands for all."""
    vector = _check_numbers(label, np.full(length, values) if np.ndim(values) == 0 else values, 1)
    if len(vector) != length:
        raise InputError(f"reference: {label} has {len(vector)} entries for {length} joints")
    return vector
