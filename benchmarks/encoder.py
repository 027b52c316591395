"""Drives from encoder logs: held-out errors of free simulations, ours beside others.

Two thirds of each log are fitted, the last third is held out and simulated freely from its first
sample. Beside ours: the same drives by finite differences over the same rollouts, and by MuJoCo's
`sysid` where it is installed (`pip install 'mujoco[sysid]'`). Writes docs/figures/encoder.md.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import FIGURES, ROOT, markdown
from scipy import optimize

import dynident as di
from dynident.control.controller import pd
from dynident.core.arrays import Array
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model, fill_missing_torque
from dynident.recording.prepare import Samples
from dynident.simulation.rollout import rollout
from dynident.study.run import run_study
from dynident.study.study import read_study

SHARED = Path(os.environ.get("DYNIDENT_UNITREE", ROOT.parent / "shared" / "data" / "unitree"))
STEPS = 30
"""Of MuJoCo's optimiser, which gains nothing beyond."""
STUDY = """
[robot]
file = "{robot}"
{friction}

[[log]]
files = "{log}"
rows = [0, {cut}]

[[log]]
files = "{log}"
rows = [{cut}, {samples}]
use = "validate"

[controller]
kind = "pd"
kp = {kp}
kd = {kd}

[identify]
method = "cloe"
links = "{links}"
"""


@dataclass(frozen=True)
class Case:
    """A robot, its log and law, and how many of its joints are scored."""

    name: str
    robot: Path
    log: Path
    kp: tuple[float, ...]
    kd: tuple[float, ...]
    scored: int


@dataclass(frozen=True)
class Score:
    """Errors on fitted and held-out part [mrad], and seconds."""

    what: str
    fitted: float
    held_out: float
    seconds: float


Z1 = ROOT / "examples" / "z1"
CASES = (
    Case("Z1, six joints", Z1 / "z1.urdf", Z1 / "z1.csv", (80.0, 120.0, 120.0, *(80.0,) * 4),
         (2.5,) * 7, 6),
    Case("Go2, twelve joints", SHARED / "go2.urdf", SHARED / "go2_first.csv", (20.0,) * 12,
         (1.5,) * 12, 12),
)  # fmt: skip


def milli(rms: Array, scored: int) -> float:
    """Root mean square over the scored joints [mrad]."""
    return 1e3 * float(np.sqrt(np.mean(rms[:scored] ** 2)))


def ours(case: Case, friction: str, links: str) -> Score:
    """By the command's own way, once to compile and once to count."""
    samples = len(case.log.read_text().splitlines()) - 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.toml"
        path.write_text(
            STUDY.format(
                robot=case.robot, log=case.log, cut=2 * samples // 3, samples=samples,
                kp=list(case.kp), kd=list(case.kd), links=links,
                friction=f'friction = "{friction}"' if friction else "",
            )
        )  # fmt: skip
        study = read_study(path)
        run_study(study)
        started = time.perf_counter()
        found = run_study(study)
        seconds = time.perf_counter() - started
    fitted = found.simulated[0].free[-1].rms
    held_out = found.validation[0].free[-1].rms
    words = f"dynident, friction {f'`{friction}`' if friction else 'not said'}, links `{links}`"
    return Score(words, milli(fitted, case.scored), milli(held_out, case.scored), seconds)


def parts(case: Case) -> tuple[di.Robot, Samples, Samples]:
    """The fitted and the held-out part."""
    robot = di.load_robot(str(case.robot))
    log = di.read_log(case.log, robot, torque=False)
    cut = 2 * len(log.q) // 3
    first = di.prepare(log.rows(0, cut), bandwidth=10.0)
    last = di.prepare(log.rows(cut, len(log.q)), bandwidth=10.0)
    return robot, first, last


def differences(case: Case) -> Score:
    """The same drives over the same rollouts, by scipy with forward differences."""
    robot, first, last = parts(case)
    simulation = Simulation(pd(case.kp, case.kd)).of_encoders()
    problem = di.Problem(robot, fill_missing_torque(first, simulation, robot.passive))
    n, idim = robot.n, problem.idim

    def errors(x: Array, log: Samples) -> Array:
        tuned = simulation.with_values({"delay": float(x[-1])})
        loop = build_auxiliary_model(problem.on(log), tuned).loops[0][0][2]
        theta = np.concatenate([robot.nominal.ravel(), x[:-1]])
        return np.asarray(log.measured - rollout(loop, theta).measured)

    start = np.array([*np.tile([0.05, 1.0, 1.0, 0.0], n), 0.005])
    low = np.array([*np.tile([1e-6, 1e-6, 1e-6, -np.inf], n), 0.0])
    high = np.array([*np.full(4 * n, np.inf), 0.1])
    assert len(idim.drives) == 4 * n
    errors(start, first)

    def stacked(x: Array) -> Array:
        return errors(x, first).ravel()

    started = time.perf_counter()
    found = optimize.least_squares(stacked, start, bounds=(low, high), x_scale="jac")
    seconds = time.perf_counter() - started
    both = (np.sqrt(np.mean(errors(found.x, log) ** 2, axis=0)) for log in (first, last))
    fitted, held_out = (milli(rms, case.scored) for rms in both)
    return Score("finite differences over our rollouts (scipy)", fitted, held_out, seconds)


