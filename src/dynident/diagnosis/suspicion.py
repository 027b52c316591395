"""What may be wrong with a log, and how it is read then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.errors import ComputationError
from dynident.diagnosis.moments import Moments, Normal
from dynident.diagnosis.snapshot import Snapshot
from dynident.recording.mend import Mending, format_toml, shift_in_time, undo_lowpass
from dynident.robot.model import Robot

Change = Callable[[Snapshot], Snapshot]
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Reading:
    """One way to read a log.

    Attributes
    ----------
    torque : ndarray, shape (n, n)
        Row j: the combination of the logged torques that is joint j's.
    delay : ndarray, shape (n,)
        By which joint j's torque then lags the motion [s].
    change : callable, optional
        The snapshot as it would have been: its motion, or its robot.
    slowness : tuple of float
        a, or a and b, of a low-pass ``1 / (1 + a s + b s^2)`` of the torque that the change undoes;
        empty for none [s, s^2].
    """

    torque: Array
    delay: Array
    change: Change | None = None
    slowness: tuple[float, ...] = ()

    @classmethod
    def plain(cls, n: int) -> Reading:
        """The log as it stands."""
        return cls(np.eye(n), np.zeros(n))

    @classmethod
    def of_mending(cls, mending: Mending, n: int) -> Reading:
        """The log as a mending would leave it."""
        torque = mending.signs("tau", n)[:, None] * np.eye(n)[mending.places("tau", n)]
        delay = mending.delays(n)
        places, sign = mending.places("q", n), mending.signs("q", n)
        offset = mending.offsets(n)

        quick, lag = {} if mending.unfilter is None else mending.unfilter, mending.lags(n)
        still = np.all(sign == 1.0) and np.all(offset == 0.0) and np.all(places == np.arange(n))

        def change(s: Snapshot) -> Snapshot:
            if "q" in quick:
                s = s.quickened(quick["q"])
            if np.any(lag):
                s = s.lagged(lag)
            if not still:
                q, dq, ddq = (sign * x[:, places] for x in (s.q, s.dq, s.ddq))
                s = s.along(q + offset, dq, ddq)
            if "tau" in quick:
                s = replace(s, torque=undo_lowpass(s.torque, mending.undoing("tau"), s.rate))
            return s

        none = still and not quick and not np.any(lag)
        return cls(torque, delay, None if none else change, quick.get("tau", ()))

    def changed(self, change: Change) -> Reading:
        """With a change of the snapshot."""
        return replace(self, change=change)

    @property
    def touched(self) -> Booleans:
        """Joints whose torque is another, shape (n,)."""
        return np.asarray(np.any(self.torque != np.eye(len(self.torque)), axis=1))

    @property
    def combines(self) -> bool:
        """Whether it only combines the torques as they are logged."""
        return self.change is None and not np.any(self.delay)

    def of(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, read in this way."""
        found = snapshot
        if np.any(self.touched):
            found = replace(found, torque=found.torque @ self.torque.T)
        if np.any(self.delay != 0.0):
            found = replace(found, torque=shift_in_time(found.torque, self.delay * found.rate))
        return found if self.change is None else self.change(found)

    def errors(self, snapshot: Snapshot, normal: Normal, beta: Array) -> Array:
        """What a model leaves of the torques of a snapshot under this reading, as shares of them.

        What undoes a low-pass of the torque raises the noise in it, as no other reading does: so
        that they compare, what is left is counted behind that low-pass, of which the whole course
        of the motion has to be known.

        Parameters
        ----------
        normal : Normal
            Its least-squares problem under this reading.
        beta : ndarray, shape (p,)

        Returns
        -------
        ndarray, shape (groups,)
        """
        errors = normal.errors(beta)
        if self.slowness and snapshot.course is not None:
            errors[: snapshot.n] = snapshot.errors_behind(self.slowness, beta)
        return errors


