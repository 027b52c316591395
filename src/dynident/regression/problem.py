"""The identification problem: a model and samples, as filtered and decimated rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import Idim, Packing, build_idim
from dynident.recording.filters import DecimationFilter
from dynident.recording.prepare import Samples
from dynident.regression.factors import Factors, Group, InstrumentFactors, compress
from dynident.robot.model import Robot

CHUNK = 4096
SHORTEST_BLOCK = 64
"""Samples that a filter takes in at a time, at least."""
KEEP_BYTES = 256 * 2**20
"""Decimated rows below this size are kept instead of being made anew at each pass."""


@dataclass(frozen=True)
class Rows:
    """Decimated rows of every joint over a stretch of one log.

    Attributes
    ----------
    X : tuple of ndarray, shapes (r_j, columns of joint j)
        Only the columns that act on joint j: ``problem.columns[j]``.
    y : tuple of ndarray, shapes (r_j,)
    sample : tuple of ndarray of int, shapes (r_j,)
        The sample at the centre of each row's filter window.
    Z : tuple of ndarray, shapes (r_j, instruments of joint j), or None
        Instruments: columns ``problem.instruments[j]``.
    """

    X: tuple[Array, ...]
    y: tuple[Array, ...]
    sample: tuple[np.ndarray, ...]
    Z: tuple[Array, ...] | None = None

    @property
    def scores(self) -> tuple[Array, ...]:
        """What the errors are made orthogonal to: Z where there are instruments, else X."""
        return self.X if self.Z is None else self.Z


class Problem:
    """Rows ``y = X beta + e`` in base parameters (ardiani2024, eq. 8), on demand.

    Parameters
    ----------
    robot : Robot
    samples : Samples or sequence of Samples
        One or several logs.
    friction : str
        Name in `dynident.friction.models.FRICTIONS`.
    rotor : bool, optional
        Whether the drives' rotor inertias are parameters; unless friction is "none".
    progress : callable, optional
        Called with "rows" and the share of a log that has been turned into rows.

    Raises
    ------
    InputError
        When the samples do not fit the robot, or it has a floating base.
    """

    def __init__(
        self,
        robot: Robot,
        samples: Samples | Sequence[Samples],
        friction: str = "coulomb-viscous",
        rotor: bool | None = None,
        *,
        progress: Callable[[str, float], None] | None = None,
    ) -> None:
        if robot.floating:
            raise InputError(f"{robot.name}: logs of floating bases cannot be identified yet")
        self.robot = robot
        self.samples = checked_logs(robot, samples)
        self.idim: Idim = build_idim(robot, friction, rotor)
        self.base: BaseParameters = base_parameters(self.idim)
        self._packing: Packing = self.idim.packing(self.base.kept)
        self._progress = progress
        self._kept: tuple[tuple[Rows, ...], ...] | None = None
        self._auxiliary: tuple[Problem, ...] = ()
        self._dense = False
        self._width: Array | None = None

    def on(self, samples: Samples | Sequence[Samples]) -> Problem:
        """The same model on other logs."""
        other = self._copy()
        other.samples = checked_logs(self.robot, samples)
        other._kept = None
        return other

    def only(self, columns: Sequence[int]) -> Problem:
        """The same logs with some of the base parameters, in this order; others are zero."""
        chosen = list(columns)
        other = self._copy()
        other.base = replace(self.base, kept=self.base.kept[chosen], K=self.base.K[chosen])
        other._packing = self.idim.packing(other.base.kept)
        other._kept = None
        return other

    def along(
        self, motions: Sequence[tuple[Array, Array, Array]], width: Array | None = None
    ) -> Problem:
        """The same torques and rows on other motions ``(q, dq, ddq)``, one a log.

        Parameters
        ----------
        motions : sequence of (q, dq, ddq)
        width : ndarray, shape (n,), optional
            Smoothing of the sign that the motions were simulated with: the rows have it too,
            so that they give the simulated torque [rad/s or m/s].
        """
        pairs = zip(self.samples, motions, strict=True)
        other = self.on([log.along(*motion) for log, motion in pairs])
        other._width = width
        return other

    def with_instruments(self, *auxiliary: Problem) -> Problem:
        """The same rows, each with the regressors of auxiliary problems as instruments Z."""
        other = self._copy()
        other._auxiliary = auxiliary
        return other

    def with_rows(self, rows: tuple[tuple[Rows, ...], ...]) -> Problem:
        """Rows of another origin, stretch by stretch of each log, all columns in all joints."""
        other = self._copy()
        other._kept = rows
        other._dense = True
        return other

    def _copy(self) -> Problem:
        other = copy(self)
        for cached in ("factors", "instrument_factors"):
            other.__dict__.pop(cached, None)
        return other

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """Per joint, the base parameters that act on its torque."""
        if self._dense:
            return (np.arange(self.base.count),) * self.robot.n
        return tuple(columns for _, columns in self._packing.joints)

    @property
    def instruments(self) -> tuple[np.ndarray, ...]:
        """Per joint, its instruments: `columns`, once for each auxiliary problem."""
        p = self.base.count
        return tuple(
            np.concatenate([c + k * p for k in range(max(1, len(self._auxiliary)))])
            for c in self.columns
        )

    @property
    def scores(self) -> int:
        """Number of columns that the errors are made orthogonal to."""
        return self.base.count * max(1, len(self._auxiliary))

    def passes(self) -> Iterator[Iterator[Rows]]:
        """Rows of each log, in stretches of time order."""
        logs = self._passes()
        if not self._auxiliary:
            yield from logs
            return
        others = (problem.passes() for problem in self._auxiliary)
        for log, *auxiliary in zip(logs, *others, strict=True):
            yield map(instrumented, log, *auxiliary)

    def _passes(self) -> Iterator[Iterator[Rows]]:
        if self._kept is not None:
            yield from (iter(rows) for rows in self._kept)
            return
        if self._bytes() <= KEEP_BYTES:
            self._kept = tuple(tuple(self._stretches(log)) for log in self.samples)
            yield from (iter(rows) for rows in self._kept)
            return
        yield from (self._stretches(log) for log in self.samples)

    def rows(self) -> Iterator[Rows]:
        """Rows of all logs, one after another."""
        for log in self.passes():
            yield from log

    def _bytes(self) -> int:
        steps = (min(f.step for f in log.filters) for log in self.samples)
        rows = sum(len(log.q) // step for log, step in zip(self.samples, steps, strict=True))
        return 8 * rows * self._packing.width

    def _stretches(self, log: Samples) -> Iterator[Rows]:
        for start, stop in log.segments:
            yield from self._segment(log, start, stop)

    def _segment(self, log: Samples, start: int, stop: int) -> Iterator[Rows]:
        """Decimated rows of one run of samples.

        The regressor is computed once at every sample, in stretches; of the filter's
        outputs only those that survive the decimation are computed.
        """
        banks = filter_banks(log.filters, self._packing)
        decimators = [
            Decimator(f, start, stop, sum(s.stop - s.start for s in entries) + len(joints))
            for f, joints, entries in banks
        ]
        packed = np.empty((CHUNK, self._packing.width))
        for a in range(start, stop, CHUNK):
            b = min(a + CHUNK, stop)
            if self._progress is not None:
                self._progress("rows", b / len(log.q))
            rows = packed[: b - a]
            motion = (log.q[a:b], log.dq[a:b], log.ddq[a:b])
            self.idim.fill(self._packing, *motion, rows, self._width)
            X: list[Array] = [np.empty(0)] * self.robot.n
            y, sample = list(X), list(X)
            for (_, joints, entries), decimator in zip(banks, decimators, strict=True):
                parts = [rows[:, s] for s in entries]
                centres, out = decimator.push(a, np.hstack([*parts, log.tau[a:b][:, joints]]))
                column = 0
                for k, (j, s) in enumerate(zip(joints, entries, strict=True)):
                    width = s.stop - s.start
                    fast = log.moving[centres, j]
                    X[j] = out[fast, column : column + width]
                    y[j] = out[fast, len(out[0]) - len(joints) + k] if len(out) else np.empty(0)
                    sample[j] = centres[fast]
                    column += width
            yield Rows(tuple(X), tuple(y), tuple(sample))

    @cached_property
    def factors(self) -> Factors:
        """Streaming factors of all rows, one group a joint.

        Raises
        ------
        InputError
            When no row is left.
        """
        columns = self.columns
        widths = tuple(len(c) + 1 for c in columns)
        blocks = (
            tuple(np.column_stack([X, y]) for X, y in zip(rows.X, rows.y, strict=True))
            for rows in self.rows()
        )
        p = self.base.count
        groups = spread(compress(blocks, widths), [[*c, p] for c in columns], p + 1)
        if not any(group.rows for group in groups):
            raise InputError("no rows are left to fit; lower drop_below or use a longer log")
        return Factors(groups)

    @cached_property
    def instrument_factors(self) -> InstrumentFactors:
        """Streaming factors of ``[Z X y]``, one group a joint (DESIGN, section 1)."""
        p, z = self.base.count, self.scores
        places = [
            [*i, *(c + z), p + z] for i, c in zip(self.instruments, self.columns, strict=True)
        ]
        blocks = (
            tuple(np.column_stack(b) for b in zip(rows.scores, rows.X, rows.y, strict=True))
            for rows in self.rows()
        )
        groups = compress(blocks, tuple(len(place) for place in places))
        return InstrumentFactors(spread(groups, places, z + p + 1), z)


def instrumented(rows: Rows, *auxiliary: Rows) -> Rows:
    """Rows with those of auxiliary problems, at the same instants, as instruments."""
    Z = tuple(np.column_stack(parts) for parts in zip(*(a.X for a in auxiliary), strict=True))
    return replace(rows, Z=Z)


def spread(
    groups: Iterable[Group], places: Sequence[Sequence[int]], width: int
) -> tuple[Group, ...]:
    """Factors of a joint's own columns, put where they stand among all columns."""
    full = []
    for group, place in zip(groups, places, strict=True):
        factor = np.zeros((len(group.factor), width))
        factor[:, list(place)] = group.factor
        full.append(Group(factor, group.rows))
    return tuple(full)


