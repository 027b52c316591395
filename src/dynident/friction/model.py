"""What a friction model is: columns, shapes, states, and the energy that it stores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.friction.kernel import (
    BY_STATE,
    VALUE,
    Law,
    fill_tables,
    fill_values,
    find_law_address,
    follow_states,
)

LASTING = 1e12
"""How long a speed lasts under which states settle [s]."""
SIGNALS = {
    "load": "load of its drive",
    "temperature": "temperature of its drive",
    "time": "time since the log began",
    "known": "known torque of the log",
}
"""What a model may need beside the motion of its drive, and what messages call it."""


def name_signals(needs: Iterable[str]) -> str:
    """Some of `SIGNALS` in words."""
    return " and the ".join(SIGNALS[need] for need in sorted(needs))


@dataclass(frozen=True)
class LinearTerm:
    """A parameter that multiplies a column, one of each drive."""

    symbol: str
    """Name without the joint's number (``fv``)."""
    unit: str
    """On a revolute joint; on a prismatic one N and m stand for Nm and rad."""
    positive: bool
    """Whether physical consistency asks for a positive value."""
    coupled: bool = True
    """Whether the motor of a coupled drive has one of its own beside the joint's. An offset has
    none: that of the motor is a sum of the joints'."""
    weights: tuple[float, float, float] | None = None
    """The column as ``a + b v + c s(v)``, s the sign; without, a row of the model's law."""
    times: str = ""
    """One of `SIGNALS` that such a column is multiplied by."""
    needs_load: bool = False
    """Whether the column is nothing where the drive bears no load, as of a passive joint, which has
    none of it."""
    sparse: bool = False
    """Whether it is a weight of an expansion that is not negative, most of which are zero where it
    fits best."""


@dataclass(frozen=True)
class ShapeTerm:
    """A parameter that the columns are not linear in, one of each drive."""

    symbol: str
    unit: str
    """On a revolute joint."""
    start: float
    lower: float
    upper: float
    """`start`, `lower`, `upper`: a usual value, and the bounds of what the columns are defined
    for."""

    def within(self, lower: float, upper: float) -> ShapeTerm:
        """The same parameter with narrower bounds."""
        return ShapeTerm(self.symbol, self.unit, min(max(self.start, lower), upper), lower, upper)


@dataclass(frozen=True)
class StateTrace:
    """States of a friction model along a motion, shape (samples, states).

    And their derivatives, shape (samples, states, shapes).
    """

    z: Array
    by_shape: Array


@dataclass(frozen=True)
class DriveSignals:
    """What a friction model sees of its drive along a motion."""

    q: Array
    dq: Array
    """`q`, `dq`: shape (samples,). Position and speed of the drive [rad or m], [rad/s or m/s]; of
    several drives at once, where only speeds are asked for, (samples, drives)."""
    width: float | Array | None = None
    """Shape (drives,). Smooths the sign as a simulation does [rad/s or m/s]; exact without."""
    load: Array | None = None
    """Torque of the rigid bodies that the drive bears [Nm or N], shape (samples,)."""
    temperature: Array | None = None
    """Of the drive [deg C], shape (samples,)."""
    time: Array | None = None
    """Since the log began [s], shape (samples,)."""
    known: Array | None = None
    """A known torque [Nm or N], shape (samples,)."""
    trace: StateTrace | None = None
    """States of the model, from its `follow`."""

    @cached_property
    def sign(self) -> Array:
        """Of the speed, smooth where there is a width."""
        return np.sign(self.dq) if self.width is None else np.tanh(self.dq / self.width)

    @cached_property
    def slope(self) -> Array:
        """Derivative of the smooth sign by the speed; zero of the exact one."""
        if self.width is None:
            return np.zeros(len(self.dq))
        return np.asarray((1.0 - self.sign**2) / self.width)

    @cached_property
    def inputs(self) -> tuple[Array, ...]:
        """What the kernels see of the signals, ordered as `DriveInstant`; zeros where missing."""
        nothing = np.zeros(len(self.dq))
        load = nothing if self.load is None else self.load
        temperature = nothing if self.temperature is None else self.temperature
        inputs = (self.dq, self.q, self.sign, self.slope, load, temperature)
        lengths = {len(each) for each in inputs}
        if len(lengths) != 1:  # the kernels read as many samples of each
            raise ValueError(f"signals of one length were expected, not of {sorted(lengths)}")
        return tuple(to_writable(each) for each in inputs)

    def column(self, parameter: LinearTerm) -> Array:
        """The column of a parameter with weights."""
        assert parameter.weights is not None
        column = self.combined(parameter.weights)
        return column * self.needed(parameter.times) if parameter.times else column

    def needed(self, name: str) -> Array:
        """One of `SIGNALS`."""
        signal: Array | None = getattr(self, name)
        if signal is None:
            raise InputError(f"the friction depends on the {SIGNALS[name]}, which is missing")
        return signal

    def combined(self, weights: tuple[float, float, float]) -> Array:
        """``a + b v + c s(v)``; a drive at a standstill has no sign, and no half of one.

        So that ``a = c`` is the column of one direction alone.
        """
        a, b, c = weights
        column = b * self.dq
        if c != 0.0:
            column = column + c * self.sign
        if a != 0.0:
            column = column + (a * np.abs(self.sign) if c != 0.0 and self.width is None else a)
        return column


