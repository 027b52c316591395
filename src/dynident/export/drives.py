"""Each joint's drive in the numbers that simulators of drives take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.idim import Idim
from dynident.export.exported import describe_omissions, select_drive_values
from dynident.export.servo import Servo
from dynident.robot.model import Joint

HELD = ("Ia", "fv", "fc")
"""Symbols of what is told of a drive."""


@dataclass(frozen=True)
class JointDrive:
    """A joint's drive."""

    joint: Joint
    armature: float | None
    viscous: float | None
    dry: float | None
    """`armature`, `viscous`, `dry`: rotor inertia [kg m^2 or kg], viscous [Nm s/rad or N s/m] and
    Coulomb friction [Nm or N]; None where the joint has none of its own."""
    effort: float
    """Limit of its torque: that of a fitted law, else the file's; infinite for none [Nm or N]."""
    servo: Servo | None
    """A fitted law."""


def list_drives(idim: Idim, theta: Array, servos: Sequence[Servo]) -> tuple[JointDrive, ...]:
    """The drives of all joints, in order."""
    joints = idim.robot.joints
    columns = [
        [None if np.isnan(value) else float(value) for value in select_drive_values(idim, theta, s)]
        for s in HELD
    ]
    found = []
    for j, (joint, armature, viscous, dry) in enumerate(zip(joints, *columns, strict=True)):
        servo = servos[j] if servos else None
        limit = np.inf if servo is None else servo.limit
        found.append(JointDrive(joint, armature, viscous, dry, min(joint.effort, limit), servo))
    return tuple(found)


def describe_left_drives(idim: Idim, kind: str) -> tuple[str, ...]:
    """The note on parameters of the drives that have no place in a format."""
    return describe_omissions([p.name for p in idim.drives if p.symbol not in HELD], kind)
