"""The doctor: damage is found, named, measured and repaired, and sound logs are left alone."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import toy
from scipy import signal
from thin import first, long

from dynident import api, doctor, load_robot, read_log
from dynident.api import identify
from dynident.consistency.constraints import LinkMass
from dynident.control import controller
from dynident.core.errors import ComputationError, InputError
from dynident.diagnosis.by_file import find_by_file, find_zero, measure_file_scale, measure_inertia
from dynident.diagnosis.by_law import find_by_law
from dynident.diagnosis.diagnoses import (
    DIAGNOSES,
    fit_difference,
    has_corner,
)
from dynident.diagnosis.examine import (
    Explanation,
    denies_file,
    examine,
    has_unrelated_joints,
    rank_explanations,
)
from dynident.diagnosis.scene import take_scene
from dynident.diagnosis.screening import (
    evaluate_free_errors,
    is_clearly_better,
    keep_best_suspects,
)
from dynident.diagnosis.signs import Sign, estimate_smallest_step, find_signs
from dynident.diagnosis.sized import build_delay_family, measure_gain, suspect_size
from dynident.diagnosis.springs import (
    build_spring_family,
    find_sure_spring,
    fit_under_constraints,
)
from dynident.diagnosis.suspicion import (
    Reading,
    Suspicion,
    fit_consistent_model,
    make_repairable_suspicion,
)
from dynident.diagnosis.thresholds import BLUR, SURE
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import attach
from dynident.estimators.closed_loop import Simulation
from dynident.fit.copies import is_marked, mark_log
from dynident.fit.reasons import (
    expect_percent,
    list_reversed_friction_reasons,
    list_smoothing_reasons,
)
from dynident.fit.verdict import DOUBTFUL, REFUTED, TRUSTED, list_sign_reasons
from dynident.fit.warnings import find_repeated_logs
from dynident.recording.prepare import Samples, prepare
from dynident.recording.recording import Recording
from dynident.recording.repairs import LogRepair, repair_recording
from dynident.regression.problem import Problem
from dynident.regression.spectra import measure_smoothing
from dynident.regression.weighted import solve_wls

N = 4


@pytest.fixture(scope="module")
def sound():
    """A log of an arm with measured noise of torque and position."""
    return toy.measure(toy.arm(N), seconds=10.0)


@pytest.fixture(scope="module")
def base():
    return base_parameters(build_idim(toy.arm(N, nominal=False)))


def limited(effort):
    """The arm with limits of its drives."""
    robot = toy.arm(N)
    joints = zip(robot.joints, effort, strict=True)
    return replace(robot, joints=tuple(replace(j, effort=e) for j, e in joints))


def findings(base, recording):
    return examine(base, [prepare(recording, 10.0)], thorough=True)[0]


def damaged(recording, repair):
    """A log that a repair would make sound: the same done the other way round."""
    n = recording.q.shape[1]
    q, tau = recording.q - np.broadcast_to(repair.offset, n), recording.tau
    q = (q * repair.signs("q", n))[:, np.argsort(repair.places("q", n))]
    tau = (tau * repair.signs("tau", n))[:, np.argsort(repair.places("tau", n))]
    return replace(recording, q=q, tau=tau)


def test_a_sound_log_is_left_alone(base, sound):
    assert findings(base, sound) == ()
    assert find_signs(toy.arm(N), prepare(sound, 10.0)) == ()


def test_vibration_of_a_slow_log_is_no_delay():
    """Of 0.2 mrad at 15 Hz, which torques show 30 ms later: a delay leaves half of the error."""
    robot, slower = toy.arm(2), 0.25
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    q, dq, ddq = toy.motion(2, 2.5, 0)
    dq, ddq, rate = slower * dq, slower**2 * ddq, slower * toy.RATE
    turns = 2.0 * np.pi * 15.0
    moved = 2e-4 * np.sin(turns / rate * np.arange(len(q))[:, None] + [0.0, 1.0])
    still = idim.torque(theta, q, dq, ddq)
    shaken = idim.torque(theta, q + moved, dq, ddq - turns**2 * moved) - still
    tau = still + np.roll(shaken, round(0.03 * rate), axis=0)
    tau += 0.05 * np.random.default_rng(3).normal(size=tau.shape)
    log = Recording("slow", rate, q + moved, tau)
    assert findings(base_parameters(idim), log) == ()


REPAIRS = {
    "torque sign": LogRepair(sign={"tau": (1.0, 1.0, -1.0, 1.0)}),
    "all torque signs": LogRepair(sign={"tau": -1.0}),
    "torque order": LogRepair(order={"tau": (1, 3, 2, 4)}),
    "position order": LogRepair(order={"q": (1, 2, 4, 3)}),
    "joint order": LogRepair(order={"q": (1, 3, 2, 4), "tau": (1, 3, 2, 4)}),
    "position sign": LogRepair(sign={"q": (1.0, -1.0, 1.0, 1.0)}),
    "torque order of three": LogRepair(order={"tau": (1, 3, 4, 2)}),
}


@pytest.mark.parametrize("name", first(REPAIRS, 5))
def test_damage_is_named_and_its_repair_is_the_one_that_was_undone(base, sound, name):
    wanted = REPAIRS[name]
    hurt = damaged(sound, wanted)
    found = findings(base, hurt)
    assert len(found) == 1
    assert found[0].diagnosis in name.replace("signs", "sign")
    assert found[0].after < 0.5 * found[0].before
    repaired = repair_recording(hurt, found[0].repair)
    np.testing.assert_allclose(repaired.q, sound.q, atol=1e-12)
    np.testing.assert_allclose(repaired.tau, sound.tau, atol=1e-12)
    assert repaired.repairs == found[0].repair.lines()


@pytest.mark.parametrize("seconds", first([-0.03, 0.012, 0.05]))
def test_a_delay_is_measured(base, sound, seconds):
    samples = round(seconds * sound.rate)
    hurt = replace(sound, tau=np.roll(sound.tau, samples, axis=0))
    cut = max(abs(samples), 1)
    hurt = hurt.rows(cut, len(hurt.q) - cut)
    found = findings(base, hurt)
    assert found[0].diagnosis == "delay"
    assert found[0].repair.delay == pytest.approx(seconds, abs=5e-4)
    again = findings(base, repair_recording(hurt, found[0].repair))
    assert again == ()


@pytest.mark.parametrize("nominal", [False, True])
@pytest.mark.parametrize("value", [0.0, -1.3])
@pytest.mark.parametrize("joint", [0, 1])
def test_a_torque_that_is_one_number_is_named_alone(value, joint, nominal):
    """Nothing is said of its own joint, nor of another one, by a log alone or beside another."""
    robot = toy.arm(2, nominal=nominal)
    one, other = (toy.measure(toy.arm(2), seconds=seconds) for seconds in (3.0, 2.0))
    tau = one.tau.copy()
    tau[:, joint] = value
    hurt = prepare(replace(one, tau=tau), 10.0)
    assert [sign.kind for sign in find_signs(robot, hurt)] == ["dead"]
    base = base_parameters(build_idim(robot))
    for logs in ([hurt], [hurt, prepare(other, 10.0)]):
        assert not any(examine(base, logs, thorough=True))
    driven = replace(hurt, qref=hurt.measured + prepare(one, 10.0).tau / 100.0)
    assert find_by_law(take_scene(base, driven), controller.pd([100.0] * 2, [0.0] * 2)) is None


@pytest.mark.parametrize("name", ["torque sign", "position sign", "torque order"])
def test_other_faults_are_found_beside_a_torque_that_is_one_number(base, sound, name):
    hurt = damaged(sound, REPAIRS[name])
    tau = hurt.tau.copy()
    tau[:, 0] = 2.2
    (found,) = findings(base, replace(hurt, tau=tau))
    repaired = repair_recording(hurt, found.repair)
    np.testing.assert_allclose(repaired.q, sound.q, atol=1e-12)
    np.testing.assert_allclose(repaired.tau, sound.tau, atol=1e-12)


def test_a_gain_that_changes_within_a_log_is_measured(base, sound):
    tau = sound.tau.copy()
    tau[len(tau) // 2 :] *= 1.5
    (found,) = findings(base, replace(sound, tau=tau))
    assert found.diagnosis == "gain step"
    assert found.what == "the torques from about 5 s on are 1.5 times what they were before"
    assert found.remedy.startswith("fit the stretches before and behind as two logs")


def test_a_gain_is_measured_though_noise_is_as_large(base, sound):
    """By the torque itself as the column, less of it would seem better: less noise, too."""
    rng = np.random.default_rng(8)
    tau = sound.tau + np.std(sound.tau, axis=0) * rng.normal(size=sound.tau.shape)
    tau[len(tau) // 2 :] *= 1.5
    scene = take_scene(base, prepare(replace(sound, tau=tau), 10.0))
    shares = {k: measure_gain(scene, k * len(scene.torque) // 8) for k in range(1, 8)}
    assert min(shares, key=shares.__getitem__) == 4
    assert shares[4][1] == pytest.approx(1.0 / 1.5, rel=0.02)


def test_weight_that_a_controller_took_out_by_a_file_with_other_masses_is_given_back(sound):
    """Of one joint more than it bears, of another less: bodies of no mass do not explain it."""
    own = toy.arm(N)
    file = replace(own, nominal=own.nominal * np.array([[1.0], [1.8], [0.6], [1.5]]))
    idim = build_idim(file)
    still = np.zeros_like(sound.q)
    taken = replace(sound, tau=sound.tau - idim.torque(idim.nominal, sound.q, still, still))
    found = findings(base_parameters(idim), taken)
    assert found[0].diagnosis == "gravity"
    assert found[0].what.startswith("the weight of the robot file's bodies is not in the torques")


def test_of_one_joint_that_bears_nothing_no_log_tells_the_torque_from_the_position():
    log, _ = toy.log(toy.arm(1, nominal=False), seconds=10.0, noise=0.3)
    log = replace(log, dq=None, ddq=None)
    base = base_parameters(build_idim(toy.arm(1, nominal=False)))
    for hurt in (replace(log, tau=-log.tau), replace(log, q=-log.q)):
        (found,) = findings(base, hurt)
        assert found.diagnosis == "sign"
        assert all(word in found.what for word in ("the torque of joint_1", "the position of"))
        assert all(key in found.remedy for key in ("tau = [-1]", "q = [-1]"))
        assert findings(base, repair_recording(hurt, found.repair)) == ()


@pytest.mark.parametrize("seed", range(1, 9))
def test_what_the_file_explains_is_read_no_other_way_for_little(tmp_path, seed):
    """A pendulum whose axis leans by 2 deg, held: along another axis gravity does as well."""
    path = tmp_path / "pendulum.toml"
    body = "mass = 0.7, com = [0, -0.4, 0], inertia = [0.003, 0, 0.003, 0, 0, 0.003]"
    joint = f'[[joint]]\nname = "one"\nalpha = 2\ninertial = {{ {body} }}\n'
    path.write_text(f'name = "pendulum"\nconvention = "modified"\n{joint}')
    robot = load_robot(path)
    idim = build_idim(robot)
    t = np.arange(1000) / 100.0
    q = (1.5 * np.sin(1.1 * t) + 0.8 * np.sin(2.3 * t + 1.0))[:, None]
    still, late = np.zeros_like(q), 0.005 * np.gradient(q, 0.01, axis=0)
    tau = idim.torque(idim.nominal, q - late, still, still)
    tau += 1e-3 * np.random.default_rng(seed).normal(size=q.shape)
    (found,) = examine(
        base_parameters(idim), [prepare(Recording("held", 100.0, q, tau), 2.0)], thorough=True
    )
    assert {each.diagnosis for each in found} <= {"delay"}  # which there is


def test_what_any_model_leaves_of_a_torque_goes_with_the_joint_that_it_is_read_for(sound):
    """The last drive is never at work; in its column stands the torque of the first."""
    rms = np.sqrt(np.mean(sound.tau**2, axis=0))
    base = base_parameters(build_idim(limited(rms * [4.0, 4.0, 4.0, 100.0])))
    scene = take_scene(base, prepare(replace(sound, tau=sound.tau[:, [3, 1, 2, 0]]), 10.0))
    assert scene.blur[3] < 0.2
    left = np.array([0.1, 0.1, 0.1, 0.8])
    for repair, lost in (
        (LogRepair(order={"tau": (4, 2, 3, 1)}), False),
        (LogRepair(sign={"tau": (1.0, 1.0, 1.0, -1.0)}), True),
    ):
        told = make_repairable_suspicion("", "", repair, N)
        assert has_unrelated_joints(scene, left, told) == lost


def test_torques_that_all_lost_their_signs_are_no_log_to_repair(base, sound):
    (found,) = findings(base, replace(sound, tau=np.abs(sound.tau)))
    assert found.diagnosis == "unsigned"
    assert found.remedy == "log the torques with their signs"
    assert found.repair is None


FILES = {
    "undamaged": lambda log, robot: (log, robot),
    "rate": lambda log, robot: (replace(log, rate=2.0 * log.rate), robot),
    "mounting": lambda log, robot: (log, replace(robot, gravity=-robot.gravity)),
    "torque sign": lambda log, robot: (replace(log, tau=-log.tau), robot),
    "torque scale": lambda log, robot: (replace(log, tau=2.0 * log.tau), robot),
    "position unit": lambda log, robot: (replace(log, q=np.degrees(log.q)), robot),
}


@pytest.mark.parametrize("name", FILES)
def test_the_file_tells_what_bodies_that_nobody_knows_explain(sound, name):
    log, robot = FILES[name](sound, toy.arm(N))
    scene = take_scene(base_parameters(build_idim(robot)), prepare(log, 10.0), most=300)
    found = find_by_file(scene)
    if name == "undamaged":
        assert found is None
    else:
        assert found.suspicion.diagnosis == name
        assert found.after < 0.2 * found.before
    nameless = take_scene(base_parameters(build_idim(toy.arm(N, nominal=False))), scene.log)
    assert find_by_file(nameless) is None


@pytest.fixture(scope="module")
def known(sound):
    """The log where the file has the arm's bodies."""
    return take_scene(base_parameters(build_idim(toy.arm(N))), prepare(sound, 10.0), most=300)


