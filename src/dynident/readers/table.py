"""The table that every reader makes of a file, and what readers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.files import DAMAGE
from dynident.core.store import ROWS, Store
from dynident.core.text import format_one_line

MOST_COLUMNS = 1000
"""An array with more is a picture or a matrix, and no signals of joints."""
TIME = ("time", "t")
"""Names that a time column has by itself; such arrays say how many samples there are."""
UNPACKED = 1 << 28
"""Bytes that anything may unpack to."""
GROWTH = 100
"""How many times its size may a larger file unpack to: numbers as text do a tenth of it."""


def to_row_number(sample: int) -> int:
    """1-based row of a sample in a file without lines."""
    return sample + 1


def read_at_once(wanted: Sequence[int]) -> None:
    """What is not a stream of rows."""


@dataclass(frozen=True)
class LazyColumns:
    """Columns that are read when they are wanted."""

    shape: tuple[int, int]
    """(samples, columns)."""
    take: Callable[[Sequence[int]], Array]
    """Some of the columns, by 0-based indices, side by side: an array of floats of its own."""
    pieces: Callable[[Sequence[int]], Iterator[Array] | None] = read_at_once
    """The same some rows at a time, in order; None where that takes as much memory."""


def read_store_lazily(store: Store) -> LazyColumns:
    """Columns of a temporary file of numbers."""

    def read_pieces(wanted: Sequence[int]) -> Iterator[Array]:
        return (rows[:, list(wanted)] for rows in store)

    def take(wanted: Sequence[int]) -> Array:
        return np.concatenate([*read_pieces(wanted)])

    return LazyColumns((store.rows, store.columns), take, read_pieces)


@dataclass(frozen=True, eq=False)
class Table:
    """The numbers of one file, or of one topic of a file."""

    path: Path
    names: tuple[str, ...] | None
    """Names of the columns; None for a file without a header."""
    columns: Array | LazyColumns
    """Shape (samples, columns). As they stand in the file; read-only."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Tuple of (name, reason). Entries of the file that are not columns."""
    row: Callable[[int], int] = to_row_number
    """1-based row of a sample, by its 0-based index: the line of a text file."""
    topic: str | None = None
    """Of a file whose topics have a clock each; its tables have a time column."""
    notes: tuple[str, ...] = ()
    """What was noticed in it."""
    words: Mapping[int, str] = field(default_factory=dict)
    """Columns that hold no numbers, NaN here, and what is said where one of them is used."""
    units: Mapping[int, str] = field(default_factory=dict)
    """Of columns, where the file says so beside their names: see `dynident.readers.units`."""
    rank: int = 0
    """Of topics that have a column of the same name, those of the least are meant."""
    cut_off: str = ""
    """Where and how a text ends in the middle of its last row, which is left out here."""

    def __post_init__(self) -> None:
        if not isinstance(self.columns, LazyColumns):
            self.columns.setflags(write=False)

    @property
    def titles(self) -> tuple[str, ...]:
        """Names of the columns; none of a file without a header."""
        return self.names or ()

    @property
    def samples(self) -> int:
        """How many rows there are."""
        return int(self.columns.shape[0])

    @property
    def width(self) -> int:
        """How many columns there are."""
        return int(self.columns.shape[1])

    @property
    def values(self) -> Array:
        """All of them, shape (samples, columns); read-only."""
        if not isinstance(self.columns, LazyColumns):
            return self.columns
        values = self.take(range(self.width))
        values.setflags(write=False)
        return values

    def take(self, wanted: Sequence[int]) -> Array:
        """Copies of some columns, by 0-based indices, shape (samples, len(wanted))."""
        if isinstance(self.columns, LazyColumns):
            return self.columns.take(wanted)
        values = np.empty((self.samples, len(wanted)))
        for column, index in enumerate(wanted):
            values[:, column] = self.columns[:, index]
        return values

    def pieces(self, wanted: Sequence[int]) -> Iterator[Array] | None:
        """Some columns, some rows at a time; None of a file that is read as a whole."""
        return self.columns.pieces(wanted) if isinstance(self.columns, LazyColumns) else None

    @property
    def called(self) -> str:
        """What messages call it."""
        return str(self.path) if self.topic is None else f"{self.path}, {self.topic}"

    def place(self, sample: int, column: int) -> str:
        """File, row and column of a value, by 0-based indices."""
        return f"{self.called}, row {self.row(sample)}, {label_column(self.names, column)}"


def label_column(names: tuple[str, ...] | None, column: int) -> str:
    """What messages call a column, by its 0-based index."""
    return f"column {column + 1}" + (f" ({format_one_line(names[column])})" if names else "")


def refuse_bomb(place: str, packed: int, unpacked: int) -> None:
    """Refuse what grows out of all proportion when it is unpacked."""
    if unpacked > max(UNPACKED, GROWTH * packed):
        raise InputError(
            f"{place}: {packed} bytes unpack to {unpacked} or more, which no log does; "
            "save it without compression if it is one"
        )


@contextmanager
def refuse_damage(
    place: object, what: str, cure: str, kinds: tuple[type[Exception], ...] = DAMAGE
) -> Iterator[None]:
    """Refuse a file, or a part of it, that a library stumbles over while it is read."""
    try:
        yield
    except kinds as error:
        raise InputError(f"{place}: {what} ({format_one_line(error)}); {cure}") from error


