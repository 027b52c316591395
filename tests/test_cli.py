"""The command line: what it refuses and how, what it prints and what it writes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pinocchio as pin
import pytest
import toy
from commands import ask, tell
from tables import write_joints, write_table
from thin import first, long

import dynident as di
from dynident.cli import COMMANDS, run
from dynident.cli.excite import choose_study
from dynident.core.errors import InputError
from dynident.core.inertia import from_com, to_pseudo_inertia
from dynident.diagnosis.examine import Finding
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.export.urdf import render_urdf
from dynident.fit.doctor import Report
from dynident.live.lines import MessageLines
from dynident.live.messages import EstimateRow
from dynident.recording.repairs import LogRepair
from dynident.robot import load_robot
from dynident.study import run as facade

RATE = 500.0
ARM = ["--robot", "arm.urdf", "--log", "a.csv"]
FLAGS = [*ARM, "--bandwidth", "5"]
LOG = ["--robot", "arm.urdf", "--log", "l.csv"]
STUDY = """[robot]
file = "arm.urdf"
[[log]]
files = "a.csv"
[prepare]
bandwidth = 5.0
"""


def write_log(path: Path, seed: int = 0, change=None) -> None:
    robot = toy.arm(2)
    idim = build_idim(robot)
    q, dq, ddq = toy.motion(2, 4.0, seed, RATE)
    tau = idim.torque(toy.true_parameters(idim, robot.nominal), q, dq, ddq)
    tau += np.random.default_rng(seed + 1).normal(size=tau.shape) * 0.3
    if change is not None:
        q, tau = change(q, tau)
    write_joints(path, robot.joint_names, RATE, q=q, tau=tau)


@pytest.fixture(scope="module")
def stocked(tmp_path_factory) -> Path:
    """A directory with a robot, two logs, a study and stored results."""
    place = tmp_path_factory.mktemp("cli")
    robot = toy.arm(2)
    document, _ = render_urdf(robot, robot.nominal)
    (place / "arm.urdf").write_bytes(document)
    bare = re.sub(rb"\s*<inertial>.*?</inertial>", b"", document, flags=re.S)
    (place / "bare.urdf").write_bytes(bare)
    for name, seed in (("a.csv", 0), ("b.csv", 5)):
        write_log(place / name, seed)
    write_log(place / "still.csv", change=lambda q, tau: (0.0 * q + 0.1, tau))
    write_log(place / "zero.csv", change=lambda q, tau: (q, 0.0 * tau))
    (place / "s.toml").write_text(STUDY)
    (place / "a_directory").mkdir()
    before = Path.cwd()
    os.chdir(place)
    try:
        for method in ("pc-idim-ls", "wls"):
            held_out = ["--validate", "b.csv", "--method", method, "-o", f"out-{method}"]
            assert run(["identify", *FLAGS, *held_out]) == 0
    finally:
        os.chdir(before)
    return place


@pytest.fixture
def place(stocked, monkeypatch, capfd) -> Path:
    """The stocked directory as the current one; nothing printed so far."""
    monkeypatch.chdir(stocked)
    capfd.readouterr()
    return stocked


@pytest.fixture
def refused(place, capfd):
    """A function that runs a command, and returns the reason of its refusal: it has some words."""

    def check(argv: list[str], *words: str, code: int = 2) -> str:
        before = listing(place)
        assert run(argv) == code
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("error: ")
        assert err.endswith("\n")
        assert err.count("\n") == 1, err
        assert "Traceback" not in err
        assert listing(place) == before
        for word in words:
            assert word in err
        return err

    return check


def listing(place: Path) -> dict[str, int]:
    found = {str(p.relative_to(place)): p for p in place.rglob("*")}
    return {name: p.stat().st_mtime_ns if p.is_file() else 0 for name, p in found.items()}


# joints that are not in the log


@pytest.mark.long
def test_a_joint_without_columns_may_be_locked(stocked, monkeypatch, capsys):
    monkeypatch.chdir(stocked)
    first, second = toy.arm(2).joint_names
    table = np.loadtxt("a.csv", delimiter=",", skiprows=1)[:, [0, 1, 3]]
    write_table("one.csv", ["time", f"q_{first}", f"tau_{first}"], table)
    argv = ["identify", "--robot", "arm.urdf", "--log", "one.csv", "--bandwidth", "5", "--json"]
    said = tell(capsys, argv).err
    assert f"note: locked: {second} at 0, as the logs do not have them\n" in said
    found = ask(capsys, [*argv, "--locked", f"{second}=0.3"])
    assert found["robot"]["joints"] == [first]
    assert found["settings"]["study"]["robot"]["locked"] == {second: 0.3}
    assert run(["doctor", *argv[1:], "--locked", second]) == 0
    assert ask(capsys, ["base", "arm.urdf", "--locked", second])["robot"]["joints"] == [first]
    text = STUDY.replace("a.csv", "one.csv")
    Path("one.toml").write_text(text)
    reason = tell(capsys, ["identify", "one.toml"], code=2).err
    assert f"no column 'q_{second}' for q" in reason
    assert f"if {second} did not move, lock it (--locked {second}, or locked = " in reason
    assert run(["identify", "one.toml", "--json", "--locked", second]) == 0
    locked = text.replace("[[log]]", f"locked = {{ {second} = 0.3 }}\n[[log]]")
    Path("two.toml").write_text(locked)
    assert ask(capsys, ["identify", "two.toml"])["base_count"] == found["base_count"]
    for name in ("one.csv", "one.toml", "two.toml"):
        Path(name).unlink()


def test_doctor_and_sample_tell_what_reading_logs_warns_of(place, capfd):
    lines = Path("a.csv").read_text().splitlines()
    Path("lost.csv").write_text("\n".join(lines[:600] + lines[680:]))
    words = "lost.csv: 1 gap in time"
    logs = ["--robot", "arm.urdf", "--log", "lost.csv", "--bandwidth", "5"]
    drawn = ["sample", "out-pc-idim-ls/result.json", "-n", "3", "--log", "lost.csv"]
    for argv in (["doctor", *logs], drawn):
        assert f"warning: {words}" in tell(capfd, argv).err
    (report,) = ask(capfd, ["doctor", *logs])
    (inside,) = ask(capfd, drawn)["calibration"]
    assert report["warnings"][0].startswith(words)
    assert inside["warnings"] == report["warnings"]


def test_base_has_the_rotors_that_were_asked_for_with_logs_too(place, capfd):
    given = ["base", "arm.urdf", "--log", "a.csv", "--bandwidth", "5"]
    for more, rotors in (([], True), (["--rotor"], True), (["--no-rotor"], False)):
        assert ("Ia" in tell(capfd, [*given, *more]).out) == rotors
    assert "Ia" in tell(capfd, ["base", "arm.urdf", "--friction", "none", "--rotor"]).out


def test_locked_joints_of_a_study_stay_locked(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text('[robot]\nfile = "arm.urdf"\nlocked = { a = 0.3, b = 0.1 }\n')
    chosen, _ = choose_study(None, path, None, {"b": 0.2, "c": 0.0})
    assert chosen.robot.locked == {"a": 0.3, "b": 0.2, "c": 0.0}
    assert choose_study(None, path, "viscous", None)[0].robot.locked == {"a": 0.3, "b": 0.1}


@pytest.mark.parametrize(
    ("locked", "words"),
    [
        (["elbw"], "locked"),
        (["joint=up"], "--locked joint=up: 'up' is not a number"),
        (["a,,b"], "has an empty name"),
        (["1=nan"], "locked"),
        (["1,2"], "locked leaves no moving joint"),
    ],
)
def test_what_cannot_be_locked_is_refused(refused, locked, words):
    for argv in (["base", "arm.urdf"], ["identify", *ARM], ["identify", "s.toml"]):
        assert words in refused([*argv, *(text for one in locked for text in ("--locked", one))])


# usage


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["identfy"], ("identfy", "'identify'")),
        (["--nope"], ("--nope",)),
        (["identify"], ("study", "--robot", "--log")),
        (["identify", "s.toml", "t.toml"], ("t.toml", "identify --help")),
        (["identify", "s.toml", "--robot", "arm.urdf"], ("either a study",)),
        (["identify", "s.toml", "--log", "a.csv"], ("either a study",)),
        (["identify", "s.toml", "--rate", "100"], ("either a study", "--rate")),
        (["identify", "--robot", "arm.urdf"], ("--log",)),
        (["identify", "--log", "a.csv"], ("--robot",)),
        (["identify", "--robot"], ("--robot", "argument")),
        (["identify", *ARM, "--bandwith", "5"], ("--bandwith", "--bandwidth")),
        (["identify", *ARM, "--bandwidth", "abc"], ("--bandwidth is 'abc' but should", "number")),
        (["identify", "d\udce9.toml"], ("UTF-8",)),
        (["base"], ("ROBOT", "base --help")),
        (["base", "arm.urdf", "x"], ("(x)",)),
        (["base", "arm.urdf", "--friction", "coulmb"], ("'coulmb'", "coulomb-viscous")),
        (["validate"], ("RESULT.json",)),
        (["validate", "out-wls/result.json"], ("LOG",)),
        (["export"], ("RESULT.json",)),
        (["export", "out-wls/result.json"], ("--urdf",)),
        (["export", "out-wls/result.json", "--urdf", "x.urdf", "--repiar"], ("--repair",)),
        (["repair"], ("ROBOT", "repair --help")),
        (["repair", "arm.urdf", "x"], ("(x)",)),
        (["repair", "arm.urdf", "--metrc", "x"], ("--metrc", "--metric")),
        (["identify", *ARM, "--consistncy", "base"], ("--consistncy", "--consistency")),
        (["identify", *ARM, "--bootstrap", "2.5"], ("--bootstrap is '2.5' but", "integer")),
    ],
)
def test_usage_is_refused(refused, argv, words):
    refused(argv, *words)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--bandwidth", value) for value in ("0", "-1", "nan", "inf", "-inf", "1e999")]
    + [("--rate", "0")],
)
def test_numbers_have_to_be_positive_and_finite(refused, option, value):
    refused(["identify", *ARM, option, value], option, "not a positive number")


@pytest.mark.parametrize(
    ("value", "words"),
    [("0", "greater than 0"), ("-1", "greater than 0"), ("nan", "finite number")],
)
def test_options_of_the_methods_are_refused_by_their_key(refused, value, words):
    refused(
        ["identify", *ARM, "--lowpass", value],
        f"error: --lowpass is {float(value)} but should be",
        words,
    )


@pytest.mark.parametrize(
    "argv", [["validate", "{}", "one.csv"], ["payload", "{}", "--log", "one.csv"]]
)
def test_a_stored_result_has_no_joints_to_be_locked(refused, stocked, argv):
    first, second = toy.arm(2).joint_names
    table = np.loadtxt(stocked / "a.csv", delimiter=",", skiprows=1)[:, [0, 1, 3]]
    write_table(stocked / "one.csv", ["time", f"q_{first}", f"tau_{first}"], table)
    reason = refused([word.format("out-wls/result.json") for word in argv])
    (stocked / "one.csv").unlink()
    assert f"if {second} did not move, take a result with it locked" in reason
    assert "--locked" not in reason


@pytest.mark.parametrize("value", ["-1", "inf"])
def test_validate_has_the_same_idea_of_a_low_pass(refused, value):
    reason = refused(["validate", "out-wls/result.json", "b.csv", "--lowpass", value])
    assert f"'--lowpass': {value} is not a positive number" in reason


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "pc-idm-ls"], ("method", "'pc-idim-ls'")),
        (["--method", ""], ("method",)),
        (["--friction", "coulomb-viscos"], ("friction", "'coulomb-viscous'")),
        (["--method", "ols", "--prior", "none"], ("ols", "'prior'", "pc-idim-ls")),
        (["--metric", ""], ("--metric",)),
        (["--method", "irls", "--loss", "hubert"], ("--loss", "'huber'")),
        (["--method", "wls", "--essential", "ratios"], ("--essential", "'ratio'")),
        (["--consistency", "base", "--prior", "nominal"], ("'base'", "leave the prior out")),
        (["--prior-weight", ""], ("--prior-weight",)),
        (["--bootstrap", "1"], ("--bootstrap", "is 1: at least 20")),
        (["--bootstrap", "99999999999"], ("--bootstrap", "99999999999")),
        (["--method", "wls", "--workers", "2"], ("wls has no repetitions", "smooth, ga, pf, pc-*")),
        (["--workers", "0"], ("--workers", "0 is not from 1 to 256")),
        (["--engine", "dask"], ("engine dask needs a scheduler",)),
        (["--scheduler", "tcp://h:1"], ("needs engine dask",)),
        (["--method", "pc-idim-iv"], ("pc-idim-iv", "[controller]")),
        (["--method", "pc-didim"], ("pc-didim", "[controller]")),
        (["--method", "pc-clie"], ("pc-clie", "[controller]")),
    ],
)
def test_names_are_refused_with_the_nearest(refused, options, words):
    refused(["identify", *FLAGS, *options], *words)


@pytest.mark.parametrize(
    "command",
    [
        "identify", "compare", "select", "base", "validate", "report", "export", "repair", "replay",
        "payload", "sample",
    ],
)  # fmt: skip
def test_help_of_every_command_has_an_example(capfd, command):
    out, err = tell(capfd, [command, "--help"])
    assert f"Example: dynident {command}" in out
    assert err == ""


def test_nothing_and_a_short_flag_show_help(capfd):
    assert run([]) == 0
    pages = [capfd.readouterr()]
    assert run(["-h"]) == 0
    pages.append(capfd.readouterr())
    assert pages[0] == pages[1]
    assert pages[0].out.startswith("Usage: dynident")


def test_help_has_flags_in_groups_and_those_of_methods_on_request(capfd):
    short = tell(capfd, ["identify", "-h"]).out
    titles = re.findall(r"^([A-Z][a-z ]+):$", short, re.M)
    assert titles == ["Arguments", "Robot and logs", "Preparation", "Method", "Output", "Options"]
    assert "--bootstrap" not in short
    assert "every method" not in short.lower()
    assert short.startswith("Usage: dynident identify [OPTIONS] [STUDY.toml]\n")
    whole = tell(capfd, ["identify", "--help-methods"]).out
    assert not re.search("[<{]|TEXT", whole)  # no type of the parser
    headings = re.findall(r"^(Of [^:]+):$", whole, re.M)
    assert len(headings) == len(set(headings)) > 5
    assert all(len(line) <= 80 for line in whole.splitlines())
    assert "--bootstrap N" in whole
    assert "--torque-std X[,X...]" in whole


def test_help_and_version(capfd):
    out = tell(capfd, ["--help"]).out
    assert "Example: dynident identify" in out
    commands = re.findall(r"^  (\w+)  ", out.partition("Commands:")[2], re.M)
    expected = [
        "identify",
        "collect",
        "fleet",
        "compare",
        "sweep",
        "doctor",
        "init",
        "select",
        "excite",
        "resonance",
        "protocol",
        "base",
    ]
    expected += ["validate", "diff"]
    expected += [
        "report",
        "export",
        "payload",
        "repair",
        "replay",
        "sample",
        "simulate",
        "zoo",
        "reproduce",
        "track",
    ]
    assert commands == expected
    assert "..." not in out.partition("Commands:")[2]  # each is told whole on its line
    assert re.fullmatch(r"dynident \d+\.\d+\.\d+\n", tell(capfd, ["--version"]).out)


# files that cannot be used


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["identify", "no.toml"], ("no.toml",)),
        (["identify", "a_directory"], ("a_directory",)),
        (["identify", "arm.urdf"], ("arm.urdf: is a robot, not a study",)),
        (["identify", "a.csv"], ("a.csv: is a log, not a study",)),
        (["identify", "--robot", "no.urdf", "--log", "a.csv"], ("no.urdf",)),
        (["identify", "--robot", "a.csv", "--log", "a.csv"], ("a.csv", ".urdf, .toml")),
        (["identify", "--robot", "arm\nx.urdf", "--log", "a.csv"], ("--robot", "no name")),
        (["identify", "--robot", "x" * 400 + ".urdf", "--log", "a.csv"], ("name too long",)),
        (["identify", "--robot", "arm.urdf", "--log", "no.csv"], ("no.csv",)),
        (["identify", "--robot", "arm.urdf", "--log", "x" * 400 + ".csv"], ("name too long",)),
        (["identify", "--robot", "arm.urdf", "--log", "a_directory"], ("a_directory", ".csv")),
        (["identify", "--robot", "arm.urdf", "--log", "a.csv,"], ("--log",)),
        (["identify", "--robot", "arm.urdf", "--log", "a.csv,b.csv"], ("'q_joint_1' twice",)),
        (["identify", *FLAGS, "--validate", "no.csv"], ("no.csv",)),
        (["identify", *FLAGS, "--validate", "s.toml"], ("s.toml", ".csv")),
        (["base", "no.urdf"], ("no.urdf",)),
        (["base", "s.toml"], ("s.toml", "a study, not a robot")),
        (["base", "arm.urdf", "--by", "srd"], ("--by", "'srd'", "svd")),
        (["base", "arm.urdf", "--by", "qr", "--symbols"], ("--by", "--symbols")),
        (["base", "arm.urdf", "--log", "a.csv", "--study", "s.toml"], ("--study", "--log")),
        (["base", "arm.urdf", "--log", "a.csv", "--by", "qr"], ("--log", "--by")),
        (["base", "arm.urdf", "--symmetries", "--by", "qr"], ("--by", "--symmetries")),
        (["base", "arm.urdf", "--bandwidth", "5"], ("--bandwidth", "--log")),
        (["base", "arm.urdf", "--preset", "ur-rtde"], ("--preset", "--log")),
        (["base", "arm.urdf", "--log", "no.csv"], ("no.csv",)),
        (["base", "bare.urdf", "--study", "s.toml"], ("s.toml", "arm.urdf", "bare.urdf")),
        (["validate", "no.json", "a.csv"], ("no.json",)),
        (["validate", "arm.urdf", "a.csv"], ("arm.urdf", "not JSON")),
        (
            ["validate", "out-wls", "a.csv"],
            ("out-wls: is a directory; give the result.json in it",),
        ),
        (["validate", "out-wls/result.json", "b.csv", "no.csv"], ("no.csv",)),
        (["validate", "out-wls/result.json", "a.csv,b.csv"], ("1 files side by side",)),
        (["export", "no.json", "--urdf", "o.urdf"], ("no.json",)),
        (["export", "out-wls/result.json", "--urdf", "o.urdf"], ("base parameters only", "wls")),
        (["repair", "no.urdf"], ("no.urdf",)),
        (["repair", "a.csv"], ("a.csv", ".urdf, .toml")),
        (["repair", "s.toml"], ("s.toml", "a study, not a robot")),
        (["repair", "a_directory"], ("a_directory",)),
    ],
)
def test_files_are_refused_by_name(refused, argv, words):
    refused(argv, *words)


def edited(change) -> str:
    lines = Path("a.csv").read_text().splitlines()
    return "\n".join(change(lines))


def with_cell(text: str):
    def change(lines: list[str]) -> list[str]:
        cells = lines[700].split(",")
        cells[1] = text
        return [*lines[:700], ",".join(cells), *lines[701:]]

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines[:50], ("49 samples; at least 50 are needed",)),
        (lambda lines: lines[:201], ("200 samples", "too short", "10 Hz")),
        (lambda lines: [*lines[:500], "1,2", *lines[500:]], ("row 501", "2 columns")),
        (lambda lines: [line.partition(",")[2] for line in lines], ("no time column", "rate")),
        (lambda lines: [line.rpartition(",")[0] for line in lines], ("'tau_joint_2'",)),
        (with_cell("nan"), ("row 701, column 2 (q_joint_1)", "finite")),
        (with_cell(""), ("row 701, column 2 (q_joint_1)", "nan", "--bad-rows cut")),
        (with_cell("abc"), ("row 701, column 2 (q_joint_1)", "'abc'")),
        (with_cell("0x10"), ("row 701, column 2 (q_joint_1)", "'0x10'")),
    ],
)
def test_logs_are_refused_with_the_place(refused, place, change, words):
    Path("l.csv").write_text(edited(change))
    refused(
        ["identify", "--robot", "arm.urdf", "--log", "l.csv", "--bandwidth", "5"], "l.csv", *words
    )


def in_microseconds(lines: list[str]) -> list[str]:
    cells = [line.split(",", 1) for line in lines[1:]]
    return [lines[0], *(f"{1e6 * float(t):.9g},{rest}" for t, rest in cells)]


def turned(rows: list[str]) -> list[str]:
    """Rows with their angles in degrees."""
    cells = [row.split(",") for row in rows]
    return [
        ",".join([t, *(f"{57.29578 * float(x):.9g}" for x in (a, b)), *r]) for t, a, b, *r in cells
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "flags",
    [
        ["--columns", "q=x_*", "--columns", "time=clock"],
        ["--columns", "q=2,3", "--columns", "time=1"],
    ],
)
def test_foreign_columns_and_units_are_named_by_flags(place, capfd, flags):
    own = ask(capfd, ["identify", *FLAGS])
    head, *rows = Path("a.csv").read_text().splitlines()
    head = head.replace("q_", "x_").replace("time", "clock")
    Path("foreign.csv").write_text("\n".join([head, *turned(rows)]))
    argv = ["--robot", "arm.urdf", "--log", "foreign.csv", *flags, "--units", "q=deg"]
    found = ask(capfd, ["identify", *argv, "--bandwidth", "5"])
    for one, other in zip(own["parameters"], found["parameters"], strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-4, abs=1e-4)
    assert run(["doctor", *argv]) == 0
    track = ["track", "foreign.csv", "--robot", "arm.urdf", *flags, "--units", "q=deg,deg"]
    assert run([*track, "--bandwidth", "5"]) == 0
    Path("foreign.csv").unlink()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--columns", "taw=x_*"], "a.csv: columns: 'taw' is unknown; did you mean 'tau'?"),
        (["--units", "qq=deg"], "a.csv: units: 'qq' is unknown; did you mean 'q'?"),
        (["--units", "q=degree"], "'degree' is unknown; did you mean 'deg'?"),
        (["--columns", "x_*"], "--columns 'x_*': write SIGNAL=NAME"),
        (["--columns", "q=a,"], "--columns 'q=a,': write SIGNAL=NAME"),
        (["--columns", "q=a", "--columns", "q=b"], "--columns: q is given twice"),
    ],
)
def test_columns_and_units_of_flags_are_checked_as_those_of_a_study(refused, flags, words):
    assert words in refused(["identify", *FLAGS, *flags])


RESULT = "out-pc-idim-ls/result.json"
TAKES_LOGS = {
    **{name: [name, *LOG, "--bandwidth", "5"] for name in ("identify", "doctor", "select")},
    "compare": ["compare", *LOG, "--bandwidth", "5", "--methods", "wls", "--frictions", "viscous"],
    "validate": ["validate", RESULT, "l.csv"],
    "payload": ["payload", RESULT, "--log", "l.csv"],
    "sample": ["sample", RESULT, "-n", "2", "--log", "l.csv"],
    "diff": ["diff", RESULT, RESULT, "--log", "l.csv"],
    "replay": ["replay", "looped.json", "l.csv"],
    "track": ["track", "l.csv", "--robot", "arm.urdf", "--bandwidth", "5"],
    "track --start": ["track", "l.csv", "--start", RESULT],
}
OF_LOGS = {
    "--preset": ("abb-egm", "l.csv: has no positions as preset 'abb-egm'"),
    "--columns": ("q=nope_*", "nope_"),
    "--units": ("q=furlong", "furlong"),
    "--side": ("mtor", "'mtor'; did you mean 'motor'?"),
    "--rate": ("7", "7"),
    "--rows": ("0,999999", "999999"),
    "--bad-rows": ("keep", "'keep'"),
    "--drop-below": ("-1", "-1"),
}


def write_looped_result() -> None:
    """A result with a law, as it is replayed."""
    document = json.loads(Path(RESULT).read_text())
    document["settings"]["study"] |= {"controller": {"kind": "pd", "kp": 100.0, "kd": 10.0}}
    Path("looped.json").write_text(json.dumps(document))


@pytest.mark.parametrize("command", TAKES_LOGS)
def test_flags_say_themselves_what_other_columns_are_called(refused, place, command):
    write_looped_result()
    Path("l.csv").write_text(edited(lambda lines: [lines[0].replace("q_", "x_"), *lines[1:]]))
    assert "--columns q=... maps other names" in refused(TAKES_LOGS[command])
    Path("l.csv").write_text(edited(in_microseconds))
    assert "set --units time=us" in refused(TAKES_LOGS[command])


@pytest.mark.parametrize("command", TAKES_LOGS)
def test_whatever_takes_a_log_knows_columns_by_what_they_are_called(place, capfd, command):
    write_looped_result()
    head = "stamp,pos_0 [deg],pos_1 [deg],effort_0,effort_1"
    Path("l.csv").write_text(edited(lambda lines: [head, *lines[1:700], "1.4,nan,0,0,0"]))
    assert run(TAKES_LOGS[command]) == 2
    assert "column 2 (pos_0 [deg]): nan is not a finite number" in capfd.readouterr().err


def test_a_result_is_held_against_logs_of_other_columns(place, capfd):
    """Of its own, of the usual ones, and of neither, in units that the file states."""
    head, *rows = Path("b.csv").read_text().splitlines()
    named = head.replace("q_", "x_").replace("tau_", "effort_")
    other = "stamp,pos_0 [deg],pos_1 [deg],effort_0,effort_1"
    for name, titles, lines in (("x.csv", named, rows), ("deg.csv", other, turned(rows))):
        Path(name).write_text("\n".join([titles, *lines]))
    columns = {"q": "x_*", "tau": "effort_*"}
    (own,) = ask(capfd, ["validate", RESULT, "b.csv"])["validation"]
    document = json.loads(Path(RESULT).read_text())
    section = document["settings"]["study"]["log"][0] | {"columns": columns}
    document["settings"]["study"]["log"] = [section]
    Path("named.json").write_text(json.dumps(document))
    for result in (RESULT, "named.json"):
        for log in ("b.csv", "deg.csv", *(["x.csv"] if result == "named.json" else [])):
            (found,) = ask(capfd, ["validate", result, log])["validation"]
            for one, two in zip(own["entries"], found["entries"], strict=True):
                expected = pytest.approx(one["overall_relative_error_percent"], rel=1e-5)
                assert two["overall_relative_error_percent"] == expected
    section["units"] = {"q": "deg"}
    Path("named.json").write_text(json.dumps(document))
    assert run(["validate", "named.json", "b.csv"]) == 2
    assert "a.csv, whose units may not be theirs; state --columns" in capfd.readouterr().err


@pytest.mark.parametrize("command", ["identify", "doctor"])
def test_studies_are_told_by_keys_what_other_columns_are_called(refused, place, command):
    Path("l.csv").write_text(edited(lambda lines: [lines[0].replace("q_", "x_"), *lines[1:]]))
    Path("keys.toml").write_text('[robot]\nfile = "arm.urdf"\n[[log]]\nfiles = "l.csv"\n')
    assert "columns = { q = [...] } maps other names" in refused([command, "keys.toml"])


@pytest.mark.parametrize("flag", OF_LOGS)
@pytest.mark.parametrize("command", TAKES_LOGS)
def test_whatever_takes_a_log_is_told_of_it_by_the_same_flags(refused, place, command, flag):
    rows = (place / "a.csv").read_text().splitlines()
    if flag == "--rate":  # of logs without time
        rows = [row.partition(",")[2] for row in rows]
    Path("l.csv").write_text("\n".join(rows))
    write_looped_result()
    value, words = OF_LOGS[flag]
    assert words in refused([*TAKES_LOGS[command], flag, value])


def test_a_study_has_columns_of_its_own(refused):
    assert "--columns" in refused(["identify", "s.toml", "--columns", "q=x_*"])
    assert "--units" in refused(["doctor", "s.toml", "--units", "q=deg"])
    assert "s.toml has logs" in refused(["track", "s.toml", "--units", "q=deg"])


def test_no_number_is_too_large_to_be_refused(refused, place):
    Path("l.csv").write_text(edited(with_cell("1e300")))
    argv = ["identify", "--robot", "arm.urdf", "--log", "l.csv", "--bandwidth", "5"]
    assert "row 701, column 2 (q_joint_1)" in refused(argv)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--bandwidth", "1e-3", "at 500 Hz are too short for a torque filter at 0.002 Hz"),
        ("--bandwidth", "1e-9", "at 500 Hz are too short for a torque filter at 2e-09 Hz"),
        ("--lowpass", "1e-3", "a low-pass of 0.001 Hz leaves no usable samples of 4 s"),
        ("--lowpass", "1e-300", "a low-pass of 1e-300 Hz leaves no usable samples of 4 s"),
    ],
)
def test_cutoffs_that_leave_nothing_of_a_log_are_refused(refused, option, value, words):
    reason = refused(["identify", *FLAGS, option, value])
    assert reason.startswith("error: a.csv: ")
    assert words in reason


def test_a_low_pass_that_filters_nothing_is_said(place, capfd):
    found = ask(capfd, ["identify", *FLAGS, "--lowpass", "1000"])
    assert "Nyquist" in " ".join(found["warnings"])
    assert run(["validate", "out-wls/result.json", "b.csv", "--lowpass", "1000"]) == 0
    assert "Nyquist" in capfd.readouterr().err


def test_options_are_checked_before_logs_are_read(refused):
    argv = ["--robot", "arm.urdf", "--log", "no.csv", "--method", "ols", "--prior", "none"]
    assert "'prior'" in refused(["identify", *argv])


def test_one_column_is_not_two_joints(refused, place):
    Path("c.toml").write_text(STUDY.replace('"a.csv"', '"a.csv"\ncolumns = { q = [2, 2] }'))
    assert "columns.q" in refused(["identify", "c.toml"])


def test_a_joint_without_a_fitted_row_is_said(place, capfd):
    text = STUDY.replace("bandwidth = 5.0", "bandwidth = 5.0\ndrop_below = [0.0, 1e6]")
    Path("d.toml").write_text(text)
    assert "no row of joint_2" in " ".join(ask(capfd, ["identify", "d.toml"])["warnings"])


@pytest.mark.parametrize(
    ("suffix", "words"),
    [
        ("csv", "l.csv, row 2: has 3 columns, but the header in row 1 names 1"),
        ("npz", "l.npz: is not an NPZ archive, or was cut off"),
        ("mat", "l.mat: is not a MAT file"),
        ("xlsx", "l.xlsx: unknown log format; known are .csv"),
        ("pt", ".mcap, metadata.yaml; numpy.savez writes .npz"),
    ],
)
def test_garbage_is_no_log(refused, place, suffix, words):
    Path(f"l.{suffix}").write_bytes(np.random.default_rng(0).bytes(3000))
    assert words in refused(["identify", "--robot", "arm.urdf", "--log", f"l.{suffix}"])


LINK = '<link name="{}"/>'
JOINT = (
    '<joint name="{}" type="revolute"><parent link="{}"/><child link="{}"/>'
    '<axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="9" velocity="9"/></joint>'
)


def urdf(*elements: str) -> str:
    return f'<robot name="x">{"".join(elements)}</robot>'


ENTITY = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/hostname">]>\n'
LAUGHS = (
    '<!DOCTYPE r [<!ENTITY l0 "lolololol">'
    + "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 11))
    + "]>\n"
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("line 1",)),
        ("hello", ("line 1",)),
        ("<robot name='x'>", ("line 1",)),
        ("<mujoco/>", ("<robot>", "<mujoco>")),
        ("<robot/>", ("no name",)),
        (f'{ENTITY}<robot name="&x;"/>', ("line 2", "Entity", "write what it stands for")),
        (f'{LAUGHS}<robot name="&l10;"/>', ("amplification",)),
        (f'{LAUGHS}<robot name="x">&l10;</robot>', ("amplification",)),
        ("<robot name='x'>" + "<a>" * 5000 + "</a>" * 5000 + "</robot>", ("depth",)),
        (urdf(LINK.format("a")), ("no moving joint",)),
        (
            urdf(LINK.format("a"), LINK.format("b"), JOINT.format("j", "a", "b")).replace(
                "revolute", "planar"
            ),
            ("line 1: joint 'j' is planar",),
        ),
    ],
)
def test_urdf_is_refused_with_the_line(refused, place, text, words):
    Path("r.urdf").write_text(text)
    refused(["base", "r.urdf"], "r.urdf", *words)


TWO = (LINK.format("a"), LINK.format("b"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (urdf(), ("link",)),
        (urdf(*TWO, LINK.format("c"), JOINT.format("j", "a", "b")), ("root", "[a]", "[c]")),
        (urdf(*TWO, JOINT.format("j", "a", "b"), JOINT.format("k", "b", "a")), ("root",)),
        (urdf(*TWO, JOINT.format("j", "a", "z")), ("z",)),
        (urdf(*TWO, LINK.format("a"), JOINT.format("j", "a", "b")), ("'a'", "unique")),
        (urdf(*TWO, JOINT.format("j", "a", "b").replace("revolute", "revolut")), ("revolut",)),
        (urdf(*TWO, JOINT.format("", "a", "b")), ("line 1", "a joint has no name")),
    ],
)
def test_urdf_trees_are_refused_in_one_line_too(refused, place, text, words):
    Path("r.urdf").write_text(text)
    refused(["base", "r.urdf"], "r.urdf", *words)


INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('xyz="0 0 1"', 'xyz="0 0 0"'),
        ('xyz="0 0 1"', 'xyz="0 1"'),
        ('xyz="0 0 1"', 'xyz="nan 0 1"'),
        ('xyz="0 0 1"', 'xyz=""'),
        ("<axis", '<origin xyz="1e300 0 0"/><axis'),
        ("<axis", '<origin xyz="0 0 0" rpy="0,0,0"/><axis'),
        ('value="1"', 'value="1kg"'),
        ('value="1"', 'value="nan"'),
        ('ixx="1"', 'ixx="inf"'),
    ],
)
def test_numbers_of_a_urdf_are_refused_with_the_line(refused, place, old, new):
    body = '<link name="b">' + INERTIAL + "</link>"
    text = urdf(LINK.format("a"), body, JOINT.format("j", "a", "b"))
    assert old in text
    Path("r.urdf").write_text(text.replace(old, new))
    assert "r.urdf, line 1: <" in refused(["base", "r.urdf"])


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16"])
def test_a_urdf_may_be_written_in_any_encoding(place, capfd, encoding):
    text = Path("arm.urdf").read_text().replace('name="toy"', 'name="fantôme"')
    Path("f.urdf").write_bytes(text.replace("UTF-8", encoding).encode(encoding))
    out, err = tell(capfd, ["base", "f.urdf", "--json"])
    assert json.loads(out)["robot"]["name"] == "fantôme"
    assert err == ""


TABLE = 'convention = "modified"\n[[joint]]\nname = "j1"\n[[joint]]\nname = "j2"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("urdf", "convention")),
        (TABLE.replace("j2", "j1"), ("joint[2].name", "repeats 'j1'")),
        (TABLE + 'parent = "j3"\n', ("joint[2].parent", "'j3'")),
        ('urdf = "no.urdf"\n', ("no.urdf",)),
    ],
)
def test_robot_toml_is_refused_with_the_key(refused, place, text, words):
    Path("r.toml").write_text(text)
    refused(["base", "r.toml"], "r.toml", *words)


# where output cannot go


@pytest.mark.parametrize(
    ("directory", "words"),
    [
        ("a.csv", ("a.csv", "not a directory")),
        ("a.csv/below", ("a.csv/below", "not a directory")),
        ("/dev/null", ("/dev/null",)),
    ],
)
def test_output_is_refused_before_any_work(refused, monkeypatch, directory, words):
    monkeypatch.setattr(facade, "run_study", lambda *_: pytest.fail("went to work"))
    refused(["identify", *FLAGS, "-o", directory], *words)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_output_needs_permission(refused, place):
    Path("read_only").mkdir(mode=0o500)
    assert "permission" in refused(["identify", *FLAGS, "-o", "read_only/below"])


@pytest.mark.parametrize("blocked", ["result.json", "model.urdf"])
def test_output_appears_whole_or_not_at_all(refused, place, blocked):
    Path("blocked", blocked).mkdir(parents=True, exist_ok=True)
    try:
        argv = ["identify", *FLAGS, "-o", "blocked", "--no-report"]
        assert f"blocked/{blocked}" in refused(argv)
    finally:
        Path("blocked", blocked).rmdir()


def test_inputs_are_not_written_over(refused, place):
    Path("model.urdf").write_bytes(Path("arm.urdf").read_bytes())
    argv = ["identify", "--robot", "model.urdf", "--log", "a.csv", "-o", "."]
    assert "model.urdf: is an input" in refused(argv)
    argv = ["export", "out-pc-idim-ls/result.json", "--urdf", "arm.urdf"]
    assert "arm.urdf: is an input" in refused(argv)
    Path("table.toml").write_text('urdf = "model.urdf"\n')
    argv = ["identify", "--robot", "table.toml", "--log", "a.csv", "--no-report", "-o", "."]
    assert "model.urdf: is an input" in refused(argv)


RESULT = "out-pc-idim-ls/result.json"
NEW_PAGE = ("--page", "new.csv")
SEARCH = ("--method", "pf", "--search-state", "o/report.html")


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["identify", "s.toml", "-o", "o", "--write-study", "a_directory"], "(it is a directory)"),
        (["identify", "s.toml", "-o", "o", "--write-study", "pipe"], "a device or pipe)"),
        (["identify", "s.toml", "-o", "o", "--write-study", "arm.urdf/s.toml"], "not a directory)"),
        (["identify", "s.toml", "-o", "o", "--write-study", "o/result.json"], "two outputs"),
        (["identify", "s.toml", "-o", "o", "--write-study", "o/../o/model.xml"], "two outputs"),
        (["identify", "s.toml", "-o", "o", "--write-study", "o"], "(it is a directory)"),
        (["identify", "s.toml", "-o", "o", *SEARCH], "o/report.html: is an input"),
        (["export", RESULT, "--c", "a.csv"], "a.csv: is an input"),
        (
            ["export", RESULT, "--urdf", "o/x", "--c", "out-pc-idim-ls/report.html/x"],
            "not a directory)",
        ),
        (["export", RESULT, "--urdf", "o/x", "--c", "a_directory"], "(it is a directory)"),
        (["export", RESULT, "--c", "pipe"], "a device or pipe)"),
        (["export", RESULT, "--urdf", "o/x", "--c", "o/../o/x"], "two outputs"),
        (["sample", "draws.yaml", "-o", "."], "draws.yaml: is an input"),
        (["compare", "s.toml", "-o", "pipe"], "pipe: cannot be written"),
        (["validate", RESULT, "new.csv", *NEW_PAGE], "new.csv: is an input"),
        (["diff", RESULT, RESULT, "--log", "new.csv", *NEW_PAGE], "new.csv: is an input"),
        (["diff", RESULT, "--page", "a.csv"], "a.csv: is an input"),
        (["diff", RESULT, "--page", "arm.urdf"], "arm.urdf: is an input"),
        (["sample", RESULT, "--log", "new.csv", *NEW_PAGE], "new.csv: is an input"),
        (["payload", RESULT, "--log", "new.csv", "--franka", "new.csv"], "new.csv: is an input"),
        (["replay", RESULT, "--page", "a.csv"], "a.csv: is an input"),
        (["replay", "s.toml", "--page", "arm.urdf"], "arm.urdf: is an input"),
        (["replay", RESULT, "--robot", "new.csv", *NEW_PAGE], "new.csv: is an input"),
    ],
)
def test_every_output_is_checked_before_any_is_written(refused, place, argv, reason):
    """Those of one run are one set; none of them is another, an input or no file."""
    Path("draws.yaml").write_bytes(Path(RESULT).read_bytes())
    Path("new.csv").write_bytes(Path("a.csv").read_bytes())
    os.mkfifo("pipe")  # like a device, and nothing is lost where this fails
    try:
        assert reason in refused(argv)
    finally:
        Path("pipe").unlink()


def test_nor_are_they_from_python(place):
    fit = di.identify(
        di.Problem(
            robot := di.load_robot("arm.urdf"), di.prepare(di.read_log("a.csv", robot), 5.0)
        ),
        bootstrap=0,
        doctor=False,
    )
    before = Path("arm.urdf").read_bytes()
    for write in (fit.to_urdf, fit.to_mjcf, fit.to_c):
        with pytest.raises(InputError, match=r"arm\.urdf: is an input"):
            write(Path("a_directory/../arm.urdf"))
    assert Path("arm.urdf").read_bytes() == before


def test_logs_without_their_flag_are_told_of_it(refused, place):
    for argv, flags in (
        (["doctor", "arm.urdf", "a.csv"], "--robot FILE --log FILE"),
        (["payload", RESULT, "--log", "b.csv", "a.csv"], "--log FILE"),
    ):
        assert f"(a.csv); logs are given by {flags}; see dynident {argv[0]}" in refused(argv)
    assert "logs are given by" not in refused(["zoo", "tx40", "a.csv"])


def test_links_in_a_circle_are_no_log(refused, place):
    Path("circle.csv").symlink_to("circle.csv")
    argv = ["identify", "--robot", "arm.urdf", "--log", "circle.csv", "-o", "never"]
    assert "circle.csv: no such file" in refused(argv)
    Path("nul.toml").write_text(STUDY.replace("a.csv", "a\\u0000b.csv"))
    assert "nul.toml: key 'log[1].files'" in refused(["identify", "nul.toml", "-o", "never"])


def test_a_failed_run_leaves_no_directory(refused, place):
    refused(["identify", "--robot", "arm.urdf", "--log", "no.csv", "-o", "never/below"])
    refused(["export", "out-pc-idim-ls/result.json", "--urdf", "a_directory"])
    assert not Path("never").exists()


# what is refused with 1


@pytest.mark.long
@pytest.mark.parametrize("method", ["ols", "wls", "irls"])
def test_a_log_that_excites_nothing_is_a_failure_with_advice(refused, method):
    argv = ["--robot", "arm.urdf", "--log", "still.csv", "--bandwidth", "5", "--method", method]
    refused(["identify", *argv, "-o", "never"], "excite", "pc-idim-ls", code=1)


@pytest.mark.parametrize("method", ["pc-idim-ls", "ols", "wls", "irls"])
def test_a_log_without_torque_is_a_failure(refused, method):
    argv = ["--robot", "arm.urdf", "--log", "zero.csv", "--bandwidth", "5", "--method", method]
    refused(["identify", *argv], "zero.csv", "torque", code=1)


def test_running_out_of_memory_is_a_failure(refused, monkeypatch):
    def greedy(*_, **__):
        raise MemoryError

    monkeypatch.setattr(facade, "run_study", greedy)
    assert "memory" in refused(["identify", *FLAGS], code=1)


def test_an_interrupted_run_says_so_and_writes_nothing(refused, monkeypatch):
    def interrupt(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(facade, "run_study", interrupt)
    # a shell lets what it runs in the background ignore interrupts
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert "interrupted" in refused(["identify", *FLAGS, "-o", "never"], code=130)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_full_disk_behind_stdout_is_no_traceback():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        argv = [sys.executable, "-m", "dynident", "--version"]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: output: No space left on device\n"


@pytest.mark.parametrize(
    "argv", [["--version"], ["--help"], pytest.param(["base", "arm.urdf"], marks=pytest.mark.long)]
)
def test_output_that_nobody_reads_on_ends_quietly(place, argv):
    there, here = os.pipe()
    os.close(there)
    try:
        command = [sys.executable, "-m", "dynident", *argv]
        done = subprocess.run(command, stdout=here, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(here)
    said = [each for each in done.stderr.splitlines() if not each.startswith(b"note: compiling ")]
    assert (done.returncode, said) == (141, [])


def test_the_list_of_commands_loads_none_of_them():
    code = """
