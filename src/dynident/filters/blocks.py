"""Long logs in blocks: what filters see about each, and signals that are computed as they are read.

A zero-phase low-pass looks both ways as far as it remembers: over a block with `count_memory`
samples more on each side it gives what it gives over the whole log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from dynident.core.arrays import Array, Integers, find_column_extremes
from dynident.core.store import Store
from dynident.filters.filters import design_butterworth, filter_by_cutoff

BLOCK = 1 << 15
"""Samples of a block, about."""
LONG = 8 * BLOCK
"""Samples of a log from which its motion is computed as it is read, and not kept."""
FORGOTTEN = 1e-14
"""Share of what was before that a filter may still remember beyond the samples it is given."""
LONGEST = 2**31
"""Memory of any filter, longer than any log [samples]."""
KEPT = 4
"""Blocks that are kept as they were computed: what reads one signal over some samples then reads
another, and looks beyond their ends."""


class Block(NamedTuple):
    """Some samples of a run in a row, and those with which filters see what is about them."""

    own: slice
    wide: slice
    """`own`, `wide`: of the log."""
    inner: slice
    """`own` among `wide`."""


def count_memory(cutoff: float, rate: float) -> int:
    """Samples after which a zero-phase low-pass has forgotten what was before.

    Of its pairs of poles ``z^2 + a1 z + a2`` the largest, ``|z|^2 = a2``, decays slowest: well
    below the rate within 13 periods of the cutoff.
    """
    if cutoff >= 0.5 * rate:
        return 0
    slowest = float(np.max(design_butterworth(cutoff, rate)[:, 4]))
    if slowest >= 1.0:  # a cutoff of nothing, whose poles round to the unit circle
        return LONGEST
    return min(LONGEST, int(np.ceil(2.0 * np.log(FORGOTTEN) / np.log(slowest))))


def cut_into_blocks(
    parts: Sequence[tuple[int, int]],
    memory: int,
    runs: Sequence[tuple[int, int]] | None = None,
) -> Iterator[Block]:
    """Parts of a log, block by block; a part that is hardly longer than a block is one.

    Filters see `memory` samples before and behind a block, within the run that each part lies in:
    itself unless `runs` are given.
    """
    for (start, stop), (begin, end) in zip(parts, runs or parts, strict=True):
        count = max(1, round((stop - start) / max(BLOCK, 4 * memory)))
        edges = [start + (stop - start) * k // count for k in range(count + 1)]
        for a, b in pairwise(edges):
            first, last = max(begin, a - memory), min(end, b + memory)
            if count == 1:  # one block sees all of its run
                first, last = begin, end
            yield Block(slice(a, b), slice(first, last), slice(a - first, b - first))


@dataclass(frozen=True, eq=False)
class SignalCourse:
    """Signals of a log that are computed together, block by block, as they are read."""

    samples: int
    columns: int
    """`samples`, `columns`: of each signal."""
    runs: tuple[tuple[int, int], ...]
    """Tuple of (start, stop). All is zero beside them."""
    memory: int
    """See `cut_into_blocks`."""
    compute: Callable[[slice], tuple[Array, ...]] = field(repr=False)
    """The signals over some samples of a run, arrays of shape (samples, columns)."""
    kept: dict[int, tuple[Array, ...]] = field(default_factory=dict, init=False, repr=False)
    extremes: dict[int, Array] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All of them, in order."""
        return tuple(cut_into_blocks(self.runs, self.memory))

    @cached_property
    def stops(self) -> Integers:
        """Where blocks end."""
        return np.array([block.own.stop for block in self.blocks])

    def read(self, number: int) -> tuple[Array, ...]:
        """The signals over a block, read-only."""
        found = self.kept.get(number)
        if found is None:
            _, wide, inner = self.blocks[number]
            found = tuple(each[inner] for each in self.compute(wide))
            for each in found:
                each.setflags(write=False)
            if number not in self.extremes:
                self.extremes[number] = np.array([find_column_extremes(each) for each in found])
            while len(self.kept) >= KEPT:
                self.kept.pop(next(iter(self.kept)))
            self.kept[number] = found
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without what is kept."""
        return {**self.__dict__, "kept": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def cut_signal(signal: Array, some: slice) -> Array:
    """Some samples of a signal, those of a long one not computed yet."""
    return cast(Array, signal.cut(some)) if isinstance(signal, LongSignal) else signal[some]


def join_runs(signal: Array, runs: Sequence[tuple[int, int]], column: int) -> Array:
    """A column of a log without what is between its runs."""
    return np.concatenate([signal[start:stop, column] for start, stop in runs])


def take_every(signals: Sequence[Array], step: int, first: int = 0) -> tuple[Array, ...]:
    """Of several signals of a log every so many samples, so that blocks are computed once."""
    parts = [
        [signal[own][-(own.start - first) % step :: step].copy() for signal in signals]
        for own, _, _ in cut_into_blocks([(first, len(signals[0]))], 0)
    ]
    return tuple(np.concatenate(own) for own in zip(*parts, strict=True))


def low_pass_signals(
    signals: Sequence[Array],
    runs: Sequence[tuple[int, int]],
    rate: float,
    cutoffs: Sequence[tuple[float, ...]],
    thin: int,
    into: Iterable[Array] = (),
) -> list[Array]:
    """Signals of a log below cutoffs of their columns, of which one sample in so many is kept.

    `into` are zeros for the first of them.
    """
    kept, found = -(-len(signals[0]) // thin), [*into]
    found += [np.zeros((kept, signal.shape[1])) for signal in signals[len(found) :]]
    memory = max(count_memory(hz, rate) for own in cutoffs for hz in own)
    for own, wide, inner in cut_into_blocks(runs, memory):
        first, last = -(-own.start // thin), -(-own.stop // thin)
        few = slice(inner.start + first * thin - own.start, inner.stop, thin)
        for signal, hz, thinned in zip(signals, cutoffs, found, strict=True):
            thinned[first:last] = filter_by_cutoff(signal[wide], hz, rate)[few]
    return found


def open_stored_signal(store: Store) -> Array:
    """A signal that stands in a temporary file, read as it is wanted."""
    whole = ((0, store.rows),)
    course = SignalCourse(
        store.rows, store.columns, whole, 0, lambda some: (store.read(some.start, some.stop),)
    )
    return cast(Array, StoredSignal(course, 0, range(store.rows)))


def join_signals(parts: Sequence[Array]) -> Array:
    """Signals one behind another; not read yet where one of them is long."""
    if not any(isinstance(part, LongSignal) for part in parts):
        return np.concatenate(parts)
    stops = np.cumsum([len(part) for part in parts]).tolist()
    starts = [0, *stops[:-1]]

    def read(some: slice) -> tuple[Array]:
        own = zip(parts, starts, strict=True)
        return (
            np.concatenate(
                [part[max(0, some.start - at) : max(0, some.stop - at)] for part, at in own]
            ),
        )

    course = SignalCourse(stops[-1], parts[0].shape[1], ((0, stops[-1]),), 0, read)
    return cast(Array, StoredSignal(course, 0, range(stops[-1])))


def find_run_extremes(signal: Array, runs: Sequence[tuple[int, int]]) -> tuple[Array, Array]:
    """The smallest and the largest value of each column in each run, shape (runs, columns)."""
    if isinstance(signal, LongSignal) and len(signal) == signal.course.samples:
        return signal.find_extremes()
    both = []
    for run in runs:
        blocks = cut_into_blocks([run], 0)
        low, high = zip(*(find_column_extremes(signal[own]) for own, _, _ in blocks), strict=True)
        both.append((np.min(low, axis=0), np.max(high, axis=0)))
    return np.array([low for low, _ in both]), np.array([high for _, high in both])


def find_extremes(signal: Array) -> tuple[Array, Array]:
    """The smallest and the largest value of each column of a log."""
    low, high = find_run_extremes(signal, [(0, len(signal))])
    return low[0], high[0]


@dataclass(frozen=True, eq=False)
class LongSignal(NDArrayOperatorsMixin):
    """One of the signals of a course: reads as an array does, and is none.

    ``signal[a:b]`` computes the blocks that it asks for, ``signal[:, j]`` all blocks and keeps a
    column; what takes an array gets all of it, computed anew.
    """

    course: SignalCourse
    number: int
    part: range

    ndim = 2
    dtype = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and columns."""
        return len(self.part), self.course.columns

    def __len__(self) -> int:
        return len(self.part)

    def cut(self, some: slice) -> LongSignal:
        """Some samples of it, not computed yet."""
        return LongSignal(self.course, self.number, self.part[some])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self[:], dtype=dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        whole = (np.asarray(each) if isinstance(each, LongSignal) else each for each in inputs)
        return getattr(ufunc, method)(*whole, **options)

    def find_extremes(self) -> tuple[Array, Array]:
        """See `find_run_extremes`."""
        course = self.course
        for number in range(len(course.blocks)):
            if number not in course.extremes:
                course.read(number)
        every = np.array([course.extremes[k][self.number] for k in sorted(course.extremes)])
        low, high = every[:, 0], every[:, 1]
        first = np.searchsorted(course.stops, [start for start, _ in course.runs], side="right")
        return np.minimum.reduceat(low, first), np.maximum.reduceat(high, first)

    def copy(self) -> Array:
        """All of it, to be written to."""
        return np.array(self[:])

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if isinstance(rows, slice):
            return self._read_stretch(self.part[rows], columns)
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        if np.any((rows < -len(self)) | (rows >= len(self))):
            raise IndexError(f"a sample that is none of {len(self)}")
        places = self.part.start + np.where(rows < 0, rows + len(self), rows)
        if places.ndim != 1 or not isinstance(columns, int | slice):
            return np.asarray(self)[key]
        numbers = np.searchsorted(self.course.stops, places, side="right")
        found = self._begin(len(places), columns)
        for number in np.unique(numbers[numbers < len(self.course.blocks)]).tolist():
            own = self.course.blocks[number].own
            here = np.flatnonzero((numbers == number) & (places >= own.start))
            found[here] = self.course.read(number)[self.number][places[here] - own.start, columns]
        return found

    def _begin(self, rows: int, columns: Any) -> Array:
        """Zeros for so many rows of some columns."""
        return np.zeros((rows, *np.empty((0, self.shape[1]))[:, columns].shape[1:]))

    def _read_stretch(self, wanted: range, columns: Any) -> Array:
        """Rows in order, or in the other one."""
        if wanted.step < 0:
            return self._read_stretch(wanted[::-1], columns)[::-1]
        course, found = self.course, None
        for number in range(int(np.searchsorted(course.stops, wanted.start, side="right")),
                            len(course.blocks)):  # fmt: skip
            own = course.blocks[number].own
            if own.start >= wanted.stop:
                break
            ends = (own.start, own.stop)
            first, last = (max(0, -((wanted.start - at) // wanted.step)) for at in ends)
            last = min(last, len(wanted))
            if first >= last:
                continue
            local = slice(wanted[first] - own.start, wanted[last - 1] - own.start + 1, wanted.step)
            part = course.read(number)[self.number][local, columns]
            if last - first == len(wanted):
                return part
            found = self._begin(len(wanted), columns) if found is None else found
            found[first:last] = part
        return self._begin(len(wanted), columns) if found is None else found


class StoredSignal(LongSignal):
    """A long signal that nothing is computed of: what is wanted is read where it stands."""

    def cut(self, some: slice) -> StoredSignal:
        """Some samples of it, not read yet."""
        return StoredSignal(self.course, self.number, self.part[some])

    def _read_stretch(self, wanted: range, columns: Any) -> Array:
        if wanted.step != 1 or not wanted:
            return super()._read_stretch(wanted, columns)
        found = self.course.compute(slice(wanted.start, wanted.stop))[self.number][:, columns]
        found.setflags(write=False)
        return found
