"""Contacts that nothing measures: every method and every report meets the combinations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy

import dynident as di
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.contacts import map_wrench_to_joints
from dynident.dynamics.equations import stack_contact_jacobians
from dynident.dynamics.tree import build_tree
from dynident.methods.options import estimate
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.robot.model import Contact, Robot

N = 6
TIP, ELBOW = (
    Contact(name, f"link_{body}", body, np.eye(3), np.array([0.0, 0.05, 0.1]), surface=False)
    for name, body in (("tip", N), ("elbow", 3))
)


def arm(*contacts: Contact) -> Robot:
    return replace(toy.arm(N), contacts=contacts)


def log(robot: Robot, free: str, noise: float = 0.01) -> tuple[Recording, Array]:
    """Forces at every contact, of which those of `free` are not in the log."""
    recording, theta = toy.log(robot, noise=noise)
    tree, rng = build_tree(robot), np.random.default_rng(3)
    time = np.arange(len(recording.q))[:, None] / toy.RATE
    tau, wrenches = recording.tau.copy(), {}
    for contact in robot.contacts:
        speeds, sizes = rng.uniform(0.5, 3.0, (2, 3))
        force = 20.0 * sizes * np.sin(speeds * time)
        if contact.name == free:
            J = stack_contact_jacobians(tree, robot, (free,), recording.q)
            tau -= np.einsum("tij,ti->tj", J, force)
        else:
            wrenches[contact.name] = force
            tau -= map_wrench_to_joints(tree, robot, contact, recording.q, force)
    touching = {free: np.ones(len(time), dtype=bool)}
    return replace(recording, tau=tau, wrenches=wrenches, touching=touching), theta


def problem(*contacts: Contact, noise: float = 0.01) -> tuple[Problem, Array]:
    robot = arm(*contacts)
    recording, theta = log(robot, "tip", noise)
    return Problem(robot, toy.on_its_motion(recording)), theta


def off(found: Problem, beta: Array, theta: Array) -> float:
    truth = found.base.matrix @ theta
    return float(np.max(np.abs(beta - truth) / np.maximum(np.abs(truth), 0.1)))


@pytest.mark.long
@pytest.mark.parametrize("contacts", [(TIP,), (TIP, ELBOW)], ids=["alone", "beside a measured one"])
def test_a_fixed_arm_is_identified_and_judged(contacts):
    rows, theta = problem(*contacts)
    fit = di.identify(rows, "wls")
    assert off(rows, fit.estimate.beta, theta) < 0.05
    assert fit.verdict.state != "refuted"
    fitted, every = di.validate(fit, rows.samples[0])  # no equation holds at every sample
    assert fitted.overall_percent < 1.0
    assert np.isnan(every.overall_percent)
    assert [g.name for g in rows.groups[rows.robot.n :]] == [f"free of tip {k}" for k in (1, 2, 3)]


@pytest.fixture(scope="module")
def repeated():
    """Four periods before a gap and three after, on the tip for a third of each; robot and truth.

    What is in the periods, as well: motion, and whether the tip bears, at their own time.
    """
    rate, period = toy.RATE, 3.0137
    robot = arm(TIP)
    time = np.arange(int(7.4 * period * rate)) / rate
    q, dq, ddq = np.zeros((3, len(time), N))
    rng = np.random.default_rng(1)
    for j in range(N):
        for k in range(1, 7):
            w, a, phase = 2.0 * np.pi * k / period, rng.uniform(0.2, 0.6) / k, rng.uniform(0, 6)
            q[:, j] += a * np.sin(w * time + phase)
            dq[:, j] += a * w * np.cos(w * time + phase)
            ddq[:, j] -= a * w**2 * np.sin(w * time + phase)
    idim = di.build_idim(robot)
    theta = toy.true_parameters(idim, robot.nominal)
    bears = (time / period + 0.1) % 1.0 < 0.33
    J = stack_contact_jacobians(idim.tree, robot, ("tip",), q)
    force = 30.0 * np.sin(rng.uniform(0.5, 3.0, 3) * time[:, None]) * bears[:, None]
    tau = idim.torque(theta, q, dq, ddq) - np.einsum("tij,ti->tj", J, force)
    tau += 0.05 * rng.normal(size=q.shape)
    gap = int(4.2 * period * rate)
    segments = ((0, gap), (gap + 123, len(time)))
    recording = Recording("p", rate, q, tau, segments=segments, touching={"tip": bears})
    return recording, robot, theta, period


def away(rows: Problem, theta: Array) -> float:
    """Root mean square of errors over their standard deviations."""
    fit = di.identify(rows, "wls", doctor=False)
    errors = fit.estimate.beta - rows.base.matrix @ theta
    return float(np.sqrt(np.mean((errors / fit.estimate.covariance.std) ** 2)))


@pytest.mark.long
def test_contacts_that_repeat_are_averaged_over_periods(repeated):
    recording, robot, theta, period = repeated
    samples = di.prepare(recording, 5.0, position_hz=4.0, period=period)
    assert samples.averaging.periods == 7
    bears = samples.touching["tip"][slice(*samples.averaging.inner)]
    assert abs(np.mean(bears) - 0.33) < 0.01  # an instant more at the ends
    assert 1 <= np.count_nonzero(np.diff(bears.astype(int))) <= 2
    rows = Problem(robot, samples)
    assert {names for log in rows.samples for names in log.sets} == {(), ("tip",)}
    assert away(rows, theta) < 1.6
    # of one that bears all the time every row of the joints before it is a combination
    always = {"tip": np.ones(len(recording.q), dtype=bool)}
    samples = di.prepare(replace(recording, touching=always), 5.0, position_hz=4.0, period=period)
    rows = Problem(robot, samples)
    assert not rows.samples[0].whole_period
    assert away(rows, theta) < 1.6


def test_what_a_log_says_of_its_contacts_outlives_the_mean(repeated):
    recording, _, _, period = repeated
    told = replace(recording, equations="null-space", contact_speed=0.3, tared=True)
    samples = di.prepare(told, 5.0, position_hz=4.0, period=period)
    assert (samples.equations, samples.contact_speed, samples.tared) == ("null-space", 0.3, True)
    late = recording.touching["tip"].copy()
    late[: int(0.9 * period * toy.RATE)] = False
    with pytest.raises(InputError, match="contact_tip does not repeat: periods differ in it for"):
        di.prepare(replace(told, touching={"tip": late}), 5.0, position_hz=4.0, period=period)


@pytest.fixture(scope="module")
def quiet():
    """Rows with hardly any noise, whose factors all methods share."""
    return problem(TIP, noise=1e-4)


@pytest.mark.parametrize("method", ["ols", "wls", "irls", "rls", "kf"])
def test_methods_of_rows_find_the_same(quiet, method):
    rows, theta = quiet
    found = estimate(rows, method)
    assert off(rows, found.beta, theta) < 0.01
    assert np.all(np.isfinite(found.covariance.std))


@pytest.mark.long
@pytest.mark.parametrize("method", ["wls", "irls"])
def test_combinations_of_one_set_have_one_sigma(method):
    rows, _ = problem(TIP)
    sigma = estimate(rows, method).sigma[rows.robot.n :]
    assert len(sigma) == 3
    np.testing.assert_allclose(sigma, sigma[0])


def test_what_is_not_done_is_refused():
    robot = arm(TIP)
    recording, _ = log(robot, "tip")
    rows = Problem(robot, toy.on_its_motion(recording), "stribeck")
    with pytest.raises(InputError, match=r"ekf does not follow .* null space"):
        estimate(rows, "ekf")
    with pytest.raises(InputError, match=r"ml does not propagate .* null space .*; take wls"):
        estimate(Problem(robot, toy.on_its_motion(recording)), "ml")


def test_nothing_says_when_a_contact_bears_but_its_speed():
    """A contact that the robot has is never left out of the equations unsaid."""
    robot = arm(TIP)
    recording, _ = log(robot, "tip")
    silent = toy.on_its_motion(replace(recording, touching={}))
    rows = Problem(robot, silent)
    assert rows.samples[0].observed.equations == "null-space"
