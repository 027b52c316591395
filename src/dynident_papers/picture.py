"""The figures of papers, drawn again: panels of curves, in a grid."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dynident.core.arrays import Array

SIZE = (5.0, 2.6)
"""Of a panel [inches]."""
DPI = 100


@dataclass(frozen=True)
class Panel:
    """Curves over one abscissa."""

    title: str
    x_label: str
    y_label: str
    x: Array
    """Shape (points,)."""
    curves: Mapping[str, Array]
    """By their names in the legend, shape (points,)."""
    band: float = 0.0
    """Dashed lines stand at plus and minus this; none where it is zero."""
    shown: tuple[float, float] | None = None
    """Ends of the ordinate, where curves leave what is worth a look."""


def draw_panels(rows: Sequence[Sequence[Panel]]) -> bytes:
    """A grid of panels as PNG."""
    from matplotlib.figure import Figure  # a second that no table needs

    across = max(len(row) for row in rows)
    figure = Figure((across * SIZE[0], len(rows) * SIZE[1]), dpi=DPI, layout="constrained")
    axes = figure.subplots(len(rows), across, squeeze=False)
    for places, row in zip(axes, rows, strict=True):
        for place in places[len(row) :]:
            place.axis("off")
        for place, panel in zip(places, row, strict=False):
            for name, values in panel.curves.items():
                place.plot(panel.x, values, linewidth=0.9, label=name)
            for level in (-panel.band, panel.band) if panel.band else ():
                place.axhline(level, color="0.3", linestyle="--", linewidth=0.8)
            if panel.shown is not None:
                place.set_ylim(*panel.shown)
            place.set_title(panel.title, fontsize=9)
            place.set_xlabel(panel.x_label, fontsize=8)
            place.set_ylabel(panel.y_label, fontsize=8)
            place.tick_params(labelsize=7)
            place.legend(fontsize=7, ncols=3)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()
