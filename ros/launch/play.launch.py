"""Send a designed trajectory to joint_trajectory_controller."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = {
    "robot": ("", str, "the robot's file"),
    "trajectory": ("trajectory.json", str, "that dynident excite wrote"),
    "action": ("/joint_trajectory_controller/follow_joint_trajectory", str, "of the controller"),
    "rate": ("50.0", float, "of the points [Hz]"),
    "approach_share": ("0.1", float, "of the joints' speeds on the way to the start"),
    "approach_acceleration": ("0.5", float, "there [rad/s^2 or m/s^2]"),
    "share": ("1.0", float, "of speeds and efforts that is allowed"),
    "margin": ("0.0", float, "inside of the ranges of positions [rad or m]"),
    "dry_run": ("true", bool, "check and say, send nothing"),
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
        executable="play",
        name="dynident_play",
        parameters=[told],
        output="screen",
    )
    return LaunchDescription([*declared, node])
