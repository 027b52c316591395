"""What a robot's log would hold: a loop that is rolled out and seen by its sensors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.core.progress import Progress, ignore_progress
from dynident.recording.recording import Recording
from dynident.robot.model import Robot
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import SimulatedMotion, rollout
from dynident.simulation.sensors import Sensors, logged, position_noise

ROUNDING = 1e-9
"""By which a limit may be passed, over one and its size."""


@dataclass(frozen=True)
class RecordedMotion:
    """What was logged of a simulated motion, and what was the case.

    The log has positions and torques as the sensors give them, with the reference.
    """

    recording: Recording
    motion: SimulatedMotion = field(repr=False)


def record_rollout(
    loop: Loop,
    theta: Array,
    sensors: Sensors,
    name: str = "simulation",
    progress: Progress = ignore_progress,
) -> RecordedMotion:
    """Roll a loop out and log it.

    Noise and counts are those of the sensors, whatever the loop has of its own. `progress` is
    called with "simulation" and the share that is done. Whether a loop is fit to be rolled out, see
    `dynident.simulation.stability`.
    """
    noise = position_noise(sensors, loop.samples) if np.any(sensors.position) else None
    seen = replace(loop, noise=noise, count=sensors.count)
    motion = rollout(seen, theta, progress)
    joints = motion.q[:, motion.q.shape[1] - loop.idim.robot.n :]
    q, tau = logged(sensors, loop.rate, motion.measured, motion.tau, joints)
    if loop.idim.robot.loops:  # joints without a drive have no sensor of its torque
        tau = np.where(loop.idim.robot.passive, 0.0, tau)
    reference, robot = loop.reference, loop.idim.robot
    recording = Recording(
        name,
        loop.rate,
        q=q,
        tau=tau,
        qref=reference.q,
        dqref=reference.dq,
        drives=robot.drives,
        warnings=warn_of_limits(robot, joints, motion.dq[:, -robot.n :], motion.tau),
    )
    return RecordedMotion(recording, motion)


def warn_of_limits(robot: Robot, q: Array, dq: Array, tau: Array) -> tuple[str, ...]:
    """What of a simulated motion is beyond the limits of the robot's file, which stop nothing."""
    found = []
    for joint, at, speed, torque in zip(robot.joints, q.T, dq.T, tau.T, strict=True):
        place, pace, push = (
            ("rad", "rad/s", "Nm") if joint.kind == "revolute" else ("m", "m/s", "N")
        )
        limited = joint.lower < joint.upper  # files that know no limit often state 0
        reached = (
            (np.min(at), -1.0, joint.lower if limited else -np.inf, place),
            (np.max(at), 1.0, joint.upper if limited else np.inf, place),
            (np.max(np.abs(speed)), 1.0, joint.velocity or np.inf, pace),
            (np.max(np.abs(torque)), 1.0, joint.effort or np.inf, push),
        )
        over = [
            f"{value:.3g} {unit} (limit {limit:.3g})"
            for value, side, limit, unit in reached
            if side * value > side * limit + ROUNDING * (1.0 + abs(limit))
        ]
        if over:
            words = f"the simulated {joint.name} reaches {', '.join(over)}"
            found.append(f"{words}: limits of a robot's file stop no simulation")
    return tuple(found)
