"""Identified parameters as a USD of an articulation, in text.

Bodies, joints and drives are those of the schema UsdPhysics; armature, viscous and dry friction
of joints are ``NewtonJointAPI`` of newton-usd-schemas, which Newton reads, and PhysX where these
schemas are known; joints that follow others are its ``NewtonMimicAPI``. Angles are degrees there,
stiffness and damping by degrees too; lengths are metres, masses kilograms. Numbers are single
precision once read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.inertia import to_com
from dynident.dynamics.idim import Idim
from dynident.export.drives import JointDrive, describe_left_drives, list_drives
from dynident.export.exported import (
    check_bodies,
    describe_gravity,
    format_exact_number,
    list_followers,
)
from dynident.export.sdf import SHAPELESS
from dynident.export.servo import Servo
from dynident.robot.model import Robot
from dynident.robot.rotations import turn_z_to

DEGREE = np.pi / 180.0
JOINTS = "joints"
"""What they stand under."""
HELD_MASS = 1.0
"""Of the base of a fixed robot, which never moves [kg]."""


def render_usd(
    idim: Idim, theta: Array, folder: object, width: object, servos: Sequence[Servo]
) -> tuple[bytes, tuple[str, ...]]:
    """The USD of standard parameters; parameters and returns are those of `Render`.

    Raises
    ------
    ComputationError
        For a link without mass, to which an engine would give one.
    InputError
        For a joint that turns and follows one that slides, or the other way round.
    """
    idim, theta = idim.without_sensors(theta)
    robot = idim.robot
    phi = check_bodies(robot, idim.split(theta)[0], "USD")
    drives = list_drives(idim, theta, servos)
    moved = tuple(joint.link for joint in robot.joints)
    scope, *prims = name_prims((JOINTS, robot.base_link, *moved))
    joints = name_prims(robot.joint_names)
    (root,) = name_prims([robot.name])
    named = zip(robot.joint_names, joints, strict=True)
    places = place_links(robot)
    never_moved = [HELD_MASS, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    bodies = phi if robot.floating else np.vstack([never_moved, phi])
    links = [
        render_link(name, prim, body, place)
        for name, prim, body, place in zip(
            (robot.base_link, *moved), prims, bodies, places, strict=True
        )
    ]
    on_base = [f"rel physics:body1 = </{root}/{prims[0]}>"]
    fixed = render_prim("PhysicsFixedJoint", "fixed_to_world", (), on_base)
    held = [] if robot.floating else [fixed]
    mimics = render_mimics(robot, {n: f"/{root}/{scope}/{p}" for n, p in named})
    turned = [
        render_joint(
            drive,
            name,
            f"/{root}/{prims[drive.joint.parent]}",
            f"/{root}/{prims[k]}",
            mimics.get(drive.joint.name, ()),
        )
        for k, (drive, name) in enumerate(zip(drives, joints, strict=True), 1)
    ]
    inner = render_prim("Scope", scope, (), [*held, *turned])
    applied = ("PhysicsArticulationRootAPI",)
    head = (
        f'#usda 1.0\n(\n    defaultPrim = "{root}"\n    kilogramsPerUnit = 1\n'
        '    metersPerUnit = 1\n    upAxis = "Z"\n)\n\n'
    )
    text = head + render_prim("Xform", root, applied, [*links, inner])
    left = describe_left_drives(idim, "USD")
    notes = [SHAPELESS, *describe_gravity(robot), *left]
    if not robot.floating:
        notes.append(f"the base is held by the world: its mass of {HELD_MASS:g} kg means nothing")
    own = (robot.base_link, *moved, *robot.joint_names)
    pairs = zip(own, (*prims, *joints), strict=True)
    changed = [f"{name} is {prim}" for name, prim in pairs if name != prim]
    if changed:
        notes.append(f"names of USD are identifiers: {', '.join(changed)}")
    return text.encode(), tuple(notes)


def name_prims(names: Sequence[str]) -> tuple[str, ...]:
    """Names as identifiers, each another."""
    found: list[str] = []
    for name in names:
        own = re.sub(r"\W", "_", name, flags=re.ASCII)
        own = own if re.match(r"[A-Za-z_]", own) else f"_{own}"
        while own in found:
            own += "_"
        found.append(own)
    return tuple(found)


def place_links(robot: Robot) -> list[tuple[Array, Array]]:
    """Rotation and translation of the base and of each link, at q = 0 in the base's frame."""
    found = [(np.eye(3), np.zeros(3))]
    for joint in robot.joints:
        turn, shift = found[joint.parent]
        found.append((turn @ joint.rotation, turn @ joint.translation + shift))
    return found


