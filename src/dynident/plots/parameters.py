"""Parameters with their error bars, against a file's, and how they go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynident.core.arrays import Array
from dynident.plots.data import Interval
from dynident.plots.style import (
    BLUE,
    GREY,
    PALE,
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


def draw_forest(
    axes: Axes, rows: Sequence[Interval], file: Sequence[float], labels: Sequence[str]
) -> None:
    """Intervals of parameters beside the file's values, one below the other.

    Each is drawn relative to the largest number of its row, since values of different units and
    sizes stand together; the labels have the values.

    Parameters
    ----------
    file : sequence of float
        Of the same parameters, NaN where a file does not tell.
    labels : sequence of str
        What stands beside each.
    """
    ends = np.array([(row.value, row.low, row.high, f) for row, f in zip(rows, file, strict=True)])
    ends = ends.reshape(-1, 4)
    largest = np.max(np.abs(np.where(np.isfinite(ends), ends, 0.0)), axis=1)
    value, low, high, told = (ends / np.where(largest > 0.0, largest, 1.0)[:, None]).T
    place = np.arange(len(rows))[::-1]
    weak = np.array([row.weak for row in rows], dtype=bool)
    axes.axvline(0.0, color=GREY, lw=0.5, zorder=0.5)
    axes.hlines(place, low, high, colors=np.where(weak, RED, BLUE).tolist(), lw=1.6)
    axes.plot(
        value[~weak], place[~weak], "o", ms=4.5, color=BLUE, label="identified, 95 % interval"
    )
    if weak.any():
        axes.plot(value[weak], place[weak], "D", ms=4.5, color=RED, label="interval contains zero")
    if np.isfinite(told).any():
        axes.plot(told, place, "|", ms=9.0, mew=1.6, color="#111111", label="robot file")
    axes.set_yticks(place, labels, parse_math=False)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlim(-1.08, 1.08)
    axes.set_xlabel("relative to the largest number of the row")
    axes.grid(visible=False, axis="y")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, borderaxespad=0.2)


def draw_correlation(axes: Axes, correlation: Array, names: Sequence[str]) -> None:
    """A matrix of correlations, blue for positive and orange for negative ones."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("correlation", (RED, "#FFFFFF", BLUE))
    image = axes.imshow(correlation, cmap=colours.with_extremes(bad=PALE), vmin=-1.0, vmax=1.0)
    axes.set_xticks(range(len(names)), names, rotation=90, parse_math=False)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.grid(visible=False)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.7, label="correlation")
    bar.outline.set_visible(False)
