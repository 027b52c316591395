"""Replay: a log's law on an identified model in another engine, beside our own simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError, RolloutError
from dynident.core.text import suggest_nearest
from dynident.core.threads import limit_to_one_thread
from dynident.core.words import format_entry, format_number, format_table
from dynident.dynamics.base import base_parameters
from dynident.dynamics.idim import build_idim
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model, fill_missing_torque
from dynident.excitation.prediction import join_nominal_parameters
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.report.fit import Fit
from dynident.simulation.rollout import rollout
from dynident.study.engines import ENGINES, build_drive
from dynident.study.fits import (
    AS_FITTED,
    Layout,
    build_study_loop,
    find_study,
    read_fit_log,
    rebuild_loop,
)
from dynident.study.study import read_study_samples

SCHEMA = "dynident.replay/1"
OURS = "dynident"
"""The engine that is our own simulation."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Errors of free simulations of a log, from its first sample on: measured minus simulated.

    Attributes
    ----------
    log, engine : str
    joints : tuple of str
    ours : ndarray, shape (n,)
        Root mean square, of the whole model in our own simulation [rad or m].
    theirs : ndarray, shape (n,), optional
        Of the exported model in the engine; None where the engine is ours.
    apart : ndarray, shape (n,), optional
        Root mean square of the engine's motion minus ours.
    nominal : ndarray, shape (n,), optional
        Of the robot's file as it is, in our own simulation; None where that cannot be simulated.
    notes : tuple of str
        What the engine cannot express.
    warnings : tuple of str
    """

    log: str
    engine: str
    joints: tuple[str, ...]
    ours: Array
    theirs: Array | None
    apart: Array | None
    nominal: Array | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def columns(self) -> dict[str, Array]:
        """Errors by what is simulated."""
        others = ((self.engine, self.theirs), ("file", self.nominal))
        return {OURS: self.ours, **{name: rms for name, rms in others if rms is not None}}

    @property
    def cost(self) -> float | None:
        """By how much the engine's error is larger than ours, all joints together [rad or m]."""
        return (
            None
            if self.theirs is None
            else combine_joint_rms(self.theirs) - combine_joint_rms(self.ours)
        )

    def text(self) -> str:
        """A table of at most 80 columns."""
        columns = [
            (name, [format_number(1e3 * value, 3) for value in (*rms, combine_joint_rms(rms))])
            for name, rms in self.columns.items()
        ]
        lines = format_table("replay mrad", [*self.joints, "overall"], columns)
        lines += format_entry("  of", f"{self.log}: rms of the positions of free simulations")
        if self.cost is not None and self.apart is not None:
            words = (
                f"{self.engine} is {format_number(1e3 * combine_joint_rms(self.apart), 2)} apart "
                f"from dynident, which costs {1e3 * self.cost:+.2g}"
            )
            lines += format_entry("  engine", words)
        return "\n".join(
            [*lines, *(line for note in self.notes for line in format_entry("  note", note))]
        )

    def document(self) -> dict[str, Any]:
        """What ``--json`` prints [mrad or mm]."""
        named = {
            name: dict(zip(self.joints, (1e3 * rms).tolist(), strict=True))
            for name, rms in self.columns.items()
        }
        return {
            "schema": SCHEMA,
            "log": self.log,
            "engine": self.engine,
            "rms_mrad": named,
            "overall_rms_mrad": {
                k: 1e3 * combine_joint_rms(rms) for k, rms in self.columns.items()
            },
            "apart_mrad": None if self.apart is None else 1e3 * combine_joint_rms(self.apart),
            "cost_mrad": None if self.cost is None else 1e3 * self.cost,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }


def combine_joint_rms(rms: Array) -> float:
    """Root mean square of all joints together."""
    return float(np.sqrt(np.mean(rms**2)))


@limit_to_one_thread
def replay(
    fit: Fit,
    log: Recording | Samples | Sequence[str],
    engine: str = OURS,
    layout: Layout = AS_FITTED,
) -> Replay:
    """Simulate a fit under a log's law in an engine, and in ours.

    Parameters
    ----------
    fit : Fit
        That knows its controller.
    log : Recording, Samples or sequence of str
        With the law's targets; or its files, in the layout of the first log of the fit's study.
    engine : {"dynident", "mujoco", "pinocchio"}
    layout : Layout
        Of files.

    Raises
    ------
    InputError
        For unknown engines and those that are not installed, results without consistent links, logs
        without targets, and laws that other engines cannot have.
    ComputationError
        When the model cannot be simulated.
    """
    check_engine(engine)
    if isinstance(log, Samples | Recording):
        samples = log if isinstance(log, Samples) else fit.prepare(log)
        return replay_samples(fit, samples, log.name, engine)
    samples = read_fit_log(fit, log, layout, torque=False)
    return replay_samples(fit, samples, ",".join(log), engine)


