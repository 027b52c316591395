"""What a picture shows, whatever draws it: marks in panels, panels in a chart.

A subject (`curves`, `friction`, ...) says what is drawn, once; `panels` draws it on axes of
matplotlib, `page` as elements of a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynident.core.arrays import Array

COLOURS = {
    "#555555": "grey",
    "#0072B2": "blue",
    "#E69F00": "orange",
    "#009E73": "green",
    "#CC79A7": "pink",
    "#D55E00": "red",
    "#A9B0B7": "pale",
    "#111111": "ink",
}
"""Okabe and Ito's palette, which colour-blind readers can tell apart, and more; and what a page
calls them, which has others in the dark."""
GREY, BLUE, ORANGE, GREEN, PINK, RED, PALE, INK = COLOURS
MANY = 8
"""Joints; of more each has smaller clouds."""
STRIP = 0.045
"""Height of a strip, of its panel's."""
Line = tuple[str, bool]
LINES: tuple[Line, ...] = (
    (INK, False),
    (RED, False),
    (GREEN, False),
    (PINK, False),
    (RED, True),
    (GREEN, True),
    (PINK, True),
)
"""Colour, and whether it is dashed, of one model's or joint's line after the other."""


@dataclass(frozen=True)
class Curve:
    """A line through points; none where one of their numbers is NaN."""

    x: Array
    y: Array
    colour: str
    width: float = 1.0
    dashed: bool = False
    label: str = ""


@dataclass(frozen=True)
class Dots:
    """Points."""

    x: Array
    y: Array
    colour: str
    size: float = 2.5
    shape: Literal["disc", "diamond", "ring", "bar"] = "disc"
    label: str = ""


@dataclass(frozen=True)
class Bars:
    """Intervals along y at places of x, or, lying, along x at places of y."""

    place: Array
    low: Array
    high: Array
    colours: tuple[str, ...]
    width: float = 1.0
    lying: bool = False


@dataclass(frozen=True)
class Band:
    """All between two values of y."""

    low: float
    high: float
    colour: str


@dataclass(frozen=True)
class Rule:
    """A line at a value of y, or, standing, at one of x, as long as the panel."""

    at: float
    colour: str
    width: float = 0.5
    dashed: bool = False
    standing: bool = False
    label: str = ""


@dataclass(frozen=True)
class Strip:
    """How many points there are along x, in shades on its axis."""

    edges: Array
    counts: Array
    """`edges`, `counts`: shapes (bins + 1,) and (bins,)."""
    colour: str

    @property
    def shades(self) -> Array:
        """Of each bin, from 0 to 1: roots of the counts, so that few are seen beside many."""
        return np.asarray(np.sqrt(self.counts / max(1.0, float(np.max(self.counts, initial=0.0)))))


@dataclass(frozen=True)
class Shade:
    """Stretches of x in which something is left out, as high as the panel."""

    low: Array
    high: Array
    """`low`, `high`: shape (stretches,)."""


@dataclass(frozen=True)
class Tiles:
    """A square matrix: its first row on top, blue where it is positive and red where negative."""

    values: Array
    """Shape (size, size). From -1 to 1; NaN of what is not known."""


Mark = Curve | Dots | Bars | Band | Rule | Strip | Shade | Tiles
Range = tuple[float | None, float | None]


@dataclass(frozen=True)
class Panel:
    """Marks over common axes."""

    marks: tuple[Mark, ...]
    """The last lies on top."""
    title: str = ""
    x: str = ""
    y: str = ""
    """`title`, `x`, `y`: what stands above, below and beside; units belong to them."""
    height: float = 150.0
    """Of the marks' area on a page [px]."""
    flush: bool = False
    """Whether x ends where the marks do, as of time."""
    x_range: Range = (None, None)
    y_range: Range = (None, None)
    """`x_range`, `y_range`: none where the marks tell."""
    x_names: tuple[str, ...] = ()
    y_names: tuple[str, ...] = ()
    """`x_names`, `y_names`: what stands at 0, 1, ... in place of numbers."""
    log: bool = False
    """Whether y is logarithmic."""
    equal: bool = False
    """Whether a metre of x is as long as one of y."""
    note: str = ""
    """What is said where there is nothing to draw."""


@dataclass(frozen=True)
class Chart:
    """Panels side by side and below each other."""

    panels: tuple[Panel, ...]
    columns: int = 1
    """So many side by side, where there is room."""
    shared: bool = False
    """Whether all have the same x: what is enlarged in one is in all."""
    together: bool = False
    """Whether one legend is that of all panels."""
    stacked: int = 1
    """So many in a row stand below each other, wherever there is room."""


def name_places(
    names: Sequence[str], marks: tuple[Mark, ...], y: str, height: float = 170.0, log: bool = False
) -> Panel:
    """A panel of marks over 0, 1, 2, ..., which have names."""
    ends = (-0.6, len(names) - 0.4)
    return Panel(marks, y=y, height=height, x_range=ends, x_names=tuple(names), log=log)


def list_labelled(marks: Iterable[Mark]) -> list[Curve | Dots | Rule]:
    """What a legend names, each name once, and nothing of which there are no points."""
    found: dict[str, Curve | Dots | Rule] = {}
    for each in marks:
        if isinstance(each, (Bars, Band, Strip, Shade, Tiles)) or not each.label:
            continue
        if not isinstance(each, Dots) or len(each.x):
            found.setdefault(each.label, each)
    return list(found.values())


def share_dots(most: int, joints: int) -> int:
    """Dots of each joint's cloud, of a picture that has so many of `MANY` joints."""
    return min(most, most * MANY // max(1, joints))


def label_joint(name: str, joints: Sequence[str]) -> str:
    """A joint's number and its name, short; the name alone where it ends so, or is no joint's."""
    short = name if len(name) <= 16 else name[:15] + "…"
    number = f"{joints.index(name) + 1}" if name in joints else ""
    told = name[len(name.rstrip("0123456789")) :]
    return short if number in ("", told) else f"{number}  {short}"


def insert_gaps(signal: Array, breaks: np.ndarray) -> Array:
    """A signal with NaN between its runs."""
    return np.insert(signal, breaks, np.nan) if len(breaks) else signal


def thin_to_extremes(time: Array, signal: Array, points: int) -> tuple[Array, Array]:
    """The lowest and the highest value of each stretch of a signal, in the order of time.

    Parameters
    ----------
    time, signal : ndarray, shape (samples,)
    points : int
        At most so many are kept; all of a shorter signal.
    """
    count = len(signal)
    if count <= points:
        return time, signal
    size = -(-count // max(1, points // 2))
    stretches = -(-count // size)
    start = size * np.arange(stretches)
    filled = np.pad(signal, (0, size * stretches - count), "edge").reshape(stretches, size)
    found = np.stack([filled.argmin(axis=1), filled.argmax(axis=1)], axis=1)
    kept = np.minimum(np.sort(found, axis=1) + start[:, None], count - 1).ravel()
    kept = kept[np.diff(kept, prepend=-1) > 0]
    return time[kept], signal[kept]
