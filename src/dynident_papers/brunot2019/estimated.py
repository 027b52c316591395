"""What is estimated of the output error experiment: the methods side by side, case by case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError
from dynident.core.factors import System
from dynident.core.options import Options
from dynident.core.progress import Progress, ignore_progress, report_part
from dynident.core.side_by_side import HERE, Engine, gather_side_by_side
from dynident.core.threads import limit_to_one_thread
from dynident.estimators.closed_loop import (
    AuxiliaryModel,
    build_auxiliary_model,
    compute_percent_error,
    warn_of_chatter,
)
from dynident.estimators.essential import find_base_columns, run_left_out_test
from dynident.estimators.output_error import (
    POSITION,
    TORQUE,
    SlopeOptions,
    linearise_output,
    measure_error_sigma,
)
from dynident.filters.filters import filter_zero_phase
from dynident.methods import ESTIMATORS, Estimate
from dynident.recording.prepare import Samples
from dynident.regression.problem import Problem
from dynident.regression.row_kinds import ROWS
from dynident.regression.statistics import TestResult, estimate_autocorrelation
from dynident.regression.weighted import solve_wls
from dynident_papers.brunot2019.measured import OTHERS, Bench, load_bench
from dynident_papers.brunot2019.simulated import (
    COULOMB,
    FULL,
    NAMES,
    REDUCED,
    SHARP,
    SIDE,
    Case,
    Scale,
    Setting,
    SimulatedCase,
    simulate_case,
)
from dynident_papers.measured import ASKED, REFERENCES
from dynident_papers.published import Column, build_published_sums
from dynident_papers.twin import Twin, load_twin

METHODS = ("ols", "clie", "cloe", "didim")
SIMULATING = METHODS[1:]
WORDS = {"ols": "LS", "clie": "CLIE", "cloe": "CLOE", "didim": "DIDIM"}
KINDS = {"all": "every sample", "decimated": "decimated"}

OF_LOOPS = ("clie", "cloe")
"""What is estimated under other loops that are assumed of the log, and by differences."""

LAGS = 50
LOW_PASS = 20.0
"""Of torques that are compared without ripple, the paper's omega_Fp [Hz]."""

MAIN = Setting("random torques on the joints", plant_width=SHARP)
FEED_FORWARD = Setting("Coulomb feed-forward of 12 %", feed_forward=0.12)
MISMATCHES = (
    Setting("nothing"),
    Setting("nothing; slow rows are kept", slow=0.0),
    Setting("sign within 0.1 %, assumed 1 %", plant_width=SHARP, width=0.01),
    Setting("sign within 0.1 %, assumed 3 %", plant_width=SHARP, width=0.03),
    Setting("sign within 3 %, assumed 1 %", plant_width=0.03, width=0.01),
    Setting("Stribeck effect of +30 %", stribeck=0.3),
    Setting("Stribeck effect of -30 %", stribeck=-0.3),
    Setting("+30 %, gains for 10 and 20 Hz", stribeck=0.3, designed=True),
    Setting("position gains 10 % lower", kp=0.9),
    Setting("integral action of 3 s", integral=3.0),
    FEED_FORWARD,
)
"""What the estimators do not know of the robot, for Table 6."""
FEW = (*MISMATCHES[:2], MISMATCHES[5], FEED_FORWARD)
"""Those of the reduced form."""
NOISES = (
    replace(MAIN, label="the same; slow rows are kept", slow=0.0),
    replace(MAIN, label="the same, all parameters act", essential=False),
    replace(MAIN, label="white noise of the logged torque", disturbance=0.0, log_noise=0.3),
)
"""For Table 8, beside `MAIN`."""


@dataclass(frozen=True)
class TorqueErrors:
    """What is left of a log's torques, joint by joint, over the norm of these.

    The squares of `fast` and `slow` add up to that of `whole`, but for what leaks between the
    bands; those of `resting` and `moving` to that of `slow`.
    """

    whole: Array
    fast: Array
    slow: Array
    """`whole`, `fast`, `slow`: of the error, of its part above `LOW_PASS` and of that below [%],
    shape (n,)."""
    resting: Array
    moving: Array
    """`resting`, `moving`: of that below, in the rows that are too slow to be fitted and in the
    others [%], shape (n,)."""


