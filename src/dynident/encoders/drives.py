"""CLOE on logs of encoders alone: drives and loop fitted, the links as their file has them.

One Levenberg-Marquardt iteration with exact sensitivities over all that is unknown, be it of the
model (rotors, friction and its shapes) or of the loop (delay of the targets, biases of the
encoders, gains of the drives). Each step is the cone problem of all constrained methods, so that
bounds, fixed and equal values are constraints like any other, and beliefs are rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator

from dynident.conic.cones import Cone, NonnegativeCone, ZeroCone
from dynident.conic.solve import ConeSolution, solve_cone_problem
from dynident.consistency.constraints import Bounds, Constraint, Fixed
from dynident.consistency.constraints.values import Belief, Tied, list_names
from dynident.consistency.feasible_set import list_active_constraints
from dynident.core.arrays import Array
from dynident.core.errors import InputError, RolloutError
from dynident.core.factors import System
from dynident.core.options import InPython, Options
from dynident.core.progress import Progress
from dynident.core.schema import OneOf, join_names
from dynident.dynamics.idim import Idim, build_idim
from dynident.encoders.currents import describe_scales, scale_currents
from dynident.encoders.errors import (
    INSTANTS_HZ,
    LinearisedErrors,
    apply_friction_shapes,
    choose_step_sizes,
    differentiate_readings,
    linearise_encoder_errors,
)
from dynident.encoders.mount import add_mount_unknowns, list_mount_doubts
from dynident.encoders.servo import PARTS, begin_loop, choose_parts, list_columns, widen
from dynident.encoders.unknowns import (
    UNITS,
    AdmittedUnknowns,
    Unknowns,
    build_admitted_set,
    find_free_directions,
    find_load_shares,
    hold_start_readings,
)
from dynident.estimators.closed_loop import (
    HinderedStretch,
    Simulation,
    build_auxiliary_model,
    refuse_chatter,
)
from dynident.estimators.covariance import (
    ErrorBars,
    EstimateScores,
    Spread,
    estimate_covariance,
    name_covariance,
)
from dynident.estimators.damped import IterationEnd, LocalProblem, StepPace, run_levenberg_marquardt
from dynident.estimators.estimate import DrivesEstimate, Estimate, ShapeEstimate
from dynident.estimators.hindered import WindowScatter, examine_free_motion, leave_out_hindered
from dynident.estimators.iteration import explain_failed_rollout, fit_nominal_drives
from dynident.regression.problem import Problem, Regression
from dynident.regression.rows import GivenRows, Rows, list_position_groups
from dynident.regression.statistics import compute_residuals
from dynident.regression.weighted import estimate_group_sigma
from dynident.simulation.backlash import BACKLASH
from dynident.simulation.loop import (
    WIDTH_SHARE,
    LoopColumn,
    choose_share_of_speed,
    find_holding_width,
)
from dynident.simulation.mount import AXES, refuse_unknown_axes

CONVERGED, SEEN = 1e-4, 0.1
"""Largest change of the last step, as a share and in standard deviations."""
PACE = StepPace(
    damping=1e-2,
    largest=1e8,
    stalled=1e-6,
    stuck="no step from the start lowers the error of the positions; check the gains, the columns "
    "of the targets and the robot's joints",
    unsettled="fix or bound what the log does not determine ([[constraint]]), or fit less of the "
    "loop",
    unseen=0.01,  # a tenth of a standard deviation, squared
    stays=True,
)
START = 1e-2
"""Drives' parameters that have to be positive start from so much at least, in SI units."""
START_SHARE = 0.4
"""Of its load a drive's friction takes up so much at most at the start."""
MOST_STARTS = 60
"""Joints at the starts of runs, whose readings and speeds there are fitted beside all else; of
more they are as read."""
EVEN, UNEVEN = "coulomb-viscous", 0.6
"""Friction whose errors are looked at for another that changes along a turn, and the share of a
joint's error that the latter has to leave to be named."""
ROUNDS = 3
"""Of a fit, each without the stretches that stand out of the one before."""
ROUNDING = 1e-12
"""By which a solver may miss a bound, over its size or one."""
SERVO = "servo"
"""What is asked for where a servo's parts are to be chosen."""


def order_mount_axes(axes: str) -> str:
    """Refuse what is not an axis of a mount, and order them."""
    named = [axis.strip() for axis in axes.split(",") if axis.strip()]
    refuse_unknown_axes(named)
    return ",".join(axis for axis in AXES if axis in named)