@dataclass(frozen=True)
class ArrayEntry:
    """A named array of a file, which is not read before it is wanted."""

    shape: tuple[int, ...]
    kind: str
    """Of its numbers, as NumPy has it."""
    read: Callable[[Any], npt.NDArray[Any]]
    """The array, or the part of it that an index (with at most one list, of increasing numbers)
    says."""
    pieces: Callable[[int], Iterator[npt.NDArray[Any]]] | None = None
    """Of an array whose first axis is stored in order: so many rows at a time."""


NO_NUMBERS = "is not a numeric array of one or two dimensions"


def describe_object(kind: str) -> str:
    """Why an object of a class of MATLAB is no array, such as a ``timeseries`` or a ``table``."""
    return f"is an object of MATLAB's class {kind}: save its arrays by names of their own"


def assemble_table(path: Path, entries: Mapping[str, ArrayEntry | str]) -> Table:
    """Named arrays side by side, none of them read yet.

    There are as many samples as ``time`` (or ``t``) has, else as the longest dimension of all
    arrays. A 1-D array of that length is the column of its name; a 2-D array ``key`` becomes
    ``key_1 … key_n``, transposed where its samples lie along the second axis. All others are
    skipped with a reason and never read, as are those in whose place a reader gives the reason.
    What is in a struct or group ``log`` is called ``log.key``.
    """
    numeric = {
        key: entry
        for key, entry in entries.items()
        if isinstance(entry, ArrayEntry) and entry.kind in {*"fiub"} and 0 < len(entry.shape) < 3
        and sorted((1, *entry.shape))[-2] <= MOST_COLUMNS
    }  # fmt: skip
    samples = max((max(e.shape) for e in numeric.values() if max(e.shape) > 1), default=0)
    stamps = (k for t in TIME for k in numeric if k.rpartition(".")[2] == t)
    for key in sorted(stamps, key=lambda key: key.count(".")):
        if len(numeric[key].shape) == 1 and numeric[key].shape[0] > 1:
            samples = numeric[key].shape[0]
            break
    spots: list[tuple[ArrayEntry, int]] = []
    names: list[str] = []
    left: list[tuple[str, str]] = []
    for key, entry in entries.items():
        if isinstance(entry, str):
            left.append((key, entry))
        elif key not in numeric:
            left.append((key, NO_NUMBERS))
        elif samples not in entry.shape:
            left.append((key, f"has shape {entry.shape}, not {samples} samples"))
        elif len(entry.shape) == 1:
            spots.append((entry, 0))
            names.append(key)
        else:
            width = entry.shape[1 if entry.shape[0] == samples else 0]
            if width > MOST_COLUMNS:
                left.append((key, f"has shape {entry.shape}: more than {MOST_COLUMNS} columns"))
                continue
            spots += [(entry, column) for column in range(width)]
            names += [f"{key}_{column + 1}" for column in range(width)]
    shape = (samples if spots else 0, len(spots))
    lazy = LazyColumns(
        shape, partial(_read_columns, samples, spots), partial(_read_pieces, samples, spots)
    )
    return Table(path, tuple(names), lazy, tuple(left))


def _read_columns(
    samples: int, spots: Sequence[tuple[ArrayEntry, int]], wanted: Sequence[int]
) -> Array:
    """Columns of arrays side by side; no array is read twice for them."""
    values = np.empty((samples, len(wanted)))
    of_entry: dict[int, list[int]] = {}
    for place, index in enumerate(wanted):
        of_entry.setdefault(id(spots[index][0]), []).append(place)
    for places in of_entry.values():
        entry = spots[wanted[places[0]]][0]
        own = [spots[wanted[place]][1] for place in places]
        if len(entry.shape) == 1:
            values[:, places] = entry.read(())[:, None]
            continue
        upright = entry.shape[0] == samples
        chosen = sorted(set(own))
        part = entry.read((slice(None), chosen) if upright else (chosen, slice(None)))
        part = part if upright else part.T
        for place, column in zip(places, own, strict=True):
            values[:, place] = part[:, chosen.index(column)]
    return values


def _read_pieces(
    samples: int, spots: Sequence[tuple[ArrayEntry, int]], wanted: Sequence[int]
) -> Iterator[Array] | None:
    """The same some rows at a time, where all of the arrays are stored in the order of samples."""
    chosen = [spots[index] for index in wanted]
    streams: dict[int, Iterator[npt.NDArray[Any]]] = {}
    for entry, _ in chosen:
        if entry.pieces is None or entry.shape[0] != samples:
            return None
        streams.setdefault(id(entry), entry.pieces(ROWS))

    def join() -> Iterator[Array]:
        for parts in zip(*streams.values(), strict=True):
            of_entry = dict(zip(streams, parts, strict=True))
            values = np.empty((len(parts[0]), len(chosen)))
            for place, (entry, column) in enumerate(chosen):
                part = of_entry[id(entry)]
                values[:, place] = part if part.ndim == 1 else part[:, column]
            yield values

    return join()
