"""The linear problem inside each iteration, over the consistent set."""

from __future__ import annotations

from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet
from dynident.core.arrays import Array
from dynident.core.factors import System


class ConstrainedSolver:
    """An admissible set, with the last answer as a warm start of the next."""

    def __init__(self, admissible: FeasibleSet, near: FeasiblePoint | None = None) -> None:
        self._admissible = admissible
        self._point = near

    def __call__(self, system: System) -> Array:
        """The answer's base parameters."""
        self._point = self._admissible.solve(system, self._point)
        return self._point.beta

    @property
    def point(self) -> FeasiblePoint:
        """The last answer."""
        assert self._point is not None
        return self._point

    @property
    def penalty(self) -> float:
        """Of the prior."""
        return 0.0 if self._point is None else self._point.penalty
