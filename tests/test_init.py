"""`dynident init`: a first study that runs, says what was found, and whose comments are keys."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import toy
from commands import tell
from robots import EXAMPLES, urdf
from thin import long

import dynident as di
from dynident.cli import run
from dynident.cli.excite import choose_study
from dynident.dynamics.idim import build_idim
from dynident.recording.floating import BASE
from dynident.robot.contacts import find_contacts
from dynident.robot.model import WRENCH
from dynident.study.doctor import render_repaired_study
from dynident.study.first_study import KEYS, LOOP
from dynident.study.recognise import recognise_base, recognise_columns
from dynident.study.study import Study, read_study
from dynident.study.study_text import render_run_studies

RATE = 200.0


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A two-joint arm and a log in which the second torque has the wrong sign."""
    monkeypatch.chdir(tmp_path)
    Path("arm.toml").write_text(toy.ARM)
    robot = di.load_robot("arm.toml")
    idim = build_idim(robot)
    q, dq, ddq = toy.motion(2, 15.0, rate=RATE)
    tau = idim.torque(toy.true_parameters(idim, robot.nominal), q, dq, ddq)
    tau = tau + 0.1 * np.random.default_rng(0).normal(size=q.shape)
    tau[:, 1] *= -1.0
    table = np.column_stack([np.arange(len(q)) / RATE, q, tau])
    head = "time,q_one,q_two,tau_one,tau_two"
    np.savetxt("run.csv", table, delimiter=",", header=head, comments="")
    np.savetxt("blind.csv", table[:, :3], delimiter=",", header=head[:16], comments="")
    return tmp_path


@pytest.mark.long
def test_a_first_study_is_repaired_and_runs(desk, capsys):
    out, err = tell(capsys, ["init", "--robot", "arm.toml", "--log", "run.csv", "-o", "mine.toml"])
    assert "run.csv: 3000 samples at 200 Hz" in out
    assert "repair      add sign" in out
    assert "next: dynident identify mine.toml" in err
    text = Path("mine.toml").read_text()
    assert text.startswith("# Made by dynident init.\n#\n# The doctor's findings:\n#   run.csv: ")
    study = read_study(Path("mine.toml"))
    assert [(log.rows, log.use) for log in study.log] == [
        ((0, 2000), "identify"),
        ((2000, 3000), "validate"),
    ]
    fit = di.run_study(study)
    assert fit.validation[0].entries[1].overall_percent < 10.0
    assert run(["init", "--robot", "arm.toml", "--log", "run.csv", "-o", "mine.toml"]) == 2
    assert "mine.toml: is there already" in capsys.readouterr().err
    assert Path("mine.toml").read_text() == text
    short, err = tell(capsys, ["init", "arm.toml", "run.csv"])
    assert (short, "next: dynident identify study.toml" in err) == (out, True)
    for given, words in (
        ([], "a log: dynident init ROBOT LOG"),
        (["arm.toml"], "a log: dynident init ROBOT LOG"),
        (["arm.toml", "run.csv", "--robot", "arm.toml"], "either ROBOT and LOG, or --robot"),
    ):
        assert run(["init", *given]) == 2
        assert words in capsys.readouterr().err


def test_of_several_logs_the_last_is_held_out_and_encoders_ask_for_a_controller(desk, capsys):
    given = ["init", "--robot", "arm.toml", "--log", "blind.csv"]
    assert (
        "next: fill in [controller] in study.toml, because a log has no torque, and log its targets"
        in tell(capsys, [*given, "--log", "blind.csv"]).err
    )
    study = read_study(Path("study.toml"))
    assert [(log.rows, log.use) for log in study.log] == [(None, "identify"), (None, "validate")]
    assert study.identify.method == "cloe"
    assert "state the [controller]" in Path("study.toml").read_text()
    assert run([*given, "--validate", "run.csv", "-o", "other.toml"]) == 0
    assert [log.use for log in read_study(Path("other.toml")).log] == ["identify", "validate"]
    assert run(["init", "--robot", "arm.toml", "--log", "none.csv", "-o", "no.toml"]) == 2
    assert not Path("no.toml").exists()


