"""Loads, from a log with them and a model without."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise

import loads
import numpy as np
import pytest
import toy
from commands import ask, tell
from loads import CENTRE, KILOGRAM, TRUE
from tables import write_joints

import dynident as di
from dynident.cli import run
from dynident.consistency.one_body import find_nearest_body
from dynident.core.errors import ComputationError, InputError
from dynident.core.inertia import (
    from_com,
    is_consistent,
    to_inertial_parameters,
    to_pseudo_inertia,
    transform_body,
)
from dynident.loads.load import (
    NO_LOAD,
    Load,
    RestFit,
    TorqueRemainder,
    discount_model_covariance,
    estimate_load_intervals,
    to_central_inertia,
    warn_of_unseen_load,
)
from dynident.loads.load import fit_load_columns as estimated
from dynident.loads.payload import to_abc_angles
from dynident.regression.statistics import TestResult


@cache
def ur10() -> tuple[loads.Arm, di.Fit]:
    own = loads.arm("ur10")
    return own, loads.empty(own, own.logs(0)[0])


def seen(found) -> np.ndarray:
    return np.array([found.mass, *found.com, *(found.inertia[i, j] for i, j in PLACES)])


PLACES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


@pytest.mark.parametrize("name", [pytest.param("panda", marks=pytest.mark.long), "ur10"])
def test_a_kilogram_at_the_hand_is_weighed_and_placed(name):
    own = loads.arm(name)
    inside, off = [], []
    for seed in range(4):
        first, second = own.logs(seed)
        found = di.payload(loads.empty(own, first), second)
        assert found.mass == pytest.approx(1.0, rel=0.02)
        np.testing.assert_allclose(found.com, CENTRE, atol=5e-3)
        assert is_consistent(found.load.phi)
        assert found.load.moved is None
        low, high = (np.array(list(ends.values())) for ends in (found.low, found.high))
        inside.append((low <= TRUE) & (high >= TRUE))
        off.append((found.load.free - KILOGRAM) / np.sqrt(np.diag(found.load.covariance)))
    assert 0.6 < np.sqrt(np.mean(np.square(off))) < 1.4  # in standard deviations
    assert np.mean(np.array(inside)[:, :4]) > 0.8


@pytest.mark.parametrize("friction", ["load", pytest.param("load-square", marks=pytest.mark.long)])
def test_a_load_is_in_the_friction_that_it_makes(friction):
    """Drives that brake by 5 % of what they bear bear the load, too."""
    robot = toy.arm(3)
    model = di.build_idim(robot, friction)
    values = {"Ia": 0.3, "fv": 2.0, "fc": 3.0, "off": 0.5, "fl": 0.05, "fl2": 1e-4}
    theta = model.join(robot.nominal, np.array([values[p.symbol] for p in model.drives]))
    carried = from_com(1.0, [0.05, 0.02, 0.1], np.diag([4e-3, 5e-3, 3e-3]))
    logs = []
    for seed, load in ((1, 0.0), (3, carried)):
        whole = theta.copy()
        whole[20:30] += load
        motion = toy.motion(3, 12.0, seed, 250.0)
        noise = 0.1 * np.random.default_rng(seed).normal(size=motion[0].shape)
        logs.append(di.read_arrays(motion[0], model.torque(whole, *motion) + noise, rate=250.0))
    problem = di.Problem(robot, di.prepare(logs[0], bandwidth=5.0), friction)
    fit = di.identify(problem, bootstrap=0, doctor=False)
    found = di.payload(fit, logs[1], gain_error=0.0)
    assert found.load.moved is None
    assert found.low["mass"] < 1.0 < found.high["mass"]
    assert found.high["mass"] - found.low["mass"] < 0.01
    np.testing.assert_allclose(found.com, [0.05, 0.02, 0.1], atol=1e-3)


def test_weights_of_an_estimated_covariance_do_not_go_where_it_errs():
    """A model's covariance from fewer replicates than parameters, as a bootstrap gives it."""
    rng = np.random.default_rng(0)
    p, replicates = 40, 30
    root = rng.normal(size=(p, p)) / np.sqrt(p) + np.eye(p)
    A, columns = rng.normal(size=(p, p)), rng.normal(size=(p, 4))
    found = {}
    for name in ("doubted", "believed"):
        z = []
        for _ in range(100):
            C = np.cov(root @ rng.normal(size=(p, replicates)))
            r = A @ (root @ rng.normal(size=p)) + rng.normal(size=p)
            model, noise = A @ C @ A.T, np.eye(p)
            V = (discount_model_covariance(A, C) if name == "doubted" else model) + noise
            fit = estimated(TorqueRemainder(A, r, V, noise, model), columns, np.full(4, np.inf))
            z.append(fit.x / np.sqrt(np.diag(fit.covariance)))
        found[name] = np.sqrt(np.mean(np.square(z)))
    assert found["doubted"] == pytest.approx(1.0, abs=0.15)
    assert found["believed"] > 1.4


