"""Base parameters: what the motion of the robot can identify, whatever the log.

``beta = beta_kept + K beta_dropped`` (Gautier 1990; ardiani2024, eq. 26), from the
regressor at random states, so that the result is structural.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import ComputationError, check_type
from dynident.core.text import format_combination
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.equations import (
    CREEPING,
    PLAIN,
    EstimatedSensor,
    Observability,
    reduce_to_observed_rows,
)
from dynident.dynamics.idim import Idim
from dynident.dynamics.parameters import Parameter
from dynident.friction.model import StateTrace
from dynident.robot.model import LAW

KEEP_FIRST = ("Izz", "Ixx", "Ixy", "Ixz", "Iyz", "mx", "my")
KEEP_LAST = ("Iyy", "mz", "m")
"""Symbols in the order in which they are tried, drives between: so published tables of modified
Denavit-Hartenberg robots have them."""
TOLERANCE = 1e-8
"""Relative norm below which a column is a combination of those kept before it."""
SAME = 1e-6
"""Share of a combination that nothing determines, below which it is determined."""


@dataclass(frozen=True)
class BaseParameters:
    """The identifiable combinations of a model's standard parameters.

    Attributes
    ----------
    idim : Idim
    kept, dropped : ndarray of int
        Standard parameters that the base parameters keep, in the order of a table, and
        the rest.
    K : ndarray, shape (count, len(dropped))
        Regroupings.
    observed : tuple of Observability
        What is to determine them: each kind of log.
    """

    idim: Idim
    kept: Integers
    dropped: Integers
    K: Array
    observed: tuple[Observability, ...] = (PLAIN,)

    def __repr__(self) -> str:
        """One line, for a prompt."""
        names = ", ".join(self.names)
        return f"<BaseParameters of {self.idim.robot.name}: {self.count} ({names})>"

    @property
    def count(self) -> int:
        """Number of base parameters: the structural rank of the regressor."""
        return len(self.kept)

    @property
    def all_stated(self) -> bool:
        """Whether every log states all equations of the robot."""
        return self.observed == (PLAIN,)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many the first kind of log determines, the first two, and so on up to all."""
        firsts = [self.observed[:k] for k in range(1, len(self.observed))]
        return (*(base_parameters(self.idim, observed=own).count for own in firsts), self.count)

    @property
    def rigid_body_count(self) -> int:
        """How many of them keep an inertial parameter of a link."""
        return int(np.sum(self.kept < self.idim.inertial))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the kept parameters, with an R where others are regrouped into them."""
        regrouped = np.any(self.K != 0.0, axis=1)
        names = self.idim.names
        return tuple(names[k] + "R" * bool(r) for k, r in zip(self.kept, regrouped, strict=True))

    @cached_property
    def regroupings(self) -> tuple[str, ...]:
        """Each base parameter as a combination, ``Izz1 + Ia1 + Iyy2 + 0.0519 m3``."""
        names = self.idim.names
        return tuple(
            format_combination(
                [(1.0, names[k]), *((f, names[d]) for f, d in zip(row, self.dropped, strict=True))]
            )
            for k, row in zip(self.kept, self.K, strict=True)
        )

    @cached_property
    def unidentifiable(self) -> tuple[str, ...]:
        """Standard parameters that act on no torque."""
        idle = ~np.any(self.K != 0.0, axis=0)
        return tuple(self.idim.names[d] for d, i in zip(self.dropped, idle, strict=True) if i)

    @cached_property
    def matrix(self) -> Array:
        """``[I K]`` in the order of the standard parameters: ``beta = matrix @ theta``."""
        matrix = np.zeros((self.count, len(self.idim.parameters)))
        matrix[np.arange(self.count), self.kept] = 1.0
        matrix[:, self.dropped] = self.K
        return matrix

    def standard(self, beta: Array) -> Array:
        """Standard parameters with the same torques: beta in its kept places, else zero."""
        theta = self.idim.join(np.zeros(self.idim.inertial))
        theta[self.kept] = beta
        return theta

    def linearised(self, theta: Array) -> BaseParameters:
        """Those of the model with its shapes as parameters, about a full set.

        Shapes are combinations of nothing else: they come after all others.
        """
        idim = self.idim.linearised(theta)
        shapes = np.arange(idim.plain, len(idim.parameters))
        own = self.kept < idim.plain
        kept, K = self.kept[own], self.K[own]
        zero = np.zeros((len(shapes), K.shape[1]))
        return replace(self, idim=idim, kept=np.concatenate([kept, shapes]), K=np.vstack([K, zero]))

    def settled(self, theta: Array) -> BaseParameters:
        """Those of the model at the shapes of a full set, which are not parameters then."""
        idim, _ = self.idim.settled(theta)
        own = self.kept < idim.plain
        return replace(self, idim=idim, kept=self.kept[own], K=self.K[own])

    @cached_property
    def shift(self) -> Array:
        """Values of the shapes about which the model is linearised, zero of all others.

        Rows are ``y + J s = X beta``, J the columns of the shapes: the torque of the model
        linearised is ``X beta - J s``.
        """
        value = self.idim.join(np.zeros(self.idim.inertial))
        return np.asarray(value[self.kept])


def order_for_keeping(idim: Idim) -> list[int]:
    """Standard parameters in the order in which they are tried for keeping.

    A floating base link's own come first: all ten are independent. What is wrong with sensors
    comes last.
    """
    models = (friction.model for friction in idim.frictions)
    friction = list(dict.fromkeys(each.symbol for model in models for each in model.parameters))
    drive = ["Ia", "Iam", *friction, *(f"{symbol}m" for symbol in friction)]
    rank = {symbol: k for k, symbol in enumerate((*KEEP_FIRST, *drive, *KEEP_LAST))}
    return sorted(
        range(len(idim.parameters)),
        key=lambda k: (
            idim.parameters[k].number > 0,
            rank.get(idim.parameters[k].symbol, len(rank)),
            idim.parameters[k].number,
        ),
    )


def rank_in_table(parameter: Parameter) -> tuple[int, int]:
    """Joint by joint: inertia, first moments, mass, then the drive's (stable beyond)."""
    inertial = ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m")
    symbol = parameter.symbol
    return parameter.number, inertial.index(symbol) if symbol in inertial else len(inertial)


