"""Zero-mean errors of the instruments, and intervals that cover, with noise in the loop."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import pytest
import toy
from scipy import special, stats

from dynident.control.controller import Controller, pd
from dynident.control.reference import Reference, quintic
from dynident.core.arrays import Array
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import Idim, build_idim
from dynident.estimators.closed_loop import Simulation
from dynident.methods import ESTIMATORS
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout
from dynident_papers.twin import load_twin

RATE, WIDTH = 1000.0, 5e-3
VISCOUS, COULOMB = "viscous", "coulomb-viscous-symmetric"
# both keep the velocities and accelerations of a motion below 10 Hz; "weak" lets noise through
ROWS = {
    "weak": {"bandwidth": 10.0, "position_hz": 200.0, "torque_hz": 50.0},
    "default": {"bandwidth": 10.0},
    "moving": {"bandwidth": 10.0, "position_hz": 200.0, "torque_hz": 50.0, "drop_below": 0.1},
}
POSITION = 2e-5
"""White noise of all positions, which the controllers see and the log holds [rad]."""
FEW, MANY = 20, 200


@dataclass(frozen=True)
class Arm:
    """A robot in its loop: controllers see noisy positions alone, and difference them."""

    idim: Idim
    theta: Array
    controller: Controller
    reference: Reference
    torque: Array
    """White noise of the logged torque [Nm]."""

    @property
    def integrator(self) -> str:
        """An implicit one for Coulomb friction, which is stiff where it changes sign."""
        return "sdirk2" if self.idim.friction == COULOMB else "ode3"

    def log(self, run: int | None, position: float = POSITION, torque: float = 1.0) -> Recording:
        """One run; None is the run without noise.

        The drive holds a torque from one sample to the next, so that it steps where the
        position is sampled: the log has the mean of both sides, as a current has that is
        averaged over the sampling period about the instant.
        """
        noise = np.zeros((2, *self.reference.q.shape))
        if run is not None:
            noise = np.random.default_rng([2019, run]).standard_normal(noise.shape)
        width = np.full(self.idim.robot.n, WIDTH)
        motion = rollout(
            Loop(self.idim, self.controller, self.reference, self.integrator, width=width,
                 noise=position * noise[0]),
            self.theta,
        )  # fmt: skip
        tau = motion.tau.copy()
        tau[1:] = 0.5 * (motion.tau[1:] + motion.tau[:-1])
        tau += torque * self.torque * noise[1]
        along, drives = self.reference, self.idim.robot.drives
        return Recording(
            "run", RATE, motion.measured, tau, qref=along.q, dqref=along.dq, drives=drives
        )

    @cached_property
    def base(self) -> BaseParameters:
        """What is estimated."""
        return base_parameters(self.idim)

    def estimates(self, recording: Recording, *fits: tuple[str, str]) -> list:
        """Fits (method, rows) of one log; the estimators simulate the robot's own loop."""
        loop = Simulation(self.controller, self.integrator, width=WIDTH)
        problems = {
            rows: Problem.of(self.base, prepare(recording, **ROWS[rows])) for _, rows in fits
        }
        return [
            ESTIMATORS[method](problems[rows], *((loop,) if method == "idim-iv" else ()))
            for method, rows in fits
        ]


def through_points(n: int, reach: float, seed: int, seconds: float) -> Reference:
    """A motion from rest through random points, two a second."""
    rng = np.random.default_rng(seed)
    times = np.arange(0.0, seconds + 1e-9, 0.5)
    q, dq = rng.uniform(-reach, reach, (2, len(times), n))
    q[0], dq[0] = 0.0, 0.0
    return quintic(RATE, q, times, dq)


@cache
def small(friction: str) -> Arm:
    idim = build_idim(toy.arm(2), friction)
    control = pd([2500.0, 600.0], [100.0, 25.0], rate=RATE, velocity="differences")
    theta = toy.true_parameters(idim, idim.robot.nominal)
    return Arm(idim, theta, control, through_points(2, 1.2, 3, 4.0), np.array([0.2, 0.1]))


