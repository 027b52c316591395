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
TOLERANCES = (1e-9, 1e-8)
"""Tried in turn; the first that is reached is taken."""


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
        that the multiplier outweighs the slack.
    certificate : Certificate
    iterations : int
    """

    x: Array
    multipliers: tuple[Array, ...]
    faces: tuple[np.ndarray, ...]
    certificate: Certificate
    iterations: int


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


def solve_cone_problem(A: Array, b: Array, cones: Sequence[Cone]) -> ConeSolution:
    """Minimise ``||A x - b||^2`` subject to cones.

    Parameters
    ----------
    A : ndarray, shape (rows, variables)
        Need not have full column rank where the cones or a prior settle the rest.
    b : ndarray, shape (rows,)
    cones : sequence of Cone

    Returns
    -------
    ConeSolution

    Raises
    ------
    ComputationError
        When the constraints contradict each other or no certified answer was reached.
    """
    rows, variables = A.shape
    scale = max(float(np.linalg.norm(b)), np.finfo(float).tiny)
    blocks = [sp.hstack([sp.csc_matrix(A), -sp.identity(rows)])]
    right = [b / scale]
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
        right.append(-vector / scale)
    constraints = sp.vstack(blocks, format="csc")
    offsets = np.concatenate(right)
    weights = np.concatenate([np.zeros(variables), np.full(rows, 2.0)])
    P = sp.diags(weights, format="csc")
    status = ""
    for tolerance in TOLERANCES:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        solver = clarabel.DefaultSolver(
            P, np.zeros(variables + rows), constraints, offsets, kinds, settings
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
    x = np.array(solution.x[:variables]) * scale
    dual, slack = np.array(solution.z), np.array(solution.s)
    multipliers, faces = [], []
    position = rows
    for cone in cones:
        size = len(cone.h) if isinstance(cone, Positive) else len(svec(cone.floor))
        z, s = dual[position : position + size], slack[position : position + size]
        if isinstance(cone, Positive):
            multipliers.append(z * scale)
            faces.append(z > s)
        else:
            multipliers.append(smat(z) * scale)
            values, vectors = np.linalg.eigh(smat(z) - smat(s))
            faces.append(vectors[:, values > 0.0])
        position += size
    gap = abs(solution.obj_val - solution.obj_val_dual) / max(1.0, abs(solution.obj_val))
    certificate = Certificate(float(solution.r_prim), float(solution.r_dual), float(gap))
    return ConeSolution(x, tuple(multipliers), tuple(faces), certificate, int(solution.iterations))
