"""One body's motion from its parent's: the step that every kernel repeats.

Angular velocity w, angular acceleration al and proper acceleration a (acceleration of
the frame's origin minus gravity) are kept in each body's own frame, so that weight needs
no term of its own.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.jit import inner


def evaluate_joint_functions(q: Array, floating: bool) -> tuple[Array, Array, Array]:
    """Base pose, joint positions and their sines and versines.

    Parameters
    ----------
    q : ndarray, shape (samples, nq)
        ``[x y z qx qy qz qw, q_1 ... q_n]``; the first seven only when floating.

    Returns
    -------
    quaternion : ndarray, shape (samples, 4) or (samples, 0)
    position : ndarray, shape (samples, n)
    trigonometry : ndarray, shape (samples, 2, n)
        ``sin q`` and ``1 - cos q``; NumPy's vector loops are faster than scalar ones.
    """
    position, quaternion = to_kernel_arrays(
        q[:, 7:] if floating else q, q[:, 3:7] if floating else q[:, :0]
    )
    trigonometry = np.empty((len(q), 2, position.shape[1]))
    np.sin(position, out=trigonometry[:, 0])
    np.subtract(1.0, np.cos(position), out=trigonometry[:, 1])
    return quaternion, position, trigonometry


@inner
def write_rotation(x, y, z, w, b, R):  # type: ignore[no-untyped-def]
    """Rotation matrix of a unit quaternion, into R[b]."""
    R[b, 0, 0] = 1 - 2 * (y * y + z * z)
    R[b, 0, 1] = 2 * (x * y - w * z)
    R[b, 0, 2] = 2 * (x * z + w * y)
    R[b, 1, 0] = 2 * (x * y + w * z)
    R[b, 1, 1] = 1 - 2 * (x * x + z * z)
    R[b, 1, 2] = 2 * (y * z - w * x)
    R[b, 2, 0] = 2 * (x * z - w * y)
    R[b, 2, 1] = 2 * (y * z + w * x)
    R[b, 2, 2] = 1 - 2 * (x * x + y * y)


@inner
def write_joint_placement(b, kind, rotation, translation, axis, sine, versine, position, R, p):  # type: ignore[no-untyped-def]
    """Placement of body b's frame in its parent's frame, into R[b] and p[b]."""
    if kind == 0:
        for i in range(3):
            p[b, i] = translation[b, i]
            for j in range(3):
                R[b, i, j] = (
                    rotation[b, 0, i, j]
                    + sine * rotation[b, 1, i, j]
                    + versine * rotation[b, 2, i, j]
                )
    else:
        for i in range(3):
            p[b, i] = translation[b, i]
            for j in range(3):
                R[b, i, j] = rotation[b, 0, i, j]
                p[b, i] += rotation[b, 0, i, j] * axis[b, j] * position


@inner
def write_base_motion(t, g, dq, ddq, R, w, al, a):  # type: ignore[no-untyped-def]
    """Motion of a free-flying base from its body-frame twist and spatial acceleration."""
    g0, g1, g2 = g[0], g[1], g[2]
    for i in range(3):
        w[0, i] = dq[t, 3 + i]
        al[0, i] = ddq[t, 3 + i]
        # classical = spatial + omega x v (Featherstone 2008, section 2.11)
        a[0, i] = ddq[t, i] - (R[0, 0, i] * g0 + R[0, 1, i] * g1 + R[0, 2, i] * g2)
    a[0, 0] += dq[t, 4] * dq[t, 2] - dq[t, 5] * dq[t, 1]
    a[0, 1] += dq[t, 5] * dq[t, 0] - dq[t, 3] * dq[t, 2]
    a[0, 2] += dq[t, 3] * dq[t, 1] - dq[t, 4] * dq[t, 0]


@inner
def write_body_motion(b, parent, kind, axis, g, R, p, rate, acceleration, w, al, a):  # type: ignore[no-untyped-def]
    """Motion of body b from that of its parent (recursive Newton-Euler, outward)."""
    if parent < 0:
        g0, g1, g2 = g[0], g[1], g[2]
        for i in range(3):
            w[b, i] = 0.0
            al[b, i] = 0.0
            a[b, i] = -(R[b, 0, i] * g0 + R[b, 1, i] * g1 + R[b, 2, i] * g2)
    else:
        w0, w1, w2 = w[parent, 0], w[parent, 1], w[parent, 2]
        e0, e1, e2 = al[parent, 0], al[parent, 1], al[parent, 2]
        p0, p1, p2 = p[b, 0], p[b, 1], p[b, 2]
        c0, c1, c2 = w1 * p2 - w2 * p1, w2 * p0 - w0 * p2, w0 * p1 - w1 * p0
        f0 = a[parent, 0] + e1 * p2 - e2 * p1 + w1 * c2 - w2 * c1
        f1 = a[parent, 1] + e2 * p0 - e0 * p2 + w2 * c0 - w0 * c2
        f2 = a[parent, 2] + e0 * p1 - e1 * p0 + w0 * c1 - w1 * c0
        r00, r01, r02 = R[b, 0, 0], R[b, 0, 1], R[b, 0, 2]
        r10, r11, r12 = R[b, 1, 0], R[b, 1, 1], R[b, 1, 2]
        r20, r21, r22 = R[b, 2, 0], R[b, 2, 1], R[b, 2, 2]
        w[b, 0] = r00 * w0 + r10 * w1 + r20 * w2
        w[b, 1] = r01 * w0 + r11 * w1 + r21 * w2
        w[b, 2] = r02 * w0 + r12 * w1 + r22 * w2
        al[b, 0] = r00 * e0 + r10 * e1 + r20 * e2
        al[b, 1] = r01 * e0 + r11 * e1 + r21 * e2
        al[b, 2] = r02 * e0 + r12 * e1 + r22 * e2
        a[b, 0] = r00 * f0 + r10 * f1 + r20 * f2
        a[b, 1] = r01 * f0 + r11 * f1 + r21 * f2
        a[b, 2] = r02 * f0 + r12 * f1 + r22 * f2
    x0, x1, x2 = axis[b, 0], axis[b, 1], axis[b, 2]
    x, y, z = x0 * rate, x1 * rate, x2 * rate
    w0, w1, w2 = w[b, 0], w[b, 1], w[b, 2]
    c0, c1, c2 = w1 * z - w2 * y, w2 * x - w0 * z, w0 * y - w1 * x
    if kind == 0:
        al[b, 0] += c0 + x0 * acceleration
        al[b, 1] += c1 + x1 * acceleration
        al[b, 2] += c2 + x2 * acceleration
        w[b, 0] += x
        w[b, 1] += y
        w[b, 2] += z
    else:
        a[b, 0] += 2.0 * c0 + x0 * acceleration
        a[b, 1] += 2.0 * c1 + x1 * acceleration
        a[b, 2] += 2.0 * c2 + x2 * acceleration
