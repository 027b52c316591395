"""Identified parameters into URDF: the robot's own document patched, or a fresh one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pinocchio as pin
from lxml import etree

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import from_com, is_consistent, to_com, transform_body
from dynident.dynamics.idim import Idim
from dynident.export.exported import (
    check_bodies,
    describe_omissions,
    format_exact_number,
    format_exact_numbers,
    format_joint_attributes,
    select_drive_values,
)
from dynident.robot.model import Joint, Robot
from dynident.robot.urdf import parse_xml

UNLIMITED = repr(float(np.finfo(float).max))
"""A limit that is none: URDF asks for a number."""

_MISC = rb"(?:\s|<\?.*?\?>|<!--.*?-->)*"
PROLOG = re.compile(
    rb"(?:\xef\xbb\xbf)?" + _MISC + rb"(?:<!DOCTYPE.*?>" + _MISC + rb")?(?=<robot\b)", re.S
)
"""What comes before a URDF's root element."""
EPILOG = re.compile(rb"</robot\s*>(" + _MISC + rb")\Z", re.S)
"""What comes after it."""

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
    patched = robot.source is not None and robot.source.suffix.lower() == ".urdf"
    writer = patch_urdf if patched else render_fresh_urdf
    return writer(robot, phi, damping=damping, friction=friction, omitted=omitted)


def patch_urdf(
    robot: Robot,
    phi: npt.ArrayLike,
    *,
    damping: npt.ArrayLike | None = None,
    friction: npt.ArrayLike | None = None,
    omitted: Sequence[str] = (),
) -> tuple[bytes, tuple[str, ...]]:
    """The robot's URDF with other inertial values; all else stays as it is written.

    Links behind fixed (and locked) joints keep their nominal inertia where what is left
    for the link that carries them is physically consistent; otherwise they become
    massless. The base link of a fixed base is left alone.

    Parameters, returns and raises are those of `render_urdf`.
    """
    values = check_bodies(robot, phi, "URDF")
    if robot.source is None:
        raise InputError(f"robot {robot.name!r} has no URDF; write a fresh one (urdf_from_robot)")
    tree = parse_xml(robot.source)
    locked = robot.locked
    document = Document(tree, robot.source, locked)
    attributes = format_joint_attributes(robot, {"damping": damping, "friction": friction})
    notes = []
    for name, body in zip(robot.links, values, strict=True):
        notes += _patch_body(document, name, body)
    for joint, dynamics in zip(robot.joints, attributes, strict=True):
        for attribute, value in dynamics.items():
            _ensure_child(document.joint(joint.name), "dynamics").set(attribute, value)
    return _render_document(tree.getroot(), robot.source), (
        *notes,
        *describe_omissions(omitted, "URDF"),
    )


class Document:
    """A URDF's elements by name, and the tree of what is fixed to what.

    Parameters
    ----------
    path : Path
        The file, for messages.
    locked : mapping of str to float
        Joints that count as fixed, at these values [rad or m].
    """

    def __init__(self, tree: etree._ElementTree, path: Path, locked: Mapping[str, float]) -> None:
        root = tree.getroot()
        self.path = path
        self.locked = locked
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

    def fixed_to(self, link: str) -> Iterator[Fixed]:
        """Links behind fixed and locked joints, with their placements in `link`'s frame."""
        waiting = [(link, np.eye(3), np.zeros(3))]
        while waiting:
            carrier, rotation, translation = waiting.pop()
            for child, turn, shift in reversed(self._fixed.get(carrier, [])):
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


def _patch_body(document: Document, name: str, phi: Array) -> list[str]:
    notes = []
    carried = [item for item in document.fixed_to(name) if item[0].find("inertial") is not None]
    rest = phi - sum(
        (transform_body(_read_inertial(link), turn, shift) for link, turn, shift in carried),
        np.zeros(10),
    )
    # a remainder of rounding errors alone is no body
    if carried and not (rest[0] > 1e-9 * phi[0] and is_consistent(rest)):
        rest = phi
        gone = [str(link.get("name")) for link, _, _ in carried if _read_inertial(link)[0] != 0.0]
        for link, _, _ in carried:
            _remove_element(link, link.find("inertial"))
        if gone:
            notes.append(
                f"link {name} carries the inertia of what is fixed to it: {', '.join(gone)} "
                "became massless"
            )
    _write_inertial(document.link(name), rest)
    return notes


