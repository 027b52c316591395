"""IDIM-IV and 2SLS: instruments from the simulated closed loop, or from the logged reference.

``beta = (Z^T X)^-1 Z^T y`` (ardiani2024, eq. 12) where Z is the regressor along the motion
of the auxiliary model under the current estimate, iterated until eq. (46) holds; or along the
reference that the log holds, which nothing iterates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.factors import UNEXCITED, Factors, InstrumentFactors, InstrumentSystem, System
from dynident.core.options import Options
from dynident.estimators.closed_loop import AuxiliaryModel, Simulation, build_auxiliary_model
from dynident.estimators.covariance import (
    ErrorBars,
    EstimateScores,
    estimate_covariance,
    name_covariance,
)
from dynident.estimators.estimate import Estimate, Instruments
from dynident.estimators.inner import FreeSolver, InnerSolver
from dynident.estimators.instrument_tests import (
    EXOGENEITY,
    IDENTITY,
    compute_first_stage_f,
    compute_hac_first_stage_f,
    run_endogeneity_test,
    run_hac_endogeneity_test,
    run_hac_identity_test,
    run_hac_overidentification_test,
    run_identity_test,
    run_overidentification_test,
)
from dynident.estimators.iteration import (
    IterationOptions,
    MethodStep,
    Stepped,
    Weighting,
    choose_start_values,
    iterate_until_settled,
)
from dynident.recording.reference import filter_reference_motion
from dynident.regression.problem import Problem, Regression
from dynident.regression.statistics import TestResult, compute_residuals, is_whiteness_rejected
from dynident.regression.weighted import (
    TOLERANCE,
    describe_weak_combination,
    estimate_group_sigma,
    require_excitation,
    solve_wls,
)

ROUNDS = 10
"""Renewals of sigma between two simulations."""
WEAK = 0.1
"""Correlation of instruments with the regressor below which they are called weak."""
LEAST_F = 10.0
"""First-stage F below which instruments are called weak (Staiger and Stock 1997).

