"""What a designed trajectory promises is what identification then gets."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import toy

from dynident.core.arrays import Array
from dynident.excitation.design import build_program, draw_random_start
from dynident.excitation.excite import Excitation, excite
from dynident.excitation.trajectories import Trajectory
from dynident.methods.options import estimate
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.row_kinds import take_every_sample
from dynident.study.excite import compute_information_matrix

RATE, PERIOD, SIGMA = 200.0, 8.0, (0.5, 0.4, 0.2)
SLOW = 0.02
"""Rows of slower joints are not fitted [rad/s]."""
FRICTION = "coulomb-viscous"
RUNS = 40


def designed(known: Array | None = None, seed: int = 0) -> Excitation:
    return excite(
        toy.arm(3),
        FRICTION,
        known=known,
        duration=PERIOD,
        rate=RATE,
        sigma=SIGMA,
        drop_below=SLOW,
        speed=2.0,
        acceleration=8.0,
        collision=False,
        starts=1,
        iterations=25,
        time=1e4,
        seed=seed,
    )


@cache
def first() -> Excitation:
    return designed()


def recorded(
    found: Excitation, trajectory: Trajectory, seed: int, encoder: float = 0.0
) -> Recording:
    """A log of a trajectory that is followed exactly, the toy's true torques in white noise."""
    rng = np.random.default_rng([seed, 5])
    idim = found.prediction.base.idim
    motion = trajectory.reference(RATE)
    theta = toy.true_parameters(idim, found.robot.nominal)
    tau = idim.torque(theta, motion.q, motion.dq, motion.ddq)
    tau = tau + np.array(SIGMA) * rng.normal(size=tau.shape)
    q = motion.q + encoder * rng.normal(size=motion.q.shape)
    return Recording("designed", RATE, q, tau)


def problem(found: Excitation, *logs: Recording) -> Problem:
    samples = [prepare(log, 10.0, drop_below=SLOW) for log in logs]
    return Problem(found.robot, samples, FRICTION)


def truth(found: Excitation) -> Array:
    base = found.prediction.base
    return np.asarray(base.matrix @ toy.true_parameters(base.idim, found.robot.nominal))


def test_predicted_information_is_that_of_the_samples() -> None:
    found = first()
    whole = take_every_sample(problem(found, recorded(found, found.trajectory, 0)))
    A = whole.factors.weighted(np.array(SIGMA)).A
    std = np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
    np.testing.assert_allclose(std, found.prediction.std, rtol=0.02)


@pytest.mark.long
@pytest.mark.parametrize("encoder", [0.0, 1e-5])
def test_estimates_spread_as_predicted(encoder: float) -> None:
    found = first()
    beta = np.array(
        [
            estimate(problem(found, recorded(found, found.trajectory, seed, encoder)), "wls").beta
            for seed in range(RUNS)
        ]
    )
    ratio = beta.std(axis=0, ddof=1) / found.prediction.std
    assert 0.8 < np.median(ratio) < 1.2
    # of 40 runs a standard deviation is known to 11 %
    assert ratio.min() > 0.6
    assert ratio.max() < 1.45
    bias = (beta.mean(axis=0) - truth(found)) / found.prediction.std
    assert np.abs(bias).max() < 4.0 / np.sqrt(RUNS) + 0.3


def test_two_designed_rounds_teach_more_than_one_long_random_motion() -> None:
    found = first()
    log = recorded(found, found.trajectory, 0)
    again = designed(known=compute_information_matrix(problem(found, log)), seed=1)
    both = compute_information_matrix(problem(found, log, recorded(found, again.trajectory, 1)))
    task = found.design.task
    program = build_program(task, task.limits, task.family.grid(task.step))
    rng = np.random.default_rng(7)
    motions = [Trajectory(task.family, draw_random_start(task, program, rng)) for _ in range(2)]
    logs = [recorded(found, motion, 2 + k) for k, motion in enumerate(motions)]
    randomly = compute_information_matrix(problem(found, *logs))
    ratio = np.sqrt(np.diag(np.linalg.inv(both)) / np.diag(np.linalg.inv(randomly)))
    assert np.exp(np.mean(np.log(ratio))) < 0.6