def render_fresh_urdf(
    robot: Robot,
    phi: npt.ArrayLike,
    *,
    damping: npt.ArrayLike | None = None,
    friction: npt.ArrayLike | None = None,
    omitted: Sequence[str] = (),
) -> tuple[bytes, tuple[str, ...]]:
    """A fresh minimal URDF of a robot that has none: links, joints, limits, inertials.

    Parameters, returns and raises are those of `render_urdf`.
    """
    values = check_bodies(robot, phi, "URDF")
    if robot.source is not None and robot.source.suffix.lower() == ".urdf":
        raise InputError(f"{robot.source}: is a URDF already; patch it (patched_urdf)")
    root = etree.Element("robot", name=robot.name)
    bodies = dict(zip(robot.links, values, strict=True))
    for link in dict.fromkeys((robot.base_link, *robot.links)):
        element = etree.SubElement(root, "link", name=link)
        if link in bodies:
            _write_inertial(element, bodies[link])
    attributes = format_joint_attributes(robot, {"damping": damping, "friction": friction})
    moved = (robot.base_link, *(joint.link for joint in robot.joints))
    for joint, dynamics in zip(robot.joints, attributes, strict=True):
        element = _build_joint_element(joint, moved[joint.parent])
        root.append(element)
        if dynamics:
            etree.SubElement(element, "dynamics", dynamics)
    etree.indent(root)
    text = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
    return text + b"\n", describe_omissions(omitted, "URDF")


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
        for row, column in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
            name = "i" + "xyz"[row] + "xyz"[column]
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


def _write_inertial(link: etree._Element, phi: Array) -> None:
    """Write a body's values; a body of zeros has no <inertial>."""
    inertial = link.find("inertial")
    if not np.any(phi):
        if inertial is not None:
            _remove_element(link, inertial)
        return
    mass, com, inertia = to_com(phi)
    inertial = _ensure_child(link, "inertial")
    origin = _ensure_child(inertial, "origin")
    origin.set("xyz", format_exact_numbers(com))
    origin.set("rpy", "0 0 0")
    _ensure_child(inertial, "mass").set("value", format_exact_number(mass))
    moments = _ensure_child(inertial, "inertia")
    for row, column in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        moments.set("i" + "xyz"[row] + "xyz"[column], format_exact_number(inertia[row, column]))


def _ensure_child(parent: etree._Element, tag: str) -> etree._Element:
    """The child of that tag, created as the last one where missing, tidily indented."""
    found = parent.find(tag)
    if found is not None:
        return found
    element = etree.Element(tag)
    if len(parent):
        last = parent[-1]
        element.tail = last.tail
        last.tail = parent.text if _is_blank(parent.text) else last.tail
    else:
        outer = _read_indentation(parent)
        element.tail = outer
        parent.text = outer + _read_indent_step(parent)
    parent.append(element)
    return element


def _remove_element(parent: etree._Element, element: etree._Element | None) -> None:
    if element is None:
        return
    before = element.getprevious()
    if before is not None:
        before.tail = element.tail
    elif len(parent) > 1:
        parent.text = element.tail
    else:
        parent.text = None
    parent.remove(element)


def _is_blank(text: str | None) -> bool:
    return text is None or not text.strip()


def _read_indentation(element: etree._Element) -> str:
    """Line break and spaces before an element."""
    before, parent = element.getprevious(), element.getparent()
    text = before.tail if before is not None else (parent.text if parent is not None else None)
    text = text or ""
    return "\n" + text.rpartition("\n")[2] if "\n" in text and _is_blank(text) else "\n"


def _read_indent_step(element: etree._Element) -> str:
    """Spaces that one level of the document is indented by."""
    outer = element.getparent()
    if outer is None or outer.getparent() is None:
        return "  " if outer is None else (_read_indentation(element).lstrip("\n") or "  ")
    return _read_indentation(element).removeprefix(_read_indentation(outer)) or "  "


def _render_document(root: etree._Element, path: Path) -> bytes:
    """The document with its file's line ends and what stands around its root, as they were."""
    original = path.read_bytes()
    encoding = root.getroottree().docinfo.encoding or "UTF-8"
    before, after = PROLOG.match(original), EPILOG.search(original)
    whole = before is None or after is None  # not an 8-bit encoding
    element = root.getroottree() if whole else root
    text = etree.tostring(element, xml_declaration=whole, encoding=encoding, with_tail=False)
    assert isinstance(text, bytes)
    if before is None or after is None:
        return text
    if b"\r\n" in original:
        text = text.replace(b"\n", b"\r\n")
    return before[0] + text + after[1]


def render_standard_urdf(idim: Idim, theta: Array) -> tuple[bytes, tuple[str, ...]]:
    """The URDF of standard parameters, and notes on what has no place in one.

    Parameters
    ----------
    theta : ndarray, shape (standard parameters,)
    """
    return render_urdf(
        idim.robot,
        idim.split(theta)[0],
        damping=select_drive_values(idim, theta, "fv"),
        friction=select_drive_values(idim, theta, "fc"),
        omitted=[p.name for p in idim.drives if p.symbol not in ("fv", "fc")],
    )
