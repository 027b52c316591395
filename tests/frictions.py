"""Friction models that the library does not have: each of them is all that it takes.

They come into `FRICTIONS` for the time of a test (`registered`), or act as elements.
"""

from __future__ import annotations

import numpy as np
import pytest

from dynident.core.jit import inner
from dynident.friction.kernel import BY_LOAD, BY_POSITION, BY_SPEED, BY_STATE, VALUE
from dynident.friction.model import FrictionModel, Linear, Shape
from dynident.friction.models import COULOMB, FRICTIONS, OFFSET, VISCOUS

# ---- without memory


def stribeck(at, shape, z, out):
    """``exp(-(v / vs)^2) s(v)``: friction at standstill above fc."""
    v, vs = at.speed, shape[0]
    fall = np.exp(-((v / vs) ** 2))
    out[0, VALUE] = fall * at.sign
    out[0, BY_SPEED] = fall * (at.slope - 2.0 * v / vs**2 * at.sign)
    out[0, BY_STATE] = 2.0 * v**2 / vs**3 * fall * at.sign


STRIBECK = FrictionModel(
    (VISCOUS, COULOMB, Linear("fs", "Nm", positive=True), OFFSET),
    (Shape("vs", "rad/s", 0.2, 1e-3, 10.0),),
    stribeck,
)


def pull(at, shape, z, out):
    """``q - q0``: a spring."""
    out[0, VALUE] = at.position - shape[0]
    out[0, BY_POSITION] = 1.0
    out[0, BY_STATE] = -1.0


def tension(at, shape, z, out):
    """``(q - q0)^2 / 2``."""
    out[0, VALUE] = 0.5 * (at.position - shape[0]) ** 2


SPRING = FrictionModel(
    (Linear("k", "Nm/rad", positive=True),),
    (Shape("rest", "rad", 0.0, -np.pi, np.pi),),
    pull,
    stored=tension,
)


def loaded(at, shape, z, out):
    """``|load| s(v)``."""
    out[0, VALUE] = abs(at.load) * at.sign
    out[0, BY_SPEED] = abs(at.load) * at.slope
    out[0, BY_LOAD] = np.sign(at.load) * at.sign


LOADED = FrictionModel(
    (VISCOUS, COULOMB, Linear("fl", "", positive=True)), (), loaded, needs=("load",)
)


def warm(at, shape, z, out):
    """``exp(-T / T0) v``."""
    out[0, VALUE] = np.exp(-at.temperature / shape[0]) * at.speed
    out[0, BY_SPEED] = np.exp(-at.temperature / shape[0])
    out[0, BY_STATE] = out[0, VALUE] * at.temperature / shape[0] ** 2


WARM = FrictionModel(
    (COULOMB, Linear("fw", "Nm s/rad", positive=True)),
    (Shape("T0", "K", 30.0, 1.0, 1e3),),
    warm,
    needs=("temperature",),
)


# ---- with memory


@inner
def fading(x):
    """``(1 - exp(-x)) / x`` and its derivative."""
    if abs(x) < 1e-2:
        value = 1.0 - x / 2.0 * (1.0 - x / 3.0 * (1.0 - x / 4.0 * (1.0 - x / 5.0)))
        return value, -0.5 + x / 3.0 - x**2 / 8.0 + x**3 / 30.0 - x**4 / 144.0
    value = -np.expm1(-x) / x
    return value, (np.exp(-x) - value) / x


def dahl(at, shape, z, out):
    """The bristles' deflection w, 1 where they slip."""
    out[0, VALUE] = z[0]
    out[0, BY_STATE] = 1.0


def dahl_step(at, shape, z, out):
    """``delta dw/dt = v - |v| w``, exact at constant v."""
    v, h, delta = at.speed, at.period, shape[0]
    x, x_v = h * v * at.sign / delta, h * (at.sign + v * at.slope) / delta
    fade, slope = fading(x)
    kept = np.exp(-x)
    by_x = -z[0] * kept + v * h / delta * slope
    out[0, VALUE] = z[0] * kept + v * h / delta * fade
    out[0, BY_SPEED] = by_x * x_v + h / delta * fade
    out[0, BY_STATE] = kept
    out[0, BY_STATE + 1] = -by_x * x / delta - v * h / delta**2 * fade


