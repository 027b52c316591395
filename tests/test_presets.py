"""Layouts of robots' own recorders: each one's log is read as what it is, and `init` says so."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import toy
from bags import State, write_bag

import dynident as di
from dynident.cli import run
from dynident.readers import read_tables
from dynident.readers.presets import PRESETS, UNITREE, find_layout
from dynident.study.fits import LogLayout, read_other_log
from dynident.study.study import (
    load_study_robot,
    parse_study,
    read_study,
    read_study_recording,
    recognise_layouts,
)

RATE = 125.0
COUNT = 400
JOINTS = ("one", "two")


@dataclass
class Written:
    """A log as a recorder writes it: its names, and by what its numbers are multiplied."""

    file: str
    names: dict[str, str]
    factors: dict[str, float] = field(default_factory=dict)
    first: int = 0
    delimiter: str = ","


DEGREES = dict.fromkeys(("q", "dq", "qref", "dqref"), 180.0 / np.pi)
LOGS = {
    "ur-rtde": Written(
        "robot_data.csv",
        {
            "time": "timestamp",
            "qref": "target_q_{n}",
            "q": "actual_q_{n}",
            "dq": "actual_qd_{n}",
            "current": "actual_current_{n}",
            "window": "actual_current_window_{n}",
        },
        delimiter=" ",
    ),
    "libfranka": Written(
        "log.csv",
        {
            "time": "time",
            "q": "state.q[{n}]",
            "qref": "state.q_d[{n}]",
            "dq": "state.dq[{n}]",
            "dqref": "state.dq_d[{n}]",
            "tau": "state.tau_J[{n}]",
            "other": "cmd.tau_J_d[{n}]",
        },
        {"time": 1e3},
        delimiter=", ",
    ),
    "kuka-fri": Written(
        "fri.csv",
        {
            "time": "__time",
            "q": "/lbr/state/measured_joint_position[{n}]",
            "tau": "/lbr/state/measured_torque[{n}]",
            "other": "/lbr/state/external_torque[{n}]",
        },
    ),
    "kuka-rsi": Written(
        "rsi.csv",
        {
            "time": "Receive.IPOC",
            "q": "Receive.AIPos.A{n}",
            "qref": "Receive.ASPos.A{n}",
            "current": "Receive.MaCur.A{n}",
        },
        {"time": 1e3, **DEGREES},
        first=1,
    ),
    "abb-egm": Written(
        "egm.csv",
        {
            "time": "TIMESTAMP",
            "q": "R_FB_POS_RJ{n}",
            "dq": "R_FB_VEL_RJ{n}",
            "qref": "R_PL_POS_RJ{n}",
            "other": "S_REF_POS_RJ{n}",
        },
        {"time": 1e3, **DEGREES},
        first=1,
    ),
    "unitree": Written(
        "go.csv",
        {
            "time": "__time",
            "q": "/lowstate/motor_state[{n}]/q",
            "dq": "/lowstate/motor_state[{n}]/dq",
            "tau": "/lowstate/motor_state[{n}]/tau_est",
            "qref": "/lowcmd/motor_cmd[{n}]/q",
        },
    ),
    "joint-state-csv": Written(
        "juggler.csv",
        {
            "time": "__time",
            "q": "/joint_states/{joint}/position",
            "dq": "/joint_states/{joint}/velocity",
            "tau": "/joint_states/{joint}/effort",
        },
    ),
}


@pytest.fixture
def motion(tmp_path, monkeypatch):
    """A two-joint arm in a folder of its own, and signals of it in SI units."""
    monkeypatch.chdir(tmp_path)
    Path("arm.toml").write_text(toy.ARM)
    q, dq, _ = toy.motion(2, COUNT / RATE, rate=RATE)
    tau = np.column_stack([30.0 * np.cos(q[:, 0]) + dq[:, 0], 9.0 * np.cos(q[:, 1]) + dq[:, 1]])
    signals = {"q": q, "dq": dq, "qref": q + 0.01, "dqref": dq + 0.01, "tau": tau}
    return {
        "time": np.arange(len(q)) / RATE,
        **signals,
        "current": tau,
        "other": 0.5 * tau,
        "window": 0 * q,
    }


def write(log: Written, motion) -> None:
    names, columns = [], []
    for signal, name in log.names.items():
        values = motion[signal] * log.factors.get(signal, 1.0)
        if values.ndim == 1:
            names, columns = [*names, name], [*columns, values]
            continue
        names += [name.format(n=k + log.first, joint=j) for k, j in enumerate(JOINTS)]
        columns += [*values.T]
    with Path(log.file).open("w") as file:
        file.write(log.delimiter.join(names) + "\n")
        for row in zip(*columns, strict=True):
            file.write(log.delimiter.join(f"{value:.15g}" for value in row) + "\n")


def study_of(file: str, more: str = "", robot: str = ""):
    Path("study.toml").write_text(
        f'[robot]\nfile = "arm.toml"\n{robot}\n[[log]]\nfiles = "{file}"\n{more}'
    )
    return read_study(Path("study.toml"))


@pytest.mark.parametrize("name", LOGS)
def test_a_recorders_log_is_read_as_what_it_is(name, motion):
    log = LOGS[name]
    write(log, motion)
    study, layouts = recognise_layouts(study_of(log.file))
    assert [each.preset for each in layouts] == [PRESETS[name]]
    robot = di.load_robot("arm.toml")
    recording = read_study_recording(study.log[0], robot, torque=False)
    assert recording.rate == pytest.approx(RATE)
    for signal in ("q", "dq", "qref", "dqref"):
        found = getattr(recording, signal)
        assert (found is not None) == (signal in log.names), signal
        if found is not None:
            np.testing.assert_allclose(found, motion[signal], atol=1e-9)
    effort = layouts[0].effort
    assert (recording.torque == "measured") == (effort is not None) == ("abb" not in name)
    if effort is not None:
        np.testing.assert_allclose(recording.tau, motion["tau"], atol=1e-9)
        assert study.robot.rotor is (False if effort.link_side else None)


@pytest.mark.parametrize("name", LOGS)
def test_a_preset_that_is_stated_is_what_init_recognises(name, motion, caplog):
    write(LOGS[name], motion)
    with caplog.at_level("INFO", "dynident"):
        stated = study_of(LOGS[name].file, f'preset = "{name}"\n')
    recognised, (layout,) = recognise_layouts(study_of(LOGS[name].file))
    assert stated == recognised
    assert stated.log[0].preset is None
    told = " ".join(caplog.messages)
    assert all(words in told for _, words in layout.words)
    for own in stated.log[0].columns.values():
        assert (own if isinstance(own, str) else own[-1]) in told
    assert recognise_layouts(stated) == (stated, ())


def test_what_a_study_states_goes_before_its_preset(motion):
    write(LOGS["abb-egm"], motion)
    own = 'preset = "abb-egm"\ncolumns = { qref = "S_REF_POS_RJ*" }\nunits = { dq = "rad/s" }\n'
    (log,) = study_of("egm.csv", own).log
    assert log.columns["qref"] == "S_REF_POS_RJ*"
    assert log.columns["q"] == ("R_FB_POS_RJ1", "R_FB_POS_RJ2")
    assert log.units == {"time": "ms", "q": "deg", "dq": "rad/s"}  # a stated column has its own
    write(LOGS["libfranka"], motion)
    both = study_of("log.csv", 'preset = "libfranka"\n', "rotor = true")
    assert both.robot.rotor is True
    tau = ("cmd.tau_J_d[0]", "cmd.tau_J_d[1]")
    columns = f"columns = {{ tau = {[*tau]} }}\n"
    other = study_of("log.csv", f'preset = "libfranka"\n{columns}')
    assert other.log[0].columns["tau"] == tau
    assert other.robot.rotor is None  # what is stated is not known to be behind the gears


def test_joints_that_are_locked_need_no_columns_of_a_preset(motion, caplog):
    write(LOGS["ur-rtde"], motion)
    given = ["--robot", "arm.toml", "--log", "robot_data.csv", "--preset", "ur-rtde"]
    with caplog.at_level("INFO", "dynident"):
        assert run(["identify", *given, "--locked", "two", "--write-study", "out.toml"]) == 0
    assert "ur-rtde: effort: motor currents in A" in " ".join(caplog.messages)
    (log,) = read_study(Path("out.toml")).log
    assert log.preset is None
    assert log.columns["q"] == ("actual_q_0",)
    assert log.columns["current"] == ("actual_current_0",)
    assert log.columns["time"] == "timestamp"


def test_published_torque_constants_are_of_the_robot_that_is_named_and_of_currents(caplog, motion):
    rows = "".join(
        f'[[joint]]\nname = "j{k}"\na = 0.1\ninertial = {{ mass = 1.0, com = [0.1, 0.0, 0.0] }}\n'
        for k in range(6)
    )
    q = np.column_stack([motion["q"]] * 3)
    names = [f"{kind}_{k}" for kind in ("actual_q", "actual_current") for k in range(6)]
    table = np.column_stack([motion["time"], q, np.sin(q)])
    np.savetxt("ur.csv", table, delimiter=",", header=",".join(["timestamp", *names]), comments="")

    def read(name, more=""):
        Path("arm.toml").write_text(f'name = "{name}"\nconvention = "modified"\n{rows}')
        return study_of("ur.csv", 'preset = "ur-rtde"\n', more)

    with caplog.at_level("INFO", "dynident"):
        study = read("UR5", "locked = { j5 = 0.0 }")
    assert [drive.joint for drive in study.robot.drive] == [f"j{k}" for k in range(5)]
    gains = [drive.gain for drive in study.robot.drive]
    assert gains == pytest.approx([13.635, 13.7461, 13.6855, 9.6657, 8.7365])
    assert "gains: 13.64, 13.75, 13.69, 9.67, 8.74, 9.02 Nm/A" in " ".join(caplog.messages)
    assert "doi 10.3390/robotics10030083" in " ".join(caplog.messages)
    recording = read_study_recording(study.log[0], load_study_robot(study))
    np.testing.assert_allclose(recording.tau, np.sin(q[:, :5]) * gains, atol=1e-9)
    assert read("ur5e").robot.drive == ()
    assert len(read("ur5").robot.drive) == 6
    Path("study.toml").write_text(
        '[robot]\nfile = "arm.toml"\n[[robot.drive]]\njoint = "j0"\ngain = 2.0\n'
        '[[log]]\nfiles = "ur.csv"\npreset = "ur-rtde"\n'
    )
    assert [drive.gain for drive in read_study(Path("study.toml")).robot.drive] == [2.0]


def test_presets_that_are_not_known_or_do_not_fit_are_refused(motion, capsys):
    write(LOGS["ur-rtde"], motion)
    with pytest.raises(di.InputError, match=r"'ur-rdte'.*did you mean 'ur-rtde'"):
        study_of("robot_data.csv", 'preset = "ur-rdte"\n')
    with pytest.raises(
        di.InputError, match=r"robot_data.csv: has no positions as preset 'abb-egm'"
    ):
        study_of("robot_data.csv", 'preset = "abb-egm"\n')
    bare = parse_study(Path("study.toml"))
    with pytest.raises(di.InputError, match=r"preset is filled in by dynident\.read_study"):
        di.run_study(bare)
    assert run(["doctor", "study.toml", "--preset", "ur-rtde"]) == 2
    assert "--preset: study.toml has logs of its own" in capsys.readouterr().err


USUAL = Written("run.csv", {s: f"{s}_{{joint}}" for s in ("q", "tau", "qref")} | {"time": "time"})


def test_a_log_beside_a_result_has_a_preset_of_its_own(motion, caplog):
    """Instead of columns and units of the result's log; joints that are locked are numbered."""
    write(LOGS["abb-egm"], motion)
    write(replace(USUAL, names={**USUAL.names, "q": "x_{joint}"}), motion)
    for locked in ({}, {"one": 0.0}):
        own = 'columns = { q = ["x_one", "x_two"] }\nunits = { tau = "Nmm" }\n'
        study = study_of("run.csv", own)
        robot = di.load_robot("arm.toml", locked=locked)
        layout = {"preset": "abb-egm"}
        with caplog.at_level("INFO", "dynident"):
            samples = read_other_log(
                study, robot, ["egm.csv"], LogLayout(layout, {"bandwidth": 10.0}), torque=False
            )
        expected = di.prepare(di.read_arrays(motion["q"], motion["tau"], rate=RATE), 10.0)
        joints = [j for j in range(2) if JOINTS[j] not in locked]
        np.testing.assert_allclose(samples.q, expected.q[:, joints], atol=1e-9)
        assert "ABB's EGM" in " ".join(caplog.messages)


