"""How the noise of encoders reaches the rows: through filters, differences and the dynamics.

White noise of an encoder becomes errors of q, dq and ddq that belong together, and these errors
of ``y - X beta``. To first order, and where the robot hardly moves on over the memory of the
filters, a row of group g errs by ``sum_j a_gj(t)^T n_gj(t)``: a are the derivatives of the row's
equation by joint j's position, speed and acceleration, n the noise of these three behind the
group's decimation filter, whose covariance is that of impulse responses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.dynamics.columns import fill_rows
from dynident.dynamics.contacts import evaluate_levers, map_wrench_to_joints
from dynident.dynamics.following import find_conditions
from dynident.dynamics.parameters import Packing
from dynident.filters.decimate import group_equal_filters
from dynident.filters.filters import count_filter_edge, differentiate_twice, filter_zero_phase
from dynident.recording.prepare import Samples
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem
from dynident.regression.rows import KEEP_BYTES, Rows, collect_conditions

RINGING = 16
"""Periods of its cutoff after which nothing is left of a filter's impulse response."""
SMALLEST = 1e-6
"""Step of a difference, where the noise is smaller [rad, m and their rates]."""


def compute_impulse_responses(cutoff: float, rate: float) -> Array:
    """What q, dq and ddq make of one unit of one sample of a position, shape (3, samples).

    That of the zero-phase filter and of the differences behind it (`prepare`), as they are.
    """
    half = 8 + (int(np.ceil(RINGING * rate / cutoff)) if cutoff < 0.5 * rate else 0)
    impulse = np.zeros((2 * half + 1, 1))
    impulse[half] = 1.0
    q = filter_zero_phase(impulse, cutoff, rate)
    return np.hstack([q, *differentiate_twice(q, rate)]).T


def propagate_white_noise(response: Array, taps: Array) -> Array:
    """Covariance of q, dq and ddq behind a decimation filter, for a unit of white noise, (3, 3).

    By parity the speed's noise is uncorrelated with the others', and ``cov(q, ddq)`` is about
    ``-var(dq)``.
    """
    filtered = np.array([np.convolve(each, taps[::-1]) for each in response])
    return np.asarray(filtered @ filtered.T)


