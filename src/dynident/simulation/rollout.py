"""Closed-loop rollouts: a robot that follows a reference under its controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynident.control.controller import OF_JOINTS, UNLIMITED, Controller
from dynident.core.arrays import Array, Integers
from dynident.core.beside import compile_beside
from dynident.core.bundle import Bundle, keep_bundle
from dynident.core.compiled import is_compiled
from dynident.core.errors import InputError, RolloutError, check_type, refuse_unknown
from dynident.core.threads import map_in_threads
from dynident.dynamics.following import follow_friction
from dynident.dynamics.idim import Idim
from dynident.plant.plant import Plant, build_plant, keep_plant
from dynident.plant.state import DIVERGED, DONE, LOCKED, NOT_POSITIVE, OPEN
from dynident.simulation.adaptive import advance_paced
from dynident.simulation.backlash import BACKLASH, lash_model, rest_on_flank
from dynident.simulation.branches import Branch, find_branches
from dynident.simulation.implicit import find_stage_address
from dynident.simulation.integrators import INTEGRATORS
from dynident.simulation.kernel import advance_rollout
from dynident.simulation.law import (
    BIAS,
    COMPUTED_TORQUE,
    DAMPING,
    DEADBAND,
    DELAY,
    GAIN,
    GRAVITY,
    INTEGRAL,
    LIMIT,
    PLACE,
    PLAIN,
    PUNCH,
    SPEED,
    SPEED_LIMIT,
    ControlLaw,
)
from dynident.simulation.loop import MOST_STEPS, Loop, LoopColumn
from dynident.simulation.mount import mount_model
from dynident.simulation.ports import Inputs, Outputs, RolloutState, Scratch, build_scratch
from dynident.simulation.servo import slow_targets

BASE = 7 + 6 + 6
"""Columns of the motion of a base: pose, twist and acceleration."""
STRETCH = 4096
"""Samples rolled out at a time."""
CODES = {
    "none": PLAIN,
    "feed-forward": PLAIN,
    "gravity": GRAVITY,
    "computed-torque": COMPUTED_TORQUE,
}
"""What the kernel does for each of a controller's compensations."""


KINDS = {
    "gain": GAIN,
    "bias": BIAS,
    "delay": DELAY,
    "speed": SPEED,
    "place": PLACE,
    "limit": LIMIT,
    "damping": DAMPING,
    "integral": INTEGRAL,
    "deadband": DEADBAND,
    "punch": PUNCH,
    "speed_limit": SPEED_LIMIT,
}
START_KINDS = ("place", "speed")
"""Parameters of a loop that a motion can be differentiated by, and those of where it starts."""
PLAIN_KINDS = ("gain", "bias", "delay", "limit", *START_KINDS)
"""Those of any law; the others are of position servos."""


@dataclass(frozen=True)
class SimulatedMotion:
    """A simulated motion, one row a sample.

    Attributes
    ----------
    rate : float
        [Hz]
    q, dq, ddq : ndarray, shapes (samples, nq), (samples, dof), (samples, dof)
        As the robot moves, without noise.
    tau : ndarray, shape (samples, n)
        Torque of the drives [Nm or N].
    measured : ndarray, shape (samples, n)
        Positions as the encoders give them.
    mount : ndarray, shape (samples, 2, axes), optional
        Positions and speeds of what the base stands on.
    """

    rate: float
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    measured: Array
    mount: Array | None = None


@dataclass(frozen=True)
class SensitiveStretch:
    """A stretch of a motion with sensitivities; only those asked for have rows.

    Attributes
    ----------
    start : int
        Its first sample.
    motion : SimulatedMotion
    by_q, by_dq, by_ddq, by_tau : ndarray, shape (rows, n, columns)
        Of position, velocity, acceleration and drive torque by each column's parameter.
    """

    start: int
    motion: SimulatedMotion
    by_q: Array
    by_dq: Array
    by_ddq: Array
    by_tau: Array


SENSITIVITIES = ("q", "dq", "ddq", "tau")
SIGNALS = (*SENSITIVITIES, "measured")
WHOLE, STEPS, STEPS_AND_STAGES = range(3)
"""What `rehearsal.compile_part` compiles: a rollout, its longest functions, and these with implicit
stages."""


