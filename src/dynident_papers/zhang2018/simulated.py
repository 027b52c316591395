"""The arm that stands in for the survey's, its trajectory, and samples along it.

The survey's simulation has the controller know the robot: it follows its trajectory exactly. So do
samples here: exact motion, torques of the set parameters, and white noise where it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.resources import as_file, files

import numpy as np

from dynident.consistency.nearest import nearest_consistent
from dynident.control.reference import Reference, fourier
from dynident.core.arrays import Array
from dynident.core.inertia import from_com, to_com
from dynident.dynamics.idim import Idim, build_idim
from dynident.recording.prepare import Samples, prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.row_kinds import take_every_sample
from dynident.robot import load_robot
from dynident.robot.model import Robot

FRICTION = "coulomb-viscous-symmetric"
"""Equation (3) of the survey; its robots have no rotors of their own."""
STRIBECK = "stribeck"
"""Equation (4), with an offset that is zero here."""
RATE, PERIOD, HARMONICS = 100.0, 10.0, 5
"""[Hz], [s]; L = 5 harmonics of 0.1 Hz."""
LARGEST_SPEED = np.array([1.5, 1.5, 1.8, 2.5, 2.5, 3.0])
"""Of the trajectories [rad/s]."""
OFFSET = np.array([0.0, -0.2, 0.1, 0.0, 0.3, 0.0])
"""About which they go [rad]."""
COULOMB = np.array([80.0, 80.0, 50.0, 20.0, 15.0, 10.0])
VISCOUS = np.array([80.0, 80.0, 40.0, 15.0, 10.0, 8.0])
"""Set friction [Nm], [Nm s/rad]: joint 3 is the survey's, the others are ours."""
STATIC = 1.2 * COULOMB
"""F_s of equation (4); joint 3 is the survey's [Nm]."""
SPEED = np.array([0.15, 0.06, 0.1, 0.2, 0.08, 0.12])
"""Its q_s; joint 3 is the survey's [rad/s]."""
NOISE = np.array([10.0, 10.0, 10.0, 1.78, 1.78, 1.78])
"""Of torque, standard deviations (Table 7) [Nm]."""
POSITION_NOISE = 5e-5
"""Where positions are noisy, standard deviation [rad]."""
FILTER_HZ = 20.0
"""Of noisy positions, where they are filtered: fourth order, zero phase."""
BELIEF = 0.2
"""Share by which what is believed of the bodies is off."""
JOINT = 2
"""Joint 3, whose parameters the survey prints."""


@dataclass(frozen=True)
class Arm:
    """The stand-in."""

    published: Robot
    """With joint 3's body as published, which is not consistent."""
    robot: Robot
    """With the nearest consistent one: the set values."""
    believed: Robot
    """With bodies that are off by up to a fifth, for methods that start from or stay near some."""
    idim: Idim
    """Of the set values."""
    theta: Array
    """Set values."""


def load_arm(friction: str = FRICTION) -> Arm:
    """The stand-in with one of the two friction models, its third body made consistent."""
    with as_file(files(__package__) / "er20_class.toml") as file:
        published = load_robot(file)
    robot = replace(published, nominal=nearest_consistent(published).phi, warnings=())
    rng = np.random.default_rng(0)
    bodies = []
    for phi in robot.nominal:
        mass, com, inertia = to_com(phi)
        scale = 1.0 + BELIEF * rng.uniform(-1.0, 1.0, 5)
        bodies.append(from_com(scale[0] * mass, scale[1:4] * com, scale[4] * inertia))
    idim = build_idim(robot, friction, rotor=False)
    idim = idim.shaped(SPEED) if idim.shape_parameters else idim
    values = {"fc": COULOMB, "fv": VISCOUS, "fs": STATIC - COULOMB, "off": 0.0 * COULOMB}
    drives = [values[p.symbol][p.number - 1] for p in idim.parameters[idim.inertial :]]
    theta = np.concatenate([robot.nominal.ravel(), drives])
    return Arm(published, robot, replace(robot, nominal=np.array(bodies)), idim, theta)


def choose_trajectory(arm: Arm, tries: int, periods: int = 1) -> Reference:
    """Of some random Fourier series (27), that of the smallest condition number (26)."""
    found = [draw_fourier_series(arm, np.random.default_rng((0, k)), periods) for k in range(tries)]
    return min(found, key=lambda each: compute_condition_number(arm, each))


def draw_fourier_series(arm: Arm, rng: np.random.Generator, periods: int) -> Reference:
    """A Fourier series whose joints each reach their `LARGEST_SPEED`."""
    n = arm.robot.n
    shape = (n, HARMONICS)
    sine, cosine = rng.normal(size=shape), rng.normal(size=shape)
    base = fourier(RATE, PERIOD, 1.0 / PERIOD, OFFSET.tolist(), sine.tolist(), cosine.tolist())
    scale = (LARGEST_SPEED / np.abs(base.dq).max(axis=0))[:, None]
    sine, cosine = scale * sine, scale * cosine
    centre = OFFSET.tolist()
    return fourier(RATE, periods * PERIOD, 1.0 / PERIOD, centre, sine.tolist(), cosine.tolist())


def compute_condition_number(arm: Arm, reference: Reference) -> float:
    """Condition number of the base regressor along a motion, columns of unit length."""
    return (
        build_undecimated_problem(arm.robot, simulate_exact_log(arm, reference))
        .factors.weighted(np.ones(arm.robot.n))
        .condition()[0]
    )


def simulate_exact_log(arm: Arm, reference: Reference) -> Samples:
    """Samples along the exact motion, with torques of the set values."""
    torque = arm.idim.torque(arm.theta, reference.q, reference.dq, reference.ddq)
    samples = prepare(Recording("zhang2018", RATE, reference.q, torque), FILTER_HZ)
    return replace(samples, q=reference.q, dq=reference.dq, ddq=reference.ddq, warnings=())


def simulate_noisy_torque_log(arm: Arm, reference: Reference, seed: int) -> Samples:
    """The same with the torque noise of Table 7."""
    clean = simulate_exact_log(arm, reference)
    white = np.random.default_rng(seed).normal(size=clean.tau.shape)
    return clean.driven(clean.tau + NOISE * white)


def simulate_measured_log(arm: Arm, reference: Reference, seed: int, filtered: bool) -> Samples:
    """Noisy torques and positions, from which speeds and accelerations are differences."""
    rng = np.random.default_rng(seed)
    tau = simulate_noisy_torque_log(arm, reference, seed).tau
    q = reference.q + POSITION_NOISE * rng.normal(size=reference.q.shape)
    cutoff = FILTER_HZ if filtered else RATE
    return prepare(Recording("zhang2018", RATE, q, tau), FILTER_HZ, position_hz=cutoff)


def build_undecimated_problem(robot: Robot, samples: Samples) -> Problem:
    """Every sample as a row."""
    return take_every_sample(Problem(robot, samples, FRICTION, rotor=False))
