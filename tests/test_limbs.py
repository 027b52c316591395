"""Force/torque sensors in the chain: their wrench beside the joints' torques, and a tool alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest
import toy
from commands import tell
from floating import solo
from robots import pin_model, states, urdf
from thin import first
from toy import motion

import dynident as di
from dynident.cli import run
from dynident.consistency.gyration import LENGTH, list_gyrations
from dynident.control.controller import pd
from dynident.control.reference import quintic
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import find_smallest_eigenvalue
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.contacts import map_wrench_to_joints
from dynident.dynamics.idim import Idim, build_idim
from dynident.dynamics.limbs import carry_limb
from dynident.estimators.closed_loop import Simulation
from dynident.online.tracker import refuse_untrackable
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.robot.contacts import ContactSpec
from dynident.robot.cut import cut_off_limb
from dynident.robot.geometry import load_link_points
from dynident.robot.model import WRENCH, Gauge, Robot
from dynident.robot.sensing import add_sensors
from dynident.study.doctor import doctor
from dynident.study.simulate import simulate_study
from dynident.study.study import load_study_robot, read_study

RATE = 100.0
BIAS = np.array([3.0, -2.0, 4.0, 0.1, -0.2, 0.3])
NOISE = np.array([0.3, 0.3, 0.3, 0.02, 0.02, 0.02])
DRIVE = {"Ia": 0.1, "fv": 1.0, "fc": 1.5, "off": 0.3}

LINK = """<link name="{}"><inertial><origin xyz="{}"/><mass value="{}"/>
<inertia ixx="{}" iyy="{}" izz="{}" ixy="0" ixz="0.0002" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/>
<origin xyz="{}" rpy="{}"/><axis xyz="{}"/>
<limit lower="-9" upper="9" velocity="20" effort="900"/></joint>"""
ARM = "\n".join(
    [
        '<robot name="arm"><link name="base"/>',
        LINK.format("upper", "0 0 0.2", 4.0, 0.06, 0.06, 0.01),
        LINK.format("fore", "0 0.01 0.15", 2.5, 0.03, 0.03, 0.005),
        LINK.format("flange", "0 0 0.04", 0.8, 0.002, 0.002, 0.001),
        LINK.format("tool", "0.03 0.01 0.08", 1.2, 0.006, 0.005, 0.002),
        JOINT.format("shoulder", "revolute", "base", "upper", "0 0 0", "0 0 0", "0 1 0"),
        JOINT.format("elbow", "revolute", "upper", "fore", "0 0 0.4", "0 0 0", "1 0 0"),
        JOINT.format("wrist", "revolute", "fore", "flange", "0 0 0.3", "0 0 0", "0 0 1"),
        JOINT.format("seat", "fixed", "flange", "tool", "0 0 0.07", "0.2 0 0.5", "1 0 0"),
        '<link name="tip"/>',
        JOINT.format("end", "fixed", "tool", "tip", "0 0 0.1", "0 0 0", "1 0 0"),
        "</robot>",
    ]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limbs")
    (path / "arm.urdf").write_text(ARM)
    # the same, with a joint in the place of the sensor
    (path / "cut.urdf").write_text(ARM.replace('"seat" type="fixed"', '"seat" type="revolute"'))
    return path


@pytest.fixture(scope="module")
def arm(folder: Path) -> Robot:
    return di.load_robot(folder / "arm.urdf")


def at(robot: Robot, *frames: str, contacts: tuple[ContactSpec, ...] = ()) -> Robot:
    """The robot with sensors that hold these links."""
    return add_sensors(robot, contacts, None, frames)


def load_tool(arm: Robot) -> Robot:
    """The tool alone, its sensor biased."""
    return add_sensors(arm, (), "tool", ())


def truth(idim: Idim) -> Array:
    drives = [DRIVE[p.symbol] for p in idim.drives]
    return np.concatenate([idim.nominal[: idim.inertial], drives])


def record(
    robot: Robot, seconds: float = 8.0, seed: int = 0, noise: float = 0.0,
    friction: str = "coulomb-viscous", bias: Array = BIAS,
) -> tuple[Recording, Array]:  # fmt: skip
    """Torques and biased wrenches of a motion; and the parameters behind them."""
    idim = build_idim(robot, friction)
    q, dq, ddq = motion(robot.n, seconds, seed, RATE)
    theta = truth(idim)
    y = idim.torque(theta, q, dq, ddq)
    random = np.random.default_rng(seed)
    y[:, : robot.n] += noise * random.normal(size=(len(q), robot.n))
    wrenches = {}
    for limb, rows in zip(robot.limbs, range(robot.n, y.shape[1], 6), strict=True):
        own = y[:, rows : rows + 6] + bias
        wrenches[limb.contacts[0].name] = own + noise * NOISE * random.normal(size=own.shape)
    log = Recording(
        "twin", RATE, q, y[:, : robot.n], dq, ddq, joints=robot.joint_names, wrenches=wrenches
    )
    return log, theta


def exact(log: Recording) -> di.Samples:
    samples = di.prepare(log, 20.0, position_hz=1e4)
    return replace(samples, q=log.q, dq=log.dq, ddq=log.ddq)


def spreads(problem: Problem, sigma: Array, known: BaseParameters) -> Array:
    """Standard deviations of some combinations of parameters, under errors of these sizes."""
    A = problem.factors.weighted(sigma).A
    rows = np.zeros((known.count, len(problem.idim.names)))
    rows[:, [problem.idim.names.index(name) for name in known.idim.names]] = known.matrix
    T = rows @ np.linalg.pinv(problem.base.matrix)
    return np.sqrt(np.diag(T @ np.linalg.inv(A.T @ A) @ T.T))


# the regressor


def felt(path: Path, joint: str, motion: tuple[Array, Array, Array]) -> Array:
    """Pinocchio's force on what a joint moves, in its frame, along a motion."""
    model = pin_model(path)
    data, found = model.createData(), []
    for q, dq, ddq in zip(*motion, strict=True):
        pin.rnea(model, data, q, dq, ddq)
        found.append(data.f[model.getJointId(joint)].vector.copy())
    return np.array(found)


