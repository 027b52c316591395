"""Damaged logs of simulated robots: what the doctor names, what is trusted, what repair leaves.

Four robots, with and without inertials in their files; a log to fit and a held-out one with
another motion; every kind of damage in up to three sizes, done to the log that is fitted (or to
the robot's file). And undamaged logs, about which nothing should be said. Writes
`docs/figures/doctor.md`:

    python benchmarks/doctor.py [--busy] [--jobs COUNT]

`--busy` where the machine does other work beside it: the page has no time then.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pinocchio as pin
from common import FIGURES, markdown
from scipy import signal

import dynident as di
from dynident.core.arrays import Array
from dynident.core.errors import DynidentError
from dynident.core.inertia import from_com
from dynident.diagnosis.examine import Finding, examine
from dynident.diagnosis.signs import find_signs
from dynident.dynamics.idim import build_idim
from dynident.fit.verdict import TRUSTED, list_finding_reasons, reach_verdict
from dynident.recording.recording import Recording
from dynident.recording.repairs import LogRepair, repair_recording
from dynident.report.fit import Fit
from dynident.robot.drives import Drives
from dynident.robot.model import Joint, Robot
from dynident_papers.twin import load_twin

RATE, SECONDS, BANDWIDTH = 500.0, 11.0, 10.0
FASTEST, TOP = 0.9, 2.0
"""Share of the speed limits that motions use, and their largest frequency [Hz]."""
ENCODER = 1e-5
"""Noise of positions [rad]."""
HELD_OUT = "held-out.csv"
HURT, SOUND = 92_001, 93_000
"""States of the random generators that no threshold was chosen on."""
UNDAMAGED = 14
"""Undamaged logs of each robot, with inertials and without."""

# ---- robots and their logs


def two_joint_arm() -> Robot:
    """A shoulder and an elbow with skew axes."""
    joints = tuple(
        Joint(
            name, link, "revolute", k, np.eye(3), np.array([0.05, 0.02, 0.3]), np.array(axis),
            velocity=8.0, effort=80.0,
        )
        for k, (name, link, axis) in enumerate(
            [("shoulder", "upper", (0.0, 1.0, 0.0)), ("elbow", "lower", (0.0, 0.6, 0.8))]
        )
    )  # fmt: skip
    bodies = [
        from_com(mass, [0.01, -0.02, 0.15], np.diag(inertia))
        for mass, inertia in ((4.0, [0.04, 0.05, 0.02]), (2.0, [0.015, 0.02, 0.01]))
    ]
    return Robot("two-joint arm", joints, np.array(bodies), Drives.direct(2))


def of_urdf(relative: str, n: int) -> Robot:
    """The first joints of a robot of example-robot-data; what follows is left out."""
    for folder in Path(pin.__file__).parents:
        file = folder / "share/example-robot-data/robots" / relative
        if file.is_file():
            robot = di.load_robot(file)
            return replace(
                robot,
                joints=robot.joints[:n],
                nominal=robot.nominal[:n],
                drives=Drives.direct(n),
                source=None,
                warnings=(),
            )
    raise FileNotFoundError(f"{relative}: install the test group, it brings example-robot-data")


ROBOTS: dict[str, Callable[[], Robot]] = {
    "two-joint arm": two_joint_arm,
    "TX40 twin": lambda: load_twin().robot,
    "Panda": lambda: of_urdf("panda_description/urdf/panda.urdf", 7),
    "UR10": lambda: of_urdf("ur_description/urdf/ur10_robot.urdf", 6),
}


def motion(robot: Robot, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Sums of sinusoids below 2 Hz, within the limits of speed."""
    t = np.arange(int(SECONDS * RATE)) / RATE
    q, dq, ddq = (np.zeros((len(t), robot.n)) for _ in range(3))
    for j, joint in enumerate(robot.joints):
        for f in rng.uniform(0.1, TOP, 6):
            w, a, phase = 2 * np.pi * f, rng.uniform(0.1, 0.5), rng.uniform(0, 2 * np.pi)
            q[:, j] += a * np.sin(w * t + phase)
            dq[:, j] += a * w * np.cos(w * t + phase)
            ddq[:, j] -= a * w**2 * np.sin(w * t + phase)
        share = min(1.0, FASTEST * joint.velocity / float(np.max(np.abs(dq[:, j]))))
        for x in (q, dq, ddq):
            x[:, j] *= share
    return q + rng.uniform(-0.5, 0.5, robot.n), dq, ddq


@dataclass(frozen=True, eq=False)
class Scene:
    """A robot with its truth and two logs."""

    name: str
    robot: Robot
    """As its file has it."""
    fit: Recording
    held: Recording
    """`fit`, `held`: other motions of the same robot."""
    other: Recording
    """A third one."""
    friction: str
    """Model of the truth."""
    theta: Array
    """The truth, as standard parameters of the robot with its inertials."""


