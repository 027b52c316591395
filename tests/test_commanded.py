"""Torques that the drives' law commands, and round feet: logs that lack torque sensors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import scipy.linalg
import toy
from commands import tell

import dynident as di
from dynident.core.errors import InputError
from dynident.dynamics.contacts import follow_touch
from dynident.dynamics.equations import leave_equations_out
from dynident.dynamics.tree import build_tree
from dynident.fit.json import serialise_result
from dynident.fit.parameters import list_sensor_parameters
from dynident.recording.commanded import DriveLaw, command_torque
from dynident.recording.recording import Recording
from dynident.robot.contacts import add_contacts, parse_contacts

EXAMPLE = Path(__file__).parents[1] / "examples" / "quadruped"
KP, LATE = 40.0, 2


def asked(recording: Recording, late: int, kp: float, kd: float) -> Recording:
    """The log of drives that made its torques of targets so many samples late."""
    dq = np.gradient(recording.q, axis=0) * recording.rate
    target = recording.q + (recording.tau + kd * dq) / kp
    qref = np.roll(target, -late, axis=0)
    return replace(recording, qref=qref, dq=dq, tau=np.zeros_like(qref), torque="none")


@pytest.mark.parametrize("late", [0, 3])
def test_the_law_makes_the_torques_of_which_targets_were_made(late: int) -> None:
    recording, _ = toy.log(toy.arm(3))
    law = DriveLaw(400.0, 5.0, late / recording.rate)
    found = command_torque(asked(recording, late, 400.0, 5.0), law)
    assert found.torque == "commanded"
    size = np.max(np.abs(recording.tau))
    np.testing.assert_allclose(found.tau[late:], recording.tau[late:], atol=1e-9 * size)


@pytest.mark.parametrize("late", [0.3, 2.6])
def test_a_later_law_commands_less_by_what_stands_beside_it(late: float) -> None:
    """Between samples targets are on lines: quotients are exact."""
    recording, _ = toy.log(toy.arm(3))
    log = asked(recording, 0, 400.0, 5.0)
    log = replace(log, dqref=np.gradient(log.qref, axis=0))
    at = [DriveLaw(400.0, 5.0, (late + step) / log.rate) for step in (-0.2, 0.0, 0.2)]
    less, now, more = (command_torque(log, each, open_=True) for each in at)
    quotient = (less.tau - more.tau) / (0.4 / log.rate)
    size = np.max(np.abs(quotient))
    np.testing.assert_allclose(now.wrenches["law_delay"], quotient, atol=1e-9 * size)


def test_a_law_is_refused_without_targets_and_beside_torques() -> None:
    recording, _ = toy.log(toy.arm(2))
    with pytest.raises(InputError, match="has torques; leave law_kp out"):
        command_torque(recording, DriveLaw(400.0))
    with pytest.raises(InputError, match=r"no targets \(qref\)"):
        command_torque(replace(recording, torque="none", qref=None), DriveLaw(400.0))


def test_combinations_are_free_of_equations_that_do_not_hold() -> None:
    rng = np.random.default_rng(0)
    N = np.linalg.qr(rng.normal(size=(4, 7, 4)))[0]
    out = np.zeros((4, 7), dtype=bool)
    out[1, 2], out[2, [0, 5]], out[3, :4] = True, True, True
    found, left = leave_equations_out(N, out)
    np.testing.assert_array_equal(found[0], N[0])
    assert np.max(np.abs(found[out])) < 1e-12
    # all combinations of the old ones that are free of these, and no others
    for before, own, gone in zip(N, found, out, strict=True):
        space = before @ scipy.linalg.null_space(np.where(gone[:, None], before, 0.0))
        np.testing.assert_allclose(own @ own.T, space @ space.T, atol=1e-12)
    np.testing.assert_array_equal(left, [True, True, True, False])


STEP, HELD = 5e-4, 4
"""Of a simulated drive: its step [s], and for how many steps a target is held."""
WHEEL = """<robot name="wheel"><link name="base"/><link name="wheel"><inertial>
<origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="wheel"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="500" velocity="10"/></joint></robot>"""


def drive_along(target: np.ndarray, late: int, kp: float, kd: float) -> np.ndarray:
    """Where a drive with an unbalanced wheel is at its targets, which come so many steps late.

    Its friction holds it as long as it can.
    """
    inertia, fv, fc, weight = 0.05, 0.08, 0.15, 1.0
    q, v, before, found = float(target[0]), 0.0, 0.0, []
    for step in range(HELD * len(target)):
        if step % HELD == 0:
            found.append(q)
        speed = 1.5 * v - 0.5 * before  # half a step on, where the position is
        torque = kp * (target[max(0, step - late) // HELD] - q) - (kd + fv) * speed
        free = v + STEP * (torque - weight * np.sin(q)) / inertia
        before, v = v, np.sign(free) * max(abs(free) - STEP * fc / inertia, 0.0)
        q += STEP * v
    return np.array(found)


@pytest.mark.long
def test_a_drive_that_stands_says_nothing_of_its_delay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it turns round, friction holds it while its target goes on: as damping would."""
    late, kp, kd, t = 8, 80.0, 2.0, np.arange(5000) * HELD * STEP
    tones = ((0.2, 0.5), (0.15, 1.3), (0.1, 2.1))
    target = sum(a * np.sin(2.0 * np.pi * f * t + k) for k, (a, f) in enumerate(tones))
    q = drive_along(np.asarray(target), late, kp, kd)
    q = q + 1e-5 * np.random.default_rng(0).normal(size=len(q))
    (tmp_path / "wheel.urdf").write_text(WHEEL)
    header, table = "time,q_turn,qref_turn", np.column_stack([t, q, target])
    np.savetxt(tmp_path / "log.csv", table, "%.9g", ",", header=header, comments="")

    def find(more: str) -> tuple[float, float, di.Fit]:
        (tmp_path / "study.toml").write_text(
            f'[robot]\nfile = "wheel.urdf"\n[[log]]\nfiles = "log.csv"\nlaw_kp = {kp}\n'
            f"law_kd = {kd}\n[prepare]\nbandwidth = 10.0\n{more}"
        )
        fit = di.run_study(di.read_study(tmp_path / "study.toml"))
        (own,) = list_sensor_parameters(fit)
        return fit.study.log[0].law_delay + own.value, own.std, fit  # type: ignore[attr-defined]

    true = (late + 0.5 * (HELD - 1)) * STEP  # in the mean of the steps at which a target acts
    delay, std, fit = find("")
    assert abs(delay - true) < 1.96 * std < 6e-5
    # a stream has no whole log, by which a delay is found or torques are made
    monkeypatch.chdir(tmp_path)
    fit.save("out")
    read = di.read_result("out/result.json")
    assert serialise_result(read, Path("out")) == serialise_result(fit, Path("out"))
    needed = "log.csv: law_kp needs law_delay"
    for line, reason in (
        ("track log.csv --start out/result.json", "wheel: law_delay is estimated from whole logs"),
        ("track log.csv --follow --study study.toml --sigma 1", "law_kp computes torques of whole"),
        # other commands do not take a delay of none instead
        ("track study.toml", needed), ("doctor study.toml", needed), ("select study.toml", needed),
        ("compare study.toml", needed), ("base wheel.urdf --study study.toml", needed),
    ):  # fmt: skip
        assert reason in tell(capsys, line.split(), 2).err, line
    text = Path("study.toml").read_text()
    stated = text.replace("law_kp", "law_delay = 0.001\ndelay = 0.002\nlaw_kp", 1)
    Path("late.toml").write_text(stated)
    said = tell(capsys, ["identify", "late.toml"], 2).err
    assert "delay shifts a logged one; change law_delay" in said
    # a sweep, which identifies, scores held-out logs at the delay that it finds
    own = f"law_kp = {kp}\nlaw_kd = {kd}\nrows = [3000, 5000]"
    Path("held.toml").write_text(f'{text}[[log]]\nfiles = "log.csv"\n{own}\nuse = "validate"\n')
    line = "sweep held.toml --set prepare.bandwidth=8,10 --blocks 2 -o sw"
    assert "failed" not in tell(capsys, line.split()).out
    # with what it does while it stands
    worse, std, _ = find("drop_below = 1e-9\n")
    assert worse - true > max(1e-4, 1.96 * std)


