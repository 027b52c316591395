"""Independent work in several threads of one process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from test_encoder import KD, KP, log_of, pd, twin

import dynident as di
from dynident.core import threads
from dynident.core.threads import map_in_threads


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine of three processors."""
    monkeypatch.setattr(threads, "count_processors", lambda: 3)
    threads.open_pool.cache_clear()
    yield
    threads.open_pool().shutdown()
    threads.open_pool.cache_clear()


def test_results_come_in_the_order_of_their_tasks(several: None) -> None:
    def work(k: int) -> tuple[int, str]:
        time.sleep(0.002 * (5 - k % 5))
        return k, threading.current_thread().name

    found = list(map_in_threads(work, range(20)))
    assert [k for k, _ in found] == [*range(20)]
    assert all(name.startswith("dynident") for _, name in found)


def test_no_more_tasks_are_begun_than_are_asked_for_soon(several: None) -> None:
    begun: list[int] = []
    results = map_in_threads(begun.append, range(100))
    next(results)
    assert len(begun) <= 4
    results.close()  # type: ignore[attr-defined]
    assert len(begun) <= 4


def test_what_a_task_raises_is_raised_and_the_rest_is_left(several: None) -> None:
    begun: list[int] = []

    def work(k: int) -> int:
        begun.append(k)
        if k == 2:
            raise ValueError("the third")
        return k

    with pytest.raises(ValueError, match="the third"):
        list(map_in_threads(work, range(100)))
    assert len(begun) < 10


def test_threads_begin_no_others(several: None) -> None:
    def name(_: int) -> str:
        return threading.current_thread().name

    def work(_: int) -> set[str]:
        return {threading.current_thread().name, *map_in_threads(name, range(5))}

    assert all(len(names) == 1 for names in map_in_threads(work, range(6)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without forks")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_has_threads_of_its_own(several: None) -> None:
    assert list(map_in_threads(time.sleep, [0.02] * 5)) == [None] * 5  # which begins all three
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends it where it waits for threads that it does not have
        os._exit(0 if list(map_in_threads(abs, range(5))) == [*range(5)] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_encoders_are_fitted_to_the_same_bits_by_one_thread_and_by_several(tmp_path, monkeypatch):
    robot, loop, theta = twin(tmp_path, 2.0)
    logs = tuple(
        di.prepare(log_of(loop, theta, 5e-5 * (1 + k), seed=k), bandwidth=10.0) for k in range(3)
    )

    def fit() -> np.ndarray:
        problem = di.Problem(robot, logs)
        simulation = di.Simulation(pd(KP, KD), width=0.03)
        return di.identify(problem, "cloe", simulation=simulation, links="fixed").estimate.theta

    found = {}
    for count in (1, 3):
        monkeypatch.setattr(threads, "count_processors", lambda count=count: count)
        threads.open_pool.cache_clear()
        found[count] = fit()
    threads.open_pool.cache_clear()
    np.testing.assert_array_equal(found[1], found[3])
