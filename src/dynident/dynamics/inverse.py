"""Inverse dynamics, batched over samples.

Angular velocity w, angular acceleration al and proper acceleration a (acceleration of the frame's
origin minus gravity) are kept in each body's own frame, so that weight needs no term of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.bundle import keep_bundle
from dynident.core.jit import inner, jit, wide
from dynident.dynamics.kinematics import evaluate_joint_functions, write_rotation
from dynident.dynamics.tree import Tree

LANES = 16
"""Samples that are taken side by side: a processor does the same to several numbers at once. Loops
over them stand behind a question whether rows are so long: a compiler that knows how far apart rows
are sees that none is another's part."""
SLOTS = 27
"""Numbers of a body: R 0-8, p 9-11, w 12-14, al 15-17, a 18-20, f 21-23, n 24-26; where f and n are
to come, its joint's sine (or position), versine, speed and acceleration."""


@inner
def place_side_by_side(tree, quaternion, position, trigonometry, start, count, S):  # type: ignore[no-untyped-def]
    """Placements of all bodies in their parents' frames over some samples."""
    for b in range(len(tree.kind)):
        kind, B, j = tree.kind[b], S[b], b - 1 if quaternion.shape[1] == 4 else b
        if kind != 2:
            for k in range(count):
                t = start + k
                B[21, k] = trigonometry[t, 0, j] if kind == 0 else position[t, j]
                B[22, k] = trigonometry[t, 1, j]
            _place_body(b, kind, tree.rotation, tree.translation, tree.axis, B)


@inner
def move_side_by_side(tree, quaternion, dq, ddq, start, count, R, S):  # type: ignore[no-untyped-def]
    """Motions of all bodies that are placed over some samples."""
    kind, parent, row, g = tree.kind, tree.parent, tree.row, tree.gravity
    bodies = len(kind)
    # one more body, that moves as the ground does: with the acceleration of weight
    for i in range(3):
        S[bodies, 18 + i] = -g[i]
    for b in range(bodies):
        B = S[b]
        if kind[b] == 2:
            _take_base(quaternion, start, count, g, dq, ddq, R, B)
        else:
            for k in range(count):
                B[23, k], B[24, k] = dq[start + k, row[b]], ddq[start + k, row[b]]
            up = parent[b] if parent[b] >= 0 else bodies
            _move_body(b, kind[b], tree.axis, S[up], B)


@jit
def _fill_motion(tree, quaternion, position, trigonometry, dq, ddq, body, out):  # type: ignore[no-untyped-def]
    S = np.zeros((len(tree.kind) + 1, SLOTS, LANES))
    R = np.empty((1, 3, 3))
    for start in range(0, len(dq), LANES):
        count = min(LANES, len(dq) - start)
        place_side_by_side(tree, quaternion, position, trigonometry, start, count, S)
        move_side_by_side(tree, quaternion, dq, ddq, start, count, R, S)
        for i in range(9):
            for k in range(count):
                out[start + k, i] = S[body, 12 + i, k]


@jit
def _fill_torques(tree, phi, along, quaternion, position, trigonometry, dq, ddq, tau):  # type: ignore[no-untyped-def]
    kind, parent, row = tree.kind, tree.parent, tree.row
    bodies, samples = len(kind), len(position)
    S = np.zeros((bodies + 1, SLOTS, LANES))
    R = np.empty((1, 3, 3))
    for start in range(0, samples, LANES):
        count = min(LANES, samples - start)
        place_side_by_side(tree, quaternion, position, trigonometry, start, count, S)
        for m in range(len(dq)):
            move_side_by_side(tree, quaternion, dq[m], ddq[m], start, count, R, S)
            for each in range(len(phi)):
                if along[each] == m:
                    for b in range(bodies):
                        _load_body(phi[each, b], S[b])
                    for b in range(bodies - 1, -1, -1):
                        take_torques(b, start, count, kind[b], tree.axis, row[b], S[b], tau[each])
                        if parent[b] >= 0:
                            pass_load(S[b], S[parent[b]])


@inner
def take_torques(b, start, count, kind, axis, row, B, tau):  # type: ignore[no-untyped-def]
    """What a body's joint bears of its force and moment, or all of a free-flying base's."""
    if kind == 2:
        for i in range(6):
            for k in range(count):
                tau[start + k, i] = B[21 + i, k]
        return
    first, x0, x1, x2 = 21 if kind == 1 else 24, axis[b, 0], axis[b, 1], axis[b, 2]
    for k in range(count):
        f0, f1, f2 = B[first, k], B[first + 1, k], B[first + 2, k]
        tau[start + k, row] = x0 * f0 + x1 * f1 + x2 * f2


