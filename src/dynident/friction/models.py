"""Friction models by name. A new model is one definition and a line in `FRICTIONS`."""

from __future__ import annotations

from dynident.friction.model import FrictionModel, Linear

VISCOUS = Linear("fv", "Nm s/rad", positive=True, weights=(0.0, 1.0, 0.0))
COULOMB = Linear("fc", "Nm", positive=True, weights=(0.0, 0.0, 1.0))
OFFSET = Linear("off", "Nm", positive=False, coupled=False, weights=(1.0, 0.0, 0.0))
FORWARD = Linear("fcp", "Nm", positive=True, weights=(0.5, 0.0, 0.5))
BACKWARD = Linear("fcn", "Nm", positive=True, weights=(-0.5, 0.0, 0.5))

FRICTIONS: dict[str, FrictionModel] = {
    "none": FrictionModel(()),
    "viscous": FrictionModel((VISCOUS,)),
    "viscous-offset": FrictionModel((VISCOUS, OFFSET)),
    "coulomb-viscous": FrictionModel((VISCOUS, COULOMB, OFFSET)),
    "coulomb-viscous-symmetric": FrictionModel((VISCOUS, COULOMB)),
    "coulomb-viscous-asymmetric": FrictionModel((VISCOUS, FORWARD, BACKWARD)),
}
"""``tau_f = fv v + fc sign(v) + off`` and its variants."""