@pytest.mark.parametrize(("frame", "joint"), [("tool", "seat"), ("fore", "elbow")])
def test_the_wrench_is_that_of_pinocchio(folder, arm, frame, joint):
    robot = at(arm, frame)
    idim = build_idim(robot, "none")
    q, dq, ddq = states(arm, 20)
    W = idim.regressor(q, dq, ddq)
    still = tuple(np.pad(each, ((0, 0), (0, 1))) for each in (q, dq, ddq))
    wrench = felt(folder / "cut.urdf", joint, still)
    size = np.abs(wrench).max()
    np.testing.assert_allclose((W @ idim.nominal)[:, 3:], wrench, atol=1e-10 * size)
    np.testing.assert_allclose(
        idim.torque(idim.nominal, q, dq, ddq), W @ idim.nominal, atol=1e-10 * size
    )
    bare = build_idim(arm, "none").regressor(q, dq, ddq)
    np.testing.assert_array_equal(W[:, :3, :30], bare)
    assert not np.any(W[:, :3, 30:])


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "frame", "joint"),
    [("ur5", "forearm_link", "elbow_joint"), ("panda", "panda_link4", "panda_joint4")],
)
def test_the_wrench_is_that_of_pinocchio_in_robots_of_makers(name, frame, joint):
    robot = di.load_robot(urdf(name))
    idim = build_idim(at(robot, frame), "none")
    motion = states(robot, 20)
    wrench = felt(urdf(name), joint, motion)
    found = idim.torque(idim.nominal, *motion)[:, robot.n :]
    np.testing.assert_allclose(found, wrench, atol=1e-10 * np.abs(wrench).max())


