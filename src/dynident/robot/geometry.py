"""The shapes that a URDF gives a body, as points whose convex hull contains them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from lxml import etree

from dynident.core.arrays import Array, freeze_array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.library_messages import capture_library_messages
from dynident.robot.model import HUGE, Robot
from dynident.robot.urdf import build_pinocchio_model, list_library_errors, parse_xml

SIDES = 10
"""Sides of the polygon around a circle: with its two ends a cylinder has twelve facets."""
LATITUDES = np.pi / 12.0 * np.array([-5.0, -3.0, -1.0, 1.0, 3.0, 5.0])
"""Corners of the polygon of twelve sides around a meridian [rad]."""
SCHEMES = ("package://", "model://")

Shape = Any
"""A geometry of coal, which has no types."""


def load_link_points(robot: Robot, link: str) -> Array:
    """Points whose convex hull contains a body, as its URDF draws it, shape (points, 3).

    Vertices of meshes, corners of boxes, and corners of polyhedra around spheres, cylinders and
    capsules, in the body's joint frame [m]. Each link of the file is taken by its collision
    geometry, or by its visual one where it has no other; what is fixed to the body, or behind
    locked joints, is part of it.
    """
    refuse_unknown(link, robot.links, f"{robot.name}: there is no link {link!r}")
    if link in robot.links[robot.bodies :]:
        raise InputError(
            f"{robot.name}: {link!r} is the part of a body that a sensor holds, whose shape is not "
            "separated from the whole's; give the points of its hull"
        )
    advice = f"so the shape of {link} is not known; give the points of its hull"
    urdf = load_urdf_model(robot, advice)
    path, body = urdf.path, urdf.moving[robot.links.index(link)]
    members = {each for each, f in urdf.links.items() if urdf.carriers[f.parentJoint] == body}
    clouds = [place_shape_points(urdf.place(shape), shape) for shape in urdf.read_shapes(members)]
    if not clouds:
        raise InputError(
            f"{path}: link {link!r} has neither collision nor visual geometry; give the points "
            "of its hull"
        )
    points = np.vstack(clouds)
    if not np.all(np.abs(points) < HUGE):
        raise InputError(
            f"{path}: the geometry of link {link!r} has a corner that is not a finite number; "
            "repair its mesh, or give the points of its hull"
        )
    return points


def locate_frame(robot: Robot, name: str) -> tuple[str, Array, Array]:
    """Which body a link or a fixed joint of the robot's file is on, and where.

    That is the rotation (3, 3) and the translation (3,) [m] of its frame in the body's.
    """
    if name in robot.links:
        return name, np.eye(3), np.zeros(3)
    urdf = load_urdf_model(robot, f"so the place of frame {name!r} is not known")
    frames = {f.name: f for f in urdf.model.frames if urdf.carriers[f.parentJoint] in urdf.moving}
    refuse_unknown(name, frames, f"{robot.name}: there is no moving frame {name!r}")
    found = urdf.place(frames[name])
    body = urdf.moving.index(urdf.carriers[frames[name].parentJoint])
    return robot.links[body], np.array(found.rotation), np.array(found.translation)


def read_disabled_pairs(path: Path) -> tuple[tuple[str, str], ...]:
    """Pairs of links that an SRDF says never collide, or may."""
    root = parse_xml(path).getroot()
    if root.tag != "robot":
        raise InputError(f"{path}: is not SRDF, its root is <{root.tag}> instead of <robot>")
    pairs = []
    for element in root.iterfind("disable_collisions"):
        pair = element.get("link1"), element.get("link2")
        if pair[0] is None or pair[1] is None:
            raise InputError(
                f"{path}, line {element.sourceline}: disable_collisions takes link1 and link2"
            )
        pairs.append((pair[0], pair[1]))
    if not pairs:
        raise InputError(f"{path}: has no <disable_collisions>; is it an SRDF?")
    return tuple(pairs)


@dataclass(frozen=True)
class UrdfModel:
    """A robot's URDF as the library reads it, with all joints, locked ones at their values."""

    path: Path
    root: etree._Element
    """Of the file, as it is now."""
    model: pin.Model
    placements: list[pin.SE3]
    """Of all joints in the base frame."""
    carriers: list[int]
    """For each joint the one that moves what it carries: itself, or the first that is not
    locked."""
    moving: list[int]
    """Joints that move the robot's bodies, in the bodies' order."""

    @property
    def links(self) -> dict[str, pin.Frame]:
        """Frames of links by name."""
        return {each.name: each for each in self.model.frames if each.type == pin.FrameType.BODY}

    @property
    def frames(self) -> dict[str, int]:
        """Frames of links and fixed joints by name."""
        moved = set(self.model.names)
        return {f.name: k for k, f in enumerate(self.model.frames) if f.name not in moved}

    def place(self, item: pin.Frame | pin.GeometryObject) -> pin.SE3:
        """Placement of a frame or a shape in that of the joint that carries it."""
        joint = item.parentJoint
        carrier = self.placements[self.carriers[joint]]
        return carrier.actInv(self.placements[joint] * item.placement)

    def read_shapes(self, links: Collection[str]) -> list[pin.GeometryObject]:
        """What the file draws of some links: collision geometry, or visual one without.

        What is not asked for is not loaded, so that its meshes may be missing.
        """
        keep_geometry(self.root, links, self.path)
        return read_shapes(self.model, self.root, self.path)


