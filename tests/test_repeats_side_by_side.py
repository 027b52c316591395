"""What repeats runs side by side: the same bits on every engine, in whatever order it is done.

What a search gathers at each of its steps, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import toy
from clusters import start_processes
from test_excitation import QUICK, ROBOT
from test_search import rubbing

import dynident as di
from dynident.conic.cones import SemidefiniteCone
from dynident.consistency.constraints import LinkMass
from dynident.consistency.draws import CHAINS, ConeRegion, NormalDraws, draw_by_hit_and_run
from dynident.core import side_by_side
from dynident.core.errors import ComputationError, InputError
from dynident.core.progress import ignore_progress
from dynident.core.side_by_side import HERE, Engine, LostTask, gather_side_by_side
from dynident.excitation import design
from dynident.methods.options import estimate
from dynident.search import ranges
from dynident.search.shape_search import search_start_shapes
from dynident_papers.ardiani2024 import draws, estimated
from dynident_papers.brunot2019 import estimated as output_errors
from dynident_papers.brunot2019.simulated import REDUCED


@contextmanager
def run_backwards(work: Callable[[Any], Any], engine: Engine):
    """As other processes do it: what crosses is plain data, and the last may be ready first."""

    def run(tasks):
        for k in reversed(range(len(tasks))):
            own, task = pickle.loads(pickle.dumps((work, tasks[k])))
            yield k, pickle.loads(pickle.dumps(own(task)))

    yield run


@pytest.fixture
def backwards(monkeypatch) -> Engine:
    monkeypatch.setitem(side_by_side.ENGINES, "backwards", run_backwards)
    return Engine("backwards")


def draw_chains(engine: Engine) -> np.ndarray:
    """More chains than one task has."""
    basis = np.zeros((3, 2, 2))
    basis[0, 0, 0] = basis[1, 1, 1] = basis[2, 0, 1] = basis[2, 1, 0] = 1.0
    normal = NormalDraws(np.array([1.2, 0.8, 0.1]), np.eye(3), np.array([-1.0, -0.7, 0.2]))
    region = ConeRegion.of([SemidefiniteCone("J", basis, np.zeros((2, 2)))], normal)
    found, _ = draw_by_hit_and_run(
        region, normal.mean, 2 * CHAINS + 10, np.random.default_rng(0), engine
    )
    return found


def test_chains_of_draws_are_the_same_on_any_engine(backwards):
    found = draw_chains(HERE)
    assert np.array_equal(draw_chains(backwards), found)
    assert len(np.unique(found, axis=0)) == 2 * CHAINS + 10  # no task repeats another's


def search(engine: Engine, **options: Any) -> di.Excitation:
    return di.excite(ROBOT, **{**QUICK, "starts": 3, "iterations": 10, **options}, engine=engine)


@pytest.mark.long
@pytest.mark.parametrize("given", [{}, {"trajectory": "spline", "free_knots": True}])
def test_starts_of_a_search_are_the_same_on_any_engine(backwards, given):
    here, there = search(HERE, **given), search(backwards, **given)
    assert np.array_equal(here.trajectory.C, there.trajectory.C)
    assert here.design.value == there.design.value
    assert here.design.stopped == there.design.stopped == "all 3 starts were searched"


@pytest.mark.long
def test_the_first_start_is_that_of_a_search_with_fewer():
    values = [search(HERE, starts=k).design.value for k in (1, 3)]
    assert values[1] <= values[0]
    one = search(HERE, starts=3).design.history[0][1]
    assert one == values[0]


@pytest.mark.long
def test_starts_that_lead_nowhere_leave_what_others_found(backwards, monkeypatch):
    once = design.search_trajectory

    def fail(task, rng, *rest):
        """None of the second start, and no place to stand of the third."""
        places = [np.random.default_rng([0, 0, k]).bit_generator.state for k in range(3)]
        k = places.index(rng.bit_generator.state)
        if k == 2:
            raise ComputationError("nowhere to stand")
        return None if k == 1 else once(task, rng, *rest)

    monkeypatch.setattr(design, "search_trajectory", fail)
    alone = search(HERE, starts=1)
    assert all(search(each).design.value == alone.design.value for each in (HERE, backwards))
    monkeypatch.setattr(design, "search_trajectory", lambda *rest: fail(*rest) and None)
    for engine in (HERE, backwards):
        with pytest.raises(ComputationError, match="nowhere to stand"):
            search(engine)


@dataclass(frozen=True)
class Ends:
    """Work whose process ended, of the task with this number."""

    number: int

    def __call__(self, task: int) -> int | LostTask:
        return LostTask("its process ended") if task == self.number else task


def test_a_result_that_has_to_be_there_is_missed():
    assert gather_side_by_side(Ends(9), range(3), HERE, ignore_progress, "counting") == [0, 1, 2]
    with pytest.raises(ComputationError, match="counting: its process ended"):
        gather_side_by_side(Ends(1), range(3), HERE, ignore_progress, "counting")


@cache
def bound_problem() -> di.Problem:
    robot = toy.arm(2)
    return di.Problem(robot, toy.on_its_motion(toy.log(robot, noise=1.0)[0]))


BOUND = (LinkMass("link_2", upper=0.5),)
"""Which is active."""


def bootstrap(engine: Engine) -> np.ndarray:
    """More replicates than one task has."""
    found = estimate(
        bound_problem(), "pc-idim-ls", ignore_progress, engine, constraints=BOUND, bootstrap=30
    )
    assert "bootstrap of the cone problem, 30 replicates" in found.covariance.name
    return found.covariance.matrix


SEARCHES: dict[str, dict[str, Any]] = {
    "ga": {"population": 70, "generations": 3},
    "pf": {"particles": 70, "steps": 2},
}


def search_ranges(method: str, engine: Engine, **options: Any) -> np.ndarray:
    given = {**SEARCHES[method], **options}
    return estimate(bound_problem(), method, ignore_progress, engine, **given).history


def search_shapes(method: str, engine: Engine) -> tuple[float, ...]:
    """Each set is a pass over the log, and a task."""
    least = {key: 10 if k == 0 else 1 for k, key in enumerate(SEARCHES[method])}
    found, words = search_start_shapes(rubbing(), method, least, ignore_progress, engine)
    assert "after 1 " in words
    return found.idim.shape


def test_replicates_of_the_bootstrap_are_the_same_on_any_engine(backwards):
    assert np.array_equal(bootstrap(backwards), bootstrap(HERE))


@pytest.mark.parametrize("objective", ["least-squares", "mean-and-spread"])
@pytest.mark.parametrize("method", SEARCHES)
def test_populations_are_the_same_on_any_engine(method, objective, backwards, monkeypatch):
    monkeypatch.setattr(ranges, "PORTION", 16)
    here = search_ranges(method, HERE, objective=objective)
    assert np.array_equal(search_ranges(method, backwards, objective=objective), here)


@pytest.mark.parametrize("method", SEARCHES)
def test_shapes_are_searched_alike_on_any_engine(method, backwards):
    assert search_shapes(method, backwards) == search_shapes(method, HERE)


def test_a_search_goes_on_from_its_state_on_another_engine(backwards, tmp_path, monkeypatch):
    monkeypatch.setattr(ranges, "PORTION", 16)
    file = str(tmp_path / "state.npz")
    search_ranges("ga", HERE, generations=2, search_state=file)
    resumed = search_ranges("ga", backwards, search_state=file)
    assert np.array_equal(resumed, search_ranges("ga", HERE))


def test_a_problem_crosses_processes_without_the_rows_that_it_keeps():
    problem = di.Problem(bound_problem().robot, bound_problem().samples, progress=lambda *_: None)
    before = len(pickle.dumps(problem))
    rows = sum(each.nbytes for stretch in problem.rows() for each in stretch.X)
    crossed = pickle.loads(pickle.dumps(problem))
    assert len(pickle.dumps(problem)) < before + rows / 4
    for one, other in zip(problem.factors.groups, crossed.factors.groups, strict=True):
        assert np.array_equal(one.factor, other.factor)


def test_an_engine_is_refused_where_nothing_repeats():
    words = "method wls has no repetitions for an engine; smooth, ga, pf, pc-\\* have"
    for call in (di.identify, estimate):
        given = {"engine": Engine(workers=2)} if call is di.identify else {}
        rest = () if given else (ignore_progress, Engine(workers=2))
        with pytest.raises(InputError, match=words):
            call(bound_problem(), "wls", *rest, **given)
    assert di.identify(bound_problem(), "wls", doctor=False, engine=HERE).method == "wls"


def repeat_draws(engine: Engine) -> tuple[draws.Drawn, ...]:
    return draws.estimate_draws((draws.QUIET,), ("wls",), draws=2, engine=engine)


def judge_setting(engine: Engine) -> np.ndarray:
    setting = replace(output_errors.FEW[0], disturbance=0.0)
    asked = [output_errors.Asked(setting, REDUCED, (("decimated", "ols"),))]
    ((truth, _, found),) = gather_side_by_side(
        output_errors.estimate_setting, asked, engine, ignore_progress, "settings"
    )
    return np.append(truth, found["decimated", "ols"].value)


def estimate_weak_scenario(engine: Engine) -> np.ndarray:
    job = estimated.Job(2000.0, True, "ode1", draws.ACTUAL, ("wls",))
    (found,) = gather_side_by_side(
        estimated.estimate_job, [job], engine, ignore_progress, "scenarios"
    )
    return found.fits["wls"].beta


@pytest.mark.long
def test_cases_of_papers_are_the_same_on_any_engine(backwards):
    for one, other in zip(repeat_draws(HERE), repeat_draws(backwards), strict=True):
        assert np.array_equal(one.errors, other.errors)
        assert len({fit.beta.tobytes() for fit in one.fits}) == 2
    for each in (judge_setting, estimate_weak_scenario):
        assert np.array_equal(each(HERE), each(backwards))


def draw_sample(engine: Engine) -> np.ndarray:
    return di.sample(bound_fit(), 300, engine=engine).theta


@cache
def bound_fit() -> di.Fit:
    return di.identify(bound_problem())


IN_PROCESSES: tuple[Callable[[Engine], Any], ...] = (bootstrap, partial(search_ranges, "ga"))
"""One group of tasks, and groups that follow from others."""
ON_A_CLUSTER: tuple[Callable[[Engine], Any], ...] = (
    *IN_PROCESSES,
    draw_chains,
    draw_sample,
    lambda engine: search(engine).trajectory.C,
    partial(search_ranges, "pf"),
    *(partial(search_shapes, method) for method in SEARCHES),
    lambda engine: [each.errors for each in repeat_draws(engine)],
)
"""All that repeats: of a cluster the workers, which are processes too, begin once for all of it."""


@pytest.mark.long
def test_the_same_bits_in_processes_and_on_a_cluster(monkeypatch):
    monkeypatch.setattr(ranges, "PORTION", 16)
    here = [repeat(HERE) for repeat in ON_A_CLUSTER]
    for repeat, expected in zip(IN_PROCESSES, here):
        assert np.array_equal(repeat(Engine(workers=2)), expected)
    with start_processes() as cluster:
        engine = Engine("dask", scheduler=cluster.scheduler_address)
        for repeat, expected in zip(ON_A_CLUSTER, here, strict=True):
            assert np.array_equal(repeat(engine), expected)
