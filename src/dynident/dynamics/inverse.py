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
    write_joint_placement,
)
from dynident.dynamics.tree import Tree

LANES = 16
"""Samples that are taken side by side: a processor does the same to several numbers at once."""
SLOTS = 27
"""Numbers of a body: R 0-8, p 9-11, w 12-14, al 15-17, a 18-20, f 21-23, n 24-26; where f and n are
to come, its joint's sine (or position), versine, speed and acceleration."""


@jit
def _fill_torques(tree, phi, quaternion, position, trigonometry, dq, ddq, tau):  # type: ignore[no-untyped-def]
    kind, parent, row, g = tree.kind, tree.parent, tree.row, tree.gravity
    bodies = len(kind)
    # one more body, that moves as the ground does: with the acceleration of weight
    S = np.zeros((bodies + 1, SLOTS, LANES))
    R, w = np.empty((1, 3, 3)), np.empty((3, 1, 3))
    for i in range(3):
        S[bodies, 18 + i] = -g[i]
    for start in range(0, len(dq), LANES):
        count = min(LANES, len(dq) - start)
        for b in range(bodies):
            B = S[b]
            if kind[b] == 2:
                _take_base(quaternion, start, count, g, dq, ddq, R, w, B)
            else:
                up = parent[b] if parent[b] >= 0 else bodies
                j = b - 1 if quaternion.shape[1] == 4 else b
                for k in range(count):
                    t = start + k
                    B[21, k] = trigonometry[t, 0, j] if kind[b] == 0 else position[t, j]
                    B[22, k] = trigonometry[t, 1, j]
                    B[23, k], B[24, k] = dq[t, row[b]], ddq[t, row[b]]
                _place_body(b, kind[b], tree.rotation, tree.translation, tree.axis, B)
                _move_body(b, kind[b], tree.axis, S[up], B)
            _load_body(phi[b], B)
        for b in range(bodies - 1, -1, -1):
            B, first = S[b], 21 if kind[b] == 1 else 24
            if kind[b] == 2:
                for i in range(6):
                    for k in range(count):
                        tau[start + k, i] = B[21 + i, k]
                continue
            x0, x1, x2 = tree.axis[b, 0], tree.axis[b, 1], tree.axis[b, 2]
            for k in range(count):
                f0, f1, f2 = B[first, k], B[first + 1, k], B[first + 2, k]
                tau[start + k, row[b]] = x0 * f0 + x1 * f1 + x2 * f2
            if parent[b] >= 0:
                _pass_load(B, S[parent[b]])


@inner
def _take_base(quaternion, start, count, g, dq, ddq, R, w, B):  # type: ignore[no-untyped-def]
    """Motion of a free-flying base, see `write_base_motion`."""
    for k in range(count):
        write_base_rotation(quaternion, start + k, R)
        write_base_motion(start + k, g, dq, ddq, R, w[0], w[1], w[2])
        for i in range(3):
            B[12 + i, k], B[15 + i, k], B[18 + i, k] = w[0, 0, i], w[1, 0, i], w[2, 0, i]


@inner
def _place_body(b, kind, rotation, translation, axis, B):  # type: ignore[no-untyped-def]
    """Placement of a body in its parent's frame, see `write_joint_placement`."""
    for i in range(3):
        for j in range(3):
            c0, c1, c2 = rotation[b, 0, i, j], rotation[b, 1, i, j], rotation[b, 2, i, j]
            if kind == 1:
                c1 = c2 = 0.0
            for k in range(LANES):
                B[3 * i + j, k] = c0 + c1 * B[21, k] + c2 * B[22, k]
        slope = 0.0
        if kind == 1:
            for j in range(3):
                slope += rotation[b, 0, i, j] * axis[b, j]
        rest = translation[b, i]
        for k in range(LANES):
            B[9 + i, k] = rest + slope * B[21, k]


@inner
def _move_body(b, kind, axis, P, B):  # type: ignore[no-untyped-def]
    """Motion of a body from that of its parent, see `write_body_motion`."""
    x0, x1, x2 = axis[b, 0], axis[b, 1], axis[b, 2]
    turns, slides = 1.0 * (kind == 0), 1.0 * (kind == 1)
    for k in range(LANES):
        w0, w1, w2 = P[12, k], P[13, k], P[14, k]
        e0, e1, e2 = P[15, k], P[16, k], P[17, k]
        p0, p1, p2 = B[9, k], B[10, k], B[11, k]
        c0, c1, c2 = w1 * p2 - w2 * p1, w2 * p0 - w0 * p2, w0 * p1 - w1 * p0
        f0 = P[18, k] + e1 * p2 - e2 * p1 + w1 * c2 - w2 * c1
        f1 = P[19, k] + e2 * p0 - e0 * p2 + w2 * c0 - w0 * c2
        f2 = P[20, k] + e0 * p1 - e1 * p0 + w0 * c1 - w1 * c0
        r00, r01, r02 = B[0, k], B[1, k], B[2, k]
        r10, r11, r12 = B[3, k], B[4, k], B[5, k]
        r20, r21, r22 = B[6, k], B[7, k], B[8, k]
        u0 = r00 * w0 + r10 * w1 + r20 * w2
        u1 = r01 * w0 + r11 * w1 + r21 * w2
        u2 = r02 * w0 + r12 * w1 + r22 * w2
        x, y, z = x0 * B[23, k], x1 * B[23, k], x2 * B[23, k]
        c0 = u1 * z - u2 * y + x0 * B[24, k]
        c1 = u2 * x - u0 * z + x1 * B[24, k]
        c2 = u0 * y - u1 * x + x2 * B[24, k]
        B[15, k] = r00 * e0 + r10 * e1 + r20 * e2 + turns * c0
        B[16, k] = r01 * e0 + r11 * e1 + r21 * e2 + turns * c1
        B[17, k] = r02 * e0 + r12 * e1 + r22 * e2 + turns * c2
        B[18, k] = r00 * f0 + r10 * f1 + r20 * f2 + slides * (c0 + u1 * z - u2 * y)
        B[19, k] = r01 * f0 + r11 * f1 + r21 * f2 + slides * (c1 + u2 * x - u0 * z)
        B[20, k] = r02 * f0 + r12 * f1 + r22 * f2 + slides * (c2 + u0 * y - u1 * x)
        B[12, k], B[13, k], B[14, k] = u0 + turns * x, u1 + turns * y, u2 + turns * z


