"""The methods on the stand-in: with and without noise, noisy positions, friction that changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dynident.api import identify
from dynident.control.controller import pd
from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.inertia import to_com
from dynident.core.progress import Progress, report_part
from dynident.core.side_by_side import HERE, Engine, gather_side_by_side
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import Idim
from dynident.estimators.closed_loop import Simulation
from dynident.methods.options import estimate, switch_bootstrap_off
from dynident.recording.prepare import Samples
from dynident.regression.problem import Problem
from dynident_papers.zhang2018.instance import Instance, fit_friction_models
from dynident_papers.zhang2018.simulated import (
    BELIEF,
    JOINT,
    NOISE,
    OFFSET,
    RATE,
    STRIBECK,
    Arm,
    build_undecimated_problem,
    choose_trajectory,
    load_arm,
    simulate_exact_log,
    simulate_measured_log,
    simulate_noisy_torque_log,
)

METHODS = ("ols", "wls", "irls", "kf", "rls", "pc-idim-ls", "nls", "gradient")
GLOBAL = ("ga", "pf")
"""Not in the reduced form."""
FORGETTING = "forgetting"
"""`ekf` with a memory (24)."""
CURVED = ("ekf", FORGETTING, "wls", "pc-idim-ls")
"""Of nonlinear friction."""
SEARCHED = ("nls", "gradient", "ga", "pf")
"""The same, which take their time over shapes: not in the reduced form."""
CRITERION = "mean-and-spread"
"""Equation (25)."""
BY_CRITERION = ("nls", "ga", "pf")
"""What searches by (25), which has no gradient where a mean is zero."""
BARE = "{}, before repair"
"""The set that a search ends at, before it is taken to the nearest that is admitted."""
LOOPED = ("idim-iv", "pc-idim-iv")
"""Instruments of a loop that is simulated with what is estimated."""
LOOP_HZ = 6.0
"""Bandwidth of its law, PD by the joints' inertias [Hz]."""
SUBSTEPS = 4
"""Of the loop's implicit integrator: dry friction on wrists of little inertia is stiff."""
MEMORY = 20.0
"""Of constant parameters, where they are forgotten [s]."""
MEMORY_TRACKED = 1.5
"""Of the friction that `rls` tracks [s]."""
NO_MASS = 1e-9
"""What is rounding of zero [kg]."""
Estimated = tuple[Array, Array | None]
"""Base parameters, and the standard ones where a method has them."""
LEVELS = {
    "e_T": (0.01, 0.1),
    "e_d": (0.2, 1.0),
    "e_f": (0.2, 1.0),
    "J_e": (1.0, 10.0),
    "ΔJ_e": (0.1, 1.0),
}
"""Limits of A and B (Tables 1, 2 and 4)."""


@dataclass(frozen=True)
class Errors:
    """How far an estimate is from the set values (section 5 of the survey)."""

    theta: Array
    """Standard parameters; of base parameters, the set of smallest norm."""
    inertial: float
    friction: float
    """`inertial`, `friction`: e_d and e_f: mean relative errors of the links' mass, centre of mass
    and inertia about it, and of the friction. A body whose mass is rounding has no centre of mass;
    what it lacks is left out."""
    base: float
    """e_b: median relative error of the inertial base parameters, which a motion determines."""
    torque: float
    torque_std: float
    """`torque`, `torque_std`: e_T and e_T-Std: of the torque without noise, over each joint's
    largest."""
    joint_torque: tuple[float, float]
    """Mean and standard deviation of joint 3's torque error [Nm]."""
    seconds: float
    """Of the solution: processor time."""
    friction_values: Array
    """Shape (kinds, n). F_c, F_s, q_s and viscous friction of equation (4); in the model's order of
    (3)."""

    @property
    def overall(self) -> float:
        """J_e."""
        return self.inertial + self.friction + self.torque + self.torque_std


