"""What holds for every test: one thread of linear algebra; two processes for the whole suite."""

from __future__ import annotations

import gc
import os

import pytest

# before numpy is loaded; the matrices are small, and threads would wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


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


LONGEST = (
    *("floating_commands", "shapes", "cli", "reproduce_ardiani", "floating", "diagnosis"),
    *("search", "excitation", "constrained", "truth", "periods", "encoder", "payload"),
    *("floating_logs", "estimators", "replay_engines", "reproduce_brunot", "track"),
    *("reproduce_zhang", "montecarlo", "report", "hostile", "friction", "simulation"),
    *("selection", "tracker", "c_code", "regions", "ml", "draws", "compiled", "replay"),
)
"""Modules that take the longest, in that order."""


def pytest_collection_finish() -> None:
    """What has been loaded by now stays, and need not be searched for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, so that no process waits for the other at the end."""
    rank = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))
