"""A log at the instants of its rows: all that a diagnosis looks at, and cheap to look at again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.diagnosis.moments import Moments, Normal
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.parameters import Packing
from dynident.filters.filters import count_filter_edge, subtract_lowpass
from dynident.recording.mend import SETTLED, shift_in_time
from dynident.recording.prepare import BANDWIDTH, TORQUE_FACTOR, Samples, filter_by_cutoff

MOST, FEW, BRIEF = 1000, 300, 60
"""Instants of a log that are looked at, thoroughly, in passing, and for what is hardly likely."""
ENOUGH = 0.3
"""Share of a joint's instants that has to keep its direction."""
THIN = 10.0
"""Rate that is enough for a filtered signal, over its cutoff."""
REACH = 1.0
"""How far a filter looks, in periods of its cutoff."""
FAR_OFF = 8.0
"""By how many times a clock may be wrong before noise comes through the filters; to filter for less
would only make the torque easier to explain."""
PERIODS = 20.0
"""Of a cutoff, that a log lasts at least to be filtered there."""


@dataclass(frozen=True, eq=False)
class Instants:
    """Where a log is looked at, and which rows there may be fitted.

    Attributes
    ----------
    samples : Samples
        The log.
    thin : int
        Of so many samples of the log, one is kept.
    place : ndarray of int, shape (instants,)
        Kept sample of each.
    turns : ndarray, shape (gears, n)
        How all that rubs turns with the joints.
    speeds : ndarray, shape (kept samples, n)
        Of the joints.
    lag : ndarray, shape (n,), or None
        So many kept samples later they are those of this motion.
    settling : float
        How long after the beginning of a segment they are not right [s].
    """

    samples: Samples
    thin: int
    place: Integers
    turns: Array
    speeds: Array
    lag: Array | None = None
    settling: float = 0.0

    @property
    def rate(self) -> float:
        """Of the kept samples [Hz]."""
        return self.samples.rate / self.thin

    @cached_property
    def moving(self) -> Booleans:
        """Rows that may be fitted, shape (instants, n)."""
        log, sample = self.samples, self.place * self.thin
        speeds = self.speeds if self.lag is None else shift_in_time(self.speeds, self.lag)
        found = log.moving[sample] & find_steady_instants(
            speeds, self.place, self.rate, log, self.turns
        )
        for start, _ in log.segments if self.settling else ():
            begun = (sample >= start) & (sample < start + self.settling * log.rate)
            found &= ~begun[:, None]
        return found


@dataclass(frozen=True, eq=False)
class MotionAt:
    """A motion of a robot at some instants, with the regressor along it.

    Attributes
    ----------
    base : BaseParameters
    packing : Packing
        Of the base parameters' columns.
    at : Instants
    q, dq, ddq : ndarray, shape (instants, n)
        Below the torque's cutoff.
    """

    base: BaseParameters
    packing: Packing
    at: Instants
    q: Array
    dq: Array
    ddq: Array

    @cached_property
    def rows(self) -> tuple[tuple[Integers, Array], ...]:
        """Per joint its columns among the base parameters, and its rows of the regressor there."""
        return tuple((columns, X[0]) for columns, X in stack_motion_rows([self]))

    @cached_property
    def XX(self) -> Array:
        """Normal matrices of the joints' rows, shape (n, p, p)."""
        found = np.zeros((len(self.rows), self.base.count, self.base.count))
        for j, (columns, X) in enumerate(self.rows):
            found[j, columns[:, None], columns] = X.T @ X
        return found

    def products(self, joint: int, torques: Array) -> Array:
        """Of a joint's rows and torques at the instants, shape (p, m)."""
        columns, X = self.rows[joint]
        found = np.zeros((self.base.count, torques.shape[1]))
        found[columns] = X.T @ torques[self.at.moving[:, joint]]
        return found


