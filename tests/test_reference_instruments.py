"""Instruments of the logged reference: robots that float, contacts, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import toy
from floating import solo, waves

import dynident as di
from dynident.consistency.bootstrap import Bootstrap
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.estimators.instrumental import LEAST_F, filter_reference_motion
from dynident.methods import ESTIMATORS
from dynident.recording.recording import Recording
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem
from dynident.robot.rotations import convert_quaternions
from dynident.simulation.afloat import turn_quaternions

NOISE = 5e-4
"""White, of all joints' positions [rad]."""
RUNS = 2


@cache
def walked(kind: str, seconds: float = 2.0) -> Recording:
    """Solo12 beside its joints' reference, which they follow as well as they do."""
    log = solo(seconds, 250.0).recording
    error, speed, _ = waves(np.random.default_rng(1), *log.q.shape, log.rate, 0.01)
    log = replace(log, qref=log.q + error, dqref=log.dq + speed)
    if kind == "full":
        return log
    feet = dict.fromkeys(log.wrenches, np.ones(len(log.q), dtype=bool))
    return replace(log, wrenches={}, equations="null-space", touching=feet)


def problem(log: Recording, **options) -> tuple[Problem, Array]:
    made = solo(0.1, 250.0)
    rows = Problem(made.robot, di.prepare(log, **options), "viscous")
    return rows, rows.base.matrix @ made.theta


def noisy(kind: str, run: int, seconds: float = 2.0) -> tuple[Problem, Array]:
    """Positions alone are noisy: their derivatives are the estimator's own."""
    log = walked(kind, seconds)
    q = log.q + NOISE * np.random.default_rng([7, run]).normal(size=log.q.shape)
    return problem(replace(log, q=q, dq=None, ddq=None), bandwidth=10.0, position_hz=50.0)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["full", "null-space"])
def test_a_floating_robot_is_recovered_without_noise(kind):
    rows, truth = problem(walked(kind), bandwidth=25.0, position_hz=1e4, derivatives="measured")
    found = ESTIMATORS["ref-iv"](rows)
    np.testing.assert_allclose(found.beta, truth, atol=1e-6 * np.abs(truth).max())
    assert "the base's motion as measured: bias by its noise remains" in found.message
    (test,) = found.tests  # Pi is not the identity, and nobody asks whether it is
    assert test.null == "X is free of the error: least squares is consistent"
    assert not found.warnings


@pytest.mark.long
@pytest.mark.parametrize(("kind", "seconds"), [("full", 2.0), ("null-space", 4.0)])
def test_noise_of_the_joints_positions_biases_a_floating_robot_less(kind, seconds):
    errors = {"wls": [], "ref-iv": []}
    for run in range(RUNS):
        rows, truth = noisy(kind, run, seconds)
        system = rows.factors.weighted(rows.factors.ones)
        for method, own in errors.items():
            own.append(system.A @ (ESTIMATORS[method](rows).beta - truth))
    bias = {method: np.linalg.norm(np.mean(own, axis=0)) for method, own in errors.items()}
    assert bias["ref-iv"] < 0.3 * bias["wls"]


@pytest.mark.long
def test_a_reference_that_tells_little_of_a_combination_is_said_to():
    few = ESTIMATORS["ref-iv"](noisy("null-space", 0)[0])
    (warning,) = few.warnings
    assert few.instruments.first_stage_f < LEAST_F
    assert "the reference hardly excites a combination of" in warning
    assert np.max(few.covariance.std) > 10.0
    assert not ESTIMATORS["ref-iv"](noisy("null-space", 0, 4.0)[0]).warnings


@pytest.mark.long
def test_constrained_instruments_are_certified_for_a_floating_robot():
    rows, truth = noisy("full", 0)
    found = ESTIMATORS["pc-ref-iv"](rows, bootstrap=Bootstrap(0))
    assert found.certificate.worst < 1e-6
    system = rows.factors.weighted(rows.factors.ones)
    assert np.linalg.norm(system.A @ (found.beta - truth)) < 0.02 * np.linalg.norm(system.b)


def test_contacts_are_left_out_where_the_robot_was_and_not_where_it_was_told_to_be():
    rows, _ = noisy("null-space", 0)
    (log,) = rows.samples
    assert isinstance(log, GeneralisedSamples)
    motion = filter_reference_motion(log)
    along = log.along(*motion)
    assert along.configuration is log.q
    np.testing.assert_array_equal(along.q[:, :7], log.q[:, :7])
    assert np.all(np.ptp(along.q[:, 7:] - log.q[:, 7:], axis=0) > 0.0)
    both = zip(rows.rows(), rows.along([motion]).rows(), strict=True)
    for x, z in both:
        assert [each.tolist() for each in x.sample] == [each.tolist() for each in z.sample]


