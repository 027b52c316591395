"""How soft MuJoCo's friction loss has to be to act as friction with a smoothed sign."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array

SOFT = 1e-3
"""Impedance of a friction loss, at which MuJoCo's is a function of the speed alone."""
HARDEST = 0.9999
"""Impedance that MuJoCo has at most."""
SLOPE = 1.0 / (2.0 * np.log(2.0))
"""Slope of a straight rise to one by which it stays below the sign as much as ``tanh`` does."""
TIMESTEP = 0.002
"""MuJoCo's, where a file says nothing [s]."""
SERVO_TIMESTEP = 2.5e-4
"""Of files with servos: at longer ones friction that holds a joint creeps [s]."""


def choose_impedance(rise: Array, timestep: float) -> tuple[Array, Array]:
    """Impedance and damping of constraints that give ``-rise`` times a speed, over their inertia.

    Shapes (k,). Of those that do so the softest is taken that the time step can have, ``h b <= 1``:
    beyond that a joint at rest shakes, and moves as if nothing held it. A rise that even the
    hardest impedance does not reach is as steep as the step lets it be.

    Parameters
    ----------
    rise : ndarray, shape (k,)
        [1/s]
    timestep : float
        [s]
    """
    impedance = np.clip(1.0 - 1.0 / np.maximum(timestep * rise, 1e-300), SOFT, HARDEST)
    return impedance, np.minimum(rise * (1.0 - impedance), 1.0 / timestep)


def derive_softness(
    friction: Array, width: Array, inverse: Array, timestep: float
) -> tuple[Array, Array]:
    """Parameters that give a friction loss the rise of ``fc tanh(v / width)``.

    MuJoCo's friction loss is a constraint that is at rest below its limit: at a steady torque f it
    creeps with ``f R / b``, ``R = (1 - d) / d`` times its inverse inertia being the regularisation
    and b the damping (MuJoCo's documentation, "Computation"). The impedance d also slows what is
    faster, so that the softest is taken.

    Parameters
    ----------
    friction, width : ndarray, shape (k,)
        Friction loss [Nm or N] and smoothing width of its sign [rad/s or m/s].
    inverse : ndarray, shape (k,)
        Diagonal of the inverse mass matrix at MuJoCo's reference configuration.
    timestep : float
        [s]

    Returns
    -------
    impedance, damping : ndarray, shape (k,)
        ``solimpfriction = "d d 0.001 0.5 2"`` and ``solreffriction = "0 -damping"``. A damping of
        zero is of no friction.
    """
    return choose_impedance(SLOPE * friction / width * inverse, timestep)
