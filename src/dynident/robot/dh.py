"""Denavit-Hartenberg tables into joints.

Modified convention (Khalil-Kleinfinger, Craig): ``T_i = Rx(alpha) Tx(a) Rz(theta0 + q)
Tz(d)`` from frame i-1 to frame i, ``d + q`` for a prismatic joint. The body frame of
joint i is DH frame i.

Standard convention: ``T_i = Rz(theta0 + q) Tz(d) Tx(a) Rx(alpha)``, ``d + q`` for a
prismatic joint. Joint i moves about (along) z of frame i-1, so DH frame i lies at the far
end of the link. The body frame of joint i is therefore not DH frame i but frame i-1 moved
by the joint: turned by ``theta0 + q`` (revolute), or turned by ``theta0`` and shifted by q
(prismatic). The constant rest ``Tz(d) Tx(a) Rx(alpha)`` goes into the placement of the
next joint. Inertial parameters are expressed in this body frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array, freeze_array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.inertia import from_com
from dynident.robot.model import Joint
from dynident.robot.spec import BaseSpec, DHJointSpec

Convention = Literal["modified", "standard"]
Angles = Literal["deg", "rad"]

BASE = "base"
"""Name of a DH robot's base link, and the `parent` of a joint that starts a new branch."""

UNIT: dict[str, float] = {"deg": np.pi / 180.0, "rad": 1.0}
"""Radians per unit of angle."""


def build_dh_joints(
    table: Sequence[DHJointSpec],
    convention: Convention,
    *,
    angles: Angles = "deg",
    base: BaseSpec | None = None,
    place: str | Path = "DH table",
) -> tuple[Joint, ...]:
    """Joints of a DH table, a tree through `parent`: parents come before children.

    `base` is the pose of the table's frame 0 in the world.
    """
    unit = UNIT[angles]
    pose = base or BaseSpec()
    root = pin.SE3(pin.rpy.rpyToMatrix(*(unit * np.array(pose.rpy))), np.array(pose.xyz))
    rests = [root]
    names = [BASE]
    links = [BASE]
    joints: list[Joint] = []
    for number, row in enumerate(table, start=1):
        link = row.link or f"link_{number}"
        for kind, word, known in (("name", row.name, names), ("link", link, links)):
            if word in known:
                raise InputError(f"{place}: key 'joint[{number}].{kind}' repeats {word!r}")
        parent = _find_parent(row, number, names, place)
        before, after = _split_transform(row, convention, unit)
        joints.append(_build_joint(row, link, parent, rests[parent] * before, unit))
        rests.append(after)
        names.append(row.name)
        links.append(link)
    return tuple(joints)


def read_dh_inertials(table: Sequence[DHJointSpec], floating: bool) -> Array:
    """Inertial parameters that the table states, shape (bodies, 10); zeros where none."""
    found = np.zeros((len(table) + floating, 10))
    for body, row in enumerate(table, start=int(floating)):
        if row.inertial is not None:
            xx, xy, yy, xz, yz, zz = row.inertial.inertia
            matrix = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
            found[body] = from_com(row.inertial.mass, row.inertial.com, matrix)
    return freeze_array(found)


def _find_parent(row: DHJointSpec, number: int, names: list[str], place: str | Path) -> int:
    if row.parent is None:
        return number - 1
    refuse_unknown(
        row.parent,
        names,
        f"{place}: key 'joint[{number}].parent' is {row.parent!r}, which no earlier row is called",
    )
    return names.index(row.parent)


def _split_transform(
    row: DHJointSpec, convention: Convention, unit: float
) -> tuple[pin.SE3, pin.SE3]:
    """The constant transforms before and after the joint's motion about its z axis."""
    turned = _make_rotation("z", unit * row.theta0)
    twisted = _make_rotation("x", unit * row.alpha)
    if convention == "modified":
        return twisted * _make_translation(row.a, 0.0) * turned * _make_translation(
            0.0, row.d
        ), pin.SE3.Identity()
    return turned, _make_translation(row.a, row.d) * twisted


def _make_rotation(axis: Literal["x", "z"], angle: float) -> pin.SE3:
    # exact quarter turns keep zeros zero, and so keep base parameters free of 1e-17 terms
    c, s = np.cos(angle), np.sin(angle)
    c, s = (0.0 if abs(c) < 1e-15 else c), (0.0 if abs(s) < 1e-15 else s)
    if axis == "x":
        return pin.SE3(np.array([[1.0, 0, 0], [0, c, -s], [0, s, c]]), np.zeros(3))
    return pin.SE3(np.array([[c, -s, 0.0], [s, c, 0], [0, 0, 1]]), np.zeros(3))


def _make_translation(x: float, z: float) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([x, 0.0, z]))


def _build_joint(
    row: DHJointSpec, link: str, parent: int, placement: pin.SE3, unit: float
) -> Joint:
    scale = unit if row.type == "revolute" else 1.0
    return Joint(
        name=row.name,
        link=link,
        kind=row.type,
        parent=parent,
        rotation=freeze_array(placement.rotation),
        translation=freeze_array(placement.translation),
        axis=freeze_array([0.0, 0.0, 1.0]),
        lower=-np.inf if row.lower is None else scale * row.lower,
        upper=np.inf if row.upper is None else scale * row.upper,
        velocity=np.inf if row.velocity is None else scale * row.velocity,
        effort=np.inf if row.effort is None else row.effort,
    )