@dataclass(frozen=True)
class Tracked:
    """A viscous friction that changes, and what methods follow of it."""

    shape: str
    time: Array
    truth: Array
    """`time`, `truth`: shape (instants,)."""
    found: dict[str, Array]
    """By method, shape (instants,)."""

    def error(self, method: str) -> float:
        """Root of the mean squared error over the second half [Nm s/rad]."""
        late = len(self.time) // 2
        return float(np.sqrt(np.mean((self.found[method] - self.truth)[late:] ** 2)))


@dataclass(frozen=True)
class Results:
    """All estimates."""

    arm: Arm
    condition: float
    """Of the trajectory."""
    clean: dict[str, Errors]
    noisy: dict[str, Errors]
    """`clean`, `noisy`: by method, without and with the noise of Table 7."""
    clean_stribeck: dict[str, Errors]
    noisy_stribeck: dict[str, Errors]
    """`clean_stribeck`, `noisy_stribeck`: the same of nonlinear friction."""
    descent: dict[str, str]
    """How gradient descent ended on the logs without and with noise."""
    positions: dict[tuple[str, bool], Errors]
    """Dict of (method, bool) to Errors. Of ``ols``, ``iv`` and `LOOPED` under noisy positions that
    are filtered, or not; not of those without an answer."""
    tracked: tuple[Tracked, ...]
    instance: Instance
    failures: tuple[str, ...]
    reference: Reference
    """The trajectory."""
    ranged: dict[str, Errors]
    noisy_ranged: dict[str, Errors]
    """`ranged`, `noisy_ranged`: of searches as the survey's, without and with noise: within a fifth
    of the set values, for (25), without a prior."""


def estimate_all(progress: Progress, reduced: bool, engine: Engine = HERE) -> Results:
    """Everything that the tables show."""
    arm = load_arm()
    progress("zhang2018", 0.0)
    part = partial(report_part, progress, "zhang2018")
    reference = choose_trajectory(arm, 4 if reduced else 40)
    problems = {
        "clean": build_undecimated_problem(arm.believed, simulate_exact_log(arm, reference)),
        "noisy": build_undecimated_problem(
            arm.believed, simulate_noisy_torque_log(arm, reference, seed=1)
        ),
    }
    failures: list[str] = []
    work = partial(measure_method_errors, arm, reference, problems, not reduced)
    tasks = [(m, kind) for m in (*METHODS, *(() if reduced else GLOBAL)) for kind in problems]
    answers = gather_side_by_side(work, tasks, engine, part(0.3, 0.7), "methods")
    found = sort_answers(tasks, answers, "", failures)
    positions = {
        (method, filtered): own
        for filtered in (True, False)
        for method, own in measure_under_noise(
            arm, reference, filtered, not reduced, failures
        ).items()
    }
    progress("zhang2018", 0.75)
    ranged: dict[str, dict[str, Errors]] = {"clean": {}, "noisy": {}}
    for kind, own in problems.items():
        searched = search_in_ranges(arm, own, not reduced, failures, kind)
        for method, pair in searched.items():
            ranged[kind][method] = measure_estimate_errors(
                arm, reference, own, partial(return_found, pair), False
            )
    rubbing = load_arm(STRIBECK)
    logs = {
        "clean": simulate_exact_log(rubbing, reference),
        "noisy": simulate_noisy_torque_log(rubbing, reference, seed=1),
    }
    searching = partial(measure_curved_errors, rubbing, reference, logs)
    tasks = [(m, kind) for m in (*CURVED, *(() if reduced else SEARCHED)) for kind in logs]
    answers = gather_side_by_side(searching, tasks, engine, part(0.8, 0.9), "friction")
    curved = sort_answers(tasks, answers, "Stribeck, ", failures)
    longer = choose_trajectory(arm, 1, periods=3 if reduced else 6)
    tracked = tuple(track_varying_friction(arm, longer, shape) for shape in ("ramp", "quadratic"))
    progress("zhang2018", 0.95)
    instance = fit_friction_models(reduced)
    ratio = problems["clean"].factors.weighted(np.ones(arm.robot.n)).condition()[0]
    return Results(
        arm,
        ratio,
        found["clean"],
        found["noisy"],
        curved["clean"],
        curved["noisy"],
        {kind: estimate(own, "gradient").message for kind, own in problems.items()},
        positions,
        tracked,
        instance,
        (*failures, *instance.failures),
        reference,
        ranged["clean"],
        ranged["noisy"],
    )


