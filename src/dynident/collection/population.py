"""Robots of one type as one population: common parameters, and deviations with spreads.

Robot i has the parameters ``beta + M d_i`` with deviations ``d_i ~ N(0, diag(s)^2)``: those of
drives differ from robot to robot, all others are common. Whitened triangles ``z_i = R_i (beta +
M d_i) + e_i`` are all that is kept of a robot, and what it tells of ``beta`` is a triangle again,
its deviation eliminated: the whole is the arrow-structured factorisation of a mixed model (Pinheiro
and Bates 2000, sec. 2.2), whose cost grows with the number of robots alone. Sessions of a robot are
such a population, too.

Spreads are estimated, and that widens intervals. With ``C`` the covariance of all predicted
deviations and ``E = 1 - C / (s s')``, the information of the restricted likelihood about ``log s``
is ``I_mn = 2 sum_ij E_im,jn^2``, and a variance ``f`` of what is predicted moves by ``2 sum_i
cov(f, d_im)^2 / s_m^2`` (both from the derivative of the inverse of Henderson's matrix). So many
degrees of freedom has ``f``: ``2 f^2 / (g^T I^-1 g)`` (Satterthwaite 1946; Fai and Cornelius 1996).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import stdtrit

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.factors import UNEXCITED, System, stack_triangles, triangularise_rows
from dynident.regression.statistics import NORMAL

ROUNDS = 100
"""Of scoring, at most."""
SETTLED = 1e-2
"""Step over its standard error by which spreads have settled."""
STRIDE = 1.0
"""Longest step of a logarithm."""
FEWEST = 2.0
"""Degrees of freedom that a variance has at least: with fewer its t has none."""
MANY = 1e6
"""Degrees of freedom of what is known."""


@dataclass(frozen=True, eq=False)
class SharedPrediction:
    """Parameters that some triangles share, and their deviations, under some spreads.

    Errors are ``root`` times independent normal variables of the common parameters, and those of a
    deviation ``own`` times some of its own, less ``shared`` times the common ones.
    """

    beta: Array
    """Generalised least squares, shape (p,)."""
    root: Array
    """Shape (p, p)."""
    spread: Array
    """Standard deviations of the deviations, shape (q,)."""
    deviations: Array
    """Best linear unbiased predictions (Henderson 1975), shape (triangles, q)."""
    own: Array
    """Shape (triangles, q, q)."""
    shared: Array
    """Shape (triangles, q, p)."""
    triangles: Array
    """What each tells of the common parameters, shape (triangles, p + 1, p + 1)."""

    @cached_property
    def errors(self) -> Array:
        """Standard errors of deviations as if spreads were known, shape (triangles, q)."""
        return np.asarray(np.linalg.norm(np.concatenate([self.own, self.shared], axis=2), axis=2))

    @cached_property
    def _sums(self) -> Array:
        """``sum_i shared_im^T shared_im / s_m^2`` of each deviation, shape (q, p, p)."""
        scaled = self.shared / self.spread[:, None]
        return np.asarray(np.einsum("imk,iml->mkl", scaled, scaled, optimize=True))

    def differentiate(self) -> tuple[Array, Array]:
        """Slope and information of the restricted likelihood about the logarithms of spreads."""
        scaled = self.own / self.spread[:, None]
        told = np.eye(len(self.spread)) - scaled @ scaled.transpose(0, 2, 1)
        common = self.shared / self.spread[:, None]
        cross = common @ common.transpose(0, 2, 1)
        flat = self._sums.reshape(len(self.spread), -1)
        information = 2.0 * (np.sum(told * (told - 2.0 * cross), axis=0) + flat @ flat.T)
        slope = np.sum((self.deviations**2 + self.errors**2) / self.spread**2 - 1.0, axis=0)
        return slope, information

    def slope_variances(self, common: Array, own: Array | None = None, number: int = 0) -> Array:
        """How variances move with the logarithms of spreads, shape (variances, q).

        `common`, `own`, shape (variances, p), (variances, q): errors by the independent variables
        of the common parameters, and by those of the deviation with this number.
        """
        found = np.einsum("vk,mkl,vl->vm", common, self._sums, common, optimize=True)
        if own is not None:
            apart = own @ self.own[number].T / self.spread
            found += apart * (apart - 2.0 * (common @ self.shared[number].T) / self.spread)
        return np.asarray(2.0 * found)


@dataclass(frozen=True, eq=False)
class Population:
    """What robots of one type share, and how they differ, their spreads estimated."""

    found: SharedPrediction
    M: Array
    """From deviations to parameters, shape (p, q)."""
    unsure: Array
    """Covariance of the logarithms of spreads, shape (q, q)."""

    @property
    def spread(self) -> Array:
        """Standard deviations of the deviations."""
        return self.found.spread

    @property
    def triangles(self) -> tuple[Array, ...]:
        """What each robot tells of the type."""
        return tuple(self.found.triangles)

    def know_type(self, combination: Array) -> tuple[Array, Array]:
        """Combinations of what robots share, shape (k, p), and a root of their covariance."""
        return combination @ self.found.beta, self.widen(combination @ self.found.root)

    def know_robot(self, number: int, combination: Array) -> tuple[Array, Array]:
        """Combinations of a robot's parameters and a root of their covariance."""
        found, M = self.found, combination @ self.M
        common = combination @ found.root - M @ found.shared[number]
        own = M @ found.own[number]
        value = combination @ found.beta + M @ found.deviations[number]
        return value, self.widen(common, own, number)

    def know_deviation(self, number: int) -> tuple[Array, Array]:
        """A robot's deviations and their standard errors."""
        found = self.found
        root = self.widen(-found.shared[number], found.own[number], number)
        return found.deviations[number], np.linalg.norm(root, axis=1)

    def widen(self, common: Array, own: Array | None = None, number: int = 0) -> Array:
        """Errors by independent variables, longer by what spreads are not known.

        So long that normal intervals of 95 % are those of t: `SharedPrediction.slope_variances`.
        """
        root = common if own is None else np.hstack([common, own])
        variances = np.sum(root**2, axis=1)
        slopes = self.found.slope_variances(common, own, number)
        freedom = count_freedom(variances, slopes, self.unsure)
        return np.asarray(root * (stdtrit(freedom, 0.975) / NORMAL)[:, None])


