"""Work side by side: in processes of this machine, or on the workers of a Dask cluster.

Whoever asks for the work alone writes files, as results come: a run that is ended anywhere leaves
what it had done, and the next one goes on from there.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

from dynident.core.errors import (
    ComputationError,
    DynidentError,
    InputError,
    name_missing_package,
    refuse_unknown,
)
from dynident.core.progress import Progress
from dynident.core.text import format_one_line
from dynident.core.threads import work_alone
from dynident.core.version import VERSION

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
R = TypeVar("R")

RETRIES = 3
"""How often a task is begun again whose process ended."""
BATCH = 8.0
"""What a batch of short tasks takes about, long beside what it costs to hand one out [s]."""
SHARES = 2
"""Of what is left a worker has a batch at most of so many: all end at about the same time."""
AHEAD = 2
"""Batches a worker that a scheduler is told of: results of others need not fit its memory."""
FEWEST_AHEAD = 64
"""And so many at least: a cluster that grows with its work is to see some."""
LARGE_WORK = 1 << 20
"""Size of work from which a cluster has it once, and not with each of its tasks [bytes]."""
PART = 1 << 22
"""In parts of so much: Dask warns of more in one message [bytes]."""
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
        refuse_unknown(self.name, ENGINES, f"engine {self.name!r} is not known")
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
            raise InputError("workers and memory apply to processes: Dask's workers have their own")
        if not cluster and self.scheduler is not None:
            raise InputError("a scheduler needs engine dask")


Runner: TypeAlias = "Engine | Client | str | None"
"""An engine, or of Dask a client or its scheduler's address; None is this machine."""


def choose_engine(workers: int, engine: Runner) -> Engine:
    """So many processes of this machine, or what was given instead: an engine, or a scheduler."""
    if engine is None:
        return Engine(workers=workers)
    return engine if isinstance(engine, Engine) else Engine("dask", workers, scheduler=engine)


@dataclass(frozen=True)
class LostTask:
    """What there is instead of a result, each time that the task was begun."""

    reason: str


Results = Iterator[tuple[int, "R | LostTask"]]
Run: TypeAlias = "Callable[[Sequence[T]], Results[R]]"
"""Results of some tasks of one work, with their numbers, as they are ready."""
Gather: TypeAlias = Callable[[Sequence[T]], list[R]]
"""All results of some tasks, in their order."""


def run_side_by_side(
    work: Callable[[T], R], tasks: Sequence[T], engine: Engine, progress: Progress, stage: str
) -> Results[R]:
    """Results with the numbers of their tasks, in the order in which they are ready.

    The work is a function of a module, and tasks and results are plain data: they cross processes.
    It raises `InputError` where no scheduler answers, `ComputationError` where one goes away, and
    what a task raises.
    """
    progress(stage, 0.0)
    with ENGINES[engine.name](work, engine) as run:
        for done, result in enumerate(run(tasks), 1):
            yield result
            progress(stage, done / len(tasks))


def gather_side_by_side(
    work: Callable[[T], R], tasks: Sequence[T], engine: Engine, progress: Progress, stage: str
) -> list[R]:
    """All results in the order of their tasks; `run_side_by_side` where each has to be there.

    Raises
    ------
    ComputationError
        Where a task was begun again and again, and ended its process each time.
    """
    return put_in_order(run_side_by_side(work, tasks, engine, progress, stage), len(tasks), stage)


@contextmanager
def gather_repeatedly(work: Callable[[T], R], engine: Engine, stage: str) -> Iterator[Gather[T, R]]:
    """What does as `gather_side_by_side` again and again: tasks that follow from results of others.

    Workers begin once, and have the work once, which so may be large.
    """
    with ENGINES[engine.name](work, engine) as run:
        yield lambda tasks: put_in_order(run(tasks), len(tasks), stage)


def put_in_order(results: Results[R], count: int, stage: str) -> list[R]:
    """Results in the order of their tasks, none of them lost."""
    found: dict[int, R] = {}
    for k, result in results:
        if isinstance(result, LostTask):
            raise ComputationError(f"{stage}: {result.reason}")
        found[k] = result
    return [found[k] for k in range(count)]


# ------------------------------------------------------------------------------ batches


class BatchResult(NamedTuple):
    """Results of a batch, and how long one of its tasks took [s]."""

    results: list[Any]
    seconds: float


class TaskBatches:
    """Numbers of tasks in the order in which they are handed out, short ones several at a time.

    The first ones go alone, and tell by how long they took how many are to follow them at a time.
    Nobody has those `waiting` yet; `seconds` a task takes, as the last batch that was done tells.
    """

    def __init__(self, count: int, workers: int) -> None:
        self.waiting, self.workers, self.seconds = deque(range(count)), workers, BATCH

    def __iter__(self) -> TaskBatches:
        return self

    def __next__(self) -> list[int]:
        if not self.waiting:
            raise StopIteration
        share = len(self.waiting) / (SHARES * self.workers)
        size = max(1, round(min(BATCH / max(self.seconds, 1e-6), share)))
        return [self.waiting.popleft() for _ in range(size)]