def draw_random_states(
    idim: Idim, samples: int, seed: int, observed: Observability = PLAIN
) -> tuple[Array, Array, Array]:
    """States that excite everything that can be excited."""
    rng = np.random.default_rng(seed)
    dof, n = idim.tree.dof, idim.robot.n
    q = rng.uniform(-np.pi, np.pi, (samples, n))
    if idim.robot.floating:
        pose = rng.normal(size=(samples, 7))
        pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
        q = np.hstack([pose, q])
    dq, ddq = rng.normal(size=(samples, dof)), rng.normal(scale=3.0, size=(samples, dof))
    if observed.still and idim.robot.floating:
        q[:, :7], dq[:, :6], ddq[:, :6] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0.0, 0.0
    if observed.static:
        dq, ddq = CREEPING * np.sign(dq), 0.0 * ddq
    for joint, value in observed.locked:
        q[:, joint - n], dq[:, joint - n], ddq[:, joint - n] = value, 0.0, 0.0
    closure = idim.structure.closure
    if closure is not None:
        q = closure.draw(samples, rng)
        return (q, *closure.move(q, dq, ddq))
    return q, dq, ddq


def draw_random_conditions(
    idim: Idim, samples: int, seed: int, sensors: Sequence[EstimatedSensor] | None = None
) -> Conditions:
    """States, loads, temperatures and wrenches that excite all, whatever moves it there.

    Of some of the model's sensors, all by default.
    """
    rng = np.random.default_rng([seed, 1])  # another stream than the motion's
    load, temperature, known = rng.normal(size=(3, samples, len(idim.gears)))
    time = rng.uniform(size=samples)
    slopes = np.random.default_rng([seed, 2])
    traces = []
    for friction in idim.frictions:
        states, shapes = len(friction.model.state), friction.model.shape
        z = rng.normal(size=(samples, states))
        # states change by their own size where a shape does
        usual = np.array([each.start or each.upper - each.lower or 1.0 for each in shapes])
        by_shape = slopes.normal(size=(samples, states, len(shapes))) / usual
        traces.append(StateTrace(z, by_shape))
    measured = {name: contact.components for name, contact, _ in idim.structure.gauged}
    measured[LAW] = idim.robot.n
    wrenches = {
        sensor: rng.normal(size=(samples, measured[sensor.contact]))
        for sensor in idim.structure.sensors
        if sensors is None or sensor in sensors
    }
    bent, sway = None, None
    if idim.structure.sprung_joints:
        bent = np.zeros((idim.structure.signals, samples, idim.robot.n))
        some = [j for j, _ in idim.structure.sprung_joints]
        drawn = np.random.default_rng([seed, 3]).normal(size=(len(bent) - 2, samples, len(some)))
        # nothing has noise here: what a model expects of springs is what is measured of them
        bent[:, :, some] = np.concatenate([drawn[:3], drawn[:2], drawn[3:]])
        springs = sum(column.sway is not None for column in idim.structure.spring_columns)
        sway = np.random.default_rng([seed, 4]).normal(size=(samples, idim.rows, springs))
    return Conditions(
        tuple(traces), load, temperature, time, known, wrenches=wrenches, deflection=bent, sway=sway
    )


