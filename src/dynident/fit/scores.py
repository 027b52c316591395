"""Errors on rows that were held out, and the simplest model that is within one standard error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.fit.figures import compute_relative_error
from dynident.fit.verdict import STATES

SLIGHT = 0.01
"""Share of an error that nobody takes more parameters for."""
SURE = 2.0
"""Standard errors by which a doubtful result has to be better than trusted ones."""


@dataclass(frozen=True)
class BlockScores:
    """Errors of a model on rows that it was not fitted to, block by block."""

    squared_error: Array
    squared_torque: Array
    """`squared_error`, `squared_torque`: shape (blocks, kinds of rows). Sums over the rows of each
    block and kind: joint, or component of a floating base's wrench, or combinations that are free
    of one set of contacts."""
    relative_error: Array
    """Shape (kinds of rows,). Mean of ``|tau - tau_hat|`` over all rows, over the kind's largest
    torque; NaN of kinds without torque."""

    def percent(self, kind: int | None = None) -> tuple[float, float]:
        """Held-out error of a kind of rows, or of all stacked, and its standard error [%]."""
        return jackknife_statistic(lambda kept: self._percent(kept, kind), len(self.squared_error))

    def beyond(self, other: BlockScores, kind: int | None = None) -> tuple[float, float]:
        """By how much the error exceeds that of another model on the same blocks [%].

        What makes a block hard for both does not count in the standard error.
        """
        return jackknife_statistic(
            lambda kept: self._percent(kept, kind) - other._percent(kept, kind),
            len(self.squared_error),
        )

    def count_blocks(self, kind: int) -> int:
        """In how many blocks a kind of rows has torque: an error has its own from two on."""
        return int(np.sum(self.squared_torque[:, kind] > 0.0))

    def _percent(self, kept: Integers, kind: int | None) -> float:
        columns = slice(None) if kind is None else kind
        squared, torque = self.squared_error[kept], self.squared_torque[kept]
        return compute_relative_error(
            float(np.sum(squared[:, columns])), float(np.sum(torque[:, columns]))
        )


def jackknife_statistic(statistic: Callable[[Integers], float], blocks: int) -> tuple[float, float]:
    """A statistic of all blocks, and its standard error from leaving out each in turn.

    `statistic`: of the blocks that an index array names.
    """
    every = np.arange(blocks)
    without = np.array([statistic(np.delete(every, k)) for k in range(blocks)])
    spread = (blocks - 1.0) / blocks * float(np.sum((without - without.mean()) ** 2))
    return statistic(every), float(np.sqrt(spread))


class Scored(Protocol):
    """A model that was scored: how many parameters it has, and what its verdict is."""

    @property
    def held_out(self) -> BlockScores:
        """Its errors."""

    @property
    def parameters(self) -> int:
        """That were estimated."""

    @property
    def verdict(self) -> str:
        """One of `STATES`."""


M = TypeVar("M", bound=Scored)


def select_by_verdict(candidates: Sequence[M]) -> list[M]:
    """Those with the best verdict that any has, and doubtful ones that are clearly better.

    What is refuted comes into question only where all are.
    """
    best = min(STATES.index(each.verdict) for each in candidates)
    own = [each for each in candidates if STATES.index(each.verdict) == best]
    leading = min(own, key=lambda each: each.held_out.percent()[0])

    def counts(each: M) -> bool:
        excess, std = each.held_out.beyond(leading.held_out)
        return each.verdict != STATES[-1] and excess < -SURE * std

    return [each for each in candidates if STATES.index(each.verdict) == best or counts(each)]


def choose_simplest(candidates: Sequence[M], kind: int | None) -> tuple[M, M]:
    """The simplest whose error is within one standard error of the best, and the best.

    The standard error is that of the difference on the same blocks; where that is very small, a
    share of the best error counts instead.
    """
    best = min(candidates, key=lambda each: each.held_out.percent(kind)[0])
    slight = SLIGHT * best.held_out.percent(kind)[0]
    within = [best]
    for each in candidates:
        if each is not best:
            excess, std = each.held_out.beyond(best.held_out, kind)
            within += [each] if excess <= max(slight, std) else []
    order = sorted(within, key=lambda each: (each.parameters, each.held_out.percent(kind)[0]))
    return order[0], best
