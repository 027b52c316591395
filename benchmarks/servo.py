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
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import pinocchio as pin
from common import FIGURES, ROOT, markdown

import dynident as di
from dynident.core.arrays import Array
from dynident.estimators.closed_loop import FreeError, Hindered, choose_judged_error

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


def simulate(
    model: mujoco.MjModel, motion: tuple[Array, Array, Array], held: bool = False
) -> Array:
    """Positions of the five joints at the samples of a motion, freely from its first sample."""
    t, q, qref = motion
    data = mujoco.MjData(model)
    places = [int(model.jnt_qposadr[model.joint(joint).id]) for joint in JOINTS]
    servos = [model.actuator(joint).id for joint in JOINTS]
    data.qpos[places] = q[0]
    if model.nq > len(JOINTS):
        data.qpos[model.jnt_qposadr[model.joint("gripper").id]] = 0.5
        data.ctrl[model.actuator("gripper").id] = 0.5
    step = model.opt.timestep
    times = np.arange(t[0], t[-1] + step, step)
    targets = np.column_stack([np.interp(times, t, column) for column in qref.T])
    if held:
        targets = qref[np.searchsorted(t, times, side="right") - 1]
    moved = np.empty((len(times), len(JOINTS)))
    for k, target in enumerate(targets):
        moved[k] = data.qpos[places]
        data.ctrl[servos] = target
        mujoco.mj_step(model, data)
    return np.column_stack([np.interp(t, times, column) for column in moved.T])


def measure_rms(
    model: mujoco.MjModel, name: str, spans: list[tuple[int, int]] | None = None, held: bool = False
) -> float:
    """Root mean square of all joints, simulated freely from the first sample of each span [mrad].

    Spans begin at rest.
    """
    t, q, qref = read_motion(name)
    errors = []
    for a, b in spans or [(0, len(t))]:
        errors.append(simulate(model, (t[a:b], q[a:b], qref[a:b]), held) - q[a:b])
    return 1e3 * float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


def list_free_spans(count: int, stretches: tuple[Hindered, ...]) -> list[tuple[int, int]]:
    """What is left of so many samples without some stretches."""
    edges = [0, *(k for each in stretches for k in (each.start, each.stop)), count]
    spans = list(zip(edges[::2], [min(k, count) for k in edges[1::2]], strict=True))
    return [(a, b) for a, b in spans if b > a]


def list_tip_heights(name: str) -> Array:
    """Height of the gripper's tip above the base's plane at all samples [mm]."""
    model = pin.buildModelFromUrdf(str(FOLDER / "so101_new_calib.urdf"))
    data, tip = model.createData(), model.getFrameId("gripper_frame_link")
    found = []
    for q in read_motion(name)[1]:
        pin.framesForwardKinematics(model, data, np.append(q, 0.5))
        found.append(1e3 * data.oMf[tip].translation[2])
    return np.array(found)


class Fitted(NamedTuple):
    """A fit of all motions.

    Attributes
    ----------
    errors : dict of str to tuple of FreeError
        By motion: of the whole last, before it without what hinders.
    document : str
        What `export --mjcf` writes.
    seconds : float
        Of the processor, once all is compiled.
    """

    errors: dict[str, tuple[FreeError, ...]]
    document: str
    seconds: float


