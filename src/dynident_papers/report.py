"""Tables and reports as plain text, at most 80 columns wide."""

from __future__ import annotations

import math
import os
import platform
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.errors import InputError
from dynident_papers.picture import Panel

WIDTH = 80
"""Columns of a page."""


@dataclass(frozen=True)
class Table:
    """A table of words and formatted numbers."""

    title: str
    header: tuple[str, ...]
    """Names of the columns; a line feed in a name breaks it."""
    rows: tuple[tuple[str, ...], ...]
    """As many cells each as the header. The first column is set left, the others right."""
    notes: tuple[str, ...] = ()
    """Sentences below the table."""

    def text(self) -> str:
        """The table as lines of at most `WIDTH` characters.

        Raises
        ------
        InputError
            When a row has another number of cells than the header, or the table is too wide.
        """
        for row in self.rows:
            if len(row) != len(self.header):
                raise InputError(
                    f"table {self.title!r}: a row has {len(row)} cells, the header "
                    f"{len(self.header)}: {row}"
                )
        names = [name.split("\n") for name in self.header]
        depth = max(len(lines) for lines in names)
        # names stand on the line above the rule
        head = [
            tuple(([""] * (depth - len(lines)) + lines)[k] for lines in names) for k in range(depth)
        ]
        widths = [max(map(len, column)) for column in zip(*head, *self.rows, strict=True)]
        gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else 1
        if sum(widths) + gap * (len(widths) - 1) > WIDTH:
            raise InputError(f"table {self.title!r} is wider than {WIDTH} columns")
        rule = (" " * gap).join("-" * width for width in widths)
        body = [format_line(row, widths, gap) for row in (*head, *self.rows)]
        return "\n".join(
            [*wrap_sentence(self.title), "", *body[:depth], rule, *body[depth:]]
            + ["", *(part for note in self.notes for part in wrap_sentence(note))]
            * bool(self.notes)
        )


@dataclass(frozen=True)
class Reproduction:
    """A paper's experiment, repeated."""

    title: str
    tables: tuple[Table, ...]
    remarks: tuple[str, ...] = ()
    """Where and why the repetition departs from the paper."""
    panels: tuple[tuple[Panel, ...], ...] = ()
    """The paper's figures, a row of panels each."""

    def text(self) -> str:
        """The whole report as plain text.

        Raises
        ------
        InputError
            When a table has no text.
        """
        parts = ["\n".join([*wrap_sentence(self.title), "=" * min(WIDTH, len(self.title))])]
        parts += [table.text() for table in self.tables]
        if self.remarks:
            parts.append("\n".join(["Remarks"] + [p for r in self.remarks for p in wrap_item(r)]))
        return "\n\n\n".join(parts) + "\n"


def blank_repeats(rows: Sequence[Sequence[str]], *widths: int) -> tuple[tuple[str, ...], ...]:
    """Rows whose leading cells are left empty where they repeat those of the row above.

    `widths`: how many cells belong together, from the left: a group is left empty when it and all
    groups before it repeat.
    """
    shown, above = [], None
    for row in rows:
        cells, start, same = list(row), 0, above is not None
        for width in widths:
            group = slice(start, start + width)
            same = same and above is not None and tuple(row[group]) == tuple(above[group])
            if same:
                cells[group] = [""] * width
            start += width
        shown.append(tuple(cells))
        above = row
    return tuple(shown)


def pad_row(cells: Sequence[str], count: int) -> tuple[str, ...]:
    """A row with empty cells at its end, `count` cells in all."""
    return (*cells, *[""] * (count - len(cells)))


def format_digits(value: float) -> str:
    """Three significant digits, large numbers in full; a dash where there is none."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


def join_words(words: Sequence[str]) -> str:
    """Words with commas and an and."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def describe_machine() -> str:
    """What a time was taken on."""
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy "
        f"{np.__version__}"
    )


def format_range(values: Iterable[float], form: str = ".1f") -> str:
    """The smallest and the largest of some numbers, or the one that both are."""
    found = list(values)
    ends = [format(end, form) for end in (min(found), max(found))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def format_line(cells: tuple[str, ...], widths: list[int], gap: int) -> str:
    """One line of a table: the first cell left, the others right."""
    first = cells[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return (" " * gap).join([first, *rest]).rstrip()


def wrap_sentence(sentence: str) -> list[str]:
    """A sentence broken into lines."""
    return textwrap.wrap(sentence, WIDTH)


def wrap_item(sentence: str) -> list[str]:
    """A sentence as an item of a list."""
    return textwrap.wrap(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ")
