"""What a search sees of a closed chain: passive joints, their limits, and where the chain ends."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dynident.core.arrays import Array
from dynident.excitation.limits import Limits
from dynident.robot.closure import Closure

AWAY = 0.1
"""How far from singular motions are, over how far the chain is as it is assembled."""
NO_LIMIT = np.inf


class PassiveJoints:
    """Passive joints along a motion, as constraints of a search, instant by instant.

    Their positions, speeds and accelerations where these are limited, then how far from singular
    the chain is.
    """

    def __init__(self, closure: Closure, limits: Limits, instants: int) -> None:
        self.closure, self.limits, self.instants = closure, limits, instants
        passive = closure.passive
        self.limited = [
            passive[np.isfinite(limits.of_order(order)[1][passive])] for order in range(3)
        ]

    @cached_property
    def least(self) -> float:
        """How far from singular motions have to be."""
        return AWAY * float(self.closure.measure_distance(self.closure.start[None])[0])

    @cached_property
    def bounds(self) -> list[Array]:
        """Lower and upper ends of all rows, and their units."""
        low, high = (
            np.concatenate([limits[own] for limits, own in zip(ends, self.limited, strict=True)])
            for ends in zip(*(self.limits.of_order(order) for order in range(3)), strict=True)
        )
        low, high = np.append(low, self.least), np.append(high, NO_LIMIT)
        unit = np.append(0.5 * (high[:-1] - low[:-1]), self.least)
        return [np.tile(each, self.instants) for each in (low, high, unit)]

    def follow(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
        """The motion of all joints by that of the driven ones."""
        whole = np.where(self.closure.robot.passive, self.closure.start, q)
        return self.closure.follow(whole, dq, ddq, "the trajectory")

    def watch(self, q: Array, dq: Array, ddq: Array) -> tuple[Array, list[Array]]:
        """Values of all rows, and their slopes by the driven joints' motion.

        Shapes (instants * rows,), and (instants, rows, n) each.
        """
        G, D, E, B, _, share, lean = self.closure.vary(q, dq, ddq)
        self._turn, none = G, np.zeros_like(G)
        values = [each[:, own] for each, own in zip((q, dq, ddq), self.limited, strict=True)]
        every = ((G, D, E), (none, G, B), (none, none, G))
        slopes = [
            np.concatenate(
                [each[:, own] for each, own in zip(by, self.limited, strict=True)]
                + [lean[:, None] if k == 0 else np.zeros_like(lean[:, None])],
                axis=1,
            )
            for k, by in enumerate(every)
        ]
        return np.hstack([*values, share[:, None]]).ravel(), slopes

    def pull(self, slope: Array) -> Array:
        """Slopes by positions as those by the driven joints', at the states that were watched."""
        return np.asarray(np.einsum("tj,tjk->tk", slope, self._turn))
