"""Torque that the drives' own law makes, for logs of positions and targets alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import NotNegatives, Of, Options, Positives, broadcast_to_joints
from dynident.core.schema import Number
from dynident.filters.filters import differentiate_twice
from dynident.recording.recording import COMMANDED, Recording
from dynident.robot.model import LAW

LONGEST = 0.05
"""Delay of targets that is looked for at most [s]."""


@dataclass(frozen=True)
class DriveLaw(Options):
    """What drives do with their targets, where a log has no torques."""

    law_kp: Annotated[
        Positives | None,
        "stiffness of the drives' own law; a log without torques then has `law_kp (qref - q) + "
        "law_kd (dqref - dq)` as what was commanded [Nm/rad or N/m]",
    ] = None
    law_kd: Annotated[NotNegatives, "damping of that law [Nm s/rad or N s/m]", Of("law_kp")] = 0.0
    law_delay: Annotated[
        Annotated[Number, Field(ge=0.0, le=LONGEST)] | None,
        "by which that law has its targets late [s]; `identify` finds it by default, all else "
        "needs it",
        Of("law_kp"),
    ] = None


def command_torque(recording: Recording, law: DriveLaw, open_: bool = False) -> Recording:
    """A log without torques with those that the drives' law makes of targets and positions.

    Targets are held from one sample to the next; a `law_delay` of None is none. With `open_` the
    wrench `LAW` is beside them: by how much they fall with the delay.

    Raises
    ------
    InputError
        When the log has torques, or no targets.
    """
    if law.law_kp is None:
        return recording
    if recording.torque not in ("none", COMMANDED):
        raise InputError(f"{recording.name}: has torques; leave law_kp out, or the torque columns")
    if recording.qref is None:
        raise InputError(f"{recording.name}: has no targets (qref), which law_kp takes")
    n, rate = recording.q.shape[1], recording.rate
    kp = np.array(broadcast_to_joints(law.law_kp, n, "law_kp"))
    kd = np.array(broadcast_to_joints(law.law_kd, n, "law_kd"))
    late, made = rate * (law.law_delay or 0.0), np.zeros((2, *recording.q.shape))
    for start, stop in recording.segments:
        run = slice(start, stop)
        q = np.asarray(recording.q[run])
        dq = differentiate_twice(q, rate)[0] if recording.dq is None else recording.dq[run]
        made[0, run] = -kp * q - kd * dq
        for gain, target in ((kp, recording.qref), (kd, recording.dqref)):
            if target is not None:
                made[:, run] += gain * hold_late(target[run], late)
    wrenches = {**recording.wrenches, LAW: rate * made[1]} if open_ else recording.wrenches
    return replace(recording, tau=made[0], torque=COMMANDED, wrenches=wrenches)


def hold_late(target: Array, late: float) -> Array:
    """What a drive has at each sample of targets that come so many samples late; how it grows."""
    # held targets are steps, of which a drive has the mean over the sample before: a share of two
    places = np.arange(len(target)) - int(late)
    here, before = (np.asarray(target)[np.maximum(places - back, 0)] for back in (0, 1))
    return np.array([here + (late - int(late)) * (before - here), here - before])
