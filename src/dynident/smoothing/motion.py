"""Motions of logs as splines: samples at their own instants, and what rows tell of coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.dynamics import differentiate_dynamics
from dynident.dynamics.conditions import FREE
from dynident.dynamics.idim import Idim
from dynident.regression.factors import triangularise_rows
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.rows import collect_conditions
from dynident.smoothing.arrow import Eliminated, eliminate_motion
from dynident.smoothing.spline import ACTIVE, Knots, evaluate_spline

BEND = np.array([-1.0, 3.0, -3.0, 1.0])
"""Third difference of coefficients."""
STEP = 1e-5
"""Of a difference by a position [rad or m]."""
SHARE = 1e-3
"""Of the speed over which a sign changes: step of a difference by a speed."""
LEAST_FREEDOM = 0.05
"""Share of its rows that noise keeps at least, whatever the motion has taken of them."""


@dataclass(frozen=True, eq=False)
class Run:
    """Samples without a gap.

    Attributes
    ----------
    own : slice
        Of the log's samples.
    time : ndarray, shape (m,)
        [s]
    q : ndarray, shape (m, n)
        As measured.
    knots : Knots
    """

    own: slice
    time: Array
    q: Array
    knots: Knots

    @cached_property
    def _weighed(self) -> tuple[Integers, Array]:
        return self.knots.weigh(self.time)

    @property
    def place(self) -> Integers:
        """Interval of each sample."""
        return self._weighed[0]

    @property
    def weights(self) -> Array:
        """Of the coefficients in each sample, shape (m, 3, 6)."""
        return self._weighed[1]

    @cached_property
    def edges(self) -> Integers:
        """Where each interval's samples begin, and their end."""
        return np.searchsorted(self.place, np.arange(self.knots.intervals + 1))

    @cached_property
    def compressed(self) -> list[Array]:
        """``[R | z]`` of each interval's positions, shape (at most 6, 6 + n)."""
        rows = np.hstack([self.weights[:, 0], self.q])
        parts = (rows[a:b] for a, b in zip(self.edges, self.edges[1:], strict=False))
        return [triangularise_rows(part)[:ACTIVE] if len(part) else part for part in parts]

    def motion(self, coefficients: Array) -> Array:
        """Positions, speeds and accelerations, shape (3, m, n)."""
        return evaluate_spline(coefficients, *self._weighed)


