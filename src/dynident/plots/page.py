"""Charts as elements of a page: text flows, marks stretch, and colours are the style sheet's.

A panel's marks are paths of an SVG whose units are `UNITS` of each range; its strokes do not
stretch. What stands around them is text of the page at shares of its width. `chart.js` enlarges
stretches of x and tells values: it reads them from the paths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

import numpy as np

from dynident.core.arrays import Array, find_runs
from dynident.plots.charts import (
    BLUE,
    COLOURS,
    RED,
    STRIP,
    Band,
    Bars,
    Chart,
    Curve,
    Dots,
    Mark,
    Panel,
    Range,
    Rule,
    Shade,
    Strip,
    Tiles,
    list_labelled,
    thin_to_extremes,
)

UNITS = 10_000
"""Of a panel's width and of its height."""
POINTS = 1600
"""Of a curve; of longer ones the lowest and the highest of each stretch are drawn."""
STRAIGHT = 1.5
"""Units by which a point may be off the line between its neighbours and is not drawn."""
MARGIN = 0.05
"""Beside the marks, of their extent."""
TICKS, FEW_TICKS = 5, 3
"""About so many numbers stand at an axis, and at one of a low panel."""
LOW = 60.0
"""Height of a panel that is low [px]."""
SHADES = 6
"""Of a strip."""
GLYPHS = {"disc": "●", "diamond": "◆", "ring": "○", "bar": "❙"}
"""Of marks in legends."""

Lay = Callable[[Array], Array]
"""Numbers of an axis in units."""
Scale = tuple[float, float]
"""The least and the greatest number of an axis; of logarithms where it is logarithmic."""


def render_chart(chart: Chart, name: str, points: int = POINTS) -> str:
    """A chart as an element of a page, the same characters for the same input.

    Parameters
    ----------
    name : str
        What it shows, for those who do not see it.
    points : int
        Most of a curve, of a page that has many.
    """
    joint = share_x(chart.panels) if chart.shared else None
    kind = "chart shared" if chart.shared else "chart"
    cells = len(chart.panels) // chart.stacked
    columns = min(chart.columns, cells)
    every = (mark for panel in chart.panels for mark in panel.marks)
    head = render_legend("", every) if chart.together else ""
    drawn = []
    for k in range(0, len(chart.panels), chart.stacked):
        lowest = not chart.shared or chart.stacked > 1 or k >= cells - columns
        own = chart.panels[k : k + chart.stacked]
        cell = "".join(
            render_panel(panel, joint, not chart.together, lowest and panel is own[-1], points)
            for panel in own
        )
        drawn.append(cell if chart.stacked == 1 else f'<div class="cell">{cell}</div>')
    return (
        f'<figure class="{kind}" aria-label="{escape(name)}">{head}'
        f'<div class="panels" style="--columns:{columns}">{"".join(drawn)}</div></figure>'
    )


def share_x(panels: Sequence[Panel]) -> Scale:
    """A scale of x for all panels."""
    scales = [find_scales(panel)[0] for panel in panels]
    return min(low for low, _ in scales), max(high for _, high in scales)


