"""Identified parameters into MJCF: the robot's own document patched, or a fresh one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pinocchio as pin
from lxml import etree

from dynident.core.arrays import Array, Integers
from dynident.core.errors import ComputationError, InputError
from dynident.core.inertia import to_com, transform_body
from dynident.dynamics.idim import Idim
from dynident.dynamics.mass import compute_mass_matrix
from dynident.export.exported import (
    check_bodies,
    describe_massless,
    describe_omissions,
    format_exact_number,
    format_exact_numbers,
    format_joint_attributes,
    is_coupled_alone,
    name_base,
    select_drive_values,
    subtract_carried,
)
from dynident.export.servo import GAP, Servo, describe_servos, encoder_element
from dynident.export.softness import SERVO_TIMESTEP, TIMESTEP, choose_impedance, derive_softness
from dynident.export.xml_text import XmlText
from dynident.friction.gap import ONSET, SETTLING, STIFFNESS
from dynident.robot.load import find_carrying_joints
from dynident.robot.mjcf import (
    Body,
    Placed,
    assemble_joints,
    is_mjcf,
    read_body_inertias,
    read_gravity,
    read_model,
)
from dynident.robot.mjcf_document import Attributes, Compiler, MjcfDocument, MjcfElement
from dynident.robot.mjcf_loops import CUBIC
from dynident.robot.model import Joint, KinematicLoop, Robot

ADJUSTING = ("settotalmass", "boundmass", "boundinertia", "balanceinertia")
"""What the compiler may do to inertials; a file that states them all goes without."""
STATED = ("quat", "axisangle", "xyaxes", "zaxis", "euler", "diaginertia")
"""What an ``<inertial>`` with a full inertia does not have."""
DRAWN = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "texture": "texturedir"}
"""Elements that name a file, and the setting that says where it is."""


@dataclass(frozen=True)
class Motor:
    """A drive that turns with several joints: in MuJoCo a fixed tendon over them."""

    name: str
    turns: Mapping[str, float]
    """How it turns with each joint."""
    values: Mapping[str, str]
    """The tendon's armature, damping and frictionloss."""

    @property
    def element(self) -> etree._Element:
        """The tendon."""
        tendon = etree.Element("fixed", {"name": self.name, **self.values})
        for joint, turn in self.turns.items():
            etree.SubElement(tendon, "joint", joint=joint, coef=format_exact_number(turn))
        return tendon


def name_motor(joint: str) -> str:
    """Name of the tendon that stands for a joint's motor."""
    return f"motor_{joint}"


def render_mjcf(
    robot: Robot,
    phi: npt.ArrayLike,
    *,
    armature: npt.ArrayLike | None = None,
    damping: npt.ArrayLike | None = None,
    friction: npt.ArrayLike | None = None,
    motors: Sequence[Motor] = (),
    soft: Sequence[dict[str, str]] = (),
    servos: Sequence[Servo] = (),
    gaps: Mapping[int, dict[str, str]] = MappingProxyType({}),
    omitted: Sequence[str] = (),
    folder: Path | None = None,
) -> tuple[bytes, tuple[str, ...]]:
    """An MJCF with identified parameters: the robot's own patched, or a fresh one.

    Parameters
    ----------
    phi : array_like, shape (bodies, 10)
        Inertial parameters about the joint frames, of everything fixed to each body.
    armature, damping, friction : array_like, shape (n,), optional
        Rotor inertia, viscous and Coulomb friction of the joints [kg m^2 or kg, Nm s/rad or
        N s/m, Nm or N]; NaN (or None) where a joint has none of its own: what its file says of
        it stays.
    motors : sequence of Motor
        Drives that turn with several joints.
    soft : sequence of dict of str to str
        Of each joint: how soft its friction loss is; MuJoCo's own softness when left out.
    servos : sequence of Servo
        Of each joint of a robot without an MJCF; motors that take torques when left out.
    gaps : mapping of int to dict of str to str
        Attributes of joints behind those of servos, by place.
    omitted : sequence of str
        What else was identified and has no place in an MJCF; named in the notes.
    folder : Path, optional
        Where the document will stand, so that it finds the files it names; beside the robot's
        own when left out.

    Returns
    -------
    document : bytes
    notes : tuple of str
        What a reader of the document should know.
    """
    values = check_bodies(robot, phi, "MJCF")
    given = {"armature": armature, "damping": damping, "frictionloss": friction}
    attributes = format_joint_attributes(robot, given)
    if soft:
        attributes = [own | more for own, more in zip(attributes, soft, strict=True)]
    if is_mjcf(robot):
        document, notes = patch_mjcf(robot, values, attributes, motors, folder)
    else:
        document, notes = render_fresh_mjcf(robot, values, attributes, motors, servos, gaps)
    said = describe_servos(servos, robot.joint_names)
    return document, (*notes, *describe_omissions(omitted, "MJCF"), *said)


