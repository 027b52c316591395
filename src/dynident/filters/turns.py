"""Angles that go on where an encoder begins a turn anew."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.text import format_count

NEAR = 0.25
"""Share of a turn by which a jump of an encoder differs from a turn at most."""

BESIDE = 0.1
"""Share of a turn by which two encoders of a joint, or its target, differ at most where they
begin."""


class LostTurns:
    """Whole turns between two samples of encoders, which none of them moved by, block after block.

    `turn` is a turn in the unit of each column, infinite for slides and for what may move as far.
    A column that moves by other shares of a turn, too, is left as it is from there on. What
    `beside` has of the same joints begins on the same turn.
    """

    def __init__(
        self, turn: Array, signal: str, joints: Sequence[str], beside: LostTurns | None = None
    ) -> None:
        self.turn, self.signal, self.joints, self.beside = turn, signal, tuple(joints), beside
        self.first: dict[str, float] = {}
        """Of joints that turn, where they begin [turns]."""
        self.away: Integers = np.zeros(len(turn), dtype=np.int64)
        """Whole turns by which each began elsewhere than `beside`."""
        self.counts: Integers = np.zeros(len(turn), dtype=np.int64)
        self.odd: Booleans = np.zeros(len(turn), dtype=bool)
        self._before: Array | None = None
        self._behind = np.zeros(len(turn))

    def leave_out(self, absent: Collection[int]) -> None:
        """Have no columns of some joints; before the first samples."""
        there = [j for j in range(len(self.turn)) if j not in absent]
        self.joints = tuple(self.joints[j] for j in there)
        self.turn, self.odd, self.counts = self.turn[there], self.odd[there], self.counts[there]
        self.away, self._behind = self.away[there], self._behind[there]

    def undo(self, values: Array) -> Array:
        """The next samples, shape (samples, columns), without jumps; the caller's to give away."""
        if self._before is None and len(values):
            self._begin(values[0] / self.turn)
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

    def _begin(self, shares: Array) -> None:
        """Where each column begins, and on which turn beside another of its joint."""
        turning = np.isfinite(self.turn)
        at = dict(zip(self.joints, shares.tolist(), strict=True))
        self.first = {joint: at[joint] for joint in np.array(self.joints)[turning].tolist()}
        known = {} if self.beside is None else self.beside.first
        away = np.array([at[joint] - known.get(joint, at[joint]) for joint in self.joints])
        whole = np.where(turning & (np.abs(away - np.round(away)) < BESIDE), np.round(away), 0.0)
        self.away, self._behind = whole.astype(np.int64), whole

    @property
    def turned(self) -> frozenset[str]:
        """The joints whose column jumped."""
        return frozenset(j for j, count in zip(self.joints, self.counts, strict=True) if count)

    @property
    def doubtful(self) -> bool:
        """Whether a column jumped before it moved otherwise, which of all samples is not a turn."""
        return bool(np.any(self.odd & (self.counts > 0)))

    def describe(self) -> tuple[str, ...]:
        """A warning for each column that jumped, or began on another turn."""
        each = [*zip(self.joints, self.counts.tolist(), self.away.tolist(), strict=True)]
        jumped = (
            f"{self.signal} of {joint} jumps by a turn {count} times; it is taken as an angle "
            "that goes on"
            for joint, count, _ in each
            if count
        )
        begun = (
            f"{self.signal} of {joint} begins {format_count(abs(away), 'turn')} away from its "
            "position; it is taken on the same turn"
            for joint, _, away in each
            if away
        )
        return (*jumped, *begun)
