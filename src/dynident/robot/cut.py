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
from dynident.core.errors import InputError
from dynident.core.text import suggest_nearest
from dynident.robot.drives import Drives
from dynident.robot.geometry import list_moving_joints, load_urdf_model, place_joints
from dynident.robot.model import Contact, Robot


@dataclass(frozen=True)
class Cut:
    """Where a robot is cut at a sensor.

    Attributes
    ----------
    path : Path
        The robot's URDF.
    seat : Contact
        The sensor on the body that carries it, in the axes of the link that it holds.
    numbers : tuple of int
        Of the joints beyond.
    inertia : ndarray, shape (10,)
        Of what the sensor holds and no joint beyond moves, in the sensor's frame.
    links : frozenset of str
        Those beyond.
    """

    path: Path
    seat: Contact
    numbers: tuple[int, ...]
    inertia: Array
    links: frozenset[str]


def locate_cut(robot: Robot, frame: str, name: str | None = None) -> Cut:
    """What a sensor at a link holds.

    Parameters
    ----------
    robot, frame, name
        See `cut_off_limb`.
    """
    path, _, model, carriers = load_urdf_model(robot, "at whose links it could be cut")
    links = {each.name: k for k, each in enumerate(model.frames) if each.name not in model.names}
    if frame not in links:
        raise InputError(
            f"{path}: there is no link {frame!r} to cut at{suggest_nearest(frame, links)}"
        )
    hanging = find_frames_beyond(model, links[frame])
    placements = place_joints(model, robot)
    moving = list_moving_joints(carriers)
    seat = model.frames[links[frame]]
    root = placements[int(seat.parentJoint)] * seat.placement
    base = carriers[int(seat.parentJoint)]
    chosen = [
        k
        for k, joint in enumerate(moving)
        if joint != base and bool(hanging & {find_joint_frame(model, joint)})
        and not (robot.floating and joint == 1)
    ]  # fmt: skip
    inside = {moving[k] for k in chosen}
    inertia = np.zeros(10)
    for k in hanging:
        each = model.frames[k]
        if carriers[int(each.parentJoint)] not in inside:
            placed = root.inverse() * placements[int(each.parentJoint)] * each.placement
            inertia += placed.act(each.inertia).toDynamicParameters()
    offset = 0 if robot.floating else 1
    numbers = tuple(k + offset for k in chosen)
    turns = robot.drives.turns
    own = [number - 1 for number in numbers]
    rest_of = [k for k in range(robot.n) if k not in own]
    if np.any(turns[np.ix_(own, rest_of)]) or np.any(turns[np.ix_(rest_of, own)]):
        raise InputError(f"{path}: a coupled drive acts on both sides of {frame}; cut elsewhere")
    on = (placements[base].inverse() * root) if base in moving else root
    body = moving.index(base) + offset if base in moving else 0
    at = freeze_array(on.rotation), freeze_array(on.translation)
    names = frozenset(model.frames[k].name for k in hanging)
    return Cut(
        path, Contact(name or frame, frame, body, *at), numbers, freeze_array(inertia), names
    )


def cut_off_limb(robot: Robot, frame: str, name: str | None = None) -> Robot:
    """The part of a robot beyond a sensor, as a floating robot with the sensor as its contact.

    Parameters
    ----------
    robot : Robot
        From a URDF.
    frame : str
        The link that the sensor holds; its axes and origin are the sensor's.
    name : str, optional
        Of the sensor in the log's columns, ``fx_<name>``; the frame's by default.

    Returns
    -------
    Robot
        Its base link is `frame`, its first contact the sensor, whose wrench acts on it; its
        motion comes from logs of the whole robot, its `carrier`.
    """
    found = locate_cut(robot, frame, name)
    if not found.numbers:
        raise InputError(f"{found.path}: no joint moves beyond {frame}; cut nearer to the base")
    order = {number: new for new, number in enumerate(found.numbers, start=1)}
    on = pin.SE3(found.seat.rotation, found.seat.translation)
    joints, nominal = [], [found.inertia]
    for number in found.numbers:
        joint = robot.joints[number - 1]
        parent = order.get(joint.parent, 0)
        if parent == 0:
            rest = on.inverse() * pin.SE3(joint.rotation, joint.translation)
            joint = replace(
                joint,
                rotation=freeze_array(rest.rotation),
                translation=freeze_array(rest.translation),
            )
        joints.append(replace(joint, parent=parent))
        nominal.append(robot.nominal[robot.body_index(number)])
    further = []
    for contact in robot.contacts:
        if contact.frame in found.links and contact.body in order:
            further.append(replace(contact, body=order[contact.body]))
        elif contact.frame in found.links:
            placed = on.inverse() * pin.SE3(contact.rotation, contact.translation)
            at = freeze_array(placed.rotation), freeze_array(placed.translation)
            further.append(replace(contact, body=0, rotation=at[0], translation=at[1]))
    unit = freeze_array(np.eye(3)), freeze_array(np.zeros(3))
    return Robot(
        name=f"{robot.name} beyond {frame}",
        joints=tuple(joints),
        nominal=freeze_array(np.array(nominal)),
        drives=Drives.direct(len(joints)),
        floating=True,
        base_link=frame,
        gravity=robot.gravity,
        locked={},
        source=robot.source,
        contacts=(Contact(found.seat.name, frame, 0, *unit), *further),
        carrier=robot,
        seat=found.seat,
    )


def find_joint_frame(model: pin.Model, joint: int) -> int:
    """The frame of a joint."""
    return int(model.getFrameId(model.names[joint]))


def find_frames_beyond(model: pin.Model, root: int) -> set[int]:
    """Frames that hang on one, itself among them."""
    hanging = {root}
    for k in range(root + 1, len(model.frames)):
        if int(model.frames[k].parentFrame) in hanging:
            hanging.add(k)
    return hanging