@dataclass(frozen=True, eq=False)
class Spreads:
    """What a log's samples scatter by.

    Attributes
    ----------
    position : ndarray, shape (n,)
        Standard deviation of each encoder's noise [rad or m].
    bend : ndarray, shape (n,)
        Of third differences of the motion's coefficients [rad or m].
    """

    position: Array
    bend: Array


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations of motion of a run, linearised.

    Attributes
    ----------
    X : ndarray, shape (m, n, p)
    y : ndarray, shape (m, n)
    slopes : ndarray, shape (m, n, n, 3)
        Of the torques by positions, speeds and accelerations.
    stated : ndarray of bool, shape (m, n)
        Which of them are rows.
    sigma : ndarray, shape (n,)
    """

    X: Array
    y: Array
    slopes: Array
    stated: Booleans
    sigma: Array

    def rows(self, weights: Array, part: slice) -> Array:
        """Those of an interval, ``[J | X | y]``, shape (rows, 6 n + p + 1)."""
        m, n, p = self.X[part].shape
        J = np.einsum("tgja,tai->tgij", self.slopes[part], weights[part])
        found = np.concatenate(
            [J.reshape(m, n, ACTIVE * n), self.X[part], self.y[part, :, None]], axis=2
        )
        return np.asarray((found / self.sigma[:, None])[self.stated[part]])


def list_rows(
    run: Run, spreads: Spreads, now: Array, equations: Equations | None, p: int
) -> Iterator[Array]:
    """Rows of one interval after another about changes of coefficients, and the parameters."""
    n = run.q.shape[1]
    a, last = ACTIVE * n, run.knots.intervals - 1
    for k, known in enumerate(run.compressed):
        here = now[k : k + ACTIVE]
        firsts = range(3) if k == last else range(1)
        block = np.zeros((len(known) * n + len(firsts) * n, a + p + 1))
        top = len(known) * n
        R, z = known[:, :ACTIVE], known[:, ACTIVE:]
        block[:top, :a] = np.kron(R, np.diag(1.0 / spreads.position))
        block[:top, -1] = ((z - R @ here) / spreads.position).ravel()
        for i in firsts:
            some = slice(top + i * n, top + (i + 1) * n)
            block[some, i * n : (i + 4) * n] = np.kron(BEND, np.diag(1.0 / spreads.bend))
            block[some, -1] = -(BEND @ here[i : i + 4]) / spreads.bend
        if equations is None:
            yield block
        else:
            part = slice(int(run.edges[k]), int(run.edges[k + 1]))
            yield np.vstack([block, equations.rows(run.weights, part)])


def eliminate_run(
    run: Run, spreads: Spreads, now: Array, equations: Equations | None, p: int
) -> Eliminated:
    """The motion of a run eliminated about some coefficients."""
    return eliminate_motion(run.q.shape[1], p, list_rows(run, spreads, now, equations, p))


@dataclass(frozen=True, eq=False)
class Taken:
    """How much of a run's rows the motion has taken, and how well it is known.

    Attributes
    ----------
    position, bend, torque : ndarray, shape (n,)
        Sums over rows of the variance of what the motion makes of them, over theirs.
    variance : ndarray, shape (3, m, n)
        Of positions, speeds and accelerations at known parameters.
    """

    position: Array
    bend: Array
    torque: Array
    variance: Array


def measure_taken(
    run: Run, found: Eliminated, spreads: Spreads, equations: Equations | None
) -> Taken:
    """What the motion takes of each kind of rows, interval by interval."""
    m, n = run.q.shape
    position, bend, torque = np.zeros((3, n))
    variance = np.empty((3, m, n))
    for k, F in found.roots():
        own = np.moveaxis(F.reshape(ACTIVE, n, ACTIVE * n), 0, 1)
        part = slice(int(run.edges[k]), int(run.edges[k + 1]))
        B = run.weights[part]
        sizes = np.sum((B[:, None] @ own) ** 2, axis=-1)
        variance[:, part] = np.moveaxis(sizes, 2, 0)
        position += variance[0, part].sum(axis=0)
        for i in range(3) if k == run.knots.intervals - 1 else range(1):
            bend += np.sum((BEND @ own[:, i : i + 4]) ** 2, axis=-1)
        if equations is not None:
            J = np.einsum("tgja,tai->tgij", equations.slopes[part], B)
            reached = J.reshape(len(B), n, ACTIVE * n) @ F
            torque += np.sum(np.sum(reached**2, axis=2) * equations.stated[part], axis=0)
    torque = torque if equations is None else torque / equations.sigma**2
    return Taken(position / spreads.position**2, bend / spreads.bend**2, torque, variance)


def renew_spreads(
    runs: Sequence[Run],
    coefficients: Sequence[Array],
    taken: Sequence[Taken],
    floor: Array,
    known: Array,
) -> Spreads:
    """Standard deviations by what is left of rows: ``sum r^2 / (rows - taken)`` (MacKay 1992).

    Parameters
    ----------
    floor, known : ndarray, shape (n,)
        Of the positions': the least, and those that are given, not a number elsewhere.
    """
    n = runs[0].q.shape[1]
    squares, bends, counts = np.zeros(n), np.zeros(n), np.zeros(2)
    for run, c in zip(runs, coefficients, strict=True):
        squares += np.sum((run.q - run.motion(c)[0]) ** 2, axis=0)
        bends += np.sum(np.diff(c, 3, axis=0) ** 2, axis=0)
        counts += len(run.q), len(c) - 3
    lost = np.sum([[each.position, each.bend] for each in taken], axis=0)
    free = np.maximum(counts[:, None] - lost, LEAST_FREEDOM * counts[:, None])
    smallest = np.finfo(float).eps * (1.0 + max(float(np.abs(run.q).max()) for run in runs))
    position = np.maximum(np.sqrt(squares / free[0]), np.maximum(floor, smallest))
    return Spreads(
        np.where(np.isnan(known), position, known),
        np.maximum(np.sqrt(bends / free[1]), smallest),
    )


def differentiate_torque(
    idim: Idim, log: GeneralisedSamples, theta: Array, motion: Array, width: Array
) -> Array:
    """Slopes of a log's torques by its positions, speeds and accelerations, (m, n, n, 3).

    Those of bodies and rotors are exact; of friction they are differences that are small beside
    the speed over which its sign changes.
    """
    model, plain = idim.settled(theta)
    phi, _ = model.split(plain)
    q, dq, ddq = motion
    K, D, M = differentiate_dynamics(model.tree, phi, q, dq, ddq)
    met = FREE
    if model.structure.special_columns:
        around = collect_conditions(model, log, slice(0, len(q)))
        met = model.find_conditions(q, dq, ddq, log.rate, width, None, around)
    total = np.stack([K, D, M], axis=3)
    if met.load is not None:
        bend, h = np.empty_like(met.load), 1e-3 * (1e-3 + np.abs(met.load).max(axis=0))
        for gear in range(met.load.shape[1]):
            sides = []
            for sign in (1.0, -1.0):
                load = met.load.copy()
                load[:, gear] += sign * h[gear]
                sides.append(model.drive_torque(plain, q, dq, ddq, width, replace(met, load=load)))
            turns = model.gears[gear].turns
            bend[:, gear] = ((sides[0] - sides[1]) @ turns) / (turns @ turns) / (2.0 * h[gear])
        for j in range(total.shape[2]):
            for a in range(3):
                rigid = np.ascontiguousarray(total[:, :, j, a])
                total[:, :, j, a] += model.apply_load_slopes(rigid, bend)
    total[..., 2] += model.rotors(plain)
    for j in range(q.shape[1]):
        for a, h in ((0, STEP), (1, SHARE * width[j])):
            sides = []
            for sign in (1.0, -1.0):
                moved = [q, dq]
                moved[a] = moved[a].copy()
                moved[a][:, j] += sign * h
                sides.append(model.drive_torque(plain, *moved, ddq, width, met))
            total[:, :, j, a] += (sides[0] - sides[1]) / (2.0 * h)
    return total
