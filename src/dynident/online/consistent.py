"""Physically consistent at every sample: an interior point that follows the samples.

What the samples tell stays linear and exact, ``R b = z`` of the recursion. The consistent answer
is the projection

    min over theta of  ||R M theta - z||^2 + d^2(theta),   every body and drive consistent

with the regrouping M and the prior's distance d: the criterion of `pc-idim-ls`, the same cone
problem from one sample to the next. It is followed by its barrier: half the criterion less
``MU log det`` of every body's pseudo-inertia and ``MU log`` of what has to be positive, one damped
Newton step a sample, with a matrix that is renewed now and then. The minimum of that is inside of
the cones, and its criterion exceeds the constrained minimum by ``2 MU nu`` at most, nu being four a
body and one a positive parameter: less than what the smallest error bar stands for. Nothing is
accumulated here, so that a million samples drift no further than one.

An extended Kalman step on log-Cholesky coordinates was the alternative. It puts every sample
through the tangent of its time, and what wrong tangents have told stays told. A descent of the
exact criterion in those coordinates was tried instead: sets of equal torques are straight lines
among parameters and curves among coordinates, and along them it fell behind the samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.consistency.constraints import list_consistency
from dynident.consistency.feasible_set import (
    EQUIVALENT,
    FeasiblePoint,
    FeasibleSet,
    build_round_bodies,
)
from dynident.consistency.gyration import list_radii
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.space import LENGTH, ParameterSpace
from dynident.core.arrays import Array, Booleans
from dynident.core.errors import InputError
from dynident.core.factors import System
from dynident.core.inertia import PSEUDO_INERTIA_BASIS
from dynident.core.jit import inner, jit
from dynident.dynamics.base import BaseParameters, draw_random_conditions, draw_random_states
from dynident.online.recursion import REACH

MU = 1e-3
"""Weight of the barrier at rest, in half squared standard deviations."""
FAR, NEAR, STRIDE = 200.0, 0.5, 4.0
"""Squared Newton decrements over the weight beyond which it grows to be a hundredth of them, and
within which it shrinks, and by how much: after samples that tell much the answer first moves
inside, and then back."""
HEAVIEST = 1e4
RENEWED = 50
"""Samples after which the matrix of the steps is made anew."""
HALVINGS = 8


class Projection(NamedTuple):
    """What does not change: the regrouping and the prior, in scaled units."""

    matrix: Array
    """``beta = matrix @ x``, shape (p, unknowns)."""
    pull: Array
    """``G^T G`` of the prior's rows and the slight pull on all directions, shape (unknowns,
    unknowns)."""
    target: Array
    """``G^T g``, shape (unknowns,)."""
    positive: Booleans
    """Drives' parameters that have to be positive, shape (unknowns,)."""
    basis: Array
    """Of the pseudo-inertia, shape (10, 4, 4)."""


@inner
def factorise_pseudo_inertia(x, L):  # type: ignore[no-untyped-def]
    """The Cholesky factor of a body's pseudo-inertia; its log det, or minus infinity."""
    # second moments tr(I) / 2 - I, then first ones and the mass (ardiani2024, eq. 17 and 18)
    half = 0.5 * (x[4] + x[6] + x[9])
    L[0, 0], L[1, 1], L[2, 2] = half - x[4], half - x[6], half - x[9]
    L[1, 0], L[2, 0], L[2, 1] = -x[5], -x[7], -x[8]
    L[3, 0], L[3, 1], L[3, 2], L[3, 3] = x[1], x[2], x[3], x[0]
    total = 0.0
    for j in range(4):
        for k in range(j):
            L[j, j] -= L[j, k] * L[j, k]
        if not L[j, j] > 0.0:
            return -np.inf
        total += np.log(L[j, j])
        L[j, j] = np.sqrt(L[j, j])
        for i in range(j + 1, 4):
            for k in range(j):
                L[i, j] -= L[i, k] * L[j, k]
            L[i, j] /= L[j, j]
    return total


@inner
def evaluate_barrier(x, positive, bodies, L):  # type: ignore[no-untyped-def]
    """Sum of all logarithms, the certificate that all is consistent; else minus infinity."""
    total = 0.0
    for b in range(bodies):
        total += factorise_pseudo_inertia(x[10 * b : 10 * b + 10], L)
    for k in range(10 * bodies, len(x)):
        if positive[k]:
            total += np.log(x[k]) if x[k] > 0.0 else -np.inf
    return total


