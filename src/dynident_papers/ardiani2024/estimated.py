"""What is estimated of the instrumental variable experiment, and what the estimates are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any, NamedTuple, Protocol

import numpy as np

from dynident.consistency.active import Restriction
from dynident.consistency.bootstrap import REPLICATES, Bootstrap
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.factors import InstrumentFactors
from dynident.core.progress import Progress, ignore_progress, report_part
from dynident.core.side_by_side import HERE, Engine, gather_side_by_side
from dynident.core.threads import limit_to_one_thread
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.estimators.covariance import ErrorBars
from dynident.estimators.instrument_tests import run_identity_test
from dynident.estimators.instrumental import ROUNDS
from dynident.estimators.instrumental import compute_iv_literature_std as instrument_std
from dynident.estimators.iteration import (
    IterationOptions,
    MethodStep,
    Stepped,
    choose_start_values,
    iterate_until_settled,
)
from dynident.methods import ESTIMATORS, Estimate
from dynident.regression.problem import Problem, Regression
from dynident.regression.statistics import TestResult
from dynident.regression.weighted import TOLERANCE, estimate_group_sigma
from dynident_papers.ardiani2024.measured import LogBench, load_log_bench
from dynident_papers.ardiani2024.simulated import COARSE, Bench, Scenario, build_bench
from dynident_papers.experiment import COUNT

METHODS = {
    "wls": "LS",
    "idim-iv": "IV",
    "2sls": "2SLS",
    "didim": "DIDIM",
    "pi-didim": "corr.",
    "pc-idim-ls": "PC-LS",
    "pc-idim-iv": "PC-IV",
    "pc-didim": "PC-DIDIM",
}
"""What is estimated, with its name in a table; "pi-didim" is DIDIM corrected by Pi^-1."""
FEW = ("wls", "idim-iv", "didim")
"""Those of the variants."""
CONSTRAINED = ("pc-idim-ls", "pc-idim-iv", "pc-didim")
"""The same under constraints."""
ITERATED = ("idim-iv", "didim", "pc-idim-iv", "pc-didim")
"""Those that simulate, whose gains can follow the estimate."""
KNOWLEDGE = {
    "(27)": Knowledge(consistency="base"),
    "(19)": Knowledge(prior="none", gyration=0.0),
    "(19), prior": Knowledge(gyration=0.0),
}
"""Constraints by their equations: base parameters that have to be positive; definite
pseudo-inertias and positive drives; the same with the CAD inertials as a prior."""
OF_THE_PAPER = "(27)"
"""Those of the tables beside the paper's."""
OF_NOISE = ErrorBars("hac")
"""What friction that a model lacks does is measured against what noise alone does."""
RESOLVED = 1e-6
"""Standard deviation over the unconstrained one below which constraints leave none."""

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
LOST = (WEAK[2], WEAK[6])
"""Positions not filtered: IV cannot simulate its own estimate."""
SMOOTH = tuple(replace(s, label=f"{s.label}, no fc") for s in (*WEAK[1:3], *WEAK[4:7], BIASED))
"""Of a robot without Coulomb friction."""
MAIN = (ACTUAL, DOWNGRADED, IN_LOOP, CONTROLLER, STRIBECK)
OF_LOG = (ACTUAL, DOWNGRADED, CONTROLLER)
"""Those that are repeated on the log of a TX40."""
LOG, TWIN = "log", "twin"
"""What is estimated from, as words of tables."""


class Experiment(Protocol):
    """What scenarios are made of: the twin's `Bench`, or the `LogBench`."""

    def problem(self, scenario: Scenario) -> Problem:
        """What a scenario's estimators are given."""

    def simulation(self, scenario: Scenario) -> Simulation:
        """How they simulate the loop."""