def test_what_it_refuses_it_says_in_flags(desk, capsys):
    given = ["init", "--robot", "arm.toml", "--log"]
    assert run([*given, "run.csv", "--columns", "q=p_*"]) == 2
    assert "; --columns 'q=q_*' maps other names" in capsys.readouterr().err
    head, *rows = Path("run.csv").read_text().splitlines()
    of_epoch = [f"{1.7e18 + 5e6 * k:.17g},{row.split(',', 1)[1]}" for k, row in enumerate(rows)]
    Path("ns.csv").write_text("\n".join([head, *of_epoch]))
    assert run(["identify", *given[1:], "ns.csv"]) == 2
    assert "; is it in ns? then set --units time=ns\n" in capsys.readouterr().err


def test_its_comments_are_keys_of_a_study():
    import tomllib

    lines = [line.removeprefix("# ") for line in (KEYS + LOOP).splitlines()[3:]]
    told = tomllib.loads("\n".join(line for line in lines if re.match(r"\[|\w+ =", line)))
    told["robot"]["file"] = "arm.toml"
    study = Study.model_validate({**told, "log": [{"files": ["run.csv"]}]})
    assert study.controller is not None
    assert study.identify.method == "pc-idim-ls"


QUADRUPED = EXAMPLES / "quadruped"
FEET = {"FL": "FL_foot", "FR": "FR_foot", "HL": "HL_foot", "HR": "HR_foot"}


def study_of(robot: Path, *logs: Path | str, **own: object) -> Study:
    section = {"file": str(robot), **own}
    return Study.model_validate({"robot": section, "log": [{"files": [str(p)]} for p in logs]})


def test_a_base_that_moves_and_its_contacts_are_recognised(tmp_path, monkeypatch):
    study, said = recognise_base(study_of(QUADRUPED / "quadruped.urdf", QUADRUPED / "steps.csv"))
    assert study.robot.floating
    assert {each.name: each.frame for each in study.contact} == FEET
    assert {each.kind for each in study.contact} == {"point"}
    assert [key for key, _ in said] == ["base", "contacts"]
    assert "FL at FL_foot (point)" in said[1][1]
    # one log without a base, a base that is stated, a robot of which a part is identified
    names, first = (QUADRUPED / "steps.csv").read_text().splitlines()[:2]
    bare = tmp_path / "bare.csv"
    bare.write_text(f"{names.replace('imu_', 'unit_')}\n{first}\n")
    for other in (
        study_of(QUADRUPED / "quadruped.urdf", QUADRUPED / "steps.csv", bare),
        study_of(QUADRUPED / "quadruped.urdf", QUADRUPED / "steps.csv", floating=True),
        study_of(QUADRUPED / "quadruped.urdf", QUADRUPED / "steps.csv", beyond="FL_hip"),
    ):
        assert recognise_base(other) == (other, ())
    # a unit on an arm that stands tells no base
    bare.write_text(f"{names.replace('contact_', 'state_')}\n{first}\n")
    alone = study_of(QUADRUPED / "quadruped.urdf", bare)
    assert recognise_base(alone) == (alone, ())
    # nor is there one for contacts in a table of joints
    posed = "base_px,base_py,base_pz,base_roll,base_pitch,base_yaw"
    bare.write_text(f"{names},{posed}\n{first},0,0,0,0,0,0\n")
    (tmp_path / "arm.toml").write_text(toy.ARM)
    table = study_of(tmp_path / "arm.toml", bare)
    assert recognise_base(table) == (table, ())
    # a pose tells a base, too; contacts of moments are surfaces, and one that is at no link none
    posed_log = tmp_path / "posed.csv"
    for contact, kinds in (("FL_foot", ["surface"]), ("foot", []), ("tail", [])):
        wrench = ",".join(f"{part}_{contact}" for part in ("fx", "fy", "fz", "mx", "my", "mz"))
        posed_log.write_text(f"time,{posed},{wrench}\n" + ",".join(["0"] * 13) + "\n")
        study, said = recognise_base(study_of(QUADRUPED / "quadruped.urdf", posed_log))
        assert study.robot.floating
        assert [each.kind for each in study.contact] == kinds
        assert len(said) == 1 + len(kinds)


