"""The 10-vector of a rigid body and its other forms.

Order, everywhere: ``m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz``, about the joint
frame's origin (Pinocchio's order).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array

INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Symbols of the inertial parameters of a link, in the order of the 10-vector."""
PER_BODY = len(INERTIAL)
UPPER = (0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)
"""Rows and columns of the inertia in that order."""


def _build_pseudo_inertia_basis() -> Array:
    basis = np.zeros((10, 4, 4))
    basis[0, 3, 3] = 1.0
    for axis in range(3):
        basis[1 + axis, axis, 3] = basis[1 + axis, 3, axis] = 1.0
    # Sigma = 1/2 tr(I) 1 - I, the second moments of mass (ardiani2024, eq. 17)
    for index, axis in ((4, 0), (6, 1), (9, 2)):
        for k in range(3):
            basis[index, k, k] = -0.5 if k == axis else 0.5
    for index, row, column in ((5, 0, 1), (7, 0, 2), (8, 1, 2)):
        basis[index, row, column] = basis[index, column, row] = -1.0
    basis.setflags(write=False)
    return basis


PSEUDO_INERTIA_BASIS = _build_pseudo_inertia_basis()
"""``J(phi) = sum_k phi_k PSEUDO_INERTIA_BASIS[k]``, shape ``(10, 4, 4)``."""


def to_pseudo_inertia(phi: npt.ArrayLike) -> Array:
    """Pseudo-inertia matrices (..., 4, 4) of 10-vectors (..., 10) [kg, kg m, kg m^2].

    ``[[Sigma, m c], [m c^T, m]]`` with ``Sigma = 1/2 tr(I) 1 - I`` (ardiani2024, eq. 17). The body
    is physically consistent exactly when this matrix is positive definite.
    """
    return np.tensordot(np.asarray(phi, dtype=float), PSEUDO_INERTIA_BASIS, axes=(-1, 0))


def to_inertial_parameters(matrix: npt.ArrayLike) -> Array:
    """10-vectors (..., 10) of pseudo-inertia matrices: the inverse of `to_pseudo_inertia`."""
    j = np.asarray(matrix, dtype=float)
    sigma = j[..., :3, :3]
    inertia = np.trace(sigma, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - sigma
    return np.concatenate([j[..., 3, 3:], j[..., :3, 3], inertia[..., *UPPER]], axis=-1)


def to_inertia_matrix(phi: npt.ArrayLike) -> Array:
    """Rotational inertia about the frame's origin, shape (..., 3, 3) [kg m^2]."""
    p = np.asarray(phi, dtype=float)
    xx, xy, yy, xz, yz, zz = (p[..., k] for k in range(4, 10))
    rows = [np.stack(r, axis=-1) for r in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))]
    return np.stack(rows, axis=-2)


def from_com(mass: float, com: npt.ArrayLike, inertia_com: npt.ArrayLike) -> Array:
    """10-vector from mass [kg], centre of mass [m] and the inertia about it [kg m^2].

    Both are in the joint frame and its axes.
    """
    c = np.asarray(com, dtype=float)
    inertia = np.asarray(inertia_com, dtype=float) + mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([mass, *(mass * c), *inertia[UPPER]])


def to_com(phi: npt.ArrayLike) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia about it: the inverse of `from_com`.

    A body without mass has its centre of mass at the origin by convention.
    """
    p = np.asarray(phi, dtype=float)
    mass = float(p[0])
    com = p[1:4] / mass if mass != 0.0 else np.zeros(3)
    return mass, com, to_inertia_matrix(p) - mass * (com @ com * np.eye(3) - np.outer(com, com))


def transform_body(
    phi: npt.ArrayLike, rotation: npt.ArrayLike, translation: npt.ArrayLike
) -> Array:
    """The same body seen from another frame, A.

    Its parameters are given in B, which is placed in A: ``x_A = rotation x_B + translation``. The
    pseudo-inertia transforms by congruence.
    """
    placement = np.eye(4)
    placement[:3, :3] = rotation
    placement[:3, 3] = translation
    return to_inertial_parameters(placement @ to_pseudo_inertia(phi) @ placement.T)


def find_smallest_eigenvalue(phi: npt.ArrayLike) -> Array:
    """Smallest eigenvalue of each body's pseudo-inertia, shape (...)."""
    return np.asarray(np.linalg.eigvalsh(to_pseudo_inertia(phi))[..., 0])


def is_consistent(phi: npt.ArrayLike) -> bool:
    """Whether every body's pseudo-inertia is positive definite."""
    return bool(np.all(find_smallest_eigenvalue(phi) > 0.0))


def measure_least_gyration(phi: Array) -> float | None:
    """The smallest principal radius of gyration of a body, None where it has none [m]."""
    mass, _, inertia = to_com(phi)
    if mass <= 0.0:
        return None
    moments = 0.5 * np.trace(inertia) - np.linalg.eigvalsh(inertia)
    return float(np.sqrt(max(0.0, float(np.min(moments))) / mass))


def differentiate_body(phi: Array) -> Array:
    """Derivatives of mass, centre of mass and inertia about it by the ten parameters, (10, 10).

    With the first moment h, ``c = h / m`` and ``I_c = I - (|h|^2 1 - h h^T) / m``.
    """
    m, h = float(phi[0]), phi[1:4]
    rows, columns = [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]
    found = np.zeros((10, 10))
    found[0, 0] = 1.0
    found[1:4, 1:4] = np.eye(3) / m
    found[1:4, 0] = -h / m**2
    steiner = (h @ h * np.eye(3) - np.outer(h, h)) / m
    for j, basis in enumerate(np.eye(10)):
        change = to_inertia_matrix(basis)
        if j == 0:
            change = change + steiner / m
        elif j < 4:
            e = basis[1:4]
            change = change - (2.0 * (h @ e) * np.eye(3) - np.outer(h, e) - np.outer(e, h)) / m
        found[4:, j] = change[rows, columns]
    return found


def serialise_body(phi: Array) -> dict[str, Any]:
    """A body's mass, centre of mass and inertia about it, in the words of result.json."""
    mass, com, i = to_com(phi)
    entries = [i[0, 0], i[0, 1], i[1, 1], i[0, 2], i[1, 2], i[2, 2]]
    return {
        "mass": mass,
        "com": [float(c) for c in com],
        "inertia_com": [float(e) for e in entries],
    }
