"""What a position servo's own encoder tells of a lost motion: a two-mass twin with known widths.

MuJoCo moves motors and links apart from each other, by a joint between stops, under servos that
read encoders at the links, as hobby servos do, or at the motors. The arm hangs, so that its weight
presses on either flank in turn. Drives, delay and parts of the servo are then fitted as if nothing
was lost.
Writes docs/figures/servo_backlash.md.
"""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path

import mujoco
import numpy as np
from common import FIGURES, markdown

import dynident as di
from dynident.control.controller import servo
from dynident.core.arrays import Array

RATE, COUNT, KP, SECONDS = 50.0, 2.0 * np.pi / 4096, 18.0, 30.0
ROTOR, VISCOUS = 0.028, 0.6
FRICTIONS = (0.052, 0.5)
"""Friction loss [Nm]: of the published model of an SO-101's servo, and as its logs have it."""
WIDTHS = (0.0, 8.7e-3, 17.5e-3)
"""Of the lost motion, both sides together [rad]: none, and up to half a degree each."""
SEEDS = range(2)
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
JOINTS = """<joint name="j{k}" axis="0 1 0" armature="{rotor}" damping="{viscous}"
frictionloss="{loss}"/><joint name="j{k}_backlash" axis="0 1 0" range="-{half} {half}"
armature="1e-5" damping="1e-3" solreflimit="0.004 1"/>"""


def write_pendulum(folder: Path) -> di.Robot:
    """The arm that hangs, as its maker knows it."""
    path = folder / "pendulum.urdf"
    parts = [("base", "0 0 0", 0.5), ("l1", "0.24 0 0", 0.25)]
    links = (LINK.format(k=k, parent=p, at=at, m=m) for k, (p, at, m) in enumerate(parts, 1))
    path.write_text(URDF.format("".join(links)))
    return di.load_robot(str(path))


def swing(seed: int) -> Array:
    """Targets about where the arm hangs, by whose weight each joint lies on either side."""
    rng, t = np.random.default_rng(seed), np.arange(round(SECONDS * RATE)) / RATE
    speed = 2.0 * np.pi * np.array([rng.uniform(0.04, 0.08, 2), rng.uniform(0.1, 0.2, 2)])
    waves = np.sin(t[:, None, None] * speed + rng.uniform(0.0, 2.0 * np.pi, (2, 2)))
    return np.asarray([0.5 * np.pi, 0.0] + 0.5 * waves[:, 0] + 0.2 * waves[:, 1])


def record(width: float, loss: float, seed: int, at_output: bool) -> di.Recording:
    """Encoders, which the servos read, and targets of the arm with a lost motion."""
    own = {"rotor": ROTOR, "viscous": VISCOUS, "loss": loss, "half": max(0.5 * width, 1e-6)}
    one, two = (JOINTS.format(k=k, **own) for k in (1, 2))
    model = mujoco.MjModel.from_xml_string(XML.format(one=one, two=two))
    data = mujoco.MjData(model)
    qref = swing(seed)
    data.qpos[[0, 2]] = qref[0]
    substeps = round(1.0 / (RATE * model.opt.timestep))
    q = np.empty_like(qref)
    for k, target in enumerate(qref):
        for i in range(substeps):
            seen = data.qpos[[0, 2]] + data.qpos[[1, 3]] * at_output
            if i == 0:
                q[k] = seen
            data.qfrc_applied[[0, 2]] = KP * (target - seen)
            mujoco.mj_step(model, data)
    q = COUNT * np.round(q / COUNT)
    return di.Recording("pendulum", RATE, q, np.zeros_like(q), qref=qref, torque="none")


def fit(robot: di.Robot, log: di.Recording) -> tuple[float, Array, set[str]]:
    """Error [mrad], Ia, fv and fc as means of the joints, and parts of the servo that were kept."""
    problem = di.Problem(robot, di.prepare(log, bandwidth=5.0))
    simulation = di.Simulation(servo([KP] * 2))
    found = di.identify(problem, "cloe", simulation=simulation, loop="delay,servo")
    own = found.estimate.fitted
    assert own is not None
    values = dict(zip(own.names, own.values, strict=True))
    drives = np.array([[values[f"{s}{j}"] for j in (1, 2)] for s in ("Ia", "fv", "fc")])
    kept = {name.rstrip("12") for name in own.names} - {"Ia", "fv", "fc", "off", "delay"}
    return found.simulated[0].free[-1].overall_milli, drives.mean(axis=1), kept


def main() -> None:
    """Measure and write the page."""
    rows, parts = [], set[str]()
    with tempfile.TemporaryDirectory() as folder:
        robot = write_pendulum(Path(folder))
        for loss, at_output, width in product(FRICTIONS, (True, False), WIDTHS):
            logs = [record(width, loss, seed, at_output) for seed in SEEDS]
            errors, drives, kept = zip(*(fit(robot, log) for log in logs), strict=True)
            parts = parts.union(*kept)
            rows.append([
                f"{loss:g}", "link" if at_output else "motor", f"{1e3 * width:.3g}",
                f"{np.mean(errors):.2f}", *(f"{value:.3g}" for value in np.mean(drives, axis=0)),
            ])  # fmt: skip
    header = ["friction loss [Nm]", "encoder at the", "width [mrad]", "error [mrad]",
              "Ia [kg m²]", "fv [Nm s/rad]", "fc [Nm]"]  # fmt: skip
    lines = [
        "# Lost motion behind a servo's own encoder", "", "Made by `benchmarks/servo_backlash.py`.",
        "", *markdown(header, rows), "",
        f"Free simulations of whole logs of {SECONDS:g} s at {RATE:g} Hz, 4096 counts a turn, "
        f"means of {len(SEEDS)} motions. True drives: Ia {ROTOR:g}, fv {VISCOUS:g}, fc as said. "
        "Fitted without any lost motion; parts of the servo that were kept: "
        f"{', '.join(sorted(parts)) or 'none'}.",
    ]  # fmt: skip
    (FIGURES / "servo_backlash.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
