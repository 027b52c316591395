"""``[[constraint]]`` of a study: what is known of the robot, by kind."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

from dynident.consistency.constraints import CONSTRAINTS, Constraint
from dynident.consistency.constraints.checks import entry
from dynident.core.schema import Flag, Name, Number, Spec, Vector3, one_of
from dynident.study.loop import options_of

Names = Name | Annotated[tuple[Name, ...], Field(min_length=1)]


def side(open_at: float) -> AfterValidator:
    """A validator of a box's side: a number, or open; null in a result's JSON is open too."""

    def check(value: float | None) -> float:
        if value is None:
            return open_at
        if math.isnan(value):
            raise ValueError("has to be a number, or inf for an open side")
        return value

    return AfterValidator(check)


Low = Annotated[float | None, Strict(), side(-math.inf)]
High = Annotated[float | None, Strict(), side(math.inf)]


class ConstraintSection(Spec):
    """``[[constraint]]``: see `dynident.consistency.constraints`; each kind has some of the keys.

    Attributes
    ----------
    kind : str
        Name in `dynident.consistency.constraints.CONSTRAINTS`.
    parameters : str or tuple of str
        Standard or base parameters.
    links : str or tuple of str
        Links by name, or "all".
    link, left, right : str
    value : float
    lower, upper : float or 3 floats
    centre, axes, rotation, com : 3 floats
    radius, margin, mass : float
    points : tuple of 3 floats each
    inertia : 6 floats
    plane : {"xz", "xy", "yz"}
    drives : bool
    of : {"mass", "com"}
    """

    kind: Annotated[Name, one_of(CONSTRAINTS)]
    parameters: Names | None = None
    links: Names | None = None
    link: Name | None = None
    left: Name | None = None
    right: Name | None = None
    value: Number | None = None
    lower: Number | tuple[Low, Low, Low] | None = None
    upper: Number | tuple[High, High, High] | None = None
    centre: Vector3 | None = None
    axes: Vector3 | None = None
    rotation: Vector3 | None = None
    com: Vector3 | None = None
    radius: Annotated[Number, Field(gt=0.0)] | None = None
    margin: Number | None = None
    mass: Annotated[Number, Field(gt=0.0)] | None = None
    points: Annotated[tuple[Vector3, ...], Field(min_length=4)] | None = None
    inertia: tuple[Number, Number, Number, Number, Number, Number] | None = None
    plane: Literal["xz", "xy", "yz"] | None = None
    drives: Flag | None = None
    of: Literal["mass", "com"] | None = None


def build_constraints(sections: tuple[ConstraintSection, ...]) -> tuple[Constraint, ...]:
    """Constraints of a study.

    Raises
    ------
    InputError
        Naming the entry and the key that its kind does not have, lacks or cannot use.
    """
    built = []
    for k, section in enumerate(sections, 1):
        make = CONSTRAINTS[section.kind]
        with entry(k):
            options = options_of(section, make, ("kind",), f"constraint {section.kind!r}")
            built.append(make(**options))
    return tuple(built)
