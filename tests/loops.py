"""Simulated logs of small robots under control, for tests of what needs a closed loop."""

from __future__ import annotations

import numpy as np
import toy

from dynident.control.controller import Controller, pd
from dynident.control.reference import Reference, fourier
from dynident.core.arrays import Array
from dynident.dynamics.idim import Idim, build_idim
from dynident.recording.prepare import prepare
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.robot.model import Robot
from dynident.simulation.loop import Loop
from dynident.simulation.rollout import rollout

RATE = 500.0
WIDTH = 0.05


def reference(n: int, seconds: float = 8.0, seed: int = 3, rate: float = RATE) -> Reference:
    """A lively Fourier reference below 2 Hz."""
    rng = np.random.default_rng(seed)
    sine, cosine = rng.normal(size=(2, n, 6))
    return fourier(rate, seconds, 0.25, np.zeros(n), 0.6 * sine, 0.6 * cosine)


def controller(n: int, rate: float | None = None) -> Controller:
    """PD gains that track well."""
    return pd(np.linspace(4000.0, 1500.0, n), np.linspace(120.0, 50.0, n), rate=rate)


def closed_loop(
    n: int = 2,
    *,
    coupled: bool = False,
    friction: str = "coulomb-viscous",
    noise: float = 0.0,
    torque_noise: float = 0.0,
    seconds: float = 8.0,
    rate: float | None = RATE,
    seed: int = 0,
    bandwidth: float = 8.0,
) -> tuple[Problem, Array, Controller]:
    """A problem on the log of a simulated arm, its true base parameters, its controller."""
    robot: Robot = toy.arm(n, coupled)
    idim = build_idim(robot, friction)
    theta = toy.true_parameters(idim, robot.nominal)
    control, along = controller(n, rate), reference(n, seconds)
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=along.q.shape) * noise if noise else None
    motion = rollout(Loop(idim, control, along, width=np.full(n, WIDTH), noise=seen), theta)
    tau = motion.tau + rng.normal(size=motion.tau.shape) * torque_noise
    log = Recording("loop", RATE, motion.measured, tau, qref=along.q, dqref=along.dq)
    problem = Problem(robot, prepare(log, bandwidth=bandwidth), friction)
    return problem, problem.base.matrix @ theta, control


def stribeck_truth() -> tuple[Idim, Array]:
    """A pendulum with Stribeck friction, and its full set."""
    model = build_idim(toy.arm(1), "stribeck").shaped([0.3])
    values = {"Ia": 0.3, "fv": 2.0, "fc": 3.0, "fs": 4.0, "off": 0.5}
    return model, model.join(toy.arm(1).nominal, np.array([values[p.symbol] for p in model.drives]))


def stribeck_loop(
    seed: int, noise: float, seconds: float = 16.0
) -> tuple[Problem, Controller, float]:
    """The log of that pendulum with noisy encoders, its controller, the width of its sign."""
    model, theta = stribeck_truth()
    rng, along, control = np.random.default_rng(seed), reference(1, seconds), controller(1, RATE)
    seen, width = rng.normal(size=along.q.shape) * noise, 0.005
    motion = rollout(Loop(model, control, along, width=np.full(1, width), noise=seen), theta)
    tau = motion.tau + 0.1 * rng.normal(size=motion.tau.shape)
    log = Recording("loop", RATE, motion.measured, tau, qref=along.q, dqref=along.dq)
    samples = prepare(log, bandwidth=10.0, drop_below=0.08)
    return Problem(toy.arm(1), samples, "stribeck"), control, width


def output(controller: Controller, z: Array, w: Array) -> Array:
    """Limited outputs ``sat(C z + D w)``, shape (n,), of states z (n, m) and `INPUTS` w (n, 5).

    Of joints in one array each, where the library's loops go joint by joint.
    """
    return np.clip(linear_output(controller, z, w), -controller.limit, controller.limit)


def next_state(controller: Controller, z: Array, w: Array) -> Array:
    """``A z + B w + antiwindup (sat(u) - u)``, shape (n, m), less near the target.

    Next states of a sampled controller, rates of change of a continuous one's.
    """
    u = linear_output(controller, z, w)
    excess = np.clip(u, -controller.limit, controller.limit) - u
    found = controller.antiwindup * excess[:, None]
    for j, i in np.ndindex(z.shape):
        own = np.arange(controller.states) == i
        taken = controller.B[j, i] @ w[j] + controller.A[j, i, ~own] @ z[j, ~own]
        taken += controller.B[j, i, 0] * bend(controller, w)[0][j]
        error, band = abs(w[j, 0] - w[j, 3]), controller.band[j, i]
        share = np.clip(error / band - 1.0, 0.0, 1.0) if band else 1.0
        found[j, i] += controller.A[j, i, i] * z[j, i] + share * taken
    return found


def linear_output(controller: Controller, z: Array, w: Array) -> Array:
    """Outputs ``C z + D w`` without limits, shape (n,)."""
    u = (controller.C * z).sum(axis=1) + (controller.D * w).sum(axis=1)
    change, sign = bend(controller, w)
    return np.asarray(u + controller.D[:, 0] * change + controller.punch * sign)


def bend(controller: Controller, w: Array) -> tuple[Array, Array]:
    """What a servo's dead band changes of its errors, and their signs beyond it, shapes (n,)."""
    if not controller.edge:
        return np.zeros(controller.n), np.zeros(controller.n)
    error, band, edge = w[:, 0] - w[:, 3], controller.deadband, controller.edge
    above, below = (error - band) / edge, (error + band) / edge
    change = edge * (np.logaddexp(0.0, above) - np.logaddexp(0.0, -below)) - error
    return change, 0.5 * (np.tanh(0.5 * above) + np.tanh(0.5 * below))


def off(beta: Array, truth: Array) -> float:
    """Largest error, relative to each value or to a tenth of a unit."""
    return float(np.max(np.abs((beta - truth) / np.maximum(np.abs(truth), 0.1))))
