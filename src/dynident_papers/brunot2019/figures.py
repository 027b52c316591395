"""Figures 1 to 3: autocorrelations of the residuals, of the log and of the twin."""

from __future__ import annotations

import numpy as np

from dynident.regression.statistics import estimate_autocorrelation
from dynident_papers.brunot2019.estimated import KINDS, LAGS, WORDS, Answer, Results
from dynident_papers.measured import ASKED
from dynident_papers.picture import Panel

FIGURES = ((1, "all", "cloe"), (2, "all", "clie"), (3, "decimated", "didim"))
"""Of the paper: rows and method."""


def draw_figures(found: Results) -> tuple[tuple[Panel, ...], ...]:
    """A row a figure of the paper: the log where it is there, and the twin."""
    rows = []
    for number, kind, method in FIGURES:
        sources = {
            "log": found.measured.answer(ASKED, True, kind, method),
            "twin": found.answers[kind, method],
        }
        rows.append(
            tuple(
                draw_autocorrelations(
                    f"Figure {number}, {WORDS[method]}, {KINDS[kind]}: {source}", answer
                )
                for source, answer in sources.items()
                if isinstance(answer, Answer)
            )
        )
    return tuple(row for row in rows if row)


def draw_autocorrelations(title: str, answer: Answer) -> Panel:
    """Those of each joint, with the two sigma of white residuals."""
    errors = answer.estimate.residuals.error
    lags = min(LAGS, *(len(error) // 2 for error in errors))
    return Panel(
        title,
        "lag [rows]",
        "autocorrelation",
        np.arange(1.0, lags + 1.0),
        {f"joint {j}": estimate_autocorrelation(e, lags) for j, e in enumerate(errors, start=1)},
        band=2.0 / float(np.sqrt(min(map(len, errors)))),
    )