def scene(name: str, nominal: bool, seed: int) -> Scene:
    """Logs of a robot whose bodies are not quite those of its file.

    Masses differ by up to 15 %, centres of mass by some mm; friction and rotors take their part
    of each joint's torque.
    """
    rng = np.random.default_rng([seed, *name.encode()])
    robot = ROBOTS[name]()
    twin = name == "TX40 twin"
    friction = "coulomb-viscous-symmetric" if twin else "coulomb-viscous"
    idim = build_idim(robot, friction)
    bodies = robot.nominal * rng.uniform(0.85, 1.15, (robot.n, 1))
    rigid = idim.join(bodies)
    if twin:
        theta = np.concatenate([bodies.ravel(), load_twin().theta[idim.inertial :]])
    else:
        q, dq, ddq = motion(robot, rng)
        rms = [root(x) for x in (np.maximum(root(idim.torque(rigid, q, dq, ddq)), 1.0), dq, ddq)]
        sizes = {"Ia": (0.2, 2), "fv": (0.15, 1), "fc": (0.15, None), "off": (0.02, None)}
        theta = rigid.copy()
        for k, parameter in enumerate(idim.parameters[idim.inertial :]):
            share, per = sizes[parameter.symbol]
            j = parameter.number - 1
            own = 1.0 if per is None else float(root(dq if per == 1 else ddq)[j])
            theta[idim.inertial + k] = share * rms[0][j] / own
    noise = rng.uniform(0.01, 0.03)
    logs = []
    for label in ("fit.csv", HELD_OUT, "other.csv"):
        q, dq, ddq = motion(robot, rng)
        tau = idim.torque(theta, q, dq, ddq)
        tau = tau + noise * root(tau) * rng.normal(size=tau.shape)
        logs.append(Recording(label, RATE, q + ENCODER * rng.normal(size=q.shape), tau))
    if not nominal:
        robot = replace(robot, nominal=np.zeros_like(robot.nominal))
    label = f"{name}, {'with' if nominal else 'without'} inertials"
    fit, held, other = logs
    return Scene(label, robot, fit, held, other, friction, theta)


def root(x: Array) -> Array:
    """Root mean square of each column."""
    return np.asarray(np.sqrt(np.mean(np.atleast_2d(x) ** 2, axis=0)))


# ---- damage

Made = tuple[Robot, Recording]
Make = Callable[[Scene, float, np.random.Generator], Made]


@dataclass(frozen=True)
class Damage:
    """A kind of damage."""

    names: tuple[str, ...]
    """Diagnoses and signs that are right about it; empty where none is looked for."""
    make: Make
    """The robot and the log to fit."""
    sizes: tuple[float, ...] = (1.0,)
    joints: int = 1
    """It takes so many."""
    measured: str = ""
    """Key of the repair that measures the size."""
    where: str = "fit"
    """``"fit"``, ``"held-out"`` or ``"both"``. Which log is damaged."""


def signals(change: Callable[..., tuple[Array, Array]]) -> Make:
    """Damage to the arrays ``(q, tau)``."""

    def make(s: Scene, size: float, rng: np.random.Generator) -> Made:
        q, tau = change(s.fit.q.copy(), s.fit.tau.copy(), size, rng)
        return s.robot, replace(s.fit, q=q, tau=tau)

    return make


def any_joint(x: Array, rng: np.random.Generator) -> int:
    """One of them."""
    return int(rng.integers(x.shape[1]))


def undo(repair_of: Callable[[int, np.random.Generator], LogRepair]) -> Make:
    """What a repair would make good, signs and orders."""

    def make(s: Scene, _size: float, rng: np.random.Generator) -> Made:
        n = s.robot.n
        repair = repair_of(n, rng)
        q = (s.fit.q * repair.signs("q", n))[:, np.argsort(repair.places("q", n))]
        tau = (s.fit.tau * repair.signs("tau", n))[:, np.argsort(repair.places("tau", n))]
        return s.robot, replace(s.fit, q=q, tau=tau)

    return make


def one_sign(n: int, rng: np.random.Generator) -> tuple[float, ...]:
    """One of n is negative."""
    own = np.ones(n)
    own[rng.integers(n)] = -1.0
    return tuple(own.tolist())


