"""Slow logs of a small robot: quantised, jittered, with samples lost."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import toy

from dynident.core.arrays import Array
from dynident.dynamics.idim import build_idim
from dynident.recording.arrays import read_arrays
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem

RATE = 25.0
STEP = 2e-3
"""In which encoders count [rad]."""
TORQUE = 0.3
"""Noise of the torques [Nm]."""
KINDS: dict[str, dict[str, Any]] = {
    "quantised, 2 mrad": {"jitter": 0.0, "lost": 0.0},
    "and jittered by 15 % of the period, every 20th sample lost": {},
}


@cache
def motion(seconds: float) -> tuple[Array, Array]:
    """Instants at 1 kHz, and frequencies, amplitudes and phases of two joints."""
    rng = np.random.default_rng(0)
    waves = np.array([
        [rng.uniform(0.1, 1.2, 5), rng.uniform(0.1, 0.4, 5), rng.uniform(0.0, 6.0, 5)]
        for _ in range(2)
    ])  # fmt: skip
    return np.arange(int(seconds * RATE)) / RATE, waves


def problem(
    seed: int,
    seconds: float = 20.0,
    jitter: float = 0.15,
    lost: float = 0.05,
    torque: float = TORQUE,
    step: float = STEP,
    friction: str = "coulomb-viscous",
    spikes: int = 0,
    lacking: float = 0.0,
) -> tuple[Problem, Array]:
    """A problem of such a log, and its true base parameters.

    Spikes are torques of the first joint that are off by forty times their noise; what the model
    lacks is a slow torque on both [Nm].
    """
    rng, robot = np.random.default_rng(seed), toy.arm(2)
    time, waves = motion(seconds)
    time = time + jitter / RATE * rng.uniform(-1.0, 1.0, len(time))
    kept = rng.uniform(size=len(time)) >= lost
    kept[:10] = True
    time = time[kept]
    w = 2.0 * np.pi * waves[:, 0]
    phase = w * time[:, None, None] + waves[:, 2]
    # where the encoder's steps lie differs from log to log
    q = np.sum(waves[:, 1] * np.sin(phase), axis=2) + step * rng.uniform(size=2)
    dq = np.sum(waves[:, 1] * w * np.cos(phase), axis=2)
    ddq = -np.sum(waves[:, 1] * w**2 * np.sin(phase), axis=2)
    idim = build_idim(robot, friction)
    theta = toy.true_parameters(idim, robot.nominal)
    tau = idim.torque(theta, q, dq, ddq) + torque * rng.normal(size=q.shape)
    tau += lacking * np.sin(7.0 * np.sin(0.3 * time))[:, None]
    tau[20 : 20 + 30 * spikes : 30, 0] += 40.0 * torque
    if step:
        q = step * np.round(q / step)
    log = read_arrays(q, tau, time=time, robot=robot, clock="stamps", bridge=0.2)
    found = Problem(robot, prepare(log, 2.0), friction)
    return found, found.base.matrix @ theta
