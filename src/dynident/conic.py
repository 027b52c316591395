"""The one cone problem under every constrained estimator: ``min ||A x - b||^2``.

Clarabel finds the active constraints, in the auxiliary form ``min r^T r, R x - r = b``: a
normal matrix ``A^T A`` would square the condition number and has been seen to give wrong
answers on large robots. Newton's method on their face then takes the answer to rounding
(see `dynident.faces`), or a step from the answer so far. What the solver says of itself is
not relied upon, be it solved or almost solved: the certificate is computed from the answer,
and decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from dynident.cones import Cone, Definite, Equal, Positive, names_of, smat, svec, violation
from dynident.errors import ComputationError, InfeasibleError
from dynident.faces import Certificate, certify, polished
from dynident.inertia import Array

INFEASIBLE = "PrimalInfeasible"
TOLERANCE = 1e-9
MODERATE = 1e-7
"""Tolerance of replicates."""
UNITS = (30.0, 1000.0, 1.0)
"""Units of the step from the unconstrained minimiser, in standard deviations where rows are
whitened, tried in turn."""
CLOSER = (0.1, 0.01)
"""Units of the steps from an answer that is not accurate yet."""
LARGE = 200
"""Unknowns above which Clarabel's supernodal factorisation is the faster one."""
ACCURATE = 1e-8
"""Certificate below which an answer needs no other attempt."""
ACCEPTED = 1e-7
SINGULAR = 1e-12
"""Diagonal of R over its largest below which there is no unique answer to polish."""


@dataclass(frozen=True)
class ConeSolution:
    """The minimiser with its multipliers.

    Attributes
    ----------
    x : ndarray
    multipliers : tuple of ndarray
        One per cone: a vector for linear constraints, a symmetric matrix for `Definite`.
    faces : tuple of ndarray
        What holds the answer back, one per cone: rows that are active, as a mask; for
        `Definite` the null directions of the matrix, shape (d, k).
    certificate : Certificate
    iterations : int
        Of the interior-point method; 0 where none was needed.
    """

    x: Array
    multipliers: tuple[Array, ...]
    faces: tuple[np.ndarray, ...]
    certificate: Certificate
    iterations: int

    @property
    def worst(self) -> float:
        """The largest residual of its certificate."""
        return self.certificate.worst

    def visible(self, cones: Sequence[Cone], least: float) -> tuple[np.ndarray, ...]:
        """The faces of the multipliers that are larger than `least`."""
        shown = []
        for cone, face, multiplier in zip(cones, self.faces, self.multipliers, strict=True):
            if isinstance(cone, Definite):
                forces = np.einsum("ik,ij,jk->k", face, multiplier, face)
                shown.append(face[:, forces > least])
            else:
                shown.append(face & (np.abs(multiplier) > least))
        return tuple(shown)


def free_faces(cones: Sequence[Cone]) -> tuple[tuple[np.ndarray, ...], tuple[Array, ...]]:
    """Faces and multipliers of an answer that nothing holds back."""
    faces: list[np.ndarray] = []
    multipliers: list[Array] = []
    for cone in cones:
        definite = isinstance(cone, Definite)
        shape = cone.floor.shape if isinstance(cone, Definite) else cone.h.shape
        faces.append(np.zeros((shape[0], 0)) if definite else np.zeros(shape, dtype=bool))
        multipliers.append(np.zeros(shape))
    return tuple(faces), tuple(multipliers)


