"""What periods differ by: errors of the rows that no model has a share in.

Each period of a log that was averaged has errors of its own, ``e_p = y_p - X_p beta``, filtered and
decimated as the rows are. What they differ by is noise, of the torque and through the motion of
the regressor, as it is: coloured, shared between joints, and known in every harmonic. The rows,
whose errors are to first order the mean of those of the P periods, have 1/P of its variance; what
more they have is the model's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.core.factors import triangularise_rows
from dynident.dynamics.following import follow_friction
from dynident.filters.filters import DecimationFilter
from dynident.recording.periods import FINER
from dynident.recording.prepare import Samples
from dynident.regression.problem import Regression
from dynident.regression.statistics import TestResult, build_f_result
from dynident.regression.weighted import estimate_group_sigma, find_smallest_sigma, solve_wls


@dataclass(frozen=True)
class PeriodScatter:
    """Errors of the rows of every period, without their mean over the periods."""

    logs: tuple[Array, ...]
    """Of each log, at all instants of its rows, shapes (periods, rows, groups)."""
    sigma: Array
    """Shape (groups,). Standard deviation of the rows' noise: of the mean of the periods."""
    once: Array
    """Shape (groups,). How many independent values one period has of it; fewer than rows where it
    is coloured."""
    freedom: Array
    """Degrees of freedom of sigma, shape (groups,)."""


def has_whole_periods(rows: Regression) -> bool:
    """Whether all logs were averaged over periods alike, and their rows are at hand."""
    return rows.at_hand and all(log.whole_period for log in rows.samples)


def measure_scatter(rows: Regression, beta: Array) -> PeriodScatter | None:
    """What the rows' errors differ by from period to period.

    None unless all logs were averaged, over periods alike, and their rows are whole periods.
    """
    if not has_whole_periods(rows):
        return None
    theta = rows.base.standard(beta)
    logs = tuple(_compute_period_errors(rows, theta, log) for log in rows.samples)
    groups = len(rows.groups)
    squares, counts, once, freedom = (np.zeros(groups) for _ in range(4))
    for log, errors in zip(rows.samples, logs, strict=True):
        periods, instants, _ = errors.shape
        fitted = np.column_stack([log.moving[_find_row_centres(log, g), g] for g in range(groups)])
        variance = np.sum(errors**2, axis=0) / (periods - 1) / periods
        squares += np.sum(variance * fitted, axis=0)
        counts += fitted.sum(axis=0)
        # Satterthwaite: as many values as would scatter as much with a flat spectrum; the squares
        # of estimated spectra are too large by 1 / (periods - 1)
        power = np.sum(np.abs(np.fft.fft(errors, axis=1)) ** 2, axis=0)
        flat = np.sum(power, axis=0) ** 2 * periods / (periods - 1)
        values = flat / np.maximum(np.sum(power**2, axis=0), np.finfo(float).tiny)
        values = np.clip(values, 1.0, instants) * fitted.mean(axis=0)
        once += values
        freedom += values * (periods - 1)
    sigma = np.sqrt(squares / np.maximum(counts, 1.0))
    sigma = np.maximum(sigma, find_smallest_sigma(rows.factors))
    return PeriodScatter(logs, np.asarray(sigma), once, freedom)


def _compute_period_errors(rows: Regression, theta: Array, log: Samples) -> Array:
    """Errors of each period at the instants of the rows, without their mean."""
    averaging, idim = log.averaging, rows.idim
    assert averaging is not None
    found = []
    for period in range(averaging.periods):
        q, dq, ddq, tau = averaging.one(period)
        conditions = follow_friction(idim, q, dq, log.rate / FINER)
        error = tau - idim.torque(theta, q, dq, ddq, conditions=conditions)
        found.append(
            np.column_stack([
                _filter_period(f, error[:, g])[
                    (_find_row_centres(log, g) - averaging.wrapped) // FINER
                ]
                for g, f in enumerate(log.filters)
            ])
        )  # fmt: skip
    errors = np.array(found)
    return np.asarray(errors - errors.mean(axis=0))


def _find_row_centres(log: Samples, group: int) -> np.ndarray:
    """The sample of each row of a group, those that are not fitted included."""
    f = log.filters[group]
    ((start, stop),) = log.segments
    return start + f.half + f.step * np.arange(f.outputs(stop - start))


