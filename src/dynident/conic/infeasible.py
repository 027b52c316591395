"""Constraints that no point satisfies, and which of them contradict each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynident.conic.cones import (
    Cone,
    SemidefiniteCone,
    list_constraint_names,
    measure_cone_violation,
    project_on_dual_cone,
    smat,
    svec,
)
from dynident.conic.interior import INFEASIBLE, ClarabelForm, split_by_cone, to_linear_form
from dynident.core.arrays import Array
from dynident.core.errors import InfeasibleError

SATISFIED = 1e-7
"""Violation that counts as none, in scaled units."""
ROUNDING = 1e-9
"""Part of a sum that its rounding may make."""
FARTHEST = 1e6
"""Length of what is looked for, in scaled units."""


def refuse_contradiction(cones: Sequence[Cone], proof: Array | None) -> None:
    """Raise when no point satisfies all constraints.

    The proof is the solver's multipliers of Farkas' lemma, where it claims infeasibility. They are
    not relied upon.
    """
    rows, weights = separate_constraints(cones, proof)
    if is_feasible(rows):
        return
    least = 1e-6 * max(weights)
    kept = [row for row, weight in zip(rows, weights, strict=True) if weight > least]
    if is_feasible(kept):
        kept = rows
    # a deletion filter (Chinneck and Dravnieks 1991): of what is left each row is needed
    for row in list(kept):
        others = [other for other in kept if other is not row]
        if not is_feasible(others):
            kept = others
    raise InfeasibleError(list_constraint_names(kept))


def separate_constraints(
    cones: Sequence[Cone], proof: Array | None
) -> tuple[list[Cone], list[float]]:
    """Constraints with a name each, and by how much each takes part in a proof."""
    rows: list[Cone] = []
    weights: list[float] = []
    parts = [None] * len(cones) if proof is None else split_by_cone(cones, proof)
    for cone, part in zip(cones, parts, strict=True):
        matrix, vector = to_linear_form(cone)
        z = np.ones(len(vector)) if part is None else part
        if isinstance(cone, SemidefiniteCone):
            rows.append(cone)
            weights.append(float(np.linalg.norm(matrix.T @ z) + abs(vector @ z)))
            continue
        for k, name in enumerate(cone.name):
            rows.append(type(cone)((name,), cone.G[k : k + 1], cone.h[k : k + 1]))
            weights.append(float(np.linalg.norm(matrix[k] * z[k]) + abs(vector[k] * z[k])))
    return rows, weights


def is_feasible(cones: Sequence[Cone]) -> bool:
    """Whether some point satisfies all constraints; undecided counts as yes."""
    if not cones:
        return True
    n = to_linear_form(cones[0])[0].shape[1]
    form = ClarabelForm(np.eye(n), np.zeros(n), cones, np.zeros(n))
    refused = False
    for unit in (1.0, 30.0, 1000.0):
        outcome = form.solve(unit)
        if outcome is None:
            continue
        x = form.answer(outcome, unit)[0]
        if (
            np.all(np.isfinite(x))
            and max(measure_cone_violation(cone, x) for cone in cones) <= SATISFIED
        ):
            return True
        if str(outcome.status) == INFEASIBLE:
            if bound_nearest_distance(cones, np.array(outcome.z)[n:]) > FARTHEST:
                return False
            refused = True
    return not refused


def bound_nearest_distance(cones: Sequence[Cone], proof: Array) -> float:
    """A distance from the origin below which no point satisfies all constraints; 0 proves nothing.

    By Farkas' lemma: with multipliers z in the dual cones, ``G x - h`` in the cones gives
    ``(G^T z) x >= h^T z``, so that a positive right-hand side asks for a long x. Of the solver's
    multipliers what is not in the dual cones is left out.
    """
    slope = np.zeros(to_linear_form(cones[0])[0].shape[1])
    least = size = 0.0
    for cone, part in zip(cones, split_by_cone(cones, proof), strict=True):
        matrix, vector = to_linear_form(cone)
        if isinstance(cone, SemidefiniteCone):
            z = svec(project_on_dual_cone(cone, smat(part)))
        else:
            z = project_on_dual_cone(cone, part)
        slope += matrix.T @ z
        least += float(vector @ z)
        size += float(np.abs(vector) @ np.abs(z))
    if least <= ROUNDING * size:
        return 0.0
    length = float(np.linalg.norm(slope))
    return least / length if length > 0.0 else np.inf
