"""What is estimated of the output error experiment: the methods side by side, case by case."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.progress import Progress, ignore_progress
from dynident.estimators.closed_loop import (
    Auxiliary,
    build_auxiliary_model,
    compare_with_simulation,
)
from dynident.estimators.output_error import POSITION, TORQUE, linearise_output, measure_error_sigma
from dynident.methods import ESTIMATORS, Estimate
from dynident.regression.factors import System
from dynident.regression.row_kinds import ROWS
from dynident.regression.statistics import TestResult, estimate_autocorrelation, run_f_test
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
    simulate_case,
)
from dynident_papers.published import Column, build_published_sums
from dynident_papers.twin import Twin, load_twin

METHODS = ("ols", "clie", "cloe", "didim")
SIMULATING = METHODS[1:]
WORDS = {"ols": "LS", "clie": "CLIE", "cloe": "CLOE", "didim": "DIDIM"}
KINDS = {"all": "every sample", "decimated": "decimated"}

LAGS = 50

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
class Answer:
    """An estimate in the paper's terms.

    Attributes
    ----------
    estimate : Estimate
    value, std, robust : ndarray, shape (28,)
        As the paper sums them (`build_published_sums`); standard deviations by the paper's formula,
        eq. (10) and (32), and by the estimate's own covariance.
    inside : ndarray, shape (n,)
        Share of the first `LAGS` autocorrelations of the residual within ``2 / sqrt(N)``.
    position, torque : float
        Mean over the joints of Table 3's figures [%]; not a number of LS.
    """

    estimate: Estimate = field(repr=False)
    value: Array
    std: Array
    robust: Array
    inside: Array
    position: float
    torque: float


Answers = dict[Column, Answer | str]
"""A method that fails leaves its reason."""


@dataclass(frozen=True)
class Results:
    """All that the tables are made of.

    Attributes
    ----------
    twin : Twin
    scale, side : Scale
        Of the main case, and of the settings beside it.
    main : Case
    answers : Answers
        Of the main case.
    mismatches : tuple of (Setting, true values, dict of method to Answer or str)
        Without random errors, decimated.
    noises : tuple of (Setting, TestResult, Answers)
        With the F-test that the parameters left out are zero.
    """

    twin: Twin
    scale: Scale
    side: Scale
    main: Case
    answers: Answers
    mismatches: tuple[tuple[Setting, Array, dict[str, Answer | str]], ...] = field(repr=False)
    noises: tuple[tuple[Setting, TestResult, Answers], ...] = field(repr=False)

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


def estimate_all(progress: Progress = ignore_progress, reduced: bool = False) -> Results:
    """Simulate and estimate all that `dynident_papers.brunot2019` reports.

    Parameters
    ----------
    progress : callable
        Called with "brunot2019" and the share that is done.
    reduced : bool
        A shorter and coarser motion, fewer mismatches, mostly decimated rows of other errors.

    Raises
    ------
    ComputationError
        When a motion of the robot diverges; methods that fail leave their reason.
    """
    twin = load_twin()
    scale, side = (REDUCED, REDUCED) if reduced else (FULL, SIDE)
    chosen = FEW if reduced else MISMATCHES
    keys = [(kind, method) for kind in KINDS for method in METHODS]
    total = 1 + len(keys) + len(chosen) + len(NOISES)
    steps = iter(range(1, total + 1))

    def made_a_step() -> None:
        progress("brunot2019", next(steps) / total)

    main = simulate_case(twin, MAIN, scale)
    made_a_step()
    answers: Answers = {}
    for kind, method in keys:
        answers[kind, method] = estimate_case(main, kind, method)
        made_a_step()
    mismatches = []
    for setting in chosen:
        case = simulate_case(twin, replace(setting, disturbance=0.0), side)
        found = {m: estimate_case(case, "decimated", m, start="least-squares") for m in METHODS}
        mismatches.append((setting, case.truth, found))
        made_a_step()
    noises = [(MAIN, evaluate_essential_test(main), answers)]
    for setting in NOISES:
        case = simulate_case(twin, setting, side)
        kinds = KINDS if setting.log_noise > 0.0 or not reduced else ("decimated",)
        pairs = [(k, m) for k in kinds for m in ("ols", "clie", "didim")]
        few: Answers = {(k, m): estimate_case(case, k, m, start="least-squares") for k, m in pairs}
        noises.append((setting, evaluate_essential_test(case), few))
        made_a_step()
    return Results(twin, scale, side, main, answers, tuple(mismatches), tuple(noises))


def estimate_case(case: Case, kind: str, method: str, start: str = "rotors") -> Answer | str:
    """One method on one kind of rows, or why it failed."""
    problem = ROWS[kind](case.problem)
    simulation = replace(case.simulation, start=start)
    try:
        if method == "ols":
            estimate = ESTIMATORS[method](problem)
            return convert_to_paper_terms(estimate, problem.factors.weighted(estimate.sigma))
        estimate = ESTIMATORS[method](problem, simulation)
        auxiliary = build_auxiliary_model(problem, simulation)
        figure = compare_with_simulation(auxiliary, auxiliary.problem.base.standard(estimate.beta))[
            0
        ]
    except ComputationError as error:
        return str(error)
    found = convert_to_paper_terms(estimate, build_inverted_system(auxiliary, method, estimate))
    return replace(
        found,
        position=float(np.mean(figure.position_percent)),
        torque=float(np.mean(figure.torque_percent)),
    )


def build_inverted_system(auxiliary: Auxiliary, method: str, estimate: Estimate) -> System:
    """The weighted system that a simulating method inverts at its estimate."""
    if method == "didim":
        return auxiliary.simulated(estimate.beta).factors.weighted(estimate.sigma)
    linear = linearise_output(auxiliary, estimate.beta, POSITION if method == "cloe" else TORQUE)
    return linear.factors.weighted(measure_error_sigma(linear, estimate.beta))


def convert_to_paper_terms(estimate: Estimate, system: System) -> Answer:
    """An estimate and its standard deviations, summed as the paper sums them."""
    sums, root = build_published_sums(NAMES), system.inverse()
    robust = sums @ estimate.covariance.matrix @ sums.T
    return Answer(
        estimate,
        sums @ estimate.beta,
        np.linalg.norm(sums @ root, axis=1),
        np.sqrt(np.maximum(np.diag(robust), 0.0)),
        np.array([measure_white_share(error) for error in estimate.residuals.error]),
        np.nan,
        np.nan,
    )


def measure_white_share(error: Array, lags: int = LAGS) -> float:
    """Share of the first autocorrelations within ``2 / sqrt(N)``, 0.95 of a white residual."""
    lags = min(lags, len(error) // 2)
    return float(np.mean(np.abs(estimate_autocorrelation(error, lags)) < 2.0 / np.sqrt(len(error))))


def measure_coulomb_bias(beta: Array, truth: Array) -> float:
    """``100 sum |fc - true fc| / sum (true fc)`` over the seven Coulomb parameters [%]."""
    k = list(COULOMB)
    return float(100.0 * np.sum(np.abs(beta[k] - truth[k])) / np.sum(truth[k]))


def evaluate_essential_test(case: Case) -> TestResult:
    """F-test that the base parameters beside the 28 are zero, by least squares."""
    small, large = case.problem.factors, case.full.factors
    sigma = ESTIMATORS["wls"](case.full).sigma
    rss = [float(f.weighted(sigma).rest) for f in (small, large)]
    dropped = large.parameters - small.parameters
    return run_f_test(rss[0], rss[1], dropped, large.rows - large.parameters)


def take_beta_or_nan(answer: Answer | str) -> Array:
    """The estimate, not a number where there is none."""
    return np.full(len(NAMES), np.nan) if isinstance(answer, str) else answer.estimate.beta
