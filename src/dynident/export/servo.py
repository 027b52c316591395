"""A fitted law as MuJoCo's position servos."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from lxml import etree

from dynident.core.arrays import Array
from dynident.estimators.closed_loop import Simulation
from dynident.export.exported import format_exact_number, format_exact_numbers


@dataclass(frozen=True)
class Servo:
    """A drive that turns its joint to a target: ``kp (ctrl - q) - kv dq + constant``.

    Attributes
    ----------
    kp, kv : float
        [Nm/rad or N/m, Nm s/rad or N s/m]
    constant : float
        What offset and encoder's bias give [Nm or N].
    least, most : float
        Range of the torque; infinite for none.
    delay : float
        By which its targets come late [s].
    """

    kp: float
    kv: float
    constant: float
    least: float
    most: float
    delay: float = 0.0

    @property
    def limit(self) -> float:
        """Of the torque about its constant; infinite for none [Nm or N]."""
        return 0.5 * (self.most - self.least)

    def element(self, joint: str) -> etree._Element:
        """The actuator, MuJoCo's ``position`` but for the constant."""
        own = {
            "name": joint,
            "joint": joint,
            "biastype": "affine",
            "gainprm": format_exact_number(self.kp),
            "biasprm": format_exact_numbers([self.constant, -self.kp, -self.kv]),
        }
        if np.isfinite(self.most):
            own["forcerange"] = format_exact_numbers([self.least, self.most])
        return etree.Element("general", own)


def derive_servos(loop: Simulation, offset: Array) -> tuple[Servo, ...]:
    """Servos of all joints, whose targets are their ``ctrl``; empty of laws that are none.

    Parameters
    ----------
    offset : ndarray, shape (n,)
        That the drives have to give at rest beside weight [Nm or N].
    """
    control = loop.controller
    gains = control.servo
    if gains is None:
        return ()
    bias = np.zeros(control.n) if loop.bias is None else np.array(loop.bias)
    most = np.abs(control.gain) * control.limit
    late = np.full(control.n, control.delay)
    rows = zip(*gains, -offset - gains[0] * bias, -most - offset, most - offset, late, strict=True)
    return tuple(Servo(*map(float, row)) for row in rows)