def test_an_arm_with_a_force_sensor_and_an_inertial_unit_stands(tmp_path):
    arm, log = EXAMPLES / "panda" / "panda.urdf", tmp_path / "run.csv"
    names = ["time", *BASE["imu"], *(f"{part}_panda_hand" for part in WRENCH)]
    log.write_text(f"{','.join(names)}\n{','.join('0' * len(names))}\n")
    study, said = recognise_base(study_of(arm, log))
    assert not study.robot.floating
    assert not study.contact
    assert [key for key, _ in said] == ["base"]
    assert said[0][1].startswith("stands, though the logs have an inertial unit and contacts")
    # the pose of a base is that of one which moves
    names += ["base_px", "base_py", "base_pz", "base_roll", "base_pitch", "base_yaw"]
    log.write_text(f"{','.join(names)}\n{','.join('0' * len(names))}\n")
    assert recognise_base(study_of(arm, log))[0].robot.floating


def test_a_contact_of_several_limbs_is_at_none(tmp_path):
    """The left one is a foot, though the hand is farther from the base."""
    begin = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
    chain = {
        "left_hip": "base", "left_foot": "left_hip", "torso": "base", "left_arm": "torso",
        "left_fore": "left_arm", "left_hand": "left_fore", "right_foot": "base",
    }  # fmt: skip
    links = "".join(f"<link name='{k}'>{begin}</inertial></link>" for k in ("base", *chain))
    joints = "".join(
        f"<joint name='{child}_joint' type='continuous'><parent link='{parent}'/>"
        f"<child link='{child}'/><axis xyz='0 1 0'/></joint>"
        for child, parent in chain.items()
    )
    path = tmp_path / "human.urdf"
    path.write_text(f"<robot name='human'>{links}{joints}</robot>")
    robot = di.load_robot(path, floating=True)
    found = [find_contacts(robot, [f"fx_{name}"]) for name in ("left_foot", "right", "left")]
    assert [[each.frame for each in own] for own in found] == [["left_foot"], ["right_foot"], []]


def test_how_an_inertial_unit_is_mounted_is_repaired(tmp_path):
    text = f'[robot]\nfile = "{QUADRUPED / "quadruped.urdf"}"\nfloating = true\n' + "".join(
        f'[[contact]]\nname = "{name}"\nframe = "{frame}"\nkind = "point"\n'
        for name, frame in FEET.items()
    )
    text += f'[[log]]\nfiles = "{QUADRUPED / "sway.csv"}"\nimu_position = [0.08, 0.0, 0.03]\n'
    path = tmp_path / "study.toml"
    path.write_text(text)
    (report,) = di.doctor(read_study(path))
    (found,) = report.findings
    assert "angular velocity is not that of its orientation" in found.what
    assert re.fullmatch(r"add imu_rpy = \[.*, 1\.57\d*\] to \[\[log\]\]", found.remedy)
    assert report.repairable
    path.write_text(render_repaired_study(text, [report]))
    np.testing.assert_allclose(read_study(path).log[0].imu_rpy, [0.0, 0.0, np.pi / 2], atol=1e-3)


@pytest.mark.long
def test_a_first_study_of_a_quadruped_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    logs = [str(QUADRUPED / f"{name}.csv") for name in ("steps", "sway")]
    out, err = tell(capsys, ["init", str(QUADRUPED / "quadruped.urdf"), *logs])
    assert out.startswith("base        floating = true")
    assert "next: dynident identify study.toml" in err
    assert "# contacts    FL at FL_foot (point)" in Path("study.toml").read_text()
    fit = di.run_study(read_study(Path("study.toml")))
    assert fit.verdict.state == "trusted"
    assert fit.validation[0].entries[-1].overall_percent < 5.0


