"""Delimited text."""

from __future__ import annotations

import csv
import gzip
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from types import GeneratorType
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.files import DAMAGE
from dynident.core.store import Store
from dynident.core.text import format_one_line
from dynident.core.words import shorten_line
from dynident.readers.table import (
    Table,
    label_column,
    read_store_lazily,
    refuse_bomb,
    refuse_damage,
)
from dynident.readers.units import INSTANTS, read_units

WIDEST = 1 << 22
"""Characters of a line."""
EMPTY = 100_000
"""Lines that are empty or comments before the first row."""
COMMENTS = ("#", "%")
NO_VALUE = re.compile(r"#(?:N/A|NUM!|DIV/0!|VALUE!|REF!|NAME\?|NULL!)(?=[\s\",;]|$)")
"""What spreadsheets write where there is no value; it begins as a comment does."""
BLOCK = 1 << 22
"""Bytes that are looked at at a time."""
LARGE = 1 << 26
"""Bytes of a file whose numbers go to a temporary file, and not to memory."""
LINES = 1 << 15
"""Of such a file that are parsed at a time."""

NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE
)
DATE = re.compile(r"\d\d:\d\d|\d{4}-\d\d-\d\d", re.ASCII)
INSTANT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
"""A date with its time (ISO 8601), which counts in seconds from midnight before the first."""


Load = Callable[..., "Array | Store"]
"""What makes numbers of a file or of its rows, in memory or in a temporary file."""


@dataclass(frozen=True)
class _Layout:
    """How a text file is written.

    `trailing`: every row ends with the delimiter. `words`: columns that begin with a word, and what
    is said where one of them is used. `dates`: columns that begin with an instant. `units`: of
    columns, as a second line of the header has them. `cut_off`: the last row is left out.
    """

    delimiter: str
    names: tuple[str, ...] | None
    first_line: int
    columns: int
    trailing: bool
    words: Mapping[int, str] = field(default_factory=dict)
    dates: tuple[int, ...] = ()
    units: Mapping[int, str] = field(default_factory=dict)
    cut_off: bool = False


def read_text(path: Path) -> Table:
    """Read delimited text: comma, semicolon, tab or blanks, with or without a header.

    Cells without anything in them, or with a spreadsheet's ``#N/A``, are missing values, NaN. Text
    may be packed by gzip.
    A column under a header that begins with a word, beside numbers, holds words: NaN, and refused
    where it is used; one that begins with a date and its time holds seconds from midnight before.
    Decimals may have a comma where that separates no columns.

    Lines that start with ``#`` or ``%`` are comments; the last one before the first
    row is the header where it names as many columns as there are. A second line of a header, or
    comment, that holds nothing but units states those of the columns. A last row that was cut off
    is left out, and the table says so.
    """
    if _is_packed(path):
        _refuse_bad_archive(path)
    load = _load_numbers if path.stat().st_size < LARGE else _store_numbers
    try:
        layout = _detect_layout(path)
        values, cut_off = _parse_whole_rows(path, layout, load)
    except csv.Error as error:
        raise InputError(f"{path}: is not a table of numbers ({format_one_line(error)})") from error
    row = partial(_find_line, path, layout.first_line)
    columns = values if isinstance(values, np.ndarray) else read_store_lazily(values)
    return Table(
        path, layout.names, columns, row=row, words=layout.words, units=layout.units,
        cut_off=cut_off,
    )  # fmt: skip


def read_header(path: Path) -> tuple[str, ...]:
    """Names of a file's columns, without its numbers; none where it does not name them."""
    try:
        return _detect_layout(path).names or ()
    except (csv.Error, *DAMAGE):
        return ()


def _find_line(path: Path, first_line: int, sample: int) -> int:
    """1-based line of a sample, comments counted."""
    lines = (line for line, _ in _read_rows(path, first_line))
    return next(islice(lines, sample, None), first_line + sample)


