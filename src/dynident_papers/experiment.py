"""The TX40 twin under control: reference motions, and what a log of one would hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.inverse import mass_matrix
from dynident.friction.kernel import BY_SPEED, BY_STATE, VALUE
from dynident.friction.model import FrictionModel, Linear, Shape
from dynident.recording.recording import Recording
from dynident.simulation.controller import Controller, pd
from dynident.simulation.loop import Loop
from dynident.simulation.plant import Element, build_plant
from dynident.simulation.reference import Reference, bang_bang
from dynident.simulation.rollout import Motion, rollout
from dynident.simulation.sensors import Sensors, logged, position_noise
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
VELOCITY = np.radians([287.0, 287.0, 430.0, 410.0, 320.0, 700.0])
"""The robot's limits, which that log reaches [rad/s]."""
ACCELERATION = np.array([25.6, 25.6, 44.0, 54.0, 37.0, 75.0])
"""With these and `SMOOTHING` its moves take as long as there, to 0.02 s [rad/s^2]."""
SMOOTHING = 0.5
CONFIGURATIONS = 500


def tx40_reference(rate: float, duration: float) -> Reference:
    """Smoothed bang-bang moves through `POINTS`, then rest.

    Parameters
    ----------
    rate : float
        [Hz]
    duration : float
        The first twelve moves take 6.9 s, all of them 7.4 s; a shorter reference is cut off
        [s].
    """
    moves = bang_bang(rate, POINTS, VELOCITY, ACCELERATION, smoothing=SMOOTHING)
    samples = round(duration * rate)
    rest = max(0, samples - len(moves.q))
    if rest == 0:
        return moves.rows(0, samples)
    still = np.zeros((rest, moves.q.shape[1]))
    return Reference(
        rate,
        np.vstack([moves.q, np.tile(moves.q[-1], (rest, 1))]),
        np.vstack([moves.dq, still]),
        np.vstack([moves.ddq, still]),
    )


def mean_inertia(twin: Twin) -> Array:
    """Mean diagonal of the mass matrix, rotors included, along the moves, shape (n,)."""
    q = tx40_reference(CONFIGURATIONS / 7.0, 7.0).q
    M = mass_matrix(twin.idim.tree, twin.theta[: twin.idim.inertial].reshape(-1, 10), q)
    rotors = build_plant(twin.idim, twin.theta, np.ones(twin.robot.n)).rotors
    return np.asarray(np.mean(np.diagonal(M, axis1=1, axis2=2), axis=0) + np.diag(rotors))


def twin_controller(
    twin: Twin, scale: float = 1.0, rate: float | None = CONTROL_RATE
) -> Controller:
    """The twin's gains as ``tau = gain (kp (qref - q) + kd (dqref - dq))``.

    That is also a P loop around a P loop with the reference's velocity fed forward.

    Parameters
    ----------
    twin : Twin
    scale : float
        Multiplies the bandwidth: kp by its square, kd by itself.
    rate : float or None
        [Hz]; None is continuous.
    """
    return pd(scale**2 * twin.kp, scale * twin.kd, gain=twin.gain, rate=rate)


def bandwidth_controller(
    twin: Twin, bandwidth: Array, damping: float = 0.7, rate: float | None = CONTROL_RATE
) -> Controller:
    """The same law with gains for a natural frequency, from the mean inertia.

    ``kp = J w^2 / gain`` and ``kd = 2 damping w J / gain``: the position loop of a P loop
    around a P loop then falls by 3 dB at w for a damping of 0.7.

    Parameters
    ----------
    twin : Twin
    bandwidth : ndarray, shape (n,)
        [Hz]
    damping : float
    rate : float or None
        [Hz]
    """
    w, J = 2.0 * np.pi * bandwidth, mean_inertia(twin)
    return pd(J * w**2 / twin.gain, 2.0 * damping * w * J / twin.gain, gain=twin.gain, rate=rate)


def encoders(
    twin: Twin, count: float = COUNT, torque: Array | None = None, seed: int = 0
) -> Sensors:
    """Encoders of a resolution in the loop, and white noise of the logged torque.

    Parameters
    ----------
    twin : Twin
    count : float
        [degrees per count]
    torque : ndarray, shape (n,), optional
        Standard deviation [Nm].
    seed : int
    """
    n = twin.robot.n
    zero = np.zeros(n)
    white = zero if torque is None else torque
    return Sensors(np.full(n, np.radians(count)), zero, white, zero, zero, 0.0, seed)


