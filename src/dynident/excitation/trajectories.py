"""Families of trajectories that are linear in their coefficients, with exact derivatives.

``q(t) = Phi(t) C``: the joints share the functions Phi, each has its column of C. What is
asked of the ends (rest, periodicity) is linear in C and is solved before the search, so
that whatever C a search proposes starts and ends as it should. A new family is a function
and one line in `TRAJECTORIES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import factorial
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import null_space

from dynident.control.reference import MOST_SAMPLES, Reference, check_sample_count
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.makers import Vector
from dynident.excitation.majorants import bound_passive
from dynident.robot.closure import Closure

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

SCHEMA = "dynident.trajectory/1"
"""Of the trajectory.json of `dynident excite`."""
PER_MOVE = 5
"""Intervals of the joints' splines between two points of the hand."""
CRUISE, HOLD = 0.8, 0.5
"""Share of a sweep at a constant speed; share of the time in which poses are held."""
STEEPEST, GRID = 5, 0.03
"""Derivatives of positions up to this order are bounded; a grid over what is quickest."""


class TrajectoryPart(ABC):
    """Functions of time between two instants."""

    @property
    @abstractmethod
    def knots(self) -> Array:
        """Instants between which all derivatives are continuous, the ends among them [s]."""

    @property
    def start(self) -> float:
        """Where it begins [s]."""
        return float(self.knots[0])

    @property
    def stop(self) -> float:
        """Where it ends [s]."""
        return float(self.knots[-1])

    @abstractmethod
    def values(self, times: Array, order: int) -> Array:
        """Derivatives of the functions, shape (times, functions)."""

    @abstractmethod
    def bound(self, C: Array, order: int) -> Array:
        """What no instant exceeds in magnitude, shape (n,): of ``Phi^(order) C``."""


@dataclass(frozen=True)
class Harmonics(TrajectoryPart):
    """An offset, then sine and cosine of each frequency; of one period."""

    period: float
    """[s]"""
    omega: Array
    """Shape (harmonics,). [rad/s]"""
    mix: Array
    """The functions, as combinations of ``1, sin w_1 t, ..., cos w_1 t, ...``, shape (1 + 2
    harmonics, functions)."""

    @property
    def knots(self) -> Array:
        """The ends."""
        return np.array([0.0, self.period])

    def values(self, times: Array, order: int) -> Array:
        """See `TrajectoryPart`; a derivative turns the phase by a quarter."""
        phase = np.outer(times, self.omega)
        turn = 0.5 * np.pi * order
        scale = self.omega**order
        constant = np.full((len(times), 1), float(order == 0))
        waves = [constant, np.sin(phase + turn) * scale, np.cos(phase + turn) * scale]
        return np.hstack(waves) @ self.mix

    def bound(self, C: Array, order: int) -> Array:
        """Sum of the amplitudes."""
        full = self.mix @ C
        k = len(self.omega)
        amplitude = np.hypot(full[1 : 1 + k], full[1 + k :])
        return np.asarray(self.omega**order @ amplitude + np.abs(full[0]) * (order == 0))


@dataclass(frozen=True)
class Pieces(TrajectoryPart):
    """Polynomials between knots, of coefficients of shape (degree + 1, pieces, functions)."""

    polynomial: PPoly

    @property
    def knots(self) -> Array:
        """Ends of the pieces [s]."""
        return np.asarray(self.polynomial.x)

    @cached_property
    def _derivatives(self) -> tuple[PPoly, ...]:
        return tuple(self.polynomial.derivative(k) for k in range(STEEPEST + 1))

    def values(self, times: Array, order: int) -> Array:
        """See `TrajectoryPart`."""
        return np.asarray(self._derivatives[order](times))

    @cached_property
    def _bernstein(self) -> tuple[Array, ...]:
        from scipy.interpolate import BPoly

        return tuple(BPoly.from_power_basis(each).c for each in self._derivatives)

    def bound(self, C: Array, order: int) -> Array:
        """The largest Bernstein coefficient: a polynomial is in the hull of them."""
        return np.asarray(np.abs(self._bernstein[order] @ C).max(axis=(0, 1)))


