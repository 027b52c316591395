"""What may stand around a robot, and the shapes that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coal
import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.makers import Vector
from dynident.robot.drawing import Shape, build_convex_hull

FARTHEST = 1e4
"""Of any number of an obstacle: beyond it no robot is, and distances are not numbers [m]."""
SMALLEST = 1e-6
"""Of a length of an obstacle [m]."""
FLOOR = "floor"
"""Name of the plane on which the base stands, unless an obstacle is called so."""


def box(size: Vector, at: Vector, rpy: Vector = (0.0, 0.0, 0.0)) -> list[tuple[Shape, Any]]:
    """A box of three lengths [m] with its centre at a place of the base frame, turned [rad]."""
    lengths = check_three_numbers("size", size)
    refuse_outside("size", lengths, SMALLEST)
    return [(coal.Box(*lengths), build_placement(at, rpy))]


def sphere(radius: float, at: Vector) -> list[tuple[Shape, Any]]:
    """A ball [m]."""
    refuse_outside("radius", radius, SMALLEST)
    return [(coal.Sphere(radius), build_placement(at))]


def plane(normal: Vector, offset: float = 0.0) -> list[tuple[Shape, Any]]:
    """All of space where ``normal . x < offset``: a floor, a wall [m]."""
    up = check_three_numbers("normal", normal)
    length = float(np.linalg.norm(up))
    if length <= 0.0:
        raise InputError("obstacle: the normal of a plane is zero")
    refuse_outside("offset", offset / length)
    return [(coal.Halfspace(up / length, offset / length), build_placement((0.0, 0.0, 0.0)))]


def room(lower: Vector, upper: Vector) -> list[tuple[Shape, Any]]:
    """All of space but a box between two corners [m]: what is in it stays in it."""
    low, high = check_three_numbers("lower", lower), check_three_numbers("upper", upper)
    if not np.all(low < high):
        raise InputError("obstacle: a room needs lower below upper")
    walls = []
    for k in range(3):
        e = np.eye(3)[k]
        walls += plane(e, float(low[k])) + plane(-e, float(-high[k]))
    return walls


def mesh(file: str, at: Vector = (0.0, 0.0, 0.0), rpy: Vector = (0.0, 0.0, 0.0)) -> list[Any]:
    """The convex hull of a mesh file."""
    if not Path(file).is_file():
        raise InputError(f"obstacle: there is no mesh {file}")
    try:
        hull = coal.MeshLoader().load(str(file), np.ones(3))
    except (ValueError, RuntimeError) as error:
        raise InputError(f"obstacle: {file}: {str(error).splitlines()[0]}") from error
    corners = np.asarray(hull.vertices(), dtype=float)
    refuse_outside(f"{file}: a corner", corners)
    if len(corners) < 4 or np.linalg.matrix_rank(corners - corners[0], tol=SMALLEST) < 3:
        raise InputError(f"obstacle: {file}: its corners lie in a plane; give a box instead")
    try:
        return [(build_convex_hull(hull), build_placement(at, rpy))]
    except (RuntimeError, ValueError) as error:
        raise InputError(f"obstacle: {file}: no convex hull can be made of it") from error


OBSTACLES: dict[str, Callable[..., list[tuple[Shape, Any]]]] = {
    "box": box,
    "sphere": sphere,
    "plane": plane,
    "room": room,
    "mesh": mesh,
}
"""Makers of shapes with their placements in the base frame, by kind."""


@dataclass(frozen=True)
class Obstacle:
    """An obstacle in the robot's surroundings.

    >>> from dynident.excitation.obstacles import box
    >>> table = di.Obstacle("table", box([1.0, 1.0, 0.1], [0.8, 0.0, -0.5]))

    Attributes
    ----------
    name : str
    shapes : list of (geometry, placement)
        Made by one of `OBSTACLES`.
    links : tuple of str
        Links that have to stay clear of it; by default all that move.
    """

    name: str
    shapes: list[tuple[Shape, Any]]
    links: tuple[str, ...] = ()


def check_three_numbers(label: str, values: Any) -> Array:
    """Three finite numbers."""
    found = np.asarray(values, dtype=float)
    if found.shape != (3,) or not np.all(np.isfinite(found)):
        raise InputError(f"obstacle: {label} takes three numbers")
    refuse_outside(label, found)
    return found


def refuse_outside(label: str, values: Array | float, least: float = -FARTHEST) -> None:
    """Refuse numbers that no robot reaches, and lengths that are none."""
    for value in np.ravel(values):
        if not least <= value <= FARTHEST:
            raise InputError(
                f"obstacle: {label} is {value:g}, but has to be from {least:g} to {FARTHEST:g}"
            )


def build_floor(height: float) -> Obstacle:
    """The plane on which the base stands, across the z axis of the base frame [m]."""
    return Obstacle(FLOOR, plane((0.0, 0.0, 1.0), height))


def build_placement(at: Any, rpy: Any = (0.0, 0.0, 0.0)) -> Any:
    """A frame at a place, turned by roll, pitch and yaw."""
    return pin.SE3(
        pin.rpy.rpyToMatrix(check_three_numbers("rpy", rpy)), check_three_numbers("at", at)
    )
