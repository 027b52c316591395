"""The package for ROS 2, without ROS: its plain modules, and nodes on a stub of rclpy.

Messages are those of rosbags. What a node does with a running ROS is not tested here.
"""

from __future__ import annotations

import ast
import json
import runpy
import sys
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import toy
from rosbags.typesys import Stores, get_typestore

import dynident as di
from dynident.core.errors import InputError
from dynident.core.inertia import from_com, to_com
from dynident.dynamics.idim import build_idim
from dynident.excitation.options import TrajectoryShape
from dynident.excitation.trajectories import SCHEMA, Trajectory
from dynident.recording.read import read_log
from dynident.study.track import EstimateRow, NoticedChange

ROS = Path(__file__).parents[1] / "ros"
sys.path.insert(0, str(ROS))

from dynident_ros.following import Following, turn_into_link  # noqa: E402
from dynident_ros.limits import find_violation, list_limits  # noqa: E402
from dynident_ros.motion import (  # noqa: E402
    Motion,
    interpolate_motion,
    list_broken_limits,
    plan_approach,
    read_motion,
)
from dynident_ros.readings import LogFile, Reading, order_reading, to_nanoseconds  # noqa: E402

STORE = get_typestore(Stores.ROS2_HUMBLE)
START = 1_700_000_000_000_000_000
RATE = 200.0


@cache
def arm():
    """With limits, all but the effort of the first joint."""
    robot = toy.arm(2)
    known = {"lower": -2.0, "upper": 2.0, "velocity": 3.0}
    first, second = robot.joints
    joints = replace(first, **known), replace(second, **known, effort=60.0)
    return replace(robot, joints=joints)


def readings(q, tau, rate=RATE):
    return [
        Reading(START + round(1e9 * k / rate), q[k], None, None if tau is None else tau[k])
        for k in range(len(q))
    ]


# ---- readings


def test_joint_states_are_put_in_order_and_others_left_out():
    names = ["gripper", "b", "a"]
    found = order_reading(3, ("a", "b"), names, [0.0, 2.0, 1.0], [], [9.0, 4.0, 3.0])
    np.testing.assert_array_equal(found.q, [1.0, 2.0])
    np.testing.assert_array_equal(found.tau, [3.0, 4.0])
    assert (found.stamp, found.dq) == (3, None)
    assert order_reading(3, ("a", "b"), ["a"], [1.0], [], []) is None
    assert order_reading(3, ("a",), ["a"], [], [], []) is None
    assert to_nanoseconds(2, 5, 7) == 2_000_000_005
    assert to_nanoseconds(0, 0, 7) == 7


def test_what_is_recorded_is_read_back(tmp_path):
    q, dq, _ = toy.motion(2, 1.0, rate=RATE)
    log = LogFile(tmp_path / "run.csv", arm().joint_names, references=True)
    stamps = START + (1e9 * np.arange(len(q)) / RATE).astype(int)
    for k, stamp in enumerate(stamps.tolist()):
        reference = None if k < 3 else (q[k] + 0.01, dq[k] + 0.01)
        assert log.write(Reading(stamp, q[k], dq[k], 2 * q[k]), reference) == (k >= 3)
        if k == 50:
            assert not log.write(Reading(stamp, q[k], dq[k], q[k]), reference)  # its stamp repeats
            assert not log.write(Reading(stamp + 1, q[k], dq[k], None), reference)
    assert log.close() == f"{tmp_path / 'run.csv'}: {len(q) - 3} rows, 5 readings left out"
    found = read_log(tmp_path / "run.csv", arm())
    assert found.rate == pytest.approx(RATE)
    assert found.warnings == ()
    for signal, values in {"q": q, "dq": dq, "tau": 2 * q, "qref": q + 0.01}.items():
        np.testing.assert_array_equal(getattr(found, signal), values[3:])
    with pytest.raises(InputError, match="exists; give the log another name"):
        LogFile(tmp_path / "run.csv", ("a",))
    with pytest.raises(InputError, match="cannot be written"):
        LogFile(tmp_path / "nowhere" / "run.csv", ("a",))


