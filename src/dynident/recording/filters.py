"""Zero-phase filters, differences and the parallel decimation filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import signal

from dynident.inertia import Array

ORDER = 4
HALF_WIDTH = 4
"""Half-length of the decimation filter, in decimation steps."""


def zero_phase_lowpass(x: Array, cutoff: float, rate: float) -> Array:
    """Butterworth filter of order 4 forwards and backwards.

    Parameters
    ----------
    x : ndarray, shape (samples, k)
    cutoff, rate : float
        [Hz]; a cutoff at or above the Nyquist frequency filters nothing.

    Returns
    -------
    ndarray, shape (samples, k)
    """
    if cutoff >= 0.5 * rate:
        return np.array(x, dtype=float)
    sections = signal.butter(ORDER, cutoff, fs=rate, output="sos")
    padding = min(len(x) - 1, edge(cutoff, rate) * 3)
    return np.asarray(signal.sosfiltfilt(sections, x, axis=0, padtype="odd", padlen=padding))


def edge(cutoff: float, rate: float) -> int:
    """Samples at each end where a zero-phase low-pass still feels the end: one period."""
    return int(np.ceil(rate / cutoff)) if cutoff < 0.5 * rate else 0


def differences(x: Array, rate: float) -> tuple[Array, Array]:
    """First and second time derivatives by central differences of fourth order.

    Parameters
    ----------
    x : ndarray, shape (samples, k)
    rate : float
        [Hz]

    Returns
    -------
    first, second : ndarray, shape (samples, k)
        The two samples at each end repeat their neighbours'.
    """
    first, second = np.empty_like(x), np.empty_like(x)
    a, b, c, d, e = x[:-4], x[1:-3], x[2:-2], x[3:-1], x[4:]
    np.subtract(d, b, out=first[2:-2])
    first[2:-2] *= 8.0
    first[2:-2] += a
    first[2:-2] -= e
    first[2:-2] *= rate / 12.0
    np.add(b, d, out=second[2:-2])
    second[2:-2] *= 16.0
    second[2:-2] -= a
    second[2:-2] -= e
    second[2:-2] -= 30.0 * c
    second[2:-2] *= rate**2 / 12.0
    for derivative in (first, second):
        derivative[:2] = derivative[2]
        derivative[-2:] = derivative[-3]
    return first, second


@dataclass(frozen=True)
class DecimationFilter:
    """A symmetric low-pass of which only every `step`-th output is ever computed.

    Applied alike to a torque and to all its regressor columns ("parallel" filtering,
    brunot2019, eq. 6), so that the model's linearity is kept.

    Attributes
    ----------
    cutoff : float
        [Hz]
    step : int
        One sample in `step` is kept: ``n_d = omega_nyquist / omega_Fp`` (brunot2019, 3.1).
    taps : ndarray, shape (2 HALF_WIDTH step + 1,) or (1,)
        Unit gain at zero frequency.
    """

    cutoff: float
    step: int
    taps: Array

    @classmethod
    def design(cls, cutoff: float, rate: float, step: int | None = None) -> DecimationFilter:
        """Windowed-sinc low-pass at `cutoff`; the step follows from it unless given."""
        if cutoff >= 0.5 * rate:
            return cls(0.5 * rate, step or 1, np.ones(1))
        ratio = 0.5 * rate / cutoff
        if step is None:
            step = max(1, int(ratio + 1e-9))
        half = HALF_WIDTH * int(np.ceil(ratio))
        return cls(cutoff, step, signal.firwin(2 * half + 1, cutoff, fs=rate))

    @property
    def half(self) -> int:
        """Samples on each side that an output needs."""
        return len(self.taps) // 2

    def outputs(self, samples: int) -> int:
        """How many outputs a run of `samples` has: those with the whole window inside."""
        return max(0, (samples - 2 * self.half - 1) // self.step + 1) if samples else 0
