"""Progress on stderr, for work that takes more than a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

PATIENCE = 1.5
"""Nothing is shown before this many seconds [s]."""
INTERVAL = 0.2
"""Between updates on a terminal; ten times that in a file [s]."""


class ProgressLine:
    """A callback for `dynident.facade.Progress`: one line that is rewritten.

    Parameters
    ----------
    stream : TextIO
        A terminal gets one line that changes, a file a line every other second.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.terminal = stream.isatty()
        self.started = self.since = self.shown = time.monotonic()
        self.stage = ""
        self.width = 0

    def __call__(self, stage: str, share: float) -> None:
        """Show a stage and the share of it that is done."""
        now = time.monotonic()
        if stage != self.stage:
            self.stage, self.since = stage, now
        pause = INTERVAL if self.terminal else 10.0 * INTERVAL
        if now - self.started < PATIENCE or now - self.shown < pause:
            return
        text = f"{stage} {100 * share:3.0f} %"
        if 0.02 < share < 1.0:
            text += f", about {(now - self.since) * (1.0 - share) / share:.0f} s left"
        self.stream.write("\r" + text.ljust(self.width) if self.terminal else text + "\n")
        self.stream.flush()
        self.shown, self.width = now, len(text)

    def wipe(self) -> None:
        """Leave the line empty."""
        if self.terminal and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()


@contextmanager
def progress_on_stderr() -> Iterator[ProgressLine]:
    """Progress on stderr for the length of a block."""
    line = ProgressLine(sys.stderr)
    try:
        yield line
    finally:
        line.wipe()
