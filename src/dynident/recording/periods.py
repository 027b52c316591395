"""Periodic motion: its period, the harmonics of each repetition, their mean and their scatter.

A motion that repeats says more than one of the same length that does not: the mean over P periods
has 1/P of the noise's variance, and what the periods differ by is that noise, free of any model
(Swevers et al. 1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.errors import InputError
from dynident.filters.harmonics import (
    Complex,
    differentiate_harmonics,
    estimate_noise_spectrum,
    fit_harmonics,
    shift_harmonics,
    sum_harmonics,
    sum_spectrum,
)
from dynident.filters.repeats import FALLEN, REPEATS, SAMPLED, SIMILAR, TINY
from dynident.recording.recording import Recording

FINER = 8
"""Samples of the mean period for one of the log: friction changes its sign between samples."""
HIGHEST = 0.4
"""Highest harmonic of a torque, over the sample rate: short of Nyquist the fit is well posed."""
MOVING = 1e-6
"""Standard deviation over the largest one above which a column moves."""
DRIFTED = 0.5
"""Samples by which the last period may begin late or early where the period was given."""
ODD = 10.0
"""Squared distance of the first period from the mean over that of the others: a warm-up."""
UNLIKE = 0.0025
"""Squared distance of a period from the median, over the motion's own size, from which it is
another motion where the others are nearer: a mean with them is none that the robot made."""
UNLIKE_CONTACT = 0.02
"""Share of the period in which periods may differ in whether a contact bears, as about the instants
at which it begins and ends."""
FEW = 3
"""Periods below which a first one that differs cannot be told."""
REFINEMENTS = 20
ROUNDING = 1e-6
"""Of a sample, by which a period may end late."""
HARMONICS = ("q", "dq", "ddq", "tau", "qref", "dqref")


class PeriodError(InputError):
    """A log that has no mean period; the fact, and what to do where a mean may be left out."""

    def __init__(self, fact: str, advice: str) -> None:
        super().__init__(f"{fact}; {advice}")
        self.fact = fact


@dataclass(frozen=True)
class Averaging:
    """What was averaged, and how much it scattered."""

    period: float
    """[s]"""
    found: bool
    """Whether the period was found in the log."""
    warmup: int
    """Periods left out at the start."""
    unused: float
    """Time in no whole period, and so left out [s]."""
    samples: int
    """Of the mean period, at the rate of `Samples`, without what is wrapped around it: `FINER` for
    about one of the log."""
    wrapped: int
    """Samples of the mean period that stand before it and after it once more, for filters."""
    q: Complex
    dq: Complex
    ddq: Complex
    tau: Complex
    """`q`, `dq`, `ddq`, `tau`: harmonics of each period, shapes (periods, harmonics, n)."""
    settled: bool
    """Whether the first period is like the others, so that what they differ by is noise."""
    qref: Complex | None = None
    dqref: Complex | None = None
    """`qref`, `dqref`: of the mean references, where the log has them, shapes (harmonics, n)."""

    def __post_init__(self) -> None:
        for label in HARMONICS:
            if getattr(self, label) is not None:
                getattr(self, label).setflags(write=False)

    @property
    def periods(self) -> int:
        """How many were averaged."""
        return len(self.q)

    @property
    def inner(self) -> tuple[int, int]:
        """The mean period among the samples: first, and one after the last."""
        return self.wrapped, self.wrapped + self.samples

    @property
    def words(self) -> str:
        """What was done."""
        text = f"mean of {self.periods} periods of {self.period:.7g} s"
        left = [f"{self.warmup} at the start"] * (self.warmup > 0)
        left += [f"{self.unused:.3g} s in no whole period"] * (self.unused >= 1e-3 * self.period)
        return text + (f" ({' and '.join(left)} left out)" if left else "")

    def one(self, period: int) -> tuple[Array, Array, Array, Array]:
        """q, dq, ddq and tau of one of the periods, at about the log's own rate."""
        count = self.samples // FINER
        q, dq, ddq, tau = (
            sum_harmonics(c[period], count) for c in (self.q, self.dq, self.ddq, self.tau)
        )
        return q, dq, ddq, tau

    def mean(self, label: str) -> Array | None:
        """The mean period of a signal with what is wrapped around it, shape (samples, n)."""
        c: Complex | None = getattr(self, label)
        if c is None:
            return None
        wrapped = np.arange(-self.wrapped, self.samples + self.wrapped)
        mean = sum_harmonics(c.mean(axis=0) if c.ndim == 3 else c, self.samples)
        return np.asarray(mean.take(wrapped, axis=0, mode="wrap"))

    def along(self, q: Array, dq: Array, ddq: Array) -> Averaging:
        """The same periods of torque on one motion, the same in each; with what is wrapped."""
        inner = slice(*self.inner)
        made: dict[str, Any] = {
            label: np.broadcast_to(
                np.fft.rfft(x[inner], axis=0)[None, : self.tau.shape[1]] / self.samples,
                (self.periods, self.tau.shape[1], x.shape[1]),
            )
            for label, x in (("q", q), ("dq", dq), ("ddq", ddq))
        }
        return replace(self, **made)

    def of_joints(self, places: Sequence[int]) -> Averaging:
        """The same of some joints, in this order."""
        own = {label: getattr(self, label) for label in HARMONICS}
        chosen: dict[str, Any] = {
            k: c if c is None else c[..., list(places)] for k, c in own.items()
        }
        return replace(self, **chosen)

    def settings(self) -> dict[str, object]:
        """What a result reports of it."""
        return {
            "period_s": self.period,
            "found": self.found,
            "periods": self.periods,
            "warmup": self.warmup,
            "unused_s": self.unused,
            "q_std": np.sqrt(sum_spectrum(estimate_noise_spectrum(self.q))).tolist(),
            "tau_std": np.sqrt(sum_spectrum(estimate_noise_spectrum(self.tau))).tolist(),
        }


