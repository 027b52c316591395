"""Scenario 3: overly restrictive constraints, and constraints (27) beside (19).

Section IV-D of ardiani2024. Bounds that the true parameters do not meet, what tells of them,
and the constrained estimate predicted from the unconstrained one; then problem (47), whether a
consistent robot has the base parameters that were found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.conic.cones import Cone, NonnegativeCone, SemidefiniteCone
from dynident.conic.solve import solve_cone_problem
from dynident.consistency.constraints import Bounds
from dynident.consistency.feasible_set import FeasibleSet, build_feasible_set
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.nearest import consistent_witness
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InfeasibleError
from dynident.core.factors import InstrumentSystem
from dynident.core.inertia import find_smallest_eigenvalue
from dynident.core.progress import Progress, ignore_progress
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.regression.problem import Problem
from dynident_papers.ardiani2024.estimated import (
    ACTUAL,
    CONSTRAINED,
    CONTROLLER,
    FEW,
    KNOWLEDGE,
    METHODS,
    OF_THE_PAPER,
    Fit,
    Outcome,
    Results,
    estimate_method,
)
from dynident_papers.ardiani2024.prediction import (
    predict_by_instruments,
    predict_constrained_estimate,
)
from dynident_papers.ardiani2024.simulated import Bench

NEAR, FAR = 0.8, 0.9
"""Bounds over the unconstrained estimate (ardiani2024, IV-D)."""
FEW_BOUNDS = 5
"""Of the best known parameters, so that the others are free to move."""
STUCK = 1e-6
"""Distance from a bound, in widths of its interval, that counts as none."""
NONE = "none"
"""In place of bounds."""
SELF = "Z = X"
"""Label of the regressor as its own instruments: Pi is the identity."""


@dataclass(frozen=True)
class Bounded:
    """An estimate under bounds, or without."""

    label: str
    """Of the scenario."""
    method: str
    words: str
    """`NONE`, "(27)", or how many parameters are bounded."""
    fit: Fit
    outside: int = 0
    """Parameters whose true value is outside their bounds."""
    stuck: tuple[int, ...] = ()
    """Parameters that lie on a bound."""
    gradient: float = np.nan
    """``||Z^T (y - X beta)|| / ||Z^T y||``, g_IV of section III-H; of DIDIM with Z for X."""


@dataclass(frozen=True)
class Prediction:
    """A constrained estimate from the unconstrained one on the same instruments.

    Differences are the largest of all parameters in standard deviations, eq. (42).

    Attributes
    ----------
    label : str
        Where the instruments are from.
    words : str
        How many parameters are bounded.
    identity : float
        ``|Pi beta - beta|`` of the unconstrained estimate.
    free : int
        Parameters that are on no bound.
    moved : float
        By how much the constraints move these.
    exact, instruments : float
        Error of `predict_constrained_estimate`, and of `predict_by_instruments`, eq. (45).
    """

    label: str
    words: str
    identity: float
    free: int
    moved: float
    exact: float
    instruments: float


# ---- bounds


def estimate_under_bounds(
    bench: Bench, outcome: Outcome, methods: Sequence[tuple[str, str]]
) -> tuple[list[Bounded], list[Prediction]]:
    """Methods without bounds, under (27), and with a few and with all parameters bounded.

    Parameters
    ----------
    outcome : Outcome
        Of the same scenario.
    methods : sequence of (str, str)
        A method and its constrained form, as names of `METHODS`.

    Returns
    -------
    bounded : list of Bounded
        Bounds are `NEAR` and `FAR` over IDIM-IV's estimate, whatever the method.
    predictions : list of Prediction
        Of IDIM-IV.
    """
    problem, simulation = outcome.problem, bench.simulation(outcome.scenario)
    label, iv = outcome.scenario.label, outcome.fits["idim-iv"]
    found = []
    for free, constrained in methods:
        found.append(Bounded(label, free, NONE, outcome.fits[free]))
        found.append(Bounded(label, constrained, OF_THE_PAPER, outcome.fits[constrained]))
        found += [
            estimate_bounded(problem, simulation, label, constrained, iv, chosen, bench.truth)
            for chosen in choose_bounded_parameters(iv)
        ]
    predictions = []
    for k, b in enumerate(found):
        if b.fit.beta is not None:
            system = build_final_system(problem, simulation, b.fit)
            found[k] = replace(b, gradient=measure_gradient_norm(b.method, b.fit.beta, system))
            if b.stuck and b.method == "pc-idim-iv":
                predictions.append(compare_prediction(b, system))
    return found, predictions


def predict_with_own_instruments(bench: Bench, outcome: Outcome) -> list[Prediction]:
    """Predictions where Pi = I: PC-IDIM-LS is PC-IDIM-IV with the regressor for instruments."""
    problem, simulation = outcome.problem, bench.simulation(outcome.scenario)
    ls = outcome.fits["wls"]
    found = []
    for chosen in choose_bounded_parameters(ls):
        b = estimate_bounded(problem, simulation, SELF, "pc-idim-ls", ls, chosen, bench.truth)
        if b.fit.sigma is not None:
            factors = problem.with_instruments(problem).instrument_factors
            found.append(compare_prediction(b, factors.weighted(b.fit.sigma)))
    return found


def choose_bounded_parameters(free: Fit) -> list[list[int]]:
    """The `FEW_BOUNDS` parameters of the least relative deviation, and all."""
    if free.beta is None or free.std is None:
        return []
    known = np.argsort(-np.abs(free.beta) / free.std)
    return [sorted(known[:FEW_BOUNDS].tolist()), list(range(len(free.beta)))]


def estimate_bounded(
    problem: Problem,
    simulation: Simulation,
    label: str,
    method: str,
    free: Fit,
    chosen: Sequence[int],
    truth: Array,
) -> Bounded:
    """An estimate with ``0.8 b <= beta_j <= 0.9 b`` (or the reverse) for some parameters.

    `free`: with the estimate b. `chosen`: which parameters. `truth`, shape (60,).
    """
    assert free.beta is not None
    index = np.asarray(chosen)
    edges = np.sort(np.outer(free.beta[index], [NEAR, FAR]), axis=1)
    bounds = tuple(
        Bounds((problem.base.names[k],), *edge)
        for k, edge in zip(chosen, edges.tolist(), strict=True)
    )
    knowledge = Knowledge(consistency="none", constraints=bounds)
    fit = estimate_method(problem, simulation, method, knowledge, bootstrap=0)
    outside = (truth[index] < edges[:, 0]) | (truth[index] > edges[:, 1])
    stuck: list[int] = []
    if fit.beta is not None:
        distance = np.min(np.abs(fit.beta[index, None] - edges), axis=1)
        stuck = index[distance <= STUCK * (edges[:, 1] - edges[:, 0])].tolist()
    return Bounded(label, method, str(len(chosen)), fit, int(np.sum(outside)), tuple(stuck))


def build_final_system(problem: Problem, simulation: Simulation, fit: Fit) -> InstrumentSystem:
    """Rows ``[Z | X | y]`` of the last step of an iteration over simulations.

    Its Z belongs to the estimate before the last. Only on the same instruments is the
    constrained estimate a function of the unconstrained one.
    """
    assert fit.history is not None
    assert fit.sigma is not None
    simulated = build_auxiliary_model(problem, simulation).simulated(fit.history[-2])
    return problem.with_instruments(simulated).instrument_factors.weighted(fit.sigma)


def measure_gradient_norm(method: str, beta: Array, system: InstrumentSystem) -> float:
    """``||Z^T (y - X beta)|| / ||Z^T y||``, with Z for X of DIDIM; rows are weighted."""
    z = system.instruments
    model = system.R[:z, :z] if method.endswith("didim") else system.R[:z, z:-1]
    torque, transposed = system.R[:z, -1], system.R[:z, :z].T
    error = np.linalg.norm(transposed @ (torque - model @ beta))
    return float(error / np.linalg.norm(transposed @ torque))


def estimate_white_std(system: InstrumentSystem) -> Array:
    """Standard deviations of eq. (42), shape (60,)."""
    return np.asarray(np.linalg.norm(system.projected.inverse(), axis=1))


def compare_prediction(found: Bounded, system: InstrumentSystem) -> Prediction:
    """Both formulas against an estimate, on the instruments that it was made with."""
    assert found.fit.beta is not None
    fixed, beta = list(found.stuck), found.fit.beta
    std, free = estimate_white_std(system), system.projected.solve()
    rest = np.setdiff1d(np.arange(len(free)), fixed)

    def largest(difference: Array) -> float:
        return float(np.max(np.abs(difference), initial=0.0))

    return Prediction(
        found.label,
        found.words,
        largest((system.Pi @ free - free) / std),
        len(rest),
        largest((beta - free)[rest] / std[rest]),
        largest((predict_constrained_estimate(system.projected, fixed, beta[fixed]) - beta) / std),
        largest((predict_by_instruments(system, fixed, beta[fixed]) - beta) / std),
    )


# ---- problem (47)

BAND = 3.0
"""Half width of the bounds of (47) in standard deviations."""
NARROWEST = "b_CIV +- the narrowest band"
EQUAL = "= b_CIV"
EQUAL_FREE = "= b_IV, unconstrained"
EQUAL_CONSISTENT = "= b of PC-IV under (19)"
EQUAL_CLEAN = "= b of noise-free rows"
"""What is asked of the base parameters, as words of a `Decision`."""


@dataclass(frozen=True)
class Decision:
    """Whether a consistent robot has some base parameters, or others near them."""

    words: str
    """What is asked of the base parameters."""
    theta: Array | None
    """Shape (standard parameters,). Such a robot's; None where there is none."""
    eigenvalue: float = np.nan
    """Smallest of its pseudo-inertias [SI]."""
    distance: float = np.nan
    """Largest ``|beta - beta_CIV|`` in standard deviations, eq. (42)."""
    iterations: int = 0
    """Of an estimate; 0 where only consistency was asked for."""
    reason: str = ""
    """Why there is none."""


