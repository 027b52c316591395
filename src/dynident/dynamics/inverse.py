"""Inverse dynamics, mass matrix and bias torques, batched over samples."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.bundle import keep_bundle
from dynident.core.jit import inner, jit
from dynident.dynamics.kinematics import (
    evaluate_joint_functions,
    write_base_motion,
    write_base_rotation,
    write_body_motion,
    write_joint_placement,
)
from dynident.dynamics.tree import Tree


@jit
def _fill_torques(tree, phi, quaternion, position, trigonometry, dq, ddq, tau):  # type: ignore[no-untyped-def]
    kind, parent, row, axis, g = tree.kind, tree.parent, tree.row, tree.axis, tree.gravity
    rotation, translation = tree.rotation, tree.translation
    bodies = len(kind)
    floating = quaternion.shape[1] == 4
    w = np.empty((bodies, 3))
    al = np.empty((bodies, 3))
    a = np.empty((bodies, 3))
    f = np.empty((bodies, 3))
    n = np.empty((bodies, 3))
    R = np.empty((bodies, 3, 3))
    p = np.empty((bodies, 3))
    for t in range(len(dq)):
        for b in range(bodies):
            if kind[b] == 2:
                write_base_rotation(quaternion, t, R)
                write_base_motion(t, g, dq, ddq, R, w, al, a)
            else:
                j = b - 1 if floating else b
                s, v = trigonometry[t, 0, j], trigonometry[t, 1, j]
                write_joint_placement(
                    b, kind[b], rotation, translation, axis, s, v, position[t, j], R, p
                )
                rate, acceleration = dq[t, row[b]], ddq[t, row[b]]
                write_body_motion(
                    b, parent[b], kind[b], axis, g, R, p, rate, acceleration, w, al, a
                )
            m, h0, h1, h2 = phi[b, 0], phi[b, 1], phi[b, 2], phi[b, 3]
            xx, xy, yy = phi[b, 4], phi[b, 5], phi[b, 6]
            xz, yz, zz = phi[b, 7], phi[b, 8], phi[b, 9]
            w0, w1, w2 = w[b, 0], w[b, 1], w[b, 2]
            e0, e1, e2 = al[b, 0], al[b, 1], al[b, 2]
            a0, a1, a2 = a[b, 0], a[b, 1], a[b, 2]
            c0, c1, c2 = w1 * h2 - w2 * h1, w2 * h0 - w0 * h2, w0 * h1 - w1 * h0
            f[b, 0] = m * a0 + e1 * h2 - e2 * h1 + w1 * c2 - w2 * c1
            f[b, 1] = m * a1 + e2 * h0 - e0 * h2 + w2 * c0 - w0 * c2
            f[b, 2] = m * a2 + e0 * h1 - e1 * h0 + w0 * c1 - w1 * c0
            k0 = xx * w0 + xy * w1 + xz * w2
            k1 = xy * w0 + yy * w1 + yz * w2
            k2 = xz * w0 + yz * w1 + zz * w2
            n[b, 0] = xx * e0 + xy * e1 + xz * e2 + w1 * k2 - w2 * k1 + h1 * a2 - h2 * a1
            n[b, 1] = xy * e0 + yy * e1 + yz * e2 + w2 * k0 - w0 * k2 + h2 * a0 - h0 * a2
            n[b, 2] = xz * e0 + yz * e1 + zz * e2 + w0 * k1 - w1 * k0 + h0 * a1 - h1 * a0
        for b in range(bodies - 1, -1, -1):
            if kind[b] == 2:
                for i in range(3):
                    tau[t, i] = f[b, i]
                    tau[t, 3 + i] = n[b, i]
                continue
            x0, x1, x2 = axis[b, 0], axis[b, 1], axis[b, 2]
            if kind[b] == 0:
                tau[t, row[b]] = x0 * n[b, 0] + x1 * n[b, 1] + x2 * n[b, 2]
            else:
                tau[t, row[b]] = x0 * f[b, 0] + x1 * f[b, 1] + x2 * f[b, 2]
            up = parent[b]
            if up >= 0:
                f0, f1, f2 = f[b, 0], f[b, 1], f[b, 2]
                n0, n1, n2 = n[b, 0], n[b, 1], n[b, 2]
                u0 = R[b, 0, 0] * f0 + R[b, 0, 1] * f1 + R[b, 0, 2] * f2
                u1 = R[b, 1, 0] * f0 + R[b, 1, 1] * f1 + R[b, 1, 2] * f2
                u2 = R[b, 2, 0] * f0 + R[b, 2, 1] * f1 + R[b, 2, 2] * f2
                f[up, 0] += u0
                f[up, 1] += u1
                f[up, 2] += u2
                for i in range(3):
                    n[up, i] += R[b, i, 0] * n0 + R[b, i, 1] * n1 + R[b, i, 2] * n2
                n[up, 0] += p[b, 1] * u2 - p[b, 2] * u1
                n[up, 1] += p[b, 2] * u0 - p[b, 0] * u2
                n[up, 2] += p[b, 0] * u1 - p[b, 1] * u0


def evaluate_inverse_dynamics(tree: Tree, phi: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torques of the rigid bodies (recursive Newton-Euler).

    Parameters
    ----------
    phi : ndarray, shape (bodies, 10)
        Inertial parameters, which need not be consistent: the map is linear in them.
    q, dq, ddq : ndarray, shapes (samples, nq), (samples, dof), (samples, dof)

    Returns
    -------
    ndarray, shape (samples, dof)
        ``M(q) ddq + N(q, dq)`` of ardiani2024, eq. (1), without friction and rotors.
    """
    tau = np.empty((len(q), tree.dof))
    floating = bool(tree.kind[0] == 2)
    phi, dq, ddq = to_kernel_arrays(phi, dq, ddq)
    _fill_torques(keep_bundle(tree), phi, *evaluate_joint_functions(q, floating), dq, ddq, tau)
    return tau


