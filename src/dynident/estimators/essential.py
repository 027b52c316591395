"""Essential parameters: the base parameters that a log determines well enough to keep.

The parameter with the largest relative standard deviation is eliminated and the rest
estimated again, until a stopping rule is met (Gautier 2013; Janot et al. 2014). All of it
runs on the factors, without touching the log. It is done once, by weighted least squares; any
method without constraints then estimates what was kept (brunot2019, section 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import BeforeValidator, Field

from dynident.core.arrays import Array
from dynident.core.errors import InputError, OptionError
from dynident.core.factors import Factors
from dynident.core.options import Of, Options
from dynident.core.schema import Name, Number, join_names, make_choice_validator
from dynident.core.text import suggest_nearest
from dynident.dynamics.base import BaseParameters
from dynident.regression.problem import Problem
from dynident.regression.scatter import estimate_sigma_by_scatter
from dynident.regression.statistics import SIGNIFICANCE, TestResult, run_f_test
from dynident.regression.weighted import require_excitation, solve_wls

GIVEN = "given"
"""In the place of a rule, where the set was given."""


@dataclass(frozen=True)
class EliminationStage:
    """One stage of the elimination."""

    kept: tuple[int, ...]
    relative_std: Array
    """Of those, in per cent."""
    squared_error: float
    """Weighted, in units of sigma^2."""
    rms: Array
    """Torque error of each joint [Nm or N], shape (groups,)."""

    @property
    def ratio(self) -> float:
        """Largest over smallest relative standard deviation."""
        return float(self.relative_std.max() / self.relative_std.min())


@dataclass(frozen=True)
class Essential:
    """Outcome of the elimination."""

    rule: str
    """A name in `RULES`, or `GIVEN`."""
    kept: tuple[int, ...]
    """Base parameters that survived."""
    eliminated: tuple[int, ...]
    """The others, in the order in which they went."""
    test: TestResult
    """F-test of the reduced model against the full one."""


class EliminationChoice(NamedTuple):
    """What a rule decides by: the full model, the one now, and the next one."""

    full: EliminationStage
    now: EliminationStage
    after: EliminationStage
    factors: Factors
    limits: Elimination


def stop_at_ratio(at: EliminationChoice) -> bool:
    """Stop once the relative standard deviations lie within a ratio."""
    return at.now.ratio <= at.limits.essential_ratio


def stop_at_f_test(at: EliminationChoice) -> bool:
    """Stop before the parameters left out would be significantly different from zero."""
    return compare_models(at.full, at.after, at.factors).p_value < at.limits.essential_p


def stop_at_torque_range(at: EliminationChoice) -> bool:
    """Stop before any joint's torque error rises noticeably against its torque range."""
    rows = np.maximum(at.factors.counts, 1.0)
    # a sinusoid's range is 2 sqrt(2) times its rms; factors do not keep extremes
    span = 2.0 * np.sqrt(2.0) * np.sqrt(at.factors.squared_torques / rows)
    rise = (at.after.rms - at.full.rms)[span > 0.0] / span[span > 0.0]
    return bool(100.0 * rise.max() > at.limits.essential_percent)


RULES: dict[str, Callable[[EliminationChoice], bool]] = {
    "ratio": stop_at_ratio,
    "f-test": stop_at_f_test,
    "torque-range": stop_at_torque_range,
}
"""Stopping rules by name: whether to stop."""

Rule = Annotated[Name, make_choice_validator(RULES)]


@dataclass(frozen=True)
class Elimination(Options):
    """Which base parameters are estimated; of methods without constraints."""

    essential: Annotated[
        Rule | None, "rule by which base parameters that the log does not determine are eliminated"
    ] = None
    essential_ratio: Annotated[
        Annotated[Number, Field(ge=1.0)],
        "ratio of the largest to the smallest relative standard deviation at which `ratio` stops",
        Of("essential", "ratio"),
    ] = 30.0  # "between 30 and 20"
    essential_p: Annotated[
        Annotated[Number, Field(gt=0.0, lt=1.0)],
        "p-value of the F-test at which `f-test` stops",
        Of("essential", "f-test"),
    ] = SIGNIFICANCE
    essential_percent: Annotated[
        Annotated[Number, Field(gt=0.0)],
        "increase of a joint's torque error, in per cent of its torque range, at which "
        "`torque-range` stops",
        Of("essential", "torque-range"),
    ] = 0.1
    only: Annotated[
        Annotated[str, BeforeValidator(join_names)] | None,
        "base parameters to estimate, by name with commas between; the others are zero",
    ] = None

    @property
    def acts(self) -> bool:
        """Whether any may be left out."""
        return self.essential is not None or self.only is not None


