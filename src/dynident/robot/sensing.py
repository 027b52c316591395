"""A robot with what its file does not say of it: contacts, and sensors in its chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from dynident.core.arrays import freeze_array
from dynident.core.errors import InputError
from dynident.robot.contacts import ContactSpec, add_contacts
from dynident.robot.cut import add_sensor, cut_off_limb
from dynident.robot.model import Robot
from dynident.robot.rotations import convert_rpy


def add_sensors(
    robot: Robot, contacts: Sequence[ContactSpec], beyond: str | None, sensors: Sequence[str]
) -> Robot:
    """A robot with its contacts and sensors in its chain, or the part of it beyond a sensor.

    A contact at the link that a sensor holds describes the sensor.
    """
    if beyond is not None and sensors:
        raise InputError(
            f"{robot.name}: robot.beyond is the limb alone, and robot.sensor the robot with it; "
            "give one of them"
        )
    if contacts or beyond or sensors:
        robot.refuse_loops("a contact or a sensor in the chain")
    held = (beyond,) if beyond is not None else tuple(sensors)
    whole = add_contacts(robot, [c for c in contacts if (c.frame or c.name) not in held])
    limbs = [describe_sensor(whole, frame, contacts) for frame in held]
    return limbs[0] if beyond is not None else reduce(add_sensor, limbs, whole)


def describe_sensor(robot: Robot, frame: str, contacts: Sequence[ContactSpec]) -> Robot:
    """The part of a robot beyond a sensor, which a contact at its frame may describe."""
    named = [spec for spec in contacts if (spec.frame or spec.name) == frame]
    own = named[0] if named else ContactSpec(name=frame, estimate=("bias",))
    found = cut_off_limb(robot, frame, own.name)
    sensor = replace(
        found.contacts[0],
        bias=np.array(own.bias),
        sign=own.sign,
        rpy=own.rpy,
        rotation=freeze_array(convert_rpy(own.rpy)),
        estimate=tuple(dict.fromkeys(own.estimate)),
    )
    return replace(found, contacts=(sensor, *found.contacts[1:]))
