"""Figures of a report as inline SVG, the same bytes for the same input."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from dynident.core.arrays import Array
from dynident.fit.figures import PositionSeries, Series
from dynident.fit.parameters import BaseRow
from dynident.fit.residuals import LAGS, GroupResiduals
from dynident.regression.rows import list_torque_groups
from dynident.report.ground import Ground
from dynident.robot.model import Robot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 9.6
"""Of every figure [inch]."""
LARGEST = 300_000
"""Characters beyond which an SVG is replaced by a PNG."""
PNG_DPI = 160
DOTS = 160
"""Of a joint's friction curves."""
BINS = 24
"""Of speed on either side of zero, on which a model's friction is averaged."""
PER_ROW = 40
"""Parameters side by side in one row of the precision plot."""

# Okabe and Ito's palette, which colour-blind readers can tell apart
GREY, BLUE, ORANGE, GREEN, PINK, RED = (
    "#555555",
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#D55E00",
)
PALE = "#A9B0B7"
Line = tuple[str, str | tuple[int, tuple[int, ...]]]
LINES: tuple[Line, ...] = (
    ("#111111", "-"),
    (RED, "-"),
    (GREEN, "-"),
    (PINK, "-"),
    (RED, (0, (4, 2))),
    (GREEN, (0, (4, 2))),
    (PINK, (0, (4, 2))),
)
"""Colours and dashes of models' friction curves."""
FEET: list[Line] = [
    (colour, dashes)
    for dashes in (LINES[0][1], LINES[-1][1])
    for colour in (BLUE, ORANGE, GREEN, PINK, RED, GREY)
]
"""Colours and dashes of contacts."""
Curve = tuple[int, Array, dict[str, Any]]
"""A panel, the joints' signals, shape (samples, n), and how they are drawn."""
PARTS = {"inertia": BLUE, "velocity": ORANGE, "gravity": GREEN, "friction": PINK}

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
    "path.simplify_threshold": 0.2,
    "svg.hashsalt": "dynident",
    "svg.fonttype": "none",
}


@contextmanager
def apply_style() -> Iterator[None]:
    """Matplotlib's own defaults and `STYLE`, whatever the user's settings are."""
    from matplotlib import style

    with style.context(["default", STYLE]):
        yield


def plot_torques(robot: Robot, series: Series) -> tuple[tuple[str, str], ...]:
    """A joint's name and its torque figure, for every joint of which a log has torques.

    Measured and predicted torque, its parts, and the residual.

    Returns
    -------
    tuple of (str, str)
        Names, and SVG elements or image elements where those would be large.
    """
    curves: list[Curve] = [
        (0, series.measured, {"color": PALE, "lw": 2.4, "label": series.torque}),
        (0, series.predicted, {"color": BLUE, "lw": 0.9, "label": "predicted"}),
    ]
    if series.nominal is not None:
        dashed = {"color": RED, "lw": 0.8, "ls": (0, (4, 2)), "label": "robot file"}
        curves.append((0, series.nominal, dashed))
    for part, signal in series.parts.items():
        curves.append((1, signal, {"color": PARTS.get(part, GREY), "lw": 0.9, "label": part}))
    curves.append((2, series.measured - series.predicted, {"color": GREY, "lw": 0.7}))
    joints = [
        (j, group.name, [f"{label} [{group.unit}]" for label in ("torque", "parts", "residual")])
        for j, group in enumerate(list_torque_groups(robot))
        if np.isfinite(series.measured[:, j]).any()
    ]
    with apply_style():
        figure = make_report_figure(5.7)
        panels = add_panels(figure, 3, height_ratios=(3.0, 2.4, 1.2), top=0.95, bottom=0.08)
        return plot_joints(figure, panels, series.time, curves, joints, f"torque-{series.name}")


