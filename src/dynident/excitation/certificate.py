"""Proof that a trajectory keeps its limits at every instant, not only where it was searched.

Positions and their derivatives: the largest value on a grid plus ``h^2/8`` times a bound of
the second derivative, which no function exceeds between points h apart. Torques likewise,
with the bound of `dynident.excitation.majorants`; distances, which have kinks, with their
largest rate of change. Where a grid is too coarse to prove it, it is halved, there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.excitation.clearance import Clearance
from dynident.excitation.limits import Limits, NominalTorques
from dynident.excitation.majorants import UNKNOWN, bound_torques
from dynident.excitation.trajectories import Trajectory

FINER = 10
"""The certificate's grid against the search's."""
HALVINGS = 12
MOST_OPEN, MOST_LOOSE = 10_000, 50_000
"""Intervals beyond which a proof of distances, and one of torques, is given up: the motion stays on
a limit for long, or bounds are wide."""
WORDS = ("position", "speed", "acceleration", "jerk")


@dataclass(frozen=True)
class KeptLimit:
    """One limit and what the trajectory makes of it.

    Attributes
    ----------
    what : str
        "position", "speed", "acceleration", "jerk", "torque", "clearance" or "loop".
    where : str
        The joint, or the pair of links.
    limit : float
    reached : float
        What is proved that no instant exceeds; that no instant falls short of, of distances and of
        positions at their lower limit. Distances are bounded no sharper than their limit asks for.
    seen : float
        What comes closest to the limit at the instants of the proof.
    time : float
        Where the grid comes closest [s].
    share : float
        Of the limit's range that is used at most; above 1 it is broken, or could not be proved.
    """

    what: str
    where: str
    limit: float
    reached: float
    seen: float
    time: float
    share: float

    @property
    def ok(self) -> bool:
        """Whether it is proved to be kept."""
        return self.share <= 1.0


@dataclass(frozen=True)
class Proof:
    """All limits of a trajectory.

    Attributes
    ----------
    kept : tuple of KeptLimit
    points : int
        At which torques were computed, most at one joint.
    step : float
        Of the grid [s].
    """

    kept: tuple[KeptLimit, ...]
    points: int
    step: float

    @property
    def ok(self) -> bool:
        """Whether every limit is proved to be kept."""
        return all(each.ok for each in self.kept)

    @property
    def worst(self) -> KeptLimit | None:
        """The limit that is used most."""
        return max(self.kept, key=lambda each: each.share, default=None)

    def shares(self, joints: tuple[str, ...]) -> Array:
        """Largest share of each kind and joint, shape (5, n)."""
        found = np.zeros((5, len(joints)))
        for each in self.kept:
            if each.where in joints and each.what != "clearance":
                row = (*WORDS, "torque").index(each.what)
                column = joints.index(each.where)
                found[row, column] = max(found[row, column], each.share)
        return found


def certify_trajectory(
    trajectory: Trajectory,
    limits: Limits,
    nominal: NominalTorques | None,
    clearance: Clearance | None,
    names: tuple[str, ...],
    step: float,
    end: float = np.inf,
) -> Proof:
    """Prove, limit by limit, what a trajectory keeps.

    The grid is `FINER` times finer than the step of the search [s]. After `end`, a reading of the
    monotonic clock [s], no grid is halved again: what is open then is not proved.
    """
    fine = step / FINER
    times = trajectory.family.grid(fine)
    try:
        if trajectory.closure is not None and np.any(trajectory.bound(1) >= UNKNOWN):
            raise InputError("nothing is proved of how passive joints follow")
        return _certify_closed(trajectory, limits, nominal, clearance, names, times, fine, end)
    except InputError:  # a chain that ends, or may end, on the way
        return Proof((KeptLimit("loop", "", 0.0, np.inf, np.inf, 0.0, np.inf),), len(times), fine)


def _certify_closed(
    trajectory: Trajectory,
    limits: Limits,
    nominal: NominalTorques | None,
    clearance: Clearance | None,
    names: tuple[str, ...],
    times: Array,
    fine: float,
    end: float,
) -> Proof:
    """`certify_trajectory` on a grid, of a motion along which chains are closed."""
    orders = [*trajectory.follow(times), trajectory.at(times, 3)]
    kept = [
        each
        for order in range(4)
        for each in _certify_derivative(
            trajectory, limits, names, order, times, orders[order], fine
        )
    ]
    points = len(times)
    if nominal is not None and np.any(np.isfinite(limits.torque)):
        found, points = _certify_torques(trajectory, limits, nominal, times, orders, end)
        kept += found
    if clearance is not None:
        kept += _certify_distances(trajectory, limits, clearance, times, orders, end)
    return Proof(tuple(kept), points, fine)


def _certify_derivative(
    trajectory: Trajectory,
    limits: Limits,
    names: tuple[str, ...],
    order: int,
    times: Array,
    values: Array,
    step: float,
) -> list[KeptLimit]:
    low, high = limits.of_order(order)
    bound = trajectory.bound(order)
    if order == 3:  # steps between pieces: the grid proves nothing
        top, bottom = bound, -bound
    else:
        rest = step**2 / 8.0 * trajectory.bound(order + 2)
        top = np.minimum(values.max(axis=0) + rest, bound)
        bottom = np.maximum(values.min(axis=0) - rest, -bound)
    found = []
    for j, name in enumerate(names):
        if not np.isfinite(high[j]):
            continue
        middle, half = 0.5 * (high[j] + low[j]), 0.5 * (high[j] - low[j])
        above, below = top[j] - middle, middle - bottom[j]
        up = above >= below
        nearest = int(np.argmax(values[:, j]) if up else np.argmin(values[:, j]))
        found.append(
            KeptLimit(
                WORDS[order],
                name,
                float(high[j] if up else low[j]),
                float(top[j] if up else bottom[j]),
                float(values[nearest, j]),
                float(times[nearest]),
                float(max(above, below) / half),
            )
        )
    return found


def _certify_torques(
    trajectory: Trajectory,
    limits: Limits,
    nominal: NominalTorques,
    times: Array,
    orders: list[Array],
    end: float,
) -> tuple[list[KeptLimit], int]:
    """Torques, on a grid that is halved where it has to be."""
    steady, most = nominal.steady, limits.torque
    second = _bound_curvature(trajectory, nominal, times, orders)
    tau = np.abs(nominal.torque(*orders[:3])) + steady
    seen, points = tau.max(axis=0), len(times)
    start, length, ends = times[:-1], np.diff(times), np.stack([tau[:-1], tau[1:]])
    reached = np.zeros(len(most))
    for halvings in range(HALVINGS + 1):
        shown = ends.max(axis=0)
        proved = shown + np.outer(length**2 / 8.0, second)
        # intervals that prove too little are halved; what they proved is forgotten
        open_ = np.any(proved > most, axis=1) & ~np.any(shown > most, axis=1)
        # where an interval's ends break a limit, they are the measure
        told = np.where(shown > most, shown, np.minimum(proved, most))[~open_]
        reached = np.maximum(reached, told.max(axis=0, initial=0.0))
        over = halvings == HALVINGS or time.monotonic() > end
        if not 0 < open_.sum() <= MOST_LOOSE or over:
            break
        a, h, e = start[open_], 0.5 * length[open_], ends[:, open_]
        value = np.abs(nominal.torque(*trajectory.follow(a + h))) + steady
        points += len(a)
        seen = np.maximum(seen, value.max(axis=0))
        start, length = np.concatenate([a, a + h]), np.concatenate([h, h])
        ends = np.concatenate([np.stack([e[0], value]), np.stack([value, e[1]])], axis=1)
    if np.any(open_):
        reached = np.maximum(reached, proved[open_].max(axis=0))
    where = times[np.argmax(tau, axis=0)]
    return [
        KeptLimit(
            "torque", name, float(most), float(value), float(own), float(time), float(value / most)
        )
        for name, most, value, own, time in zip(
            nominal.rows, limits.torque, reached, seen, where, strict=True
        )
        if np.isfinite(most)
    ], points


def _bound_curvature(
    trajectory: Trajectory, nominal: NominalTorques, times: Array, orders: list[Array]
) -> Array:
    """Bounds of the torques' second derivatives by time, shape (rows,)."""
    bounds = np.array([trajectory.bound(order) for order in range(1, 6)])
    for order in (1, 2):  # sharper: what the grid shows, and what lies between
        rest = np.diff(times).max() ** 2 / 8.0 * trajectory.bound(order + 2)
        shown = np.abs(orders[order]).max(axis=0) + rest
        bounds[order - 1] = np.minimum(bounds[order - 1], shown)
    far = np.abs(orders[0]).max(axis=0)
    whole = bound_torques(nominal.idim, nominal.phi, bounds, far)[: len(nominal.steady)]
    n = len(far)
    for k in range(3):
        whole[:n, k] += nominal.viscous * bounds[k] + np.abs(nominal.rotors) @ bounds[k + 1]
    second = whole[:, 2].copy()
    if trajectory.closure is not None:  # what drives feel of passive joints
        held = np.linalg.norm(whole[trajectory.closure.passive], axis=0)
        levers = trajectory.passive[1]
        second[:n] += levers[0] * held[2] + 2.0 * levers[1] * held[1] + levers[2] * held[0]
    return second


