"""What a log records: moments and spectra of the noise, resolution, jitter, refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from dynident.core.errors import InputError
from dynident.simulation.sensors import (
    Sensors,
    draw_sampling_instants,
    interpolate_by_cubics,
    logged,
    position_noise,
    quantise_positions,
)

RATE = 1000.0
SAMPLES = 20000
PLAIN = {
    "count": [0.0, 0.0],
    "position": [1e-4, 3e-4],
    "torque": [0.1, 2.0],
    "ripple": [0.0, 0.5],
    "ripple_order": [0.0, 12.0],
    "jitter": 0.0,
    "seed": 5,
}


def sensors(**changed: object) -> Sensors:
    return Sensors(**{**PLAIN, **changed})  # type: ignore[arg-type]


def motion(samples: int = SAMPLES) -> np.ndarray:
    """Two joints, smooth: amplitudes of a radian below 2 Hz."""
    t = np.arange(samples) / RATE
    return np.stack([np.sin(2 * np.pi * 0.7 * t), 0.8 * np.cos(2 * np.pi * 1.9 * t)], axis=1)


def torque(samples: int = SAMPLES) -> np.ndarray:
    t = np.arange(samples) / RATE
    return np.stack([5.0 * np.cos(2 * np.pi * 0.7 * t), np.sin(2 * np.pi * 3.0 * t)], axis=1)


def measured(s: Sensors, q: np.ndarray) -> np.ndarray:
    return quantise_positions(q + position_noise(s, len(q)), s.count)


def flat(x: np.ndarray) -> bool:
    """Whether the cumulative periodogram of a signal is that of white noise (Bartlett)."""
    power = np.abs(np.fft.rfft(x - x.mean()))[1:-1] ** 2
    walk = np.cumsum(power) / power.sum()
    away = np.abs(walk - np.arange(1, len(walk) + 1) / len(walk)).max()
    return bool(away < 2.0 / np.sqrt(len(power)))  # white noise exceeds it once in 1500 draws


def test_perfect_sensors_log_what_is():
    s, q, tau = Sensors.perfect(2), motion(), torque()
    assert s.n == 2
    logged_q, logged_tau = logged(s, RATE, measured(s, q), tau, q)
    np.testing.assert_array_equal(logged_q, q)
    np.testing.assert_array_equal(logged_tau, tau)


def test_noise_has_its_moments_and_is_white():
    s, q, tau = sensors(ripple=[0.0, 0.0]), motion(), torque()
    noise = position_noise(s, SAMPLES)
    error = logged(s, RATE, q + noise, tau, q)[1] - tau
    for signal, std in ((noise, s.position), (error, s.torque)):
        assert signal.std(axis=0) == pytest.approx(std, rel=0.02)
        assert np.all(np.abs(signal.mean(axis=0)) < 4.0 * std / np.sqrt(SAMPLES))
        standard = signal / std
        assert np.all(np.abs((standard**4).mean(axis=0) - 3.0) < 0.2)
        assert all(flat(column) for column in signal.T)
    together = np.corrcoef(np.hstack([noise, error]).T) - np.eye(4)
    assert np.abs(together).max() < 4.0 / np.sqrt(SAMPLES)


def test_position_noise_passes_into_the_log_unchanged():
    s, q = sensors(), motion()
    seen = measured(s, q)
    np.testing.assert_array_equal(logged(s, RATE, seen, torque(), q)[0], seen)


def test_quantised_to_the_nearest_count():
    count = np.array([2e-3, 0.0])
    q = motion()
    out = quantise_positions(q, count)
    np.testing.assert_array_equal(out[:, 1], q[:, 1])
    np.testing.assert_allclose(out[:, 0] / 2e-3, np.rint(q[:, 0] / 2e-3), atol=1e-9)
    error = out[:, 0] - q[:, 0]
    assert np.abs(error).max() <= 1e-3 + 1e-12
    assert error.std() == pytest.approx(2e-3 / np.sqrt(12.0), rel=0.05)
    np.testing.assert_allclose(quantise_positions(np.array([-2.6, 2.4]), np.ones(2)), [-3.0, 2.0])


def test_ripple_has_its_order_and_amplitude():
    s = sensors(position=[0.0, 0.0], torque=[0.0, 0.0])
    turns = 50.0
    q = np.tile(np.linspace(0.0, 2 * np.pi * turns, SAMPLES, endpoint=False)[:, None], 2)
    tau = np.zeros((SAMPLES, 2))
    ripple = logged(s, RATE, q, tau, q)[1]
    np.testing.assert_array_equal(ripple[:, 0], 0.0)
    line = np.abs(np.fft.rfft(ripple[:, 1])) * 2.0 / SAMPLES
    assert np.argmax(line) == 12 * turns
    assert line.max() == pytest.approx(0.5)
    assert np.delete(line, int(12 * turns)).max() < 1e-9


def test_same_seed_same_bits_and_signals_apart():
    q, tau = motion(), torque()
    s = sensors(jitter=2e-5, count=[1e-5, 1e-5])
    one, two = (logged(s, RATE, measured(s, q), tau, q) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    other = dataclasses.replace(s, seed=6)
    assert np.all(position_noise(other, 100) != position_noise(s, 100))
    np.testing.assert_array_equal(position_noise(s, 100), position_noise(s, 900)[:100])
    # less noise of one signal leaves that of the others alone
    quiet = dataclasses.replace(s, position=np.zeros(2))
    np.testing.assert_array_equal(
        draw_sampling_instants(quiet, RATE, 50), draw_sampling_instants(s, RATE, 50)
    )
    np.testing.assert_allclose(
        logged(quiet, RATE, measured(quiet, q), tau, q)[1], one[1], rtol=0, atol=1e-12
    )


def test_jitter_has_its_moments_and_order():
    instants = draw_sampling_instants(sensors(jitter=1e-4), RATE, SAMPLES)
    late = (instants - np.arange(SAMPLES) / RATE)[5:-5]
    assert late.std() == pytest.approx(1e-4, rel=0.03)
    assert abs(late.mean()) < 4e-4 / np.sqrt(SAMPLES)
    assert flat(late)
    wild = draw_sampling_instants(sensors(jitter=1e-3), RATE, SAMPLES)
    assert np.all(np.diff(wild) >= 0.0)
    assert wild[0] >= 0.0
    assert wild[-1] <= (SAMPLES - 1) / RATE


def test_local_cubic_is_exact_for_cubics_also_at_the_ends():
    places = np.array([0.0, 0.3, 1.0, 4.5, 8.2, 9.0])
    grid = np.arange(10.0)
    signal = np.stack([grid**3 - 2.0 * grid, 5.0 - grid**2], axis=1)
    exact = np.stack([places**3 - 2.0 * places, 5.0 - places**2], axis=1)
    np.testing.assert_allclose(interpolate_by_cubics(signal, places), exact, rtol=1e-12, atol=1e-11)
    at_samples = interpolate_by_cubics(motion(50), np.arange(50.0))
    np.testing.assert_allclose(at_samples, motion(50), rtol=0, atol=1e-15)


def test_jitter_moves_the_samples_and_their_second_differences():
    s = sensors(jitter=5e-5, position=[0.0, 0.0], torque=[0.0, 0.0], ripple=[0.0, 0.0])
    q, tau = motion(), torque()
    got_q, got_tau = logged(s, RATE, q, tau, q)
    clock = np.arange(SAMPLES) / RATE
    instants = draw_sampling_instants(s, RATE, SAMPLES)
    for got, signal in ((got_q, q), (got_tau, tau)):
        exact = CubicSpline(clock, signal)(instants)
        assert np.abs(got - exact).max() < 1e-7
        # what jitter does to an acceleration, and not what interpolation does
        seen, due = (np.diff(x, 2, axis=0) * RATE**2 for x in (got, exact))
        assert np.abs(seen - due).max() < 1e-3 * np.abs(due).max()
        straight = np.stack([np.interp(instants, clock, x) for x in signal.T], axis=1)
        lines = np.diff(straight, 2, axis=0) * RATE**2
        assert np.abs(seen - due).max() < 0.05 * np.abs(lines - due).max()


def test_the_log_with_jitter_holds_counts_and_the_noise_of_its_rows():
    q, tau = motion(), torque()
    s = sensors(jitter=5e-5, count=[1e-3, 0.0])
    got = logged(s, RATE, measured(s, q), tau, q)[0]
    np.testing.assert_allclose(got[:, 0] / 1e-3, np.rint(got[:, 0] / 1e-3), atol=1e-9)
    moved = interpolate_by_cubics(q, draw_sampling_instants(s, RATE, SAMPLES) * RATE)
    assert (got - moved)[:, 1].std() == pytest.approx(3e-4, rel=0.03)
    assert flat((got - moved)[:, 1])
    # one rounding, not two: noise and count add as they do without jitter
    assert (got - moved)[:, 0].std() == pytest.approx(np.hypot(1e-4, 1e-3 / 12**0.5), rel=0.05)


def test_ripple_belongs_to_the_position_where_the_log_samples():
    s = sensors(jitter=1e-4, position=[0.0, 0.0], torque=[0.0, 0.0])
    q, zero = motion(), np.zeros((SAMPLES, 2))
    moved, tau = logged(s, RATE, q, zero, q)
    np.testing.assert_allclose(tau[:, 1], 0.5 * np.sin(12.0 * moved[:, 1]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("ratio", [2, 5])
def test_sensors_are_frozen_copies(ratio):
    row = np.full(3, 1e-4)
    s = Sensors(row, row, row, row, row * ratio, 0.0, 0)
    row[0] = 7.0
    assert s.count[0] == 1e-4
    with pytest.raises(ValueError, match="read-only"):
        s.count[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        s.seed = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"count": []}, r"count has shape \(0,\)"),
        ({"position": [1e-4]}, r"position has shape \(1,\) but has to be one number per joint"),
        ({"torque": [[0.0, 0.0]]}, r"torque has shape \(1, 2\)"),
        ({"torque": [0.0, -1.0]}, "torque of joint 2 is -1.0 but has to be 0 or more"),
        ({"count": [np.nan, 0.0]}, "count of joint 1 is nan"),
        ({"position": [np.inf, 0.0]}, "position of joint 1 is inf"),
        ({"ripple": ["much", "some"]}, "ripple is .* but has to be 2 numbers"),
        ({"ripple": [0.1, 0.1]}, "ripple of joint 1 has ripple_order 0"),
        ({"jitter": -1e-5}, "jitter is -1e-05 but has to be 0 s or more"),
        ({"jitter": np.nan}, "jitter is nan"),
        ({"jitter": [1e-5, 1e-5]}, "jitter is .* but has to be 0 s or more"),
        ({"seed": -1}, "seed is -1 but has to be a whole number"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": True}, "seed is True"),
    ],
)
def test_wrong_sensors_are_refused(changed, message):
    with pytest.raises(InputError, match=message):
        sensors(**changed)


def test_signals_that_do_not_fit_are_refused():
    s, q, tau = sensors(jitter=1e-5), motion(100), torque(100)
    seen = measured(s, q)
    with pytest.raises(InputError, match=r"q_true has shape \(99, 2\)"):
        logged(s, RATE, seen, tau, q[:99])
    with pytest.raises(InputError, match=r"tau has shape \(100, 1\)"):
        logged(s, RATE, seen, tau[:, :1], q)
    with pytest.raises(InputError, match="rate is 0"):
        logged(s, 0.0, seen, tau, q)
    with pytest.raises(InputError, match="at most the sampling period"):
        logged(dataclasses.replace(s, jitter=2e-3), RATE, seen, tau, q)
    with pytest.raises(InputError, match="jitter needs 4 samples"):
        logged(s, RATE, seen[:3], tau[:3], q[:3])
    with pytest.raises(InputError, match="not what these sensors measure"):
        logged(dataclasses.replace(s, seed=6), RATE, seen, tau, q)
    with pytest.raises(InputError, match="not what these sensors measure"):
        logged(s, RATE, seen[10:], tau[10:], q[10:])
