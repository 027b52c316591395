"""Robots that stand and walk: a free-flying base, feet on a compliant ground, PD at the joints.

Ground and friction at standstill are stiff, and an explicit integrator would need steps of some
microseconds for them. Here a step is that of the second-order W-method ROS2 (Verwer and others
1999): with ``u = (q, v)``, ``u' = f(t, u)`` and any matrix A,

    (1 - g h A) k1 = f(t, u),   (1 - g h A) k2 = f(t + h, u + h k1) - 2 k1,
    u+ = u + h (3 k1 + k2) / 2,   g = 1 - 1/sqrt(2).

Its order does not depend on A, its stability does: A holds what is stiff, the symmetric slopes of
ground, friction and gains, so that all there is to solve has a mass matrix's structure,

    M + g h (D + g h K).

Where the first stage alone would have gone elsewhere, a step is halved: what slides and what
touches down is no less stiff than what stands, and not in A.

Configurations move along SE(3) by its exponential. A row's acceleration, torque and wrenches are
those of one evaluation of the equations of motion, and satisfy them to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.bundle import Bundle, keep_bundle
from dynident.core.errors import InputError, RolloutError
from dynident.core.jit import entry, inner, spliced, written
from dynident.core.progress import Progress, ignore_progress
from dynident.dynamics.cholesky import factorise_ldl, solve_ldl
from dynident.dynamics.spatial import move_bodies
from dynident.dynamics.tree import Tree
from dynident.plant.plant import Plant
from dynident.plant.state import (
    DIVERGED,
    DONE,
    NOT_POSITIVE,
    STUCK,
    add_all_friction,
    add_element_slopes,
    add_friction_slope,
    fill_mass_and_bias,
    step_element_states,
)
from dynident.plant.vectors import add_vector, copy_matrix, copy_vector
from dynident.robot.model import Robot
from dynident.simulation.contacts import (
    Foot,
    FootPoints,
    Ground,
    add_ground_slopes,
    apply_ground_forces,
    build_points,
    build_touch,
    sum_foot_wrenches,
)
from dynident.simulation.integrators import GAMMA
from dynident.simulation.kernel import find_runaway, normalise_quaternion
from dynident.simulation.law import fill_linear_output, interpolate_reference, interpolate_signal
from dynident.simulation.loop import Loop
from dynident.simulation.ports import RolloutState, Scratch
from dynident.simulation.rollout import STRETCH, build_parts, check_input_signal, describe_failure

FINEST = 4096
"""The shortest step is this share of the longest."""
FORCE, MOMENT = ("fx", "fy", "fz"), ("mx", "my", "mz")


@dataclass(frozen=True)
class FloatingMotion:
    """A simulated motion of a floating robot, one row a sample.

    Attributes
    ----------
    robot : Robot
    rate : float
        [Hz]
    q, dq, ddq : ndarray, shapes (samples, nq), (samples, dof), (samples, dof)
        The base's twist and spatial acceleration are in its own axes.
    tau : ndarray, shape (samples, n)
        Torque of the drives [Nm or N].
    wrenches : mapping of str to ndarray, shape (samples, 3 or 6)
        What the ground does to each foot, in the foot's frame about its origin; 3 components of
        a foot that touches nowhere else [N, Nm].
    touching : mapping of str to ndarray of bool, shape (samples,)
    """

    robot: Robot
    rate: float
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    wrenches: Mapping[str, Array]
    touching: Mapping[str, Booleans]

    @property
    def log_columns(self) -> dict[str, Array]:
        """The motion as columns of a log, wrenches and exact derivatives with it.

        ``base_a`` is the second derivative of the base's position (without gravity), in its axes.
        """
        v, w = self.dq[:, :3], self.dq[:, 3:6]
        found = {"time": np.arange(len(self.q)) / self.rate}
        base = {
            "p": self.q[:, :3],
            "q": self.q[:, 3:7],
            "v": v,
            "w": w,
            # classical = spatial + omega x v (Featherstone 2008, section 2.11)
            "a": self.ddq[:, :3] + np.cross(w, v),
            "dw": self.ddq[:, 3:6],
        }
        for signal, values in base.items():
            for axis, column in zip("xyzw", values.T, strict=False):
                found[f"base_{signal}{axis}"] = column
        joints = {
            "q": self.q[:, 7:],
            "dq": self.dq[:, 6:],
            "ddq": self.ddq[:, 6:],
            "tau": self.tau,
        }
        for k, joint in enumerate(self.robot.joint_names):
            for signal, values in joints.items():
                found[f"{signal}_{joint}"] = values[:, k]
        for name, wrench in self.wrenches.items():
            for part, column in zip(FORCE + MOMENT, wrench.T, strict=False):
                found[f"{part}_{name}"] = column
            found[f"contact_{name}"] = self.touching[name].astype(float)
        return found


def simulate_floating(
    loop: Loop,
    theta: Array,
    feet: Sequence[Foot] = (),
    ground: Ground | None = None,
    *,
    forward: Array | None = None,
    tolerance: float = 1e-3,
    progress: Progress = ignore_progress,
) -> FloatingMotion:
    """Simulate a floating robot that stands, walks or flies: its joints follow a reference.

    >>> motion = di.simulate_floating(floating_loop, floating_theta)

    Parameters
    ----------
    loop : Loop
        Of a floating robot under a continuous controller without states, whose targets move
        smoothly. Its `q0` is by default the reference's first row on an upright base whose
        lowest foot touches the ground. Its `integrator` is not used (see the module); its
        `substeps` are the fewest steps a sample.
    theta : ndarray, shape (standard parameters,)
    feet : sequence of Foot
    ground : Ground, optional
        A `Ground` as it is by default.
    forward : ndarray, shape (samples, n), optional
        Torques that the drives give beside the controller's [Nm or N].
    tolerance : float
        Difference of the two stages' velocities above which a step is halved, for each velocity
        v as a share of ``1 + |v|`` [m/s or rad/s].
    progress : callable
        Called with "simulation" and the share that is done.

    Raises
    ------
    InputError
        For fixed bases, controllers that are sampled or have states, and feet that do not fit.
    RolloutError
        When the motion diverges, no step is short enough, or a mass matrix is not positive
        definite.
    """
    refuse_other_loops(loop)
    if not 0.0 < tolerance < np.inf:
        raise InputError(f"tolerance has to be positive, got {tolerance:g}")
    idim, robot = loop.idim, loop.idim.robot
    n, dof, samples = robot.n, robot.dof, loop.samples
    ground = ground or Ground()
    points = build_points(robot, feet)
    plant, law, inputs, state, room = build_parts(loop, theta)
    if len(plant.bearing):
        raise InputError(
            "friction that depends on the load of its drive is not simulated under contacts: a "
            "robot on its feet needs another friction model"
        )
    inputs = inputs._replace(forward=check_input_signal(forward, samples, n, "feed-forward torque"))
    touch, work = build_touch(len(points.body), idim.tree.path.shape[1]), build_work(state)
    if loop.q0 is None:
        place_on_ground(idim.tree, plant, points, ground, state.q, room)
    out = FloatingRows(
        np.empty((samples, len(state.q))), np.empty((samples, dof)), np.empty((samples, dof)),
        np.empty((samples, n)), np.empty((samples, len(feet), 6)),
        np.empty((samples, len(feet)), dtype=np.bool_),
    )  # fmt: skip
    given = [keep_bundle(idim.tree), *(Bundle(each) for each in (plant, law, ground.law, points))]
    held = [Bundle(each) for each in (inputs, state, room, touch, work)]
    rows = Bundle(out)
    for start in range(0, samples, STRETCH):
        stop = min(start + STRETCH, samples)
        status, sample, velocity = advance_floating(
            *given, loop.substeps, tolerance, *held, start, stop, rows
        )
        if status == STUCK:
            name = (robot.base_link, *robot.joint_names)[max(0, velocity - 5)]
            raise RolloutError(
                f"no step is short enough at t = {sample / loop.rate:.4f} s ({name}): check where "
                "the robot starts, the ground's stiffness and the gains, or raise the tolerance"
            )
        if status != DONE:
            raise RolloutError(describe_failure(loop, status, sample, velocity))
        progress("simulation", stop / samples)
    wrenches = {f.name: out.wrench[:, k, : f.components] for k, f in enumerate(feet)}
    touching = {f.name: out.touching[:, k] for k, f in enumerate(feet)}
    return FloatingMotion(
        robot, loop.rate, out.q, out.dq, out.ddq, out.tau,
        MappingProxyType(wrenches), MappingProxyType(touching),
    )  # fmt: skip


def refuse_other_loops(loop: Loop) -> None:
    """Refuse loops that are not simulated on feet."""
    robot, control = loop.idim.robot, loop.controller
    if not robot.floating:
        raise InputError(f"{robot.name}: a fixed base needs no ground; see rollout")
    beyond = control.rate is not None or control.states or np.any(control.backlash)
    if beyond or control.delay or loop.held or loop.lead:
        raise InputError(
            "feet need a continuous controller without states, backlash and delay, and targets "
            "that are not held: p, pd or p-p"
        )
    if loop.noise is not None or loop.count is not None:
        raise InputError("noise and counts of encoders are added to the motion afterwards")


def place_on_ground(
    tree: Tree, plant: Plant, points: FootPoints, ground: Ground, q: Array, s: Scratch
) -> None:
    """Put the base where the lowest point just touches the ground, in place."""
    if not len(points.body):
        return
    still = np.zeros(tree.dof)
    w = s.bodies
    move_bodies(keep_bundle(tree), plant.phi, q, still, Bundle(w))
    levers = w.p[points.body] + np.einsum("pij,pj->pi", w.R[points.body], points.place)
    q[:3] = (ground.height - np.min(levers @ ground.normal)) * ground.normal


class StepWorkspace(NamedTuple):
    """Room for a step."""

    M: Array
    L: Array
    W: Array
    """`M`, `L`, `W`: mass matrix at the step's beginning, its factors at a row, and those of the
    step, shape (dof, dof)."""
    net: Array
    rise: Array
    r: Array
    k1q: Array
    k1v: Array
    k2q: Array
    k2v: Array
    v: Array
    """`net`, `rise`, `r`, `k1q`, `k1v`, `k2q`, `k2v`, `v`: generalised force, acceleration, a
    right-hand side, the stages, a velocity, shape (dof,)."""
    q: Array
    """Shape (nq,)."""
    memory: Array
    """Of the friction at the step's beginning, shape (elements, most states)."""


