"""What was asked of the joints, by a log: its derivatives, and as the positions were filtered."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.filters.filters import differentiate_twice, filter_by_cutoff
from dynident.recording.prepare import Samples


def differentiate_reference(log: Samples) -> tuple[Array, Array]:
    """Speed and acceleration of a log's reference: differences, but for a speed that it holds."""
    assert log.qref is not None
    dq, ddq = (np.zeros_like(log.qref) for _ in range(2))  # at rest between two runs
    for start, stop in log.runs:
        run = slice(start, stop)
        dq[run], ddq[run] = differentiate_twice(log.qref[run], log.rate)
        if log.dqref is not None:
            dq[run] = log.dqref[run]
    return dq, ddq


def filter_reference_motion(log: Samples) -> tuple[Array, Array, Array]:
    """What was asked of the joints, filtered and differentiated as the positions were.

    Of a base, of which the log does not say what was asked, the measured motion.
    """
    if log.qref is None:
        raise InputError(
            f"{log.name}: the log has no reference (qref) to make instruments of; give it the "
            "column, or take wls, ml or pc-idim-ls"
        )
    q, dq, ddq = log.q.copy(), log.dq.copy(), log.ddq.copy()
    joints = np.s_[-log.qref.shape[1] :]
    if log.asked is not None and q.shape[1] > log.qref.shape[1]:
        # it is not proper acceleration, which gravity would be taken from
        pose, twist, acceleration = log.asked.motion(np.zeros(3))
        q[:, :7], dq[:, :6], ddq[:, :6] = pose, twist, acceleration

    def smooth(signal: Array) -> Array:
        # a mean period is made of harmonics below the cutoff
        return (
            signal
            if log.averaging is not None
            else filter_by_cutoff(signal, log.position_hz, log.rate)
        )

    for start, stop in log.runs:
        run = slice(start, stop)
        q[run, joints] = smooth(log.qref[run])
        dq[run, joints], ddq[run, joints] = differentiate_twice(q[run, joints], log.rate)
        if log.derivatives == "measured" and log.dqref is not None:
            dq[run, joints] = smooth(log.dqref[run])
            ddq[run, joints] = differentiate_twice(dq[run, joints], log.rate)[0]
    return q, dq, ddq