def patch_mjcf(
    robot: Robot,
    phi: Array,
    attributes: Sequence[dict[str, str]],
    motors: Sequence[Motor] = (),
    folder: Path | None = None,
) -> tuple[bytes, tuple[str, ...]]:
    """The robot's MJCF with other inertials and joint attributes; all else stays as it is written.

    Bodies without joints, and those behind locked ones, keep their inertia where what is left
    for the body that carries them is physically consistent; otherwise they become massless. What
    a fixed base consists of is left alone. A file that is included and changes is put in the
    place of its ``<include>``.

    `phi`, shape (bodies, 10). `attributes`: of each joint. `folder`: where the document will stand.
    """
    assert robot.source is not None
    model = read_model(robot.source)
    patch = Patch(model.document)
    joints, placed = assemble_joints(model, robot.floating)
    _refuse_changed(robot, joints)
    whole = Robot("", tuple(joints), np.zeros((0, 10)), robot.drives, robot.floating)
    frames = find_carrying_joints(whole, robot.locked)
    # of each body in the frame of the moving joint that carries it
    places: dict[str, Placed] = {}
    for body, (carrier, at) in zip(model.bodies, placed):
        number, frame = frames[carrier]
        places[body.name] = number, frame * at
    compiler = model.document.compiler
    notes = []
    explicit = compiler.from_geoms == "true" or _adjusts_inertials(compiler)
    nominal = read_body_inertias(model)
    for number, values in enumerate(phi, start=1 - robot.floating):
        members = [body for body in model.bodies if places[body.name][0] == number]
        notes += _patch_link(patch, values, members, places, nominal, explicit)
    axes = {axis.name: axis.own.element for body in model.bodies for axis in body.axes}
    for joint, own in zip(robot.joints, attributes, strict=True):
        patch.set(axes[joint.name], own)
    parted = [
        note for body in model.bodies for note in _split_body(patch, body, robot, phi, places)
    ]
    if parted:  # bodies are numbered otherwise from now on
        for body in model.bodies:
            patch.set(body.element, {"name": body.name} if "name" not in body.element.own else {})
    notes += parted
    _write_motors(patch, motors)
    notes += _write_gravity(patch, robot)
    if explicit:
        notes += _reset_compiler(patch, compiler)
    if folder is not None:
        _relocate_files(patch, robot.source.parent, folder)
    inlined = patch.inlined()
    if inlined:
        names = ", ".join(path.name for path in inlined)
        notes.append(f"stands in the document now, as it changed: {names}")
    return patch.document_bytes(), tuple(notes)