Then the bias of IV may be a tenth of that of least squares, and 95 % intervals cover less.
"""
NEGLIGIBLE = 0.3
"""Bias in standard deviations that does not matter: 95 % intervals still cover 94 %."""
IV_ADVICE = "the controller, the reference or a constraint may not be the robot's"


@dataclass(frozen=True)
class CurveOptions(Options):
    """Along which motion friction is that is not linear in the speed: an option of IV."""

    curves: Annotated[
        Literal["measured", "simulated"],
        "for idim-iv and 2sls: the motion along which friction that is nonlinear in the speed is "
        "evaluated; no instrument removes the bias of its mean under speed noise",
    ] = "measured"


def idim_iv(
    problem: Problem,
    simulation: Simulation,
    search: IterationOptions = IterationOptions(),
    bars: ErrorBars = ErrorBars(),
    weighting: Weighting = Weighting(),
    curves: CurveOptions = CurveOptions(),
) -> Estimate:
    """Instrumental variables: as many instruments as parameters.

    Raises
    ------
    InputError
        When a log has no reference or the controller does not fit.
    ComputationError
        When the loop cannot be simulated, the instruments are weak, or the iterations do
        not settle.
    """
    return estimate_unconstrained_iv(
        problem, simulation, search, bars, weighting, curves, extra=False
    )


def estimate_2sls(
    problem: Problem,
    simulation: Simulation,
    search: IterationOptions = IterationOptions(),
    bars: ErrorBars = ErrorBars(),
    weighting: Weighting = Weighting(),
    curves: CurveOptions = CurveOptions(),
) -> Estimate:
    """2SLS with twice as many instruments: the simulated motion's and the reference's.

    ``min ||P_Z (y - X beta)||`` (ardiani2024, eq. 23 and 28).

    Parameters and errors as `idim_iv`.
    """
    return estimate_unconstrained_iv(
        problem, simulation, search, bars, weighting, curves, extra=True
    )


def estimate_unconstrained_iv(
    problem: Problem,
    simulation: Simulation,
    search: IterationOptions,
    bars: ErrorBars,
    weighting: Weighting,
    curves: CurveOptions,
    extra: bool,
) -> Estimate:
    """IDIM-IV and 2SLS without constraints."""
    require_excitation(problem, problem.factors.weighted(problem.factors.ones))
    auxiliary = build_auxiliary_model(problem, simulation)
    start = choose_start_values(problem, simulation.start)
    inner = make_guarded_iv_solver(problem, "simulated motion")
    step = make_iv_step(auxiliary, extra, inner, weighting, curves)
    found = iterate_until_settled(auxiliary, start, search, step, IV_ADVICE)
    words = f"instruments settled in {found.simulations} simulations"
    estimate = finish_iv_estimate(found, words, bars, alike=not extra)
    return replace(
        estimate,
        iterations=found.simulations,
        warnings=(*auxiliary.simulation.warnings, *estimate.warnings),
        history=found.history,
    )


def ref_iv(
    problem: Problem, bars: ErrorBars = ErrorBars(), weighting: Weighting = Weighting()
) -> Estimate:
    """Instrumental variables, as many as parameters, from the references that the logs hold.

    Nothing is simulated, so that no controller is needed and floating robots have them, too.

    Raises
    ------
    InputError
        When a log has no reference.
    ComputationError
        When the logs do not excite all base parameters, or the instruments are weak.
    """
    require_excitation(problem, problem.factors.weighted(problem.factors.ones))
    inner = make_guarded_iv_solver(problem, "reference")
    found = solve_with_references(problem, inner, weighting)
    estimate = finish_iv_estimate(found, describe_reference_origin(problem), bars, alike=False)
    return replace(estimate, warnings=(*estimate.warnings, *warn_of_weak_reference(problem, found)))


def make_guarded_iv_solver(problem: Problem, motion: str) -> FreeSolver:
    """The unconstrained linear problem, refused where a motion's instruments are too weak."""

    def refuse(system: System) -> None:
        condition, _, _ = system.condition()
        if condition > UNEXCITED:
            raise ComputationError(
                f"the instruments do not reach {describe_weak_combination(problem, system)} "
                f"(condition {condition:.1e}): the {motion} does not resemble the measured one"
            )

    return FreeSolver(refuse)


def solve_with_references(
    problem: Problem, inner: InnerSolver, weighting: Weighting = Weighting()
) -> Stepped:
    """What the instruments of the logged references make of a problem, in one step."""
    along = problem.along([filter_reference_motion(log) for log in problem.samples])
    _, sigma, _ = solve_wls(problem.factors)
    rows = problem.with_instruments(along)
    return solve_with_instruments(rows, sigma, inner, weighting, alike=False)


def describe_reference_origin(problem: Problem) -> str:
    """Whence instruments of logged references are, and what they leave as it was measured."""
    words = "instruments from the logged reference"
    moving = [log for log in problem.samples if log.base is not None and not log.base.still]
    if all(log.asked is not None for log in moving):
        return f"{words} of joints and base" if moving else words
    return f"{words} of the joints; the base's motion as measured: bias by its noise remains"


def warn_of_weak_reference(problem: Problem, found: Stepped) -> tuple[str, ...]:
    """A warning where the reference hardly excites some combination of parameters."""
    system = found.rows.instrument_factors.weighted(found.sigma)
    if system.correlation > WEAK:
        return ()
    return (
        f"the reference hardly excites {describe_weak_combination(problem, system.projected)} "
        f"(correlation {system.correlation:.1g} of regressors): error bars are up to "
        f"{1.0 / max(system.correlation, 1.0 / UNEXCITED):.0f} times those of least squares; "
        "take a longer log, or ml",
    )


