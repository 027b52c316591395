"""What compiled libraries write on stderr, kept from whoever reads it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

ONE_AT_A_TIME = Lock()
"""stderr is the process's: of two that put it aside, each would restore the other's file."""


@contextmanager
def capture_library_messages() -> Iterator[list[str]]:
    """Lines that a compiled library writes on stderr during a block, which are not shown.

    They are shown where there is no place to keep them, and while another thread captures.
    """
    lines: list[str] = []
    with ExitStack() as stack:
        if not ONE_AT_A_TIME.acquire(blocking=False):
            yield lines
            return
        stack.callback(ONE_AT_A_TIME.release)
        try:
            file = stack.enter_context(tempfile.TemporaryFile())
            shown = os.dup(2)
        except OSError:  # there is no place to keep them, or no stderr
            yield lines
            return
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(shown, 2)
            os.close(shown)
            file.seek(0)
            lines += file.read().decode(errors="replace").splitlines()