def solve_cone_problem(
    A: Array, b: Array, cones: Sequence[Cone], warm: ConeSolution | None = None
) -> ConeSolution:
    """Minimise ``||A x - b||^2`` subject to cones.

    Parameters
    ----------
    A : ndarray, shape (rows, unknowns)
        Need not have full column rank where the cones settle the rest.
    b : ndarray, shape (rows,)
    cones : sequence of Cone
    warm : ConeSolution, optional
        Answer to a problem nearby with the same cones: its face is tried first.

    Returns
    -------
    ConeSolution

    Notes
    -----
    Solved for the step away from the unconstrained minimiser: its size, and not that of
    b, is then what the tolerances refer to. Relative to ``||b||^2`` they would hide many
    standard deviations when the torque is precise.

    Raises
    ------
    InfeasibleError
        When the constraints contradict each other, with the names of those in conflict.
    ComputationError
        When no certified answer was reached.
    """
    n = A.shape[1]
    R, c = compressed(A, b)
    diagonal = np.abs(np.diag(R))
    unique = len(diagonal) == n and bool(np.all(diagonal > SINGULAR * diagonal.max(initial=0.0)))
    if unique:
        start = np.asarray(solve_triangular(R, c, check_finite=False))
    else:
        start = np.asarray(np.linalg.lstsq(R, c, rcond=None)[0], dtype=np.float64)
    if all(violation(cone, start) == 0.0 for cone in cones):
        faces, multipliers = free_faces(cones)
        certificate = certify(A, b, start, cones, multipliers)
        return ConeSolution(start, multipliers, faces, certificate, 0)
    if warm is not None and unique:
        half = [0.5 * m for m in warm.multipliers]
        found = finished(A, b, cones, polished(R, c, cones, warm.x, warm.faces, half), 0)
        if found is not None and found.worst <= ACCURATE:
            return found
    best: ConeSolution | None = None
    iterations = 0
    for unit in UNITS:
        centre = start
        for size in (unit, *CLOSER):
            form = Form(R, c, cones, centre)
            outcome = form.solve(size)
            status = str(outcome.status)
            iterations += int(outcome.iterations)
            if status == INFEASIBLE and size == unit:
                raise InfeasibleError(conflict(cones, np.array(outcome.z)[len(R) :], start))
            answer = form.answer(outcome, size)
            if not np.all(np.isfinite(answer[0])):
                break
            refined = polished(R, c, cones, *answer) if unique else None
            for candidate in (refined, answer):
                found = finished(A, b, cones, candidate, iterations)
                if found is not None and (best is None or found.worst < best.worst):
                    best = found
            if best is not None and best.worst <= ACCURATE:
                return best
            centre = answer[0]
    if best is None or best.worst > ACCEPTED:
        raise ComputationError(
            f"the cone problem was not solved ({status}); check the scale of the torques and units"
        )
    return best


def compressed(A: Array, b: Array) -> tuple[Array, Array]:
    """Triangular R and c with ``||A x - b||^2 = ||R x - c||^2 + constant``."""
    n = A.shape[1]
    R = np.asarray(np.linalg.qr(np.column_stack([A, b]), mode="r"))[:n]
    return R[:, :n], R[:, n]


def finished(
    A: Array,
    b: Array,
    cones: Sequence[Cone],
    answer: tuple[Array, Sequence[np.ndarray], Sequence[Array]] | None,
    iterations: int,
) -> ConeSolution | None:
    """A candidate with multipliers of the whole criterion, their signs made right."""
    if answer is None:
        return None
    x, faces, halves = answer
    multipliers: list[Array] = []
    for cone, half in zip(cones, halves, strict=True):
        if isinstance(cone, Equal):
            multipliers.append(2.0 * half)
        elif isinstance(cone, Positive):
            multipliers.append(2.0 * np.maximum(half, 0.0))
        else:
            values, vectors = np.linalg.eigh(half)
            multipliers.append(2.0 * (vectors * np.maximum(values, 0.0)) @ vectors.T)
    certificate = certify(A, b, x, cones, multipliers)
    return ConeSolution(x, tuple(multipliers), tuple(faces), certificate, iterations)


class Form:
    """A problem as Clarabel has it: ``min r^T r + 2 g^T r, R d = r``, cones on start + d.

    ``g = R start - c`` is zero at the unconstrained minimiser. From an answer that is nearly
    right the step d is small, and so are the errors that a tolerance leaves.

    Parameters
    ----------
    R : ndarray, shape (rows, unknowns)
    c : ndarray, shape (rows,)
    cones : sequence of Cone
    start : ndarray, shape (unknowns,)
        What x is counted from.
    """

    def __init__(self, R: Array, c: Array, cones: Sequence[Cone], start: Array) -> None:
        self.rows, self.unknowns = R.shape
        self.cones, self.start = cones, start
        self.g = R @ start - c
        blocks, right = [R], [np.zeros(self.rows)]
        self.kinds: list[object] = [clarabel.ZeroConeT(self.rows)]
        for cone in cones:
            matrix, vector = linear_form(cone)
            if isinstance(cone, Equal):
                self.kinds.append(clarabel.ZeroConeT(len(vector)))
            elif isinstance(cone, Positive):
                self.kinds.append(clarabel.NonnegativeConeT(len(vector)))
            else:
                self.kinds.append(clarabel.PSDTriangleConeT(len(cone.floor)))
            blocks.append(-matrix)
            right.append(matrix @ start - vector)
        stacked = sp.csc_matrix(np.vstack(blocks))
        count = stacked.shape[0]
        minus = sp.csc_matrix(
            (np.full(self.rows, -1.0), np.arange(self.rows), np.arange(self.rows + 1)),
            shape=(count, self.rows),
        )
        self.A = sp.hstack([stacked, minus], format="csc")
        self.b = np.concatenate(right)
        weights = np.concatenate([np.zeros(self.unknowns), np.full(self.rows, 2.0)])
        self.P = sp.diags_array(weights, format="csc")

    def solve(self, unit: float, tolerance: float = TOLERANCE) -> clarabel.DefaultSolution:
        """Clarabel's solution for the step in a unit of length."""
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.presolve_enable = False
        settings.chordal_decomposition_enable = False
        settings.direct_solve_method = "faer" if self.unknowns > LARGE else "qdldl"
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        q = np.concatenate([np.zeros(self.unknowns), 2.0 / unit * self.g])
        solver = clarabel.DefaultSolver(self.P, q, self.A, self.b / unit, self.kinds, settings)
        return solver.solve()

    def answer(
        self, outcome: clarabel.DefaultSolution, unit: float
    ) -> tuple[Array, list[np.ndarray], list[Array]]:
        """The point, its face and the multipliers of half the criterion."""
        x = self.start + unit * np.array(outcome.x[: self.unknowns])
        duals, slacks = 0.5 * unit * np.array(outcome.z), unit * np.array(outcome.s)
        faces: list[np.ndarray] = []
        multipliers: list[Array] = []
        position = self.rows
        for cone in self.cones:
            size = len(svec(cone.floor)) if isinstance(cone, Definite) else len(cone.h)
            z, s = duals[position : position + size], slacks[position : position + size]
            position += size
            if isinstance(cone, Equal):
                faces.append(np.ones(size, dtype=bool))
                multipliers.append(z)
            elif isinstance(cone, Positive):
                faces.append(z > s)
                multipliers.append(z)
            else:
                values, vectors = np.linalg.eigh(smat(z) - smat(s))
                faces.append(vectors[:, values > 0.0])
                multipliers.append(smat(z))
        return x, faces, multipliers


