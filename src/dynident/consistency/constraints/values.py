"""Constraints on the values of parameters and masses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.conic.cones import Cone, NonnegativeCone, ZeroCone
from dynident.consistency.constraints.checks import (
    Names,
    check_interval,
    check_name_list,
    check_number,
    set_frozen_fields,
)
from dynident.consistency.space import ParameterSpace, list_body_indices
from dynident.core.arrays import Array
from dynident.core.errors import InputError


@dataclass(frozen=True)
class Bounds:
    """Parameters, standard or base ones, between bounds.

    Attributes
    ----------
    parameters : tuple of str
    lower, upper : float, optional
        SI units.
    """

    parameters: Names
    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        lower, upper = check_interval("bounds", self.lower, self.upper)
        parameters = check_name_list("bounds", "parameters", self.parameters)
        set_frozen_fields(self, parameters=parameters, lower=lower, upper=upper)

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """One row a parameter and bound."""
        return [
            cone
            for name in list_names(self.parameters)
            for cone in constrain_to_interval(space.row(name), name, self.lower, self.upper)
        ]


@dataclass(frozen=True)
class Fixed:
    """Parameters, standard or base ones, with known values.

    Attributes
    ----------
    parameters : tuple of str
    value : float
        SI units.
    """

    parameters: Names
    value: float

    def __post_init__(self) -> None:
        parameters = check_name_list("fixed", "parameters", self.parameters)
        set_frozen_fields(
            self, parameters=parameters, value=check_number("fixed", "value", self.value)
        )

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """One row a parameter."""
        return [
            constrain_to_value(space.row(name), f"{name} = {self.value:g}", self.value)
            for name in list_names(self.parameters)
        ]


@dataclass(frozen=True)
class Tied:
    """Parameters, standard or base ones, that have one value.

    At least two, or a symbol that stands for that of every joint.
    """

    parameters: Names

    def __post_init__(self) -> None:
        set_frozen_fields(self, parameters=check_name_list("tied", "parameters", self.parameters))

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """One row a parameter but the first."""
        first, *others = list_names(self.parameters)
        if not others:
            raise InputError(f"constraint 'tied' needs at least two parameters, has {first}")
        row = space.row(first)
        return [
            constrain_to_value(space.row(name) - row, f"{name} = {first}", 0.0) for name in others
        ]


@dataclass(frozen=True)
class Belief:
    """Parameters that are about a value [SI units]: rows beside the log's, and no constraint."""

    parameters: Names
    value: float
    std: float

    def __post_init__(self) -> None:
        parameters = check_name_list("belief", "parameters", self.parameters)
        value = check_number("belief", "value", self.value)
        set_frozen_fields(
            self,
            parameters=parameters,
            value=value,
            std=check_number("belief", "std", self.std, positive=True),
        )

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """None of them: methods with a prior of their own have no place for it."""
        raise InputError("constraint 'belief' applies only to cloe with links = 'fixed'")


@dataclass(frozen=True)
class LinkMass:
    """Masses of links: known, or between bounds.

    Attributes
    ----------
    links : tuple of str, or "all"
    value, lower, upper : float, optional
        [kg]
    """

    links: Names
    value: float | None = None
    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        value, lower, upper = check_mass_bounds("mass", self.value, self.lower, self.upper)
        links = check_name_list("mass", "links", self.links)
        set_frozen_fields(self, links=links, value=value, lower=lower, upper=upper)

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """One row a link and bound."""
        cones: list[Cone] = []
        for k in list_body_indices(space, self.links):
            row, name = space.body(k)[0], f"mass of {space.links[k]}"
            cones += constrain_mass(row, name, self.value, self.lower, self.upper)
        return cones


@dataclass(frozen=True)
class TotalMass:
    """The mass of all bodies together, as a scale shows it (less the fixed base's).

    Attributes
    ----------
    value : float, optional
        [kg]
    lower, upper : float, optional
        [kg]
    """

    value: float | None = None
    lower: float | None = None
    upper: float | None = None

    def __post_init__(self) -> None:
        value, lower, upper = check_mass_bounds("total-mass", self.value, self.lower, self.upper)
        set_frozen_fields(self, value=value, lower=lower, upper=upper)

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """One row, or two."""
        whole = space.links[: space.idim.robot.bodies]
        row = np.sum([space.body(space.link(name))[0] for name in whole], axis=0)
        return constrain_mass(row, "total mass", self.value, self.lower, self.upper)


def check_mass_bounds(
    kind: str, value: float | None, lower: float | None, upper: float | None
) -> tuple[float | None, float | None, float | None]:
    """A mass that is known, or bounded, as plain numbers."""
    if value is None:
        if lower is None and upper is None:
            raise InputError(f"constraint {kind!r} has neither value, lower nor upper")
        return (None, *check_interval(kind, lower, upper))
    if lower is not None or upper is not None:
        raise InputError(f"constraint {kind!r} has a value and bounds; give one or the other")
    return check_number(kind, "value", value, positive=True), None, None


def constrain_mass(
    row: Array, name: str, value: float | None, lower: float | None, upper: float | None
) -> list[Cone]:
    """A mass that is known, or bounded."""
    if value is not None:
        return [constrain_to_value(row, f"{name} = {value:g}", value)]
    return constrain_to_interval(row, name, lower, upper)


def constrain_to_value(row: Array, name: str, value: float) -> ZeroCone:
    """``row @ x = value``, in units of the row."""
    size = float(np.linalg.norm(row))
    return ZeroCone((name,), row[None] / size, np.array([value / size]))


def constrain_to_interval(
    row: Array, name: str, lower: float | None, upper: float | None
) -> list[Cone]:
    """``lower <= row @ x <= upper``, in units of the row."""
    size = float(np.linalg.norm(row))
    cones: list[Cone] = []
    for bound, sign, relation in ((lower, 1.0, ">="), (upper, -1.0, "<=")):
        if bound is not None:
            title = f"{name} {relation} {bound:g}"
            cones.append(
                NonnegativeCone((title,), sign * row[None] / size, np.array([sign * bound / size]))
            )
    return cones


def list_names(names: tuple[str, ...] | str) -> tuple[str, ...]:
    """One name, or several."""
    return (names,) if isinstance(names, str) else tuple(names)