@dataclass(frozen=True)
class Answer:
    """An estimate in the paper's terms."""

    estimate: Estimate = field(repr=False)
    value: Array
    std: Array
    robust: Array
    """`value`, `std`, `robust`: shape (28,). As the paper sums them (`build_published_sums`);
    standard deviations by the paper's formula, eq. (10) and (32), and by the estimate's own
    covariance."""
    inside: Array
    """Share of the first `LAGS` autocorrelations of the residual within ``2 / sqrt(N)``, shape
    (n,)."""
    torques: TorqueErrors = field(repr=False)
    """Of the simulated torques; of LS, which simulates nothing, of those along the measured
    motion."""
    position: float = np.nan
    """Mean over the joints of Table 3's figure [%]."""
    seconds: float = np.nan
    """Processor time of the estimate."""

    @property
    def torque(self) -> float:
        """Mean over the joints of Table 3's figure [%]."""
        return float(np.mean(self.torques.whole))

    @property
    def slow_torque(self) -> float:
        """The same, low-passed at `LOW_PASS` [%]."""
        return float(np.mean(self.torques.slow))


Answers = dict[Column, Answer | str]
"""A method that fails leaves its reason."""


@dataclass(frozen=True)
class MeasuredResults:
    """What the methods find on the log of a TX40."""

    answers: dict[tuple[str, bool], Answers] = field(default_factory=dict, repr=False)
    """By the reference, a name in `dynident_papers.measured.REFERENCES`, and whether the 28
    parameters alone were estimated. Of references but `ASKED` the decimated rows."""
    bench: Bench | None = field(default=None, repr=False)
    test: TestResult | None = None
    """Of the 28."""
    chatter: dict[tuple[str, bool], str] = field(default_factory=dict)
    """Why ode3 could not simulate CLOE's estimate, decimated; empty where it could."""
    loops: dict[str, dict[str, Answer | str]] = field(default_factory=dict, repr=False)
    """By the label of an `AssumedLoop`: answers by method, of the 28 on decimated rows."""
    missing: str = ""
    """Why there are none of these."""

    def count(self, essential: bool) -> int:
        """How many parameters are estimated."""
        return len(NAMES) if essential or self.bench is None else self.bench.full.base.count

    def answer(
        self, reference: str, essential: bool, kind: str, method: str
    ) -> Answer | str | None:
        """An answer; None where it was not asked for."""
        return self.answers.get((reference, essential), {}).get((kind, method))


@dataclass(frozen=True)
class Results:
    """All that the tables are made of."""

    twin: Twin
    scale: Scale
    side: Scale
    """`scale`, `side`: of the main case, and of the settings beside it."""
    main: SimulatedCase
    answers: Answers
    """Of the main case."""
    mismatches: tuple[tuple[Setting, Array, dict[str, Answer | str]], ...] = field(repr=False)
    """Tuple of (Setting, true values, dict of method to Answer or str). Without random errors,
    decimated."""
    noises: tuple[tuple[Setting, TestResult, Answers], ...] = field(repr=False)
    """With the F-test that the parameters left out are zero."""
    measured: MeasuredResults
    differences: dict[str, Answer | str] = field(default_factory=dict, repr=False)
    """Of the main case, decimated, by method: with sensitivities by differences."""

    @property
    def truth(self) -> Array:
        """True values of the main case as the paper sums them, shape (28,)."""
        return build_published_sums(NAMES) @ self.main.truth

    def mismatch(self, setting: Setting) -> tuple[Array, dict[str, Answer | str]] | None:
        """True values and answers under a mismatch; None without that run."""
        return next(((t, answers) for s, t, answers in self.mismatches if s == setting), None)

    def biases(self, setting: Setting) -> dict[str, float]:
        """Errors of the Coulomb friction under a mismatch by method [%].

        Not a number where a method failed, and without that run.
        """
        run = self.mismatch(setting)
        if run is None:
            return dict.fromkeys(METHODS, np.nan)
        return {m: measure_coulomb_bias(take_beta_or_nan(run[1][m]), run[0]) for m in METHODS}


class Asked(NamedTuple):
    """A setting beside the main one, and what is estimated of it, from least squares on."""

    setting: Setting
    scale: Scale
    keys: tuple[Column, ...]


@limit_to_one_thread
def estimate_setting(asked: Asked) -> tuple[Array, TestResult, Answers]:
    """True values, the F-test that the parameters left out are zero, and the answers."""
    case = simulate_case(load_twin(), asked.setting, asked.scale)
    found: Answers = {key: estimate_case(case, *key, start="least-squares") for key in asked.keys}
    return case.truth, evaluate_essential_test(case), found


