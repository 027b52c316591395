"""Limits of a robot's description, and what breaks them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.robot.model import Robot

from .readings import Reading


@dataclass(frozen=True, eq=False)
class Limits:
    """What a motion may not exceed, each of shape (n,), infinite where nothing is known."""

    names: tuple[str, ...]
    """Of the joints."""
    lower: Array
    upper: Array
    """`lower`, `upper`: positions [rad or m]."""
    velocity: Array
    effort: Array
    """`velocity`, `effort`: [rad/s or m/s], [Nm or N]"""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Joints without a limit of something, and of what: ``"elbow: effort"``."""
        kinds = {"position": self.upper - self.lower, "velocity": self.velocity}
        kinds["effort"] = self.effort
        return tuple(
            f"{name}: {kind}"
            for kind, values in kinds.items()
            for name, value in zip(self.names, values, strict=True)
            if np.isinf(value)
        )


def list_limits(robot: Robot, share: float = 1.0, margin: float = 0.0) -> Limits:
    """The limits of a robot's description.

    Parameters
    ----------
    share : float
        Of the speeds and efforts of the description that is allowed.
    margin : float
        Taken from both ends of the ranges of positions [rad or m].
    """
    if not 0.0 < share <= 1.0 or not margin >= 0.0:
        raise InputError(f"share = {share:g} is not in (0, 1], or margin = {margin:g} is negative")
    joints = robot.joints
    return Limits(
        robot.joint_names,
        np.array([joint.lower for joint in joints]) + margin,
        np.array([joint.upper for joint in joints]) - margin,
        share * np.array([joint.velocity for joint in joints]),
        share * np.array([joint.effort for joint in joints]),
    )


def find_violation(limits: Limits, reading: Reading) -> str | None:
    """The first limit that a reading breaks, in words; None where it keeps all.

    A position that is no number breaks its limit. Speeds and efforts that are none, as drivers
    publish for interfaces that they do not have, break nothing.
    """
    checks = [("position", reading.q, limits.lower, limits.upper)]
    if reading.dq is not None:
        checks.append(("velocity", reading.dq, -limits.velocity, limits.velocity))
    if reading.tau is not None:
        checks.append(("effort", reading.tau, -limits.effort, limits.effort))
    for what, values, low, high in checks:
        for name, value, least, most in zip(limits.names, values, low, high, strict=True):
            if np.isnan(value) and what != "position":
                continue
            if not least <= value <= most:
                return f"{name}: {what} {value:.6g} is not between {least:.6g} and {most:.6g}"
    return None