@dataclass(frozen=True)
class Fit:
    """What a method found, or why it failed.

    Attributes
    ----------
    beta, std, law : ndarray, shape (60,), or None
        The corrected DIDIM comes without std; it is zero where constraints leave none. law: that
        of the literature's formula.
    iterations : int
        Simulations of the loop; rounds of the weights for LS, steps of the interior-point
        method for PC-IDIM-LS.
    failure : str
        Empty where there is an estimate.
    seconds : float
        Processor time.
    tests : tuple of TestResult
    sigma : ndarray, shape (6,), or None
        Of the joints' rows [Nm].
    history : ndarray, shape (iterations + 1, 60), or None
        The estimates of an iterative method, from its start.
    theta : ndarray, shape (standard parameters,), or None
        Where the method determines them.
    active : tuple of str
        Constraints that hold the estimate back.
    worst : float
        The largest of the certificate's residuals; nan without constraints.
    restriction : Restriction or None
        What the active constraints do.
    """

    beta: Array | None
    std: Array | None
    iterations: int
    failure: str = ""
    seconds: float = 0.0
    tests: tuple[TestResult, ...] = ()
    sigma: Array | None = None
    history: Array | None = None
    theta: Array | None = None
    active: tuple[str, ...] = ()
    worst: float = np.nan
    restriction: Restriction | None = None
    law: Array | None = None

    def errors(self, truth: Array, own: np.ndarray | None = None) -> Array:
        """Errors in standard deviations, of the parameters that have one.

        Parameters
        ----------
        truth : ndarray, shape (60,)
        own : ndarray of bool, shape (60,), optional
            Only these parameters.
        """
        if self.beta is None or self.std is None:
            return np.zeros(0)
        kept = self.std > 0.0 if own is None else own & (self.std > 0.0)
        return np.asarray((self.beta - truth)[kept] / self.std[kept])

    def sigmas(self, truth: Array, own: np.ndarray | None = None) -> float:
        """Root mean square of `errors`; not a number where there are none."""
        found = self.errors(truth, own)
        return float(np.sqrt(np.mean(found**2))) if len(found) else np.nan


@dataclass(frozen=True)
class Outcome:
    """A scenario's estimates."""

    scenario: Scenario
    problem: Problem = field(repr=False)
    """Rows ``[X | y]``."""
    along: Regression | None = field(repr=False)
    """Rows ``[Z | y]`` of the loop simulated with the IV estimate."""
    fits: dict[str, Fit]
    """By method."""
    identity: TestResult | None
    """Of Pi = I at the IV estimate."""
    shift: float
    """Largest ``|Pi beta - beta|`` in standard deviations of IV."""
    apart: float
    """``100 ||(Z - X) beta|| / ||y||`` of IV: torques along the simulated motion less those along
    the measured one [%]."""


@dataclass(frozen=True)
class LogResults:
    """What the methods find on the log of a TX40."""

    bench: LogBench | None = None
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By the scenario's label."""
    compared: dict[tuple[str, str], Fit] = field(default_factory=dict)
    """Of scenario 1: fits by method and the name of their `KNOWLEDGE`."""
    missing: str = ""
    """Why there are none."""


@dataclass(frozen=True)
class Results:
    """All that the tables are made of."""

    bench: Bench
    smooth: Bench
    """`bench`, `smooth`: with Coulomb friction, and without."""
    outcomes: dict[str, Outcome]
    """By the scenario's label."""
    checks: dict[str, tuple[Problem, ...]]
    """Cross-validations of scenarios 1, 2 and 4."""
    compared: dict[str, dict[tuple[str, str], Fit]]
    """Of some scenarios, by label: fits by method and the name of their `KNOWLEDGE`."""
    log: LogResults
    started: dict[tuple[str, str, bool], dict[str, Fit]]
    """By `LOG` or `TWIN`, the label of one of `STARTS`, and whether the simulated gains follow the
    estimate: fits by method."""

    def bench_of(self, scenario: Scenario) -> Bench:
        """The robot of a scenario."""
        return self.smooth if scenario in SMOOTH else self.bench

    @property
    def friction(self) -> np.ndarray:
        """Which base parameters are friction, shape (60,)."""
        return np.array([name[:2] in ("fv", "fc", "of") for name in self.bench.clean.base.names])


