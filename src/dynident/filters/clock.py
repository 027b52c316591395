"""Time stamps onto one uniform clock: gaps bridged or cut, jitter understood."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.errors import InputError
from dynident.core.options import Options
from dynident.core.schema import Number
from dynident.core.store import ROWS, Store
from dynident.core.text import format_count
from dynident.filters.spline import interpolate_cubically

MOST_CUT = 0.1
"""Where a larger part of the rows is bad, it is not the rows that are damaged."""
GAP = 2.5
"""A pause of more than so many periods is a gap; what is lost in a shorter one is filled in."""

LATE = 1.5
"""After a pause of more than so many periods a sample may have been lost, or be late."""

BRIDGE = 0.5 / 50.0
"""Gaps of up to this are bridged: half a period of the 50 Hz that are left of positions [s].

They are `BANDWIDTH` times `POSITION_FACTOR` of the preparation, which builds on this module: at the
usual bandwidth of 10 Hz the positions are low-passed at 5 times that. What has no higher frequency
is told by samples half a period apart, so the gap hides nothing that the filters keep.
"""

BRIDGED_PERIODS = 2.0
"""The same in periods, at low rates: there the position filter stops at a quarter of the rate."""

BACKLOG = 64
"""Samples that may be held up in a row and arrive together."""

JITTER = 1e-3
"""Intervals may differ from the period by this part of it before samples are moved."""

SMALL_JITTER = 1e-2
"""Part of the period up to which jitter of samples that are equidistant goes without saying: stamps
of single precision, or of so many digits, have it."""

STEADY = 100
"""Samples of which the mean rate is taken, to see whether it stays."""

DRIFT = 1e-2
"""Samples are not equidistant by themselves where their mean rate changes by this part."""

WINDOWS = 1 << 16
"""Fourth differences that are compared at most."""

SHORTEST = 10
"""Runs between two gaps of fewer samples are dropped: no filter settles in them."""

DIGITS = 9
"""Time stamps may be printed with up to this many decimals."""

BLOCK = 1 << 16
"""Samples resampled at a time."""

OVERLAP = 64
"""Samples on each side of a block; a cubic spline forgets 0.27 to the power of these."""

MOST = 1e9
"""Samples that a gap is counted to have lost at most."""

MOST_FILLED = 100
"""Samples on the clock for each of the log; where there are more, the clock is not the log's."""

LONGEST_BRIDGE = 1.0
"""No spline knows what an arm did in more [s]."""


@dataclass(frozen=True)
class ClockOptions(Options):
    """How the rows of a log become samples on one uniform clock."""

    clock: Annotated[
        Literal["auto", "stamps", "uniform", "rate"],
        "where time stamps jitter, they are the samples' own instants (`stamps`) or those of "
        "their arrival, and the samples equidistant (`uniform`); `auto` takes what makes the "
        "positions smoother; `rate` does so, too, of stamps that are wrong by a factor, and takes "
        "the stated `rate`",
    ] = "auto"
    bridge: Annotated[
        Annotated[Number, Field(ge=0.0, le=LONGEST_BRIDGE)] | None,
        f"gaps of up to this are bridged by a cubic spline, longer ones cut the log; {BRIDGE:g} or "
        f"{BRIDGED_PERIODS:g} periods, whichever is longer, by default, 0 for never [s]",
    ] = None
    bad_rows: Annotated[
        Literal["refuse", "cut"],
        "rows with values that are not finite numbers of sensible size, and time stamps that "
        "repeat or go back",
    ] = "refuse"

    def longest_bridge(self, period: float) -> float:
        """Pauses of more than this cut the log [s]."""
        bridge = self.bridge
        if bridge is None:
            bridge = max(BRIDGE, BRIDGED_PERIODS * period)
        return (1.0 + 1e-6) * max(bridge, GAP * period)


