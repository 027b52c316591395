"""Least radii of gyration that a log contradicts, lowered as far as it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet
from dynident.consistency.gyration import Gyration
from dynident.consistency.space import LENGTH
from dynident.core.factors import System
from dynident.regression.statistics import SIGNIFICANCE

HALVINGS = 3
"""Of a radius, before it is given up altogether."""


def lower_gyrations(
    admit: Callable[[tuple[Gyration, ...]], FeasibleSet],
    system: System,
    gyrations: tuple[Gyration, ...],
) -> tuple[FeasibleSet, FeasiblePoint, tuple[Gyration, ...]]:
    """The admitted set whose least radii of gyration a log does not contradict.

    The criterion's rise over that of bodies which are merely consistent is chi-squared with as
    many degrees of freedom as the active faces take away, at most; where it is significant, the
    radius whose constraint costs most, to first order, is halved, and at last given up. `admit`
    gives the set with such radii; beside the last one there are its best point and its radii.
    """
    least = [each.radius / 2.0**HALVINGS for each in gyrations]
    admitted = admit(gyrations)
    point = admitted.solve(system)
    while any(each.radius > 0.0 for each in gyrations):
        costs = estimate_costs(point, gyrations)
        if not np.any(costs > 0.0):
            break
        directions = [point.solution.faces[k].shape[1] for k in np.flatnonzero(costs)]
        freedom = sum(d * (d + 1) // 2 for d in directions)
        if special.chdtrc(freedom, float(np.sum(costs)) / admitted.kappa**2) >= SIGNIFICANCE:
            break  # the rise, tested as active constraints are, is convex in r^2: no more than this
        loose = tuple(
            replace(each, radius=0.0) if cost > 0.0 else each
            for each, cost in zip(gyrations, costs, strict=True)
        )
        free = admit(loose).solve(system)
        rise = (measure_criterion(point) - measure_criterion(free)) / admitted.kappa**2
        if special.chdtrc(freedom, max(0.0, rise)) >= SIGNIFICANCE:
            break
        worst = int(np.argmax(costs))
        now = gyrations[worst]
        radius = 0.5 * now.radius
        lowered = replace(
            now,
            radius=radius if radius >= least[worst] else 0.0,
            lowered=now.radius if now.lowered is None else now.lowered,
            rise=rise if now.rise is None else now.rise,
        )
        gyrations = (*gyrations[:worst], lowered, *gyrations[worst + 1 :])
        admitted = admit(gyrations)
        point = admitted.solve(system)
    return admitted, point, gyrations


def estimate_costs(point: FeasiblePoint, gyrations: Sequence[Gyration]) -> np.ndarray:
    """What each radius costs to first order: ``r^2 dC/d(r^2)``, 0 of those that are not active.

    With the multiplier ``M`` of ``J - m r^2 diag(1, 1, 1, 0) >= 0`` that is ``r^2 m tr(M_xyz)``,
    all of it in the scaled units of the cones.
    """
    costs = np.zeros(len(gyrations))
    for k, each in enumerate(gyrations):
        if each.radius > 0.0 and point.solution.faces[k].shape[1]:
            force = float(np.trace(point.solution.multipliers[k][:3, :3]))
            costs[k] = max(0.0, (each.radius / LENGTH) ** 2 * point.x[10 * k] * force)
    return costs


def measure_criterion(point: FeasiblePoint) -> float:
    """``||A x - b||^2`` of rows, prior and open directions."""
    return float(np.sum((point.A @ point.x - point.b) ** 2))
