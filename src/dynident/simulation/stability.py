"""Is a loop stable, and is it slow enough for the integrator's step?

Both questions are asked of the linear system about the start, at rest, where the smoothed
Coulomb friction is steepest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.forward import differentiate_dynamics
from dynident.dynamics.inverse import evaluate_inverse_dynamics
from dynident.friction.kernel import BY_POSITION, BY_SPEED, BY_STATE, DriveElements, fill_tables
from dynident.plant.plant import build_plant
from dynident.simulation.integrators import INTEGRATORS
from dynident.simulation.loop import Loop

ROOM = 1e-9
LARGEST = 1e100
"""No robot's inertia, damping or stiffness is larger."""
SLOWEST_GROWTH = 1e-3
"""Growth that a loop may have and still count as at rest [1/s]."""


@dataclass(frozen=True)
class LinearPlant:
    """``M ddq + D dq + K q + B z = tau`` about a standstill, and the friction's states."""

    M: Array
    D: Array
    K: Array
    """`M`, `D`, `K`: shape (dof, dof)."""
    B: Array
    """Shape (dof, states)."""
    by_z: Array
    by_q: Array
    by_dq: Array
    """`by_z`, `by_q`, `by_dq`: what a step of the integration makes of the states, shapes (states,
    states), (states, dof), (states, dof)."""


def linearise_plant(loop: Loop, theta: Array, steep: bool) -> LinearPlant:
    """The robot of a loop about its start, at rest.

    With the `steep` slope that Coulomb friction has at standstill, or that beyond it. Of a closed
    chain as its driven joints see it, ``G^T M G``, so far as G is constant; passive ones, which
    move with these, stand apart.
    """
    idim, n = loop.idim, loop.idim.robot.n
    dof = idim.robot.dof
    assert loop.width is not None
    plant = build_plant(idim, theta, loop.width, (), loop.elements)
    q = place_start(loop)
    still = np.zeros((1, dof))
    found = differentiate_dynamics(idim.tree, plant.phi, q[None], still, still)
    K, D, M = (part[0].copy() for part in found)
    M += plant.rotors
    gears = np.hstack([np.zeros((len(plant.gears), dof - n)), plant.gears])
    closure = idim.structure.closure
    if closure is not None:
        G, apart = closure.find_null_space(q[None])[0], np.diag(1.0 * idim.robot.passive)
        M, D, K = (G.T @ part @ G + apart for part in (M, D, K))
        gears = gears @ G
    refuse_wild_matrices(loop, M, D, K)
    moved = slice(0 if loop.base is None else dof - n, dof)  # a base that is led is not a state
    M = M[moved, moved]
    refuse_indefinite_mass(loop, M)
    with np.errstate(over="ignore"):
        # the smooth sign, tanh(v / width), is as steep as 1 / width at standstill
        slope = plant.friction[:, 1] + steep * plant.friction[:, 2] / plant.width
    refuse_wild_matrices(loop, np.where(gears.T, slope, 0.0))  # of what each joint turns
    D += gears.T @ (slope[:, None] * gears)
    refuse_wild_matrices(loop, D)
    elements = plant.elements
    load = np.zeros(len(gears))
    if len(plant.bearing):
        weight = evaluate_inverse_dynamics(idim.tree, plant.phi, q[None], still, still)[0]
        load = plant.bearing @ weight[dof - n :]
    states = int(elements.counts[:, 1].sum())
    B, by_z = np.zeros((dof, states)), np.zeros((states, states))
    by_q, by_dq = np.zeros((2, states, dof))
    h, z = 1.0 / (loop.rate * loop.substeps), 0
    for e, i in enumerate(elements.gear):
        m, g = int(elements.counts[e, 1]), gears[i]
        at = (q[len(q) - n :] @ plant.gears[i], 1.0 - steep, steep / plant.width[i])
        table = elements.values[e] @ tabulate_at_rest(elements, e, 0, (*at, float(load[i])), 0.0)
        D += table[BY_SPEED] * np.outer(g, g)
        K += table[BY_POSITION] * np.outer(g, g)
        if m:
            own = slice(z, z := z + m)
            B[:, own] = np.outer(g, table[BY_STATE : BY_STATE + m])
            step = tabulate_at_rest(elements, e, 1, (*at, 0.0), h)
            by_z[own, own] = step[:, BY_STATE : BY_STATE + m]
            by_q[own] = np.outer(step[:, BY_POSITION], g)
            by_dq[own] = np.outer(step[:, BY_SPEED], g)
    return LinearPlant(
        M, D[moved, moved], K[moved, moved], B[moved], by_z, by_q[:, moved], by_dq[:, moved]
    )


