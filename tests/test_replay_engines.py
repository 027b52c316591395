"""Identified models under a log's law in other engines: they move as in our own simulation."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from commands import ask, tell
from differences import assert_slope
from tables import write_joints
from test_encoder import BIAS, DELAY, DRIVES, KD, KP, RATE, Z1, twin
from test_init import GRIPPER
from thin import first

import dynident as di
from dynident.cli import run
from dynident.control.controller import pd, pid, servo
from dynident.control.reference import Reference, average_held_signals, fourier
from dynident.core.errors import InputError, RolloutError
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import JointElements
from dynident.dynamics.torques import evaluate_drive_torques
from dynident.dynamics.whole import WholeModel
from dynident.engines import ENGINES
from dynident.engines.drive import EngineDrive, EngineMotion, build_drive
from dynident.estimators.closed_loop import Simulation
from dynident.excitation.prediction import join_nominal_parameters
from dynident.export.resistance import make_resistance
from dynident.friction.elements import spring
from dynident.simulation.law import average_held_targets
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout
from dynident.study.replay import choose_player, describe_found_law

WIDTH = np.full(3, 0.1)


def rms(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(error**2)))


def engine(name: str):
    if name == "mujoco":
        pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    return ENGINES[name]


def simulated(run_in, model: WholeModel, loop: Loop) -> EngineMotion:
    return run_in(model, build_drive(loop), model)


@pytest.mark.long
@pytest.mark.parametrize("name", ENGINES)
def test_engines_have_the_parts_of_a_servo_but_its_integral(name, tmp_path):
    _, loop, theta = twin(tmp_path, 1.0, width=WIDTH)
    law = servo(KP, 2.0, deadband=0.02, punch=0.5, speed_limit=1.5, delay=DELAY)
    loop, plain = replace(loop, controller=law), replace(loop, controller=servo(KP, 2.0))
    there, ours = simulated(engine(name), WholeModel(loop.idim, theta), loop), rollout(loop, theta)
    # of first order, at steps of a quarter of a millisecond
    assert rms(there.q - ours.q) < 1e-3
    assert rms(rollout(plain, theta).q - ours.q) > 2e-2
    with pytest.raises(InputError, match="integral"):
        build_drive(replace(loop, controller=servo(KP, 2.0, 1.0)))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("limit", first([12.0, np.inf]))
def test_engines_move_as_we_do(name, limit, tmp_path):
    _, loop, theta = twin(tmp_path, 1.0, width=WIDTH)
    loop = replace(loop, controller=replace(loop.controller, limit=np.full(3, limit)))
    ours = rollout(loop, theta)
    assert (np.max(np.abs(ours.tau)) > 12.0) == np.isinf(limit)
    there = simulated(engine(name), WholeModel(loop.idim, theta), loop)
    assert there.q.shape == ours.q.shape
    moved = rms(ours.q - ours.q[0])
    assert rms(there.q - ours.q) < 5e-3 * moved
    assert there.notes == (
        () if name == "pinocchio"
        else ("offsets have no place in an MJCF: here springs that are far away give them",)
    )  # fmt: skip
    without = theta.copy()
    without[loop.idim.inertial :: 4] = 0.05  # other rotors: the bound is not that wide
    other = simulated(engine(name), WholeModel(loop.idim, without), loop)
    assert rms(other.q - ours.q) > 1e-2 * moved


def test_friction_loss_of_mujocos_own_softness_is_another_friction(tmp_path):
    _, loop, theta = twin(tmp_path, 1.0, width=WIDTH)
    ours = rollout(loop, theta)
    there = simulated(engine("mujoco"), WholeModel(loop.idim, theta), loop)
    ((words, plain),) = there.otherwise
    assert "MuJoCo's own softness" in words
    assert rms(plain - ours.q) > 3.0 * rms(there.q - ours.q)


LEG = """<mujoco><asset><mesh name="gone" file="gone.stl"/></asset><worldbody>
<body name="trunk" pos="0 0 1"><freejoint/><geom type="mesh" mesh="gone"/>
<inertial pos="0 0 0" mass="3" diaginertia="0.02 0.02 0.02"/>
<body name="hip" pos="0.1 0 0"><joint name="hip" axis="1 0 0"/>
<inertial pos="0 0.1 0" mass="1" diaginertia="0.01 0.01 0.01"/>
<body name="shell" pos="0 0.2 0"><joint name="lid" axis="0 1 0"/>
<inertial pos="0.1 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/>
<body name="shin" pos="0 0 -0.2"><joint name="knee" axis="0 1 0"/>
<inertial pos="0 0 -0.1" mass="0.5" diaginertia="0.01 0.01 0.01"/>
</body></body></body></body></worldbody></mujoco>"""


@pytest.mark.long
@pytest.mark.parametrize("name", ENGINES)
def test_what_was_held_stays_held_and_meshes_may_be_missing(name, tmp_path):
    (tmp_path / "leg.xml").write_text(LEG)
    robot = di.load_robot(tmp_path / "leg.xml", locked={"lid": 0.7})
    assert robot.joint_names == ("hip", "knee")
    idim = build_idim(robot)
    theta = idim.nominal
    theta[idim.inertial :] = [0.1, 1.0, 0.8, 0.3, 0.05, 0.5, 0.4, -0.2]
    _, loop, _ = twin(tmp_path, 1.5)
    q = loop.reference.q[:, :2]
    still = np.zeros_like(q)
    loop = Loop(idim, pd((60.0, 40.0), (2.0, 1.5)), Reference(RATE, q, still, still), "sdirk2", 1,
                WIDTH[:2], q0=q[0], dq0=np.zeros(2), held=True)  # fmt: skip
    ours = rollout(loop, theta)
    there = simulated(engine(name), WholeModel(idim, theta), loop)
    assert rms(there.q - ours.q) < 5e-3 * rms(ours.q - ours.q[0])


def test_motors_of_coupled_drives_are_tendons_of_mujoco(tmp_path):
    _, loop, theta = twin(tmp_path, 1.0, width=WIDTH)
    robot = loop.idim.robot
    turns = np.eye(3)
    turns[2, 1] = 1.0
    idim = build_idim(replace(robot, drives=replace(robot.drives, turns=turns)))
    values = {"Ia": 0.1, "Iam": 0.1, "fv": 1.0, "fvm": 0.8, "fc": 0.7, "fcm": 1.5, "off": 0.2}
    drives = np.array([values[p.symbol] for p in idim.drives])
    full = idim.join(theta[: idim.inertial].reshape(-1, 10), drives)
    ours = rollout(replace(loop, idim=idim), full)
    there = {name: simulated(engine(name), WholeModel(idim, full), loop) for name in ENGINES}
    assert rms(there["mujoco"].q - ours.q) < 5e-3 * rms(ours.q - ours.q[0])
    assert "which has no place for it: fvm3, fcm3" in there["pinocchio"].notes[0]
    assert rms(there["pinocchio"].q - ours.q) > 3.0 * rms(there["mujoco"].q - ours.q)


def test_pinocchios_steps_are_of_first_order(tmp_path, monkeypatch):
    _, loop, theta = twin(tmp_path, 1.0, width=WIDTH)
    fine = rollout(replace(loop, substeps=16), theta).q
    model = WholeModel(loop.idim, theta)
    errors = []
    for step in (1e-3, 5e-4, 2.5e-4):
        monkeypatch.setattr("dynident.engines.drive.LONGEST_STEP", step)
        errors.append(rms(simulated(ENGINES["pinocchio"], model, loop).q - fine))
    assert 1.6 < errors[0] / errors[1] < 2.5
    assert 1.6 < errors[1] / errors[2] < 2.5


@pytest.mark.parametrize("late", [0.0, 0.3, 1.0, 2.75])
@pytest.mark.parametrize("substeps", [1, 4])
def test_targets_are_held_as_our_own_simulation_holds_them(late, substeps):
    rng = np.random.default_rng(3)
    reference = rng.normal(size=(3, 12, 2))
    at = np.arange(10 * substeps) / substeps - late + 1
    found = np.stack(
        [average_held_signals(signal, at, 1.0 / substeps) for signal in reference], axis=2
    )
    for k, x in enumerate(at):
        w, by = np.zeros((2, 5)), np.zeros((2, 3))
        average_held_targets(reference, x, 1.0 / substeps, 0.005, w, by)
        np.testing.assert_allclose(found[k], w[:, :3], atol=1e-9)


@pytest.mark.parametrize("name", ENGINES)
def test_what_an_engine_lacks_shows_in_its_motion_and_a_plugin_gives_it(name, tmp_path):
    _, loop, theta = twin(tmp_path, 1.0, width=WIDTH)
    idim = build_idim(loop.idim.robot, "stribeck")
    drives = np.column_stack([DRIVES, [0.0, 6.0, 0.0]]).ravel()
    full = idim.join(theta[: idim.inertial].reshape(-1, 10), drives)
    ours = rollout(replace(loop, idim=idim), full)
    there = simulated(engine(name), WholeModel(idim, full), loop)
    assert "which has no place for it: fs2" in there.notes[0]
    (plugged,) = (q for words, q in there.otherwise if "plugin" in words)
    assert rms(plugged - ours.q) < 5e-3 * rms(ours.q - ours.q[0])
    assert rms(there.q - ours.q) > 5.0 * rms(plugged - ours.q)


@pytest.mark.parametrize("friction", ["uneven", "stribeck"])
def test_all_friction_of_a_model_is_one_function_of_the_motion(friction, tmp_path):
    _, loop, _ = twin(tmp_path, 1.0)
    idim = build_idim(loop.idim.robot, friction, elements=[JointElements(1, spring())])
    rng = np.random.default_rng(0)
    theta = idim.join(loop.idim.robot.nominal, rng.uniform(0.1, 1.0, len(idim.drives)))
    q, dq = rng.normal(size=(2, 3))
    at = make_resistance(idim, theta, WIDTH)
    tau, slope = at(q, dq)
    true = evaluate_drive_torques(idim, theta, q[None], dq[None], np.zeros((1, 3)), WIDTH)[0]
    np.testing.assert_allclose(tau, true, rtol=1e-9)
    for j, own in enumerate(np.eye(3)):
        assert_slope(lambda t, j=j, own=own: at(q, dq + t * own)[0][j], slope[j], 1e-5)
    with pytest.raises(InputError, match="friction with states"):
        make_resistance(build_idim(loop.idim.robot, "dahl"), np.zeros(0), WIDTH)


def test_laws_that_other_engines_do_not_have_are_refused(tmp_path):
    _, loop, _ = twin(tmp_path, 1.0)
    sampled = pd((80.0,) * 3, (2.0,) * 3, rate=RATE)
    states = pid((80.0,) * 3, (2.0,) * 3, (1.0,) * 3)
    for control in (sampled, states):
        other = replace(loop, controller=control, integrator="ode2")
        with pytest.raises(InputError, match="without a rate, states, integral, backlash"):
            build_drive(other)
    still = replace(loop.controller, delay=0.0)
    with pytest.raises(InputError, match="under held targets"):
        build_drive(replace(loop, controller=still, held=False))


@pytest.mark.parametrize("name", ENGINES)
def test_a_motion_that_runs_away_is_an_error(name, tmp_path):
    _, loop, theta = twin(tmp_path, 1.0, width=WIDTH)
    away = replace(loop.controller, gain=-np.ones(3))
    drive: EngineDrive = build_drive(replace(loop, controller=away))
    with pytest.raises(RolloutError, match="diverges at t ="):
        engine(name)(WholeModel(loop.idim, theta), drive, WholeModel(loop.idim, theta))


def test_biases_of_encoders_reach_the_law(tmp_path):
    _, loop, theta = twin(tmp_path, 1.0, width=WIDTH)
    drive = build_drive(loop)
    np.testing.assert_allclose(drive.q, loop.q0 - BIAS)
    tau = drive.torque(0, drive.q, drive.dq)
    np.testing.assert_allclose(tau, rollout(loop, theta).tau[0], rtol=1e-3)


STUDY = """
[robot]
file = "{z1}/z1.urdf"
{more}

