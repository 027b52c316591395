"""The tracker: the batch answer sample by sample, consistency, loads, false alarms, its state."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import toy
from frictions import registered  # noqa: F401
from robots import EXAMPLES

from dynident.consistency.knowledge import Knowledge
from dynident.core.errors import InputError
from dynident.core.inertia import from_com
from dynident.dynamics.base import base_parameters
from dynident.dynamics.following import follow_friction
from dynident.dynamics.idim import build_idim
from dynident.dynamics.parameters import JointElements
from dynident.friction.elements import known
from dynident.online.initial_load import weigh_load
from dynident.online.recursive import Drift, Forgetting
from dynident.online.tracker import AlarmOptions, PriorKnowledge, Tracker
from dynident.robot import load_robot

RATE = 500.0


@cache
def stream(n=3, seconds=12.0, coupled=False, friction="coulomb-viscous", seed=0, noise=1.0):
    """A base, sigma, the true standard parameters and samples with white torque noise."""
    robot = toy.arm(n, coupled=coupled)
    base = base_parameters(build_idim(robot, friction))
    theta = toy.true_parameters(base.idim, robot.nominal)
    sigma = np.linspace(0.8, 0.2, n)
    q, dq, ddq = toy.motion(n, seconds, seed, RATE)
    tau = base.idim.torque(theta, q, dq, ddq)
    tau = tau + noise * sigma * np.random.default_rng(seed).normal(size=q.shape)
    return base, sigma, theta, (q, dq, ddq, tau)


def fed(tracker, samples, start=0, stop=None):
    """The tracker after some samples, and its events."""
    found = [tracker.update(*each) for each in zip(*(s[start:stop] for s in samples), strict=True)]
    return [event for event in found if event is not None]


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize(
    "friction",
    ["coulomb-viscous", "coulomb-viscous-asymmetric", "stribeck", "stribeck + dahl-spectrum"],
)
@pytest.mark.usefixtures("registered")
def test_sample_by_sample_it_is_least_squares(friction, coupled):
    """Rows, friction of every kind and coupled drives included, with slow rows left out."""
    robot = toy.arm(3, coupled=coupled)
    base = base_parameters(build_idim(robot, friction))
    sigma, rng = np.array([1.0, 0.5, 0.2]), np.random.default_rng(5)
    q, dq, ddq = toy.motion(3, 3.0, rate=RATE)
    tau = rng.normal(size=q.shape)
    slow = np.array([0.1, 0.3, 0.2])
    tracker = Tracker(base, sigma, RATE, drop_below=slow.tolist())
    fed(tracker, (q, dq, ddq, tau))
    from dynident.robot.drives import find_moving_joints

    moving = find_moving_joints(dq, tuple(slow), robot.drives)
    assert 0.5 < np.mean(moving) < 0.99
    states = follow_friction(base.idim, q, dq, RATE)
    X = base.idim.regressor(q, dq, ddq, states)[:, :, base.kept] / sigma[:, None]
    A, b = X[moving], (tau / sigma)[moving]
    toy.assert_is_least_squares(tracker, A, b)
    np.testing.assert_allclose(tracker.covariance @ (A.T @ A), np.eye(base.count), atol=1e-5)


def test_a_state_fits_wherever_laws_are_compiled_to():
    """Laws and steps of what they remember have an address each, in every process another."""
    friction = "stribeck, dahl, coulomb-viscous"
    base = base_parameters(build_idim(toy.arm(3), friction))
    trackers = [Tracker(base, [0.8, 0.5, 0.2], RATE) for _ in range(2)]
    law = trackers[1]._model.law
    assert law[:, [0, 3]].any(axis=0).all()
    law[:, [0, 3]] += 4096
    assert trackers[0].fingerprint == trackers[1].fingerprint


def referenced(seed=0, noise=0.0, seconds=6.0):
    """A stream whose motion is off its reference, with noise in what is measured of it."""
    base, sigma, theta, (q, dq, ddq, tau) = stream(2, seconds, seed=seed, noise=0.2)
    rng, t = np.random.default_rng(100 + seed), np.arange(len(q))[:, None] / RATE
    lag = 0.02 * np.sin(2.0 * np.pi * 0.7 * t + np.arange(2))  # of the loop: no noise
    reference = q - lag, dq - np.gradient(lag, 1.0 / RATE, axis=0), ddq
    sizes = (noise, noise, 30.0 * noise)  # differentiated, noise grows
    motion = zip((q, dq, ddq), sizes, strict=True)
    measured = [each + size * rng.normal(size=q.shape) for each, size in motion]
    return base, sigma, theta, (*measured, tau), reference


def feed_with_reference(tracker, samples, reference, start=0, stop=None):
    """The tracker after samples that come with their reference; its events."""
    rows = zip(*(s[start:stop] for s in (*samples, *reference)), strict=True)
    found = [tracker.update(*row[:4], reference=row[4:]) for row in rows]
    return [event for event in found if event is not None]


def test_with_instruments_it_is_iv_sample_by_sample():
    """Eq. 28 and 17 of ardiani2024 from rows that stand one below the other."""
    base, sigma, _, samples, reference = referenced(noise=1e-3)
    tracker = Tracker(base, sigma, RATE, instruments=True)
    feed_with_reference(tracker, samples, reference)
    rows = [
        (base.idim.regressor(*motion)[:, :, base.kept] / sigma[:, None]).reshape(-1, base.count)
        for motion in (samples[:3], reference)
    ]
    X, Z, y = *rows, (samples[3] / sigma).ravel()
    beta = np.linalg.solve(Z.T @ X, Z.T @ y)
    inverse = np.linalg.inv(Z.T @ X)
    std = np.sqrt(np.diag(inverse @ (Z.T @ Z) @ inverse.T))
    np.testing.assert_allclose(tracker.beta / std, beta / std, atol=1e-5)
    np.testing.assert_allclose(tracker.std, std, rtol=1e-5)


@pytest.mark.long
def test_instruments_remove_the_bias_by_noise_of_the_motion():
    errors = {False: [], True: []}
    for seed in range(4):
        base, sigma, theta, samples, reference = referenced(seed, noise=0.04, seconds=12.0)
        for instruments, own in errors.items():
            tracker = Tracker(base, sigma, RATE, instruments=instruments)
            if instruments:
                feed_with_reference(tracker, samples, reference)
            else:
                fed(tracker, samples)
            own.append((tracker.beta - base.matrix @ theta) / tracker.std)
    bias = {by: np.linalg.norm(np.mean(own, axis=0)) for by, own in errors.items()}
    assert bias[True] < 0.4 * bias[False]


@pytest.mark.long
def test_instruments_are_consistent_and_resumed_and_a_load_is_taken_back():
    base, sigma, theta, samples, reference = referenced(noise=0.002, seconds=10.0)
    q, dq, ddq, tau = samples
    heavy = theta.copy()
    heavy[10:20] += from_com(3.0, np.array([0.1, 0.0, 0.2]), np.zeros((3, 3)))
    more = base.idim.torque(heavy, q, dq, ddq) - base.idim.torque(theta, q, dq, ddq)
    tau = tau + more * (np.arange(len(q)) > 3500)[:, None]
    options = {"alarm": AlarmOptions(settle=1.0), "knowledge": Knowledge(prior="none")}
    options |= {"instruments": True, "forgetting": Forgetting(memory=20.0)}
    samples = q, dq, ddq, tau
    whole = Tracker(base, sigma, RATE, **options)
    (event,) = feed_with_reference(whole, samples, reference)
    assert event.kind == "load"
    assert 3500 < event.sample < 3700
    state, parts = None, []
    for start, stop in ((0, 1777), (1777, 3517), (3517, None)):
        tracker = Tracker(base, sigma, RATE, **options)
        if state is not None:
            tracker.restore(state)
        parts += feed_with_reference(tracker, samples, reference, start, stop)
        state = tracker.state()
    assert parts == [event]
    for name, array in whole.state().items():
        np.testing.assert_array_equal(state[name], array)
    off = (whole.beta - base.matrix @ theta) / whole.std
    assert np.sqrt(np.mean(off**2)) < 3.0  # what the load did since it was there is taken back
    assert base.idim.is_consistent(whole.theta)
    point = whole.projected()
    assert point.solution.certificate.worst < 1e-6
    before = whole.std
    whole.reset(0.25)
    np.testing.assert_allclose(whole.std, 2.0 * before, rtol=1e-6)


def test_what_instruments_cannot_follow_is_refused():
    base, sigma, _, samples, reference = referenced()
    tracker = Tracker(base, sigma, RATE, instruments=True)
    with pytest.raises(InputError, match="sample 1: has no reference"):
        fed(tracker, samples, 0, 1)
    with pytest.raises(InputError, match="sample 1: its reference is not a motion"):
        feed_with_reference(tracker, samples, [np.nan * part for part in reference], 0, 1)
    assert tracker.samples == 0
    for options in ({"drift": Drift(walk=1e-3)}, {"forgetting": Forgetting(9.0, directional=True)}):
        with pytest.raises(InputError, match="forgets by one memory"):
            Tracker(base, sigma, RATE, instruments=True, **options)
    remembers = base_parameters(build_idim(base.idim.robot, "dahl"))
    with pytest.raises(InputError, match="has memory, but"):
        Tracker(remembers, sigma, RATE, instruments=True)


def test_a_start_is_what_was_known():
    base, sigma, _, samples = stream()
    whole, first = Tracker(base, sigma, RATE), Tracker(base, sigma, RATE)
    fed(whole, samples)
    fed(first, samples, 0, 3000)
    second = Tracker(base, sigma, RATE, start=PriorKnowledge(first.beta, first.covariance))
    fed(second, samples, 3000)
    np.testing.assert_allclose(second.beta, whole.beta, atol=1e-6 * np.abs(whole.beta).max())
    np.testing.assert_allclose(second.std, whole.std, rtol=1e-6)


def test_it_never_leaves_what_can_exist_and_ends_where_the_cone_problem_ends():
    """A diffuse start, noise that pulls least squares out of the cones."""
    base, sigma, _, samples = stream(3, 6.0, noise=3.0)
    tracker = Tracker(base, sigma, RATE, knowledge=Knowledge(prior="none"))
    for k, each in enumerate(zip(*samples, strict=True)):
        tracker.update(*each)
        if k < 300 or k % 50 == 0:
            assert base.idim.is_consistent(tracker.theta)
    point = tracker.projected()
    assert not base.idim.is_consistent(base.standard(tracker.beta))
    R, z = tracker._memory.R[:, : base.count], tracker._memory.R[:, base.count]

    def cost(beta):
        return np.sum((R @ beta - z) ** 2)

    own = base.matrix @ tracker.theta
    assert cost(own) - cost(point.beta) < 2.0 * tracker.gap + 0.01
    assert np.linalg.norm(R @ (own - point.beta)) < 0.1 * np.sqrt(base.count)


@pytest.mark.long
def test_a_long_run_does_not_drift():
    """Eighty thousand updates of a robot that repeats its motion."""
    base, sigma, theta, samples = stream(1, 4.0, noise=0.0)
    rng = np.random.default_rng(0)
    tracker = Tracker(
        base, sigma, RATE, forgetting=Forgetting(memory=5.0), knowledge=Knowledge(prior="none")
    )
    truth = base.matrix @ theta
    q, dq, ddq, tau = samples
    for _ in range(40):
        noisy = tau + sigma * rng.normal(size=tau.shape)
        fed(tracker, (q, dq, ddq, noisy))
        assert np.all(np.diag(tracker._memory.R[:, : base.count]) > 0.0)
        assert np.all(np.abs(tracker.beta - truth) < 6.0 * tracker.std)
        assert base.idim.is_consistent(tracker.theta)
    point = tracker.projected()
    R = tracker._memory.R[:, : base.count]
    assert np.linalg.norm(R @ (base.matrix @ tracker.theta - point.beta)) < 0.1


def carrying(seconds=24.0, seed=0, mass=1.0):
    """A robot that picks up a load after half of the time."""
    base, sigma, theta, (q, dq, ddq, _) = stream(6, seconds, seed=seed)
    loaded = theta.copy()
    body = 10 * (base.idim.tree.bodies - 1)
    phi = from_com(mass, [0.02, -0.01, 0.08], 2e-3 * np.eye(3))
    loaded[body : body + 10] += phi
    half = len(q) // 2
    tau = np.vstack([
        base.idim.torque(theta, q[:half], dq[:half], ddq[:half]),
        base.idim.torque(loaded, q[half:], dq[half:], ddq[half:]),
    ])  # fmt: skip
    tau = tau + sigma * np.random.default_rng(seed + 1).normal(size=q.shape)
    return base, sigma, theta, _, half, (q, dq, ddq, tau)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_a_load_picked_up_is_noticed_and_weighed(seed):
    base, sigma, _, _, half, samples = carrying(seed=seed)
    tracker = Tracker(base, sigma, RATE, drift=Drift(walk_friction=1e-4))
    assert fed(tracker, samples, 0, half) == []
    before, error = tracker.beta, tracker.std
    (event,) = fed(tracker, samples, half, half + int(5 * RATE))
    assert event.kind == "load"
    assert half < event.sample <= half + 0.5 * RATE
    assert event.statistic > event.threshold
    found = tracker.load
    assert found is not None
    assert abs(found.mass - 1.0) < 0.05
    assert abs(found.mass - 1.0) < 5.0 * found.std[0] + 0.02
    # the model is not taken along: what it learnt of the load is taken back
    assert np.all(np.abs(tracker.beta - before) < 3.0 * error)


def test_torques_are_predicted_by_what_was_learnt_before_with_what_is_carried():
    base, sigma, _, _, half, samples = carrying(seconds=10.0)
    tracker = Tracker(base, sigma, RATE)
    assert tracker.surprise.threshold == 0.0
    for part, loaded in ((slice(2000, half), False), (slice(half + 500, None), True)):
        fed(tracker, samples, tracker.samples, part.start)
        assert tracker.loaded == loaded
        q, dq, ddq, tau = (each[part] for each in samples)
        errors, before = [], tracker.beta
        for each in zip(q, dq, ddq, tau, strict=True):
            errors.append((tracker.predict(*each[:3]) - each[3]) / sigma)
            tracker.update(*each)
        if not loaded:
            X = base.idim.regressor(q[:1], dq[:1], ddq[:1])[0][:, base.kept]
            np.testing.assert_allclose(errors[0] * sigma + tau[0], X @ before, rtol=1e-9)
        # noise, and what is not known yet
        assert 0.9 < np.mean(np.square(errors)) < 1.2
    assert 0.8 < tracker.surprise.level < 1.2
    assert tracker.surprise.statistic < tracker.surprise.threshold


@pytest.mark.usefixtures("registered")
def test_a_prediction_changes_nothing():
    """Not even the states of friction that remembers."""
    _, sigma, _, samples = stream(2, 2.0)
    base = base_parameters(build_idim(toy.arm(2), "stribeck + dahl-spectrum"))
    seen, blind = Tracker(base, sigma, RATE), Tracker(base, sigma, RATE)
    for each in zip(*samples, strict=True):
        seen.predict(*each[:3])
        seen.update(*each)
        blind.update(*each)
    assert blind._memory.state.any()
    for name, kept in blind.state().items():
        np.testing.assert_array_equal(seen.state()[name], kept)


@pytest.mark.parametrize("mass", [0.0, 1.0])
def test_a_load_from_the_first_sample_on_is_told_by_the_start(mass):
    """Once, when the level is known, and weighed; without a start it is the robot's own."""
    base, sigma, _, _, half, samples = carrying(16.0, mass=mass)
    learnt = Tracker(base, sigma, RATE)
    assert fed(learnt, samples, 0, half) == []
    known = PriorKnowledge(learnt.beta, np.diag(learnt.std**2))
    tracker = Tracker(base, sigma, RATE, start=known)
    events = fed(tracker, samples, half)
    assert [event.kind for event in events] == (["load"] if mass else [])
    for event in events:
        assert 3.0 * RATE <= event.sample < 4.0 * RATE
        assert event.statistic > event.threshold
    assert (tracker.load is not None) == tracker.loaded == bool(mass)
    if tracker.load is not None:
        assert abs(tracker.load.mass - mass) < 0.02
        np.testing.assert_allclose(tracker.beta, known.beta, rtol=1e-9)
    assert fed(Tracker(base, sigma, RATE), samples, half, half + 2000) == []