def test_factors_are_collected_of_a_recorders_logs(motion):
    write(LOGS["libfranka"], motion)
    assert run(["collect", "arm.toml", "log.csv", "--preset", "libfranka", "-o", "made"]) == 0
    fit = di.identify_factors("made", "wls")
    assert fit.robot.name == "arm"
    assert not fit.idim.rotor  # torque is measured behind the gears
    assert fit.study.log[0].preset is None
    assert fit.study.log[0].units == {"time": "ms"}


def test_a_stream_has_a_preset(motion, monkeypatch, capsys):
    write(LOGS["libfranka"], motion)
    Path("study.toml").write_text('[robot]\nfile = "arm.toml"\n')
    flags = ["--study", "study.toml", "--preset", "libfranka", "--sigma", "1", "--every", "0.5"]
    told = []
    for source in ("log.csv", "-"):
        with Path("log.csv").open() as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            assert run(["track", source, *flags]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert len(told[0].splitlines()) > 4
    assert run(["track", "-", "--robot", "arm.toml", "--preset", "libfranka"]) == 2
    assert "give --study or --start instead of --robot" in capsys.readouterr().err


def test_what_a_driver_estimates_as_torque_comes_before_its_currents(motion):
    names = LOGS["ur-rtde"].names
    both = Written("both.csv", {**names, "tau": "actual_current_as_torque_{n}"})
    write(both, {**motion, "current": 0.1 * motion["current"]})
    study, (layout,) = recognise_layouts(study_of("both.csv"))
    assert layout.effort.signal == "tau"
    assert "current" not in study.log[0].columns
    assert any("target_moment" in words for _, words in layout.words)


def test_joints_are_found_by_name_where_a_recorder_numbers_them():
    legs = ("FL", "FR", "RL", "RR")
    joints = [f"{leg}_{part}_joint" for leg in legs for part in ("hip", "thigh", "calf")]
    names = [f"/lowstate/motor_state[{k}]/q" for k in range(20)]
    layout = find_layout(names, joints)
    for joint, column in zip(joints, layout.columns["q"], strict=True):
        number = int(column.partition("[")[2].partition("]")[0])
        assert joint.startswith(UNITREE[number])
    human = find_layout(names, ["left_hip", "left_knee"])
    assert human.columns["q"] == tuple(names[:2])


def test_a_log_that_is_no_recorders_is_left_alone(motion):
    table = np.column_stack([motion["time"], motion["q"], motion["tau"]])
    np.savetxt(
        "run.csv", table, delimiter=",", header="time,q_one,q_two,tau_one,tau_two", comments=""
    )
    study = study_of("run.csv")
    assert recognise_layouts(study) == (study, ())
    assert find_layout(["actual_q_0"], JOINTS) is None  # not of all joints
    assert find_layout(["my_actual_q_0", "my_actual_q_1"], JOINTS) is None  # another's name


def test_columns_that_are_stated_stay(motion):
    write(LOGS["ur-rtde"], motion)
    study = study_of("robot_data.csv")
    own = {"q": "target_q_*", "tau": "actual_current_0"}
    stated = study.model_copy(update={"log": (study.log[0].model_copy(update={"columns": own}),)})
    assert recognise_layouts(stated) == (stated, ())


def test_a_dataset_of_lerobot_has_lists(motion):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    lists = arrow.list_(arrow.float32())
    fixed = arrow.list_(arrow.float32(), 2)
    table = arrow.table(
        {
            "observation.state": arrow.array((motion["q"] * 180.0 / np.pi).tolist(), lists),
            "action": arrow.array((motion["qref"] * 180.0 / np.pi).tolist(), fixed),
            "timestamp": arrow.array(motion["time"]),
            "task": arrow.array(["pick"] * len(motion["time"])),
        }
    )
    parquet.write_table(table, "episode_000000.parquet")
    (read,) = read_tables(Path("episode_000000.parquet"))
    assert read.titles[:4] == tuple(
        f"{s}_{k}" for s in ("observation.state", "action") for k in (1, 2)
    )
    assert [name for name, _ in read.skipped] == ["task"]
    study, (layout,) = recognise_layouts(study_of("episode_000000.parquet"))
    assert layout.preset is PRESETS["lerobot"]
    recording = read_study_recording(study.log[0], di.load_robot("arm.toml"), torque=False)
    np.testing.assert_allclose(recording.q, motion["q"], atol=1e-5)
    np.testing.assert_allclose(recording.qref, motion["qref"], atol=1e-5)


def test_a_bag_of_joint_states_says_what_effort_may_be(motion):
    rows = zip(motion["time"], motion["q"], motion["tau"], strict=True)
    states = [State("/joint_states", t, JOINTS, q, (), tau) for t, q, tau in rows]
    bag = write_bag(Path("run"), "mcap", states)
    study, (layout,) = recognise_layouts(study_of(bag.name))
    assert layout.preset is PRESETS["joint-state"]
    assert study.log[0].columns is None  # its names are found without being told
    assert "[A]" in dict(layout.words)["effort"]


def test_init_says_what_it_recognised_and_writes_it(motion, capsys):
    write(LOGS["abb-egm"], motion)
    assert run(["init", "--robot", "arm.toml", "--log", "egm.csv", "-o", "mine.toml"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith(
        "layout ABB's EGM, by the logger of abb_libegm (abb_libegm, egm_logger.cpp)"
    )
    assert "effort EGM has no torques: fit positions (method cloe)" in out
    text = Path("mine.toml").read_text()
    assert "# layout      ABB's EGM" in text
    (log, held) = read_study(Path("mine.toml")).log
    assert log.columns == held.columns
    assert log.columns["q"] == ("R_FB_POS_RJ1", "R_FB_POS_RJ2")
    assert log.units == {"time": "ms", **dict.fromkeys(("q", "dq", "qref"), "deg")}


def test_a_refused_log_says_whose_it_looks_like(motion, capsys):
    write(LOGS["libfranka"], motion)
    assert run(["identify", "--robot", "arm.toml", "--log", "log.csv"]) == 2
    words = "they look like libfranka's logToCSV: {} reads them"
    assert words.format("--preset libfranka") in capsys.readouterr().err
    Path("study.toml").write_text('[robot]\nfile = "arm.toml"\n[[log]]\nfiles = "log.csv"\n')
    assert run(["identify", "study.toml"]) == 2
    assert words.format("preset = 'libfranka'") in capsys.readouterr().err


def test_the_guide_has_every_layout():
    page = (Path(__file__).parents[1] / "docs" / "logs.md").read_text()
    for name, preset in PRESETS.items():
        assert f"| `{name}` | {preset.called} |" in page
        assert (
            preset.columns["q"].replace("{n}", str(preset.first)).replace("{joint}", "<joint>")
            in page
        )