def factorise_covariance(covariance: Array) -> Array:
    """L of ``covariance = L L^T``, whatever its rank."""
    scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def estimate_encoder_noise(log: Samples) -> Array:
    """Standard deviation of each encoder's noise, by what its filter takes away, shape (n,).

    White noise loses the share ``sum (delta - h)^2`` of its variance to the filter of impulse
    response h. What else of the motion is above the cutoff counts as noise.
    """
    found = np.empty(log.measured.shape[1])
    for j, cutoff in enumerate(log.position_hz):
        if cutoff >= 0.5 * log.rate:
            raise InputError(
                f"{log.name}: positions are not filtered, so nothing shows the noise of their "
                "encoders; give position_std, or lower position_hz"
            )
        lost = -compute_impulse_responses(cutoff, log.rate)[0]
        lost[len(lost) // 2] += 1.0
        squares, count = 0.0, 0
        margin = count_filter_edge(cutoff, log.rate)
        for start, stop in log.runs:
            x = log.measured[start:stop, j : j + 1]
            rough = (x - filter_zero_phase(x, cutoff, log.rate))[margin : len(x) - margin]
            squares, count = squares + float(np.sum(rough**2)), count + len(rough)
        found[j] = np.sqrt(squares / max(1, count) / float(lost @ lost))
    return found


@dataclass(frozen=True)
class NoiseLevels:
    """Noise of one log."""

    position: Array
    """Standard deviation of each encoder [rad or m], shape (n,)."""
    wrench: tuple[float, float] | None = None
    """Of the forces and moments of measured contacts [N, Nm]; None where nobody says."""


@dataclass(frozen=True)
class NoisyRows:
    """Rows of one group over a stretch of a log, and how noise reaches them."""

    X: Array
    y: Array
    """`X`, `y`: shapes (r, k), (r,)."""
    sample: np.ndarray
    """Shape (r,), of int."""
    B: Array
    """Shape (r, 3 n, k). Derivatives of X by independent units of the noise of the n joints that
    reach these rows: those by q, dq and ddq times L of their covariance ``L L^T`` behind the
    group's filter."""
    b: Array
    """Those of y, shape (r, 3 n)."""
    known: Array
    """Variance by the wrenches, behind the filter [(Nm or N)^2], shape (r,)."""

    def error(self, beta: Array) -> Array:
        """``y - X beta``."""
        return np.asarray(self.y - self.X @ beta)

    def reach(self, beta: Array) -> Array:
        """Minus the derivatives of the error by independent units of noise, shape (r, 3 n)."""
        k = self.B.shape[2]
        return np.asarray((self.B.reshape(-1, k) @ beta).reshape(self.b.shape) - self.b)

    def spread(self, weights: Array) -> Array:
        """``w^T B`` of each row, shape (r, k); weights have the shape of `b`."""
        return np.asarray((weights[:, None] @ self.B)[:, 0])


@dataclass(frozen=True)
class Propagation:
    """Rows of a problem with the noise of their motion."""

    problem: Problem
    levels: tuple[NoiseLevels, ...]

    @cached_property
    def packing(self) -> Packing:
        """Where the kept columns stand in packed rows."""
        return self.problem.idim.packing(self.problem.base.kept)

    def passes(self) -> Iterator[Iterator[tuple[NoisyRows, ...]]]:
        """Each log's groups, stretch by stretch; kept where they are few."""
        return self._made() if self._kept is None else map(iter, self._kept)

    @cached_property
    def keeps(self) -> bool:
        """Whether the rows are few enough to be kept."""
        rows, n = self.problem.factors.counts, self.problem.robot.n
        widths = np.array([len(columns) + 2 for columns in self.problem.columns])
        return 8 * 3 * n * float(rows @ widths) <= KEEP_BYTES

    @cached_property
    def _kept(self) -> tuple[tuple[tuple[NoisyRows, ...], ...], ...] | None:
        return tuple(map(tuple, self._made())) if self.keeps else None

    def _made(self) -> Iterator[Iterator[tuple[NoisyRows, ...]]]:
        for log, levels, stretches in zip(
            self.problem.samples, self.levels, self.problem.passes(), strict=True
        ):
            through = pass_through_filters(log, levels.position)
            yield map(partial(self._noisy, log, levels, *through), stretches)

    def _noisy(
        self,
        log: GeneralisedSamples,
        levels: NoiseLevels,
        steps: Array,
        roots: Sequence[Array],
        rows: Rows,
    ) -> tuple[NoisyRows, ...]:
        """One stretch: the equations are differentiated at the centres of its rows."""
        n, where = self.problem.robot.n, np.unique(np.concatenate(rows.sample))
        slopes = self._slopes(log, where, steps)
        forces = self._forces(log, levels.wrench, where)
        found = []
        for g, columns in enumerate(self.problem.columns):
            entries, order = self.packing.joints[g]
            places = [order.tolist().index(column) for column in columns]
            at = np.searchsorted(where, rows.sample[g])
            D = np.empty((len(at), n, 3, len(columns)))
            d = np.empty((len(at), n, 3))
            for j in range(n):
                for a in range(3):
                    X, y = slopes[j][a]
                    D[:, j, a] = X[at, entries][:, places]
                    # rows of a linearised model have X shift in y
                    d[:, j, a] = y[at, g] + D[:, j, a] @ self.problem.base.shift[columns]
            taps = log.filters[g].taps
            known = np.sum(forces[at, :, g] ** 2, axis=1) * float(taps @ taps)
            # joints of other limbs reach no row of this one
            near = np.flatnonzero(np.any(D != 0.0, axis=(0, 2, 3)) | np.any(d != 0.0, axis=(0, 2)))
            own = (rows.X[g], rows.y[g], rows.sample[g])
            root = np.swapaxes(roots[g][near], 1, 2)
            B = (root @ D[:, near]).reshape(len(at), 3 * len(near), len(columns))
            b = (root @ d[:, near, :, None]).reshape(len(at), 3 * len(near))
            found.append(NoisyRows(*own, B, b, known))
        return tuple(found)

    def _slopes(
        self, log: GeneralisedSamples, where: Integers, steps: Array
    ) -> list[list[tuple[Array, Array]]]:
        """Derivatives of packed rows and right-hand sides by each joint's q, dq and ddq.

        By central differences over the noise's own standard deviation: of the sign of a speed
        that is lost in noise that has the size it acts with, where a derivative has none.
        """
        n = self.problem.robot.n
        found: list[list[tuple[Array, Array]]] = []
        for j in range(n):
            found.append([])
            for a in range(3):
                h = float(steps[j, a])
                sides = []
                for sign in (1.0, -1.0):
                    motion = [signal[where] for signal in (log.q, log.dq, log.ddq)]
                    motion[a][:, motion[a].shape[1] - n + j] += sign * h
                    sides.append(self._equations(log, where, motion))
                (X, y), (X0, y0) = sides
                found[j].append(((X - X0) / (2.0 * h), (y - y0) / (2.0 * h)))
        return found

    def _equations(
        self, log: GeneralisedSamples, where: Integers, motion: Sequence[Array]
    ) -> tuple[Array, Array]:
        """Packed rows, and what of the right-hand side depends on the motion, at some samples."""
        idim = self.problem.idim
        q, dq, ddq = motion
        packed = np.zeros((len(where), self.packing.width))
        met = find_conditions(
            idim, q, dq, ddq, log.rate, None, None, collect_conditions(idim, log, where)
        )
        fill_rows(idim, self.packing, q, dq, ddq, packed, None, met)
        tau = np.zeros((len(where), idim.tree.dof))
        for contact in idim.robot.contacts:
            if contact.name in log.wrenches:
                wrench = log.wrenches[contact.name][where]
                tau += map_wrench_to_joints(idim.tree, idim.robot, contact, q, wrench)
        return packed, tau

    def _forces(
        self, log: GeneralisedSamples, wrench: tuple[float, float] | None, where: Integers
    ) -> Array:
        """``J_l^T`` times the noise of each measured component, shape (samples, m, dof)."""
        idim = self.problem.idim
        found = [np.zeros((len(where), 0, idim.tree.dof))]
        for contact in idim.robot.contacts:
            if wrench is not None and contact.name in log.wrenches:
                levers = evaluate_levers(idim.tree, idim.robot, contact, log.q[where])
                found.append(np.repeat(wrench, 3)[: contact.components, None] * levers)
        return np.concatenate(found, axis=1)


def pass_through_filters(log: GeneralisedSamples, position: Array) -> tuple[Array, list[Array]]:
    """What a log's filters make of the noise of its encoders.

    Standard deviation of each joint's q, dq and ddq, at least `SMALLEST`, shape (n, 3), and of each
    group L of the covariance ``L L^T`` of the three behind its filter, shape (n, 3, 3).
    """
    known = {hz: compute_impulse_responses(hz, log.rate) for hz in set(log.position_hz)}
    rms = np.array([np.sqrt(np.sum(known[hz] ** 2, axis=1)) for hz in log.position_hz])
    roots = [np.empty(0)] * len(log.filters)
    for f, groups in group_equal_filters(log.filters):
        of = {
            hz: factorise_covariance(propagate_white_noise(response, f.taps))
            for hz, response in known.items()
        }
        root = np.array([of[hz] for hz in log.position_hz])
        for g in groups:
            roots[g] = root * position[:, None, None]
    return np.maximum(position[:, None] * rms, SMALLEST), roots
