"""Maximum likelihood with noisy positions: limits, propagation, intervals, refusals."""

from dataclasses import replace
from functools import cache

import floating
import numpy as np
import pytest
import toy
from differences import assert_slope

from dynident.api import identify
from dynident.core.errors import ComputationError, InputError
from dynident.estimators.least_squares import wls
from dynident.methods.options import estimate as estimate_by_name
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem
from dynident.regression.statistics import compute_residuals
from dynident.smoothing.ml import Noise, RowErrors, RowLikelihood, ml
from dynident.smoothing.propagation import (
    NoiseLevels,
    Propagation,
    compute_impulse_responses,
    estimate_encoder_noise,
    pass_through_filters,
    propagate_white_noise,
)

ENCODER, TORQUE = 5e-4, 0.5


def noisy(robot, seed, friction="viscous", seconds=12.0, encoder=ENCODER, torque=TORQUE, **options):
    """A problem of noisy positions and torques, and its true base parameters."""
    clean, theta = toy.log(robot, seconds=seconds, friction=friction)
    rng = np.random.default_rng(seed)
    q = clean.q + encoder * rng.normal(size=clean.q.shape)
    tau = clean.tau + torque * rng.normal(size=q.shape)
    logged = replace(clean, q=q, tau=tau, dq=None, ddq=None)
    problem = Problem(robot, prepare(logged, 10.0, **options), friction)
    return problem, problem.base.matrix @ theta


def parts(propagation):
    """Rows of the groups of a single log, all stretches of it."""
    return [rows for log in propagation.passes() for rows in log]


@pytest.mark.parametrize("n", [2, 4])
def test_without_noise_of_positions_it_is_wls(n):
    problem, _ = noisy(toy.arm(n, coupled=n == 4), 1, "coulomb-viscous", encoder=1e-5)
    ours, theirs = ml(problem, Noise(position_std=0.0)), wls(problem)
    np.testing.assert_allclose(
        ours.beta, theirs.beta, rtol=0, atol=1e-8 * np.abs(theirs.beta).max()
    )
    np.testing.assert_allclose(ours.sigma, theirs.sigma, rtol=1e-6)


def test_noise_behind_the_filters_is_that_of_impulse_responses():
    rng = np.random.default_rng(0)
    robot = toy.arm(1)
    clean, _ = toy.log(robot, seconds=60.0)
    logged = replace(clean, q=clean.q + ENCODER * rng.normal(size=clean.q.shape), dq=None, ddq=None)
    ours, exact = prepare(logged, 10.0), prepare(replace(clean, dq=None, ddq=None), 10.0)
    f = ours.filters[0]
    errors = [getattr(ours, s)[:, 0] - getattr(exact, s)[:, 0] for s in ("q", "dq", "ddq")]
    (start, stop) = ours.segments[0]
    behind = np.array([np.convolve(e[start:stop], f.taps, "valid") for e in errors])
    expected = ENCODER**2 * propagate_white_noise(
        compute_impulse_responses(ours.position_hz[0], ours.rate), f.taps
    )
    found = behind @ behind.T / behind.shape[1]
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(found / scale, expected / scale, atol=0.06)
    # q and ddq belong together, the speed stands apart
    assert expected[0, 2] == pytest.approx(-expected[1, 1], rel=1e-3)
    assert abs(expected[0, 1]) < 1e-9 * scale[0, 1]


def test_the_log_shows_the_noise_of_its_encoders():
    for encoder in (1e-5, 1e-3):
        problem, _ = noisy(toy.arm(3), 2, encoder=encoder)
        np.testing.assert_allclose(estimate_encoder_noise(problem.samples[0]), encoder, rtol=0.03)


def test_derivatives_of_the_rows_and_of_their_variance_are_those_of_differences():
    problem, truth = noisy(toy.arm(3), 3, seconds=6.0)
    (log,) = problem.samples
    encoders = np.array([1e-3, 2e-3, 5e-4])
    propagation = Propagation(problem, (NoiseLevels(encoders),))
    _, roots = pass_through_filters(log, encoders)
    rng = np.random.default_rng(0)
    (rows, *_) = parts(propagation)
    idim = problem.idim
    for g, columns in enumerate(problem.columns):
        own, at = rows[g], rows[g].sample
        assert own.B.shape[1] == 9
        units = rng.normal(size=(len(at), 3, 3))
        change = np.einsum("jab,rjb->arj", roots[g], units)

        def regressor(t, g=g, at=at, change=change, columns=columns):
            motion = (log.q[at], log.dq[at], log.ddq[at])
            moved = [each + t * c for each, c in zip(motion, change, strict=True)]
            return idim.regressor(*moved)[:, g][:, problem.base.kept][:, columns]

        assert_slope(regressor, own.spread(units.reshape(len(at), 9)), 1e-3)
        beta, along = truth[columns], rng.normal(size=len(columns))
        slope = 2.0 * np.einsum("rm,rmk,k->r", own.reach(beta), own.B, along)

        def variance(t, own=own, beta=beta, along=along):
            return np.sum(own.reach(beta + t * along) ** 2, axis=1)

        assert_slope(variance, slope, 1e-4)


