"""What a look at the raw signals shows: stuck, clipped, coarse, unsigned, too fast."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers, find_longest_run
from dynident.diagnosis import thresholds as limit
from dynident.filters.blocks import cut_into_blocks, find_run_extremes, join_runs
from dynident.recording.prepare import Samples
from dynident.regression.rests import find_fastest
from dynident.robot.model import Robot

TYPICAL = 5000
"""Samples at least, where there are more, that a median is taken of."""
NUMBERS = re.compile(r"(?<![\w.-])-?\d+(\.\d+)?(e[+-]?\d+)?")
"""In the words of a sign, by which the same ones differ; none of a name, such as joint_1."""
STILL = "still"
"""Kind of a sign that is no reason to doubt: a joint may rest."""
DEAD = "dead"
"""Kind of a torque that is one number throughout, of which nothing else is said."""


@dataclass(frozen=True)
class Sign:
    """Something that a signal shows by itself, and the share of it that is wrong; 1 of no size."""

    kind: str
    what: str
    size: float = 1.0


def find_signs(robot: Robot, samples: Samples) -> tuple[Sign, ...]:
    """All that the raw signals of a log show, of a long one in any of its stretches."""
    every = [find_stretch_signs(robot, part) for _, part in samples.stretches()]
    first: dict[tuple[str, str], Sign] = {}
    for sign in (each for own in every for each in own):
        first.setdefault((sign.kind, NUMBERS.sub("", sign.what)), sign)
    return tuple(
        sign
        for sign in first.values()
        if sign.kind != STILL or all(sign in own for own in every)  # it may rest for an hour
    )


def find_stretch_signs(robot: Robot, samples: Samples) -> tuple[Sign, ...]:
    """All that they show at once."""
    found = []
    if samples.rate < limit.SLOW_RATE:
        slow = f"the rate is {samples.rate:.3g} Hz: is time in ms, or in minutes?"
        found.append(Sign("rate", slow))
    found += [
        *find_wrapped_angles(robot, samples),
        *find_copied_columns(robot, samples),
        *find_counts(robot, samples),
        *find_commanded_torques(robot, samples),
    ]
    fast = find_fastest(samples)[-robot.n :]
    borders = np.cumsum([0, *(b - a for a, b in samples.runs)])
    for j in robot.driven:
        joint = robot.joints[j]
        q = join_runs(samples.measured, samples.runs, j)
        tau = join_runs(samples.joint_torque, samples.runs, j - robot.n)
        found += [
            *find_coarse_torque(joint.name, tau),
            *find_coarse_position(joint.name, q, samples, j, joint.kind == "revolute"),
        ] or [
            *find_stuck_signals(joint.name, q, tau, samples, borders),
            *find_clipped_torque(joint.name, tau),
            *find_clipped_position(joint.name, q),
            *find_torque_spikes(joint.name, tau),
        ]
        found += find_unsigned_torque(joint.name, tau, samples, j - robot.n)
        if fast[j] > limit.FAST * joint.velocity:
            found.append(
                Sign(
                    "speed",
                    f"{joint.name} moves at {fast[j]:.3g}, the robot file allows "
                    f"{joint.velocity:.3g}: check units and rate",
                )
            )
    if not any(sign.kind == "unsigned" for sign in found):
        found += find_unsigned_log(samples)
    return (*find_lost_rows(samples), *found)


def find_counts(robot: Robot, samples: Samples) -> Iterator[Sign]:
    """Torques that are whole numbers far beyond any drive: counts of a converter."""
    tau = samples.joint_torque[:, -robot.n :]
    peaks = np.max(np.abs(tau[:TYPICAL]), axis=0)
    limits = np.array([joint.effort for joint in robot.joints])
    known = np.isfinite(limits) & (limits > 0.0)
    most = np.where(known, limits, np.max(limits[known], initial=limit.STRONGEST))
    if (
        robot.n
        and np.median(peaks / most) > 1.0
        and all(np.array_equal(own, np.round(own)) for own in (tau[:TYPICAL], tau))
    ):
        yield Sign(
            "counts",
            f"all torques are whole numbers, up to {np.max(np.abs(tau)):.0f}: are they counts of a "
            "converter, or thousandths of a rated torque? Give gain of [[drive]], or units",
        )


def find_commanded_torques(robot: Robot, samples: Samples) -> Iterator[Sign]:
    """Torques that a law asks for by the log's own targets and positions: no sensor is so exact.

    ``tau = kp (qref - q) + kd (dqref - dq) + ki * integral + c`` of two neighbouring samples alike,
    whatever the gains.
    """
    if samples.qref is None or samples.torque != "measured":
        return
    start, stop = max(samples.runs, key=lambda run: run[1] - run[0])
    own = slice(start, min(stop, start + TYPICAL))
    told = []
    for j in range(robot.n):
        tau = samples.joint_torque[own, j - robot.n]
        parts = [samples.qref[own, j], samples.measured[own, j - robot.n]]
        rates = [np.gradient(part) for part in parts]
        columns = np.column_stack(
            [*parts, *rates, np.cumsum(parts[0] - parts[1]), np.ones(len(tau))]
        )
        lengths = np.linalg.norm(columns, axis=0)
        columns /= np.where(lengths > 0.0, lengths, 1.0)
        spread = float(np.std(tau))
        rest = tau - columns @ np.linalg.lstsq(columns, tau, rcond=1e-9)[0]
        if spread > 0.0 and len(tau) > 10 * columns.shape[1]:
            told.append(float(np.std(rest)) / spread)
    if told and max(told) < limit.LITERAL:
        yield Sign(
            "commanded",
            "the torques equal the controller's output for its targets to "
            f"{100.0 * max(told):.1g} %: they are commanded, not measured",
            0.5 * limit.COARSE,
        )


def find_unsigned_log(samples: Samples) -> Iterator[Sign]:
    """Torques of which none is ever negative, though they come down to zero time and again."""
    low, _ = find_run_extremes(samples.joint_torque, samples.runs)
    n = samples.joint_torque.shape[1]
    if n < 2 or np.any(low < 0.0):
        return
    torques = (join_runs(samples.joint_torque, samples.runs, j) for j in range(n))
    visits = [count_visits_to_zero(own) for own in torques]
    if sum(visits) >= limit.VISITS * len(visits):
        often = f"no torque is ever negative, though they reach zero {sum(visits)} times"
        yield Sign("unsigned", often)


def count_visits_to_zero(tau: Array) -> int:
    """How often a torque comes down to zero from far."""
    size = np.abs(tau)
    large = float(np.max(size))
    size = size[(size > limit.TOUCHED * large) | (size < 0.1 * limit.TOUCHED * large)]
    state = size > limit.TOUCHED * large
    return int(np.sum(np.diff(state.astype(int)) == -1))


def find_lost_rows(samples: Samples) -> Iterator[Sign]:
    """Rows that are missing here and there, and time does not say so.

    All joints move on by twice as much there as before and behind. A sample that is repeated, or
    positions in steps, leave other ratios beside.
    """
    start, stop = max(samples.runs, key=lambda run: run[1] - run[0])
    first = max(start, (start + stop - TYPICAL) // 2)
    steps = np.diff(samples.measured[first : min(stop, first + TYPICAL)], axis=0)
    if len(steps) < 3:
        return
    size = np.sqrt(np.mean(steps**2, axis=0))
    steps = steps[:, size > 0.0] / size[size > 0.0]
    beside = 0.5 * (steps[:-2] + steps[2:])
    square = np.sum(beside**2, axis=1)
    quick = square > np.median(square)
    if not np.any(quick):
        return
    ratio = np.sum(steps[1:-1] * beside, axis=1)[quick] / square[quick]
    double = int(np.count_nonzero(np.abs(ratio - 2.0) < 0.25))
    other = int(np.count_nonzero(np.abs(ratio - 1.5) <= 0.25))
    other += 2 * int(np.count_nonzero(ratio < 0.5))
    if double > max(other, limit.FEW_SPIKES, limit.LOST * len(ratio)):
        share = 100.0 * double / len(ratio)
        yield Sign(
            "rows lost",
            f"at {share:.2g} % of the samples all joints move twice as far as at the neighbouring "
            "ones: were rows lost, and time restarted?",
        )


def is_in_step(signal: Array) -> bool:
    """Whether all columns that change are multiples of the first, and not all are it.

    Joints that were moved by one profile may go equally far: what simulations log, or targets.
    """
    x, *others = (column - np.mean(column) for column in signal.T)
    moved = [y for y in others if np.any(y)]
    if all(np.array_equal(x, y) for y in moved):
        return False
    left = (y - x * (x @ y) / (x @ x) for y in moved)
    sizes = (np.linalg.norm(y) for y in moved)
    return all(
        np.linalg.norm(rest) <= limit.IN_STEP * size for rest, size in zip(left, sizes, strict=True)
    )


def find_copied_columns(robot: Robot, samples: Samples) -> Iterator[Sign]:
    """Columns that are those of another joint."""
    for what, signal in (("position", samples.measured), ("torque", samples.joint_torque)):
        for i, j in combinations(robot.driven, 2):
            if signal[0, i] == signal[0, j] and np.array_equal(signal[:, i], signal[:, j]):
                names = robot.joint_names
                moved = signal[:, [i, *(k for k in robot.driven if k not in (i, j))]]
                if np.ptp(signal[:, i]) > 0.0 and not is_in_step(moved):
                    yield Sign("copied", f"{what}s of {names[i]} and {names[j]} are one column")


def find_stuck_signals(
    name: str, q: Array, tau: Array, samples: Samples, borders: Integers
) -> Iterator[Sign]:
    """A position that stands still while its joint moves on, or a torque that was logged and does.

    A position that is the same throughout a log is one of which the log warns as it is read.
    """
    if not np.ptp(q) > 0.0:
        what = f"position of {name} never changes: is its encoder dead, or does it rest?"
        yield Sign(STILL, what)
        return
    logged = 1 if samples.torque == "none" else 2
    for what, signal, other in (("position", q, tau), ("torque", tau, q))[:logged]:
        least = max(limit.RUN, limit.STUCK * len(signal))
        if np.count_nonzero(signal[1:] == signal[:-1]) + 1 < least:
            continue
        first, length = find_longest_run(signal)
        if length < least:
            continue
        spread = np.ptp(other)
        goes_on = np.ptp(other[first : first + length]) > limit.GOES_ON * spread > 0.0
        if goes_on and not (
            what == "position" and is_joint_at_rest(q, tau, first, first + length, borders)
        ):
            yield Sign(
                DEAD if what == "torque" and length == len(signal) else "stuck",
                f"{what} of {name} stands still for {length / samples.rate:.3g} s at "
                f"{signal[first]:.4g} while the other goes on",
            )


def is_joint_at_rest(q: Array, tau: Array, start: int, stop: int, borders: Integers) -> bool:
    """Whether a position that stands still is that of a joint at rest, and not a dead encoder's.

    Such a joint slows down before and starts gently, and friction and the weight of others change
    its torque by less than motion does.
    """
    moving = np.flatnonzero(np.diff(q))
    if not len(moving) or np.std(tau[start:stop]) > limit.AS_EVER * np.std(tau[moving]):
        return False
    return stops_gently(q, start, stop, borders)


def stops_gently(q: Array, start: int, stop: int, borders: Integers) -> bool:
    """Whether a position slows down before it stands still, and starts gently, as a joint does."""
    steps = np.diff(q)
    sizes = np.abs(steps[steps != 0.0])
    if not len(sizes):
        return True
    # an encoder adds one of its steps
    most = 2.0 * limit.ABRUPT * np.sqrt(np.mean(sizes**2)) + np.min(sizes)
    ends = ((a, a + 2) for a in (start - 2, stop - 1))
    within = [(a, b) for a, b in ends if np.any((borders[:-1] <= a) & (b < borders[1:]))]
    return all(abs(q[b] - q[a]) <= most for a, b in within)


def find_clipped_torque(name: str, tau: Array) -> Iterator[Sign]:
    """A torque that stays at an extreme, or falls to zero, many samples in a row."""
    if np.ptp(tau) == 0.0:
        return
    for word, levels in (("clipped", (np.max(tau), np.min(tau))), ("lost", (0.0,))):
        for at, told in find_plateaus(tau, levels):
            _, length = find_longest_run(np.where(at, 1.0, np.arange(len(tau)) + 2.0))
            if length >= limit.RUN:
                yield Sign("clipped", f"torque of {name} is {word} {told}")


def find_clipped_position(name: str, q: Array) -> Iterator[Sign]:
    """A position that ends at an extreme in full motion, where a joint would slow down."""
    for at, told in find_plateaus(q, (np.max(q), np.min(q))):
        first = np.flatnonzero(at[2:] & ~at[1:-1]) + 2
        speed = np.abs(q[first - 1] - q[first - 2])
        if len(first) and np.median(speed) > limit.ABRUPT * np.sqrt(np.mean(np.diff(q) ** 2)):
            yield Sign("clipped", f"position of {name} is clipped {told}")


def find_plateaus(values: Array, levels: Iterable[float]) -> Iterator[tuple[Booleans, str]]:
    """Which samples are at each of some levels, where many in a row are; and that in words."""
    for level in levels:
        at = values == level
        share = np.count_nonzero(at[1:] & at[:-1]) / len(values)
        if share >= limit.CLIPPED:
            yield at, f"at {level:.4g} in {100.0 * share:.2g} % of the samples"


def find_coarse_torque(name: str, tau: Array) -> Iterator[Sign]:
    """A torque in steps."""
    if len(np.unique(tau[: 5 * limit.LEVELS])) > limit.LEVELS:
        return
    levels = np.unique(tau)
    if 2 <= len(levels) <= limit.LEVELS:
        step = float(np.min(np.diff(levels)))
        std = float(np.std(tau))
        if step > limit.COARSE * std:  # the error of a rounded number is spread evenly
            size = step / np.sqrt(12.0) / std
            yield Sign("coarse", f"torque of {name} comes in steps of {step:.3g}", size)


def find_coarse_position(
    name: str, q: Array, samples: Samples, joint: int, revolute: bool
) -> Iterator[Sign]:
    """A position in steps that its acceleration shows below the position's cutoff.

    The variance of steps s, ``s^2 / 12``, is spread evenly up to half of the rate; twice
    differentiated it grows with the fourth power of the frequency.
    """
    changes = np.abs(np.diff(q))
    moved = np.count_nonzero(changes)
    if moved > (1.0 - limit.REPEATED) * len(changes) or not moved:
        return
    cutoff = min(samples.position_hz[joint], 0.5 * samples.rate)
    unit = np.sqrt((2.0 * np.pi) ** 4 * cutoff**5 / 5.0 / 12.0 / (0.5 * samples.rate))
    least = limit.NOISY * float(np.std(samples.ddq[:, joint])) / unit
    still = len(changes) - moved
    if np.count_nonzero(changes <= least) - still > limit.SMALLER * moved:
        return
    step = estimate_smallest_step(changes[changes > 0.0])
    steps = changes[changes < limit.FEW_STEPS * step] / step
    if step > least and np.mean(np.abs(steps - np.round(steps))) < limit.BETWEEN:
        size = f"{step:.3g} rad ({np.degrees(step):.2g} deg)" if revolute else f"{step:.3g} m"
        yield Sign(
            "coarse",
            f"position of {name} comes in steps of {size}: lower the bandwidth, or log a finer "
            "signal of its encoder",
        )


def estimate_smallest_step(changes: Array) -> float:
    """What the smallest changes that many samples share are, of which others are multiples."""
    sizes = np.sort(changes)
    alike = np.searchsorted(sizes, limit.ALIKE * sizes, side="right") - np.arange(len(sizes))
    first = int(np.argmax(alike >= min(limit.SHARED * len(sizes), np.max(alike))))
    return float(np.median(sizes[first : first + alike[first]]))


def find_wrapped_angles(robot: Robot, samples: Samples) -> Iterator[Sign]:
    """Angles that jump by a turn between neighbouring samples."""
    for j, joint in enumerate(robot.joints):
        if joint.kind != "revolute":
            continue
        jumps = [np.abs(np.diff(samples.measured[a:b, j])) for a, b in samples.runs]
        for turn, unit in ((2.0 * np.pi, "2 pi"), (360.0, "360")):
            count = sum(int(np.sum(np.abs(own - turn) < limit.NEAR_TURN * turn)) for own in jumps)
            if count:
                yield Sign(
                    "wrapped",
                    f"position of {joint.name} jumps by about {unit} {count} times: unwrap it",
                )


def find_torque_spikes(name: str, tau: Array) -> Iterator[Sign]:
    """Single samples far from both their neighbours, on the same side of them."""
    few = slice(None, None, max(1, (len(tau) - 2) // TYPICAL))
    before, behind = tau[1:-1][few] - tau[:-2][few], tau[1:-1][few] - tau[2:][few]
    usual = float(np.median(np.abs(0.5 * (before + behind))))
    found = []
    for each in cut_into_blocks([(1, len(tau) - 1)], 1, [(0, len(tau))]):
        steps = np.diff(tau[each.wide])
        before, behind = steps[:-1], -steps[1:]
        off = np.where(before * behind > 0.0, np.minimum(np.abs(before), np.abs(behind)), 0.0)
        found.append(off[off > limit.SPIKE * usual])
    far = np.concatenate(found)
    if len(far) < limit.FEW_SPIKES:
        return
    some = tau[:: max(1, len(tau) // TYPICAL)]  # enough for a median
    robust_std = 1.4826 * float(np.median(np.abs(some - np.median(some))))
    spikes = far[far > 2.0 * robust_std]
    if len(spikes) >= limit.FEW_SPIKES:
        size = float(np.linalg.norm(spikes) / np.linalg.norm(tau))
        what = f"torque of {name} has {len(spikes)} samples far from the others"
        yield Sign("spikes", what, size)


def find_unsigned_torque(name: str, tau: Array, samples: Samples, column: int) -> Iterator[Sign]:
    """A torque without a sign, on a joint that turns both ways: it touches zero time and again."""
    low, high = float(np.min(tau)), float(np.max(tau))
    large = max(-low, high)
    if low < 0.0 < high or large == 0.0:
        return
    dq = join_runs(samples.dq, samples.runs, column)
    quick = np.sign(dq[np.abs(dq) > 0.05 * np.max(np.abs(dq))])
    if np.count_nonzero(np.diff(quick)) < 4:
        return
    if count_visits_to_zero(tau) >= 4:
        yield Sign("unsigned", f"torque of {name} touches zero and never changes its sign")
