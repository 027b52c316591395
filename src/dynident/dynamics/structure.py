"""What a model is made of, whatever the values of its shapes: drives, frictions, their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError, check_type
from dynident.dynamics import build_tree
from dynident.dynamics.equations import EstimatedSensor
from dynident.dynamics.limbs import BodyRemainder, SensedMotion, list_felt, list_rests
from dynident.dynamics.parameters import (
    DriveColumn,
    DriveFriction,
    Gear,
    JointElements,
    Packing,
    Parameter,
    PlainColumns,
    SensorColumn,
    SensorParameter,
)
from dynident.dynamics.springs import BRISTLES, LINK, TERMS, TORQUE, SpringColumn
from dynident.dynamics.tree import Tree
from dynident.friction.model import DriveSignals, FrictionModel
from dynident.friction.names import build_friction, split_friction_names
from dynident.robot.closure import Closure
from dynident.robot.model import LAW, WRENCH, Contact, Robot

ROTOR = "Ia"


@dataclass(frozen=True)
class Structure:
    """A robot, the friction of its drives and what else acts on its joints.

    All that is found here is found once, and is that of every `Idim` made of it. `friction` is a
    name of `build_friction`, or one a joint with commas between them; `rotor` whether the drives'
    rotor inertias are parameters; `sensors` are those of which something is not known, `stated` the
    names of such parameters that are none, as nothing tells them from others.
    """

    robot: Robot
    friction: str
    rotor: bool
    elements: tuple[JointElements, ...] = ()
    sensors: tuple[EstimatedSensor, ...] = ()
    stated: tuple[str, ...] = ()

    @cached_property
    def tree(self) -> Tree:
        """The robot as the kernels read it."""
        return build_tree(self.robot)

    @cached_property
    def closure(self) -> Closure | None:
        """What closes the robot's chains; None of a tree."""
        return Closure(self.robot) if self.robot.loops else None

    @cached_property
    def sensed_motions(self) -> tuple[SensedMotion, ...]:
        """What sensors in the chain feel: rows behind those of the tree."""
        return list_felt(self.tree, self.robot)

    @cached_property
    def rests(self) -> tuple[BodyRemainder, ...]:
        """What is left of bodies without the parts that sensors hold."""
        return list_rests(self.robot)

    @cached_property
    def gears(self) -> tuple[Gear, ...]:
        """The joints' own drives, the motors of coupled ones, then cables between joints."""
        n, drives = self.robot.n, self.robot.drives
        own = [Gear(j + 1, np.eye(n)[j], coupled=False) for j in range(n)]
        return (
            *own,
            *(Gear(j + 1, drives.turns[j], coupled=True) for j in range(n) if drives.coupled(j)),
            *(
                Gear(element.joint + 1, element.turns(n), coupled=False, drives=False)
                for element in self.elements
                if element.over is not None
            ),
        )

    @cached_property
    def frictions(self) -> tuple[DriveFriction, ...]:
        """The friction of each of the gears, then the elements.

        A coupled drive's own friction lacks some terms, and so does that of a passive joint.
        """
        found, shapes, passive = [], 0, self.robot.passive
        models = list_friction_models(self.friction, self.robot)
        drives = [gear for gear, each in enumerate(self.gears) if each.drives]
        acting = [
            (gear, model, False) for gear in drives for model in models[self.gears[gear].number - 1]
        ]
        cables = iter(range(len(drives), len(self.gears)))
        acting += [
            (element.joint if element.over is None else next(cables), element.model, True)
            for element in self.elements
        ]
        for gear, model, link in acting:
            each = self.gears[gear]
            terms = tuple(
                k
                for k, p in enumerate(model.parameters)
                if (p.coupled or not (each.coupled or passive[each.number - 1]))
                and not (p.needs_load and passive[each.number - 1])
            )
            if terms:
                shape = slice(shapes, shapes + len(model.shape))
                found.append(DriveFriction(gear, model, terms, shape, link))
                shapes = shape.stop
        return tuple(found)

    @property
    def has_states(self) -> bool:
        """Whether friction remembers: its columns are those of a motion, not of an instant."""
        return any(friction.model.state for friction in self.frictions)

    @cached_property
    def needs(self) -> frozenset[str]:
        """What its friction reads beside the motion."""
        return frozenset(need for friction in self.frictions for need in friction.model.needs)

    @cached_property
    def loaded(self) -> bool:
        """Whether any friction depends on the load of its drive."""
        return "load" in self.needs

    @cached_property
    def turning(self) -> Array:
        """How the gears turn with the joints, shape (gears, n)."""
        return np.array([gear.turns for gear in self.gears]).reshape(-1, self.robot.n)

    @cached_property
    def bearing(self) -> Array:
        """Shares of the joints' torques that each of the gears bears, shape (drives, n).

        The motors share them, ``turns^-T tau``; what rubs in the joint of a coupled drive, beside
        its motor, bears the joint's.
        """
        drives = self.robot.drives
        shares, own = np.linalg.inv(drives.turns.T), np.eye(self.robot.n)
        found = np.zeros((len(self.gears), self.robot.n))  # a cable bears none
        for row, gear in zip(found, self.gears, strict=True):
            j = gear.number - 1
            if gear.drives and not self.robot.passive[j]:  # which bear what no drive gives
                row[:] = own[j] if drives.coupled(j) and not gear.coupled else shares[j]
        return found

    @cached_property
    def levers(self) -> dict[tuple[int, int], Array]:
        """How friction under the load of one joint's torque acts on another: of each drive."""
        turns = self.turning
        rubs = {friction.gear for friction in self.frictions if "load" in friction.model.needs}
        own = np.array([gear in rubs for gear in range(len(turns))])
        found = {}
        for j in range(self.robot.n):
            for i in range(self.robot.n):
                weights = turns[:, j] * self.bearing[:, i] * own
                if np.any(weights):
                    found[j, i] = weights
        return found

    @cached_property
    def inertial(self) -> int:
        """Number of inertial parameters, the first of all: 10 bodies, and 10 a part of one."""
        return 10 * len(self.robot.links)

    @property
    def rows(self) -> int:
        """Number of rows an instant: see `Robot.equations`."""
        return self.robot.equations

    @property
    def plain(self) -> int:
        """Number of parameters beside the shapes."""
        return self.inertial + len(self.linear_columns)

    @cached_property
    def linear_columns(self) -> tuple[DriveColumn, ...]:
        """Rotor inertia and friction, joint by joint, a coupled drive's own last; then sensors'."""
        columns = []
        moved = {gear.number for gear in self.gears if gear.coupled}
        moved |= {int(k) + 1 for k in np.flatnonzero(self.robot.passive)}  # which have no rotor
        for g, gear in sorted(enumerate(self.gears), key=lambda item: item[1].number):
            if self.rotor and gear.drives and (gear.coupled or gear.number not in moved):
                rotor = Parameter(gear.symbol(ROTOR), gear.number, positive=True)
                columns.append(DriveColumn(rotor, g, gear.turns))
            for k, friction in enumerate(self.frictions):
                for term in friction.terms if friction.gear == g else ():
                    each = friction.model.parameters[term]
                    symbol = gear.symbol(each.symbol)
                    own = Parameter(symbol, gear.number, each.positive, each.sparse)
                    columns.append(DriveColumn(own, g, gear.turns, k, term))
            if g < self.robot.n:
                columns += [own for own in self.spring_columns if own.joint == g]
        return (*columns, *self.sensor_columns)

    @cached_property
    def linked(self) -> tuple[tuple[int, int], ...]:
        """Joints with a sensor on the link's side of their gear, and its row among all."""
        kinds = (felt for felt in self.sensed_motions if felt.gauge.kind in (LINK, TORQUE))
        return tuple((felt.gauge.place, felt.rows.start) for felt in kinds)

    @cached_property
    def sprung_joints(self) -> tuple[tuple[int, str], ...]:
        """Joints whose springs bend, and the sensor that tells by how much."""
        return tuple((g.place, g.name) for g in self.robot.gauges if "K" in g.terms)

    @property
    def signals(self) -> int:
        """How many signals there are of what bends: see `Conditions.deflection`."""
        return BRISTLES + max((len(gauge.slips) for gauge in self.robot.gauges), default=0)

    @cached_property
    def spring_columns(self) -> tuple[SpringColumn, ...]:
        """Those of springs in the joints, and of torque sensors beside them."""
        still, places = np.zeros(self.robot.n), count()
        return tuple(
            SpringColumn(
                Parameter(symbol, gauge.place + 1, term.positive, term.sparse), -1, still,
                joint=gauge.place, row=rows.start,
                sway=next(places) if gauge.kind == TORQUE and symbol in ("K", "D") else None,
            )
            for gauge, rows in self.robot.sensed
            for symbol, term in ((each, TERMS[each]) for each in gauge.terms)
        )  # fmt: skip

    @cached_property
    def gauged(self) -> tuple[tuple[str, Contact, SensedMotion | None], ...]:
        """Contacts by name, with the sensor on whose rows they act; None is the tree."""
        return (
            *((contact.name, contact, None) for contact in self.robot.contacts),
            *((each.name, each, felt) for felt in self.sensed_motions for each in felt.contacts),
        )

    @cached_property
    def sensor_columns(self) -> tuple[SensorColumn, ...]:
        """Those of what is not known of sensors, the last of `linear_columns`."""
        contacts = {name: contact for name, contact, _ in self.gauged}
        still, number = np.zeros(self.robot.n), self.robot.n + 1
        found = []
        for sensor in self.sensors:
            if sensor.contact == LAW:
                found.append(SensorColumn(SensorParameter(LAW, number), -1, still, sensor=sensor))
                continue
            contact = contacts[sensor.contact]
            end = sensor.contact + f"@{sensor.log}" * bool(sensor.log)
            every = []
            if "bias" in contact.estimate:
                parts = enumerate(WRENCH[: contact.components])
                every += [(f"{part}0_{end}", axis, False) for axis, part in parts]
            if "orientation" in contact.estimate:
                every += [(f"r{part}_{end}", axis, True) for axis, part in enumerate("xyz")]
            found += [
                SensorColumn(
                    SensorParameter(symbol, number), -1, still,
                    sensor=sensor, axis=axis, tilted=tilted,
                )
                for symbol, axis, tilted in every
                if symbol not in self.stated
            ]  # fmt: skip
        return tuple(found)

    def is_plain(self, column: DriveColumn) -> bool:
        """Whether a column takes speed or acceleration alone."""
        if column.friction is None:
            return not isinstance(column, SensorColumn | SpringColumn)
        if column.term is None or (self.linked and self.frictions[column.friction].link):
            return False
        own = self.frictions[column.friction].model.parameters[column.term]
        return own.weights is not None and not own.times

    def is_steady(self, column: DriveColumn) -> bool:
        """Whether a column is the same whatever the shapes and the bodies are."""
        if self.is_plain(column):
            return True
        if column.friction is None or column.term is None or self.linked:
            return False
        model = self.frictions[column.friction].model
        return "load" not in model.needs and all(own.lower == own.upper for own in model.shape)

    def group_plain_columns(
        self, columns: Sequence[tuple[DriveColumn, float, int]]
    ) -> tuple[PlainColumns, ...]:
        """Plain columns with their factors and slots, by kind."""
        kinds: dict[tuple[float, float, float] | None, list[tuple[int, float, int]]] = {}
        for column, factor, slot in columns:
            weights = None
            if column.friction is not None and column.term is not None:
                model = self.frictions[column.friction].model
                weights = model.parameters[column.term].weights
            kinds.setdefault(weights, []).append((column.gear, factor, slot))
        return tuple(
            PlainColumns(weights, np.array(gears), np.array(factors), np.array(slots))
            for weights, own in kinds.items()
            for gears, factors, slots in (zip(*own, strict=True),)
        )

    @cached_property
    def plain_columns(self) -> tuple[PlainColumns, ...]:
        """The plain ones of `linear_columns`, by kind; their slots are their places there."""
        known = enumerate(self.linear_columns)
        return self.group_plain_columns(
            [(column, 1.0, k) for k, column in known if self.is_plain(column)]
        )

    @cached_property
    def special_columns(self) -> tuple[int, ...]:
        """Places of the others among `linear_columns`."""
        return tuple(k for k, each in enumerate(self.linear_columns) if not self.is_plain(each))

    def plain_values(
        self, columns: PlainColumns, dq: Array, ddq: Array, width: Array | None
    ) -> Array:
        """What plain columns are of unit gears, shape (samples, k), by the joints' dq and ddq.

        For the width see `fill_rows`.
        """
        turns = self.turning[columns.gears].T
        if columns.weights is None:
            return np.asarray(ddq @ turns)
        numbers = [self.gears[gear].number - 1 for gear in columns.gears]
        speed = dq @ turns
        return DriveSignals(speed, speed, None if width is None else width[numbers]).combined(
            columns.weights
        )

    def list_touched_rows(self, column: DriveColumn) -> list[int]:
        """Rows in which what is wrong with a sensor, or a spring, acts; none of other columns."""
        found: list[int] = []
        if isinstance(column, SpringColumn):
            return [column.row] if column.sway is None else [*range(self.rows)]
        if not isinstance(column, SensorColumn):
            return found
        if column.sensor.contact == LAW:
            return [*range(self.tree.dof - self.robot.n, self.tree.dof)]
        for name, contact, limb in self.gauged:
            if name == column.sensor.contact and limb is None:
                body = self.robot.body_index(contact.body)
                found += self.tree.path[body, : self.tree.path_length[body]].tolist()
            elif name == column.sensor.contact and limb is not None:
                found += range(limb.rows.start, limb.rows.stop)
        return found

    @cached_property
    def packings(self) -> dict[tuple[bool, bool, bool, tuple[int, ...]], Packing]:
        """Layouts of rows that have been asked for, with the shapes as parameters and without."""
        return {}


def list_friction_models(friction: str, robot: Robot) -> list[tuple[FrictionModel, ...]]:
    """The friction models of each joint, whose sum acts there."""
    check_type("friction", friction, str, "a name, or one a joint with commas between them")
    names = split_friction_names(friction)
    models = [build_friction(name) for name in names]
    if len(names) not in (1, robot.n):
        raise InputError(
            f"{robot.name}: {len(names)} friction models for {robot.n} joints; give one, or one "
            "for each"
        )
    return models * (robot.n if len(names) == 1 else 1)
