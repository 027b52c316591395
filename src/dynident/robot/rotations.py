"""Rotations as files and messages write them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array


def convert_rpy(rpy: tuple[float, float, float]) -> Array:
    """Rotation matrix of roll, pitch and yaw about fixed axes."""
    return np.asarray(pin.rpy.rpyToMatrix(*rpy))


def convert_rotation_vector(turn: Array) -> Array:
    """Rotation matrix of an angle [rad] times the axis that it is about."""
    return np.asarray(pin.exp3(turn))


def to_rpy(R: Array) -> tuple[float, float, float]:
    """Roll, pitch and yaw about fixed axes of a rotation matrix."""
    roll, pitch, yaw = pin.rpy.matrixToRpy(R).tolist()
    return roll, pitch, yaw


def convert_quaternions(quaternion: Array) -> Array:
    """Rotation matrices of unit quaternions x y z w, shape (samples, 3, 3)."""
    x, y, z, w = quaternion.T
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.asarray(np.moveaxis(np.array(rows), 2, 0))
