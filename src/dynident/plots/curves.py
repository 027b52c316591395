"""Torques and positions over time, measured and of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.core.arrays import Array
from dynident.plots.data import Channel, Positions, Torques
from dynident.plots.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PINK,
    RED,
    add_panels,
    apply_style,
    draw_legend,
    find_time_gaps,
    insert_gaps,
    make_report_figure,
)
from dynident.plots.svg import render_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Curve = tuple[int, Array, dict[str, Any]]
"""A panel, the channels' signals, shape (samples, channels), and how they are drawn."""
PARTS = {"inertia": BLUE, "velocity": ORANGE, "gravity": GREEN, "friction": PINK}


def list_torque_curves(series: Torques) -> list[Curve]:
    """Measured and predicted torque (panel 0), its parts (1), and the residual (2).

    Filters' edges have no residual, as no error counts them.
    """
    curves: list[Curve] = [
        (0, series.measured, {"color": PALE, "lw": 2.4, "label": series.torque}),
        (0, series.predicted, {"color": BLUE, "lw": 0.9, "label": "predicted"}),
    ]
    if series.nominal is not None:
        dashed = {"color": RED, "lw": 0.8, "ls": (0, (4, 2)), "label": "robot file"}
        curves.append((0, series.nominal, dashed))
    for part, signal in series.parts.items():
        curves.append((1, signal, {"color": PARTS.get(part, GREY), "lw": 0.9, "label": part}))
    curves.append((2, measure_residuals(series), {"color": GREY, "lw": 0.7}))
    return curves


def measure_residuals(series: Torques) -> Array:
    """Measured less predicted torque, NaN at filters' edges, shape (samples, channels)."""
    left = series.measured - series.predicted
    return left if series.scored is None else np.where(series.scored[:, None], left, np.nan)


def list_position_curves(series: Positions) -> list[Curve]:
    """Measured and simulated position (panel 0), and a thousand times their difference (1)."""
    return [
        (0, series.measured, {"color": PALE, "lw": 2.4, "label": "measured"}),
        (0, series.simulated, {"color": BLUE, "lw": 0.9, "label": "simulated"}),
        (1, 1e3 * (series.measured - series.simulated), {"color": GREY, "lw": 0.7}),
    ]


def draw_curves(
    panels: Sequence[Axes], time: Array, curves: Sequence[Curve], channel: int
) -> list[Line2D]:
    """Draw one channel of some curves, each in its panel, with gaps where the log has some."""
    breaks = find_time_gaps(time)
    shown = insert_gaps(time, breaks)
    return [
        panels[k].plot(shown, insert_gaps(signal[:, channel], breaks), **look)[0]
        for k, signal, look in curves
    ]


def plot_torques(channels: Sequence[Channel], series: Torques) -> tuple[tuple[str, str], ...]:
    """A joint's name and its torque figure, for every joint of which a log has torques.

    Measured and predicted torque, its parts, and the residual.

    Returns
    -------
    tuple of (str, str)
        Names, and SVG elements or image elements where those would be large.
    """
    joints = [
        (j, each.name, [f"{label} [{each.unit}]" for label in ("torque", "parts", "residual")])
        for j, each in enumerate(channels)
        if np.isfinite(series.measured[:, j]).any()
    ]
    with apply_style():
        figure = make_report_figure(5.7)
        panels = add_panels(figure, 3, height_ratios=(3.0, 2.4, 1.2), top=0.95, bottom=0.08)
        curves = list_torque_curves(series)
        return plot_joints(figure, panels, series.time, curves, joints, f"torque-{series.name}")


def plot_positions(channels: Sequence[Channel], series: Positions) -> tuple[tuple[str, str], ...]:
    """A joint's name and its figure: measured and simulated position, and their difference.

    Returns
    -------
    tuple of (str, str)
        As of `plot_torques`.
    """
    joints = [
        (j, each.name, [f"position [{each.unit}]", f"difference [m{each.unit}]"])
        for j, each in enumerate(channels)
    ]
    with apply_style():
        figure = make_report_figure(3.6)
        panels = add_panels(figure, 2, height_ratios=(2.4, 1.2), top=0.93, bottom=0.12)
        curves = list_position_curves(series)
        return plot_joints(figure, panels, series.time, curves, joints, f"position-{series.name}")


def plot_joints(
    figure: Figure,
    panels: Sequence[Axes],
    time: Array,
    curves: Sequence[Curve],
    joints: Sequence[tuple[int, str, Sequence[str]]],
    name: str,
) -> tuple[tuple[str, str], ...]:
    """A figure a joint; the last panel is of what is left.

    All joints are drawn in the same axes, one after the other: to make axes takes longer than to
    draw them.

    Parameters
    ----------
    joints : sequence of (int, str, sequence of str)
        Columns of the curves, names, and what stands beside the panels.
    """
    breaks = find_time_gaps(time)
    lines = draw_curves(panels, time, curves, 0)
    panels[-1].axhline(0.0, color=GREY, lw=0.5)
    panels[-1].set_xlabel("time [s]")
    for axes in panels:
        axes.yaxis.set_label_coords(-0.052, 0.5)
        axes.margins(x=0.0)
    for axes in panels[:-1]:
        draw_legend(axes)
    found = []
    for j, joint, labels in joints:
        for line, (_, signal, _) in zip(lines, curves, strict=True):
            line.set_ydata(insert_gaps(signal[:, j], breaks))
        for axes, label in zip(panels, labels, strict=True):
            axes.set_ylabel(label)
            axes.relim()
            axes.autoscale_view()
        found.append((joint, render_figure(figure, f"{name}-{j}")))
    return tuple(found)


def draw_over_time(
    panels: Sequence[Axes],
    time: Array,
    curves: Sequence[Curve],
    which: int,
    channels: Sequence[tuple[int, str]],
    label: str,
) -> None:
    """Draw a panel's curves of several channels, each in axes of its own.

    Parameters
    ----------
    which : int
        The panel whose curves they are.
    channels : sequence of (int, str)
        Columns of the curves, and their units.
    label : str
        What stands beside the axes, with the unit.
    """
    own = [(0, signal, look) for panel, signal, look in curves if panel == which]
    for axes, (channel, unit) in zip(panels, channels, strict=True):
        draw_curves([axes], time, own, channel)
        axes.set_xlabel("time [s]")
        axes.set_ylabel(f"{label}{unit}]")
        axes.margins(x=0.0)
        if any("label" in look for _, _, look in own):
            draw_legend(axes)
        else:
            axes.axhline(0.0, color=GREY, lw=0.5, zorder=0.5)
