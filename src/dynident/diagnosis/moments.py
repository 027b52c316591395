"""How well a model fits a scene under one reading of its columns, by small matrices alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
from scipy.linalg import block_diag, solve_triangular

from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.diagnosis import thresholds as limit
from dynident.dynamics.base import BaseParameters
from dynident.regression.factors import System

RIDGE = 1e-12
"""Of scaled normal matrices: keeps directions that nothing excites from exploding."""
LEAST_NOISE = 1e-12
"""Squared, of a row: the torque of all rows of a joint is 1."""


def scale_normal(G: Array) -> tuple[Array, Array]:
    """A normal matrix with columns of unit length, and the lengths."""
    scale = np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
    return G / np.outer(scale, scale) + RIDGE * np.eye(len(G)), scale


def factorise_normal(G: Array, g: Array, square: float) -> System:
    """Normal equations ``G x = g`` of rows with so large a right-hand side, squared."""
    scaled, scale = scale_normal(G)
    L = np.linalg.cholesky(scaled)
    b = np.asarray(solve_triangular(L, g / scale, lower=True, check_finite=False))
    return System(np.asarray(L.T * scale), b, max(0.0, square - float(b @ b)))


@dataclass(frozen=True, eq=False)
class Moments:
    """Products of each joint's regressor and all torque columns, over that joint's rows.

    Attributes
    ----------
    XX : ndarray, shape (n, p, p)
    XY : ndarray, shape (n, p, m)
        With m torque columns.
    YY : ndarray, shape (n, m, m)
    rows : int
        Of all joints together.
    beside : Normal or None
        Of other logs, which the same model has to explain.
    """

    base: BaseParameters
    XX: Array
    XY: Array
    YY: Array
    rows: int
    beside: Normal | None = None

    def read(self, reading: Array) -> Normal:
        """The least-squares problem of one reading of the torque columns.

        Parameters
        ----------
        reading : ndarray, shape (n, m)
            Which combination of the columns is each joint's torque.
        """
        squares = np.einsum("jm,jmk,jk->j", reading, self.YY, reading)
        products = np.einsum("jpm,jm->jp", self.XY, reading)
        own = Normal(self.base, (self.XX,), products, squares, self.rows)
        return own if self.beside is None else own.and_those_of(self.beside)

    def extra(self, torque: Array, count: int) -> Array:
        """How much of the last columns each joint's torque has beyond the model.

        Parameters
        ----------
        torque : ndarray, shape (n, m)
            Which combination of the columns is each joint's torque.

        Returns
        -------
        ndarray, shape (n, count)
        """
        n, normal = len(torque), self.read(torque)
        w = normal.scale[:n]
        scaled, scale = scale_normal(normal.weighted(normal.scale))
        own = w[:, None, None] * self.XY[:, :, -count:]
        columns = own.transpose(1, 0, 2).reshape(len(scale), n * count) / scale[:, None]
        rest = (normal.scale @ normal.Xy) / scale
        solved = np.linalg.solve(scaled, columns)
        blind = block_diag(*(w[:, None, None] * self.YY[:, -count:, -count:])) - columns.T @ solved
        cross = w[:, None] * np.einsum("jm,jmk->jk", torque, self.YY[:, :, -count:])
        size = np.linalg.lstsq(blind, np.ravel(cross) - solved.T @ rest, rcond=1e-9)[0]
        return np.asarray(size.reshape(n, count))


@dataclass(frozen=True, eq=False)
class Normal:
    """Normal equations, each joint's torque counted in its own root mean square.

    Attributes
    ----------
    XX : tuple of ndarray, shapes (groups of the log, p, p)
        Of each log, which are many: those of a log beside others are not copied.
    Xy : ndarray, shape (groups, p)
    squares : ndarray, shape (groups,)
        ``||y_j||^2``.
    sizes : ndarray, shape (groups,), or None
        What the torques are counted in, squared, where it is not `squares`.
    """

    base: BaseParameters
    XX: tuple[Array, ...]
    Xy: Array
    squares: Array
    rows: int
    sizes: Array | None = None

    @property
    def counted(self) -> Array:
        """What the torques are counted in, squared, shape (groups,)."""
        return self.squares if self.sizes is None else self.sizes

    def and_those_of(self, other: Normal) -> Normal:
        """These and those of other logs, as groups of their own."""
        return replace(
            self,
            XX=(*self.XX, *other.XX),
            Xy=np.concatenate([self.Xy, other.Xy]),
            squares=np.concatenate([self.squares, other.squares]),
            rows=self.rows + other.rows,
            sizes=np.concatenate([self.counted, other.counted]),
        )

    def as_many_as(self, other: Normal) -> bool:
        """Whether few rows are lost against others, and of no joint all."""
        return other.is_matched_by(self.rows, self.squares)

    def is_matched_by(self, rows: int, squares: Array) -> bool:
        """Whether so many rows, with such squared torques, are not far fewer."""
        none = (squares == 0.0) & (self.squares > 0.0)
        return rows >= limit.KEPT_ROWS * self.rows and not np.any(none)

    @property
    def scale(self) -> Array:
        """Weights of the joints' squares: each in its own mean square; 0 without torque."""
        weights = 1.0 / np.maximum(self.counted, np.finfo(float).tiny)
        weights[self.squares == 0.0] = 0.0
        return weights

    def weighted(self, weights: Array) -> Array:
        """The sum of all groups' normal matrices, each times its weight, shape (p, p)."""
        ends = np.cumsum([len(XX) for XX in self.XX])[:-1]
        parts = zip(np.split(weights, ends), self.XX, strict=True)
        return np.asarray(sum(np.tensordot(own, XX, axes=1) for own, XX in parts))

    @cached_property
    def system(self) -> System:
        """All joints in one triangular system."""
        weights = self.scale
        G = self.weighted(weights)
        return factorise_normal(G, weights @ self.Xy, float(weights @ self.squares))

    def errors(self, beta: Array) -> Array:
        """Each joint's unexplained share of its torque, 0 where it has none, shape (groups,)."""
        modelled = np.concatenate([XX @ beta @ beta for XX in self.XX])
        rest = self.squares - 2.0 * self.Xy @ beta + modelled
        share = np.zeros_like(rest)
        told = self.squares > 0.0
        np.divide(np.maximum(rest, 0.0), self.counted, out=share, where=told)
        return np.asarray(np.sqrt(share))

    def free(self) -> float:
        """Mean squared error of least squares, over the joints."""
        return self.system.rest / max(1, len(self.squares))

    @cached_property
    def free_beta(self) -> Array:
        """Base parameters of least squares, shape (p,), to count what they leave alone.

        Directions that nothing excites are not left out, as `System.solve` does.
        """
        return np.asarray(solve_triangular(self.system.A, self.system.b, check_finite=False))

    def free_errors(self) -> Array:
        """Errors of least squares, shape (groups,)."""
        return self.errors(self.free_beta)

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
        groups = zip(chain(*self.XX), self.Xy, self.squares, strict=True)
        for j, (XX, Xy, square) in enumerate(groups):
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
        system = self.system
        rest = system.b - system.A @ beta
        drives = system.A @ self.base.matrix[:, idim.inertial :]
        found = np.linalg.lstsq(drives, rest, rcond=None)[0]
        return float(np.sum((rest - drives @ found) ** 2) + system.rest)

    def consistent(self) -> Array:
        """Base parameters of the best physically consistent model.

        Rows are counted in what least squares leaves of them, as the slight pull on directions
        that nobody sees expects it.
        """
        own = self.system
        noise = np.sqrt(max(own.rest / max(1, self.rows), LEAST_NOISE))
        system = System(own.A / noise, own.b / noise, own.rest / noise**2)
        return build_feasible_set(self.base, system, Knowledge(prior="none")).roughly(system)
