"""The reference behind a measured point-to-point motion, where a log has none.

A motion that stops is cut at its stops, and each piece between two of them is described by
one smoothed velocity trapezoid (or a few that overlap). Only times, shares of ramps and the
positions of the stops come from the data, so that what is asked of the controllers in a
simulation carries none of the measured ripple, noise and friction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.optimize import least_squares
from scipy.sparse.linalg import splu

from dynident.control.reference import Move, Reference, sum_moves
from dynident.core.arrays import Array, find_runs
from dynident.core.errors import ComputationError, InputError
from dynident.filters.filters import differentiate_twice, filter_zero_phase

FIT_ROWS = 200
"""Samples of a piece to which its few numbers are fitted."""

MOST_MOVES = 4
"""Overlapping moves tried between two stops."""

WORTH = 0.5
"""A further move, or moves of each joint apart, has to leave less than this of the residual."""

STILL = 20.0
"""A joint whose range is fewer times the noise on its position does not move."""


@dataclass(frozen=True)
class Reconstruction:
    """A reference in the form of moves, and what they leave of the motion.

    Attributes
    ----------
    reference : Reference
        One sample per sample of the log.
    residual_rms, residual_max : ndarray, shape (n,)
        Of the low-passed motion minus the moves, before the reference leads them [rad or m].
    moves : tuple of Move
        As fitted to the motion, on the clock of the log. A joint that a move does not concern
        has no displacement in it.
    """

    reference: Reference
    residual_rms: Array
    residual_max: Array
    moves: tuple[Move, ...]

    def __post_init__(self) -> None:
        for signal in (self.residual_rms, self.residual_max):
            signal.setflags(write=False)


def reconstruct(
    q: Array,
    rate: float,
    runs: Sequence[tuple[int, int]] | None = None,
    *,
    lag: float | Sequence[float] | Array = 0.0,
    together: bool | None = None,
    cutoff: float = 20.0,
    rest: float = 0.02,
    tolerance: float = 0.002,
) -> Reconstruction:
    """Smoothed trapezoidal moves between the stops of a measured motion.

    Parameters
    ----------
    q : ndarray, shape (samples, n)
        Measured positions [rad or m].
    rate : float
        [Hz]
    runs : sequence of (start, stop), optional
        Samples without a gap, one run after another; all samples by default.
    lag : float or array_like, shape (n,)
        Time by which the motion is behind what was asked for, so that the reference leads
        the motion by it [s]. The positions alone do not tell it.
    together : bool, optional
        Whether all joints share stops and profiles. By default they do unless moves of each
        joint apart leave less than half of the residual.
    cutoff : float
        Of the zero-phase low-pass on the motion [Hz].
    rest : float
        Share of its largest speed below which a joint stands.
    tolerance : float
        Share of a joint's range: rms residual above which more moves are tried.

    Raises
    ------
    InputError
        When nothing moves, or shapes or values do not fit.
    """
    measured = np.array(q, dtype=float)
    _check_positions(measured, lag)
    if not (0.0 < rate < np.inf and cutoff > 0.0 and 0.0 < rest < 0.2 and tolerance > 0.0):
        raise InputError(
            "reconstruct: give a positive rate, cutoff and tolerance and a rest between 0 and 0.2"
        )
    pieces = _slice_runs(runs, len(measured))
    motion, speed = np.empty_like(measured), np.empty_like(measured)
    for run in pieces:
        motion[run] = filter_zero_phase(measured[run], cutoff, rate)
        speed[run] = np.abs(differentiate_twice(motion[run], rate)[0])
    # in shares of its range and of its largest speed, a joint compares with any other
    span, top = np.ptp(motion, axis=0), speed.max(axis=0)
    joints = np.flatnonzero(span > STILL * np.std(motion - measured, axis=0) + 1e-9)
    if not len(joints):
        raise InputError("reconstruct: no joint moves; give a log with motion")
    seen = _Motion(
        tuple(motion[run][:, joints] / span[joints] for run in pieces),
        tuple(speed[run][:, joints] / top[joints] for run in pieces),
        rate,
        rest,
        tolerance,
    )
    found = seen.fit_together_or_apart(together)
    if not any(moves for _, moves in found):
        raise InputError(f"reconstruct: nothing between stops; give a rest below {rest:g}")
    signals = [np.empty_like(motion) for _ in range(3)]
    residual = np.empty_like(motion)
    all_moves: list[Move] = []
    for run, (origin, moves) in zip(pieces, found, strict=True):
        # a joint that does not move stays where it is on average
        start = np.mean(motion[run], axis=0)
        start[joints] = origin * span[joints]
        full = []
        for move in moves:
            way = np.zeros(len(span))
            way[joints] = move.displacement * span[joints]
            full.append(replace(move, displacement=way))
        samples = run.stop - run.start
        residual[run] = motion[run] - sum_moves(rate, samples, start, full).q
        led = sum_moves(rate, samples, start, full, lag)
        for whole, part in zip(signals, (led.q, led.dq, led.ddq), strict=True):
            whole[run] = part
        all_moves += [replace(move, start=move.start + run.start / rate) for move in full]
    return Reconstruction(
        Reference(rate, *signals),
        np.sqrt(np.mean(residual**2, axis=0)),
        np.max(np.abs(residual), axis=0),
        tuple(sorted(all_moves, key=lambda move: move.start)),
    )


def _check_positions(measured: Array, lag: float | Sequence[float] | Array) -> None:
    """Refuse what is not a motion of joints, and lags of other joints."""
    if measured.ndim != 2 or not measured.size or not np.isfinite(measured).all():
        raise InputError(
            f"reconstruct: positions of shape {measured.shape} are not finite rows with one "
            "column per joint; cut the log to where they are"
        )
    if np.shape(lag) not in ((), measured.shape[1:]) or not np.isfinite(lag).all():
        raise InputError(f"reconstruct: lag is a time or {measured.shape[1]}, one per joint")


def _slice_runs(runs: Sequence[tuple[int, int]] | None, samples: int) -> list[slice]:
    """Runs that follow one another over all samples."""
    given = [(0, samples)] if runs is None else [(int(start), int(stop)) for start, stop in runs]
    if [0, *(stop for _, stop in given)] != [*(start for start, _ in given), samples]:
        raise InputError(
            f"reconstruct: runs {given} do not follow one another over {samples} samples; "
            "give the segments of the recording"
        )
    if min(stop - start for start, stop in given) < 5:
        raise InputError("reconstruct: a run is shorter than 5 samples; cut the log there")
    return [slice(start, stop) for start, stop in given]


@dataclass(frozen=True)
class _Motion:
    """Positions and speeds by run, in shares of each joint's range and largest speed."""

    positions: tuple[Array, ...]
    speeds: tuple[Array, ...]
    rate: float
    rest: float
    tolerance: float

    def fit(self, groups: Sequence[range]) -> list[tuple[Array, list[Move]]]:
        """Origin and moves of each run; the joints of a group move in step."""
        found = []
        for position, speed in zip(self.positions, self.speeds, strict=True):
            origin = np.zeros(position.shape[1])
            moves = []
            for group in groups:
                part = np.s_[:, group.start : group.stop]
                shapes = self.shapes(position[part], speed[part])
                levels = _fit_levels(position[part], self.rate, shapes)
                origin[group.start : group.stop] = levels[0]
                for shape, way in zip(shapes, np.diff(levels, axis=0), strict=True):
                    displacement = np.zeros(len(origin))
                    displacement[group.start : group.stop] = way
                    moves.append(replace(shape, displacement=displacement))
            found.append((origin, moves))
        return found

    def fit_together_or_apart(self, together: bool | None) -> list[tuple[Array, list[Move]]]:
        """Moves of all joints in step, or of each, as asked for or as leaves much less."""
        n = self.positions[0].shape[1]
        single = [range(k, k + 1) for k in range(n)]
        found = self.fit(single if together is False else [range(n)])
        if together is None and n > 1 and self.left(found) > self.tolerance:
            apart = self.fit(single)
            if self.left(apart) < WORTH * self.left(found):
                found = apart
        return found

    def left(self, found: list[tuple[Array, list[Move]]]) -> float:
        """Root mean square of what moves leave."""
        total = count = 0.0
        for position, (origin, moves) in zip(self.positions, found, strict=True):
            fit = sum_moves(self.rate, len(position), origin, moves)
            total += float(np.sum((position - fit.q) ** 2))
            count += position.size
        return float(np.sqrt(total / count))

    def shapes(self, position: Array, speed: Array) -> list[Move]:
        """Moves of joints in step, one after another, their ways not known yet."""
        pooled = speed.sum(axis=1)
        found = []
        for begin, first, last, end in _find_windows(speed.max(axis=1), self.rest):
            rows = np.arange(begin, end, max(1, (end - begin) // FIT_ROWS))
            time, target = rows / self.rate, position[rows]
            best, error = _fit_moves(_guess_moves(pooled, [first, last], self.rate), time, target)
            while len(best) < MOST_MOVES and error > self.tolerance:
                cuts = _choose_cuts(best, time, target, pooled, self.rate)
                bounds = [first, *(cut for cut in cuts if first < cut < last), last]
                more, less = _fit_moves(_guess_moves(pooled, bounds, self.rate), time, target)
                if less > WORTH * error:
                    break
                best, error = more, less
            found += [_build_move(numbers) for numbers in best]
        return sorted(found, key=lambda move: move.start)


def _find_windows(pace: Array, rest: float) -> list[tuple[int, int, int, int]]:
    """Pieces in motion: the middle of the stop before, first and last sample, middle after."""
    # what hardly leaves the band of rest is the end of a motion or noise, not a move
    spans = [(a, b) for a, b in find_runs(pace >= rest) if pace[a:b].max() > 3.0 * rest]
    found = []
    for k, (first, last) in enumerate(spans):
        margin = max(2, (last - first) // 2)
        before = (spans[k - 1][1] + first) // 2 if k else 0
        after = (last + spans[k + 1][0]) // 2 + 1 if k + 1 < len(spans) else len(pace)
        found.append((max(before, first - margin), first, last, min(after, last + margin)))
    return found


def _guess_moves(pooled: Array, bounds: Sequence[int], rate: float) -> Array:
    """Numbers of the moves between the bounds: see `_build_move`."""
    rows = []
    for first, last in pairwise(bounds):
        part = pooled[first:last]
        # a trapezoid's mean over its peak speed tells the share of its ramps
        cruise = 2.0 * float(part.mean() / part.max()) - 1.0
        length = (last - first) / rate
        overlap = 0.1 * length
        rows.append([first / rate - overlap, length + 2.0 * overlap, cruise, 0.5, 0.3])
    return np.array(rows)


def _build_move(numbers: Array) -> Move:
    """Start, duration, share of the cruise, share of the rise in the ramps, smoothing."""
    start, duration, cruise, balance, smoothing = (float(number) for number in numbers)
    ramps = duration * (1.0 - cruise)
    return Move(start, duration, ramps * balance, ramps * (1.0 - balance), smoothing, np.zeros(1))


def _subtract_moves(numbers: Array, time: Array, target: Array) -> Array:
    """What moves leave of a motion when their ways and the start fit it best."""
    moves = [_build_move(row) for row in numbers.reshape(-1, 5)]
    basis = np.stack([np.ones(len(time)), *(move.profile(time)[0] for move in moves)], axis=1)
    orthogonal = np.linalg.qr(basis)[0]
    return target - orthogonal @ (orthogonal.T @ target)


def _fit_moves(guess: Array, time: Array, target: Array) -> tuple[Array, float]:
    """Least squares over the numbers of some moves; with the rms that is left."""
    length = time[-1] - time[0]
    low = np.tile([time[0] - length, 0.02 * length, 0.0, 0.05, 0.0], (len(guess), 1))
    high = np.tile([time[-1], 3.0 * length, 0.98, 0.95, 1.0], (len(guess), 1))
    margin = 1e-3 * (high - low)

    def residual(numbers: Array) -> Array:
        return _subtract_moves(numbers, time, target).ravel()

    result = least_squares(
        residual,
        np.clip(guess, low + margin, high - margin).ravel(),
        bounds=(low.ravel(), high.ravel()),
        x_scale=np.tile([length, length, 1.0, 1.0, 1.0], len(guess)),
        max_nfev=50,
    )
    return result.x.reshape(-1, 5), float(np.sqrt(np.mean(result.fun**2)))


def _choose_cuts(
    numbers: Array, time: Array, target: Array, pooled: Array, rate: float
) -> list[int]:
    """Samples at which to cut for one move more: within the one that fits worst."""
    ends = sorted((float(row[0]), float(row[0] + row[1])) for row in numbers)
    inner = sorted(0.5 * (before[1] + after[0]) for before, after in pairwise(ends))
    bounds = np.sort(np.clip([ends[0][0], *inner, ends[-1][1]], time[0], time[-1]))
    error = np.sum(_subtract_moves(numbers, time, target) ** 2, axis=1)
    place = np.clip(np.searchsorted(bounds, time, side="right") - 1, 0, len(numbers) - 1)
    worst = int(np.argmax(np.bincount(place, error, minlength=len(numbers))))
    # where it slows down; in the middle where it does not
    begin, end = bounds[worst : worst + 2]
    first = round(rate * float(begin + 0.2 * (end - begin)))
    part = pooled[first : round(rate * float(end - 0.2 * (end - begin))) + 1]
    lowest = int(np.argmin(part))
    cut = first + (lowest if 0 < lowest < len(part) - 1 else len(part) // 2)
    return sorted({cut, *(round(rate * t) for t in inner)})


def _fit_levels(position: Array, rate: float, moves: list[Move]) -> Array:
    """Positions before, between and behind moves, by least squares over a run.

    Each is the weight of a bump that climbs with the move before and falls with the one
    behind, so that the normal matrix has few diagonals.
    """
    samples = len(position)
    shortest = min((move.duration for move in moves), default=samples / rate)
    step = max(1, int(shortest * rate / FIT_ROWS))
    time = np.arange(0, samples, step) / rate
    columns, rows, values = [], [], []
    for k in range(len(moves) + 1):
        near = moves[max(0, k - 1) : k + 1]
        first, last = 0, len(time)
        if k:
            first = int(np.searchsorted(time, moves[k - 1].start))
        if k < len(moves):
            last = int(np.searchsorted(time, max(move.start + move.duration for move in near)))
        part = time[first:last]
        climb = moves[k - 1].profile(part)[0] if k else np.ones(len(part))
        fall = moves[k].profile(part)[0] if k < len(moves) else np.zeros(len(part))
        rows.append(np.arange(first, last))
        columns.append(np.full(last - first, k))
        values.append(climb - fall)
    bumps = sparse.csc_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(len(time), len(moves) + 1),
    )
    try:
        weighed = np.asarray(bumps.T @ position[::step])
        solved = np.asarray(splu((bumps.T @ bumps).tocsc()).solve(weighed), dtype=float)
    except RuntimeError as error:
        raise ComputationError(
            "reconstruct: stops cannot be placed; raise the tolerance or lower the cutoff"
        ) from error
    return solved
