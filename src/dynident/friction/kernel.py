"""Laws of friction in compiled form: one after another, by their addresses.

A law is a plain function ``law(at, shape, z, out)`` of one instant. It fills a row of `out`
for each linear parameter (for each state, where it is a step): the value in column `VALUE`,
its derivatives in the columns after it. Rows come in as zeros, so that what is zero need not
be written. The kernels call laws through their addresses: a new law compiles itself alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from dynident.core.address import generate_call
from dynident.core.arrays import Array, Integers
from dynident.core.compiled import compile_callback
from dynident.core.jit import NO_COUNTS, inner, jit

VALUE, BY_SPEED, BY_POSITION, BY_LOAD, BY_STATE = range(5)
"""Columns of a law's table: those of the states are followed by those of the shapes."""


class DriveInstant(NamedTuple):
    """What a law sees of its drive at one instant."""

    speed: float
    position: float
    """`speed`, `position`: of the drive [rad/s or m/s], [rad or m]."""
    sign: float
    slope: float
    """`sign`, `slope`: of the speed, smooth where a motion is simulated, and its derivative by the
    speed (zero where the sign is exact)."""
    load: float
    """Torque of the rigid bodies that the drive bears [Nm or N]; zero unless the model says that it
    needs it."""
    temperature: float
    """As measured, likewise."""
    period: float
    """Of a step of the state [s]; zero elsewhere."""


AT: Any = types.NamedUniTuple(types.float64, len(DriveInstant._fields), DriveInstant)  # type: ignore[no-untyped-call]
ROW, TABLE = types.Array(types.float64, 1, "C"), types.Array(types.float64, 2, "C")
SIGNATURE = types.void(AT, ROW, ROW, TABLE)

Law = Callable[[DriveInstant, Array, Array, Array], None]


@cache
def compile_law(law: Law) -> Any:
    """The law as a compiled callback, kept as long as the process lives."""
    return compile_callback(law, SIGNATURE, **NO_COUNTS)


def find_law_address(law: Law | None) -> int:
    """Where a law is called; 0 for none."""
    return 0 if law is None else int(compile_law(law).address)


def _call(typing, where, at, shape, z, out):  # type: ignore[no-untyped-def]
    return types.void(types.int64, AT, ROW, ROW, TABLE), generate_call


call: Any = intrinsic(_call)
"""``call(address, at, shape, z, out)``: the law at an address."""


@inner
def consult_law(law, at, shape, z, table):  # type: ignore[no-untyped-def]
    """Call a law or a step on a table of zeros."""
    for r in range(table.shape[0]):
        for k in range(table.shape[1]):
            table[r, k] = 0.0
    call(law, at, shape, z, table)


@inner
def weigh_column(values, table, k):  # type: ignore[no-untyped-def]
    """Column k of a law's table, summed with the values of its linear parameters."""
    total = 0.0
    for r in range(len(values)):
        total += values[r] * table[r, k]
    return total


@jit
def fill_tables(  # type: ignore[no-untyped-def]
    law, speed, position, sign, slope, load, temperature, period, shape, z, out
):
    """A law's table of every sample into `out`, shape (samples, rows, columns)."""
    for t in range(len(speed)):
        at = DriveInstant(speed[t], position[t], sign[t], slope[t], load[t], temperature[t], period)
        consult_law(law, at, shape, z[t], out[t])


@jit
def fill_values(  # type: ignore[no-untyped-def]
    law, speed, position, sign, slope, load, temperature, shape, z, columns, out
):
    """A law's values alone at every sample into `out`, shape (rows, samples).

    Its table has so many columns.
    """
    table = np.empty((len(out), columns))
    for t in range(len(speed)):
        at = DriveInstant(speed[t], position[t], sign[t], slope[t], load[t], temperature[t], 0.0)
        consult_law(law, at, shape, z[t], table)
        for row in range(len(out)):  # a slice takes a second to compile
            out[row, t] = table[row, VALUE]


@jit
def follow_states(  # type: ignore[no-untyped-def]
    step, speed, position, sign, slope, load, temperature, period, started, shape, z, Z, zs, Zs
):
    """States along a motion into zs, their derivatives by the shape into Zs.

    z and Z are those before; at the start of a motion (`started` is False) half a step is
    made, so that a state holds in the middle of the step that begins at its sample.
    """
    m, shapes = Z.shape
    table = np.zeros((m, BY_STATE + m + shapes))
    z, Z = z.copy(), Z.copy()
    for t in range(len(speed)):
        part = period if started or t > 0 else 0.5 * period
        at = DriveInstant(speed[t], position[t], sign[t], slope[t], load[t], temperature[t], part)
        consult_law(step, at, shape, z, table)
        for r in range(m):
            zs[t, r] = table[r, VALUE]
            for p in range(shapes):
                value = table[r, BY_STATE + m + p]
                for k in range(m):
                    value += table[r, BY_STATE + k] * Z[k, p]
                Zs[t, r, p] = value
        z[:] = zs[t]
        Z[:] = Zs[t]


class DriveElements(NamedTuple):
    """Laws that act on the drives of a simulated robot, any number a drive."""

    gear: Integers
    """The drive on which each of them acts, shape (e,)."""
    address: Integers
    """Of its law and of its states' step (0 for none), shape (e, 2)."""
    counts: Integers
    """Of its linear parameters and of its states, shape (e, 2)."""
    values: Array
    """Shape (e, most linear parameters)."""
    shape: Array
    """Shape (e, most shapes)."""
    rest: Array
    """Where the states start, shape (e, most states)."""
    parameter: Integers
    """Shape (c, 3). What is differentiated by: of which element, which of its linear parameters
    (its shapes are counted after them), and the column."""
