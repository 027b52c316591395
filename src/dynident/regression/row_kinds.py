"""Which rows a method fits: decimated ones, every sample, or whitened ones.

Decimation is the literature's choice (brunot2019, eq. 6). Every sample is the strict framework of
output error, whose covariance holds for white errors only. The noise model of ardiani2024,
appendix VI-A, filters X, Z and y of each group by ``H_j^-1(z^-1)`` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from dynident.core.arrays import Array
from dynident.core.options import Options
from dynident.core.schema import Name, make_choice_validator
from dynident.filters.filters import DecimationFilter
from dynident.recording.periods import FINER
from dynident.regression.problem import Problem
from dynident.regression.statistics import compute_residuals, fit_autoregression


def decimated(problem: Problem) -> Problem:
    """The rows as the samples were prepared."""
    return problem


def take_every_sample(problem: Problem) -> Problem:
    """Rows without filter and decimation; of a mean period once, at about the log's own rate."""
    logs = []
    for log in problem.samples:
        apart = 1 if log.averaging is None else FINER
        segments = log.segments if log.averaging is None else (log.averaging.inner,)
        filters = (DecimationFilter(0.5 * log.rate, apart, np.ones(1)),) * len(log.filters)
        logs.append(replace(log, filters=filters, segments=segments))
    return problem.on(logs)


def whiten_rows(problem: Problem) -> Problem:
    """Every sample, filtered so that least-squares errors are white (appendix VI-A).

    An autoregressive model of each group's error, its order by Schwarz' criterion; the
    inverse of H_j is then a filter of finite length.
    """
    full = take_every_sample(problem)
    beta = problem.factors.weighted(problem.factors.ones).solve()
    models = [fit_autoregression(error) for error in compute_residuals(full, beta).error]
    logs = []
    for log in full.samples:
        every = log.filters[0]
        taps = [build_inverse_filter(a, every.step) for a in models]
        logs.append(replace(log, filters=tuple(replace(every, taps=own) for own in taps)))
    return full.on(logs)


def build_inverse_filter(a: Array, apart: int = 1) -> Array:
    """Taps of ``1 + a_1 z^-1 + ...``, oldest sample first, of odd length, so far apart."""
    taps = np.zeros(len(a) * apart + 1)
    taps[::apart] = [*a[::-1], 1.0]
    return taps


ROWS: dict[str, Callable[[Problem], Problem]] = {
    "decimated": decimated,
    "all": take_every_sample,
    "noise-model": whiten_rows,
}
"""Kinds of rows by name."""

Kind = Annotated[Name, make_choice_validator(ROWS)]


@dataclass(frozen=True)
class RowKind(Options):
    """Which rows are fitted."""

    rows: Annotated[
        Kind,
        "what is fitted: `decimated` rows, `all` samples, or those of a `noise-model`; errors are "
        "those of the decimated rows in any case",
    ] = "decimated"