@cache
def twin(friction: str) -> Arm:
    """The TX40 twin under its own gains."""
    of = load_twin()
    idim = build_idim(of.robot, friction)
    known = dict(zip(of.idim.names, of.theta, strict=True))
    control = pd(of.kp, of.kd, gain=of.gain, rate=RATE, velocity="differences")
    noise = np.array([1.0, 1.0, 0.5, 0.2, 0.2, 0.1])
    theta = np.array([known[name] for name in idim.names])
    return Arm(idim, theta, control, through_points(6, 1.0, 5, 8.0), noise)


ARMS = {"two joints": small, "TX40 twin": twin}


@dataclass(frozen=True)
class Outcome:
    """Errors of all runs against the truth, and the standard deviations that they claim."""

    error: Array
    std: Array

    @property
    def bias(self) -> Array:
        """Mean error over the spread of the runs."""
        return np.mean(self.error, axis=0) / np.std(self.error, axis=0, ddof=1)

    @property
    def t(self) -> float:
        """Largest mean error, in its standard errors."""
        return float(np.max(np.abs(self.bias)) * np.sqrt(len(self.error)))

    @property
    def hotelling(self) -> float:
        """p-value of the joint test that the mean error is zero (Hotelling 1931).

        ``T^2 = N d' S^-1 d``; ``T^2 (N - p) / (p (N - 1))`` is F(p, N - p).
        """
        runs, p = self.error.shape
        scaled = self.error / np.std(self.error, axis=0, ddof=1)
        mean = np.mean(scaled, axis=0)
        S = np.atleast_2d(np.cov(scaled, rowvar=False))
        statistic = runs * mean @ np.linalg.solve(S, mean)
        return float(special.fdtrc(p, runs - p, statistic * (runs - p) / (p * (runs - 1))))

    @property
    def coverage(self) -> float:
        """Share of 95 % intervals that hold the mean of the runs, pooled over parameters."""
        runs = len(self.error)
        # the mean has the error of a run in it
        away = np.abs(self.error - np.mean(self.error, axis=0)) / np.sqrt(1.0 - 1.0 / runs)
        return float(np.mean(away < 1.96 * self.std))


@cache
def study(arm: str, friction: str, runs: int, position: float, torque: float, *fits) -> list:
    """All fits (method, rows) on the same runs."""
    of = ARMS[arm](friction)
    logs = (of.log(run, position, torque) for run in range(runs))
    found = [of.estimates(log, *fits) for log in logs]
    truth = of.base.matrix @ of.theta
    return [
        Outcome(np.array([e.beta - truth for e in each]),
                np.array([e.covariance.std for e in each]))
        for each in zip(*found, strict=True)
    ]  # fmt: skip


def zero_mean(outcome: Outcome) -> bool:
    """Jointly at 1 %, singly within 4 standard errors."""
    return outcome.hotelling > 0.01 and outcome.t < 4.0


def clearly_biased(outcome: Outcome) -> bool:
    """Fails both."""
    return outcome.hotelling < 0.01 and outcome.t > 4.0


WLS, IV, IV_DEFAULT = ("wls", "weak"), ("idim-iv", "weak"), ("idim-iv", "default")
REF = ("ref-iv", "weak")
BOTH, THROUGH_THE_LOOP, LOGGED = (POSITION, 1.0), (POSITION, 0.0), (0.0, 1.0)
"""Scales of the noise of positions [rad] and torques."""


def test_the_joint_test_is_students_for_one_parameter():
    error = np.random.default_rng(3).normal(0.1, 2.0, (30, 1))
    expected = stats.ttest_1samp(error[:, 0], 0.0)
    outcome = Outcome(error, np.ones_like(error))
    assert outcome.hotelling == pytest.approx(expected.pvalue, rel=1e-9)
    assert outcome.t == pytest.approx(abs(expected.statistic), rel=1e-9)


