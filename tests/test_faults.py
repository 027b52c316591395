"""Collecting while things go wrong: what is there is whole, what is lost named, the rest done."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from clusters import start_processes, start_threads
from test_collect import ARM, assert_same_files, write_log

import dynident as di
from dynident.collection.folder import CollectedFactors, read_sources, read_statement
from dynident.core.errors import InputError
from dynident.study.collect import reduce_log

LOGS = 4


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with some logs, and their factors in ``made``."""
    place = tmp_path_factory.mktemp("faults")
    shutil.copy(ARM, place)
    (place / "study.toml").write_text('[robot]\nfile = "arm.urdf"\n[prepare]\nbandwidth = 5.0\n')
    for seed in range(LOGS):
        write_log(place / f"run{seed}.npz", seed, samples=1000)
    collect(place, "made")
    return place


def collect(place: Path, made: str, **told: object) -> CollectedFactors:
    return di.collect(place / "study.toml", [f"{place}/run*.npz"], place / made, **told)


def count_whole(folder: Path) -> int:
    """Sources of a folder, all of which are whole."""
    statement = read_statement(folder)
    assert statement is not None
    found, damaged = read_sources(folder, statement)
    assert not damaged
    return len(found)


def test_a_run_that_was_stopped_goes_on(place, monkeypatch):
    asked = []

    def stop_at_the_third(task):
        asked.append(task)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return reduce_log(task)

    monkeypatch.setattr("dynident.study.collect.reduce_log", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        collect(place, "stopped")
    assert count_whole(place / "stopped") == 2
    found = collect(place, "stopped")
    assert sorted(entry.state for entry in found.entries) == ["read"] * (LOGS - 2) + ["there"] * 2
    assert len(asked) == 3 + LOGS - 2
    assert_same_files(place / "made", place / "stopped")


def test_a_full_disk_leaves_what_was_there(place, monkeypatch):
    """By the largest file that this process may write, which is less than a source from then on."""
    shutil.copytree(place / "made", place / "full")
    first, *others = sorted((place / "full").glob("*.npz"))
    for path in others:
        path.unlink()
    before = {path.name: path.read_bytes() for path in (place / "full").iterdir()}
    least = min(path.stat().st_size for path in (place / "made").glob("*.npz"))
    head = (place / "full" / "collection.json").stat().st_size
    assert head < least - 1
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (least - 1, limits[1]))
    try:
        with pytest.raises(InputError, match=r"\.npz: cannot be written \(File too large\)"):
            collect(place, "full")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name: path.read_bytes() for path in (place / "full").iterdir()} == before
    assert first.name in before
    collect(place, "full")
    assert_same_files(place / "made", place / "full")


def test_a_cluster_names_what_cannot_be_used_as_one_process_does(place, tmp_path):
    whole = (place / "run1.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "copy.npz").write_bytes(whole)
    (tmp_path / "run.npz").write_bytes(whole)
    (tmp_path / "bad.csv").write_text("time,q_shoulder,q_elbow,tau_shoulder,tau_elbow\n0,0,x\n")
    with np.load(place / "run1.npz") as log:
        names = {"q_shoulder": "q_1", "q_elbow": "q_2"}
        np.savez(tmp_path / "foreign.npz", **{names.get(k, k): v for k, v in log.items()})

    def tell(found: CollectedFactors) -> list[tuple[str, str, str]]:
        return [(each.name, each.state, each.reason) for each in found.entries]

    study = place / "study.toml"
    alone = tell(di.collect(study, [tmp_path], tmp_path / "alone"))
    assert [state for _, state, _ in alone].count("read") == 1
    assert len(alone) == 5
    with start_threads() as here:
        assert tell(di.collect(study, [tmp_path], tmp_path / "there", engine=here)) == alone
        with pytest.raises(InputError, match=r"run\.npz: has the contents of copy\.npz"):
            di.collect(study, [tmp_path], tmp_path / "strict", engine=here, strict=True)


@contextmanager
def kill_at_random(list_processes: Callable[[], list[int]], folder: Path) -> Iterator[list[int]]:
    """Kill one of some processes now and then, while all that stands in a folder is whole."""
    rng, done, killed = random.Random(1), threading.Event(), list[int]()
    wrong: list[BaseException] = []

    def kill() -> None:
        try:
            while not done.wait(rng.uniform(0.3, 1.2)):
                if (folder / "collection.json").is_file():
                    count_whole(folder)
                there = list_processes()
                if there and len(killed) < LOGS:
                    os.kill(rng.choice(there), signal.SIGKILL)
                    killed.append(1)
        except BaseException as error:
            wrong.append(error)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        done.set()
        thread.join()
    assert not wrong


@pytest.mark.long
def test_processes_that_are_killed_lose_nothing(place):
    def list_children() -> list[int]:
        return [each.pid for each in multiprocessing.active_children() if each.pid]

    folder = place / "killed"
    with kill_at_random(list_children, folder) as killed:
        found = collect(place, "killed", workers=3)
    assert killed
    assert len(found.entries) == LOGS
    assert all("its process ended" in entry.reason for entry in found.left_out)
    assert count_whole(folder) == LOGS - len(found.left_out)
    collect(place, "killed")
    assert_same_files(place / "made", folder)


@pytest.mark.long
def test_workers_of_a_cluster_that_are_killed_lose_nothing(place):
    folder = place / "killed-there"
    with start_processes() as cluster:

        def list_workers() -> list[int]:
            return [each.pid for each in cluster.workers.values() if each.pid]

        with kill_at_random(list_workers, folder) as killed:
            found = collect(place, folder.name, engine=cluster.scheduler_address)
    assert killed
    assert len(found.entries) == LOGS
    assert all("its worker ended" in entry.reason for entry in found.left_out)
    collect(place, folder.name)
    assert_same_files(place / "made", folder)


@pytest.mark.long
def test_a_command_that_is_killed_at_any_instant_leaves_whole_files(place):
    folder, rng = place / "ended", random.Random(2)
    told = ["collect", str(place / "study.toml"), f"{place}/run*.npz", "-o", str(folder)]
    seen = []
    for _ in range(4):
        command = subprocess.Popen(
            [sys.executable, "-m", "dynident", *told], stdout=subprocess.DEVNULL
        )
        begun = time.monotonic()
        while not (folder / "collection.json").is_file() and time.monotonic() < begun + 120.0:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.5))
        command.kill()
        command.wait()
        seen.append(count_whole(folder))
    assert seen == sorted(seen)
    collect(place, "ended")
    assert_same_files(place / "made", folder)
