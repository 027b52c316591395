"""A quadruped that walks without torque sensors and without motion capture, made by MuJoCo.

Run from the top of the project: python benchmarks/walking.py

The robot of `examples/quadruped` with its load stands, sways and steps in MuJoCo, on round feet and
a floor with friction, under drives that follow position targets by a stiffness and a damping, with
the targets late. The log has encoders, targets, an inertial unit (rates, specific force,
orientation) and which feet touch: no torque, no position of the base. `dynident` knows the law and
the radius of the feet, and the URDF, which does not know the load.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType

import mujoco
import numpy as np
import pinocchio as pin
from common import FIGURES, ROOT, markdown

FOLDER = ROOT / "examples" / "quadruped"
RATE, SECONDS, STEP = 500.0, 10.0, 5e-4
EVERY = round(1.0 / RATE / STEP)
RADIUS, KP, KD, LATE = 0.02, 80.0, 2.0, 8
"""Of the feet [m]; of the drives [Nm/rad, Nm s/rad]; steps by which targets come late."""
SHARP = (2.0 * STEP, 1.0)
"""Of MuJoCo's friction, a sign and no slope: by default it is rounded over 0.1 rad/s."""
NOISE = {"q": 5e-5, "gyro": 2e-3, "specific": 2e-2, "turn": 2e-4}
LOGS = (("steps", 2, "identify"), ("sway", 1, "identify"), ("others", 3, "validate"))
AXES = {"X": [1, 0, 0], "Y": [0, 1, 0], "Z": [0, 0, 1]}


def load_example() -> ModuleType:
    """The script that makes the example's logs: its robot, its courses."""
    spec = importlib.util.spec_from_file_location("make_logs", FOLDER / "make_logs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_mujoco(made: ModuleType, real: pin.Model) -> mujoco.MjModel:
    """The robot that moves, on a floor."""
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.option.impratio = STEP, 10
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], pos=[0, 0, -RADIUS])
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
        joint.armature, joint.frictionloss = made.IA, made.FC
        joint.damping[0] = made.FV
        joint.solref_friction[:] = SHARP
    for leg in made.LEGS:
        frame = real.frames[real.getFrameId(f"{leg}_foot")]
        bodies[frame.parentJoint].add_geom(
            name=leg, type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[RADIUS, 0, 0], mass=0.0,
            pos=frame.placement.translation,
        )  # fmt: skip
    return spec.compile()