# ---- limits


def test_limits_are_those_of_the_description():
    limits = list_limits(arm(), share=0.5, margin=0.1)
    np.testing.assert_array_equal(limits.upper, [1.9, 1.9])
    np.testing.assert_array_equal(limits.velocity, [1.5, 1.5])
    assert limits.unknown == ("joint_1: effort",)
    still = np.zeros(2)

    def broken(q=still, dq=still, tau=still):
        return find_violation(limits, Reading(0, np.array(q), np.array(dq), np.array(tau)))

    assert broken() is None
    assert broken(tau=(1e6, 30.0)) is None
    assert broken(q=(0.0, -1.95)) == "joint_2: position -1.95 is not between -1.9 and 1.9"
    assert broken(dq=(1.6, 0.0)) == "joint_1: velocity 1.6 is not between -1.5 and 1.5"
    assert broken(tau=(0.0, -30.1)) == "joint_2: effort -30.1 is not between -30 and 30"
    assert "joint_1: position nan" in broken(q=(np.nan, 0.0))
    assert broken(dq=(np.nan, 0.0), tau=(0.0, np.nan)) is None
    assert find_violation(limits, Reading(0, still, None, None)) is None
    with pytest.raises(InputError, match="share"):
        list_limits(arm(), share=1.5)


# ---- motion


def write_trajectory_file(path, scale=0.3, **changes):
    shape = TrajectoryShape(trajectory="fourier", duration=4.0, harmonics=3)
    family = shape.family()
    C = scale * np.random.default_rng(3).normal(size=(family.count, 2)) / family.count
    document = {
        "schema": SCHEMA,
        "robot": {"joints": list(arm().joint_names)},
        "shape": {key: value for key, value in asdict(shape).items() if value is not None},
        "coefficients": C.tolist(),
        "rate": 500.0,
        "periods": 1,
        "kept": True,
        **changes,
    }
    path.write_text(json.dumps(document))
    return Trajectory(family, C)


def test_a_controller_makes_of_the_points_what_was_designed(tmp_path):
    designed = write_trajectory_file(tmp_path / "t.json")
    motion = read_motion(tmp_path / "t.json", arm(), 50.0)
    assert motion.time[-1] == pytest.approx(4.0)
    every = interpolate_motion(motion)
    assert len(every.time) == 10 * (len(motion.time) - 1) + 1
    for order, values in enumerate((every.q, every.dq, every.ddq)):
        true = designed.at(designed.family.start + every.time, order)
        assert np.max(np.abs(values - true)) < 1e-4 * np.max(np.abs(true)), order
    assert list_broken_limits(motion, list_limits(arm()), arm()) == []


def test_trajectories_of_other_robots_or_beyond_limits_are_refused(tmp_path):
    path = tmp_path / "t.json"
    write_trajectory_file(path, robot={"joints": ["x", "joint_2"]})
    with pytest.raises(InputError, match="is of x, joint_2, the robot has joint_1, joint_2"):
        read_motion(path, arm(), 50.0)
    write_trajectory_file(path, kept=False)
    with pytest.raises(InputError, match="without keeping its limits"):
        read_motion(path, arm(), 50.0)
    write_trajectory_file(path)
    with pytest.raises(InputError, match="none of points"):
        read_motion(path, arm(), 0.0)
    motion = read_motion(path, arm(), 50.0)
    tight = list_limits(arm(), share=0.002)
    words = [" ".join(each.split()[:2]) for each in list_broken_limits(motion, tight, arm())]
    assert words == ["joint_1: velocity", "joint_2: velocity", "joint_2: effort"]


def test_limits_that_break_between_two_points_are_found():
    points = Motion(np.array([0.0, 1.0]), np.zeros((2, 2)), np.full((2, 2), 2.9), np.zeros((2, 2)))
    (first, *_) = list_broken_limits(points, list_limits(arm(), margin=1.7), arm())
    assert first.startswith("joint_1: position -0.4")
    assert first.endswith(" is not between -0.3 and 0.3")


