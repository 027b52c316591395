"""CLOE on logs of encoders alone: drives and loop fitted, the links as their file has them.

One Levenberg-Marquardt iteration with exact sensitivities over all that is unknown, be it of the
model (rotors, friction and its shapes) or of the loop (delay of the targets, biases of the
encoders, gains of the drives). Each step is the cone problem of all constrained methods, so that
bounds, fixed and equal values are constraints like any other, and beliefs are rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator
from scipy.special import chdtri

from dynident.conic.cones import Cone, Definite, Equal, Positive
from dynident.conic.solve import ConeSolution, solve_cone_problem
from dynident.consistency.constraints import Bounds, Constraint, Fixed, PseudoInertia
from dynident.consistency.constraints.values import Belief, Tied, listed
from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError, RolloutError
from dynident.core.options import InPython, Options
from dynident.core.schema import OneOf
from dynident.core.text import nearest
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.idim import Idim, build_idim
from dynident.estimators.closed_loop import Simulation, auxiliary_model, stiffness_warnings
from dynident.estimators.covariance import ErrorBars, Scores, Spread, named, spread_of
from dynident.estimators.estimate import Estimate, Fitted, Shape
from dynident.estimators.iteration import explained, nominal_values
from dynident.recording.filters import DecimationFilter
from dynident.recording.prepare import Samples
from dynident.regression.factors import GroupFactor, compress
from dynident.regression.problem import Problem, Regression
from dynident.regression.rows import GivenRows, RowGroup, Rows, torque_groups
from dynident.regression.statistics import residuals
from dynident.regression.weighted import group_sigma
from dynident.simulation.controller import QREF
from dynident.simulation.mount import AXES, known_axes, mounted
from dynident.simulation.mount import names as mount_names
from dynident.simulation.plant import mean_inertia
from dynident.simulation.rollout import START_KINDS, LoopColumn, sensitive_rollout

ITERATIONS = 60
CONVERGED, SEEN = 1e-4, 0.1
"""Largest change of the last step, as a share and in standard deviations."""
STALLED = 1e-6
"""Relative decrease of the criterion below which a step is the last."""
UNSEEN = 0.01
"""Decrease below which it is, too: a tenth of a standard deviation, squared."""
DAMPING, LARGEST_DAMPING = 1e-2, 1e8
INSTANTS_HZ = 200.0
"""Positions are fitted at about this rate: their errors are smooth."""
LONGEST_DELAY = 0.1
"""Of targets, unless a constraint says otherwise [s]."""
SMALLEST = 1e-6
"""Rotor inertias and friction that have to be positive are at least so large, in SI units."""
START = 1e-2
"""Drives' parameters that have to be positive start from so much at least, in SI units."""
MOST_STARTS = 60
"""Joints at the starts of runs, whose readings and speeds there are fitted beside all else; of
more they are as read."""
EVEN, UNEVEN = "coulomb-viscous", 0.6
"""Friction whose errors are looked at for another that changes along a turn, and the share of a
joint's error that the latter has to leave to be named."""
START_DELAY = 1.0
"""Of the targets, where the iterations start [samples]."""

UNITS = {"delay": "s", "bias": "rad", "gain": "Nm per unit"}
"""Of what is fitted of the loop."""
MOUNT_HZ = (2.0, 4.0, 7.0, 12.0, 20.0)
"""Natural frequencies of a mount that fits are started from."""
MOUNT_DAMPING, MOUNT_INERTIA = 0.1, 0.5
"""Its damping ratio there, and inertia of base and stand as a share of the robot's."""
MOUNT_RIGID_HZ, MOUNT_HEAVY = 60.0, 20.0
"""Stands that are stiffer or heavier than these are rigid, by the robot's own inertia."""
MOUNT_LEVEL = 0.95
"""Of the test that a mount gives way at all."""


def joined(kinds: object) -> object:
    """A list of words as one."""
    return ",".join(map(str, kinds)) if isinstance(kinds, list | tuple) else kinds


def each_axis(axes: str) -> str:
    """Refuse what is no axis of a mount, and order them."""
    named = [axis.strip() for axis in axes.split(",") if axis.strip()]
    known_axes(named)
    return ",".join(axis for axis in AXES if axis in named)


def each_known(kinds: str) -> str:
    """Refuse what is not of a loop."""
    known = OneOf(UNITS)
    return ",".join(known(kind.strip()) for kind in kinds.split(",") if kind.strip())


