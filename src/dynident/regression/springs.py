"""Joints with a spring: where its link is, and what the rows are linearised about.

Of a motor and a link with an encoder each there is a row of the link.

With ``h = Y_j theta - K delta - D ddelta - ...`` what is left of the torque on the link, the error
that the encoders make is ``h / K``. It is linearised about a model ``(K_0, h_0)``, a step of Gauss
and Newton: with ``deltahat = delta + h_0 / K_0``, the deflection that this model expects,

    K_0 (delta - deltahat) = Y_j theta - K deltahat - D ddelta - ... + K_0 e.

``h = 0`` by itself has the answer zero, and the deflection's noise on the wrong side.

Of a link with a torque sensor and without an encoder, it is where the model's own load has it,
``q = theta - Y_j theta / (K + D s)``, so that noise of the sensor is in no regressor. Every row
moves with it: ``dq / dK = delta / K``, ``dq / dD = ddelta / K``, along which the torques of bodies
are differentiated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.errors import InputError
from dynident.dynamics.elastic import Motion, evaluate_links
from dynident.dynamics.idim import Idim
from dynident.dynamics.springs import BRISTLES, EXPECTED, RISING, TERMS, TORQUE
from dynident.filters.filters import differentiate_twice, filter_by_cutoff
from dynident.filters.outliers import filter_by_median
from dynident.friction.hysteresis import (
    SpringCompliance,
    bend_bristles,
    bend_under_load,
    find_forgotten,
    make_passive,
)
from dynident.recording.prepare import Samples
from dynident.robot.model import HYSTERESIS, Gauge

STIFFER = 8.0
"""Times that a stiffness grows in one step where nothing bends."""
LEAST = 0.1
"""Share of a stiffness below which it says nothing of a lag."""
BEYOND = 1.5
"""Times the cutoff of rows up to which springs without a link's encoder bend."""
START = 4.0
"""Times the least stiffness that one is sought from: a resonance at twice what rows have."""
BENDS, BENDING = 60, 1e-6
"""Times that loads bend springs at most, and the change of deflections that is none."""
SAME = 1e-12
"""Range of deflections that is rounding [rad or m]."""
MOVED = 1e-4
"""Deflection over which torques of bodies are differentiated [rad or m]."""


class SpringPoint(NamedTuple):
    """What rows are linearised about.

    Stiffness, the lag of the link's encoder, that of the spring behind its torque, D / K [s], and
    the torques of its bristles where they slip.
    """

    stiffness: float
    lag: float = 0.0
    creep: float = 0.0
    bristles: tuple[float, ...] = ()


Springs = dict[int, SpringPoint]
"""By joint."""


def find_deflection(idim: Idim, log: Samples, springs: Springs) -> Array | None:
    """By how much motors are ahead of links, shape (5 + bristles, samples, n).

    Filtered as the positions are, with its first two derivatives, what is expected of it and of its
    speed, which is nothing more yet, and how bristles bend with it. Encoders that lag are led by as
    much; without a link's encoder see `bend_by_load`. None where no link has a sensor.
    """
    known = list_springs(idim, log)
    if not known:
        return None
    found, rate = np.zeros((idim.structure.signals, *log.measured.shape)), log.rate
    for gauge, _ in known:
        if gauge.kind == TORQUE:
            continue
        j, link = gauge.place, log.wrenches[gauge.name]
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
            speed, rise = differentiate_twice(bent, rate)
            found[[0, 1, 2, RISING], own, j : j + 1] = bent, speed, rise, speed
            bristles = slice(BRISTLES, BRISTLES + len(gauge.slips))
            found[bristles, own, j] = bend_bristles(gauge.slips, found[0, own, j])
    return found