def run_batch(work: Callable[[T], R], tasks: Sequence[T]) -> BatchResult:
    """Some tasks, one after another."""
    begun = time.monotonic()
    results = [work(task) for task in tasks]
    return BatchResult(results, (time.monotonic() - begun) / len(tasks))


# --------------------------------------------------------------------------- processes


HELD: list[Callable[[Any], Any]] = []
"""Of a process that was begun here: the work that it has for all of its life."""


def begin_process(gigabytes: float | None, work: Callable[[Any], Any]) -> None:
    """What a process does before its first task."""
    limit_memory(gigabytes)
    work_alone()
    HELD.append(work)


def run_held(tasks: Sequence[Any]) -> BatchResult:
    """A batch of the work that this process has."""
    return run_batch(HELD[0], tasks)


@dataclass
class WorkerProcesses:
    """Those that were begun, which all have one work, and of them those without a task."""

    make: Callable[[], ProcessPoolExecutor]
    made: list[ProcessPoolExecutor] = field(default_factory=list)
    free: list[ProcessPoolExecutor] = field(default_factory=list)

    def take(self) -> ProcessPoolExecutor:
        """One without a task."""
        if not self.free:
            self.free.append(self.make())
            self.made.append(self.free[-1])
        return self.free.pop()

    def close(self) -> None:
        """End all."""
        for process in self.made:
            process.shutdown(cancel_futures=True)


@contextmanager
def open_processes(work: Callable[[T], R], engine: Engine) -> Iterator[Run[T, R]]:
    """Processes of this machine, begun as there are tasks for them."""
    context = multiprocessing.get_context("spawn")  # a fork would share locks of threads
    processes = WorkerProcesses(
        partial(ProcessPoolExecutor, 1, context, begin_process, (engine.memory, work))
    )
    try:
        yield partial(run_in_processes, work, engine, processes)
    finally:
        processes.close()


def run_in_processes(
    work: Callable[[T], R], engine: Engine, processes: WorkerProcesses, tasks: Sequence[T]
) -> Results[R]:
    """Each process has one batch at a time: of one that ends it is known which it had.

    What such a batch held is begun again one by one, which shows whose fault it was.
    """
    if engine.memory is None and (engine.workers == 1 or len(tasks) < 2):
        yield from ((k, work(task)) for k, task in enumerate(tasks))
        return
    batches, ended = TaskBatches(len(tasks), engine.workers), Counter[int]()
    given_back: deque[list[int]] = deque()
    running: dict[Future[BatchResult], tuple[list[int], ProcessPoolExecutor]] = {}
    while True:
        while len(running) < engine.workers:
            batch = next(batches, None) or (given_back.popleft() if given_back else None)
            if batch is None:
                break
            process = processes.take()
            try:
                future = process.submit(run_held, [tasks[k] for k in batch])
            except BrokenExecutor:  # it ended while it had nothing to do
                process.shutdown()
                given_back.append(batch)
                continue
            running[future] = batch, process
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            batch, process = running.pop(future)
            try:
                done = future.result()
            except MemoryError:
                process.shutdown()
                if len(batch) > 1:
                    given_back.extend([k] for k in batch)
                else:
                    yield batch[0], LostTask(f"needs more memory than {engine.memory or 0.0:g} GB")
            except BrokenExecutor:
                process.shutdown()
                ended.update(batch)
                given_back.extend([k] for k in batch if ended[k] <= RETRIES)
                words = "times, for want of memory perhaps: take fewer workers"
                for k in batch:
                    if ended[k] > RETRIES:
                        yield k, LostTask(f"its process ended {ended[k]} {words}")
            else:
                processes.free.append(process)
                batches.seconds = done.seconds
                yield from zip(batch, done.results, strict=True)


def limit_memory(gigabytes: float | None) -> None:
    """What this process may have of its own, from now on."""
    if gigabytes is not None:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (int(gigabytes * GIGABYTE), most))


# -------------------------------------------------------------------------------- Dask


@contextmanager
def open_dask(work: Callable[[T], R], engine: Engine) -> Iterator[Run[T, R]]:
    """A client of a scheduler."""
    dask, given = load_distributed(), engine.scheduler
    client = connect_client(dask, given) if isinstance(given, str) else cast("Any", given)
    if not isinstance(client, dask.Client) or client.asynchronous:
        raise InputError("engine is a Client of dask.distributed that waits, or an address")
    try:
        placed = place_work(dask, client, work)
        call = partial(client.submit, run_alone, VERSION, placed, retries=RETRIES, pure=False)
        yield partial(run_on_dask, dask, client, call)
    finally:
        if client is not given:
            client.close()


