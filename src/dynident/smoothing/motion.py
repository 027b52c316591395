"""Motions of logs as splines: samples at their own instants, and what rows tell of coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.dynamics import differentiate_dynamics
from dynident.dynamics.conditions import FREE, Conditions
from dynident.dynamics.following import (
    add_drive_torque,
    apply_load_slopes,
    find_conditions,
    view_friction,
)
from dynident.dynamics.idim import Idim
from dynident.dynamics.torques import evaluate_drive_torques
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.rows import collect_conditions
from dynident.smoothing.arrow import EliminatedMotion, eliminate_motion
from dynident.smoothing.spline import ACTIVE, Knots, evaluate_spline

BEND = np.array([-1.0, 3.0, -3.0, 1.0])
"""Third difference of coefficients."""
STEP = 1e-5
"""Of a difference by a position [rad or m]."""
SHARE = 1e-4
"""Of the speed over which a sign changes: step of a difference by a speed."""
LEAST_JITTER = 1e-9
"""Of instants: stamps are not finer [s]."""
LEAST_NOISE = 1e-10
"""Of positions: less than that of any encoder, and far above their last digits [rad or m]."""
LEAST_FREEDOM = 0.05
"""Share of its rows that noise keeps at least, whatever the motion has taken of them."""


@dataclass(frozen=True, eq=False)
class MotionRun:
    """Samples without a gap."""

    own: slice
    """Of the log's samples."""
    stamps: Array
    """When they were taken, by the log [s], shape (m,)."""
    q: Array
    """As measured, shape (m, n)."""
    knots: Knots
    late: Array
    """By how much later they were taken [s], shape (m,)."""

    @cached_property
    def _weighed(self) -> tuple[Integers, Array]:
        return self.knots.weigh(self.stamps + self.late)

    @property
    def weights(self) -> Array:
        """Of the coefficients in each sample, and in its derivatives, shape (m, 4, 6)."""
        return self._weighed[1]

    @cached_property
    def parts(self) -> list[Integers]:
        """Samples of each interval."""
        place = self._weighed[0]
        order = np.argsort(place, kind="stable")
        inner = np.searchsorted(place[order], np.arange(1, self.knots.intervals))
        return np.split(order, inner)

    @property
    def bends(self) -> list[range]:
        """Third differences that are counted in each interval, by their first coefficient."""
        return [range(1)] * (self.knots.intervals - 1) + [range(3)]

    def motion(self, coefficients: Array) -> Array:
        """Positions and their first three derivatives, shape (4, m, signals)."""
        return evaluate_spline(coefficients, *self._weighed)


