"""The robot's tree as flat arrays, the form that the kernels read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.robot.model import Robot
from dynident.robot.rotations import expand_turn

REVOLUTE, PRISMATIC, FREE_FLYER = 0, 1, 2


class Tree(NamedTuple):
    """A robot's bodies in an order where parents come first."""

    kind: Integers
    """Shape (bodies,). REVOLUTE, PRISMATIC or FREE_FLYER: the joint that moves the body."""
    parent: Integers
    """Index of the parent body, -1 for the world, shape (bodies,)."""
    row: Integers
    """Index of the joint's (first) velocity, shape (bodies,)."""
    rotation: Array
    """``R(q) = rotation[0] + sin(q) rotation[1] + (1 - cos(q)) rotation[2]`` takes the body's frame
    to its parent's (Rodrigues' formula, the fixed placement included), shape (bodies, 3, 3, 3)."""
    translation: Array
    axis: Array
    """`translation`, `axis`: placement of the joint frame in the parent's, axis in the joint frame,
    shape (bodies, 3)."""
    path: Integers
    """Shape (bodies, longest path). Velocities that move the body, from the root to its own; padded
    with -1."""
    path_length: Integers
    """Shape (bodies,)."""
    gravity: Array
    """Shape (3,)."""

    @property
    def bodies(self) -> int:
        """Number of bodies."""
        return len(self.kind)

    @property
    def dof(self) -> int:
        """Number of velocities."""
        return int(self.path.max()) + 1


def build_tree(robot: Robot) -> Tree:
    """Flatten a robot's tree."""
    base, still = int(robot.floating) - 1, np.zeros(3)
    bodies: list[tuple[int, int, int, Array, Array, Array, tuple[int, ...]]] = []
    if robot.floating:
        bodies.append((FREE_FLYER, -1, 0, np.zeros((3, 3, 3)), still, still, (*range(6),)))
    for row, joint in enumerate(robot.joints, start=6 * robot.floating):
        parent, revolute = joint.parent + base, joint.kind == "revolute"
        rotation = joint.rotation @ expand_turn(joint.axis if revolute else still)
        path = (*(bodies[parent][-1] if parent >= 0 else ()), row)
        kind = REVOLUTE if revolute else PRISMATIC
        bodies.append((kind, parent, row, rotation, joint.translation, joint.axis, path))
    kinds, parents, rows, rotations, translations, axes, paths = zip(*bodies, strict=True)
    lengths = [len(path) for path in paths]
    padded = [[*path, *[-1] * (max(lengths) - len(path))] for path in paths]
    return Tree(
        np.array(kinds),
        np.array(parents),
        np.array(rows),
        np.array(rotations),
        np.array(translations),
        np.array(axes),
        np.array(padded),
        np.array(lengths),
        np.array(robot.gravity, dtype=float),  # a copy: kernels know one type
    )