def compute_bias_torque(tree: Tree, phi: Array, q: Array, dq: Array) -> Array:
    """Coriolis, centrifugal and gravity torques N(q, dq), shape (samples, dof)."""
    return evaluate_inverse_dynamics(tree, phi, q, dq, np.zeros_like(dq))


@jit
def _fill_mass_matrices(tree, phi, quaternion, position, trigonometry, out):  # type: ignore[no-untyped-def]
    kind, axis, rotation, translation = tree.kind, tree.axis, tree.rotation, tree.translation
    bodies = len(kind)
    floating = quaternion.shape[1] == 4
    R = np.empty((bodies, 3, 3))
    p = np.zeros((bodies, 3))
    c = np.empty((bodies, 10))
    for t in range(len(out)):
        out[t] = 0.0
        for b in range(bodies):
            for i in range(10):
                c[b, i] = phi[b, i]
            if kind[b] == 2:
                write_base_rotation(quaternion, t, R)
            else:
                j = b - 1 if floating else b
                s, v = trigonometry[t, 0, j], trigonometry[t, 1, j]
                write_joint_placement(
                    b, kind[b], rotation, translation, axis, s, v, position[t, j], R, p
                )
        for b in range(bodies - 1, -1, -1):
            parent = tree.parent[b]
            if parent >= 0:
                _add_to_parent(R, p, b, parent, c)
            m, h0, h1, h2 = c[b, 0], c[b, 1], c[b, 2], c[b, 3]
            for k in range(6 if kind[b] == 2 else 1):
                # the unit motion of this joint, as a screw in its own frame
                s0 = s1 = s2 = l0 = l1 = l2 = 0.0
                if kind[b] == 0:
                    s0, s1, s2 = axis[b, 0], axis[b, 1], axis[b, 2]
                elif kind[b] == 1:
                    l0, l1, l2 = axis[b, 0], axis[b, 1], axis[b, 2]
                else:
                    l0, l1, l2 = 1.0 * (k == 0), 1.0 * (k == 1), 1.0 * (k == 2)
                    s0, s1, s2 = 1.0 * (k == 3), 1.0 * (k == 4), 1.0 * (k == 5)
                # force and moment that give it to this body and all that it carries
                f0 = m * l0 + s1 * h2 - s2 * h1
                f1 = m * l1 + s2 * h0 - s0 * h2
                f2 = m * l2 + s0 * h1 - s1 * h0
                n0 = c[b, 4] * s0 + c[b, 5] * s1 + c[b, 7] * s2 + h1 * l2 - h2 * l1
                n1 = c[b, 5] * s0 + c[b, 6] * s1 + c[b, 8] * s2 + h2 * l0 - h0 * l2
                n2 = c[b, 7] * s0 + c[b, 8] * s1 + c[b, 9] * s2 + h0 * l1 - h1 * l0
                column = tree.row[b] + k
                d = b
                while True:
                    x0, x1, x2 = axis[d, 0], axis[d, 1], axis[d, 2]
                    row = tree.row[d]
                    if kind[d] == 0:
                        out[t, row, column] = x0 * n0 + x1 * n1 + x2 * n2
                        out[t, column, row] = out[t, row, column]
                    elif kind[d] == 1:
                        out[t, row, column] = x0 * f0 + x1 * f1 + x2 * f2
                        out[t, column, row] = out[t, row, column]
                    else:
                        out[t, 0, column] = out[t, column, 0] = f0
                        out[t, 1, column] = out[t, column, 1] = f1
                        out[t, 2, column] = out[t, column, 2] = f2
                        out[t, 3, column] = out[t, column, 3] = n0
                        out[t, 4, column] = out[t, column, 4] = n1
                        out[t, 5, column] = out[t, column, 5] = n2
                    if tree.parent[d] < 0:
                        break
                    u0 = R[d, 0, 0] * f0 + R[d, 0, 1] * f1 + R[d, 0, 2] * f2
                    u1 = R[d, 1, 0] * f0 + R[d, 1, 1] * f1 + R[d, 1, 2] * f2
                    u2 = R[d, 2, 0] * f0 + R[d, 2, 1] * f1 + R[d, 2, 2] * f2
                    g0 = R[d, 0, 0] * n0 + R[d, 0, 1] * n1 + R[d, 0, 2] * n2
                    g1 = R[d, 1, 0] * n0 + R[d, 1, 1] * n1 + R[d, 1, 2] * n2
                    g2 = R[d, 2, 0] * n0 + R[d, 2, 1] * n1 + R[d, 2, 2] * n2
                    f0, f1, f2 = u0, u1, u2
                    n0 = g0 + p[d, 1] * u2 - p[d, 2] * u1
                    n1 = g1 + p[d, 2] * u0 - p[d, 0] * u2
                    n2 = g2 + p[d, 0] * u1 - p[d, 1] * u0
                    d = tree.parent[d]


