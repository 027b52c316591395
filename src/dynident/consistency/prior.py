"""What is believed of bodies beforehand, and how far from it an answer is.

A prior is a centre, each body's believed pseudo-inertia J0, and a metric. All metrics are
of order one for a body changed by its own size, which is the prior's standard deviation; a
weight multiplies the squared distance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynident.conic.cones import svec
from dynident.core.arrays import Array
from dynident.core.inertia import PSEUDO_INERTIA_BASIS, to_pseudo_inertia

GYRATION = 0.03
"""Radius of gyration below which a robot file is not believed [m]."""


@dataclass(frozen=True)
class BodyBelief:
    """Bodies whose inertials are believed."""

    bodies: tuple[int, ...]
    centre: Array
    """Their pseudo-inertias J0, shape (k, 4, 4)."""
    inflated: Array
    """Shape (k, 4, 4). J0 inflated by the second moments of a radius of gyration `GYRATION`,
    positive definite: what distances are measured with. Robot files round small inertias to
    nothing."""
    doubtful: tuple[str, ...]
    """Links whose J0 is inconsistent, and was inflated as a centre too."""


def build_belief(phis: Array, links: Sequence[str]) -> BodyBelief:
    """Belief in inertial parameters, shape (bodies, 10); bodies without mass are left out."""
    bodies, centres, all_inflated, doubtful = [], [], [], []
    for k, phi in enumerate(phis):
        if phi[0] <= 0.0:
            continue
        centre = to_pseudo_inertia(phi)
        inflated = centre + phi[0] * GYRATION**2 * np.diag([1.0, 1.0, 1.0, 0.0])
        if np.linalg.eigvalsh(centre)[0] <= 0.0:
            doubtful.append(links[k])
            values, vectors = np.linalg.eigh(inflated)
            # extents that no body has become thin ones, so that the metrics are defined
            centre = inflated = vectors * np.maximum(values, 1e-3 * values[-1]) @ vectors.T
        bodies.append(k)
        centres.append(centre)
        all_inflated.append(inflated)
    empty = np.zeros((0, 4, 4))
    return BodyBelief(
        tuple(bodies), np.array(centres or empty), np.array(all_inflated or empty), tuple(doubtful)
    )


@dataclass(frozen=True)
class Metric:
    """A squared distance ``||rows phi - target||^2`` of one body from its centre.

    Attributes
    ----------
    words : str
    rows : callable
        ``rows(centre, inflated, now)`` gives the rows (10, 10) and the target (10,); `now` is
        the body's present pseudo-inertia.
    fixed : bool
        Whether the rows are the same wherever the body is; else they are a quadratic model
        at `now` and the answer is iterated.
    """

    words: str
    rows: Callable[[Array, Array, Array], tuple[Array, Array]]
    fixed: bool = True


def build_metric_rows(root: Array, target: Array) -> tuple[Array, Array]:
    """``1/2 ||root (J - target) root||^2`` as rows."""
    rows = svec(root @ PSEUDO_INERTIA_BASIS @ root).T / np.sqrt(2.0)
    return rows, svec(root @ target @ root) / np.sqrt(2.0)


def compute_inverse_root(matrix: Array) -> Array:
    """``J^(-1/2)`` of a positive definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 1e-9 * values[-1])  # of thin bodies rounding may leave none
    return np.asarray(vectors * values**-0.5 @ vectors.T)


def pullback(centre: Array, inflated: Array, now: Array) -> tuple[Array, Array]:
    """``1/2 tr((J0^-1 (J - J0))^2)``: the Riemannian metric at J0 (Lee and Park 2018).

    Depends neither on units nor on the frame. Taken at the inflated body: at a thin one its inverse
    would hold the small moments far tighter than any file knows them.
    """
    return build_metric_rows(compute_inverse_root(inflated), centre)


def euclidean(centre: Array, inflated: Array, now: Array) -> tuple[Array, Array]:
    """``1/2 ||D (J - J0) D||^2`` with one mass and one length for all bodies.

    1 kg and 0.1 m: the plain distance of the literature, made commensurable. It depends on
    the frame's origin.
    """
    return build_metric_rows(np.diag([10.0, 10.0, 10.0, 1.0]), centre)


