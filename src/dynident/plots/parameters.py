"""Parameters with their error bars, against a file's, and how they go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynident.plots.data import Interval
from dynident.plots.style import (
    BLUE,
    GREY,
    RED,
    apply_style,
    draw_legend,
    make_report_figure,
)
from dynident.plots.svg import render_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PER_ROW = 40
"""Parameters side by side in one row of the precision plot."""


def plot_precision(parameters: Sequence[Interval]) -> str:
    """Relative standard deviations of base parameters, the best determined first."""
    order = sorted(
        parameters, key=lambda p: p.relative_percent if np.isfinite(p.relative_percent) else np.inf
    )
    rows = max(1, -(-len(order) // PER_ROW))
    per_row = max(1, -(-len(order) // rows))
    height = 0.45 + 1.9 * rows
    with apply_style():
        figure = make_report_figure(height)
        grid = figure.add_gridspec(
            rows,
            1,
            left=0.07,
            right=0.99,
            top=1.0 - 0.35 / height,
            bottom=0.55 / height,
            hspace=0.42,
        )
        panels = grid.subplots(sharey=True, squeeze=False).ravel()
        for row, axes in enumerate(panels):
            part = order[row * per_row : (row + 1) * per_row]
            draw_precision_row(axes, part)
            axes.set_xticks(range(len(part)), [p.name for p in part], rotation=90, fontsize=7.5)
            axes.set_xlim(-0.6, per_row - 0.4)
            axes.set_ylabel("std [%]")
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")  # powers of ten would have to be typeset
            axes.minorticks_off()
            axes.grid(visible=False, axis="x")
        draw_legend(panels[0])
        return render_figure(figure, "precision")


def draw_precision_row(axes: Axes, part: Sequence[Interval]) -> None:
    """One row of the precision plot."""
    place = np.arange(len(part))
    mine = np.array([p.relative_percent for p in part])
    formula = np.array([p.literature_percent for p in part])
    open_ = np.array([p.weak for p in part], dtype=bool)
    axes.axhline(100.0 / 1.96, color=RED, lw=0.7, ls=(0, (4, 2)))
    axes.vlines(place, formula, mine, colors="#BBBBBB", lw=1.0)
    axes.plot(place, formula, "o", ms=3.5, mfc="white", mec=GREY, mew=0.8, label="std by eq. (9)")
    axes.plot(place[~open_], mine[~open_], "o", ms=4.5, color=BLUE, label="std of this result")
    axes.plot(
        place[open_], mine[open_], "D", ms=4.5, color=RED, label="95 % interval contains zero"
    )
