"""Friction models for tests: all of the library that have laws, and one that it does not have."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.friction.kernel import BY_POSITION, BY_STATE, VALUE
from dynident.friction.model import FrictionModel, LinearTerm, ShapeTerm
from dynident.friction.models import FRICTIONS

STRIBECK, DAHL, LUGRE = FRICTIONS["stribeck"], FRICTIONS["dahl"], FRICTIONS["lugre"]


def pull(at, shape, z, out):
    """``q - q0``: a spring."""
    out[0, VALUE] = at.position - shape[0]
    out[0, BY_POSITION] = 1.0
    out[0, BY_STATE] = -1.0


def tension(at, shape, z, out):
    """``(q - q0)^2 / 2``."""
    out[0, VALUE] = 0.5 * (at.position - shape[0]) ** 2


SPRING = FrictionModel(
    (LinearTerm("k", "Nm/rad", positive=True),),
    (ShapeTerm("rest", "rad", 0.0, -np.pi, np.pi),),
    pull,
    stored=tension,
)


MODELS = {
    "spring": SPRING,
    **{name: model for name, model in FRICTIONS.items() if model.law is not None},
}
VALUES = {
    "fv": 2.0,
    "fc": 3.0,
    "fs": 1.5,
    "off": 0.5,
    "k": 8.0,
    "fl": 0.05,
    "fw": 4.0,
    "fr": 1.2,
    "f3": 0.3,
    "f5": 0.02,
    "fl2": 0.002,
    "flg": 0.08,
    "fld": 0.06,
    "fle": 0.04,
    "fls": 0.03,
    "fcs": 0.4,
    "fcc": -0.3,
    "f1": 3.0,
    "f2": 1.5,
    "f4": 1.0,
}
VALUES |= {"fha": 1.2, "fhb": 0.6, "fhc": 0.0, "fhd": 0.4, "fhe": 0.5, "fhf": 0.3}
VALUES |= {"fvt": 0.03, "kb": 150.0, "db": 2.0, "Ia": 0.3, "fcp": 2.5, "fcn": 1.5}
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