def weighted(centre: Array, inflated: Array, now: Array) -> tuple[Array, Array]:
    """``1/2 ||D (J - J0) D||^2`` with the body's own mass and size.

    The size is the root of the second moment about the joint frame's origin, a third of
    it each axis. Depends on the frame's origin, not on units.
    """
    mass = inflated[3, 3]
    size = np.sqrt(np.trace(inflated[:3, :3]) / 3.0 / mass)
    return build_metric_rows(np.diag([1.0 / size] * 3 + [1.0]) / np.sqrt(mass), centre)


def entropic(centre: Array, inflated: Array, now: Array) -> tuple[Array, Array]:
    """Log-det Bregman divergence ``tr(J J0^-1) - log det(J J0^-1) - 4`` (Lee et al. 2020).

    Its quadratic model at `now`, X: ``1/2 ||X^(-1/2) (J - 2 X + X J0^-1 X) X^(-1/2)||^2``, by the
    gradient ``J0^-1 - X^-1`` and the Hessian ``D -> X^-1 D X^-1`` of -log det.
    J0 is the inflated one, since the divergence is infinite from a body without extent.
    """
    return build_metric_rows(
        compute_inverse_root(now), 2.0 * now - now @ np.linalg.solve(inflated, now)
    )


def measure_divergence(inflated: Array, now: Array) -> float:
    """``tr(J J0^-1) - log det(J J0^-1) - 4``, infinite outside the consistent set."""
    values = np.linalg.eigvals(np.linalg.solve(inflated, now)).real
    if np.any(values <= 0.0):
        return np.inf
    return float(np.sum(values - np.log(values)) - len(values))


METRICS: dict[str, Metric] = {
    "pullback": Metric("pullback metric", pullback),
    "euclidean": Metric("euclidean metric, 1 kg and 0.1 m", euclidean),
    "weighted": Metric("weighted metric, each link's mass and size", weighted),
    "entropic": Metric(
        "log-det divergence, 3 cm of gyration added to links", entropic, fixed=False
    ),
}
"""How far a body is from its centre, by name."""


@dataclass(frozen=True)
class Prior:
    """Belief, metric (by its name in `METRICS`) and weight."""

    belief: BodyBelief
    metric: str = "pullback"
    weight: float = 1.0

    @property
    def fixed(self) -> bool:
        """Whether `rows` does not depend on the bodies."""
        return METRICS[self.metric].fixed

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return not self.belief.bodies or self.weight == 0.0

    @property
    def words(self) -> str:
        """What the result says of it."""
        if self.empty:
            return "none"
        words = "inertials of the robot file, each link within its own size ("
        words += METRICS[self.metric].words
        words += f", weight {self.weight:.3g})" if self.weight != 1.0 else ")"
        if self.belief.doubtful:
            words += "; inconsistent in the file and repaired: " + ", ".join(self.belief.doubtful)
        return words

    def rows(self, parameters: int, theta: Array | None = None) -> tuple[Array, Array]:
        """Rows and target over the standard parameters, in SI units.

        A metric that is not fixed takes its model at theta, by default at the centre.
        """
        bodies = () if self.empty else self.belief.bodies
        rows, target = np.zeros((10 * len(bodies), parameters)), np.zeros(10 * len(bodies))
        root = np.sqrt(self.weight)
        for i, k in enumerate(bodies):
            centre, inflated = self.belief.centre[i], self.belief.inflated[i]
            own, body = slice(10 * i, 10 * i + 10), slice(10 * k, 10 * k + 10)
            now = inflated if theta is None else to_pseudo_inertia(theta[body])
            block, aim = METRICS[self.metric].rows(centre, inflated, now)
            rows[own, body], target[own] = root * block, root * aim
        return rows, target

    def distance(self, theta: Array) -> float:
        """The squared distance times the weight."""
        if self.fixed:
            rows, target = self.rows(len(theta))
            return float(np.sum((rows @ theta - target) ** 2))
        total = sum(
            measure_divergence(inflated, to_pseudo_inertia(theta[10 * k : 10 * k + 10]))
            for k, inflated in zip(self.belief.bodies, self.belief.inflated, strict=True)
        )
        return self.weight * total


NO_PRIOR = Prior(BodyBelief((), np.zeros((0, 4, 4)), np.zeros((0, 4, 4)), ()), weight=0.0)
"""Nothing is believed beforehand."""
