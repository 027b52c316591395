"""Where messages go: lines of text, a file, a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from dynident.live.board import Board
from dynident.live.lines import Lines
from dynident.live.mcap import McapFile
from dynident.live.messages import Message
from dynident.live.server import PageServer


@dataclass(frozen=True)
class Outlets:
    """Lines of text and, where they are wanted, a file and a page.

    Attributes
    ----------
    address : str
        Of the page; empty without.
    """

    lines: Lines
    file: McapFile | None
    board: Board | None
    address: str

    @property
    def signals(self) -> bool:
        """Whether one of them takes messages of every sample."""
        return self.lines.signals or self.file is not None or self.board is not None

    def write(self, message: Message) -> None:
        """Hand a message to all of them."""
        for each in (self.lines, self.file, self.board):
            if each is not None:
                each.write(message)

    def end(self, words: str) -> None:
        """No message comes any more: the file is closed, and the page says why."""
        if self.file is not None:
            self.file.close()
        if self.board is not None:
            self.board.end(words)


@contextmanager
def open_outlets(
    title: str,
    out: TextIO,
    say: Callable[[str], None],
    as_json: bool,
    signals: bool,
    mcap: Path | None,
    port: int | None,
) -> Iterator[Outlets]:
    """Where messages go, for the length of a block.

    Parameters
    ----------
    title : str
        Of the page.
    out, say, as_json, signals
        As of `Lines`.
    mcap : Path, optional
        A file of them.
    port : int, optional
        On which a page is served; 0 for any that is free.

    Raises
    ------
    InputError
        When the package `mcap` is not installed, or the port cannot be had.
    """
    with ExitStack() as opened:
        file = None if mcap is None else opened.enter_context(closing(McapFile(mcap)))
        board, address = None, ""
        if port is not None:
            board = Board(title)
            address = opened.enter_context(closing(PageServer(board, port))).address
        yield Outlets(Lines(out, as_json, signals, say), file, board, address)
