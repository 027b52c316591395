"""What bears a floating robot: forces of contacts over time, and where they stood."""

from __future__ import annotations

from itertools import cycle

import numpy as np

from dynident.core.series import GroundSeries
from dynident.plots.charts import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PINK,
    RED,
    Bars,
    Chart,
    Curve,
    Dots,
    Line,
    Mark,
    Panel,
    Rule,
    insert_gaps,
)
from dynident.plots.curves import prepare_curves

FEET: list[Line] = [
    (colour, dashed)
    for dashed in (False, True)
    for colour in (BLUE, ORANGE, GREEN, PINK, RED, GREY)
]
"""Colours and dashes of contacts."""


def chart_contact_forces(ground: GroundSeries) -> Chart:
    """Contact forces of a floating robot over time, and their sum against its weight."""
    curve, styles = prepare_curves(ground.time, ground.breaks), assign_contact_styles(ground)
    each = [
        curve(force, styles[name][0], 0.9, dashed=styles[name][1], label=name)
        for name, force in ground.forces.items()
    ]
    panels = [Panel(tuple(each), x="time [s]", y="of each contact [N]", height=170.0, flush=True)]
    if len(ground.total):
        whole = (
            curve(ground.total, PALE, 2.4, label="measured"),
            curve(ground.asked, BLUE, 0.9, label="model"),
            Rule(ground.weight, GREY, 0.8, dashed=True, label="weight"),
        )
        panels.append(Panel(whole, x="time [s]", y="of all [N]", height=170.0, flush=True))
    return Chart(tuple(panels), shared=True)


def chart_stances(ground: GroundSeries) -> Chart:
    """When the contacts bore whose forces nobody measured, a row each."""
    styles = assign_contact_styles(ground)
    names = [name for name in ground.contacts if name not in ground.forces]
    bars = []
    for row, name in enumerate(reversed(names)):
        own = [each for each in ground.stances if each.contact == name]
        low, high = (np.array([getattr(each, end) for each in own]) for end in ("since", "until"))
        bars.append(Bars(np.full(len(own), row), low, high, (styles[name][0],), 9.0, lying=True))
    panel = Panel(
        tuple(bars),
        x="time [s]",
        height=30.0 * len(names),
        x_range=(float(ground.time[0]), float(ground.time[-1])),
        y_range=(-0.6, len(names) - 0.4),
        y_names=tuple(reversed(names)),
    )
    return Chart((panel,))


def assign_contact_styles(ground: GroundSeries) -> dict[str, Line]:
    """Colour and dashes of each contact, the same in every figure."""
    return dict(zip(ground.contacts, cycle(FEET), strict=False))


def chart_footholds(ground: GroundSeries) -> Chart:
    """Where a floating robot's contacts stood, from above, and the path of its base."""
    x, y = (insert_gaps(part, ground.breaks) for part in ground.path.T)
    marks: list[Mark] = [
        Curve(x, y, PALE, 1.2, label="base"),
        Dots(ground.path[:1, 0], ground.path[:1, 1], GREY, 5.0, "ring"),
    ]
    styles, named = assign_contact_styles(ground), set[str]()
    for stance in ground.stances:
        colour, _ = styles[stance.contact]
        label = "" if stance.contact in named else stance.contact
        named.add(stance.contact)
        middle = np.mean(stance.track, axis=0, keepdims=True)
        marks += [
            Curve(stance.track[:, 0], stance.track[:, 1], colour, 0.8),
            Dots(middle[:, 0], middle[:, 1], colour, 4.0, label=label),
        ]
    return Chart((Panel(tuple(marks), x="x [m]", y="y [m]", equal=True),))