class Job(NamedTuple):
    """Some methods on a scenario, of a robot with Coulomb friction or without."""

    rate: float
    coulomb: bool
    integrator: str
    scenario: Scenario
    methods: tuple[str, ...]


@limit_to_one_thread
def estimate_job(job: Job) -> Outcome:
    """The scenario's estimates."""
    bench = build_bench(job.rate, job.coulomb, job.integrator)
    return estimate_scenario(bench, job.scenario, job.methods)


def estimate_all(
    progress: Progress = ignore_progress, reduced: bool = False, engine: Engine = HERE
) -> Results:
    """Simulate and estimate all that `dynident_papers.ardiani2024` reports.

    The reduced form is at 2 kHz instead of 5 kHz by an integrator of lower order, without most of
    the variants. A robot that cannot be simulated itself is an error; methods that fail leave their
    reason.
    """
    rate, integrator = (2000.0, "ode1") if reduced else (5000.0, "ode3")
    rough, smooth = (build_bench(rate, coulomb, integrator) for coulomb in (True, False))
    few, all_ = (*FEW, *CONSTRAINED), tuple(METHODS)
    asked: list[tuple[bool, Scenario, tuple[str, ...]]]
    asked = [(True, ACTUAL, few if reduced else all_)]
    asked += [(True, s, FEW if reduced else all_) for s in (DOWNGRADED, TWO_LOGS, STRIBECK)]
    asked += [
        (True, CONTROLLER, (*few, "pi-didim") if reduced else all_),
        (True, BIASED, FEW if reduced else few),
    ]
    if not reduced:
        asked += [(True, s, all_) for s in (IN_LOOP, *STARTS)]
        lost = (*FEW, "pc-idim-iv")
        asked += [(True, s, lost if s in LOST else FEW) for s in WEAK[:-1]]
        asked += [(False, s, FEW) for s in SMOOTH]
    jobs = [Job(rate, coulomb, integrator, s, methods) for coulomb, s, methods in asked]
    steps = len(jobs) + 4
    part = report_part(progress, "ardiani2024", 0.0, len(jobs) / steps)
    found = gather_side_by_side(estimate_job, jobs, engine, part, "scenarios")
    outcomes = {job.scenario.label: own for job, own in zip(jobs, found, strict=True)}
    compared = {
        s.label: compare_constraints(
            rough,
            outcomes[s.label],
            methods if reduced else CONSTRAINED,
            0 if reduced else REPLICATES,
        )
        for s, methods in ((ACTUAL, ("pc-idim-iv",)), (CONTROLLER, ("pc-idim-iv", "pc-didim")))
    }
    if not reduced:
        for s in LOST:
            own = rough.simulation(s), "pc-idim-iv", KNOWLEDGE["(19)"]
            compared[s.label] = {
                ("pc-idim-iv", "(19)"): estimate_method(outcomes[s.label].problem, *own)
            }
    progress("ardiani2024", (steps - 3) / steps)
    log = estimate_log(reduced)
    progress("ardiani2024", (steps - 2) / steps)
    started = {} if reduced else compare_starts({LOG: log.bench, TWIN: rough})
    progress("ardiani2024", (steps - 1) / steps)
    checks = {s.label: rough.validations(s) for s in (ACTUAL, DOWNGRADED)}
    checks[CONTROLLER.label] = checks[ACTUAL.label]  # the robot is the same
    progress("ardiani2024", 1.0)
    return Results(rough, smooth, outcomes, checks, compared, log, started)


def estimate_log(reduced: bool = False) -> LogResults:
    """The methods on the log, where it is there.

    The reduced form is on its first seconds, without the corrected DIDIM.
    """
    try:
        bench = load_log_bench(reduced)
    except InputError as error:
        return LogResults(missing=str(error))
    methods = (*FEW, *(() if reduced else ("pi-didim",)), *CONSTRAINED)
    outcomes = {s.label: estimate_scenario(bench, s, methods, bootstrap=0) for s in OF_LOG}
    asked = ("pc-idim-iv",) if reduced else CONSTRAINED
    return LogResults(
        bench, outcomes, compare_constraints(bench, outcomes[ACTUAL.label], asked, bootstrap=0)
    )