@dataclass(frozen=True, eq=False)
class SampleSpreads:
    """What a log's samples scatter by: standard deviations."""

    position: Array
    """Of each encoder's noise [rad or m], shape (n,)."""
    bend: Array
    """Of third differences of the motion's coefficients [rad or m], shape (n,)."""
    instant: float
    """Of the instants at which samples were taken, about their stamps [s]."""


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations of motion of a run, linearised."""

    X: Array
    """Shape (m, n, p)."""
    y: Array
    """Shape (m, n)."""
    slopes: Array
    """Of the torques by positions, speeds and accelerations, shape (m, n, n, 3)."""
    stated: Booleans
    """Which of them are rows, shape (m, n)."""
    sigma: Array
    """Shape (n,)."""

    @classmethod
    def none(cls, m: int, n: int) -> Equations:
        """No rows of them, nor parameters."""
        nothing = np.zeros((m, n, 0))
        stated = np.zeros((m, n), dtype=bool)
        return cls(nothing, np.zeros((m, n)), np.zeros((m, n, n, 3)), stated, np.ones(n))


@dataclass(frozen=True, eq=False)
class IntervalEffects:
    """What the coefficients of an interval, and when its samples were taken, do to these."""

    slopes: Array
    """Of positions and torques over their spreads, by coefficients, shape (t, 2 n, 6 n)."""
    rates: Array
    """By the instants, shape (t, 2 n)."""


@dataclass(frozen=True, eq=False)
class LinearRun:
    """Rows of a run about its coefficients, its instants and the parameters."""

    run: MotionRun
    spreads: SampleSpreads
    equations: Equations
    now: Array
    """About which they are linearised, shape (coefficients, n)."""
    pivots: Array
    """Shape (m, 6 n + p + 2). What tells how late each sample is: ``[r | h | z]`` of ``r late + h
    (coefficients, parameters) = z``, as changes of the first two."""
    eliminated: EliminatedMotion

    @classmethod
    def of(
        cls, run: MotionRun, spreads: SampleSpreads, now: Array, equations: Equations | None
    ) -> LinearRun:
        """The motion and the instants of a run eliminated about some coefficients."""
        m, n = run.q.shape
        told = Equations.none(m, n) if equations is None else equations
        p = told.X.shape[2]
        pivots = np.empty((m, ACTIVE * n + p + 2))
        found = cls(run, spreads, told, now, pivots, EliminatedMotion.none(n))
        return replace(found, eliminated=eliminate_motion(n, p, found.rows()))

    @cached_property
    def motion(self) -> Array:
        """At the coefficients, shape (4, m, n)."""
        return self.run.motion(self.now)

    def reach(self, part: Integers) -> IntervalEffects:
        """What reaches some samples."""
        B, told, n = self.run.weights[part], self.equations, self.run.q.shape[1]
        t = len(B)
        slopes, rates = np.zeros((t, 2 * n, ACTIVE, n)), np.zeros((t, 2 * n))
        for j, sigma in enumerate(self.spreads.position):
            slopes[:, j, :, j] = B[:, 0] / sigma
        rates[:, :n] = self.motion[1, part] / self.spreads.position
        own = told.slopes[part] * (told.stated[part] / told.sigma)[:, :, None, None]
        slopes[:, n:] = np.einsum("tgja,tai->tgij", own, B[:, :3])
        rates[:, n:] = np.einsum("tgja,atj->tg", own, self.motion[1:, part])
        return IntervalEffects(slopes.reshape(t, 2 * n, ACTIVE * n), rates)

    def rows(self) -> Iterator[Array]:
        """Those of one interval after another, instants eliminated, which leaves `pivots`."""
        run, told, spreads = self.run, self.equations, self.spreads
        n, p = run.q.shape[1], told.X.shape[2]
        a = ACTIVE * n
        for k, (part, bends) in enumerate(zip(run.parts, run.bends, strict=True)):
            here = self.now[k : k + ACTIVE]
            bent = np.zeros((len(bends) * n, a + p + 1))
            for i in bends:
                some = slice(i * n, (i + 1) * n)
                bent[some, i * n : (i + 4) * n] = np.kron(BEND, np.diag(1.0 / spreads.bend))
                bent[some, -1] = -(BEND @ here[i : i + 4]) / spreads.bend
            reached = self.reach(part)
            scale = told.stated[part] / told.sigma
            t = len(scale)
            whole = np.zeros((t, 2 * n, a + p + 1))
            whole[:, :, :a] = reached.slopes
            whole[:, :n, -1] = (run.q[part] - self.motion[0, part]) / spreads.position
            whole[:, n:, a:-1] = told.X[part] * scale[:, :, None]
            whole[:, n:, -1] = told.y[part] * scale
            # a reflection turns the instant's column into its own row, which says 0 of all else
            own, rest = 1.0 / spreads.instant, -run.late[part] / spreads.instant
            length = np.sqrt(own**2 + np.sum(reached.rates**2, axis=1))
            along = np.einsum("tr,trc->tc", reached.rates, whole)
            along[:, -1] += own * rest
            self.pivots[part, 0] = length
            self.pivots[part, 1:] = along / length[:, None]
            lifted = self.pivots[part, 1:].copy()
            lifted[:, -1] += rest
            whole -= reached.rates[:, :, None] * (lifted / (length + own)[:, None])[:, None]
            kept = np.hstack([np.ones((t, n), dtype=bool), told.stated[part]])
            yield np.vstack([bent, whole[kept]])

    @property
    def evidence(self) -> float:
        """Minus twice the logarithm of the likelihood of positions, all else integrated out.

        By Laplace's approximation at the coefficients, for runs without equations.
        """
        run, spreads, (m, n) = self.run, self.spreads, self.run.q.shape
        bends = np.diff(self.now, 3, axis=0)
        squares = np.sum(((run.q - self.motion[0]) / spreads.position) ** 2)
        squares += np.sum((bends / spreads.bend) ** 2) + np.sum((run.late / spreads.instant) ** 2)
        scales = m * np.sum(np.log(spreads.position)) + len(bends) * np.sum(np.log(spreads.bend))
        scales += m * np.log(spreads.instant) + np.sum(np.log(self.pivots[:, 0]))
        heads, tail = self.eliminated.heads[:, :, :n], self.eliminated.tail
        diagonal = [np.diagonal(heads, axis1=1, axis2=2).ravel(), np.diag(tail)]
        scales += np.sum(np.log(np.abs(np.concatenate(diagonal))))
        return float(squares + 2.0 * scales)

    def delays(self, step: Array, beta: Array) -> Array:
        """Changes of the instants with a step of the coefficients to some parameters, (m,)."""
        found = np.empty(len(self.pivots))
        for k, part in enumerate(self.run.parts):
            own = np.concatenate([step[k : k + ACTIVE].ravel(), beta])
            pivots = self.pivots[part]
            found[part] = (pivots[:, -1] - pivots[:, 1:-1] @ own) / pivots[:, 0]
        return found


@dataclass(frozen=True, eq=False)
class MotionShare:
    """How much of a run's rows the motion has taken, and how well it is known."""

    position: Array
    bend: Array
    torque: Array
    """`position`, `bend`, `torque`: sums over rows of the variance of what the motion makes of
    them, over theirs, shape (n,)."""
    instant: float
    """The same of instants."""
    variance: Array
    """Of positions, speeds and accelerations at known parameters, shape (3, m, n)."""


