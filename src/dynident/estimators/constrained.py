"""Physically consistent estimators: PC-IDIM-LS, PC-IDIM-IV, PC-DIDIM and PC-CLIE.

The iterations are those of the unconstrained methods; the linear problem inside them is
the cone problem of `dynident.consistency.feasible_set` (ardiani2024, eq. 20 and 29).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dynident.consistency.active import differentiate_estimate, judge_active_constraints
from dynident.consistency.bootstrap import Bootstrap, bootstrap_covariance
from dynident.consistency.disbelief import find_disbelieved_bodies
from dynident.consistency.evidence import lower_gyrations
from dynident.consistency.feasible_set import (
    FeasiblePoint,
    FeasibleSet,
    build_feasible_set,
    list_active_constraints,
    measure_base_share,
    measure_information_share,
    require_consistent,
)
from dynident.consistency.gyration import Gyration
from dynident.consistency.inner import ConstrainedSolver
from dynident.consistency.intervals import measure_intervals
from dynident.consistency.knowledge import FROM_FILE, HELD_OUT, Knowledge
from dynident.consistency.reach import Reach, release_constraints
from dynident.consistency.standard_errors import derive_standard_errors
from dynident.consistency.weight import choose_prior_weight
from dynident.core.arrays import Array
from dynident.core.factors import UNEXCITED, System
from dynident.core.progress import Progress, ignore_progress
from dynident.core.side_by_side import HERE, Engine
from dynident.estimators.closed_loop import AuxiliaryModel, Simulation, build_auxiliary_model
from dynident.estimators.covariance import (
    BLOCKS,
    CLUSTERED,
    ErrorBars,
    EstimateScores,
    Spread,
    choose_covariance,
    estimate_covariance,
    make_score_redraw,
    name_covariance,
)
from dynident.estimators.didim import DIDIM_ADVICE, make_didim_step
from dynident.estimators.estimate import Estimate, RoughEstimate
from dynident.estimators.instrumental import (
    IV_ADVICE,
    assess_instruments,
    describe_reference_origin,
    make_iv_step,
    solve_with_references,
    warn_of_weak_reference,
)
from dynident.estimators.instrumental import compute_iv_literature_std as instrument_std
from dynident.estimators.iteration import (
    IterationOptions,
    Stepped,
    choose_start_values,
    iterate_until_settled,
)
from dynident.estimators.output_error import (
    TORQUE,
    OutputDescent,
    measure_error_sigma,
    minimise_output_error,
)
from dynident.regression.problem import Problem, Regression
from dynident.regression.scatter import estimate_sigma_by_scatter
from dynident.regression.statistics import compute_residuals
from dynident.regression.weighted import (
    Reweighting,
    compute_literature_std,
    describe_weak_combination,
    solve_wls,
)

VISIBLE = 1e-2
"""Multiplier, in chi-squared per unit of a scaled parameter, that counts as active."""


@dataclass(frozen=True)
class ConstrainedSetting:
    """What a constrained method works with."""

    problem: Problem
    knowledge: Knowledge
    admitted: FeasibleSet
    near: FeasiblePoint | None
    """What of it fits the system best, where it is known: see `solve`."""
    gyrations: tuple[Gyration, ...]
    """Least radii of gyration, with what the log made of them."""
    sigma: Array
    """Of the unconstrained weighted least squares, or of the scatter between periods, shape
    (n,)."""
    rounds: int
    """Until they settled."""
    system: System
    """Its factors."""
    bootstrap: Bootstrap
    bars: ErrorBars
    engine: Engine = HERE
    """What solves the replicates of the bootstrap."""

    def inner(self) -> ConstrainedSolver:
        """The solver inside the iterations."""
        return ConstrainedSolver(self.admitted, self.near)

    def solve(self) -> FeasiblePoint:
        """What of the admitted set fits the system best."""
        return self.admitted.solve(self.system) if self.near is None else self.near


def build_constrained_setting(
    problem: Problem,
    knowledge: Knowledge,
    bootstrap: Bootstrap,
    bars: ErrorBars,
    start: Array | None = None,
    reweighting: Reweighting = Reweighting(),
    engine: Engine = HERE,
) -> ConstrainedSetting:
    """The admissible set of a problem, scaled by its rows.

    kappa^2, the prior's variance in units of the rows, is the `inflation` of least squares:
    correlated rows inform less than their number says.

    Parameters
    ----------
    start : ndarray, shape (groups,), optional
        Sigmas to begin with.
    engine : Engine
        What solves the replicates of the bootstrap.
    """
    factors = problem.factors
    free, sigma, rounds = solve_wls(factors, start, reweighting)
    known = estimate_sigma_by_scatter(problem)
    if known is not None:
        sigma = known
    system = factors.weighted(sigma)
    scores = EstimateScores(problem, free, sigma, sigma, compute_residuals(problem, free))
    # rows and their factors give the same answer where both count errors alike, and of factors
    # alone nothing is better than what was asked for; what a model lacks besides noise is no
    # reason to believe the file more
    asked = bars if bars.covariance == BLOCKS or not problem.at_hand else ErrorBars()
    chosen = choose_covariance(scores, asked)
    counted = ErrorBars("hac" if chosen == CLUSTERED else chosen)
    kappa = float(np.sqrt(measure_variance_inflation(scores, system, counted)))
    if knowledge.prior_weight == HELD_OUT:
        knowledge = choose_prior_weight(problem, knowledge, sigma, kappa)
    admit = partial(build_feasible_set, problem.base, system, knowledge, kappa)
    gyrations = knowledge.gyrations(problem.robot)
    if knowledge.gyration == FROM_FILE:
        admitted, near, gyrations = lower_gyrations(admit, system, gyrations)
    else:
        admitted, near = admit(gyrations), None
    return ConstrainedSetting(
        problem,
        knowledge,
        admitted,
        near,
        gyrations,
        sigma,
        rounds,
        system,
        bootstrap,
        bars,
        engine,
    )


def measure_variance_inflation(scores: EstimateScores, system: System, bars: ErrorBars) -> float:
    """By how much the variance of least squares exceeds that of as many white rows, at least 1.

    The mean over the directions of beta that the rows see, ``tr(A C A^T) / p``, with the
    covariance C that the residuals tell. Slow errors count where the motion is slow, and hardly
    where it is fast.
    """
    # with the gain 1 this is S itself, and tr(A C A^T) is that of inverse^T S inverse
    total = estimate_covariance(scores, np.eye(system.A.shape[1]), bars).matrix
    inverse = system.inverse()
    return max(1.0, float(np.sum(inverse * (total @ inverse))) / system.condition()[1])


def pc_idim_ls(
    problem: Problem,
    knowledge: Knowledge = Knowledge(),
    bootstrap: Bootstrap = Bootstrap(),
    bars: ErrorBars = ErrorBars(),
    reweighting: Reweighting = Reweighting(),
    engine: Engine = HERE,
) -> Estimate:
    """Weighted least squares over the admitted parameters (ardiani2024, eq. 19 and 20).

    Parameters
    ----------
    knowledge : Knowledge
        Consistency, constraints and prior; by default every link consistent, Ia, fv, fc
        positive, and the robot file's inertials as a weak prior where it has any.
    engine : Engine
        What solves the replicates of the bootstrap.

    Raises
    ------
    InputError
        When the file has no inertials for the prior, or a constraint does not fit the robot.
    ComputationError
        When no certified consistent answer was reached.
    """
    given = build_constrained_setting(
        problem, knowledge, bootstrap, bars, reweighting=reweighting, engine=engine
    )
    point = given.solve()
    system, steps = given.system, point.solution.iterations
    message = f"solved; sigma settled in {given.rounds} rounds"
    found = ConstrainedFit(
        problem, system, given.sigma, compute_literature_std(system), message, steps
    )
    return finish_constrained_estimate(given, point, found)


def pc_idim_ls_roughly(
    problem: Problem,
    start: Array | None = None,
    knowledge: Knowledge = Knowledge(),
    reweighting: Reweighting = Reweighting(),
) -> RoughEstimate:
    """What `pc_idim_ls` estimates, without its error bars and tests.

    `start`: sigmas to begin with, shape (groups,).
    """
    given = build_constrained_setting(
        problem, knowledge, Bootstrap(), ErrorBars(), start, reweighting
    )
    point = given.solve()
    return RoughEstimate(point.beta, point.theta, given.sigma)


def pc_idim_iv(
    problem: Problem,
    simulation: Simulation,
    knowledge: Knowledge = Knowledge(),
    search: IterationOptions = IterationOptions(),
    bootstrap: Bootstrap = Bootstrap(),
    bars: ErrorBars = ErrorBars(),
    engine: Engine = HERE,
) -> Estimate:
    """Constrained instrumental variables (ardiani2024, section III-I).

    An outer IV iteration, and inside it ``min ||R_ZX beta - r_Zy||^2``, eq. 28, over the
    admitted parameters.

    Parameters
    ----------
    knowledge : Knowledge
        As of `pc_idim_ls`; consistency "base" without a prior is the paper's own, eq. 27.
    engine : Engine
        As of `pc_idim_ls`.

    Raises
    ------
    InputError
        As `pc_idim_ls`, and when a log has no reference or the controller does not fit.
    ComputationError
        When no certified consistent answer was reached, the loop cannot be simulated, or
        the iterations do not settle.
    """
    given = build_constrained_setting(problem, knowledge, bootstrap, bars, engine=engine)
    inner, auxiliary = given.inner(), build_auxiliary_model(problem, simulation)
    step = make_iv_step(auxiliary, False, inner)
    start = choose_constrained_start(given, auxiliary)
    settled = iterate_until_settled(auxiliary, start, search, step, IV_ADVICE)
    message = f"instruments settled in {settled.simulations} simulations"
    estimate = finish_constrained_iv(
        given, inner.point, settled, message, settled.simulations, alike=True
    )
    assert estimate.singular_values is not None
    return add_iteration_history(estimate, auxiliary, settled.history, estimate.singular_values)


def pc_ref_iv(
    problem: Problem,
    knowledge: Knowledge = Knowledge(),
    bootstrap: Bootstrap = Bootstrap(),
    bars: ErrorBars = ErrorBars(),
    engine: Engine = HERE,
) -> Estimate:
    """Constrained instrumental variables from the references that the logs hold.

    ``min ||R_ZX beta - r_Zy||^2`` (ardiani2024, eq. 28) over the admitted parameters, with the
    instruments of `ref_iv`.

    Raises
    ------
    InputError
        As `pc_idim_ls`, and when a log has no reference.
    ComputationError
        When no certified consistent answer was reached.
    """
    given = build_constrained_setting(problem, knowledge, bootstrap, bars, engine=engine)
    inner = given.inner()
    found = solve_with_references(problem, inner)
    estimate = finish_constrained_iv(
        given, inner.point, found, describe_reference_origin(problem), 1, alike=False
    )
    return replace(estimate, warnings=(*estimate.warnings, *warn_of_weak_reference(problem, found)))


def finish_constrained_iv(
    given: ConstrainedSetting,
    point: FeasiblePoint,
    last: Stepped,
    message: str,
    iterations: int,
    *,
    alike: bool,
) -> Estimate:
    """A constrained answer of instruments, with their tests."""
    system = last.rows.instrument_factors.weighted(last.sigma)
    std = instrument_std(system, alike=alike)
    found = ConstrainedFit(
        last.rows, system.projected, last.sigma, std, message, iterations, system.Pi
    )
    return assess_instruments(finish_constrained_estimate(given, point, found), last, alike=alike)


def pc_didim(
    problem: Problem,
    simulation: Simulation,
    knowledge: Knowledge = Knowledge(),
    search: IterationOptions = IterationOptions(),
    bootstrap: Bootstrap = Bootstrap(),
    bars: ErrorBars = ErrorBars(),
    engine: Engine = HERE,
) -> Estimate:
    """Constrained DIDIM: ``min ||Z beta - y||^2`` along the simulated motion, iterated.

    Parameters and errors as `pc_idim_iv`.
    """
    given = build_constrained_setting(problem, knowledge, bootstrap, bars, engine=engine)
    inner, auxiliary = given.inner(), build_auxiliary_model(problem, simulation)
    start = choose_constrained_start(given, auxiliary)
    settled = iterate_until_settled(auxiliary, start, search, make_didim_step(inner), DIDIM_ADVICE)
    system = settled.rows.factors.weighted(settled.sigma)
    message = f"settled in {settled.simulations} simulations"
    std = compute_literature_std(system)
    found = ConstrainedFit(settled.rows, system, settled.sigma, std, message, settled.simulations)
    estimate = finish_constrained_estimate(given, inner.point, found)
    singular_values = settled.rows.factors.singular_values()
    return add_iteration_history(estimate, auxiliary, settled.history, singular_values)


def pc_clie(
    problem: Problem,
    simulation: Simulation,
    knowledge: Knowledge = Knowledge(),
    bootstrap: Bootstrap = Bootstrap(),
    bars: ErrorBars = ErrorBars(),
    progress: Progress = ignore_progress,
    descent: OutputDescent = OutputDescent(),
    engine: Engine = HERE,
) -> Estimate:
    """Constrained closed-loop input error, each step a cone problem.

    Parameters and errors as `pc_idim_iv`.
    """
    given = build_constrained_setting(problem, knowledge, bootstrap, bars, engine=engine)
    inner, auxiliary = given.inner(), build_auxiliary_model(problem, simulation)
    start = choose_constrained_start(given, auxiliary)
    linear, last, history = minimise_output_error(
        auxiliary, start, TORQUE, inner, progress, descent=descent
    )
    factors = linear.factors
    # constraints that the data contradict make errors larger, and no noise
    sigma = measure_error_sigma(linear, factors.weighted(last.sigma).solve())
    system = factors.weighted(sigma)
    # the last step was damped; without it the multipliers are those of the criterion
    inner(system)
    std = compute_literature_std(system)
    found = ConstrainedFit(linear, system, sigma, std, last.message, last.iterations)
    estimate = finish_constrained_estimate(given, inner.point, found)
    return add_iteration_history(estimate, auxiliary, history, factors.singular_values())


def choose_constrained_start(given: ConstrainedSetting, auxiliary: AuxiliaryModel) -> Array:
    """Where iterations start: the admitted least-squares estimate, or what was asked for."""
    if auxiliary.simulation.start == "least-squares":
        return given.solve().beta
    return choose_start_values(given.problem, auxiliary.simulation.start)


def add_iteration_history(
    estimate: Estimate, auxiliary: AuxiliaryModel, history: Array, singular_values: Array
) -> Estimate:
    """An estimate with what belongs to iterations over simulations."""
    warnings = (*auxiliary.simulation.warnings, *estimate.warnings)
    return replace(estimate, history=history, singular_values=singular_values, warnings=warnings)


@dataclass(frozen=True)
class ConstrainedFit:
    """The last linear problem of a constrained method."""

    rows: Regression
    """Whose scores, those of its instruments where it has any, are zero at a free answer."""
    system: System
    """``||A beta - b||^2`` of them."""
    sigma: Array
    literature: Array
    """Standard deviations of the literature's formula, shape (base parameters,)."""
    message: str
    iterations: int
    Pi: Array | None = None
    """``(Z^T Z)^-1 Z^T X`` of instruments."""
    weights: Array | None = None
    """What the rows were divided by, where that is not sigma, shape (groups,)."""
    gap: Array | None = None
    """Scaled unknowns less those of the optimum, where it is known to be missed: error bars count
    it as a standard deviation."""


