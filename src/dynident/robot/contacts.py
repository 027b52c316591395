"""Where the world acts on a robot: frames of its file by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pinocchio as pin
from pydantic import field_validator

from dynident.core.arrays import freeze_array
from dynident.core.errors import InputError
from dynident.core.schema import Name, Number, Spec
from dynident.core.text import suggest_nearest
from dynident.robot.geometry import list_moving_joints, load_urdf_model, place_joints
from dynident.robot.model import Contact, Robot, Unknown


class ContactSpec(Spec):
    """One contact, as a robot file or a study has it.

    Attributes
    ----------
    name : str
        As the log's columns have it: ``fx_<name>``, ``contact_<name>``.
    frame : str, optional
        The link whose frame it is; its name when left out.
    kind : {"surface", "point"}
        Whether it bears moments, too.
    axes : {"frame", "world"}
        In which its wrench is logged.
    bias : tuple of floats
        What its sensor reads unloaded [N, Nm].
    sign : {1, -1}
        -1 where the log has what acts on the world, and not on the robot.
    rpy : tuple of floats
        How the sensor is turned in the frame: roll, pitch, yaw about its axes [rad].
    estimate : tuple of {"bias", "orientation"}
        Of its sensor, beside the bodies: what `bias` misses [N, Nm], by which angles its axes
        are turned from the stated ones [rad].
    """

    name: Name
    frame: Name | None = None
    kind: Literal["surface", "point"] = "surface"
    axes: Literal["frame", "world"] = "frame"
    bias: tuple[Number, ...] = (0.0,) * 6
    sign: Literal[1, -1] = 1
    rpy: tuple[Number, Number, Number] = (0.0, 0.0, 0.0)
    estimate: tuple[Unknown, ...] = ()

    @field_validator("bias")
    @classmethod
    def _three_or_six(cls, bias: tuple[float, ...]) -> tuple[float, ...]:
        if len(bias) not in (3, 6):
            raise ValueError(f"has {len(bias)} components; a force has 3, a wrench 6")
        return (*bias, 0.0, 0.0, 0.0)[:6]


def add_contacts(robot: Robot, contacts: Sequence[ContactSpec]) -> Robot:
    """The robot with contacts at frames of its URDF."""
    if not contacts:
        return robot
    path, _, model, carriers = load_urdf_model(robot, "in which contacts could be found")
    placements = place_joints(model, robot)
    moving = list_moving_joints(carriers)
    links = {
        frame.name: frame
        for frame in model.frames
        if frame.name not in model.names  # links, and no joints
    }
    found: list[Contact] = []
    for spec in contacts:
        wanted = spec.frame or spec.name
        if wanted in model.names:
            moved = next(f.name for f in links.values() if model.names[f.parentJoint] == wanted)
            raise InputError(
                f"{path}: contact {spec.name!r}: {wanted!r} is a joint; name a link in frame, "
                f"such as {moved!r}, which it moves"
            )
        if wanted not in links:
            raise InputError(
                f"{path}: contact {spec.name!r}: there is no link {wanted!r}"
                f"{suggest_nearest(wanted, links)} (frame names the link)"
            )
        if spec.name in [each.name for each in found]:
            raise InputError(f"{path}: contact {spec.name!r} is there twice")
        frame = links[wanted]
        joint = int(frame.parentJoint)
        carrier = carriers[joint]
        if carrier not in moving:
            raise InputError(
                f"{path}: contact {spec.name!r} is on the fixed base, where no wrench moves the "
                "robot; read it as floating (floating = true, base = 'fixed') to weigh its base"
            )
        placement = placements[carrier].inverse() * placements[joint] * frame.placement
        found.append(
            Contact(
                name=spec.name,
                frame=wanted,
                body=moving.index(carrier) + (0 if robot.floating else 1),
                rotation=freeze_array(placement.rotation @ pin.rpy.rpyToMatrix(*spec.rpy)),
                translation=freeze_array(placement.translation),
                surface=spec.kind == "surface",
                axes=spec.axes,
                bias=freeze_array(np.array(spec.bias)),
                sign=spec.sign,
                rpy=spec.rpy,
                estimate=tuple(dict.fromkeys(spec.estimate)),
            )
        )
    return replace(robot, contacts=tuple(found))


def parse_contacts(texts: Sequence[str]) -> tuple[ContactSpec, ...]:
    """Contacts from ``LINK``, ``LINK:point`` or ``NAME=LINK:point``, as the command line says."""
    found = []
    for text in texts:
        where, _, kind = text.partition(":")
        name, named, link = where.partition("=")
        if kind not in ("", "point", "surface") or not name or (named and not link):
            raise InputError(f"contact {text!r}: is [NAME=]LINK, [NAME=]LINK:point or :surface")
        own: Literal["point", "surface"] = "point" if kind == "point" else "surface"
        found.append(ContactSpec(name=name, frame=link or name, kind=own))
    return tuple(found)