def test_a_floating_carrier_feels_the_wrench_of_its_limb():
    robot = di.load_robot(urdf("solo12"), floating=True)
    whole = at(robot, "FL_UPPER_LEG")
    idim = build_idim(whole, "none")
    assert idim.rows == robot.dof + 6
    q, dq, ddq = states(robot, 5)
    model = pin_model(urdf("solo12"), floating=True)
    data = model.createData()
    found = idim.torque(idim.nominal, q, dq, ddq)
    joint = model.getJointId("FL_HFE")
    for k in range(len(q)):
        pin.rnea(model, data, q[k], dq[k], ddq[k])
        np.testing.assert_allclose(found[k, -6:], data.f[joint].vector, atol=1e-10)


# parameters


def test_a_sensor_in_a_body_has_a_body_of_its_own(arm):
    whole = at(arm, "tool")
    assert whole.links == ("upper", "fore", "flange", "tool")
    assert whole.numbers == (1, 2, 3, 4)
    assert (whole.bodies, whole.equations) == (3, 9)
    np.testing.assert_allclose(whole.nominal[3, :4], [1.2, 0.036, 0.012, 0.096])
    (rest,) = build_idim(whole).rests(build_idim(whole).nominal)
    np.testing.assert_allclose(rest[:4], [0.8, 0.0, 0.0, 0.032], atol=1e-12)
    model, theta = build_idim(whole).without_sensors(build_idim(whole).nominal)
    assert model.robot.links == arm.links
    np.testing.assert_array_equal(theta, build_idim(arm).nominal)
    # at a joint there is nothing to split
    assert at(arm, "fore").links == arm.links
    assert at(arm, "fore", "tool").equations == 15


def test_of_a_part_that_a_sensor_holds_no_shape_is_told():
    whole = at(di.load_robot(urdf("ur5")), "tool0")
    assert whole.links[6:] == ("tool0",)
    assert list_gyrations(whole)[6].source == LENGTH  # the file has no inertial of it
    with pytest.raises(InputError, match="the part of a body that a sensor holds"):
        load_link_points(whole, "tool0")


@pytest.mark.parametrize(("frame", "more"), [("tool", 10), ("fore", 3)])
def test_base_parameters_are_those_of_joints_and_wrench(arm, frame, more):
    alone = base_parameters(build_idim(arm, "none")).count
    both = base_parameters(build_idim(at(arm, frame), "none"))
    assert both.count == alone + more


@pytest.mark.parametrize("frames", first([("fore", "tool"), ("fore",), ("tool",)]))
def test_joints_and_wrenches_are_one_set_of_parameters(arm, frames):
    log, theta = record(at(arm, *frames))
    problem = Problem(at(arm, *frames), exact(log))
    assert [group.name for group in problem.groups[3:9]] == [f"{frames[0]} {p}" for p in WRENCH]
    assert [group.unit for group in problem.groups[3:9]] == ["N"] * 3 + ["Nm"] * 3
    full = np.concatenate([theta, np.tile(BIAS, len(frames))])
    wanted = problem.base.matrix @ full
    found = np.array(list(toy.solved(problem).values()))
    np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_a_sensor_that_is_turned_and_of_the_other_sign_is_read_as_it_is_stated(arm):
    spec = ContactSpec(name="wrist", frame="fore", rpy=(0.3, -0.2, 0.5), sign=-1, bias=tuple(BIAS))
    log, theta = record(at(arm, "fore"), bias=0.0)
    R = pin.rpy.rpyToMatrix(*spec.rpy)
    own = -log.wrenches["fore"].reshape(-1, 2, 3) @ R
    log = replace(log, wrenches={"wrist": own.reshape(-1, 6) + BIAS})
    problem = Problem(at(arm, "fore", contacts=(spec,)), exact(log))
    found = np.array(list(toy.solved(problem).values()))
    np.testing.assert_allclose(found, problem.base.matrix @ theta, atol=1e-8)