def test_the_file_tells_the_scale_of_one_joint_unless_it_is_the_last(known):
    assert measure_file_scale(known).every == pytest.approx(1.0, abs=0.1)
    assert measure_file_scale(known).suspicion(known) is None
    first, last = (
        measure_file_scale(known.driven(known.torque * factors))
        for factors in ([2.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0])
    )
    assert first.joint == 0
    assert first.own == pytest.approx(2.0, rel=0.1)
    assert last.joint is None  # something that it carries does the same


def test_the_file_tells_how_fast_time_runs_and_zeros(known):
    assert measure_inertia(known) == pytest.approx(1.0, abs=0.2)
    assert measure_inertia(known.quicker(0.5)) == pytest.approx(4.0, rel=0.2)
    assert find_zero(known) is None
    turned = known.along(known.q - [0.0, 0.2, 0.0, 0.0], known.dq, known.ddq)
    found = find_zero(turned)
    assert found.diagnosis == "encoder offset"
    assert found.repair.offset[1] == pytest.approx(0.2, rel=0.2)


@pytest.mark.parametrize("mass", [0.5, -0.5])
def test_a_tool_that_the_file_lacks_or_has_too_many_is_no_zero_of_a_wrist(known, mass):
    idim, lever = known.base.idim, 0.2
    tool = np.zeros(len(idim.parameters))
    tool[10 * (N - 1) :][:10] = mass * np.array([1, lever, 0, 0, 0, 0, lever**2, 0, 0, lever**2])
    assert find_zero(known.driven(known.torque + idim.torque(tool, *known.logged))) is None


