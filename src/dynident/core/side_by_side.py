"""Work side by side: in processes of this machine, or on the workers of a Dask cluster.

Whoever asks for the work alone writes files, as results come: a run that is ended anywhere leaves
what it had done, and the next one goes on from there.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dynident.core.errors import ComputationError, DynidentError, InputError
from dynident.core.progress import Progress
from dynident.core.text import format_one_line, suggest_nearest
from dynident.core.version import VERSION

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
R = TypeVar("R")

RETRIES = 3
"""How often a task is begun again whose process ended."""
WAITING = 1000
"""Tasks that a scheduler is told of at a time: results of others need not fit its memory."""
GIGABYTE = 1e9
ONE_AT_A_TIME = Lock()
"""Of a worker with several threads: the threads of linear algebra are the whole process's."""


@dataclass(frozen=True)
class Engine:
    """Where tasks run.

    >>> di.Engine(workers=2).name
    'processes'

    Attributes
    ----------
    name : str
        One of `ENGINES`.
    workers : int
        Processes of this machine; one works in this process.
    memory : float, optional
        Of each of these processes at most [GB]; each has one of its own then.
    scheduler : distributed.Client or str, optional
        Of Dask: a client, or an address, or a file that has it (``.json``).
    """

    name: str = "processes"
    workers: int = 1
    memory: float | None = None
    scheduler: Client | str | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise InputError(
                f"engine {self.name!r} is not known{suggest_nearest(self.name, ENGINES)}"
            )
        if self.workers < 1:
            raise InputError(f"workers is {self.workers}, but has to be at least 1")
        if self.memory is not None and not self.memory > 0.0:
            raise InputError(f"memory is {self.memory:g} GB, but has to be positive")
        cluster = self.name == "dask"
        if cluster and self.scheduler is None:
            raise InputError(
                "engine dask needs a scheduler: its address, tcp://HOST:8786, or a Client"
            )
        if cluster and (self.memory is not None or self.workers > 1):
            raise InputError("workers and memory are of processes: Dask's workers have their own")
        if not cluster and self.scheduler is not None:
            raise InputError("a scheduler is of Dask's: take engine dask")


def choose_engine(workers: int, engine: Engine | Client | str | None) -> Engine:
    """So many processes of this machine, or what was given instead: an engine, or a scheduler."""
    if engine is None:
        return Engine(workers=workers)
    return engine if isinstance(engine, Engine) else Engine("dask", workers, scheduler=engine)


@dataclass(frozen=True)
class Lost:
    """What there is instead of a result, each time that the task was begun."""

    reason: str


Results = Iterator[tuple[int, "R | Lost"]]


def run_side_by_side(
    work: Callable[[T], R], tasks: Sequence[T], engine: Engine, progress: Progress, stage: str
) -> Results[R]:
    """Results with the numbers of their tasks, in the order in which they are ready.

    The work is a function of a module, and tasks and results are plain data: they cross processes.
    It raises `InputError` where no scheduler answers, `ComputationError` where one goes away, and
    what a task raises.
    """
    progress(stage, 0.0)
    for done, result in enumerate(ENGINES[engine.name](work, tasks, engine), 1):
        yield result
        progress(stage, done / len(tasks))


# --------------------------------------------------------------------------- processes


def run_in_processes(work: Callable[[T], R], tasks: Sequence[T], engine: Engine) -> Results[R]:
    """Each process has one task at a time: of one that ends it is known which it had."""
    if engine.memory is None and (engine.workers == 1 or len(tasks) < 2):
        yield from ((k, work(task)) for k, task in enumerate(tasks))
        return
    context = multiprocessing.get_context("spawn")  # a fork would share locks of threads
    make = partial(ProcessPoolExecutor, 1, context, limit_memory, (engine.memory,))
    waiting, ended = deque(range(len(tasks))), Counter[int]()
    free: list[ProcessPoolExecutor] = []
    made: list[ProcessPoolExecutor] = []
    running: dict[Future[R], tuple[int, ProcessPoolExecutor]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < engine.workers:
                if not free:
                    free.append(make())
                    made.append(free[-1])
                process = free.pop()
                try:
                    future = process.submit(work, tasks[waiting[0]])
                except BrokenExecutor:  # it ended while it had nothing to do
                    process.shutdown()
                    continue
                running[future] = waiting.popleft(), process
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                k, process = running.pop(future)
                try:
                    result: R | Lost = future.result()
                except MemoryError:
                    process.shutdown()
                    result = Lost(f"needs more memory than {engine.memory or 0.0:g} GB")
                except BrokenExecutor:
                    process.shutdown()
                    ended[k] += 1
                    if ended[k] <= RETRIES:
                        waiting.append(k)
                        continue
                    result = Lost(
                        f"its process ended {ended[k]} times, for want of memory perhaps: take "
                        "fewer workers"
                    )
                else:
                    free.append(process)
                yield k, result
    finally:
        for process in made:
            process.shutdown(cancel_futures=True)


def limit_memory(gigabytes: float | None) -> None:
    """What this process may have of its own, from now on."""
    if gigabytes is not None:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (int(gigabytes * GIGABYTE), most))