@dataclass(frozen=True)
class Clock:
    """The uniform clock behind the time stamps of one log."""

    rate: float
    """Samples per second [Hz]."""
    instants: Array
    """When each sample of the log was taken [s], shape (samples,)."""
    runs: tuple[tuple[int, int], ...]
    """Tuple of (start, stop). Samples of the log between the gaps that are not bridged."""
    starts: tuple[float, ...]
    """Time stamps of the first sample of each run [s]."""
    uniform: bool
    """Whether the samples lie on the clock, and only what is missing has to be filled in; otherwise
    all of them are resampled."""
    warnings: tuple[str, ...] = ()

    @property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """Where each run lies among the samples on the clock, as (start, stop)."""
        segments = []
        end = 0
        for start, stop in self.runs:
            span = float(self.instants[stop - 1] - self.instants[start])
            count = int(span * self.rate + (0.5 if self.uniform else 1e-6)) + 1
            segments.append((end, end + count))
            end += count
        return tuple(segments)

    def at_rate(self, rate: float) -> Clock:
        """The clock whose samples are so many a second, where that of the stamps is wrong."""
        slower = self.rate / rate
        starts = tuple(slower * start for start in self.starts)
        return replace(self, rate=rate, instants=slower * self.instants, starts=starts)

    @property
    def places(self) -> Array:
        """Where the samples of all runs lie among the samples on the clock, shape (samples,)."""
        pairs = zip(self.runs, self.segments, strict=True)
        own = [
            first + (self.instants[start:stop] - self.instants[start]) * self.rate
            for (start, stop), (first, _) in pairs
        ]
        return np.concatenate(own)


def make_even_clock(rate: float, samples: int) -> Clock:
    """The clock of a log without time stamps."""
    return Clock(rate, np.arange(samples) / rate, ((0, samples),), (0.0,), True)


def find_clock(
    time: Array,
    q: Array,
    name: str,
    place: Callable[[int], str],
    wanted: ClockOptions | None = None,
) -> Clock:
    """Find the clock of a log from its finite time stamps [s].

    Positions `q`, in any unit, decide between `stamps` and `uniform`; `place` is what errors call a
    sample, by its index: file, row and column.
    """
    wanted = wanted or ClockOptions()
    if len(time) < 2:
        raise InputError(f"{name}: a time column needs two time stamps, found {len(time)}")
    _refuse_backward_time(time, place)
    quantum = _find_time_quantum(time)
    number, period = _number_samples(time, quantum)
    rate = float(f"{1.0 / period:.9g}")  # the rounding of the stamps made the last digits
    whole = _split_at_cuts(np.diff(number) > GAP)
    off = np.diff(time) - np.diff(number) * period
    within = _mark_inside_runs(whole, len(time))
    moved = float(np.max(np.abs(off[within]), initial=0.0))
    uniform, notes = True, []
    if moved > JITTER * period and not _is_uniform(time, number, period, whole, quantum):
        rms = float(np.sqrt(np.mean(off[within] ** 2)))
        uniform, why = _decide_if_equidistant(time, q, number, period, whole, wanted.clock)
        done = "samples taken as equidistant" if uniform else "signals resampled"
        how = "" if uniform else " by a cubic spline"
        if not uniform or moved > SMALL_JITTER * period:
            notes.append(
                f"{name}: time stamps jitter by up to {1e3 * moved:.3g} ms "
                f"({100 * moved / period:.3g} % of the period), {1e3 * rms:.3g} ms rms: {why}"
                f"{done} at {rate:.6g} Hz{how}"
            )
    instants = number / rate if uniform else time
    steps = np.diff(instants)
    gaps = steps > GAP * period
    at = np.flatnonzero(steps > wanted.longest_bridge(period))
    runs, cut = _cut_at_gaps(len(time), at, steps[at], name, place)
    filled = _mark_inside_runs(runs, len(time)) & (gaps | (np.diff(number) > 1))
    if filled.any():
        notes.append(
            f"{name}: {format_count(int(filled.sum()), 'pause')} in time, "
            f"{steps[filled].sum():.4g} s together, the longest {steps[filled].max():.4g} s: "
            "bridged by a cubic spline"
        )
    starts = tuple(float(time[start]) for start, _ in runs)
    clock = Clock(rate, instants, runs, starts, uniform, (*cut, *notes))
    count = clock.segments[-1][1]
    if count > MOST_FILLED * len(time):
        raise InputError(
            f"{name}: {len(time)} samples would be {count} at {rate:g} Hz; check the time and its "
            "unit, or leave the time out and give a rate"
        )
    return clock