def count_freedom(variances: Array, slopes: Array, unsure: Array) -> Array:
    """Degrees of freedom of variances that move with spreads."""
    moved = np.einsum("vm,mn,vn->v", slopes, unsure, slopes)
    known = moved * MANY <= 2.0 * variances**2
    found = 2.0 * variances**2 / np.where(known, 1.0, moved)
    return np.asarray(np.maximum(np.where(known, MANY, found), FEWEST))


def add_deviation(triangles: Array, M: Array, spread: Array) -> tuple[Array, Array]:
    """What triangles tell of parameters from which those of each deviate by ``M d``.

    Parameters
    ----------
    triangles : ndarray, shape (..., k, p + 1)
        ``[R z]``, of unit variance.
    M : ndarray, shape (p, q)
    spread : ndarray, shape (q,)
        Standard deviations of d; none of which is zero.

    Returns
    -------
    told : ndarray, shape (..., p + 1, p + 1)
        ``[R' z']`` with d eliminated.
    elimination : ndarray, shape (..., q, q + p + 1)
        ``[U V w]``: ``U d = w - V beta`` to within errors of unit variance.
    """
    *many, height, width = triangles.shape
    q = len(spread)
    rows = np.zeros((*many, q + height, q + width))
    rows[..., :q, :q] = np.diag(1.0 / spread)
    rows[..., q:, :q], rows[..., q:, q:] = triangles[..., :-1] @ M, triangles
    R = triangularise_rows(rows)
    told = np.zeros((*many, width, width))
    told[..., : R.shape[-2] - q, :] = R[..., q:, q:]
    return told, R[..., :q, :]


def fit_spreads(
    families: Sequence[Array], M: Array, start: Array
) -> tuple[Array, Array, list[SharedPrediction]]:
    """Spreads that several families of triangles have in common, by restricted maximum likelihood.

    Parameters
    ----------
    families : sequence of ndarray, shape (triangles, k, p + 1)
        Triangles that share parameters, which those of other families need not share.
    M : ndarray, shape (p, q)
    start : ndarray, shape (q,)
        Spreads to begin with.

    Returns
    -------
    spread : ndarray, shape (q,)
    unsure : ndarray, shape (q, q)
        Covariance of their logarithms.
    found : list of SharedPrediction
        Of each family.
    """
    spread, freedom = start, sum(len(each) - 1 for each in families)
    for _ in range(ROUNDS):
        found = [predict_deviations(triangles, M, spread) for triangles in families]
        slopes, informations = zip(*(each.differentiate() for each in found), strict=True)
        information = np.sum(informations, axis=0)
        told = np.minimum(np.sqrt(np.diag(information) / (2.0 * freedom)), 1.0)
        # a spread that is estimated as zero would have errors of zero: a prior that grows with it
        # as long as triangles hardly tell it keeps it off (Chung et al. 2013)
        slope = np.sum(slopes, axis=0) + 1.0 - told
        information = information + np.diag((1.0 - told) ** 2)
        step = np.linalg.solve(information, slope)
        if np.max(np.abs(step) * np.sqrt(np.diag(information))) < SETTLED:
            break
        spread = spread * np.exp(np.clip(step, -STRIDE, STRIDE))
    return spread, np.linalg.inv(information), found


