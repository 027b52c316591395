"""Zero-phase filters, differences and the parallel decimation filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array, to_kernel_arrays
from dynident.core.compiled import make_compiler

HALF_WIDTH = 4
"""Half-length of the decimation filter, in decimation steps."""


def filter_zero_phase(x: Array, cutoff: float, rate: float) -> Array:
    """Butterworth filter of order 4 forwards and backwards over the columns of x.

    A cutoff at or above the Nyquist frequency filters nothing [Hz].
    """
    if cutoff >= 0.5 * rate:
        return np.array(x, dtype=float)
    padding = min(len(x) - 1, count_filter_edge(cutoff, rate) * 3)
    padded = np.empty((len(x) + 2 * padding, x.shape[1]))
    middle = padded[padding : padding + len(x)]
    middle[:] = x
    # odd extension: the signal turned about its end points
    padded[:padding] = 2.0 * x[0] - x[padding:0:-1]
    padded[padding + len(x) :] = 2.0 * x[-1] - x[-2 : -2 - padding : -1]
    sections = design_butterworth(cutoff, rate)
    filter_in_place(sections, padded, False)
    filter_in_place(sections, padded, True)
    return np.ascontiguousarray(middle)


def filter_by_cutoff(x: Array, cutoffs: tuple[float, ...], rate: float) -> Array:
    """Zero-phase low-pass of each column at its own cutoff."""
    if len({*cutoffs}) == 1:
        return filter_zero_phase(x, cutoffs[0], rate)
    out = np.empty_like(x)
    for cutoff in set(cutoffs):
        columns = [j for j, c in enumerate(cutoffs) if c == cutoff]
        out[:, columns] = filter_zero_phase(x[:, columns], cutoff, rate)
    return out


def subtract_lowpass(behind: Array, before: Array, slowness: Sequence[float], rate: float) -> Array:
    """What a signal behind a low-pass is beyond that which the low-pass makes of another one.

    ``1 / (1 + a s + b s^2)`` by the bilinear transform. Its output is known, and so how it starts:
    with the first two samples of the signal behind it. The slowness is a, or a and b [s, s^2].
    """
    a, b = (2.0 * rate) * slowness[0], (2.0 * rate) ** 2 * sum(slowness[1:])
    # numerator and denominator over powers of the shift
    if len(slowness) == 1:
        top, bottom = (1.0, 1.0, 0.0), (1.0 + a, 1.0 - a, 0.0)
    else:
        top, bottom = (1.0, 2.0, 1.0), (1.0 + a + b, 2.0 - 2.0 * b, 1.0 - a + b)
    found = np.zeros(behind.shape)
    for shift, (own, other) in enumerate(zip(bottom, top, strict=True)):
        past = slice(2 - shift, len(behind) - shift)
        found[2:] += (own * behind[past] - other * before[past]) / bottom[0]
    if len(found) > 2:
        poles = bottom[1] / bottom[0], bottom[2] / bottom[0]
        filter_in_place(np.array([[1.0, 0.0, 0.0, *poles]]), found, False)
    return found


def design_butterworth(cutoff: float, rate: float) -> Array:
    """Low-pass of order 4 as two second-order sections ``[b0, b1, b2, a1, a2]``.

    The analog sections ``1 / (s^2 + s / Q + 1)``, Q = 1 / (2 sin(pi/8)) and
    1 / (2 sin(3 pi/8)), by the bilinear transform with the cutoff prewarped.
    """
    k = np.tan(np.pi * cutoff / rate)
    rows = []
    for damping in (2.0 * np.sin(np.pi / 8.0), 2.0 * np.sin(3.0 * np.pi / 8.0)):
        norm = 1.0 + k * damping + k * k
        b0 = k * k / norm
        a1, a2 = 2.0 * (k * k - 1.0) / norm, (1.0 - k * damping + k * k) / norm
        rows.append([b0, 2.0 * b0, b0, a1, a2])
    return np.array(rows)


@make_compiler(nogil=True, error_model="numpy")
def filter_in_place(sections, x, backwards):  # type: ignore[no-untyped-def]
    """Second-order sections over the columns of x, as if they had rested at the first row.

    Backwards it is the last row that is first: a view in that order would be another type, for
    which all would be compiled again.
    """
    rows, columns = x.shape
    first = rows - 1 if backwards else 0
    way = -1 if backwards else 1
    for section in range(len(sections)):
        b0, b1, b2 = sections[section, 0], sections[section, 1], sections[section, 2]
        a1, a2 = sections[section, 3], sections[section, 4]
        s1 = np.empty(columns)
        s2 = np.empty(columns)
        for j in range(columns):
            s1[j] = (1.0 - b0) * x[first, j]
            s2[j] = (b2 - a2) * x[first, j]
        for k in range(rows):
            t = first + way * k
            for j in range(columns):
                value = x[t, j]
                out = b0 * value + s1[j]
                s1[j] = b1 * value - a1 * out + s2[j]
                s2[j] = b2 * value - a2 * out
                x[t, j] = out


def count_filter_edge(cutoff: float, rate: float) -> int:
    """Samples at each end where a zero-phase low-pass still feels the end: one period."""
    return int(np.ceil(rate / cutoff)) if cutoff < 0.5 * rate else 0


def differentiate_twice(x: Array, rate: float) -> tuple[Array, Array]:
    """First and second time derivatives of columns by central differences of fourth order.

    The two samples at each end repeat their neighbours'.
    """
    first, second = np.empty(x.shape), np.empty(x.shape)
    fill_differences(*to_kernel_arrays(x), rate, first, second)
    for derivative in (first, second):
        derivative[:2] = derivative[2]
        derivative[-2:] = derivative[-3]
    return first, second


@make_compiler(nogil=True, error_model="numpy", wide=True)
def fill_differences(x, rate, first, second):  # type: ignore[no-untyped-def]
    """Differences of all rows but the two at each end."""
    for t in range(2, len(x) - 2):
        for j in range(x.shape[1]):
            a, b, d, e = x[t - 2, j], x[t - 1, j], x[t + 1, j], x[t + 2, j]
            first[t, j] = (8.0 * (d - b) + a - e) * (rate / 12.0)
            second[t, j] = (16.0 * (b + d) - a - e - 30.0 * x[t, j]) * (rate**2 / 12.0)


@dataclass(frozen=True)
class DecimationFilter:
    """A symmetric low-pass of which only every `step`-th output is ever computed.

    Applied alike to a torque and to all its regressor columns ("parallel" filtering,
    brunot2019, eq. 6), so that the model's linearity is kept.
    """

    cutoff: float
    """[Hz]"""
    step: int
    """One sample in `step` is kept: ``n_d = omega_nyquist / omega_Fp`` (brunot2019, 3.1)."""
    taps: Array
    """Unit gain at zero frequency, shape (2 HALF_WIDTH step + 1,) or (1,)."""

    @classmethod
    def design(cls, cutoff: float, rate: float, step: int | None = None) -> DecimationFilter:
        """Windowed-sinc low-pass at `cutoff`; the step follows from it unless given."""
        if cutoff >= 0.5 * rate:
            return cls(0.5 * rate, step or 1, np.ones(1))
        ratio = 0.5 * rate / cutoff
        if step is None:
            step = max(1, int(ratio + 1e-9))
        half = HALF_WIDTH * int(np.ceil(ratio))
        taps = np.sinc(2.0 * cutoff / rate * np.arange(-half, half + 1)) * np.hamming(2 * half + 1)
        return cls(cutoff, step, taps / taps.sum())

    @property
    def half(self) -> int:
        """Samples on each side that an output needs."""
        return len(self.taps) // 2

    def outputs(self, samples: int) -> int:
        """How many outputs a run of `samples` has: those with the whole window inside."""
        return max(0, (samples - 2 * self.half - 1) // self.step + 1) if samples else 0


def interpolate_rows(signals: Array, places: Array) -> Array:
    """Rows at places between them, linearly; those of the ends beyond them."""
    low = np.clip(np.floor(places).astype(np.int64), 0, len(signals) - 2)
    share = np.clip(places - low, 0.0, 1.0)[:, None]
    return np.asarray((1.0 - share) * signals[low] + share * signals[low + 1])
