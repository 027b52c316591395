"""The linear problem inside each iteration, over the consistent set."""

from __future__ import annotations

import numpy as np

from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet
from dynident.consistency.log_cholesky import decode, encode, find_log_parameters, jacobian
from dynident.consistency.space import Space
from dynident.core.arrays import Array
from dynident.regression.factors import System

LM_STEPS = 300
LM_DAMPING = 1e12
INSIDE = 1e-3
"""How far inside of the cones the search starts, in scaled units."""
LEAST_LOG = -16.0
"""Least logarithm, so that rounding leaves what it makes positive."""
LM_STALLED = 1e-10
"""Relative decrease of the criterion below which a step is the last."""


class Constrained:
    """An admissible set, with the last answer as a warm start of the next.

    Parameters
    ----------
    admissible : FeasibleSet
    """

    def __init__(self, admissible: FeasibleSet) -> None:
        self._admissible = admissible
        self._point: FeasiblePoint | None = None

    def __call__(self, system: System) -> Array:
        """The answer's base parameters."""
        self._point = self._answer(system)
        return self._point.beta

    def _answer(self, system: System) -> FeasiblePoint:
        return self._admissible.solve(system, self._point)

    @property
    def point(self) -> FeasiblePoint:
        """The last answer."""
        assert self._point is not None
        return self._point

    @property
    def penalty(self) -> float:
        """Of the prior."""
        return 0.0 if self._point is None else self._point.penalty


class LogCholesky(Constrained):
    """The same criterion over log-Cholesky parameters, by Levenberg-Marquardt.

    Smooth and free of constraints; an answer on the boundary of consistency is approached
    and not reached, which its certificate shows.

    Parameters
    ----------
    admissible : FeasibleSet
        With consistent bodies and drives, and no other constraints.
    """

    def __init__(self, admissible: FeasibleSet) -> None:
        super().__init__(admissible)
        self._eta: Array | None = None

    def _answer(self, system: System) -> FeasiblePoint:
        """Levenberg-Marquardt from the last answer, the first time from inside the cones'."""
        space, idim = self._admissible.space, self._admissible.space.idim
        A, b, data = self._admissible.rows(system)
        eta = self._eta
        if eta is None:
            eta = encode(idim, move_off_boundary(space, self._admissible.solve(system).x))
        x = decode(idim, eta) / space.unit
        error = A @ x - b
        cost, damping, steps = float(error @ error), 1e-3, 0
        logs = find_log_parameters(idim)
        while steps < LM_STEPS and damping < LM_DAMPING:
            steps += 1
            slope = A @ (jacobian(idim, eta) / space.unit[:, None])
            size = np.linalg.norm(slope, axis=0)
            rows = np.sqrt(damping) * np.diag(np.maximum(size, 1e-9 * size.max()))
            step = np.linalg.lstsq(
                np.vstack([slope, rows]), np.concatenate([-error, np.zeros(len(eta))]), rcond=None
            )[0]
            # an exponential that doubles says no more of the quadratic model
            trial = eta + step * min(1.0, 1.0 / max(float(np.max(np.abs(step[logs]))), 1e-12))
            trial[logs] = np.maximum(trial[logs], LEAST_LOG)
            new = A @ (decode(idim, trial) / space.unit) - b
            decrease = cost - float(new @ new)
            if decrease <= 0.0:
                damping = max(10.0 * damping, 1e-6)
                continue
            eta, error, cost, damping = trial, new, cost - decrease, 0.3 * damping
            if decrease < LM_STALLED * max(1.0, cost):
                break
        self._eta = eta
        return self._admissible.unconstrained(decode(idim, eta) / space.unit, A, b, data, steps)


def move_off_boundary(space: Space, x: Array) -> Array:
    """A consistent set a little inside of one that may lie on the boundary, in SI units."""
    x = x.copy()
    for k in range(space.idim.tree.bodies):
        x[10 * k] += INSIDE
        x[10 * k + np.array([4, 6, 9])] += 2.0 * INSIDE
    for k, parameter in enumerate(space.idim.parameters):
        if parameter.positive:
            x[k] = max(x[k], INSIDE)
    return space.value(x)
