"""Where a motion is made again: in another log, or later in the same one."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.filters.blocks import find_run_extremes, take_every

REPEATS = 0.9
"""Correlation of a motion with itself a period later, below which it is not periodic."""
FALLEN = 0.5
"""Correlation below which a lag has left the first maximum, that at none."""
SIMILAR, SAMPLED = 2.0, 1e-3
"""How much worse than the best repetition a shorter one may be: times, and plus."""
TINY = float(np.finfo(float).tiny)
AGREE = 0.01
"""Share of its range by which a joint's position may differ where a motion is made again: ten times
what those of a LWR4+ differ by that makes one twice."""
MOST = 0.8
"""Share of a log's motion that has to be made again: what is left may be a start, or an end."""
COARSE = 50.0
"""Rate at which lags are tried: between two of them a joint that crosses its range in a second
moves by `AGREE` [Hz]."""
STILL = 0.01
"""Share of the largest range below which a joint's is that of its encoder's noise."""
QUARTER = 0.25
"""Share of a log that has to be left beside itself a period later."""
NEAR = 3.0
"""Times `AGREE` within which positions say how a lag has to change."""
REFINEMENTS = 20
SETTLED = 1e-6
"""Change of a lag that is none [s]."""


class RepeatedStretch(NamedTuple):
    """Some samples of a log in a row."""

    begin: float
    """Of the first sample, from the log's own first [s]."""
    rate: float
    """[Hz]"""
    q: Array
    dq: Array
    """`q`, `dq`: shape (samples, n)."""

    @property
    def time(self) -> Array:
        """From the log's first sample, shape (samples,) [s]."""
        return np.asarray(self.begin + np.arange(len(self.q)) / self.rate)

    def thin(self, rate: float) -> RepeatedStretch:
        """About as many samples a second as that, or all where they are fewer."""
        step = max(1, int(self.rate / rate))
        return RepeatedStretch(self.begin, self.rate / step, *take_every((self.q, self.dq), step))


class RepeatedMotion(NamedTuple):
    """A motion that is made again."""

    lag: float
    """From its time in one stretch to that in the other [s]."""
    same: Booleans
    """Samples of the one stretch in which it is, shape (samples,)."""
    share: float
    """Of the one stretch's motion."""


def find_repeated_motion(
    one: RepeatedStretch, other: RepeatedStretch
) -> tuple[RepeatedMotion | None, RepeatedMotion | None]:
    """Where most of a stretch's motion is made in another one, and the other way round.

    None where it is not: a long log may make all of a short one's motion and much beside it.
    """
    lag = find_lag(one, other)
    first = match_at_lag(one, other, lag, whole=True)
    return first, match_at_lag(other, one, -lag if first is None else -first.lag, whole=True)


def find_period(one: RepeatedStretch) -> RepeatedMotion | None:
    """A stretch that repeats, beside itself a period later; None where it does not.

    Of lags beyond the first without correlation, and as `find_repetition_lag` the first at which
    it repeats as well as it ever does; but up to three quarters of its length, as of two periods
    filters take their edges.
    """
    coarse = one.thin(COARSE)
    x = coarse.q * scale_to_ranges(one, one)
    lags, apart = measure_distances(x, x, QUARTER)
    size = 2.0 * float(np.sum(np.var(x, axis=0)))
    lags, apart = lags[lags >= 0], apart[lags >= 0] / max(size, TINY)
    fallen = np.flatnonzero(apart > 1.0 - FALLEN)
    inside = np.arange(max(1, int(fallen[0])) if len(fallen) else len(apart), len(apart) - 1)
    least = inside[(apart[inside] <= apart[inside - 1]) & (apart[inside] < apart[inside + 1])]
    least = least[apart[least] <= 1.0 - REPEATS]
    if not len(least):
        return None
    good = least[apart[least] <= SIMILAR * float(apart[least].min()) + SAMPLED]
    return match_at_lag(one, one, float(lags[good[0]]) / coarse.rate, whole=False)


def find_lag(one: RepeatedStretch, other: RepeatedStretch) -> float:
    """The lag at which the positions of two stretches are nearest to each other [s].

    Of lags at which the samples that both have are half of the shorter one.
    """
    rate = min(COARSE, one.rate, other.rate)
    scale = scale_to_ranges(one, other)
    a, b = (sample_positions(each, rate) * scale for each in (one, other))
    lags, apart = measure_distances(a, b, 0.5)
    return float(lags[int(np.argmin(apart))]) / rate + other.begin - one.begin


