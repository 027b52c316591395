"""How logs say which way a base is turned: quaternions, rotation matrices, roll, pitch and yaw."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dynident.core.arrays import Array, Booleans

UNNORMALISED = 0.02
"""Length of a quaternion, or of a matrix's rows, beside one from which it is not a rounding."""
TURN = 2.0 * np.pi
Held = TypeVar("Held")


@dataclass(frozen=True)
class OrientationForm:
    """Columns that are an orientation."""

    what: str
    """What a valid row is."""
    columns: tuple[str, ...]
    """Ends of their names, behind ``base_`` or ``baseref_``."""
    measure: Callable[[Array], Array]
    """Of rows, how far they are from valid, shape (samples,)."""
    most: float
    """From which on they are not."""
    convert: Callable[[Array], Array]
    """Of valid rows, unit quaternions x y z w."""
    describe: Callable[[Array], str]
    """A row that is not valid, in words."""

    def find_invalid(self, values: Array) -> Booleans:
        """Rows of finite numbers that are not rotations, shape (samples,)."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.measure(values) > self.most)


def normalise_rows(values: Array) -> Array:
    """Rows of length one."""
    return np.asarray(values / np.linalg.norm(values, axis=1)[:, None])


def measure_skewness(values: Array) -> Array:
    """By how much matrices, row by row, miss ``R R^T = 1`` at most; infinite for mirrors."""
    R = values.reshape(-1, 3, 3)
    off = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
    return np.asarray(np.where(np.linalg.det(R) < 0.0, np.inf, off))


def convert_matrices(values: Array) -> Array:
    """Quaternions of the rotations nearest to matrices, which are given row by row."""
    from scipy.spatial.transform import Rotation

    U, _, Vt = np.linalg.svd(values.reshape(-1, 3, 3))
    return np.asarray(Rotation.from_matrix(U @ Vt).as_quat())


def convert_angles(values: Array) -> Array:
    """Quaternions of ``R_z(yaw) R_y(pitch) R_x(roll)`` [rad]."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_euler("xyz", values).as_quat())


FORMS = {
    "orientation": OrientationForm(
        "a quaternion of length 1",
        ("qx", "qy", "qz", "qw"),
        lambda values: np.abs(np.linalg.norm(values, axis=1) - 1.0),
        UNNORMALISED,
        normalise_rows,
        lambda row: f"the base's quaternion has length {np.linalg.norm(row):.4g}",
    ),
    "matrix": OrientationForm(
        "a rotation matrix",
        ("r11", "r12", "r13", "r21", "r22", "r23", "r31", "r32", "r33"),
        measure_skewness,
        2.0 * UNNORMALISED,
        convert_matrices,
        lambda row: (
            f"the base's matrix misses R R^T = 1 by {measure_skewness(row[None])[0]:.3g} "
            f"(determinant {np.linalg.det(row.reshape(3, 3)):.3g})"
        ),
    ),
    "rpy": OrientationForm(
        "roll and pitch within a turn",
        ("roll", "pitch", "yaw"),
        lambda values: np.abs(values[:, :2]).max(axis=1),
        TURN,
        convert_angles,
        lambda row: (
            f"the base's roll and pitch are {row[0]:.4g} and {row[1]:.4g} rad (of degrees say "
            "units.base_rpy = 'deg')"
        ),
    ),
}
"""By the ends of the signals' names; the first that a log has is taken."""

ORIENTATIONS: dict[str, OrientationForm] = {
    f"{base}_{name}": form for base in ("base", "baseref") for name, form in FORMS.items()
}
"""Signals that are orientations."""


def drop_repeated_orientations(signals: Mapping[str, Held]) -> tuple[dict[str, Held], list[str]]:
    """One form of each orientation, and notes on the others."""
    kept, notes = dict(signals), []
    for base in ("base", "baseref"):
        here = [f"{base}_{name}" for name in FORMS if f"{base}_{name}" in signals]
        for signal in here[1:]:
            del kept[signal]
            notes.append(f"{signal} says what {here[0]} does; not used")
    return kept, notes


def convert_orientations(signals: Mapping[str, Array], order: str) -> dict[str, Array]:
    """Signals with matrices and angles as quaternions, in the order of those that are logged."""
    found = dict(signals)
    for signal in ORIENTATIONS.keys() & signals.keys():
        base, _, name = signal.partition("_")
        if name != "orientation":
            quaternion = FORMS[name].convert(found.pop(signal))
            found[f"{base}_orientation"] = (
                quaternion if order == "xyzw" else quaternion[:, [3, 0, 1, 2]]
            )
    return found
