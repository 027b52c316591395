"""Covariances by name, whatever the method: what the rows' errors are taken to be.

An estimate that is linear in its rows errs by ``beta - beta_true = gain sum_t u_t`` with the
scores ``u_t = sum_g z_tg psi(e_tg / w_g) / w_g``: z are the regressor's rows or the
instruments, w the sigmas that weighted them. Its covariance is ``gain S gain^T``, and the names
say how S, the variance of the sum, is had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from dynident.consistency.bootstrap import Redraw, block_sums, normal_sums
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import Options
from dynident.core.schema import Name, one_of
from dynident.regression.covariance import (
    Covariance,
    ScoreRows,
    bartlett_sum,
    filtered_correlation,
    identity,
    independent_sum,
    prewhitened_series,
    prewhitened_sum,
    score_series,
    scores_of,
)
from dynident.regression.problem import Regression
from dynident.regression.scatter import Scatter, lack_of_fit, scatter_of, scatter_sum
from dynident.regression.statistics import LAGS, Residuals, automatic_lag, whiteness_rejected


@dataclass(frozen=True)
class Scores:
    """What the error of an estimate is a sum of.

    Attributes
    ----------
    rows : Regression
        With the instruments, where it has any.
    beta : ndarray, shape (base parameters,)
    weights : ndarray, shape (groups,)
        The sigmas w that weighted the rows: ones for ordinary least squares.
    sigma : ndarray, shape (groups,)
        Standard deviations of the groups' errors.
    residuals : Residuals
    influence : callable
        psi of an M-estimator; the identity for least squares.
    """

    rows: Regression
    beta: Array
    weights: Array
    sigma: Array
    residuals: Residuals
    influence: Callable[[Array], Array] = field(default=identity, repr=False)

    @property
    def stream(self) -> ScoreRows:
        """The scores, pass by pass."""
        return scores_of(self.rows, self.beta, self.weights, self.influence)


@dataclass(frozen=True)
class Spread:
    """A covariance of the base parameters, in words and numbers.

    Attributes
    ----------
    words : str
    matrix : ndarray, shape (base parameters, base parameters)
    """

    words: str
    matrix: Array


WHITE = "white errors, a sigma per group"


def sandwich(scores: Scores, gain: Array) -> Spread:
    """Errors that are white, with a sigma per group: ``S = sum_g (sigma_g / w_g^2)^2 Z_g^T Z_g``.

    Weighted by these very sigmas it is ``(X^T Omega^-1 X)^-1`` of ardiani2024, eq. (9), and
    ``(Z^T X)^-1 Z^T Omega Z (X^T Z)^-1`` of instruments, eq. (12) where Pi is the identity.
    """
    half = gain @ white_root(scores, scores.sigma).T
    return Spread(WHITE, half @ half.T)


def white_root(scores: Scores, sigma: Array) -> Array:
    """F of ``S = F^T F`` where errors are white with a sigma per group."""
    rows = scores.rows
    factors = rows.instrument_factors if rows.instrumented else rows.factors
    z = rows.scores
    return np.vstack([
        g.factor[:, :z] * (s / w**2)
        for g, s, w in zip(factors.groups, sigma, scores.weights, strict=True)
    ])  # fmt: skip


FILTERED = "white errors before the filters, a sigma per group"


def filtered(scores: Scores, gain: Array) -> Spread:
    """Errors that were white before the rows' filters, with a sigma per group.

    The filter leaves them a density that is level over its passband, where the regressor's
    columns have theirs, and none beyond: more at the columns' frequencies than white rows of the
    same variance have. ``S`` is that of `sandwich` with the errors' density there,
    ``sigma_g^2 (1 + 2 sum_k rho_gk)``, the rho being those of `filtered_correlation`: the
    long-run variance of a sum (Newey and West 1987), known instead of estimated.
    """
    half = gain @ white_root(scores, filtered_sigma(scores)).T
    return Spread(FILTERED, half @ half.T)


def filtered_sigma(scores: Scores) -> Array:
    """Standard deviations of white rows that are as dense as the errors in the passband."""
    ratio = 1.0 + 2.0 * np.sum(filtered_correlation(scores.rows), axis=1)
    return np.asarray(scores.sigma * np.sqrt(np.maximum(ratio, 0.0)))


def as_filtered(scores: Scores) -> bool:
    """Whether the residuals are as coloured as the filters alone leave them."""
    expected = filtered_correlation(scores.rows)[:, :LAGS]
    return not whiteness_rejected(scores.residuals.error, expected)


def robust(scores: Scores, gain: Array) -> Spread:
    """Errors that are independent in time and of any variance (White 1980)."""
    return Spread("errors independent in time", gain @ independent_sum(scores.stream) @ gain.T)


def bartlett(scores: Scores, gain: Array) -> Spread:
    """Errors that are correlated in time: Newey and West (1987), lag by Andrews (1991)."""
    lag = automatic_lag(scores.residuals.error)
    return Spread(f"hac, Bartlett lag {lag}", gain @ bartlett_sum(scores.stream, lag) @ gain.T)


def hac(scores: Scores, gain: Array) -> Spread:
    """Errors that are correlated in time, whitened by autoregressions: `prewhitened_sum`."""
    total, words = prewhitened_sum(scores.stream)
    return Spread(f"hac, prewhitened by {words}", gain @ total[0] @ gain.T)


def scatter(scores: Scores, gain: Array) -> Spread:
    """Errors as the periods of a log that repeats have them: `scatter_sum`.

    Raises
    ------
    InputError
        When a log was not averaged over its periods, or these are not alike.
    """
    found = scatter_of(scores.rows, scores.beta)
    if found is None:
        raise InputError(
            "covariance 'scatter' is that of whole logs averaged over periods that are alike; give "
            "period, and warmup where the motion had not settled"
        )
    return by_scatter(scores, gain, found)


def by_scatter(scores: Scores, gain: Array, found: Scatter) -> Spread:
    """The same of a scatter that is known."""
    total = scatter_sum(scores.rows, scores.weights, found)
    periods = ", ".join(str(len(errors)) for errors in found.logs)
    return Spread(f"scatter between {periods} periods", gain @ total @ gain.T)


COVARIANCES: dict[str, Callable[[Scores, Array], Spread]] = {
    "sandwich": sandwich,
    "filtered": filtered,
    "robust": robust,
    "bartlett": bartlett,
    "hac": hac,
    "scatter": scatter,
}
"""How the errors of the rows are counted, by name."""

CovarianceName = Annotated[Name, one_of(COVARIANCES)]


@dataclass(frozen=True)
class ErrorBars(Options):
    """What error bars rest on: an option of every method."""

    covariance: Annotated[
        CovarianceName | None,
        "what the rows' errors are taken to be; unless told otherwise `scatter` where all logs are "
        "averaged over periods and the model leaves nothing but their noise, else `hac` where the "
        "residuals are not white but for what the filters do",
    ] = None


def spread_of(scores: Scores, gain: Array, bars: ErrorBars, white: str = "filtered") -> Spread:
    """The covariance of an estimate.

    Parameters
    ----------
    scores : Scores
    gain : ndarray, shape (base parameters, columns of the scores)
    bars : ErrorBars
    white : str
        What is taken where the residuals are white, of `filtered` but for what the filters do,
        and nothing else was asked for.
    """
    if bars.covariance is not None:
        return COVARIANCES[bars.covariance](scores, gain)
    noise = scatter_of(scores.rows, scores.beta)
    if noise is not None:
        fit = lack_of_fit(scores.rows, scores.beta, scores.sigma, noise)
        if not fit.rejected:
            return by_scatter(scores, gain, noise)
    errors = scores.residuals.error
    if as_filtered(scores) if white == "filtered" else not whiteness_rejected(errors):
        return COVARIANCES[white](scores, gain)
    found = hac(scores, gain)
    return Spread(f"{found.words} (residuals are not white)", found.matrix)


def redraw_of(scores: Scores, bars: ErrorBars, Pi: Array | None) -> tuple[Redraw, str]:
    """Sums of scores anew, as the covariance takes their errors to be, and that in words.

    Of white errors the sum is that of all rows, and normal: drawn again from few residuals it
    would be too small by what the fit has taken from those that it leans on.

    Parameters
    ----------
    scores : Scores
    bars : ErrorBars
    Pi : ndarray, shape (scores, base parameters), or None
        From instruments to parameters.
    """

    def of(u: Array) -> Array:
        return u if Pi is None else u @ Pi

    chosen = bars.covariance
    if chosen is None:
        chosen = "filtered" if as_filtered(scores) else "hac"
    if chosen == "sandwich":
        return normal_sums(of(white_root(scores, scores.sigma))), WHITE
    if chosen == "filtered":
        return normal_sums(of(white_root(scores, filtered_sigma(scores)))), FILTERED
    if chosen == "hac":
        stream, words = prewhitened_series(scores.stream)
        length, words = 1, f"scores prewhitened by {words}"
    else:
        stream = score_series(scores.stream)
        length = 1 + (automatic_lag(scores.residuals.error) if chosen == "bartlett" else 0)
        words = f"blocks of {length} instants"
    series = tuple(of(u) for u in stacked(stream))
    return block_sums(series, scores.rows.factors.rows, length), words


def stacked(series: Iterator[Iterator[tuple[int, Array]]]) -> tuple[Array, ...]:
    """All instants of each log."""
    return tuple(np.vstack([u for _, u in log]) for log in series)


def named(kind: str, spread: Spread, literature: Array) -> Covariance:
    """A covariance under its full name, beside the literature's standard deviations."""
    return Covariance(f"{kind}: {spread.words}", np.asarray(spread.matrix), literature)
