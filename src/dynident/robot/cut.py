"""A limb cut off at a force/torque sensor: the subtree beyond, with the sensor as its base.

The base of the limb moves as its carrier says, and the sensor measures the wrench on it: its
equations are those of a floating robot (the notes on FloBaRoID: "the arms were 'cut' at the
position of the 6 DOF F/T sensors").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array, freeze_array
from dynident.core.errors import InputError, refuse_unknown
from dynident.robot.drives import Drives
from dynident.robot.geometry import freeze_placement, load_urdf_model
from dynident.robot.model import Contact, Joint, Robot


@dataclass(frozen=True)
class SensorCut:
    """Where a robot is cut at a sensor."""

    path: Path
    seat: Contact
    """The sensor on the body that carries it, in the axes of the link that it holds."""
    numbers: tuple[int, ...]
    """Of the joints beyond."""
    inertia: Array
    """Of what the sensor holds and no joint beyond moves, in the sensor's frame, shape (10,)."""
    links: frozenset[str]
    """Those beyond."""


def locate_cut(robot: Robot, frame: str, name: str | None = None) -> SensorCut:
    """What a sensor at a link holds; see `cut_off_limb`."""
    urdf = load_urdf_model(robot, "at whose links it could be cut")
    path, model, frames = urdf.path, urdf.model, urdf.frames
    refuse_unknown(frame, frames, f"{path}: there is no link {frame!r} to cut at")
    hanging = find_frames_beyond(model, frames[frame])
    seat = model.frames[frames[frame]]
    # a fixed joint has its link's frame
    link = next(model.frames[k].name for k in sorted(hanging) if model.frames[k].name in urdf.links)
    root = urdf.placements[seat.parentJoint] * seat.placement
    base = urdf.carriers[seat.parentJoint]
    beyond = [
        joint
        for joint in urdf.moving
        if joint != base
        and int(model.getFrameId(model.names[joint])) in hanging
        and not (robot.floating and joint == 1)
    ]
    inertia = np.zeros(10)
    for joint, placement, own in list_held_inertias(model, frames[frame], hanging):
        if urdf.carriers[joint] not in beyond:
            placed = root.actInv(urdf.placements[joint] * placement)
            inertia += placed.act(own).toDynamicParameters()
    numbers = tuple(robot.numbers[urdf.moving.index(joint)] for joint in beyond)
    turns = robot.drives.turns
    own = [number - 1 for number in numbers]
    rest_of = [k for k in range(robot.n) if k not in own]
    if np.any(turns[np.ix_(own, rest_of)]) or np.any(turns[np.ix_(rest_of, own)]):
        raise InputError(f"{path}: a coupled drive acts on both sides of {frame}; cut elsewhere")
    body = robot.numbers[urdf.moving.index(base)] if base else 0
    on = Contact(name or frame, link, body, *freeze_placement(urdf.place(seat)))
    links = frozenset(model.frames[k].name for k in hanging)
    return SensorCut(path, on, numbers, freeze_array(inertia), links)


def cut_off_limb(robot: Robot, frame: str, name: str | None = None) -> Robot:
    """The part of a robot beyond a sensor, as a floating robot with the sensor as its contact.

    The frame is the link that the sensor holds, and names the sensor in the log's columns
    (``fx_<name>``) where no name is given. Of the limb it is the base link, its first contact the
    sensor, whose wrench acts on it; its motion comes from logs of the whole robot, its `carrier`.
    """
    found = locate_cut(robot, frame, name)
    order = {number: new for new, number in enumerate(found.numbers, start=1)}
    joints, nominal = [], [found.inertia]
    for number in found.numbers:
        joint = robot.joints[number - 1]
        parent = order.get(joint.parent, 0)
        if parent == 0:
            rotation, translation = place_behind(found.seat, joint)
            joint = replace(joint, rotation=rotation, translation=translation)
        joints.append(replace(joint, parent=parent))
        nominal.append(robot.nominal[robot.body_index(number)])
    further = []
    for contact in robot.contacts:
        if contact.frame in found.links and contact.body in order:
            further.append(replace(contact, body=order[contact.body]))
        elif contact.frame in found.links:
            rotation, translation = place_behind(found.seat, contact)
            further.append(replace(contact, body=0, rotation=rotation, translation=translation))
    link = found.seat.frame
    sensor = Contact(found.seat.name, link, 0, freeze_array(np.eye(3)), freeze_array(np.zeros(3)))
    return Robot(
        name=f"{robot.name} beyond {link}",
        joints=tuple(joints),
        nominal=freeze_array(np.array(nominal)),
        drives=Drives.direct(len(joints)),
        floating=True,
        base_link=link,
        gravity=robot.gravity,
        source=robot.source,
        contacts=(sensor, *further),
        carrier=robot,
        seat=found.seat,
    )


def add_sensor(robot: Robot, limb: Robot) -> Robot:
    """The robot with the wrench at the sensor of a limb beside its own equations of motion.

    Where the sensor is inside of a body, what it holds of this is a body more, behind all others.
    """
    if limb.base_link in [each.base_link for each in robot.limbs]:
        raise InputError(f"{robot.name}: sensor {limb.base_link} is there twice")
    for each in robot.parts:
        if each.seat is not None and limb.seat is not None and each.seat.body == limb.seat.body:
            raise InputError(
                f"{robot.name}: sensors {each.base_link} and {limb.base_link} are in one body; "
                "leave one of them out"
            )
    found = replace(robot, limbs=(*robot.limbs, limb))
    if limb not in found.parts:
        return found
    return replace(found, nominal=freeze_array(np.vstack([robot.nominal, limb.nominal[:1]])))


def place_behind(seat: Contact, item: Joint | Contact) -> tuple[Array, Array]:
    """Placement in a sensor's frame of what is on the same body: rotation and translation."""
    on = pin.SE3(seat.rotation, seat.translation)
    return freeze_placement(on.actInv(pin.SE3(item.rotation, item.translation)))


def list_held_inertias(
    model: pin.Model, root: int, hanging: set[int]
) -> list[tuple[int, pin.SE3, pin.Inertia]]:
    """Inertias of what hangs on a link: joints, and where on these.

    Joints have all that is fixed to them; what of the link's own joint hangs on the link is with
    the frames of the fixed joints.
    """
    seat = model.frames[root]
    if model.frames[seat.parentFrame].type == pin.FrameType.JOINT:
        whole, parts = {seat.parentJoint}, set()
    else:
        whole, parts = set(), {seat.parentFrame, *hanging}
    whole |= {model.frames[k].parentJoint for k in hanging} - {seat.parentJoint}
    own = [model.frames[k] for k in parts if model.frames[k].parentJoint == seat.parentJoint]
    return [
        *((joint, pin.SE3.Identity(), model.inertias[joint]) for joint in whole),
        *((each.parentJoint, each.placement, each.inertia) for each in own),
    ]


def find_frames_beyond(model: pin.Model, root: int) -> set[int]:
    """Frames that hang on one, itself among them."""
    hanging = {root}
    for k in range(root + 1, len(model.frames)):
        if int(model.frames[k].parentFrame) in hanging:
            hanging.add(k)
    return hanging
