"""Smooth programs of few variables and many inequalities, by an interior point.

``min f(z)  subject to  low <= c(z) <= high`` with exact first derivatives. A primal-dual
barrier method (Nocedal and Wright 2006, chapter 19) that starts inside of all constraints
and stays there, so that wherever it is stopped it has a motion that keeps them. The Newton
step is condensed onto z, ``(H + J' S^-1 L J) dz = ...``, which for a hundred variables and
thousands of rows costs one product of J with itself; general solvers factor the whole
sparse system, most of which is dense here. H is a damped BFGS matrix of the Lagrangian.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError

Evaluate = Callable[[Array], tuple[float, Array, Array, Array]]
"""``z -> f, its gradient (N,), c (m,), its Jacobian (m, N)``."""

BOUNDARY = 0.995
"""Share of the way to a slack of zero that a step may go."""
ARMIJO = 1e-4
SHRINK = 0.2
"""Of the barrier's weight, once the problem with it is solved."""


@dataclass(frozen=True)
class Program:
    """A smooth program."""

    evaluate: Evaluate
    """May return infinite f where it is not defined."""
    low: Array
    high: Array
    """`low`, `high`: of the constraints c, infinite where there is none, shape (m,)."""
    unit: Array
    """Sizes of c that count as large, shape (m,)."""


class _Sides:
    """Both sides of the constraints as ``g = sign * c - edge >= 0``, over their units."""

    def __init__(self, program: Program) -> None:
        up, down = np.isfinite(program.low), np.isfinite(program.high)
        self.rows = np.concatenate([np.flatnonzero(up), np.flatnonzero(down)])
        self.sign = np.concatenate([np.ones(up.sum()), -np.ones(down.sum())])
        edge = np.concatenate([program.low[up], -program.high[down]])
        self.scale = self.sign / program.unit[self.rows]
        self.edge = edge / program.unit[self.rows]
        self.count = len(program.low)

    def slack(self, c: Array) -> Array:
        """Of all sides."""
        return np.asarray(self.scale * c[self.rows] - self.edge)

    def gathered(self, values: Array) -> Array:
        """Values of sides summed onto their constraints."""
        return np.asarray(np.bincount(self.rows, weights=values, minlength=self.count))


def minimise_program(
    program: Program,
    z: Array,
    iterations: int = 150,
    seconds: float = np.inf,
    tolerance: float = 1e-4,
    barrier: float = 0.1,
) -> Array:
    """Where the barrier method leads from a start inside of all constraints.

    After `seconds` no iteration is begun. The tolerance is of stationarity and complementarity,
    over the gradient's size, as is the barrier's weight to begin with.
    """
    begun = time.monotonic()
    sides = _Sides(program)
    f, gradient, c, J = program.evaluate(z)
    s = sides.slack(c)
    if not (np.isfinite(f) and np.all(s > 0.0)):
        raise ComputationError("the search for a trajectory has to begin within its limits")
    size = max(1e-3, float(np.abs(gradient).max()))
    mu = barrier * size
    lam = mu / s
    plain = np.eye(len(z)) * float(np.linalg.norm(gradient))
    H, fresh, calm = plain, True, 0
    for done in range(iterations + 1):
        size = max(1e-3, float(np.abs(gradient).max()))
        free = gradient - J.T @ sides.gathered(sides.scale * lam)
        stationarity = float(np.abs(free).max()) / size
        gap = float((s * lam).max()) / size
        if max(stationarity, gap) < tolerance or calm >= 5:
            break
        if max(stationarity, float(np.abs(s * lam - mu).max()) / size) < 10.0 * mu / size:
            mu = max(0.1 * tolerance * size, SHRINK * mu)
        if done == iterations or time.monotonic() - begun > seconds:
            break
        weight = lam / s
        D = sides.gathered(sides.scale**2 * weight)
        towards = J.T @ sides.gathered(sides.scale * (mu / s)) - gradient
        dz = _solve_regularised(H + (J * D[:, None]).T @ J, towards)
        ds = sides.scale * (J @ dz)[sides.rows]
        dlam = mu / s - lam - weight * ds
        slope = -float(towards @ dz)
        merit = f - mu * float(np.sum(np.log(s)))
        step, found = _find_longest_step(s, ds), None
        for _ in range(25):
            if time.monotonic() - begun > seconds:
                return z
            trial = program.evaluate(z + step * dz)
            if _measure_merit(sides, trial, s, mu) <= merit + ARMIJO * step * slope:
                found = trial
                break
            step *= 0.5
        if found is None:
            if fresh:
                break  # not even along a plain gradient
            H, fresh = plain, True
            continue
        f_new, gradient_new, c, J_new = found
        s = sides.slack(c)
        lam = lam + _find_longest_step(lam, dlam) * dlam
        # so that the barrier's curvature stays about mu / s^2 (Wächter and Biegler 2006, eq. 16)
        lam = np.clip(lam, mu / (1e6 * s), 1e6 * mu / s)
        force = sides.gathered(sides.scale * lam)
        bend = (gradient_new - J_new.T @ force) - (gradient - J.T @ force)
        H, fresh = _update_bfgs(H, step * dz, bend, fresh)
        still = abs(f_new - f) < 0.1 * tolerance * max(1.0, abs(f)) and gap < 100.0 * tolerance
        calm = calm + 1 if still else 0
        z, f, gradient, J = z + step * dz, f_new, gradient_new, J_new
    return z


def _measure_merit(
    sides: _Sides, trial: tuple[float, Array, Array, Array], s: Array, mu: float
) -> float:
    """The barrier's function; infinite where a slack falls by more than the step may take."""
    inside = sides.slack(trial[2]) if np.isfinite(trial[0]) else -s
    if not np.all(inside > (1.0 - BOUNDARY) * s):
        return np.inf
    return trial[0] - mu * float(np.sum(np.log(inside)))


def _solve_regularised(K: Array, right: Array) -> Array:
    """Solution of a positive definite system, with more of its diagonal where it is not."""
    shift = 0.0
    size = float(np.trace(K)) / len(K)
    for _ in range(20):
        try:
            found = cho_solve(cho_factor(K + shift * np.eye(len(K))), right)
            return np.asarray(found)
        except np.linalg.LinAlgError:
            shift = max(10.0 * shift, 1e-10 * size)  # from rounding on, ten times more each
    return np.asarray(right / size)


def _find_longest_step(values: Array, change: Array) -> float:
    """The longest step, at most one, that leaves positive values positive."""
    falling = change < 0.0
    return min(1.0, BOUNDARY * float(np.min(-values[falling] / change[falling], initial=np.inf)))


def _update_bfgs(H: Array, change: Array, bend: Array, fresh: bool) -> tuple[Array, bool]:
    """Damped update (Powell 1978), which keeps the matrix positive definite."""
    along = float(change @ change)
    if along < 1e-30:
        return H, fresh
    curvature = float(change @ bend)
    if fresh and curvature > 0.0:
        H = np.eye(len(H)) * max(float(bend @ bend) / curvature, 1e-8)
    Hs = H @ change
    own = float(change @ Hs)
    mix = 1.0 if curvature >= 0.2 * own else 0.8 * own / (own - curvature)
    y = mix * bend + (1.0 - mix) * Hs
    return H - np.outer(Hs, Hs) / own + np.outer(y, y) / float(change @ y), False
