"""What holds for every test: one thread of linear algebra; two processes for the whole suite."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

# before numpy is loaded; the matrices are small, and threads would wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# two processes are at work already
os.environ.setdefault("DYNIDENT_COMPILE_ALONE", "1")


BESIDE = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def measured() -> Callable[[str], Path]:
    """Logs and robots beside the project that may not be shipped with it; skips without them.

    Whatever asks for it is marked `measured`.
    """

    def find(name: str) -> Path:
        path = BESIDE / name
        if not path.exists():
            pytest.skip(f"{name} is not beside the project, in ../shared/data")
        return path

    return find


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """The whole suite goes module by module over two processes; what is named, through one.

    Unless told otherwise (`-n`), and where pytest-xdist is at hand.
    """
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    free = whole and config.getoption("numprocesses", 0) is None and not config.option.usepdb
    if free and not hasattr(config, "workerinput"):
        config.option.numprocesses = 2
        config.option.dist = "loadscope"
        config.option.loadscopereorder = False  # not by the number of tests
        config.option.maxworkerrestart = "0"  # xdist waits for ever for one that it began again


LONGEST = (
    *(
        "pages",
        "zoo",
        "every_result",
        "floating_commands",
        "pairs",
        "cli",
        "loop_simulation",
        "diagnosis",
    ),
    *("reproduce_ardiani", "estimators", "floating_logs", "collect", "repeats_side_by_side"),
    *("side_by_side", "floating", "excitation", "simulation", "floating_loops", "faults"),
    *("loops", "reproduce_brunot", "truth", "reproduce_zhang", "constrained", "decide"),
    *("loop_commands", "loop_master", "shapes", "loop_doctor", "architecture"),
    *("replay_engines", "sensitivities", "track_floating", "encoder", "elastic", "track"),
    *("search", "payload", "hostile", "limbs", "compiled", "closed_loop", "friction"),
)
"""Modules that take the longest, by day or with the long ones, in that order."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is loaded for the tests stays, and need not be searched for garbage again and again."""
    gc.disable()
    done = yield
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    return done


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that no process waits for the other at the end."""
    for item in items:
        if "measured" in getattr(item, "fixturenames", ()):
            item.add_marker("measured")
    rank = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))
