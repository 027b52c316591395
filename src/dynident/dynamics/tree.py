"""The robot's tree as flat arrays, the form that the kernels read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array, Integers
from dynident.robot.model import Robot

REVOLUTE, PRISMATIC, FREE_FLYER = 0, 1, 2


class Tree(NamedTuple):
    """A robot's bodies in an order where parents come first.

    Attributes
    ----------
    kind : ndarray, shape (bodies,)
        REVOLUTE, PRISMATIC or FREE_FLYER: the joint that moves the body.
    parent : ndarray, shape (bodies,)
        Index of the parent body, -1 for the world.
    row : ndarray, shape (bodies,)
        Index of the joint's (first) velocity.
    rotation : ndarray, shape (bodies, 3, 3, 3)
        ``R(q) = rotation[0] + sin(q) rotation[1] + (1 - cos(q)) rotation[2]`` takes the
        body's frame to its parent's (Rodrigues' formula, the fixed placement included).
    translation, axis : ndarray, shape (bodies, 3)
        Placement of the joint frame in the parent's, axis in the joint frame.
    path : ndarray, shape (bodies, longest path)
        Velocities that move the body, from the root to its own; padded with -1.
    path_length : ndarray, shape (bodies,)
    gravity : ndarray, shape (3,)
    """

    kind: Integers
    parent: Integers
    row: Integers
    rotation: Array
    translation: Array
    axis: Array
    path: Integers
    path_length: Integers
    gravity: Array

    @property
    def bodies(self) -> int:
        """Number of bodies."""
        return len(self.kind)

    @property
    def dof(self) -> int:
        """Number of velocities."""
        return int(self.path.max()) + 1


def build_cross_matrix(v: npt.ArrayLike) -> Array:
    """``[v]x`` with ``[v]x w = v x w``."""
    x, y, z = np.asarray(v, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def build_tree(robot: Robot) -> Tree:
    """Flatten a robot's tree."""
    first = 6 * robot.floating
    base = 0 if robot.floating else -1
    kinds, parents, rows = [], [], []
    rotations, translations, axes = [], [], []
    paths: list[list[int]] = []
    if robot.floating:
        kinds.append(FREE_FLYER)
        parents.append(-1)
        rows.append(0)
        rotations.append(np.zeros((3, 3, 3)))
        translations.append(np.zeros(3))
        axes.append(np.zeros(3))
        paths.append(list(range(6)))
    for number, joint in enumerate(robot.joints, start=1):
        revolute = joint.kind == "revolute"
        cross = build_cross_matrix(joint.axis) if revolute else np.zeros((3, 3))
        kinds.append(REVOLUTE if revolute else PRISMATIC)
        parents.append(joint.parent + base)
        rows.append(first + number - 1)
        rotations.append(joint.rotation @ np.stack([np.eye(3), cross, cross @ cross]))
        translations.append(joint.translation)
        axes.append(joint.axis)
        inherited = paths[joint.parent + base] if joint.parent + base >= 0 else []
        paths.append([*inherited, rows[-1]])
    longest = max(len(p) for p in paths)
    return Tree(
        kind=np.array(kinds),
        parent=np.array(parents),
        row=np.array(rows),
        rotation=np.array(rotations),
        translation=np.array(translations),
        axis=np.array(axes),
        path=np.array([p + [-1] * (longest - len(p)) for p in paths]),
        path_length=np.array([len(p) for p in paths]),
        gravity=np.array(robot.gravity, dtype=float),  # a copy: kernels know one type
    )