@dataclass(frozen=True)
class Centre:
    """Base parameters that consistent ones are looked for about."""

    problem: Problem
    system: InstrumentSystem
    """Of the last step of PC-IDIM-IV."""
    beta: Array
    std: Array
    """`beta`, `std`: shape (60,). beta_CIV under (27), and eq. (42)."""

    def decision(
        self, words: str, theta: Array | None, iterations: int = 0, reason: str = ""
    ) -> Decision:
        """What a robot that was found, or why none was, decides."""
        if theta is None:
            return Decision(words, None, reason=reason)
        base = self.problem.base
        bodies, _ = base.idim.split(theta)
        distance = np.max(np.abs(base.matrix @ theta - self.beta) / self.std)
        eigenvalue = float(find_smallest_eigenvalue(bodies).min())
        return Decision(words, theta, eigenvalue, float(distance), iterations)

    def admitted(self) -> FeasibleSet:
        """Standard parameters under (19)."""
        return build_feasible_set(self.problem.base, self.system.projected, KNOWLEDGE["(19)"])


def decide_problem_47(
    bench: Bench, outcome: Outcome, reduced: bool = False
) -> tuple[Decision, ...]:
    """Whether a consistent robot has the base parameters of PC-IDIM-IV under (27).

    As (47) has it, within `BAND` standard deviations; how wide the band has to be; and as
    equalities, of estimates and of the base parameters of noise-free rows.

    `outcome`: with "idim-iv" and "pc-idim-iv". `reduced`: without PC-DIDIM.
    """
    problem, simulation = outcome.problem, bench.simulation(outcome.scenario)
    civ = outcome.fits["pc-idim-iv"]
    if civ.beta is None:
        return (Decision("PC-IV under (27)", None, reason=civ.failure),)
    system = build_final_system(problem, simulation, civ)
    centre = Centre(problem, system, civ.beta, estimate_white_std(system))
    names = problem.base.names
    band = tuple(
        Bounds((name,), value - BAND * s, value + BAND * s)
        for name, value, s in zip(names, civ.beta.tolist(), centre.std.tolist(), strict=True)
    )
    found = []
    for method in ("pc-idim-iv", "pc-didim")[: 1 if reduced else 2]:
        knowledge = Knowledge(prior="none", gyration=0.0, constraints=band)
        fit = estimate_method(problem, simulation, method, knowledge, bootstrap=0)
        found.append(centre.decision(describe_band(method), fit.theta, fit.iterations, fit.failure))
    found.append(decide_by_search(centre, NARROWEST, solve_narrowest_band))
    found.append(decide_by_search(centre, EQUAL, make_equality_search(civ.beta)))
    iv = outcome.fits["idim-iv"].beta
    if iv is not None:
        found.append(decide_by_search(centre, EQUAL_FREE, make_equality_search(iv)))
    own = estimate_method(problem, simulation, "pc-idim-iv", KNOWLEDGE["(19)"], bootstrap=0)
    found.append(centre.decision(EQUAL_CONSISTENT, own.theta, 0, own.failure))
    clean = bench.clean.factors.weighted(np.ones(problem.robot.n)).solve()
    found.append(decide_by_search(centre, EQUAL_CLEAN, make_equality_search(clean)))
    return tuple(found)


