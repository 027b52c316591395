"""Time stamps onto one uniform clock: gaps cut, jitter resampled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError

GAP = 2.5
"""A pause of more than so many periods is a gap; nothing is bridged over it."""

JITTER = 1e-3
"""Intervals may differ from the period by this part of it before samples are moved."""

SHORTEST = 10
"""Runs between two gaps of fewer samples are dropped: no filter settles in them."""

DIGITS = 9
"""Time stamps may be printed with up to this many decimals."""

BLOCK = 1 << 16
"""Samples resampled at a time."""

OVERLAP = 64
"""Samples on each side of a block; a cubic spline forgets 0.27 to the power of these."""


@dataclass(frozen=True)
class Clock:
    """The uniform clock behind the time stamps of one log.

    Attributes
    ----------
    rate : float
        Samples per second [Hz].
    runs : tuple of (start, stop)
        Samples of the log without a gap between them.
    uniform : bool
        Whether the samples already lie on the clock; otherwise they are resampled.
    warnings : tuple of str
    """

    rate: float
    runs: tuple[tuple[int, int], ...]
    uniform: bool
    warnings: tuple[str, ...] = ()


def find_clock(time: Array, name: str, place: Callable[[int], str]) -> Clock:
    """Find the clock of a log from its time stamps.

    Parameters
    ----------
    time : ndarray, shape (samples,)
        Finite time stamps [s].
    name : str
        What warnings call the log.
    place : callable
        What errors call a sample, by its index: file, row and column.

    Returns
    -------
    Clock

    Raises
    ------
    InputError
        For fewer than two samples, for a time stamp that repeats or goes backward, and
        when only fragments remain between the gaps.
    """
    if len(time) < 2:
        raise InputError(f"{name}: a clock needs two time stamps, found {len(time)}")
    steps = np.diff(time)
    _refuse_backward(time, steps, place)
    median = float(np.median(steps))
    cuts = np.flatnonzero(steps > GAP * median)
    runs, warnings = _cut(steps, cuts, len(time), name, place)
    period = _line(time, runs)
    if period:
        return Clock(_tidy(1.0 / period), runs, True, warnings)
    lasted = steps[steps <= GAP * median]
    # samples that were lost one by one must not stretch the period
    rate = _tidy(1.0 / float(np.mean(lasted[lasted < 1.5 * median])))
    off = np.abs(lasted * rate - 1.0)
    if off.max() <= JITTER:
        return Clock(_tidy(1.0 / float(np.mean(lasted))), runs, True, warnings)
    worst, rms = float(off.max()), float(np.sqrt(np.mean(off**2)))
    jitter = (
        f"{name}: time stamps jitter by up to {1e3 * worst / rate:.3g} ms "
        f"({100 * worst:.3g} % of the period), {1e3 * rms / rate:.3g} ms rms "
        f"({100 * rms:.3g} %): all signals resampled at {rate:.6g} Hz by a cubic spline"
    )
    return Clock(rate, runs, False, (*warnings, jitter))


def onto_clock(signal: Array, time: Array, clock: Clock) -> Array:
    """Put a signal onto the clock, run after run.

    Parameters
    ----------
    signal : ndarray, shape (samples, columns)
    time : ndarray, shape (samples,)
        The time stamps that the clock was found from [s].
    clock : Clock

    Returns
    -------
    ndarray, shape (samples on the clock, columns)
        The signal itself where its samples already lie on the clock.
    """
    if clock.uniform and clock.runs == ((0, len(signal)),):
        return signal
    segments = clock_segments(time, clock)
    result = np.empty((segments[-1][1], signal.shape[1]))
    for (start, stop), (first, last) in zip(clock.runs, segments, strict=True):
        if clock.uniform:
            result[first:last] = signal[start:stop]
        else:
            _resample(signal[start:stop], time[start:stop], clock.rate, result[first:last])
    return result


def clock_segments(time: Array, clock: Clock) -> tuple[tuple[int, int], ...]:
    """Where each run lies among the samples on the clock, as (start, stop)."""
    segments = []
    end = 0
    for start, stop in clock.runs:
        span = float(time[stop - 1] - time[start])
        count = stop - start if clock.uniform else int(span * clock.rate + 1e-6) + 1
        segments.append((end, end + count))
        end += count
    return tuple(segments)


def _refuse_backward(time: Array, steps: Array, place: Callable[[int], str]) -> None:
    wrong = np.flatnonzero(steps <= 0.0)
    if not wrong.size:
        return
    at = int(wrong[0]) + 1
    what = "repeats" if steps[at - 1] == 0.0 else "goes back from"
    more = f" and {wrong.size - 1} more rows" if wrong.size > 1 else ""
    raise InputError(
        f"{place(at)}{more}: time {float(time[at])!r} {what} {float(time[at - 1])!r}; "
        "delete such rows, or leave the time out and give a rate"
    )


def _cut(
    steps: Array,
    cuts: np.ndarray[tuple[int], np.dtype[np.intp]],
    samples: int,
    name: str,
    place: Callable[[int], str],
) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    """Runs between the gaps, and what is said of the gaps."""
    if not cuts.size:
        return ((0, samples),), ()
    edges = [0, *(int(at) + 1 for at in cuts), samples]
    runs = tuple(pairwise(edges))
    kept = tuple((start, stop) for start, stop in runs if stop - start >= SHORTEST)
    if not kept:
        raise InputError(
            f"{name}: no run of {SHORTEST} samples is without a gap; check the time column"
        )
    worst = int(cuts[np.argmax(steps[cuts])])
    gaps = "1 gap" if cuts.size == 1 else f"{cuts.size} gaps"
    cut = (
        f"{name}: {gaps} in time, {steps[cuts].sum():.4g} s together, the longest "
        f"{steps[worst]:.4g} s before {place(worst + 1)}: "
        f"cut into {len(kept)} segments, nothing is bridged"
    )
    if len(kept) == len(runs):
        return kept, (cut,)
    lost = samples - sum(stop - start for start, stop in kept)
    dropped = (
        f"{name}: {len(runs) - len(kept)} runs of fewer than {SHORTEST} samples between "
        f"gaps dropped, {lost} samples together"
    )
    return kept, (cut, dropped)


def _line(time: Array, runs: tuple[tuple[int, int], ...]) -> float | None:
    """The period, where the stamps are a uniform clock's but for their printed digits."""
    covariance = variance = 0.0
    for start, stop in runs:
        count = np.arange(stop - start) - 0.5 * (stop - start - 1)
        covariance += float(count @ (time[start:stop] - time[start]))
        variance += float(count @ count)
    period = covariance / variance
    quantum = _quantum(time)
    for start, stop in runs:
        residual = time[start:stop] - time[start]
        residual -= period * np.arange(stop - start)
        if np.ptp(residual) > 1.05 * quantum:
            return None
    return period


