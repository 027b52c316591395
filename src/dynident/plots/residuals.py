"""What is left of the torque: against time, speed and itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynident.plots.data import Correlated
from dynident.plots.style import (
    BLUE,
    GREY,
    RED,
    apply_style,
    format_panel_title,
    make_report_figure,
)
from dynident.plots.svg import render_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_autocorrelation(groups: Sequence[Correlated]) -> str:
    """Residual autocorrelation of every joint with its +-2/sqrt(r) band."""
    count = len(groups)
    columns = min(6, max(3, count))
    rows = max(1, -(-count // columns))
    height = 0.55 + 1.35 * rows
    lags = max((len(each.correlation) for each in groups), default=0)
    width = lags + 5  # of a panel and the gap behind it: axes for each would take longer
    with apply_style():
        figure = make_report_figure(height)
        grid = figure.add_gridspec(
            rows,
            1,
            left=0.05,
            right=0.99,
            top=1.0 - 0.28 / height,
            bottom=0.42 / height,
            hspace=0.45,
        )
        panels = grid.subplots(sharey=True, squeeze=False).ravel()
        for row, axes in enumerate(panels):
            ticks = []
            for column, j in enumerate(range(row * columns, min((row + 1) * columns, count))):
                start = column * width
                draw_autocorrelation(axes, groups[j], start)
                title = format_panel_title(j, groups[j].name)
                beyond = axes.get_xaxis_transform()
                axes.text(start, 1.04, title, transform=beyond, parse_math=False)
                if j + columns >= count:  # nothing stands below
                    ticks.append(start + np.arange(5, lags + 1, 5))
            shown = np.concatenate([*ticks, np.zeros(0)])
            axes.set_xticks(shown, [f"{tick % width:.0f}" for tick in shown])
            axes.set_xlim(0.0, columns * width - 4)
            axes.grid(visible=False, axis="x")
        panels[-1].set_xlabel("lag [rows]")
        return render_figure(figure, "autocorrelation")


def draw_autocorrelation(axes: Axes, residuals: Correlated, start: int = 0) -> None:
    """The correlation of residuals with themselves, behind a place, and its +-2/sqrt(r) band."""
    rho = residuals.correlation
    band = 2.0 / np.sqrt(max(1, residuals.rows))
    ends = (start, start + len(rho) + 1)
    axes.fill_between(ends, -band, band, color=BLUE, alpha=0.15, lw=0.0)
    colours = np.where(np.abs(rho) > band, RED, GREY).tolist()
    axes.vlines(start + np.arange(1, len(rho) + 1), 0.0, rho, colors=colours, lw=2.0)
    axes.plot(ends, (0.0, 0.0), color=GREY, lw=0.5)
