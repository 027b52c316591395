"""An arm with springs in its joints, and logs of it, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import toy

import dynident as di
from dynident.core.arrays import Array
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.elastic import bend_joints
from dynident.dynamics.idim import Idim, build_idim
from dynident.recording.recording import Recording
from dynident.robot.load import replace_drives
from dynident.robot.model import Robot
from dynident.robot.spec import DriveSpec

RATE, SECONDS = 500.0, 16.0
VALUES = {
    "Ia": 0.3, "fv": 2.0, "fc": 3.0, "off": 0.5, "K": 3000.0, "D": 2.0, "offs": 0.4, "offt": 0.3,
    "Kha": 0.15, "Khb": 0.25,
}  # fmt: skip
SLIPS = (5e-5, 2e-4)
"""Of bristles where springs have hysteresis [rad]."""
ENCODER, TORQUE = 2e-5, 0.1
"""Noise of the links' encoders and of torques [rad, Nm]."""


def elastic_arm(
    joints: Sequence[int], link: tuple[Any, ...] = ("position",), spring: tuple[Any, ...] = ()
) -> Robot:
    """The toy's first three joints, some of them with a spring."""
    known: dict[str, Any] = {"slip": SLIPS} if "hysteresis" in spring else {}
    specs = [DriveSpec(joint=f"joint_{j}", link=link, spring=spring, **known) for j in joints]
    return replace_drives(toy.arm(3), specs, None, "toy")


def full_set(idim: Idim, **values: float) -> Array:
    """Its standard parameters, of round numbers, some of them others."""
    known = VALUES | values
    return idim.join(idim.robot.nominal, np.array([known[p.symbol] for p in idim.drives]))


def periodic(n: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """A period of sums of sines with exact derivatives."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(SECONDS * RATE)) / RATE
    q, dq, ddq = np.zeros((3, len(t), n))
    for j in range(n):
        for k in range(1, 24):
            w, a, phase = 2.0 * np.pi * k / SECONDS, rng.normal() * 0.5 / (1 + k / 5) ** 2, k * j
            q[:, j] += a * np.sin(w * t + phase)
            dq[:, j] += a * w * np.cos(w * t + phase)
            ddq[:, j] -= a * w**2 * np.sin(w * t + phase)
    return q, dq, ddq


def shaken(n: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """The same with lines up to 5 Hz, of equal accelerations [4 rad/s^2]."""
    motion, rng = periodic(n, seed), np.random.default_rng(seed + 1)
    t = np.arange(len(motion[0])) / RATE
    for j in range(n):
        for k in range(int(1.5 * SECONDS), int(5.0 * SECONDS), 3):
            w, phase = 2.0 * np.pi * (k + j) / SECONDS, rng.uniform(0.0, 2.0 * np.pi)
            q = 4.0 / w**2 * np.exp(1j * (w * t + phase))
            for order, each in enumerate(motion):
                each[:, j] += ((1j * w) ** order * q).imag
    return motion


def multisine(n: int, joint: int, top: float) -> tuple[Array, Array, Array]:
    """Of one joint's link, in periods of 2 s: slow swings and lines up to `top` [Hz]."""
    rng, t = np.random.default_rng(joint), np.arange(int(SECONDS * RATE)) / RATE
    motion = np.zeros((3, len(t), n))
    for k in range(1, int(2.0 * top)):
        w = np.pi * k
        size = 0.15 if k == 1 else 0.4 / w**2
        q = size * np.exp(1j * (w * t + rng.uniform(0.0, 2.0 * np.pi)))
        for order, each in enumerate(motion):
            each[:, joint] += ((1j * w) ** order * q).imag
    return motion[0], motion[1], motion[2]


def twin(
    idim: Idim,
    seed: int = 0,
    noise: float = 1.0,
    move: Callable[[int], tuple[Array, Array, Array]] = periodic,
    **values: float,
) -> tuple[Recording, Array]:
    """A log of motors, links and torques, and the parameters behind it; some of other values."""
    rng = np.random.default_rng(seed)
    theta, motion = full_set(idim, **values), move(idim.robot.n)
    bent = bend_joints(idim, theta, motion, RATE)
    tau = idim.torque(theta, *motion, conditions=Conditions(deflection=bent))
    signals = {}
    for gauge, rows in idim.robot.sensed:
        own, size = motion[0][:, [gauge.place]], ENCODER
        if gauge.kind == "link torque":
            own, size = tau[:, rows], TORQUE
        signals[gauge.name] = own + noise * size * rng.normal(size=own.shape)
    tau = tau[:, : idim.robot.n] + noise * TORQUE * rng.normal(size=motion[0].shape)
    return Recording("twin", RATE, motion[0] + bent[0], tau, wrenches=signals), theta


def share_inside(robot: Robot, runs: int = 8, **values: Any) -> float:
    """Share of base parameters of some twins that are inside of their 95 % intervals."""
    idim, inside = build_idim(robot), []
    for seed in range(runs):
        log, theta = twin(idim, seed, **values)
        fit = di.identify(di.Problem(robot, di.prepare(log, 6.0)), "wls", doctor=False)
        off = np.abs(fit.estimate.beta - fit.base.matrix @ theta)
        inside.append(off < 1.96 * fit.estimate.covariance.std)
    return float(np.mean(inside))


def write_study(path: Path, study: str, drive: DriveSpec, link: str) -> None:
    """A study, the arm of the guide, and a log with such a drive; `link` is a column."""
    source = Path(__file__).parents[1] / "docs" / "files" / "arm.urdf"
    (path / "arm.urdf").write_text(source.read_text())
    (path / "study.toml").write_text(study)
    robot = replace_drives(di.load_robot(path / "arm.urdf"), [drive], None, "arm")
    log, _ = twin(build_idim(robot))
    time = np.arange(len(log.q)) / RATE
    table = np.column_stack([time, log.q, log.tau, log.wrenches["link_shoulder"]])
    names = f"time,q_shoulder,q_elbow,tau_shoulder,tau_elbow,{link}"
    np.savetxt(path / "bent.csv", table, delimiter=",", header=names, comments="")
