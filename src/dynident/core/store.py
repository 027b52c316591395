"""Rows of numbers in a temporary file: written once, in order, and read as they are wanted."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError

ROWS = 1 << 16
"""Rows that are read at a time, in order."""


class Store:
    """Numbers row after row in a file without a name, which no end of the process leaves behind.

    Parameters
    ----------
    columns : int
        Of each row.

    Raises
    ------
    ComputationError
        Where the folder of temporary files, ``TMPDIR``, has no room.
    """

    def __init__(self, columns: int) -> None:
        self.columns, self.rows = columns, 0
        with refuse_full_folder():
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as this
        weakref.finalize(self, self._file.close)

    def append(self, rows: Array) -> None:
        """Add rows, shape (any, columns)."""
        with refuse_full_folder():
            self._file.write(np.ascontiguousarray(rows, dtype=float).data)
            self._file.flush()
        self.rows += len(rows)

    def read(self, start: int, stop: int) -> Array:
        """Some rows, shape (stop - start, columns)."""
        found = np.empty((stop - start, self.columns))
        room, place = found.data.cast("B"), 8 * self.columns * start
        while room:
            count = os.preadv(self._file.fileno(), [room], place)
            if not count:
                raise ComputationError("a temporary file is shorter than what was written to it")
            room, place = room[count:], place + count
        return found

    def __iter__(self) -> Iterator[Array]:
        """All rows, some at a time."""
        for start in range(0, self.rows, ROWS):
            yield self.read(start, min(start + ROWS, self.rows))


@contextmanager
def refuse_full_folder() -> Iterator[None]:
    """Say what to do where a temporary file cannot be made or has no room."""
    try:
        yield
    except OSError as error:
        raise ComputationError(
            f"{tempfile.gettempdir()}: a temporary file for a long log cannot be written "
            f"({error.strerror}); set TMPDIR to a folder with as much room as its numbers take"
        ) from error