def load_urdf_model(robot: Robot, advice: str) -> UrdfModel:
    """The robot's URDF; the advice is what follows from there being none."""
    path = robot.source
    root = None if path is None or path.suffix.lower() == ".toml" else parse_xml(path).getroot()
    if path is None or root is None or root.tag == "mujoco":
        raise InputError(f"{robot.name}: the robot has no URDF, {advice}")
    model = build_pinocchio_model(root, path, robot.floating)
    carriers: list[int] = []
    for joint in range(model.njoints):  # parents come first
        locked = model.names[joint] in robot.locked
        carriers.append(carriers[model.parents[joint]] if locked else joint)
    moving = [joint for joint in range(1, model.njoints) if carriers[joint] == joint]
    names = [model.names[joint] for joint in moving[int(robot.floating) :]]
    if names != list(robot.joint_names) or not set(robot.locked) <= set(model.names):
        raise InputError(f"{path}: its joints are no longer those of the robot; read it again")
    data = model.createData()
    pin.forwardKinematics(model, data, build_locked_configuration(model, robot))
    return UrdfModel(path, root, model, list(data.oMi), carriers, moving)


def freeze_placement(placement: pin.SE3) -> tuple[Array, Array]:
    """Rotation and translation that nobody can change."""
    return freeze_array(placement.rotation), freeze_array(placement.translation)


def build_locked_configuration(model: pin.Model, robot: Robot) -> Array:
    """The model's configuration with all joints at zero, but for the locked ones."""
    q = np.asarray(pin.neutral(model))
    for name, value in robot.locked.items():
        joint = model.joints[model.getJointId(name)]
        # continuous joints are (cos, sin)
        q[joint.idx_q : joint.idx_q + joint.nq] = (
            value if joint.nq == 1 else (np.cos(value), np.sin(value))
        )
    return q


def keep_geometry(root: etree._Element, members: Collection[str], path: Path) -> None:
    """Leave one kind of geometry of some links in a URDF, its meshes with their paths, no other."""
    for link in root.iterchildren("link"):
        collisions, visuals = link.findall("collision"), link.findall("visual")
        if link.get("name") not in members:
            dropped = [*collisions, *visuals]
        else:
            dropped = visuals if collisions else []
        for element in dropped:
            link.remove(element)
        for mesh in link.iterfind("*/geometry/mesh"):
            place = f"{path}, line {mesh.sourceline}"
            mesh.set("filename", str(find_mesh_file(mesh.get("filename", ""), path, place)))