def plot_positions(robot: Robot, series: PositionSeries) -> tuple[tuple[str, str], ...]:
    """A joint's name and its figure: measured and simulated position, and their difference.

    Returns
    -------
    tuple of (str, str)
        As of `plot_torques`.
    """
    difference = 1e3 * (series.measured - series.simulated)
    curves: list[Curve] = [
        (0, series.measured, {"color": PALE, "lw": 2.4, "label": "measured"}),
        (0, series.simulated, {"color": BLUE, "lw": 0.9, "label": "simulated"}),
        (1, difference, {"color": GREY, "lw": 0.7}),
    ]
    units = ["m" if joint.kind == "prismatic" else "rad" for joint in robot.joints]
    joints = [
        (j, joint.name, [f"position [{unit}]", f"difference [m{unit}]"])
        for j, (joint, unit) in enumerate(zip(robot.joints, units, strict=True))
    ]
    with apply_style():
        figure = make_report_figure(3.6)
        panels = add_panels(figure, 2, height_ratios=(2.4, 1.2), top=0.93, bottom=0.12)
        return plot_joints(figure, panels, series.time, curves, joints, f"position-{series.name}")


def plot_joints(
    figure: Figure,
    panels: Sequence[Axes],
    time: Array,
    curves: Sequence[Curve],
    joints: Sequence[tuple[int, str, Sequence[str]]],
    name: str,
) -> tuple[tuple[str, str], ...]:
    """A figure a joint; the last panel is of what is left.

    All joints are drawn in the same axes, one after the other: to make axes takes longer than to
    draw them.

    Parameters
    ----------
    joints : sequence of (int, str, sequence of str)
        Columns of the curves, names, and what stands beside the panels.
    """
    breaks = find_time_gaps(time)
    shown = insert_gaps(time, breaks)
    lines = [panels[k].plot(shown, np.zeros(len(shown)), **look)[0] for k, _, look in curves]
    panels[-1].axhline(0.0, color=GREY, lw=0.5)
    panels[-1].set_xlabel("time [s]")
    for axes in panels:
        axes.yaxis.set_label_coords(-0.052, 0.5)
        axes.margins(x=0.0)
    for axes in panels[:-1]:
        draw_legend(axes)
    found = []
    for j, joint, labels in joints:
        for line, (_, signal, _) in zip(lines, curves, strict=True):
            line.set_ydata(insert_gaps(signal[:, j], breaks))
        for axes, label in zip(panels, labels, strict=True):
            axes.set_ylabel(label)
            axes.relim()
            axes.autoscale_view()
        found.append((joint, render_figure(figure, f"{name}-{j}")))
    return tuple(found)


def add_panels(figure: Figure, rows: int, **layout: Any) -> Sequence[Axes]:
    """Panels below each other, over the same time."""
    grid = figure.add_gridspec(rows, 1, left=0.075, right=0.99, **layout)
    return [*grid.subplots(sharex=True, squeeze=False).ravel()]


def plot_contact_forces(ground: Ground) -> str:
    """Contact forces of a floating robot over time, and their sum against its weight."""
    breaks, whole = find_time_gaps(ground.time), bool(len(ground.total))
    time = insert_gaps(ground.time, breaks)
    with apply_style():
        figure = make_report_figure(4.4 if whole else 2.6)
        panels = add_panels(figure, 1 + whole, top=0.93, bottom=0.1 if whole else 0.17)
        styles = assign_contact_styles(ground)
        for name, force in ground.forces.items():
            colour, dashes = styles[name]
            panels[0].plot(
                time, insert_gaps(force, breaks), color=colour, ls=dashes, lw=0.9, label=name
            )
        if whole:
            low = panels[1]
            low.plot(time, insert_gaps(ground.total, breaks), color=PALE, lw=2.4, label="measured")
            low.plot(time, insert_gaps(ground.asked, breaks), color=BLUE, lw=0.9, label="model")
            low.axhline(ground.weight, color=GREY, lw=0.8, ls=(0, (4, 2)), label="weight")
        for axes, label in zip(panels, ("of each contact [N]", "of all [N]"), strict=False):
            axes.set_ylabel(label)
            axes.margins(x=0.0)
            draw_legend(axes, len(FEET))
        panels[-1].set_xlabel("time [s]")
        return render_figure(figure, f"forces-{ground.name}")


