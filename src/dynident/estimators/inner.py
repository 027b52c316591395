"""The linear problem inside each iteration: least squares, free or constrained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dynident.admissible import Admissible, Held
from dynident.factors import System
from dynident.inertia import Array


class Inner(Protocol):
    """Solves ``min ||A beta - b||^2`` over what is admitted."""

    def __call__(self, system: System) -> Array:
        """Base parameters that fit a system best."""
        ...

    @property
    def penalty(self) -> float:
        """What the last answer pays beside its errors: the prior's share."""
        ...


class Free:
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


class Constrained:
    """An admissible set, with the last answer as a warm start of the next.

    Parameters
    ----------
    admissible : Admissible
    """

    def __init__(self, admissible: Admissible) -> None:
        self._admissible = admissible
        self._held: Held | None = None

    def __call__(self, system: System) -> Array:
        """The cone problem's answer."""
        self._held = self._admissible.solve(system, self._held)
        return self._held.beta

    @property
    def held(self) -> Held:
        """The last answer."""
        assert self._held is not None
        return self._held

    @property
    def penalty(self) -> float:
        """Of the prior."""
        return 0.0 if self._held is None else self._held.penalty
