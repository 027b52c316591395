"""Record joint states, and stop what breaks a limit."""

from dynident_ros.launching import ACTION, describe_node
from launch import LaunchDescription

ARGUMENTS = {
    "robot": ("", "the robot's file"),
    "log": ("log.csv", "the CSV to write"),
    "action": (ACTION, "of the controller that is stopped"),
    "references": ("", "topic of the controller's state"),
    "share": (1.0, "of speeds and efforts that is allowed"),
    "margin": (0.0, "inside of the ranges of positions [rad or m]"),
}
"""Parameters of the node: default and what it is."""


def generate_launch_description() -> LaunchDescription:
    """The node with its parameters as arguments."""
    return describe_node("record", ARGUMENTS)
