"""Lost motion between drives and links: two masses a joint, a spring with a dead zone between.

The encoder of a hobby servo is at its output: its law reads the link and drives the motor, whose
rotor and friction are on the other side of what the gears lose.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.dynamics.idim import Idim
from dynident.dynamics.parameters import JointElements
from dynident.dynamics.structure import Structure
from dynident.friction.gap import ONSET, STIFFNESS, gap
from dynident.friction.names import split_friction_names
from dynident.robot.model import Joint, Robot

BACKLASH = "backlash"
UNLOADED = 1e-6
"""Bending of a flank under a weight that leaves a motor where it is, in the middle [rad or m]."""


@dataclass(frozen=True, eq=False)
class PartedModel:
    """A model of links and motors that a gap parts: the robot's joints first, then the motors."""

    idim: Idim
    of: Idim

    @cached_property
    def own(self) -> Integers:
        """Places of the robot's parameters among all, in its own order."""
        n, structure = self.of.robot.n, self.of.structure
        place = {name: k for k, name in enumerate(self.idim.names)}
        found = list(range(self.of.inertial))
        for k, column in enumerate(structure.linear_columns, self.of.inertial):
            each = self.of.parameters[k]
            element = column.friction is not None and structure.frictions[column.friction].link
            found.append(place[f"{each.symbol}{each.number + n * (not element)}"])
        return np.array(found)

    @property
    def shapes(self) -> int:
        """Where shapes begin among all that is differentiated by."""
        return len(self.idim.parameters)

    def theta(self, theta: Array) -> Array:
        """All parameters by the robot's."""
        every = np.zeros(len(self.idim.parameters))
        every[self.own] = theta
        for k, each in enumerate(self.idim.parameters):
            if each.symbol == "kb":
                every[k] = STIFFNESS
        return every


def lash_model(idim: Idim, width: Array) -> PartedModel:
    """A robot's model with a motor beside each link, which it moves through a gap."""
    robot, n = idim.robot, idim.robot.n
    if robot.floating or robot.loops or not idim.rotor:
        raise InputError(
            f"{robot.name}: a backlash needs a fixed base, no loops, and drives with rotors"
        )
    motors = [
        Joint(f"motor of {joint.name}", f"motor of {joint.link}", joint.kind, 0, np.eye(3),
              np.zeros(3), np.array([0.0, 0.0, 1.0]))
        for joint in robot.joints
    ]  # fmt: skip
    nominal, drives = np.pad(robot.nominal, ((0, n), (0, 0))), robot.drives.behind(n)
    joints = (*robot.joints, *motors)
    parted = Robot(robot.name, joints, nominal, drives, gravity=robot.gravity)
    frictions = split_friction_names(idim.friction)
    frictions *= n if len(frictions) == 1 else 1
    names = ",".join([*["none"] * n, *frictions])
    gaps = [JointElements(j, gap(), over=n + j, ratio=-1.0) for j in range(n)]
    structure = Structure(parted, names, True, (*idim.elements, *gaps))
    shape = (*idim.shape, *width.tolist())
    return PartedModel(Idim(structure, shape, limits=idim.limits), idim)


def rest_on_flank(idim: Idim, theta: Array, q: Array, width: Array) -> tuple[Array, Array]:
    """By how much motors are ahead of links whose weight they bear at rest, and by the width.

    Shapes (n,) each [rad or m].
    """
    links = np.where(np.arange(len(theta)) < idim.inertial, theta, 0.0)
    rest = np.zeros((1, idim.robot.n))
    load = idim.torque(links, q[None], rest, rest)[0] / STIFFNESS
    bent = np.abs(load)
    # a flank begins as x^2 / (2 ONSET) and goes on as x - ONSET / 2: the inverse of that
    into = np.where(bent < 0.5 * ONSET, np.sqrt(2.0 * ONSET * bent), bent + 0.5 * ONSET)
    side = np.tanh(load / UNLOADED)
    return side * (0.5 * width + into), 0.5 * side