@limit_to_one_thread
def replay_own_logs(fit: Fit, engine: str = OURS) -> list[Replay]:
    """The same on the logs that the fit's study holds out, or else on those that it fits."""
    check_engine(engine)
    study = find_study(fit)
    if study is None:
        raise InputError(f"{fit.robot.name}: was identified without a study; give a log to replay")
    sections = [section for section in study.log if section.use == "validate"] or study.log
    return [
        replay_samples(
            fit,
            read_study_samples(section, fit.robot, study.prepare, torque=False),
            ",".join(section.files),
            engine,
        )
        for section in sections
    ]


def check_engine(engine: str) -> None:
    """Refuse engines that are not known."""
    if engine != OURS and engine not in ENGINES:
        known = (OURS, *ENGINES)
        raise InputError(f"engine {engine!r} is not known{suggest_nearest(engine, known)}")


def replay_samples(fit: Fit, samples: Samples, name: str, engine: str) -> Replay:
    """The same on a log that was read."""
    robot = fit.robot
    simulation = rebuild_loop(fit, samples)
    samples = fill_missing_torque(samples, simulation)
    model = fit.model
    exported, said = (model, ()) if engine == OURS else fit.simulable
    if engine != OURS:
        said += describe_found_law(simulation)
    bias = np.zeros(robot.n) if simulation.bias is None else np.array(simulation.bias)
    squares, count, notes = np.zeros((3, robot.n)), 0, tuple[str, ...]()
    aside: dict[str, Array] = {}
    problem = Problem.of(fit.base, samples)
    for start, stop, loop in build_auxiliary_model(problem, simulation).loops[0]:
        measured = samples.measured[start:stop]
        here = rollout(loop, model.theta)
        motions = [measured - here.measured]
        if engine != OURS:
            there = ENGINES[engine](exported, build_drive(loop), model)
            motions += [measured - bias - there.q, there.q - here.q]
            notes = there.notes
            for words, q in there.otherwise:
                own = np.sum((measured - bias - q) ** 2, axis=0)
                aside[words] = aside.get(words, np.zeros(robot.n)) + own
        squares[: len(motions)] += [np.sum(motion**2, axis=0) for motion in motions]
        count += stop - start
    rms = np.sqrt(squares / count)
    nominal, reason = measure_nominal_error(fit, samples)
    return Replay(
        name,
        engine,
        robot.joint_names,
        rms[0],
        None if engine == OURS else rms[1],
        None if engine == OURS else rms[2],
        nominal,
        (
            *said,
            *notes,
            *(
                f"{words} the error is {1e3 * combine_joint_rms(np.sqrt(own / count)):.3g}"
                for words, own in aside.items()
            ),
        ),
        (*robot.warnings, *samples.warnings, *reason),
    )


def describe_found_law(simulation: Simulation) -> tuple[str, ...]:
    """What was found of the law, which no model of a robot has."""
    control, found = simulation.controller, []
    if control.delay > 1e-6:
        found.append(f"a delay of the targets of {format_number(1e3 * control.delay, 3)} ms")
    if np.any(control.gain != 1.0):
        found.append("drive gains")
    if simulation.bias is not None and np.any(np.array(simulation.bias) != 0.0):
        found.append("encoder biases")
    if simulation.mount is not None:
        found.append("a compliant mount, rigid in other engines")
    if not found:
        return ()
    return (f"of the control law, not of the model: {', '.join(found)}",)


def measure_nominal_error(fit: Fit, log: Samples) -> tuple[Array | None, tuple[str, ...]]:
    """Error of the robot's file as it is, under the law as the study tells it, and why it has none.

    Its inertials, armature, damping and friction, and nothing of what was fitted.
    """
    robot, study = fit.robot, find_study(fit)
    if not robot.has_nominal:
        return None, (f"the file of {robot.name} has no inertials to replay",)
    told = study is not None and study.controller is not None
    simulation = build_study_loop(study, robot, [log]) if told and study else fit.simulation
    assert simulation is not None  # rebuild_loop refuses fits without
    idim = build_idim(robot, "coulomb-viscous-symmetric")
    problem = Problem.of(base_parameters(idim), log)
    squares, count = np.zeros(robot.n), 0
    try:
        for start, stop, loop in build_auxiliary_model(problem, simulation).loops[0]:
            motion = rollout(loop, join_nominal_parameters(idim))
            squares += np.sum((log.measured[start:stop] - motion.measured) ** 2, axis=0)
            count += stop - start
    except RolloutError as error:
        return None, (f"the file of {robot.name} cannot be replayed unchanged: {error}",)
    return np.sqrt(squares / count), ()