class EvenClock(NamedTuple):
    """The clock of samples that lie on it, with nothing between them to be filled in."""

    rate: float
    runs: tuple[tuple[int, int], ...]
    starts: tuple[float, ...]
    warnings: tuple[str, ...] = ()

    def at_rate(self, rate: float) -> EvenClock:
        """As of `Clock`."""
        starts = tuple(self.rate / rate * start for start in self.starts)
        return self._replace(rate=rate, starts=starts)


def find_even_clock(
    stamps: Store, name: str, place: Callable[[int], str], wanted: ClockOptions
) -> EvenClock | None:
    """What `find_clock` finds, of stamps that are read some at a time.

    None where they are those of no uniform clock but for gaps that cut the log into runs of many
    samples: then all have to be seen at once.
    """
    samples = stamps.rows
    if samples < 2:
        return None
    first, last = stamps.read(0, 1)[0, 0], stamps.read(samples - 1, samples)[0, 0]
    finest = 4.0 * float(np.spacing(max(abs(first), abs(last))))
    usual = float(np.median(np.diff(stamps.read(0, min(samples, ROWS))[:, 0])))
    digits = [d for d in range(DIGITS + 1) if 10.0**-d > finest]
    at: list[int] = []
    pauses: list[float] = []
    for start, time in _read_stretches(stamps):
        steps = np.diff(time)
        if np.any(steps <= 0.0):
            return None
        digits = [d for d in digits if np.max(np.abs(time - np.round(time, d))) <= finest]
        found = np.flatnonzero(steps > GAP * usual)
        at += (found + start).tolist()
        pauses += steps[found].tolist()
    quantum = 10.0 ** -min(digits) if digits else finest
    runs = _split_behind(np.array(at, dtype=np.int64), samples)
    covariance = variance = 0.0
    for run in runs:
        covariance, variance = np.add((covariance, variance), _sum_products(stamps, run))
    if not variance:
        return None
    period = float(covariance / variance)
    rate = float(f"{1.0 / period:.9g}")  # as of `find_clock`
    gaps = np.asarray(np.round(np.minimum(np.array(pauses) / period, MOST)) / rate, dtype=float)
    if np.any(gaps <= wanted.longest_bridge(period)):
        return None
    spread, moved = np.max([_measure_offsets(stamps, run, period) for run in runs], axis=0)
    if spread > 1.05 * quantum and moved > JITTER * period:
        return None
    kept, cut = _cut_at_gaps(samples, np.array(at, dtype=np.int64), gaps, name, place)
    starts = tuple(float(stamps.read(start, start + 1)[0, 0]) for start, _ in runs)
    return EvenClock(rate, runs, starts, cut) if len(kept) == len(runs) else None


def _read_stretches(
    stamps: Store, run: tuple[int, int] | None = None
) -> Iterator[tuple[int, Array]]:
    """Stamps some at a time, each time from the last ones before on, and where they begin."""
    begin, end = run or (0, stamps.rows)
    for start in range(begin, max(end - 1, begin + 1), ROWS):
        yield start, stamps.read(start, min(start + ROWS + 1, end))[:, 0]


def _sum_products(stamps: Store, run: tuple[int, int]) -> tuple[float, float]:
    """``sum k (t - t_0)`` and ``sum k^2`` of a run, with k its samples about the middle one."""
    begin, end = run
    middle, origin = 0.5 * (end - begin - 1), float(stamps.read(begin, begin + 1)[0, 0])
    total = 0.0
    for start in range(begin, end, ROWS):
        time = stamps.read(start, min(start + ROWS, end))[:, 0]
        total += float((np.arange(len(time)) + (start - begin - middle)) @ (time - origin))
    count = end - begin
    return total, count * (count**2 - 1.0) / 12.0


def _measure_offsets(stamps: Store, run: tuple[int, int], period: float) -> tuple[float, float]:
    """Over what range the stamps of a run are beside the clock's, and its intervals at most [s]."""
    begin, _ = run
    origin = float(stamps.read(begin, begin + 1)[0, 0])
    low, high, moved = np.inf, -np.inf, 0.0
    for start, time in _read_stretches(stamps, run):
        off = time - origin - period * (np.arange(len(time)) + (start - begin))
        low, high = min(low, float(np.min(off))), max(high, float(np.max(off)))
        moved = max(moved, float(np.max(np.abs(np.diff(off)), initial=0.0)))
    return high - low, moved


