"""Positions and torques of a log over time, long ones by the extremes of stretches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dynident.core.arrays import Array
from dynident.plots.panels import Panels, open_panels, title_panel
from dynident.plots.style import BLUE, GREEN, PALE, draw_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynident.plots.panels import Given

POINTS = 4000
"""Of a line; of what has more samples the lowest and the highest of each stretch are drawn."""


def thin_to_extremes(time: Array, signal: Array, points: int = POINTS) -> tuple[Array, Array]:
    """The lowest and the highest value of each stretch of a signal, in the order of time.

    Parameters
    ----------
    time, signal : ndarray, shape (samples,)
    points : int
        About so many are kept; all of a shorter signal.
    """
    if len(signal) <= points:
        return time, signal
    edges = np.linspace(0, len(signal), points // 2 + 1).astype(int)
    kept = [
        at
        for start, stop in pairwise(edges.tolist())
        for at in sorted(
            {start + int(np.argmin(signal[start:stop])), start + int(np.argmax(signal[start:stop]))}
        )
    ]
    return time[kept], signal[kept]


def draw_segments(
    axes: Axes, signal: Array, rate: float, segments: Sequence[tuple[int, int]], **look: object
) -> None:
    """A signal over its samples' time, with a gap between segments."""
    share = POINTS / max(1, sum(stop - start for start, stop in segments))
    parts = []
    for start, stop in segments:
        time = np.arange(start, stop) / rate
        own = thin_to_extremes(time, signal[start:stop], max(4, int(share * (stop - start))))
        parts.append(np.array([*zip(*own, strict=True), (stop / rate, np.nan)]))
    time, drawn = np.concatenate(parts)[:-1].T
    axes.plot(time, drawn, **look)  # type: ignore[arg-type]


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
    """Positions, with references, and torques of each joint.

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
    signals = ("position",) if tau is None else ("position", "torque")
    every = [f"{what} of {name}" for name in names for what in signals]
    with open_panels(axes, every, columns=len(signals), share_x=True) as panels:
        for j, name in enumerate(names):
            own = panels[len(signals) * j : len(signals) * (j + 1)]
            title_panel(own[0], name)
            if qref is not None:
                look = {"color": PALE, "lw": 2.4, "label": "reference"}
                draw_segments(own[0], qref[:, j], rate, segments, **look)
            draw_segments(own[0], q[:, j], rate, segments, color=BLUE, lw=0.9, label="measured")
            if qref is not None:
                draw_legend(own[0])
            own[0].set_ylabel(f"position [{units[j][0]}]")
            if tau is not None:
                draw_segments(own[1], tau[:, j], rate, segments, color=GREEN, lw=0.7)
                own[1].set_ylabel(f"torque [{units[j][1]}]")
            for panel in own:
                panel.set_xlabel("time [s]")
                panel.margins(x=0.0)
    return panels