@dataclass(frozen=True)
class TrajectoryFamily:
    """What a trajectory is a combination of."""

    kind: str
    """Name in `TRAJECTORIES`."""
    parts: tuple[TrajectoryPart, ...]
    """One after another, without a gap."""
    scale: Array
    """Coefficients of about this size move a joint at unit speed, shape (functions,)."""
    period: float | None = None
    """Time after which the main part repeats; none of a motion that is made once [s]."""
    main: int = 0
    """The part that is repeated."""

    @property
    def count(self) -> int:
        """Number of functions, which is that of coefficients a joint."""
        return len(self.scale)

    @property
    def start(self) -> float:
        """Where the first part begins [s]."""
        return self.parts[0].start

    @property
    def stop(self) -> float:
        """Where the last part ends [s]."""
        return self.parts[-1].stop

    @property
    def length(self) -> float:
        """Of the motion, its main part made once [s]."""
        return self.stop - self.start

    def repeated(self, periods: int) -> float:
        """How long the motion is with its main part made so often [s]."""
        return self.length + (periods - 1) * (self.period or 0.0)

    def values(self, times: Array, order: int = 0) -> Array:
        """``Phi^(order)``, shape (times, functions)."""
        found = np.empty((len(times), self.count))
        ends = [part.stop for part in self.parts[:-1]]
        which = np.searchsorted(ends, times, side="right")
        for k, part in enumerate(self.parts):
            here = which == k
            if np.any(here):
                found[here] = part.values(times[here], order)
        return found

    def grid(self, step: float) -> Array:
        """Instants no further apart than `step`, all knots among them [s]."""
        knots = np.unique(np.concatenate([part.knots for part in self.parts]))
        times = [
            np.linspace(a, b, int(np.ceil((b - a) / step - 1e-9)) + 1) for a, b in pairwise(knots)
        ]
        return np.unique(np.concatenate(times))

    @property
    def quickest(self) -> float:
        """The shortest time in which a function changes by its size [s]."""
        part = self.parts[self.main]
        if isinstance(part, Harmonics):
            return float(1.0 / part.omega.max())
        return float(np.diff(part.knots).max() / np.pi)


def fourier(
    duration: float = 10.0,
    harmonics: int = 5,
    avoid: tuple[tuple[float, float], ...] = (),
    ramp: float = 0.0,
) -> TrajectoryFamily:
    """Periodic Fourier series with offset (Swevers et al. 1997; zhang2018, eq. 27).

    A period, of which the fundamental is the inverse, starts and ends at rest; or, with a ramp [s],
    quintic polynomials lead from rest into the first one and out of the last. No harmonic enters
    the bands around resonances that are to be avoided [Hz].

    Raises
    ------
    InputError
        When too few harmonics are left.
    """
    numbers = np.arange(1, harmonics + 1)
    hz = numbers / duration
    kept = np.ones(harmonics, dtype=bool)
    for low, high in avoid:
        kept &= (hz < low) | (hz > high)
    if kept.sum() < (1 if ramp > 0.0 else 2):
        raise InputError(
            f"excitation: {int(kept.sum())} of {harmonics} harmonics of {1.0 / duration:g} Hz are "
            "outside the bands to avoid; allow more harmonics, or a longer period"
        )
    omega = 2.0 * np.pi * hz[kept]
    bare = Harmonics(duration, omega, np.eye(1 + 2 * len(omega)))
    # unit speed of all waves together
    size = np.concatenate([[1.0], *([1.0 / (omega * np.sqrt(len(omega)))] * 2)])
    if ramp <= 0.0:
        # of the functions at their sizes, those without speed and acceleration at the ends
        ends = np.vstack([bare.values(np.zeros(1), order) for order in (1, 2)]) * size
        unit = ends / np.linalg.norm(ends, axis=1, keepdims=True)
        mix = size[:, None] * null_space(unit, rcond=1e-9)
        family = Harmonics(duration, omega, mix)
        return TrajectoryFamily("fourier", (family,), np.ones(mix.shape[1]), duration)
    main = Harmonics(duration, omega, np.diag(size))
    way_in = build_ramp(main, 0.0, -ramp, 0.0)
    way_out = build_ramp(main, duration, duration, duration + ramp)
    return TrajectoryFamily(
        "fourier", (way_in, main, way_out), np.ones(len(size)), duration, main=1
    )


