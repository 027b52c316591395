"""What is left of the torque: against time, speed and itself."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from dynident.core.arrays import Array
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
)
from dynident.plots.curves import measure_residuals
from dynident.plots.data import Channel, Correlated, Torques

DOTS = 1500
"""Of a cloud."""


def chart_autocorrelation(groups: Sequence[Correlated]) -> Chart:
    """Residual autocorrelation of every joint with its +-2/sqrt(r) band."""
    known = [(build_autocorrelation(each), j, each.name) for j, each in enumerate(groups)]
    reach = [
        max((abs(v) for each in groups for v in each.correlation.tolist()), default=1.0),
        *(2.0 / np.sqrt(max(1, each.rows)) for each in groups),
    ]
    edge = 1.1 * max(reach)
    return Chart(
        tuple(
            Panel(marks, label_joint(j, name), x="lag [rows]", height=90.0, y_range=(-edge, edge))
            for marks, j, name in known
        ),
        columns=3,
    )


def build_autocorrelation(residuals: Correlated) -> tuple[Mark, ...]:
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


def scatter(x: Array, y: Array) -> Dots:
    """Dots, thinned to `DOTS`; what is not finite is left out."""
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    shown = known[:: max(1, len(known) // DOTS)]
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
    series: Torques, column: int, channel: Channel, residuals: Correlated | None
) -> tuple[Panel, Panel, Panel, Panel]:
    """Four views of one channel's error.

    Measured against predicted torque, the error against speed, its quantiles, and its correlation
    in time.

    Parameters
    ----------
    residuals : Correlated, optional
        Of the rows that were fitted.
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
            note="" if itself else "rows that were fitted\nare of combinations",
        ),
    )
