"""The tracker on floating robots: all equations, contacts that nothing measures, loads."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import toy
from floating import Made, solo
from scipy import linalg

from dynident.consistency.knowledge import Knowledge
from dynident.core.errors import InputError
from dynident.core.inertia import from_com
from dynident.dynamics.base import base_parameters
from dynident.dynamics.equations import Observability, stack_contact_jacobians
from dynident.dynamics.idim import build_idim
from dynident.online.tracker import AlarmOptions, Tracker
from dynident.regression.generalised import generalise_samples

FEET = ("FL", "FR", "HL", "HR")
STANCES = (FEET, FEET[:3], FEET[1:3], ())
"""Feet that bear unmeasured, a quarter of the samples each."""
DOF = 18


@cache
def made() -> Made:
    return solo(3.0)


@cache
def stream(seed: int = 0, mass: float = 0.0):
    """Generalised motion and right-hand sides with noise, and its sigma; a load from the middle."""
    own = made()
    log = generalise_samples(own.idim, toy.on_its_motion(own.recording, 10.0))
    log = replace(log, q=log.q, dq=log.dq, ddq=log.ddq)
    sigma = np.concatenate([[1.0, 2.0, 1.5, 0.3, 0.2, 0.4], np.linspace(0.1, 0.4, 12)])
    tau = log.tau.copy()
    if mass:
        theta = np.zeros_like(own.theta)
        theta[:10] = from_com(mass, [0.05, 0.01, 0.08], 1e-2 * np.eye(3))
        half = slice(len(tau) // 2, None)
        motion = log.q[half], log.dq[half], log.ddq[half]
        tau[half] += own.idim.torque(theta, *motion) - own.idim.torque(0.0 * theta, *motion)
    tau += sigma * np.random.default_rng(seed).normal(size=tau.shape)
    return (log.q, log.dq, log.ddq, tau), sigma


def fed(tracker, samples, bearing=lambda k: ()):
    every = zip(*samples, strict=True)
    found = [tracker.update(*each, bearing(k)) for k, each in enumerate(every)]
    return [event for event in found if event is not None]


@pytest.mark.long
@pytest.mark.parametrize("equations", ["full", "joints", "base"])
def test_sample_by_sample_it_is_least_squares_of_the_equations_that_are_stated(equations):
    idim, (samples, sigma) = made().idim, stream()
    observed = Observability(equations)
    base = base_parameters(idim, observed=[observed])
    stated = observed.rows(made().robot)
    tracker = Tracker(base, np.where(stated, sigma, np.inf), 500.0)
    fed(tracker, samples)
    X = idim.regressor(*samples[:3])[:, :, base.kept] / sigma[:, None]
    A, b = X[:, stated], (samples[3] / sigma)[:, stated]
    toy.assert_is_least_squares(tracker, A.reshape(-1, base.count), b.ravel())


def standing(k: int) -> tuple[str, ...]:
    return STANCES[k * len(STANCES) // 1500]


@cache
def null_space():
    return base_parameters(made().idim, observed=[Observability("null-space", free=STANCES)])


@pytest.mark.long
def test_what_nothing_measures_is_projected_out_sample_by_sample():
    """Whatever the feet do, and however many of them bear."""
    idim, (samples, sigma) = made().idim, stream()
    base, rng = null_space(), np.random.default_rng(1)
    q, dq, ddq, tau = samples
    X = idim.regressor(q, dq, ddq)[:, :, base.kept] / sigma[:, None]
    y = tau / sigma
    rows, right = [], []
    pushed = tau.copy()
    for k in range(len(q)):
        names = standing(k)
        if not names:
            rows.append(X[k])
            right.append(y[k])
            continue
        J = stack_contact_jacobians(idim.tree, made().robot, names, q[k][None])[0]
        pushed[k] += J.T @ rng.normal(scale=100.0, size=len(J))
        N = linalg.null_space(J / sigma)
        rows.append(N.T @ X[k])
        right.append(N.T @ y[k])
    assert len({len(each) for each in rows}) == 4
    tracker = Tracker(base, sigma, 500.0)
    fed(tracker, (q, dq, ddq, pushed), standing)
    toy.assert_is_least_squares(tracker, np.vstack(rows), np.concatenate(right))


def test_what_unmeasured_feet_act_on_is_not_predicted():
    samples, sigma = stream()
    idim, base = made().idim, null_space()
    tracker = Tracker(base, sigma, 500.0)
    fed(tracker, [each[:300] for each in samples], standing)
    motion = [each[300] for each in samples[:3]]
    whole, standing_on_two = tracker.predict(*motion), tracker.predict(*motion, FEET[:2])
    X = idim.regressor(*(each[None] for each in motion))[0][:, base.kept]
    np.testing.assert_allclose(whole, X @ tracker.beta, rtol=1e-9, atol=1e-9)
    J = stack_contact_jacobians(idim.tree, made().robot, FEET[:2], motion[0][None])[0]
    free = np.all(J == 0.0, axis=0)
    assert 0 < free.sum() < DOF
    np.testing.assert_array_equal(standing_on_two, np.where(free, whole, np.nan))
    alone = base_parameters(idim, observed=[Observability("joints")])
    followed = np.arange(DOF) >= 6
    joints = Tracker(alone, np.where(followed, sigma, np.inf), 500.0)
    np.testing.assert_array_equal(np.isfinite(joints.predict(*motion)), followed)


def test_feet_that_hold_each_other_are_projected_out_once():
    """Two frames at one place push as one: the rank of what they do is smaller than its size."""
    own, (samples, sigma) = made(), stream()
    twin = replace(own.robot.contacts[0], name="twin")
    robot = replace(own.robot, contacts=(*own.robot.contacts, twin))
    idim = build_idim(robot, "viscous")
    base = base_parameters(idim, observed=[Observability("null-space", free=(("FL",),))])
    found = []
    for names in (("FL",), ("FL", "twin")):
        tracker = Tracker(base, sigma, 500.0)
        fed(tracker, [each[:400] for each in samples], lambda _, names=names: names)
        found.append(tracker)
    np.testing.assert_allclose(found[0].std, found[1].std, rtol=1e-6)
    np.testing.assert_allclose(found[0].beta, found[1].beta, atol=1e-6 * found[0].std.max())


@pytest.mark.long
def test_consistent_links_of_a_floating_robot_are_followed():
    (samples, sigma), base = stream(), base_parameters(made().idim)
    tracker = Tracker(base, sigma, 500.0, knowledge=Knowledge())
    for k, each in enumerate(zip(*samples, strict=True)):
        tracker.update(*each)
        if k % 100 == 0:
            assert base.idim.is_consistent(tracker.theta)
    exact = tracker.projected()
    R = np.linalg.cholesky(np.linalg.inv(tracker.covariance)).T

    def cost(beta):
        return np.sum((R @ (beta - tracker.beta)) ** 2)

    assert cost(base.matrix @ tracker.theta) < cost(exact.beta) + 3.0 * tracker.gap + 1.0


@pytest.mark.parametrize("unmeasured", [False, True])
def test_a_load_on_the_base_is_noticed_and_weighed(unmeasured):
    (samples, sigma) = stream(3, 1.0)
    base = null_space() if unmeasured else base_parameters(made().idim)
    tracker = Tracker(base, sigma, 500.0, alarm=AlarmOptions(settle=0.7))
    (event, *_) = fed(tracker, samples, lambda k: FEET[: k // 100 % 3] if unmeasured else ())
    assert event.kind == "load"
    assert 750 < event.sample < 1000
    assert tracker.load is not None
    assert abs(tracker.load.mass - 1.0) < max(0.1, 4.0 * tracker.load.std[0])


@pytest.mark.long
def test_a_state_goes_on_on_a_floating_base_too():
    (samples, sigma), base = stream(), null_space()
    whole, first, second = (Tracker(base, sigma, 500.0) for _ in range(3))
    fed(whole, samples, standing)
    fed(first, [each[:700] for each in samples], standing)
    second.restore(first.state())
    fed(second, [each[700:] for each in samples], lambda k: standing(k + 700))
    np.testing.assert_array_equal(whole.beta, second.beta)


def test_what_a_sample_lacks_is_named():
    (samples, sigma), base = stream(), null_space()
    tracker = Tracker(base, sigma, 500.0)
    sample = [each[0].copy() for each in samples]
    with pytest.raises(
        InputError, match="'XX' carries load that is not measured, but is not among the contacts"
    ):
        tracker.update(*sample, ["XX"])
    with pytest.raises(
        InputError, match="'FL' carries load that is not measured, but is not among the contacts"
    ):
        Tracker(base_parameters(made().idim), sigma, 500.0).update(*sample, ["FL"])
    sample[2][4] = np.nan
    with pytest.raises(InputError, match="sample 1: base_dwy is nan"):
        tracker.update(*sample, ["FL"])
    with pytest.raises(InputError, match="sigma needs a positive number for each of 18 equations"):
        Tracker(base, sigma[6:], 500.0)
    with pytest.raises(InputError, match="sigma needs a positive number"):
        Tracker(base, np.full(DOF, np.inf), 500.0)