def assign_contact_styles(ground: Ground) -> dict[str, Line]:
    """Colour and dashes of each contact, the same in every figure."""
    return dict(zip(ground.contacts, cycle(FEET), strict=False))


def plot_footholds(ground: Ground) -> str:
    """Where a floating robot's contacts stood, from above, and the path of its base."""
    stood = {stance.contact for stance in ground.stances}
    colours = {
        name: style[0] for name, style in assign_contact_styles(ground).items() if name in stood
    }
    x, y = (
        np.concatenate([ground.path[:, k], *(stance.track[:, k] for stance in ground.stances)])
        for k in (0, 1)
    )
    share = (np.ptp(y) + 0.1) / (np.ptp(x) + 0.1)
    with apply_style():
        figure = make_report_figure(float(np.clip(0.9 + 0.9 * WIDTH * share, 2.4, 0.8 * WIDTH)))
        axes = figure.add_axes((0.075, 0.12, 0.915, 0.8))
        breaks = find_time_gaps(ground.time)
        path = [insert_gaps(part, breaks) for part in ground.path.T]
        axes.plot(*path, color=PALE, lw=1.2, label="base")
        axes.plot(*ground.path[0], "o", ms=5.0, mfc="white", mec=GREY, mew=0.9)
        for stance in ground.stances:
            colour = colours[stance.contact]
            axes.plot(*stance.track.T, color=colour, lw=0.8)
            axes.plot(*stance.track.mean(axis=0), "o", ms=4.0, color=colour, mew=0.0)
        for name, colour in colours.items():
            axes.plot([], [], "o", ms=4.0, color=colour, mew=0.0, label=name)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xlabel("x [m]")
        axes.set_ylabel("y [m]")
        draw_legend(axes, len(FEET))
        return render_figure(figure, f"footholds-{ground.name}")