def prepare_rollouts(implicit: bool, alone: bool = True) -> None:
    """Have what a rollout needs compiled in processes of their own, unless that has been done.

    It takes half a minute. That a method simulates is known when a study is read: what is done
    until its first rollout, and the other processors, are time for it. A rollout from its beginning
    is of a process, but where this one begins with it (`alone` is False); the longest functions
    are of another, with the stages of implicit integrators where these are expected.
    """
    if not is_compiled(advance_rollout):
        parts = (STEPS_AND_STAGES if implicit else STEPS,)
        compile_beside("dynident.simulation.rehearsal", (WHOLE, *parts) if alone else parts)


def rollout(
    loop: Loop, theta: Array, progress: Callable[[str, float], None] | None = None
) -> SimulatedMotion:
    """Simulate the closed loop over the whole reference.

    >>> motion = di.rollout(di.Loop(model, pd([900.0, 600.0], [60.0, 40.0]), reference), theta)
    >>> motion.q.shape == reference.q.shape
    True

    Parameters
    ----------
    loop : Loop
    theta : ndarray, shape (standard parameters,)
    progress : callable, optional
        Called with "simulation" and the share that is done.

    Raises
    ------
    RolloutError
        When the mass matrix ceases to be positive definite, the motion diverges, or a loop becomes
        singular.
    """
    check_type("rollout", loop, Loop, "dynident.Loop(model, controller, reference) makes one")
    parts = []
    for part in sensitive_rollout(loop, theta):
        parts.append(part.motion)
        if progress is not None:
            done = loop.lead + part.start + len(part.motion.q)
            progress("simulation", done / loop.samples)
    names = (*SIGNALS, *(["mount"] if loop.mount is not None else []))
    return SimulatedMotion(
        loop.rate, *(np.concatenate([getattr(p, n) for p in parts]) for n in names)
    )


def sensitive_rollout(
    loop: Loop,
    theta: Array,
    columns: Sequence[int] | Integers = (),
    wanted: Sequence[str] = SENSITIVITIES,
    own: Sequence[LoopColumn] = (),
    begun: Array | None = None,
) -> Iterator[SensitiveStretch]:
    """Simulate, and differentiate the motion by parameters along the way.

    The sensitivities are exact for the discrete motion: each operation of the integrator,
    of the controller and of the friction is differentiated, except for the quantisation of an
    encoder, which is ignored.

    Parameters
    ----------
    loop : Loop
    theta : ndarray, shape (standard parameters,)
    columns : sequence of int
        Standard parameters to differentiate by, and after them the model's `shape_parameters`.
    wanted : sequence of str
        Which of `SENSITIVITIES` to hand out.
    own : sequence of LoopColumn
        Parameters of the loop, whose columns follow. Positions are the robot's: what an encoder
        reads moves with its bias by one more. Of a robot that starts where its encoders read q0
        the start moves with the bias.
    begun : ndarray, shape (n, columns), optional
        How the positions that the joints start from move with the parameters; by default not.

    Raises
    ------
    RolloutError
    """
    if np.any(loop.controller.backlash) or any(each.kind == BACKLASH for each in own):
        yield from roll_out_apart(loop, theta, columns, wanted, own)
        return
    if loop.mount is not None:
        yield from roll_out_mounted(loop, theta, columns, wanted, own)
        return
    branches = find_branches(loop) if len(columns) or len(own) else ()
    if branches:
        yield from roll_out_branches(branches, loop, theta, columns, wanted, own, begun)
        return
    idim, robot = loop.idim, loop.idim.robot
    if len(columns) or len(own):
        robot.refuse_loops("a derivative of the simulated motion")
    if len(columns) and robot.floating and loop.base is None:
        raise InputError("sensitivities need a fixed base, or one whose motion is given")
    for name in wanted:
        refuse_unknown(name, SENSITIVITIES, f"sensitivity {name!r} is not known")
    n, dof, c = robot.n, robot.dof, len(columns) + len(own)
    scheme = INTEGRATORS[loop.integrator]
    if c:
        refuse_chosen_steps(loop.integrator)
    prepare_rollouts(scheme.implicit, alone=False)
    plant, law, inputs, state, room = build_parts(loop, theta, columns, own)
    if begun is not None:
        state.SQ[dof - n :, : len(columns)] = begun
    h = 1.0 / (loop.rate * loop.substeps)
    # the share of a step that the first one takes, and what the next ones are chosen by
    pace = np.array([1.0, loop.tolerance, scheme.order])
    given = [keep_bundle(idim.tree), keep_bundle(plant), Bundle(law)]
    held = [Bundle(each) for each in (inputs, state, room)]
    solver = find_stage_address(*given, *held[1:]) if scheme.implicit else 0
    for start in range(loop.lead, loop.samples, STRETCH):
        stop = min(start + STRETCH, loop.samples)
        rows = stop - start
        out = Outputs(
            *(np.empty((rows, width)) for width in (len(state.q), dof, dof, n, n)),
            *(np.empty((rows * (c > 0 and s in wanted), n, c)) for s in SENSITIVITIES),
        )
        table, ends = (scheme.a, scheme.b, scheme.c), (start, stop, Bundle(out))
        if scheme.error is None:
            result = advance_rollout(*given, *table, loop.substeps, h, solver, *held, *ends)
        else:
            pair = (*table, scheme.error)
            result = advance_paced(*given, pair, pace, loop.substeps, h, *held, *ends)
        status, sample, velocity = result
        if status != DONE:
            raise RolloutError(describe_failure(loop, status, sample, velocity))
        if not (np.all(np.isfinite(state.SQ)) and np.all(np.isfinite(state.SV))):
            raise RolloutError(
                f"the sensitivities overflow before t = {stop / loop.rate:.4f} s: the loop is "
                "unstable, even where limits bound its motion"
            )
        motion = SimulatedMotion(loop.rate, out.q, out.dq, out.ddq, out.tau, out.measured)
        yield SensitiveStretch(
            start - loop.lead, motion, out.by_q, out.by_dq, out.by_ddq, out.by_tau
        )