def compare_starts(
    benches: Mapping[str, Experiment | None],
) -> dict[tuple[str, str, bool], dict[str, Fit]]:
    """The iterated methods from `STARTS`, with the simulated gains as they are and following."""
    found = {}
    for source, bench in benches.items():
        for scenario in () if bench is None else STARTS:
            assert bench is not None
            problem, simulation = bench.problem(scenario), bench.simulation(scenario)
            for update in (False, True):
                found[source, scenario.label, update] = {
                    method: estimate_method(
                        problem,
                        simulation,
                        method,
                        bootstrap=0,
                        search=IterationOptions(gain_update=update),
                    )
                    for method in ITERATED
                }
    return found


def estimate_scenario(
    bench: Experiment,
    scenario: Scenario,
    methods: Sequence[str] = tuple(METHODS),
    bootstrap: int = REPLICATES,
) -> Outcome:
    """All methods on one scenario; one that fails leaves its reason."""
    problem, simulation = bench.problem(scenario), bench.simulation(scenario)
    fits = {m: estimate_method(problem, simulation, m, bootstrap=bootstrap) for m in methods}
    along, identity, shift, apart = None, None, np.nan, np.nan
    iv = fits.get("idim-iv")
    if iv is not None and iv.beta is not None and iv.std is not None and iv.sigma is not None:
        along = build_auxiliary_model(problem, simulation).simulated(iv.beta)
        # offsets are the same columns in X and in Z: nothing is left there to be tested
        names = problem.base.names
        moving = [k for k, name in enumerate(names) if not name.startswith("off")]
        pair = problem.only(moving).with_instruments(along.only(moving))
        identity = run_identity_test(pair.instrument_factors.weighted(iv.sigma))
        factors = problem.with_instruments(along).instrument_factors
        Pi = factors.weighted(iv.sigma).Pi
        shift = float(np.max(np.abs(Pi @ iv.beta - iv.beta) / iv.std))
        plain = factors.weighted(problem.factors.ones)
        z = plain.instruments
        difference = (plain.R[:, :z] - plain.R[:, z:-1]) @ iv.beta
        apart = 100.0 * float(np.linalg.norm(difference) / np.linalg.norm(plain.R[:, -1]))
    return Outcome(scenario, problem, along, fits, identity, shift, apart)


def compare_constraints(
    bench: Experiment, outcome: Outcome, methods: Sequence[str], bootstrap: int = REPLICATES
) -> dict[tuple[str, str], Fit]:
    """Constrained methods under each of `KNOWLEDGE`, on one scenario."""
    simulation = bench.simulation(outcome.scenario)
    return {
        (method, name): outcome.fits[method]
        if name == OF_THE_PAPER
        else estimate_method(outcome.problem, simulation, method, knowledge, bootstrap)
        for method in methods
        for name, knowledge in KNOWLEDGE.items()
    }


def estimate_method(
    problem: Problem,
    simulation: Simulation,
    method: str,
    knowledge: Knowledge = KNOWLEDGE[OF_THE_PAPER],
    bootstrap: int = REPLICATES,
    search: IterationOptions = IterationOptions(),
) -> Fit:
    """One method on one problem; where it fails, its reason.

    Parameters
    ----------
    method : str
        A name of `METHODS`.
    knowledge : Knowledge
        Of a constrained method.
    bootstrap : int
        Its replicates where constraints are active; 0 for standard deviations on their faces.
    search : IterationOptions
        How a method that simulates goes on.
    """
    begin = process_time()
    try:
        if method == "pi-didim":
            fit = estimate_corrected_didim(problem, simulation)
        else:
            known: dict[str, Any] = {"bars": OF_NOISE}
            if method in CONSTRAINED:
                known |= {"knowledge": knowledge, "bootstrap": Bootstrap(bootstrap)}
            if method not in ("wls", "pc-idim-ls"):
                known |= {"simulation": simulation, "search": search}
            fit = summarise_estimate(ESTIMATORS[method](problem, **known))
    except (ComputationError, np.linalg.LinAlgError) as error:
        fit = Fit(None, None, 0, str(error))
    return replace(fit, seconds=process_time() - begin)


