"""Forward dynamics and derivatives of the inverse dynamics, batched over samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.bundle import Bundle, keep_bundle
from dynident.core.errors import ComputationError
from dynident.core.jit import entry
from dynident.dynamics.cholesky import factorise_ldl, solve_ldl
from dynident.dynamics.spatial import accelerate_bodies, find_room, gather_subtrees, move_bodies
from dynident.dynamics.tangent import linearise_dynamics
from dynident.dynamics.tree import Tree


@entry
def _fill_accelerations(tree, phi, rotors, motion, w, M, bias, out):  # type: ignore[no-untyped-def]
    # composite bodies and a factorisation, and not the articulated-body algorithm, which has no
    # place for rotors of coupled drives: their inertia couples joints
    dof = len(rotors)
    for t in range(len(motion.q)):
        ddq = out[t]
        move_bodies(tree, phi, motion.q[t], motion.dq[t], w)
        gather_subtrees(tree, w, M, bias)
        for i in range(dof):
            ddq[i] = motion.last[t, i] - bias[i]
            for j in range(dof):
                M[i, j] += rotors[i, j]
        if factorise_ldl(M) >= 0:
            return t
        solve_ldl(M, ddq)
    return -1


@entry
def _fill_derivatives(tree, phi, motion, w, M, bias, K, D):  # type: ignore[no-untyped-def]
    for t in range(len(motion.q)):
        move_bodies(tree, phi, motion.q[t], motion.dq[t], w)
        gather_subtrees(tree, w, M[t], bias)
        accelerate_bodies(tree, motion.last[t], w)
        linearise_dynamics(tree, w, K[t], D[t])


class StateBatch(NamedTuple):
    """A batch of states, with their torques or their accelerations, as kernels read it."""

    q: Array
    dq: Array
    last: Array


def bundle_states(q: Array, dq: Array, last: Array) -> Bundle:
    """States for kernels."""
    return Bundle(StateBatch(*to_kernel_arrays(q, dq, last)))


def solve_forward_dynamics(
    tree: Tree, phi: Array, q: Array, dq: Array, tau: Array, rotors: Array | None = None
) -> Array:
    """Accelerations of the rigid bodies under given torques (ardiani2024, eq. 11), (samples, dof).

    Parameters
    ----------
    phi : ndarray, shape (bodies, 10)
        Inertial parameters whose mass matrix is positive definite.
    q, dq, tau : ndarray, shapes (samples, nq), (samples, dof), (samples, dof)
    rotors : ndarray, shape (dof, dof), optional
        Rotor inertias seen at the joints, added to the mass matrix.
    """
    ddq = np.empty((len(q), tree.dof))
    extra = np.zeros((tree.dof, tree.dof)) if rotors is None else rotors
    M, bias = np.empty((tree.dof, tree.dof)), np.empty(tree.dof)
    failed = _fill_accelerations(
        keep_bundle(tree), np.array(phi, dtype=float), np.array(extra, dtype=float),
        bundle_states(q, dq, tau), find_room(tree), M, bias, ddq,
    )  # fmt: skip
    if failed >= 0:
        raise ComputationError(f"the mass matrix of sample {failed} is not positive definite")
    return ddq


def differentiate_dynamics(
    tree: Tree, phi: Array, q: Array, dq: Array, ddq: Array
) -> tuple[Array, Array, Array]:
    """Derivatives of the inverse dynamics by configuration, velocity and acceleration.

    Shapes (samples, dof, dof); the last are the mass matrices. A free-flying base is turned and
    moved along its own axes. Arguments are those of `evaluate_inverse_dynamics`.
    """
    K, D, M = np.empty((3, len(q), tree.dof, tree.dof))
    _fill_derivatives(
        keep_bundle(tree), np.array(phi, dtype=float), bundle_states(q, dq, ddq),
        find_room(tree), M, np.empty(tree.dof), K, D,
    )  # fmt: skip
    return K, D, M
