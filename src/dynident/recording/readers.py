"""Log files into tables of numbers: one reader a format, all in `READERS`."""

from __future__ import annotations

import csv
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array
from dynident.core.errors import InputError

CHUNK = 1 << 16
"""Rows read at a time, so that a long file never stands in memory twice."""

COMMENTS = ("#", "%")

NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE
)


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
    first_line : int
        1-based line of the first sample in a text file; 0 where there are no lines.
    skipped : tuple of (name, reason)
        Entries of the file that are no columns.
    """

    path: Path
    names: tuple[str, ...] | None
    values: Array
    first_line: int = 0
    skipped: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        self.values.setflags(write=False)

    def row(self, sample: int) -> int:
        """1-based row of a sample: the line of a text file, comments counted."""
        if not self.first_line:
            return sample + 1
        for count, (line, _) in enumerate(_body(self.path, self.first_line)):
            if count == sample:
                return line
        return self.first_line + sample

    def place(self, sample: int, column: int) -> str:
        """File, row and column of a value, by 0-based indices."""
        return f"{self.path}, row {self.row(sample)}, {_label(self.names, column)}"


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
        raise InputError(f"{path}: no such file")
    try:
        table = READERS[path.suffix.lower()](path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({_one_line(error)})") from error
    if not table.values.size:
        reasons = "".join(f"; {name!r} {reason}" for name, reason in table.skipped[:3])
        raise InputError(f"{path}: holds no samples{reasons}")
    return table


@dataclass(frozen=True)
class _Layout:
    """How a text file is written; `trailing`: every row ends with the delimiter."""

    delimiter: str
    names: tuple[str, ...] | None
    first_line: int
    columns: int
    trailing: bool


def read_text(path: Path) -> Table:
    """Read delimited text: comma, semicolon, tab or blanks, with or without a header.

    Lines that start with ``#`` or ``%`` are comments; the last one before the first
    row is the header where it names as many columns as there are.

    Raises
    ------
    InputError
        For an empty file, a cell that is no number, a row of another length.
    """
    layout = _layout(path)
    try:
        values = _parse(path, layout)
    except ValueError as error:
        raise _diagnosis(path, layout, error) from error
    return Table(path, layout.names, values, layout.first_line)


def _layout(path: Path) -> _Layout:
    head, comment = _head(path)
    if not head:
        raise InputError(f"{path}: is empty; expected a header and rows of numbers")
    if "\0" in head[0][1]:
        raise InputError(f"{path}, row {head[0][0]}: is not text; export the log as CSV (UTF-8)")
    delimiter = next((mark for mark in ";\t," if mark in head[-1][1]), " ")
    first = _cells(_content(head[0][1]), delimiter)
    has_header = 2 * sum(map(_is_number, first)) < len(first)
    if has_header and len(head) < 2:
        raise InputError(f"{path}: has a header but no rows")
    first_line, text = head[has_header]
    data = _cells(_content(text), delimiter)
    trailing = len(data) > 1 and not data[-1]
    columns = len(data) - trailing
    named = _cells(head[0][1] if has_header else comment, delimiter)
    named = named[:-1] if trailing and named and not named[-1] else named
    if has_header and len(named) != columns:
        raise InputError(
            f"{path}, row {first_line}: has {columns} columns, "
            f"but the header in row {head[0][0]} names {len(named)}"
        )
    fits = len(named) == columns and not any(map(_is_number, named)) and all(named)
    names = tuple(named) if has_header or fits else None
    return _Layout(delimiter, names, first_line, columns, trailing)


def _head(path: Path) -> tuple[list[tuple[int, str]], str]:
    """The first two lines that count, with their numbers; the last comment before."""
    comment = ""
    head: list[tuple[int, str]] = []
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if text.startswith(COMMENTS):
                comment = comment if head else text.lstrip("".join(COMMENTS)).strip()
            elif text:
                head.append((number, line.rstrip("\r\n")))
            if len(head) == 2:
                break
    return head, comment


def _parse(path: Path, layout: _Layout) -> Array:
    """The numbers, straight into one array."""
    if layout.trailing:
        _refuse_beyond(path, layout)
    marks = _comment_marks(path)
    return np.loadtxt(
        path,
        delimiter=None if layout.delimiter == " " else layout.delimiter,
        comments=marks[0] if len(marks) == 1 else marks or None,
        skiprows=layout.first_line - 1,
        usecols=range(layout.columns) if layout.trailing else None,
        quotechar='"' if len(marks) < 2 else None,
        encoding="utf-8-sig",
        ndmin=2,
    )


def _comment_marks(path: Path) -> list[str]:
    """Which comment characters a file has; none is the fastest to read."""
    found: set[bytes] = set()
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            found |= {mark.encode() for mark in COMMENTS if mark.encode() in block}
    return sorted(mark.decode() for mark in found)


def _refuse_beyond(path: Path, layout: _Layout) -> None:
    """Rows that end with a delimiter have nothing behind it."""
    for _, text in _body(path, layout.first_line):
        cells = _cells(text, layout.delimiter)
        if len(cells) != layout.columns + 1 or cells[-1]:
            raise ValueError("a row is not as long as the first")


def _diagnosis(path: Path, layout: _Layout, error: ValueError) -> InputError:
    """The first row that is not as the others, found by reading again slowly."""
    expected = layout.columns + layout.trailing
    short = ""
    for line, text in _body(path, layout.first_line):
        if short:  # rows follow, so it is not the last one that was cut off
            return InputError(short)
        cells = _cells(text, layout.delimiter)
        place = f"{path}, row {line}"
        if len(cells) != expected:
            place += f", column {min(len(cells), expected) + 1}"
            short = f"{place}: has {len(cells)} columns where the first row has {expected}"
            if len(cells) > expected:
                return InputError(short)
            continue
        for column, cell in enumerate(cells[: layout.columns]):
            if not _is_number(cell):
                what = f"{cell!r} is not a number" if cell else "is empty"
                comma = _is_number(cell.replace(",", "."))
                hint = "; write decimals with a point" if comma else ""
                return InputError(f"{place}, {_label(layout.names, column)}: {what}{hint}")
    if short:
        return InputError(f"{short}; the log was cut off, delete this last row")
    return InputError(f"{path}: is not a table of numbers ({_one_line(error)})")


def _body(path: Path, first_line: int) -> Iterator[tuple[int, str]]:
    """Rows of samples with their 1-based lines."""
    with _open(path) as lines:
        for number, line in enumerate(lines, 1):
            text = _content(line)
            if number >= first_line and text.strip():
                yield number, text


def _content(line: str) -> str:
    """A row without a comment."""
    for mark in COMMENTS:
        line = line.partition(mark)[0]
    return line.rstrip("\r\n")


def _open(path: Path) -> Any:
    return path.open(encoding="utf-8-sig", errors="replace")


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return [cell.strip('"') for cell in line.split()]
    row = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    return [cell.strip() for cell in row]


def _is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell) is not None


def read_npz(path: Path) -> Table:
    """Read a NumPy archive; see `assemble` for what becomes a column.

    Raises
    ------
    InputError
        For files that are no archives, and for pickled objects.
    """
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: is no NPZ archive, or was cut off; save it with np.savez")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: _unpickled(path, archive, key) for key in archive.files}
    except (zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: is a damaged NPZ archive ({_one_line(error)})") from error
    return assemble(path, arrays)


def _unpickled(path: Path, archive: Mapping[str, Any], key: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(archive[key])
    except ValueError as error:
        raise InputError(
            f"{path}, array {key!r}: holds Python objects; save it as an array of float64"
        ) from error


def read_mat(path: Path) -> Table:
    """Read a MATLAB file up to version 7; see `assemble` for what becomes a column.

    Raises
    ------
    InputError
        For version 7.3 and for files that are no MAT files.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(path)
    except NotImplementedError as error:
        raise InputError(f"{path}: is MAT version 7.3; save it with '-v7' or as CSV") from error
    except (ValueError, TypeError, MatReadError, zlib.error) as error:
        raise InputError(f"{path}: is not a MAT file ({_one_line(error)})") from error
    arrays = {key: np.asarray(value) for key, value in content.items() if key[:2] != "__"}
    # MATLAB has no 1-D arrays
    vectors = {key: a.ravel() if a.ndim == 2 and 1 in a.shape else a for key, a in arrays.items()}
    return assemble(path, vectors)


