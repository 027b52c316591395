import numpy as np
import pytest
import toy
from scipy import linalg, stats

from dynident.recording.prepare import prepare
from dynident.regression.covariance import make_scores, sum_bartlett_scores
from dynident.regression.problem import Problem
from dynident.regression.statistics import (
    build_chi2_result,
    choose_bartlett_lag,
    compute_confidence_interval,
    compute_residuals,
    compute_wald_statistic,
    estimate_autocorrelation,
    estimate_long_run_ratio,
    run_f_test,
    run_whiteness_test,
)


def ar1(rho, r, seed=0):
    noise = np.random.default_rng(seed).normal(size=r)
    out = np.zeros(r)
    for k in range(1, r):
        out[k] = rho * out[k - 1] + noise[k]
    return out


def test_ljung_box_is_that_of_statsmodels():
    from statsmodels.stats.diagnostic import acorr_ljungbox

    e = ar1(0.1, 400)
    e -= e.mean()
    theirs = acorr_ljungbox(e, lags=[10])
    ours = run_whiteness_test(e, 10)
    assert ours.statistic == pytest.approx(float(theirs["lb_stat"].iloc[0]), rel=1e-9)
    assert ours.p_value == pytest.approx(float(theirs["lb_pvalue"].iloc[0]), rel=1e-9)


def test_whiteness_rejects_what_is_not_white():
    assert run_whiteness_test(ar1(0.5, 400)).rejected
    rejections = sum(run_whiteness_test(ar1(0.0, 400, seed)).rejected for seed in range(300))
    assert rejections <= 12  # 3 expected


def test_f_test_is_that_of_statsmodels():
    from statsmodels.regression.linear_model import OLS

    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 5))
    y = X @ [1.0, 2.0, 0.0, 0.1, 0.0] + rng.normal(size=80)
    full, small = OLS(y, X).fit(), OLS(y, X[:, :2]).fit()
    stat, p, _ = full.compare_f_test(small)
    ours = run_f_test(small.ssr, full.ssr, 3, 75)
    assert ours.statistic == pytest.approx(stat)
    assert ours.p_value == pytest.approx(p)


def test_a_singular_covariance_has_fewer_degrees_of_freedom():
    rng = np.random.default_rng(3)
    units = np.array([1e-3, 1.0, 1e4])
    # five values that are three: the statistic is that of the three, in whatever units they are
    known = rng.normal(size=3)
    L = rng.normal(size=(3, 3))
    copies = np.vstack([np.eye(3), [1.0, 1.0, 0.0], [0.0, 2.0, -1.0]])
    scale = np.concatenate([units, [7.0, 1e-2]])
    value, root = scale * (copies @ known), scale[:, None] * (copies @ L)
    statistic, rank = compute_wald_statistic(value, root @ root.T)
    assert rank == 3
    assert statistic == pytest.approx(known @ np.linalg.solve(L @ L.T, known), rel=1e-6)
    full, every = compute_wald_statistic(units * known, units[:, None] * (L @ L.T) * units)
    assert every == 3
    assert full == pytest.approx(statistic, rel=1e-6)
    test = build_chi2_result("nothing is there", statistic, rank)
    assert test.p_value == pytest.approx(stats.chi2.sf(statistic, 3))
    assert test.distribution == "chi2(3)"


def test_of_nothing_that_is_known_nothing_is_rejected():
    statistic, rank = compute_wald_statistic(np.zeros(2), np.zeros((2, 2)))
    assert (statistic, rank) == (0.0, 0)
    assert build_chi2_result("nothing is there", statistic, rank).p_value == 1.0


def test_hac_score_is_newey_west_of_statsmodels():
    """One joint: the sandwich from our score must be statsmodels' HAC covariance."""
    from statsmodels.regression.linear_model import OLS

    robot = toy.arm(1)
    recording, _ = toy.log(robot, noise=0.0)
    coloured = recording.tau + ar1(0.999, len(recording.tau))[:, None] * 0.05
    recording = type(recording)(**{**vars(recording), "tau": coloured})
    problem = Problem(robot, prepare(recording, 10.0))
    X = np.vstack([r.X[0] for r in problem.rows()])
    y = np.concatenate([r.y[0] for r in problem.rows()])
    beta = np.linalg.lstsq(X, y)[0]
    lag = 7
    theirs = (
        OLS(y, X)
        .fit(cov_type="HAC", cov_kwds={"maxlags": lag, "use_correction": True})
        .cov_params()
    )
    score = sum_bartlett_scores(make_scores(problem, beta, np.ones(1)), lag)
    bread = np.linalg.inv(X.T @ X)
    np.testing.assert_allclose(bread @ score @ bread, theirs, rtol=1e-7)


def test_long_run_ratio_of_an_autoregression():
    errors = tuple(ar1(0.5, 20000, seed) for seed in range(3))
    assert estimate_long_run_ratio(errors) == pytest.approx((1 + 0.5) / (1 - 0.5), rel=0.12)
    assert estimate_long_run_ratio(tuple(ar1(0.0, 5000, s) for s in range(3))) < 1.05
    assert choose_bartlett_lag(errors) > choose_bartlett_lag(
        tuple(ar1(0.1, 20000, s) for s in range(3))
    )


def test_residuals_are_in_time_order_and_add_up():
    robot = toy.arm(3)
    problem = Problem(robot, prepare(toy.log(robot, noise=0.2)[0], 10.0))
    system = problem.factors.weighted(np.ones(3))
    beta = linalg.solve_triangular(system.A, system.b)
    found = compute_residuals(problem, beta)
    for j in range(3):
        assert np.all(np.diff(found.sample[j]) > 0)
    total = sum(float(e @ e) for e in found.error)
    assert total == pytest.approx(problem.factors.squared_residuals(beta).sum(), rel=1e-9)


def test_autocorrelation_and_interval():
    e = np.array([1.0, -1.0] * 50)
    np.testing.assert_allclose(estimate_autocorrelation(e, 2), [-0.99, 0.98])
    low, high = compute_confidence_interval(np.array([2.0]), np.array([0.5]))
    np.testing.assert_allclose([low[0], high[0]], [2 - 1.959964 * 0.5, 2 + 1.959964 * 0.5])