@pytest.mark.long
def test_the_model_s_own_error_is_in_the_intervals():
    short = loads.arm("ur10", seconds=5.0)
    coarse = di.payload(loads.empty(short, short.logs(0)[0]), ur10()[0].logs(0)[1])
    widths = [found.high["x"] - found.low["x"] for found in (ur10_found(), coarse)]
    assert widths[1] > 1.2 * widths[0]


def test_a_flat_load_stays_a_body_and_its_intervals_too():
    flat = from_com(1.0, CENTRE, np.diag([1e-3, 1e-3, 2e-3]))  # a disc without thickness
    found = di.payload(ur10()[1], loads.arm("ur10", flat).logs(0)[1])
    assert is_consistent(found.load.phi)
    assert all(is_consistent(phi) for phi in found.load.draws)
    assert found.mass == pytest.approx(1.0, rel=0.02)
    assert found.low["Izz"] < 2e-3 < found.high["Izz"]


@pytest.mark.long
def test_moments_that_a_log_hardly_tells_reach_down_to_those_of_small_bodies():
    """Draws within the cone keep away from its corners: their quantiles hold one truth of seven."""
    true = from_com(1.0, [0.05, 0.02, 0.08], np.diag([0.002, 0.003, 0.0035]))
    unit = np.array([1.0] + [0.1] * 3 + [0.01] * 6)
    std = np.array([0.005] + [0.001] * 3 + [0.05] * 6)
    rng, rows, inside = np.random.default_rng(1), np.diag(1.0 / std), 0
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    moments = np.diag(turn.T @ np.diag([0.002, 0.003, 0.0035]) @ turn)
    absent = TestResult(NO_LOAD, 1e3, 0.0, "F")
    for seed in range(6):
        x, C = true + std * rng.normal(size=10), np.diag(std**2)
        nearest = find_nearest_body(rows, x / std, x, C, unit, 100, seed)
        near = (nearest.phi, nearest.draws, x, C)
        load = Load("hand", *near, (), (absent,), nearest, None, None, ())
        _, low, high = estimate_load_intervals(load, turn, np.zeros(3))
        places = [4, 6, 9]
        inside += int(np.sum((low[places] <= moments) & (moments <= high[places])))
    assert inside >= 17


def test_drives_that_drifted_are_noticed_and_do_no_harm():
    found = di.payload(ur10()[1], loads.arm("ur10", drift={"off": 1.0}).logs(0)[1])
    assert "offsets" in found.load.drifted
    assert found.mass == pytest.approx(1.0, rel=0.02)
    np.testing.assert_allclose(found.com, CENTRE, atol=5e-3)
    assert ur10_found().load.drifted == ()


@cache
def ur10_found():
    own, fit = ur10()
    return di.payload(fit, own.logs(0)[1])


