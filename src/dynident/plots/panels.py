"""Panels on axes of matplotlib, that one passes or gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dynident.core.errors import InputError
from dynident.plots.charts import (
    BLUE,
    PALE,
    RED,
    STRIP,
    Band,
    Bars,
    Curve,
    Dots,
    Mark,
    Panel,
    Rule,
    Shade,
    Strip,
    Tiles,
    list_labelled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Given: TypeAlias = Axes | Sequence[Axes] | np.ndarray | None

WIDTH = 9.6
"""Of a figure [inch]."""
HEAD = 0.4
"""Of a figure, for what stands above and below all panels [inch]."""
LARGEST = 40.0
"""Of a figure [inch]."""
PNG_DPI = 160
"""Of figures as pictures: two pixels where a screen has one."""
DASHES = (0, (4, 2))
SHAPES: dict[str, dict[str, Any]] = {
    "disc": {"marker": "o", "markeredgewidth": 0.0},
    "diamond": {"marker": "D", "markeredgewidth": 0.0},
    "ring": {"marker": "o", "markerfacecolor": "white", "markeredgewidth": 0.8},
    "bar": {"marker": "|", "markeredgewidth": 1.6},
}
STYLE: dict[str, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "legend.columnspacing": 1.4,
    "axes.titley": 1.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#777777",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "xtick.bottom": False,
    "ytick.left": False,
    "lines.linewidth": 1.0,
    "lines.solid_joinstyle": "round",
}


class Panels(tuple["Axes", ...]):
    """The axes that were drawn in, in order; notebooks show their figure.

    ``panels[0].set_xlim(0.0, 2.0)`` changes one, ``panels.figure.savefig("torque.pdf")`` saves all.
    """

    __slots__ = ()

    @property
    def figure(self) -> Figure:
        """The figure of the first axes."""
        figure: Figure | None = self[0].get_figure(root=True)
        assert figure is not None
        return figure

    def _repr_png_(self) -> bytes | None:
        """The figure as a picture, but for those of pyplot, which notebooks show themselves."""
        if self.figure.canvas.manager is not None:
            return None
        buffer = BytesIO()
        self.figure.savefig(buffer, format="png", dpi=PNG_DPI)
        return buffer.getvalue()


@contextmanager
def open_panels(
    given: Given,
    names: Sequence[str],
    columns: int = 1,
    height: float = 1.7,
    width: float = WIDTH,
    share_x: bool = False,
) -> Iterator[Panels]:
    """Axes to draw in: those given, as they are, or new ones in our style.

    Parameters
    ----------
    names : sequence of str
        What each of the axes is for.
    columns : int
        Of the new ones.
    height : float
        Of one of them [inch].
    width : float
        Of the new figure [inch].
    share_x : bool
        Whether the new ones have the same x.
    """
    if not names:
        raise InputError("there is nothing to draw: the robot has no joints")
    if given is not None:
        # a subplot has no length, and arrays of subplots have any shape
        axes: list[Axes] = np.ravel(np.array(given, dtype=object)).tolist()
        if len(axes) != len(names) or not all(hasattr(each, "plot") for each in axes):
            raise InputError(
                f"axes: {len(axes)} were given, {len(names)} are drawn in: {', '.join(names)}"
            )
        yield Panels(axes)
        return
    from matplotlib import style
    from matplotlib.figure import Figure

    rows = -(-len(names) // columns)
    # the defaults and our style, whatever the user's settings are
    with style.context(["default", STYLE]):
        size = (width, min(HEAD + height * rows, LARGEST))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False, sharex=share_x).ravel()
        for spare in grid[len(names) :]:
            spare.remove()
        panels = Panels(grid[: len(names)])
        yield panels
        for k, panel in enumerate(panels) if share_x else ():
            lowest = k + columns >= len(names)
            panel.tick_params(labelbottom=lowest)
            panel.xaxis.label.set_visible(lowest)


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw all that a panel shows."""
    for mark in panel.marks:
        draw_mark(axes, mark)
    axes.set(xlabel=panel.x, ylabel=panel.y)
    title_panel(axes, panel.title)
    if panel.flush:
        axes.margins(x=0.0)
    if panel.x_range != (None, None):
        axes.set_xlim(*panel.x_range)
    if panel.y_range != (None, None):
        axes.set_ylim(*panel.y_range)
    if panel.log:
        axes.set_yscale("log")
    if panel.equal:
        axes.set_aspect("equal", adjustable="datalim")
    if panel.x_names:
        axes.set_xticks(range(len(panel.x_names)), panel.x_names, rotation=90, parse_math=False)
        axes.grid(visible=False, axis="x")
    if panel.y_names:
        axes.set_yticks(range(len(panel.y_names)), panel.y_names, parse_math=False)
        axes.grid(visible=False, axis="y")
    if panel.note:
        axes.text(0.5, 0.5, panel.note, ha="center", va="center", transform=axes.transAxes)
    if list_labelled(panel.marks):
        axes.legend(
            loc="lower right", bbox_to_anchor=(1.0, 0.97), ncols=4, borderaxespad=0.0, borderpad=0.1
        )


def draw_mark(axes: Axes, mark: Mark) -> None:
    """Draw one mark."""
    match mark:
        case Curve():
            line = DASHES if mark.dashed else "-"
            look: dict[str, Any] = {"color": mark.colour, "lw": mark.width, "ls": line}
            axes.plot(mark.x, mark.y, label=mark.label or None, **look)
        case Dots():
            look = {"color": mark.colour, "ms": mark.size, "ls": "", **SHAPES[mark.shape]}
            label = (mark.label or None) if len(mark.x) else None
            axes.plot(mark.x, mark.y, label=label, **look)
        case Bars():
            draw = axes.hlines if mark.lying else axes.vlines
            draw(mark.place, mark.low, mark.high, colors=mark.colours, lw=mark.width)
        case Band():
            axes.axhspan(mark.low, mark.high, color=mark.colour, alpha=0.15, lw=0.0)
        case Rule():
            rule = axes.axvline if mark.standing else axes.axhline
            line = DASHES if mark.dashed else "-"
            label = mark.label or None
            rule(mark.at, color=mark.colour, lw=mark.width, ls=line, label=label, zorder=0.5)
        case Strip():
            shades = [(mark.colour, share) for share in mark.shades.tolist()]
            look = {"align": "edge", "color": shades, "transform": axes.get_xaxis_transform()}
            axes.bar(mark.edges[:-1], STRIP, np.diff(mark.edges), lw=0.0, **look)
        case Shade():
            for low, high in zip(mark.low.tolist(), mark.high.tolist(), strict=True):
                axes.axvspan(low, high, color="#000000", alpha=0.07, lw=0.0)
        case Tiles():
            from matplotlib.colors import LinearSegmentedColormap

            colours = LinearSegmentedColormap.from_list("tiles", (RED, "#FFFFFF", BLUE))
            shown = colours.with_extremes(bad=PALE)
            ends = (-0.5, len(mark.values) - 0.5)
            axes.imshow(mark.values, cmap=shown, vmin=-1.0, vmax=1.0, extent=(*ends, *ends))
            axes.grid(visible=False)


def title_panel(axes: Axes, text: str) -> None:
    """A title on the left, as it is: names are not formulas."""
    axes.set_title(text, loc="left", parse_math=False)
