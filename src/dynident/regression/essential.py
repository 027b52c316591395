"""Essential parameters: the base parameters that a log determines well enough to keep.

The parameter with the largest relative standard deviation is eliminated and the rest
estimated again, until a stopping rule is met (Gautier 2013; Janot et al. 2014). All of it
runs on the factors, without touching the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array
from dynident.core.options import Options
from dynident.core.schema import Name, Number, make_choice_validator
from dynident.regression.factors import Factors
from dynident.regression.statistics import SIGNIFICANCE, TestResult, run_f_test


@dataclass(frozen=True)
class Step:
    """One stage of the elimination.

    Attributes
    ----------
    relative_std : ndarray
        Of those, in per cent.
    squared_error : float
        Weighted, in units of sigma^2.
    rms : ndarray, shape (groups,)
        Torque error of each joint [Nm or N].
    """

    kept: tuple[int, ...]
    relative_std: Array
    squared_error: float
    rms: Array

    @property
    def ratio(self) -> float:
        """Largest over smallest relative standard deviation."""
        return float(self.relative_std.max() / self.relative_std.min())


@dataclass(frozen=True)
class Essential:
    """Outcome of the elimination.

    Attributes
    ----------
    kept : tuple of int
        Base parameters that survived.
    eliminated : tuple of int
        The others, in the order in which they went.
    test : TestResult
        F-test of the reduced model against the full one.
    """

    rule: str
    kept: tuple[int, ...]
    eliminated: tuple[int, ...]
    test: TestResult


@dataclass(frozen=True)
class Limits:
    """Where the rules stop.

    Attributes
    ----------
    ratio : float
        Largest ratio of relative standard deviations that stays: "between 30 and 20".
    significance : float
        p-value of the F-test below which what was left out counts.
    percent : float
        How far the torque error may rise, in per cent of the torque range.
    """

    ratio: float = 30.0
    significance: float = SIGNIFICANCE
    percent: float = 0.1


def stop_at_ratio(full: Step, now: Step, next_step: Step, factors: Factors, limits: Limits) -> bool:
    """Stop once the relative standard deviations lie within a ratio."""
    del full, next_step, factors
    return now.ratio <= limits.ratio


def stop_at_f_test(
    full: Step, now: Step, next_step: Step, factors: Factors, limits: Limits
) -> bool:
    """Stop before the parameters left out would be significantly different from zero."""
    del now
    return compare_models(full, next_step, factors).p_value < limits.significance


def stop_at_torque_range(
    full: Step, now: Step, next_step: Step, factors: Factors, limits: Limits
) -> bool:
    """Stop before any joint's torque error rises noticeably against its torque range."""
    del now
    rows = np.maximum(factors.counts, 1.0)
    # a sinusoid's range is 2 sqrt(2) times its rms; factors do not keep extremes
    span = 2.0 * np.sqrt(2.0) * np.sqrt(factors.squared_torques / rows)
    rise = (next_step.rms - full.rms)[span > 0.0] / span[span > 0.0]
    return bool(100.0 * rise.max() > limits.percent)


RULES: dict[str, Callable[[Step, Step, Step, Factors, Limits], bool]] = {
    "ratio": stop_at_ratio,
    "f-test": stop_at_f_test,
    "torque-range": stop_at_torque_range,
}
"""Stopping rules by name: given the full model, this one and the next, whether to stop."""
LIMITS = Limits()

Rule = Annotated[Name, make_choice_validator(RULES)]


@dataclass(frozen=True)
class Elimination(Options):
    """Whether parameters that the log does not determine are left out: an option of OLS, WLS."""

    essential: Annotated[
        Rule | None, "rule by which base parameters that the log does not determine are eliminated"
    ] = None
    essential_ratio: Annotated[
        Annotated[Number, Field(ge=1.0)], "of relative standard deviations: where `ratio` stops"
    ] = LIMITS.ratio
    essential_p: Annotated[
        Annotated[Number, Field(gt=0.0, lt=1.0)], "p-value of the F-test: where `f-test` stops"
    ] = LIMITS.significance
    essential_percent: Annotated[
        Annotated[Number, Field(gt=0.0)],
        "rise of a joint's torque error, in per cent of its range: where `torque-range` stops",
    ] = LIMITS.percent

    @property
    def limits(self) -> Limits:
        """Where the rules stop."""
        return Limits(self.essential_ratio, self.essential_p, self.essential_percent)


def compare_models(full: Step, reduced: Step, factors: Factors) -> TestResult:
    """F-test of a reduced model against the full one."""
    dropped = len(full.kept) - len(reduced.kept)
    freedom = max(1, factors.rows - len(full.kept))
    return run_f_test(reduced.squared_error, full.squared_error, dropped, freedom)


def estimate_reduced_model(factors: Factors, sigma: Array, kept: tuple[int, ...]) -> Step:
    """Estimate with some of the base parameters only."""
    chosen = factors.select(kept)
    system = chosen.weighted(sigma)
    beta = system.solve()
    std = np.sqrt(np.sum(system.inverse() ** 2, axis=1))
    relative = 100.0 * std / np.maximum(np.abs(beta), np.finfo(float).tiny)
    rows = np.maximum(factors.counts, 1.0)
    return Step(kept, relative, system.rest, np.sqrt(chosen.squared_residuals(beta) / rows))


def select_essential_parameters(
    factors: Factors, sigma: Array, rule: str = "ratio", limits: Limits = LIMITS
) -> Essential:
    """Eliminate base parameters that the rows do not determine.

    Parameters
    ----------
    sigma : ndarray, shape (groups,)
        Standard deviations of each joint's error in the full model.
    """
    full = now = estimate_reduced_model(factors, sigma, tuple(range(factors.parameters)))
    eliminated: list[int] = []
    while len(now.kept) > 1:
        worst = now.kept[int(np.argmax(now.relative_std))]
        after = estimate_reduced_model(factors, sigma, tuple(k for k in now.kept if k != worst))
        if RULES[rule](full, now, after, factors, limits):
            break
        eliminated.append(worst)
        now = after
    return Essential(rule, now.kept, tuple(eliminated), compare_models(full, now, factors))