import sys
from dynident.cli import COMMANDS, run
assert run(["--help"]) == 0
own = {command.module for command in COMMANDS.values()}
print(sorted({"numpy", "pydantic", *own} & {*sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    for name, command in COMMANDS.items():
        assert f"  {name}" in done.stdout
        assert command.help in done.stdout


def test_an_interrupt_while_modules_are_loaded_is_one_line():
    code = """
import os, runpy, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "dynident.cli":
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
runpy.run_module("dynident", run_name="__main__", alter_sys=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"error: interrupted\n")


CLOSED = {"stderr": "2>&-", "stdout": ">&-"}


def in_shell(redirection: str, *argv: str) -> subprocess.CompletedProcess[str]:
    command = shlex.join([sys.executable, "-m", "dynident", *argv])
    return subprocess.run(
        ["sh", "-c", f"{command} {redirection}"], capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_closed_streams_change_nothing_that_is_written(place):
    folder = Path("closed")
    argv = ["identify", *FLAGS, "-o", str(folder), "--no-report"]
    assert in_shell("<&- >&- 2>&-", *argv).returncode == 0
    assert sorted(os.listdir(folder)) == ["model.urdf", "result.json"]
    assert load_robot(folder / "model.urdf").n == 2
    assert json.loads((folder / "result.json").read_text())["consistent"] is True


@pytest.mark.parametrize("closed", CLOSED)
def test_a_closed_stream_leaves_the_other(closed):
    done = in_shell(CLOSED[closed], "--version")
    assert done.returncode == 0
    assert done.stdout.startswith("dynident ") == (closed == "stderr")
    assert done.stderr == ""


@pytest.mark.parametrize("closed", CLOSED)
def test_a_refusal_needs_no_stream(place, closed):
    done = in_shell(CLOSED[closed], "--nope")
    assert done.returncode == 2
    assert done.stdout == ""
    if closed == "stdout":
        assert done.stderr.startswith("error: No such option")
        assert done.stderr.count("\n") == 1
    else:
        assert done.stderr == ""


def test_a_reason_that_cannot_be_written_leaves_its_code(place):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    assert in_shell("2>/dev/full", "--nope").returncode == 2


# studies and what they say


def test_flags_and_a_study_give_the_same_numbers(place, capfd):
    documents = []
    for argv in (["identify", *FLAGS], ["identify", "s.toml"]):
        out, err = tell(capfd, [*argv, "--json"])
        assert err == ""
        documents.append(json.loads(out))
    for document in documents:
        sizes = [document["provenance"][f"{kind}_bytes"] for kind in ("log", "robot")]
        assert sizes == [{n: os.path.getsize(n)} for n in ("a.csv", "arm.urdf")]
        del document["timings"], document["provenance"]["date"]
    documents[0]["settings"]["study"] = documents[1]["settings"]["study"]
    assert documents[0] == documents[1]


def test_flags_are_kept_as_a_study(place, refused, capfd):
    (place / "kept").mkdir()
    flags = [*FLAGS, "--validate", "b.csv", "--units", "q=rad", "--prior-weight", "2"]
    by_flags = ask(capfd, ["identify", *flags, "--write-study", "kept/s.toml"])
    by_study = ask(capfd, ["identify", "kept/s.toml"])
    assert by_study["parameters"] == by_flags["parameters"]
    assert tomllib.loads(Path("kept/s.toml").read_text()) == {
        "robot": {"file": "../arm.urdf"},
        "log": [
            {"files": ["../a.csv"], "units": {"q": "rad"}},
            {"files": ["../b.csv"], "use": "validate", "units": {"q": "rad"}},
        ],
        "prepare": {"bandwidth": 5.0},
        "identify": {"prior_weight": 2.0},
    }  # logs of so few windows decide nothing
    # a study is not a head of a result: what lies beside it is not its own
    (place / "kept/model.urdf").write_bytes(Path("arm.urdf").read_bytes())
    assert run(["identify", *flags, "--json", "--write-study", "kept/s.toml"]) == 0
    capfd.readouterr()
    assert sorted(os.listdir("kept")) == ["model.urdf", "s.toml"]
    assert "a.csv: is an input" in refused(["identify", *FLAGS, "--write-study", "a.csv"])
    assert "s.toml: is an input" in refused(["identify", "s.toml", "--write-study", "s.toml"])


def test_flags_replace_what_a_study_says(place, capfd):
    options = ["--method", "wls", "--friction", "viscous", "--bandwidth", "4", "--lowpass", "8"]
    document = ask(capfd, ["identify", "s.toml", *options])
    settings = document["settings"]
    assert document["method"] == "wls"
    assert settings["friction"] == "viscous"
    assert settings["logs"][0]["bandwidth_hz"] == [4.0, 4.0]
    assert document["fit"]["identification"][1]["lowpass_hz"] == 8.0


def test_a_study_finds_its_files_beside_itself(place, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert run(["identify", str(place / "s.toml")]) == 0
    assert "pc-idim-ls" in tell(capfd, ["identify", os.path.relpath(place / "s.toml")]).out


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_line_endings_do_not_matter(place, capfd, ending):
    Path("e.toml").write_bytes(STUDY.replace("\n", ending).encode())
    assert run(["identify", "e.toml"]) == 0


def test_two_runs_are_the_same_to_the_last_bit(place, capfd):
    texts = []
    for _ in range(2):
        assert run(["identify", *FLAGS, "--json"]) == 0
        own = r'"timings": \{.*?\}|"date": ".*?"'
        texts.append(re.sub(own, "", capfd.readouterr().out, flags=re.S))
    assert texts[0] == texts[1]


# what is printed and written


def test_output_is_exactly_three_files(place):
    assert sorted(os.listdir("out-pc-idim-ls")) == ["model.urdf", "report.html", "result.json"]


def test_a_method_without_standard_parameters_writes_no_model_and_says_so(place, capfd):
    assert sorted(os.listdir("out-wls")) == ["report.html", "result.json"]
    out, err = tell(capfd, ["identify", *FLAGS, "--method", "ols", "-o", "deep/er", "--no-report"])
    assert os.listdir("deep/er") == ["result.json"]
    assert "no model.urdf" in err
    assert "written to deep/er" in err
    assert "written" not in out


def test_no_model_of_an_earlier_result_stays(place, capfd):
    assert run(["identify", *FLAGS, "-o", "again", "--no-report"]) == 0
    Path("again/notes.txt").write_text("mine")
    assert sorted(os.listdir("again")) == ["model.urdf", "notes.txt", "result.json"]
    assert run(["identify", *FLAGS, "-o", "again", "--no-report", "--method", "wls"]) == 0
    assert sorted(os.listdir("again")) == ["notes.txt", "result.json"]
    assert "removed again/model.urdf" in capfd.readouterr().err


def test_json_is_one_object_and_the_file(place, capfd):
    out, err = tell(capfd, ["identify", *FLAGS, "--json", "-o", "j", "--no-report"])
    assert out == Path("j/result.json").read_text()
    assert isinstance(json.loads(out), dict)
    assert all(line.startswith(("note: ", "written to ")) for line in err.splitlines())


def test_tables_are_for_people(place, capfd):
    out, err = tell(capfd, ["identify", *FLAGS, "--validate", "b.csv", "--full"])
    assert err == ""
    for word in ("pc-idim-ls", "joint_2", "Izz1R", "overall", "consistent"):
        assert word in out
    assert max(map(len, out.splitlines())) <= 80


def test_routes_of_the_literature_are_compared_on_a_study(place, capfd):
    out, _ = tell(capfd, ["reproduce", "routes", "s.toml", "-o", "routes.csv"])
    for word in ("minimum-norm", "cad-difference", "sousa-correction", "fitted %", "of 2"):
        assert word in out
    table = np.genfromtxt("routes.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    robot = load_robot("arm.urdf")
    idim = build_idim(robot)
    assert table["parameter"].tolist() == list(idim.names)
    base = base_parameters(idim).matrix
    one, other = base @ table["minimumnorm"], base @ table["truncatedsvd"]
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    for argv, words in (
        (["routes"], "routes takes a study"),
        (["routes", "s.toml", "--quick"], "takes a study and --output"),
        (["brunot2019", "s.toml"], "takes no study"),
        (["routes", "s.toml", "-o", "a.csv"], "a.csv"),
    ):
        assert words in tell(capfd, ["reproduce", *argv], code=2).err


def test_base_in_both_forms(place, capfd):
    out, err = tell(capfd, ["base", "arm.urdf", "--json"])
    assert err == ""
    document = json.loads(out)
    assert document["schema"] == "dynident.base/1"
    assert document["robot"] == {"name": "toy", "joints": ["joint_1", "joint_2"], "dof": 2}
    assert document["base_count"] == len(document["parameters"]) == 14
    assert document["standard_count"] == 28
    table = tell(capfd, ["base", "arm.urdf"]).out
    for row in document["parameters"]:
        assert re.search(rf"^{row['name']} ", table, re.M)
    assert ask(capfd, ["base", "arm.urdf", "--friction", "none"])["base_count"] == 8


# stored results at work


FITTED = "a.csv has the samples of a.csv, which was fitted: it tests nothing"


@pytest.mark.parametrize("method", ["pc-idim-ls", "wls"])
def test_validate_reproduces_the_figures_of_the_identification(place, capfd, method):
    path = f"out-{method}/result.json"
    fit = json.loads(Path(path).read_text())["fit"]
    out, err = tell(capfd, ["validate", path, "a.csv", "b.csv", "--json"])
    assert err == f"warning: {FITTED}\n"
    document = json.loads(out)
    assert document["schema"] == "dynident.validation/1"
    assert document["warnings"] == [FITTED]
    assert [one["log"] for one in document["validation"]] == ["a.csv", "b.csv"]
    fitted, held_out = document["validation"]
    expected = {"entries": fit["identification"], "nominal": fit["nominal"]}
    for found, known in ((fitted, expected), (held_out, fit["validation"][0])):
        for kind in ("entries", "nominal"):
            for one, other in zip(found[kind], known[kind], strict=True):
                assert flat(one) == pytest.approx(flat(other), rel=1e-9)


def flat(figure: dict) -> list[float]:
    joints = [(j["relative_error_percent"], j["rmse"]) for j in figure["joints"]]
    return [figure["overall_relative_error_percent"], *(value for pair in joints for value in pair)]


def test_validate_prints_a_table_a_log(place, capfd):
    argv = ["validate", "out-pc-idim-ls/result.json", "a.csv", "b.csv", "--page", "fitted.html"]
    out, err = tell(capfd, argv)
    assert err == f"warning: {FITTED}\nwritten to fitted.html\n"
    assert FITTED in Path("fitted.html").read_text()
    assert [line for line in out.splitlines() if line.endswith(".csv")] == ["a.csv", "b.csv"]
    assert out.count("overall") == 2


def test_validate_takes_a_log_in_other_files_whose_columns_are_stated(place, capfd):
    path = "out-pc-idim-ls/result.json"
    parts = {
        "motion.txt": ["time", "q_joint_1", "q_joint_2"],
        "torque.txt": ["tau_joint_1", "tau_joint_2"],
    }
    for name, columns in parts.items():
        pd.read_csv("b.csv")[columns].to_csv(name, index=False, header=False)
    stated = ["--columns", "time=1", "--columns", "q=2,3", "--columns", "tau=torque.txt:*"]
    (one,) = ask(capfd, ["validate", path, "b.csv"])["validation"]
    (other,) = ask(capfd, ["validate", path, "motion.txt,torque.txt", *stated])["validation"]
    assert other["entries"] == one["entries"]


def test_validate_takes_another_low_pass(place, capfd):
    path = "out-pc-idim-ls/result.json"
    (found,) = ask(capfd, ["validate", path, "b.csv", "--lowpass", "3"])["validation"]
    assert [figure["lowpass_hz"] for figure in found["entries"]] == [None, 3.0]


def test_validate_says_what_is_odd_about_a_log(place, capfd):
    out, err = tell(capfd, ["validate", "out-pc-idim-ls/result.json", "zero.csv", "--json"])
    document = json.loads(out)
    assert all(line.startswith("warning: zero.csv: tau") for line in err.splitlines())
    assert len(document["warnings"]) == err.count("\n") == 1
    assert document["validation"][0]["entries"][0]["overall_relative_error_percent"] is None


@pytest.mark.parametrize("robot", ["arm.urdf", "bare.urdf"])
def test_export_writes_the_model_again(place, capfd, robot):
    argv = ["identify", "--robot", robot, "--log", "a.csv", "--bandwidth", "5", "--no-report"]
    assert run([*argv, "-o", f"x-{robot}"]) == 0
    capfd.readouterr()
    out, err = tell(capfd, ["export", f"x-{robot}/result.json", "--urdf", f"x-{robot}/deep/e.urdf"])
    assert out == ""
    assert f"written to x-{robot}/deep/e.urdf" in err
    assert "Ia1" in err
    model = Path(f"x-{robot}/model.urdf").read_bytes()
    assert Path(f"x-{robot}/deep/e.urdf").read_bytes() == model


ONE_JOINT = """<robot name="one">
  <link name="world"/>
  <link name="stand"/>
  <link name="arm"><inertial><origin xyz="0.1 0 0.2"/><mass value="2"/>
    <inertia ixx="0.05" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tool"><inertial><mass value="0.5"/>
    <inertia ixx="0.005" iyy="0.005" izz="0.005" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="mount" type="fixed"><parent link="world"/><child link="stand"/>
    <origin xyz="0 0 1" rpy="0.3 0.2 0"/></joint>
  <joint name="j" type="KIND"><parent link="stand"/><child link="arm"/><origin xyz="0 0.2 0"/>
    <axis xyz="1 2 -1"/><limit lower="-3" upper="3" effort="900" velocity="90"/></joint>
  <joint name="flange" type="fixed"><parent link="arm"/><child link="tool"/>
    <origin xyz="0.4 0 0"/></joint>
</robot>
"""


@pytest.mark.parametrize("kind", first(["prismatic", "continuous", "revolute"], 2))
def test_a_robot_with_one_joint_goes_all_the_way(place, tmp_path, monkeypatch, capfd, kind):
    monkeypatch.chdir(tmp_path)
    Path("one.urdf").write_text(ONE_JOINT.replace("KIND", kind))
    robot = load_robot("one.urdf")
    assert robot.joint_names == ("j",)
    idim = build_idim(robot)
    q, dq, ddq = toy.motion(1, 4.0, 3, RATE)
    theta = toy.true_parameters(idim, robot.nominal)
    tau = idim.torque(theta, q, dq, ddq) + np.random.default_rng(4).normal(size=q.shape) * 0.1
    write_joints("one.csv", ["j"], RATE, q=q, tau=tau)
    base = ask(capfd, ["base", "one.urdf"])
    # of a link that turns: its moment and two first moments; of one that slides: its mass, which
    # goes with Ia, and its weight, which goes with off
    assert base["base_count"] == {"prismatic": 4}.get(kind, 6)
    argv = ["--robot", "one.urdf", "--log", "one.csv", "--bandwidth", "5", "-o", "out"]
    # a page has nothing else to say of a joint without limits
    assert run(["identify", *argv, *["--no-report"][: kind == "continuous"]]) == 0
    found = json.loads(Path("out/result.json").read_text())
    values = [row["value"] for row in found["parameters"]]
    expected = base_parameters(idim).matrix @ theta
    np.testing.assert_allclose(values, expected, atol=0.03 * np.abs(expected).max())
    assert run(["validate", "out/result.json", "one.csv"]) == 0
    assert run(["export", "out/result.json", "--urdf", "again.urdf"]) == 0
    again = load_robot("again.urdf")
    np.testing.assert_allclose(
        idim.torque(np.concatenate([again.nominal.ravel(), theta[10:]]), q, dq, ddq), tau, atol=2.0
    )
    assert again.joints[0].axis == pytest.approx(robot.joints[0].axis)
    assert again.joints[0].damping == pytest.approx(2.0, rel=0.05)
    assert run(["identify", *argv, "--method", "wls", "--no-report"]) == 0
    assert run(["export", "out/result.json", "--repair", "--urdf", "repaired.urdf"]) == 0
    assert smallest_of("repaired.urdf") > 0.0


def test_results_robots_and_logs_may_move_apart(place, tmp_path, monkeypatch, capfd):
    moved = tmp_path / "moved.json"
    moved.write_bytes((place / "out-pc-idim-ls" / "result.json").read_bytes())
    monkeypatch.chdir(tmp_path)
    away = ask(capfd, ["validate", str(moved), str(place / "b.csv")])
    assert run(["export", "moved.json", "--urdf", "x.urdf"]) == 0
    assert run(["validate", str(place / "out-pc-idim-ls" / "result.json"), str(place / "b.csv"),
                "--json"]) == 0  # fmt: skip
    at_home = json.loads(capfd.readouterr().out)
    assert away["validation"][0]["entries"] == at_home["validation"][0]["entries"]
    assert Path("x.urdf").read_bytes() == (place / "out-pc-idim-ls" / "model.urdf").read_bytes()


def test_a_robot_file_that_was_changed_since_changes_no_result(place, capfd):
    original = Path("arm.urdf").read_text()
    argv = ["validate", "out-pc-idim-ls/result.json", "b.csv", "--json"]
    before = tell(capfd, argv).out
    try:
        Path("arm.urdf").write_text(original.replace("joint_2", "elbow"))
        assert tell(capfd, argv).out == before
    finally:
        Path("arm.urdf").write_text(original)


def put(*keys, value):
    def change(document) -> None:
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return change


def drop(*keys):
    def change(document) -> None:
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return change


STATE = ("state", "base", "model", "structure")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (drop("schema"), ("schema", "'dynident.result/1'")),
        (put("schema", value="dynident.result/2"), ("'dynident.result/2'",)),
        (drop("state"), ("'state'", "earlier versions", "dynident identify")),
        (put("settings", "study", "robot", "frition", value="x"), ("frition", "'friction'")),
        (drop("standard"), ("standard is None",)),
        (put("standard", value=[]), ("standard is []",)),
        (put("standard", 0, "mass", value=9.0), ("standard[1].mass is 9", "edited")),
        (put("standard", 0, "mass", value="x"), ("standard[1].mass is x",)),
        (put("joints", 0, "friction", "fv", value=0.0), ("joints[1].friction.fv is 0", "edited")),
        (put("parameters", 0, "value", value=None), ("parameters[1].value is None",)),
        (put("verdict", "state", value="certain"), ("verdict.state is certain",)),
        (drop("state", "method"), ("state.method: is missing",)),
        (put("state", "method", value=3), ("state.method: is '3' but should be a text",)),
        (put("state", "lowpass_hz", value="x"), ("state.lowpass_hz: is 'x'", "a number")),
        (put("state", "estimate", "beta", value=[[1.0], []]), ("state.estimate.beta",)),
        (put("state", "estimate", "beta", value=[1.0]), ("its parts do not fit together",)),
        (put("state", "estimate", "covariance", "matrix", value=[[1.0, 2.0]]), ("triangle",)),
        (put("state", "settings", "decided", value=[3]), ("state.settings.decided",)),
        (put("state", "estimate", "informed_base", value=[[1.0]]), ("do not fit together",)),
        (put("state", "base", "kept", value=[]), ("state.base", "parameters of its model")),
        (put(*STATE, "friction", value="frition"), ("state.base", "frition")),
        (put(*STATE, "robot", "joints", 0, "kind", value="loose"), ("state.base", "loose")),
        (put("state", "robot_files", "files", 0, "text", value="<robot/>"), ("edited?",)),
        (put("state", "robot_files", "files", 0, "name", value="../x"), ("outside",)),
    ],
)
def test_a_damaged_result_is_refused_with_the_key(refused, place, change, words):
    document = json.loads(Path("out-pc-idim-ls/result.json").read_text())
    change(document)
    Path("x.json").write_text(json.dumps(document))
    reason = refused(["validate", "x.json", "b.csv"])
    assert "x.json" in reason
    for word in words:
        assert word in reason
    assert refused(["export", "x.json", "--urdf", "x.urdf"]) == reason


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON (Expecting value"),
        (b"null", "its schema is None, expected 'dynident.result/1'"),
        (b"[]", "its schema is None, expected 'dynident.result/1'"),
        (b'"x"', "its schema is None, expected 'dynident.result/1'"),
        (b"[" * 100_000, "is not JSON ("),  # too deep, in the words of each Python
        (b'{"schema": ' + b"9" * 5000 + b"}", "is not JSON (Exceeds the limit (4300 digits)"),
        (b"\xff\xfe", "is not JSON ('utf-8' codec"),
    ],
)
def test_what_is_no_result_is_refused(refused, place, content, words):
    Path("x.json").write_bytes(content)
    assert f"x.json: {words}" in refused(["validate", "x.json", "b.csv"])


def test_a_truncated_result_is_refused(refused, place):
    text = Path("out-pc-idim-ls/result.json").read_bytes()
    Path("x.json").write_bytes(text[: len(text) // 2])
    assert "not JSON" in refused(["export", "x.json", "--urdf", "x.urdf"])


# constraints and what they are told with


def study_with(*constraints: str, identify: str = "", robot: str = "arm.urdf") -> list[str]:
    """The arguments of a run of the study with further sections."""
    text = STUDY.replace("arm.urdf", robot)
    if identify:
        text += f"[identify]\n{identify}\n"
    Path("k.toml").write_text(text + "".join(f"[[constraint]]\n{c}\n" for c in constraints))
    return ["identify", "k.toml"]


def com(link: dict) -> np.ndarray:
    return np.array(link["com"])


def friction(document: dict, joint: int, symbol: str) -> float:
    return document["joints"][joint]["friction"][symbol]


TETRAHEDRON = "[[-0.3, -0.3, -0.3], [0.3, -0.3, -0.3], [0.0, 0.4, -0.3], [0.0, 0.0, 0.6]]"
KINDS = {
    "bounds": (
        'parameters = "fv2"\nlower = 2.1\nupper = 2.2',
        lambda d: 2.1 - 1e-9 <= friction(d, 1, "fv") <= 2.2,
    ),
    "bounds of a base parameter": (
        'parameters = ["Izz1R"]\nupper = 0.36',
        lambda d: d["parameters"][0]["value"] <= 0.36 + 1e-9,
    ),
    "fixed": (
        'parameters = ["fc1", "fc2"]\nvalue = 2.9',
        lambda d: [friction(d, j, "fc") for j in (0, 1)] == pytest.approx([2.9, 2.9]),
    ),
    "mass": (
        'links = ["link_2"]\nvalue = 2.5',
        lambda d: d["standard"][1]["mass"] == pytest.approx(2.5),
    ),
    "mass of all": (
        'links = "all"\nlower = 2.5\nupper = 3.5',
        lambda d: all(2.5 - 1e-6 <= link["mass"] <= 3.5 + 1e-6 for link in d["standard"]),
    ),
    "total-mass": (
        "value = 7.0",
        lambda d: sum(link["mass"] for link in d["standard"]) == pytest.approx(7.0),
    ),
    "box": (
        'links = "link_2"\nlower = [-0.1, -0.1, -0.1]\nupper = [0.1, 0.1, 0.1]',
        lambda d: np.all(np.abs(com(d["standard"][1])) <= 0.1 + 1e-6),
    ),
    "box of the centre": (
        'links = "all"\nlower = [-0.1, -0.1, -0.1]\nupper = [0.1, 0.1, 0.1]\nof = "com"',
        lambda d: all(np.all(np.abs(com(link)) <= 0.1 + 1e-6) for link in d["standard"]),
    ),
    "box with open sides": (
        'links = "link_2"\nlower = [-inf, -0.2, -0.2]\nupper = [0.2, 0.2, inf]',
        lambda d: np.all(com(d["standard"][1]) <= [0.2 + 1e-6, 0.2 + 1e-6, np.inf]),
    ),
    "sphere": (
        'links = "all"\ncentre = [0.0, 0.0, 0.1]\nradius = 0.2',
        lambda d: all(np.linalg.norm(com(link) - [0.0, 0.0, 0.1]) <= 0.2 for link in d["standard"]),
    ),
    "ellipsoid": (
        'links = "link_2"\ncentre = [0.0, 0.0, 0.1]\naxes = [0.3, 0.2, 0.4]\n'
        'rotation = [0.0, 0.0, 1.5]\nof = "com"',
        lambda d: np.linalg.norm(com(d["standard"][1]) - [0.0, 0.0, 0.1]) <= 0.4,
    ),
    "hull": (
        f'links = "link_2"\npoints = {TETRAHEDRON}\nmargin = 0.01',
        lambda d: com(d["standard"][1])[2] >= -0.31,
    ),
    "equal": (
        'links = ["link_1", "link_2"]\ndrives = false',
        lambda d: d["standard"][0]["mass"] == pytest.approx(d["standard"][1]["mass"]),
    ),
    "equal of all links": (
        'links = "all"\ndrives = false',
        lambda d: d["standard"][0]["mass"] == pytest.approx(d["standard"][1]["mass"]),
    ),
    "symmetric": (
        'left = "link_1"\nright = "link_2"\nplane = "xz"\ndrives = false',
        lambda d: d["standard"][0]["mass"] == pytest.approx(d["standard"][1]["mass"]),
    ),
    "payload": (
        'link = "link_2"\nmass = 2.5\ncom = [0.0, 0.0, 0.1]',
        lambda d: d["standard"][1]["mass"] >= 2.5,
    ),
    "payload that is not known": (
        'link = "link_2"',
        lambda d: d["standard"][1]["mass"] >= 2.0 - 1e-6,
    ),
}
"""Every kind of constraint: what a study says, and what the result then has."""


@pytest.mark.parametrize("name", first(KINDS, 6))
def test_every_constraint_holds_in_the_result_which_is_read_again(place, capfd, name):
    body, holds = KINDS[name]
    kind = name.split()[0]
    argv = study_with(f'kind = "{kind}"\n{body}')
    document = ask(capfd, [*argv, "-o", "held", "--no-report"])
    assert holds(document)
    assert document["consistent"] is True
    assert document["settings"]["constraints"][0]["kind"] == kind
    stated = document["settings"]["study"]["constraint"][0]
    assert stated["kind"] == kind
    assert len(stated) == 1 + body.count(" = ")
    for part in document["certificate"].values():
        assert abs(part) < 1e-6
    assert run(["validate", "held/result.json", "b.csv"]) == 0
    assert run(["export", "held/result.json", "--urdf", "held/again.urdf"]) == 0
    assert Path("held/again.urdf").read_bytes() == Path("held/model.urdf").read_bytes()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('kind = "bound"\nparameters = "fv2"', ("constraint[1].kind", "'bounds'")),
        ('kind = "bounds"\nparameters = "fv9"\nlower = 1.0', ("'fv9'", "'fv2'")),
        ('kind = "fixed"\nparameters = "fv2"\nvalue = true', ("constraint[1].value", "number")),
        ('kind = "mass"\nlinks = "link_9"\nvalue = 2.0', ("'link_9' is not a link", "'link_2'")),
        ('kind = "mass"\nlinks = "al"\nvalue = 2.0', ("'al' is not a link", "link_1, link_2")),
        (
            'kind = "sphere"\nlinks = "link_7"\ncentre = [0.0, 0.0, 0.0]\nradius = 1.0',
            ("'link_7' is not a link",),
        ),
        ('kind = "hull"\nlinks = "link_2"', ("arm.urdf", "'link_2'", "geometry", "points")),
        ('kind = "equal"\nlinks = ["link_1", "link_3"]', ("'link_3' is not a link",)),
        ('kind = "symmetric"\nleft = "link_1"\nright = "lnk_2"', ("'lnk_2'", "'link_2'")),
        ('kind = "payload"\nlink = "link_5"\nmass = 0.5', ("'link_5' is not a link",)),
    ],
)
def test_constraints_are_refused_with_the_key(refused, place, body, words):
    refused(study_with(body), ".toml: ", "constraint[1]", *words)


@pytest.mark.parametrize(
    ("constraints", "identify", "names"),
    [
        (
            ('kind = "bounds"\nparameters = "fv2"\nlower = 5.0',
             'kind = "bounds"\nparameters = "fv2"\nupper = 1.0'),
            "", ("fv2 >= 5", "fv2 <= 1"),
        ),
        (
            ('kind = "total-mass"\nvalue = 5.0', 'kind = "mass"\nlinks = "link_1"\nvalue = 6.0'),
            "", ("total mass = 5", "mass of link_1 = 6", "gyration link_2"),
        ),
        (('kind = "fixed"\nparameters = "fv1"\nvalue = -1.0',), "", ("fv1 > 0", "fv1 = -1")),
        (
            ('kind = "fixed"\nparameters = "fv1"\nvalue = -1.0',),
            'consistency = "base"', ("fv1 > 0", "fv1 = -1"),
        ),
        (
            ('kind = "fixed"\nparameters = "Ixx2"\nvalue = -1.0',),
            'consistency = "inertia"', ("inertia link_2", "Ixx2 = -1"),
        ),
        (
            ('kind = "payload"\nlink = "link_2"\nmass = 5.0',
             'kind = "mass"\nlinks = "link_2"\nupper = 3.0'),
            "", ("link_2 without its payload", "mass of link_2 <= 3"),
        ),
    ],
)  # fmt: skip
def test_contradictions_are_a_failure_with_their_names(
    refused, place, constraints, identify, names
):
    refused(
        [*study_with(*constraints, identify=identify), "-o", "never"],
        "cannot all hold",
        *names,
        code=1,
    )


@pytest.mark.parametrize("method", ["ols", "wls", "irls"])
def test_constraints_are_refused_by_methods_without(refused, place, method):
    argv = study_with('kind = "total-mass"\nvalue = 6.0', identify=f'method = "{method}"')
    refused(argv, f"method {method} has no option 'constraints'", "pc-idim-ls")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('consistency = "base"\nprior = "nominal"', ("'base'", "leave the prior out")),
        ('method = "wls"\nprior_weight = 2.0', ("wls", "'prior_weight'")),
        ("bootstrap = 5", ("'identify.bootstrap'", "is 5: at least 20")),
        ('prior = "none"\nmetric = "euclidean"', ("metric", "prior is 'none'")),
        ('prior = "none"\nprior_weight = 7.0', ("prior_weight", "prior is 'none'")),
        ('prior = "none"\nprior_weight = "held-out"', ("prior_weight", "prior is 'none'")),
        ('consistency = "base"\nmetric = "euclidean"', ("metric", "consistency is 'base'")),
        ('consistency = "none"\nprior_weight = 7.0', ("prior_weight", "consistency is 'none'")),
    ],
)
def test_options_of_constrained_methods_are_refused_in_a_study(refused, place, lines, words):
    refused(study_with(identify=lines), *words)


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--metric", "euclidean"], {"metric": "euclidean"}),
        long(["--metric", "weighted"], {"metric": "weighted"}),
        long(["--metric", "entropic"], {"metric": "entropic"}),
        long(["--prior-weight", "0"], {"prior_weight": 0.0, "prior": "none"}),
        (["--prior-weight", "25"], {"prior_weight": 25.0, "prior": "nominal"}),
        (["--prior-weight", "held-out"], {"prior_weight": "held-out"}),
        (["--consistency", "base"], {"consistency": "base", "prior": "none"}),
        long(["--consistency", "none"], {"consistency": "none"}),
        (["--consistency", "inertia"], {"consistency": "inertia"}),
        (["--bootstrap", "0"], {"bootstrap": 0}),
        long(["--bootstrap", "40"], {"bootstrap": 40}),
        (["--prior", "none"], {"prior": "none"}),
    ],
)
def test_options_of_constrained_methods_are_in_the_settings(place, capfd, options, settings):
    out, err = tell(capfd, ["identify", *FLAGS, *options, "--json"])
    assert err == ""
    found = json.loads(out)["settings"]
    for key, value in settings.items():
        assert found[key] == value
    # flags and a study are one
    lines = "\n".join(
        f"{key} = {json.dumps(value)}"
        for key, value in settings.items()
        if (key, value) != ("prior", "nominal") and f"--{key.replace('_', '-')}" in options
    )
    assert ask(capfd, [*study_with(identify=lines)])["settings"] == {
        **found, "study": json.loads(json.dumps(found["study"]))
    }  # fmt: skip


def test_restriction_is_in_the_result_and_in_the_report(place, capfd):
    argv = study_with('kind = "bounds"\nparameters = "fv2"\nlower = 3.0')
    out, _ = tell(capfd, [*argv, "-o", "bound", "--full"])
    document = json.loads(Path("bound/result.json").read_text())
    found = document["restriction"]
    assert found["verdict"].startswith("the data contradict the constraints (fv2 >= 3")
    assert found["moved"] == "fv2"
    assert found["p_value"] < 0.01
    assert found["cost"] > 100.0
    assert found["gradient"] > 1e-8
    assert found["multipliers"][0]["name"] == "fv2 >= 3"
    assert {m["name"] for m in found["multipliers"]} == set(document["active_constraints"])
    assert found["verdict"] in document["warnings"]
    page = Path("bound/report.html").read_text()
    assert "the data contradict the constraints (fv2 &gt;= 3" in page
    assert "restriction  the data contradict the constraints (fv2 >= 3" in " ".join(out.split("\n"))
    assert "bootstrap" in document["covariance"]
    assert document["settings"]["seed"] == 0
    # nothing is held in the other result
    assert json.loads(Path("out-pc-idim-ls/result.json").read_text())["restriction"] is None


@pytest.mark.long
def test_the_seed_of_a_study_is_the_bootstraps(place, capfd):
    bound = 'kind = "bounds"\nparameters = "fv2"\nlower = 2.02'
    documents = []
    for seed in (1, 1, 2):
        document = ask(capfd, [*study_with(bound, identify=f"seed = {seed}")])
        values = [row["value"] for row in document["parameters"]]
        documents.append((values, document["covariance_matrix"]))
    assert documents[0] == documents[1]
    assert documents[0][0] == documents[2][0]
    assert documents[0][1] != documents[2][1]


def test_a_robot_without_inertials_has_no_prior(place, capfd):
    bare = ["identify", "--robot", "bare.urdf", "--log", "a.csv", "--bandwidth", "5"]
    document = ask(capfd, bare)
    assert document["settings"]["prior"] == "none"
    assert document["consistent"] is True
    assert "its file has no inertials" in tell(capfd, [*bare, "--prior", "nominal"], code=2).err
    assert run(study_with('kind = "payload"\nlink = "link_2"', robot="bare.urdf")) == 2
    assert "give its mass" in capfd.readouterr().err


LOOP = Path(__file__).parents[1] / "docs" / "files"
LOOP_LOG = """
[[log]]
files = "loop.csv"
[prepare]
bandwidth = 5.0
drop_below = 0.05
[identify]
"""


@pytest.fixture(scope="module")
def looped(tmp_path_factory) -> tuple[Path, str]:
    """A folder with a simulated closed-loop log, and the study of its loop."""
    place = tmp_path_factory.mktemp("loop")
    for name in ("arm.urdf", "arm_loop.toml"):
        (place / name).write_bytes((LOOP / name).read_bytes())
    assert run(["simulate", str(place / "arm_loop.toml"), "-o", str(place / "loop.csv")]) == 0
    text = (place / "arm_loop.toml").read_text()
    start, end = text.index("[reference]"), text.index("[simulation.parameters]")
    return place, text[:start] + text[end:] + LOOP_LOG


@pytest.mark.long
@pytest.mark.parametrize("method", first(["pc-idim-iv", "pc-didim", "pc-clie"]))
def test_constraints_in_the_loop(looped, monkeypatch, capfd, method):
    place, study = looped
    monkeypatch.chdir(place)
    bound = '[[constraint]]\nkind = "bounds"\nparameters = "fv1"\nlower = {}\n'
    documents = {}
    for lower in (1.0, 2.5):
        Path("k.toml").write_text(f'{study}method = "{method}"\n{bound.format(lower)}')
        documents[lower] = ask(capfd, ["identify", "k.toml"])
    free, held = documents[1.0], documents[2.5]
    assert free["restriction"] is None
    assert abs(free["joints"][0]["friction"]["fv"] - 2.0) < 0.05
    assert held["joints"][0]["friction"]["fv"] == pytest.approx(2.5)
    assert held["restriction"]["verdict"].startswith("the data contradict the constraints (fv1")
    assert held["settings"]["constraints"][0]["lower"] == 2.5
    assert held["settings"]["simulation"]["control_rate_hz"] == 1000.0
    assert free["consistent"] is True
    assert held["consistent"] is True
    Path("k.toml").write_text(f'{study}method = "{method}"\n{bound.format(9.0)}upper = 8.0\n')
    assert "lower 9 above upper 8" in tell(capfd, ["identify", "k.toml"], code=2).err
    impossible = '[[constraint]]\nkind = "fixed"\nparameters = "fv1"\nvalue = -2.5\n'
    Path("k.toml").write_text(f'{study}method = "{method}"\n{impossible}')
    assert "fv1 > 0, fv1 = -2.5 cannot all hold" in tell(capfd, ["identify", "k.toml"], code=1).err


def test_a_simulation_without_inertials_says_what_it_lacks(looped, monkeypatch, capfd):
    place, study = looped
    monkeypatch.chdir(place)
    bare = re.sub(r"<inertial>.*?</inertial>", "", Path("arm.urdf").read_text(), flags=re.DOTALL)
    Path("no_inertials.urdf").write_text(bare)
    own = study[: study.index("[simulation.parameters]")].replace("arm.urdf", "no_inertials.urdf")
    Path("n.toml").write_text(own + LOOP_LOG)
    assert run(["simulate", "n.toml", "-o", "n.csv"]) == 2
    assert "no_inertials.urdf: has no inertials; give [simulation]" in capfd.readouterr().err


@pytest.mark.parametrize("consistency", ["base", "none"])
def test_base_consistency_writes_no_model_and_says_how_to_get_one(place, capfd, consistency):
    folder = f"out-{consistency}"
    argv = [*FLAGS, "--consistency", consistency, "-o", folder, "--no-report"]
    err = tell(capfd, ["identify", *argv]).err
    assert os.listdir(folder) == ["result.json"]
    assert "no model.urdf" in err
    assert "export --repair" in err
    assert run(["validate", f"{folder}/result.json", "b.csv"]) == 0
    assert run(["export", f"{folder}/result.json", "--repair", "--urdf", f"{folder}/m.urdf"]) == 0
    assert smallest_of(f"{folder}/m.urdf") > 0.0


@pytest.mark.long
def test_an_impossible_link_is_not_written(place, capfd):
    """Consistency "inertia" admits links that break the triangle inequality."""
    robot = toy.arm(2)
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    theta[10:20] = from_com(2.0, [0.0, 0.0, 0.0], np.diag([0.02, 0.02, 0.1]))
    theta[idim.names.index("Ia2")] = 0.02
    tau = idim.torque(theta, *toy.motion(2, 4.0, 0, RATE))
    tau += np.random.default_rng(1).normal(size=tau.shape) * 0.3
    write_log(Path("odd.csv"), change=lambda q, _: (q, tau))
    argv = ["identify", "--robot", "arm.urdf", "--log", "odd.csv", "--bandwidth", "5"]
    argv += ["--prior", "none", "--consistency", "inertia", "-o", "odd", "--no-report"]
    assert run(argv) == 0
    assert os.listdir("odd") == ["result.json"]
    assert "not physically consistent" in capfd.readouterr().err
    document = json.loads(Path("odd/result.json").read_text())
    assert document["consistent"] is False
    assert document["min_pseudo_inertia_eigenvalue"] < 0.0
    out, err = tell(capfd, ["validate", "odd/result.json", "odd.csv", "--json"])
    again = json.loads(out)["validation"][0]["entries"]
    for one, other in zip(again, document["fit"]["identification"], strict=True):
        assert flat(one) == pytest.approx(flat(other), rel=1e-9)
    assert re.search(r"warning: pseudo-inertia link_\d is not physically consistent", err)
    assert run(["export", "odd/result.json", "--urdf", "odd/m.urdf"]) == 2
    assert re.search(r"link_\d is not physically consistent.* --repair", capfd.readouterr().err)
    assert run(["export", "odd/result.json", "--repair", "--urdf", "odd/m.urdf"]) == 0
    assert "sigma at most" in capfd.readouterr().err
    assert smallest_of("odd/m.urdf") > 0.0


# repair


def smallest_of(path: str) -> float:
    """Smallest pseudo-inertia eigenvalue of a URDF's moving bodies, as Pinocchio reads it."""
    model = pin.buildModelFromUrdf(path)
    bodies = [inertia.toDynamicParameters() for inertia in list(model.inertias)[1:]]
    return float(np.linalg.eigvalsh(to_pseudo_inertia(np.array(bodies))).min())


def spoiled_urdf(path: str = "spoiled.urdf") -> str:
    """The arm with a second link that breaks the triangle inequality."""
    text = Path("arm.urdf").read_text()
    changed = re.sub(r'izz="0.0046[^"]*"', 'izz="1.0"', text)
    assert changed != text
    Path(path).write_text(changed)
    return path


def test_repair_of_a_possible_robot_changes_nothing(place, capfd):
    out, err = tell(capfd, ["repair", "arm.urdf", "--urdf", "same.urdf"])
    assert "none: all are consistent" in out
    assert "written to same.urdf" in err
    before, after = pin.buildModelFromUrdf("arm.urdf"), pin.buildModelFromUrdf("same.urdf")
    for a, b in zip(before.inertias, after.inertias, strict=True):
        np.testing.assert_allclose(a.toDynamicParameters(), b.toDynamicParameters(), atol=1e-12)


@pytest.mark.parametrize("metric", ["pullback", "euclidean", "weighted", "entropic"])
def test_repair_writes_a_robot_that_can_be(place, capfd, metric):
    path = spoiled_urdf()
    assert smallest_of(path) < 0.0
    argv = ["repair", path, "--urdf", f"{metric}.urdf", "--metric", metric]
    out, err = tell(capfd, argv)
    assert "changed     link_2" in out
    assert max(map(len, out.splitlines())) <= 80
    assert f"written to {metric}.urdf" in err
    assert smallest_of(f"{metric}.urdf") > 0.0
    before, after = pin.buildModelFromUrdf(path), pin.buildModelFromUrdf(f"{metric}.urdf")
    np.testing.assert_allclose(
        before.inertias[1].toDynamicParameters(), after.inertias[1].toDynamicParameters()
    )
    # what was repaired needs no repair
    assert ask(capfd, ["repair", f"{metric}.urdf"])["changed"] == []


def test_repair_in_json(place, capfd):
    path = spoiled_urdf()
    out, err = tell(capfd, ["repair", path, "--json"])
    assert err == ""
    document = json.loads(out)
    assert document["schema"] == "dynident.repair/1"
    assert document["robot"] == {"name": "toy", "joints": ["joint_1", "joint_2"], "dof": 2}
    assert document["changed"] == ["link_2"]
    keys = {"link", "distance", "min_eigenvalue_before", "min_eigenvalue", "mass", "com"}
    for row in document["standard"]:
        assert set(row) == keys | {"inertia_com"}
        assert len(row["com"]) == 3
        assert len(row["inertia_com"]) == 6
    first, second = document["standard"]
    assert first["distance"] == 0.0
    assert second["distance"] > 0.0
    assert second["min_eigenvalue_before"] < 0.0 < second["min_eigenvalue"]
    assert set(document["certificate"]) == {"primal", "dual", "gap"}
    assert max(document["certificate"].values()) < 1e-8


def test_repair_of_a_weighed_robot(place, capfd):
    document = ask(capfd, ["repair", spoiled_urdf(), "--mass", "7.5", "--urdf", "w.urdf"])
    assert sum(row["mass"] for row in document["standard"]) == pytest.approx(7.5)
    assert document["changed"] == ["link_1", "link_2"]
    model = pin.buildModelFromUrdf("w.urdf")
    assert sum(inertia.mass for inertia in model.inertias) == pytest.approx(7.5)


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "heavy"])
def test_repair_needs_a_mass_that_can_be(refused, value):
    assert "--mass" in refused(["repair", "arm.urdf", "--mass", value])


def test_repair_refuses_what_it_cannot_do(refused, place):
    assert "'pullback'" in refused(["repair", "arm.urdf", "--metric", "pulback"])
    assert "metric is ''" in refused(["repair", "arm.urdf", "--metric", ""])
    path = spoiled_urdf()
    for name in (path, f"../{place.name}/{path}"):
        assert f"{name}: is an input" in refused(["repair", path, "--urdf", name])
    assert "a_directory: cannot be written" in refused(["repair", path, "--urdf", "a_directory"])
    text = Path("arm.urdf").read_text()
    Path("light.urdf").write_text(text.replace('<mass value="2.0"/>', '<mass value="0.0"/>'))
    refused(
        ["repair", "light.urdf", "--urdf", "never.urdf"], "link_2 has moments but no positive mass"
    )
    refused(["repair", "arm.urdf", "--mass", "1e-9"], "total mass = 1e-09", code=1)


def base_rows(**changes: float) -> list[str]:
    """A published table of the arm: name, true value and a standard deviation each."""
    robot = toy.arm(2)
    idim = build_idim(robot)
    base = base_parameters(idim)
    beta = base.matrix @ toy.true_parameters(idim, robot.nominal)
    values = {**dict(zip(base.names, beta, strict=True)), **changes}
    return [f"{name},{value:.9g},{0.01 * abs(value) + 1e-3:.3g}" for name, value in values.items()]


def table_of(rows: list[str], header: str = "name,value,std") -> list[str]:
    Path("t.csv").write_text("\n".join([header, *rows]) + "\n")
    return ["repair", "arm.urdf", "--table", "t.csv"]


def test_repair_of_a_published_table(place, capfd):
    argv = table_of(base_rows(Ia2R=-0.1, fv1=-1.0))
    out, err = tell(capfd, [*argv, "--urdf", "t.urdf"])
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"^fv1 +-1\.000 ", out, re.M)
    assert "sigma" in out
    assert "written to t.urdf" in err
    assert smallest_of("t.urdf") > 0.0
    document = ask(capfd, argv)
    assert document["schema"] == "dynident.repair/1"
    values = {row["name"]: row for row in document["parameters"]}
    assert values["fv1"]["given"] == -1.0
    assert values["fv1"]["value"] >= 0.0
    assert values["fv2"]["value"] == pytest.approx(2.0, abs=1e-3)
    assert all(link["min_eigenvalue"] > 0.0 for link in document["standard"])
    assert document["drives"]["fv1"] > 0.0