def test_columns_are_recognised_and_joints_without_them_locked(desk, capsys):
    path = urdf("panda")
    joints = [f"joint{k}" for k in range(1, 8)]
    row = ",".join(["0.1"] * 15)
    head = ",".join(["stamp", *(f"{signal}_{j}" for signal in ("q", "tau") for j in joints)])
    Path("panda.csv").write_text(f"{head}\n{row}\n")
    study, said = recognise_columns(study_of(path, "panda.csv"))
    fingers = {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}
    assert study.robot.locked == fingers
    assert study.log[0].columns == {"q": "q_joint*", "tau": "tau_joint*", "time": "stamp"}
    assert said == (
        ("columns", "q = q_joint*, tau = tau_joint*, time = stamp, by what they are called"),
        ("locked", "panda_finger_joint1, panda_finger_joint2 at 0, as the logs do not have them"),
    )
    # logs with other joints, and columns that are stated
    Path("other.csv").write_text(f"{head.replace('q_joint7', 'state')}\n{row}\n")
    for other in (
        study_of(path, "panda.csv", "other.csv"),
        study_of("arm.toml", "run.csv"),
    ):
        assert recognise_columns(other) == (other, ())
    stated = {"files": "panda.csv", "columns": {"q": "q_joint*"}}
    given = Study.model_validate({"robot": {"file": str(path), "locked": fingers}, "log": [stated]})
    assert recognise_columns(given) == (given, ())
    # flags mean the same; a study states it
    assert run(["identify", "--robot", str(path), "--log", "panda.csv"]) == 2
    said = capsys.readouterr().err
    assert "note: columns: q = q_joint*, tau = tau_joint*, time = stamp" in said
    assert "error: panda.csv: a time column needs two time stamps, found 1\n" in said
    Path("study.toml").write_text(f'[robot]\nfile = "{path}"\n[[log]]\nfiles = "panda.csv"\n')
    assert run(["identify", "study.toml"]) == 2
    assert "; dynident init writes a study that reads it" in capsys.readouterr().err


GRIPPER = """<robot name="gripper"><link name="base"/>
<link name="left"><inertial><mass value="0.4"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3"
 ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="right"><inertial><mass value="0.6"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3"
 ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="one" type="prismatic"><parent link="base"/><child link="left"/><axis xyz="0 1 0"/>
 <limit lower="-1" upper="1" effort="90" velocity="2"/></joint>
<joint name="two" type="prismatic"><parent link="base"/><child link="right"/><axis xyz="0 1 0"/>
 <limit lower="-1" upper="1" effort="90" velocity="2"/>
 <mimic joint="one" multiplier="-2" offset="0.01"/></joint></robot>"""


GEARED = "[transmission]\nreduction = [[100.0, 0.0], [0.0, {}]]\n"


@pytest.mark.parametrize("gear", [100.0, 50.0])
def test_columns_of_motors_are_put_in_order_where_gears_are_equal_alone(desk, gear):
    """Elsewhere another order is none of the joints' signals, and none is advised."""
    Path("geared.toml").write_text(toy.ARM + GEARED.format(gear))
    robot, gears = di.load_robot("geared.toml"), np.array([100.0, gear])
    log = di.read_log("run.csv", robot)
    q, tau = log.q * gears, (log.tau * [1.0, -1.0] / gears)[:, ::-1]
    motors = di.read_arrays(q, tau, rate=RATE, side="motor", robot=robot)
    (report,) = di.doctor(di.Problem(robot, di.prepare(motors, 10.0)))
    assert motors.of_motors
    assert not log.of_motors
    assert "in each other's columns" in report.findings[0].found
    assert (report.repair.order is not None) == (gear == 100.0)
    assert ("name them in the joints' order" in report.findings[-1].remedy) == (gear == 50.0)


