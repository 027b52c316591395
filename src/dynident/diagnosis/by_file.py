"""What the robot file's inertials say of a log that any bodies explain.

Bodies that nobody knows go with a clock that is wrong, or gravity along another axis: least squares
leaves what it did, or little more. Those of the file do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.diagnoses import STANDARD, suspect_mountings, suspect_rates
from dynident.diagnosis.scene import Scene
from dynident.diagnosis.screening import average_errors
from dynident.diagnosis.suspicion import Case, Suspicion, make_mendable_suspicion
from dynident.recording.mend import Mending, Signal


@dataclass(frozen=True, eq=False)
class ByFile:
    """A reading of a log under which the file's inertials explain it much better.

    Attributes
    ----------
    before, after : float
        Mean error of the joints with the file's inertials.
    """

    suspicion: Suspicion
    before: float
    after: float


def find_by_file(scene: Scene) -> ByFile | None:
    """The reading that the robot file speaks for, and bodies of their own not against.

    Of clocks that are about as good, the one that is least wrong.
    """
    if not scene.robot.has_nominal or not scene.plain:
        return None
    alone = scene.among(())
    brief = alone.brief
    whole = brief.base.idim.torque(brief.base.idim.nominal, brief.q, brief.dq, brief.ddq)
    readings, torques = zip(*list_whole_log_readings(brief, whole), strict=True)
    before, *after_all = measure_errors(brief, np.array([whole, *torques])).tolist()
    known = zip(after_all, readings, strict=True)
    hopeful = [each for each in known if each[0] <= limit.BY_FILE * before]
    if not hopeful:
        return None
    free, told = average_errors(alone.problem.free_errors()), []
    for error, suspicion in hopeful:
        read = suspicion.reading.of(alone).problem
        left = average_errors(read.free_errors())
        if read.as_many_as(alone.problem) and left <= limit.TIED * free:
            told.append((error, left, suspicion))
    if not told:
        return None
    least, rate = min(error for error, _, _ in told), scene.log.rate
    after, _, best = min(
        (each for each in told if each[0] <= (1.0 + limit.OTHER) * least),
        key=lambda each: (abs(np.log((each[2].rate or rate) / rate)), each[1], each[0]),
    )
    return ByFile(best, before, after)


def list_whole_log_readings(s: Scene, whole: Array) -> Iterator[tuple[Suspicion, Array]]:
    """Readings of a log that change all joints alike, and the file's torque under each.

    As the log stands, that is `whole`. Beside drives, a torque of the other sign is that of bodies
    turned round.
    """
    idim, n, still = s.base.idim, s.n, np.zeros_like(s.q)
    case = Case(s, np.zeros(s.base.count), np.zeros(n), frozenset(range(n)))
    weight = idim.torque(idim.nominal, s.q, still, still)
    for told in suspect_rates(case):
        assert told.rate is not None
        yield told, weight + (told.rate / s.log.rate) ** 2 * (whole - weight)
    size = float(np.linalg.norm(s.robot.gravity)) or STANDARD
    hung = [idim.of(replace(s.robot, gravity=size * axis)) for axis in np.eye(3)]
    weights = np.array([each.torque(idim.nominal, s.q, still, still) for each in hung]) / size
    for told in suspect_mountings(case):
        turned = np.tensordot(np.array(told.gravity), weights, 1)
        yield told, whole - weight + turned
    yield suspect_turned(n, "torque", ("tau",)), -whole
    mirrored = idim.torque(idim.nominal, -s.q, -s.dq, -s.ddq)
    yield suspect_turned(n, "position", ("q", "qref")), mirrored


def suspect_turned(n: int, what: str, signals: tuple[Signal, ...]) -> Suspicion:
    """All joints' signals of the other sign."""
    told = f"the {what}s of all joints have the other sign"
    mending = Mending(sign=dict.fromkeys(signals, -1.0))
    return make_mendable_suspicion(f"{what} sign", told, mending, n)


def measure_errors(s: Scene, known: Array) -> Array:
    """Mean error of the joints with some torques, and drives of their own, shape (k,).

    All readings of a whole log leave the span of what drives do. Torques have the shape (k,
    instants, n).
    """
    errors = np.zeros((len(known), s.n))
    for j, at in enumerate(s.moving.T):
        dq = s.dq[at, j]
        drive = np.column_stack([s.ddq[at, j], dq, np.sign(dq), np.ones_like(dq)])
        Q = np.linalg.qr(drive)[0]
        rest: Array = s.tau[at, j] - known[:, at, j]
        size = float(np.linalg.norm(s.tau[at, j]))
        if size > 0.0:
            errors[:, j] = np.linalg.norm(rest - (rest @ Q) @ Q.T, axis=1) / size
    return np.array([average_errors(own) for own in errors])
