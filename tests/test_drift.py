"""Friction and offsets over sessions: drifts, shifts, outliers, and how sure a line is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from thin import long

from dynident.collection import drift
from dynident.collection.drift import (
    APART,
    KINDS,
    LEVEL,
    NOTHING,
    SIZES,
    WALK,
    WALKS,
    FollowedSessions,
    SessionContrasts,
    estimate_scatter,
    follow_sessions,
    list_series,
    list_shapes,
)
from dynident.collection.member import find_date
from dynident.core.arrays import Array

JOINTS = ("a", "b", "c")
NAMES = tuple(f"s{k}" for k in range(40))


def draw_robots(
    robots: int, sessions: int, seed: int = 0, scatter: float = 0.015
) -> list[FollowedSessions]:
    """Sessions of sound robots; offsets scatter as friction does."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(robots):
        errors = scatter * rng.uniform(0.1, 0.5, (sessions, 2 * len(JOINTS)))
        values = 1.0 + np.hypot(scatter, errors) * rng.normal(size=errors.shape)
        found.append(FollowedSessions(np.arange(1.0, sessions + 1.0), values, errors, None))
    return found


def compare(times: Array, deviation: Array, regressors: Array | None = None) -> SessionContrasts:
    ones = np.ones((len(times), 1))
    whole = ones if regressors is None else np.column_stack([ones, regressors])
    return SessionContrasts(deviation, whole, list_shapes(times))


def test_ratios_are_those_of_the_restricted_likelihood():
    """Of dense normal densities, with a temperature beside the constant."""
    rng = np.random.default_rng(1)
    times = np.sort(rng.uniform(0.0, 9.0, 7))
    deviation, warmth = rng.uniform(0.5, 1.5, 7), rng.normal(size=7)
    one = compare(times, deviation, warmth - np.mean(warmth))
    y, X = rng.normal(size=7) + 0.3 * times, one.regressors
    A, unit = one.frame
    found = one.weigh((A.T @ y)[:, None])[:, :, 0]

    def measure(V: Array) -> float:
        inverse = np.linalg.inv(V)
        left = y - X @ np.linalg.solve(X.T @ inverse @ X, X.T @ inverse @ y)
        volume = np.linalg.slogdet(V)[1] + np.linalg.slogdet(X.T @ inverse @ X)[1]
        return float(-0.5 * (volume + left @ inverse @ left))

    nothing = np.diag(deviation**2)
    for shape, own in zip(one.shapes, found, strict=True):
        for size, ratio in zip(SIZES, own, strict=True):
            V = nothing + (unit * size) ** 2 * shape.root @ shape.root.T
            expected = measure(V) - measure(nothing) + np.log(shape.prior / len(SIZES))
            assert ratio == pytest.approx(expected, abs=1e-8)
    whole = logsumexp(np.append(found, np.log(NOTHING))) + measure(nothing)
    assert one.measure_likelihood(y) == pytest.approx(whole, abs=1e-9)
    assert sum(shape.prior for shape in one.shapes) == pytest.approx(1.0 - NOTHING)


def test_the_line_is_the_smoother_of_the_local_level_model():
    """Kalman filter and smoother of statsmodels, with the size that the weights are put on."""
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    rng = np.random.default_rng(2)
    count, scatter, step = 15, 0.7, 0.9
    y = 3.0 + np.cumsum(step * rng.normal(size=count)) + scatter * rng.normal(size=count)
    model = UnobservedComponents(y, "llevel", use_exact_diffuse=True)
    told = model.smooth([scatter**2, step**2])
    one = compare(np.arange(count) + 1.0, np.full(count, scatter))
    size = step * np.sqrt(count - 1.0) / scatter
    ends = np.zeros((1, count))
    ends[0, [0, -1]] = -1.0, 1.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drift, "SIZES", np.array([size]))
        maps, spread = one.smooth_levels(np.eye(count), WALK)
        line = maps @ y
        maps, error = one.smooth_levels(ends, WALK)
        change = maps @ y
    np.testing.assert_allclose(line[0], told.smoothed_state[0], rtol=1e-6)
    np.testing.assert_allclose(spread[0], told.smoothed_state_cov[0, 0], rtol=1e-6)
    assert change[0, 0] == pytest.approx(line[0, -1] - line[0, 0])
    assert 0.0 < error[0, 0] < spread[0, 0] + spread[0, -1]  # both ends share the constant