def test_sides_of_the_gears_are_flags(desk, capsys):
    Path("geared.toml").write_text(toy.ARM + GEARED.format(50.0))
    rows = np.loadtxt("run.csv", delimiter=",", skiprows=1)[:90] * [1.0, 100.0, 50.0, 1.0, 1.0]
    head = "time,q_one,q_two,current_one,current_two"
    np.savetxt("motor.csv", rows, delimiter=",", header=head, comments="")
    tell(capsys, ["init", "geared.toml", "motor.csv", "--side", "q=motor", "--side", "tau=joint"])
    (log,) = read_study(Path("study.toml")).log
    assert log.side == {"q": "motor", "tau": "joint"}
    Path("study.toml").unlink()
    tell(capsys, ["init", "geared.toml", "motor.csv", "--side", "motor,joint"])
    (log,) = read_study(Path("study.toml")).log
    assert log.side == ("motor", "joint")


def test_a_joint_that_mimics_one_of_the_logs_follows_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("gripper.urdf").write_text(GRIPPER)
    t = np.arange(3000) / 200.0
    q, ddq = 0.1 * np.sin(3.0 * t), -0.9 * np.sin(3.0 * t)
    force = (0.4 + 0.6 * 2.0**2) * ddq + 3.0 * 0.3 * np.cos(3.0 * t)
    rows = np.column_stack([t, q, force])
    np.savetxt("run.csv", rows, delimiter=",", header="time,q_one,tau_one", comments="")
    out, _ = tell(capsys, ["init", "gripper.urdf", "run.csv"])
    assert "coupled     two follows one, as its file says (mimic)" in out
    assert "mimics" not in out
    study = read_study(Path("study.toml"))
    assert not study.robot.locked
    assert study.loop[0].joints == ("two", "one")
    assert study.loop[0].polynomial == (0.01, -2.0)
    assert di.run_study(study).identification[0].overall_percent < 0.1
    # nor does one that is logged without a torque, as of the simulated log of a coupled one
    for more, names in (([], ""), ([0.0 * t], ",tau_two")):
        table = np.column_stack([t, q, force, 0.01 - 2.0 * q, *more])
        head = f"time,q_one,tau_one,q_two{names}"
        np.savetxt("run.csv", table, delimiter=",", header=head, comments="")
        coupled, said = recognise_columns(study_of("gripper.urdf", "run.csv"))
        assert said == (("coupled", "two follows one, as its file says (mimic)"),)
        assert coupled.loop == study.loop
    # one with a torque has a drive
    table[:, -1] = 0.1
    np.savetxt("run.csv", table, delimiter=",", header=head, comments="")
    own, ((_, words),) = recognise_columns(study_of("gripper.urdf", "run.csv"))
    assert not own.loop
    assert words == (
        "two is taken as a joint of its own, though its file says that it follows one (mimic)"
    )
    Path("bad.urdf").write_text(GRIPPER.replace('"-2"', '"-2x"'))
    tell(capsys, ["init", "bad.urdf", "run.csv"], 2)


def test_a_joint_that_mimics_another_follows_it_in_a_robot_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("gripper.urdf").write_text(GRIPPER)
    out, err = tell(capsys, ["base", "gripper.urdf"])
    assert "count       4 base parameters" in out
    assert "note: coupled: two follows one, as its file says (mimic)" in err
    assert "mimics" not in err
    chosen, _ = choose_study(Path("gripper.urdf"), None, None, None)  # of excite and protocol
    assert chosen.loop[0].joints == ("two", "one")
    (text,) = render_run_studies(chosen, tmp_path, {"run": {}}).values()
    (tmp_path / "run").mkdir()
    Path("run/study.toml").write_text(text)
    assert read_study(Path("run/study.toml")).loop == chosen.loop
    # of one that is locked, where that is
    arm = '<joint name="arm" type="continuous"><parent link="right"/><child link="hand"/></joint>'
    more = f'<link name="hand"/>{arm}</robot>'
    Path("gripper.urdf").write_text(GRIPPER.replace("</robot>", more))
    chosen, said = choose_study(Path("gripper.urdf"), None, None, {"one": 0.1})
    assert said == ["coupled: two follows one, as its file says (mimic)"]
    assert chosen.robot.locked == {"one": 0.1, "two": 0.01 - 0.2}


