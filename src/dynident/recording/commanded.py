"""Torque that the drives' own law makes, for logs of positions and targets alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import NotNegatives, Options, Positives, broadcast_to_joints
from dynident.core.schema import Number
from dynident.filters.filters import differentiate_twice
from dynident.recording.recording import COMMANDED, Recording

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
    law_kd: Annotated[NotNegatives, "damping of that law [Nm s/rad or N s/m]"] = 0.0
    law_delay: Annotated[
        Annotated[Number, Field(ge=0.0, le=LONGEST)] | None,
        "by which that law has its targets late [s]; `identify` finds it by default",
    ] = None


def command_torque(recording: Recording, law: DriveLaw) -> Recording:
    """A log without torques with those that the drives' law makes of targets and positions.

    Targets are held from one sample to the next. A law with `law_delay` None is taken as without.

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
    late = rate * (law.law_delay or 0.0)
    tau = np.zeros(recording.q.shape)
    for start, stop in recording.segments:
        run = slice(start, stop)
        q = np.asarray(recording.q[run])
        dq = differentiate_twice(q, rate)[0] if recording.dq is None else recording.dq[run]
        tau[run] = kp * (hold_late(recording.qref[run], late) - q) - kd * dq
        if recording.dqref is not None:
            tau[run] += kd * hold_late(recording.dqref[run], late)
    return replace(recording, tau=tau, torque=COMMANDED)


def hold_late(target: Array, late: float) -> Array:
    """What a drive has at each sample of targets that come so many samples late.

    Held targets are steps, of which a drive has the mean over a sample's time before it: a share
    of two.
    """
    target = np.asarray(target)
    whole = int(late)
    here, before = (target[np.maximum(np.arange(len(target)) - whole - back, 0)] for back in (0, 1))
    return np.asarray(here + (late - whole) * (before - here))
