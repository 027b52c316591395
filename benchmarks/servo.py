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
from dynident.dynamics.base import base_parameters
from dynident.estimators.closed_loop import (
    FreeError,
    HinderedStretch,
    build_auxiliary_model,
    choose_judged_error,
)
from dynident.regression.problem import Problem
from dynident.study.study import load_study_robot, read_study_logs

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


class Start(NamedTuple):
    """How a replay begins and goes on."""

    held: bool = False
    """Whether targets are held from sample to sample."""
    speed: Array | None = None
    """Of the joints [rad/s], shape (5,)."""
    friction: tuple[Array, Array] | None = None
    """``fc`` and ``fl`` of which the friction loss of each step is ``fc + fl |load|``."""


AT_REST = Start()


def simulate(
    model: mujoco.MjModel, motion: tuple[Array, Array, Array], start: Start = AT_REST
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
    step, load = model.opt.timestep, np.zeros(model.nv)
    if start.speed is not None:
        data.qvel[places] = start.speed
    for servo, first in zip(servos, qref[0], strict=True):
        count = int(model.actuator_history[servo, 0])
        if count:
            past = -step * np.arange(count, 0, -1)
            mujoco.mj_initCtrlHistory(model, data, servo, past, np.full(count, first))
    times = np.arange(t[0], t[-1] + step, step)
    targets = np.column_stack([np.interp(times, t, column) for column in qref.T])
    if start.held:
        targets = qref[np.searchsorted(t, times, side="right") - 1]
    moved = np.empty((len(times), len(JOINTS)))
    for k, target in enumerate(targets):
        moved[k] = data.qpos[places]
        data.ctrl[servos] = target
        mujoco.mj_step(model, data)
        if start.friction is not None:
            mujoco.mj_mulM(model, data, load, data.qacc)
            load += data.qfrc_bias - model.dof_armature * data.qacc
            model.dof_frictionloss[:] = start.friction[0] + start.friction[1] * np.abs(load)
    return np.column_stack([np.interp(t, times, column) for column in moved.T])


def measure_rms(
    model: mujoco.MjModel,
    name: str,
    spans: list[tuple[int, int]] | None = None,
    start: Start = AT_REST,
) -> float:
    """Root mean square of all joints, simulated freely from the first sample of each span [mrad].

    Spans begin at rest, but for the start that is told.
    """
    t, q, qref = read_motion(name)
    errors = []
    for a, b in spans or [(0, len(t))]:
        errors.append(simulate(model, (t[a:b], q[a:b], qref[a:b]), start) - q[a:b])
    return 1e3 * float(np.sqrt(np.mean(np.concatenate(errors) ** 2)))


def list_free_spans(count: int, stretches: tuple[HinderedStretch, ...]) -> list[tuple[int, int]]:
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
    """A fit of all motions."""

    errors: dict[str, tuple[FreeError, ...]]
    """By motion: of the whole last, before it without what hinders."""
    document: str
    """What `export --mjcf` writes."""
    seconds: float
    """Of the processor, once all is compiled."""
    speeds: dict[str, Array]
    """By motion: with which our own simulation begins [rad/s]."""
    drives: dict[str, Array]
    """Parameters of the drives by symbol."""
    message: str
    """Of the fit, with what it says of currents."""


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
            study = di.read_study(path)
            fit = di.run_study(study)
            seconds = time.process_time() - started
        fit.to_mjcf(Path(folder) / "so101.xml")
        document = (Path(folder) / "so101.xml").read_text()
    told = [(each.log, each.free) for each in fit.simulated]
    told += [(each.log, each.free) for each in fit.validation]
    fitted = fit.estimate.fitted
    assert fitted is not None
    robot, speeds = load_study_robot(study), {}
    for log in read_study_logs(study, robot, torque=False):
        problem = Problem.of(base_parameters(fit.idim), (log,))
        (loops,) = build_auxiliary_model(problem, fitted.loop).loops
        speeds[Path(log.name).stem] = np.array(loops[0][2].dq0)
    drives = {
        symbol: np.array([
            value for value, each in zip(fit.theta, fit.idim.parameters, strict=True)
            if each.symbol == symbol
        ])
        for symbol in ("fv", "fc", "off", "fl")
    }  # fmt: skip
    free = {Path(log).stem: own for log, own in told}
    return Fitted(free, document, seconds, speeds, drives, fit.estimate.message)


def replay_export(fit: Fitted, name: str, loaded: bool) -> float:
    """Root mean square of a motion in MuJoCo by the file that a fit writes, begun as ours [mrad].

    `loaded`: with all friction of the fit, its loss set at each step by the load.
    """
    model = mujoco.MjModel.from_xml_string(fit.document)
    friction = None
    if loaded:
        friction = fit.drives["fc"], fit.drives["fl"]
        model.dof_damping[:] = fit.drives["fv"]
        model.actuator_biasprm[:, 0] = -fit.drives["off"]
    return measure_rms(model, name, start=Start(True, fit.speeds[name], friction))


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
        kinds = [(fits["coulomb-viscous"], False), (fits["load"], False), (fits["load"], True)]
        asked = {
            name: [pool.submit(replay_export, fit, name, loaded) for fit, loaded in kinds]
            for name in names
        }
        replayed = {name: [each.result() for each in own] for name, own in asked.items()}
    rows, apart, free, ratios = [], [], [], []
    for name in names:
        mine = [fit.errors[name][-1].overall_milli for fit in fits.values()]
        kind = "fitted" if name in FITTED else "held out"
        rows.append([
            name, kind, *(f"{each:.1f}" for each in (*theirs[name], *mine)),
            f"{mine[-1] / theirs[name][0]:.2f}",
        ])  # fmt: skip
        files = list(zip([mine[0], mine[1], mine[1]], replayed[name], strict=True))
        ratios.append([own / ours for ours, own in files])
        pairs = [x for ours, own in files[:2] for x in (ours, own, own / ours)]
        apart.append([name, *(f"{x:.2f}" for x in (*pairs, files[2][1], ratios[-1][2]))])
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
                                                  ("ratio", ""))),
                   "the MJCF with `fl` of each step [mrad]", "ratio, with `fl`"], apart), "",
        "The file that `dynident export --mjcf` writes, servos, delay and time step as they are in "
        "it, under the logged targets, begun as our own simulations. It has the constant friction "
        "that is nearest to `load`; in the last columns the friction loss is set to "
        "`fc + fl |load|` at each step of MuJoCo, and all else is as fitted. At most 1.1 times the "
        "error of ours: "
        + ", ".join(
            f"{sum(own[k] <= 1.1 for own in ratios)} of {len(ratios)} motions of {words} (at most "
            f"{max(own[k] for own in ratios):.2f})"
            for k, words in enumerate(("`coulomb-viscous`", "`load`", "`load` with `fl`"))
        )
        + ". Much less is that of motions in which friction holds joints for a minute: ours creeps "
        "more close to its limit, where `tanh` is flat and MuJoCo's rise is straight.", "",
        "## Currents without a sign", "",
        *(f"- `{friction}`: {fit.message.partition('; ')[2]}" for friction, fit in fits.items()),
    ]  # fmt: skip
    (FIGURES / "servo.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