[[log]]
files = "{z1}/z1.csv"
rows = [0, 800]

[prepare]
bandwidth = 10.0

[controller]
kind = "pd"
kp = [80.0, 120.0, 120.0, 80.0, 80.0, 80.0, 80.0]
kd = 2.5

[identify]
method = "cloe"
"""


@pytest.fixture(scope="module")
def z1(tmp_path_factory) -> tuple[Path, Path]:
    """A result on the first 4 s of a Unitree Z1's log, and the next 2 s."""
    folder = tmp_path_factory.mktemp("z1")
    (folder / "study.toml").write_text(STUDY.format(z1=Z1, more='friction = "coulomb-viscous"'))
    argv = ["identify", str(folder / "study.toml"), "-o", str(folder / "out"), "--no-report"]
    assert run(argv) == 0
    lines = (Z1 / "z1.csv").read_text().splitlines()
    (folder / "last.csv").write_text("\n".join([lines[0], *lines[801:1201]]) + "\n")
    return folder / "out" / "result.json", folder / "last.csv"


@pytest.mark.long
@pytest.mark.parametrize("name", ENGINES)
def test_an_exported_robot_replays_a_log_as_well_as_our_simulation(name, z1, capfd):
    engine(name)
    result, log = z1
    found = ask(capfd, ["replay", str(result), str(log), "--engine", name])
    assert found["schema"] == "dynident.replay/1"
    errors = found["overall_rms_mrad"]
    assert set(errors) == {"dynident", name, "file"}
    assert errors[name] == pytest.approx(errors["dynident"], rel=0.1)
    assert errors["file"] > 3.0 * errors["dynident"]
    assert found["cost_mrad"] == pytest.approx(errors[name] - errors["dynident"])
    assert found["apart_mrad"] < 0.1 * errors["dynident"]
    joints = found["rms_mrad"][name]
    assert next(iter(joints)) == "joint1"
    assert errors[name] == pytest.approx(np.sqrt(np.mean(np.square(list(joints.values())))))
    # our own is what validate says
    (own,) = ask(capfd, ["validate", str(result), str(log)])["validation"]
    free = own["free_simulation"][-1]
    assert found["rms_mrad"]["dynident"] == pytest.approx(free["rms_mrad"], rel=1e-6)