def _detect_layout(path: Path) -> _Layout:
    head, comments = _read_first_lines(path)
    if not head:
        raise InputError(f"{path}: is empty; expected a header and rows of numbers")
    if "\0" in head[0][1]:
        raise InputError(f"{path}, row {head[0][0]}: is not text; export the log as CSV (UTF-8)")
    delimiter = next((mark for mark in ";\t," if mark in head[:2][-1][1]), " ")
    first = _split_cells(_strip_comment(head[0][1]), delimiter)
    has_header = 2 * sum(_is_value(cell, delimiter) for cell in first) < sum(map(bool, first))
    lines = [_split_cells(text, delimiter) for text in comments]
    units = read_units(lines[-1]) if lines else {}
    if has_header and len(head) > 1:
        units = read_units(_split_cells(head[1][1], delimiter))
        head = [head[0], *head[2:]] if units else head
    comment = lines[-2 if units and len(lines) > 1 else -1] if lines else []
    if has_header and len(head) < 2:
        raise InputError(f"{path}: has a header but no rows")
    first_line, text = head[has_header]
    data = _split_cells(_strip_comment(text), delimiter)
    named = _split_cells(head[0][1], delimiter) if has_header else comment
    whole = len(named) == len(data) and bool(named[-1])  # it is the last cell that is empty
    trailing = len(data) > 1 and not data[-1] and not whole
    columns = len(data) - trailing
    named = named[:-1] if trailing and named and not named[-1] else named
    if has_header and len(named) != columns:
        raise InputError(
            f"{path}, row {first_line}: has {columns} columns, "
            f"but the header in row {head[0][0]} names {len(named)}: name each column there"
        )
    fits = len(named) == columns and not any(map(_is_number, named)) and all(named)
    names = tuple(named) if has_header or fits else None
    numbers = [_is_value(cell, delimiter) for cell in data[:columns]]
    words = {
        column: _describe_bad_cell(f"{path}, row {first_line}", names, column, data[column])
        for column in np.flatnonzero(~np.array(numbers)).tolist()
        if data[column] and names and any(numbers)  # else it is a row of units
    }
    dates = tuple(k for k, cell in enumerate(data[:columns]) if INSTANT.fullmatch(cell))
    units = {**units, **dict.fromkeys(dates, INSTANTS)}
    return _Layout(delimiter, names, first_line, columns, trailing, words, dates, units)


def _read_first_lines(path: Path) -> tuple[list[tuple[int, str]], list[str]]:
    """The first three lines that count, with their numbers; the last two comments before."""
    comments: list[str] = []
    head: list[tuple[int, str]] = []
    with _open_text(path) as lines:
        # of an archive nobody knows yet what it grows to
        for number, line in enumerate(iter(partial(lines.readline, WIDEST + 1), ""), 1):
            text = line.strip()
            if is_comment(text):
                words = text.lstrip("".join(COMMENTS)).strip()
                comments = comments if head else [*comments[-1:], words]
            elif text:
                head.append((number, line.rstrip("\r\n")))
            if len(head) == 3:
                break
            if len(line) > WIDEST or number > EMPTY:
                reason = (
                    "no row" if len(line) <= WIDEST else f"a line of more than {WIDEST} characters"
                )
                raise InputError(
                    f"{path}, row {number}: is not a table, it begins with {reason}; export the "
                    "log as CSV"
                )
    return head, comments


def is_comment(text: str) -> bool:
    """Whether a line is one, and no row that begins with a value which is missing."""
    return text.startswith(COMMENTS) and NO_VALUE.match(text) is None


def _parse_whole_rows(path: Path, layout: _Layout, load: Load) -> tuple[Array | Store, str]:
    """The numbers without a last row that was cut off, and words on that row."""
    try:
        return _parse_numbers(path, layout, load), ""
    except ValueError as error:
        encoded = not isinstance(error, UnicodeDecodeError)
        with suppress(ValueError):
            if encoded and (cut_off := _describe_cut_off_row(path, layout)):
                return _parse_numbers(path, replace(layout, cut_off=True), load), cut_off
        raise _diagnose_error(path, layout, error) from error


def _parse_numbers(path: Path, layout: _Layout, load: Load) -> Array | Store:
    """The numbers, straight into one array, or of a large file into another one."""
    if layout.trailing or layout.words:
        _refuse_uneven_rows(path, layout)
    marks = _find_comment_marks(path)
    if layout.dates or layout.cut_off or ("#" in marks and _lacks_values(path)):
        return load(_fill_empty_cells(path, layout), layout)
    try:
        if not _is_packed(path):
            return load(path, layout, marks)
        with _open_text(path, "strict") as lines:
            return load(lines, layout, marks)
    except UnicodeDecodeError:
        raise
    except ValueError:
        if layout.delimiter == " ":
            raise
        return load(_fill_empty_cells(path, layout), layout)


