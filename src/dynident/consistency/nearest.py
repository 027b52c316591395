"""The consistent set nearest to given parameters, and whether there is one at all.

Parameters come inconsistent from drawings, robot files, published tables and estimators
without constraints. Repairing them is the cone problem again: the given values are the
centre of the prior, or rows with the given standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.conic.active_set import Certificate
from dynident.conic.cones import Cone, NonnegativeCone, ZeroCone
from dynident.consistency.constraints import Constraint, list_consistency
from dynident.consistency.feasible_set import FeasiblePoint, FeasibleSet, build_feasible_set
from dynident.consistency.gyration import Gyration
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.prior import METRICS, Prior, build_belief
from dynident.consistency.space import build_standard_space
from dynident.core.arrays import Array
from dynident.core.errors import InfeasibleError, InputError, check_type, refuse_unknown
from dynident.core.factors import System
from dynident.core.inertia import find_smallest_eigenvalue, to_pseudo_inertia
from dynident.core.threads import limit_to_one_thread
from dynident.core.words import ROUNDED
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import build_idim
from dynident.robot.model import Robot

UNCHANGED = 1e-6
"""Distance below which a consistent body counts as unchanged, the solver's rounding."""
MEASURED = {"entropic": "pullback"}
"""The metric in which a repair is told where the one that was asked for cannot."""
LEAST_STD = 1e-3
"""Standard deviation over the value, of parameters that come with none."""


@dataclass(frozen=True)
class RepairedBodies:
    """Consistent inertial parameters and how far they are from those given.

    Attributes
    ----------
    phi : ndarray, shape (bodies, 10)
    distance : ndarray, shape (bodies,)
        In the metric: one is a body changed by its own size.
    before, after : ndarray, shape (bodies,)
        Smallest eigenvalues of the pseudo-inertias.
    certificate : Certificate
    """

    phi: Array
    distance: Array
    before: Array
    after: Array
    certificate: Certificate

    @property
    def changed(self) -> tuple[int, ...]:
        """Bodies that were not consistent, or that a constraint changed."""
        repaired = (self.before <= 0.0) & (self.after > 0.0)
        return tuple(int(k) for k in np.flatnonzero((self.distance > 0.0) | repaired))