@pytest.mark.long
def test_friction_that_engines_lack_is_stood_for_and_said(z1, tmp_path, capfd):
    study = tmp_path / "study.toml"
    text = STUDY.format(z1=Z1, more='friction = "uneven"')
    log = tmp_path / "z1.csv"
    log.write_bytes((Z1 / "z1.csv").read_bytes())
    text = text.replace("rows = [0, 800]", "rows = [0, 500]")
    study.write_text(text.replace(f"{Z1}/z1.csv", "z1.csv"))
    assert run(["identify", str(study), "-o", str(tmp_path / "out"), "--no-report"]) == 0
    result = tmp_path / "out" / "result.json"
    capfd.readouterr()
    command = ["replay", str(result), str(z1[1]), "--engine", "pinocchio"]
    near = ask(capfd, command)
    assert (
        "motion, friction that has no place there (fcs1 ... fcs7, fcc1 ... fcc7)"
        in near["notes"][0]
    )
    (plugged,) = (words for words in near["notes"] if "(a plugin)" in words)
    ours = near["overall_rms_mrad"]["dynident"]
    assert float(plugged.rsplit(" ", 1)[1]) == pytest.approx(ours, rel=0.1)
    said = tell(capfd, ["export", str(result), "--mjcf", str(tmp_path / "z1.xml")]).err
    assert "parameters of the loop" not in said
    (cost,) = (line for line in said.splitlines() if "changes the error of free" in line)
    found = re.search(r"([+-][0-9.]+) mrad: ([0-9.]+) instead of ([0-9.]+)", cost)
    more, theirs, whole = map(float, found.groups())
    assert more == pytest.approx(theirs - whole, abs=0.1)
    assert more > 0.0
    log.unlink()
    far = ask(capfd, command)
    assert "fv, fc and off stand alone, because the log cannot be read again" in far["notes"][0]
    assert "has no place for it: fcs1 ... fcs7" in far["notes"][1]
    assert near["cost_mrad"] < 0.5 * far["cost_mrad"]
    said = tell(capfd, ["export", str(result), "--mjcf", str(tmp_path / "z1.xml")]).err
    assert "the resulting error is not known, because the logs cannot be read: " in said
    assert "changes the error of free" not in said