def render_panel(
    panel: Panel, x: Scale | None, legend: bool, lowest: bool, points: int = POINTS
) -> str:
    """One panel.

    `x`: its scale where all panels of the chart have the same. `legend`: whether its labelled marks
    are named above it. `lowest`: whether x is said below it.
    """
    own, y = find_scales(panel)
    x = own if x is None else x
    ticks = TICKS if panel.height > LOW else FEW_TICKS
    across = list(find_ticks(x)) if lowest and not panel.x_names else []
    upward = (
        list(find_powers(y) if panel.log else find_ticks(y, ticks)) if not panel.y_names else []
    )
    lines = [
        *(f"M{place(at, x)} 0v{UNITS}" for at, _ in find_ticks(x) if not panel.x_names),
        *(f"M0 {UNITS - place(at, y)}h{UNITS}" for at, _ in upward),
    ]
    marks = "".join(
        part for mark in panel.marks for part in render_mark(mark, x, y, panel.log, points)
    )
    names = [
        *((at, escape(name)) for at, name in enumerate(panel.x_names)),
        *((at, escape(word)) for at, word in across),
    ]
    sides = [
        *((at, escape(name)) for at, name in enumerate(panel.y_names)),
        *((at, escape(word)) for at, word in upward),
    ]
    fixed = bool(panel.x_names or panel.y_names or panel.log)
    named, listed = "named" * bool(panel.x_names), "listed" * bool(panel.y_names)
    kinds = ("panel", named, listed, "fixed" * fixed)
    size = f"--height:{panel.height:g}px"
    if panel.x_names:
        size += f";--names:{len(panel.x_names)}"
    if panel.y_names:
        size += f";--longest:{max(map(len, panel.y_names))}"
    if panel.equal:
        size += f";--height:auto;--aspect:{(x[1] - x[0]) / (y[1] - y[0]):.4f}"
    return "".join((
        f'<div class="{" ".join(filter(None, kinds))}" style="{size}" ',
        f'data-x="{x[0]:.9g} {x[1]:.9g}" data-y="{y[0]:.9g} {y[1]:.9g}">',
        render_legend(panel.title, panel.marks if legend else ()),
        f'<div class="area"><span class="beside">{escape(panel.y)}</span>',
        f'<svg viewBox="0 0 {UNITS} {UNITS}" preserveAspectRatio="none" aria-hidden="true">',
        f'<path class="grid" d="{"".join(lines)}"/>{marks}</svg>',
        *(write_number("y", "bottom", share(at, y), word) for at, word in sides),
        *(write_number("x", "left", share(at, x), word) for at, word in names),
        f'<em>{escape(panel.note)}</em>' if panel.note else "",
        "</div>",
        f'<span class="below">{escape(panel.x)}</span>' if lowest and panel.x else "",
        "</div>",
    ))  # fmt: skip


def write_number(axis: str, side: str, where: float, word: str) -> str:
    """A number, or a name, at a share of an axis."""
    return f'<i class="{axis}" style="{side}:{100 * where:.2f}%">{word}</i>'


def render_legend(title: str, marks: Iterable[Mark]) -> str:
    """A title, and what the colours are of."""
    named = ""
    for mark in list_labelled(marks):
        line = "━" if isinstance(mark, Dots) or not mark.dashed else "╍"
        glyph = GLYPHS[mark.shape] if isinstance(mark, Dots) else line
        look = f"color:{paint(mark.colour)}"
        named += f'<span><i style="{look}">{glyph}</i> {escape(mark.label)}</span>'
    head = f"<strong>{escape(title)}</strong>" if title else ""
    return f'<p class="legend">{head}{named}</p>' if head or named else ""


def paint(colour: str) -> str:
    """A colour as the style sheet has it."""
    return f"var(--{COLOURS[colour]})"


# scales and numbers at them


def find_scales(panel: Panel) -> tuple[Scale, Scale]:
    """Of x and of y: as a panel states them, or as far as its marks reach and a little farther."""
    x = list_numbers(panel.marks, across=True)
    y = list_numbers(panel.marks, across=False)
    if panel.log:
        y = np.log10(y[y > 0.0])
    return (
        fit_scale(x, panel.x_range, 0.0 if panel.flush else MARGIN),
        fit_scale(y, panel.y_range, MARGIN),
    )


def list_numbers(marks: Sequence[Mark], across: bool) -> Array:
    """All finite numbers of marks on one axis."""
    found = [np.zeros(0)]
    for mark in marks:
        match mark:
            case Curve() | Dots():
                found.append(mark.x if across else mark.y)
            case Bars():
                along = (mark.low, mark.high) if across == mark.lying else (mark.place,)
                found += along
            case Band():
                found.append(np.array([] if across else [mark.low, mark.high]))
            case Rule():
                found.append(np.array([mark.at] if across == mark.standing else []))
            case Strip():
                found.append(mark.edges if across else np.zeros(0))
            case Tiles():
                found.append(np.array([-0.5, len(mark.values) - 0.5]))
    numbers = np.concatenate([np.ravel(part) for part in found]).astype(float)
    finite: Array = numbers[np.isfinite(numbers)]
    return finite


def fit_scale(numbers: Array, stated: Range, margin: float) -> Scale:
    """A scale that has all numbers; one of some width where they are one or none."""
    low = float(numbers.min()) if len(numbers) else 0.0
    high = float(numbers.max()) if len(numbers) else 1.0
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        half = 0.5 * abs(low) or 0.5
        low, high = low - half, high + half
    extra = margin * (high - low)
    least, greatest = stated
    return (
        low - extra if least is None else least,
        high + extra if greatest is None else greatest,
    )