def measure_under_noise(
    arm: Arm, reference: Reference, filtered: bool, timed: bool, failures: list[str]
) -> dict[str, Errors]:
    """Least squares and instruments where positions are noisy; `failures` gets what has none."""
    log = simulate_measured_log(arm, reference, 1, filtered)
    own = build_undecimated_problem(arm.robot, log)
    believed = build_undecimated_problem(arm.believed, log)
    solvers = {
        "ols": make_method_solver(own, "ols"),
        "iv": make_instrument_solver(own, reference),
        "idim-iv": make_loop_solver(own, "idim-iv", arm, reference),
        "pc-idim-iv": make_loop_solver(believed, "pc-idim-iv", arm, reference),
    }
    found = {}
    for method, solve in solvers.items():
        try:
            found[method] = measure_estimate_errors(arm, reference, own, solve, timed)
        except ComputationError as error:
            kind = "filtered" if filtered else "not filtered"
            failures.append(f"{method} (noisy positions, {kind}): {error}")
    return found


def sort_answers(
    tasks: Sequence[tuple[str, str]],
    answers: Sequence[Errors | str],
    what: str,
    failures: list[str],
) -> dict[str, dict[str, Errors]]:
    """Answers by the kind of the log and by method; those who have none go to the failures."""
    found: dict[str, dict[str, Errors]] = {"clean": {}, "noisy": {}}
    for (method, kind), own in zip(tasks, answers, strict=True):
        if isinstance(own, str):
            failures.append(f"{method} ({what}{kind}): {own}")
        else:
            found[kind][method] = own
    return found


@limit_to_one_thread
def measure_method_errors(
    arm: Arm,
    reference: Reference,
    problems: dict[str, Problem],
    timed: bool,
    task: tuple[str, str],
) -> Errors | str:
    """A method on a kind of log, or why it has no answer."""
    method, kind = task
    own = problems[kind]
    try:
        solve = make_method_solver(own, method)
        return measure_estimate_errors(arm, reference, own, solve, timed)
    except ComputationError as error:
        return str(error)


def make_method_solver(own: Problem, method: str) -> Callable[[], Estimated]:
    """A method's estimate, base and standard parameters."""
    options: dict[str, Any] = {"memory": MEMORY} if method == "rls" else {}
    if method in ("rls", "kf"):
        options["sigma"] = tuple(NOISE.tolist())

    def solve() -> Estimated:
        found = estimate(own, method, **options)
        return found.beta, found.theta

    return solve


def make_instrument_solver(own: Problem, reference: Reference) -> Callable[[], Estimated]:
    """``(Z'X)^-1 Z'y`` (17), with the regressor along the reference as instruments.

    That is the simulated motion, as the survey's controller knows the robot.
    """

    def solve() -> Estimated:
        motion = (reference.q, reference.dq, reference.ddq)
        rows = own.with_instruments(own.along([motion]))
        weighted = rows.instrument_factors.weighted(np.ones(own.robot.n))
        return weighted.projected.solve(), None

    return solve