@pytest.mark.long
def test_results_know_the_width_of_the_sign_and_write_it(z1, tmp_path):
    stored = di.read_result(z1[0])
    log = di.read_log(z1[1], stored.robot, torque=False)
    assert stored.width == pytest.approx(0.1 * np.max(np.abs(np.gradient(log.q, 0.005, axis=0)),
                                                      axis=0), rel=0.5)  # fmt: skip
    assert run(["export", str(z1[0]), "--mjcf", str(tmp_path / "z1.xml")]) == 0
    assert (tmp_path / "z1.xml").read_text().count("solreffriction") == 7
    command = ["sample", str(z1[0]), "-n", "2", "--format", "mjcf", "-o", str(tmp_path / "draws")]
    assert run(command) == 0
    assert (tmp_path / "draws" / "draw_1.xml").read_text().count("solreffriction") == 7
    settings = json.loads(z1[0].read_text())["settings"]["simulation"]
    assert (settings["integrator"], settings["targets"]) == ("sdirk2", "held")
    q = np.zeros(7)
    assert stored.model.gravity(q) == pytest.approx(stored.model.inverse_dynamics(q, q, q) - [
        stored.drive_parameters(j)["off"] for j in range(7)])  # fmt: skip


def test_what_was_found_of_the_law_is_said():
    plain = di.Simulation(pd(KP, KD))
    assert describe_found_law(plain) == ()
    tuned = plain.with_values({"gain2": 1.1, "bias2": BIAS[1], "delay": DELAY})
    assert describe_found_law(tuned) == (
        "of the control law, not of the model: a delay of the targets of 8.30 ms, drive gains, "
        "encoder biases",
    )


