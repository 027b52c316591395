"""Friction of each drive in the words of BAM, better actuator models (github.com/Rhoban/bam).

A file of BAM has one actuator: ``model`` and ``actuator`` by name, the actuator's ``kt`` [Nm/A] and
``R`` [Ohm], ``armature`` [kg m^2], and the parameters of its friction [Nm, Nm s/rad]. What an
actuator is, and its two constants, no log of motion tells apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.idim import Idim
from dynident.export.drives import describe_left_drives, list_drives
from dynident.export.servo import Servo

MODEL = "m1"
"""Coulomb and viscous friction."""


def render_bam(
    idim: Idim, theta: Array, folder: object, width: object, servos: Sequence[Servo]
) -> tuple[bytes, tuple[str, ...]]:
    """A table a joint, of what BAM calls model M1; parameters and returns are those of `Render`."""
    drives, document = list_drives(idim, theta, ()), {}
    for drive in drives:
        if drive.joint.kind != "revolute":
            raise InputError(f"{drive.joint.name}: slides, and BAM has servos that turn alone")
        values = {
            "armature": drive.armature,
            "friction_base": drive.dry,
            "friction_viscous": drive.viscous,
        }
        known = {name: value for name, value in values.items() if value is not None}
        document[drive.joint.name] = {"model": MODEL, **known}
    text = json.dumps(document, indent=2) + "\n"
    return text.encode(), (
        *describe_left_drives(idim, "BAM file"),
        "BAM takes a table a servo, with its actuator, kt and R, which the log does not tell: add "
        "those, and take kt^2/R off friction_viscous where the servo is driven by voltage",
    )