@pytest.mark.parametrize("free", first([("FR", "HL", "HR"), ()]))
def test_a_legged_carrier_stands_on_contacts_measured_or_not(free):
    made = solo(2.0, 200.0)
    whole = add_sensors(made.robot, (), None, ("FL_UPPER_LEG",))
    idim, log = build_idim(whole, "viscous"), made.recording
    base = log.base
    twist, spatial = base.twist, base.acceleration.copy()
    spatial[:, :3] -= np.cross(twist[:, 3:], twist[:, :3])
    pose = np.hstack([base.position, base.orientation])
    motion = tuple(
        np.hstack(pair)
        for pair in zip((pose, twist, spatial), (log.q, log.dq, log.ddq), strict=True)
    )
    (limb,) = idim.structure.sensed_motions
    q, _, _ = carry_limb(idim.tree, whole, limb.robot, motion)
    (foot,) = limb.robot.contacts[1:]
    borne = map_wrench_to_joints(limb.tree, limb.robot, foot, q, log.wrenches["FL"])
    wrench = idim.torque(made.theta, *motion)[:, -6:] - borne[:, :6] + BIAS
    kept = {name: own for name, own in log.wrenches.items() if name not in free}
    log = replace(log, wrenches={**kept, "FL_UPPER_LEG": wrench})
    samples = di.prepare(log, 20.0, position_hz=1e4, derivatives="measured")
    if free:
        touching = {name: np.ones(len(log.q), dtype=bool) for name in free}
        samples = replace(samples, touching=touching)
    problem = Problem(whole, samples, "viscous")
    assert len(problem.groups) > whole.equations or not free
    found = np.array(list(toy.solved(problem).values()))
    wanted = problem.base.matrix @ np.concatenate([made.theta, BIAS])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    unsensed = replace(samples, wrenches={"FL_UPPER_LEG": wrench}, touching={})
    with pytest.raises(InputError, match="which acts beyond sensor FL_UPPER_LEG"):
        Problem(whole, unsensed, "viscous")


def test_logs_with_a_wrench_and_without_mix(arm):
    whole = at(arm, "fore")
    log, theta = record(whole)
    other = replace(record(whole, seed=1)[0], wrenches={})
    problem = Problem(whole, [exact(log), exact(other)])
    assert [each.missing for each in problem.base.observed] == [(), ("fore",)]
    found = np.array(list(toy.solved(problem).values()))
    np.testing.assert_allclose(
        found, problem.base.matrix @ np.concatenate([theta, BIAS]), atol=1e-8
    )
    assert problem.factors.counts[0] > 1.5 * problem.factors.counts[3]


def test_without_torques_the_wrench_is_fitted_alone(arm):
    whole = at(arm, "tool")
    log, theta = record(whole)
    blind = exact(replace(log, torque="none", tau=np.zeros_like(log.tau)))
    problem = Problem(whole, blind)
    assert problem.base.count == 16
    found = np.array(list(toy.solved(problem).values()))
    np.testing.assert_allclose(
        found, problem.base.matrix @ np.concatenate([theta, BIAS]), atol=1e-8
    )


def test_the_wrench_sharpens_what_both_feel_and_nothing_else(arm):
    """A sensor at a joint and its bodies; of one inside a body the joints feel the sum alone."""
    sigma = np.concatenate([np.ones(3), NOISE])
    ratio = {}
    for frame in ("fore", "tool"):
        whole = at(arm, frame)
        log = exact(record(whole)[0])
        alone = Problem(arm, log)
        both = spreads(Problem(whole, log), sigma, alone.base)
        ratio[frame] = both / spreads(alone, sigma[:3], alone.base)
    assert np.max(ratio["fore"]) < 1.0 + 1e-9
    assert ratio["fore"][alone.base.names.index("mx3")] < 0.1
    assert np.median(ratio["fore"]) < 0.6
    np.testing.assert_allclose(ratio["tool"], 1.0, rtol=1e-6)


