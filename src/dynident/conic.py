"""The one cone problem under every constrained estimator, solved by Clarabel.

``min ||A x - b||^2`` subject to linear cones. Always in the auxiliary form
``min r^T r, A x - r = b``: a normal matrix ``A^T A`` would square the condition number
and has been seen to give wrong answers on large robots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import clarabel
import numpy as np
import scipy.sparse as sp

from dynident.errors import ComputationError
from dynident.inertia import Array

SOLVED = "Solved"
ATTEMPTS = ((30.0, 1e-9), (1000.0, 1e-9), (1.0, 1e-9), (30.0, 1e-8), (1000.0, 1e-8))
"""Unit of the step (in standard deviations, where rows are whitened) and tolerance, tried
in turn; the first that is solved is taken. An almost solved problem never is."""


@dataclass(frozen=True)
class Positive:
    """``G x >= h``, row by row."""

    name: tuple[str, ...]
    G: Array
    h: Array


@dataclass(frozen=True)
class Definite:
    """``sum_k x_k basis[k] - floor`` is positive semidefinite.

    Attributes
    ----------
    name : str
    basis : ndarray, shape (variables, d, d)
    floor : ndarray, shape (d, d)
    """

    name: str
    basis: Array
    floor: Array


Cone = Positive | Definite


@dataclass(frozen=True)
class Certificate:
    """What the solver proves about its answer.

    Attributes
    ----------
    primal, dual, gap : float
        Relative residuals of feasibility and the relative duality gap.
    """

    primal: float
    dual: float
    gap: float


@dataclass(frozen=True)
class ConeSolution:
    """The minimiser with its multipliers.

    Attributes
    ----------
    x : ndarray
    multipliers : tuple of ndarray
        One per cone: a vector for `Positive`, a symmetric matrix for `Definite`.
    faces : tuple of ndarray
        What holds the answer back, one per cone: rows of `Positive` that are active, as a
        mask; for `Definite` the null directions of the matrix, shape (d, k). Active means
        that the multiplier outweighs the slack and is visible.
    certificate : Certificate
    iterations : int
    """

    x: Array
    multipliers: tuple[Array, ...]
    faces: tuple[np.ndarray, ...]
    certificate: Certificate
    iterations: int


def inside(cone: Cone, x: Array) -> bool:
    """Whether a point satisfies a constraint."""
    if isinstance(cone, Positive):
        return bool(np.all(cone.G @ x >= cone.h))
    return bool(np.linalg.eigvalsh(np.tensordot(x, cone.basis, axes=1) - cone.floor)[0] >= 0.0)


def unconstrained(A: Array, b: Array, x: Array, cones: Sequence[Cone]) -> ConeSolution:
    """The least-squares answer as a solution: no constraint holds it back."""
    gradient = float(np.linalg.norm(A.T @ (A @ x - b)))
    scale = max(float(np.linalg.norm(A.T @ b)), np.finfo(float).tiny)
    multipliers: list[Array] = []
    faces: list[np.ndarray] = []
    for cone in cones:
        if isinstance(cone, Positive):
            multipliers.append(np.zeros(len(cone.h)))
            faces.append(np.zeros(len(cone.h), dtype=bool))
        else:
            multipliers.append(np.zeros_like(cone.floor))
            faces.append(np.zeros((len(cone.floor), 0)))
    certificate = Certificate(0.0, gradient / scale, 0.0)
    return ConeSolution(x, tuple(multipliers), tuple(faces), certificate, 0)


def svec(matrix: Array) -> Array:
    """Upper triangle column by column, off-diagonal entries times sqrt(2)."""
    d = matrix.shape[-1]
    rows, columns = triangle(d)
    scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return np.asarray(matrix[..., rows, columns] * scale)


def smat(vector: Array) -> Array:
    """Symmetric matrix of an svec."""
    d = int((np.sqrt(8 * len(vector) + 1) - 1) / 2)
    rows, columns = triangle(d)
    matrix = np.zeros((d, d))
    matrix[rows, columns] = vector / np.where(rows == columns, 1.0, np.sqrt(2.0))
    return matrix + np.triu(matrix, 1).T


def triangle(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the upper triangle, column by column."""
    pairs = [(i, j) for j in range(d) for i in range(j + 1)]
    rows, columns = zip(*pairs, strict=True)
    return np.array(rows), np.array(columns)