def check_loop_kinds(kinds: str) -> str:
    """Refuse what is not of a loop."""
    known = OneOf((*UNITS, SERVO))
    return ",".join(known(kind.strip()) for kind in kinds.split(",") if kind.strip())


@dataclass(frozen=True)
class DriveFitOptions(Options):
    """What `cloe` fits: options of logs without torque."""

    links: Annotated[
        Literal["free", "fixed", "prior"] | None,
        "inertials of the links: `free`, as base parameters; `fixed` at the robot file's values, "
        "the default for logs without torque; or fitted around these under a `prior`",
    ] = None
    loop: Annotated[
        Annotated[str, BeforeValidator(join_names), AfterValidator(check_loop_kinds)] | None,
        "parameters of the loop that are fitted where links are not free, separated by commas: "
        "the `delay` of its targets, each encoder's `bias`, each drive's `gain` and `limit`; for "
        "`servo` controllers also `damping`, `integral`, `deadband`, `punch`, `speed_limit` and "
        "`backlash`, or `servo`: those of them, except the last, that improve the prediction of "
        "held-out blocks; by default the delay, for `servo` controllers `delay,gain,servo`",
    ] = None
    mount: Annotated[
        Annotated[str, BeforeValidator(join_names), AfterValidator(order_mount_axes)] | None,
        "axes along which the base is mounted on springs and dampers, which are fitted too while "
        "links are fixed: any of `x`, `y`, `z`, `roll`, `pitch` and `yaw`, separated by commas",
    ] = None
    hindered: Annotated[
        Literal["left-out", "fitted"],
        "stretches in which several joints are stopped or pushed together, which no model of the "
        "free robot explains: `left-out` of the fit, and scored separately in held-out logs; or "
        "`fitted`",
    ] = "left-out"
    constraints: Annotated[
        tuple[Constraint, ...],
        InPython(),
        "`bounds`, `fixed`, `tied` and `belief` of fixed links; `[[constraint]]` of a study",
    ] = ()


def fits_drives(problem: Problem, fitting: DriveFitOptions) -> bool:
    """Whether links are fixed, or nearly so, and the drives fitted."""
    if fitting.links is not None:
        return fitting.links != "free"
    return any(log.torque != "measured" for log in problem.samples)


def fit_drives_and_loop(
    problem: Problem,
    simulation: Simulation,
    fitting: DriveFitOptions,
    bars: ErrorBars,
    progress: Progress,
) -> Estimate:
    """CLOE of the drives and the loop, the links as the robot file has them."""
    idim, robot = problem.idim, problem.robot
    if not robot.has_nominal:
        raise InputError(f"{robot.name}: its file has no inertials, which this fit of drives needs")
    simulation = simulation.of_encoders()
    refuse_loop(problem, simulation)
    if not idim.drives:
        raise InputError(f"{robot.name}: friction 'none' leaves nothing to fit")
    if fitting.mount and fitting.links == "prior":
        raise InputError("a mount is fitted under fixed links; leave links = 'prior' out")
    kinds = choose_loop_kinds(fitting, simulation)
    if BACKLASH in kinds or np.any(simulation.controller.backlash):
        simulation = sharpen_sign(problem, simulation)
    own = list_columns([kind for kind in kinds if kind != SERVO], robot.n)
    fitting = tie_alike_servos(fitting, idim, simulation, own)
    first = 0 if fitting.links == "prior" else idim.inertial
    x = choose_start_unknowns(problem, simulation, own, first)
    problem, reached, scatter, hindered = fit_unhindered(
        problem, simulation, own, first, fitting, x, progress
    )
    parted = ""
    if SERVO in kinds:
        fitting, reached, parted = fit_servo_parts(problem, simulation, fitting, reached, progress)
    left = tuple(f"{each.words}, left out" for stretches in hindered for each in stretches)
    doubts = left
    if fitting.mount:
        axes, rigid = fitting.mount.split(","), reached[0]
        fitting, reached = fit_mount(problem, simulation, fitting, reached, progress)
        doubts += list_mount_doubts(rigid.here, reached[0].here, axes)
    found, free, unknowns = reached
    fitted = problem.under(apply_friction_shapes(problem, unknowns, found.x))
    refuse_chatter(fitted, unknowns.tuned(found.x, simulation), unknowns.theta(found.x))
    asked = replace(unknowns, unit=np.ones(unknowns.asked), runs=0)
    cones = build_admitted_set(asked, fitting.constraints).cones
    estimate = finish_drives_estimate(
        problem, simulation, unknowns, free, found, bars, cones, doubts, parted
    )
    assert estimate.fitted is not None
    known = replace(estimate.fitted, scatter=scatter, hindered=hindered)
    told = tell_currents(fitted, known, unknowns.theta(found.x))
    message = "; ".join((estimate.message, *([told] if told else ())))
    warnings = (*estimate.warnings, *left)
    return replace(estimate, fitted=known, message=message, warnings=warnings)