def refuse_chosen_steps(integrator: str | None) -> None:
    """Refuse an integrator whose steps depend on the motion where that is differentiated."""
    if integrator is not None and INTEGRATORS[integrator].error is not None:
        raise InputError(
            f"integrator {integrator!r} has adaptive steps, in which no motion can be "
            "differentiated; take one of fixed steps, as ode3"
        )


def build_parts(
    loop: Loop,
    theta: Array,
    columns: Sequence[int] | Integers = (),
    own: Sequence[LoopColumn] = (),
) -> tuple[Plant, ControlLaw, Inputs, RolloutState, Scratch]:
    """What a rollout is given and carries along, for `sensitive_rollout`'s arguments."""
    idim = loop.idim
    n, dof, c = idim.robot.n, idim.robot.dof, len(columns) + len(own)
    assert loop.width is not None
    if len(columns) or loop.elements:
        plant = build_plant(idim, theta, loop.width, columns, loop.elements)
    else:
        plant = keep_plant(idim, theta, loop.width)
    law = build_law(loop, own, len(columns))
    targets, hurry = slow_targets(loop)
    state = build_initial_state(loop, law, plant, c)
    inputs = Inputs(
        reference=np.ascontiguousarray([targets, loop.reference.dq, loop.reference.ddq]),
        forward=predict_feed_forward(loop),
        external=check_input_signal(loop.external, loop.samples, dof, "external torque"),
        noise=check_input_signal(loop.noise, loop.samples, n, "position noise"),
        counts=np.zeros(n) if loop.count is None else np.array(loop.count, dtype=float),
        period=1.0 / loop.rate,
        base=align_base_motion(loop),
        hurry=hurry,
    )
    stages = len(INTEGRATORS[loop.integrator].b)
    room = build_scratch(idim.robot, idim.tree, plant, state, stages, loop.base is not None)
    return plant, law, inputs, state, room


