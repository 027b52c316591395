from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import toy
from loops import closed_loop
from thin import first

from dynident.api import identify
from dynident.consistency.bootstrap import Bootstrap
from dynident.consistency.knowledge import Knowledge
from dynident.core.errors import ComputationError, InputError
from dynident.core.factors import Factors, GroupFactor, triangularise_rows
from dynident.core.inertia import to_pseudo_inertia
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.estimators.covariance import COVARIANCES
from dynident.estimators.essential import Elimination, select_essential_parameters
from dynident.methods import ESTIMATORS
from dynident.methods.options import estimate as estimate_by_name
from dynident.methods.options import list_option_names
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.row_kinds import ROWS
from dynident.regression.statistics import choose_bartlett_lag
from dynident.regression.weighted import mix_past_steps, remember_step, solve_wls
from dynident.study.run import run_study
from dynident.study.study import read_study

HELD = "static"  # of poses that were held, which tests/test_static.py has
FROM_ROWS = [
    method
    for method in ESTIMATORS
    if "simulation" not in list_option_names(method) and method != HELD
]
"""Methods that need no controller; the others are in test_closed_loop.py."""

ROBOTS = {
    "1 joint": toy.arm(1),
    "2 joints": toy.arm(2),
    "coupled": toy.arm(4, coupled=True),
    "6 joints": toy.arm(6),
}


def exact_problem(robot, noise=0.0, seed=0, friction="coulomb-viscous", bandwidth=20.0, **log):
    """A problem whose motion is known exactly: only the torque is noisy."""
    recording, theta = toy.log(robot, noise=noise, seed=seed, friction=friction, **log)
    recording = replace(recording, qref=recording.q)
    return Problem(robot, toy.on_its_motion(recording, bandwidth), friction), theta


RECOVERED = [
    pytest.param(
        m,
        r,
        marks=[pytest.mark.long]
        if m == "pf" or "6" in r or (m == "smooth" and r != "1 joint")
        else [],
    )
    for m in FROM_ROWS
    for r in ROBOTS
    if m not in ("gradient", "ga", "pf") or "2" in r
]
"""What searches make of other robots is in test_search.py."""


@pytest.mark.parametrize(("method", "name"), RECOVERED)
def test_every_estimator_recovers_the_truth_from_clean_torque(method, name):
    length = {"smooth": 4.0}.get(method, 12.0)  # it has unknowns for every sample
    problem, theta = exact_problem(ROBOTS[name], seconds=length)
    estimate = ESTIMATORS[method](problem)
    truth = problem.base.matrix @ theta
    # work is integrated by the trapezoidal rule
    scale = {"pc-idim-ls": 1e-4, "energy": 1e-3}.get(method, 1e-6)
    np.testing.assert_allclose(estimate.beta, truth, atol=scale * np.abs(truth).max())


@pytest.mark.parametrize("method", ["ols", "wls", "irls", "pc-idim-ls"])
def test_prepared_logs_give_the_truth_within_the_filters_error(method):
    robot = toy.arm(3)
    recording, theta = toy.log(robot, friction="viscous")
    problem = Problem(robot, prepare(recording, 20.0), "viscous")
    estimate = ESTIMATORS[method](problem)
    truth = problem.base.matrix @ theta
    np.testing.assert_allclose(estimate.beta, truth, atol=2e-3 * np.abs(truth).max())


COVERED = {
    "ols": {},
    "wls": {},
    "irls": {},
    "pc-idim-ls": {"prior": "none"},
}


@cache
def coverage(runs):
    """Share of 95 % intervals that hold the truth, by method, over logs with their own noise."""
    robot, noise = toy.arm(2), np.array([0.5, 5.0])
    clean, theta = toy.log(robot)
    base = base_parameters(build_idim(robot))
    truth = base.matrix @ theta
    inside = {method: [] for method in COVERED}
    for run in range(runs):
        rng = np.random.default_rng(1000 + run)
        tau = clean.tau + rng.normal(size=clean.tau.shape) * noise
        problem = Problem.of(base, toy.on_its_motion(replace(clean, tau=tau), 10.0))
        for method, options in COVERED.items():
            estimate = estimate_by_name(problem, method, **options)
            inside[method].append(np.abs(estimate.beta - truth) < 1.96 * estimate.covariance.std)
    return {method: np.mean(held) for method, held in inside.items()}