LAWS = {
    "undamaged": lambda log: log,
    "torque scale": lambda log: replace(log, tau=2.0 * log.tau),
    "rate": lambda log: replace(log, rate=2.0 * log.rate),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_law_of_a_controller_tells_clocks_and_scales(base, sound, name):
    kp, kd = 2000.0, 200.0
    speed = np.gradient(sound.q, 1.0 / sound.rate, axis=0)
    asked = replace(sound, qref=sound.q + (sound.tau + kd * speed) / kp)
    s = take_scene(base, prepare(LAWS[name](asked), 10.0), most=60)
    still = take_scene(base, prepare(LAWS[name](sound), 10.0), most=60)
    law = controller.pd([kp] * N, [kd] * N, velocity_reference=False)
    assert find_by_law(still, law) is None  # nobody knows what was asked
    found = find_by_law(s, law)
    if name == "undamaged":
        assert found is None
    else:
        assert found.suspicion.diagnosis == name
        assert found.after < 0.2 * found.before
        assert found.suspicion.rate in (None, sound.rate)
        assert find_by_law(s, controller.pd([1.0] * N, [kd] * N)) is None  # of another robot
    held = {"rate": sound.rate, "velocity": "differences", "lag": 2}
    sampled = controller.pd([kp] * N, [kd] * N, velocity_reference=False, **held)
    again = find_by_law(s, sampled)
    assert (found is None) == (again is None)
    assert again is None or again.suspicion.what == found.suspicion.what


def test_a_verdict_uses_the_law_that_it_is_told(sound):
    kp, kd = 2000.0, 200.0
    speed = np.gradient(sound.q, 1.0 / sound.rate, axis=0)
    asked = replace(sound, qref=sound.q + (sound.tau + kd * speed) / kp, tau=2.0 * sound.tau)
    problem = Problem(toy.arm(N, nominal=False), prepare(asked, 10.0))
    law = Simulation(controller.pd([kp] * N, [kd] * N, velocity_reference=False))
    fit = identify(problem, bootstrap=0, law=law)
    assert fit.verdict.state == REFUTED
    assert "2 times what the controller commands" in fit.verdict.reasons[0].words
    assert "law" not in fit.settings
    assert identify(problem, bootstrap=0).verdict.state == TRUSTED  # no log shows it by itself


def test_torques_that_were_smoothed_lack_what_quick_motion_asks_for(sound):
    robot = toy.arm(N)
    mean = np.ones(151) / 151.0
    smooth = replace(
        sound, tau=np.column_stack([np.convolve(x, mean, "same") for x in sound.tau.T])
    )
    said = []
    for log in (sound, smooth):
        problem = Problem(robot, prepare(log, 10.0))
        beta, _, _ = solve_wls(problem.factors)
        found = measure_smoothing(problem.idim, problem.base.standard(beta), problem.samples)
        reasons = list_smoothing_reasons(problem, problem.base.standard(beta))
        said.append((found, [each.words for each in reasons]))
    (whole, nothing), (less, (words,)) = said
    assert abs(whole.share - 1.0) < 3.0 * whole.error
    assert nothing == []
    assert less.share < 0.9
    assert "they were smoothed" in words


def test_what_other_motions_may_err_by_is_that_of_draws(sound):
    """Errors of parameters that are drawn from the covariance, along the rows that were fitted."""
    problem = Problem(toy.arm(N), prepare(sound, 10.0))
    found = identify(problem, "wls").estimate
    said = expect_percent(problem.factors, found, 0.0)
    rng = np.random.default_rng(0)
    drawn = rng.multivariate_normal(0.0 * found.beta, found.covariance.matrix, 4000)
    squares, torque = np.zeros(len(drawn)), 0.0
    for rows in problem.rows():
        for X, y, columns in zip(rows.X, rows.y, problem.columns, strict=True):
            squares += np.sum((X @ drawn[:, columns].T) ** 2, axis=0)
            torque += float(y @ y)
    # of 4000 squares, each of as many degrees as there are parameters at least one
    assert said == pytest.approx(100.0 * np.sqrt(np.mean(squares) / torque), rel=0.07)
    assert expect_percent(problem.factors, found, 3.0) == pytest.approx(np.hypot(3.0, said))


def test_a_joint_that_no_model_explains_hides_no_other():
    own = np.array([0.02, 0.03, 0.8])
    turned = Suspicion("position sign", "", Reading.plain(3, lambda scene: scene))
    assert is_clearly_better(own, np.array([0.4, 0.4, 0.85]), turned, None, False)
    assert not is_clearly_better(own, np.array([0.02, 0.03, 0.9]), turned, None, False)


def test_joints_that_are_mostly_noise_hide_none_in_which_there_is_much_to_explain():
    before, loud = np.array([0.3, 0.2, 0.7, 0.8, 0.9]), np.array([True, True, False, False, False])
    left = before * [0.65, 0.65, 1.0, 1.0, 1.0]  # 84 % of all, 65 % of the two
    stepped = Suspicion("gain step", "", Reading.plain(5), freedom=2)
    assert not is_clearly_better(left, before, stepped, None, False)
    assert is_clearly_better(left, before, stepped, None, False, loud)
    rippled = replace(stepped, freedom=15)  # of a log at 30 Hz of an iCub, that was sound
    assert not is_clearly_better(0.97 * left, before, rippled, None, False, loud)
    worse = np.append(left[:-1], 1.2 * left[-1])
    assert not is_clearly_better(worse, before, stepped, None, False, loud)


def test_all_positions_turned_are_looked_at_beside_single_ones():
    """They leave what the log does unless bodies are consistent, so that others seem better."""
    suspects = [
        make_repairable_suspicion("position sign", "", LogRepair(sign={"q": sign}), 3)
        for sign in ((-1.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, -1.0), -1.0)
    ]
    ranked = [(np.full(3, 0.1 + 0.1 * k), own) for k, own in enumerate(suspects)]
    kept = [own for _, own in keep_best_suspects(ranked)]
    assert kept == [suspects[0], suspects[1], suspects[3]]


def test_one_number_for_all_torques_is_of_no_joint_by_itself(base, sound):
    """A joint that nothing explains beside another log refutes what is said of that joint alone."""
    scene = take_scene(base, prepare(sound, 10.0))
    left = np.array([0.05, 0.05, 2.0, 0.05])
    others = np.array([0.05, 0.05, 0.8, 0.05])
    for torque, freedom, lost in (
        (-np.eye(N), 0, False),
        (0.5 * np.eye(N), 1, False),
        (0.5 * np.eye(N), N, True),
        (np.diag([1.0, 1.0, -1.0, 1.0]), 0, True),
        (np.diag([-1.0, 1.0, 1.0, 1.0]), 0, False),
    ):
        told = Suspicion("", "", Reading(torque, np.zeros(N)), freedom=freedom)
        assert has_unrelated_joints(scene, np.append(left, others), told) == lost


def test_readings_about_as_good_are_told_apart_by_what_any_bodies_leave(sound):
    """As a joint's sign of torque and of position, where consistent bodies leave about the same."""
    scene = take_scene(base_parameters(build_idim(toy.arm(N, nominal=False))), prepare(sound, 10.0))

    def explain(name, consistent, free):
        problem = SimpleNamespace(free_errors=lambda: np.full(N, free))
        return Explanation(Suspicion(name, name, Reading.plain(N)), np.full(N, consistent), problem)

    torque, position = explain("torque", 0.0695, 0.0717), explain("position", 0.0698, 0.0672)
    for given in ([torque, position], [position, torque]):
        assert rank_explanations(scene, given)[0].suspicion.diagnosis == "position"
    worse = explain("position", 0.074, 0.05)
    assert rank_explanations(scene, [worse, torque])[0].suspicion.diagnosis == "torque"


def test_half_of_a_joints_error_is_clear_of_its_torques_sign_alone():
    own, before = np.array([0.02, 0.18, 0.3]), np.array([0.02, 0.37, 0.3])
    sign = Suspicion("torque sign", "", Reading(np.diag([1.0, -1.0, 1.0]), np.zeros(3)))
    assert is_clearly_better(own, before, sign, None, False)
    order = Reading(np.eye(3)[[1, 0, 2]], np.zeros(3))
    for other in (order, Reading.plain(3, lambda scene: scene)):
        assert not is_clearly_better(own, before, replace(sign, reading=other), None, False)


def test_small_torques_of_large_drives_count_little(sound):
    limits = (1e4, *(2.0 * np.max(np.abs(sound.tau), axis=0)[1:]))
    for known, lasts in ((toy.arm(N), True), (limited(limits), False)):
        scene = take_scene(base_parameters(build_idim(known)), prepare(sound, 10.0))
        assert (scene.blur[0] == BLUR) == lasts
        assert scene.blur[0] <= 1.0
        assert np.all(scene.blur[1:] < 0.05)


@pytest.mark.long
def test_what_is_wrong_with_a_log_is_said_where_no_model_comes_out(sound, monkeypatch):
    def fail(*_, **__):
        raise ComputationError("the groups' sigmas did not settle")

    monkeypatch.setattr(api, "fit_model", fail)
    wrong = repair_recording(sound, LogRepair(sign={"tau": (1.0, -1.0, 1.0, 1.0)}))
    for log, words in ((wrong, "the torque of joint_2 has the opposite sign"), (sound, "")):
        with pytest.raises(ComputationError, match=f"did not settle.*{words}"):
            identify(Problem(toy.arm(N), prepare(log, 10.0)), "wls")


DAMAGES = {
    "encoder offset": lambda log: replace(log, q=log.q - np.radians(10.0) * (np.arange(7) == 2)),
    "undamaged": lambda log: log,
    "torque sign": lambda log: replace(log, tau=-log.tau),
    "torque scale": lambda log: replace(log, tau=0.1 * log.tau),
    "gain step": lambda log: replace(
        log, tau=log.tau * np.where(np.arange(len(log.tau)) < len(log.tau) // 2, 1.0, 1.5)[:, None]
    ),
    "position unit": lambda log: replace(log, q=np.degrees(log.q)),
}


@pytest.mark.parametrize("name", first(DAMAGES))
def test_damage_of_a_measured_log_is_named(measured, name):
    folder = measured("lwr4")
    robot = load_robot(folder / "kuka_lwr4.urdf")
    columns = {"time": "times", "q": "positions_*", "tau": "torques_*"}
    first, other = (
        read_log(folder / f"measurements_{k}.npz", robot, columns=columns) for k in (1, 3)
    )
    problem = Problem(robot, prepare(DAMAGES[name](first), 10.0))
    found = examine(problem.base, problem.samples, [prepare(other, 10.0)])
    named = [each.diagnosis for each in found[0]]
    assert named[:1] == ([] if name == "undamaged" else [name])
    if name == "encoder offset":
        (told,) = found[0]
        assert abs(told.repair.offset[2] - np.radians(10.0)) < 3.0 * told.error


@pytest.mark.parametrize("degrees", [-20.0, 8.0])
def test_an_encoder_offset_is_measured(base, sound, degrees):
    offset = np.zeros(N)
    offset[2] = np.radians(degrees)
    found = findings(base, replace(sound, q=sound.q - offset))
    assert found[0].diagnosis == "encoder offset"
    np.testing.assert_allclose(found[0].repair.offset, offset, atol=np.radians(0.5))


@pytest.mark.parametrize(("unit", "size"), [("deg", 180.0 / np.pi), ("rev", 0.5 / np.pi)])
def test_units_are_found(base, sound, unit, size):
    found = findings(base, replace(sound, q=size * sound.q))
    assert found[0].diagnosis == "position unit"
    assert found[0].unit == unit
    assert f'units = {{ q = "{unit}" }}' in found[0].remedy


@pytest.mark.long
def test_two_things_at_once_are_found_one_after_the_other(base, sound):
    tau = sound.tau * [1.0, -1.0, 1.0, -1.0]
    found = findings(base, replace(sound, tau=tau))
    assert [f.diagnosis for f in found] == ["torque sign", "torque sign"]
    whole = LogRepair()
    for finding in found:
        whole = whole.then(finding.repair, N)
    assert whole == LogRepair(sign={"tau": (1.0, -1.0, 1.0, -1.0)})


@pytest.mark.parametrize("name", ["reversed time", "absolute encoder", "gravity"])
def test_what_no_study_can_repair_is_named_with_advice(base, sound, name):
    hurt = sound
    if name == "reversed time":
        hurt = replace(sound, q=sound.q[::-1], tau=sound.tau[::-1])
    elif name == "absolute encoder":
        q = sound.q.copy()
        q[:, 2] += q[:, 1]
        hurt = replace(sound, q=q)
    else:
        robot = replace(toy.arm(N), gravity=(0.0, 0.0, 0.0))
        hurt, _ = toy.log(robot, seconds=10.0, noise=0.3)
        hurt = replace(hurt, dq=None, ddq=None)
    found = findings(base, hurt)
    assert found[0].diagnosis == name
    assert found[0].repair is None
    assert found[0].remedy == found[0].words.rsplit(": ", 1)[1]


def test_readings_that_lose_too_many_rows_tell_nothing(base, sound):
    samples = prepare(sound, 10.0)
    one = take_scene(base, samples, most=300)
    short = prepare(sound.rows(0, len(sound.q) // 2), 10.0)
    for scene in (one, one.among((take_scene(base, short, most=300),))):
        brief = scene.brief
        reads = [Reading.of_repair(each, N).of(brief) for each in REPAIRS.values()] * 2
        reads += [brief.quicker(3.0), brief.quicker(40.0), brief.lagged(np.full(N, 0.02))]
        late = replace(brief.motion.at, settling=8.0)
        reads.append(replace(brief, motion=replace(brief.motion, at=late)))
        together = evaluate_free_errors(reads, brief)
        assert [errors is None for errors in together] == [False] * (len(reads) - 1) + [True]
        for read, errors in zip(reads, together, strict=True):
            assert (errors is not None) == read.problem.as_many_as(brief.problem)
            if errors is not None:
                np.testing.assert_allclose(errors, read.problem.free_errors(), atol=1e-6)
        silent = brief.driven(brief.torque * [1.0, 0.0, 1.0, 1.0])
        assert evaluate_free_errors([silent], brief) == [None]


def test_a_magnitude_that_turned_is_told_from_a_torque_that_comes_near_zero():
    t = np.linspace(0.0, 10.0, 2000)
    noise = 1e-3 * np.random.default_rng(3).normal(size=len(t))
    assert has_corner(np.abs(np.sin(t)))
    assert has_corner(np.abs(np.sin(t) + noise))
    assert not has_corner(1.02 + np.sin(t))
    assert not has_corner(1.02 + np.sin(t) + noise)


def test_every_diagnosis_is_tried_here():
    tried = {"torque sign", "torque order", "position sign", "position order", "joint order"}
    tried |= {"delay", "encoder offset", "position unit"}
    tried |= {"absolute encoder", "reversed time", "gravity", "drift", "mounting"}
    tried |= {"coupled drive", "rate", "torque scale of a joint", "slow logger", "torque scale"}
    tried |= {"load", "friction", "spring", "position delay", "ripple", "unsigned", "gain step"}
    tried |= {"torque side", "computed torque"}  # in test_effort.py
    # those of robots that float or touch something, in test_floating_commands.py
    tried |= {"late signal", "wrench sign", "wrench order", "wrench axes", "wrench unit"}
    tried |= {"unit mounting"}
    # and of logs of encoders alone, in test_encoder_doctor.py
    tried |= {"push"}
    assert tried == set(DIAGNOSES)


def test_the_torque_of_one_joint_may_be_late_alone(base, sound):
    tau = sound.tau.copy()
    tau[:, 1] = np.roll(tau[:, 1], 60)
    found = findings(base, replace(sound, tau=tau).rows(100, len(tau)))
    assert found[0].diagnosis == "delay"
    np.testing.assert_allclose(found[0].repair.delay, [0.0, 0.06, 0.0, 0.0], atol=5e-4)


def test_a_size_at_the_end_of_what_is_looked_for_is_not_sure(base, sound):
    """No error bar tells of a delay that a search has not been beyond."""
    late = np.roll(sound.tau, 60, axis=0)
    scene = take_scene(base, prepare(replace(sound, tau=late).rows(100, len(late)), 10.0))
    family = build_delay_family(np.ones((N, 1)))
    for most, sure in ((0.1, True), (0.05, False)):
        (told,) = suspect_size(scene, replace(family, most=most), np.array([0.062]))
        assert (told.measure(scene).sure > SURE) == sure


@pytest.mark.long
def test_sizes_have_standard_errors(base, sound):
    samples = 12
    hurt = replace(sound, tau=np.roll(sound.tau, samples, axis=0)).rows(20, len(sound.q))
    (found,) = findings(base, hurt)
    assert abs(found.repair.delay - samples / sound.rate) < 3.0 * found.error
    assert 1e-6 < found.error < 1e-3
    assert f"± {1e3 * found.error:.2f} ms" in found.what
    offset = np.array([0.0, 0.0, 0.2, 0.0])
    found = findings(base, replace(sound, q=sound.q - offset))[0]
    assert abs(found.repair.offset[2] - 0.2) < 3.0 * found.error
    assert 1e-5 < found.error < 0.02


@pytest.mark.parametrize("late", first([(12, 40, 5, 25), (3, 4, 10, 2)]), ids=["long", "short"])
def test_each_torque_may_be_late_by_a_time_of_its_own(base, sound, late):
    late = np.array(late)
    tau = np.column_stack([np.roll(t, k) for t, k in zip(sound.tau.T, late, strict=True)])
    found = findings(base, replace(sound, tau=tau).rows(50, len(tau)))
    assert found[0].diagnosis == "delay"
    np.testing.assert_allclose(found[0].repair.delay, late / sound.rate, atol=5e-4)


@pytest.mark.parametrize("samples", first([-15, 30]))
def test_the_position_of_one_joint_may_be_late_alone(base, sound, samples):
    q = sound.q.copy()
    q[:, 2] = np.roll(q[:, 2], samples)
    hurt = replace(sound, q=q).rows(40, len(q) - 40)
    (found,) = findings(base, hurt)
    assert found.diagnosis == "position delay"
    wanted = [0.0, 0.0, samples / sound.rate, 0.0]
    np.testing.assert_allclose(found.repair.lag, wanted, atol=3.0 * found.error)
    repaired = repair_recording(hurt, LogRepair(lag=tuple(wanted)))
    inside = slice(40, -40)
    whole = sound.rows(40, len(q) - 40)
    np.testing.assert_allclose(repaired.q[inside], whole.q[inside], atol=1e-12)
    (start, stop), length = repaired.segments[0], abs(samples)
    assert (start, len(hurt.q) - stop) == ((0, length) if samples > 0 else (length, 0))


FILTERS = {
    "first order on torques": ("tau", 1, 2.0),
    "second order on torques": ("tau", 2, 1.0),
    "first order on positions": ("q", 1, 1.0),
}


@pytest.mark.parametrize("name", first(FILTERS))
def test_a_low_pass_of_the_logger_is_measured_and_undone(base, sound, name):
    which, order, hz = FILTERS[name]
    b, a = signal.butter(order, hz, fs=sound.rate)
    own = getattr(sound, which)
    hurt = replace(sound, **{which: signal.lfilter(b, a, own - own[0], axis=0) + own[0]})
    found = findings(base, hurt)[0]
    assert found.diagnosis == {"tau": "slow torque", "q": "slow position"}[which]
    assert f"low-pass of order {order} at " in found.what
    time = 1.0 / (2.0 * np.pi * hz)
    wanted = [time] if order == 1 else [np.sqrt(2.0) * time, time**2]
    np.testing.assert_allclose(found.repair.unfilter[which], wanted, rtol=0.01)
    repaired = repair_recording(hurt, LogRepair(unfilter={which: tuple(wanted)}))
    (start, stop) = repaired.segments[0]
    assert start == np.ceil(wanted[0] * sound.rate)  # one of its times
    slow = signal.butter(2, 20.0, fs=sound.rate, output="sos")
    left, right = (
        signal.sosfiltfilt(slow, x, axis=0)[start + 200 : stop - 200]
        for x in (getattr(repaired, which), own)
    )
    np.testing.assert_allclose(left, right, atol=3e-3 * np.std(own))
    assert findings(base, repair_recording(hurt, found.repair)) == ()


@pytest.mark.long
def test_a_low_pass_far_above_the_motion_is_told_from_a_delay(base):
    sound, held = (toy.log(toy.arm(N), seconds=8.0, noise=1.0, seed=k)[0] for k in (0, 3))
    late = replace(sound, tau=np.roll(sound.tau, 20, axis=0)).rows(20, len(sound.q))
    (found,) = findings(base, late)
    assert (found.diagnosis, found.repair.unfilter) == ("delay", None)
    b, a = signal.butter(2, 10.0, fs=sound.rate)
    slow = signal.lfilter(b, a, sound.tau - sound.tau[0], axis=0) + sound.tau[0]
    slow = replace(sound, tau=slow)
    (found,) = findings(base, slow)
    assert found.diagnosis == "slow torque"
    time = 1.0 / (2.0 * np.pi * 10.0)
    wanted = [np.sqrt(2.0) * time, time**2]
    np.testing.assert_allclose(found.repair.unfilter["tau"], wanted, rtol=0.03)
    # what is left with it compares with a delay's: noise that it raises is not counted
    assert "the torque lags the motion by 2" in found.other

    def held_out(log):
        beta = take_scene(base, prepare(log, 10.0)).problem.system.solve()
        return np.linalg.norm(take_scene(base, prepare(held, 10.0)).problem.errors(beta))

    assert held_out(repair_recording(slow, found.repair)) < 1.02 * held_out(sound)
    assert held_out(repair_recording(slow, LogRepair(delay=0.023))) > 1.1 * held_out(sound)


def drifting(log):
    return replace(log, tau=log.tau + np.linspace(0.0, 8.0, len(log.tau))[:, None])


def rippling(log):
    """Each torque by its own number of teeth."""
    return replace(log, tau=log.tau + np.array([4.0, 0.0, 3.0, 0.0]) * np.sin(20.0 * log.q))


def unsigned(log):
    """A torque of friction, which is never near zero, without its sign."""
    tau = log.tau.copy()
    tau[:, 3] = np.abs(tau[:, 3] + 8.0 * np.sign(log.q[:, 3] - np.roll(log.q[:, 3], 1)))
    return replace(log, tau=tau)


OTHERS = {
    "drift": drifting,
    "torque scale of a joint": lambda log: replace(log, tau=log.tau * [1.0, 0.1, 1.0, 1.0]),
    "rate": lambda log: replace(log, rate=2.0 * log.rate),
    "spring": lambda log: replace(log, tau=log.tau + [0.0, 40.0, 0.0, 0.0] * log.q),
    "ripple": rippling,
    "unsigned": unsigned,
}


@pytest.mark.parametrize("name", first(OTHERS, 4))
def test_what_else_a_log_may_have_been_through(base, sound, name):
    found = findings(base, OTHERS[name](sound))
    assert found[0].diagnosis == name
    assert found[0].repair is None


def test_ripples_above_half_the_cutoff_are_told(base, sound):
    """Nothing is left of them at half the cutoff, where the log is sound."""
    tau = sound.tau + np.array([8.0, 0.0, 6.0, 0.0]) * np.sin(60.0 * sound.q)
    found = findings(base, replace(sound, tau=tau))
    assert [each.diagnosis for each in found] == ["ripple"]


def test_a_robot_that_is_mounted_otherwise(sound):
    file = replace(toy.arm(N, nominal=False), gravity=np.array([0.0, 0.0, 9.81]))
    found = findings(base_parameters(build_idim(file)), sound)
    assert found[0].diagnosis == "mounting"
    assert found[0].remedy == "set gravity = [0, 0, -9.81] in [robot]"


@pytest.mark.parametrize(("n", "times"), [(2, 2.0), long(3, 3.0), long(4, 3.0)])
def test_a_robot_that_is_mounted_otherwise_and_a_clock_that_is_wrong(n, times):
    """A robot that reads otherwise is that of all logs, whatever else is wrong with one of them."""
    arm = toy.arm(n)
    log = replace(toy.measure(arm, seconds=8.0), rate=times * toy.RATE)
    other = replace(toy.log(arm, 8.0, 0.3, seed=7)[0], dq=None, ddq=None)
    file = base_parameters(build_idim(replace(arm, gravity=-arm.gravity)))
    (clock,), (mounting,) = examine(file, [prepare(x, 10.0) for x in (log, other)], thorough=True)
    assert clock.rate == pytest.approx(toy.RATE, rel=0.01)
    np.testing.assert_allclose(mounting.gravity, arm.gravity)


def test_a_coupling_that_the_file_forgets():
    log, _ = toy.log(toy.arm(N, coupled=True), seconds=10.0, noise=0.3)
    (found,) = findings(
        base_parameters(build_idim(toy.arm(N, nominal=False))), replace(log, dq=None, ddq=None)
    )
    assert found.diagnosis == "coupled drive"
    assert found.remedy.startswith("write row = { joint_3 = 1, joint_4 = 1 }")


@pytest.mark.long
def test_torques_far_from_the_file_and_of_another_run(sound):
    known = base_parameters(build_idim(toy.arm(N)))
    found = findings(known, replace(sound, tau=0.01 * sound.tau))
    assert [f.diagnosis for f in found] == ["torque scale"]
    assert "0.01" in found[0].what
    other, _ = toy.log(toy.arm(N), seconds=10.0, noise=0.3, seed=3)
    found = findings(known, replace(sound, tau=other.tau))
    assert "unrelated" in [f.diagnosis for f in found]
    (unrelated,) = (f for f in found if f.diagnosis == "unrelated")
    assert unrelated.gain == ""
    assert verdict_of(replace(sound, tau=other.tau)).verdict.state == REFUTED


@pytest.mark.long
@pytest.mark.parametrize("joint", [1, 3])
def test_the_torque_of_one_joint_may_be_that_of_another_run(base, sound, joint):
    other, _ = toy.log(toy.arm(N), seconds=10.0, noise=0.3, seed=3)
    tau = sound.tau.copy()
    tau[:, joint] = other.tau[:, joint]
    found = findings(base, replace(sound, tau=tau))
    assert [f.diagnosis for f in found] == ["unrelated"]
    assert f"the torque of joint_{joint + 1};" in found[0].what


def test_the_size_of_a_spring_is_found_under_constraints(base, sound):
    hurt = replace(sound, tau=sound.tau + [0.0, 400.0, 0.0, 0.0] * sound.q)
    s = take_scene(base, prepare(hurt, 10.0))
    family = build_spring_family(N, 1)
    size = fit_under_constraints(s, family, fit_consistent_model(s.problem))
    assert size[0] == pytest.approx(400.0, rel=0.02)
    left = [family.read(s, k * size).problem for k in (1.0, 0.9, 1.1)]
    best, *others = (np.sum(normal.errors(normal.consistent()) ** 2) for normal in left)
    assert all(best < other for other in others)


@pytest.mark.parametrize(("size", "kind"), [(40.0, "spring"), (-40.0, "ripple")])
def test_the_element_that_is_advised_can_have_the_sign_that_was_found(base, sound, size, kind):
    scene = take_scene(base, prepare(sound, 10.0))
    told = build_spring_family(N, 1).tell(scene, np.array([size]), np.zeros(1))
    assert f"kind '{kind}'" in told.remedy


def test_a_spring_that_bodies_could_be_is_told_by_the_file(base, sound):
    short = sound.q * [1.0, 0.02, 1.0, 1.0]  # a joint that hardly moves: gravity could be it
    robot = toy.arm(N)
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    dq = np.gradient(short, 1.0 / toy.RATE, axis=0)
    ddq = np.gradient(dq, 1.0 / toy.RATE, axis=0)
    noise = 0.3 * np.random.default_rng(2).normal(size=short.shape)
    tau = idim.torque(theta, short, dq, ddq) + noise
    known = base_parameters(idim)
    log = replace(sound, q=short, tau=tau)
    assert find_sure_spring(take_scene(known, prepare(log, 10.0))) is None
    assert findings(known, log) == ()
    pulled = replace(log, tau=tau + [0.0, 100.0, 0.0, 0.0] * short)
    s = take_scene(known, prepare(pulled, 10.0))
    found = find_sure_spring(s)
    assert found.joint == 1
    assert found.by_file
    assert found.size == pytest.approx(100.0, abs=SURE * found.error)
    assert "if the robot file's inertials are right" in found.suspicion(s).what
    assert [f.diagnosis for f in examine(known, [prepare(pulled, 10.0)])[0]] == ["spring"]
    assert find_sure_spring(take_scene(base, prepare(pulled, 10.0))) is None  # bodies could be it


def test_the_file_holds_nothing_against_a_spring_that_the_model_has(sound):
    """Of a joint that sways, a spring of thrice its weight looks like that with another sign."""
    robot = toy.arm(N)
    q, dq, ddq = (signal * [0.1, 1.0, 0.1, 0.1] for signal in toy.motion(N, 8.0))
    idim = build_idim(robot, elements=[attach(1, "spring", {})])
    known = build_idim(robot)
    tau = known.torque(toy.true_parameters(known, robot.nominal), q, dq, ddq)
    tau += 0.3 * np.random.default_rng(0).normal(size=q.shape) + [0.0, 60.0, 0.0, 0.0] * q
    log = replace(sound, q=q, tau=tau, dq=None, ddq=None, segments=((0, len(q)),))
    assert examine(base_parameters(idim), [prepare(log, 10.0)])[0] == ()


def test_a_spring_that_is_sure_but_leaves_the_error_as_it_was_is_no_finding(base, sound):
    for stiffness, named in ((0.3, False), (1.0, True)):
        pulled = replace(sound, tau=sound.tau + stiffness * (np.arange(N) == 1) * sound.q)
        log = prepare(pulled, 10.0)
        assert find_sure_spring(take_scene(base, log)).joint == 1
        assert [f.diagnosis for f in findings(base, pulled)] == ["spring"] * named


def test_a_spring_that_nothing_balances_is_not_believed(sound):
    """Of a file whose bodies are half of the robot's, and one whose torque is thrice all there."""
    known = base_parameters(build_idim(toy.arm(N)))
    scene = take_scene(known, prepare(replace(sound, tau=2.0 * sound.tau), 10.0))
    idim = known.idim
    asked = idim.torque(idim.nominal, scene.q, scene.dq, scene.ddq)
    there = sum(np.sqrt(np.mean(own[:, 1] ** 2)) for own in (asked, scene.tau))
    for times, denied in ((-3.0, True), (-0.9, False), (0.9, False), (3.0, True)):
        size = times * there / np.std(scene.q[:, 1])
        told = build_spring_family(N, 1).tell(scene, np.array([size]), np.array([0.1 * size]))
        read = told.reading.of(scene).problem
        assert denies_file(scene, Explanation(told, read.free_errors(), read)) == denied
    unknown = take_scene(
        base_parameters(build_idim(toy.arm(N, nominal=False))), prepare(sound, 10.0)
    )
    assert not denies_file(unknown, Explanation(told, read.free_errors(), read))


def test_rotors_are_not_taken_for_a_scale_of_the_file():
    log, _ = toy.log(toy.arm(2), seconds=8.0, noise=0.5)  # Ia is most of what joint 1 turns
    base = base_parameters(build_idim(toy.arm(2)))
    assert examine(base, [prepare(log, 5.0)]) == ((),)


# ---- logs beside each other


@pytest.fixture(scope="module")
def other():
    """Another motion of the same arm."""
    recording, _ = toy.log(toy.arm(N), seconds=10.0, noise=0.3, seed=7)
    return replace(recording, name="other log", dq=None, ddq=None)


def weightless(log):
    """Without the gravity torques that a controller believes in: masses a tenth too large."""
    idim = build_idim(toy.arm(N))
    still = np.zeros_like(log.q)
    return replace(log, tau=log.tau - 1.1 * idim.torque(idim.nominal, log.q, still, still))


def frictionless(log):
    """Without the friction that a controller compensates: nine tenths of what there is."""
    idim = build_idim(toy.arm(N))
    theta = 0.9 * toy.true_parameters(idim, toy.arm(N).nominal)
    theta[: idim.inertial] = 0.0
    theta[[p.symbol == "Ia" for p in idim.parameters]] = 0.0
    samples = prepare(log, 10.0)
    return replace(log, tau=log.tau - idim.torque(theta, samples.q, samples.dq, samples.ddq))


CONTRADICTIONS = {
    "friction": frictionless,
    "torque scale": lambda log: replace(log, tau=0.01 * log.tau),
    "torque scale of a joint": lambda log: replace(log, tau=log.tau * [1.0, 1.0, 3.0, 1.0]),
    "rate": lambda log: replace(log, rate=0.5 * log.rate),
    "gravity": weightless,
    "encoder offset": lambda log: replace(log, q=log.q - [0.0, 0.0, np.radians(4.0), 0.0]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_what_a_log_hides_alone_another_log_shows(base, sound, other, name):
    hurt, beside = prepare(CONTRADICTIONS[name](sound), 10.0), prepare(other, 10.0)
    (found,) = examine(base, [hurt], [beside])
    assert found[0].diagnosis == name
    assert found[0].after < 0.5 * found[0].before
    if name == "torque scale":  # alone it fits as well as before
        assert found[0].against == "other log"
        assert "or else other log is wrong" in found[0].words
        assert examine(base, [hurt]) == ((),)


def test_scales_are_those_of_each_joint(base, sound, other):
    factors = np.array([0.01, 0.02, 0.005, 0.01])
    hurt = prepare(replace(sound, tau=factors * sound.tau), 10.0)
    ((found,),) = examine(base, [hurt], [prepare(other, 10.0)])
    assert found.diagnosis == "torque scale"
    told = found.what.removeprefix("the torques are ").removesuffix(" times those of the other log")
    np.testing.assert_allclose([float(word) for word in told.split(", ")], factors, rtol=0.01)


def test_sound_logs_do_not_contradict_each_other(base, sound, other):
    logs = [prepare(log, 10.0) for log in (sound, other)]
    assert examine(base, logs, thorough=True) == ((), ())


@pytest.mark.long
@pytest.mark.parametrize("name", ["rate", "encoder offset", "torque scale of a joint"])
def test_what_one_log_has_is_not_said_of_the_other(base, sound, other, name):
    logs = [prepare(log, 10.0) for log in (CONTRADICTIONS[name](sound), other)]
    found, none = examine(base, logs, thorough=True)
    assert [f.diagnosis for f in found] == [name]
    assert none == ()


def test_a_torque_that_is_next_to_nothing_counts_for_no_more_than_others(base, sound):
    scene = take_scene(base, prepare(sound, 10.0))
    beta = fit_consistent_model(scene.problem)
    torque = scene.torque * [1.0, 1.0, 0.0, 1.0]
    bodies, still = np.flatnonzero(base.kept < base.idim.inertial), np.zeros_like(scene.q)
    columns = base.idim.regressor(scene.q, still, still)[:, :, base.kept[bodies]]
    missing, rows = fit_difference(scene.driven(torque), beta, columns)
    assert np.all(np.isfinite(missing))
    assert not np.any(rows.reshape(columns.shape)[:, 2])


@pytest.mark.long
@pytest.mark.parametrize("slow", first([10.0, 1000.0]))
def test_a_clock_is_too_slow_whatever_that_makes_of_the_filters(base, sound, other, slow):
    hurt = replace(sound, rate=sound.rate / slow)
    ((found,),) = examine(base, [prepare(hurt)], [prepare(other)])
    assert found.diagnosis == "rate"
    assert found.rate == pytest.approx(sound.rate)
    assert found.after < 0.05 * found.before


def test_another_load_is_measured_and_no_log_is_called_damaged(base, sound):
    bodies = toy.arm(N).nominal.copy()
    bodies[-1] *= 3.0
    loaded, _ = toy.log(toy.arm(N), seconds=10.0, noise=0.3, seed=7, bodies=bodies)
    beside = prepare(replace(loaded, dq=None, ddq=None), 10.0)
    ((found,),) = examine(base, [prepare(sound, 10.0)], [beside])
    assert found.diagnosis == "load"
    assert found.what == "the last link carries 2 kg less than in the other log"


# ---- repairs


def test_repairs_add_up(sound):
    rng = np.random.default_rng(2)
    recording = replace(sound, qref=sound.q + 0.1)
    for _ in range(5):
        parts = []
        for _ in range(2):
            order = {key: tuple(rng.permutation(N).tolist()) for key in ("q", "tau")}
            order = {key: tuple(k + 1 for k in value) for key, value in order.items()}
            sign = {key: tuple(rng.choice([-1.0, 1.0], N).tolist()) for key in ("q", "tau", "qref")}
            offset = tuple(rng.normal(size=N).tolist())
            late = [tuple(rng.choice([0.0, 0.003], N).tolist()) for _ in range(2)]
            slow = {
                key: tuple((rng.uniform(size=2) * [1e-3, 1e-7]).tolist()) for key in ("q", "tau")
            }
            parts.append(LogRepair(order, sign, offset, *late, unfilter=slow))
        one_by_one = repair_recording(repair_recording(recording, parts[0]), parts[1])
        at_once = repair_recording(recording, parts[0].then(parts[1], N))
        inside = slice(50, -50)
        np.testing.assert_allclose(at_once.q[inside], one_by_one.q[inside], atol=1e-9)
        np.testing.assert_allclose(at_once.tau[inside], one_by_one.tau[inside], atol=1e-9)


def test_no_repair_changes_nothing(sound):
    assert repair_recording(sound, LogRepair()) is sound
    assert LogRepair().then(LogRepair(), N) == LogRepair()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sign": {"tau": 2.0}}, "sign has to be 1 or -1"),
        ({"order": {"q": (1, 1, 2)}}, "order has to have each column once"),
        ({"delay": float("nan")}, "delay is nan"),
        ({"unfilter": {"tau": (0.1, -0.01)}}, "unfilter has to be positive numbers"),
    ],
)
def test_nonsense_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        LogRepair(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": {"q": (2, 1)}}, r"toy log: order.q has 2 columns for 4 joints"),
        ({"sign": {"tau": (1.0, -1.0)}}, "toy log: sign.tau has 2 values"),
        ({"offset": (1.0, 2.0)}, "toy log: offset has 2 values"),
        ({"delay": 100.0}, "toy log: delay is longer than the log"),
    ],
)
def test_what_does_not_fit_the_log_is_refused(sound, options, message):
    with pytest.raises(InputError, match=message):
        repair_recording(sound, LogRepair(**options))


# ---- signals


def kinds(recording):
    return {sign.kind for sign in find_signs(toy.arm(N), prepare(recording, 10.0))}


def test_signals_show_what_is_wrong_with_them(sound):
    tau, q = sound.tau.copy(), sound.q.copy()
    tau[:, 1] = np.clip(tau[:, 1], -10.0, 10.0)
    assert kinds(replace(sound, tau=tau)) == {"clipped"}
    tau = sound.tau.copy()
    tau[2000:4000, 2] = 0.0
    assert "clipped" in kinds(replace(sound, tau=tau))
    q[3000:6000, 0] = q[3000, 0]
    assert kinds(replace(sound, q=q)) == {"stuck"}
    step = 0.5 * np.std(sound.tau[:, 0])
    assert kinds(replace(sound, tau=step * np.round(sound.tau / step))) >= {"coarse"}
    assert kinds(replace(sound, tau=np.abs(sound.tau))) == {"unsigned"}
    steps = np.radians(0.5)
    assert kinds(replace(sound, q=steps * np.round(sound.q / steps))) == {"coarse"}
    assert kinds(replace(sound, q=np.mod(sound.q, 2.0 * np.pi))) >= {"wrapped"}
    tau = sound.tau.copy()
    tau[::500] *= 40.0
    assert kinds(replace(sound, tau=tau)) == {"spikes"}


def test_reversals_of_coulomb_friction_are_no_spikes(sound):
    tau = sound.tau.copy()
    tau[:, 1] = 30.0 * np.sign(np.sin(2.0 * np.pi * np.arange(len(tau)) / 700.0))
    tau[:, 1] += 0.3 * np.random.default_rng(0).normal(size=len(tau))
    assert kinds(replace(sound, tau=tau)) == set()
    tau[[1000, 2000, 3000], 1] += 60.0
    (found,) = find_signs(toy.arm(N), prepare(replace(sound, tau=tau), 10.0))
    assert found.what == "torque of joint_2 has 3 samples far from the others"


def take_pair(change, seconds):
    """Two logs of a small arm with the same fault."""
    pair = [toy.log(toy.arm(2), seconds, noise=0.1, seed=k)[0] for k in range(2)]
    changed = (change(log.q, log.tau) for log in pair)
    return [prepare(Recording(f"log {k}", toy.RATE, *each), 10.0) for k, each in enumerate(changed)]


def test_a_delay_of_all_logs_is_told_of_each_by_itself():
    """A log with the delay disagrees with one that was repaired."""
    logs = take_pair(lambda q, tau: (q[3:], tau[:-3]), 4.0)
    for own in examine(base_parameters(build_idim(toy.arm(2))), logs):
        (finding,) = own
        assert finding.diagnosis == "delay"
        assert finding.repair.delay == pytest.approx(3e-3, abs=2e-4)


@pytest.mark.long
def test_logs_with_the_same_fault_do_not_undo_its_repair():
    logs = take_pair(lambda q, tau: (q, tau * [1.0, -1.0]), 1.5)
    found = examine(base_parameters(build_idim(toy.arm(2, nominal=False))), logs, thorough=True)
    what = "the torque of joint_2 has the opposite sign"
    assert [[finding.found for finding in own] for own in found] == [[what], [what]]


def test_steps_of_positions_are_told_with_their_unit_and_what_to_do(sound):
    steps = np.radians(0.5)
    rounded = replace(sound, q=steps * np.round(sound.q / steps))
    assert find_signs(toy.arm(N), prepare(rounded, 10.0))[0].what == (
        "position of joint_1 comes in steps of 0.00873 rad (0.5 deg): lower the bandwidth, or log "
        "a finer signal of its encoder"
    )
    # of fast motion, as printed with few digits
    counts = np.repeat([1, 2, 3, 4], [20, 400, 500, 80])
    printed = np.round(4.79e-5 * np.cumsum(counts), 6)
    assert estimate_smallest_step(np.diff(printed, prepend=0.0)) == pytest.approx(4.79e-5, rel=0.03)


def test_fast_motion_between_rests_is_no_coarse_encoder(sound):
    """Of the steps of 0.001 deg it shows hardly one alone, and rests repeat their samples."""
    step, rests = np.radians(0.001), ((800, 800), (0, 0))
    q = np.pad(step * np.round(sound.q / step), rests, mode="edge")
    log = Recording("log", 250.0, q, np.pad(sound.tau, rests, mode="edge"))
    assert find_signs(toy.arm(N), prepare(log, 10.0)) == ()


def resting(sound):
    """Joint 2 rests from the middle on, by a gentle stop, and is held with changing torque."""
    t = np.linspace(0.0, 2.0, len(sound.q))
    way = np.clip(t, 0.0, 1.0)
    q, tau = sound.q.copy(), sound.tau.copy()
    q[:, 1] = 1e-5 * np.round(1e5 * np.sin(4.0 * np.pi * way) * (1.0 - way) ** 2)
    held = slice(len(q) // 2, None)
    tau[held, 1] = 0.17 * np.ptp(tau[:, 1]) * np.sin(9.0 * t[held])
    return replace(sound, q=q, tau=tau)


def test_a_joint_that_rests_under_torque_is_not_stuck(sound):
    assert kinds(resting(sound)) == set()
    q = sound.q.copy()
    q[3000:6000, 0] = q[3000, 0]
    assert kinds(replace(sound, q=q)) == {"stuck"}
    q[:, 0] = 0.2  # of which the log itself warns as it is read
    (said,) = find_signs(toy.arm(N), prepare(replace(sound, q=q), 10.0))
    assert said.kind == "still"
    assert list_sign_reasons("log", toy.arm(N).joint_names, [said]) == []
    assert said.what == "position of joint_1 never changes: is its encoder dead, or does it rest?"


def test_columns_of_another_joint_and_positions_that_end_in_motion_show(sound):
    q, tau = sound.q.copy(), sound.tau.copy()
    tau[:, 1] = tau[:, 3]
    assert "torques of joint_2 and joint_4 are one column" in [
        sign.what for sign in find_signs(toy.arm(N), prepare(replace(sound, tau=tau), 10.0))
    ]
    q[:, 2] = q[:, 0]
    assert "copied" in kinds(replace(sound, q=q))
    clipped = np.minimum(sound.q, 0.7 * sound.q.max(axis=0))
    assert "clipped" in kinds(replace(sound, q=clipped))
    # one that comes to rest, to the last count of its encoder, does not
    t = np.clip(np.arange(len(q)) / len(q) * 2.0, 0.0, 1.0)
    resting = (10.0 * t**3 - 15.0 * t**4 + 6.0 * t**5)[:, None] * [1.0, -0.5, 0.7, 1.2]
    assert not {"clipped", "copied"} & set(kinds(replace(sound, q=resting)))


@pytest.mark.parametrize("thorough", [False, True])
def test_along_a_clock_that_makes_a_log_creep_nothing_else_is_found(thorough):
    """Time in milliseconds: gravity was missing then, and a counterweight pulled."""
    log = replace(toy.measure(toy.arm(N), seconds=8.0), rate=0.25)
    base = base_parameters(build_idim(toy.arm(N)))
    (found,) = examine(base, [prepare(log)], thorough=thorough)[0]
    assert found.diagnosis == "rate"
    assert found.what.startswith("the rate is 0.25 Hz, and the fastest joint moves at 0.002")
    assert found.remedy == "if time is in ms (250 Hz), set units = { time = 'ms' } in [[log]]"


def test_joints_that_one_profile_moves_equally_far_are_no_copies(sound):
    """What simulations log, or targets: all positions are multiples of one."""
    profile = sound.q[:, :1] - sound.q[0, 0]
    q = profile * [1.0, -0.7, 1.0, 0.4] + [0.2, 0.0, 0.2, 0.1]
    assert "copied" not in kinds(replace(sound, q=q))
    for same in (q + 1e-4 * (sound.q - q) * [0.0, 1.0, 0.0, 1.0], np.repeat(q[:, :1], N, axis=1)):
        assert "copied" in kinds(replace(sound, q=same))


def test_a_torque_of_one_sign_that_comes_near_zero_once_is_none_without_a_sign(sound):
    tau = sound.tau - np.min(sound.tau, axis=0)
    assert kinds(replace(sound, tau=tau)) == set()


def test_a_log_without_any_sign_shows_though_no_joint_alone_would(sound):
    tau = np.abs(sound.tau)
    tau[:, 0] += 1.0 + tau[:, 0].max()  # of which gravity is never little
    slow = replace(sound, q=np.cumsum(np.abs(np.diff(sound.q, axis=0, prepend=0.0)), axis=0))
    (said,) = {s.what for s in find_signs(toy.arm(N), prepare(replace(slow, tau=tau), 10.0))
               if s.kind == "unsigned"}  # fmt: skip
    assert said.startswith("no torque is ever negative")


def test_rows_that_were_lost_show_and_repeated_ones_do_not(sound):
    rng = np.random.default_rng(11)
    kept = rng.uniform(size=len(sound.q)) > 0.02
    rows = np.flatnonzero(kept)

    def take(rows):
        return replace(sound, q=sound.q[rows], tau=sound.tau[rows], segments=((0, len(rows)),))

    assert kinds(take(rows)) == {"rows lost"}
    base = base_parameters(build_idim(toy.arm(N)))
    (found,) = findings(base, take(rows))
    assert found.diagnosis == "rows lost"  # and nothing that would be repaired
    assert found.remedy.startswith("log each row with its own time")
    assert found.repair is None
    held = np.maximum.accumulate(np.where(kept, np.arange(len(kept)), 0))
    assert "rows lost" not in kinds(take(held))


# ---- the verdict


def verdict_of(recording, held_out=(), method="pc-idim-ls"):
    robot = toy.arm(N)
    fitted = prepare(recording, 10.0)
    validation = [prepare(log, 10.0) for log in held_out]
    faces = {"bootstrap": 0} if method == "pc-idim-ls" else {}
    return identify(Problem(robot, fitted), method, validation=validation, **faces)


def test_a_sound_result_is_trusted_and_says_nothing_against_itself(sound):
    other = toy.log(toy.arm(N), seconds=10.0, noise=0.3, seed=3)[0]
    found = verdict_of(sound, [replace(other, name="other", dq=None, ddq=None)])
    assert found.verdict.state == TRUSTED
    assert found.verdict.reasons == ()
    assert "the same wrong torque unit" in found.verdict.reserve
    assert "\n\nverdict     trusted on the evidence of logs that agree" in found.summary()


def test_trust_in_one_log_alone_says_so(sound):
    found = verdict_of(sound)
    assert found.verdict.state == TRUSTED
    assert "give a held-out log; the expected error" in found.verdict.reserve
    assert "\n\nverdict     trusted on the evidence of one log, in which" in found.summary()


@pytest.mark.long
@pytest.mark.parametrize("method", first(["pc-idim-ls", "wls"]))
@pytest.mark.parametrize(
    "repair",
    first([LogRepair(sign={"tau": -1.0}), LogRepair(order={"tau": (3, 2, 1, 4)})]),
    ids=str,
)
def test_damage_refutes_whatever_the_method(sound, method, repair):
    found = verdict_of(damaged(sound, repair), method=method)
    assert found.verdict.state == REFUTED
    assert found.findings[0].repair == repair
    assert found.findings[0].what in found.verdict.reasons[0].words


@pytest.mark.long
def test_a_held_out_log_of_another_sign_refutes(sound):
    found = verdict_of(sound, [replace(sound, name="other", tau=-sound.tau)])
    assert found.verdict.state == REFUTED
    assert found.findings[0].log == "other"
    assert found.findings[0].diagnosis == "torque sign"
    assert any("other" in reason.words for reason in found.verdict.reasons)


def test_torques_without_their_compensation_of_friction_are_named(sound):
    turned = np.gradient(sound.q[:, 1]) * sound.rate
    tau = sound.tau.copy()
    tau[:, 1] -= 2.0 * np.std(tau[:, 1]) * np.tanh(turned / 0.01)
    told = [r.words for r in verdict_of(replace(sound, tau=tau)).verdict.reasons]
    (words,) = (own for own in told if own.startswith("without constraints Coulomb friction"))
    assert "compensation of friction is missing" in words
    assert re.search(r"would be -\d[^,]* on \w+ \(\d+ instead of \d+ %\):", words)


def test_coulomb_friction_alone_is_told_to_drive_a_joint():
    """Of the joint itself, whatever rows stand behind; not what may have either sign."""
    problem = Problem(toy.arm(2), prepare(toy.log(toy.arm(2), 4.0, 0.1)[0], 5.0), "uneven")
    estimate = SimpleNamespace(restriction=SimpleNamespace(rejected=True))

    def tell(name):
        beta = np.zeros(problem.base.count)
        beta[problem.base.names.index(name)] = -3.0
        own, free = (
            SimpleNamespace(
                joints=[
                    SimpleNamespace(name=row, rmse=1.0, relative_percent=percent)
                    for row in ("joint_1", "joint_2", "link_2")
                ]
            )
            for percent in (50.0, 10.0)
        )
        return list_reversed_friction_reasons(problem, estimate, beta, own, free)

    (reason,) = tell("fc2")
    assert "would be -3 on joint_2 (10 instead of 50 %):" in reason.words
    assert tell("fcs2") == []


@pytest.mark.long
def test_drives_that_give_energy_away_are_doubtful(sound):
    found = verdict_of(replace(sound, tau=-sound.tau), method="wls")
    assert any("fv1" in r.words and "clearly negative" in r.words for r in found.verdict.reasons)


def test_signs_make_doubtful(sound):
    tau = sound.tau.copy()
    tau[:, 1] = np.clip(tau[:, 1], -20.0, 20.0)
    found = verdict_of(replace(sound, tau=tau))
    assert found.verdict.state != TRUSTED
    assert any(reason.state == DOUBTFUL for reason in found.verdict.reasons)


def test_a_signs_like_is_said_once():
    what = "position of {} comes in steps of {}"
    steps = [Sign("coarse", what.format(*each)) for each in (("a", 0.1), ("a_2", 2e-5), ("b", 1))]
    others = [Sign("rate", "the rate is 1 Hz"), Sign("copied", "torque of a is that of b")]
    reasons = list_sign_reasons("log", ("a", "b", "a_2"), [*steps, *others])
    assert [reason.words for reason in reasons] == [
        "log: position of a comes in steps of 0.1 (likewise a_2, b)",
        "log: the rate is 1 Hz",
        "log: torque of a is that of b",
    ]


def test_a_sign_that_joints_of_numbered_names_share_is_said_of_each(sound):
    robot, coarse = toy.arm(N), replace(sound, tau=5.0 * np.round(sound.tau / 5.0))
    assert [sign.what for sign in find_signs(robot, prepare(coarse, 10.0))] == [
        f"torque of {name} comes in steps of 5" for name in robot.joint_names
    ]


def test_a_log_that_hardly_moves_is_doubtful(sound):
    q, tau = sound.q.copy(), sound.tau.copy()
    q[:, 1:] = 0.3
    tau[:, 1:] = 1.0 + 1e-3 * np.random.default_rng(0).normal(size=tau[:, 1:].shape)
    found = verdict_of(replace(sound, q=q, tau=tau))
    assert f"the logs determine only {found.rank} of {found.base.count}" in found.verdict.words
    assert 2 * found.rank < found.base.count


@pytest.mark.parametrize("digits", [None, 4])
def test_the_log_that_was_fitted_tests_nothing_under_another_name(sound, digits):
    copy = replace(sound, name="copy")
    if digits is not None:  # written in degrees with few of them
        q = np.radians(np.degrees(sound.q).round(digits))
        copy = replace(copy, q=q, tau=sound.tau.round(digits))
    found = verdict_of(sound, [copy])
    assert "copy is held out, but has the samples of toy log: it tests nothing" in found.warnings
    assert "give a held-out log" in found.verdict.reserve
    robot = toy.arm(N)
    logs = [prepare(log, 10.0) for log in (sound, copy)]
    twice = identify(Problem(robot, logs), bootstrap=0, doctor=False)
    assert any("copy has the samples of toy log: fitted twice" in each for each in twice.warnings)
    assert "give a held-out log" in twice.verdict.reserve


@pytest.mark.parametrize("digits", [None, 4])
def test_a_stretch_of_the_log_that_was_fitted_tests_nothing(sound, digits):
    count = len(sound.q)
    part = replace(sound.rows(count // 3, count // 2), name="part")
    if digits is not None:
        q = np.radians(np.degrees(part.q).round(digits))
        part = replace(part, q=q, tau=part.tau.round(digits))
    again = replace(part, name="again", tau=part.tau[::-1])
    one, *others = (prepare(log, 10.0) for log in (sound, part, again))
    assert [(a.name, b.name) for a, b in find_repeated_logs([one, *others])] == [("part", one.name)]
    found = verdict_of(sound, [part])
    assert "part is held out, but has the samples of toy log: it tests nothing" in found.warnings


@pytest.mark.parametrize("digits", [None, 4])
def test_a_stretch_of_a_fitted_log_is_known_by_its_marks(sound, digits):
    """By a few samples that a result keeps: not another log, nor a motion that was made again."""

    def read(log: Recording) -> Samples:
        return prepare(log, 10.0)

    count, rng = len(sound.q), np.random.default_rng(0)
    marks = mark_log(read(sound))
    for part in (sound, sound.rows(count // 3, count // 2)):
        q, tau = part.q, part.tau
        if digits is not None:
            q, tau = np.radians(np.degrees(q).round(digits)), tau.round(digits)
        assert is_marked(read(replace(part, q=q, tau=tau)), marks)
        again = tau + 0.01 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
        assert not is_marked(read(replace(part, q=q, tau=again)), marks)
        assert not is_marked(read(replace(part, tau=tau[::-1])), marks)
    assert not is_marked(read(sound), mark_log(read(sound.rows(0, count // 2))))


def test_a_joint_without_torque_counts_in_no_reading():
    robot = toy.arm(2)
    log = toy.log(robot, seconds=10.0, noise=0.05, seed=3)[0]
    tau = log.tau * [1.0, 0.0]
    problem = Problem(robot, prepare(replace(log, tau=tau, dq=None, ddq=None), 10.0))
    (report,) = doctor(problem)  # a reading that gave it the torque of another divided by none
    assert all(np.isfinite(found.after) for found in report.findings)


def test_a_motion_that_was_made_again_is_no_copy(sound):
    noise = np.random.default_rng(4).normal(size=sound.tau.shape)
    again = replace(sound, name="again", tau=sound.tau + 0.01 * np.std(sound.tau, axis=0) * noise)
    found = verdict_of(sound, [again])
    assert not any("has the samples" in words for words in found.warnings)


def test_a_log_in_which_nothing_moves_refutes(sound):
    still = np.broadcast_to(sound.q[:1], sound.q.shape)
    found = verdict_of(replace(sound, q=still, tau=np.broadcast_to(sound.tau[:1], still.shape)))
    assert found.verdict.state == REFUTED
    assert "nothing moves by more than 1 mrad" in found.verdict.words


def test_a_pose_shows_no_reading_of_it_to_be_wrong(sound):
    """It was told to change the sign of a joint's torque, four times."""
    still = np.broadcast_to(sound.q[:1], sound.q.shape)
    idle = replace(sound, q=still, dq=None, ddq=None, tau=np.zeros(still.shape), rate=sound.rate)
    known = base_parameters(build_idim(toy.arm(N)))
    assert examine(known, [prepare(idle, 10.0)], thorough=True) == ((),)


def test_hardly_more_rows_than_parameters_are_doubtful(sound):
    samples = prepare(sound, 10.0, decimation=len(sound.q) // 8)
    found = identify(Problem(toy.arm(N), samples), bootstrap=0)
    assert found.verdict.state != TRUSTED
    rows = sum(len(error) for error in found.estimate.residuals.error)
    assert f"there are only {rows} rows for {found.base.count}" in found.verdict.words


@pytest.mark.long
def test_what_is_known_wrongly_is_doubtful(sound):
    problem = Problem(toy.arm(N), prepare(sound, 10.0))
    link = problem.robot.links[-1]
    heavy = LinkMass(link, value=2.0 * problem.robot.nominal[-1, 0])
    found = identify(problem, constraints=[heavy], bootstrap=0)
    assert found.verdict.state == DOUBTFUL
    assert any("contradict the log" in r.words for r in found.verdict.reasons)


@pytest.mark.long
def test_rough_positions_are_not_taken_for_a_slow_clock(sound):
    """Without a filter, time that runs slower would make their noise less."""
    rough = prepare(sound, 150.0)
    assert rough.rough
    assert not prepare(sound, 10.0).rough
    found = identify(Problem(toy.arm(N), rough), bootstrap=0)
    assert not [f for f in found.findings if f.rate is not None and f.rate < sound.rate]
    assert found.verdict.state != TRUSTED
    with pytest.raises(InputError, match="bandwidth of 500 Hz is at or above the Nyquist"):
        prepare(sound, 500.0)


@pytest.mark.long
@pytest.mark.parametrize(("factor", "state"), [(1000.0, DOUBTFUL), (4.0, TRUSTED)])
def test_torques_that_no_drive_has_are_doubtful(sound, factor, state):
    peaks = np.max(np.abs(sound.tau), axis=0)
    robot = limited((*peaks[:2], np.inf, 0.0))
    robot = replace(robot, nominal=np.zeros_like(robot.nominal))
    found = identify(Problem(robot, prepare(replace(sound, tau=factor * sound.tau), 10.0)))
    assert found.verdict.state == state
    told = "the torques reach 1e+03 to 1e+03 times their effort limits"
    assert (told in found.verdict.words) == (state == DOUBTFUL)


@pytest.mark.long
def test_the_doctor_can_be_left_out(sound):
    robot = toy.arm(N)
    problem = Problem(robot, prepare(damaged(sound, LogRepair(sign={"tau": -1.0})), 10.0))
    found = identify(problem, doctor=False)
    assert found.findings == ()
    assert "doctor" not in found.timings
    assert found.verdict.state == REFUTED  # no consistent model explains it


# ---- joints that hardly have any torque


def wristy(change=None, effort=(400.0, 400.0, 400.0, 900.0)):
    """What is made of an arm whose last joint has less torque than noise, and of damage to it."""
    robot = limited(effort)
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    last = [p.number == N and p.symbol in ("Ia", "fv", "fc", "off") for p in idim.parameters]
    theta[last] *= 0.02
    logs = []
    for seed in (0, 3):
        q, dq, ddq = toy.motion(N, 10.0, seed)
        tau = idim.torque(theta, q, dq, ddq)
        noise = np.random.default_rng(seed).normal(size=tau.shape) * [1.0, 1.0, 1.0, 0.0]
        slow = np.sin(2.0 * np.pi * 0.31 * np.arange(len(q)) / toy.RATE + seed)
        tau = tau + 0.3 * noise
        tau[:, 3] += 1.2 * np.std(tau[:, 3]) * slow  # a cable, say
        logs.append(Recording(f"log {seed}", toy.RATE, q, tau))
    if change is not None:
        logs[0] = replace(logs[0], tau=change(logs[0].tau.copy()))
    fitted, held = (prepare(log, 10.0) for log in logs)
    return identify(Problem(robot, fitted), validation=[held], bootstrap=0)


def test_a_quiet_joint_decides_nothing_and_is_told():
    found = wristy()
    (figure, *_), rest = found.identification, found.identification[0].joints[-1]
    assert rest.relative_percent > 50.0
    assert rest.rmse < 0.01 * 900.0
    assert figure.overall_percent < 5.0
    assert found.verdict.state == TRUSTED
    assert any("of its limit" in words for words in found.verdict.remarks)


@pytest.mark.long
def test_without_a_limit_or_a_drive_at_work_no_joint_is_quiet():
    assert wristy(effort=(np.inf,) * N).verdict.state == REFUTED
    # limits of another unit tell nothing of the torques
    assert wristy(effort=(4e5, 4e5, 4e5, 9e5)).verdict.state == REFUTED


@pytest.mark.long
@pytest.mark.parametrize("order", first([(0, 1, 3, 2), (3, 1, 2, 0), (2, 1, 0, 3)]), ids=str)
def test_torques_in_other_columns_are_never_trusted(order):
    assert wristy(lambda tau: tau[:, order]).verdict.state == REFUTED


@pytest.mark.long
@pytest.mark.parametrize("joint", first(range(N)))
def test_torques_of_the_other_sign_are_never_trusted(joint):
    state = wristy(lambda tau: tau * np.where(np.arange(N) == joint, -1.0, 1.0)).verdict.state
    assert state == REFUTED or (joint == N - 1 and state == DOUBTFUL)


def test_friction_that_is_fitted_at_standstill_is_said_with_what_leaves_that_out(sound):
    """A joint that stands bears any torque up to its Coulomb friction."""
    robot = toy.arm(N)
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    rng = np.random.default_rng(4)
    pose = np.broadcast_to(sound.q[:1], (3000, N))
    still = np.zeros_like(pose)
    stuck = [0.5 * theta[idim.names.index(f"fc{j}")] for j in range(1, N + 1)]
    tau = idim.torque(theta, pose, still, still) + stuck + 0.3 * rng.normal(size=pose.shape)
    q = pose + 1e-5 * rng.normal(size=pose.shape)
    rest = Recording("rest", sound.rate, q, tau)
    logs = [prepare(sound, 10.0), prepare(rest, 10.0)]
    found = identify(Problem(robot, logs), doctor=False).verdict
    (reason,) = (r.words for r in found.reasons if "standstill" in r.words)
    assert "% of the rows of joint_1, joint_2, joint_3, joint_4 are at standstill" in reason
    assert found.state == DOUBTFUL
    dropped = [float(x) for x in reason.rsplit("[", 1)[1].rstrip("]").split(", ")]
    logs = [prepare(each, 10.0, drop_below=dropped) for each in (sound, rest)]
    again = identify(Problem(robot, logs), doctor=False).verdict
    assert not any("standstill" in r.words for r in again.reasons)
