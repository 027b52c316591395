"""Long logs block by block are what they are whole."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import toy

from dynident import api
from dynident.filters import blocks
from dynident.filters.filters import filter_by_cutoff, filter_zero_phase
from dynident.fit.figures import score_all_samples
from dynident.recording import prepare as preparing
from dynident.recording.prepare import Samples, prepare
from dynident.recording.recording import Recording
from dynident.regression import rows as module
from dynident.regression.problem import Problem

RUNS = ((0, 7000), (7040, 7990), (8000, 15000))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks and bounds by which a log of a few thousand samples is a long one."""
    monkeypatch.setattr(blocks, "BLOCK", 700)


def walk(samples=15000, n=3):
    return np.cumsum(np.random.default_rng(3).normal(size=(samples, n)), axis=0)


def prepared(recording: Recording, monkeypatch, long: bool, **options) -> Samples:
    monkeypatch.setattr(preparing, "LONG", 0 if long else 10**9)
    return prepare(recording, 15.0, **options)


def assert_near(one, other):
    np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-10 * np.max(np.abs(other)))


@pytest.mark.parametrize("cutoff", [10.0, 75.0, 430.0, 800.0])
def test_a_filter_over_blocks_gives_what_it_gives_over_a_whole_run(cutoff):
    x, rate = walk(), 1000.0
    memory = blocks.count_memory(cutoff, rate)
    parts = [(1500, 6000), (7040, 7990), (8001, 14990)]
    cut = list(blocks.cut_into_blocks(parts, memory, RUNS))
    if cutoff > 20.0:
        assert len(cut) > 6
    for (start, stop), (begin, end) in zip(parts, RUNS, strict=True):
        own = [each for each in cut if start <= each.own.start < stop]
        found = [filter_zero_phase(x[each.wide], cutoff, rate)[each.inner] for each in own]
        whole = filter_zero_phase(x[begin:end], cutoff, rate)
        assert_near(np.concatenate(found), whole[start - begin : stop - begin])


