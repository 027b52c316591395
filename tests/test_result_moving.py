"""Errors of moving samples, told apart from those of all."""

from __future__ import annotations

import json

import numpy as np
import pytest
import toy

import dynident as di
from dynident.fit.json import serialise_result
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.report.sections import render_result_page

RATE = 500.0


@pytest.fixture(scope="module")
def fits():
    """A motion with a pause in which brakes hold another torque; scored both ways."""
    robot = toy.arm(2)
    idim = Problem(robot, prepare(toy.log(robot, seconds=5.0)[0], bandwidth=10.0)).idim
    theta = idim.join(robot.nominal, np.array([0.3, 2.0, 3.0, 0.5, 0.3, 1.5, 2.0, 0.2]))
    q = toy.motion(2, 24.0, 3, RATE)[0]
    time = np.arange(len(q))[:, None] / RATE
    stop = np.clip((20.0 - time) / 2.0, 0.0, 1.0)  # smoothly to rest, at 20 s
    q = q[:1] + (q - q[:1]) * stop**4 * (35.0 - 84.0 * stop + 70.0 * stop**2 - 20.0 * stop**3)
    dq = np.gradient(q, 1.0 / RATE, axis=0)
    tau = idim.torque(theta, q, dq, np.gradient(dq, 1.0 / RATE, axis=0))
    tau[time[:, 0] > 21.0, 0] += 40.0
    tau += 0.2 * np.random.default_rng(0).normal(size=tau.shape)
    log = Recording("log", RATE, q, tau)
    samples = prepare(log, bandwidth=15.0, drop_below=0.05)
    problem = Problem(robot, samples)
    return {
        score: di.identify(problem, "wls", doctor=False, score=score, validation=[samples])
        for score in ("all", "moving")
    }


def test_standstill_is_told_apart_in_every_figure(fits):
    plain, apart = fits["all"], fits["moving"]
    assert [f.rows for f in plain.identification] == ["fitted", "all samples"]
    kinds = ["fitted", "all samples", "moving samples"]
    (held_out,) = apart.validation
    for figures in (apart.identification, apart.nominal, held_out.entries, held_out.nominal):
        assert [f.rows for f in figures] == kinds
    _, every, moving = apart.identification
    assert every.joints[0].relative_percent == plain.identification[1].joints[0].relative_percent
    assert every.joints[0].relative_percent > 30.0
    assert moving.joints[0].relative_percent < 3.0
    assert moving.lowpass_hz == every.lowpass_hz
    assert [f.rows for f in di.validate(apart, apart.samples[0])] == kinds
    assert len(di.validate(plain, plain.samples[0])) == 2


def test_moving_samples_are_those_of_the_log(fits):
    """Against the errors of the samples themselves, chosen by hand."""
    fit = fits["moving"]
    (log,) = fit.samples
    series, _ = fit.series(points=len(log.q))
    speed = np.abs(log.dq)
    inner = slice(100, len(log.q) - 100)
    for j, joint in enumerate(fit.identification[2].joints):
        fast = speed[inner, j] > 0.05
        error = (series.measured - series.predicted)[inner, j][fast]
        share = 100.0 * np.linalg.norm(error) / np.linalg.norm(series.measured[inner, j][fast])
        assert joint.relative_percent == pytest.approx(share, rel=0.1)


@pytest.mark.long
def test_text_page_and_json_have_them(fits):
    fit = fits["moving"]
    assert "moving samples below 30 Hz" in fit.summary(full=True)
    assert "moving samples" not in fits["all"].summary(full=True)
    assert "moving samples below 30 Hz" in render_result_page(fit, fit.series())
    document = json.loads(json.dumps(serialise_result(fit)))
    assert document["settings"]["score"] == "moving"
    assert [f["rows"] for f in document["fit"]["identification"]][2] == "moving samples"
    assert set(document["fit"]) == {"torque", "identification", "nominal", "validation"}


def test_without_a_threshold_a_hundredth_of_the_largest_speed_counts():
    robot = toy.arm(2)
    samples = prepare(toy.log(robot, seconds=10.0)[0], bandwidth=10.0)
    fit = di.identify(Problem(robot, samples), "wls", doctor=False, score="moving")
    rates = [figure.joints[0].rmse for figure in fit.identification[1:]]
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
    assert rates[0] != rates[1]
