from functools import cache
from pathlib import Path

import numpy as np
import pytest
from loops import next_state, output
from scipy.io import loadmat

from dynident.control.controller import p_p, pd
from dynident.core.errors import InputError
from dynident.simulation.gains import identify_gains

EMPS = Path(__file__).parents[1] / "examples" / "emps"
RATE = 1000.0


@pytest.fixture(scope="module")
def emps():
    log = loadmat(EMPS / "DATA_EMPS.mat")
    truth = float(log["kp"].item()), float(log["kv"].item())
    return log["qg"].ravel(), log["qm"].ravel(), log["vir"].ravel(), truth


KP, KV = np.array([160.0, 40.0, 80.0]), np.array([243.0, 30.0, 60.0])


def simulate(controller, samples=5000, count=0.0, dqref=True):
    """Reference, its slope, position as the controller saw it, velocity and output.

    Three masses with friction and a spring, each under its own controller; `count` is the
    encoder's resolution.
    """
    t = np.arange(samples)[:, None] / RATE
    phase, fast = np.arange(3), 2.0 * np.pi * (1.1 + 0.2 * np.arange(3))
    slow = 2.0 * np.pi * 0.4
    qref = 0.3 * np.sin(slow * t + phase) + 0.1 * np.sin(fast * t)
    slope = 0.3 * slow * np.cos(slow * t + phase) + 0.1 * fast * np.cos(fast * t)
    mass, viscous, dry = np.array([2.7, 0.5, 1.0]), np.array([6.0, 0.5, 2.0]), 0.3
    q, dq = qref[0].copy(), slope[0].copy()
    seen, speed, u = np.empty_like(qref), np.empty_like(qref), np.empty_like(qref)
    z = np.tile(q[:, None], (1, controller.states))
    for k in range(samples):
        seen[k] = np.round(q / count) * count if count else q
        speed[k] = dq
        w = np.column_stack([qref[k], slope[k] * dqref, np.zeros(3), seen[k], dq])
        u[k] = output(controller, z, w)
        z = next_state(controller, z, w)
        for _ in range(2):
            ddq = (u[k] - viscous * dq - dry * np.tanh(dq / 1e-2) - 0.5 * np.sin(q)) / mass
            dq = dq + ddq * 0.5 / RATE
            q = q + dq * 0.5 / RATE
    return qref, slope, seen, speed, u


def cascade(lag=2, **options):
    return p_p(KP, KV, rate=RATE, velocity="differences", lag=lag, **options)


@cache
def plain():
    """What the cascade does without limits and counts."""
    return simulate(cascade())


# ---------------------------------------------------------------- the measured log


def test_emps_gives_its_documented_gains(emps):
    qref, q, vir, (kp, kv) = emps
    found = identify_gains(qref, q, vir, RATE, limit=10.0)
    assert found.kp[0] == pytest.approx(kp, rel=1e-4)
    assert found.kv[0] == pytest.approx(kv, rel=5e-4)
    assert (found.lag[0], found.shift[0]) == (2, 0)
    assert found.relative_error[0] == pytest.approx(0.237, abs=0.002)
    assert found.candidates[0][0].velocity == "backward"
    assert found.kv_std[0] < 0.005
    assert found.samples[0] > 24000
    assert found.estimator == ("instrumental variables",)
    assert len(found.candidates[0]) == 4 * 3


def test_emps_as_a_pd_is_the_same_law(emps):
    qref, q, vir, (kp, kv) = emps
    found = identify_gains(qref, q, vir, RATE, kind="pd", lags=(1, 2))
    assert found.kp[0] == pytest.approx(kp * kv, rel=5e-4)
    assert found.kd[0] == pytest.approx(kv, rel=5e-4)
    assert found.feedforward[0] == 0.0  # no velocity reference


@pytest.mark.parametrize("count", [1e-6, 5e-6])
def test_a_coarser_log_of_emps_biases_least_squares_only(emps, count):
    """Least squares would take another lag, and shrink kv; the instruments do neither."""
    qref, q, vir, (kp, kv) = emps
    found = identify_gains(qref, np.round(q / count) * count, vir, RATE)
    assert found.lag[0] == 2
    assert found.kp[0] == pytest.approx(kp, rel=1e-3)
    assert found.kv[0] == pytest.approx(kv, rel=1e-3)
    smallest = min(found.candidates[0], key=lambda c: c.relative_error)
    assert smallest.lag == 4
    assert abs(smallest.least_squares[1] / kv - 1.0) > 0.08
    if count == 5e-6:
        assert found.candidates[0][0].least_squares[1] < 0.96 * kv


# ---------------------------------------------------------------- simulated logs


@pytest.mark.long
@pytest.mark.parametrize("lag", [1, 2, 4])
def test_cascade_with_saturation_and_a_quantised_encoder(lag):
    """What the controller saw is what was logged: the gains are exact, saturation or not."""
    limit = np.array([20.0, 6.0, 11.0])
    qref, _, q, _, u = simulate(cascade(lag, limit=limit), samples=3000, count=1e-5)
    limited = np.mean(np.abs(u) >= limit, axis=0)
    assert np.all((limited > 0.01) & (limited < 0.5)), limited
    found = identify_gains(qref, q, u, RATE, limit=limit)
    np.testing.assert_allclose(found.kp, KP, rtol=1e-6)
    np.testing.assert_allclose(found.kv, KV, rtol=1e-6)
    np.testing.assert_array_equal(found.lag, lag)
    np.testing.assert_array_equal(found.shift, 0)
    assert np.all(found.relative_error < 1e-6)
    assert np.all(found.samples < (1.0 - limited) * len(q))
    assert not found.kp.flags.writeable
    # without the limit saturated samples, a few or many, spoil the fit, and it says so
    assert np.all(identify_gains(qref, q, u, RATE).relative_error > 0.05)


