"""A load on a link, from a log with it and a model without it.

On the loaded log ``y = X (beta + M phi + N d) + e``: phi are the load's ten inertial parameters,
which act as the link's own do, M their columns of the regrouping, and d what else may have
changed: offsets and friction of the drives. The model's beta is known with a covariance C, whose
error is the same at every sample. With the loaded log's factor ``[A b]`` all of it is
``r = b - A beta_hat = A (M phi + N d) + A (beta - beta_hat) + e``, of as many rows as there are
base parameters: what a fit of both logs at once says, for C stands for the factor of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field

from dynident.consistency.bootstrap import Count
from dynident.consistency.one_body import NearestBody, find_least_body, find_nearest_body
from dynident.consistency.space import LENGTH
from dynident.core.arrays import Array, Integers
from dynident.core.errors import ComputationError, InputError
from dynident.core.inertia import (
    PSEUDO_INERTIA_BASIS,
    to_inertia_matrix,
    to_inertial_parameters,
    to_pseudo_inertia,
)
from dynident.core.options import Options, refuse_negative, refuse_nonpositive
from dynident.core.schema import Name, Number, make_choice_validator
from dynident.core.threads import limit_to_one_thread
from dynident.estimators.covariance import ErrorBars, EstimateScores, estimate_covariance
from dynident.recording.prepare import Samples
from dynident.regression.blocks import factor_parts
from dynident.regression.problem import Problem
from dynident.regression.statistics import (
    TestResult,
    build_chi2_result,
    compute_residuals,
    compute_wald_statistic,
    estimate_long_run_ratio,
    is_whiteness_rejected,
)
from dynident.regression.weighted import solve_wls
from dynident.robot.model import Robot

DRIFTS = {"off": "offsets", "fc": "Coulomb friction", "fv": "viscous friction"}
"""What of the drives may have changed beside the load, by symbol."""
UNLOADED = 0.01
"""Significance of the test that there is a load."""
NO_LOAD = "there is no load"
"""The null hypothesis of that test."""
CLEARLY = 2.0
"""Standard deviations by which the mass of a load is above zero."""
DRIFTED = 1e-3
"""Of the tests that drives have changed, over all of `DRIFTS` (Bonferroni). Where rows are
correlated tests reject more often than they say, and what changes is far beyond either."""
LOOSE = 1e-4
"""Of the test that the load has moved, likewise."""
WINDOWS, SIDES = 4, 2
"""Parts of a log, by time and by the direction of gravity, in which a load is the same."""
UNTOLD = 30.0
"""Standard deviation of a load of which nothing is told, in its own mass and `LENGTH`."""
SIZES = np.array([1.0] + [LENGTH] * 3 + [LENGTH**2] * 6)
"""Of a kilogram."""
LEAST_MASS = 0.05
"""Unit of a load that seems to have none [kg]."""
DRAWS = 2000
"""Of the intervals: their ends within a twentieth of a standard deviation."""
BAND = (0.025, 0.975)
STEPS, SETTLED = 50, 1e-9
ROUNDS, CLOSE = 30, 1e-2
"""In which friction under the load settles; by a share of the load's standard deviations."""
TURNS = 2
"""In which the centre of the last body settles."""
PLACES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
"""Of an inertia, the last six that `to_central_inertia` has."""
INERTIA = 4
"""Of these the first one's place there."""
KNOWN = 1e-4
"""Of a mass that is known."""
DOUBTED = 0.5
"""Share of a model's covariance that weights leave aside: it is an estimate, too, and where it errs
towards certainty weights that believe it would go."""
TOLD = 1e-9
"""Eigenvalue of a correlation of which something is told."""
GAIN_STD = 0.5
"""Of drive gains about one, before the log tells more."""
LIKE_FILE = 0.03
"""Logarithm of a gain that is no more than the file's own error."""
BY_CURRENT = 0.1
"""Of gains by which currents are torques: constants of catalogues, their change with temperature,
gears. Known loads told 1.15 and 1.21 of a UR10e, and 1.02 to 1.20 of its joints."""
HEAVIEST = 1e6
"""Of a known load [kg]."""
IN_ALL, PER_JOINT = "all", "joint"
"""Which gains a known load tells."""


