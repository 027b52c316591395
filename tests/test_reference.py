"""References and the reference behind a measured motion."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from robots import EXAMPLES
from thin import first

from dynident.control.reconstruct import reconstruct
from dynident.control.reference import (
    REFERENCES,
    Move,
    Reference,
    bang_bang,
    fourier,
    quintic,
    sampled,
    sum_moves,
)
from dynident.core.errors import InputError
from dynident.filters.filters import differentiate_twice
from dynident.recording.read import read_log
from dynident.robot import load_robot

RATE = 1000.0
POINTS = np.array(
    [[0.0, 0.0, 0.5], [1.0, -0.5, 0.7], [0.99, -0.51, 0.7], [1.0, 1.0, -2.0], [0.0, 0.0, 0.5]]
)
FASTEST = np.array([1.0, 2.0, 3.0])
STEEPEST = np.array([4.0, 5.0, 6.0])
SERIES = {
    "offset": [0.1, -0.2],
    "sine": [[0.5, -0.3, 0.2], [0.1, 0.4, -0.2]],
    "cosine": [[0.2, 0.1, -0.4], [-0.3, 0.2, 0.1]],
}


def moves_of(smoothing=0.5, pause=0.1, rate=RATE):
    return bang_bang(rate, POINTS, FASTEST, STEEPEST, smoothing=smoothing, pause=pause)


def at_rest(reference):
    """Runs of samples in which no joint has a velocity."""
    still = ~np.any(reference.dq, axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], still, [False]])))
    return [slice(a, b) for a, b in edges.reshape(-1, 2)]


def smooth_references():
    rng = np.random.default_rng(3)
    yield "fourier", fourier(RATE, 4.0, 0.5, **SERIES)
    yield "quintic", quintic(RATE, rng.normal(size=(4, 2)), [1.0, 1.7, 2.0, 3.5])
    yield "passing", quintic(RATE, rng.normal(size=(3, 2)), [0, 1, 3], rng.normal(size=(3, 2)))
    yield "bang-bang", moves_of(0.5)
    yield "triangles", moves_of(0.99, 0.0)
    skewed = Move(0.1, 1.5, 0.5, 0.8, 0.6, np.array([1.0, -2.0]))
    yield "skewed", sum_moves(RATE, 2000, [1.0, 2.0], [skewed])


@pytest.mark.parametrize(("name", "reference"), list(smooth_references()))
def test_derivatives_are_those_of_the_positions(name, reference):
    inside = slice(2, -2)
    velocity = differentiate_twice(reference.q, RATE)[0]
    acceleration = differentiate_twice(reference.dq, RATE)[0]
    # of trapezoids the third derivative jumps, and a difference across a jump is off by one step
    kinks = 0.0 if name == "fourier" else np.abs(np.diff(reference.ddq, axis=0)).max()
    assert np.abs(velocity - reference.dq)[inside].max() < 1e-7 + kinks / RATE
    assert np.abs(acceleration - reference.ddq)[inside].max() < 1e-6 + kinks


@pytest.mark.parametrize("smoothing", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("seed", range(5))
def test_limits_are_respected_and_reached(smoothing, seed):
    rng = np.random.default_rng(seed)
    points = np.cumsum(rng.normal(size=(6, 4)), axis=0)
    fastest, steepest = rng.uniform(0.3, 3.0, (2, 4))
    reference = bang_bang(5000.0, points, fastest, steepest, smoothing=smoothing)
    speed = np.abs(reference.dq).max(axis=0) / fastest
    effort = np.abs(reference.ddq).max(axis=0) / steepest
    assert speed.max() <= 1.0 + 1e-12
    assert effort.max() <= 1.0 + 1e-12
    assert effort.max() > 0.999
    assert np.abs(reference.q[0] - points[0]).max() == 0.0
    assert np.abs(reference.q[-1] - points[-1]).max() < 1e-12


def test_a_long_move_takes_as_long_as_its_slowest_joint_needs():
    # 2 rad at 1 rad/s with ramps of 0.25 s: 2.25 s; the other joint would need less
    reference = bang_bang(RATE, [[0.0, 0.0], [2.0, 1.0]], [1.0, 1.0], [4.0, 4.0])
    assert len(reference.q) == 2251
    assert reference.dq[:, 0].max() == pytest.approx(1.0)
    assert reference.dq[:, 1].max() == pytest.approx(0.5)
    # smoothed ramps of the same peak acceleration are longer by 1 / (1 - smoothing / 2)
    smoothed = bang_bang(RATE, [[0.0], [2.0]], 1.0, 4.0, smoothing=0.5)
    assert len(smoothed.q) == np.ceil(1000.0 * (2.0 + 0.25 / 0.75)) + 1
    assert smoothed.ddq.max() == pytest.approx(4.0)


def test_a_short_move_is_a_triangle():
    reference = bang_bang(RATE, [[0.0], [0.01]], [1.0], [4.0])
    assert reference.dq.max() == pytest.approx(np.sqrt(0.01 * 4.0), rel=1e-2)
    assert len(reference.q) == np.ceil(2.0 * np.sqrt(0.01 / 4.0) * 1000.0) + 1


def test_joints_arrive_together_at_the_points_and_pause_there():
    reference = moves_of(pause=0.1)
    stops = at_rest(reference)
    assert len(stops) == len(POINTS)
    for stop, point in zip(stops, POINTS, strict=True):
        assert np.abs(reference.q[stop] - point).max() < 1e-12
        # a sample of nearly no velocity belongs to the move
        assert 98 <= stop.stop - stop.start <= 102
    ways = np.diff(POINTS, axis=0)
    for (before, after), start, way in zip(pairwise(stops), POINTS[:-1], ways, strict=True):
        covered = reference.q[before.stop : after.start] - start
        longest = np.argmax(np.abs(way))
        share = covered[:, longest] / way[longest]
        assert np.abs(covered - np.outer(share, way)).max() < 1e-12


def test_smoothing_makes_the_acceleration_continuous():
    rate = 10_000.0
    point_to_point = [[0.0], [2.0]]
    steps = np.abs(np.diff(bang_bang(rate, point_to_point, 1.0, 4.0).ddq[:, 0]))
    assert steps.max() == pytest.approx(4.0)
    smoothed = bang_bang(rate, point_to_point, 1.0, 4.0, smoothing=0.4).ddq[:, 0]
    # it climbs to its peak in half of the share of a ramp that lasts (1 / 4) / (1 - 0.2) s
    jerk = 4.0 / (0.2 * 0.25 / 0.8)
    assert np.abs(np.diff(smoothed)).max() <= jerk / rate * (1.0 + 1e-9)
    assert smoothed[0] == pytest.approx(0.0)
    assert smoothed[-1] == pytest.approx(0.0)


def test_points_that_repeat_only_pause():
    once = bang_bang(RATE, [[0.0], [1.0], [1.0]], 1.0, 1.0, pause=0.2)
    assert once.q[-1, 0] == pytest.approx(1.0)
    assert once.duration == pytest.approx(3 * 0.2 + 2.0, abs=2 / RATE)


def test_fourier_is_the_series_and_periodic():
    reference = fourier(100.0, 4.0, 0.5, **SERIES)
    assert len(reference.q) == 400
    for signal in (reference.q, reference.dq, reference.ddq):
        assert np.abs(signal[200:] - signal[:200]).max() < 1e-11
    t, w = np.arange(400) / 100.0, np.pi
    expected = -0.2 + sum(
        a / (w * k) * np.sin(w * k * t) - b / (w * k) * np.cos(w * k * t)
        for k, a, b in zip((1, 2, 3), SERIES["sine"][1], SERIES["cosine"][1], strict=True)
    )
    assert np.abs(reference.q[:, 1] - expected).max() < 1e-12


def test_quintic_passes_its_points():
    times = [1.0, 1.5, 2.0, 4.0]
    rng = np.random.default_rng(0)
    points, velocities = rng.normal(size=(2, 4, 3))
    rows = [0, 500, 1000, 3000]
    resting = quintic(RATE, points, times)
    passing = quintic(RATE, points, times, velocities)
    assert len(resting.q) == len(passing.q) == 3001
    for reference, speed in ((resting, 0.0 * velocities), (passing, velocities)):
        assert np.abs(reference.q[rows] - points).max() < 1e-12
        assert np.abs(reference.dq[rows] - speed).max() < 1e-12
        assert np.abs(reference.ddq[rows]).max() < 1e-9
        # continuous across the points as well
        assert np.abs(np.diff(reference.ddq, axis=0)).max() < 0.05 * np.abs(reference.ddq).max()


def test_a_log_keeps_what_it_has_and_differences_the_rest():
    true = fourier(RATE, 2.0, 0.5, **SERIES)
    only = sampled(true.q, RATE)
    first, second = differentiate_twice(np.array(true.q), RATE)
    assert np.array_equal(only.dq, first)
    assert np.array_equal(only.ddq, second)
    faster = sampled(true.q, RATE, dq=true.dq)
    assert np.array_equal(faster.dq, true.dq)
    assert np.array_equal(faster.ddq, differentiate_twice(np.array(true.dq), RATE)[0])
    assert np.array_equal(sampled(true.q, RATE, ddq=true.ddq).ddq, true.ddq)
    both = sampled(true.q[:2], RATE, true.dq[:2], true.ddq[:2])
    assert len(both.q) == 2


def test_a_reference_is_read_only_and_leaves_the_callers_arrays_alone():
    mine = np.zeros((10, 2))
    reference = Reference(RATE, mine, mine, mine)
    mine[:] = 1.0
    assert not reference.q.any()
    with pytest.raises(ValueError, match="read-only"):
        reference.q[0] = 1.0
    assert reference.duration == pytest.approx(0.01)


def test_rows_cut_all_signals():
    whole = moves_of()
    part = whole.rows(100, 300)
    assert part.duration == pytest.approx(0.2)
    for label in ("q", "dq", "ddq"):
        assert np.array_equal(getattr(part, label), getattr(whole, label)[100:300])
    for start, stop in ((-1, 5), (5, 6), (6, 5), (0, len(whole.q) + 1)):
        with pytest.raises(InputError, match=f"rows {start}-{stop} are not two or more of its"):
            whole.rows(start, stop)


def test_the_registry_has_the_makers():
    assert {
        "log": sampled,
        "fourier": fourier,
        "bang-bang": bang_bang,
        "quintic": quintic,
    } == REFERENCES


def test_a_lead_shifts_each_joint():
    moves = [
        Move(0.2, 1.0, 0.3, 0.4, 0.5, np.array([1.0, 2.0])),
        Move(1.1, 0.5, 0.2, 0.2, 0.0, np.array([-3.0, 1.0])),
    ]
    plain = sum_moves(RATE, 2000, [0.0, 1.0], moves)
    led = sum_moves(RATE, 2000, [0.0, 1.0], moves, lead=[0.05, 0.3])
    for joint, shift in enumerate((50, 300)):
        assert np.abs(led.q[:-shift, joint] - plain.q[shift:, joint]).max() < 1e-12
    assert led.q[-1] == pytest.approx([-2.0, 4.0])


TWO = [[0.0], [1.0]]


@pytest.mark.parametrize(
    ("maker", "arguments", "said"),
    [
        (sampled, {"q": np.zeros((4, 2)), "rate": RATE}, r"q has shape \(4, 2\).* with 5 or more"),
        (sampled, {"q": np.zeros(9), "rate": RATE}, r"q has shape \(9,\); give a table"),
        (sampled, {"q": [["a"]] * 9, "rate": RATE}, "q is not numbers"),
        (sampled, {"q": np.zeros((9, 2)), "rate": 0.0}, "rate 0.0 has to be positive"),
        (sampled, {"q": np.zeros((9, 2)), "rate": np.nan}, "rate nan has to be positive"),
        (sampled, {"q": np.full((9, 2), np.nan), "rate": RATE}, "not finite in row 1"),
        (sampled, {"q": np.zeros((9, 2)), "rate": RATE, "dq": np.zeros((8, 2))}, "dq has shape"),
        (fourier, {"rate": RATE, "duration": 0.001, "frequency": 1.0} | SERIES, "fewer than two"),
        (fourier, {"rate": RATE, "duration": 1e9, "frequency": 1.0} | SERIES, "more than"),
        (fourier, {"rate": RATE, "duration": 1e307, "frequency": 1.0} | SERIES, "more than"),
        (fourier, {"rate": RATE, "duration": 1.0, "frequency": 0.0} | SERIES, "frequency 0.0 has"),
        (fourier, {"rate": RATE, "duration": 1.0, "frequency": 200.0} | SERIES, "half the rate"),
        (
            fourier,
            {"rate": RATE, "duration": 1.0, "frequency": 1.0} | SERIES | {"offset": [0.0]},
            r"offset \(1,\); give each joint",
        ),
        (bang_bang, {"velocity": 1.0, "acceleration": 1.0, "points": [[1.0]]}, "2 or more"),
        (bang_bang, {"velocity": 0.0, "acceleration": 1.0, "points": TWO}, "velocity .* positive"),
        (
            bang_bang,
            {"velocity": 1.0, "acceleration": [-1.0], "points": TWO},
            r"acceleration \[-1\.\] has to be positive",
        ),
        (bang_bang, {"velocity": [1, 2], "acceleration": 1.0, "points": TWO}, "2 entries for 1"),
        (
            bang_bang,
            {"velocity": 1, "acceleration": 1, "points": TWO, "smoothing": 1.0},
            "got 1 and 0 s",
        ),
        (bang_bang, {"velocity": 1, "acceleration": 1, "points": TWO, "pause": -1.0}, "and -1 s"),
        (bang_bang, {"velocity": 1, "acceleration": 1, "points": [[1.0], [1.0]]}, "fewer than two"),
        (bang_bang, {"velocity": 1e-9, "acceleration": 1.0, "points": TWO}, "more than"),
        (bang_bang, {"velocity": 1.0, "acceleration": 1.0, "points": [[0.0], [1, 2]]}, "points is"),
        (quintic, {"points": TWO, "times": [0.0, 0.0]}, "time 2 is not after"),
        (quintic, {"points": TWO, "times": [0.0, 1.0, 2.0]}, "3 times for 2 points"),
        (quintic, {"points": TWO, "times": [0.0, np.inf]}, "times is not finite"),
        (quintic, {"points": TWO, "times": [0.0, 1e-4]}, "fewer than two"),
        (quintic, {"points": TWO, "times": [0.0, 1e9]}, "more than"),
        (quintic, {"points": TWO, "times": [0, 1], "velocities": [[0.0]]}, "velocities have"),
    ],
)
def test_bad_references_are_refused_in_one_line(maker, arguments, said):
    with pytest.raises(InputError, match=said) as refusal:
        maker(**({"rate": RATE} | arguments))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0.0, 1.0, 0.6, 0.6, 0.0), "rise and fall exceed its duration, or smoothing"),
        ((0.0, 1.0, 0.0, 0.5, 0.0), "rise 0.0 has to be positive"),
        ((0.0, 1.0, 0.4, 0.4, 1.5), r"or smoothing is not in \[0, 1\]"),
    ],
)
def test_impossible_moves_are_refused(numbers, said):
    with pytest.raises(InputError, match=said):
        Move(*numbers, np.ones(1))


@pytest.fixture(scope="module")
def tx40():
    folder = EXAMPLES / "tx40"
    return read_log(
        [str(folder / "pos_read_data.csv"), str(folder / "curr_data.csv")],
        load_robot(folder / "tx40.toml"),
        rate=5000.0,
        side="motor",
        columns={"q": "pos_read_data.csv:*", "tau": "curr_data.csv:*"},
    )


def test_the_motion_of_the_tx40_is_thirteen_moves_in_step(tx40):
    found = reconstruct(tx40.q, tx40.rate, tx40.segments)
    span = np.ptp(tx40.q, axis=0)
    assert len(found.moves) == 13
    # reached: 0.008 % to 0.016 % rms, at worst 0.08 % of a joint's range
    assert (found.residual_rms / span).max() < 2.5e-4
    assert (found.residual_max / span).max() < 1.2e-3
    assert found.reference.q.shape == tx40.q.shape
    assert np.abs(found.reference.q - tx40.q).max() < 1.5e-3 * span.max()
    # nothing tells the fit that ramps up and down are alike, or that displacements are
    # whole degrees: both come out
    for move in found.moves:
        assert move.rise == pytest.approx(move.fall, rel=0.01)
        assert 0.1 < move.smoothing < 0.6
    degrees = np.degrees([move.displacement for move in found.moves])
    assert np.abs(degrees - np.round(degrees)).max() < 0.3


@pytest.mark.parametrize("smoothing", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("pause", [0.0, 0.1])
@pytest.mark.parametrize("rate", first([200.0, 1000.0]))
def test_bang_bang_motions_are_recovered(smoothing, pause, rate):
    points = POINTS[[0, 1, 3, 4]]
    true = bang_bang(rate, points, FASTEST, STEEPEST, smoothing=smoothing, pause=pause)
    found = reconstruct(true.q, rate)
    assert len(found.moves) == len(points) - 1
    assert np.abs(found.reference.q - true.q).max() < 1e-3
    displacements = np.array([move.displacement for move in found.moves])
    assert np.abs(displacements - np.diff(points, axis=0)).max() < 1e-3
    if smoothing:  # the low-pass rounds steps of acceleration off
        assert np.abs(found.reference.dq - true.dq).max() < 0.02
        for move in found.moves:
            assert move.smoothing == pytest.approx(smoothing, abs=0.05)


def test_noise_and_joints_that_stand_do_no_harm():
    true = moves_of(pause=0.2)
    q = np.array(true.q)[:, [0, 1, 2, 2]]
    q[:, 1] = 0.7
    q[:, 3] *= -100.0  # another unit altogether
    noise = np.random.default_rng(1).normal(0.0, 1e-4, q.shape)
    found = reconstruct(q + noise, RATE, cutoff=10.0, rest=0.03)
    assert np.abs(found.reference.q - q)[:, :3].max() < 1e-3
    assert all(move.displacement[1] == 0.0 for move in found.moves)


def joints_apart():
    rng = np.random.default_rng(1)
    ways = [
        bang_bang(
            RATE, np.cumsum(rng.normal(size=(6, 1)), axis=0), 1.0, 3.0, smoothing=0.4, pause=pause
        ).q
        for pause in (0.05, 0.1, 0.15)
    ]
    longest = max(map(len, ways))
    return np.hstack([np.pad(q, ((0, longest - len(q)), (0, 0)), mode="edge") for q in ways])


@pytest.mark.long
def test_joints_that_move_apart_are_noticed():
    q = joints_apart()
    found = reconstruct(q, RATE)
    assert len(found.moves) == 15
    assert all(np.count_nonzero(move.displacement) == 1 for move in found.moves)
    assert found.residual_rms.max() < 1e-4
    forced = reconstruct(q, RATE, together=True)
    assert forced.residual_rms.max() > 10.0 * found.residual_rms.max()
    assert len(reconstruct(moves_of().q[:1500], RATE, together=False).moves) == 3


def test_moves_that_blend_are_told_apart():
    true = [
        Move(0.1, 1.0, 0.3, 0.3, 0.4, np.array([1.0, 0.5])),
        Move(0.9, 0.8, 0.3, 0.3, 0.4, np.array([0.5, -1.0])),
        Move(1.5, 1.0, 0.3, 0.3, 0.4, np.array([-1.0, -0.3])),
    ]
    found = reconstruct(sum_moves(RATE, 3000, [0.2, 0.3], true).q, RATE)
    assert found.residual_rms.max() < 1e-4
    for a, b in zip(found.moves, true, strict=True):
        assert (a.start, a.duration) == pytest.approx((b.start, b.duration), abs=0.02)
        assert a.displacement == pytest.approx(b.displacement, abs=0.01)


def test_runs_are_apart_and_a_motion_may_be_cut():
    true = moves_of(pause=0.1)
    middle = len(true.q) // 2
    assert np.abs(true.dq[middle]).max() > 0.1
    other = np.array(true.q)[::-1] + 1.0
    q = np.vstack([true.q[:middle], other])
    runs = [(0, middle), (middle, len(q))]
    found = reconstruct(q, RATE, runs)
    assert np.abs(found.reference.q - q).max() < 2e-3
    assert {move.start > middle / RATE - 0.1 for move in found.moves} == {True, False}


def test_a_lag_makes_the_reference_lead():
    true = moves_of(pause=0.3)
    plain = reconstruct(true.q, RATE)
    led = reconstruct(true.q, RATE, lag=[0.0, 0.02, 0.05])
    assert np.array_equal(led.residual_rms, plain.residual_rms)
    for joint, shift in enumerate((0, 20, 50)):
        ahead = led.reference.q[: len(true.q) - shift, joint]
        assert np.abs(ahead - plain.reference.q[shift:, joint]).max() < 1e-9
    with pytest.raises(ValueError, match="read-only"):
        plain.residual_rms[0] = 0.0


@pytest.mark.parametrize(
    ("q", "options", "said"),
    [
        (np.zeros(100), {}, r"positions of shape \(100,\) are not"),
        (np.full((100, 2), np.nan), {}, r"shape \(100, 2\) are not finite rows"),
        (np.zeros((4, 2)), {}, "a run is shorter than 5 samples"),
        (np.ones((100, 2)), {}, "no joint moves"),
        (moves_of().q, {"rate": 0.0}, "give a positive rate, cutoff and tolerance"),
        (moves_of().q, {"rest": 0.0}, "and a rest between 0 and 0.2"),
        (moves_of().q, {"lag": [0.1, 0.2]}, "lag is a time or 3, one per joint"),
        (moves_of().q, {"lag": np.nan}, "lag is a time or 3, one per joint"),
        (moves_of().q, {"runs": [(0, 10), (20, len(moves_of().q))]}, "follow one another"),
        (moves_of().q, {"runs": [(0, 10)]}, "follow one another"),
        (moves_of().q, {"runs": []}, "follow one another"),
    ],
)
def test_what_cannot_be_reconstructed_is_refused(q, options, said):
    with pytest.raises(InputError, match=said):
        reconstruct(**({"q": q, "rate": RATE} | options))