def place_start(loop: Loop) -> Array:
    """Positions where the motion starts; an upright base at the origin unless it is led."""
    robot = loop.idim.robot
    q = np.zeros(robot.dof + robot.floating)
    if robot.floating:
        q[6] = 1.0  # the real part of the base's quaternion, which stands last
    if loop.base is not None:
        q[:7] = loop.base[loop.lead, :7]
    joints = loop.reference.q[0] if loop.q0 is None else loop.q0[len(loop.q0) - robot.n :]
    q[len(q) - robot.n :] = joints
    return q


def refuse_indefinite_mass(loop: Loop, M: Array) -> None:
    """Refuse parameters under which some motion would have no, or negative, kinetic energy."""
    values, vectors = np.linalg.eigh(M)
    if values[0] <= 0.0:
        name = name_fastest_joint(loop, np.concatenate([vectors[:, 0], vectors[:, 0]]))
        raise InputError(
            f"the mass matrix is not positive definite where the motion starts ({name}): these "
            "parameters are not those of a robot"
        )


def refuse_wild_matrices(loop: Loop, *matrices: Array) -> None:
    """Refuse numbers that linear algebra would stumble over."""
    for matrix in matrices:
        size = np.max(np.abs(matrix), axis=1)
        if not np.all(size < LARGEST):
            wild = np.concatenate([np.zeros(loop.idim.robot.dof - len(size)), ~(size < LARGEST)])
            raise InputError(
                f"the inertia or the friction of {name_fastest_joint(loop, np.tile(wild, 2))} is "
                "not physical: check its parameters and the width of its Coulomb friction"
            )


def tabulate_at_rest(
    elements: DriveElements,
    e: int,
    which: int,
    at: tuple[float, float, float, float],
    period: float,
) -> Array:
    """Table of element e's law (0) or step (1) at rest.

    At a position, with a sign and its slope, under a load.
    """
    rows = elements.values.shape[1] if which == 0 else int(elements.counts[e, 1])
    columns = BY_STATE + elements.counts[e, 1] + elements.shape.shape[1]
    table = np.zeros((1, rows, columns))
    inputs = (np.array([value]) for value in (0.0, *at, 0.0))
    address, z = elements.address[e, which], elements.rest[e : e + 1]
    fill_tables(address, *inputs, period, elements.shape[e], z, table)
    return np.asarray(table[0])


def check_integration(loop: Loop, theta: Array) -> None:
    """Refuse steps that are too long for the fastest motion of the robot under control.

    Raises
    ------
    InputError
        Naming the joint that is too stiff, and what to change.
    """
    scheme = INTEGRATORS[loop.integrator]
    plant = linearise_plant(loop, theta, steep=True)
    M, D, K = plant.M, plant.D, plant.K
    n, dof = loop.idim.robot.n, len(M)
    joints = slice(dof - n, dof)
    if loop.controller.rate is None:
        K, D = K.copy(), D.copy()
        # D[:, 3] and D[:, 4] are minus the gains on position and speed, which stiffen and damp
        K[joints, joints] -= np.diag(loop.gain * loop.controller.D[:, 3])
        D[joints, joints] -= np.diag(loop.gain * loop.controller.D[:, 4])
    system = np.block(
        [[np.zeros((dof, dof)), np.eye(dof)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]]
    )
    h = 1.0 / (loop.rate * loop.substeps)

    def refuse(fast: float, vector: Array) -> None:
        raise InputError(
            f"{name_fastest_joint(loop, vector)} is too stiff for {loop.integrator} at steps of "
            f"{h:g} s (rate {fast:.3g} 1/s at standstill): raise substeps or the width of its "
            "Coulomb friction, or take sdirk2"
        )

    if not scheme.implicit and scheme.error is None:
        values, vectors = np.linalg.eig(system)
        for k in np.argsort(values.real):
            # what grows by itself is for `check_loop`; no step may make grow what decays
            if values[k].real >= 0.0:
                break
            if abs(scheme.amplification(h * values[k])) > 1.0 + ROOM:
                refuse(abs(values[k]), vectors[:, k])
    states = plant.B.shape[1]
    if states:
        # a step of the friction's states at constant speed, and one of the robot with these held
        push = np.vstack([np.zeros((dof, states)), -np.linalg.solve(M, plant.B)])
        held = np.block([[system, push], [np.zeros((states, 2 * dof + states))]])
        after = np.block(
            [[np.eye(2 * dof), np.zeros((2 * dof, states))], [plant.by_q, plant.by_dq, plant.by_z]]
        )
        flow = held + (after - np.eye(len(after))) / h
        fastest = np.linalg.eigvals(flow)
        values, vectors = np.linalg.eig(scheme.propagator(h * held) @ after)
        worst = int(np.argmax(np.abs(values)))
        # what grows by itself may do so in a step, and no more
        grown = np.exp(h * max(0.0, float(fastest.real.max())))
        if abs(values[worst]) > grown + ROOM:
            refuse(float(np.abs(fastest).max()), vectors[: 2 * dof, worst])


