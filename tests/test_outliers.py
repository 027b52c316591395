"""Outliers of the torque: told by medians, and left out of rows as though they had no equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy

from dynident.api import identify
from dynident.core.errors import InputError
from dynident.filters.outliers import find_outliers
from dynident.recording.prepare import prepare
from dynident.regression.problem import Problem

SPIKES = (700, 701, 702, 1500, 2222, 3100, 3101, 4444)


def spoiled(noise=0.0):
    """A log with spikes in the torque of its first joint, and what is behind it."""
    recording, theta = toy.log(toy.arm(2), seconds=6.0, noise=noise)
    tau = recording.tau.copy()
    tau[SPIKES, 0] += 300.0
    return replace(recording, tau=tau), theta


def largest_error(samples, theta, rows=None):
    problem = Problem(toy.arm(2), samples)
    options = {} if rows is None else {"rows": rows}
    found = identify(problem, "ols", doctor=False, **options)
    truth = problem.base.matrix @ theta
    return np.abs(found.estimate.beta - truth).max(), found


@pytest.mark.parametrize("rows", [None, "all"])
def test_rows_without_outliers_are_exact(rows):
    recording, theta = spoiled()
    samples = toy.on_its_motion(recording, torque_median=11)
    assert tuple(np.flatnonzero(samples.left_out[:, 0])) == SPIKES
    assert not samples.left_out[:, 1].any()
    assert largest_error(samples, theta, rows)[0] < 1e-8
    # medians alone, which no filter makes of the regressor, are not
    assert largest_error(replace(samples, left_out=None), theta, rows)[0] > 1e-6
    assert largest_error(toy.on_its_motion(recording), theta, rows)[0] > 0.1


def test_how_many_were_left_out_is_said():
    recording, theta = spoiled(noise=0.3)
    samples = prepare(recording, 10.0, torque_median=11)
    assert samples.settings()["torque_outliers"] == [len(SPIKES), 0]
    _, found = largest_error(samples, theta)
    told = f"toy log: torque outliers, which do not count: {len(SPIKES)} of joint 1"
    assert told in found.warnings
    again = found.prepare(recording)
    np.testing.assert_array_equal(again.left_out, samples.left_out)


def test_clean_torques_lose_nothing():
    recording, _ = toy.log(toy.arm(2), seconds=6.0, noise=0.3)
    samples = prepare(recording, 10.0, torque_median=11)
    assert samples.left_out is None
    assert samples.tau is recording.tau


def test_steps_and_stairs_are_no_outliers():
    step = np.repeat([0.0, 1.0, -1.0], 100)
    stairs = np.round(np.sin(np.linspace(0.0, 20.0, 300)), 1)
    assert not find_outliers(np.column_stack([step, stairs]), 9)[0].any()


@pytest.mark.parametrize("window", [4, 10**5 + 1])
def test_windows_that_are_none_are_refused(window):
    with pytest.raises(InputError, match="torque_median"):
        prepare(spoiled()[0], 10.0, torque_median=window)