def estimate_all(
    progress: Progress = ignore_progress,
    reduced: bool = False,
    differenced: bool = False,
    engine: Engine = HERE,
) -> Results:
    """Simulate and estimate all that `dynident_papers.brunot2019` reports.

    The reduced form has a shorter and coarser motion, fewer mismatches, mostly decimated rows of
    other errors; what is differenced is found also by differences of simulations, as many more as
    there are parameters. A motion of the robot that diverges is an error; methods that fail leave
    their reason.
    """
    twin = load_twin()
    scale, side = (REDUCED, REDUCED) if reduced else (FULL, SIDE)
    chosen = FEW if reduced else MISMATCHES
    keys = [(kind, method) for kind in KINDS for method in METHODS]
    decimated = tuple(("decimated", method) for method in METHODS)
    tasks = [Asked(replace(each, disturbance=0.0), side, decimated) for each in chosen]
    for setting in NOISES:
        kinds = KINDS if setting.log_noise > 0.0 or not reduced else ("decimated",)
        pairs = tuple((k, m) for k in kinds for m in ("ols", "clie", "didim"))
        tasks.append(Asked(setting, side, pairs))
    total = 1 + len(tasks) + len(keys) + len(list_measured_cases(reduced))
    total += (0 if reduced else len(OTHERS)) + differenced * len(OF_LOOPS)
    part = report_part(progress, "brunot2019", 0.0, len(tasks) / total)
    found = gather_side_by_side(estimate_setting, tasks, engine, part, "settings")
    steps = iter(range(len(tasks) + 1, total + 1))

    def made_a_step() -> None:
        progress("brunot2019", next(steps) / total)

    main = simulate_case(twin, MAIN, scale)
    made_a_step()
    answers: Answers = {}
    for kind, method in keys:
        answers[kind, method] = estimate_case(main, kind, method)
        made_a_step()
    differences = {}
    for method in OF_LOOPS if differenced else ():
        slopes = SlopeOptions("differences")
        differences[method] = estimate_case(main, "decimated", method, slopes=slopes)
        made_a_step()
    mismatches = [
        (setting, truth, {method: own for (_, method), own in answered.items()})
        for setting, (truth, _, answered) in zip(chosen, found[: len(chosen)], strict=True)
    ]
    noises = [(MAIN, evaluate_essential_test(main), answers)]
    noises += [
        (setting, test, few)
        for setting, (_, test, few) in zip(NOISES, found[len(chosen) :], strict=True)
    ]
    measured = estimate_measured_log(twin, reduced, made_a_step)
    return Results(
        twin, scale, side, main, answers, tuple(mismatches), tuple(noises), measured, differences
    )


def estimate_measured_log(
    twin: Twin, reduced: bool = False, made_a_step: Callable[[], None] = lambda: None
) -> MeasuredResults:
    """The methods on the log, where it is there.

    The reduced form has the first seconds, decimated, with the 28 parameters and one reference
    alone. A step is one of `list_measured_cases` and, unless it is reduced, of `OTHERS`.
    """
    try:
        bench = load_bench(twin, reduced)
    except InputError as error:
        return MeasuredResults(missing=str(error))
    answers: dict[tuple[str, bool], Answers] = {}
    chatter: dict[tuple[str, bool], str] = {}
    for reference, essential in list_measured_cases(reduced):
        case = bench.case(reference, essential)
        kinds = KINDS if reference == ASKED and not reduced else ("decimated",)
        answers[reference, essential] = {
            (kind, method): estimate_case(case, kind, method)
            for kind in kinds
            for method in METHODS
        }
        cloe = answers[reference, essential]["decimated", "cloe"]
        if not isinstance(cloe, str):
            chatter[reference, essential] = explain_chatter(case, cloe.estimate.beta)
        made_a_step()
    test = evaluate_essential_test(bench.case(ASKED, essential=True))
    loops = {}
    for loop in () if reduced else OTHERS:
        case = bench.case(ASKED, essential=True, loop=loop)
        loops[loop.label] = {m: estimate_case(case, "decimated", m) for m in OF_LOOPS}
        made_a_step()
    return MeasuredResults(answers, bench, test, chatter, loops)


def explain_chatter(case: Case, beta: Array) -> str:
    """Why an explicit integrator at the log's clock could not follow an estimate, or nothing."""
    explicit = replace(case.simulation, integrator="ode3")
    auxiliary = build_auxiliary_model(case.problem, explicit)
    return " ".join(warn_of_chatter(auxiliary, case.problem.base.standard(beta)))


def list_measured_cases(reduced: bool) -> list[tuple[str, bool]]:
    """References of the log, and whether the 28 parameters alone are estimated."""
    if reduced:
        return [(ASKED, True)]
    return [(reference, essential) for reference in REFERENCES for essential in (True, False)]