@dataclass(frozen=True)
class Fitting(Options):
    """What `cloe` fits: options of logs without torque."""

    links: Annotated[
        Literal["free", "fixed", "prior"] | None,
        "their inertials: `free`, in base parameters; `fixed` as the robot file has them, as for "
        "logs without torque unless told otherwise; or fitted about these under a `prior`",
    ] = None
    loop: Annotated[
        Annotated[str, BeforeValidator(joined), AfterValidator(each_known)] | None,
        "what is fitted of the loop where links are not free: the `delay` of its targets, each "
        "encoder's `bias`, each drive's `gain`, or several of them with commas between; the delay "
        "unless told otherwise",
    ] = None
    mount: Annotated[
        Annotated[str, BeforeValidator(joined), AfterValidator(each_axis)] | None,
        "axes of the base that give way to springs and dampers, which are fitted too, links being "
        "fixed: of `x`, `y`, `z`, `roll`, `pitch` and `yaw`, with commas between",
    ] = None
    constraints: Annotated[
        tuple[Constraint, ...],
        InPython(),
        "`bounds`, `fixed`, `tied` and `belief` of fixed links; `[[constraint]]` of a study",
    ] = ()


@dataclass(frozen=True, eq=False)
class Unknowns:
    """What is fitted: drives' parameters, shapes of their friction, then the loop's.

    Attributes
    ----------
    idim : Idim
    own : tuple of LoopColumn
    unit : ndarray, shape (unknowns,)
        By which the cone problem scales them.
    first : int
        The first standard parameter: the first link's, or where links are fixed the first drive's.
    runs : int
        Runs whose start is fitted, too: nobody asks for it, but what a reading of it errs would
        pass for friction.
    """

    idim: Idim
    own: tuple[LoopColumn, ...]
    unit: Array
    first: int
    runs: int

    @property
    def columns(self) -> range:
        """Of the model, as rollouts are differentiated by them."""
        idim = self.idim
        return range(self.first, len(idim.parameters) + len(idim.shape))

    @property
    def names(self) -> tuple[str, ...]:
        """``Ia1``, ``vs3``, ``bias2``, ``delay``."""
        idim = self.idim
        return (
            *idim.names[self.first :],
            *(shape.name for shape in idim.shape_parameters),
            *(f"{each.kind}{each.joint + 1}" if each.kind in ("gain", "bias") else each.kind
              for each in self.own),
            *(f"{kind} {r + 1} of {name}" for r in range(self.runs)
              for kind in START_KINDS for name in self.idim.robot.joint_names),
        )  # fmt: skip

    @property
    def units(self) -> tuple[str, ...]:
        """As far as they are known: those of the loop."""
        plain = len(self.columns)
        return ("",) * plain + tuple(UNITS.get(each.kind, "") for each in self.own)

    @property
    def asked(self) -> int:
        """How many are asked for: all but the starts, which come last."""
        return len(self.columns) + len(self.own)

    def starts(self, x: Array) -> Array:
        """What encoders read there and speeds, shape (runs, 2, n) [rad or m, a second]."""
        return x[self.asked :].reshape(self.runs, 2, self.idim.robot.n)

    @property
    def linear(self) -> int:
        """How many are standard parameters."""
        return len(self.idim.parameters) - self.first

    def expanded(self, given: str | Sequence[str]) -> tuple[str, ...]:
        """Names, of which a symbol stands for that of every joint.

        Raises
        ------
        InputError
        """
        found: list[str] = []
        for name in listed(given):  # type: ignore[arg-type]
            every = [n for n in self.names if n.rstrip("0123456789") == name]
            if name in self.names:
                every = [name]
            if not every:
                raise InputError(f"{name!r} is not fitted{nearest(name, self.names)}")
            found += every
        return tuple(found)

    def row(self, name: str) -> Array:
        """The row that gives a parameter from the scaled unknowns."""
        k = self.names.index(name)
        return np.asarray(self.unit[k] * (np.arange(len(self.unit)) == k), dtype=float)

    @property
    def links(self) -> tuple[str, ...]:
        """Names of the bodies."""
        return self.idim.robot.links

    def link(self, name: str) -> int:
        """Index of a body by its link's name.

        Raises
        ------
        InputError
        """
        if name not in self.links:
            raise InputError(f"constraint: {name!r} is no link{nearest(name, self.links)}")
        return self.links.index(name)

    def body(self, link: int) -> Array:
        """``phi = body @ x``: a body's 10 inertial parameters, shape (10, unknowns)."""
        out = np.zeros((10, len(self.unit)))
        span = np.arange(10 * link, 10 * link + 10)
        out[np.arange(10), span] = self.unit[span]
        return out

    def mass(self, link: int) -> float:
        """Unit of a body's mass [kg]."""
        return max(float(self.idim.robot.nominal[link, 0]), 1e-3)

    def theta(self, x: Array) -> Array:
        """Standard parameters; the links are those of the file."""
        theta = self.idim.nominal.copy()
        theta[self.first :] = x[: self.linear]
        return theta

    def shaped(self, x: Array) -> Idim:
        """The model at its shapes."""
        values = x[self.linear : len(self.columns)]
        return self.idim.shaped(values) if len(values) else self.idim

    def tuned(self, x: Array, simulation: Simulation) -> Simulation:
        """The loop as it is fitted, and as it was where it is not."""
        plain = slice(len(self.columns), self.asked)
        return simulation.told(dict(zip(self.names[plain], x[plain].tolist(), strict=True)))


