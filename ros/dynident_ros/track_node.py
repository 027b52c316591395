"""The node that follows a robot's parameters and its load on joint states."""

from __future__ import annotations

from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

import dynident as di

from .following import Following
from .messages import read_joint_state, write_diagnostics, write_inertia, write_wrench

DEPTH = 1000
"""Messages that wait while the first of them are compiled for."""


class TrackNode(Node):  # type: ignore[misc]
    """A result followed on ``joint_states``: ``diagnostics``, ``~/load`` and ``~/load_wrench``.

    Parameters: `result` (its result.json), `rate` (of the joint states [Hz]; 0 is told from their
    stamps), `every` (between two messages [s]), `cutoff` (of the causal filter [Hz]; 0 is that of
    the result's preparation), `link` (that carries loads; the last one by default).
    """

    def __init__(self) -> None:
        super().__init__("dynident_track")
        told = {
            name: self.declare_parameter(name, default).value
            for name, default in {
                "result": "result.json",
                "rate": 0.0,
                "every": 1.0,
                "cutoff": 0.0,
                "link": "",
            }.items()
        }
        options: dict[str, Any] = {k: told[k] for k in ("cutoff", "link") if told[k]}
        fit = di.read_result(told["result"])
        self.joints = fit.robot.joint_names
        self.following = Following(fit, told["rate"] or None, every=told["every"], **options)
        self.name = f"dynident: {fit.robot.name}"
        self.diagnostics = self.create_publisher(DiagnosticArray, "diagnostics", 10)
        self.load = self.create_publisher(InertiaStamped, "~/load", 10)
        self.wrench = self.create_publisher(WrenchStamped, "~/load_wrench", 10)
        self.create_subscription(JointState, "joint_states", self.take, DEPTH)

    def take(self, message: JointState) -> None:
        """Take in one joint state; publish what is due, and what was noticed at once."""
        reading = read_joint_state(message, self.joints, self.get_clock().now().nanoseconds)
        if reading is None or not self.following.take(reading):
            return
        header = Header(stamp=message.header.stamp, frame_id="")
        status = self.following.describe()
        self.diagnostics.publish(write_diagnostics(status, self.name, header))
        load = self.following.load
        if load is not None:
            header = Header(stamp=message.header.stamp, frame_id=load.link)
            self.load.publish(write_inertia(load, header))
            self.wrench.publish(write_wrench(load, header))


def main() -> None:
    """Follow until the node is ended."""
    rclpy.init()
    node = TrackNode()
    try:
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