def test_the_line_is_the_mean_over_dense_models():
    """Each size of a walk, an outlier beside it, or a shift by its own normal distribution."""
    rng = np.random.default_rng(3)
    count = 7
    times, deviation = np.sort(rng.uniform(0.0, 9.0, count)), rng.uniform(0.5, 1.5, count)
    warmth = rng.normal(size=count)
    one = compare(times, deviation, warmth - np.mean(warmth))
    y, X, unit = rng.normal(size=count) + 0.4 * times, one.regressors, one.frame[1]
    y[4] += 5.0
    rows = rng.normal(size=(3, count))
    walk, steps = one.shapes[WALK], [s for s in one.shapes if s.kind == "shift"]
    noise, found = np.diag(deviation**2), []

    def add(prior: float, root: Array, size: float, apart: Array) -> None:
        """The density of what neither a nor b moves, and ``a + f`` by regression."""
        V = noise + (unit * size) ** 2 * root @ root.T + apart
        inverse = np.linalg.inv(V)
        P = inverse - inverse @ X @ np.linalg.solve(X.T @ inverse @ X, X.T @ inverse)
        volume = np.linalg.slogdet(V)[1] + np.linalg.slogdet(X.T @ inverse @ X)[1]
        log = np.log(prior * size) - 0.5 * (volume + y @ P @ y)
        design, rest = np.hstack([X, unit * size * root]), np.linalg.inv(noise + apart)
        known = np.diag(np.append(np.zeros(X.shape[1]), np.ones(root.shape[1])))
        covariance = np.linalg.inv(design.T @ rest @ design + known)
        asked = rows @ design
        asked[:, 1] = 0.0  # levels are at one temperature
        found.append(
            (
                log,
                asked @ covariance @ design.T @ rest @ y,
                np.diag(asked @ covariance @ asked.T),
            )
        )

    for size in SIZES:
        add((1.0 - APART) * WALKS, walk.root, size, 0.0 * noise)
        for shape in steps:
            add((1.0 - WALKS) / len(steps), shape.root, size, 0.0 * noise)
        for k in range(count):
            for other in SIZES:
                alone = np.diag((unit * other) ** 2 * (np.arange(count) == k))
                add(APART * WALKS / count / len(SIZES), walk.root, size, alone)
    logs, lines, spreads = (np.array(each) for each in zip(*found, strict=True))
    weights = np.exp(logs - logsumexp(logs))
    mean = weights @ lines
    line, band = one.draw_line(y, rows)
    np.testing.assert_allclose(line, mean, atol=1e-9)
    np.testing.assert_allclose(band**2, weights @ (spreads + (lines - mean) ** 2), rtol=1e-9)


def test_a_line_is_at_one_temperature_even_where_one_session_alone_tells_it():
    times, warmth = np.arange(1.0, 7.0), 20.0 * (np.arange(6) == 2)
    y = np.array([1.0, 1.1, 4.0, 0.9, 1.0, 1.1])
    one = compare(times, np.full(6, 0.1), warmth - np.mean(warmth))
    line, band = one.draw_line(y, np.eye(6))
    assert np.all(np.isfinite(band))
    np.testing.assert_allclose(line, np.mean(y), atol=0.15)


@pytest.mark.parametrize(("kind", "sessions"), [("grows", 6), long("grows", 12), ("outlier", 6)])
def test_intervals_of_the_line_cover(kind, sessions):
    """Walks of any size and slopes, or one session apart; benchmarks/drift.py has more of them."""
    rng = np.random.default_rng(sessions)
    times = np.arange(1.0, sessions + 1.0)
    hits = []
    for k in range(150):
        size = rng.choice([0.0, 1.0, 3.0, 6.0, 12.0])
        walk = np.cumsum(rng.normal(size=sessions)) / np.sqrt(sessions - 1.0)
        slope = times / sessions
        deviation = np.hypot(1.0, rng.uniform(0.1, 0.6, sessions))
        f = size * (walk, walk, slope)[k % 3] if kind == "grows" else np.zeros(sessions)
        y = f + deviation * rng.normal(size=sessions)
        if kind == "outlier":
            y[rng.integers(sessions)] += 5.0
        line, band = compare(times, deviation).draw_line(y, np.eye(sessions))
        hits.append(np.abs(line - f) < 1.96 * band)
    assert 0.92 < np.mean(hits) < 0.985


