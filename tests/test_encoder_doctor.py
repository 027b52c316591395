"""Damaged logs of encoders alone: what the verdict says of their size, and what is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from commands import tell
from tables import write_joints
from test_encoder import KD, KP, RATE, arm, log_of, twin
from thin import first

import dynident as di
from dynident.cli import run
from dynident.consistency.constraints import Bounds
from dynident.control.controller import pd, pid
from dynident.diagnosis.encoders import examine_encoders, follows_law
from dynident.diagnosis.examine import Finding
from dynident.fit.followers import JointFollower, fit_followers, measure_followers
from dynident.fit.reasons import list_astray_reasons, list_grown_reasons
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording
from dynident.recording.repairs import repair_recording
from dynident.regression.rests import rests_long


def follow(target: np.ndarray, follower: JointFollower) -> np.ndarray:
    """Positions of a lag of second order, by small steps."""
    w, z, fine = follower.pace, follower.damping, 20
    late = np.interp(np.arange(len(target)) - follower.delay * RATE, np.arange(len(target)), target)
    q, dq, found = late[0], 0.0, []
    for at in late:
        found.append(q)
        for _ in range(fine):
            dq += (w**2 * (at - q) - 2.0 * z * w * dq) / (fine * RATE)
            q += dq / (fine * RATE)
    return np.array(found)


def lagging(follower: JointFollower, scatter: float = 0.0) -> Samples:
    t = np.arange(1200) / RATE
    target = 0.4 * np.column_stack([np.sin(3.0 * t), np.sign(np.sin(2.0 * t))])
    q = np.column_stack([follow(own, follower) for own in target.T])
    q += 0.1 + scatter * np.random.default_rng(0).normal(size=q.shape)
    log = Recording("lag", RATE, q, np.zeros_like(q), qref=target, torque="none")
    return di.prepare(log, bandwidth=10.0)


def test_a_lag_that_positions_have_is_found():
    true = JointFollower(15.0, 0.7, 0.02)
    log = lagging(true, scatter=1e-4)
    lags = fit_followers([log])
    for lag in lags:
        np.testing.assert_allclose(
            [lag.pace, lag.damping, lag.delay], [15.0, 0.7, 0.02], rtol=0.05, atol=2e-3
        )
    assert np.all(measure_followers(lags, log) < 2e-3)


def test_errors_are_held_against_the_motion_and_against_a_lag():
    log = lagging(JointFollower(15.0, 0.7, 0.02), scatter=4e-3)
    lags, names = fit_followers([log]), ("a", "b")
    size, plain = log.measured.std(axis=0), measure_followers(lags, log)

    def states(rms: np.ndarray) -> list[tuple[str, str]]:
        return [(r.state, r.words) for r in list_astray_reasons(log, names, rms, lags)]

    assert states(0.9 * plain) == []
    assert states(np.array([0.001, 0.002]) * size) == []
    (lost,) = states(np.array([0.6, 0.3]) * size)
    assert lost[0] == "refuted"
    assert "60 % of its motion (likewise b)" in lost[1]
    assert [state for state, _ in states(np.array([0.3, 0.0]) * size)] == ["doubtful"]
    worse = np.array([0.0, 3.0]) * plain
    assert np.all(worse < 0.2 * size)
    ((state, words),) = states(worse)
    assert state == "refuted"
    assert words.startswith("b: ")
    assert "3 times the error of a second-order lag" in words
    assert [state for state, _ in states(worse / 2.0)] == ["doubtful"]
    assert list_grown_reasons(log, names, 0.05 * size, 0.02 * size) == []
    (grown,) = list_grown_reasons(log, names, np.array([0.05, 0.02]) * size, 0.01 * size)
    assert grown.words.startswith("a: ")


def damaged(log: Recording, change: object) -> Recording:
    q = log.q.copy()
    change(q)
    return replace(log, q=q)


def identify(robot: di.Robot, log: Recording, held: Recording | None = None, **more: object):
    problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
    beside = [] if held is None else [di.prepare(held, bandwidth=10.0)]
    simulation = di.Simulation(pd(KP, KD), width=0.03)
    return di.identify(problem, "cloe", validation=beside, simulation=simulation, **more)


@pytest.mark.long
def test_a_flipped_encoder_is_refuted_by_the_size_of_its_errors(tmp_path):
    robot, loop, theta = twin(tmp_path, 6.0)
    log = log_of(loop, theta)

    def flip(q: np.ndarray) -> None:
        q[:, 1] *= -1.0

    found = identify(robot, damaged(log, flip), doctor=False)
    assert found.verdict.state == "refuted"
    assert "of its motion" in found.verdict.words
    assert found.findings == ()


@pytest.mark.long
def test_a_push_is_told_by_one_stretch_of_a_log(tmp_path):
    robot, loop, theta = twin(tmp_path, 6.0)
    log = log_of(loop, theta)

    def push(q: np.ndarray) -> None:
        q[600:700, 1] += 0.1 * np.sin(np.pi * np.arange(100) / 100) ** 2

    found = identify(robot, damaged(log, push), doctor=False)
    assert found.verdict.state != "trusted"
    assert "j2: simulated" in found.verdict.words
    assert "was it pushed" in found.verdict.words


def test_what_errs_most_comes_before_what_a_log_does_not_tell(tmp_path):
    """Two pushes of different sizes, and two bounds that limit the fit."""
    robot, loop, theta = twin(tmp_path, 6.0)

    def push(q: np.ndarray) -> None:
        for joint, start, size in ((2, 300, 0.08), (1, 600, 0.2)):
            q[start : start + 100, joint] += size * np.sin(np.pi * np.arange(100) / 100) ** 2

    log = damaged(log_of(loop, theta), push)
    known = (Bounds("fc1", upper=0.9), Bounds("fv1", upper=1.9))
    reasons = identify(robot, log, doctor=False, constraints=known).verdict.reasons
    alike = [each for each in reasons if each.state == reasons[0].state]
    assert len(alike) > 2
    sizes = [each.size for each in alike]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 0.0
    assert "limited by" not in alike[0].words
    (limits,) = (each for each in reasons if "limited by" in each.words)
    assert limits is reasons[-1]
    assert "fc1 <= 0.9, " in limits.words or ", fc1 <= 0.9" in limits.words


def examined(
    robot: di.Robot, log: Recording, held: Recording | None = None, **changes: object
) -> tuple[Finding, ...]:
    """What the doctor finds, alone or beside a held-out log."""
    beside = [] if held is None else [di.prepare(held, bandwidth=10.0)]
    law = pd(KP, KD).scaled(changes.pop("times", 1.0))
    robot = replace(robot, **changes)
    logs = [di.prepare(log, bandwidth=10.0)]
    return examine_encoders(di.build_idim(robot), law, logs, beside)[0]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A twin whose drives are light enough for gravity to show, and its log in two parts."""
    robot, loop, theta = twin(tmp_path_factory.mktemp("twin"), 12.0)
    theta = theta.copy()
    theta[-12:] *= 0.3
    log = log_of(loop, theta)
    return robot, log.rows(0, 1600), log.rows(1600, 2400)


