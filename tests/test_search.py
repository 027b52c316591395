"""nls, ga and pf: the least-squares answer within ranges, whatever the seed and the threads."""

from __future__ import annotations

import io
import json
from functools import cache

import numpy as np
import pytest
import toy
import typer
from frictions import values
from thin import first
from threadpoolctl import threadpool_limits

from dynident.api import identify
from dynident.cli.options import convert_flag_value
from dynident.consistency.constraints import TotalMass
from dynident.consistency.knowledge import Knowledge
from dynident.core.errors import ComputationError, InfeasibleError, InputError
from dynident.core.state_files import StateOrigin, pack_state_file, read_state_file
from dynident.dynamics.idim import build_idim
from dynident.estimators.covariance import ErrorBars
from dynident.methods.options import estimate, list_all_options
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.search import ranges
from dynident.search.ranges import (
    MEAN_AND_SPREAD,
    RangeProblem,
    SearchRegion,
    build_search_task,
    measure_spreads,
)
from dynident.search.search import SCHEMA

SEARCHES = ("nls", "ga", "pf")
CLOSE = {"nls": 1e-6, "ga": 0.02, "pf": 0.05}
"""How far from the exact answer, in standard deviations."""
SHORT = {"ga": "generations", "pf": "steps"}
"""What ends a search early."""


@cache
def problem(n=2, noise=0.5, seconds=12.0):
    robot = toy.arm(n)
    return Problem(robot, prepare(toy.log(robot, seconds, noise)[0], 10.0))


@cache
def whole(method):
    """A search of two joints to its end."""
    return estimate(problem(2), method)


def away(found, exact):
    return np.max(np.abs(found.beta - exact.beta) / exact.covariance.std)


@pytest.mark.parametrize("method", SEARCHES)
@pytest.mark.parametrize("n", first([1, 3]))
def test_without_constraints_it_is_weighted_least_squares(method, n):
    exact = estimate(problem(n), "wls", covariance="sandwich")
    found = estimate(problem(n), method, consistency="none", covariance="sandwich")
    assert away(found, exact) < CLOSE[method]
    np.testing.assert_allclose(found.covariance.std, exact.covariance.std, rtol=1e-3)
    assert found.theta is None


@pytest.mark.parametrize("method", first(SEARCHES, 2))
@pytest.mark.parametrize("prior", first(["nominal", "none"]))
def test_the_answer_is_consistent_and_that_of_the_cone_problem(method, prior):
    rows = problem(3)
    exact = estimate(rows, "pc-idim-ls", prior=prior, bootstrap=0)
    found = estimate(rows, method, prior=prior)
    assert away(found, exact) < CLOSE[method]
    assert rows.idim.is_consistent(found.theta)
    assert found.certificate.worst < 1e-6
    np.testing.assert_allclose(rows.base.matrix @ found.theta, found.beta, rtol=1e-9, atol=1e-9)
    assert not found.warnings


@pytest.mark.parametrize("method", first(SEARCHES, 2))
def test_constraints_and_ranges_hold(method):
    rows = problem(2)
    free = estimate(rows, "wls")
    fc2 = rows.base.names.index("fc2")
    low = free.beta[fc2] + 4.0 * free.covariance.std[fc2]
    found = estimate(
        rows,
        method,
        ranges={"fc2": (low, low + 5.0), "m2": (1.0, 1.5)},
        constraints=(TotalMass(lower=4.0, upper=5.0),),
    )
    assert found.beta[fc2] == pytest.approx(low, rel=1e-6)
    assert "fc2 at its range's low end" in found.active
    masses = found.theta[[0, 10]]
    assert 1.0 - 1e-6 < masses[1] < 1.5 + 1e-6
    assert 4.0 - 1e-6 < masses.sum() < 5.0 + 1e-6


@pytest.mark.long
@pytest.mark.parametrize("method", SEARCHES)
def test_means_and_spreads_are_what_eq_25_says(method):
    rows = problem(2)
    given = {"objective": MEAN_AND_SPREAD, "spread_weight": 2.0, "consistency": "none"}
    found = estimate(rows, method, **given)
    region = SearchRegion(objective=MEAN_AND_SPREAD, spread_weight=2.0)
    known = build_search_task(rows, region, Knowledge(consistency="none"), ErrorBars())

    def criterion(beta):
        errors = [
            np.concatenate([r.y[j] - r.X[j] @ beta[rows.columns[j]] for r in rows.rows()])
            for j in range(2)
        ]
        return sum(abs(e.mean()) + 2.0 * e.std() for e in errors)

    assert criterion(found.beta) == pytest.approx(
        measure_spreads(known.spreads, 1.0, found.beta[None])[0], rel=1e-9
    )
    best = known.optimum[0].beta
    assert known.distance(found.beta) < 0.5
    steps = 0.3 * found.covariance.std * np.random.default_rng(0).normal(size=(50, len(best)))
    assert all(criterion(best + step) > criterion(best) for step in steps)


