"""Sums of correlated scores: against statsmodels, exact covariances and each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import toy
from scipy import linalg
from thin import first

from dynident.consistency.bootstrap import make_block_redraw, make_normal_redraw
from dynident.core.factors import Factors
from dynident.estimators.clustered import add_to_clusters, sum_clustered_scores
from dynident.estimators.covariance import COVARIANCES, ErrorBars, EstimateScores, make_score_redraw
from dynident.recording.prepare import prepare
from dynident.regression import rows as row_module
from dynident.regression.covariance import (
    Adjoint,
    correlate_filtered_noise,
    fit_innovations,
    make_scores,
    stream_prewhitened_parts,
    stream_scores,
    sum_at_instants,
    sum_bartlett_scores,
    sum_prewhitened_scores,
    whiten_errors,
)
from dynident.regression.problem import Problem
from dynident.regression.statistics import LAGS, compute_residuals, is_whiteness_rejected
from dynident.regression.weighted import estimate_group_sigma, solve_wls


def coloured(rng, shape, rho):
    white = rng.normal(size=shape) * np.sqrt(1.0 - rho**2)
    out = white.copy()
    out[0] /= np.sqrt(1.0 - rho**2)
    for k in range(1, len(out)):
        out[k] += rho * out[k - 1]
    return out


def noisy_problem(rho=0.99, seed=0, runs=1, scale=(0.1, 1.0), drop=0.0):
    """Exact motion, errors of the torque that are correlated in time; and the truth."""
    robot = toy.arm(2)
    recording, theta = toy.log(robot, noise=0.0, seconds=12.0)
    clean = prepare(recording, 10.0, drop_below=drop)
    rng = np.random.default_rng(seed)
    samples = [
        replace(
            clean, q=recording.q, dq=recording.dq, ddq=recording.ddq,
            tau=recording.tau + coloured(rng, recording.tau.shape, rho) * np.array(scale),
        )
        for _ in range(runs)
    ]  # fmt: skip
    problem = Problem(robot, samples)
    return problem, problem.base.matrix @ theta


def fit(problem):
    system = problem.factors.weighted(problem.factors.ones)
    return system.solve(), system.inverse() @ system.inverse().T


@pytest.mark.parametrize("order", [0, 1, 3])
def test_rearranged_sums_are_the_same_sums(order):
    """Whatever the coefficients, in whatever stretches, and over pauses."""
    rng = np.random.default_rng(order)
    a = np.array([0.6, -0.3, 0.2])[:order]
    instant = np.concatenate([np.arange(40), np.arange(60, 95), [100], np.arange(120, 160)])
    Z, e = rng.normal(size=(len(instant), 4)), rng.normal(size=(len(instant), 1))
    w = whiten_errors(instant, e, a)
    adjoint = Adjoint(a, 4)
    cuts = [0, 17, 40, 41, 90, len(instant)]
    parts = [adjoint.push(instant[i:j], Z[i:j]) for i, j in pairwise(cuts)]
    np.testing.assert_allclose(np.vstack(parts).T @ w, Z.T @ e, rtol=1e-10)


def test_series_add_up_to_the_score_of_the_estimate():
    problem, truth = noisy_problem(drop=0.05)
    scores = make_scores(problem, truth, np.array([0.1, 1.0]))
    found = fit_innovations(scores)
    width = scores.rows.scores
    series = (
        (sum_at_instants(*each, width) for each in log)
        for log in stream_prewhitened_parts(scores, found)
    )
    plain = sum(u.sum(axis=0) for log in stream_scores(scores) for _, (u,) in log)
    same = sum(v.sum(axis=0) for log in series for _, (v,) in log)
    assert found.words.startswith("AR(")
    np.testing.assert_allclose(same, plain, rtol=1e-8, atol=1e-8 * np.abs(plain).max())


@pytest.mark.long
def test_covariance_is_the_exact_one_of_an_autoregression():
    """Against the closed form sum_st X_s gamma(s - t) X_t^T of the fitted autoregression."""
    problem, _ = noisy_problem(rho=0.995, seed=3, runs=40, scale=(0.3, 0.3))
    beta, gain = fit(problem)
    total, _ = sum_prewhitened_scores(make_scores(problem, beta, problem.factors.ones))
    # the errors of a decimated first-order process, from their own long sample
    errors = compute_residuals(problem, beta).error
    exact = np.zeros_like(gain)
    first = next(iter(problem.passes()))
    X = [np.vstack(parts) for parts in zip(*(rows.X for rows in first), strict=True)]
    for j, (own, columns) in enumerate(zip(X, problem.columns, strict=True)):
        series = errors[j].reshape(40, -1)
        gamma = [np.mean(series[:, k:] * series[:, : series.shape[1] - k]) for k in range(60)]
        gamma = np.concatenate([gamma, np.zeros(series.shape[1] - 60)])
        exact[np.ix_(columns, columns)] += 40 * own.T @ linalg.toeplitz(gamma) @ own
    ours, theirs = gain @ total[0] @ gain.T, gain @ exact @ gain.T
    ratio = np.sqrt(np.diag(ours) / np.diag(theirs))
    assert np.all((ratio > 0.85) & (ratio < 1.15)), ratio


def test_of_white_errors_it_is_the_sum_of_white():
    problem, truth = noisy_problem(rho=0.0, scale=(1.0, 1.0))
    scores = make_scores(problem, truth, problem.factors.ones)
    total, words = sum_prewhitened_scores(scores)
    if all(len(a) == 0 for a in fit_innovations(scores).a):
        np.testing.assert_allclose(total[0], sum_bartlett_scores(scores, 0), rtol=1e-12)
    else:
        assert words != "AR(0)"
        ratio = np.diag(total[0]) / np.diag(sum_bartlett_scores(scores, 0))
        assert np.all((ratio > 0.6) & (ratio < 1.7))


# that of the scatter is in test_periods
@pytest.mark.parametrize("name", first(sorted({*COVARIANCES} - {"scatter"}), 4))
def test_every_covariance_is_positive_and_free_of_chunks(name, monkeypatch):
    problem, _ = noisy_problem(drop=0.02, runs=2)
    beta, gain = fit(problem)
    sigma = np.array([0.1, 1.0])

    def matrix():
        own = Problem.of(problem.base, problem.samples)
        scores = EstimateScores(own, beta, own.factors.ones, sigma, compute_residuals(own, beta))
        return COVARIANCES[name](scores, gain).matrix

    whole = matrix()
    std = np.sqrt(np.diag(whole))
    assert np.linalg.eigvalsh(whole / np.outer(std, std))[0] > -1e-9
    monkeypatch.setattr(row_module, "CHUNK", 900)
    monkeypatch.setattr(row_module, "FEW", 1)
    monkeypatch.setattr(row_module, "KEEP_BYTES", 0)
    # rows of one instant that come in two stretches are all that may differ
    np.testing.assert_allclose(np.sqrt(np.diag(matrix())), std, rtol=0.02)


def test_clusters_sum_what_their_rows_do():
    rng = np.random.default_rng(0)
    labels, Z, error = rng.integers(0, 4, 300), rng.normal(size=(300, 5)), rng.normal(size=300)
    scores, information = np.zeros((6, 5)), np.zeros((6, 5, 5))
    for some in (slice(0, 120), slice(120, 300)):
        add_to_clusters(labels[some], Z[some], error[some], scores, information)
    for c in range(6):
        own = labels == c
        np.testing.assert_allclose(scores[c], Z[own].T @ error[own], atol=1e-12)
        np.testing.assert_allclose(information[c], np.tril(Z[own].T @ Z[own]), atol=1e-12)


@pytest.mark.long
def test_intervals_cover_where_errors_are_correlated():
    """Bartlett's kernel covers 90 % here, errors taken as white 70 %."""
    inside = {"hac": 0, "sandwich": 0}
    total = 0
    for seed in range(25):
        problem, truth = noisy_problem(rho=0.995, seed=seed)
        sigma = np.array([0.1, 1.0])
        system = problem.factors.weighted(sigma)
        beta, inverse = system.solve(), system.inverse()
        scores = EstimateScores(problem, beta, sigma, sigma, compute_residuals(problem, beta))
        for name in inside:
            spread = COVARIANCES[name](scores, inverse @ inverse.T)
            std = np.sqrt(np.diag(spread.matrix))
            inside[name] += int(np.sum(np.abs(beta - truth) < 1.96 * std))
        total += len(truth)
    assert inside["hac"] / total > 0.9  # 94 % of many; 25 runs know it to 1.5 %
    assert inside["sandwich"] / total < 0.85


