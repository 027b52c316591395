"""The square-root recursion behind every method that follows its parameters in time.

What is known of parameters b is kept as a triangular system ``R b = z`` with the covariance
``P = (R^T R)^-1`` (Bierman 1977: the square-root information filter). The information form is
chosen, and not a square root of the covariance, for four reasons:

- a row ``x b = y`` of unit variance is absorbed by Givens rotations that see nothing left of its
  first column. Joint j's torque knows nothing of the links before j, whose columns come first, so
  that an arm's rows cost a third of what they would in a covariance;
- what is left of a row when R has absorbed it is its normalised innovation
  ``(y - x b) / sqrt(1 + x P x^T)``: the test for a change is free;
- a prior that knows nothing is a matrix of nearly zeros, and not one of nearly infinities;
- rows are rotated in and never multiplied: R is triangular with a positive diagonal whatever is
  absorbed, forgotten or added, and P is positive by construction after any number of updates.

Parameters that walk at random get the noise of their walk one after another, by turns: a turn is
a rank-one change of P that costs as much as a row, where a noise on all at once would cost as
much as all of the rest for p samples. Each carries the noise of the time since its last turn, so
that over a whole round P is that of the walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from dynident.core.arrays import Array, Integers
from dynident.core.jit import inner, jit
from dynident.dynamics.base import BaseParameters, draw_random_conditions, draw_random_states

REACH = 100.0
"""A parameter of natural size moves the torques by so many sigma."""
DIFFUSE = 1e6
"""Standard deviations of a prior that knows nothing, over the natural sizes. Its pull on an
answer is of the order of 1e-9 of the answer's own standard deviation."""
BOUND = 1.0
"""Standard deviations to which forgetting lets parameters grow, over the natural sizes; those that
forget start there, for an estimate that means nothing yet is nothing to be held about."""


class AgeingRule(NamedTuple):
    """How what is known ages, parameter by parameter."""

    memory: Array
    """Shape (p,). Time after which samples weigh 1/e; infinite without forgetting [s]."""
    directional: float
    """The same where only the directions that a row sees are forgotten; infinite without."""
    walk: Array
    """Variance that a random walk gains in a second, shape (p,)."""
    floor: Array
    """Shape (p,). Information that is never forgotten: one over the bound's square."""
    size: Array
    """Shape (p,). Natural sizes: what makes the directions of rows independent of units."""
    turns: Integers
    """Parameters that walk or forget, in the order of their turns, shape (k,)."""
    share: int
    """Turns a step."""


@dataclass(frozen=True)
class Recursion:
    """What is known of some parameters: arrays that the kernels change in place."""

    R: Array
    """``[R | z]``, shape (p, p + 1)."""
    beta: Array
    """The estimate, ``R^-1 z``, shape (p,)."""
    due: Array
    """Time since each parameter's last turn [s], shape (p,)."""
    place: Integers
    """Shape (2,). Whose turn it is: among the parameters, and among the groups of rows."""
    row: Array
    """Work, shape (p + 1,)."""

    @classmethod
    def start(cls, beta: Array, R: Array) -> Recursion:
        """From an estimate with the triangular factor of its information.

        Parameters
        ----------
        beta : ndarray, shape (p,)
        R : ndarray, shape (p, p)
            Upper triangular, with a positive diagonal.
        """
        p = len(beta)
        full = np.ascontiguousarray(np.column_stack([R, R @ beta]))
        return cls(full, beta.copy(), np.zeros(p), np.zeros(2, dtype=np.int64), np.empty(p + 1))

    @property
    def half(self) -> Array:
        """``R^-1``, whose rows' squares sum to the variances."""
        p = len(self.beta)
        return np.asarray(linalg.solve_triangular(self.R[:, :p], np.eye(p)))

    @property
    def covariance(self) -> Array:
        """Of the estimate, shape (p, p)."""
        half = self.half
        return half @ half.T

    @property
    def std(self) -> Array:
        """Standard deviations of the estimate."""
        return np.asarray(np.sqrt(np.sum(self.half**2, axis=1)))