class Patch:
    """Changes to an MJCF and the files that it includes."""

    def __init__(self, document: MjcfDocument) -> None:
        self.document = document
        files = dict.fromkeys((document.path, *document.includes.values()))
        self.texts = {path: XmlText(path) for path in files}

    def text(self, element: MjcfElement) -> XmlText:
        """The text that an element stands in."""
        return self.texts[element.file]

    def set(self, element: MjcfElement, values: dict[str, str], drop: Sequence[str] = ()) -> None:
        """Give an element attributes, and take some away."""
        self.text(element).set(element.index, values, drop)

    def inlined(self) -> tuple[Path, ...]:
        """Included files that change, or include one that does."""
        changed = {path for path, text in self.texts.items() if text.changed}
        for _ in self.texts:  # as deep as they may be nested
            changed |= {p for (p, _), inner in self.document.includes.items() if inner in changed}
        return tuple(path for path in self.document.includes.values() if path in changed)

    def document_bytes(self) -> bytes:
        """The main file with what changed in it and in the files that it includes."""
        inlined = self.inlined()
        # inner files come after those that include them
        for (path, index), inner in reversed(list(self.document.includes.items())):
            if inner in inlined:
                content = self.texts[inner].content(0).strip()
                self.texts[path].replace(index, content)
        return self.texts[self.document.path].whole()


def _refuse_changed(robot: Robot, joints: Sequence[Joint]) -> None:
    names = [joint.name for joint in joints if joint.name not in robot.locked]
    if names != list(robot.joint_names) or not set(robot.locked) <= {j.name for j in joints}:
        raise InputError(
            f"{robot.source}: its joints are no longer those of the robot; was it changed since?"
        )


def _transform_by(placement: pin.SE3, phi: Array) -> Array:
    return transform_body(phi, placement.rotation, placement.translation)


def _patch_link(
    patch: Patch,
    phi: Array,
    members: Sequence[Body],
    places: dict[str, Placed],
    nominal: dict[str, Array],
    explicit: bool,
) -> list[str]:
    """Write what a link consists of: the first of its bodies takes what the others leave."""
    if not members:
        return []  # the first joints of a body with several
    host, *others = members
    rest = subtract_carried(
        phi, [_transform_by(places[b.name][1], nominal[b.name]) for b in others]
    )
    keeps = rest is not None
    for body in others:
        if np.any(nominal[body.name]) and (explicit or not keeps):
            _write_inertial(patch, body, keeps * nominal[body.name])
    own = phi if rest is None else rest
    _write_inertial(patch, host, _transform_by(places[host.name][1].inverse(), own))
    gone = {} if keeps else {body.name: nominal[body.name] for body in others}
    return describe_massless(f"body {host.name}", gone)


def _format_inertial(phi: Array) -> dict[str, str]:
    """Attributes of an ``<inertial>``."""
    mass, com, inertia = to_com(phi)
    xx, xy, xz, yy, yz, zz = inertia[np.triu_indices(3)]
    size = {"pos": format_exact_numbers(com), "mass": format_exact_number(mass)}
    if not np.any(phi):
        return size
    return size | {"fullinertia": format_exact_numbers([xx, yy, zz, xy, xz, yz])}


def _write_inertial(patch: Patch, body: Body, phi: Array) -> None:
    values = _format_inertial(phi)
    if body.inertial is not None:
        drop = STATED if "fullinertia" in values else (*STATED, "fullinertia")
        patch.set(body.inertial.element, values, drop)
        return
    patch.text(body.element).insert(body.element.index, _render_element("inertial", values))


def _render_element(tag: str, attributes: dict[str, str]) -> str:
    return etree.tostring(etree.Element(tag, attributes), encoding="unicode")


def _write_motors(patch: Patch, motors: Sequence[Motor]) -> None:
    document = patch.document
    there = {
        tendon.own.get("name"): tendon
        for section in document.sections("tendon")
        for tendon in section.every("fixed")
    }
    fresh = etree.Element("tendon")
    for motor in motors:
        if motor.name in there:
            patch.set(there[motor.name], dict(motor.values))
        else:
            fresh.append(motor.element)
    if len(fresh):
        etree.indent(fresh)
        text = etree.tostring(fresh, encoding="unicode")
        patch.text(document.root).append(document.root.index, text)