@pytest.mark.long
@pytest.mark.parametrize("method", ["ga", "pf"])
def test_a_seed_gives_the_same_whatever_the_threads(method):
    rows = problem(2)
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            found.append(estimate(rows, method, **{SHORT[method]: 12}).beta)
    np.testing.assert_array_equal(*found)
    first, other = whole(method), estimate(rows, method, seed=1)
    assert np.any(other.beta != first.beta)
    assert away(other, first) < 0.1


@pytest.mark.parametrize(
    ("method", "budget", "unit"),
    [
        ("ga", "generations", "generations of 300"),
        pytest.param("pf", "steps", "steps of 500 particles", marks=pytest.mark.long),
    ],
)
def test_it_says_why_it_ended_and_how_far_from_the_optimum(method, budget, unit):
    ended = whole(method)
    assert ended.message.startswith(f"stagnated after {ended.iterations} {unit}, ")
    assert "sigma from the exact optimum" in ended.message
    short = estimate(problem(2), method, **{budget: 5})
    assert short.message.startswith(f"stopped after 5 {unit}, ")
    (note,) = [w for w in short.warnings if "sigma from the exact optimum" in w]
    assert note.endswith("nls finds that")


@pytest.mark.long
def test_what_the_log_leaves_open_is_within_its_range():
    robot = toy.arm(2)
    log = toy.log(robot, noise=0.1)[0]
    q, still = log.q.copy(), np.zeros_like(log.q)
    dq, ddq = log.dq.copy(), log.ddq.copy()
    q[:, 0], dq[:, 0], ddq[:, 0] = still[:, 0], 0.0, 0.0
    held = Problem(robot, prepare(Recording(
        "held", log.rate, q, log.tau, dq=dq, ddq=ddq), 10.0))  # fmt: skip
    for method in SEARCHES:
        found = estimate(held, method)
        assert np.all(np.isfinite(found.beta))
        assert held.idim.is_consistent(found.theta)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ranges": {}}, r"ranges is empty: give \[low, high\] by parameter"),
        ({"ranges": {"fc1": (3.0, 1.0)}}, r"ranges: fc1 is \[3, 1\], but low has to be below high"),
        (
            {"ranges": {"fc1": (3.0, 3.0)}},
            "low has to be below high; what is known is a constraint",
        ),
        ({"ranges": {"fc9": (0.0, 1.0)}}, "ranges: 'fc9' is not a parameter; did you mean 'fc"),
        ({"ranges": {"fc1": (0.0, np.inf)}}, "ranges is .* but should be a finite number"),
        ({"ranges": {"fc1": (0.0,)}}, "ranges is "),
        ({"ranges": 3}, "ranges is 3 but should be a valid"),
        ({"begin": {"fc1": -1.0}}, r"begin: fc1 is -1, outside of its range \[0, "),
        ({"ranges": {"fc1": (1.0, 2.0)}, "begin": {"fc1": 3.0}}, r"outside of its range \[1, 2\]"),
        ({"begin": {"fx1": 1.0}}, "begin: 'fx1' is not a base parameter; did you mean 'f"),
        (
            {"objective": "mean"},
            "objective 'mean' is not known; choose from least-squares, mean-and-spread",
        ),
        ({"objective": MEAN_AND_SPREAD, "prior": "nominal"}, "has no prior; leave it out"),
        ({"spread_weight": 0.0}, "spread_weight is 0.0 but"),
    ],
)
def test_bad_ranges_are_refused_in_one_line(options, message):
    with pytest.raises(InputError, match=message) as error:
        estimate(problem(2), "nls", **options)
    assert "\n" not in str(error.value)


def test_ranges_that_admit_nothing_are_refused_with_what_is_in_conflict():
    with pytest.raises(InfeasibleError, match="m1"):
        estimate(
            problem(2), "ga", ranges={"m1": (1.0, 2.0), "m2": (1.0, 2.0)},
            constraints=(TotalMass(lower=9.0, upper=10.0),),
        )  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("method", SEARCHES)
