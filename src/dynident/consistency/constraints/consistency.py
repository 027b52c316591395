"""Physical consistency of bodies and drives, in the forms that the literature has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dynident.conic.cones import Cone, NonnegativeCone, SemidefiniteCone, smat, svec
from dynident.consistency.space import LENGTH, ParameterSpace
from dynident.core.arrays import Array
from dynident.core.inertia import PSEUDO_INERTIA_BASIS, to_inertia_matrix, to_pseudo_inertia

FLOOR = 1e-6
"""Distance that scaled parameters keep from the boundary of consistency."""
ROUNDING = 1e-9
GYRATION = "gyration "
"""What the names of least radii of gyration begin with."""
EXTENT = np.diag([1.0, 1.0, 1.0, 0.0])
"""Where a pseudo-inertia has the second moments of its mass."""


@dataclass(frozen=True)
class PseudoInertia:
    """Every body's pseudo-inertia positive definite (ardiani2024, eq. 18).

    ``D J(phi) D - floor >= 0`` with D making J a matrix of order one: necessary and
    sufficient for a body of positive density, the triangle inequality of its principal
    moments included. With least radii of gyration r ``J - m r^2 diag(1, 1, 1, 0)`` in the place
    of J (see `dynident.consistency.gyration`).
    """

    floor: float = FLOOR
    """Smallest scaled eigenvalue."""
    radii: tuple[float, ...] = ()
    """One a body [m]; none for all zero."""

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """One matrix a body."""
        cones: list[Cone] = []
        for k, (name, body, mass) in enumerate(list_bodies(space)):
            title, basis = f"pseudo-inertia {name}", to_pseudo_inertia(body.T)
            radius = self.radii[k] if k < len(self.radii) else 0.0
            if radius > 0.0:
                title = f"{GYRATION}{name} >= {radius:.2g} m"
                basis -= radius**2 * np.multiply.outer(body[0], EXTENT)
            scaled = scale_pseudo_inertia(basis, mass)
            cones.append(SemidefiniteCone(title, scaled, self.floor * np.eye(4)))
        return cones


@dataclass(frozen=True)
class MassInertia:
    """The older form: mass positive and inertia about the centre of mass definite.

    ``[[I, S(h)^T], [S(h), m 1]] > 0`` with the first moment h (Sousa and Cortesao 2014;
    flobaroid, "Feasibility constraints as LMI"). It leaves the triangle inequality out, so
    that it admits bodies that no distribution of mass makes.
    """

    floor: float = FLOOR

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """One matrix a body."""
        cones: list[Cone] = []
        for name, body, mass in list_bodies(space):
            basis = np.tensordot(body.T, SPATIAL_INERTIA_BASIS, axes=1)
            scale = np.array([1.0 / LENGTH] * 3 + [1.0] * 3) / np.sqrt(mass)
            cones.append(
                SemidefiniteCone(
                    f"inertia {name}", basis * np.outer(scale, scale), self.floor * np.eye(6)
                )
            )
        return cones


@dataclass(frozen=True)
class PositiveDrives:
    """Rotor inertias and friction parameters positive (ardiani2024, eq. 19).

    The floor is in units of the parameter that would explain all of the torque.
    """

    floor: float = FLOOR

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """One row a parameter."""
        chosen = [k for k, p in enumerate(space.idim.parameters) if p.positive]
        if not chosen:
            return []
        names = tuple(f"{space.idim.names[k]} > 0" for k in chosen)
        G = np.eye(len(space.unit))[chosen]
        return [NonnegativeCone(names, G, np.full(len(chosen), self.floor))]


@dataclass(frozen=True)
class BasePositive:
    """Base parameters positive that no consistent robot can have negative (ardiani2024, eq. 27).

    The paper selects "the base parameters that must be greater than zero". They are those
    whose combination ``<F_j, J_j> + f^T drives`` has every F_j positive semidefinite and
    every f of a positive parameter at least zero: ``Izz1 + Ia1 + Iyy2`` is one of them,
    ``Ixx2 - Iyy2`` is not.
    """

    floor: float = 0.0

    def cones(self, space: ParameterSpace) -> list[Cone]:
        """One row a base parameter."""
        base = space.base
        chosen = [k for k in range(base.count) if is_never_negative(space, base.matrix[k])]
        if not chosen:
            return []
        names = tuple(f"{base.names[k]} > 0" for k in chosen)
        rows = space.matrix[chosen]
        size = np.linalg.norm(rows, axis=1, keepdims=True)
        return [NonnegativeCone(names, rows / size, np.full(len(chosen), self.floor))]


def list_bodies(space: ParameterSpace) -> Iterator[tuple[str, Array, float]]:
    """Bodies, and what sensors leave of some: name, rows of the ten parameters, unit of mass."""
    for k, link in enumerate(space.links):
        yield link, space.body(space.link(link)), space.mass(k)
    for rest in space.idim.structure.rests:
        yield rest.name, space.rest(rest), space.mass(rest.body)


def scale_pseudo_inertia(basis: Array, mass: float) -> Array:
    """Pseudo-inertias in units of a mass and of `LENGTH`."""
    scale = np.array([1.0 / LENGTH] * 3 + [1.0]) / np.sqrt(mass)
    return np.asarray(basis * np.outer(scale, scale))


def is_never_negative(space: ParameterSpace, row: Array) -> bool:
    """Whether a combination of standard parameters is positive for all consistent robots."""
    idim = space.idim
    size = float(np.max(np.abs(row)))
    for k in range(idim.bodies):
        dual = solve_dual_matrix(row[10 * k : 10 * k + 10])
        # <F, J> >= 0 for all J >= 0 just where F >= 0: the semidefinite cone is its own dual
        if np.linalg.eigvalsh(scale_pseudo_inertia(dual, 1.0) * LENGTH**2)[0] < -ROUNDING * size:
            return False
    for value, parameter in zip(idim.split(row)[1], idim.drives, strict=True):
        if abs(value) > ROUNDING * size and (not parameter.positive or value < 0.0):
            return False
    return True


def solve_dual_matrix(coefficients: Array) -> Array:
    """F with ``<F, J(phi)> = coefficients^T phi``."""
    return smat(np.asarray(np.linalg.solve(svec(PSEUDO_INERTIA_BASIS), coefficients)))


def _build_spatial_inertia_basis() -> Array:
    """``[[I, S(h)^T], [S(h), m 1]]`` of each unit inertial parameter."""
    basis = np.zeros((10, 6, 6))
    basis[0, 3:, 3:] = np.eye(3)
    for axis in range(3):
        skew = np.cross(np.eye(3)[axis], np.eye(3)).T
        basis[1 + axis, 3:, :3] = skew
        basis[1 + axis, :3, 3:] = skew.T
    basis[:, :3, :3] = to_inertia_matrix(np.eye(10))
    return basis


SPATIAL_INERTIA_BASIS = _build_spatial_inertia_basis()
"""Spatial inertia matrix, the sign of its first moment turned, which is a congruence."""
