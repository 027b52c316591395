"""On the face of the active constraints: Newton's method, and what moves with the data.

A constrained least-squares answer solves, on its active constraints ``c(x) = 0``, the
equations ``A^T (A x - b) = C^T mu`` (ardiani2024, eq. 39). A definite matrix S that touches
its boundary counts as ``V^T S V = 0`` with its null directions V; these turn with x, which
adds the curvature ``2 <W, V^T dS U L^-1 U^T dS V>`` (U, L: the other eigenpairs of S, W the
multiplier) to the Hessian. Everything is written in ``z = R dx``, R being the triangular
factor of A, so that the normal matrix is never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from dynident.conic.cones import (
    Cone,
    NonnegativeCone,
    SemidefiniteCone,
    ZeroCone,
    differentiate_slack,
    evaluate_slack,
    measure_cone_violation,
    smat,
    svec,
)
from dynident.core.arrays import Array

NEWTON_STEPS = 8
ROUNDS = 5
"""Changes of the active set before a start is given up."""
SETTLED = 1e-13
SMALLEST = 1e-14
"""Eigenvalue over the largest below which constraints repeat each other."""


@dataclass(frozen=True)
class Certificate:
    """What an answer proves of itself, computed from it and not by the solver.

    Attributes
    ----------
    primal : float
        Largest violation of a constraint, in scaled units.
    dual : float
        ``||2 A^T (A x - b) - sum G^T mu|| / ||2 A^T b||``.
    gap : float
        ``sum <mu, slack>`` over the criterion (or one, where that is larger).
    """

    primal: float
    dual: float
    gap: float

    @property
    def worst(self) -> float:
        """The largest of the three."""
        return max(self.primal, self.dual, self.gap)

    @property
    def words(self) -> str:
        """What it proves, in words."""
        return f"primal {self.primal:.1e}, dual {self.dual:.1e}, gap {self.gap:.1e}"


def certify_answer(
    A: Array, b: Array, x: Array, cones: Sequence[Cone], multipliers: Sequence[Array]
) -> Certificate:
    """Karush-Kuhn-Tucker residuals of an answer and its multipliers."""
    error = A @ x - b
    gradient = 2.0 * A.T @ error
    # of a criterion without a right-hand side, the largest of its gradients in reach
    scale = 2.0 * float(np.linalg.norm(A.T @ b)) or max(1.0, float(np.linalg.norm(A)) ** 2)
    primal, product = 0.0, 0.0
    for cone, multiplier in zip(cones, multipliers, strict=True):
        touched, force = differentiate_slack(cone, multiplier)
        gradient[touched] -= force
        primal = max(primal, measure_cone_violation(cone, x))
        product += float(np.sum(multiplier * evaluate_slack(cone, x)))
    return Certificate(
        primal,
        float(np.linalg.norm(gradient)) / scale,
        # where the gradient vanishes, the gap of a convex quadratic problem is <multiplier, slack>
        abs(product) / max(1.0, float(error @ error)),
    )


@dataclass(frozen=True)
class LinearisedConstraints:
    """Active constraints around a point: ``c + C dx = 0``, and their curvature.

    ``||F dx||^2`` is what the turning of the null directions adds to the criterion
    ``||A x - b||^2``.
    """

    c: Array
    C: Array
    F: Array


def linearise_constraints(
    cones: Sequence[Cone], x: Array, faces: Sequence[np.ndarray], multipliers: Sequence[Array]
) -> tuple[LinearisedConstraints, list[np.ndarray]]:
    """Active constraints at x, and the faces with null directions brought up to date.

    Faces are a mask of active rows, or null directions of shape (d, k), one a cone; multipliers
    those of half the criterion.
    """
    c, C, F, now = [], [], [], []
    for cone, face, multiplier in zip(cones, faces, multipliers, strict=True):
        if not isinstance(cone, SemidefiniteCone):
            c.append((cone.G @ x - cone.h)[face])
            C.append(cone.G[face])
            now.append(face)
            continue
        k = face.shape[1]
        if not k:
            now.append(face)
            continue
        values, vectors = np.linalg.eigh(cone.matrix(x))
        # the k smallest eigenvalues, which come first, are those at zero
        V, U = vectors[:, :k], vectors[:, k:]
        now.append(V)
        # V^T S V = 0 is diagonal in the eigenvectors of S as it is now
        turned = V.T @ cone.part @ V
        c.append(svec(np.diag(values[:k])))
        rows = np.zeros((k * (k + 1) // 2, len(x)))
        rows[:, cone.support] = svec(turned).T
        C.append(rows)
        if U.shape[1]:
            # 2 <W, V^T dS U L^-1 U^T dS V> as a sum of squares, with W = root^T root / 2
            weights, axes = np.linalg.eigh(V.T @ multiplier @ V)
            root = np.sqrt(2.0 * np.maximum(weights, 0.0))[:, None] * axes.T
            bend = root @ (V.T @ cone.part @ U) / np.sqrt(np.maximum(values[k:], 1e-12))
            rows = np.zeros((bend.shape[1] * bend.shape[2], len(x)))
            rows[:, cone.support] = bend.reshape(len(cone.support), -1).T
            F.append(rows)
    empty = np.zeros((0, len(x)))
    return LinearisedConstraints(
        np.concatenate([np.zeros(0), *c]), np.vstack([empty, *C]), np.vstack([empty, *F])
    ), now


class Face:
    """The quadratic problem on linearised active constraints, factored.

    ``min ||z - r||^2 + ||F R^-1 z||^2`` subject to ``C R^-1 z = -c``, with R the triangular factor
    of the criterion, of full rank.
    """

    def __init__(self, R: Array, active: LinearisedConstraints) -> None:
        self.R = R
        self.C = divide_by_triangular(active.C, R)
        self.F = divide_by_triangular(active.F, R)
        self._inner = None
        if len(self.F):
            # (I + F^T F)^-1 = I - F^T (I + F F^T)^-1 F: F has fewer rows than columns mostly
            self._inner = cho_factor(np.eye(len(self.F)) + self.F @ self.F.T)
        self.HC = self.curve(self.C.T)
        # of constraints that repeat each other the pseudo-inverse takes one
        values, vectors = np.linalg.eigh(self.C @ self.HC)
        kept = values > SMALLEST * max(values[-1:], default=0.0)
        self.inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T

    def curve(self, z: Array) -> Array:
        """``(I + F^T F)^-1 z``."""
        if self._inner is None:
            return np.asarray(z)
        return np.asarray(z - self.F.T @ cho_solve(self._inner, self.F @ z))

    def step(self, r: Array, c: Array) -> tuple[Array, Array]:
        """Minimiser z and the multipliers, those of half the criterion."""
        mu = self.inverse @ (-c - self.HC.T @ r)
        return self.curve(r) + self.HC @ mu, mu

    def sensitivity(self) -> Array:
        """K with ``dx = K A^T db``: how the answer follows the data on its face."""
        n = len(self.R)
        half = self.curve(np.eye(n)) - self.HC @ self.inverse @ self.HC.T
        # R^-1 half R^-T in two triangular solutions, for half is symmetric
        left = solve_triangular(self.R, half, check_finite=False)
        return np.asarray(solve_triangular(self.R, left.T, check_finite=False))

    def release(self) -> tuple[Array, Array]:
        """V with ``dx = V c`` where constraints give way by c, and what that costs.

        Half the criterion rises by ``c^T K c / 2``, beside what the multipliers tell: all else is
        at its best.
        """
        moved = solve_triangular(self.R, self.HC @ self.inverse, check_finite=False)
        return np.asarray(moved), self.inverse


def divide_by_triangular(M: Array, R: Array) -> Array:
    """``M R^-1`` of a triangular R."""
    return np.asarray(solve_triangular(R, M.T, trans="T", check_finite=False)).T


def solve_on_face(
    R: Array,
    b: Array,
    cones: Sequence[Cone],
    x: Array,
    faces: Sequence[np.ndarray],
    multipliers: Sequence[Array],
) -> tuple[Array, list[np.ndarray], list[Array]]:
    """Newton's method on a fixed active set: ``R^T (R x - b) = C^T mu``, ``c(x) = 0``.

    Multipliers here are those of half the criterion ``||R x - b||^2``.
    """
    faces, multipliers = list(faces), list(multipliers)
    size = max(float(np.linalg.norm(b)), np.finfo(float).tiny)
    length = np.inf
    for step in range(NEWTON_STEPS):
        active, faces = linearise_constraints(cones, x, faces, multipliers)
        face = Face(R, active)
        z, mu = face.step(b - R @ x, active.c)
        before, length = length, float(np.linalg.norm(z))
        slow = step >= 2 and length > 0.5 * before and length > 1e-6 * size
        if slow or length > 10.0 * before:
            raise np.linalg.LinAlgError  # far from where Newton's method converges
        x = x + solve_triangular(R, z, check_finite=False)
        multipliers = unpack_multipliers(cones, faces, mu)
        # steps converge quadratically: a small one that is not halved any more is rounding
        if length <= SETTLED * size or (length > 0.5 * before and length < 1e-9 * size):
            break
    return x, faces, multipliers


def unpack_multipliers(
    cones: Sequence[Cone], faces: Sequence[np.ndarray], mu: Array
) -> list[Array]:
    """Multipliers of the active rows as one array a cone."""
    out: list[Array] = []
    position = 0
    for cone, face in zip(cones, faces, strict=True):
        if isinstance(cone, SemidefiniteCone):
            k = face.shape[1]
            count = k * (k + 1) // 2
            part = mu[position : position + count]
            out.append(face @ smat(part) @ face.T if k else np.zeros_like(cone.floor))
        else:
            count = int(np.sum(face))
            full = np.zeros(len(cone.h))
            full[face] = mu[position : position + count]
            out.append(full)
        position += count
    return out


def polish_answer(
    R: Array,
    b: Array,
    cones: Sequence[Cone],
    x: Array,
    faces: Sequence[np.ndarray],
    multipliers: Sequence[Array],
    rounds: int = ROUNDS,
) -> tuple[Array, list[np.ndarray], list[Array]] | None:
    """An active-set method from a guess of the face; None when it leads nowhere.

    Newton's method on the face, then constraints whose multipliers have the wrong sign are
    let go and violated ones taken in, until nothing changes: as often as `rounds`.
    """
    seen = set()
    for _ in range(rounds):
        key = tuple(
            face.shape[1] if isinstance(cone, SemidefiniteCone) else face.tobytes()
            for cone, face in zip(cones, faces, strict=True)
        )
        # the same active set again: it goes round in a circle
        if key in seen:
            return None
        seen.add(key)
        try:
            x, now, multipliers = solve_on_face(R, b, cones, x, faces, multipliers)
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.isfinite(x)):
            return None
        faces, changed = revise_faces(cones, x, now, multipliers)
        if not changed:
            return x, now, multipliers
    return None


def revise_faces(
    cones: Sequence[Cone], x: Array, faces: Sequence[np.ndarray], multipliers: Sequence[Array]
) -> tuple[list[np.ndarray], bool]:
    """Faces without the constraints that pull the wrong way, with those that are violated."""
    largest = max((float(np.max(np.abs(m), initial=0.0)) for m in multipliers), default=0.0)
    tiny = 1e-12 * largest  # rounding of zero; unknowns and slacks are of order one
    out: list[np.ndarray] = []
    changed = False
    for cone, face, multiplier in zip(cones, faces, multipliers, strict=True):
        if isinstance(cone, ZeroCone):
            out.append(face)
        elif isinstance(cone, NonnegativeCone):
            new = np.where(face, multiplier > -tiny, cone.G @ x < cone.h - 1e-12)
            changed |= bool(np.any(new != face))
            out.append(new)
        else:
            k = face.shape[1]
            values, vectors = np.linalg.eigh(cone.matrix(x))
            wrong = int(np.sum(np.linalg.eigvalsh(multiplier) < -tiny))
            more = int(np.sum(values[k:] < -1e-12))
            changed |= bool(wrong or more)
            out.append(vectors[:, : min(k - wrong + more, len(values))])
    return out, changed
