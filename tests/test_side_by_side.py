"""Work side by side: whoever does it and whoever ends, each task is done once and told of."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import dask
import pytest
from clusters import start_processes, start_threads
from tasks import fail, refuse, square, take_memory, tell_process, wait_a_little

from dynident.core import side_by_side
from dynident.core.errors import ComputationError, DynidentError, InputError
from dynident.core.progress import ignore_progress
from dynident.core.side_by_side import (
    BATCH,
    RETRIES,
    Engine,
    LostTask,
    TaskBatches,
    choose_engine,
    gather_repeatedly,
    run_batch,
    run_side_by_side,
)


def gather(work, tasks, engine):
    """Results by the numbers of their tasks, each of which comes once."""
    shares: list[float] = []
    found = list(run_side_by_side(work, tasks, engine, lambda _, share: shares.append(share), ""))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert sorted(k for k, _ in found) == list(range(len(tasks)))
    return [result for _, result in sorted(found, key=lambda each: each[0])]


@pytest.mark.long
def test_a_process_that_ends_takes_nothing_with_it(tmp_path):
    # after the first ones several at a time, of which one has the third
    found = gather(square, [(k, str(tmp_path)) for k in range(40)], Engine(workers=2))
    lost = found.pop(3)
    assert found == [k * k for k in range(40) if k != 3]
    assert isinstance(lost, LostTask)
    assert (tmp_path / "1").read_text() == "x"
    assert len((tmp_path / "3").read_text()) == 1 + RETRIES


def test_short_tasks_go_several_at_a_time_and_long_ones_alone():
    batches = TaskBatches(200, 2)
    assert [next(batches), next(batches)] == [[0], [1]]  # how long they take nobody knows yet
    batches.seconds = BATCH / 10.0
    assert next(batches) == list(range(2, 12))
    batches.seconds = 100.0 * BATCH
    assert next(batches) == [12]
    batches.seconds = 0.0
    sizes = [len(batch) for batch in batches]
    assert sum(sizes) == 200 - 13
    assert sizes[0] == round((200 - 13) / 4)  # no worker has more than a share of what is left
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    done = run_batch(square, [(2, ""), (3, "")])
    assert done.results == [4, 9]
    assert done.seconds < BATCH


@pytest.mark.long
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is of glibc's malloc")
def test_a_worker_reuses_memory_though_it_was_told_not_to(monkeypatch):
    """By pages that arrays of 3 MB take anew, with what Dask sets in each worker's environment."""
    code = (
        "import resource; from dynident.core.side_by_side import keep_freed_memory as keep\n"
        "def count():\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "    for _ in range(50): bytearray(3_000_000)\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before\n"
        "count(); before = count(); keep(); count(); print(before, count())"
    )
    there = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
    asked = [sys.executable, "-c", code]
    told = subprocess.run(asked, env=there, stdout=subprocess.PIPE, check=True)
    before, after = map(int, told.stdout.split())
    assert before > 50
    assert after < before / 10


def test_processes_begin_once_for_group_after_group():
    with gather_repeatedly(tell_process, Engine(workers=2), "telling") as gather:
        groups = [gather(range(count)) for count in (4, 1, 3)]
    assert list(map(len, groups)) == [4, 1, 3]
    assert set(groups[1]) == {os.getpid()}  # one alone is sooner done here
    assert len({*groups[0], *groups[2]} - {os.getpid()}) <= 2


@pytest.mark.skipif(sys.platform != "linux", reason="no other system keeps to this limit")
def test_a_task_that_needs_more_memory_than_it_may_is_named():
    one, other = gather(take_memory, [0.001, 3.0], Engine(memory=1.0))
    assert one == 1_000_000
    assert other == LostTask("needs more memory than 1 GB")


@pytest.mark.long
def test_a_client_of_a_cluster_does_the_same(monkeypatch):
    tasks = [(k, "") for k in range(200)]
    with start_threads() as here:
        engine = choose_engine(1, here)
        assert gather(square, tasks, engine) == gather(square, tasks, Engine())
        with monkeypatch.context() as patch:  # a large work, which the cluster has once
            patch.setattr(side_by_side, "LARGE_WORK", 0)
            patch.setattr(side_by_side, "PART", 7)
            assert gather(square, tasks, engine) == gather(square, tasks, Engine())
        with pytest.raises(InputError, match="two is refused"):
            list(run_side_by_side(refuse, range(5), engine, ignore_progress, ""))
        with pytest.raises(ComputationError, match=r"failed \(TypeError: 0 is no such thing\)"):
            list(run_side_by_side(fail, [0], engine, ignore_progress, ""))
        assert here.run_on_scheduler(lambda: 1) == 1  # it is not ours to close


@pytest.mark.slow
def test_workers_that_end_take_nothing_with_them(tmp_path):
    tasks = [(k, str(tmp_path)) for k in range(6)]
    with start_processes() as cluster:
        found = gather(square, tasks, Engine("dask", scheduler=cluster.scheduler_address))
    assert isinstance(found.pop(3), LostTask)
    assert found == [0, 1, 4, 16, 25]


@pytest.mark.long
def test_a_scheduler_that_goes_away_is_named(tmp_path):
    place = tmp_path / "scheduler.json"
    scheduler = start("scheduler", place, "--host", "127.0.0.1", "--port", "0")
    while not place.exists():
        assert scheduler.poll() is None
        time.sleep(0.05)
    worker = start("worker", place, "--nthreads", "1", "--no-nanny", "--death-timeout", "5")
    done = []

    def kill_scheduler_after_two() -> None:
        engine = Engine("dask", scheduler=str(place))
        for each in run_side_by_side(wait_a_little, range(20), engine, ignore_progress, ""):
            done.append(each)
            if len(done) == 2:
                scheduler.kill()

    try:
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
            pytest.raises(ComputationError, match="scheduler went away; what was done stays"),
        ):
            kill_scheduler_after_two()
        assert 2 <= len(done) < 20
        assert all(k == result for k, result in done)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()


def start(what: str, place: Path, *flags: str) -> subprocess.Popen[bytes]:
    """A scheduler or a worker of its own, to be killed."""
    code = f"import distributed.cli.dask_{what} as it; it.main()"
    told = [sys.executable, "-c", code, "--scheduler-file", str(place), "--no-dashboard", *flags]
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        told, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": paths}
    )


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"name": "dusk"}, "engine 'dusk' is not known; did you mean 'dask'"),
        ({"name": "dask"}, "needs a scheduler"),
        ({"name": "dask", "scheduler": "tcp://h:1", "workers": 2}, "apply to processes"),
        ({"scheduler": "tcp://h:1"}, "needs engine dask"),
        ({"workers": 0}, "at least 1"),
        ({"memory": -1.0}, "positive"),
    ],
)
def test_engines_that_make_no_sense_are_refused(told, words):
    with pytest.raises(DynidentError, match=words):
        Engine(**told)


def test_a_scheduler_that_is_not_there_is_named():
    engine = Engine("dask", scheduler="tcp://127.0.0.1:1")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "100ms"}),
        pytest.raises(InputError, match=r"no scheduler answers at tcp://127\.0\.0\.1:1"),
    ):
        list(run_side_by_side(refuse, [1], engine, ignore_progress, ""))
