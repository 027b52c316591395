"""The extended Kalman filter on friction that is not linear in all of its parameters.

Base parameters b and shape parameters s are estimated jointly (zhang2018, eq. 20 and 21). A row
``y = x(s) b`` is absorbed in its tangent at what is known before it,

    [x(s0) | g] [b; s] = y + g s0,     g = d(x(s) b0) / ds,

by the square-root recursion of linear rows. Rows are made anew at the shape that each `STRETCH` of
instants begins with, through the filters of the batch, so that they are its rows there. Shapes are
the last of the unknowns: with one of them at a bound the others' least squares is that of their
own triangle, and the base parameters follow from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field
from scipy import linalg

from dynident.core.arrays import Array, Integers
from dynident.core.bundle import Bundle
from dynident.core.errors import InputError
from dynident.core.options import Options
from dynident.core.schema import Number
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.columns import fill_rows
from dynident.estimators.covariance import ErrorBars, Spread, name_covariance
from dynident.estimators.estimate import Estimate, ShapeEstimate, Track
from dynident.friction.model import name_signals
from dynident.online.recursion import (
    AgeingRule,
    Recursion,
    estimate_natural_size,
    follow_rows,
    mark_friction_columns,
)
from dynident.online.recursive import (
    INSTANTS,
    Forgetting,
    RowWeights,
    choose_group_sigma,
    convert_to_equation_sigma,
    inflate_covariance,
    rls,
)
from dynident.regression.decimate import GroupDecimator
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem, refuse_combinations, refuse_sensors
from dynident.regression.statistics import compute_residuals
from dynident.regression.weighted import compute_literature_std

STRETCH = 8
"""Instants whose rows share a tangent."""

KNOWN = 1e-9
"""Of what is a fact: its standard deviation over its size."""
WIDER = 30.0
"""Standard deviations of least squares that the start is uncertain by, at least."""

Relative = Annotated[Number, Field(ge=1e-9, le=1e3)]


@dataclass(frozen=True)
class ShapeBelief(Options):
    """What is believed of shapes before the log."""

    shape_std: Annotated[
        Relative,
        ("standard deviation of each shape parameter before the log, relative to its usual value"),
    ] = 1.0


def ekf(
    problem: Problem,
    belief: ShapeBelief = ShapeBelief(),
    forgetting: Forgetting = Forgetting(),
    weights: RowWeights = RowWeights(),
    bars: ErrorBars = ErrorBars(),
) -> Estimate:
    """The extended Kalman filter on linear and shape parameters (zhang2018, eq. 21 and 24).

    Shapes forget as the friction does. Without shape parameters it is `rls`.

    Parameters
    ----------
    problem : Problem
    belief : ShapeBelief
    forgetting : Forgetting
    weights : RowWeights
        By default sigma is that of wls at the friction's usual shape.
    bars : ErrorBars

    Raises
    ------
    InputError
        When the friction has a memory or depends on load or temperature, another covariance than
        the filter's own is asked for, or options contradict each other.
    ComputationError
        When the log does not excite all base parameters or sigma does not settle.
    """
    if not problem.idim.shape_parameters:
        return rls(problem, forgetting, weights, bars)
    refuse_beyond_instants(problem, bars)
    sigma = choose_group_sigma(problem, weights)
    state, size = believe(problem, belief, sigma)
    rubs = mark_friction_columns(problem.base)
    rubs = np.concatenate([rubs, np.ones(len(size) - len(rubs), dtype=bool)])
    count, instants = absorb_rows(problem, sigma, forgetting.rule(size, rubs, 0), state)
    idim, p = problem.idim, problem.base.count
    shaped = Problem.of(replace(problem.base, idim=idim.shaped(state.beta[p:])), problem.samples)
    errors = compute_residuals(shaped, state.beta[:p])
    whole = inflate_covariance(state.covariance, errors)
    literature = compute_literature_std(shaped.factors.weighted(sigma))
    kind = "extended Kalman filter" + (" with forgetting" if forgetting.ages else "")
    covariance = name_covariance(kind, Spread(whole.words, whole.matrix[:p, :p]), literature)
    names = tuple(each.name for each in idim.shape_parameters)
    free = np.less(*idim.shape_bounds)
    std = np.where(free, np.sqrt(np.diag(whole.matrix)[p:]), np.nan)
    found = ShapeEstimate(names, state.beta[p:].copy(), std)
    every = max(1, -(-len(instants) // INSTANTS))
    track = Track(*(np.array(each) for each in zip(*instants[::every], strict=True)))
    return Estimate(
        state.beta[:p].copy(), None, sigma, covariance, errors, count,
        f"{count} rows in order of time, each in its tangent", shape=found,
        track=track,
    )  # fmt: skip


def refuse_beyond_instants(problem: Problem, bars: ErrorBars) -> None:
    """Refuse friction, rows and covariances that the filter does not have."""
    idim = problem.idim
    if idim.needs:
        needs = name_signals(idim.needs)
        raise InputError(
            f"its friction depends on the {needs}, which ekf does not follow; take wls"
        )
    if idim.has_states:
        raise InputError(
            f"friction {idim.friction!r} depends on more than the motion of an instant, which ekf "
            "does not follow"
        )
    refuse_sensors(problem.robot, "ekf follows")
    refuse_combinations(problem, "ekf does not follow rows of")
    if bars.covariance is not None:
        raise InputError(f"covariance {bars.covariance!r} does not apply to ekf, which has its own")


def believe(problem: Problem, belief: ShapeBelief, sigma: Array) -> tuple[Recursion, Array]:
    """What is believed before the first row, and the natural size of all that is to be found."""
    idim, shape = problem.idim, np.array(problem.idim.shape)
    lower, upper = idim.shape_bounds
    std = belief.shape_std * np.maximum(np.abs(shape), 1e-3 * (upper - lower))
    # facts of elements are believed to the last digit
    std = np.where(lower == upper, KNOWN * np.maximum(std, 1.0), std)
    natural = estimate_natural_size(problem.base, convert_to_equation_sigma(problem, sigma))
    # a tangent at parameters that mean nothing yet would tell nonsense of the shapes, and for good:
    # the linear ones start where least squares ends at the usual shape, each within its own size
    system = problem.factors.weighted(sigma)
    linear = system.solve()
    wide = np.concatenate([np.maximum(np.abs(linear), WIDER * compute_literature_std(system)), std])
    state = Recursion.start(np.concatenate([linear, shape]), np.diag(1.0 / wide))
    return state, np.concatenate([natural, std])


def absorb_rows(
    problem: Problem, sigma: Array, ageing: AgeingRule, state: Recursion
) -> tuple[int, list[tuple[float, Array, Array]]]:
    """Take in all rows in order of time, stretch by stretch about what is known by then.

    Returns how many rows there were, and behind each stretch the time, the linear parameters and
    their standard deviations.
    """
    idim, p, rule = problem.idim, problem.base.count, Bundle(ageing)
    instants, count, now = list[tuple[float, Array, Array]](), 0, 0.0
    for log in problem.samples:
        last = 0
        for segment, length in cut_into_stretches(log):
            base = replace(problem.base, idim=idim.shaped(state.beta[p:]))
            rows, group, sample = linearise_stretch(base, log, segment, length, state.beta, sigma)
            if not len(rows):
                continue
            elapsed = np.maximum(np.diff(sample, prepend=last), 0) / log.rate
            last = int(sample[-1])
            first = np.zeros(len(rows), dtype=np.int64)
            follow_rows(
                rule, state.R, state.beta, state.due, state.place, state.row, rows, first,
                group, len(sigma), elapsed, np.empty(len(rows)),
            )  # fmt: skip
            keep_shapes_in_bounds(state, *idim.shape_bounds)
            count += len(rows)
            instants.append((now + last / log.rate, state.beta[:p].copy(), state.std[:p]))
        now += len(log.q) / log.rate
    return count, instants


def cut_into_stretches(log: GeneralisedSamples) -> Iterator[tuple[tuple[int, int], int]]:
    """Runs of samples that make `STRETCH` instants each, and how many of them are their own."""
    step = int(np.lcm.reduce([f.step for f in log.filters]))
    length = step * max(1, STRETCH * min(f.step for f in log.filters) // step)
    reach = 2 * max(f.half for f in log.filters)
    for start, stop in log.segments:
        for begin in range(start, stop, length):
            yield (begin, min(stop, begin + length + reach)), length


def linearise_stretch(
    base: BaseParameters,
    log: GeneralisedSamples,
    segment: tuple[int, int],
    length: int,
    known: Array,
    sigma: Array,
) -> tuple[Array, Integers, Integers]:
    """Rows ``[x | g | y + g s]`` of a stretch in order of time, of unit variance.

    With the group and the sample of each.
    """
    start, stop = segment
    linear = base.linearised(base.standard(known[: base.count]))
    packing = linear.idim.packing(linear.kept)
    packed = np.empty((stop - start, packing.width))
    fill_rows(
        linear.idim, packing, log.q[start:stop], log.dq[start:stop], log.ddq[start:stop], packed
    )
    widths = [entries.stop - entries.start + 1 for entries, _ in packing.joints]
    blocks = [
        (packed[:, entries], log.tau[start:stop, j : j + 1])
        for j, (entries, _) in enumerate(packing.joints)
    ]
    decimator = GroupDecimator(log.filters, log.moving, start, stop, widths, log.left_out)
    found, sample = decimator.push(start, blocks)
    rows, times = [], []
    groups: list[int] = []
    for j, (_, columns) in enumerate(packing.joints):
        # instants of the next stretch are its own
        kept = sample[j] < start + log.filters[j].half + length
        full = np.zeros((int(kept.sum()), len(known) + 1))
        block = found[j][kept] / sigma[j]
        full[:, columns] = block[:, :-1]
        full[:, -1] = block[:, -1] + block[:, :-1] @ linear.shift[columns]
        rows.append(full)
        groups += [j] * len(full)
        times.append(sample[j][kept])
    at = np.concatenate(times)
    group = np.array(groups, dtype=np.int64)
    order = np.lexsort((group, at))
    return np.vstack(rows)[order], group[order], at[order]


def keep_shapes_in_bounds(state: Recursion, lower: Array, upper: Array) -> None:
    """Shapes within their bounds: the least squares of what is known under them."""
    p = len(state.beta) - len(lower)
    shape = state.beta[p:]
    if np.all((shape >= lower) & (shape <= upper)):
        return
    from scipy.optimize import lsq_linear  # a tenth of a second that few runs need

    full = len(state.beta)
    R, z = state.R[:, :full], state.R[:, full]
    room = np.where(lower == upper, KNOWN * np.maximum(1.0, np.abs(lower)), 0.0)
    found = lsq_linear(R[p:, p:], z[p:], (lower - room, upper + room), method="bvls")
    shape = np.clip(found.x, lower, upper)
    state.beta[p:] = shape
    state.beta[:p] = linalg.solve_triangular(R[:p, :p], z[:p] - R[:p, p:] @ shape)