@pytest.mark.long
def test_a_load_that_moves_is_said_to():
    late = np.arange(len(ur10()[0].motions[1][0])) > 0.5 * len(ur10()[0].motions[1][0])
    slid = moved(np.array(CENTRE) + 0.05 * late[:, None] * [1.0, 0.0, 0.0])
    own = loads.arm("ur10", slid)
    found = di.payload(ur10()[1], own.logs(0)[1])
    assert found.load.moved is not None
    assert "over time" in found.load.moved
    assert "the load moves" in found.warnings[0]
    assert ur10_found().load.moved is None


@pytest.mark.long
def test_a_load_that_gravity_moves_is_said_to():
    base = ur10()[0]
    down = -along(base.robot, base.motions[1][0])[:, 2, :]  # in the hand's frame
    slosh = moved(np.array(CENTRE) + 0.03 * down)
    found = di.payload(ur10()[1], loads.arm("ur10", slosh).logs(0)[1])
    assert found.load.moved is not None
    assert "direction of gravity" in found.load.moved


def moved(centres: np.ndarray) -> np.ndarray:
    """The kilogram about centres of mass that change, shape (samples, 10)."""
    placed = np.tile(np.eye(4), (len(centres), 1, 1))
    placed[:, :3, 3] = centres
    body = to_pseudo_inertia(from_com(1.0, np.zeros(3), np.diag(loads.INERTIA)))
    return to_inertial_parameters(placed @ body @ np.swapaxes(placed, 1, 2))


def along(robot: di.Robot, q: np.ndarray) -> np.ndarray:
    """Rotations of the last link, by a way of its own: matrix exponentials."""
    from scipy.spatial.transform import Rotation

    total = np.tile(np.eye(3), (len(q), 1, 1))
    for k, joint in enumerate(robot.joints):
        turn = Rotation.from_rotvec(q[:, k, None] * joint.axis).as_matrix()
        total = total @ joint.rotation @ turn
    return total


@pytest.mark.long
def test_without_a_load_none_is_seen():
    own = loads.arm("ur10", np.zeros(10))
    found = di.payload(ur10()[1], own.logs(3)[1])
    assert abs(found.load.free[0]) < 0.01
    test = next(t for t in found.load.tests if t.null == "there is no load")
    loaded = next(t for t in ur10_found().load.tests if t.null == test.null)
    assert test.p_value > 1e-6
    assert loaded.p_value < 1e-100
    lifted = loads.arm("ur10", -0.5 * KILOGRAM)
    with pytest.raises(ComputationError, match=r"no gain turns -0\.[45]\d* kg into 1 kg"):
        di.payload(ur10()[1], lifted.logs(3)[1], mass=1.0)
    with pytest.raises(ComputationError, match=r"carries 0\.[45]\d* kg less than in the model"):
        di.payload(ur10()[1], lifted.logs(3)[1])


def test_a_log_that_differs_by_no_load_says_so():
    fit = RestFit(-np.ones(10), 0.36 * np.eye(10), np.eye(10), np.zeros(10))
    agrees, differs = (warn_of_unseen_load(fit, "hand", np.ones(10), p)[0] for p in (0.5, 1e-9))
    assert agrees == "no load is seen on hand: the log agrees with the model without one"
    assert "the log differs from the model without one, but its mass, -1 +- 0.6 kg" in differs


@pytest.mark.long
def test_what_is_said_of_a_log_without_a_load():
    own, fit = ur10()
    found = di.payload(fit, own.logs(7)[0])  # the empty arm once more
    assert "no load is seen on wrist_3_link" in found.warnings[0]
    assert found.load.moved is None
    text, document = found.summary(), found.to_dict()
    assert "no load is seen" in text
    assert "\nmass " in text
    assert not any(word in text for word in ("\nx ", "Ixx", "<origin", "setLoad", "LOAD"))
    assert [document[key] for key in ("seen", "com", "inertia_com", "urdf", "calls")] == [
        False, None, None, None, None,
    ]  # fmt: skip
    assert list(document["interval_95"]) == ["mass"]
    for told in (found.ur, found.franka, found.kuka, found.urdf, lambda: found.com):
        with pytest.raises(ComputationError, match="no load is seen on wrist_3_link"):
            told()


