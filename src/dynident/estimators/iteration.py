"""Simulate, estimate, and again: the iteration of all methods that simulate the loop.

Where it starts, how it goes on where an estimate cannot be simulated, and when it has settled
(ardiani2024, section III-I and eq. 46).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Annotated, Literal

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError, RolloutError, refuse_unknown
from dynident.core.factors import Factors
from dynident.core.options import Options
from dynident.core.schema import Flag, Rounds, Tolerance
from dynident.dynamics.structure import ROTOR
from dynident.estimators.closed_loop import AuxiliaryModel
from dynident.regression.problem import Problem, Regression
from dynident.regression.weighted import solve_wls

ITERATIONS = 30
CONVERGED = 1e-2
"""tol_beta of eq. (46), relative to the value or, where it is larger, its sigma."""
HALVINGS = 10
STRAY = 2.0
"""Over the last estimate's misses of the torques, those beyond which a new one's loop is lost."""
PLAIN = 0.25
"""Share of the log's torques up to which misses are as good as none, there."""

Settles = Annotated[
    Tolerance,
    "change of a parameter at which the iteration stops, relative to its value or, if "
    "larger, its sigma",
]
"""An option of methods that simulate."""

Scale = Callable[[Array], Array | None]
"""Factors on the simulated gains under an estimate."""


@dataclass(frozen=True)
class IterationOptions(Options):
    """How iterations over simulations go on."""

    tolerance: Settles = CONVERGED
    simulations: Annotated[Rounds, "most simulations before the iteration is given up"] = ITERATIONS
    gain_update: Annotated[
        Flag,
        "scale the controller's gains so that the simulated loop keeps its bandwidth while "
        "the estimated inertia changes",
    ] = False


@dataclass(frozen=True)
class Weighting(Options):
    """How the rows of the joints count against each other."""

    weights: Annotated[
        Literal["sigma", "none"],
        "weights of the joints' rows: one over their sigma, or all equal, as in the formulas of "
        "the literature",
    ] = "sigma"

    def weigh(self, sigma: Array) -> Array:
        """The sigmas that weight the rows of groups that have these."""
        return sigma if self.weights == "sigma" else np.ones_like(sigma)


def make_gain_scale(auxiliary: AuxiliaryModel, update: bool) -> Scale:
    """Gains scaled with the estimated inertia, so that the loop keeps its bandwidth.

    ``J(beta) / J(beta_LS)`` joint by joint (Gautier, Janot and Vandanjon 2013), which is one
    where the iterations end; or no factors at all.
    """
    if not update:
        return lambda beta: None
    reference = auxiliary.inertia(solve_wls(auxiliary.problem.factors)[0])
    return lambda beta: auxiliary.inertia(beta) / reference


@dataclass(frozen=True)
class Stepped:
    """What a method makes of one simulation."""

    rows: Regression
    """That it fitted."""
    beta: Array
    sigma: Array
    std: Array
    """By which a change is judged, shape (base parameters,)."""
    weights: Array | None = field(default=None, kw_only=True)
    """The sigmas that weighted the rows, where they are not those of the errors, shape
    (groups,)."""

    @property
    def used(self) -> Array:
        """The sigmas that weighted the rows."""
        return self.sigma if self.weights is None else self.weights


def take_simulated_rows(simulated: Regression) -> Regression:
    """Rows ``[Z | y]`` along the simulated motion as they are: what DIDIM fits."""
    return simulated


@dataclass(frozen=True)
class MethodStep:
    """A method: from one simulation to the next estimate."""

    solve: Callable[[Regression, Array], Stepped]
    """From the rows that it fits and the last sigmas."""
    rows: Callable[[Regression], Regression] = take_simulated_rows
    """What it fits, of rows ``[Z | y]`` along the simulated motion: these themselves unless they
    are its instruments."""


@dataclass(frozen=True)
class Settled(Stepped):
    """The last step of an iteration."""

    history: Array
    """Shape (simulations + 1, base parameters)."""

    @property
    def simulations(self) -> int:
        """How many it took."""
        return len(self.history) - 1


def simulate_and_step(
    auxiliary: AuxiliaryModel, start: Array, scale: Scale, step: MethodStep
) -> Iterator[IterationRound]:
    """Simulate an estimate and step on from it, for ever.

    An estimate that cannot be simulated is approached from the last one that could: mass
    matrices are linear in beta and the positive definite ones are a convex set, so that half
    way back is nearer. So is one whose loop the law does not hold, though its motion is bounded:
    a regression along that would tell of the law's oscillation, and the next one of less.
    """
    beta = simulatable = start
    sigma, missed = auxiliary.problem.factors.ones, np.full(len(auxiliary.problem.groups), np.inf)
    for iteration in count(1):
        try:
            rows, halvings = simulate_towards_estimate(
                auxiliary, simulatable, beta, scale, missed, step.rows
            )
        except RolloutError as error:
            raise explain_failed_rollout(error, iteration, auxiliary.simulation.start) from error
        simulatable = simulatable + 0.5**halvings * (beta - simulatable)
        missed = compress_simulated_rows(rows).squared_residuals(simulatable)
        stepped = step.solve(rows, sigma)
        yield IterationRound(stepped, beta, simulatable, whole=halvings == 0)
        beta, sigma = stepped.beta, stepped.sigma


@dataclass(frozen=True)
class IterationRound:
    """One round of `simulate_and_step`."""

    stepped: Stepped
    old: Array
    """The estimate before it, shape (base parameters,)."""
    simulated: Array
    """What was simulated, shape (base parameters,)."""
    whole: bool
    """Whether that is the estimate itself."""