def test_what_a_sensor_leaves_of_a_body_is_a_body(folder):
    """A flange of nearly nothing, which noise would have less than nothing left of."""
    path = folder / "light.urdf"
    path.write_text(ARM.replace('mass value="0.8"', 'mass value="0.001"').replace(
        'ixx="0.002" iyy="0.002" izz="0.001"', 'ixx="2.5e-6" iyy="2.5e-6" izz="2e-6"'
    ).replace('ixz="0.0002" iyz="0"/></inertial></link>\n<link name="tool', 'ixz="0" iyz="0"/>'
              '</inertial></link>\n<link name="tool'))  # fmt: skip
    whole = at(di.load_robot(path), "tool")
    log, _ = record(whole, 4.0, noise=3.0)
    problem = Problem(whole, di.prepare(log, 20.0))
    fit = di.identify(problem, "pc-idim-ls", prior="none", doctor=False)
    assert fit.consistent
    rest = fit.idim.rests(fit.theta)
    assert find_smallest_eigenvalue(rest).min() > 0.0
    assert any("flange without tool" in name for name in fit.estimate.active)


# from end to end


def write_log(path: Path, log: Recording, torques: bool = True) -> None:
    joints = log.joints or ()
    columns = {f"q_{name}": log.q[:, k] for k, name in enumerate(joints)}
    if torques:
        columns |= {f"tau_{name}": log.tau[:, k] for k, name in enumerate(joints)}
    for name, wrench in log.wrenches.items():
        columns |= {f"{part}_{name}": wrench[:, k] for k, part in enumerate(WRENCH)}
    table = np.column_stack([np.arange(len(log.q)) / RATE, *columns.values()])
    header = ",".join(["time", *columns])
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.12g")


@cache
def files(folder: Path) -> tuple[str, ...]:
    """Two logs of the arm with sensors, and the tool's without torques."""
    whole = at(di.load_robot(folder / "arm.urdf"), "fore", "tool")
    for k in range(2):
        log, _ = record(whole, 8.0, k, 1.0)
        write_log(folder / f"run{k}.csv", log)
        write_log(
            folder / f"tool{k}.csv", replace(log, wrenches={"tool": log.wrenches["tool"]}), False
        )
    return tuple(str(folder / f"{name}{k}.csv") for name in ("run", "tool") for k in range(2))


@pytest.mark.long
def test_a_robot_with_its_limb_from_the_command_line(folder, capsys):
    one, two, _, _ = files(folder)
    out = folder / "out"
    flags = ["--robot", str(folder / "arm.urdf"), "--bandwidth", "10", "--sensor", "fore"]
    assert (
        run(["identify", *flags, "--log", one, "--validate", two, "--as-given", "-o", str(out)])
        == 0
    )
    shown = capsys.readouterr().out
    assert "fz0_fore" in shown
    document = json.loads((out / "result.json").read_text())
    assert {f"fore {part}" for part in WRENCH} < {
        joint["name"] for joint in document["fit"]["identification"][0]["joints"]
    }
    fit = di.read_result(out / "result.json")
    assert [limb.base_link for limb in fit.robot.limbs] == ["fore"]
    assert fit.verdict.state == "trusted"
    theta = truth(build_idim(fit.robot))
    off = fit.estimate.beta - fit.base.matrix @ np.concatenate([theta, BIAS])
    assert np.mean(np.abs(off) < 1.96 * fit.estimate.covariance.std) > 0.8
    assert "<h2" in (out / "report.html").read_text()
    assert "fore mz" in tell(capsys, ["validate", str(out / "result.json"), two]).out
    wrench = fit.torque(*np.zeros((3, 3)))[3:]  # upright, at rest
    np.testing.assert_allclose(wrench[2], 9.81 * np.sum(fit.phi[1:, 0]), rtol=1e-9)
    assert fit.inverse_dynamics(*np.zeros((3, 3))).shape == (3,)
    exported = di.load_robot(out / "model.urdf")
    np.testing.assert_allclose(exported.nominal, fit.phi, rtol=1e-6, atol=1e-9)


