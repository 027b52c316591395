"""IDIM-IV and 2SLS: instruments from the simulated closed loop.

``beta = (Z^T X)^-1 Z^T y`` (ardiani2024, eq. 12) where Z is the regressor along the motion
of the auxiliary model under the current estimate, iterated until eq. (46) holds.
"""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.estimators.closed_loop import Auxiliary, Simulation, auxiliary_model
from dynident.estimators.covariance import ErrorBars, Scores, named, spread_of
from dynident.estimators.estimate import Estimate
from dynident.estimators.inner import Free, Inner
from dynident.estimators.instrument_tests import (
    correlated_endogeneity_test,
    correlated_identity_test,
    endogeneity_test,
    identity_test,
)
from dynident.estimators.iteration import (
    Search,
    Settled,
    Step,
    Stepped,
    iterate,
    start_values,
)
from dynident.regression.factors import UNEXCITED, InstrumentFactors, InstrumentSystem, System
from dynident.regression.problem import Problem, Regression
from dynident.regression.statistics import TestResult, residuals, whiteness_rejected
from dynident.regression.weighted import (
    TOLERANCE,
    group_sigma,
    require_excitation,
    weakest_combination,
)

ROUNDS = 10
"""Renewals of sigma between two simulations."""
IV_ADVICE = "the controller, the reference or a constraint may not be the robot's"


def idim_iv(
    problem: Problem,
    simulation: Simulation,
    search: Search = Search(),
    bars: ErrorBars = ErrorBars(),
) -> Estimate:
    """Instrumental variables: as many instruments as parameters.

    Parameters
    ----------
    problem : Problem
    simulation : Simulation
    search : Search
    bars : ErrorBars

    Raises
    ------
    InputError
        When a log has no reference or the controller does not fit.
    ComputationError
        When the loop cannot be simulated, the instruments are weak, or the iterations do
        not settle.
    """
    return free_instrumental(problem, simulation, search, bars, extra=False)


def two_stage_least_squares(
    problem: Problem,
    simulation: Simulation,
    search: Search = Search(),
    bars: ErrorBars = ErrorBars(),
) -> Estimate:
    """2SLS with twice as many instruments: the simulated motion's and the reference's.

    ``min ||P_Z (y - X beta)||`` (ardiani2024, eq. 23 and 28).

    Parameters and errors as `idim_iv`.

    Raises
    ------
    InputError, ComputationError
    """
    return free_instrumental(problem, simulation, search, bars, extra=True)


def free_instrumental(
    problem: Problem, simulation: Simulation, search: Search, bars: ErrorBars, extra: bool
) -> Estimate:
    """IDIM-IV and 2SLS without constraints."""
    require_excitation(problem, problem.factors.weighted(problem.factors.ones))

    def refuse(system: System) -> None:
        condition, _, _ = system.condition()
        if condition > UNEXCITED:
            raise ComputationError(
                f"the instruments do not reach {weakest_combination(problem, system)} (condition "
                f"{condition:.1e}): the simulated motion does not resemble the measured one"
            )

    auxiliary = auxiliary_model(problem, simulation)
    start = start_values(problem, simulation.start)
    step = instrumental(auxiliary, extra, Free(refuse))
    return finish(auxiliary, iterate(auxiliary, start, search, step, IV_ADVICE), bars)


def instrumental(auxiliary: Auxiliary, extra: bool, inner: Inner) -> Step:
    """The step behind IDIM-IV, 2SLS and PC-IDIM-IV (ardiani2024, section III-I).

    Parameters
    ----------
    auxiliary : Auxiliary
    extra : bool
        Whether the reference's regressor is a second set of instruments.
    inner : Inner
        Minimises ``||R_ZX beta - r_Zy||^2`` over what is admitted.
    """
    more = (auxiliary.referenced(),) if extra else ()

    def step(simulated: Regression, sigma: Array) -> Stepped:
        rows = auxiliary.problem.with_instruments(simulated, *more)
        factors = rows.instrument_factors
        sigma = instrument_sigma(factors, sigma)
        system = factors.weighted(sigma)
        return Stepped(rows, inner(system.projected), sigma, literature_std(system))

    return step


def instrument_sigma(factors: InstrumentFactors, sigma: Array) -> Array:
    """The joints' sigmas of the unconstrained IV estimate's errors, renewed a few times.

    They need not agree while the instruments are poor: the simulations go on until they do.
    """
    plain = factors.without("Z")
    for _ in range(ROUNDS):
        new = group_sigma(plain, factors.weighted(sigma).projected.solve(), sigma)
        done = np.all(np.abs(new - sigma) <= TOLERANCE * new)
        sigma = new
        if done:
            break
    return sigma


def literature_std(system: InstrumentSystem) -> Array:
    """``(X^T Omega^-1 X)^-1`` with X = Z, or P_Z X (ardiani2024, eq. 12 and 23)."""
    z, p = system.instruments, system.R.shape[1] - 1 - system.instruments
    factor = system.R[:z, :z] if z == p else system.projected.A
    return np.asarray(np.sqrt(np.sum(np.linalg.pinv(factor, rcond=1.0 / UNEXCITED) ** 2, axis=1)))


def finish(auxiliary: Auxiliary, found: Settled, bars: ErrorBars) -> Estimate:
    """Residuals, covariance and tests of a converged IV estimate."""
    rows, beta, sigma = found.rows, found.beta, found.sigma
    system = rows.instrument_factors.weighted(sigma)
    errors = residuals(auxiliary.problem, beta)
    spread = spread_of(Scores(rows, beta, sigma, sigma, errors), system.gain, bars)
    covariance = named("instruments", spread, literature_std(system))
    white = not whiteness_rejected(errors.error)
    tests, words = instrument_words(rows, sigma, beta, covariance.std, white)
    return Estimate(
        beta,
        None,
        sigma,
        covariance,
        errors,
        found.simulations,
        f"instruments settled in {found.simulations} simulations; {words}",
        warnings=auxiliary.simulation.warnings,
        tests=tests,
        history=found.history,
        singular_values=rows.instrument_factors.without("X").singular_values(),
    )


def instrument_words(
    rows: Regression, sigma: Array, beta: Array, std: Array, white: bool
) -> tuple[tuple[TestResult, ...], str]:
    """Tests of the instruments, and what Pi says of them in words.

    Parameters
    ----------
    rows : Regression
        With their instruments.
    sigma : ndarray, shape (groups,)
    beta, std : ndarray, shape (base parameters,)
    white : bool
        Whether the rows' errors are independent in time.
    """
    system = rows.instrument_factors.weighted(sigma)
    square = system.instruments == len(beta)  # Pi = I is of one instrument a parameter
    tests: list[TestResult] = []
    if square:
        tests.append(identity_test(system) if white else correlated_identity_test(rows, sigma))
    tests.append(endogeneity_test(system) if white else correlated_endogeneity_test(rows, sigma))
    words = f"Pi has rank {int(np.linalg.matrix_rank(system.Pi))} of {len(beta)}"
    if square:
        gap = np.abs(system.Pi @ beta - beta)
        shift = np.max(gap / np.maximum(std, np.finfo(float).tiny))
        words += f"; Pi beta is up to {shift:.1f} sigma from beta"
    return tuple(tests), words