@dataclass(frozen=True)
class PeriodCut:
    """Whole periods of a run."""

    start: int
    """Sample at which the first begins."""
    length: float
    """Samples in a period."""
    count: int

    def harmonics(self, x: Array, harmonics: int) -> Complex:
        """Those of each period, shape (count, harmonics, k)."""
        found = []
        for k in range(self.count):
            a, b = (int(np.ceil(self.length * end - ROUNDING)) for end in (k, k + 1))
            own = x[self.start + a : self.start + b]
            found.append(fit_harmonics(own, a - self.length * k, self.length, harmonics))
        return np.array(found)


def cut_periods(
    runs: Sequence[tuple[int, int]], length: float, warmup: int
) -> tuple[tuple[PeriodCut, ...], float]:
    """Whole periods of each run, but the first `warmup` of the log; and the samples in none."""
    cuts, unused = [], 0.0
    for k, (start, stop) in enumerate(runs):
        first = start + (int(np.ceil(warmup * length - ROUNDING)) if k == 0 else 0)
        count = max(0, int((stop - first + ROUNDING) / length))
        unused += max(0.0, stop - first - count * length)
        if count:
            cuts.append(PeriodCut(first, length, count))
    return tuple(cuts), unused


def correlate_with_itself(x: Array) -> Array:
    """Correlation of a signal with itself at lags up to half its length.

    ``sum x_k x_(k+L) / sqrt(sum x_k^2 sum x_(k+L)^2)`` over the pairs at each lag and all
    columns, which are taken without their means and in units of their standard deviations.
    """
    x = standardise_columns(x)
    count = len(x)
    size = 1 << int(np.ceil(np.log2(2 * count)))
    power = np.sum(np.abs(np.fft.rfft(x, size, axis=0)) ** 2, axis=1)
    lags = np.arange(count // 2 + 1)
    products = np.fft.irfft(power, size)[: len(lags)]
    energy = np.concatenate([[0.0], np.cumsum(np.sum(x * x, axis=1))])
    both = energy[count - lags] * (energy[-1] - energy[lags])
    return np.asarray(products / np.sqrt(np.maximum(both, TINY)))


def standardise_columns(x: Array) -> Array:
    """Columns that move, without their means and in units of their standard deviations."""
    centred = x - x.mean(axis=0)
    std = centred.std(axis=0)
    moving = std > MOVING * max(float(std.max(initial=0.0)), TINY)
    return np.asarray(centred[:, moving] / std[moving])


def correlate_at_lag(x: Array, lag: float) -> float:
    """Correlation of a signal with itself a lag later [samples]."""
    whole = round(lag)
    x = standardise_columns(x)
    a, b = x[: len(x) - whole], x[whole:]
    return float(np.sum(a * b) / np.sqrt(max(np.sum(a * a) * np.sum(b * b), TINY)))


def find_repetition_lag(x: Array) -> tuple[int, float]:
    """The lag at which a signal first repeats as well as it ever does, and its correlation.

    Only maxima beyond the first lag without correlation count. Multiples of a period repeat
    as well as the period does, but for noise and the sampling: the first of those whose loss of
    correlation is at most `SIMILAR` times the least one is it.
    """
    rho = correlate_with_itself(x)
    fallen = np.flatnonzero(rho < FALLEN)
    if not len(fallen):
        return 0, 0.0
    begin = max(1, int(fallen[0]))
    inside = np.arange(begin, len(rho) - 1)
    peaks = inside[(rho[inside] >= rho[inside - 1]) & (rho[inside] > rho[inside + 1])]
    if not len(peaks):
        return 0, 0.0
    best = float(rho[peaks].max())
    good = peaks[1.0 - rho[peaks] <= SIMILAR * (1.0 - best) + SAMPLED]
    return int(good[0]), float(rho[good[0]])


def refine_period(
    x: Array, runs: Sequence[tuple[int, int]], length: float, warmup: int, cutoff: float
) -> float:
    """A period at which harmonics do not turn from one repetition to the next.

    A period that is too short by ``d`` turns harmonic l by ``-2 pi l d / T`` each time; d is the
    weighted mean of what all harmonics say, with their energies times their orders squared as
    weights, which is what least squares of the motion gives to first order. Frequencies count up to
    the cutoff [1 / samples].
    """
    first = length
    for _ in range(REFINEMENTS):
        cuts, _ = cut_periods(runs, length, warmup)
        harmonics = 1 + max(1, int(min(cutoff, HIGHEST) * length))
        orders = np.arange(harmonics)[:, None]
        turned, stiffness = 0.0, 0.0
        for cut in cuts:
            c = cut.harmonics(x, harmonics)
            if len(c) < 2:
                continue
            # every pair of periods, the far ones too: the mean turn by regression on their number
            mean = c.mean(axis=0)
            k = np.arange(len(c)) - 0.5 * (len(c) - 1)
            turn = -np.sum((c * mean.conj()).imag * orders, axis=(1, 2))
            turned += float(k @ turn)
            stiffness += float(k @ k) * float(np.sum(np.abs(mean) ** 2 * orders**2))
        if stiffness == 0.0:
            return length
        change = turned / stiffness * length / (2.0 * np.pi)
        length += float(np.clip(change, -1.0, 1.0))
        if abs(change) < 1e-9 * length:
            break
    return length if abs(length - first) < 0.02 * first + 2.0 else first


def find_phase_shift(c: Complex, reference: Complex) -> float:
    """The share of the period by which harmonics have to be shifted to meet others."""
    cross = np.sum(reference[1:] * c[1:].conj(), axis=1)
    fine = 8 * (len(cross) + 1)
    spread = np.zeros(fine, dtype=complex)
    spread[1 : len(cross) + 1] = cross
    # sum_l Re(cross_l exp(-2 pi i l s)) is largest where the shifted signal meets the reference
    share = float(np.argmax(np.fft.fft(spread).real)) / fine
    orders = np.arange(1, len(cross) + 1)
    for _ in range(REFINEMENTS):
        turned = cross * np.exp(-2j * np.pi * orders * share)
        slope, curve = np.sum(orders * turned.imag), np.sum(orders**2 * turned.real)
        if curve <= 0.0:
            break
        change = float(slope / curve / (2.0 * np.pi))
        share += change
        if abs(change) < 1e-12:
            break
    return share


def average_periods(
    recording: Recording,
    q: Array,
    runs: Sequence[tuple[int, int]],
    period: float | str,
    warmup: int,
    cutoffs: Sequence[float],
    step: int,
    measured: bool,
) -> tuple[Averaging, dict[str, Booleans], tuple[str, ...]]:
    """Harmonics of each period of a log with positions q, its contacts, and what is to be noted.

    Parameters
    ----------
    period : float or str
        [s]; to be found where it is a word.
    cutoffs : sequence of float
        Highest frequencies of the motion, per joint [Hz].
    step : int
        One of so many samples becomes a row: the mean period has `FINER` times a multiple of it.
    measured : bool
        Whether velocities, and accelerations where there are any, are the log's own.
    """
    name, rate, notes = recording.name, recording.rate, []
    if warmup and not runs[0][0] + warmup < runs[0][1]:
        raise InputError(f"{name}: warmup = {warmup} is longer than the log")
    length, found = _find_period_length(recording, q, runs, period, warmup, max(cutoffs) / rate)
    cuts, unused = cut_periods(runs, length, warmup)
    _refuse_few_periods(name, sum(cut.count for cut in cuts), length / rate, warmup)
    orders = [1 + max(1, int(min(hz / rate, HIGHEST) * length + ROUNDING)) for hz in cutoffs]
    every = 1 + max(1, int(HIGHEST * length))
    positions = [_limit_to_band(cut.harmonics(q, max(orders)), orders) for cut in cuts]
    longest = positions[int(np.argmax([cut.count for cut in cuts]))].mean(axis=0)
    turns = [find_phase_shift(c.mean(axis=0), longest) for c in positions]

    def of(signal: Array, harmonics: int = every) -> Complex:
        found = [cut.harmonics(signal, harmonics) for cut in cuts]
        return np.concatenate([shift_harmonics(c, s) for c, s in zip(found, turns, strict=True)])

    def of_derivative(signal: Array | None, before: Complex) -> Complex:
        if signal is None or not measured:
            return differentiate_harmonics(before, length / rate)
        return _limit_to_band(of(signal, max(orders)), orders)

    of_q = np.concatenate([shift_harmonics(c, s) for c, s in zip(positions, turns, strict=True)])
    of_dq = of_derivative(recording.dq, of_q)
    of_ddq = of_derivative(recording.ddq, of_dq)
    refuse_unlike_period(name, of_q, warmup)
    qref, dqref = (
        None if x is None else of(x).mean(axis=0) for x in (recording.qref, recording.dqref)
    )
    made = Averaging(
        length / rate,
        found,
        warmup,
        unused / rate,
        FINER * step * int(np.ceil(length / step - ROUNDING)),
        0,
        of_q,
        of_dq,
        of_ddq,
        of(recording.tau),
        not has_unsettled_start(of_q),
        qref,
        dqref,
    )
    touching = repeat_contacts(recording, cuts, turns, made.samples)
    if not made.settled:
        notes.append(
            f"{name}: its first period differs from the others far more than they do among each "
            f"other, so that their scatter is not noise; had the motion not settled? set warmup = "
            f"{warmup + 1}"
        )
    return made, touching, (*_warn_of_period_drift(recording, q, runs, made, cutoffs), *notes)


def _refuse_few_periods(name: str, count: int, seconds: float, warmup: int) -> None:
    """Refuse the mean of a single period, which shows no scatter, or of none."""
    if count < 2:
        raise PeriodError(
            f"{name}: has {count or 'no'} whole period{'s' * (count != 1)} of {seconds:g} s"
            + (f" after {warmup} of warmup" if warmup else "")
            + "; a mean needs two at least",
            "record more, lower warmup, bridge gaps, or leave period out",
        )


def repeat_contacts(
    recording: Recording, cuts: Sequence[PeriodCut], turns: Sequence[float], samples: int
) -> dict[str, Booleans]:
    """Whether contacts bear in the mean period of so many samples: where they do in any period.

    That is right even where periods differ: combinations of equations are free of a contact
    whether it bears or not. Of one that does not repeat nothing would be said, and it is refused.
    The turns are shares of the period by which the periods of each cut were shifted.
    """
    phase = np.arange(samples) / samples
    found = {}
    for name, bears in recording.touching.items():
        periods = np.array([
            bears[cut.start + ((k + (phase + turn) % 1.0) * cut.length + ROUNDING).astype(int)]
            for cut, turn in zip(cuts, turns, strict=True)
            for k in range(cut.count)
        ])  # fmt: skip
        found[name] = np.any(periods, axis=0)
        share = float(np.mean(found[name] & ~np.all(periods, axis=0)))
        if share > UNLIKE_CONTACT:
            raise InputError(
                f"{recording.name}: contact_{name} does not repeat: periods differ in it for "
                f"{100.0 * share:.2g} % of their time ({100.0 * UNLIKE_CONTACT:g} % are admitted); "
                "check the column and period, or leave period out"
            )
    return found


def _find_period_length(
    recording: Recording,
    q: Array,
    runs: Sequence[tuple[int, int]],
    period: float | str,
    warmup: int,
    cutoff: float,
) -> tuple[float, bool]:
    """The period in samples, and whether it was found; refused where the log does not repeat."""
    name, rate = recording.name, recording.rate
    motion = q if recording.qref is None else recording.qref
    start, stop = max(runs, key=lambda run: run[1] - run[0])
    x = motion[start:stop]
    if not standardise_columns(x).size:
        raise PeriodError(f"{name}: no joint moves, so that nothing repeats", "leave period out")
    if isinstance(period, str):
        lag, correlation = find_repetition_lag(x)
        if correlation < REPEATS:
            best = f"the best repetition, every {lag / rate:g} s, correlates {correlation:.2f}"
            raise PeriodError(
                f"{name}: is not periodic ({best if lag else 'nothing repeats within half of it'}; "
                f"{REPEATS:g} is needed, and more than two periods without a gap)",
                "give period in s, cut what does not repeat with rows, or leave period out",
            )
        return refine_period(motion, runs, float(lag), warmup, cutoff), True
    length = period * rate
    if length < 4.0:
        raise InputError(f"{name}: period = {period:g} s is {length:.3g} samples; it is in s")
    if stop - start >= 2.0 * length - ROUNDING:
        correlation = correlate_at_lag(x, length)
        if correlation < REPEATS:
            raise PeriodError(
                f"{name}: does not repeat every {period:g} s (correlation {correlation:.2f}; "
                f"{REPEATS:g} is needed)",
                'try period = "found", or leave it out',
            )
    return length, False


def _limit_to_band(c: Complex, orders: Sequence[int]) -> Complex:
    """Harmonics with those of each column beyond its own orders at zero."""
    for j, own in enumerate(orders):
        c[:, own:, j] = 0.0
    return c


def measure_median_distance(c: Complex) -> Array:
    """Squared distances of periods from their median, shape (periods, k)."""
    median = np.median(c.real, axis=0) + 1j * np.median(c.imag, axis=0)
    return np.asarray(np.sum(np.abs(c - median) ** 2, axis=1))


def refuse_unlike_period(name: str, c: Complex, warmup: int) -> None:
    """Refuse a period in which the robot made another motion than in the others."""
    distance = measure_median_distance(c).sum(axis=1) / max(
        float(np.sum(np.abs(c[:, 1:]) ** 2)) / len(c), TINY
    )
    worst = int(np.argmax(distance))
    others = np.delete(distance, worst)
    noise = len(c) >= FEW and distance[worst] < ODD * np.median(others)
    if distance[worst] < UNLIKE or noise:
        return
    share, most = (100.0 * np.sqrt(x) for x in (distance[worst], UNLIKE))
    raise PeriodError(
        f"{name}: period {warmup + worst + 1} is another motion than the others "
        f"({share:.2g} % from their median; {most:g} % are admitted)",
        (f"set warmup = {warmup + 1}" if worst == 0 else "cut it with rows")
        + ", check period, or leave it out",
    )


def has_unsettled_start(c: Complex) -> bool:
    """Whether the first of the periods is far from the others, as before a motion has settled."""
    if len(c) < FEW:
        return False
    distance = measure_median_distance(c)
    size = np.sum(np.abs(c[1:]) ** 2, axis=(0, 1))
    usual = np.median(distance[1:], axis=0)
    return bool(np.any(distance[0] > ODD * usual + MOVING**2 * size))


def _warn_of_period_drift(
    recording: Recording,
    q: Array,
    runs: Sequence[tuple[int, int]],
    made: Averaging,
    cutoffs: Sequence[float],
) -> tuple[str, ...]:
    """A note where a period that was given is not the log's."""
    if made.found:
        return ()
    rate = recording.rate
    own = refine_period(q, runs, made.period * rate, made.warmup, max(cutoffs) / rate)
    drift = abs(own - made.period * rate) * (made.periods - 1)
    if drift < DRIFTED:
        return ()
    return (
        f"{recording.name}: period = {made.period:g} s was given, but the log repeats every "
        f"{own / rate:.7g} s, so that the last period is {drift:.2g} samples off; check rate, or "
        'give period = "found"',
    )