def build_work(state: RolloutState) -> StepWorkspace:
    """Room for a step from states like this one."""
    dof = len(state.dq)
    M, L, W = np.zeros((3, dof, dof))
    net, rise, r, k1q, k1v, k2q, k2v, v = np.zeros((8, dof))
    return StepWorkspace(
        M, L, W, net, rise, r, k1q, k1v, k2q, k2v, v, np.zeros(dof + 1), state.memory.copy()
    )


class FloatingRows(NamedTuple):
    """One row a sample; see `FloatingMotion`."""

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    wrench: Array
    touching: Booleans


@inner
def displace_configuration(q, step, out):  # type: ignore[no-untyped-def]
    """``q + step``: the base along the screw of its step, by the exponential of SE(3)."""
    v0, v1, v2, w0, w1, w2 = step[0], step[1], step[2], step[3], step[4], step[5]
    angle2 = w0 * w0 + w1 * w1 + w2 * w2
    angle = np.sqrt(angle2)
    if angle < 1e-4:  # the first terms that are left out are of the eighth order
        half = 0.5 - angle2 / 48.0
        a = 0.5 - angle2 / 24.0
        b = 1.0 / 6.0 - angle2 / 120.0
    else:
        half = np.sin(0.5 * angle) / angle
        a = (1.0 - np.cos(angle)) / angle2
        b = (angle - np.sin(angle)) / (angle2 * angle)
    # t = v + a w x v + b w x (w x v)
    c0, c1, c2 = w1 * v2 - w2 * v1, w2 * v0 - w0 * v2, w0 * v1 - w1 * v0
    t0 = v0 + a * c0 + b * (w1 * c2 - w2 * c1)
    t1 = v1 + a * c1 + b * (w2 * c0 - w0 * c2)
    t2 = v2 + a * c2 + b * (w0 * c1 - w1 * c0)
    x, y, z, w = q[3], q[4], q[5], q[6]
    # rotation by a unit quaternion: t + 2 w (u x t) + 2 u x (u x t)
    c0, c1, c2 = y * t2 - z * t1, z * t0 - x * t2, x * t1 - y * t0
    out[0] = q[0] + t0 + 2.0 * (w * c0 + y * c2 - z * c1)
    out[1] = q[1] + t1 + 2.0 * (w * c1 + z * c0 - x * c2)
    out[2] = q[2] + t2 + 2.0 * (w * c2 + x * c1 - y * c0)
    s, w0, w1, w2 = np.cos(0.5 * angle), half * w0, half * w1, half * w2
    out[3] = x * s + w * w0 + y * w2 - z * w1
    out[4] = y * s + w * w1 + z * w0 - x * w2
    out[5] = z * s + w * w2 + x * w1 - y * w0
    out[6] = w * s - x * w0 - y * w1 - z * w2
    for i in range(7, len(q)):
        out[i] = q[i] + step[i - 1]