def plot_autocorrelation(groups: Sequence[GroupResiduals]) -> str:
    """Residual autocorrelation of every joint with its +-2/sqrt(r) band."""
    count = len(groups)
    columns = min(6, max(3, count))
    rows = max(1, -(-count // columns))
    height = 0.55 + 1.35 * rows
    lags = np.arange(1, LAGS + 1)
    width = LAGS + 5  # of a panel and the gap behind it: axes for each would take longer
    with apply_style():
        figure = make_report_figure(height)
        grid = figure.add_gridspec(
            rows,
            1,
            left=0.05,
            right=0.99,
            top=1.0 - 0.28 / height,
            bottom=0.42 / height,
            hspace=0.45,
        )
        panels = grid.subplots(sharey=True, squeeze=False).ravel()
        for row, axes in enumerate(panels):
            ticks = []
            for column, j in enumerate(range(row * columns, min((row + 1) * columns, count))):
                rho = groups[j].correlation
                band = 2.0 / np.sqrt(max(1, groups[j].rows))
                outside = np.abs(rho) > band
                start = column * width
                ends = (start, start + LAGS + 1)
                axes.fill_between(ends, -band, band, color=BLUE, alpha=0.15, lw=0.0)
                colours = np.where(outside, RED, GREY).tolist()
                axes.vlines(start + lags, 0.0, rho, colors=colours, lw=2.0)
                axes.plot(ends, (0.0, 0.0), color=GREY, lw=0.5)
                title = format_panel_title(j, groups[j].name)
                beyond = axes.get_xaxis_transform()
                axes.text(start, 1.04, title, transform=beyond, parse_math=False)
                if j + columns >= count:  # nothing stands below
                    ticks.append(start + lags[4::5])
            shown = np.concatenate([*ticks, np.zeros(0)])
            axes.set_xticks(shown, [f"{tick % width:.0f}" for tick in shown])
            axes.set_xlim(0.0, columns * width - 4)
            axes.grid(visible=False, axis="x")
        panels[-1].set_xlabel("lag [rows]")
        return render_figure(figure, "autocorrelation")


def plot_precision(parameters: Sequence[BaseRow]) -> str:
    """Relative standard deviations of base parameters, the best determined first."""
    order = sorted(
        parameters, key=lambda p: p.relative_percent if np.isfinite(p.relative_percent) else np.inf
    )
    rows = max(1, -(-len(order) // PER_ROW))
    per_row = max(1, -(-len(order) // rows))
    height = 0.45 + 1.9 * rows
    with apply_style():
        figure = make_report_figure(height)
        grid = figure.add_gridspec(
            rows,
            1,
            left=0.07,
            right=0.99,
            top=1.0 - 0.35 / height,
            bottom=0.55 / height,
            hspace=0.42,
        )
        panels = grid.subplots(sharey=True, squeeze=False).ravel()
        for row, axes in enumerate(panels):
            part = order[row * per_row : (row + 1) * per_row]
            plot_precision_row(axes, part)
            axes.set_xticks(range(len(part)), [p.name for p in part], rotation=90, fontsize=7.5)
            axes.set_xlim(-0.6, per_row - 0.4)
            axes.set_ylabel("std [%]")
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")  # powers of ten would have to be typeset
            axes.minorticks_off()
            axes.grid(visible=False, axis="x")
        draw_legend(panels[0])
        return render_figure(figure, "precision")


def plot_precision_row(axes: Axes, part: Sequence[BaseRow]) -> None:
    """One row of the precision plot."""
    place = np.arange(len(part))
    mine = np.array([p.relative_percent for p in part])
    formula = np.array([p.literature_percent for p in part])
    open_ = np.array([p.weak for p in part], dtype=bool)
    axes.axhline(100.0 / 1.96, color=RED, lw=0.7, ls=(0, (4, 2)))
    axes.vlines(place, formula, mine, colors="#BBBBBB", lw=1.0)
    axes.plot(place, formula, "o", ms=3.5, mfc="white", mec=GREY, mew=0.8, label="std by eq. (9)")
    axes.plot(place[~open_], mine[~open_], "o", ms=4.5, color=BLUE, label="std of this result")
    axes.plot(
        place[open_], mine[open_], "D", ms=4.5, color=RED, label="95 % interval contains zero"
    )


def plot_friction(
    robot: Robot, series: Sequence[Series], others: Mapping[str, Sequence[Series]] | None = None
) -> str:
    """What is left of each joint's torque beside the rigid bodies, against speed; and the model.

    Parameters
    ----------
    series : sequence of Series
        Logs along the model whose rigid bodies are taken off.
    others : mapping of str to sequence of Series, optional
        Further models along the same logs by name: their friction is drawn too.

    Returns
    -------
    str
        Dots are measured: blue where the rigid bodies pull along, orange where they have to be
        moved, grey where they pull less than in half of the samples. Lines are means over
        samples of like speed.
    """
    first = robot.dof - robot.n
    groups = list_torque_groups(robot)[first:]
    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    lines = {"model": series} if others is None else others
    head = 0.3 if others is None else 0.65
    height = head + 0.3 + 1.75 * rows
    with apply_style():
        figure = make_report_figure(height)
        grid = figure.add_gridspec(
            rows,
            columns,
            left=0.06,
            right=0.99,
            top=1.0 - head / height,
            bottom=0.42 / height,
            hspace=0.42,
            wspace=0.18,
        )
        panels = grid.subplots(squeeze=False).ravel()
        for j, axes in enumerate(panels):
            if j >= len(groups):
                axes.set_visible(False)
                continue
            plot_friction_dots(axes, series, first + j)
            for k, (name, own) in enumerate(lines.items()):
                speed, friction = average_friction_by_speed(own, first + j)
                colour, dashes = LINES[k % len(LINES)]
                axes.plot(speed, friction, color=colour, ls=dashes, lw=1.2, label=name)
            speed_unit = "m/s" if groups[j].unit == "N" else "rad/s"
            title = f"{format_panel_title(j, groups[j].name)} [{groups[j].unit}]"
            axes.set_title(title, loc="left", pad=3, parse_math=False)
            axes.locator_params(nbins=3)
            if j + columns >= len(groups):
                axes.set_xlabel(f"speed [{speed_unit}]")
        if others is not None:
            handles, labels = panels[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="upper center", ncols=4, borderaxespad=0.0)
        return render_figure(figure, "friction")


def plot_friction_dots(axes: Axes, series: Sequence[Series], joint: int) -> None:
    """Measured torque less that of the rigid bodies, thinned, by what the bodies do."""
    step = max(1, sum(len(one.time) for one in series) // DOTS)
    at = np.s_[::step, joint]
    rigid = np.concatenate([one.predicted[at] - one.parts["friction"][at] for one in series])
    torque = np.concatenate([one.measured[at] for one in series]) - rigid
    speed = np.concatenate([one.speed[at] for one in series])
    opposing = rigid * np.sign(speed)
    light = float(np.median(np.abs(rigid)))
    for colour, those in (
        (PALE, np.abs(opposing) <= light),
        (ORANGE, opposing > light),
        (BLUE, opposing < -light),
    ):
        axes.plot(speed[those], torque[those], ".", ms=2.5, mew=0.0, color=colour)


def average_friction_by_speed(series: Sequence[Series], joint: int) -> tuple[Array, Array]:
    """A model's friction as means over samples of like speed, split at standstill."""
    speed = np.concatenate([one.speed[:, joint] for one in series])
    friction = np.concatenate([one.parts["friction"][:, joint] for one in series])
    found = []
    for own in (speed < 0.0, speed >= 0.0):
        v, f = speed[own], friction[own]
        count = min(BINS, len(v))
        if count:
            parts = np.array_split(np.argsort(v, kind="stable"), count)
            found.append(np.array([[v[part].mean(), f[part].mean()] for part in parts]))
    points = np.concatenate(found) if found else np.zeros((0, 2))
    return points[:, 0], points[:, 1]


def format_panel_title(joint: int, name: str) -> str:
    """The joint's number and its name where the figure's font has its letters."""
    short = name if len(name) <= 16 else name[:15] + "…"
    return f"{joint + 1}  {short}" if name.isascii() and name.isprintable() else str(joint + 1)


def draw_legend(axes: Axes, columns: int = 4) -> None:
    """A legend in one line above the axes, clear of the data."""
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 0.97),
        ncols=columns,
        borderaxespad=0.0,
        borderpad=0.1,
    )


def find_time_gaps(time: Array) -> np.ndarray:
    """Where a log's samples are not consecutive, so that no line is drawn across."""
    steps = np.diff(time)
    return np.flatnonzero(steps > 1.5 * np.median(steps)) + 1 if len(steps) else np.zeros(0, int)


def insert_gaps(signal: Array, breaks: np.ndarray) -> Array:
    """A signal with NaN between its runs."""
    return np.insert(signal, breaks, np.nan) if len(breaks) else signal


def make_report_figure(height: float) -> Figure:
    """An empty figure of the report's width."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height))


def render_figure(figure: Figure, name: str) -> str:
    """A figure as an SVG element with ids of its own, or as a PNG where it is large."""
    buffer = BytesIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    svg = inline_svg(buffer.getvalue().decode("utf-8"), re.sub(r"\W", "-", name, flags=re.ASCII))
    if len(svg) <= LARGEST:
        return svg
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=PNG_DPI, metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<img alt="" src="data:image/png;base64,{data}">'


def inline_svg(document: str, name: str) -> str:
    """An SVG document as an element of a page: no prolog, ids of its own, short numbers."""
    svg = document[document.index("<svg") :].strip()
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    # a hundredth of a point is more than a printer resolves
    return re.sub(r'\bd="[^"]+"', lambda path: _FINER.sub("", path.group()), svg)


_FINER = re.compile(r"(?<=\.\d\d)\d+")