def fit_population(triangles: Sequence[Array], M: Array, start: Array) -> Population:
    """The population of robots, their spreads estimated (see `fit_spreads`).

    Raises
    ------
    ComputationError
        Where the robots leave a parameter of the type open.
    """
    _, unsure, (found,) = fit_spreads([np.array(triangles)], M, start)
    system = System.of(stack_triangles([*found.triangles]))
    # a tool that no robot carries which belongs has empty columns
    rank, asked = system.condition()[1], int(np.sum(np.any(system.A, axis=0)))
    if rank < asked:
        raise ComputationError(
            f"all robots together do not determine {asked - rank} of {asked} base "
            f"parameters (condition number above {UNEXCITED:.0e}): give logs with more motion"
        )
    return Population(found, M, unsure)


def predict_deviations(triangles: Array, M: Array, spread: Array) -> SharedPrediction:
    """What triangles share and their deviations, under some spreads."""
    told, lines = add_deviation(triangles, M, spread)
    system = System.of(stack_triangles([*told]))
    beta, root = system.solve(), system.inverse()
    return SharedPrediction(beta, root, spread, *solve_deviation(lines, beta, root), told)


def solve_deviation(elimination: Array, beta: Array, root: Array) -> tuple[Array, Array, Array]:
    """Deviations that were eliminated, and their errors; see `SharedPrediction`.

    Parameters
    ----------
    elimination : ndarray, shape (..., q, q + p + 1)
        See `add_deviation`.
    root : ndarray, shape (p, p)
        A root of the covariance of beta.
    """
    q = elimination.shape[-2]
    U, V, w = elimination[..., :q], elimination[..., q:-1], elimination[..., -1]
    right = np.concatenate(
        [(w - V @ beta)[..., None], np.broadcast_to(np.eye(q), U.shape), V @ root], axis=-1
    )
    half = np.linalg.solve(U, right)
    return half[..., 0], half[..., 1 : q + 1], half[..., q + 1 :]


def describe_knowledge(values: Array, root: Array, rows: float) -> Array:
    """The triangle of least squares whose answer these values are, with errors of this root.

    Parameters
    ----------
    values : ndarray, shape (p,)
    root : ndarray, shape (p, k)
    rows : float
        That it is worth; what is left of them is that of unit variance.
    """
    p = len(values)
    R = solve_triangular(triangularise_rows(root.T).T, np.eye(p), lower=True)
    known = np.zeros((p + 1, p + 1))
    known[:p] = triangularise_rows(np.column_stack([R, R @ values]))
    known[p, p] = np.sqrt(max(rows - p, 1.0))
    return known


def leave_each_out(triangles: Sequence[Array]) -> list[Array]:
    """What all others tell, for each of at least two triangles."""
    before, after = [triangles[0]], [triangles[-1]]
    for early, late in zip(triangles[1:], triangles[-2::-1], strict=True):
        before.append(stack_triangles([before[-1], early]))
        after.append(stack_triangles([after[-1], late]))
    first, last = after[-2], before[-2]
    inner = zip(before[:-2], after[-3::-1], strict=True)
    return [first, *(stack_triangles(pair) for pair in inner), last]


def compare_triangles(triangles: Sequence[Array]) -> tuple[float, int]:
    """How far triangles contradict each other about the same parameters.

    Returns
    -------
    statistic : float
        By how much the sum of squares grows where all have one answer: chi squared.
    freedom : int
        Directions that are told more than once.
    """
    together = System.of(stack_triangles(triangles))
    apart = [System.of(stack_triangles([each])) for each in triangles]
    ranks = [system.condition()[1] for system in (*apart, together)]
    rests = [
        own.rest + float(np.sum((own.A @ own.solve() - own.b) ** 2)) for own in (*apart, together)
    ]
    return max(rests[-1] - sum(rests[:-1]), 0.0), sum(ranks[:-1]) - ranks[-1]