def test_repair_of_a_table_that_can_be_moves_nothing(place, capfd):
    argv = table_of(base_rows())
    for row in ask(capfd, argv)["parameters"]:
        assert row["value"] == pytest.approx(row["given"], abs=1e-6)
    # without standard deviations, without the R, with some of the parameters
    bare = [row.rpartition(",")[0].replace("R,", ",") for row in base_rows()]
    for rows in (bare, bare[:3]):
        document = ask(capfd, [*table_of(rows, "name,value")])
        given = [row["given"] for row in document["parameters"]]
        assert sum(value is not None for value in given) == len(rows)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], ("t.csv", "no base parameter")),
        (["fv9,1,1"], ("line 2", "'fv9'", "'fv2'")),
        (["fv1,1,1", "fv1,1,1"], ("line 3", "fv1", "twice")),
        (["Ia2R,1,1", "Ia2,1,1"], ("line 3", "twice")),
        (["fv1,nan,1"], ("line 2", "'nan'")),
        (["fv1,1,inf"], ("line 2", "'inf'")),
        (["fv1,1,-1"], ("line 2", "fv1", "negative")),
        (["fv1,1e300,1"], ("line 2", "1e300", "unit")),
        (["fv1,1,1e300"], ("line 2", "1e300", "unit")),
        (["fv1,1,1e-300"], ("line 2", "fv1", "1e-300", "unit")),
        (["fv1,abc,1"], ("line 2", "'abc'")),
        (["fv1,1"], ("line 2", "2 cells")),
        (["fv1,1,1,1"], ("line 2", "4 cells")),
    ],
)
def test_tables_are_refused_with_the_line(refused, place, rows, words):
    refused([*table_of(rows), "--urdf", "never.urdf"], "t.csv", *words)