def base_parameters(
    idim: Idim, seed: int = 0, observed: Sequence[Observability] = (PLAIN,)
) -> BaseParameters:
    """Structural base parameters of a model.

    >>> di.base_parameters(di.build_idim(robot, "none")).names[:3]
    ('Iyy1R', 'mx1R', 'mz1')

    Parameters
    ----------
    idim : Idim
    seed : int
        Of the random states; the result does not depend on it.
    observed : sequence of Observability
        What is to determine them: each kind of log.

    Raises
    ------
    ComputationError
        When a column is neither clearly dependent nor clearly independent.
    """
    check_type("base_parameters", idim, Idim, "dynident.build_idim(robot) makes one")
    W = np.vstack([draw_random_rows(idim, seed, each) for each in observed])
    return find_base_from_rows(idim, W, observed)


def find_base_from_rows(
    idim: Idim, W: Array, observed: Sequence[Observability] = (PLAIN,)
) -> BaseParameters:
    """The combinations of a model's parameters that rows of its regressor determine.

    Shape (rows, parameters); `observed` says whose rows they are.
    """
    columns = W.shape[1]
    norms = np.linalg.norm(W, axis=0)
    acting = norms > TOLERANCE * norms.max()
    basis = np.zeros((columns, len(W)))
    kept: list[int] = []
    for k in order_for_keeping(idim):
        if not acting[k]:
            continue
        unit = W[:, k] / norms[k]
        rest = unit - (basis[: len(kept)] @ unit) @ basis[: len(kept)]
        # twice is enough (Kahan, in Parlett 1980)
        rest -= (basis[: len(kept)] @ rest) @ basis[: len(kept)]
        size = float(np.linalg.norm(rest))
        if size > TOLERANCE:
            basis[len(kept)] = rest / size
            kept.append(k)
    Q = basis[: len(kept)]
    order = sorted(
        range(len(kept)), key=lambda i: (rank_in_table(idim.parameters[kept[i]]), kept[i])
    )
    kept_array = np.array([kept[i] for i in order], dtype=np.int64)
    dropped = np.setdiff1d(np.arange(columns), kept_array)
    # Q spans the kept columns, so that this is least squares without a normal matrix
    K = np.linalg.solve(Q @ W[:, kept_array], Q @ W[:, dropped])
    missed = np.linalg.norm(W[:, dropped] - W[:, kept_array] @ K, axis=0)
    if np.any(missed > 1e-6 * norms.max()):
        worst = idim.names[dropped[int(np.argmax(missed))]]
        raise ComputationError(
            f"{idim.robot.name}: the base parameters are not clear-cut at {worst}; lengths of the "
            "robot file may differ by rounding where they should be equal"
        )
    K[np.abs(K) < 1e-9] = 0.0  # what rounding leaves of factors that are none
    return BaseParameters(
        idim, kept_array, dropped, np.asarray(K, dtype=np.float64), tuple(observed)
    )


def find_observed_base(idim: Idim, observed: Sequence[Observability]) -> BaseParameters:
    """Base parameters of a model with what its logs leave open of their sensors.

    What no motion could tell from other parameters is known then: it is as it was stated.
    """
    observed = tuple(dict.fromkeys(observed))
    sensors = dict.fromkeys(sensor for each in observed for sensor in each.sensors)
    if not sensors:
        return base_parameters(idim, observed=observed)
    model = idim.with_sensors(tuple(sensors))
    found = base_parameters(model, observed=observed)
    own = {column.parameter.name for column in model.structure.sensor_columns}
    stated = tuple(name for name in (model.names[k] for k in found.dropped) if name in own)
    if not stated:
        return found
    return base_parameters(model.with_sensors(tuple(sensors), stated), observed=observed)


def draw_random_rows(idim: Idim, seed: int, observed: Observability) -> Array:
    """Rows of the regressor at random states, as a log shows them, shape (rows, parameters)."""
    columns = len(idim.parameters)
    shows = max(1, int(np.sum(observed.rows(idim.robot))))
    # half as many rows again as columns, so that none is dependent by chance
    samples = 10 + int(np.ceil(1.5 * columns / shows))
    states = draw_random_states(idim, samples, seed, observed)
    met = draw_random_conditions(idim, samples, seed, observed.sensors)
    if met.deflection is not None and met.sway is not None:
        stiff = [j for j, name in idim.structure.sprung_joints if name in observed.missing]
        met.deflection[:, :, stiff] = 0.0
        springs = idim.structure.spring_columns
        met.sway[:, :, [c.sway for c in springs if c.sway is not None and c.joint in stiff]] = 0.0
    W = idim.regressor(*states, met)
    return reduce_to_observed_rows(idim.tree, idim.robot, observed, states[0], W)