@pytest.mark.long
def test_factors_are_collected_with_a_sensor_in_the_chain(folder, capsys, monkeypatch):
    one, two, tool, _ = files(folder)
    monkeypatch.chdir(folder)
    own = ["--bandwidth", "10", "--sensor", "fore"]
    assert run(["collect", "arm.urdf", one, two, *own, "-o", "factors"]) == 0
    found = di.identify_factors(folder / "factors", "wls")
    assert [each.name for each in found.residuals][3:] == [f"fore {part}" for part in WRENCH]
    robot = at(di.load_robot("arm.urdf"), "fore")
    logs = [di.prepare(di.read_log(log, robot), bandwidth=10.0) for log in (one, two)]
    direct = di.identify(Problem(robot, logs), "wls", doctor=False)
    assert np.allclose(found.estimate.beta, direct.estimate.beta, rtol=1e-6, atol=1e-8)
    assert run(["collect", "arm.urdf", tool, "--beyond", "tool", "-o", "limb"]) == 0
    assert di.identify_factors("limb", "wls").robot.base_link == "tool"
    (folder / "whole.toml").write_text(f'[robot]\nfile = "arm.urdf"\n[[log]]\nfiles = "{one}"\n')
    capsys.readouterr()
    assert run(["collect", "whole.toml", "--sensor", "fore", "-o", "x"]) == 2
    assert (
        "already describes its robot; --floating, --contact, --beyond and --sensor"
        in capsys.readouterr().err
    )


def test_a_urdf_has_what_a_sensor_holds_in_its_own_link(arm, folder):
    whole = at(arm, "tool")
    log, _ = record(whole, 4.0, noise=1.0)
    fit = di.identify(Problem(whole, exact(log)), doctor=False)
    path = folder / "exported.urdf"
    path.write_bytes(fit.model_urdf()[0])
    again = at(di.load_robot(path), "tool")
    np.testing.assert_allclose(again.nominal, fit.phi, rtol=1e-6, atol=1e-9)
    assert abs(again.nominal[3, 0] - 1.2) < 0.01
    model = mujoco.MjModel.from_xml_string(fit.model_mjcf()[0].decode())
    assert model.body("flange").mass == pytest.approx(fit.phi[2, 0])


def test_a_first_study_of_a_tool_alone(folder, capsys, monkeypatch):
    _, _, one, two = files(folder)
    monkeypatch.chdir(folder)
    flags = ["--robot", "arm.urdf", "--beyond", "tool", "--bandwidth", "10"]
    assert run(["init", *flags, "--log", one, "--log", two, "-o", "first.toml"]) == 0
    said = capsys.readouterr()
    assert re.search(r"^shoulder +\S+ +\S+ .* rad/s$", said.out, re.M)
    assert "[controller]" not in said.err
    text = (folder / "first.toml").read_text()
    assert "# The doctor takes whole robots: ask it about these logs without beyond." in text
    assert 'beyond = "tool"' in text
    assert run(["identify", "first.toml", "--as-given"]) == 0
    robot = load_tool(di.load_robot("arm.urdf"))
    assert len(di.read_log(one, robot).plot(robot=robot)) == 3


