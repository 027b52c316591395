"""How well a model fits a snapshot under one reading of its columns, by small matrices alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.diagnosis.snapshot import Snapshot
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.idim import Idim
from dynident.regression.factors import System

RIDGE = 1e-12
"""Of scaled normal matrices: keeps directions that nothing excites from exploding."""
LEAST_NOISE = 1e-12
"""Squared, of a row: the torque of all rows of a joint is 1."""


def scaled_normal(XX: Array, weights: Array) -> tuple[Array, Array]:
    """The joints' normal matrix with columns of unit length, and the lengths."""
    G = np.einsum("j,jpq->pq", weights, XX)
    scale = np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
    return G / np.outer(scale, scale) + RIDGE * np.eye(len(G)), scale


@dataclass(frozen=True, eq=False)
class Moments:
    """Products of each joint's regressor and all torque columns, over that joint's rows.

    Attributes
    ----------
    base : BaseParameters
    XX : ndarray, shape (n, p, p)
    XY : ndarray, shape (n, p, m)
        With m torque columns.
    YY : ndarray, shape (n, m, m)
    rows : int
        Of all joints together.
    """

    base: BaseParameters
    XX: Array
    XY: Array
    YY: Array
    rows: int

    def read(self, reading: Array) -> Normal:
        """The least-squares problem of one reading of the torque columns.

        Parameters
        ----------
        reading : ndarray, shape (n, m)
            Which combination of the columns is each joint's torque.
        """
        squares = np.einsum("jm,jmk,jk->j", reading, self.YY, reading)
        products = np.einsum("jpm,jm->jp", self.XY, reading)
        return Normal(self.base, self.XX, products, squares, self.rows)

    def squares(self, reading: Array, weights: Array) -> float:
        """``sum_j w_j ||r_j||^2`` of a combination of the columns."""
        own = np.einsum("jm,jmk,jk->j", reading, self.YY, reading)
        return float(weights @ own)

    def weights(self, n: int) -> Array:
        """Of the joints' squares, each in its own torque's: the first n columns'."""
        return self.read(np.eye(n, self.YY.shape[1])).scale

    def extra(self, torque: Array) -> Array:
        """How much of the last column each joint's torque has beyond the model, shape (n,).

        Parameters
        ----------
        torque : ndarray, shape (n, m)
            Which combination of the columns is each joint's torque.
        """
        normal = self.read(torque)
        w = normal.scale
        scaled, scale = scaled_normal(self.XX, w)
        columns = (w[:, None] * self.XY[:, :, -1]).T / scale[:, None]
        rest = (w @ normal.Xy) / scale
        solved = np.linalg.solve(scaled, columns)
        blind = np.diag(w * self.YY[:, -1, -1]) - columns.T @ solved
        cross = w * np.einsum("jm,jm->j", torque, self.YY[:, :, -1]) - solved.T @ rest
        return np.asarray(np.linalg.lstsq(blind, cross, rcond=1e-9)[0])

    def left_over(self, first: Array, second: Array, weights: Array) -> tuple[float, float]:
        """``s^T M s`` and ``f^T M s`` of two combinations, M what least squares leaves.

        Parameters
        ----------
        first, second : ndarray, shape (n, m)
        weights : ndarray, shape (n,)
            Of the joints' squares.
        """
        scaled, scale = scaled_normal(self.XX, weights)
        Xf, Xs = (weights @ np.einsum("jpm,jm->jp", self.XY, r) / scale for r in (first, second))
        fs = float(weights @ np.einsum("jm,jmk,jk->j", first, self.YY, second))
        ss = self.squares(second, weights)
        solved = np.linalg.solve(scaled, Xs)
        return ss - float(Xs @ solved), fs - float(Xf @ solved)


