"""Does a friction model give energy away?

Over any stretch of any motion, the energy supplied to a drive minus the change of what its
friction stores has to be dissipated: it is never negative.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.friction.model import DriveSignals, FrictionModel, StateTrace

RATES = tuple(10.0**k for k in range(1, 8))
"""From steps within which a bristle slips to those within which it hardly bends [Hz]."""
STEPS = 2000
FASTEST = 10.0
"""Of the random motions [rad/s or m/s]."""
ROUNDING = 1e-13
"""Of energies, as a share of what is stored and supplied."""


@dataclass(frozen=True)
class EnergyBalance:
    """Energies of one drive, step by step of a motion of constant speeds."""

    speed: Array
    """Shape (samples,). [rad/s or m/s]"""
    supplied: Array
    stored: Array
    """`supplied`, `stored`: work done against the friction, and the change of what it stores [J],
    shape (samples,)."""
    rounding: Array
    """Up to which the two are exact [J], shape (samples,)."""

    @property
    def dissipated(self) -> Array:
        """What is left of the work, shape (samples,) [J]."""
        return np.asarray(self.supplied - self.stored)


def balance_energies(
    model: FrictionModel, linear: Array, signals: DriveSignals, rate: float, shape: Array
) -> EnergyBalance:
    """Energies along a motion whose speed is constant over each period.

    Of a model with such linear parameters and shape; the position is that at the beginning of each
    period, where the speed changes, the rate in Hz.
    """
    h, v, m = 1.0 / rate, signals.dq, len(model.state)

    def halved(values: Array | None) -> Array | None:
        return None if values is None else np.repeat(values, 2)

    first = StateTrace(np.array(model.state)[None], np.zeros((1, m, len(model.shape))))
    halves = replace(
        signals,
        q=np.column_stack([signals.q, signals.q + 0.5 * h * v]).ravel(),
        dq=np.repeat(v, 2),
        load=halved(signals.load),
        temperature=halved(signals.temperature),
        time=halved(signals.time),
        known=halved(signals.known),
    )
    z = model.follow(halves, 2.0 * rate, shape, first).z
    begin = np.vstack([first.z, z[1:-1:2]])

    def state(part: float, z: Array) -> DriveSignals:
        return replace(
            signals, q=signals.q + part * h * v, trace=StateTrace(z, np.zeros((len(v), m, 0)))
        )

    states = (state(0.0, begin), state(0.5, z[::2]), state(1.0, z[1::2]))
    a, b, c = (model.columns(each, shape) @ linear for each in states)
    before, after = (model.energy(states[k], shape) @ linear for k in (0, 2))
    supplied = v * h * (a + 4.0 * b + c) / 6.0  # Simpson's rule
    level = np.abs(before) + np.abs(after) + np.abs(supplied)
    return EnergyBalance(v, supplied, after - before, ROUNDING * level)


def check_passive(
    model: FrictionModel,
    linear: Array,
    shape: Array,
    width: float | None = None,
) -> None:
    """Refuse a friction model that gives energy away, along random motions.

    Speeds of all sizes and both directions are held for random times, so that states are
    met on their way as well as settled.

    Parameters
    ----------
    linear, shape : ndarray, shapes (parameters,), (shapes,)
    width : float, optional
        With the smooth sign of a simulation [rad/s or m/s].
    """
    rng = np.random.default_rng(0)
    for rate in RATES:
        times = rng.geometric(0.05, STEPS)
        speed = rng.choice([-1.0, 1.0], STEPS) * FASTEST * 10.0 ** rng.uniform(-4.0, 0.0, STEPS)
        v = np.repeat(speed, times)[:STEPS]
        q = rng.normal() + np.concatenate([[0.0], np.cumsum(v[:-1])]) / rate
        signals = DriveSignals(q, v, width)
        if "load" in model.needs:
            signals = replace(
                signals, load=np.repeat(rng.normal(scale=30.0, size=STEPS), times)[:STEPS]
            )
        if "temperature" in model.needs:
            signals = replace(signals, temperature=np.linspace(0.0, 80.0, STEPS))
        if "time" in model.needs:
            signals = replace(signals, time=np.linspace(0.0, 60.0, STEPS))
        found = balance_energies(model, linear, signals, rate, shape)
        excess = found.dissipated + found.rounding
        worst = int(np.argmin(excess))
        if excess[worst] < 0.0:
            raise InputError(
                f"the friction gives energy away: {-found.dissipated[worst] * rate:.3g} W at a "
                f"speed of {found.speed[worst]:.3g}; no passive drive does"
            )