@pytest.mark.long
@pytest.mark.parametrize("method", COVERED)
def test_intervals_cover_under_unequal_noise(method):
    # the joints' noises differ tenfold: eq. (9) with equal weights would cover a few per cent
    assert 0.92 < coverage(60)[method] < 0.98


@pytest.mark.slow
@pytest.mark.parametrize("method", COVERED)
def test_intervals_cover_in_many_runs(method):
    assert 0.93 < coverage(500)[method] < 0.97


def test_weights_find_the_noise_of_each_joint():
    noise = np.array([0.5, 2.0, 8.0])
    problem, _ = exact_problem(toy.arm(3), noise=noise, seconds=60.0)
    _, sigma, _ = solve_wls(problem.factors)
    taps = problem.samples[0].filters[0].taps
    np.testing.assert_allclose(sigma, noise * np.sqrt(np.sum(taps**2)), rtol=0.1)


def contradict(seed, rows):
    """Three groups of few rows that no parameters fit, each in its own way."""
    rng = np.random.default_rng(seed)
    truth, groups = rng.normal(size=4), []
    for k in range(3):
        X = rng.normal(size=(rows, 4)) * 10.0 ** rng.uniform(-1.0, 1.0, 4)
        noise = rng.normal(size=rows) * 10.0 ** rng.uniform(-1.5, 0.5)
        y = X @ (truth + 0.3 * rng.normal(size=4)) + noise
        groups.append(GroupFactor(f"{k}", triangularise_rows(np.column_stack([X, y])), rows))
    return Factors(tuple(groups))


@pytest.mark.parametrize("seed", [2828, 2837, 2886])
def test_weights_settle_where_mixed_steps_go_astray(seed):
    beta, sigma, rounds = solve_wls(contradict(seed, 6))
    assert rounds < 100
    again = solve_wls(contradict(seed, 6), sigma)
    np.testing.assert_allclose(again[0], beta, rtol=1e-4)


def test_a_step_that_grew_is_mixed_with_none_before():
    past = ()
    for length in (4.0, 2.0, 1.0):
        past = remember_step(past, np.zeros(2), np.array([0.0, length]))
    assert [float(step[1]) for _, step in past] == [4.0, 2.0, 1.0]
    past = remember_step(past, np.ones(2), np.array([0.0, 1.5]))
    assert [float(step[1]) for _, step in past] == [1.5]
    np.testing.assert_array_equal(mix_past_steps(past, np.eye(2)), [1.0, 2.5])


def test_irls_shrugs_off_outliers():
    robot = toy.arm(2)
    recording, theta = toy.log(robot, noise=0.2, seconds=20.0)
    tau = recording.tau.copy()
    tau[5000:5400] += 80.0  # somebody leans on the arm
    problem = Problem(robot, toy.on_its_motion(replace(recording, tau=tau)))
    truth = problem.base.matrix @ theta
    error = {
        name: np.linalg.norm(estimate_by_name(problem, name, **options).beta - truth)
        for name, options in (("wls", {}), ("irls", {"loss": "bisquare"}))
    }
    assert error["irls"] < 0.1 * error["wls"]


@pytest.mark.parametrize("seed", first(range(6), 3))
def test_consistent_whatever_the_noise(seed):
    """Noise so large that least squares is inconsistent; checked by eigenvalues here."""
    problem, _ = exact_problem(toy.arm(4), noise=60.0, seed=seed)
    for prior in ("nominal", "none"):
        estimate = ESTIMATORS["pc-idim-ls"](problem, Knowledge(prior=prior), Bootstrap(0))
        bodies = estimate.theta[: problem.idim.inertial].reshape(-1, 10)
        assert np.linalg.eigvalsh(to_pseudo_inertia(bodies)).min() > 0.0
        positive = [p.positive for p in problem.idim.parameters]
        assert estimate.theta[positive].min() > 0.0
        certificate = estimate.certificate
        assert max(certificate.primal, certificate.dual, certificate.gap) < 1e-6
    assert estimate.active


