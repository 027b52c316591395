"""Branches of a fixed base: robots of their own, whose motions are differentiated one by one.

Legs of a robot on a stand, fingers of a hand, two arms: no parameter of one moves another. A column
of sensitivities takes work with all joints of its rollout, so that each has its own branch alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.control.controller import OF_JOINTS
from dynident.core.arrays import Array, Integers
from dynident.dynamics.idim import Idim
from dynident.dynamics.structure import Structure
from dynident.friction.names import split_friction_names
from dynident.robot.model import Robot
from dynident.simulation.loop import Loop, LoopColumn

MOST_KEPT = 8
KEPT: dict[int, tuple[Structure, tuple[Branch, ...]]] = {}
OF_ALL = ("delay",)
"""Kinds of a loop's parameters that are of all joints."""


@dataclass(frozen=True, eq=False)
class Branch:
    """Joints that move without the others, and the model of them alone."""

    joints: Integers
    structure: Structure
    parameters: Integers
    shapes: Integers
    """`parameters`, `shapes`: which of the whole model's are its own."""

    def model(self, idim: Idim) -> Idim:
        """The branch's part of a model."""
        limits = tuple(idim.limits[k] for k in self.shapes) if idim.limits else ()
        return Idim(self.structure, tuple(idim.shape[k] for k in self.shapes), limits=limits)

    def list_columns(
        self, idim: Idim, columns: Sequence[int] | Integers, own: Sequence[LoopColumn]
    ) -> tuple[list[int], list[int], list[LoopColumn]]:
        """Which of the whole's columns are its own; its parameters among these, and its loop's."""
        count, place = len(idim.parameters), self.places
        every = {int(p): k for k, p in enumerate(self.parameters)}
        every |= {count + int(s): len(every) + k for k, s in enumerate(self.shapes)}
        kept = [k for k, column in enumerate(columns) if int(column) in every]
        others = [k for k, c in enumerate(own) if c.kind in OF_ALL or c.joint in place]
        return (
            [*kept, *(len(columns) + k for k in others)],
            [every[int(columns[k])] for k in kept],
            [replace(own[k], joint=place.get(own[k].joint, 0)) for k in others],
        )

    @property
    def places(self) -> dict[int, int]:
        """Its joints among themselves, by those of the whole."""
        return {int(joint): k for k, joint in enumerate(self.joints)}

    def loop(self, loop: Loop) -> Loop:
        """The branch's part of a loop."""
        j, control, reference = self.joints, loop.controller, loop.reference

        def some(signal: Array | None) -> Array | None:
            return None if signal is None else signal[..., j]

        place = self.places
        return replace(
            loop,
            idim=self.model(loop.idim),
            controller=replace(control, **{name: getattr(control, name)[j] for name in OF_JOINTS}),
            reference=replace(
                reference, q=reference.q[:, j], dq=reference.dq[:, j], ddq=reference.ddq[:, j]
            ),
            elements=tuple(
                replace(each, joint=place[each.joint])
                for each in loop.elements
                if each.joint in place
            ),
            model=None if loop.model is None else loop.model[self.parameters],
            reads=None if loop.reads is None else tuple(place[loop.reads[k]] for k in j),
            width=some(loop.width),
            external=some(loop.external),
            noise=some(loop.noise),
            count=some(loop.count),
            q0=some(loop.q0),
            dq0=some(loop.dq0),
            bias=some(loop.bias),
        )


def find_branches(loop: Loop) -> tuple[Branch, ...]:
    """The branches of a loop's robot, if there are several that nothing couples; else none."""
    structure, robot = loop.idim.structure, loop.idim.robot
    whole = robot.floating or robot.loops or robot.sensed or structure.sensors or loop.idim.free
    if whole or loop.mount is not None:
        return ()
    found = KEPT.get(id(structure))
    if found is None or found[0] is not structure:
        groups = group_joints(structure)
        branches = () if len(groups) < 2 else tuple(cut_branch(structure, g) for g in groups)
        if len(KEPT) >= MOST_KEPT:
            KEPT.clear()
        found = KEPT[id(structure)] = structure, branches
    place = {int(j): k for k, branch in enumerate(found[1]) for j in branch.joints}
    # a law that reads an encoder of another branch couples them
    apart = all(place.get(j) == place.get(r) for j, r in enumerate(loop.reads or ()))
    return found[1] if apart else ()


def group_joints(structure: Structure) -> list[Integers]:
    """Joints that links, drives or elements couple, in order."""
    robot, drives = structure.robot, structure.robot.drives
    near = (drives.turns != 0.0) | (drives.reduction != 0.0)
    pairs = [(j, joint.parent - 1) for j, joint in enumerate(robot.joints) if joint.parent]
    pairs += [(each.joint, each.over) for each in structure.elements if each.over is not None]
    pairs += [(int(a), int(b)) for a, b in zip(*np.nonzero(near), strict=True)]
    group = list(range(robot.n))
    for a, b in pairs:
        old, new = group[a], group[b]
        group = [new if each == old else each for each in group]
    return [np.flatnonzero(np.array(group) == each) for each in dict.fromkeys(group)]


def cut_branch(structure: Structure, joints: Integers) -> Branch:
    """The model of some joints alone."""
    robot, drives = structure.robot, structure.robot.drives
    number = {int(j) + 1: k for k, j in enumerate(joints, 1)}
    square = np.ix_(joints, joints)
    chosen = [robot.joints[j] for j in joints]
    alone = Robot(
        robot.name,
        tuple(replace(each, parent=number.get(each.parent, 0)) for each in chosen),
        robot.nominal[joints],
        replace(
            drives, turns=drives.turns[square], reduction=drives.reduction[square],
            zero=drives.zero[joints], gain=drives.gain[joints],
        ),
        base_link=robot.base_link,
        gravity=robot.gravity,
    )  # fmt: skip
    frictions = split_friction_names(structure.friction)
    if len(frictions) > 1:
        frictions = [frictions[j] for j in joints]
    place = {int(j): k for k, j in enumerate(joints)}
    elements = tuple(each.among(place) for each in structure.elements if each.joint in place)
    whole = Idim(structure)
    return Branch(
        joints,
        Structure(alone, ",".join(frictions), structure.rotor, elements),
        np.array([k for k, each in enumerate(whole.parameters) if each.number in number]),
        np.array(
            [k for k, each in enumerate(whole.shape_parameters) if each.parameter.number in number],
            dtype=np.int64,
        ),
    )
