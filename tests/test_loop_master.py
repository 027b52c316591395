"""A master arm with a parallelogram, as its owner logs it: motors' positions and currents alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import tell
from linkage_logs import plan_motion

import dynident as di
from dynident.robot.load import load_robot

RATE = 200.0
CURRENT = 0.04
"""Noise of currents [A]."""
BODIES = (
    # joint, parent link, link, placement, axis, mass, centre, inertia (diagonal)
    ("yaw", "ground", "column", "0 0 0.1", "0 0 1", 1.9, "0.01 0 0.05", "6e-3 6e-3 4e-3"),
    ("crank", "column", "lever", "0 0.06 0.1", "0 1 0", 0.5, "0.004 0 -0.03", "8e-4 7e-4 3e-4"),
    ("rod", "lever", "bar", "0 0 -0.09", "0 1 0", 0.25, "0.14 0.01 0.002", "1e-4 1.6e-3 1.6e-3"),
    ("shoulder", "column", "upper", "0 0 0.1", "0 1 0", 0.8, "0.13 0.01 0.004", "8e-4 6e-3 6e-3"),
    ("elbow", "upper", "fore", "0.28 0 0", "0 1 0", 0.6, "0.12 -0.01 0.01", "5e-4 4e-3 4e-3"),
    ("platform", "fore", "frame", "0.3 0 0", "1 0 0", 0.3, "0.02 0.03 0.01", "6e-4 5e-4 7e-4"),
    ("pitch", "frame", "ring", "0.06 0 0", "0 1 0", 0.2, "0.02 0.01 -0.02", "3e-4 3e-4 2e-4"),
    ("swivel", "ring", "yoke", "0 0 0.04", "0 0 1", 0.15, "0.02 0.01 0.01", "2e-4 1e-4 2e-4"),
    ("roll", "yoke", "grip", "0.03 0 0", "1 0 0", 0.1, "0.01 0.004 0.006", "8e-5 7e-5 9e-5"),
)
PASSIVE = ("elbow", "rod")
DRIVEN = tuple(joint for joint, *_ in BODIES if joint not in PASSIVE)
RATIOS = (35.0, 30.0, 1.0, 35.0, 1.0, 25.0, 20.0, 18.0, 8.0)
GAIN = 0.03
"""Of a motor [Nm/A]."""


def write_master() -> str:
    text = '<robot name="master"><link name="ground"/>\n'
    for joint, parent, link, at, axis, mass, com, moments in BODIES:
        ixx, iyy, izz = moments.split()
        text += (
            f'<link name="{link}"><inertial><origin xyz="{com}"/><mass value="{mass}"/><inertia '
            f'ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>\n'
            f'<joint name="{joint}" type="continuous"><parent link="{parent}"/>'
            f'<child link="{link}"/><origin xyz="{at}"/><axis xyz="{axis}"/></joint>\n'
        )
    return text + "</robot>\n"


def write_robot_file() -> str:
    """The parallelogram as a loop; tendons by which the platform's motor turns with the crank."""
    reduction = np.diag(RATIOS)
    reduction[5, 1] = 4.0
    drives = "".join(f'[[drive]]\njoint = "{joint}"\ngain = {GAIN}\n' for joint in DRIVEN)
    return (
        'urdf = "master.urdf"\n[[loop]]\nname = "parallelogram"\nkind = "planar"\n'
        'links = ["bar", "fore"]\nat = [[0.28, 0, 0], [0, 0, -0.09]]\n'
        "axis = [[0, 1, 0], [0, 1, 0]]\n"
        f'passive = ["elbow", "rod"]\n[transmission]\nreduction = {reduction.tolist()}\n{drives}'
    )


STUDY = """[robot]
file = "master.toml"
[[log]]
files = "run.csv"
side = "motor"
[[log]]
files = "held.csv"
side = "motor"
use = "validate"
"""
FRICTION = {"fv": 0.02, "fc": 0.01, "fr": 0.06, "Ia": 0.004, "off": 0.0}