def test_tables_and_their_options_are_refused(refused, place):
    table_of(base_rows())
    argv = ["repair", "arm.urdf", "--table"]
    assert "no.csv" in refused([*argv, "no.csv"])
    assert "a_directory" in refused([*argv, "a_directory"])
    assert "t.csv: is an input" in refused([*argv, "t.csv", "--urdf", "t.csv"])
    assert "'viscous'" in refused([*argv, "t.csv", "--friction", "viscos"])
    assert "'fc1'" in refused([*argv, "t.csv", "--friction", "viscous"])
    assert "--friction needs --table" in refused(["repair", "arm.urdf", "--friction", "viscous"])
    Path("t.csv").write_text("name;value\n")
    assert "'name,value'" in refused([*argv, "t.csv"])
    Path("t.csv").write_bytes(b"\xff\xfe\x00")
    assert "t.csv" in refused([*argv, "t.csv"])


@pytest.mark.parametrize("options", [[], ["--metric", "euclidean"], ["--metric", "entropic"]])
def test_export_repairs_a_result_without_links(place, capfd, options):
    argv = ["export", "out-wls/result.json", "--repair", "--urdf", "fixed.urdf", *options]
    out, err = tell(capfd, argv)
    assert out == ""
    assert re.search(r"note: repaired: .* sigma at most \(\w+\), .* in the mean", err)
    assert "written to fixed.urdf" in err
    assert smallest_of("fixed.urdf") > 0.0
    # nothing was wrong with this estimate, so that little is moved
    moved = float(re.search(r"base parameters by (\S+) sigma at most", err)[1])
    assert moved < 0.1


