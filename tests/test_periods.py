"""Logs that repeat: the period, the mean, its noise, and what identification makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import toy
from scipy.signal import lfilter
from tables import write_table

from dynident.api import identify, validate
from dynident.cli import run
from dynident.consistency.constraints.values import Fixed
from dynident.control.controller import pd
from dynident.core.errors import InputError
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.estimators.closed_loop import Simulation
from dynident.filters.harmonics import (
    differentiate_harmonics,
    estimate_noise_spectrum,
    fit_harmonics,
    shift_harmonics,
    sum_harmonics,
    sum_spectrum,
)
from dynident.recording.periods import (
    FINER,
    correlate_with_itself,
    find_repetition_lag,
    refine_period,
)
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.row_kinds import ROWS
from dynident.regression.scatter import measure_scatter, run_lack_of_fit_test
from dynident.study.study import load_study_robot, read_study, read_study_logs

RATE = 250.0
PERIOD = 2.0137  # 503.425 samples
HARMONICS = 6
FINE = 16
"""Instants over which a sample of the torque is averaged, as a converter does."""
POSITION, TORQUE = 1e-4, 0.3


def motion(t, n=2, period=PERIOD, seed=1):
    """A sum of harmonics with its derivatives."""
    rng = np.random.default_rng(seed)
    q, dq, ddq = (np.zeros((len(t), n)) for _ in range(3))
    for j in range(n):
        for k in range(1, HARMONICS + 1):
            w, a, phase = 2 * np.pi * k / period, rng.uniform(0.05, 0.4) / k, rng.uniform(0, 6)
            q[:, j] += a * np.sin(w * t + phase)
            dq[:, j] += a * w * np.cos(w * t + phase)
            ddq[:, j] -= a * w * w * np.sin(w * t + phase)
    return q, dq, ddq


@cache
def clean(periods=8.4, period=PERIOD, seed=1, friction="coulomb-viscous"):
    """A log without noise, its robot and its standard parameters."""
    robot = toy.arm(2)
    idim = build_idim(robot, friction)
    theta = toy.true_parameters(idim, robot.nominal)
    count = int(periods * period * RATE)
    fine = (np.arange(count * FINE) - FINE // 2 + 0.5) / RATE / FINE
    tau = idim.torque(theta, *motion(fine, period=period, seed=seed))
    q, _, _ = motion(np.arange(count) / RATE, period=period, seed=seed)
    theta.setflags(write=False)
    return Recording("p", RATE, q, tau.reshape(count, FINE, 2).mean(axis=1)), robot, theta


def noisy(recording, rng, coloured=False, position=POSITION):
    """The log with noise of encoders and torque."""
    shape = recording.q.shape
    error = rng.normal(size=shape)
    if coloured:
        error = np.sqrt(1 - 0.81) * lfilter([1.0], [1.0, -0.9], error, axis=0)
    return replace(
        recording, q=recording.q + position * rng.normal(size=shape),
        tau=recording.tau + TORQUE * error,
    )  # fmt: skip


def averaged(recording, period=PERIOD, **options):
    return prepare(recording, 5.0, position_hz=4.0, period=period, **options)


def inner(samples, label):
    return getattr(samples, label)[slice(*samples.averaging.inner)]


# harmonics


@pytest.mark.parametrize("length", [200.0, 200.37, 1234.8])
def test_harmonics_of_a_period_of_any_length_are_exact(length):
    rng = np.random.default_rng(0)
    c = rng.normal(size=(60, 2)) + 1j * rng.normal(size=(60, 2))
    c[0] = c[0].real
    first = 0.3
    k = np.arange(int(length)) + first
    waves = np.exp(2j * np.pi * np.outer(k, np.arange(60)) / length)
    x = c[0].real + 2 * (waves[:, 1:] @ c[1:]).real
    np.testing.assert_allclose(fit_harmonics(x, first, length, 60), c, atol=1e-11)


def test_harmonics_of_a_whole_number_of_samples_are_those_of_the_fft():
    x = np.random.default_rng(1).normal(size=(128, 3))
    found = fit_harmonics(x, 0.0, 128.0, 50)
    np.testing.assert_allclose(found, np.fft.rfft(x, axis=0)[:50] / 128, atol=1e-12)


def test_derivatives_and_shifts_of_harmonics_are_exact():
    t = np.arange(256) * PERIOD / 256
    q, dq, ddq = motion(t)
    c = fit_harmonics(q, 0.0, 256.0, 20)
    np.testing.assert_allclose(
        sum_harmonics(differentiate_harmonics(c, PERIOD), 256), dq, atol=1e-10
    )
    twice = differentiate_harmonics(differentiate_harmonics(c, PERIOD), PERIOD)
    np.testing.assert_allclose(sum_harmonics(twice, 256), ddq, atol=1e-9)
    late, _, _ = motion(t + 0.3 * PERIOD)
    np.testing.assert_allclose(sum_harmonics(shift_harmonics(c, 0.3), 256), late, atol=1e-12)


# the period


def test_the_correlation_with_itself_is_one_at_the_period_and_at_none():
    rho = correlate_with_itself(motion(np.arange(2000) / RATE, period=2.0)[0])
    assert rho[0] == pytest.approx(1.0)
    assert rho[500] == pytest.approx(1.0)
    assert abs(rho).max() < 1.0 + 1e-9


def test_the_period_is_found_and_not_its_multiples():
    recording, _, _ = clean()
    q = noisy(recording, np.random.default_rng(0)).q
    lag, correlation = find_repetition_lag(q)
    assert abs(lag - PERIOD * RATE) < 1.0
    assert correlation > 0.99
    found = refine_period(q, [(0, len(q))], float(lag), 0, 4.0 / RATE)
    assert found / RATE == pytest.approx(PERIOD, rel=2e-6)


def test_a_found_period_prepares_what_a_given_one_does():
    recording = noisy(clean()[0], np.random.default_rng(0))
    given, found = averaged(recording), averaged(recording, "found")
    assert found.averaging.found
    assert not given.averaging.found
    assert found.averaging.periods == given.averaging.periods == 8
    np.testing.assert_allclose(found.q, given.q, atol=1e-4)
    assert not found.warnings


def test_the_reference_says_the_period_where_there_is_one():
    recording, _, _ = clean()
    known = replace(noisy(recording, np.random.default_rng(0)), qref=recording.q)
    samples = averaged(known, "found")
    assert samples.averaging.period == pytest.approx(PERIOD, rel=1e-7)
    np.testing.assert_allclose(inner(samples, "qref"), inner(samples, "q"), atol=3e-4)


# the mean


def test_the_mean_has_the_motion_and_its_derivatives():
    samples = averaged(clean()[0])
    t = np.arange(samples.averaging.samples) / samples.rate
    assert t[-1] + 1 / samples.rate == pytest.approx(PERIOD)
    for label, truth in zip(("q", "dq", "ddq"), motion(t), strict=True):
        np.testing.assert_allclose(inner(samples, label), truth, atol=1e-9 * abs(truth).max())


@pytest.mark.long
def test_the_noise_of_the_mean_is_what_the_periods_say():
    recording, _, _ = clean()
    truth = averaged(recording)
    errors, told = [], []
    for seed in range(60):
        samples = averaged(noisy(recording, np.random.default_rng(seed), coloured=seed % 2 == 0))
        found = samples.averaging.settings()
        errors.append(
            [np.mean((inner(samples, k) - inner(truth, k)) ** 2, axis=0) for k in ("q", "tau")]
        )
        told.append([np.square(found[k]) for k in ("q_std", "tau_std")])
    ratio = np.mean(told, axis=0) / np.mean(errors, axis=0)
    # the errors of 60 draws have 60 x 17 degrees of freedom (positions): 4.5 %, and three of it
    np.testing.assert_allclose(ratio, 1.0, atol=0.135)
    assert np.sqrt(np.mean(told, axis=0))[1] == pytest.approx(TORQUE / np.sqrt(8), rel=0.15)


@pytest.mark.long
def test_the_noise_of_each_harmonic_is_what_the_periods_say():
    recording, _, _ = clean()
    true, told = averaged(recording).averaging.tau.mean(axis=0), []
    errors = []
    for seed in range(40):
        c = averaged(noisy(recording, np.random.default_rng(seed), coloured=True)).averaging.tau
        told.append(estimate_noise_spectrum(c))
        errors.append(np.abs(c.mean(axis=0) - true) ** 2)
    told, errors = (np.mean(x, axis=(0, 2)) for x in (told, errors))
    bands = [slice(0, 20), slice(20, 60), slice(60, 200)]
    power = [told[band].mean() for band in bands]
    for band, own in zip(bands[:2], power, strict=False):
        assert own == pytest.approx(errors[band].mean(), rel=0.15)
    # a hundredth of the power: there it is what noise jumps by from the end of a period to its
    # start, which neighbours share, so that the mean has less of it than is told
    assert errors[bands[2]].mean() < power[2] < 2.0 * errors[bands[2]].mean()
    assert power[0] > 3 * power[1] > 9 * power[2]  # the noise is coloured
    assert sum_spectrum(told[:, None])[0] == pytest.approx(TORQUE**2 / 8, rel=0.15)


def test_gaps_of_any_length_are_no_hindrance():
    recording = noisy(clean(9.5)[0], np.random.default_rng(0))
    whole = averaged(recording)
    keep = np.r_[0:1700, 2111 : len(recording.q)]  # 3.4 periods, a gap, 5.2
    cut = Recording(
        "gap", RATE, recording.q[keep], recording.tau[keep],
        segments=((0, 1700), (1700, len(keep))),
    )  # fmt: skip
    samples = averaged(cut)
    assert samples.averaging.periods == 8
    # in phase with the longest run, which begins elsewhere
    start = 2111 / RATE / PERIOD % 1.0
    c = whole.averaging.q.mean(axis=0)
    size = samples.averaging.samples
    np.testing.assert_allclose(
        inner(samples, "q"), sum_harmonics(shift_harmonics(c, start), size), atol=4e-4
    )
    assert np.median(samples.averaging.settings()["q_std"]) < 2e-5


def test_a_truncated_last_period_is_left_out_and_told():
    recording, _, _ = clean(5.9)
    samples = averaged(recording)
    assert samples.averaging.periods == 5
    assert samples.averaging.unused == pytest.approx(0.9 * PERIOD, abs=0.01)
    assert "mean of 5 periods of 2.0137 s" in samples.averaging.words
    assert "in no whole period left out" in samples.averaging.words
    assert samples.settings()["averaging"]["periods"] == 5
    # ends at the very last sample
    assert averaged(recording.rows(0, 2518)).averaging.periods == 5
    assert averaged(recording.rows(0, 2517)).averaging.periods == 4


def test_a_warm_up_is_noticed_and_left_out():
    recording, _, _ = clean()
    t = np.arange(len(recording.q)) / RATE
    settling = replace(recording, q=recording.q + 0.02 * np.exp(-t / 0.3)[:, None])
    settling = noisy(settling, np.random.default_rng(0))
    (note,) = averaged(settling).warnings
    assert "first period differs" in note
    assert "warmup = 1" in note
    # what it differs by is not noise
    problem = Problem(toy.arm(2), averaged(settling))
    assert measure_scatter(problem, np.zeros(problem.base.count)) is None
    assert "scatter" not in identify(problem, "wls", doctor=False).estimate.covariance.name
    three = averaged(settling.rows(0, int(3.1 * PERIOD * RATE)))
    assert "first period differs" in three.warnings[0]
    samples = averaged(settling, warmup=1)
    assert not samples.warnings
    assert samples.averaging.periods == 7
    assert "1 at the start" in samples.averaging.words


def test_another_motion_among_the_periods_is_refused():
    recording, _, _ = clean()
    length = round(PERIOD * RATE)
    q = recording.q.copy()
    q[:length] *= np.linspace(0.0, 1.0, length)[:, None]
    with pytest.raises(InputError, match=r"period 1 is another motion .*set warmup = 1"):
        averaged(replace(recording, q=q))
    assert averaged(replace(recording, q=q), warmup=1).averaging.periods == 7
    q = recording.q.copy()
    q[4 * length : 5 * length, 0] += 0.1
    with pytest.raises(InputError, match=r"period 5 is another motion .*cut it with rows"):
        averaged(replace(recording, q=q))


def test_rows_are_those_of_one_period_each_as_often():
    samples = averaged(clean()[0])
    step = samples.filters[0].step
    rows = [np.concatenate(x) for x in zip(*(r.sample for r in rows_of(samples)), strict=True)]
    for own in rows:
        assert len(own) == samples.averaging.samples // step
        assert np.all(np.diff(own) == step)
    every = ROWS["all"](Problem(toy.arm(2), samples))
    assert every.factors.counts.tolist() == [samples.averaging.samples // FINER] * 2
    own = ROWS["noise-model"](
        Problem(toy.arm(2), averaged(noisy(clean()[0], np.random.default_rng(0))))
    )
    assert 0.8 * every.factors.rows < own.factors.rows < every.factors.rows


def rows_of(samples):
    return Problem(toy.arm(2), samples).rows()


def test_drop_below_and_a_median_do_as_without_a_mean():
    recording = noisy(clean()[0], np.random.default_rng(0))
    q = recording.q.copy()
    q[1000, 0] += 1.0
    samples = averaged(replace(recording, q=q), median=5, drop_below=0.3)
    np.testing.assert_allclose(inner(samples, "q"), inner(averaged(recording), "q"), atol=1e-3)
    assert (
        Problem(toy.arm(2), samples).factors.rows
        < Problem(toy.arm(2), averaged(recording)).factors.rows
    )


def test_measured_derivatives_are_averaged_too():
    recording, _, _ = clean()
    _, dq, ddq = motion(np.arange(len(recording.q)) / RATE)
    samples = averaged(replace(recording, dq=2 * dq, ddq=3 * ddq), derivatives="measured")
    t = np.arange(samples.averaging.samples) / samples.rate
    np.testing.assert_allclose(inner(samples, "dq"), 2 * motion(t)[1], atol=1e-8)
    np.testing.assert_allclose(inner(samples, "ddq"), 3 * motion(t)[2], atol=1e-7)
    without = averaged(replace(recording, dq=2 * dq), derivatives="measured")
    np.testing.assert_allclose(inner(without, "ddq"), 2 * motion(t)[2], atol=1e-7)


def test_joints_are_taken_by_name():
    recording = replace(noisy(clean()[0], np.random.default_rng(0)), joints=("a", "b"))
    samples = averaged(recording)
    turned = samples.of_joints(["b", "a"])
    np.testing.assert_array_equal(turned.averaging.tau, samples.averaging.tau[:, :, ::-1])
    np.testing.assert_array_equal(turned.q, samples.q[:, ::-1])


# refusals


@pytest.mark.parametrize("period", [PERIOD, "found"])
def test_one_period_is_refused_with_what_to_try(period):
    with pytest.raises(InputError, match=r"record more|two periods") as caught:
        averaged(clean(1.6)[0], period)
    assert "leave period out" in str(caught.value)


def test_all_periods_as_warm_up_are_refused():
    with pytest.raises(InputError, match=r"1 whole period of 2\.0137 s after 7 of warmup"):
        averaged(clean()[0], warmup=7)
    with pytest.raises(InputError, match="no whole periods"):
        averaged(clean()[0], warmup=9)
    with pytest.raises(InputError, match="warmup = 1000000000 is longer than the log"):
        averaged(clean()[0], warmup=10**9)


def test_what_does_not_repeat_is_refused():
    recording, _ = toy.log(toy.arm(2))
    with pytest.raises(InputError, match="is not periodic"):
        prepare(recording, 5.0, period="found")
    with pytest.raises(InputError, match=r'does not repeat every 2 s .*period = "found"'):
        prepare(recording, 5.0, period=2.0)


def test_a_log_at_rest_is_refused():
    still = Recording("still", RATE, np.ones((2000, 2)), np.ones((2000, 2)))
    for period in (2.0, "found"):
        with pytest.raises(InputError, match="no joint moves"):
            prepare(still, 5.0, period=period)


def test_a_drifting_line_does_not_repeat():
    ramp = np.linspace(0, 1, 2000)[:, None] * [1.0, 2.0]
    with pytest.raises(InputError, match="nothing repeats within half of it"):
        prepare(Recording("ramp", RATE, ramp, ramp), 5.0, period="found")


def test_a_period_that_is_not_the_logs_is_noted():
    samples = averaged(clean()[0], PERIOD * 1.001)
    (note,) = samples.warnings
    assert "repeats every 2.0137" in note
    assert "check rate" in note


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"period": -1.0}, "period"),
        ({"period": "soon"}, "period"),
        ({"period": 1e308}, "period has to be"),
        ({"period": "none", "warmup": 2}, "warmup applies only with period; leave it out"),
        ({"period": 1e-3}, "samples; it is in s"),
        ({"warmup": -1}, "warmup"),
        ({"torque_hz": 0.3}, "too short for a torque filter"),
    ],
)
def test_senseless_options_are_refused(options, words):
    given = {"period": PERIOD, **options}
    with pytest.raises(InputError, match=words):
        prepare(clean()[0], 5.0, **given)


def test_the_covariance_by_scatter_needs_periods():
    recording, robot, _ = clean()
    with pytest.raises(InputError, match="give "):
        identify(Problem(robot, prepare(recording, 5.0)), "wls", covariance="scatter")


# identification


@cache
def drawn(seed, coloured, period, position):
    """The estimate from a noisy copy of a log, averaged or merely filtered."""
    recording, _, _ = clean(friction="viscous-offset")
    log = noisy(recording, np.random.default_rng(seed), coloured, position)
    given = {} if period is None else {"period": period}
    samples = prepare(log, 5.0, position_hz=20.0, **given)
    return identify(Problem.of(viscous(), samples), "wls", doctor=False)


@cache
def viscous():
    """What the draws estimate."""
    return base_parameters(build_idim(clean()[1], "viscous-offset"))


def draws(count, coloured, period=None, position=POSITION):
    """Estimates of so many draws, and the truth."""
    found = [drawn(seed, coloured, period, position) for seed in range(count)]
    return found, viscous().matrix @ clean(friction="viscous-offset")[2]


@pytest.mark.long
@pytest.mark.parametrize("coloured", [False, True])
def test_means_identify_without_bias_and_with_honest_error_bars(coloured):
    fits, truth = draws(20, coloured, period=PERIOD)
    beta = np.array([fit.estimate.beta for fit in fits])
    std = np.array([fit.estimate.covariance.std for fit in fits])
    mean_error = (beta.mean(axis=0) - truth) / (beta.std(axis=0) / np.sqrt(len(fits)))
    assert np.sqrt(np.mean(mean_error**2)) < 1.6
    covered = np.mean(np.abs(beta - truth) < 1.96 * std)
    assert 0.90 < covered < 0.98
    by_scatter = [
        fit for fit in fits if "scatter between 8 periods" in fit.estimate.covariance.name
    ]
    assert len(by_scatter) >= 18  # the test of the fit is one of 1 %
    chances = np.array([fit.estimate.tests[-1].p_value for fit in fits])
    assert np.mean(chances < 0.05) < 0.2


@pytest.mark.long
def test_means_are_no_worse_than_filters():
    means, truth = draws(25, False, period=PERIOD)
    filtered, _ = draws(25, False)
    size = np.std([fit.estimate.beta for fit in filtered], axis=0)
    error = [
        np.sqrt(np.mean([((fit.estimate.beta - truth) / size) ** 2 for fit in fits]))
        for fits in (means, filtered)
    ]
    assert error[0] < 1.05 * error[1]


@pytest.mark.long
def test_means_are_better_where_positions_are_noisy():
    means, truth = draws(12, False, period=PERIOD, position=2e-2)
    filtered, _ = draws(12, False, position=2e-2)
    bias = [
        np.linalg.norm((np.mean([fit.estimate.beta for fit in fits], axis=0) - truth) / truth)
        for fits in (means, filtered)
    ]
    assert bias[0] < 0.5 * bias[1]


def test_weights_are_those_of_the_scatter_where_nothing_else_is_left():
    recording, robot, _ = clean()
    samples = averaged(noisy(recording, np.random.default_rng(2)))
    fit = identify(Problem(robot, samples), "wls", doctor=False)
    assert "sigma by the scatter" in fit.estimate.message
    scatter = measure_scatter(Problem(robot, samples), fit.estimate.beta)
    np.testing.assert_allclose(fit.estimate.sigma, scatter.sigma, rtol=1e-2)
    # the filter passes a share of white noise, and eight periods an eighth
    taps = samples.filters[0].taps
    white = TORQUE * np.sqrt(np.sum(taps**2) * FINER / 8)
    np.testing.assert_allclose(scatter.sigma, white, rtol=0.1)
    assert np.all(scatter.once > 0.7 * len(scatter.logs[0][0]))
    consistent = identify(Problem(robot, samples), doctor=False)
    np.testing.assert_allclose(consistent.estimate.sigma, fit.estimate.sigma, rtol=1e-2)
    assert "scatter between 8 periods" in consistent.estimate.covariance.name


@pytest.mark.long
@pytest.mark.parametrize("method", ["ols", "wls", "pc-idim-ls"])
def test_methods_can_be_told_to_take_the_scatter(method, monkeypatch):
    recording, robot, _ = clean(friction="viscous-offset")
    samples = averaged(noisy(recording, np.random.default_rng(0)))
    problem = Problem(robot, samples, "viscous-offset")

    faces = {"bootstrap": 0} if method == "pc-idim-ls" else {}

    def bars(name):
        own = problem.on(samples)
        return identify(own, method, covariance=name, doctor=False, **faces).estimate.covariance

    scatter = bars("scatter")
    assert "scatter between 8 periods" in scatter.name
    # white errors: both estimate the same
    assert 0.7 < np.median(scatter.std / bars("sandwich").std) < 1.4
    scaled = scatter.matrix / np.outer(scatter.std, scatter.std)
    assert np.linalg.eigvalsh(scaled)[0] > -1e-9
    monkeypatch.setattr("dynident.regression.rows.CHUNK", 900)
    monkeypatch.setattr("dynident.regression.rows.FEW", 1)
    monkeypatch.setattr("dynident.regression.rows.KEEP_BYTES", 0)
    np.testing.assert_allclose(bars("scatter").std, scatter.std, rtol=1e-6)


@pytest.mark.long
def test_the_bootstrap_redraws_the_scatter():
    """Of an equality alone, which is linear, it is the covariance on the face."""
    recording, robot, _ = clean(friction="viscous-offset")
    samples = averaged(noisy(recording, np.random.default_rng(0)))

    def bars(samples, name, replicates):
        return identify(
            Problem(robot, samples, "viscous-offset"), "pc-idim-ls", covariance=name,
            constraints=[Fixed("fv1", 2.0)], bootstrap=replicates, doctor=False,
        ).estimate.covariance  # fmt: skip

    for name in ("scatter", None):
        found, face = bars(samples, name, 400), bars(samples, name, 0)
        assert "bootstrap" in found.name
        assert found.name.endswith("scatter between 8 periods")
        free = face.std > 1e-6
        np.testing.assert_allclose(found.std[free], face.std[free], rtol=0.15)
    with pytest.raises(InputError, match="covariance 'scatter' is that of whole logs averaged"):
        bars(prepare(recording, 5.0), "scatter", 60)


def test_an_error_of_the_model_is_made_visible():
    recording, robot, _ = clean()
    samples = averaged(noisy(recording, np.random.default_rng(0)))
    fit = identify(Problem(robot, samples, "viscous"), "wls", doctor=False)
    test = fit.estimate.tests[-1]
    assert test.rejected
    assert "scatter" not in fit.estimate.covariance.name
    assert any("the model, and not noise" in warning for warning in fit.warnings)
    assert "noise between periods" in fit.summary()
    problem = Problem(robot, samples)
    right = identify(problem, "wls", doctor=False)
    found = run_lack_of_fit_test(
        problem,
        right.estimate.beta,
        right.estimate.sigma,
        measure_scatter(problem, right.estimate.beta),
    )
    assert not found.rejected
    np.testing.assert_allclose(found.ratio, 1.0, atol=0.25)


def test_logs_of_different_periods_are_fitted_together():
    robot = toy.arm(2)
    rng = np.random.default_rng(0)
    logs = [
        averaged(noisy(clean(6.3, period, seed)[0], rng), "found")
        for period, seed in ((PERIOD, 1), (1.618, 5))
    ]
    assert [round(log.averaging.period, 3) for log in logs] == [2.014, 1.618]
    fit = identify(Problem(robot, logs), "wls", doctor=False)
    assert "scatter between 6, 6 periods" in fit.estimate.covariance.name
    _, _, theta = clean()
    truth = fit.base.matrix @ theta
    assert np.mean(((fit.estimate.beta - truth) / fit.estimate.covariance.std) ** 2) < 2.5
    # beside a log that is merely filtered, sigma is that of the residuals
    mixed = Problem(robot, [logs[0], prepare(noisy(clean()[0], rng), 5.0)])
    assert "scatter" not in identify(mixed, "wls", doctor=False).estimate.covariance.name


def test_simulated_motion_has_no_scatter_of_its_own():
    recording, robot, theta = clean()
    samples = averaged(noisy(recording, np.random.default_rng(0)))
    problem = Problem(robot, samples)
    beta = problem.base.matrix @ theta
    still = problem.along([(samples.q, samples.dq, samples.ddq)])
    own, simulated = measure_scatter(problem, beta), measure_scatter(still, beta)
    np.testing.assert_allclose(simulated.sigma, own.sigma, rtol=0.2)
    q = samples.averaging.along(samples.q, samples.dq, samples.ddq).q
    assert np.ptp(q, axis=0).max() == 0.0


def test_a_method_that_simulates_takes_means_and_their_references():
    recording, robot, _ = clean()
    log = replace(noisy(recording, np.random.default_rng(0)), qref=recording.q)
    problem = Problem(robot, averaged(log))
    fit = identify(
        problem, "idim-iv", simulation=Simulation(pd(kp=[900.0] * 2, kd=[60.0] * 2)), doctor=False
    )
    assert fit.estimate.tests[-1].null.startswith("the errors are the noise")


def test_another_recording_is_prepared_without_a_mean():
    recording, robot, _ = clean()
    fit = identify(Problem(robot, averaged(recording)), "wls", doctor=False)
    other, _ = toy.log(robot, 6.0)
    assert fit.prepare(other).averaging is None
    fitted, _ = validate(fit, other)
    assert fitted.overall_percent < 5.0


# the study

URDF = "docs/files/arm.urdf"


@pytest.fixture
def study(tmp_path):
    """A study of a periodic log and one that is not, and the robot's file."""
    from pathlib import Path

    from dynident.robot import load_robot

    source = Path(__file__).parents[1] / URDF
    (tmp_path / "arm.urdf").write_bytes(source.read_bytes())
    robot = load_robot(tmp_path / "arm.urdf")
    idim = build_idim(robot)
    theta = idim.nominal.copy()
    theta[idim.inertial :] = toy.true_parameters(idim, robot.nominal)[idim.inertial :]
    rng = np.random.default_rng(0)
    t = np.arange(int(6.2 * PERIOD * RATE)) / RATE
    names = robot.joint_names
    header = ["time", *(f"q_{n}" for n in names), *(f"tau_{n}" for n in names)]
    for name, moved in (
        ("periodic", motion(t, robot.n)),
        ("other", toy.motion(robot.n, 8.0, 3, RATE)),
    ):
        tau = idim.torque(theta, *moved)
        tau += 0.05 * rng.normal(size=tau.shape)
        write_table(tmp_path / f"{name}.csv", header, np.arange(len(tau)) / RATE, moved[0], tau)
    text = """[robot]
file = "arm.urdf"
[[log]]
files = "periodic.csv"
[[log]]
files = "other.csv"
use = "validate"
period = "none"
[prepare]
bandwidth = 5.0
position_hz = 6.0
period = "found"
"""
    path = tmp_path / "study.toml"
    path.write_text(text)
    return path


