"""Send a designed trajectory to joint_trajectory_controller."""

from dynident_ros.launching import ACTION, describe_node
from launch import LaunchDescription

ARGUMENTS = {
    "robot": ("", "the robot's file"),
    "trajectory": ("trajectory.json", "that dynident excite wrote"),
    "action": (ACTION, "of the controller"),
    "rate": (50.0, "of the points [Hz]"),
    "approach_share": (0.1, "of the joints' speeds on the way to the start"),
    "approach_acceleration": (0.5, "there [rad/s^2 or m/s^2]"),
    "share": (1.0, "of speeds and efforts that is allowed"),
    "margin": (0.0, "inside of the ranges of positions [rad or m]"),
    "dry_run": (True, "check and say, send nothing"),
}
"""Parameters of the node: default and what it is."""


def generate_launch_description() -> LaunchDescription:
    """The node with its parameters as arguments."""
    return describe_node("play", ARGUMENTS)
