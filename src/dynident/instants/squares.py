"""How well a model fits a scene under one reading of its columns, by small factors alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from dynident.consistency.feasible_set import build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array, Integers
from dynident.core.errors import ComputationError
from dynident.core.factors import System
from dynident.dynamics.base import BaseParameters

FAINT = 1e-6
"""Diagonal of a triangular factor over its column's length below which nothing excites it; rows of
that size keep it from exploding."""
COARSER = 10.0
"""Noise in which rows are counted, over what least squares leaves, where that is too little."""
LEAST = 1e-150
"""Length of a column that is taken for the length of one of zeros."""
LEAST_NOISE = 1e-12
"""Squared, of a row: the torque of all rows of a joint is 1."""
KEPT_ROWS = 0.6
"""Share of rows that another reading of a log has to keep."""
OTHER_UNIT = 3.0
"""Times that torques are off, from which their unit is another."""
NO_ERROR = 0.001
"""Relative error below which there is none."""


def triangularise(rows: Array, rest: float = 0.0) -> System:
    """Rows ``[X | y]`` as a triangular system; `rest` is what no beta explains beside."""
    p = rows.shape[1] - 1
    R = factorise(rows)
    lengths = np.sqrt(np.sum(R[:, :p] ** 2, axis=0))
    if np.any(np.abs(np.diagonal(R)[:p]) <= FAINT * lengths):
        faint = np.diag(FAINT * np.maximum(lengths, LEAST))
        R = factorise(np.vstack([R, np.column_stack([faint, np.zeros(p)])]))
    return System(R[:p, :p], R[:p, p], rest + float(R[p, p] ** 2))


def factorise(rows: Array) -> Array:
    """The square triangular factor of some rows, its diagonal not negative."""
    missing = rows.shape[1] - len(rows)
    if missing > 0:
        rows = np.vstack([rows, np.zeros((missing, rows.shape[1]))])
    R = np.linalg.qr(rows, mode="r")
    return np.asarray(np.where(np.diagonal(R) < 0.0, -1.0, 1.0)[:, None] * R)


@dataclass(frozen=True, eq=False)
class Factor:
    """The regressor's rows of a group, ``X = Q R``, of k columns among the base parameters."""

    columns: Integers
    Q: Array
    R: Array

    def split(self, y: Array) -> tuple[Array, Array]:
        """Right-hand sides in the rows of R, and what no beta explains of them."""
        z = self.Q.T @ y
        return z, y - self.Q @ z


