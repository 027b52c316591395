"""Friction against speed: what the rigid bodies leave of a torque, and the model of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

import numpy as np

from dynident.core.arrays import Array
from dynident.core.series import TorqueSeries
from dynident.plots.charts import (
    BLUE,
    INK,
    LINES,
    ORANGE,
    PALE,
    Chart,
    Curve,
    Dots,
    Panel,
    Strip,
    label_joint,
)
from dynident.plots.data import Channel

DOTS = 160
"""Of a joint's friction curves."""
STRIPED = 60
"""Stretches of speed in which samples are counted."""
LOADS = ("little load", "motor drives load", "load drives motor")
"""What the three clouds of dots are of."""
BINS = 24
"""Of speed on either side of zero, on which a model's friction is averaged."""
FARTHEST = 2.0
"""Distances of the two means next to standstill by which their line goes on to it."""


def chart_friction(
    channels: Sequence[Channel],
    series: Sequence[TorqueSeries],
    others: Mapping[str, Sequence[TorqueSeries]] | None = None,
) -> Chart:
    """What is left of each joint's torque beside the rigid bodies, against speed; and the model.

    Dots are measured: blue where the rigid bodies pull along, orange where they have to be
    moved, grey where they pull less than in half of the samples. Lines are means over samples of
    like speed; a strip tells how many of these there are.

    Parameters
    ----------
    channels : sequence of Channel
        The joints: the last of the series' columns.
    series : sequence of TorqueSeries
        Logs along the model whose rigid bodies are taken off.
    others : mapping of str to sequence of TorqueSeries, optional
        Further models along the same logs by name: their friction is drawn too.
    """
    first = series[0].speed.shape[1] - len(channels)
    lines = {"": series} if others is None else others
    names = [each.name for each in channels]
    panels = tuple(
        Panel(
            (
                count_speeds(series, first + j),
                *scatter_friction(series, first + j),
                *trace_friction(lines, first + j),
            ),
            f"{label_joint(each.name, names)} [{each.unit}]",
            x=label_speed(each),
        )
        for j, each in enumerate(channels)
    )
    return Chart(panels, columns=3, together=others is not None)


def trace_friction(lines: Mapping[str, Sequence[TorqueSeries]], joint: int) -> list[Curve]:
    """Friction of one joint by each of some models."""
    return [
        Curve(*average_friction_by_speed(own, joint), colour, 1.2, dashed, name)
        for (name, own), (colour, dashed) in zip(lines.items(), cycle(LINES), strict=False)
    ]


def count_speeds(series: Sequence[TorqueSeries], joint: int) -> Strip:
    """How many samples there are along the speed of a joint."""
    speed = np.concatenate([one.speed[:, joint] for one in series])
    known = speed[np.isfinite(speed)]
    counts, edges = np.histogram(known, STRIPED) if len(known) else (np.zeros(1), np.arange(2.0))
    return Strip(edges, counts.astype(float), INK)


def label_speed(channel: Channel) -> str:
    """What stands below an axis of a joint's speed."""
    return "speed [m/s]" if channel.unit == "N" else "speed [rad/s]"


def scatter_friction(
    series: Sequence[TorqueSeries], joint: int, labels: Sequence[str] = ("", "", "")
) -> list[Dots]:
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
    clouds = (
        (PALE, np.abs(opposing) <= light),
        (ORANGE, opposing > light),
        (BLUE, opposing < -light),
    )  # as in `LOADS`
    return [
        Dots(speed[those], torque[those], colour, label=label)
        for (colour, those), label in zip(clouds, labels, strict=True)
    ]


def average_friction_by_speed(series: Sequence[TorqueSeries], joint: int) -> tuple[Array, Array]:
    """A model's friction as means over samples of like speed, with its step at standstill.

    On either side the two means that are nearest go on straight to standstill, where what is
    linear in the speed has its true step; by at most `FARTHEST` times their distance.
    """
    speed = np.concatenate([one.speed[:, joint] for one in series])
    friction = np.concatenate([one.friction[:, joint] for one in series])
    found = []
    for sign in (-1.0, 1.0):
        own = sign * speed > 0.0
        v, f = np.abs(speed[own]), friction[own]
        parts = np.array_split(np.argsort(v, kind="stable"), min(BINS, len(v)) or 1)
        means = np.array([[v[part].mean(), f[part].mean()] for part in parts if len(part)])
        if len(means):
            (near, at), (far, beyond) = means[0], means[min(1, len(means) - 1)]
            reach = min(near / (far - near), FARTHEST) if far > near else 0.0
            means = np.vstack([[0.0, at - reach * (beyond - at)], means]) * [sign, 1.0]
            found.append(means[:: int(sign)])
    points = np.concatenate(found) if found else np.zeros((0, 2))
    return points[:, 0], points[:, 1]
