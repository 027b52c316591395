"""Loops that close chains of a robot's tree: what files say of them, and how they are assembled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.polynomial import Polynomial

from dynident.core.arrays import Array, freeze_array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.text import suggest_nearest
from dynident.robot.closure import Closure
from dynident.robot.geometry import freeze_placement, load_urdf_model
from dynident.robot.linkage import CLOSED, COUPLING, SINGULAR
from dynident.robot.model import KinematicLoop, Robot
from dynident.robot.rotations import turn_z_to
from dynident.robot.spec import LoopSpec

RANK = 1e-7
"""Singular value of the constraints' Jacobian, over its largest, that is none."""


def add_loops(robot: Robot, specs: Sequence[LoopSpec], place: str | Path) -> Robot:
    """The robot with loops as a file or a study states them; those of its MJCF amended by name."""
    loops, start = list(robot.loops), dict(zip(robot.joint_names, robot.assembled, strict=False))
    for number, spec in enumerate(specs, start=1):
        key = f"{place}: loop[{number}]"
        for joint in (*spec.passive, *spec.start):
            find_joint_number(robot, joint, key)
        start |= spec.start
        name = spec.name or "+".join(spec.joints if spec.kind == COUPLING else spec.links)
        same = [k for k, loop in enumerate(loops) if loop.name == name]
        if spec.kind is None:
            if not same:
                known = suggest_nearest(name, [loop.name for loop in loops])
                raise InputError(f"{key}: the robot's file has no loop {name!r}{known}; give kind")
            loops[same[0]] = replace(loops[same[0]], passive=spec.passive)
        elif same:
            raise InputError(f"{key}: there is a loop {name!r} already; give it another name")
        elif spec.kind == COUPLING:
            numbers = [find_joint_number(robot, joint, f"{key}.joints") for joint in spec.joints]
            passive = spec.passive or spec.joints[:1]
            loops.append(build_coupling(name, passive, numbers, spec.polynomial))
        else:
            frames = [
                _place_frame(robot, link, at, axis, key)
                for link, at, axis in zip(spec.links, spec.at, spec.axis, strict=True)
            ]
            loops.append(build_loop(name, spec.kind, spec.passive, frames))
    assembled = tuple(float(start.get(name, 0.0)) for name in robot.joint_names)
    return replace(robot, loops=tuple(loops), assembled=assembled if loops else ())


def take_loops(robot: Robot, other: Robot) -> Robot:
    """The robot closed as another one with the same joints is; loops that it has stay its own.

    Those of the same name have the other's passive joints; one that is called otherwise stands for
    the other's where it gives the same joints.
    """
    if robot.joint_names != other.joint_names:
        names = ", ".join(robot.joint_names), ", ".join(other.joint_names)
        raise InputError(
            f"{robot.source or robot.name}: has the joints {names[0]}, {other.name} {names[1]}"
        )
    own = {loop.name: loop for loop in robot.loops}
    given = {joint for loop in robot.loops for joint in loop.passive}
    theirs = {
        loop.name: loop
        for loop in other.loops
        if loop.name in own or not loop.passive or not given.issuperset(loop.passive)
    }
    same = {k: replace(own[k], passive=theirs[k].passive) for k in own.keys() & theirs.keys()}
    loops = tuple((theirs | own | same).values())
    return replace(robot, loops=loops, assembled=other.assembled or robot.assembled)


def find_joint_number(robot: Robot, joint: str, key: str) -> int:
    """The 1-based number of a joint by its name."""
    refuse_unknown(joint, robot.joint_names, f"{key}: there is no joint {joint!r}")
    return robot.joint_names.index(joint) + 1


def build_loop(
    name: str, kind: str, passive: Sequence[str], frames: Sequence[tuple[int, pin.SE3]]
) -> KinematicLoop:
    """A loop between frames on two bodies."""
    one, other = (number for number, _ in frames)
    rotations, translations = zip(*(freeze_placement(at) for _, at in frames), strict=True)
    at = freeze_array(rotations), freeze_array(translations)
    return KinematicLoop(name, kind, tuple(passive), (one, other), *at)


def build_coupling(
    name: str, passive: Sequence[str], numbers: Sequence[int], law: Sequence[float]
) -> KinematicLoop:
    """A joint that follows another, both by their 1-based numbers."""
    follows, leads = numbers
    still = freeze_array(np.stack([np.eye(3)] * 2)), freeze_array(np.zeros((2, 3)))
    return KinematicLoop(
        name, COUPLING, tuple(passive), (follows, leads), *still, tuple(map(float, law))
    )


def shift_polynomial(law: Sequence[float], follows: float, leads: float) -> tuple[float, ...]:
    """Coefficients of ``follows + p(x - leads)`` by those of p."""
    return tuple((Polynomial(law)(Polynomial([-leads, 1.0])) + follows).coef.tolist())


