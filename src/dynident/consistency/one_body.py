"""One body nearest to a fit of its inertial parameters, and what the fit leaves open of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.conic.active_set import Certificate
from dynident.conic.cones import Definite
from dynident.conic.solve import solve_cone_problem
from dynident.consistency.constraints.consistency import FLOOR, scale_pseudo_inertia
from dynident.consistency.draws import (
    Normal,
    draw_within_cones,
    factor_covariance,
    project_into_cones,
)
from dynident.core.arrays import Array
from dynident.core.inertia import PSEUDO_INERTIA_BASIS


class NearestBody(NamedTuple):
    """A body that can exist."""

    phi: Array
    """Shape (10,)."""
    draws: Array
    """Of what the fit leaves open, shape (draws, 10)."""
    certificate: Certificate
    """That none is nearer than phi."""


def find_nearest_body(
    rows: Array, target: Array, x: Array, covariance: Array, unit: Array, draws: int, seed: int
) -> NearestBody:
    """The body nearest to a fit, draws of what it leaves open, and the proof of the first.

    Parameters
    ----------
    rows, target : ndarray, shapes (rows, unknowns) and (rows,)
        Whitened; the first ten unknowns are those of the body.
    x, covariance : ndarray, shapes (unknowns,) and (unknowns, unknowns)
        Their fit without cones.
    unit : ndarray, shape (10,)
        Sizes of the body's parameters.
    """
    count = len(x)
    whole = np.concatenate([unit, np.ones(count - 10)])
    norms = np.linalg.norm(rows[:, 10:], axis=0)
    # what is beside the body has no unit of its own: its columns get the length one
    whole[10:] = 1.0 / np.maximum(norms, 1e-300)
    basis = np.zeros((count, 4, 4))
    basis[:10] = scale_pseudo_inertia(unit[:, None, None] * PSEUDO_INERTIA_BASIS, unit[0])
    cone = Definite("pseudo-inertia of the load", basis, FLOOR * np.eye(4))
    solution = solve_cone_problem(rows * whole, target, [cone])
    alone = Definite(cone.name, basis[:10], cone.floor)
    factor = factor_covariance(covariance[:10, :10]) / unit[:, None]
    inside = project_into_cones([alone], solution.x[:10], np.ones(10))
    mean: Array = np.asarray(np.linalg.lstsq(factor, x[:10] / unit - inside, rcond=None)[0])
    found = draw_within_cones(
        Normal(inside, factor, mean), [alone], draws, np.random.default_rng(seed)
    )
    return NearestBody(solution.x[:10] * unit, found.x * unit, solution.certificate)
