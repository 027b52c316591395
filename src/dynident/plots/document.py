"""A page that refers to no other file: a verdict in sentences, sections, tables, charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from dynident.core.templates import load_templates

SHOWN = 4
"""Statements that are not folded; bad ones never are."""


class VerdictSentence(NamedTuple):
    """One sentence of the verdict."""

    level: str
    """``good``, ``note`` or ``bad``."""
    title: str
    text: str
    advice: str = ""
    """The one thing to do about it."""


class Group(NamedTuple):
    """A heading over several columns of a table."""

    title: str
    span: int


class PageRow(NamedTuple):
    """Cells of a table's row, and its kind for the style sheet."""

    cells: tuple[str, ...]
    kind: str = ""


class PageTable(NamedTuple):
    """A table: columns named in ``words`` hold text, the others numbers."""

    columns: tuple[str, ...]
    rows: tuple[PageRow, ...]
    words: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()


class PagePart(NamedTuple):
    """A section of a page: its anchor, its title, its HTML; it is left out where that is empty."""

    key: str
    title: str
    body: str


def build_column_table(
    stub: str,
    labels: Sequence[str],
    columns: Sequence[tuple[str, Sequence[str]]],
    words: tuple[str, ...] = (),
) -> PageTable:
    """Labelled rows of columns; those named in ``words`` hold text."""
    rows = [PageRow((label, *(cells[k] for _, cells in columns))) for k, label in enumerate(labels)]
    return PageTable((stub, *(title for title, _ in columns)), tuple(rows), (stub, *words))


def render_macro(package: str, template: str, macro: str, **filled: object) -> str:
    """The HTML of a macro in a package's template, which may use those of pages in general."""
    found = load_templates(package, __package__ or "").get_template(template)
    return str(getattr(found.module, macro)(**filled)).strip()


def render_table(table: PageTable | None, caption: str = "") -> str:
    """A table, and what is said below it; nothing of none."""
    if table is None:
        return ""
    grid = render_macro(__package__ or "", "grid.html.j2", "grid", table=table)
    return grid + (render_caption(caption) if caption else "")


def render_caption(words: str) -> str:
    """What is said of a table or a chart."""
    return f'<p class="caption">{escape(words)}</p>'


def render_facts(facts: Iterable[tuple[str, str]]) -> str:
    """Names and what is said of them."""
    rows = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts)
    return f"<dl>{''.join(rows)}</dl>"


def render_list(lines: Iterable[str]) -> str:
    """Lines with a dot before each."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def render_document(
    title: str,
    subtitle: str,
    statements: Iterable[VerdictSentence],
    parts: Iterable[PagePart],
    note: str = "",
) -> str:
    """A page as a whole.

    Parameters
    ----------
    note : str
        What is said before the first section.

    Returns
    -------
    str
        HTML without references to other files; its script enlarges charts and tells values, which
        are whole without it.
    """
    every = list(statements)
    folded = [each for each in every[SHOWN:] if each.level != "bad"]
    return (
        load_templates(__package__ or "")
        .get_template("document.html.j2")
        .render(
            title=title,
            subtitle=subtitle,
            statements=[each for each in every if each not in folded],
            folded=folded,
            note=note,
            parts=[part for part in parts if part.body],
        )
    )
