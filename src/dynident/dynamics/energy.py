"""Kinetic and potential energy, linear in the inertial parameters: no acceleration is needed.

Of a body with velocity v of its frame's origin and angular velocity w, both in its own frame,
``T = m v.v / 2 + h.(v x w) + w.I w / 2`` and ``U = -g.(m p + R h)`` (Gautier and Khalil 1988).
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.kinematics import evaluate_joint_functions
from dynident.dynamics.tree import REVOLUTE, Tree


def evaluate_energy_columns(tree: Tree, q: Array, dq: Array) -> Array:
    """Energy of a fixed robot's bodies, a column an inertial parameter, (samples, 10 bodies).

    ``E`` with ``T + U = E pi`` [J]; U is zero where a body's frame is at the base's origin.
    """
    samples, found = len(q), np.empty((len(q), 10 * tree.bodies))
    _, position, trigonometry = evaluate_joint_functions(q, floating=False)
    turns = np.empty((tree.bodies, samples, 3, 3))  # from each body to the world
    places, v, w = (np.empty((tree.bodies, samples, 3)) for _ in range(3))
    still = np.tile(np.eye(3), (samples, 1, 1)), *np.zeros((3, samples, 3))
    for b, parent in enumerate(tree.parent):
        up = still if parent < 0 else (turns[parent], places[parent], v[parent], w[parent])
        fixed, axis, rate = tree.rotation[b], tree.axis[b], dq[:, tree.row[b], None]
        if tree.kind[b] == REVOLUTE:
            sine, versine = trigonometry[:, :, b, None, None].swapaxes(0, 1)
            R = fixed[0] + sine * fixed[1] + versine * fixed[2]
            p, slides, spins = tree.translation[b], 0.0 * axis, axis
        else:
            R = np.broadcast_to(fixed[0], (samples, 3, 3))
            p = tree.translation[b] + position[:, b, None] * (fixed[0] @ axis)
            slides, spins = axis, 0.0 * axis
        turns[b] = up[0] @ R
        places[b] = up[1] + np.einsum("tij,tj->ti", up[0], np.broadcast_to(p, (samples, 3)))
        v[b] = np.einsum("tji,tj->ti", R, up[2] + np.cross(up[3], p)) + rate * slides
        w[b] = np.einsum("tji,tj->ti", R, up[3]) + rate * spins
        own = found[:, 10 * b : 10 * b + 10]
        own[:, 0] = 0.5 * np.sum(v[b] ** 2, axis=1) - places[b] @ tree.gravity
        own[:, 1:4] = np.cross(v[b], w[b]) - tree.gravity @ turns[b]
        x, y, z = w[b].T
        moments = (0.5 * x**2, x * y, 0.5 * y**2, x * z, y * z, 0.5 * z**2)
        own[:, 4:] = np.column_stack(moments)
    return found
