"""A fitted law as MuJoCo's position servos."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from lxml import etree

from dynident.core.arrays import Array
from dynident.estimators.closed_loop import Simulation
from dynident.export.exported import format_exact_number, format_exact_numbers
from dynident.export.softness import SERVO_TIMESTEP

GAP, ENCODER = "_backlash", "_encoder"
"""Of the names of a joint between a servo's and its link and of the tendon over both, behind that
of the servo's joint."""


@dataclass(frozen=True)
class Servo:
    """A drive that turns its joint to a target: ``kp (ctrl - q) - kv dq + constant``."""

    kp: float
    kv: float
    """`kp`, `kv`: [Nm/rad or N/m, Nm s/rad or N s/m]"""
    constant: float
    """What offset and encoder's bias give [Nm or N]."""
    least: float
    most: float
    """`least`, `most`: range of the torque; infinite for none."""
    delay: float = 0.0
    """By which its targets come late [s]."""
    backlash: float = 0.0
    """By how much motor and joint move apart [rad or m]."""

    @property
    def limit(self) -> float:
        """Of the torque about its constant; infinite for none [Nm or N]."""
        return 0.5 * (self.most - self.least)

    @property
    def is_late(self) -> bool:
        """Whether a delay of one step, MuJoCo's least, is nearer than none."""
        return self.delay > 0.5 * SERVO_TIMESTEP

    def element(self, joint: str) -> etree._Element:
        """The actuator, MuJoCo's ``position`` but for the constant."""
        own = {
            "name": joint,
            **({"tendon": joint + ENCODER} if self.backlash else {"joint": joint}),
            "biastype": "affine",
            "gainprm": format_exact_number(self.kp),
            "biasprm": format_exact_numbers([self.constant, -self.kp, -self.kv]),
        }
        if np.isfinite(self.most):
            own["forcerange"] = format_exact_numbers([self.least, self.most])
        if self.is_late:
            own["delay"] = format_exact_number(self.delay)
            own["nsample"] = str(int(np.ceil(self.delay / SERVO_TIMESTEP)) + 1)
        return etree.Element("general", own)


def encoder_element(joint: str) -> etree._Element:
    """The tendon that a servo with a backlash reads: where the link is."""
    tendon = etree.Element("fixed", name=joint + ENCODER)
    for name in (joint, joint + GAP):
        etree.SubElement(tendon, "joint", joint=name, coef="1")
    return tendon


def describe_servos(servos: Sequence[Servo], joints: Sequence[str]) -> tuple[str, ...]:
    """Notes on what those who simulate servos have to do beside."""
    notes = []
    if any(own.is_late for own in servos):
        notes.append(
            "targets come late in the MJCF, and are zero before the first; mj_initCtrlHistory "
            "sets them"
        )
    names = [name for own, name in zip(servos, joints, strict=False) if own.backlash]
    if names:
        notes.append(
            f"behind the backlash of {', '.join(names)} is a joint {GAP}; the servo reads the link "
            "there, and in MuJoCo pushes what it reads: at each step set data.qfrc_applied of that "
            "joint to its -data.qfrc_actuator, so that the motor alone is pushed"
        )
    return tuple(notes)


def derive_servos(loop: Simulation, offset: Array) -> tuple[Servo, ...]:
    """Servos of all joints, whose targets are their ``ctrl``; empty of laws that are none.

    `offset`: that the drives have to give at rest beside weight [Nm or N], shape (n,).
    """
    control = loop.controller
    gains = control.servo
    if gains is None:
        return ()
    bias = np.zeros(control.n) if loop.bias is None else np.array(loop.bias)
    most = np.abs(control.gain) * control.limit
    late, apart = np.full(control.n, control.delay), control.backlash
    ends = (-offset - gains[0] * bias, -most - offset, most - offset)
    rows = zip(*gains, *ends, late, apart, strict=True)
    return tuple(Servo(*map(float, row)) for row in rows)