def iterate_until_settled(
    auxiliary: AuxiliaryModel, start: Array, search: IterationOptions, step: MethodStep, advice: str
) -> Settled:
    """Simulate and step until eq. (46) of ardiani2024 holds.

    `advice`: what to try where it does not settle.
    """
    scale = make_gain_scale(auxiliary, search.gain_update)
    history = [start]
    for moved in islice(simulate_and_step(auxiliary, start, scale, step), search.simulations):
        new = moved.stepped
        history.append(new.beta)
        if moved.whole and has_converged(new.beta, moved.old, new.std, search.tolerance):
            found = np.array(history)
            return Settled(new.rows, new.beta, new.sigma, new.std, found, weights=new.weights)
    raise ComputationError(
        f"the estimate did not settle in {search.simulations} simulations; {advice}"
    )


def choose_start_values(problem: Problem, start: str | Mapping[str, float]) -> Array:
    """Base parameters that the iterations start from."""
    base = problem.base
    if not isinstance(start, str):
        beta = np.zeros(base.count)
        for name, value in start.items():
            refuse_unknown(name, base.names, f"start: {name!r} is not a base parameter")
            beta[base.names.index(name)] = value
        return beta
    if start == "least-squares":
        return solve_wls(problem.factors)[0]
    parameters = problem.idim.parameters
    if start == "nominal":
        return np.asarray(base.matrix @ fit_nominal_drives(problem))
    # one unit at every drive: Ia5 = 2 in brunot2019 is Ia5 and Iam6
    rotors = [1.0 if p.symbol in (ROTOR, f"{ROTOR}m") else 0.0 for p in parameters]
    return np.asarray(base.matrix @ np.array(rotors))


def fit_nominal_drives(problem: Problem) -> Array:
    """The file's inertials, with the drives' parameters that then fit the log best.

    Robot files know no rotors, without which a stiff loop need not be stable; those and the
    friction are fitted by least squares, bounded to positive values.
    """
    from scipy import optimize  # a quarter of a second that few runs need

    idim, base = problem.idim, problem.base
    if not problem.robot.has_nominal:
        raise InputError(f"{problem.robot.name}: start 'nominal', but its file has no inertials")
    theta = idim.nominal
    if idim.drives:
        system = problem.factors.weighted(solve_wls(problem.factors)[1])
        columns = system.A @ base.matrix
        lower = np.array([0.0 if p.positive else -np.inf for p in idim.drives])
        fit = optimize.lsq_linear(
            columns[:, idim.inertial :],
            system.b - columns @ theta,
            bounds=(lower, np.full(len(idim.drives), np.inf)),
        )
        theta[idim.inertial :] = fit.x
    return theta


def has_converged(new: Array, old: Array, std: Array, tolerance: float) -> bool:
    """Convergence by ardiani2024, eq. (46), where a parameter may also be zero within noise.

    ``|new - old| < tolerance max(|new|, std)`` for every parameter: eq. (46) alone would wait
    for the last digit of values that are zero.
    """
    return bool(np.all(np.abs(new - old) < tolerance * np.maximum(np.abs(new), std)))


def simulate_towards_estimate(
    auxiliary: AuxiliaryModel,
    old: Array,
    new: Array,
    scale: Callable[[Array], Array | None] = lambda beta: None,
    missed: Array | None = None,
    rows: Callable[[Regression], Regression] = take_simulated_rows,
) -> tuple[Regression, int]:
    """The auxiliary model at a new estimate, or on the way to it as far as it can be simulated.

    Where all the way back no torque is near the log's, as with friction that makes motions
    chaotic, the new estimate is taken.

    Parameters
    ----------
    missed : ndarray, shape (groups,), optional
        Squared misses of the torques at the old one, by which a new one's are judged.
    rows : callable
        That of a `MethodStep`.

    Returns
    -------
    rows : Regression
        Of the step.
    halvings : int
        How often the step was halved; 0 at the new estimate itself.
    """
    stray: tuple[Regression, int] | None = None
    for halvings in range(HALVINGS + 1):
        beta = old + 0.5**halvings * (new - old)
        try:
            found = rows(auxiliary.simulated(beta, scale(beta)))
        except RolloutError:
            if stray is None and (halvings == HALVINGS or np.array_equal(old, new)):
                raise
            continue
        if missed is None or not is_astray(compress_simulated_rows(found), beta, missed):
            return found, halvings
        stray = stray or (found, halvings)
    assert stray is not None  # else the last of the rollouts has raised
    return stray


def compress_simulated_rows(rows: Regression) -> Factors:
    """Factors of ``[Z | y]`` along the simulated motion, which may be the first instruments."""
    if not rows.instrumented:
        return rows.factors
    kept = [*range(rows.base.count), -1]
    return Factors(tuple(group.select(kept) for group in rows.instrument_factors.groups))


def is_astray(factors: Factors, beta: Array, missed: Array) -> bool:
    """Whether simulated torques are much further from the log's than those of the last estimate.

    Of each group by the last one's miss or by `PLAIN` of the log's own torque, whichever is larger;
    the mean square of these.
    """
    largest = np.maximum(missed, PLAIN**2 * factors.squared_torques + np.finfo(float).tiny)
    return bool(np.mean(factors.squared_residuals(beta) / largest) > STRAY**2)


def explain_failed_rollout(error: RolloutError, iteration: int, start: object) -> ComputationError:
    """A failed rollout as the failure of an estimator."""
    if iteration == 1:
        return ComputationError(f"{error}; it was simulated with start = {start!r}: try another")
    return ComputationError(
        f"iteration {iteration}: {error}; the estimate before it cannot be simulated. Try another "
        "start, fewer parameters, or a constrained method"
    )