def fit_unhindered(
    problem: Problem,
    simulation: Simulation,
    own: tuple[LoopColumn, ...],
    first: int,
    fitting: DriveFitOptions,
    x: Array,
    progress: Progress,
) -> tuple[Problem, Reached, WindowScatter | None, tuple[tuple[HinderedStretch, ...], ...]]:
    """A fit without the stretches that stand out of it, unless these are fitted too.

    With the problem without them, what errors usually are, and the stretches of each log.
    """
    reached = fit_from(problem, simulation, own, first, fitting, x, progress)
    whole, scatter = problem, None
    hindered: tuple[tuple[HinderedStretch, ...], ...] = ((),) * len(problem.samples)
    for _ in range(ROUNDS if fitting.hindered == "left-out" else 0):
        found, _, unknowns = reached
        scatter, told = examine_fit(whole, simulation, unknowns, found.x)
        if told == hindered:
            break
        hindered = told
        problem = Problem.of(problem.base, list(map(leave_out_hindered, whole.samples, told)))
        x = found.x[: unknowns.asked]
        reached = fit_from(problem, simulation, own, first, fitting, x, progress)
    return problem, reached, scatter, hindered


def fit_servo_parts(
    problem: Problem,
    simulation: Simulation,
    fitting: DriveFitOptions,
    reached: Reached,
    progress: Progress,
) -> tuple[DriveFitOptions, Reached, str]:
    """A fit with the parts of a servo that pay, these alike where servos are; and what they are."""
    found, _, unknowns = reached
    sigma = found.here.sigma()
    parts, parted = choose_parts(problem, simulation, unknowns, found.x, sigma)
    if parts:
        wider, x = widen(unknowns, found.x, parts, begin_loop(problem, simulation))
        fitting = tie_alike_servos(fitting, problem.idim, simulation, parts)
        reached = fit_unknowns(problem, simulation, wider, fitting, x, progress)
    return fitting, reached, parted


def fit_mount(
    problem: Problem,
    simulation: Simulation,
    fitting: DriveFitOptions,
    reached: Reached,
    progress: Progress,
) -> tuple[DriveFitOptions, Reached]:
    """A fit on a compliant mount, from one on a rigid one; with bounds of the mount's unknowns."""
    found, _, unknowns = reached
    axes = tuple((fitting.mount or "").split(","))
    unknowns, bounds, x = add_mount_unknowns(problem, simulation, unknowns, axes, found.x)
    fitting = replace(fitting, constraints=(*fitting.constraints, *bounds))
    return fitting, fit_unknowns(problem, simulation, unknowns, fitting, x, progress)


def tell_currents(fitted: Problem, known: DrivesEstimate, theta: Array) -> str:
    """What counts of unsigned currents are worth, in words; nothing where none are logged."""
    gains = {
        int(name.removeprefix("gain")) - 1: float(std / abs(value))
        for name, value, std in zip(known.names, known.values, known.std, strict=True)
        if name.startswith("gain")
    }
    scales = scale_currents(fitted, known.loop, theta, gains)
    return describe_scales(scales) if scales else ""


def fit_from(
    problem: Problem,
    simulation: Simulation,
    own: tuple[LoopColumn, ...],
    first: int,
    fitting: DriveFitOptions,
    x: Array,
    progress: Progress,
) -> Reached:
    """`fit_unknowns` from values of what is asked for, the runs beginning as they are read."""
    starts = list_run_starts(problem, simulation)
    x = np.concatenate([x, starts.ravel()])
    unknowns = Unknowns(problem.idim, own, np.ones(len(x)), first, len(starts))
    return fit_unknowns(problem, simulation, unknowns, fitting, x, progress)