def _place_frame(
    robot: Robot, link: str, at: Sequence[float], axis: Sequence[float], key: str
) -> tuple[int, pin.SE3]:
    """Which body a link of the robot's URDF or table is on, and the frame of a loop there."""
    if robot.source is not None and robot.source.suffix.lower() == ".toml":
        links = (robot.base_link, *robot.links)
        refuse_unknown(link, links, f"{key}: there is no link {link!r}")
        number, there = links.index(link), pin.SE3.Identity()
    else:
        urdf = load_urdf_model(robot, "in which the links of loops could be found")
        refuse_unknown(link, urdf.links, f"{key}: there is no link {link!r}")
        frame = urdf.links[link]
        carrier = urdf.carriers[frame.parentJoint]
        number = robot.numbers[urdf.moving.index(carrier)] if carrier in urdf.moving else 0
        there = urdf.place(frame)
    size = float(np.linalg.norm(axis))
    if not size:
        raise InputError(f"{key}.axis has no direction")
    turn = turn_z_to(np.array(axis) / size)
    return number, there * pin.SE3(turn, np.array(at))


def lock_loops(
    robot: Robot, values: Mapping[int, float], where: Sequence[tuple[int, pin.SE3]]
) -> tuple[tuple[KinematicLoop, ...], tuple[float, ...]]:
    """The loops that are left once some joints, from 0, are locked, and how they are assembled.

    `where` says of each body which it is part of then, and where it is there.
    """
    names, closure, left = robot.joint_names, Closure(robot), []
    for loop in robot.loops:
        moving = [k for k in closure.list_joints(loop) if k not in values]
        if not moving or (loop.kind == COUPLING and len(moving) < 2):
            continue
        held = {names[k] for k in values}
        changed = replace(loop, passive=tuple(j for j in loop.passive if j not in held))
        if loop.kind == COUPLING:
            follows, leads = (where[b][0] for b in loop.bodies)
            left.append(replace(changed, bodies=(follows, leads)))
            continue
        frames = [
            (where[b][0], where[b][1] * pin.SE3(loop.rotations[k], loop.translations[k]))
            for k, b in enumerate(loop.bodies)
        ]
        left.append(build_loop(loop.name, loop.kind, changed.passive, frames))
    assembled = tuple(x for k, x in enumerate(robot.assembled) if k not in values)
    return tuple(left), assembled if left else ()


def assemble(robot: Robot, place: str | Path) -> Robot:
    """The robot with its loops closed near where it is said to be; refused where that cannot be.

    Raises
    ------
    InputError
        When a loop cannot be closed, or is singular, near there; when joints without a drive are
        more or fewer than its loops give; on floating bases.
    """
    if not robot.loops:
        return robot
    said = f"{place}: {', '.join(loop.name for loop in robot.loops)} closes a loop of bodies"
    if robot.floating:
        raise InputError(f"{said}, which no floating base may have; lock its joints")
    closure, passive = Closure(robot), np.array(robot.joint_names)[robot.passive]
    turns, own = robot.drives.turns, robot.passive
    if np.any(turns[own][:, ~own]) or np.any(turns[~own][:, own]):
        raise InputError(f"{said}, and a coupled drive turns with {passive[0]}, which has no drive")
    if not len(passive):
        raise InputError(f"{said}; name its joints without a drive: [[loop]] passive = [...]")
    if len(passive) == robot.n:
        raise InputError(f"{said} and leaves none of its joints a drive")
    start = np.array(robot.assembled)
    q, gap = closure.correct(start[None])
    around = ", ".join(f"{n} = {x:.4g}" for n, x in zip(robot.joint_names, start, strict=True))
    _, J = closure.linearise(q)
    rank, given = (count_rank(each) for each in (J[0], J[0][:, closure.passive]))
    if rank > len(passive):
        raise InputError(
            f"{said} with {rank} constraints, but {len(passive)} of its joints have no drive "
            f"({', '.join(passive)}); name the others in passive, or take another kind of loop"
        )
    if not gap[0] < CLOSED:
        raise InputError(
            f"{said} that cannot be closed near {around}; give a start = {{ joint = position }} "
            "near a closed one, or check its frames"
        )
    share = closure.measure_distance(q)
    if given < len(passive) or share[0] < SINGULAR:
        raise InputError(
            f"{said} that does not give the positions of {', '.join(passive)} near {around}: give "
            "another start where it is singular there, or fewer passive joints"
        )
    return replace(robot, assembled=tuple(q[0].tolist()))


def count_rank(J: Array) -> int:
    """Rank of a Jacobian."""
    s = np.linalg.svd(J, compute_uv=False)
    return int(np.sum(s > RANK * s[0]))