@inner
def command_drives(law, inputs, s, k, part, q, dq, z):  # type: ignore[no-untyped-def]
    """Torque of the drives `part` of the way from sample k to the next, into s.now."""
    w, u, forward = s.w, s.now, inputs.forward
    for j in range(len(u)):
        for i in range(3):
            w[j, i] = interpolate_reference(inputs.reference, i, k, part, inputs.period, j)
        w[j, 3], w[j, 4] = q[7 + j], dq[6 + j]
    fill_linear_output(law, w, z, s)
    for j in range(len(u)):
        u[j] = law.gain[j] * s.v[j]
    if len(forward):
        interpolate_signal(forward, k, part, s.push)
        add_vector(1.0, s.push, u)


@spliced
def sum_generalised_forces(  # type: ignore[no-untyped-def]
    tree, plant, law, ground, points, inputs, s, c, k, part, q, dq, z, memory, net
):
    """Generalised force ``tau + J^T f - bias`` at one state, into net; the mass matrix in s.M."""
    fill_mass_and_bias(tree, plant.phi, plant.rotors, s, q, dq)
    add_all_friction(plant, s, q, dq, memory)
    apply_ground_forces(tree, ground, points, q, s.bodies, c, s.tau)
    command_drives(law, inputs, s, k, part, q, dq, z)
    if len(inputs.external):
        interpolate_signal(inputs.external, k, part, s.external)
    for i in range(len(net)):
        net[i] = s.external[i] - s.tau[i]
    for j in range(len(s.now)):
        net[6 + j] += s.now[j]