@dataclass(frozen=True, eq=False)
class Admitted:
    """What the unknowns may be.

    Attributes
    ----------
    cones : tuple of Cone
        On scaled unknowns.
    rows, target : ndarray, shapes (beliefs, unknowns) and (beliefs,)
        ``rows @ x - target`` in standard deviations, of unscaled ones.
    words : str
    """

    cones: tuple[Cone, ...]
    rows: Array
    target: Array
    words: str

    def penalty(self, x: Array) -> float:
        """What beliefs add to the criterion."""
        return float(np.sum((self.rows @ x - self.target) ** 2))


def fits_drives(problem: Problem, fitting: Fitting) -> bool:
    """Whether links are fixed, or nearly so, and the drives fitted."""
    if fitting.links is not None:
        return fitting.links != "free"
    return any(log.torque != "measured" for log in problem.samples)


def drives_output_error(
    problem: Problem, simulation: Simulation, fitting: Fitting, bars: ErrorBars
) -> Estimate:
    """CLOE of the drives and the loop, the links as the robot file has them.

    Raises
    ------
    InputError
        For a file without inertials, loops that are not differentiated, unknown names.
    ComputationError
        When the loop cannot be simulated, chatters, or the iterations do not settle.
    """
    idim, robot = problem.idim, problem.robot
    if not robot.has_nominal:
        raise InputError(f"{robot.name}: its file has no inertials, which this fit of drives needs")
    simulation = simulation.of_encoders()
    refuse_loop(problem, simulation)
    if not idim.drives:
        raise InputError(f"{robot.name}: friction 'none' leaves nothing to fit")
    if fitting.mount and fitting.links == "prior":
        raise InputError("a mount is fitted under fixed links; leave links = 'prior' out")
    own = loop_columns(fitting, simulation, robot.n)
    first = 0 if fitting.links == "prior" else idim.inertial
    starts = starts_of(problem, simulation)
    x = np.concatenate([start_of(problem, simulation, own, first), starts.ravel()])
    unknowns = Unknowns(idim, own, np.ones(len(x)), first, len(starts))
    found, free, unknowns = settled(problem, simulation, unknowns, fitting, x)
    doubts: tuple[str, ...] = ()
    if fitting.mount:
        rigid = found
        axes = tuple(fitting.mount.split(","))
        unknowns, fitting, x = on_mount(problem, simulation, unknowns, fitting, axes, found.x)
        found, free, unknowns = settled(problem, simulation, unknowns, fitting, x)
        doubts = mount_doubts(rigid.here, found.here, axes)
    refuse_chatter(problem, simulation, unknowns, found.x)
    asked = replace(unknowns, unit=np.ones(unknowns.asked), runs=0)
    cones = admitted(asked, fitting.constraints).cones
    return concluded(problem, simulation, unknowns, free, found, bars, cones, doubts)


def settled(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, fitting: Fitting, x: Array
) -> tuple[Minimum, Admitted, Unknowns]:
    """The minimum that is reached from x, and the unknowns in the units of the start.

    Raises
    ------
    ComputationError
        When the loop cannot be simulated there, or the iterations do not settle.
    """
    x = projected(admitted(unknowns, fitting.constraints), x)
    try:
        here = linearised(problem, simulation, unknowns, x)
    except RolloutError as error:
        raise explained(error, 1, "the law's torque") from error
    free = admitted(unknowns, fitting.constraints)
    unknowns = replace(unknowns, unit=scales(here, free))
    free = admitted(unknowns, fitting.constraints)
    # readings at the starts are all but right: free from the first step they lead astray
    kept = held_readings(unknowns, x)
    near = minimised(problem, simulation, unknowns, replace(free, cones=(*free.cones, *kept)), x,
                     here)  # fmt: skip
    if not kept:
        return near, free, unknowns
    found = minimised(problem, simulation, unknowns, free, near.x, near.here, near=True)
    history = np.vstack([near.history, found.history[1:]])
    rollouts = near.rollouts + found.rollouts
    return replace(found, history=history, rollouts=rollouts), free, unknowns


