"""What the law of a known controller says of a log that has its torques and its targets.

Drives do what their controller asks for. Times and scales of torques that no bodies contradict
stand in the law's gains: ``tau = g D w`` with the targets and the motion in w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynident.control.controller import DQ, DQREF, QREF, Controller
from dynident.control.controller import Q as POSITION
from dynident.core.arrays import Array
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.diagnoses import DIAGNOSES
from dynident.diagnosis.scene import TINY, Scene
from dynident.diagnosis.suspicion import LogCase, Reading, Suspected, Suspicion
from dynident.filters.shift import shift_in_time
from dynident.instants.squares import average_errors


def find_by_law(s: Scene, law: Controller) -> Suspected | None:
    """Another clock or scale of the torques, if the law explains them then, and not before."""
    log, own = s.log, law.of_an_instant
    if log.qref is None or own is None or law.compensation != "none" or law.n != s.n:
        return None
    case = LogCase(s, np.zeros(s.base.count), np.zeros(s.n), frozenset())
    clocks = [*DIAGNOSES["rate"].suspect(case)]
    factors = [1.0, *((each.rate or log.rate) / log.rate for each in clocks)]
    told = np.concatenate([np.arange(a, b) for a, b in log.segments])
    # no law acts on the others, and of some there is no torque
    driven = [j for j in s.base.idim.robot.driven if np.any(s.tau[:, j])]
    asked = ask_for_torques(s, own, factors)[:, told][..., driven]
    tau = log.joint_torque[told][:, driven]
    size = np.sqrt(np.sum(tau**2, axis=0)) + TINY
    times = np.sum(asked * tau, axis=1) / (np.sum(asked**2, axis=1) + TINY)
    rest = np.linalg.norm(tau - times[:, None] * asked, axis=1) / size
    errors = np.array([average_errors(each) for each in rest])
    best = int(np.argmin(errors))
    if errors[best] > limit.LAWFUL:
        return None
    if errors[best] <= limit.BY_FILE * errors[0]:
        return Suspected(clocks[best - 1], float(errors[0]), float(errors[best]))
    scale = float(np.median(times[0]))
    if scale <= 0.0 or 1.0 / limit.AGREEING <= scale <= limit.AGREEING:
        return None
    scaled = Suspicion(
        "torque scale",
        f"the torques are {scale:.3g} times what the controller commands",
        replace(Reading.plain(s.n), torque=np.eye(s.n) / scale),
        freedom=1,
        advice="check their unit, gains and the side of the reduction",
    )
    before = np.linalg.norm(tau - asked[0], axis=0) / size
    return Suspected(scaled, average_errors(before), float(errors[0]))


def ask_for_torques(s: Scene, law: Controller, factors: Sequence[float]) -> Array:
    """The law's torques along a log of other clocks, shape (clocks, samples, n)."""
    log, D = s.log, law.D
    assert log.qref is not None
    late = np.full(s.n, -law.delay * log.rate)
    target, pace = np.zeros_like(log.qref), np.zeros_like(log.qref)
    for a, b in log.runs:
        target[a:b] = shift_in_time(log.qref[a:b], late)
        pace[a:b] = np.gradient(target[a:b], 1.0 / log.rate, axis=0)
    still = D[:, QREF] * target + D[:, POSITION] * log.measured
    moving = D[:, DQREF] * pace + D[:, DQ] * log.dq
    asked = [np.clip(still + factor * moving, -law.limit, law.limit) for factor in factors]
    return np.asarray(law.gain * np.array(asked))
