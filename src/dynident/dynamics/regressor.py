"""The regressor: ``tau = W(q, dq, ddq) pi`` (ardiani2024, eq. 3), batched over samples.

For body b and a velocity whose screw in b's frame is (s_l, s_a), the row is
``s_l . f + s_a . n`` with the body's force and moment linear in its ten parameters.
Only the entries that are asked for are written, so that identification pays for the
columns it keeps and for nothing else.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, Integers, to_kernel_arrays
from dynident.core.bundle import keep_bundle
from dynident.core.jit import inner, jit
from dynident.dynamics.inverse import LANES, SLOTS, move_side_by_side
from dynident.dynamics.kinematics import evaluate_joint_functions
from dynident.dynamics.tree import Tree


@inner
def fill_screw_entries(l0, l1, l2, x, y, z, motion, e):  # type: ignore[no-untyped-def]
    """Share of a body's ten parameters in the torque along the screw (l, s), into e.

    `motion` holds the body's angular velocity, angular and proper acceleration; all in the
    body's frame.
    """
    w0, w1, w2 = motion[0], motion[1], motion[2]
    e0, e1, e2 = motion[3], motion[4], motion[5]
    a0, a1, a2 = motion[6], motion[7], motion[8]
    # s_l . ((al x + w x w x) h) + s_a . (h x a), transposed onto h
    d0, d1, d2 = w1 * l2 - w2 * l1, w2 * l0 - w0 * l2, w0 * l1 - w1 * l0
    e[0] = l0 * a0 + l1 * a1 + l2 * a2
    e[1] = l1 * e2 - l2 * e1 + w1 * d2 - w2 * d1 + a1 * z - a2 * y
    e[2] = l2 * e0 - l0 * e2 + w2 * d0 - w0 * d2 + a2 * x - a0 * z
    e[3] = l0 * e1 - l1 * e0 + w0 * d1 - w1 * d0 + a0 * y - a1 * x
    # s_a . (I al + w x I w) = s_a . I al + (s_a x w) . I w
    c0, c1, c2 = y * w2 - z * w1, z * w0 - x * w2, x * w1 - y * w0
    e[4] = x * e0 + c0 * w0
    e[5] = x * e1 + y * e0 + c0 * w1 + c1 * w0
    e[6] = y * e1 + c1 * w1
    e[7] = x * e2 + z * e0 + c0 * w2 + c2 * w0
    e[8] = y * e2 + z * e1 + c1 * w2 + c2 * w1
    e[9] = z * e2 + c2 * w2


@jit
def fill_regressor_samples(tree, quaternion, position, trigonometry, dq, ddq, slot, out):  # type: ignore[no-untyped-def]
    """Entries of the regressor that `slot` asks for, sample by sample: see `fill_regressor`."""
    kind, parent, axis, lengths = tree.kind, tree.parent, tree.axis, tree.path_length
    bodies, longest = len(kind), tree.path.shape[1]
    S = np.zeros((bodies + 1, SLOTS, LANES))
    R = np.empty((1, 3, 3))
    sl = np.empty((bodies, longest, 3))
    sa = np.empty((bodies, longest, 3))
    motion = np.empty(9)
    e = np.empty(10)
    for start in range(0, len(dq), LANES):
        count = min(LANES, len(dq) - start)
        move_side_by_side(tree, quaternion, position, trigonometry, dq, ddq, start, count, R, S)
        for t in range(count):
            for b in range(bodies):
                B, length = S[b], lengths[b]
                if kind[b] == 2:
                    for k in range(6):
                        for i in range(3):
                            sl[b, k, i] = 1.0 if k == i else 0.0
                            sa[b, k, i] = 1.0 if k == i + 3 else 0.0
                else:
                    up = parent[b]
                    r00, r01, r02 = B[0, t], B[1, t], B[2, t]
                    r10, r11, r12 = B[3, t], B[4, t], B[5, t]
                    r20, r21, r22 = B[6, t], B[7, t], B[8, t]
                    p0, p1, p2 = B[9, t], B[10, t], B[11, t]
                    for k in range(length - 1):
                        x, y, z = sa[up, k, 0], sa[up, k, 1], sa[up, k, 2]
                        u = sl[up, k, 0] + y * p2 - z * p1
                        v = sl[up, k, 1] + z * p0 - x * p2
                        q = sl[up, k, 2] + x * p1 - y * p0
                        sa[b, k, 0] = r00 * x + r10 * y + r20 * z
                        sa[b, k, 1] = r01 * x + r11 * y + r21 * z
                        sa[b, k, 2] = r02 * x + r12 * y + r22 * z
                        sl[b, k, 0] = r00 * u + r10 * v + r20 * q
                        sl[b, k, 1] = r01 * u + r11 * v + r21 * q
                        sl[b, k, 2] = r02 * u + r12 * v + r22 * q
                    revolute = kind[b] == 0
                    for i in range(3):
                        sa[b, length - 1, i] = axis[b, i] if revolute else 0.0
                        sl[b, length - 1, i] = 0.0 if revolute else axis[b, i]
                for i in range(9):
                    motion[i] = B[12 + i, t]
                for k in range(length):
                    fill_screw_entries(
                        sl[b, k, 0],
                        sl[b, k, 1],
                        sl[b, k, 2],
                        sa[b, k, 0],
                        sa[b, k, 1],
                        sa[b, k, 2],
                        motion,
                        e,
                    )
                    for i in range(10):
                        s = slot[b, k, i]
                        if s >= 0:
                            out[start + t, s] = e[i]


def fill_regressor(tree: Tree, slot: Integers, q: Array, dq: Array, ddq: Array, out: Array) -> None:
    """Write the entries that `slot` asks for into `out`.

    Parameters
    ----------
    slot : ndarray of int, shape (bodies, longest path, 10)
        Column of `out` for each (body, position on its path, inertial parameter), or -1.
    q, dq, ddq : ndarray, shapes (samples, nq), (samples, dof), (samples, dof)
    out : ndarray, shape (samples, columns)
        Columns that no slot names are left alone.
    """
    floating = bool(tree.kind[0] == 2)
    fill_regressor_samples(
        keep_bundle(tree),
        *evaluate_joint_functions(q, floating),
        *to_kernel_arrays(dq, ddq),
        slot,
        out,
    )
