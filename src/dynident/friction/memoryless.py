"""Friction that depends on the instant alone: laws of speed, load and temperature.

Each law is a plain function of one instant (see `dynident.friction.kernel`), s(v) the sign,
smooth where a motion is simulated.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.jit import entry
from dynident.friction.kernel import BY_LOAD, BY_POSITION, BY_SPEED, BY_STATE, VALUE, DriveInstant
from dynident.friction.model import FrictionModel, LinearTerm, ShapeTerm

VISCOUS = LinearTerm("fv", "Nm s/rad", positive=True, weights=(0.0, 1.0, 0.0))
COULOMB = LinearTerm("fc", "Nm", positive=True, weights=(0.0, 0.0, 1.0))
OFFSET = LinearTerm("off", "Nm", positive=False, coupled=False, weights=(1.0, 0.0, 0.0))
FORWARD = LinearTerm("fcp", "Nm", positive=True, weights=(0.5, 0.0, 0.5))
BACKWARD = LinearTerm("fcn", "Nm", positive=True, weights=(-0.5, 0.0, 0.5))
STATIC = LinearTerm("fs", "Nm", positive=True)
"""What is added to fc at a standstill: ``F_s - F_c`` of the literature."""
STRIBECK_SPEED = ShapeTerm("vs", "rad/s", 0.1, 1e-3, 10.0)


def fill_cube_root_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``|v|^(1/3) s(v)`` (zhang2018, eq. 8)."""
    size = abs(at.speed)
    root = size ** (1.0 / 3.0)
    out[0, VALUE] = root * at.sign
    out[0, BY_SPEED] = root * at.slope
    if size > 0.0:
        out[0, BY_SPEED] += np.sign(at.speed) * at.sign * root / (3.0 * size)


def fill_polynomial_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``v^3`` and ``v^5``."""
    v2 = at.speed**2
    out[0, VALUE] = at.speed * v2
    out[0, BY_SPEED] = 3.0 * v2
    out[1, VALUE] = at.speed * v2**2
    out[1, BY_SPEED] = 5.0 * v2**2


def fill_load_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``|load| s(v)``, which dissipates (after zhang2018, eq. 9, whose term does not)."""
    size = abs(at.load)
    out[0, VALUE] = size * at.sign
    out[0, BY_SPEED] = size * at.slope
    out[0, BY_LOAD] = np.sign(at.load) * at.sign