@pytest.mark.long
def test_a_known_mass_tells_the_gain_of_the_drives():
    own = loads.arm("ur10")
    first, second = own.logs(0, gain=1.06)
    found = di.payload(loads.empty(own, first), second, mass=1.0)
    gains = found.load.gains
    assert gains is not None
    assert gains.values[0] == pytest.approx(1.06, abs=4.0 * gains.std[0])
    assert gains.std[0] < 0.01
    assert found.mass == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(found.com, CENTRE, atol=5e-3)
    each = di.payload(loads.empty(own, first), second, mass=1.0, gains="joint").load.gains
    assert each is not None
    assert each.names == own.robot.joint_names
    assert np.all(np.abs(each.values - 1.06) < 4.0 * each.std + 0.002)


def test_what_cannot_be_a_load_is_refused():
    own, fit = ur10()
    _, second = own.logs(0)
    for options, words in (
        ({"link": "hand"}, "there is no moving frame 'hand'"),
        ({"frame": "forearm_link"}, "is on forearm_link, and the load on wrist_3_link"),
        ({"mass": -1.0}, "mass has to be positive, got -1"),
        ({"gains": "joint"}, "gains are estimated from a load of known mass"),
        ({"gains": "jont", "mass": 1.0}, "gains 'jont' is not known; did you mean 'joint'"),
        ({"seed": -1}, "seed is -1 but should be greater than or equal to 0"),
        ({"gain": "all"}, "payload has no option 'gain'; did you mean 'gains'"),
    ):
        with pytest.raises(InputError, match=words):
            di.payload(fit, second, **options)


@pytest.mark.long
def test_logs_that_hold_nothing_of_a_load_end_in_words():
    recording, _ = toy.log(toy.arm(2), noise=0.1)
    log = replace(recording, dq=None, ddq=None)
    fit = di.identify(di.Problem(toy.arm(2), di.prepare(log, 5.0)), bootstrap=0, doctor=False)
    silent = replace(log, tau=np.zeros_like(log.tau))
    with pytest.raises(di.ComputationError, match="toy log: the torque is zero throughout"):
        di.payload(fit, silent)
    with pytest.raises(InputError, match="toy log: has no torque with a sign"):
        di.payload(fit, replace(silent, torque="none"))
    still = replace(log, q=np.full_like(log.q, 0.1))
    assert "no load is seen" in str(di.payload(fit, still, anyway=True).load.warnings)


def test_the_flange_sees_the_same_load():
    own, fit = ur10()
    _, second = own.logs(0)
    plain, flange = (di.payload(fit, second, frame=f) for f in (None, "tool0"))
    assert flange.frame == "tool0"
    moved = transform_body(
        from_com(flange.mass, flange.com, flange.inertia), flange.rotation, flange.translation
    )
    np.testing.assert_allclose(moved, plain.load.phi, atol=1e-12)
    assert np.abs(flange.com - plain.com).max() > 1e-3
    same = di.payload(fit, second, link="tool0")
    np.testing.assert_allclose(same.com, flange.com)


def test_calls_say_what_the_controllers_take():
    own, fit = ur10()
    found = di.payload(fit, own.logs(0)[1], frame="tool0")
    numbers = [float(x) for x in found.ur()[len("set_target_payload(") : -1]
               .replace("[", "").replace("]", "").split(",")]  # fmt: skip
    xx, xy, yy, xz, yz, zz = (found.inertia[i, j] for i, j in PLACES)
    np.testing.assert_allclose(numbers, [found.mass, *found.com, xx, yy, zz, xy, xz, yz], rtol=1e-5,
                               atol=1e-9)  # fmt: skip
    text = found.summary()
    assert max(map(len, text.splitlines())) <= 100
    assert "for a controller whose flange is tool0; name another by frame (--frame)" in text
    for call in (*found.calls().values(), found.urdf()):
        assert "".join(call.split()) in "".join(text.split())
    assert found.franka().startswith(f"robot.setLoad({found.mass:.6g}, {{{{")
    words = found.kuka().replace("{", " ").replace("}", " ").replace(",", " ").split()
    tail = words[words.index("J") + 1 :]
    moments = [float(tail[1]), float(tail[3]), float(tail[5])]
    angles = np.radians([float(words[words.index(key) + 1]) for key in "ABC"])
    turned = rotation(*angles)
    np.testing.assert_allclose(turned @ np.diag(moments) @ turned.T, found.inertia, atol=1e-7)
    assert float(words[words.index("X") + 1]) == pytest.approx(1e3 * found.com[0], rel=1e-5)