def _fill_empty_cells(path: Path, layout: _Layout) -> Iterator[str]:
    """Rows with NaN where a cell is empty, decimal points and seconds; without comments."""
    mark = re.escape(layout.delimiter)
    empty = re.compile(rf'(^|{mark})[ ]*(?:"[ ]*")?[ ]*(?={mark}|$)')
    midnights: dict[int, datetime] = {}
    used: set[str] = set()
    for line, text in _read_layout_rows(path, layout):
        if layout.delimiter != ",":
            used |= _find_decimal_marks(text, layout)
        place = f"{path}, row {line}"
        if len(used) > 1:
            raise InputError(
                f"{place}: has decimals with a comma where others have a point, or the other way "
                "round; write all with a point, and thousands without a mark"
            )
        row = _count_seconds(place, text, layout, midnights) if layout.dates else text
        row = row if layout.delimiter == "," else row.replace(",", ".")
        yield row if layout.delimiter == " " else empty.sub(r"\1nan", row)


def _find_decimal_marks(row: str, layout: _Layout) -> set[str]:
    """A point and a comma, as far as the numbers of a row have them."""
    numbers = INSTANT.sub("", row) if layout.dates else row
    if layout.words:
        cells = _split_cells(numbers, layout.delimiter)
        numbers = " ".join(cell for k, cell in enumerate(cells) if k not in layout.words)
    return {mark for mark in ".," if mark in numbers}


def _count_seconds(place: str, row: str, layout: _Layout, midnights: dict[int, datetime]) -> str:
    """A row in which instants are seconds since the midnight before the first of their column.

    Unlike seconds since that instant these are the same in files that were begun apart.
    """
    cells = _split_cells(row, layout.delimiter)
    if len(cells) != layout.columns + layout.trailing:
        raise ValueError("a row is not as long as the first")
    for column in (column for column in layout.dates if cells[column]):
        try:
            instant = datetime.fromisoformat(cells[column].replace(",", "."))
            instant = instant if instant.tzinfo is None else instant.astimezone(UTC)
            midnight = instant.replace(hour=0, minute=0, second=0, microsecond=0)
            since = instant - midnights.setdefault(column, midnight)
        except (TypeError, ValueError) as error:  # of a zone beside none, and of no calendar
            shown = f"{label_column(layout.names, column)}: {shorten_line(cells[column], 40)!r}"
            raise InputError(
                f"{place}, {shown} is not an instant like those before ({format_one_line(error)})"
            ) from error
        cells[column] = repr(since.total_seconds())
    return layout.delimiter.join(f'"{x}"' if layout.delimiter in x else x for x in cells)


def _load_numbers(
    rows: Path | Iterator[str] | list[str], layout: _Layout, marks: Sequence[str] = ()
) -> Array:
    """Numbers of a file, of its lines, or of some of its rows, the header not among them."""
    of_rows = isinstance(rows, GeneratorType | list)
    some = [column for column in range(layout.columns) if column not in layout.words]
    values = np.loadtxt(
        rows,
        delimiter=None if layout.delimiter == " " else layout.delimiter,
        comments=marks[0] if len(marks) == 1 else marks or None,
        skiprows=0 if of_rows else layout.first_line - 1,
        usecols=some if layout.trailing or layout.words else None,
        quotechar='"' if len(marks) < 2 else None,
        encoding="utf-8-sig",
        ndmin=2,
    )
    if not layout.words:
        return values
    whole = np.full((len(values), layout.columns), np.nan)
    whole[:, some] = values
    return whole


def _store_numbers(rows: Path | Iterator[str], layout: _Layout, marks: Sequence[str] = ()) -> Store:
    """The same, some rows at a time, in a temporary file of numbers."""
    if isinstance(rows, Path):
        with _open_text(rows, "strict") as lines:
            return _store_numbers(lines, layout, marks)
    if not isinstance(rows, GeneratorType):
        rows = islice(rows, layout.first_line - 1, None)
    store = Store(layout.columns)
    while part := list(islice(rows, LINES)):
        if any(line.strip() and not is_comment(line.strip()) for line in part):
            values = _load_numbers(part, layout, marks)
            if values.shape[1] != layout.columns:
                raise ValueError("a row is not as long as the first")
            store.append(values)
    return store


def _find_comment_marks(path: Path) -> list[str]:
    """Which comment characters a file has; none is the fastest to read."""
    found: set[bytes] = set()
    with _open_bytes(path) as file:
        while block := file.read(BLOCK):
            found |= {mark.encode() for mark in COMMENTS if mark.encode() in block}
    return sorted(mark.decode() for mark in found)


def _lacks_values(path: Path) -> bool:
    """Whether a spreadsheet wrote somewhere that there is no value."""
    with _open_text(path) as lines:
        return any("#" in line and NO_VALUE.search(line) for line in lines)


def _refuse_uneven_rows(path: Path, layout: _Layout) -> None:
    """All rows are as long as the first, and have nothing behind a delimiter that ends them."""
    for _, text in _read_layout_rows(path, layout):
        cells = _split_cells(text, layout.delimiter)
        if len(cells) != layout.columns + layout.trailing or (layout.trailing and cells[-1]):
            raise ValueError("a row is not as long as the first")


