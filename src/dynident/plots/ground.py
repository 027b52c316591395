"""What bears a floating robot: forces of contacts over time, and where they stood."""

from __future__ import annotations

from itertools import cycle

import numpy as np

from dynident.plots.data import Ground
from dynident.plots.style import (
    BLUE,
    GREEN,
    GREY,
    LINES,
    ORANGE,
    PALE,
    PINK,
    RED,
    WIDTH,
    Line,
    add_panels,
    apply_style,
    draw_legend,
    find_time_gaps,
    insert_gaps,
    make_report_figure,
)
from dynident.plots.svg import render_figure

FEET: list[Line] = [
    (colour, dashes)
    for dashes in (LINES[0][1], LINES[-1][1])
    for colour in (BLUE, ORANGE, GREEN, PINK, RED, GREY)
]
"""Colours and dashes of contacts."""


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