def fill_load_gain(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``load`` (zhang2018, eq. 9): no sign of the speed, so it gives back what it has taken."""
    out[0, VALUE] = at.load
    out[0, BY_LOAD] = 1.0


def fill_load_square_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``|load| s(v)`` and ``load^2 s(v)``."""
    size = abs(at.load)
    out[0, VALUE] = size * at.sign
    out[0, BY_SPEED] = size * at.slope
    out[0, BY_LOAD] = np.sign(at.load) * at.sign
    out[1, VALUE] = at.load**2 * at.sign
    out[1, BY_SPEED] = at.load**2 * at.slope
    out[1, BY_LOAD] = 2.0 * at.load * at.sign


def fill_directional_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``|load| s(v)`` where the motor drives its load, and where the load drives the motor.

    The shares of both are ``(1 +- sign(load) s(v)) / 2``, so that a smooth sign changes over
    smoothly.
    """
    size, side = abs(at.load), np.sign(at.load)
    for row in range(2):
        way = side if row == 0 else -side
        share = 0.5 * (1.0 + way * at.sign)
        out[row, VALUE] = size * at.sign * share
        out[row, BY_SPEED] = size * at.slope * (share + 0.5 * way * at.sign)
        out[row, BY_LOAD] = side * at.sign * share


@entry
def evaluate_speed_decay(v, vs, exponent):  # type: ignore[no-untyped-def]
    """``exp(-|v / vs|^e)`` and its derivatives by v, vs and e."""
    size = abs(v) / vs
    if size == 0.0:
        return 1.0, 0.0, 0.0, 0.0
    power = size**exponent
    fall = np.exp(-power)
    slope = -fall * exponent * power
    return fall, slope / v, -slope / vs, -fall * power * np.log(size)


def fill_stribeck_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``exp(-(v / vs)^2) s(v)`` (zhang2018, eq. 4, with its usual exponent)."""
    fall, by_v, by_vs, _ = evaluate_speed_decay(at.speed, shape[0], 2.0)
    out[0, VALUE] = fall * at.sign
    out[0, BY_SPEED] = fall * at.slope + by_v * at.sign
    out[0, BY_STATE] = by_vs * at.sign


def fill_stribeck_with_exponent(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``exp(-|v / vs|^es) s(v)`` (zhang2018, eq. 4)."""
    fall, by_v, by_vs, by_e = evaluate_speed_decay(at.speed, shape[0], shape[1])
    out[0, VALUE] = fall * at.sign
    out[0, BY_SPEED] = fall * at.slope + by_v * at.sign
    out[0, BY_STATE] = by_vs * at.sign
    out[0, BY_STATE + 1] = by_e * at.sign


def fill_uneven_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``sin(q) s(v)`` and ``cos(q) s(v)``: Coulomb friction that changes along a turn."""
    sin, cos = np.sin(at.position), np.cos(at.position)
    out[0, VALUE] = sin * at.sign
    out[0, BY_SPEED] = sin * at.slope
    out[0, BY_POSITION] = cos * at.sign
    out[1, VALUE] = cos * at.sign
    out[1, BY_SPEED] = cos * at.slope
    out[1, BY_POSITION] = -sin * at.sign


def fill_stribeck_with_load(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``exp(-(v / vs)^2) s(v)``, ``|load| s(v)`` and their product."""
    fall, by_v, by_vs, _ = evaluate_speed_decay(at.speed, shape[0], 2.0)
    size, side = abs(at.load), np.sign(at.load)
    out[0, VALUE] = fall * at.sign
    out[0, BY_SPEED] = fall * at.slope + by_v * at.sign
    out[0, BY_STATE] = by_vs * at.sign
    out[1, VALUE] = size * at.sign
    out[1, BY_SPEED] = size * at.slope
    out[1, BY_LOAD] = side * at.sign
    out[2, VALUE] = size * out[0, VALUE]
    out[2, BY_SPEED] = size * out[0, BY_SPEED]
    out[2, BY_LOAD] = side * out[0, VALUE]
    out[2, BY_STATE] = size * out[0, BY_STATE]


def fill_bompos_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``-exp(-|v| / f3) s(v)`` and ``-exp(-1 / (f5 |v|)) s(v)`` (zhang2018, eq. 5)."""
    size, way = abs(at.speed), np.sign(at.speed)
    fall, _, by_f3, _ = evaluate_speed_decay(at.speed, shape[0], 1.0)
    out[0, VALUE] = -fall * at.sign
    out[0, BY_SPEED] = -fall * (at.slope - way * at.sign / shape[0])
    out[0, BY_STATE] = -by_f3 * at.sign
    if size > 0.0:
        x = 1.0 / (shape[1] * size)
        rise = np.exp(-x)
        out[1, VALUE] = -rise * at.sign
        out[1, BY_SPEED] = -rise * (at.slope + x / size * way * at.sign)
        out[1, BY_STATE + 1] = -rise * x / shape[1] * at.sign


def fill_tanh_sech_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``tanh(f4 v)`` and ``sech(f3 v) tanh(f4 v)`` (zhang2018, eq. 6): no sign of its own."""
    v, f3, f4 = at.speed, shape[0], shape[1]
    up = np.tanh(f4 * v)
    steep = 1.0 - up**2
    bump, lean = 1.0 / np.cosh(min(abs(f3 * v), 300.0)), np.tanh(f3 * v)
    out[0, VALUE] = up
    out[0, BY_SPEED] = f4 * steep
    out[0, BY_STATE + 1] = v * steep
    out[1, VALUE] = bump * up
    out[1, BY_SPEED] = bump * (f4 * steep - f3 * lean * up)
    out[1, BY_STATE] = -v * lean * bump * up
    out[1, BY_STATE + 1] = bump * v * steep


def fill_sigmoid_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``1 / (1 + exp(-f2 (v + f3))) - 1 / (1 + exp(-f2 f3))``, of the Panda (Gaz et al. 2019)."""
    f2, f3 = shape[0], shape[1]
    a = 0.5 * (1.0 + np.tanh(0.5 * f2 * (at.speed + f3)))
    b = 0.5 * (1.0 + np.tanh(0.5 * f2 * f3))
    steep, rest = a * (1.0 - a), b * (1.0 - b)
    out[0, VALUE] = a - b
    out[0, BY_SPEED] = f2 * steep
    out[0, BY_STATE] = (at.speed + f3) * steep - f3 * rest
    out[0, BY_STATE + 1] = f2 * (steep - rest)


def fill_temperature_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``exp(-(T - 20) / T0) v``: lubricant that thins as it warms [deg C]."""
    warmth = at.temperature - 20.0
    thin = np.exp(-warmth / shape[0])
    out[0, VALUE] = thin * at.speed
    out[0, BY_SPEED] = thin
    out[0, BY_STATE] = thin * at.speed * warmth / shape[0] ** 2


LOAD = LinearTerm("fl", "", positive=True, needs_load=True)
DRIFT = LinearTerm("fvt", "Nm/rad", positive=False, weights=(0.0, 1.0, 0.0), times="time")
"""By how much fv grows in a second."""
ASYMMETRIC = (VISCOUS, FORWARD, BACKWARD)
USUAL = (VISCOUS, COULOMB, OFFSET)

MEMORYLESS: dict[str, FrictionModel] = {
    "none": FrictionModel(()),
    "viscous": FrictionModel((VISCOUS,)),
    "viscous-offset": FrictionModel((VISCOUS, OFFSET)),
    "coulomb-viscous": FrictionModel(USUAL),
    "coulomb-viscous-symmetric": FrictionModel((VISCOUS, COULOMB)),
    "coulomb-viscous-asymmetric": FrictionModel(ASYMMETRIC),
    "viscous-drift": FrictionModel((*USUAL, DRIFT), needs=("time",)),
    "cube-root": FrictionModel(
        (*USUAL, LinearTerm("fr", "Nm (s/rad)^(1/3)", True)), (), fill_cube_root_friction
    ),
    "polynomial": FrictionModel(
        (*USUAL, LinearTerm("f3", "Nm (s/rad)^3", False), LinearTerm("f5", "Nm (s/rad)^5", False)),
        (),
        fill_polynomial_friction,
    ),
    "uneven": FrictionModel(
        (*USUAL, LinearTerm("fcs", "Nm", positive=False), LinearTerm("fcc", "Nm", positive=False)),
        (),
        fill_uneven_friction,
    ),
    "load": FrictionModel((*USUAL, LOAD), (), fill_load_friction, needs=("load",)),
    "load-gain": FrictionModel(
        (*USUAL, LinearTerm("flg", "", positive=False, needs_load=True)),
        (),
        fill_load_gain,
        needs=("load",),
    ),
    "load-square": FrictionModel(
        (*USUAL, LOAD, LinearTerm("fl2", "1/Nm", False, needs_load=True)),
        (),
        fill_load_square_friction,
        needs=("load",),
    ),
    "directional-load": FrictionModel(
        (
            *USUAL,
            LinearTerm("fld", "", positive=True, needs_load=True),
            LinearTerm("fle", "", positive=True, needs_load=True),
        ),
        (),
        fill_directional_friction,
        needs=("load",),
    ),
    "stribeck": FrictionModel((*USUAL, STATIC), (STRIBECK_SPEED,), fill_stribeck_friction),
    "stribeck-exponent": FrictionModel(
        (*USUAL, STATIC),
        (STRIBECK_SPEED, ShapeTerm("es", "", 2.0, 0.3, 4.0)),
        fill_stribeck_with_exponent,
    ),
    "stribeck-load": FrictionModel(
        (*USUAL, STATIC, LOAD, LinearTerm("fls", "", positive=True, needs_load=True)),
        (STRIBECK_SPEED,),
        fill_stribeck_with_load,
        needs=("load",),
    ),
    "bompos": FrictionModel(
        (*USUAL, LinearTerm("f2", "Nm", False), LinearTerm("f4", "Nm", False)),
        (ShapeTerm("v3", "rad/s", 0.1, 1e-3, 10.0), ShapeTerm("w5", "s/rad", 1.0, 1e-2, 1e2)),
        fill_bompos_friction,
    ),
    "tanh-sech": FrictionModel(
        (VISCOUS, OFFSET, LinearTerm("f1", "Nm", positive=True), LinearTerm("f2", "Nm", False)),
        (ShapeTerm("w3", "s/rad", 3.0, 1e-2, 1e3), ShapeTerm("w4", "s/rad", 50.0, 1.0, 1e4)),
        fill_tanh_sech_friction,
    ),
    "sigmoid": FrictionModel(
        (VISCOUS, OFFSET, LinearTerm("f1", "Nm", positive=True)),
        (ShapeTerm("w2", "s/rad", 5.0, 1e-2, 1e3), ShapeTerm("v3", "rad/s", 0.0, -1.0, 1.0)),
        fill_sigmoid_friction,
    ),
    "temperature": FrictionModel(
        (COULOMB, OFFSET, LinearTerm("fw", "Nm s/rad", positive=True)),
        (ShapeTerm("T0", "K", 30.0, 1.0, 1e3),),
        fill_temperature_friction,
        needs=("temperature",),
    ),
}
"""Models without memory by name; those of linear parameters alone come first."""
