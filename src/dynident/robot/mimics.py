"""Joints that follow another as a URDF says it (mimic), and as loops state it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynident.robot.model import Robot
from dynident.robot.spec import LoopSpec
from dynident.robot.urdf import parse_xml


def find_mimics(robot: Robot) -> dict[str, tuple[str, float, float]]:
    """Joints that mimic another by the robot's URDF: which, from what offset on, and how much."""
    path = robot.source
    root = None if path is None or path.suffix.lower() == ".toml" else parse_xml(path).getroot()
    if root is None or root.tag != "robot":
        return {}
    found = {}
    for joint in root.iterchildren("joint"):
        mimic, name = joint.find("mimic"), joint.get("name")
        if mimic is not None and name in robot.joint_names:
            offset, ratio = (float(mimic.get(k, d)) for k, d in (("offset", 0), ("multiplier", 1)))
            found[name] = str(mimic.get("joint")), offset, ratio
    return found


def list_mimic_warnings(robot: Robot) -> tuple[str, ...]:
    """A line for each joint that mimics another and has no loop that says so."""
    driven = {robot.joint_names[j] for j in robot.driven}
    return tuple(
        f"joint {name} mimics {leader}; it is taken as a joint of its own, so its motion must be "
        f"in the log, or lock it: locked = {{ {name} = 0.0 }}"
        for name, (leader, _, _) in find_mimics(robot).items()
        if name in driven
    )


@dataclass(frozen=True)
class Couplings:
    """How joints that mimic another follow what moves by itself, or is locked."""

    loops: tuple[LoopSpec, ...]
    locked: dict[str, float]
    """What the others are locked with [rad or m]."""
    words: tuple[str, ...]


def find_couplings(robot: Robot, moving: Sequence[str] | None = None) -> Couplings:
    """What the robot's file says of its joints beside those that move by themselves.

    By themselves move all that mimic none, where it is not said.
    """
    mimics, loops, locked = find_mimics(robot), list[LoopSpec](), dict[str, float]()
    own = (
        [joint for joint in robot.joint_names if joint not in mimics] if moving is None else moving
    )
    ends, words = {*own, *robot.locked}, list[str]()
    for joint in (robot.joint_names[j] for j in robot.driven):
        at, offset, ratio, met = joint, 0.0, 1.0, {joint}
        while at in mimics and at not in ends:
            at, begins, share = mimics[at]
            offset, ratio = offset + ratio * begins, ratio * share
            if at in met:
                break
            met.add(at)
        if at in robot.locked:
            locked[joint] = offset + ratio * robot.locked[at]
        elif at != joint and at in ends:
            law = {"joints": (joint, at), "polynomial": (offset, ratio), "passive": (joint,)}
            loops.append(LoopSpec.model_validate({"kind": "joint", **law}))
        if at != joint and at in ends:
            words.append(f"{joint} follows {at}, as its file says (mimic)")
        elif joint in mimics and joint in own:
            words.append(
                f"{joint} is taken as a joint of its own, though its file says that it follows "
                f"{mimics[joint][0]} (mimic)"
            )
    return Couplings(tuple(loops), locked, tuple(words))