@dataclass(frozen=True, eq=False)
class Columns:
    """Factors of each joint's rows beside all torque columns."""

    base: BaseParameters
    factors: tuple[Factor, ...]
    sides: tuple[Array, ...]
    """Of the m torque columns, in the rows of these factors, shape (k, m)."""
    rests: tuple[Array, ...]
    """Triangular factors of what no beta explains of them, shape (m, m)."""
    rows: int
    """Of all joints together."""
    blur: Array
    """See `LeastSquares`, shape (n,)."""
    beside: LeastSquares | None = None
    """Of other logs, which the same model has to explain."""

    def read(self, reading: Array) -> LeastSquares:
        """The least-squares problem of one reading of the torque columns, shape (n, m).

        It says which combination of the columns is each joint's torque.
        """
        sides = tuple(z @ own for z, own in zip(self.sides, reading, strict=True))
        left = zip(self.rests, reading, strict=True)
        rests = np.array([float(np.sum((W @ own) ** 2)) for W, own in left])
        return LeastSquares(
            self.base, self.factors, sides, rests, self.rows, self.blur, beside=self.beside
        )

    def extra(self, torque: Array, count: int) -> Array:
        """How much of the last columns each joint's torque has beyond the model, shape (n, count).

        Which combination of the columns each joint's torque is, `torque` says, shape (n, m).
        """
        n, p = len(torque), self.base.count
        weights, rows = np.sqrt(self.read(torque).scale[:n]), []
        if self.beside is not None:
            known = self.beside.system
            rows.append(np.column_stack([known.A, np.zeros((p, n * count)), known.b]))
        for j, (factor, Z, W) in enumerate(zip(self.factors, self.sides, self.rests, strict=True)):
            own = slice(p + j * count, p + (j + 1) * count)
            both = np.zeros((len(Z) + len(W), p + n * count + 1))
            both[: len(Z), factor.columns] = factor.R
            both[:, own] = np.vstack([Z, W])[:, -count:]
            both[:, -1] = np.vstack([Z, W]) @ torque[j]
            rows.append(weights[j] * both)
        return triangularise(np.vstack(rows)).solve()[p:].reshape(n, count)


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Factors of a log's rows, each group counted in what no model explains of it at best."""

    base: BaseParameters
    factors: tuple[Factor, ...]
    """Of the log's groups."""
    sides: tuple[Array, ...]
    """Right-hand sides in the rows of these, shapes (k,)."""
    rests: Array
    """Squares of what no beta explains of them, shape (groups of the log,)."""
    kept: int
    """Rows of the log."""
    blur: Array
    """Share of each group's size that any model leaves, as far as is known beforehand, shape
    (groups of the log,)."""
    sizes: Array | None = None
    """What groups are counted in, squared, where it is not the right-hand sides, shape (groups of
    the log,)."""
    beside: LeastSquares | None = None
    """Of other logs, whose groups come behind."""

    @cached_property
    def squares(self) -> Array:
        """``||y_j||^2``, shape (groups,)."""
        own = self.rests + np.array([float(z @ z) for z in self.sides])
        return own if self.beside is None else np.concatenate([own, self.beside.squares])

    @cached_property
    def counted(self) -> Array:
        """What the groups are counted in, squared, shape (groups,)."""
        own = self.squares[: len(self.factors)] if self.sizes is None else self.sizes
        return own if self.beside is None else np.concatenate([own, self.beside.counted])

    @cached_property
    def blurred(self) -> Array:
        """Shares of the groups that any model leaves, shape (groups,)."""
        return self.blur if self.beside is None else np.append(self.blur, self.beside.blurred)

    @property
    def rows(self) -> int:
        """Of all logs."""
        return self.kept + (0 if self.beside is None else self.beside.rows)

    def as_many_as(self, other: LeastSquares) -> bool:
        """Whether few rows are lost against others, and of no joint all."""
        none = (self.squares == 0.0) & (other.squares > 0.0)
        return self.rows >= KEPT_ROWS * other.rows and not np.any(none)

    @property
    def scale(self) -> Array:
        """Weights of the groups' squares: each in what is left of it at best; 0 without torque."""
        weights = 1.0 / np.maximum(self.counted * self.blurred**2, np.finfo(float).tiny)
        weights[(self.squares == 0.0) | (self.counted == 0.0)] = 0.0
        return weights

    @cached_property
    def sharp_scale(self) -> Array:
        """Weights of the groups' squares, each in what least squares leaves of it."""
        return self.scale * (self.blurred / np.maximum(self.free_errors(), NO_ERROR)) ** 2

    @cached_property
    def system(self) -> System:
        """All groups in one triangular system."""
        beside = None if self.beside is None else self.beside.system
        return self.stack(self.scale[: len(self.factors)], beside)

    def weigh(self, weights: Array) -> System:
        """The same with other weights of the groups' squares."""
        own, others = np.split(weights, [len(self.factors)])
        return self.stack(own, None if self.beside is None else self.beside.weigh(others))

    def stack(self, weights: Array, beside: System | None) -> System:
        """The log's own groups, weighed, and those of others in one triangular system."""
        p = self.base.count
        ends = np.cumsum([0, *(len(factor.R) for factor in self.factors)])
        rows = np.zeros((ends[-1] + (0 if beside is None else p), p + 1))
        groups = zip(self.factors, self.sides, np.sqrt(weights), ends[:-1], ends[1:], strict=True)
        for factor, z, weight, start, stop in groups:
            rows[start:stop, factor.columns] = weight * factor.R
            rows[start:stop, p] = weight * z
        rest = float(weights @ self.rests)
        if beside is not None:
            rows[ends[-1] :, :p], rows[ends[-1] :, p] = beside.A, beside.b
            rest += beside.rest
        return triangularise(rows, rest)

    def errors(self, beta: Array) -> Array:
        """Each group's unexplained share of its torque, 0 where it has none, shape (groups,)."""
        groups = zip(self.factors, self.sides, self.rests, strict=True)
        left = [np.sum((z - own.R @ beta[own.columns]) ** 2) + rest for own, z, rest in groups]
        count = len(left)
        share = np.zeros(count)
        told = (self.squares[:count] > 0.0) & (self.counted[:count] > 0.0)
        np.divide(left, self.counted[:count], out=share, where=told)
        own = np.asarray(np.sqrt(share))
        return own if self.beside is None else np.concatenate([own, self.beside.errors(beta)])

    def free(self) -> float:
        """Mean squared error of least squares, over the groups, each in its blur."""
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

    def project(self, group: int, sides: Array) -> Array:
        """Right-hand sides of a group of the log in the rows of the system, shape (p, m).

        They are given in the rows of the group's factor, weighed, shape (k, m).
        """
        factor, products = self.factors[group], np.zeros((self.base.count, sides.shape[1]))
        products[factor.columns] = factor.R.T @ sides
        return np.asarray(solve_triangular(self.system.A, products, trans="T", check_finite=False))

    def file_error(self) -> float:
        """Mean squared error of the robot file's inertials with the best drives beside them."""
        rest = self.system.b - self.system.A @ self.fit_drives()
        return float(np.sum(rest**2) + self.system.rest)

    def fit_drives(self) -> Array:
        """Base parameters of the robot file's inertials with the best drives beside them."""
        idim, A = self.base.idim, self.system.A
        beta = self.base.matrix @ idim.nominal
        drives = self.base.matrix[:, idim.inertial :]
        found = np.linalg.lstsq(A @ drives, self.system.b - A @ beta, rcond=None)[0]
        return np.asarray(beta + drives @ found)

    def consistent(self) -> Array:
        """Base parameters of the best physically consistent model.

        Rows are counted in what least squares leaves of them, as the slight pull on directions
        that nobody sees expects it; in more, where that is too little for the solver to tell.
        """
        try:
            return self.fit_bodies(1.0)
        except ComputationError:
            return self.fit_bodies(COARSER)

    def fit_bodies(self, coarser: float) -> Array:
        """The same of rows that are counted in so many times what least squares leaves of them."""
        own, unit = self.system, self.unit
        noise = coarser * np.sqrt(max(own.rest / max(1, self.rows), LEAST_NOISE)) / unit
        system = System(own.A / noise, own.b / (unit * noise), own.rest / (unit * noise) ** 2)
        known = Knowledge(prior="none", gyration=0.0)
        return unit * build_feasible_set(self.base, system, known).roughly(system)

    @property
    def unit(self) -> float:
        """How many times the file's bodies are in the torques, where that is far off; else 1.

        What nobody sees is pulled to the file's bodies, of that unit of torque.
        """
        idim = self.base.idim
        asked = self.system.A @ (self.base.matrix @ idim.nominal)
        square = float(asked @ asked)
        times = abs(float(asked @ self.system.b)) / square if square > 0.0 else 1.0
        return 1.0 if times == 0.0 or 1.0 / OTHER_UNIT < times < OTHER_UNIT else times


