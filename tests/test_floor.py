"""What of the torque repeats with the motion, and what does not: the floor of any model's error."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import toy
from test_truth import lwr4
from thin import long

import dynident as di
from dynident.api import identify
from dynident.core.arrays import Array
from dynident.dynamics.idim import build_idim
from dynident.filters.filters import filter_zero_phase
from dynident.fit.floor import UNKNOWN, Floor, measure_floor
from dynident.fit.json import serialise_result
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem

RATE, LOWPASS = 250.0, 5.0
SIGMA = np.array([0.6, 0.4, 0.3])
ROBOT = toy.arm(3)
IDIM = build_idim(ROBOT)
THETA = toy.true_parameters(IDIM, ROBOT.nominal)
FEW = 0.12
"""Sampling error of a standard deviation below 5 Hz over 20 s, four times its own."""


def record(
    name: str,
    motion: tuple[Array, Array, Array],
    seed: int,
    encoder: float = 0.0,
    extra: Array | float = 0.0,
    size: float = 1.0,
) -> tuple[Recording, Array]:
    """A log with white noise in its torques and positions, and the former."""
    rng = np.random.default_rng(seed)
    q = motion[0]
    noise = rng.normal(size=q.shape) * SIGMA * size
    tau = IDIM.torque(THETA, *motion) + noise + extra
    return Recording(name, RATE, q + rng.normal(size=q.shape) * encoder, tau), noise


@cache
def wave(seconds: float = 22.0, seed: int = 0, rate: float = RATE) -> tuple[Array, Array, Array]:
    return toy.motion(3, seconds, seed, rate)


def cut(motion: tuple[Array, Array, Array], start: int, stop: int, step: int = 1):
    q, dq, ddq = (x[start:stop:step] for x in motion)
    return q, dq, ddq


def floor_of(*recordings: Recording, theta: Array = THETA) -> tuple[Floor, ...]:
    logs = Problem(ROBOT, [prepare(each, 5.0) for each in recordings]).samples
    return measure_floor(IDIM, theta, logs, LOWPASS)[0]


def expected_percent(noises: list[Array], tau: Array) -> Array:
    """Size of some logs' own low-passed noise, as a share of a torque."""
    mean = np.mean([np.mean(filter_zero_phase(x, LOWPASS, RATE) ** 2, axis=0) for x in noises], 0)
    return 100.0 * np.sqrt(mean / np.mean(filter_zero_phase(tau, LOWPASS, RATE) ** 2, axis=0))


def percents(floor: Floor) -> Array:
    return np.array([joint.relative_percent for joint in floor.joints])


@pytest.mark.parametrize(("lag", "encoder"), [(0, 0.0), (317, 0.0), (0, 2e-5), (317, 2e-5)])
def test_the_floor_of_a_motion_made_twice_is_the_noise(lag, encoder):
    one, noise_1 = record("one", cut(wave(), lag, 5000 + lag), 1, encoder)
    two, noise_2 = record("two", cut(wave(), 0, 5400), 2, encoder)
    first, second = floor_of(one, two)
    assert (first.log, first.against, first.what) == ("one", "two", "logs")
    assert (second.log, second.against) == ("two", "one")
    assert first.lag_s == pytest.approx(lag / RATE, abs=2e-4)
    expected = expected_percent([noise_1, noise_2], one.tau)
    assert percents(first) == pytest.approx(expected, rel=FEW)
    assert first.repeating_percent < 0.3 * first.overall_percent


def test_a_lag_between_samples_and_another_rate_are_found():
    fine = wave(22.0, 0, 10.0 * RATE)
    one, noise_1 = record("one", cut(fine, 0, 50000, 10), 1)
    two, noise_2 = record("two", cut(fine, 1003, 51003, 10), 2)
    first, _ = floor_of(one, two)
    assert first.lag_s == pytest.approx(-0.4012, abs=1e-4)
    expected = expected_percent([noise_1, noise_2], one.tau)
    assert percents(first) == pytest.approx(expected, rel=FEW)
    slow = Recording("two", 0.5 * RATE, two.q[::2], two.tau[::2])
    first, _ = floor_of(one, slow)
    assert first.lag_s == pytest.approx(-0.4012, abs=1e-4)


def test_a_wrong_model_has_the_same_floor():
    """What the motions differ by is small, and so is what the model has to say of it."""
    logs = [record(name, wave(), seed)[0] for seed, name in enumerate(("one", "two"))]
    right, wrong = floor_of(*logs)[0], floor_of(*logs, theta=0.7 * THETA)[0]
    assert percents(wrong) == pytest.approx(percents(right), rel=1e-3)
    assert wrong.repeating_percent == pytest.approx(30.0, rel=0.02)


def test_a_motion_that_is_made_a_little_differently_is_corrected_by_the_model():
    q, dq, ddq = wave()
    less = 0.996
    one, noise_1 = record("one", (q, dq, ddq), 1, size=0.25)
    two, noise_2 = record("two", (less * q, less * dq, less * ddq), 2, size=0.25)
    expected = expected_percent([noise_1, noise_2], one.tau)
    first, _ = floor_of(one, two)
    assert percents(first) == pytest.approx(expected, rel=FEW)
    assert np.max(percents(floor_of(one, two, theta=0.0 * THETA)[0]) / expected) > 1.0 + FEW