def estimate_case(
    case: Case, kind: str, method: str, start: str = "rotors", **families: Options
) -> Answer | str:
    """One method on one kind of rows, or why it failed.

    Parameters
    ----------
    **families
        Of the method's options.
    """
    problem = ROWS[kind](case.problem)
    simulation = replace(case.simulation, start=start)
    begin = process_time()
    try:
        if method == "ols":
            estimate = ESTIMATORS[method](problem)
            system = problem.factors.weighted(estimate.sigma)
            torques = measure_inverse_torque_errors(problem, estimate.beta)
            return convert_to_paper_terms(estimate, system, problem.base.names, torques)
        estimate = ESTIMATORS[method](problem, simulation, **families)
        seconds = process_time() - begin
        auxiliary = build_auxiliary_model(problem, simulation)
        position, torques = measure_simulated_errors(auxiliary, estimate.beta)
    except ComputationError as error:
        return str(error)
    inverted = build_inverted_system(auxiliary, method, estimate)
    found = convert_to_paper_terms(estimate, inverted, problem.base.names, torques)
    return replace(found, position=position, seconds=seconds)


def measure_simulated_errors(auxiliary: AuxiliaryModel, beta: Array) -> tuple[float, TorqueErrors]:
    """Error of simulated positions, mean of the joints [%], and those of the torques."""
    (motion,) = auxiliary.motions(auxiliary.problem.base.standard(beta))
    (log,) = auxiliary.problem.samples
    used = slice(*log.segments[0])
    error = compute_percent_error((log.measured - motion.q)[used], log.measured[used])
    return float(np.mean(error)), measure_torque_errors(log, motion.joint_torque)


def measure_inverse_torque_errors(problem: Problem, beta: Array) -> TorqueErrors:
    """Errors of the torques of the inverse model along the motion."""
    (log,) = problem.samples
    theta = problem.base.standard(beta)
    return measure_torque_errors(log, problem.idim.torque(theta, log.q, log.dq, log.ddq))


def measure_torque_errors(log: Samples, found: Array) -> TorqueErrors:
    """Errors of torques, and where they are."""
    used, torque = slice(*log.segments[0]), log.joint_torque
    error = torque - found
    slow = filter_zero_phase(error, LOW_PASS, log.rate)
    rests = np.abs(log.dq) < np.array(log.drop_below)
    parts = (error, error - slow, slow, np.where(rests, slow, 0.0), np.where(rests, 0.0, slow))
    return TorqueErrors(*(compute_percent_error(part[used], torque[used]) for part in parts))


def build_inverted_system(auxiliary: AuxiliaryModel, method: str, estimate: Estimate) -> System:
    """The weighted system that a simulating method inverts at its estimate."""
    if method == "didim":
        return auxiliary.simulated(estimate.beta).factors.weighted(estimate.sigma)
    linear = linearise_output(auxiliary, estimate.beta, POSITION if method == "cloe" else TORQUE)
    return linear.factors.weighted(measure_error_sigma(linear, estimate.beta))


def convert_to_paper_terms(
    estimate: Estimate, system: System, names: Sequence[str], torques: TorqueErrors
) -> Answer:
    """The 28 of an estimate and their standard deviations, summed as the paper sums them."""
    chosen = [names.index(name) for name in NAMES]
    sums, root = build_published_sums(names)[chosen], system.inverse()
    robust = sums @ estimate.covariance.matrix @ sums.T
    return Answer(
        estimate,
        sums @ estimate.beta,
        np.linalg.norm(sums @ root, axis=1),
        np.sqrt(np.maximum(np.diag(robust), 0.0)),
        np.array([measure_white_share(error) for error in estimate.residuals.error]),
        torques,
    )


def measure_white_share(error: Array) -> float:
    """Share of the first autocorrelations within ``2 / sqrt(N)``, 0.95 of a white residual."""
    lags = min(LAGS, len(error) // 2)
    return float(np.mean(np.abs(estimate_autocorrelation(error, lags)) < 2.0 / np.sqrt(len(error))))


def measure_coulomb_bias(beta: Array, truth: Array) -> float:
    """``100 sum |fc - true fc| / sum (true fc)`` over the seven Coulomb parameters [%]."""
    k = list(COULOMB)
    return float(100.0 * np.sum(np.abs(beta[k] - truth[k])) / np.sum(truth[k]))


def evaluate_essential_test(case: Case) -> TestResult:
    """F-test that the base parameters beside the 28 are zero, by least squares."""
    factors = case.full.factors
    kept = find_base_columns(case.full.base, NAMES)
    return run_left_out_test(factors, solve_wls(factors)[1], kept)


def take_values_or_nan(answer: Answer | str) -> Array:
    """The estimate in the paper's terms, not a number where there is none."""
    return np.full(len(NAMES), np.nan) if isinstance(answer, str) else answer.value


def take_beta_or_nan(answer: Answer | str) -> Array:
    """The estimate, not a number where there is none."""
    return np.full(len(NAMES), np.nan) if isinstance(answer, str) else answer.estimate.beta