def place_work(dask: Any, client: Any, work: Callable[[T], R]) -> Any:
    """What is small, or a task that makes what is large, anew where its worker has ended."""
    content = dask.protocol.pickle.dumps(work)  # as Dask sends it
    if len(content) < LARGE_WORK:
        return work
    submit = partial(client.submit, retries=RETRIES, pure=False)
    parts = [submit(bytes, content[k : k + PART]) for k in range(0, len(content), PART)]
    return submit(unpack_work, VERSION, parts)


def unpack_work(version: str, parts: Sequence[bytes]) -> Any:
    """The work from its parts, on a worker."""
    refuse_other_version(version)
    return load_distributed().protocol.pickle.loads(b"".join(parts))


def run_on_dask(
    dask: Any, client: Any, call: Callable[[Sequence[T]], Any], tasks: Sequence[T]
) -> Results[R]:
    """Tasks that a scheduler hands to its workers, anew where these end."""
    suspects = []
    try:
        batches = TaskBatches(len(tasks), max(1, len(client.nthreads())))
        most = max(FEWEST_AHEAD, AHEAD * batches.workers)
        for batch, found in gather_batches(dask, call, tasks, batches, most):
            if isinstance(found, LostTask):
                suspects += batch
            else:
                batches.seconds = found.seconds
                yield from zip(batch, found.results, strict=True)
        # a worker that ends has tasks beside the one that ended it: which it is shows one by one
        for (k,), found in gather_batches(dask, call, tasks, ([k] for k in suspects), 1):
            yield k, found if isinstance(found, LostTask) else found.results[0]
    except (OSError, dask.CancelledError) as error:  # of connections
        raise tell_of_lost_scheduler() from error


def gather_batches(
    dask: Any,
    call: Callable[[Sequence[T]], Any],
    tasks: Sequence[T],
    batches: Iterable[list[int]],
    most: int,
) -> Iterator[tuple[list[int], BatchResult | LostTask]]:
    """Batches as they are done, of which so many wait at a time."""
    following = iter(batches)
    running: dict[Any, list[int]] = {}

    def begin(count: int) -> list[Any]:
        begun = {call([tasks[k] for k in batch]): batch for batch in islice(following, count)}
        running.update(begun)
        return [*begun]

    try:
        ready = dask.as_completed(begin(most), raise_errors=False)
        for future in ready:
            batch = running.pop(future)
            if future.status == "cancelled":
                raise tell_of_lost_scheduler()
            # of one whose worker has ended since it was done, this waits until it is done again
            error = future.exception()
            if error is None:
                yield batch, future.result()
            else:
                yield batch, explain_failure(error, dask.KilledWorker)
            future.release()
            ready.update(begin(1))
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
    with name_missing_package("engine dask needs Dask: pip install 'dynident[cluster]'"):
        return import_module("distributed")


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


def explain_failure(error: BaseException, killed: type[BaseException]) -> LostTask:
    """What became of a task without a result, where others may have theirs."""
    if isinstance(error, DynidentError):
        raise error
    if isinstance(error, (killed, MemoryError)):
        return LostTask("its worker ended again and again, for want of memory perhaps")
    name = type(error).__name__
    raise ComputationError(
        f"the cluster failed ({name}: {format_one_line(error)}); its scheduler and workers need "
        "the packages that are here"
    ) from error


def run_alone(version: str, work: Callable[[T], R], tasks: Sequence[T]) -> BatchResult:
    """A batch of a worker that may have several threads, and another version."""
    refuse_other_version(version)
    keep_freed_memory()
    work_alone()  # a worker of a cluster shares its machine with others
    with ONE_AT_A_TIME:
        return run_batch(work, tasks)


def refuse_other_version(version: str) -> None:
    """Refuse work of another version, on a worker."""
    if version != VERSION:
        raise InputError(f"the workers have dynident {VERSION}, not {version}: give all the same")


@cache
def keep_freed_memory() -> None:
    """Let this process reuse the memory of arrays, as one without Dask's settings does.

    Dask begins workers with ``MALLOC_TRIM_THRESHOLD_`` at 64 kB, and glibc then gives each array
    back to the system and takes new pages for the next one: a fifth of the time of a short log.
    What is set instead is where glibc arrives by itself: arrays of up to 32 MB are taken from what
    was freed, and 64 MB of that stay.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:
        return
    with suppress(OSError, TypeError, AttributeError):  # another system's library has none
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in MALLOC.items():
            mallopt(parameter, value)


MALLOC = {-1: 1 << 26, -3: 1 << 25}
"""Of glibc's mallopt: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD [bytes]."""


ENGINES: dict[str, Callable[[Callable[[Any], Any], Engine], AbstractContextManager[Run[Any, Any]]]]
ENGINES = {"processes": open_processes, "dask": open_dask}
HERE = Engine()
"""This process alone."""