def test_the_joint_test_rejects_as_often_as_it_says():
    rng = np.random.default_rng(5)
    mixed = rng.normal(size=(6, 6))
    errors = (rng.normal(size=(40, 6)) @ mixed for _ in range(400))
    p = [Outcome(error, np.ones_like(error)).hotelling for error in errors]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_runs_differ_by_their_noise_which_the_loop_turns_into_torque():
    arm = small(VISCOUS)
    first, again, other = arm.log(0), arm.log(0), arm.log(1)
    np.testing.assert_array_equal(first.q, again.q)
    np.testing.assert_array_equal(first.tau, again.tau)
    assert np.all(np.any(first.tau != other.tau, axis=0))
    through = arm.log(0, *THROUGH_THE_LOOP).tau - arm.log(None).tau
    assert np.all(np.std(through, axis=0) > 0.1)


@pytest.mark.parametrize("fit", [WLS, IV, IV_DEFAULT, REF], ids=" ".join)
def test_without_noise_the_methods_come_to_the_truth(fit):
    arm = small(VISCOUS)
    truth = arm.base.matrix @ arm.theta
    (found,) = arm.estimates(arm.log(None), fit)
    np.testing.assert_allclose(found.beta, truth, atol=1e-3 * np.abs(truth).max())


@pytest.mark.long
def test_instruments_are_unbiased_in_the_loop_where_least_squares_is_not():
    ls, iv, _, ref = study("two joints", VISCOUS, FEW, *BOTH, WLS, IV, IV_DEFAULT, REF)
    assert zero_mean(iv)
    assert zero_mean(ref)
    assert clearly_biased(ls)


@pytest.mark.long
def test_instruments_are_unbiased_where_all_noise_comes_through_the_loop():
    ls, iv = study("two joints", VISCOUS, FEW, *THROUGH_THE_LOOP, WLS, IV)
    # errors of sampling and filtering are a share of these small ones
    assert iv.t < 4.0
    assert ls.t > 30.0


@pytest.mark.long
def test_intervals_cover_in_a_few_runs():
    _, *iv = study("two joints", VISCOUS, FEW, *BOTH, WLS, IV, IV_DEFAULT, REF)
    for outcome in (*iv, *study("two joints", VISCOUS, FEW, *LOGGED, WLS)):
        # 200 intervals, correlated within a run: two per cent of standard error
        assert 0.89 < outcome.coverage < 0.99


@pytest.mark.long
def test_the_sign_of_a_noisy_velocity_biases_instruments_too_unless_slow_rows_are_dropped():
    moving = ("idim-iv", "moving")
    every, dropped = study("two joints", COULOMB, FEW, *BOTH, IV, moving)
    assert clearly_biased(every)
    assert zero_mean(dropped)


@pytest.mark.slow
@pytest.mark.parametrize("arm", ARMS)
def test_instruments_are_unbiased_and_intervals_cover_in_many_runs(arm):
    ls, *iv = study(arm, VISCOUS, MANY, *BOTH, WLS, IV, IV_DEFAULT)
    assert clearly_biased(ls)
    for outcome in (*iv, *study(arm, VISCOUS, MANY, *LOGGED, WLS)):
        assert 0.93 < outcome.coverage < 0.97
    assert iv[0].t < 4.0


@pytest.mark.slow
@pytest.mark.parametrize("arm", ARMS)
def test_intervals_are_not_too_short_where_all_noise_comes_through_the_loop(arm):
    (iv,) = study(arm, VISCOUS, MANY, *THROUGH_THE_LOOP, IV)
    assert iv.coverage > 0.93


@pytest.mark.slow
@pytest.mark.xfail(
    reason="the errors' spectrum grows from nearly zero, where the autoregressions are too high: "
    "claimed sigmas are 1.4 times the true ones (docs/figures/montecarlo.md)"
)
@pytest.mark.parametrize("arm", ARMS)
def test_intervals_are_not_too_long_where_all_noise_comes_through_the_loop(arm):
    (iv,) = study(arm, VISCOUS, MANY, *THROUGH_THE_LOOP, IV)
    assert iv.coverage < 0.97


@pytest.mark.slow
@pytest.mark.parametrize("arm", ARMS)
def test_coulomb_friction_biases_instruments_in_many_runs(arm):
    every, dropped = study(arm, COULOMB, MANY, *BOTH, IV, ("idim-iv", "moving"))
    assert clearly_biased(every)
    assert np.max(np.abs(dropped.bias)) < 0.3 * np.max(np.abs(every.bias))