@inner
def fill_inverse_from_factor(L, W):  # type: ignore[no-untyped-def]
    """``W = (L L^T)^-1``, 4 x 4."""
    for c in range(4):
        for i in range(4):
            value = 1.0 if i == c else 0.0
            for k in range(i):
                value -= L[i, k] * W[k, c]
            W[i, c] = value / L[i, i]
        for i in range(3, -1, -1):
            value = W[i, c]
            for k in range(i + 1, 4):
                value -= L[k, i] * W[k, c]
            W[i, c] = value / L[i, i]


@inner
def evaluate_criterion(R, projection, x, beta, error, pulled):  # type: ignore[no-untyped-def]
    """The criterion but for a constant; fills beta, ``R beta - z``, half the prior's gradient."""
    p, unknowns = projection.matrix.shape
    for i in range(p):
        total = 0.0
        for j in range(unknowns):
            total += projection.matrix[i, j] * x[j]
        beta[i] = total
    cost = 0.0
    for i in range(p):
        total = -R[i, p]
        for j in range(i, p):
            total += R[i, j] * beta[j]
        error[i] = total
        cost += total * total
    for i in range(unknowns):
        total = -projection.target[i]
        for j in range(unknowns):
            total += projection.pull[i, j] * x[j]
        pulled[i] = total
        # x^T G^T G x - 2 x^T G^T g
        cost += (total - projection.target[i]) * x[i]
    return cost


@jit
def renew_newton_factor(R, projection, x, bodies, factor, mu):  # type: ignore[no-untyped-def]
    """Newton's matrix at the present answer, as its Cholesky factor."""
    p, unknowns = projection.matrix.shape
    H = projection.pull.copy()
    row = np.empty(unknowns)
    for i in range(p):
        row[:] = 0.0
        for k in range(i, p):
            value = R[i, k]
            for j in range(unknowns):
                row[j] += value * projection.matrix[k, j]
        for a in range(unknowns):
            value = row[a]
            if value != 0.0:
                for j in range(a + 1):
                    H[a, j] += value * row[j]
    L, W, turned = np.zeros((4, 4)), np.empty((4, 4)), np.empty((10, 4, 4))
    for b in range(bodies):
        factorise_pseudo_inertia(x[10 * b : 10 * b + 10], L)
        fill_inverse_from_factor(L, W)
        for k in range(10):
            for i in range(4):
                for j in range(4):
                    value = 0.0
                    for c in range(4):
                        value += W[i, c] * projection.basis[k, c, j]
                    turned[k, i, j] = value
        for k in range(10):
            for c in range(k + 1):
                value = 0.0
                for i in range(4):
                    for j in range(4):
                        value += turned[k, i, j] * turned[c, j, i]
                H[10 * b + k, 10 * b + c] += mu * value
    for k in range(10 * bodies, unknowns):
        if projection.positive[k]:
            H[k, k] += mu / (x[k] * x[k])
    for j in range(unknowns):
        d = H[j, j]
        for k in range(j):
            d -= H[j, k] * H[j, k]
        # rounding can leave nothing of a direction that others hold: it then stands still
        d = np.sqrt(d) if d > 1e-14 * H[j, j] else 1e30
        H[j, j] = d
        for i in range(j + 1, unknowns):
            value = H[i, j]
            for k in range(j):
                value -= H[i, k] * H[j, k]
            H[i, j] = value / d
    factor[:] = H


