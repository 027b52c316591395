"""MJCF files into `Robot`, without MuJoCo."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array, freeze_array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.inertia import transform_body
from dynident.core.text import suggest_nearest
from dynident.robot.drives import Drives
from dynident.robot.linkage import COUPLING
from dynident.robot.mjcf_actuators import read_actuators
from dynident.robot.mjcf_document import (
    Attributes,
    MjcfDocument,
    MjcfElement,
    make_axis_rotation,
    normalise_direction,
    read_document,
)
from dynident.robot.mjcf_inertia import read_body_inertia
from dynident.robot.mjcf_loops import find_followers, list_equalities, read_loops
from dynident.robot.model import GRAVITY, Joint, Robot
from dynident.robot.urdf import parse_xml, refuse_many_joints

WORLD = "world"
PARTS = (
    "body", "frame", "inertial", "joint", "freejoint", "geom", "site", "camera", "light",
    "composite", "flexcomp", "replicate", "attach", "plugin",
)  # fmt: skip
"""What a body may have."""
ORIENTED = frozenset({"pos", "quat", "axisangle", "xyaxes", "zaxis", "euler"})
KNOWN = {
    "body": ORIENTED | {"name", "childclass", "mocap", "gravcomp", "sleep", "user"},
    "frame": ORIENTED | {"name", "childclass"},
    "inertial": ORIENTED | {"mass", "diaginertia", "fullinertia"},
    "joint": frozenset({
        "name", "class", "type", "group", "pos", "axis", "springdamper", "limited", "range",
        "actuatorfrclimited", "actuatorfrcrange", "actuatorgravcomp", "margin", "ref", "springref",
        "springyield", "stiffness", "armature", "damping", "frictionloss", "solreflimit",
        "solimplimit", "solreffriction", "solimpfriction", "user",
    }),
}  # fmt: skip
"""Attributes of what is read whole; others are refused as spelling errors."""
Placed = tuple[int, pin.SE3]
"""A joint's number, and a placement in its frame."""
EXPAND = "have MuJoCo write it out (mujoco.mj_saveLastXML), and read that"


@dataclass
class Axis:
    """A joint of a body, as it stands in the file."""

    name: str
    own: Attributes
    around: pin.SE3
    """Placement of the frames around it, within the body."""


@dataclass
class Body:
    """A body, as it stands in the file."""

    name: str
    element: MjcfElement
    parent: int
    """Its place in the list of bodies; -1 is the world."""
    placement: pin.SE3
    """In its parent's frame."""
    axes: list[Axis] = field(default_factory=list)
    """Joints that move it, those nearest to the parent first."""
    free: MjcfElement | None = None
    """Its free joint."""
    geoms: list[tuple[Attributes, pin.SE3]] = field(default_factory=list)
    """With the placement of the frames around each."""
    sites: dict[str, pin.SE3] = field(default_factory=dict)
    inertial: Attributes | None = None
    hidden: MjcfElement | None = None
    """What may hold geoms that are not read."""


@dataclass(frozen=True)
class MjcfTree:
    """The one tree of an MJCF."""

    document: MjcfDocument
    bodies: tuple[Body, ...]
    """Parents come before children; the first one stands on the world."""
    static: tuple[Body, ...]
    """Bodies of the world that nothing moves."""

    @property
    def root(self) -> Body:
        """The body that stands on the world."""
        return self.bodies[0]

    def links_of(self, body: Body) -> tuple[str, ...]:
        """Names of the links that a body's joints move, its own last.

        A body with several joints is a chain: each joint but the last moves a link that the
        file gives no mass.
        """
        return (*(f"{body.name}/{axis.name}" for axis in body.axes[:-1]), body.name)