class Repeated:
    """The same cones around an answer, with one right-hand side after another.

    For replicates, which need no certificate of their own: the matrices are built once, and
    one solution of moderate accuracy is taken as it is.

    Parameters
    ----------
    A, b : ndarray
        As of `solve_cone_problem`.
    cones : sequence of Cone
    x : ndarray, shape (unknowns,)
        The answer.
    """

    def __init__(self, A: Array, b: Array, cones: Sequence[Cone], x: Array) -> None:
        self.A, self.b, self.cones, self.x = A, b, cones, x
        Q, self.R = np.linalg.qr(A)
        self.Q = Q
        self.form = Form(self.R, Q.T @ b, cones, x)

    def minimiser(self, change: Array) -> Array:
        """The answer after a change of b.

        Raises
        ------
        ComputationError
            When no answer was reached.
        """
        self.form.g = self.R @ self.x - self.Q.T @ (self.b + change)
        outcome = self.form.solve(UNITS[0], MODERATE)
        if str(outcome.status) != "Solved":
            return solve_cone_problem(self.A, self.b + change, self.cones).x
        return self.form.answer(outcome, UNITS[0])[0]


def linear_form(cone: Cone) -> tuple[Array, Array]:
    """Rows and right-hand side of a constraint, matrices as `svec`."""
    if isinstance(cone, Definite):
        return svec(cone.basis).T, svec(cone.floor)
    return cone.G, cone.h


def conflict(cones: Sequence[Cone], proof: Array, near: Array) -> tuple[str, ...]:
    """Names of constraints that contradict each other, none of which could be spared.

    Parameters
    ----------
    cones : sequence of Cone
    proof : ndarray
        Multipliers of Farkas' lemma: only constraints with one of them can be in conflict.
    near : ndarray
        A point; feasibility is decided by the point nearest to it.
    """
    rows: list[Cone] = []
    weights: list[float] = []
    position = 0
    for cone in cones:
        matrix, vector = linear_form(cone)
        z = proof[position : position + len(vector)]
        position += len(vector)
        if isinstance(cone, Definite):
            rows.append(cone)
            weights.append(float(np.linalg.norm(matrix.T @ z) + abs(vector @ z)))
            continue
        for k, name in enumerate(cone.name):
            rows.append(type(cone)((name,), cone.G[k : k + 1], cone.h[k : k + 1]))
            weights.append(float(np.linalg.norm(matrix[k] * z[k]) + abs(vector[k] * z[k])))
    least = 1e-6 * max(weights)
    kept = [row for row, weight in zip(rows, weights, strict=True) if weight > least]
    if feasible(kept, near):
        kept = rows
    for row in list(kept):
        others = [other for other in kept if other is not row]
        if not feasible(others, near):
            kept = others
    return names_of(kept)


def feasible(cones: Sequence[Cone], near: Array) -> bool:
    """Whether some point satisfies all constraints; undecided counts as yes."""
    form = Form(np.eye(len(near)), near, cones, near)
    return all(str(form.solve(unit).status) != INFEASIBLE for unit in (1.0, 30.0))


__all__ = ["Certificate", "ConeSolution", "certify", "conflict", "solve_cone_problem"]
