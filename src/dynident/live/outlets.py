"""Where messages go: lines of text, files, a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from dynident.live.board import LiveBoard
from dynident.live.lines import MessageLines
from dynident.live.mcap import McapFile
from dynident.live.messages import Message
from dynident.live.rerun import RerunFile
from dynident.live.server import PageServer


@dataclass(frozen=True)
class Outlets:
    """Lines of text and, where they are wanted, files and a page."""

    lines: MessageLines
    files: tuple[McapFile | RerunFile, ...]
    board: LiveBoard | None
    address: str
    """Of the page; empty without."""

    @property
    def signals(self) -> bool:
        """Whether one of them takes messages of every sample."""
        return self.lines.signals or bool(self.files) or self.board is not None

    def write(self, message: Message) -> None:
        """Hand a message to all of them."""
        for each in (self.lines, *self.files):
            each.write(message)
        if self.board is not None:
            self.board.write(message)

    def end(self) -> None:
        """The stream has ended: files are closed, and the page says so."""
        for file in self.files:
            file.close()
        if self.board is not None:
            self.board.end("the stream has ended")


@contextmanager
def open_outlets(
    title: str,
    out: TextIO,
    say: Callable[[str], None],
    as_json: bool,
    signals: bool,
    mcap: Path | None,
    rrd: Path | None,
    port: int | None,
) -> Iterator[Outlets]:
    """Where messages go, for the length of a block.

    Parameters
    ----------
    title : str
        Of the page.
    out, say, as_json, signals
        As of `MessageLines`.
    mcap, rrd : Path, optional
        Files of them, for Foxglove and PlotJuggler, and for rerun.
    port : int, optional
        On which a page is served; 0 for any that is free.

    Raises
    ------
    InputError
        When a file's package is not installed, or the port cannot be had.
    """
    with ExitStack() as opened:
        made = ((McapFile, mcap), (RerunFile, rrd))
        files = [opened.enter_context(closing(kind(path))) for kind, path in made if path]
        board, address = None, ""
        if port is not None:
            board = LiveBoard(title)
            address = opened.enter_context(closing(PageServer(board, port))).address
        yield Outlets(MessageLines(out, as_json, signals, say), tuple(files), board, address)
