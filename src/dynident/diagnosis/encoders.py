"""The doctor on logs of encoders alone: which other reading of one drives explain better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dynident.control.controller import QREF, Controller
from dynident.core.arrays import find_longest_run
from dynident.core.threads import limit_to_one_thread
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.diagnoses import DIAGNOSES
from dynident.diagnosis.examine import Finding, state_reading
from dynident.diagnosis.screening import is_clearly_better, settles_contradictions
from dynident.diagnosis.signs import stops_gently
from dynident.diagnosis.targets import LEAVE_OUT, OtherReading, TrackingCase
from dynident.diagnosis.tracking import TrackedDrives, TrackingScene, take_tracking, track
from dynident.dynamics.idim import Idim
from dynident.instants.squares import KEPT_ROWS, average_errors
from dynident.recording.prepare import Samples
from dynident.regression.rests import rests_long


def follows_law(idim: Idim, law: Controller, logs: Sequence[Samples]) -> bool:
    """Whether the doctor can look at some logs without torques.

    Their law has to be known instant by instant, their targets logged, and the robot fixed, with
    inertials in its file.
    """
    robot = idim.robot
    return (
        not robot.floating
        and not robot.contacts
        and robot.has_nominal
        and law.n == robot.n
        and not law.states
        and law.compensation == "none"
        and bool(np.all(law.D[:, QREF] != 0.0))
        and all(log.qref is not None and log.q.shape[1] == robot.n for log in logs)
    )


@limit_to_one_thread
def examine_encoders(
    idim: Idim,
    law: Controller,
    logs: Sequence[Samples],
    held_out: Sequence[Samples] = (),
    bias: Sequence[float] | None = None,
    thorough: bool = False,
) -> tuple[tuple[Finding, ...], ...]:
    """Find what is wrong with some logs of encoders, each alone and then beside the others.

    Parameters
    ----------
    law : Controller
        That of the robot's drives, as it is told.
    held_out : sequence of Samples
        Logs that stand beside the others.
    bias : sequence of float, optional
        What the encoders are known to read at zero [rad or m].
    thorough : bool
        Ask also for signs and orders of joints that are explained well, and for more than one
        thing.

    Returns
    -------
    tuple of tuple of Finding
        One each of the logs, the most telling first; none where joints rest long (`rests_long`).
    """
    zero = -np.array(bias or np.zeros(idim.robot.n))
    every = (*logs, *held_out)
    scenes = {
        k: take_tracking(idim, law, log).moved(zero, zero)
        for k, log in enumerate(every)
        if not rests_long(log)
    }
    found: list[tuple[Finding, ...]] = [()] * len(logs)
    for k in sorted(scenes.keys() & range(len(logs))):
        stuck, scene = find_stuck_encoders(scenes[k])
        findings, beside = [*stuck], tuple(own for at, own in scenes.items() if at != k)
        for _ in range(limit.ROUNDS if thorough else 1):
            told = explain(scene, (), thorough) or explain(scene, beside, thorough)
            if told is None:
                break
            finding, scene, beside = told
            findings.append(finding)
        scenes[k] = scene
        found[k] = tuple(findings)
    return tuple(found)


def find_stuck_encoders(scene: TrackingScene) -> tuple[list[Finding], TrackingScene]:
    """Encoders that stand still while their targets move on, and the log without these rows.

    A joint that is held, or sticks, stops and starts gently; an encoder does not.
    """
    log, found = scene.log, []
    assert log.qref is not None
    for j in np.flatnonzero(scene.asked).tolist():
        for run in log.runs:
            q, target = log.measured[slice(*run), j], log.qref[slice(*run), j]
            first, length = find_longest_run(q)
            last = first + length
            goes_on = np.ptp(target[first:last]) > limit.GOES_ON * np.ptp(target) > 0.0
            if length < max(limit.RUN, limit.HELD_TIME * log.rate) or not goes_on:
                continue
            if stops_gently(q, first, last, np.array([0, len(q)])):
                continue
            start, stop = ((run[0] + at) / log.rate for at in (first, last))
            what = (
                f"the position of {scene.names[j]} stands still from {start:.3g} to {stop:.3g} s "
                "while its target goes on"
            )
            error = 100.0 * track([scene]).mean
            found.append(Finding(log.name, "stuck", what, LEAVE_OUT, error, error))
            scene = scene.without(start, stop)
    return found, scene


def explain(
    scene: TrackingScene, beside: tuple[TrackingScene, ...], thorough: bool
) -> tuple[Finding, TrackingScene, tuple[TrackingScene, ...]] | None:
    """The reading that explains a log best, alone or beside others, where it is clearly better."""
    now, apart = track([scene, *beside]), None
    own = np.concatenate([track([each]).errors for each in (scene, *beside)])
    if beside:
        apart = average_errors(own)
        joint = np.any(now.errors >= limit.JOINT_APART * np.maximum(own, limit.SOUND))
        if not joint and now.mean < limit.APART * apart:
            return None
    elif now.mean < limit.SOUND and not np.any(now.errors > limit.DOUBTFUL):
        return None
    poor = np.flatnonzero(now.errors[: scene.n] > limit.DOUBTFUL).tolist()
    bad = frozenset(range(scene.n) if thorough else poor)
    case = TrackingCase(scene, beside, now, bad, own)
    told = list(list_explanations(case, apart))
    if not told:
        return None
    costs = [left.mean * limit.TIED**each.suspicion.freedom for each, left in told]
    order = sorted(
        range(len(told)),
        key=lambda k: (costs[k] > limit.TIED * min(costs), told[k][0].suspicion.freedom, costs[k]),
    )
    (each, left), *others = (told[k] for k in order)
    suspicion = each.suspicion
    rest = [(one.suspicion.what, errors.mean) for one, errors in others]
    other = next((f"{what} ({100.0 * mean:.3g} %)" for what, mean in rest), "")
    finding = state_reading(scene.log.name, suspicion, now.mean, left.mean, other)
    finding = replace(finding, against=" and ".join(own.log.name for own in beside))
    return finding, each.log, beside if each.beside is None else each.beside


def list_explanations(
    case: TrackingCase, apart: float | None
) -> Iterator[tuple[OtherReading, TrackedDrives]]:
    """Readings under which drives leave clearly less, with what they leave."""
    count = np.sum(case.log.kept, axis=0)
    for diagnosis in DIAGNOSES.values():
        for each in diagnosis.follow(case):
            others = case.beside if each.beside is None else each.beside
            kept = np.sum(each.log.kept, axis=0)
            if np.sum(kept) < KEPT_ROWS * np.sum(count) or np.any((kept == 0) & (count > 0)):
                continue
            left, before = track([each.log, *others]), case.now.errors
            if not is_clearly_better(left.errors, before, each.suspicion, apart, False):
                continue
            if not settles_contradictions(left.errors, before, apart, each.suspicion.freedom):
                continue
            # the file's wrists are never quite right
            wrist = each.suspicion.diagnosis == "torque scale of a joint"
            if wrist and not np.any(left.errors <= limit.CLEAR_SCALE * before):
                continue
            if each.by_file:  # drives have to explain the log clearly worse without its bodies
                without = track([replace(each.log, factor=np.zeros(case.n))])
                own = average_errors(left.errors[: case.n])
                if own > limit.TOLD_BY_BODIES * without.mean:
                    continue
            yield each, left
