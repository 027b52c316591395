"""Torques and positions over time, measured and of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from dynident.core.arrays import Array, Integers
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
    insert_gaps,
)
from dynident.plots.data import Channel, Positions, Torques

C = TypeVar("C")
PARTS = {"inertia": BLUE, "velocity": ORANGE, "gravity": GREEN, "friction": PINK}


def build_torque_panels(
    series: Torques, column: int, channel: Channel
) -> tuple[Panel, Panel, Panel]:
    """Measured and predicted torque of one channel, its parts, and the residual, over time.

    Filters' edges have no residual, as no error counts them.
    """
    curve, unit = prepare_curves(series.time, series.breaks), channel.unit
    both: list[Mark] = [
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
        Panel(tuple(both), x="time [s]", y=f"torque [{unit}]", height=190.0, flush=True),
        Panel(tuple(parts), x="time [s]", y=f"parts [{unit}]", flush=True),
        Panel(
            (left, Rule(0.0, GREY)), x="time [s]", y=f"residual [{unit}]", height=80.0, flush=True
        ),
    )


def build_position_panels(series: Positions, column: int, channel: Channel) -> tuple[Panel, Panel]:
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


def measure_residuals(series: Torques) -> Array:
    """Measured less predicted torque, NaN at filters' edges, shape (samples, channels)."""
    left = series.measured - series.predicted
    return left if series.scored is None else np.where(series.scored[:, None], left, np.nan)


def chart_torques(channels: Sequence[Channel], series: Torques) -> list[tuple[str, Chart]]:
    """A joint's name and its chart, for every joint of which a log has torques.

    Measured and predicted torque, its parts, and the residual.
    """
    return [
        (each.name, Chart(build_torque_panels(series, j, each), shared=True))
        for j, each in list_measured(channels, series)
    ]


def list_measured(channels: Sequence[C], series: Torques) -> list[tuple[int, C]]:
    """Columns of which a log has torques, and whose they are."""
    known = np.isfinite(series.measured)
    return [(j, each) for j, each in enumerate(channels) if known[:, j].any()]


def chart_positions(channels: Sequence[Channel], series: Positions) -> list[tuple[str, Chart]]:
    """A joint's name and its chart: measured and simulated position, and their difference."""
    return [
        (each.name, Chart(build_position_panels(series, j, each), shared=True))
        for j, each in enumerate(channels)
    ]