def resample_to_clock(signal: Array, clock: Clock) -> Array:
    """A signal on the clock, run after run; itself where its samples already lie there."""
    segments = clock.segments
    whole = ((0, len(signal)),)
    if clock.uniform and clock.runs == whole and segments == whole:
        return signal
    result = np.empty((segments[-1][1], signal.shape[1]))
    for (start, stop), (first, last) in zip(clock.runs, segments, strict=True):
        if clock.uniform and stop - start == last - first:
            result[first:last] = signal[start:stop]
        else:
            own = clock.instants[start:stop]
            _resample(signal[start:stop], own, clock.rate, result[first:last])
    return result


def find_ordered_samples(time: Array) -> Booleans:
    """Which samples to keep so that time goes forward: as many as possible.

    The longest increasing subsequence, so that neither one stamp far ahead nor one far behind
    takes others with it. Of stamps that repeat the first is kept.
    """
    keep = np.ones(len(time), dtype=bool)
    if np.all(np.diff(time) > 0.0):
        return keep
    ends: list[float] = []  # the smallest last stamp of a sequence of each length, and whose it is
    owners: list[int] = []
    before = np.full(len(time), -1)
    for sample, stamp in enumerate(time.tolist()):
        length = bisect_left(ends, stamp)
        if length < len(ends) and ends[length] == stamp:
            continue
        if length:
            before[sample] = owners[length - 1]
        ends[length : length + 1] = [stamp]
        owners[length : length + 1] = [sample]
    keep[:] = False
    sample = owners[-1]
    while sample >= 0:
        keep[sample] = True
        sample = int(before[sample])
    return keep


def _refuse_backward_time(time: Array, place: Callable[[int], str]) -> None:
    steps = np.diff(time)
    wrong = np.flatnonzero(steps <= 0.0)
    if not wrong.size:
        return
    at = int(wrong[0]) + 1
    what = "repeats" if steps[at - 1] == 0.0 else "goes back from"
    more = f" and {wrong.size - 1} more rows" if wrong.size > 1 else ""
    cure = "set bad_rows = 'cut', or leave the time out and give a rate"
    if wrong.size > MOST_CUT * len(time):
        cure = "is this the time? check the columns, or leave it out and give a rate"
    raise InputError(
        f"{place(at)}{more}: time {float(time[at])!r} {what} {float(time[at - 1])!r}; {cure}"
    )


# which sample is which


def _number_samples(time: Array, quantum: float) -> tuple[Integers, float]:
    """Number the samples, lost ones counted, and find their period."""
    steps = np.diff(time)
    number = np.arange(len(time))
    whole = _split_at_cuts(steps > GAP * float(np.median(steps)))
    period = _fit_period(time, number, whole)
    if period and _is_uniform(time, number, period, whole, quantum):
        return _number_over_gaps(number, steps, whole, period), period
    span = min(20, len(steps))
    periods = [float(np.median(steps))]
    if quantum > 0.1 * periods[0]:  # the printed digits may make single steps
        periods.append(float(np.median(time[span:] - time[:-span])) / span)
    found = []
    for guess in periods:
        period = guess
        for _ in range(2):  # the second time with the period that the first one found
            number = np.arange(len(time)) + np.cumsum(_count_lost_samples(time, period))
            whole = _split_at_cuts(np.diff(number) > GAP)
            period = _fit_period(time, number, whole) or period
        found.append((number, period, _is_uniform(time, number, period, whole, quantum)))
    fitting = [way for way in found if way[2]] or found[:1]
    number, period, _ = min(fitting, key=lambda way: int(way[0][-1]))  # the fewest samples lost
    return number, period


def _number_over_gaps(
    number: Integers, steps: Array, runs: tuple[tuple[int, int], ...], period: float
) -> Integers:
    """Numbers that go on over gaps."""
    lost = np.zeros(len(number), dtype=np.int64)
    for start, _ in runs[1:]:
        lost[start] = round(min(float(steps[start - 1]) / period, MOST)) - 1
    return number + np.cumsum(lost)