def make_iv_step(
    auxiliary: AuxiliaryModel,
    extra: bool,
    inner: InnerSolver,
    weighting: Weighting = Weighting(),
    curves: CurveOptions = CurveOptions(),
) -> MethodStep:
    """The step behind IDIM-IV, 2SLS and PC-IDIM-IV (ardiani2024, section III-I).

    Parameters
    ----------
    extra : bool
        Whether the reference's regressor is a second set of instruments.
    curves : CurveOptions
        Along which motion friction that is not linear in the speed is.
    """
    more = (auxiliary.referenced(),) if extra else ()

    def rows(simulated: Regression) -> Regression:
        known: Regression = auxiliary.problem
        if curves.curves == "simulated":
            known = auxiliary.problem.curved_along(simulated)
        return known.with_instruments(simulated, *more)

    def solve(instrumented: Regression, sigma: Array) -> Stepped:
        return solve_with_instruments(instrumented, sigma, inner, weighting, alike=not extra)

    return MethodStep(solve, rows)


def solve_with_instruments(
    rows: Regression, sigma: Array, inner: InnerSolver, weighting: Weighting, *, alike: bool
) -> Stepped:
    """What rows with instruments give under sigmas that are renewed from the last ones.

    `alike` where Z is X but for the noise, as along the simulated motion.
    """
    factors = rows.instrument_factors
    sigma = estimate_iv_sigma(factors, sigma)
    weights = weighting.weigh(sigma)
    std = compute_iv_literature_std(factors.weighted(sigma), alike=alike)
    beta = inner(factors.weighted(weights).projected)
    return Stepped(rows, beta, sigma, std, weights=weights)


def estimate_iv_sigma(factors: InstrumentFactors, sigma: Array) -> Array:
    """The groups' sigmas of the unconstrained IV estimate's errors, renewed a few times.

    They need not agree while the instruments are poor: the simulations go on until they do.
    """
    plain = factors.without("Z")
    for _ in range(ROUNDS):
        new = estimate_group_sigma(plain, factors.weighted(sigma).projected.solve(), sigma)
        done = np.all(np.abs(new - sigma) <= TOLERANCE * new)
        sigma = new
        if done:
            break
    return sigma


def compute_iv_literature_std(system: InstrumentSystem, *, alike: bool = True) -> Array:
    """``(X^T Omega^-1 X)^-1`` with X = Z where they are alike, else P_Z X.

    ardiani2024, eq. 12 and 23.
    """
    z = system.instruments
    factor = system.R[:z, :z] if alike else system.projected.A
    return np.asarray(np.sqrt(np.sum(np.linalg.pinv(factor, rcond=1.0 / UNEXCITED) ** 2, axis=1)))


def finish_iv_estimate(found: Stepped, origin: str, bars: ErrorBars, *, alike: bool) -> Estimate:
    """Residuals, covariance and tests of an IV estimate, its instruments' origin in words."""
    rows, beta, sigma = found.rows, found.beta, found.sigma
    system = rows.instrument_factors.weighted(sigma)
    gain = rows.instrument_factors.weighted(found.used).gain
    errors = compute_residuals(rows, beta)
    spread = estimate_covariance(EstimateScores(rows, beta, found.used, sigma, errors), gain, bars)
    covariance = name_covariance(
        "instruments", spread, compute_iv_literature_std(system, alike=alike)
    )
    estimate = Estimate(beta, None, sigma, covariance, errors, 1, origin)
    return assess_instruments(estimate, found, alike=alike)