def test_inside_the_cones_it_predicts_what_wls_predicts():
    problem, _ = exact_problem(toy.arm(3, nominal=True), noise=0.01)
    free = ESTIMATORS["wls"](problem)
    bound = ESTIMATORS["pc-idim-ls"](problem, Knowledge(prior="none"))
    assert not bound.active
    difference = problem.factors.squared_residuals  # ||X(beta_c - beta_u)|| from the factors
    shift = [g.factor[:, :-1] @ (bound.beta - free.beta) for g in problem.factors.groups]
    assert np.sqrt(sum(float(s @ s) for s in shift)) < 1e-6 * np.sqrt(
        problem.factors.squared_torques.sum()
    )
    assert difference(bound.beta).sum() == pytest.approx(difference(free.beta).sum(), rel=1e-6)


def test_a_log_that_excites_little_is_refused_or_rests_on_the_prior():
    robot = toy.arm(3)
    recording, theta = toy.log(robot, noise=0.01)
    q, dq, ddq = (np.array(a) for a in (recording.q, recording.dq, recording.ddq))
    q[:, 1:], dq[:, 1:], ddq[:, 1:] = 0.3, 0.0, 0.0  # only the first joint moves
    idim = Problem(robot, prepare(recording, 10.0)).idim
    still = Recording("still", toy.RATE, q, idim.torque(theta, q, dq, ddq))
    problem = Problem(robot, prepare(still, 10.0))
    for method in ("ols", "wls", "irls"):
        with pytest.raises(ComputationError, match=r"does not excite .*; record a richer motion"):
            ESTIMATORS[method](problem)
    estimate = ESTIMATORS["pc-idim-ls"](problem)
    assert any("does not excite" in w for w in estimate.warnings)
    bodies = estimate.theta[: problem.idim.inertial].reshape(-1, 10)
    # nothing was seen of the last link but its weight: the prior's masses stay near
    np.testing.assert_allclose(bodies[:, 0], robot.nominal[:, 0], rtol=0.6)


def test_prior_is_weak_and_says_so():
    robot = toy.arm(3)
    wrong = type(robot)(**{**vars(robot), "nominal": robot.nominal * 3.0})
    recording, theta = toy.log(robot, noise=0.5, seconds=30.0)
    problem = Problem(wrong, prepare(recording, 10.0))
    estimate = ESTIMATORS["pc-idim-ls"](problem)
    truth = problem.base.matrix @ theta
    free = ESTIMATORS["wls"](problem)
    assert "pullback" in estimate.prior
    pulled = np.linalg.norm(estimate.beta - truth) / np.linalg.norm(free.beta - truth)
    assert pulled < 2.0


def test_same_input_gives_the_same_bits():
    results = [identify(exact_problem(toy.arm(3), noise=1.0)[0]) for _ in range(2)]
    np.testing.assert_array_equal(results[0].estimate.beta, results[1].estimate.beta)
    np.testing.assert_array_equal(results[0].theta, results[1].theta)


# rows that are few, or missing


def short_and_long(robot, first=0.35):
    """A log of two runs, the first with fewer rows than its errors are correlated over."""
    recording, _ = toy.log(robot, noise=0.0, seconds=12.0)
    slow = np.cumsum(np.random.default_rng(0).normal(size=recording.tau.shape), axis=0)
    tau = recording.tau + 0.01 * (slow - slow.mean(axis=0))
    stop, end = int(first * toy.RATE), len(recording.q)
    segments = ((0, stop), (stop, end))
    noisy = Recording(
        "short run first", toy.RATE, recording.q, tau, qref=recording.q, segments=segments
    )
    return Problem(robot, prepare(noisy, bandwidth=10.0, position_hz=100.0))


@pytest.mark.parametrize("method", first(FROM_ROWS, 9))
def test_a_run_may_be_shorter_than_the_memory_of_its_errors(method):
    problem = short_and_long(toy.arm(2))
    first, *_ = problem.rows()
    estimate = ESTIMATORS[method](problem)
    assert "hac" in estimate.covariance.name
    lag = choose_bartlett_lag(estimate.residuals.error)
    assert 0 < max(len(y) for y in first.y) < lag, (len(first.y[0]), lag)
    assert np.all(np.isfinite(estimate.covariance.std))