def write_log(path, robot, seconds, seed):
    """Motor positions and currents; friction grows with the cube root of the speed, too."""
    idim, rng = di.build_idim(robot, "cube-root"), np.random.default_rng(seed)
    t, motion = plan_motion(robot, seconds, RATE, seed, reach=0.7, base=0.15)
    theta = idim.nominal
    for k, each in enumerate(idim.drives, idim.inertial):
        passive = robot.passive[each.number - 1]
        theta[k] = 0.002 * (each.symbol == "fv") if passive else FRICTION[each.symbol]
    tau = idim.torque(theta, *motion, width=np.full(robot.n, 1e-3))
    q_m = motion[0] @ robot.drives.reduction.T
    current = np.linalg.solve(robot.drives.reduction.T, tau.T).T / GAIN
    current = current + CURRENT * rng.normal(size=current.shape)
    q_m = np.round(q_m * 4096.0 / (2.0 * np.pi)) * 2.0 * np.pi / 4096.0
    own = robot.driven
    head = ["time", *(f"q_{n}" for n in DRIVEN), *(f"current_{n}" for n in DRIVEN)]
    table = np.column_stack([t, q_m[:, own], current[:, own]])
    np.savetxt(path, table, delimiter=",", header=",".join(head), comments="", fmt="%.9g")
    return motion, tau


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("master")
    (found / "master.urdf").write_text(write_master())
    (found / "master.toml").write_text(write_robot_file())
    (found / "study.toml").write_text(STUDY)
    return found


def test_motors_and_currents_become_joints_and_torques(folder):
    robot = load_robot(folder / "master.toml")
    assert robot.passive.tolist() == [joint in PASSIVE for joint, *_ in BODIES]
    (q, _, _), tau = write_log(folder / "short.csv", robot, 2.0, 5)
    log = di.read_log(folder / "short.csv", robot, side="motor")
    np.testing.assert_allclose(log.q, q, atol=2e-3)
    error = log.tau - tau
    noise = GAIN * CURRENT * np.linalg.norm(robot.drives.reduction, axis=0)
    assert np.all(np.std(error, axis=0)[robot.driven] < 1.2 * noise[robot.driven])
    # shoulder and crank hold the forearm's angle in space between them
    np.testing.assert_allclose(log.q[:, 4], log.q[:, 1] - log.q[:, 3], atol=1e-9)


@pytest.mark.slow
def test_a_study_of_a_master_arm_does_all_that_one_of_a_tree_does(folder, capsys):
    robot = load_robot(folder / "master.toml")
    for name, seconds, seed in (("run.csv", 20.0, 1), ("held.csv", 10.0, 2)):
        write_log(folder / name, robot, seconds, seed)
    study, out = folder / "study.toml", folder / "out"
    said = tell(capsys, ["identify", str(study), "-o", str(out)]).out
    assert "decided" in said
    result = json.loads((out / "result.json").read_text())
    decided = {each["what"]: each for each in result["settings"]["decided"]}
    assert "cube-root" in decided["friction"]["value"]
    assert result["verdict"]["state"] == "trusted"
    assert result["consistent"]
    page = (out / "report.html").read_text()
    assert all(joint in page for joint in DRIVEN)
    held, roll = measure_held_out(result)
    tell(capsys, ["identify", str(study), "-o", str(folder / "given"), "--as-given"])
    given, as_given = measure_held_out(json.loads((folder / "given/result.json").read_text()))
    assert held < given
    assert roll < 0.8 * as_given  # whose friction shows above the noise
    assert held < 2.5  # three times what such an arm repeats to [%]
    assert "nothing" in tell(capsys, ["doctor", str(study)]).out


def measure_held_out(result):
    entries = result["fit"]["validation"][0]["entries"]
    figure = next(each for each in entries if each["rows"] == "all samples")
    errors = {each["name"]: each["relative_error_percent"] for each in figure["joints"]}
    return figure["overall_relative_error_percent"], errors["roll"]
