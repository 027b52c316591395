"""A log at the instants of its rows: all that a diagnosis looks at, and cheap to look at again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.diagnosis.moments import Moments, Normal
from dynident.dynamics.base import BaseParameters
from dynident.recording.prepare import Samples, by_cutoff

MOST, FEW = 1000, 300
"""Instants of a log that are looked at, thoroughly or in passing."""
ENOUGH = 0.3
"""Share of a joint's instants that has to keep its direction."""
REACH = 1.0
"""How far a filter looks, in periods of its cutoff."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Motion and torque below the torque's cutoff, at some instants of one log.

    Attributes
    ----------
    base : BaseParameters
    samples : Samples
        The log.
    q, dq, ddq : ndarray, shape (instants, n)
    torque : ndarray, shape (samples, n)
        Low-passed, of the whole log, so that it can be looked at later or earlier.
    instant : ndarray of int, shape (instants,)
        Sample of each.
    moving : ndarray of bool, shape (instants, n)
        Rows that may be fitted.
    beside : tuple of Snapshot
        Of other logs of the same robot, which the same model has to explain.
    """

    base: BaseParameters
    samples: Samples
    q: Array
    dq: Array
    ddq: Array
    torque: Array
    instant: Integers
    moving: Booleans
    beside: tuple[Snapshot, ...] = ()

    @property
    def tau(self) -> Array:
        """Torque at the instants, shape (instants, n)."""
        return self.torque[self.instant]

    def delayed(self, seconds: float) -> Array:
        """Torque of the instants as it stands so many seconds later in the log."""
        place = self.instant + seconds * self.samples.rate
        low = np.clip(np.floor(place).astype(np.int64), 0, len(self.torque) - 2)
        share = np.clip(place - low, 0.0, 1.0)[:, None]
        return np.asarray((1.0 - share) * self.torque[low] + share * self.torque[low + 1])

    def moments(self, torques: Array | None = None) -> Moments:
        """All that least squares needs of it, and of those beside it.

        Parameters
        ----------
        torques : ndarray, shape (instants, m), optional
            Columns that a reading may combine; those of the log by default.
        """
        base = self.base
        Y = self.tau if torques is None else torques
        n, p, m = self.q.shape[1], base.count, Y.shape[1]
        packing = base.idim.packing(base.kept)
        packed = np.empty((len(self.q), packing.width))
        base.idim.fill(packing, self.q, self.dq, self.ddq, packed)
        XX, XY, YY = np.zeros((n, p, p)), np.zeros((n, p, m)), np.zeros((n, m, m))
        for j, (entries, columns) in enumerate(packing.joints):
            rows = self.moving[:, j]
            X, y = packed[rows, entries], Y[rows]
            XX[j][np.ix_(columns, columns)] = X.T @ X
            XY[j][columns] = X.T @ y
            YY[j] = y.T @ y
        beside = None
        for other in self.beside:
            beside = other.normal if beside is None else beside.and_those_of(other.normal)
        return Moments(base, XX, XY, YY, int(np.sum(self.moving)), beside)

    @cached_property
    def normal(self) -> Normal:
        """The least-squares problem of the log as it stands."""
        return self.moments().read(np.eye(self.q.shape[1]))

    @property
    def alone(self) -> Snapshot:
        """The log without those beside it."""
        return replace(self, beside=())

    def along(self, q: Array, dq: Array, ddq: Array) -> Snapshot:
        """The same torques on another motion."""
        return replace(self, q=q, dq=dq, ddq=ddq)


def take_snapshot(base: BaseParameters, samples: Samples, most: int = MOST) -> Snapshot:
    """Low-pass a log's motion and torque alike, and keep some of its instants.

    Parameters
    ----------
    base : BaseParameters
    samples : Samples
    most : int
        How many instants.
    """
    cutoffs = tuple(f.cutoff for f in samples.filters)
    found = {}
    for label in ("q", "dq", "ddq", "tau"):
        signal = getattr(samples, label)
        filtered = np.zeros_like(signal)
        for start, stop in samples.runs:
            filtered[start:stop] = by_cutoff(signal[start:stop], cutoffs, samples.rate)
        found[label] = filtered
    length = sum(stop - start for start, stop in samples.segments)
    step = max(min(f.step for f in samples.filters), -(-length // most))
    instant = np.concatenate(
        [np.arange(start + step // 2, stop, step) for start, stop in samples.segments]
    )
    return Snapshot(
        base,
        samples,
        found["q"][instant],
        found["dq"][instant],
        found["ddq"][instant],
        found["tau"],
        instant,
        samples.moving[instant] & steady(found["dq"], instant, samples, base),
    )


def steady(dq: Array, instant: Integers, samples: Samples, base: BaseParameters) -> Booleans:
    """Instants about which all that rubs on a joint turns one way for as long as the filter looks.

    Coulomb friction turns within the filter elsewhere, and the sign at one instant is not what
    the filter makes of it. What hardly keeps any direction leaves no instants out.
    """
    keep = np.ones((len(instant), dq.shape[1]), dtype=bool)
    last = len(dq) - 1
    for gear in base.idim.gears:
        turned = np.cumsum(np.diff(np.sign(dq @ gear.turns), prepend=0.0) != 0.0)
        for j in np.flatnonzero(gear.turns):
            reach = int(np.ceil(REACH * samples.rate / samples.filters[j].cutoff))
            before, after = np.maximum(instant - reach, 0), np.minimum(instant + reach, last)
            own = turned[before] == turned[after]
            if np.mean(own) >= ENOUGH:
                keep[:, j] &= own
    return keep