def examine_fit(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array
) -> tuple[WindowScatter | None, tuple[tuple[HinderedStretch, ...], ...]]:
    """What errors usually are at an estimate, and stretches beyond; of a log never all of it."""
    shaped = Problem.of(apply_friction_shapes(problem, unknowns, x), problem.samples)
    scatter, found = examine_free_motion(shaped, unknowns.tuned(x, simulation), unknowns.theta(x))
    told = zip(problem.samples, found, strict=True)
    return scatter, tuple(own if leave_out_hindered(log, own).runs else () for log, own in told)


def fit_unknowns(
    problem: Problem,
    simulation: Simulation,
    unknowns: Unknowns,
    fitting: DriveFitOptions,
    x: Array,
    progress: Progress,
) -> Reached:
    """The minimum that is reached from x, and the unknowns in the units of the start."""
    free = build_admitted_set(unknowns, fitting.constraints)
    x = solve_cone_problem(np.eye(len(x)), x, free.cones).x
    try:
        here = linearise_encoder_errors(problem, simulation, unknowns, x)
    except RolloutError as error:
        raise explain_failed_rollout(error, 1, "the law's torque") from error
    unknowns = replace(unknowns, unit=choose_step_sizes(here, free))
    free = build_admitted_set(unknowns, fitting.constraints)
    # readings at the starts are nearly right: free from the first step they mislead the iteration
    kept = hold_start_readings(unknowns, x)
    strict = replace(free, cones=(*free.cones, *kept))
    near = minimise_position_error(problem, simulation, unknowns, strict, x, here, progress)
    if not kept:
        return near, free, unknowns
    found = minimise_position_error(
        problem, simulation, unknowns, free, near.x, near.here, progress, near.rollouts
    )
    history = np.vstack([near.history, found.history[1:]])
    rollouts = near.rollouts + found.rollouts
    return replace(found, history=history, rollouts=rollouts), free, unknowns


def refuse_loop(problem: Problem, simulation: Simulation) -> None:
    """Refuse gains of zero, and delays that no log shows."""
    control, robot = simulation.controller, problem.robot
    for name, has in zip(robot.joint_names, control.follows, strict=True):
        if not has:
            raise InputError(f"[controller] the gain on the target of {name} is zero: give kp")
    shortest = min(stop - start for log in problem.samples for start, stop in log.runs)
    longest = shortest / problem.samples[0].rate
    if control.delay >= longest:
        raise InputError(
            f"[controller] a delay of {control.delay:g} s is longer than the log of {longest:g} s"
        )


def sharpen_sign(problem: Problem, simulation: Simulation) -> Simulation:
    """The same with a sign of friction that lets no motor creep from flank to flank.

    One that is held has an error of ``fc / kp`` before it moves: what creeps earlier makes gaps
    wider, by up to twice as much.
    """
    if simulation.width is not None:
        return simulation
    n, found = problem.robot.n, []
    for log in problem.samples:
        found.append(choose_share_of_speed(log.dq[:, -n:], WIDTH_SHARE))
        found.append(find_holding_width(log.measured, log.runs, log.rate))
    return replace(simulation, width=tuple(np.min(found, axis=0).tolist()))


def tie_alike_servos(
    fitting: DriveFitOptions, idim: Idim, simulation: Simulation, own: Sequence[LoopColumn]
) -> DriveFitOptions:
    """What servos have is one value for all joints where the robot's file has one model of servo.

    Of joints with the same limits of torque and speed, and the same gain in `[controller]`; but
    for what constraints speak of.
    """
    robot, control = idim.robot, simulation.controller
    alike = {(each.kind, each.effort, each.velocity) for each in robot.joints}
    stiff = control.gain * control.D[:, 0]
    if not control.edge or robot.n < 2 or len(alike) > 1 or np.ptp(stiff) > 0.0:
        return fitting
    if not np.isfinite(robot.joints[0].effort):
        return fitting
    spoken = {
        name.rstrip("0123456789")
        for each in fitting.constraints
        if isinstance(each, Bounds | Fixed | Tied | Belief)
        for name in list_names(each.parameters)
    }
    kinds = dict.fromkeys(each.kind for each in own if each.kind not in ("delay", "bias"))
    ties = tuple(Tied((kind,)) for kind in kinds if kind not in spoken)
    return replace(fitting, constraints=(*fitting.constraints, *ties))