@inner
def _add_to_parent(R, p, b, parent, c):  # type: ignore[no-untyped-def]
    """Add body b's ten parameters to its parent's (parallel axes, then rotation)."""
    m = c[b, 0]
    r0, r1, r2 = p[b, 0], p[b, 1], p[b, 2]
    h0 = R[b, 0, 0] * c[b, 1] + R[b, 0, 1] * c[b, 2] + R[b, 0, 2] * c[b, 3]
    h1 = R[b, 1, 0] * c[b, 1] + R[b, 1, 1] * c[b, 2] + R[b, 1, 2] * c[b, 3]
    h2 = R[b, 2, 0] * c[b, 1] + R[b, 2, 1] * c[b, 2] + R[b, 2, 2] * c[b, 3]
    # rotated inertia plus that of moving the origin: [r]x^T [h]x + ... + m [r]x^T [r]x
    hr = 2.0 * (h0 * r0 + h1 * r1 + h2 * r2) + m * (r0 * r0 + r1 * r1 + r2 * r2)
    index = 4
    for i in range(3):
        for j in range(i + 1):
            x = R[b, i, 0] * c[b, 4] + R[b, i, 1] * c[b, 5] + R[b, i, 2] * c[b, 7]
            y = R[b, i, 0] * c[b, 5] + R[b, i, 1] * c[b, 6] + R[b, i, 2] * c[b, 8]
            z = R[b, i, 0] * c[b, 7] + R[b, i, 1] * c[b, 8] + R[b, i, 2] * c[b, 9]
            value = x * R[b, j, 0] + y * R[b, j, 1] + z * R[b, j, 2]
            hi = h0 if i == 0 else (h1 if i == 1 else h2)
            hj = h0 if j == 0 else (h1 if j == 1 else h2)
            value -= hi * p[b, j] + hj * p[b, i] + m * p[b, i] * p[b, j]
            if i == j:
                value += hr
            c[parent, index] += value
            index += 1
    c[parent, 0] += m
    c[parent, 1] += h0 + m * r0
    c[parent, 2] += h1 + m * r1
    c[parent, 3] += h2 + m * r2


def compute_mass_matrix(tree: Tree, phi: Array, q: Array) -> Array:
    """Joint-space mass matrices (composite rigid bodies as summed pseudo-inertias).

    Parameters
    ----------
    phi : ndarray, shape (bodies, 10)
    q : ndarray, shape (samples, nq)

    Returns
    -------
    ndarray, shape (samples, dof, dof)
    """
    out = np.empty((len(q), tree.dof, tree.dof))
    floating = bool(tree.kind[0] == 2)
    _fill_mass_matrices(
        keep_bundle(tree), *to_kernel_arrays(phi), *evaluate_joint_functions(q, floating), out
    )
    return out