def fit_servos(friction: str, names: list[str]) -> Fitted:
    """One run of the study, after one of a single motion for which all is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        for own in (FITTED[:1], names):
            logs = "".join(
                f'\n[[log]]\nfiles = "{FOLDER}/{name}.csv"\n'
                + ("" if name in FITTED else 'use = "validate"\n')
                for name in own
            )
            path = Path(folder) / "study.toml"
            path.write_text(STUDY.format(folder=FOLDER, friction=friction, logs=logs))
            started = time.process_time()
            fit = di.run_study(di.read_study(path))
            seconds = time.process_time() - started
        fit.to_mjcf(Path(folder) / "so101.xml")
        document = (Path(folder) / "so101.xml").read_text()
    told = [(each.log, each.free) for each in fit.simulated]
    told += [(each.log, each.free) for each in fit.validation]
    return Fitted({Path(log).stem: free for log, free in told}, document, seconds)


def main() -> None:
    """Measure and write the page."""
    names = sorted(path.stem for path in FOLDER.glob("*.csv"))
    published = {words: build_published(*values) for words, values in PUBLISHED.items()}
    first = published["kp 17.8"]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        waiting = {
            friction: pool.submit(fit_servos, friction, names)
            for friction in ("coulomb-viscous", "load")
        }
        theirs = {
            name: [measure_rms(model, name) for model in published.values()] for name in names
        }
        fits = {friction: each.result() for friction, each in waiting.items()}
    exported = {
        friction: mujoco.MjModel.from_xml_string(fit.document) for friction, fit in fits.items()
    }
    rows, apart, free = [], [], []
    for name in names:
        mine = [fit.errors[name][-1].overall_milli for fit in fits.values()]
        kind = "fitted" if name in FITTED else "held out"
        rows.append([
            name, kind, *(f"{each:.1f}" for each in (*theirs[name], *mine)),
            f"{mine[-1] / theirs[name][0]:.2f}",
        ])  # fmt: skip
        files = [measure_rms(model, name, held=True) for model in exported.values()]
        pairs = zip(mine, files, strict=True)
        apart.append([name, *(f"{x:.2f}" for pair in pairs for x in (*pair, pair[1] / pair[0]))])
        own = choose_judged_error(fits["load"].errors[name])
        if own.without:
            count = len(read_motion(name)[0])
            spans = list_free_spans(count, own.without)
            left = ", ".join(f"{x.start / x.rate:.1f}-{x.stop / x.rate:.1f}" for x in own.without)
            free_first = measure_rms(first, name, spans)
            share = 100.0 * (1.0 - sum(b - a for a, b in spans) / count)
            high = list_tip_heights(name)
            lowest = ", ".join(f"{np.min(high[x.start : x.stop]):.0f}" for x in own.without)
            beside = min(float(np.min(high[a:b])) for a, b in spans)
            free.append([
                name, f"{left} s ({share:.0f} %)", f"{lowest}; {beside:.0f}", f"{mine[-1]:.1f}",
                f"{own.overall_milli:.1f}", f"{free_first:.1f}",
                f"{own.overall_milli / free_first:.2f}",
            ])  # fmt: skip
    header = ["motion", "", *(f"MuJoCo, {words} [mrad]" for words in PUBLISHED),
              *(f"dynident, `{friction}` [mrad]" for friction in fits),
              "last, over kp 17.8"]  # fmt: skip
    times = ", ".join(f"`{friction}` {fit.seconds:.0f} s" for friction, fit in fits.items())
    others = [name for name in names if name not in {row[0] for row in free}]
    lowest_free = min(float(np.min(list_tip_heights(name))) for name in others)
    lines = [
        "# Hobby servos from encoder logs", "", "Made by `benchmarks/servo.py`.", "",
        *markdown(header, rows), "",
        "Root mean square of the positions of five joints of an SO-101, whole motions simulated "
        "from their first sample. MuJoCo has the published models of the servo: damping "
        f"{DAMPING:g}, friction loss {FRICTION:g}, armature {ARMATURE:g} of "
        "`joints_properties.xml`, stiffness and limit as said.",
        f"All fourteen motions in one run, processor time once all is compiled: {times}.", "",
        "## Without what hinders the arm", "",
        *markdown(["motion", "left out", "lowest tip there; elsewhere [mm]",
                   "dynident, `load`, whole [mrad]", "the free motion [mrad]",
                   "MuJoCo, kp 17.8, the same [mrad]", "ratio"], free), "",
        "Stretches in which joints are stopped or pushed together, as `cloe` finds and prints "
        "them. Both simulations begin anew behind each. Tip: of the gripper, above the base's "
        f"plane, by the file's kinematics; in the other motions no lower than {lowest_free:.0f}.",
        "",
        "## The exported model in MuJoCo", "",
        *markdown(["motion", *(f"{what}, `{friction}`{unit}" for friction in fits
                               for what, unit in (("dynident", " [mrad]"), ("its MJCF", " [mrad]"),
                                                  ("ratio", "")))], apart), "",
        "The file that `dynident export --mjcf` writes, servos and time step as they are in it, "
        "under the logged targets. It has the friction that is nearest to `load`.",
    ]  # fmt: skip
    (FIGURES / "servo.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