def checked_logs(robot: Robot, samples: Samples | Sequence[Samples]) -> tuple[Samples, ...]:
    """Logs as a tuple, refused where they do not fit the robot."""
    logs = (samples,) if isinstance(samples, Samples) else tuple(samples)
    if not logs:
        raise InputError("a problem needs at least one log")
    for log in logs:
        if log.q.shape[1] != robot.n:
            raise InputError(f"{log.name}: has {log.q.shape[1]} joints, {robot.name} has {robot.n}")
    return logs


def filter_banks(
    filters: tuple[DecimationFilter, ...], packing: Packing
) -> list[tuple[DecimationFilter, list[int], list[slice]]]:
    """Joints that share a filter, so that each filter runs once over all its columns."""
    banks: list[tuple[DecimationFilter, list[int], list[slice]]] = []
    for j, f in enumerate(filters):
        for known, joints, entries in banks:
            if known.step == f.step and np.array_equal(known.taps, f.taps):
                joints.append(j)
                entries.append(packing.joints[j][0])
                break
        else:
            banks.append((f, [j], [packing.joints[j][0]]))
    return banks


class Decimator:
    """Streams columns through a `DecimationFilter`, carrying the unfinished outputs.

    Parameters
    ----------
    filter : DecimationFilter
    start, stop : int
        Samples that will be pushed, in order and without gaps.
    width : int
        Columns.
    """

    def __init__(self, filter: DecimationFilter, start: int, stop: int, width: int) -> None:
        self.filter = filter
        self.start = start
        self.count = filter.outputs(stop - start)
        self.first = 0
        self.open = np.zeros((0, width))

    def push(self, a: int, rows: Array) -> tuple[np.ndarray, Array]:
        """Add samples ``a, a + 1, ...`` and return the outputs that are now complete.

        Returns
        -------
        centres : ndarray of int, shape (k,)
            Sample index of each output.
        outputs : ndarray, shape (k, width)
        """
        f, local, end = self.filter, a - self.start, a - self.start + len(rows)
        if len(f.taps) == 1 and f.step == 1:
            return np.arange(a, a + len(rows)), rows
        reached = min(self.count, (end - 1) // f.step + 1)
        width = rows.shape[1]
        if reached > self.first + len(self.open):
            new = np.zeros((reached - self.first - len(self.open), width))
            self.open = np.vstack([self.open, new])
        # output k sees samples k step ... k step + 2 half of the run
        block = max(8 * f.step, SHORTEST_BLOCK)
        for begin in range(0, len(rows), block):
            piece = rows[begin : begin + block]
            at = local + begin
            low = max(0, -(-(at - 2 * f.half) // f.step))
            high = min(self.count, (at + len(piece) - 1) // f.step + 1)
            if high <= low:
                continue
            offset = (at - np.arange(low, high) * f.step)[:, None] + np.arange(len(piece))
            inside = (offset >= 0) & (offset < len(f.taps))
            weights = np.where(inside, f.taps[np.clip(offset, 0, len(f.taps) - 1)], 0.0)
            self.open[low - self.first : high - self.first] += weights @ piece
        done = min(self.count, max(0, (end - 1 - 2 * f.half) // f.step + 1))
        finished, self.open = self.open[: done - self.first], self.open[done - self.first :]
        centres = self.start + f.half + np.arange(self.first, done) * f.step
        self.first = done
        return centres, finished
