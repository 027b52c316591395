"""How much sums of scores vary: errors that are independent in time, and errors that are not.

Every estimator that is linear in the rows errs by a matrix times ``sum_t u_t`` with the scores
``u_t = sum_g z_tg psi(e_tg / w_g) / w_g``, summed over the groups with a row at instant t. The
covariance of that sum is all that its error bars need of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array, Integers, freeze_array
from dynident.core.jit import jit
from dynident.filters.decimate import group_equal_filters
from dynident.regression.problem import Regression
from dynident.regression.statistics import LAGS, fit_autoregression

LONGEST_PAUSE = 100
"""Instants after which nothing is left of a correlation."""


@dataclass(frozen=True)
class Covariance:
    """A covariance matrix with its name.

    Attributes
    ----------
    name : str
        Which formula.
    matrix : ndarray, shape (parameters, parameters)
        Of the base parameters. Its lower triangle counts, so that it is symmetric to the last bit.
    literature : ndarray, shape (parameters,)
        Standard deviations of the literature's formula ``(X^T Omega^-1 X)^-1``
        (ardiani2024, eq. 9), for comparison.
    """

    name: str
    matrix: Array
    literature: Array

    def __post_init__(self) -> None:
        lower = np.tril(self.matrix)
        full = lower + np.tril(lower, -1).T
        object.__setattr__(self, "matrix", freeze_array(full))

    @property
    def std(self) -> Array:
        """Standard deviations of the base parameters."""
        return np.sqrt(np.maximum(np.diag(self.matrix), 0.0))


def leave_unchanged(u: Array) -> Array:
    """Psi of least squares, and whatever else changes nothing."""
    return u


@dataclass(frozen=True)
class CovariancePart:
    """The rows of one group over a stretch of a log, divided by the group's weight."""

    sample: np.ndarray
    instant: np.ndarray
    """`sample`, `instant`: at the centre of each row's filter, and which of the log's rows that is,
    shape (r,), of int."""
    columns: np.ndarray
    """Which scores the group has a share in, shape (k,), of int."""
    Z: Array
    """Shape (r, k)."""
    error: Array
    """Shape (r, e). psi of the standardised errors; of one estimate, or of several regressions at
    once."""


Errors = Callable[[int, Array, Array, Array], Array]
"""Errors (r, e) of a group's rows, from its number and its X, Z and y."""


@dataclass(frozen=True)
class ScoreRows:
    """Rows over their groups' weights, with their errors, pass by pass."""

    rows: Regression
    weights: Array
    errors: Errors

    def passes(self) -> Iterator[Iterator[tuple[CovariancePart, ...]]]:
        """One part a group, stretch by stretch of each log."""
        for log, stretches in zip(self.rows.samples, self.rows.passes(), strict=True):
            step = min(f.step for f in log.filters)
            yield (
                tuple(
                    CovariancePart(
                        rows.sample[g],
                        rows.sample[g] // step,
                        columns,
                        rows.scores[g] / self.weights[g],
                        self.errors(g, rows.X[g], rows.scores[g], rows.y[g]),
                    )
                    for g, columns in enumerate(self.rows.instruments)
                )
                for rows in stretches
            )


def make_scores(
    rows: Regression,
    beta: Array,
    weights: Array,
    influence: Callable[[Array], Array] = leave_unchanged,
) -> ScoreRows:
    """The scores of an estimate; `influence` is psi of an M-estimator."""
    columns = rows.columns

    def errors(g: int, X: Array, Z: Array, y: Array) -> Array:
        return influence((y - X @ beta[columns[g]]) / weights[g])[:, None]

    return ScoreRows(rows, weights, errors)


Series = Iterator[tuple[int, Array]]
"""Scores of one log, stretch by stretch: the first instant, and sums of shape (e, instants, scores)
for each of the errors."""


def stream_scores(scores: ScoreRows) -> Iterator[Series]:
    """Scores u_t of each log."""
    for log in scores.passes():
        yield (
            sum_at_instants(parts, [(part.Z, part.error) for part in parts], scores.rows.scores)
            for parts in log
            if any(len(part.instant) for part in parts)
        )


def sum_at_instants(
    parts: tuple[CovariancePart, ...], shares: list[tuple[Array, Array]], width: int
) -> tuple[int, Array]:
    """The groups' rows times their errors, summed at each instant, and the first instant.

    Shares are rows and errors of each group, shapes (r, k) and (r, e); the sums have the shape (e,
    instants, width), and are zero at instants without rows.
    """
    present = [part.instant for part in parts if len(part.instant)]
    first = min(int(instant[0]) for instant in present)
    end = max(int(instant[-1]) for instant in present) + 1
    total = np.zeros((shares[0][1].shape[1], end - first, width))
    for part, (rows, errors) in zip(parts, shares, strict=True):
        add_products(total, part.instant - first, part.columns, rows, errors)
    return first, total


