"""Criteria: what is asked of the information, each a function of M with its gradient.

Smaller is better. All see M in the units of a motion that is usual for the robot
(`CriterionNeeds.scale`), except the condition number, which depends on units and says which. A new
criterion is a function and one entry in `CRITERIA`: options, help, documentation, search and
reports follow from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve

from dynident.consistency.prior import Prior, build_belief
from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.dynamics.base import BaseParameters
from dynident.excitation.prediction import join_nominal_parameters

RIDGE = 1e-10
"""Added to the scaled information, so that a motion which misses a parameter has a slope."""
STRETCH = 1000
"""Samples of a task whose rows are made at a time."""


@dataclass(frozen=True)
class CriterionNeeds:
    """What criteria may need beside the information."""

    scale: Array
    """Shape (count,). Values of the parameters that matter alike: M is read as ``S M S``, S =
    diag(scale)."""
    wanted: Array | None = None
    """Shape (k, count). Combinations whose variances are asked for: rows of chosen parameters, or
    torques of a task."""
    known: Array | None = None
    """Information beforehand, of which only the gain counts, shape (count, count)."""


@dataclass(frozen=True)
class CriterionInputs:
    """What a criterion can be made of."""

    bases: tuple[BaseParameters, ...]
    """Of the robot, and of what a sensor holds where there is one."""
    names: tuple[str, ...]
    """Of all their parameters."""
    typical: Array
    """Values that a random motion would tell from zero by one sigma, shape (count,)."""
    known: Array | None = None
    """Information of logs that there are, shape (count, count)."""
    wanted: tuple[str, ...] = ()
    """Parameters that were asked for."""
    task: Reference | None = None
    """The motion whose torques are to be predicted."""


def choose_typical_units(given: CriterionInputs) -> CriterionNeeds:
    """Each parameter in units of what a random motion of the robot would tell of it."""
    return CriterionNeeds(given.typical)


@dataclass(frozen=True)
class Criterion:
    """What is minimised."""

    words: str
    """What it is, for help and documentation."""
    evaluate: Callable[[Array, CriterionNeeds], tuple[float, Array]]
    """``evaluate(M, asked)`` gives its value and its gradient by M, shape (count, count)."""
    ask: Callable[[CriterionInputs], CriterionNeeds] = choose_typical_units
    """What it sees beside the information; refuses where that is missing."""
    task: bool = False
    """Whether it takes the motion whose torques are to be predicted."""
    meaning: str = ""
    """What ``exp(value / 2)`` is, with its place in braces; empty where it says nothing."""


def scale_information(M: Array, asked: CriterionNeeds) -> Array:
    """``S M S`` plus the ridge of its own size."""
    found = M * np.outer(asked.scale, asked.scale)
    return np.asarray(found + RIDGE * max(np.trace(found) / len(M), 1e-300) * np.eye(len(M)))


def unscale_gradient(slope: Array, asked: CriterionNeeds) -> Array:
    """A gradient by ``S M S`` as one by M."""
    return np.asarray(slope * np.outer(asked.scale, asked.scale))


def invert_information(M: Array) -> tuple[Array, float]:
    """Inverse and log-determinant of a positive definite matrix."""
    try:
        factor = cho_factor(M, lower=True)
    except np.linalg.LinAlgError:
        raise ComputationError("the motion does not excite some parameters") from None
    logdet = 2.0 * float(np.sum(np.log(np.diag(factor[0]))))
    return cho_solve(factor, np.eye(len(M))), logdet


def evaluate_determinant(M: Array, asked: CriterionNeeds) -> tuple[float, Array]:
    """D: ``-log det M / p``, the logarithm of the mean variance of the parameters' ellipsoid."""
    P, logdet = invert_information(scale_information(M, asked))
    return -logdet / len(M), unscale_gradient(-P / len(M), asked)


