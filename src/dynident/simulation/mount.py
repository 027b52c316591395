"""What a robot stands on or hangs from, where that gives way: springs and dampers under its base.

Each axis is a joint between the world and the base that no encoder reads and no motor drives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError, OptionError
from dynident.core.text import suggest_nearest
from dynident.dynamics.idim import Idim
from dynident.dynamics.parameters import JointElements
from dynident.dynamics.structure import Structure
from dynident.friction.elements import spring
from dynident.friction.names import split_friction_names
from dynident.robot.model import Joint, Robot

AXES: dict[str, tuple[Literal["prismatic", "revolute"], tuple[float, float, float]]] = {
    "x": ("prismatic", (1.0, 0.0, 0.0)),
    "y": ("prismatic", (0.0, 1.0, 0.0)),
    "z": ("prismatic", (0.0, 0.0, 1.0)),
    "roll": ("revolute", (1.0, 0.0, 0.0)),
    "pitch": ("revolute", (0.0, 1.0, 0.0)),
    "yaw": ("revolute", (0.0, 0.0, 1.0)),
}
"""Along and about the axes of the base, through its origin."""
SYMBOLS = ("Ia", "fv", "ks")
"""Of an axis: inertia of what moves with the base, damping, stiffness."""
PRELOAD = "ps"


@dataclass(frozen=True, eq=False)
class Mount:
    """Springs and dampers between the world and the base.

    They bear the robot's weight where its targets begin: there the base is as the file has it.
    """

    axes: tuple[str, ...]
    """Of `AXES`."""
    values: Array
    """Inertia of base and stand [kg m^2 or kg], damping [Nm s/rad or N s/m] and stiffness [Nm/rad
    or N/m] of each, shape (axes, 3)."""
    level: Array | None = None
    """Positions of the joints where the springs bear the weight, if others, shape (n,)."""
    start: Array | None = None
    """Shape (2, axes). Positions and speeds with which the axes begin; at rest and level by
    default."""

    def __post_init__(self) -> None:
        refuse_unknown_axes(self.axes)
        if np.shape(self.values) != (len(self.axes), len(SYMBOLS)):
            raise InputError(f"a mount of {len(self.axes)} axes needs as many rows of 3 values")

    @property
    def named(self) -> dict[str, float]:
        """Values by name: ``ks_pitch``."""
        return dict(
            zip(list_mount_parameters(self.axes), np.ravel(self.values).tolist(), strict=True)
        )


def list_mount_parameters(axes: Sequence[str]) -> tuple[str, ...]:
    """Of a mount's parameters, axis by axis."""
    return tuple(f"{symbol}_{axis}" for axis in axes for symbol in SYMBOLS)


def refuse_unknown_axes(axes: Sequence[str]) -> None:
    """Refuse what is not an axis, and the same twice."""
    for axis in axes:
        if axis not in AXES:
            words = f"axis {axis!r} is not known{suggest_nearest(axis, AXES)}"
            raise OptionError("mount", f"mount: {words}")
    if len(set(axes)) < len(axes):
        raise OptionError("mount", f"mount: {', '.join(axes)} name an axis twice")


def find_mount(values: Mapping[str, float]) -> Mount | None:
    """The mount whose parameters are among named values."""
    axes = tuple(axis for axis in AXES if f"{SYMBOLS[-1]}_{axis}" in values)
    if not axes:
        return None
    return Mount(axes, np.array([[values[f"{s}_{axis}"] for s in SYMBOLS] for axis in axes]))


@dataclass(frozen=True, eq=False)
class MountedModel:
    """A model on a mount: the mount's joints first, then the robot's."""

    idim: Idim
    axes: tuple[str, ...]

    @cached_property
    def own(self) -> Integers:
        """Places of the robot's parameters among all, in its own order."""
        m = len(self.axes)
        return np.array([k for k, p in enumerate(self.idim.parameters) if p.number > m])

    def place(self, name: str) -> int:
        """Place of a mount's parameter: ``ks_pitch``."""
        symbol, _, axis = name.partition("_")
        return self.idim.names.index(f"{symbol}{self.axes.index(axis) + 1}")

    def theta(self, mount: Mount, theta: Array, q: Array) -> Array:
        """All parameters, the springs bearing the weight at positions q of the robot's joints."""
        every = np.zeros(len(self.idim.parameters))
        every[self.own] = theta
        for name, value in mount.named.items():
            every[self.place(name)] = value
        m, rest = len(self.axes), np.zeros((1, self.idim.robot.n))
        at = np.concatenate([np.zeros(m), q])[None]
        weight = self.idim.torque(every, at, rest, rest)[0]
        for axis, load in zip(self.axes, weight, strict=False):
            every[self.place(f"{PRELOAD}_{axis}")] = -load
        return every


def mount_model(idim: Idim, axes: Sequence[str]) -> MountedModel:
    """A robot's model on a mount."""
    robot, m = idim.robot, len(axes)
    if robot.floating or not idim.rotor:
        raise InputError(f"{robot.name}: a mount needs a fixed base, and drives with rotors")
    joints = [
        Joint(f"mount {axis}", f"mount {axis}", AXES[axis][0], k, np.eye(3), np.zeros(3),
              np.array(AXES[axis][1]))
        for k, axis in enumerate(axes)
    ]  # fmt: skip
    joints += [replace(joint, parent=joint.parent + m) for joint in robot.joints]
    nominal, drives = np.pad(robot.nominal, ((m, 0), (0, 0))), robot.drives.behind(m)
    carried = Robot(robot.name, tuple(joints), nominal, drives, gravity=robot.gravity)
    frictions = split_friction_names(idim.friction)
    frictions *= robot.n if len(frictions) == 1 else 1
    springs = [JointElements(k, spring()) for k in range(m)]
    others = [each.among(range(m, m + robot.n)) for each in idim.elements]
    names = ",".join([*["viscous"] * m, *frictions])
    structure = Structure(carried, names, idim.rotor, (*springs, *others))
    found = Idim(structure, idim.shape, limits=idim.limits)
    return MountedModel(found, tuple(axes))