def test_export_repairs_what_cannot_be(place, capfd):
    flip = ["--log=flip.csv", "--validate=b.csv", "--robot=arm.urdf", *FLAGS[4:], "--method=wls"]
    write_log(Path("flip.csv"), change=lambda q, tau: (q, -tau))
    assert run(["identify", *flip, "-o", "bad", "--no-report", "--no-doctor"]) == 0
    command = ["export", "bad/result.json", "--repair", "--urdf", "bad.urdf"]
    assert run(command) == 1
    assert "a model file requires anyway=True, on the command" in capfd.readouterr().err
    err = tell(capfd, [*command, "--anyway"]).err
    assert float(re.search(r"base parameters by (\S+) sigma at most", err)[1]) > 10.0
    assert smallest_of("bad.urdf") > 0.0
    assert float(re.search(r'damping="([^"]+)"', Path("bad.urdf").read_text())[1]) >= 0.0


def test_export_refuses_a_repair_that_is_none(refused, place):
    argv = ["export", "out-wls/result.json", "--urdf", "x.urdf"]
    assert "--metric needs --repair" in refused([*argv, "--metric", "pullback"])
    assert "'pullback'" in refused([*argv, "--repair", "--metric", "pulback"])
    argv = ["export", "out-wls/result.json", "--repair", "--urdf", "arm.urdf"]
    assert "arm.urdf: is an input" in refused(argv)
    argv[-1] = "out-wls/result.json"
    assert "is an input" in refused(argv)