def add_prior(base: BaseParameters, system: System) -> System | None:
    """A system of base parameters as one of all, with what is believed of the robot's bodies.

    None where nothing is believed: ``||A B theta - b||^2 + ||P theta - t||^2``.
    """
    prior = Knowledge().of(base.idim.robot)
    if prior.weight <= 0.0:
        return None
    P, t = prior.rows(base.matrix.shape[1])
    rows = np.vstack([system.A @ base.matrix, P])
    return triangularise(np.column_stack([rows, [*system.b, *t]]), system.rest)


def join(problems: Sequence[LeastSquares]) -> LeastSquares | None:
    """Those of several logs as one; None of none."""
    found = None
    for each in reversed(problems):
        found = replace(each, beside=found)
    return found


def average_errors(errors: Array) -> float:
    """Geometric mean over the groups, in which each that becomes so many times better counts alike.

    What is small beside its friction, as torques of wrists are, has large errors under any reading,
    and these would hide all else in a mean of squares. Groups without a row, whose errors are 0,
    are not counted: equations of a base that nothing measures the wrench of.
    """
    told = errors[errors > 0.0]
    return float(np.exp(np.mean(np.log(np.maximum(told, NO_ERROR))))) if len(told) else 0.0


def project_onto_span(rows: Array, columns: Array, least: float) -> Array:
    """Columns as the span of a matrix has them, of singular values above a share of the largest."""
    lengths = np.sqrt(np.sum(rows**2, axis=0))
    Q, R = np.linalg.qr(rows / np.where(lengths > 0.0, lengths, 1.0))
    U, values, _ = np.linalg.svd(R)
    span = Q @ U[:, values > least * values[0]]
    return np.asarray(span @ (span.T @ columns))


def sum_correlations(scores: Array, farthest: float) -> float:
    """Sum of the correlations of a sequence, at least 1.

    Their weights fall to zero at a share of its length, `farthest`.
    """
    length = max(1, int(farthest * len(scores)))
    square = float(np.sum(scores**2))
    if square == 0.0:
        return 1.0
    sums = [float(np.sum(scores[k:] * scores[:-k])) for k in range(1, length)]
    weights = 1.0 - np.arange(1, length) / length
    return max(1.0, 1.0 + 2.0 * float(weights @ np.array(sums)) / square)
