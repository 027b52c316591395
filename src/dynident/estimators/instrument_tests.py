"""Tests of instruments: that the simulated motion is the measured one's mean, and is needed.

Both are counted as the error bars are: by F statistics where the residuals are white, and by
Wald statistics of the same long-run covariance where they are not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynident.core.arrays import Array
from dynident.core.factors import UNEXCITED, InstrumentSystem, System, measure_columns
from dynident.regression.covariance import ScoreRows, sum_prewhitened_scores
from dynident.regression.problem import Regression
from dynident.regression.rows import InstrumentedRows
from dynident.regression.statistics import (
    TestResult,
    build_chi2_result,
    build_f_result,
    compute_wald_statistic,
)

ROUNDING = 1e-10
IDENTITY = "Pi is the identity: X and Z have one mean"
EXOGENEITY = "X is free of the error: least squares is consistent"
AGREEMENT = "Z is free of the error: all instruments agree"


def run_identity_test(system: InstrumentSystem) -> TestResult:
    """Test of Pi = I, column by column of ``X - Z = Z (Pi - I) + V`` (Bonferroni).

    ``F = (||P_Z (X_i - Z_i)||^2 / z) / (||V_i||^2 / (r - z))`` (after Janot, Vandanjon and
    Gautier 2016), of rows that are independent.
    """
    z, p = system.instruments, system.R.shape[1] - 1 - system.instruments
    explained, rest, differs = decompose_instrument_gap(system)
    freedom = max(1, system.rows - z)
    ratio = explained / z / np.maximum(rest / freedom, np.finfo(float).tiny)
    worst = float(np.max(np.where(differs, ratio, 0.0)))
    return build_f_result(IDENTITY, worst, z, freedom, p)


def decompose_instrument_gap(system: InstrumentSystem) -> tuple[Array, Array, Array]:
    """``||P_Z (X_i - Z_i)||^2`` and ``||V_i||^2`` of each column, and whether it differs.

    A column that is its own instrument (an offset) differs from it by rounding alone.
    """
    z, p = system.instruments, system.R.shape[1] - 1 - system.instruments
    # R is triangular, of [Z | X | y]: its first z rows are what lies in the span of Z
    gap = system.R[:, z : z + p] - np.vstack([system.R[:z, :p], np.zeros((p + 1, p))])
    explained, rest = np.sum(gap[:z] ** 2, axis=0), np.sum(gap[z:] ** 2, axis=0)
    size = np.sum(system.R[:, z : z + p] ** 2, axis=0)
    return explained, rest, explained + rest > ROUNDING**2 * size


def run_hac_identity_test(rows: Regression, sigma: Array) -> TestResult:
    """Pi = I, column by column, where rows are correlated in time.

    ``W_i = d_i^T C_i^-1 d_i`` with ``d_i = (Pi - I)_i = (Z^T Z)^-1 sum_t z_t v_ti`` and the
    long-run covariance C_i of that sum, in Hotelling's form. `rows`: with as many instruments as
    parameters.
    """
    system = rows.instrument_factors.weighted(sigma)
    p, Pi = rows.base.count, system.Pi
    _, rest, differs = decompose_instrument_gap(system)
    # regressions in units of what they leave, so that one autoregression serves all
    whole = ROUNDING**2 * np.sum(system.R[:, p : 2 * p] ** 2, axis=0)
    size = np.where(differs, np.sqrt(np.maximum(rest, whole) / system.rows), 1.0)
    columns = rows.columns
    inside = rows.instruments

    def errors(g: int, X: Array, Z: Array, y: Array) -> Array:
        V = -Z @ Pi[inside[g]]
        V[:, columns[g]] += X
        return np.asarray(V / size / sigma[g])

    total, _ = sum_prewhitened_scores(ScoreRows(rows, sigma, errors))
    Rz = system.R[:p, :p]
    scores = Rz.T @ Rz @ (Pi - np.eye(p)) / size
    instants = int(np.max(rows.factors.counts))
    worst, freedom = 0.0, 1
    for i in np.flatnonzero(differs):
        statistic, rank = compute_wald_statistic(scores[:, i], total[i])
        f = convert_wald_to_f(statistic, rank, instants)
        if f > worst:
            worst, freedom = f, rank
    return build_f_result(IDENTITY, worst, freedom, max(1, instants - freedom), p)


def run_endogeneity_test(system: InstrumentSystem) -> TestResult:
    """Durbin-Wu-Hausman test that X is free of the error, in its regression form.

    ``y = X beta + V delta + e`` with the first stage's residuals V: delta = 0 means that
    least squares is consistent as well. Of rows that are independent.
    """
    z, p = system.instruments, system.R.shape[1] - 1 - system.instruments
    X, y = system.R[:, z : z + p], system.R[:, -1]
    fitted = np.vstack([system.R[:z, z : z + p], np.zeros((p + 1, p))])
    small = sum_squared_residuals(X, y)
    # X and P_Z X span what X and V = X - P_Z X do
    rest = sum_squared_residuals(np.hstack([X, fitted]), y)
    dropped = int(np.linalg.matrix_rank(X - fitted, tol=1e-9 * np.linalg.norm(X)))
    freedom = max(1, system.rows - p - dropped)
    statistic = max(0.0, small - rest) / max(1, dropped) / max(rest / freedom, 1e-300)
    return build_f_result(EXOGENEITY, statistic, dropped, freedom)


def run_hac_endogeneity_test(rows: Regression, sigma: Array) -> TestResult:
    """Durbin-Wu-Hausman where rows are correlated in time.

    The Wald statistic of delta in ``y = X beta + V B delta + e`` with the long-run covariance
    of ``[x_t, B^T v_t] e_t``, in Hotelling's form; B spans what V has beside rounding.
    """
    system = rows.instrument_factors.weighted(sigma)
    z, p = system.instruments, rows.base.count
    X, y = system.R[:, z : z + p], system.R[:, -1]
    norms = np.maximum(np.linalg.norm(X, axis=0), np.finfo(float).tiny)
    V = X.copy()
    V[:z] = 0.0
    _, s, vt = np.linalg.svd(V / norms)
    rank = int(np.sum(s > 1e-9 * np.sqrt(p)))
    if rank == 0:
        return build_f_result(EXOGENEITY, 0.0, 0, 1)
    B = vt[:rank].T / norms[:, None]
    # rows [x, B^T v] from rows [z, x]
    turn = np.zeros((z + p, p + rank))
    turn[z:, :p] = np.diag(1.0 / norms)
    turn[:z, p:], turn[z:, p:] = -system.Pi @ B, B
    augmented = np.hstack([X / norms, V @ B])
    half = np.linalg.pinv(augmented, rcond=1e-10)
    fit = half @ y
    beside = turn @ fit
    assert isinstance(rows.source, InstrumentedRows)
    source = replace(rows.source, others=(*rows.source.others, rows.source.rows))
    joint = Regression(rows.base, rows.samples, source)
    inside = joint.instruments

    def errors(g: int, X: Array, Z: Array, y: Array) -> Array:
        return np.asarray(((y - Z @ beside[inside[g]]) / sigma[g])[:, None])

    total, _ = sum_prewhitened_scores(ScoreRows(joint, sigma, errors))
    gain = half @ half.T @ turn.T
    covariance = gain @ total[0] @ gain.T
    instants = int(np.max(rows.factors.counts))
    statistic, rank = compute_wald_statistic(fit[p:], covariance[p:, p:])
    f = convert_wald_to_f(statistic, rank, instants)
    return build_f_result(EXOGENEITY, f, rank, max(1, instants - rank))


def run_overidentification_test(system: InstrumentSystem) -> TestResult:
    """Sargan's test that more instruments than parameters agree, of rows that are independent.

    ``J = ||P_Z e||^2 / (||e||^2 / r)`` of the 2SLS estimate's residuals e.
    """
    beta = system.projected.solve()
    span, _ = project_scores_beside_fit(system)
    left = system.R[:, -1] - system.R[:, system.instruments : -1] @ beta
    statistic = float(np.sum((span.T @ left[: system.instruments]) ** 2))
    statistic /= max(float(np.sum(left**2)) / system.rows, np.finfo(float).tiny)
    return build_chi2_result(AGREEMENT, statistic, span.shape[1])


def run_hac_overidentification_test(rows: Regression, sigma: Array) -> TestResult:
    """Hansen's J in Wald form, where rows are correlated in time.

    The part of ``Z^T e`` that no estimate takes away against its long-run covariance, in
    Hotelling's form.
    """
    system = rows.instrument_factors.weighted(sigma)
    beta, columns = system.projected.solve(), rows.columns
    span, turn = project_scores_beside_fit(system)

    def errors(g: int, X: Array, Z: Array, y: Array) -> Array:
        return np.asarray(((y - X @ beta[columns[g]]) / sigma[g])[:, None])

    total, _ = sum_prewhitened_scores(ScoreRows(rows, sigma, errors))
    z = system.instruments
    left = span.T @ (system.R[:z, -1] - system.R[:z, z:-1] @ beta)
    instants = int(np.max(rows.factors.counts))
    statistic, rank = compute_wald_statistic(left, turn @ total[0] @ turn.T)
    f = convert_wald_to_f(statistic, rank, instants)
    return build_f_result(AGREEMENT, f, rank, max(1, instants - rank))


def project_scores_beside_fit(system: InstrumentSystem) -> tuple[Array, Array]:
    """Orthonormal directions of Z's span beside P_Z X in R's coordinates; their map of Z^T e."""
    span, inverse = system.span
    u, s, _ = np.linalg.svd(span.T @ system.R[: system.instruments, system.instruments : -1])
    beside = u[:, int(np.sum(s > s[0] / UNEXCITED)) :]
    return span @ beside, beside.T @ inverse


def compute_first_stage_f(system: InstrumentSystem) -> float:
    """Cragg and Donald's F of the combination of parameters that instruments tell least of.

    ``(r - z) / z rho^2 / (1 - rho^2)`` of the smallest canonical correlation of X and Z, of rows
    that are independent; infinite where X is its own instrument.
    """
    z = system.span[0].shape[1]
    rho = system.correlation**2
    return np.inf if rho >= 1.0 - ROUNDING else (system.rows - z) / z * rho / (1.0 - rho)


def compute_hac_first_stage_f(rows: Regression, sigma: Array) -> float:
    """The same where rows are correlated in time, by Kleibergen and Paap's (2006) rank statistic.

    Of the combination ``X c`` that instruments tell least of: ``lambda = U^T R_ZZ^-T Z^T X c`` in
    the directions U of Z's span that are orthogonal to those of all other combinations, and ``rk
    = lambda^T C^-1 lambda`` with the long-run covariance C of ``U^T R_ZZ^-T sum_t z_t v_t^T c``.
    As an F, ``(r - z) / (r z) rk``, it is Cragg and Donald's where rows are independent.
    """
    system = rows.instrument_factors.weighted(sigma)
    z, columns, inside = system.instruments, rows.columns, rows.instruments
    X, (span, inverse) = system.R[:, z:-1], system.span
    norms = measure_columns(X)
    u, s, vt = np.linalg.svd(X / norms, full_matrices=False)
    excited = s > s[0] / UNEXCITED
    left, rho, right = np.linalg.svd(span.T @ u[:z, excited])
    if rho[-1] ** 2 >= 1.0 - ROUNDING:
        return np.inf
    c = vt[excited].T @ (right[-1] / s[excited]) / norms
    projected = inverse.T @ (span.T @ X[:z] @ c)
    turn = left[:, len(rho) - 1 :].T

    def errors(g: int, X: Array, Z: Array, y: Array) -> Array:
        v = X @ c[columns[g]] - Z @ projected[inside[g]]
        return np.asarray(v / sigma[g])[:, None]

    total, _ = sum_prewhitened_scores(ScoreRows(rows, sigma, errors))
    covariance = turn @ inverse @ total[0] @ inverse.T @ turn.T
    statistic, _ = compute_wald_statistic(turn @ span.T @ X[:z] @ c, covariance)
    return (system.rows - len(left)) / (system.rows * len(left)) * statistic


def convert_wald_to_f(statistic: float, rank: int, instants: int) -> float:
    """A Wald statistic as an F: its covariance was estimated from so many instants."""
    return statistic / rank * max(instants - rank, 0) / instants if rank else 0.0


def sum_squared_residuals(X: Array, y: Array) -> float:
    """Squared residual of a least-squares fit, columns scaled."""
    beta = System(X, y, 0.0).solve(rcond=1e-10)
    return float(np.sum((y - X @ beta) ** 2))
