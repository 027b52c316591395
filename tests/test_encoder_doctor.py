"""Damaged logs of encoders alone: what the verdict says of their size, and what is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from test_encoder import KD, KP, RATE, log_of, twin

import dynident as di
from dynident.control.controller import pd
from dynident.fit.followers import Follower, fit_followers, measure_followers
from dynident.fit.reasons import list_astray_reasons, list_grown_reasons
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording


def follow(target: np.ndarray, follower: Follower) -> np.ndarray:
    """Positions of a lag of second order, by small steps."""
    w, z, fine = follower.pace, follower.damping, 20
    late = np.interp(np.arange(len(target)) - follower.delay * RATE, np.arange(len(target)), target)
    q, dq, found = late[0], 0.0, []
    for at in late:
        found.append(q)
        for _ in range(fine):
            dq += (w**2 * (at - q) - 2.0 * z * w * dq) / (fine * RATE)
            q += dq / (fine * RATE)
    return np.array(found)


def lagging(follower: Follower, scatter: float = 0.0) -> Samples:
    t = np.arange(1200) / RATE
    target = 0.4 * np.column_stack([np.sin(3.0 * t), np.sign(np.sin(2.0 * t))])
    q = np.column_stack([follow(own, follower) for own in target.T])
    q += 0.1 + scatter * np.random.default_rng(0).normal(size=q.shape)
    log = Recording("lag", RATE, q, np.zeros_like(q), qref=target, torque="none")
    return di.prepare(log, bandwidth=10.0)


def test_a_lag_that_positions_have_is_found():
    true = Follower(15.0, 0.7, 0.02)
    log = lagging(true, scatter=1e-4)
    lags = fit_followers([log])
    for lag in lags:
        np.testing.assert_allclose(
            [lag.pace, lag.damping, lag.delay], [15.0, 0.7, 0.02], rtol=0.05, atol=2e-3
        )
    assert np.all(measure_followers(lags, log) < 2e-3)


def test_errors_are_held_against_the_motion_and_against_a_lag():
    log = lagging(Follower(15.0, 0.7, 0.02), scatter=4e-3)
    lags, names = fit_followers([log]), ("a", "b")
    size, plain = log.measured.std(axis=0), measure_followers(lags, log)

    def states(rms: np.ndarray) -> list[tuple[str, str]]:
        return [(r.state, r.words) for r in list_astray_reasons(log, names, rms, lags)]

    assert states(0.9 * plain) == []
    assert states(np.array([0.001, 0.002]) * size) == []
    (lost,) = states(np.array([0.6, 0.3]) * size)
    assert lost[0] == "refuted"
    assert "60 % of its motion (likewise b)" in lost[1]
    assert [state for state, _ in states(np.array([0.3, 0.0]) * size)] == ["doubtful"]
    worse = np.array([0.0, 3.0]) * plain
    assert np.all(worse < 0.2 * size)
    ((state, words),) = states(worse)
    assert state == "refuted"
    assert words.startswith("b: ")
    assert "3 times the error of a lag" in words
    assert [state for state, _ in states(worse / 2.0)] == ["doubtful"]
    assert list_grown_reasons(log, names, 0.05 * size, 0.02 * size) == []
    (grown,) = list_grown_reasons(log, names, np.array([0.05, 0.02]) * size, 0.01 * size)
    assert grown.words.startswith("a: ")


def damaged(log: Recording, change: object) -> Recording:
    q = log.q.copy()
    change(q)
    return replace(log, q=q)


def identify(robot: di.Robot, log: Recording, held: Recording | None = None, **more: object):
    problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
    beside = [] if held is None else [di.prepare(held, bandwidth=10.0)]
    simulation = di.Simulation(pd(KP, KD), width=0.03)
    return di.identify(problem, "cloe", validation=beside, simulation=simulation, **more)


def test_a_flipped_encoder_is_refuted_by_the_size_of_its_errors(tmp_path):
    robot, loop, theta = twin(tmp_path, 6.0)
    log = log_of(loop, theta)

    def flip(q: np.ndarray) -> None:
        q[:, 1] *= -1.0

    found = identify(robot, damaged(log, flip), doctor=False)
    assert found.verdict.state == "refuted"
    assert "of its motion" in found.verdict.words
    assert found.findings == ()


def test_a_push_is_told_by_one_stretch_of_a_log(tmp_path):
    robot, loop, theta = twin(tmp_path, 6.0)
    log = log_of(loop, theta)

    def push(q: np.ndarray) -> None:
        q[600:700, 1] += 0.1 * np.sin(np.pi * np.arange(100) / 100) ** 2

    assert "pushed" not in identify(robot, log).verdict.words
    found = identify(robot, damaged(log, push), doctor=False)
    assert found.verdict.state != "trusted"
    assert "j2: simulated" in found.verdict.words
    assert "was it pushed" in found.verdict.words
