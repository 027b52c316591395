"""How much of what bodies and rotors ask for is in the torques, octave by octave of the frequency.

Torques that were smoothed, and positions that were not, lack it where the motion is quick. Bodies
make up for that where most of the motion is, and so no fit shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.idim import Idim
from dynident.dynamics.torques import evaluate_drive_torques, evaluate_rigid_torques
from dynident.recording.prepare import Samples

PERIODS = 20.0
"""Of half the torques' cutoff that a stretch lasts."""
OCTAVES = 5
"""Below half of the torques' cutoff that are looked at."""
LIVELY, FADING = 0.01, 0.7
"""Share of its inertia's spectrum that a joint has in an octave at least, to tell there, and over
that in the octave below at most: noise of accelerations has more."""
VAGUE, BLUR = 0.15, 0.03
"""Standard error of a joint's share from which it tells nothing, and what any model adds to it."""
NOISE_SHARE = 0.3
"""Of what is moved, not noise, torques have more; of LWR4+ 0.03 to 0.07 were measured of noise."""
LONGEST = 2**16
"""Samples of a stretch."""
OPEN = 1e-6
"""Share of a column that the others leave, below which they have it."""


class Octave(NamedTuple):
    """Share of what bodies and rotors ask for that torques have, and its standard error.

    Of frequencies from `low` to twice that [Hz].
    """

    low: float
    share: float
    error: float


def measure_smoothing(idim: Idim, theta: Array, logs: Sequence[Samples]) -> Octave | None:
    """The highest octave below half of the torques' cutoff in which joints tell, if any does.

    Least squares of the torques' spectrum there by that of the model's bodies and rotors, and of
    speeds and their signs. Joints tell whose bodies have some of their spectrum in the octave, and
    much less than in the octave below: more is noise, and so is what torques have nothing of.
    """
    hz = 0.5 * min(f.cutoff for log in logs for f in log.filters)
    spectra = [
        each
        for log in logs
        for run in log.segments
        if (run[1] - run[0]) * hz > PERIODS * log.rate
        for each in [take_spectra(idim, theta, log, *run)]
    ]
    if not spectra:
        return None
    f = np.concatenate([own for own, _ in spectra])
    every = np.concatenate([own for _, own in spectra], axis=1)
    sizes = np.sqrt(np.sum(np.abs(every[1]) ** 2, axis=0))
    every /= np.where(sizes > 0.0, sizes, 1.0)  # joints that loops move are driven by nothing
    below = np.zeros(idim.robot.n)
    found = None
    for low in hz * 2.0 ** np.arange(-OCTAVES, 0):
        own = every[:, (low <= f) & (f < 2.0 * low)]
        there = np.sqrt(np.sum(np.abs(own[1]) ** 2, axis=0))
        tells = (there > LIVELY) & (there < FADING * below)
        below = there
        if own.shape[1] > len(own):
            found = combine_joints(low, own[:, :, tells]) or found
    return found


def take_spectra(
    idim: Idim, theta: Array, log: Samples, start: int, stop: int
) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies, and spectra of torques, of what bodies and rotors ask for, of speeds and signs.

    Spectra have the shape (4, frequencies, n).
    """
    own = slice(start, min(stop, start + LONGEST))
    q, dq, ddq = log.q[own], log.dq[own], log.ddq[own]
    (body,) = evaluate_rigid_torques(idim, idim.split(theta)[0][None], (0,), q, dq[None], ddq[None])
    is_rotor = [each.symbol.startswith("Ia") for each in idim.parameters]
    rotors = evaluate_drive_torques(idim, np.where(is_rotor, theta, 0.0), q, dq, ddq)
    signals = np.array([log.tau[own], body + rotors, dq, np.sign(dq)])
    window = np.hanning(len(q))[:, None]
    centred = signals - np.mean(signals, axis=1, keepdims=True)
    return np.fft.rfftfreq(len(q), 1.0 / log.rate), np.fft.rfft(window * centred, axis=1)


def combine_joints(low: float, spectra: np.ndarray) -> Octave | None:
    """The mean share of some joints; its error counts by how much they disagree, too."""
    shares, errors = [], []
    for torque, *model in spectra.transpose(2, 0, 1):
        X = np.array(model).T
        size, _, rank, _ = np.linalg.lstsq(X, torque, rcond=OPEN)
        if rank < X.shape[1]:
            continue
        rest = np.sum(np.abs(torque - X @ size) ** 2) / (len(X) - rank)
        inverse = np.linalg.inv(X.conj().T @ X)
        error = float(np.sqrt(inverse[0, 0].real * rest))
        if error < VAGUE and abs(size[0]) > NOISE_SHARE:
            shares.append(abs(size[0]))
            errors.append(np.hypot(error, BLUR))
    if not shares:
        return None
    weights = 1.0 / np.square(errors)
    share = float(weights @ shares / np.sum(weights))
    scatter = float(weights @ np.square(np.array(shares) - share)) / max(1, len(shares) - 1)
    return Octave(low, share, float(np.sqrt(max(1.0, scatter) / np.sum(weights))))
