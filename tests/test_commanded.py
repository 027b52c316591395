"""Torques that the drives' law commands, and round feet: logs that lack torque sensors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import toy

import dynident as di
from dynident.core.errors import InputError
from dynident.dynamics.contacts import follow_touch
from dynident.dynamics.tree import build_tree
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


def walk(folder: Path, law: str) -> Path:
    """The stepping log of the example as one of encoders, targets and an inertial unit."""
    header, *lines = (EXAMPLE / "steps.csv").read_text().splitlines()
    names = header.split(",")
    rows = np.array([line.split(",") for line in lines], dtype=float)
    joints = [name.removeprefix("tau_") for name in names if name.startswith("tau_")]
    q, tau = (rows[:, [names.index(f"{s}_{j}") for j in joints]] for s in ("q", "tau"))
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
    with pytest.raises(InputError, match="no orientation of the base"):
        di.run_study(di.read_study(study))
