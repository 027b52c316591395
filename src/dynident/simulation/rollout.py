"""Closed-loop rollouts: a robot that follows a reference under its controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.dynamics.tree import Integers
from dynident.errors import InputError, RolloutError
from dynident.idim import Idim
from dynident.inertia import Array
from dynident.simulation.controller import Controller
from dynident.simulation.integrators import INTEGRATORS
from dynident.simulation.kernel import advance
from dynident.simulation.law import COMPUTED_TORQUE, GRAVITY, PLAIN, Law
from dynident.simulation.plant import build_plant
from dynident.simulation.ports import (
    DIVERGED,
    DONE,
    NOT_POSITIVE,
    Inputs,
    Outputs,
    State,
    build_scratch,
)
from dynident.simulation.reference import Reference
from dynident.text import nearest

STRETCH = 4096
"""Samples rolled out at a time."""
WIDTH_SHARE = 0.01
"""Default smoothing width of the sign, as a share of the largest reference speed."""
CODES = {
    "none": PLAIN,
    "feed-forward": PLAIN,
    "gravity": GRAVITY,
    "computed-torque": COMPUTED_TORQUE,
}
"""What the kernel does for each of a controller's compensations."""


@dataclass(frozen=True)
class Loop:
    """A robot's model under control, all but its parameter values.

    Attributes
    ----------
    idim : Idim
    controller : Controller
    reference : Reference
        Its clock is the log's.
    integrator : str
        Name in `INTEGRATORS`.
    substeps : int
        Integration steps a sample.
    width : ndarray, shape (n,), optional
        Speed over which Coulomb friction changes sign, ``sign(v) ~ tanh(v / width)``; by
        default one per cent of the largest reference speed [rad/s or m/s].
    external : ndarray, shape (samples, dof), optional
        Torques from outside [Nm or N].
    noise : ndarray, shape (samples, n), optional
        Of the positions that the controllers see [rad or m].
    count : ndarray, shape (n,), optional
        Encoder resolution; zero for none [rad or m].
    stribeck : (excess, speed), optional
        See `dynident.simulation.plant.build_plant`.
    model : ndarray, shape (standard parameters,), optional
        Of the controller's model compensation.
    q0, dq0 : ndarray, shapes (nq,) and (dof,), optional
        Where the robot starts; on the reference by default (a free-flying base at rest in
        the origin).
    """

    idim: Idim
    controller: Controller
    reference: Reference
    integrator: str = "ode3"
    substeps: int = 1
    width: Array | None = None
    external: Array | None = None
    noise: Array | None = None
    count: Array | None = None
    stribeck: tuple[Array, Array] | None = None
    model: Array | None = None
    q0: Array | None = None
    dq0: Array | None = None

    def __post_init__(self) -> None:
        idim, n = self.idim, self.idim.robot.n
        name = idim.robot.name
        if self.integrator not in INTEGRATORS:
            known = nearest(self.integrator, INTEGRATORS)
            raise InputError(f"integrator {self.integrator!r} is not known{known}")
        if self.substeps < 1:
            raise InputError(f"substeps must be 1 or more, got {self.substeps}")
        if self.controller.n != n:
            raise InputError(f"the controller has {self.controller.n} joints, {name} has {n}")
        if self.reference.q.shape[1] != n:
            raise InputError(
                f"the reference has {self.reference.q.shape[1]} joints, {name} has {n}"
            )
        if self.width is None:
            fastest = np.max(np.abs(self.reference.dq), axis=0)
            object.__setattr__(self, "width", WIDTH_SHARE * np.maximum(fastest, 1e-3))
        sampled = self.controller.rate is not None
        if INTEGRATORS[self.integrator].implicit and (not sampled or idim.robot.floating):
            raise InputError(
                f"integrator {self.integrator!r} needs a sampled controller (give it a rate) and "
                "a fixed base; ode1 to ode4 do not"
            )
        if self.count is not None and np.any(self.count) and not sampled:
            raise InputError("an encoder's counts need a sampled controller: give it a rate")
        if self.controller.delay > 0.0 and not sampled:
            raise InputError("a delay needs a sampled controller: give it a rate")
        if self.controller.compensation != "none":
            if self.model is None:
                raise InputError(
                    f"compensation {self.controller.compensation!r} needs a model; the robot's "
                    "file has no inertials"
                )
            if idim.robot.floating:
                raise InputError("model compensation needs a fixed base")
        _ = self.steps

    @property
    def rate(self) -> float:
        """Samples per second [Hz]."""
        return self.reference.rate

    @property
    def samples(self) -> int:
        """Length of the reference."""
        return len(self.reference.q)

    @property
    def steps(self) -> tuple[int, int]:
        """Integration steps that a sampled output is held, and that it comes late.

        Raises
        ------
        InputError
            When the clocks do not fit.
        """
        if self.controller.rate is None:
            return 0, 0
        fast = self.rate * self.substeps
        hold, delay = fast / self.controller.rate, fast * self.controller.delay
        for value, name in ((hold, "period"), (delay, "delay")):
            if abs(value - round(value)) > 1e-6 * max(1.0, value):
                raise InputError(
                    f"the controller's {name} is {value:.4g} integration steps of {1 / fast:g} s, "
                    "which is not a whole number; change substeps or the controller's clock"
                )
        if round(hold) < 1:
            raise InputError(
                f"the controller's rate of {self.controller.rate:g} Hz is above that of the "
                f"integration, {fast:g} Hz; give more substeps"
            )
        return round(hold), round(delay)

    def scaled(self, factor: Array) -> Loop:
        """The same loop with all gains multiplied joint by joint."""
        return replace(self, controller=self.controller.scaled(factor))


