"""What holds for every test: one thread of linear algebra; two processes for the whole suite."""

from __future__ import annotations

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
