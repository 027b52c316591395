"""Calibration joint by joint: against steps written out, one joint moving, and error bars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy

from dynident.core.arrays import Array
from dynident.estimators.least_squares import wls
from dynident.estimators.sequential import sequential
from dynident.regression.problem import Problem


def stack_rows(problem: Problem, group: int) -> tuple[Array, Array]:
    """Dense rows of one joint in all base parameters."""
    X, y = [], []
    for rows in problem.rows():
        dense = np.zeros((len(rows.y[group]), problem.base.count))
        dense[:, problem.columns[group]] = rows.X[group]
        X.append(dense)
        y.append(rows.y[group])
    return np.vstack(X), np.concatenate(y)


def test_each_joint_is_fitted_with_what_is_known_held():
    robot = toy.arm(3)
    recording, _ = toy.log(robot, noise=np.array([5.0, 2.0, 0.5]))
    problem = Problem(robot, toy.on_its_motion(recording))
    beta = np.zeros(problem.base.count)
    left = np.ones(len(beta), dtype=bool)
    for joint in (2, 1, 0):
        X, y = stack_rows(problem, joint)
        own = left & np.any(X != 0.0, axis=0)
        beta[own] = np.linalg.lstsq(X[:, own], y - X @ beta, rcond=None)[0]
        left &= ~own
    found = sequential(problem)
    np.testing.assert_allclose(found.beta, beta, rtol=1e-7, atol=1e-9)
    assert not np.allclose(found.beta, wls(problem).beta, rtol=1e-3)
    assert found.message.endswith("10 of joint_2, 4 of joint_1")


@pytest.mark.long
def test_error_bars_carry_those_of_earlier_steps():
    robot = toy.arm(2)
    clean, theta = toy.log(robot)
    errors, stds, own = [], [], []
    for run in range(20):
        noise = np.random.default_rng(run).normal(size=clean.tau.shape) * [0.3, 3.0]
        problem = Problem(robot, toy.on_its_motion(replace(clean, tau=clean.tau + noise), 10.0))
        found = sequential(problem)
        errors.append(found.beta - problem.base.matrix @ theta)
        stds.append(found.covariance.std)
        own.append(found.covariance.literature)
    first = [k for k, name in enumerate(problem.base.names) if "1" in name]
    scatter = np.sqrt(np.mean(np.square(errors), axis=0))
    np.testing.assert_allclose(np.mean(stds, axis=0), scatter, rtol=0.5)
    # the last joint's noise is in the first one's parameters, and the step alone does not say so
    assert np.median((np.mean(own, axis=0) / scatter)[first]) < 0.9
    assert 0.85 < np.median(np.mean(stds, axis=0) / scatter) < 1.15


def test_one_joint_moves_at_a_time():
    # of a planar arm without rotors: what products of speeds and two accelerations tell is no more
    arm = toy.arm(2)
    robot = replace(arm, joints=tuple(replace(j, axis=np.array([0.0, 1, 0])) for j in arm.joints))
    recording, _ = toy.log(robot)
    problem, logs = Problem(robot, toy.on_its_motion(recording), rotor=False), []
    theta = toy.true_parameters(problem.idim, robot.nominal)
    for joint, pose in ((0, -0.7), (0, 0.4), (0, 1.5), (1, 0.0)):
        q, dq, ddq = (signal.copy() for signal in (recording.q, recording.dq, recording.ddq))
        q[:, 1 - joint], dq[:, 1 - joint], ddq[:, 1 - joint] = pose, 0.0, 0.0
        tau = problem.idim.torque(theta, q, dq, ddq)
        log = replace(recording, q=q, dq=dq, ddq=ddq, tau=tau)
        logs.append(toy.on_its_motion(log, drop_below=0.01))
    alone = Problem.of(problem.base, logs)
    counts = [[log.moving[:, j].mean() for j in range(2)] for log in alone.samples]
    assert np.all((np.array(counts) > 0.5) == [[1, 0], [1, 0], [1, 0], [0, 1]])
    truth = problem.base.matrix @ theta
    found = sequential(alone)
    np.testing.assert_allclose(found.beta, truth, atol=1e-6 * np.abs(truth).max())
