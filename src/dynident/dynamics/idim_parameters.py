"""What an identification model asks for: its standard parameters and the shapes of its friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array, check_states
from dynident.core.errors import InputError
from dynident.core.inertia import INERTIAL, is_consistent
from dynident.dynamics.equations import EstimatedSensor
from dynident.dynamics.parameters import (
    DriveColumn,
    DriveFriction,
    Gear,
    JointElements,
    Parameter,
    ShapeParameter,
)
from dynident.dynamics.springs import TERMS, SpringColumn
from dynident.dynamics.structure import Structure
from dynident.dynamics.tree import Tree
from dynident.robot.model import Robot

ROUNDING = 1e-9
"""By which a shape may be beyond its bounds, as a share of these."""


@dataclass(frozen=True)
class IdimParameters:
    """A robot with a friction model, as the linear model that is identified.

    Attributes
    ----------
    structure : Structure
        Robot, drives, friction models and elements.
    shape : tuple of float, optional
        Values of `shape_parameters`; the models' usual ones by default.
    about : tuple of float, optional
        A full set, without shapes: loads of the drives are those of its bodies, and shapes
        are linearised about its friction.
    free : bool
        Whether this is the model linearised about `shape` and `about`: the shapes are parameters
        too, after all others (zhang2018, eq. 14: ``K = [K_d, df / dphi_f]``), and bodies act
        through the loads of the friction, too.
    limits : tuple of (float, float), optional
        Narrower bounds of the shapes than their models': of what a log can show.
    blur : tuple of float
        Loads of each joint that are as good as zero [Nm or N]: the slope of the friction by its
        load is that between two of them, where there are loads to be linearised about.
    bearing : tuple of float, optional
        A full set, without shapes, whose bodies the loads are of, instead of those of `about`:
        then they are known, and bodies act through them no more.

    Raises
    ------
    InputError
        When the shape has another length, or a value beyond its bounds.
    """

    structure: Structure
    shape: tuple[float, ...] = ()
    about: tuple[float, ...] = ()
    free: bool = False
    limits: tuple[tuple[float, float], ...] = ()
    blur: tuple[float, ...] = ()
    bearing: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        known = self.shape_parameters
        if not self.shape:
            starts = tuple(each.bounds.start for each in known)
            object.__setattr__(self, "shape", starts)
        if len(self.shape) != len(known):
            raise InputError(
                f"{self.robot.name}: friction {self.friction!r} has {len(known)} shape parameters, "
                f"got {len(self.shape)} values"
            )
        if len(self.about) not in (0, self.plain):
            raise InputError(
                f"{self.robot.name}: linearised about {len(self.about)} values, but it has "
                f"{self.plain} parameters beside its shapes"
            )
        inside = []
        for each, value in zip(known, self.shape, strict=True):
            low, high = each.bounds.lower, each.bounds.upper
            inside.append(min(max(value, low), high))
            if not abs(value - inside[-1]) <= ROUNDING * max(abs(low), abs(high)):
                raise InputError(
                    f"{self.robot.name}: {each.name} is {value:g} but has to be from {low:g} to "
                    f"{high:g} {each.bounds.unit}"
                )
        object.__setattr__(self, "shape", tuple(inside))

    def take_motion(self, q: Array, dq: Array, ddq: Array) -> list[Array]:
        """A motion as arrays; refuses what is none of this robot's, as kernels do not look."""
        robot, found = self.robot, [np.asarray(each, dtype=float) for each in (q, dq, ddq)]
        check_states(robot.name, found, (robot.dof + robot.floating, robot.dof, robot.dof), True)
        return found

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.structure.robot

    @property
    def friction(self) -> str:
        """Name of its friction model, or one a joint with commas between them."""
        return self.structure.friction

    @property
    def rotor(self) -> bool:
        """Whether the drives' rotor inertias ``Ia`` are parameters."""
        return self.structure.rotor

    @property
    def elements(self) -> tuple[JointElements, ...]:
        """What else acts on the joints."""
        return self.structure.elements

    @property
    def tree(self) -> Tree:
        """The robot as the kernels read it."""
        return self.structure.tree

    @property
    def gears(self) -> tuple[Gear, ...]:
        """The drives: see `Structure.gears`."""
        return self.structure.gears

    @property
    def frictions(self) -> tuple[DriveFriction, ...]:
        """The friction of each of the gears, then the elements."""
        return self.structure.frictions

    @property
    def needs(self) -> frozenset[str]:
        """What its friction reads beside the motion."""
        return self.structure.needs

    @property
    def loaded(self) -> bool:
        """Whether any friction depends on the load of its drive."""
        return self.structure.loaded

    @property
    def has_states(self) -> bool:
        """Whether friction remembers: its columns are those of a motion, not of an instant."""
        return self.structure.has_states

    @property
    def bodies(self) -> int:
        """Number of bodies with parameters of their own: those of the tree, and parts of them."""
        return len(self.robot.links)

    @property
    def inertial(self) -> int:
        """Number of inertial parameters, the first of all: 10 bodies."""
        return self.structure.inertial

    @property
    def rows(self) -> int:
        """Number of rows an instant: see `Structure.rows`."""
        return self.structure.rows

    @property
    def plain(self) -> int:
        """Number of parameters beside the shapes."""
        return self.structure.plain

    def with_sensors(self, sensors: Sequence[EstimatedSensor], stated: Sequence[str] = ()) -> Self:
        """The same model with what is not known of some sensors, but for what is `stated`."""
        own = replace(self.structure, sensors=tuple(sensors), stated=tuple(stated))
        return replace(self, structure=own)

    def shaped(self, values: Sequence[float] | Array) -> Self:
        """The same model at other values of the `shape_parameters`."""
        return replace(self, shape=tuple(float(value) for value in values))

    def linearised(self, theta: Array) -> Self:
        """The model with its shapes as parameters, about a full set (with shapes or without)."""
        model, plain = self.settled(theta)
        return replace(model, about=tuple(plain.tolist()), free=bool(model.shape) or self.loaded)

    def settled(self, theta: Array) -> tuple[Self, Array]:
        """The model at the shapes of a full set, and that set without them.

        Shapes beyond their bounds, where a step may have led, are at them.
        """
        if not self.free:
            return self, theta
        plain, shape = theta[: self.plain], self.shape
        if len(theta) > len(plain):
            shape = tuple(np.clip(theta[self.plain :], *self.shape_bounds).tolist())
        return replace(self, shape=shape, about=tuple(plain.tolist()), free=False), plain

    def limited(self, limits: Sequence[tuple[float, float]]) -> Self:
        """The same model with narrower bounds of its shapes, and these within them."""
        shape = [
            min(max(value, low), high)
            for value, (low, high) in zip(self.shape, limits, strict=True)
        ]
        return replace(self, shape=tuple(shape), limits=tuple(limits))

    @cached_property
    def steady(self) -> npt.NDArray[np.bool_]:
        """Which parameters are of drives and have columns that no shape and no body moves."""
        found = np.zeros(len(self.parameters), dtype=bool)
        found[self.inertial :] = [self.structure.is_steady(each) for each in self.drive_columns]
        return found

    @cached_property
    def stated(self) -> npt.NDArray[np.bool_]:
        """Which parameters are shapes that are known: their columns are asked of nothing."""
        found = np.zeros(len(self.parameters), dtype=bool)
        found[self.plain :] = [
            each.bounds.lower == each.bounds.upper
            for each in self.shape_parameters[: len(found) - self.plain]
        ]
        return found

    @cached_property
    def alone(self) -> Self:
        """The same model about nothing: columns that no shape and no body moves are the same."""
        return replace(self, about=(), free=False, bearing=())

    @property
    def bodies_load_friction(self) -> bool:
        """Whether bodies act through the loads of friction, too."""
        return self.loaded and self.free and not self.bearing

    @cached_property
    def curved(self) -> npt.NDArray[np.bool_]:
        """Which parameters are friction's that no line over the speed is, as the sign of it."""
        found = np.zeros(len(self.parameters), dtype=bool)
        for place, column in enumerate(self.drive_columns, self.inertial):
            if column.friction is not None:
                model, term = self.frictions[column.friction].model, column.term
                weights = None if term is None else model.parameters[term].weights
                found[place] = weights is None or weights[2] != 0.0
        return found

    @cached_property
    def expected(self) -> npt.NDArray[np.bool_]:
        """Which parameters have columns of what a model expects springs to do, without noise."""
        found = np.zeros(len(self.parameters), dtype=bool)
        found[self.inertial :] = [
            isinstance(column, SpringColumn) and TERMS[column.parameter.symbol].expected
            for column in self.drive_columns
        ]
        return found

    @property
    def nonlinear(self) -> bool:
        """Whether its torque is not linear in all that is to be found."""
        models = [friction.model for friction in self.frictions]
        return self.loaded or any(s.lower < s.upper for model in models for s in model.shape)

    def of(self, robot: Robot) -> Self:
        """The same model of a robot that differs in values, and not in its drives."""
        return replace(self, structure=replace(self.structure, robot=robot))

    @cached_property
    def drive_columns(self) -> tuple[DriveColumn, ...]:
        """Those of the drives' linear parameters; then the shapes', where these are free."""
        if not self.free:
            return self.structure.linear_columns
        places = [
            (k, friction, shape)
            for k, friction in enumerate(self.frictions)
            for shape in range(len(friction.model.shape))
        ]
        return (
            *self.structure.linear_columns,
            *(
                DriveColumn(
                    known.parameter, friction.gear, self.gears[friction.gear].turns, k, shape=shape
                )
                for known, (k, friction, shape) in zip(self.shape_parameters, places, strict=True)
            ),
        )

    def without_sensors(self, theta: Array) -> tuple[Self, Array]:
        """The model of the robot alone, and a full set without all that is of sensors."""
        if not self.structure.sensors and not self.robot.sensed:
            return self, theta
        kept = np.ones(len(theta), dtype=bool)
        kept[10 * self.robot.bodies : self.inertial] = False
        kept[self.plain - len(self.structure.sensor_columns) : self.plain] = False
        for k, column in enumerate(self.structure.linear_columns, self.inertial):
            kept[k] &= not isinstance(column, SpringColumn)
        about = np.array(self.about)[kept[: len(self.about)]]
        alone = replace(self.structure, robot=self.robot.bare, sensors=(), stated=())
        return replace(self, structure=alone, about=tuple(about.tolist())), theta[kept]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All standard parameters: bodies first (10 each), then the drives'."""
        bodies = [Parameter(s, k) for k in self.robot.numbers for s in INERTIAL]
        return (*bodies, *(column.parameter for column in self.drive_columns))

    @cached_property
    def shape_parameters(self) -> tuple[ShapeParameter, ...]:
        """Shape parameters of the drives' friction, that the columns are not linear in."""
        known = [
            ShapeParameter(Parameter(gear.symbol(shape.symbol), gear.number), shape)
            for friction in self.frictions
            for gear in (self.gears[friction.gear],)
            for shape in friction.model.shape
        ]
        if not self.limits:
            return tuple(known)
        return tuple(
            replace(each, bounds=each.bounds.within(*limits))
            for each, limits in zip(known, self.limits, strict=True)
        )

    @cached_property
    def shape_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of the shape parameters."""
        bounds = [each.bounds for each in self.shape_parameters]
        return np.array([b.lower for b in bounds]), np.array([b.upper for b in bounds])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the standard parameters."""
        return tuple(p.name for p in self.parameters)

    @property
    def drives(self) -> tuple[Parameter, ...]:
        """The drives' parameters, those after the bodies'."""
        return self.parameters[self.inertial :]

    @cached_property
    def positive(self) -> npt.NDArray[np.bool_]:
        """Whether physical consistency asks for a positive value, parameter by parameter."""
        return np.array([p.positive for p in self.parameters])

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Bodies, shape (..., bodies, 10), and drive parameters of full sets; views of them."""
        bodies = theta[..., : self.inertial].reshape(*theta.shape[:-1], self.inertial // 10, 10)
        return bodies, theta[..., self.inertial :]

    def join(self, phi: Array, drives: Array | None = None) -> Array:
        """A full set of bodies, shape (bodies, 10), and drive parameters, zero by default.

        Free shapes have the values about which the model is linearised.
        """
        theta = np.zeros(len(self.parameters))
        theta[: self.inertial] = np.ravel(phi)
        if self.free:
            theta[self.plain :] = self.shape
        if drives is not None:
            theta[self.inertial :] = drives
        return theta

    @property
    def nominal(self) -> Array:
        """The robot file's inertials as a full set, without rotors and friction."""
        return self.join(self.robot.nominal)

    def is_consistent(self, theta: Array) -> bool:
        """Whether every body, rotor and friction parameter of a full set can exist."""
        bodies = np.vstack([self.split(theta)[0], self.rests(theta)])
        return is_consistent(bodies) and bool(np.all(theta[self.positive] > 0.0))

    def rests(self, theta: Array) -> Array:
        """What is left of bodies without the parts that sensors hold, shape (rests, 10)."""
        bodies, _ = self.split(theta)
        found = [bodies[r.body] - r.placed @ bodies[r.part] for r in self.structure.rests]
        return np.reshape(found, (-1, 10))

    def linear(self, theta: Array, some: Sequence[int] | None = None) -> tuple[Array, ...]:
        """Values of each of the `frictions`' linear parameters in a full set, zero if it has none.

        Of `some` of the structure's linear columns; all by default.

        Returns
        -------
        tuple of ndarray, shapes (parameters of the friction's model,)
        """
        columns = self.structure.linear_columns
        values = tuple(np.zeros(len(each.model.parameters)) for each in self.frictions)
        for k in range(len(columns)) if some is None else some:
            friction, term = columns[k].friction, columns[k].term
            if friction is not None and term is not None:
                values[friction][term] = theta[self.inertial + k]
        return values

    def rotors(self, theta: Array) -> Array:
        """Rotor inertias of a full set as the joints see them, shape (dof, dof).

        ``sum_i Ia_i g_i g_i^T`` over the drives' gears g_i: of coupled drives not diagonal.
        """
        first = self.tree.dof - self.robot.n
        found = np.zeros((self.tree.dof, self.tree.dof))
        drives = theta[self.inertial : self.plain]
        for value, column in zip(drives, self.structure.linear_columns, strict=True):
            if column.friction is None:
                found[first:, first:] += value * np.outer(column.turns, column.turns)
        return found

    def shape_of(self, friction: int) -> Array:
        """Values of the shapes of one of the `frictions`."""
        return np.array(self.shape[self.frictions[friction].shape])

    @cached_property
    def linear_about(self) -> tuple[Array, ...]:
        """Values of the frictions' linear parameters about which shapes are linearised."""
        return self.linear(np.array(self.about))

    def sensor_values(self, theta: Array) -> Array:
        """What is not known of sensors, of a full set; a view of it."""
        return theta[self.plain - len(self.structure.sensor_columns) : self.plain]
