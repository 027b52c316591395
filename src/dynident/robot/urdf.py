"""URDF files into `Robot`, through Pinocchio."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree

from dynident.core.arrays import freeze_array
from dynident.core.errors import InputError
from dynident.core.library_messages import capture_library_messages
from dynident.robot.drives import Drives
from dynident.robot.model import GRAVITY, HUGE, MOST_JOINTS, TINY, Joint, Robot

PARSER = etree.XMLParser(
    resolve_entities="internal",  # type: ignore[arg-type]  # the stubs know of lxml 4
    no_network=True,
    load_dtd=False,
    strip_cdata=False,
)
"""Reads XML with the entities that it defines itself and no others, keeping comments."""

NUMBERS = {
    "origin": {"xyz": 3, "rpy": 3},
    "axis": {"xyz": 3},
    "mass": {"value": 1},
    "mimic": {"multiplier": 1, "offset": 1},
    "inertia": dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
}
"""Attributes that shape the dynamics, and how many numbers each holds."""


ENCODINGS = ("UTF-8", "US-ASCII", "ASCII", "ISO-8859-1", "LATIN1", "ISO-8859-15", "WINDOWS-1252",
             "UTF-16", "UTF-16LE", "UTF-16BE")  # fmt: skip
"""In which XML is read and written back."""


def parse_xml(path: Path) -> etree._ElementTree:
    """Parse an XML file, its own entities resolved."""
    try:
        tree = etree.parse(str(path), PARSER)
        encoding = tree.docinfo.encoding or "UTF-8"
        if encoding.upper() not in ENCODINGS:
            raise InputError(
                f"{path}, line 1: declares the encoding {encoding}; save it as UTF-8, and say so"
            )
        return tree
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    except etree.XMLSyntaxError as error:
        advice = "; write what it stands for" if "Entity" in str(error.msg) else ""
        raise InputError(f"{path}, line {error.lineno}: {error.msg}{advice}") from error


WORLD = "world"
"""A link that files written for Drake have without saying so."""


def load_urdf(path: Path, floating: bool = False, locked: Collection[str] = ()) -> Robot:
    """Read a URDF.

    Joints are in Pinocchio's order; links behind fixed joints are part of the body that carries
    them. A mimic joint is a joint of its own. Simple transmissions are the drives' reduction.
    """
    root = parse_xml(path).getroot()
    if root.tag != "robot":
        raise InputError(f"{path}, line {root.sourceline}: expected <robot>, found <{root.tag}>")
    if not root.get("name"):
        raise InputError(f'{path}, line {root.sourceline}: <robot> has no name; add name="..."')
    warnings = []
    for joint in root.iterchildren("joint"):
        name, kind = joint.get("name"), joint.get("type")
        if not name:
            raise InputError(f"{path}, line {joint.sourceline}: a joint has no name; give it one")
        if kind in ("floating", "planar"):
            raise InputError(
                f"{path}, line {joint.sourceline}: joint {name!r} is {kind}; only revolute, "
                "continuous, prismatic and fixed joints can be identified"
            )
    refuse_macros(root, path)
    refuse_bad_numbers(root, path)
    refuse_circles(root, path)
    ratios, coupled = read_transmissions(root, path)
    warnings += coupled
    moving = sum(joint.get("type") != "fixed" for joint in root.iterchildren("joint"))
    refuse_many_joints(moving - len(locked), path)
    model = build_pinocchio_model(root, path, floating)
    robot = convert_pinocchio_model(model, path, floating)
    reduction = np.diag([ratios.get(name, 1.0) for name in robot.joint_names])
    drives = replace(robot.drives, reduction=freeze_array(reduction))
    return replace(robot, drives=drives, warnings=tuple(warnings))


def build_pinocchio_model(root: etree._Element, path: Path, floating: bool) -> pin.Model:
    """Pinocchio's model of a URDF, whose complaints are an `InputError`."""
    free = (pin.JointModelFreeFlyer(),) if floating else ()
    links = {link.get("name") for link in root.iterchildren("link")}
    if WORLD not in links and root.find(f"joint/parent[@link='{WORLD}']") is not None:
        root = deepcopy(root)
        root.append(etree.Element("link", name=WORLD))
    reason = ""
    with capture_library_messages() as said:
        try:
            # as UTF-8 and without its document type, whatever the file is written in
            model = pin.buildModelFromXML(etree.tostring(root, encoding="unicode"), *free)
        except (ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
    if reason:
        raise InputError(f"{path}: {next(list_library_errors(said), reason)}")
    return model


def list_library_errors(said: Sequence[str]) -> Iterator[str]:
    """Errors among the lines that the library wrote."""
    return (line.removeprefix("Error:").strip() for line in said if line.startswith("Error:"))


def make_xacro_error(path: Path, place: str | Path) -> InputError:
    """The refusal of xacro, with the command that makes a URDF of it."""
    stem = path.name.removesuffix(".xacro").removesuffix(".urdf")
    return InputError(
        f"{place}: is xacro, which has to be expanded first: xacro {path} -o {stem}.urdf"
    )


def refuse_macros(root: etree._Element, path: Path) -> None:
    """Refuse xacro that was not expanded."""
    for element in root.iter(etree.Element):
        if "xacro" in str(element.tag).partition("}")[0]:
            raise make_xacro_error(path, f"{path}, line {element.sourceline}")


def read_transmissions(root: etree._Element, path: Path) -> tuple[dict[str, float], list[str]]:
    """Turns of the motor for one of the joint, by name, and words on transmissions of several."""
    ratios: dict[str, float] = {}
    warnings = []
    for each in root.iter("transmission"):
        joints = [joint.get("name", "") for joint in each.iterfind("joint")]
        ratio = 1.0
        for element in each.iter("mechanicalReduction", "mechanical_reduction"):
            place = f"{path}, line {element.sourceline}: <{element.tag}>"
            try:
                value = float(element.text or "")
            except ValueError as error:
                raise InputError(f"{place} should hold a number") from error
            if not 1.0 / HUGE < abs(value) < HUGE:
                raise InputError(f"{place} is {value:g}; a reduction is finite and not 0")
            ratio *= value
        if len(joints) == 1:
            ratios[joints[0]] = ratio
        elif joints:
            warnings.append(
                f"transmission {each.get('name')} couples {', '.join(joints)}, which is not read: "
                "for logs of the motors' side give [robot.transmission] a reduction matrix"
            )
    return ratios, warnings


def refuse_bad_numbers(root: etree._Element, path: Path) -> None:
    """Refuse numbers of joints and inertials that are none, and axes without a direction."""
    moving = (joint for joint in root.iterfind("joint") if joint.get("type") != "fixed")
    shaping = (
        *root.iterfind("joint/origin"),
        *root.iterfind("joint/mimic"),
        *(axis for j in moving for axis in j.iterfind("axis")),
    )
    for element in (*shaping, *root.iterfind("link/inertial/*")):
        for attribute, count in NUMBERS.get(str(element.tag), {}).items():
            text = element.get(attribute)
            if text is None:
                continue
            place = f'{path}, line {element.sourceline}: <{element.tag} {attribute}="{text}">'
            try:
                values = [float(word) for word in text.split()]
            except ValueError:
                values = []
            if len(values) != count or not all(abs(value) < HUGE for value in values):
                raise InputError(f"{place} should hold {count} finite numbers")
            if element.tag == "mass" and 0.0 < abs(values[0]) < TINY:
                raise InputError(f"{place} is not a mass; write 0 for none")
            if element.tag == "mass" and values[0] < 0.0:  # of which Pinocchio makes 1e30 m
                raise InputError(f"{place} is negative; write what the link weighs, or 0")
            if element.tag == "axis" and max(map(abs, values)) < 1.0 / HUGE:
                raise InputError(f"{place} has no direction")


def refuse_many_joints(joints: int, path: Path) -> None:
    """Refuse robots with more joints than can be identified at once."""
    if joints > MOST_JOINTS:
        raise InputError(
            f"{path}: {joints} joints move, more than {MOST_JOINTS}; lock those that are not in "
            "the log: locked = { joint = 0.0 }"
        )


def refuse_circles(root: etree._Element, path: Path) -> None:
    """Refuse links that carry themselves, alone or through others, and those of two joints."""
    movers: dict[str | None, etree._Element] = {}
    carriers: dict[str | None, str | None] = {}
    for joint in root.iterchildren("joint"):
        parent, child = joint.find("parent"), joint.find("child")
        if parent is not None and child is not None:
            link = child.get("link")
            if link in movers:
                raise InputError(
                    f"{path}, line {joint.sourceline}: link {link!r} is the child of joint "
                    f"{movers[link].get('name')!r} and of joint {joint.get('name')!r}; a closed "
                    "loop has to be cut, so that one joint leads to every link"
                )
            movers[link], carriers[link] = joint, parent.get("link")
    settled: set[str | None] = set()
    for start in carriers:
        way: set[str | None] = set()
        link = start
        while link in carriers and link not in settled:
            if link in way:
                raise InputError(
                    f"{path}, line {movers[link].sourceline}: link {link!r} carries itself; joints "
                    "have to lead from one root to every link"
                )
            way.add(link)
            link = carriers[link]
        settled |= way


def convert_pinocchio_model(model: pin.Model, path: Path, floating: bool) -> Robot:
    """`Robot` of a Pinocchio model whose joints turn or slide about one axis each.

    When `floating` its first joint is a free-flyer.
    """
    first = 2 if floating else 1
    data = model.createData()
    pin.computeJointJacobians(model, data, pin.neutral(model))
    moved: dict[int, str] = {}
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY:
            moved.setdefault(int(frame.parentJoint), frame.name)
    joints = []
    for index in range(first, model.njoints):
        v, nq = int(model.joints[index].idx_v), int(model.joints[index].nq)
        jacobian = pin.getJointJacobian(model, data, index, pin.ReferenceFrame.LOCAL)
        screw = np.reshape(jacobian, (6, model.nv))[:, v]  # the library gives one column flat
        revolute = bool(np.any(screw[3:]))
        q = int(model.joints[index].idx_q)
        joints.append(
            Joint(
                name=model.names[index],
                link=moved.get(index, model.names[index]),
                kind="revolute" if revolute else "prismatic",
                parent=max(int(model.parents[index]) - first + 1, 0),
                rotation=freeze_array(model.jointPlacements[index].rotation),
                translation=freeze_array(model.jointPlacements[index].translation),
                axis=freeze_array(screw[3:] if revolute else screw[:3]),
                lower=read_limit(model.lowerPositionLimit[q]) if nq == 1 else -np.inf,
                upper=read_limit(model.upperPositionLimit[q]) if nq == 1 else np.inf,
                velocity=read_limit(model.velocityLimit[v]) or np.inf,
                effort=read_limit(model.effortLimit[v]) or np.inf,
                damping=float(model.damping[v]),
                friction=float(model.upperDryFrictionLimit[v]),
            )
        )
    if not joints and not floating:
        raise InputError(f"{path}: the robot has no moving joint")
    bodies = range(1, model.njoints)
    nominal = freeze_array(np.array([model.inertias[i].toDynamicParameters() for i in bodies]))
    return Robot(
        name=model.name,
        joints=tuple(joints),
        nominal=nominal,
        drives=Drives.direct(len(joints)),
        floating=floating,
        base_link=moved.get(first - 1, "base"),
        gravity=freeze_array(GRAVITY),
        source=path,
    )


def read_limit(value: float) -> float:
    """Pinocchio's huge numbers mean that there is no limit."""
    return float(value) if abs(value) < 1e100 else float(np.copysign(np.inf, value))
