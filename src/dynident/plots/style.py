"""How figures look: colours, lines, fonts, panels; no state of pyplot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.core.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 9.6
"""Of every figure [inch]."""
PNG_DPI = 160
"""Of figures as pictures: two pixels where a screen has one."""

# Okabe and Ito's palette, which colour-blind readers can tell apart
GREY, BLUE, ORANGE, GREEN, PINK, RED = (
    "#555555",
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#D55E00",
)
PALE = "#A9B0B7"
Line = tuple[str, str | tuple[int, tuple[int, ...]]]
LINES: tuple[Line, ...] = (
    ("#111111", "-"),
    (RED, "-"),
    (GREEN, "-"),
    (PINK, "-"),
    (RED, (0, (4, 2))),
    (GREEN, (0, (4, 2))),
    (PINK, (0, (4, 2))),
)
"""Colours and dashes of models' friction curves."""

STYLE: dict[str, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "legend.columnspacing": 1.4,
    "axes.titley": 1.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#777777",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "xtick.bottom": False,
    "ytick.left": False,
    "lines.linewidth": 1.0,
    "lines.solid_joinstyle": "round",
    "path.simplify_threshold": 0.2,
    "svg.hashsalt": "dynident",
    "svg.fonttype": "none",
}


@contextmanager
def apply_style() -> Iterator[None]:
    """Matplotlib's own defaults and `STYLE`, whatever the user's settings are."""
    from matplotlib import style

    with style.context(["default", STYLE]):
        yield


def add_panels(figure: Figure, rows: int, **layout: Any) -> Sequence[Axes]:
    """Panels below each other, over the same time."""
    grid = figure.add_gridspec(rows, 1, left=0.075, right=0.99, **layout)
    return [*grid.subplots(sharex=True, squeeze=False).ravel()]


def format_panel_title(joint: int, name: str) -> str:
    """The joint's number and its name where the figure's font has its letters."""
    short = name if len(name) <= 16 else name[:15] + "…"
    return f"{joint + 1}  {short}" if name.isascii() and name.isprintable() else str(joint + 1)


def draw_legend(axes: Axes, columns: int = 4) -> None:
    """A legend in one line above the axes, clear of the data."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 0.97),
        ncols=columns,
        borderaxespad=0.0,
        borderpad=0.1,
    )


def find_time_gaps(time: Array) -> np.ndarray:
    """Where a log's samples are not consecutive, so that no line is drawn across."""
    steps = np.diff(time)
    return np.flatnonzero(steps > 1.5 * np.median(steps)) + 1 if len(steps) else np.zeros(0, int)


def insert_gaps(signal: Array, breaks: np.ndarray) -> Array:
    """A signal with NaN between its runs."""
    return np.insert(signal, breaks, np.nan) if len(breaks) else signal


def make_report_figure(height: float) -> Figure:
    """An empty figure of the report's width."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height))