def make_loop_solver(
    own: Problem, method: str, arm: Arm, reference: Reference
) -> Callable[[], Estimated]:
    """A method whose instruments are of a simulated loop; it begins at the file's inertials."""
    n = arm.robot.n
    still, each = np.zeros((n, n)), np.tile(OFFSET, (n, 1))
    rest = arm.idim.torque(arm.theta, each, still, still)
    inertia = np.diag(arm.idim.torque(arm.theta, each, still, np.eye(n)) - rest)
    omega = 2.0 * np.pi * LOOP_HZ
    simulation = Simulation(
        pd(inertia * omega**2, 2.0 * inertia * omega, n=n),
        integrator="sdirk2",
        substeps=SUBSTEPS,
        references=(reference,),
        start="nominal",
    )

    def solve() -> Estimated:
        options = switch_bootstrap_off(method)
        found = estimate(own, method, simulation=simulation, **options)
        return found.beta, found.theta

    return solve


def search_in_ranges(
    arm: Arm, own: Problem, whole: bool, failures: list[str], kind: str
) -> dict[str, Estimated]:
    """Searches as the survey's: within a fifth of the set values, for (25), without a prior.

    They begin at a set that is off by up to a fifth. Populations are sets of base parameters; what
    a search ends at is told as it is, and as it was repaired.

    `whole`: those by populations as well. `failures`: gets what has no answer.
    """
    sizes = BELIEF * np.abs(arm.theta)
    ranges = {
        name: (value - size, value + size)
        for name, value, size in zip(arm.idim.names, arm.theta, sizes, strict=True)
        if size > 0.0
    }
    share = np.random.default_rng(1).uniform(-1.0, 1.0, len(sizes))
    start = own.base.matrix @ (arm.theta + share * sizes)
    begin = dict(zip(own.base.names, start.tolist(), strict=True))
    found: dict[str, Estimated] = {}
    for method in BY_CRITERION if whole else BY_CRITERION[:1]:
        try:
            ended = estimate(
                own, method, ranges=ranges, objective=CRITERION, begin=begin, prior="none"
            )
        except ComputationError as error:
            failures.append(f"{method} (ranges, {kind}): {error}")
            continue
        if ended.history is not None:
            found[BARE.format(method)] = ended.history[-1], None
        found[method] = ended.beta, ended.theta
    return found


def return_found(found: Estimated) -> Estimated:
    """What was found before."""
    return found


def measure_estimate_errors(
    arm: Arm,
    reference: Reference,
    own: Problem,
    solve: Callable[[], Estimated],
    timed: bool,
) -> Errors:
    """An estimate beside the set values; what is timed is solved once before, for the compiler."""
    assert own.factors is not None  # made before the clock starts, as the survey's K is
    if timed:
        solve()
    start = time.process_time()
    beta, theta = solve()
    seconds = time.process_time() - start
    if theta is None:
        theta = np.linalg.pinv(own.base.matrix) @ beta
    drives = arm.idim.split(theta)[1]
    friction = float(np.mean(compute_relative_errors(drives, arm.idim.split(arm.theta)[1])))
    values = drives.reshape(arm.robot.n, -1).T
    return judge_parameters(arm, arm.idim, reference, theta, friction, seconds, values)


@limit_to_one_thread
def measure_curved_errors(
    arm: Arm, reference: Reference, logs: dict[str, Samples], task: tuple[str, str]
) -> Errors | str:
    """The same of a method on nonlinear friction, whose shapes it finds.

    e_f is of F_c, F_s, q_s and the viscous friction.
    """
    method, kind = task
    own = Problem(arm.believed, logs[kind], STRIBECK, rotor=False)
    start = time.process_time()
    try:
        if method == FORGETTING:
            found = identify(own, "ekf", rows="all", doctor=False, memory=MEMORY)
        else:
            found = identify(own, method, rows="all", doctor=False)
    except ComputationError as error:
        return str(error)
    seconds = time.process_time() - start
    theta = found.estimate.theta
    if theta is None:
        theta = np.linalg.pinv(found.base.matrix) @ found.estimate.beta
    here, truth = (
        collect_curved_values(idim, own)
        for idim, own in ((found.idim, theta), (arm.idim, arm.theta))
    )
    friction = float(np.mean(compute_relative_errors(here, truth)))
    return judge_parameters(arm, found.idim, reference, theta, friction, seconds, here)


