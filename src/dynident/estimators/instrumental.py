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
from dynident.regression.statistics import TestResult, f_distributed, residuals
from dynident.regression.weighted import (
    TOLERANCE,
    group_sigma,
    require_excitation,
    weakest_combination,
)

ROUNDING = 1e-10
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
    tests, words = instrument_words(system, beta, covariance.std)
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
    system: InstrumentSystem, beta: Array, std: Array
) -> tuple[tuple[TestResult, ...], str]:
    """Tests of the instruments, and what Pi says of them in words."""
    square = system.instruments == len(beta)  # Pi = I is of one instrument a parameter
    tests = (*((identity_test(system),) if square else ()), endogeneity_test(system))
    words = f"Pi has rank {int(np.linalg.matrix_rank(system.Pi))} of {len(beta)}"
    if square:
        gap = np.abs(system.Pi @ beta - beta)
        shift = np.max(gap / np.maximum(std, np.finfo(float).tiny))
        words += f"; Pi beta is up to {shift:.1f} sigma from beta"
    return tests, words


def identity_test(system: InstrumentSystem) -> TestResult:
    """Test of Pi = I, column by column of ``X - Z = Z (Pi - I) + V`` (Bonferroni).

    ``F = (||P_Z (X_i - Z_i)||^2 / z) / (||V_i||^2 / (r - z))`` (after Janot, Vandanjon and
    Gautier 2016). Rows count as independent; the more they are correlated, the more often
    the test rejects.
    """
    z, p = system.instruments, system.R.shape[1] - 1 - system.instruments
    difference = system.R[:, z : z + p] - np.vstack([system.R[:z, :p], np.zeros((p + 1, p))])
    freedom = max(1, system.rows - z)
    explained_ = np.sum(difference[:z] ** 2, axis=0) / z
    rest = np.sum(difference[z:] ** 2, axis=0) / freedom
    # a column that is its own instrument (an offset) differs from it by rounding alone
    size = np.sum(system.R[:, z : z + p] ** 2, axis=0)
    differs = explained_ * z + rest * freedom > ROUNDING**2 * size
    ratio = np.where(differs, explained_ / np.maximum(rest, np.finfo(float).tiny), 0.0)
    worst = float(np.max(ratio))
    return f_distributed("Pi is the identity: X and Z have one mean", worst, z, freedom, p)


def endogeneity_test(system: InstrumentSystem) -> TestResult:
    """Durbin-Wu-Hausman test that X is free of the error, in its regression form.

    ``y = X beta + V delta + e`` with the first stage's residuals V: delta = 0 means that
    least squares is consistent as well.
    """
    z, p = system.instruments, system.R.shape[1] - 1 - system.instruments
    X, y = system.R[:, z : z + p], system.R[:, -1]
    fitted = np.vstack([system.R[:z, z : z + p], np.zeros((p + 1, p))])
    small = remaining(X, y)
    rest = remaining(np.hstack([X, fitted]), y)
    dropped = int(np.linalg.matrix_rank(X - fitted, tol=1e-9 * np.linalg.norm(X)))
    freedom = max(1, system.rows - p - dropped)
    statistic = max(0.0, small - rest) / max(1, dropped) / max(rest / freedom, 1e-300)
    return f_distributed("X is free of the error: least squares is consistent", statistic,
                         dropped, freedom)  # fmt: skip


def remaining(X: Array, y: Array) -> float:
    """Squared residual of a least-squares fit, columns scaled."""
    norms = np.linalg.norm(X, axis=0)
    norms[norms == 0.0] = 1.0
    beta = np.linalg.lstsq(X / norms, y, rcond=1e-10)[0]
    return float(np.sum((y - X / norms @ beta) ** 2))
