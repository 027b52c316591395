"""A small robot with known parameters, and motions of it, for tests."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import robots

from dynident.core.arrays import Array
from dynident.core.factors import System
from dynident.core.inertia import from_com
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import Idim, build_idim
from dynident.online.tracker import Tracker
from dynident.recording.prepare import Samples, prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.robot.drives import Drives
from dynident.robot.model import Joint, Robot

RATE = 1000.0


def arm(n: int = 2, coupled: bool = False, nominal: bool = True) -> Robot:
    """A chain of revolute joints with skew axes; its last two drives may be coupled."""
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)]
    joints = tuple(
        Joint(
            name=f"joint_{k + 1}",
            link=f"link_{k + 1}",
            kind="revolute",
            parent=k,
            rotation=np.eye(3),
            translation=np.array([0.05, 0.02, 0.3]),
            axis=np.array(axes[k], dtype=float),
        )
        for k in range(n)
    )
    rng = np.random.default_rng(11)
    bodies = []
    for k in range(n):
        half = rng.uniform(0.05, 0.15, 3)
        mass = 4.0 / (k + 1)
        moments = mass / 3.0 * (half @ half - half**2)
        bodies.append(from_com(mass, [0.01, -0.02, 0.12], np.diag(moments)))
    drives = Drives.direct(n)
    if coupled:
        turns = np.eye(n)
        turns[-1, -2] = 1.0
        drives = Drives(turns, drives.reduction, drives.zero, drives.gain)
    return Robot(
        name="toy",
        joints=joints,
        nominal=np.array(bodies) if nominal else np.zeros((n, 10)),
        drives=drives,
    )


def true_parameters(idim: Idim, bodies: Array) -> Array:
    """Standard parameters: the bodies' own, with rotors and friction of round numbers."""
    values = {"Ia": 0.3, "Iam": 0.2, "fv": 2.0, "fvm": 1.5, "fc": 3.0, "fcm": 1.2, "off": 0.5}
    drive = [values[p.symbol] for p in idim.parameters[idim.inertial :]]
    return np.concatenate([np.asarray(bodies).ravel(), drive])


def motion(n: int, seconds: float, seed: int = 0, rate: float = RATE) -> tuple[Array, Array, Array]:
    """Band-limited motion with exact derivatives: sums of sinusoids below 2 Hz."""
    q, dq, ddq = waves(n, seconds, seed, rate)
    return q.copy(), dq.copy(), ddq.copy()


@cache
def waves(n: int, seconds: float, seed: int, rate: float) -> tuple[Array, Array, Array]:
    """`motion`, which many tests have alike."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    q, dq, ddq = (np.zeros((len(t), n)) for _ in range(3))
    for j in range(n):
        for f in rng.uniform(0.1, 2.0, 6):
            w, a, phase = 2 * np.pi * f, rng.uniform(0.1, 0.5), rng.uniform(0, 2 * np.pi)
            q[:, j] += a * np.sin(w * t + phase)
            dq[:, j] += a * w * np.cos(w * t + phase)
            ddq[:, j] -= a * w**2 * np.sin(w * t + phase)
    return q, dq, ddq


def solved(problem: Problem) -> dict[str, float]:
    """Least squares by name, of rows that tell all base parameters."""
    system = problem.factors.weighted(problem.factors.ones)
    assert system.condition()[1] == problem.base.count
    return dict(zip(problem.base.names, system.solve(), strict=True))


def assert_is_least_squares(tracker: Tracker, A: Array, b: Array) -> None:
    """That a tracker is where least squares of all rows are."""
    expected = np.linalg.lstsq(A, b, rcond=None)[0]
    std = np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
    np.testing.assert_allclose(tracker.beta / std, expected / std, atol=1e-6)
    np.testing.assert_allclose(tracker.std, std, rtol=1e-6)


def on_its_motion(recording: Recording, bandwidth: float = 20.0, **options: float) -> Samples:
    """A recording prepared, but for its motion: that has neither noise nor a filter's error."""
    samples = prepare(recording, bandwidth, **options)
    return replace(samples, q=recording.q, dq=recording.dq, ddq=recording.ddq)


def log(
    robot: Robot,
    seconds: float = 12.0,
    noise: Array | float = 0.0,
    seed: int = 0,
    friction: str = "coulomb-viscous",
    bodies: Array | None = None,
) -> tuple[Recording, Array]:
    """A recording with white torque noise, and the standard parameters behind it."""
    idim = build_idim(robot, friction)
    theta = true_parameters(idim, robot.nominal if bodies is None else bodies)
    q, dq, ddq = motion(robot.n, seconds, seed)
    tau = idim.torque(theta, q, dq, ddq)
    tau = tau + np.random.default_rng(seed + 1).normal(size=tau.shape) * noise
    return Recording("toy log", RATE, q, tau, dq=dq, ddq=ddq), theta


def setup(
    robot: Robot,
    theta: Array | None = None,
    noise: float = 0.01,
    friction: str = "coulomb-viscous",
    seed: int = 0,
    samples: int = 80,
) -> tuple[BaseParameters, System, Array]:
    """Base parameters, whitened rows at random states, and the truth behind them."""
    idim = build_idim(robot, friction)
    base = base_parameters(idim)
    if theta is None:
        theta = true_parameters(idim, robot.nominal)
    X = idim.regressor(*robots.states(robot, samples, seed=seed)).reshape(-1, len(theta))
    y = X @ theta
    sigma = noise * np.sqrt(np.mean(y**2))
    y = y + sigma * np.random.default_rng(seed).normal(size=len(y))
    R, p = np.linalg.qr(np.column_stack([X[:, base.kept], y]) / sigma, mode="r"), base.count
    return base, System(R[:p, :p], R[:p, p], float(R[p, p] ** 2)), theta


def measure(robot: Robot, seconds: float, noise: float = 0.3, encoder: float = 1e-5) -> Recording:
    """A recording with noise of positions, too, and without their derivatives."""
    recording, _ = log(robot, seconds, noise)
    q = recording.q + encoder * np.random.default_rng(5).normal(size=recording.q.shape)
    return replace(recording, q=q, dq=None, ddq=None)


ARM = """
name = "arm"
convention = "modified"
[[joint]]
name = "one"
d = 0.3
inertial = { mass = 4.0, com = [0.05, 0.0, 0.1], inertia = [0.05, 0.0, 0.05, 0.0, 0.0, 0.02] }
[[joint]]
name = "two"
alpha = 1.5707963267948966
a = 0.1
inertial = { mass = 2.0, com = [0.2, 0.0, 0.0], inertia = [0.01, 0.0, 0.03, 0.0, 0.0, 0.03] }
"""
