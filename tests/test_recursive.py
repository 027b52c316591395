"""Recursions: the batch answer, the textbook's formulas, forgetting, walks, wind-up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import toy
from frictions import registered, values  # noqa: F401
from robots import EXAMPLES
from thin import first

from dynident.core.errors import ComputationError, InputError
from dynident.dynamics.idim import build_idim
from dynident.estimators.covariance import ErrorBars
from dynident.friction.models import FRICTIONS
from dynident.methods import ESTIMATORS
from dynident.methods.options import estimate
from dynident.online.ekf import ekf
from dynident.online.recursion import BOUND, DIFFUSE, Recursion, build_ageing_rule, follow_rows
from dynident.online.recursive import Drift, Forgetting, RowWeights, kf, rls
from dynident.recording.prepare import prepare
from dynident.recording.read import read_log
from dynident.regression.problem import Problem
from dynident.robot import load_robot
from dynident.study.study import load_study_robot, read_study, read_study_samples


def logged(name, measured):
    """The problem of a measured log."""
    if name == "lwr4":
        robot = load_robot(measured("lwr4/kuka_lwr4.urdf"))
        columns = {"q": "positions_*", "tau": "torques_*", "time": "times"}
        log = read_log(measured("lwr4/measurements_1.npz"), robot, columns=columns)
        return Problem(robot, prepare(log.rows(500, 5027), bandwidth=3.0))
    study = read_study(EXAMPLES / name / "study.toml")
    robot = load_study_robot(study)
    logs = [
        read_study_samples(log, robot, study.prepare) for log in study.log if log.use == "identify"
    ]
    return Problem(robot, logs, study.robot.friction, study.robot.rotor)


@pytest.mark.parametrize("name", first(["emps", "lwr4", "tx40"], 2))
@pytest.mark.parametrize("method", ["rls", "kf"])
def test_without_forgetting_it_ends_where_weighted_least_squares_ends(measured, method, name):
    """Under the same sigma: those of wls are settled to 1e-6, and its answer is theirs so far."""
    problem = logged(name, measured)
    batch = ESTIMATORS["wls"](problem)
    found = ESTIMATORS[method](problem)
    same = problem.factors.weighted(batch.sigma).solve()
    std = batch.covariance.literature
    assert np.max(np.abs(found.beta - same) / std) < 1e-9
    assert np.max(np.abs(found.beta - batch.beta) / std) < 1e-5
    np.testing.assert_allclose(found.covariance.std, batch.covariance.std, rtol=1e-5)
    np.testing.assert_allclose(found.track.beta[-1], found.beta)
    np.testing.assert_allclose(found.track.std[-1], std, rtol=1e-5)
    assert len(found.track.time) <= 420
    assert np.all(np.diff(found.track.time) > 0.0)


def stream(p=5, rows=60, groups=2, seed=0):
    """Random rows of groups that know nothing of the first columns, two an instant."""
    rng = np.random.default_rng(seed)
    first = np.tile(np.arange(groups), rows)
    X = rng.normal(size=(rows * groups, p)) * (np.arange(p) >= first[:, None])
    y = X @ np.arange(1.0, p + 1.0) + rng.normal(size=len(X))
    elapsed = np.tile([0.1] + [0.0] * (groups - 1), rows)
    return X, y, first, elapsed


def passed(ageing, X, y, first, elapsed, groups=2, std=None):
    """The recursion after all rows, and its normalised innovations."""
    p = X.shape[1]
    start = DIFFUSE * np.ones(p) if std is None else std
    state = Recursion.start(np.zeros(p), np.diag(1.0 / start))
    squares = np.empty(len(X))
    rows = np.column_stack([X, y])
    group = np.arange(len(X)) % groups
    follow_rows(
        ageing, state.R, state.beta, state.due, state.place, state.row, rows, first, group,
        groups, elapsed, squares,
    )  # fmt: skip
    return state, squares


def textbook(X, y, elapsed, P, before):
    """Covariance form, row by row; `before` ages P at a new instant."""
    beta, squares = np.zeros(len(P)), []
    for x, value, time in zip(X, y, elapsed, strict=True):
        if time > 0.0:
            P = before(P, time)
        variance = 1.0 + x @ P @ x
        error = value - x @ beta
        squares.append(error**2 / variance)
        gain = P @ x / variance
        beta = beta + gain * error
        P = P - np.outer(gain, x @ P)
    return beta, P, np.array(squares)


def test_a_random_walk_is_the_kalman_filter_of_the_literature():
    X, y, first, elapsed = stream()
    walk, std = np.array([0.3, 0.0, 0.1, 0.0, 2.0]), 10.0 * np.ones(5)
    state, squares = passed(
        build_ageing_rule(np.ones(5), walk=walk, share=0), X, y, first, elapsed, std=std
    )
    P = np.diag(std**2)
    beta, P, expected = textbook(X, y, elapsed, P, lambda P, h: P + h * np.diag(walk**2))
    np.testing.assert_allclose(state.beta, beta, rtol=1e-9)
    np.testing.assert_allclose(state.covariance, P, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(squares, expected, rtol=1e-8)


@pytest.mark.parametrize("memory", [2.0, [np.inf, 2.0, 2.0, 0.7, np.inf]])
def test_forgetting_is_that_of_the_literature_one_factor_a_kind(memory):
    """Eq. 23 of zhang2018 with mu = exp(-step / memory); the floor is far below."""
    X, y, first, elapsed = stream()
    memory = np.broadcast_to(memory, 5)
    std = 10.0 * np.ones(5)
    state, squares = passed(
        build_ageing_rule(1e6 * np.ones(5), memory, share=0), X, y, first, elapsed, std=std
    )

    def faded(P, h):
        grown = np.exp(0.5 * h / memory)
        return P * np.outer(grown, grown)

    beta, P, expected = textbook(X, y, elapsed, np.diag(std**2), faded)
    np.testing.assert_allclose(state.beta, beta, rtol=1e-7)
    np.testing.assert_allclose(state.covariance, P, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(squares, expected, rtol=1e-6)


def test_directional_forgetting_adds_along_the_row_alone():
    X, y, first, elapsed = stream(groups=1)
    size, std = np.array([1.0, 2.0, 0.5, 1.0, 3.0]), 10.0 * np.ones(5)
    ageing = build_ageing_rule(size, directional=0.5)
    state, _ = passed(ageing, X, y, first, elapsed, groups=1, std=std)
    share = 1.0 - np.exp(-0.1 / 0.5)
    P, beta = np.diag(std**2), np.zeros(5)
    for x, value in zip(X, y, strict=True):
        g = size**2 * x
        P = P + share / (1.0 - share) * np.outer(g, g) / (g @ np.linalg.solve(P, g))
        gain = P @ x / (1.0 + x @ P @ x)
        beta = beta + gain * (value - x @ beta)
        P = P - np.outer(gain, x @ P)
    np.testing.assert_allclose(state.beta, beta, rtol=1e-7)
    np.testing.assert_allclose(state.covariance, P, rtol=1e-6, atol=1e-10)


AGEINGS = {
    "forgetting": {"memory": 1.0},
    "one memory a kind": {"memory": np.array([np.inf, np.inf, 0.5, 0.5])},
    "directional": {"directional": 1.0},
    "a walk": {"walk": 0.05},
}


@pytest.mark.parametrize("kind", AGEINGS)
def test_the_covariance_stays_positive_and_bounded_where_nothing_moves(kind):
    """Motion, then rows of gravity alone for a thousand memories, then motion again."""
    rng = np.random.default_rng(3)
    size = np.array([1.0, 1e-2, 10.0, 1e2])
    rows, rest = 200_000, slice(2_000, 190_000)
    X = rng.normal(size=(rows, 4)) / size
    X[rest] = np.array([0.7, 0.0, 0.0, 0.0])
    truth = size * np.array([0.5, -0.3, 0.2, 0.4])
    y = X @ truth + 0.01 * rng.normal(size=rows)
    ageing = build_ageing_rule(size, **AGEINGS[kind])
    elapsed, first = np.full(rows, 0.005), np.zeros(rows, dtype=np.int64)
    parts = []
    state = Recursion.start(np.zeros(4), np.diag(1.0 / (DIFFUSE * size)))
    for part in (slice(0, 2_000), rest, slice(190_000, rows)):
        follow_rows(
            ageing, state.R, state.beta, state.due, state.place, state.row,
            np.column_stack([100.0 * X[part], 100.0 * y[part]]), first[part], first[part], 1,
            elapsed[part], np.empty(len(y[part])),
        )  # fmt: skip
        parts.append((state.std / size, (state.beta - truth) / size))
        assert np.all(np.diag(state.R[:, :4]) > 0.0)
        assert np.all(np.linalg.eigvalsh(state.covariance / np.outer(size, size)) > 0.0)
    moved, rested, again = parts
    if kind == "a walk":
        # what is not seen walks on, and is known to: its variance is the walk's
        expected = np.sqrt(moved[0][1:] ** 2 + 0.05**2 * 188_000 * 0.005)
        np.testing.assert_allclose(rested[0][1:], expected, rtol=1e-3)
    elif kind == "directional":
        assert np.all(rested[0] < 20.0 * moved[0].max())
    else:
        assert np.all(rested[0] < 1.02 * BOUND)  # within one round of turns
    assert np.all(np.abs(again[1]) < 6.0 * np.maximum(again[0], 1e-9))
    assert np.all(np.abs(rested[1]) < 6.0 * np.maximum(rested[0], 1e-9))


def changing(seconds=20.0):
    """A log whose viscous friction grows by half while it runs; its problem and the truth."""
    robot = toy.arm(2)
    recording, theta = toy.log(robot, seconds=seconds, friction="viscous")
    samples = toy.on_its_motion(recording)
    problem = Problem(robot, samples, "viscous")
    t = np.arange(len(samples.q)) / samples.rate
    noise = 0.05 * np.random.default_rng(0).normal(size=samples.tau.shape)
    tau = samples.tau + (t / seconds)[:, None] * samples.dq * 1.0 + noise
    names = problem.idim.names
    truth = theta.copy()
    for j in (1, 2):
        truth[names.index(f"fv{j}")] += 1.0
    return Problem(robot, samples.driven(tau), "viscous"), problem.base.matrix @ truth


@pytest.mark.parametrize(
    ("method", "options", "share"),
    [
        ("rls", {"memory": 1.0}, 0.3),
        ("rls", {"memory_friction": 1.0}, 0.3),
        ("rls", {"memory": 0.1, "directional": True}, 0.6),
        ("kf", {"walk_friction": 0.02}, 0.3),
    ],
)
def test_what_changes_is_followed(method, options, share):
    problem, truth = changing()
    rubs = [k for k, name in enumerate(problem.base.names) if name.startswith("fv")]
    fixed = estimate(problem, method)
    found = estimate(problem, method, **options)
    assert np.all(np.abs(found.beta - truth)[rubs] < share * np.abs(fixed.beta - truth)[rubs])
    assert np.all(found.covariance.std > 0.0)
    middle = np.argmin(np.abs(found.track.time - 10.0))
    half = truth[rubs] - 0.5
    assert np.all(np.abs(found.track.beta[middle, rubs] - half) < 0.25)


def test_what_is_refused():
    robot = toy.arm(1)
    recording, _ = toy.log(robot, seconds=4.0, noise=0.1)
    problem = Problem(robot, toy.on_its_motion(recording))
    with pytest.raises(InputError, match="one memory"):
        rls(problem, Forgetting(directional=True))
    with pytest.raises(InputError, match="one memory"):
        rls(problem, Forgetting(memory=1.0, memory_friction=2.0, directional=True))
    with pytest.raises(InputError, match="memory"):
        Forgetting(memory=-1.0)
    with pytest.raises(InputError, match="walk"):
        Drift(walk=-1.0)
    with pytest.raises(InputError, match=r"sigma has 2 values; give one, or .* each of 1 group"):
        kf(problem, weights=RowWeights((1.0, 2.0)))
    with pytest.raises(InputError, match="sigma has to be positive"):
        RowWeights((1.0, -2.0))
    with pytest.raises(InputError, match="covariance 'hac'"):
        estimate(problem, "rls", memory=1.0, covariance="hac")
    still = recording.q * 0.0
    samples = toy.on_its_motion(recording)
    quiet = Problem(robot, samples.along(still, still, still))
    with pytest.raises(ComputationError, match="does not excite"):
        kf(quiet)


def test_sigma_can_be_given():
    robot = toy.arm(2)
    recording, _ = toy.log(robot, seconds=4.0, noise=0.1)
    problem = Problem(robot, toy.on_its_motion(recording))
    equal = estimate(problem, "kf", sigma=0.3)
    np.testing.assert_array_equal(estimate(problem, "kf", sigma=(0.3, 0.3)).beta, equal.beta)
    # equally weighed without forgetting: ordinary least squares, whatever the sigma
    ols = estimate(problem, "ols").beta
    np.testing.assert_allclose(equal.beta, ols, rtol=1e-6, atol=1e-9)
    unequal = estimate(problem, "kf", sigma=(0.3, 30.0)).beta
    assert np.max(np.abs(unequal - ols)) > 1e-4


@pytest.mark.long
@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("coupled", first([True, False]))
def test_the_extended_filter_finds_shapes_and_keeps_their_bounds(coupled):
    robot = toy.arm(2, coupled=coupled)
    idim = build_idim(robot, "stribeck")
    truth = np.array(idim.shape) * np.linspace(1.6, 0.7, len(idim.shape))
    idim = idim.shaped(truth)
    theta = values(idim)
    recording, _ = toy.log(robot, seconds=8.0)
    samples = toy.on_its_motion(recording, 40.0)
    tau = idim.torque(theta, samples.q, samples.dq, samples.ddq)
    tau = tau + 0.02 * np.random.default_rng(0).normal(size=tau.shape)
    problem = Problem(robot, samples.driven(tau), "stribeck")
    found = ekf(problem)
    assert found.shape is not None
    away = (found.shape.values - truth) / found.shape.std
    assert np.all(np.abs(found.shape.values - truth) < 0.1 * truth + 6.0 * found.shape.std), away
    beta = problem.base.matrix @ theta
    usual = kf(problem)
    error = [np.sum(e**2) for e in found.residuals.error]
    assert np.all(np.array(error) < [np.sum(e**2) for e in usual.residuals.error])
    assert np.linalg.norm(found.beta - beta) < 0.3 * np.linalg.norm(usual.beta - beta)
    # a shape that would be beyond its bound ends on it
    tight = replace(FRICTIONS["stribeck"].shape[0], upper=0.13)
    bounds = replace(FRICTIONS["stribeck"], shape=(tight,))
    FRICTIONS["stribeck"] = bounds
    held = ekf(Problem(robot, samples.driven(tau), "stribeck"))
    assert held.shape is not None
    assert np.all(held.shape.values <= 0.13)
    assert held.shape.values[0] == 0.13


@pytest.mark.long
def test_the_extended_filter_forgets():
    robot = toy.arm(2)
    idim = build_idim(robot, "stribeck")
    recording, _ = toy.log(robot, seconds=15.0)
    samples = toy.on_its_motion(recording, 40.0)
    theta = values(idim)
    tau = idim.torque(theta, samples.q, samples.dq, samples.ddq)
    tau = tau + 0.02 * np.random.default_rng(0).normal(size=tau.shape)
    # viscous friction is half as large until the middle
    late = np.arange(len(tau)) > len(tau) // 2
    fv = np.array([theta[idim.names.index(f"fv{j}")] for j in (1, 2)])
    tau -= np.where(late, 0.0, 0.5)[:, None] * fv * samples.dq
    problem = Problem(robot, samples.driven(tau), "stribeck")
    columns = [problem.base.names.index(f"fv{j}") for j in (1, 2)]
    plain, quick = (ekf(problem, forgetting=Forgetting(memory_friction=m)) for m in (None, 3.0))
    assert np.all(np.abs(quick.beta[columns] - fv) < 0.1 * fv)
    assert np.all(np.abs(plain.beta[columns] - fv) > 0.1 * fv)
    assert np.all(quick.covariance.std[columns] > plain.covariance.std[columns])
    assert "forgetting" in quick.covariance.name
    # without shapes it is the recursion itself
    linear = Problem(robot, samples.driven(tau))
    same = [f(linear, forgetting=Forgetting(memory=5.0)).beta for f in (ekf, rls)]
    np.testing.assert_array_equal(*same)


@pytest.mark.usefixtures("registered")
def test_what_the_extended_filter_does_not_follow():
    recording, _ = toy.log(toy.arm(1), seconds=4.0, noise=0.1)
    samples = toy.on_its_motion(recording)
    with pytest.raises(InputError, match="more than the motion"):
        ekf(Problem(toy.arm(1), samples, "dahl"))
    with pytest.raises(InputError, match="not apply to ekf"):
        ekf(Problem(toy.arm(1), samples, "stribeck"), bars=ErrorBars("hac"))
