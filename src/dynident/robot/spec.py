"""What a TOML file says of a robot, checked at the door."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, Strict, model_validator

from dynident.core.schema import Flag, Name, Number, Spec
from dynident.robot.model import HUGE, HYSTERESIS, TINY

JointRef = Name | Annotated[int, Strict(), Field(ge=1)]
"""A joint's name, or its 1-based number."""

Size = Annotated[Number, Field(gt=-HUGE, lt=HUGE)]
"""A number whose squares and products are finite too."""
Sizes3 = tuple[Size, Size, Size]
Positive = Annotated[Number, Field(gt=0.0)]
SLIPS = (1e-4, 3e-4, 1e-3)
"""By which bristles of a spring's hysteresis bend before they slip, where nothing is said."""


class DriveSpec(Spec):
    """One drive."""

    joint: JointRef
    """The joint that it belongs to: a name or a 1-based number."""
    row: dict[str, Size] | None = None
    """How the drive turns with the joints, ``w = sum row[j] dq_j``; with its own joint alone when
    left out."""
    gain: Annotated[Number, AfterValidator(refuse_no_gain)] = 1.0
    """Torque per unit of logged current or voltage [Nm/A, N/V]."""
    link: tuple[Literal["position", "torque"], ...] = ()
    """What logs have of the link's side of its gear, which is then a spring: ``link_<joint>``,
    ``torque_<joint>``."""
    spring: tuple[Literal["cubic", "hysteresis", "lag", "scale", "stiffness"], ...] = ()
    """What it has beside stiffness, damping and offset: a cubic stiffness; hysteresis; a lag of the
    link's encoder, and a share by which that counts too little. Of a torque sensor without that
    encoder, that stiffness and damping are estimated at all."""
    slip: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=len(HYSTERESIS))] = SLIPS
    """Deflections by which the bristles of hysteresis slip, six at most [rad or m]."""

    @model_validator(mode="after")
    def _spring_of_an_encoder(self) -> Self:
        if "stiffness" in self.spring:
            if self.link != ("torque",) or len(self.spring) > 1:
                raise ValueError('spring = ["stiffness"] needs the torque alone, link = ["torque"]')
        elif self.spring and "position" not in self.link:
            raise ValueError('spring needs the encoder of the link, link = ["position"]')
        if self.slip != SLIPS and "hysteresis" not in self.spring:
            raise ValueError('slip needs spring = ["hysteresis"]')
        if any(b <= a for a, b in pairwise(self.slip)):
            raise ValueError("slip takes lengths that rise")
        return self


class TransmissionSpec(Spec):
    """Motor-side logs: ``q_m = reduction @ (q - zero)``, ``tau = reduction.T @ tau_m``."""

    reduction: tuple[Number, ...] | tuple[tuple[Number, ...], ...] | None = None
    """n numbers (the diagonal) or an n x n matrix; the identity when left out."""
    zero: tuple[Number, ...] | None = None
    """Joint positions where all motors read zero [rad or m]; zeros when left out."""


def refuse_no_gain(gain: float) -> float:
    """Refuse a gain that makes no torque of any current."""
    if gain == 0.0:
        raise ValueError("is 0, so that no current gives a torque; leave it out where it is 1")
    return gain


def refuse_tiny_mass(mass: float) -> float:
    """Refuse masses that only rounding can have left."""
    if 0.0 < mass < TINY:
        raise ValueError(f"is {mass:g} kg, which is not a mass; write 0 for none")
    return mass


class InertialSpec(Spec):
    """Nominal inertia of a link."""

    mass: Annotated[Size, Field(ge=0.0), AfterValidator(refuse_tiny_mass)]
    """[kg]"""
    com: Sizes3 = (0.0, 0.0, 0.0)
    """Centre of mass in the joint's body frame (see `dynident.robot.dh`) [m]."""
    inertia: tuple[Size, Size, Size, Size, Size, Size] = (0.0,) * 6
    """xx xy yy xz yz zz about the centre of mass, axes of that frame [kg m^2]."""


