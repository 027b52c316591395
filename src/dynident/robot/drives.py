"""What stands between motors and joints: reduction, coupling, gains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array, Booleans


@dataclass(frozen=True)
class Drives:
    """The drives of a robot with n joints."""

    turns: Array
    """Shape (n, n). Row i: how drive i turns with the joints, ``w_i = turns[i] @ dq``. Its rotor
    inertia and friction act on the joints through the transpose. The identity where nothing is
    coupled; on the TX40 drive 6 turns with dq5 + dq6."""
    reduction: Array
    """Shape (n, n). Motor positions ``q_m = reduction @ (q - zero)``; joint torques ``tau =
    reduction.T @ tau_m`` (power is the same on both sides)."""
    zero: Array
    """Joint positions where all motors read zero [rad or m], shape (n,)."""
    gain: Array
    """Torque per unit of drive current or voltage, on the side of the log [Nm/A, N/V], shape
    (n,)."""

    @classmethod
    def direct(cls, n: int) -> Drives:
        """One uncoupled drive per joint, logged on the joint's side."""
        return cls(np.eye(n), np.eye(n), np.zeros(n), np.ones(n))

    def behind(self, m: int) -> Drives:
        """The same behind m more joints, each with a drive of its own."""
        turns, reduction = (np.eye(m + len(self.zero)) for _ in range(2))
        turns[m:, m:], reduction[m:, m:] = self.turns, self.reduction
        gain = np.pad(self.gain, (m, 0), constant_values=1.0)
        return Drives(turns, reduction, np.pad(self.zero, (m, 0)), gain)

    def coupled(self, joint: int) -> bool:
        """Whether the drive of joint index `joint` turns with other joints too."""
        return bool(np.any(self.turns[joint] != np.eye(len(self.turns))[joint]))

    def position_to_joint(self, motor: Array) -> Array:
        """Joint positions from motor positions, shape (samples, n)."""
        return self.rate_to_joint(motor) + self.zero

    def rate_to_joint(self, motor: Array) -> Array:
        """Joint velocities or accelerations from the motors', shape (samples, n)."""
        return np.asarray(np.linalg.solve(self.reduction, motor.T).T)

    def torque_to_joint(self, motor: Array) -> Array:
        """Joint torques from motor torques, shape (samples, n)."""
        return motor @ self.reduction


def find_moving_joints(dq: Array, slow: tuple[float, ...], drives: Drives | None) -> Booleans:
    """Joints on which all that rubs is fast enough for the sign of its speed to be known.

    On a joint rubs what turns with it alone, and each coupled drive i that acts on it. The
    speed of the drive is counted at its own joint, ``turns[i] @ dq / turns[i, i]``, and has that
    joint's threshold.
    """
    moving = np.abs(dq) >= slow
    for i, threshold in enumerate(slow):
        if drives is None or threshold == 0.0 or not drives.coupled(i):
            continue
        turns = drives.turns[i]
        fast = np.abs(dq @ (turns / turns[i])) >= threshold
        moving[:, turns != 0.0] &= fast[:, None]
    return moving
