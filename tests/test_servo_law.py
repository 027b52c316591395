"""Position servos: dead band, punch, integral and limits, simulated and fitted."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from differences import assert_slope
from test_encoder import BIAS, DELAY, KP, RATE, log_of, twin
from thin import first

import dynident as di
from dynident.consistency.constraints import Bounds
from dynident.control.controller import EDGE, pd, servo
from dynident.control.reference import Reference
from dynident.core.errors import InputError
from dynident.encoders.currents import describe_scales, scale_currents
from dynident.simulation.loop import LoopColumn
from dynident.simulation.rollout import rollout, sensitive_rollout
from dynident.simulation.servo import limit_speeds

SERVO = {"kd": 0.4, "ki": 8.0, "deadband": 4e-3, "punch": 0.3, "speed_limit": 1.5, "limit": 12.0}
OWN = ("gain", "limit", "damping", "integral", "deadband", "punch", "speed_limit")


def servo_loop(tmp_path, seconds=2.0, **changes):
    """The twin of encoder logs under position servos."""
    _, loop, theta = twin(tmp_path, seconds)
    options = {**SERVO, "delay": loop.controller.delay, **changes}
    return replace(loop, controller=servo(KP, **options)), theta


@pytest.mark.long
@pytest.mark.parametrize("integrator", ["sdirk2", "ode3"])
def test_a_motion_is_differentiated_by_all_that_servos_have(tmp_path, integrator):
    loop, theta = servo_loop(tmp_path)
    loop = replace(loop, integrator=integrator, substeps=1 if integrator == "sdirk2" else 4)
    own = [LoopColumn(kind, 1) for kind in OWN] + [LoopColumn("delay"), LoopColumn("bias", 1)]
    by = np.concatenate([part.by_q for part in sensitive_rollout(loop, theta, (), ("q",), own)])

    def moved(kind, step):
        if kind == "bias":
            return rollout(replace(loop, bias=BIAS + step * (np.arange(3) == 1)), theta).q
        if kind == "delay":
            late = replace(loop.controller, delay=loop.controller.delay + step)
            return rollout(replace(loop, controller=late), theta).q
        value = loop.controller.parameter(kind)[1] + step
        return rollout(
            replace(loop, controller=loop.controller.with_values({f"{kind}2": value})), theta
        ).q

    for k, each in enumerate(own):
        assert np.max(np.abs(by[:, :, k])) > 1e-5, each
        step = 3e-6 if each.kind in ("limit", "damping", "integral", "punch") else 3e-7
        assert_slope(partial(moved, each.kind), by[:, :, k], step)


def test_a_servo_without_parts_is_a_pd_without_the_targets_speed(tmp_path):
    loop, theta = servo_loop(tmp_path)
    plain = pd(KP, 0.4, velocity_reference=False, delay=loop.controller.delay)
    none = servo(KP, 0.4, delay=loop.controller.delay)
    motions = [rollout(replace(loop, controller=each), theta).q for each in (plain, none)]
    np.testing.assert_allclose(motions[1], motions[0], atol=1e-9)


def test_the_bent_error_is_a_dead_band_and_a_sign_beyond_its_edge():
    law = servo(2.0, deadband=0.01, punch=0.3, n=1)
    e = np.array([-0.5, -0.02, -0.005, 0.0, 0.004, 0.02, 0.3])
    w = np.zeros((len(e), 1, 5))
    w[:, 0, 0] = e
    sharp = np.where(np.abs(e) > 0.01, 2.0 * (e - 0.01 * np.sign(e)) + 0.3 * np.sign(e), 0.0)
    np.testing.assert_allclose(law.answer(w)[:, 0], sharp, atol=2.0 * EDGE)


def test_targets_run_after_held_ones_at_their_speed():
    q, period, speed = np.array([[0.0], [0.1], [0.1], [0.1], [0.1]]), 0.02, np.array([2.0])
    out, by = np.empty_like(q), np.empty_like(q)
    limit_speeds(q, period, speed, out, by)
    t = (np.arange(5 * 20000) + 0.5) * period / 20000  # the mean over each sample, by quadrature
    fine = np.minimum(np.maximum(t - period, 0.0) * 2.0, 0.1).reshape(5, -1).mean(axis=1)
    np.testing.assert_allclose(out[:, 0], fine, atol=1e-8)
    others = [np.empty_like(q) for _ in range(2)]
    for side, other in zip((-1.0, 1.0), others, strict=True):
        limit_speeds(q, period, speed + 1e-6 * side, other, np.empty_like(q))
    np.testing.assert_allclose(by, (others[1] - others[0]) / 2e-6, atol=1e-8)


def test_an_integral_takes_a_rested_joint_to_its_target(tmp_path):
    loop, theta = servo_loop(tmp_path, seconds=6.0)
    still = np.tile(loop.reference.q[:1], (len(loop.reference.q), 1))
    none = np.zeros_like(still)
    loop = replace(loop, reference=Reference(RATE, still, none, none))
    left = {}
    for ki in (0.0, 30.0):
        motion = rollout(replace(loop, controller=servo(KP, 0.4, ki)), theta)
        left[ki] = np.abs(motion.measured[-1] - still[0])
    assert np.all(left[30.0] < 0.2 * left[0.0])


def test_what_servos_are_not_is_refused(tmp_path):
    with pytest.raises(InputError, match="kp has to be positive"):
        servo(0.0)
    with pytest.raises(InputError, match="punch must not be negative"):
        servo(1.0, punch=-1.0)
    loop, theta = servo_loop(tmp_path)
    with pytest.raises(InputError, match="targets that are held"):
        replace(loop, held=False, controller=servo(KP, speed_limit=1.0))
    plain = replace(loop, controller=pd(KP, 0.0))
    with pytest.raises(InputError, match="servo"):
        next(sensitive_rollout(plain, theta, (), ("q",), [LoopColumn("punch", 0)]))


def fit_servo(tmp_path, loop, true, **told):
    """Of a noisy log of the twin under a servo: what was fitted by name, and how."""
    robot, there, theta = twin(tmp_path)
    law = servo(KP, 0.4, delay=DELAY, **{**told, **true})
    log = log_of(replace(there, controller=law), theta)
    problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
    simulation = di.Simulation(servo(KP, 0.4, **told), width=0.03)
    found = di.identify(problem, "cloe", simulation=simulation, loop=loop)
    own = found.estimate.fitted
    values = dict(zip(own.names, zip(own.values, own.std, strict=True), strict=True))
    return values, found.estimate.message, found


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("deadband", "deadband", 0.01),
        pytest.param("integral", "ki", 20.0, marks=pytest.mark.long),
    ],
)
def test_the_part_that_a_servo_has_is_chosen_and_found(tmp_path, kind, key, value):
    values, words, fit = fit_servo(tmp_path, "delay,bias,servo", {key: value})
    assert f"of the servo {kind} (" in words
    others = {"deadband", "punch", "integral", "damping", "speed_limit"} - {kind}
    assert not any(f"{other}1" in values for other in others)
    _, notes = fit.model_mjcf()
    assert any("parameters of the loop" in note and f"{kind}2" in note for note in notes)
    for j in range(3):
        found, std = values[f"{kind}{j + 1}"]
        assert abs(found - value) < 5.0 * std + 1e-3 * value


@pytest.mark.long
def test_a_servo_that_has_no_parts_is_given_none(tmp_path):
    values, words, _ = fit_servo(tmp_path, "delay,bias,servo", {})
    assert "no part lowers the error" in words
    assert "deadband1" not in values


@pytest.mark.long
def test_a_limit_is_found_where_it_is_reached(tmp_path):
    values, _, found = fit_servo(tmp_path, "delay,bias,limit", {"limit": 14.0}, limit=11.0)
    for j in range(2):
        assert values[f"limit{j + 1}"][0] == pytest.approx(14.0, abs=0.02)
    # the file has the limit of the loop that was fitted
    document, notes = found.model_mjcf()
    assert b"forcerange" in document
    assert not any("limit1" in note for note in notes)
    with pytest.raises(InputError, match="give limit there"):
        fit_servo(tmp_path, "limit", {})


@pytest.mark.long
def test_servos_of_one_model_have_one_gain(tmp_path):
    """The arm's joints have the same limits; a joint that a constraint speaks of goes alone."""
    robot, there, theta = twin(tmp_path, 4.0)
    law = servo((60.0,) * 3, 0.4, gain=1.2, delay=DELAY)
    log = log_of(replace(there, controller=law), theta)
    problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
    simulation = di.Simulation(servo((60.0,) * 3, 0.4), width=0.03)
    options = {"simulation": simulation, "loop": "delay,bias,gain"}
    own = di.identify(problem, "cloe", **options).estimate.fitted
    gains = own.values[[own.names.index(f"gain{j}") for j in (1, 2, 3)]]
    np.testing.assert_allclose(gains, gains[0], rtol=1e-9)
    assert abs(gains[0] - 1.2) < 4.0 * own.std[own.names.index("gain1")]
    known = (Bounds(("gain3",), upper=1.0),)
    other = di.identify(problem, "cloe", constraints=known, **options).estimate.fitted
    apart = other.values[[other.names.index(f"gain{j}") for j in (1, 2, 3)]]
    assert apart[2] <= 1.0 + 1e-9
    assert apart[0] > 1.05