def test_a_reference_is_differentiated_as_the_positions_are():
    robot = toy.arm(2)
    recording, _ = toy.log(robot, seconds=3.0)
    for options in ({}, {"derivatives": "measured"}):
        told = replace(recording, qref=recording.q, dqref=recording.dq, ddq=None)
        log = di.prepare(told, 5.0, **options)
        for found, own in zip(filter_reference_motion(log), (log.q, log.dq, log.ddq), strict=True):
            np.testing.assert_allclose(found, own, atol=1e-9 * np.abs(own).max())


def test_logs_without_a_reference_or_with_one_that_stands_are_refused():
    robot = toy.arm(2)
    recording, _ = toy.log(robot, seconds=3.0)
    for method in ("ref-iv", "pc-ref-iv"):
        with pytest.raises(InputError, match=r"toy log: the log has no reference \(qref\) to make"):
            di.identify(Problem(robot, di.prepare(recording, 5.0)), method)
    still = replace(recording, qref=np.zeros_like(recording.q))
    with pytest.raises(ComputationError, match="the reference does not resemble the measured"):
        di.identify(Problem(robot, di.prepare(still, 5.0)), "ref-iv")


def asked(log: Recording) -> Recording:
    """The log of a base that follows its own reference as well as it does."""
    base = log.base
    assert base is not None
    assert base.position is not None
    assert base.orientation is not None
    away, turn = (
        waves(np.random.default_rng(seed), len(log.q), 3, log.rate, size)[0]
        for seed, size in ((2, 0.002), (3, 0.005))
    )
    own = replace(
        base,
        asked_position=base.position + away,
        asked_orientation=turn_quaternions(base.orientation, turn),
    )
    return replace(log, base=own)


def shaky(log: Recording) -> Recording:
    """A base whose pose alone is logged, with noise."""
    rng, base = np.random.default_rng(5), log.base
    assert base is not None
    assert base.position is not None
    assert base.orientation is not None
    off, turn = rng.normal(size=(2, len(log.q), 3))
    pose = {
        "position": base.position + 4e-4 * off,
        "orientation": turn_quaternions(base.orientation, 1e-3 * turn),
    }
    return replace(
        log, dq=None, ddq=None, base=replace(base, twist=None, acceleration=None, **pose)
    )


@pytest.mark.long
def test_noise_of_a_base_that_has_a_reference_is_no_bias():
    """One draw: the bias is four times the scatter, which instruments of the joints alone leave."""
    log = walked("full")
    rows, truth = problem(shaky(log), bandwidth=10.0, position_hz=50.0)
    joints = ESTIMATORS["ref-iv"](rows)
    rows, truth = problem(shaky(asked(log)), bandwidth=10.0, position_hz=50.0)
    both = ESTIMATORS["ref-iv"](rows)
    assert "the base's motion as measured" in joints.message
    assert "instruments from the logged reference of joints and base" in both.message
    assert np.linalg.norm(both.beta - truth) < 0.25 * np.linalg.norm(joints.beta - truth)


def test_the_reference_of_a_base_is_differentiated_as_its_pose_was():
    log = walked("full")
    rows, _ = problem(asked(log), bandwidth=25.0, position_hz=1e4)
    (samples,) = rows.samples
    q, dq, _ = filter_reference_motion(samples)
    off = q[:, :3] - samples.q[:, :3]
    away = waves(np.random.default_rng(2), len(q), 3, log.rate, 0.002)
    assert np.allclose(off, away[0], atol=1e-6)
    R = convert_quaternions(q[:, 3:7])
    speed = np.einsum("tij,tj->ti", R, dq[:, :3]) - np.einsum(
        "tij,tj->ti", convert_quaternions(samples.q[:, 3:7]), samples.dq[:, :3]
    )
    inner = slice(5, -5)
    assert np.allclose(speed[inner], away[1][inner], atol=2e-4)


def test_half_of_a_reference_of_a_base_is_none():
    log = asked(walked("full"))
    half = replace(log, base=replace(log.base, asked_orientation=None))
    samples = di.prepare(half, bandwidth=10.0)
    assert samples.asked is None
    assert any("baseref_px ... baseref_qw" in note for note in samples.warnings)
