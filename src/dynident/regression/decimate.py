"""Decimated rows: filtered alike, one in so many kept, slow ones dropped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.filters.decimate import Decimator, group_equal_filters
from dynident.filters.filters import DecimationFilter


class GroupDecimator:
    """Streams the rows of all groups over one run of a log through their filters and gates.

    Groups that share a filter go through it together.

    Parameters
    ----------
    filters : sequence of DecimationFilter
        One a group.
    moving : ndarray of bool, shape (samples, groups)
        Which rows are kept, by the samples of the whole log.
    widths : sequence of int
        Columns of each group.
    left_out : ndarray of bool, shape (samples, groups), optional
        Samples whose equations rows are to be free of: both sides count as zero there, so that what
        comes out is a combination of the others alone, as exact as they are.
    """

    def __init__(
        self,
        filters: Sequence[DecimationFilter],
        moving: Booleans,
        start: int,
        stop: int,
        widths: Sequence[int],
        left_out: Booleans | None = None,
    ) -> None:
        self._moving, self._widths, self._left_out = moving, tuple(widths), left_out
        self._banks = [
            (members, Decimator(f, start, stop, sum(widths[g] for g in members)))
            for f, members in group_equal_filters(filters)
        ]

    def push(
        self, a: int, blocks: Sequence[Sequence[Array]]
    ) -> tuple[tuple[Array, ...], tuple[np.ndarray, ...]]:
        """Add samples ``a, a + 1, ...`` and return the rows that are now complete.

        Blocks are each group's columns, in pieces of shapes (stretch, any). Of each group there
        are rows (k_g, width of the group), and the samples at the centres of their filter windows
        (k_g,).
        """
        rows: list[Array] = [np.empty(0)] * len(blocks)
        sample: list[np.ndarray] = [np.empty(0)] * len(blocks)
        for members, decimator in self._banks:
            pieces = [piece for g in members for piece in blocks[g]]
            if self._left_out is not None:
                joined = np.hstack(pieces)
                out_now = self._left_out[a : a + len(joined)][:, members]
                joined[np.repeat(out_now, [self._widths[g] for g in members], axis=1)] = 0.0
                pieces = [joined]
            centres, out = decimator.push(a, pieces)
            column = 0
            for g in members:
                width = self._widths[g]
                moving = self._moving[centres, g]
                if self._left_out is not None and len(decimator.filter.taps) == 1:
                    moving = moving & ~self._left_out[centres, g]  # of which nothing is left
                rows[g], sample[g] = out[moving, column : column + width], centres[moving]
                column += width
        return tuple(rows), tuple(sample)