def roll_out_mounted(
    loop: Loop,
    theta: Array,
    columns: Sequence[int] | Integers,
    wanted: Sequence[str],
    own: Sequence[LoopColumn],
) -> Iterator[SensitiveStretch]:
    """`sensitive_rollout` of a loop with a mount: of its robot's joints alone.

    The mount's joints are the robot's first ones, without a law: springs and dampers are
    parameters of the model.
    """
    mount = loop.mount
    assert mount is not None
    model, m = mount_model(loop.idim, mount.axes), len(mount.axes)
    # where targets begin, not where encoders read: no parameter moves that
    level = loop.reference.q[loop.lead] if mount.level is None else mount.level
    every = model.theta(mount, theta, level)
    count, shapes = len(loop.idim.parameters), len(every)
    of_mount = [k for k, each in enumerate(own) if each.kind not in KINDS]
    of_loop = [k for k, each in enumerate(own) if each.kind in KINDS]
    chosen = [int(model.own[c]) if c < count else shapes + int(c) - count for c in columns]
    chosen += [model.place(own[k].kind) for k in of_mount]
    others = [replace(own[k], joint=own[k].joint + m) for k in of_loop]
    order = np.argsort([*range(len(columns)), *(len(columns) + k for k in of_mount + of_loop)])
    for part in sensitive_rollout(
        add_mount_joints(loop, model.idim, m), every, chosen, wanted, others
    ):
        motion = part.motion
        seen = SimulatedMotion(
            motion.rate, motion.q[:, m:], motion.dq[:, m:], motion.ddq[:, m:], motion.tau[:, m:],
            motion.measured[:, m:], np.stack([motion.q[:, :m], motion.dq[:, :m]], axis=1),
        )  # fmt: skip
        by = (getattr(part, f"by_{name}")[:, m:, order] for name in SENSITIVITIES)
        yield SensitiveStretch(part.start, seen, *by)


def roll_out_apart(
    loop: Loop,
    theta: Array,
    columns: Sequence[int] | Integers,
    wanted: Sequence[str],
    own: Sequence[LoopColumn],
) -> Iterator[SensitiveStretch]:
    """`sensitive_rollout` of a loop whose motors and links have a lost motion between them.

    The robot's joints come first, then as many motors, on which the laws act by what the
    encoders of the joints read.
    """
    idim, n, control = loop.idim, loop.idim.robot.n, loop.controller
    refuse_lost_motion(loop, columns)
    model = lash_model(idim, control.backlash)
    count, places = len(idim.parameters), [int(c) for c in columns]
    chosen = [int(model.own[c]) if c < count else model.shapes + c - count for c in places]
    level = loop.reference.q[loop.lead]
    apart, slope = rest_on_flank(idim, theta, level, control.backlash)
    # of ours, those of the pair of masses that make them up
    pairs: list[tuple[int, LoopColumn]] = []
    lashes = [k for k, each in enumerate(own) if each.kind == BACKLASH]
    chosen += [model.shapes + len(idim.shape) + own[k].joint for k in lashes]
    for k, each in enumerate(own):
        if each.kind in ("bias", *START_KINDS):
            pairs.append((k, each))
        if each.kind != BACKLASH:
            pairs.append((k, replace(each, joint=each.joint + n)))
    total = np.zeros((len(chosen) + len(pairs), len(columns) + len(own)))
    total[: len(columns), : len(columns)] = np.eye(len(columns))
    for row, k in enumerate([*lashes, *(k for k, _ in pairs)], len(columns)):
        total[row, len(columns) + k] = 1.0
    begun = np.zeros((2 * n, len(chosen)))
    for column, k in enumerate(lashes, len(columns)):
        begun[n + own[k].joint, column] = slope[own[k].joint]
    wider = add_mount_joints(loop, model.idim, n)
    assert wider.q0 is not None
    assert wider.dq0 is not None
    q0, dq0 = wider.q0[n:], wider.dq0[n:]
    wider = replace(
        wider,
        q0=np.concatenate([q0, q0 + apart]),
        dq0=np.concatenate([dq0, dq0]),
        bias=None if loop.bias is None else np.tile(loop.bias, 2),
        reads=(*range(n), *range(n)),
    )
    every, others = model.theta(theta), [each for _, each in pairs]
    for part in sensitive_rollout(wider, every, chosen, wanted, others, begun):
        motion = part.motion
        seen = SimulatedMotion(
            motion.rate, motion.q[:, :n], motion.dq[:, :n], motion.ddq[:, :n], motion.tau[:, n:],
            motion.measured[:, :n],
        )  # fmt: skip
        by = (
            getattr(part, f"by_{name}")[:, n * (name == "tau") :][:, :n] @ total
            for name in SENSITIVITIES
        )
        yield SensitiveStretch(part.start, seen, *by)


