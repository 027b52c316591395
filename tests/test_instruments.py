"""How strong instruments are when rows are correlated, and what a rejection amounts to."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import toy
from loops import WIDTH, closed_loop

from dynident.api import identify
from dynident.core.arrays import Array
from dynident.estimators.closed_loop import Simulation
from dynident.estimators.instrument_tests import (
    compute_first_stage_f,
    compute_hac_first_stage_f,
)
from dynident.fit.verdict import DOUBTFUL, list_instrument_reasons
from dynident.regression.problem import Problem, Regression
from dynident.regression.rows import RowGroup, Rows


@cache
def make_problem() -> Problem:
    recording, _ = toy.log(toy.arm(1))
    return Problem(toy.arm(1), toy.on_its_motion(recording))


def make_rows(X: Array, Z: Array) -> Regression:
    """A regression of one group on columns as they are, one row a sample of a log."""
    problem, groups = make_problem(), (RowGroup("joint_1", "Nm"),)
    sample = np.arange(len(X)) * problem.samples[0].filters[0].step
    pair = [
        problem.given(groups, [[Rows((own,), (np.zeros(len(X)),), (sample,))]]) for own in (X, Z)
    ]
    return pair[0].with_instruments(pair[1])


def correlate(rng: np.random.Generator, shape: tuple[int, int], rho: float) -> Array:
    found = rng.normal(size=shape)
    for t in range(1, len(found)):
        found[t] = rho * found[t - 1] + np.sqrt(1.0 - rho**2) * found[t]
    return found


def draw(seed: int, rho: float, strength: float, r: int = 900) -> tuple[Array, Array]:
    """Four regressors and their instruments, the first of which is `strength` strong."""
    rng = np.random.default_rng(seed)
    Z, V = correlate(rng, (r, 4), rho), correlate(rng, (r, 4), rho)
    return Z * [strength, 1.0, 1.5, 2.0] + V, Z


def compute_rk(X: Array, Z: Array, lag: int) -> float:
    """Kleibergen and Paap's statistic as their paper has it, with Bartlett's weights."""
    r = len(X)
    Pi = np.linalg.lstsq(Z, X, rcond=None)[0]
    V = X - Z @ Pi
    # Theta = G Pi F^T of unit long-run scale, G^T G = Z'Z / r and F^T F = (V'V / r)^-1
    G = np.linalg.cholesky(Z.T @ Z / r).T
    F = np.linalg.inv(np.linalg.cholesky(V.T @ V / r))
    u, s, vt = np.linalg.svd(G @ Pi @ F.T)
    scores = np.einsum("ti,tj->tij", Z @ np.linalg.inv(G), V @ F.T).reshape(r, -1)
    W = scores.T @ scores / r
    for k in range(1, lag + 1):
        moved = scores[k:].T @ scores[:-k] / r
        W += (1.0 - k / (lag + 1.0)) * (moved + moved.T)
    along = np.kron(u[:, -1], vt[-1])
    return float(r * s[-1] ** 2 / (along @ W @ along))


def test_the_rank_statistic_is_that_of_the_paper():
    for seed in range(3):
        X, Z = draw(seed, 0.6, 0.3)
        ours = compute_hac_first_stage_f(make_rows(X, Z), np.ones(1))
        r, z = Z.shape
        assert ours == pytest.approx((r - z) / (r * z) * compute_rk(X, Z, 15), rel=0.25)


def test_it_is_cragg_and_donalds_where_rows_are_independent():
    X, Z = draw(5, 0.0, 0.3, 4000)
    rows = make_rows(X, Z)
    known = compute_first_stage_f(rows.instrument_factors.weighted(np.ones(1)))
    assert compute_hac_first_stage_f(rows, np.ones(1)) == pytest.approx(known, rel=0.15)
    offset = make_rows(np.ones((400, 4)) * [1, 0, 0, 0], np.ones((400, 4)) * [1, 0, 0, 0])
    assert compute_hac_first_stage_f(offset, np.ones(1)) == np.inf


def test_correlated_rows_make_instruments_look_strong_that_are_not():
    found = []
    for seed in range(20):
        rows = make_rows(*draw(seed, 0.97, 0.0))
        known = compute_first_stage_f(rows.instrument_factors.weighted(np.ones(1)))
        found.append((known, compute_hac_first_stage_f(rows, np.ones(1))))
    independent, correlated = np.median(found, axis=0)
    assert independent > 4.0 * correlated
    assert correlated < 1.5


def test_a_rejection_says_what_it_amounts_to():
    problem, _, control = closed_loop(2, noise=1e-4, torque_noise=0.02, seconds=8.0)
    other, _, _ = closed_loop(2, noise=1e-4, torque_noise=0.02, seconds=8.0, seed=1)
    simulation = Simulation(control, width=WIDTH)
    held_out = replace(other.samples[0], name="another")
    fit = identify(problem, "idim-iv", validation=[held_out], simulation=simulation, doctor=False)
    own, beta = fit.estimate.instruments, fit.estimate.beta
    least = problem.factors.weighted(fit.estimate.sigma).solve()
    free = beta + own.least_squares
    np.testing.assert_allclose(free, least, rtol=1e-6, atol=1e-9)
    rejected = [test for test in fit.estimate.tests if test.rejected]
    assert rejected
    for test in rejected:
        gap = own.simulated if test.null.startswith("Pi") else own.least_squares
        sigmas = np.max(np.abs(gap) / fit.estimate.covariance.std)
        factors = problem.on(other.samples[0]).factors
        moved = sum(np.sum((g.factor[:, :-1] @ gap) ** 2) for g in factors.groups)
        share = 100.0 * np.sqrt(moved / np.sum(factors.squared_torques))
        assert f"{sigmas:.2g} sigma and {share:.2g} % of the torque of another" in test.remark
        assert ("too little to matter" in test.remark) == (sigmas < 0.3)
        assert test.remark in " ".join(fit.summary(full=True).split())


def test_weak_instruments_make_a_result_doubtful():
    (reason,) = list_instrument_reasons(3.2, 10.0)
    assert reason.state == DOUBTFUL
    assert "confidence intervals are too narrow" in reason.words
    assert not list_instrument_reasons(np.inf, 10.0)