@dataclass(frozen=True)
class LoadOptions(Options):
    """What is known of a load, and what is to be told of it."""

    mass: Annotated[
        Annotated[Number, AfterValidator(refuse_nonpositive), Field(lt=HEAVIEST)] | None,
        "mass of the load, if known: then the drives' gains are estimated [kg]",
    ] = None
    gains: Annotated[
        Annotated[Name, make_choice_validator((IN_ALL, PER_JOINT))],
        "for a known `mass`: one common gain, or one per joint",
    ] = IN_ALL
    gain_error: Annotated[
        Annotated[Number, AfterValidator(refuse_negative), Field(lt=1.0)] | None,
        "relative standard deviation of the drives' gains that the intervals include; by default "
        "the difference of the robot file and the model without the load, at least 0.1 for "
        "drives with a stated gain",
    ] = None
    seed: Annotated[Count, "seed of the draws from which the intervals are computed"] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gains != IN_ALL and self.mass is None:
            raise InputError("gains are estimated from a load of known mass; give the mass")


@dataclass(frozen=True)
class TorqueGains:
    """Torque per told torque, from a mass that is known."""

    names: tuple[str, ...]
    """Joints; one alone, "all", where the gain is one in all."""
    values: Array
    std: Array


@dataclass(frozen=True)
class Load:
    """A load's inertial parameters about the link's joint frame."""

    link: str
    phi: Array
    """Physically consistent, shape (10,)."""
    draws: Array
    """Shape (draws, 10). From their distribution, cut to consistent bodies: what intervals are
    of."""
    free: Array
    """Without the cone, shape (10,)."""
    covariance: Array
    """Of `free`, shape (10, 10)."""
    drifted: tuple[str, ...]
    """What of the drives has changed beside, in words."""
    tests: tuple[TestResult, ...]
    nearest: NearestBody
    """By the torques alone, with its certificate."""
    gains: TorqueGains | None
    moved: str | None
    """How the load moved, where it did."""
    warnings: tuple[str, ...]

    @property
    def seen(self) -> bool:
        """Whether there is a load: the log differs from one without, by a mass above zero."""
        absent = next(test for test in self.tests if test.null == NO_LOAD)
        return absent.p_value <= UNLOADED and bool(
            self.free[0] > CLEARLY * np.sqrt(self.covariance[0, 0])
        )


@dataclass(frozen=True)
class TorqueRemainder:
    """What a log leaves of a model's torque, in as few rows as it has base parameters."""

    A: Array
    """Shape (rows, base parameters)."""
    r: Array
    """``b - A beta_hat``, shape (rows,)."""
    V: Array
    """Shape (rows, rows). Covariance of r that weighs it: of the model
    (`discount_model_covariance`), and of errors as few as are independent."""
    noise: Array
    """Covariance of the errors alone, as their correlation has it, shape (rows, rows)."""
    model: Array
    """Of the model's share, shape (rows, rows)."""