def roll_out_branches(
    branches: Sequence[Branch],
    loop: Loop,
    theta: Array,
    columns: Sequence[int] | Integers,
    wanted: Sequence[str],
    own: Sequence[LoopColumn],
    begun: Array | None,
) -> Iterator[SensitiveStretch]:
    """`sensitive_rollout` of branches that nothing couples, side by side."""
    n, c = loop.idim.robot.n, len(columns) + len(own)
    kept, runs = list[list[int]](), list[Iterator[SensitiveStretch]]()
    for branch in branches:
        every, chosen, others = branch.list_columns(loop.idim, columns, own)
        start = None if begun is None else begun[branch.joints][:, every[: len(chosen)]]
        alone = branch.loop(loop), theta[branch.parameters]
        kept.append(every)
        runs.append(sensitive_rollout(*alone, chosen, wanted, others, start))

    def gather(parts: Sequence[SensitiveStretch]) -> SensitiveStretch:
        rows = len(parts[0].motion.q)
        motion = [np.empty((rows, n)) for _ in SIGNALS]
        by = [np.zeros((rows * (name in wanted), n, c)) for name in SENSITIVITIES]
        for branch, every, part in zip(branches, kept, parts, strict=True):
            for signal, name in zip(motion, SIGNALS, strict=True):
                signal[:, branch.joints] = getattr(part.motion, name)
            for name in wanted if every else ():
                whole = by[SENSITIVITIES.index(name)]
                whole[:, branch.joints[:, None], every] = getattr(part, f"by_{name}")
        return SensitiveStretch(parts[0].start, SimulatedMotion(loop.rate, *motion), *by)

    for _ in range(loop.lead, loop.samples, STRETCH):
        yield gather([*map_in_threads(next, runs)])


def refuse_lost_motion(loop: Loop, columns: Sequence[int] | Integers) -> None:
    """Refuse what a lost motion is not simulated with."""
    control, idim = loop.controller, loop.idim
    if control.rate is not None or control.compensation != "none":
        raise InputError("a backlash needs a continuous servo without compensation")
    if loop.mount is not None or loop.noise is not None or idim.loaded:
        raise InputError(
            "a backlash is simulated without a mount, noise, and friction that depends on the load"
        )
    if any(c < idim.inertial for c in columns):
        raise InputError("a backlash is fitted under links that are fixed")


def add_mount_joints(loop: Loop, idim: Idim, m: int) -> Loop:
    """The same loop of a model with m joints more in front, on which nothing acts."""
    begin = None if loop.mount is None else loop.mount.start
    q, dq = np.zeros((2, m)) if begin is None else begin
    q0 = loop.reference.q[0] if loop.q0 is None else loop.q0
    dq0 = loop.reference.dq[0] if loop.dq0 is None else loop.dq0

    def wider(signal: Array | None, fill: float = 0.0) -> Array | None:
        return None if signal is None else pad_in_front(signal, m, fill, -1)

    control, reference = loop.controller, loop.reference
    fills = {"gain": 1.0, **dict.fromkeys(UNLIMITED, np.inf)}
    laws: dict[str, Any] = {
        k: pad_in_front(getattr(control, k), m, fills.get(k, 0.0)) for k in OF_JOINTS
    }
    laws["backlash"] = np.zeros(m + control.n)
    return replace(
        loop,
        idim=idim,
        controller=replace(control, **laws),
        reference=replace(
            reference,
            q=pad_in_front(reference.q, m, axis=1),
            dq=pad_in_front(reference.dq, m, axis=1),
            ddq=pad_in_front(reference.ddq, m, axis=1),
        ),
        width=wider(loop.width, 1.0),
        external=wider(loop.external),
        noise=wider(loop.noise),
        count=wider(loop.count),
        elements=tuple(replace(each, joint=each.joint + m) for each in loop.elements),
        q0=np.concatenate([q, q0]),
        dq0=np.concatenate([dq, dq0]),
        bias=wider(loop.bias),
        model=None,  # of a compensation, which is refused
        mount=None,
    )


