"""A two-mass arm with a lost motion under position servos, moved by MuJoCo: for tests, benchmarks.

Motors and links move apart from each other, by a joint between stops, under servos that read
encoders at the links, as hobby servos do. The arm hangs, so that its weight presses on either
flank in turn.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dynident as di
from dynident.core.arrays import Array

RATE, COUNT, KP, SECONDS = 50.0, 2.0 * np.pi / 4096, 18.0, 30.0
SETTLE = 1.0
"""Before a log begins, the arm rests under its first targets for so long [s]."""
ROTOR, VISCOUS = 0.028, 0.6
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
# MuJoCo's friction loss creeps under a load by (1 - impedance): with its usual 0.9 that of 0.5 Nm
# is reached at 0.02 rad/s alone
JOINTS = """<joint name="j{k}" axis="0 1 0" armature="{rotor}" damping="{viscous}"
frictionloss="{loss}" solimpfriction="0.999 0.999 0.001 0.5 2"/>
<joint name="j{k}_backlash" axis="0 1 0" range="-{half} {half}"
armature="1e-5" damping="1e-3" solreflimit="0.004 1"/>"""


def write_pendulum(folder: Path, joints: int = 2) -> di.Robot:
    """The arm that hangs, as its maker knows it."""
    path = folder / "pendulum.urdf"
    parts = [("base", "0 0 0", 0.5), ("l1", "0.24 0 0", 0.25)]
    links = (
        LINK.format(k=k, parent=p, at=at, m=m) for k, (p, at, m) in enumerate(parts[:joints], 1)
    )
    path.write_text(URDF.format("".join(links)))
    return di.load_robot(str(path))


def swing(seed: int) -> Array:
    """Targets about where the arm hangs, by whose weight each joint lies on either side."""
    rng, t = np.random.default_rng(seed), np.arange(round(SECONDS * RATE)) / RATE
    speed = 2.0 * np.pi * np.array([rng.uniform(0.04, 0.08, 2), rng.uniform(0.1, 0.2, 2)])
    waves = np.sin(t[:, None, None] * speed + rng.uniform(0.0, 2.0 * np.pi, (2, 2)))
    return np.asarray([0.5 * np.pi, 0.0] + 0.5 * waves[:, 0] + 0.2 * waves[:, 1])


def record_lost_motion(width: float, loss: float, seed: int) -> di.Recording:
    """Encoders at the links, which the servos read, and targets of the arm with a lost motion."""
    import mujoco

    own = {"rotor": ROTOR, "viscous": VISCOUS, "loss": loss, "half": max(0.5 * width, 1e-6)}
    one, two = (JOINTS.format(k=k, **own) for k in (1, 2))
    model = mujoco.MjModel.from_xml_string(XML.format(one=one, two=two))
    data = mujoco.MjData(model)
    qref, rest = swing(seed), round(SETTLE * RATE)
    data.qpos[[0, 2]] = qref[0]
    substeps = round(1.0 / (RATE * model.opt.timestep))
    found = []
    for target in (*np.tile(qref[0], (rest, 1)), *qref):
        found.append(data.qpos[[0, 2]] + data.qpos[[1, 3]])
        for _ in range(substeps):
            data.qfrc_applied[[0, 2]] = KP * (target - data.qpos[[0, 2]] - data.qpos[[1, 3]])
            mujoco.mj_step(model, data)
    q = COUNT * np.round(np.array(found[rest:]) / COUNT)
    return di.Recording("pendulum", RATE, q, np.zeros_like(q), qref=qref, torque="none")
