"""Joint by joint: the last joint's torque first, then the one before it, what is known held.

The torque of a joint has the links beyond it alone in it, so that one joint after another can be
calibrated, from the tip to the base (zhang2018, section 1, and its reference [1]); errors of
earlier steps go into the later ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.factors import UNEXCITED, Factors, measure_columns
from dynident.dynamics.base import BaseParameters
from dynident.estimators.covariance import (
    ErrorBars,
    EstimateScores,
    estimate_covariance,
    name_covariance,
)
from dynident.estimators.estimate import Estimate
from dynident.regression.problem import Problem, Regression, refuse_combinations
from dynident.regression.rows import ChangedRows, Rows, attach_instruments
from dynident.regression.statistics import compute_residuals
from dynident.regression.weighted import find_smallest_sigma, require_excitation


def sequential(problem: Problem, bars: ErrorBars = ErrorBars()) -> Estimate:
    """Least squares on one joint's torque after another, from the last to the first.

    Parameters that a joint's torque determines are fixed from there on; combinations that it
    leaves open are left to the joints before it. The covariance carries the errors of all earlier
    steps along; the literature's formula beside it is that of each step alone.

    Raises
    ------
    InputError
        Where contacts that nothing measures have combined the joints' equations.
    ComputationError
        When the logs do not excite all base parameters.
    """
    refuse_combinations(problem, "joint by joint there are no combinations of equations in")
    factors = problem.factors
    require_excitation(problem, factors.weighted(factors.ones))
    found = solve_joint_by_joint(factors)
    rows = Regression(
        problem.base, problem.samples, RowsApart(problem.source, found.alone - found.beta)
    )
    noise = compute_residuals(rows, found.beta)
    scores = EstimateScores(rows, found.beta, factors.ones, found.sigma, noise)
    spread = estimate_covariance(scores, np.hstack(found.gains), bars)
    steps = ", ".join(f"{count} of {name}" for name, count in found.counts if count)
    return Estimate(
        found.beta,
        None,
        found.sigma,
        name_covariance("joint by joint", spread, found.own_std),
        compute_residuals(problem, found.beta),
        1,
        f"{problem.base.count} parameters joint by joint: {steps}",
    )


@dataclass(frozen=True)
class SequentialSteps:
    """What the steps from the last group to the first have found."""

    beta: Array
    """Shape (p,)."""
    alone: Array
    """Each group's fit of its own, which leaves its noise without the errors of earlier steps,
    shape (groups, p)."""
    sigma: Array
    """Of that noise, shape (groups,)."""
    gains: Sequence[Array]
    """``beta - beta_true = sum_g gain_g X_g^T e_g``, shape (p, p)."""
    own_std: Array
    """Standard deviations as though what earlier steps found had no error, shape (p,)."""
    counts: Sequence[tuple[str, int]]
    """How many parameters each group has settled, in the order of the steps."""


def solve_joint_by_joint(factors: Factors) -> SequentialSteps:
    """Least squares on one group after another, each in the directions that are still open.

    ``beta + N z`` with N a basis of what is open, ``z = (X_g N)^+ (y_g - X_g beta)``; what the
    group leaves open, the null space of ``X_g N``, is left to the next.
    """
    p = factors.parameters
    scale = measure_columns(factors.weighted(factors.ones).A)
    beta, variance, open_ = np.zeros(p), np.zeros(p), np.diag(1.0 / scale)
    alone, sigma = np.zeros((len(factors.groups), p)), factors.ones
    gains, counts = [np.zeros((p, p)) for _ in factors.groups], []
    for g, group in reversed(list(enumerate(factors.groups))):
        X, y = group.factor[:, :-1], group.factor[:, -1]
        alone[g], spent = solve_group_alone(X, y)
        noise = np.sqrt(np.sum((y - X @ alone[g]) ** 2) / max(group.rows - spent, 1))
        sigma[g] = max(float(noise), find_smallest_sigma(factors))
        _, s, vt = np.linalg.svd(X @ open_)
        rank = int(np.sum(s > 1.0 / UNEXCITED))
        new = open_ @ (vt[:rank].T / s[:rank])  # X new has orthonormal columns
        gain = new @ new.T
        step = gain @ X.T
        beta = beta + step @ (y - X @ beta)
        held = np.eye(p) - step @ X
        gains = [held @ each for each in gains]
        gains[g] = gain
        open_ = open_ @ vt[rank:].T
        variance += sigma[g] ** 2 * np.diag(gain)
        counts.append((group.name, rank))
    return SequentialSteps(beta, alone, sigma, gains, np.sqrt(variance), counts)


def solve_group_alone(X: Array, y: Array) -> tuple[Array, int]:
    """Least squares of minimum scaled norm on one group, and the rank of its rows."""
    norms = measure_columns(X)
    found, _, rank, _ = np.linalg.lstsq(X / norms, y, rcond=1.0 / UNEXCITED)
    return found / norms, int(rank)


@dataclass(frozen=True, eq=False)
class RowsApart(ChangedRows):
    """Rows whose groups have scores of their own, as what they do to the estimate differs.

    The rows are without instruments.
    """

    moved: Array
    """By which each group's own fit differs from the estimate, shape (groups, base parameters):
    taken off the torques, so that the estimate leaves the errors of these fits."""

    @property
    def instruments(self) -> tuple[Integers, ...]:
        """X itself, one group's beside another's."""
        return tuple(c + g * self.moved.shape[1] for g, c in enumerate(self.columns))

    @property
    def instrument_sets(self) -> int:
        """One a group."""
        return len(self.groups)

    def only(self, base: BaseParameters, chosen: Sequence[int]) -> RowsApart:
        """The same rows with some of the base parameters."""
        return RowsApart(self.rows.only(base, chosen), self.moved[:, list(chosen)])

    def passes(self) -> Iterator[Iterator[Rows]]:
        """Rows of each log."""
        for log in self.rows.passes():
            yield map(self._apart, log)

    def _apart(self, rows: Rows) -> Rows:
        groups = zip(rows.X, rows.y, self.moved, self.columns, strict=True)
        y = tuple(y - X @ moved[columns] for X, y, moved, columns in groups)
        return attach_instruments(replace(rows, y=y), rows)
