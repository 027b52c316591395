"""Joints with a spring: rows, base parameters, recovery, evidence, the whole way from a study."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
import toy
from commands import run
from springs import (
    ENCODER,
    RATE,
    TORQUE,
    VALUES,
    elastic_arm,
    full_set,
    periodic,
    shaken,
    share_inside,
    twin,
    write_study,
)

import dynident as di
from dynident.core.errors import InputError
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.elastic import bend_joints
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import attach
from dynident.export.formats import render_c_file
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.robot.load import replace_drives
from dynident.robot.spec import DriveSpec
from dynident.study.calibration import measure_torque_calibration


def test_rows_are_those_of_two_bodies_with_a_spring_between():
    robot = elastic_arm((1, 2), ("position", "torque"))
    idim, rigid = build_idim(robot), build_idim(toy.arm(3), "none")
    rng, theta = np.random.default_rng(1), full_set(idim)
    q, dq, ddq = rng.normal(size=(3, 20, 3))
    bent = np.zeros((5, 20, 3))
    bent[:3, :, :2] = 0.01 * rng.normal(size=(3, 20, 2))
    bent[3:] = bent[:2]
    found = idim.torque(theta, q, dq, ddq, conditions=Conditions(deflection=bent))
    bodies = rigid.torque(rigid.nominal, q, dq, ddq)
    speed = dq + bent[1]
    motor = 0.3 * (ddq + bent[2]) + 2.0 * speed + 3.0 * np.sign(speed) + 0.5
    spring = 3000.0 * bent[0] + 2.0 * bent[1] + 0.4
    assert np.allclose(found[:, :3], motor + bodies, atol=1e-10)
    rows = {gauge.name: own.start for gauge, own in robot.sensed}
    for j in range(2):
        left = bodies[:, j] - spring[:, j]
        assert np.allclose(found[:, rows[f"link_joint_{j + 1}"]], left, atol=1e-10)
        felt = found[:, rows[f"torque_joint_{j + 1}"]]
        assert np.allclose(felt, bodies[:, j] + 0.3, atol=1e-10)
    W = idim.regressor(q, dq, ddq, Conditions(deflection=bent))
    assert np.allclose(W @ theta, found, atol=1e-9)


def test_what_acts_on_the_link_is_in_its_row_and_friction_is_not():
    springs = [attach(0, "spring", {})]
    idim = build_idim(elastic_arm((1,)), elements=springs)
    zero = np.zeros((5, 1, 3))
    W = idim.regressor(*np.full((3, 1, 3), 0.7), Conditions(deflection=zero))[0]
    own = W[:, idim.names.index("ks1")]
    assert np.allclose(own, [0.7, 0.0, 0.0, 0.7])
    assert not np.any(W[3, [idim.names.index(name) for name in ("Ia1", "fv1", "fc1", "off1")]])


@pytest.mark.parametrize("joints", [(1,), (1, 2), (1, 2, 3)])
def test_base_parameters_have_rotors_apart_where_joints_are_elastic(joints):
    """Oracle: bodies as without any rotor, and each drive's and spring's parameters by itself."""
    robot = elastic_arm(joints)
    base, idim = di.base_parameters(build_idim(robot)), build_idim(robot)
    if len(joints) == 3:
        bodies = di.base_parameters(build_idim(toy.arm(3), "none")).count
        assert base.count == bodies + len(idim.drives)
    for j in joints:
        assert {f"Ia{j}", f"K{j}", f"D{j}", f"offs{j}"} <= {*base.names}
    rigid = di.base_parameters(build_idim(toy.arm(3)))
    hidden = sum(f"Ia{j}" not in rigid.names for j in joints)
    assert base.count == rigid.count + 3 * len(joints) + hidden


@pytest.mark.parametrize("link", [("position",), ("torque",), ("position", "torque")])
def test_a_twin_gives_its_parameters_back(link):
    idim = build_idim(elastic_arm((1, 2), link))
    log, theta = twin(idim)
    # torque sensors alone see a link where its motor is: only a stiff spring is none
    if link == ("torque",):
        idim_stiff = build_idim(elastic_arm((1, 2), ("position", "torque")))
        stiff = full_set(idim_stiff)
        stiff[[idim_stiff.names.index(name) for name in ("K1", "K2")]] = 3e7
        motion = periodic(3)
        bent = bend_joints(idim_stiff, stiff, motion, RATE)
        tau = idim_stiff.torque(stiff, *motion, conditions=Conditions(deflection=bent))
        rng = np.random.default_rng(0)
        felt = {f"torque_joint_{j}": tau[:, [2 + 2 * j]] for j in (1, 2)}
        signals = {k: v + TORQUE * rng.normal(size=v.shape) for k, v in felt.items()}
        moved = motion[0] + bent[0]
        noisy = tau[:, :3] + TORQUE * rng.normal(size=moved.shape)
        log = Recording("twin", RATE, moved, noisy, wrenches=signals)
    fit = di.identify(Problem(idim.robot, prepare(log, 6.0)), "wls", doctor=False)
    off = fit.estimate.beta - fit.base.matrix @ theta
    assert np.max(np.abs(off) / fit.estimate.covariance.std) < 4.5
    place = fit.base.names.index("K2") if "position" in link else fit.base.names.index("Ia2")
    assert fit.estimate.covariance.std[place] < 0.02 * fit.estimate.beta[place]


@pytest.mark.long
def test_intervals_cover_in_a_few_runs():
    """The reduced form of benchmarks/elastic.py; hits of one run go together, hence the bounds."""
    assert 0.88 < share_inside(elastic_arm((1, 2))) <= 1.0


@pytest.mark.long
def test_the_verdict_tells_springs_from_stiff_joints():
    idim = build_idim(elastic_arm((1, 2)))
    log, _ = twin(idim)
    other, _ = twin(idim, 1)
    fit = di.identify(
        Problem(idim.robot, prepare(log, 6.0)), validation=[prepare(other, 6.0)], doctor=False
    )
    assert [own.supported for own in fit.springs] == [True, True]
    for own in fit.springs:
        assert own.interval[0] < 1.0 / 3000.0 < own.interval[1]
        assert own.held_out[0].spring < own.held_out[0].stiff <= own.held_out[0].plain
    rng = np.random.default_rng(5)
    wrenches = {k: log.q[:, [j]] for j, k in enumerate(("link_joint_1", "link_joint_2"))}
    noisy = {k: v + ENCODER * rng.normal(size=v.shape) for k, v in wrenches.items()}
    rigid = Problem(idim.robot, prepare(replace(log, wrenches=noisy), 6.0))
    fit = di.identify(rigid, doctor=False)
    assert not any(own.supported for own in fit.springs)
    assert any(
        "do not distinguish its spring from a stiff joint" in r.words for r in fit.verdict.reasons
    )


def test_a_cubic_stiffness_is_one_more_column():
    """Without damping: ``K delta + Kc delta^3`` is solved for the deflection instant by instant."""
    robot = elastic_arm((2,), spring=("cubic",))
    idim, motion = build_idim(robot), periodic(3)
    theta = idim.join(
        robot.nominal, np.array([(VALUES | {"Kc": 4e8})[p.symbol] for p in idim.drives])
    )
    theta[idim.names.index("D2")] = 0.0
    load = idim.torque(idim.join(robot.nominal), *motion)[:, 3] - 0.4
    delta = load / 3000.0
    for _ in range(60):
        delta -= (3000.0 * delta + 4e8 * delta**3 - load) / (3000.0 + 1.2e9 * delta**2)
    w, bent = 2j * np.pi * np.fft.rfftfreq(len(load), 1.0 / RATE), np.zeros((5, len(load), 3))
    for k in range(3):
        bent[k, :, 1] = np.fft.irfft(np.fft.rfft(delta) * w**k, len(load))
    bent[3:] = bent[:2]
    tau = idim.torque(theta, *motion, conditions=Conditions(deflection=bent))
    assert np.allclose(tau[:, 3], 0.0, atol=1e-8)
    rng = np.random.default_rng(4)
    link = {"link_joint_2": motion[0][:, [1]] + ENCODER * rng.normal(size=(len(load), 1))}
    noisy = tau[:, :3] + TORQUE * rng.normal(size=motion[0].shape)
    log = Recording("twin", RATE, motion[0] + bent[0], noisy, wrenches=link)
    fit = di.identify(Problem(robot, prepare(log, 6.0)), "wls", doctor=False)
    values, std = (
        dict(zip(fit.base.names, each, strict=True))
        for each in (fit.estimate.beta, fit.estimate.covariance.std)
    )
    assert abs(values["Kc2"] - 4e8) < 4.0 * std["Kc2"] + 0.02 * 4e8
    assert std["Kc2"] < 0.05 * 4e8
    assert abs(values["K2"] - 3000.0) < 4.0 * std["K2"] + 15.0


@pytest.mark.long
def test_a_torque_sensor_tells_a_spring_by_where_links_are():
    """Without an encoder of the link; both, and what bodies are, within their intervals."""
    idim = build_idim(elastic_arm((1, 2), ("torque",), ("stiffness",)))
    inside = []
    for seed in range(3):
        log, theta = twin(idim, seed, move=shaken, K=4000.0)
        fit = di.identify(Problem(idim.robot, prepare(log, 5.0)), "wls", doctor=False)
        off = (fit.estimate.beta - fit.base.matrix @ theta) / fit.estimate.covariance.std
        assert np.max(np.abs(off)) < 4.5
        inside.append(np.abs(off) < 1.96)
        assert all(own.supported for own in fit.springs)
        assert fit.springs[1].std < 0.02 * fit.springs[1].compliance
    assert np.mean(inside) > 0.88
    # rows of draws are those about the model, which the file's bodies do not give
    noisy = measure_torque_calibration(fit, di.sample(fit, 32), fit.samples[0]).noise
    assert np.all((noisy > 0.85) & (noisy < 0.99))
    # the same log as of stiff joints: bodies that are wrong by many of their errors
    stiff = build_idim(elastic_arm((1, 2), ("torque",)))
    fit = di.identify(Problem(stiff.robot, prepare(log, 5.0)), "wls", doctor=False)
    off = fit.estimate.beta - fit.base.matrix @ full_set(stiff)
    assert np.max(np.abs(off) / fit.estimate.covariance.std) > 10.0


@pytest.mark.long
def test_a_torque_sensor_does_not_tell_a_spring_that_nothing_shakes():
    idim = build_idim(elastic_arm((1, 2), ("torque",), ("stiffness",)))
    log, _ = twin(idim, K=4e5)
    fit = di.identify(Problem(idim.robot, prepare(log, 5.0)), "wls", doctor=False)
    assert not any(own.supported for own in fit.springs)
    assert any(
        "do not distinguish its spring from a stiff joint" in r.words for r in fit.verdict.reasons
    )


@pytest.mark.long
def test_a_log_without_the_encoder_is_of_a_stiff_joint():
    robot = elastic_arm((1,))
    log, _ = twin(build_idim(robot))
    problem = Problem(robot, prepare(replace(log, wrenches={}), 6.0))
    assert problem.base.names == di.base_parameters(build_idim(toy.arm(3))).names
    both = Problem(robot, [prepare(log, 6.0), prepare(replace(log, wrenches={}), 6.0)])
    fit = di.identify(both, "wls", doctor=False)
    assert fit.springs[0].supported


@pytest.mark.long
@pytest.mark.measured
def test_the_springs_of_a_kr300_are_told(measured):
    """Held-out links of axes 2 and 3 are nearer than those of stiff joints; axis 1 bears none."""
    robot = di.load_robot(measured("kr300/kr300.toml"))
    names = [f"joint{j}" for j in (1, 2, 3)]
    specs = [DriveSpec(joint=j, link=("position",), spring=("lag",)) for j in names]
    robot = replace_drives(robot, specs, None, "kr300")
    columns = {f"link_{j}": f"qse_{j}" for j in names}
    logs = [
        di.prepare(
            di.read_log(measured(f"kr300/kr300_{k}.csv"), robot, columns=columns).rows(450, 2051),
            5.0,
        )
        for k in "AB"
    ]
    gas = [
        attach(1, "gas-spring", {"base": 0.8, "crank": 0.2, "angle": 0.0872665, "stroke": 0.575})
    ]
    problem = Problem(robot, logs[0], "coulomb-viscous-asymmetric", elements=gas)
    fit = di.identify(problem, validation=logs[1:], doctor=False)
    assert [own.supported for own in fit.springs] == [False, True, True]
    for own in fit.springs[1:]:
        assert own.held_out[0].spring < 0.7 * own.held_out[0].stiff < 0.3 * own.held_out[0].plain
        assert 4e6 < own.stiffness < 1.2e7
    values = dict(zip(fit.idim.names, fit.theta, strict=True))
    assert all(2.8e-3 < values[f"KT{j}"] / values[f"K{j}"] < 3.3e-3 for j in (2, 3))


def test_a_lag_of_the_encoder_is_no_spring():
    idim = build_idim(elastic_arm((2,), spring=("lag",)))
    log, _ = twin(build_idim(elastic_arm((2,))))
    late = np.fft.rfft(periodic(3)[0][:, 1])
    late *= np.exp(-2j * np.pi * np.fft.rfftfreq(len(log.q), 1.0 / RATE) * 0.003)
    noise = ENCODER * np.random.default_rng(3).normal(size=len(log.q))
    signal = (np.fft.irfft(late, len(log.q)) + noise)[:, None]
    log = replace(log, wrenches={"link_joint_2": signal})
    fit = di.identify(Problem(idim.robot, prepare(log, 6.0)), "wls", doctor=False)
    values = dict(zip(fit.base.names, fit.estimate.beta, strict=True))
    std = dict(zip(fit.base.names, fit.estimate.covariance.std, strict=True))
    assert abs(values["KT2"] / values["K2"] - 0.003) < 2e-5
    assert abs(values["K2"] - 3000.0) < 4.0 * std["K2"] + 30.0


def test_mujoco_moves_motor_and_link_as_the_model(tmp_path):
    """Accelerations of both sides under the torques of a twin, and the torques of these."""
    mujoco = pytest.importorskip("mujoco")
    robot = elastic_arm((1, 2))
    idim = build_idim(robot, "viscous")
    log, theta = twin(idim)
    fit = di.identify(Problem(robot, prepare(log, 6.0), "viscous"), doctor=False)
    document, notes = fit.model_mjcf()
    assert not any("stiff" in note for note in notes)
    model = mujoco.MjModel.from_xml_string(document.decode())
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    idim, theta = fit.idim, fit.theta
    q, dq, ddq = (each[::700] for each in periodic(3))
    bent = bend_joints(idim, theta, periodic(3), RATE)
    cond = Conditions(deflection=bent[:, ::700])
    tau = idim.torque(theta, q, dq, ddq, conditions=cond)[:, :3]
    offs = np.array([theta[idim.names.index(f"offs{j}")] for j in (1, 2)])
    named = [
        [model.joint(f"joint_{j + 1}{end}").dofadr[0] for j in range(3 - bool(end))]
        for end in ("", "_spring")
    ]
    assert model.nv == 5
    for k in range(len(q)):
        delta = cond.deflection[:3, k, :2]
        data.qpos[named[0]] = q[k] + cond.deflection[0, k]
        data.qvel[named[0]] = dq[k] + cond.deflection[1, k]
        data.qacc[named[0]] = ddq[k] + cond.deflection[2, k]
        data.qpos[named[1]], data.qvel[named[1]], data.qacc[named[1]] = -delta
        mujoco.mj_inverse(model, data)
        assert np.allclose(data.qfrc_inverse[named[0]], tau[k], atol=1e-6)
        assert np.allclose(data.qfrc_inverse[named[1]], 0.0, atol=1e-6)
    assert offs.shape == (2,)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc)")
@pytest.mark.parametrize("friction", ["coulomb-viscous", "stribeck"])
def test_c_has_motors_links_and_springs_as_the_model(friction, tmp_path):
    """Compiled without a warning; friction acts on motors, an element on its link."""
    robot = elastic_arm((1, 2), spring=("cubic",))
    idim = build_idim(robot, friction, elements=[attach(0, "spring", {})])
    known = VALUES | {"Kc": 4e6, "ks": 20.0, "ko": 0.7}
    theta = idim.join(robot.nominal, np.array([known.get(p.symbol, 1.3) for p in idim.drives]))
    rng = np.random.default_rng(2)
    motion, bent = rng.normal(size=(3, 12, 3)), np.zeros((5, 12, 3))
    bent[:3, :, :2] = 0.3 * rng.normal(size=(3, 12, 2))
    bent[3:] = bent[:2]
    wanted = idim.torque(theta, *motion, conditions=Conditions(deflection=bent))
    content, notes = render_c_file(idim, theta)
    assert not notes
    (tmp_path / "arm.c").write_bytes(content)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", tmp_path / "arm.so", tmp_path / "arm.c", "-lm"], check=True)
    function = ctypes.CDLL(str(tmp_path / "arm.so")).toy_elastic_inverse_dynamics
    function.restype, doubles = None, ctypes.POINTER(ctypes.c_double)
    tau, left = np.zeros((2, 12, 3))
    for row in zip(*motion, *bent[:3], tau, left, strict=True):
        function(*(np.ascontiguousarray(each).ctypes.data_as(doubles) for each in row))
    assert np.allclose(tau, wanted[:, :3], rtol=1e-12, atol=1e-10)
    assert np.allclose(left[:, :2], wanted[:, 3:], rtol=1e-12, atol=1e-10)
    assert not np.any(left[:, 2])


def test_other_files_say_that_they_are_stiff():
    idim = build_idim(elastic_arm((1,)))
    log, _ = twin(idim)
    fit = di.identify(Problem(idim.robot, prepare(log, 6.0)), doctor=False)
    for name in ("urdf", "usd", "sdf"):
        _, notes = fit.render_file(name)
        assert any(note.startswith("stiff in the") for note in notes), name
    content, notes = fit.render_file("c")
    assert b"elastic_inverse_dynamics" in content
    assert not any("stiff" in note for note in notes)
    assert fit.inverse_dynamics(np.zeros(3), np.zeros(3), np.zeros(3)).shape == (3,)


STUDY = """
[robot]
file = "arm.urdf"
[[robot.drive]]
joint = "shoulder"
link = ["position"]
[[log]]
files = "bent.csv"
[log.columns]
link_shoulder = "second"
[prepare]
bandwidth = 6.0
[controller]
kind = "pd"
kp = [100.0, 50.0]
kd = [10.0, 5.0]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study, its log, and its result."""
    path = tmp_path_factory.mktemp("elastic")
    write_study(path, STUDY, DriveSpec(joint="shoulder", link=("position",)), "second")
    assert run(["identify", str(path / "study.toml"), "-o", str(path / "out")]) == 0
    return path


def test_a_result_comes_back_with_its_springs(folder):
    result = folder / "out" / "result.json"
    fit = di.read_result(result)
    document = json.loads(result.read_text())
    (own,) = document["springs"]
    assert own["joint"] == "shoulder"
    assert own["supported"]
    assert own["stiffness"] == fit.springs[0].stiffness
    assert abs(fit.drive_parameters(0)["K"] - 3000.0) < 60.0
    assert fit == di.read_result(result)
    assert "Springs" in (folder / "out" / "report.html").read_text()
    assert [group.name for group in fit.residuals][-1] == "link_shoulder"


REFUSED = {
    "simulate": (["simulate", "{study}", "-o", "{out}.csv"], "link encoder at link_shoulder"),
    "track": (["track", "{study}"], "link encoder at link_shoulder"),
    "ml": (["identify", "{study}", "--method", "ml"], "link encoder at link_shoulder"),
    "excite": (["excite", "--study", "{study}"], "link encoder at link_shoulder"),
    "collect": (["collect", "{study}", "-o", "{out}"], "springs behind link_shoulder"),
    "payload": (["payload", "{result}", "--log", "{log}"], "springs behind link_shoulder"),
    "replay": (["replay", "{result}", "{log}"], "springs behind link_shoulder"),
    "protocol": (["protocol", "--study", "{study}"], "link encoder at link_shoulder"),
    "base": (["base", "{robot}", "--study", "{study}"], "springs behind link_shoulder"),
}
TAKEN = {
    "validate": ["validate", "{result}", "{log}"],
    "doctor": ["doctor", "{study}"],
    "select": ["select", "{study}"],
    "sample": ["sample", "{result}", "-n", "4", "-o", "{out}"],
    "export": ["export", "{result}", "--mjcf", "{out}.xml"],
    "diff": ["diff", "{result}", "{result}"],
    "report": ["report", "{result}", "-o", "{out}.html"],
}
"""Of commands that take studies or results; `compare`, `sweep` and `collect`'s others identify."""