def test_the_approach_is_from_rest_to_rest_within_its_limits():
    start, goal = np.array([0.5, -1.0]), np.array([-0.5, 0.2])
    velocity, acceleration = np.array([0.6, 0.8]), np.array([2.0, 0.7])
    motion = plan_approach(start, goal, velocity, acceleration, 100.0)
    np.testing.assert_allclose(motion.q[[0, -1]], [start, goal], atol=1e-12)
    np.testing.assert_allclose(motion.dq[[0, -1]], 0.0, atol=1e-12)
    np.testing.assert_allclose(motion.ddq[[0, -1]], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.gradient(motion.q, 0.01, axis=0), motion.dq, atol=2e-3)
    shares = np.max(np.abs(motion.dq), axis=0) / velocity
    shares = np.append(shares, np.max(np.abs(motion.ddq), axis=0) / acceleration)
    assert 0.97 < np.max(shares) <= 1.0 + 1e-9
    still = plan_approach(start, start, velocity, acceleration, 100.0)
    np.testing.assert_array_equal(still.q, np.tile(start, (2, 1)))
    with pytest.raises(InputError, match="above zero"):
        plan_approach(start, goal, np.zeros(2), acceleration, 100.0)


# ---- following


@cache
def followed():
    """A fit of a toy arm, and a motion of it at another rate with the torques of its model."""
    robot = toy.arm(3)
    log, _ = toy.log(robot, 6.0, 0.3)
    fit = di.identify(di.Problem(robot, di.prepare(log, 5.0)), doctor=False)
    q, dq, ddq = toy.motion(3, 9.0, 7, RATE)
    noise = 0.3 * np.random.default_rng(5).normal(size=q.shape)
    return fit, (q, dq, ddq), fit.idim.torque(fit.theta, q, dq, ddq) + noise


def test_readings_are_followed_as_a_log_of_them_is():
    fit, (q, _, _), tau = followed()
    following = Following(fit, every=2.0)
    assert following.describe().words == "waits for joint states"
    rows = [each for reading in readings(q, tau) for each in following.take(reading)]
    assert following.rate == pytest.approx(RATE)
    log = di.Recording("run", RATE, q, tau)
    expected = di.track(fit, log, every=2.0)
    assert [type(row) for row in rows] == [EstimateRow] * (
        len(expected.rows) - 1
    )  # and one at its end
    for row, other in zip(rows, expected.rows, strict=False):
        np.testing.assert_allclose(row.beta, other.beta, rtol=1e-6, atol=1e-9)
        assert row.time == pytest.approx(other.time)
    status = following.describe()
    assert not status.warns
    assert {*fit.base.names} < {name for name, _ in status.values}
    assert following.load is None


LOAD = from_com(3.0, [0.05, 0.0, 0.2], 0.02 * np.eye(3))


def pick_up_load():
    """Torques of the motion with a load on the last link from its middle on."""
    fit, (q, dq, ddq), tau = followed()
    theta = np.zeros(len(fit.theta))
    theta[20:30] = LOAD
    late = np.arange(len(q))[:, None] > len(q) // 2
    return tau + np.where(late, fit.idim.torque(theta, q, dq, ddq), 0.0)


def test_a_load_is_noticed_with_its_weight():
    fit, (q, _, _), _ = followed()
    robot, loaded = fit.robot, pick_up_load()
    following = Following(fit, RATE, cutoff=20.0)
    found = [each for reading in readings(q, loaded) for each in following.take(reading)]
    (event, *_) = [each for each in found if isinstance(each, NoticedChange)]
    assert event.event.kind == "load"
    assert 4.4 < event.time < 5.5
    carried = following.load
    assert carried.link == robot.links[-1]
    assert carried.mass == pytest.approx(3.0, abs=0.3)
    np.testing.assert_allclose(carried.com, to_com(LOAD)[1], atol=0.03)
    status = following.describe()
    assert status.warns
    assert status.words.startswith("carries ")
    assert np.linalg.norm(carried.force) == pytest.approx(9.81 * carried.mass)
    # what the weight does at the last joint is what the model says of it
    idim = build_idim(robot, "none", rotor=False)
    held = np.zeros(len(idim.names))
    held[20:30] = LOAD
    at = q[-1:]
    own = idim.torque(held, at, 0 * at, 0 * at)[0, -1]
    down = turn_into_link(robot, robot.links[-1], at[0]).T @ np.array(robot.gravity)
    assert -robot.joints[-1].axis @ np.cross(LOAD[1:4], down) == pytest.approx(own)


