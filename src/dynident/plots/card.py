"""What a notebook shows of a value: a line in words, and tables that fold.

No scripts, and no colours but those of levels: text and lines have those around them, so that a
card is readable in the light and in the dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dynident.core.text import format_count
from dynident.plots.document import PageRow, PageTable

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


def render_card(
    title: str,
    lines: Iterable[str],
    tables: Iterable[tuple[str, PageTable | None]],
    warnings: Sequence[str],
    level: str = "",
    unfolded: bool = False,
) -> str:
    """A card as an element of a page, all text of it escaped; the level is a key of `LEVELS`.

    Tables have titles; they are open at first, or, like the warnings, folded.
    """
    warned = PageTable(("warning",), tuple(PageRow((each,)) for each in warnings), ("warning",))
    parts = [
        f'<div class="dynident-card" style="--edge:{LEVELS[level]}"><style>{STYLE}</style>',
        f"<p><strong>{escape(title)}</strong></p>",
        *(f"<p>{escape(line)}</p>" for line in lines),
        *(fold_table(head, table, unfolded) for head, table in tables if table and table.rows),
        *([fold_table(format_count(len(warnings), "warning"), warned, False)] if warnings else []),
        "</div>",
    ]
    return "\n".join(parts)


def fold_table(title: str, table: PageTable, unfolded: bool) -> str:
    """A table that folds."""
    marks = [' class="words"' if column in table.words else "" for column in table.columns]
    heads = [
        "".join(
            f'<th class="group" colspan="{span}">{escape(words)}</th>'
            for words, span in table.groups
        ),
        "".join(
            f"<th{mark}>{escape(column)}</th>"
            for column, mark in zip(table.columns, marks, strict=True)
        ),
    ]
    rows = [
        "".join(
            f"<th{mark}>{escape(cell)}</th>"
            if not k and len(row.cells) > 1
            else f"<td{mark}>{escape(cell)}</td>"
            for k, (cell, mark) in enumerate(zip(row.cells, marks, strict=True))
        )
        for row in table.rows
    ]
    head = "".join(f"<tr>{cells}</tr>" for cells in heads if cells)
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    opened = " open" if unfolded else ""
    return (
        f"<details{opened}><summary>{escape(title)}</summary><div><table>"
        f"<thead>{head}</thead><tbody>{body}</tbody></table></div></details>"
    )
