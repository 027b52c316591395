"""What is left of the torque: against time, speed and itself."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from dynident.core.arrays import Array
from dynident.core.series import TorqueSeries
from dynident.plots.charts import (
    BLUE,
    GREY,
    RED,
    Band,
    Bars,
    Chart,
    Curve,
    Dots,
    Mark,
    Panel,
    Rule,
    label_joint,
    share_dots,
)
from dynident.plots.curves import measure_residuals
from dynident.plots.data import Channel, CorrelatedResiduals

DOTS, FEW = 1500, 250
"""Of a cloud, and of a small one."""


def chart_autocorrelation(groups: Sequence[CorrelatedResiduals], joints: Sequence[str]) -> Chart:
    """Residual autocorrelation of every group of rows with its +-2/sqrt(r) band."""
    reach = [
        max((abs(v) for each in groups for v in each.correlation.tolist()), default=1.0),
        *(2.0 / np.sqrt(max(1, each.rows)) for each in groups),
    ]
    edge = 1.1 * max(reach)
    return Chart(
        tuple(
            Panel(
                build_autocorrelation(each),
                label_joint(each.name, joints),
                x="lag [rows]",
                height=90.0,
                y_range=(-edge, edge),
            )
            for each in groups
        ),
        columns=3,
    )


def build_autocorrelation(residuals: CorrelatedResiduals) -> tuple[Mark, ...]:
    """The correlation of residuals with themselves, and its +-2/sqrt(r) band."""
    rho = residuals.correlation
    band = 2.0 / np.sqrt(max(1, residuals.rows))
    colours = tuple(np.where(np.abs(rho) > band, RED, GREY).tolist())
    lags = np.arange(1.0, len(rho) + 1.0)
    return (
        Band(-band, band, BLUE),
        Rule(0.0, GREY),
        Bars(lags, np.zeros(len(rho)), rho, colours, 2.0),
    )


def chart_residuals(channels: Sequence[Channel], series: Sequence[TorqueSeries]) -> Chart:
    """Of each joint measured against predicted torque, and what is left against what it may be of.

    That is its position, its speed and, where that was logged, its temperature.
    """
    first = series[0].speed.shape[1] - len(channels)
    panels, most = [], share_dots(FEW, len(channels))
    names = [each.name for each in channels]
    for j, each in enumerate(channels):
        column, unit = first + j, each.unit
        left = np.concatenate([measure_residuals(one)[:, column] for one in series])
        predicted = np.concatenate([one.predicted[:, column] for one in series])
        against = scatter(predicted, predicted + left, most)
        marks: list[tuple[tuple[Mark, ...], str, str]] = [
            (
                (draw_through(against), against),
                f"predicted [{unit}]",
                f"{series[0].torque} [{unit}]",
            )
        ]
        lines = "m" if unit == "N" else "rad"
        for name, values in (
            (f"position [{lines}]", [one.position for one in series]),
            (f"speed [{lines}/s]", [one.speed[:, first:] for one in series]),
            ("temperature [°C]", [one.temperature for one in series]),
        ):
            known = [each[:, j] for each in values if each is not None]
            if len(known) == len(series):
                dots = scatter(np.concatenate(known), left, most)
                marks.append(((dots, Rule(0.0, GREY, 0.8)), name, f"residual [{unit}]"))
        panels += [
            Panel(own, label_joint(each.name, names) if not k else "", x, y, height=110.0)
            for k, (own, x, y) in enumerate(marks)
        ]
    return Chart(tuple(panels), columns=len(panels) // max(1, len(channels)))


def scatter(x: Array, y: Array, most: int = DOTS) -> Dots:
    """Dots, thinned; what is not finite is left out."""
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    shown = known[:: max(1, len(known) // most)]
    return Dots(x[shown], y[shown], BLUE)


def draw_through(dots: Dots) -> Curve:
    """The line on which both numbers of a point are the same, as long as the dots reach."""
    both = np.concatenate([dots.x, dots.y, np.zeros(1)])
    ends = np.array([both.min(), both.max()])
    return Curve(ends, ends, GREY, 0.8)


def find_quantiles(error: Array) -> Dots:
    """Quantiles of errors, in their standard deviations, against those of the normal law."""
    known = np.sort(error[np.isfinite(error)])
    size = float(np.std(known)) if len(known) else 0.0
    if size == 0.0:
        return Dots(np.zeros(0), np.zeros(0), BLUE)
    shares = (np.arange(min(len(known), DOTS)) + 0.5) / min(len(known), DOTS)
    law = NormalDist()
    normal = np.array([law.inv_cdf(share) for share in shares.tolist()])
    return Dots(normal, (np.quantile(known, shares) - np.mean(known)) / size, BLUE)


def build_diagnostics(
    series: TorqueSeries, column: int, channel: Channel, residuals: CorrelatedResiduals | None
) -> tuple[Panel, Panel, Panel, Panel]:
    """Four views of one channel's error.

    Measured against predicted torque, the error against speed, its quantiles, and its correlation
    in time. `residuals`: of the rows that were fitted.
    """
    unit = channel.unit
    predicted, error = series.predicted[:, column], measure_residuals(series)[:, column]
    against = scatter(predicted, predicted + error)  # without filters' edges
    normal = find_quantiles(error)
    moves = column < series.speed.shape[1]  # a sensor in the chain does not
    by_speed = (scatter(series.speed[:, column], error),) if moves else ()
    itself = () if residuals is None else build_autocorrelation(residuals)
    return (
        Panel(
            (against, draw_through(against)), x=f"predicted [{unit}]", y=f"{series.torque} [{unit}]"
        ),
        Panel(
            (*by_speed, Rule(0.0, GREY, 0.8)),
            x="speed [m/s]" if unit == "N" else "speed [rad/s]",
            y=f"residual [{unit}]",
            note="" if moves else "a sensor has no speed",
        ),
        Panel((draw_through(normal), normal), x="normal quantile", y="residual / std"),
        Panel(
            itself,
            x="lag [rows]",
            y="autocorrelation",
            note="" if itself else "fitted rows are\ncombinations",
        ),
    )