def test_readings_that_cannot_be_followed_are_left_out_or_refused():
    fit, (q, _, _), tau = followed()
    following = Following(fit, RATE)
    with pytest.raises(InputError, match="no effort"):
        following.take(readings(q[:1], None)[0])
    (first,) = readings(q[:1], tau[:1])
    following.take(first)
    following.take(first)
    following.take(Reading(first.stamp + 1, q[0] + np.nan, None, tau[0]))
    assert following.left_out == 2
    with pytest.raises(InputError, match="unknown key"):
        Following(fit, RATE, evry=2.0)


@pytest.mark.parametrize("stated", [None, RATE])
def test_readings_at_another_rate_than_they_began_are_refused(stated):
    fit, (q, _, _), tau = followed()
    following = Following(fit, stated)
    for reading in readings(q[:80], tau[:80]):
        following.take(reading)
    slow = [
        Reading(each.stamp + 10**9, each.q, None, each.tau)
        for each in readings(q[:80], tau[:80], 0.5 * RATE)
    ]
    with pytest.raises(InputError, match=f"come at {0.5 * RATE:g} Hz, and not at {RATE:g} Hz"):
        list(map(following.take, slow))


# ---- nodes, on a stub of rclpy


class Future:
    def __init__(self, result):
        self.given = result

    def result(self):
        return self.given

    def done(self):
        return True

    def add_done_callback(self, call):
        call(self)


class Node:
    """What the nodes use of rclpy's; what they do is kept."""

    told: ClassVar[dict] = {}

    def __init__(self, name):
        self.called, self.subscribed, self.published, self.said = name, {}, {}, []

    def declare_parameter(self, name, default):
        return SimpleNamespace(value=type(default)(self.told.get(name, default)))

    def create_subscription(self, kind, topic, call, depth):
        self.subscribed[topic] = (kind, call)

    def create_publisher(self, kind, topic, depth):
        self.published[topic] = []
        return SimpleNamespace(publish=self.published[topic].append)

    def create_client(self, kind, name):
        self.service, self.requests = name, []

        def call_async(request):
            self.requests.append(request)
            return Future(None)

        return SimpleNamespace(call_async=call_async)

    def get_logger(self):
        kinds = ("info", "warning", "error")
        keep = self.said.append
        return SimpleNamespace(**{kind: lambda words, k=kind: keep((k, words)) for kind in kinds})

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=START))


class Follow:
    """control_msgs/action/FollowJointTrajectory, as far as it is used."""

    Goal = SimpleNamespace
    Result = SimpleNamespace(SUCCESSFUL=0)


class Client:
    """An action client whose controller reaches every goal, or ends with `code`."""

    ready, code, accepts = True, 0, True

    def __init__(self, node, kind, name):
        self.goals, self.name = [], name

    def wait_for_server(self, timeout_sec):
        return self.ready

    def send_goal_async(self, goal):
        self.goals.append(goal)
        result = SimpleNamespace(error_code=self.code, error_string="it fell")
        answer = Future(SimpleNamespace(result=result))
        return Future(SimpleNamespace(accepted=self.accepts, get_result_async=lambda: answer))