def evaluate_mean_variance(M: Array, asked: CriterionNeeds) -> tuple[float, Array]:
    """A: ``log tr M^-1``, of the mean variance."""
    P, _ = invert_information(scale_information(M, asked))
    total = float(np.trace(P))
    return float(np.log(total)), unscale_gradient(-P @ P / total, asked)


def evaluate_worst_variance(M: Array, asked: CriterionNeeds) -> tuple[float, Array]:
    """E: ``-log`` of the smallest eigenvalue, of the worst combination's variance."""
    values, vectors = np.linalg.eigh(scale_information(M, asked))
    v = vectors[:, 0]
    low = max(float(values[0]), 1e-300)
    return float(-np.log(low)), unscale_gradient(-np.outer(v, v) / low, asked)


def differentiate_log_condition(M: Array) -> tuple[float, Array]:
    """Half the logarithm of a matrix's condition number, and its gradient."""
    values, vectors = np.linalg.eigh(M)
    low, high = max(float(values[0]), 1e-300), float(values[-1])
    u, v = vectors[:, -1], vectors[:, 0]
    slope = 0.5 * (np.outer(u, u) / high - np.outer(v, v) / low)
    return 0.5 * float(np.log(high / low)), slope


def condition(M: Array, asked: CriterionNeeds) -> tuple[float, Array]:
    """Half the logarithm of the condition number of M: that of the weighted regressor's.

    zhang2018, eq. (26), with each column over its size; unscaled with scales of one.
    """
    value, slope = differentiate_log_condition(scale_information(M, asked))
    return value, unscale_gradient(slope, asked)


def column_condition(M: Array, asked: CriterionNeeds) -> tuple[float, Array]:
    """The same with each column of the motion's own regressor over its norm."""
    bare = scale_information(M, asked)
    norms = np.sqrt(np.diag(bare))
    C = bare / np.outer(norms, norms)
    value, by_C = differentiate_log_condition(C)
    slope = by_C / np.outer(norms, norms)
    # the norms are those of the motion: d C_ij = ... - C_ij (d M_ii / M_ii + d M_jj / M_jj) / 2
    slope[np.diag_indices_from(slope)] -= np.sum(by_C * C, axis=1) / np.diag(bare)
    return value, unscale_gradient(slope, asked)


def evaluate_chosen_variance(M: Array, asked: CriterionNeeds) -> tuple[float, Array]:
    """``log tr(C M^-1 C')``: of the variances of chosen combinations, or of a task's torques."""
    if asked.wanted is None:
        raise ComputationError("the criterion needs to know which parameters, or which task")
    P, _ = invert_information(scale_information(M, asked))
    C = asked.wanted * asked.scale
    CP = C @ P
    total = float(np.sum(CP * C))
    return float(np.log(total)), unscale_gradient(-CP.T @ CP / total, asked)


def evaluate_information_gain(M: Array, asked: CriterionNeeds) -> tuple[float, Array]:
    """``-log det(I + M M_0^-1) / p``: what is learned beyond what the robot file tells."""
    if asked.known is None:
        raise ComputationError("the criterion needs what is known beforehand")
    P, logdet = invert_information(scale_information(M, asked))
    before = invert_information(scale_information(asked.known, asked))[1]
    return -(logdet - before) / len(M), unscale_gradient(-P / len(M), asked)


# ------------------------------------------------------------------ what they ask for


def choose_si_units(given: CriterionInputs) -> CriterionNeeds:
    """Parameters in SI units."""
    return CriterionNeeds(np.ones(len(given.names)))


def choose_nominal_units(given: CriterionInputs) -> CriterionNeeds:
    """Each parameter in units of its nominal value, where it has one."""
    values = [base.matrix @ join_nominal_parameters(base.idim) for base in given.bases]
    nominal = np.abs(np.concatenate(values))
    return CriterionNeeds(np.where(nominal > 0.0, nominal, given.typical))


