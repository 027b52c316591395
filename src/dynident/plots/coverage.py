"""Where a log went, and how fast, beside the limits; and at which frequencies errors are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Booleans, find_runs
from dynident.core.series import TorqueSeries
from dynident.plots.charts import (
    BLUE,
    ORANGE,
    PALE,
    RED,
    Chart,
    Curve,
    Dots,
    Mark,
    Panel,
    Rule,
    label_joint,
)
from dynident.plots.curves import list_measured
from dynident.plots.data import Channel

DOTS = 800
"""Of a joint's motion."""
RESOLUTION = 150
"""Frequencies, about, of a spectrum."""
PARTS = 8
"""Of a log, at least, whose periodograms are averaged; as many again overlap them."""
DEEPEST = 1e-4
"""Share of its greatest value below which a spectrum is not drawn."""


class Range(NamedTuple):
    """What a joint may do; infinite or NaN where nothing is known."""

    lower: float
    upper: float
    speed: float


def build_coverage(
    name: str, straight: bool, q: Array, dq: Array, used: Booleans, allowed: Range
) -> Panel:
    """Speed of a joint against its position, with its limits.

    Parameters
    ----------
    straight : bool
        Whether it slides.
    q, dq : ndarray, shape (samples,)
        [rad or m], [rad/s or m/s]
    used : ndarray of bool, shape (samples,)
        Whether rows at a sample are fitted.
    """
    step = max(1, len(q) // DOTS)
    q, dq, used = q[::step], dq[::step], used[::step]
    marks: list[Mark] = [
        Dots(q[~used], dq[~used], PALE, label="not fitted"),
        Dots(q[used], dq[used], BLUE, label="fitted"),
    ]
    ends = [Rule(at, RED, 0.8, True, standing=True) for at in allowed[:2] if math.isfinite(at)]
    if math.isfinite(allowed.speed):
        ends += [Rule(at, RED, 0.8, True) for at in (-allowed.speed, allowed.speed)]
    unit = "m" if straight else "rad"
    return Panel((*ends, *marks), name, f"position [{unit}]", f"speed [{unit}/s]")


def chart_spectra(
    channels: Sequence[Channel], series: TorqueSeries, joints: Sequence[str]
) -> Chart:
    """Spectra of all channels of which a log has torques."""
    panels = (build_spectrum(series, *each) for each in list_measured(channels, series))
    titled = (replace(panel, title=label_joint(panel.title, joints)) for panel in panels)
    return Chart(tuple(titled), columns=3, together=True)


def build_spectrum(series: TorqueSeries, column: int, channel: Channel) -> Panel:
    """Amplitude densities of a channel's measured torque and of its residual."""
    found = series.stretch
    axes = channel.name, "frequency [Hz]", f"density [{channel.unit}/√Hz]"
    left = np.zeros(0) if found is None else found.residual[:, column]
    runs = find_runs(np.isfinite(left))
    start, stop = max(runs, key=lambda run: run[1] - run[0], default=(0, 0))
    length = (stop - start) // PARTS
    if found is None or length < 2:
        return Panel((), *axes, note="no run is long enough")
    both = (found.measured[start:stop, column], left[start:stop])
    looks = ((PALE, 2.4, series.torque), (ORANGE, 0.9, "residual"))
    marks, highest = trace_spectra(both, found.step, length, looks)
    return Panel(marks, *axes, flush=True, x_range=(0.0, highest), log=True)


def trace_spectra(
    signals: Sequence[Array], step: float, length: int, looks: Sequence[tuple[str, float, str]]
) -> tuple[tuple[Curve, ...], float]:
    """Amplitude densities of signals, and up to which frequency there is anything [Hz].

    Parameters
    ----------
    step : float
        Between their samples [s].
    length : int
        Most samples of a periodogram.
    looks : sequence of (str, float, str)
        Colour, width and label of each.
    """
    both = [signal - np.mean(signal) for signal in signals]
    # first as fine as the log allows, then as fine as can be seen where there is anything
    for _ in range(2):
        pairs = [estimate_density(signal, step, length) for signal in both]
        floor = DEEPEST * max((float(np.max(each, initial=0.0)) for _, each in pairs), default=0.0)
        heard = [hz[density > floor] for hz, density in pairs]
        highest = max((float(hz.max()) for hz in heard if len(hz)), default=1.0)
        length = min(length, round(RESOLUTION / (highest * step)))
    marks = tuple(
        Curve(hz, np.where(density > floor, density, np.nan), colour, width, label=label)
        for (hz, density), (colour, width, label) in zip(pairs, looks, strict=True)
    )
    return marks, highest


def estimate_density(signal: Array, step: float, length: int) -> tuple[Array, Array]:
    """Amplitude density by Welch's method: frequencies [Hz], and units of the signal by sqrt(Hz).

    Periodograms of so many samples under a Hann window, over halves that overlap, averaged;
    one-sided. Empty where the signal is shorter.
    """
    if not 2 <= length <= len(signal):
        return np.zeros(0), np.zeros(0)
    window = np.hanning(length + 1)[:-1]
    starts = range(0, len(signal) - length + 1, max(1, length // 2))
    powers = [np.abs(np.fft.rfft(window * signal[a : a + length])) ** 2 for a in starts]
    density = np.sqrt(2.0 * step * np.mean(powers, axis=0) / np.sum(window**2))
    hz: Array = np.fft.rfftfreq(length, step).astype(np.float64)
    return hz[1:], density[1:]
