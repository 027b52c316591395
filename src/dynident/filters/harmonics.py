"""Fourier coefficients of one period of a signal, by least squares over its samples.

A period need not be a whole number of samples for that, which a mean of samples or an FFT would
need; resampling first would need a filter of its own, and the coefficients give derivatives that
are exact for band-limited signals. Where the number is whole, the fit is the FFT. A signal is
``x(t) = c_0 + 2 Re sum_l c_l exp(2 pi i l t / T)``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dynident.core.arrays import Array

Complex = npt.NDArray[np.complex128]

SETTLED = 1e-12
ROUNDS = 200


def sum_harmonics(c: Complex, samples: int) -> Array:
    """A period of a signal from its harmonics, which are fewer than half the samples."""
    return np.asarray(np.fft.irfft(c * samples, n=samples, axis=0))


def differentiate_harmonics(c: Complex, period: float) -> Complex:
    """Harmonics of the time derivative."""
    return np.asarray(c * (2j * np.pi / period * np.arange(c.shape[-2])[:, None]))


def estimate_noise_spectrum(c: Complex) -> Array:
    """Variance of each harmonic of the mean, from the scatter between periods.

    ``E |c - E c|^2 / periods``, unbiased, of c of shape (periods, harmonics, k).
    """
    count = len(c)
    return np.asarray(np.sum(np.abs(c - c.mean(axis=0)) ** 2, axis=0) / (count - 1) / count)


def sum_spectrum(spectrum: Array) -> Array:
    """Variance of a signal from those of its harmonics, shape (k,)."""
    return np.asarray(spectrum[0] + 2.0 * np.sum(spectrum[1:], axis=0))


def transform_to_harmonics(x: Array, harmonics: int, length: float) -> Complex:
    """``sum_k x_k exp(-2 pi i l k / length)``, shape (harmonics, columns).

    A convolution with a chirp (Bluestein 1970): ``2 l k = l^2 + k^2 - (k - l)^2``. Harmonics are
    counted with that of order zero, and the samples in a period are any number.
    """
    samples = len(x)
    k = np.arange(max(samples, harmonics), dtype=float)
    chirp = np.exp(1j * np.pi * k * k / length)[:, None]
    size = 1 << (samples + harmonics - 1).bit_length()
    kernel = np.zeros((size, 1), dtype=complex)
    kernel[:harmonics] = chirp[:harmonics]
    kernel[size - samples + 1 :] = chirp[samples - 1 : 0 : -1]
    spread = np.fft.fft(x * chirp[:samples].conj(), size, axis=0) * np.fft.fft(kernel, axis=0)
    return np.asarray(np.fft.ifft(spread, axis=0)[:harmonics] * chirp[:harmonics].conj())


def compute_grid_weights(samples: int, harmonics: int, length: float) -> Array:
    """Weights of a grid that spans one period, whose products are those of the samples.

    Samples count, in the product of two series, as ``G_(l-m) = sum_k exp(-2 pi i (l-m) k /
    length)``, a geometric sum. So does a grid that is fine enough to tell all ``l - m`` apart,
    weighted by the inverse transform of G: on it a series and its adjoint are plain FFTs.
    """
    points = 1 << (4 * harmonics - 4).bit_length()
    rest = samples - length  # in it the sum over a whole number is zero but for l = m
    d = np.arange(1, 2 * harmonics - 1)
    turn = np.pi * d / length
    G = np.zeros(points // 2 + 1, dtype=complex)
    G[0] = samples
    G[d] = np.exp(-1j * turn * (rest - 1.0)) * np.sin(turn * rest) / np.sin(turn)
    return np.asarray(np.fft.irfft(G * (points / length), points))[:, None]


def compute_inner_product(a: Complex, b: Complex) -> Array:
    """Inner product of two sets of harmonics, that of their series over a whole period."""
    return np.asarray(a[0].real * b[0].real + 2.0 * np.sum((a[1:].conj() * b[1:]).real, axis=0))


def fit_harmonics(x: Array, first: float, length: float, harmonics: int) -> Complex:
    """Harmonics of one period by least squares over its samples, that of order zero among them.

    By conjugate gradients on the normal equations, whose matrix is as good as the unit matrix: it
    is the unit matrix where the period is a whole number of samples, and otherwise differs from it
    by the fraction of a sample that is too many or missing. The first sample is `first` behind the
    start of the period, which is of such a length [samples].
    """
    weights = compute_grid_weights(len(x), harmonics, length)
    middle = x.mean(axis=0)
    rest = transform_to_harmonics(x - middle, harmonics, length) / length
    c, direction, size = np.zeros_like(rest), rest.copy(), compute_inner_product(rest, rest)
    goal = SETTLED**2 * size
    for _ in range(ROUNDS):
        if np.all(size <= goal):
            break
        on_grid = weights * np.fft.irfft(direction, len(weights), axis=0)
        image = np.fft.rfft(on_grid, axis=0)[:harmonics]
        curvature = compute_inner_product(direction, image)
        step = np.divide(size, curvature, out=np.zeros_like(size), where=curvature > 0.0)
        c += step * direction
        rest -= step * image
        new = compute_inner_product(rest, rest)
        direction *= np.divide(new, size, out=np.zeros_like(size), where=size > 0.0)
        direction += rest
        size = new
    c[0] = c[0].real + middle
    return shift_harmonics(c, -first / length)


def shift_harmonics(c: Complex, share: float | Array) -> Complex:
    """Harmonics of a signal a share of the period later: ``x(t + share T)``."""
    return np.asarray(c * np.exp(2j * np.pi * share * np.arange(c.shape[-2])[:, None]))
