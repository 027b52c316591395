"""The unknowns of a constrained estimate, scaled so that all are of order one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.text import suggest_nearest
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.idim import Idim
from dynident.dynamics.limbs import BodyRemainder

LENGTH = 0.1
"""Unit of length of the scaled inertial parameters [m]."""
BODY_UNITS = np.array([1.0] + [LENGTH] * 3 + [LENGTH**2] * 6)
"""Of the ten of a body of 1 kg."""


@dataclass(frozen=True)
class ParameterSpace:
    """Scaled unknowns x: standard parameters ``theta = unit * x``, or base parameters.

    Constraints are written on x; `row`, `body` and `mass` say how physical values depend
    on it.

    Attributes
    ----------
    base : BaseParameters
    unit : ndarray, shape (unknowns,)
    standard : bool
        Whether the unknowns are standard parameters; base parameters otherwise.
    """

    base: BaseParameters
    unit: Array
    standard: bool = True

    @property
    def idim(self) -> Idim:
        """The model."""
        return self.base.idim

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the bodies."""
        return self.idim.robot.links

    @cached_property
    def matrix(self) -> Array:
        """``beta = matrix @ x``, shape (base parameters, unknowns)."""
        if self.standard:
            return np.asarray(self.base.matrix * self.unit)
        return np.diag(self.unit)

    def value(self, x: Array) -> Array:
        """Parameters in SI units."""
        return np.asarray(self.unit * x)

    def row(self, name: str) -> Array:
        """How a standard or base parameter depends on x, by its name.

        A base parameter that keeps a standard one unchanged has its name; a name with an R
        is that of a regrouped base parameter.

        Raises
        ------
        InputError
            When there is no such parameter.
        """
        if name in self.base.names and (not self.standard or name not in self.idim.names):
            return np.asarray(self.matrix[self.base.names.index(name)])
        if self.standard and name in self.idim.names:
            k = self.idim.names.index(name)
            return np.where(np.arange(len(self.unit)) == k, self.unit, 0.0)
        known = [*self.base.names, *(self.idim.names if self.standard else ())]
        raise InputError(f"constraint: {name!r} is not a parameter{suggest_nearest(name, known)}")

    def link(self, name: str) -> int:
        """Index of a body by its link's name.

        Raises
        ------
        InputError
            When there is no such link, or the unknowns are base parameters.
        """
        refuse_unknown(name, self.links, f"constraint: {name!r} is not a link")
        if not self.standard:
            raise InputError(
                f"constraint on {name}: base parameters have no links of their own; use "
                "consistency 'pseudo-inertia' or 'inertia'"
            )
        return self.links.index(name)

    def body(self, link: int) -> Array:
        """``phi = body @ x``: a body's 10 inertial parameters, shape (10, unknowns)."""
        return build_body_rows(self.unit, link)

    def rest(self, rest: BodyRemainder) -> Array:
        """The same of a body without the part of it that a sensor holds."""
        return self.body(rest.body) - rest.placed @ self.body(rest.part)

    def mass(self, link: int) -> float:
        """Unit of a body's mass [kg]."""
        return float(self.unit[10 * link])


def build_standard_space(base: BaseParameters, A: Array, b: Array) -> ParameterSpace:
    """Standard parameters in units in which each is of order one.

    A link's own mass (or 1 kg) and `LENGTH` for its inertial parameters, so that its
    scaled pseudo-inertia is a congruence of the true one; for a drive's parameter the
    value that would explain all of the torque, by weighted rows A and b.
    """
    idim = base.idim
    columns = A @ base.matrix
    unit = np.empty(len(idim.parameters))
    for k in range(idim.bodies):
        mass = idim.robot.nominal[k, 0] if idim.robot.nominal[k, 0] > 0.0 else 1.0
        unit[10 * k : 10 * k + 10] = mass * BODY_UNITS
    norms = np.linalg.norm(columns[:, idim.inertial :], axis=0)
    symbols = [column.parameter.symbol for column in idim.drive_columns]
    size = max(float(np.linalg.norm(b)), 1e-12)
    for k, symbol in enumerate(symbols):
        # of the joint that moves most: a joint at rest says nothing of its own scale
        most = max(n for n, s in zip(norms, symbols, strict=True) if s == symbol)
        unit[idim.inertial + k] = size / most if most > 0.0 else 1.0
    return ParameterSpace(base, unit)


def build_base_space(base: BaseParameters, A: Array, b: Array) -> ParameterSpace:
    """Base parameters in units that would each explain all of the torque."""
    norms = np.linalg.norm(A, axis=0)
    size = max(float(np.linalg.norm(b)), 1e-12)
    unit = np.where(norms > 0.0, size / np.where(norms > 0.0, norms, 1.0), 1.0)
    return ParameterSpace(base, unit, standard=False)


def build_body_rows(unit: Array, link: int) -> Array:
    """Rows that give a body's 10 inertial parameters of unknowns in these units."""
    out = np.zeros((10, len(unit)))
    span = np.arange(10 * link, 10 * link + 10)
    out[np.arange(10), span] = unit[span]
    return out


def list_body_indices(space: ParameterSpace, names: Sequence[str] | str) -> list[int]:
    """Bodies by their links' names; "all" is all of them."""
    if names == "all":
        return [space.link(name) for name in space.links]
    given = (names,) if isinstance(names, str) else names
    return [space.link(name) for name in given]