def choose_loop_kinds(fitting: DriveFitOptions, simulation: Simulation) -> tuple[str, ...]:
    """Kinds of the loop's parameters that are fitted, and `SERVO` where they are to be chosen."""
    control = simulation.controller
    usual = ("delay", "gain", SERVO) if control.edge else ("delay",)
    kinds = usual if fitting.loop is None else tuple(filter(None, fitting.loop.split(",")))
    states = control.states and not control.edge
    if states or control.compensation != "none" or control.rate is not None:
        if fitting.loop:
            raise InputError(
                f"loop = {fitting.loop!r} is fitted for continuous controllers without states "
                "and compensation: p, pd, p-p and servo, without a rate"
            )
        return ()
    beyond = sorted({*kinds} & {SERVO, BACKLASH, *PARTS} - {"limit"})
    if beyond and not control.edge:
        raise InputError(f"loop: {', '.join(beyond)} of [controller] kind = 'servo' alone")
    if "limit" in kinds and not np.all(np.isfinite(control.limit)):
        raise InputError("loop: a limit is fitted from that of [controller]; give limit there")
    return tuple(dict.fromkeys(kinds))


def choose_start_unknowns(
    problem: Problem, simulation: Simulation, own: Sequence[LoopColumn], first: int
) -> Array:
    """Drives that give the law's torque best, the loop as it is told, targets a little late."""
    idim = problem.idim
    theta = fit_nominal_drives(problem)
    positive = np.array([p.positive for p in idim.parameters])
    positive[: idim.inertial] = False
    theta[positive] = np.maximum(theta[positive], START)
    shares = find_load_shares(idim)
    theta[shares] = np.minimum(theta[shares], START_SHARE)
    values = begin_loop(problem, simulation)
    return np.array([*theta[first:], *idim.shape, *(values[c.kind][c.joint] for c in own)])


def list_run_starts(problem: Problem, simulation: Simulation) -> Array:
    """Readings and speeds with which the runs begin; of many runs none are fitted."""
    n, loops = problem.robot.n, build_auxiliary_model(problem, simulation).loops
    found = [
        (loop.q0, loop.dq0)
        for own in loops
        for _, _, loop in own
        if loop.q0 is not None and loop.dq0 is not None
    ]
    if len(found) * n > MOST_STARTS:
        return np.zeros((0, 2, n))
    return np.array(found).reshape(-1, 2, n)


@dataclass(frozen=True, eq=False)
class Minimum(IterationEnd[LinearisedErrors]):
    """Where the iterations ended, with the last answer of the cone problem."""

    solution: ConeSolution


Reached = tuple[Minimum, AdmittedUnknowns, Unknowns]
"""Where a fit ended, under which cones and beliefs, and what the unknowns are."""


class ConstrainedStep:
    """The linear problem of a step, under cones on scaled unknowns and with beliefs."""

    def __init__(self, free: AdmittedUnknowns, unit: Array) -> None:
        self._free, self._unit = free, unit
        self._solution: ConeSolution | None = None

    def __call__(self, system: System) -> Array:
        """The answer."""
        self._solution = solve_cone_problem(system.A, system.b, self._free.cones)
        return self._solution.x

    @property
    def solution(self) -> ConeSolution:
        """The last answer."""
        assert self._solution is not None
        return self._solution

    @property
    def penalty(self) -> float:
        """What beliefs add to the criterion."""
        return self._free.penalty(self.solution.x * self._unit)


def minimise_position_error(
    problem: Problem,
    simulation: Simulation,
    unknowns: Unknowns,
    free: AdmittedUnknowns,
    x: Array,
    here: LinearisedErrors,
    progress: Progress,
    earlier: int = 0,
) -> Minimum:
    """The least ``sum_j ||e_j||^2 / sigma_j^2`` and beliefs, under the cones, from a start.

    After `earlier` rollouts the iteration may end where no step lowers the error.
    """
    unit = unknowns.unit
    inner = ConstrainedStep(free, unit)

    def local(at: LinearisedErrors, z: Array) -> LocalProblem[LinearisedErrors]:
        """The problem of a step, of scaled unknowns."""
        sigma = at.sigma()
        believed = np.column_stack([free.rows, free.target - free.rows @ (z * unit)])
        R = np.asarray(np.linalg.qr(np.vstack([at.system(sigma), believed]), mode="r"))
        A, b = R[:, :-1] * unit, R[:, -1]
        std = np.sqrt(np.sum(np.linalg.pinv(A, rcond=1e-9) ** 2, axis=1))
        return LocalProblem(
            System(A, b + A @ z, 0.0),
            lambda other, _: float(np.sum(other.squares() / sigma**2)),
            lambda new: bool(
                np.all(np.abs(new - z) < np.maximum(SEEN * std, CONVERGED * np.abs(new)))
            ),
        )

    ended = run_levenberg_marquardt(
        lambda z: linearise_encoder_errors(problem, simulation, unknowns, z * unit), local, inner,
        x / unit, here, PACE, penalty=free.penalty(x), progress=progress, earlier=earlier,
    )  # fmt: skip
    return Minimum(ended.x * unit, ended.here, ended.history * unit, ended.rollouts, inner.solution)