def find_mesh_file(name: str, path: Path, place: str) -> Path:
    """Where a mesh is: ``package://name/...``, ``file://...``, or a path relative to the URDF.

    A package is a folder with its name in one of the URDF's parents, or in one of
    ROS_PACKAGE_PATH.
    """
    folders = [path.resolve().parent]
    tail, advice = name.removeprefix("file://"), ""
    for scheme in SCHEMES:
        if name.startswith(scheme):
            tail = name.removeprefix(scheme).lstrip("/")
            extra = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
            folders = [*path.resolve().parents, *(Path(folder) for folder in extra if folder)]
            advice = (
                f"; put the package {tail.split('/')[0]} into a folder above the URDF, or name "
                "the folder that has it in ROS_PACKAGE_PATH"
            )
    for folder in folders:
        if (folder / tail).is_file():
            return folder / tail
    raise InputError(f"{place}: there is no mesh {name!r}{advice}")


def read_shapes(model: pin.Model, root: etree._Element, path: Path) -> list[pin.GeometryObject]:
    """Everything that a URDF draws, on the joints of a model."""
    text = etree.tostring(root, encoding="unicode")
    found: list[pin.GeometryObject] = []
    reason = ""
    with capture_library_messages() as said:
        try:
            for kind in (pin.GeometryType.COLLISION, pin.GeometryType.VISUAL):
                geometry = pin.buildGeomFromUrdfString(model, text, kind)
                found += list(geometry.geometryObjects)
        except (ValueError, RuntimeError) as error:
            reason = str(error).split("message:")[-1]
    drawn = len(root.findall("link/collision")) + len(root.findall("link/visual"))
    if not reason and len(found) < drawn:
        # the library leaves out what it does not know; the hull would be too small
        unknown = f"{drawn - len(found)} shapes are of unknown kind"
        reason = next(list_library_errors(said), unknown)
    if reason:
        raise InputError(f"{path}: its geometry cannot be read: {' '.join(reason.split())}")
    return found


def place_shape_points(placement: pin.SE3, shape: pin.GeometryObject) -> Array:
    """Points around a shape, in the frame that it is placed in."""
    points = surround_shape(shape.geometry, shape.name)
    with np.errstate(invalid="ignore", over="ignore"):  # of meshes that are refused thereafter
        return np.asarray(points @ placement.rotation.T + placement.translation)


def surround_shape(shape: Shape, name: str) -> Array:
    """Points whose convex hull contains a shape, in the shape's own frame [m]."""
    kind = type(shape).__name__
    for prefix, points in SHAPES.items():
        if kind.startswith(prefix):
            return points(shape)
    raise InputError(
        f"geometry {name}: a shape of kind {kind} is not known; give the points of its hull"
    )


def surround_box(box: Shape) -> Array:
    """The eight corners."""
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
    return np.asarray(signs * box.halfSide)


def surround_cylinder(cylinder: Shape) -> Array:
    """A prism around a cylinder along z."""
    return revolve_profile(np.full(2, cylinder.radius), cylinder.halfLength * np.array([-1.0, 1.0]))


def surround_round(shape: Shape, half: float) -> Array:
    """A polyhedron around a sphere, or the half spheres on the ends of a cylinder along z."""
    radius = shape.radius / np.cos(np.pi / 12.0)
    ends = half * np.sign(LATITUDES)
    return revolve_profile(radius * np.cos(LATITUDES), radius * np.sin(LATITUDES) + ends)


def revolve_profile(radii: Array, heights: Array) -> Array:
    """Polygons whose sides touch the circles of a profile's corners about z from outside."""
    return sample_circles(radii / np.cos(np.pi / SIDES), heights, SIDES)


def sample_circles(radii: Array, heights: Array, points: int) -> Array:
    """Points on circles about z, shape (circles * points, 3)."""
    turns = 2.0 * np.pi * np.arange(points) / points
    circle = np.column_stack([np.cos(turns), np.sin(turns)])
    return np.vstack(
        [np.column_stack([r * circle, np.full(points, z)]) for r, z in zip(radii, heights)]
    )


SHAPES: dict[str, Callable[..., Array]] = {
    "Box": surround_box,
    "Cylinder": surround_cylinder,
    "Capsule": lambda capsule: surround_round(capsule, capsule.halfLength),
    "Sphere": lambda sphere: surround_round(sphere, 0.0),
    "Convex": lambda mesh: np.array(mesh.points()),
    "BVHModel": lambda mesh: np.array(mesh.vertices()),
}
"""Points around a shape, by the beginning of the name that Pinocchio's coal has for it."""