def rotation(a: float, b: float, c: float) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_euler("ZYX", [a, b, c]).as_matrix()


@pytest.mark.parametrize("angles", [(0.3, -0.7, 1.2), (2.0, np.pi / 2, 0.0), (-1.0, -np.pi / 2, 0)])
def test_turns_are_those_of_the_maker(angles):
    R = rotation(*angles)
    np.testing.assert_allclose(rotation(*to_abc_angles(R)), R, atol=1e-7)


def test_a_load_about_its_centre_is_that_of_the_ten_parameters():
    np.testing.assert_allclose(to_central_inertia(np.array([KILOGRAM]))[0], TRUE, atol=1e-15)


@pytest.mark.long
def test_the_command_prints_and_writes_json(tmp_path, capsys):
    own = loads.arm("ur10")
    for log in own.logs(0):
        path, names = tmp_path / f"{log.name}.csv", own.robot.joint_names
        write_joints(path, names, loads.RATE, q=log.q, tau=log.tau)
    arguments = ["identify", "--robot", str(own.robot.source), "--log",
                 str(tmp_path / "empty.csv"), "--bandwidth", "10", "--no-report",
                 "-o", str(tmp_path / "out")]  # fmt: skip
    assert run(arguments) == 0
    capsys.readouterr()
    arguments = ["payload", str(tmp_path / "out" / "result.json"), "--log",
                 str(tmp_path / "loaded.csv"), "--frame", "tool0"]  # fmt: skip
    found = ask(capsys, [*arguments, "--franka", str(tmp_path / "hand.json")])
    hand = json.loads((tmp_path / "hand.json").read_text())
    assert [hand[key] for key in ("mass", "centerOfMass")] == [found["mass"], found["com"]]
    xx, xy, yy, xz, yz, zz = found["inertia_com"]
    assert hand["inertia"] == [xx, xy, xz, xy, yy, yz, xz, yz, zz]
    assert run([*arguments, "--franka", str(tmp_path / "loaded.csv")]) == 2
    assert "is an input" in capsys.readouterr().err
    assert found["schema"] == "dynident.payload/1"
    assert found["mass"] == pytest.approx(1.0, rel=0.02)
    low, high = found["interval_95"]["mass"]
    assert low < found["mass"] < high
    assert found["moved"] is None
    assert found["gains"] is None
    text = tell(capsys, [*arguments, "--mass", "1.0"]).out
    assert "set_target_payload(1, [" in text
    assert '<parent link="tool0"/>' in text
    assert "gains       true torque over that of the log" in text
    assert run([*arguments, "--gains", "some"]) == 2
    assert "gains 'some' is not known; choose from all, joint" in capsys.readouterr().err