def find_uneven_joints(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array
) -> tuple[str, ...]:
    """Joints whose error friction that changes along a turn would take away.

    The columns of that friction at an estimate without it are a linear problem: one rollout.
    """
    idim, n = problem.idim, problem.robot.n
    if idim.friction != EVEN or idim.elements:
        return ()
    other = build_idim(problem.robot, "uneven", idim.rotor)
    names = Unknowns(other, unknowns.own, np.zeros(0), unknowns.first, unknowns.runs).names
    values = dict(zip(unknowns.names, x, strict=True))
    wider = np.array([values.get(name, 0.0) for name in names])
    base = replace(problem.base, idim=other)
    found = linearise_encoder_errors(
        Problem.of(base, problem.samples),
        simulation,
        replace(unknowns, idim=other, unit=np.ones(len(names))),
        wider,
    )
    rows = found.system(found.rms())
    norms = np.maximum(np.linalg.norm(rows[:, :-1], axis=0), 1e-12)
    step = np.linalg.lstsq(rows[:, :-1] / norms, rows[:, -1], rcond=1e-8)[0] / norms
    left = np.array([np.linalg.norm(g.factor @ np.append(-step, 1.0)) for g in found.factors])
    share = left / np.sqrt(found.squares())
    return tuple(problem.robot.joint_names[j] for j in range(n) if share[j] < UNEVEN)


def finish_drives_estimate(
    problem: Problem,
    simulation: Simulation,
    unknowns: Unknowns,
    free: AdmittedUnknowns,
    found: Minimum,
    bars: ErrorBars,
    cones: tuple[Cone, ...],
    doubts: tuple[str, ...],
    parted: str,
) -> Estimate:
    """Error bars on the face of the active constraints, and all that a result has."""
    x = unknowns.unit * keep_bounds(found.x / unknowns.unit, free.cones)
    base = apply_friction_shapes(problem, unknowns, found.x)
    a, b = unknowns.linear, len(unknowns.columns)
    x[a:b] = base.idim.shape  # facts and bounds to the last digit
    count, weights, sigma = len(x), found.here.sigma(), found.here.rms()
    rows = build_position_rows(problem, simulation, unknowns, x)
    errors = compute_residuals(rows, x)
    A = np.vstack([found.here.system(weights)[:, :-1], free.rows]) * unknowns.unit
    gain = invert_on_faces(A, unknowns.unit, find_free_directions(free.cones, found.solution))
    spread = estimate_covariance(EstimateScores(rows, x, weights, sigma, errors), gain, bars)
    believed = gain @ free.rows.T
    matrix = spread.matrix + believed @ believed.T
    theta = unknowns.theta(x)
    image = base.matrix[:, unknowns.first :]
    to_beta = np.zeros((base.count, count))
    to_beta[:, : unknowns.linear] = image[:, : unknowns.linear]
    beta = np.asarray(base.matrix @ theta)
    white = np.sqrt(np.maximum(np.diag(to_beta @ gain @ to_beta.T), 0.0))
    links = "links fixed" if unknowns.first else "links about the file's"
    kind = f"{links}, drives and loop fitted"
    covariance = name_covariance(kind, Spread(spread.words, to_beta @ matrix @ to_beta.T), white)
    tuned, asked = unknowns.tuned(x, simulation), unknowns.asked
    fitted = DrivesEstimate(
        unknowns.names[:asked],
        unknowns.units,
        x[:asked],
        np.sqrt(np.maximum(np.diag(matrix), 0.0))[:asked],
        tuned,
        matrix[:asked, :asked],
        cones,
        find_uneven_joints(problem, simulation, unknowns, x),
        doubts,
    )
    shape = ShapeEstimate(unknowns.names[a:b], x[a:b], fitted.std[a:b])
    factors = problem.factors
    return Estimate(
        beta,
        theta,
        estimate_group_sigma(factors, beta, factors.ones),
        covariance,
        errors,
        len(found.history) - 1,
        f"{links}, {count} parameters {describe_search(problem, found)}"
        + (f"; {parted}" if parted else ""),
        certificate=found.solution.certificate,
        active=list_active_limits(free.cones, found.solution.faces),
        prior=free.words or None,
        warnings=(*simulation.warnings, *warn_of_uneven_friction(fitted.uneven)),
        history=(base.matrix @ np.array([unknowns.theta(each) for each in found.history]).T).T,
        singular_values=np.asarray(np.linalg.svd(A, compute_uv=False)),
        shape=shape if len(shape.names) else None,
        fitted=fitted,
    )