def by_mujoco(case: Case) -> Score:
    """MuJoCo's sysid: armature, damping, frictionloss, each joint's, its defaults otherwise.

    Raises
    ------
    ImportError
        Where it is not installed.
    """
    import mujoco
    from mujoco import sysid
    from mujoco.sysid import ParameterDict  # which it has with its extra alone

    _, first, last = parts(case)
    spec = mujoco.MjSpec.from_file(str(case.robot))
    spec.option.timestep = 1.0 / first.rate
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    joints = [joint.name for joint in spec.joints]
    for name, kp, kd in zip(joints, case.kp, case.kd, strict=True):
        act = spec.add_actuator(name=f"{name}_pd", target=name)
        act.trntype = mujoco.mjtTrn.mjTRN_JOINT
        act.gaintype, act.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        act.gainprm[0] = kp
        act.biasprm[:3] = [0.0, -kp, -kd]
        spec.add_sensor(
            name=f"{name}_pos",
            type=mujoco.mjtSensor.mjSENS_JOINTPOS,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            objname=name,
        )
    model = spec.compile()

    def modifier(name: str, key: str) -> Callable[[Any, Any], None]:
        def write(other: Any, parameter: Any) -> None:
            joint = other.joint(name)
            now = getattr(joint, key)
            value = float(parameter.value[0])
            setattr(joint, key, value if np.ndim(now) == 0 else np.array([value, 0.0, 0.0]))

        return write

    parameters = ParameterDict()
    ranges = {"armature": (0.05, 1e-4, 1.0), "damping": (1.0, 1e-3, 20.0),
              "frictionloss": (1.0, 1e-3, 20.0)}  # fmt: skip
    for name in joints:
        for key, (start, low, high) in ranges.items():
            own = f"{name}_{key}"
            parameters.add(sysid.Parameter(own, start, low, high, modifier=modifier(name, key)))

    def sequences(log: Samples) -> Any:
        times = np.arange(len(log.q)) / log.rate
        assert log.qref is not None
        state = sysid.create_initial_state(model, log.measured[0], log.dq[0])
        return sysid.ModelSequences(
            case.name,
            spec,
            "log",
            state,
            sysid.TimeSeries.from_control_names(times, np.array(log.qref), model),
            sysid.TimeSeries.from_names(times, np.array(log.measured), model),
        )

    residual = sysid.build_residual_fn(models_sequences=[sequences(first)], n_threads=1)
    started = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        found, _ = sysid.optimize(parameters, residual, verbose=False, max_iters=STEPS)
    seconds = time.perf_counter() - started

    def error(log: Samples) -> float:
        for parameter in found.values():
            parameter.apply_modifier(spec)
        fresh = spec.compile()
        data = mujoco.MjData(fresh)
        data.qpos[:], data.qvel[:] = log.measured[0], log.dq[0]
        simulated = np.empty_like(log.measured)
        assert log.qref is not None
        for k, target in enumerate(log.qref):
            simulated[k] = data.qpos
            data.ctrl[:] = target
            mujoco.mj_step(fresh, data)
        return milli(np.sqrt(np.mean((log.measured - simulated) ** 2, axis=0)), case.scored)

    return Score(
        "MuJoCo sysid: armature, damping, frictionloss", error(first), error(last), seconds
    )


def main() -> None:
    """Measure and write the page."""
    lines = ["# Drives from encoder logs", "", "Made by `benchmarks/encoder.py`."]
    for case in CASES:
        if not case.log.is_file():
            continue
        scores = [
            ours(case, friction, links)
            for friction in ("", "coulomb-viscous", "uneven")
            for links in ("fixed", "prior")
        ]
        scores.append(differences(case))
        try:
            scores.append(by_mujoco(case))
        except ImportError as error:
            print(f"{case.name}: MuJoCo's sysid is left out ({error})")
        rows = [
            [s.what, f"{s.fitted:.2f}", f"{s.held_out:.2f}", f"{s.seconds:.1f}"] for s in scores
        ]
        header = ["by", "fitted [mrad]", "held out [mrad]", "time [s]"]
        lines += ["", f"## {case.name}", "", *markdown(header, rows)]
        print("\n".join(lines[-len(rows) - 4 :]), flush=True)
    lines += [
        "",
        "Root mean square of the positions of a free simulation from the first sample of each "
        f"part; two thirds of the log are fitted. {os.cpu_count()} processors, after compilation, "
        "files read. Where "
        "friction is not said, joints get `uneven` friction whose errors ask for it.",
    ]
    (FIGURES / "encoder.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
