"""Estimates of the instrumental variable experiment, and what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from dynident.errors import ComputationError
from dynident.estimators import ESTIMATORS
from dynident.estimators.auxiliary import Simulation, auxiliary_model
from dynident.estimators.instrumental import CONVERGED, ITERATIONS, ROUNDS, identity_test
from dynident.estimators.instrumental import seed_std as instrument_std
from dynident.estimators.iteration import settled, start_values
from dynident.estimators.least_squares import TOLERANCE, group_sigma
from dynident.inertia import Array
from dynident.problem import Problem
from dynident.progress import Progress, silent
from dynident.reproduce.experiment import COUNT
from dynident.reproduce.scenarios import COARSE, Bench, Scenario, bench
from dynident.statistics import TestResult

METHODS = {
    "wls": "LS",
    "idim-iv": "IV",
    "2sls": "2SLS",
    "didim": "DIDIM",
    "pi-didim": "corr.",
}
"""What is estimated, with its name in a table; the last is DIDIM corrected by Pi^-1."""
FEW = ("wls", "idim-iv", "didim")
"""Those of the variants."""

ACTUAL = Scenario("1")
DOWNGRADED = Scenario("2", stored=COARSE)
IN_LOOP = Scenario("2 loop", seen=COARSE, stored=COARSE)
CONTROLLER = Scenario("4", bandwidth=0.5)
TWO_LOGS = Scenario("5 without", slow=True)
STRIBECK = Scenario("5", slow=True, stribeck=1.0)
STARTS = (
    replace(ACTUAL, label="1, Ia = 1", start="rotors"),
    replace(CONTROLLER, label="4, Ia = 1", start="rotors"),
)
BIASED = replace(DOWNGRADED, label="2 weak", position=4.0, rows="all")
"""Position cutoff at 20 omega_dyn, torques neither filtered nor decimated: LS is biased."""
UNFILTERED = 100.0
"""A factor that puts the cutoff above the Nyquist frequency."""
WEAK = (
    *(
        replace(DOWNGRADED, label=f"weak {k}", position=a, torque=b)
        for k, (a, b) in enumerate(
            (
                *((4.0, 1.0), (10.0, 1.0), (UNFILTERED, 1.0), (1.0, 5.0)),
                *((4.0, 5.0), (8.0, 8.0), (UNFILTERED, 5.0)),
            ),
            start=1,
        )
    ),
    replace(BIASED, label="weak, fine", stored=COUNT),
    BIASED,
)
SMOOTH = tuple(replace(s, label=f"{s.label}, no fc") for s in (*WEAK[1:3], *WEAK[4:7], BIASED))
"""Of a robot without Coulomb friction."""
MAIN = (ACTUAL, DOWNGRADED, IN_LOOP, CONTROLLER, STRIBECK)


@dataclass(frozen=True)
class Fit:
    """What a method found, or why it failed.

    Attributes
    ----------
    beta, std : ndarray, shape (60,), or None
        The corrected DIDIM comes without std.
    iterations : int
        Simulations of the loop; rounds of the weights for LS.
    failure : str
        Empty where there is an estimate.
    seconds : float
    tests : tuple of TestResult
    """

    beta: Array | None
    std: Array | None
    iterations: int
    failure: str = ""
    seconds: float = 0.0
    tests: tuple[TestResult, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """A scenario's estimates.

    Attributes
    ----------
    scenario : Scenario
    problem : Problem
        Rows ``[X | y]``.
    along : Problem or None
        Rows ``[Z | y]`` of the loop simulated with the IV estimate.
    fits : dict of str to Fit
        By method.
    identity : TestResult or None
        Of Pi = I at the IV estimate.
    shift : float
        Largest ``|Pi beta - beta|`` in standard deviations of IV.
    """

    scenario: Scenario
    problem: Problem = field(repr=False)
    along: Problem | None = field(repr=False)
    fits: dict[str, Fit]
    identity: TestResult | None
    shift: float


@dataclass(frozen=True)
class Results:
    """All that the tables are made of.

    Attributes
    ----------
    bench, smooth : Bench
        With Coulomb friction, and without.
    outcomes : dict of str to Outcome
        By the scenario's label.
    checks : dict of str to tuple of Problem
        Cross-validations of scenarios 1, 2 and 4.
    """

    bench: Bench
    smooth: Bench
    outcomes: dict[str, Outcome]
    checks: dict[str, tuple[Problem, ...]]


def results(progress: Progress = silent, reduced: bool = False) -> Results:
    """Simulate and estimate all that `dynident.reproduce.ardiani2024` reports.

    Parameters
    ----------
    progress : callable
        Called with "ardiani2024" and the share that is done.
    reduced : bool
        At 2 kHz instead of 5 kHz, without most of the variants.

    Raises
    ------
    ComputationError
        When the robot itself cannot be simulated; methods that fail leave their reason.
    """
    rate = 2000.0 if reduced else 5000.0
    rough, smooth = bench(rate), bench(rate, coulomb=False)
    few = FEW if reduced else tuple(METHODS)
    jobs = [(rough, s, few) for s in (ACTUAL, DOWNGRADED, TWO_LOGS, STRIBECK)]
    jobs += [(rough, CONTROLLER, tuple(METHODS)), (rough, BIASED, FEW)]
    if not reduced:
        jobs += [(rough, s, tuple(METHODS)) for s in (IN_LOOP, *STARTS)]
        jobs += [(rough, s, FEW) for s in WEAK[:-1]] + [(smooth, s, FEW) for s in SMOOTH]
    outcomes = {}
    for k, (robot, scenario, methods) in enumerate(jobs, start=1):
        outcomes[scenario.label] = estimated(robot, scenario, methods)
        progress("ardiani2024", k / (len(jobs) + 1))
    checks = {s.label: rough.validations(s) for s in (ACTUAL, DOWNGRADED)}
    checks[CONTROLLER.label] = checks[ACTUAL.label]  # the robot is the same
    progress("ardiani2024", 1.0)
    return Results(rough, smooth, outcomes, checks)


def estimated(bench: Bench, scenario: Scenario, methods: Sequence[str] = tuple(METHODS)) -> Outcome:
    """All methods on one scenario; one that fails leaves its reason."""
    problem, simulation = bench.problem(scenario), bench.simulation(scenario)
    fits: dict[str, Fit] = {}
    sigma = np.ones(bench.twin.robot.n)
    for method in methods:
        begin = perf_counter()
        try:
            if method == "pi-didim":
                fit = corrected_didim(problem, simulation)
            else:
                more = () if method == "wls" else (simulation,)
                found = ESTIMATORS[method](problem, *more)
                std = found.covariance.std
                fit = Fit(found.beta, std, found.iterations, tests=found.tests)
                sigma = found.sigma if method == "idim-iv" else sigma
        except (ComputationError, np.linalg.LinAlgError) as error:
            fit = Fit(None, None, 0, str(error))
        fits[method] = replace(fit, seconds=perf_counter() - begin)
    along, identity, shift = None, None, np.nan
    iv = fits.get("idim-iv")
    if iv is not None and iv.beta is not None and iv.std is not None:
        along = auxiliary_model(problem, simulation).simulated(iv.beta)
        # offsets are the same columns in X and in Z: nothing is left there to be tested
        names = problem.base.names
        moving = [k for k, name in enumerate(names) if not name.startswith("off")]
        pair = problem.only(moving).with_instruments(along.only(moving))
        identity = identity_test(pair.instrument_factors.weighted(sigma))
        Pi = problem.with_instruments(along).instrument_factors.weighted(sigma).Pi
        shift = float(np.max(np.abs(Pi @ iv.beta - iv.beta) / iv.std))
    return Outcome(scenario, problem, along, fits, identity, shift)


def corrected_didim(problem: Problem, simulation: Simulation) -> Fit:
    """DIDIM with ``Pi^-1 (Z^T Z)^-1 Z^T y`` in place of its own estimate at each step (IV-E).

    Raises
    ------
    ComputationError
        When the loop cannot be simulated or the iterations do not settle.
    """
    auxiliary = auxiliary_model(problem, simulation)
    beta = start_values(problem, simulation.start)
    sigma = np.ones(problem.robot.n)
    for iteration in range(1, ITERATIONS + 1):
        factors = problem.with_instruments(auxiliary.simulated(beta)).instrument_factors
        for _ in range(ROUNDS):
            own = factors.without("X").weighted(sigma).solve()
            new = np.asarray(np.linalg.solve(factors.weighted(sigma).Pi, own), dtype=np.float64)
            before, sigma = sigma, group_sigma(factors.without("Z"), new, sigma)
            if np.all(np.abs(sigma - before) <= TOLERANCE * sigma):
                break
        std = instrument_std(factors.weighted(sigma))
        done = settled(new, beta, std, CONVERGED)
        beta = new
        if done:
            return Fit(beta, None, iteration)
    raise ComputationError(f"the corrected estimate did not settle in {ITERATIONS} simulations")


def joint_errors(problem: Problem, beta: Array) -> Array:
    """``100 ||y_j - X_j beta|| / ||y_j||``, shape (n,) [%]."""
    factors = problem.factors
    return 100.0 * np.sqrt(factors.squared_residuals(beta) / factors.squared_torques)


def overall_error(problem: Problem, beta: Array) -> float:
    """``100 ||y - X beta|| / ||y||`` [%]."""
    factors = problem.factors
    squares = float(np.sum(factors.squared_residuals(beta)))
    return 100.0 * float(np.sqrt(squares / np.sum(factors.squared_torques)))


def torque_share(problem: Problem, difference: Array) -> float:
    """``100 ||X difference|| / ||y||``: a difference of parameters, as a torque [%]."""
    factors = problem.factors
    squares = sum(float(np.sum((g.factor[:, :-1] @ difference) ** 2)) for g in factors.groups)
    return 100.0 * float(np.sqrt(squares / np.sum(factors.squared_torques)))
