"""The SO-101's hobby servos from encoder logs: errors of free simulations, beside MuJoCo's.

One study of all fourteen motions: five are fitted, nine held out. Beside it MuJoCo with the models
of the same servo that were published, over the same whole motions from their first sample. Writes
docs/figures/servo.md.
"""

from __future__ import annotations

import csv
import re
import tempfile
import time
from pathlib import Path

import mujoco
import numpy as np
from common import FIGURES, ROOT, markdown

import dynident as di
from dynident.core.arrays import Array

FOLDER = ROOT.parent / "shared" / "data" / "so101"
FITTED = (
    "fast_transitions", "friction_gravity", "reach_and_return", "step_response", "triangle_wave",
)  # fmt: skip
JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")
PUBLISHED = {
    "kp 17.8": (17.8, 0.0, 3.35),
    "kp 50": (50.0, 0.0, 3.35),
    "kp 998, kv 2.73": (998.22, 2.731, 2.94),
}
"""Stiffness [Nm/rad], damping [Nm s/rad] and limit [Nm]; other figures are those of
``joints_properties.xml``, where these models do not say."""
DAMPING, FRICTION, ARMATURE = 0.60, 0.052, 0.028
STUDY = """[robot]
file = "{folder}/so101_new_calib.urdf"
friction = "{friction}"
locked = {{ gripper = 0.5 }}
{logs}
[controller]
kind = "p"
kp = 17.8

[identify]
method = "cloe"
loop = ["delay", "gain"]
decide = "nothing"
"""
STEP = 1e-3


def build_published(kp: float, kv: float, limit: float) -> mujoco.MjModel:
    """The robot in MuJoCo under position servos."""
    text = (FOLDER / "so101_new_calib.urdf").read_text()
    for part in ("visual", "collision"):  # whose meshes are not here
        text = re.sub(rf"<{part}>.*?</{part}>", "", text, flags=re.DOTALL)
    spec = mujoco.MjSpec.from_string(text.replace('value="1e-9"', 'value="1e-6"'))
    for joint in spec.joints:
        servo = spec.add_actuator()
        servo.name = servo.target = joint.name
        servo.trntype = mujoco.mjtTrn.mjTRN_JOINT
        servo.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        servo.gainprm = np.array([kp, *np.zeros(9)])
        servo.biasprm = np.array([0.0, -kp, -kv, *np.zeros(7)])
        servo.forcerange, servo.forcelimited = [-limit, limit], True
    spec.option.timestep = STEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model = spec.compile()
    model.dof_damping[:], model.dof_frictionloss[:] = DAMPING, FRICTION
    model.dof_armature[:] = ARMATURE
    return model


def read_motion(name: str) -> tuple[Array, Array, Array]:
    """Time, positions and targets of the five joints."""
    with (FOLDER / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    t = np.array([float(row["time"]) for row in rows])
    q, qref = (
        np.array([[float(row[f"{what}_{joint}"]) for joint in JOINTS] for row in rows])
        for what in ("q", "qref")
    )
    return t, q, qref


def measure_published(model: mujoco.MjModel, name: str) -> float:
    """Root mean square of all joints, a free simulation from the first sample [mrad]."""
    t, q, qref = read_motion(name)
    data = mujoco.MjData(model)
    places = [int(model.jnt_qposadr[model.joint(joint).id]) for joint in JOINTS]
    servos = [model.actuator(joint).id for joint in JOINTS]
    data.qpos[places] = q[0]
    data.qpos[model.jnt_qposadr[model.joint("gripper").id]] = 0.5
    data.ctrl[model.actuator("gripper").id] = 0.5
    times = np.arange(0.0, t[-1] + STEP, STEP)
    targets = np.column_stack([np.interp(times, t, column) for column in qref.T])
    moved = np.empty((len(times), len(JOINTS)))
    for k, target in enumerate(targets):
        moved[k] = data.qpos[places]
        data.ctrl[servos] = target
        mujoco.mj_step(model, data)
    there = np.column_stack([np.interp(t, times, column) for column in moved.T])
    return 1e3 * float(np.sqrt(np.mean((there - q) ** 2)))


def ours(friction: str, names: list[str]) -> tuple[dict[str, float], float]:
    """Errors by motion, and processor seconds of the whole run once all is compiled."""
    logs = "".join(
        f'\n[[log]]\nfiles = "{FOLDER}/{name}.csv"\n'
        + ("" if name in FITTED else 'use = "validate"\n')
        for name in names
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_text(STUDY.format(folder=FOLDER, friction=friction, logs=logs))
        study = di.read_study(path)
        di.run_study(study)
        started = time.process_time()
        fit = di.run_study(study)
        seconds = time.process_time() - started
    told = [(each.log, each.free) for each in fit.simulated]
    told += [(each.log, each.free) for each in fit.validation]
    return {Path(log).stem: free[-1].overall_milli for log, free in told}, seconds


def main() -> None:
    """Measure and write the page."""
    names = sorted(path.stem for path in FOLDER.glob("*.csv"))
    published = {words: build_published(*values) for words, values in PUBLISHED.items()}
    theirs = {
        words: {name: measure_published(model, name) for name in names}
        for words, model in published.items()
    }
    found = {friction: ours(friction, names) for friction in ("coulomb-viscous", "load")}
    rows = []
    for name in names:
        errors = [theirs[words][name] for words in PUBLISHED]
        mine = [found[friction][0][name] for friction in found]
        kind = "fitted" if name in FITTED else "held out"
        rows.append([
            name, kind, *(f"{each:.1f}" for each in (*errors, *mine)),
            f"{mine[-1] / errors[0]:.2f}",
        ])  # fmt: skip
    header = ["motion", "", *(f"MuJoCo, {words} [mrad]" for words in PUBLISHED),
              *(f"dynident, `{friction}` [mrad]" for friction in found),
              "last, over kp 17.8"]  # fmt: skip
    times = ", ".join(f"`{friction}` {seconds:.0f} s" for friction, (_, seconds) in found.items())
    lines = [
        "# Hobby servos from encoder logs", "", "Made by `benchmarks/servo.py`.", "",
        *markdown(header, rows), "",
        "Root mean square of the positions of five joints of an SO-101, whole motions simulated "
        "from their first sample. MuJoCo has the published models of the servo: damping "
        f"{DAMPING:g}, friction loss {FRICTION:g}, armature {ARMATURE:g} of "
        "`joints_properties.xml`, stiffness and limit as said.",
        f"All fourteen motions in one run, processor time once all is compiled: {times}.",
    ]  # fmt: skip
    (FIGURES / "servo.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