def test_noise_that_was_white_before_the_filter_spreads_as_the_filter_says():
    """Against sum_st X_s rho(s - t) X_t^T of the taps, which rows taken for white fall short of."""
    problem, truth = noisy_problem(rho=0.0)
    sigma = np.array([0.1, 1.0])
    inverse = problem.factors.weighted(sigma).inverse()
    gain = inverse @ inverse.T
    taps, step = problem.samples[0].filters[0].taps, problem.samples[0].filters[0].step
    first = next(iter(problem.passes()))
    X = [np.vstack(parts) for parts in zip(*(rows.X for rows in first), strict=True)]
    exact = np.zeros_like(gain)
    for own, columns, s in zip(X, problem.columns, sigma, strict=True):
        padded = np.concatenate([taps, np.zeros(step * len(own))])
        gamma = [padded[step * k :] @ padded[: len(padded) - step * k] for k in range(len(own))]
        exact[np.ix_(columns, columns)] += own.T @ linalg.toeplitz(gamma) @ own / gamma[0] / s**2
    expected = np.sqrt(np.diag(gain @ exact @ gain))
    scores = EstimateScores(problem, truth, sigma, sigma, compute_residuals(problem, truth))
    filtered, white = (
        np.sqrt(np.diag(COVARIANCES[name](scores, gain).matrix)) / expected
        for name in ("filtered", "sandwich")
    )
    assert np.all(np.abs(filtered - 1.0) < 0.03), filtered
    assert np.median(white) < 0.97
    # what the filter does to white noise is no reason to doubt it, however long the log
    rng = np.random.default_rng(5)
    rows = np.convolve(rng.normal(size=5000 * step), taps, "valid")[::step]
    rho = correlate_filtered_noise(problem)
    assert is_whiteness_rejected((rows,) * 2)
    assert not is_whiteness_rejected((rows,) * 2, rho[:, :LAGS])