# the doctor


def test_the_doctor_names_and_mends(place, capfd):
    def negated(q, tau):
        return q, tau * np.array([1.0, -1.0])

    write_log(place / "negated.csv", change=negated)
    text = "# my study\n" + STUDY.replace("a.csv", "negated.csv")
    (place / "negated.toml").write_text(text)
    out, err = tell(capfd, ["identify", "negated.toml", "--strict"], code=1)
    assert "\nverdict     refuted: negated.csv: the torque of " in out
    assert err == ""
    assert run(["identify", "negated.toml"]) == 0
    capfd.readouterr()
    out, err = tell(capfd, ["doctor", "negated.toml", "--fix", "repaired.toml"])
    assert "has the opposite sign (error " in out
    assert err == "written to repaired.toml\n"
    repaired = (place / "repaired.toml").read_text()
    assert repaired.startswith("# my study\n")
    assert "sign = {tau = [1.0, -1.0]}" in repaired
    document = ask(capfd, ["identify", "repaired.toml", "--strict"])
    assert document["verdict"]["state"] == "trusted"
    assert document["verdict"]["reasons"] == []
    assert document["settings"]["logs"][0]["repaired"] == ["sign = { tau = [1, -1] }"]
    assert all(r["findings"] == [] for r in ask(capfd, ["doctor", "repaired.toml"]))
    # without a study one is written
    given = ["doctor", "--robot", "arm.urdf", "--log", "negated.csv"]
    assert "\nnext: --fix study.toml writes a study" in tell(capfd, given).err
    assert tell(capfd, [*given, "--fix", "own.toml"]).err.endswith("written to own.toml\n")
    assert "sign = {tau = [1.0, -1.0]}" in (place / "own.toml").read_text()
    assert run([*given, "--fix", "negated.csv"]) == 2
    assert "is an input" in capfd.readouterr().err
    assert run(["doctor", "--robot", "arm.urdf", "--log", "a.csv", "--fix", "none.toml"]) == 2
    assert "nothing was found that a study can repair" in capfd.readouterr().err
    assert not (place / "none.toml").exists()


