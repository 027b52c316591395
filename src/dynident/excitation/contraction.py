"""Derivatives of a weighted sum of the regressor's entries by the motion.

``f = sum_jk V_jk W_jk(q, dq, ddq)`` is the sum over the rows j of the torque that bodies
with the parameters ``V_j`` would ask of joint j: its gradient is made of row j of the
derivatives of n inverse dynamics, one for each row. So a scalar of the regressor, such as
the determinant of an information matrix, has its exact gradient at the price of those.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.bundle import keep_bundle
from dynident.core.jit import entry
from dynident.dynamics.forward import bundle_states
from dynident.dynamics.spatial import (
    accelerate_bodies,
    find_room,
    gather_subtrees,
    move_bodies,
    write_body_force,
    write_inertia_in_world,
)
from dynident.dynamics.tangent import linearise_dynamics
from dynident.dynamics.tree import Tree


@entry
def _add_regressor_derivatives(tree, V_of, motion, w, M, tau, K, D, by_q, by_dq, by_ddq):  # type: ignore[no-untyped-def]
    dof = len(tau)
    for t in range(len(motion.q)):
        move_bodies(tree, V_of[t, 0], motion.q[t], motion.dq[t], w)
        accelerate_bodies(tree, motion.last[t], w)
        for j in range(dof):
            for b in range(len(w.p)):
                write_inertia_in_world(V_of[t, j], w.R, w.p, b, w.own)
                write_body_force(w.own, w.V, w.A, b, w.F)
            gather_subtrees(tree, w, M, tau)
            linearise_dynamics(tree, w, K, D)
            for k in range(dof):
                by_q[t, k] += K[j, k]
                by_dq[t, k] += D[j, k]
                by_ddq[t, k] += M[j, k]


def differentiate_regressor_sum(
    tree: Tree, weights: Array, q: Array, dq: Array, ddq: Array
) -> tuple[Array, Array, Array]:
    """Gradient of ``sum_jk weights_jk W_jk`` by position, speed and acceleration.

    Of a tree on a fixed base; the weights are of the regressor's entries, shape (samples, dof,
    bodies, 10), all others (samples, dof).
    """
    found = np.zeros((3, len(q), tree.dof))
    M, K, D = np.empty((3, tree.dof, tree.dof))
    states = bundle_states(q, dq, ddq)
    _add_regressor_derivatives(
        keep_bundle(tree), np.array(weights, dtype=float), states, find_room(tree), M,
        np.empty(tree.dof), K, D, *found,
    )  # fmt: skip
    return found[0], found[1], found[2]
