"""Progress on stderr, for work that takes more than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.5
"""Nothing is shown before this many seconds [s]."""
INTERVAL = 0.2
"""Between updates on a terminal; ten times that in a file [s]."""


@contextmanager
def progress_on_stderr() -> Iterator[Callable[[str, float], None]]:
    """A callback for `dynident.facade.Progress` that writes one line, and wipes it."""
    started = time.monotonic()
    terminal = sys.stderr.isatty()
    state = {"stage": "", "since": started, "shown": started, "width": 0.0}

    def show(stage: str, share: float) -> None:
        now = time.monotonic()
        if stage != state["stage"]:
            state.update(stage=stage, since=now)
        pause = INTERVAL if terminal else 10.0 * INTERVAL
        if now - started < PATIENCE or now - float(state["shown"]) < pause:
            return
        text = f"{stage} {100 * share:3.0f} %"
        if 0.02 < share < 1.0:
            left = (now - float(state["since"])) * (1.0 - share) / share
            text += f", about {left:.0f} s left"
        if terminal:
            sys.stderr.write("\r" + text.ljust(int(state["width"])))
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()
        state.update(shown=now, width=float(len(text)))

    try:
        yield show
    finally:
        if terminal and state["width"]:
            sys.stderr.write("\r" + " " * int(state["width"]) + "\r")
            sys.stderr.flush()
