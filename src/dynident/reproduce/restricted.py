"""Scenario 3 of ardiani2024, section IV-D: overly restrictive constraints, and problem (47).

Bounds that the true parameters do not meet, what the constrained estimate is then and what
tells of it; and whether standard parameters of a consistent robot have the base parameters
that were found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dynident.admissible import Admissible, Knowledge, admissible
from dynident.cones import Cone, Definite, Positive
from dynident.conic import solve_cone_problem
from dynident.constraints import Bounds, Constraint, Fixed
from dynident.errors import ComputationError
from dynident.estimators.auxiliary import Simulation, auxiliary_model
from dynident.estimators.restriction import predicted, predicted_by_instruments
from dynident.factors import InstrumentSystem
from dynident.inertia import Array, smallest_eigenvalue
from dynident.problem import Problem
from dynident.progress import Progress, silent
from dynident.reproduce.estimates import (
    ACTUAL,
    CONTROLLER,
    KNOWLEDGE,
    METHODS,
    Fit,
    Outcome,
    fitted,
    overall_error,
    torque_share,
)
from dynident.reproduce.scenarios import Bench
from dynident.reproduce.tables import Table

NEAR, FAR = 0.8, 0.9
"""Bounds over the unconstrained estimate (IV-D)."""
FEW_BOUNDS = 5
"""Of the best known parameters, so that the others are free to move."""
BAND = 3.0
"""Half width of the bounds of (47) in standard deviations."""
STUCK = 1e-6
"""Distance from a bound, in widths of its interval, that counts as none."""
SELF = "Z = X"
"""Label of the instruments that are the regressor: Pi is the identity."""


@dataclass(frozen=True)
class Bounded:
    """An estimate under bounds, or without.

    Attributes
    ----------
    label : str
        Of the scenario.
    method : str
    words : str
        What is imposed.
    fit : Fit
    outside : int
        Parameters whose true value is outside their bounds.
    stuck : tuple of int
        Parameters that lie on a bound.
    gradient : float
        ``||Z^T (y - X beta)|| / ||Z^T y||``, g_IV of section III-H; for DIDIM with Z for X.
    """

    label: str
    method: str
    words: str
    fit: Fit
    outside: int = 0
    stuck: tuple[int, ...] = ()
    gradient: float = np.nan

    @property
    def least(self) -> float:
        """The smallest multiplier in absolute value, in chi-squared per scaled unit."""
        held = self.fit.restriction
        return np.nan if held is None else min(abs(value) for _, value in held.multipliers)


@dataclass(frozen=True)
class Prediction:
    """A constrained estimate from the unconstrained one of the same instruments.

    Differences are the largest of all parameters in standard deviations, eq. (42).

    Attributes
    ----------
    label : str
        Where the instruments are from.
    words : str
        What is imposed.
    identity : float
        ``|Pi beta - beta|`` of the unconstrained estimate.
    free : int
        Parameters that are on no bound.
    moved : float
        Change of these by the constraints.
    exact, instruments : float
        Error of `predicted`, and of eq. (45), `predicted_by_instruments`.
    """

    label: str
    words: str
    identity: float
    free: int
    moved: float
    exact: float
    instruments: float


@dataclass(frozen=True)
class Decision:
    """Whether a consistent robot has base parameters, or some near them.

    Attributes
    ----------
    words : str
        What is imposed on the base parameters.
    theta : ndarray, shape (standard parameters,), or None
        Such a robot's; None where there is none.
    eigenvalue : float
        Smallest of its pseudo-inertias [SI].
    distance : float
        Largest ``|beta - beta_CIV|`` in standard deviations, eq. (42).
    iterations : int
        Of an estimate; 0 where only consistency was asked for.
    reason : str
        Why there is none.
    """

    words: str
    theta: Array | None
    eigenvalue: float
    distance: float
    iterations: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Third:
    """Results of scenario 3.

    Attributes
    ----------
    bench : Bench
    bounded : tuple of Bounded
    predictions : tuple of Prediction
    decisions : tuple of Decision
    """

    bench: Bench = field(repr=False)
    bounded: tuple[Bounded, ...]
    predictions: tuple[Prediction, ...]
    decisions: tuple[Decision, ...]


def third_scenario(
    bench: Bench,
    outcomes: Mapping[str, Outcome],
    progress: Progress = silent,
    reduced: bool = False,
) -> Third:
    """Overly restrictive constraints and problem (47) on the data of scenarios 1 and 4.

    Parameters
    ----------
    bench : Bench
    outcomes : dict of str to Outcome
        Of both scenarios, by label, with "idim-iv" and "pc-idim-iv".
    progress : callable
        Called with "ardiani2024, scenario 3" and the share that is done.
    reduced : bool
        PC-IDIM-IV alone.

    Raises
    ------
    ComputationError
        When the loop cannot be simulated with an estimate. Methods that fail are printed.
    """
    stage = "ardiani2024, scenario 3"
    bounded: list[Bounded] = []
    predictions: list[Prediction] = []
    pairs = (("idim-iv", "pc-idim-iv"), ("didim", "pc-didim"))[: 1 if reduced else 2]
    for k, scenario in enumerate((ACTUAL, CONTROLLER), start=1):
        outcome, simulation = outcomes[scenario.label], bench.simulation(scenario)
        for free, held in pairs:
            bounded += restricted(bench, outcome, simulation, free, held)
        progress(stage, 0.4 * k - 0.1)
        if scenario is ACTUAL:
            predictions += self_predictions(bench, outcome)
        own = [b for b in bounded if b.label == scenario.label and b.method == "pc-idim-iv"]
        predictions += [
            prediction(scenario.label, b.words, b.fit, b.stuck,
                       final_system(outcome.problem, simulation, b.fit))
            for b in own if b.stuck
        ]  # fmt: skip
        progress(stage, 0.4 * k)
    decisions = problem_47(bench, outcomes[ACTUAL.label], reduced)
    progress(stage, 1.0)
    return Third(bench, tuple(bounded), tuple(predictions), decisions)


# ---- bounds


def restricted(
    bench: Bench, outcome: Outcome, simulation: Simulation, free: str, held: str
) -> list[Bounded]:
    """A method without bounds, under (27), and with few and all parameters bounded.

    Bounds are `NEAR` and `FAR` over IDIM-IV's estimate, whatever the method.
    """
    problem, label = outcome.problem, outcome.scenario.label
    found = [
        Bounded(label, free, "none", outcome.fits[free]),
        Bounded(label, held, "(27)", outcome.fits[held]),
    ]
    iv = outcome.fits["idim-iv"]
    if iv.beta is not None:
        for chosen in (best_known(iv), range(len(iv.beta))):
            fit = fitted(problem, simulation, held, bounding(problem, iv.beta, chosen))
            edges = np.sort(np.outer(iv.beta, [NEAR, FAR]), axis=1)
            own = np.isin(np.arange(len(iv.beta)), list(chosen))
            met = (edges[:, 0] <= bench.truth) & (bench.truth <= edges[:, 1])
            stuck = on_bounds(fit, edges) & own
            found.append(
                Bounded(label, held, f"{len(chosen)} bounded", fit, int(np.sum(own & ~met)),
                        tuple(np.flatnonzero(stuck).tolist()))
            )  # fmt: skip
    return [with_gradient(b, problem, simulation) for b in found]


def best_known(fit: Fit) -> list[int]:
    """The `FEW_BOUNDS` parameters of an unconstrained estimate with the least relative std."""
    assert fit.beta is not None
    assert fit.std is not None
    return sorted(np.argsort(-np.abs(fit.beta) / fit.std)[:FEW_BOUNDS].tolist())


def bounding(problem: Problem, beta: Array, chosen: Sequence[int]) -> Knowledge:
    """``0.8 beta_j <= beta_j <= 0.9 beta_j``, or the other way round where it is negative."""
    names = problem.base.names
    return Knowledge(
        consistency="none",
        constraints=tuple(
            Bounds((names[k],), *sorted((NEAR * float(beta[k]), FAR * float(beta[k]))))
            for k in chosen
        ),
    )


def on_bounds(fit: Fit, edges: Array) -> np.ndarray:
    """Parameters that lie on an edge of theirs, shape (60,)."""
    if fit.beta is None:
        return np.zeros(len(edges), dtype=bool)
    width = edges[:, 1] - edges[:, 0]
    return np.asarray(np.min(np.abs(fit.beta[:, None] - edges), axis=1) <= STUCK * width)


def with_gradient(found: Bounded, problem: Problem, simulation: Simulation) -> Bounded:
    """An estimate with its gradient."""
    if found.fit.beta is None:
        return found
    system = final_system(problem, simulation, found.fit)
    z = system.instruments
    model = system.R[:z, :z] if found.method.endswith("didim") else system.R[:z, z:-1]
    torque, root = system.R[:z, -1], system.R[:z, :z].T
    gradient = np.linalg.norm(root @ (torque - model @ found.fit.beta))
    return Bounded(found.label, found.method, found.words, found.fit, found.outside, found.stuck,
                   float(gradient / np.linalg.norm(root @ torque)))  # fmt: skip


def final_system(problem: Problem, simulation: Simulation, fit: Fit) -> InstrumentSystem:
    """Rows ``[Z | X | y]`` of the last step of an iteration.

    Its Z belongs to the estimate before the last: only on the same instruments is the
    constrained estimate a function of the unconstrained one.
    """
    assert fit.history is not None
    assert fit.sigma is not None
    simulated = auxiliary_model(problem, simulation).simulated(fit.history[-2])
    return problem.with_instruments(simulated).instrument_factors.weighted(fit.sigma)


# ---- the constrained estimate from the unconstrained one


def prediction(
    label: str, words: str, fit: Fit, stuck: Sequence[int], system: InstrumentSystem
) -> Prediction:
    """Both formulas against an estimate, on the instruments that it was made with."""
    assert fit.beta is not None
    projected = system.projected
    std = white_std(system)
    free = projected.solve()
    rest = np.setdiff1d(np.arange(len(free)), stuck)
    values = fit.beta[list(stuck)]

    def largest(difference: Array) -> float:
        return float(np.max(np.abs(difference), initial=0.0))

    return Prediction(
        label,
        words,
        largest((system.Pi @ free - free) / std),
        len(rest),
        largest((fit.beta - free)[rest] / std[rest]),
        largest((predicted(projected, stuck, values) - fit.beta) / std),
        largest((predicted_by_instruments(system, stuck, values) - fit.beta) / std),
    )


def self_predictions(bench: Bench, outcome: Outcome) -> list[Prediction]:
    """With the regressor as its own instruments, PC-IDIM-IV is PC-IDIM-LS and Pi = I."""
    problem, simulation = outcome.problem, bench.simulation(outcome.scenario)
    ls = outcome.fits["wls"]
    found = []
    if ls.beta is not None:
        for chosen in (best_known(ls), range(len(ls.beta))):
            fit = fitted(problem, simulation, "pc-idim-ls", bounding(problem, ls.beta, chosen))
            if fit.beta is None or fit.sigma is None:
                continue
            edges = np.sort(np.outer(ls.beta, [NEAR, FAR]), axis=1)
            own = np.isin(np.arange(len(ls.beta)), list(chosen))
            stuck = np.flatnonzero(on_bounds(fit, edges) & own).tolist()
            factors = problem.with_instruments(problem).instrument_factors
            words = f"{len(chosen)} bounded"
            found.append(prediction(SELF, words, fit, stuck, factors.weighted(fit.sigma)))
    return found


def white_std(system: InstrumentSystem) -> Array:
    """Eq. (42), shape (60,)."""
    return np.asarray(np.linalg.norm(system.projected.inverse(), axis=1))


# ---- problem (47)


def problem_47(bench: Bench, outcome: Outcome, reduced: bool) -> tuple[Decision, ...]:
    """Whether a consistent robot has the base parameters of PC-IDIM-IV under (27).

    As (47) has it, within `BAND` standard deviations; how wide the band has to be; and as
    equalities, on estimates and on the base parameters of noise-free rows.
    """
    problem, simulation = outcome.problem, bench.simulation(outcome.scenario)
    civ = outcome.fits["pc-idim-iv"]
    if civ.beta is None:
        return (Decision("PC-IDIM-IV under (27)", None, np.nan, np.nan, 0, civ.failure),)
    system = final_system(problem, simulation, civ)
    std, names = white_std(system), problem.base.names

    def decided(words: str, theta: Array | None, iterations: int = 0, reason: str = "") -> Decision:
        if theta is None:
            return Decision(words, None, np.nan, np.nan, 0, reason)
        bodies = theta[: problem.base.idim.inertial].reshape(-1, 10)
        distance = np.max(np.abs(problem.base.matrix @ theta - civ.beta) / std)
        eigenvalue = float(smallest_eigenvalue(bodies).min())
        return Decision(words, theta, eigenvalue, float(distance), iterations, reason)

    band = tuple(
        Bounds((name,), float(value - BAND * s), float(value + BAND * s))
        for name, value, s in zip(names, civ.beta, std, strict=True)
    )
    found = []
    for method in ("pc-idim-iv", "pc-didim")[: 1 if reduced else 2]:
        fit = fitted(problem, simulation, method, Knowledge(prior="none", constraints=band))
        words = f"b_CIV +- {BAND:g} sigma, {METHODS[method]}"
        found.append(decided(words, fit.theta, fit.iterations, fit.failure))
    plain = admissible(problem.base, system.projected, KNOWLEDGE["(19)"])
    try:
        theta = plain.space.value(nearest_consistent(plain, civ.beta, std))
        found.append(decided("b_CIV +- the least band", theta))
    except ComputationError as error:
        found.append(decided("b_CIV +- the least band", None, 0, str(error)))
    clean = bench.clean.factors.weighted(np.ones(problem.robot.n)).solve()
    equal = {"b = b_CIV": civ.beta, "b = b_IV, no constraints": outcome.fits["idim-iv"].beta}
    for words, beta in {**equal, "b = b of noise-free rows": clean}.items():
        if beta is not None:
            fixed = tuple(Fixed((n,), float(v)) for n, v in zip(names, beta, strict=True))
            theta, reason = consistent_robot(problem, system, fixed)
            found.append(decided(words, theta, 0, reason))
    own = fitted(problem, simulation, "pc-idim-iv", KNOWLEDGE["(19)"])
    found.append(decided("b = PC-IV's under (19)", own.theta, 0, own.failure))
    return tuple(found)