def subtract_unloaded_model(
    problem: Problem, beta: Array, covariance: Array
) -> tuple[TorqueRemainder, Array, float]:
    """What the rows of a loaded log leave; their sigmas, and the square root of kappa.

    Parameters
    ----------
    problem : Problem
        The model on the loaded log.
    beta : ndarray, shape (base parameters,)
        Without the load, in SI units.
    covariance : ndarray, shape (base parameters, base parameters)

    Returns
    -------
    rest : TorqueRemainder
    sigma : ndarray, shape (groups,)
        Standard deviation of each group's error [Nm or N].
    root : float
        Of kappa, by which correlation inflates the variance of an average: at least 1.
    """
    factors = problem.factors
    free, sigma, _ = solve_wls(factors)
    errors = compute_residuals(problem, free)
    kappa = (
        np.sqrt(estimate_long_run_ratio(errors.error))
        if is_whiteness_rejected(errors.error)
        else 1.0
    )
    system = factors.weighted(sigma)
    scores = EstimateScores(problem, free, sigma, sigma, errors)
    total = estimate_covariance(
        scores, np.eye(problem.base.count), ErrorBars(), white="robust"
    ).matrix
    inverse = system.inverse()
    # scores are A^T times the errors of the compressed rows
    noise = inverse.T @ total @ inverse
    # where motion and errors are slow alike the fit has taken part of these away: in the mean
    # they are no smaller than all frequencies together tell
    noise *= max(1.0, kappa**2 * len(noise) / float(np.trace(noise)))
    model = system.A @ covariance @ system.A.T
    V = discount_model_covariance(system.A, covariance) + kappa**2 * np.eye(len(model))
    return (
        TorqueRemainder(system.A, system.b - system.A @ beta, V, noise, model),
        sigma,
        float(kappa),
    )


def discount_model_covariance(A: Array, covariance: Array) -> Array:
    """Covariance of the model's share ``A (beta - beta_hat)`` that weighs, not believed altogether.

    Half of it is what the loaded log itself would leave of the model, of the same size; and all,
    where the model's covariance is of fewer replicates than parameters and has directions without
    any variance. What a fit with such weights errs is told by the covariance itself, without bias,
    for they hardly depend on how it errs.

    `A`, shape (rows, base parameters): weighted rows of the loaded log. `covariance`, shape (base
    parameters, base parameters).
    """
    model = A @ covariance @ A.T
    variance = np.diag(covariance)
    std = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    values = np.linalg.eigvalsh(covariance / np.outer(std, std))
    untold = int(np.sum(variance > 0.0)) - int(np.sum(values > TOLD * len(values)))
    share = 1.0 if untold > 0 else DOUBTED
    size = float(np.trace(model)) / len(model)
    return np.asarray((1.0 - share) * model + share * size * np.eye(len(model)))


@dataclass(frozen=True)
class RestFit:
    """A fit of a rest: values, covariance, and what whitens it."""

    x: Array
    """Shape (columns,)."""
    covariance: Array
    """Shape (columns, columns)."""
    rows: Array
    target: Array
    """`rows`, `target`: whitened, the slight belief in the load's size included."""


def fit_load_columns(rest: TorqueRemainder, columns: Array, slight: Array) -> RestFit:
    """Weighted least squares of a rest, with the covariance of what its errors are.

    `columns`, shape (base parameters, k): what each unknown adds to beta. `slight`, shape (k,):
    standard deviations of the unknowns beforehand, infinite where nothing is said.
    """
    L = np.linalg.cholesky(rest.V)
    rows = np.linalg.solve(L, rest.A @ columns)
    target = np.linalg.solve(L, rest.r)
    belief = np.diag(1.0 / slight)[np.isfinite(slight)]
    every = np.vstack([rows, belief])
    scale = np.linalg.norm(every, axis=0)
    scale[scale == 0.0] = 1.0  # what acts on nothing where nothing moves
    gain = np.linalg.pinv(every / scale, rcond=1e-10) / scale[:, None]
    own = gain[:, : len(rows)] @ np.linalg.inv(L)
    spread = own @ (rest.model + rest.noise) @ own.T
    rested = gain[:, len(rows) :]
    right = np.concatenate([target, np.zeros(len(belief))])
    return RestFit(gain @ right, spread + rested @ rested.T, every, right)


def run_zero_test(found: RestFit, chosen: Sequence[int], null: str) -> TestResult:
    """Test that some of the unknowns are zero."""
    return build_chi2_result(
        null,
        *compute_wald_statistic(found.x[list(chosen)], found.covariance[np.ix_(chosen, chosen)]),
    )


