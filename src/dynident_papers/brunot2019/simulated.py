"""What is simulated for the output error experiment: settings of the robot, and their logs.

Names and order of the parameters are those of Table 1 of brunot2019.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dynident.control.controller import Controller, pid
from dynident.core.arrays import Array
from dynident.dynamics.base import base_parameters
from dynident.estimators.closed_loop import Simulation
from dynident.estimators.essential import find_base_columns
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.simulation.loop import Loop
from dynident.simulation.record import record_rollout
from dynident_papers.experiment import (
    build_bandwidth_controller,
    build_encoders,
    build_stribeck_elements,
    build_twin_controller,
    build_tx40_reference,
    draw_disturbance,
    list_top_speeds,
)
from dynident_papers.published import BANDWIDTHS, BRUNOT_NAMES
from dynident_papers.twin import FRICTION, Twin

BANDWIDTH = 10.0
"""omega_dyn: filters at 50 and 20 Hz (brunot2019, 5.1) [Hz]."""
SLOW = 0.01
"""Share of the largest speed below which the sign of the velocity is not to be trusted."""
SHARP = 0.001
"""Width of the plant's sign of the velocity, as a share of the joint's largest speed."""
STRIBECK_SPEED = 0.05
"""Of the excess friction, as a share of the largest speed."""
DISTURBANCE, CUTOFF = 0.10, 50.0
"""Random joint torques: share of the torque's rms, and corner frequency [Hz]."""
SEED = 1
"""Of the random torques and of the sensors' noise."""

NAMES = tuple(f"{name}R" if theirs.endswith("r") else name for name, theirs in BRUNOT_NAMES.items())
"""The 28 essential parameters among the twin's base parameters, in the order of Table 1."""
COULOMB = tuple(k for k, name in enumerate(NAMES) if name.startswith("fc"))


@dataclass(frozen=True)
class Scale:
    """How long and how finely the experiment is made."""

    duration: float
    rate: float
    """`duration`, `rate`: [s], [Hz]"""
    control: float
    """Rate of the controller and of the estimators' integration [Hz]."""
    sharpness: int
    """Integration steps of the plant in a control period."""
    width: float
    """Of the estimators' sign of the velocity, as a share of the joint's largest speed."""
    integrator: str = "ode3"
    """Name in `dynident.simulation.integrators.INTEGRATORS`."""


FULL = Scale(6.9, 5000.0, 5000.0, 4, 0.003)
"""The paper's 34500 samples."""
SIDE = Scale(6.9, 1000.0, 5000.0, 4, 0.003)
"""Of the settings beside it."""
REDUCED = Scale(3.0, 1000.0, 2000.0, 10, 0.006, "ode2")


@dataclass(frozen=True)
class Setting:
    """One case: what the actual robot does and the estimators do not know, or the reverse."""

    label: str
    plant_width: float | None = None
    width: float | None = None
    """`plant_width`, `width`: shares of the largest speed over which the sign turns, the robot's
    and the estimators'; by default that of the `Scale`."""
    stribeck: float = 0.0
    """Excess of friction at standstill, as a share of fc."""
    feed_forward: float = 0.0
    """Share of fc that the robot's controller adds in the direction of the reference."""
    kp: float = 1.0
    """The robot's position gains over those assumed."""
    integral: float = np.inf
    """Integral time of the robot's controller; infinite for none [s]."""
    designed: bool = False
    """With gains for 10 and 20 Hz instead of the twin's."""
    essential: bool = True
    """Whether the base parameters beside the 28 are zero, as the paper's F-test has them."""
    disturbance: float = DISTURBANCE
    """See `DISTURBANCE`."""
    slow: float = SLOW
    """Rows of a joint that is slower are not fitted; a share of its largest speed."""
    log_noise: float = 0.0
    """White noise of the logged torque, as a share of its rms."""


@dataclass(frozen=True)
class Case:
    """A log that is ready to be estimated."""

    problem: Problem = field(repr=False)
    full: Problem = field(repr=False)
    """`problem`, `full`: on the 28 parameters, and on all base parameters."""
    simulation: Simulation


@dataclass(frozen=True)
class SimulatedCase(Case):
    """A setting that was simulated."""

    truth: Array
    """Shape (28,)."""


def simulate_case(twin: Twin, setting: Setting, scale: Scale) -> SimulatedCase:
    """Move the twin under a setting, log it, and prepare what is estimated.

    Raises
    ------
    RolloutError
        When the motion diverges.
    """
    theta, kept = choose_plant_values(twin, setting.essential)
    plant, speeds = replace(twin, theta=theta), list_top_speeds(twin)
    reference = build_tx40_reference(twin, scale.rate, scale.duration)
    torque = twin.idim.torque(theta, reference.q, reference.dq, reference.ddq)
    rms = np.sqrt(np.mean(torque**2, axis=0))
    assumed = build_twin_controller(twin, rate=scale.control)
    if setting.designed:
        assumed = build_bandwidth_controller(twin, np.array(BANDWIDTHS), rate=scale.control)
    steps = round(scale.control / scale.rate)
    push = np.zeros_like(theta)
    for j, value in enumerate(plant.coulomb):
        push[twin.idim.names.index(f"fc{j + 1}")] = setting.feed_forward * value
    width = scale.width if setting.plant_width is None else setting.plant_width
    loop = Loop(
        twin.idim,
        build_actual_controller(assumed, setting),
        reference,
        substeps=steps * scale.sharpness,
        width=width * speeds,
        external=draw_disturbance(setting.disturbance * rms, reference, CUTOFF, SEED),
        elements=build_stribeck_elements(setting.stribeck * plant.coulomb, STRIBECK_SPEED * speeds),
        model=push,
        integrator=scale.integrator,
    )
    sensors = build_encoders(twin, torque=setting.log_noise * rms, seed=SEED)
    recording = record_rollout(loop, theta, sensors, setting.label).recording
    slow = (setting.slow * speeds).tolist()
    samples = prepare(recording, bandwidth=BANDWIDTH, drop_below=slow)
    full = Problem(twin.robot, samples, FRICTION)
    width = scale.width if setting.width is None else setting.width
    return SimulatedCase(
        select_essential(full),
        full,
        Simulation(
            assumed,
            start="rotors",
            width=tuple(width * speeds),
            integrator=scale.integrator,
            substeps=steps,
        ),
        kept,
    )


def select_essential(full: Problem) -> Problem:
    """The problem on the 28 parameters alone."""
    return full.only(find_base_columns(full.base, NAMES))


def choose_plant_values(twin: Twin, essential: bool) -> tuple[Array, Array]:
    """Standard parameters of the robot, and the 28 true values.

    `essential`: whether the base parameters beside the 28 are made zero, as the paper's F-test
    finds them on its robot. Returns `theta`, shape (standard parameters,). `truth`, shape (28,).
    """
    base = base_parameters(twin.idim)
    beta = base.matrix @ twin.theta
    chosen = find_base_columns(base, NAMES)
    if not essential:
        return twin.theta, beta[chosen]
    kept = np.zeros_like(beta)
    kept[chosen] = beta[chosen]
    return base.standard(kept), beta[chosen]


def build_actual_controller(assumed: Controller, setting: Setting) -> Controller:
    """The robot's controller, which the estimators take for `assumed`."""
    kp, kd, gain = -setting.kp * assumed.D[:, 3], -assumed.D[:, 4], assumed.gain
    ki = kp / setting.integral
    found = pid(kp, ki, kd, tracking_time=np.inf, gain=gain, rate=assumed.rate)
    return replace(found, compensation="feed-forward")