class DHJointSpec(Spec):
    """One row of a Denavit-Hartenberg table."""

    name: Name
    link: Name | None = None
    """The link that it moves; ``link_<k>`` for the k-th joint when left out."""
    type: Literal["revolute", "prismatic"] = "revolute"
    alpha: Size = 0.0
    a: Size = 0.0
    d: Size = 0.0
    theta0: Size = 0.0
    """`alpha`, `a`, `d`, `theta0`: angles in the table's unit, lengths in metres."""
    parent: Name | None = None
    """The joint that carries this one: the previous one when left out, "base" for none."""
    lower: Number | None = None
    upper: Number | None = None
    velocity: Positive | None = None
    """`lower`, `upper`, `velocity`: limits; of revolute joints in the table's angle unit."""
    effort: Positive | None = None
    """[Nm or N]"""
    inertial: InertialSpec | None = None


class BaseSpec(Spec):
    """Pose of a fixed base in the world: ``xyz`` [m], ``rpy`` in the file's angle unit."""

    xyz: Sizes3 = (0.0, 0.0, 0.0)
    rpy: Sizes3 = (0.0, 0.0, 0.0)


class LoopSpec(Spec):
    """What closes a chain of the tree: two frames that meet, or a joint that follows another."""

    name: Name | None = None
    """The names of its links or joints when left out."""
    kind: Literal["point", "axis", "planar", "weld", "joint"] | None = None
    """What meets: points (a ball joint); points and axes (a hinge); points in the plane across the
    axis; all; or `joints` that are coupled. Left out of a loop that the MJCF has: `passive` and
    `start` are then its own."""
    links: tuple[Name, ...] = ()
    """Tuple of 2 str. Links of the URDF, those fixed to the base included."""
    at: tuple[Sizes3, Sizes3] = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    axis: tuple[Sizes3, Sizes3] = ((0.0, 0.0, 1.0), (0.0, 0.0, 1.0))
    """`at`, `axis`: the points and the axes in the links' frames; origins and z when left out
    [m]."""
    joints: tuple[Name, ...] = ()
    """Tuple of 2 str. Of a coupling: the joint that follows, and the one that leads."""
    polynomial: tuple[Size, ...] = (0.0, 1.0)
    """Of a coupling: ``q_follows = c0 + c1 q_leads + c2 q_leads^2 ...``."""
    passive: tuple[Name, ...] = ()
    """Joints without a drive; of a coupling the one that follows."""
    start: dict[str, Size] = Field(default_factory=dict)
    """Joint positions near a closed chain, zero when left out [rad or m]."""

    @model_validator(mode="after")
    def _two_ends(self) -> Self:
        ends = {None: (0, 0), "joint": (0, 2)}.get(self.kind, (2, 0))
        if (len(self.links), len(self.joints)) != ends:
            raise ValueError("a loop has two links, a coupling (kind = 'joint') two joints")
        if self.kind is None and self.name is None:
            raise ValueError("has neither kind nor the name of a loop of the MJCF")
        return self


class RobotSpec(Spec):
    """A robot file: a URDF or an MJCF with what it lacks, or a DH table."""

    name: Name | None = None
    """That of the URDF or the MJCF, or the file's stem, when left out."""
    urdf: Name | None = None
    """Path of a URDF, relative to this file."""
    mjcf: Name | None = None
    """Path of an MJCF instead."""
    convention: Literal["modified", "standard"] | None = None
    """The DH table's; see `dynident.robot.dh`."""
    joint: tuple[DHJointSpec, ...] = ()
    """The DH table."""
    angles: Literal["deg", "rad"] = "deg"
    """Unit of the table's and `base`'s angles (`transmission.zero` and `locked` are SI)."""
    base: BaseSpec | None = None
    gravity: Sizes3 | None = None
    """In the world [m/s^2]."""
    floating: Flag = False
    transmission: TransmissionSpec | None = None
    drive: tuple[DriveSpec, ...] = ()
    locked: dict[str, Size] = Field(default_factory=dict)
    """Joints that stay at a value [rad or m]; their bodies merge into their parents."""
    loop: tuple[LoopSpec, ...] = ()
    """What closes chains of the URDF's tree."""

    @model_validator(mode="after")
    def _one_description(self) -> Self:
        given = [key for key in ("urdf", "mjcf", "convention") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(
                'give either urdf = "file.urdf", or mjcf = "file.xml", or convention = "modified" '
                '| "standard" with [[joint]] rows'
            )
        if self.convention is None and self.joint:
            raise ValueError(f"[[joint]] rows define a DH table and exclude {given[0]}")
        if self.convention is not None and not self.joint:
            raise ValueError("the DH table has no [[joint]] rows")
        return self