@limit_to_one_thread
def bear_load(problem: Problem, theta: Array, beta: Array, covariance: Array, link: str) -> Problem:
    """The model on a loaded log, its friction under what bodies and the load make drives bear.

    Friction that depends on loads has the columns of the bodies that it bears, the load among them:
    that is found, and found again under what it adds, until it stays.

    Parameters
    ----------
    problem : Problem
        The model on the loaded log.
    theta : ndarray, shape (parameters without shapes,)
        Full set without the load.
    beta, covariance, link
        As `identify_load` has them.

    Raises
    ------
    ComputationError
        Where it does not stay.
    """
    if not problem.idim.loaded:
        return problem
    body = problem.robot.links.index(link)
    place = slice(10 * body, 10 * body + 10)
    own, load = problem.base.matrix[:, place], np.zeros(10)
    for _ in range(ROUNDS):
        rest, _, _ = subtract_unloaded_model(problem, beta, covariance)
        found = fit_load_columns(rest, own, UNTOLD * SIZES)
        if np.all(np.abs(found.x - load) <= CLOSE * np.sqrt(np.diag(found.covariance))):
            return problem
        load, borne = found.x, theta.copy()
        borne[place] += load
        problem = problem.with_known_loads(borne)
    raise ComputationError(
        f"{problem.samples[0].name}: friction under the load did not settle in {ROUNDS} rounds; "
        "record more, or take a result with friction that does not depend on loads"
    )


@limit_to_one_thread
def identify_load(
    problem: Problem,
    beta: Array,
    covariance: Array,
    link: str,
    loading: LoadOptions = LoadOptions(),
) -> Load:
    """The load on a link of a known model.

    Parameters
    ----------
    problem : Problem
        The model on the loaded log.
    beta : ndarray, shape (base parameters,)
        Base parameters without the load, in SI units.
    covariance : ndarray, shape (base parameters, base parameters)
    link : str
        The moving link that carries it.
    """
    base, robot, mass = problem.base, problem.robot, loading.mass
    if robot.floating:
        raise InputError(
            f"{robot.name}: payload takes robots on fixed bases; dynident track --link follows a "
            "load on a floating one"
        )
    body = robot.links.index(link)
    own = base.matrix[:, 10 * body : 10 * body + 10]
    if not np.any(own):
        raise ComputationError(f"no torque shows a load on {link}")
    rest, sigma, kappa = subtract_unloaded_model(problem, beta, covariance)
    known = UnloadedModel(problem, beta, covariance, sigma, kappa)
    # the size of the load sets the scale of what is believed of it
    first = fit_load_columns(rest, own, UNTOLD * SIZES)
    unit = max(abs(float(first.x[0])), LEAST_MASS) * SIZES
    chosen, tests, columns, slight = choose_drive_changes(problem, rest, own, unit)
    fit = fit_load_columns(rest, columns, slight)
    tests.append(run_zero_test(fit, range(10), NO_LOAD))
    warnings = warn_of_unseen_load(fit, link, unit, tests[-1].p_value)
    moved, more = find_load_changes(known, own, unit, body, columns[:, 10:])
    gains, scale = None, 1.0
    if mass is not None:
        told = float(fit.x[0])
        if told <= 0.0:
            raise ComputationError(
                f"{problem.samples[0].name}: no gain turns {told:.3g} kg into {mass:g} kg: "
                "is it the log with the load, and is it on that link?"
            )
        if loading.gains == PER_JOINT:
            gains, fit = fit_gains_by_joint(known, own, mass, fit.x[:10])
        else:
            scale = mass / told
            std = scale * np.sqrt(fit.covariance[0, 0]) / told
            gains = TorqueGains(("all",), np.array([scale]), np.array([std]))
    try:
        nearest = find_nearest_body(
            fit.rows, fit.target, fit.x, fit.covariance, unit, DRAWS, loading.seed
        )
    except ComputationError as error:
        if fit.x[0] > 0.0:
            raise
        raise ComputationError(
            f"{problem.samples[0].name}: {link} carries {-float(fit.x[0]):.3g} kg less than in the "
            "model: was that identified with a load, and is this the log without?"
        ) from error
    phi, draws = nearest.phi, nearest.draws
    if mass is None:
        offset, spread, more_words = choose_gain_error(known, rest.A, loading.gain_error)
        warnings += more_words
        normal = np.random.default_rng([loading.seed, 1]).normal(size=(len(draws), 1))
        draws = draws * np.exp(offset + spread * normal)
    else:
        # torques, and with them all of the load, are in one unit that the mass tells
        phi, draws = phi * (mass / phi[0]), draws * (mass / draws[:, :1])
    return Load(
        link, phi, draws, scale * fit.x[:10], scale**2 * fit.covariance[:10, :10],
        tuple(DRIFTS[symbol] for symbol in chosen), (*tests, *more), nearest, gains,
        moved, tuple(warnings),
    )  # fmt: skip


