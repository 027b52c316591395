"""Streams of columns through decimating filters, stretch by stretch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dynident.core.arrays import Array
from dynident.filters.filters import DecimationFilter

SHORTEST_BLOCK = 64
"""Samples that a filter takes in at a time, at least."""


class Decimator:
    """Streams columns through a `DecimationFilter`, carrying the unfinished outputs.

    Samples from `start` to `stop` will be pushed, in order and without gaps.
    """

    def __init__(self, filter: DecimationFilter, start: int, stop: int, width: int) -> None:
        self.filter = filter
        self.start = start
        self.count = filter.outputs(stop - start)
        self.first = 0
        self.open = np.zeros((0, width))
        block = max(8 * filter.step, SHORTEST_BLOCK)
        # what an output that began so many samples before, or after, takes of a block
        self.windows = sliding_window_view(np.pad(filter.taps, block), block)

    def push(self, a: int, pieces: Sequence[Array]) -> tuple[np.ndarray, Array]:
        """Add samples ``a, a + 1, ...`` and return the outputs that are now complete.

        Samples (k,) and rows (k, width). Pieces are columns side by side, `width` of them
        together.
        """
        samples = len(pieces[0])
        f, local, end = self.filter, a - self.start, a - self.start + samples
        if len(f.taps) == 1 and f.step == 1:
            return np.arange(a, a + samples), np.hstack(pieces)
        reached = min(self.count, (end - 1) // f.step + 1)
        width = self.open.shape[1]
        if reached > self.first + len(self.open):
            new = np.zeros((reached - self.first - len(self.open), width))
            self.open = np.vstack([self.open, new])
        # output k sees samples k step ... k step + 2 half of the run
        block = self.windows.shape[1]
        for begin in range(0, samples, block):
            at, count = local + begin, min(block, samples - begin)
            low = max(0, -(-(at - 2 * f.half) // f.step))
            high = min(self.count, (at + count - 1) // f.step + 1)
            if high <= low:
                continue
            weights = self.windows[block + at - np.arange(low, high) * f.step, :count]
            rows, column = self.open[low - self.first : high - self.first], 0
            for piece in pieces:  # copied side by side they would be filtered no faster
                own = slice(column, column + piece.shape[1])
                rows[:, own] += weights @ piece[begin : begin + count]
                column = own.stop
        done = min(self.count, max(0, (end - 1 - 2 * f.half) // f.step + 1))
        finished, self.open = self.open[: done - self.first], self.open[done - self.first :]
        centres = self.start + f.half + np.arange(self.first, done) * f.step
        self.first = done
        return centres, finished


def group_equal_filters(
    filters: Sequence[DecimationFilter],
) -> list[tuple[DecimationFilter, list[int]]]:
    """Filters that differ, each with the groups that have it."""
    found: list[tuple[DecimationFilter, list[int]]] = []
    for g, f in enumerate(filters):
        for known, members in found:
            if known.step == f.step and np.array_equal(known.taps, f.taps):
                members.append(g)
                break
        else:
            found.append((f, [g]))
    return found