def stack_motion_rows(motions: Sequence[MotionAt]) -> list[tuple[Integers, Array]]:
    """Per joint its columns, and its rows along motions of one robot at the same instants.

    Returns
    -------
    list of (ndarray of int, shape (k,), ndarray, shape (motions, rows, k))
    """
    base, packing, moving = motions[0].base, motions[0].packing, motions[0].at.moving
    q, dq, ddq = (
        np.concatenate([getattr(m, label) for m in motions]) for label in ("q", "dq", "ddq")
    )
    filled = np.empty((len(q), packing.width))
    base.idim.fill(packing, q, dq, ddq, filled)
    packed: Array = filled.reshape(len(motions), len(moving), packing.width)
    return [
        (columns, packed[:, moving[:, j], entries])
        for j, (entries, columns) in enumerate(packing.joints)
    ]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Motion and torque below the torque's cutoff, at some instants of one log.

    Attributes
    ----------
    torque : ndarray, shape (kept samples, n)
        Low-passed, of the whole log, so that it can be looked at later or earlier.
    course : ndarray, shape (3, kept samples, n), or None
        Position, velocity and acceleration of the whole log below the torque's cutoff; None where
        the motion is read otherwise than it is logged.
    beside : tuple of Snapshot
        Of other logs of the same robot, which the same model has to explain.
    """

    motion: MotionAt
    torque: Array
    course: Array | None
    beside: tuple[Snapshot, ...] = ()

    @property
    def samples(self) -> Samples:
        """The log."""
        return self.motion.at.samples

    @property
    def thin(self) -> int:
        """Of so many samples of the log, one is kept."""
        return self.motion.at.thin

    @property
    def instant(self) -> Integers:
        """Kept sample of each instant, shape (instants,)."""
        return self.motion.at.place

    @property
    def base(self) -> BaseParameters:
        """What the motion's regressor is of."""
        return self.motion.base

    @property
    def q(self) -> Array:
        """Positions, shape (instants, n)."""
        return self.motion.q

    @property
    def dq(self) -> Array:
        """Velocities, shape (instants, n)."""
        return self.motion.dq

    @property
    def ddq(self) -> Array:
        """Accelerations, shape (instants, n)."""
        return self.motion.ddq

    @property
    def moving(self) -> Booleans:
        """Rows that may be fitted, shape (instants, n)."""
        return self.motion.at.moving

    @property
    def n(self) -> int:
        """Joints."""
        return int(self.torque.shape[1])

    @property
    def rate(self) -> float:
        """Of the torque [Hz]."""
        return self.motion.at.rate

    @property
    def tau(self) -> Array:
        """Torque at the instants, shape (instants, n)."""
        return self.torque[self.instant]

    def delayed(self, seconds: float) -> Array:
        """Torque of the instants as it stands so many seconds later in the log."""
        return interpolate_rows(
            self.torque, np.asarray(self.instant + seconds * self.rate, dtype=float)
        )

    def lagged(self, seconds: Array) -> Snapshot:
        """With each joint's motion as it stands so many seconds later; needs the course."""
        assert self.course is not None
        lag = seconds * self.rate
        q, dq, ddq = self.course[:, self.instant]
        for j in np.flatnonzero(lag):
            moved = interpolate_rows(self.course[:, :, j].T, self.instant + lag[j])
            q[:, j], dq[:, j], ddq[:, j] = moved.T
        at = replace(self.motion.at, speeds=self.course[1], lag=lag)
        return replace(self, motion=replace(self.motion, at=at)).along(q, dq, ddq)

    def quickened(self, slowness: Sequence[float]) -> Snapshot:
        """With a low-pass undone that the motion went through; needs the course.

        Parameters
        ----------
        slowness : sequence of float
            a, b, ...: a signal x was ``x + a x' + b x'' + ...`` [s, s^2, ...].
        """
        assert self.course is not None
        derivatives = [*self.course]
        for _ in slowness:
            derivatives.append(np.gradient(derivatives[-1], 1.0 / self.rate, axis=0))
        return self.following(
            np.array(
                [
                    derivatives[k] + sum(a * derivatives[k + 1 + i] for i, a in enumerate(slowness))
                    for k in range(3)
                ]
            ),
            SETTLED * slowness[0],
        )

    def quicker(self, factor: float) -> Snapshot:
        """With a clock that runs so many times as fast.

        What was filtered in the log's own time has then been filtered so many times as lightly: it
        is filtered once more where that is far off, the course is known, and the log long enough.
        """
        plain = self.along(self.q, factor * self.dq, factor**2 * self.ddq)
        if factor < FAR_OFF or self.course is None:
            return plain
        usual = TORQUE_FACTOR * BANDWIDTH  # of a log in seconds; another's may be far below
        cutoffs = tuple(min(f.cutoff, max(f.cutoff, usual) / factor) for f in self.samples.filters)
        if min(cutoffs) * len(self.torque) < PERIODS * self.rate:
            return plain
        torque, *course = (self._below(cutoffs, x) for x in (self.torque, *self.course))
        speeds = np.array([1.0, factor, factor**2])[:, None, None]
        return replace(self, torque=torque).following(speeds * np.array(course))

    def _below(self, cutoffs: tuple[float, ...], signal: Array) -> Array:
        filtered = signal.copy()
        for start, stop in self.samples.runs:
            own = slice(-(-start // self.thin), -(-stop // self.thin))
            filtered[own] = filter_by_cutoff(signal[own], cutoffs, self.rate)
        return filtered

    def errors_behind(self, slowness: Sequence[float], beta: Array) -> Array:
        """What a model leaves of torques that went through a low-pass, if it goes through it, too.

        Needs the course.

        Parameters
        ----------
        slowness : sequence of float
            a, or a and b, of the low-pass ``1 / (1 + a s + b s^2)`` [s, s^2].
        beta : ndarray, shape (p,)

        Returns
        -------
        ndarray, shape (n,)
            Shares of the torques; 0 where there is none.
        """
        assert self.course is not None
        model = self.base.idim.torque(self.base.standard(beta), *self.course)
        left = np.zeros_like(model)
        for start, stop in trim_edges(self.samples):
            own = slice(start // self.thin, stop // self.thin + 1)
            left[own] = subtract_lowpass(self.torque[own], model[own], slowness, self.rate)
        rest, square = (
            np.sum(x[self.instant] ** 2 * self.moving, axis=0) for x in (left, self.torque)
        )
        share = np.zeros(self.n)
        np.divide(rest, square, out=share, where=square > 0.0)
        return np.asarray(np.sqrt(share))

    def following(self, course: Array, settling: float = 0.0) -> Snapshot:
        """The same torques on another course of the motion, that settles first [s]."""
        at = replace(self.motion.at, speeds=course[1], lag=None, settling=settling)
        return replace(self, motion=replace(self.motion, at=at)).along(*course[:, self.instant])

    def moments(self, torques: Array | None = None) -> Moments:
        """All that least squares needs of it, and of those beside it.

        Parameters
        ----------
        torques : ndarray, shape (instants, m), optional
            Columns that a reading may combine; those of the log by default.
        """
        Y = self.tau if torques is None else torques
        XY = np.array([self.motion.products(j, Y) for j in range(self.n)])
        YY = np.array([y.T @ y for y in (Y[rows] for rows in self.moving.T)])
        rows = int(np.sum(self.moving))
        return Moments(self.base, self.motion.XX, XY, YY, rows, self.normal_of_others)

    @cached_property
    def normal(self) -> Normal:
        """The least-squares problem of the log as it stands."""
        tau, moving = self.tau, self.moving
        Xy, squares = np.zeros((self.n, self.base.count)), np.zeros(self.n)
        for j, (columns, X) in enumerate(self.motion.rows):
            y = tau[moving[:, j], j]
            Xy[j, columns], squares[j] = y @ X, y @ y
        own = Normal(self.base, (self.motion.XX,), Xy, squares, int(np.sum(moving)))
        others = self.normal_of_others
        return own if others is None else own.and_those_of(others)

    @property
    def normal_of_others(self) -> Normal | None:
        """That of those beside it; None without any."""
        found = None
        for other in self.beside:
            found = other.normal if found is None else found.and_those_of(other.normal)
        return found

    @cached_property
    def brief(self) -> Snapshot:
        """The same at fewer instants."""
        some = slice(None, None, max(1, len(self.instant) // BRIEF))
        m = self.motion
        at = replace(m.at, place=m.at.place[some])
        motion = MotionAt(m.base, m.packing, at, m.q[some], m.dq[some], m.ddq[some])
        return replace(self, motion=motion, beside=tuple(other.brief for other in self.beside))

    @property
    def alone(self) -> Snapshot:
        """The log without those beside it."""
        return replace(self, beside=())

    def along(self, q: Array, dq: Array, ddq: Array) -> Snapshot:
        """The same torques on another motion."""
        return replace(self, motion=replace(self.motion, q=q, dq=dq, ddq=ddq), course=None)

    def of(self, base: BaseParameters, packing: Packing) -> Snapshot:
        """The same log of another robot; `packing` is of its base parameters."""
        return replace(self, motion=replace(self.motion, base=base, packing=packing))


def take_snapshot(base: BaseParameters, samples: Samples, most: int = MOST) -> Snapshot:
    """Low-pass a log's motion and torque alike, and keep some of its instants.

    Parameters
    ----------
    most : int
        How many instants.
    """
    cutoffs = tuple(f.cutoff for f in samples.filters)
    thin = max(1, int(samples.rate / (THIN * max(cutoffs))))
    found = {
        label: low_pass_columns(getattr(samples, label), samples, cutoffs, thin)
        for label in ("q", "dq", "ddq", "tau")
    }
    length = sum(stop - start for start, stop in samples.segments)
    step = max(min(f.step for f in samples.filters), -(-length // most))
    sample = np.concatenate(
        [np.arange(start + step // 2, stop, step) for start, stop in samples.segments]
    )
    clear = np.zeros(len(samples.q), dtype=bool)
    for start, stop in trim_edges(samples):
        clear[start:stop] = True
    sample = sample[clear[sample]]
    course = np.array([found[label] for label in ("q", "dq", "ddq")])
    at = Instants(samples, thin, sample // thin, base.idim.structure.turning, course[1])
    motion = MotionAt(base, base.idim.packing(base.kept), at, *course[:, at.place])
    return Snapshot(motion, found["tau"], course)


def trim_edges(samples: Samples) -> list[tuple[int, int]]:
    """What of each run the edges of the torque's low-pass leave."""
    margin = count_filter_edge(min(f.cutoff for f in samples.filters), samples.rate)
    edges = [(start + margin, stop - margin) for start, stop in samples.runs]
    return [(start, stop) for start, stop in edges if start < stop]


def low_pass_columns(
    signal: Array, samples: Samples, cutoffs: tuple[float, ...], thin: int
) -> Array:
    """Columns of a log below cutoffs of their own, of which one sample in so many is kept."""
    filtered = np.zeros_like(signal)
    for start, stop in samples.runs:
        filtered[start:stop] = filter_by_cutoff(signal[start:stop], cutoffs, samples.rate)
    return np.ascontiguousarray(filtered[::thin])


def interpolate_rows(signals: Array, places: Array) -> Array:
    """Rows at places between them, linearly; those of the ends beyond them."""
    low = np.clip(np.floor(places).astype(np.int64), 0, len(signals) - 2)
    share = np.clip(places - low, 0.0, 1.0)[:, None]
    return np.asarray((1.0 - share) * signals[low] + share * signals[low + 1])


def find_steady_instants(
    dq: Array, place: Integers, rate: float, samples: Samples, turns: Array
) -> Booleans:
    """Instants about which all that rubs on a joint turns one way for as long as the filter looks.

    Coulomb friction turns within the filter elsewhere, and the sign at one instant is not what
    the filter makes of it. What hardly keeps any direction leaves no instants out.
    """
    keep = np.ones((len(place), dq.shape[1]), dtype=bool)
    sign, last = np.sign(turns @ dq.T), len(dq) - 1
    turned = np.zeros(sign.shape, dtype=np.int64)
    np.cumsum(sign[:, 1:] != sign[:, :-1], axis=1, out=turned[:, 1:])
    for j, filtered in enumerate(samples.filters):
        reach = int(np.ceil(REACH * rate / filtered.cutoff))
        before, after = np.maximum(place - reach, 0), np.minimum(place + reach, last)
        for own in turned[turns[:, j] != 0.0]:
            steadily = own[before] == own[after]
            if np.mean(steadily) >= ENOUGH:
                keep[:, j] &= steadily
    return keep
