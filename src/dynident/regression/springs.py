"""Joints with a spring, of which motor and link have an encoder each: the row of the link.

With ``h = Y_j theta - K delta - D ddelta - ...`` what is left of the torque on the link, the error
that the encoders make is ``h / K``. It is linearised about a model ``(K_0, h_0)``, a step of Gauss
and Newton: with ``deltahat = delta + h_0 / K_0``, the deflection that this model expects,

    K_0 (delta - deltahat) = Y_j theta - K deltahat - D ddelta - ... + K_0 e.

``h = 0`` by itself has the answer zero, and the deflection's noise on the wrong side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.elastic import Motion, evaluate_links
from dynident.dynamics.idim import Idim
from dynident.dynamics.springs import EXPECTED, TERMS
from dynident.filters.filters import differentiate_twice, filter_by_cutoff
from dynident.filters.outliers import filter_by_median
from dynident.recording.prepare import Samples
from dynident.robot.model import Gauge

STIFFER = 8.0
"""Times that a stiffness grows in one step where nothing bends."""
LEAST = 0.1
"""Share of a stiffness below which it says nothing of a lag."""


class Spring(NamedTuple):
    """What the row of a link's encoder is linearised about: stiffness, the encoder's lag [s]."""

    stiffness: float
    lag: float = 0.0


Springs = dict[int, Spring]
"""By joint."""


def find_deflection(idim: Idim, log: Samples, springs: Springs) -> Array | None:
    """By how much motors are ahead of links with an encoder of their own, shape (4, samples, n).

    Filtered as the positions are, with its first two derivatives; the last is what is expected of
    it, which is nothing yet. Encoders that lag are led by as much. None where no link has one.
    """
    known = [(j, log.wrenches[name]) for j, name in idim.structure.bent if name in log.wrenches]
    if not known:
        return None
    found, rate = np.zeros((4, *log.measured.shape)), log.rate
    for j, link in known:
        lag = springs[j].lag if j in springs else 0.0
        for start, stop in log.runs:
            own, hz = slice(start, stop), (log.position_hz[j],)
            ahead = filter_by_median(log.measured[own, j : j + 1] - link[own], log.median)
            bent = filter_by_cutoff(ahead, hz, rate)
            if lag:  # q(t + T) by its derivatives
                moved = filter_by_cutoff(filter_by_median(link[own], log.median), hz, rate)
                speed, rise = differentiate_twice(moved, rate)
                jerk = differentiate_twice(speed, rate)[1]
                bent = bent - lag * (speed + lag * (rise / 2.0 + lag * jerk / 6.0))
            found[:3, own, j : j + 1] = bent, *differentiate_twice(bent, rate)
    return found


def begin_springs(
    idim: Idim, log: Samples, motion: Motion, deflection: Array, tau: Array, theta: Array
) -> tuple[Springs, Array]:
    """First springs by joint, of encoders that are not led yet, and the full set with these.

    The deflection is explained by the torque on the link, of a full set of parameters along the
    motion of the motors, or, of a set without bodies, by the motor's less its rotor and friction,
    beside the terms of the spring.
    """
    found, (q, dq, ddq), theta = {}, motion, np.array(theta)
    first = dq.shape[1] - idim.robot.n
    inside = np.concatenate([np.arange(*run) for run in log.segments])
    loads = evaluate_links(idim, log.known, theta, motion, None)
    for gauge, rows in list_springs(idim, log):
        j = gauge.place
        bent, at, speed = deflection[:, :, j], q[:, q.shape[1] - idim.robot.n + j], dq[:, first + j]
        load, columns = loads[:, rows.start], []
        if not np.any(load):
            load, columns = tau[:, first + j], [speed, np.sign(speed), ddq[:, first + j]]
        terms = [term for term in gauge.terms if term not in ("K", "D")]
        X = np.column_stack(
            [load, *(TERMS[term].column(bent, at, speed) for term in terms), *columns]
        )
        size = np.sqrt(np.mean(X[inside] ** 2, axis=0)) + np.finfo(float).tiny
        values, *_ = np.linalg.lstsq(X[inside] / size, bent[0, inside], rcond=None)
        own = dict(zip(("K", *terms), (values / size).tolist(), strict=False))
        usual = np.std(bent[0, inside]) / np.std(load[inside])
        compliance = own.pop("K")
        stiffness = float(1.0 / (compliance if compliance > 0.0 else usual))
        found[j] = Spring(stiffness, own.get("KT", 0.0))
        for term, value in own.items():
            theta[idim.names.index(f"{term}{j + 1}")] = stiffness * value
    return found, theta


def list_springs(idim: Idim, log: Samples) -> list[tuple[Gauge, slice]]:
    """Links' encoders that a log has, and their rows."""
    every = ((gauge, rows) for gauge, rows in idim.robot.sensed if "K" in gauge.terms)
    return [(gauge, rows) for gauge, rows in every if gauge.name in log.wrenches]


def step_springs(idim: Idim, log: Samples, theta: Array, before: Springs, step: bool) -> Springs:
    """The springs of a full set; with `step` those to go on with, where it was found about others.

    A step in K is one in the compliance, of which the deflection is a linear function:
    ``1 / K = (2 - K_found / K_0) / K_0``.
    """
    found = {}
    for gauge, _ in list_springs(idim, log):
        own = {term: theta[idim.names.index(f"{term}{gauge.place + 1}")] for term in gauge.terms}
        old = before[gauge.place].stiffness
        stiffness = own["K"] if own["K"] > 0.0 else old
        if step:
            stiffness = old / max(2.0 - own["K"] / old, 1.0 / STIFFER)
        lag = before[gauge.place].lag
        if "KT" in own and own["K"] > LEAST * old:
            lag = own["KT"] / own["K"]
        found[gauge.place] = Spring(float(stiffness), float(lag))
    return found


def put_spring_torques(
    idim: Idim, log: Samples, theta: Array, motion: Motion, deflection: Array, springs: Springs,
    tau: Array,
) -> None:  # fmt: skip
    """Put into deflections what a full set expects of them, and the rows' right-hand sides.

    Those are ``K_0 (delta - deltahat)``, delta with what the encoder's lag makes of it.
    """
    theta = np.array(theta)
    lead = np.zeros(deflection.shape[1:])
    for gauge, _ in list_springs(idim, log):
        j, spring = gauge.place, springs[gauge.place]
        theta[idim.names.index(f"K{j + 1}")] = spring.stiffness
        lead[:, j] = spring.lag * motion[1][:, motion[1].shape[1] - idim.robot.n + j]
    deflection[EXPECTED] = deflection[0] + lead
    left = evaluate_links(idim, log.known, theta, motion, deflection)
    for gauge, rows in list_springs(idim, log):
        stiffness = springs[gauge.place].stiffness
        deflection[EXPECTED, :, gauge.place] += left[:, rows.start] / stiffness
        tau[:, rows.start] = -left[:, rows.start]