def measure_distances(a: Array, b: Array, least: float) -> tuple[Integers, Array]:
    """Mean squared differences of two signals, all columns together, at all lags of samples.

    ``sum_k |a_k - b_(k+L)|^2`` by one transform, over the pairs at a lag; infinite where these are
    less than the least share of the shorter signal.
    """
    middle = a.mean(axis=0)
    a, b = a - middle, b - middle
    size = 1 << int(np.ceil(np.log2(len(a) + len(b))))
    pairs = (np.fft.rfft(x, size).conj() * np.fft.rfft(y, size) for x, y in zip(a.T, b.T))
    cross = np.fft.irfft(functools.reduce(np.add, pairs), size)
    lags = np.arange(1 - len(a), len(b))
    first, last = np.maximum(0, -lags), np.minimum(len(a), len(b) - lags)
    energy_a, energy_b = (np.concatenate([[0.0], np.cumsum(np.sum(x * x, axis=1))]) for x in (a, b))
    squares = energy_a[last] - energy_a[first] + energy_b[last + lags] - energy_b[first + lags]
    count = last - first
    apart = (squares - 2.0 * cross[lags]) / count
    apart[count < least * min(len(a), len(b))] = np.inf
    return lags, apart


def scale_to_ranges(one: RepeatedStretch, other: RepeatedStretch) -> Array:
    """One over the ranges of the joints in two stretches; zero of those that do not move."""
    both = (find_run_extremes(each.q, [(0, len(each.q))]) for each in (one, other))
    ranges = np.max([high[0] - low[0] for low, high in both], axis=0)
    moves = ranges > max(STILL * float(ranges.max(initial=0.0)), TINY)
    return np.where(moves, 1.0 / np.where(moves, ranges, 1.0), 0.0)


def sample_positions(stretch: RepeatedStretch, rate: float) -> Array:
    """Positions at another rate, shape (any, n)."""
    count = int((len(stretch.q) - 1) / stretch.rate * rate) + 1
    return interpolate_linearly(stretch.q, np.arange(float(count)) * (stretch.rate / rate))


def interpolate_linearly(x: Array, place: Array) -> Array:
    """Columns between their samples."""
    samples = np.arange(len(x))
    return np.column_stack([np.interp(place, samples, column) for column in x.T])


def match_at_lag(
    one: RepeatedStretch, other: RepeatedStretch, lag: float, whole: bool
) -> RepeatedMotion | None:
    """A motion at about a lag; None where most of it is not made there.

    The lag follows from the positions by Gauss and Newton: ``q(t) = q'(t + lag)``. Of the `whole`
    what has no partner counts as motion that is not made again.
    """
    scale = scale_to_ranges(one, other)
    few = one.thin(COARSE)
    motion = np.sum(np.abs(few.dq) * scale, axis=1)
    for _ in range(REFINEMENTS):
        place, inside = find_partners(few, other, lag)
        speed = interpolate_linearly(other.dq, place) * scale
        apart = few.q * scale - interpolate_linearly(other.q, place) * scale
        near = inside & np.all(np.abs(apart) <= NEAR * AGREE, axis=1)
        stiffness = float(np.sum(speed[near] ** 2))
        # most pairs of logs are told apart here, by few samples
        asked = float(np.sum(motion if whole else motion[inside]))
        if float(np.sum(motion[near])) <= 0.5 * MOST * asked or stiffness == 0.0:
            return None
        change = float(np.sum(speed[near] * apart[near])) / stiffness
        lag += change
        if abs(change) < SETTLED:
            break
    place, inside = find_partners(one, other, lag)
    apart = one.q * scale - interpolate_linearly(other.q, place) * scale
    same = inside & np.all(np.abs(apart) <= AGREE, axis=1)
    # by how far it moves and not by time, so that two logs that mostly stand are not alike
    motion = np.sum(np.abs(one.dq) * scale, axis=1)
    asked = float(np.sum(motion if whole else motion[inside]))
    share = float(np.sum(motion[same])) / max(asked, TINY)
    return RepeatedMotion(lag, same, share) if share >= MOST else None


def find_partners(
    one: RepeatedStretch, other: RepeatedStretch, lag: float
) -> tuple[Array, Booleans]:
    """Where one stretch's samples are among those of another, and whether they are within it."""
    place = (one.time + lag - other.begin) * other.rate
    return np.asarray(place), (place >= 0.0) & (place <= len(other.q) - 1)
