"""Tables and reports as plain text, at most 80 columns wide."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from dynident.core.errors import InputError

WIDTH = 80
"""Columns of a page."""


@dataclass(frozen=True)
class Table:
    """A table of words and formatted numbers.

    Attributes
    ----------
    title : str
    header : tuple of str
        Names of the columns; a line feed in a name breaks it.
    rows : tuple of tuple of str
        As many cells each as the header. The first column is set left, the others right.
    notes : tuple of str
        Sentences below the table.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

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
        body = [line(row, widths, gap) for row in (*head, *self.rows)]
        return "\n".join(
            [*wrapped(self.title), "", *body[:depth], rule, *body[depth:]]
            + ["", *(part for note in self.notes for part in wrapped(note))] * bool(self.notes)
        )


@dataclass(frozen=True)
class Reproduction:
    """A paper's experiment, repeated.

    Attributes
    ----------
    title : str
    tables : tuple of Table
    remarks : tuple of str
        Where and why the repetition departs from the paper.
    """

    title: str
    tables: tuple[Table, ...]
    remarks: tuple[str, ...] = ()

    def text(self) -> str:
        """The whole report as plain text.

        Raises
        ------
        InputError
            When a table has no text.
        """
        parts = ["\n".join([*wrapped(self.title), "=" * min(WIDTH, len(self.title))])]
        parts += [table.text() for table in self.tables]
        if self.remarks:
            parts.append("\n".join(["Remarks"] + [p for r in self.remarks for p in item(r)]))
        return "\n\n\n".join(parts) + "\n"


def line(cells: tuple[str, ...], widths: list[int], gap: int) -> str:
    """One line of a table: the first cell left, the others right."""
    first = cells[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return (" " * gap).join([first, *rest]).rstrip()


def wrapped(sentence: str) -> list[str]:
    """A sentence broken into lines."""
    return textwrap.wrap(sentence, WIDTH)


def item(sentence: str) -> list[str]:
    """A sentence as an item of a list."""
    return textwrap.wrap(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ")