def estimate_natural_size(base: BaseParameters, sigma: Array) -> Array:
    """What each base parameter would have to be to move the torques by `REACH` sigma.

    At random states of about 1 rad/s and 3 rad/s^2, so that it depends on the robot and on what
    its torques are measured with, and on no log.

    Parameters
    ----------
    sigma : ndarray, shape (dof,)
        Of each equation of motion; infinite where nothing is measured.
    """
    samples = 200
    states = draw_random_states(base.idim, samples, 0)
    W = base.idim.regressor(*states, draw_random_conditions(base.idim, samples, 0))[:, :, base.kept]
    weighted = W / sigma[:, None]
    return np.asarray(REACH / np.sqrt(np.mean(np.sum(weighted**2, axis=1), axis=0)))


def choose_diffuse_std(ageing: AgeingRule) -> Array:
    """Standard deviations of parameters of which nothing is known, by how they age."""
    return ageing.size * np.where(np.isfinite(ageing.memory), BOUND, DIFFUSE)


def mark_friction_columns(base: BaseParameters) -> np.ndarray:
    """Which base parameters are of the drives' friction, rotors not counted."""
    idim = base.idim
    rubbing = [False] * idim.inertial + [c.friction is not None for c in idim.drive_columns]
    return np.array(rubbing)[base.kept]


def build_ageing_rule(
    size: Array,
    memory: Array | float = np.inf,
    walk: Array | float = 0.0,
    directional: float = np.inf,
    share: int = 1,
) -> AgeingRule:
    """How parameters age.

    Parameters
    ----------
    size : ndarray, shape (p,)
        Natural sizes.
    memory : ndarray or float
        [s]
    walk : ndarray or float
        Standard deviation of a random walk after a second, over the natural size.
    directional : float
        [s]
    share : int
        Turns a step; 0 for all parameters at every step.
    """
    p = len(size)
    memories = np.broadcast_to(np.asarray(memory, dtype=float), (p,)).copy()
    walks = (np.broadcast_to(np.asarray(walk, dtype=float), (p,)) * size) ** 2
    turns = np.flatnonzero(np.isfinite(memories) | (walks > 0.0))
    floor = 1.0 / (BOUND * size) ** 2
    each = len(turns) if share == 0 else share
    return AgeingRule(memories, float(directional), walks, floor, size.copy(), turns, each)


@jit
def absorb_row(R, row, first):  # type: ignore[no-untyped-def]
    """Rotate a row ``[x | y]`` of unit variance into ``[R | z]``; its normalised innovation.

    The row is used up. Its entries before `first` are zero. y may be several columns.
    """
    p, width = R.shape
    for k in range(first, p):
        b = row[k]
        if b == 0.0:
            continue
        a = R[k, k]
        r = np.sqrt(a * a + b * b)
        c, s = a / r, b / r
        R[k, k] = r
        for j in range(k + 1, width):
            u, v = R[k, j], row[j]
            R[k, j] = c * u + s * v
            row[j] = c * v - s * u
    return row[width - 1]


@inner
def add_direction_variance(R, row, image, last, variance):  # type: ignore[no-untyped-def]
    """Add `variance` along a direction g to P, the estimate unchanged.

    ``image = R g``, nothing beyond `last`, is used up. The noise w joins the unknowns, as
    ``w / sqrt(variance) = 0`` and ``R (b - g w) = z``, and is eliminated again, from the last row
    to the first, so that R stays triangular.
    """
    p = len(R)
    pivot = 1.0 / np.sqrt(variance)
    for j in range(p + 1):
        row[j] = 0.0
    for k in range(last, -1, -1):
        a = -image[k]
        if a == 0.0:
            continue
        r = np.sqrt(pivot * pivot + a * a)
        c, s = pivot / r, a / r
        pivot = r
        for j in range(k, p + 1):
            u, v = R[k, j], row[j]
            R[k, j] = c * u - s * v
            row[j] = c * v + s * u


