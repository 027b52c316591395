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
    """One drive.

    Attributes
    ----------
    joint : str or int
        The joint that it belongs to: a name or a 1-based number.
    row : dict of str to float, optional
        How the drive turns with the joints, ``w = sum row[j] dq_j``; with its own joint
        alone when left out.
    gain : float
        Torque per unit of logged current or voltage [Nm/A, N/V].
    link : tuple of {"position", "torque"}
        What logs have of the link's side of its gear, which is then a spring: ``link_<joint>``,
        ``torque_<joint>``.
    spring : tuple of {"cubic", "hysteresis", "lag", "scale", "stiffness"}
        What it has beside stiffness, damping and offset: a cubic stiffness; hysteresis; a lag of
        the link's encoder, and a share by which that counts too little. Of a torque sensor without
        that encoder, that stiffness and damping are estimated at all.
    slip : tuple of float
        Deflections by which the bristles of hysteresis slip, six at most [rad or m].
    """

    joint: JointRef
    row: dict[str, Size] | None = None
    gain: Number = 1.0
    link: tuple[Literal["position", "torque"], ...] = ()
    spring: tuple[Literal["cubic", "hysteresis", "lag", "scale", "stiffness"], ...] = ()
    slip: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=len(HYSTERESIS))] = SLIPS

    @model_validator(mode="after")
    def _spring_of_an_encoder(self) -> Self:
        if "stiffness" in self.spring:
            if self.link != ("torque",) or len(self.spring) > 1:
                raise ValueError('spring = ["stiffness"] takes the torque alone, link = ["torque"]')
        elif self.spring and "position" not in self.link:
            raise ValueError('spring takes the encoder of the link, link = ["position"]')
        if self.slip != SLIPS and "hysteresis" not in self.spring:
            raise ValueError('slip is of hysteresis, spring = ["hysteresis"]')
        if any(b <= a for a, b in pairwise(self.slip)):
            raise ValueError("slip takes lengths that rise")
        return self


class TransmissionSpec(Spec):
    """Motor-side logs: ``q_m = reduction @ (q - zero)``, ``tau = reduction.T @ tau_m``.

    Attributes
    ----------
    reduction : tuple, optional
        n numbers (the diagonal) or an n x n matrix; the identity when left out.
    zero : tuple of float, optional
        Joint positions where all motors read zero [rad or m]; zeros when left out.
    """

    reduction: tuple[Number, ...] | tuple[tuple[Number, ...], ...] | None = None
    zero: tuple[Number, ...] | None = None


def refuse_tiny_mass(mass: float) -> float:
    """Refuse masses that only rounding can have left."""
    if 0.0 < mass < TINY:
        raise ValueError(f"is {mass:g} kg, which is no mass; write 0 for none")
    return mass


class InertialSpec(Spec):
    """Nominal inertia of a link.

    Attributes
    ----------
    mass : float
        [kg]
    com : tuple of 3 floats
        Centre of mass in the joint's body frame (see `dynident.robot.dh`) [m].
    inertia : tuple of 6 floats
        xx xy yy xz yz zz about the centre of mass, axes of that frame [kg m^2].
    """

    mass: Annotated[Size, Field(ge=0.0), AfterValidator(refuse_tiny_mass)]
    com: Sizes3 = (0.0, 0.0, 0.0)
    inertia: tuple[Size, Size, Size, Size, Size, Size] = (0.0,) * 6


class DHJointSpec(Spec):
    """One row of a Denavit-Hartenberg table.

    Attributes
    ----------
    link : str, optional
        The link that it moves; ``link_<k>`` for the k-th joint when left out.
    type : {"revolute", "prismatic"}
    alpha, a, d, theta0 : float
        Angles in the table's unit, lengths in metres.
    parent : str, optional
        The joint that carries this one: the previous one when left out, "base" for none.
    lower, upper, velocity : float, optional
        Limits; of revolute joints in the table's angle unit.
    effort : float, optional
        [Nm or N]
    """

    name: Name
    link: Name | None = None
    type: Literal["revolute", "prismatic"] = "revolute"
    alpha: Size = 0.0
    a: Size = 0.0
    d: Size = 0.0
    theta0: Size = 0.0
    parent: Name | None = None
    lower: Number | None = None
    upper: Number | None = None
    velocity: Positive | None = None
    effort: Positive | None = None
    inertial: InertialSpec | None = None