def assemble(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> Table:
    """Named arrays side by side.

    The longest dimension of all arrays is the samples'. A 1-D array of that length is
    the column of its name; a 2-D array ``key`` becomes ``key_1 … key_n``, transposed
    where its samples lie along the second axis. All others are skipped with a reason.
    """
    numeric = {key: a for key, a in arrays.items() if a.dtype.kind in "fiub" and 0 < a.ndim < 3}
    samples = max((max(array.shape) for array in numeric.values() if array.size > 1), default=0)
    blocks: list[npt.NDArray[Any]] = []
    names: list[str] = []
    skipped = []
    for key, array in arrays.items():
        if key not in numeric:
            skipped.append((key, "is not a numeric array of one or two dimensions"))
        elif samples not in array.shape:
            skipped.append((key, f"has shape {array.shape}, not {samples} samples"))
        elif array.ndim == 1:
            blocks.append(array[:, None])
            names.append(key)
        else:
            blocks.append(array if len(array) == samples else array.T)
            names += [f"{key}_{column + 1}" for column in range(blocks[-1].shape[1])]
    values = np.concatenate(blocks, axis=1, dtype=np.float64) if blocks else np.empty((0, 0))
    return Table(path, tuple(names), values, skipped=tuple(skipped))


def read_parquet(path: Path) -> Table:
    """Read a Parquet file through pyarrow; columns that are no numbers are skipped.

    Raises
    ------
    InputError
        When pyarrow is not installed or the file is not Parquet.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(f"{path}: needs pyarrow; pip install dynident[parquet]") from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            types = {field.name: str(field.type) for field in schema}
            numeric = re.compile(r"(double|float|halffloat|u?int)\d*")
            names = tuple(name for name, kind in types.items() if numeric.fullmatch(kind))
            values = np.empty((file.metadata.num_rows, len(names)))
            stop = 0
            for batch in file.iter_batches(batch_size=CHUNK, columns=list(names)):
                start, stop = stop, stop + batch.num_rows
                for column, name in enumerate(names):
                    cells = batch.column(name).cast(pyarrow.float64(), safe=False)
                    values[start:stop, column] = cells.to_numpy(zero_copy_only=False)
    except pyarrow.ArrowException as error:
        raise InputError(f"{path}: is not a Parquet file ({_one_line(error)})") from error
    others = (name for name in types if name not in names)
    skipped = tuple((name, f"holds {types[name]}, not numbers") for name in others)
    return Table(path, names, values, skipped=skipped)


def _label(names: tuple[str, ...] | None, column: int) -> str:
    return f"column {column + 1}" + (f" ({names[column]})" if names else "")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


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