def test_nothing_is_found_in_a_sound_log(sound):
    robot, log, held = sound
    assert examined(robot, log) == ()
    assert examined(robot, log, held) == ()


def test_logs_in_which_joints_rest_for_long_are_not_looked_at(sound):
    robot, log, _ = sound
    assert not rests_long(di.prepare(log, bandwidth=10.0))
    q, qref = log.q.copy(), log.qref.copy()
    q[600:, 1], qref[600:, 1] = q[600, 1], qref[600, 1] + 0.1  # held by friction, off its target
    held = replace(log, q=q, qref=qref)
    assert rests_long(di.prepare(held, bandwidth=10.0))
    assert examined(robot, held) == ()


def set_sign(q):
    q[:, 1] *= -1.0


def set_zero(q):
    q[:, 1] += 0.2


def set_order(q):
    q[:, [0, 1]] = q[:, [1, 0]]


def set_still(q):
    q[500:800, 1] = q[500, 1]


def set_push(q):
    q[600:750, 1] += 0.1 * np.sin(np.pi * np.arange(150) / 150) ** 2


@pytest.mark.parametrize(
    ("change", "diagnosis", "words"),
    [
        (set_sign, "position sign", "the position of j2 has the opposite sign"),
        (set_zero, "encoder offset", "the position of j2 reads"),
        (set_order, "position order", "the positions of j1 and j2 are in each other's columns"),
        (set_still, "stuck", "the position of j2 stands still from 2.5 to 4 s"),
        (set_push, "push", "something pushed j2 from"),
    ],
)
def test_what_an_encoder_reads_against_its_target_is_found(sound, change, diagnosis, words):
    robot, log, _ = sound
    found, *_ = examined(robot, damaged(log, change))
    assert found.diagnosis == diagnosis
    assert found.what.startswith(words)
    assert found.after <= found.before


