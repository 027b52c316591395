"""Mass matrices, batched over samples: composite bodies (Featherstone 2008, section 6.2).

A joint's column is what its unit acceleration takes of all that the joint carries, and what its
ancestors bear of that.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.bundle import keep_bundle
from dynident.core.jit import inner, jit, wide
from dynident.dynamics.inverse import LANES, SLOTS, pass_load, place_side_by_side, take_torques
from dynident.dynamics.kinematics import evaluate_joint_functions
from dynident.dynamics.tree import Tree


@jit
def _fill_mass_matrices(tree, phi, quaternion, position, trigonometry, M):  # type: ignore[no-untyped-def]
    bodies, samples = len(tree.kind), len(position)
    S = np.zeros((bodies, SLOTS, LANES))
    C = np.empty((bodies, 10, LANES))
    unit = np.zeros(6)
    for start in range(0, samples, LANES):
        count = min(LANES, samples - start)
        place_side_by_side(tree, quaternion, position, trigonometry, start, count, S)
        for b in range(bodies):
            for i in range(10):
                C[b, i] = phi[b, i]
        for b in range(bodies - 1, -1, -1):
            row, first = tree.row[b], 3 if tree.kind[b] == 0 else 0
            for i in range(6 if tree.kind[b] == 2 else 1):
                unit[:] = 0.0
                if tree.kind[b] == 2:
                    unit[i] = 1.0
                else:
                    unit[first : first + 3] = tree.axis[b]
                _push_body(C[b], unit, S[b])
                _bear_load(tree, b, start, count, S, M[:, row + i])
            if tree.parent[b] >= 0:
                _pass_inertia(C[b], S[b], C[tree.parent[b]])
        for t in range(start, start + count):
            for i in range(M.shape[1]):
                for j in range(i):
                    M[t, j, i] = M[t, i, j]


@inner
def _bear_load(tree, b, start, count, S, column):  # type: ignore[no-untyped-def]
    """What a body's joint and those before it bear of its load, into a column of the matrices."""
    take_torques(b, start, count, tree.kind[b], tree.axis, tree.row[b], S[b], column)
    up = tree.parent[b]
    while up >= 0:
        # the force and the moment on a body, which the parent has none of yet
        for i in range(21, SLOTS):
            for k in range(LANES):
                S[up, i, k] = 0.0
        pass_load(S[b], S[up])
        b, up = up, tree.parent[up]
        take_torques(b, start, count, tree.kind[b], tree.axis, tree.row[b], S[b], column)


@wide
def _push_body(C, unit, B):  # type: ignore[no-untyped-def]
    """Force and moment about its origin that give a composite body an acceleration."""
    if C.shape[1] != LANES or B.shape[1] != LANES:
        return
    l0, l1, l2, s0, s1, s2 = unit[0], unit[1], unit[2], unit[3], unit[4], unit[5]
    for k in range(LANES):
        m, h0, h1, h2 = C[0, k], C[1, k], C[2, k], C[3, k]
        B[21, k] = m * l0 + s1 * h2 - s2 * h1
        B[22, k] = m * l1 + s2 * h0 - s0 * h2
        B[23, k] = m * l2 + s0 * h1 - s1 * h0
        B[24, k] = C[4, k] * s0 + C[5, k] * s1 + C[7, k] * s2 + h1 * l2 - h2 * l1
        B[25, k] = C[5, k] * s0 + C[6, k] * s1 + C[8, k] * s2 + h2 * l0 - h0 * l2
        B[26, k] = C[7, k] * s0 + C[8, k] * s1 + C[9, k] * s2 + h0 * l1 - h1 * l0


@wide
def _pass_inertia(C, B, P):  # type: ignore[no-untyped-def]
    """Add a composite body, in its parent's axes and about the parent's origin, to the parent."""
    if C.shape[1] != LANES or B.shape[1] != LANES or P.shape[1] != LANES:
        return
    for k in range(LANES):
        r00, r01, r02 = B[0, k], B[1, k], B[2, k]
        r10, r11, r12 = B[3, k], B[4, k], B[5, k]
        r20, r21, r22 = B[6, k], B[7, k], B[8, k]
        m, x, y, z = C[0, k], C[1, k], C[2, k], C[3, k]
        h0 = r00 * x + r01 * y + r02 * z
        h1 = r10 * x + r11 * y + r12 * z
        h2 = r20 * x + r21 * y + r22 * z
        xx, xy, yy, xz, yz, zz = C[4, k], C[5, k], C[6, k], C[7, k], C[8, k], C[9, k]
        a0 = r00 * xx + r01 * xy + r02 * xz
        a1 = r00 * xy + r01 * yy + r02 * yz
        a2 = r00 * xz + r01 * yz + r02 * zz
        b0 = r10 * xx + r11 * xy + r12 * xz
        b1 = r10 * xy + r11 * yy + r12 * yz
        b2 = r10 * xz + r11 * yz + r12 * zz
        c0 = r20 * xx + r21 * xy + r22 * xz
        c1 = r20 * xy + r21 * yy + r22 * yz
        c2 = r20 * xz + r21 * yz + r22 * zz
        p0, p1, p2 = B[9, k], B[10, k], B[11, k]
        # the parallel axes: h + m p, and I + (2 h.p + m p.p) 1 - h p^T - p h^T - m p p^T
        g0, g1, g2 = h0 + m * p0, h1 + m * p1, h2 + m * p2
        x, y, z = h0 * p0 + p0 * g0, h1 * p1 + p1 * g1, h2 * p2 + p2 * g2
        P[0, k] += m
        P[1, k] += g0
        P[2, k] += g1
        P[3, k] += g2
        P[4, k] += a0 * r00 + a1 * r01 + a2 * r02 + y + z
        P[5, k] += a0 * r10 + a1 * r11 + a2 * r12 - h0 * p1 - p0 * g1
        P[6, k] += b0 * r10 + b1 * r11 + b2 * r12 + x + z
        P[7, k] += a0 * r20 + a1 * r21 + a2 * r22 - h0 * p2 - p0 * g2
        P[8, k] += b0 * r20 + b1 * r21 + b2 * r22 - h1 * p2 - p1 * g2
        P[9, k] += c0 * r20 + c1 * r21 + c2 * r22 + x + y


def compute_mass_matrix(tree: Tree, phi: Array, q: Array) -> Array:
    """Mass matrices of bodies phi (bodies, 10) at q (samples, nq), shape (samples, dof, dof)."""
    M = np.zeros((len(q), tree.dof, tree.dof))
    functions = evaluate_joint_functions(q, bool(tree.kind[0] == 2))
    _fill_mass_matrices(keep_bundle(tree), *to_kernel_arrays(phi), *functions, M)
    return M
