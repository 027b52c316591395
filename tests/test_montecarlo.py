"""Zero-mean errors of the instruments, and intervals that cover, with noise in the loop."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import montecarlo as mc

WLS, WLS_SEED, IV, IV_SEED = mc.METHODS[:4]
FEW, MANY = 30, 500
NOISES = {"positions and torque": lambda arm: arm, "positions only": mc.in_loop}


@cache
def outcomes(robot, friction, noise, runs, *methods):
    arm = mc.ARMS[robot](friction)
    return mc.study(NOISES[noise](arm), runs, methods)


@cache
def under_white_torque_noise(robot, runs):
    return mc.study(mc.outside(mc.ARMS[robot](mc.VISCOUS)), runs, (WLS, WLS_SEED))


def made_up(beta, free):
    std = np.ones_like(beta)
    names = tuple("abcdefghij"[: beta.shape[1]])
    return mc.Outcome(WLS, names, beta, std, free, free, 0, ("hac",) * len(beta), True)


def test_the_joint_test_is_students_for_one_parameter():
    beta = np.random.default_rng(3).normal(0.1, 2.0, (30, 1))
    expected = stats.ttest_1samp(beta[:, 0], 0.0)
    outcome = made_up(beta, np.zeros(1))
    assert outcome.hotelling == pytest.approx(expected.pvalue, rel=1e-9)
    assert outcome.t[0] == pytest.approx(expected.statistic, rel=1e-9)


def test_the_joint_test_rejects_as_often_as_it_says():
    rng = np.random.default_rng(5)
    mixed = rng.normal(size=(6, 6))
    p = [made_up(rng.normal(size=(40, 6)) @ mixed, np.zeros(6)).hotelling for _ in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_runs_are_reproducible_and_differ_by_their_noise():
    arm = mc.planar_arm(mc.VISCOUS)
    first, again, other = arm.log(0), arm.log(0), arm.log(1)
    np.testing.assert_array_equal(first.q, again.q)
    np.testing.assert_array_equal(first.tau, again.tau)
    assert np.all(np.any(first.tau != other.tau, axis=0))
    # the controllers see the noise: it is in the torque although no sensor adds any there
    loop = mc.in_loop(arm)
    assert np.all(np.std(loop.log(0).tau - loop.quiet.tau, axis=0) > 0.1)


@pytest.mark.parametrize("method", [WLS, IV, IV_SEED], ids=lambda m: m.label)
def test_without_noise_the_methods_come_to_the_truth(method):
    arm = mc.planar_arm(mc.VISCOUS)
    free, settled = mc.noise_free_value(arm, method, np.ones(2))
    assert settled
    np.testing.assert_allclose(free, arm.truth, atol=3e-4 * np.abs(arm.truth).max())


@pytest.mark.parametrize("noise", NOISES)
def test_instruments_are_unbiased_in_the_loop_where_least_squares_is_not(noise):
    ls, iv = outcomes("2R arm", mc.VISCOUS, noise, FEW, WLS, IV)
    assert ls.failures == iv.failures == 0
    assert mc.zero_mean(iv)
    assert mc.clearly_biased(ls)


def test_intervals_cover_in_a_few_runs():
    _, iv = outcomes("2R arm", mc.VISCOUS, "positions and torque", FEW, WLS, IV)
    for outcome in (iv, *under_white_torque_noise("2R arm", FEW)):
        # 270 intervals, correlated within a run: two per cent of standard error
        assert 90.0 < outcome.coverage(outcome.free) < 99.0


def test_the_sign_of_a_noisy_velocity_biases_instruments_too_unless_slow_rows_are_dropped():
    noise = "positions and torque"
    every, moving = outcomes("2R arm", mc.COULOMB, noise, FEW // 2 + 5, IV, mc.MOVING)
    assert mc.clearly_biased(every)
    assert mc.zero_mean(moving)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("robot", mc.ARMS)
def test_instruments_are_unbiased_in_many_runs(robot, noise):
    ls, iv, _ = outcomes(robot, mc.VISCOUS, noise, MANY, WLS, IV, IV_SEED)
    assert mc.zero_mean(iv)
    assert mc.clearly_biased(ls)


@pytest.mark.slow
@pytest.mark.parametrize("robot", mc.ARMS)
def test_intervals_cover_in_many_runs(robot):
    loop = outcomes(robot, mc.VISCOUS, "positions and torque", MANY, WLS, IV, IV_SEED)[1:]
    for outcome in (*loop, *under_white_torque_noise(robot, MANY)):
        assert mc.covers(outcome), outcome.method.label


@pytest.mark.slow
@pytest.mark.parametrize("robot", mc.ARMS)
def test_intervals_are_not_too_short_where_all_noise_is_of_the_positions(robot):
    for outcome in outcomes(robot, mc.VISCOUS, "positions only", MANY, WLS, IV, IV_SEED)[1:]:
        assert outcome.coverage(outcome.free) > 93.0


@pytest.mark.slow
@pytest.mark.xfail(reason="Bartlett's kernel leaks: the errors' spectrum grows from zero")
@pytest.mark.parametrize("robot", mc.ARMS)
def test_intervals_are_not_too_long_where_all_noise_is_of_the_positions(robot):
    for outcome in outcomes(robot, mc.VISCOUS, "positions only", MANY, WLS, IV, IV_SEED)[1:]:
        assert outcome.coverage(outcome.free) < 97.0


@pytest.mark.slow
@pytest.mark.parametrize("robot", mc.ARMS)
def test_coulomb_friction_biases_instruments_in_many_runs(robot):
    noise = "positions and torque"
    every, moving = outcomes(robot, mc.COULOMB, noise, MANY, IV, mc.MOVING)
    assert mc.clearly_biased(every)
    # on the twin it is the drive that turns with two joints which biases, and which is gated too
    worst = every.names[int(np.argmax(np.abs(every.bias)))]
    assert robot == "2R arm" or worst in ("fvm6", "fcm6")
    assert np.max(np.abs(moving.bias)) < 0.25 * np.max(np.abs(every.bias))
