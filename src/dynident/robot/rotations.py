"""Rotations as matrices, quaternions x y z w, angles about fixed axes and rotation vectors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from dynident.core.arrays import Array


def convert_quaternions(quaternion: Array) -> Array:
    """Rotation matrices of unit quaternions x y z w, shape (samples, 3, 3)."""
    x, y, z, w = quaternion.T
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.asarray(np.moveaxis(np.array(rows), 2, 0))


def convert_rpy(rpy: tuple[float, float, float]) -> Array:
    """Rotation matrix of roll, pitch and yaw about fixed axes."""
    return np.asarray(pin.rpy.rpyToMatrix(*rpy))


def remove_sign_flips(quaternion: Array) -> Array:
    """Quaternions of the same rotations, none the negative of one near it."""
    products = np.sum(quaternion[1:] * quaternion[:-1], axis=1)
    signs = np.cumprod(np.where(products < 0.0, -1.0, 1.0))
    return np.asarray(quaternion * np.concatenate([[1.0], signs])[:, None])


def convert_rotation_vector(turn: Array) -> Array:
    """Rotation matrix of an angle [rad] times the axis that it is about."""
    return np.asarray(pin.exp3(turn))


def turn_z_to(axis: Array) -> Array:
    """The smallest rotation that takes z to a unit axis, shape (3, 3)."""
    return np.array(pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), axis).matrix())


def build_cross_matrix(v: npt.ArrayLike) -> Array:
    """``[v]x`` with ``[v]x w = v x w``."""
    x, y, z = np.asarray(v, dtype=float)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def expand_turn(axis: Array) -> Array:
    """``R(q) = T[0] + sin(q) T[1] + (1 - cos(q)) T[2]`` about a unit axis (Rodrigues' formula).

    Shape (3, 3, 3).
    """
    cross = build_cross_matrix(axis)
    return np.stack([np.eye(3), cross, cross @ cross])


def compute_lever_acceleration(rate: Array, spin: Array, place: Array) -> Array:
    """Acceleration of a place in a body beyond that of its origin: ``al x r + w x (w x r)``."""
    return np.asarray(np.cross(spin, place) + np.cross(rate, np.cross(rate, place)))


def to_rpy(R: Array) -> tuple[float, float, float]:
    """Roll, pitch and yaw about fixed axes of a rotation matrix."""
    roll, pitch, yaw = pin.rpy.matrixToRpy(R).tolist()
    return roll, pitch, yaw


def multiply_by_conjugate(quaternion: Array, other: Array) -> Array:
    """Vector part of ``conj(q) p``, both x y z w."""
    v, w = quaternion[:, :3], quaternion[:, 3:]
    u, s = other[:, :3], other[:, 3:]
    return w * u - s * v - np.cross(v, u)
