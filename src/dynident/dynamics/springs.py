"""Springs in the joints: what acts between a motor, referred to the joint by its gear, and a link.

Spong 1987: of a joint whose motor is at theta and whose link is at q, ``delta = theta - q``,

    tau_m = Ia ddtheta + friction(dtheta) + tau_s,    tau_s = K delta + D ddelta + offs,
    tau_s = (what bodies, and elements on the link, take along q).

The sum of both is the joint's own row, in which no spring stands, and whose error is that of the
torque alone; the second, less the spring, is the row of the link's encoder. Their errors are
independent, those of the two rows above are not. Where a sensor feels tau_s and no encoder sees
the link, it is where its load has it, ``q = theta - tau_s / (K + D s)``, in all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.parameters import DriveColumn

EXPECTED = 3
"""Where, behind a deflection and its derivatives, that stands which a model expects of it."""
LINK, TORQUE = "link encoder", "link torque"
"""Kinds of sensors on the link's side of a gear."""


@dataclass(frozen=True)
class Term:
    """What a spring's torque has, linear in one parameter.

    `column` is what it is in the row of the link, from the deflection, its first two derivatives
    and what is expected of it, shape (4, samples), and the link's position and speed.
    """

    unit: str
    column: Callable[[Array, Array, Array], Array]
    positive: bool = False


TERMS: dict[str, Term] = {
    "K": Term("Nm/rad", lambda delta, q, dq: -delta[EXPECTED], positive=True),
    "D": Term("Nm s/rad", lambda delta, q, dq: -delta[1], positive=True),
    "offs": Term("Nm", lambda delta, q, dq: np.full(len(q), -1.0)),
    "Kc": Term("Nm/rad^3", lambda delta, q, dq: -(delta[0] ** 3)),
    "KT": Term("Nm s/rad", lambda delta, q, dq: dq),
    "KS": Term("Nm/rad", lambda delta, q, dq: q),
    "offt": Term("Nm", lambda delta, q, dq: np.ones(len(q))),
}
"""By symbol: stiffness; damping; what the two encoders differ by at no load, times K; cubic
stiffness; time by which the link's encoder lags, and share by which it counts too little, times K;
offset of a torque sensor."""


@dataclass(frozen=True)
class SpringColumn(DriveColumn):
    """A parameter of a spring or of the sensor beside it.

    ``joint`` is its index, ``row`` that of all in which it acts; one that says where the link is
    acts in all, and has a place ``sway`` in those of the conditions.
    """

    joint: int = 0
    row: int = 0
    sway: int | None = None

    def evaluate(self, conditions: Conditions, q: Array, dq: Array, row: int) -> Array:
        """Its column in a row along a motion of the joints, shape (samples,)."""
        j, deflection, sway = self.joint, conditions.deflection, conditions.sway
        if self.sway is not None:
            return np.zeros(len(dq)) if sway is None else sway[:, row, self.sway]
        delta = np.zeros((4, len(dq))) if deflection is None else deflection[:, :, j]
        return TERMS[self.parameter.symbol].column(delta, q[:, j], dq[:, j])
