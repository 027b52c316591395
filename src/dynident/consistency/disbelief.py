"""Which links a log takes far from the robot file, though the file is believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet, invert_criterion
from dynident.core.inertia import to_pseudo_inertia

FAR = 1.7
"""How many times the file's a body has to be in some way, or one over so many."""
INSISTED, MUCH = 2.0, 200.0
"""By how much the criterion has to rise, in noise variances, with a body as in the file: where its
mass is far off, and where only its moments are."""


@dataclass(frozen=True)
class Disbelief:
    """A link that is not that of the robot file.

    Its mass is so many times that of the file, and that of its moments (a direction's) which is
    farthest, `most`.
    """

    body: int
    mass: float
    most: float

    @property
    def heavy_or_light(self) -> bool:
        """Whether already its mass is far from that of the file."""
        return is_far_from_one(self.mass)


def find_disbelieved_bodies(admitted: FeasibleSet, point: FeasiblePoint) -> tuple[Disbelief, ...]:
    """Bodies far from the file's, which the log determines.

    With body k held at its centre the criterion would rise by ``d^T (P_k H^-1 P_k^T)^-1 d``, in
    units of ``kappa^2``, ``d = P_k theta - t_k``, constraints aside: nothing where the other bodies
    can do the same. How far it is, the eigenvalues of ``J0^-1 J`` say, which depend neither on
    units nor on the frame.
    """
    prior, space = admitted.prior, admitted.space
    if point.theta is None or not space.standard or prior.empty:
        return ()
    belief, found = prior.belief, []
    rows, target = prior.rows(len(space.unit))
    away = rows @ point.theta - target
    scaled = (rows * space.unit) @ invert_criterion(point)
    for i, k in enumerate(belief.bodies):
        own = slice(10 * i, 10 * i + 10)
        spread = scaled[own] @ scaled[own].T
        rise = float(away[own] @ np.linalg.pinv(spread, hermitian=True) @ away[own])
        rise /= admitted.kappa**2
        now = to_pseudo_inertia(point.theta[10 * k : 10 * k + 10])
        inflated = belief.inflated[i]
        ratios = np.linalg.eigvals(
            np.linalg.solve(inflated, now + inflated - belief.centre[i])
        ).real
        most = float(max(ratios, key=lambda ratio: abs(np.log(max(ratio, 1e-9)))))
        mass = float(now[3, 3] / inflated[3, 3])
        if (is_far_from_one(mass) and rise > INSISTED) or (is_far_from_one(most) and rise > MUCH):
            found.append(Disbelief(k, mass, most))
    return tuple(found)


def is_far_from_one(ratio: float) -> bool:
    """Whether a ratio is beyond `FAR`, or below one over it."""
    return not 1.0 / FAR < ratio < FAR
