"""A force/torque sensor in the chain, or at the hand: what its wrench tells of what it holds.

The sensor is six joints that stand still, three slides and three turns about its axes: the forces
and torques that hold them are its wrench. With them its rows are rows like those of all joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array, Integers, freeze_array
from dynident.core.errors import InputError
from dynident.core.inertia import from_com, transform_body
from dynident.dynamics.base import BaseParameters, draw_random_states, find_base_from_rows
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import JointElements
from dynident.friction import DEFAULT_FRICTION
from dynident.friction.names import split_friction_names
from dynident.robot.cut import SensorCut, locate_cut, place_behind
from dynident.robot.drives import Drives
from dynident.robot.geometry import freeze_placement
from dynident.robot.model import Joint, Robot

AXES = ("fx", "fy", "fz", "mx", "my", "mz")


@dataclass(frozen=True)
class SensorRows:
    """A force/torque sensor of a robot, with the rows that it adds."""

    link: str
    """That it holds; its axes and origin are the sensor's."""
    base: BaseParameters
    """Of what it holds, in a model of the robot with six joints for it."""
    names: tuple[str, ...]
    """Of these parameters, numbered as those of the limb by itself: the body on the sensor is
    number 0."""
    sigma: Array
    """Shape (n + 6,). Standard deviation of the noise of each of its rows; infinite for joints
    before it."""
    place: Integers
    """Of the robot's joints among those of the model, shape (n,)."""

    def spread(self, values: Array) -> Array:
        """Values of the robot's joints, shape (..., n), as those of the model; zero in between."""
        found = np.zeros((*values.shape[:-1], len(self.sigma)))
        found[..., self.place] = values
        return found


def build_sensor(
    robot: Robot,
    link: str,
    noise: tuple[float, float],
    sigma: Array,
    friction: str = DEFAULT_FRICTION,
    rotor: bool | None = None,
    elements: Sequence[JointElements] = (),
    load: tuple[float, Array] = (0.0, np.zeros(3)),
) -> SensorRows:
    """A sensor between a link and what carries it.

    Its rows are the wrench and the torques of the joints beyond it, which is what
    ``[robot] beyond`` fits.

    Parameters
    ----------
    robot : Robot
        From a URDF, without a load.
    noise : tuple of float
        Standard deviations of its forces and of its moments [N, Nm].
    sigma : ndarray, shape (n,)
        Of the joints' torques [Nm or N].
    friction, rotor, elements
        See `build_idim`.
    load : tuple
        Mass on the last link, and where in its joint frame [kg, m].
    """
    found = locate_cut(robot, link)
    if found.seat.body == 0:
        raise InputError(f"{found.path}: {link} does not move, a sensor at it adds nothing")
    model, place = insert_sensor_joints(robot, found, load)
    first = model.n - 6 - len(found.numbers)
    names = split_friction_names(friction)
    each = ["none"] * model.n
    for k, name in zip(place, names * (robot.n if len(names) == 1 else 1), strict=True):
        each[k] = name
    rotors = set(names) != {"none"} if rotor is None else rotor
    idim = build_idim(
        model, ",".join(each), rotors, elements=[one.among(place) for one in elements]
    )
    rows = np.full(model.n, np.inf)
    rows[first : first + 6] = np.repeat(noise, 3)
    beyond = np.array(found.numbers, dtype=np.int64) - 1
    rows[place[beyond]] = sigma[beyond]
    # at rest in the sensor, whatever else moves; the bodies of all its joints but the last are none
    samples = 10 + len(idim.parameters) // 3
    q, dq, ddq = draw_random_states(idim, samples, 0)
    for signal in (q, dq, ddq):
        signal[:, first : first + 6] = 0.0
    W = idim.regressor(q, dq, ddq)[:, np.isfinite(rows)].reshape(-1, len(idim.parameters))
    W[:, 10 * first : 10 * (first + 5)] = 0.0
    base = find_base_from_rows(idim, W)
    own = [idim.parameters[k] for k in base.kept]
    regrouped = np.any(base.K != 0.0, axis=1)
    called = [
        f"{each.symbol}{each.number - first - 6}{'R' * bool(r)}"
        for each, r in zip(own, regrouped, strict=True)
    ]
    return SensorRows(link, base, tuple(called), freeze_array(rows), place)


def insert_sensor_joints(
    robot: Robot, found: SensorCut, load: tuple[float, Array] = (0.0, np.zeros(3))
) -> tuple[Robot, Integers]:
    """A robot with six joints at a cut, behind those before it; and where its joints are in it."""
    seat, beyond = found.seat, found.numbers
    before = [number for number in range(1, robot.n + 1) if number not in beyond]
    first = len(before)
    numbers = {0: 0} | {number: new for new, number in enumerate(before, 1)}
    numbers |= {number: new for new, number in enumerate(beyond, first + 7)}
    on = pin.SE3(seat.rotation, seat.translation)
    joints = [
        replace(robot.joints[k - 1], parent=numbers[robot.joints[k - 1].parent]) for k in before
    ]
    here, parent = on, numbers[seat.body]
    for k, axis in enumerate(AXES):
        name = f"{seat.frame} {axis}"
        kind: Literal["revolute", "prismatic"] = "prismatic" if k < 3 else "revolute"
        at = freeze_placement(here)
        joints.append(Joint(name, name, kind, parent, *at, freeze_array(np.eye(3)[k % 3])))
        here, parent = pin.SE3.Identity(), first + k + 1
    for number in beyond:
        joint = robot.joints[number - 1]
        if joint.parent in beyond:
            joints.append(replace(joint, parent=numbers[joint.parent]))
            continue
        rotation, translation = place_behind(seat, joint)
        joints.append(replace(joint, parent=parent, rotation=rotation, translation=translation))
    place = np.array([numbers[number] - 1 for number in range(1, robot.n + 1)], dtype=np.int64)
    nominal = np.zeros((len(joints), 10))
    nominal[place] = robot.nominal
    nominal[first + 5] = found.inertia
    nominal[numbers[seat.body] - 1] -= transform_body(
        found.inertia, seat.rotation, seat.translation
    )
    mass, centre = load
    if mass > 0.0:
        carrying = numbers[robot.n] - 1
        if seat.body == robot.n:  # what is on the last link is on the sensor
            carrying, centre = first + 5, on.actInv(centre)
        nominal[carrying] += from_com(mass, centre, np.zeros((3, 3)))
    turns = np.eye(len(joints))
    turns[np.ix_(place, place)] = robot.drives.turns
    ones = np.ones(len(joints))
    drives = Drives(turns, np.eye(len(joints)), 0.0 * ones, ones)
    return (
        replace(
            robot, joints=tuple(joints), nominal=freeze_array(nominal), drives=drives, contacts=(),
            source=None,
        ),
        place,
    )  # fmt: skip
