"""What a log records of a simulated motion: resolution, noise, torque ripple and jitter."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Self

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.makers import ReadAs
from dynident.core.options import PerJoint

POSITION, TORQUE, JITTER = range(3)
"""Streams of random numbers, one per signal: more noise here changes nothing there."""

STENCIL = 4
"""Samples of a local cubic."""


ROWS = ("count", "position", "torque", "ripple", "ripple_order")
"""What sensors have for each joint."""
PerDrive = Annotated[Array, ReadAs(PerJoint)]


@dataclass(frozen=True)
class Sensors:
    """The imperfections of a log. Rows of numbers are copied and made read-only.

    Attributes
    ----------
    count : ndarray, shape (n,)
        Encoder resolution [rad or m per count]; 0 for none.
    position : ndarray, shape (n,)
        Standard deviation of white position noise [rad or m]. The controller sees it too.
    torque : ndarray, shape (n,)
        Standard deviation of white noise of the logged torque [Nm or N].
    ripple : ndarray, shape (n,)
        Amplitude of the ripple of the logged torque [Nm or N].
    ripple_order : ndarray, shape (n,)
        Periods of the ripple per ``2 pi`` of q: per turn of a revolute joint. For a prismatic
        joint of k periods a metre that is ``2 pi k``.
    jitter : float
        Standard deviation of the instants at which the log samples, while the log itself
        supposes a uniform clock [s]. All signals of a row share their instant.
    seed : int
        Of all noise.
    """

    count: PerDrive
    position: PerDrive
    torque: PerDrive
    ripple: PerDrive
    ripple_order: PerDrive
    jitter: Annotated[float, Field(ge=0.0)]
    seed: Annotated[int, Field(ge=0)]

    def __post_init__(self) -> None:
        n = np.size(self.count)
        for label in ROWS:
            object.__setattr__(self, label, _check_row(label, getattr(self, label), n))
        silent = np.flatnonzero((self.ripple > 0.0) & (self.ripple_order == 0.0))
        if len(silent):
            raise InputError(
                f"sensors: ripple of joint {silent[0] + 1} has ripple_order 0 and so no period; "
                "give its periods per turn"
            )
        if not isinstance(self.jitter, Real) or not 0.0 <= self.jitter < np.inf:
            raise InputError(f"sensors: jitter is {self.jitter!r} but has to be 0 s or more")
        object.__setattr__(self, "jitter", float(self.jitter))
        if not isinstance(self.seed, Integral) or isinstance(self.seed, bool) or self.seed < 0:
            raise InputError(f"sensors: seed is {self.seed!r} but has to be a whole number from 0")
        object.__setattr__(self, "seed", int(self.seed))

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.count)

    @classmethod
    def perfect(cls, n: int) -> Self:
        """Sensors of n joints that log what is."""
        zero = np.zeros(n)
        return cls(zero, zero, zero, zero, zero, 0.0, 0)


def position_noise(sensors: Sensors, samples: int) -> Array:
    """White position noise, drawn once: the controller and the log see the same.

    Parameters
    ----------
    sensors : Sensors
    samples : int
        Control instants. Of a longer run the first rows are the same.

    Returns
    -------
    ndarray, shape (samples, n)
        [rad or m]
    """
    return (
        _make_generator(sensors, POSITION).standard_normal((samples, sensors.n)) * sensors.position
    )


def quantise_positions(q: Array, count: Array) -> Array:
    """Positions to the nearest count of the encoder, shape (..., n) [rad or m]; 0 for none."""
    step = np.where(count > 0.0, count, 1.0)
    return np.where(count > 0.0, np.rint(q / step) * step, q)


def logged(
    sensors: Sensors, rate: float, q_measured: Array, tau: Array, q_true: Array
) -> tuple[Array, Array]:
    """Positions and torques as the log holds them.

    Parameters
    ----------
    sensors : Sensors
    rate : float
        Of the control instants [Hz]. Give every one from the first on; a slower log keeps
        every k-th of the rows returned.
    q_measured : ndarray, shape (samples, n)
        ``quantised(q_true + position_noise(...), count)``, what the controller saw [rad or m].
    tau : ndarray, shape (samples, n)
        True torques [Nm or N].
    q_true : ndarray, shape (samples, n)
        [rad or m]

    Returns
    -------
    q, tau : ndarray, shape (samples, n)

    Notes
    -----
    With jitter, row k is sampled at ``k / rate`` plus a normal deviate (in the order of time
    and within the motion). The encoder reads the true motion there, by a local cubic of
    `q_true`, with the noise of row k; a cubic through the noisy counts would smooth them. The
    torque is a local cubic of `tau`, its noise white whatever the jitter.

    Raises
    ------
    InputError
        When shapes differ, when q_measured is not what these sensors measure of q_true, or
        when the jitter is above the sampling period.
    """
    _check_signals(sensors, rate, q_measured=q_measured, tau=tau, q_true=q_true)
    noise = _make_generator(sensors, TORQUE).standard_normal(tau.shape) * sensors.torque
    if sensors.jitter == 0.0:
        return q_measured.copy(), tau + _evaluate_ripple(sensors, q_true) + noise
    shown = position_noise(sensors, len(q_true))
    _check_measured(sensors, q_measured, q_true + shown)
    at = draw_sampling_instants(sensors, rate, len(tau)) * rate
    moved = interpolate_by_cubics(q_true, at)
    return (
        quantise_positions(moved + shown, sensors.count),
        interpolate_by_cubics(tau, at) + _evaluate_ripple(sensors, moved) + noise,
    )


def draw_sampling_instants(sensors: Sensors, rate: float, samples: int) -> Array:
    """When each row of the log is truly sampled: in the order of time, within the motion.

    Shape (samples,), from the first control instant [s].
    """
    uniform = np.arange(samples) / rate
    late = _make_generator(sensors, JITTER).standard_normal(samples) * sensors.jitter
    return np.asarray(np.clip(np.sort(uniform + late), 0.0, uniform[-1]))


def interpolate_by_cubics(signal: Array, at: Array) -> Array:
    """A uniformly sampled signal between its samples, by cubics through the four nearest.

    The signal has the shape (samples, k), four or more; the places are counted in samples, 0 is the
    first. Exact for cubics; the error falls with the fourth power of the sampling period, so that
    second differences keep their second order.
    """
    first = np.clip(np.floor(at).astype(np.int64) - 1, 0, len(signal) - STENCIL)
    x = (at - first)[:, None]
    a, b, c, d = (signal[first + k] for k in range(STENCIL))
    before, after = x * (x - 1.0), (x - 2.0) * (x - 3.0)
    inner = (x - 1.0) * after * a / -6.0 + x * after * b / 2.0
    return np.asarray(inner - before * (x - 3.0) * c / 2.0 + before * (x - 2.0) * d / 6.0)


def _evaluate_ripple(sensors: Sensors, q: Array) -> Array:
    return np.asarray(sensors.ripple * np.sin(sensors.ripple_order * q))


def _make_generator(sensors: Sensors, signal: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(sensors.seed).spawn(3)[signal])


def _check_row(label: str, values: object, n: int) -> Array:
    """A read-only copy of one number per joint."""
    try:
        row = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"sensors: {label} is {values!r} but has to be {n} numbers") from error
    if row.shape != (n,) or n == 0:
        raise InputError(
            f"sensors: {label} has shape {row.shape} but has to be one number per joint, as count"
        )
    wrong = np.flatnonzero(~((row >= 0.0) & (row < np.inf)))
    if len(wrong):
        raise InputError(
            f"sensors: {label} of joint {wrong[0] + 1} is {row[wrong[0]]} but has to be 0 or more"
        )
    row.setflags(write=False)
    return row


def _check_signals(sensors: Sensors, rate: float, **signals: Array) -> None:
    if not 0.0 < rate < np.inf:
        raise InputError(f"sensors: rate is {rate} Hz but has to be above 0")
    samples = len(signals["tau"])
    for label, signal in signals.items():
        if signal.shape != (samples, sensors.n):
            raise InputError(
                f"sensors: {label} has shape {signal.shape} but has to be ({samples}, "
                f"{sensors.n}): the rows of tau, one column per joint"
            )
    if sensors.jitter > 0.0 and samples < STENCIL:
        raise InputError(f"sensors: jitter needs {STENCIL} samples or more, there are {samples}")
    if sensors.jitter * rate > 1.0:
        raise InputError(
            f"sensors: jitter is {sensors.jitter} s but has to be at most the sampling period, "
            f"{1.0 / rate} s"
        )


def _check_measured(sensors: Sensors, q_measured: Array, expected: Array) -> None:
    """Refuse positions with other noise than the sensors': the log would hold other errors."""
    rounding = 1e-9 * (1.0 + np.abs(expected))
    if np.any(np.abs(q_measured - expected) > 0.5 * sensors.count + rounding):
        raise InputError(
            "sensors: q_measured is not what these sensors measure of q_true; give every control "
            "instant from the first on, with position_noise of the same seed, quantised"
        )
