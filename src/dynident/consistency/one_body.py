"""One body nearest to a fit of its inertial parameters, and what the fit leaves open of it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dynident.conic.active_set import Certificate
from dynident.conic.cones import SemidefiniteCone
from dynident.conic.solve import solve_cone_problem
from dynident.consistency.constraints.consistency import FLOOR, scale_pseudo_inertia
from dynident.consistency.draws import (
    ConeRegion,
    NormalDraws,
    draw_within_cones,
    factor_covariance,
    find_region_centre,
    project_into_cones,
)
from dynident.core.arrays import Array
from dynident.core.inertia import PSEUDO_INERTIA_BASIS

RISE = 3.841
"""Of the fit's squares at an end of an interval of 95 %: the quantile of chi-squared, one degree of
freedom."""
STEEP = (1.0, 10.0, 100.0, 1e3)
"""What a standard deviation of a value counts beside barriers of order five, in steps: it ends
within one or two per cent of a standard deviation of its least."""


class NearestBody(NamedTuple):
    """A body that can exist."""

    phi: Array
    """Shape (10,)."""
    draws: Array
    """Of what the fit leaves open, shape (draws, 10)."""
    certificate: Certificate
    """That none is nearer than phi."""
    fit: NormalDraws
    """What the fit tells of ``phi / unit``, without the cone."""
    cone: SemidefiniteCone
    """Over ``phi / unit``."""
    unit: Array
    """Sizes of the parameters, shape (10,)."""


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
    cone = SemidefiniteCone("pseudo-inertia of the load", basis, FLOOR * np.eye(4))
    solution = solve_cone_problem(rows * whole, target, [cone])
    alone = SemidefiniteCone(cone.name, basis[:10], cone.floor)
    factor = factor_covariance(covariance[:10, :10]) / unit[:, None]
    inside = project_into_cones([alone], solution.x[:10], np.ones(10))
    mean: Array = np.asarray(np.linalg.lstsq(factor, x[:10] / unit - inside, rcond=None)[0])
    fit = NormalDraws(inside, factor, mean)
    found = draw_within_cones(fit, [alone], draws, np.random.default_rng(seed))
    certificate = solution.certificate
    return NearestBody(solution.x[:10] * unit, found.x * unit, certificate, fit, alone, unit)


def find_least_body(nearest: NearestBody, slope: Array) -> Array:
    """The body with the least ``slope @ phi`` of those that the fit does not reject.

    Its squares are at most `RISE` above those of the nearest: the end of a profile interval (Venzon
    and Moolgavkar 1988). Few draws come near a corner of the cone, where a small body may well be.
    """
    fit = nearest.fit
    region, count = ConeRegion.of([nearest.cone], fit), len(fit.mean)
    # |z - mean| <= r where [[r 1, z - mean], [.., r]] is definite
    ball = np.sqrt(fit.mean @ fit.mean + RISE) * np.eye(count + 1)
    ball[:count, count] = ball[count, :count] = -fit.mean
    change = np.zeros((count, 1, count + 1, count + 1))
    change[range(count), 0, range(count), count] = 1.0
    change[range(count), 0, count, range(count)] = 1.0
    within = replace(region, constant=(*region.constant, ball[None]), slope=(*region.slope, change))
    steepest = fit.factor.T @ (slope * nearest.unit)
    steepest /= np.linalg.norm(steepest)
    z = np.zeros(count)
    for steep in STEEP:
        z, _ = find_region_centre(within, fit.mean - steep * steepest, z)
    return (fit.inside + fit.factor @ z) * nearest.unit
