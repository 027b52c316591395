"""What kernels ask of a configuration: sines and versines of joints, rotations of bases."""

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
        ``sin q`` and ``1 - cos q``, of ``t = tan(q / 2)``: ``2 t / (1 + t^2)`` and that times t.
        Of NumPy's functions the tangent is several numbers at once, sine and cosine are one by one,
        and of small angles the versine keeps its digits.
    """
    position, quaternion = to_kernel_arrays(
        q[:, 7:] if floating else q, q[:, 3:7] if floating else q[:, :0]
    )
    trigonometry = np.empty((len(q), 2, position.shape[1]))
    half = 0.5 * position
    np.tan(half, out=half)
    sine = half * half  # in the same memory: new pages take as long as the functions
    sine += 1.0
    np.divide(half, sine, out=sine)
    sine *= 2.0
    trigonometry[:, 0] = sine
    np.multiply(half, sine, out=trigonometry[:, 1])
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