def mark_remembering_rows(idim: Idim, log: Samples, deflection: Array) -> Booleans:
    """Where bristles still know how they were bent as a run began, shape (samples, rows)."""
    found = np.zeros((len(log.measured), idim.rows), dtype=bool)
    for gauge, rows in list_springs(idim, log):
        for own in (slice(*run) for run in log.runs):
            hz = (0.5 * log.filters[-1].cutoff,)  # noise goes a long way
            bent = filter_by_cutoff(deflection[0, own, gauge.place, None], hz, log.rate)[:, 0]
            found[own, rows] |= ~find_forgotten(gauge.slips, bent)[:, None]
            if found[own, rows].all():
                raise InputError(
                    f"{log.name}: {gauge.name}: bristles of {max(gauge.slips):g} never slip, "
                    f"because the spring bends by {np.ptp(bent):.2g}; give shorter ones in slip "
                    "of its [[robot.drive]]"
                )
    return found


def bend_by_load(
    idim: Idim, log: Samples, theta: Array, motors: Motion, deflection: Array, springs: Springs
) -> None:
    """Put into deflections those without a link's encoder, where loads of a full set bend springs.

    ``delta = Y_j(theta - delta) theta / (K + D s)``, again and again: below the resonance of a link
    on its spring each time is nearer, by ``omega^2 M / K``.
    """
    known = [each for each in list_springs(idim, log) if each[0].kind == TORQUE]
    for _ in range(BENDS if known else 0):
        motion, moved = add_deflection(motors, -deflection), 0.0
        loads = evaluate_links(idim, log.known, theta, motion, None)
        for gauge, _ in known:
            j, lag = gauge.place, springs[gauge.place].creep
            row = idim.robot.dof - idim.robot.n + j
            load = loads[:, row : row + 1] / springs[j].stiffness
            for own in (slice(*run) for run in log.runs):
                late = filter_by_cutoff(load[own], (find_bending_hz(log, j),), log.rate)
                speed, rise = differentiate_twice(late, log.rate)
                bent = late - lag * (speed - lag * rise)  # (1 + lag s)^-1 of what is slow
                before, size = deflection[0, own, j : j + 1], float(np.max(np.abs(bent)))
                moved = max(moved, float(np.max(np.abs(bent - before))) / (size or 1.0))
                speed, rise = differentiate_twice(bent, log.rate)
                deflection[[0, 1, 2, RISING], own, j : j + 1] = bent, speed, rise, speed
        if moved < BENDING:
            break


def find_bending_hz(log: Samples, joint: int) -> float:
    """Up to where a load bends the spring without a link's encoder: beyond all that rows have."""
    return min(log.position_hz[joint], BEYOND * log.filters[-1].cutoff)


def stay_below_resonance(
    idim: Idim, log: Samples, theta: Array, motors: Motion, springs: Springs
) -> Springs:
    """Springs without a link's encoder at least so stiff that loads bend them by ever less.

    Links resonate above what rows have, ``K_j >= omega^2 sum_k |M_jk|`` (Gershgorin), those of
    which nothing is known yet at twice that. They give way at once, next to that:
    ``D omega <= K / 2``.
    """
    found, (q, dq, ddq) = dict(springs), motors
    first = idim.robot.dof - idim.robot.n
    known = [gauge.place for gauge, _ in list_springs(idim, log) if gauge.kind == TORQUE]
    still = evaluate_links(idim, log.known, theta, motors, None) if known else np.empty(0)
    for j in known:
        faster = ddq + np.eye(ddq.shape[1])[first + j]
        load = evaluate_links(idim, log.known, theta, (q, dq, faster), None) - still
        inertia = float(np.max(np.sum(np.abs(load[:, [first + k for k in known]]), axis=1)))
        fastest = 2.0 * np.pi * find_bending_hz(log, j)
        least = inertia * fastest**2 or 1.0  # of nothing that it bears
        stiffness = max(found[j].stiffness, least) if found[j].stiffness else START * least
        found[j] = SpringPoint(stiffness, creep=min(found[j].creep, 0.5 / fastest))
    return found


