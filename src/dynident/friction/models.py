"""Friction models that are linear in their parameters.

A model is a tuple of terms; a term gives one regressor column per joint from that
joint's velocity. A new model is one line in `FRICTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array


@dataclass(frozen=True)
class Term:
    """One friction parameter per joint.

    Attributes
    ----------
    symbol : str
        Name of the parameter without the joint's number (``fv``).
    column : callable
        Velocities ``(samples, k)`` [rad/s or m/s] to regressor columns of that shape.
    positive : bool
        Whether physical consistency asks for a positive value.
    smooth : tuple of 3 floats, optional
        ``(a, b, c)``: the same term as ``a + b v + c s(v)`` where a simulation replaces
        the sign by a smooth s; a term without cannot be simulated.
    """

    symbol: str
    column: Callable[[Array], Array]
    positive: bool
    smooth: tuple[float, float, float] | None = None

    def values(self, v: Array, width: float | None = None) -> Array:
        """The column at speeds v; with the simulation's smooth sign where a width is given."""
        if width is None or self.smooth is None:
            return self.column(v)
        a, b, c = self.smooth
        return a + b * v + c * np.tanh(v / width) if c else self.column(v)


VISCOUS = Term("fv", lambda dq: dq, positive=True, smooth=(0.0, 1.0, 0.0))
COULOMB = Term("fc", np.sign, positive=True, smooth=(0.0, 0.0, 1.0))
OFFSET = Term("off", np.ones_like, positive=False, smooth=(1.0, 0.0, 0.0))
FORWARD = Term("fcp", lambda dq: (dq > 0.0).astype(float), positive=True, smooth=(0.5, 0.0, 0.5))
BACKWARD = Term("fcn", lambda dq: -(dq < 0.0).astype(float), positive=True, smooth=(-0.5, 0.0, 0.5))

FRICTIONS: dict[str, tuple[Term, ...]] = {
    "none": (),
    "viscous": (VISCOUS,),
    "viscous-offset": (VISCOUS, OFFSET),
    "coulomb-viscous": (VISCOUS, COULOMB, OFFSET),
    "coulomb-viscous-symmetric": (VISCOUS, COULOMB),
    "coulomb-viscous-asymmetric": (VISCOUS, FORWARD, BACKWARD),
}
"""Friction models by name: ``tau_f = fv dq + fc sign(dq) + off`` and its variants."""