def hold_poses(own: loads.Arm, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and torques with the load on: a second of moving and one of holding, in turn."""
    rng = np.random.default_rng(seed)
    n, rate, idim = own.robot.n, round(loads.RATE), di.build_idim(own.robot)
    poses = rng.uniform(-1.0, 1.0, (count, n))
    t = np.arange(rate) / rate
    way = np.array([t - np.sin(2 * np.pi * t) / (2 * np.pi), 1 - np.cos(2 * np.pi * t)])
    way = [*way, 2 * np.pi * np.sin(2 * np.pi * t)]
    still = np.zeros((rate, n))
    parts = [
        [start + way[0][:, None] * (end - start), still + end] for start, end in pairwise(poses)
    ]
    steps = np.repeat(np.diff(poses, axis=0), 2 * rate, axis=0)
    dq, ddq = (np.tile(np.append(own, np.zeros(rate)), count - 1)[:, None] for own in way[1:])
    q = np.vstack([each for part in parts for each in part])
    theta = own.theta.copy()
    theta[idim.inertial - 10 : idim.inertial] += KILOGRAM
    tau = idim.torque(theta, q, dq * steps, ddq * steps)
    fc = np.array([theta[idim.names.index(f"fc{j + 1}")] for j in range(n)])
    tau += fc * np.sign(steps) * (dq == 0.0)  # friction that a pose was approached with
    return q, tau + 0.02 * rng.normal(size=tau.shape)


@pytest.mark.long
def test_poses_that_are_held_weigh_a_load(tmp_path, capsys):
    own = loads.arm("ur10")
    path = tmp_path / "held.csv"
    ur10()[1].save(tmp_path / "out", report=False)
    q, tau = hold_poses(own, 16, 0)
    write_joints(path, own.robot.joint_names, loads.RATE, q=q, tau=tau)
    call = ["payload", str(tmp_path / "out" / "result.json"), "--log", str(path), "--rests", "0.5"]
    found = ask(capsys, call)
    assert found["mass"] == pytest.approx(1.0, rel=0.05)
    low, high = found["interval_95"]["mass"]
    assert low < 1.0 < high
    assert "hold poses longer" in tell(capsys, [*call[:-1], "5"], 2).err


@pytest.mark.long
def test_what_gains_do_to_the_mass_is_in_its_interval():
    """By the robot file, of a UR10 whose drives give 14 % more than they say."""
    own = loads.arm("ur10")
    first, second = own.logs(0, gain=1.14)
    fit = loads.empty(own, first)
    found, blind = (di.payload(fit, second, **given) for given in ({}, {"gain_error": 0.0}))
    assert found.mass == pytest.approx(1.0 / 1.14, rel=0.02)
    assert found.low["mass"] < found.mass < 1.0 < found.high["mass"] < 1.2
    assert blind.high["mass"] < 0.95
    assert "true torques are 1.14 times the logged ones" in found.warnings[0]
    np.testing.assert_allclose(found.com, blind.com, rtol=1e-12)
    told = di.payload(fit, second, gain_error=0.1)
    assert told.low["mass"] < 0.75
    assert told.high["mass"] > 1.0
    right = di.payload(ur10()[1], own.logs(0)[1])
    assert right.high["mass"] - right.low["mass"] < 0.02
    assert not any("true torques" in each for each in right.warnings)


def test_torques_of_currents_are_believed_as_far_as_gains_of_drives_are():
    """A gain that the file agrees with is no better known: its bodies agree in sum alone."""
    robot = toy.arm(3)
    model = di.build_idim(robot)
    theta = model.join(robot.nominal, np.tile([0.3, 2.0, 3.0, 0.5], 3))
    logs, widths = [], []
    for seed, load in ((1, 0.0), (3, from_com(1.0, [0.05, 0.02, 0.1], np.eye(3) * 4e-3))):
        whole = theta.copy()
        whole[20:30] += load
        motion = toy.motion(3, 6.0, seed, 250.0)
        logs.append(di.read_arrays(motion[0], model.torque(whole, *motion), rate=250.0))
    for gain in (1.0, 10.0):
        drives = replace(robot.drives, gain=np.full(3, gain))
        problem = di.Problem(replace(robot, drives=drives), di.prepare(logs[0], bandwidth=5.0))
        found = di.payload(di.identify(problem, "wls", doctor=False), logs[1])
        widths.append(np.log(found.high["mass"] / found.low["mass"]) / (2.0 * 1.96))
        assert any("weigh a known mass (mass)" in own for own in found.load.warnings) == (gain > 1)
    assert widths[0] < 0.01
    assert widths[1] == pytest.approx(0.1, rel=0.1)
