"""Stretches of encoder logs along which no model of the free robot moves: a contact, a hand.

Free simulations that are restarted from the measured motion every `WINDOW` seconds end up as far
from it as friction, gravity and loop are wrong, whatever the joint moves by. Where a link meets a
table, or a hand takes the arm, several joints at once are farther off by much more. Windows are
held against all others by the median of their errors, which passing steps hardly move, on a
logarithmic scale; the limit is that of one false alarm in a hundred logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
from scipy.special import ndtri

from dynident.core.arrays import Array, Booleans, find_runs
from dynident.estimators.closed_loop import (
    FreeError,
    HinderedStretch,
    Simulation,
    cut_into_windows,
    measure_free_errors,
    simulate_mounts,
    simulate_readings,
)
from dynident.recording.prepare import Samples
from dynident.regression.problem import Problem

WINDOW = 1.0
"""Free simulations are restarted so often [s]."""
EXPLAINED = 0.5
"""Of the motion within a window that is none of the usual ones: its error is larger than this."""
FEWEST = 5
"""Windows in which a joint has to move before anything is usual."""
ALARM, BESIDE = 0.01, 0.01
"""Chance of a stretch in a log that has none, and of a window that is added to one beside it."""
LEAST_TIMES = 3.0
"""Errors are at least so many times the usual ones, however even these are."""
MAD = 0.6745
"""Median absolute deviation of a normal distribution."""


@dataclass(frozen=True)
class WindowScatter:
    """What errors of free windows usually are."""

    usual: Array
    """Shape (n,). Median over windows in which the joint moves; infinite where there are too few
    [rad or m]."""
    spread: float
    """Standard deviation of the larger errors' logarithms."""


@dataclass(frozen=True, eq=False)
class FreeWindows:
    """Free windows of a log."""

    spans: tuple[tuple[int, int], ...]
    """Tuple of (start, stop). Their samples."""
    error: Array
    motion: Array
    """`error`, `motion`: median distance of measured from simulated positions, and how far either
    moves from where the window begins [rad or m], shape (windows, n)."""


def measure_windows(
    problem: Problem, simulation: Simulation, theta: Array
) -> tuple[FreeWindows, ...]:
    """Free simulations of all logs, restarted every `WINDOW` seconds; a mount goes on."""
    stands = [] if simulation.mount is None else simulate_mounts(problem, simulation, theta)
    readings = simulate_readings(problem, simulation, theta, WINDOW, stands)
    found = []
    for log, simulated in zip(problem.samples, readings, strict=True):
        least = round(0.5 * WINDOW * log.rate)
        spans = tuple((a, b) for a, b in cut_into_windows(log, WINDOW) if b - a >= max(2, least))
        error, motion = np.zeros((2, len(spans), log.measured.shape[1]))
        for k, (a, b) in enumerate(spans):
            q, s = log.measured[a:b], simulated[a:b]
            error[k] = np.median(np.abs(q - s), axis=0)
            moved = [np.sqrt(np.mean((each - q[0]) ** 2, axis=0)) for each in (q, s)]
            motion[k] = np.max(moved, axis=0)
        found.append(FreeWindows(spans, error, motion))
    return tuple(found)


def find_usual_errors(windows: Sequence[FreeWindows]) -> tuple[Array, list[Array]]:
    """Median errors of the joints, infinite where these move too seldom, and the larger ones.

    Windows of which the model explains less than half of the motion are not counted: the joint
    rests, or is stopped. The larger errors are in medians.
    """
    error, motion = (
        np.vstack([getattr(each, key) for each in windows]) for key in ("error", "motion")
    )
    usual, larger = np.full(error.shape[1], np.inf), []
    for j in range(len(usual)):
        own = error[error[:, j] < EXPLAINED * motion[:, j], j]
        if len(own) >= FEWEST and np.median(own) > 0.0:
            usual[j] = np.median(own)
            larger.append(own[own > usual[j]] / usual[j])
    return usual, larger


def estimate_scatter(windows: Sequence[FreeWindows]) -> WindowScatter | None:
    """What is usual in some logs; None where fewer than two joints move often enough to tell."""
    usual, larger = find_usual_errors(windows)
    if len(larger) < 2:
        return None
    # logarithms over their median are half a normal distribution, whose median is MAD
    return WindowScatter(usual, float(np.median(np.log(np.concatenate(larger)))) / MAD)


def examine_free_motion(
    problem: Problem, simulation: Simulation, theta: Array, scatter: WindowScatter | None = None
) -> tuple[WindowScatter | None, tuple[tuple[HinderedStretch, ...], ...]]:
    """The scatter of some logs, unless it is known, and each log's stretches beyond it.

    A log that moves otherwise than those of the scatter, and errs more throughout, is held against
    itself.
    """
    windows = measure_windows(problem, simulation, theta)
    scatter = scatter or estimate_scatter(windows)
    if scatter is None:
        return None, ((),) * len(windows)
    found = []
    for log, own in zip(problem.samples, windows, strict=True):
        here = find_usual_errors([own])[0]
        usual = np.maximum(scatter.usual, np.where(np.isfinite(here), here, 0.0))
        beside = replace(scatter, usual=usual)
        found.append(find_hindered(log, own, beside, problem.robot.joint_names))
    return scatter, tuple(found)