@limit_to_one_thread
def nearest_consistent(
    robot: Robot,
    phi: Array | None = None,
    metric: str = "pullback",
    constraints: Sequence[Constraint] = (),
    gyrations: Sequence[Gyration] = (),
) -> RepairedBodies:
    """The consistent inertial parameters nearest to given ones, link by link.

    >>> di.nearest_consistent(robot).phi.shape
    (2, 10)

    Parameters
    ----------
    robot : Robot
    phi : ndarray, shape (bodies, 10), optional
        The robot file's own by default. Bodies that are zero throughout are left alone.
    metric : str
        Name in `dynident.consistency.prior.METRICS`. Distances are measured at the given bodies,
        inflated where they are not consistent; "entropic" admits no inconsistent centre
        and starts from the inflated ones.
    constraints : sequence of Constraint
        Other known facts: a weighed robot, regions, symmetry.
    gyrations : sequence of Gyration
        Least radii of gyration, one a link, of those that are not consistent as they are; see
        `dynident.consistency.gyration.list_gyrations`. Without, the nearest body to one that is
        not consistent is a needle.

    Raises
    ------
    InputError
        For unknown metrics and wrong shapes.
    InfeasibleError
        When the constraints contradict each other.
    """
    check_type("nearest_consistent", robot, Robot, "dynident.load_robot(file) makes one")
    refuse_unknown(metric, METRICS, f"metric {metric!r} is not known")
    given = np.asarray(robot.nominal if phi is None else phi, dtype=np.float64)
    if given.shape != robot.nominal.shape or not np.all(np.isfinite(given)):
        raise InputError(
            f"{robot.name}: needs finite inertial parameters of shape {robot.nominal.shape}"
        )
    base = base_parameters(build_idim(robot, "none", rotor=False))
    # without rows: there are no drives, whose units these would give
    space = build_standard_space(base, np.zeros((1, base.count)), np.zeros(1))
    before = find_smallest_eigenvalue(given)
    belief = build_belief(given, robot.links)
    centre = to_pseudo_inertia(given[list(belief.bodies)])
    given_centre = centre
    sound = before[list(belief.bodies)] > 0.0
    if metric == "entropic":
        inflated = np.where(sound[:, None, None], centre, belief.inflated)
        belief = replace(belief, centre=inflated, inflated=inflated)
    else:
        belief = replace(belief, centre=centre)
    empty = [k for k in range(len(given)) if k not in belief.bodies]
    _refuse_massless(robot, given, empty, bool(constraints) or not belief.bodies)
    # what is consistent stays as it is, however concentrated
    asked = zip(before > 0.0, gyrations, strict=True) if gyrations else ()
    radii = tuple(0.0 if found else each.radius for found, each in asked)
    cones = [
        cone
        for constraint in (*list_consistency("pseudo-inertia", radii), *constraints)
        for cone in constraint.cones(space)
    ]
    # bodies that are left alone get a slight pull to zero, so that the answer is unique
    rest = np.zeros((10 * len(empty), len(space.unit)))
    for i, k in enumerate(empty):
        rest[10 * i : 10 * i + 10, 10 * k : 10 * k + 10] = np.eye(10)
    admitted = FeasibleSet(space, tuple(cones), Prior(belief, metric), 1.0, rest)
    point = admitted.solve(System(np.zeros((0, base.count)), np.zeros(0), 0.0))
    assert point.theta is not None
    found = point.theta.reshape(-1, 10).copy()
    found[empty] = 0.0
    distance = np.zeros(len(given))
    for i, k in enumerate(belief.bodies):
        if before[k] > 0.0 and not constraints:
            found[k] = given[k]
            continue
        # what is not consistent has no divergence from itself
        measure = metric if before[k] > 0.0 else MEASURED.get(metric, metric)
        one = replace(
            belief, bodies=(k,), centre=given_centre[i][None], inflated=belief.inflated[[i]]
        )
        distance[k] = np.sqrt(max(0.0, Prior(one, measure).distance(point.theta)))
        if before[k] > 0.0 and distance[k] < UNCHANGED:
            found[k], distance[k] = given[k], 0.0
    return RepairedBodies(
        found, distance, before, find_smallest_eigenvalue(found),
        point.solution.certificate,
    )  # fmt: skip


def _refuse_massless(robot: Robot, given: Array, empty: Sequence[int], needed: bool) -> None:
    """Refuse bodies without mass that have moments, or are `needed` as something to be near to."""
    for k in empty:
        if np.any(given[k] != 0.0):
            raise InputError(
                f"{robot.name}: {robot.links[k]} has moments but no positive mass, so that no "
                "metric defines what is near it; give it a mass first"
            )
    if empty and needed:
        raise InputError(
            f"{robot.name}: {robot.links[empty[0]]} has no inertials at all, so that there is "
            "nothing to be near to; give it a mass first"
        )


@limit_to_one_thread
def nearest_to_base(
    base: BaseParameters, beta: Array, std: Array, knowledge: Knowledge | None = None
) -> FeasiblePoint:
    """The consistent standard set whose base parameters are nearest to given ones.

    ``min ||(beta(theta) - beta) / std||^2`` and the prior, over the admitted parameters:
    the correction of Sousa and Cortesao (2014), with the errors of the estimates as the
    measure of distance.

    >>> free = di.identify(problem, "wls")
    >>> std = free.estimate.covariance.std
    >>> point = di.nearest_to_base(free.base, free.estimate.beta, std)

    Parameters
    ----------
    base : BaseParameters
    beta, std : ndarray, shape (base parameters,)
        Parameters with a std of zero count as known to `LEAST_STD`, those with an infinite
        one as unknown.
    knowledge : Knowledge, optional

    Raises
    ------
    InputError, InfeasibleError, ComputationError
    """
    beta, std = take_measured(base, beta, std)
    system = build_measured_system(beta, std)
    return build_feasible_set(base, system, knowledge or Knowledge()).solve(system)


