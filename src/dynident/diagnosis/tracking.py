"""Logs of encoders alone: what the law asks of the drives, beside what the robot's file needs.

Along a measured motion the law's torque is known, ``g D w``, and so is the torque of the file's
bodies. What is between them has to be drives' own, joint by joint:

    ``g D w(t - d) = f tau_file(q, dq, ddq) + Ia ddq + fv dq + fc sign(dq) + off``.

Divided by the law's stiffness all is an angle of the target, and what least squares leaves of it
is counted in the joint's motion. Only instants at which a joint keeps its direction for as long as
the low-pass rings are looked at: a joint that sticks bears anything up to its friction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.control.controller import DQ, DQREF, QREF, Controller
from dynident.control.controller import Q as POSITION
from dynident.core.arrays import Array, Booleans
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.scene import TINY
from dynident.dynamics.idim import Idim
from dynident.filters.blocks import low_pass_signals
from dynident.filters.filters import DecimationFilter, count_filter_edge
from dynident.filters.shift import shift_in_time
from dynident.instants.motion import find_steady_instants
from dynident.instants.squares import average_errors
from dynident.recording.prepare import Samples
from dynident.recording.repairs import LogRepair

DELAYS = np.arange(0.0, 0.101, 0.01)
"""Of targets, that are tried [s]."""
DRIVE = 4
"""Columns of a drive."""


@dataclass(frozen=True, eq=False)
class TrackingScene:
    """A log below a cutoff, at some of its samples."""

    log: Samples
    idim: Idim
    """The robot's model, whose bodies are the file's."""
    law: Controller
    time: Array
    """[s], from the log's first sample, shape (instants,)."""
    rate: float
    """Of the instants [Hz]."""
    q: Array
    dq: Array
    ddq: Array
    target: Array
    pace: Array
    """`q`, `dq`, `ddq`, `target`, `pace`: positions as the encoders have them, targets and their
    speeds, shape (instants, n)."""
    kept: Booleans
    """Rows that are looked at, shape (instants, n)."""
    factor: Array
    """Times the file's torque that is asked for, shape (n,)."""

    @property
    def n(self) -> int:
        """Joints."""
        return len(self.factor)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the joints."""
        return self.idim.robot.joint_names

    @cached_property
    def stiffness(self) -> Array:
        """Torque per target, shape (n,)."""
        return np.asarray(self.law.gain * self.law.D[:, QREF])

    @cached_property
    def needed(self) -> Array:
        """The file's torque as an angle of the target, shape (instants, n)."""
        idim = self.idim
        return np.asarray(idim.torque(idim.nominal, self.q, self.dq, self.ddq) / self.stiffness)

    @cached_property
    def asked(self) -> Booleans:
        """Joints that are asked to move: others tell nothing, and are not counted, shape (n,)."""
        spread = np.std(self.target, axis=0)
        return np.asarray(spread > limit.STILL_SHARE * np.max(spread))

    @cached_property
    def size(self) -> Array:
        """How far the targets move, shape (n,)."""
        return measure_motion(self.target)

    @cached_property
    def unexplained(self) -> Array:
        """What is asked for beside the file's torque, by `DELAYS`, shape (delays, instants, n)."""
        return np.array([self.ask(delay) for delay in DELAYS]) - self.factor * self.needed

    @cached_property
    def factors(self) -> Array:
        """Triangles of a drive's columns and of `unexplained`, a joint each: all of rows counts."""
        width = DRIVE + len(DELAYS)
        found = np.zeros((self.n, width, width))
        for j in range(self.n):
            rows = np.column_stack([self.columns(j), self.unexplained[:, self.kept[:, j], j].T])
            R = np.linalg.qr(rows, mode="r")
            found[j, : len(R)] = R
        return found

    def columns(self, joint: int) -> Array:
        """Columns of a joint's drive at its rows: Ia, fv, fc and off, shape (rows, 4)."""
        at = self.kept[:, joint]
        dq = self.dq[at, joint]
        return np.column_stack([self.ddq[at, joint], dq, np.sign(dq), np.ones_like(dq)])

    def ask(self, delay: float) -> Array:
        """What the law asks for as an angle of the target, shape (instants, n)."""
        late, D = np.full(self.n, -delay * self.rate), self.law.D
        target, pace = (shift_in_time(x, late) for x in (self.target, self.pace))
        own = (
            D[:, QREF] * target + D[:, DQREF] * pace + D[:, POSITION] * self.q + D[:, DQ] * self.dq
        )
        return np.asarray(own / D[:, QREF])

    def repaired(self, repair: LogRepair) -> TrackingScene:
        """The log as a repair would leave it."""
        n, offset = self.n, repair.sizes("offset", self.n)
        own, sign = repair.places("q", n), repair.signs("q", n)
        at, turned = repair.places("qref", n), repair.signs("qref", n)
        lag = repair.sizes("lag", n) * self.rate
        q, dq, ddq = (shift_in_time(sign * x[:, own], lag) for x in (self.q, self.dq, self.ddq))
        target, pace = (turned * x[:, at] for x in (self.target, self.pace))
        read = replace(self, q=q, dq=dq, ddq=ddq, target=target, pace=pace, kept=self.kept[:, own])
        return read.moved(offset, offset)

    def moved(self, zero: Array, asked: Array | float = 0.0) -> TrackingScene:
        """Encoders that read more by so much, and targets, shapes (n,)."""
        return replace(self, q=self.q + zero, target=self.target + asked)

    def without(self, first: float, last: float) -> TrackingScene:
        """Without what is between two times [s]."""
        inside = (first <= self.time) & (self.time <= last)
        return replace(self, kept=self.kept & ~inside[:, None])