@inner
def fill_newton_step(projection, factor, R, error, pulled, x, bodies, mu, beta, step, L, W):  # type: ignore[no-untyped-def]
    """Newton's step under the weight mu; the squared decrement that its matrix promises."""
    p, unknowns = projection.matrix.shape
    for j in range(p):
        beta[j] = 0.0
    for i in range(p):
        value = error[i]
        for j in range(i, p):
            beta[j] += R[i, j] * value
    for j in range(unknowns):
        step[j] = pulled[j]
    for i in range(p):
        value = beta[i]
        for j in range(unknowns):
            step[j] += value * projection.matrix[i, j]
    for b in range(bodies):
        o = 10 * b
        factorise_pseudo_inertia(x[o : o + 10], L)
        fill_inverse_from_factor(L, W)
        # d log det J / d phi_k = tr(J^-1 dJ / d phi_k), with W = J^-1
        step[o] -= mu * W[3, 3]
        for i in range(3):
            step[o + 1 + i] -= 2.0 * mu * W[i, 3]
        step[o + 4] -= 0.5 * mu * (W[1, 1] + W[2, 2] - W[0, 0])
        step[o + 6] -= 0.5 * mu * (W[0, 0] + W[2, 2] - W[1, 1])
        step[o + 9] -= 0.5 * mu * (W[0, 0] + W[1, 1] - W[2, 2])
        step[o + 5] += 2.0 * mu * W[0, 1]
        step[o + 7] += 2.0 * mu * W[0, 2]
        step[o + 8] += 2.0 * mu * W[1, 2]
    for k in range(10 * bodies, unknowns):
        if projection.positive[k]:
            step[k] -= mu / x[k]
    squared = 0.0
    for i in range(unknowns):
        value = -step[i]
        for k in range(i):
            value -= factor[i, k] * step[k]
        step[i] = value / factor[i, i]
        squared += step[i] * step[i]
    for i in range(unknowns - 1, -1, -1):
        step[i] /= factor[i, i]
        value = step[i]
        for k in range(i):
            step[k] -= factor[i, k] * value
    return squared


