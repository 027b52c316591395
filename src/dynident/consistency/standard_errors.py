"""Error bars of links and drives: what log and prior together leave open of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dynident.consistency.feasible_set import EQUIVALENT, FeasiblePoint, FeasibleSet
from dynident.consistency.reach import Reach
from dynident.core.arrays import Array
from dynident.core.inertia import differentiate_body

OPEN = 1e-3
"""Share of a parameter in directions that neither rows nor prior see, from which it has no error
bar: nothing but the pull towards small bodies decides it."""


@dataclass(frozen=True)
class StandardErrors:
    """Standard deviations of links and drives, NaN of what neither log nor prior determines.

    Of the posterior: where the log says nothing they are those of the prior.
    """

    bodies: Array
    """Mass [kg], centre of mass [m], and inertia about it, xx xy yy xz yz zz [kg m^2], in the joint
    frame, shape (bodies, 10)."""
    drives: Array
    """Shape (standard parameters after the links',)."""


def derive_standard_errors(
    admitted: FeasibleSet, point: FeasiblePoint, reach: Reach
) -> StandardErrors | None:
    """Error bars of links and drives, by how far the scaled unknowns may be.

    None where base parameters are the unknowns.
    """
    space = admitted.space
    if point.theta is None or not space.standard:
        return None
    idim = space.idim
    unit = space.unit
    seen = find_seen_directions(admitted)
    drives = reach.measure_std(np.diag(unit)[idim.inertial :])
    drives[~seen[idim.inertial :]] = np.nan
    bodies = np.full((idim.bodies, 10), np.nan)
    for k in range(idim.bodies):
        own = slice(10 * k, 10 * k + 10)
        derivative = differentiate_body(point.theta[own]) * unit[own]
        known = ~np.any(derivative[:, ~seen[own]], axis=1)
        rows = np.zeros((10, len(unit)))
        rows[:, own] = derivative
        bodies[k, known] = reach.measure_std(rows[known])
    return StandardErrors(bodies, drives)


def find_seen_directions(admitted: FeasibleSet) -> npt.NDArray[np.bool_]:
    """Of which unknowns rows or prior say something, shape (unknowns,)."""
    # rows of `open` are unit directions times EQUIVALENT
    seen: npt.NDArray[np.bool_] = np.linalg.norm(admitted.open, axis=0) < OPEN * EQUIVALENT
    return seen