def walk(folder: Path, law: str, held: float = 0.0) -> Path:
    """The stepping log of the example as one of encoders, targets and an inertial unit.

    `held` is what friction may bear of joints that stand, beside their own [Nm].
    """
    header, *lines = (EXAMPLE / "steps.csv").read_text().splitlines()
    names = header.split(",")
    rows = np.array([line.split(",") for line in lines], dtype=float)
    joints = [name.removeprefix("tau_") for name in names if name.startswith("tau_")]
    q, tau = (rows[:, [names.index(f"{s}_{j}") for j in joints]] for s in ("q", "tau"))
    speed = np.abs(np.gradient(q, axis=0))
    stands = speed < 0.01 * np.max(speed, axis=0)
    tau += held * stands * np.random.default_rng(0).uniform(-1.0, 1.0, q.shape)
    kept = [k for k, name in enumerate(names) if not name.startswith("tau_")]
    table = np.hstack([rows[:, kept], np.roll(q + tau / KP, -LATE, axis=0)])
    titles = [*(names[k] for k in kept), *(f"qref_{joint}" for joint in joints)]
    np.savetxt(
        folder / "walk.csv", table[:-LATE], "%.9g", ",", header=",".join(titles), comments=""
    )
    feet = "".join(
        f'[[contact]]\nname = "{leg}"\nframe = "{leg}_foot"\nkind = "point"\n'
        for leg in ("FL", "FR", "HL", "HR")
    )
    study = folder / "study.toml"
    study.write_text(
        f'[robot]\nfile = "{EXAMPLE / "quadruped.urdf"}"\nfloating = true\n{feet}'
        '[[log]]\nfiles = "walk.csv"\nimu_position = [0.08, 0.0, 0.03]\n'
        f"imu_rpy = [0.0, 0.0, 1.5707963]\n{law}\n"
        '[prepare]\nbandwidth = 5.0\n[identify]\nbootstrap = 0\ndecide = "nothing"\n'
    )
    return study