def render_prim(kind: str, name: str, applied: Sequence[str], lines: Iterable[str]) -> str:
    """A prim with its schemas and, indented, what is in it."""
    schemas = ", ".join(f'"{schema}"' for schema in applied)
    head = f" (\n    prepend apiSchemas = [{schemas}]\n)" if applied else ""
    inner = "".join(
        f"    {line}\n" if line else "\n" for text in lines for line in text.splitlines()
    )
    return f'def {kind} "{name}"{head}\n{{\n{inner}}}\n'


def render_link(name: str, prim: str, phi: Array, place: tuple[Array, Array]) -> str:
    """A rigid body with its mass, its centre and its principal inertia."""
    if phi[0] == 0.0:
        raise ComputationError(
            f"link {name}: has no mass, and USD gives a body without one its own"
        )
    mass, com, inertia = to_com(phi)
    moments, axes = np.linalg.eigh(inertia)
    axes = axes * np.sign(np.linalg.det(axes))
    turn, shift = place
    lines = [
        f"float physics:mass = {format_exact_number(mass)}",
        f"point3f physics:centerOfMass = {format_tuple(com)}",
        f"float3 physics:diagonalInertia = {format_tuple(moments)}",
        f"quatf physics:principalAxes = {format_quaternion(axes)}",
        f"double3 xformOp:translate = {format_tuple(shift)}",
        f"quatd xformOp:orient = {format_quaternion(turn)}",
        'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]',
    ]
    return render_prim("Xform", prim, ("PhysicsRigidBodyAPI", "PhysicsMassAPI"), lines)


def render_mimics(robot: Robot, paths: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """What joints that follow another have of that, by name."""
    kinds = {joint.name: joint.kind for joint in robot.joints}
    found: dict[str, tuple[str, ...]] = {}
    for name, (leader, offset, ratio) in list_followers(robot).items():
        if kinds[name] != kinds[leader]:
            raise InputError(f"{name}: is {kinds[name]} and follows {leader}, as no joint of a USD")
        unit = 1.0 / DEGREE if kinds[name] == "revolute" else 1.0
        found[name] = (
            f"rel newton:mimicJoint = <{paths[leader]}>",
            f"float newton:mimicCoef0 = {format_exact_number(offset * unit)}",
            f"float newton:mimicCoef1 = {format_exact_number(ratio)}",
        )
    return found


def render_joint(
    drive: JointDrive, name: str, parent: str, child: str, mimic: Sequence[str] = ()
) -> str:
    """A joint about the z axis of its own frame, with its drive or what it follows."""
    joint = drive.joint
    turns = joint.kind == "revolute"
    unit = 1.0 / DEGREE if turns else 1.0
    frame = turn_z_to(joint.axis)
    lines = [
        'uniform token physics:axis = "Z"',
        f"rel physics:body0 = <{parent}>",
        f"rel physics:body1 = <{child}>",
        f"point3f physics:localPos0 = {format_tuple(joint.translation)}",
        f"quatf physics:localRot0 = {format_quaternion(joint.rotation @ frame)}",
        "point3f physics:localPos1 = (0.0, 0.0, 0.0)",
        f"quatf physics:localRot1 = {format_quaternion(frame)}",
    ]
    for end, value in {"lowerLimit": joint.lower, "upperLimit": joint.upper}.items():
        if np.isfinite(value):
            lines.append(f"float physics:{end} = {format_exact_number(value * unit)}")
    passive = {"armature": drive.armature, "friction": drive.dry}
    if drive.viscous is not None:
        passive["damping"] = drive.viscous / unit
    if np.isfinite(joint.velocity):
        passive["velocityLimit"] = joint.velocity * unit
    lines += [
        f"float newton:{key} = {format_exact_number(value)}"
        for key, value in passive.items()
        if value is not None
    ]
    applied = ["NewtonJointAPI"]
    axis = "angular" if turns else "linear"
    law = {}
    if drive.servo is not None:
        law = {"stiffness": drive.servo.kp / unit, "damping": drive.servo.kv / unit}
    if np.isfinite(drive.effort):
        law["maxForce"] = drive.effort
    if mimic:  # no drive of its own moves it
        applied.append("NewtonMimicAPI")
        lines += mimic
    elif law:
        applied.append(f"PhysicsDriveAPI:{axis}")
        lines.append(f'uniform token drive:{axis}:physics:type = "force"')
        lines += [
            f"float drive:{axis}:physics:{key} = {format_exact_number(value)}"
            for key, value in law.items()
        ]
    kind = "PhysicsRevoluteJoint" if turns else "PhysicsPrismaticJoint"
    return render_prim(kind, name, applied, lines)


def format_tuple(values: Iterable[float]) -> str:
    """Numbers between brackets."""
    return f"({', '.join(format_exact_number(value) for value in values)})"


def format_quaternion(rotation: Array) -> str:
    """w, x, y, z."""
    x, y, z, w = pin.Quaternion(np.asarray(rotation)).normalized().coeffs()
    return format_tuple((w, x, y, z))