class UnloadedModel(NamedTuple):
    """The model without the load, and what the loaded log's rows leave of it."""

    problem: Problem
    """The model on the loaded log."""
    beta: Array
    """Shape (base parameters,)."""
    covariance: Array
    """Shape (base parameters, base parameters)."""
    sigma: Array
    """Standard deviations of the loaded log's errors [Nm or N], shape (groups,)."""
    kappa: float
    """See `subtract_unloaded_model`."""


def choose_drive_changes(
    problem: Problem, rest: TorqueRemainder, own: Array, unit: Array
) -> tuple[list[str], list[TestResult], Array, Array]:
    """What of the drives has changed beside the load, one kind after another while tests say so.

    Returns `chosen`: symbols of `DRIFTS`. `columns`, `slight`: of the load and of what was chosen;
    see `fit_load_columns`.
    """
    matrix = problem.base.matrix
    drives = {
        symbol: [k for k, p in enumerate(problem.idim.parameters) if p.symbol == symbol]
        for symbol in DRIFTS
    }
    drives = {symbol: places for symbol, places in drives.items() if places}
    chosen: list[str] = []
    tests: list[TestResult] = []
    while True:
        tried = {}
        for symbol in drives.keys() - set(chosen):
            columns, slight = stack_load_columns(matrix, own, unit, drives, [*chosen, symbol])
            fit = fit_load_columns(rest, columns, slight)
            last = range(len(columns.T) - len(drives[symbol]), len(columns.T))
            tried[symbol] = run_zero_test(fit, last, f"{DRIFTS[symbol]} have not changed")
        if not tried:
            break
        worst = min(tried, key=lambda symbol: (tried[symbol].p_value, symbol))
        tests.append(tried[worst])
        if tried[worst].p_value * len(drives) > DRIFTED:
            break
        chosen.append(worst)
    return chosen, tests, *stack_load_columns(matrix, own, unit, drives, chosen)


def warn_of_unseen_load(fit: RestFit, link: str, unit: Array, p_value: float) -> list[str]:
    """Words on a load that the log does not show, or not the whole of it."""
    warnings = []
    if p_value > UNLOADED:
        warnings.append(f"no load is seen on {link}: the log agrees with the model without one")
    elif fit.x[0] <= CLEARLY * (std := float(np.sqrt(fit.covariance[0, 0]))):
        warnings.append(
            f"no load is seen on {link}: the log differs from the model without one, but its mass, "
            f"{fit.x[0]:.3g} +- {std:.2g} kg, is not clearly above zero; if there is a load, name "
            "its link, and turn the wrist to other directions of gravity, and faster"
        )
    if np.any(np.sqrt(np.diag(fit.covariance)[:10]) > 0.3 * UNTOLD * unit):
        warnings.append(
            "the log hardly determines the whole load: turn the wrist to other directions of "
            "gravity, and faster"
        )
    return warnings


