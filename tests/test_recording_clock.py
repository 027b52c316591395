"""Time stamps onto a uniform clock."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dynident.core.errors import InputError
from dynident.filters import clock as module
from dynident.filters.clock import ClockOptions, find_clock, find_ordered_samples, resample_to_clock


def place(sample: int) -> str:
    return f"log.csv, row {sample + 2}, column 1 (time)"


def found(time, q=None, **options):
    time = np.asarray(time, dtype=float)
    q = np.sin(time - time[0])[:, None] if q is None else q
    return find_clock(time, q, "log", place, ClockOptions(**options))


@pytest.mark.parametrize("start", [0.0, -3.0, 1.46e9])
@pytest.mark.parametrize("rate", [100.0, 1000.0, 5000.0, 240.0])
def test_exact_stamps_are_kept(start, rate):
    time = start + np.arange(5000) / rate
    clock = found(time)
    assert clock.uniform
    assert clock.warnings == ()
    assert clock.rate == pytest.approx(rate, rel=1e-6)
    signal = np.ones((5000, 2))
    assert resample_to_clock(signal, clock) is signal


@pytest.mark.parametrize(("rate", "digits"), [(3000.0, 4), (700.0, 3), (333.0, 3), (5000.0, 4)])
def test_rounded_stamps_are_no_jitter(rate, digits):
    clock = found(np.round(np.arange(20000) / rate, digits))
    assert clock.uniform
    assert clock.warnings == ()
    assert clock.rate == pytest.approx(rate, rel=1e-5)


def test_repeated_and_backward_stamps_are_refused():
    with pytest.raises(InputError, match=r"log.csv, row 5, .*time 0.2 repeats 0.2"):
        found([0.0, 0.1, 0.2, 0.2, 0.3])
    words = r"row 4, .* and 1 more rows: .*goes back from 0.2; is this the time\? check the columns"
    with pytest.raises(InputError, match=words):
        found([0.0, 0.2, 0.1, 0.3, 0.2])
    late = [*(0.1 * np.arange(30)), 0.0]
    with pytest.raises(InputError, match=r"goes back from 2.9.*; set bad_rows = 'cut'"):
        found(late)
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
    assert "1 run of fewer than 10 samples between gaps dropped, 5 samples" in clock.warnings[1]
    signal = np.arange(205.0)[:, None]
    kept = resample_to_clock(signal, clock)[:, 0]
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
    result = resample_to_clock(signal, clock)
    uniform = np.arange(len(result)) / clock.rate
    truth = np.column_stack([np.sin(2 * uniform), np.cos(5 * uniform)])
    # an error of stamps of 0.24 us is what float64 leaves of an epoch time
    np.testing.assert_allclose(result, truth, atol=3e-7 if start == 0.0 else 3e-6)
    assert clock.segments == ((0, len(result)),)
    assert abs(len(result) - 4000) <= 1


@pytest.mark.parametrize(("digits", "said"), [(7, 0), (6, 1)])
def test_stamps_of_single_precision_are_not_told_of(digits, said):
    """Their digits are fewer at the end of the log: jitter of 10 us there, or of 100."""
    ideal = np.arange(1, 4000) / 199.957
    clock = found([float(f"{t:.{digits}g}") for t in ideal], np.sin(ideal)[:, None])
    assert clock.uniform
    assert clock.rate == pytest.approx(199.957, rel=1e-6)
    assert len(clock.warnings) == said


def test_lost_samples_are_filled_and_do_not_stretch_the_period():
    time = np.delete(np.arange(5000) / 1000, [700, 1500, 4000])
    clock = found(time)
    assert clock.rate == 1000.0
    result = resample_to_clock(np.sin(time)[:, None], clock)
    np.testing.assert_allclose(result[:, 0], np.sin(np.arange(5000) / 1000), atol=1e-9)


def test_jitter_and_gaps_together():
    rng = np.random.default_rng(5)
    time = np.arange(600) / 100 + rng.uniform(-1e-3, 1e-3, 600)
    time[300:] += 3.0
    clock = found(time)
    segments = clock.segments
    result = resample_to_clock(np.sin(time)[:, None], clock)
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
    whole = resample_to_clock(signal, clock)
    monkeypatch.setattr(module, "BLOCK", 333)
    np.testing.assert_allclose(resample_to_clock(signal, clock), whole, atol=1e-12)


def walk(instants, seed=0, noise=1e-6):
    """Three smooth positions at some instants, as an encoder with a little noise has them."""
    rng = np.random.default_rng(seed)
    phases = rng.uniform(0.0, 6.0, (4, 3))
    slow = [np.sin((f + 1) * instants[:, None] + p) for f, p in enumerate(phases)]
    return np.sum(slow, axis=0) + noise * rng.normal(size=(len(instants), 3))


def test_stamps_that_make_next_to_no_difference_are_told_by_how_little():
    """Not as 1 times smoother."""
    number = np.arange(3000)
    late = (number + np.random.default_rng(3).uniform(0.0, 0.03, 3000)) / 997.0
    (warning,) = found(late, walk(number / 997.0, noise=1e-3)).warnings
    assert re.search(r"positions are \d\S* % smoother with", warning)


def test_stamps_of_arrival_and_of_sampling_are_told_apart():
    rng = np.random.default_rng(3)
    number = np.arange(6000)
    late = (number + rng.uniform(0.0, 0.5, 6000)) / 997.0
    moved = (number + rng.uniform(-0.25, 0.25, 6000)) / 997.0
    for time, instants, uniform in ((late, number / 997.0, True), (moved, moved, False)):
        q = walk(instants)
        clock = found(time, q)
        assert clock.uniform is uniform
        assert clock.rate == pytest.approx(997.0, rel=1e-4)
        (warning,) = clock.warnings
        assert f"times smoother {'without' if uniform else 'with'} them" in warning
        for clock_option in ("stamps", "uniform"):
            told = found(time, q, clock=clock_option)
            assert told.uniform is (clock_option == "uniform")
            assert "smoother" not in told.warnings[0]
        if uniform:
            assert resample_to_clock(q, clock) is q


@pytest.mark.parametrize("share", [0.01, 0.1, 0.4])
def test_the_positions_noise_speaks_for_neither_clock(share):
    rng = np.random.default_rng(8)
    number = np.arange(40000)
    time = (number + rng.uniform(0.0, share, len(number))) / 1000.0
    white = rng.normal(size=(len(number), 3))
    assert module.compare_roughness(white, time, number) == pytest.approx(1.0, abs=0.02)
    still = np.full((len(number), 3), 0.7)
    assert module.compare_roughness(still, time, number) == pytest.approx(1.0, abs=0.05)


def test_a_rate_that_drifts_is_no_uniform_clock():
    rng = np.random.default_rng(5)
    steps = np.linspace(0.9e-3, 1.1e-3, 6000) * rng.uniform(0.9, 1.1, 6000)
    time = np.cumsum(steps)
    clock = found(time, walk(time))
    assert not clock.uniform
    assert "their mean rate drifts by" in clock.warnings[0]
    assert found(time, walk(time), clock="uniform").uniform


def test_samples_that_are_held_up_and_come_together_are_not_lost():
    number = np.arange(5000)
    time = number / 1000.0 + 1e-5 * np.random.default_rng(2).random(5000)
    held = slice(2000, 2012)
    time[held] = time[2012] - 1e-6 * np.arange(12, 0, -1)
    q = walk(number / 1000.0)
    clock = found(time, q)
    assert clock.uniform
    assert clock.segments == ((0, 5000),)
    assert resample_to_clock(q, clock) is q
    assert clock.rate == pytest.approx(1000.0, rel=1e-4)


def test_short_gaps_are_bridged_and_long_ones_cut():
    gone = np.r_[1000:1007, 2000:2003, 3000:3050]
    number = np.delete(np.arange(5000), gone)
    time = number / 1000.0
    q = walk(time, noise=0.0)
    clock = found(time, q)
    assert clock.uniform
    assert clock.segments == ((0, 3000), (3000, 4950))
    cut, bridged = clock.warnings
    assert "1 gap in time, 0.051 s together" in cut
    assert "2 pauses in time, 0.012 s together, the longest 0.008 s: bridged" in bridged
    truth = walk(np.delete(np.arange(5000), np.r_[3000:3050]) / 1000.0, noise=0.0)
    np.testing.assert_allclose(resample_to_clock(q, clock), truth, atol=1e-6)
    assert len(found(time, q, bridge=0.0).segments) == 4
    assert len(found(time, q, bridge=0.005).segments) == 3
    assert found(time, q, bridge=0.008).segments == clock.segments
    assert found(time, q, bridge=0.051).segments == ((0, 5000),)


def test_what_is_bridged_is_shorter_than_what_the_filters_keep():
    for rate, segments in ((150.0, 2), (300.0, 1)):  # 3 periods are 20 and 10 ms
        time = np.delete(np.arange(2000), [900, 901]) / rate
        assert len(found(time).segments) == segments


def test_one_sample_that_is_lost_is_filled_in_whatever_the_bridge():
    time = np.delete(np.arange(2000), [700, 1200]) / 1000.0
    clock = found(time, bridge=0.0)
    assert clock.uniform
    assert clock.segments == ((0, 2000),)
    assert clock.warnings == (
        "log: 2 pauses in time, 0.004 s together, the longest 0.002 s: bridged by a cubic spline",
    )


@pytest.mark.parametrize("loss", [0.0, 0.01])
@pytest.mark.parametrize("delay", ["none", "half", "exponential"])
def test_lost_samples_are_counted_behind_late_ones(delay, loss):
    rng = np.random.default_rng(4)
    number = np.flatnonzero(rng.random(8000) >= loss)
    delays = {
        "none": np.zeros(len(number)),
        "half": rng.uniform(0.0, 0.5, len(number)),
        "exponential": rng.exponential(0.2, len(number)),
    }
    arrived = np.maximum.accumulate(number + delays[delay]) + 1e-6 * np.arange(len(number))
    clock = found(arrived / 500.0, walk(number / 500.0))
    missing = clock.segments[-1][1] - len(number)
    assert missing == pytest.approx(8000 - len(number), abs=1 if loss else 0)
    assert clock.rate == pytest.approx(500.0, rel=2e-4)


@pytest.mark.parametrize(
    ("time", "kept"),
    [
        ([0, 1, 2, 3], [0, 1, 2, 3]),
        ([0, 1, 1, 2], [0, 1, 3]),
        ([0, 9, 1, 2, 3], [0, 2, 3, 4]),
        ([5, 6, 0, 7, 8], [0, 1, 3, 4]),
        ([0, 1, 3, 2, 4], [0, 1, 3, 4]),
        ([1, 1, 1], [0]),
    ],
)
def test_as_many_samples_as_go_forward_are_kept(time, kept):
    np.testing.assert_array_equal(
        np.flatnonzero(find_ordered_samples(np.array(time, dtype=float))), kept
    )


@pytest.mark.parametrize("time", [[0.0, 1.0], [0.0, 1.0, 2.3], [0.0, 1.0, 2.3, 3.0]])
def test_a_few_samples_are_left_to_those_who_refuse_short_logs(time):
    clock = found(time, clock="stamps")
    assert np.isfinite(resample_to_clock(np.ones((len(time), 1)), clock)).all()


def test_a_clock_of_other_units_is_refused_before_it_fills_the_memory():
    time = np.concatenate([np.arange(1000) * 1e-9, 0.01 + np.arange(1000) * 1e-9])
    with pytest.raises(InputError, match="2000 samples would be 10001000 at 1e\\+09 Hz"):
        found(time, bridge=1.0)
