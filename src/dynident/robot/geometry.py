"""The shapes that a URDF gives a body, as points whose convex hull contains them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lxml import etree

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.text import suggest_nearest
from dynident.robot.model import HUGE, Robot
from dynident.robot.urdf import capture_library_messages, parse_xml

if TYPE_CHECKING:
    import pinocchio as pin

SIDES = 10
"""Sides of the polygon around a circle: with its two ends a cylinder has twelve facets."""
LATITUDES = np.pi / 12.0 * np.array([-5.0, -3.0, -1.0, 1.0, 3.0, 5.0])
"""Corners of the polygon of twelve sides around a meridian [rad]."""
SCHEMES = ("package://", "model://")

Shape = Any
"""A geometry of coal, which has no types."""


def load_link_points(robot: Robot, link: str) -> Array:
    """Points whose convex hull contains a body, as its URDF draws it.

    Vertices of meshes, corners of boxes, and corners of polyhedra around spheres,
    cylinders and capsules. Each link of the file is taken by its collision geometry, or
    by its visual one where it has no other.

    Parameters
    ----------
    link : str
        A body of the robot. What is fixed to it is part of it, as are links behind locked
        joints.

    Returns
    -------
    ndarray, shape (points, 3)
        In the body's joint frame [m].
    """
    import pinocchio as pin

    if link not in robot.links:
        raise InputError(
            f"{robot.name}: there is no link {link!r}{suggest_nearest(link, robot.links)}"
        )
    advice = f"so the shape of {link} is not known; give the points of its hull"
    path, root, model, carriers = load_urdf_model(robot, advice)
    body = list_moving_joints(carriers)[robot.links.index(link)]
    members = {
        frame.name
        for frame in model.frames
        if frame.type == pin.FrameType.BODY and carriers[frame.parentJoint] == body
    }
    keep_geometry(root, members, path)
    placements = place_joints(model, robot)
    clouds = [
        place_shape_points(
            placements[body].actInv(placements[shape.parentJoint] * shape.placement), shape
        )
        for shape in read_shapes(model, root, path)
    ]
    if not clouds:
        raise InputError(
            f"{path}: link {link!r} has neither collision nor visual geometry; give the points "
            "of its hull"
        )
    points = np.vstack(clouds)
    if not np.all(np.abs(points) < HUGE):
        raise InputError(
            f"{path}: the geometry of link {link!r} has a corner that is no finite number; repair "
            "its mesh, or give the points of its hull"
        )
    return points


def locate_frame(robot: Robot, name: str) -> tuple[str, Array, Array]:
    """Which body a frame of the robot's file is fixed to, and where on it.

    Parameters
    ----------
    name : str
        Of a link or a fixed joint.

    Returns
    -------
    link : str
        The body.
    rotation, translation : ndarray, shapes (3, 3) and (3,)
        Of the frame in the body's joint frame [m].
    """
    if name in robot.links:
        return name, np.eye(3), np.zeros(3)
    _, _, model, carriers = load_urdf_model(robot, f"so the place of frame {name!r} is not known")
    moving = list_moving_joints(carriers)
    frames = {f.name: f for f in model.frames if carriers[f.parentJoint] in moving}
    if name not in frames:
        raise InputError(
            f"{robot.name}: there is no moving frame {name!r}{suggest_nearest(name, frames)}"
        )
    frame = frames[name]
    body = carriers[frame.parentJoint]
    placements = place_joints(model, robot)
    found = placements[body].actInv(placements[frame.parentJoint] * frame.placement)
    link = robot.links[moving.index(body)]
    return link, np.array(found.rotation), np.array(found.translation)


def read_disabled_pairs(path: Path) -> tuple[tuple[str, str], ...]:
    """Pairs of links that an SRDF says never collide, or may."""
    root = parse_xml(path).getroot()
    if root.tag != "robot":
        raise InputError(f"{path}: is no SRDF, its root is <{root.tag}> instead of <robot>")
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


def load_urdf_model(robot: Robot, advice: str) -> tuple[Path, etree._Element, pin.Model, list[int]]:
    """The robot's URDF as the library reads it.

    Parameters
    ----------
    advice : str
        What follows from there being none.

    Returns
    -------
    path : Path
    root : element
        Of the file, as it is now.
    model : pin.Model
        With all joints, locked ones too.
    carriers : list of int
        For each of its joints the one that moves what it carries.
    """
    import pinocchio as pin

    path = robot.source
    root = None if path is None or path.suffix.lower() == ".toml" else parse_xml(path).getroot()
    if path is None or root is None or root.tag == "mujoco":
        raise InputError(f"{robot.name}: the robot has no URDF, {advice}")
    free = (pin.JointModelFreeFlyer(),) if robot.floating else ()
    with capture_library_messages():
        try:
            model = pin.buildModelFromXML(etree.tostring(root, encoding="unicode"), *free)
        except (ValueError, RuntimeError) as error:
            raise InputError(f"{path}: {str(error).splitlines()[0]}") from error
    carriers = [find_carrier(model, robot, joint) for joint in range(model.njoints)]
    names = [model.names[j] for j in list_moving_joints(carriers)[int(robot.floating) :]]
    if names != list(robot.joint_names) or not set(robot.locked) <= set(model.names):
        raise InputError(f"{path}: its joints are no longer those of the robot; read it again")
    return path, root, model, carriers


def list_moving_joints(carriers: list[int]) -> list[int]:
    """Joints of the model that move bodies, in the bodies' order, after the universe."""
    return [j for j in range(1, len(carriers)) if carriers[j] == j]


