"""What effort means in a log: each is named that is not the torque of the joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sound_logs
import toy
from robots import urdf
from scipy.integrate import solve_ivp
from scipy.signal import butter, lfilter

from dynident import api, load_robot, read_log
from dynident.diagnosis.by_file import find_missing_bodies, find_other_side, find_zero
from dynident.diagnosis.examine import examine
from dynident.diagnosis.scene import take_scene
from dynident.diagnosis.signs import STILL, find_signs
from dynident.diagnosis.sized import (
    build_delay_family,
    build_offset_family,
    measure_size,
    suspect_size,
)
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.robot.drives import Drives

N = 4
FEW = 300


@pytest.fixture(scope="module")
def sound():
    """A log of an arm with measured noise of torque and position."""
    return toy.measure(toy.arm(N), seconds=8.0)


@pytest.fixture(scope="module")
def base():
    return base_parameters(build_idim(toy.arm(N)))


@pytest.fixture(scope="module")
def scene(sound, base):
    return take_scene(base, prepare(sound, 10.0), most=FEW)


def ask_of_bodies(idim, motion, moving=1.0):
    """The file's torques along a motion, or its weight."""
    q, dq, ddq = motion
    return idim.torque(idim.nominal, q, moving * dq, moving * ddq)


def name_missing(scene):
    """What torques are that lack the file's bodies."""
    found = find_missing_bodies(scene)
    assert found is not None
    return found.kind


SHARES = np.array([0.85, 1.1, 0.9, 1.2])
"""Of the bodies' torques, that a model has which is not quite right."""


def test_torques_without_the_weight_or_the_bodies_are_named(scene):
    assert find_missing_bodies(scene) is None
    idim, motion = scene.base.idim, scene.logged
    weightless = scene.driven(scene.torque - ask_of_bodies(idim, motion, 0.0))
    assert name_missing(weightless) == "gravity"
    units = np.array([2.0, 0.2, 0.2, 2.0])  # of the two that bear weight, little of what moves them
    assert find_missing_bodies(scene.driven(units * scene.torque)) is None
    outside = scene.driven(scene.torque - 0.9 * ask_of_bodies(idim, motion))
    assert find_missing_bodies(outside) is None  # a tenth of all of them is another unit
    outside = scene.driven(scene.torque - SHARES * ask_of_bodies(idim, motion))
    assert name_missing(outside) == "external torque"
    for unit in (0.01, 1000.0):
        assert find_missing_bodies(scene.driven(unit * scene.torque)) is None


def swing(robot, seconds=8.0, rate=250.0):
    """Two links that hang and swing under friction alone; the torques are of drives at rest."""
    idim = build_idim(robot, "none", False)
    theta, none = idim.nominal, np.zeros(2)

    def move(_, x):
        q, dq = x[None, :2], x[None, 2:]
        rest = idim.torque(theta, q, dq, none[None])[0] + 0.05 * dq[0]
        unit = idim.torque(theta, np.repeat(q, 2, axis=0), np.zeros((2, 2)), np.eye(2))
        still = idim.torque(theta, q, none[None], none[None])[0]
        return np.concatenate([dq[0], -np.linalg.solve(unit - still, rest)])

    t = np.arange(int(seconds * rate)) / rate
    start = np.array([0.9, -0.4, 0.0, 0.0])
    x = solve_ivp(move, (0.0, seconds), start, t_eval=t, rtol=1e-8, atol=1e-9).y.T
    tau = 0.01 * np.random.default_rng(2).normal(size=(len(t), 2)) + 0.01 * np.sin(3.0 * t[:, None])
    return Recording("swing", rate, x[:, :2], tau)


