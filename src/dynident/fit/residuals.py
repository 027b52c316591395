"""What is left of the rows that were fitted, group by group: sizes and correlation in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array, freeze_array
from dynident.core.factors import Factors
from dynident.estimators.estimate import Estimate
from dynident.regression.rows import FREE_OF, RowGroup
from dynident.regression.statistics import LAGS as TESTED
from dynident.regression.statistics import (
    SIGNIFICANCE,
    TestResult,
    estimate_autocorrelation,
    run_whiteness_test,
)

LAGS = 20
"""Rows by which they are compared with themselves."""


@dataclass(frozen=True)
class GroupResiduals:
    """Residuals of one group of rows."""

    name: str
    unit: str
    """`name`, `unit`: of the group: a joint, an axis of a base's wrench."""
    rows: int
    sigma: float
    """Standard deviation that weighs them."""
    correlation: Array
    """With the same some rows later, shape (LAGS,)."""
    whiteness: TestResult
    """Of Ljung and Box."""

    @property
    def combination(self) -> bool:
        """Whether it is of combinations that are free of unmeasured contacts."""
        return self.name.startswith(FREE_OF)


def summarise_residuals(found: Estimate) -> tuple[GroupResiduals, ...]:
    """The residuals of an estimate, group by group."""
    left, sigmas = found.residuals, found.sigma
    if found.fitted is not None:  # its sigmas are of torques, its residuals of positions
        sigmas = np.array([np.sqrt(np.mean(error**2)) for error in left.error])
    return tuple(
        GroupResiduals(
            group.name,
            group.unit,
            len(error),
            float(sigma),
            freeze_array(estimate_autocorrelation(error, LAGS)),
            run_whiteness_test(error),
        )
        for group, error, sigma in zip(left.groups, left.error, sigmas, strict=True)
    )


def summarise_without_rows(
    groups: Sequence[RowGroup], factors: Factors, sigma: Array
) -> tuple[GroupResiduals, ...]:
    """What is known of residuals whose rows are gone: sizes, and nothing of their correlation."""
    unknown = TestResult("the residual is white", np.nan, np.nan, "rows are not available")
    return tuple(
        GroupResiduals(
            group.name,
            group.unit,
            own.rows,
            float(size),
            freeze_array(np.full(LAGS, np.nan)),
            unknown,
        )
        for group, own, size in zip(groups, factors.groups, sigma, strict=True)
    )


def is_any_not_white(groups: tuple[GroupResiduals, ...]) -> bool:
    """Whether any group's residual is not white, at 1 % over all groups (Bonferroni)."""
    told = [each.whiteness.p_value for each in groups if each.rows > TESTED]
    return bool(told) and min(told) * len(told) < SIGNIFICANCE