@dataclass(frozen=True, eq=False)
class Suspected(Generic[R]):
    """What may be wrong, and the reading that undoes it: of a snapshot, or of other signals.

    Attributes
    ----------
    diagnosis : str
        Name in `DIAGNOSES`.
    what : str
        In words: ``torque of elbow has the other sign``.
    reading : R
        What undoes it.
    mending : Mending or None
        The same for the log's table in a study.
    advice : str
        What else to do.
    freedom : int
        Numbers that were fitted for it: of what explains a log alike, the least is believed.
    """

    diagnosis: str
    what: str
    reading: R
    mending: Mending | None = None
    advice: str = ""
    freedom: int = 0

    @property
    def lines(self) -> tuple[str, ...]:
        """What undoes it in the log's table."""
        return () if self.mending is None else self.mending.lines()

    @property
    def mend(self) -> str:
        """What to do, in words."""
        return f"add {', '.join(self.lines)} to [[log]]" if self.lines else self.advice


@dataclass(frozen=True, eq=False)
class Suspicion(Suspected[Reading]):
    """What may be wrong with a snapshot.

    Attributes
    ----------
    unit : str, tuple of str, or None
        Of the positions, all or each, where that is what was wrong.
    rate : float or None
        Of the log, where that is what was wrong [Hz].
    gravity : tuple of float, or None
        Of the robot, where that is what was wrong [m/s^2].
    error : float
        Largest standard error of what was measured; 0 for none.
    measure : callable, optional
        The same suspicion of a snapshot with its size and words; None if it is none.
    """

    unit: str | tuple[str, ...] | None = None
    rate: float | None = None
    gravity: tuple[float, ...] | None = None
    error: float = 0.0
    measure: Callable[[Snapshot], Suspicion | None] | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """What undoes it in the log's table."""
        return (
            super().lines if self.unit is None else (f"units = {{ q = {format_toml(self.unit)} }}",)
        )


@dataclass(frozen=True, eq=False)
class Case:
    """A log that is looked at.

    Attributes
    ----------
    own : Moments
        Of the log as it stands.
    beta : ndarray, shape (p,)
        Its best consistent model.
    errors : ndarray, shape (groups,)
        Relative errors of that, of the log's joints and of those beside it.
    bad : frozenset of int
        Joints that may be others, or turned round: that are not explained well.
    """

    snapshot: Snapshot
    own: Moments
    beta: Array
    errors: Array
    bad: frozenset[int]

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.snapshot.base.idim.robot

    @property
    def n(self) -> int:
        """Joints."""
        return self.robot.n

    @property
    def names(self) -> tuple[str, ...]:
        """Of the joints."""
        return self.robot.joint_names

    def rubs(self, parameter: int) -> bool:
        """Whether a standard parameter is one of friction."""
        idim = self.snapshot.base.idim
        return idim.drive_columns[parameter - idim.inertial].friction is not None

    @cached_property
    def of_others(self) -> Array:
        """The best consistent model of the logs beside it."""
        first, *others = (other.normal for other in self.snapshot.beside)
        for other in others:
            first = first.and_those_of(other)
        return fit_consistent_model(first)


def make_mendable_suspicion(
    diagnosis: str, what: str, mending: Mending, n: int, freedom: int = 0, error: float = 0.0
) -> Suspicion:
    """A suspicion that a log's table can mend."""
    reading = Reading.of_mending(mending, n)
    return Suspicion(diagnosis, what, reading, mending, error=error, freedom=freedom)


def predict_torque(s: Snapshot, beta: Array) -> Array:
    """A model's torques, shape (instants, n)."""
    return s.base.idim.torque(s.base.standard(beta), s.q, s.dq, s.ddq)


def fit_consistent_model(normal: Normal) -> Array:
    """The best consistent model, or else that of least squares."""
    try:
        return normal.consistent()
    except ComputationError:
        return normal.system.solve()


def compute_column_rms(x: Array) -> Array:
    """Of each column; never zero."""
    return np.asarray(np.sqrt(np.mean(x**2, axis=0)) + np.finfo(float).tiny)
