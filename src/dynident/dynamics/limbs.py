"""What sensors in the chain feel: rows beside the equations of motion.

Of a force/torque sensor they are the wrench of what it holds. The notes on FloBaRoID cut a limb
there: its six rows are those of the base of the limb as a floating robot, which the carrier moves;
its bodies are the carrier's own, so that one set of parameters answers for joints and sensors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.inertia import transform_body
from dynident.dynamics.contacts import evaluate_seat_motion
from dynident.dynamics.springs import LINK, TORQUE
from dynident.dynamics.tree import Tree, build_tree
from dynident.robot.model import Contact, Gauge, Robot

Motion = tuple[Array, Array, Array]
"""q, dq, ddq, shapes (samples, nq), (samples, dof), (samples, dof)."""


@dataclass(frozen=True)
class SensedMotion:
    """What a sensor feels, as kernels read it: some rows of a robot that is moved."""

    gauge: Gauge
    robot: Robot
    """What it holds, or the whole."""
    tree: Tree
    bodies: Integers
    """Places of the tree's own among those of the whole robot."""
    taken: tuple[int, ...]
    """Which rows of the tree."""
    rows: slice
    """Where these are among all rows."""
    carry: Callable[[Motion], Motion] | None = None
    """Makes the motion of the whole robot that of the tree, which has it anyway without."""
    contacts: tuple[Contact, ...] = ()
    """Whose wrenches make the right-hand side; the sensor's own signal where there are none."""

    def carried(self, motion: Motion) -> Motion:
        """The motion of the tree."""
        return motion if self.carry is None else self.carry(motion)


def feel_wrench(tree: Tree, robot: Robot, gauge: Gauge, rows: slice) -> SensedMotion:
    """The wrench on the base of a limb, in the axes of the link that the sensor holds."""
    limb = robot.limbs[gauge.place]
    bodies = np.array([robot.links.index(name) for name in limb.links])
    carry = partial(carry_limb, tree, robot, limb)
    return SensedMotion(
        gauge, limb, build_tree(limb), bodies, (*range(6),), rows, carry, limb.contacts
    )


def feel_torque(tree: Tree, robot: Robot, gauge: Gauge, rows: slice) -> SensedMotion:
    """What bodies take of a joint, on the link's side of its gear: neither rotor nor friction."""
    taken = (robot.dof - robot.n + gauge.place,)
    return SensedMotion(gauge, robot, tree, np.arange(tree.bodies), taken, rows)


SENSED: dict[str, Callable[[Tree, Robot, Gauge, slice], SensedMotion]] = {
    "wrench": feel_wrench,
    LINK: feel_torque,
    TORQUE: feel_torque,
}
"""Kinds of sensors in the chain: what the rows of one are, of a tree and its robot."""


def list_felt(tree: Tree, robot: Robot) -> tuple[SensedMotion, ...]:
    """What the sensors in a robot's chain feel."""
    return tuple(SENSED[gauge.kind](tree, robot, gauge, rows) for gauge, rows in robot.sensed)


def carry_base(tree: Tree, robot: Robot, seat: Contact, motion: Motion) -> Motion:
    """Pose, twist and proper acceleration of a limb's base, as the motion of its carrier makes it.

    It is where nobody knows, turned as its own axes are: no wrench depends on that. The tree and
    the robot are the carrier's, on which the seat is.
    """
    felt = evaluate_seat_motion(tree, robot, seat, motion)
    still = np.zeros((len(felt), 3))
    pose = np.hstack([still, still, np.ones((len(felt), 1))])
    # without a linear speed the spatial acceleration of the base is the classical one
    return pose, np.hstack([still, felt[:, :3]]), np.hstack([felt[:, 6:], felt[:, 3:6]])


def carry_limb(tree: Tree, robot: Robot, limb: Robot, motion: Motion) -> Motion:
    """The motion of a limb as a floating robot, as the motion of its carrier makes it."""
    assert limb.seat is not None
    base = carry_base(tree, robot, limb.seat, motion)
    # proper acceleration has the weight in it, which the dynamics of the limb take off once more
    base[2][:, :3] += limb.gravity
    joints = [robot.joint_names.index(name) - robot.n for name in limb.joint_names]
    found = [np.hstack([own, each[:, joints]]) for own, each in zip(base, motion, strict=True)]
    return found[0], found[1], found[2]


@dataclass(frozen=True)
class BodyRemainder:
    """What is left of a body without the part of it that a sensor holds."""

    name: str
    body: int
    part: int
    """`body`, `part`: places among the bodies."""
    placed: Array
    """Takes the part's inertial parameters to the body's frame, shape (10, 10)."""


def list_rests(robot: Robot) -> tuple[BodyRemainder, ...]:
    """The bodies of which sensors hold a part, without it."""
    found = []
    for limb in robot.parts:
        assert limb.seat is not None
        body = robot.body_index(limb.seat.body)
        if body < 0:  # of a fixed base, whose own inertia no motion shows
            continue
        seat = limb.seat
        columns = [transform_body(unit, seat.rotation, seat.translation) for unit in np.eye(10)]
        name = f"{robot.links[body]} without {limb.base_link}"
        found.append(
            BodyRemainder(name, body, robot.links.index(limb.base_link), np.transpose(columns))
        )
    return tuple(found)