@pytest.mark.long
def test_a_walking_robot_without_torque_sensors_is_weighed(tmp_path: Path) -> None:
    """And how late its drives had their targets is found, and stands in the study."""
    fit = di.run_study(di.read_study(walk(tmp_path, f"law_kp = {KP}")))
    delay = fit.study.log[0].law_delay  # type: ignore[attr-defined]
    assert abs(delay - LATE / 100.0) < 1e-3
    (late,) = list_sensor_parameters(fit)
    assert (late.name, late.unit) == ("law_delay", "s")
    assert abs(delay + late.value - LATE / 100.0) < 4.0 * late.std < 1e-3
    # errors of viscous friction are those at a stated delay and those of the delay
    stated = di.run_study(di.read_study(walk(tmp_path, f"law_kp = {KP}\nlaw_delay = 0.02")))
    assert list_sensor_parameters(stated) == ()
    alone, both = (each.drives()["fv_std"].to_numpy() for each in (stated, fit))
    assert np.all(both > np.hypot(0.8 * alone, 0.5 * KP * late.std))
    assert fit.torque_source == "law"
    assert any("ms late" in note for note in fit.warnings)
    assert abs(fit.phi[:, 0].sum() - 14.278) < 0.15
    (report,) = di.doctor(di.read_study(tmp_path / "study.toml"))
    assert report.log == "walk.csv"


@pytest.mark.long
def test_what_holds_joints_that_stand_changes_nothing_that_walks(tmp_path: Path) -> None:
    law = f"law_kp = {KP}\nlaw_delay = {LATE / 100.0}"
    plain, held = (
        di.run_study(di.read_study(walk(tmp_path, law, own))).drives() for own in (0.0, 0.5)
    )
    for name in ("Ia", "fv", "fc", "off"):
        assert np.all((held[name] - plain[name]).abs() < 0.3 * plain[f"{name}_std"])


def test_a_round_foot_touches_at_its_lowest_point() -> None:
    """Its Jacobian is that of the point of the body that is there, by Pinocchio."""
    robot = di.load_robot(EXAMPLE / "quadruped.urdf", floating=True)
    robot = add_contacts(
        robot, [replace_radius(spec) for spec in parse_contacts(["FL_foot:point"])]
    )
    model = pin.buildModelFromUrdf(str(EXAMPLE / "quadruped.urdf"), pin.JointModelFreeFlyer())
    data, frame = model.createData(), model.getFrameId("FL_foot")
    for q in (pin.randomConfiguration(model, -np.ones(19), np.ones(19)) for _ in range(3)):
        found = follow_touch(build_tree(robot), robot, robot.contacts[0], q[None])
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        place = data.oMf[frame]
        np.testing.assert_allclose(found.origin[0], place.translation - [0.0, 0.0, 0.02])
        J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        moved = J[:3] + np.cross(J[3:], [0.0, 0.0, -0.02], axis=0)
        np.testing.assert_allclose(
            found.turn[0] @ found.jacobian[0, :3], moved, atol=1e-12 * np.max(np.abs(J))
        )


def replace_radius(spec):  # type: ignore[no-untyped-def]
    """A contact of 20 mm."""
    return spec.model_copy(update={"radius": 0.02})


def test_a_round_foot_asks_for_the_direction_of_gravity(tmp_path: Path) -> None:
    study = walk(tmp_path, f"law_kp = {KP}\nlaw_delay = 0.02")
    text = study.read_text().replace('kind = "point"', 'kind = "point"\nradius = 0.02')
    study.write_text(text)
    lines = (tmp_path / "walk.csv").read_text()
    (tmp_path / "walk.csv").write_text(lines.replace("base_q", "other_"))
    with pytest.raises(InputError, match="needs the orientation of the base"):
        di.run_study(di.read_study(study))