def describe_band(method: str) -> str:
    """The words of (47) as the paper has it."""
    return f"b_CIV +- {BAND:g} sigma: {METHODS[method]}"


def decide_by_search(centre: Centre, words: str, search: Callable[[Centre], Array]) -> Decision:
    """A search for consistent standard parameters; one that fails leaves its reason."""
    try:
        return centre.decision(words, search(centre))
    except ComputationError as error:
        return Decision(words, None, reason=str(error))


def make_equality_search(beta: Array) -> Callable[[Centre], Array]:
    """The search for those with given base parameters, the equality form of problem (47)."""

    def search(centre: Centre) -> Array:
        witness = consistent_witness(centre.problem.base, beta, centre.std, width=0.0)
        if witness.theta is None:
            raise InfeasibleError(witness.conflict)
        return witness.theta

    return search


def solve_narrowest_band(centre: Centre) -> Array:
    """Consistent standard parameters with the least k in ``|beta_j - centre_j| <= k std_j``.

    One more unknown k, and ``min (k + 1)^2``.

    ComputationError when no certified answer was reached.
    """
    admitted = centre.admitted()
    rows, middle = admitted.space.matrix / centre.std[:, None], centre.beta / centre.std
    names, one = centre.problem.base.names, np.ones((len(middle), 1))
    cones = [widen_cone(cone) for cone in admitted.cones]
    cones.append(NonnegativeCone(names, np.hstack([rows, one]), middle))
    cones.append(NonnegativeCone(names, np.hstack([-rows, one]), -middle))
    width = np.eye(rows.shape[1] + 1)[-1:]
    found = solve_cone_problem(width, np.array([-1.0]), cones)
    return admitted.space.value(found.x[:-1])