@dataclass(frozen=True, eq=False)
class Normal:
    """Normal equations, each joint's torque counted in its own root mean square.

    Attributes
    ----------
    base : BaseParameters
    XX : ndarray, shape (n, p, p)
    Xy : ndarray, shape (n, p)
    squares : ndarray, shape (n,)
        ``||y_j||^2``.
    rows : int
    """

    base: BaseParameters
    XX: Array
    Xy: Array
    squares: Array
    rows: int

    @property
    def scale(self) -> Array:
        """Weights of the joints' squares: each in its own mean square; 0 without torque."""
        weights = 1.0 / np.maximum(self.squares, np.finfo(float).tiny)
        weights[self.squares == 0.0] = 0.0
        return weights

    def system(self) -> System:
        """All joints in one triangular system."""
        weights = self.scale
        scaled, scale = scaled_normal(self.XX, weights)
        L = np.linalg.cholesky(scaled)
        A = np.asarray(L.T * scale, dtype=np.float64)
        b = np.asarray(np.linalg.solve(L, (weights @ self.Xy) / scale), dtype=np.float64)
        return System(A, b, max(0.0, float(np.sum(self.squares > 0.0) - b @ b)))

    def errors(self, beta: Array) -> Array:
        """Each joint's unexplained share of its torque, shape (n,)."""
        rest = self.squares - 2.0 * self.Xy @ beta + np.einsum("p,jpq,q->j", beta, self.XX, beta)
        safe = np.maximum(self.squares, np.finfo(float).tiny)
        return np.asarray(np.sqrt(np.maximum(rest, 0.0) / safe))

    def free(self) -> float:
        """Mean squared error of least squares, over the joints."""
        return self.system().rest / max(1, len(self.squares))

    def free_errors(self) -> Array:
        """Errors of least squares, shape (n,)."""
        system = self.system()
        return self.errors(solve_triangular(system.A, system.b, lower=False))

    def of_file(self) -> tuple[Array, Array]:
        """What each joint's rows make of the robot file's inertials, with drives of their own.

        Returns
        -------
        scale : ndarray, shape (n,)
            How many times the file's torques are in the log's.
        share : ndarray, shape (n,)
            Share of the squared torque that these explain beside drives.
        """
        idim = self.base.idim
        beta = self.base.matrix @ idim.nominal
        drives = self.base.matrix[:, idim.inertial :]  # those that are regrouped, too
        scale, share = np.zeros(len(self.squares)), np.zeros(len(self.squares))
        for j, (XX, Xy, square) in enumerate(zip(self.XX, self.Xy, self.squares, strict=True)):
            known = np.column_stack([beta, drives])
            G, g = known.T @ XX @ known, known.T @ Xy
            own = np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
            G = G / np.outer(own, own) + RIDGE * np.eye(len(G))
            both = np.linalg.solve(G, g / own)
            friction = np.linalg.solve(G[1:, 1:], (g / own)[1:])
            gained = float(both @ (g / own) - friction @ (g / own)[1:])
            scale[j] = both[0] / own[0]
            share[j] = gained / square if square > 0.0 else 0.0
        return scale, share

    def file_error(self) -> float:
        """Mean squared error of the robot file's inertials with the best drives beside them."""
        idim = self.base.idim
        beta = self.base.matrix @ idim.nominal
        system = self.system()
        rest = system.b - system.A @ beta
        drives = system.A @ self.base.matrix[:, idim.inertial :]
        found = np.linalg.lstsq(drives, rest, rcond=None)[0]
        return float(np.sum((rest - drives @ found) ** 2) + system.rest)

    def consistent(self) -> Array:
        """Base parameters of the best physically consistent model.

        Rows are counted in what least squares leaves of them, as the slight pull on directions
        that nobody sees expects it.

        Raises
        ------
        ComputationError
        """
        own = self.system()
        noise = np.sqrt(max(own.rest / max(1, self.rows), LEAST_NOISE))
        system = System(own.A / noise, own.b / noise, own.rest / noise**2)
        knowledge = Knowledge(prior="none")
        point = build_feasible_set(self.base, system, knowledge).solve(system)
        return point.beta


def moments(snapshot: Snapshot, torques: Array | None = None, idim: Idim | None = None) -> Moments:
    """All that least squares needs of a snapshot.

    Parameters
    ----------
    snapshot : Snapshot
    torques : ndarray, shape (instants, m), optional
        Columns that a reading may combine; those of the log by default.
    idim : Idim, optional
        Another model of the same parameters.
    """
    base = snapshot.base
    Y = snapshot.tau if torques is None else torques
    n, p, m = snapshot.q.shape[1], base.count, Y.shape[1]
    model = base.idim if idim is None else idim
    packing = model.packing(base.kept)
    packed = np.empty((len(snapshot.q), packing.width))
    model.fill(packing, snapshot.q, snapshot.dq, snapshot.ddq, packed)
    XX, XY, YY = np.zeros((n, p, p)), np.zeros((n, p, m)), np.zeros((n, m, m))
    for j, (entries, columns) in enumerate(packing.joints):
        rows = snapshot.moving[:, j]
        X, y = packed[rows, entries], Y[rows]
        XX[j][np.ix_(columns, columns)] = X.T @ X
        XY[j][columns] = X.T @ y
        YY[j] = y.T @ y
    return Moments(base, XX, XY, YY, int(np.sum(snapshot.moving)))
