"""Identified parameters into URDF: the robot's own document patched, or a fresh one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pinocchio as pin
from lxml import etree

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import from_com, to_com, transform_body
from dynident.dynamics.idim import Idim
from dynident.export.exported import (
    check_bodies,
    describe_massless,
    describe_omissions,
    format_exact_number,
    format_exact_numbers,
    format_joint_attributes,
    list_followers,
    select_drive_values,
    subtract_carried,
)
from dynident.export.xml_text import XmlText
from dynident.robot.model import Joint, Robot
from dynident.robot.urdf import parse_xml

UNLIMITED = repr(float(np.finfo(float).max))
"""A limit that is none: URDF asks for a number."""
ENTRIES = {"i" + "xyz"[i] + "xyz"[j]: (i, j) for i in range(3) for j in range(i, 3)}
"""Attributes of an ``<inertia>`` and where they stand in the matrix."""

Fixed = tuple[etree._Element, Array, Array]
"""A link and its placement (rotation, translation) in the frame of the link carrying it."""


def render_urdf(
    robot: Robot,
    phi: npt.ArrayLike,
    *,
    damping: npt.ArrayLike | None = None,
    friction: npt.ArrayLike | None = None,
    omitted: Sequence[str] = (),
) -> tuple[bytes, tuple[str, ...]]:
    """A URDF with identified parameters: the robot's own patched, or a fresh one.

    Parameters
    ----------
    phi : array_like, shape (bodies, 10)
        Inertial parameters about the joint frames, of everything fixed to each body.
    damping, friction : array_like, shape (n,), optional
        Viscous and Coulomb friction of the joints [Nm s/rad or N s/m, Nm or N]; NaN (or
        None) where a joint has none of its own: what its file says of it stays.
    omitted : sequence of str
        What else was identified and has no place in a URDF; named in the notes.

    Returns
    -------
    document : bytes
    notes : tuple of str
        What a reader of the document should know.
    """
    values = check_bodies(robot, phi, "URDF")
    attributes = format_joint_attributes(robot, {"damping": damping, "friction": friction})
    if robot.source is not None and robot.source.suffix.lower() == ".urdf":
        document, notes = patch_urdf(robot, values, attributes)
    else:
        document, notes = render_fresh_urdf(robot, values, attributes), []
    return document, (*notes, *describe_omissions(omitted, "URDF"))


def patch_urdf(
    robot: Robot, phi: Array, attributes: Sequence[dict[str, str]]
) -> tuple[bytes, list[str]]:
    """The robot's URDF with other inertial values; all else stays as it is written.

    Links behind fixed (and locked) joints keep their nominal inertia where what is left
    for the link that carries them is physically consistent; otherwise they become
    massless. The base link of a fixed base is left alone.

    `attributes`: of each joint's ``<dynamics>``.
    """
    document = UrdfDocument(robot)
    notes = []
    for name, law in list_followers(robot).items():
        own = document.joint(law[0]).find("mimic")
        if own is not None and own.get("joint") == name:  # the other way round in the file
            document.remove(own)
        document.set_children(document.joint(name), {"mimic": format_mimic(law)})
    bodies = dict(zip(robot.links, phi, strict=True))
    for part in robot.parts:  # what carries them has the rest
        notes += _patch_body(document, part.base_link, bodies[part.base_link])
        document.parts[part.base_link] = bodies[part.base_link]
    for name in robot.bare.links:
        notes += _patch_body(document, name, bodies[name])
    for joint, dynamics in zip(robot.joints, attributes, strict=True):
        if dynamics:
            document.set_children(document.joint(joint.name), {"dynamics": dynamics})
    return document.text.whole(), notes


class UrdfDocument:
    """A robot's URDF: its elements by name, the tree of what is fixed to what, changes to its text.

    `parts` are links behind fixed joints that have been written, with all that is fixed to them.
    Locked joints count as fixed, at their values.
    """

    def __init__(self, robot: Robot) -> None:
        assert robot.source is not None
        tree = parse_xml(robot.source)
        root, dtd = tree.getroot(), tree.docinfo.internalDTD
        # what stands in an entity of the file has no place of its own in its text
        entities = dtd is not None and any(dtd.entities())  # type: ignore[attr-defined]
        resolved = etree.tostring(tree, xml_declaration=True, encoding="UTF-8")
        self.path = robot.source
        self.locked = robot.locked
        self.parts: dict[str, Array] = {}
        self.text = XmlText(robot.source, resolved if entities else None)
        self._places = {element: k for k, element in enumerate(root.iter("*"))}
        self._links = {e.get("name"): e for e in root.iterchildren("link")}
        self._joints = {e.get("name"): e for e in root.iterchildren("joint")}

    def link(self, name: str | None) -> etree._Element:
        """The <link> of that name."""
        if name not in self._links:
            raise InputError(f"{self.path}: link {name!r} is gone; was the file changed since?")
        return self._links[name]

    def joint(self, name: str) -> etree._Element:
        """The <joint> of that name."""
        if name not in self._joints:
            raise InputError(f"{self.path}: joint {name!r} is gone; was the file changed since?")
        return self._joints[name]

    def set_children(self, parent: etree._Element, values: Mapping[str, Mapping[str, str]]) -> None:
        """Give children of an element attributes, by their tags; those that it lacks are added."""
        fresh = []
        for tag, given in values.items():
            child = parent.find(tag)
            if child is None:
                fresh.append(etree.Element(tag, dict(given)))
            else:
                self.text.set(self._places[child], given)
        self.add(parent, fresh)

    def add(self, parent: etree._Element, children: Sequence[etree._Element]) -> None:
        """Add children to an element, a line each."""
        lines = []
        for child in children:
            etree.indent(child)
            lines.append(etree.tostring(child, encoding="unicode"))
        if lines:
            self.text.append(self._places[parent], "\n".join(lines))

    def remove(self, element: etree._Element) -> None:
        """Take an element out."""
        self.text.take(self._places[element])

    def fixed_to(self, link: str) -> Iterator[Fixed]:
        """Links behind fixed and locked joints, with their placements in `link`'s frame.

        Those behind `parts` are of these.
        """
        waiting = [(link, np.eye(3), np.zeros(3))]
        while waiting:
            carrier, rotation, translation = waiting.pop()
            beyond = [] if carrier in self.parts else self._fixed.get(carrier, [])
            for child, turn, shift in reversed(beyond):
                waiting.append((child, rotation @ turn, rotation @ shift + translation))
            if carrier != link:
                yield self.link(carrier), rotation, translation

    @cached_property
    def _fixed(self) -> dict[str | None, list[tuple[str, Array, Array]]]:
        """Children of each link behind fixed and locked joints, with their placements in it."""
        found: dict[str | None, list[tuple[str, Array, Array]]] = {}
        for name, joint in self._joints.items():
            value = self.locked.get(name or "", 0.0 if joint.get("type") == "fixed" else None)
            if value is None:
                continue
            turn, shift = _read_origin(joint)
            if value != 0.0:
                axis = _read_axis(joint)
                if joint.get("type") == "prismatic":
                    shift = shift + turn @ axis * value
                else:
                    turn = turn @ pin.exp3(axis * value)
            child = _read_link_reference(joint, "child") or ""
            parent = _read_link_reference(joint, "parent")
            found.setdefault(parent, []).append((child, turn, shift))
        return found


def _patch_body(document: UrdfDocument, name: str, phi: Array) -> list[str]:
    carried: list[Fixed] = []
    for item in document.fixed_to(name):
        part = document.parts.get(str(item[0].get("name")))
        if part is not None:
            phi = phi - transform_body(part, *item[1:])
        elif item[0].find("inertial") is not None:
            carried.append(item)
    bodies = {str(link.get("name")): _read_inertial(link) for link, _, _ in carried}
    rest = subtract_carried(
        phi, [transform_body(own, *at) for own, (_, *at) in zip(bodies.values(), carried)]
    )
    _write_inertial(document, document.link(name), phi if rest is None else rest)
    if rest is not None:
        return []
    for link, _, _ in carried:
        document.remove(next(link.iterchildren("inertial")))
    return describe_massless(f"link {name}", bodies)


def render_fresh_urdf(robot: Robot, phi: Array, attributes: Sequence[dict[str, str]]) -> bytes:
    """A fresh minimal URDF of a robot that has none: links, joints, limits, inertials.

    Parameters are those of `patch_urdf`.
    """
    root, followers = etree.Element("robot", name=robot.name), list_followers(robot)
    bodies = dict(zip(robot.links, phi, strict=True))
    for link in dict.fromkeys((robot.base_link, *robot.links)):
        element = etree.SubElement(root, "link", name=link)
        if link in bodies and np.any(bodies[link]):
            element.append(_build_inertial(bodies[link]))
    moved = (robot.base_link, *(joint.link for joint in robot.joints))
    for joint, dynamics in zip(robot.joints, attributes, strict=True):
        element = _build_joint_element(joint, moved[joint.parent])
        root.append(element)
        if dynamics:
            etree.SubElement(element, "dynamics", dynamics)
        if joint.name in followers:
            etree.SubElement(element, "mimic", format_mimic(followers[joint.name]))
    etree.indent(root)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8") + b"\n"


def _build_joint_element(joint: Joint, parent: str) -> etree._Element:
    endless = joint.kind == "revolute" and np.isinf(joint.lower) and np.isinf(joint.upper)
    element = etree.Element("joint", name=joint.name, type="continuous" if endless else joint.kind)
    etree.SubElement(
        element,
        "origin",
        xyz=format_exact_numbers(joint.translation),
        rpy=format_exact_numbers(pin.rpy.matrixToRpy(joint.rotation)),
    )
    etree.SubElement(element, "parent", link=parent)
    etree.SubElement(element, "child", link=joint.link)
    etree.SubElement(element, "axis", xyz=format_exact_numbers(joint.axis))
    limits = {"effort": _format_limit(joint.effort), "velocity": _format_limit(joint.velocity)}
    if not endless:
        limits |= {"lower": _format_limit(joint.lower), "upper": _format_limit(joint.upper)}
    etree.SubElement(element, "limit", limits)
    return element


def format_mimic(law: tuple[str, float, float]) -> dict[str, str]:
    """Attributes of a ``<mimic>`` by a law of `list_followers`."""
    leader, offset, ratio = law
    numbers = {"multiplier": format_exact_number(ratio), "offset": format_exact_number(offset)}
    return {"joint": leader, **numbers}


def _format_limit(value: float) -> str:
    if np.isfinite(value):
        return format_exact_number(value)
    return UNLIMITED if value > 0.0 else f"-{UNLIMITED}"


def _read_inertial(link: etree._Element) -> Array:
    """10-vector of a link's <inertial> about the link's frame."""
    inertial = link.find("inertial")
    if inertial is None:
        return np.zeros(10)
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    m = 0.0 if mass is None else float(mass.get("value", "0"))
    matrix = np.zeros((3, 3))
    if inertia is not None:
        for name, (row, column) in ENTRIES.items():
            matrix[row, column] = matrix[column, row] = float(inertia.get(name, "0"))
    turn, com = _read_origin(inertial)
    return from_com(m, com, turn @ matrix @ turn.T)


def _read_origin(element: etree._Element) -> tuple[Array, Array]:
    origin = element.find("origin")
    if origin is None:
        return np.eye(3), np.zeros(3)
    rpy = np.array(origin.get("rpy", "0 0 0").split(), dtype=float)
    return pin.rpy.rpyToMatrix(rpy), np.array(origin.get("xyz", "0 0 0").split(), dtype=float)


def _read_axis(joint: etree._Element) -> Array:
    element = joint.find("axis")
    text = "1 0 0" if element is None else element.get("xyz", "1 0 0")
    axis = np.array(text.split(), dtype=float)
    return axis / float(np.linalg.norm(axis))


def _read_link_reference(joint: etree._Element, tag: str) -> str | None:
    element = joint.find(tag)
    return None if element is None else element.get("link")


def _format_inertial(phi: Array) -> dict[str, dict[str, str]]:
    """Children of an ``<inertial>`` and their attributes."""
    mass, com, inertia = to_com(phi)
    return {
        "origin": {"xyz": format_exact_numbers(com), "rpy": "0 0 0"},
        "mass": {"value": format_exact_number(mass)},
        "inertia": {name: format_exact_number(inertia[at]) for name, at in ENTRIES.items()},
    }


def _build_inertial(phi: Array) -> etree._Element:
    element = etree.Element("inertial")
    for name, attributes in _format_inertial(phi).items():
        etree.SubElement(element, name, dict(attributes))
    return element


def _write_inertial(document: UrdfDocument, link: etree._Element, phi: Array) -> None:
    """Write a body's values; a body of zeros has no <inertial>."""
    inertial = link.find("inertial")
    if inertial is None and np.any(phi):
        document.add(link, [_build_inertial(phi)])
    elif inertial is not None and np.any(phi):
        document.set_children(inertial, _format_inertial(phi))
    elif inertial is not None:
        document.remove(inertial)


def render_standard_urdf(idim: Idim, theta: Array) -> tuple[bytes, tuple[str, ...]]:
    """The URDF of standard parameters, and notes on what has no place in one."""
    return render_urdf(
        idim.robot,
        idim.split(theta)[0],
        damping=select_drive_values(idim, theta, "fv"),
        friction=select_drive_values(idim, theta, "fc"),
        omitted=[p.name for p in idim.drives if p.symbol not in ("fv", "fc")],
    )