def take_tracking(idim: Idim, law: Controller, log: Samples) -> TrackingScene:
    """A log without torques at the instants that are looked at."""
    assert log.qref is not None
    n = idim.robot.n
    cutoff = min(limit.TRACKED_HZ, *log.position_hz, 0.25 * log.rate)
    thin = max(1, int(log.rate / (limit.THIN * cutoff)))
    cutoffs = (cutoff,) * n
    pace = np.zeros_like(log.qref) if log.dqref is None else log.dqref
    q, dq, ddq, target, paces = low_pass_signals(
        (log.q, log.dq, log.ddq, log.qref, pace), log.runs, log.rate, [cutoffs] * 5, thin
    )
    place, rate = np.arange(len(q)), log.rate / thin
    filters = (DecimationFilter.design(cutoff, log.rate),) * n
    within, edge = np.zeros(len(log.q), dtype=bool), count_filter_edge(cutoff, log.rate)
    for start, stop in log.runs:
        within[start + edge : max(start, stop - edge)] = True
    kept = find_steady_instants(dq, place, rate, filters, np.eye(n)) & within[::thin, None]
    return TrackingScene(
        log, idim, law, place / rate, rate, q, dq, ddq, target, paces, kept, np.ones(n)
    )


@dataclass(frozen=True, eq=False)
class TrackedDrives:
    """What drives of one robot leave of some logs."""

    errors: Array
    """Shape (logs * n,). Root mean square over the targets' motion; 0 of joints that are not asked
    to move."""
    delay: int
    """Which of `DELAYS` explains them best."""
    drives: Array
    """Shape (n, 4). Values of `TrackingScene.columns`, as angles of the targets; the last is the
    offset."""

    @property
    def mean(self) -> float:
        """Over the joints."""
        return average_errors(self.errors)

    def rest(self, log: TrackingScene) -> Array:
        """What they leave of a log, shape (instants, n); zero in rows that are not looked at."""
        found = np.zeros_like(log.q)
        for j, drive in enumerate(self.drives):
            at = log.kept[:, j]
            found[at, j] = log.unexplained[self.delay, at, j] - log.columns(j) @ drive
        return found


def track(logs: Sequence[TrackingScene]) -> TrackedDrives:
    """Drives that explain some logs best, and a delay of all targets.

    An offset torque that turns a target by more than drives have is counted as an error.
    """
    n, count = logs[0].n, len(DELAYS)
    errors, drives = np.zeros((count, len(logs), n)), np.zeros((count, n, DRIVE))
    for j in range(n):
        X, y = np.split(np.concatenate([log.factors[j] for log in logs]), [DRIVE], axis=1)
        Q, R = np.linalg.qr(np.vstack([X, 1e-9 * np.eye(DRIVE)]))  # where a joint never moves
        z = Q[:-DRIVE].T @ y
        drives[:, j] = np.linalg.solve(R, z).T
        left = (y - Q[:-DRIVE] @ z).reshape(len(logs), -1, count)
        beyond = drives[:, j, -1] - np.clip(drives[:, j, -1], -limit.ZERO_FAR, limit.ZERO_FAR)
        for k, log in enumerate(logs):
            rows = max(1, int(np.sum(log.kept[:, j])))
            size = np.sqrt(np.sum(left[k] ** 2, axis=0) / rows + beyond**2) / log.size[j]
            errors[:, k, j] = log.asked[j] * np.maximum(size, TINY)
    best = int(np.argmin([average_errors(each) for each in errors]))
    return TrackedDrives(errors[best].ravel(), best, drives[best])


def measure_motion(q: Array) -> Array:
    """How far joints move about their mean; of what hardly does a share of the most, shape (n,)."""
    size = np.std(q, axis=0)
    return np.asarray(np.maximum(size, max(limit.STILL_SHARE * float(np.max(size)), TINY)))
