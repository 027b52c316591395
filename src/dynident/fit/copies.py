"""What tells a log again that was fitted, in other units, of fewer digits, or a stretch of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.filters.blocks import cut_into_blocks
from dynident.recording.prepare import Samples

KEPT = 64
"""Samples of a log that are kept, from its first to its last."""
FEWEST = 3
"""Of which so many have to be in a stretch of it that is told."""
ROUNDED = 1e-4
"""Difference of a signal to its copy in fewer digits, as a share of how far it moves: torques of
motions that are made again differ by a hundredth."""
NEAR = 10.0
"""Times the mean by which rounding may be off in a sample."""
DIGITS = 9
"""That are kept."""


@dataclass(frozen=True)
class LogMarks:
    """A few samples of a log, by which a copy of it is known: a number for all joints of each."""

    samples: int
    """Of the log."""
    positions: tuple[float, ...]
    torques: tuple[float, ...]


def mark_log(log: Samples) -> LogMarks:
    """The marks of a log."""
    rows = spread_marks(len(log.measured))
    told = (
        tuple(float(f"{x:.{DIGITS}g}") for x in signal[rows] @ mix_joints(signal))
        for signal in (log.measured, log.joint_torque)
    )
    return LogMarks(len(log.measured), *told)


def spread_marks(samples: int) -> Array:
    """The samples of a log that are kept."""
    return np.unique(np.linspace(0, samples - 1, KEPT).astype(np.int64))


def mix_joints(signal: Array) -> Array:
    """Factors of joints in their sum, which none that move alike cancel in."""
    return np.sqrt(np.arange(2.0, 2.0 + signal.shape[1]))


def is_marked(log: Samples, marks: LogMarks) -> bool:
    """Whether a log is the one that has these marks, or a stretch of it."""
    count = len(log.measured)
    kept = np.column_stack([marks.positions, marks.torques])
    own = np.empty((count, 2))
    for some, _, _ in cut_into_blocks([(0, count)], 0):
        own[some] = np.column_stack(
            [x[some] @ mix_joints(x) for x in (log.measured, log.joint_torque)]
        )
    rows, spread = spread_marks(marks.samples), np.std(kept, axis=0)
    votes = np.zeros(max(marks.samples - count + 1, 0), dtype=np.int64)
    for row, mark in zip(rows, kept, strict=True):
        # where the log begins in the other one, if this sample of it is that mark
        starts = row - np.flatnonzero(np.all(np.abs(own - mark) <= NEAR * ROUNDED * spread, axis=1))
        votes[starts[(starts >= 0) & (starts < len(votes))]] += 1
    begin = np.arange(len(votes))
    inside = np.searchsorted(rows, begin + count) - np.searchsorted(rows, begin)
    for start in np.flatnonzero((votes >= FEWEST) & (votes == inside)):
        here = (rows >= start) & (rows < start + count)
        off = np.sqrt(np.mean((own[rows[here] - start] - kept[here]) ** 2, axis=0))
        if np.all(off <= ROUNDED * spread) and np.any(np.ptp(kept[here], axis=0) > NEAR * off):
            return True
    return False
