"""The shapes that a robot's file draws, as convex hulls on its bodies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from dynident.core.errors import InputError
from dynident.robot.geometry import load_urdf_model, place_shape_points, read_disabled_pairs
from dynident.robot.model import Robot

Shape = Any
"""A geometry of coal, which has no types."""


@dataclass(frozen=True)
class RobotDrawing:
    """The shapes that a robot's file draws, as hulls."""

    path: Path
    model: Any
    geometry: Any
    """`model`, `geometry`: the geometry grows by what stands around the robot."""
    moving: list[int]
    """Joints of the model that move the robot's links."""
    links: set[str]
    """All of the file."""
    names: list[str]
    """Of the link of each shape."""
    owner: list[int]
    """Index of the body that each is on, -1 for the base."""
    radius: list[float]
    """How far each reaches from the joint of that body [m]."""
    bottom: float = 0.0
    """Lowest point of what stands still, in the base frame; 0 where nothing is lower [m]."""


def build_drawing(robot: Robot) -> RobotDrawing:
    """The shapes of a robot."""
    advice = "so nothing is known of its shape; go without collisions (--no-collision)"
    urdf = load_urdf_model(robot, advice)
    path, model, links = urdf.path, urdf.model, urdf.links
    try:
        found = urdf.read_shapes(links)
    except InputError as error:
        raise InputError(f"{error}; or go without collisions (--no-collision)") from error
    if not found:
        raise InputError(f"{path}: no link has any geometry, {advice}")
    first, bottom = int(robot.floating), 0.0
    drawing = RobotDrawing(path, model, pin.GeometryModel(), urdf.moving, set(links), [], [], [])
    for each in found:
        joint = urdf.carriers[each.parentJoint]
        points = place_shape_points(urdf.place(each), each)
        try:
            each.geometry = build_convex_hull(each.geometry)
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"{path}: no convex hull can be made of {each.name}, {advice}"
            ) from error
        drawing.geometry.addGeometryObject(each)
        drawing.owner.append(urdf.moving.index(joint) - first if joint else -1)
        if not joint:
            bottom = min(bottom, float(points[:, 2].min()))
        drawing.names.append(model.frames[each.parentFrame].name)
        drawing.radius.append(float(np.max(np.linalg.norm(points, axis=1))))
    return replace(drawing, bottom=bottom)


def find_unwatched_pairs(srdf: Path, drawing: RobotDrawing) -> set[frozenset[str]]:
    """Pairs of links that an SRDF does not watch."""
    disabled = {frozenset(pair) for pair in read_disabled_pairs(srdf)}
    if not any(pair <= drawing.links for pair in disabled):
        raise InputError(f"{srdf}: none of the links that it names are those of {drawing.path}")
    return disabled


def build_convex_hull(shape: Shape) -> Shape:
    """The convex hull of a mesh; other shapes as they are."""
    if type(shape).__name__.startswith("BVHModel"):
        shape.buildConvexHull(True, "Qt")
        return shape.convex
    return shape