def swap(n: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Two of n exchanged."""
    i, j = rng.choice(n, 2, replace=False)
    order = list(range(1, n + 1))
    order[i], order[j] = order[j], order[i]
    return tuple(order)


def joint_swap(n: int, rng: np.random.Generator) -> LogRepair:
    """Two joints exchanged altogether."""
    order = swap(n, rng)
    return LogRepair(order={"q": order, "tau": order})


def late(x: Array, samples: int) -> Array:
    """Later by some samples; the first value stands until then."""
    out = np.roll(x, samples, axis=0)
    if samples > 0:
        out[:samples] = x[0]
    elif samples < 0:
        out[samples:] = x[-1]
    return out


def torque_late(q: Array, tau: Array, ms: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """All torques."""
    return q, late(tau, round(ms * 1e-3 * RATE))


def one_late(q: Array, tau: Array, ms: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """The torque of one joint."""
    j = any_joint(q, rng)
    tau[:, j] = late(tau[:, j], round(ms * 1e-3 * RATE))
    return q, tau


def offset(q: Array, tau: Array, deg: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """An encoder's zero: of the shoulder of two joints, of the third of more."""
    j = 0 if q.shape[1] == 2 else 2
    q[:, j] -= np.radians(deg)
    return q, tau


def absolute(q: Array, tau: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """A position with its parent's in it, or without."""
    j = int(rng.integers(1, q.shape[1]))
    q[:, j] += share * q[:, j - 1]
    return q, tau


def clip(q: Array, tau: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """All torques saturate."""
    top = share * np.max(np.abs(tau), axis=0)
    return q, np.clip(tau, -top, top)


def lost(q: Array, tau: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Torque is zero in runs of a tenth of a second."""
    run = round(0.1 * RATE)
    for start in range(0, len(tau), run):
        if rng.uniform() < share:
            tau[start : start + run] = 0.0
    return q, tau


def half_lost(q: Array, tau: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """The torque of one joint ends before the log does."""
    tau[round((1.0 - share) * len(tau)) :, any_joint(q, rng)] = 0.0
    return q, tau


def stuck(q: Array, tau: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """An encoder stands still from somewhere on."""
    j, start = any_joint(q, rng), round((1.0 - share) * len(q))
    q[start:, j] = q[start, j]
    return q, tau


def torque_stuck(
    q: Array, tau: Array, share: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """A torque stands still from somewhere on."""
    j, start = any_joint(q, rng), round((1.0 - share) * len(q))
    tau[start:, j] = tau[start, j]
    return q, tau


def steps(x: Array, size: float | Array) -> Array:
    """Rounded to multiples."""
    return np.asarray(size * np.round(x / size))


def slow_logger(q: Array, tau: Array, hz: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Torque through a first-order filter of the logger."""
    b, a = signal.butter(1, hz, fs=RATE)
    return q, signal.lfilter(b, a, tau, axis=0)


def slow_encoder(q: Array, tau: Array, hz: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Positions through a first-order filter of the logger."""
    b, a = signal.butter(1, hz, fs=RATE)
    zi = signal.lfilter_zi(b, a)
    filtered = [signal.lfilter(b, a, x, zi=zi * x[0])[0] for x in q.T]
    return np.column_stack(filtered), tau


def wrapped(q: Array, tau: Array, at: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Angles from 0 to 2 pi."""
    return np.mod(q, 2.0 * np.pi), tau


def one_scaled(q: Array, tau: Array, by: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """One torque."""
    tau[:, any_joint(q, rng)] *= by
    return q, tau


def reductions(q: Array, tau: Array, by: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Torques of the motors, each behind its own reduction."""
    return q, tau / (by * rng.uniform(0.6, 1.4, q.shape[1]))


def drift(q: Array, tau: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Torque sensors warm up."""
    ramp = np.linspace(0.0, 1.0, len(q))[:, None]
    return q, tau + share * root(tau) * ramp


def spikes(q: Array, tau: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Single samples are nonsense."""
    bad = rng.uniform(size=tau.shape) < share
    return q, np.where(bad, 30.0 * root(tau) * rng.normal(size=tau.shape), tau)


def one_in_degrees(q: Array, tau: Array, _: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """One joint's position."""
    q[:, any_joint(q, rng)] *= 180.0 / np.pi
    return q, tau


def each_late(q: Array, tau: Array, ms: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Each torque later by as much as it happens, up to some time."""
    for j in range(q.shape[1]):
        tau[:, j] = late(tau[:, j], round(rng.uniform(0.2, 1.0) * ms * 1e-3 * RATE))
    return q, tau


def position_late(q: Array, tau: Array, ms: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """The position of one joint."""
    j = any_joint(q, rng)
    q[:, j] = late(q[:, j], round(ms * 1e-3 * RATE))
    return q, tau


def ripple(q: Array, tau: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Torque sensors see the gears' teeth."""
    return q, tau + share * root(tau) * np.sqrt(2.0) * np.sin(24.0 * q)


def turned(n: int, rng: np.random.Generator) -> tuple[int, ...]:
    """Three of n exchanged."""
    i, j, k = rng.choice(n, 3, replace=False)
    order = list(range(1, n + 1))
    order[i], order[j], order[k] = order[j], order[k], order[i]
    return tuple(order)


def copy_of_torque(q: Array, tau: Array, _: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """One torque column is another's."""
    i, j = rng.choice(q.shape[1], 2, replace=False)
    tau[:, i] = tau[:, j]
    return q, tau


def copy_of_position(
    q: Array, tau: Array, _: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """One position column is another's."""
    i, j = rng.choice(q.shape[1], 2, replace=False)
    q[:, i] = q[:, j]
    return q, tau


def one_unsigned(q: Array, tau: Array, _: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """The torque of one joint."""
    j = any_joint(q, rng)
    tau[:, j] = np.abs(tau[:, j])
    return q, tau


def one_zero(q: Array, tau: Array, _: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """The torque of one joint was never written."""
    tau[:, any_joint(q, rng)] = 0.0
    return q, tau


def wrapped_half(q: Array, tau: Array, _: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Angles from -pi to pi, of a joint whose zero is there."""
    j = any_joint(q, rng)
    q[:, j] = np.mod(q[:, j] - np.mean(q[:, j]), 2.0 * np.pi) - np.pi
    return q, tau


def position_clipped(
    q: Array, tau: Array, share: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """The encoder of one joint ends before the joint does."""
    j = any_joint(q, rng)
    low, high = q[:, j].min(), q[:, j].max()
    q[:, j] = np.clip(q[:, j], low, low + share * (high - low))
    return q, tau


def one_revolution(q: Array, tau: Array, _: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """One joint's position in revolutions."""
    q[:, any_joint(q, rng)] /= 2.0 * np.pi
    return q, tau


def smooth_logger(q: Array, tau: Array, hz: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Torque through a second-order filter of the logger."""
    b, a = signal.butter(2, hz, fs=RATE)
    return q, signal.lfilter(b, a, tau, axis=0)


def one_other_run(s: Scene, _: float, rng: np.random.Generator) -> Made:
    """The torque of one joint is that of another run."""
    tau = s.fit.tau.copy()
    j = any_joint(tau, rng)
    tau[:, j] = s.other.tau[:, j]
    return s.robot, replace(s.fit, tau=tau)


def frictionless(s: Scene, share: float, rng: np.random.Generator) -> Made:
    """The controller's friction compensation, of so much of the friction, is not in the torques."""
    idim = build_idim(ROBOTS[s.name.split(",")[0]](), s.friction)
    theta = np.where(
        [p.symbol in ("fv", "fc", "fvm", "fcm") for p in idim.parameters], s.theta, 0.0
    )
    samples = di.prepare(s.fit, bandwidth=BANDWIDTH)
    return s.robot, replace(
        s.fit, tau=s.fit.tau - share * idim.torque(theta, samples.q, samples.dq, samples.ddq)
    )


def loaded(s: Scene, share: float, rng: np.random.Generator) -> Made:
    """Something in the hand, of so much of the last link's mass, that is not there held out."""
    idim = build_idim(ROBOTS[s.name.split(",")[0]](), s.friction)
    body = from_com(share * float(s.theta[idim.inertial - 10]), [0.02, 0.01, 0.1], 1e-3 * np.eye(3))
    theta = np.zeros(len(idim.parameters))
    theta[idim.inertial - 10 : idim.inertial] = body
    samples = di.prepare(s.fit, bandwidth=BANDWIDTH)
    return s.robot, replace(
        s.fit, tau=s.fit.tau + idim.torque(theta, samples.q, samples.dq, samples.ddq)
    )


def sprung(s: Scene, share: float, rng: np.random.Generator) -> Made:
    """A spring at one joint, of which the file knows nothing."""
    q, tau = s.fit.q, s.fit.tau.copy()
    j = any_joint(q, rng)
    tau[:, j] += share * root(s.other.tau)[j] / np.std(s.other.q[:, j]) * q[:, j]
    return s.robot, replace(s.fit, tau=tau)


def rate_off(s: Scene, factor: float, rng: np.random.Generator) -> Made:
    """The time axis is another."""
    return s.robot, replace(s.fit, rate=s.fit.rate * factor)


def another_run(s: Scene, _: float, rng: np.random.Generator) -> Made:
    """The torques of another run."""
    return s.robot, replace(s.fit, tau=s.other.tau)


def negated(s: Scene, _: float, rng: np.random.Generator) -> Made:
    """The held-out log's torques."""
    return s.robot, replace(s.held, tau=-s.held.tau)


def weightless(s: Scene, _: float, rng: np.random.Generator) -> Made:
    """The controller's gravity compensation, of the file's inertials, is not in the torques."""
    robot = ROBOTS[s.name.split(",")[0]]()
    still = np.zeros_like(s.fit.q)
    weight = build_idim(robot).torque(build_idim(robot).nominal, s.fit.q, still, still)
    return s.robot, replace(s.fit, tau=s.fit.tau - weight)


def mounted(gravity: tuple[float, float, float]) -> Make:
    """The robot's file has it standing otherwise than it does."""

    def make(s: Scene, _: float, rng: np.random.Generator) -> Made:
        return replace(s.robot, gravity=np.array(gravity)), s.fit

    return make


def coupling(s: Scene, _: float, rng: np.random.Generator) -> Made:
    """The file forgets a coupled drive, or has one that is none."""
    n = s.robot.n
    turns = np.eye(n)
    if np.all(s.robot.drives.turns == turns):
        turns[-1, -2] = 1.0
    return replace(s.robot, drives=replace(s.robot.drives, turns=turns)), s.fit


G = 9.81
DAMAGES: dict[str, Damage] = {
    "torque sign of a joint": Damage(
        ("torque sign", "sign"), undo(lambda n, r: LogRepair(sign={"tau": one_sign(n, r)})),
        (1, 2, 3),
    ),
    "torque sign of all joints": Damage(
        ("torque sign", "sign"), undo(lambda n, r: LogRepair(sign={"tau": -1.0}))
    ),
    "torques of two joints swapped": Damage(
        ("torque order",), undo(lambda n, r: LogRepair(order={"tau": swap(n, r)})),
        (1, 2, 3), joints=2,
    ),
    "torques in opposite order": Damage(
        ("torque order",),
        undo(lambda n, r: LogRepair(order={"tau": tuple(range(n, 0, -1))})), joints=3,
    ),
    "position sign of a joint": Damage(
        ("position sign", "sign"), undo(lambda n, r: LogRepair(sign={"q": one_sign(n, r)})),
        (1, 2, 3),
    ),
    "position sign of all joints": Damage(
        ("position sign", "sign"), undo(lambda n, r: LogRepair(sign={"q": -1.0}))
    ),
    "positions of two joints swapped": Damage(
        ("position order",), undo(lambda n, r: LogRepair(order={"q": swap(n, r)})),
        (1, 2, 3), joints=2,
    ),
    "positions in opposite order": Damage(
        ("position order",),
        undo(lambda n, r: LogRepair(order={"q": tuple(range(n, 0, -1))})), joints=3,
    ),
    "two joints swapped": Damage(
        ("joint order",),
        undo(joint_swap),
        (1, 2, 3), joints=2,
    ),
    "degrees taken for radians": Damage(
        ("position unit",), signals(lambda q, tau, *_: (q * 180.0 / np.pi, tau))
    ),
    "degrees of one joint": Damage(("position unit", "speed"), signals(one_in_degrees)),
    "revolutions taken for radians": Damage(
        ("position unit",), signals(lambda q, tau, *_: (q / (2.0 * np.pi), tau))
    ),
    "radians taken for degrees": Damage(
        ("position unit",), signals(lambda q, tau, *_: (q * np.pi / 180.0, tau))
    ),
    "absolute encoder, or relative": Damage(("absolute encoder",), signals(absolute), (1, -1)),
    "angles wrapped": Damage(("wrapped",), signals(wrapped)),
    "reversed time": Damage(
        ("reversed time",), signals(lambda q, tau, *_: (q[::-1], tau[::-1]))
    ),
    "delay of all torques [ms]": Damage(
        ("delay",), signals(torque_late), (-10, 6, 20, 60), measured="delay"
    ),
    "delay of one torque [ms]": Damage(
        ("delay", "delay of a joint"), signals(one_late), (10, 30, 80)
    ),
    "encoder offset [deg]": Damage(
        ("encoder offset",), signals(offset), (3, 10, -30), measured="offset"
    ),
    "torque clipped at share of its top": Damage(("clipped",), signals(clip), (0.8, 0.5, 0.3)),
    "torque lost at times, share": Damage(("clipped",), signals(lost), (0.05, 0.15, 0.3)),
    "torque of a joint ends early, share": Damage(
        ("clipped", "stuck"), signals(half_lost), (0.2, 0.5, 0.8)
    ),
    "torque of a joint freezes, share": Damage(
        ("stuck", "clipped"), signals(torque_stuck), (0.2, 0.5, 0.8)
    ),
    "encoder freezes, share": Damage(("stuck", "still"), signals(stuck), (0.2, 0.5, 1.0)),
    "coarse torque, steps in std": Damage(
        ("coarse",), signals(lambda q, tau, size, _: (q, steps(tau, size * np.std(tau, axis=0)))),
        (0.5, 1, 3),
    ),
    "coarse position [deg]": Damage(
        ("coarse",), signals(lambda q, tau, size, _: (steps(q, np.radians(size)), tau)), (0.1, 1, 5)
    ),
    "torque without sign": Damage(
        ("unsigned",), signals(lambda q, tau, *_: (q, np.abs(tau)))
    ),
    "spikes of torque, share": Damage(("spikes",), signals(spikes), (0.001, 0.01, 0.05)),
    "gravity taken out of the torques": Damage(("gravity",), weightless),
    "torque low-passed by the logger [Hz]": Damage(
        ("delay", "slow torque"), signals(slow_logger), (10, 3, 1)
    ),
    "position low-passed by the logger [Hz]": Damage(
        ("delay", "slow position"), signals(slow_encoder), (10, 3, 1)
    ),
    "torque drifts, share": Damage(("drift",), signals(drift), (0.1, 0.3, 1)),
    "torque of another run": Damage(("unrelated",), another_run),
    "rate times": Damage(("rate", "speed"), rate_off, (2, 0.5, 0.1, 10)),
    "time in ms taken for s": Damage(("rate", "speed"), rate_off, (1e-3,)),
    "time in s taken for ms": Damage(("rate", "speed"), rate_off, (1e3,)),
    "all torques times": Damage(
        ("torque scale",), signals(lambda q, tau, by, _: (q, by * tau)), (0.01, 0.1, 1000)
    ),
    "torques of motors, reduction": Damage(("torque scale",), signals(reductions), (100,)),
    "torque of a joint times": Damage(
        ("torque scale", "torque scale of a joint"), signals(one_scaled), (10, 3, 0.1)
    ),
    "on a wall": Damage(("mounting",), mounted((G, 0.0, 0.0))),
    "on the ceiling": Damage(("mounting",), mounted((0.0, 0.0, G))),
    "coupling of a drive": Damage(("coupled drive",), coupling),
    "torques of three joints exchanged": Damage(
        ("torque order",), undo(lambda n, r: LogRepair(order={"tau": turned(n, r)})),
        (1, 2, 3), joints=3,
    ),
    "delays of each torque, up to [ms]": Damage(("delay",), signals(each_late), (10, 30, 80)),
    "delay of one position [ms]": Damage(
        ("delay", "position delay"), signals(position_late), (10, 30, 80)),
    "torque ripples, share": Damage(("ripple",), signals(ripple), (0.1, 0.3, 1)),
    "torque of a joint is another's": Damage(
        ("copied",), signals(copy_of_torque), (1, 2), joints=2
    ),
    "position of a joint is another's": Damage(
        ("copied",), signals(copy_of_position), (1, 2), joints=2
    ),
    "torque of a joint without sign": Damage(("unsigned",), signals(one_unsigned), (1, 2)),
    "torque of a joint is zero": Damage(("stuck", "dead"), signals(one_zero), (1, 2)),
    "torque of a joint of another run": Damage(("unrelated",), one_other_run, (1, 2)),
    "angles of a joint wrapped at pi": Damage(("wrapped",), signals(wrapped_half), (1, 2)),
    "position of a joint clipped at share": Damage(
        ("stuck", "clipped"), signals(position_clipped), (0.9, 0.7, 0.4)
    ),
    "revolutions of one joint": Damage(("position unit",), signals(one_revolution), (1, 2)),
    "torque through a second-order filter [Hz]": Damage(
        ("delay", "slow torque"), signals(smooth_logger), (10, 3, 1)
    ),
    "friction taken out of the torques, share": Damage(("friction",), frictionless, (0.6, 0.9, 1)),
    "load in the hand, of the last link": Damage(("load",), loaded, (0.3, 1, 3)),
    "spring at a joint, share": Damage(
        ("spring",), sprung, (0.2, 0.5, 2), where="both"
    ),
    "file without gravity": Damage(("mounting",), mounted((0.0, 0.0, 0.0))),
    "motor side of one torque, reduction": Damage(
        ("torque scale", "torque scale of a joint"),
        signals(lambda q, tau, by, rng: one_scaled(q, tau, 1.0 / by, rng)), (30, 100, 160),
    ),
    "rate off by an integer": Damage(("rate", "speed"), rate_off, (3, 8, 0.2)),
    "time in us taken for s": Damage(("rate", "speed"), rate_off, (1e-6,)),
    "time in minutes taken for s": Damage(("rate", "speed"), rate_off, (60,)),
    "held-out torque of the other sign": Damage(("torque sign",), negated, where="held-out"),
}  # fmt: skip


# ---- what comes of it


@dataclass(frozen=True)
class Outcome:
    """What was said of one log, and how good the model was."""

    scene: str
    kind: str
    size: float
    found: tuple[str, ...]
    """Diagnoses, the most telling first."""
    shown: tuple[str, ...]
    """Signs."""
    state: str
    alone: str
    """`state`, `alone`: the verdict, and what it is without the held-out log; ``refused`` without a
    model."""
    fitted: float
    held: float
    """`fitted`, `held`: errors [%]."""
    repaired: float
    """Held-out error after what the findings prescribe [%]; nan where they prescribe nothing."""
    words: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    doctor: float = 0.0
    """`seconds`, `doctor`: of the identification, and of the doctor in it."""

    def named(self, names: tuple[str, ...]) -> bool:
        """Whether the first finding or the first sign is right; what is refused says why."""
        firsts = {*self.found[:1], *self.shown[:1]}
        return self.state == REFUSED or bool(firsts & set(names))

    def hurt(self, sound: float) -> bool:
        """Whether the held-out error at least doubles."""
        return self.state == REFUSED or self.held >= 2.0 * sound


REFUSED = "refused"


def identified(robot: Robot, log: Recording, held: Recording, doctor: bool = True) -> Fit:
    """By the default method."""
    problem = di.Problem(robot, di.prepare(log, bandwidth=BANDWIDTH))
    others = [di.prepare(held, bandwidth=BANDWIDTH)]
    return di.identify(problem, validation=others, bootstrap=0, doctor=doctor)


def held_out_error(result: Fit) -> float:
    """[%]"""
    return result.validation[0].entries[0].overall_percent


def outcome(s: Scene, kind: str, size: float, robot: Robot, log: Recording) -> Outcome:
    """Identify and listen."""
    try:
        result = identified(robot, log, s.held)
    except DynidentError as error:
        return Outcome(
            s.name, kind, size, (), (), REFUSED, REFUSED, np.nan, np.nan, np.nan, (str(error),)
        )
    reasons = result.verdict.reasons
    held_out = {HELD_OUT, *(reason.words for reason in list_finding_reasons(result.findings))}
    others = [r for r in reasons if not any(words in r.words for words in held_out)]
    (found,) = examine(result.base, result.samples)
    alone = reach_verdict([*others, *list_finding_reasons(found)], 1)
    return Outcome(
        s.name,
        kind,
        size,
        tuple(f.diagnosis for f in result.findings),
        tuple(sign.kind for sign in find_signs(robot, result.samples[0])),
        result.verdict.state,
        alone.state,
        result.identification[0].overall_percent,
        held_out_error(result),
        repaired_error(s, robot, log, result),
        (*(f.words for f in result.findings), *(r.words for r in reasons)),
        result.findings,
        result.timings["total"],
        result.timings["doctor"],
    )


def repaired_error(s: Scene, robot: Robot, log: Recording, result: Fit) -> float:
    """Held-out error after what `dynident doctor --fix` repairs of a log with findings."""
    if not result.findings:
        return np.nan
    held = di.prepare(s.held, bandwidth=BANDWIDTH)
    every = itertools.chain(*examine(result.base, [*result.samples, held], thorough=True))
    repaired = repair(robot, log, every)
    if repaired is None:
        return np.nan
    try:
        return held_out_error(identified(*repaired, s.held, doctor=False))
    except DynidentError:
        return np.nan


def repair(robot: Robot, log: Recording, findings: Iterable[Finding]) -> Made | None:
    """The robot and the log with all repaired that findings about it say; None without any."""
    repair, repairable = LogRepair(), False
    for found in findings:
        if found.gravity is not None:  # of a robot, whichever log it is told by
            robot, repairable = replace(robot, gravity=np.array(found.gravity)), True
        if found.log != log.name:
            continue  # of the held-out log, which is not repaired here
        if found.unit is not None:
            log = replace(log, q=log.q * in_radians(found.unit, found.what))
        if found.repair is not None:
            repair = repair.then(found.repair, robot.n)
        if found.rate is not None:
            log = replace(log, rate=found.rate)
        given = (found.unit, found.repair, found.rate)
        repairable = repairable or any(each is not None for each in given)
    return (robot, repair_recording(log, repair)) if repairable else None


def in_radians(unit: str | tuple[str, ...], what: str) -> Array:
    """What makes positions right that were read as radians, or as degrees or revolutions."""
    size = {"deg": np.pi / 180.0, "rev": 2.0 * np.pi, "rad": 1.0}
    if "not in" in what:
        wrong = "deg" if "deg" in what else "rev"
        return np.array([1.0 / size[wrong] if u == "rad" else 1.0 for u in np.atleast_1d(unit)])
    return np.array([size[u] for u in np.atleast_1d(unit)])


def sigmas(kind: Damage, found: Outcome) -> float:
    """By how many of its standard errors a size is off; nan where none was measured."""
    truth = {"delay": 1e-3 * found.size, "offset": np.radians(found.size)}
    for each in found.findings[:1]:
        if kind.measured and each.repair is not None and each.error > 0.0:
            values = np.atleast_1d(getattr(each.repair, kind.measured))
            size = float(values[np.argmax(np.abs(values))])
            return float(abs(size - truth[kind.measured]) / each.error)
    return np.nan


Pair = tuple[Outcome, Outcome]


def undamaged(count: int = UNDAMAGED) -> Iterator[Outcome]:
    """Sound logs of all robots."""
    for name, nominal, seed in itertools.product(ROBOTS, (True, False), range(count)):
        s = scene(name, nominal, SOUND + seed)
        yield outcome(s, "undamaged", 0.0, s.robot, s.fit)


def damaged(of: tuple[str, bool]) -> list[Pair]:
    """The sound log of a robot, with inertials or without, and the damaged one, of all kinds."""
    s = scene(*of, HURT)
    sound = outcome(s, "undamaged", 0.0, s.robot, s.fit)
    return [
        (sound, damage_log(s, kind, size))
        for kind, damage in DAMAGES.items()
        if damage.joints <= s.robot.n
        for size in damage.sizes
    ]


def damage_log(s: Scene, kind: str, size: float) -> Outcome:
    """What is said of a log damaged by that much."""
    damage, state = DAMAGES[kind], [int(1000 * abs(size)), *kind.encode()]
    robot, log = damage.make(s, size, np.random.default_rng(state))
    if damage.where == "fit":
        return outcome(s, kind, size, robot, log)
    if damage.where == "held-out":
        return outcome(replace(s, held=log), kind, size, robot, s.fit)
    _, held = damage.make(replace(s, fit=s.held), size, np.random.default_rng(state))
    return outcome(replace(s, held=held), kind, size, robot, log)


# ---- the page

HEADER = [
    "damage", "cases", "harmful", "named first", "trusted", "trusted, no held-out log",
    "error after repair", "size off by",
]  # fmt: skip


def row(kind: str, pairs: list[Pair]) -> list[str]:
    """One kind of damage."""
    damage = DAMAGES[kind]
    harm = [(a, b) for a, b in pairs if b.hurt(a.held)]
    named = sum(b.named(damage.names) for _, b in harm)
    right = [(a, b) for a, b in harm if {*b.found[:1]} & {*damage.names}]
    after = [b.repaired / a.held for a, b in right if np.isfinite(b.repaired)]
    off = [x for _, b in harm if np.isfinite(x := sigmas(damage, b))]
    return [
        kind,
        str(len(pairs)),
        str(len(harm)),
        str(named) if damage.names else "–",
        str(sum(b.state == TRUSTED for _, b in harm)),
        str(sum(b.alone == TRUSTED for _, b in harm)),
        f"{np.median(after):.2f}, at most {max(after):.2f}" if after else "–",
        f"{np.median(off):.1f}, at most {max(off):.1f} σ" if off else "–",
    ]


def misses(pairs: list[Pair]) -> Iterator[list[str]]:
    """What was harmful and not named, or trusted."""
    for sound, found in pairs:
        wrong = DAMAGES[found.kind].names and not found.named(DAMAGES[found.kind].names)
        if found.hurt(sound.held) and (wrong or found.state == TRUSTED):
            said = ", ".join(dict.fromkeys((*found.found, *found.shown))) or "nothing"
            yield [
                found.scene, found.kind, f"{found.size:g}", said, found.state,
                f"{found.fitted:.2g}", f"{sound.held:.2g}", f"{found.held:.2g}",
            ]  # fmt: skip


def page(sound: list[Outcome], pairs: list[Pair], busy: bool = False) -> str:
    """The whole page, of a machine that may have been busy with something else."""
    harm = [(a, b) for a, b in pairs if b.hurt(a.held)]
    looked = [(a, b) for a, b in harm if DAMAGES[b.kind].names]
    named = sum(b.named(DAMAGES[b.kind].names) for _, b in looked)
    trusted = sum(b.state == TRUSTED for _, b in harm)
    alone = sum(b.alone == TRUSTED for _, b in harm)
    alarms = [o for o in sound if o.state != TRUSTED or o.found or o.shown]
    off = [x for _, b in harm if np.isfinite(x := sigmas(DAMAGES[b.kind], b))]
    share = 100.0 * sum(o.doctor for o in sound) / sum(o.seconds for o in sound)
    time = "not measured in this run, beside which the machine did other work"
    if not busy:
        time = f"{share:.0f} % of an identification of an undamaged log without the bootstrap"
    lines = [
        "# Damaged logs",
        "",
        "Made by `benchmarks/doctor.py`: simulated logs of a two-joint arm, the TX40 twin, a Panda "
        "and a UR10, whose bodies differ from the file's by up to 15 %, with inertials in the file "
        f"and without; {SECONDS:g} s at {RATE:g} Hz below {TOP:g} Hz, torque noise of 1-3 % of "
        "each joint's rms, encoder noise of 1e-5 rad. Damage is done to the log that is fitted (or "
        "to the robot's file); the held-out log is sound, but for springs, which are in both, and "
        "the last kind. A log is *harmful* if it at least doubles the held-out error, or is "
        "refused; *named first* if the first finding or the first sign of the signals is "
        "right about it; `sign`, which names a torque's or else its position's, is right about "
        "either. The default method, without the bootstrap. Thresholds were chosen on logs of "
        "other random states than those shown here.",
        "",
        f"- {len(pairs)} damaged logs of {len(DAMAGES)} kinds, {len(harm)} of them harmful: of "
        f"{'; '.join(dict.fromkeys(b.scene for _, b in pairs))}",
        f"- named first: {named} of the {len(looked)} harmful of kinds that are looked for "
        f"({100 * named / len(looked):.1f} %)",
        f"- answered by `trusted`: {trusted}; had there been no held-out log: {alone}, with the "
        "reserve that a verdict by one log has",
        f"- false alarms: {len(alarms)} of {len(sound)} undamaged logs",
        f"- sizes of delays and offsets: {sum(x <= 3.0 for x in off)} of {len(off)} within three "
        "of their standard errors",
        f"- time of the doctor: {time}",
        "",
        "Errors after repair, by all that `dynident doctor --fix` writes, are held-out errors "
        "over those of the undamaged log, of the right findings that a study can repair.",
        "",
        *markdown(HEADER, [row(k, [p for p in pairs if p[1].kind == k]) for k in DAMAGES]),
        "",
        "## What was not named, or trusted",
        "",
        *markdown(
            ["robot", "damage", "size", "said", "verdict", "fitted [%]", "undamaged, held out [%]",
             "held out [%]"],
            list(misses(pairs)),
        ),
        "",
    ]  # fmt: skip
    lines += [f"- undamaged {alarm.scene}: {'; '.join(alarm.words)}" for alarm in alarms]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    sound = list(undamaged())
    with ProcessPoolExecutor(asked.jobs, get_context("spawn")) as pool:
        found = pool.map(damaged, itertools.product(ROBOTS, (True, False)))
        pairs = list(itertools.chain.from_iterable(found))
    (FIGURES / "doctor.md").write_text(page(sound, pairs, asked.busy), encoding="utf-8")


if __name__ == "__main__":
    main()
