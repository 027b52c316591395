"""What position servos make of their targets: limits of their speed, sides of a lost motion."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.jit import entry
from dynident.dynamics.inverse import evaluate_inverse_dynamics
from dynident.simulation.loop import Loop

FLANK_SHARE, LEAST_LOAD = 0.02, 1e-4
"""Load over which a lost motion changes its side, as a share of the largest, and at least [Nm]."""


@entry
def limit_speeds(q, period, speed, out, by):  # type: ignore[no-untyped-def]
    """Mean over each sample of targets that run after held ones q at a speed, and its derivative.

    Within a sample they move from where they are by ``speed`` until they are there.
    """
    for j in range(q.shape[1]):
        at, moved = q[0, j], 0.0  # where they are, and its derivative by the speed
        reach = speed[j] * period
        for k in range(len(q)):
            gap = q[k, j] - at
            if abs(gap) >= reach:
                side = np.sign(gap)
                out[k, j], by[k, j] = at + 0.5 * side * reach, moved + 0.5 * side * period
                at, moved = at + side * reach, moved + side * period
            else:
                share = abs(gap) / reach
                out[k, j] = q[k, j] - 0.5 * gap * share
                by[k, j] = share * (moved + 0.5 * gap / speed[j])
                at, moved = q[k, j], 0.0


def slow_targets(loop: Loop) -> tuple[Array, Array]:
    """Positions of a loop's targets within their speeds, and derivatives by these: none or all."""
    speed, q = loop.controller.speed_limit, np.array(loop.reference.q, order="C")
    if not np.any(np.isfinite(speed)):
        return q, np.zeros((0, q.shape[1]))
    out, by = np.empty_like(q), np.empty_like(q)
    limit_speeds(q, 1.0 / loop.rate, np.where(np.isfinite(speed), speed, 1e9), out, by)
    return out, by


def find_reading_offsets(loop: Loop) -> Array:
    """What encoders read beside the drives' positions behind a lost motion, from the start on."""
    width = loop.controller.backlash
    if not np.any(width > 0.0):
        return np.zeros((loop.samples - loop.lead, len(width)))
    return np.asarray(-0.5 * width * find_flanks(loop)[loop.lead :])


def find_flanks(loop: Loop) -> Array:
    """Smooth sign of the load on each joint's lost motion at its targets, shape (samples, n).

    A light link behind a drive whose rotor is most of the inertia lies on the flank on which its
    weight presses, but for the moment in which it crosses over: it is where the drive is less half
    the width times this sign. What the bodies of the robot's file weigh at the targets decides; a
    joint that bears no weight has none.
    """
    idim = loop.idim
    q, _ = slow_targets(loop)
    still = np.zeros_like(q)
    load = evaluate_inverse_dynamics(idim.tree, idim.robot.nominal, q, still, still)
    scale = np.maximum(FLANK_SHARE * np.max(np.abs(load), axis=0), LEAST_LOAD)
    return np.asarray(np.tanh(load / scale))