def place(folder, name, words):
    places = {"study": folder / "study.toml", "out": folder / name, "log": folder / "bent.csv"}
    places |= {"result": folder / "out" / "result.json", "robot": folder / "arm.urdf"}
    return [word.format(**places) for word in words]


@pytest.mark.parametrize("name", list(REFUSED))
def test_commands_that_know_no_springs_say_so_in_one_line(folder, name, capsys):
    words, said = REFUSED[name]
    capsys.readouterr()
    assert run(place(folder, name, words)) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: ")
    assert said in error
    assert "leave link out of [[robot.drive]]" in error


@pytest.mark.parametrize("name", list(TAKEN))
def test_the_other_commands_take_them(folder, name):
    assert run(place(folder, name, TAKEN[name])) == 0


@pytest.mark.long
def test_a_comparison_is_of_torques():
    """Links are of other units, and each friction model expects them elsewhere."""
    idim = build_idim(elastic_arm((1, 2)))
    first, second = (prepare(twin(idim, seed)[0], 6.0) for seed in range(2))
    problem = Problem(idim.robot, first)
    found = di.compare(problem, ["wls"], ["coulomb-viscous"], blocks=2, validation=[second])
    assert found.kinds == ("joint_1", "joint_2", "joint_3")
    fit = di.identify(problem, "wls", validation=[second], doctor=False)
    wanted = fit.validation[0].entries[0].overall_percent
    assert found.candidates[0].held_out.percent()[0] == pytest.approx(wanted, rel=0.1)