def add_deflection(motion: Motion, deflection: Array) -> Motion:
    """The motion of links as that of motors, as joints with springs see it."""
    found = [np.array(each) for each in motion]
    for each, bent in zip(found, deflection, strict=False):
        each[:, each.shape[1] - bent.shape[1] :] += bent
    return found[0], found[1], found[2]


def begin_springs(
    idim: Idim, log: Samples, motion: Motion, deflection: Array, tau: Array, theta: Array
) -> tuple[Springs, Array]:
    """First springs by joint, of encoders that are not led yet, and the full set with these.

    The deflection is explained by the torque on the link, of a full set of parameters along the
    motion of the motors, or, of a set without bodies, by the motor's less its rotor and friction,
    beside the terms of the spring. One without a link's encoder has no value yet.
    """
    found, (q, dq, ddq), theta = {}, motion, np.array(theta)
    first = dq.shape[1] - idim.robot.n
    inside = np.concatenate([np.arange(*run) for run in log.segments])
    loads = evaluate_links(idim, log.known, theta, motion, None)
    for gauge, rows in list_springs(idim, log):
        j = gauge.place
        bent, at, speed = deflection[:, :, j], q[:, q.shape[1] - idim.robot.n + j], dq[:, first + j]
        if gauge.kind == TORQUE:
            found[j] = SpringPoint(0.0)
            continue
        if np.ptp(bent[0, inside]) < SAME:
            raise InputError(
                f"{log.name}: {gauge.name} and the position of its motor are one signal, and no "
                "spring bends; check their columns"
            )
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
        widths = np.array([own[term] for term in HYSTERESIS if term in own])
        bristles = make_passive(stiffness * widths)
        found[j] = SpringPoint(stiffness, own.get("KT", 0.0), bristles=bristles)
        for term, value in own.items():
            theta[idim.names.index(f"{term}{j + 1}")] = stiffness * value
    return found, theta


def list_springs(idim: Idim, log: Samples) -> list[tuple[Gauge, slice]]:
    """What a log has behind springs, and the rows of that."""
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
        lag, creep = before[gauge.place].lag, before[gauge.place].creep
        if "KT" in own and own["K"] > LEAST * old:
            lag = own["KT"] / own["K"]
        if gauge.kind == TORQUE:
            # of the deflection -D s tau / K^2 is linear in D at the last K
            creep = max(own["D"], 0.0) * (stiffness / old**2 if step else 1.0 / stiffness)
        bristles = before[gauge.place].bristles
        if gauge.slips:
            given = np.array([own["D"], *(own[term] for term in HYSTERESIS if term in own)])
            if step:  # of the deflection D / K and bristles' torques over K, too, are factors
                last = np.array([creep, *np.divide(bristles, old)])
                given = stiffness * (given / old + (1.0 - own["K"] / old) * last)
            creep, bristles = max(given[0], 0.0) / stiffness, make_passive(given[1:])
        found[gauge.place] = SpringPoint(float(stiffness), float(lag), float(creep), bristles)
    return found