@dataclass(frozen=True)
class Motion:
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
    """

    rate: float
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    measured: Array


@dataclass(frozen=True)
class Stretch:
    """A stretch of a motion with sensitivities; only those asked for have rows.

    Attributes
    ----------
    start : int
        Its first sample.
    motion : Motion
    by_q, by_dq, by_ddq, by_tau : ndarray, shape (rows, n, columns)
        Of position, velocity, acceleration and drive torque by each column's parameter.
    """

    start: int
    motion: Motion
    by_q: Array
    by_dq: Array
    by_ddq: Array
    by_tau: Array


SENSITIVITIES = ("q", "dq", "ddq", "tau")


def rollout(
    loop: Loop, theta: Array, progress: Callable[[str, float], None] | None = None
) -> Motion:
    """Simulate the closed loop over the whole reference.

    Parameters
    ----------
    loop : Loop
    theta : ndarray, shape (standard parameters,)
    progress : callable, optional
        Called with "simulation" and the share that is done.

    Raises
    ------
    RolloutError
        When the mass matrix ceases to be positive definite or the motion diverges.
    """
    parts = []
    for part in sensitive_rollout(loop, theta):
        parts.append(part.motion)
        if progress is not None:
            progress("simulation", (part.start + len(part.motion.q)) / loop.samples)
    names = ("q", "dq", "ddq", "tau", "measured")
    return Motion(loop.rate, *(np.concatenate([getattr(p, n) for p in parts]) for n in names))


def sensitive_rollout(
    loop: Loop,
    theta: Array,
    columns: Sequence[int] | Integers = (),
    wanted: Sequence[str] = SENSITIVITIES,
) -> Iterator[Stretch]:
    """Simulate, and differentiate the motion by parameters along the way.

    The sensitivities are exact for the discrete motion: each operation of the integrator,
    of the controller and of the friction is differentiated.

    Parameters
    ----------
    loop : Loop
    theta : ndarray, shape (standard parameters,)
    columns : sequence of int
        Standard parameters to differentiate by.
    wanted : sequence of str
        Which of `SENSITIVITIES` to hand out.

    Yields
    ------
    Stretch

    Raises
    ------
    RolloutError
    """
    idim, robot = loop.idim, loop.idim.robot
    if len(columns) and robot.floating:
        raise InputError("sensitivities need a fixed base")
    n, dof, c = robot.n, robot.dof, len(columns)
    assert loop.width is not None
    plant = build_plant(idim, theta, loop.width, columns, loop.stribeck)
    law = clocked(loop)
    state = initial_state(loop, law, c)
    inputs = Inputs(
        reference=np.ascontiguousarray([loop.reference.q, loop.reference.dq, loop.reference.ddq]),
        forward=feed_forward(loop),
        external=given(loop.external, loop.samples, dof, "external torque"),
        noise=given(loop.noise, loop.samples, n, "position noise"),
        counts=np.zeros(n) if loop.count is None else np.asarray(loop.count, dtype=float),
    )
    scheme = INTEGRATORS[loop.integrator]
    h = 1.0 / (loop.rate * loop.substeps)
    room = build_scratch(idim.tree.bodies, state, len(scheme.b))
    for start in range(0, loop.samples, STRETCH):
        stop = min(start + STRETCH, loop.samples)
        rows = stop - start
        out = Outputs(
            np.empty((rows, len(state.q))),
            np.empty((rows, dof)),
            np.empty((rows, dof)),
            np.empty((rows, n)),
            np.empty((rows, n)),
            *(np.empty((rows * (c > 0 and s in wanted), n, c)) for s in SENSITIVITIES),
        )
        status, sample, velocity = advance(
            idim.tree, plant, law, scheme.a, scheme.b, scheme.c, loop.substeps, h, inputs, state,
            room, start, stop, out,
        )  # fmt: skip
        if status != DONE:
            raise RolloutError(reason(loop, status, sample, velocity))
        motion = Motion(loop.rate, out.q, out.dq, out.ddq, out.tau, out.measured)
        yield Stretch(start, motion, out.by_q, out.by_dq, out.by_ddq, out.by_tau)


def clocked(loop: Loop) -> Law:
    """The controller on the integrator's clock."""
    control, idim = loop.controller, loop.idim
    hold, delay = loop.steps
    phi = np.zeros((idim.tree.bodies, 10))
    rotors = np.zeros((idim.tree.dof, idim.tree.dof))
    if loop.model is not None:
        model = build_plant(idim, loop.model, np.ones(idim.robot.n))
        phi, rotors = model.phi, model.rotors
    names = ("A", "B", "C", "D", "antiwindup", "gain", "limit")
    arrays = (np.ascontiguousarray(getattr(control, name), dtype=float) for name in names)
    compensation = CODES[control.compensation]
    return Law(*arrays, hold, delay, compensation, phi, rotors)  # type: ignore[arg-type, call-arg]