@inner
def solve_for_beta(R, beta):  # type: ignore[no-untyped-def]
    """``beta = R^-1 z``."""
    p = len(R)
    for k in range(p - 1, -1, -1):
        value = R[k, p]
        for j in range(k + 1, p):
            value -= R[k, j] * beta[j]
        beta[k] = value / R[k, k]


@inner
def fade_information(R, beta, memory, elapsed, work):  # type: ignore[no-untyped-def]
    """Let the samples so far weigh less: ``P_ij`` grows by ``exp(elapsed / 2 (1/m_i + 1/m_j))``.

    With one memory for all it is (23) of zhang2018 with mu = exp(-step / memory). The estimate
    stays: z follows R.
    """
    p = len(R)
    for k in range(p):
        # R is a root of the information: half the exponent
        work[k] = np.exp(-0.5 * elapsed / memory[k])
    for k in range(p):
        total = 0.0
        for j in range(k, p):
            value = R[k, j] * work[j]
            R[k, j] = value
            total += value * beta[j]
        R[k, p] = total


@inner
def age_information(rule, R, beta, due, place, row, image, elapsed):  # type: ignore[no-untyped-def]
    """Everything that time does to what is known, before the rows of a new instant."""
    p, turns = len(R), len(rule.turns)
    if turns == 0:
        return
    forgets = False
    for k in range(p):
        due[k] += elapsed
        forgets = forgets or rule.memory[k] < np.inf
    if forgets:
        fade_information(R, beta, rule.memory, elapsed, image)
    for _ in range(rule.share):
        k = rule.turns[place[0]]
        place[0] = (place[0] + 1) % turns
        if rule.walk[k] > 0.0:
            for i in range(k + 1):
                image[i] = R[i, k]
            add_direction_variance(R, row, image, k, rule.walk[k] * due[k])
        if rule.memory[k] < np.inf:
            # what is forgotten is replaced by a floor about the estimate, which leaves it
            weight = np.sqrt(rule.floor[k] * (1.0 - np.exp(-due[k] / rule.memory[k])))
            for j in range(k, p + 1):
                row[j] = 0.0
            row[k], row[p] = weight, weight * beta[k]
            absorb_row(R, row, k)
        due[k] = 0.0


@inner
def forget_direction(R, row, image, x, size, share):  # type: ignore[no-untyped-def]
    """Forget a share of what is known along the direction that a row x sees, and no more.

    ``P <- P + share / (1 - share) g g^T / (g^T P^-1 g)`` with ``g = size^2 x`` (Cao and Schwartz
    2000, in natural sizes): the information along g shrinks by the share, that across it stays.
    """
    p = len(R)
    total = 0.0
    for k in range(p):
        value = 0.0
        for j in range(k, p):
            value += R[k, j] * size[j] * size[j] * x[j]
        image[k] = value
        total += value * value
    if total > 0.0 and share > 0.0:
        add_direction_variance(R, row, image, p - 1, share / ((1.0 - share) * total))


@jit
def follow_rows(  # type: ignore[no-untyped-def]
    rule, R, beta, due, place, row, rows, first, group, groups, elapsed, squares
):
    """Absorb rows in order of time; squares of their normalised innovations into `squares`.

    beta belongs to R when it comes, and when it goes. rows is (r, p + 1), of unit variance; elapsed
    is the time since the row before: what is positive begins a new instant, before which what is
    known ages.
    """
    image = np.empty(len(R) + 1)
    step = 0.0
    for t in range(len(rows)):
        if elapsed[t] > 0.0:
            step = elapsed[t]
            if len(rule.turns) > 0:
                if t > 0:
                    solve_for_beta(R, beta)
                age_information(rule, R, beta, due, place, row, image, step)
            place[1] = (place[1] + 1) % groups
        if rule.directional < np.inf and group[t] == place[1]:
            # one group an instant, by turns, for the time of a whole round
            share = 1.0 - np.exp(-step * groups / rule.directional)
            forget_direction(R, row, image, rows[t], rule.size, share)
        e = absorb_row(R, rows[t], first[t])
        squares[t] = e * e
    solve_for_beta(R, beta)