def load_mjcf(path: Path, floating: bool = False, locked: Collection[str] = ()) -> Robot:
    """Read an MJCF.

    Joints are in the file's order; bodies without joints are part of the body that carries them.
    A floating base has the frame of the first body, whether or not that has a free joint; a fixed
    one is held where the file puts it and has the world's frame. Gears of actuators are the
    drives' reduction. Nothing is said of what couples joints that will be locked.
    """
    model = read_model(path)
    document = model.document
    warnings = list(_list_unread_effects(model, set(locked), floating))
    root = model.root
    if floating and root.axes:
        raise InputError(
            f"{root.element.place}: body {root.name!r} has a joint to the world, so there is no "
            "base that could float; give the joint to a body inside it"
        )
    if root.free is not None and not floating:
        warnings.insert(
            0,
            f"body {root.name} has a free joint ({root.free.place}), but floating is not set: it "
            "is taken as held where the file puts it",
        )
    joints, placed = assemble_joints(model, floating)
    nominal = np.zeros((len(joints) + 1, 10))
    weights = read_body_inertias(model)
    for body, (number, at) in zip(model.bodies, placed, strict=True):
        nominal[number] += transform_body(weights[body.name], at.rotation, at.translation)
    if not joints and not floating:
        raise InputError(f"{path}: the robot has no moving joint")
    refuse_many_joints(len(joints) - len(locked), path)
    driven = read_actuators(document)
    gears = [driven[each.name].gear if each.name in driven else 1.0 for each in joints]
    robot = Robot(
        name=document.root.own.get("model") or path.stem,
        joints=tuple(joints),
        nominal=freeze_array(nominal[0 if floating else 1 :]),
        drives=replace(Drives.direct(len(joints)), reduction=freeze_array(np.diag(gears))),
        floating=floating,
        base_link=WORLD if root.axes else root.name,
        gravity=freeze_array(read_gravity(document)),
        source=path,
        warnings=tuple(warnings),
    )
    return _close_loops(model, robot, placed)


def _close_loops(model: MjcfTree, robot: Robot, placed: list[Placed]) -> Robot:
    """The robot with the loops of its file, assembled as the file places its bodies."""
    angle = model.document.compiler.angle
    kinds = {joint.name: joint.kind for joint in robot.joints}
    references = [
        angle(value) if kinds[axis.name] == "revolute" else value
        for body in model.bodies
        for axis in body.axes
        for value in (axis.own.number("ref"),)
    ]
    bodies = {b.name: at for b, at in zip(model.bodies, placed, strict=True)}
    still = (0, pin.SE3.Identity())
    bodies |= {WORLD: still, "": still} | {b.name: (0, b.placement) for b in model.static}
    sites = {
        name: (number, at * site)
        for b, (number, at) in zip(model.bodies, placed, strict=True)
        for name, site in b.sites.items()
    }
    loops = read_loops(model.document, robot, bodies, sites, references)
    if robot.floating:  # of which couplings alone are read, as joints of their own
        loops = tuple(loop for loop in loops if loop.kind != COUPLING)
    return replace(robot, loops=loops, assembled=tuple(references) if loops else ())


def assemble_joints(model: MjcfTree, floating: bool) -> tuple[list[Joint], list[Placed]]:
    """The joints of a model; for each body the 1-based number of its own, 0 for the base."""
    driven = read_actuators(model.document)
    joints: list[Joint] = []
    placed: list[Placed] = []
    for body in model.bodies:
        number, at = placed[body.parent] if placed else (0, pin.SE3.Identity())
        if placed or not floating:
            at = at * body.placement
        for axis, link in zip(body.axes, model.links_of(body), strict=False):
            joint, at = _build_joint(model.document, axis, link, number, at)
            if axis.name in driven:
                drive = driven[axis.name]
                effort = min(joint.effort, drive.effort)
                joint = replace(joint, effort=effort, kp=drive.kp, kd=drive.kd)
            joints.append(joint)
            number = len(joints)
        placed.append((number, at))
    return joints, placed


