"""Derivatives of a weighted sum of the regressor's entries by the motion.

``f = sum_jk V_jk W_jk(q, dq, ddq)`` is the sum over the rows j of the torque that bodies
with the parameters ``V_j`` would ask of joint j: its gradient is made of row j of the
derivatives of n inverse dynamics, one for each row. So a scalar of the regressor, such as
the determinant of an information matrix, has its exact gradient at the price of those.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.jit import jit
from dynident.dynamics.spatial import (
    accelerate_bodies,
    gather_subtrees,
    move_bodies,
    write_body_force,
    write_inertia_in_world,
)
from dynident.dynamics.tangent import linearise_dynamics
from dynident.dynamics.tree import Tree


@jit
def _add_regressor_derivatives(tree, V_of, q, dq, ddq, by_q, by_dq, by_ddq):  # type: ignore[no-untyped-def]
    kind, parent, row = tree.kind, tree.parent, tree.row
    path, lengths, gravity = tree.path, tree.path_length, tree.gravity
    bodies, dof = len(kind), ddq.shape[1]
    R, p, S = np.empty((bodies, 3, 3)), np.empty((bodies, 3)), np.empty((dof, 6))
    V, A, F = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 6))
    own, inertia, extra = np.empty((bodies, 10)), np.empty((bodies, 10)), np.empty((bodies, 6))
    f, M, tau = np.empty(6), np.empty((dof, dof)), np.empty(dof)
    B, T = np.empty((bodies, 12)), np.empty((3, dof, 6))
    K, D = np.empty((dof, dof)), np.empty((dof, dof))
    for t in range(len(q)):
        move_bodies(
            kind, parent, row, tree.rotation, tree.translation, tree.axis, gravity, V_of[t, 0],
            q[t], dq[t], R, p, S, V, A, F, own,
        )  # fmt: skip
        accelerate_bodies(kind, parent, row, S, V, own, ddq[t], extra, A, F)
        for j in range(dof):
            for b in range(bodies):
                write_inertia_in_world(V_of[t, j], R, p, b, own)
                write_body_force(own, V, A, b, F)
            gather_subtrees(kind, parent, row, path, lengths, S, F, own, inertia, f, M, tau)
            linearise_dynamics(
                kind, parent, row, path, lengths, gravity, S, V, A, F, own, inertia, B, T, f, K, D
            )
            for k in range(dof):
                by_q[t, k] += K[j, k]
                by_dq[t, k] += D[j, k]
                by_ddq[t, k] += M[j, k]


def differentiate_regressor_sum(
    tree: Tree, weights: Array, q: Array, dq: Array, ddq: Array
) -> tuple[Array, Array, Array]:
    """Gradient of ``sum_jk weights_jk W_jk`` by position, speed and acceleration.

    Parameters
    ----------
    tree : Tree
        On a fixed base.
    weights : ndarray, shape (samples, dof, bodies, 10)
        Of the entries of the regressor.
    q, dq, ddq : ndarray, shape (samples, dof)

    Returns
    -------
    by_q, by_dq, by_ddq : ndarray, shape (samples, dof)
    """
    found = np.zeros((3, len(q), tree.dof))
    _add_regressor_derivatives(tree, *to_kernel_arrays(weights, q, dq, ddq), *found)
    return found[0], found[1], found[2]
