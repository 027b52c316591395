"""Springs in the joints: what acts between a motor, referred to the joint by its gear, and a link.

Spong 1987: of a joint whose motor is at theta and whose link is at q, ``delta = theta - q``,

    tau_m = Ia ddtheta + friction(dtheta) + tau_s,    tau_s = K delta + D ddelta + offs,
    tau_s = (what bodies, and elements on the link, take along q).

The sum of both is the joint's own row, in which no spring stands, and whose error is that of the
torque alone; the second, less the spring, is the row of the link's encoder. Their errors are
independent, those of the two rows above are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
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
    """A parameter of a spring or of the sensor beside it: it acts in one row alone.

    ``joint`` is its index, ``row`` that of all.
    """

    joint: int = 0
    row: int = 0

    def evaluate(self, deflection: Array | None, q: Array, dq: Array) -> Array:
        """Its column along a motion, shape (samples,).

        Of deflections, shape (4, samples, n), and of the joints, shape (samples, n).
        """
        j = self.joint
        delta = np.zeros((4, len(dq))) if deflection is None else deflection[:, :, j]
        return TERMS[self.parameter.symbol].column(delta, q[:, j], dq[:, j])


@dataclass(frozen=True)
class HeldLink:
    """Errors of a link's positions on a held-out log, root mean squares [rad or m].

    Attributes
    ----------
    spring, stiff, plain : float
        Of the spring; of a stiff joint with the offset, lag and scale of the encoder; of a stiff
        joint as it stands, whose link is where the motor is.
    better : bool
        Whether the spring's squared errors are less than the stiff joint's by a standard error.
    """

    log: str
    spring: float
    stiff: float
    plain: float
    better: bool


@dataclass(frozen=True)
class SpringEvidence:
    """What logs tell of a spring.

    Attributes
    ----------
    stiffness : float
        That was identified [Nm/rad or N/m].
    compliance, std : float
        By regression of the deflection on the load [rad/Nm or m/N].
    interval : (float, float)
        Of the compliance, 95 %.
    held_out : tuple of HeldLink
    """

    joint: str
    stiffness: float
    compliance: float
    std: float
    interval: tuple[float, float]
    held_out: tuple[HeldLink, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether the logs tell the spring from a stiff joint."""
        return self.interval[0] > 0.0 and all(log.better for log in self.held_out)
