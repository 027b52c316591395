"""Rollouts of closed chains: driven joints as coordinates, passive ones on their loops.

``G^T M G ddq_a = tau_a - G^T (bias + M gamma) - friction``: see docs/loops.md. Steps are those of
the classical Runge-Kutta method; after each the loops are closed again, so that they do not drift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import RolloutError
from dynident.core.progress import Progress
from dynident.dynamics.forward import compute_mass_matrix
from dynident.dynamics.inverse import evaluate_inverse_dynamics
from dynident.robot.closure import CLOSED, SINGULAR
from dynident.simulation.loop import Loop

HUGE = 1e6
"""Speeds beyond it are those of a simulation that has failed [rad/s or m/s]."""
STAGES = ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0))
"""Of the classical method behind the first: when each is taken, and its weight in sixths."""


@dataclass(frozen=True)
class Chain:
    """A motion of a closed chain under its controller, one row a sample: see `Motion`."""

    q: Array
    dq: Array
    ddq: Array
    tau: Array
    measured: Array


def refuse_unfollowed(loop: Loop) -> None:
    """Refuse loops of which more than a law without states has to be followed."""
    control, robot = loop.controller, loop.idim.robot
    for what, there in (
        ("a controller with states", control.states),
        ("a controller with compensation", control.compensation != "none"),
        ("a delay", control.delay),
        ("a backlash", bool(np.any(control.backlash))),
        ("torques from outside", loop.external is not None),
        ("a mount", loop.mount is not None),
        ("an element", loop.elements),
        ("friction that remembers", loop.idim.has_states),
    ):
        if there:
            robot.refuse_loops(f"simulation with {what}")


def roll_out_chain(loop: Loop, theta: Array, progress: Progress) -> Chain:
    """Simulate a closed chain over the whole reference.

    Raises
    ------
    InputError
        For controllers and friction that are not followed along closed chains.
    RolloutError
        When the motion diverges, or a loop becomes singular.
    """
    refuse_unfollowed(loop)
    idim, theta = loop.idim.settled(theta)
    closure = idim.structure.closure
    assert closure is not None
    a, control, reference = closure.driven, loop.controller, loop.reference
    hold, _ = loop.steps
    h, n = 1.0 / (loop.rate * loop.substeps), idim.robot.n
    tree, phi, rotors = idim.tree, idim.split(theta)[0], idim.rotors(theta)
    width, gain = loop.width, loop.gain
    assert width is not None
    q0 = reference.q[0] if loop.q0 is None else loop.q0
    dq0 = reference.dq[0] if loop.dq0 is None else loop.dq0
    q, va = closure.settle(q0, "the start"), np.array(dq0)[a]
    bias = np.zeros(n) if loop.bias is None else loop.bias

    def read(q: Array, k: int) -> Array:
        seen = q + bias + (0.0 if loop.noise is None else loop.noise[k])
        if loop.count is None:
            return np.asarray(seen)
        steps = np.where(loop.count > 0.0, loop.count, 1.0)
        return np.where(loop.count > 0.0, np.round(seen / steps) * steps, seen)

    def decide(k: int, s: float, q: Array, dq: Array) -> Array:
        asked = interpolate_reference(loop, k, s)
        w = np.stack([*asked, read(q, k), dq], axis=1)
        u = np.clip(np.sum(control.D * w, axis=1), -control.limit, control.limit)
        return np.asarray(gain * u)

    def take(k: int, s: float, q: Array, va: Array, held: Array | None) -> tuple[Array, ...]:
        """Speeds, accelerations and torques in one state, s samples behind the k-th."""
        at = q[None]
        _, J = closure.linearise(at)
        G = closure.find_null_space(at, J)[0][:, a]
        dq = G @ va
        u = decide(k, s, q, dq) if held is None else held
        gamma = closure.find_drift(at, dq[None], J)
        M = compute_mass_matrix(tree, phi, at)[0] + rotors
        rigid = evaluate_inverse_dynamics(tree, phi, at, dq[None], gamma)[0]
        friction = idim.drive_torque(theta, at, dq[None], np.zeros((1, n)), width)[0]
        rest = u[a] - G.T @ rigid - friction[a]
        return dq, G @ np.linalg.solve(G.T @ M @ G, rest) + gamma[0], u

    found = Chain(*(np.zeros((loop.samples - loop.lead, n)) for _ in range(5)))
    held, step = None, 0
    for k in range(loop.lead, loop.samples):
        for part in range(loop.substeps):
            renewed = bool(hold) and step % hold == 0
            dq, ddq, u = take(k, part / loop.substeps, q, va, None if renewed else held)
            held = u if hold else None
            if part == 0:
                rows = (q, dq, ddq, u, read(q, k))
                for store, row in zip(vars(found).values(), rows, strict=True):
                    store[k - loop.lead] = row
            moved, changed = dq, ddq[a]
            for when, weight in STAGES:
                at, speed = q + when * h * dq, va + when * h * ddq[a]
                dq, ddq, _ = take(k, (part + when) / loop.substeps, at, speed, held)
                moved, changed = moved + weight * dq, changed + weight * ddq[a]
            q, va, step = q + h / 6.0 * moved, va + h / 6.0 * changed, step + 1
            if not np.all(np.abs(va) < HUGE):
                raise RolloutError(
                    f"the simulated motion diverges at t = {step * h:.4f} s; give more substeps, "
                    "or smaller gains"
                )
            closed, gap = closure.correct(q[None])
            if not gap[0] < CLOSED or closure.measure_distance(closed)[0] < SINGULAR:
                raise RolloutError(f"a loop becomes singular at t = {step * h:.4f} s")
            q = closed[0]
        if k % 100 == 0:
            progress("simulation", k / loop.samples)
    return found


def interpolate_reference(loop: Loop, k: int, s: float) -> tuple[Array, Array, Array]:
    """Targets between two samples: cubic by positions and speeds, accelerations linear; or held."""
    r, T = loop.reference, 1.0 / loop.rate
    m = min(k + 1, loop.samples - 1)
    if s == 0.0 or m == k or loop.held:
        return r.q[k], r.dq[k], r.ddq[k]
    slope = 3.0 * (r.q[m] - r.q[k]) / T
    b, c = slope - 2.0 * r.dq[k] - r.dq[m], r.dq[k] + r.dq[m] - 2.0 / 3.0 * slope
    q = r.q[k] + T * s * (r.dq[k] + s * (b + s * c))
    dq = r.dq[k] + s * (2.0 * b + 3.0 * s * c)
    return q, dq, r.ddq[k] + s * (r.ddq[m] - r.ddq[k])