def test_a_tool_alone_from_a_study(folder, capsys):
    _, _, one, two = files(folder)
    study = folder / "tool.toml"
    study.write_text(
        f'[robot]\nfile = "arm.urdf"\nbeyond = "tool"\n[[log]]\nfiles = "{one}"\n'
        f'[[log]]\nfiles = "{two}"\nuse = "validate"\n[prepare]\nbandwidth = 10.0\n'
    )
    out = folder / "tool"
    assert run(["identify", str(study), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "% of the torques" in said  # no law stands for torques
    assert re.search(r"^tool +\S+ +\S+$", said, re.M)  # a line of a body that no joint moves
    fit = di.read_result(out / "result.json")
    assert fit.robot.n == 0
    assert fit.base.names[:10] == tuple(
        f"{s}0" for s in ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m")
    )
    assert fit.verdict.state == "trusted"
    wanted = np.concatenate([fit.robot.nominal[0], BIAS])
    std = np.sqrt(np.diag(fit.estimate.covariance.matrix))
    off = fit.estimate.beta - fit.base.matrix @ wanted
    assert np.mean(np.abs(off) < 1.96 * std) > 0.7
    assert abs(fit.phi[0, 0] - 1.2) < 0.01
    recording = di.read_log(two, fit.robot)
    assert fit.prepare(recording).bandwidth == (10.0, 10.0, 10.0)
    assert di.validate(fit, recording)[0].overall_percent < 5.0
    assert run(["validate", str(out / "result.json"), two]) == 0
    tool = di.load_robot(out / "model.urdf")
    np.testing.assert_allclose(cut_off_limb(tool, "tool").nominal, fit.phi, rtol=1e-6, atol=1e-9)


def test_the_prior_of_a_limb_has_all_that_hangs_there(arm):
    np.testing.assert_allclose(cut_off_limb(arm, "tool").nominal[0, 0], 1.2)
    np.testing.assert_allclose(cut_off_limb(arm, "flange").nominal[0], arm.nominal[2])
    np.testing.assert_allclose(cut_off_limb(arm, "fore").nominal[:, 0], [2.5, 2.0])


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('beyond = "tool"\nsensor = "fore"', "robot.beyond is the limb alone"),
        ('sensor = "tol"', "there is no link 'tol' to cut at; did you mean 'tool'"),
        ('sensor = ["fore", "fore"]', "sensor fore is there twice"),
        ('sensor = ["tool", "seat"]', "sensor tool is there twice"),
        ('sensor = ["tool", "tip"]', "sensors tool and tip are in one body"),
    ],
)
def test_sensors_that_cannot_be_are_refused(folder, arm, keys, words):
    study = folder / "refused.toml"
    study.write_text(f'[robot]\nfile = "arm.urdf"\n{keys}\n')
    with pytest.raises(InputError, match=words):
        load_study_robot(read_study(study, use=None))


@pytest.mark.parametrize(
    ("method", "frame", "words"),
    [
        (
            "ml",
            "fore",
            r"ml propagates no rows of the wrench at fore; leave sensor out of \[robot\]",
        ),
        ("ml", None, "ml does not propagate noise through the joints that carry a tool"),
    ],
)
def test_methods_say_what_they_do_not_know_of_sensors(arm, method, frame, words):
    log, _ = record(at(arm, frame or "tool"))
    robot = at(arm, frame) if frame else load_tool(arm)
    with pytest.raises(InputError, match=words):
        di.identify(Problem(robot, di.prepare(log, 10.0), "viscous"), method, doctor=False)


def test_what_is_made_for_joints_alone_refuses_sensors(arm, folder):
    whole = at(arm, "fore")
    with pytest.raises(InputError, match=r"leave sensor out of \[robot\]"):
        di.excite(whole, "viscous", acceleration=10.0, collision=False)
    base = base_parameters(build_idim(whole, "viscous"))
    with pytest.raises(InputError, match="a tracker follows no rows of the wrench at fore"):
        refuse_untrackable(base, np.ones(3), RATE)
    log, _ = record(whole)
    loop = Simulation(
        pd(900.0, 60.0, n=3), references=(quintic(RATE, [[0.0] * 3] * 2, [0.0, 8.0]),)
    )
    with pytest.raises(InputError, match="a simulated loop predicts no rows of the wrench at fore"):
        di.identify(Problem(whole, di.prepare(log, 10.0)), "cloe", simulation=loop, doctor=False)
    study = folder / "simulated.toml"
    study.write_text(
        '[robot]\nfile = "arm.urdf"\nsensor = "fore"\n'
        '[controller]\nkind = "pd"\nkp = 1.0\nkd = 1.0\n'
    )
    with pytest.raises(InputError, match="simulate writes no rows of the wrench at fore"):
        simulate_study(read_study(study, use=None))