def _filter_period(f: DecimationFilter, x: Array) -> Array:
    """A whole period, one in `FINER` of its samples, through a filter for all of them.

    As if the period had gone on for ever.
    """
    taps = np.zeros(FINER * len(x))
    np.add.at(taps, np.arange(-f.half, f.half + 1) % len(taps), f.taps)
    # taps come oldest first: an output is sum_i taps_i x_(k - half + i)
    gain = np.fft.rfft(taps).conj()[: len(x) // 2 + 1]
    return np.asarray(np.fft.irfft(np.fft.rfft(x) * gain, len(x)))


def factorise_scatter_sum(rows: Regression, weights: Array, scatter: PeriodScatter) -> Array:
    """F of ``S = F^T F``, the variance of ``sum_t sum_g z_tg e_tg / w_g^2`` by the periods' noise.

    The noise is taken to be stationary over a period, and nothing else: with the discrete Fourier
    transforms Z of a log's rows and D of the periods' errors, ``S = sum_l sum_p v v^H / (r^2 P
    (P - 1))``, ``v = sum_g conj(Z_lg) D_lgp``. F has the shape (any, scores).
    """
    half = np.zeros((0, rows.scores))
    for log, errors, stretches in zip(rows.samples, scatter.logs, rows.passes(), strict=True):
        periods, instants, groups = errors.shape
        Z = np.zeros((groups, instants, rows.scores))
        for part in stretches:
            for g, columns in enumerate(rows.instruments):
                place = (part.sample[g] - _find_row_centres(log, g)[0]) // log.filters[g].step
                Z[g][np.ix_(place, columns)] = part.scores[g] / weights[g] ** 2
        harmonics = np.fft.rfft(Z, axis=1).conj()
        twice = np.full(harmonics.shape[1], 2.0)
        # rfft has one of each pair of conjugate harmonics; the mean and the last of an even count
        # have none
        twice[0] = 1.0
        if instants % 2 == 0:
            twice[-1] = 1.0
        share = np.sqrt(twice / (periods * (periods - 1.0))) / instants
        for error in errors:
            own = np.einsum("glk,lg->lk", harmonics, np.fft.rfft(error, axis=0))
            own *= share[:, None]
            half = triangularise_rows(np.vstack([half, own.real, own.imag]))
    return half


@dataclass(frozen=True)
class LackOfFit:
    """Whether the errors are larger than the noise that the periods show."""

    test: TestResult
    """Of the group that speaks most against it, at its share of the significance."""
    ratio: Array
    """Standard deviation of the errors over that of the noise, shape (groups,)."""
    rejected: tuple[str, ...]
    """Names of the groups with more than noise in their errors."""


def run_lack_of_fit_test(
    rows: Regression, beta: Array, weights: Array, scatter: PeriodScatter
) -> LackOfFit:
    """F test of the errors' variance over that of the noise, group by group (Bonferroni).

    The weights are the sigmas that weighted the fit: they say how many rows of each group it has
    used up.
    """
    factors = rows.factors
    sigma = estimate_group_sigma(factors, beta, weights)
    used = factors.squared_residuals(beta) / sigma**2
    share = np.where(factors.counts > 0.0, used / np.maximum(factors.counts, 1.0), 1.0)
    ratio = sigma / scatter.sigma
    tests = [
        build_f_result(
            f"the errors are the noise between periods (worst: {name})",
            float(ratio[g] ** 2),
            max(1, round(float(scatter.once[g] * min(1.0, share[g])))),
            max(1, round(float(scatter.freedom[g]))),
            len(factors.groups),
        )
        for g, name in enumerate(factors.names)
    ]
    order = sorted(range(len(tests)), key=lambda g: (tests[g].p_value, -tests[g].statistic))
    rejected = tuple(n for n, test in zip(factors.names, tests, strict=True) if test.rejected)
    return LackOfFit(tests[order[0]], ratio, rejected)


def estimate_sigma_by_scatter(rows: Regression) -> Array | None:
    """Sigmas of the groups by the scatter between periods, where the model leaves nothing else.

    None where a log was not averaged over periods alike, or where the errors are larger: what
    limits the model then is not noise, and has to be weighed as it is.
    """
    if not has_whole_periods(rows):
        return None
    beta, sigma, _ = solve_wls(rows.factors)
    scatter = measure_scatter(rows, beta)
    if scatter is None or run_lack_of_fit_test(rows, beta, sigma, scatter).rejected:
        return None
    return scatter.sigma
