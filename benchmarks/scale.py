"""Cost of a log-hour, memory of ten hours in pieces, many logs on workers, and a simulated cluster.

Run from the top of the project: python benchmarks/scale.py [PART ...] [--hours 1 10] [--logs 1000]
[--keep FOLDER], with PART of pieces, workers, dask, kills, cluster, repeats; all by default. Each
part writes its section into docs/figures/scale_PART.md.

Seconds are of the processor but where it says wall clock, which a busy machine makes longer. The
cluster is a simulation of the graph of tasks, `simulate_cluster`, with the costs that `pieces`
measured (docs/figures/scale_costs.json) and with what `CLUSTER` assumes.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import hours as maker
import numpy as np
from common import FIGURES, markdown

from dynident.core.arrays import Array
from dynident.core.factors import FAN

COSTS = FIGURES / "scale_costs.json"
SLOW = str(FIGURES.parent / "files" / "dask.yaml")
"""Dask's clocks as docs/collect.md advises."""
CYCLE = 600.0
"""The made motion repeats after this, and its noise does not [s]."""
STUDY = """\
[robot]
file = "robot.toml"
friction = "coulomb-viscous"
[prepare]
bandwidth = 5.0
"""


def write_log(path: Path, seconds: float, seed: int = 0) -> None:
    """A log of the seven-axis arm at 1 kHz, a cycle at a time: time as float64, signals as float32.

    Positions have noise of 1e-5 rad, torques that of `hours.NOISE`; each cycle has its own.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    motion = maker.Motion(path.parent / "robot.toml")
    motion.speed = 2.0 * np.pi / CYCLE * np.round(motion.speed * CYCLE / (2.0 * np.pi))
    motion.phase = motion.phase + seed
    names = [f"{label}_{joint}" for label in ("q", "tau") for joint in maker.NAMES]
    schema = pa.schema([("time", pa.float64()), *((name, pa.float32()) for name in names)])
    samples, cycle = int(seconds * maker.RATE), int(CYCLE * maker.RATE)
    t = np.arange(min(samples, cycle)) / maker.RATE
    q, dq, ddq = np.zeros((3, len(t), 7))
    for w, a, p in zip(motion.speed, motion.size, motion.phase, strict=True):
        s, c = np.sin(np.outer(t, w) + p), np.cos(np.outer(t, w) + p)
        q, dq, ddq = q + a * s, dq + a * w * c, ddq - a * w * w * s
    clean = np.hstack([q, motion.model.torque(motion.theta, q, dq, ddq)]).astype(np.float32)
    level = np.array([1e-5] * 7 + maker.NOISE, dtype=np.float32)
    rng = np.random.default_rng(seed)
    with pq.ParquetWriter(path, schema, use_dictionary=False) as file:
        for first in range(0, samples, maker.BLOCK):
            rows = (first + np.arange(min(maker.BLOCK, samples - first))) % cycle
            noisy = clean[rows] + level * rng.normal(size=(len(rows), 14)).astype(np.float32)
            time_ = (first + np.arange(len(rows))) / maker.RATE
            file.write_table(pa.table([time_, *noisy.T], schema=schema))


def write_folder(folder: Path) -> Path:
    """The robot, and a study without logs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "robot.toml").write_text(maker.write_robot())
    (folder / "study.toml").write_text(STUDY)
    return folder / "study.toml"


# one log in pieces