def choose_wanted_rows(given: CriterionInputs) -> CriterionNeeds:
    """Chosen parameters."""
    if not given.wanted:
        raise InputError("criterion 'std' needs the base parameters that are wanted")
    rows = np.eye(len(given.names))[[given.names.index(name) for name in given.wanted]]
    return CriterionNeeds(given.typical, rows / given.typical)


def choose_task_rows(given: CriterionInputs) -> CriterionNeeds:
    """The torques of a task."""
    if given.task is None:
        raise InputError("criterion 'torque' needs the task whose torques are to be predicted")
    base = given.bases[0]
    rows = compress_task_rows(base, given.task)
    return CriterionNeeds(given.typical, np.pad(rows, ((0, 0), (0, len(given.names) - base.count))))


def choose_belief(given: CriterionInputs) -> CriterionNeeds:
    """What the robot's file and the logs tell already."""
    sizes = np.split(given.typical, [given.bases[0].count])
    belief = np.asarray(block_diag(*map(compute_prior_information, given.bases, sizes)))
    return CriterionNeeds(
        given.typical, known=belief if given.known is None else belief + given.known
    )


def compress_task_rows(base: BaseParameters, task: Reference) -> Array:
    """Rows of the torques of a task, as few as say the same: a triangular factor."""
    n = base.idim.robot.n
    if task.q.shape[1] != n:
        raise InputError(f"the task moves {task.q.shape[1]} joints, the robot has {n}")
    factor = np.zeros((0, base.count))
    for a in range(0, len(task.q), STRETCH):
        s = slice(a, a + STRETCH)
        W = base.idim.regressor(task.q[s], task.dq[s], task.ddq[s])[:, :, base.kept]
        rows = np.vstack([factor, W.reshape(-1, base.count)])
        factor = np.asarray(np.linalg.qr(rows, mode="r"))
    return np.asarray(factor / np.sqrt(task.q.size))


def compute_prior_information(base: BaseParameters, typical: Array) -> Array:
    """What the robot's file tells of the base parameters, each link within its own size.

    Drives, and links of which it says nothing, are known to a hundred times what a motion
    would tell.
    """
    idim = base.idim
    variance = np.zeros((len(idim.parameters),) * 2)
    prior = Prior(build_belief(idim.split(idim.nominal)[0], idim.robot.links))
    rows, _ = prior.rows(len(idim.parameters))
    for k, body in enumerate(prior.belief.bodies):
        own = slice(10 * body, 10 * body + 10)
        block = rows[10 * k : 10 * k + 10, own]
        variance[own, own] = np.linalg.inv(block.T @ block)
    spread = base.matrix @ variance @ base.matrix.T
    diffuse = np.where(np.diag(spread) > 0.0, 1e-6, 100.0) * typical
    return np.asarray(np.linalg.inv(spread + np.diag(diffuse**2)))


CRITERIA: dict[str, Criterion] = {
    "d": Criterion("volume of the confidence ellipsoid, whatever the units", evaluate_determinant),
    "a": Criterion("mean variance", evaluate_mean_variance),
    "e": Criterion("variance of the worst combination", evaluate_worst_variance),
    "condition": Criterion("condition number of the rows in SI units", condition, choose_si_units),
    "column-condition": Criterion(
        "condition number with each column over its norm", column_condition, choose_si_units
    ),
    "presse-gautier": Criterion(
        "condition number with each column times its nominal value", condition, choose_nominal_units
    ),
    "std": Criterion(
        "variances of the wanted base parameters", evaluate_chosen_variance, choose_wanted_rows
    ),
    "torque": Criterion(
        "variance of the torques that will be predicted on a task",
        evaluate_chosen_variance,
        choose_task_rows,
        task=True,
        meaning="the task's torques known to {} Nm or N (rms)",
    ),
    "unknown": Criterion(
        "what the robot's file and logs leave unknown", evaluate_information_gain, choose_belief
    ),
}
"""Criteria by name. Those of one function differ in what they ask for."""