def list_active_limits(cones: Sequence[Cone], faces: Sequence[Array]) -> tuple[str, ...]:
    """Active constraints, without equations, which always are."""
    limits = [k for k, cone in enumerate(cones) if not isinstance(cone, ZeroCone)]
    return list_active_constraints([cones[k] for k in limits], [faces[k] for k in limits])


def describe_search(problem: Problem, found: Minimum) -> str:
    """How many steps and rollouts it took, and at how many of the samples."""
    step = max(1, round(problem.samples[0].rate / INSTANTS_HZ))
    often = "" if step == 1 else f", one sample in {step}"
    return f"settled in {len(found.history) - 1} steps, {found.rollouts} rollouts{often}"


def warn_of_uneven_friction(joints: Sequence[str]) -> tuple[str, ...]:
    """What to try for joints whose errors friction that changes along a turn explains."""
    if not joints:
        return ()
    return (
        f"the errors of {', '.join(joints)} are those of friction that changes along a turn: try "
        "friction = 'uneven'",
    )


def invert_on_faces(A: Array, unit: Array, faces: Array) -> Array:
    """``U F (F^T A^T A F)^+ F^T U``: what errors of scaled rows do to unknowns that are free."""
    inverse = np.linalg.pinv(np.linalg.qr(A @ faces, mode="r"), rcond=1e-9)
    return np.asarray(unit[:, None] * (faces @ (inverse @ inverse.T) @ faces.T) * unit)


def keep_bounds(x: Array, cones: Sequence[Cone]) -> Array:
    """Unknowns, in the units of the cones, within the bounds that rows give them alone.

    What a solver leaves there but for rounding is at its bound.
    """
    kept = x.copy()
    for cone in cones:
        if not isinstance(cone, NonnegativeCone):
            continue
        for row, least in zip(cone.G, cone.h, strict=True):
            own = np.flatnonzero(row)
            if len(own) == 1:
                bound, side = least / row[own], np.maximum if row[own] > 0.0 else np.minimum
                near = np.abs(kept[own] - bound) <= ROUNDING * np.maximum(1.0, np.abs(bound))
                kept[own] = np.where(near, bound, side(kept[own], bound))
    return kept


def build_position_rows(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array
) -> Regression:
    """The readings of the encoders as rows about the unknowns, linearised about x."""
    n, count, base = problem.robot.n, len(x), apply_friction_shapes(problem, unknowns, x)
    lists: list[list[Rows]] = [[] for _ in problem.samples]
    parts = [*differentiate_readings(problem, simulation, unknowns, x)]
    moved = np.any([np.any(by, axis=0) for _, _, by, _ in parts], axis=0)
    acting = tuple(np.flatnonzero(each) for each in moved)
    for index, sample, by, error in parts:
        X = tuple(by[:, j, columns] for j, columns in enumerate(acting))
        y = tuple(error[:, j] + X[j] @ x[acting[j]] for j in range(n))
        lists[index].append(Rows(X, y, (sample,) * n))
    groups = list_position_groups(problem.robot)
    # a base of so many columns: what rows are about is all that covariances ask of it
    about = replace(base, kept=np.arange(count), K=np.zeros((count, len(base.dropped))))
    samples = tuple(log.undecimated() for log in problem.samples)
    return Regression(about, samples, GivenRows(groups, tuple(map(tuple, lists)), acting))
