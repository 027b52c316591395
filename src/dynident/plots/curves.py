"""Torques and positions over time, measured and of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from dynident.core.arrays import Array, Integers, find_runs
from dynident.core.series import PositionSeries, TorqueSeries
from dynident.plots.charts import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PINK,
    RED,
    Chart,
    Curve,
    Mark,
    Panel,
    Rule,
    Shade,
    insert_gaps,
    label_joint,
)
from dynident.plots.data import Channel

C = TypeVar("C")
PARTS = {"inertia": BLUE, "velocity": ORANGE, "gravity": GREEN, "friction": PINK}


def build_torque_panels(
    series: TorqueSeries, column: int, channel: Channel
) -> tuple[Panel, Panel, Panel]:
    """Measured and predicted torque of one channel, its parts, and the residual, over time.

    Filters' edges have no residual, as no error counts them.
    """
    curve, unit = prepare_curves(series.time, series.breaks), channel.unit
    left_out = shade_left_out(series, column)
    both: list[Mark] = [
        left_out,
        curve(series.measured[:, column], PALE, 2.4, label=series.torque),
        curve(series.predicted[:, column], BLUE, 0.9, label="predicted"),
    ]
    if series.nominal is not None:
        file = curve(series.nominal[:, column], RED, 0.8, dashed=True, label="robot file")
        both.append(file)
    parts = [
        curve(signal[:, column], PARTS.get(part, GREY), 0.9, label=part)
        for part, signal in series.parts.items()
    ]
    left = curve(measure_residuals(series)[:, column], GREY, 0.7)
    return (
        Panel(
            tuple(both),
            x="time [s]",
            y=f"{'force' if unit == 'N' else 'torque'} [{unit}]",
            height=190.0,
            flush=True,
        ),
        Panel(tuple(parts), x="time [s]", y=f"parts [{unit}]", flush=True),
        Panel(
            (left_out, left, Rule(0.0, GREY)),
            x="time [s]",
            y=f"residual [{unit}]",
            height=80.0,
            flush=True,
        ),
    )


def shade_left_out(series: TorqueSeries, column: int) -> Shade:
    """Where a channel has no rows that were fitted."""
    if series.fitted is None:
        return Shade(np.zeros(0), np.zeros(0))
    edges = [0, *series.breaks.tolist(), len(series.time)]
    found = [
        (start + a, start + min(b, stop - start - 1))
        for start, stop in pairwise(edges)
        for a, b in find_runs(~series.fitted[start:stop, column])
    ]
    low, high = (
        (series.time[list(each)] for each in zip(*found, strict=True)) if found else ((), ())
    )
    return Shade(np.asarray(low), np.asarray(high))


def build_position_panels(
    series: PositionSeries, column: int, channel: Channel
) -> tuple[Panel, Panel]:
    """Measured and simulated position of one channel, and a thousand times their difference."""
    curve, unit = prepare_curves(series.time, series.breaks), channel.unit
    measured, simulated = series.measured[:, column], series.simulated[:, column]
    both = (
        curve(measured, PALE, 2.4, label="measured"),
        curve(simulated, BLUE, 0.9, label="simulated"),
    )
    left = curve(1e3 * (measured - simulated), GREY, 0.7)
    return (
        Panel(both, x="time [s]", y=f"position [{unit}]", height=190.0, flush=True),
        Panel(
            (left, Rule(0.0, GREY)),
            x="time [s]",
            y=f"difference [m{unit}]",
            height=80.0,
            flush=True,
        ),
    )


def prepare_curves(time: Array, breaks: Integers) -> Callable[..., Curve]:
    """Make curves over one time, with gaps where the log has some: of y, and of how they look."""
    shown = insert_gaps(time, breaks)

    def make_curve(
        y: Array, colour: str, width: float, *, dashed: bool = False, label: str = ""
    ) -> Curve:
        return Curve(shown, insert_gaps(y, breaks), colour, width, dashed, label)

    return make_curve


def measure_residuals(series: TorqueSeries) -> Array:
    """Measured less predicted torque, NaN at filters' edges, shape (samples, channels)."""
    left = series.measured - series.predicted
    return left if series.scored is None else np.where(series.scored[:, None], left, np.nan)


def chart_torques(channels: Sequence[Channel], series: TorqueSeries) -> list[tuple[str, Chart]]:
    """A joint's name and its chart, for every joint of which a log has torques.

    Measured and predicted torque, its parts, and the residual.
    """
    return [
        (each.name, Chart(build_torque_panels(series, j, each), shared=True))
        for j, each in list_measured(channels, series)
    ]


def chart_all_torques(
    channels: Sequence[Channel], series: TorqueSeries, joints: Sequence[str]
) -> Chart:
    """Measured and predicted torque of all channels that a log has, residuals below."""
    panels = [
        (label_joint(each.name, joints), build_torque_panels(series, j, each))
        for j, each in list_measured(channels, series)
    ]
    return stack_panels([(name, above, below) for name, (above, _, below) in panels])


def chart_all_positions(channels: Sequence[Channel], series: PositionSeries) -> Chart:
    """Measured and simulated positions of all joints, their difference below."""
    joints = [each.name for each in channels]
    return stack_panels([
        (label_joint(each.name, joints), *build_position_panels(series, j, each))
        for j, each in enumerate(channels)
    ])  # fmt: skip


def stack_panels(cells: Sequence[tuple[str, Panel, Panel]]) -> Chart:
    """Small panels in pairs, one above the other, all over one time."""
    panels = [
        small
        for name, above, below in cells
        for small in (
            replace(above, title=name, height=95.0, y=above.y[above.y.index("[") :]),
            replace(below, height=45.0, y=f"Δ {below.y[below.y.index('[') :]}"),
        )
    ]
    columns = next(k for k in (3, 2, 1) if len(cells) >= k or k == 1)
    return Chart(tuple(panels), columns, shared=True, together=True, stacked=2)


def list_measured(channels: Sequence[C], series: TorqueSeries) -> list[tuple[int, C]]:
    """Columns of which a log has torques, and whose they are."""
    known = np.isfinite(series.measured)
    return [(j, each) for j, each in enumerate(channels) if known[:, j].any()]


def chart_positions(channels: Sequence[Channel], series: PositionSeries) -> list[tuple[str, Chart]]:
    """A joint's name and its chart: measured and simulated position, and their difference."""
    return [
        (each.name, Chart(build_position_panels(series, j, each), shared=True))
        for j, each in enumerate(channels)
    ]
