"""What is left of the torque: against time, speed and itself."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from dynident.core.arrays import Array
from dynident.plots.curves import measure_residuals
from dynident.plots.data import Correlated, Torques
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

DOTS = 1500
"""Of a cloud."""


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


def draw_scatter(axes: Axes, x: Array, y: Array) -> None:
    """Dots, thinned to `DOTS`; what is not finite is left out."""
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    shown = known[:: max(1, len(known) // DOTS)]
    axes.plot(x[shown], y[shown], ".", ms=2.5, mew=0.0, color=BLUE)


def draw_measured_against_predicted(axes: Axes, measured: Array, predicted: Array) -> None:
    """Dots about the line on which they would be without an error."""
    draw_scatter(axes, predicted, measured)
    axes.axline((0.0, 0.0), slope=1.0, color=GREY, lw=0.8)


def draw_quantiles(axes: Axes, error: Array) -> None:
    """Quantiles of errors, in their standard deviations, against those of the normal law."""
    known = np.sort(error[np.isfinite(error)])
    size = float(np.std(known)) if len(known) else 0.0
    if size == 0.0:
        return
    shares = (np.arange(min(len(known), DOTS)) + 0.5) / min(len(known), DOTS)
    law = NormalDist()
    normal = np.array([law.inv_cdf(share) for share in shares.tolist()])
    scaled = (np.quantile(known, shares) - np.mean(known)) / size
    axes.axline((0.0, 0.0), slope=1.0, color=GREY, lw=0.8)
    axes.plot(normal, scaled, ".", ms=2.5, mew=0.0, color=BLUE)


def draw_diagnostics(
    panels: Sequence[Axes], series: Torques, column: int, unit: str, residuals: Correlated | None
) -> None:
    """Four views of one channel's error.

    Measured against predicted torque, the error against speed, its quantiles, and its correlation
    in time.

    Parameters
    ----------
    panels : sequence of Axes
        Four.
    residuals : Correlated, optional
        Of the rows that were fitted.
    """
    against, by_speed, normal, itself = panels
    predicted, error = series.predicted[:, column], measure_residuals(series)[:, column]
    measured = predicted + error  # without filters' edges
    draw_measured_against_predicted(against, measured, predicted)
    against.set(xlabel=f"predicted [{unit}]", ylabel=f"{series.torque} [{unit}]")
    draw_scatter(by_speed, series.speed[:, column], error)
    by_speed.axhline(0.0, color=GREY, lw=0.8, zorder=0.5)
    by_speed.set(xlabel="speed [m/s]" if unit == "N" else "speed [rad/s]")
    by_speed.set(ylabel=f"residual [{unit}]")
    draw_quantiles(normal, error)
    normal.set(xlabel="normal quantile", ylabel="residual / std")
    if residuals is None:
        words = "rows that were fitted\nare of combinations"
        itself.text(0.5, 0.5, words, ha="center", va="center", transform=itself.transAxes)
    else:
        draw_autocorrelation(itself, residuals)
    itself.set(xlabel="lag [rows]", ylabel="autocorrelation")
