"""Friction against speed: what the rigid bodies leave of a torque, and the model of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynident.core.arrays import Array
from dynident.plots.data import Channel, Torques
from dynident.plots.style import (
    BLUE,
    LINES,
    ORANGE,
    PALE,
    apply_style,
    format_panel_title,
    make_report_figure,
)
from dynident.plots.svg import render_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOTS = 160
"""Of a joint's friction curves."""
LOADS = ("little load", "motor drives load", "load drives motor")
"""What the three clouds of dots are of."""
BINS = 24
"""Of speed on either side of zero, on which a model's friction is averaged."""


def plot_friction(
    channels: Sequence[Channel],
    series: Sequence[Torques],
    others: Mapping[str, Sequence[Torques]] | None = None,
) -> str:
    """What is left of each joint's torque beside the rigid bodies, against speed; and the model.

    Parameters
    ----------
    channels : sequence of Channel
        The joints: the last of the series' columns.
    series : sequence of Torques
        Logs along the model whose rigid bodies are taken off.
    others : mapping of str to sequence of Torques, optional
        Further models along the same logs by name: their friction is drawn too.

    Returns
    -------
    str
        Dots are measured: blue where the rigid bodies pull along, orange where they have to be
        moved, grey where they pull less than in half of the samples. Lines are means over
        samples of like speed.
    """
    first = series[0].speed.shape[1] - len(channels)
    columns = min(3, len(channels))
    rows = -(-len(channels) // columns)
    lines = {"model": series} if others is None else others
    head = 0.3 if others is None else 0.65
    height = head + 0.3 + 1.75 * rows
    with apply_style():
        figure = make_report_figure(height)
        grid = figure.add_gridspec(
            rows,
            columns,
            left=0.06,
            right=0.99,
            top=1.0 - head / height,
            bottom=0.42 / height,
            hspace=0.42,
            wspace=0.18,
        )
        panels = grid.subplots(squeeze=False).ravel()
        for j, axes in enumerate(panels):
            if j >= len(channels):
                axes.set_visible(False)
                continue
            draw_friction(axes, series, lines, first + j)
            title = f"{format_panel_title(j, channels[j].name)} [{channels[j].unit}]"
            axes.set_title(title, loc="left", pad=3, parse_math=False)
            axes.locator_params(nbins=3)
            if j + columns >= len(channels):
                axes.set_xlabel(label_speed(channels[j]))
        if others is not None:
            handles, labels = panels[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="upper center", ncols=4, borderaxespad=0.0)
        return render_figure(figure, "friction")


def draw_friction(
    axes: Axes, series: Sequence[Torques], lines: Mapping[str, Sequence[Torques]], joint: int
) -> None:
    """One joint's friction: dots of the logs, and a line of each model."""
    draw_friction_dots(axes, series, joint)
    for k, (name, own) in enumerate(lines.items()):
        speed, friction = average_friction_by_speed(own, joint)
        colour, dashes = LINES[k % len(LINES)]
        axes.plot(speed, friction, color=colour, ls=dashes, lw=1.2, label=name)


def label_speed(channel: Channel) -> str:
    """What stands below an axis of a joint's speed."""
    return "speed [m/s]" if channel.unit == "N" else "speed [rad/s]"


def draw_friction_dots(axes: Axes, series: Sequence[Torques], joint: int) -> None:
    """Measured torque less that of the rigid bodies, thinned, by what the bodies do.

    Filters' edges are left out.
    """
    step = max(1, sum(len(one.time) for one in series) // DOTS)
    found = []
    for one in series:
        known = slice(None) if one.scored is None else one.scored
        own = (one.predicted - one.parts["friction"], one.measured, one.speed)
        found.append([signal[known, joint][::step] for signal in own])
    rigid, measured, speed = (np.concatenate(parts) for parts in zip(*found, strict=True))
    torque = measured - rigid
    opposing = rigid * np.sign(speed)
    light = float(np.median(np.abs(rigid)))
    for colour, those in (
        (PALE, np.abs(opposing) <= light),
        (ORANGE, opposing > light),
        (BLUE, opposing < -light),
    ):  # as in `LOADS`
        axes.plot(speed[those], torque[those], ".", ms=2.5, mew=0.0, color=colour)


def average_friction_by_speed(series: Sequence[Torques], joint: int) -> tuple[Array, Array]:
    """A model's friction as means over samples of like speed, split at standstill."""
    speed = np.concatenate([one.speed[:, joint] for one in series])
    friction = np.concatenate([one.parts["friction"][:, joint] for one in series])
    found = []
    for own in (speed < 0.0, speed >= 0.0):
        v, f = speed[own], friction[own]
        count = min(BINS, len(v))
        if count:
            parts = np.array_split(np.argsort(v, kind="stable"), count)
            found.append(np.array([[v[part].mean(), f[part].mean()] for part in parts]))
    points = np.concatenate(found) if found else np.zeros((0, 2))
    return points[:, 0], points[:, 1]
