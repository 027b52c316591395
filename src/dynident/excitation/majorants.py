"""Bounds of the derivatives of torques over time, by the calculus of majorants.

A majorant of a quantity x(t) is a row ``(a_0, a_1, ...)`` with ``|d^k x / dt^k| <= a_k`` at
every instant, in the norm of vectors and matrices. Sums, products (Leibniz) and rotations
have majorants from those of their parts, so that bounds of the joints' motion become bounds
of the joints' torques: rigorous, though larger than what happens.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from math import comb

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.idim import Idim
from dynident.robot.closure import Closure
from dynident.robot.linkage import COUPLING, KINDS
from dynident.robot.model import KinematicLoop

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


STEADY, HASTE = 0.8, 1.3
"""What is supposed between the instants of a grid, and then shown: a loop's least singular value
over the grid's, and the passive joints' speeds over the grid's."""
GRIDS, PASSES = 4, 5
"""Halvings of that grid, and passes on each."""
BETWEEN = 0.1
"""By which no joint moves between its instants [rad or m]."""
UNKNOWN = 1e9
"""What is said of passive joints' speeds where nothing is proved."""


def bound_passive(
    closure: Closure, driven: Array, sample: Callable[[float], tuple[Array, ...]], step: float
) -> tuple[Array, Array]:
    """Bounds of how a closed chain moves with its driven joints.

    ``J_p dq_p = -J_a dq_a`` is differentiated again and again: each derivative of the passive
    joints' speeds is bounded by those before it, by majorants of J, and by the least singular value
    of J_p. What is supposed of that and of the speeds holds everywhere if it leads to
    changes so slow that it still holds a step away from each instant of the grid.

    Parameters
    ----------
    closure : Closure
    driven : ndarray, shape (5, n)
        Bounds of the driven joints' speeds and their derivatives.
    sample : callable
        Positions of all joints and three derivatives on a grid of some step.
    step : float
        With which to begin [s].

    Returns
    -------
    speeds : ndarray, shape (5, n)
        Of all joints' speeds and their derivatives.
    levers : ndarray, shape (3, n)
        Of the passive joints' speeds by each driven one's, as one vector, and two derivatives.
    """
    n, a, p = closure.robot.n, closure.driven, closure.passive
    speeds = driven.copy()
    for _ in range(GRIDS + 1):
        try:
            q, *seen = sample(step)
        except InputError:  # no chain closes there
            speeds[:, p] = UNKNOWN
            return speeds, np.full((3, n), UNKNOWN)
        stiff = float(closure.measure_stiffness(q).min())
        far, least = np.abs(q).max(axis=0) + BETWEEN, STEADY * stiff
        shown = np.array([np.abs(each).max(axis=0) for each in seen])
        speeds[1:, p] = np.inf
        speeds[0, p] = HASTE * (shown[0, p] + 1e-3 * shown[0, a].max())
        for _ in range(PASSES):  # again with what the grid shows of accelerations and jerks
            for k in range(1, 5):
                known = speeds.copy()
                known[k:, p] = 0.0
                J = bound_loops(closure, known, far)
                own, sized = norm(J[:, p]), norm(known[:, p])
                moved = sum((bound_product(J[:, j], speeds[:, j])[k] for j in a), 0.0)
                rest = sum(comb(k, i) * own[i] * sized[k - i] for i in range(1, k + 1))
                speeds[k, p] = np.minimum(speeds[k, p], (rest + moved) / least)
            between = shown + step**2 / 8.0 * speeds[2:]
            speeds[1:3, p] = np.minimum(speeds[1:3], between[1:])[:, p]
        near = shown[0, p] + step * speeds[1, p] <= speeds[0, p]
        if least + step * own[1] <= stiff and np.all(near) and np.all(step * speeds[0] <= BETWEEN):
            speeds[0, p] = np.minimum(speeds[0, p], between[0, p])
            break
        step *= 0.5
    else:
        speeds[:, p] = UNKNOWN
    J = bound_loops(closure, speeds, far)
    own, levers = norm(J[:, p]), np.zeros((3, n))
    for k in range(3):
        rest = sum(comb(k, i) * own[i] * levers[k - i] for i in range(1, k + 1))
        levers[k, a] = ((rest + J[k]) / least)[a]
    return speeds, levers


def norm(rows: Array) -> Array:
    """Of each row."""
    return np.asarray(np.sqrt(np.sum(rows**2, axis=1)))


def bound_loops(closure: Closure, speeds: Array, far: Array) -> Array:
    """Majorants of each joint's column of the loops' Jacobian, shape (5, n)."""
    robot, found = closure.robot, np.zeros((5, closure.robot.n))
    for loop in robot.loops:
        if loop.kind == COUPLING:
            found += bound_coupling(closure, loop, speeds, far)
            continue
        paths = [closure.paths[body] for body in loop.bodies]
        # what moves both sides moves neither against the other
        omegas = dict.fromkeys([0, *(k + 1 for k in set(paths[0]) & set(paths[1]))], np.zeros(5))
        own = [[k for k in path if k + 1 not in omegas] for path in paths]
        axes, arms, ends, turns = {}, {}, list[Array](), max(KINDS[loop.kind]) > 2
        reach: dict[int, Array] = {}
        for side, path in enumerate(own):
            for k in path:
                joint, above = robot.joints[k], omegas[robot.joints[k].parent]
                axes[k] = bound_turning(1.0, above)
                arms[k] = bound_turning(float(np.linalg.norm(joint.translation)), above)
                omegas[k + 1] = above
                if joint.kind == "revolute":
                    omegas[k + 1] = above + bound_product(axes[k][:5], speeds[:, k])
                else:
                    arms[k] = arms[k] + bound_product(axes[k], np.append(far[k], speeds[:, k]))
            turning = omegas[loop.bodies[side]]
            far_end = bound_turning(float(np.linalg.norm(loop.translations[side])), turning)
            for k in reversed(path):  # from the joint to where both frames are
                reach[k], far_end = far_end, far_end + arms[k]
            ends.append(far_end)
        frame = bound_turning(1.0, omegas[loop.bodies[0]])
        for k in chain(*own):
            each = axes[k]
            if robot.joints[k].kind == "revolute":
                # in a plane they may be apart along its normal
                lever = ends[0] + ends[1] if loop.kind == "planar" else reach[k]
                each = bound_product(axes[k], lever) + closure.length * turns * axes[k]
            found[:, k] += bound_product(frame, each)[:5]
    return found


def bound_coupling(closure: Closure, loop: KinematicLoop, speeds: Array, far: Array) -> Array:
    """The same of a joint that follows another."""
    found, (follows, leads) = np.zeros((5, closure.robot.n)), (k - 1 for k in loop.bodies)
    unit = closure.length if closure.robot.joints[follows].kind == "revolute" else 1.0
    found[0, follows], slope = unit, np.zeros(6)
    x = np.append(far[leads], speeds[:, leads])
    for c in np.abs(np.polynomial.polynomial.polyder(np.array(loop.polynomial)))[::-1]:
        slope = bound_product(slope, x)
        slope[0] += c
    found[:, leads] += unit * slope[:5]
    return found