def compare_models(
    full: EliminationStage, reduced: EliminationStage, factors: Factors
) -> TestResult:
    """F-test of a reduced model against the full one."""
    dropped = len(full.kept) - len(reduced.kept)
    freedom = max(1, factors.rows - len(full.kept))
    return run_f_test(reduced.squared_error, full.squared_error, dropped, freedom)


def estimate_reduced_model(
    factors: Factors, sigma: Array, kept: tuple[int, ...]
) -> EliminationStage:
    """Estimate with some of the base parameters only."""
    chosen = factors.select(kept)
    system = chosen.weighted(sigma)
    beta = system.solve()
    std = np.sqrt(np.sum(system.inverse() ** 2, axis=1))
    relative = 100.0 * std / np.maximum(np.abs(beta), np.finfo(float).tiny)
    rows = np.maximum(factors.counts, 1.0)
    return EliminationStage(
        kept, relative, system.rest, np.sqrt(chosen.squared_residuals(beta) / rows)
    )


def select_essential_parameters(
    factors: Factors, sigma: Array, elimination: Elimination = Elimination("ratio")
) -> Essential:
    """Eliminate base parameters that the rows do not determine, by a rule.

    The sigmas are those of the groups' errors in the full model, shape (groups,).
    """
    rule = elimination.essential
    assert rule is not None
    full = now = estimate_reduced_model(factors, sigma, tuple(range(factors.parameters)))
    eliminated: list[int] = []
    while len(now.kept) > 1:
        worst = now.kept[int(np.argmax(now.relative_std))]
        after = estimate_reduced_model(factors, sigma, tuple(k for k in now.kept if k != worst))
        if RULES[rule](EliminationChoice(full, now, after, factors, elimination)):
            break
        eliminated.append(worst)
        now = after
    return Essential(rule, now.kept, tuple(eliminated), compare_models(full, now, factors))


def choose_base_parameters(problem: Problem, elimination: Elimination) -> Essential:
    """The base parameters that are estimated, by a rule or as they were given.

    Refused are names that are not base parameters', friction with shapes, and, by a rule, logs that
    do not excite all base parameters.
    """
    factors = problem.factors
    if problem.idim.shape:
        raise InputError(
            f"essential parameters are those of linear models; friction {problem.idim.friction!r} "
            "has shapes"
        )
    if elimination.only is None:
        require_excitation(problem, factors.weighted(factors.ones))
    known = estimate_sigma_by_scatter(problem)
    sigma = solve_wls(factors)[1] if known is None else known
    if elimination.only is None:
        return select_essential_parameters(factors, sigma, elimination)
    if elimination.essential is not None:
        raise InputError("only is a set of base parameters, and essential finds one: give one")
    names = [name.strip() for name in elimination.only.split(",")]
    kept = tuple(sorted({*find_base_columns(problem.base, names)}))
    left = tuple(k for k in range(problem.base.count) if k not in kept)
    return Essential(GIVEN, kept, left, run_left_out_test(factors, sigma, kept))


def find_base_columns(base: BaseParameters, names: Sequence[str]) -> list[int]:
    """Places of base parameters; the R of regrouped ones may be left out of their names."""
    places = {name.removesuffix("R"): k for k, name in enumerate(base.names)}
    places |= {name: k for k, name in enumerate(base.names)}
    for name in names:
        if name not in places:
            near = suggest_nearest(name, base.names)
            raise OptionError("only", f"only names {name!r}, which is not a base parameter{near}")
    return [places[name] for name in names]


def run_left_out_test(factors: Factors, sigma: Array, kept: Sequence[int]) -> TestResult:
    """F-test that all but some base parameters are zero, as far as the rows tell them."""
    full, reduced = factors.weighted(sigma), factors.select(kept).weighted(sigma)
    _, rank, _ = full.condition()
    freedom = max(1, factors.rows - rank)
    return run_f_test(reduced.rest, full.rest, max(0, rank - len(kept)), freedom)