# -------------------------------------------------------------------------------- Dask


def run_on_dask(work: Callable[[T], R], tasks: Sequence[T], engine: Engine) -> Results[R]:
    """Tasks that a scheduler hands to its workers, anew where these end."""
    dask, given = load_distributed(), engine.scheduler
    client = connect_client(dask, given) if isinstance(given, str) else cast("Any", given)
    if not isinstance(client, dask.Client) or client.asynchronous:
        raise InputError("engine is a Client of dask.distributed that waits, or an address")
    call = partial(client.submit, run_alone, VERSION, work, retries=RETRIES, pure=False)
    suspects = []
    try:
        for k, result in gather_results(dask, call, tasks, range(len(tasks)), WAITING):
            if isinstance(result, Lost):
                suspects.append(k)
            else:
                yield k, result
        # a worker that ends has tasks beside the one that ended it: which it is shows one by one
        yield from gather_results(dask, call, tasks, suspects, 1)
    except (OSError, dask.CancelledError) as error:  # of connections
        raise tell_of_lost_scheduler() from error
    finally:
        if client is not given:
            client.close()


def gather_results(
    dask: Any, call: Callable[[T], Any], tasks: Sequence[T], chosen: Iterable[int], most: int
) -> Results[Any]:
    """Results of some of the tasks, of which so many wait at a time."""
    numbers = iter(chosen)
    running: dict[Any, int] = {}
    try:
        running |= {call(tasks[k]): k for k in islice(numbers, most)}
        ready = dask.as_completed(list(running), raise_errors=False)
        for future in ready:
            k = running.pop(future)
            if future.status == "cancelled":
                raise tell_of_lost_scheduler()
            # of one whose worker has ended since it was done, this waits until it is done again
            error = future.exception()
            yield k, future.result() if error is None else explain_failure(error, dask.KilledWorker)
            future.release()
            for following in islice(numbers, 1):
                again = call(tasks[following])
                running[again] = following
                ready.add(again)
    finally:
        for future in running:
            future.release()


def tell_of_lost_scheduler() -> ComputationError:
    """What is raised then."""
    return ComputationError(
        "the scheduler went away; what was done stays: give the same again once it is back"
    )


def load_distributed() -> Any:
    """What Dask's clusters are used by."""
    try:
        return import_module("distributed")
    except ImportError as error:
        raise InputError("engine dask needs Dask: pip install 'dynident[cluster]'") from error


def connect_client(dask: Any, place: str) -> Any:
    """A client of the scheduler at an address, or of the one that a file tells of."""
    try:
        if place.endswith(".json"):
            return dask.Client(scheduler_file=place)
        return dask.Client(place)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no scheduler answers at {place} ({format_one_line(error)}); dask scheduler starts one"
        ) from error


def explain_failure(error: BaseException, killed: type[BaseException]) -> Lost:
    """What became of a task without a result, where others may have theirs."""
    if isinstance(error, DynidentError):
        raise error
    if isinstance(error, (killed, MemoryError)):
        return Lost("its worker ended again and again, for want of memory perhaps")
    name = type(error).__name__
    raise ComputationError(
        f"the cluster failed ({name}: {format_one_line(error)}); its scheduler and workers need "
        "the packages that are here"
    ) from error


def run_alone(version: str, work: Callable[[T], R], task: T) -> R:
    """One task of a worker that may have several threads, and another version."""
    if version != VERSION:
        raise InputError(f"the workers have dynident {VERSION}, not {version}: give all the same")
    with ONE_AT_A_TIME:
        return work(task)


ENGINES: dict[str, Callable[[Callable[[Any], Any], Sequence[Any], Engine], Results[Any]]] = {
    "processes": run_in_processes,
    "dask": run_on_dask,
}
