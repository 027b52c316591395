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


def series(c: Complex, samples: int) -> Array:
    """A period of a signal from its harmonics.

    Parameters
    ----------
    c : ndarray of complex, shape (harmonics, k)
        Fewer than half the samples.
    samples : int

    Returns
    -------
    ndarray, shape (samples, k)
    """
    return np.asarray(np.fft.irfft(c * samples, n=samples, axis=0))


def derivative(c: Complex, period: float) -> Complex:
    """Harmonics of the time derivative."""
    return np.asarray(c * (2j * np.pi / period * np.arange(c.shape[-2])[:, None]))


def spectrum(c: Complex) -> Array:
    """Variance of each harmonic of the mean, from the scatter between periods.

    Parameters
    ----------
    c : ndarray of complex, shape (periods, harmonics, k)

    Returns
    -------
    ndarray, shape (harmonics, k)
        Of ``E |c - E c|^2 / periods``, unbiased.
    """
    count = len(c)
    return np.asarray(np.sum(np.abs(c - c.mean(axis=0)) ** 2, axis=0) / (count - 1) / count)


def total(spectrum: Array) -> Array:
    """Variance of a signal from those of its harmonics, shape (k,)."""
    return np.asarray(spectrum[0] + 2.0 * np.sum(spectrum[1:], axis=0))


class Chirp:
    """A trigonometric series at samples whose number a period is any number, and its adjoint.

    Both are convolutions with a chirp (Bluestein 1970): ``2 l k = l^2 + k^2 - (k - l)^2``.

    Parameters
    ----------
    samples, harmonics : int
        Harmonics with that of order zero.
    length : float
        Samples in a period.
    """

    def __init__(self, samples: int, harmonics: int, length: float) -> None:
        self.samples, self.harmonics = samples, harmonics
        k = np.arange(max(samples, harmonics), dtype=float)
        self.chirp = np.exp(1j * np.pi * k * k / length)[:, None]
        self.size = 1 << int(np.ceil(np.log2(samples + harmonics)))
        self.to_samples = self._kernel(self.chirp.conj(), samples, harmonics)
        self.to_harmonics = self._kernel(self.chirp, harmonics, samples)

    def _kernel(self, chirp: Complex, ahead: int, behind: int) -> Complex:
        kernel = np.zeros((self.size, 1), dtype=complex)
        kernel[:ahead] = chirp[:ahead]
        kernel[self.size - behind + 1 :] = chirp[behind - 1 : 0 : -1]
        return np.asarray(np.fft.fft(kernel, axis=0))

    def _convolved(self, x: Complex, kernel: Complex) -> Complex:
        return np.asarray(np.fft.ifft(np.fft.fft(x, self.size, axis=0) * kernel, axis=0))

    def values(self, c: Complex) -> Array:
        """The series of harmonics (harmonics, k) at the samples, shape (samples, k)."""
        weighted = 2.0 * c * self.chirp[: self.harmonics]
        weighted[0] = c[0].real
        found = self._convolved(weighted, self.to_samples)
        return np.asarray((found[: self.samples] * self.chirp[: self.samples]).real)

    def adjoint(self, x: Array) -> Complex:
        """``sum_k x_k exp(-2 pi i l k / length)``, shape (harmonics, columns)."""
        found = self._convolved(x * self.chirp[: self.samples].conj(), self.to_harmonics)
        return np.asarray(found[: self.harmonics] * self.chirp[: self.harmonics].conj())


def product(a: Complex, b: Complex) -> Array:
    """Inner product of two sets of harmonics, that of their series over a whole period."""
    return np.asarray(a[0].real * b[0].real + 2.0 * np.sum((a[1:].conj() * b[1:]).real, axis=0))


def fitted_harmonics(x: Array, first: float, length: float, harmonics: int) -> Complex:
    """Harmonics of one period by least squares over its samples.

    By conjugate gradients on the normal equations, whose matrix is as good as the unit matrix:
    it is the unit matrix where the period is a whole number of samples, and otherwise differs
    from it by the fraction of a sample that is too many or missing.

    Parameters
    ----------
    x : ndarray, shape (samples, k)
    first : float
        Of the first sample behind the start of the period [samples].
    length : float
        Of the period [samples].
    harmonics : int
        With that of order zero.

    Returns
    -------
    ndarray of complex, shape (harmonics, k)
    """
    chirp = Chirp(len(x), harmonics, length)
    middle = x.mean(axis=0)
    rest = chirp.adjoint(x - middle) / length
    c, direction, size = np.zeros_like(rest), rest.copy(), product(rest, rest)
    goal = SETTLED**2 * size
    for _ in range(ROUNDS):
        if np.all(size <= goal):
            break
        image = chirp.adjoint(chirp.values(direction)) / length
        curvature = product(direction, image)
        step = np.divide(size, curvature, out=np.zeros_like(size), where=curvature > 0.0)
        c += step * direction
        rest -= step * image
        new = product(rest, rest)
        direction *= np.divide(new, size, out=np.zeros_like(size), where=size > 0.0)
        direction += rest
        size = new
    c[0] = c[0].real + middle
    return shifted(c, -first / length)


def shifted(c: Complex, share: float | Array) -> Complex:
    """Harmonics of a signal a share of the period later: ``x(t + share T)``."""
    return np.asarray(c * np.exp(2j * np.pi * share * np.arange(c.shape[-2])[:, None]))
