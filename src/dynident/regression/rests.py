"""Poses that were held: what a log says where nothing moves, a row a pose and side of approach.

At rest ``tau = g(q) + offset + s h``: gravity, and friction that holds h with the sign s of the
speed by which the joint came. Averaged over both sides it vanishes; half their difference is h.
That is the model at zero speed and acceleration, with the sign of a speed that is nearly zero.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynident.core.arrays import Array, Booleans, find_runs
from dynident.core.errors import InputError
from dynident.dynamics.equations import CREEPING
from dynident.filters.blocks import find_run_extremes
from dynident.filters.filters import DecimationFilter, count_filter_edge
from dynident.recording.prepare import Samples
from dynident.robot.drives import Drives, find_moving_joints

CREEP = 0.01
"""Share of a joint's largest speed below which it stands, where nothing is dropped below one."""
HOLDS = 0.03
"""Share of its largest speed below which friction of a joint may be any, where no torque is
measured."""
SETTLING = 0.1
"""Share of a rest that is left out at both ends, where it may settle, or begin to move."""
SAME = 0.01
"""Poses nearer than this in all joints are one [rad or m]."""
MOVES, LONG_REST = 0.05, 0.3
"""Share of the widest target's spread from which a joint is asked to move, and share of a log at
rest from which friction holds it: 0.1 at most on Z1 and Go2, 0.46 and more on 13 of SO-101's 14."""
AVERAGED = ("q", "measured", "tau", "temp", "known")


def find_standstill_speeds(log: Samples, share: float = CREEP) -> Array:
    """Speeds below which joints stand, shape (n,) [rad/s or m/s].

    `drop_below` of the log where that is given, else a share of the joint's largest speed.
    """
    fastest = find_fastest(log)[log.dq.shape[1] - len(log.drop_below) :]
    given = np.array(log.drop_below)
    return np.where(given > 0.0, given, share * fastest)


def mark_standing(log: Samples, drives: Drives | None) -> Booleans:
    """Samples at which friction of a joint may hold whatever it has to, shape (samples, n).

    At those it is slower than `find_standstill_speeds` of `HOLDS`, and as far around them as the
    position filter carries a start or a stop: half a period of its cutoff.
    """
    from scipy import ndimage  # a tenth of a second that few runs need

    speeds = tuple(find_standstill_speeds(log, HOLDS).tolist())
    around = 2 * round(0.5 * log.rate / min(log.position_hz)) + 1
    found = np.zeros(log.dq.shape, dtype=bool)
    for start, stop in log.runs:
        slow = ~find_moving_joints(log.dq[start:stop], speeds, drives)
        found[start:stop] = ndimage.binary_dilation(slow, np.ones((around, 1), dtype=bool))
    return found


def find_fastest(log: Samples) -> Array:
    """Largest speeds, shape (columns,) [rad/s or m/s]."""
    low, high = find_run_extremes(log.dq, log.runs)
    return np.asarray(np.maximum(-low, high).max(axis=0))


def rests_long(log: Samples) -> bool:
    """Whether a joint that is asked to move rests for much of a log, held by its friction.

    That bears anything up to its size then: neither the law's torque nor the joint's motion says
    what is wrong.
    """
    if log.qref is None:
        return False
    asked = np.std(log.qref, axis=0)
    rest = np.mean(np.abs(log.dq) < find_standstill_speeds(log), axis=0)
    return bool(np.any(rest[asked > MOVES * np.max(asked)] > LONG_REST))


def average_rests(log: Samples) -> Samples:
    """The rests of a log in the place of its samples, those of one pose and approach averaged.

    A rest is a stretch in which all joints are slower than `find_standstill_speeds` for the time
    that the log's `rests` say; a tenth at both ends is left out, and as much as the position
    filter carries into it from the motion before and after. A joint has come from the side that
    `find_sides` tells; one that has not moved yet has no row.
    """
    assert log.rests is not None
    if log.averaging is not None or log.base is not None or log.wrenches or log.locked:
        raise InputError(
            f"{log.name}: rests need a fixed robot without locked joints, measured wrenches and "
            "period; leave rests out"
        )
    if log.torque != "measured":
        raise InputError(f"{log.name}: has no torque to average over rests; leave rests out")
    found = find_rests(log)
    if not found:
        raise InputError(
            f"{log.name}: joints are never all slower than {CREEP:.0%} of their largest speeds "
            f"for {log.rests:g} s; hold poses longer, or lower rests"
        )
    signals = {key: getattr(log, key) for key in AVERAGED}
    signals = {key: value for key, value in signals.items() if value is not None}
    means: dict[str, Any] = {
        key: np.array([np.mean(value[run], axis=0) for run, _ in found])
        for key, value in signals.items()
    }
    sides = np.array([side for _, side in found])
    place = number_poses(means["q"], sides)
    count = np.bincount(place).astype(float)[:, None]
    for key, value in means.items():
        means[key] = np.zeros((len(count), value.shape[1]))
        np.add.at(means[key], place, value)
        means[key] /= count
    first = np.array([np.argmax(place == k) for k in range(len(count))])
    whole = ((0, len(count)),)
    every = DecimationFilter(0.5 * log.rate, 1, np.ones(1))  # which changes nothing
    return replace(
        log,
        **means,
        dq=CREEPING * sides[first],
        ddq=np.zeros_like(means["q"]),
        moving=sides[first] != 0,
        segments=whole,
        runs=whole,
        filters=(every,) * len(log.filters),
        qref=None,
        dqref=None,
        kept=None,
        left_out=None,
    )


def find_rests(log: Samples) -> list[tuple[slice, Array]]:
    """Samples of each rest, and from which side each joint came: 1, -1, or 0 where nobody knows."""
    slow = find_standstill_speeds(log)
    edge = max(count_filter_edge(hz, log.rate) for hz in log.position_hz)
    least = max((log.rests or 0.0) * log.rate, 2 * edge + 1)
    found = []
    for start, stop in log.runs:
        dq = log.dq[start:stop]
        still = np.all(np.abs(dq) < slow, axis=1)
        if log.kept is not None:
            still &= log.kept[start:stop]
        end, sides = 0, np.zeros(dq.shape[1])
        for a, b in find_runs(still):
            if b - a >= least:
                way = log.q[start + a] - log.q[start + end]
                sides = find_sides(dq[end:a], way, slow, sides)
                cut, end = max(edge, round(SETTLING * (b - a))), b
                found.append((slice(start + a + cut, start + b - cut), sides))
    return found


def find_sides(dq: Array, way: Array, slow: Array, before: Array) -> Array:
    """From which side each joint came to a rest, from its motion since the rest before.

    The sign of its last speed that was none of standstill; of its way, if it crept; as it was
    before, if it did not move.
    """
    sides = np.where(np.abs(way) >= SAME, np.sign(way), before)
    for j in range(len(sides)):
        moved = np.flatnonzero(np.abs(dq[:, j]) >= slow[j])
        if len(moved):
            sides[j] = np.sign(dq[moved[-1], j])
    return sides


def number_poses(q: Array, sides: Array) -> np.ndarray:
    """Numbers of rests that are alike: the same pose, to which all joints came alike."""
    place = np.zeros(len(q), dtype=np.int64)
    firsts: list[int] = []
    for k in range(len(q)):
        like = [
            i
            for i, first in enumerate(firsts)
            if np.all(np.abs(q[k] - q[first]) < SAME) and np.array_equal(sides[k], sides[first])
        ]
        place[k] = like[0] if like else len(firsts)
        firsts += [] if like else [k]
    return place