def test_a_free_swing_is_no_external_torque():
    """Its torques hold none of the bodies, as weight and motion balance each other."""
    joints = tuple(replace(joint, axis=np.array([0.0, 1.0, 0.0])) for joint in toy.arm(2).joints)
    robot = replace(toy.arm(2), joints=joints, gravity=np.array([0.0, 0.0, 9.81]))  # it hangs
    # second moments twice too large
    heavier = np.where(np.arange(10) < 4, 1.0, 2.0) * robot.nominal
    base = base_parameters(build_idim(replace(robot, nominal=heavier)))
    log = swing(robot)
    assert name_missing(take_scene(base, prepare(log, 10.0), most=FEW)) == "free swing"
    (found,) = examine(base, [prepare(log, 10.0)])[0]
    assert found.what.endswith("they balance, as in a free swing")
    assert "drive the joints against their swing" in found.remedy


def test_positions_in_degrees_are_no_reason_to_miss_the_bodies(measured):
    """Along them a Panda's torques hold nothing of the file's; with their unit, all of it."""
    still = dict.fromkeys(("panda_finger_joint1", "panda_finger_joint2"), 0.0)
    robot = load_robot(urdf("panda"), locked=still)
    columns = {"q": "q_joint*", "tau": "tau_joint*"}
    log = read_log(measured("unisa") / "panda.csv", robot, columns=columns)
    base = base_parameters(build_idim(robot))
    part = replace(log, q=log.q[:290], tau=log.tau[:290], segments=((0, 290),))
    for q in (part.q, np.degrees(part.q)):
        scene = take_scene(base, prepare(replace(part, q=q)), most=FEW)
        assert find_missing_bodies(scene) is None


def test_torques_in_another_order_are_no_reason_to_miss_the_bodies():
    """The joints of a UR10 that bear weight then have the torques of its wrist."""
    idim = build_idim(load_robot(urdf("ur10")))
    rng, t = np.random.default_rng(0), np.arange(2000)[:, None] / 250.0
    speed, size, phase = (
        rng.uniform(*of, (3, 1, 6)) for of in ((0.6, 6.0), (0.1, 0.5), (0.0, 6.0))
    )
    turn = speed * t + phase
    q, dq, ddq = (
        np.sum(x, axis=0)
        for x in (
            size * np.sin(turn),
            size * speed * np.cos(turn),
            -size * speed**2 * np.sin(turn),
        )
    )
    tau = idim.torque(idim.nominal, q, dq, ddq)
    tau += 0.02 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    base = base_parameters(idim)
    for own in (tau, tau[:, ::-1].copy()):
        scene = take_scene(base, prepare(Recording("log", 250.0, q, own), 10.0), most=FEW)
        assert find_missing_bodies(scene) is None


def test_external_torque_is_a_finding_before_all_others(sound, base):
    log = prepare(sound, 10.0)
    tau = sound.tau - SHARES * ask_of_bodies(base.idim, (log.q, log.dq, log.ddq))
    (found,) = examine(base, [prepare(replace(sound, tau=tau), 10.0)])[0]
    assert found.diagnosis == "external torque"
    assert found.what.endswith("if the robot file's inertials are right")


@pytest.mark.long
def test_torques_of_the_motors_are_named_by_the_gears_that_the_file_has(sound):
    reduction = np.diag([120.0, 100.0, -80.0, 50.0])
    robot = replace(toy.arm(N), drives=Drives(np.eye(N), reduction, np.zeros(N), np.ones(N)))
    geared = base_parameters(build_idim(robot))
    log = prepare(replace(sound, tau=sound.tau @ np.linalg.inv(reduction)), 10.0)
    (found,) = examine(geared, [log])[0]
    assert found.diagnosis == "torque side"
    assert found.what.startswith("the torques are those of the motors, not of the joints")
    assert examine(geared, [prepare(sound, 10.0)])[0] == ()


def test_gears_that_are_alike_are_told_from_a_unit_by_their_size_alone(sound):
    for gears, side in (
        (100.0, True),
        (150.0, False),
        (np.array([150.0, 140.0, 60.0, 120.0]), True),
    ):
        reduction = np.diag(np.broadcast_to(gears, N))
        robot = replace(toy.arm(N), drives=Drives(np.eye(N), reduction, np.zeros(N), np.ones(N)))
        scale = 0.01 if np.ndim(gears) == 0 else 1.0 / gears
        log = prepare(replace(sound, tau=scale * sound.tau), 10.0)
        scene = take_scene(base_parameters(build_idim(robot)), log, most=FEW)
        assert (find_other_side(scene) is not None) == side


