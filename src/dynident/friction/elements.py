"""What else acts on a joint, beside its friction: springs, weights, linkages, known torques.

Each is made from what is known of it, by the friction's protocol: its facts are shapes with no
room, what is unknown are linear parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.jit import entry
from dynident.core.options import HUGE
from dynident.friction.kernel import BY_POSITION, BY_STATE, VALUE, DriveInstant
from dynident.friction.model import FrictionModel, LinearTerm, ShapeTerm


def fill_spring_torque(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``q`` and 1."""
    out[0, VALUE] = at.position
    out[0, BY_POSITION] = 1.0
    out[1, VALUE] = 1.0


def fill_spring_energy(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``q^2 / 2`` and ``q``."""
    out[0, VALUE] = 0.5 * at.position**2
    out[1, VALUE] = at.position


def spring() -> FrictionModel:
    """``ks q + ps``: stiffness and preload, which an offset of the friction takes in."""
    linear = (LinearTerm("ks", "Nm/rad", positive=True), LinearTerm("ps", "Nm", positive=False))
    return FrictionModel(linear, (), fill_spring_torque, stored=fill_spring_energy)


def fill_gas_spring_torque(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``dL/dq / (1 - (L - L0) / stroke)``, ``L^2 = b^2 + c^2 - 2 b c cos(q + a)``."""
    b, c, stroke = shape[0], shape[1], shape[3]
    d = at.position + shape[2]
    length = np.sqrt(b * b + c * c - 2.0 * b * c * np.cos(d))
    lever = b * c * np.sin(d) / length
    force = 1.0 / (1.0 - (length - (b - c)) / stroke)
    bend = b * c * np.cos(d) / length - lever**2 / length
    out[0, VALUE] = lever * force
    out[0, BY_POSITION] = bend * force + lever**2 * force**2 / stroke
    # by the facts, of which only the angle could be asked for
    out[0, BY_STATE + 2] = out[0, BY_POSITION]


def fill_gas_spring_energy(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``-stroke log(1 - (L - L0) / stroke)``."""
    b, c, stroke = shape[0], shape[1], shape[3]
    d = at.position + shape[2]
    length = np.sqrt(b * b + c * c - 2.0 * b * c * np.cos(d))
    out[0, VALUE] = -stroke * np.log(1.0 - (length - (b - c)) / stroke)


def gas_spring(base: float, crank: float, angle: float, stroke: float) -> FrictionModel:
    """An isothermal gas spring between the base and a crank that turns with the joint.

    ``tau = fg dL/dq / (1 - (L - L0) / stroke)``: fg is the force at its shortest, where base and
    crank are in line [N].

    Parameters
    ----------
    base, crank : float
        From the joint's axis to the two ends; the base's is farther [m].
    angle : float
        Of the crank from that line at the joint's zero [rad].
    stroke : float
        Volume of the gas at the shortest over the piston's area [m].
    """
    for name, value in (("base", base), ("crank", crank), ("stroke", stroke)):
        if not value > 0.0:
            raise InputError(f"gas-spring: {name} has to be positive, got {value:g} m")
    if base <= crank:
        raise InputError("gas-spring: base has to be farther from the axis than crank")
    if stroke <= 2.0 * crank:
        raise InputError(
            f"gas-spring: a stroke of {stroke:g} m is used up before the crank has turned by 180 "
            "degrees; it has to be more than twice the crank"
        )
    facts = (("base", "m", base), ("crank", "m", crank), ("angle", "rad", angle))
    return FrictionModel(
        (LinearTerm("fg", "N", positive=False),),
        tuple(make_fixed_shape(*each) for each in (*facts, ("stroke", "m", stroke))),
        fill_gas_spring_torque,
        stored=fill_gas_spring_energy,
    )


def fill_ripple_torque(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``sin(k q)`` and ``cos(k q)``."""
    k, q = shape[0], at.position
    sin, cos = np.sin(k * q), np.cos(k * q)
    out[0, VALUE] = sin
    out[0, BY_POSITION] = k * cos
    out[0, BY_STATE] = q * cos
    out[1, VALUE] = cos
    out[1, BY_POSITION] = -k * sin
    out[1, BY_STATE] = -q * sin


def fill_ripple_energy(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``-cos(k q) / k`` and ``sin(k q) / k``."""
    k, q = shape[0], at.position
    out[0, VALUE] = -np.cos(k * q) / k
    out[1, VALUE] = np.sin(k * q) / k


MOST_PERIODS = 1000.0
"""Periods a turn that a ripple may have."""


def ripple(order: float) -> FrictionModel:
    """``rs sin(order q) + rc cos(order q)``: torque ripple; of order 1, a counterweight.

    Parameters
    ----------
    order : float
        Periods a turn of the joint.
    """
    if not 0.0 < order <= MOST_PERIODS:
        raise InputError(f"ripple: order has to be from 0 to {MOST_PERIODS:g}, got {order:g}")
    linear = (LinearTerm("rs", "Nm", positive=False), LinearTerm("rc", "Nm", positive=False))
    return FrictionModel(
        linear,
        (make_fixed_shape("order", "", order),),
        fill_ripple_torque,
        stored=fill_ripple_energy,
    )


def fill_counterweight_torque(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``sin(q + a)``."""
    d = at.position + shape[0]
    out[0, VALUE] = np.sin(d)
    out[0, BY_POSITION] = out[0, BY_STATE] = np.cos(d)


def fill_counterweight_energy(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``-cos(q + a)``."""
    out[0, VALUE] = -np.cos(at.position + shape[0])


def counterweight(angle: float) -> FrictionModel:
    """``cw sin(q + angle)``: a weight on the joint's own link, or on a wheel that turns with it.

    Parameters
    ----------
    angle : float
        Of its arm from where it hangs at rest, at the joint's zero [rad].
    """
    weight = LinearTerm("cw", "Nm", positive=False)
    return FrictionModel(
        (weight,),
        (make_fixed_shape("angle", "rad", angle),),
        fill_counterweight_torque,
        stored=fill_counterweight_energy,
    )


@entry
def evaluate_rocker_angle(shape, q):  # type: ignore[no-untyped-def]
    """Angle of a linkage's rocker and its first two derivatives by the crank's."""
    b, c, coupler, r, side = shape[0], shape[1], shape[2], shape[3], shape[6]
    d = q + shape[4]
    x, y = c * np.cos(d) - b, c * np.sin(d)
    length = np.sqrt(x * x + y * y)
    opening = np.arccos((r * r + length * length - coupler * coupler) / (2.0 * r * length))
    psi = np.arctan2(y, x) - side * opening
    along = c * (r * np.sin(psi - d) - b * np.sin(d))
    against = r * (c * np.sin(psi - d) - b * np.sin(psi))
    rate = along / against
    turned = np.cos(psi - d) * (rate - 1.0)
    bend = c * (r * turned - b * np.cos(d)) - rate * r * (c * turned - b * np.cos(psi) * rate)
    return psi, rate, bend / against


def fill_linkage_torque(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``cos(psi + lean) dpsi/dq``."""
    psi, rate, bend = evaluate_rocker_angle(shape, at.position)
    height, slope = np.sin(psi + shape[5]), np.cos(psi + shape[5])
    out[0, VALUE] = slope * rate
    out[0, BY_POSITION] = slope * bend - height * rate**2
    # by the facts, of which only angles could be asked for
    out[0, BY_STATE + 4] = out[0, BY_POSITION]
    out[0, BY_STATE + 5] = -height * rate


def fill_linkage_energy(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``sin(psi + lean)``."""
    psi, _, _ = evaluate_rocker_angle(shape, at.position)
    out[0, VALUE] = np.sin(psi + shape[5])


def linkage(
    base: float,
    crank: float,
    coupler: float,
    rocker: float,
    angle: float,
    lean: float = 0.0,
    side: float = 1.0,
) -> FrictionModel:
    """A weight on the rocker of a four-bar linkage whose crank turns with the joint.

    ``tau = wr cos(psi + lean) dpsi/dq``, psi the rocker's angle from the line of the two pivots:
    wr is the weight times its arm [Nm]. A parallelogram's rocker turns as its crank: it is a
    `counterweight`.

    Parameters
    ----------
    base : float
        From the joint's axis to the rocker's [m].
    crank, coupler, rocker : float
        Lengths of the bars [m].
    angle : float
        Of the crank from the line to the rocker's axis at the joint's zero [rad].
    lean : float
        Of the weight's arm from the rocker, and of that line from the horizontal [rad].
    side : float
        1 or -1: on which side of the line from the rocker's axis to the crank's end the coupler and
        the rocker meet, to the right or to the left.
    """
    lengths = {"base": base, "crank": crank, "coupler": coupler, "rocker": rocker}
    for name, value in lengths.items():
        if not value > 0.0:
            raise InputError(f"linkage: {name} has to be positive, got {value:g} m")
    if abs(side) != 1.0:
        raise InputError(f"linkage: side has to be 1 or -1, got {side:g}")
    if not abs(coupler - rocker) < abs(base - crank) or not base + crank < coupler + rocker:
        raise InputError(
            "linkage: coupler and rocker do not meet at every angle of the crank: their difference "
            "has to be less than that of base and crank, and their sum more"
        )
    facts = (*((name, "m", value) for name, value in lengths.items()), ("angle", "rad", angle))
    return FrictionModel(
        (LinearTerm("wr", "Nm", positive=False),),
        tuple(
            make_fixed_shape(*each) for each in (*facts, ("lean", "rad", lean), ("side", "", side))
        ),
        fill_linkage_torque,
        stored=fill_linkage_energy,
    )


def known() -> FrictionModel:
    """``kt known``: a torque that the log knows, and by which factor it acts."""
    factor = LinearTerm("kt", "", positive=False, weights=(1.0, 0.0, 0.0), times="known")
    return FrictionModel((factor,), needs=("known",))


def make_fixed_shape(symbol: str, unit: str, value: float) -> ShapeTerm:
    """A shape that is known; an `InputError` for a number that no mechanism has."""
    if not abs(value) <= HUGE:
        raise InputError(f"{symbol} is {value:g}; {HUGE:g} at most in magnitude")
    return ShapeTerm(symbol, unit, value, value, value)


ELEMENTS: dict[str, Callable[..., FrictionModel]] = {
    "spring": spring,
    "gas-spring": gas_spring,
    "ripple": ripple,
    "counterweight": counterweight,
    "linkage": linkage,
    "known": known,
}
"""Makers by name; their arguments are what is known."""


@cache
def number_symbols(model: FrictionModel, number: int) -> FrictionModel:
    """A further element of its kind on a joint: its symbols end in a letter."""
    if number == 0:
        return model
    letter = chr(ord("a") + number)
    return replace(
        model,
        parameters=tuple(replace(p, symbol=f"{p.symbol}{letter}") for p in model.parameters),
        shape=tuple(replace(s, symbol=f"{s.symbol}{letter}") for s in model.shape),
    )
