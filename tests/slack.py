"""A two-mass twin of a servo arm: MuJoCo moves motors and links apart from each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dynident as di
from dynident.core.arrays import Array

RATE, COUNT, KP = 50.0, 2.0 * np.pi / 4096, 18.0
DRIVES = np.array([[0.028, 0.6, 0.052], [0.028, 0.6, 0.052]])  # Ia fv fc

URDF = """<robot name="pendulum"><link name="base"/>
{}</robot>"""
LINK = """<link name="l{k}"><inertial><origin xyz="0.12 0 0"/><mass value="{m}"/>
<inertia ixx="4e-4" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/>
<origin xyz="{at}"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="4" effort="90" velocity="9"/></joint>
"""
XML = """<mujoco><compiler angle="radian" autolimits="true"/>
<option timestep="2.5e-4" integrator="implicitfast"/><worldbody>
<body>{one}<inertial pos="0.12 0 0" mass="0.5" diaginertia="4e-4 1e-3 1e-3"/>
<body pos="0.24 0 0">{two}<inertial pos="0.12 0 0" mass="0.25" diaginertia="4e-4 1e-3 1e-3"/>
</body></body></worldbody></mujoco>"""
JOINTS = """<joint name="j{k}" axis="0 1 0" armature="{Ia}" damping="{fv}" frictionloss="{fc}"/>
<joint name="j{k}_backlash" axis="0 1 0" range="-{half} {half}" armature="1e-5" damping="1e-3"
solreflimit="0.004 1"/>"""


def write_pendulum(folder: Path) -> di.Robot:
    """The arm that hangs, as its maker knows it."""
    path = folder / "pendulum.urdf"
    parts = [("base", "0 0 0", 0.5), ("l1", "0.24 0 0", 0.25)]
    links = (LINK.format(k=k, parent=p, at=at, m=m) for k, (p, at, m) in enumerate(parts, 1))
    path.write_text(URDF.format("".join(links)))
    return di.load_robot(str(path))


def swing(seconds: float, seed: int) -> Array:
    """Targets about where the arm hangs, by whose weight each joint lies on either side."""
    rng, t = np.random.default_rng(seed), np.arange(round(seconds * RATE)) / RATE
    speed = 2.0 * np.pi * np.array([rng.uniform(0.04, 0.08, 2), rng.uniform(0.1, 0.2, 2)])
    phase = rng.uniform(0.0, 2.0 * np.pi, (2, 2))
    waves = np.sin(t[:, None, None] * speed + phase)
    return np.asarray([0.5 * np.pi, 0.0] + 0.5 * waves[:, 0] + 0.2 * waves[:, 1])


def record(
    half: float, seconds: float = 40.0, seed: int = 0, at_output: bool = True
) -> di.Recording:
    """Encoders and targets of the arm whose links are free by `half` on both sides [rad].

    The encoders, which the servos read, are at the links or at the motors.
    """
    import mujoco

    one, two = (
        JOINTS.format(k=k + 1, Ia=own[0], fv=own[1], fc=own[2], half=max(half, 1e-6))
        for k, own in enumerate(DRIVES)
    )
    model = mujoco.MjModel.from_xml_string(XML.format(one=one, two=two))
    data = mujoco.MjData(model)
    qref = swing(seconds, seed)
    data.qpos[[0, 2]] = qref[0]
    substeps = round(1.0 / (RATE * model.opt.timestep))
    q = np.empty_like(qref)
    for k, target in enumerate(qref):
        for i in range(substeps):
            motor = data.qpos[[0, 2]]
            seen = motor + data.qpos[[1, 3]] if at_output else motor
            if i == 0:
                q[k] = seen
            data.qfrc_applied[[0, 2]] = KP * (target - seen)
            mujoco.mj_step(model, data)
    q = COUNT * np.round(q / COUNT)
    return di.Recording("pendulum", RATE, q, np.zeros_like(q), qref=qref, torque="none")
