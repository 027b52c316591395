"""Sound logs of many robots, made by MuJoCo and Pinocchio: about these the doctor says nothing.

Robots that no threshold was chosen on, with bodies that differ from their files', friction, tools
and drives of their own, rates from 30 Hz to 5 kHz and lengths from 6 s to two minutes.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
from scipy.interpolate import CubicSpline

import dynident as di
from dynident.core.arrays import Array
from dynident.core.inertia import from_com
from dynident.recording.recording import Recording
from dynident.robot.drives import Drives
from dynident.robot.model import Joint, Robot
from dynident.robot.rotations import convert_rotation_vector

MOST = 60_000
"""Samples of a log."""
FINEST = 5e-4
"""Step of MuJoCo at most [s]."""
MASSES = 0.12
"""By how much masses differ from the file's, at most."""


# ---- robots


def take_limb(file: str, first: str, n: int, turn: float = 0.0) -> Robot:
    """Some joints of a robot of example-robot-data in a row, on a stand that is turned about y."""
    for folder in Path(pin.__file__).parents:
        path = folder / "share/example-robot-data/robots" / file
        if path.is_file():
            break
    else:
        raise FileNotFoundError(f"{file}: install the test group, it brings example-robot-data")
    robot = di.load_robot(path)
    chain = [robot.joint_names.index(first) if first else 0]
    while len(chain) < n:
        after = [k for k, each in enumerate(robot.joints) if each.parent == chain[-1] + 1]
        chain.append(after[0])
    joints = [replace(robot.joints[k], parent=at) for at, k in enumerate(chain)]
    gravity = convert_rotation_vector(np.array([0.0, turn, 0.0])) @ np.array([0.0, 0.0, -9.81])
    bodies = robot.nominal[chain]
    return Robot(
        f"{Path(file).parts[0].removesuffix('_description')} {first}", tuple(joints), bodies,
        Drives.direct(n), gravity=gravity,
    )  # fmt: skip


def build_arm(name: str, seed: int, kinds: str, masses: tuple[float, float]) -> Robot:
    """An arm in code: ``r`` for joints that turn, ``p`` for those that slide."""
    rng = np.random.default_rng(seed)
    joints, bodies = [], []
    for k, kind in enumerate(kinds):
        axis = np.eye(3)[(2, 1, 0)[k % 3]] if kind == "r" else np.eye(3)[k % 3]
        place = np.zeros(3) if k == 0 else rng.uniform(-0.1, 0.35, 3)
        joints.append(
            Joint(
                f"j{k + 1}", f"l{k + 1}", "revolute" if kind == "r" else "prismatic", k, np.eye(3),
                place, axis, velocity=4.0, effort=1000.0,
            )
        )  # fmt: skip
        mass = masses[0] + (masses[1] - masses[0]) * k / max(1, len(kinds) - 1)
        size = rng.uniform(0.05, 0.3, 3)
        inertia = mass / 12.0 * np.diag(np.sum(size**2) - size**2)
        bodies.append(from_com(mass, rng.uniform(-0.5, 0.5, 3) * size, inertia))
    return Robot(name, tuple(joints), np.array(bodies), Drives.direct(len(kinds)))


@dataclass(frozen=True)
class Kind:
    """A robot, and how its logs are made."""

    make: Callable[[], Robot]
    engine: str
    rate: float
    seconds: float
    motion: str
    """``sines``, ``points`` with rests between, or ``chirp``."""
    tool: float = 0.0
    """Mass at the last link that the file has not, as a share of that link's."""


