"""What simulators have a place for at a joint, and what of an identified model has none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.whole import Model

PLACES = {"Ia": "armature", "fv": "damping", "fc": "friction", "off": "offset"}
"""Symbols of a drive's parameters and what simulators call them."""


@dataclass(frozen=True, eq=False)
class JointTerms:
    """The joints' own drives as far as simulators know such things, and what they do not know.

    Attributes
    ----------
    armature : ndarray, shape (n,)
        Rotor inertias that turn with their joint alone [kg m^2 or kg].
    damping, friction : ndarray, shape (n,)
        Viscous [Nm s/rad or N s/m] and Coulomb [Nm or N].
    offset : ndarray, shape (n,)
        Torque that the drive needs at rest without weight [Nm or N].
    motors : tuple of str
        Names of the same, other than zero, of motors that turn with several joints.
    left : tuple of str
        Names of all other parameters, other than zero.
    """

    armature: Array
    damping: Array
    friction: Array
    offset: Array
    motors: tuple[str, ...]
    left: tuple[str, ...]


def joint_terms(model: Model) -> JointTerms:
    """Sort the drives of a model into what simulators have at a joint, and the rest."""
    idim = model.idim
    found = {place: np.zeros(idim.robot.n) for place in PLACES.values()}
    motors, left = [], []
    values = model.theta[idim.inertial :]
    for value, column in zip(values, idim.linear_columns, strict=True):
        parameter, gear = column.parameter, idim.gears[column.gear]
        if value == 0.0:
            continue
        if gear.coupled and parameter.symbol.removesuffix("m") in PLACES:
            motors.append(parameter.name)
        elif gear.drives and not gear.coupled and parameter.symbol in PLACES:
            found[PLACES[parameter.symbol]][parameter.number - 1] += value
        else:
            left.append(parameter.name)
    return JointTerms(**found, motors=tuple(motors), left=tuple(left))