def _quantum(time: Array) -> float:
    """The unit of the last decimal that the time stamps print [s]."""
    resolution = float(np.spacing(np.max(np.abs(time))))
    for digits in range(DIGITS + 1):
        unit = 10.0**-digits
        if unit <= 4.0 * resolution:
            break
        # a few stamps tell most logs apart before all have to be looked at
        if all(
            np.max(np.abs(part - np.round(part, digits))) <= 4.0 * resolution
            for part in (time[:100], time)
        ):
            return unit
    return 4.0 * resolution


def _tidy(rate: float) -> float:
    """A rate without the last digits, which the rounding of the stamps made."""
    return float(f"{rate:.9g}")


def _resample(signal: Array, time: Array, rate: float, result: Array) -> None:
    """Fill `result` with the signal at uniform times from the first stamp on."""
    # loaded here, for few logs jitter and it takes a while to import
    from scipy.interpolate import make_interp_spline

    own = time - time[0]
    for first in range(0, len(result), BLOCK):
        wanted = np.arange(first, min(first + BLOCK, len(result))) / rate
        low = max(int(np.searchsorted(own, wanted[0])) - OVERLAP, 0)
        high = int(np.searchsorted(own, wanted[-1])) + OVERLAP
        spline = make_interp_spline(own[low:high], signal[low:high], k=3)
        result[first : first + len(wanted)] = spline(wanted)
