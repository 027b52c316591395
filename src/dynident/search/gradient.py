"""Gradient descent of first order within ranges (zhang2018, section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import Options
from dynident.core.schema import Number
from dynident.core.threads import limit_to_one_thread
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.estimate import Estimate
from dynident.regression.problem import Problem
from dynident.search.ranges import LEAST_SQUARES, RangeProblem, SearchRegion, build_search_task

CLOSE = 1e-4
"""Excess of chi-squared over the optimum's at which a descent has ended: a hundredth of a sigma."""

Rate = Annotated[Number, Field(gt=0.0, lt=2.0)]
Iterations = Annotated[int, Field(strict=True, ge=1, le=10**8)]


@dataclass(frozen=True)
class GradientDescent(Options):
    """How gradient goes down."""

    learning_rate: Annotated[
        Rate,
        "step of gradient, relative to the inverse of the criterion's largest curvature; from 2 "
        "on it diverges",
    ] = 1.0
    iterations: Annotated[Iterations, "most iterations of gradient"] = 100_000


@limit_to_one_thread
def gradient(
    problem: Problem,
    region: SearchRegion = SearchRegion(),
    descent: GradientDescent = GradientDescent(),
    knowledge: Knowledge = Knowledge(),
    bars: ErrorBars = ErrorBars(),
) -> Estimate:
    """Where steps against the gradient of least squares end (zhang2018, eq. 16).

    Parameters
    ----------
    knowledge : Knowledge
        Consistency, constraints and prior: where the descent ends is repaired by them.

    Raises
    ------
    InputError
        For ranges and starts that do not fit the robot or each other, and an objective that has no
        gradient everywhere.
    ComputationError
        When nothing in the ranges is admitted.
    """
    if region.objective != LEAST_SQUARES:
        raise InputError(
            f"objective {region.objective!r} has no gradient where a mean is zero; take nls, ga "
            f"or pf, or {LEAST_SQUARES!r}"
        )
    task = build_search_task(problem, region, knowledge, bars)
    found = descend_by_gradient(task, descent)
    return task.repaired(found.beta, found.iterations, found.words)


@dataclass(frozen=True)
class DescentEnd:
    """Where a descent ended.

    The condition is the largest curvature over the smallest, in units of the ranges.
    """

    beta: Array
    iterations: int
    condition: float
    words: str


def descend_by_gradient(task: RangeProblem, descent: GradientDescent) -> DescentEnd:
    """Steps ``x - (rate / L) df/dx``, x in units of the ranges and kept within them.

    f is chi-squared, half of whose second derivative has eigenvalues from mu to L. Each step takes
    ``1 - rate lambda / L`` of the error along an eigenvector, so that the smallest one decides:
    ``condition / rate`` iterations for each factor of e. It ends where the bound
    ``|| step L / rate ||^2 / mu`` of what is left of f, of convex functions (Karimi, Nutini and
    Schmidt 2016), is below `CLOSE`.
    """
    width = np.maximum(task.high - task.low, np.finfo(float).tiny)
    system = task.given.system
    A = system.A * width
    _, s, vt = np.linalg.svd(A)
    largest, smallest = float(s[0]) ** 2, max(float(s[-1]), 1e-150) ** 2
    condition = largest / smallest
    # the curvature and the gradient at x = 0, where beta is low
    H, g = A.T @ A, A.T @ (system.b - system.A @ task.low)
    x, factor = (task.begin - task.low) / width, descent.learning_rate / largest
    count, ended = 0, False
    while not ended and count < descent.iterations:
        new = np.minimum(np.maximum(x + factor * (g - H @ x), 0.0), 1.0)
        step = new - x
        ended = bool(step @ step <= CLOSE * smallest * factor**2)
        x, count = new, count + 1
    words = (
        f"{'converged' if ended else 'stopped'} after {count} iterations at a learning rate of "
        f"{descent.learning_rate:g}, condition number {condition:.2g}"
    )
    beta = task.low + width * x
    if not ended:
        more = count_iterations(s, vt @ ((beta - system.solve()) / width), descent)
        words += f", and about {more:.1g} more are needed"
    return DescentEnd(beta, count, condition, words)


def count_iterations(s: Array, error: Array, descent: GradientDescent) -> float:
    """Iterations without ranges until what is left of chi-squared is `CLOSE`.

    By the singular values of the scaled rows, and the parameters' error now along their right
    singular vectors, shapes (p,).
    """
    shrinks = np.abs(1.0 - descent.learning_rate * (s / s[0]) ** 2)
    part = (s * error) ** 2

    def left(n: float) -> float:
        return float(np.sum(part * np.exp(2.0 * n * np.log(np.maximum(shrinks, 1e-300)))))

    low, high = 0.0, 1.0
    while left(high) > CLOSE and high < 1e30:
        low, high = high, 2.0 * high
    while high - low > 0.01 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if left(middle) > CLOSE else (low, middle)
    return high