def pad_in_front(values: Array, m: int, fill: float = 0.0, axis: int = 0) -> Array:
    """Values with m more in front along an axis."""
    shape = list(np.shape(values))
    shape[axis] = m
    return np.concatenate([np.full(shape, fill), values], axis=axis)


def build_law(loop: Loop, own: Sequence[LoopColumn] = (), first: int = 0) -> ControlLaw:
    """The controller on the integrator's clock, and which of its parameters are differentiated."""
    control, idim = loop.controller, loop.idim
    fitted = any(each.kind not in START_KINDS for each in own)
    states = control.states and not control.edge
    if fitted and (states or control.compensation != "none" or control.rate is not None):
        raise InputError(
            "gains, biases and delays are found for continuous controllers without states and "
            "compensation: p, pd, p-p and servo"
        )
    beyond = sorted({each.kind for each in own} & set(KINDS) - set(PLAIN_KINDS))
    if beyond and not control.edge:
        raise InputError(f"{', '.join(beyond)}: found for controllers of kind 'servo' alone")
    hold, delay = loop.steps
    late = control.delay * loop.rate if control.rate is None else 0.0
    bias = np.zeros(idim.robot.n) if loop.bias is None else np.array(loop.bias, dtype=float)
    parameter = np.array([(KINDS[each.kind], each.joint, first + k) for k, each in enumerate(own)])
    phi = np.zeros((idim.tree.bodies, 10))
    rotors = np.zeros((idim.tree.dof, idim.tree.dof))
    if loop.model is not None and control.compensation != "none":
        model = build_plant(idim, loop.model, np.ones(idim.robot.n))
        phi, rotors = model.phi, model.rotors
    names = ("A", "B", "C", "D", "antiwindup", "band", "gain", "limit", "deadband", "punch")
    arrays = {
        key: np.ascontiguousarray(getattr(loop if key == "gain" else control, key), dtype=float)
        for key in names
    }
    return ControlLaw(
        **arrays,
        edge=control.edge,
        hold=hold,
        delay=delay,
        compensation=CODES[control.compensation],
        phi=phi,
        rotors=rotors,
        held=int(loop.held),
        late=late,
        bias=bias,
        reads=np.arange(control.n) if loop.reads is None else np.array(loop.reads),
        parameter=parameter.astype(np.int64).reshape(-1, 3),
    )


def build_initial_state(loop: Loop, law: ControlLaw, plant: Plant, columns: int) -> RolloutState:
    """The robot on its reference, controllers at rest there, and friction in its first state."""
    robot = loop.idim.robot
    n, dof, m = robot.n, robot.dof, law.C.shape[1]
    place, twist = (np.eye(7)[6], np.zeros(6)) if robot.floating else (np.zeros(0), np.zeros(0))
    if loop.base is not None:
        place, twist = loop.base[loop.lead, :7], loop.base[loop.lead, 7:13]
    q = np.concatenate([place, loop.reference.q[0]]) if loop.q0 is None else loop.q0
    dq = np.concatenate([twist, loop.reference.dq[0]]) if loop.dq0 is None else loop.dq0
    if np.shape(q) != (dof + robot.floating,) or np.shape(dq) != (dof,):
        raise InputError(
            f"the start has shapes {np.shape(q)} and {np.shape(dq)}, not {(dof + robot.floating,)} "
            f"and {(dof,)}"
        )
    if not (np.all(np.isfinite(q)) and np.all(np.isfinite(dq))):
        raise InputError("the start holds values that are not finite")
    q, dq = np.array(q, dtype=float), np.array(dq, dtype=float)
    # a start is what encoders read
    q[len(q) - n :] -= law.bias
    closure = loop.idim.structure.closure
    if closure is not None:
        q = closure.settle(q, "the start")
        dq = closure.find_null_space(q[None])[0] @ dq
    SQ, SV = np.zeros((2, dof, columns))
    for kind, joint, column in law.parameter:
        if kind == BIAS:
            SQ[dof - n + joint, column] = -1.0
        elif kind == SPEED:
            SV[dof - n + joint, column] = 1.0
        elif kind == PLACE:
            SQ[dof - n + joint, column] = 1.0
    if robot.floating:
        norm = float(np.linalg.norm(q[3:7]))
        if norm == 0.0:
            raise InputError("the start's quaternion (x, y, z, w) is zero")
        q[3:7] /= norm
    return RolloutState(
        q=q,
        dq=dq,
        z=solve_resting_states(loop.controller, np.asarray(q)[len(q) - n :]),
        ring=np.zeros((law.delay + 1, n)),
        at=np.zeros(1, dtype=np.int64),
        memory=plant.elements.rest.copy(),
        SQ=SQ,
        SV=SV,
        SZ=np.zeros((n, m, columns)),
        SU=np.zeros((law.delay + 1, n, columns)),
        SM=np.zeros((*plant.elements.rest.shape, columns)),
    )


