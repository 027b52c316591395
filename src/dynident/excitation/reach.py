"""How fast points of bodies can be, per speed of the joints that move them: bounds for proofs."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.robot.model import Robot


def bound_reach(robot: Robot, body: int, radius: float) -> tuple[Array, frozenset[int]]:
    """How fast points of a body can be per joint's speed, and the joints that move it."""
    found, far, path = np.zeros(robot.n), radius, robot.list_carriers(body)
    for k in path:
        joint = robot.joints[k]
        found[k] = far if joint.kind == "revolute" else 1.0
        far += float(np.linalg.norm(joint.translation))
        if joint.kind == "prismatic":
            far += float(np.max(np.abs(np.clip([joint.lower, joint.upper], -10.0, 10.0))))
    return found, frozenset(path)


def bound_tilts(robot: Robot, body: int, normal: Array) -> Array:
    """How much of a body's reach is along a direction of the base frame, joint by joint.

    The sine of the largest angle between each turning joint's axis and the direction, shape (n,); 1
    for sliding ones, and for those that do not move the body. Turning about an axis along the
    direction moves nothing along it. An axis leans from it by no more than all axes up to it lean
    from those before them, which no motion changes.
    """
    found, along, lean = np.ones(robot.n), normal, 0.0
    for k in reversed(robot.list_carriers(body)):
        joint = robot.joints[k]
        along = joint.rotation.T @ along
        if joint.kind == "revolute":
            across, with_it = np.linalg.norm(np.cross(along, joint.axis)), abs(along @ joint.axis)
            lean = min(lean + float(np.arctan2(across, with_it)), 0.5 * np.pi)
            found[k], along = np.sin(lean), joint.axis
    return found


def bound_relative_reach(a: tuple[Array, frozenset[int]], b: tuple[Array, frozenset[int]]) -> Array:
    """Reach of two bodies against each other: what moves both changes no distance."""
    found = a[0] + b[0]
    found[list(a[1] & b[1])] = 0.0
    return found