@pytest.mark.long
@pytest.mark.parametrize("shift", [-1, 1])
def test_an_output_logged_early_or_late_is_aligned(shift):
    qref, _, q, _, u = (signal[:3000] for signal in plain())
    found = identify_gains(qref, q, np.roll(u, shift, axis=0), RATE)
    np.testing.assert_array_equal(found.shift, shift)
    np.testing.assert_allclose(found.kv, KV, rtol=1e-6)


def test_gains_survive_a_position_log_that_was_rounded():
    qref, _, q, _, u = plain()
    found = identify_gains(qref, np.round(q / 1e-5) * 1e-5, u, RATE)
    np.testing.assert_array_equal(found.lag, 2)
    np.testing.assert_allclose(found.kp, KP, rtol=1e-3)
    np.testing.assert_allclose(found.kv, KV, rtol=1e-3)


def test_standard_errors_cover_the_truth():
    qref, _, q, _, u = (signal[:2000] for signal in plain())
    rng = np.random.default_rng(0)
    inside, spread = [], []
    for _ in range(12):
        noisy = u + 0.05 * rng.normal(size=u.shape)
        found = identify_gains(qref, q, noisy, RATE, lags=[2])
        inside.append(
            [abs(found.kp - KP) < 1.96 * found.kp_std, abs(found.kv - KV) < 1.96 * found.kv_std]
        )
        spread.append(found.kv)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.06)
    np.testing.assert_allclose(np.std(spread, axis=0), found.kv_std, rtol=0.5)


@pytest.mark.long
def test_pd_with_and_without_its_velocity_reference():
    kp, kd = 40.0 * KV, np.array([300.0, 40.0, 60.0])
    for given in (True, False):
        law = pd(kp, kd, velocity_reference=given, rate=RATE)
        qref, dqref, q, dq, u = simulate(law, samples=3000)
        found = identify_gains(qref, q, u, RATE, kind="pd", dqref=dqref, dq=dq)
        np.testing.assert_allclose(found.kp, kp, rtol=1e-6)
        np.testing.assert_allclose(found.kd, kd, rtol=1e-6)
        np.testing.assert_array_equal(found.feedforward, float(given))
        assert {c[0].velocity for c in found.candidates} == {"measured"}
        np.testing.assert_array_equal(found.lag, 0)


@pytest.mark.long
def test_feedforward_of_a_cascade():
    law = p_p(KP, KV, 0.8, rate=RATE, velocity="differences", lag=2)
    qref, dqref, q, _, u = simulate(law, samples=3000)
    found = identify_gains(qref, q, u, RATE, dqref=dqref)
    np.testing.assert_allclose(found.feedforward, 0.8, rtol=1e-5)
    np.testing.assert_allclose(found.kv, KV, rtol=1e-5)


def test_a_reference_at_rest_leaves_least_squares():
    """Disturbances alone move the robot: the reference is not an instrument."""
    rng = np.random.default_rng(1)
    q = np.cumsum(rng.normal(size=2000)) * 1e-4
    speed = np.concatenate([[0.0], np.diff(q)]) * RATE
    found = identify_gains(np.zeros(2000), q, 5.0 * (20.0 * (0.0 - q) - speed), RATE)
    assert found.estimator == ("least squares",)
    assert found.kp[0] == pytest.approx(20.0)
    assert found.kv[0] == pytest.approx(5.0)


# ---------------------------------------------------------------- refusals


def test_refusals():
    t = np.arange(1000) / RATE
    qref, q = np.sin(t), np.sin(t - 0.01)
    u = qref - q

    def refuses(message, *signals, **options):
        with pytest.raises(InputError, match=message):
            identify_gains(*(signals or (qref, q, u)), options.pop("rate", RATE), **options)

    refuses("kind 'pp' is not known; did you mean 'p-p'", kind="pp")
    refuses("rate has to be positive, got 0 Hz", rate=0.0)
    refuses("lags have to be whole numbers of samples from 1", lags=(0, 2))
    refuses("lags have to be whole numbers", lags=())
    refuses("limit has to be positive: a number, or 1 of them", limit=[1.0, 2.0])
    refuses("limit has to be positive", limit=-1.0)
    refuses(r"output has shape \(999,\), q has \(1000,\)", qref, q, u[1:])
    refuses("qref has a value that is not a finite number", qref * np.nan, q, u)
    refuses("joint 1: 0 unsaturated samples, 50 are needed", limit=1e-9)
    refuses("joint 1: 24 unsaturated", qref[:30], q[:30], u[:30])
    refuses("joint 1: its gains do not show in this log", qref, q, 0.0 * u)
    refuses("joint 1: its gains do not show in this log", q, q, u)
