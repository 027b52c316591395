"""Criteria: what is asked of the information, each a function of M with its gradient.

Smaller is better. All see M in the units of a motion that is usual for the robot
(`Asked.scale`), except the condition number, which depends on units and says which. A new
criterion is a function and one line in `CRITERIA`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError

RIDGE = 1e-10
"""Added to the scaled information, so that a motion which misses a parameter has a slope."""


@dataclass(frozen=True)
class Asked:
    """What criteria may need beside the information.

    Attributes
    ----------
    scale : ndarray, shape (count,)
        Values of the parameters that matter alike: M is read as ``S M S``, S = diag(scale).
    wanted : ndarray, shape (k, count), optional
        Combinations whose variances are asked for: rows of chosen parameters, or torques
        of a task.
    known : ndarray, shape (count, count), optional
        Information beforehand, of which only the gain counts.
    """

    scale: Array
    wanted: Array | None = None
    known: Array | None = None


Criterion = Callable[[Array, Asked], tuple[float, Array]]
"""``criterion(M, asked)`` gives its value and its gradient by M, shape (count, count)."""


def scale_information(M: Array, asked: Asked) -> Array:
    """``S M S`` plus the ridge of its own size."""
    found = M * np.outer(asked.scale, asked.scale)
    return np.asarray(found + RIDGE * max(np.trace(found) / len(M), 1e-300) * np.eye(len(M)))


def unscale_gradient(slope: Array, asked: Asked) -> Array:
    """A gradient by ``S M S`` as one by M."""
    return np.asarray(slope * np.outer(asked.scale, asked.scale))


def invert_information(M: Array) -> tuple[Array, float]:
    """Inverse and log-determinant of a positive definite matrix.

    Raises
    ------
    ComputationError
        When the motion leaves a parameter without any information.
    """
    try:
        factor = cho_factor(M, lower=True)
    except np.linalg.LinAlgError:
        raise ComputationError("the motion tells nothing of some parameters") from None
    logdet = 2.0 * float(np.sum(np.log(np.diag(factor[0]))))
    return cho_solve(factor, np.eye(len(M))), logdet


def evaluate_determinant(M: Array, asked: Asked) -> tuple[float, Array]:
    """D: ``-log det M / p``, the logarithm of the mean variance of the parameters' ellipsoid."""
    P, logdet = invert_information(scale_information(M, asked))
    return -logdet / len(M), unscale_gradient(-P / len(M), asked)


def evaluate_mean_variance(M: Array, asked: Asked) -> tuple[float, Array]:
    """A: ``log tr M^-1``, of the mean variance."""
    P, _ = invert_information(scale_information(M, asked))
    total = float(np.trace(P))
    return float(np.log(total)), unscale_gradient(-P @ P / total, asked)


def evaluate_worst_variance(M: Array, asked: Asked) -> tuple[float, Array]:
    """E: ``-log`` of the smallest eigenvalue, of the worst combination's variance."""
    values, vectors = np.linalg.eigh(scale_information(M, asked))
    v = vectors[:, 0]
    low = max(float(values[0]), 1e-300)
    return float(-np.log(low)), unscale_gradient(-np.outer(v, v) / low, asked)


def condition(M: Array, asked: Asked) -> tuple[float, Array]:
    """Half the logarithm of the condition number of M: that of the weighted regressor's.

    zhang2018, eq. (26), with each column over its size; unscaled with scales of one.
    """
    values, vectors = np.linalg.eigh(scale_information(M, asked))
    low, high = max(float(values[0]), 1e-300), float(values[-1])
    u, v = vectors[:, -1], vectors[:, 0]
    slope = 0.5 * (np.outer(u, u) / high - np.outer(v, v) / low)
    return 0.5 * float(np.log(high / low)), unscale_gradient(slope, asked)


def column_condition(M: Array, asked: Asked) -> tuple[float, Array]:
    """The same with each column of the motion's own regressor over its norm."""
    bare = scale_information(M, asked)
    norms = np.sqrt(np.diag(bare))
    C = bare / np.outer(norms, norms)
    values, vectors = np.linalg.eigh(C)
    low, high = max(float(values[0]), 1e-300), float(values[-1])
    u, v = vectors[:, -1], vectors[:, 0]
    by_C = 0.5 * (np.outer(u, u) / high - np.outer(v, v) / low)
    slope = by_C / np.outer(norms, norms)
    # the norms are those of the motion: d C_ij = ... - C_ij (d M_ii / M_ii + d M_jj / M_jj) / 2
    slope[np.diag_indices_from(slope)] -= np.sum(by_C * C, axis=1) / np.diag(bare)
    return 0.5 * float(np.log(high / low)), unscale_gradient(slope, asked)


def evaluate_chosen_variance(M: Array, asked: Asked) -> tuple[float, Array]:
    """``log tr(C M^-1 C')``: of the variances of chosen combinations, or of a task's torques.

    Raises
    ------
    ComputationError
        Where no combinations and no task were given.
    """
    if asked.wanted is None:
        raise ComputationError("the criterion needs to know which parameters, or which task")
    P, _ = invert_information(scale_information(M, asked))
    C = asked.wanted * asked.scale
    CP = C @ P
    total = float(np.sum(CP * C))
    return float(np.log(total)), unscale_gradient(-CP.T @ CP / total, asked)


def evaluate_information_gain(M: Array, asked: Asked) -> tuple[float, Array]:
    """``-log det(I + M M_0^-1) / p``: what is learned beyond what the robot file tells.

    Raises
    ------
    ComputationError
        Where nothing was said of what is known beforehand.
    """
    if asked.known is None:
        raise ComputationError("the criterion needs what is known beforehand")
    P, logdet = invert_information(scale_information(M, asked))
    before = invert_information(scale_information(asked.known, asked))[1]
    return -(logdet - before) / len(M), unscale_gradient(-P / len(M), asked)


CRITERIA: dict[str, Criterion] = {
    "d": evaluate_determinant,
    "a": evaluate_mean_variance,
    "e": evaluate_worst_variance,
    "condition": condition,
    "column-condition": column_condition,
    "presse-gautier": condition,
    "std": evaluate_chosen_variance,
    "torque": evaluate_chosen_variance,
    "unknown": evaluate_information_gain,
}
"""Criteria by name. Those of one function differ in their scales or in what is wanted."""