def solve_cone_problem(
    A: Array, b: Array, cones: Sequence[Cone], visible: float = 0.0
) -> ConeSolution:
    """Minimise ``||A x - b||^2`` subject to cones.

    Parameters
    ----------
    A : ndarray, shape (rows, variables)
        Need not have full column rank where the cones or a prior settle the rest.
    b : ndarray, shape (rows,)
    cones : sequence of Cone
    visible : float
        Multipliers below this do not count as active.

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
    ComputationError
        When the constraints contradict each other or no certified answer was reached.
    """
    rows, variables = A.shape
    start = np.asarray(np.linalg.lstsq(A, b, rcond=None)[0], dtype=np.float64)
    free = b - A @ start
    if all(inside(cone, start) for cone in cones):
        return unconstrained(A, b, start, cones)
    blocks = [sp.hstack([sp.csc_matrix(A), -sp.identity(rows)])]
    right = [free]
    kinds: list[object] = [clarabel.ZeroConeT(rows)]
    padding = {}
    for cone in cones:
        if isinstance(cone, Positive):
            matrix, vector = cone.G, cone.h
            kinds.append(clarabel.NonnegativeConeT(len(vector)))
        else:
            matrix, vector = svec(cone.basis).T, svec(cone.floor)
            kinds.append(clarabel.PSDTriangleConeT(cone.floor.shape[0]))
        if len(vector) not in padding:
            padding[len(vector)] = sp.csc_matrix((len(vector), rows))
        blocks.append(sp.hstack([sp.csc_matrix(-matrix), padding[len(vector)]]))
        right.append(matrix @ start - vector)
    constraints = sp.vstack(blocks, format="csc")
    offsets = np.concatenate(right)
    weights = np.concatenate([np.zeros(variables), np.full(rows, 2.0)])
    P = sp.diags(weights, format="csc")
    status = ""
    for scale, tolerance in ATTEMPTS:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        solver = clarabel.DefaultSolver(
            P, np.zeros(variables + rows), constraints, offsets / scale, kinds, settings
        )
        solution = solver.solve()
        status = str(solution.status)
        if status == SOLVED:
            break
        if "Infeasible" in status:
            raise ComputationError(
                "the constraints contradict each other: no parameters satisfy all of them"
            )
    else:
        raise ComputationError(
            f"the cone problem was not solved ({status}); check the scale of the torques and units"
        )
    x = start + scale * np.array(solution.x[:variables])
    dual, slack = scale * np.array(solution.z), scale * np.array(solution.s)
    multipliers, faces = [], []
    position = rows
    for cone in cones:
        size = len(cone.h) if isinstance(cone, Positive) else len(svec(cone.floor))
        z, s = dual[position : position + size], slack[position : position + size]
        if isinstance(cone, Positive):
            multipliers.append(z)
            faces.append((z > s) & (z > visible))
        else:
            multipliers.append(smat(z))
            values, vectors = np.linalg.eigh(smat(z) - smat(s))
            forces = np.einsum("ik,ij,jk->k", vectors, smat(z), vectors)
            faces.append(vectors[:, (values > 0.0) & (forces > visible)])
        position += size
    gap = abs(solution.obj_val - solution.obj_val_dual) / max(1.0, abs(solution.obj_val))
    certificate = Certificate(float(solution.r_prim), float(solution.r_dual), float(gap))
    return ConeSolution(x, tuple(multipliers), tuple(faces), certificate, int(solution.iterations))