def _write_gravity(patch: Patch, robot: Robot) -> list[str]:
    """The robot's gravity, where it is not the file's."""
    document = patch.document
    if np.allclose(read_gravity(document), robot.gravity, rtol=0.0, atol=1e-12):
        return []
    vector = format_exact_numbers(robot.gravity)
    sections = list(document.sections("option"))
    for flag in (flag for section in sections for flag in section.every("flag")):
        if "gravity" in flag.own:
            patch.set(flag, {"gravity": "enable"})
    if sections:
        patch.set(sections[-1], {"gravity": vector})
    else:
        line = _render_element("option", {"gravity": vector})
        patch.text(document.root).insert(document.root.index, line)
    return [f"gravity is the robot's in the MJCF, not its file's: {vector}"]


def _split_body(
    patch: Patch, body: Body, robot: Robot, phi: Array, places: dict[str, Placed]
) -> list[str]:
    """Bodies around one with several joints, where a joint but the last moves a mass."""
    links = dict(zip(robot.links, phi, strict=True))
    own = places[body.name][0]
    heavy = [
        k
        for k, axis in enumerate(body.axes[:-1])
        if np.any(links.get(name := f"{body.name}/{axis.name}", 0.0))
        and robot.links.index(name) + 1 - robot.floating != own
    ]
    if not heavy:
        return []
    text = patch.text(body.element)
    placement = {
        key: value for key, value in body.element.own.items() if key in ("pos", *STATED[:-1])
    }
    childclass = {k: v for k, v in body.element.own.items() if k == "childclass"}
    opened: list[str] = []
    first = 0
    for k in heavy:
        name = f"{body.name}/{body.axes[k].name}"
        lines = [
            _render_element("body", {"name": name} | placement | childclass).replace("/>", ">")
        ]
        anchor = np.array([float(x) for x in body.axes[k].own.text("pos", "0 0 0").split()])
        anchor = anchor if body.axes[k].own.text("type", "hinge") == "hinge" else np.zeros(3)
        lines.append(
            "  "
            + _render_element(
                "inertial", _format_inertial(transform_body(links[name], np.eye(3), anchor))
            )
        )
        for axis in body.axes[first : k + 1]:
            element = axis.own.element
            if element not in body.element.children or element.file != body.element.file:
                raise InputError(
                    f"{element.place}: joint {axis.name!r} moves a mass of its own, but stands in "
                    f"a frame; put it into body {body.name!r} itself"
                )
            lines.append("  " + " ".join(text.take(element.index).split()))
        opened += lines
        first, placement = k + 1, {}
    text.set(body.element.index, {}, ("pos", *STATED[:-1]))
    text.around(body.element.index, "\n".join(opened), "\n".join("</body>" for _ in heavy))
    return [f"body {body.name} has several joints: those before the last move bodies of their own"]


def _adjusts_inertials(compiler: Compiler) -> bool:
    return (
        compiler.total_mass > 0.0
        or compiler.least_mass > 0.0
        or compiler.least_inertia > 0.0
        or compiler.balance
    )


def _reset_compiler(patch: Patch, compiler: Compiler) -> list[str]:
    """Have the compiler take the inertials as they are."""
    dropped: dict[str, None] = {}
    for section in patch.document.sections("compiler"):
        gone = [key for key in ADJUSTING if key in section.own]
        values = {"inertiafromgeom": "auto"} if "inertiafromgeom" in section.own else {}
        patch.set(section, values, gone)
        dropped |= dict.fromkeys(gone)
    if compiler.from_geoms == "true":
        dropped["inertiafromgeom"] = None
    return [f"every moving body states its inertia, without the compiler's {', '.join(dropped)}"]