def check_loop(loop: Loop, theta: Array) -> None:
    """Refuse a closed loop that is unstable about the start.

    Raises
    ------
    InputError
        Naming the joint that grows fastest.
    """
    growth, name = compute_loop_growth(loop, theta)
    if growth > SLOWEST_GROWTH:
        raise InputError(
            f"the loop of {name} is unstable: it grows at {growth:.3g} 1/s; check the signs and "
            "sizes of its gains, its delay and its rate"
        )


def compute_loop_growth(loop: Loop, theta: Array) -> tuple[float, str]:
    """Largest growth rate of the closed loop beyond standstill, and its joint [1/s].

    Model compensation and free-flying bases are left out: zero growth.
    """
    control, robot = loop.controller, loop.idim.robot
    if robot.floating or control.compensation not in ("none", "feed-forward"):
        return 0.0, robot.joint_names[0]
    plant = linearise_plant(loop, theta, steep=False)
    M, D, K = plant.M, plant.D, plant.K
    n, m = robot.n, control.states
    gain = loop.gain
    read_q, read_v = np.diag(control.D[:, 3]), np.diag(control.D[:, 4])
    read_z = np.zeros((n, n * m))
    drive = np.zeros((n * m, 2 * n))
    own = np.zeros((n * m, n * m))
    for j in range(n):
        block = slice(j * m, (j + 1) * m)
        read_z[j, block] = control.C[j]
        drive[block, j], drive[block, n + j] = control.B[j, :, 3], control.B[j, :, 4]
        own[block, block] = control.A[j]
    inverse = np.linalg.inv(M)
    free = np.block([[np.zeros((n, n)), np.eye(n)], [-inverse @ K, -inverse @ D]])
    push = np.vstack([np.zeros((n, n)), inverse * gain])
    feed = np.hstack([read_q, read_v])
    if control.rate is None:
        closed = np.block([[free + push @ feed, push @ read_z], [drive, own]])
        values, vectors = np.linalg.eig(closed)
        worst = int(np.argmax(values.real))
        return float(values[worst].real), name_fastest_joint(loop, vectors[: 2 * n, worst])
    # exact over a control period with the torque held (zero-order hold), then delayed
    hold, delay = loop.steps
    period = 1.0 / control.rate
    with np.errstate(over="ignore", invalid="ignore"):
        whole = expm(np.block([[free, push], [np.zeros((n, 3 * n))]]) * period)
    move, act = whole[: 2 * n, : 2 * n], whole[: 2 * n, 2 * n :]
    # control periods that a torque waits, rounded up: as many wait in a queue behind the states
    late = -(-delay // hold)
    size = 2 * n + n * m + n * late
    closed = np.zeros((size, size))
    rest = slice(2 * n, 2 * n + n * m)
    closed[: 2 * n, : 2 * n] = move
    closed[rest, : 2 * n], closed[rest, rest] = drive, own
    if late == 0:
        closed[: 2 * n, : 2 * n] += act @ feed
        closed[: 2 * n, rest] += act @ read_z
    else:
        queue = 2 * n + n * m
        closed[queue : queue + n, : 2 * n], closed[queue : queue + n, rest] = feed, read_z
        closed[queue + n :, queue : size - n] = np.eye((late - 1) * n)
        closed[: 2 * n, size - n :] = act
    if not np.all(np.isfinite(closed)):
        return np.inf, name_fastest_joint(loop, np.tile(~np.isfinite(closed[:n]).all(axis=1), 2))
    values, vectors = np.linalg.eig(closed)
    worst = int(np.argmax(np.abs(values)))
    growth = float(np.log(max(abs(values[worst]), 1e-300)) * control.rate)
    return growth, name_fastest_joint(loop, vectors[: 2 * n, worst])


def name_fastest_joint(loop: Loop, vector: Array) -> str:
    """The joint that moves most in an eigenvector."""
    robot = loop.idim.robot
    dof = len(vector) // 2
    speed = np.abs(vector[dof:]) + np.abs(vector[:dof])
    joint = int(np.argmax(speed[dof - robot.n :]))
    return robot.joint_names[joint]