def build_ramp(main: TrajectoryPart, at: float, start: float, stop: float) -> Pieces:
    """Quintic polynomial between rest and the state of another part at an instant [s].

    The instant is `start` or `stop`; the rest is where a steady change of speed over the time of
    the ramp leads.
    """
    when = np.array([at])
    position, speed, bend = (main.values(when, order)[0] for order in range(3))
    rest = position + (0.5 if at == start else -0.5) * (stop - start) * speed
    zero = np.zeros_like(rest)
    ends = [rest, zero, zero], [position, speed, bend]
    states = np.array(ends if at == stop else ends[::-1])
    return Pieces(build_quintic_pieces(np.array([start, stop]), states))


def build_quintic_pieces(x: Array, states: Array) -> PPoly:
    """Polynomials of fifth order through states at knots.

    Values and their first two derivatives, shape (knots, 3, functions).
    """
    from scipy.interpolate import BPoly, PPoly  # a tenth of a second that few runs need

    return PPoly.from_bernstein_basis(BPoly.from_derivatives(x, states))


def spline(
    duration: float = 10.0, intervals: int = 12, knots: Vector | None = None
) -> TrajectoryFamily:
    """Quintic B-splines from rest to rest.

    Between equidistant knots, or at increasing instants inside of the duration [s].
    """
    from scipy.interpolate import BSpline, PPoly

    inner = np.linspace(0.0, duration, intervals + 1)[1:-1]
    if knots is not None:
        inner = np.asarray(knots, dtype=float)
        edges = np.concatenate([[0.0], inner, [duration]])
        if inner.ndim != 1 or not np.all(np.diff(edges) > 1e-6 * duration):
            raise InputError(f"excitation: knots have to increase between 0 and {duration:g} s")
    if len(inner) < 1:
        raise InputError("excitation: a spline from rest to rest needs two or more intervals")
    t = np.concatenate([np.zeros(6), inner, np.full(6, duration)])
    count = len(t) - 6
    # the first three and the last three coefficients are one: rest at the ends
    join = np.zeros((count, count - 4))
    join[:3, 0] = 1.0
    join[-3:, -1] = 1.0
    join[3:-3, 1:-1] = np.eye(count - 6)
    x = np.concatenate([[0.0], inner, [duration]])
    functions = BSpline(t, join, 5)
    taylor = [functions.derivative(k)(x[:-1]) / factorial(k) for k in range(6)]
    polynomial = PPoly(np.array(taylor[::-1]), x)
    scale = np.full(count - 4, duration / (len(inner) + 1))
    return TrajectoryFamily("spline", (Pieces(polynomial),), scale)


def bang_bang(duration: float = 10.0, points: int = 8, smoothing: float = 0.5) -> TrajectoryFamily:
    """Smoothed bang-bang motions from point to point, equally long (ardiani2024, IV-A).

    The acceleration of a move is a trapezoid up and one down, `smoothing` of them ramps, from just
    above 0 to 1. The first and the last point are searched as the others.

    Raises
    ------
    InputError
        For fewer than two points, or another smoothing.
    """
    if not 0.0 < smoothing <= 1.0:
        raise InputError("excitation: bang-bang needs smoothing in (0, 1]")
    pieces, move = build_moves("bang-bang", duration, points, smoothing)
    return TrajectoryFamily("bang-bang", (pieces,), np.full(points, move))


def sweeps(duration: float = 30.0, points: int = 13) -> TrajectoryFamily:
    """Moves there and back, each for the most part at a constant speed: see `excitation.drawn`.

    Parameters
    ----------
    duration : float
        Of all moves, which are equally long [s].
    points : int
        Two or more at which they turn, the first and the last among them.
    """
    pieces, move = build_moves("sweeps", duration, points, cruise=CRUISE)
    return TrajectoryFamily("sweeps", (pieces,), np.full(points, move))


