"""What simulators have a place for at a joint, and what of an identified model has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.idim import build_idim
from dynident.dynamics.whole import WholeModel

PLACES = {"Ia": "armature", "fv": "damping", "fc": "friction", "off": "offset"}
"""Symbols of a drive's parameters and what simulators call them."""


@dataclass(frozen=True, eq=False)
class JointTerms:
    """The joints' own drives as far as simulators know such things, and what they do not know."""

    armature: Array
    """Rotor inertias that turn with their joint alone [kg m^2 or kg], shape (n,)."""
    damping: Array
    friction: Array
    """`damping`, `friction`: viscous [Nm s/rad or N s/m] and Coulomb [Nm or N], shape (n,)."""
    offset: Array
    """Torque that the drive needs at rest without weight [Nm or N], shape (n,)."""
    motors: tuple[str, ...]
    """Names of the same, other than zero, of motors that turn with several joints."""
    left: tuple[str, ...]
    """Names of all other parameters, other than zero."""


def replace_friction(model: WholeModel, values: Mapping[str, Array]) -> WholeModel:
    """The same bodies and rotors under friction of other values, the motors' own as it is."""
    idim = model.idim
    plain = build_idim(idim.robot, "coulomb-viscous", idim.rotor)
    known = dict(zip(idim.names, model.theta, strict=True))
    drives = [
        float(values[p.symbol][p.number - 1]) if p.symbol in values else known.get(p.name, 0.0)
        for p in plain.drives
    ]
    return WholeModel(plain, plain.join(model.phi, np.array(drives)))


def sort_joint_terms(model: WholeModel) -> JointTerms:
    """Sort the drives of a model into what simulators have at a joint, and the rest."""
    idim = model.idim
    found = {place: np.zeros(idim.robot.n) for place in PLACES.values()}
    motors, left = [], []
    values = model.theta[idim.inertial :]
    for value, column in zip(values, idim.structure.linear_columns, strict=True):
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
