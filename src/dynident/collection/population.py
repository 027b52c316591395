"""Robots of one type as one population: common parameters, and deviations with spreads.

Robot i has the parameters ``beta + M d_i`` with deviations ``d_i ~ N(0, diag(s))``: those of drives
differ from robot to robot, all others are common. Whitened triangles ``z_i = R_i (beta + M d_i) +
e_i`` are all that is kept of a robot, and what it tells of ``beta`` is a triangle again, its
deviation eliminated: the whole is the arrow-structured factorisation of a mixed model (Pinheiro and
Bates 2000, sec. 2.2), whose cost grows with the number of robots alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.regression.factors import UNEXCITED, System, stack_triangles, triangularise_rows

ROUNDS = 500
"""Of expectation and maximisation, at most."""
SETTLED = 1e-3
"""Relative change of spreads by which they have settled."""


@dataclass(frozen=True, eq=False)
class Population:
    """What robots of one type share, and how they differ.

    Attributes
    ----------
    beta : ndarray, shape (p,)
        Generalised least squares of all robots.
    spread : ndarray, shape (q,)
        Standard deviations of the deviations.
    deviations : ndarray, shape (robots, q)
        Best linear unbiased predictions.
    errors : ndarray, shape (robots, q)
        Their standard errors.
    triangles : tuple of ndarray
        What each robot tells of the type.
    """

    beta: Array
    spread: Array
    deviations: Array
    errors: Array
    triangles: tuple[Array, ...]


def add_deviation(triangle: Array, M: Array, spread: Array) -> tuple[Array, Array]:
    """What a triangle tells of parameters from which its own deviate by ``M d``.

    Parameters
    ----------
    triangle : ndarray, shape (k, p + 1)
        ``[R z]``, of unit variance.
    M : ndarray, shape (p, q)
    spread : ndarray, shape (q,)
        Standard deviations of d; none of which is zero.

    Returns
    -------
    told : ndarray, shape (p + 1, p + 1)
        ``[R' z']`` with d eliminated.
    elimination : ndarray, shape (q, q + p + 1)
        ``[U V w]``: ``U d = w - V beta`` to within errors of unit variance.
    """
    q, width = M.shape[1], triangle.shape[1]
    rows = np.zeros((q + len(triangle), q + width))
    rows[:q, :q] = np.diag(1.0 / spread)
    rows[q:, :q], rows[q:, q:] = triangle[:, :-1] @ M, triangle
    R = triangularise_rows(rows)
    told = np.zeros((width, width))
    told[: len(R) - q] = R[q:, q:]
    return told, R[:q]


def fit_population(triangles: Sequence[Array], M: Array, start: Array) -> Population:
    """Spreads by restricted maximum likelihood, by expectation and maximisation.

    Parameters
    ----------
    triangles : sequence of ndarray, shape (p + 1, p + 1)
        ``[R_i z_i]`` of each robot.
    M : ndarray, shape (p, q)
    start : ndarray, shape (q,)
        Spreads to begin with.

    Raises
    ------
    ComputationError
        Where the robots leave a parameter of the type open.
    """
    spread = start
    for _ in range(ROUNDS):
        found = predict_deviations(triangles, M, spread)
        squares = np.sum(found.deviations**2 + found.errors**2, axis=0)
        # a spread that is estimated as zero would have errors of zero: a gamma prior of shape 2
        # keeps it one standard error off the boundary (Chung et al. 2013)
        after = np.sqrt(squares / (len(triangles) - 1))
        change = np.max(np.abs(after / spread - 1.0))
        spread = after
        if change < SETTLED:
            break
    return predict_deviations(triangles, M, spread)


def predict_deviations(triangles: Sequence[Array], M: Array, spread: Array) -> Population:
    """The type and the robots' deviations, under some spreads (Henderson 1975)."""
    pairs = [add_deviation(triangle, M, spread) for triangle in triangles]
    told = tuple(pair[0] for pair in pairs)
    system = System.of(stack_triangles(told))
    rank = system.condition()[1]
    if rank < len(system.A):
        raise ComputationError(
            f"the robots together leave {len(system.A) - rank} of {len(system.A)} base parameters "
            f"open (condition number above {UNEXCITED:.0e}): give logs with more motion"
        )
    beta, inverse = system.solve(), system.inverse()
    solved = [solve_deviation(line, beta, inverse) for _, line in pairs]
    deviations, errors = (np.array(each) for each in zip(*solved, strict=True))
    return Population(beta, spread, deviations, errors, told)


def solve_deviation(elimination: Array, beta: Array, inverse: Array) -> tuple[Array, Array]:
    """The deviation that was eliminated, and its standard errors.

    Parameters
    ----------
    elimination : ndarray, shape (q, q + p + 1)
        See `add_deviation`.
    inverse : ndarray, shape (p, p)
        A root of the covariance of beta.
    """
    q = len(elimination)
    U, V, w = elimination[:, :q], elimination[:, q:-1], elimination[:, -1]
    half = solve_triangular(U, np.column_stack([w - V @ beta, np.eye(q), V @ inverse]))
    return half[:, 0], np.linalg.norm(half[:, 1:], axis=1)


def leave_each_out(triangles: Sequence[Array]) -> list[Array]:
    """What all others tell, for each of at least two triangles."""
    before, after = [triangles[0]], [triangles[-1]]
    for early, late in zip(triangles[1:], triangles[-2::-1], strict=True):
        before.append(stack_triangles([before[-1], early]))
        after.append(stack_triangles([after[-1], late]))
    first, last = after[-2], before[-2]
    inner = zip(before[:-2], after[-3::-1], strict=True)
    return [first, *(stack_triangles(pair) for pair in inner), last]


def compare_triangles(one: Array, other: Array) -> tuple[float, int]:
    """How far two triangles contradict each other about the same parameters.

    Returns
    -------
    statistic : float
        By how much the sum of squares grows where both have one answer: chi squared.
    freedom : int
        Directions that both tell.
    """
    both = System.of(stack_triangles([one, other]))
    apart = [System.of(stack_triangles([each])) for each in (one, other)]
    ranks = [system.condition()[1] for system in (*apart, both)]
    rests = [measure_rest(system) for system in (*apart, both)]
    return max(rests[2] - rests[0] - rests[1], 0.0), ranks[0] + ranks[1] - ranks[2]


def measure_rest(system: System) -> float:
    """What no parameters can explain."""
    return system.rest + float(np.sum((system.A @ system.solve() - system.b) ** 2))
