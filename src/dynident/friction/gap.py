"""The flanks of a lost motion: a spring with a dead zone between a drive and what it moves."""

from __future__ import annotations

from dynident.core.arrays import Array
from dynident.friction.kernel import BY_POSITION, BY_SPEED, BY_STATE, VALUE, DriveInstant
from dynident.friction.model import FrictionModel, LinearTerm, ShapeTerm

STIFFNESS, ONSET, SETTLING = 2e3, 2e-4, 4e-3
"""Of flanks that touch [Nm/rad or N/m]: a load of 1 Nm bends them by less than a hobby servo's
encoder shows."""
WIDEST = 1.0
"""[rad or m]"""


def fill_gap_torque(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``f(d + T dd/dt)``: zero in the gap, and rising by a parabola at its ends."""
    way = at.position + SETTLING * at.speed
    side = 1.0 if way > 0.0 else -1.0
    into = abs(way) - 0.5 * shape[0]
    if into <= 0.0:
        return
    slope = min(into / ONSET, 1.0)
    out[0, VALUE] = side * slope * (into - 0.5 * slope * ONSET)
    out[0, BY_POSITION] = slope
    out[0, BY_SPEED] = SETTLING * slope
    out[0, BY_STATE] = -0.5 * side * slope


def gap() -> FrictionModel:
    """``kb f(d)``, d the way by which a link is ahead of its motor."""
    linear = (LinearTerm("kb", "Nm/rad", positive=True),)
    width = ShapeTerm("width", "rad", 0.0, 0.0, WIDEST)
    return FrictionModel(linear, (width,), fill_gap_torque)