def find_hindered(
    log: Samples, windows: FreeWindows, scatter: WindowScatter, joints: Sequence[str]
) -> tuple[HinderedStretch, ...]:
    """Stretches of a log in which two joints or more err far beyond what is usual, together.

    A window is one where its second largest error is improbable among all windows of the log; so
    are those beside it, where it is improbable in one window. Half a window is added at both ends,
    for the onset is within it or in the one before, and what is then left of a run, if it is
    shorter than a window.
    """
    known, rate = np.flatnonzero(np.isfinite(scatter.usual)), log.rate
    pairs = comb(len(known), 2)
    if not len(windows.spans):
        return ()
    ratio = windows.error[:, known] / scatter.usual[known]
    low, high = (
        # two joints at once of so many pairs, each with chance p: p^2 pairs = chance
        float(np.exp(-scatter.spread * ndtri(np.sqrt(chance / pairs))))
        for chance in (BESIDE, ALARM / len(windows.spans))
    )
    second = np.sort(ratio, axis=1)[:, -2]
    within = select_windows(windows, second > low, second > max(high, LEAST_TIMES))
    step = round(WINDOW * rate)
    found = []
    for start, stop in list_stretches(log, windows, within, step):
        own = [k for k in np.flatnonzero(within).tolist() if start <= windows.spans[k][0] < stop]
        here = ratio[own]
        window, joint = np.unravel_index(np.argmax(here), here.shape)
        place = int(known[joint])
        astray = known[np.any(here > low, axis=0)]
        error, usual = windows.error[own[window], place], scatter.usual[place]
        names = tuple(joints[j] for j in astray)
        found.append(
            HinderedStretch(
                log.name, start, stop, rate, names, joints[place], float(error), float(usual)
            )
        )
    return tuple(found)


def select_windows(windows: FreeWindows, some: Booleans, sure: Booleans) -> Booleans:
    """Windows that stand out, with a neighbour that does so surely or by way of others."""
    found = sure.copy()
    for order in (range(1, len(found)), range(len(found) - 2, -1, -1)):
        for k in order:
            before = k - order.step
            found[k] |= some[k] & found[before] & touch(windows.spans, k, before)
    return found


def touch(spans: Sequence[tuple[int, int]], one: int, other: int) -> bool:
    """Whether one of two windows begins where the other ends."""
    return spans[min(one, other)][1] == spans[max(one, other)][0]


def list_stretches(
    log: Samples, windows: FreeWindows, within: Booleans, step: int
) -> list[tuple[int, int]]:
    """Samples around some windows, run by run; `step` is a window's length."""
    found: list[tuple[int, int]] = []
    for first, last in log.runs:
        own: list[tuple[int, int]] = []
        for k in np.flatnonzero(within).tolist():
            a, b = windows.spans[k]
            if not first <= a < last:
                continue
            start, stop = a - step // 2, b + step // 2
            if start - (own[-1][1] if own else first) < step:
                start = own.pop()[0] if own else first
            own.append((start, last if last - stop < step else stop))
        found += own
    return found


def leave_out_hindered(log: Samples, stretches: Sequence[HinderedStretch]) -> Samples:
    """A log that goes on behind each stretch as if it began there."""
    out = np.zeros(len(log.measured), dtype=bool)
    for each in stretches:
        out[each.start : each.stop] = True
    runs = tuple((a + i, a + j) for a, b in log.runs for i, j in find_runs(~out[a:b]))
    left = replace(log, runs=runs)
    return left if log.averaging is not None or not stretches else left.only(runs)


def measure_free_motion(
    problem: Problem,
    simulation: Simulation,
    theta: Array,
    stretches: Sequence[Sequence[HinderedStretch]],
) -> tuple[tuple[FreeError, ...], ...]:
    """Errors of `measure_free_errors`, and before the last those without hindered stretches.

    `stretches`: of each log.
    """
    found = list(measure_free_errors(problem, simulation, theta))
    stands = [] if simulation.mount is None else simulate_mounts(problem, simulation, theta)
    for k, own in enumerate(stretches):
        if not own:
            continue
        log = leave_out_hindered(problem.samples[k], own)
        if not log.runs:
            continue
        (simulated,) = simulate_readings(
            Problem.of(problem.base, log), simulation, theta, None, stands[k : k + 1]
        )
        error = np.concatenate([log.measured[a:b] - simulated[a:b] for a, b in log.runs])
        free = FreeError(None, np.sqrt(np.mean(error**2, axis=0)), tuple(own))
        found[k] = (*found[k][:-1], free, found[k][-1])
    return tuple(found)
