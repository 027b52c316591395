"""The page of a load: its intervals, and the calls that controllers take."""

from __future__ import annotations

import numpy as np

from dynident.core.words import format_number
from dynident.loads.payload import SYMBOLS, Payload
from dynident.plots.charts import BLUE, GREY, Bars, Chart, Dots, Panel, Rule
from dynident.plots.document import (
    PagePart,
    VerdictSentence,
    build_column_table,
    render_document,
    render_list,
    render_table,
)
from dynident.plots.page import render_chart
from dynident.report.fit import Fit
from dynident.report.html import judge_trust

UNITS = ("kg", *["m"] * 3, *["kg m²"] * 6)
"""Of `SYMBOLS`."""


def render_payload_page(fit: Fit, found: Payload) -> str:
    """A load with its intervals, and the calls that controllers take."""
    values, low, high = found.intervals
    count = len(SYMBOLS) if found.load.seen else 1
    shown = f"on {found.load.link}: {found.mass:.4g} kg, 95 % from {low[0]:.4g} to {high[0]:.4g}"
    statements = [VerdictSentence("note", "Warning", words) for words in found.warnings]
    load = VerdictSentence("good" if found.load.seen else "note", "Load", shown)
    statements.insert(0 if found.load.seen else 1, load)  # that none is seen comes first
    statements += judge_trust(fit)
    panels = [
        Panel(
            (
                Rule(0.0, GREY),
                Bars(np.arange(float(b - a)), low[a:b], high[a:b], (BLUE,), 2.0),
                Dots(np.arange(float(b - a)), values[a:b], BLUE, 6.0),
            ),
            title,
            y=f"[{UNITS[a]}]",
            x_range=(-0.6, b - a - 0.4),
            x_names=SYMBOLS[a:b],
        )
        for title, a, b in (("mass", 0, 1), ("centre", 1, 4), ("inertia about it", 4, 10))[
            : 3 if found.load.seen else 1
        ]
    ]
    numbers = [
        ("value", [format_number(value) for value in values[:count]]),
        ("95 % from", [format_number(value) for value in low[:count]]),
        ("to", [format_number(value) for value in high[:count]]),
        ("unit", list(UNITS[:count])),
    ]
    table = build_column_table("", SYMBOLS[:count], numbers, ("unit",))
    calls = [f"{maker}: {call}" for maker, call in found.calls().items()] if count > 1 else []
    calls = [*calls, f"These are {found.seat}"] if calls else []
    return render_document(
        fit.robot.name,
        f"the load of {found.log}, seen from {found.frame}",
        statements,
        [
            PagePart(
                "load",
                "Load",
                render_chart(Chart(tuple(panels), columns=3), "The load with 95 % intervals"),
            ),
            PagePart("values", "Values", render_table(table)),
            PagePart("calls", "What controllers take", render_list(calls) if calls else ""),
        ],
    )