def choose_gain_error(
    known: UnloadedModel, A: Array, stated: float | None
) -> tuple[float, float, list[str]]:
    """Mean and standard deviation of the logarithm of the drives' common gain, and a warning.

    A load's mass is in the unit of the torques: what they err in common is in its interval, as far
    as is stated or, where nothing is, as the robot file and the identified model differ. That they
    agree tells little of currents: bodies of a file that err by tens of percent agree in sum, and
    friction that grows with the load is not torque.
    """
    if stated is not None:
        return 0.0, stated, []
    told = measure_gain_by_file(known.problem, A, known.beta)
    half = 0.5 * float(np.log(told))
    by_current = bool(np.any(known.problem.robot.drives.gain != 1.0))
    spread = max(abs(half), BY_CURRENT if by_current else 0.0)
    if abs(half) > 0.5 * LIKE_FILE:
        words = (
            f"by the robot file's inertials true torques are {told:.3g} times the logged ones; the "
            "intervals cover that as well as 1"
        )
    elif by_current:
        words = (
            "torques are computed from currents, by gains that are seldom known to better than "
            f"{100.0 * BY_CURRENT:g} %, which the intervals count"
        )
    else:
        return half, spread, []
    return half, spread, [f"{words}: weigh a known mass (mass), or state gain_error"]


def measure_gain_by_file(problem: Problem, A: Array, beta: Array) -> float:
    """How many times the torque that drives say they give, if the file's bodies are right.

    That is one over how often the file's torque stands in the model's, beside drives of their own;
    1 where the file has no bodies, or none that the log sees.

    `A`, shape (rows, base parameters): weighted rows of the loaded log. `beta`, shape (base
    parameters,): without the load.
    """
    idim, matrix = problem.idim, problem.base.matrix
    if not problem.robot.has_nominal:
        return 1.0
    bodies = np.zeros(len(idim.nominal))
    bodies[: idim.inertial] = idim.nominal[: idim.inertial]
    drives, file, model = A @ matrix[:, idim.inertial :], A @ (matrix @ bodies), A @ beta
    both = np.column_stack([file, model])
    both = both - drives @ np.linalg.lstsq(drives, both, rcond=None)[0]
    square, product = float(both[:, 0] @ both[:, 0]), float(both[:, 0] @ both[:, 1])
    return square / product if product > 0.0 else 1.0


def stack_load_columns(
    matrix: Array, own: Array, unit: Array, drives: dict[str, list[int]], chosen: Sequence[str]
) -> tuple[Array, Array]:
    """Columns of the load and of what changed beside, and what is believed of them."""
    beside = [matrix[:, drives[symbol]] for symbol in chosen]
    columns = np.hstack([own, *beside])
    slight = np.full(columns.shape[1], np.inf)
    slight[:10] = UNTOLD * unit
    return columns, slight


