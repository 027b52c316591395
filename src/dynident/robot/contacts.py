"""Where the world acts on a robot: frames of its file by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import pinocchio as pin
from pydantic import Field, field_validator

from dynident.core.arrays import freeze_array
from dynident.core.errors import InputError
from dynident.core.schema import Name, Number, Spec
from dynident.core.text import suggest_nearest
from dynident.robot.geometry import UrdfModel, load_urdf_model
from dynident.robot.model import Contact, Robot, Unknown
from dynident.robot.rotations import convert_rpy

MARKS = ("fx", "contact")
"""How columns of contacts begin, before the contact's name."""


class ContactSpec(Spec):
    """One contact, as a robot file or a study has it: see `Contact`."""

    name: Name
    frame: Name | None = None
    """The link whose frame it is; its name when left out."""
    kind: Literal["surface", "point"] = "surface"
    """Whether it bears moments, too."""
    axes: Literal["frame", "world"] = "frame"
    bias: tuple[Number, ...] = (0.0,) * 6
    """Three of a force, or six of a wrench [N, Nm]."""
    sign: Literal[1, -1] = 1
    rpy: tuple[Number, Number, Number] = (0.0, 0.0, 0.0)
    estimate: tuple[Unknown, ...] = ()
    radius: Annotated[Number, Field(ge=0.0, le=1.0)] = 0.0
    """Of a round foot about the frame's origin [m]."""

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
    urdf = load_urdf_model(robot, "in which contacts could be found")
    path, model, links = urdf.path, urdf.model, urdf.frames
    found: list[Contact] = []
    for spec in contacts:
        wanted = spec.frame or spec.name
        if wanted in model.names:
            joint = model.getJointId(wanted)
            moved = next(f for f, k in links.items() if model.frames[k].parentJoint == joint)
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
        frame = model.frames[links[wanted]]
        carrier = urdf.carriers[frame.parentJoint]
        if carrier not in urdf.moving:
            raise InputError(
                f"{path}: contact {spec.name!r} is on the fixed base, where no wrench moves the "
                "robot; read it as floating (floating = true, base = 'fixed') to weigh its base"
            )
        placement = urdf.place(frame)
        found.append(
            Contact(
                name=spec.name,
                frame=wanted,
                body=robot.numbers[urdf.moving.index(carrier)],
                rotation=freeze_array(placement.rotation @ convert_rpy(spec.rpy)),
                translation=freeze_array(placement.translation),
                surface=spec.kind == "surface",
                axes=spec.axes,
                bias=freeze_array(np.array(spec.bias)),
                sign=spec.sign,
                rpy=spec.rpy,
                estimate=tuple(dict.fromkeys(spec.estimate)),
                radius=spec.radius,
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


def find_contacts(robot: Robot, columns: Collection[str]) -> tuple[ContactSpec, ...]:
    """Contacts that a log's columns name, where each is found at one link of the robot's URDF.

    That is the link of its name, or the farthest of those whose names have it as a part. Where
    moments are logged they are surfaces, and else points.
    """
    begun = (column.partition("_") for column in sorted(columns))
    names = dict.fromkeys(name for mark, _, name in begun if mark in MARKS and name)
    urdf = load_urdf_model(robot, "in which contacts could be found")
    found = []
    for name in names:
        frame = find_contact_link(urdf, name)
        if frame is None:
            return ()
        kind: Literal["surface", "point"] = "surface" if f"mx_{name}" in columns else "point"
        found.append(ContactSpec(name=name, frame=frame, kind=kind))
    return tuple(found)


def find_contact_link(urdf: UrdfModel, name: str) -> str | None:
    """The link of that name, or the farthest of those whose names have it as a part, if one is.

    None where these are of several limbs: ``left`` is a foot or a hand.
    """
    links, supports = urdf.links, urdf.model.supports
    named = [link for link in links if link == name]
    named = named or [link for link in links if split_words(name) in split_words(link)]
    # joints that carry a link begin with the universe's and the floating base's
    limbs = {joint for link in named for joint in [*supports[links[link].parentJoint]][2:3]}
    if len(limbs) > 1:
        return None
    depths = {link: count_ancestors(urdf.model, links[link]) for link in named}
    farthest = [link for link in named if depths[link] == max(depths.values())]
    return farthest[0] if len(farthest) == 1 else None


def split_words(name: str) -> str:
    """A name's words between underscores: ``_fl_foot_``."""
    return "_".join(["", *re.findall("[a-z0-9]+", name.lower()), ""])


def count_ancestors(model: pin.Model, frame: pin.Frame) -> int:
    """How many frames carry a frame, one after another."""
    count, place = 1, int(frame.parentFrame)
    while place > 0:
        count, place = count + 1, int(model.frames[place].parentFrame)
    return count