def test_counts_are_named(sound):
    limited = replace(
        toy.arm(N), joints=tuple(replace(joint, effort=200.0) for joint in toy.arm(N).joints)
    )
    counts = np.round(2048 * sound.tau / np.max(np.abs(sound.tau), axis=0))
    (sign,) = (s for s in find_signs(limited, prepare(replace(sound, tau=counts), 10.0)))
    assert sign.kind == "counts"
    assert "up to 2048" in sign.what
    whole = replace(sound, tau=np.round(sound.tau))  # of newton metres
    assert not [s for s in find_signs(limited, prepare(whole, 10.0)) if s.kind == "counts"]


def test_commanded_torques_are_named_by_their_targets(sound):
    robot, rate = toy.arm(N), sound.rate
    target = sound.q + 1e-3 * np.sin(7.0 * np.arange(len(sound.q))[:, None] / rate + np.arange(N))
    speed = np.gradient(target - sound.q, 1.0 / rate, axis=0)
    asked = 4000.0 * (target - sound.q) + 20.0 * speed + 3.0
    log = replace(sound, qref=target, tau=asked)
    (sign,) = (s for s in find_signs(robot, prepare(log, 10.0)))
    assert sign.kind == "commanded"
    assert sign.size < 0.1  # a remark: the drives may do what they are asked for
    noise = 0.02 * np.std(asked, axis=0) * np.random.default_rng(1).normal(size=asked.shape)
    assert find_signs(robot, prepare(replace(log, tau=asked + noise), 10.0)) == ()


def test_torques_that_a_model_computed_from_the_targets_are_named(sound, base):
    target, dq, ddq = toy.motion(N, 8.0, 0)
    q = lfilter(*butter(2, 8.0, fs=toy.RATE), target - target[0], axis=0) + target[0]
    tau = ask_of_bodies(base.idim, (target, dq, ddq))
    log = Recording("computed", toy.RATE, q, tau, qref=target)
    ((found,),) = examine(base, [prepare(log, 10.0)], thorough=True)  # nothing else is told of it
    assert found.diagnosis == "computed torque"
    assert found.before > 10.0
    assert found.after < 0.5
    assert "no sensor measured them" in found.what
    noisy = target + 1e-3 * np.random.default_rng(2).normal(size=q.shape)
    followed = replace(sound, qref=sound.q + (target - q))
    for other in (followed, replace(log, q=noisy)):  # as drives follow them
        assert examine(base, [prepare(other, 10.0)], thorough=True) == ((),)


def test_a_log_at_a_low_rate_says_what_remains(sound):
    slow = replace(sound, q=sound.q[::50], tau=sound.tau[::50], rate=20.0, segments=((0, 160),))
    robot = toy.arm(N)
    said = [
        api.identify(Problem(robot, prepare(log, 2.0)), method="wls", doctor=False).warnings
        for log in (slow, sound)
    ]
    told = [[each for each in every if each.startswith("sampled at")] for every in said]
    assert len(told[0]) == 1
    assert told[1] == []
    assert "sampled at 20 Hz: determined to 25 % or better" in told[0][0]
    assert "of masses and first moments" in told[0][0]
    assert "of drives" in told[0][0]