def test_torques_that_are_not_clear_are_named(desk, capsys):
    table = pd.read_csv("run.csv")
    for joint in ("one", "two"):
        table[f"gravity_torque_{joint}"] = table[f"raw_tau_{joint}"] = table[f"tau_{joint}"]
    table.columns = [name.removeprefix("tau_") for name in table.columns]
    table = table.rename(columns={"one": "meas_tau_one", "two": "meas_tau_two"})
    table.to_csv("odd.csv", index=False)
    out, _ = tell(capsys, ["init", "arm.toml", "odd.csv"])
    told = " ".join(out.split())
    assert "torques of meas_tau_*, gravity_torque_*, raw_tau_* none is clearly what" in told
    assert "# torques     of meas_tau_*, gravity_torque_*" in Path("study.toml").read_text()
    tell(capsys, ["init", "arm.toml", "blind.csv", "-o", "none.toml"])
    assert "none is clearly" not in Path("none.toml").read_text()


def test_numbers_of_a_robot_with_branches_are_of_no_joint(desk):
    # Unitree's motors begin with the right leg in front, its robot file with the left one
    head = ",".join(["t", *(f"{signal}_{k}" for signal in ("q", "tau") for k in range(12))])
    Path("dog.csv").write_text(f"{head}\n" + ",".join(["0.1"] * 25) + "\n")
    study = study_of(urdf("go2"), "dog.csv")
    assert recognise_columns(study) == (study, ())


@pytest.mark.long
def test_a_first_study_of_other_names_runs(desk, capsys):
    text = Path("run.csv").read_text()
    text = text.replace("q_one,q_two", "pos_0,pos_1").replace("tau_one,tau_two", "torque0,torque1")
    Path("other.csv").write_text(text)
    out, _ = tell(capsys, ["init", "arm.toml", "other.csv"])
    assert out.startswith("columns     q = pos_*, tau = torque*, by what they are called\n")
    tell(capsys, ["init", "arm.toml", "run.csv", "-o", "usual.toml"])
    one, two = (di.run_study(read_study(Path(name))) for name in ("study.toml", "usual.toml"))
    np.testing.assert_array_equal(one.theta, two.theta)


def test_a_log_is_followed_by_other_names(desk, capsys):
    text = Path("run.csv").read_text().replace("q_one,q_two", "pos_0,pos_1")
    Path("other.csv").write_text(text.replace("tau_one,tau_two", "torque0,torque1"))
    out, err = tell(capsys, ["track", "other.csv", "--robot", "arm.toml"])
    assert err.startswith("note: columns: q = pos_*, tau = torque*, by what they are called\n")
    assert out == tell(capsys, ["track", "run.csv", "--robot", "arm.toml"]).out


def test_targets_that_the_log_has_under_another_name_are_asked_for_by_it(desk, capsys):
    log = pd.read_csv("blind.csv")
    log[["des_pos_1", "des_pos_2"]] = log[["q_one", "q_two"]]
    log.to_csv("asked.csv", index=False)
    told = tell(capsys, ["init", "arm.toml", "asked.csv"]).err
    assert "no torque, and its targets in columns (--columns 'qref=des_pos_*')" in told
    given = ["init", "arm.toml", "asked.csv", "--columns", "q=q_*", "-o", "new.toml"]
    assert "targets" not in tell(capsys, [*given, "--columns", "qref=des_pos_*"]).err


def test_the_law_of_position_servos_is_that_of_the_file(desk, capsys):
    Path("arm.xml").write_text(
        '<mujoco><compiler autolimits="true"/><worldbody><body><joint name="one"/>'
        '<inertial pos="0 0 0.1" mass="1" diaginertia="1 1 1"/></body></worldbody>'
        '<actuator><position joint="one" kp="40" kv="3"/></actuator></mujoco>'
    )
    time = np.arange(200) / RATE
    table = np.column_stack([time, np.sin(time), np.sin(time)])
    head = "time,q_one,qref_one"
    np.savetxt("blind.csv", table, delimiter=",", header=head, comments="")
    assert "[controller]" not in tell(capsys, ["init", "arm.xml", "blind.csv"]).err
    study = read_study(Path("study.toml"))
    assert study.identify.method == "cloe"
    assert study.controller is not None
    assert (study.controller.kind, study.controller.gains) == ("pd", "file")
    assert "its file has the law" in Path("study.toml").read_text()


