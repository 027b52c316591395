"""Every command on a robot with a closed chain: it does its work, or says that it cannot."""

from __future__ import annotations

import json

import numpy as np
import pytest
from linkage_logs import plan_motion
from linkages import load_linkage

from dynident.cli import COMMANDS, run
from dynident.dynamics.idim import build_idim
from dynident.robot.closure import Closure

STUDY = """[robot]
file = "palletiser.xml"
friction = "viscous"
[[log]]
files = "run.csv"
[[log]]
files = "other.csv"
use = "validate"
[prepare]
bandwidth = 6.0
"""
LOOP = """[robot]
file = "palletiser.xml"
[controller]
kind = "pd"
kp = 400.0
kd = 20.0
[reference]
kind = "bang-bang"
rate = 200.0
points = [[0.0, 0.0, 0.0, 0.0, 0.0], [0.2, 0.2, 0.2, 0.2, 0.2]]
velocity = 1.0
acceleration = 4.0
smoothing = 0.5
[noise]
torque = 0.02
"""
LIMITS = "--acceleration 9 --speed 2 --torque 60 --sigma 1 --no-collision --starts 1 --iterations 5"
TAKE = (
    "validate out/result.json other.csv",
    "base palletiser.xml",
    "export out/result.json --mjcf again.xml",
    "export out/result.json --c model.c",
    "compare study.toml",
    "identify study.toml --method rls -o new",
    "init --robot palletiser.xml --log run.csv -o first.toml",
    "collect study.toml -o new.col",
    "doctor study.toml",
    "select study.toml",
    "payload out/result.json --log other.csv --link fore",
    "simulate loop.toml -o again.csv",
    "simulate heavy.toml -o new.csv",
    "identify study.toml --friction load -o new",
    "replay loop.toml made.csv",
    "track track.toml",
    f"excite palletiser.xml -o new {LIMITS}",
    f"protocol palletiser.xml -o new {LIMITS} --sweeping 10 --period 4 --questions drives",
)
REFUSE = (
    "export out/result.json --urdf model.urdf",
    "export out/result.json --sdf model.sdf",
    "replay loop.toml made.csv --engine pinocchio",
    "excite palletiser.xml -o new --trajectory cartesian --acceleration 9 --no-collision",
    "resonance study.toml --joint 1 --band 1 20",
    "identify study.toml --method ml -o new",
    "identify study.toml --method static -o new",
    "identify study.toml --method smooth -o new",
)
OF_OTHERS = {"diff", "fleet", "repair", "report", "reproduce", "sample", "sweep", "zoo"}
"""Commands of results, or of several studies: they do nothing else with a robot."""


def write_log(path, robot, seed):
    """Torques of the model along a motion, with noise; columns of drives alone."""
    idim, rng = build_idim(robot, "viscous"), np.random.default_rng(seed)
    t, motion = plan_motion(robot, 3.0, 200.0, seed)
    theta = idim.nominal
    for k, each in enumerate(idim.drives, idim.inertial):
        theta[k] = {"fv": 0.2, "Ia": 0.04}.get(each.symbol, 0.0)
    tau = idim.torque(theta, *motion) + 0.02 * rng.normal(size=motion[0].shape)
    own = np.flatnonzero(~robot.passive)
    names = [robot.joint_names[k] for k in own]
    head = ["time", *(f"q_{n}" for n in names), *(f"tau_{n}" for n in names)]
    table = np.column_stack([t, motion[0][:, own], tau[:, own]])
    np.savetxt(path, table, delimiter=",", header=",".join(head), comments="", fmt="%.9g")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("commands")
    robot = load_linkage("palletiser.xml", found)
    for seed, name in enumerate(("run.csv", "other.csv")):
        write_log(found / name, robot, seed)
    (found / "study.toml").write_text(STUDY)
    (found / "loop.toml").write_text(LOOP)
    (found / "heavy.toml").write_text(
        LOOP.replace("kd = 20.0", "kd = 20.0\ncompensation = 'gravity'")
    )
    assert call(found, "simulate loop.toml -o made.csv") == 0
    (found / "track.toml").write_text(STUDY + "[track]\n")
    assert call(found, "identify study.toml -o out") == 0
    return found


def call(folder, line):
    """The exit code of a command with names of files in a folder."""
    named = ("out", "new")
    return run([str(folder / w) if "." in w or w in named else w for w in line.split()])


def test_every_command_is_asked():
    asked = {line.split()[0] for line in (*TAKE, *REFUSE)}
    assert asked | OF_OTHERS == set(COMMANDS)


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(e, marks=pytest.mark.long) if e.startswith(("compare", "init")) else e
        for e in TAKE
    ],
)
def test_commands_that_take_closed_chains(line, folder, capsys):
    code = call(folder, line)
    assert code == 0, capsys.readouterr()


@pytest.mark.parametrize("line", REFUSE)
def test_commands_that_do_not_take_closed_chains_say_so(line, folder, capsys):
    before = sorted(folder.rglob("*"))
    code = call(folder, line)
    said = capsys.readouterr().err.strip().splitlines()
    assert code == 2, said
    assert "needs a tree, but the robot has a closed chain (bar)" in said[-1]
    assert sum(each.startswith("error") for each in said) == 1
    assert sorted(folder.rglob("*")) == before


def test_a_stream_of_driven_joints_is_followed_as_a_log_is(folder, capsys, monkeypatch):
    capsys.readouterr()
    line = "--start out/result.json"
    assert call(folder, f"track other.csv {line}") == 0
    log = capsys.readouterr().out
    with open(folder / "other.csv") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert call(folder, f"track - {line}") == 0
    piped = capsys.readouterr().out
    found, wanted = (
        np.genfromtxt(each.splitlines(), delimiter=",", skip_header=1)[-1] for each in (piped, log)
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)


def test_the_band_of_draws_is_of_joints_with_torque(folder, capsys):
    line = "sample out/result.json -n 32 --json --log other.csv"
    capsys.readouterr()
    assert call(folder, line) == 0
    (found,) = json.loads(capsys.readouterr().out)["calibration"]
    assert [each["name"] for each in found["joints"]] == ["turn", "shoulder", "crank"]
    assert found["inside_with_noise_percent"] > 85.0


def test_a_result_says_which_joints_are_passive(folder):
    held = json.loads((folder / "out" / "result.json").read_text())
    assert held["robot"]["joints"] == ["turn", "shoulder", "elbow", "crank", "rod"]
    rows = {each["name"]: each for each in held["joints"]}
    assert rows["elbow"]["Ia"] is None
    entries = held["fit"]["validation"][0]["entries"]
    figure = next(each for each in entries if each["rows"] == "all samples")
    errors = {each["name"]: each["rmse"] for each in figure["joints"]}
    assert errors["elbow"] is None
    # the noise below the low-pass of the figures, of some 70 independent values, and the fit's own
    assert errors["crank"] < 1.4 * 0.02 * np.sqrt(2.0 * figure["lowpass_hz"] / 200.0)
    exported = load_linkage("palletiser.xml", folder)
    assert np.abs(Closure(exported).measure(np.array([exported.assembled]))).max() < 1e-12
