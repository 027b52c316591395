"""Bodies as ellipsoids: of one density, with the body's mass, centre of mass and inertia."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.core.arrays import Array
from dynident.core.inertia import is_consistent, to_pseudo_inertia
from dynident.robot.model import Robot


@dataclass(frozen=True)
class MovingEllipsoid:
    """An ellipsoid that moves with one body."""

    link: str
    sort: Literal["identified", "file"]
    """Whose body it is."""
    body: int
    """Index of the body; -1 is the base."""
    centre: Array
    """The centre of mass in the body's joint frame [m], shape (3,)."""
    axes: Array
    """Its half axes as columns, right-handed [m], shape (3, 3)."""


def find_half_axes(phi: Array) -> tuple[Array, Array]:
    r"""Centre and half axes of a body's ellipsoid.

    The second moment of a body of mass :math:`m` about its centre of mass, the pseudo-inertia's
    block less :math:`m\mathbf c\mathbf c^T`, is :math:`\mathbf\Sigma`; of an ellipsoid of one
    density with half axes :math:`a_i` it is :math:`m a_i^2/5` along each. So
    :math:`a_i = \sqrt{5\lambda_i/m}`, along the eigenvectors of :math:`\mathbf\Sigma`.

    Parameters
    ----------
    phi : ndarray, shape (10,)
        Of a body that can exist.

    Returns
    -------
    centre : ndarray, shape (3,)
        [m]
    axes : ndarray, shape (3, 3)
        As columns, right-handed [m].
    """
    J = to_pseudo_inertia(phi)
    mass, centre = J[3, 3], J[:3, 3] / J[3, 3]
    moments, turn = np.linalg.eigh(J[:3, :3] - mass * np.outer(centre, centre))
    turn[:, 0] *= np.sign(np.linalg.det(turn))
    return centre, turn * np.sqrt(5.0 * np.maximum(moments, 0.0) / mass)


def list_ellipsoids(
    robot: Robot, bodies: Array, sort: Literal["identified", "file"]
) -> list[MovingEllipsoid]:
    """Ellipsoids of all links that can exist.

    `bodies`: as of `Robot.nominal`, shape (links, 10).
    """
    first = len(bodies) - robot.n
    return [
        MovingEllipsoid(link, sort, k - first, *find_half_axes(phi))
        for k, (link, phi) in enumerate(zip(robot.links, bodies, strict=True))
        if is_consistent(phi[None])
    ]
