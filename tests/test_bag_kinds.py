"""Messages of bags that are not JointState: of ros2_control, and of Franka's drivers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bags import START
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from test_recording_read import ROBOT, make_robot, refusal
from test_recording_read import TAU as LONG_TAU
from test_recording_read import TIME as LONG
from test_recording_read import Q as LONG_Q

from dynident.readers import read_tables
from dynident.readers.presets import PRESETS, find_layout
from dynident.recording.read import read_log

TIME, Q, TAU = LONG[:60], LONG_Q[:60], LONG_TAU[:60]
AB = ["a", "b"]
STATE = "sensor_msgs/msg/JointState"
CONTROLLER = "control_msgs/msg/JointTrajectoryControllerState"
DYNAMIC = "control_msgs/msg/DynamicJointState"
FRANKA2, FRANKA = "franka_msgs/msg/FrankaRobotState", "franka_msgs/msg/FrankaState"
POINTS = "".join(
    f"trajectory_msgs/JointTrajectoryPoint {name}\n"
    for name in ("reference", "feedback", "error", "output")
)
DEFINITIONS = {  # as far as they are read, other parts among them
    CONTROLLER: f"std_msgs/Header header\nstring[] joint_names\n{POINTS}",
    "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values",
    DYNAMIC: "std_msgs/Header header\nstring[] joint_names\nInterfaceValue[] interface_values",
    FRANKA2: "std_msgs/Header header\nsensor_msgs/JointState measured_joint_state\n"
    "sensor_msgs/JointState desired_joint_state\nfloat64[7] ddq_d",
    FRANKA: "std_msgs/Header header\nfloat64[7] q\nfloat64[7] q_d\nfloat64[7] dq\n"
    "float64[7] dq_d\nfloat64[7] tau_J\nfloat64[7] tau_J_d",
}


class Bag:
    """Messages that are written with the definitions above."""

    def __init__(self, old: bool = False) -> None:
        self.old = old
        self.store = get_typestore(Stores.ROS1_NOETIC if old else Stores.ROS2_HUMBLE)
        for name, text in DEFINITIONS.items():
            self.store.register(get_types_from_msg(text, name))
        self.messages: list = []

    def make(self, kind: str, *values):
        return self.store.types[kind](*values)

    def header(self, time: float):
        stamp = self.make("builtin_interfaces/msg/Time", *divmod(START + round(1e9 * time), 10**9))
        return self.make("std_msgs/msg/Header", *([0] * self.old), stamp, "")

    def state(self, time, names, *values):
        return self.make(STATE, self.header(time), names, *[np.array(v, float) for v in values])

    def point(self, *values):
        three = [np.array(v, float) for v in values]
        after = self.make("builtin_interfaces/msg/Duration", 0, 0)
        *rest, effort = three
        kind = "trajectory_msgs/msg/JointTrajectoryPoint"
        return self.make(kind, *rest, np.zeros(0), effort, after)

    def add(self, topic: str, kind: str, time: float, message) -> None:
        self.messages.append((time, topic, kind, message))

    def write(self, path: Path, plugin: StoragePlugin = StoragePlugin.MCAP) -> Path:
        path = path.with_suffix(".bag") if self.old else path
        make = Writer1(path) if self.old else Writer2(path, version=9, storage_plugin=plugin)
        with make as writer:
            known = {}
            for time, topic, kind, message in sorted(self.messages, key=lambda m: m[0]):
                if topic not in known:
                    known[topic] = writer.add_connection(topic, kind, typestore=self.store)
                pack = self.store.serialize_ros1 if self.old else self.store.serialize_cdr
                writer.write(known[topic], START + round(1e9 * time), pack(message, kind))
        return path


def controller_state(bag: Bag, time: float, q, tau=()):
    four = [bag.point(q + 0.01, q + 0.02, ()), bag.point(q, 2 * q, tau)]
    return bag.make(CONTROLLER, bag.header(time), AB, *four, *[bag.point((), (), ())] * 2)


def dynamic_state(bag: Bag, time: float, q, tau, extra=("position", "effort")):
    names = [["position", "effort"], list(extra)]
    pairs = [
        bag.make("control_msgs/msg/InterfaceValue", n, np.array([p, e])[: len(n)])
        for n, p, e in zip(names, q, tau, strict=True)
    ]
    return bag.make(DYNAMIC, bag.header(time), AB, pairs)


def test_the_state_of_a_trajectory_controller_has_the_reference(tmp_path):
    bag = Bag()
    for t, q, tau in zip(TIME, Q, TAU, strict=True):
        bag.add("/arm/controller_state", CONTROLLER, t, controller_state(bag, t, q, tau))
    log = read_log(bag.write(tmp_path / "run"), ROBOT)
    np.testing.assert_array_equal(log.q, Q)
    np.testing.assert_array_equal(log.dq, 2 * Q)
    np.testing.assert_array_equal(log.tau, TAU)
    np.testing.assert_array_equal(log.qref, Q + 0.01)
    np.testing.assert_array_equal(log.dqref, Q + 0.02)


def test_joint_states_come_before_what_controllers_say_of_the_same_joints(tmp_path):
    bag = Bag()
    for t, q, tau in zip(TIME, Q, TAU, strict=True):
        bag.add("/joint_states", STATE, t, bag.state(t, AB, q, (), tau))
        bag.add("/dynamic_joint_states", DYNAMIC, t, dynamic_state(bag, t, q + 1.0, tau + 1.0))
        bag.add("/arm/controller_state", CONTROLLER, t, controller_state(bag, t, q + 2.0, tau))
    path = bag.write(tmp_path / "run")
    log = read_log(path, ROBOT)
    np.testing.assert_array_equal(log.q, Q)
    np.testing.assert_array_equal(log.tau, TAU)
    np.testing.assert_allclose(log.qref, Q + 2.01)  # which the joint states do not have
    assert "/arm/controller_state (100 Hz) put on the clock of /joint_states" in log.warnings[0]
    other = read_log(path, ROBOT, columns={"q": "/dynamic_joint_states:q_*"})
    np.testing.assert_array_equal(other.q, Q + 1.0)
    np.testing.assert_array_equal(other.tau, TAU + 1.0)


def test_interfaces_that_only_some_joints_have_are_left_out(tmp_path):
    bag = Bag()
    for t, q, tau in zip(TIME, Q, TAU, strict=True):
        bag.add("/states", DYNAMIC, t, dynamic_state(bag, t, q, tau, ("position",)))
    (table,) = read_tables(bag.write(tmp_path / "run"))
    assert table.titles == ("time", "q_a", "q_b")


def test_franka_robot_states_hold_two_states_of_the_joints(tmp_path):
    bag = Bag()
    for t, q, tau in zip(TIME, Q, TAU, strict=True):
        two = bag.state(t, AB, q, 2 * q, tau), bag.state(t, AB, q + 0.01, q, ())
        message = bag.make(FRANKA2, bag.header(t), *two, np.zeros(7))
        bag.add("/franka_robot_state_broadcaster/robot_state", FRANKA2, t, message)
        if t < 0.3:  # what a publisher of joint states makes of it is slower
            bag.add("/joint_states", STATE, t, bag.state(t, AB, q + 1.0, (), ()))
    log = read_log(bag.write(tmp_path / "run"), ROBOT)
    np.testing.assert_array_equal(log.q, Q)
    np.testing.assert_array_equal(log.tau, TAU)
    np.testing.assert_array_equal(log.qref, Q + 0.01)


@pytest.mark.parametrize("old", [True, False])
def test_franka_states_number_their_joints(tmp_path, old):
    bag = Bag(old)
    wide = np.hstack([Q, Q, Q, Q])[:, :7]
    for t, q in zip(TIME, wide, strict=True):
        message = bag.make(FRANKA, bag.header(t), q, q + 0.01, 2 * q, q, 3 * q, 0 * q)
        bag.add("/franka_state_controller/franka_states", FRANKA, t, message)
    path = bag.write(tmp_path / "run")
    robot = make_robot([f"panda_joint{k}" for k in range(1, 8)])
    layout = find_layout(read_tables(path)[0].titles, robot.joint_names, topics=True)
    assert layout.preset is PRESETS["franka-state"]
    assert layout.effort.link_side
    log = read_log(path, robot, columns=layout.columns)
    np.testing.assert_array_equal(log.q, wide)
    np.testing.assert_array_equal(log.tau, 3 * wide)
    np.testing.assert_array_equal(log.qref, wide + 0.01)


def test_messages_whose_definition_is_not_in_the_bag_are_named(tmp_path, monkeypatch):
    bag = Bag()
    for t, q in zip(TIME, Q, strict=True):
        bag.add("/arm/controller_state", CONTROLLER, t, controller_state(bag, t, q))
    monkeypatch.setattr(bag.store, "generate_msgdef", lambda *_, **__: ("", ""))
    path = bag.write(tmp_path / "run", StoragePlugin.SQLITE3)
    assert f"/arm/controller_state ({CONTROLLER}, without a definition)" in refusal(path, ROBOT)
