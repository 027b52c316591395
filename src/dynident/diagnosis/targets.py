"""What can be wrong with a log of encoders alone: each a way to read it otherwise.

Beside `diagnoses`, which has the table of both kinds of logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.sized import interpolate_minimum
from dynident.diagnosis.suspicion import (
    Reading,
    Suspicion,
    make_repairable_suspicion,
    suspect_gravities,
)
from dynident.diagnosis.tracking import TrackedDrives, TrackingScene, track
from dynident.instants.squares import NO_ERROR
from dynident.recording.repairs import LogRepair, Signal

Ways = tuple[str, tuple[Signal, ...]]
TARGETS: tuple[Ways, ...] = (("position", ("q",)), ("target", ("qref",)))
"""Signals that may be another way round against each other, in words."""
BOTH: Ways = ("position and target", ("q", "qref"))
THE_LAW = "the law's torque"
LEAVE_OUT = "leave these rows out (rows of [[log]]), or log it again"
CHECK = "check the gains of [controller], and that the robot file's masses are this robot's"
SCALE_TURNS = 3
"""After which a factor of all joints and their weights are settled."""
LAGS = limit.LATEST * np.arange(-10, 11) / 10
"""Of positions beside their targets, that are tried [s]."""
SMALL_TURN = 1e-3
"""Of a joint, for difference quotients [rad or m]."""


@dataclass(frozen=True, eq=False)
class TrackingCase:
    """A log of encoders that is looked at."""

    log: TrackingScene
    beside: tuple[TrackingScene, ...]
    """Other logs of the same drives."""
    now: TrackedDrives
    """What drives leave of all as they are, this log first."""
    bad: frozenset[int]
    """Joints of this log that may be others, or turned round."""
    apart: Array
    """Errors of the logs with drives of their own, shape (logs * n,)."""

    @property
    def n(self) -> int:
        """Joints."""
        return self.log.n

    @property
    def asked_joints(self) -> list[tuple[int, str]]:
        """Joints that are asked to move, with their names."""
        return [(j, name) for j, name in enumerate(self.log.names) if self.log.asked[j]]


class OtherReading(NamedTuple):
    """A suspicion, and the log, or all logs, as they would be read then.

    What the file's bodies alone tell, `by_file`, has to explain something of the log.
    """

    suspicion: Suspicion
    log: TrackingScene
    beside: tuple[TrackingScene, ...] | None = None
    by_file: bool = False


def suspect_repaired(
    case: TrackingCase, diagnosis: str, what: str, repair: LogRepair, freedom: int = 0
) -> OtherReading:
    """What a log's table in a study has keys for.

    What is done to positions and targets alike leaves what the law asks for as it is, but for a
    sign: only the bodies of the file tell it.
    """
    told = make_repairable_suspicion(diagnosis, what, repair, case.n, freedom)
    turned = {*(repair.sign or {}), *(repair.order or {})}
    alike = len(turned) > 1 or bool(np.any(repair.sizes("offset", case.n)))
    return OtherReading(told, case.log.repaired(repair), by_file=alike)


def suspect_advised(diagnosis: str, what: str, advice: str, log: TrackingScene) -> OtherReading:
    """What a study has no key for, and one number was fitted for."""
    plain = Reading.plain(log.n)
    return OtherReading(Suspicion(diagnosis, what, plain, advice=advice, freedom=1), log)


def suspect_target_signs(case: TrackingCase) -> Iterator[OtherReading]:
    """A joint's encoder or its target the other way round, or both, which gravity tells."""
    for j, name in case.asked_joints:
        sign = tuple(-1.0 if k == j else 1.0 for k in range(case.n))
        ways = (*TARGETS, BOTH) if j in case.bad else (BOTH,)
        for word, signals in ways:
            repair = LogRepair(sign=dict.fromkeys(signals, sign))
            told = f"the {word} of {name} ha{'s' if len(signals) == 1 else 've'} the opposite sign"
            yield suspect_repaired(case, "position sign", told, repair)


def suspect_target_orders(
    case: TrackingCase, orders: Iterable[tuple[str, tuple[int, ...]]], ways: Sequence[Ways]
) -> Iterator[OtherReading]:
    """Columns of positions or of targets in another order, or of both."""
    for which, order in orders:
        for word, signals in ways:
            name = "joint order" if len(signals) > 1 else "position order"
            repair = LogRepair(order=dict.fromkeys(signals, order))
            told = f"the {word.replace(' and', 's and')}s {which}"
            yield suspect_repaired(case, name, told, repair)


def suspect_target_zeros(case: TrackingCase) -> Iterator[OtherReading]:
    """A position that is off its target by more than a drive, or than in the other logs."""
    own = track([case.log]).drives[:, -1]
    other = track(case.beside).drives[:, -1] if case.beside else np.zeros(case.n)
    least = limit.ZERO_MOVED if case.beside else limit.ZERO_FAR
    for j, name in case.asked_joints:
        if abs(own[j] - other[j]) <= least:
            continue
        off = float(own[j] - other[j])
        than = "in the other log" if case.beside else "its targets say"
        what = f"the position of {name} reads {-1e3 * off:.3g} mrad more than {than}"
        advice = f"add {off:.3g} to the position of {name}, and not to its target"
        moved = case.log.moved(np.where(np.arange(case.n) == j, off, 0.0))
        yield suspect_advised("encoder offset", what, advice, moved)


