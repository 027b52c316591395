"""What a robot's log would hold: a loop that is rolled out and seen by its sensors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.core.progress import Progress, ignore_progress
from dynident.recording.recording import Recording
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import SimulatedMotion, rollout
from dynident.simulation.sensors import Sensors, logged, position_noise


@dataclass(frozen=True)
class Recorded:
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
) -> Recorded:
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
    reference, drives = loop.reference, loop.idim.robot.drives
    qref, dqref = reference.q, reference.dq
    recording = Recording(name, loop.rate, q=q, tau=tau, qref=qref, dqref=dqref, drives=drives)
    return Recorded(recording, motion)
