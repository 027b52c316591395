"""Friction that remembers: bristles that bend before they slip.

The models are those of Dahl 1968 and, LuGre, of Canudas de Wit et al. 1995. The step of a state
is exact while the speed is constant, so that a rollout is of second order; what the bristles
store is their energy.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.jit import entry
from dynident.friction.kernel import BY_SPEED, BY_STATE, VALUE, DriveInstant
from dynident.friction.memoryless import OFFSET, VISCOUS
from dynident.friction.model import FrictionModel, LinearTerm, ShapeTerm

BEND = ShapeTerm("delta", "rad", 0.02, 1e-6, 1.0)
"""By which bristles are bent where they slip."""

SPECTRUM = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""By which the bristles of ``dahl-spectrum`` are bent where they slip [rad or m]."""


@entry
def evaluate_mean_decay(x):  # type: ignore[no-untyped-def]
    """``(1 - exp(-x)) / x`` and its derivative."""
    if abs(x) < 1e-2:  # the series, where the quotients below lose their digits
        value = 1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0 * (1.0 - x / 5.0)))
        return value, -0.5 + x / 3.0 - x**2 / 8.0 + x**3 / 30.0 - x**4 / 144.0
    value = -np.expm1(-x) / x
    return value, (np.exp(-x) - value) / x


def fill_dahl_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """The deflection w of each of the bristles, 1 where they slip."""
    for k in range(len(z)):
        out[k, VALUE] = z[k]
        out[k, BY_STATE + k] = 1.0


def step_dahl_bristles(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``delta_k dw_k/dt = v - |v| w_k``, each by itself; their lengths are the shape."""
    v, h, m = at.speed, at.period, len(z)
    for k in range(m):
        delta = shape[k]
        x, x_v = h * v * at.sign / delta, h * (at.sign + v * at.slope) / delta
        fade, slope = evaluate_mean_decay(x)
        kept = np.exp(-x)
        by_x = -z[k] * kept + v * h / delta * slope
        out[k, VALUE] = z[k] * kept + v * h / delta * fade
        out[k, BY_SPEED] = by_x * x_v + h / delta * fade
        out[k, BY_STATE + k] = kept
        out[k, BY_STATE + m + k] = -by_x * x / delta - v * h / delta**2 * fade


def fill_dahl_energy(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``delta_k w_k^2 / 2``."""
    for k in range(len(z)):
        out[k, VALUE] = 0.5 * shape[k] * z[k] ** 2


def fill_spectrum_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """The deflection of each of the bristles."""
    for k in range(len(z)):
        out[k, VALUE] = z[k]
        out[k, BY_STATE + k] = 1.0


def step_spectrum_bristles(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``delta_k dw_k/dt = v - |v| w_k``, each by itself."""
    v, h = at.speed, at.period
    for k in range(len(z)):
        delta = SPECTRUM[k]
        x, x_v = h * v * at.sign / delta, h * (at.sign + v * at.slope) / delta
        fade, slope = evaluate_mean_decay(x)
        kept = np.exp(-x)
        out[k, VALUE] = z[k] * kept + v * h / delta * fade
        out[k, BY_SPEED] = (-z[k] * kept + v * h / delta * slope) * x_v + h / delta * fade
        out[k, BY_STATE + k] = kept


def fill_spectrum_energy(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``delta_k w_k^2 / 2``."""
    for k in range(len(z)):
        out[k, VALUE] = 0.5 * SPECTRUM[k] * z[k] ** 2


@entry
def evaluate_slip_rate(v, sign, slope, shape):  # type: ignore[no-untyped-def]
    """``a = |v| / (delta g)``, ``g = 1 + rise exp(-(v / vs)^2)``, and its derivatives."""
    delta, rise, vs = shape[0], shape[1], shape[2]
    fall = np.exp(-((v / vs) ** 2))
    g = 1.0 + rise * fall
    a = v * sign / (delta * g)
    by_v = (sign + v * slope) / (delta * g) + a / g * rise * fall * 2.0 * v / vs**2
    by_vs = -a / g * rise * fall * 2.0 * v**2 / vs**3
    return a, by_v, -a / delta, -a / g * fall, by_vs


def fill_lugre_friction(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """The bristles' deflection z and its rate ``v - a z``."""
    a, by_v, by_delta, by_rise, by_vs = evaluate_slip_rate(at.speed, at.sign, at.slope, shape)
    out[0, VALUE] = z[0]
    out[0, BY_STATE] = 1.0
    out[1, VALUE] = at.speed - a * z[0]
    out[1, BY_SPEED] = 1.0 - by_v * z[0]
    out[1, BY_STATE] = -a
    out[1, BY_STATE + 1] = -by_delta * z[0]
    out[1, BY_STATE + 2] = -by_rise * z[0]
    out[1, BY_STATE + 3] = -by_vs * z[0]


def step_lugre_bristles(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``dz/dt = v - a z``."""
    v, h = at.speed, at.period
    a, by_v, by_delta, by_rise, by_vs = evaluate_slip_rate(v, at.sign, at.slope, shape)
    fade, slope = evaluate_mean_decay(a * h)
    kept = np.exp(-a * h)
    by_a = h * (-z[0] * kept + v * h * slope)
    out[0, VALUE] = z[0] * kept + v * h * fade
    out[0, BY_SPEED] = by_a * by_v + h * fade
    out[0, BY_STATE] = kept
    out[0, BY_STATE + 1] = by_a * by_delta
    out[0, BY_STATE + 2] = by_a * by_rise
    out[0, BY_STATE + 3] = by_a * by_vs


def fill_lugre_energy(at: DriveInstant, shape: Array, z: Array, out: Array) -> None:
    """``z^2 / 2`` of the bristles' stiffness."""
    out[0, VALUE] = 0.5 * z[0] ** 2


BRISTLES: dict[str, FrictionModel] = {
    "dahl": FrictionModel(
        (VISCOUS, LinearTerm("fc", "Nm", positive=True), OFFSET),
        (BEND,),
        fill_dahl_friction,
        state=(0.0,),
        step=step_dahl_bristles,
        stored=fill_dahl_energy,
    ),
    "dahl-spectrum": FrictionModel(
        (
            VISCOUS,
            *(
                LinearTerm(f"fh{letter}", "Nm", positive=True, sparse=True)
                for letter, _ in zip("abcdef", SPECTRUM)
            ),
            OFFSET,
        ),
        (),
        fill_spectrum_friction,
        state=(0.0,) * len(SPECTRUM),
        step=step_spectrum_bristles,
        stored=fill_spectrum_energy,
    ),
    "lugre": FrictionModel(
        (
            VISCOUS,
            LinearTerm("kb", "Nm/rad", positive=True),
            LinearTerm("db", "Nm s/rad", positive=True),
            OFFSET,
        ),
        (BEND, ShapeTerm("rise", "", 0.4, 0.0, 10.0), ShapeTerm("vs", "rad/s", 0.3, 1e-3, 10.0)),
        fill_lugre_friction,
        state=(0.0,),
        step=step_lugre_bristles,
        stored=fill_lugre_energy,
    ),
}
"""Models with an internal state by name."""