@pytest.mark.measured
def test_torques_of_measured_robots_are_known_for_what_they_are(measured):
    folder = measured("lwr4")
    robot = load_robot(folder / "kuka_lwr4.urdf")
    columns = {"time": "times", "q": "positions_*", "tau": "torques_*"}
    log = prepare(read_log(folder / "measurements_1.npz", robot, columns=columns), 10.0)
    base = base_parameters(build_idim(robot))
    s = take_scene(base, log, most=FEW)
    assert find_missing_bodies(s) is None
    weight = ask_of_bodies(base.idim, s.logged, 0.0)
    assert name_missing(s.driven(s.torque - weight)) == "gravity"
    beta = s.problem.consistent()
    shares = 1.0 + 0.1 * np.random.default_rng(0).uniform(-1.0, 1.0, len(base.idim.parameters))
    model = base.idim.torque(shares * base.standard(beta), *s.logged)
    assert name_missing(s.driven(s.torque - model)) == "external torque"
    for unit in (0.01, 100.0):
        assert find_missing_bodies(s.driven(unit * s.torque)) is None


# ---- sizes and units


def test_a_size_is_as_unsure_as_what_the_model_lacks(scene):
    """Friction that no model has says something else of each joint's delay."""
    q, dq, _ = scene.logged
    rng = np.random.default_rng(3)
    off = []
    for _ in range(12):
        phase, order = rng.uniform(0.0, 6.0, N), rng.uniform(1.0, 3.0, N)
        lacking = 0.1 * np.std(scene.torque, axis=0) * np.sin(order * dq + phase) * np.cos(q)
        s = scene.driven(scene.torque + lacking)
        family = build_delay_family(np.ones((N, 1)))
        size, _, error = measure_size(s, family, family.next(s, np.zeros(1), 3))
        off.append(float(size[0] / error[0]))
    assert np.sqrt(np.mean(np.square(off))) < 2.0


@pytest.mark.measured
def test_a_size_is_sought_until_it_settles(measured):
    """What a joint is left with, and so its weight, changes with a delay of a LWR4+."""
    folder = measured("lwr4")
    robot = load_robot(folder / "kuka_lwr4.urdf")
    columns = {"time": "times", "q": "positions_*", "tau": "torques_*"}
    log = read_log(folder / "measurements_3.npz", robot, columns=columns)
    late = replace(log, tau=late_by(log.tau, round(0.02 * log.rate)))
    s = take_scene(base_parameters(build_idim(robot)), prepare(late, 10.0), most=FEW)
    family = build_delay_family(np.ones((s.n, 1)))
    told = next(suspect_size(s, family, np.array([0.035]))).measure(s)
    again = family.next(s, np.array([told.repair.delay]), 1)
    assert abs(again[0] - told.repair.delay) < 0.1 * told.error


def late_by(signal, samples):
    return np.concatenate([np.repeat(signal[:1], samples, axis=0), signal[:-samples]])


def test_a_zero_that_is_far_off_has_two_numbers_and_that_of_a_last_joint_is_not_told(scene):
    near, far = (
        build_offset_family(N, 1).tell(scene, np.array([size]), np.zeros(1)) for size in (0.2, 1.5)
    )
    assert (near.freedom, far.freedom) == (1, 2)
    turned = (scene.along(scene.q - turn, scene.dq, scene.ddq) for turn in 0.3 * np.eye(N)[[1, -1]])
    inner, last = map(find_zero, turned)
    assert inner is not None
    assert last is None


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_consistent_bodies_explain_torques_in_any_unit_alike(scene, unit):
    plain, scaled = scene, scene.driven(unit * scene.torque)
    errors = [s.problem.errors(s.problem.consistent()) for s in (plain, scaled)]
    np.testing.assert_allclose(errors[1], errors[0], rtol=0.02)


# ---- logs of others


@pytest.mark.long
@pytest.mark.parametrize("name", ["a1 FL_hip_joint", "double_pendulum 2", "heavy arm"])
def test_sound_logs_of_other_robots_are_left_alone(name):
    robot = sound_logs.kinds()[name].make()
    base = base_parameters(build_idim(robot))
    first, other = (prepare(log) for log in sound_logs.make_logs(name))
    assert examine(base, [first], thorough=True) == ((),)
    assert examine(base, [first], [other]) == ((),)
    assert [sign for sign in find_signs(robot, first) if sign.kind != STILL] == []
