"""What tells a log again that was fitted, in other units, of fewer digits, or a stretch of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array, Integers
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
TRACED = 1 << 18
"""Samples of the longest log that is searched for others in it: some ten MB."""


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


def spread_marks(samples: int) -> Integers:
    """The samples of a log that are kept."""
    return np.unique(np.linspace(0, samples - 1, KEPT).astype(np.int64))


def mix_joints(signal: Array) -> Array:
    """Factors of joints in their sum, which none that move alike cancel in."""
    return np.sqrt(np.arange(2.0, 2.0 + signal.shape[1]))


def trace_log(log: Samples) -> Array:
    """What marks are of a log, at all its samples: positions and torques, shape (samples, 2)."""
    traced = np.empty((len(log.measured), 2))
    for some, _, _ in cut_into_blocks([(0, len(traced))], 0):
        traced[some] = np.column_stack(
            [x[some] @ mix_joints(x) for x in (log.measured, log.joint_torque)]
        )
    return traced


def is_marked(log: Samples, marks: LogMarks) -> bool:
    """Whether a log is the one that has these marks, or a stretch of it."""
    return len(log.measured) <= marks.samples and bool(find_marked(trace_log(log), [marks]))


def find_marked(trace: Array, every: Sequence[LogMarks]) -> list[int]:
    """Which marks are of a log with this trace, of a stretch of it, or of one that it is in."""
    order = np.argsort(trace[:, 0])
    return [k for k, marks in enumerate(every) if has_marks(trace, order, marks)]


def is_alike(one: LogMarks, other: LogMarks) -> bool:
    """Whether two logs of as many samples have the same marks, up to rounding."""
    if one.samples != other.samples:
        return False
    moved = max(one.positions) - min(one.positions)
    if abs(one.positions[-1] - other.positions[-1]) > NEAR * ROUNDED * moved:
        return False  # most logs of a fleet, at once
    own, kept = (np.column_stack([marks.positions, marks.torques]) for marks in (one, other))
    off = np.sqrt(np.mean((own - kept) ** 2, axis=0))
    return bool(np.all(off <= ROUNDED * np.std(kept, axis=0)) and np.any(np.ptp(kept, axis=0)))


def has_marks(trace: Array, order: Integers, marks: LogMarks) -> bool:
    """Whether a log, whose samples have an order by their positions, and marks are of one log."""
    count, kept = len(trace), np.column_stack([marks.positions, marks.torques])
    rows, spread = spread_marks(marks.samples), np.std(kept, axis=0)
    near = NEAR * ROUNDED * spread
    least = min(marks.samples - count, 0)
    votes = np.zeros(abs(marks.samples - count) + 1, dtype=np.int64)
    first = np.searchsorted(trace[:, 0], kept[:, 0] - near[0], "left", sorter=order)
    last = np.searchsorted(trace[:, 0], kept[:, 0] + near[0], "right", sorter=order)
    for row, mark, a, b in zip(rows, kept, first, last, strict=True):
        # where the log begins in the other one, if this sample of it is that mark
        alike = order[a:b]
        starts = row - alike[np.abs(trace[alike, 1] - mark[1]) <= near[1]] - least
        starts = starts[(starts >= 0) & (starts < len(votes))]
        if count >= marks.samples and not len(starts):
            return False  # all marks would be in it
        votes[starts] += 1
    begin = np.arange(len(votes)) + least
    inside = np.searchsorted(rows, begin + count) - np.searchsorted(rows, begin)
    for start in begin[(votes >= FEWEST) & (votes == inside)]:
        here = (rows >= start) & (rows < start + count)
        off = np.sqrt(np.mean((trace[rows[here] - start] - kept[here]) ** 2, axis=0))
        if np.all(off <= ROUNDED * spread) and np.any(np.ptp(kept[here], axis=0) > NEAR * off):
            return True
    return False
