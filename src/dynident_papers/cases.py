"""Cases of the output error experiment: what is simulated, and what estimators make of it.

Names and order of the parameters are those of Table 1 of brunot2019.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.base import base_parameters
from dynident.estimators.closed_loop import (
    Simulation,
)
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.simulation.controller import Controller, pid
from dynident_papers.experiment import (
    VELOCITY,
    Experiment,
    bandwidth_controller,
    disturbance,
    encoders,
    run_experiment,
    stribeck,
    twin_controller,
    tx40_reference,
)
from dynident_papers.twin import FRICTION, Twin

BANDWIDTH = 10.0
"""omega_dyn: filters at 50 and 20 Hz (brunot2019, 5.1) [Hz]."""
DESIGNED = np.array([10.0, 10.0, 10.0, 20.0, 20.0, 20.0])
"""Bandwidths of the position loops (ardiani2024, IV-A) [Hz]."""
SLOW = 0.01
"""Share of the largest speed below which the sign of the velocity is not to be trusted."""
SHARP = 0.001
"""Width of the plant's sign of the velocity, as a share of the joint's largest speed."""
STRIBECK_SPEED = 0.05
"""Of the excess friction, as a share of the largest speed."""
DISTURBANCE, CUTOFF = 0.10, 50.0
"""Random joint torques: share of the torque's rms, and corner frequency [Hz]."""
SEED = 1

NAMES = (
    *("Izz1R", "fv1", "fc1", "Ixx2R", "Ixz2R", "Izz2R", "mx2R", "fv2", "fc2", "Ixx3R", "Izz3R"),
    *("my3R", "Ia3", "fv3", "fc3", "mx4", "Ia4", "fv4", "fc4", "my5R", "Ia5", "fv5", "fc5"),
    *("Iam6", "fv6", "fc6", "fvm6", "fcm6"),
)
"""The 28 essential parameters by our names, in the order of Table 1."""
COULOMB = tuple(k for k, name in enumerate(NAMES) if name.startswith("fc"))


@dataclass(frozen=True)
class Scale:
    """How long and how finely the experiment is made.

    Attributes
    ----------
    duration, rate : float
        [s], [Hz]
    control : float
        Rate of the controller and of the estimators' integration [Hz].
    sharpness : int
        Integration steps of the plant in a control period.
    width : float
        Of the estimators' sign of the velocity, as a share of the joint's largest speed.
    """

    duration: float
    rate: float
    control: float
    sharpness: int
    width: float


FULL = Scale(6.9, 5000.0, 5000.0, 4, 0.003)
"""The paper's 34500 samples."""
SIDE = Scale(6.9, 1000.0, 5000.0, 4, 0.003)
"""Of the settings beside it."""
REDUCED = Scale(3.0, 1000.0, 2000.0, 10, 0.006)


@dataclass(frozen=True)
class Setting:
    """One case: what the actual robot does and the estimators do not know, or the reverse.

    Attributes
    ----------
    label : str
    plant_width, width : float, optional
        Shares of the largest speed over which the sign turns, the robot's and the
        estimators'; by default that of the `Scale`.
    stribeck : float
        Excess of friction at standstill, as a share of fc.
    feed_forward : float
        Share of fc that the robot's controller adds in the direction of the reference.
    kp : float
        The robot's position gains over those assumed.
    integral : float
        Integral time of the robot's controller; infinite for none [s].
    designed : bool
        With gains for 10 and 20 Hz instead of the twin's.
    essential : bool
        Whether the base parameters beside the 28 are zero, as the paper's F-test has them.
    disturbance : float
        See `DISTURBANCE`.
    slow : float
        Rows of a joint that is slower are not fitted; a share of its largest speed.
    log_noise : float
        White noise of the logged torque, as a share of its rms.
    """

    label: str
    plant_width: float | None = None
    width: float | None = None
    stribeck: float = 0.0
    feed_forward: float = 0.0
    kp: float = 1.0
    integral: float = np.inf
    designed: bool = False
    essential: bool = True
    disturbance: float = DISTURBANCE
    slow: float = SLOW
    log_noise: float = 0.0