def rests(duration: float = 40.0, points: int = 11) -> TrajectoryFamily:
    """Moves from pose to pose, each followed by a rest as long: see `excitation.drawn`.

    Parameters
    ----------
    duration : float
        Of all moves and rests [s].
    points : int
        Two or more poses, the first among them.
    """
    pieces, move = build_moves("rests", duration, points, hold=HOLD)
    return TrajectoryFamily("rests", (pieces,), np.full(points, move))


def build_moves(
    kind: str,
    duration: float,
    points: int,
    smoothing: float = 0.5,
    cruise: float = 0.0,
    hold: float = 0.0,
) -> tuple[Pieces, float]:
    """Equally long moves from rest to rest through points, and how long one is [s].

    The acceleration of a move is a trapezoid up and one down.

    Parameters
    ----------
    smoothing : float
        Share of the trapezoids that is ramps.
    cruise : float
        Share of a move between them, at a constant speed.
    hold : float
        Share of the time at which a point is held after each move.
    """
    from scipy.interpolate import PPoly

    if points < 2:
        raise InputError(f"excitation: {kind} needs two or more points")
    slot = duration / (points - 1)
    move = slot * (1.0 - hold)
    speeding = 0.5 * (1.0 - cruise) * move
    rise = 0.5 * smoothing * speeding  # each trapezoid has a ramp up and one down
    flat = speeding - 2.0 * rise
    edges = np.cumsum([0.0, rise, flat, rise, cruise * move, rise, flat, rise])
    height = 1.0 / ((rise + flat) * (speeding + cruise * move))  # so that the way is one
    jerk = height / rise * np.array([1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0])
    lasting = np.diff(edges) > 1e-12 * move  # without flats there are fewer pieces
    edges = edges[np.concatenate([[True], lasting])]
    way = PPoly(jerk[lasting][None], edges).antiderivative(3)  # from 0 to 1
    c = np.einsum("dp,mf->dmpf", way.c, np.diff(np.eye(points), axis=0))
    c[-1] += np.eye(points)[:-1, None]
    ends = way.x[1:]
    if hold > 0.0:
        held = np.zeros((4, points - 1, 1, points))
        held[-1, :, 0] = np.eye(points)[1:]
        c, ends = np.concatenate([c, held], axis=2), np.append(ends, slot)
    x = np.add.outer(slot * np.arange(points - 1), ends).ravel()
    return Pieces(PPoly(c.reshape(4, -1, points), np.concatenate([[0.0], x]))), move


def quintic(duration: float = 10.0, points: int = 8) -> TrajectoryFamily:
    """Polynomials of fifth order from point to point, with free speeds at the points.

    At the points they have no acceleration. They are equidistant in time, the first and the last
    among them, which are at rest.

    Raises
    ------
    InputError
        For fewer than two points.
    """
    if points < 2:
        raise InputError("excitation: quintic needs two or more points")
    h = duration / (points - 1)
    states = np.zeros((points, 3, 2 * points - 2))
    states[:, 0, :points] = np.eye(points)
    states[1:-1, 1, points:] = np.eye(points - 2)
    polynomial = build_quintic_pieces(np.linspace(0.0, duration, points), states)
    scale = np.concatenate([np.full(points, h), np.ones(points - 2)])
    return TrajectoryFamily("quintic", (Pieces(polynomial),), scale)


def cartesian(duration: float = 10.0, points: int = 8) -> TrajectoryFamily:
    """Splines for random motions of the hand through points in space: see `excitation.hand`.

    These are equidistant in time, the first and the last among them, where it is at rest.
    """
    if points < 2:
        raise InputError("excitation: cartesian needs two or more points")
    return replace(spline(duration, PER_MOVE * (points - 1)), kind="cartesian")


