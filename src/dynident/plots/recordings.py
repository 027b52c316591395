"""Positions and torques of a log over time and frequency, long ones by extremes of stretches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dynident.core.arrays import Array
from dynident.plots.charts import BLUE, GREEN, PALE, RED, Curve, Mark, Panel, Rule, thin_to_extremes
from dynident.plots.coverage import PARTS, trace_spectra
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
) -> Curve:
    """A signal over its samples' time, with a gap between segments."""
    share = POINTS / max(1, sum(stop - start for start, stop in segments))
    parts = []
    for start, stop in segments:
        time = np.arange(start, stop) / rate
        own = thin_to_extremes(time, signal[start:stop], max(4, int(share * (stop - start))))
        parts.append(np.array([*zip(*own, strict=True), (stop / rate, np.nan)]))
    time, drawn = np.concatenate(parts)[:-1].T
    return Curve(time, drawn, colour, width, label=label)


def plot_recording(
    axes: Given,
    names: Sequence[str],
    units: Sequence[tuple[str, str]],
    rate: float,
    segments: Sequence[tuple[int, int]],
    q: Array,
    tau: Array | None,
    qref: Array | None,
) -> Panels:
    """Draw positions, with references, and torques of each joint.

    Parameters
    ----------
    names : sequence of str
        Of the joints.
    units : sequence of (str, str)
        Of each joint's position and torque.
    rate : float
        [Hz]
    segments : sequence of (int, int)
    q, tau, qref : ndarray, shape (samples, n)
        In SI units.
    """
    panels = []
    for j, (name, (position, torque)) in enumerate(zip(names, units, strict=True)):
        lines = [draw_segments(q[:, j], rate, segments, BLUE, 0.9)]
        if qref is not None:
            lines = [
                draw_segments(qref[:, j], rate, segments, PALE, 2.4, "reference"),
                draw_segments(q[:, j], rate, segments, BLUE, 0.9, "measured"),
            ]
        panels.append(Panel(tuple(lines), name, "time [s]", f"position [{position}]", flush=True))
        if tau is not None:
            line = draw_segments(tau[:, j], rate, segments, GREEN, 0.7)
            panels.append(Panel((line,), x="time [s]", y=f"torque [{torque}]", flush=True))
    signals = ("position",) if tau is None else ("position", "torque")
    every = [f"{what} of {name}" for name in names for what in signals]
    with open_panels(axes, every, columns=len(signals), share_x=True) as places:
        for place, panel in zip(places, panels, strict=True):
            draw_panel(place, panel)
    return places


def plot_recording_spectra(
    axes: Given,
    names: Sequence[str],
    units: Sequence[tuple[str, str]],
    rate: float,
    longest: tuple[int, int],
    q: Array,
    tau: Array | None,
    bandwidth: float | None,
) -> Panels:
    """Draw at which frequencies positions and torques of each joint are.

    Parameters
    ----------
    names, units, rate, q, tau
        As of `plot_recording`.
    longest : (int, int)
        The segment that is looked at.
    bandwidth : float, optional
        Drawn as a line [Hz].
    """
    start, stop = longest
    signals = {"position": q} if tau is None else {"position": q, "torque": tau}
    looks = {"position": BLUE, "torque": GREEN}
    panels = {}
    for j, name in enumerate(names):
        for (what, signal), unit in zip(signals.items(), units[j], strict=False):
            own, length = signal[start:stop, j], (stop - start) // PARTS
            note = "" if length > 1 else "no segment is long enough"
            curves, highest = trace_spectra([own], 1.0 / rate, length, [(looks[what], 0.9, "")])
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
