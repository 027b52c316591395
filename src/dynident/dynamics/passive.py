"""Whether drives only take energy, by the laws of their friction."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.idim import Idim
from dynident.friction.energy import check_passive


def warn_of_nonpassive_drives(idim: Idim, theta: Array) -> list[str]:
    """Drives whose friction, by a law, gives energy away: a simulation of it would, too."""
    notes = []
    rubbing = len(idim.frictions) - len(idim.elements)  # springs give back what they store
    for friction, linear in zip(idim.frictions[:rubbing], idim.linear(theta), strict=False):
        if friction.model.law is None:
            continue
        gear = idim.gears[friction.gear]
        try:
            check_passive(friction.model, linear, np.array(idim.shape[friction.shape]))
        except InputError as error:
            drive = "motor of " * gear.coupled + idim.robot.joint_names[gear.number - 1]
            notes.append(f"{drive}: {error}")
    return notes