def collect_curved_values(idim: Idim, theta: Array) -> Array:
    """F_c, F_s, q_s and viscous friction of equation (4), shape (4, n)."""
    values = dict(zip(idim.names, theta.tolist(), strict=True))
    joints = range(1, idim.robot.n + 1)
    fc, fs, fv = (np.array([values[f"{s}{j}"] for j in joints]) for s in ("fc", "fs", "fv"))
    return np.array([fc, fc + fs, np.array(idim.shape), fv])


def judge_parameters(
    arm: Arm,
    idim: Idim,
    reference: Reference,
    theta: Array,
    friction: float,
    seconds: float,
    values: Array,
) -> Errors:
    """Standard parameters, and the torques of their model, beside the set ones."""
    inertial = measure_body_error(idim.split(theta)[0], arm.robot.nominal)
    base = base_parameters(idim)
    inertials = [k for k, name in enumerate(base.names) if name[0] in "Im"]
    own, true = ((base.matrix @ values)[inertials] for values in (theta, arm.theta))
    motion = (reference.q, reference.dq, reference.ddq)
    torque = arm.idim.torque(arm.theta, *motion)
    error = idim.torque(theta, *motion) - torque
    share = np.abs(error) / np.abs(torque).max(axis=0)
    return Errors(
        theta,
        inertial,
        friction,
        float(np.median(compute_relative_errors(own, true))),
        float(share.mean()),
        float(share.std()),
        (float(error[:, JOINT].mean()), float(error[:, JOINT].std())),
        seconds,
        values,
    )


def measure_body_error(phi: Array, truth: Array) -> float:
    """e_d of bodies: the mean over the links of their parameters' mean relative error."""
    errors = [
        np.nanmean(compute_relative_errors(list_link_parameters(a), list_link_parameters(b)))
        for a, b in zip(phi, truth, strict=True)
    ]
    return float(np.mean(errors))


def list_link_parameters(phi: Array) -> Array:
    """Mass, centre of mass and inertia about it, as Table 5 has them; without a mass the first."""
    mass, com, inertia = to_com(phi)
    found = np.array([mass, *com, *inertia[np.triu_indices(3)]])
    if abs(mass) < NO_MASS:
        found[1:] = np.nan
    return found


def compute_relative_errors(found: Array, truth: Array) -> Array:
    """``|(truth - found) / truth|``."""
    return np.asarray(np.abs((truth - found) / truth))


def track_varying_friction(arm: Arm, reference: Reference, shape: str) -> Tracked:
    """Joint 3's viscous friction grows by half: along a ramp, or with the square of time."""
    share = np.arange(len(reference.q)) / len(reference.q)
    place = arm.idim.names.index(f"fv{JOINT + 1}")
    start = float(arm.theta[place])
    course = start * (1.0 + 0.5 * (share if shape == "ramp" else share**2))
    clean = simulate_noisy_torque_log(arm, reference, seed=2)
    tau = clean.tau.copy()
    tau[:, JOINT] += (course - start) * reference.dq[:, JOINT]
    own = build_undecimated_problem(arm.robot, clean.driven(tau))
    column = own.base.names.index(f"fv{JOINT + 1}")
    weights = tuple(NOISE.tolist())
    found, instants = {}, np.zeros(0)
    for method, options in (("kf", {}), ("rls", {"memory_friction": MEMORY_TRACKED})):
        followed = estimate(own, method, sigma=weights, **options).track
        assert followed is not None
        instants, found[method] = followed.time, followed.beta[:, column]
    return Tracked(
        shape, instants, np.interp(instants, np.arange(len(course)) / RATE, course), found
    )


def grade_error(kind: str, value: float) -> str:
    """A, B or C by the survey's tables."""
    return "ABC"[sum(value >= limit for limit in LEVELS[kind])]