@spliced
def fill_stiff_slopes(tree, plant, law, ground, points, s, c):  # type: ignore[no-untyped-def]
    """Stiff slopes by positions and velocities, after `sum_generalised_forces`: s.K and s.D."""
    s.K[:] = 0.0
    s.D[:] = 0.0
    add_friction_slope(plant.gears, plant.friction, plant.width, s.sign, s.D)
    add_element_slopes(plant.gears, plant.elements, s.table, s.K, s.D)
    for j in range(len(s.now)):
        if s.v[j] == s.raw[j]:
            s.K[6 + j, 6 + j] -= law.gain[j] * s.lean[j]
            s.D[6 + j, 6 + j] -= law.gain[j] * law.D[j, 4]
    add_ground_slopes(tree, ground, points, s.bodies, c, s.K, s.D)


@inner
def subtract_product(factor, A, x, out):  # type: ignore[no-untyped-def]
    """``out -= factor A x``."""
    for i in range(len(out)):
        total = 0.0
        for j in range(len(x)):
            total += A[i, j] * x[j]
        out[i] -= factor * total


@written
def record_row(points, s, c, work, q, dq, k, out):  # type: ignore[no-untyped-def]
    """A sample's row, its acceleration solved for; returns the pivot that fails, or -1."""
    copy_matrix(s.M, work.L)
    copy_vector(work.net, work.rise)
    failed = factorise_ldl(work.L)
    if failed >= 0:
        return failed
    solve_ldl(work.L, work.rise)
    copy_vector(q, out.q[k])
    copy_vector(dq, out.dq[k])
    copy_vector(work.rise, out.ddq[k])
    copy_vector(s.now, out.tau[k])
    sum_foot_wrenches(points, s.bodies, c, out.wrench[k], out.touching[k])
    return -1


@written
def solve_first_stage(s, work, h, q, dq):  # type: ignore[no-untyped-def]
    """The first stage and where it leads, and the factors of both; the pivot that fails, or -1."""
    g = GAMMA * h
    dof = len(dq)
    copy_matrix(s.M, work.M)
    for i in range(dof):
        for j in range(dof):
            work.W[i, j] = s.M[i, j] + g * (s.D[i, j] + g * s.K[i, j])
    failed = factorise_ldl(work.W)
    if failed >= 0:
        return failed
    copy_vector(work.net, work.k1v)
    subtract_product(g, s.K, dq, work.k1v)
    solve_ldl(work.W, work.k1v)
    for i in range(dof):
        work.k1q[i] = dq[i] + g * work.k1v[i]
        work.r[i] = h * work.k1q[i]
        work.v[i] = dq[i] + h * work.k1v[i]
    displace_configuration(q, work.r, work.q)
    return -1