def _count_lost_samples(time: Array, period: float) -> Integers:
    """How many samples were lost before each.

    A sample that is held up on its way comes late alone; after lost samples all that follow are
    late for good. So what counts is the earliest of `BACKLOG` samples, for none comes before it
    was taken: behind a pause it is as many periods later as there are samples lost. Stamps that
    are early by chance do not count: the median has to have moved as far.
    """
    lost = np.zeros(len(time), dtype=np.int64)
    off = time - time[0]
    off -= period * np.arange(len(time))
    shift, done = 0.0, 0
    for at in (np.flatnonzero(np.diff(time) > LATE * period) + 1).tolist():
        off[done:at] -= shift
        done = at
        before, behind = off[max(0, at - BACKLOG) : at], off[at : at + BACKLOG]
        moved = float(behind.min() - before.min()) - shift
        if moved > 0.5 * period:
            moved = min(moved, float(np.median(behind) - np.median(before)) - shift)
            lost[at] = max(0, round(min(moved / period, MOST)))
            shift += period * float(lost[at])
    return lost


def _fit_period(time: Array, number: Integers, runs: tuple[tuple[int, int], ...]) -> float:
    """The period that fits the stamps of all runs best, each with its own start."""
    covariance = variance = 0.0
    for start, stop in runs:
        count = number[start:stop] - float(np.mean(number[start:stop]))
        covariance += float(count @ (time[start:stop] - time[start]))
        variance += float(count @ count)
    return covariance / variance if variance else 0.0


def _is_uniform(
    time: Array, number: Integers, period: float, runs: tuple[tuple[int, int], ...], quantum: float
) -> bool:
    """Whether the stamps are a uniform clock's but for their printed digits."""
    return all(np.ptp(off) <= 1.05 * quantum for off in _measure_jitter(time, number, period, runs))


def _measure_jitter(
    time: Array, number: Integers, period: float, runs: tuple[tuple[int, int], ...]
) -> Iterator[Array]:
    """By how much the stamps of each run are off a uniform clock, but for a constant [s]."""
    for start, stop in runs:
        yield time[start:stop] - time[start] - period * (number[start:stop] - number[start])


def _find_time_quantum(time: Array) -> float:
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


# stamps of arrival or instants of sampling


def _decide_if_equidistant(
    time: Array,
    q: Array,
    number: Integers,
    period: float,
    runs: tuple[tuple[int, int], ...],
    clock: str,
) -> tuple[bool, str]:
    """Whether the samples are equidistant, and why."""
    if clock in ("stamps", "uniform"):
        return clock == "uniform", ""
    drift = _measure_drift(time, number, period, runs)
    if drift > DRIFT:
        return False, f"their mean rate drifts by {100 * drift:.2g} %, "
    ratio = compare_roughness(q, time, number)
    percent = 100.0 * (max(ratio, 1.0 / ratio) - 1.0)
    words = f"{percent:.2g} %" if percent < 100.0 else f"{percent / 100.0 + 1.0:.2g} times"
    if ratio > 1.0:
        return True, f"positions are {words} smoother without them, "
    return False, f"positions are {words} smoother with them, "


def _measure_drift(
    time: Array, number: Integers, period: float, runs: tuple[tuple[int, int], ...]
) -> float:
    """By which part the mean rate of some samples differs from the log's at most."""
    worst = 0.0
    for off in _measure_jitter(time, number, period, runs):
        blocks = len(off) // STEADY
        means = off[: blocks * STEADY].reshape(blocks, STEADY).mean(axis=1)
        change = float(np.max(np.abs(np.diff(means)), initial=0.0))
        worst = max(worst, change / (STEADY * period))
    return worst