def test_ranges_that_many_parameters_rest_at_hold(method):
    rows = problem(3)
    free = estimate(rows, "wls")
    wide = 30.0 * free.covariance.std
    ranges = {
        name: (float(value + width), float(value + 3.0 * width))
        for name, value, width in zip(rows.base.names, free.beta, wide, strict=True)
        if name.startswith("f")
    }
    exact = estimate(rows, "nls", ranges=ranges, consistency="none")
    found = estimate(rows, method, ranges=ranges, consistency="none")
    assert len(exact.active) >= 3
    assert np.max(np.abs(found.beta - exact.beta) / free.covariance.std) < CLOSE[method]
    for name, (low, high) in ranges.items():
        assert low - 1e-6 < found.beta[rows.base.names.index(name)] < high + 1e-6


@cache
def curved():
    robot = toy.arm(2)
    idim = build_idim(robot, "stribeck")
    true = idim.shaped(np.array([0.3, 0.6]))
    theta = values(idim)
    q, dq, ddq = toy.motion(2, 2.5, 4)
    tau = true.torque(theta, q, dq, ddq)
    tau = tau + 0.01 * tau.std(axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    log = Recording("curved", toy.RATE, q, tau, dq=dq, ddq=ddq)
    return Problem(robot, prepare(log, 40.0), "stribeck"), true.shape


@pytest.mark.parametrize(
    ("method", "budget"),
    [
        ("nls", {}),
        pytest.param("ga", {"population": 12, "generations": 3}, marks=pytest.mark.long),
        pytest.param("pf", {"particles": 12, "steps": 3}, marks=pytest.mark.long),
    ],
)
def test_shapes_are_searched_with_what_is_linear_eliminated(method, budget):
    rows, truth = curved()
    fit = identify(rows, method, doctor=False, **budget)
    shape = fit.estimate.shape
    assert np.all(np.abs(shape.values - truth) < 4.0 * shape.std)
    assert fit.consistent
    if budget:
        assert fit.estimate.message.startswith("shapes stopped after 3 ")
    low, high = float(truth[0] + 0.05), float(truth[0] + 0.1)
    bound = identify(rows, method, doctor=False, ranges={"vs1": (low, high)}, **budget)
    assert low - 1e-6 < bound.estimate.shape.values[0] < high + 1e-6
    with pytest.raises(InputError, match=r"ranges: vs1 is .* the bounds of its model"):
        identify(rows, method, doctor=False, ranges={"vs1": (0.1, 1e3)})


def test_a_table_is_a_flag():
    flag = list_all_options()["ranges"]
    assert convert_flag_value(flag, "fc1 = [0, 10], m2 = [1, 5]") == {"fc1": [0, 10], "m2": [1, 5]}
    assert convert_flag_value(flag, "{fc1 = [0, 10]}") == {"fc1": [0, 10]}
    with pytest.raises(typer.BadParameter, match="--ranges is 'fc1', but has to be a table"):
        convert_flag_value(flag, "fc1")


def rubbing(seconds=3.0):
    robot = toy.arm(1)
    samples = toy.on_its_motion(toy.log(robot, seconds, 0.1)[0])
    return Problem(robot, samples, "stribeck")


@pytest.mark.long
@pytest.mark.parametrize("method", ["ga", "pf"])
@pytest.mark.parametrize(
    "rubs", [False, pytest.param(True, marks=pytest.mark.long)], ids=["linear", "shapes"]
)
def test_a_search_goes_on_from_its_state(method, rubs, tmp_path):
    rows = rubbing() if rubs else problem(2)
    file = str(tmp_path / "s.npz")
    few, more = (2, 4) if rubs else (10, 25)
    size = {"ga": "population", "pf": "particles"}[method]
    options = {"seed": 3, "doctor": False, size: 10} if rubs else {"seed": 3}

    def found(most, **other):
        if rubs:
            return identify(rows, method, **{SHORT[method]: most}, **options, **other).estimate
        return estimate(rows, method, **{SHORT[method]: most}, **options, **other)

    found(few, search_state=file)
    resumed, straight = found(more, search_state=file), found(more)
    np.testing.assert_array_equal(resumed.beta, straight.beta)
    np.testing.assert_array_equal(resumed.covariance.matrix, straight.covariance.matrix)
    assert resumed.message == straight.message
    # one that has ended is at its end
    np.testing.assert_array_equal(found(more, search_state=file).beta, straight.beta)


@pytest.mark.long
@pytest.mark.parametrize("method", ["ga", "pf"])
def test_an_interrupted_search_keeps_its_last_whole_step(method, tmp_path, monkeypatch):
    file, rows = tmp_path / "s.npz", problem(2)
    budget = {SHORT[method]: {"ga": 60, "pf": 15}[method]}
    options = {**budget, "search_state": str(file)}
    straight = estimate(rows, method, **budget)
    calls = []

    def stage(name, share):
        calls.append(share)
        if len(calls) == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        estimate(rows, method, stage, **options)
    assert file.is_file()
    assert calls == sorted(calls)
    assert calls[-1] > 0.0
    resumed = estimate(rows, method, **options)
    np.testing.assert_array_equal(resumed.beta, straight.beta)
    # in the middle of a step, too
    file.unlink()
    cost, seen = ranges.measure_squares, []

    def costly(*given):
        seen.append(1)
        if len(seen) == 30:
            raise KeyboardInterrupt
        return cost(*given)

    monkeypatch.setattr(ranges, "measure_squares", costly)
    with pytest.raises(KeyboardInterrupt):
        estimate(rows, method, **options)
    again = estimate(rows, method, **options)
    np.testing.assert_array_equal(again.beta, straight.beta)


@pytest.mark.parametrize("seed", range(12))
def test_a_search_that_hardly_began_is_brought_back_to_what_can_be(seed):
    """Rows so precise pull so hard from there that they must not drown the constraints."""
    found = estimate(problem(2), "ga", generations=1, population=20, seed=seed)
    assert found.certificate.worst < 1e-7
    assert problem(2).idim.is_consistent(found.theta)


def test_a_search_tells_where_it_began_and_ended_before_the_repair():
    budget = {"generations": 3, "population": 20}
    found = estimate(problem(2), "ga", constraints=(TotalMass(9.0),), **budget)
    begun, ended = found.history
    free = estimate(problem(2), "ga", **budget).history
    np.testing.assert_array_equal(free, found.history)  # constraints are of the repair alone
    system = problem(2).factors.weighted(found.sigma)
    costs = [np.linalg.norm(system.A @ beta - system.b) for beta in (begun, ended)]
    assert costs[1] < costs[0]
    assert np.abs(ended - found.beta).max() > 1e-6


def test_an_optimum_that_is_not_found_leaves_the_search_its_answer(monkeypatch):
    def fail(task):
        raise ComputationError("no such optimum")

    monkeypatch.setattr(RangeProblem, "optimum", property(fail))
    found = estimate(problem(2), "ga", generations=3, population=20)
    assert problem(2).idim.is_consistent(found.theta)
    assert any("is not known: no such optimum" in words for words in found.warnings)


def test_the_state_of_another_search_is_refused(tmp_path):
    file = tmp_path / "s.npz"

    def run(rows=None, method="ga", **options):
        options = {"generations": 2, "search_state": str(file), **options}
        if method == "pf":
            del options["generations"]
        return estimate(problem(2) if rows is None else rows, method, **options)

    run()
    before = file.read_bytes()
    for other in (
        {"seed": 1},
        {"population": 50},
        {"method": "pf"},
        {"ranges": {"fc1": (0.0, 3.0)}},
        {"objective": MEAN_AND_SPREAD},
        {"rows": problem(2, noise=0.4)},
    ):
        with pytest.raises(InputError, match="other options"):
            run(**other)
    with pytest.raises(InputError, match="with 14 parameters, not of toy with 4"):
        run(problem(1))
    assert file.read_bytes() == before
    file.write_bytes(before[: len(before) // 2])
    with pytest.raises(InputError, match="not a state file of a search"):
        run()
    kept = read_state_file(tmp_path / "none.npz", SCHEMA, (), "a search")
    assert kept is None
    file.write_bytes(before)
    kept = read_state_file(file, SCHEMA, (), "a search")
    about = {"generator": kept.about["generator"]}
    names = tuple(kept.about["parameters"])
    origin = StateOrigin(kept.about["robot"], names, kept.about["fingerprint"])
    without = {key: value for key, value in kept.arrays.items() if key != "costs"}
    other = {**kept.arrays, "sets": kept.arrays["sets"][:, :1]}
    edited = {**kept.arrays, "about": np.array(json.dumps(kept.about)), "best": np.zeros(2)}
    np.savez(saved := io.BytesIO(), **edited)
    for content in (
        pack_state_file(SCHEMA, origin, about, without),
        pack_state_file(SCHEMA, origin, about, other),
        saved.getvalue(),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match="damaged"):
            run()
        assert file.read_bytes() == content
    with pytest.raises(InputError, match="cannot be written"):
        run(search_state=str(file / "below" / "s.npz"))
