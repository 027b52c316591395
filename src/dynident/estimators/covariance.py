"""Covariances by name, whatever the method: what the rows' errors are taken to be.

An estimate that is linear in its rows errs by ``beta - beta_true = gain sum_t u_t`` with the
scores ``u_t = sum_g z_tg psi(e_tg / w_g) / w_g``: z are the regressor's rows or the
instruments, w the sigmas that weighted them. Its covariance is ``gain S gain^T``, and the names
say how S, the variance of the sum, is had.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Annotated

import numpy as np

from dynident.consistency.bootstrap import Redraw, make_block_redraw, make_normal_redraw
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import Options
from dynident.core.schema import Name, make_choice_validator
from dynident.estimators.clustered import ClusteredSum, sum_clustered_scores
from dynident.regression.blocks import factorise_run_sum
from dynident.regression.covariance import (
    Covariance,
    ScoreRows,
    correlate_filtered_noise,
    leave_unchanged,
    make_scores,
    stream_scores,
    sum_bartlett_scores,
    sum_prewhitened_scores,
)
from dynident.regression.problem import Regression
from dynident.regression.scatter import (
    PeriodScatter,
    factorise_scatter_sum,
    measure_scatter,
    run_lack_of_fit_test,
)
from dynident.regression.statistics import (
    LAGS,
    Residuals,
    choose_bartlett_lag,
    is_whiteness_rejected,
)


@dataclass(frozen=True)
class EstimateScores:
    """What the error of an estimate is a sum of."""

    rows: Regression
    """With the instruments, where it has any."""
    beta: Array
    weights: Array
    """Shape (groups,). The sigmas w that weighted the rows: ones for ordinary least squares."""
    sigma: Array
    residuals: Residuals
    influence: Callable[[Array], Array] = field(default=leave_unchanged, repr=False)
    """psi of an M-estimator; the identity for least squares."""

    @property
    def stream(self) -> ScoreRows:
        """The scores, pass by pass."""
        return make_scores(self.rows, self.beta, self.weights, self.influence)

    @cached_property
    def clustered_sum(self) -> ClusteredSum:
        """What their sum varies by where errors repeat in alike rows."""
        return sum_clustered_scores(self.stream)

    @cached_property
    def prewhitened(self) -> tuple[Array, str]:
        """What their sum varies by where errors are correlated in time, and by which models."""
        total, words = sum_prewhitened_scores(self.stream)
        return total[0], words

    @cached_property
    def scatter(self) -> PeriodScatter | None:
        """What the errors differ by from period to period, where all logs were averaged."""
        return measure_scatter(self.rows, self.beta)


@dataclass(frozen=True)
class Spread:
    """A covariance of the base parameters, in words and numbers."""

    words: str
    matrix: Array


CLUSTERED = "clustered"
"""Name of the covariance of errors that are not noise: what rows that are not white have."""
BLOCKS = "blocks"
"""Name of the covariance that is had of factors, without a row."""
REPEATED = 3.0
"""Variance of alike rows' errors over that of independent ones, from which errors that no test of
few rows tells from white ones are not taken as white."""
FACTORED = ("sandwich", BLOCKS)
"""Covariances that factors tell."""


def spread_by_factor(
    factorise: Callable[[EstimateScores], tuple[Array, str]], scores: EstimateScores, gain: Array
) -> Spread:
    """The covariance by F of ``S = F^T F``, and what its errors are taken to be in words."""
    root, words = factorise(scores)
    half = gain @ root.T
    return Spread(words, half @ half.T)


def factorise_white(scores: EstimateScores) -> tuple[Array, str]:
    """Errors that are white, with a sigma per group: ``S = sum_g (sigma_g / w_g^2)^2 Z_g^T Z_g``.

    Weighted by these very sigmas it is ``(X^T Omega^-1 X)^-1`` of ardiani2024, eq. (9), and
    ``(Z^T X)^-1 Z^T Omega Z (X^T Z)^-1`` of instruments, eq. (12) where Pi is the identity.
    """
    return factorise_white_sum(scores, scores.sigma), "white errors, a sigma per group"


def factorise_white_sum(scores: EstimateScores, sigma: Array) -> Array:
    """F of ``S = F^T F`` where errors are white with these sigmas."""
    rows = scores.rows
    factors = rows.instrument_factors if rows.instrumented else rows.factors
    z = rows.scores
    return np.vstack([
        g.factor[:, :z] * (s / w**2)
        for g, s, w in zip(factors.groups, sigma, scores.weights, strict=True)
    ])  # fmt: skip


def factorise_filtered(scores: EstimateScores) -> tuple[Array, str]:
    """Errors that were white before the rows' filters, with a sigma per group.

    The filter leaves them a density that is level over its passband, where the regressor's
    columns have theirs, and none beyond: more at the columns' frequencies than white rows of the
    same variance have. ``S`` is that of `factorise_white` with the errors' density there,
    ``sigma_g^2 (1 + 2 sum_k rho_gk)``, the rho being those of `correlate_filtered_noise`: the
    long-run variance of a sum (Newey and West 1987), known instead of estimated.
    """
    root = factorise_white_sum(scores, estimate_passband_sigma(scores))
    return root, "white errors before the filters, a sigma per group"


def estimate_passband_sigma(scores: EstimateScores) -> Array:
    """Standard deviations of white rows that are as dense as the errors in the passband."""
    ratio = 1.0 + 2.0 * np.sum(correlate_filtered_noise(scores.rows), axis=1)
    return np.asarray(scores.sigma * np.sqrt(np.maximum(ratio, 0.0)))


def is_coloured_by_filters(scores: EstimateScores) -> bool:
    """Whether the residuals are as coloured as the filters alone leave them."""
    expected = correlate_filtered_noise(scores.rows)[:, :LAGS]
    return not is_whiteness_rejected(scores.residuals.error, expected)


def robust(scores: EstimateScores, gain: Array) -> Spread:
    """Errors that are independent in time and of any variance (White 1980)."""
    total = sum_bartlett_scores(scores.stream, 0)
    return Spread("errors independent in time", gain @ total @ gain.T)


def bartlett(scores: EstimateScores, gain: Array) -> Spread:
    """Errors that are correlated in time: Newey and West (1987), lag by Andrews (1991)."""
    lag = choose_bartlett_lag(scores.residuals.error)
    return Spread(
        f"hac, Bartlett lag {lag}", gain @ sum_bartlett_scores(scores.stream, lag) @ gain.T
    )


def hac(scores: EstimateScores, gain: Array) -> Spread:
    """Errors that are correlated in time, whitened by autoregressions: `sum_prewhitened_scores`."""
    total, words = scores.prewhitened
    return Spread(f"hac, prewhitened by {words}", gain @ total @ gain.T)


def clustered(scores: EstimateScores, gain: Array) -> Spread:
    """Errors that are correlated in time, and repeat in like states: `sum_clustered_scores`."""
    return Spread(scores.clustered_sum.words, gain @ scores.clustered_sum.total @ gain.T)


def factorise_scatter(scores: EstimateScores) -> tuple[Array, str]:
    """Errors as the periods of a log that repeats have them: `factorise_scatter_sum`."""
    found = scores.scatter
    if found is None:
        raise InputError(
            "covariance 'scatter' is that of whole logs averaged over periods that are alike; give "
            "period, and warmup where the motion had not settled"
        )
    periods = ", ".join(str(len(errors)) for errors in found.logs)
    root = factorise_scatter_sum(scores.rows, scores.weights, found)
    return root, f"scatter between {periods} periods"


def factorise_blocks(scores: EstimateScores) -> tuple[Array, str]:
    """Errors that are alike in runs of time: `factorise_run_sum`, of factors alone."""
    if scores.rows.instrumented or scores.influence is not leave_unchanged:
        raise InputError(
            "covariance 'blocks' is that of least squares, without instruments and reweighting; "
            "give hac"
        )
    return factorise_run_sum(scores.rows, scores.weights)


FACTORS: dict[str, Callable[[EstimateScores], tuple[Array, str]]] = {
    "sandwich": factorise_white,
    "filtered": factorise_filtered,
    "scatter": factorise_scatter,
    BLOCKS: factorise_blocks,
}
"""F of ``S = F^T F``, where it is had without S, and what errors are taken to be, by name."""
COVARIANCES: dict[str, Callable[[EstimateScores, Array], Spread]] = {
    "sandwich": partial(spread_by_factor, factorise_white),
    "filtered": partial(spread_by_factor, factorise_filtered),
    "robust": robust,
    "bartlett": bartlett,
    "hac": hac,
    CLUSTERED: clustered,
    "scatter": partial(spread_by_factor, factorise_scatter),
    BLOCKS: partial(spread_by_factor, factorise_blocks),
}
"""How the errors of the rows are counted, by name."""

CovarianceName = Annotated[Name, make_choice_validator(COVARIANCES)]


@dataclass(frozen=True)
class ErrorBars(Options):
    """What error bars rest on: an option of every method."""

    covariance: Annotated[
        CovarianceName | None,
        "what is assumed of the rows' errors; by default `scatter` if all logs are averaged over "
        "periods and the residuals are no more than their noise; else, if the residuals are less "
        "white than the filters make them, `clustered`, or `hac` with instruments, `ml` and "
        "`sequential`; `blocks` with factors",
    ] = None


def estimate_covariance(
    scores: EstimateScores,
    gain: Array,
    bars: ErrorBars,
    white: str = "filtered",
    coloured: str = CLUSTERED,
) -> Spread:
    """The covariance of an estimate.

    Parameters
    ----------
    gain : ndarray, shape (base parameters, columns of the scores)
    white : str
        What is taken where the residuals are white, of `filtered` but for what the filters do,
        and nothing else was asked for.
    coloured : str
        What is taken where they are not. Of instruments `hac` in any case: what noise of the motion
        leaves of rows depends on the state, as the sign of a noisy velocity does, and comes again;
        these are asked for because it does not bias them.
    """
    chosen = choose_covariance(scores, bars, white, coloured)
    found = COVARIANCES[chosen](scores, gain)
    if chosen in (CLUSTERED, "hac") and bars.covariance is None:
        return Spread(f"{found.words} (residuals are not white)", found.matrix)
    return found


def choose_covariance(
    scores: EstimateScores, bars: ErrorBars, white: str = "filtered", coloured: str = CLUSTERED
) -> str:
    """Name of what was asked for, else of what the periods' scatter and the residuals say.

    Where the rows are gone, what their factors tell.
    """
    chosen = bars.covariance
    if not scores.rows.at_hand:
        chosen = chosen or BLOCKS
        if chosen not in FACTORED:
            raise InputError(
                f"covariance {chosen!r} needs rows, but only their factors were kept: take "
                f"{' or '.join(FACTORED)}, or identify the logs themselves"
            )
    if chosen is not None:
        return chosen
    noise = scores.scatter
    if noise is not None:
        fit = run_lack_of_fit_test(scores.rows, scores.beta, scores.sigma, noise)
        if not fit.rejected:
            return "scatter"
    if white == "filtered":
        is_white = is_coloured_by_filters(scores)
    else:
        is_white = not is_whiteness_rejected(scores.residuals.error)
    if scores.rows.instrumented or coloured != CLUSTERED:
        return white if is_white else "hac"
    return white if is_white and np.max(scores.clustered_sum.times) < REPEATED else CLUSTERED


def make_score_redraw(
    scores: EstimateScores, bars: ErrorBars, Pi: Array | None
) -> tuple[Redraw, str]:
    """Sums of scores anew, as the covariance takes their errors to be, and that in words.

    Of white errors, and of those whose scatter between periods is known, the sum is that of all
    rows, and normal: drawn again from few residuals it would be too small by what the fit has taken
    from those that it leans on. `Pi`: from instruments to parameters, shape (scores, base
    parameters).
    """

    def of(u: Array) -> Array:
        return u if Pi is None else u @ Pi

    chosen = choose_covariance(scores, bars)
    if chosen in FACTORS:
        root, words = FACTORS[chosen](scores)
        return make_normal_redraw(of(root)), words
    if chosen == CLUSTERED:
        return make_normal_redraw(
            of(factorise_sum(scores.clustered_sum.total))
        ), scores.clustered_sum.words
    if chosen == "hac":
        total, orders = scores.prewhitened
        return make_normal_redraw(of(factorise_sum(total))), f"hac, prewhitened by {orders}"
    length = 1 + (choose_bartlett_lag(scores.residuals.error) if chosen == "bartlett" else 0)
    words, stream = f"blocks of {length} instants", stream_scores(scores.stream)
    series = tuple(of(np.vstack([u for _, (u,) in log])) for log in stream)
    return make_block_redraw(series, scores.rows.factors.rows, length), words


def factorise_sum(S: Array) -> Array:
    """F of ``S = F^T F``."""
    size, axes = np.linalg.eigh(S)
    return np.asarray((axes * np.sqrt(np.maximum(size, 0.0))).T)


def name_covariance(kind: str, spread: Spread, literature: Array) -> Covariance:
    """A covariance under its full name, beside the literature's standard deviations."""
    return Covariance(f"{kind}: {spread.words}", np.asarray(spread.matrix), literature)
