"""Identified parameters as SDFormat, with the rotors that Drake reads from it.

Bodies and joints alone. ``<drake:rotor_inertia>`` and ``<drake:gear_ratio>`` of a joint are those
of Drake's parser (`multibody/parsing/detail_sdf_parser.cc`); since Ia is what the joint feels,
the ratio is 1, and ``<drake:mimic>`` what ``<mimic>`` of SDFormat 1.11 is. Poses are relative to
the frames that they are in: a joint's to the link before it, a link's to its joint.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from lxml import etree

from dynident.core.arrays import Array
from dynident.core.inertia import to_com
from dynident.dynamics.idim import Idim
from dynident.export.drives import JointDrive, describe_left_drives, list_drives
from dynident.export.exported import (
    check_bodies,
    describe_gravity,
    format_exact_number,
    format_exact_numbers,
    list_followers,
    name_base,
)
from dynident.export.urdf import ENTRIES
from dynident.robot.mjcf import WORLD
from dynident.robot.model import Robot

DRAKE = "http://drake.mit.edu"
UNLIMITED = "-1"
"""An effort or a speed without a limit."""
SHAPELESS = "it has bodies and joints alone, no shapes and no links that are fixed to others"


def render_sdf(idim: Idim, theta: Array, *_: object) -> tuple[bytes, tuple[str, ...]]:
    """The SDF of standard parameters; parameters and returns are those of `Render`.

    The base of a fixed robot is a link without inertia that a fixed joint holds in the world.
    """
    idim, theta = idim.without_sensors(theta)
    robot = idim.robot
    phi = dict(zip(robot.links, check_bodies(robot, idim.split(theta)[0], "SDF"), strict=True))
    followers = list_followers(robot)
    version = "1.11" if followers else "1.9"
    root = etree.Element("sdf", {"version": version}, {"drake": DRAKE})
    model = etree.SubElement(root, "model", name=robot.name)
    names = name_links(robot)
    base = etree.SubElement(model, "link", name=names[0])
    if robot.floating:
        base.append(build_inertial(phi[robot.base_link]))
    else:
        fixed = etree.SubElement(model, "joint", name="fixed_to_world", type="fixed")
        add_texts(fixed, {"parent": WORLD, "child": names[0]})
    drives = list_drives(idim, theta, ())
    for drive, name in zip(drives, names[1:], strict=True):
        link = etree.SubElement(model, "link", name=name)
        etree.SubElement(link, "pose", relative_to=drive.joint.name).text = "0 0 0 0 0 0"
        if np.any(phi[drive.joint.link]):
            link.append(build_inertial(phi[drive.joint.link]))
        joint = build_joint(drive, names[drive.joint.parent], name)
        if drive.joint.name in followers:
            add_mimic(joint, *followers[drive.joint.name])
        model.append(joint)
    etree.indent(root)
    left = describe_left_drives(idim, "SDF")
    notes = [SHAPELESS, *describe_gravity(robot), *left]
    moved = (robot.base_link, *(drive.joint.link for drive in drives))
    changed = [f"{old} is {new}" for old, new in zip(moved, names, strict=True) if old != new]
    if changed:
        notes.append(f"names that an SDF has once alone: {', '.join(changed)}")
    if any(drive.dry for drive in drives):
        notes.append("Gazebo reads dry friction (fc); Drake does not: take it off the actuation")
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8") + b"\n", tuple(notes)


def build_inertial(phi: Array) -> etree._Element:
    """Mass, centre of mass and inertia about it."""
    mass, com, inertia = to_com(phi)
    element = etree.Element("inertial")
    add_texts(element, {"pose": f"{format_exact_numbers(com)} 0 0 0"})
    add_texts(element, {"mass": format_exact_number(mass)})
    entries = {name: format_exact_number(inertia[at]) for name, at in ENTRIES.items()}
    add_texts(etree.SubElement(element, "inertia"), entries)
    return element


def name_links(robot: Robot) -> tuple[str, ...]:
    """Names of the base and of each joint's link, none of which a joint or the world has."""
    found: list[str] = []
    for name in (name_base(robot), *(joint.link for joint in robot.joints)):
        own = name
        while own in robot.joint_names or own in found:
            own += "_link"
        found.append(own)
    return tuple(found)


def build_joint(drive: JointDrive, parent: str, child: str) -> etree._Element:
    """A joint with its limits, friction and rotor."""
    joint = drive.joint
    endless = joint.kind == "revolute" and np.isinf(joint.lower) and np.isinf(joint.upper)
    element = etree.Element("joint", name=joint.name, type="continuous" if endless else joint.kind)
    place = [*joint.translation, *pin.rpy.matrixToRpy(joint.rotation)]
    etree.SubElement(element, "pose", relative_to=parent).text = format_exact_numbers(place)
    add_texts(element, {"parent": parent, "child": child})
    axis = etree.SubElement(element, "axis")
    add_texts(axis, {"xyz": format_exact_numbers(joint.axis)})
    ends = {"lower": joint.lower, "upper": joint.upper}
    limits = {name: format_exact_number(end) for name, end in ends.items() if np.isfinite(end)}
    for name, most in {"effort": drive.effort, "velocity": joint.velocity}.items():
        limits[name] = format_exact_number(most) if np.isfinite(most) else UNLIMITED
    add_texts(etree.SubElement(axis, "limit"), limits)
    rubs = {"damping": drive.viscous, "friction": drive.dry}
    add_texts(
        etree.SubElement(axis, "dynamics"),
        {name: format_exact_number(value) for name, value in rubs.items() if value is not None},
    )
    if drive.armature is not None:
        rotor = {"rotor_inertia": format_exact_number(drive.armature), "gear_ratio": "1"}
        add_texts(element, {f"{{{DRAKE}}}{name}": value for name, value in rotor.items()})
    return element


def add_mimic(joint: etree._Element, leader: str, offset: float, ratio: float) -> None:
    """Have a joint follow another, for Gazebo and for Drake."""
    numbers = {"multiplier": format_exact_number(ratio), "offset": format_exact_number(offset)}
    axis = joint.find("axis")
    assert axis is not None
    element = etree.SubElement(axis, "mimic", joint=leader)
    add_texts(element, numbers | {"reference": "0"})
    etree.SubElement(joint, f"{{{DRAKE}}}mimic", {"joint": leader} | numbers)


def add_texts(parent: etree._Element, values: Mapping[str, str]) -> None:
    """Add children that have a text each."""
    for tag, text in values.items():
        etree.SubElement(parent, tag).text = text