def find_carrier(model: pin.Model, robot: Robot, joint: int) -> int:
    """The joint that moves what a joint carries: itself, or the first that is not locked."""
    while model.names[joint] in robot.locked:
        joint = int(model.parents[joint])
    return joint


def place_joints(model: pin.Model, robot: Robot) -> list[pin.SE3]:
    """Placements of all joints in the base frame, locked ones at their values."""
    import pinocchio as pin

    data = model.createData()
    pin.forwardKinematics(model, data, build_locked_configuration(model, robot))
    return list(data.oMi)


def build_locked_configuration(model: pin.Model, robot: Robot) -> Array:
    """The model's configuration with all joints at zero, but for the locked ones."""
    import pinocchio as pin

    q = np.asarray(pin.neutral(model))
    for name, value in robot.locked.items():
        joint = model.joints[model.getJointId(name)]
        # continuous joints are (cos, sin)
        q[joint.idx_q : joint.idx_q + joint.nq] = (
            value if joint.nq == 1 else (np.cos(value), np.sin(value))
        )
    return q


def keep_geometry(root: etree._Element, members: set[str], path: Path) -> None:
    """Leave one kind of geometry of some links, its meshes with their paths, and no other.

    What is not asked for is not loaded, so that its meshes may be missing.

    Parameters
    ----------
    root : element
        The URDF's, changed in place.
    members : set of str
        The links.
    path : Path
        The URDF.
    """
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
    """Where a mesh is.

    Parameters
    ----------
    name : str
        As the URDF has it: ``package://name/...``, ``file://...``, or a path, which is
        relative to the URDF. A package is a folder with its name in one of the URDF's
        parents, or in one of ROS_PACKAGE_PATH.
    path : Path
        The URDF.
    place : str
        Where it says so, for messages.
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
    import pinocchio as pin

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
        told = [line.removeprefix("Error:") for line in said if line.startswith("Error:")]
        reason = told[0] if told else f"{drawn - len(found)} shapes are of no known kind"
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


def surround_capsule(capsule: Shape) -> Array:
    """A polyhedron around a cylinder along z with half spheres on its ends."""
    radius = capsule.radius / np.cos(np.pi / 12.0)
    ends = capsule.halfLength * np.sign(LATITUDES)
    return revolve_profile(radius * np.cos(LATITUDES), radius * np.sin(LATITUDES) + ends)


def surround_sphere(sphere: Shape) -> Array:
    """A polyhedron around a sphere."""
    radius = sphere.radius / np.cos(np.pi / 12.0)
    return revolve_profile(radius * np.cos(LATITUDES), radius * np.sin(LATITUDES))


def revolve_profile(radii: Array, heights: Array) -> Array:
    """Corners of a polyhedron around a solid of revolution about z.

    Parameters
    ----------
    radii, heights : ndarray, shape (corners,)
        Corners of its convex profile [m].

    Returns
    -------
    ndarray, shape (corners * SIDES, 3)
        Polygons whose sides touch the circles of the profile's corners from outside.
    """
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
    "Capsule": surround_capsule,
    "Sphere": surround_sphere,
    "Convex": lambda mesh: np.array(mesh.points()),
    "BVHModel": lambda mesh: np.array(mesh.vertices()),
}
"""Points around a shape, by the beginning of the name that Pinocchio's coal has for it."""
