"""What the launch files describe: a node, its parameters as arguments of ``ros2 launch``."""

from __future__ import annotations

from collections.abc import Mapping

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ACTION = "/joint_trajectory_controller/follow_joint_trajectory"
"""Of the controller of ros2_control."""


def describe_node(
    executable: str, parameters: Mapping[str, tuple[str | float | bool, str]]
) -> LaunchDescription:
    """A node of this package, `dynident_` before its name.

    Parameters
    ----------
    executable : str
    parameters : mapping of str to (value, str)
        Default, whose type is the parameter's, and what it is.
    """
    declared = [
        DeclareLaunchArgument(
            name,
            default_value=str(default).lower() if isinstance(default, bool) else str(default),
            description=words,
        )
        for name, (default, words) in parameters.items()
    ]
    told = {
        name: ParameterValue(LaunchConfiguration(name), value_type=type(default))
        for name, (default, _) in parameters.items()
    }
    node = Node(
        package="dynident_ros",
        executable=executable,
        name=f"dynident_{executable}",
        parameters=[told],
        output="screen",
    )
    return LaunchDescription([*declared, node])
