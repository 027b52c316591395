"""Physical consistency as cones, and priors as rows, over the standard parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynident.conic import Cone, Definite, Positive, svec
from dynident.idim import Idim
from dynident.inertia import PSEUDO_INERTIA_BASIS, Array, pseudo_inertia

LENGTH = 0.1
"""Unit of length of the scaled inertial parameters [m]."""
FLOOR = 1e-6
"""Distance that scaled parameters keep from the boundary of consistency."""
GYRATION = 0.03
"""Radius of gyration below which a robot file is not believed [m]."""


def scales(idim: Idim, A: Array, b: Array) -> Array:
    """Units in which every standard parameter is of order one.

    A link's own mass (or 1 kg) and `LENGTH` for its inertial parameters, so that its
    scaled pseudo-inertia is a congruence of the true one; for a drive's parameter the
    value that would explain all of the torque.
    """
    unit = np.empty(len(idim.parameters))
    for k in range(idim.tree.bodies):
        mass = idim.robot.nominal[k, 0] if idim.robot.nominal[k, 0] > 0.0 else 1.0
        lengths = [1.0] + [LENGTH] * 3 + [LENGTH**2] * 6
        unit[10 * k : 10 * k + 10] = mass * np.array(lengths)
    norms = np.linalg.norm(A[:, idim.inertial :], axis=0)
    symbols = [column.parameter.symbol for column in idim.drive_columns]
    size = max(float(np.linalg.norm(b)), 1e-12)
    for k, symbol in enumerate(symbols):
        # of the joint that moves most: a joint at rest says nothing of its own scale
        most = max(n for n, s in zip(norms, symbols, strict=True) if s == symbol)
        unit[idim.inertial + k] = size / most if most > 0.0 else 1.0
    return unit


def consistent_bodies(idim: Idim) -> list[Cone]:
    """Every body's pseudo-inertia positive definite (ardiani2024, eq. 18)."""
    cones: list[Cone] = []
    for k, link in enumerate(idim.robot.links):
        basis = np.zeros((len(idim.parameters), 4, 4))
        basis[10 * k : 10 * k + 10] = PSEUDO_INERTIA_BASIS
        cones.append(Definite(f"pseudo-inertia {link}", basis, FLOOR * np.eye(4)))
    return cones


def positive_drives(idim: Idim) -> list[Cone]:
    """Rotor inertia and friction positive (ardiani2024, eq. 19)."""
    chosen = [k for k, p in enumerate(idim.parameters) if p.positive]
    if not chosen:
        return []
    names = tuple(f"{idim.names[k]} > 0" for k in chosen)
    G = np.eye(len(idim.parameters))[chosen]
    return [Positive(names, G, np.full(len(chosen), FLOOR))]


CONSTRAINTS: dict[str, Callable[[Idim], list[Cone]]] = {
    "pseudo-inertia": consistent_bodies,
    "positive": positive_drives,
}
"""Cones in scaled standard parameters, by the name of the constraint."""


@dataclass(frozen=True)
class Prior:
    """Rows ``rows @ theta ~ target`` with unit variance.

    Attributes
    ----------
    rows : ndarray, shape (k, parameters)
    target : ndarray, shape (k,)
    words : str
        What the result says of it.
    """

    rows: Array
    target: Array
    words: str


def nominal_prior(idim: Idim) -> Prior:
    """The robot file's inertials, each body believed to within its own size.

    A body's distance is ``1/2 tr((J0^-1 (J - J0))^2)``, the pullback of the Riemannian
    metric of positive definite matrices at the nominal pseudo-inertia J0 (Lee and Park
    2018), which does not depend on units or on frames. A distance of one, the prior's
    standard deviation, is a body changed by its own size. J0 is thickened by `GYRATION`
    where it serves as the metric, since files round small inertias to nothing.
    """
    parameters = len(idim.parameters)
    rows, target, doubtful = [], [], []
    for k, phi in enumerate(idim.robot.nominal):
        if phi[0] <= 0.0:
            continue
        nominal = pseudo_inertia(phi)
        thick = nominal + phi[0] * GYRATION**2 * np.diag([1.0, 1.0, 1.0, 0.0])
        centre = nominal
        if np.linalg.eigvalsh(nominal)[0] <= 0.0:
            doubtful.append(idim.robot.links[k])
            values, vectors = np.linalg.eigh(thick)
            centre = thick = vectors * np.maximum(values, 1e-3 * values[-1]) @ vectors.T
        values, vectors = np.linalg.eigh(thick)
        values = np.maximum(values, 1e-9 * values[-1])
        root = vectors * values**-0.5 @ vectors.T
        block = np.zeros((10, parameters))
        block[:, 10 * k : 10 * k + 10] = svec(root @ PSEUDO_INERTIA_BASIS @ root).T / np.sqrt(2.0)
        rows.append(block)
        target.append(svec(root @ centre @ root) / np.sqrt(2.0))
    words = "inertials of the robot file, each link within its own size (pullback metric)"
    if doubtful:
        words += f"; inconsistent in the file and thickened: {', '.join(doubtful)}"
    if not rows:
        return no_prior(idim)
    return Prior(np.vstack(rows), np.concatenate(target), words)


def no_prior(idim: Idim) -> Prior:
    """Nothing is believed beforehand."""
    return Prior(np.zeros((0, len(idim.parameters))), np.zeros(0), "none")


PRIORS: dict[str, Callable[[Idim], Prior]] = {"nominal": nominal_prior, "none": no_prior}
"""Priors by name."""
