"""Errors of the encoders' readings along simulated loops, with their derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.factors import Factors, GroupFactor, compress_groups, merge_all
from dynident.core.threads import map_in_threads
from dynident.dynamics.base import BaseParameters
from dynident.encoders.unknowns import AdmittedUnknowns, Unknowns
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.regression.problem import Problem
from dynident.simulation.loop import Loop, LoopColumn
from dynident.simulation.rollout import START_KINDS, sensitive_rollout

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


def choose_step_sizes(here: LinearisedErrors, free: AdmittedUnknowns) -> Array:
    """Steps that move positions by about their errors, or as far as is believed."""
    A = np.vstack([here.system(here.sigma())[:, :-1], free.rows])
    norms = np.linalg.norm(A, axis=0)
    return np.asarray(1.0 / np.maximum(norms, 1e-6 * max(float(norms.max()), 1e-300)))


@dataclass(frozen=True, eq=False)
class EncoderRun:
    """A run of a log from where it was measured, and what it is differentiated by."""

    index: int
    """Of its log."""
    measured: Array
    """What the encoders read all along the log, shape (samples, n)."""
    start: int
    """Its first sample."""
    loop: Loop
    theta: Array
    unknowns: Unknowns
    own: tuple[LoopColumn, ...]
    columns: Integers
    """Which of the unknowns it depends on: all but the starts of other runs."""

    def follow(self) -> Iterator[tuple[Integers, Array, Array]]:
        """Samples, derivatives by `columns` and errors of the readings, stretch by stretch."""
        unknowns, first = self.unknowns, len(self.unknowns.columns)
        step = max(1, round(self.loop.rate / INSTANTS_HZ))
        biases = [(c.joint, first + k) for k, c in enumerate(unknowns.own) if c.kind == "bias"]
        for part in sensitive_rollout(self.loop, self.theta, unknowns.columns, ("q",), self.own):
            a = self.start + part.start
            sample = np.arange(a, a + len(part.motion.q))
            kept = sample % step == 0
            by = part.by_q[kept]
            for joint, column in biases:
                by[:, joint, column] += 1.0
            yield sample[kept], by, self.measured[sample[kept]] - part.motion.measured[kept]


def list_runs(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array
) -> list[EncoderRun]:
    """The runs of all logs, simulated at x."""
    tuned = unknowns.tuned(x, simulation)
    auxiliary = build_auxiliary_model(
        problem.under(apply_friction_shapes(problem, unknowns, x)), tuned
    )
    theta, n, starts = unknowns.theta(x), problem.robot.n, unknowns.starts(x)
    begin = [LoopColumn(kind, j) for kind in START_KINDS for j in range(n)] if len(starts) else []
    own, runs = (*unknowns.own, *begin), list[EncoderRun]()
    for index, loops in enumerate(auxiliary.loops):
        for start, _, loop in loops:
            run = len(runs)
            begun = replace(loop, q0=starts[run, 0], dq0=starts[run, 1]) if len(starts) else loop
            place = unknowns.asked + len(begin) * run
            columns = np.array([*range(unknowns.asked), *range(place, place + len(begin))])
            measured = problem.samples[index].measured
            runs.append(EncoderRun(index, measured, start, begun, theta, unknowns, own, columns))
    return runs


def differentiate_readings(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array
) -> Iterator[tuple[int, Integers, Array, Array]]:
    """Log, samples, derivatives and errors of the encoders' readings, stretch by stretch."""
    runs = list_runs(problem, simulation, unknowns, x)
    found = map_in_threads(lambda run: [*run.follow()], runs)
    for run, parts in zip(runs, found, strict=True):
        for sample, by, error in parts:
            spread = np.zeros((*by.shape[:2], len(x)))
            spread[:, :, run.columns] = by
            yield run.index, sample, spread, error


def apply_friction_shapes(problem: Problem, unknowns: Unknowns, x: Array) -> BaseParameters:
    """The problem's base parameters with the friction's shapes at x."""
    return replace(problem.base, idim=unknowns.shaped(x))


def linearise_encoder_errors(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array
) -> LinearisedErrors:
    """One rollout of all logs with its sensitivities."""
    names, n = problem.robot.joint_names, problem.robot.n

    def compress(run: EncoderRun) -> tuple[Factors, Array]:
        errors: list[Array] = []

        def blocks() -> Iterator[tuple[Array, ...]]:
            for _, by, error in run.follow():
                errors.append(error)
                yield tuple(np.column_stack([by[:, j], error[:, j]]) for j in range(n))

        groups = compress_groups(blocks(), names, [len(run.columns) + 1] * n)
        places = np.append(run.columns, len(x))
        return Factors(tuple(g.spread(places, len(x) + 1) for g in groups)), np.vstack(errors)

    found = [*map_in_threads(compress, list_runs(problem, simulation, unknowns, x))]
    factors, e = merge_all([own for own, _ in found]), np.vstack([each for _, each in found])
    r = np.sum(e[1:] * e[:-1], axis=0) / np.maximum(np.sum(e**2, axis=0), 1e-300)
    mean = min(max(float(np.mean(r)), 0.0), 0.999)
    return LinearisedErrors(factors.groups, (1.0 + mean) / (1.0 - mean))