def collect_one(study: Path, log: Path) -> dict[str, float]:
    """Collect a log in this process: seconds of the processor by what took them, memory, bytes."""
    from dynident.collection import reduce
    from dynident.study import collect

    clocks: dict[str, float] = {}

    def watch(module: Any, name: str, part: str) -> None:
        inner = getattr(module, name)

        def timed(*given: Any, **options: Any) -> Any:
            begun = time.process_time()
            found = inner(*given, **options)
            clocks[part] = clocks.get(part, 0.0) + time.process_time() - begun
            return found

        setattr(module, name, timed)

    import dynident as di

    out = log.parent / "factors"
    shutil.rmtree(out, ignore_errors=True)
    small = log.parent / "warm.parquet"
    di.collect(study, [small], out)  # compiles
    watch(collect, "read_study_recording", "decode")
    watch(reduce, "factor_runs", "filter and reduce")
    watch(reduce, "gather_log_facts", "signs")
    watch(reduce, "find_faults", "doctor")
    watch(collect, "pack_source", "pack")
    Path("/proc/self/clear_refs").write_text("5")
    before, begun = maker.read_status("VmRSS"), time.process_time()
    made = di.collect(study, [log], out)
    seconds, peak = time.process_time() - begun, maker.read_status("VmHWM") - before
    entry = next(each for each in made.entries if each.state == "read")
    return {**clocks, "all": seconds, "peak": peak, "before": before, "bytes": float(entry.size)}


def measure_pieces(folder: Path, wanted: list[float]) -> list[str]:
    """Logs of some hours, each in a process of its own."""
    study, found = write_folder(folder), {}
    write_log(folder / "warm.parquet", 300.0)  # long enough for pieces
    for length in wanted:
        log = folder / f"{length:g}h.parquet"
        if not log.exists():
            write_log(log, 3600.0 * length)
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(study), str(log)],
            stdout=subprocess.PIPE, text=True, check=True, env=maker.ONE_CORE,
        )  # fmt: skip
        found[length] = {**json.loads(done.stdout), "stored": float(log.stat().st_size)}
    longest = found[max(found)]
    of_log = ("bytes", "peak", "before")  # of a log, however long
    per_hour = {k: v if k in of_log else v / max(found) for k, v in longest.items()}
    COSTS.write_text(json.dumps({k: round(v, 3) for k, v in per_hour.items()}, indent=1) + "\n")
    parts = ("decode", "filter and reduce", "signs", "doctor", "pack", "all")
    return [
        f"{', '.join(f'{length:g} h' for length in found)} of seven joints at 1 kHz, Parquet with "
        "float32, collected in pieces; one process, one BLAS thread, after compilation.",
        "",
        *markdown(
            ["seconds of the processor", *(f"{length:g} h" for length in found)],
            [[part, *(f"{each.get(part, 0.0):.2f}" for each in found.values())] for part in parts],
        ),
        "",
        *markdown(
            ["", *(f"{length:g} h" for length in found)],
            [
                ["as arrays of float64 [MB]", *(f"{15 * 8 * 3.6 * h:.0f}" for h in found)],
                ["file [MB]", *(f"{each['stored'] / 1e6:.0f}" for each in found.values())],
                [
                    "peak of memory beyond the process before [MB]",
                    *(f"**{each['peak']:.0f}**" for each in found.values()),
                ],
                ["process before [MB]", *(f"{each['before']:.0f}" for each in found.values())],
                ["factors [kB]", *(f"{each['bytes'] / 1e3:.0f}" for each in found.values())],
            ],
        ),
    ]


# many logs on the workers of this machine


def write_minutes(folder: Path, count: int) -> Path:
    """So many logs of a minute, and their study."""
    study = write_folder(folder)
    for k in range(count):
        log = folder / "logs" / f"run{k:04d}.parquet"
        if not log.exists():
            log.parent.mkdir(exist_ok=True)
            shutil.copy(folder / "robot.toml", log.parent)
            write_log(log, 60.0, k)
    return study


def read_sources(folder: Path) -> dict[str, bytes]:
    """All files of factors."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.npz"))}


def read_clocks() -> Array:
    """Seconds of the wall clock, and of the processor of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return np.array([time.perf_counter(), used.ru_utime + used.ru_stime])