def feel(speeds: np.ndarray, at: np.ndarray, turn: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """What an inertial unit has, which takes means over a sample: rates and specific force.

    Of the base's velocity before each step. MuJoCo steps velocities before positions, so that
    they belong half a step before these; and between samples held targets make accelerations a
    saw, of which samples of instants would have one edge.
    """
    v = 0.5 * (speeds[1:, :6] + speeds[:-1, :6])
    gained = (v[at + EVERY // 2] - v[at - EVERY // 2]) / (EVERY * STEP)
    w, turning, arm = v[at, 3:], gained[:, 3:], load_example().MOUNT
    R = np.array([pin.Quaternion(each).toRotationMatrix() for each in turn])
    felt = np.einsum("tji,tj->ti", R, gained[:, :3] + [0.0, 0.0, 9.81])
    felt += np.cross(turning, arm.translation) + np.cross(w, np.cross(w, arm.translation))
    return w @ arm.rotation, felt @ arm.rotation


def write_log(made: ModuleType, path: Path, seed: int, steps: bool) -> None:
    """Walk along one course, and log it."""
    rng = np.random.default_rng(seed)
    told, real = made.model_and_truth()
    model = build_mujoco(made, real)
    data = mujoco.MjData(model)
    t = np.arange(round(SECONDS * RATE)) / RATE
    position, rpy, feet, _ = made.courses(rng, t, steps)
    target = made.joints(told, position, rpy, feet)[:, 7:]
    data.qpos[:3], data.qpos[7:] = position[0], target[0]
    asked, speeds = [target[0]] * LATE, list[np.ndarray]()
    feet_of = {
        mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, leg): k
        for k, leg in enumerate(made.LEGS)
    }

    def drive() -> None:
        # half a step later than MuJoCo has it, as positions are
        speed = 1.5 * data.qvel - 0.5 * (speeds or [data.qvel])[-1]
        data.qfrc_applied[6:] = KP * (asked[-LATE] - data.qpos[7:]) - KD * speed[6:]

    def move(wanted: np.ndarray) -> None:
        drive()
        speeds.append(data.qvel.copy())
        mujoco.mj_step(model, data)
        asked.append(wanted)

    for _ in range(round(2.0 / STEP)):
        move(target[0])
    signals: dict[str, list[np.ndarray]] = {name: [] for name in (*NOISE, "touch")}
    at = []
    for wanted in target:
        drive()
        mujoco.mj_forward(model, data)
        bears = np.zeros(4)
        for contact in data.contact[: data.ncon]:
            for geom in contact.geom:
                if geom in feet_of and contact.efc_address >= 0:
                    bears[feet_of[geom]] = float(data.efc_force[contact.efc_address] > 0.0)
        at.append(len(speeds))
        signals["q"].append(data.qpos[7:].copy())
        signals["turn"].append(np.roll(data.qpos[3:7], -1))
        signals["touch"].append(bears)
        for _ in range(EVERY):
            move(wanted)
    for _ in range(EVERY):
        move(target[-1])
    signals["gyro"], signals["specific"] = feel(np.array(speeds), np.array(at), signals["turn"])
    names = list(told.names[2:])
    columns = {
        "q": [f"q_{each}" for each in names],
        "gyro": [f"imu_w{k}" for k in "xyz"],
        "specific": [f"imu_a{k}" for k in "xyz"],
        "turn": [f"base_q{k}" for k in "xyzw"],
        "touch": [f"contact_{leg}" for leg in made.LEGS],
    }
    table = {"time": t} | dict(zip([f"qref_{each}" for each in names], target.T, strict=True))
    for name, own in signals.items():
        values = np.array(own)
        values = values + NOISE.get(name, 0.0) * rng.normal(size=values.shape)
        table |= dict(zip(columns[name], values.T, strict=True))
    rows = np.column_stack(list(table.values()))
    np.savetxt(path, rows, fmt="%.7g", delimiter=",", header=",".join(table), comments="")


def write_study(folder: Path, radius: float, more: str = "") -> Path:
    """What a user states."""
    lines = [
        f'[robot]\nfile = "{FOLDER / "quadruped.urdf"}"\nfloating = true',
        *(
            f'[[contact]]\nname = "{leg}"\nframe = "{leg}_foot"\nkind = "point"\nradius = {radius}'
            for leg in ("FL", "FR", "HL", "HR")
        ),
        *(
            f'[[log]]\nfiles = "{name}.csv"\nuse = "{use}"\nimu_position = [0.08, 0.0, 0.03]\n'
            f"imu_rpy = [0.0, 0.0, {np.pi / 2}]\nlaw_kp = {KP}\nlaw_kd = {KD}{more}"
            for name, _, use in LOGS
        ),
        "[prepare]\nbandwidth = 10.0",
    ]
    path = folder / "study.toml"
    path.write_text("\n".join(lines))
    return path


def judge(made: ModuleType, path: Path) -> list[str]:
    """What an identification finds, beside what is true."""
    import dynident as di

    _, real = made.model_and_truth()
    fit = di.run_study(di.read_study(path))
    late = [note for note in fit.warnings if " ms late" in note]
    drives, links = fit.drives(), fit.links()
    inside = []
    for name, true in (("Ia", made.IA), ("fv", made.FV), ("fc", made.FC), ("off", 0.0)):
        near = (drives[name] - true).abs() <= 1.96 * drives[f"{name}_std"]
        inside.append(f"{int(near.sum())} of {len(near)}")
    assert fit.phi is not None
    mass, true = float(fit.phi[:, 0].sum()), sum(own.mass for own in real.inertias[1:])
    trunk = links.iloc[0]
    fitted, *_ = fit.validation[0].entries
    return [
        late[0].partition(" ms late")[0].partition("targets ")[2] if late else "stated",
        f"{mass:.3f}",
        f"{100.0 * (mass / true - 1.0):+.1f}",
        f"{trunk['mass']:.2f} ± {trunk['mass_std']:.2f}",
        *inside,
        f"{fitted.overall_percent:.2f}",
    ]


def main() -> None:
    """Walk, identify, write the page."""
    made = load_example()
    _, real = made.model_and_truth()
    # a held target acts at the beginnings of the steps between two samples
    stated = f"\nlaw_delay = {LATE * STEP + 0.5 / RATE - 0.5 * STEP}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for log, seed, _ in LOGS:
            write_log(made, folder / f"{log}.csv", seed, steps=log != "sway")
        rows = [
            [f"{1e3 * radius:g}", *judge(made, write_study(folder, radius, more))]
            for radius, more in ((0.0, ""), (RADIUS, ""), (RADIUS, stated))
        ]
    head = ["radius of the feet as stated [mm]", "delay [ms]", "mass [kg]", "error %", "trunk [kg]"]
    head += ["`Ia`", "`fv`", "`fc`", "`off`", "held out %"]
    true = sum(own.mass for own in real.inertias[1:])
    drives = f"{KP:g} Nm/rad and {KD:g} Nm s/rad, targets {1e3 * LATE * STEP:g} ms late"
    mean = 1e3 * (LATE * STEP + 0.5 / RATE)
    lines = [
        "# Walking without torque sensors",
        "",
        "Made by `benchmarks/walking.py`: MuJoCo moves the quadruped of `examples/quadruped` "
        f"with its load ({true:.3f} kg, the trunk {real.inertias[1].mass:.2f}; the URDF says "
        f"12.6 and 6.0) on feet of {1e3 * RADIUS:g} mm, with drives of {drives}. Targets are held "
        f"for {1e3 / RATE:g} ms, and so {mean:g} ms late in the mean. The logs have encoders, "
        "targets, an inertial unit and which feet touch. Of the drives: how many of the twelve "
        "have the truth in their 95 % interval.",
        "",
        *markdown(head, rows),
    ]
    (FIGURES / "walking.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