@inner
def _load_body(phi, B):  # type: ignore[no-untyped-def]
    """Force and moment about its origin that a body's motion takes."""
    m, h0, h1, h2 = phi[0], phi[1], phi[2], phi[3]
    xx, xy, yy, xz, yz, zz = phi[4], phi[5], phi[6], phi[7], phi[8], phi[9]
    for k in range(LANES):
        w0, w1, w2 = B[12, k], B[13, k], B[14, k]
        e0, e1, e2 = B[15, k], B[16, k], B[17, k]
        a0, a1, a2 = B[18, k], B[19, k], B[20, k]
        c0, c1, c2 = w1 * h2 - w2 * h1, w2 * h0 - w0 * h2, w0 * h1 - w1 * h0
        B[21, k] = m * a0 + e1 * h2 - e2 * h1 + w1 * c2 - w2 * c1
        B[22, k] = m * a1 + e2 * h0 - e0 * h2 + w2 * c0 - w0 * c2
        B[23, k] = m * a2 + e0 * h1 - e1 * h0 + w0 * c1 - w1 * c0
        k0 = xx * w0 + xy * w1 + xz * w2
        k1 = xy * w0 + yy * w1 + yz * w2
        k2 = xz * w0 + yz * w1 + zz * w2
        B[24, k] = xx * e0 + xy * e1 + xz * e2 + w1 * k2 - w2 * k1 + h1 * a2 - h2 * a1
        B[25, k] = xy * e0 + yy * e1 + yz * e2 + w2 * k0 - w0 * k2 + h2 * a0 - h0 * a2
        B[26, k] = xz * e0 + yz * e1 + zz * e2 + w0 * k1 - w1 * k0 + h0 * a1 - h1 * a0


@inner
def _pass_load(B, P):  # type: ignore[no-untyped-def]
    """Add a body's force and moment to its parent's."""
    for k in range(LANES):
        f0, f1, f2 = B[21, k], B[22, k], B[23, k]
        n0, n1, n2 = B[24, k], B[25, k], B[26, k]
        u0 = B[0, k] * f0 + B[1, k] * f1 + B[2, k] * f2
        u1 = B[3, k] * f0 + B[4, k] * f1 + B[5, k] * f2
        u2 = B[6, k] * f0 + B[7, k] * f1 + B[8, k] * f2
        p0, p1, p2 = B[9, k], B[10, k], B[11, k]
        P[21, k] += u0
        P[22, k] += u1
        P[23, k] += u2
        P[24, k] += B[0, k] * n0 + B[1, k] * n1 + B[2, k] * n2 + p1 * u2 - p2 * u1
        P[25, k] += B[3, k] * n0 + B[4, k] * n1 + B[5, k] * n2 + p2 * u0 - p0 * u2
        P[26, k] += B[6, k] * n0 + B[7, k] * n1 + B[8, k] * n2 + p0 * u1 - p1 * u0


def evaluate_inverse_dynamics(tree: Tree, phi: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torques of the rigid bodies (recursive Newton-Euler), shape (samples, dof).

    ``M(q) ddq + N(q, dq)`` of ardiani2024, eq. (1), without friction and rotors.

    Parameters
    ----------
    phi : ndarray, shape (bodies, 10)
        Inertial parameters, which need not be consistent: the map is linear in them.
    q, dq, ddq : ndarray, shapes (samples, nq), (samples, dof), (samples, dof)
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
    """Joint-space mass matrices of bodies phi (bodies, 10) at q (samples, nq), (samples, dof, dof).

    Composite rigid bodies as summed pseudo-inertias.
    """
    out = np.empty((len(q), tree.dof, tree.dof))
    floating = bool(tree.kind[0] == 2)
    _fill_mass_matrices(
        keep_bundle(tree), *to_kernel_arrays(phi), *evaluate_joint_functions(q, floating), out
    )
    return out
