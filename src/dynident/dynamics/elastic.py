"""Robots with springs in their joints: what loads the links, what bends the joints."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.idim import Idim
from dynident.dynamics.springs import BRISTLES, EXPECTED, RISING, SpringColumn
from dynident.friction.hysteresis import bend_bristles
from dynident.robot.model import HYSTERESIS

Motion = tuple[Array, Array, Array]
"""q, dq, ddq."""
REPETITIONS, STILL = 3000, 1e-9
"""Of what bends springs that are not linear, at most, and the change of it that is none."""


def evaluate_links(
    idim: Idim, known: Array | None, theta: Array, motion: Motion, deflection: Array | None
) -> Array:
    """Rows of a full set of parameters without what acts on motors, which is in none of links.

    Springs count where there is a deflection.
    """
    own = np.array(theta)
    for k, column in enumerate(idim.structure.linear_columns, idim.inertial):
        if isinstance(column, SpringColumn):
            own[k] *= deflection is not None
        elif column.friction is None or not idim.frictions[column.friction].link:
            own[k] = 0.0
    if known is not None:
        known = known[:, [gear.number - 1 for gear in idim.gears]]
    return idim.torque(own, *motion, conditions=Conditions(known=known, deflection=deflection))


def bend_joints(idim: Idim, theta: Array, motion: Motion, rate: float) -> Array:
    """Deflections of joints along one period of a motion of the links, in which a robot is flat.

    ``K delta + D ddelta + offs`` is the load of a link, frequency by frequency, less what a cubic
    stiffness and bristles take, which is found by repetition. Encoders are without lag and scale.
    After the last sample of the motion comes its first. What is found, shape (5 + bristles,
    samples, n), is as `dynident.dynamics.conditions.Conditions` has it: motors less links, two
    derivatives, itself and its speed once more [rad or m], and how bristles are bent.
    """
    samples, n = len(motion[0]), idim.robot.n
    loads = evaluate_links(idim, None, theta, motion, None)
    w = 2j * np.pi * np.fft.rfftfreq(samples, 1.0 / rate)
    found = np.zeros((idim.structure.signals, samples, n))
    for gauge in idim.robot.gauges:
        if "K" not in gauge.terms:
            continue
        own = {term: theta[idim.names.index(f"{term}{gauge.place + 1}")] for term in gauge.terms}
        load = loads[:, idim.robot.dof - n + gauge.place] - own.get("offs", 0.0)
        bent, bristles = bend_periodically(load, own, gauge.slips, rate)
        for k in range(3):
            found[k, :, gauge.place] = np.fft.irfft(np.fft.rfft(bent) * w**k, samples)
        found[BRISTLES : BRISTLES + len(bristles), :, gauge.place] = bristles
    found[[EXPECTED, RISING]] = found[:2]
    return found


def bend_periodically(
    load: Array, own: Mapping[str, float], slips: tuple[float, ...], rate: float
) -> tuple[Array, Array]:
    """What bends a spring of such terms along one period of a load.

    Its deflection, and how its bristles are bent, shape (bristles, samples). Springs stiffen
    between none and twice `more` beside K, so that each repetition is nearer.
    """
    damping = 2j * np.pi * np.fft.rfftfreq(len(load), 1.0 / rate) * own["D"]
    torques = np.array([own[symbol] for symbol, _ in zip(HYSTERESIS, slips)])
    cubic, last = own.get("Kc", 0.0), np.zeros(len(slips))
    delta, bristles = np.zeros(len(load)), np.zeros((len(slips), len(load)))
    for _ in range(REPETITIONS):
        more = np.sum(torques / slips) + 1.5 * max(cubic, 0.0) * np.max(delta**2)
        taken = cubic * delta**3 + torques @ bristles - more * delta
        bent = np.fft.rfft(load - taken) / (own["K"] + more + damping)
        before, delta = delta, np.fft.irfft(bent, len(load))
        bristles = bend_bristles(slips, np.append(delta[-1], delta), last)[:, 1:]
        last = bristles[:, -1]
        if np.max(np.abs(delta - before)) <= STILL * np.max(np.abs(delta)):
            return delta, bristles
    raise ComputationError("no deflection along this motion bears the load of its link")
