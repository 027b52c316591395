"""Joints with a spring, of which motor and link have an encoder each: the row of the link.

With ``h = Y_j theta - K delta - D ddelta - ...`` what is left of the torque on the link, the error
that the encoders make is ``h / K``. It is linearised about a model ``(K_0, h_0)``, Gauss and Newton's
step: with ``deltahat = delta + h_0 / K_0``, the deflection that this model expects,

    K_0 (delta - deltahat) = Y_j theta - K deltahat - D ddelta - ... + K_0 e.

``h = 0`` by itself has the answer zero, and the deflection's noise on the wrong side.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.idim import Idim
from dynident.dynamics.springs import EXPECTED
from dynident.filters.filters import differentiate_twice, filter_by_cutoff
from dynident.filters.outliers import filter_by_median
from dynident.recording.prepare import Samples


def find_deflection(idim: Idim, log: Samples) -> Array | None:
    """By how much motors are ahead of links with an encoder of their own, shape (4, samples, n).

    Filtered as the positions are, with its first two derivatives; the last is what is expected of
    it, which is nothing yet. None where no link has an encoder.
    """
    known = [(j, log.wrenches[name]) for j, name in idim.structure.bent if name in log.wrenches]
    if not known:
        return None
    found = np.zeros((4, *log.measured.shape))
    for j, link in known:
        for start, stop in log.runs:
            own = slice(start, stop)
            ahead = filter_by_median(log.measured[own, j : j + 1] - link[own], log.median)
            bent = filter_by_cutoff(ahead, (log.position_hz[j],), log.rate)
            found[:3, own, j : j + 1] = bent, *differentiate_twice(bent, log.rate)
    return found


def begin_springs(
    idim: Idim,
    log: Samples,
    motion: tuple[Array, Array, Array],
    deflection: Array,
    tau: Array,
) -> dict[int, float]:
    """A first stiffness by joint, and what it makes expect of the deflections, put into these.

    The deflection is explained by the torque on the link, of the robot file's bodies or, of a file
    without, the motor's less its rotor and friction, beside the terms of the spring.
    """
    found, (_, dq, ddq) = {}, motion
    first = dq.shape[1] - idim.robot.n
    inside = np.concatenate([np.arange(*run) for run in log.runs])
    rigid = idim.torque(idim.nominal, *motion) if idim.robot.has_nominal else None
    for gauge, _ in idim.robot.sensed:
        if "K" not in gauge.terms or gauge.name not in log.wrenches:
            continue
        j = gauge.place
        bent, speed = deflection[:, :, j], dq[:, first + j]
        others = [np.ones(len(speed)), bent[1], *([speed] if "KT" in gauge.terms else [])]
        if rigid is None:
            turning = speed + bent[1]
            rest = [turning, np.sign(turning), ddq[:, first + j] + bent[2]]
            columns = np.column_stack([tau[:, first + j], *others, *rest])
        else:
            columns = np.column_stack([rigid[:, first + j], *others])
        size = np.sqrt(np.mean(columns[inside] ** 2, axis=0)) + np.finfo(float).tiny
        values, *_ = np.linalg.lstsq(columns[inside] / size, bent[0, inside], rcond=None)
        compliance = values[0] / size[0]
        usual = np.std(bent[0, inside]) / np.std(columns[inside, 0])
        found[j] = float(1.0 / (compliance if compliance > 0.0 else usual))
        deflection[EXPECTED, :, j] = columns @ (values / size)
    return found


def expect_deflections(
    idim: Idim, theta: Array, motion: tuple[Array, Array, Array], deflection: Array
) -> tuple[Array, dict[int, float]]:
    """Deflections with what a full set expects of them, and its stiffnesses by joint."""
    q, dq, ddq = motion
    seen, found = deflection.copy(), {}
    seen[EXPECTED] = seen[0]
    left = idim.torque(theta, q, dq, ddq, conditions=Conditions(deflection=seen))
    for gauge, rows in idim.robot.sensed:
        if "K" in gauge.terms and np.any(deflection[0, :, gauge.place]):
            stiffness = float(theta[idim.names.index(f"K{gauge.place + 1}")])
            if stiffness > 0.0:
                found[gauge.place] = stiffness
                seen[EXPECTED, :, gauge.place] += left[:, rows.start] / stiffness
    return seen, found


def put_spring_torques(
    idim: Idim, deflection: Array, stiffness: dict[int, float], tau: Array
) -> None:
    """Put ``K_0 (delta - deltahat)`` into the rows of links' encoders."""
    for gauge, rows in idim.robot.sensed:
        if "K" in gauge.terms and gauge.place in stiffness:
            bent = deflection[:, :, gauge.place]
            tau[:, rows.start] = stiffness[gauge.place] * (bent[0] - bent[EXPECTED])