def solve_resting_states(controller: Controller, q: Array) -> Array:
    """Controller states that stay where they are while the robot rests on its reference.

    ``A z + B w = 0``, or ``= z`` of a sampled one; integrators, which may rest anywhere,
    start from zero.
    """
    n, m = controller.C.shape
    z = np.zeros((n, m))
    for j in range(n if m else 0):
        w = np.array([q[j], 0.0, 0.0, q[j], 0.0])
        system = controller.A[j] - (np.eye(m) if controller.rate is not None else 0.0)
        z[j] = np.linalg.lstsq(system, -controller.B[j] @ w, rcond=None)[0]
    return z


def predict_feed_forward(loop: Loop) -> Array:
    """Model torques along the reference, or no rows."""
    n = loop.idim.robot.n
    if loop.controller.compensation != "feed-forward" or loop.model is None:
        return np.zeros((0, n))
    along = loop.reference
    conditions = follow_friction(loop.idim, along.q, along.dq, along.rate)
    return loop.idim.torque(loop.model, along.q, along.dq, along.ddq, conditions=conditions)


def check_input_signal(signal: Array | None, samples: int, width: int, what: str) -> Array:
    """An optional input as the kernel takes it: no rows where there is none."""
    if signal is None:
        return np.zeros((0, width))
    if signal.shape != (samples, width):
        raise InputError(f"the {what} has shape {signal.shape}, not {(samples, width)}")
    if not np.all(np.isfinite(signal)):
        raise InputError(f"the {what} holds values that are not finite")
    return np.array(signal, dtype=float, order="C")


def align_base_motion(loop: Loop) -> Array:
    """The given motion of a base, its quaternions on one side of their sphere; else no rows."""
    found = check_input_signal(loop.base, loop.samples, BASE, "motion of the base")
    # q and -q are one orientation: interpolated from one to the other the base would turn round
    turned = np.sum(found[1:, 3:7] * found[:-1, 3:7], axis=1) < 0.0
    found[1:, 3:7] *= np.where(np.cumsum(turned) % 2, -1.0, 1.0)[:, None]
    return found


def describe_failure(loop: Loop, status: int, sample: int, velocity: int) -> str:
    """Why a rollout ended early, in one line."""
    robot = loop.idim.robot
    joint = velocity - (robot.dof - robot.n)
    name = robot.joint_names[joint] if joint >= 0 else robot.base_link
    when = f"at t = {(sample - loop.lead) / loop.rate:.4f} s"
    if status == NOT_POSITIVE:
        return (
            f"the simulated mass matrix is not positive definite {when} ({name}): these "
            "parameters are not those of a robot"
        )
    if status == DIVERGED:
        return f"the simulated motion diverges {when} at {name}: check the gains, or raise substeps"
    if status == LOCKED:
        return (
            f"the friction of {name} takes up as much as its load grows {when}: such a drive locks "
            "itself, and how it moves is not determined"
        )
    if status == OPEN:
        return (
            f"a loop cannot be closed, or is singular, {when}: check the gains, raise substeps, or "
            "keep away from where the chain ends"
        )
    if INTEGRATORS[loop.integrator].error is not None:
        return (
            f"the tolerance of {loop.tolerance:g} takes more than {MOST_STEPS} steps {when}: raise "
            "it or the width, or take sdirk2"
        )
    return f"the step found no solution {when} ({name}): raise substeps or the width"