@jit
def descend_to_consistency(R, projection, bodies, x, factor, weight, count):  # type: ignore[no-untyped-def]
    """One step towards the consistent answer of ``R beta = z``, to a certified point or none.

    weight holds the barrier's; count the samples since the matrix was made (negative where it is
    to be made anew), all samples, and all matrices.
    """
    p, unknowns = projection.matrix.shape
    beta, error, pulled = np.empty(p), np.empty(p), np.empty(unknowns)
    step, trial = np.empty(unknowns), np.empty(unknowns)
    L, W = np.zeros((4, 4)), np.empty((4, 4))
    cost = 0.5 * evaluate_criterion(R, projection, x, beta, error, pulled)
    # as information grows with the samples, a matrix ages by their share
    good = min(RENEWED, 1 + count[1] // 10)
    fresh = count[0] < 0 or count[0] >= good
    for _ in range(2):
        if fresh:
            renew_newton_factor(R, projection, x, bodies, factor, weight[0])
            count[0] = 0
            count[2] += 1
        mu = weight[0]
        squared = fill_newton_step(
            projection, factor, R, error, pulled, x, bodies, mu, beta, step, L, W
        )  # fmt: skip
        if fresh or squared <= FAR * mu:
            break
        fresh = True
    count[0] += 1
    count[1] += 1
    if squared > FAR * mu:
        weight[0] = min(HEAVIEST, 2.0 * squared / FAR)
        count[0] = -1
    elif squared < NEAR * mu and mu > MU:
        weight[0] = max(MU, mu / STRIDE)
        count[0] = -1
    cost -= mu * evaluate_barrier(x, projection.positive, bodies, L)
    share = 1.0
    for _ in range(HALVINGS):
        for k in range(unknowns):
            trial[k] = x[k] + share * step[k]
        inside = evaluate_barrier(trial, projection.positive, bodies, L)
        if inside > -np.inf:
            new = 0.5 * evaluate_criterion(R, projection, trial, beta, error, pulled) - mu * inside
            # a tenth of what the slope promises is enough (Armijo 1966)
            if new <= cost - 0.1 * share * squared:
                x[:] = trial
                if share < 1.0:
                    count[0] = -1
                return
        share *= 0.5
    # where rounding alone is left, nothing is better; else a newer matrix will be
    if squared > 1e-9 * (1.0 + abs(cost)):
        count[0] = -1


class ConsistentAnswer:
    """The consistent answer beside a recursion.

    Parameters
    ----------
    sigma : ndarray, shape (n,)
    knowledge : Knowledge
        Its prior and consistency "pseudo-inertia"; no constraints beside.
    """

    def __init__(self, base: BaseParameters, sigma: Array, knowledge: Knowledge) -> None:
        check_tracker_knowledge(knowledge)
        idim = base.idim
        prior = knowledge.of(idim.robot)
        if not prior.fixed and prior.belief.bodies and prior.weight != 0.0:
            raise InputError(f"metric {prior.metric!r} cannot be tracked; choose a quadratic one")
        self.space = ParameterSpace(base, choose_parameter_units(base, sigma))
        unknowns = len(self.space.unit)
        self.gyrations = knowledge.gyrations(idim.robot)
        self.lift = build_lift(self.space, list_radii(self.gyrations))
        rows, target = prior.rows(unknowns, None)
        slight = EQUIVALENT * build_round_bodies(self.space)
        pull = np.vstack([rows * self.space.unit, EQUIVALENT * np.eye(unknowns)]) @ self.lift
        right = np.concatenate([target, slight])
        self.projection = Projection(
            np.ascontiguousarray(self.space.matrix @ self.lift),
            np.ascontiguousarray(pull.T @ pull),
            np.ascontiguousarray(pull.T @ right),
            np.array(idim.positive),
            np.array(PSEUDO_INERTIA_BASIS),
        )
        self._prior = prior
        self.x = build_round_bodies(self.space)
        self.factor = np.zeros((unknowns, unknowns))
        self.weight = np.ones(1)
        self.count = np.array([-1, 0, 0])

    def update(self, R: Array) -> None:
        """Follow ``[R | z]`` by one step."""
        bodies = self.space.idim.bodies
        descend_to_consistency(
            R, self.projection, bodies, self.x, self.factor, self.weight, self.count
        )

    @property
    def identity(self) -> bytes:
        """What tells one such projection from another."""
        return b"".join(each.tobytes() for each in self.projection)

    @property
    def gap(self) -> float:
        """What the barrier's minimum has more of the criterion than the constrained minimum."""
        positive = int(np.sum(self.projection.positive))
        return 2.0 * MU * (4 * self.space.idim.bodies + positive)

    @property
    def theta(self) -> Array:
        """Standard parameters."""
        return self.space.value(self.lift @ self.x)

    def projected(self, R: Array) -> FeasiblePoint:
        """The exact minimum of the same criterion, by the cone solver, with its certificate."""
        p = self.space.base.count
        parts = list_consistency("pseudo-inertia", list_radii(self.gyrations))
        cones = [cone for part in parts for cone in part.cones(self.space)]
        slight = EQUIVALENT * np.eye(len(self.space.unit))
        admitted = FeasibleSet(self.space, tuple(cones), self._prior, 1.0, slight)
        return admitted.solve(System(R[:, :p].copy(), R[:, p].copy(), 0.0))


def build_lift(space: ParameterSpace, radii: tuple[float, ...]) -> Array:
    """From unknowns whose bodies are merely consistent to those with least radii of gyration.

    ``J = J' + m r^2 diag(1, 1, 1, 0)``: 2 m r^2 more of each moment of inertia. J' is positive
    definite exactly when J has its radius, so that the barrier need not know of any.
    """
    lift = np.eye(len(space.unit))
    for k, radius in enumerate(radii):
        for entry in (4, 6, 9):
            lift[10 * k + entry, 10 * k] = 2.0 * (radius / LENGTH) ** 2
    return lift


def check_tracker_knowledge(knowledge: Knowledge) -> None:
    """Refuse what the descent does not know."""
    if knowledge.constraints or knowledge.consistency != "pseudo-inertia":
        raise InputError(
            "a consistent tracker supports consistency 'pseudo-inertia' and a prior, and no other "
            "constraints; identify with pc-idim-ls for those"
        )


def choose_parameter_units(base: BaseParameters, sigma: Array) -> Array:
    """Units of the standard parameters: links' masses, and what moves torques by `REACH` sigma."""
    idim, samples = base.idim, 200
    states = draw_random_states(idim, samples, 0)
    W = (
        idim.regressor(*states, draw_random_conditions(idim, samples, 0))
        / np.asarray(sigma)[:, None]
    )
    unit = REACH / np.sqrt(np.maximum(np.mean(np.sum(W**2, axis=1), axis=0), 1e-300))
    for k in range(idim.bodies):
        mass = idim.robot.nominal[k, 0] if idim.robot.nominal[k, 0] > 0.0 else 1.0
        unit[10 * k : 10 * k + 10] = mass * np.array([1.0] + [LENGTH] * 3 + [LENGTH**2] * 6)
    return np.asarray(unit)
