"""Constraints on the values of parameters and masses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.cones import Cone, Equal, Positive
from dynident.errors import InputError
from dynident.inertia import Array
from dynident.space import Space, indices


@dataclass(frozen=True)
class Bounds:
    """Parameters, standard or base ones, between bounds.

    Attributes
    ----------
    parameters : tuple of str
    lower, upper : float, optional
        SI units.
    """

    parameters: tuple[str, ...]
    lower: float | None = None
    upper: float | None = None

    def cones(self, space: Space) -> list[Cone]:
        """One row a parameter and bound."""
        return [
            cone
            for name in listed(self.parameters)
            for cone in between(space.row(name), name, self.lower, self.upper)
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

    parameters: tuple[str, ...]
    value: float

    def cones(self, space: Space) -> list[Cone]:
        """One row a parameter."""
        return [
            exactly(space.row(name), f"{name} = {self.value:g}", self.value)
            for name in listed(self.parameters)
        ]


@dataclass(frozen=True)
class LinkMass:
    """Masses of links: known, or between bounds.

    Attributes
    ----------
    links : tuple of str, or "all"
    value, lower, upper : float, optional
        [kg]
    """

    links: tuple[str, ...] | str
    value: float | None = None
    lower: float | None = None
    upper: float | None = None

    def cones(self, space: Space) -> list[Cone]:
        """One row a link and bound."""
        cones: list[Cone] = []
        for k in indices(space, self.links):
            row, name = space.body(k)[0], f"mass of {space.links[k]}"
            cones += masses(row, name, self.value, self.lower, self.upper)
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

    def cones(self, space: Space) -> list[Cone]:
        """One row, or two."""
        row = np.sum([space.body(space.link(name))[0] for name in space.links], axis=0)
        return masses(row, "total mass", self.value, self.lower, self.upper)


def masses(
    row: Array, name: str, value: float | None, lower: float | None, upper: float | None
) -> list[Cone]:
    """A mass that is known, or bounded.

    Raises
    ------
    InputError
        For masses that are not positive, or nothing said.
    """
    if value is not None:
        if value <= 0.0 or lower is not None or upper is not None:
            raise InputError(f"constraint: {name} needs one positive value, or lower and upper")
        return [exactly(row, f"{name} = {value:g}", value)]
    return between(row, name, lower, upper)


def exactly(row: Array, name: str, value: float) -> Equal:
    """``row @ x = value``, in units of the row."""
    size = float(np.linalg.norm(row))
    return Equal((name,), row[None] / size, np.array([value / size]))


def between(row: Array, name: str, lower: float | None, upper: float | None) -> list[Cone]:
    """``lower <= row @ x <= upper``, in units of the row.

    Raises
    ------
    InputError
        Without a bound, or with bounds in the wrong order.
    """
    if lower is None and upper is None:
        raise InputError(f"constraint: {name} has neither lower nor upper")
    if lower is not None and upper is not None and lower > upper:
        raise InputError(f"constraint: {name} has lower {lower:g} above upper {upper:g}")
    size = float(np.linalg.norm(row))
    cones: list[Cone] = []
    if lower is not None:
        cones.append(
            Positive((f"{name} >= {lower:g}",), row[None] / size, np.array([lower / size]))
        )
    if upper is not None:
        cones.append(
            Positive((f"{name} <= {upper:g}",), -row[None] / size, np.array([-upper / size]))
        )
    return cones


def listed(names: tuple[str, ...] | str) -> tuple[str, ...]:
    """One name, or several."""
    return (names,) if isinstance(names, str) else tuple(names)