def find_ticks(scale: Scale, ticks: int = TICKS) -> Iterator[tuple[float, str]]:
    """Round numbers along a scale, and how they are written."""
    low, high = scale
    rough = (high - low) / ticks
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * min((m for m in (1.0, 2.0, 5.0, 10.0) if m * power >= rough), default=10.0)
    largest = max(abs(low), abs(high))
    decimals = max(0, -math.floor(math.log10(step)))
    digits = max(3, math.ceil(math.log10(largest / step)) + 1)
    plain = largest < 1e5 and decimals <= 3
    exponent = math.floor(math.log10(largest))
    for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        at = k * step
        if plain:
            yield at, f"{at:.{decimals}f}"
        elif largest < 1000.0 * step:
            yield at, write_power(at / 10.0**exponent, exponent)
        else:
            yield at, f"{at:.{digits}g}"


def write_power(factor: float, exponent: int) -> str:
    """A number of few digits times a power of ten, short enough to stand beside an axis."""
    if -4 < exponent < 5:
        return f"{factor * 10.0**exponent:g}"
    return f"{factor:.3g}e{exponent}" if abs(factor) > 1e-9 else "0"


def find_powers(scale: Scale) -> Iterator[tuple[float, str]]:
    """Powers of ten along a scale of logarithms, also twice and five times these on a short one."""
    low, high = scale
    factors = (1.0,) if high - low > 2.0 else (1.0, 2.0, 5.0)
    for k in range(math.floor(low), math.ceil(high) + 1):
        for factor in factors:
            at = k + math.log10(factor)
            if low <= at <= high:
                yield at, write_power(factor, k)


def share(at: float, scale: Scale) -> float:
    """Where a number is along a scale, from 0 to 1."""
    return (at - scale[0]) / (scale[1] - scale[0])


def place(at: float, scale: Scale) -> int:
    """The same in units."""
    return round(UNITS * share(at, scale))


# marks as paths


def render_mark(mark: Mark, x: Scale, y: Scale, log: bool, points: int = POINTS) -> Iterator[str]:
    """A mark as paths."""

    def lay_x(numbers: Array) -> Array:
        return np.asarray(UNITS * (numbers - x[0]) / (x[1] - x[0]), dtype=float)

    def lay_y(numbers: Array) -> Array:
        known = numbers
        if log:
            known = np.log10(np.where(numbers > 0.0, numbers, np.nan))
        return np.asarray(UNITS * (y[1] - known) / (y[1] - y[0]), dtype=float)

    match mark:
        case Curve():
            path = trace_curve(lay_x(mark.x), lay_y(mark.y), points)
            name = f' data-label="{escape(mark.label)}"' if mark.label else ""
            yield stroke(path, mark.colour, mark.width, f"curve{' dashed' * mark.dashed}", name)
        case Dots():
            places = round_pairs(lay_x(mark.x), lay_y(mark.y))
            path = "".join(
                f"M{h} {v - 70}v140" if mark.shape == "bar" else f"M{h} {v}h0" for h, v in places
            )
            width = 2.0 if mark.shape == "bar" else 1.25 * mark.size
            yield stroke(path, mark.colour, width, mark.shape)
            if mark.shape == "ring":
                yield f'<path class="hole" d="{path}" style="stroke-width:{mark.size - 0.6:g}"/>'
        case Bars():
            at = lay_y(mark.place) if mark.lying else lay_x(mark.place)
            lay = lay_x if mark.lying else lay_y
            ends = [*zip(at, lay(mark.low), lay(mark.high), strict=True)]
            colours = mark.colours if len(mark.colours) > 1 else mark.colours * len(ends)
            for colour in dict.fromkeys(colours):
                own = [each for each, c in zip(ends, colours, strict=True) if c == colour]
                yield stroke(trace_bars(own, mark.lying), colour, mark.width, "bars")
        case Band():
            top, bottom = (round(float(v)) for v in lay_y(np.array([mark.high, mark.low])))
            yield (
                f'<path class="band" d="M0 {top}h{UNITS}V{bottom}H0z" '
                f'style="fill:{paint(mark.colour)}"/>'
            )
        case Rule():
            path = (
                f"M{round(float(lay_x(np.array(mark.at))))} 0v{UNITS}"
                if mark.standing
                else f"M0 {round(float(lay_y(np.array(mark.at))))}h{UNITS}"
            )
            yield stroke(path, mark.colour, mark.width, f"rule{' dashed' * mark.dashed}")
        case Strip():
            edges, steps = np.rint(lay_x(mark.edges)), np.rint(SHADES * mark.shades)
            for step in range(1, SHADES + 1):
                path = "".join(
                    f"M{a:.0f} {UNITS}V{UNITS * (1.0 - STRIP):.0f}H{b:.0f}V{UNITS}z"
                    for a, b in zip(edges[:-1][steps == step], edges[1:][steps == step])
                )
                look = f"fill:{paint(mark.colour)};opacity:{step / SHADES:.2f}"
                yield f'<path class="strip" style="{look}" d="{path}"/>' if path else ""
        case Shade():
            ends = np.rint([lay_x(mark.low), lay_x(mark.high)]).astype(np.int64).T.tolist()
            path = "".join(f"M{low} 0H{high}V{UNITS}H{low}z" for low, high in ends if high > low)
            yield f'<path class="shade" d="{path}"/>' if path else ""
        case Tiles():
            yield from render_tiles(mark, lay_x, lay_y)


