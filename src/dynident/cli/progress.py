"""Progress as one line on the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

PATIENCE = 1.5
"""Nothing is shown before this many seconds [s]."""
INTERVAL = 0.2
"""Between updates [s]."""


class ProgressLine:
    """A `Progress`: one line that is rewritten.

    Parameters
    ----------
    stream : TextIO
        A terminal gets one line that changes, a file nothing: a script finds errors alone there.
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
        if not self.terminal or now - self.started < PATIENCE or now - self.shown < INTERVAL:
            return
        text = f"{stage} {100 * share:3.0f} %" if share else stage
        if 0.02 < share < 1.0:
            text += f", about {(now - self.since) * (1.0 - share) / share:.0f} s left"
        self.write(text, now)

    def write(self, text: str, now: float) -> None:
        """Rewrite the line."""
        self.stream.write("\r" + text.ljust(self.width))
        self.stream.flush()
        self.shown, self.width = now, len(text)

    def wipe(self) -> None:
        """Leave the line empty."""
        if self.terminal and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()


@contextmanager
def show_progress() -> Iterator[ProgressLine]:
    """Progress on stderr for the length of a block."""
    from dynident.core.compiled import tell_compilations

    line = ProgressLine(sys.stderr)
    try:
        with tell_compilations(line):
            yield line
    finally:
        line.wipe()