def test_our_own_engine_is_the_default_and_prints_a_table(z1, capfd):
    result, log = z1
    text = tell(capfd, ["replay", str(result), str(log)]).out
    assert text.startswith("verdict ")
    assert ["replay", "mrad", "dynident", "file"] in [line.split() for line in text.splitlines()]
    assert "overall" in text
    assert max(map(len, text.splitlines())) <= 80 + len(str(log))


def test_a_log_is_replayed_from_its_file_or_as_it_was_read(z1):
    result, path = z1
    fit = di.read_result(result)
    files = di.replay(fit, [str(path)])
    log = di.read_log(path, fit.robot, torque=False)
    for given in (log, fit.prepare(log), path, pandas.read_csv(path)):
        found = di.replay(fit, given)
        assert found.log in (path.name, str(path), "frame")
        np.testing.assert_allclose(found.ours, files.ours, rtol=1e-6)


def test_without_a_log_those_of_the_study_are_replayed(z1, capfd):
    result, log = z1
    fit = di.read_result(result)
    held_out = fit.validation or fit.simulated
    said = ask(capfd, ["replay", str(result)])
    (found,) = said.get("logs", [said])
    assert found["overall_rms_mrad"]["dynident"] == pytest.approx(
        held_out[0].free[-1].overall_milli
    )
    assert len(ask(capfd, ["replay", str(result), str(log), str(log)])["logs"]) == 2
    assert run(["replay", str(result), "--rows", "0,500"]) == 2
    assert "--drop-below go with a log" in capfd.readouterr().err


def test_an_engine_that_is_not_there_is_named_with_what_installs_it(z1, capfd, monkeypatch):
    result, log = z1
    monkeypatch.setitem(sys.modules, "mujoco", None)
    said = tell(capfd, ["replay", str(result), str(log), "--engine", "mujoco"], code=2).err
    assert said.splitlines()[-1] == "error: needs MuJoCo: pip install dynident[mujoco]"


def test_a_result_without_a_law_cannot_be_replayed(z1, tmp_path, capfd):
    document = json.loads(z1[0].read_text())
    document["settings"]["study"]["controller"] = document["state"]["simulation"] = None
    (tmp_path / "result.json").write_text(json.dumps(document))
    assert run(["replay", str(tmp_path / "result.json"), str(z1[1])]) == 2
    assert "without a [controller], whose law it takes: identify" in capfd.readouterr().err


