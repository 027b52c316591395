"""What simulators have a place for at a joint, and what of an identified model has none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.whole import Model

PLACES = {"fv": "damping", "fc": "friction", "off": "offset"}
"""Symbols of friction and what simulators call them; rotor inertia is their armature."""


@dataclass(frozen=True, eq=False)
class JointTerms:
    """The drives of a model as far as joint by joint simulators know such things.

    Attributes
    ----------
    armature : ndarray, shape (n,)
        Diagonal of the rotor inertias as the joints see them [kg m^2 or kg].
    damping, friction : ndarray, shape (n,)
        Viscous [Nm s/rad or N s/m] and Coulomb [Nm or N].
    offset : ndarray, shape (n,)
        Torque that the drive needs at rest without weight [Nm or N].
    left : tuple of str
        Names of parameters, other than zero, that are none of these.
    coupled : tuple of str
        Rotor inertias of which the armature has the diagonal alone.
    """

    armature: Array
    damping: Array
    friction: Array
    offset: Array
    left: tuple[str, ...]
    coupled: tuple[str, ...]


def joint_terms(model: Model) -> JointTerms:
    """Sort the drives of a model into what simulators have at a joint, and the rest."""
    idim = model.idim
    n, first = idim.robot.n, idim.tree.dof - idim.robot.n
    found = {place: np.zeros(n) for place in PLACES.values()}
    left, coupled = [], []
    values = model.theta[idim.inertial :]
    for value, column in zip(values, idim.linear_columns, strict=True):
        parameter, gear = column.parameter, idim.gears[column.gear]
        own = gear.drives and not gear.coupled
        if value == 0.0:
            continue
        if column.friction is None:
            if np.count_nonzero(gear.turns) > 1:
                coupled.append(parameter.name)
        elif own and parameter.symbol in PLACES:
            found[PLACES[parameter.symbol]][parameter.number - 1] += value
        else:
            left.append(parameter.name)
    armature = np.diag(model.rotors)[first:].copy()
    return JointTerms(armature, **found, left=tuple(left), coupled=tuple(coupled))


def term_notes(terms: JointTerms, engine: str) -> tuple[str, ...]:
    """What of the drives an engine cannot have, in words."""
    notes = []
    if terms.left:
        notes.append(f"not in {engine}, which has no place for it: {', '.join(terms.left)}")
    if terms.coupled:
        notes.append(
            f"{', '.join(terms.coupled)}: the armature of {engine} is a diagonal, what turns "
            "several joints acts on each alone"
        )
    return tuple(notes)