def _build_joint(
    document: MjcfDocument, axis: Axis, link: str, parent: int, at: pin.SE3
) -> tuple[Joint, pin.SE3]:
    """A joint of a body that stands at a placement, and the body's placement in its frame.

    The file places a body as it is when its joints are at their reference (`ref`): the joint
    frame turns back from there to where its joint is zero. It keeps the body's axes.
    """
    own = axis.own
    kind = own.text("type", "hinge")
    hinge = kind == "hinge"
    unit = axis.around.rotation @ normalise_direction(
        own.vector("axis", (0.0, 0.0, 1.0)), own, "axis"
    )
    # where a slide has its axis does not matter
    anchor = axis.around.act(own.vector("pos", (0.0, 0.0, 0.0))) if hinge else np.zeros(3)
    compiler = document.compiler
    lower, upper = own.limited("range", "limited", compiler.automatic)
    ref = own.number("ref")
    if hinge:
        ref, lower, upper = (
            compiler.angle(value) if np.isfinite(value) else value for value in (ref, lower, upper)
        )
    turned, there = at.rotation, at.act(anchor)
    joint = Joint(
        name=axis.name,
        link=link,
        kind="revolute" if hinge else "prismatic",
        parent=parent,
        rotation=freeze_array(turned @ make_axis_rotation(unit, -ref) if hinge else turned),
        translation=freeze_array(there if hinge else there - turned @ unit * ref),
        axis=freeze_array(unit),
        lower=lower,
        upper=upper,
        effort=max(map(abs, own.limited("actuatorfrcrange", "actuatorfrclimited", True))),
        damping=_read_damping(own),
        friction=own.number("frictionloss"),
        armature=own.number("armature"),
    )
    return joint, pin.SE3(np.eye(3), -anchor)


def _read_damping(own: Attributes) -> float:
    """A joint's damping, which MuJoCo lets be a polynomial of the speed."""
    values = own.numbers("damping", 8, 1) if "damping" in own else [0.0]
    if any(values[1:]):
        what = own.shown("damping")
        raise InputError(f"{what} is a polynomial; only its first number can be kept")
    return values[0]


def read_gravity(document: MjcfDocument) -> Array:
    """Gravity in the world, shape (3,) [m/s^2]."""
    gravity = np.array(GRAVITY)
    for section in document.sections("option"):
        own = Attributes(section, section.own)
        gravity = own.vector("gravity", tuple(gravity))
    weightless = [
        flag.own.get("gravity") == "disable"
        for section in document.sections("option")
        for flag in section.every("flag")
        if "gravity" in flag.own
    ]
    return np.zeros(3) if weightless and weightless[-1] else gravity


def read_body_inertias(model: MjcfTree) -> dict[str, Array]:
    """Inertial parameters of each body in its own frame, by name."""
    document = model.document
    total = document.compiler.total_mass
    counted = (*model.bodies, *(model.static if total > 0.0 else ()))
    found = {
        body.name: read_body_inertia(document, body.name, body.inertial, body.geoms, body.hidden)
        for body in counted
    }
    if total > 0.0:
        weight = sum(phi[0] for phi in found.values())
        found = {name: phi * (total / max(weight, 1e-15)) for name, phi in found.items()}
    return found


def read_model(path: Path) -> MjcfTree:
    """Read an MJCF and find its one tree of moving bodies."""
    document = read_document(path)
    bodies: list[Body] = []
    still = pin.SE3.Identity()
    world = Body(WORLD, document.root, -1, still)
    for section in document.sections("worldbody"):
        _gather_parts(document, section, world, -1, "main", still, bodies)
    _name_unnamed(bodies)
    tops: list[int] = []
    for index, body in enumerate(bodies):  # parents come first
        tops.append(index if body.parent < 0 else tops[body.parent])
    moving = {
        top for top, body in zip(tops, bodies, strict=True) if body.axes or body.free is not None
    }
    if not moving:
        raise InputError(f"{path}: the robot has no moving joint")
    if len(moving) > 1:
        trees = ", ".join(
            f"{bodies[top].name} (line {bodies[top].element.line})" for top in sorted(moving)
        )
        raise InputError(
            f"{path}: several bodies of the world move, each with a tree of its own: {trees}; "
            "leave only the robot, or put its parts into one body"
        )
    (chosen,) = moving
    own = [index for index, top in enumerate(tops) if top == chosen]
    place = {index: k for k, index in enumerate(own)}
    kept = tuple(bodies[index] for index in own)
    for body in kept:
        body.parent = place.get(body.parent, -1)
        _refuse_joints(body)
    static = tuple(body for body, top in zip(bodies, tops, strict=True) if top != chosen)
    return MjcfTree(document, kept, static)


