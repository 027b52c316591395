"""Recursive least squares and the Kalman filter over the rows of logs, in order of time.

Both go over the same rows as weighted least squares with the same sigma of each group's torque,
once and forwards. The sigma is not an unknown of a recursion: a row's weight has to be known when
it comes. It is that of weighted least squares on the whole log unless it is given, as it is where
a recursion runs beside a robot (`dynident.online.tracker`). Without forgetting and walks both end
where weighted least squares ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array, Integers
from dynident.core.bundle import Bundle
from dynident.core.errors import InputError
from dynident.core.options import Options, Positives, broadcast_to_joints
from dynident.core.schema import Flag as Truth
from dynident.core.schema import Number
from dynident.estimators.covariance import ErrorBars, Spread, name_covariance
from dynident.estimators.estimate import Estimate, Track
from dynident.estimators.least_squares import WeightedSolution, finish_ls_estimate
from dynident.online.recursion import (
    AgeingRule,
    Recursion,
    build_ageing_rule,
    choose_diffuse_std,
    estimate_natural_size,
    follow_rows,
    mark_friction_columns,
)
from dynident.regression.generalised import list_free_groups
from dynident.regression.problem import Problem, Regression
from dynident.regression.rows import Rows
from dynident.regression.statistics import (
    Residuals,
    compute_residuals,
    estimate_long_run_ratio,
    is_whiteness_rejected,
)
from dynident.regression.weighted import compute_literature_std, require_excitation, solve_wls

INSTANTS = 400
"""Of a track, at most."""
SHORTEST_MEMORY = 1e-3

Seconds = Annotated[Number, Field(ge=SHORTEST_MEMORY)]
Walk = Annotated[Number, Field(ge=0.0, le=1e6)]


@dataclass(frozen=True)
class RowWeights(Options):
    """How the rows of a recursion are weighed."""

    sigma: Annotated[
        Positives | None,
        "standard deviation of the torque errors of each group of rows, usually a joint; by "
        "default that of wls on the same log, in `track` that of the result it starts from [Nm "
        "or N]",
    ] = None


@dataclass(frozen=True)
class Forgetting(Options):
    """How samples lose their weight."""

    memory: Annotated[
        Seconds | None,
        "time constant of forgetting, after which a sample has the weight 1/e; no forgetting by "
        "default [s]",
    ] = None
    memory_friction: Annotated[
        Seconds | None,
        "the same for the drives' friction alone, if it forgets at another rate than bodies and "
        "rotors [s]",
    ] = None
    directional: Annotated[
        Truth,
        "forget only along the directions of parameter space that new rows excite; overall "
        "forgetting is then slower, about by a factor of the number of parameters",
    ] = False

    def rule(self, size: Array, rubs: np.ndarray, share: int) -> AgeingRule:
        """How parameters of these natural sizes age."""
        memory = np.inf if self.memory is None else self.memory
        if self.directional:
            if self.memory is None or self.memory_friction is not None:
                raise InputError("directional forgetting has one memory: give memory alone")
            return build_ageing_rule(size, directional=memory, share=share)
        friction = memory if self.memory_friction is None else self.memory_friction
        return build_ageing_rule(size, memory=np.where(rubs, friction, memory), share=share)

    @property
    def ages(self) -> bool:
        """Whether anything is forgotten."""
        return self.memory is not None or self.memory_friction is not None


@dataclass(frozen=True)
class Drift(Options):
    """How parameters walk at random."""

    walk: Annotated[
        Walk,
        "standard deviation of the random walk of the bodies' and rotors' parameters after one "
        "second, relative to the change that moves the torques by 100 sigma",
    ] = 0.0
    walk_friction: Annotated[Walk, "the same of the drives' friction"] = 0.0

    def rule(self, size: Array, rubs: np.ndarray, share: int) -> AgeingRule:
        """How parameters of these natural sizes age."""
        return build_ageing_rule(
            size, walk=np.where(rubs, self.walk_friction, self.walk), share=share
        )

    @property
    def ages(self) -> bool:
        """Whether anything walks."""
        return self.walk > 0.0 or self.walk_friction > 0.0


def rls(
    problem: Problem,
    forgetting: Forgetting = Forgetting(),
    weights: RowWeights = RowWeights(),
    bars: ErrorBars = ErrorBars(),
) -> Estimate:
    """Recursive least squares with exponential forgetting (zhang2018, eq. 22 and 23).

    The factor mu of the literature is ``exp(-step / memory)`` with the time between two rows as
    the step.

    Raises
    ------
    InputError
        For options that contradict each other.
    ComputationError
        When the log does not excite all base parameters or sigma does not settle.
    """
    return estimate_recursively(problem, forgetting, "forgetting", weights, bars)


def kf(
    problem: Problem,
    drift: Drift = Drift(),
    weights: RowWeights = RowWeights(),
    bars: ErrorBars = ErrorBars(),
) -> Estimate:
    """The Kalman filter on parameters that walk at random (zhang2018, eq. 19).

    Raises
    ------
    InputError
        For options that contradict each other.
    ComputationError
        When the log does not excite all base parameters or sigma does not settle.
    """
    return estimate_recursively(problem, drift, "a random walk", weights, bars)


def choose_group_sigma(problem: Problem, weights: RowWeights) -> Array:
    """Sigma of each group of rows."""
    factors = problem.factors
    require_excitation(problem, factors.weighted(factors.ones))
    if weights.sigma is None:
        return solve_wls(factors)[1]
    return np.array(
        broadcast_to_joints(weights.sigma, len(problem.groups), "sigma", "groups of rows")
    )


def convert_to_equation_sigma(problem: Problem, sigma: Array) -> Array:
    """Sigma of each equation of motion, from those of the groups of rows, shape (rows,).

    Of equations that rows have in combinations alone it is that of the combinations, in units of
    what the equations were scaled by; it is infinite of those that no row has.
    """
    place = problem.idim.rows
    own = np.where(problem.factors.counts[:place] > 0.0, sigma[:place], np.inf)
    scales = [log.scale for log in problem.samples if log.scale is not None]
    scale = np.mean(scales or [np.ones(place)], axis=0)
    for each in list_free_groups(problem.idim, problem.samples):
        own[each.acting] = np.minimum(own[each.acting], sigma[place] * scale[each.acting])
        place += each.count
    return np.asarray(own)


def estimate_recursively(
    problem: Problem, ageing: Forgetting | Drift, what: str, weights: RowWeights, bars: ErrorBars
) -> Estimate:
    """The estimate at the end of the logs, with its track.

    `what`: what that is called.
    """
    sigma = choose_group_sigma(problem, weights)
    size = estimate_natural_size(problem.base, convert_to_equation_sigma(problem, sigma))
    fading = ageing.rule(size, mark_friction_columns(problem.base), 0)
    if ageing.ages and bars.covariance is not None:
        raise InputError(
            f"covariance {bars.covariance!r} needs rows of equal weight, unlike {what}; "
            "leave it out"
        )
    state, track, rows = run_recursion(problem, sigma, fading)
    message = f"{rows} rows in order of time"
    if not ageing.ages:
        estimate = finish_ls_estimate(
            problem, WeightedSolution(state.beta, sigma, sigma, rows, message), bars
        )
        return replace(estimate, track=track)
    errors = compute_residuals(problem, state.beta)
    literature = compute_literature_std(problem.factors.weighted(sigma))
    spread = inflate_covariance(state.covariance, errors)
    covariance = name_covariance(f"recursion with {what}", spread, literature)
    return Estimate(state.beta.copy(), None, sigma, covariance, errors, rows, message, track=track)


def inflate_covariance(covariance: Array, errors: Residuals) -> Spread:
    """That of a recursion, as if its rows were as many as are independent."""
    if not is_whiteness_rejected(errors.error):
        return Spread("white errors, a sigma per group", covariance)
    words = "long-run variance of the residuals (they are not white)"
    return Spread(words, covariance * estimate_long_run_ratio(errors.error))


def run_recursion(
    problem: Regression, sigma: Array, ageing: AgeingRule
) -> tuple[Recursion, Track, int]:
    """Everything that the rows tell, from a diffuse prior on.

    Returns
    -------
    state : Recursion
    track : Track
        At `INSTANTS` instants at most. Logs follow one another.
    rows : int
    """
    p, rule = problem.base.count, Bundle(ageing)
    state = Recursion.start(np.zeros(p), np.diag(1.0 / choose_diffuse_std(ageing)))
    every = max(1, -(-problem.factors.rows // INSTANTS))
    times: list[float] = []
    betas: list[Array] = []
    stds: list[Array] = []
    now, count = 0.0, 0
    for log, passed in zip(problem.samples, problem.passes(), strict=True):
        start, last = now, 0
        for stretch in passed:
            for part in merge_rows_by_time(problem, stretch, sigma, every):
                at = part.sample / log.rate
                elapsed = np.diff(at, prepend=last / log.rate)
                elapsed = np.maximum(elapsed, 0.0)
                squares = np.empty(len(at))
                follow_rows(
                    rule, state.R, state.beta, state.due, state.place, state.row, part.rows,
                    part.first, part.group, len(sigma), elapsed, squares,
                )  # fmt: skip
                last = int(part.sample[-1])
                count += len(at)
                times.append(start + last / log.rate)
                betas.append(state.beta.copy())
                stds.append(state.std)
        now = start + len(log.q) / log.rate
    return state, Track(np.array(times), np.array(betas), np.array(stds)), count


@dataclass(frozen=True)
class MergedRows:
    """Rows of all groups in order of time, ``[x | y]`` of unit variance."""

    rows: Array
    """Shape (r, p + 1)."""
    sample: Integers
    group: Integers
    first: Integers
    """`sample`, `group`, `first`: where they are from, and the first column that is not zero, shape
    (r,)."""


def merge_rows_by_time(
    problem: Regression, rows: Rows, sigma: Array, most: int
) -> Iterator[MergedRows]:
    """The rows of a stretch, at most so many at a time; rows of an instant stay together."""
    p = problem.base.count
    sample = np.concatenate(rows.sample)
    if not len(sample):
        return
    group = np.concatenate([np.full(len(y), g) for g, y in enumerate(rows.y)])
    full = np.zeros((len(sample), p + 1))
    stop = 0
    for X, y, columns, s in zip(rows.X, rows.y, problem.columns, sigma, strict=True):
        start, stop = stop, stop + len(y)
        full[start:stop, columns] = X / s
        full[start:stop, p] = y / s
    first = np.array([columns.min() if len(columns) else p for columns in problem.columns])
    order = np.lexsort((group, sample))
    full, sample, group = full[order], sample[order], group[order]
    starts = np.flatnonzero(np.diff(sample, prepend=-1))
    begin = 0
    while begin < len(sample):
        later = starts[starts >= begin + most]
        end = int(later[0]) if len(later) else len(sample)
        yield MergedRows(
            full[begin:end], sample[begin:end], group[begin:end], first[group[begin:end]]
        )
        begin = end
