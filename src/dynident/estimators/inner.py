"""The linear problem inside each iteration, and its free form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dynident.core.arrays import Array
from dynident.core.factors import System


class InnerSolver(Protocol):
    """Solves ``min ||A beta - b||^2`` over what is admitted."""

    def __call__(self, system: System) -> Array:
        """Base parameters that fit a system best."""
        ...

    @property
    def penalty(self) -> float:
        """What the prior adds to the criterion at the last answer."""
        ...


class FreeSolver:
    """All parameters are admitted.

    Parameters
    ----------
    refuse : callable, optional
        Raises a `ComputationError` on a system that has no answer.
    rcond : float, optional
        Of the least-squares solution; see `System.solve`.
    """

    penalty = 0.0

    def __init__(
        self, refuse: Callable[[System], None] | None = None, rcond: float | None = None
    ) -> None:
        self._refuse, self._rcond = refuse, rcond

    def __call__(self, system: System) -> Array:
        """Least squares."""
        if self._refuse is not None:
            self._refuse(system)
        return system.solve() if self._rcond is None else system.solve(self._rcond)