def _gather_parts(
    document: MjcfDocument,
    element: MjcfElement,
    body: Body,
    place: int,
    childclass: str,
    around: pin.SE3,
    bodies: list[Body],
) -> None:
    """Gather what stands in a body, or in a frame of it whose placement is given."""
    for child in element.children:
        _refuse_unknown(child)
        own = document.attributes(child, childclass)
        if child.tag in ("body", "frame"):
            placement = around * document.placement(own)
            inner = child.own.get("childclass", childclass)
            document.known_class(inner, child)
            if child.tag == "frame":
                _gather_parts(document, child, body, place, inner, placement, bodies)
                continue
            new = Body(child.own.get("name", ""), child, place, placement)
            bodies.append(new)
            here = len(bodies) - 1
            _gather_parts(document, child, new, here, inner, pin.SE3.Identity(), bodies)
        elif child.tag == "joint" and own.text("type") != "free":
            body.axes.append(Axis(child.own.get("name", ""), own, around))
        elif child.tag in ("joint", "freejoint"):
            body.free = child
        elif child.tag == "geom":
            body.geoms.append((own, around))
        elif child.tag == "inertial":
            body.inertial = own
        elif child.tag == "site":
            body.sites[child.own.get("name", "")] = around * document.placement(own)
        elif child.tag in ("composite", "attach", "flexcomp", "replicate"):
            _refuse_hidden(child)
            body.hidden = child


def _refuse_unknown(element: MjcfElement) -> None:
    if element.tag.startswith("{"):
        return
    refuse_unknown(
        element.tag, PARTS, f"{element.place}: <{element.tag}> is nothing that a body has"
    )
    for key in element.own:
        if element.tag in KNOWN and key not in KNOWN[element.tag] and not key.startswith("{"):
            raise InputError(
                f"{element.place}: {element.name} has no attribute {key!r}"
                f"{suggest_nearest(key, sorted(KNOWN[element.tag]))}"
            )


def _refuse_hidden(element: MjcfElement) -> None:
    """Refuse what stands for bodies and joints that the file does not spell out."""
    if element.tag != "replicate" or any(element.inside("body", "joint", "attach")):
        raise InputError(
            f"{element.place}: <{element.tag}> makes bodies that the file does not spell out; "
            f"{EXPAND}"
        )


def _refuse_joints(body: Body) -> None:
    for axis in body.axes:
        kind = axis.own.text("type", "hinge")
        if kind not in ("hinge", "slide"):
            raise InputError(
                f"{axis.own.element.place}: joint {axis.name!r} has type {kind!r}; only hinge "
                "and slide can be identified"
            )
    if body.free is not None and (body.parent >= 0 or body.axes):
        what = "is inside another body" if body.parent >= 0 else "has other joints too"
        raise InputError(f"{body.free.place}: body {body.name!r} has a free joint and {what}")


def _name_unnamed(bodies: list[Body]) -> None:
    """Give what has no name one, and refuse names that are taken."""
    for kind, named in (
        ("body", [(each.name, each.element) for each in bodies]),
        ("joint", [(axis.name, axis.own.element) for each in bodies for axis in each.axes]),
    ):
        seen: set[str] = set()
        for name, element in named:
            if name in seen:
                raise InputError(f"{element.place}: there is a {kind} {name!r} already")
            seen |= {name} if name else set()
    taken = {body.name for body in bodies} | {WORLD}
    for number, body in enumerate(bodies, start=1):
        body.name = body.name or _find_free_name(f"body{number}", taken)
    taken = {axis.name for body in bodies for axis in body.axes}
    for body in bodies:
        for axis in body.axes:
            axis.name = axis.name or _find_free_name(f"{body.name}_joint", taken)


