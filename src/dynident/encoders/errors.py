"""Errors of the encoders' readings along simulated loops, with their derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.dynamics.base import BaseParameters
from dynident.encoders.unknowns import Admitted, Unknowns
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.regression.factors import GroupFactor, compress_groups
from dynident.regression.problem import Problem
from dynident.simulation.rollout import START_KINDS, LoopColumn, sensitive_rollout

INSTANTS_HZ = 200.0
"""Positions are fitted at about this rate: their errors are smooth."""


@dataclass(frozen=True, eq=False)
class LinearisedErrors:
    """Simulated positions about x: per joint the factor of ``[Psi | e]``, and the errors' size.

    So many errors are worth one, `memory`: ``(1 + r) / (1 - r)``, r being the mean correlation of
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


def choose_step_sizes(here: LinearisedErrors, free: Admitted) -> Array:
    """Steps that move positions by about their errors, or as far as is believed."""
    A = np.vstack([here.system(here.sigma())[:, :-1], free.rows])
    norms = np.linalg.norm(A, axis=0)
    return np.asarray(1.0 / np.maximum(norms, 1e-6 * max(float(norms.max()), 1e-300)))


def differentiate_readings(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array
) -> Iterator[tuple[int, np.ndarray, Array, Array]]:
    """Log, samples, derivatives and errors of the encoders' readings, stretch by stretch."""
    tuned = unknowns.tuned(x, simulation)
    auxiliary = build_auxiliary_model(
        problem.under(apply_friction_shapes(problem, unknowns, x)), tuned
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


def apply_friction_shapes(problem: Problem, unknowns: Unknowns, x: Array) -> BaseParameters:
    """The problem's base parameters with the friction's shapes at x."""
    return replace(problem.base, idim=unknowns.shaped(x))


def linearise_encoder_errors(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array
) -> LinearisedErrors:
    """One rollout of all logs with its sensitivities."""
    n, count = problem.robot.n, len(x) + 1
    errors: list[Array] = []

    def blocks() -> Iterator[tuple[Array, ...]]:
        for _, _, by, error in differentiate_readings(problem, simulation, unknowns, x):
            errors.append(error)
            yield tuple(np.column_stack([by[:, j], error[:, j]]) for j in range(n))

    factors = compress_groups(blocks(), problem.robot.joint_names, [count] * n)
    e = np.vstack(errors)
    r = np.sum(e[1:] * e[:-1], axis=0) / np.maximum(np.sum(e**2, axis=0), 1e-300)
    mean = min(max(float(np.mean(r)), 0.0), 0.999)
    return LinearisedErrors(factors, (1.0 + mean) / (1.0 - mean))
