"""What position servos make of their targets: they follow within a speed."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.jit import entry
from dynident.simulation.loop import Loop


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
