"""Angles that go on where an encoder begins a turn anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers

NEAR = 0.25
"""Share of a turn by which a jump of an encoder differs from a turn at most."""


class Turns:
    """Whole turns between two samples of encoders, which none of them moved by, block after block.

    `turn` is a turn in the unit of each column, infinite for slides and for what may move as far.
    A column that moves by other shares of a turn, too, is left as it is from there on.
    """

    def __init__(self, turn: Array, signal: str, joints: Sequence[str]) -> None:
        self.turn, self.signal, self.joints = turn, signal, tuple(joints)
        self.counts: Integers = np.zeros(len(turn), dtype=np.int64)
        self.odd: Booleans = np.zeros(len(turn), dtype=bool)
        self._before: Array | None = None
        self._behind = np.zeros(len(turn))

    def leave_out(self, absent: Sequence[int]) -> Turns:
        """The same without the columns of some joints."""
        there = [j for j in range(len(self.turn)) if j not in absent]
        return Turns(self.turn[there], self.signal, [self.joints[j] for j in there])

    def undo(self, values: Array) -> Array:
        """The next samples, shape (samples, columns), without jumps; the caller's to give away."""
        steps = np.diff(
            values, axis=0, prepend=values[:1] if self._before is None else self._before
        )
        steps /= self.turn
        sizes = np.abs(steps)
        jumps = np.where(np.abs(sizes - 1.0) < NEAR, np.sign(steps), 0.0)
        self.odd |= np.any((sizes > NEAR) & (jumps == 0.0), axis=0)
        jumps[:, self.odd] = 0.0
        self._before = values[-1:].copy()
        own = np.flatnonzero(jumps.any(axis=0) | (self._behind != 0.0))
        if own.size:
            turns = self._behind[own] + np.cumsum(jumps[:, own], axis=0)
            values[:, own] -= turns * self.turn[own]
            self._behind[own] = turns[-1]
            self.counts[own] += np.count_nonzero(jumps[:, own], axis=0)
        return values

    @property
    def doubtful(self) -> bool:
        """Whether a column jumped before it moved otherwise, which of all samples is no turn."""
        return bool(np.any(self.odd & (self.counts > 0)))

    def describe(self) -> tuple[str, ...]:
        """A warning for each column that jumped."""
        return tuple(
            f"{self.signal} of {joint} jumps by a turn {count} times; it is taken as an angle "
            "that goes on"
            for joint, count in zip(self.joints, self.counts.tolist(), strict=True)
            if count
        )