def dahl_energy(at, shape, z, out):
    """``delta w^2 / 2``."""
    out[0, VALUE] = 0.5 * shape[0] * z[0] ** 2


DAHL = FrictionModel(
    (VISCOUS, Linear("fc", "Nm", positive=True), OFFSET),
    (Shape("delta", "rad", 0.02, 1e-6, 1.0),),
    dahl,
    state=(0.0,),
    step=dahl_step,
    stored=dahl_energy,
)


@inner
def slip(v, sign, slope, shape):
    """``a = |v| / (delta g)``, ``g = 1 + rise exp(-(v / vs)^2)``, and its derivatives."""
    delta, rise, vs = shape[0], shape[1], shape[2]
    fall = np.exp(-((v / vs) ** 2))
    g = 1.0 + rise * fall
    a = v * sign / (delta * g)
    by_v = (sign + v * slope) / (delta * g) + a / g * rise * fall * 2.0 * v / vs**2
    by_vs = -a / g * rise * fall * 2.0 * v**2 / vs**3
    return a, by_v, -a / delta, -a / g * fall, by_vs


def lugre(at, shape, z, out):
    """Bristles' deflection z and its rate ``v - a z``."""
    a, by_v, by_delta, by_rise, by_vs = slip(at.speed, at.sign, at.slope, shape)
    out[0, VALUE] = z[0]
    out[0, BY_STATE] = 1.0
    out[1, VALUE] = at.speed - a * z[0]
    out[1, BY_SPEED] = 1.0 - by_v * z[0]
    out[1, BY_STATE] = -a
    out[1, BY_STATE + 1] = -by_delta * z[0]
    out[1, BY_STATE + 2] = -by_rise * z[0]
    out[1, BY_STATE + 3] = -by_vs * z[0]


def lugre_step(at, shape, z, out):
    """``dz/dt = v - a z``, exact at constant v."""
    v, h = at.speed, at.period
    a, by_v, by_delta, by_rise, by_vs = slip(v, at.sign, at.slope, shape)
    fade, slope = fading(a * h)
    kept = np.exp(-a * h)
    by_a = h * (-z[0] * kept + v * h * slope)
    out[0, VALUE] = z[0] * kept + v * h * fade
    out[0, BY_SPEED] = by_a * by_v + h * fade
    out[0, BY_STATE] = kept
    out[0, BY_STATE + 1] = by_a * by_delta
    out[0, BY_STATE + 2] = by_a * by_rise
    out[0, BY_STATE + 3] = by_a * by_vs


def lugre_energy(at, shape, z, out):
    """``z^2 / 2`` of the bristles' stiffness."""
    out[0, VALUE] = 0.5 * z[0] ** 2


LUGRE = FrictionModel(
    (
        VISCOUS,
        Linear("kb", "Nm/rad", positive=True),
        Linear("db", "Nm s/rad", positive=True),
        OFFSET,
    ),
    (
        Shape("delta", "rad", 0.02, 1e-6, 1.0),
        Shape("rise", "", 0.4, 0.0, 10.0),
        Shape("vs", "rad/s", 0.3, 1e-3, 10.0),
    ),
    lugre,
    state=(0.0,),
    step=lugre_step,
    stored=lugre_energy,
)

MODELS = {
    "stribeck": STRIBECK,
    "spring": SPRING,
    "loaded": LOADED,
    "warm": WARM,
    "dahl": DAHL,
    "lugre": LUGRE,
}
VALUES = {"fv": 2.0, "fc": 3.0, "fs": 1.5, "off": 0.5, "k": 8.0, "fl": 0.05, "fw": 4.0}
VALUES |= {"kb": 150.0, "db": 2.0, "Ia": 0.3, "fcp": 2.5, "fcn": 1.5}
"""Of joint 1; the others' are like them."""


@pytest.fixture
def registered(monkeypatch):
    """The models by their names."""
    for name, model in MODELS.items():
        monkeypatch.setitem(FRICTIONS, name, model)


def values(idim):
    """Standard parameters of a robot whose drives all differ."""
    drive = [
        VALUES[p.symbol.removesuffix("m")] * (1.0 + 0.1 * p.number - 0.3 * p.symbol.endswith("m"))
        for p in idim.drives
    ]
    return idim.join(idim.robot.nominal, np.array(drive))