def _relocate_files(patch: Patch, old: Path, new: Path) -> None:
    """Name meshes, textures and included files as they are seen from another folder."""
    if old.resolve() == new.resolve():
        return
    document = patch.document
    way = Path(os.path.relpath(old.resolve(), new.resolve()))
    # textures of cubes name a file for each side: fileright, ...
    assets = [e for e in document.root.inside(*DRAWN) if any(k.startswith("file") for k in e.own)]
    needed = dict.fromkeys(DRAWN[each.tag] for each in assets)
    settings: dict[str, str] = {}
    for section in document.sections("compiler"):
        if "assetdir" in section.own:
            settings |= dict.fromkeys(("meshdir", "texturedir"), section.own["assetdir"])
        settings |= {key: text for key, text in section.own.items() if key in needed}
    moved = {key: str(way / settings.get(key, "")) for key in needed}
    sections = list(document.sections("compiler"))
    if moved and sections:
        patch.set(sections[-1], moved)
    elif moved:
        patch.text(document.root).insert(document.root.index, _render_element("compiler", moved))
    inlined = patch.inlined()
    for (path, index), inner in document.includes.items():
        if inner not in inlined and (path == document.path or path in inlined):
            seen = os.path.relpath(inner.resolve(), new.resolve())
            patch.texts[path].set(index, {"file": seen})


def render_fresh_mjcf(
    robot: Robot,
    phi: Array,
    attributes: Sequence[dict[str, str]],
    motors: Sequence[Motor] = (),
    servos: Sequence[Servo] = (),
    gaps: Mapping[int, dict[str, str]] = MappingProxyType({}),
) -> tuple[bytes, tuple[str, ...]]:
    """A fresh minimal MJCF of a robot that has none: bodies, joints, limits, motors or servos.

    Joints that follow others do so by equalities; other loops are refused. Parameters and returns
    are those of `render_mjcf`.
    """
    if not is_coupled_alone(robot, CUBIC - 1):
        robot.refuse_loops("a fresh MJCF")
    for name, values in zip(robot.links, phi, strict=True):
        if values[0] == 0.0:
            raise ComputationError(f"link {name}: has no mass, and MuJoCo moves none without")
    root = etree.Element("mujoco", model=robot.name)
    etree.SubElement(root, "compiler", angle="radian", autolimits="true")
    option = etree.SubElement(root, "option", gravity=format_exact_numbers(robot.gravity))
    if servos:  # their damping is implicit there
        option.set("integrator", "implicitfast")
        option.set("timestep", format_exact_number(SERVO_TIMESTEP))
    world = etree.SubElement(root, "worldbody")
    base = etree.SubElement(world, "body", name=name_base(robot))
    if robot.floating:
        etree.SubElement(base, "freejoint")
        etree.SubElement(base, "inertial", _format_inertial(phi[0]))
    bodies = [base]
    actuators = etree.Element("actuator")
    for j, (joint, own, values) in enumerate(
        zip(robot.joints, attributes, phi[int(robot.floating) :], strict=True)
    ):
        x, y, z, w = pin.Quaternion(np.array(joint.rotation)).coeffs()
        body = etree.SubElement(
            bodies[joint.parent],
            "body",
            name=joint.link,
            pos=format_exact_numbers(joint.translation),
            quat=format_exact_numbers([w, x, y, z]),
        )
        bodies.append(body)
        etree.SubElement(body, "inertial", _format_inertial(values))
        words = _format_joint(joint)
        etree.SubElement(body, "joint", words | own)
        if j in gaps:
            etree.SubElement(body, "joint", words | {"name": joint.name + GAP} | gaps[j])
        if servos or robot.passive[j]:
            continue
        limit = {}
        if np.isfinite(joint.effort):
            limit = {"ctrlrange": format_exact_numbers([-joint.effort, joint.effort])}
        etree.SubElement(actuators, "motor", {"name": joint.name, "joint": joint.name} | limit)
    actuators.extend([s.element(n) for s, n in zip(servos, robot.joint_names, strict=False)])
    tendons = [motor.element for motor in motors]
    tendons += [encoder_element(robot.joint_names[j]) for j in gaps]
    if tendons:
        etree.SubElement(root, "tendon").extend(tendons)
    if robot.loops:
        etree.SubElement(root, "equality").extend(map(partial(render_coupling, robot), robot.loops))
    root.append(actuators)
    etree.indent(root)
    text = etree.tostring(root, encoding="unicode").encode() + b"\n"
    if robot.source is None or robot.source.suffix.lower() == ".toml":
        return text, ()
    return text, (f"shapes and meshes of {robot.source.name} are not in the MJCF",)


