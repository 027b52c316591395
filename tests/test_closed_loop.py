"""Estimators that simulate the closed loop: recovery, algebra against dense rows, refusals."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import toy
from differences import assert_slope
from loops import RATE, WIDTH, closed_loop, controller, off, reference
from thin import first

from dynident.api import identify
from dynident.control.controller import Controller, pd
from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.factors import (
    GroupFactor,
    InstrumentFactors,
    InstrumentSystem,
    triangularise_rows,
)
from dynident.dynamics.idim import build_idim
from dynident.estimators.closed_loop import Simulation, balance_start, build_auxiliary_model
from dynident.estimators.instrument_tests import (
    compute_first_stage_f,
    run_endogeneity_test,
    run_hac_overidentification_test,
    run_identity_test,
    run_overidentification_test,
    sum_squared_residuals,
)
from dynident.estimators.instrumental import LEAST_F, filter_reference_motion
from dynident.estimators.iteration import (
    IterationOptions,
    choose_start_values,
    compress_simulated_rows,
    fit_nominal_drives,
    has_converged,
    is_astray,
    simulate_towards_estimate,
)
from dynident.estimators.output_error import TORQUE, linearise_output
from dynident.filters.filters import differentiate_twice
from dynident.methods import ESTIMATORS
from dynident.methods.options import estimate
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.row_kinds import ROWS
from dynident.regression.statistics import compute_residuals, fit_autoregression, run_whiteness_test
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout

METHODS = ("idim-iv", "2sls", "didim", "clie", "cloe")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("start", first(["least-squares", "nominal"], 1))
def test_clean_logs_give_the_true_parameters(method, start):
    problem, truth, control = closed_loop(2, friction="viscous", rate=None)
    estimate = ESTIMATORS[method](problem, Simulation(control, width=WIDTH, start=start))
    # IV and 2SLS have the measured regressor, and with it the position filter's attenuation
    assert off(estimate.beta, truth) < (2e-3 if method in ("idim-iv", "2sls") else 1e-4)
    assert len(estimate.history) == estimate.iterations + 1


@pytest.mark.parametrize("method", ["clie", "cloe"])
def test_output_errors_recover_coupled_drives_and_coulomb_friction(method):
    problem, truth, control = closed_loop(3, coupled=True)
    estimate = ESTIMATORS[method](problem, Simulation(control, width=WIDTH))
    assert off(estimate.beta, truth) < 5e-4


@pytest.mark.parametrize("method", first(["clie", "cloe"]))
def test_differences_of_simulations_are_the_sensitivities(method):
    problem, _, control = closed_loop(2, noise=1e-5, torque_noise=0.5, seconds=4.0)
    options = {"simulation": Simulation(control, width=WIDTH)}
    exact = estimate(problem, method, **options)
    found = estimate(problem, method, sensitivities="differences", **options)
    np.testing.assert_allclose(found.singular_values, exact.singular_values, rtol=1e-4)
    assert np.all(np.abs(found.beta - exact.beta) < 0.02 * exact.covariance.std)
    rollouts = [int(re.search(r"(\d+) rollouts", each.message)[1]) for each in (found, exact)]
    assert rollouts[0] == (1 + problem.base.count) * rollouts[1]


def test_drives_are_not_fitted_by_differences():
    problem, _, control = closed_loop(1, seconds=2.0)
    options = {"links": "fixed", "sensitivities": "differences", "simulation": Simulation(control)}
    with pytest.raises(InputError, match="drives are fitted by exact sensitivities"):
        estimate(problem, "cloe", **options)


@pytest.mark.parametrize("method", first(["cloe", "idim-iv", "clie", "didim"], 2))
def test_rotors_alone_are_a_start(method):
    problem, truth, control = closed_loop(2, friction="viscous", rate=None)
    estimate = ESTIMATORS[method](problem, Simulation(control, width=WIDTH, start="rotors"))
    assert off(estimate.beta, truth) < 2e-3
    assert not np.allclose(estimate.history[0], truth, rtol=0.1)


@pytest.fixture(scope="module")
def noisy():
    """A noisy problem, its instruments and the sigmas of its IV errors."""
    problem, truth, control = closed_loop(2, noise=2e-4, torque_noise=0.5)
    simulation = Simulation(control, width=WIDTH)
    auxiliary = build_auxiliary_model(problem, simulation)
    estimate = ESTIMATORS["idim-iv"](problem, simulation)
    simulated = auxiliary.simulated(estimate.beta)
    return problem, truth, simulation, estimate, simulated, auxiliary.referenced()


def dense(problem, sigma):
    """All weighted rows ``Z, X, y`` of an instrumented problem, zeros written out."""
    p, z = problem.base.count, problem.scores
    blocks = []
    for rows in problem.rows():
        for j in range(problem.robot.n):
            Z, X = np.zeros((len(rows.y[j]), z)), np.zeros((len(rows.y[j]), p))
            Z[:, problem.instruments[j]] = rows.scores[j]
            X[:, problem.columns[j]] = rows.X[j]
            blocks.append(np.column_stack([Z, X, rows.y[j]]) / sigma[j])
    stacked = np.vstack(blocks)
    return stacked[:, :z], stacked[:, z:-1], stacked[:, -1]


@pytest.mark.parametrize("targets", ["smooth", "held"])
def test_each_log_has_its_own_smoothing_width(targets):
    """Two logs, one half as fast and of two runs: as if each were simulated alone."""
    problem, truth, control = closed_loop(2, seconds=4.0, rate=None)
    (fast,) = problem.samples
    slow = fast.along(fast.q, 0.5 * fast.dq, 0.25 * fast.ddq)
    slow = replace(slow, dqref=0.5 * fast.dqref, runs=((0, 900), (1000, len(fast.q))))
    simulation = Simulation(control, targets=targets)
    both = build_auxiliary_model(problem.on((fast, slow)), simulation)
    assert [len(loops) for loops in both.loops] == [1, 2]
    rows = list(both.simulated(truth).passes())
    for log, loops, together in zip((fast, slow), both.loops, rows, strict=True):
        own = build_auxiliary_model(problem.on(log), simulation)
        for _, _, loop in loops:
            np.testing.assert_array_equal(loop.width, own.loops[0][0][2].width)
        for a, b in zip(together, own.simulated(truth).rows(), strict=True):
            np.testing.assert_allclose(a.X[0], b.X[0], rtol=1e-12)
    widths = [loops[0][2].width for loops in both.loops]
    np.testing.assert_allclose(widths[0], 2.0 * widths[1], rtol=1e-12)


def test_factors_give_the_iv_estimate_of_the_dense_rows(noisy):
    problem, _, _, estimate, simulated, _ = noisy
    instrumented = problem.with_instruments(simulated)
    Z, X, y = dense(instrumented, estimate.sigma)
    system = instrumented.instrument_factors.weighted(estimate.sigma)
    beta = np.linalg.solve(Z.T @ X, Z.T @ y)
    np.testing.assert_allclose(system.projected.solve(), beta, rtol=1e-7)
    np.testing.assert_allclose(system.Pi, np.linalg.lstsq(Z, X, rcond=None)[0], atol=1e-7)
    np.testing.assert_allclose(
        system.gain, np.linalg.inv(Z.T @ X), rtol=1e-5, atol=1e-9 * np.abs(system.gain).max()
    )
    seed = np.sqrt(np.diag(np.linalg.inv(Z.T @ Z)))
    np.testing.assert_allclose(estimate.covariance.literature, seed, rtol=0.02)


@pytest.mark.parametrize("method", ["idim-iv", "2sls", "ref-iv", "didim"])
def test_unweighted_formulas_are_those_of_dense_rows(method, noisy):
    problem, _, simulation, *_ = noisy
    options = {} if method == "ref-iv" else {"simulation": simulation}
    found = estimate(problem, method, weights="none", **options)
    weighted = estimate(problem, method, **options)
    assert np.abs(found.beta - weighted.beta).max() > 1e-6
    if method == "ref-iv":
        instruments = [problem.along([filter_reference_motion(log) for log in problem.samples])]
    else:
        auxiliary = build_auxiliary_model(problem, options["simulation"])
        instruments = [auxiliary.simulated(found.history[-2])]
        instruments += [auxiliary.referenced()] if method == "2sls" else []
    ones = np.ones(problem.robot.n)
    Z, X, y = dense(problem.with_instruments(*instruments), ones)
    if method == "didim":
        X = Z
    projected = Z @ np.linalg.lstsq(Z, X, rcond=1e-11)[0]
    beta = np.linalg.lstsq(projected, y, rcond=None)[0]
    np.testing.assert_allclose(found.beta, beta, rtol=1e-5, atol=1e-6)
    # the literature's error bars are weighted in both
    assert np.all(found.covariance.literature > 0.0)


def test_an_unweighted_output_error_has_no_slope(noisy):
    problem, _, simulation, *_ = noisy
    beta = estimate(problem, "clie", simulation=simulation, weights="none").beta
    linear = linearise_output(build_auxiliary_model(problem, simulation), beta, TORQUE)
    system = linear.factors.weighted(linear.factors.ones)
    step, std = system.solve() - beta, np.sqrt(np.diag(np.linalg.inv(system.A.T @ system.A)))
    assert np.all(np.abs(step) < 0.01 * np.maximum(np.abs(beta), std))


def test_a_search_ends_as_it_is_told(noisy):
    problem, _, simulation, *_ = noisy
    given = {"simulation": replace(simulation, start="rotors")}
    short = estimate(problem, "idim-iv", tolerance=0.5, **given)
    long = estimate(problem, "idim-iv", tolerance=1e-6, **given)
    assert short.iterations < long.iterations
    with pytest.raises(ComputationError, match="did not settle in 2 simulations"):
        estimate(problem, "didim", simulations=2, tolerance=1e-9, **given)
    with pytest.raises(ComputationError, match="did not settle in 1 steps"):
        estimate(problem, "clie", step_limit=1, tolerance=1e-9, **given)


def test_an_estimate_that_the_law_does_not_hold_is_approached():
    """Its motion is bounded, by what the drives can do, and tells of their oscillation alone."""
    problem, truth, control = closed_loop(1, friction="viscous", seconds=2.0)
    bounded = replace(control, limit=np.array([400.0]))
    auxiliary = build_auxiliary_model(problem, Simulation(bounded, width=WIDTH))
    light, torques = 0.02 * truth, problem.factors.squared_torques
    missed = auxiliary.simulated(truth).factors.squared_residuals(truth)
    stray, halvings = simulate_towards_estimate(auxiliary, truth, light)
    assert halvings == 0
    assert np.all(stray.factors.squared_residuals(light) > 0.5 * torques)
    nearer, halvings = simulate_towards_estimate(auxiliary, truth, light, missed=missed)
    assert halvings == 1
    assert np.all(nearer.factors.squared_residuals(0.51 * truth) < 0.3 * torques)
    # as instruments the rows tell the same
    instruments = compress_simulated_rows(problem.with_instruments(stray, nearer))
    np.testing.assert_allclose(
        instruments.squared_residuals(light), stray.factors.squared_residuals(light)
    )
    # of one that comes from such a loop itself no more is asked
    wild = stray.factors.squared_residuals(light)
    assert simulate_towards_estimate(auxiliary, truth, light, missed=wild)[1] == 0
    assert is_astray(stray.factors, light, missed)
    # where nothing nearer is any better, the estimate itself is taken
    assert simulate_towards_estimate(auxiliary, light, light, missed=missed)[1] == 0


def test_pi_inverse_turns_didim_into_iv(noisy):
    problem, _, _, estimate, simulated, _ = noisy
    system = problem.with_instruments(simulated).instrument_factors.weighted(estimate.sigma)
    z = system.instruments
    didim = np.linalg.lstsq(system.R[:z, :z], system.R[:z, -1], rcond=None)[0]
    corrected = np.linalg.solve(system.Pi, didim)
    np.testing.assert_allclose(corrected, system.projected.solve(), rtol=1e-8)


def test_two_stage_least_squares_is_that_of_linearmodels(noisy):
    from linearmodels.iv import IV2SLS  # seconds that other tests need not wait for

    problem, _, _, estimate, simulated, referenced = noisy
    instrumented = problem.with_instruments(simulated, referenced)
    Z, X, y = dense(instrumented, estimate.sigma)
    # constant columns are the same in both instruments: theirs must not repeat
    _, first = np.unique(np.round(Z / np.linalg.norm(Z, axis=0), 12), axis=1, return_index=True)
    theirs = IV2SLS(y, None, X, Z[:, np.sort(first)]).fit(cov_type="unadjusted", debiased=False)
    system = instrumented.instrument_factors.weighted(estimate.sigma)
    ours = system.projected.solve()
    np.testing.assert_allclose(ours, theirs.params.to_numpy(), rtol=1e-6, atol=1e-6)
    A = system.projected.A
    s2 = np.mean((y - X @ ours) ** 2)
    np.testing.assert_allclose(
        np.sqrt(s2 * np.diag(np.linalg.inv(A.T @ A))), theirs.std_errors.to_numpy(), rtol=1e-5
    )

    ours = run_overidentification_test(system)
    np.testing.assert_allclose(ours.statistic, theirs.sargan.stat, rtol=1e-4)
    np.testing.assert_allclose(ours.p_value, theirs.sargan.pval, rtol=1e-3)


def test_hansens_j_is_sargans_where_errors_are_white_in_time():
    problem, truth, control = closed_loop(2, torque_noise=2.0, rate=None, seconds=20.0)
    auxiliary = build_auxiliary_model(problem, Simulation(control, width=WIDTH))
    rows = problem.with_instruments(auxiliary.simulated(truth), auxiliary.referenced())
    sigma = ESTIMATORS["wls"](problem).sigma
    white = run_overidentification_test(rows.instrument_factors.weighted(sigma))
    hac = run_hac_overidentification_test(rows, sigma)
    freedom = int(re.search(r"\d+", hac.distribution)[0])
    assert white.distribution == f"chi2({freedom})"
    np.testing.assert_allclose(hac.statistic * freedom, white.statistic, rtol=0.4)
    assert not hac.rejected


def draw_instrumented(strength, valid, seed, r=2000):
    """Three instruments of one regressor, whose error enters that of y; one may be invalid."""
    rng = np.random.default_rng(seed)
    Z, v = rng.normal(size=(r, 3)), rng.normal(size=r)
    x = strength * Z.sum(axis=1) + v
    y = 2.0 * x + v + rng.normal(size=r) + (0.0 if valid else 0.3 * Z[:, 0])
    rows = np.column_stack([Z, x, y])
    return InstrumentSystem(triangularise_rows(rows), 3, r), rows


@pytest.mark.parametrize("strength", [0.02, 0.5])
def test_first_stage_f_is_the_partial_f_of_linearmodels(strength):
    from linearmodels.iv import IV2SLS

    system, rows = draw_instrumented(strength, True, 0)
    theirs = IV2SLS(rows[:, 4], None, rows[:, 3], rows[:, :3]).fit(cov_type="unadjusted")
    f = theirs.first_stage.diagnostics["f.stat"].iloc[0] * (2000 - 3) / 2000  # theirs divides by r
    np.testing.assert_allclose(compute_first_stage_f(system), f, rtol=1e-6)
    assert (compute_first_stage_f(system) < LEAST_F) == (strength == 0.02)


def test_an_invalid_instrument_contradicts_the_others():
    p = [
        [run_overidentification_test(draw_instrumented(0.5, v, k)[0]).p_value for k in range(20)]
        for v in (True, False)
    ]
    assert np.sum(np.array(p[0]) < 0.01) <= 2
    assert np.all(np.array(p[1]) < 0.01)


def test_endogeneity_test_is_that_of_linearmodels(noisy):
    from linearmodels.iv import IV2SLS

    problem, _, _, estimate, simulated, _ = noisy
    instrumented = problem.with_instruments(simulated)
    Z, X, y = dense(instrumented, estimate.sigma)
    keep = np.linalg.norm(X - Z @ np.linalg.lstsq(Z, X, rcond=None)[0], axis=0) > 1e-9
    # columns that are their own instruments (offsets) are exogenous
    theirs = IV2SLS(y, X[:, ~keep], X[:, keep], Z[:, keep]).fit(debiased=True).wu_hausman()
    ours = run_endogeneity_test(instrumented.instrument_factors.weighted(estimate.sigma))
    assert ours.statistic == pytest.approx(theirs.stat, rel=1e-4)
    assert ours.p_value == pytest.approx(theirs.pval, rel=1e-3, abs=1e-8)


def test_identity_test_accepts_equal_means_and_rejects_others():
    rng = np.random.default_rng(5)
    rows, p = 4000, 3
    Z = rng.normal(size=(rows, p))
    X = Z + 0.3 * rng.normal(size=(rows, p))

    def system(X):
        factor = triangularise_rows(np.column_stack([Z, X, X.sum(axis=1)]))
        return InstrumentFactors((GroupFactor("all", factor, rows),), p).weighted(np.ones(1))

    assert not run_identity_test(system(X)).rejected
    assert run_identity_test(system(X + 0.05 * Z)).rejected
    # a column that is its own instrument says nothing
    X[:, 2] = Z[:, 2] = 1.0
    assert not run_identity_test(system(X)).rejected


def test_squared_residual_of_a_fit():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(50, 4)) * [1, 1e6, 1e-6, 1], rng.normal(size=50)
    rest = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert sum_squared_residuals(X, y) == pytest.approx(rest @ rest)


def test_a_wrong_controller_spoils_didim_but_not_iv():
    problem, truth, control = closed_loop(2, friction="viscous", rate=None, torque_noise=0.2)
    wrong = Simulation(control.scaled(0.15), width=WIDTH)
    iv = ESTIMATORS["idim-iv"](problem, wrong)
    norm = problem.factors.weighted(iv.sigma).A
    lost = np.linalg.norm(norm @ (ESTIMATORS["didim"](problem, wrong).beta - truth))
    assert lost > 4.0 * np.linalg.norm(norm @ (iv.beta - truth))
    assert off(iv.beta, truth) < 0.02


def test_gain_update_keeps_a_heavy_start_in_bandwidth():
    problem, truth, control = closed_loop(2, friction="viscous", rate=None)
    simulation = Simulation(control, width=WIDTH, start="rotors")
    plain = ESTIMATORS["didim"](problem, simulation)
    kept = ESTIMATORS["didim"](problem, simulation, search=IterationOptions(gain_update=True))
    # the first simulation has the right bandwidth, so the first step is the better one
    first = [np.linalg.norm(e.history[1] - truth) for e in (plain, kept)]
    assert first[1] < first[0]
    assert off(kept.beta, truth) < 2e-3


def test_whitened_rows_have_white_errors_and_the_same_truth():
    problem, truth, control = closed_loop(2, noise=2e-4, torque_noise=0.5)
    white = ROWS["noise-model"](problem)
    beta = ESTIMATORS["wls"](white).beta
    every = compute_residuals(ROWS["all"](problem), beta).error
    found = compute_residuals(white, beta).error
    for raw, own in zip(every, found, strict=True):
        assert run_whiteness_test(raw).statistic > 20.0 * run_whiteness_test(own).statistic
    estimate = ESTIMATORS["idim-iv"](white, Simulation(control, width=WIDTH))
    assert np.all(np.abs(estimate.beta - truth) < 6.0 * estimate.covariance.std + 0.03)


def test_autoregression_finds_the_coefficients_and_even_orders():
    rng = np.random.default_rng(2)
    w = rng.normal(size=20000)
    e = np.zeros_like(w)
    for t in range(2, len(w)):
        e[t] = 1.2 * e[t - 1] - 0.5 * e[t - 2] + w[t]
    np.testing.assert_allclose(fit_autoregression(e), [-1.2, 0.5], atol=0.03)
    assert len(fit_autoregression(w)) % 2 == 0
    assert len(fit_autoregression(np.zeros(100))) == 0


def test_start_values():
    problem, truth, _ = closed_loop(2)
    np.testing.assert_allclose(choose_start_values(problem, {problem.base.names[0]: 2.0})[0], 2.0)
    fitted = problem.base.matrix @ fit_nominal_drives(problem)
    assert off(fitted, truth) < 0.1
    with pytest.raises(InputError, match="'nonsense' is not a base parameter"):
        choose_start_values(problem, {"nonsense": 1.0})
    with pytest.raises(InputError, match=r"start 'nominals' is not known.*nominal"):
        Simulation(controller(2), start="nominals")


def test_convergence_is_that_of_the_seed_but_for_values_within_noise_of_zero():
    std = np.array([0.1, 0.1])
    assert has_converged(np.array([10.0, 0.0]), np.array([10.05, 0.0005]), std, 0.01)
    assert not has_converged(np.array([10.0, 0.0]), np.array([10.2, 0.0]), std, 0.01)
    assert not has_converged(np.array([10.0, 0.0]), np.array([10.0, 0.002]), std, 0.01)


def standing_loop(*, noise: float = 0.0) -> tuple[Problem, Array, Array, Controller]:
    """A log that begins at rest below its reference: a soft law has borne gravity for long."""
    robot = toy.arm(2, False)
    idim = build_idim(robot, "viscous")
    theta, control = toy.true_parameters(idim, robot.nominal), pd([400.0, 200.0], [40.0, 20.0])
    lively = reference(2, 4.0)
    q = np.vstack([np.zeros((2000, 2)), quintic_ease(len(lively.q))[:, None] * lively.q])
    dq, ddq = differentiate_twice(q, RATE)
    along = Reference(RATE, q, dq, ddq)
    motion = rollout(Loop(idim, control, along, width=np.full(2, WIDTH)), theta)
    late = slice(1900, None)
    seen = motion.q[late] + noise * np.random.default_rng(1).normal(size=motion.q[late].shape)
    log = Recording("standing", RATE, seen, motion.tau[late], qref=q[late], dqref=dq[late])
    problem = Problem(robot, prepare(log, bandwidth=8.0), "viscous")
    return problem, motion.q[late], theta, control


def quintic_ease(samples: int) -> Array:
    s = np.clip(np.arange(samples) / 400.0, 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s**2)


def test_a_robot_that_rests_off_its_reference_starts_where_the_law_bears_it():
    problem, truth, theta, control = standing_loop()
    assert np.abs(truth[0]).max() > 5e-4
    auxiliary = build_auxiliary_model(problem, Simulation(control, width=WIDTH))
    (motion,) = auxiliary.motions(theta)
    # gravity is that of the reference, and changes little on the way down
    assert np.abs(motion.q - truth).max() < 0.02 * np.abs(truth[0]).max()


@pytest.mark.parametrize(("made", "noise"), [(standing_loop, 1e-5), (closed_loop, 1e-3)])
def test_instruments_do_not_move_with_the_noise_of_the_start(made, noise):
    quiet, *_, control = made(noise=noise)
    loud, *_ = made(noise=4.0 * noise)
    beta = ESTIMATORS["wls"](quiet).beta
    theta = quiet.base.standard(beta)
    found = [
        build_auxiliary_model(each, Simulation(control, width=WIDTH)).motions(theta)[0]
        for each in (quiet, loud)
    ]
    assert np.array_equal(found[0].q, found[1].q)
    assert np.array_equal(found[0].ddq, found[1].ddq)
    assert not np.array_equal(quiet.samples[0].q[0], loud.samples[0].q[0])


@pytest.mark.parametrize("friction", ["load", "stribeck", "coulomb-viscous"])
def test_where_a_law_bears_a_robot_moves_with_every_parameter(friction):
    idim = build_idim(toy.arm(2, False), friction)
    theta = np.random.default_rng(2).uniform(0.5, 2.0, size=len(idim.parameters))
    still = np.zeros((5, 2))
    along = Reference(RATE, still + np.array([0.3, 0.4]), still, still)
    loop = Loop(idim, pd([400.0, 200.0], [40.0, 20.0]), along, width=np.full(2, WIDTH))
    moved = balance_start(loop, theta)[1]
    way = np.random.default_rng(3).normal(size=len(theta))
    assert_slope(lambda s: balance_start(loop, theta + s * way)[0].q0, moved @ way, 1e-3)


def test_sensitivities_know_that_the_start_moves_with_the_estimate():
    problem, _, theta, control = standing_loop()
    beta = problem.base.matrix @ theta
    auxiliary = build_auxiliary_model(problem, Simulation(control, width=WIDTH))
    parts = [part for _, _, part in auxiliary.sensitive(beta, "q")]
    along = np.random.default_rng(0).normal(size=len(beta)) * np.maximum(np.abs(beta), 0.1)
    slope = np.vstack([part.by_q for part in parts])[:5] @ along

    def move(shift):
        return auxiliary.motions(problem.base.standard(beta + shift * along))[0].q[:5]

    assert np.abs(slope[0]).max() > 1e-5
    assert_slope(move, slope, 1e-4)


def test_refusals():
    problem, _, control = closed_loop(2)
    with pytest.raises(InputError, match="the controller has 3 joints, toy has 2"):
        ESTIMATORS["idim-iv"](problem, Simulation(controller(3)))
    short = reference(2, seconds=2.0)
    with pytest.raises(InputError, match="the reference has 1000 samples, the log has 4000"):
        ESTIMATORS["didim"](problem, Simulation(control, references=(short,)))
    slow = reference(2, rate=100.0, seconds=40.0)
    with pytest.raises(InputError, match="the reference has 100 Hz, the log 500 Hz"):
        ESTIMATORS["didim"](problem, Simulation(control, references=(slow,)))
    with pytest.raises(InputError, match="2 references for 1 logs"):
        ESTIMATORS["didim"](problem, Simulation(control, references=(short, short)))
    bare = problem.on([replace(log, qref=None, dqref=None) for log in problem.samples])
    with pytest.raises(InputError, match="has no reference"):
        ESTIMATORS["clie"](bare, Simulation(control))
    with pytest.raises(ComputationError, match=r"diverges at t = .* s at joint_.*start = "):
        ESTIMATORS["clie"](problem, Simulation(pd([-4000.0] * 2, [0.0] * 2, rate=RATE)))


def test_identification_reports_its_simulation():
    problem, _, control = closed_loop(2, torque_noise=0.5)
    fit = identify(problem, "didim", simulation=Simulation(control, width=WIDTH))
    figure = fit.simulated[0]
    assert np.all(figure.position_percent < 0.1)
    assert np.all(figure.torque_percent < 10.0)
    assert fit.settings["simulation"]["integrator"] == "ode3"
    assert "simulation  of loop: position error" in fit.summary()


@pytest.mark.parametrize("weights", first(["sigma", "none"], 1))
def test_an_error_of_rounding_alone_is_settled(weights):
    """Exact positions of a motion from rest, held by its targets: some steps leave rounding."""
    robot, control, t = toy.arm(2), controller(2, RATE), np.arange(4000) / RATE
    ramp, slope, swell = np.sin(0.4 * t) ** 2, 0.4 * np.sin(0.8 * t), 0.32 * np.cos(0.8 * t)
    wave, rate = np.sin(3.0 * t), 3.0 * np.cos(3.0 * t)
    path = (
        ramp * wave,
        slope * wave + ramp * rate,
        swell * wave + 2.0 * slope * rate - 9.0 * ramp * wave,
    )
    along = Reference(RATE, *(np.column_stack([x, -x]) for x in path))
    idim = build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    loop, _ = balance_start(Loop(idim, control, along, width=np.full(2, WIDTH)), theta)
    motion = rollout(loop, theta)
    tau = motion.tau + np.random.default_rng(0).normal(size=motion.tau.shape)
    log = Recording("loop", RATE, motion.measured, tau, qref=along.q, dqref=along.dq)
    problem = Problem(robot, prepare(log, bandwidth=8.0))
    simulation = Simulation(control, width=WIDTH, start="rotors")
    options = {"simulation": simulation, "weights": weights, "tolerance": 1e-15}
    found = estimate(problem, "cloe", **options)
    assert off(found.beta, problem.base.matrix @ theta) < 1e-7