def test_unknown_engines_are_refused(z1, capfd):
    result, log = z1
    assert run(["replay", str(result), str(log), "--engine", "mujuco"]) == 2
    assert "engine 'mujuco' is not known; did you mean 'mujoco'?" in capfd.readouterr().err


@pytest.fixture(scope="module")
def falling(tmp_path_factory) -> Path:
    """A study of an arm, a log of the arm as its file is, and the file of a heavier one."""
    folder = tmp_path_factory.mktemp("files")
    text = (Path(__file__).parents[1] / "docs" / "files" / "arm.urdf").read_text()
    for name, mass in (("arm.urdf", "1.5"), ("heavy.urdf", "2.5"), ("bare.urdf", None)):
        own = re.sub(r"(?s)<inertial>.*?</inertial>", "", text) if mass is None else text
        (folder / name).write_text(own.replace('mass value="1.5"', f'mass value="{mass}"'))
    robot = di.load_robot(folder / "arm.urdf")
    idim = build_idim(robot, "coulomb-viscous-symmetric")
    rng = np.random.default_rng(0)
    waves = fourier(200.0, 2.0, 0.5, [0.0, 0.0], *(0.1 * rng.normal(size=(2, 2, 3))))
    still, control = np.zeros(waves.q.shape), pd([300.0, 200.0], [10.0, 6.0])
    held = Reference(200.0, waves.q, still, still)
    loop = Loop(
        idim,
        control,
        held,
        "sdirk2",
        width=np.full(2, 0.03),
        q0=waves.q[0],
        dq0=np.zeros(2),
        held=True,
    )
    motion = rollout(loop, join_nominal_parameters(idim))
    signals = {"q": motion.measured, "qref": waves.q}
    write_joints(folder / "log.csv", robot.joint_names, 200.0, **signals)
    (folder / "study.toml").write_text(
        '[robot]\nfile = "arm.urdf"\n[[log]]\nfiles = "log.csv"\n[prepare]\nbandwidth = 10.0\n'
        '[controller]\nkind = "pd"\nkp = [300.0, 200.0]\nkd = [10.0, 6.0]\n'
        '[identify]\nmethod = "cloe"\n'
    )
    return folder


def replayed(capfd, *arguments: object) -> dict:
    return ask(capfd, ["replay", *map(str, arguments)])


def test_the_file_of_a_study_is_replayed_and_another_in_its_place(falling, capfd):
    study, log = falling / "study.toml", falling / "log.csv"
    own = replayed(capfd, study)
    assert set(own["overall_rms_mrad"]) == {"dynident"}
    assert "verdict" not in own
    assert own["overall_rms_mrad"]["dynident"] < 0.5
    heavy = replayed(capfd, study, log, "--robot", falling / "heavy.urdf")
    assert heavy["overall_rms_mrad"]["dynident"] > 5.0
    found = di.replay(di.read_study(study), [str(log)], robot=str(falling / "heavy.urdf"))
    assert found.nominal is None
    read = di.read_log(log, di.load_robot(falling / "heavy.urdf"), torque=False)
    again = di.replay(di.read_study(study), read, robot=str(falling / "heavy.urdf"))
    assert np.allclose(again.ours, found.ours)
    assert 1e3 * np.sqrt(np.mean(found.ours**2)) == pytest.approx(
        heavy["overall_rms_mrad"]["dynident"]
    )


def test_a_result_replays_another_file_under_its_law(z1, falling, capfd):
    result, log = z1
    whole = replayed(capfd, result, log)["overall_rms_mrad"]
    other = replayed(capfd, result, log, "--robot", Z1 / "z1.urdf")
    assert set(whole) == {"dynident", "file"}
    assert set(other["overall_rms_mrad"]) == {"dynident"}
    # the file without friction and rotors that were fitted
    assert other["overall_rms_mrad"]["dynident"] > 3.0 * whole["dynident"]
    assert other["verdict"] == json.loads(result.read_text())["verdict"]["state"]
    assert run(["replay", str(result), str(log), "--robot", str(falling / "arm.urdf")]) == 2
    assert "has the joints shoulder, elbow, z1 joint1," in capfd.readouterr().err


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("bare.urdf", "the file of arm has no inertials to replay"),
        ("absent.urdf", "absent.urdf"),
    ],
)
def test_a_file_that_cannot_be_replayed_is_refused(file, words, falling, capfd):
    assert run(["replay", str(falling / "study.toml"), "--robot", str(falling / file)]) == 2
    assert words in capfd.readouterr().err


