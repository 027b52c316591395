"""A load as the end effector of a Franka robot, in the file that its Desk takes.

``endeffector-config.json`` of an end effector's archive (RIDE CLI's documentation, "End effector
commissioning"): mass [kg], centre of mass in the flange's frame [m], inertia about it [kg m^2] and
the placement of the end effector's frame in the flange's, matrices column by column.
"""

from __future__ import annotations

import json
import re

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError

COLOR = "#808080"


def render_end_effector(name: str, mass: float, com: Array, inertia: Array) -> bytes:
    """The configuration of an end effector whose frame is the flange's.

    Parameters
    ----------
    name : str
        That Desk shows; its identifier is made of it.
    mass : float
        [kg]
    com : ndarray, shape (3,)
        In the flange's frame [m].
    inertia : ndarray, shape (3, 3)
        About the centre of mass, in the flange's axes [kg m^2].

    Raises
    ------
    InputError
        For a name of which no identifier can be made.
    """
    identifier = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
    identifier = re.sub(r"^(ee-)+", "", identifier)
    if not identifier:
        raise InputError(f"{name!r} has no letter that an identifier could be made of")
    document = {
        "id": identifier,
        "name": name,
        "color": COLOR,
        "mass": float(mass),
        "centerOfMass": np.asarray(com).tolist(),
        "transformation": np.eye(4).T.ravel().tolist(),
        "inertia": np.asarray(inertia).T.ravel().tolist(),
    }
    return (json.dumps(document, indent=2) + "\n").encode()
