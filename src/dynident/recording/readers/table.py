"""The table that every reader makes of a file, and what readers share."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without it cannot meet it either
    LZMAError = zlib.error  # type: ignore[misc, assignment]

DAMAGE = (
    LZMAError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What libraries stumble over in damaged files, beyond what they document."""
MOST_COLUMNS = 1000
"""An array with more is a picture or a matrix, and no signals of joints."""
TIME = ("time", "t")
"""Arrays that say how many samples there are."""
LONGEST = 200
"""Characters that a message quotes of a library's."""


def count_rows(sample: int) -> int:
    """1-based row of a sample in a file without lines."""
    return sample + 1


@dataclass(frozen=True)
class Table:
    """The numbers of one file.

    Attributes
    ----------
    path : Path
    names : tuple of str, or None
        Names of the columns; None for a file without a header.
    values : ndarray, shape (samples, columns)
        As they stand in the file; read-only.
    skipped : tuple of (name, reason)
        Entries of the file that are no columns.
    row : callable
        1-based row of a sample, by its 0-based index: the line of a text file.
    """

    path: Path
    names: tuple[str, ...] | None
    values: Array
    skipped: tuple[tuple[str, str], ...] = ()
    row: Callable[[int], int] = count_rows

    def __post_init__(self) -> None:
        self.values.setflags(write=False)

    def place(self, sample: int, column: int) -> str:
        """File, row and column of a value, by 0-based indices."""
        return f"{self.path}, row {self.row(sample)}, {column_label(self.names, column)}"


def column_label(names: tuple[str, ...] | None, column: int) -> str:
    """What messages call a column, by its 0-based index."""
    return f"column {column + 1}" + (f" ({names[column]})" if names else "")


def one_line(error: Exception) -> str:
    """A library's reason without line breaks, and of a length that can be read."""
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


@dataclass(frozen=True)
class Entry:
    """A named array of a file, which is not read before it is wanted.

    Attributes
    ----------
    shape : tuple of int
    kind : str
        Of its numbers, as NumPy has it; "" where they are none.
    read : callable
        The array.
    """

    shape: tuple[int, ...]
    kind: str
    read: Callable[[], npt.NDArray[Any]]


def assemble(
    path: Path, entries: Mapping[str, Entry], skipped: tuple[tuple[str, str], ...] = ()
) -> Table:
    """Named arrays side by side.

    There are as many samples as ``time`` (or ``t``) has, else as the longest dimension of all
    arrays. A 1-D array of that length is the column of its name; a 2-D array ``key`` becomes
    ``key_1 … key_n``, transposed where its samples lie along the second axis. All others are
    skipped with a reason and never read, as are those that the reader `skipped`.
    """
    numeric = {
        key: entry
        for key, entry in entries.items()
        if entry.kind in {*"fiub"} and 0 < len(entry.shape) < 3
        and sorted((1, *entry.shape))[-2] <= MOST_COLUMNS
    }  # fmt: skip
    samples = max((max(e.shape) for e in numeric.values() if max(e.shape) > 1), default=0)
    for key in TIME:
        if key in numeric and len(numeric[key].shape) == 1 and numeric[key].shape[0] > 1:
            samples = numeric[key].shape[0]
            break
    blocks: list[npt.NDArray[Any]] = []
    names: list[str] = []
    left = list(skipped)
    for key, entry in entries.items():
        if key not in numeric:
            left.append((key, "is not a numeric array of one or two dimensions"))
        elif samples not in entry.shape:
            left.append((key, f"has shape {entry.shape}, not {samples} samples"))
        elif len(entry.shape) == 1:
            blocks.append(entry.read()[:, None])
            names.append(key)
        else:
            array = entry.read()
            blocks.append(array if len(array) == samples else array.T)
            names += [f"{key}_{column + 1}" for column in range(blocks[-1].shape[1])]
    values = np.concatenate(blocks, axis=1, dtype=np.float64) if blocks else np.empty((0, 0))
    return Table(path, tuple(names), values, tuple(left))
