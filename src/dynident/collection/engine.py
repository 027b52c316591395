"""Work side by side in processes of this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from typing import TypeVar

from dynident.core.errors import ComputationError
from dynident.core.progress import Progress

T = TypeVar("T")
R = TypeVar("R")


def run_side_by_side(
    work: Callable[[T], R], tasks: Sequence[T], workers: int, progress: Progress, stage: str
) -> Iterator[tuple[int, R]]:
    """Results with the numbers of their tasks, in the order in which they are ready.

    Parameters
    ----------
    work : callable
        A function of a module, and so are tasks and results plain data: they cross processes.
    workers : int
        One works in this process.
    """
    progress(stage, 0.0)
    if workers == 1 or len(tasks) < 2:
        for k, task in enumerate(tasks):
            yield k, work(task)
            progress(stage, (k + 1) / len(tasks))
        return
    context = multiprocessing.get_context("spawn")  # a fork would share locks of threads
    pool = ProcessPoolExecutor(min(workers, len(tasks)), mp_context=context)
    try:
        waiting = {pool.submit(work, task): k for k, task in enumerate(tasks)}
        for done, future in enumerate(as_completed(waiting), 1):
            yield waiting[future], future.result()
            progress(stage, done / len(tasks))
    except BrokenExecutor as error:
        raise ComputationError(
            "a process ended before its log was done, for want of memory perhaps; what was done "
            "stays: go on with fewer workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)