def add_module(monkeypatch, name, contents):
    module = ModuleType(name)
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def ros(monkeypatch):
    """Modules as ROS has them: messages of rosbags, the rest a stub."""
    for package in ("builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "sensor_msgs",
                    "std_msgs", "trajectory_msgs"):  # fmt: skip
        kinds = {
            name.rpartition("/")[2]: kind
            for name, kind in STORE.types.items()
            if name.startswith(f"{package}/msg/")
        }
        add_module(monkeypatch, package, {})
        add_module(monkeypatch, f"{package}.msg", kinds)
    stubs = {
        "rclpy": {},
        "rclpy.node": {"Node": Node},
        "rclpy.action": {"ActionClient": Client},
        "action_msgs": {},
        "action_msgs.srv": {"CancelGoal": SimpleNamespace(Request=SimpleNamespace)},
        "control_msgs": {},
        "control_msgs.msg": {"JointTrajectoryControllerState": object},
        "control_msgs.action": {"FollowJointTrajectory": Follow},
    }
    for name, contents in stubs.items():
        add_module(monkeypatch, name, contents)
    for name in ("messages", "record_node", "play_node", "track_node"):
        monkeypatch.delitem(sys.modules, f"dynident_ros.{name}", raising=False)
    monkeypatch.setattr(di, "load_robot", lambda path: arm())
    return monkeypatch


def state(time, q, tau=(), names=("joint_1", "joint_2")):
    types = STORE.types
    stamp = types["builtin_interfaces/msg/Time"](*divmod(START + round(1e9 * time), 10**9))
    header = types["std_msgs/msg/Header"](stamp, "")
    three = [np.array(values, float) for values in (q, (), tau)]
    return types["sensor_msgs/msg/JointState"](header, list(names), *three)


def test_the_recorder_stops_a_controller_whose_robot_breaks_a_limit(ros, tmp_path):
    ros.setattr(Node, "told", {"log": str(tmp_path / "run.csv"), "references": "/state"})
    from dynident_ros.record_node import RecordNode

    node = RecordNode()
    assert node.said == [("warning", "no limit is known of joint_1: effort")]
    assert (
        node.service == "/joint_trajectory_controller/follow_joint_trajectory/_action/cancel_goal"
    )
    _, reference = node.subscribed["/state"]
    wanted = SimpleNamespace(positions=[0.2, 0.1], velocities=[0.0, 1.0])
    reference(SimpleNamespace(joint_names=["joint_2", "joint_1"], reference=wanted))
    _, take = node.subscribed["joint_states"]
    take(state(0.0, (0.0, 0.0), (1.0, 1.0)))
    take(state(0.1, (0.0, 2.5), (1.0, 1.0)))
    take(state(0.2, (0.0, 0.0), (1.0, 1.0)))
    assert node.reason == "joint_2: position 2.5 is not between -2 and 2"
    assert len(node.requests) == 1
    assert node.log.close().endswith("2 rows")
    lines = (tmp_path / "run.csv").read_text().splitlines()
    assert lines[0].endswith("tau_joint_2,qref_joint_1,qref_joint_2,dqref_joint_1,dqref_joint_2")
    assert lines[1].endswith(",0.1,0.2,1.0,0.0")


def test_the_player_sends_the_way_and_then_the_trajectory(ros, tmp_path):
    designed = write_trajectory_file(tmp_path / "t.json")
    ros.setattr(Node, "told", {"trajectory": str(tmp_path / "t.json")})
    from dynident_ros.play_node import PlayNode

    node = PlayNode()
    _, take = node.subscribed["joint_states"]
    take(state(0.0, (0.3, -0.2)))
    take(state(0.1, (0.0, 0.0)))
    assert (node.result, node.failed) == ("played", False)
    approach, trajectory = (goal.trajectory for goal in node.client.goals)
    np.testing.assert_allclose(approach.points[0].positions, (0.3, -0.2))
    np.testing.assert_allclose(approach.points[-1].positions, trajectory.points[0].positions)
    assert trajectory.joint_names == list(arm().joint_names)
    last = trajectory.points[-1]
    assert (last.time_from_start.sec, last.time_from_start.nanosec) == (4, 0)
    k = 20
    values = [designed.at(np.array([k / 50.0]), order)[0] for order in range(3)]
    point = trajectory.points[k]
    found = point.positions, point.velocities, point.accelerations
    np.testing.assert_allclose(found, values, atol=1e-12)