def on_mount(
    problem: Problem,
    simulation: Simulation,
    unknowns: Unknowns,
    fitting: Fitting,
    axes: tuple[str, ...],
    x: Array,
) -> tuple[Unknowns, Fitting, Array]:
    """The unknowns with those of a mount, what bounds these, and what leaves the least errors.

    Raises
    ------
    ComputationError
        When the robot cannot be simulated on any such mount.
    """
    k, carried = unknowns.asked, mounted(problem.idim, axes)
    log = problem.samples[0]
    robot = np.hstack([np.zeros((1, len(axes))), log.q[:1]])
    bodies = carried.idim.join(carried.idim.robot.nominal)
    inertia = mean_inertia(carried.idim, bodies, robot)[: len(axes)]
    mine = tuple(LoopColumn(name) for name in mount_names(axes))
    whole = (1.0 + MOUNT_INERTIA) * inertia
    fastest = 2.0 * np.pi * MOUNT_RIGID_HZ
    most = np.column_stack([MOUNT_HEAVY * inertia, 2.0 * fastest * whole, fastest**2 * whole])
    bounds = [
        Bounds((c.kind,), upper=float(high)) for c, high in zip(mine, most.ravel(), strict=True)
    ]
    wider = replace(unknowns, own=(*unknowns.own, *mine), unit=np.ones(len(x) + len(mine)))
    best, least = None, np.inf
    for hertz in MOUNT_HZ:
        speed = 2.0 * np.pi * hertz
        values = np.column_stack([
            MOUNT_INERTIA * inertia, 2.0 * MOUNT_DAMPING * speed * whole, speed**2 * whole,
        ])  # fmt: skip
        start = np.concatenate([x[:k], values.ravel(), x[k:]])
        try:
            here = linearised(problem, simulation, wider, start)
        except RolloutError:
            continue
        left = float(np.sum(np.log(here.rms())))
        if left < least:
            best, least = start, left
    if best is None:
        raise ComputationError(f"the robot cannot be simulated on a mount of {', '.join(axes)}")
    return wider, replace(fitting, constraints=(*fitting.constraints, *bounds)), best


def mount_doubts(rigid: Linearised, soft: Linearised, axes: Sequence[str]) -> tuple[str, ...]:
    """What speaks against a mount: errors that fall no further than by chance.

    The likelihood ratio of errors that count as many as are independent.
    """
    rows = np.array([group.rows for group in rigid.factors]) / rigid.memory
    ratio = float(np.sum(rows * np.log(rigid.squares() / soft.squares())))
    added = len(mount_names(axes))
    if ratio > chdtri(added, 1.0 - MOUNT_LEVEL):
        return ()
    before, after = (float(np.sqrt(np.mean(each.rms() ** 2))) for each in (rigid, soft))
    return (
        f"no compliance of the mount is visible: with it the errors are {1e3 * after:.4g} mrad, "
        f"without it {1e3 * before:.4g}",
    )


def refuse_loop(problem: Problem, simulation: Simulation) -> None:
    """Refuse gains of zero, and delays that no log shows.

    Raises
    ------
    InputError
    """
    control, robot = simulation.controller, problem.robot
    stiff = control.D[:, QREF] != 0.0
    for name, has in zip(robot.joint_names, stiff | (control.states > 0), strict=True):
        if not has:
            raise InputError(f"[controller] the gain on the target of {name} is zero: give kp")
    shortest = min(stop - start for log in problem.samples for start, stop in log.runs)
    longest = shortest / problem.samples[0].rate
    if control.delay >= longest:
        raise InputError(
            f"[controller] a delay of {control.delay:g} s is longer than the log of {longest:g} s"
        )


def loop_columns(fitting: Fitting, simulation: Simulation, n: int) -> tuple[LoopColumn, ...]:
    """Parameters of the loop that are fitted.

    Raises
    ------
    InputError
    """
    kinds = ("delay",) if fitting.loop is None else tuple(filter(None, fitting.loop.split(",")))
    control = simulation.controller
    if control.states or control.compensation != "none" or control.rate is not None:
        if fitting.loop:
            raise InputError(
                f"loop = {fitting.loop!r} is fitted behind continuous controllers without states "
                "and compensation: p, pd and p-p, without a rate"
            )
        return ()
    found: list[LoopColumn] = []
    for kind in dict.fromkeys(kinds):
        joints = range(1) if kind == "delay" else range(n)
        found += [LoopColumn(kind, j) for j in joints]
    return tuple(found)


