"""Physically consistent estimators: PC-IDIM-LS, PC-IDIM-IV, PC-DIDIM and PC-CLIE.

The iterations are those of the unconstrained methods; the linear problem inside them is
the cone problem of `dynident.consistency.feasible_set` (ardiani2024, eq. 20 and 29).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynident.consistency.active import restriction, sensitivity
from dynident.consistency.bootstrap import REPLICATES, bootstrap_covariance, check_replicates
from dynident.consistency.feasible_set import (
    Admissible,
    Held,
    admissible,
    names_held,
    require_consistent,
)
from dynident.consistency.inner import Constrained, LogCholesky
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.weight import HELD_OUT, chosen_weight
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.estimators.closed_loop import Auxiliary, Simulation, auxiliary_model
from dynident.estimators.didim import direct_inverse
from dynident.estimators.estimate import Estimate
from dynident.estimators.instrumental import instrument_words, instrumental
from dynident.estimators.instrumental import seed_std as instrument_std
from dynident.estimators.iteration import start_values
from dynident.estimators.least_squares import seed_std, weakest_combination, weighted_solution
from dynident.estimators.output_error import TORQUE, error_sigma, output_error
from dynident.regression.factors import UNEXCITED, System
from dynident.regression.problem import Problem, Regression
from dynident.regression.statistics import (
    Covariance,
    automatic_lag,
    long_run_ratio,
    residuals,
    score_covariance,
    score_series,
    whiteness_rejected,
)

DEFAULT = Knowledge()
LOST = 1e-2
APPROACHED = 1e-6
"""Residual of a certificate above which an answer is not optimal: a log-Cholesky search."""
VISIBLE = 1e-2
"""Multiplier, in chi-squared per unit of a scaled parameter, that counts as active."""


@dataclass(frozen=True)
class Setting:
    """What a constrained method works with.

    Attributes
    ----------
    problem : Problem
    knowledge : Knowledge
    admitted : Admissible
    sigma : ndarray, shape (n,)
        Of the unconstrained weighted least squares.
    rounds : int
        Until they settled.
    system : System
        Its factors.
    bootstrap, seed : int
    """

    problem: Problem
    knowledge: Knowledge
    admitted: Admissible
    sigma: Array
    rounds: int
    system: System
    bootstrap: int
    seed: int

    def inner(self) -> Constrained:
        """The solver inside the iterations."""
        make = Constrained if self.knowledge.parametrisation == "cones" else LogCholesky
        return make(self.admitted)


def setting(problem: Problem, knowledge: Knowledge, bootstrap: int, seed: int) -> Setting:
    """The admissible set of a problem, scaled by its rows.

    kappa^2, the prior's variance in units of the rows, is the long-run variance ratio of
    the residuals of least squares: correlated rows inform less than their number says.

    Raises
    ------
    InputError
    """
    factors = problem.factors
    free, sigma, rounds = weighted_solution(factors)
    errors = residuals(problem, free).error
    kappa = np.sqrt(long_run_ratio(errors)) if whiteness_rejected(errors) else 1.0
    system = factors.weighted(sigma)
    if knowledge.prior_weight == HELD_OUT:
        knowledge = chosen_weight(problem, knowledge, sigma, float(kappa))
    admitted = admissible(problem.base, system, knowledge, float(kappa))
    check_replicates(bootstrap)
    return Setting(problem, knowledge, admitted, sigma, rounds, system, bootstrap, seed)


def pc_idim_ls(
    problem: Problem, knowledge: Knowledge = DEFAULT, bootstrap: int = REPLICATES, seed: int = 0
) -> Estimate:
    """Weighted least squares over the admitted parameters (ardiani2024, eq. 19 and 20).

    Parameters
    ----------
    problem : Problem
    knowledge : Knowledge
        Consistency, constraints and prior; by default every link consistent, Ia, fv, fc
        positive, and the robot file's inertials as a weak prior where it has any.
    bootstrap : int
        Replicates of the block bootstrap where constraints are active; 0 for the covariance
        on their faces.
    seed : int
        Of the bootstrap.

    Raises
    ------
    InputError
        When the prior is not known, the file has no inertials for it, or a constraint does
        not fit the robot.
    ComputationError
        When no certified consistent answer was reached.
    """
    given = setting(problem, knowledge, bootstrap, seed)
    inner = given.inner()
    inner(given.system)
    held = inner.held
    return concluded(
        given, held, problem, given.system, given.sigma, seed_std(given.system),
        f"solved; sigma settled in {given.rounds} rounds", held.solution.iterations,
    )  # fmt: skip


def pc_idim_iv(
    problem: Problem,
    simulation: Simulation,
    knowledge: Knowledge = DEFAULT,
    gain_update: bool = False,
    bootstrap: int = REPLICATES,
    seed: int = 0,
) -> Estimate:
    """Constrained instrumental variables (ardiani2024, section III-I).

    An outer IV iteration, and inside it ``min ||R_ZX beta - r_Zy||^2``, eq. 28, over the
    admitted parameters.

    Parameters
    ----------
    problem : Problem
    simulation : Simulation
    knowledge : Knowledge
        As of `pc_idim_ls`; consistency "base" without a prior is the seed's own, eq. 27.
    gain_update : bool
        See `dynident.estimators.iteration.gain_scale`.
    bootstrap : int
        Replicates of the block bootstrap where constraints are active; 0 for the covariance
        on their faces.
    seed : int
        Of the bootstrap.

    Raises
    ------
    InputError
        As `pc_idim_ls`, and when a log has no reference or the controller does not fit.
    ComputationError
        When no certified consistent answer was reached, the loop cannot be simulated, or
        the iterations do not settle.
    """
    given = setting(problem, knowledge, bootstrap, seed)
    inner = given.inner()
    auxiliary = auxiliary_model(problem, simulation)
    found = instrumental(auxiliary, constrained_start(given, auxiliary), gain_update, False, inner)
    system = found.problem.instrument_factors.weighted(found.sigma)
    estimate = concluded(
        given, inner.held, found.problem, system.projected, found.sigma, instrument_std(system),
        f"instruments settled in {len(found.history) - 1} simulations",
        len(found.history) - 1, Pi=system.Pi,
    )  # fmt: skip
    tests, words = instrument_words(system, estimate.beta, estimate.covariance.std)
    singular_values = found.problem.instrument_factors.without("X").singular_values()
    return replace(
        simulated(estimate, auxiliary, found.history, singular_values),
        message=f"{estimate.message}; {words}",
        tests=tests,
    )


def pc_didim(
    problem: Problem,
    simulation: Simulation,
    knowledge: Knowledge = DEFAULT,
    gain_update: bool = False,
    bootstrap: int = REPLICATES,
    seed: int = 0,
) -> Estimate:
    """Constrained DIDIM: ``min ||Z beta - y||^2`` along the simulated motion, iterated.

    Parameters and errors as `pc_idim_iv`.

    Raises
    ------
    InputError, ComputationError
    """
    given = setting(problem, knowledge, bootstrap, seed)
    inner = given.inner()
    auxiliary = auxiliary_model(problem, simulation)
    found = direct_inverse(auxiliary, constrained_start(given, auxiliary), gain_update, inner)
    factors = found.simulated.factors
    system = factors.weighted(found.sigma)
    estimate = concluded(
        given, inner.held, found.simulated, system, found.sigma, seed_std(system),
        f"settled in {len(found.history) - 1} simulations", len(found.history) - 1,
    )  # fmt: skip
    return simulated(estimate, auxiliary, found.history, factors.singular_values())


def pc_clie(
    problem: Problem,
    simulation: Simulation,
    knowledge: Knowledge = DEFAULT,
    bootstrap: int = REPLICATES,
    seed: int = 0,
) -> Estimate:
    """Constrained closed-loop input error, each step a cone problem.

    Parameters and errors as `pc_idim_iv`.

    Raises
    ------
    InputError, ComputationError
    """
    given = setting(problem, knowledge, bootstrap, seed)
    inner = given.inner()
    auxiliary = auxiliary_model(problem, simulation)
    found = output_error(auxiliary, constrained_start(given, auxiliary), TORQUE, inner)
    factors = found.linear.factors
    # constraints that the data contradict make errors larger, and no noise
    sigma = error_sigma(found.linear, factors.weighted(found.sigma).solve())
    system = factors.weighted(sigma)
    # the last step was damped; without it the multipliers are those of the criterion
    inner(system)
    estimate = concluded(
        given, inner.held, found.linear, system, sigma, seed_std(system),
        found.message, len(found.history) - 1,
    )  # fmt: skip
    return simulated(estimate, auxiliary, found.history, factors.singular_values())


def constrained_start(given: Setting, auxiliary: Auxiliary) -> Array:
    """Where iterations start: the admitted least-squares estimate, or what was asked for."""
    if auxiliary.simulation.start == "least-squares":
        return given.inner()(given.system)
    return start_values(given.problem, auxiliary.simulation.start)


def simulated(
    estimate: Estimate, auxiliary: Auxiliary, history: Array, singular_values: Array
) -> Estimate:
    """An estimate with what belongs to iterations over simulations."""
    assumed = auxiliary.simulation.assumed
    warnings = estimate.warnings if assumed is None else (assumed, *estimate.warnings)
    return replace(estimate, history=history, singular_values=singular_values, warnings=warnings)


def concluded(
    given: Setting,
    held: Held,
    scored: Regression,
    system: System,
    sigma: Array,
    seed: Array,
    message: str,
    iterations: int,
    Pi: Array | None = None,
) -> Estimate:
    """Residuals, covariance, certificate and restriction of a constrained answer.

    Parameters
    ----------
    held : Held
    scored : Regression
        Whose scores, those of its instruments where it has any, are zero at a free answer.
    system : System
        ``||A beta - b||^2``.
    seed : ndarray, shape (base parameters,)
        Standard deviations of the literature's formula.
    Pi : ndarray, optional
        ``(Z^T Z)^-1 Z^T X`` of instruments.
    """
    problem, admitted = given.problem, given.admitted
    if held.theta is not None:
        require_consistent(problem.base, held.theta, given.knowledge.consistency)
    errors = residuals(scored, held.beta)
    lag = automatic_lag(errors.error) if whiteness_rejected(errors.error) else 0
    faces = held.solution.visible(admitted.cones, VISIBLE)
    active = names_held(admitted.cones, faces)
    name = ("posterior, " if admitted.prior.words != "none" else "") + (
        f"hac rows (residuals are not white), Bartlett lag {lag}" if lag else "white rows"
    )
    if active and given.bootstrap:
        name += (
            f"; moving-block bootstrap of the cone problem, {given.bootstrap} replicates "
            f"({len(active)} active constraints)"
        )
        series = tuple(
            np.vstack([u for _, u in log]) for log in score_series(scored, held.beta, sigma)
        )
        rows = scored.factors.rows
        if Pi is not None:
            series = tuple(u @ Pi for u in series)
        matrix = bootstrap_covariance(
            admitted, held, system, series, rows, lag + 1, given.bootstrap, given.seed
        )
    else:
        if active:
            name += f", on the faces of {len(active)} active constraints"
        score = score_covariance(scored, held.beta, sigma, lag)
        if Pi is not None:
            score = Pi.T @ score @ Pi
        pull = held.A[held.data :]
        middle = admitted.space.matrix.T @ score @ admitted.space.matrix
        middle = middle + admitted.kappa**2 * pull.T @ pull
        image = admitted.space.matrix @ sensitivity(admitted, held, faces)
        matrix = image @ middle @ image.T
    warnings = []
    condition, rank, _ = system.condition()
    if condition > UNEXCITED:
        weakest = weakest_combination(problem, system)
        warnings.append(
            f"the log does not excite {weakest} (condition {condition:.1e}, rank {rank} of "
            f"{problem.base.count}); those values rest on the prior and the constraints"
        )
    proof = held.solution.certificate
    if proof.worst > LOST:
        raise ComputationError(
            f"the search over log-Cholesky parameters stopped far from an optimum (residual "
            f"{proof.worst:.1e}); use parametrisation 'cones'"
        )
    if proof.worst > APPROACHED:
        warnings.append(
            "the search ended near the boundary of consistency and not on it (dual residual "
            f"{proof.dual:.1e}), of which the error bars know nothing; use parametrisation 'cones'"
        )
    held_back = restriction(admitted, held, system, faces)
    if held_back is not None and held_back.rejected:
        warnings.append(held_back.verdict)
    return Estimate(
        held.beta,
        held.theta,
        sigma,
        Covariance(name, np.asarray(matrix), seed),
        errors,
        iterations,
        True,
        message,
        certificate=proof,
        active=active,
        prior=admitted.prior.words,
        restriction=held_back,
        warnings=tuple(warnings),
    )
