"""Follow a robot's parameters and its load."""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = {
    "result": ("result.json", str, "the result to start from"),
    "rate": ("0.0", float, "of the joint states [Hz]; 0 is told from their stamps"),
    "every": ("1.0", float, "between two messages [s]"),
    "cutoff": ("0.0", float, "of the causal filter [Hz]; 0 is that of the result"),
    "link": ("", str, "that carries loads; the last one by default"),
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
        executable="track",
        name="dynident_track",
        parameters=[told],
        output="screen",
    )
    return LaunchDescription([*declared, node])