def take_measured(base: BaseParameters, beta: Array, std: Array) -> tuple[Array, Array]:
    """Base parameters and their standard deviations as arrays, refused where they are none."""
    beta, std = np.asarray(beta, dtype=float), np.asarray(std, dtype=float)
    fit = beta.shape == std.shape == (base.count,)
    if not fit or not np.isfinite(beta).all() or (std < 0.0).any():
        raise InputError(
            f"beta and std need {base.count} values each, one per base parameter: beta finite, std "
            "zero or more"
        )
    return beta, std


def build_measured_system(beta: Array, std: Array) -> System:
    """Base parameters with their standard deviations as rows.

    What an active bound holds has one that only rounding leaves, and counts as having none.
    """
    size = np.maximum(np.abs(beta), 1e-3 * float(np.max(np.abs(beta), initial=1e-9)))
    sigma = np.where(std > ROUNDED * size, std, LEAST_STD * size)
    return System(np.diag(1.0 / sigma), beta / sigma, 0.0)


@dataclass(frozen=True)
class Witness:
    """Whether some consistent standard set has given base parameters.

    Attributes
    ----------
    theta : ndarray, shape (standard parameters,), or None
        Such a set, the nearest one to the middle; None where there is none. Where
        consistency is said on base parameters, these in the places of those they keep.
    conflict : tuple of str
        Constraints that then contradict each other, none of which could be spared.
    """

    theta: Array | None
    conflict: tuple[str, ...]

    @property
    def found(self) -> bool:
        """Whether there is one."""
        return self.theta is not None


@limit_to_one_thread
def consistent_witness(
    base: BaseParameters,
    beta: Array,
    std: Array,
    width: float = 3.0,
    consistency: str = "pseudo-inertia",
) -> Witness:
    """A consistent standard set within some standard deviations, or the conflict that excludes it.

    Problem (47) of ardiani2024: the cones of eq. 19 with
    ``|beta(theta) - beta| <= width std``; its equality form for width 0.

    >>> free = di.identify(problem, "wls")
    >>> std = free.estimate.covariance.std
    >>> di.consistent_witness(free.base, free.estimate.beta, std).found
    True

    Parameters
    ----------
    base : BaseParameters
    beta, std : ndarray, shape (base parameters,)
    width : float
        In standard deviations.
    consistency : str

    Raises
    ------
    ComputationError
        When it could not be decided.
    """
    beta, std = take_measured(base, beta, std)
    if not width >= 0.0:
        raise InputError(f"width is {width}, but has to be zero or more standard deviations")
    system = build_measured_system(beta, std)
    knowledge = Knowledge(prior="none", consistency=consistency)
    if knowledge.consistency == "pseudo-inertia":
        knowledge = replace(knowledge, gyration=0.0)
    admitted = build_feasible_set(base, system, knowledge)
    known = np.flatnonzero(np.isfinite(std))
    names = [base.names[k] for k in known]
    matrix = admitted.space.matrix[known]
    size = np.linalg.norm(matrix, axis=1)
    # rows of length one: what they miss is in the units of the unknowns
    G, middle = matrix / size[:, None], beta[known] / size
    half = width / np.diag(system.A)[known] / size
    band: tuple[Cone, ...]
    if width == 0.0:
        titles = tuple(f"{name} = {b:.4g}" for name, b in zip(names, beta[known], strict=True))
        band = (ZeroCone(titles, G, middle),)
    else:
        band = (
            NonnegativeCone(tuple(f"{name} - {width:g} sigma" for name in names), G, middle - half),
            NonnegativeCone(
                tuple(f"{name} + {width:g} sigma" for name in names), -G, -middle - half
            ),
        )
    try:
        point = replace(admitted, cones=(*admitted.cones, *band)).solve(system)
    except InfeasibleError as error:
        return Witness(None, error.conflict)
    return Witness(base.standard(point.beta) if point.theta is None else point.theta, ())


def describe_base_shift(base: BaseParameters, given: Array, std: Array, beta: Array) -> str:
    """How far base parameters had to move to be those of consistent links."""
    moved = np.abs(beta - given) * np.diag(build_measured_system(given, std).A)
    worst = int(np.argmax(moved))
    return (
        f"the nearest consistent links move the base parameters by {moved[worst]:.2g} sigma at "
        f"most ({base.names[worst]}), {np.sqrt(np.mean(moved**2)):.2g} in the mean"
    )
