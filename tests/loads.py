"""Arms with a load and without, for tests and benchmarks: two logs with torque noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from robots import urdf

import dynident as di
from dynident.core.arrays import Array
from dynident.core.inertia import from_com
from dynident.dynamics.idim import Idim

RATE = 500.0
NOISE = 0.02
"""Of the root mean square of each joint's torque."""
LOCKED = {"panda": {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02}, "ur10": None}
MASS, CENTRE, INERTIA = 1.0, (0.03, -0.02, 0.12), (2e-3, 3e-3, 1.5e-3)
KILOGRAM = from_com(MASS, CENTRE, np.diag(INERTIA))
"""At the hand, in the last link's joint frame."""
TRUE = np.array([MASS, *CENTRE, INERTIA[0], 0.0, INERTIA[1], 0.0, 0.0, INERTIA[2]])
DRIVES = {"Ia": 0.3, "fv": 2.0, "fc": 3.0, "off": 0.2}
Motion = tuple[Array, Array, Array]


def motion(robot: di.Robot, seconds: float, seed: int) -> Motion:
    """Fourier series of 0.1 Hz and four harmonics over most of each joint's range."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    q, dq, ddq = (np.zeros((len(t), robot.n)) for _ in range(3))
    for j, joint in enumerate(robot.joints):
        low, high = max(joint.lower, -2.5), min(joint.upper, 2.5)
        a, b = rng.normal(size=(2, 5))
        size = 0.35 * (high - low) / np.sum(np.hypot(a, b))
        q[:, j] = 0.5 * (low + high)
        for k in range(5):
            w = 0.2 * np.pi * (k + 1)
            sine, cosine = np.sin(w * t), np.cos(w * t)
            q[:, j] += size * (a[k] * sine + b[k] * cosine)
            dq[:, j] += size * w * (a[k] * cosine - b[k] * sine)
            ddq[:, j] -= size * w**2 * (a[k] * sine + b[k] * cosine)
    return q, dq, ddq


def slowed(robot: di.Robot, seconds: float, pace: float) -> Motion:
    """The beginning of the second motion's path, at a share of its speed."""
    q, dq, ddq = motion(robot, pace * seconds, 2)
    t = np.arange(int(seconds * RATE)) / RATE

    def stretch(x: Array) -> Array:
        return np.column_stack([np.interp(pace * t, t[: len(x)], own) for own in x.T])

    return stretch(q), pace * stretch(dq), pace**2 * stretch(ddq)


@dataclass(frozen=True)
class Arm:
    """An arm with known parameters, and its torques without a load and with one."""

    robot: di.Robot
    theta: Array
    """Standard parameters without the load."""
    motions: tuple[Motion, ...]
    """Tuple of two motions."""
    torques: tuple[Array, ...]
    """Tuple of two ndarray."""

    def logs(self, seed: int, gain: Array | float = 1.0) -> tuple[di.Recording, ...]:
        """The log without the load and the one with it; drives give `gain` times what they say."""
        rng = np.random.default_rng(seed)
        found = []
        for name, (q, dq, ddq), tau in zip(
            ("empty", "loaded"), self.motions, self.torques, strict=True
        ):
            noise = NOISE * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape)
            found.append(di.Recording(name, RATE, q, (tau + noise) / gain, dq=dq, ddq=ddq))
        return tuple(found)


@cache
def bare(
    name: str, seconds: float, pace: float = 1.0
) -> tuple[Idim, Array, tuple[Motion, ...], Array]:
    """An arm's model, its parameters, both motions, and the columns of a load along the second.

    The second goes along the path of `pace` 1, so many times as fast.
    """
    robot = di.load_robot(str(urdf(name)), locked=LOCKED[name])
    idim = di.build_idim(robot)
    drives = [DRIVES[p.symbol] * (1.0 if p.number < 4 else 0.3) for p in idim.drives]
    theta = np.concatenate([robot.nominal.ravel(), drives])
    second = motion(robot, seconds, 2) if pace == 1.0 else slowed(robot, seconds, pace)
    motions = (motion(robot, seconds, 1), second)
    last = slice(idim.inertial - 10, idim.inertial)
    return idim, theta, motions, idim.regressor(*motions[1])[:, :, last].copy()


def arm(
    name: str,
    load: Array = KILOGRAM,
    seconds: float = 20.0,
    drift: dict[str, float] | None = None,
    pace: float = 1.0,
) -> Arm:
    """An arm of example-robot-data; `drift` is added to all of its drives with the load on.

    `load` may have one row a sample: then it moves.
    """
    idim, theta, motions, added = bare(name, seconds, pace)
    changed = theta + [(drift or {}).get(p.symbol, 0.0) for p in idim.parameters]
    loads = np.broadcast_to(load, (len(added), 10))
    loaded = idim.torque(changed, *motions[1]) + np.einsum("tjk,tk->tj", added, loads)
    return Arm(idim.robot, theta, motions, (idim.torque(theta, *motions[0]), loaded))


def empty(own: Arm, log: di.Recording, method: str = "pc-idim-ls") -> di.Fit:
    """The arm without the load."""
    problem = di.Problem(own.robot, di.prepare(log, bandwidth=10.0))
    return di.identify(problem, method, doctor=False)
