"""Forward dynamics and derivatives of the inverse dynamics, batched over samples."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.errors import ComputationError
from dynident.core.jit import jit
from dynident.dynamics.cholesky import factorise_ldl, solve_ldl
from dynident.dynamics.spatial import accelerate_bodies, gather_subtrees, move_bodies
from dynident.dynamics.tangent import linearise_dynamics
from dynident.dynamics.tree import Tree


@jit
def _fill_accelerations(tree, phi, rotors, q, dq, tau, ddq):  # type: ignore[no-untyped-def]
    kind, parent, row = tree.kind, tree.parent, tree.row
    path, lengths = tree.path, tree.path_length
    bodies, dof = len(kind), len(rotors)
    R, p, S = np.empty((bodies, 3, 3)), np.empty((bodies, 3)), np.empty((dof, 6))
    V, A, F = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 6))
    own, inertia = np.empty((bodies, 10)), np.empty((bodies, 10))
    f, M, bias = np.empty(6), np.empty((dof, dof)), np.empty(dof)
    for t in range(len(q)):
        move_bodies(
            kind, parent, row, tree.rotation, tree.translation, tree.axis, tree.gravity, phi,
            q[t], dq[t], R, p, S, V, A, F, own,
        )  # fmt: skip
        gather_subtrees(kind, parent, row, path, lengths, S, F, own, inertia, f, M, bias)
        M += rotors
        if factorise_ldl(M) >= 0:
            return t
        for i in range(dof):
            ddq[t, i] = tau[t, i] - bias[i]
        solve_ldl(M, ddq[t])
    return -1


@jit
def _fill_derivatives(tree, phi, q, dq, ddq, K, D):  # type: ignore[no-untyped-def]
    kind, parent, row = tree.kind, tree.parent, tree.row
    path, lengths, gravity = tree.path, tree.path_length, tree.gravity
    bodies, dof = len(kind), ddq.shape[1]
    R, p, S = np.empty((bodies, 3, 3)), np.empty((bodies, 3)), np.empty((dof, 6))
    V, A, F = np.empty((bodies, 6)), np.empty((bodies, 6)), np.empty((bodies, 6))
    own, inertia, extra = np.empty((bodies, 10)), np.empty((bodies, 10)), np.empty((bodies, 6))
    f, M, bias = np.empty(6), np.empty((dof, dof)), np.empty(dof)
    B, T = np.empty((bodies, 12)), np.empty((3, dof, 6))
    for t in range(len(q)):
        move_bodies(
            kind, parent, row, tree.rotation, tree.translation, tree.axis, gravity, phi,
            q[t], dq[t], R, p, S, V, A, F, own,
        )  # fmt: skip
        gather_subtrees(kind, parent, row, path, lengths, S, F, own, inertia, f, M, bias)
        accelerate_bodies(kind, parent, row, S, V, own, ddq[t], extra, A, F)
        linearise_dynamics(
            kind, parent, row, path, lengths, gravity, S, V, A, F, own, inertia, B, T, f, K[t], D[t]
        )


def solve_forward_dynamics(
    tree: Tree, phi: Array, q: Array, dq: Array, tau: Array, rotors: Array | None = None
) -> Array:
    """Accelerations of the rigid bodies under given torques (ardiani2024, eq. 11).

    Parameters
    ----------
    phi : ndarray, shape (bodies, 10)
        Inertial parameters whose mass matrix is positive definite.
    q, dq, tau : ndarray, shapes (samples, nq), (samples, dof), (samples, dof)
    rotors : ndarray, shape (dof, dof), optional
        Rotor inertias seen at the joints, added to the mass matrix.

    Returns
    -------
    ndarray, shape (samples, dof)
    """
    ddq = np.empty((len(q), tree.dof))
    extra = np.zeros((tree.dof, tree.dof)) if rotors is None else np.ascontiguousarray(rotors)
    q, dq, tau = to_kernel_arrays(q, dq, tau)
    failed = _fill_accelerations(tree, np.array(phi, dtype=float), extra, q, dq, tau, ddq)
    if failed >= 0:
        raise ComputationError(f"the mass matrix of sample {failed} is not positive definite")
    return ddq


def differentiate_dynamics(
    tree: Tree, phi: Array, q: Array, dq: Array, ddq: Array
) -> tuple[Array, Array]:
    """Derivatives of the inverse dynamics by configuration and velocity.

    Parameters
    ----------
    phi : ndarray, shape (bodies, 10)
    q, dq, ddq : ndarray, shapes (samples, nq), (samples, dof), (samples, dof)

    Returns
    -------
    by_q, by_dq : ndarray, shape (samples, dof, dof)
        A free-flying base is turned and moved along its own axes.
    """
    K, D = np.empty((2, len(q), tree.dof, tree.dof))
    q, dq, ddq = to_kernel_arrays(q, dq, ddq)
    _fill_derivatives(tree, np.array(phi, dtype=float), q, dq, ddq, K, D)
    return K, D
