"""Which options each method has, and what it is called with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from dynident.consistency.knowledge import Knowledge
from dynident.core.errors import InputError
from dynident.core.text import nearest
from dynident.estimators import ESTIMATORS

KNOWLEDGE = tuple(field.name for field in fields(Knowledge))

OPTIONS_OF = {
    "ols": ("essential",),
    "wls": ("essential",),
    "irls": ("loss",),
    "idim-iv": ("simulation", "gain_update"),
    "2sls": ("simulation", "gain_update"),
    "didim": ("simulation", "gain_update"),
    "cloe": ("simulation",),
    "clie": ("simulation",),
    "pc-idim-ls": (*KNOWLEDGE, "bootstrap", "seed"),
    "pc-idim-iv": ("simulation", "gain_update", *KNOWLEDGE, "bootstrap", "seed"),
    "pc-didim": ("simulation", "gain_update", *KNOWLEDGE, "bootstrap", "seed"),
    "pc-clie": ("simulation", *KNOWLEDGE, "bootstrap", "seed"),
}
"""Options that each method has."""


def arguments(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What an estimator is called with: its options, and what is known as one `Knowledge`."""
    given = {key: value for key, value in options.items() if value is not None}
    if "prior" not in OPTIONS_OF[method]:
        return given
    known = {key: given.pop(key) for key in KNOWLEDGE if key in given}
    return {"knowledge": Knowledge(**known), **given}


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with numbers of numpy as plain ones, as a result writes them.

    Raises
    ------
    InputError
        For counts that are not whole, or negative.
    """
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in options.items()}
    for key in ("bootstrap", "seed"):
        value = plain.get(key)
        if value is not None and (type(value) is not int or value < 0):
            raise InputError(f"{key} is {value!r} but has to be a whole number, at least 0")
    return plain


def check_options(method: str, options: Mapping[str, object]) -> None:
    """Refuse unknown methods, options that a method does not have, and missing controllers.

    Raises
    ------
    InputError
    """
    if method not in ESTIMATORS:
        raise InputError(f"method {method!r} is not known{nearest(method, ESTIMATORS)}")
    for name, value in options.items():
        if value is not None and name not in OPTIONS_OF[method]:
            having = ", ".join(m for m, known in OPTIONS_OF.items() if name in known)
            verb = "have" if "," in having else "has"
            raise InputError(f"method {method} has no option {name!r}; {having} {verb}")
    if "simulation" in OPTIONS_OF[method] and options.get("simulation") is None:
        raise InputError(
            f"method {method} simulates the closed loop and needs its controller: add a "
            "[controller] section to the study (simulation=Simulation(controller) in Python)"
        )