def test_a_joint_without_rows_is_left_to_the_others_under_every_kind_of_rows():
    robot = toy.arm(2)
    recording, _ = toy.log(robot, noise=0.2)
    fastest = np.abs(recording.dq).max()
    problem = Problem(robot, prepare(recording, 10.0, drop_below=[0.0, 2.0 * fastest]))
    for kind in ROWS:
        found = identify(problem, rows=kind, doctor=False)
        assert "no row of joint_2 is fitted: drop_below is above its speed" in found.warnings
        assert np.all(np.isfinite(found.estimate.beta))


@pytest.mark.parametrize("kind", ROWS)
def test_condition_and_rank_are_those_of_the_rows_that_were_fitted(kind):
    problem = short_and_long(toy.arm(2), first=3.0)
    found = identify(problem, "wls", rows=kind, doctor=False)
    system = ROWS[kind](problem).factors.weighted(found.estimate.sigma)
    assert found.condition_number == pytest.approx(system.condition()[0], rel=1e-9)
    assert found.rank == system.condition()[1]
    others = [ROWS[k](problem).factors.weighted(found.estimate.sigma) for k in ROWS if k != kind]
    assert all(abs(o.condition()[0] / found.condition_number - 1.0) > 1e-6 for o in others)


@pytest.mark.long
def test_the_bare_rigid_body_is_identified_from_a_measured_log():
    study = read_study(Path(__file__).parents[1] / "examples" / "tx40" / "study.toml")
    bare = study.model_copy(update={"robot": study.robot.model_copy(update={"friction": "none"})})
    found = run_study(bare)
    assert found.consistent
    assert found.identification[0].overall_percent > 50.0  # most of its torque is friction


@pytest.mark.parametrize("method", first(["irls", "pc-idim-ls", "ols", "wls"], 2))
# that of the scatter is in test_periods
@pytest.mark.parametrize("name", sorted({*COVARIANCES} - {"scatter"}))
def test_every_covariance_can_be_chosen(method, name):
    if (method, name) == ("irls", "blocks"):
        with pytest.raises(InputError, match="without instruments and reweighting"):
            with_bars(method, name)
        return
    found = with_bars(method, name)
    assert found.settings["covariance"] == name
    # white errors: they all estimate the same
    sandwich = with_bars(method, "sandwich").estimate.covariance.std
    assert 0.6 < np.median(found.estimate.covariance.std / sandwich) < 1.6


@cache
def with_bars(method, name):
    """A result with some covariance."""
    recording, _ = toy.log(toy.arm(2), noise=0.2)
    problem = Problem(toy.arm(2), prepare(recording, 10.0))
    return identify(problem, method, covariance=name, doctor=False)


def test_rules_of_elimination_stop_where_they_are_told(problem_of_little):
    problem = problem_of_little
    factors, sigma = problem.factors, ESTIMATORS["wls"](problem).sigma

    def keep(rule, **limits):
        return select_essential_parameters(factors, sigma, Elimination(rule, **limits)).kept

    def spread(kept):
        system = factors.select(kept).weighted(sigma)
        std = np.sqrt(np.diag(np.linalg.inv(system.A.T @ system.A)))
        relative = std / np.abs(np.linalg.solve(system.A, system.b))
        return relative.max() / relative.min()

    for ratio in (1e4, 300.0, 10.0):
        kept = keep("ratio", essential_ratio=ratio)
        assert spread(kept) <= ratio
    assert len(keep("ratio", essential_ratio=1e9)) == problem.base.count > len(kept)
    counts = [len(keep("torque-range", essential_percent=percent)) for percent in (1e-6, 1.0, 30.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]
    assert len(keep("f-test", essential_p=1e-12)) <= len(keep("f-test", essential_p=0.5))
    by_option = estimate_by_name(problem, "wls", essential="ratio", essential_ratio=10.0)
    assert by_option.essential.kept == kept


@pytest.fixture(scope="module")
def problem_of_little():
    """A noisy log in which some parameters count for little."""
    return closed_loop(2, torque_noise=3.0)[0]


@pytest.mark.parametrize("method", ["wls", "irls", "ml"])
def test_weights_rest_where_they_are_told_to(method):
    problem, _ = exact_problem(ROBOTS["2 joints"], noise=0.1)
    short = estimate_by_name(problem, method, sigma_tolerance=0.5)
    assert short.iterations <= estimate_by_name(problem, method).iterations
    with pytest.raises(ComputationError, match="settle in 1 rounds"):
        estimate_by_name(problem, method, round_limit=1)
