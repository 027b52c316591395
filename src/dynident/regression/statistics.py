"""Residuals, tests and covariances of estimates that are linear in the rows.

All of them make one bounded pass over the decimated rows; nothing grows with the log but
the residuals themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from dynident.core.arrays import Array
from dynident.regression.problem import Regression
from dynident.regression.rows import RowGroup

SIGNIFICANCE = 0.01
NORMAL = 1.959963984540054
"""Of a normal variable, 95 % lie within so many standard deviations."""
OUTLYING = 6.0
"""Standard deviations beyond which an error is an outlier; of normal errors one in 5e8 is."""
LAGS = 10
LARGEST_ORDER = 60
"""Of an autoregression."""
ROUNDING = 1e-10
"""Share of the largest variance below which a direction of a covariance is not known."""


@dataclass(frozen=True)
class TestResult:
    """Outcome of a statistical test."""

    __test__ = False  # not for pytest to collect

    null: str
    """What is tested, in words."""
    statistic: float
    p_value: float
    distribution: str
    """Of the statistic under the null."""
    remark: str = ""
    """What a rejection amounts to."""

    @property
    def rejected(self) -> bool:
        """Whether the null is rejected at 1 %."""
        return self.p_value < SIGNIFICANCE


@dataclass(frozen=True, eq=False)
class EstimatedMotion:
    """A log's motion, where it was estimated together with the parameters."""

    time: Array
    """When positions were measured, from the log's first sample [s], shape (samples,)."""
    q: Array
    dq: Array
    ddq: Array
    """`q`, `dq`, `ddq`: shape (samples, n)."""
    std: Array
    """Of these three, shape (3, samples, n)."""


@dataclass(frozen=True)
class Residuals:
    """Decimated residuals of an estimate, per group of rows and in time order."""

    groups: tuple[RowGroup, ...]
    log: tuple[np.ndarray, ...]
    sample: tuple[np.ndarray, ...]
    """`log`, `sample`: of each row, which log it is of, and the index of its sample there."""
    error: tuple[Array, ...]
    """``y_g - X_g beta``."""
    motions: tuple[EstimatedMotion, ...] = ()
    """Of each log, along which they are, by methods that estimate it."""


NO_RESIDUALS = Residuals((), (), (), ())
"""Of an estimate whose rows are not available."""


def compute_residuals(problem: Regression, beta: Array) -> Residuals:
    """Residuals of base parameters `beta` on the rows of a problem; none where these are gone."""
    if not problem.at_hand:
        return NO_RESIDUALS
    log: list[list[np.ndarray]] = [[] for _ in problem.groups]
    sample: list[list[np.ndarray]] = [[] for _ in problem.groups]
    error: list[list[Array]] = [[] for _ in problem.groups]
    for k, stretches in enumerate(problem.passes()):
        for rows in stretches:
            for g, columns in enumerate(problem.columns):
                log[g].append(np.full(len(rows.y[g]), k))
                sample[g].append(rows.sample[g])
                error[g].append(rows.y[g] - rows.X[g] @ beta[columns])
    return Residuals(
        problem.groups,
        tuple(np.concatenate(k) for k in log),
        tuple(np.concatenate(s) for s in sample),
        tuple(np.concatenate(e) for e in error),
    )


def estimate_autocovariance(error: Array, lags: int) -> Array:
    """Autocovariance of a residual at lags 0 .. `lags`, its mean left in."""
    r = len(error)
    # over r and not r - k, which keeps the sequence positive semidefinite
    return np.array([float(error[k:] @ error[: r - k]) / r for k in range(lags + 1)])


def estimate_autocorrelation(error: Array, lags: int) -> Array:
    """Autocorrelation of a residual at lags 1 .. `lags`, its mean left in."""
    power = float(error @ error)
    if power == 0.0 or len(error) <= lags:
        return np.zeros(lags)
    return estimate_autocovariance(error, lags)[1:] * (len(error) / power)


def run_whiteness_test(error: Array, lags: int = LAGS, expected: Array | None = None) -> TestResult:
    """Ljung-Box test that a residual is white, or has the autocorrelation that is expected.

    ``Q = r (r + 2) sum_k (rho_k - expected_k)^2 / (r - k)``, chi-squared with `lags` degrees of
    freedom; of small correlations, with which the variance of rho_k is still about 1 / r.
    """
    r = len(error)
    rho = estimate_autocorrelation(error, lags)
    if expected is not None:
        rho = rho - expected
    q = float(r * (r + 2) * np.sum(rho**2 / (r - np.arange(1, lags + 1)))) if r > lags else 0.0
    return build_chi2_result("the residual is white", q, lags)


def is_whiteness_rejected(errors: tuple[Array, ...], expected: Array | None = None) -> bool:
    """Whether any group's residual is not white, at 1 % over all groups (Bonferroni).

    Expected may be an autocorrelation of each, shape (groups, LAGS): that of noise which was white
    before the filter.
    """
    known = [None] * len(errors) if expected is None else expected
    tests = [
        run_whiteness_test(e, LAGS, k) for e, k in zip(errors, known, strict=True) if len(e) > LAGS
    ]
    return bool(tests) and min(t.p_value for t in tests) * len(tests) < SIGNIFICANCE