def _find_free_name(name: str, taken: set[str]) -> str:
    """A name that is not taken, and is from now on."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}{number}"
    taken.add(found)
    return found


def _list_unread_effects(model: MjcfTree, locked: set[str], floating: bool) -> Iterator[str]:
    """What acts on the robot in MuJoCo and has no place in a `Robot`, one line each."""
    document = model.document
    for body in model.bodies:
        for axis in body.axes:
            if axis.name in locked:
                continue
            if any(axis.own.numbers("stiffness", 8, 1) if "stiffness" in axis.own else ()) or any(
                axis.own.vector("springdamper", (0.0, 0.0))
            ):
                yield (
                    f"joint {axis.name} has a spring in the file, which is not read: model it "
                    f'with [[element]] kind = "spring", joint = "{axis.name}"'
                )
        if float(Attributes(body.element, body.element.own).number("gravcomp")) != 0.0:
            yield f"body {body.name} has gravcomp in the file, which is not read"
    for section in document.sections("option"):
        own = Attributes(section, section.own)
        if own.number("density") or own.number("viscosity"):
            yield f"{section.place}: forces of a fluid (density, viscosity) are not read"
    yield from _list_couplings(model, locked, floating)


def _list_couplings(model: MjcfTree, locked: set[str], floating: bool) -> Iterator[str]:
    """What couples joints beside the tree."""
    document = model.document
    names = {axis.name for body in model.bodies for axis in body.axes} - locked
    followers = {} if floating else find_followers(document, names)
    for each, own in list_equalities(document, "joint"):
        follows, leads = own.text("joint1"), own.text("joint2")
        if follows in names and follows not in followers:
            words = f"joint {follows} follows {leads}" if leads else f"joint holds {follows}"
            yield (
                f"{each.name} ({each.place}): {words}; it is taken as a joint of its own, "
                f"so its motion must be in the log, or lock it: locked = {{ {follows} = 0.0 }}"
            )
    for each, _ in list_equalities(document, "tendon"):
        yield f"{each.name} ({each.place}): couples joints by tendons, which are not read"
    for each, _ in list_equalities(document, "flex", "flexvert", "flexstrain", "distance"):
        raise InputError(f"{each.place}: {each.name} cannot be read; take it out")
    for section in document.sections("tendon"):
        for each in section.children:
            joints = {part.own.get("joint", "") for part in each.every("joint")}
            own = document.attributes(each, kind="tendon")
            acts = [
                key
                for key in ("stiffness", "damping", "frictionloss", "armature")
                if key in own and any(own.numbers(key, 8, 1))
            ]
            if acts and (not joints or joints & names):
                yield (
                    f"{each.name} ({each.place}): has {' and '.join(acts)} over several joints, "
                    "which is not read"
                )
    for each in (e for section in document.sections("actuator") for e in section.children):
        target = next(
            (key for key in ("tendon", "cranksite", "site", "body") if key in each.own), ""
        )
        if target:
            yield f"{each.name} ({each.place}): acts on a {target}, so no joint's limit is known"
    for section in document.sections("deformable"):
        for each in section.every("flex"):
            raise InputError(f"{each.place}: {each.name} is not a rigid body; take it out")


def is_mjcf(robot: Robot) -> bool:
    """Whether a robot came from an MJCF."""
    path = robot.source
    return (
        path is not None
        and path.suffix.lower() == ".xml"
        and parse_xml(path).getroot().tag == "mujoco"
    )


def list_model_files(robot: Robot) -> tuple[Path, ...]:
    """The file that a robot came from, and those that it includes."""
    if robot.source is None or not is_mjcf(robot):
        return () if robot.source is None else (robot.source,)
    return (robot.source, *read_document(robot.source).includes.values())