def start_of(
    problem: Problem, simulation: Simulation, own: Sequence[LoopColumn], first: int
) -> Array:
    """Drives that give the law's torque best, the loop as it is told, targets a little late."""
    idim = problem.idim
    theta = nominal_values(problem)
    positive = np.array([p.positive for p in idim.parameters])
    positive[: idim.inertial] = False
    theta[positive] = np.maximum(theta[positive], START)
    gain, bias = simulation.controller.gain, simulation.bias or (0.0,) * problem.robot.n
    late = simulation.controller.delay or START_DELAY / problem.samples[0].rate
    values = {"gain": list(gain), "bias": list(bias), "delay": [late]}
    return np.array([*theta[first:], *idim.shape, *(values[c.kind][c.joint] for c in own)])


def starts_of(problem: Problem, simulation: Simulation) -> Array:
    """Readings and speeds with which the runs begin; of many runs none are fitted."""
    n, loops = problem.robot.n, auxiliary_model(problem, simulation).loops
    found = [
        (loop.q0, loop.dq0)
        for own in loops
        for _, _, loop in own
        if loop.q0 is not None and loop.dq0 is not None
    ]
    if len(found) * n > MOST_STARTS:
        return np.zeros((0, 2, n))
    return np.array(found).reshape(-1, 2, n)


def held_readings(unknowns: Unknowns, x: Array) -> tuple[Cone, ...]:
    """What the encoders read at the starts as it is."""
    if not unknowns.runs:
        return ()
    first, n = unknowns.asked, unknowns.idim.robot.n
    places = [first + 2 * n * run + j for run in range(unknowns.runs) for j in range(n)]
    names = tuple(unknowns.names[k] for k in places)
    return (Equal(names, np.eye(len(x))[places], (x / unknowns.unit)[places]),)


def admitted(unknowns: Unknowns, constraints: Sequence[Constraint]) -> Admitted:
    """What can be, and what is known beside.

    Drives are positive, shapes within their ranges, links that are fitted consistent and about
    the file's, delays short.

    Raises
    ------
    InputError
        For constraints of other kinds, and names of what is not fitted.
    """
    idim, names = unknowns.idim, unknowns.names
    every: list[Constraint] = [Bounds((p.name,), lower=SMALLEST) for p in idim.drives if p.positive]
    every += [Bounds((s.name,), s.bounds.lower, s.bounds.upper) for s in idim.shape_parameters]
    every += [
        Bounds((name,), lower=SMALLEST)
        for name, each in zip(names[len(unknowns.columns) :], unknowns.own, strict=False)
        if each.kind not in ("bias", "delay")
    ]
    bounded = {
        name
        for c in constraints
        if isinstance(c, Bounds) and c.upper is not None
        for name in unknowns.expanded(c.parameters)
    }
    if "delay" in names:
        upper = None if "delay" in bounded else LONGEST_DELAY
        every.append(Bounds(("delay",), lower=0.0, upper=upper))
    rows, target, words = [], [], []
    for constraint in constraints:
        if not isinstance(constraint, Bounds | Fixed | Tied | Belief):
            if unknowns.first:
                raise InputError(
                    f"links are fixed, so that {type(constraint).__name__} has nothing to say; "
                    "take links = 'prior', or bounds, fixed, tied and belief on drives"
                )
            every.append(constraint)
            continue
        chosen = unknowns.expanded(constraint.parameters)
        if isinstance(constraint, Belief):
            for name in chosen:
                rows.append((np.array(names) == name) / constraint.std)
                target.append(constraint.value / constraint.std)
            words.append(
                f"{', '.join(listed(constraint.parameters))} = {constraint.value:g} "
                f"+- {constraint.std:g}"
            )
        else:
            every.append(replace(constraint, parameters=chosen))
    count = len(names)
    beliefs = np.array(rows, dtype=float).reshape(-1, count)
    aims = np.array(target, dtype=float)
    if not unknowns.first:
        every += [PseudoInertia()]
        prior = Knowledge().of(idim.robot)
        own, aim = prior.rows(len(idim.parameters))
        beliefs = np.vstack([np.pad(own, ((0, 0), (0, count - own.shape[1]))), beliefs])
        aims = np.concatenate([aim, aims])
        words.insert(0, prior.words)
    cones = [cone for constraint in every for cone in constraint.cones(unknowns)]  # type: ignore[arg-type]
    return Admitted(tuple(cones), beliefs, aims, "; ".join(words))


