"""A designed trajectory as points for a controller: the way to it, and all limits checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.idim import build_idim
from dynident.excitation.sections import read_trajectory
from dynident.robot.model import Robot

from .limits import Limits

PEAK_SPEED = 15.0 / 8.0
PEAK_ACCELERATION = 10.0 / np.sqrt(3.0)
"""Of a polynomial of fifth order from rest to rest, for a distance and a time of one."""
BETWEEN = 10
"""Instants that are checked from one point to the next."""
ROUND = 1e-9
"""Share of a limit by which rounding may break it."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Points of a motion."""

    time: Array
    """From 0 on [s], shape (points,)."""
    q: Array
    dq: Array
    ddq: Array
    """`q`, `dq`, `ddq`: [rad or m], and their derivatives, shape (points, n)."""


def read_motion(path: Path, robot: Robot, rate: float) -> Motion:
    """The trajectory of a ``trajectory.json`` that ``dynident excite`` wrote, at a rate [Hz].

    Raises
    ------
    InputError
        When it is of other joints, or was designed without keeping its limits.
    """
    trajectory, _, periods = read_trajectory(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    joints = tuple(document["robot"]["joints"])
    if joints != robot.joint_names:
        raise InputError(
            f"{path}: is of {', '.join(joints)}, the robot has {', '.join(robot.joint_names)}"
        )
    if not document["kept"]:
        raise InputError(f"{path}: was designed without keeping its limits")
    if not 0.0 < rate <= 1e4:
        raise InputError(f"rate = {rate:g} Hz is none of points")
    found = trajectory.reference(rate, periods)
    return Motion(np.arange(len(found.q)) / rate, found.q, found.dq, found.ddq)


def plan_approach(
    start: Array, goal: Array, velocity: Array, acceleration: Array, rate: float
) -> Motion:
    """A straight way in joint space from rest to rest, the slowest joint within its limits.

    Polynomials of fifth order, of all joints in the same time. Nobody checks what is in its way.

    Parameters
    ----------
    start, goal : ndarray, shape (n,)
        [rad or m]
    velocity, acceleration : ndarray, shape (n,)
        That no joint exceeds.
    rate : float
        Of the points [Hz].
    """
    if not (np.all(velocity > 0.0) and np.all(acceleration > 0.0)):
        raise InputError("the approach needs speeds and accelerations above zero")
    far = np.abs(goal - start)
    times = (PEAK_SPEED * far / velocity, np.sqrt(PEAK_ACCELERATION * far / acceleration))
    length = max(1.0 / rate, float(np.max(times)))
    points = int(np.ceil(length * rate)) + 1
    s = np.linspace(0.0, 1.0, points)[:, None]
    length = (points - 1) / rate
    way = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    speed = 30.0 * s**2 * (1.0 - s) ** 2 / length
    turn = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / length**2
    d = goal - start
    return Motion(s[:, 0] * length, start + way * d, speed * d, turn * d)


def interpolate_motion(motion: Motion, between: int = BETWEEN) -> Motion:
    """What joint_trajectory_controller makes of points with all derivatives, at more instants.

    Polynomials of fifth order from point to point, that meet positions, speeds and accelerations.
    """
    h = np.diff(motion.time)[:, None, None]
    t = h * (np.arange(between) / between)[None, :, None]
    q, v, a = (x[:-1, None, :] for x in (motion.q, motion.dq, motion.ddq))
    end, w, b = (x[1:, None, :] for x in (motion.q, motion.dq, motion.ddq))
    d = end - q
    c = (
        q,
        v,
        0.5 * a,
        (20.0 * d - (8.0 * w + 12.0 * v) * h - (3.0 * a - b) * h**2) / (2.0 * h**3),
        (-30.0 * d + (14.0 * w + 16.0 * v) * h + (3.0 * a - 2.0 * b) * h**2) / (2.0 * h**4),
        (12.0 * d - 6.0 * (w + v) * h - (a - b) * h**2) / (2.0 * h**5),
    )
    position = sum(c[k] * t**k for k in range(6))
    speed = sum(k * c[k] * t ** (k - 1) for k in range(1, 6))
    turn = sum(k * (k - 1) * c[k] * t ** (k - 2) for k in range(2, 6))
    n = motion.q.shape[1]

    def join(inner: Array | int, last: Array) -> Array:
        return np.vstack([np.reshape(inner, (-1, n)), last[-1:]])

    time = np.append((motion.time[:-1, None] + t[:, :, 0]).ravel(), motion.time[-1])
    parts = ((position, motion.q), (speed, motion.dq), (turn, motion.ddq))
    return Motion(time, *(join(inner, last) for inner, last in parts))


def list_broken_limits(motion: Motion, limits: Limits, robot: Robot) -> list[str]:
    """Limits that a motion breaks between its points, in words, at most one a joint and kind.

    Torques are those of the inertials of the robot's file, where it has any.
    """
    every = interpolate_motion(motion)
    checks = [
        ("position", every.q, limits.lower, limits.upper),
        ("velocity", every.dq, -limits.velocity, limits.velocity),
    ]
    if robot.has_nominal:
        idim = build_idim(robot)
        tau = idim.torque(idim.nominal, every.q, every.dq, every.ddq)
        checks.append(("effort", tau, -limits.effort, limits.effort))
    found = []
    for what, values, low, high in checks:
        for j, name in enumerate(limits.names):
            beyond = np.maximum(low[j] - values[:, j], values[:, j] - high[j])
            worst = int(np.argmax(beyond))
            if not beyond[worst] <= ROUND * max(abs(low[j]), abs(high[j])):
                found.append(
                    f"{name}: {what} {values[worst, j]:.6g} at {every.time[worst]:.3f} s is not "
                    f"between {low[j]:.6g} and {high[j]:.6g}"
                )
    return found