def compare_roughness(q: Array, time: Array, number: Integers) -> float:
    """How much rougher positions are at their stamps than equidistant.

    Of five samples in a row at instants s the fourth divided difference is
    ``d = sum_j c_j q_j`` with ``c_j = 1 / prod_(k != j) (s_j - s_k)``: nothing is left in it of a
    motion that is smooth over five samples. ``d / |c|`` has the variance of white noise in the
    positions, wherever the instants are, so that noise speaks for neither; instants that are
    wrong by e add the variance of ``dq e``. With the mean squares E at the stamps and
    equidistant, and noise of unknown size, the likelihoods' ratio is a power of
    ``prod_joints E_stamps / E_equidistant``; returned is its mean over the joints, as a ratio of
    root mean squares: above 1 where the positions are smoother equidistant. `number` is that of
    each sample on a uniform clock.
    """
    if len(time) < 5:
        return 1.0
    step = max(1, (len(time) - 4) // WINDOWS)
    at = np.arange(0, len(time) - 4, step)[:, None] + np.arange(5)
    at = at[number[at[:, 4]] - number[at[:, 0]] < 4 + GAP]  # over gaps nothing is smooth
    if not at.size:
        return 1.0
    # what rounding leaves of still joints tells nothing
    floor = (4.0 * np.spacing(np.max(np.abs(q), axis=0))) ** 2 + np.finfo(float).tiny
    ways = (time - time[0], number.astype(float))
    stamps, even = (np.log(_measure_roughness(q, own, at) + floor) for own in ways)
    return float(np.exp(0.5 * np.mean(stamps - even)))


def _measure_roughness(q: Array, instants: Array, at: Integers) -> Array:
    """Mean squares of fourth divided differences of unit noise gain, shape (n,)."""
    s = instants[at]
    s = s / np.mean(np.diff(s, axis=1))
    apart = s[:, :, None] - s[:, None, :]
    apart[:, np.arange(5), np.arange(5)] = 1.0
    weights = 1.0 / np.prod(apart, axis=2)
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    found = np.zeros((len(at), q.shape[1]))
    for k in range(5):
        found += weights[:, k, None] * q[at[:, k]]
    return np.asarray(np.mean(found**2, axis=0))


# gaps


def _split_at_cuts(cuts: Booleans) -> tuple[tuple[int, int], ...]:
    """Runs between the intervals that are cut."""
    return _split_behind(np.flatnonzero(cuts), len(cuts) + 1)


def _split_behind(at: Integers, samples: int) -> tuple[tuple[int, int], ...]:
    """Runs between the intervals that are cut, which are behind some samples."""
    return tuple(pairwise([0, *(at + 1).tolist(), samples]))


def _mark_inside_runs(runs: tuple[tuple[int, int], ...], samples: int) -> Booleans:
    """Which intervals are inside a run."""
    inside = np.zeros(samples - 1, dtype=bool)
    for start, stop in runs:
        inside[start : stop - 1] = True
    return inside


def _cut_at_gaps(
    samples: int, at: Integers, pauses: Array, name: str, place: Callable[[int], str]
) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    """Runs between the gaps that are not bridged, and what is said of them.

    The gaps come behind samples `at`, and the pauses are as long [s].
    """
    runs = _split_behind(at, samples)
    if len(runs) == 1:
        return runs, ()
    kept = tuple((start, stop) for start, stop in runs if stop - start >= SHORTEST)
    if not kept:
        raise InputError(
            f"{name}: no run of {SHORTEST} samples is without a gap; check the time column"
        )
    worst = int(np.argmax(pauses))
    cut = (
        f"{name}: {format_count(len(runs) - 1, 'gap')} in time, {pauses.sum():.4g} s "
        f"together, the longest {pauses[worst]:.4g} s before {place(int(at[worst]) + 1)}: cut into "
        f"{len(kept)} segments"
    )
    if len(kept) == len(runs):
        return kept, (cut,)
    lost = samples - sum(stop - start for start, stop in kept)
    dropped = (
        f"{name}: {format_count(len(runs) - len(kept), 'run')} of fewer than {SHORTEST} samples "
        f"between gaps dropped, {lost} samples together"
    )
    return kept, (cut, dropped)


def _resample(signal: Array, time: Array, rate: float, result: Array) -> None:
    """Fill `result` with the signal at uniform times from the first stamp on."""
    own = time - time[0]
    for first in range(0, len(result), BLOCK):
        wanted = np.arange(first, min(first + BLOCK, len(result))) / rate
        low = max(int(np.searchsorted(own, wanted[0])) - OVERLAP, 0)
        high = int(np.searchsorted(own, wanted[-1])) + OVERLAP
        result[first : first + len(wanted)] = interpolate_cubically(
            own[low:high], signal[low:high], wanted
        )
