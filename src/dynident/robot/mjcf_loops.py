"""Loops of an MJCF: what its ``equality`` closes or couples."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pinocchio as pin

from dynident.core.errors import InputError
from dynident.robot.closure import Closure
from dynident.robot.loops import build_coupling, build_loop, shift_polynomial
from dynident.robot.mjcf_actuators import read_actuators
from dynident.robot.mjcf_document import Attributes, MjcfDocument, MjcfElement
from dynident.robot.model import KinematicLoop, Robot

Placed = tuple[int, pin.SE3]
KINDS = {"connect": "point", "weld": "weld"}
CUBIC = 5
"""Coefficients of a coupling's polynomial."""


def list_equalities(document: MjcfDocument, *tags: str) -> list[tuple[MjcfElement, Attributes]]:
    """Active equalities of some kinds."""
    found = [
        (each, document.attributes(each, kind="equality"))
        for section in document.sections("equality")
        for each in section.children
        if each.tag in tags
    ]
    return [(each, own) for each, own in found if own.flag("active", True)]


def find_followers(document: MjcfDocument, names: Collection[str]) -> dict[str, str]:
    """Joints without an actuator that an equality has follow another, both of `names`."""
    driven, found = read_actuators(document), dict[str, str]()
    for _, own in list_equalities(document, "joint"):
        follows, leads = own.text("joint1"), own.text("joint2")
        if {follows, leads} <= {*names} and follows not in {*driven, *found, leads}:
            found[follows] = leads
    return found


def read_loops(
    document: MjcfDocument,
    robot: Robot,
    bodies: dict[str, Placed],
    sites: dict[str, Placed],
    references: Sequence[float],
) -> tuple[KinematicLoop, ...]:
    """The loops of a robot that is read; bodies and sites are where they are on its joints.

    `references` are the positions in which the file places the bodies.
    """
    names, driven = list(robot.joint_names), read_actuators(document)
    followers = find_followers(document, names)
    loops: list[KinematicLoop] = []
    for _, own in list_equalities(document, "joint"):
        follows, leads = own.text("joint1"), own.text("joint2")
        if followers.get(follows) != leads or any(follows in loop.passive for loop in loops):
            continue
        law = own.numbers("polycoef", CUBIC, 1) if "polycoef" in own else [0.0, 1.0]
        k, m = names.index(follows), names.index(leads)
        shifted = shift_polynomial(law, references[k], references[m])
        name = own.text("name") or follows
        loops.append(build_coupling(name, [follows], [k + 1, m + 1], shifted))
    R, p = Closure(robot).place(np.array(references, dtype=float))
    for each, own in list_equalities(document, *KINDS):
        if "site1" in own:
            frames = [_find(sites, own.text(f"site{k}"), each) for k in (1, 2)]
        else:
            one, other = (_find(bodies, own.text(f"body{k}"), each) for k in (1, 2))
            anchor = own.vector("anchor", (0.0, 0.0, 0.0)) if each.tag == "connect" else np.zeros(3)
            first = one[1] * pin.SE3(np.eye(3), anchor)
            world = pin.SE3(R[one[0]], p[one[0]]) * first
            second = pin.SE3(R[other[0]], p[other[0]]).actInv(world)
            pose = own.numbers("relpose", 7, 7) if "relpose" in own else [0.0] * 7
            if any(pose[3:]):
                w, x, y, z = pose[3:]
                turn = pin.Quaternion(w, x, y, z).normalized().matrix()
                first, second = one[1] * pin.SE3(turn, np.array(pose[:3])), other[1]
            frames = [(one[0], first), (other[0], second)]
        if frames[0][0] == frames[1][0]:
            continue
        loop = build_loop(own.text("name") or each.tag, KINDS[each.tag], (), frames)
        free = [names[k] for k in Closure(robot).list_joints(loop) if names[k] not in driven]
        loops.append(build_loop(loop.name, loop.kind, free, frames))
    return tuple(loops)


def _find(places: dict[str, Placed], name: str, each: MjcfElement) -> Placed:
    if name not in places:
        raise InputError(f"{each.place}: {each.name} names {name!r}, which is not of the robot")
    return places[name]
