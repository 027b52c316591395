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
from dynident.core.jit import inner, jit, spliced, wide
from dynident.dynamics.inverse import LANES, SLOTS, move_side_by_side, place_side_by_side
from dynident.dynamics.kinematics import evaluate_joint_functions
from dynident.dynamics.tree import Tree


@spliced
def fill_screw_entries(l0, l1, l2, x, y, z, w0, w1, w2, e0, e1, e2, a0, a1, a2, t, e):  # type: ignore[no-untyped-def]
    """Share of a body's ten parameters in the torque along the screw (l, s), into column t of e.

    By the body's angular velocity w and acceleration e and proper acceleration a, in its frame.
    """
    # s_l . ((al x + w x w x) h) + s_a . (h x a), transposed onto h
    d0, d1, d2 = w1 * l2 - w2 * l1, w2 * l0 - w0 * l2, w0 * l1 - w1 * l0
    e[0, t] = l0 * a0 + l1 * a1 + l2 * a2
    e[1, t] = l1 * e2 - l2 * e1 + w1 * d2 - w2 * d1 + a1 * z - a2 * y
    e[2, t] = l2 * e0 - l0 * e2 + w2 * d0 - w0 * d2 + a2 * x - a0 * z
    e[3, t] = l0 * e1 - l1 * e0 + w0 * d1 - w1 * d0 + a0 * y - a1 * x
    # s_a . (I al + w x I w) = s_a . I al + (s_a x w) . I w
    c0, c1, c2 = y * w2 - z * w1, z * w0 - x * w2, x * w1 - y * w0
    e[4, t] = x * e0 + c0 * w0
    e[5, t] = x * e1 + y * e0 + c0 * w1 + c1 * w0
    e[6, t] = y * e1 + c1 * w1
    e[7, t] = x * e2 + z * e0 + c0 * w2 + c2 * w0
    e[8, t] = y * e2 + z * e1 + c1 * w2 + c2 * w1
    e[9, t] = z * e2 + c2 * w2


@wide
def _fill_entries(s, B, e):  # type: ignore[no-untyped-def]
    """The same of some samples, of a screw of each and the motion of the body."""
    if s.shape[1] != LANES or B.shape[1] != LANES or e.shape[1] != LANES:
        return
    for t in range(LANES):
        fill_screw_entries(
            s[0, t], s[1, t], s[2, t], s[3, t], s[4, t], s[5, t],
            B[12, t], B[13, t], B[14, t], B[15, t], B[16, t], B[17, t],
            B[18, t], B[19, t], B[20, t], t, e,
        )  # fmt: skip


@wide
def _carry_screw(s, B, out):  # type: ignore[no-untyped-def]
    """A screw of some samples, of the parent's frame, in the body's."""
    if s.shape[1] != LANES or B.shape[1] != LANES or out.shape[1] != LANES:
        return
    for t in range(LANES):
        x, y, z = s[3, t], s[4, t], s[5, t]
        p0, p1, p2 = B[9, t], B[10, t], B[11, t]
        u = s[0, t] + y * p2 - z * p1
        v = s[1, t] + z * p0 - x * p2
        q = s[2, t] + x * p1 - y * p0
        out[0, t] = B[0, t] * u + B[3, t] * v + B[6, t] * q
        out[1, t] = B[1, t] * u + B[4, t] * v + B[7, t] * q
        out[2, t] = B[2, t] * u + B[5, t] * v + B[8, t] * q
        out[3, t] = B[0, t] * x + B[3, t] * y + B[6, t] * z
        out[4, t] = B[1, t] * x + B[4, t] * y + B[7, t] * z
        out[5, t] = B[2, t] * x + B[5, t] * y + B[8, t] * z


@inner
def _begin_screws(kind, axis, lengths, s):  # type: ignore[no-untyped-def]
    """What no motion changes: a body's own screws in its frame, those of its joint or of a base."""
    for b in range(len(kind)):
        for t in range(LANES):
            for i in range(6 if kind[b] == 2 else 0):
                s[b, i, i, t] = 1.0
            for i in range(0 if kind[b] == 2 else 3):
                s[b, lengths[b] - 1, i if kind[b] == 1 else 3 + i, t] = axis[b, i]


@jit
def fill_regressor_samples(tree, quaternion, position, trigonometry, dq, ddq, slot, out):  # type: ignore[no-untyped-def]
    """Entries of the regressor that `slot` asks for: see `fill_regressor`."""
    kind, parent, lengths = tree.kind, tree.parent, tree.path_length
    bodies = len(kind)
    S = np.zeros((bodies + 1, SLOTS, LANES))
    R = np.empty((1, 3, 3))
    s = np.zeros((bodies, tree.path.shape[1], 6, LANES))
    e = np.empty((10, LANES))
    _begin_screws(kind, tree.axis, lengths, s)
    for start in range(0, len(dq), LANES):
        count = min(LANES, len(dq) - start)
        place_side_by_side(tree, quaternion, position, trigonometry, start, count, S)
        move_side_by_side(tree, quaternion, dq, ddq, start, count, R, S)
        for b in range(bodies):
            for k in range(lengths[b]):
                if kind[b] != 2 and k < lengths[b] - 1:
                    _carry_screw(s[parent[b], k], S[b], s[b, k])
                _fill_entries(s[b, k], S[b], e)
                for i in range(10):
                    column = slot[b, k, i]
                    if column >= 0:
                        for t in range(count):
                            out[start + t, column] = e[i, t]


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