def projected(free: Admitted, x: Array) -> Array:
    """The admitted point that is nearest to x."""
    return solve_cone_problem(np.eye(len(x)), x, free.cones).x


@dataclass(frozen=True, eq=False)
class Linearised:
    """Simulated positions about x: per joint the factor of ``[Psi | e]``, and the errors' size.

    Attributes
    ----------
    factors : tuple of GroupFactor
    memory : float
        How many errors are worth one: ``(1 + r) / (1 - r)``, r being the mean correlation of
        neighbours.
    """

    factors: tuple[GroupFactor, ...]
    memory: float

    def squares(self) -> Array:
        """Sum of each joint's squared errors."""
        return np.array([np.sum(group.factor[:, -1] ** 2) for group in self.factors])

    def rms(self) -> Array:
        """Of each joint's errors."""
        rms = np.sqrt(self.squares() / np.array([max(1, g.rows) for g in self.factors]))
        return np.asarray(np.maximum(rms, 1e-9 * max(float(rms.max()), 1e-300)))

    def sigma(self) -> Array:
        """What weighs the errors: as if they were as many as are independent."""
        return np.asarray(self.rms() * np.sqrt(self.memory))

    def system(self, sigma: Array) -> Array:
        """Rows ``[A | b]`` of the step, weighted."""
        return np.vstack([g.factor / s for g, s in zip(self.factors, sigma, strict=True)])


def scales(here: Linearised, free: Admitted) -> Array:
    """Steps that move positions by about their errors, or as far as is believed."""
    A = np.vstack([here.system(here.sigma())[:, :-1], free.rows])
    norms = np.linalg.norm(A, axis=0)
    return np.asarray(1.0 / np.maximum(norms, 1e-6 * max(float(norms.max()), 1e-300)))


def stretches(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array
) -> Iterator[tuple[int, np.ndarray, Array, Array]]:
    """Log, samples, derivatives and errors of the encoders' readings, stretch by stretch.

    Raises
    ------
    RolloutError
    """
    tuned = unknowns.tuned(x, simulation)
    auxiliary = auxiliary_model(
        Problem.of(shaped_base(problem, unknowns, x), problem.samples), tuned
    )
    theta, first, n = unknowns.theta(x), len(unknowns.columns), problem.robot.n
    biases = [(c.joint, first + k) for k, c in enumerate(unknowns.own) if c.kind == "bias"]
    starts, run = unknowns.starts(x), 0
    begin = [LoopColumn(kind, j) for kind in START_KINDS for j in range(n)] if len(starts) else []
    own = (*unknowns.own, *begin)
    for index, loops in enumerate(auxiliary.loops):
        log = problem.samples[index]
        step = max(1, round(log.rate / INSTANTS_HZ))
        for start, _, loop in loops:
            begun = replace(loop, q0=starts[run, 0], dq0=starts[run, 1]) if len(starts) else loop
            place = unknowns.asked + 2 * n * run
            for part in sensitive_rollout(begun, theta, unknowns.columns, ("q",), own):
                a = start + part.start
                sample = np.arange(a, a + len(part.motion.q))
                kept = sample % step == 0
                found = part.by_q[kept]
                by = np.zeros((*found.shape[:2], len(x)))
                by[:, :, : unknowns.asked] = found[:, :, : unknowns.asked]
                if len(starts):
                    by[:, :, place : place + 2 * n] = found[:, :, unknowns.asked :]
                for joint, column in biases:
                    by[:, joint, column] += 1.0
                error = log.measured[sample[kept]] - part.motion.measured[kept]
                yield index, sample[kept], by, error
            run += 1


def shaped_base(problem: Problem, unknowns: Unknowns, x: Array) -> BaseParameters:
    """The problem's base parameters with the friction's shapes at x."""
    return replace(problem.base, idim=unknowns.shaped(x))