def summarise_estimate(found: Estimate) -> Fit:
    """What the tables need of an estimate."""
    covariance, certificate = found.covariance, found.certificate
    return Fit(
        found.beta,
        np.where(covariance.std > RESOLVED * covariance.literature, covariance.std, 0.0),
        found.iterations,
        tests=found.tests,
        sigma=found.sigma,
        history=found.history,
        theta=found.theta,
        active=found.active,
        worst=np.nan if certificate is None else certificate.worst,
        restriction=found.restriction,
        law=covariance.literature,
    )


def estimate_corrected_didim(problem: Problem, simulation: Simulation) -> Fit:
    """DIDIM with ``Pi^-1 (Z^T Z)^-1 Z^T y`` in place of its own estimate at each step.

    Section IV-E of ardiani2024.

    ComputationError when the loop cannot be simulated or the iterations do not settle.
    """

    def solve(rows: Regression, sigma: Array) -> Stepped:
        factors = rows.instrument_factors
        for _ in range(ROUNDS):
            before = sigma
            sigma = estimate_group_sigma(
                factors.without("Z"), solve_corrected_step(factors, sigma), sigma
            )
            if np.all(np.abs(sigma - before) <= TOLERANCE * sigma):
                break
        std = instrument_std(factors.weighted(sigma))
        return Stepped(rows, solve_corrected_step(factors, sigma), sigma, std)

    step = MethodStep(solve, problem.with_instruments)
    start = choose_start_values(problem, simulation.start)
    auxiliary = build_auxiliary_model(problem, simulation)
    found = iterate_until_settled(
        auxiliary, start, IterationOptions(), step, "the correction may be none"
    )
    return Fit(found.beta, None, found.simulations)


def solve_corrected_step(factors: InstrumentFactors, sigma: Array) -> Array:
    """``Pi^-1 (Z^T Z)^-1 Z^T y`` of weighted rows, shape (60,)."""
    own = factors.without("X").weighted(sigma).solve()
    return np.asarray(np.linalg.solve(factors.weighted(sigma).Pi, own), dtype=np.float64)


def measure_joint_errors(problem: Regression, beta: Array) -> Array:
    """``100 ||y_j - X_j beta|| / ||y_j||``, shape (n,) [%]."""
    factors = problem.factors
    return 100.0 * np.sqrt(factors.squared_residuals(beta) / factors.squared_torques)


def measure_overall_error(problem: Regression, beta: Array) -> float:
    """``100 ||y - X beta|| / ||y||`` [%]."""
    factors = problem.factors
    squares = float(np.sum(factors.squared_residuals(beta)))
    return 100.0 * float(np.sqrt(squares / np.sum(factors.squared_torques)))


def measure_torque_share(problem: Regression, difference: Array) -> float:
    """``100 ||X difference|| / ||y||``: a difference of parameters, as a torque [%]."""
    factors = problem.factors
    squares = sum(float(np.sum((g.factor[:, :-1] @ difference) ** 2)) for g in factors.groups)
    return 100.0 * float(np.sqrt(squares / np.sum(factors.squared_torques)))


def measure_weighted_error(bench: Bench, beta: Array) -> float:
    """Errors of the parameters as a torque along the noise-free identification motion [%]."""
    return measure_torque_share(bench.clean, beta - bench.truth)


def measure_held_out_error(bench: Bench, beta: Array) -> float:
    """Error of the torque against noise-free torques of the cross-validations [%]."""
    return measure_overall_error(bench.held_out, beta)
