"""Physical knowledge as convex constraints on scaled parameters.

A constraint is a small frozen type whose ``cones(space)`` says it on the unknowns of a
`ParameterSpace`. A new one is a type and a line in `CONSTRAINTS`.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol

from dynident.conic.cones import Cone
from dynident.consistency.constraints.consistency import (
    BasePositive,
    MassInertia,
    PositiveDrives,
    PseudoInertia,
)
from dynident.consistency.constraints.regions import Box, Ellipsoid, Hull, Sphere
from dynident.consistency.constraints.relations import EqualLinks, Payload, Symmetric
from dynident.consistency.constraints.values import Belief, Bounds, Fixed, LinkMass, Tied, TotalMass
from dynident.consistency.space import ParameterSpace


class Constraint(Protocol):
    """Something that is known of a robot."""

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """What it says of the unknowns."""
        ...


CONSTRAINTS: dict[str, type[Constraint]] = {
    "bounds": Bounds,
    "fixed": Fixed,
    "tied": Tied,
    "belief": Belief,
    "mass": LinkMass,
    "total-mass": TotalMass,
    "box": Box,
    "sphere": Sphere,
    "ellipsoid": Ellipsoid,
    "hull": Hull,
    "equal": EqualLinks,
    "symmetric": Symmetric,
    "payload": Payload,
}
"""Constraints that a study may add, by their kind."""

CONSISTENCY: dict[str, tuple[Constraint, ...]] = {
    "pseudo-inertia": (PseudoInertia(), PositiveDrives()),
    "inertia": (MassInertia(), PositiveDrives()),
    "base": (BasePositive(),),
    "none": (),
}
"""What consistency means, by name; "base" and "none" are said on base parameters alone."""
ON_BASE = ("base", "none")


def list_consistency(name: str, radii: tuple[float, ...] = ()) -> tuple[Constraint, ...]:
    """What consistency asks, by its name; pseudo-inertias with least radii of gyration [m]."""
    return tuple(
        replace(part, radii=radii) if isinstance(part, PseudoInertia) else part
        for part in CONSISTENCY[name]
    )


def serialise_constraint(constraint: Constraint) -> dict[str, Any]:
    """A constraint as a study has it."""
    kind = next((k for k, c in CONSTRAINTS.items() if type(constraint) is c), None)
    if kind is None or not is_dataclass(constraint):
        return {"kind": repr(constraint)}
    given = {f.name: getattr(constraint, f.name) for f in fields(constraint)}
    return {"kind": kind, **{key: v for key, v in given.items() if v is not None}}


__all__ = [
    "CONSISTENCY",
    "CONSTRAINTS",
    "ON_BASE",
    "BasePositive",
    "Belief",
    "Bounds",
    "Box",
    "Constraint",
    "Ellipsoid",
    "EqualLinks",
    "Fixed",
    "Hull",
    "LinkMass",
    "MassInertia",
    "Payload",
    "PositiveDrives",
    "PseudoInertia",
    "Sphere",
    "Symmetric",
    "Tied",
    "TotalMass",
    "list_consistency",
    "serialise_constraint",
]