def test_units_in_names_are_those_of_the_columns(desk, capsys):
    table = pd.read_csv("run.csv")
    table["time"] *= 1e3
    table[["q_one", "q_two"]] = np.degrees(0.1 * table[["q_one", "q_two"]])  # no more than radians
    table.to_csv("usual.csv", index=False)
    table.columns = ["stamp_ms", "pos1 [deg]", "pos2 [deg]", "tau1 [Nm]", "tau2 [Nm]"]
    table.to_csv("odd.csv", index=False)
    given = ["identify", "--robot", "arm.toml", "--bandwidth", "5", "--log"]
    usual = [*given, "usual.csv", "--units", "time=ms", "--units", "q=deg", "-o", "usual"]
    assert run([*given, "odd.csv", "-o", "odd"]) in (0, 1)
    out, said = capsys.readouterr()
    assert "note: columns: q = pos* [deg], tau = tau* [Nm], time = stamp_ms, by what" in said
    assert "odd.csv: q in deg; time in ms, as its columns say" in " ".join(out.split())
    assert run(usual) in (0, 1)
    one, two = (di.read_result(Path(name, "result.json")) for name in ("odd", "usual"))
    np.testing.assert_array_equal(one.theta, two.theta)


@pytest.mark.parametrize(
    ("column", "factor", "units", "said"),
    [
        ("q_one", 180.0 / np.pi, {"q": "deg"}, "units       q = deg, because odd.csv: q of one"),
        ("time", 1e9, {"time": "ns"}, "units       time = ns, because odd.csv, row 2, column 1"),
        long(
            "time", 1e6, {"time": "us"}, "units       time = us, because odd.csv: the time column"
        ),
        long("time", 1e3, {"time": "ms"}, "finding     time runs 1000 times as fast"),
        # since 1970, where all of them are large
        ("epoch", 1e9, {"time": "ns"}, "units       time = ns, because odd.csv, row 2, column 1"),
        long(
            "epoch", 1e6, {"time": "us"}, "units       time = us, because odd.csv, row 2, column 1"
        ),
        long(
            "epoch", 1e3, {"time": "ms"}, "units       time = ms, because odd.csv, row 2, column 1"
        ),
    ],
)
def test_units_are_recognised(desk, capsys, column, factor, units, said):
    table = pd.read_csv("run.csv")
    both = ["q_one", "q_two"] if column == "q_one" else ["time"]
    if column == "epoch":
        both, table["time"] = ["time"], table["time"] + 1.7e9
    table[both] = (table[both] + 1e3 * (factor == 1e9)) * factor
    table.to_csv("odd.csv", index=False)
    Path("arm.toml").write_text(
        toy.ARM.replace("[[joint]]", "[[joint]]\nlower = -170.0\nupper = 170.0")
    )
    out, _ = tell(capsys, ["init", "arm.toml", "odd.csv"])
    assert said in out
    assert [log.units for log in read_study(Path("study.toml")).log] == [units, units]
    assert di.doctor(read_study(Path("study.toml")))[0].units == {}


def test_of_a_robot_with_branches_init_is_not_said_to_read_numbers(desk, capsys):
    head = ",".join(["time", *(f"pos_{k}" for k in range(12)), *(f"tau_{k}" for k in range(12))])
    Path("legs.csv").write_text(f"{head}\n" + "\n".join([",".join(["0"] * 25)] * 60) + "\n")
    path = urdf("solo12")
    Path("legs.toml").write_text(f'[robot]\nfile = "{path}"\n[[log]]\nfiles = "legs.csv"\n')
    assert run(["identify", "legs.toml"]) == 2
    said = capsys.readouterr().err
    assert "no column 'q_" in said
    assert "dynident init" not in said
