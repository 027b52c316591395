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