def test_white_errors_are_redrawn_as_large_as_they_are():
    """Rows that the fit leans on leave small residuals, and blocks of these are small too."""
    rng = np.random.default_rng(0)
    rows, p, copies = 60, 15, 200
    X = rng.normal(size=(rows, p)) * (1.0 + 4.0 * (np.arange(rows) % 6 == 0))[:, None]
    gain = np.linalg.pinv(X)
    truth = np.sum(gain**2, axis=1)
    found = np.zeros((2, p))
    for _ in range(copies):
        e = rng.normal(size=rows)
        e -= X @ (gain @ e)
        normal = make_normal_redraw(X * np.sqrt(e @ e / (rows - p)))
        blocks = make_block_redraw((X * e[:, None],), rows, 1)
        for k, redraw in enumerate((normal, blocks)):
            drawn = np.array([redraw(rng) for _ in range(20)])
            found[k] += np.mean((drawn @ (gain @ gain.T)) ** 2, axis=0) / copies
    ratio = found / truth
    assert np.all((ratio[0] > 0.9) & (ratio[0] < 1.1)), ratio[0]
    assert np.min(ratio[1]) < 0.8


def test_what_is_redrawn_is_what_the_covariance_names():
    problem, _ = noisy_problem(rho=0.0)
    beta, sigma, _ = solve_wls(problem.factors)
    scores = EstimateScores(problem, beta, sigma, sigma, compute_residuals(problem, beta))
    rng = np.random.default_rng(1)
    gain = problem.factors.weighted(sigma).inverse()
    gain = gain @ gain.T
    for name, words in (
        ("sandwich", "white errors, "),
        ("filtered", "white errors before the filters"),
        ("robust", "blocks of 1 instants"),
    ):
        redraw, told = make_score_redraw(scores, ErrorBars(name), None)
        assert told.startswith(words)
        drawn = np.array([redraw(rng) for _ in range(400)]) @ gain
        claimed = np.sqrt(np.diag(COVARIANCES[name](scores, gain).matrix))
        assert np.all(np.abs(drawn.std(axis=0) / claimed - 1.0) < 0.15)
    # white before the filters unless they are found not to be
    assert make_score_redraw(scores, ErrorBars(), None)[1].startswith(
        "white errors before the filters"
    )