def _diagnose_error(path: Path, layout: _Layout, error: ValueError) -> InputError:
    """The first row that is not as the others, found by reading again slowly."""
    if isinstance(error, UnicodeDecodeError):
        with _open_bytes(path) as lines:
            row = next(number for number, line in enumerate(lines, 1) if not _is_utf8(line))
        return InputError(f"{path}, row {row}: is not UTF-8 text; export the log as CSV (UTF-8)")
    expected = layout.columns + layout.trailing
    for line, text in _read_rows(path, layout.first_line):
        cells = _split_cells(text, layout.delimiter)
        place = f"{path}, row {line}"
        if len(cells) != expected:
            column = min(len(cells), expected) + 1
            return InputError(f"{place}, column {column}: {_compare_columns(cells, expected)}")
        for column, cell in enumerate(cells[: layout.columns]):
            if cell and not _is_value(cell, layout.delimiter) and column not in layout.words:
                return InputError(_describe_bad_cell(place, layout.names, column, cell))
    return InputError(f"{path}: is not a table of numbers ({format_one_line(error)})")


def _describe_cut_off_row(path: Path, layout: _Layout) -> str:
    """Words on a last row that ends before the last column does; none where it is whole."""
    ((line, text),) = deque(_read_rows(path, layout.first_line), maxlen=1)
    cells, expected = _split_cells(text, layout.delimiter), layout.columns + layout.trailing
    if len(cells) < expected:
        reason = f"column {len(cells) + 1}: {_compare_columns(cells, expected)}"
        return f"row {line}, {reason}; the log was cut off"
    last, mark = cells[-1], layout.delimiter  # a number without its last digits, as in 1e-
    if len(cells) > layout.columns or _is_value(last, mark) or not _is_value(f"{last}0", mark):
        return ""
    reason = _describe_bad_cell(f"row {line}", layout.names, layout.columns - 1, last)
    return f"{reason}; the log was cut off"


def _compare_columns(cells: Sequence[str], expected: int) -> str:
    return f"has {len(cells)} columns where the first row has {expected}"


def _describe_bad_cell(place: str, names: tuple[str, ...] | None, column: int, cell: str) -> str:
    hint = ""
    if _is_number(cell.replace(",", ".")):
        hint = "; write decimals with a point"
    elif DATE.search(cell):
        hint = "; write times in seconds, or leave dates out and give a rate"
    return (
        f"{place}, {label_column(names, column)}: {shorten_line(cell, 40)!r} is not a number{hint}"
    )


def _read_rows(path: Path, first_line: int) -> Iterator[tuple[int, str]]:
    """Rows of samples with their 1-based lines."""
    with _open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            text = _strip_comment(line)
            if number >= first_line and text.strip():
                yield number, text


def _read_layout_rows(path: Path, layout: _Layout) -> Iterator[tuple[int, str]]:
    """The same, without a last one that was cut off."""
    rows = _read_rows(path, layout.first_line)
    return (row for row, _ in pairwise(rows)) if layout.cut_off else rows


def _strip_comment(line: str) -> str:
    """A row without a comment."""
    line = NO_VALUE.sub("nan", line) if "#" in line else line
    for mark in COMMENTS:
        line = line.partition(mark)[0]
    return line.rstrip("\r\n")


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _refuse_bad_archive(path: Path) -> None:
    """Refuse archives that are damaged, or grow to what no log is; nothing of them is kept."""
    size = 0
    with (
        refuse_damage(path, "is not packed by gzip, or was cut off", "pack it again"),
        _open_bytes(path) as file,
    ):
        while block := file.read(BLOCK):
            size += len(block)
            refuse_bomb(str(path), path.stat().st_size, size)


def _open_bytes(path: Path) -> Any:
    return gzip.open(path) if _is_packed(path) else path.open("rb")


def _open_text(path: Path, errors: str = "replace") -> Any:
    if _is_packed(path):
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors)
    return path.open(encoding="utf-8-sig", errors=errors)


def _split_cells(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return [cell.strip('"') for cell in line.split()]
    row = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    return [cell.strip() for cell in row]


def _is_utf8(line: bytes) -> bool:
    return line.decode(errors="ignore").encode() == line


def _is_value(cell: str, delimiter: str) -> bool:
    """Whether a cell holds a number, of which decimals may have a comma, or an instant."""
    plain = cell if delimiter == "," else cell.replace(",", ".")
    return _is_number(plain) or INSTANT.fullmatch(cell) is not None


def _is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell) is not None