def test_the_doctor_mends_a_column_of_times(place, capfd):
    """A clock that is wrong by a factor that is that of no unit: its rate is stated, and counts."""
    write_log(place / "slow.csv")
    head, *rows = (place / "slow.csv").read_text().splitlines()
    assert head.startswith("time,")
    rows = [f"{4.0 * float(time)!r},{rest}" for time, _, rest in (r.partition(",") for r in rows)]
    (place / "slow.csv").write_text("\n".join([head, *rows, ""]))
    (place / "slow.toml").write_text(STUDY.replace("a.csv", "slow.csv"))
    out, _ = tell(capfd, ["doctor", "slow.toml", "--fix", "quick.toml"])
    assert "time runs 4 times as fast as the log says" in out
    assert f"set rate = {RATE:g} and clock = 'rate' in [[log]]" in " ".join(out.split())
    repaired = (place / "quick.toml").read_text()
    assert f"rate = {RATE}" in repaired
    assert 'clock = "rate"' in repaired
    (report,) = ask(capfd, ["doctor", "quick.toml"])
    assert (report["findings"], report["signs"]) == ([], [])


def test_numbers_that_are_none_are_null_in_json(place, capfd, monkeypatch):
    def examine_study(study, progress):
        found = Finding("a.csv", "sign", "has no size", "look", np.nan, np.inf)
        return (Report("a.csv", (found,), (), LogRepair(), {}, {}, None, False),)

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    monkeypatch.setattr("dynident.study.doctor.doctor", examine_study)
    assert run(["doctor", "s.toml", "--json"]) == 0
    (report,) = json.loads(capfd.readouterr().out, parse_constant=refuse)
    assert report["findings"][0]["error_percent"] is None
    base = base_parameters(build_idim(toy.arm(1)))
    lines = MessageLines(sys.stdout, as_json=True)
    none = np.full(base.count, np.nan)
    for _ in range(2):
        lines.write(EstimateRow(1.0, 5, none, np.full(base.count, np.inf), None, None, base))
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 2
    assert set(json.loads(lines[0], parse_constant=refuse)["std"].values()) == {None}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["doctor"], ("give a study", "see --help")),
        (["doctor", "s.toml", "--log", "a.csv"], ("either a study",)),
        (["doctor", "s.toml", "--fix", "a_directory/x.toml"], ("in the folder of s.toml",)),
        (["doctor", "s.toml", "--fix", "s.toml"], ("s.toml",)),
        (["doctor", "no.toml"], ("no.toml",)),
    ],
)
def test_the_doctor_refuses(refused, argv, words):
    refused(argv, *words)


