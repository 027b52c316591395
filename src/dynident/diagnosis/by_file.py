"""What the robot file's inertials say of a log that any bodies explain.

Bodies that nobody knows go with a clock that is wrong, or gravity along another axis: least squares
leaves what it did, or little more. Those of the file do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.diagnoses import suspect_mountings, suspect_rates
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
    measure = project_drives(brief)
    idim, still = brief.base.idim, np.zeros_like(brief.q)
    before = measure(idim.torque(idim.nominal, brief.q, brief.dq, brief.ddq))
    known = [(measure(torque), told) for told, torque in list_whole_log_readings(brief, still)]
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


def list_whole_log_readings(s: Scene, still: Array) -> Iterator[tuple[Suspicion, Array]]:
    """Readings of a log that change all joints alike, and the file's torque under each.

    Beside drives, a torque of the other sign is that of bodies turned round.
    """
    idim, n = s.base.idim, s.n
    case = Case(s, np.zeros(s.base.count), np.zeros(n), frozenset(range(n)))
    whole = idim.torque(idim.nominal, s.q, s.dq, s.ddq)
    weight = idim.torque(idim.nominal, s.q, still, still)
    for told in suspect_rates(case):
        assert told.rate is not None
        yield told, weight + (told.rate / s.log.rate) ** 2 * (whole - weight)
    for told in suspect_mountings(case):
        other = idim.of(replace(s.robot, gravity=np.array(told.gravity)))
        yield told, other.torque(other.nominal, s.q, s.dq, s.ddq)
    for told, torque in (
        (suspect_turned(n, "torque", ("tau",)), -whole),
        (
            suspect_turned(n, "position", ("q", "qref")),
            idim.torque(idim.nominal, -s.q, -s.dq, -s.ddq),
        ),
    ):
        yield told, torque


def suspect_turned(n: int, what: str, signals: tuple[Signal, ...]) -> Suspicion:
    """All joints' signals of the other sign."""
    told = f"the {what}s of all joints have the other sign"
    mending = Mending(sign=dict.fromkeys(signals, -1.0))
    return make_mendable_suspicion(f"{what} sign", told, mending, n)


def project_drives(s: Scene) -> Callable[[Array], float]:
    """What measures the mean error of the joints with given torques and drives of their own.

    All readings of a whole log leave the span of what drives do.
    """
    spans = []
    for j, at in enumerate(s.moving.T):
        dq = s.dq[at, j]
        drive = np.column_stack([s.ddq[at, j], dq, np.sign(dq), np.ones_like(dq)])
        spans.append(np.linalg.qr(drive)[0])

    def measure(known: Array) -> float:
        errors = np.zeros(s.n)
        for j, (at, Q) in enumerate(zip(s.moving.T, spans, strict=True)):
            rest: Array = s.tau[at, j] - known[at, j]
            size = float(np.linalg.norm(s.tau[at, j]))
            if size > 0.0:
                errors[j] = np.linalg.norm(rest - Q @ (Q.T @ rest)) / size
        return average_errors(errors)

    return measure