def put_spring_torques(
    idim: Idim, log: Samples, theta: Array, motion: Motion, deflection: Array, springs: Springs,
    tau: Array,
) -> tuple[tuple[int, SpringCompliance], ...]:  # fmt: skip
    """Put into deflections what a full set expects of them, and the rows' right-hand sides.

    Those are ``K_0 (delta - deltahat)``, delta with what the encoder's lag makes of it. Springs
    with hysteresis bend by deltahat where they and their bristles bear what is left of the load;
    how they give way there, by row.
    """
    theta, yielding = np.array(theta), []
    lead = np.zeros(deflection.shape[1:])
    known = [each for each in list_springs(idim, log) if each[0].kind != TORQUE]
    for gauge, _ in known:
        j, spring = gauge.place, springs[gauge.place]
        theta[idim.names.index(f"K{j + 1}")] = spring.stiffness
        taken = ("D", *HYSTERESIS[: len(gauge.slips)]) if gauge.slips else ()
        for symbol in taken:  # which are found with the deflection
            theta[idim.names.index(f"{symbol}{j + 1}")] = 0.0
        lead[:, j] = spring.lag * motion[1][:, motion[1].shape[1] - idim.robot.n + j]
    deflection[EXPECTED] = deflection[0] + lead
    left = evaluate_links(idim, log.known, theta, motion, deflection)
    for gauge, rows in known:
        j, spring, row = gauge.place, springs[gauge.place], rows.start
        if gauge.slips:
            load = left[:, row] + spring.stiffness * deflection[0, :, j]
            bent, bristles, gives = bend_log(log, load, spring, gauge.slips)
            left[:, row] = spring.stiffness * (bent - deflection[0, :, j])
            deflection[RISING, :, j] = np.diff(bent, prepend=bent[0]) * log.rate
            deflection[BRISTLES : BRISTLES + len(bristles), :, j] = bristles
            yielding.append((row, gives))
        deflection[EXPECTED, :, j] += left[:, row] / spring.stiffness
        tau[:, row] = -left[:, row]
    return tuple(yielding)


def bend_log(
    log: Samples, load: Array, spring: SpringPoint, slips: tuple[float, ...]
) -> tuple[Array, Array, SpringCompliance]:
    """What bends a spring with hysteresis under a load along a log: see `bend_under_load`.

    Noise of the load that no row has would wear down what bristles remember.
    """
    bent, bristles = np.zeros(len(load)), np.zeros((len(slips), len(load)))
    slopes, kept = np.zeros((2, len(load), len(slips)))
    damping = spring.creep * spring.stiffness * log.rate
    for own in (slice(*run) for run in log.runs):
        slow = filter_by_cutoff(load[own, None], (log.filters[-1].cutoff,), log.rate)[:, 0]
        found = bend_under_load(slow, spring.stiffness, damping, spring.bristles, slips)
        bent[own], bristles[:, own], gives = found
        slopes[own], kept[own] = gives.slopes, gives.kept
    return bent, bristles, SpringCompliance(spring.stiffness, damping, slopes, kept)


def find_sway(
    idim: Idim, log: Samples, theta: Array, motion: Motion, deflection: Array, springs: Springs
) -> tuple[Array | None, Array]:
    """Derivatives of all rows by springs that say where links are, and these times their values.

    Shapes (samples, rows, k), in the order of the springs' columns, and (samples, rows): the
    torque by which links where motors are differ from those where the springs have them. None
    where no log has such.
    """
    known = [gauge.place for gauge, _ in list_springs(idim, log) if gauge.kind == TORQUE]
    columns = [own for own in idim.structure.spring_columns if own.sway is not None]
    found = np.zeros((len(log.tau), idim.rows, len(columns)))
    sized = np.zeros((len(log.tau), idim.rows))
    for column in columns if known else ():
        if column.joint not in known:
            continue
        spring = springs[column.joint]
        bent = deflection[:3, :, column.joint]
        if column.parameter.symbol == "D":
            jerk = np.zeros((len(log.tau), 1))
            for run in (slice(*ends) for ends in log.runs):
                jerk[run] = differentiate_twice(bent[2, run, None], log.rate)[0]
            bent = np.vstack([bent[1:], jerk.T])
        size = MOVED / max(float(np.max(np.abs(bent[0]))), np.finfo(float).tiny)
        sides = []
        for step in (size, -size):
            moved = np.zeros((3, len(log.tau), idim.robot.n))
            moved[:, :, column.joint] = step * bent
            moves = add_deflection(motion, moved)
            sides.append(evaluate_links(idim, log.known, theta, moves, None))
        sway = (sides[0] - sides[1]) / (2.0 * size * spring.stiffness)
        found[:, :, column.sway] = sway
        value = spring.stiffness * (spring.creep if column.parameter.symbol == "D" else 1.0)
        sized += value * sway
    return (found if known else None), sized
