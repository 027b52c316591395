"""Time stamps onto a uniform clock."""

from __future__ import annotations

import numpy as np
import pytest

from dynident.core.errors import InputError
from dynident.recording import clock as module
from dynident.recording.clock import Clocking, find_clock, onto_clock


def place(sample: int) -> str:
    return f"log.csv, row {sample + 2}, column 1 (time)"


def found(time, q=None, **options):
    time = np.asarray(time, dtype=float)
    q = np.sin(time - time[0])[:, None] if q is None else q
    return find_clock(time, q, "log", place, Clocking(**options))


@pytest.mark.parametrize("start", [0.0, -3.0, 1.46e9])
@pytest.mark.parametrize("rate", [100.0, 1000.0, 5000.0, 240.0])
def test_exact_stamps_are_kept(start, rate):
    time = start + np.arange(5000) / rate
    clock = found(time)
    assert clock.uniform
    assert clock.warnings == ()
    assert clock.rate == pytest.approx(rate, rel=1e-6)
    signal = np.ones((5000, 2))
    assert onto_clock(signal, clock) is signal


@pytest.mark.parametrize(("rate", "digits"), [(3000.0, 4), (700.0, 3), (333.0, 3), (5000.0, 4)])
def test_rounded_stamps_are_no_jitter(rate, digits):
    clock = found(np.round(np.arange(20000) / rate, digits))
    assert clock.uniform
    assert clock.warnings == ()
    assert clock.rate == pytest.approx(rate, rel=1e-5)


def test_repeated_and_backward_stamps_are_refused():
    with pytest.raises(InputError, match=r"log.csv, row 5, .*time 0.2 repeats 0.2"):
        found([0.0, 0.1, 0.2, 0.2, 0.3])
    with pytest.raises(InputError, match=r"row 4, .* and 1 more rows: .*goes back from 0.2"):
        found([0.0, 0.2, 0.1, 0.3, 0.2])
    with pytest.raises(InputError, match="two time stamps, found 1"):
        found([0.0])


def test_gaps_cut_segments():
    time = np.arange(300) / 100
    time[100:] += 0.5
    time[200:] += 2.0
    clock = found(time)
    assert clock.uniform
    assert clock.runs == ((0, 100), (100, 200), (200, 300))
    assert clock.segments == clock.runs
    (warning,) = clock.warnings
    assert "2 gaps in time, 2.52 s together" in warning
    assert "longest 2.01 s before log.csv, row 202" in warning
    assert clock.rate == 100.0


def test_fragments_between_gaps_are_dropped():
    time = np.arange(205) / 100
    time[100:] += 1.0
    time[105:] += 1.0
    clock = found(time)
    assert clock.runs == ((0, 100), (105, 205))
    assert clock.segments == ((0, 100), (100, 200))
    assert "1 runs of fewer than 10 samples between gaps dropped, 5 samples" in clock.warnings[1]
    signal = np.arange(205.0)[:, None]
    kept = onto_clock(signal, clock)[:, 0]
    np.testing.assert_array_equal(kept, np.r_[0:100, 105:205])


def test_nothing_but_fragments_is_refused():
    time = np.arange(40) / 100 + np.repeat(np.arange(8), 5)
    with pytest.raises(InputError, match="no run of 10 samples is without a gap"):
        found(time)


@pytest.mark.parametrize("start", [0.0, 1.46e9])
@pytest.mark.parametrize("block", [1 << 16, 500])
def test_jitter_is_resampled(monkeypatch, start, block):
    monkeypatch.setattr(module, "BLOCK", block)
    rng = np.random.default_rng(3)
    ideal = np.arange(4000) / 200
    time = start + ideal + rng.uniform(-1e-3, 1e-3, 4000)
    own = time - time[0]
    signal = np.column_stack([np.sin(2 * own), np.cos(5 * own)])
    clock = found(time)
    assert not clock.uniform
    assert clock.rate == pytest.approx(200.0, rel=1e-4)
    (warning,) = clock.warnings
    assert "jitter by up to" in warning
    assert "ms rms" in warning
    result = onto_clock(signal, clock)
    uniform = np.arange(len(result)) / clock.rate
    truth = np.column_stack([np.sin(2 * uniform), np.cos(5 * uniform)])
    # an error of stamps of 0.24 us is what float64 leaves of an epoch time
    np.testing.assert_allclose(result, truth, atol=3e-7 if start == 0.0 else 3e-6)
    assert clock.segments == ((0, len(result)),)
    assert abs(len(result) - 4000) <= 1


def test_lost_samples_are_filled_and_do_not_stretch_the_period():
    time = np.delete(np.arange(5000) / 1000, [700, 1500, 4000])
    clock = found(time)
    assert clock.rate == 1000.0
    result = onto_clock(np.sin(time)[:, None], clock)
    np.testing.assert_allclose(result[:, 0], np.sin(np.arange(5000) / 1000), atol=1e-9)


def test_jitter_and_gaps_together():
    rng = np.random.default_rng(5)
    time = np.arange(600) / 100 + rng.uniform(-1e-3, 1e-3, 600)
    time[300:] += 3.0
    clock = found(time)
    segments = clock.segments
    result = onto_clock(np.sin(time)[:, None], clock)
    assert len(clock.warnings) == 2
    assert segments[-1][1] == len(result)
    for (start, stop), (first, _) in zip(segments, clock.runs, strict=True):
        uniform = time[first] + np.arange(stop - start) / clock.rate
        np.testing.assert_allclose(result[start:stop, 0], np.sin(uniform), atol=1e-7)


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(8)
    time = np.cumsum(rng.uniform(0.8e-3, 1.2e-3, 3000))
    signal = rng.normal(size=(3000, 2))
    clock = found(time)
    whole = onto_clock(signal, clock)
    monkeypatch.setattr(module, "BLOCK", 333)
    np.testing.assert_allclose(onto_clock(signal, clock), whole, atol=1e-12)