@jit
def add_products(
    total: Array, place: Integers, columns: Integers, rows: Array, errors: Array
) -> None:
    """Add the products of rows and errors where they belong, one error's sums after another's."""
    for e in range(errors.shape[1]):
        for t in range(len(place)):
            for c in range(len(columns)):
                total[e, place[t], columns[c]] += rows[t, c] * errors[t, e]


def correlate_filtered_noise(rows: Regression) -> Array:
    """Autocorrelation of white noise behind each group's filter at lags 1, 2, ..., (groups, lags).

    ``rho_k = sum_i h_i h_(i + k step) / sum_i h_i^2`` of the filter's taps h: what is white at
    every sample is nearly white, but not quite, in the rows that are kept. Of several logs the
    mean over their samples. There are as many lags as some filter reaches over, and at least those
    that are tested.
    """
    share = np.array([len(log.q) for log in rows.samples]) / sum(len(log.q) for log in rows.samples)
    reach = max((len(f.taps) - 1) // f.step for log in rows.samples for f in log.filters)
    found = np.zeros((len(rows.groups), max(LAGS, reach)))
    for log, weight in zip(rows.samples, share, strict=True):
        for f, groups in group_equal_filters([log.filter_of(g) for g in range(len(found))]):
            past = np.correlate(f.taps, f.taps, "full")[len(f.taps) - 1 :: f.step]
            found[groups, : len(past) - 1] += weight * (past[1:] / past[0])
    return found


def compute_freedom_factor(rows: Regression) -> float:
    """Factor on variances of residuals, ``r / (r - p)``: the fit has made them smaller."""
    count = rows.factors.rows
    return count / max(1, count - rows.base.count)


def sum_bartlett_scores(scores: ScoreRows, lag: int) -> Array:
    """Newey and West (1987): autocovariances of the scores under Bartlett's weights.

    Of lag 0 it is ``sum_t u_t u_t^T`` (White 1980), of errors that are independent in time and of
    any variance. Rows of different groups at the same instant may be correlated.
    """
    p = scores.rows.scores
    total = np.zeros((p, p))
    for log in stream_scores(scores):
        tail, end = np.zeros((0, p)), 0
        for first, (u,) in log:
            pause = min(max(first - end, 0), lag)
            # instants without rows have no score: they are zero, and keep later ones at their lag
            series = np.vstack([tail, np.zeros((pause, p)), u])
            old = len(series) - len(u)
            total += u.T @ u
            for k in range(1, min(lag, len(series) - 1) + 1):
                late = series[max(old, k) :]
                early = series[max(old, k) - k : len(series) - k]
                product = (1.0 - k / (lag + 1.0)) * (late.T @ early)
                total += product + product.T
            tail, end = series[max(0, len(series) - lag) :] if lag else tail, first + len(u)
    return total * compute_freedom_factor(scores.rows)


@dataclass(frozen=True)
class Innovations:
    """Errors of every group as innovations of an autoregression."""

    a: tuple[Array, ...]
    """``e_t = sum_k a_k e_(t+k) + w_t`` of each group; a stationary series has the same
    coefficients in both directions of time."""
    w: tuple[tuple[Array, ...], ...]
    """Of each log and group, shapes (rows, e)."""

    @property
    def words(self) -> str:
        """The orders."""
        orders = sorted({len(a) for a in self.a})
        return f"AR({'-'.join(str(o) for o in dict.fromkeys((orders[0], orders[-1])))})"


def fit_innovations(scores: ScoreRows) -> Innovations:
    """Fit the groups' errors by autoregressions, their orders by Schwarz' criterion."""
    logs = []
    for log in scores.passes():
        found: list[tuple[list[np.ndarray], list[Array]]] = [([], []) for _ in scores.rows.groups]
        for parts in log:
            for (instants, errors), part in zip(found, parts, strict=True):
                instants.append(part.instant)
                errors.append(part.error)
        logs.append([(np.concatenate(t), np.vstack(e)) for t, e in found])
    a = []
    for g in range(len(scores.rows.groups)):
        # of several regressions the errors' sum: it has a share in each
        whole = np.concatenate([log[g][1].sum(axis=1) for log in logs])
        # there the series is -a_1 e_(t-1) - ...
        a.append(-fit_autoregression(whole))
    w = tuple(
        tuple(
            whiten_errors(t, e, coefficients) for (t, e), coefficients in zip(log, a, strict=True)
        )
        for log in logs
    )
    return Innovations(tuple(a), w)


def find_smallest_step(instant: np.ndarray) -> int:
    """Instants from one row to the next where rows follow each other."""
    return int(np.min(np.diff(instant), initial=LONGEST_PAUSE))


def whiten_errors(instant: np.ndarray, error: Array, a: Array) -> Array:
    """``w_t = e_t - sum_k a_k e_(t+k)`` within each run; beyond its end all is zero."""
    w = error.copy()
    if len(a) and len(instant):
        subtract_following_rows(a, instant, find_smallest_step(instant), error, w)
    return w


@jit
def subtract_following_rows(
    a: Array, instant: np.ndarray, step: int, error: Array, w: Array
) -> None:
    """Take from each row its share in those that follow it, up to the next pause."""
    for t in range(len(w)):
        for k in range(min(len(a), len(w) - 1 - t)):
            if instant[t + k + 1] - instant[t + k] > step:
                break
            for c in range(w.shape[1]):
                w[t, c] -= a[k] * error[t + k + 1, c]


class Adjoint:
    """Rows filtered so that ``sum_t z_t e_t = sum_t filtered_t w_t``: the same for each group.

    ``x_t = z_t + sum_k a_k x_(t-k)``, which starts anew after a pause.
    """

    def __init__(self, a: Array, width: int) -> None:
        self._a = a
        self._past = np.zeros((len(a), width))
        self._last: int | None = None
        self._step = LONGEST_PAUSE

    def push(self, instant: np.ndarray, Z: Array) -> Array:
        """Filter the rows that follow those pushed before."""
        order = len(self._a)
        if not order or not len(instant):
            return Z
        self._step = min(self._step, find_smallest_step(instant))
        if self._last is not None and instant[0] - self._last > self._step:
            self._past = np.zeros_like(self._past)
        x = np.vstack([self._past, Z])
        begin = add_preceding_rows(self._a, instant, self._step, x)
        self._past = x[-order:].copy()
        # rows before the last pause are none of this run's
        self._past[: max(0, begin - (len(x) - order))] = 0.0
        self._last = int(instant[-1])
        return x[order:]


@jit
def add_preceding_rows(a: Array, instant: np.ndarray, step: int, x: Array) -> int:
    """``x_t += sum_k a_k x_(t-k)`` from row len(a) on; where the last run begins.

    `scipy.signal.lfilter` does the same for one run, but takes half a second to load.
    """
    order, begin = len(a), 0
    for t in range(order, len(x)):
        if t > order and instant[t - order] - instant[t - order - 1] > step:
            begin = t
        for k in range(min(order, t - begin)):
            for c in range(x.shape[1]):
                x[t, c] += a[k] * x[t - k - 1, c]
    return begin


Shares = list[tuple[Array, Array]]
"""Of each group, rows (r, k) and errors (r, e) whose products are independent in time."""


def stream_prewhitened_parts(
    scores: ScoreRows, found: Innovations
) -> Iterator[Iterator[tuple[tuple[CovariancePart, ...], Shares]]]:
    """Rows and errors with the same sum of products, of terms that are independent in time.

    ``sum_t z_t e_t = sum_t x_t w_t`` with the innovations w of the errors and the rows x
    filtered by the adjoint (`Adjoint`): the prewhitening of Andrews and Monahan (1992), of the
    errors instead of the scores. Stretch by stretch of each log, beside the rows as they are.
    """

    def stretches(
        log: Iterator[tuple[CovariancePart, ...]], w: tuple[Array, ...]
    ) -> Iterator[tuple[tuple[CovariancePart, ...], Shares]]:
        pairs = zip(found.a, scores.rows.instruments, strict=True)
        filters = [Adjoint(a, len(columns)) for a, columns in pairs]
        place = [0] * len(filters)
        for parts in log:
            if not any(len(part.instant) for part in parts):
                continue
            shares = []
            for g, part in enumerate(parts):
                own = slice(place[g], place[g] + len(part.instant))
                shares.append((filters[g].push(part.instant, part.Z), w[g][own]))
                place[g] = own.stop
            yield parts, shares

    return map(stretches, scores.passes(), found.w)


def sum_prewhitened_scores(scores: ScoreRows) -> tuple[Array, str]:
    """``S = sum_t v_t v_t^T`` of the terms of `stream_prewhitened_parts`, and words.

    Shape (e, scores, scores): for each of the errors. Recolouring is exact and there is no kernel.
    Positive semidefinite, and the sum of White (1980) where the errors are white.
    """
    found, p = fit_innovations(scores), scores.rows.scores
    count = next((w.shape[1] for log in found.w for w in log), 1)
    total = np.zeros((count, p, p))
    for log in stream_prewhitened_parts(scores, found):
        for parts, shares in log:
            _, v = sum_at_instants(parts, shares, p)
            total += v.transpose(0, 2, 1) @ v
    return total * compute_freedom_factor(scores.rows), found.words