def measure_taken(linear: LinearRun) -> MotionShare:
    """What the motion takes of each kind of rows, interval by interval."""
    run, stated = linear.run, linear.equations.stated
    m, n = run.q.shape
    taken, bend, instant = np.zeros(2 * n), np.zeros(n), 0.0
    variance = np.empty((3, m, n))
    for k, F in linear.eliminated.roots():
        part = run.parts[k]
        own = np.moveaxis(F.reshape(ACTIVE, n, ACTIVE * n), 0, 1)
        B = run.weights[part, :3]
        variance[:, part] = np.moveaxis(np.sum((B[:, None] @ own) ** 2, axis=-1), 2, 0)
        for i in run.bends[k]:
            bend += np.sum((BEND @ own[:, i : i + 4]) ** 2, axis=-1)
        length = linear.pivots[part, 0]
        late = -linear.pivots[part, 1 : 1 + ACTIVE * n] @ F / length[:, None]
        reached = linear.reach(part)
        moved = reached.slopes @ F + reached.rates[:, :, None] * late[:, None]
        share = np.sum(moved**2, axis=2) + (reached.rates / length[:, None]) ** 2
        share[:, n:] *= stated[part]
        taken += share.sum(axis=0)
        instant += float(np.sum(late**2) + np.sum(length**-2.0))
    return MotionShare(
        taken[:n],
        bend / linear.spreads.bend**2,
        taken[n:],
        instant / linear.spreads.instant**2,
        variance,
    )


def renew_spreads(
    taken: Sequence[MotionShare],
    ahead: Sequence[tuple[MotionRun, Array]],
    floor: Array,
    known: Array,
) -> SampleSpreads:
    """Standard deviations by what is left of rows: ``sum r^2 / (rows - taken)`` (MacKay 1992).

    Parameters
    ----------
    ahead : sequence of (MotionRun, ndarray)
        The runs and coefficients that are left, of as many runs.
    floor, known : ndarray, shape (n,)
        Of the positions': the least, and those that are given, not a number elsewhere.
    """
    n = len(floor)
    squares, bends, counts = np.zeros(n), np.zeros(n), np.zeros(2)
    late = 0.0
    for run, c in ahead:
        squares += np.sum((run.q - run.motion(c)[0]) ** 2, axis=0)
        bends += np.sum(np.diff(c, 3, axis=0) ** 2, axis=0)
        counts += len(run.q), len(c) - 3
        late += float(np.sum(run.late**2))
    lost = np.sum([[each.position, each.bend] for each in taken], axis=0)
    free = np.maximum(counts[:, None] - lost, LEAST_FREEDOM * counts[:, None])
    of_late = max(counts[0] - sum(each.instant for each in taken), LEAST_FREEDOM * counts[0])
    size = max(float(np.abs(run.q).max()) for run, _ in ahead)
    smallest = np.finfo(float).eps * (1.0 + size)
    position = np.maximum(np.sqrt(squares / free[0]), np.maximum(floor, LEAST_NOISE))
    return SampleSpreads(
        np.where(np.isnan(known), position, known),
        np.maximum(np.sqrt(bends / free[1]), smallest),
        max(float(np.sqrt(late / of_late)), LEAST_JITTER),
    )


