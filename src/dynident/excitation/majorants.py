"""Bounds of the derivatives of torques over time, by the calculus of majorants.

A majorant of a quantity x(t) is a row ``(a_0, a_1, ...)`` with ``|d^k x / dt^k| <= a_k`` at
every instant, in the norm of vectors and matrices. Sums, products (Leibniz) and rotations
have majorants from those of their parts, so that bounds of the joints' motion become bounds
of the joints' torques: rigorous, though larger than what happens.
"""

from __future__ import annotations

from math import comb

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.idim import Idim

ORDERS = 3
"""Derivatives 0, 1 and 2 of the torque."""


def bound_product(a: Array, b: Array) -> Array:
    """Of a product, dot or cross, of two quantities."""
    m = min(len(a), len(b))
    return np.array([sum(comb(k, i) * a[i] * b[k - i] for i in range(k + 1)) for k in range(m)])


def bound_turning(size: float, omega: Array, terms: float = 1.0) -> Array:
    """Of what stands still in a frame of angular velocity omega.

    A vector of some size, ``x' = omega x x``; of two terms an inertia of some norm,
    ``I' = [omega] I - I [omega]``.
    """
    found = [size]
    for k in range(len(omega)):
        found.append(terms * sum(comb(k, i) * omega[i] * found[k - i] for i in range(k + 1)))
    return np.array(found)


def bound_torques(idim: Idim, phi: Array, speeds: Array, far: Array) -> Array:
    """Bounds of the rigid bodies' torques and their first two derivatives.

    Parameters
    ----------
    idim : Idim
        On a fixed base.
    phi : ndarray, shape (bodies, 10)
    speeds : ndarray, shape (5, n)
        Bounds of the magnitudes of the joints' speeds and their four derivatives; the last
        may be missing from no quantity below.
    far : ndarray, shape (n,)
        Largest magnitude of the positions, of which only sliding joints need any [m].

    Returns
    -------
    ndarray, shape (n + 6, 3)
        Row j: ``|tau_j|, |tau_j'|, |tau_j''|``; then those of the force on the base and of
        the moment about its origin, three times each.
    """
    tree, n = idim.tree, idim.robot.n
    omegas: list[Array] = []
    places: list[Array] = []
    axes, arms = [], []
    for b in range(n):
        up = int(tree.parent[b])
        above = omegas[up] if up >= 0 else np.zeros(5)
        axis = bound_turning(1.0, above)  # five derivatives
        arm = bound_turning(float(np.linalg.norm(tree.translation[b])), above)
        if tree.kind[b] == 0:
            omegas.append(above + bound_product(axis[:5], speeds[:, b]))
        else:
            omegas.append(above)
            slid = np.concatenate([[far[b]], speeds[:, b]])
            arm = arm + bound_product(axis, slid)
        axes.append(axis)
        arms.append(arm)
        places.append((places[up] if up >= 0 else np.zeros(6)) + arm)
    gravity = np.zeros(ORDERS)
    gravity[0] = float(np.linalg.norm(tree.gravity))
    force, moment = [], []
    for b in range(n):
        mass = abs(float(phi[b, 0]))
        first = float(np.linalg.norm(phi[b, 1:4]))
        xx, xy, yy, xz, yz, zz = phi[b, 4:]
        inertia = float(np.linalg.norm([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], 2))
        h = bound_turning(first, omegas[b])
        acceleration = places[b][2:5] + gravity
        force.append(mass * acceleration + h[2:5])
        spin = bound_product(bound_turning(inertia, omegas[b][:4], 2.0), omegas[b])  # of I omega
        moment.append(spin[1:4] + bound_product(h[:3], acceleration))
    found = np.zeros((n + 6, ORDERS))
    for b in range(n - 1, -1, -1):
        acting = moment[b] if tree.kind[b] == 0 else force[b]
        found[b] = bound_product(axes[b][:3], acting)
        up = int(tree.parent[b])
        lever = moment[b] + bound_product(arms[b][:3], force[b])
        if up >= 0:
            force[up] = force[up] + force[b]
            moment[up] = moment[up] + lever
        else:
            found[n : n + 3] += force[b]
            found[n + 3 :] += lever
    return found
