"""What a notebook shows of a value: a line in words, and tables that fold.

No scripts, and no colours but those of levels: text and lines have those around them, so that a
card is readable in the light and in the dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

LEVELS = {"good": "#009E73", "note": "#E69F00", "bad": "#D55E00", "": "currentColor"}
"""Colours of a card's edge, which colour-blind readers can tell apart; words say the same."""
STYLE = """
.dynident-card{border-left:.25em solid var(--edge);padding:.1em 0 .1em .8em;max-width:100%}
.dynident-card p{margin:.2em 0}
.dynident-card summary{cursor:pointer}
.dynident-card div{overflow-x:auto}
.dynident-card table{border-collapse:collapse;font-size:.9em;margin:.3em 0;
font-variant-numeric:tabular-nums;color:inherit}
.dynident-card th,.dynident-card td{padding:.15em .6em;text-align:right;white-space:nowrap;
background:none;color:inherit}
.dynident-card thead th{border-bottom:1px solid currentColor}
.dynident-card th.group{text-align:center}
.dynident-card .words{text-align:left;white-space:normal}
"""


@dataclass(frozen=True)
class Sheet:
    """A table that folds."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: Sequence[str] = ()
    """Columns that hold text, and no numbers."""
    groups: Sequence[tuple[str, int]] = ()
    """Headings over several columns."""
    unfolded: bool = False
    """Whether it is open at first."""


def render_card(title: str, lines: Sequence[str], sheets: Sequence[Sheet], level: str = "") -> str:
    """A card as an element of a page, all text of it escaped; the level is a key of `LEVELS`."""
    parts = [
        f'<div class="dynident-card" style="--edge:{LEVELS[level]}"><style>{STYLE}</style>',
        f"<p><strong>{escape(title)}</strong></p>",
        *(f"<p>{escape(line)}</p>" for line in lines),
        *(render_sheet(sheet) for sheet in sheets if sheet.rows),
        "</div>",
    ]
    return "\n".join(parts)


def render_sheet(sheet: Sheet) -> str:
    """A table that folds."""
    marks = [' class="words"' if column in sheet.words else "" for column in sheet.columns]
    heads = [
        "".join(
            f'<th class="group" colspan="{span}">{escape(title)}</th>'
            for title, span in sheet.groups
        ),
        "".join(
            f"<th{mark}>{escape(column)}</th>"
            for column, mark in zip(sheet.columns, marks, strict=True)
        ),
    ]
    rows = [
        "".join(
            f"<th{mark}>{escape(cell)}</th>"
            if not k and len(row) > 1
            else f"<td{mark}>{escape(cell)}</td>"
            for k, (cell, mark) in enumerate(zip(row, marks, strict=True))
        )
        for row in sheet.rows
    ]
    head = "".join(f"<tr>{cells}</tr>" for cells in heads if cells)
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    unfolded = " open" if sheet.unfolded else ""
    return (
        f"<details{unfolded}><summary>{escape(sheet.title)}</summary><div><table>"
        f"<thead>{head}</thead><tbody>{body}</tbody></table></div></details>"
    )
