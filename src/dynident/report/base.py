"""What the motion of a robot can identify, by its file alone: in words and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynident.core.errors import refuse_unknown
from dynident.core.words import format_entry
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.base_algorithms import ALGORITHMS, find_basis
from dynident.dynamics.idim import Idim


def format_regroupings(base: BaseParameters, texts: Sequence[str]) -> str:
    """The base parameters of a robot as combinations of its standard parameters: `texts`."""
    pairs = zip(base.names, texts, strict=True)
    lines = [line for name, text in pairs for line in format_entry(name, text)]
    note = (
        f"{base.count} base parameters of {len(base.idim.parameters)} standard parameters, "
        f"{base.rigid_body_count} are named after a link's; friction {base.idim.friction}"
    )
    lines += ["", *format_entry("count", note)]
    if base.unidentifiable:
        lines += format_entry("no torque", ", ".join(base.unidentifiable))
    return "\n".join(lines)


def serialise_base(base: BaseParameters, texts: Sequence[str]) -> dict[str, Any]:
    """The same as the object that ``--json`` prints."""
    parameters = [
        {"name": name, "regrouping": text} for name, text in zip(base.names, texts, strict=True)
    ]
    return {
        "schema": "dynident.base/1",
        "robot": base.idim.robot.identity,
        "friction": base.idim.friction,
        "base_count": base.count,
        "rigid_body_count": base.rigid_body_count,
        "standard_count": len(base.idim.parameters),
        "parameters": parameters,
        "unidentifiable": list(base.unidentifiable),
    }


def describe_basis(idim: Idim, by: str) -> tuple[dict[str, Any], str]:
    """Base parameters by an algorithm of the literature, as plain data and in words."""
    refuse_unknown(by, ALGORITHMS, f"--by {by!r} is not known")
    found = find_basis(idim, by)
    pairs = list(zip(found.names, found.regroupings, strict=True))
    told = [{"name": name, "regrouping": text} for name, text in pairs]
    document = {"robot": idim.robot.name, "by": by, "base_count": found.count}
    lines = [line for name, text in pairs for line in format_entry(name, text)]
    note = f"{found.count} base parameters of {len(idim.parameters)} standard parameters, by {by}"
    text = "\n".join([*lines, "", *format_entry("count", note)])
    return {"schema": "dynident.basis/1", **document, "parameters": told}, text
