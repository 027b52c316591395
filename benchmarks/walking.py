"""Robots that walk without torque sensors and without motion capture, made by MuJoCo.

Run from the top of the project: python benchmarks/walking.py

The robot of `examples/quadruped` with its load stands, sways and steps in MuJoCo, on round feet and
a floor with friction, under drives that follow position targets by a stiffness and a damping, with
the targets late; TALOS, whose arms, torso and head are held, shifts its weight from one sole to the
other, squats and steps. The log has encoders, targets, an inertial unit (rates, specific force,
orientation) and which feet touch: no torque, no position of the base. `dynident` knows the law and
the radius of the feet, and the URDF, which does not know the load.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType

import mujoco
import numpy as np
import pinocchio as pin
import talos
from common import FIGURES, ROOT, markdown

import dynident as di
from dynident.fit.parameters import list_base_parameters, list_sensor_parameters
from dynident.robot.model import LAW
from dynident.study.study import Study, read_law

FOLDER = ROOT / "examples" / "quadruped"
RATE, SECONDS, LATE = 500.0, 10.0, 4e-3
"""Of samples and targets [Hz], of a log [s], by which a target comes late before it is held [s]."""
RADIUS, STIFF = 0.02, (4e-3, 1.0)
"""Of a round foot [m]; of floors."""
NOISE = {"q": 5e-5, "gyro": 2e-3, "specific": 2e-2, "turn": 2e-4}
BARE = "quadruped, 0, 1st"
LOGS = (("steps", 2, "identify"), ("sway", 1, "identify"), ("others", 3, "validate"))
AXES = {"X": [1, 0, 0], "Y": [0, 1, 0], "Z": [0, 0, 1]}
PAYLOAD = pin.Inertia(0.5, np.array([0.02, 0.0, 0.06]), np.diag([0.002, 0.002, 0.002]))


def load_example() -> ModuleType:
    """The script that makes the example's logs: its robot, its courses."""
    spec = importlib.util.spec_from_file_location("make_logs", FOLDER / "make_logs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MADE = load_example()


@dataclass(frozen=True)
class Walker:
    """A robot that walks.

    `told` is that of its file, `real` the one that moves; `trunk` is the link whose load the file
    does not know. `feet` are frames by contact, of this `shape`, whose ground is `below` them.
    `follow` makes its configurations of a generator, of times, and of whether it steps. `study` is
    what a user states of it. MuJoCo takes steps of `step`; `noise` is a factor on that of all
    sensors.
    """

    told: pin.Model
    real: pin.Model
    trunk: str
    feet: dict[str, str]
    shape: dict[str, object]
    below: float
    kp: float
    kd: float
    drives: dict[str, float]
    follow: Callable[[np.random.Generator, np.ndarray, bool], np.ndarray]
    study: str
    step: float = 5e-4
    noise: float = 1.0

    @property
    def every(self) -> int:
        """Steps of a sample."""
        return round(1.0 / RATE / self.step)

    @property
    def delay(self) -> float:
        """By which targets are late in the mean of the steps at which they act [s].

        Torques act at a position's time: MuJoCo's speeds are half a step before, and after.
        """
        return LATE + 0.5 * (self.every - 1) * self.step


def build_mujoco(robot: Walker) -> mujoco.MjModel:
    """The robot that moves, on a floor."""
    spec, real = mujoco.MjSpec(), robot.real
    spec.option.timestep, spec.option.impratio = robot.step, 10
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(
        type=plane, size=[5, 5, 0.1], pos=[0, 0, -robot.below], solref=STIFF, contype=1
    )
    bodies: dict[int, mujoco.MjsBody] = {}
    for k in range(1, real.njoints):
        own, place = real.inertias[k], real.jointPlacements[k]
        x, y, z, w = pin.Quaternion(place.rotation).coeffs()
        up = spec.worldbody if k == 1 else bodies[real.parents[k]]
        body = up.add_body(name=real.names[k], pos=place.translation, quat=[w, x, y, z])
        body.explicitinertial, body.mass, body.ipos = True, own.mass, own.lever
        body.fullinertia = own.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        bodies[k] = body
        if k == 1:
            body.add_freejoint()
            continue
        joint = body.add_joint(name=real.names[k], axis=AXES[real.joints[k].shortname()[-1]])
        joint.armature, joint.frictionloss = robot.drives["Ia"], robot.drives["fc"]
        # friction is a sign and no slope: by default it is rounded over 0.1 rad/s
        joint.damping[0], joint.solref_friction[:] = robot.drives["fv"], (2.0 * robot.step, 1.0)
    for foot, called in robot.feet.items():
        frame = real.frames[real.getFrameId(called)]
        bodies[frame.parentJoint].add_geom(
            name=foot, mass=0.0, pos=frame.placement.translation, solref=STIFF, **robot.shape
        )
    return spec.compile()


def feel(
    robot: Walker, speeds: np.ndarray, at: np.ndarray, turn: list[np.ndarray]
) -> tuple[np.ndarray, ...]:
    """What an inertial unit has, which takes means over a sample: rates and specific force.

    Of the base's velocity before each step. MuJoCo steps velocities before positions, so that
    they belong half a step before these; and between samples held targets make accelerations a
    saw, of which samples of instants would have one edge.
    """
    v = 0.5 * (speeds[1:, :6] + speeds[:-1, :6])
    gained = (v[at + robot.every // 2] - v[at - robot.every // 2]) * RATE
    w, turning, arm = v[at, 3:], gained[:, 3:], MADE.MOUNT
    R = np.array([pin.Quaternion(each).toRotationMatrix() for each in turn])
    felt = np.einsum("tji,tj->ti", R, gained[:, :3] + [0.0, 0.0, 9.81])
    felt += np.cross(turning, arm.translation) + np.cross(w, np.cross(w, arm.translation))
    return w @ arm.rotation, felt @ arm.rotation


def write_log(robot: Walker, path: Path, seed: int, steps: bool) -> None:
    """Walk along one course, and log it."""
    rng = np.random.default_rng(seed)
    model = build_mujoco(robot)
    data = mujoco.MjData(model)
    t = np.arange(round(SECONDS * RATE)) / RATE
    target = robot.follow(rng, t, steps)
    data.qpos[:3], height, target = target[0, :3], target[0, 2], target[:, 7:]
    data.qpos[7:] = target[0]
    late = round(LATE / robot.step)
    asked, speeds = [target[0]] * late, list[np.ndarray]()
    feet_of = {
        mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, foot): k
        for k, foot in enumerate(robot.feet)
    }

    def drive() -> None:
        # half a step later than MuJoCo has it, as positions are
        speed = 1.5 * data.qvel - 0.5 * (speeds or [data.qvel])[-1]
        torque = robot.kp * (asked[-late] - data.qpos[7:]) - robot.kd * speed[6:]
        data.qfrc_applied[6:] = torque

    def move(wanted: np.ndarray) -> None:
        drive()
        speeds.append(data.qvel.copy())
        mujoco.mj_step(model, data)
        asked.append(wanted)

    for _ in range(round(2.0 / robot.step)):
        move(target[0])
    signals: dict[str, list[np.ndarray]] = {name: [] for name in (*NOISE, "touch")}
    at = []
    for wanted in target:
        drive()
        mujoco.mj_forward(model, data)
        bears = np.zeros(len(feet_of))
        for contact in data.contact[: data.ncon]:
            for geom in contact.geom:
                if geom in feet_of and contact.efc_address >= 0:
                    bears[feet_of[geom]] += data.efc_force[contact.efc_address] > 0.0
        at.append(len(speeds))
        signals["q"].append(data.qpos[7:].copy())
        signals["turn"].append(np.roll(data.qpos[3:7], -1))
        signals["touch"].append(np.minimum(bears, 1.0))
        for _ in range(robot.every):
            move(wanted)
    for _ in range(robot.every):
        move(target[-1])
    if data.qpos[2] < 0.7 * height:
        raise RuntimeError(f"{path.stem}: the robot fell")
    felt = feel(robot, np.array(speeds), np.array(at), signals["turn"])
    signals["gyro"], signals["specific"] = (list(each) for each in felt)
    names = list(robot.told.names[2:])
    columns = {
        "q": [f"q_{each}" for each in names],
        "gyro": [f"imu_w{k}" for k in "xyz"],
        "specific": [f"imu_a{k}" for k in "xyz"],
        "turn": [f"base_q{k}" for k in "xyzw"],
        "touch": [f"contact_{foot}" for foot in robot.feet],
    }
    table = {"time": t} | dict(zip([f"qref_{each}" for each in names], target.T, strict=True))
    for name, own in signals.items():
        values = np.array(own)
        values = values + robot.noise * NOISE.get(name, 0.0) * rng.normal(size=values.shape)
        table |= dict(zip(columns[name], values.T, strict=True))
    rows = np.column_stack(list(table.values()))
    np.savetxt(path, rows, fmt="%.7g", delimiter=",", header=",".join(table), comments="")


@dataclass(frozen=True)
class Case:
    """What is stated beside the robot: of contacts, of logs, and else; what a row is `of`."""

    of: str
    touch: str
    logs: str = ""
    more: str = ""


def write_study(robot: Walker, folder: Path, case: Case) -> Path:
    """What a user states."""
    lines = [
        robot.study,
        *(
            f'[[contact]]\nname = "{foot}"\nframe = "{frame}"\n{case.touch}'
            for foot, frame in robot.feet.items()
        ),
        *(
            f'[[log]]\nfiles = "{name}.csv"\nuse = "{use}"\nimu_position = [0.08, 0.0, 0.03]\n'
            f"imu_rpy = [0.0, 0.0, {np.pi / 2}]\nlaw_kp = {robot.kp}\nlaw_kd = {robot.kd}\n"
            f"{case.logs}"
            for name, _, use in LOGS
        ),
        f"[prepare]\nbandwidth = 10.0\n{case.more}",
    ]
    path = folder / "study.toml"
    path.write_text("\n".join(lines))
    return path


def make_quadruped() -> Walker:
    """The robot of `examples/quadruped`, with its load."""
    told, real = MADE.model_and_truth()

    def follow(rng: np.random.Generator, t: np.ndarray, steps: bool) -> np.ndarray:
        position, rpy, feet, _ = MADE.courses(rng, t, steps)
        q = MADE.joints(told, position, rpy, feet)
        q[:, :3] = position
        return np.asarray(q)

    ball = {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": [RADIUS, 0, 0]}
    drives = {"Ia": MADE.IA, "fv": MADE.FV, "fc": MADE.FC}
    study = f'[robot]\nfile = "{FOLDER / "quadruped.urdf"}"\nfloating = true'
    feet = {leg: f"{leg}_foot" for leg in MADE.LEGS}
    return Walker(told, real, "trunk", feet, ball, RADIUS, 80.0, 2.0, drives, follow, study)


def make_talos() -> Walker:
    """TALOS, with a load that its URDF does not know."""
    told, real, held = talos.load_models()
    locked = ", ".join(f"{name} = {value}" for name, value in held.items())
    study = f'[robot]\nfile = "{talos.FILE}"\nfloating = true\nlocked = {{ {locked} }}'
    follow = partial(talos.follow_course, told, MADE.waves, MADE.rise)
    sole = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": talos.SOLE}
    return Walker(
        told,
        real,
        "base_link",
        talos.SOLES,
        sole,
        talos.SOLE[2],
        talos.KP,
        talos.KD,
        talos.DRIVES,
        follow,
        study,
    )


def weigh(fit: di.Fit) -> tuple[float, float]:
    """The mass of all, a base parameter of a robot that floats, and its standard deviation."""
    row = next(row for row in list_base_parameters(fit) if row.name == "m0R")
    return row.value, row.std


def find_delay(fit: di.Fit) -> str:
    """How late targets are found to come, and its standard deviation [ms]."""
    rows = [row for row in list_sensor_parameters(fit) if row.name == LAW]
    if not rows:
        return "stated"
    assert isinstance(fit.study, Study)
    delay = (read_law(fit.study.log[0]).law_delay or 0.0) + rows[0].value
    return f"{1e3 * delay:.3f} ± {1e3 * rows[0].std:.3f}"


def judge(robot: Walker, fit: di.Fit) -> list[str]:
    """What an identification finds, beside what is true."""
    drives, trunk = fit.drives(), fit.links().iloc[0]
    inside = []
    for name, true in (*robot.drives.items(), ("off", 0.0)):
        near = (drives[name] - true).abs() <= 1.96 * drives[f"{name}_std"]
        inside.append(f"{int(near.sum())} of {len(near)}")
    mass, true = weigh(fit)[0], sum(own.mass for own in robot.real.inertias[1:])
    fitted, *_ = fit.validation[0].entries
    return [
        find_delay(fit),
        f"{100.0 * (mass / true - 1.0):+.2f}",
        f"{trunk['mass']:.2f} ± {trunk['mass_std']:.2f}",
        f"{100.0 * (trunk['mass'] / robot.real.inertias[1].mass - 1.0):+.1f}",
        *inside,
        f"{fitted.overall_percent:.2f}",
    ]


def walk(robot: Walker, more: int, cases: Sequence[Case]) -> list[di.Fit]:
    """Logs of a robot by other seeds than zero, and what is identified under each statement."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for log, seed, _ in LOGS:
            write_log(robot, folder / f"{log}.csv", seed + more, steps=log != "sway")
        return [di.run_study(di.read_study(write_study(robot, folder, case))) for case in cases]


def list_cases(robot: Walker, touch: str, of: str) -> list[Case]:
    """The delay found and stated, found with a payload, and with what joints do that stand."""
    payload = f'[[constraint]]\nkind = "payload"\nlink = "{robot.trunk}"'
    return [
        Case(of, touch),
        Case(of, touch, logs=f"law_delay = {robot.delay}"),
        Case(f"{of}, payload", touch, more=payload),
        Case(f"{of}, standing too", touch, more="drop_below = 1e-9"),
    ]


def main() -> None:
    """Walk, identify, write the page."""
    dog, talos_ = make_quadruped(), make_talos()
    ball = f'kind = "point"\nradius = {RADIUS}'
    # along courses of other seeds they fall
    sets = [
        (dog, 0, [*list_cases(dog, ball, "quadruped, 20, 1st"), Case(BARE, 'kind = "point"')]),
        (dog, 10, list_cases(dog, ball, "quadruped, 20, 2nd")),
        (dog, 18, list_cases(dog, ball, "quadruped, 20, 3rd")),
        (talos_, 0, list_cases(talos_, 'kind = "surface"', "TALOS, 1st")),
        (talos_, 6, list_cases(talos_, 'kind = "surface"', "TALOS, 2nd")),
    ]
    fits = [walk(*each) for each in sets]
    rows = [
        [case.of, *judge(robot, fit)]
        for (robot, _, cases), own in zip(sets, fits, strict=True)
        for case, fit in zip(cases, own, strict=True)
    ]
    clean = [replace(dog, noise=0.0, step=step) for step in (5e-4, 1e-4)]
    exact = [walk(own, 0, [Case("", ball)])[0] for own in clean]
    found = " and ".join(
        f"{find_delay(fit)} ms for {1e3 * own.delay:.3f} ms at steps of {1e3 * own.step:g} ms"
        for own, fit in zip(clean, exact, strict=True)
    )
    trunk = judge(clean[0], exact[0])[2]
    heavy = dog.real.copy()
    heavy.inertias[1] += PAYLOAD
    loaded = weigh(walk(replace(dog, real=heavy), 0, [Case("", ball)])[0])
    before = weigh(fits[0][0])
    more, error = loaded[0] - before[0], 1.96 * float(np.hypot(loaded[1], before[1]))
    head = ["robot, radius of its feet as stated [mm], logs", "delay [ms]", "mass off [%]"]
    head += ["trunk [kg]", "off [%]", "`Ia`", "`fv`", "`fc`", "`off`", "held out %"]
    trunks = f"{dog.real.inertias[1].mass:.2f} kg", f"{talos_.real.inertias[1].mass:.2f} kg"
    lines = [
        "# Walking without torque sensors",
        "",
        "Made by `benchmarks/walking.py`: MuJoCo moves the quadruped of `examples/quadruped` "
        f"with its load (the trunk {trunks[0]}; the URDF says 6.00) on round feet of "
        f"{1e3 * RADIUS:g} mm, with drives of {dog.kp:g} Nm/rad and {dog.kd:g} Nm s/rad, and TALOS "
        f"with arms, torso and head held (then its trunk: {trunks[1]}, a load of "
        f"{talos.LOAD.mass:g} kg in it; the URDF says {talos_.told.inertias[1].mass:.2f}) on two "
        f"soles, {talos.KP:g} Nm/rad and {talos.KD:g} Nm s/rad: weight shifts, squats and two "
        f"small steps. Targets come {1e3 * LATE:g} ms late and are held for {1e3 / RATE:g} ms, "
        f"{dog.every} steps of {1e3 * dog.step:g} ms: in the mean they are "
        f"**{1e3 * dog.delay:.3f} ms** late. The logs have encoders, targets, an inertial unit and "
        "which feet touch. Of the drives: how many of the twelve have the truth in their 95 % "
        "interval; ± are standard deviations. `payload`: the study states that the trunk carries "
        "something. `standing too`: with the equations of joints that stand.",
        "",
        *markdown(head, rows),
        "",
        f"Of the quadruped's first logs without noise the delay is found as {found}. The trunk has "
        f"{trunk} kg there, hardly better than with noise: such logs tell the mass of all, and how "
        "much of it is the trunk's and how much the legs' rests on the URDF.",
        "",
        f"A payload of {PAYLOAD.mass:g} kg on the quadruped's trunk, as the difference of the "
        f"masses that two sets of logs give: **{more:.3f} ± {error:.3f} kg** (95 %).",
    ]
    (FIGURES / "walking.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
