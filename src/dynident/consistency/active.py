"""What active constraints do to an estimate, and whether the data contradict them.

Active constraints bias an estimate where the true parameters do not satisfy them (ardiani2024,
sections III-F and III-H). Their multipliers, the increase of chi-squared and the change of the
other parameters say how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from dynident.conic.active_set import Face, linearise_constraints
from dynident.conic.cones import Cone, NonnegativeCone, SemidefiniteCone
from dynident.conic.solve import compress_to_triangle
from dynident.consistency.constraints.consistency import FLOOR
from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet
from dynident.core.arrays import Array, Booleans
from dynident.core.text import format_count
from dynident.regression.statistics import SIGNIFICANCE

BLAMED = 0.5
"""Share of the increase in torque errors above which the data are what contradicts."""
INDEPENDENT = 1e-10
"""Singular value over the largest below which active constraints repeat each other."""


@dataclass(frozen=True)
class Restriction:
    """Active constraints, what they cost and a verdict.

    Attributes
    ----------
    multipliers : tuple of (str, float)
        By name, largest first, in chi-squared per scaled unit; of a matrix its trace.
    gradient : float
        ``||A^T (A beta - b)||`` of the criterion over its scale ``||A^T b||``: zero at a free
        answer (g_IV of ardiani2024, section III-H, which asks for less than 1e-8).
    cost : float
        By how much the criterion is above its free minimum, in chi-squared of independent
        rows.
    freedom : int
        Directions that the constraints take away.
    p_value : float
        Of that cost under chi-squared with `freedom`: an upper bound where inequalities
        hold by chance.
    shift : float
        Largest change of a base parameter against the free minimum, in standard deviations
        of the latter.
    moved : str
        The base parameter that moved most.
    by_data : bool
        Whether most of the cost is in torque errors and not in the prior.
    verdict : str
    """

    multipliers: tuple[tuple[str, float], ...]
    gradient: float
    cost: float
    freedom: int
    p_value: float
    shift: float
    moved: str
    by_data: bool
    verdict: str

    @property
    def rejected(self) -> bool:
        """Whether the data, or the prior, contradict the constraints at 1 %."""
        return self.p_value < SIGNIFICANCE


def judge_active_constraints(
    admitted: FeasibleSet, point: FeasiblePoint, faces: Sequence[np.ndarray]
) -> Restriction | None:
    """What the active constraints do; None when none is active.

    Their faces are those of `ConeSolution.visible`. Zeros among the weights of an expansion are
    none of them, but stay: most weights are zero where it fits best.
    """
    faces, zeros = split_zero_weights(admitted, faces)
    if not any(np.any(face) if face.ndim == 1 else face.shape[1] for face in faces):
        return None
    solution = point.solution
    halves = [0.5 * m for m in solution.multipliers]
    active, _ = linearise_constraints(admitted.cones, point.x, faces, halves)
    A, M, free = point.A[:, ~zeros], admitted.space.matrix[:, ~zeros], point.x.copy()
    singular = np.linalg.svd(active.C[:, ~zeros], compute_uv=False)
    freedom = int(np.sum(singular > INDEPENDENT * singular[0]))
    free[~zeros] = np.linalg.lstsq(A, point.b - point.A[:, zeros] @ point.x[zeros], rcond=None)[0]
    # the rise of the criterion: what is left at its free minimum is orthogonal to A
    cost = float(np.sum((point.A @ (point.x - free)) ** 2)) / admitted.kappa**2
    p_value = float(special.chdtrc(freedom, cost))
    rows, b = point.A[: point.data], point.b[: point.data]
    errors = [float(np.sum((rows @ x - b) ** 2)) for x in (point.x, free)]
    by_data = (errors[0] - errors[1]) / admitted.kappa**2 > BLAMED * cost
    gradient = point.A.T @ (point.A @ point.x - point.b)
    scale = max(float(np.linalg.norm(point.A.T @ point.b)), np.finfo(float).tiny)
    loose = point.beta - admitted.space.matrix @ free
    std = np.linalg.norm(M @ np.linalg.pinv(A), axis=1)
    shifts = np.abs(loose) / np.maximum(admitted.kappa * std, np.finfo(float).tiny)
    worst = int(np.argmax(shifts))
    moved = admitted.space.base.names[worst]
    forces = list_multipliers(admitted.cones, faces, solution.multipliers)
    words = (
        f"chi-squared rises by {cost:.3g} with {format_count(len(forces), 'active constraint')} in "
        f"{format_count(freedom, 'direction')} (p = {p_value:.2g}); {moved} moves most, by "
        f"{shifts[worst]:.1f} sigma"
    )
    if p_value < SIGNIFICANCE:
        names = ", ".join(name for name, _ in forces[:3])
        who = "the data contradict" if by_data else "the prior, not the data, contradicts"
        verdict = f"{who} the constraints ({names}): {words}"
    else:
        verdict = f"the data agree with the constraints: {words}"
    return Restriction(
        forces, float(np.linalg.norm(gradient)) / scale, cost, freedom, p_value,
        float(shifts[worst]), moved, by_data, verdict,
    )  # fmt: skip


def split_zero_weights(
    admitted: FeasibleSet, faces: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], Booleans]:
    """Faces without the zeros of `sparse` parameters, and which unknowns these are."""
    space = admitted.space
    sparse = np.array([each.sparse for each in space.idim.parameters])
    weights = sparse if space.standard else sparse[space.base.kept]
    others, zeros = list(faces), np.zeros(len(weights), dtype=bool)
    for k, (cone, on) in enumerate(zip(admitted.cones, faces, strict=True)):
        if isinstance(cone, NonnegativeCone):
            own = on & (cone.h <= FLOOR) & ~np.any(cone.G[:, ~weights], axis=1)
            zeros |= np.any(cone.G[own], axis=0)
            others[k] = on & ~own
    return others, zeros


def list_multipliers(
    cones: Sequence[Cone], faces: Sequence[np.ndarray], multipliers: Sequence[Array]
) -> tuple[tuple[str, float], ...]:
    """Multipliers of the active constraints by name, the largest first."""
    found: list[tuple[str, float]] = []
    for cone, face, multiplier in zip(cones, faces, multipliers, strict=True):
        if isinstance(cone, SemidefiniteCone):
            if face.shape[1]:
                found.append((cone.name, float(np.trace(multiplier))))
        else:
            found += [
                (name, float(value))
                for name, on, value in zip(cone.name, face, multiplier, strict=True)
                if on
            ]
    return tuple(sorted(found, key=lambda pair: -abs(pair[1])))


def differentiate_estimate(
    admitted: FeasibleSet, point: FeasiblePoint, faces: Sequence[np.ndarray]
) -> Array:
    """K with ``dx = K A^T db``, the active constraints kept and their curvature followed."""
    return build_face(admitted, point, faces).sensitivity()


def build_face(admitted: FeasibleSet, point: FeasiblePoint, faces: Sequence[np.ndarray]) -> Face:
    """The criterion on the active constraints about an answer."""
    R, _ = compress_to_triangle(point.A, point.b)
    halves = [0.5 * m for m in point.solution.multipliers]
    active, _ = linearise_constraints(admitted.cones, point.x, faces, halves)
    return Face(R, active)