def test_what_a_study_can_undo_is_said_as_its_key(sound):
    robot, log, _ = sound
    (found,) = examined(robot, damaged(log, set_sign))
    assert found.remedy == "add sign = { q = [1, -1, 1] } to [[log]]"
    assert found.repair is not None
    assert examined(robot, repair_recording(damaged(log, set_sign), found.repair)) == ()


@pytest.mark.parametrize("times", first([0.4, 2.5]))
def test_wrong_gains_or_masses_are_found(sound, times):
    robot, log, _ = sound
    (found,) = examined(robot, log, times=times)
    assert found.diagnosis == "torque scale"
    size = float(found.what.partition("are ")[2].partition(" times")[0])
    assert size == pytest.approx(times, rel=0.2)
    (found,) = examined(robot, log, nominal=robot.nominal / times)
    assert found.diagnosis == "torque scale"


def test_a_robot_that_hangs_is_found(sound):
    robot, log, _ = sound
    (found,) = examined(robot, log, gravity=-robot.gravity)
    assert found.diagnosis == "mounting"
    assert found.gravity == tuple(robot.gravity)


def test_what_is_late_is_found_beside_another_log(sound):
    robot, log, held = sound

    def delay(q: np.ndarray) -> None:
        q[12:] = q[:-12].copy()

    (found,) = examined(robot, damaged(log, delay), held)
    assert found.diagnosis == "delay"
    assert found.repair is not None
    assert found.repair.lag == pytest.approx(12 / RATE, abs=3e-3)
    assert found.against == held.name


def test_laws_with_states_and_logs_without_targets_are_not_looked_at(sound):
    robot, log, _ = sound
    idim, ready = di.build_idim(robot), di.prepare(log, bandwidth=10.0)
    assert follows_law(idim, pd(KP, KD), [ready])
    assert not follows_law(idim, pid(KP, 1.0, KD), [ready])
    assert not follows_law(idim, pd(KP, KD), [replace(ready, qref=None)])


@pytest.mark.long
def test_a_result_is_refuted_by_what_is_found(tmp_path, sound):
    robot, log, _ = sound
    found = identify(robot, damaged(log, set_order))
    assert found.verdict.state == "refuted"
    assert found.findings[0].diagnosis == "position order"
    assert found.findings[0].found in found.verdict.words


@pytest.mark.long
@pytest.mark.parametrize("name", ["z1", "go2"])
def test_undamaged_measured_logs_have_no_finding(measured, name):
    folder = measured("unitree")
    robot = di.load_robot(str(folder / f"{name}.urdf"))
    log = di.read_log(folder / f"{name}_first.csv", robot, torque=False)
    kp = {"z1": (80.0, 120.0, 120.0, 80.0, 80.0, 80.0, 80.0), "go2": (20.0,) * 12}[name]
    law = pd(kp, {"z1": 2.5, "go2": 1.5}[name])
    cut = 2 * len(log.q) // 3
    rows = log.rows(0, cut), log.rows(cut, len(log.q))
    parts = [di.prepare(each, bandwidth=10.0) for each in rows]
    idim = di.build_idim(robot)
    assert examine_encoders(idim, law, parts[:1], parts[1:]) == ((),)
    assert examine_encoders(idim, law, parts[1:]) == ((),)
    hung = idim.of(replace(robot, gravity=-np.asarray(robot.gravity)))
    ((found,),) = examine_encoders(hung, law, parts[:1])
    assert found.diagnosis == "mounting"


def test_the_command_repairs_a_study_of_encoders(tmp_path, sound, capsys):
    _, log, _ = sound
    arm(tmp_path)
    wrong = damaged(log, set_sign)
    write_joints(tmp_path / "log.csv", ("j1", "j2", "j3"), RATE, q=wrong.q, qref=wrong.qref)
    study = tmp_path / "study.toml"
    study.write_text(
        '[robot]\nfile = "arm.urdf"\n[[log]]\nfiles = "log.csv"\n[prepare]\nbandwidth = 10.0\n'
        f'[controller]\nkind = "pd"\nkp = {list(KP)}\nkd = {list(KD)}\n'
    )
    assert run(["doctor", str(study), "--fix", str(tmp_path / "repaired.toml")]) == 0
    assert "the position of j2 has the opposite sign" in capsys.readouterr().out
    assert "sign = {q = [1.0, -1.0, 1.0]}" in (tmp_path / "repaired.toml").read_text()
    assert run(["doctor", str(tmp_path / "repaired.toml")]) == 0
    assert "none: no alternative hypothesis" in capsys.readouterr().out
    study.write_text(study.read_text().replace('"pd"', '"pid"') + "ki = 1.0\n")
    assert "looked at by their targets" in tell(capsys, ["doctor", str(study)], code=2).err