@pytest.mark.long
def test_sound_robots_are_named_at_the_stated_rate_and_changes_told_apart():
    robots = [
        r._replace(errors=r.errors * (np.arange(6) < 3)) for r in draw_robots(100, 8)
    ]  # offsets are not told
    rng = np.random.default_rng(3)
    kinds = np.array(["drift", "shift", "outlier"])[np.arange(36) % 3]
    since = np.arange(8)
    for k, kind in enumerate(kinds):
        walk = 0.03 * np.cumsum(rng.normal(size=8))
        change = {"drift": walk, "shift": -0.08 * (since >= 4), "outlier": 0.12 * (since == 5)}
        robots[k].values[:, 1] += change[kind]
    series = list_series(robots, JOINTS)
    assert [each.what for each in series] == [f"friction of {joint}" for joint in JOINTS]
    assert series[1].scatter == pytest.approx(0.015, rel=0.08)  # those that change do not count
    assert 0.5 * 7 * 100 < series[0].freedom < 7 * 100
    found = [follow_sessions(r, series[1], NAMES) for r in robots[:36]]
    right = [course.kind == kind for course, kind in zip(found, kinds, strict=True)]
    assert sum(right[1::3]) >= 10
    assert sum(right[2::3]) >= 10
    assert sum(course.kind == "drift" for course in found[::3]) >= 5
    told = [course for course in found[1::3] if course.kind == "shift"]
    assert np.mean([course.session == "s4" for course in told]) > 0.9
    assert np.mean([abs(c.size + 0.08) < 1.96 * c.error for c in told]) > 0.8
    sound = [follow_sessions(r, each, NAMES) for r in robots[36:] for each in series[:3]]
    # of each series a third of the level
    assert sum(bool(course.kind) for course in sound) <= 4  # of 64 robots 0.6 are expected
    chances = np.array([course.chance for course in sound])
    for level in (0.1, 0.3, 0.5):
        assert abs(np.mean(chances < level) - level) < 4.0 * np.sqrt(level / len(chances))
    assert series[0].level == pytest.approx(LEVEL / 3.0)
    assert {course.kind for course in found} <= {"", *KINDS}


@pytest.mark.long
def test_friction_that_follows_a_temperature_is_no_drift():
    robots = draw_robots(12, 10)
    warmth = np.linspace(20.0, 35.0, 10)[:, None] * np.ones(len(JOINTS))
    robots[0].values[:, 0] -= 0.01 * (warmth[:, 0] - 20.0)
    warm = [r._replace(warmth=warmth + np.random.default_rng(k).normal(size=warmth.shape)) for k, r
            in enumerate(robots)]  # fmt: skip
    warm[0] = robots[0]._replace(warmth=warmth)
    plain = follow_sessions(robots[0], list_series(robots, JOINTS)[0], NAMES)
    assert [each.unit for each in list_series(robots, JOINTS)] == ["%"] * 3 + ["Nm"] * 3
    told = follow_sessions(warm[0], list_series(warm, JOINTS)[0], NAMES)
    assert plain.kind == "drift"
    assert plain.size == pytest.approx(-0.15, abs=0.04)
    assert not told.kind
    assert plain.walk > 0.05 > told.walk


@pytest.mark.long
def test_short_sessions_count_less_and_few_sessions_are_not_followed():
    times = np.arange(1.0, 7.0)
    errors = np.full((6, 6), 1e-3)
    errors[2] = 0.5
    values = np.full((6, 6), 1.0)
    values[2] = 1.4
    robots = [*draw_robots(10, 6), FollowedSessions(times, values, errors, None)]
    course = follow_sessions(robots[-1], list_series(robots, JOINTS)[0], NAMES)
    assert not course.kind
    np.testing.assert_allclose(course.line, 1.0, atol=0.005)
    assert not list_series(draw_robots(5, 2), JOINTS)
    scatter, freedom = estimate_scatter(draw_robots(3, 3), 0)
    assert 0.0 < scatter < 0.05
    assert freedom < 20.0


def test_dates_are_found_in_names():
    assert str(find_date("arm3_2026-03-02T08-30.parquet")) == "2026-03-02 08:30:00"
    assert str(find_date("2026-03-02.csv")) == "2026-03-02 00:00:00"
    assert find_date("2026-13-02.csv") is None
    assert find_date("session-07.npz") is None