def suspect_common_zeros(case: TrackingCase) -> Iterator[OtherReading]:
    """A zero of a joint that position and target share: the file's gravity tells it."""
    every = [j for j, _ in case.asked_joints]
    for j, name in case.asked_joints:
        zero, log, now = np.zeros(case.n), case.log, case.now
        for turn in range(limit.TURNS):
            small = log.repaired(LogRepair(offset=tuple(SMALL_TURN * np.eye(case.n)[j])))
            by = (small.needed - log.needed) * log.factor / SMALL_TURN
            step, share = project(log, now, by, every)
            if turn == 0 and share > limit.PROMISING * len(every):
                break
            step = np.clip(step, -limit.OFFSET_STEP, limit.OFFSET_STEP)
            zero[j] = np.round(zero[j] + step, 6)
            repair = LogRepair(offset=tuple(zero.tolist()))
            log = case.log.repaired(repair)
            now = track([log, *case.beside])
        if zero[j] != 0.0:
            what = f"the zero of {name} is {np.degrees(-zero[j]):.3g} deg off"
            yield suspect_repaired(case, "encoder offset", what, repair, 1)


def project(
    log: TrackingScene, now: TrackedDrives, by: Array, joints: Sequence[int]
) -> tuple[float, float]:
    """How much of a column of some joints is in what drives leave of a log, and what is left then.

    The latter is the squared error in units of the joints' own, of all of these together.
    """
    top, bottom, rest = 0.0, 0.0, now.rest(log)
    for j in joints:
        at = log.kept[:, j]
        X, y = log.columns(j), by[at, j]
        column = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
        weight = 1.0 / max(1e-300, float(np.sum(rest[at, j] ** 2)))
        top += weight * float(column @ rest[at, j])
        bottom += weight * float(column @ column)
    size = top / max(bottom, 1e-300)
    return size, len(joints) - size * top


def suspect_scales(case: TrackingCase) -> Iterator[OtherReading]:
    """Gains of the law that are others, or bodies: of all joints, or of one.

    A log tells how many times the file's torque is in that of the law, and not which is wrong.
    """
    log, now, every = case.log, case.now, [j for j, _ in case.asked_joints]
    times = 1.0
    for _ in range(SCALE_TURNS):  # the joints' weights change with it
        times += project(log, now, log.needed, every)[0]
        log = replace(case.log, factor=times * case.log.factor)
        now = track([log, *case.beside])
    whose = f"{THE_LAW}s are"
    told = [("torque scale", whose, times, log)]
    if case.n > 1:
        for j, name in case.asked_joints:
            own = 1.0 + project(case.log, case.now, case.log.needed, (j,))[0]
            factor = np.where(np.arange(case.n) == j, own, case.log.factor)
            whose = f"{THE_LAW} of {name} is"
            told.append(("torque scale of a joint", whose, own, replace(case.log, factor=factor)))
    for diagnosis, whose, size, read in told:
        # bodies that push instead of pull are not a question of gains
        if 0.0 < size < 1.0 / limit.SCALED or size > limit.SCALED:
            what = f"{whose} {size:.2g} times what the robot file's inertials predict"
            yield suspect_advised(diagnosis, what, CHECK, read)


def suspect_mounted_targets(case: TrackingCase) -> Iterator[OtherReading]:
    """Gravity along another axis: on a wall, on the ceiling."""
    robot = case.log.idim.robot
    for other, told in suspect_gravities(robot, float(np.linalg.norm(robot.gravity))):
        idim = case.log.idim.of(other)
        log, *beside = (replace(own, idim=idim) for own in (case.log, *case.beside))
        yield OtherReading(told, log, tuple(beside), by_file=True)


def suspect_target_delays(case: TrackingCase) -> Iterator[OtherReading]:
    """Positions that stand later or earlier beside their targets than in other logs, all or one's.

    A log alone does not tell it from viscous friction: the delay of the targets is fitted.
    """
    if not case.beside:
        return
    worst = int(np.argmax(case.now.errors[: case.n] / np.maximum(case.apart[: case.n], NO_ERROR)))
    for whose, share in (
        ("positions stand", np.ones(case.n)),
        (f"position of {case.log.names[worst]} stands", np.eye(case.n)[worst]),
    ):

        def read(late: float, share: Array = share) -> TrackingScene:
            return case.log.repaired(LogRepair(lag=tuple((late * share).tolist())))

        errors = [track([read(late), *case.beside]).mean for late in LAGS]
        best = round(interpolate_minimum(LAGS, np.array(errors))[0], 6)
        if abs(best) * case.log.log.rate < 1.0:
            continue
        word = "later" if best > 0.0 else "earlier"
        what = (
            f"the {whose} {1e3 * abs(best):.2g} ms {word} beside the target than in the other log"
        )
        lag = best if np.all(share == 1.0) else tuple((best * share).tolist())
        name = "delay" if np.all(share == 1.0) else "position delay"
        yield suspect_repaired(case, name, what, LogRepair(lag=lag), 1)


def suspect_pushes(case: TrackingCase) -> Iterator[OtherReading]:
    """Something from outside that acts for a while: what is left without that while."""
    log = case.log
    length = float(log.time[-1])
    shares = case.now.rest(log) ** 2
    sums = np.vstack([np.zeros(case.n), np.cumsum(shares, axis=0)])
    for seconds in limit.PUSHED:
        count = round(seconds * log.rate)
        if seconds > limit.PUSH_SHARE * length or count < 1:
            continue
        inside = sums[count:] - sums[:-count]
        for j, name in case.asked_joints:
            first = int(np.argmax(inside[:, j]))
            start, stop = float(log.time[first]), float(log.time[first + count - 1])
            read = log.without(start, stop)
            if not np.any(read.kept[:, j]):
                continue
            moved = [np.std(own.target[own.kept[:, j], j]) for own in (log, read)]
            if moved[1] < limit.STILL_MOVES * moved[0]:  # it is the motion that would be left out
                continue
            what = f"something pushed {name} from {start:.3g} to {stop:.3g} s"
            yield suspect_advised("push", what, LEAVE_OUT, read)
