"""Follow a robot's parameters and its load."""

from dynident_ros.launching import describe_node
from launch import LaunchDescription

ARGUMENTS = {
    "result": ("result.json", "the result to start from"),
    "rate": (0.0, "of the joint states [Hz]; 0 is told from their stamps"),
    "every": (1.0, "between two messages [s]"),
    "cutoff": (0.0, "of the causal filter [Hz]; 0 is that of the result"),
    "link": ("", "that carries loads; the last one by default"),
}
"""Parameters of the node: default and what it is."""


def generate_launch_description() -> LaunchDescription:
    """The node with its parameters as arguments."""
    return describe_node("track", ARGUMENTS)