def _certify_distances(
    trajectory: Trajectory,
    limits: Limits,
    clearance: Clearance,
    times: Array,
    orders: list[Array],
    end: float,
) -> list[KeptLimit]:
    """Distances, on a grid that is halved where it has to be."""
    reach = np.array([pair.reach for pair in clearance.pairs])
    bend = trajectory.bound(2)
    least = limits.clearance

    def rates(at: Array, length: Array) -> Array:
        """No distance changes faster around the middle of an interval, (intervals, pairs)."""
        speed = np.abs(trajectory.at(at, 1)) + np.outer(0.5 * length, bend)
        return np.asarray(speed @ reach.T)

    d = clearance.distances(orders[0])
    seen = d.min(axis=0)
    start, length = times[:-1], np.diff(times)
    ends = np.minimum(d[:-1], d[1:])
    low = np.full(len(clearance.pairs), np.inf)
    for halvings in range(HALVINGS + 1):
        sure = ends - 0.5 * length[:, None] * rates(start + 0.5 * length, length)
        open_ = np.any(sure < least, axis=1) & ~np.any(ends < least, axis=1)
        low = np.minimum(low, sure[~open_].min(axis=0, initial=np.inf))
        over = halvings == HALVINGS or time.monotonic() > end
        if not 0 < open_.sum() <= MOST_OPEN or over:
            break
        a, h = start[open_], 0.5 * length[open_]
        middle = clearance.distances(trajectory.at(a + h))
        seen = np.minimum(seen, middle.min(axis=0))
        first = np.minimum(clearance.distances(trajectory.at(a)), middle)
        second = np.minimum(middle, clearance.distances(trajectory.at(a + 2.0 * h)))
        start, length = np.concatenate([a, a + h]), np.concatenate([h, h])
        ends = np.concatenate([first, second])
    if np.any(open_):
        low = np.minimum(low, sure[open_].min(axis=0))
    when = times[np.argmin(d, axis=0)]
    return [
        KeptLimit(
            "clearance",
            pair.name,
            least,
            float(value),
            float(own),
            float(time),
            compute_clearance_share(least, value),
        )
        for pair, value, own, time in zip(clearance.pairs, low, seen, when, strict=True)
    ]


def compute_clearance_share(least: float, value: float) -> float:
    """1 where a distance is the least allowed, below it where there is more."""
    if value >= least:
        return float(least / value) if value > 0.0 else 1.0
    return 1.0 + (least - value) / max(least, 1e-3)
