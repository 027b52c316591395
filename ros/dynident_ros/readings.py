"""Joint states in the robot's order, and the file that dynident reads them from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError

NANOSECONDS = 10**9


@dataclass(frozen=True)
class Reading:
    """What one message says of all joints of a robot."""

    stamp: int
    """Its time [ns]."""
    q: Array
    """Shape (n,). [rad or m]"""
    dq: Array | None
    tau: Array | None
    """`dq`, `tau`: shape (n,). [rad/s or m/s], [Nm or N]; None where the message has none."""


def order_reading(
    stamp: int,
    joints: Sequence[str],
    names: Sequence[str],
    position: Sequence[float],
    velocity: Sequence[float],
    effort: Sequence[float],
) -> Reading | None:
    """A joint state in the order of a robot's joints; None where it has not all of them.

    Parameters
    ----------
    stamp : int
        [ns]
    joints : sequence of str
        Of the robot.
    names : sequence of str
        Of the message, which may have others, too.
    position, velocity, effort : sequence of float
        As many as names, or none.
    """
    if not set(joints) <= set(names) or len(position) != len(names):
        return None
    places = [names.index(joint) for joint in joints]

    def take(values: Sequence[float]) -> Array | None:
        if len(values) != len(names):
            return None
        return np.array([values[place] for place in places], dtype=float)

    q = take(position)
    assert q is not None
    return Reading(stamp, q, take(velocity), take(effort))


def to_nanoseconds(sec: int, nanosec: int, arrival: int) -> int:
    """Time of a stamp; that of arrival where the header has none [ns]."""
    return (sec * NANOSECONDS + nanosec) or arrival


class LogFile:
    """A CSV that `dynident.read_log` reads, written row by row.

    Its columns are those of the first reading: ``time`` from there on, ``q_<joint>`` and, where it
    has them, ``dq_<joint>`` and ``tau_<joint>``; with a reference ``qref_<joint>`` and
    ``dqref_<joint>``. Rows are whole in the file as soon as they are written: what a run leaves
    that was ended by force is a log.

    Parameters
    ----------
    path : Path
        Which must not exist.
    references : bool
        Whether each row has the reference that was valid at its time.

    Attributes
    ----------
    rows, skipped : int
        Written, and left out: stamps that repeat or go backward, readings without what the first
        one had, or before the first reference.

    Raises
    ------
    InputError
        When the file exists, or cannot be written.
    """

    def __init__(self, path: Path, joints: Sequence[str], references: bool = False) -> None:
        self.path, self.joints, self.references = path, tuple(joints), references
        self.rows = self.skipped = 0
        self._signals: tuple[str, ...] = ()
        self._first = self._last = 0
        try:
            self._file: TextIO = path.open("x", encoding="utf-8")
        except FileExistsError as error:
            raise InputError(f"{path}: exists; give the log another name") from error
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from error

    def write(self, reading: Reading, reference: tuple[Array, Array] | None = None) -> bool:
        """Write a row; whether it was written."""
        found = {"q": reading.q, "dq": reading.dq, "tau": reading.tau}
        if self.references:
            found |= dict(zip(("qref", "dqref"), reference or (None, None), strict=True))
        there = tuple(signal for signal, values in found.items() if values is not None)
        late = reading.stamp <= self._last or (self.references and reference is None)
        if late or (self._signals and not set(self._signals) <= set(there)):
            self.skipped += 1
            return False
        if not self._signals:
            self._signals, self._first = there, reading.stamp
            names = [f"{signal}_{joint}" for signal in there for joint in self.joints]
            self._file.write(",".join(["time", *names]) + "\n")
        self._last = reading.stamp
        values = [value for signal in self._signals for value in found[signal]]  # type: ignore[union-attr]
        time = (reading.stamp - self._first) / NANOSECONDS
        cells = [f"{time:.9f}", *(repr(float(value)) for value in values)]
        self._file.write(",".join(cells) + "\n")
        self._file.flush()
        self.rows += 1
        return True

    def close(self) -> str:
        """Close it; what is said of it."""
        self._file.close()
        words = f"{self.path}: {self.rows} rows"
        return words + (f", {self.skipped} readings left out" if self.skipped else "")