def find_load_changes(
    known: UnloadedModel, own: Array, unit: Array, body: int, beside: Array
) -> tuple[str | None, list[TestResult]]:
    """Whether mass and first moment are the same all the time, and whichever way gravity points."""
    problem, beta, covariance, sigma, kappa = known
    (log,) = problem.samples
    time = np.minimum(np.arange(len(log.q)) * WINDOWS // len(log.q), WINDOWS - 1)
    kinds = {
        "over time": (time, WINDOWS),
        "with the direction of gravity": (label_gravity_sides(problem.robot, log, body), SIDES),
    }
    found, tests = [], []
    for what, (labels, count) in kinds.items():

        def label(_: int, group: int, sample: Integers, own: Integers = labels) -> Integers:
            return own[sample]

        pieces = [part.weighted(sigma) for part in factor_parts(problem, label, count)]
        A, b = np.vstack([own.A for own in pieces]), np.concatenate([own.b for own in pieces])
        model = A @ covariance @ A.T
        noise = kappa**2 * np.eye(len(A))
        # a load of its own in each part: wide columns, the same A M in each part's rows
        wide = np.zeros((len(A), 10 * count + beside.shape[1]))
        wide[:, 10 * count :] = A @ beside
        row = 0
        for k, piece in enumerate(pieces):
            wide[row : row + len(piece.A), 10 * k : 10 * k + 10] = piece.A @ own
            row += len(piece.A)
        slight = np.full(wide.shape[1], np.inf)
        slight[: 10 * count] = np.tile(UNTOLD * unit, count)
        rest = TorqueRemainder(np.eye(len(A)), b - A @ beta, model + noise, noise, model)
        fit = fit_load_columns(rest, wide, slight)
        # differences from the first part, of mass and first moment
        T = np.zeros((4 * (count - 1), wide.shape[1]))
        for k in range(1, count):
            place = 4 * (k - 1) + np.arange(4)
            T[place, 10 * k + np.arange(4)], T[place, np.arange(4)] = 1.0, -1.0
        change = RestFit(T @ fit.x, T @ fit.covariance @ T.T, fit.rows, fit.target)
        test = run_zero_test(change, range(len(T)), f"the load is the same {what}")
        tests.append(test)
        if test.p_value < LOOSE:
            largest = np.abs(change.x.reshape(-1, 4)).max(axis=0)
            found.append(
                f"{what} (its mass by up to {largest[0]:.2g} kg, its first moment by up to "
                f"{np.linalg.norm(largest[1:]):.2g} kg m)"
            )
    return " and ".join(found) or None, tests


def label_gravity_sides(robot: Robot, log: Samples, body: int) -> np.ndarray:
    """Towards which end of where it varies gravity points in a link's frame, at each sample."""
    g = np.tile(robot.gravity, (len(log.q), 1))
    for k in reversed(robot.list_carriers(robot.numbers[body] - 1)):
        own = robot.joints[k]
        g = g @ own.rotation
        if own.kind == "revolute":
            sine, cosine = np.sin(log.q[:, k])[:, None], np.cos(log.q[:, k])[:, None]
            along = (g @ own.axis)[:, None] * own.axis
            g = along + cosine * (g - along) - sine * np.cross(own.axis, g)
    middle = g - np.mean(g, axis=0)
    _, _, axes = np.linalg.svd(middle, full_matrices=False)
    along = middle @ axes[0]
    return np.asarray(along > np.median(along), dtype=int)


def fit_gains_by_joint(
    known: UnloadedModel, own: Array, mass: float, phi: Array
) -> tuple[TorqueGains, RestFit]:
    """Each drive's gain and the load from its mass: ``y_j = s_j X_j M phi``, ``gain_j = 1 / s_j``.

    Gauss-Newton over the other nine parameters of the load and the n scales: of the torques that
    the load adds, as of those of the model itself the identification without it knew nothing.
    """
    problem, beta, covariance, sigma, kappa = known
    factors, n = problem.factors, len(problem.groups)
    A = [g.factor[:, :-1] / s for g, s in zip(factors.groups, sigma, strict=True)]
    r = np.concatenate([
        g.factor[:, -1] / s - a @ beta for g, s, a in zip(factors.groups, sigma, A, strict=True)
    ])  # fmt: skip
    every = np.vstack(A)
    V = every @ covariance @ every.T + kappa**2 * np.eye(len(every))
    L = np.linalg.cholesky(V)
    loads = [a @ own for a in A]
    scale, phi = np.full(n, float(phi[0]) / mass), phi * mass / float(phi[0])
    unit = mass * np.array([LENGTH] * 3 + [LENGTH**2] * 6)
    for _ in range(STEPS):
        rows = np.vstack([s * own_rows for s, own_rows in zip(scale, loads, strict=True)])
        by = np.zeros((len(every), n))
        row = 0
        for j, own_rows in enumerate(loads):
            by[row : row + len(own_rows), j] = own_rows @ phi
            row += len(own_rows)
        J = np.linalg.solve(L, np.hstack([rows[:, 1:] * unit, by]))
        e = np.linalg.solve(L, r - rows @ phi)
        belief = np.zeros((9 + n, 9 + n))
        belief[:9, :9] = np.eye(9) / UNTOLD
        belief[9:, 9:] = np.eye(n) / GAIN_STD
        aim = np.concatenate([-phi[1:] / unit / UNTOLD, (1.0 - scale) / GAIN_STD])
        step, *_ = np.linalg.lstsq(np.vstack([J, belief]), np.concatenate([e, aim]), rcond=None)
        phi = phi + np.concatenate([[0.0], step[:9] * unit])
        scale = scale + step[9:]
        if float(np.max(np.abs(step))) < SETTLED:
            C = np.linalg.inv(J.T @ J + belief.T @ belief)
            spread = np.zeros((10, 10))
            spread[0, 0] = (KNOWN * mass) ** 2
            spread[1:, 1:] = C[:9, :9] * np.outer(unit, unit)
            rows = np.linalg.inv(np.linalg.cholesky(spread))
            std, told = np.sqrt(np.diag(C)[9:]) / scale**2, factors.counts > 0.0
            names = tuple(compress(factors.names, told))
            gains = TorqueGains(names, 1.0 / scale[told], std[told])
            return gains, RestFit(phi, spread, rows, rows @ phi)
    raise ComputationError(f"the drives' gains did not settle in {STEPS} steps; take one in all")


def to_central_inertia(phi: Array) -> Array:
    """Mass, centre and inertia about it (xx xy yy xz yz zz), of several loads, shape (..., 10)."""
    mass, centre = phi[..., :1], phi[..., 1:4] / phi[..., :1]
    point = np.concatenate([centre, np.ones_like(mass)], axis=-1)
    moved = to_inertial_parameters(mass[..., None] * point[..., :, None] * point[..., None, :])
    inertia = to_inertia_matrix(phi - moved)
    six = np.stack([inertia[..., i, j] for i, j in PLACES], axis=-1)
    return np.concatenate([mass, centre, six], axis=-1)


def estimate_load_intervals(
    load: Load, rotation: Array, translation: Array
) -> tuple[Array, Array, Array]:
    """What `to_central_inertia` gives of a load in another frame, and ends of its 95 % intervals.

    `rotation`, `translation`: placement of the frame in the link's joint frame, shapes (3, 3) and
    (3,).
    """
    placed = np.eye(4)
    placed[:3, :3] = rotation.T
    placed[:3, 3] = -rotation.T @ translation

    def seen(phi: Array) -> Array:
        return to_central_inertia(
            to_inertial_parameters(placed @ to_pseudo_inertia(phi) @ placed.T)
        )

    value = seen(load.phi)
    low, high = np.quantile(seen(load.draws), BAND, axis=0)
    for place in range(len(value)) if load.seen else ():
        # draws keep away from corners of the cone, where small bodies are
        ends = [seen(find_last_load(load, rotation, place, sign))[place] for sign in (1, -1)]
        low[place], high[place] = min(low[place], *ends), max(high[place], *ends)
    # an estimate on the boundary is the end of its interval
    return value, np.minimum(low, value), np.maximum(high, value)


def find_last_load(load: Load, rotation: Array, place: int, sign: int) -> Array:
    """The load at an end of the interval of what `to_central_inertia` has at a place.

    `sign` is 1 at the lower end, -1 at the upper one. Centres are found by moments about the last
    one, and an inertia about the last one, of which the moments are the least at the centre: body
    and point are found in turn.
    """
    phi = load.phi
    for _ in range(TURNS):
        centre, slope = phi[1:4] / phi[0], np.zeros(10)
        if place >= INERTIA:
            # about a point c: S = w^T P w of the pseudo-inertia P, w = (u, -u c), and tr(S) 1 - S
            w = np.vstack([rotation, -centre @ rotation])
            i, j = PLACES[place - INERTIA]
            product = np.outer(w[:, i], w[:, j])
            whole = float(i == j) * w @ w.T - 0.5 * (product + product.T)
            slope = np.tensordot(PSEUDO_INERTIA_BASIS, whole, axes=2)
        elif place:
            along = rotation[:, place - 1]
            slope[:4] = -centre @ along, *along
        else:
            slope[0] = 1.0
        phi = find_least_body(load.nearest, sign * slope)
    return np.asarray(phi * np.median(load.draws[:, 0] / load.nearest.draws[:, 0]))
