"""Standard parameters, the drives they belong to, and where their columns stand in packed rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.core.options import HUGE
from dynident.dynamics.equations import EstimatedSensor
from dynident.friction.elements import ELEMENTS, number_symbols
from dynident.friction.model import FrictionModel, ShapeTerm
from dynident.robot.model import LAW


@dataclass(frozen=True)
class Parameter:
    """One standard parameter: a symbol and the number of its joint or link."""

    symbol: str
    number: int
    positive: bool = False
    sparse: bool = False
    """As of `LinearTerm`."""

    @property
    def name(self) -> str:
        """``Izz1``, ``fv4``, ``Iam6``."""
        return f"{self.symbol}{self.number}"


@dataclass(frozen=True)
class ShapeParameter:
    """One shape parameter of one drive's friction; `bounds` says where it may be."""

    parameter: Parameter
    bounds: ShapeTerm

    @property
    def name(self) -> str:
        """``vs3``, ``vsm6``."""
        return self.parameter.name


@dataclass(frozen=True)
class Gear:
    """A drive, and how it turns: with ``turns @ q``."""

    number: int
    """Of its joint."""
    turns: Array
    """Shape (n,)."""
    coupled: bool
    """Whether it is the motor of a coupled drive; else the joint's own. Symbols of its parameters
    end in m."""
    drives: bool = True
    """Whether it is a drive at all, and no cable between two joints."""

    def symbol(self, symbol: str) -> str:
        """That of the drive's own parameter."""
        return f"{symbol}m" if self.coupled else symbol


class ElementOrigin(NamedTuple):
    """What an element was made of."""

    kind: str
    """Name in `dynident.friction.elements.ELEMENTS`."""
    given: tuple[tuple[str, Any], ...]
    """What its maker was told."""
    before: int
    """How many of its kind its joint has before it."""


@dataclass(frozen=True)
class JointElements:
    """What acts on a joint beside the friction of its drive."""

    joint: int
    """Index of the joint."""
    model: FrictionModel
    """From a maker in `dynident.friction.elements.ELEMENTS`."""
    over: int | None = None
    """Index of another joint that it couples: it then acts on what a cable or a belt over both
    sees, ``q_joint + ratio q_over``."""
    ratio: float = 1.0
    origin: ElementOrigin | None = None
    """What its maker was told, so that it can be made again; None of what was made otherwise."""

    def __post_init__(self) -> None:
        if not abs(self.ratio) <= HUGE:
            raise InputError(f"ratio is {self.ratio:g}; {HUGE:g} at most in magnitude")

    def among(self, places: Mapping[int, int] | Sequence[int] | Integers) -> JointElements:
        """The same of a robot whose joints have other places, by those that they have."""
        over = None if self.over is None else int(places[self.over])
        return replace(self, joint=int(places[self.joint]), over=over)

    def turns(self, n: int) -> Array:
        """How what it acts on turns with the joints, shape (n,)."""
        turns = np.zeros(n)
        turns[self.joint] = 1.0
        if self.over is not None:
            turns[self.over] = self.ratio
        return turns


def attach(
    joint: int,
    kind: str,
    given: Mapping[str, Any],
    over: int | None = None,
    ratio: float = 1.0,
    before: int = 0,
) -> JointElements:
    """An element on a joint: a kind of `dynident.friction.elements.ELEMENTS`, and what it is told.

    For `over` and `ratio` see `JointElements`; `before` is how many of its kind the joint has.
    """
    model = number_symbols(ELEMENTS[kind](**given), before)
    return JointElements(
        joint, model, over, ratio, ElementOrigin(kind, tuple(given.items()), before)
    )


@dataclass(frozen=True)
class DriveFriction:
    """A friction model, or what else acts, on one drive."""

    gear: int
    """Which of the model's `gears`."""
    model: FrictionModel
    terms: tuple[int, ...]
    """Which of its parameters the drive has."""
    shape: slice
    """Its shape parameters among all."""
    link: bool = False
    """Whether it acts on the links, beyond springs in the joints, and not on motors."""


@dataclass(frozen=True)
class DriveColumn:
    """A drive's parameter and how it acts: ``turns * f(turns @ q, turns @ dq)`` on the joints.

    ``gear`` says which of the model's gears, ``friction`` and ``term`` which of its frictions
    and which of the columns of that; they are None for the rotor inertia, which acts through
    ``turns @ ddq``. With ``shape`` instead of a term the column is the derivative of the
    friction by that of its shapes.
    """

    parameter: Parameter
    gear: int
    turns: Array
    friction: int | None = None
    term: int | None = None
    shape: int | None = None


@dataclass(frozen=True)
class SensorParameter(Parameter):
    """What is not known of a sensor of forces; its number is behind all joints'."""

    @property
    def name(self) -> str:
        """``fz0_FL``, ``rx_FL``; of a log of its own ``fz0_FL@sway``."""
        return self.symbol


NOBODYS = EstimatedSensor("")


@dataclass(frozen=True)
class SensorColumn(DriveColumn):
    """Such a parameter and how it acts: through the lever of its contact, or as targets are late.

    ``axis`` is the component that is biased, or that about which the sensor is ``tilted``.
    """

    sensor: EstimatedSensor = NOBODYS
    axis: int = 0
    tilted: bool = False

    @property
    def unit(self) -> str:
        """Of the parameter."""
        late = self.sensor.contact == LAW
        return "s" if late else "rad" if self.tilted else "N" if self.axis < 3 else "Nm"


@dataclass(frozen=True)
class PlainColumns:
    """Drive columns of one kind, of several gears: they take speed or acceleration alone."""

    weights: tuple[float, float, float] | None
    """See `LinearTerm`; None for rotors' inertia, which acts through the acceleration."""
    gears: Integers
    """Which of the model's `gears` each is of, shape (k,)."""
    factors: Array
    """How each acts on its row, shape (k,)."""
    slots: Integers
    """Where each stands, shape (k,)."""


@dataclass(frozen=True)
class Packing:
    """Where the entries of the chosen columns stand in packed rows."""

    slot: Integers
    """For the regressor kernel, shape (bodies, longest path, 10)."""
    drive: tuple[tuple[DriveColumn, int, int], ...]
    """Tuple of (column, joint row, slot). For the drive columns."""
    plain: tuple[PlainColumns, ...]
    """Those of them that take speed or acceleration alone."""
    special: tuple[tuple[DriveColumn, int, int], ...]
    """Tuple of (column, joint row, slot). The others."""
    joints: tuple[tuple[slice, Integers], ...]
    """Per row: its slots, and which of the chosen columns they are."""
    width: int
    """Entries a sample."""
    load_couplings: tuple[tuple[int, int, Integers, Integers], ...]
    """Tuple of (torque row, other row, slots, other's slots). Where columns of bodies act on a row
    through the friction under a load of another's torque, or its own."""
    empty: Integers
    """Slots that bodies reach in no other way."""
    felts: tuple[Integers, ...] = ()
    """As `slot`, for the rows of each sensor in the chain, shapes (a tree's bodies, longest path,
    10)."""
    tree: Packing | None = None
    """Of a robot with loops the layout of its tree's rows, which these combine."""
    mixed: tuple[tuple[tuple[int, int, Integers, Integers], ...], ...] = ()
    """Tuple of tuple of (row, tree's row, slots, tree's slots). Then how, of columns of bodies and
    of drives."""