@pytest.mark.parametrize("gain_error", first([0.7, 0.0]))
def test_a_count_of_unsigned_current_is_told_as_far_as_the_gain_is(tmp_path, gain_error):
    """``|i| k = |tau| - t0``; errors of the gain are those of the count, too."""
    robot, loop, theta = twin(tmp_path)
    law = servo(KP, 0.4, delay=DELAY)
    loop = replace(loop, controller=law)
    tau, found = rollout(loop, theta).tau, []
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(size=tau.shape)
        counts = np.maximum(np.abs(tau) - 0.3, 0.0) / 0.05 + noise
        log = replace(log_of(loop, theta), unsigned=np.maximum(np.round(counts), 0.0))
        problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
        simulation = di.Simulation(law, width=0.03, bias=tuple(BIAS), targets="held")
        found.append(scale_currents(problem, simulation, theta, {2: gain_error}))
        assert found[-1][2].told == (gain_error == 0.0)
    words = describe_scales(found[-1])
    assert words.startswith("a count of current is 0.0")
    assert words.endswith("at j3 is not told") == (gain_error > 0.0)
    for j in range(2):
        value, spread = np.mean([[own[j].value, own[j].spread] for own in found], axis=0)
        assert abs(value - 0.05) < 0.02 * 0.05
        assert spread < 0.02
        assert found[0][j].threshold == pytest.approx(0.3, abs=0.1)


@pytest.mark.long
def test_a_fit_says_what_a_count_is(tmp_path):
    robot, loop, theta = twin(tmp_path)
    loop = replace(loop, controller=servo(KP, 0.4, delay=DELAY))
    counts = np.round(np.abs(rollout(loop, theta).tau) / 0.05)
    log = replace(log_of(loop, theta), unsigned=counts)
    problem = di.Problem(robot, di.prepare(log, bandwidth=10.0))
    simulation = di.Simulation(servo(KP, 0.4), width=0.03)
    fit = di.identify(problem, "cloe", simulation=simulation, loop="delay,bias,gain")
    told = re.search(r"a count of current is (\S+) \+- (\S+) Nm at j1", fit.estimate.message)
    value, wide = map(float, told.groups())
    assert abs(value - 0.05) < 2.0 * wide
    assert "a count of current" in fit.summary(full=True).replace("\n            ", " ")
