"""Robots with springs in their joints: what loads the links, what bends the joints."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.idim import Idim
from dynident.dynamics.springs import EXPECTED, SpringColumn

Motion = tuple[Array, Array, Array]
"""q, dq, ddq."""


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

    ``K delta + D ddelta + offs`` is the load of a link, frequency by frequency. Encoders are
    without lag and scale, springs linear.

    Parameters
    ----------
    theta : ndarray, shape (parameters,)
        A full set.
    motion : (q, dq, ddq)
        Of the links, shapes (samples, nq), (samples, dof) and (samples, dof): after its last
        sample comes its first.
    rate : float
        [Hz]

    Returns
    -------
    ndarray, shape (4, samples, n)
        As `dynident.dynamics.conditions.Conditions` has it: motors less links, two derivatives,
        and itself once more [rad or m].
    """
    samples, n = len(motion[0]), idim.robot.n
    loads = evaluate_links(idim, None, theta, motion, None)
    w = 2j * np.pi * np.fft.rfftfreq(samples, 1.0 / rate)
    found = np.zeros((4, samples, n))
    for gauge in idim.robot.gauges:
        if "K" not in gauge.terms:
            continue
        own = {term: theta[idim.names.index(f"{term}{gauge.place + 1}")] for term in gauge.terms}
        load = loads[:, idim.robot.dof - n + gauge.place] - own.get("offs", 0.0)
        bent = np.fft.rfft(load) / (own["K"] + w * own["D"])
        for k in range(3):
            found[k, :, gauge.place] = np.fft.irfft(bent * w**k, samples)
    found[EXPECTED] = found[0]
    return found