@pytest.mark.parametrize(
    ("told", "client", "words"),
    [
        ({"share": 0.002}, {}, "nothing was sent, because limits are broken"),
        ({"dry_run": True}, {}, "keeps all limits that are known"),
        ({}, {"ready": False}, "no controller answers"),
        ({}, {"accepts": False}, "the controller refused"),
        ({}, {"code": -4}, "the controller ended with -4: it fell"),
    ],
)
def test_the_player_says_why_it_ends(ros, tmp_path, told, client, words):
    write_trajectory_file(tmp_path / "t.json")
    ros.setattr(Node, "told", {"trajectory": str(tmp_path / "t.json"), **told})
    for name, value in client.items():
        ros.setattr(Client, name, value)
    from dynident_ros.play_node import PlayNode

    node = PlayNode()
    node.subscribed["joint_states"][1](state(0.0, (0.3, -0.2)))
    assert node.result.startswith(words)
    assert node.failed == ("dry_run" not in told)
    assert len(node.client.goals) == (1 if client.keys() & {"accepts", "code"} else 0)


def test_the_tracker_publishes_diagnostics_and_the_load(ros):
    fit, (q, _, _), _ = followed()
    loaded = pick_up_load()
    ros.setattr(di, "read_result", lambda path: fit)
    ros.setattr(Node, "told", {"rate": RATE, "every": 2.0, "cutoff": 20.0, "link": "link_3"})
    from dynident_ros.track_node import TrackNode

    node = TrackNode()
    _, take = node.subscribed["joint_states"]
    for k in range(len(q)):
        take(state(k / RATE, q[k], loaded[k], fit.robot.joint_names))
    found = node.published["diagnostics"]
    assert len(found) >= 4
    for message in found:
        STORE.serialize_cdr(message, "diagnostic_msgs/msg/DiagnosticArray")
    (first,), (last,) = found[0].status, found[-1].status
    assert (first.level, last.level) == (first.OK, first.WARN)
    assert last.name == "dynident: toy"
    assert {pair.key for pair in last.values} > {"samples", "load [kg]", *fit.base.names}
    (*_, wrench), (*_, inertia) = node.published["~/load_wrench"], node.published["~/load"]
    assert wrench.header.frame_id == inertia.header.frame_id == "link_3"
    STORE.serialize_cdr(wrench, "geometry_msgs/msg/WrenchStamped")
    STORE.serialize_cdr(inertia, "geometry_msgs/msg/InertiaStamped")
    force = wrench.wrench.force
    weight = np.linalg.norm([force.x, force.y, force.z])
    assert weight == pytest.approx(9.81 * abs(inertia.inertia.m))


# ---- the package


def test_every_executable_is_launched_with_the_parameters_of_its_node(monkeypatch):
    def keep(*given, **named):
        return SimpleNamespace(given=given, **named)

    stubs = {
        "launch": {"LaunchDescription": list},
        "launch.actions": {"DeclareLaunchArgument": keep},
        "launch.substitutions": {"LaunchConfiguration": keep},
        "launch_ros": {},
        "launch_ros.actions": {"Node": keep},
        "launch_ros.parameter_descriptions": {"ParameterValue": keep},
    }
    for name, contents in stubs.items():
        add_module(monkeypatch, name, contents)
    text = (ROS / "setup.py").read_text()
    for name in ("record", "play", "track"):
        assert f"{name} = {{NAME}}.{name}_node:main" in text
        launched = runpy.run_path(str(ROS / "launch" / f"{name}.launch.py"))
        *arguments, node = launched["generate_launch_description"]()
        assert (node.executable, node.name) == (name, f"dynident_{name}")
        (told,) = node.parameters
        tree = ast.parse((ROS / "dynident_ros" / f"{name}_node.py").read_text())
        own = next(ast.literal_eval(each) for each in ast.walk(tree) if isinstance(each, ast.Dict))
        assert {key: value.value_type for key, value in told.items()} == {
            key: type(value) for key, value in own.items()
        }
        declared = {each.given[0]: each.default_value for each in arguments}
        assert declared == {
            key: "true" if key == "dry_run" else str(value) for key, value in own.items()
        }
        assert [value.given[0].given for value in told.values()] == [(key,) for key in declared]
    assert (ROS / "resource" / "dynident_ros").is_file()
