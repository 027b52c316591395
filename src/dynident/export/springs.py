"""Springs in the joints of an MJCF: a second joint of the link's body, behind the motor's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from lxml import etree

from dynident.core.arrays import Array
from dynident.core.text import format_series
from dynident.dynamics.idim import Idim
from dynident.export.exported import format_exact_number
from dynident.robot.model import HYSTERESIS

SUFFIX = "_spring"
"""Of the name of a spring's joint, behind that of the motor's."""


@dataclass(frozen=True)
class JointSpring:
    """A spring as simulators have it."""

    joint: str
    stiffness: float
    damping: float
    """`stiffness`, `damping`: [Nm/rad, Nm s/rad or N/m, N s/m]"""
    reference: float
    """Of the link less the motor, at no load [rad or m]."""
    cubic: float
    """Of the deflection's third power [Nm/rad^3]."""
    left: tuple[str, ...]
    """Names of its parameters that simulators have no place for, beside those of the encoder."""
    bristles: tuple[str, ...] = ()
    """Those of them that are of its hysteresis."""


def list_joint_springs(idim: Idim, theta: Array) -> tuple[JointSpring, ...]:
    """The springs of a full set of parameters; cubic stiffnesses and hysteresis are left."""
    found = []
    for gauge in idim.robot.gauges:
        if "K" not in gauge.terms:
            continue
        end, joint = str(gauge.place + 1), idim.robot.joint_names[gauge.place]
        own = {term: float(theta[idim.names.index(term + end)]) for term in gauge.terms}
        bristles = tuple(term + end for term in HYSTERESIS if term in own)
        left = (*(term + end for term in ("Kc",) if term in own), *bristles)
        rest, cubic = own.get("offs", 0.0) / own["K"], own.get("Kc", 0.0)
        found.append(JointSpring(joint, own["K"], own["D"], rest, cubic, left, bristles))
    return tuple(found)


def add_springs(document: bytes, springs: Sequence[JointSpring]) -> tuple[bytes, tuple[str, ...]]:
    """An MJCF with springs, and notes on those that it does not have.

    The motor keeps the joint, with its armature, friction and actuator; behind it on the same body
    and axis is the link's angle less the motor's, ``-delta``.
    """
    if not springs:
        return document, ()
    root = etree.fromstring(document)
    turn = 180.0 / np.pi
    if any(each.get("angle") == "radian" for each in root.iter("compiler")):
        turn = 1.0
    stiff, left = list[str](), list[str]()
    for own in springs:
        motor = next((e for e in root.iter("joint") if e.get("name") == own.joint), None)
        if motor is None:
            stiff.append(own.joint)
            continue
        left += own.left
        slide = motor.get("type") == "slide"
        spring = etree.Element("joint", name=own.joint + SUFFIX)
        for key in ("class", "type", "axis", "pos"):
            if key in motor.attrib:
                spring.set(key, motor.attrib[key])
        numbers = {
            "stiffness": own.stiffness,
            "damping": own.damping,
            "springref": own.reference * (1.0 if slide else turn),
            "armature": 0.0,
            "frictionloss": 0.0,
        }
        for key, value in numbers.items():
            spring.set(key, format_exact_number(value))
        spring.set("limited", "false")
        motor.addnext(spring)
        spring.tail = motor.tail
    notes = [f"stiff in the MJCF, whose document has it elsewhere: {', '.join(stiff)}"] * bool(
        stiff
    )
    notes += [f"not in the MJCF, which has no place for it: {format_series(left)}"] * bool(left)
    return etree.tostring(root, encoding="unicode").encode() + b"\n", tuple(notes)
