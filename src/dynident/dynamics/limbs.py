"""Wrenches at force/torque sensors in the chain: the rows of what each holds, beside all others.

The notes on FloBaRoID cut a limb at its sensor. Its six rows are those of the base of the limb as
a floating robot, which the carrier moves; its bodies are the carrier's own, so that one set of
parameters answers for joints and sensors alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.inertia import transform_body
from dynident.dynamics.contacts import evaluate_seat_motion
from dynident.dynamics.tree import Tree, build_tree
from dynident.robot.model import Robot


@dataclass(frozen=True)
class Limb:
    """What a sensor holds, as kernels read it.

    Attributes
    ----------
    robot : Robot
        It by itself, with the sensor as its base and first contact.
    bodies : ndarray of int
        Places of its own among those of the whole robot.
    rows : slice
        Of the wrench on its base, in the axes of the link that the sensor holds.
    """

    robot: Robot
    tree: Tree
    bodies: Integers
    rows: slice


def list_limbs(robot: Robot) -> tuple[Limb, ...]:
    """The limbs of a robot whose sensors are fitted."""
    found = []
    for first, limb in zip(range(robot.dof, robot.equations, 6), robot.limbs, strict=True):
        bodies = np.array([robot.links.index(name) for name in limb.links])
        found.append(Limb(limb, build_tree(limb), bodies, slice(first, first + 6)))
    return tuple(found)


def carry_limb(
    tree: Tree, robot: Robot, limb: Robot, motion: tuple[Array, Array, Array]
) -> tuple[Array, Array, Array]:
    """The motion of a limb as a floating robot, as the motion of its carrier makes it.

    Its base is where nobody knows, turned as its own axes are: no wrench depends on that.

    Parameters
    ----------
    tree, robot
        Of the carrier.
    motion : tuple of ndarray
        Of the carrier: q, dq, ddq, shapes (samples, nq), (samples, dof), (samples, dof).
    """
    assert limb.seat is not None
    felt = evaluate_seat_motion(tree, robot, limb.seat, motion)
    still = np.zeros((len(felt), 3))
    pose = np.hstack([still, still, np.ones((len(felt), 1))])
    base = (
        pose,
        np.hstack([still, felt[:, :3]]),
        np.hstack([felt[:, 6:] + limb.gravity, felt[:, 3:6]]),
    )
    joints = [robot.joint_names.index(name) - robot.n for name in limb.joint_names]
    found = [np.hstack([own, each[:, joints]]) for own, each in zip(base, motion, strict=True)]
    return found[0], found[1], found[2]


@dataclass(frozen=True)
class Rest:
    """What is left of a body without the part of it that a sensor holds.

    Attributes
    ----------
    body, part : int
        Places among the bodies.
    placed : ndarray, shape (10, 10)
        Takes the part's inertial parameters to the body's frame.
    """

    name: str
    body: int
    part: int
    placed: Array


def list_rests(robot: Robot) -> tuple[Rest, ...]:
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
        found.append(Rest(name, body, robot.links.index(limb.base_link), np.transpose(columns)))
    return tuple(found)
