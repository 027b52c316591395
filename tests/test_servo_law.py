"""Position servos: dead band, punch, integral, limits and lost motion, simulated and fitted."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from differences import assert_slope
from test_encoder import BIAS, KP, RATE, twin

from dynident.control.controller import EDGE, pd, servo
from dynident.control.reference import Reference
from dynident.core.errors import InputError
from dynident.simulation.rollout import LoopColumn, rollout, sensitive_rollout
from dynident.simulation.servo import limit_speeds

SERVO = {"kd": 0.4, "ki": 8.0, "deadband": 4e-3, "punch": 0.3, "speed_limit": 1.5, "limit": 12.0}
OWN = ("gain", "limit", "damping", "integral", "deadband", "punch", "speed_limit", "backlash")


def servo_loop(tmp_path, seconds=2.0, **changes):
    """The twin of encoder logs under position servos."""
    _, loop, theta = twin(tmp_path, seconds)
    options = {**SERVO, "backlash": 0.02, "delay": loop.controller.delay, **changes}
    return replace(loop, controller=servo(KP, **options)), theta


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
        return rollout(replace(loop, controller=loop.controller.told({f"{kind}2": value})), theta).q

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
    with pytest.raises(InputError, match="continuous"):
        servo(1.0, rate=100.0)
    with pytest.raises(InputError, match="punch must not be negative"):
        servo(1.0, punch=-1.0)
    loop, theta = servo_loop(tmp_path)
    with pytest.raises(InputError, match="targets that are held"):
        replace(loop, held=False, controller=servo(KP, speed_limit=1.0))
    plain = replace(loop, controller=pd(KP, 0.0))
    with pytest.raises(InputError, match="servo"):
        next(sensitive_rollout(plain, theta, (), ("q",), [LoopColumn("punch", 0)]))