def widen_cone(cone: Cone) -> Cone:
    """The same constraint with one more unknown that it does not touch."""
    if isinstance(cone, SemidefiniteCone):
        basis = np.concatenate([cone.basis, np.zeros((1, *cone.floor.shape))])
        return SemidefiniteCone(cone.name, basis, cone.floor)
    return type(cone)(cone.name, np.hstack([cone.G, np.zeros((len(cone.h), 1))]), cone.h)


# ---- all of it


@dataclass(frozen=True)
class Third:
    """What scenario 3 found, of overly restrictive constraints and of problem (47)."""

    bounded: list[Bounded]
    predictions: list[Prediction]
    decisions: tuple[Decision, ...]

    def decision(self, words: str) -> Decision | None:
        """The decision with these words; None where it was not asked for."""
        return next((d for d in self.decisions if d.words == words), None)


def estimate_third_scenario(
    found: Results, progress: Progress = ignore_progress, reduced: bool = False
) -> Third:
    """Scenario 3 on the data of scenario 1, and of 4 where Pi is not I; reduced, PC-IV alone."""
    pairs = list(zip(FEW, CONSTRAINED, strict=True))
    methods = pairs[1 : 2 if reduced else 3]
    actual, wrong = (found.outcomes[s.label] for s in (ACTUAL, CONTROLLER))
    bounded: list[Bounded] = []
    predictions = predict_with_own_instruments(found.bench, actual)
    for share, outcome in ((0.4, actual), (0.8, wrong)):
        some, more = estimate_under_bounds(found.bench, outcome, methods)
        bounded, predictions = bounded + some, predictions + more
        progress("ardiani2024, scenario 3", share)
    decisions = decide_problem_47(found.bench, actual, reduced)
    progress("ardiani2024, scenario 3", 1.0)
    return Third(bounded, predictions, decisions)
