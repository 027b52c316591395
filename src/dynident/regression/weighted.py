"""Least squares on factors: sigmas that weigh the groups, and what the rows leave open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.factors import UNEXCITED, Factors, System
from dynident.core.options import Options
from dynident.core.schema import Rounds, Tolerance
from dynident.regression.problem import Regression

RESOLUTION = 1e-5
"""Smallest sigma that is believed, relative to the largest rms torque of a group."""
SHARE = 0.2
"""Share in the weakest directions, relative to the largest, above which it is named."""
REMEMBERED = 4
"""Earlier steps of an iteration that the next one is mixed with."""
PLAIN = 20
"""Rounds of whole steps, after which they are mixed."""
TOLERANCE = 1e-6


Past = tuple[tuple[Array, Array], ...]
"""Places of an iteration, and the steps that were due there."""


@dataclass(frozen=True)
class Reweighting(Options):
    """How long weights are renewed."""

    sigma_tolerance: Annotated[
        Tolerance,
        "relative change of the groups' sigmas, or of the robust weights, at which the "
        "iteration stops",
    ] = TOLERANCE
    round_limit: Annotated[Rounds, "most reweighting rounds before the fit is given up"] = 100


def solve_wls(
    factors: Factors, start: Array | None = None, reweighting: Reweighting = Reweighting()
) -> tuple[Array, Array, int]:
    """WLS estimate, sigmas and rounds; minimum norm where the rows leave beta open.

    Where there are sigmas to begin with, shape (groups,), steps from there are mixed, and fewer.
    """
    factors, place = factors.pool()
    sigma = factors.ones if start is None else start[np.unique(place, return_index=True)[1]]
    past: Past = ()
    for iteration in range(1, reweighting.round_limit + 1):
        system = factors.weighted(sigma)
        beta = system.solve()
        new = estimate_group_sigma(factors, beta, sigma, system)
        settled = np.all(np.abs(new - sigma) <= reweighting.sigma_tolerance * new)
        # in logarithms, so that mixtures stay positive and units do not matter
        past = remember_step(past, np.log(sigma), np.log(new / sigma))
        sigma = new
        if settled:
            return beta, sigma[place], iteration
        if start is not None or iteration > PLAIN:
            sigma = np.exp(mix_past_steps(past, np.eye(len(new))))
    raise ComputationError(
        f"the groups' sigmas did not settle in {reweighting.round_limit} rounds; try ols"
    )


def remember_step(past: Past, place: Array, step: Array) -> Past:
    """Earlier steps and the one that is due; alone where it is longer than that before.

    A mixture that leaves a longer step due went astray: whole steps follow until it helps again.
    """
    if past and np.linalg.norm(step) > np.linalg.norm(past[-1][1]):
        past = ()
    return (*past[-REMEMBERED:], (place, step))


def mix_past_steps(past: Past, weigh: Array) -> Array:
    """Where whole steps from a mixture of places would end that leaves the least step due.

    The mixing of Anderson (1965): Newton's steps stop short, or swing, where residuals are large
    and loads change their direction; differences of steps tell how. The past are places and the
    steps that were due there, the present one last; `weigh` makes steps into sigmas.
    """
    places, steps = (np.column_stack(each) for each in zip(*past, strict=True))
    end = places + steps
    if len(past) == 1:
        return np.asarray(end[:, -1])
    # steps that repeat each other but for rounding tell nothing
    share = np.linalg.lstsq(weigh @ np.diff(steps), weigh @ steps[:, -1], rcond=1e-8)[0]
    return np.asarray(end[:, -1] - np.diff(end) @ share)


def estimate_group_sigma(
    factors: Factors, beta: Array, weights: Array, system: System | None = None
) -> Array:
    """Standard deviation of each group's error, under the weights that gave beta and their system.

    ``sigma_j^2 = ||e_j||^2 / (r_j - h_j)`` with the leverage ``h_j`` of the group's rows: the
    share of the parameters spent on them. Sums over all groups of one noise. Of `scarce`
    groups, whose errors could all vanish, it is the share of their torque that all groups have.
    """
    system = factors.weighted(weights) if system is None else system
    inverse = system.inverse()
    kinds = {noise: k for k, noise in enumerate(dict.fromkeys(factors.shared))}
    place = [kinds[noise] for noise in factors.shared]
    F, group = factors.stacked
    error = (F[:, -1] - F[:, :-1] @ beta) ** 2
    share = np.sum((F[:, :-1] @ inverse) ** 2, axis=1) / weights[group] ** 2
    squares, leverage, rows = (
        np.bincount(index, weights=values, minlength=len(kinds))
        for index, values in (
            (np.take(place, group), error),
            (np.take(place, group), share),
            (np.array(place), factors.counts),
        )
    )
    # a group that the parameters fit exactly would have no freedom left, and any sigma
    freedom = np.maximum.reduce([rows - leverage, 0.1 * rows, np.ones(len(rows))])
    sigma = np.sqrt(squares / freedom)[place]
    if np.any(scarce := factors.scarce):
        powers = factors.squared_torques / np.maximum(1.0, factors.counts)
        errors = np.bincount(group, weights=error, minlength=len(powers))
        share = np.sum(errors[powers > 0.0] / powers[powers > 0.0]) / np.sum(freedom)
        sigma[scarce] = np.sqrt(share * powers[scarce])
    return np.asarray(np.maximum(sigma, find_smallest_sigma(factors)))


def find_smallest_sigma(factors: Factors) -> float:
    """Smallest sigma that is believed.

    A noise-free simulation must neither divide by zero nor drown a prior in rounding.
    """
    largest = np.sqrt(np.max(factors.squared_torques / np.maximum(1.0, factors.counts)))
    return RESOLUTION * max(float(largest), np.finfo(float).tiny)


def require_excitation(problem: Regression, system: System) -> None:
    """Refuse rows that leave a combination of base parameters open."""
    condition, _, _ = system.condition()
    if condition > UNEXCITED:
        raise ComputationError(
            f"the log does not excite {describe_weak_combination(problem, system)} (condition "
            f"{condition:.1e}); record a richer motion, or use pc-idim-ls with a prior"
        )


def describe_weak_combination(problem: Regression, system: System) -> str:
    """The base parameters that the rows determine worst, in words."""
    _, rank, weak = system.condition()
    order = np.argsort(-weak, kind="stable")
    main = [problem.base.names[k] for k in order if weak[k] > SHARE * weak[order[0]]]
    shown = ", ".join(main[:6]) + (f" and {len(main) - 6} more" if len(main) > 6 else "")
    if len(main) == 1:
        return shown
    return f"{len(weak) - rank or 'a'} combination{'s' * (len(weak) - rank > 1)} of {shown}"


def compute_literature_std(system: System) -> Array:
    """Standard deviations by ``(X^T Omega^-1 X)^-1`` (ardiani2024, eq. 9)."""
    return np.asarray(np.sqrt(np.sum(system.inverse() ** 2, axis=1)))