def compute_covariance_on_faces(
    given: ConstrainedSetting,
    point: FeasiblePoint,
    scores: EstimateScores,
    Pi: Array | None,
    moved: Array,
) -> Spread:
    """The covariance on the faces of the active constraints, the prior's own share included.

    Of what moves by ``moved A^T db``: of `differentiate_estimate` the scaled unknowns, as of
    `bootstrap_spread`, of which base parameters are combinations.
    """
    admitted = given.admitted
    gain = moved @ admitted.space.matrix.T
    if Pi is not None:
        gain = gain @ Pi.T
    spread = estimate_covariance(scores, gain, given.bars)
    pull = admitted.kappa * moved @ point.A[point.data :].T
    return replace(spread, matrix=spread.matrix + pull @ pull.T)


def bootstrap_spread(
    given: ConstrainedSetting, point: FeasiblePoint, found: ConstrainedFit, scores: EstimateScores
) -> Spread:
    """The covariance of the scaled unknowns over replicates of the cone problem."""
    redraw, words = make_score_redraw(scores, given.bars, found.Pi)
    rows = found.rows.factors.rows
    return Spread(
        words,
        bootstrap_covariance(
            given.admitted, point, found.system, redraw, rows, given.bootstrap, given.engine
        ),
    )


def finish_constrained_estimate(
    given: ConstrainedSetting, point: FeasiblePoint, found: ConstrainedFit
) -> Estimate:
    """Residuals, covariance, certificate and restriction of a constrained answer."""
    problem, admitted, system = given.problem, given.admitted, found.system
    if point.theta is not None:
        require_consistent(problem.base, point.theta, given.knowledge.consistency)
    errors = compute_residuals(found.rows, point.beta)
    faces = point.solution.visible(admitted.cones, VISIBLE)
    active = list_active_constraints(admitted.cones, faces)
    weights = found.sigma if found.weights is None else found.weights
    scores = EstimateScores(found.rows, point.beta, weights, found.sigma, errors)
    kind = "constrained" if admitted.prior.empty else "posterior"
    moved = differentiate_estimate(admitted, point, faces)
    spread = compute_covariance_on_faces(given, point, scores, found.Pi, moved)
    if found.gap is not None:
        spread = replace(spread, matrix=spread.matrix + np.outer(found.gap, found.gap))
    reach = Reach(spread.matrix)
    if active:
        released = release_constraints(admitted, point, faces)
        if released is not None:
            own = compute_covariance_on_faces(given, point, scores, found.Pi, released.gain)
            reach = Reach(spread.matrix, released, own.matrix)
        if given.bootstrap.bootstrap:
            kind += (
                f", bootstrap of the cone problem, {given.bootstrap.bootstrap} replicates "
                f"({len(active)} active constraints)"
            )
            spread = bootstrap_spread(given, point, found, scores)
        else:
            kind += f" on the faces of {len(active)} active constraints"
    matrix = admitted.space.matrix @ spread.matrix @ admitted.space.matrix.T
    spread = replace(spread, matrix=matrix)
    warnings = []
    condition, rank, _ = system.condition()
    if condition > UNEXCITED:
        weakest = describe_weak_combination(problem, system)
        warnings.append(
            f"the log does not excite {weakest} (condition {condition:.1e}, rank {rank} of "
            f"{problem.base.count}); those values rest on the prior and the constraints"
        )
    proof = point.solution.certificate
    active_words = judge_active_constraints(admitted, point, faces)
    if active_words is not None and active_words.rejected:
        warnings.append(active_words.verdict)
    return Estimate(
        point.beta,
        point.theta,
        found.sigma,
        name_covariance(kind, spread, found.literature),
        errors,
        found.iterations,
        found.message,
        certificate=proof,
        active=active,
        prior=admitted.prior.words,
        restriction=active_words,
        warnings=tuple(warnings),
        informed=measure_information_share(admitted, point),
        informed_base=measure_base_share(admitted, point),
        disbelieved=find_disbelieved_bodies(admitted, point),
        knowledge=given.knowledge.state_gyrations(given.gyrations),
        gyrations=given.gyrations,
        standard_errors=derive_standard_errors(admitted, point, reach),
        intervals=measure_intervals(admitted, point, faces, reach),
    )