def test_a_filter_needs_the_memory_that_it_is_given():
    x, rate, cutoff = walk(7000), 1000.0, 75.0
    whole = filter_zero_phase(x, cutoff, rate)
    found = [
        filter_zero_phase(x[each.wide], cutoff, rate)[each.inner]
        for each in blocks.cut_into_blocks([(0, 7000)], blocks.count_memory(cutoff, rate) // 4)
    ]
    assert np.max(np.abs(np.concatenate(found) - whole)) > 1e-9 * np.max(np.abs(whole))


@pytest.mark.parametrize("options", [{}, {"median": 5}, {"derivatives": "measured"}])
def test_the_motion_of_a_long_log_is_that_of_a_whole_one(options, monkeypatch):
    q = walk() * 1e-3
    log = Recording("long", 1000.0, q, q, dq=walk(), segments=RUNS)
    whole, lazy = (prepared(log, monkeypatch, long, **options) for long in (False, True))
    assert isinstance(whole.q, np.ndarray)
    assert isinstance(lazy.q, blocks.LongSignal)
    for label in ("q", "dq", "ddq"):
        one, other = getattr(lazy, label), getattr(whole, label)
        for start, stop in RUNS:
            assert_near(one[start:stop], other[start:stop])
        lows = blocks.find_run_extremes(one, RUNS), blocks.find_run_extremes(other, RUNS)
        assert_near(np.array(lows[0]), np.array(lows[1]))


def test_a_long_signal_is_read_as_an_array_is():
    x, rng = walk(), np.random.default_rng(1)
    for start, stop in ((7000, 7040), (7990, 8000)):
        x[start:stop] = 0.0  # beside the runs
    course = blocks.SignalCourse(15000, 3, RUNS, 5, lambda some: (-x[some], x[some]))
    signal = blocks.LongSignal(course, 1, range(15000))
    keys = [
        slice(None), slice(3, 9), slice(600, 5000, 13), slice(None, None, -3), slice(5, 5),
        slice(7010, 7020), slice(6990, 7100, 7), 5, -1, [4, 2, 9999, 7020], rng.random(15000) > 0.5,
        (slice(None), 1), (slice(100, 9050), slice(1, 3)), ([3, 14000], slice(0, 2)),
        ([3, 14000], [0, 2]), (slice(690, 710), [0, 2]),
    ]  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(signal[key], x[key])
    part = blocks.cut_signal(signal, slice(650, 9000))
    np.testing.assert_array_equal(part[100:], x[750:9000])
    np.testing.assert_array_equal(part[[0, -1]], x[[650, 8999]])
    np.testing.assert_array_equal(2.0 * signal - x, x)
    np.testing.assert_array_equal(np.hstack([signal, x]), np.hstack([x, x]))
    every = blocks.take_every((signal, x), 7, 3)
    np.testing.assert_array_equal(every[0], x[3::7])
    np.testing.assert_array_equal(every[1], x[3::7])
    assert signal.shape == x.shape
    assert len(part) == 8350
    for beyond in (15000, [3, 15000], [-15001]):
        with pytest.raises(IndexError):
            signal[beyond]


def test_blocks_are_computed_once_by_those_who_read_on():
    asked = []
    x = walk()

    def compute(some):
        asked.append(some)
        return x[some], x[some]

    course = blocks.SignalCourse(15000, 3, ((0, 15000),), 5, compute)
    one, other = (blocks.LongSignal(course, k, range(15000)) for k in range(2))
    for own, wide, _ in blocks.cut_into_blocks([(3, 15000)], 40):
        one[wide], other[wide], one[own]
    assert len(asked) == len(course.blocks) > 15
    assert len(course.kept) == blocks.KEPT
    again = pickle.loads(pickle.dumps(replace(course, compute=np.sin)))
    assert not again.kept


def test_signals_are_low_passed_and_thinned_block_by_block():
    x = walk()
    found = blocks.low_pass_signals([x], RUNS, 1000.0, [(40.0, 40.0, 60.0)], 7)[0]
    for start, stop in RUNS:
        whole = filter_by_cutoff(x[start:stop], (40.0, 40.0, 60.0), 1000.0)
        first = -(-start // 7)
        assert_near(found[first : -(-stop // 7)], whole[first * 7 - start :: 7])


def log_with_gap() -> Recording:
    log, _ = toy.log(toy.arm(2), 9.0, noise=0.5)
    return replace(log, segments=((0, 5000), (5010, 9000)), dq=None, ddq=None)


def test_a_fit_of_a_long_log_is_that_of_a_whole_one(monkeypatch):
    fits = []
    for long in (False, True):
        monkeypatch.setattr(module, "SPARE_BYTES", 0 if long else 2**25)
        problem = Problem(toy.arm(2), prepared(log_with_gap(), monkeypatch, long))
        fits.append(api.identify(problem))
        kept = ["_kept" in source.__dict__ for source in problem.source.sources]
        assert kept == [not long] * len(kept)
    whole, lazy = fits
    assert isinstance(lazy.samples[0].ddq, blocks.LongSignal)
    for one, other in zip(
        (*lazy.identification, *lazy.nominal), (*whole.identification, *whole.nominal), strict=True
    ):
        assert one.overall_percent == pytest.approx(other.overall_percent, rel=1e-9)
    np.testing.assert_allclose(lazy.estimate.beta, whole.estimate.beta, rtol=1e-7, atol=1e-9)
    assert lazy.verdict == whole.verdict
    assert lazy.provenance.logs == whole.provenance.logs
    one, other = lazy.series(500)[0], whole.series(500)[0]
    np.testing.assert_array_equal(one.time, other.time)
    np.testing.assert_array_equal(one.scored, other.scored)
    assert_near(one.predicted, other.predicted)
    assert_near(one.measured, other.measured)


def test_friction_with_a_memory_is_followed_from_the_start_of_a_run(monkeypatch):
    found = []
    for long in (False, True):
        problem = Problem(toy.arm(2), prepared(log_with_gap(), monkeypatch, long), "lugre")
        theta = np.concatenate([problem.robot.nominal.ravel(), problem.idim.shape, np.ones(99)])
        sets = (theta[: len(problem.idim.parameters)],)
        (figure,) = score_all_samples(problem.idim, sets, problem.samples, 30.0)
        found.append([joint.rmse for joint in figure.joints])
    assert_near(*np.array(found))