@dataclass(frozen=True)
class FrictionModel:
    """How a drive resists: ``f = sum_k theta_k c_k(v, q, ...; shape, z)``."""

    parameters: tuple[LinearTerm, ...]
    """They multiply the columns c_k."""
    shape: tuple[ShapeTerm, ...] = ()
    """That the columns, and the states' steps, depend on."""
    law: Law | None = None
    """``law(at, shape, z, out)`` fills a row of `out` for each parameter without weights, in their
    order: the column and its derivatives by speed, position, load, states and shapes, at one
    instant (see `dynident.friction.kernel`). It is compiled, and serves regressors and simulations
    alike."""
    state: tuple[float, ...] = ()
    """Where the model's internal states z start; none of a model without memory."""
    step: Law | None = None
    """``step(at, shape, z, out)``, likewise: a row for each state, its value after ``at.period`` at
    constant speed. Exact in that, a rollout is of second order."""
    stored: Law | None = None
    """``stored(at, shape, z, out)``, likewise: the energy that each column stores per unit of its
    parameter; only the values are read. Without, a law stores nothing."""
    needs: tuple[str, ...] = ()
    """Those of `SIGNALS` that the law, or columns with weights, read."""

    def __post_init__(self) -> None:
        symbols = [p.symbol for p in self.parameters] + [s.symbol for s in self.shape]
        if len(set(symbols)) < len(symbols):
            raise InputError(f"friction model: symbols {', '.join(symbols)} are not all different")
        if bool(self.rows) != (self.law is not None):
            raise InputError("friction model: a law is for parameters without weights")
        if bool(self.state) != (self.step is not None) or (self.state and self.stored is None):
            raise InputError("friction model: states need a step and the energy that they store")
        if (self.shape or self.state or self.stored) and self.law is None:
            raise InputError("friction model: shapes and states are for a law")
        times = {p.times for p in self.parameters} - {""}
        if not times <= {*self.needs} or (self.law is None and {*self.needs} != times):
            raise InputError("friction model: needs are what its law and its columns read")
        for each in self.shape:
            if not each.lower <= each.start <= each.upper:
                raise InputError(f"friction model: {each.symbol} starts beyond its bounds")
        for need in self.needs:
            if need not in SIGNALS:
                raise InputError(f"friction model: signal {need!r} is not known")

    @cached_property
    def rows(self) -> tuple[int, ...]:
        """Parameters whose columns the law gives."""
        return tuple(k for k, each in enumerate(self.parameters) if each.weights is None)

    @property
    def start(self) -> tuple[float, ...]:
        """Usual values of the shape."""
        return tuple(each.start for each in self.shape)

    def columns(self, signals: DriveSignals, shape: Array) -> Array:
        """Columns of the regressor, shape (samples, parameters).

        The signals have the trace of a model that has states.
        """
        columns = np.empty((len(self.parameters), len(signals.dq))).T
        for k, each in enumerate(self.parameters):
            if each.weights is not None:
                columns[:, k] = signals.column(each)
        if self.law is not None:
            columns.T[list(self.rows)] = self.values(self.law, signals, shape)
        return columns

    def bear(self, signals: DriveSignals, shape: Array, linear: Array) -> Array:
        """The part of the friction that a load may change, shape (samples,)."""
        found = np.zeros(len(signals.dq))
        for each, value in zip(self.parameters, linear, strict=True):
            if each.times == "load":
                found += value * signals.column(each)
        if self.law is not None:
            found += linear[list(self.rows)] @ self.values(self.law, signals, shape)
        return found

    def by_shape(self, signals: DriveSignals, shape: Array) -> Array:
        """Derivatives of the columns by the shape, shape (samples, parameters, shapes).

        Of a model with states they include those of the states, from the trace.
        """
        found = np.zeros((len(signals.dq), len(self.parameters), len(self.shape)))
        if self.law is not None and self.shape:
            found[:, self.rows] = self.slopes(self.table(self.law, signals, shape), signals.trace)
        return found

    def slopes(self, table: Array, trace: StateTrace | None) -> Array:
        """Derivatives of the law's columns by the shape, from its table and the states'."""
        m = len(self.state)
        found = table[:, :, BY_STATE + m :]
        if m and trace is not None:
            found = found + table[:, :, BY_STATE : BY_STATE + m] @ trace.by_shape
        return np.asarray(found)

    def energy(self, signals: DriveSignals, shape: Array) -> Array:
        """Energy that each column stores per unit of its parameter, (samples, parameters).

        A constant torque stores its work, ``q``; what has a sign or a slope stores nothing.
        """
        found = np.zeros((len(signals.dq), len(self.parameters)))
        for k, each in enumerate(self.parameters):
            if each.weights is not None and each.weights[2] == 0.0 and not each.times:
                found[:, k] = each.weights[0] * signals.q
        if self.stored is not None:
            found[:, self.rows] = self.values(self.stored, signals, shape).T
        return found

    def follow(
        self, signals: DriveSignals, rate: float, shape: Array, previous: StateTrace | None = None
    ) -> StateTrace:
        """States along a motion, a stretch of it at a time.

        Parameters
        ----------
        signals : DriveSignals
            Without gaps.
        rate : float
            [Hz]
        shape : ndarray, shape (shapes,)
        previous : StateTrace, optional
            Of the stretch before; without, the motion starts here.

        Returns
        -------
        StateTrace
            Each state as it is in the middle of the period that begins at its sample, as in
            a rollout of one integration step a sample.
        """
        samples, m, shapes = len(signals.dq), len(self.state), len(self.shape)
        z, Z = np.array(self.state, dtype=float), np.zeros((m, shapes))
        if previous is not None:
            z, Z = to_writable(previous.z[-1]), to_writable(previous.by_shape[-1])
        trace = StateTrace(np.empty((samples, m)), np.empty((samples, m, shapes)))
        if m:
            follow_states(
                find_law_address(self.step), *self._inputs(signals), 1.0 / rate,
                previous is not None, np.array(shape, dtype=float), z, Z, trace.z, trace.by_shape,
            )  # fmt: skip
        return trace

    def settle(self, signals: DriveSignals, shape: Array) -> StateTrace:
        """States as they settle where each instant's speed lasts, from where they start.

        What is known of a single instant, of which the motion before is not; with the smooth sign
        they fade as that does.
        """
        samples, m, shapes = len(signals.dq), len(self.state), len(self.shape)
        trace = StateTrace(np.zeros((samples, m)), np.zeros((samples, m, shapes)))
        if m:
            table = np.empty((samples, m, BY_STATE + m + shapes))
            z = np.tile(np.array(self.state, dtype=float), (samples, 1))
            exact = self._inputs(replace(signals, width=None))
            own = np.array(shape, dtype=float)
            fill_tables(find_law_address(self.step), *exact, LASTING, own, z, table)
            trace.z[:] = table[:, :, VALUE] * np.abs(signals.sign)[:, None]
        return trace

    def table(self, law: Law, signals: DriveSignals, shape: Array) -> Array:
        """A law's table of every sample, shape (samples, rows, columns)."""
        table = np.empty((len(signals.dq), len(self.rows), self._width))
        shape, z = np.array(shape, dtype=float), self._states(signals)
        fill_tables(find_law_address(law), *self._inputs(signals), 0.0, shape, z, table)
        return table

    def values(self, law: Law, signals: DriveSignals, shape: Array) -> Array:
        """A law's values alone at every sample, shape (rows, samples)."""
        values = np.empty((len(self.rows), len(signals.dq)))
        shape, z = np.array(shape, dtype=float), self._states(signals)
        fill_values(find_law_address(law), *self._inputs(signals), shape, z, self._width, values)
        return values

    @property
    def _width(self) -> int:
        """Columns of a law's table."""
        return BY_STATE + len(self.state) + len(self.shape)

    def _states(self, signals: DriveSignals) -> Array:
        """The states that the signals have, refused where they were not followed."""
        m = len(self.state)
        z = np.zeros((len(signals.dq), 0)) if signals.trace is None else signals.trace.z
        if z.shape[1] != m:
            raise InputError(f"the friction has {m} states that have to be followed first")
        return to_writable(z)

    def _inputs(self, signals: DriveSignals) -> tuple[Array, ...]:
        """See `DriveSignals.inputs`; refused where something is missing that is needed."""
        for need in self.needs:
            signals.needed(need)
        return signals.inputs