TRAJECTORIES: dict[str, Callable[..., TrajectoryFamily]] = {
    "fourier": fourier,
    "spline": spline,
    "bang-bang": bang_bang,
    "quintic": quintic,
    "cartesian": cartesian,
    "sweeps": sweeps,
    "rests": rests,
}
"""Makers of families by name."""


@dataclass(frozen=True)
class Trajectory:
    """A motion of all joints: a family and its coefficients.

    Attributes
    ----------
    family : TrajectoryFamily
    C : ndarray, shape (functions, n)
        [rad or m], times the scale of the functions.
    closure : Closure, optional
        What gives the motion of passive joints, whose coefficients say nothing then.
    """

    family: TrajectoryFamily
    C: Array
    closure: Closure | None = None

    def at(self, times: Array, order: int = 0) -> Array:
        """Derivatives of the positions, shape (times, n), of a closed chain up to the third."""
        own = np.asarray(self.family.values(times, order) @ self.C)
        if self.closure is None:
            return own
        motion = self.follow(times)
        if order < 3:
            return motion[order]
        G, _, E, B, *_ = self.closure.vary(*motion, whole=False)
        slopes = ((E, motion[1]), (B, motion[2]), (G, own))
        return np.asarray(sum(np.einsum("tij,tj->ti", by, change) for by, change in slopes))

    def follow(self, times: Array) -> tuple[Array, Array, Array]:
        """Positions, speeds and accelerations, shape (times, n) each."""
        if self.closure is None:
            return self.at(times), self.at(times, 1), self.at(times, 2)
        grid, closed = self.track
        places = np.clip(np.searchsorted(grid, times), 1, len(grid) - 1)
        places -= times - grid[places - 1] < grid[places] - times
        q, dq, ddq = (self.family.values(times, k) @ self.C for k in range(3))
        q = self.closure.close_beside(q, closed[places])
        return (q, *self.closure.move(q, dq, ddq))

    @cached_property
    def track(self) -> tuple[Array, Array]:
        """Instants, and where a closed chain is there, from where it is assembled on."""
        assert self.closure is not None
        times = self.family.grid(GRID * self.family.quickest)
        q = self.family.values(times, 0) @ self.C
        return times, self.closure.close(q, "the trajectory", 1.0 / (times[1] - times[0]))

    def bound(self, order: int) -> Array:
        """What no instant of any part exceeds in magnitude, shape (n,)."""
        bounds = [part.bound(self.C, order) for part in self.family.parts]
        found = np.asarray(np.max(bounds, axis=0))
        if self.closure is not None:
            passive = self.closure.passive
            found[passive] = self.passive[0][order - 1, passive] if order else np.inf
        return found

    @cached_property
    def passive(self) -> tuple[Array, Array]:
        """See `bound_passive`, of a closed chain."""
        family = self.family
        assert self.closure is not None
        driven = [
            np.max([part.bound(self.C, order) for part in family.parts], axis=0)
            for order in range(1, STEEPEST + 1)
        ]

        return bound_passive(
            self.closure,
            np.array(driven),
            lambda step: (*self.follow(family.grid(step)), self.at(family.grid(step), 3)),
            GRID * family.quickest,
        )

    def reference(self, rate: float, periods: int = 1) -> Reference:
        """The motion on a uniform clock, its main part repeated.

        Parameters
        ----------
        rate : float
            [Hz]
        periods : int
            Of a periodic family; others are made once.

        Raises
        ------
        InputError
            When it would have more samples than can be held.
        """
        family = self.family
        again = 0.0 if family.period is None else (periods - 1) * family.period
        length = (family.stop - family.start + again) * rate
        samples = check_sample_count(int(np.floor(min(length, 2.0 * MOST_SAMPLES) + 1e-6)) + 1)
        times = family.start + np.arange(samples) / rate
        part = family.parts[family.main]
        if family.period is not None and again > 0.0:
            late = times - again
            inside = np.mod(times - part.start, family.period) + part.start
            times = np.where(times < part.start, times, np.where(late >= part.stop, late, inside))
        q, dq, ddq = self.follow(times)
        return Reference(rate, q, dq, ddq)
