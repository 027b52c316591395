"""Where the world acts on a robot: frames of its file by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, field_validator

from dynident.core.arrays import freeze_array
from dynident.core.errors import InputError
from dynident.core.schema import Name, Number, Spec
from dynident.core.text import suggest_nearest
from dynident.robot.geometry import load_urdf_model
from dynident.robot.model import Contact, Robot, Unknown
from dynident.robot.rotations import convert_rpy


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