def to_writable(values: Array) -> Array:
    """The one kind of array that laws are compiled for; a copy only where it is another."""
    flags = values.flags
    if flags.c_contiguous and flags.writeable and values.dtype == np.float64:
        return values
    return np.require(values, np.float64, ["C", "W"])


@dataclass(frozen=True)
class Element:
    """Something more that acts on a joint's drive: a friction model with its values."""

    joint: int
    """Index of the joint on whose own drive it acts."""
    model: FrictionModel
    linear: tuple[float, ...]
    """Values of the model's `parameters`."""
    shape: tuple[float, ...] = ()
    """Of its `shape`; usual ones by default."""

    def __post_init__(self) -> None:
        if not self.shape:
            object.__setattr__(self, "shape", self.model.start)
        wanted = len(self.model.parameters), len(self.model.shape)
        if (len(self.linear), len(self.shape)) != wanted or not np.all(
            np.isfinite([*self.linear, *self.shape])
        ):
            raise InputError(
                f"an element of joint {self.joint + 1} needs {wanted[0]} finite parameters and "
                f"{wanted[1]} finite shapes"
            )
        for each, value in zip(self.model.shape, self.shape, strict=True):
            if not each.lower <= value <= each.upper:
                raise InputError(
                    f"an element of joint {self.joint + 1}: {each.symbol} is {value:g} but has to "
                    f"be from {each.lower:g} to {each.upper:g} {each.unit}"
                )
