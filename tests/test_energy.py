"""The energy model: rows against sums written out, its error bars, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy
from springs import elastic_arm, twin

from dynident.core.errors import InputError
from dynident.dynamics.idim import build_idim
from dynident.estimators.energy import energy
from dynident.estimators.least_squares import wls
from dynident.recording.prepare import prepare
from dynident.regression.energy import build_interval_filter, fit_variance, stream_energy_rows
from dynident.regression.problem import Problem


def test_rows_are_differences_of_filtered_energies():
    """Of a pendulum: ``Izz w^2 / 2``, ``fv`` times the integral of ``w^2``, and so on."""
    recording, _ = toy.log(toy.arm(1), noise=1.0)
    problem = Problem(toy.arm(1), toy.on_its_motion(recording))
    w = recording.dq[:, 0]
    log = replace(problem.samples[0], filters=(build_interval_filter(problem.samples[0]),))
    powers = {
        "fv1": w**2,
        "fc1": np.abs(w),
        "off1": w,
        "tau": w * recording.tau[:, 0],
        "turned": w**2,
    }
    sums = {
        name: np.concatenate([[0.0], np.cumsum(0.5 * (p[1:] + p[:-1]))]) / toy.RATE
        for name, p in powers.items()
    }
    sums["Izz1R"] = 0.5 * w**2
    taps, step = problem.samples[0].filters[0].taps, log.filters[0].step
    X, y, sample, turned = (
        np.concatenate(parts)
        for parts in zip(
            *((r.X[0], r.y[0], r.sample[0], t) for r, t in stream_energy_rows(problem.base, log)),
            strict=True,
        )
    )
    np.testing.assert_array_equal(np.diff(sample), step)
    named = dict(zip(problem.base.names, X.T, strict=True))
    for name, values in sums.items():
        smooth = np.convolve(values, taps, "valid")  # of the sample at the middle of the taps
        middle = sample - len(taps) // 2
        expected = smooth[middle + 1 + step // 2] - smooth[middle - step // 2]
        ours = named | {"tau": y, "turned": turned[:, 0]}
        np.testing.assert_allclose(ours[name], expected, atol=1e-9 * np.abs(values).max())


def test_intervals_are_weighted_by_the_noise_of_their_work():
    """Of white noise of the torques errors are half of those without weights."""
    robot = toy.arm(2)
    clean, theta = toy.log(robot, seconds=8.0)
    noise, errors, stated = np.array([0.1, 1.0]), [], []
    for run in range(12):
        tau = clean.tau + np.random.default_rng(run).normal(size=clean.tau.shape) * noise
        problem = Problem(robot, toy.on_its_motion(replace(clean, tau=tau), 10.0))
        found = energy(problem)
        errors.append(found.beta - problem.base.matrix @ theta)
        stated.append(found.covariance.std)
    rms = np.sqrt(np.mean(np.square(errors), axis=0))
    named = dict(zip(problem.base.names, rms, strict=True))
    # without weights 0.069 and 0.095 Nm
    assert named["off1"] < 0.055
    assert named["off2"] < 0.065
    assert 0.8 < np.sqrt(np.mean(np.square(np.array(errors) / stated))) < 1.2


@pytest.mark.parametrize(("level", "slope"), [(1.0, 0.0), (0.0, 1.0), (0.5, 2.0)])
def test_a_variance_grows_as_squares_of_errors_do(level, slope):
    rng = np.random.default_rng(0)
    s = rng.uniform(0.1, 2.0, 20_000)
    truth = level + slope * s
    found = fit_variance(truth * rng.normal(size=len(s)) ** 2, s)
    np.testing.assert_allclose(found, truth, rtol=0.1)


def test_error_bars_cover_and_are_longer_than_those_of_least_squares():
    robot = toy.arm(2)
    clean, theta = toy.log(robot, seconds=12.0)
    standardised, ratios = [], []
    for run in range(6):
        tau = clean.tau + np.random.default_rng(run).normal(size=clean.tau.shape) * 2.0
        problem = Problem(robot, toy.on_its_motion(replace(clean, tau=tau), 10.0))
        found, least = energy(problem), wls(problem).covariance
        standardised.append((found.beta - problem.base.matrix @ theta) / found.covariance.std)
        ratios.append(found.covariance.std / least.std)
    assert 0.8 < np.sqrt(np.mean(np.square(standardised))) < 1.3
    assert np.median(ratios) > 1.5


def test_what_has_no_energy_of_its_own_is_refused():
    robot = toy.arm(1)
    recording, _ = toy.log(robot)
    loaded = Problem(robot, toy.on_its_motion(recording), "load")
    with pytest.raises(InputError, match="depends on loads, which need accelerations"):
        energy(loaded)
    wave = np.sin(np.pi * np.arange(12000)[:, None] / toy.RATE)
    repeated = replace(recording, q=wave, tau=wave, dq=None, ddq=None)
    averaged = Problem(robot, prepare(repeated, 5.0, period=2.0))
    with pytest.raises(InputError, match="toy log: a mean of periods"):
        energy(averaged)
    elastic = elastic_arm([1])
    bent = Problem(elastic, prepare(twin(build_idim(elastic))[0], 6.0))
    with pytest.raises(InputError, match="energy has no rows of the link encoder at link_joint_1"):
        energy(bent)
