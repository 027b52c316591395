"""All friction of a model as a force of its own, for simulators of others to add."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynident.core.arrays import Array
from dynident.core.bundle import Bundle
from dynident.core.errors import InputError
from dynident.core.jit import jit
from dynident.dynamics.idim import Idim
from dynident.friction.kernel import BY_STATE
from dynident.plant.plant import build_plant
from dynident.plant.state import (
    add_element_slopes,
    add_element_torques,
    add_friction_slope,
    add_friction_torques,
    fill_drive_speeds,
)

Resistance = Callable[[Array, Array], tuple[Array, Array]]
"""Torque and its slope by each joint's own speed, of positions and speeds."""


@jit
def evaluate_resistance(plant, q, dq, table):  # type: ignore[no-untyped-def]
    """Torque of all friction and elements, and the diagonal of its slope by the speeds."""
    gears, width, each = plant.gears, plant.width, plant.elements
    drives, n = gears.shape
    speed, sign, tau = np.zeros(drives), np.zeros(drives), np.zeros(n)
    K, D = np.zeros((n, n)), np.zeros((n, n))
    fill_drive_speeds(gears, width, plant.rough, dq, speed, sign)
    add_friction_torques(gears, plant.friction, speed, sign, tau)
    add_friction_slope(gears, plant.friction, width, sign, D)
    add_element_torques(gears, width, each, np.zeros(drives), speed, sign, q, each.rest, table, tau)
    add_element_slopes(gears, each, table, K, D)
    return tau, np.diag(D).copy()


def make_resistance(idim: Idim, theta: Array, width: Array) -> Resistance:
    """Friction, offsets and elements of a model on a fixed base, as a function of the motion.

    Parameters
    ----------
    theta : ndarray, shape (standard parameters,)
    width : ndarray, shape (n,)
        Of the smoothed sign [rad/s or m/s].
    """
    if idim.has_states:
        raise InputError("friction with states is not a function of one instant")
    plant = build_plant(idim, theta, width)
    elements = plant.elements
    most = elements.values.shape[1]
    shape = (len(elements.gear), most, BY_STATE + elements.rest.shape[1] + elements.shape.shape[1])
    table = np.zeros(shape)

    acting = Bundle(plant)

    def at(q: Array, dq: Array) -> tuple[Array, Array]:
        tau, slope = evaluate_resistance(acting, q, dq, table)
        return tau, slope

    return at