@pytest.mark.long
def test_the_propagated_variance_is_that_of_prepared_noisy_positions():
    robot, friction = toy.arm(3), "viscous"
    clean, theta = toy.log(robot, seconds=12.0, friction=friction)
    encoders = np.array([3e-4, 1e-3, 5e-4])

    def errors(q):
        problem = Problem(robot, prepare(replace(clean, q=q, dq=None, ddq=None), 10.0), friction)
        return compute_residuals(problem, problem.base.matrix @ theta).error

    exact = Problem(robot, prepare(clean, 10.0), friction)
    truth = exact.base.matrix @ theta
    groups = parts(Propagation(exact, (NoiseLevels(encoders),)))
    squares, runs = [0.0] * 3, 40
    rng = np.random.default_rng(5)
    still = errors(clean.q)
    for _ in range(runs):
        found = errors(clean.q + encoders * rng.normal(size=clean.q.shape))
        for g in range(3):
            squares[g] = squares[g] + (found[g] - still[g]) ** 2 / runs
    for g, columns in enumerate(exact.columns):
        variance = np.concatenate([np.sum(r[g].reach(truth[columns]) ** 2, axis=1) for r in groups])
        assert np.sum(squares[g]) == pytest.approx(np.sum(variance), rel=0.05)
        # row by row, too: it changes with the configuration
        if np.std(variance) > 0.05 * np.mean(variance):
            assert np.corrcoef(squares[g], variance)[0, 1] > 0.2


@pytest.mark.long
def test_scores_of_the_truth_have_no_mean_where_those_of_least_squares_have():
    robot = toy.arm(2)
    ours, theirs = [], []
    for seed in range(30):
        problem, truth = noisy(robot, seed, encoder=1e-3)
        taps = problem.samples[0].filters[0].taps
        levels = (NoiseLevels(np.full(2, 1e-3)),)
        errors = RowErrors(Propagation(problem, levels), truth)
        here = RowLikelihood(errors, np.full(2, TORQUE * np.linalg.norm(taps)))
        ours.append(here.inverse @ here.slope)
        system = problem.factors.weighted(here.spread)
        theirs.append(here.inverse @ (system.A.T @ (system.b - system.A @ truth)))
    worst = [np.abs(np.mean(s, axis=0) / np.std(s, axis=0)).max() for s in (ours, theirs)]
    assert worst[0] < 0.7
    assert worst[1] > 2.0


@cache
def coverage(runs):
    """Share of 95 % intervals that hold the truth, and mean square errors, by method."""
    inside, errors = {}, {}
    for seed in range(runs):
        problem, truth = noisy(toy.arm(2), seed, seconds=20.0, encoder=1e-3)
        for method in ("wls", "ml"):
            found = estimate_by_name(problem, method, covariance="hac")
            inside.setdefault(method, []).append(
                np.abs(found.beta - truth) < 1.96 * found.covariance.std
            )
            errors.setdefault(method, []).append(found.beta - truth)
    return {
        method: (np.mean(held), np.mean(np.square(errors[method]), axis=0))
        for method, held in inside.items()
    }


@pytest.mark.long
def test_intervals_cover_where_those_of_least_squares_do_not():
    found = coverage(20)
    assert 0.90 < found["ml"][0] < 0.98
    assert found["wls"][0] < 0.85
    # its errors are smaller, too
    assert np.mean(np.log(found["ml"][1] / found["wls"][1])) < -0.5


@pytest.mark.slow
def test_intervals_cover_in_many_runs():
    assert 0.92 < coverage(200)["ml"][0] < 0.97


def test_known_noise_is_taken_as_it_is():
    problem, truth = noisy(toy.arm(2), 7, encoder=1e-3)
    found = ml(problem, Noise(position_std=[1e-3, 1e-3], torque_std=TORQUE))
    assert not found.warnings
    assert np.all(np.abs(found.beta - truth) < 4.0 * found.covariance.std)
    few = ml(problem, Noise(position_std=0.0, torque_std=0.1 * TORQUE))
    assert "times what the given noise explains" in few.warnings[0]
    much = ml(problem, Noise(position_std=4e-3))
    assert "check position_std" in much.warnings[0]