def render_coupling(robot: Robot, loop: KinematicLoop) -> etree._Element:
    """A joint that follows another; joints are at zero where the bodies are placed."""
    follows, leads = (robot.joint_names[k - 1] for k in loop.bodies)
    law = (*loop.polynomial, *(0.0,) * (CUBIC - len(loop.polynomial)))
    coupled = {"joint1": follows, "joint2": leads, "polycoef": format_exact_numbers(law)}
    return etree.Element("joint", {"name": loop.name} | coupled)


def _format_joint(joint: Joint) -> dict[str, str]:
    values = {
        "name": joint.name,
        "type": "hinge" if joint.kind == "revolute" else "slide",
        "axis": format_exact_numbers(joint.axis),
    }
    if np.isfinite(joint.lower) or np.isfinite(joint.upper):
        ends = np.clip([joint.lower, joint.upper], -1e8, 1e8)
        values["range"] = format_exact_numbers(ends)
    return values


def invert_mass(idim: Idim, theta: Array, parted: Integers) -> Array:
    """Inverse mass matrix at q = 0 of motors, then of the gaps behind those that are parted.

    Shape (n + k, n + k), of k joints whose motor moves apart from the link.
    """
    robot, dof = idim.robot, idim.tree.dof
    first, q = dof - robot.n, np.zeros((1, robot.dof + robot.floating))
    if robot.floating:
        q[0, 6] = 1.0
    links = compute_mass_matrix(idim.tree, idim.split(theta)[0], q)[0]
    moved = np.hstack([np.eye(dof), np.eye(dof)[:, first + parted]])
    M = moved.T @ links @ moved
    M[:dof, :dof] += idim.rotors(theta)
    return np.asarray(np.linalg.inv(M)[first:, first:])


def format_friction_softness(
    inverse: Array, width: npt.ArrayLike, friction: Array, turns: Array, timestep: float
) -> list[dict[str, str]]:
    """Attributes of joints or tendons by which friction loss has the rise of a smoothed sign.

    Parameters
    ----------
    inverse : ndarray, shape (n, n)
        Inverse mass matrix of the joints.
    width : array_like, shape () or (n,)
        ``fc tanh(v / width)`` [rad/s or m/s].
    friction : ndarray, shape (k,)
        Friction loss; NaN for none [Nm or N].
    turns : ndarray, shape (k, n)
        How each turns with the joints.
    timestep : float
        Of the document [s].
    """
    own = np.einsum("ki,ij,kj->k", turns, inverse, turns)
    widths = np.full(len(turns), width, dtype=float)
    found = derive_softness(np.nan_to_num(friction), widths, own, timestep)
    return [
        {
            "solreffriction": format_exact_numbers([0.0, -b]),
            "solimpfriction": format_exact_numbers([d, d, 1e-3, 0.5, 2.0]),
        }
        if b > 0.0
        else {}
        for d, b in zip(*found, strict=True)
    ]


def format_gaps(
    servos: Sequence[Servo], inverse: Array, parted: Integers
) -> dict[int, dict[str, str]]:
    """Attributes of joints behind the servos', between stops as stiff as a lost motion's flanks.

    By the place of the servo. `inverse`: diagonal of the inverse mass matrix of these joints.
    """
    found = choose_impedance(STIFFNESS * SETTLING * inverse, SERVO_TIMESTEP)
    half = [0.5 * (servos[j].backlash + ONSET) for j in parted]
    return {
        int(j): {
            "range": format_exact_numbers([-end, end]),
            "solreflimit": format_exact_numbers([-b / SETTLING, -b]),
            "solimplimit": format_exact_numbers([d, d, 1e-3, 0.5, 2.0]),
        }
        for j, end, d, b in zip(parted, half, *found, strict=True)
    }


