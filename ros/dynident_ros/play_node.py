"""The node that sends a designed trajectory to joint_trajectory_controller."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient
from rclpy.node import Node
from sensor_msgs.msg import JointState

import dynident as di

from .limits import list_limits
from .messages import read_joint_state, write_trajectory
from .motion import Motion, list_broken_limits, plan_approach, read_motion


class PlayNode(Node):  # type: ignore[misc]
    """The way to a trajectory's start, then the trajectory, each a goal of its own.

    Parameters: `robot` (its file), `trajectory` (trajectory.json of ``dynident excite``), `action`,
    `rate` (of the points [Hz]), `approach_share` (of the joints' speeds, on the way to the start),
    `approach_acceleration` (of all joints there [rad/s^2 or m/s^2]), `share` and `margin` (see
    `list_limits`), `dry_run` (check and say, send nothing).
    """

    def __init__(self) -> None:
        super().__init__("dynident_play")
        told = {
            name: self.declare_parameter(name, default).value
            for name, default in {
                "robot": "",
                "trajectory": "trajectory.json",
                "action": "/joint_trajectory_controller/follow_joint_trajectory",
                "rate": 50.0,
                "approach_share": 0.1,
                "approach_acceleration": 0.5,
                "share": 1.0,
                "margin": 0.0,
                "dry_run": False,
            }.items()
        }
        self.told = told
        self.robot = di.load_robot(told["robot"])
        self.limits = list_limits(self.robot, told["share"], told["margin"])
        self.motion = read_motion(Path(told["trajectory"]), self.robot, told["rate"])
        self.result: str | None = None
        self.failed = False
        self.goal: Any = None
        self._left: list[Motion] = []
        self._begun = False
        self.client = ActionClient(self, FollowJointTrajectory, told["action"])
        self.create_subscription(JointState, "joint_states", self.take, 10)

    def take(self, message: JointState) -> None:
        """Plan from where the robot is, and begin."""
        reading = read_joint_state(message, self.robot.joint_names, 0)
        if self._begun or reading is None:
            return
        self._begun = True
        # a joint of which no speed is known goes as slowly as its acceleration is small
        speed = self.told["approach_share"] * self.limits.velocity
        gentle = np.full(self.robot.n, self.told["approach_acceleration"])
        speed = np.where(np.isinf(speed), gentle, speed)
        approach = plan_approach(reading.q, self.motion.q[0], speed, gentle, self.told["rate"])
        stages = [approach, self.motion]
        broken = [
            f"{name}: {words}"
            for name, stage in zip(("approach", "trajectory"), stages, strict=True)
            for words in list_broken_limits(stage, self.limits, self.robot)
        ]
        for words in broken:
            self.get_logger().error(words)
        lengths = " and ".join(f"{stage.time[-1]:.1f} s" for stage in stages)
        if broken:
            self.end("nothing was sent, because limits are broken", True)
        elif self.told["dry_run"]:
            self.end(f"keeps all limits that are known: approach and trajectory of {lengths}")
        elif not self.client.wait_for_server(timeout_sec=5.0):
            self.end(f"no controller answers at {self.told['action']}", True)
        else:
            self.get_logger().info(f"approach and trajectory of {lengths}")
            self._left = stages
            self.send()

    def send(self) -> None:
        """Send the next stage, if any is left."""
        if not self._left:
            self.end("played")
            return
        stage = self._left.pop(0)
        goal = FollowJointTrajectory.Goal()
        goal.trajectory = write_trajectory(stage, self.robot.joint_names)
        self.client.send_goal_async(goal).add_done_callback(self.take_answer)

    def take_answer(self, future: Any) -> None:
        """Wait for the result of a goal that the controller took."""
        self.goal = future.result()
        if not self.goal.accepted:
            self.end("the controller refused the trajectory", True)
            return
        self.goal.get_result_async().add_done_callback(self.take_result)

    def take_result(self, future: Any) -> None:
        """Go on where a stage was reached."""
        self.goal = None
        result = future.result().result
        if result.error_code == FollowJointTrajectory.Result.SUCCESSFUL:
            self.send()
            return
        self.end(f"the controller ended with {result.error_code}: {result.error_string}", True)

    def end(self, words: str, failed: bool = False) -> None:
        """Say how it ended."""
        self._left = []
        self.result, self.failed = words, failed


def main() -> None:
    """Play once; a goal that is under way when the node is ended is cancelled."""
    rclpy.init()
    node = PlayNode()
    try:
        while rclpy.ok() and node.result is None:
            rclpy.spin_once(node, timeout_sec=0.1)
    except KeyboardInterrupt:
        pass
    finally:
        if node.goal is not None:
            rclpy.spin_until_future_complete(node, node.goal.cancel_goal_async(), timeout_sec=1.0)
        say = node.get_logger().error if node.failed else node.get_logger().info
        say(node.result or "interrupted")
        failed = node.failed or node.result is None
        node.destroy_node()
        rclpy.try_shutdown()
    sys.exit(1 if failed else 0)