def initial_state(loop: Loop, law: Law, columns: int) -> State:
    """The robot on its reference, controllers at rest there."""
    robot = loop.idim.robot
    n, dof, m = robot.n, robot.dof, law.C.shape[1]
    base = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]) if robot.floating else np.zeros(0)
    q = np.concatenate([base, loop.reference.q[0]]) if loop.q0 is None else loop.q0
    dq = np.concatenate([np.zeros(dof - n), loop.reference.dq[0]]) if loop.dq0 is None else loop.dq0
    if len(q) != dof + robot.floating or len(dq) != dof:
        raise InputError(f"the start has {len(q)} positions and {len(dq)} velocities")
    return State(
        q=np.array(q, dtype=float),
        dq=np.array(dq, dtype=float),
        z=resting_states(loop.controller, np.asarray(q)[len(q) - n :]),
        ring=np.zeros((law.delay + 1, n)),
        at=np.zeros(1, dtype=np.int64),
        SQ=np.zeros((dof, columns)),
        SV=np.zeros((dof, columns)),
        SZ=np.zeros((n, m, columns)),
        SU=np.zeros((law.delay + 1, n, columns)),
    )


def resting_states(controller: Controller, q: Array) -> Array:
    """Controller states that stay where they are while the robot rests on its reference.

    ``A z + B w = 0``, or ``= z`` of a sampled one; integrators, which may rest anywhere,
    start from zero.
    """
    n, m = controller.C.shape
    z = np.zeros((n, m))
    for j in range(n):
        w = np.array([q[j], 0.0, 0.0, q[j], 0.0])
        system = controller.A[j] - (np.eye(m) if controller.rate is not None else 0.0)
        z[j] = np.linalg.lstsq(system, -controller.B[j] @ w, rcond=None)[0]
    return z


def feed_forward(loop: Loop) -> Array:
    """Model torques along the reference, or no rows."""
    n = loop.idim.robot.n
    if loop.controller.compensation != "feed-forward" or loop.model is None:
        return np.zeros((0, n))
    along = loop.reference
    return loop.idim.torque(loop.model, along.q, along.dq, along.ddq)


def given(signal: Array | None, samples: int, width: int, what: str) -> Array:
    """An optional input as the kernel takes it: no rows where there is none.

    Raises
    ------
    InputError
    """
    if signal is None:
        return np.zeros((0, width))
    if signal.shape != (samples, width):
        raise InputError(f"the {what} has shape {signal.shape}, not {(samples, width)}")
    return np.ascontiguousarray(signal, dtype=float)


def reason(loop: Loop, status: int, sample: int, velocity: int) -> str:
    """Why a rollout ended early, in one line."""
    robot = loop.idim.robot
    joint = velocity - (robot.dof - robot.n)
    name = robot.joint_names[joint] if joint >= 0 else robot.base_link
    when = f"at t = {sample / loop.rate:.4f} s"
    if status == NOT_POSITIVE:
        return (
            f"the simulated mass matrix is not positive definite {when} ({name}): these "
            "parameters are no robot's"
        )
    if status == DIVERGED:
        return f"the simulated motion diverges {when} at {name}: check the gains, or raise substeps"
    return f"the implicit step found no solution {when} ({name}): raise substeps or the width"