class BaseSpec(Spec):
    """Pose of a fixed base in the world: ``xyz`` [m], ``rpy`` in the file's angle unit."""

    xyz: Sizes3 = (0.0, 0.0, 0.0)
    rpy: Sizes3 = (0.0, 0.0, 0.0)


class LoopSpec(Spec):
    """What closes a chain of the tree: two frames that meet, or a joint that follows another.

    Attributes
    ----------
    name : str, optional
        The names of its links or joints when left out.
    kind : {"point", "axis", "planar", "weld", "joint"}, optional
        What meets: points (a ball joint); points and axes (a hinge); points in the plane across the
        axis; all; or `joints` that are coupled. Left out of a loop that the MJCF has: `passive` and
        `start` are then its own.
    links : tuple of 2 str
        Links of the URDF, those fixed to the base included.
    at, axis : tuple of 2 tuples of 3 floats
        The points and the axes in the links' frames; origins and z when left out [m].
    joints : tuple of 2 str
        Of a coupling: the joint that follows, and the one that leads.
    polynomial : tuple of float
        Of a coupling: ``q_follows = c0 + c1 q_leads + c2 q_leads^2 ...``.
    passive : tuple of str
        Joints without a drive; of a coupling the one that follows.
    start : dict of str to float
        Joint positions near a closed chain, zero when left out [rad or m].
    """

    name: Name | None = None
    kind: Literal["point", "axis", "planar", "weld", "joint"] | None = None
    links: tuple[Name, ...] = ()
    at: tuple[Sizes3, Sizes3] = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    axis: tuple[Sizes3, Sizes3] = ((0.0, 0.0, 1.0), (0.0, 0.0, 1.0))
    joints: tuple[Name, ...] = ()
    polynomial: tuple[Size, ...] = (0.0, 1.0)
    passive: tuple[Name, ...] = ()
    start: dict[str, Size] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _two_ends(self) -> Self:
        ends = {None: (0, 0), "joint": (0, 2)}.get(self.kind, (2, 0))
        if (len(self.links), len(self.joints)) != ends:
            raise ValueError("a loop has two links, a coupling (kind = 'joint') two joints")
        if self.kind is None and self.name is None:
            raise ValueError("has neither kind nor the name of a loop of the MJCF")
        return self


class RobotSpec(Spec):
    """A robot file: a URDF or an MJCF with what it lacks, or a DH table.

    Attributes
    ----------
    name : str, optional
        That of the URDF or the MJCF, or the file's stem, when left out.
    urdf : str, optional
        Path of a URDF, relative to this file.
    mjcf : str, optional
        Path of an MJCF instead.
    convention : {"modified", "standard"}, optional
        The DH table's; see `dynident.robot.dh`.
    joint : tuple of DHJointSpec
        The DH table.
    angles : {"deg", "rad"}
        Unit of the table's and `base`'s angles (`transmission.zero` and `locked` are SI).
    gravity : tuple of 3 floats, optional
        In the world [m/s^2].
    locked : dict of str to float
        Joints that stay at a value [rad or m]; their bodies merge into their parents.
    loop : tuple of LoopSpec
        What closes chains of the URDF's tree.
    """

    name: Name | None = None
    urdf: Name | None = None
    mjcf: Name | None = None
    convention: Literal["modified", "standard"] | None = None
    joint: tuple[DHJointSpec, ...] = ()
    angles: Literal["deg", "rad"] = "deg"
    base: BaseSpec | None = None
    gravity: Sizes3 | None = None
    floating: Flag = False
    transmission: TransmissionSpec | None = None
    drive: tuple[DriveSpec, ...] = ()
    locked: dict[str, Size] = Field(default_factory=dict)
    loop: tuple[LoopSpec, ...] = ()

    @model_validator(mode="after")
    def _one_description(self) -> Self:
        given = [key for key in ("urdf", "mjcf", "convention") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(
                'give either urdf = "file.urdf", or mjcf = "file.xml", or convention = "modified" '
                '| "standard" with [[joint]] rows'
            )
        if self.convention is None and self.joint:
            raise ValueError(
                f"[[joint]] rows are of a DH table and have no place beside {given[0]}"
            )
        if self.convention is not None and not self.joint:
            raise ValueError("the DH table has no [[joint]] rows")
        return self
