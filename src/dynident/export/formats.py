"""Kinds of files that an identified model is written as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.errors import refuse_unknown
from dynident.dynamics.idim import Idim
from dynident.dynamics.whole import WholeModel
from dynident.export.actuators import render_isaac_lab, render_mjlab
from dynident.export.bam import render_bam
from dynident.export.c_code import c_code
from dynident.export.c_springs import render_elastic_function
from dynident.export.exported import is_coupled_alone, list_followers
from dynident.export.mjcf import render_identified_mjcf
from dynident.export.sdf import render_sdf
from dynident.export.servo import Servo
from dynident.export.springs import list_joint_springs
from dynident.export.urdf import render_standard_urdf
from dynident.export.usd import render_usd
from dynident.robot.mjcf import is_mjcf
from dynident.robot.mjcf_loops import CUBIC
from dynident.robot.model import Robot

Rendered = tuple[bytes, tuple[str, ...]]
"""A file, and notes on what has no place in it."""


class Render(Protocol):
    """What writes standard parameters as a file: see `render_identified_mjcf`."""

    def __call__(
        self,
        idim: Idim,
        theta: Array,
        folder: Path | None,
        width: npt.ArrayLike | None,
        servos: Sequence[Servo],
        /,
    ) -> Rendered:
        """Write links that sensors hold as bodies of their own, where it can."""


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes
    ----------
    what : str
        "a URDF".
    help : str
        Of its flag.
    suffix : str
    render : Render
    holds : tuple of str, optional
        Symbols of the drives' parameters that it has a place for beside links, which have to exist
        then. None of what gives the torques of the whole model, which asks for neither.
    loop : tuple of str
        Of the law of a fit to positions, what it has a place for: gain, bias, off, delay.
    springs : bool
        Whether it has springs in joints.
    couplings : int
        Degree of the laws by which its joints can follow others; 0 of none.
    """

    what: str
    help: str
    suffix: str
    render: Render
    holds: tuple[str, ...] | None = None
    loop: tuple[str, ...] = ()
    springs: bool = False
    couplings: int = 0

    @property
    def name(self) -> str:
        """Without its article."""
        return self.what.partition(" ")[2]


def render_urdf_file(idim: Idim, theta: Array, *_: object) -> Rendered:
    """A URDF, in which a link that a sensor holds has its own inertial."""
    document, notes = render_standard_urdf(idim, theta)
    own = list_followers(idim.robot)
    left = [loop.name for loop in idim.robot.loops if not own.keys() & {*loop.passive}]
    said = f"a URDF has trees alone: the loop {', '.join(left)} stays in the study"
    return document, (*notes, said) if left else notes


def render_c_file(idim: Idim, theta: Array, *_: object) -> Rendered:
    """C99 with the exact sign of Coulomb friction; springs in a function of their own."""
    model, springs = WholeModel(idim, theta), list_joint_springs(idim, theta)
    elastic = render_elastic_function(model, springs)
    left = ", ".join(name for own in springs for name in own.bristles)
    notes = (f"not in the C code, whose springs have no memory: {left}",) * bool(left)
    return (c_code(model) + elastic).encode(), notes


DRIVES = ("Ia", "fv", "fc")
MOTORS = (*DRIVES, "Iam", "fvm", "fcm")
EXPORTS = {
    "urdf": Format("a URDF", "The URDF to write.", "urdf", render_urdf_file, ("fv", "fc")),
    "mjcf": Format(
        "an MJCF",
        "The MJCF to write.",
        "xml",
        render_identified_mjcf,
        MOTORS,
        ("gain", "bias", "off", "limit", "damping", "delay", "backlash"),
        springs=True,
        couplings=CUBIC - 1,
    ),
    "sdf": Format(
        "an SDF", "Bodies, joints and rotors for Drake and Gazebo.", "sdf", render_sdf, DRIVES,
        couplings=1,
    ),
    "usd": Format(
        "a USD", "Bodies, joints and drives for Newton, as text.", "usda", render_usd, DRIVES,
        ("gain", "limit", "damping"), couplings=1,
    ),
    "mjlab": Format(
        "an mjlab module", "Actuators for mjlab, a module of Python.", "py", render_mjlab, DRIVES,
        ("gain", "delay", "limit", "damping"),
    ),
    "isaaclab": Format(
        "an Isaac Lab module", "Actuators for Isaac Lab, a module of Python.", "py",
        render_isaac_lab, DRIVES, ("gain", "delay", "limit", "damping"),
    ),
    "bam": Format(
        "a BAM file", "Friction of each drive for BAM, as JSON.", "json", render_bam, DRIVES
    ),
    "c": Format(
        "C code", "Inverse dynamics in C99, the file to write.", "c", render_c_file, springs=True
    ),
}  # fmt: skip
"""By name, which is that of the flag of ``dynident export``, too."""


def find_format(name: str, robot: Robot | None = None) -> Format:
    """The one of a name; refused where it cannot hold loops that the robot has."""
    refuse_unknown(name, EXPORTS, f"format {name!r} is not known")
    found = EXPORTS[name]
    if robot is not None and not (
        name in (choose_own_format(robot), "c") or is_coupled_alone(robot, found.couplings)
    ):
        robot.refuse_loops(found.what)
    return found


def list_model_formats() -> dict[str, Format]:
    """Those that hold links."""
    return {name: form for name, form in EXPORTS.items() if form.holds is not None}


def choose_own_format(robot: Robot) -> str:
    """The name of that which a robot's own file has, a URDF where it came from no such file."""
    return "mjcf" if is_mjcf(robot) else "urdf"
