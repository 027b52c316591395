"""One thread of linear algebra: factors are small, and threads would wait for each other."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from scipy import linalg  # noqa: F401  which brings a library of its own
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


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
