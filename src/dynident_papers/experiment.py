"""The TX40 twin under control: reference motions, controllers, encoders, random torques."""

from __future__ import annotations

import numpy as np

from dynident.control.controller import Controller, pd
from dynident.control.reference import Reference, bang_bang
from dynident.core.arrays import Array
from dynident.dynamics.whole import average_inertia
from dynident.friction.kernel import BY_SPEED, BY_STATE, VALUE
from dynident.friction.model import Element, FrictionModel, LinearTerm, ShapeTerm
from dynident.regression.covariance import add_preceding_rows
from dynident.simulation.sensors import Sensors
from dynident_papers.twin import Twin

CONTROL_RATE = 5000.0
"""Of the position controllers, as of the papers' measurements [Hz]."""
COUNT = 2e-4
"""Encoder resolution (ardiani2024, IV-C) [degrees per count]."""

POINTS = np.radians(
    [
        [0, 0, 0, 0, 0, 0],
        [120, -94, 90, -120, -90, -60],
        [40, 20, -30, -240, -50, 200],
        [-100, -30, 120, -80, -90, 80],
        [-25, 20, -40, 20, 40, -180],
        [20, -40, 30, -20, 108, -100],
        [-40, -20, -10, -60, 40, -180],
        [-10, -40, 70, -120, 100, -80],
        [50, 0, -40, -240, 30, -200],
        [-50, -90, 40, -120, 70, -100],
        [50, 10, -10, -10, 108, -200],
        [90, -30, -45, 80, 10, -80],
        [-20, -70, 30, -50, 50, -160],
        [0, 0, 0, 0, 0, 0],
    ]
)
"""Where the published log of the robot comes to rest, to the degree [rad]."""
ACCELERATION = np.array([25.6, 25.6, 44.0, 54.0, 37.0, 75.0])
"""With these and `SMOOTHING` its moves take as long as there, to 0.02 s [rad/s^2]."""
SMOOTHING = 0.5
CONFIGURATIONS = 500
"""Of the mean inertia, along the moves."""


def list_top_speeds(twin: Twin) -> Array:
    """The joints' limits, which the published log reaches, shape (n,) [rad/s]."""
    return np.array([joint.velocity for joint in twin.robot.joints])


def build_tx40_reference(twin: Twin, rate: float, duration: float) -> Reference:
    """Smoothed bang-bang moves through `POINTS`, then rest.

    Parameters
    ----------
    rate : float
        [Hz]
    duration : float
        The first twelve moves take 6.9 s, all of them 7.4 s; a shorter reference is cut off
        [s].
    """
    moves = bang_bang(rate, POINTS, list_top_speeds(twin), ACCELERATION, smoothing=SMOOTHING)
    samples = round(duration * rate)
    behind = ((0, max(0, samples - len(moves.q))), (0, 0))
    motion = np.pad(moves.q, behind, "edge"), np.pad(moves.dq, behind), np.pad(moves.ddq, behind)
    return Reference(rate, *motion).rows(0, samples)


def average_twin_inertia(twin: Twin) -> Array:
    """Mean diagonal of the mass matrix, rotors included, along the moves, shape (n,)."""
    q = build_tx40_reference(twin, CONFIGURATIONS / 7.0, 7.0).q
    return average_inertia(twin.idim, twin.theta, q)


def build_twin_controller(
    twin: Twin, scale: float = 1.0, rate: float | None = CONTROL_RATE
) -> Controller:
    """The twin's gains as ``tau = gain (kp (qref - q) + kd (dqref - dq))``.

    That is also a P loop around a P loop with the reference's velocity fed forward.

    Parameters
    ----------
    scale : float
        Multiplies the bandwidth: kp by its square, kd by itself.
    rate : float or None
        [Hz]; None is continuous.
    """
    return pd(scale**2 * twin.kp, scale * twin.kd, gain=twin.gain, rate=rate)


def build_bandwidth_controller(
    twin: Twin, bandwidth: Array, damping: float = 0.7, rate: float | None = CONTROL_RATE
) -> Controller:
    """The same law with gains for a natural frequency, from the mean inertia.

    ``kp = J w^2 / gain`` and ``kd = 2 damping w J / gain``: the position loop of a P loop
    around a P loop then falls by 3 dB at w for a damping of 0.7.

    Parameters
    ----------
    bandwidth : ndarray, shape (n,)
        [Hz]
    rate : float or None
        [Hz]
    """
    w, J = 2.0 * np.pi * bandwidth, average_twin_inertia(twin)
    return pd(J * w**2 / twin.gain, 2.0 * damping * w * J / twin.gain, gain=twin.gain, rate=rate)


def build_encoders(
    twin: Twin, count: float = COUNT, torque: Array | None = None, seed: int = 0
) -> Sensors:
    """Encoders of a resolution in the loop, and white noise of the logged torque.

    Parameters
    ----------
    count : float
        [degrees per count]
    torque : ndarray, shape (n,), optional
        Standard deviation [Nm].
    """
    n = twin.robot.n
    zero = np.zeros(n)
    white = zero if torque is None else torque
    return Sensors(np.full(n, np.radians(count)), zero, white, zero, zero, 0.0, seed)


def draw_disturbance(rms: Array, reference: Reference, cutoff: float, seed: int) -> Array:
    """Random torques on the joints, of a first-order spectrum.

    They stand for what a drive does and no model has: unmodelled friction, gears, ripple.

    Parameters
    ----------
    rms : ndarray, shape (n,)
        [Nm]
    reference : Reference
        Its clock is theirs.
    cutoff : float
        [Hz]

    Returns
    -------
    ndarray, shape (samples, n)
        Exact samples of one process, ``d+ = a d + sqrt(1 - a^2) w``, ``a = exp(-2 pi cutoff /
        rate)``.
    """
    samples = len(reference.q)
    a = np.exp(-2.0 * np.pi * cutoff / reference.rate)
    white = np.random.default_rng(seed).standard_normal((samples, len(rms)))
    white[1:] *= np.sqrt(1.0 - a * a)
    add_preceding_rows(np.array([a]), np.arange(samples), 1, white)
    return np.asarray(white * rms)


def fill_stribeck_excess(at, shape, z, out):  # type: ignore[no-untyped-def]
    """``exp(-(v / vs)^2) s(v)``."""
    v, speed = at.speed, shape[0]
    fall = np.exp(-((v / speed) ** 2))
    out[0, VALUE] = fall * at.sign
    out[0, BY_SPEED] = fall * (at.slope - 2.0 * v / speed**2 * at.sign)
    out[0, BY_STATE] = 2.0 * v**2 / speed**3 * fall * at.sign


STRIBECK = FrictionModel(
    (LinearTerm("fs", "Nm", positive=False),),
    (ShapeTerm("vs", "rad/s", 0.1, 1e-6, 1e3),),
    fill_stribeck_excess,
)
"""Friction at standstill above fc, and the speed at which it has fallen to 1/e of that."""


def build_stribeck_elements(excess: Array, speed: Array) -> tuple[Element, ...]:
    """A Stribeck effect on the joints' drives.

    Parameters
    ----------
    excess : ndarray, shape (n,)
        [Nm]
    speed : ndarray, shape (n,)
        [rad/s]
    """
    pairs = enumerate(zip(excess.tolist(), speed.tolist(), strict=True))
    return tuple(Element(j, STRIBECK, (fs,), (vs,)) for j, (fs, vs) in pairs)
