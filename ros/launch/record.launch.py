"""Record joint states, and stop what breaks a limit."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = {
    "robot": ("", str, "the robot's file"),
    "log": ("log.csv", str, "the CSV to write"),
    "action": (
        "/joint_trajectory_controller/follow_joint_trajectory",
        str,
        "of the controller that is stopped",
    ),
    "references": ("", str, "topic of the controller's state"),
    "share": ("1.0", float, "of speeds and efforts that is allowed"),
    "margin": ("0.0", float, "inside of the ranges of positions [rad or m]"),
}
"""Parameters of the node: default, type and what it is."""


def generate_launch_description() -> LaunchDescription:
    """The node with its parameters as arguments."""
    told = {
        name: ParameterValue(LaunchConfiguration(name), value_type=kind)
        for name, (_, kind, _) in ARGUMENTS.items()
    }
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=words)
        for name, (default, _, words) in ARGUMENTS.items()
    ]
    node = Node(
        package="dynident_ros",
        executable="record",
        name="dynident_record",
        parameters=[told],
        output="screen",
    )
    return LaunchDescription([*declared, node])