def test_another_drive_than_that_of_the_start_is_no_load():
    base, sigma, _, _, half, (q, dq, ddq, tau) = carrying(16.0, mass=0.0)
    learnt = Tracker(base, sigma, RATE)
    fed(learnt, (q, dq, ddq, tau), 0, half)
    tracker = Tracker(base, sigma, RATE, start=PriorKnowledge(learnt.beta, learnt.covariance))
    doubled = tau * np.where(np.arange(6) == 1, 2.0, 1.0)
    (event,) = fed(tracker, (q, dq, ddq, doubled), half)
    assert event.kind == "misfit"
    assert not tracker.loaded


@pytest.mark.parametrize("robot", [2, 4])
def test_what_a_load_explains_is_what_joint_least_squares_says(robot):
    """Of a start with errors of its own, by the two factors of the recursion alone."""
    base = stream(robot, 2.0)[0]
    rng, p = np.random.default_rng(3), base.count
    shift = base.matrix[:, 10 * (robot - 1) : 10 * robot]
    std, R0, X = np.full(10, 2.0), np.triu(rng.normal(size=(p, p))), rng.normal(size=(3 * p, p))
    R0[np.diag_indices(p)] = 1.0 + np.abs(np.diag(R0))
    b0, y = rng.normal(size=p), 5.0 * rng.normal(size=3 * p)

    def solve(rows, side):
        found = np.linalg.lstsq(rows, side, rcond=None)[0]
        return found, float(np.sum((rows @ found - side) ** 2))

    start = np.column_stack([R0, R0 @ b0])
    now = np.linalg.qr(np.vstack([start, np.column_stack([X, y])]), mode="r")[:p]
    _, squares = solve(np.vstack([R0, X]), np.append(R0 @ b0, y))
    both = np.block(
        [[R0, -R0 @ shift], [X, np.zeros((3 * p, 10))], [np.zeros((10, p)), np.eye(10) / 2.0]]
    )
    found, left = solve(both, np.concatenate([R0 @ b0, y, np.zeros(10)]))
    carried = weigh_load(start, now, shift, std, squares, 3 * p)
    np.testing.assert_allclose(carried.phi, found[p:], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(carried.share, left / squares, rtol=1e-8)
    covariance = np.linalg.inv(both.T @ both)[p:, p:]
    half = np.linalg.inv(carried.factor[:, :10])
    np.testing.assert_allclose(half @ half.T, covariance, rtol=1e-6, atol=1e-9)


def test_a_load_put_down_is_noticed():
    base, sigma, theta, _, half, (q, dq, ddq, tau) = carrying()
    tracker = Tracker(base, sigma, RATE)
    later = half + int(4 * RATE)
    tau = tau.copy()
    rng = np.random.default_rng(9)
    rest = base.idim.torque(theta, q[later:], dq[later:], ddq[later:])
    tau[later:] = rest + sigma * rng.normal(size=rest.shape)
    events = fed(tracker, (q, dq, ddq, tau))
    assert [event.kind for event in events] == ["load", "load", "released"]
    assert later < events[1].sample <= later + 0.5 * RATE
    assert not tracker.loaded
    assert tracker.load is None


@pytest.mark.long
def test_false_alarms_are_as_rare_as_was_said():
    """White errors: 900 an hour for 4 minutes, and none at the usual one."""
    base, sigma, theta, (q, dq, ddq, _) = stream(2, 60.0)
    clean = base.idim.torque(theta, q, dq, ddq)
    rng = np.random.default_rng(2)
    for often in (900.0, 0.1):
        start = PriorKnowledge(
            base.matrix @ theta, 1e-12 * np.diag((base.matrix @ theta) ** 2 + 1.0)
        )
        tracker = Tracker(base, sigma, RATE, alarm=AlarmOptions(false_alarms=often), start=start)
        count = 0
        for _ in range(4):
            tau = clean + sigma * rng.normal(size=q.shape)
            count += sum(event.kind == "load" for event in fed(tracker, (q, dq, ddq, tau)))
        expected = often / 3600.0 * 4 * 60.0
        if often > 1.0:
            assert 0.05 * expected < count < 1.3 * expected
        else:
            assert count == 0


@pytest.mark.parametrize(
    "knowledge", [None, pytest.param(Knowledge(prior="none"), marks=pytest.mark.long)]
)
def test_stopped_and_resumed_is_as_if_it_had_not_been(knowledge):
    base, sigma, _, _, half, samples = carrying(8.0)
    options = {"forgetting": Forgetting(memory=20.0), "drift": Drift(walk=1e-3)}
    options |= {"alarm": AlarmOptions(settle=1.0), "knowledge": knowledge}
    whole = Tracker(base, sigma, RATE, **options)
    events = fed(whole, samples)
    parts = []
    state = None
    cuts = ((0, 1), (1, 777), (777, half + 40), (half + 40, None))
    for start, stop in cuts:
        tracker = Tracker(base, sigma, RATE, **options)
        assert tracker.fingerprint == whole.fingerprint
        if state is not None:
            tracker.restore(state)
        parts += fed(tracker, samples, start, stop)
        state = tracker.state()
    assert parts == events
    for name, array in whole.state().items():
        np.testing.assert_array_equal(state[name], array)


def test_a_sample_that_is_none_changes_nothing():
    base, sigma, _, samples = stream(2, 2.0)
    tracker = Tracker(base, sigma, RATE, knowledge=Knowledge(prior="none"))
    fed(tracker, samples, 0, 100)
    before = tracker.state()
    bad = np.array([0.1, np.nan])
    with pytest.raises(InputError, match=r"sample 101: ddq_joint_2 is nan"):
        tracker.update(samples[0][100], samples[1][100], bad, samples[3][100])
    for name, array in tracker.state().items():
        np.testing.assert_array_equal(array, before[name])


def test_what_no_tracker_can_be_made_of():
    base, sigma, _, _ = stream(2, 2.0)
    with pytest.raises(InputError, match="sigma needs a positive number for each of 2 joints"):
        Tracker(base, [1.0], RATE)
    with pytest.raises(InputError, match="rate"):
        Tracker(base, sigma, 0.0)
    with pytest.raises(InputError, match="not positive definite"):
        Tracker(
            base,
            sigma,
            RATE,
            start=PriorKnowledge(np.zeros(base.count), np.zeros((base.count,) * 2)),
        )
    with pytest.raises(InputError, match=r"needs .* base parameters"):
        Tracker(base, sigma, RATE, start=PriorKnowledge(np.zeros(2), np.eye(2)))
    with pytest.raises(InputError, match="one memory"):
        Tracker(base, sigma, RATE, forgetting=Forgetting(directional=True))
    with pytest.raises(InputError, match="other"):
        Tracker(base, sigma, RATE, knowledge=Knowledge(consistency="base"))
    with pytest.raises(InputError, match="metric"):
        Tracker(base, sigma, RATE, knowledge=Knowledge(metric="entropic"))
    tracker = Tracker(base, sigma, RATE)
    with pytest.raises(InputError, match="give the tracker knowledge"):
        _ = tracker.theta
    with pytest.raises(InputError, match="not that of such a tracker"):
        tracker.restore({"memory_R": np.zeros(3)})
    with pytest.raises(InputError, match="link 'link_3' is not known; did you mean 'link_"):
        Tracker(base, sigma, RATE, link="link_3")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("friction", ["load", "temperature"])
def test_friction_of_more_than_the_motion_is_refused(friction):
    base = base_parameters(build_idim(toy.arm(1), friction))
    words = rf"its friction depends on the {friction} of its drive, which a tracker does not follow"
    with pytest.raises(InputError, match=words):
        Tracker(base, [1.0], RATE)


def test_what_an_element_needs_is_told_and_not_its_friction():
    base = base_parameters(build_idim(toy.arm(1), elements=[JointElements(0, known())]))
    with pytest.raises(InputError, match=r"^toy: its friction depends on the known torque of the"):
        Tracker(base, [1.0], RATE)


def test_trackers_of_other_robots_and_options_are_told_apart():
    base, sigma, _, _ = stream(2, 2.0)
    emps = base_parameters(build_idim(load_robot(EXAMPLES / "emps" / "emps.toml")))
    others = [
        Tracker(base, sigma, RATE),
        Tracker(base, 2.0 * sigma, RATE),
        Tracker(base, sigma, 2.0 * RATE),
        Tracker(base, sigma, RATE, forgetting=Forgetting(memory=3.0)),
        Tracker(base, sigma, RATE, knowledge=Knowledge(prior="none")),
        Tracker(base, sigma, RATE, knowledge=Knowledge(prior="nominal")),
        Tracker(emps, [1.0], RATE),
    ]
    assert len({tracker.fingerprint for tracker in others}) == len(others)


def test_a_reset_keeps_the_estimate_and_believes_it_less():
    base, sigma, theta, samples = stream(2, 8.0)
    tracker = Tracker(base, sigma, RATE)
    fed(tracker, samples, 0, 3000)
    beta, std = tracker.beta, tracker.std
    tracker.reset(1e-4)
    np.testing.assert_array_equal(tracker.beta, beta)
    np.testing.assert_allclose(tracker.std, 100.0 * std, rtol=1e-3)
    fed(tracker, samples, 3000)
    fresh = Tracker(base, sigma, RATE)
    fed(fresh, samples, 3000)
    np.testing.assert_allclose(tracker.std, fresh.std, rtol=0.05)
    assert np.all(np.abs(tracker.beta - base.matrix @ theta) < 5.0 * tracker.std)
    with pytest.raises(InputError, match="above 0"):
        tracker.reset(0.0)