def test_groups_of_one_noise_share_their_sigma():
    problem, truth = noisy_problem(rho=0.0, scale=(0.5, 0.5))
    apart = problem.factors
    shared = Factors(tuple(replace(group, noise="all") for group in apart.groups))
    ones = apart.ones
    one, two = estimate_group_sigma(apart, truth, ones), estimate_group_sigma(shared, truth, ones)
    assert one[0] != one[1]
    assert two[0] == two[1]
    assert min(one) < two[0] < max(one)


def unlike_motions(count=10, seconds=24.0):
    """Fits of one arm along motions of its own each, with friction that the model has not."""
    robot = toy.arm(2)
    found = []
    for seed in range(count):
        recording, theta = toy.log(robot, noise=0.05, seconds=seconds, seed=seed)
        q, dq, _ = toy.motion(robot.n, seconds, seed)
        fc = 2.0 * np.exp(-((dq / 0.3) ** 2)) * np.tanh(dq / 0.02) + 0.8 * np.sin(3.0 * q)
        samples = toy.on_its_motion(replace(recording, tau=recording.tau + fc), 10.0)
        problem = Problem(robot, [samples])
        beta, sigma, _ = solve_wls(problem.factors)
        inverse = problem.factors.weighted(sigma).inverse()
        scores = make_scores(problem, beta, sigma)
        found.append((beta, inverse @ inverse.T, scores))
    base = problem.base
    rigid = [k for k, place in enumerate(base.kept) if place < base.idim.inertial]
    return found, base.matrix @ theta, rigid


@pytest.mark.long
def test_errors_that_repeat_in_like_states_are_counted():
    """What a model lacks adds up whenever a joint is in the same state, whatever the time."""
    found, truth, rigid = unlike_motions()
    inside = {"hac": [], "clustered": []}
    for beta, gain, scores in found:
        off = np.abs(beta - truth)[rigid]
        alike = sum_clustered_scores(scores)
        for name, S in (
            ("hac", sum_prewhitened_scores(scores)[0][0]),
            ("clustered", alike.total),
        ):
            std = np.sqrt(np.diag(gain @ S @ gain.T))[rigid]
            inside[name].append(np.mean(off <= 1.96 * std))
        assert np.all(alike.times >= 1.0)
        assert np.max(alike.times) > 1.5
    assert np.mean(inside["hac"]) < 0.85
    assert np.mean(inside["clustered"]) > np.mean(inside["hac"]) + 0.08


@pytest.mark.long
@pytest.mark.parametrize("rho", [0.0, 0.98])
def test_noise_hardly_counts_as_what_repeats(rho):
    """Clusters of noise scatter, and only what is above independent ones is counted."""
    times = []
    for seed in range(8):
        problem, _ = noisy_problem(rho=rho, seed=seed)
        beta, sigma, _ = solve_wls(problem.factors)
        times.append(sum_clustered_scores(make_scores(problem, beta, sigma)).times)
    assert 1.0 <= np.mean(times) < 1.7
