"""Links that mirror each other by the robot's file, as constraints that a study may state."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from dynident.consistency.constraints.relations import PLANES, Symmetric, place_body_frames
from dynident.core.arrays import Array
from dynident.core.inertia import to_pseudo_inertia
from dynident.robot.model import Robot

ALIKE = 1e-3
"""Of their mass and size, by which the inertials of links that mirror each other differ."""


def find_symmetries(robot: Robot) -> tuple[Symmetric, ...]:
    """Pairs of links that mirror each other at the zero position, by the file, in their order.

    In a plane of the base frame through its origin the one link's axis is the other's image, and
    so are its inertials: ``J_right = T J_left T^T`` with pseudo-inertias J and T from the left
    link's frame to its image in the right one's, within a thousandth of the mass and, of moments,
    of mass times radius of gyration and its square. Links without a mass have no image. Of a robot
    whose file is wrong they are as wrong as it.
    """
    frames = place_body_frames(robot)
    found = []
    for left, right in combinations(range(len(robot.links)), 2):
        for plane, axis in PLANES.items():
            mirror = np.eye(4)
            mirror[axis, axis] = -1.0
            image = np.linalg.inv(frames[right]) @ mirror @ frames[left]
            if mirrors_joint(robot, left, right, image) and mirrors_mass(
                robot.nominal[left], robot.nominal[right], image
            ):
                found.append(Symmetric(robot.links[left], robot.links[right], plane))
    return tuple(found)


def mirrors_joint(robot: Robot, left: int, right: int, image: Array) -> bool:
    """Whether a link's joint has its axis where the image of another's is."""
    numbers = [robot.numbers[k] for k in (left, right)]
    if 0 in numbers:
        return False  # a floating base has no joint of its own, and no twin
    one, other = (robot.joints[number - 1] for number in numbers)
    origin = np.zeros(3) if one.kind == "prismatic" else image[:3, 3]  # which slides along any
    across = np.cross(image[:3, :3] @ one.axis, other.axis), np.cross(origin, other.axis)
    return one.kind == other.kind and float(np.max(np.abs(across))) <= ALIKE


def mirrors_mass(left: Array, right: Array, image: Array) -> bool:
    """Whether inertials are the image of others."""
    if min(left[0], right[0]) <= 0.0:
        return False
    J = to_pseudo_inertia(right)
    mass = J[3, 3]
    size = float(np.sqrt(np.trace(J[:3, :3]) / mass))
    unit = np.array([size, size, size, 1.0])
    off = (image @ to_pseudo_inertia(left) @ image.T - J) / np.outer(unit, unit) / mass
    return float(np.max(np.abs(off))) <= ALIKE