@pytest.mark.long
def test_the_doctor_looks_at_the_joints_of_a_robot_with_sensors(folder):
    one, _, _, _ = files(folder)
    study = folder / "sick.toml"
    study.write_text(
        f'[robot]\nfile = "arm.urdf"\nsensor = "fore"\n[[log]]\nfiles = "{one}"\nsign = '
        "{ tau = [1, -1, 1] }\n[prepare]\nbandwidth = 10.0\n"
    )
    (report,) = doctor(read_study(study))
    assert any("elbow" in found.words for found in report.findings)


@pytest.mark.long
@pytest.mark.parametrize("frame", ["fore", "tool"])
def test_intervals_cover(arm, frame):
    """Over 60 logs; in all, one parameter in twenty is outside."""
    whole, inside = at(arm, frame), []
    for seed in range(60):
        log, theta = record(whole, 10.0, seed, 1.0, bias=BIAS)
        fit = di.identify(Problem(whole, exact(log)), "wls", doctor=False)
        wanted = fit.base.matrix @ np.concatenate([theta, BIAS])
        inside.append(np.abs(fit.estimate.beta - wanted) < 1.96 * fit.estimate.covariance.std)
    assert 0.92 < np.mean(inside) < 0.975


@pytest.mark.long
def test_intervals_of_a_tool_cover(arm):
    limb = load_tool(arm)
    inside = []
    for seed in range(60):
        log, _ = record(at(arm, "tool"), 10.0, seed, 1.0)
        fit = di.identify(Problem(limb, exact(log), "none"), "wls", doctor=False)
        wanted = fit.base.matrix @ np.concatenate([limb.nominal[0], BIAS])
        inside.append(np.abs(fit.estimate.beta - wanted) < 1.96 * fit.estimate.covariance.std)
    assert 0.92 < np.mean(inside) < 0.975


def strained_arm(place):
    gauge = Gauge("link torque", "strain", (("torque", "Nm"),), place)
    return replace(toy.arm(3), gauges=(gauge,))


@pytest.mark.parametrize("place", [0, 1])
def test_another_kind_of_sensor_is_a_row_like_any(place):
    robot = strained_arm(place)
    idim, bare = build_idim(robot), build_idim(toy.arm(3))
    log, theta = toy.log(toy.arm(3), 4.0, 0.3)
    motion = log.q[:200], log.dq[:200], log.ddq[:200]
    bodies = bare.join(bare.split(theta)[0])
    expected = bare.torque(bodies, *motion)[:, place]
    assert np.allclose(idim.torque(theta, *motion)[:, 3], expected, atol=1e-12)
    assert np.allclose(idim.regressor(*motion) @ theta, idim.torque(theta, *motion), atol=1e-10)
    felt = bare.torque(bodies, log.q, log.dq, log.ddq)[:, place : place + 1]
    felt = felt + np.random.default_rng(2).normal(size=felt.shape) * 0.1
    problem = Problem(robot, prepare(replace(log, wrenches={"strain": felt}), 5.0))
    assert [(each.name, each.unit) for each in problem.groups][3:] == [("strain torque", "Nm")]
    fit = di.identify(problem, "wls", doctor=False)
    # the drive's rotor is told from the links that turn with it
    assert f"Ia{place + 1}" in fit.base.names
    assert fit.base.count == di.base_parameters(bare).count + 1
    assert abs(fit.drive_parameters(place)["Ia"] - 0.3) < 0.03
    assert [joint.name for joint in fit.identification[0].joints][-1] == "strain torque"


def test_a_log_without_its_signal_or_with_another_shape():
    robot = strained_arm(1)
    log, _ = toy.log(toy.arm(3), 4.0, 0.3)
    problem = Problem(robot, prepare(log, 5.0))
    assert problem.base.count == di.base_parameters(build_idim(toy.arm(3))).count
    wide = prepare(replace(log, wrenches={"strain": np.zeros((len(log.q), 2))}), 5.0)
    with pytest.raises(InputError, match="sensor strain has 2 columns, but 1 rows"):
        Problem(robot, wide)