@contextmanager
def begin_cluster(workers: int) -> Iterator[Any]:
    """A client of a cluster of this machine's processes."""
    distributed: Any = import_module("distributed")  # its functions have no types
    here = {"host": "127.0.0.1", "dashboard_address": None, "threads_per_worker": 1}
    with (
        distributed.LocalCluster(n_workers=workers, **here) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def run_again(*told: str, **more: str) -> Array:
    """Run this file in a process of its own, with more in its environment; see `read_clocks`."""
    begun = read_clocks()
    command = [sys.executable, __file__, *told]
    subprocess.run(command, check=True, env={**maker.ONE_CORE, **more})
    return read_clocks() - begun


def run_collect(
    study: Path, logs: Path, out: Path, workers: int, engine: str = "", **more: str
) -> Array:
    """Collect a folder of logs as a user does; seconds of the wall clock and of the processor."""
    return run_again("--many", str(study), str(logs), str(out), str(workers), engine, **more)


def measure_workers(folder: Path, count: int) -> list[str]:
    """One worker and two, and Dask where `collect` has engines; the same bits of all."""
    study = write_minutes(folder, count)
    slow = {"DASK_CONFIG": SLOW}
    ways: list[tuple[str, int, str, dict[str, str]]] = [
        ("1 worker", 1, "", {}),
        ("2 workers", 2, "", {}),
        ("2 workers, Dask as it is", 2, "dask", {}),
        ("2 workers, Dask with slow clocks", 2, "dask", slow),
    ]
    laps, sources = {}, {}
    for name, workers, engine, more in ways:
        out = folder / "made"
        shutil.rmtree(out, ignore_errors=True)
        laps[name] = run_collect(study, folder / "logs", out, workers, engine, **more)
        sources[name] = read_sources(out)
    first = sources["1 worker"]
    return [
        f"{count} logs of a minute of seven joints at 1 kHz; {os.cpu_count()} cores, one BLAS "
        "thread; `dynident collect`, start of its processes included. Seconds of the processor are "
        "of all processes together, those of a scheduler and its cluster too. Slow clocks are "
        "those of docs/files/dask.yaml.",
        "",
        *markdown(
            ["", "wall clock [s]", "beside 1 worker", "processor [s]", "beside 1 worker", "bits"],
            [
                [
                    name,
                    f"{wall:.1f}",
                    f"{laps['1 worker'][0] / wall:.2f}",
                    f"{used:.1f}",
                    f"{used / laps['1 worker'][1]:.2f}",
                    "the same" if sources[name] == first and len(first) == count else "OTHERS",
                ]
                for name, (wall, used) in laps.items()
            ],
        ),
    ]


IDLE = 20.0
"""How long a cluster without work is watched [s]."""


def measure_dask(folder: Path, count: int) -> list[str]:
    """What Dask costs beside the work: its setting of memory, its start, and its clocks."""
    study, out = write_minutes(folder, count), folder / "made"
    used = []
    for more in ({}, {"MALLOC_TRIM_THRESHOLD_": "65536"}):
        shutil.rmtree(out, ignore_errors=True)
        used.append(run_collect(study, folder / "logs", out, 1, **more)[1])
    start, longer = (run_again("--idle", f"{seconds}")[1] for seconds in (0.0, IDLE))
    slower = run_again("--idle", f"{IDLE}", DASK_CONFIG=SLOW)[1]
    plain, trimmed = used
    return [
        f"Seconds of the processor, of all processes together. {count} logs of a minute by one "
        f"worker, start and imports included: {plain:.1f} s; where freed memory goes back to the "
        "system at once, as Dask's nannies have it (`MALLOC_TRIM_THRESHOLD_=65536`), and nobody "
        f"undoes it: {trimmed:.1f} s, {100.0 * (trimmed / plain - 1.0):.0f} % more. A cluster of "
        f"two workers on this machine that has nothing to do: {start:.1f} s until it stood and "
        f"ended, and {(longer - start) / IDLE:.3f} s for each second in between; with the clocks "
        f"of docs/files/dask.yaml {(slower - start) / IDLE:.3f} s.",
    ]


def measure_kills(folder: Path, count: int) -> list[str]:
    """A run that is killed three times, with all of its workers, and goes on."""
    study, out, whole = write_minutes(folder, count), folder / "killed", folder / "whole"
    for each in (out, whole):
        shutil.rmtree(each, ignore_errors=True)
    run_collect(study, folder / "logs", whole, 2)
    kept = []
    for share in (0.2, 0.5, 0.8):
        child = subprocess.Popen(
            [sys.executable, __file__, "--many", str(study), str(folder / "logs"), str(out), "2",
             ""],
            env=maker.ONE_CORE, start_new_session=True,
        )  # fmt: skip
        while len(read_names(out)) < share * count and child.poll() is None:
            time.sleep(0.02)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        kept.append(len(read_names(out)))
    run_collect(study, folder / "logs", out, 2)
    same = read_sources(out) == read_sources(whole)
    return [
        f"{count} logs of a minute, two workers; all processes are killed (SIGKILL) when "
        f"{', '.join(map(str, kept))} sources are there, and the run is begun again each time: the "
        f"folder has {len(read_names(out))} sources, {'the same bits as' if same else 'OTHER BITS'}"
        " one that nobody disturbed.",
    ]


def read_names(folder: Path) -> list[str]:
    """Files of factors that are there."""
    return [path.name for path in folder.glob("*.npz")]


# a cluster, simulated


MERGED = 512
"""Sources whose files and merge are timed."""


@dataclass(frozen=True)
class Cluster:
    """What a simulated cluster is assumed to be."""

    workers: int
    """Processes, a core each."""
    store: float = 10e9
    """Bytes a second that all workers together read from the store."""
    link: float = 100e6
    """Bytes a second that one worker reads."""
    overhead: float = 5e-4
    """Of the scheduler, which places one task after another [s]: Dask states 200 us to 1 ms."""
    client: float = 125e6
    """Bytes a second that reach the command, which alone writes."""
    scatter: float = 0.1
    """Of the cost of a log, its standard deviation as a share."""


@dataclass(frozen=True)
class Kept:
    """What one source costs once its log is reduced, measured: seconds, and bytes of its file."""

    size: float
    """Of its file."""
    write: float
    work: float
    """`write`, `work`: by the wall clock until the disk has it, and of the processor for that."""
    read: float
    merge: float
    """`read`, `merge`: of the processor, when `identify` reads its file, and for its part of the
    tree."""


def simulate_cluster(
    tasks: int, seconds: float, size: float, kept: Kept, cluster: Cluster
) -> dict[str, float]:
    """Seconds until all logs are reduced and the command has written the file of each.

    Events in order of time: the scheduler hands out one task at a time; a worker reads its log, at
    its link's pace and while the store has pace to give, reduces it and goes on. The command takes
    the factors of one after another.

    Parameters
    ----------
    tasks : int
        Logs.
    seconds, size : float
        Processor time [s] and bytes of one log.
    """
    rng = np.random.default_rng(0)
    cost = seconds * np.maximum(0.1, 1.0 + cluster.scatter * rng.normal(size=tasks))
    free = [0.0] * min(cluster.workers, tasks)
    heapq.heapify(free)
    scheduler = store = working = moved = 0.0
    ends = []
    for own in cost.tolist():
        worker = heapq.heappop(free)
        scheduler = max(scheduler, worker) + cluster.overhead
        store = max(store, scheduler) + size / cluster.store  # the store serves one after another
        begun = max(scheduler + size / cluster.link, store)
        end = begun + own
        working, moved = working + own, moved + size
        heapq.heappush(free, end)
        ends.append(end)
    taken = kept.size / cluster.client + kept.write
    written = 0.0
    for end in sorted(ends):
        written = max(written, end) + taken
    return {
        "seconds": written,
        "busy": working / (cluster.workers * written),
        "moved": moved,
        "client": tasks * taken,
        "scheduler": tasks * cluster.overhead,
        "reading": tasks * size / cluster.store,
        "working": working / cluster.workers,
        "log": size / cluster.link + seconds,
    }


def merge_on_workers(sources: int, kept: Kept, cluster: Cluster) -> float:
    """Seconds of the same tree, were its nodes tasks of the cluster: level by level."""
    found, seconds = sources, 0.0
    while found > 1:
        found = -(-found // FAN)
        rounds = -(-found // cluster.workers)
        task = FAN * (kept.size / cluster.link + kept.merge)
        seconds += max(found * cluster.overhead, rounds * task)
    return seconds


def measure_kept(folder: Path) -> Kept:
    """Of a log of the arm: what is done with its factors."""
    import dynident as di
    from dynident.collection.source import read_source
    from dynident.core.factors import merge_all
    from dynident.core.files import write_files

    study, log, out = write_folder(folder), folder / "minute.parquet", folder / "factors"
    write_log(log, 60.0)
    di.collect(study, [log], out)
    content = next(out.glob("*.npz")).read_bytes()
    fingerprint = json.loads((out / "collection.json").read_text())["fingerprint"]
    paths = [folder / f"{k}.npz" for k in range(MERGED)]
    begun = time.perf_counter()
    work = take_seconds(lambda: [write_files({path: content}) for path in paths]) / MERGED
    write = (time.perf_counter() - begun) / MERGED
    parts = [read_source(paths[0], fingerprint).factors] * MERGED
    read = take_seconds(lambda: [read_source(path, fingerprint) for path in paths]) / MERGED
    merge_all(parts)
    merge = take_seconds(lambda: [merge_all(parts) for _ in range(5)]) / (5.0 * MERGED)
    return Kept(len(content), write, work, read, merge)


def describe_merge(kept: Kept, seconds: float) -> list[str]:
    """What a tree on the workers would save."""
    cluster, rows = Cluster(256), []
    for sources in (1_000, 10_000, 100_000):
        reduced = sources * seconds / cluster.workers
        taken = sources * (kept.size / cluster.client + kept.write)
        read, merged = sources * kept.read, sources * kept.merge
        there = merge_on_workers(sources, kept, cluster)
        whole = max(reduced, taken) + read + merged
        rows.append(
            [f"{sources}", f"{reduced:.0f}", f"{sources * kept.size / 1e9:.1f}", f"{taken:.0f}",
             f"{read:.0f}", f"{merged:.1f}", f"{there:.1f}", f"{100.0 * merged / whole:.1f}"]
        )  # fmt: skip
    return [
        f"The file of a source has {kept.size / 1e3:.0f} kB, which the command receives (assumed: "
        f"{Cluster(1).client * 8e-9:g} Gbit/s) and has on the disk in {1e3 * kept.write:.0f} ms by "
        f"the wall clock of a busy machine, of which {1e3 * kept.work:.1f} ms are work; `identify` "
        f"reads it in {1e3 * kept.read:.1f} ms, and its part of the tree of fan-in {FAN} takes "
        f"{1e3 * kept.merge:.2f} ms. All of this is of one process. Were the inner nodes of the "
        "tree tasks of 256 workers, that is, the last column but one:",
        "",
        *markdown(
            ["hours", "reduced on 256 workers [s]", "of factors [GB]", "received, written [s]",
             "read [s]", "merged [s]", "merged by workers [s]", "merging, of all [%]"],
            rows,
        ),
    ]  # fmt: skip


def tell_bottleneck(found: dict[str, float]) -> str:
    """What takes longest of what cannot be made shorter by more of the others."""
    words = {
        "log": "one log",
        "working": "workers",
        "reading": "the store",
        "scheduler": "the scheduler",
        "client": "the command",
    }
    return words[max(words, key=found.__getitem__)]


PRICES = {
    # what a table of docs/scale.md says: assumptions, to be replaced by one's own
    "core": 0.04,
    "spot": 0.015,
    "store": 0.02,
    "requests": 0.4e-6,
}
"""Dollars an hour of one core, likewise of one that may be taken away, a month of a gigabyte, and
a request: list prices as of about 2025, rounded, and no quotation."""


def measure_cluster() -> list[str]:
    """Where the first bottleneck is, and what a year costs."""
    if not COSTS.exists():
        return ["`pieces` has to be measured first."]
    hour = json.loads(COSTS.read_text())
    seconds, size = hour["all"], hour["stored"]
    with tempfile.TemporaryDirectory() as name:
        kept = measure_kept(Path(name))
    rows = []
    for robots in (10, 1_000, 100_000):
        for workers in (16, 256, 4096):
            tasks = robots  # an hour of each
            found = simulate_cluster(tasks, seconds, size, kept, Cluster(workers))
            rows.append(
                [
                    f"{robots}",
                    f"{workers}",
                    f"{found['seconds']:.0f}",
                    f"{100.0 * found['busy']:.0f}",
                    f"{found['moved'] / 1e9:.1f}",
                    f"{found['working']:.1f}",
                    f"{found['reading']:.1f}",
                    f"{found['scheduler']:.1f}",
                    f"{found['client']:.1f}",
                    tell_bottleneck(found),
                ]
            )
    hundred = simulate_cluster(100, seconds, size, kept, Cluster(16))
    split = simulate_cluster(600_000, seconds / 60.0, size / 60.0, kept, Cluster(4096))
    fast = replace(Cluster(4096), store=100e9)
    wide = simulate_cluster(100_000, seconds, size, kept, fast)
    total = 10_000 * 365 * 24
    core_hours = total * seconds / 3600.0
    stored = total * size
    return [
        f"One hour of each robot a task: {seconds:.1f} s of a processor and {size / 1e6:.0f} MB of "
        "Parquet, as measured here on a busy machine; what the cluster is beside that is assumed: "
        "a store that gives 10 GB/s to all and 100 MB/s to one worker, 0.5 ms of the scheduler a "
        f"task, {Cluster(1).client * 8e-9:g} Gbit/s to the command, costs that scatter by 10 %. "
        "Seeds are fixed.",
        "",
        *markdown(
            ["robots", "workers", "seconds", "busy [%]", "read [GB]", "work a worker [s]",
             "store [s]", "scheduler [s]", "command [s]", "longest"],
            rows,
        ),
        "",
        f"100 robots x 1 h on 16 cores: {hundred['seconds'] / 60.0:.1f} minutes. 10 000 robots "
        f"whose hours are 600 000 files of a minute, on 4096 workers: {split['seconds']:.0f} s, of "
        f"which the scheduler takes {split['scheduler']:.0f} and the command "
        f"{split['client']:.0f}: {tell_bottleneck(split)} first. With "
        f"a store of 100 GB/s the 100 000 hours take {wide['seconds']:.0f} s on 4096 workers: "
        f"{tell_bottleneck(wide)} first.",
        "",
        *describe_merge(kept, seconds),
        "",
        "10 000 robots x 1 year at 1 kHz, all hours of it:",
        "",
        *markdown(
            ["", "amount", "price (assumed)", "dollars"],
            [
                [
                    "cores", f"{core_hours:.3g} core-hours", f"{PRICES['core']} an hour",
                    f"{core_hours * PRICES['core']:.3g}",
                ],
                [
                    "cores that may be taken away", f"{core_hours:.3g} core-hours",
                    f"{PRICES['spot']} an hour", f"{core_hours * PRICES['spot']:.3g}",
                ],
                [
                    "requests", f"{total:.3g} files", f"{PRICES['requests']} each",
                    f"{total * PRICES['requests']:.3g}",
                ],
                [
                    "logs kept for a month", f"{stored / 1e12:.3g} TB",
                    f"{PRICES['store']} a GB and month", f"{stored / 1e9 * PRICES['store']:.3g}",
                ],
                [
                    "factors kept for a month", f"{total * hour['bytes'] / 1e12:.3g} TB",
                    f"{PRICES['store']} a GB and month",
                    f"{total * hour['bytes'] / 1e9 * PRICES['store']:.3g}",
                ],
            ],
        ),
    ]  # fmt: skip


def take_seconds(work: Callable[[], object]) -> float:
    """Of the processor, this process and those that it waited for."""
    begun = time.process_time() + read_clocks()[1]
    work()
    return float(time.process_time() + read_clocks()[1] - begun)


def measure_repeats() -> list[str]:
    """What a task of all that repeats costs, beside what it takes to have a process for it."""
    import dynident as di
    from dynident_papers.ardiani2024.draws import DRAWN, Draw, estimate_draw
    from dynident_papers.ardiani2024.estimated import ACTUAL

    folder = FIGURES.parents[1] / "examples" / "tx40"
    problem = read_problem(folder / "study.toml")
    fit = di.identify(problem, "pc-idim-ls", doctor=False, bootstrap=0)

    def bootstrap(count: int) -> float:
        return take_seconds(
            lambda: di.identify(problem, "pc-idim-ls", doctor=False, bootstrap=count)
        )

    def search(starts: int) -> None:
        di.excite(fit.robot, duration=5.0, starts=starts, collision=False, floor=False, time=1e4)

    for warm in (lambda: search(1), lambda: estimate_draw(Draw(ACTUAL, 0, DRAWN))):
        warm()
    code = "import dynident as di; from dynident.study import sample, excite; di.load_robot"
    begin = take_seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))
    few, many = bootstrap(60), bootstrap(660)
    searches, words = measure_searches(problem)
    tasks = [
        ("`identify`, 8 replicates of the bootstrap", 8.0 * (many - few) / 600.0),
        *searches,
        ("`sample`, 256 chains", take_seconds(lambda: di.sample(fit, 512, anyway=True)) / 2.0),
        ("`excite`, a start", take_seconds(lambda: search(2)) / 2.0),
        (
            "`reproduce ardiani2024`, a draw by five methods",
            take_seconds(lambda: estimate_draw(Draw(ACTUAL, 1, DRAWN))),
        ),
    ]
    handed = measure_handing(problem.base.count)
    rows = [
        [what, f"{took:.4f}", f"{2.0 * begin / took:.0f}" if took > 2.0 * handed else "never"]
        for what, took in tasks
    ]
    active = ", ".join(fit.estimate.active) or "none"
    return [
        f"Seconds of the processor, one BLAS thread, after compilation; the TX40's log of 9 s, of "
        f"whose constraints are active: {active}. To begin a process takes {begin:.2f} s, to hand "
        f"out a task of as many numbers as a portion of `ga` has {handed:.4f} s. Two processes pay "
        "where half of the tasks take longer than a process that begins, and each longer than "
        "twice what it takes to hand it out.",
        "",
        *markdown(["a task", "seconds", "tasks from which two processes pay"], rows),
        "",
        *words,
    ]


def measure_searches(problem: Any) -> tuple[list[tuple[str, float]], list[str]]:
    """Tasks of ga and pf, and what two processes make of a search of shapes, in words."""
    from dynident.consistency.knowledge import Knowledge
    from dynident.core.progress import ignore_progress
    from dynident.core.side_by_side import Engine
    from dynident.estimators.covariance import ErrorBars
    from dynident.search.ranges import PORTION, SearchRegion, build_search_task
    from dynident.search.shape_search import build_shape_task, search_start_shapes
    from dynident.search.shapes import fit_at_usual_shapes, limit_to_visible_speeds

    linear = build_search_task(problem, SearchRegion(), Knowledge(), ErrorBars()).searchable
    curved = problem.with_drives("stribeck")
    shapes, _ = build_shape_task(fit_at_usual_shapes(limit_to_visible_speeds(curved)))
    found = []
    for task, count in ((linear, PORTION), (shapes, 4)):
        sets = np.random.default_rng(0).uniform(task.low, task.high, (count, len(task.low)))
        task.cost(sets)
        many = [take_seconds(partial(task.cost, sets)) for _ in range(3)]
        found.append(float(np.median(many)) * task.portion / count)
    known: list[tuple[float, Any]] = []
    for workers in (1, 2):
        begun = time.perf_counter()
        own, words = search_start_shapes(
            curved, "ga", SHORT, ignore_progress, Engine(workers=workers)
        )  # fmt: skip
        known.append((time.perf_counter() - begun, own.idim.shape))
    (alone, one), (together, other) = known
    return [
        (f"`ga`, `pf`: {PORTION} sets of parameters", found[0]),
        ("`ga`, `pf`: a set of shapes of `stribeck`, a pass over the log", found[1]),
    ], [
        f"`ga` over the shapes of `stribeck` ({words}) takes {alone:.1f} s of wall clock in this "
        f"process and {together:.1f} s in two that it begins, with "
        f"{'the same bits' if one == other else 'OTHER BITS'}.",
    ]


def measure_handing(numbers: int) -> float:
    """Seconds that it takes to hand out a task whose work is nothing."""
    from dynident.core.side_by_side import Engine, gather_repeatedly
    from dynident.search.ranges import PORTION

    sets = np.zeros((PORTION, numbers))

    def gather(groups: int) -> None:
        with gather_repeatedly(len, Engine(workers=2), "handing out") as gathered:
            for _ in range(groups):
                gathered([sets, sets])

    few, many = (take_seconds(partial(gather, groups)) for groups in (5, 55))
    return (many - few) / 100.0


def read_problem(study: Path) -> Any:
    """The fitted log of a study."""
    from dynident.study.study import (
        build_study_problem,
        load_study_robot,
        read_study,
        read_study_logs,
    )

    chosen = read_study(study)
    robot = load_study_robot(chosen)
    return build_study_problem(chosen, robot, read_study_logs(chosen, robot, "identify")[:1])


SHORT = {"generations": 6}
"""A search of shapes whose engines are compared."""
PARTS = ("pieces", "workers", "dask", "kills", "cluster", "repeats")


def main() -> None:
    """Measure some parts and write their sections."""
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--hours", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="a folder of logs that are made once")
    parser.add_argument("--one", nargs=2, type=Path)
    parser.add_argument("--many", nargs=5)
    parser.add_argument("--idle", type=float)
    given = parser.parse_args()
    if given.one:
        sys.stdout.write(json.dumps(collect_one(*given.one)))
        return
    if given.idle is not None:
        with begin_cluster(2):
            time.sleep(given.idle)
        return
    if given.many:
        import dynident as di

        study, logs, out, workers, engine = given.many
        sources = [f"{logs}/*.parquet"]
        if not engine:
            di.collect(study, sources, out, workers=int(workers))
            return
        with begin_cluster(int(workers)) as client:
            di.collect(study, sources, out, engine=client)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        making = {
            "pieces": lambda: measure_pieces(folder, given.hours),
            "workers": lambda: measure_workers(folder / "minutes", given.logs),
            "dask": lambda: measure_dask(folder / "minutes", min(given.logs, 30)),
            "kills": lambda: measure_kills(folder / "minutes", min(given.logs, 100)),
            "cluster": measure_cluster,
            "repeats": measure_repeats,
        }
        for part in given.parts or PARTS:
            text = "\n".join(making[part]()) + "\n"
            (FIGURES / f"scale_{part}.md").write_text(text)
            sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
