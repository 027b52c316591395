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
from dynident.robot.model import HYSTERESIS

EXPECTED, RISING = 3, 4
"""Where, behind a deflection and its derivatives, that stands which a model expects of it, and of
its speed."""
BRISTLES = 5
"""Where, behind these, the bristles' deflections begin, of springs with hysteresis."""
LINK, TORQUE = "link encoder", "link torque"
"""Kinds of sensors on the link's side of a gear."""


@dataclass(frozen=True)
class SpringTerm:
    """What a spring's torque has, linear in one parameter.

    `column` is what it is in the row of the link, from the deflection as `Conditions` have it,
    shape (5 + bristles, samples), and the link's position and speed; `expected` says that it is
    what a model expects, which has no noise; `sparse` as of `LinearTerm`.
    """

    unit: str
    column: Callable[[Array, Array, Array], Array]
    positive: bool = False
    expected: bool = False
    sparse: bool = False


def make_bristle_term(k: int) -> SpringTerm:
    """What one of the bristles of a spring's hysteresis takes where it slips."""
    return SpringTerm(
        "Nm", lambda delta, q, dq: -delta[BRISTLES + k], positive=True, expected=True, sparse=True
    )


TERMS: dict[str, SpringTerm] = {
    "K": SpringTerm("Nm/rad", lambda delta, q, dq: -delta[EXPECTED], positive=True, expected=True),
    "D": SpringTerm("Nm s/rad", lambda delta, q, dq: -delta[RISING], positive=True, expected=True),
    "offs": SpringTerm("Nm", lambda delta, q, dq: np.full(len(q), -1.0)),
    "Kc": SpringTerm("Nm/rad^3", lambda delta, q, dq: -(delta[0] ** 3)),
    "KT": SpringTerm("Nm s/rad", lambda delta, q, dq: dq),
    "KS": SpringTerm("Nm/rad", lambda delta, q, dq: q),
    "offt": SpringTerm("Nm", lambda delta, q, dq: np.ones(len(q))),
    **{symbol: make_bristle_term(k) for k, symbol in enumerate(HYSTERESIS)},
}
"""By symbol: stiffness; damping; what the two encoders differ by at no load, times K; cubic
stiffness; time by which the link's encoder lags, and share by which it counts too little, times K;
offset of a torque sensor; torques of the bristles of hysteresis where they slip."""


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
        still = np.zeros((BRISTLES + len(HYSTERESIS), len(dq)))
        delta = still if deflection is None else deflection[:, :, j]
        return TERMS[self.parameter.symbol].column(delta, q[:, j], dq[:, j])