@inner
def _take_base(quaternion, start, count, g, dq, ddq, R, B):  # type: ignore[no-untyped-def]
    """Motion of a free-flying base from its body-frame twist and spatial acceleration."""
    for k in range(count):
        t = start + k
        x, y, z = quaternion[t, 0], quaternion[t, 1], quaternion[t, 2]
        write_rotation(x, y, z, quaternion[t, 3], 0, R)
        for i in range(3):
            weight = R[0, 0, i] * g[0] + R[0, 1, i] * g[1] + R[0, 2, i] * g[2]
            B[12 + i, k], B[15 + i, k] = dq[t, 3 + i], ddq[t, 3 + i]
            B[18 + i, k] = ddq[t, i] - weight
        # classical = spatial + omega x v (Featherstone 2008, section 2.11)
        B[18, k] += dq[t, 4] * dq[t, 2] - dq[t, 5] * dq[t, 1]
        B[19, k] += dq[t, 5] * dq[t, 0] - dq[t, 3] * dq[t, 2]
        B[20, k] += dq[t, 3] * dq[t, 1] - dq[t, 4] * dq[t, 0]


@wide
def _place_body(b, kind, rotation, translation, axis, B):  # type: ignore[no-untyped-def]
    """Placement of a body in its parent's frame, see `Tree`."""
    if B.shape[1] != LANES:
        return
    for i in range(3):
        first, second, third = rotation[b, 0, i], rotation[b, 1, i], rotation[b, 2, i]
        turn, slope = 1.0 * (kind == 0), 0.0
        if kind == 1:
            slope = first[0] * axis[b, 0] + first[1] * axis[b, 1] + first[2] * axis[b, 2]
        c00, c01, c02 = first[0], first[1], first[2]
        c10, c11, c12 = turn * second[0], turn * second[1], turn * second[2]
        c20, c21, c22 = turn * third[0], turn * third[1], turn * third[2]
        rest = translation[b, i]
        for k in range(LANES):
            s, v = B[21, k], B[22, k]
            B[3 * i, k] = c00 + c10 * s + c20 * v
            B[3 * i + 1, k] = c01 + c11 * s + c21 * v
            B[3 * i + 2, k] = c02 + c12 * s + c22 * v
            B[9 + i, k] = rest + slope * s


@wide
def _move_body(b, kind, axis, P, B):  # type: ignore[no-untyped-def]
    """Motion of a body from that of its parent (Luh, Walker and Paul 1980, outward).

    ``w' = R^T w + z dq``, ``al' = R^T al + (R^T w) x z dq + z ddq`` of an axis z, and
    ``a' = R^T (a + al x p + w x (w x p))``; a prismatic joint adds ``z ddq + 2 (R^T w) x z dq``
    to a' alone.
    """
    if P.shape[1] != LANES or B.shape[1] != LANES:
        return
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


@wide
def _load_body(phi, B):  # type: ignore[no-untyped-def]
    """Force and moment about its origin that a body's motion takes.

    ``f = m a + al x h + w x (w x h)``, ``n = I al + w x (I w) + h x a`` with the first moment h and
    I about the origin, not the centre of mass: only so are they linear in phi (Atkeson, An and
    Hollerbach 1986).
    """
    if B.shape[1] != LANES:
        return
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


@wide
def pass_load(B, P):  # type: ignore[no-untyped-def]
    """Add a body's force and moment to its parent's: ``f += R f``, ``n += R n + p x R f``."""
    if P.shape[1] != LANES or B.shape[1] != LANES:
        return
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
    phi, speeds, accelerations = (np.asarray(each)[None] for each in (phi, dq, ddq))
    tau: Array = evaluate_all_torques(tree, phi, (0,), q, speeds, accelerations)[0]
    return tau


def evaluate_all_torques(
    tree: Tree, phi: Array, along: Sequence[int], q: Array, dq: Array, ddq: Array
) -> Array:
    """The same of several robots of one form, along several motions through the same positions.

    Shape (sets, samples, dof).

    Parameters
    ----------
    phi : ndarray, shape (sets, bodies, 10)
    along : sequence of int
        Which of the motions each set is moved along; what is beyond the sets is not looked at.
    q : ndarray, shape (samples, nq)
    dq, ddq : ndarray, shape (motions, samples, dof)
    """
    tau = np.empty((len(phi), len(q), tree.dof))
    joints = evaluate_joint_functions(q, bool(tree.kind[0] == 2))
    phi, dq, ddq = to_kernel_arrays(phi, dq, ddq)
    _fill_torques(keep_bundle(tree), phi, np.array(along), *joints, dq, ddq, tau)
    return tau


def evaluate_body_motion(tree: Tree, body: int, q: Array, dq: Array, ddq: Array) -> Array:
    """Motion of a body in its own axes, shape (samples, 9), along that of its robot.

    Angular velocity, angular acceleration, and the proper acceleration of its origin (minus
    gravity) [rad/s, rad/s^2, m/s^2].
    """
    out = np.empty((len(q), 9))
    functions = evaluate_joint_functions(q, bool(tree.kind[0] == 2))
    _fill_motion(keep_bundle(tree), *functions, *to_kernel_arrays(dq, ddq), body, out)
    return out