def assess_instruments(estimate: Estimate, found: Stepped, *, alike: bool) -> Estimate:
    """An estimate with the tests of its instruments, and what Pi says of them in words.

    `alike` where Z is X but for the noise, so that Pi is the identity.
    """
    rows, sigma, beta = found.rows, found.sigma, estimate.beta
    white, std = not is_whiteness_rejected(estimate.residuals.error), estimate.covariance.std
    system = rows.instrument_factors.weighted(sigma)
    tests: list[TestResult] = []
    if system.instruments > len(beta):
        tests.append(
            run_overidentification_test(system)
            if white
            else run_hac_overidentification_test(rows, sigma)
        )
    pairs = [(run_endogeneity_test, run_hac_endogeneity_test)]
    if alike:
        pairs.insert(0, (run_identity_test, run_hac_identity_test))
    for independent, correlated in pairs:
        known = independent(system)
        tests.append(known if white else add_independent_statistic(correlated(rows, sigma), known))
    words = f"Pi has rank {int(np.linalg.matrix_rank(system.Pi))} of {len(beta)}"
    simulated = system.Pi @ beta - beta if alike else None
    if simulated is not None:
        words += f"; Pi beta is up to {measure_gap(simulated, std):.1f} sigma from beta"
    least = np.linalg.lstsq(system.R[:, system.instruments : -1], system.R[:, -1], rcond=None)[0]
    apart = least - system.projected.solve()
    if np.any(std > 0.0):
        words += f"; least squares is up to {measure_gap(apart, std):.1f} sigma from instruments"
    strength = compute_hac_first_stage_f(rows, sigma)
    if np.isfinite(strength):
        words += f"; first-stage F {strength:.3g}"
    weak: tuple[str, ...] = ()
    own = Instruments(strength, apart, simulated, system.instruments > len(beta))
    # as many instruments as parameters lean nowhere: there the error bars say it (Angrist and
    # Kolesar 2024), or the instruments are refused
    if strength < LEAST_F and own.overidentified:
        weak = (
            f"weak instruments: {describe_weak_combination(rows, system.projected)} is hardly "
            f"determined (first-stage F {strength:.1f} by Kleibergen and Paap, "
            f"{compute_first_stage_f(system):.1f} if rows were independent; below {LEAST_F:g}): "
            "the estimate is biased towards least squares, and its error bars are too short; take "
            "a controller or a reference that is nearer to the robot's, a longer log, or ml",
        )
    return replace(
        estimate,
        message=f"{estimate.message}; {words}",
        warnings=(*estimate.warnings, *weak),
        tests=tuple(tests),
        singular_values=rows.instrument_factors.without("X").singular_values(),
        instruments=own,
    )


def add_independent_statistic(test: TestResult, known: TestResult) -> TestResult:
    """A test of correlated rows beside the literature's statistic, of independent ones."""
    verdict = "rejected" if known.rejected else "not rejected"
    words = f"if rows were independent {known.distribution} = {known.statistic:.3g}, {verdict}"
    return replace(test, remark=words)


def measure_gap(gap: Array, std: Array) -> float:
    """Largest difference of a parameter in its standard deviations."""
    return float(np.max(np.abs(gap)[std > 0.0] / std[std > 0.0], initial=0.0))


def size_rejections(estimate: Estimate, logs: Mapping[str, Factors]) -> Estimate:
    """An estimate whose rejected tests of instruments say how much they amount to.

    `logs`: rows by the names of what they are of, held-out ones where there are any.
    """
    own = estimate.instruments
    if own is None:
        return estimate
    others = {
        EXOGENEITY: ("least squares", own.least_squares),
        IDENTITY: ("didim, along the same simulated motion,", own.simulated),
    }

    def size(test: TestResult) -> TestResult:
        name, gap = others.get(test.null, ("", None))
        if not test.rejected or gap is None:
            return test
        sizes = describe_gap(name, gap, estimate, logs)
        return replace(test, remark=f"{test.remark}; {sizes}" if test.remark else sizes)

    return replace(estimate, tests=tuple(map(size, estimate.tests)))


def describe_gap(name: str, gap: Array, estimate: Estimate, logs: Mapping[str, Factors]) -> str:
    """How far another estimate is, in standard deviations and in torques, and what that means."""
    apart = measure_gap(gap, estimate.covariance.std)
    shares = []
    for log, factors in logs.items():
        square = sum(float(np.sum((g.factor[:, :-1] @ gap) ** 2)) for g in factors.groups)
        share = 100.0 * np.sqrt(square / np.sum(factors.squared_torques))
        shares.append(f"{share:.2g} % of the torque of {log}")
    words = f"{name} differs by up to {apart:.2g} sigma and {', '.join(shares)}"
    if apart < NEGLIGIBLE:
        words += ": too little to matter"
    return words