def disturbance(rms: Array, reference: Reference, cutoff: float, seed: int) -> Array:
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
    seed : int

    Returns
    -------
    ndarray, shape (samples, n)
        Exact samples of one process, ``d+ = a d + sqrt(1 - a^2) w``, ``a = exp(-2 pi cutoff /
        rate)``.
    """
    samples = len(reference.q)
    a = np.exp(-2.0 * np.pi * cutoff / reference.rate)
    white = np.random.default_rng(seed).standard_normal((samples, len(rms)))
    out = np.empty_like(white)
    out[0] = white[0]
    for k in range(1, samples):
        out[k] = a * out[k - 1] + np.sqrt(1.0 - a * a) * white[k]
    return np.asarray(out * rms)


def stribeck_law(at, shape, z, out):  # type: ignore[no-untyped-def]
    """``exp(-(v / vs)^2) s(v)``."""
    v, speed = at.speed, shape[0]
    fall = np.exp(-((v / speed) ** 2))
    out[0, VALUE] = fall * at.sign
    out[0, BY_SPEED] = fall * (at.slope - 2.0 * v / speed**2 * at.sign)
    out[0, BY_STATE] = 2.0 * v**2 / speed**3 * fall * at.sign


STRIBECK = FrictionModel(
    (Linear("fs", "Nm", positive=False),),
    (Shape("vs", "rad/s", 0.1, 1e-6, 1e3),),
    stribeck_law,
)
"""Friction at standstill above fc, and the speed at which it has fallen to 1/e of that."""


def stribeck(excess: Array, speed: Array) -> tuple[Element, ...]:
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


@dataclass(frozen=True)
class Experiment:
    """A motion of the twin, and what is imperfect about it.

    Attributes
    ----------
    twin : Twin
    controller : Controller
        Of the actual robot; the estimators may be given another.
    reference : Reference
    sensors : Sensors
    width : ndarray, shape (n,), or float
        Speed over which the plant's Coulomb friction changes sign [rad/s].
    external : ndarray, shape (samples, n), optional
        Torques that act and are not logged [Nm].
    elements : tuple of Element
        Of the plant, beside its friction.
    model : ndarray, shape (standard parameters,), optional
        That the controller compensates with, where it does.
    substeps : int
        Integration steps a sample.
    integrator : str
    """

    twin: Twin
    controller: Controller
    reference: Reference
    sensors: Sensors
    width: Array | float
    external: Array | None = None
    elements: tuple[Element, ...] = ()
    model: Array | None = None
    substeps: int = 1
    integrator: str = "ode3"

    @property
    def loop(self) -> Loop:
        """The closed loop of the actual robot."""
        n = self.twin.robot.n
        return Loop(
            self.twin.idim,
            self.controller,
            self.reference,
            self.integrator,
            self.substeps,
            np.broadcast_to(np.asarray(self.width, dtype=float), (n,)).copy(),
            self.external,
            noise=position_noise(self.sensors, len(self.reference.q)),
            count=self.sensors.count,
            elements=self.elements,
            model=self.model,
        )


@dataclass(frozen=True)
class Run:
    """An experiment that was made.

    Attributes
    ----------
    recording : Recording
        What was logged, with the references.
    motion : Motion
        What was the case.
    """

    recording: Recording
    motion: Motion = field(repr=False)


def run_experiment(
    experiment: Experiment, name: str, progress: Callable[[str, float], None] | None = None
) -> Run:
    """Move the twin and log it.

    Parameters
    ----------
    experiment : Experiment
    name : str
        Of the recording.
    progress : callable, optional
        Called with "simulation" and the share that is done.

    Raises
    ------
    RolloutError
        When the motion diverges.
    """
    reference = experiment.reference
    motion = rollout(experiment.loop, experiment.twin.theta, progress)
    q, tau = logged(experiment.sensors, reference.rate, motion.measured, motion.tau, motion.q)
    recording = Recording(
        name, reference.rate, q=q, tau=tau, qref=reference.q.copy(), dqref=reference.dq.copy()
    )
    return Run(recording, motion)