@pytest.mark.parametrize("command", ["doctor", "select"])
def test_no_study_is_written_over_another(refused, place, command):
    (place / "mine.toml").write_text("# edited\n")
    words = "mine.toml: is there already; choose another name with --fix"
    refused([command, "s.toml", "--fix", "mine.toml"], words)


def test_the_doctor_repairs_nothing_where_nothing_is_wrong(place, capfd):
    out, err = tell(capfd, ["doctor", "s.toml", "--fix", "same.toml"], code=2)
    assert out.count("none: no alternative hypothesis explains the log clearly better") >= 1
    assert "nothing was found" in err
    assert not (place / "same.toml").exists()


@pytest.mark.long
def test_the_doctor_repairs_the_rate_of_a_log_and_the_mounting_of_the_robot(place, capfd):
    rows = np.loadtxt("a.csv", delimiter=",", skiprows=1)[:, 1:]
    names = Path("a.csv").read_text().partition("\n")[0].split(",")[1:]
    write_table("quick.csv", names, rows)
    other = '[[log]]\nfiles = "b.csv"\nuse = "validate"\n[prepare]'
    quick = f'"quick.csv"\nrate = {2.0 * RATE}'
    text = STUDY.replace('"a.csv"', quick).replace("[prepare]", other)
    (place / "quick.toml").write_text(text)
    assert run(["doctor", "quick.toml", "--fix", "slow.toml"]) == 0
    assert "time runs 0.5 times as fast as the log says" in capfd.readouterr().out
    assert tomllib.loads((place / "slow.toml").read_text())["log"][0]["rate"] == RATE

    text = STUDY.replace('"arm.urdf"', '"arm.urdf"\ngravity = [0.0, 0.0, 9.81]')
    (place / "hanging.toml").write_text(text.replace("[prepare]", other))
    assert run(["doctor", "hanging.toml", "--fix", "standing.toml"]) == 0
    assert "gravity is along [0, 0, -9.81]" in capfd.readouterr().out
    assert tomllib.loads((place / "standing.toml").read_text())["robot"]["gravity"][2] == -9.81


def test_base_prints_what_algorithms_choose_and_what_logs_tell(stocked, capsys, monkeypatch):
    monkeypatch.chdir(stocked)
    usual = ask(capsys, ["base", "arm.urdf"])
    for by in ("svd", "qr", "rref"):
        own = ask(capsys, ["base", "arm.urdf", "--by", by])
        assert own["base_count"] == usual["base_count"]
    assert "b1 " in tell(capsys, ["base", "arm.urdf", "--by", "svd"]).out
    given = ["base", "arm.urdf", "--log", "a.csv", "--bandwidth", "5"]
    both = tell(capsys, given).out
    assert "Izz1 + " in both
    assert f"{usual['base_count']} of {usual['base_count']} base parameters" in both
    flags = ask(capsys, given)
    assert ask(capsys, ["base", "arm.urdf", "--study", "s.toml"]) == flags
    still = ask(capsys, ["base", "arm.urdf", "--log", "still.csv", "--bandwidth", "5"])
    assert still["count"] < still["base_count"]
    assert {"fv1", "fv2"} <= set(still["unseen"])


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("dynident id", ["identify"]),
        ("dynident identify --fri", ["--friction"]),
        ("dynident doctor --fi", ["--fix"]),
    ],
)
def test_a_shell_completes_commands_and_flags(typed, offered, monkeypatch, capsys):
    monkeypatch.setenv("_DYNIDENT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    monkeypatch.setattr("sys.argv", ["dynident"])
    with pytest.raises(SystemExit) as left:
        raise SystemExit(run([]))
    assert left.value.code == 0
    assert capsys.readouterr().out.split() == offered