def test_other_motions_and_the_same_record_have_no_floor():
    one, two = (record(str(seed), wave(seed=seed), seed)[0] for seed in (0, 5))
    assert floor_of(one, two) == ()
    assert floor_of(one) == ()
    assert floor_of(one, replace(one, name="again")) == ()
    part = Recording("part", RATE, one.q[500:5000], one.tau[500:5000])
    assert floor_of(one, part) == ()
    long, _ = record("long", wave(44.0), 4)
    short, _ = record("short", cut(wave(44.0), 4000, 6500), 5)
    assert [floor.log for floor in floor_of(long, short)] == ["short"]


def repeat(count: int) -> tuple[Array, Array, Array]:
    """A motion of 4 s, again and again."""
    t = np.arange(int(4.0 * count * RATE)) / RATE
    w = 2.0 * np.pi / 4.0 * np.arange(1, 6)
    rng = np.random.default_rng(3)
    a, phase = rng.uniform(0.1, 0.3, (5, 3)), rng.uniform(0.0, 6.0, (5, 3))
    angle = (t[:, None] * w)[:, :, None] + phase
    w = w[:, None]
    waves = a * np.sin(angle), a * w * np.cos(angle), -a * w**2 * np.sin(angle)
    q, dq, ddq = (x.sum(axis=1) for x in waves)
    return q, dq, ddq


def test_periods_of_a_log_show_the_noise():
    log, noise = record("log", repeat(6), 1)
    (found,) = floor_of(log)
    assert (found.log, found.against, found.what) == ("log", "log", "periods")
    assert found.lag_s == pytest.approx(4.0, abs=1e-4)
    assert percents(found) == pytest.approx(expected_percent([noise], log.tau), rel=FEW)


def test_the_mean_of_periods_has_that_of_the_mean():
    log, _ = record("log", repeat(8), 1)
    whole, mean = (
        measure_floor(IDIM, THETA, Problem(ROBOT, prepare(log, 5.0, **how)).samples, LOWPASS)[0][0]
        for how in ({}, {"period": "found"})
    )
    assert percents(mean) == pytest.approx(percents(whole) / np.sqrt(8.0), rel=FEW)
    assert (mean.what, mean.lag_s) == ("periods", pytest.approx(4.0, abs=1e-4))


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        long(lambda q, dq, load: 6.0 * (q - q.mean()) ** 3, "the position"),
        (lambda q, dq, load: np.linspace(0.0, 8.0, len(q)), "the time since the start"),
        (lambda q, dq, load: 0.3 * np.abs(load) * np.sign(dq), "the load"),
        long(lambda q, dq, load: -2.0 * np.sign(dq) * np.abs(dq) ** 1.5, "the speed"),
    ],
)
def test_a_model_that_lacks_something_is_told_what(extra, named):
    """Two logs of a motion with something that no column of the model is, and one of another."""
    bodies, joint, logs = THETA.copy(), 1, []
    bodies[IDIM.inertial :] = 0.0
    for name, seed in (("one", 0), ("two", 0), ("three", 3)):
        q, dq, ddq = wave(seed=seed)
        added, load = np.zeros_like(q), IDIM.torque(bodies, q, dq, ddq)
        added[:, joint] = extra(q[:, joint], dq[:, joint], load[:, joint])
        logs.append(prepare(record(name, (q, dq, ddq), len(logs), extra=added)[0], 5.0))
    problem = Problem(ROBOT, logs[2])
    fit = identify(problem, validation=logs[:2], lowpass_hz=LOWPASS, bootstrap=0, doctor=False)
    (words,) = [each for each in fit.warnings if "is incomplete" in each]
    assert "joint_2, where" in words, words
    assert f"where {named} explains" in words
    assert "lacks" not in fit.verdict.words


@pytest.mark.long
def test_a_whole_model_lacks_nothing_and_is_read_back(tmp_path):
    logs = [prepare(record(f"log {k}", wave(), k)[0], 5.0) for k in range(2)]
    fit = identify(Problem(ROBOT, logs[0]), validation=logs[1:], lowpass_hz=LOWPASS, doctor=False)
    assert not any("is incomplete" in each for each in fit.warnings)
    assert [floor.log for floor in fit.floor] == ["log 0", "log 1"]
    assert "does not repeat" in " ".join(fit.summary().split())
    assert "% does not repeat" in fit.render_page().decode()
    fit.save(tmp_path, report=False)
    assert di.read_result(tmp_path / "result.json").floor == fit.floor
    (first, _) = serialise_result(fit)["floor"]
    assert first["overall_percent"] == fit.floor[0].overall_percent
    assert [joint["name"] for joint in first["joints"]] == list(ROBOT.joint_names)
    alone = identify(Problem(ROBOT, logs[0]), doctor=False)
    assert alone.floor == ()
    assert UNKNOWN in " ".join(alone.summary(full=True).split())
    assert UNKNOWN not in " ".join(alone.summary().split())


def test_a_lwr4_that_makes_a_motion_twice_repeats_it_to_1_2_percent(measured):
    fit = lwr4(measured, (1, 2), 3, "pc-idim-ls")
    found = {floor.log: floor for floor in fit.floor}
    first, second = found["measurements_1.npz"], found["measurements_2.npz"]
    assert (first.against, second.against) == (second.log, first.log)
    assert first.overall_percent == pytest.approx(1.16, abs=0.05)
    assert second.overall_percent == pytest.approx(1.16, abs=0.05)
