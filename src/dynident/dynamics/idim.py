"""The inverse dynamic identification model: torques linear in the standard parameters.

``tau = IDM_f(q, dq, ddq) beta_f`` (ardiani2024, eq. 3): ten inertial parameters a body,
then the drives' rotor inertia and friction. Packed rows hold only the entries of
``IDM_f`` that can differ from zero, grouped by joint, for the parameters asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.core.inertia import INERTIAL, is_consistent
from dynident.dynamics import evaluate_inverse_dynamics
from dynident.dynamics.conditions import FREE, Conditions
from dynident.dynamics.contacts import build_tilt_columns, evaluate_levers
from dynident.dynamics.equations import EstimatedSensor
from dynident.dynamics.inverse import evaluate_all_torques
from dynident.dynamics.packing import Bent, build_packing
from dynident.dynamics.parameters import (
    Attached,
    DriveColumn,
    DriveFriction,
    Gear,
    Packing,
    Parameter,
    SensorColumn,
    ShapeParameter,
)
from dynident.dynamics.regressor import fill_regressor
from dynident.dynamics.springs import SpringColumn
from dynident.dynamics.structure import Structure, list_friction_models
from dynident.dynamics.tree import Tree
from dynident.friction import DEFAULT_FRICTION
from dynident.friction.kernel import VALUE
from dynident.friction.model import DriveSignals, Trace
from dynident.friction.names import split_friction_names
from dynident.robot.model import LAW, Robot

FRICTION = DEFAULT_FRICTION
"""Of a model of which nothing else is said, for rooms that know no friction models."""
STRETCH = 4096
"""Samples whose torque is computed at a time."""
ROUNDING = 1e-9
"""By which a shape may be beyond its bounds, as a share of these."""


@dataclass(frozen=True)
class Idim:
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
    def elements(self) -> tuple[Attached, ...]:
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

    def with_sensors(self, sensors: Sequence[EstimatedSensor], stated: Sequence[str] = ()) -> Idim:
        """The same model with what is not known of some sensors, but for what is `stated`."""
        own = replace(self.structure, sensors=tuple(sensors), stated=tuple(stated))
        return replace(self, structure=own)

    def shaped(self, values: Sequence[float] | Array) -> Idim:
        """The same model at other values of the `shape_parameters`."""
        return replace(self, shape=tuple(float(value) for value in values))

    def linearised(self, theta: Array) -> Idim:
        """The model with its shapes as parameters, about a full set (with shapes or without)."""
        model, plain = self.settled(theta)
        return replace(model, about=tuple(plain.tolist()), free=bool(model.shape) or self.loaded)

    def settled(self, theta: Array) -> tuple[Idim, Array]:
        """The model at the shapes of a full set, and that set without them.

        Shapes beyond their bounds, where a step may have led, are at them.
        """
        if not self.free:
            return self, theta
        plain, shape = theta[: self.plain], self.shape
        if len(theta) > len(plain):
            bounds = [(each.bounds.lower, each.bounds.upper) for each in self.shape_parameters]
            shape = tuple(np.clip(theta[self.plain :], *np.transpose(bounds)).tolist())
        return replace(self, shape=shape, about=tuple(plain.tolist()), free=False), plain

    def limited(self, limits: Sequence[tuple[float, float]]) -> Idim:
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
    def alone(self) -> Idim:
        """The same model about nothing: columns that no shape and no body moves are the same."""
        return replace(self, about=(), free=False, bearing=())

    @property
    def bent(self) -> bool:
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

    @property
    def nonlinear(self) -> bool:
        """Whether its torque is not linear in all that is to be found."""
        models = [friction.model for friction in self.frictions]
        return self.loaded or any(s.lower < s.upper for model in models for s in model.shape)

    def of(self, robot: Robot) -> Idim:
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

    def without_sensors(self, theta: Array) -> tuple[Idim, Array]:
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

    def linear(self, theta: Array) -> tuple[Array, ...]:
        """Values of each of the `frictions`' linear parameters in a full set, zero if it has none.

        Returns
        -------
        tuple of ndarray, shapes (parameters of the friction's model,)
        """
        return self._linear(theta, range(len(self.structure.linear_columns)))

    def _linear(self, theta: Array, some: Sequence[int]) -> tuple[Array, ...]:
        values = tuple(np.zeros(len(each.model.parameters)) for each in self.frictions)
        for k in some:
            column = self.structure.linear_columns[k]
            if column.friction is not None and column.term is not None:
                values[column.friction][column.term] = theta[self.inertial + k]
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

    def packing(self, columns: Sequence[int] | Integers, bent_alone: bool = False) -> Packing:
        """Layout of packed rows for some of the standard parameters, in the caller's order.

        With `bent_alone` bodies are left out of all rows on which they act through no friction.
        """
        key = (self.free, self.bent, bent_alone, tuple(int(c) for c in columns))
        known = self.structure.packings
        if key not in known:
            pairs = self.structure.levers if self.bent else ()
            columns = key[3]
            known[key] = build_packing(
                self.structure, self.drive_columns, pairs, columns, bent_alone
            )
        return known[key]

    def evaluate_sensor_errors(
        self, motion: tuple[Array, Array, Array], conditions: Conditions
    ) -> dict[tuple[EstimatedSensor, bool], Array]:
        """What units of what is not known of sensors do along a motion.

        Shapes (samples, axes, rows): of the bias and, with True beside it, of the orientation of
        each sensor that the conditions have.
        """
        found = {}
        for sensor, wrench in conditions.wrenches.items():
            if sensor not in self.structure.sensors:
                continue
            if sensor.contact == LAW:
                found[sensor, False] = np.zeros((len(wrench), 1, self.rows))
                found[sensor, False][:, 0, self.tree.dof - self.robot.n : self.tree.dof] = wrench
                continue
            J = np.zeros((*wrench.shape, self.rows))
            for name, contact, felt in self.structure.gauged:
                if name == sensor.contact and felt is None:
                    J[:, :, : self.tree.dof] = evaluate_levers(
                        self.tree, self.robot, contact, motion[0]
                    )
                elif name == sensor.contact and felt is not None:
                    levers = evaluate_levers(
                        felt.tree, felt.robot, contact, felt.carried(motion)[0]
                    )
                    J[:, :, felt.rows] = levers[:, :, felt.taken]
            contact = next(c for name, c, _ in self.structure.gauged if name == sensor.contact)
            found[sensor, False] = J
            if "orientation" in contact.estimate:
                found[sensor, True] = build_tilt_columns(J, contact, wrench)
        return found

    def fill(
        self,
        packing: Packing,
        q: Array,
        dq: Array,
        ddq: Array,
        out: Array,
        width: Array | None = None,
        conditions: Conditions = FREE,
    ) -> None:
        """Packed regressor rows into `out`, shape (samples, packing.width).

        Parameters
        ----------
        width : ndarray, shape (n,), optional
            Smooths the sign of Coulomb friction as a simulation does [rad/s or m/s].
        conditions : Conditions, optional
            That friction with states, load or temperature depends on.
        """
        self.fill_bodies(packing, q, dq, ddq, out)
        self.fill_drives(packing, q, dq, ddq, out, width, conditions)

    def fill_bodies(self, packing: Packing, q: Array, dq: Array, ddq: Array, out: Array) -> None:
        """The columns of bodies, as no friction under load bends them."""
        if packing.tree is not None:
            inner = np.zeros((len(q), packing.tree.width))
            self.fill_bodies(packing.tree, q, dq, ddq, inner)
            self._combine(packing.mixed[0], q, inner, out)
            return
        if np.any(packing.slot >= 0):
            fill_regressor(self.tree, packing.slot, q, dq, ddq, out)
        for felt, own in zip(self.structure.felt, packing.felts, strict=True):
            if np.any(own >= 0):
                fill_regressor(felt.tree, own, *felt.carried((q, dq, ddq)), out)

    def fill_drives(
        self,
        packing: Packing,
        q: Array,
        dq: Array,
        ddq: Array,
        out: Array,
        width: Array | None = None,
        conditions: Conditions = FREE,
    ) -> None:
        """The columns of drives beside those of bodies, and what they make of these; see `fill`."""
        if packing.tree is not None:
            inner = np.zeros((len(q), packing.tree.width))
            self.fill_drives(packing.tree, q, dq, ddq, inner, width, conditions)
            self._combine(packing.mixed[1], q, inner, out)
        out[:, packing.empty] = 0.0
        if conditions.bend is not None and packing.bent:
            self.bend_bodies(packing.bent, out.copy(), out, conditions.bend)
        if packing.tree is not None:
            return
        first = self.tree.dof - self.robot.n
        see = self.view(q, dq, width, conditions)
        bending = {column.friction for column, _, _ in packing.special if column.shape is not None}
        known: dict[int, Array] = {}
        slopes: dict[int, Array] = {}
        sensed = self.evaluate_sensor_errors((q, dq, ddq), conditions)
        at = q[:, q.shape[1] - self.robot.n :]
        motors = self.follow_motors(dq[:, first:], ddq[:, first:], conditions)
        for kind in packing.plain:
            out[:, kind.slots] = self.structure.plain_values(kind, *motors, width) * kind.factors
        for column, joint, slot in packing.special:
            k = column.friction
            if isinstance(column, SpringColumn):
                out[:, slot] = column.evaluate(conditions, at, dq[:, first:], joint)
                continue
            if isinstance(column, SensorColumn):
                J = sensed.get((column.sensor, column.tilted))
                out[:, slot] = 0.0 if J is None else J[:, column.axis, joint]
                continue
            assert k is not None
            model = self.frictions[k].model
            term = None if column.term is None else model.parameters[column.term]
            weighted = term is not None and term.weights is not None
            if not weighted and k not in known and model.law is not None:
                if k in bending:
                    table = model.table(model.law, see(k), self._shape_of(k))
                    by_shape = model.slopes(table, see(k).trace)
                    slopes[k] = np.einsum("tks,k->ts", by_shape, self._about[k][[*model.rows]])
                    known[k] = table[:, :, VALUE].T
                else:
                    known[k] = model.values(model.law, see(k), self._shape_of(k))
            if column.term is None:
                values = slopes[k][:, column.shape]
            elif term is not None and weighted:
                values = see(k).column(term)
            else:
                values = known[k][model.rows.index(column.term)]
            np.multiply(values, column.turns[joint], out=out[:, slot])

    def follow_motors(self, dq: Array, ddq: Array, conditions: Conditions) -> tuple[Array, Array]:
        """Speeds and accelerations of the motors, as joints with a spring see them."""
        bent = conditions.deflection
        return (dq, ddq) if bent is None else (dq + bent[1], ddq + bent[2])

    def _combine(
        self,
        mixed: tuple[tuple[int, int, Integers, Integers], ...],
        q: Array,
        inner: Array,
        out: Array,
    ) -> None:
        """Some columns of rows ``G^T W`` by those of W."""
        assert self.structure.closure is not None
        G = self.structure.closure.find_null_space(q)
        for _, _, here, _ in mixed:
            out[:, here] = 0.0
        for to, of, here, there in mixed:
            out[:, here] += G[:, of, to, None] * inner[:, there]

    def combine(self, q: Array, tau: Array) -> Array:
        """Torques of a tree's rows as those of its drives, ``G^T tau``, shape (..., samples, rows).

        Those of passive joints are zero; of a robot without loops nothing is changed.
        """
        closure = self.structure.closure
        if closure is None:
            return tau
        return np.asarray(np.einsum("tij,...ti->...tj", closure.find_null_space(q), tau))

    def bend_bodies(self, pairs: Sequence[Bent], rigid: Array, out: Array, bend: Array) -> None:
        """Packed columns of bodies with what these do through loads.

        Of pairs as those of a layout; the second slots are those of the rigid columns.
        """
        for to, of, here, there in pairs:
            share = bend @ self.structure.levers[to, of]
            if to == of:
                out[:, here] = rigid[:, there] * (1.0 + share[:, None])
            else:
                out[:, here] += rigid[:, there] * share[:, None]

    def view(
        self, q: Array, dq: Array, width: Array | None = None, conditions: Conditions = FREE
    ) -> Callable[[int], DriveSignals]:
        """What any of the `frictions` sees of a motion of the joints.

        All on one drive share its signals, but for their states; motors are ahead of the links.
        """
        n, given, shared = self.robot.n, conditions, dict[tuple[int, bool], DriveSignals]()

        def see(gear: int, link: bool) -> DriveSignals:
            turns, number = self.gears[gear].turns, self.gears[gear].number
            at, speed = q[:, q.shape[1] - n :] @ turns, dq[:, dq.shape[1] - n :] @ turns
            if given.deflection is not None and not link:
                at, speed = at + given.deflection[0] @ turns, speed + given.deflection[1] @ turns
            return DriveSignals(
                at,
                speed,
                None if width is None else float(width[number - 1]),
                None if given.load is None else np.ascontiguousarray(given.load[:, gear]),
                None if given.temperature is None else given.temperature[:, gear],
                given.time,
                None if given.known is None else given.known[:, gear],
            )

        def of(friction: int) -> DriveSignals:
            side = self.frictions[friction].gear, self.frictions[friction].link
            if side not in shared:
                shared[side] = see(*side)
            if given.traces is None or not self.frictions[friction].model.state:
                return shared[side]
            return replace(shared[side], trace=given.traces[friction])

        return of

    def follow(
        self,
        q: Array,
        dq: Array,
        rate: float,
        width: Array | None = None,
        conditions: Conditions = FREE,
        previous: Conditions | None = None,
        some: Collection[int] | None = None,
    ) -> Conditions:
        """The conditions with the states of all friction, followed along a motion.

        Parameters
        ----------
        q, dq : ndarray, shapes (samples, nq), (samples, dof)
            A stretch without gaps.
        rate : float
            [Hz]
        width
            See `fill`.
        conditions : Conditions
            Load and temperature on this stretch, where friction depends on them.
        previous : Conditions, optional
            What `follow` returned for the stretch before; without, the motion starts here.
        some : collection of int, optional
            Those of the `frictions` whose states are asked for; all by default.
        """
        wanted = range(len(self.frictions)) if some is None else some
        if not any(self.frictions[k].model.state for k in wanted):
            return conditions
        nothing = Trace(np.zeros((len(q), 0)), np.zeros((len(q), 0, 0)))
        traces, see = [nothing] * len(self.frictions), self.view(q, dq, width, conditions)
        for k in wanted:
            before = None if previous is None or previous.traces is None else previous.traces[k]
            model = self.frictions[k].model
            if model.state:
                traces[k] = model.follow(see(k), rate, self._shape_of(k), before)
        return replace(conditions, traces=tuple(traces))

    def settle(self, q: Array, dq: Array, width: Array | None = None) -> Conditions:
        """The states of all friction where each instant's speed lasts; see `follow`."""
        if not self.has_states:
            return FREE
        see, every = self.view(q, dq, width), enumerate(self.frictions)
        traces = [friction.model.settle(see(k), self._shape_of(k)) for k, friction in every]
        return replace(FREE, traces=tuple(traces))

    def find_conditions(
        self,
        q: Array,
        dq: Array,
        ddq: Array,
        rate: float,
        width: Array | None = None,
        previous: Conditions | None = None,
        around: Conditions = FREE,
        some: Collection[int] | None = None,
    ) -> Conditions:
        """What the friction meets along a stretch of a motion: the loads of `about`, its states.

        Of a linearised model, with what a change of the loads does. The motion is without gaps,
        and `around` is what the log has of temperatures, known torques and time; see `follow`,
        also for `some`.
        """
        if not self.nonlinear and not self.has_states:
            return around
        load = None
        bearing = self.bearing or self.about
        if bearing and self.loaded:
            phi, _ = self.split(np.array(bearing))
            rigid = evaluate_inverse_dynamics(self.tree, phi, q, dq, ddq)
            load = self.compute_loads(self.combine(q, rigid))
        found = self.follow(q, dq, rate, width, replace(around, load=load), previous, some)
        if load is None or not self.free or self.bearing:
            return found
        bend, see = np.zeros(load.shape), self.view(q, dq, width, found)
        for k, friction in enumerate(self.frictions):
            model, linear, gear = friction.model, self._about[k], friction.gear
            if "load" in model.needs and np.any(linear != 0.0):
                # a quotient over what nobody can tell from zero: a slope that jumps where a load
                # changes its direction would have steps swing about it
                blur = self.blur[self.gears[gear].number - 1]
                signals = see(k)
                for side in (0.5 / blur, -0.5 / blur):
                    moved = replace(signals, load=load[:, gear] + 0.5 / side)
                    bend[:, gear] += side * model.bear(moved, self._shape_of(k), linear)
        return replace(found, bend=bend)

    def compute_loads(self, rigid: Array) -> Array:
        """Loads of the drives under torques of the rigid bodies, shape (samples, drives)."""
        joints = slice(self.tree.dof - self.robot.n, self.tree.dof)
        return np.asarray(rigid[:, joints] @ self.structure.bearing.T)

    def apply_load_slopes(self, rigid: Array, bend: Array) -> Array:
        """What friction linear in the loads makes of torques of rigid bodies, (samples, rows)."""
        first = self.tree.dof - self.robot.n
        tau = np.zeros((len(rigid), self.rows))
        for gear, signal in zip(self.gears, (bend * self.compute_loads(rigid)).T, strict=True):
            add_drive_torque(signal, gear.turns, tau[:, first:])
        return tau

    def _shape_of(self, friction: int) -> Array:
        return np.array(self.shape[self.frictions[friction].shape])

    @cached_property
    def _about(self) -> tuple[Array, ...]:
        return self.linear(np.array(self.about))

    def regressor(self, q: Array, dq: Array, ddq: Array, conditions: Conditions = FREE) -> Array:
        """The full regressor ``IDM_f``, shape (samples, rows, parameters)."""
        packing = self.packing(range(len(self.parameters)))
        packed = np.empty((len(q), packing.width))
        self.fill(packing, q, dq, ddq, packed, conditions=conditions)
        dense = np.zeros((len(q), self.rows, len(self.parameters)))
        for row, (entries, columns) in enumerate(packing.joints):
            dense[:, row, columns] = packed[:, entries]
        return dense

    def torque(
        self,
        theta: Array,
        q: Array,
        dq: Array,
        ddq: Array,
        width: Array | None = None,
        conditions: Conditions = FREE,
    ) -> Array:
        """Torques of standard parameters ``theta``, shape (samples, rows).

        Wrenches at sensors in the chain come behind them.

        Parameters
        ----------
        width, conditions
            See `fill`. A load that is not given is that of theta's own bodies.
        """
        tau: Array = self.torques([theta], q, dq, ddq, width, conditions)[0]
        return tau

    def torques(
        self,
        sets: Sequence[Array],
        q: Array,
        dq: Array,
        ddq: Array,
        width: Array | None = None,
        conditions: Conditions = FREE,
    ) -> Array:
        """The same of several sets of parameters, shape (sets, samples, rows)."""
        if self.free:
            settled = map(self.settled, sets)
            every = [own.torque(plain, q, dq, ddq, width, conditions) for own, plain in settled]
            return np.array(every)
        phi = np.array([self.split(theta)[0] for theta in sets])
        tau = np.empty((len(sets), len(q), self.rows))
        loaded = conditions.load is None and self.loaded
        for a in range(0, len(q), STRETCH):  # what lies between stays in the cache
            s = slice(a, a + STRETCH)
            motion, here = (q[s], dq[s], ddq[s]), conditions.rows(s)
            moved = (each[None] for each in motion[1:])
            rigid = self.rigid_torques(phi, [0] * len(sets), q[s], *moved)
            for theta, own, out in zip(sets, rigid, tau[:, s], strict=True):
                if loaded:
                    here = replace(here, load=self.compute_loads(own))
                np.add(own, self.drive_torque(theta, *motion, width, here), out=out)
        return tau

    def rigid_torques(
        self, phi: Array, along: Sequence[int], q: Array, dq: Array, ddq: Array
    ) -> Array:
        """Those of bodies alone, along several motions: see `evaluate_all_torques`."""
        tau = np.empty((len(phi), len(q), self.rows))
        for a in range(0, len(q), STRETCH):  # what lies between stays in the cache
            s = slice(a, a + STRETCH)
            motions = q[s], dq[:, s], ddq[:, s]
            tau[:, s, : self.tree.dof] = evaluate_all_torques(self.tree, phi, along, *motions)
            for felt in self.structure.felt:
                moved = [felt.carried((q[s], *each)) for each in zip(*motions[1:], strict=True)]
                turned, speeds, changes = (np.array(each) for each in zip(*moved, strict=True))
                own = phi[:, felt.bodies]
                every = evaluate_all_torques(felt.tree, own, along, turned[0], speeds, changes)
                tau[:, s, felt.rows] = every[:, :, felt.taken]
        return self.combine(q, tau)

    def drive_torque(
        self,
        theta: Array,
        q: Array,
        dq: Array,
        ddq: Array,
        width: Array | None = None,
        conditions: Conditions = FREE,
    ) -> Array:
        """Torques of the drives, and of sensors' errors, shape (samples, rows); see `fill`."""
        if self.free:
            model, plain = self.settled(theta)
            return model.drive_torque(plain, q, dq, ddq, width, conditions)
        tau = np.zeros((len(dq), self.rows))
        for a in range(0, len(dq), STRETCH):  # what lies between stays in the cache
            s = slice(a, a + STRETCH)
            motion, here = (q[s], dq[s], ddq[s]), conditions.rows(s)
            self._add_drive_torques(theta, motion, width, here, tau[s])
        return self.combine(q, tau)

    def _add_drive_torques(
        self,
        theta: Array,
        motion: tuple[Array, Array, Array],
        width: Array | None,
        conditions: Conditions,
        tau: Array,
    ) -> None:
        q, dq, ddq = motion
        first = self.tree.dof - self.robot.n
        joints = tau[:, first : self.tree.dof]
        drives = theta[self.inertial : self.plain]
        at = q[:, q.shape[1] - self.robot.n :]
        motors = self.follow_motors(dq[:, first:], ddq[:, first:], conditions)
        for kind in self.structure.plain_columns:
            strength = drives[kind.slots, None]
            if np.any(strength != 0.0):
                values = self.structure.plain_values(kind, *motors, width)
                joints += values @ (strength * self.structure.turning[kind.gears])
        see = self.view(q, dq, width, conditions)
        for k, linear in enumerate(self._linear(theta, self.structure.special_columns)):
            if np.any(linear != 0.0):
                friction = self.frictions[k]
                signal = friction.model.columns(see(k), self._shape_of(k)) @ linear
                turns = self.gears[friction.gear].turns
                add_drive_torque(signal, turns, joints)
                for j, row in self.structure.linked if friction.link else ():
                    tau[:, row] += turns[j] * signal
        for value, column in zip(drives, self.structure.linear_columns, strict=True):
            if isinstance(column, SpringColumn) and value != 0.0:
                for row in self.structure.list_touched_rows(column):
                    tau[:, row] += value * column.evaluate(conditions, at, dq[:, first:], row)
        sensed = self.evaluate_sensor_errors(motion, conditions)
        for value, own in zip(
            self.sensor_values(theta), self.structure.sensor_columns, strict=True
        ):
            if (own.sensor, own.tilted) in sensed:
                tau += value * sensed[own.sensor, own.tilted][:, own.axis]

    def sensor_values(self, theta: Array) -> Array:
        """What is not known of sensors, of a full set; a view of it."""
        return theta[self.plain - len(self.structure.sensor_columns) : self.plain]


def add_drive_torque(signal: Array, turns: Array, tau: Array) -> None:
    """Add a drive's torque to those of the joints, through the transpose of its gear."""
    for j in np.flatnonzero(turns):
        tau[:, j] += turns[j] * signal


def build_idim(
    robot: Robot,
    friction: str = FRICTION,
    rotor: bool | None = None,
    shape: Sequence[float] | Array = (),
    elements: Sequence[Attached] = (),
) -> Idim:
    """The identification model of a robot.

    >>> di.build_idim(robot).regressor(samples.q, samples.dq, samples.ddq).shape
    (1600, 2, 28)

    Parameters
    ----------
    robot : Robot
    friction : str
        Name of `dynident.friction.names.build_friction`, or one a joint with commas between them.
        ``"none"`` is the bare rigid body.
    rotor : bool, optional
        Whether each drive has a rotor inertia; by default unless friction is "none".
    shape : sequence of float, optional
        Values of the friction's shape parameters, drive by drive; usual ones by default.
    elements : sequence of Attached
        What else acts on the joints.

    Raises
    ------
    InputError
        When the friction model is not known, or does not have such shapes; when an element acts
        on no joint.
    """
    list_friction_models(friction, robot)
    for element in elements:
        if not 0 <= element.joint < robot.n:
            raise InputError(f"{robot.name}: an element on joint {element.joint + 1} of {robot.n}")
        if element.over is not None and (
            not 0 <= element.over < robot.n or element.over == element.joint
        ):
            raise InputError(
                f"{robot.name}: an element over joints {element.joint + 1} and {element.over + 1}; "
                f"it needs two of {robot.n}"
            )
    rotors = set(split_friction_names(friction)) != {"none"} if rotor is None else rotor
    values = tuple(float(value) for value in shape)
    structure = Structure(robot, friction, rotors, tuple(elements))
    return Idim(structure, values)