def differentiate_torque(
    idim: Idim, log: GeneralisedSamples, theta: Array, motion: Array, width: Array
) -> Array:
    """Slopes of a log's torques by its positions, speeds and accelerations, (m, n, n, 3).

    Of a linearised model they are those of its rows, whatever the shapes and bodies of the full
    set: its steps would else lead uphill. Those of bodies and rotors are exact; of friction they
    are differences that are small beside the speed over which its sign changes.
    """
    phi, _ = idim.split(theta)
    q, dq, ddq = motion
    met = FREE
    if idim.structure.special_columns:
        around = collect_conditions(idim, log, slice(0, len(q)))
        met = find_conditions(idim, q, dq, ddq, log.rate, width, None, around)

    def drive(q: Array, dq: Array, met: Conditions = met) -> Array:
        return evaluate_linearised_drives(idim, theta, (q, dq, ddq), width, met)

    rigid = np.stack(differentiate_dynamics(idim.tree, phi, q, dq, ddq), axis=3)
    total = rigid.copy()
    if met.load is not None:
        known, _ = idim.split(np.array(idim.bearing or idim.about))
        borne = np.stack(differentiate_dynamics(idim.tree, known, q, dq, ddq), axis=3)
        bend = differentiate_by_loads(idim, lambda load: drive(q, dq, replace(met, load=load)), met)
        for j, a in np.ndindex(total.shape[2:]):
            own, beyond = borne[:, :, j, a], (rigid - borne)[:, :, j, a]
            total[:, :, j, a] += apply_load_slopes(idim, own, bend)
            if met.bend is not None:
                total[:, :, j, a] += apply_load_slopes(idim, beyond, met.bend)
    total[..., 2] += idim.rotors(theta)
    for j in range(q.shape[1]):
        for a, h in ((0, STEP), (1, SHARE * width[j])):
            sides = []
            for sign in (1.0, -1.0):
                moved = [q, dq]
                moved[a] = moved[a].copy()
                moved[a][:, j] += sign * h
                sides.append(drive(*moved))
            total[:, :, j, a] += (sides[0] - sides[1]) / (2.0 * h)
    return total


def evaluate_linearised_drives(
    idim: Idim, theta: Array, motion: tuple[Array, Array, Array], width: Array, met: Conditions
) -> Array:
    """Torques of the drives as the rows of a model have them, shape (m, n).

    Where it is linearised about shapes, a change of these acts through its columns alone
    (zhang2018, eq. 14).
    """
    model, plain = idim.settled(theta[: idim.plain])
    torque = evaluate_drive_torques(model, plain, *motion, width, met)
    if not idim.free:
        return torque
    change, see = (
        theta[idim.plain :] - np.array(idim.shape),
        view_friction(idim, *motion[:2], width, met),
    )
    for k, friction in enumerate(idim.frictions):
        own = change[friction.shape]
        if np.any(own != 0.0):
            by_shape = friction.model.by_shape(see(k), idim.shape_of(k))
            signal = np.einsum("tks,k,s->t", by_shape, idim.linear_about[k], own)
            add_drive_torque(signal, idim.gears[friction.gear].turns, torque)
    return torque


def differentiate_by_loads(idim: Idim, drive: Callable[[Array], Array], met: Conditions) -> Array:
    """Slopes of the drives' torques by their loads, at these, shape (m, drives)."""
    assert met.load is not None
    bend, h = np.empty_like(met.load), 1e-6 * (1e-3 + np.abs(met.load).max(axis=0))
    for gear in range(met.load.shape[1]):
        sides = []
        for sign in (1.0, -1.0):
            load = met.load.copy()
            load[:, gear] += sign * h[gear]
            sides.append(drive(load))
        turns = idim.gears[gear].turns
        bend[:, gear] = ((sides[0] - sides[1]) @ turns) / (turns @ turns) / (2.0 * h[gear])
    return bend
