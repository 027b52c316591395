"""Parameters with their error bars, against a file's, and how they go together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.arrays import Array
from dynident.plots.charts import (
    BLUE,
    GREY,
    INK,
    PALE,
    RED,
    Bars,
    Chart,
    Dots,
    Mark,
    Panel,
    Rule,
    Tiles,
)
from dynident.plots.data import Interval

PER_ROW = 40
"""Parameters side by side in one row of the precision chart."""

ROW = 17.0
"""Height of an interval on a page [px]."""


def chart_precision(parameters: Sequence[Interval]) -> Chart:
    """Relative standard deviations of base parameters, the best determined first."""
    order = sorted(
        parameters, key=lambda p: p.relative_percent if np.isfinite(p.relative_percent) else np.inf
    )
    rows = max(1, -(-len(order) // PER_ROW))
    per_row = max(1, -(-len(order) // rows))
    return Chart(
        tuple(
            build_precision_row(order[row * per_row : (row + 1) * per_row], per_row)
            for row in range(rows)
        ),
        together=True,
    )


def build_precision_row(part: Sequence[Interval], width: int) -> Panel:
    """One row of the precision chart."""
    place = np.arange(float(len(part)))
    mine = np.array([p.relative_percent for p in part])
    formula = np.array([p.literature_percent for p in part])
    weak = np.array([p.weak for p in part], dtype=bool)
    marks = (
        Rule(100.0 / 1.96, RED, 0.7, dashed=True),
        Bars(place, formula, mine, (PALE,)),
        Dots(place, formula, GREY, 3.5, "ring", "std by eq. (9) of Ardiani et al."),
        Dots(place[~weak], mine[~weak], BLUE, 4.5, label="std of this result"),
        Dots(place[weak], mine[weak], RED, 4.5, "diamond", "95 % interval contains zero"),
    )
    return Panel(
        marks,
        y="std [%]",
        height=170.0,
        x_range=(-0.6, width - 0.4),
        x_names=tuple(p.name for p in part),
        log=True,
    )


def build_forest(rows: Sequence[Interval], file: Sequence[float], labels: Sequence[str]) -> Panel:
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
    place = np.arange(float(len(rows)))[::-1]
    weak = np.array([row.weak for row in rows], dtype=bool)
    colours = tuple(np.where(weak, RED, BLUE).tolist())
    marks: list[Mark] = [
        Rule(0.0, GREY, standing=True),
        Bars(place, low, high, colours, 1.6, lying=True),
        Dots(value[~weak], place[~weak], BLUE, 4.5, label="identified, 95 % interval"),
    ]
    if weak.any():
        label = "interval contains zero"
        marks.append(Dots(value[weak], place[weak], RED, 4.5, "diamond", label))
    if np.isfinite(told).any():
        marks.append(Dots(told, place, INK, 9.0, "bar", "robot file"))
    return Panel(
        tuple(marks),
        x="relative to the largest number of the row",
        height=ROW * (len(rows) + 0.4),
        x_range=(-1.08, 1.08),
        y_range=(-0.7, len(rows) - 0.3),
        y_names=tuple(reversed(labels)),
    )


def build_correlation(correlation: Array, names: Sequence[str]) -> Panel:
    """A matrix of correlations, blue for positive and red for negative ones."""
    ends = (-0.5, len(names) - 0.5)
    return Panel(
        (Tiles(correlation),),
        x_range=ends,
        y_range=ends,
        x_names=tuple(names),
        y_names=tuple(reversed(names)),
        equal=True,
    )