def test_each_log_has_its_own_encoders_and_shapes_of_friction_are_estimated():
    robot = toy.arm(2)
    logs = [noisy(robot, k, encoder=e)[0].samples[0] for k, e in ((1, 1e-5), (2, 1e-3))]
    problem = Problem(robot, logs, "viscous")
    found = ml(problem)
    _, truth = noisy(robot, 1)
    assert np.all(np.abs(found.beta - truth) < 5.0 * found.covariance.std)
    noise = [estimate_encoder_noise(log) for log in logs]
    assert noise[1][0] == pytest.approx(100.0 * noise[0][0], rel=0.1)


def test_joints_may_stand_for_longer_than_a_stretch_of_rows():
    robot = toy.arm(2)
    clean, theta = toy.log(robot, seconds=60.0, friction="viscous")
    q, dq, ddq = (np.array(x) for x in (clean.q, clean.dq, clean.ddq))
    still = slice(6000, len(q) - 4000)
    q[still, 0], dq[still, 0], ddq[still, 0] = q[6000, 0], 0.0, 0.0
    idim = Problem(robot, prepare(clean, 10.0), "viscous").idim
    tau = idim.torque(theta, q, dq, ddq)
    moved = replace(clean, q=q, tau=tau, dq=None, ddq=None)
    problem = Problem(robot, prepare(moved, 10.0, drop_below=0.2), "viscous")
    assert any(not len(y) for rows in problem.rows() for y in rows.y)
    found = ml(problem, Noise(position_std=1e-4))
    assert np.all(np.isfinite(found.covariance.std))


@pytest.mark.long
def test_base_wrenches_have_noise_of_joints_and_of_measured_forces():
    made = floating.solo(seconds=1.6)
    clean, rng = made.recording, np.random.default_rng(3)
    force = 1.0
    wrenches = {k: w + force * rng.normal(size=w.shape) for k, w in clean.wrenches.items()}
    q = clean.q + 2e-4 * rng.normal(size=clean.q.shape)
    tau = clean.tau + 0.05 * rng.normal(size=clean.tau.shape)
    logged = replace(clean, q=q, tau=tau, dq=None, ddq=None, wrenches=wrenches)
    problem = Problem(made.robot, prepare(logged, 20.0), "viscous")
    truth = problem.base.matrix @ made.theta
    for options in ({}, {"wrench_std": (force, 0.0)}):
        found = ml(problem, Noise(**options))
        inside = np.abs(found.beta - truth) < 1.96 * found.covariance.std
        assert np.mean(inside) > 0.85, options
    # four feet of a newton each, behind the filter
    (rows, *_) = parts(Propagation(problem, (NoiseLevels(np.zeros(12), (force, 0.0)),)))
    taps = problem.samples[0].filters[0].taps
    np.testing.assert_allclose(rows[0].known, 4.0 * force**2 * float(taps @ taps), rtol=1e-9)


@pytest.mark.parametrize(
    ("prepared", "options", "message"),
    [
        ({"median": 3}, {}, "ml does not propagate noise through a median filter"),
        ({}, {"position_std": [1e-3] * 3}, "position_std has 3 values; give one, or one for each"),
        ({}, {"position_std": -1.0}, "position_std .*must not be negative"),
        ({}, {"torque_std": 0.0}, "torque_std .*has to be positive"),
        ({}, {"wrench_std": [1.0, 0.1]}, "wrench_std, but no log has a measured wrench"),
        ({}, {"wrench_std": [1.0]}, "wrench_std"),
        ({"position_hz": 500.0}, {}, "positions are not filtered, .*; give position_std"),
    ],
)
def test_what_it_cannot_do_is_refused(prepared, options, message):
    problem, _ = noisy(toy.arm(2), 1, seconds=6.0, **prepared)
    with pytest.raises(InputError, match=message):
        identify(problem, "ml", **options)


def test_measured_speeds_memories_and_means_of_periods_are_refused():
    robot = toy.arm(2)
    recording, _ = toy.log(robot)
    with pytest.raises(InputError, match="through measured speeds; set derivatives"):
        ml(Problem(robot, prepare(recording, 10.0, derivatives="measured")))
    with pytest.raises(InputError, match="through friction 'dahl'"):
        ml(Problem(robot, prepare(recording, 10.0), "dahl"))


def test_noise_that_hides_the_motion_is_refused():
    problem, _ = noisy(toy.arm(2), 1, seconds=6.0, encoder=0.1)
    with pytest.raises(ComputationError, match=r"noise of the positions is .*; lower position_hz"):
        ml(problem)