def choose_bartlett_lag(errors: tuple[Array, ...]) -> int:
    """Bartlett bandwidth by Andrews' (1991) rule with an AR(1) plug-in.

    ``1.1447 (alpha r)^(1/3)`` with ``alpha = 4 rho^2 / (1 - rho^2)^2``, rho the median
    lag-1 autocorrelation of the groups.
    """
    present = [e for e in errors if len(e) > LAGS]
    if not present:
        return 0
    rho = float(
        # as Andrews and Monahan (1992) bound it: a root near one would ask for all lags
        np.clip(np.median([estimate_autocorrelation(e, 1)[0] for e in present]), -0.97, 0.97)
    )
    r = max(len(e) for e in present)
    alpha = 4.0 * rho**2 / (1.0 - rho**2) ** 2
    return min(int(np.ceil(1.1447 * (alpha * r) ** (1.0 / 3.0))), r // 4)


def estimate_long_run_ratio(errors: tuple[Array, ...]) -> float:
    """By how much autocorrelation inflates the variance of an average, at least 1.

    The mean over the groups of ``1 + 2 sum_k w_k rho_k`` with Bartlett weights: the rows
    carry as much information as that many times fewer independent ones. Negative correlations
    are not taken for more information than independent rows have.
    """
    lag = choose_bartlett_lag(errors)
    if lag == 0:
        return 1.0
    weights = 1.0 - np.arange(1, lag + 1) / (lag + 1.0)
    ratios = [
        1.0 + 2.0 * weights @ estimate_autocorrelation(e, lag) for e in errors if len(e) > lag
    ]
    return max(1.0, float(np.mean(ratios)))


def fit_autoregression(error: Array) -> Array:
    """Coefficients of ``e_t = -a_1 e_(t-1) - ... + w_t`` by Levinson's recursion, shape (order,).

    Of the even order of smallest ``r log(variance) + order log(r)``, at most `LARGEST_ORDER` and a
    tenth of the rows.
    """
    r = len(error)
    if r == 0:
        return np.zeros(0)
    largest = min(LARGEST_ORDER, r // 10)
    c = estimate_autocovariance(error, largest)
    best, chosen = r * np.log(max(c[0], 1e-300)), np.zeros(0)
    a, variance = np.zeros(0), float(c[0])
    for order in range(1, largest + 1):
        if variance <= 0.0:
            break
        # at most 1 in size, so that the model is stable: c is positive semidefinite
        reflection = -(c[order] + a @ c[order - 1 : 0 : -1]) / variance
        a = np.concatenate([a + reflection * a[::-1], [reflection]])
        variance *= 1.0 - reflection**2
        score = r * np.log(max(variance, 1e-300)) + order * np.log(r)
        if order % 2 == 0 and score < best:
            best, chosen = score, a
    return chosen


def is_clearly_positive(values: Array, errors: float = 1.0) -> bool:
    """Whether the sum of independent values exceeds so many of its standard errors."""
    return bool(np.sum(values) > errors * np.std(values, ddof=1) * np.sqrt(len(values)))


def compute_confidence_interval(value: Array, std: Array) -> tuple[Array, Array]:
    """Symmetric normal interval of 95 %."""
    half = float(special.ndtri(0.975)) * std
    return value - half, value + half


def compute_wald_statistic(value: Array, covariance: Array) -> tuple[float, int]:
    """``value^T covariance^-1 value`` in the directions that the covariance knows, and how many.

    These are the degrees of freedom of the statistic. Values, shape (k,), may have any units, and
    their covariance may be singular.
    """
    least = ROUNDING * max(float(np.max(np.abs(value))), ROUNDING)
    std = np.maximum(np.sqrt(np.maximum(np.diag(covariance), 0.0)), least)
    values, vectors = np.linalg.eigh(covariance / np.outer(std, std))
    kept = values > ROUNDING * values[-1]
    turned = vectors[:, kept].T @ (value / std)
    return float(np.sum(turned**2 / values[kept])), int(np.sum(kept))


def build_chi2_result(null: str, statistic: float, freedom: int) -> TestResult:
    """A chi-squared statistic as a result; of no degrees of freedom nothing is rejected."""
    p = float(special.chdtrc(freedom, statistic)) if freedom else 1.0
    return TestResult(null, statistic, p, f"chi2({freedom})")


def build_f_result(
    null: str, statistic: float, dropped: int, freedom: int, tests: int = 1
) -> TestResult:
    """An F statistic as a result; its p-value times the number of tests (Bonferroni)."""
    p = min(1.0, tests * float(special.fdtrc(dropped, freedom, statistic))) if dropped else 1.0
    return TestResult(null, float(statistic), p, f"F({dropped}, {freedom})")


def run_f_test(rss_small: float, rss_large: float, dropped: int, freedom: int) -> TestResult:
    """F-test that parameters left out of a linear model are zero (Janot et al. 2014)."""
    if dropped == 0:
        return TestResult("no parameter is left out", 0.0, 1.0, "F(0, 0)")
    statistic = (rss_small - rss_large) / dropped / (rss_large / freedom)
    return build_f_result("the parameters left out are zero", statistic, dropped, freedom)
