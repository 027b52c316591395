"""Positions and torques of a log over time and frequency, long ones by extremes of stretches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynident.core.arrays import Array
from dynident.plots.charts import BLUE, GREEN, PALE, RED, Curve, Mark, Panel, Rule, thin_to_extremes
from dynident.plots.coverage import PARTS, trace_spectra
from dynident.plots.data import PlottedLog
from dynident.plots.panels import Panels, draw_panel, open_panels

if TYPE_CHECKING:
    from dynident.plots.panels import Given

POINTS = 4000
"""Of a line; of what has more samples the lowest and the highest of each stretch are drawn."""


def draw_segments(
    signal: Array,
    rate: float,
    segments: Sequence[tuple[int, int]],
    colour: str,
    width: float,
    label: str = "",
    points: int = POINTS,
) -> Curve:
    """A signal over its samples' time, with a gap between segments."""
    share = points / max(1, sum(stop - start for start, stop in segments))
    parts = []
    for start, stop in segments:
        time = np.arange(start, stop) / rate
        own = thin_to_extremes(time, signal[start:stop], max(4, int(share * (stop - start))))
        parts.append(np.array([*zip(*own, strict=True), (stop / rate, np.nan)]))
    time, drawn = np.concatenate(parts)[:-1].T
    return Curve(time, drawn, colour, width, label=label)


def build_recording_panels(
    names: Sequence[str], units: Sequence[tuple[str, str]], log: PlottedLog, points: int = POINTS
) -> list[Panel]:
    """Position, with its reference, and torque of each joint over time.

    Parameters
    ----------
    names : sequence of str
        Of the joints.
    units : sequence of (str, str)
        Of each joint's position and torque.
    points : int
        Of a line, about.
    """
    panels, shown = [], (log.rate, log.segments)
    for j, (name, (position, torque)) in enumerate(zip(names, units, strict=True)):
        lines = [draw_segments(log.q[:, j], *shown, BLUE, 0.9, points=points)]
        if log.qref is not None:
            lines = [
                draw_segments(log.qref[:, j], *shown, PALE, 2.4, "reference", points),
                draw_segments(log.q[:, j], *shown, BLUE, 0.9, "measured", points),
            ]
        panels.append(Panel(tuple(lines), name, "time [s]", f"position [{position}]", flush=True))
        if log.torque != "none":
            line = draw_segments(log.tau[:, j], *shown, GREEN, 0.7, points=points)
            panels.append(Panel((line,), x="time [s]", y=f"torque [{torque}]", flush=True))
    return panels


def plot_recording(
    axes: Given, names: Sequence[str], units: Sequence[tuple[str, str]], log: PlottedLog
) -> Panels:
    """Draw the same."""
    panels = build_recording_panels(names, units, log)
    signals = ("position",) if log.torque == "none" else ("position", "torque")
    every = [f"{what} of {name}" for name in names for what in signals]
    with open_panels(axes, every, columns=len(signals), share_x=True) as places:
        for place, panel in zip(places, panels, strict=True):
            draw_panel(place, panel)
    return places


def plot_recording_spectra(
    axes: Given,
    names: Sequence[str],
    units: Sequence[tuple[str, str]],
    log: PlottedLog,
    bandwidth: float | None,
) -> Panels:
    """Draw at which frequencies positions and torques of each joint are, in the longest segment.

    Parameters
    ----------
    names, units
        As of `build_recording_panels`.
    bandwidth : float, optional
        Drawn as a line [Hz].
    """
    start, stop = max(log.segments, key=lambda run: run[1] - run[0])
    signals = {"position": log.q}
    if log.torque != "none":
        signals["torque"] = log.tau
    looks = {"position": BLUE, "torque": GREEN}
    panels = {}
    for j, name in enumerate(names):
        for (what, signal), unit in zip(signals.items(), units[j], strict=False):
            own, length = signal[start:stop, j], (stop - start) // PARTS
            note = "" if length > 1 else "no segment is long enough"
            curves, highest = trace_spectra([own], 1.0 / log.rate, length, [(looks[what], 0.9, "")])
            marks: tuple[Mark, ...] = curves
            if bandwidth is not None:
                rule = Rule(bandwidth, RED, 0.8, True, standing=True, label="bandwidth")
                marks, highest = (rule, *curves), max(highest, 1.1 * bandwidth)
            panels[f"{what} of {name}"] = Panel(
                marks,
                name if what == "position" else "",
                "frequency [Hz]",
                f"{what} [{unit}/√Hz]",
                x_range=(0.0, highest),
                log=not note,
                note=note,
            )
    with open_panels(axes, list(panels), columns=len(signals)) as places:
        for place, panel in zip(places, panels.values(), strict=True):
            draw_panel(place, panel)
    return places