def linearised(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array
) -> Linearised:
    """One rollout of all logs with its sensitivities.

    Raises
    ------
    RolloutError
    """
    n, count = problem.robot.n, len(x) + 1
    errors: list[Array] = []

    def blocks() -> Iterator[tuple[Array, ...]]:
        for _, _, by, error in stretches(problem, simulation, unknowns, x):
            errors.append(error)
            yield tuple(np.column_stack([by[:, j], error[:, j]]) for j in range(n))

    factors = compress(blocks(), problem.robot.joint_names, [count] * n)
    e = np.vstack(errors)
    r = np.sum(e[1:] * e[:-1], axis=0) / np.maximum(np.sum(e**2, axis=0), 1e-300)
    mean = min(max(float(np.mean(r)), 0.0), 0.999)
    return Linearised(factors, (1.0 + mean) / (1.0 - mean))


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the iterations ended."""

    x: Array
    here: Linearised
    solution: ConeSolution
    history: Array
    rollouts: int


def minimised(
    problem: Problem,
    simulation: Simulation,
    unknowns: Unknowns,
    free: Admitted,
    x: Array,
    here: Linearised,
    near: bool = False,
) -> Minimum:
    """Levenberg-Marquardt on ``sum_j ||e_j||^2 / sigma_j^2`` and the beliefs, under the cones.

    From a start that is `near` the minimum no step need lower the error.

    Raises
    ------
    ComputationError
    """
    damping, rollouts, history = DAMPING, 1, [x]
    for _ in range(ITERATIONS):
        sigma = here.sigma()
        rows = np.vstack([
            here.system(sigma), np.column_stack([free.rows, free.target - free.rows @ x]),
        ])  # fmt: skip
        R: Array = np.asarray(np.linalg.qr(rows, mode="r"))
        A, b = R[:, :-1] * unknowns.unit, R[:, -1]
        cost = float(np.sum(here.squares() / sigma**2)) + free.penalty(x)
        norms = np.maximum(np.linalg.norm(A, axis=0), 1e-9)
        std = unknowns.unit * np.sqrt(np.sum(np.linalg.pinv(A, rcond=1e-9) ** 2, axis=1))
        z = x / unknowns.unit
        while True:
            damp = np.sqrt(damping) * norms
            solution = solve_cone_problem(
                np.vstack([A, np.diag(damp)]), np.concatenate([b + A @ z, damp * z]), free.cones
            )
            new = solution.x * unknowns.unit
            rollouts += 1
            try:
                trial = linearised(problem, simulation, unknowns, new)
            except RolloutError:
                decrease = -np.inf
            else:
                decrease = cost - float(np.sum(trial.squares() / sigma**2)) - free.penalty(new)
            close = bool(np.all(np.abs(new - x) < np.maximum(SEEN * std, CONVERGED * np.abs(new))))
            least = max(STALLED * cost, UNSEEN)
            if decrease > 0.0 or (close and decrease > -least):
                break
            if damping > 1.0 and abs(decrease) < least:
                new, trial, close = x, here, True  # nothing but rounding and kinks is left
                break
            damping = max(10.0 * damping, DAMPING)
            if damping > LARGEST_DAMPING and (near or len(history) > 1):
                new, trial, close = x, here, True  # a kink of the motion: no step lowers the error
                break
            if damping > LARGEST_DAMPING:
                raise ComputationError(
                    "no step from the start lowers the error of the positions; check the gains, "
                    "the columns of the targets and the robot's joints"
                )
        damping = max(0.1 * damping, 1e-9)
        x, here = new, trial
        history.append(x)
        if close or decrease < least:
            return Minimum(x, here, solution, np.array(history), rollouts)
    raise ComputationError(
        f"the output error did not settle in {ITERATIONS} steps; fix or bound what the log does "
        "not tell ([[constraint]]), or fit less of the loop"
    )


def refuse_chatter(problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array) -> None:
    """Refuse an estimate whose simulated loop the integrator cannot follow.

    Raises
    ------
    ComputationError
    """
    tuned = unknowns.tuned(x, simulation)
    here = Problem.of(shaped_base(problem, unknowns, x), problem.samples)
    chatter = stiffness_warnings(auxiliary_model(here, tuned), unknowns.theta(x))
    if chatter:
        raise ComputationError(chatter[0])


def uneven_joints(
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
    found = linearised(
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


def uneven_words(joints: Sequence[str]) -> tuple[str, ...]:
    """What is said of them."""
    if not joints:
        return ()
    return (
        f"the errors of {', '.join(joints)} are those of friction that changes along a turn: try "
        "friction = 'uneven'",
    )


def concluded(
    problem: Problem,
    simulation: Simulation,
    unknowns: Unknowns,
    free: Admitted,
    found: Minimum,
    bars: ErrorBars,
    cones: tuple[Cone, ...],
    doubts: tuple[str, ...],
) -> Estimate:
    """Error bars on the face of the active constraints, and all that a result has."""
    x, base = found.x, shaped_base(problem, unknowns, found.x)
    count, weights, sigma = len(x), found.here.sigma(), found.here.rms()
    lists: list[list[Rows]] = [[] for _ in problem.samples]
    for index, sample, by, error in stretches(problem, simulation, unknowns, x):
        X = tuple(by[:, j] for j in range(problem.robot.n))
        y = tuple(error[:, j] + X[j] @ x for j in range(problem.robot.n))
        lists[index].append(Rows(X, y, (sample,) * problem.robot.n))
    groups = tuple(
        RowGroup(g.name, "m" if g.unit == "N" else "rad") for g in torque_groups(problem.robot)
    )
    # a base of so many columns: what rows are about is all that covariances ask of it
    about = replace(base, kept=np.arange(count), K=np.zeros((count, len(base.dropped))))
    samples = tuple(every_instant(log) for log in problem.samples)
    rows = Regression(about, samples, GivenRows(groups, tuple(map(tuple, lists)), count))
    errors = residuals(rows, x)
    faces, held = face_of(free.cones, found.solution, count)
    A = np.vstack([found.here.system(weights)[:, :-1], free.rows]) * unknowns.unit
    R = np.linalg.qr(A @ faces, mode="r")
    inverse = np.linalg.pinv(R, rcond=1e-9)
    gain = unknowns.unit[:, None] * (faces @ (inverse @ inverse.T) @ faces.T) * unknowns.unit
    spread = spread_of(Scores(rows, x, weights, sigma, errors), gain, bars)
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
    covariance = named(kind, Spread(spread.words, to_beta @ matrix @ to_beta.T), white)
    step = max(1, round(problem.samples[0].rate / INSTANTS_HZ))
    often = "" if step == 1 else f", one sample in {step}"
    steps = len(found.history) - 1
    tuned, asked = unknowns.tuned(x, simulation), unknowns.asked
    fitted = Fitted(
        unknowns.names[:asked],
        unknowns.units,
        x[:asked],
        np.sqrt(np.maximum(np.diag(matrix), 0.0))[:asked],
        tuned,
        matrix[:asked, :asked],
        cones,
        uneven_joints(problem, simulation, unknowns, x),
        doubts,
    )
    a, b = unknowns.linear, len(unknowns.columns)
    shape = Shape(unknowns.names[a:b], x[a:b], fitted.std[a:b])
    factors = problem.factors
    return Estimate(
        beta,
        theta,
        group_sigma(factors, beta, factors.ones),
        covariance,
        errors,
        steps,
        f"{links}, {count} parameters settled in {steps} steps, {found.rollouts} rollouts{often}",
        certificate=found.solution.certificate,
        active=held,
        prior=free.words or None,
        warnings=(*simulation.warnings, *uneven_words(fitted.uneven)),
        history=(base.matrix @ np.array([unknowns.theta(each) for each in found.history]).T).T,
        singular_values=np.asarray(np.linalg.svd(A, compute_uv=False)),
        shape=shape if len(shape.names) else None,
        fitted=fitted,
    )


def every_instant(log: Samples) -> Samples:
    """The same log with a row at every sample, as far as covariances ask."""
    return replace(log, filters=(DecimationFilter.design(log.rate, log.rate),) * len(log.filters))


def face_of(
    cones: Sequence[Cone], solution: ConeSolution, count: int
) -> tuple[Array, tuple[str, ...]]:
    """Directions that the active constraints leave, and the names of those that hold back.

    Returns
    -------
    ndarray, shape (count, free directions)
        Orthonormal, of scaled unknowns.
    tuple of str
    """
    rows, held = [np.zeros((0, count))], []
    for cone, face in zip(cones, solution.faces, strict=True):
        if isinstance(cone, Equal):
            rows.append(cone.G)
        elif isinstance(cone, Definite):
            # moves along the null directions of the matrix are held
            pairs = [(u, v) for k, u in enumerate(face.T) for v in face.T[: k + 1]]
            rows += [np.einsum("kij,i,j->k", cone.basis, u, v)[None] for u, v in pairs]
            held += [cone.name] * bool(pairs)
        elif isinstance(cone, Positive):
            rows.append(cone.G[face])
            held += [name for name, active in zip(cone.name, face, strict=True) if active]
    normals = np.vstack(rows)
    if not len(normals):
        return np.eye(count), ()
    _, s, vt = np.linalg.svd(normals)
    rank = int(np.sum(s > 1e-9 * max(float(s.max()), 1e-300)))
    return vt[rank:].T, tuple(held)
