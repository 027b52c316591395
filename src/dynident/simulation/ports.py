"""What goes into a rollout, what it carries along, and what comes out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.jit import inner
from dynident.dynamics.spatial import BodyWorkspace, build_bodies
from dynident.dynamics.tree import Tree
from dynident.friction.kernel import BY_STATE
from dynident.plant.plant import Plant
from dynident.plant.vectors import copy_matrix, copy_vector
from dynident.robot.linkage import Linkage, build_linkage
from dynident.robot.model import Robot
from dynident.simulation.law import measure_positions


class Inputs(NamedTuple):
    """What acts on a rollout, one row a sample; between samples it is interpolated."""

    reference: Array
    """Position, velocity and acceleration, shape (3, samples, n)."""
    forward: Array
    """Feed-forward torque [Nm or N], shape (samples, n) or (0, n)."""
    external: Array
    """Torques from outside [Nm or N], shape (samples, dof) or (0, dof)."""
    noise: Array
    """Of the measured positions, held over a sample [rad or m], shape (samples, n) or (0, n)."""
    counts: Array
    """Encoder resolution, zero for none [rad or m], shape (n,)."""
    period: float
    """Between samples [s]."""
    base: Array
    """Pose, twist and acceleration of a base whose motion is given, shape (samples, 19) or (0,
    19)."""
    hurry: Array
    """Derivative of the targets' positions by the limits of their speeds [s], shape (samples, n) or
    (0, n)."""


class RolloutState(NamedTuple):
    """Where a rollout stands; the kernel moves it on in place."""

    q: Array
    dq: Array
    """`q`, `dq`: shapes (nq,) and (dof,)."""
    z: Array
    """Of the controllers, shape (n, m)."""
    ring: Array
    """Torques that have been decided and not yet overwritten, shape (delay + 1, n)."""
    at: Integers
    """Place of the newest one, shape (1,)."""
    memory: Array
    """Of the friction, shape (elements, most states)."""
    SQ: Array
    SV: Array
    SZ: Array
    SU: Array
    SM: Array
    """`SQ`, `SV`, `SZ`, `SU`, `SM`: shapes (dof, c), (dof, c), (n, m, c), (delay + 1, n, c) and
    (elements, most states, c). Sensitivities of q, dq, z, ring and memory."""


class Outputs(NamedTuple):
    """One row a sample; an array without rows is not written."""

    q: Array
    dq: Array
    ddq: Array
    """`q`, `dq`, `ddq`: shapes (rows, nq), (rows, dof), (rows, dof)."""
    tau: Array
    """Torque that the drives apply [Nm or N], shape (rows, n)."""
    measured: Array
    """Joint positions as the encoders give them, shape (rows, n)."""
    by_q: Array
    by_dq: Array
    by_ddq: Array
    by_tau: Array
    """`by_q`, `by_dq`, `by_ddq`, `by_tau`: sensitivities, shape (rows, n, c)."""


class Scratch(NamedTuple):
    """Room for one step, so that the kernel allocates nothing.

    The controllers' torque u and its sensitivities Snow are held from step to step.

    Of the bodies: `BodyWorkspace`; of loops that close them chain, else None. Acceleration of a
    base whose motion is given: rise, else empty. Of the joint space: M, tau, the derivatives K, D,
    the regressor W, accelerations' sensitivities X, torques' U. Of an implicit stage: where its
    iteration starts (guess), a trial, its step and the way there. Of the controllers: inputs w,
    outputs v, unlimited raw, torques u, the targets' derivatives by their delay (late),
    feed-forward torques (push), what encoders read beside the position (offset), slopes of the
    outputs by positions (lean), the bent error and its sign's slope by the dead band (bent, sharp),
    targets by their speed's limit (hurry), sensitivities of what is read and of targets (Sread,
    Saim). Of the drives: speed, sign, the elements' tables, sensitivities of a state after its step
    (fresh), and where friction depends on loads: these (load), torques at zero acceleration without
    friction (bias), how friction passes loads on (L), Jacobian (J), a row. Of the stages: states
    (qs, dqs, zs), rates (kq, kv, kz), sensitivities of both (Qs, Vs, Zs, KQ, KV, KZ).
    """

    bodies: BodyWorkspace
    chain: Linkage | None
    M: Array
    tau: Array
    K: Array
    D: Array
    W: Array
    X: Array
    U: Array
    still: Array
    guess: Array
    external: Array
    trial: Array
    step: Array
    way: Array
    q0: Array
    v0: Array
    w: Array
    v: Array
    raw: Array
    u: Array
    now: Array
    measured: Array
    late: Array
    push: Array
    offset: Array
    lean: Array
    bent: Array
    sharp: Array
    hurry: Array
    Sread: Array
    Saim: Array
    Sraw: Array
    Snow: Array
    speed: Array
    sign: Array
    table: Array
    fresh: Array
    load: Array
    bias: Array
    L: Array
    J: Array
    row: Array
    rise: Array
    zs: Array
    Zs: Array
    qs: Array
    dqs: Array
    Qs: Array
    Vs: Array
    kq: Array
    kv: Array
    kz: Array
    KQ: Array
    KV: Array
    KZ: Array


def build_scratch(
    robot: Robot, tree: Tree, plant: Plant, state: RolloutState, stages: int, led: bool
) -> Scratch:
    """Room for a robot and an integrator of that many stages, its base led or not."""
    elements, drives = plant.elements, len(plant.gears)
    e, states = elements.rest.shape
    most = max(elements.values.shape[1], states)
    nq, dof, (n, m), c = len(state.q), len(state.dq), state.z.shape, state.SQ.shape[1]
    shapes = {
        "M": (dof, dof), "tau": (dof,), "K": (dof, dof), "D": (dof, dof), "W": (dof, c),
        "X": (dof, c), "U": (dof, c), "still": (dof,), "guess": (dof,), "external": (dof,),
        "trial": (dof,), "step": (dof, 1), "way": (dof,), "q0": (dof,), "v0": (dof,), "w": (n, 5),
        "v": (n,), "raw": (n,), "u": (n,), "now": (n,), "measured": (n,), "late": (n, 3),
        "push": (n,),
        "offset": (n,), "lean": (n,), "bent": (n, 4), "sharp": (n,), "hurry": (n,),
        "Sread": (n, c), "Saim": (n, c), "Sraw": (n, c), "Snow": (n, c),
        "speed": (drives,), "sign": (drives,), "fresh": (states, c),
        "load": (drives,), "bias": (dof,), "L": (dof, dof), "J": (dof, dof), "row": (dof,),
        "rise": (6 * led,),
        "table": (e, most, BY_STATE + states + elements.shape.shape[1]),
        "zs": (n, m), "Zs": (n, m, c), "qs": (nq,), "dqs": (dof,), "Qs": (dof, c), "Vs": (dof, c),
        "kq": (stages, nq), "kv": (stages, dof), "kz": (stages, n, m), "KQ": (stages, dof, c),
        "KV": (stages, dof, c), "KZ": (stages, n, m, c),
    }  # fmt: skip
    room = {name: np.zeros(shape) for name, shape in shapes.items()}
    chain = build_linkage(robot) if robot.loops else None
    return Scratch(build_bodies(tree.bodies, tree.dof), chain, **room)


@inner
def store_sample(out, record, joints, first, q, dq, ddq, tau, bias, noise, k, count, SQ, SV, X, U):  # type: ignore[no-untyped-def]
    """Write one sample into the outputs that are wanted."""
    copy_vector(q, out.q[record])
    copy_vector(dq, out.dq[record])
    copy_vector(ddq, out.ddq[record])
    copy_vector(tau, out.tau[record])
    if len(out.measured):
        measure_positions(q, bias, noise, k, count, joints, out.measured[record])
    if len(out.by_q):
        copy_matrix(SQ[first:], out.by_q[record])
    if len(out.by_dq):
        copy_matrix(SV[first:], out.by_dq[record])
    if len(out.by_ddq):
        copy_matrix(X[first:], out.by_ddq[record])
    if len(out.by_tau):
        copy_matrix(U[first:], out.by_tau[record])