@pytest.mark.long
def test_a_study_averages_and_a_log_may_say_otherwise(study, capsys):
    out = study.parent / "out"
    assert run(["identify", str(study), "--no-report", "-o", str(out)]) == 0
    assert "mean of 6 periods of 2.0137" in " ".join(capsys.readouterr().out.split())
    found = json.loads((out / "result.json").read_text())
    (log,), (held,) = found["settings"]["logs"], found["settings"]["validation"]
    assert log["averaging"]["period_s"] == pytest.approx(PERIOD, rel=1e-5)
    assert log["averaging"]["periods"] == 6
    assert held["averaging"] is None
    assert run(["validate", str(out / "result.json"), str(study.parent / "other.csv")]) == 0


def test_a_warm_up_is_of_logs_that_repeat_alone(study):
    text = study.read_text()
    study.write_text(text.replace('"found"', '"found"\nwarmup = 1'))
    found = read_study(study)
    mean, other = read_study_logs(found, load_study_robot(found))
    assert (mean.averaging.warmup, other.averaging) == (1, None)
    study.write_text(text.replace('"none"', '"none"\nwarmup = 1'))
    found = read_study(study)
    with pytest.raises(
        InputError, match=r"^other\.csv: warmup applies only with period; leave it out$"
    ):
        read_study_logs(found, load_study_robot(found))


def test_a_log_that_does_not_repeat_is_refused_in_one_line(study, capsys):
    study.write_text(study.read_text().replace('period = "none"\n', ""))
    assert run(["identify", str(study), "-o", str(study.parent / "out")]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert "other.csv: is not periodic" in error
    assert not (study.parent / "out").exists()