def kinds() -> dict[str, Kind]:
    """All robots by name."""
    limbs = [
        ("ur_description/urdf/ur3_gripper.urdf", "shoulder_pan_joint", 6, 0.0),
        ("kinova_description/robots/kinova.urdf", "j2s6s200_joint_1", 6, 0.0),
        ("xarm_description/urdf/xarm7.urdf", "joint1", 7, 0.0),
        ("z1_description/urdf/z1.urdf", "joint1", 6, 0.0),
        ("so_arm_description/urdf/so100.urdf", "", 5, 0.0),
        ("finger_edu_description/robots/finger_edu.urdf", "", 3, 0.0),
        ("double_pendulum_description/urdf/double_pendulum.urdf", "", 2, 0.0),
        ("asr_twodof_description/urdf/TwoDofs.urdf", "", 2, 0.0),
        ("baxter_description/urdf/baxter.urdf", "left_s0", 7, 0.0),
        ("pr2_description/urdf/pr2.urdf", "r_shoulder_pan_joint", 7, 0.0),
        ("talos_data/robots/talos_left_arm.urdf", "", 7, 0.5),
        ("tiago_pro_description/robots/tiago_pro.urdf", "arm_left_1_joint", 7, 0.3),
        ("romeo_description/urdf/romeo.urdf", "LShoulderPitch", 5, 0.0),
        ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "left_shoulder_pitch_joint", 7, 0.0),
        ("icub_description/robots/icub.urdf", "l_hip_pitch", 5, 0.0),
        ("a1_description/urdf/a1.urdf", "FL_hip_joint", 3, 0.0),
        ("b1_description/urdf/b1.urdf", "FL_hip_joint", 3, 0.2),
        ("go1_description/urdf/go1.urdf", "FL_hip_joint", 3, 0.0),
        ("laikago_description/urdf/laikago.urdf", "", 3, 0.0),
        ("hyq_description/robots/hyq_no_sensors.urdf", "lf_haa_joint", 3, 0.0),
        ("anymal_b_simple_description/robots/anymal.urdf", "LF_HAA", 3, 0.0),
        ("solo_description/robots/solo12.urdf", "FL_HAA", 3, 0.0),
        ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "left_hip_pitch_joint", 6, 0.0),
    ]  # fmt: skip
    made = [
        ("SCARA", 1, "rrpr", (8.0, 0.8)),
        ("gantry", 2, "ppp", (40.0, 6.0)),
        ("gantry with wrist", 3, "pppr", (30.0, 2.0)),
        ("welding arm", 4, "rrrrrr", (60.0, 3.0)),
        ("table arm", 5, "rrrrr", (2.0, 0.3)),
        ("heavy arm", 6, "rrrr", (300.0, 40.0)),
        ("pendulum", 7, "r", (3.0, 3.0)),
    ]
    makes: list[tuple[str, Callable[[], Robot]]] = [
        (Path(file).parts[0].removesuffix("_description") + f" {first or n}",
         partial(take_limb, file, first, n, turn))
        for file, first, n, turn in limbs
    ]  # fmt: skip
    makes += [
        (name, partial(build_arm, name, seed, own, masses))
        for name, seed, own, masses in made
    ]  # fmt: skip
    rates = (1000.0, 200.0, 125.0, 500.0, 30.0, 5000.0, 50.0, 250.0, 100.0, 2000.0)
    lengths = (12.0, 30.0, 60.0, 20.0, 120.0, 6.0, 60.0, 25.0, 40.0, 10.0)
    motions = ("sines", "points", "chirp", "sines")
    return {
        name: Kind(
            make, ("mujoco", "pinocchio")[k % 2], rates[k % 10], lengths[(k + k // 10) % 10],
            motions[(k + k // 4) % 4], (0.0, 0.3, 0.0)[k % 3],
        )
        for k, (name, make) in enumerate(makes)
    }  # fmt: skip


# ---- truth and motion


@dataclass(frozen=True, eq=False)
class Truth:
    """A robot with its bodies and what its drives do, beside its file."""

    robot: Robot
    bodies: Array
    rotor: Array
    viscous: Array
    coulomb: Array
    stick: Array
    """`rotor`, `viscous`, `coulomb`, `stick`: armature, viscous and Coulomb friction, and what is
    added to that below some speed, shape (n,)."""


def draw_truth(robot: Robot, tool: float, rng: np.random.Generator) -> Truth:
    """Bodies near the file's with a tool, and drives that take their share of each torque."""
    bodies = robot.nominal * rng.uniform(1.0 - MASSES, 1.0 + MASSES, (robot.n, 1))
    mass = tool * bodies[-1, 0]
    if mass > 0.0:
        com, spin = bodies[-1, 1:4] / bodies[-1, 0], 1e-2 * mass * np.eye(3) * 0.05
        bodies[-1] += from_com(mass, 1.3 * com + [0.01, 0.0, 0.02], spin)
    model = build_pinocchio(robot, bodies)
    data = model.createData()
    size = np.zeros(robot.n)
    inertia = np.zeros(robot.n)
    for _ in range(50):
        q = rng.uniform(-1.0, 1.0, robot.n)
        size += np.abs(pin.rnea(model, data, q, np.zeros(robot.n), np.ones(robot.n))) / 50.0
        inertia += np.diag(pin.crba(model, data, q)) / 50.0
    coulomb = rng.uniform(0.05, 0.2, robot.n) * size + 0.02 * np.max(size)
    viscous = rng.uniform(0.05, 0.2, robot.n) * size + 0.01 * np.max(size)
    rotor = rng.uniform(0.1, 0.6, robot.n) * inertia
    return Truth(robot, bodies, rotor, viscous, coulomb, rng.uniform(0.0, 0.3, robot.n) * coulomb)


def build_pinocchio(robot: Robot, bodies: Array) -> pin.Model:
    """The chain in Pinocchio."""
    model = pin.Model()
    model.gravity.linear = np.asarray(robot.gravity)
    parent = 0
    for joint, own in zip(robot.joints, bodies, strict=True):
        axis = np.asarray(joint.axis, dtype=float)
        kind = pin.JointModelRevoluteUnaligned if joint.kind == "revolute" else (
            pin.JointModelPrismaticUnaligned
        )  # fmt: skip
        place = pin.SE3(np.asarray(joint.rotation), np.asarray(joint.translation))
        parent = model.addJoint(parent, kind(axis), place, joint.name)
        com, inertia = take_apart(own)
        model.appendBodyToJoint(parent, pin.Inertia(own[0], com, inertia), pin.SE3.Identity())
    return model


def take_apart(body: Array) -> tuple[Array, Array]:
    """Centre of mass and the inertia about it, of ``m, m c, Ixx Ixy Iyy Ixz Iyz Izz``."""
    m, com = body[0], body[1:4] / body[0]
    xx, xy, yy, xz, yz, zz = body[4:]
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return com, about_origin - m * (com @ com * np.eye(3) - np.outer(com, com))


def plan(kind: Kind, robot: Robot, time: Array, rng: np.random.Generator) -> Array:
    """Positions over time, smooth, within the robot's speeds, shape (samples, n)."""
    q = np.zeros((len(time), robot.n))
    for j, joint in enumerate(robot.joints):
        reach = 0.15 if joint.kind == "prismatic" else 0.9
        fastest = 0.7 * min(joint.velocity if joint.velocity > 0.0 else np.inf, 3.0)
        top = min(1.5, kind.rate / 30.0)
        if kind.motion == "points":
            hold = rng.uniform(1.2, 2.2)
            count = int(time[-1] / hold) + 2
            poses = rng.uniform(-reach, reach, count)
            at = np.minimum((time / hold).astype(int), count - 2)
            s = np.clip((time / hold - at) / 0.85, 0.0, 1.0)
            q[:, j] = poses[at] + (poses[at + 1] - poses[at]) * s**3 * (10 - 15 * s + 6 * s**2)
        elif kind.motion == "chirp":
            f0, f1 = rng.uniform(0.05, 0.15), rng.uniform(0.5, 1.0) * top
            phase = 2 * np.pi * (f0 * time + 0.5 * (f1 - f0) * time**2 / time[-1])
            q[:, j] = reach * np.sin(phase + rng.uniform(0, 6.0)) / (1.0 + time / time[-1])
        else:
            for f in rng.uniform(0.08, top, 5):
                q[:, j] += 0.4 * reach * np.sin(2 * np.pi * f * time + rng.uniform(0, 6.0))
        speed = np.max(np.abs(np.gradient(q[:, j], time)))
        q[:, j] *= min(1.0, fastest / speed)
        q[:, j] += rng.uniform(-0.4, 0.4) * reach
    return q


# ---- logs


def make_logs(name: str, count: int = 2, seconds: float | None = None) -> list[Recording]:
    """Logs of a robot, each of its own motion, with noise and steps of its sensors."""
    kind = kinds()[name]
    rng = np.random.default_rng([2026, *name.encode()])
    robot = kind.make()
    truth = draw_truth(robot, kind.tool, rng)
    length = min(seconds or kind.seconds, MOST / kind.rate)
    time = np.arange(round(length * kind.rate)) / kind.rate
    noise, bits = rng.uniform(0.005, 0.03), int(rng.integers(18, 23))
    record = {"mujoco": by_mujoco, "pinocchio": by_pinocchio}[kind.engine]
    logs = []
    for k in range(count):
        q, tau = record(truth, plan(kind, robot, time, rng), time)
        tau += noise * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=tau.shape)
        step = np.array([2 * np.pi if j.kind == "revolute" else 1.0 for j in robot.joints])
        step = step / 2.0**bits
        logs.append(Recording(f"log{k + 1}.csv", kind.rate, step * np.round(q / step), tau))
    return logs


def by_pinocchio(truth: Truth, q: Array, time: Array) -> tuple[Array, Array]:
    """Inverse dynamics along the motion, with friction of Stribeck."""
    model = build_pinocchio(truth.robot, truth.bodies)
    data = model.createData()
    dq = np.gradient(q, time, axis=0, edge_order=2)
    ddq = np.gradient(dq, time, axis=0, edge_order=2)
    rigid = np.array([pin.rnea(model, data, *each) for each in zip(q, dq, ddq, strict=True)])
    rub = truth.coulomb + truth.stick * np.exp(-np.abs(dq) / 0.05)
    return q, rigid + truth.rotor * ddq + truth.viscous * dq + rub * np.tanh(dq / 1e-3)


def by_mujoco(truth: Truth, target: Array, time: Array) -> tuple[Array, Array]:
    """A loop of stiff drives in MuJoCo, with its friction."""
    rate = 1.0 / (time[1] - time[0])
    each = int(np.ceil(1.0 / (rate * FINEST)))
    model = mujoco.MjModel.from_xml_string(write_mjcf(truth, 1.0 / (rate * each)))
    data = mujoco.MjData(model)
    fine = np.arange(len(time) * each) / (rate * each)
    wanted = np.asarray(CubicSpline(time, target)(fine))  # nothing after the last sample is logged
    speed = np.gradient(wanted, fine, axis=0)
    data.qpos[:] = wanted[0]
    data.qvel[:] = speed[0]
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, full)
    stiff = np.maximum(np.diag(full), 1e-5) * (2 * np.pi * 12.0) ** 2
    damp = 2.0 * 0.8 * np.sqrt(stiff * np.diag(full))
    q, tau = np.zeros_like(target), np.zeros_like(target)
    for k in range(len(fine)):
        mujoco.mj_forward(model, data)
        asked = stiff * (wanted[k] - data.qpos) + damp * (speed[k] - data.qvel) + data.qfrc_bias
        data.qfrc_applied[:] = asked
        if k % each == 0:
            q[k // each], tau[k // each] = data.qpos, asked
        mujoco.mj_step(model, data)
    return q, tau


def write_mjcf(truth: Truth, step: float) -> str:
    """The chain as MJCF; what sticks below some speed is left out, MuJoCo has none."""
    robot = truth.robot
    root = ET.Element("mujoco")
    ET.SubElement(root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false")
    ET.SubElement(
        root,
        "option",
        timestep=repr(float(step)),
        gravity=join(robot.gravity),
        integrator="implicitfast",
    )
    at = ET.SubElement(root, "worldbody")
    for j, (joint, own) in enumerate(zip(robot.joints, truth.bodies, strict=True)):
        quat = pin.Quaternion(np.asarray(joint.rotation)).coeffs()[[3, 0, 1, 2]]
        at = ET.SubElement(at, "body", pos=join(joint.translation), quat=join(quat))
        com, inertia = take_apart(own)
        full = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        ET.SubElement(
            at, "inertial", pos=join(com), mass=repr(float(own[0])), fullinertia=join(full)
        )
        ET.SubElement(
            at, "joint", name=joint.name, axis=join(joint.axis),
            type="hinge" if joint.kind == "revolute" else "slide",
            armature=repr(float(truth.rotor[j])), damping=repr(float(truth.viscous[j])),
            frictionloss=repr(float(truth.coulomb[j])),
        )  # fmt: skip
    return ET.tostring(root, encoding="unicode")


def join(values: Array) -> str:
    """Numbers of an attribute."""
    return " ".join(repr(float(x)) for x in values)