def test_a_log_without_any_torque_is_refused_as_of_stiff_joints():
    log, _ = twin(build_idim(elastic_arm((1,))))
    dead = prepare(replace(log, tau=np.zeros_like(log.tau)), 6.0)
    with pytest.raises(di.ComputationError, match="twin: the torque is zero throughout"):
        di.identify(Problem(elastic_arm((1,)), dead))


def test_an_encoder_that_is_the_motor_s_own_is_refused():
    log, _ = twin(build_idim(elastic_arm((1,))))
    same = replace(log, wrenches={"link_joint_1": log.q[:, :1]})
    with pytest.raises(InputError, match="link_joint_1 and the position of its motor are one"):
        di.identify(Problem(elastic_arm((1,)), prepare(same, 6.0)))


def test_keys_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="spring needs the encoder of the link"):
        DriveSpec(joint="joint_1", spring=("lag",))
    with pytest.raises(ValueError, match="needs the torque alone"):
        DriveSpec(joint="joint_1", link=("position",), spring=("stiffness",))
    idim = build_idim(elastic_arm((1,)))
    log, _ = twin(idim)
    with pytest.raises(InputError, match="ml propagates no rows of the link encoder"):
        di.identify(Problem(idim.robot, prepare(log, 6.0)), "ml", doctor=False)
