"""Axes that one passes or gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dynident.core.errors import InputError
from dynident.plots.style import PNG_DPI, WIDTH, apply_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Given: TypeAlias = Axes | Sequence[Axes] | np.ndarray | None

HEAD = 0.4
"""Of a figure, for what stands above and below all panels [inch]."""
LARGEST = 40.0
"""Of a figure [inch]."""


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
    """Axes to draw in: those given, as they are, or new ones in the style of reports.

    Parameters
    ----------
    given : Axes, sequence of Axes, or None
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
    if given is not None:
        # a subplot has no length, and arrays of subplots have any shape
        axes: list[Axes] = np.ravel(np.array(given, dtype=object)).tolist()
        if len(axes) != len(names) or not all(hasattr(each, "plot") for each in axes):
            raise InputError(
                f"axes: {len(axes)} were given, {len(names)} are drawn in: {', '.join(names)}"
            )
        yield Panels(axes)
        return
    rows = -(-len(names) // columns)
    with apply_style():
        from matplotlib.figure import Figure

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


def title_panel(axes: Axes, text: str) -> None:
    """A title on the left, as it is: names are no formulas."""
    axes.set_title(text, loc="left", parse_math=False)
