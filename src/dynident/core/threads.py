"""Threads: one of linear algebra, whose factors are small, and some for work that is independent.

Compiled loops and LAPACK hold no lock of Python's, so that threads do them side by side.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from scipy import linalg  # noqa: F401  which brings a library of its own
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

HERE = threading.local()
"""Of each thread: whether it is one of several, which begin no others."""


@cache
def find_blas_libraries() -> ThreadpoolController:
    """The libraries of linear algebra; to look for them takes a millisecond."""
    return ThreadpoolController()


def limit_to_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function with one BLAS thread; the same bits come out on any machine's cores."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with find_blas_libraries().limit(limits=1):
            return function(*args, **kwargs)

    return limited


def count_processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def work_alone() -> None:
    """Have this thread begin no others: it is one of several that share the processors."""
    HERE.alone = True


@cache
def open_pool() -> ThreadPoolExecutor:
    """As many threads as there are processors, for as long as the process lives."""
    return ThreadPoolExecutor(count_processors(), "dynident", initializer=work_alone)


if hasattr(os, "register_at_fork"):  # a fork has the pool, and none of its threads
    os.register_at_fork(after_in_child=open_pool.cache_clear)


def map_in_threads(work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
    """Results in the order of their tasks, as many at work as there are processors.

    They are those of one thread, to the bit: tasks are whole pieces of work that share nothing.
    """
    if count_processors() < 2 or len(tasks) < 2 or getattr(HERE, "alone", False):
        yield from map(work, tasks)
        return
    waiting: deque[Future[R]] = deque()
    try:
        for task in tasks:
            waiting.append(open_pool().submit(work, task))
            if len(waiting) > count_processors():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)