@written
def solve_second_stage(s, work, h):  # type: ignore[no-untyped-def]
    """The second stage, from the forces where the first leads; the pivot that fails, or -1."""
    g, net, r, k2v = GAMMA * h, work.net, work.r, work.k2v
    failed = factorise_ldl(s.M)
    if failed >= 0:
        return failed
    solve_ldl(s.M, net)
    for i in range(len(net)):
        net[i] -= 2.0 * work.k1v[i]
        r[i] = work.v[i] - 2.0 * work.k1q[i]
        k2v[i] = 0.0
    subtract_product(-1.0, work.M, net, k2v)
    subtract_product(g, s.K, r, k2v)
    solve_ldl(work.W, k2v)
    for i in range(len(net)):
        work.k2q[i] = r[i] + g * k2v[i]
    return -1


@entry
def advance_floating(  # type: ignore[no-untyped-def]
    tree, plant, law, ground, points, steps, slack, inputs, state, s, c, work, start, stop, out
):
    """Roll on from sample `start` to `stop`, in `steps` a sample where the tolerance lets.

    Returns status, sample and velocity: DONE, or why not, when, and at which velocity.
    """
    q, dq, z, memory = state.q, state.dq, state.z, state.memory
    SQ, SV, SM = state.SQ, state.SV, state.SM
    net, r, k1q, k1v, k2q, k2v = work.net, work.r, work.k1q, work.k1v, work.k2q, work.k2v
    dof = len(dq)
    ticks, stride, last = steps * FINEST, FINEST, 0.0
    copy_matrix(memory, work.memory)
    for k in range(start, stop):
        tick = 0
        while tick < ticks:
            h = inputs.period * stride / ticks
            # friction's states, held over the step where they are in its middle
            step_element_states(
                plant.gears, plant.width, plant.rough, plant.elements, s, 0.5 * (last + h), q, dq,
                memory, SQ, SV, SM,
            )  # fmt: skip
            sum_generalised_forces(
                tree, plant, law, ground, points, inputs, s, c, k, tick / ticks, q, dq, z, memory,
                net,
            )  # fmt: skip
            if tick == 0:
                failed = record_row(points, s, c, work, q, dq, k, out)
                if failed >= 0:
                    return NOT_POSITIVE, k, failed
            fill_stiff_slopes(tree, plant, law, ground, points, s, c)
            failed = solve_first_stage(s, work, h, q, dq)
            if failed >= 0:
                return NOT_POSITIVE, k, failed
            sum_generalised_forces(
                tree, plant, law, ground, points, inputs, s, c, k, (tick + stride) / ticks, work.q,
                work.v, z, memory, net,
            )  # fmt: skip
            failed = solve_second_stage(s, work, h)
            if failed >= 0:
                return NOT_POSITIVE, k, failed
            # half the step where the first stage alone would have gone elsewhere
            wide = -1
            for i in range(dof):
                off = 0.5 * h * abs(k1v[i] + k2v[i])
                if not off <= slack * (1.0 + abs(dq[i])):
                    wide = i
            if wide >= 0:
                if stride == 1:
                    return (DIVERGED if find_runaway(work.v) >= 0 else STUCK), k, wide
                stride //= 2
                copy_matrix(work.memory, memory)
                continue
            for i in range(dof):
                r[i] = 0.5 * h * (3.0 * k1q[i] + k2q[i])
                dq[i] += 0.5 * h * (3.0 * k1v[i] + k2v[i])
            displace_configuration(q, r, work.q)
            copy_vector(work.q, q)
            failed = normalise_quaternion(q, dq)
            if failed >= 0:
                return DIVERGED, k, failed
            copy_matrix(memory, work.memory)
            last = h
            tick += stride
            # steps are halves of halves of the longest: one twice as long begins on its own grid
            if stride < FINEST and tick % (2 * stride) == 0:
                stride *= 2
    return DONE, stop, -1