def read_time_step(robot: Robot) -> float:
    """Of the simulation, as a robot's MJCF has it; MuJoCo's own of other robots [s]."""
    if not is_mjcf(robot):
        return TIMESTEP
    assert robot.source is not None
    sections = read_model(robot.source).document.sections("option")
    step = TIMESTEP
    for section in sections:
        step = Attributes(section, section.own).number("timestep", step)
    return step


def render_identified_mjcf(
    idim: Idim,
    theta: Array,
    folder: Path | None = None,
    width: npt.ArrayLike | None = None,
    servos: Sequence[Servo] = (),
) -> tuple[bytes, tuple[str, ...]]:
    """The MJCF of standard parameters, and notes on what has no place in one.

    Parameters
    ----------
    theta : ndarray, shape (standard parameters,)
    folder : Path, optional
        Where the document will stand.
    width : array_like, shape () or (n,), optional
        Of the smoothed sign that friction was identified with: friction loss gets its softness
        [rad/s or m/s].
    servos : sequence of Servo
        See `render_mjcf`; they bear the offsets.
    """
    idim, theta = idim.without_sensors(theta)
    robot, kept = idim.robot, ("Ia", "fv", "fc")
    armature, damping, friction = (select_drive_values(idim, theta, symbol) for symbol in kept)
    of_motor = ("Iam", "fvm", "fcm")
    own = np.array([select_drive_values(idim, theta, symbol) for symbol in of_motor])
    soft: list[dict[str, str]] = [{}] * robot.n
    of_motors = soft
    n, parted = robot.n, np.flatnonzero([servo.backlash > 0.0 for servo in servos])
    gaps: dict[int, dict[str, str]] = {}
    if width is not None or len(parted):
        h = SERVO_TIMESTEP if servos else read_time_step(robot)
        inverse, turns = invert_mass(idim, theta, parted), robot.drives.turns
        gaps = format_gaps(servos, np.diag(inverse)[n:], parted)
    if width is not None:
        soft = format_friction_softness(inverse[:n, :n], width, friction, np.eye(n), h)
        of_motors = format_friction_softness(inverse[:n, :n], width, own[2], turns, h)
    motors = []
    for k in np.flatnonzero(np.any(np.isfinite(own), axis=0)):
        turns = robot.drives.turns[k]
        given = zip(("armature", "damping", "frictionloss"), own[:, k], strict=True)
        motors.append(
            Motor(
                name_motor(robot.joint_names[k]),
                {robot.joint_names[j]: float(turns[j]) for j in np.flatnonzero(turns)},
                {name: format_exact_number(value) for name, value in given if np.isfinite(value)}
                | of_motors[k],
            )
        )
        # its inertia is the tendon's
        armature[k] = 0.0 if np.isfinite(own[0, k]) else armature[k]
    document, notes = render_mjcf(
        robot,
        idim.split(theta)[0],
        armature=armature,
        damping=damping,
        friction=friction,
        motors=motors,
        soft=soft,
        servos=servos,
        gaps=gaps,
        omitted=[
            p.name
            for p in idim.drives
            if p.symbol not in kept + of_motor and not (servos and p.symbol == "off")
        ],
        folder=folder,
    )
    return document, (*notes, *describe_split_motors(idim, theta))


def describe_split_motors(idim: Idim, theta: Array) -> tuple[str, ...]:
    """The note on motors whose inertia couples joints of which none carries the other.

    MuJoCo's mass matrix has the sparsity of the tree, and drops it.
    """
    robot, known = idim.robot, dict(zip(idim.names, theta, strict=True))
    carriers = [robot.list_carriers(j) for j in range(robot.n)]
    split = [
        f"Iam{gear.number}"
        for gear in idim.gears
        if gear.coupled
        and known.get(f"Iam{gear.number}", 0.0) != 0.0
        and any(
            i not in carriers[j] and j not in carriers[i]
            for i in np.flatnonzero(gear.turns)
            for j in np.flatnonzero(gear.turns)
        )
    ]
    if not split:
        return ()
    return (
        f"{', '.join(split)}: MuJoCo's mass matrix has no place for what couples joints on "
        "several branches, and takes the rest",
    )