@dataclass(frozen=True)
class Case:
    """A setting that was simulated, ready to be estimated.

    Attributes
    ----------
    problem, full : Problem
        On the 28 parameters, and on all base parameters.
    simulation : Simulation
    truth : ndarray, shape (28,)
    """

    problem: Problem = field(repr=False)
    full: Problem = field(repr=False)
    simulation: Simulation
    truth: Array


def made(twin: Twin, setting: Setting, scale: Scale) -> Case:
    """Move the twin under a setting, log it, and prepare what is estimated.

    Raises
    ------
    RolloutError
        When the motion diverges.
    """
    theta, kept = plant_values(twin, setting.essential)
    plant = replace(twin, theta=theta)
    reference = tx40_reference(scale.rate, scale.duration)
    rms = np.sqrt(np.mean(plant_torque(plant, reference.q, reference.dq, reference.ddq) ** 2, 0))
    assumed = twin_controller(twin, rate=scale.control)
    if setting.designed:
        assumed = bandwidth_controller(twin, DESIGNED, rate=scale.control)
    coulomb = np.array([theta[twin.idim.names.index(f"fc{j + 1}")] for j in range(twin.robot.n)])
    steps = round(scale.control / scale.rate)
    push = np.zeros_like(theta)
    for j, value in enumerate(coulomb):
        push[twin.idim.names.index(f"fc{j + 1}")] = setting.feed_forward * value
    experiment = Experiment(
        plant,
        actual_controller(assumed, setting),
        reference,
        encoders(twin, torque=setting.log_noise * rms, seed=SEED),
        (scale.width if setting.plant_width is None else setting.plant_width) * VELOCITY,
        external=disturbance(setting.disturbance * rms, reference, CUTOFF, SEED),
        elements=stribeck(setting.stribeck * coulomb, STRIBECK_SPEED * VELOCITY),
        model=push,
        substeps=steps * scale.sharpness,
    )
    recording = run_experiment(experiment, setting.label).recording
    slow = (setting.slow * VELOCITY).tolist()
    samples = prepare(recording, bandwidth=BANDWIDTH, drop_below=slow)
    full = Problem(twin.robot, samples, FRICTION)
    width = scale.width if setting.width is None else setting.width
    return Case(
        full.only([full.base.names.index(name) for name in NAMES]),
        full,
        Simulation(assumed, start="rotors", width=tuple(width * VELOCITY), substeps=steps),
        kept,
    )


def plant_values(twin: Twin, essential: bool) -> tuple[Array, Array]:
    """Standard parameters of the robot, and the 28 true values.

    Parameters
    ----------
    twin : Twin
    essential : bool
        Whether the base parameters beside the 28 are made zero, as the paper's F-test
        finds them on its robot.

    Returns
    -------
    theta : ndarray, shape (standard parameters,)
    truth : ndarray, shape (28,)
    """
    base = base_parameters(twin.idim)
    beta = base.matrix @ twin.theta
    chosen = [base.names.index(name) for name in NAMES]
    if not essential:
        return twin.theta, beta[chosen]
    kept = np.zeros_like(beta)
    kept[chosen] = beta[chosen]
    return base.standard(kept), beta[chosen]


def plant_torque(twin: Twin, q: Array, dq: Array, ddq: Array) -> Array:
    """Inverse dynamics of the twin, shape (samples, n)."""
    return twin.idim.torque(twin.theta, q, dq, ddq)


def actual_controller(assumed: Controller, setting: Setting) -> Controller:
    """The robot's controller, which the estimators take for `assumed`."""
    kp, kd, gain = -setting.kp * assumed.D[:, 3], -assumed.D[:, 4], assumed.gain
    ki = kp / setting.integral
    found = pid(kp, ki, kd, tracking_time=np.inf, gain=gain, rate=assumed.rate)
    return replace(found, compensation="feed-forward")