def test_a_study_without_a_law_is_refused(falling, capfd):
    text = (falling / "study.toml").read_text().replace("[controller]", "[unused]")
    text = text.partition("[unused]")[0] + '[identify]\nmethod = "wls"\n'
    (falling / "lawless.toml").write_text(text)
    assert run(["replay", str(falling / "lawless.toml")]) == 2
    assert "arm: has no [controller], whose law a replay takes" in capfd.readouterr().err


SWAYING = """[robot]
file = "gripper.urdf"
friction = "coulomb-viscous"
[[loop]]
name = "fingers"
kind = "joint"
joints = ["two", "one"]
polynomial = [0.01, -2.0]
[controller]
kind = "pd"
kp = 400.0
kd = 60.0
[reference]
kind = "bang-bang"
rate = 500.0
points = [[0.0, 0.01], [0.3, -0.59], [-0.2, 0.41], [0.0, 0.01]]
velocity = 0.5
acceleration = 2.0
smoothing = 0.5
pause = 0.1
[simulation.parameters]
fv1 = 5.0
fc1 = 1.0
fv2 = 2.0
"""


DRIVEN = """[robot]
file = "arm.urdf"
friction = "{friction}"
gravity = [0.0, 0.0, {gravity}]
[prepare]
bandwidth = 10.0
[controller]
kind = "pd"
kp = [300.0, 200.0]
kd = [10.0, 6.0]
{more}
"""
QUINTIC = """[reference]
kind = "quintic"
rate = 1000.0
points = [[0.0, 0.0], [0.0, 0.0], [0.5, -0.4], [0.1, 0.3]]
times = [0.0, 0.1, 0.6, 1.2]
"""
VALUES = "[simulation.parameters]\nfc1 = 0.2\nfc2 = 0.1\nIa1 = 0.4\nIa2 = 0.1\nm2 = 1.1\n"


def write_driven(folder: Path, friction: str, more: str, gravity: float = 0.0) -> di.Study:
    text = DRIVEN.format(friction=friction, more=more, gravity=gravity)
    (folder / "driven.toml").write_text(text)
    return di.read_study(folder / "driven.toml", use=None)


@pytest.mark.parametrize(
    ("friction", "more", "gravity"),
    [
        ("coulomb-viscous", f"{QUINTIC}{VALUES}", -9.81),
        ("cube-root", f"{QUINTIC}[simulation.parameters]\nIa1 = 0.4\nIa2 = 0.1\n", -9.81),
        ("none", QUINTIC, 0.0),
        (
            "coulomb-viscous",
            f'rate = 1000.0\ncompensation = "feed-forward"\n{QUINTIC}{VALUES}',
            0.0,
        ),
    ],
)
def test_a_study_is_replayed_as_it_is_simulated(friction, more, gravity, falling):
    """Without being told of targets and widths; along the log that is written."""
    study = write_driven(falling, friction, more, gravity)
    log = di.simulate_study(study).recording
    found = di.replay(study, log)
    assert np.max(found.ours) < 1e-9
    assert "targets smooth between samples" in found.notes[-1]


@pytest.mark.parametrize(("torque", "targets"), [("measured", "smooth"), ("none", "held")])
def test_a_log_is_simulated_as_it_is_replayed(torque, targets, falling):
    """Along the targets of a log, with its torque and without."""
    log = di.simulate_study(write_driven(falling, "coulomb-viscous", QUINTIC + VALUES)).recording
    signals = {"q": log.q, "qref": log.qref, "dqref": log.dqref}
    signals |= {"tau": log.tau} if torque == "measured" else {}
    write_joints(falling / "own.csv", ("shoulder", "elbow"), 1000.0, **signals)
    study = write_driven(falling, "coulomb-viscous", '[[log]]\nfiles = "own.csv"\n')
    simulated = di.simulate_study(study).recording
    found = di.replay(study, [str(falling / "own.csv")])
    assert f"targets {targets} between samples" in found.notes[-1]
    apart = np.sqrt(np.mean((log.q - simulated.q) ** 2, axis=0))
    assert np.max(apart) > 1e-3
    np.testing.assert_allclose(found.ours, apart, rtol=1e-6)


