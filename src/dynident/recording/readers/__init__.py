"""Log files into tables of numbers: one reader a format, all in `READERS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dynident.core.errors import InputError
from dynident.recording.readers.mat import read_mat
from dynident.recording.readers.npz import read_npz
from dynident.recording.readers.parquet import read_parquet
from dynident.recording.readers.table import Table, assemble, one_line
from dynident.recording.readers.text import read_text

__all__ = ["READERS", "Reader", "Table", "assemble", "read_table"]

Reader = Callable[[Path], Table]

READERS: dict[str, Reader] = {
    ".csv": read_text,
    ".txt": read_text,
    ".tsv": read_text,
    ".dat": read_text,
    ".parquet": read_parquet,
    ".npz": read_npz,
    ".mat": read_mat,
}
"""Readers by lower-case suffix."""


def read_table(path: Path) -> Table:
    """Read a log file of any known format.

    Raises
    ------
    InputError
        When the file is missing, of an unknown format, or not a table of numbers; the
        message has the row and the column.
    """
    if path.suffix.lower() not in READERS:
        raise InputError(f"{path}: unknown log format; known are {', '.join(READERS)}")
    if not path.is_file():
        raise InputError(f"{path}: {'is not a file' if path.exists() else 'no such file'}")
    try:
        path.open("rb").close()  # what readers say of damage is not about permissions
        table = READERS[path.suffix.lower()](path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({one_line(error)})") from error
    if not table.values.size:
        reasons = "".join(f"; {name!r} {reason}" for name, reason in table.skipped[:3])
        raise InputError(f"{path}: holds no samples{reasons}")
    return table
