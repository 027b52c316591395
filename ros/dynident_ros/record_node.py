"""The node that records joint states to a file, and stops what breaks a limit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from action_msgs.srv import CancelGoal
from control_msgs.msg import JointTrajectoryControllerState
from rclpy.node import Node
from sensor_msgs.msg import JointState

import dynident as di

from .limits import find_violation, list_limits
from .messages import read_joint_state
from .readings import LogFile

DEPTH = 1000
"""Messages that wait while the disk is slow."""
WAIT = 1.0
"""For a controller to take that its goals are cancelled [s]."""


class RecordNode(Node):  # type: ignore[misc]
    """Joint states into a CSV; on a broken limit the goals of a controller are cancelled.

    Parameters: `robot` (its file), `log` (the CSV to write), `action` (of the controller that is
    stopped; none stops nothing), `references` (topic of the controller's state; none records no
    reference), `share` and `margin` (see `list_limits`).
    """

    def __init__(self) -> None:
        super().__init__("dynident_record")
        told = {
            name: self.declare_parameter(name, default).value
            for name, default in {
                "robot": "",
                "log": "log.csv",
                "action": "/joint_trajectory_controller/follow_joint_trajectory",
                "references": "",
                "share": 1.0,
                "margin": 0.0,
            }.items()
        }
        robot = di.load_robot(told["robot"])
        self.joints = robot.joint_names
        self.limits = list_limits(robot, told["share"], told["margin"])
        self.log = LogFile(Path(told["log"]), self.joints, bool(told["references"]))
        self.reason: str | None = None
        self.stopping: Any = None
        self._reference: tuple[Any, Any] | None = None
        for entry in self.limits.unknown:
            self.get_logger().warning(f"no limit is known of {entry}")
        self.stopper = None
        if told["action"]:
            self.stopper = self.create_client(CancelGoal, f"{told['action']}/_action/cancel_goal")
        if told["references"]:
            self.create_subscription(
                JointTrajectoryControllerState, told["references"], self.take_reference, DEPTH
            )
        self.create_subscription(JointState, "joint_states", self.take, DEPTH)

    def take(self, message: JointState) -> None:
        """Check and write one joint state."""
        reading = read_joint_state(message, self.joints, self.get_clock().now().nanoseconds)
        if reading is None or self.reason is not None:
            return
        self.log.write(reading, self._reference)
        broken = find_violation(self.limits, reading)
        if broken is not None:
            self.stop(broken)

    def take_reference(self, message: JointTrajectoryControllerState) -> None:
        """Keep the reference that is valid from now on."""
        names, wanted = list(message.joint_names), message.reference
        if set(self.joints) <= set(names) and len(wanted.velocities) == len(names):
            places = [names.index(joint) for joint in self.joints]
            both = np.array([wanted.positions, wanted.velocities])[:, places]
            self._reference = both[0], both[1]

    def stop(self, reason: str) -> None:
        """Cancel all goals of the controller, which then holds its position, and end the log."""
        self.reason = reason
        self.get_logger().error(f"{reason}: stopped")
        if self.stopper is not None:
            # a goal without number and time means all of them
            self.stopping = self.stopper.call_async(CancelGoal.Request())


def main() -> None:
    """Record until a limit is broken, or the node is ended."""
    rclpy.init()
    node = RecordNode()
    try:
        while rclpy.ok() and node.reason is None:
            rclpy.spin_once(node, timeout_sec=0.1)
        if node.stopping is not None:
            rclpy.spin_until_future_complete(node, node.stopping, timeout_sec=WAIT)
            if not node.stopping.done():
                node.get_logger().error("no controller answered: nothing was cancelled")
    except KeyboardInterrupt:
        pass
    finally:
        node.get_logger().info(node.log.close())
        failed = node.reason is not None
        node.destroy_node()
        rclpy.try_shutdown()
    sys.exit(1 if failed else 0)