def render_tiles(mark: Tiles, lay_x: Lay, lay_y: Lay) -> Iterator[str]:
    """The lower half of a matrix as squares of some shades; of those near zero there is none."""
    edges = np.arange(len(mark.values) + 1.0) - 0.5
    x, y = (np.rint(lay(edges)).astype(np.int64).tolist() for lay in (lay_x, lay_y))
    steps = np.tril(np.rint(SHADES * np.nan_to_num(mark.values)).astype(int))
    for step in [k for k in range(-SHADES, SHADES + 1) if abs(k) > 1]:
        path = "".join(
            f"M{x[j]} {y[-2 - i]}H{x[j + 1]}V{y[-1 - i]}H{x[j]}z"
            for i, j in np.argwhere(steps == step).tolist()
        )
        look = f"fill:{paint(BLUE if step > 0 else RED)};opacity:{abs(step) / SHADES:.2f}"
        yield f'<path class="tiles" style="{look}" d="{path}"/>' if path else ""


def stroke(path: str, colour: str, width: float, kind: str, more: str = "") -> str:
    """A path of one colour and width [px]."""
    look = f"stroke:{paint(colour)};stroke-width:{width:g}"
    return f'<path class="{kind}" style="{look}"{more} d="{path}"/>' if path else ""


def trace_curve(x: Array, y: Array, most: int = POINTS) -> str:
    """A path through points, in steps from one to the next; broken where a number is NaN."""
    known = np.isfinite(x) & np.isfinite(y)
    runs = find_runs(known)
    total = sum(stop - start for start, stop in runs)
    path = []
    for start, stop in runs:
        points = max(4, most * (stop - start) // max(1, total))
        kept = thin_to_extremes(x[start:stop], y[start:stop], points)
        both = np.rint(np.stack(drop_straight(*kept), axis=1)).astype(np.int64)
        steps = np.diff(both, axis=0)
        steps = steps[np.any(steps != 0, axis=1)]
        path.append(f"M{both[0, 0]} {both[0, 1]}")
        path.append("l" + " ".join(map(str, steps.ravel().tolist())) if len(steps) else "h0")
    return "".join(path).replace(" -", "-")


def drop_straight(x: Array, y: Array) -> tuple[Array, Array]:
    """The same points without those that lie between their neighbours to `STRAIGHT` units."""
    for _ in range(3):  # half of what is straight goes each time
        between = slice(1, len(x) - 1, 2)
        before, after = (slice(k, len(x) - 1 + k, 2) for k in (0, 2))
        m = len(x[between])
        reach = x[after][:m] - x[before][:m]
        share = (x[between] - x[before][:m]) / np.where(reach > 0.0, reach, 1.0)
        line = y[before][:m] + share * (y[after][:m] - y[before][:m])
        kept = np.ones(len(x), dtype=bool)
        kept[between] = (np.abs(y[between] - line) > STRAIGHT) | (reach <= 0.0)
        x, y = x[kept], y[kept]
    return x, y


def trace_bars(ends: Iterable[tuple[float, float, float]], lying: bool) -> str:
    """A path of intervals: place, and where they begin and end."""
    path = []
    for triple in ends:
        if all(map(math.isfinite, triple)):
            at, low, high = (round(float(each)) for each in triple)
            path.append(f"M{low} {at}H{high}" if lying else f"M{at} {low}V{high}")
    return "".join(path)


def round_pairs(x: Array, y: Array) -> Iterator[tuple[int, int]]:
    """Finite points in whole units."""
    known = np.isfinite(x) & np.isfinite(y)
    both = np.rint(np.stack([x[known], y[known]], axis=1)).astype(np.int64)
    return zip(*both.T.tolist(), strict=True) if len(both) else iter(())