def test_what_was_simulated_is_replayed_closed_chains_included(tmp_path):
    """By its study, by its result, and by another file of the robot, which has no loop."""
    (tmp_path / "gripper.urdf").write_text(GRIPPER)
    (tmp_path / "sway.toml").write_text(SWAYING)
    study = di.read_study(tmp_path / "sway.toml", use=None)
    log = di.simulate_study(study).recording
    own = di.replay(study, log)
    assert np.max(own.ours) < 1e-7
    assert "targets smooth between samples" in own.notes[-1]
    robot = di.load_robot(tmp_path / "gripper.urdf", loops=study.loop)
    problem = di.Problem(robot, di.prepare(log, 20.0))
    law = Simulation(pd([400.0] * 2, [60.0] * 2))
    fit = di.identify(problem, "idim-iv", doctor=False, simulation=law)
    as_it_is, beside = (di.replay(fit, log, robot=each) for each in (str(robot.source), None))
    assert np.max(beside.ours) < 0.2 * np.max(beside.nominal)
    np.testing.assert_allclose(as_it_is.ours, beside.nominal, rtol=1e-6)


FINGERS = (
    '[[loop]]\nname = "{}"\nkind = "joint"\njoints = ["two", "one"]\npolynomial = [0.01, -2.0]\n'
)
BODY = '<body><inertial pos="0 0 0" mass="{}" diaginertia="1e-3 1e-3 1e-3"/>{}</body>'
SLIDE = '<joint name="{}" type="slide" axis="0 1 0"/>'
TWINS = {
    "bare.urdf": GRIPPER,
    "same.toml": 'urdf = "bare.urdf"\n' + FINGERS.format("fingers"),
    "named.toml": 'urdf = "bare.urdf"\n' + FINGERS.format("pair"),
    "twin.xml": (
        f"<mujoco><worldbody><body>{BODY.format(0.4, SLIDE.format('one'))}"
        f"{BODY.format(0.6, SLIDE.format('two'))}</body></worldbody><equality>"
        '<joint joint1="two" joint2="one" polycoef="0.01 -2 0 0 0"/></equality></mujoco>'
    ),
}


@pytest.mark.parametrize("stated", ["study", "file"])
@pytest.mark.parametrize("twin", TWINS)
def test_another_file_has_the_loops_of_the_study(twin, stated, tmp_path):
    """Those of its own file, too; where the other file states them, they are not there twice."""
    (tmp_path / "gripper.urdf").write_text(GRIPPER)
    study = SWAYING
    if stated == "file":
        (tmp_path / "own.toml").write_text('urdf = "gripper.urdf"\n' + FINGERS.format("fingers"))
        loop = FINGERS.format("fingers")
        assert loop in study
        study = study.replace(loop, "").replace("gripper.urdf", "own.toml")
    (tmp_path / "sway.toml").write_text(study)
    for name, text in TWINS.items():
        (tmp_path / name).write_text(text)
    told = di.read_study(tmp_path / "sway.toml", use=None)
    own = choose_player(told, None)[0].robot
    robot = choose_player(told, str(tmp_path / twin))[0].robot
    assert robot.source != own.source
    assert len(robot.loops) == 1
    assert robot.loops[0].polynomial == pytest.approx(own.loops[0].polynomial)
    assert robot.loops[0].passive == own.loops[0].passive == ("two",)
    assert robot.assembled == pytest.approx(own.assembled)


def test_another_file_with_other_joints_is_refused(falling, tmp_path):
    (tmp_path / "gripper.urdf").write_text(GRIPPER)
    with pytest.raises(
        di.InputError, match=r"gripper.urdf: has the joints one, two, arm shoulder,"
    ):
        di.replay(
            di.read_study(falling / "study.toml"),
            [str(falling / "log.csv")],
            robot=str(tmp_path / "gripper.urdf"),
        )
