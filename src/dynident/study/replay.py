"""Replay: a log's law on an identified model in another engine, beside our own simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError, RolloutError, check_type, refuse_unknown
from dynident.core.threads import limit_to_one_thread
from dynident.core.words import format_number
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import build_idim
from dynident.dynamics.whole import WholeModel
from dynident.engines import ENGINES
from dynident.engines.drive import build_drive
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model, fill_missing_torque
from dynident.excitation.prediction import join_nominal_parameters
from dynident.fit.figures import thin_positions
from dynident.recording.prepare import Samples, prepare
from dynident.recording.read import Files, take_log
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem, refuse_springs
from dynident.regression.rows import list_position_groups
from dynident.report.fit import Fit
from dynident.report.replays import OURS, Replay, combine_joint_rms
from dynident.robot import load_robot
from dynident.robot.model import Robot
from dynident.simulation.rollout import rollout
from dynident.study.fits import (
    AS_FITTED,
    LogLayout,
    build_study_loop,
    find_study,
    read_fit_log,
    read_other_log,
    rebuild_loop,
    suit_loop,
)
from dynident.study.simulate import choose_simulated_model
from dynident.study.study import (
    Study,
    list_logs_of,
    load_study_robot,
    read_study_samples,
    update_section,
)

POINTS = 4000
"""Samples of a log that a page draws, besides extremes."""


@dataclass(frozen=True, eq=False)
class ReplaySetting:
    """What is replayed."""

    base: BaseParameters
    model: WholeModel
    near: Callable[[], tuple[WholeModel, tuple[str, ...]]]
    """What other engines are given of it, and what that is not."""
    find_loop: Callable[[Samples], Simulation]
    """The law along a log."""

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.idim.robot


def play_file(robot: Robot, find_loop: Callable[[Samples], Simulation]) -> ReplaySetting:
    """A robot's file as it is: its inertials, armature, damping and friction."""
    if not robot.has_nominal:
        raise InputError(f"the file of {robot.name} has no inertials to replay")
    idim = build_idim(robot, "coulomb-viscous-symmetric")
    return play(WholeModel(idim, join_nominal_parameters(idim)), find_loop)


def play(model: WholeModel, find_loop: Callable[[Samples], Simulation]) -> ReplaySetting:
    """A model under a law."""
    return ReplaySetting(base_parameters(model.idim), model, lambda: (model, ()), find_loop)


def play_study(study: Study, file: str | None = None) -> ReplaySetting:
    """What a study simulates, or a robot's file as it is instead, under the study's law."""
    robot = load_study_robot(study)
    if file is not None:
        robot = load_study_robot(update_section(study, "robot", file=file), closed_as=robot)
    if study.controller is None:
        raise InputError(f"{robot.name}: has no [controller], whose law a replay takes")

    find_loop = partial(build_study_loop, study, robot)
    if file is not None:
        return play_file(robot, find_loop)
    return play(WholeModel(*choose_simulated_model(study, robot)), find_loop)


def choose_player(
    source: Fit | Study, file: str | None
) -> tuple[ReplaySetting, Callable[[], ReplaySetting] | None]:
    """What is replayed, of another file where there is one, and what makes that beside it."""
    if isinstance(source, Study):
        return play_study(source, file), None
    check_type("replay", source, Fit, "dynident.identify and read_result give one")
    law, own = partial(rebuild_loop, source), source.robot
    if file is None:
        player = ReplaySetting(source.base, source.model, lambda: source.simulable, law)
        return player, lambda: play_file(own, partial(law, fitted=False))
    robot = load_robot(
        file, floating=own.floating, gravity=own.gravity, locked=own.locked or None, closed_as=own
    )
    return play_file(robot, law), None


@limit_to_one_thread
def replay(
    source: Fit | Study,
    log: Recording | Samples | Files,
    engine: str = OURS,
    layout: LogLayout = AS_FITTED,
    robot: str | None = None,
) -> Replay:
    """Simulate a fit, or a robot file, under a log's control law in an engine and in dynident.

    >>> replayed = di.replay(di.read_study("soft.toml", use=None), driven_log)

    Parameters
    ----------
    source : Fit or Study
        That knows its controller; of a study what `simulate_study` simulates.
    log : Recording, Samples, path, DataFrame, or sequence of paths or frames
        With the law's targets. Files are read in the layout of the first log of the study, data
        frames as `read_log` knows them by the names of their columns.
    engine : {"dynident", "mujoco", "pinocchio"}
    layout : LogLayout
        Of files.
    robot : str, optional
        File of another robot, which is simulated instead.

    Raises
    ------
    InputError
        For unknown engines and those that are not installed, results without consistent links, logs
        without targets, and laws that other engines cannot have; for another robot with other
        joints.
    ComputationError
        When the model cannot be simulated.
    """
    refuse_unknown(engine, (OURS, *ENGINES), f"engine {engine!r} is not known")
    chosen = choose_player(source, robot)
    if engine != OURS:
        chosen[0].robot.refuse_loops(f"replay in {engine}")
    files = [log] if isinstance(log, (str, PathLike)) else log
    if isinstance(files, Sequence) and all(isinstance(each, (str, PathLike)) for each in files):
        names = [str(each) for each in files]
        if isinstance(source, Fit):
            samples = read_fit_log(source, names, layout, torque=False)
        else:
            samples = read_other_log(source, chosen[0].robot, names, layout, torque=False)
        return replay_samples(*chosen, samples, ",".join(names), engine)
    if not isinstance(log, Samples):
        log = take_log(log, chosen[0].robot, torque=False)
        if isinstance(source, Fit):
            log = source.prepare(log)
        else:
            log = prepare(log, **source.prepare.model_dump(exclude_none=True))
    return replay_samples(*chosen, log, log.name, engine)


@limit_to_one_thread
def replay_own_logs(
    source: Fit | Study, engine: str = OURS, robot: str | None = None
) -> list[Replay]:
    """The same on the logs that the study holds out, or else on those that it fits."""
    refuse_unknown(engine, (OURS, *ENGINES), f"engine {engine!r} is not known")
    study = source if isinstance(source, Study) else find_study(source)
    if study is None:
        raise InputError("the result was made without a study; give a log to replay")
    chosen = choose_player(source, robot)
    return [
        replay_samples(
            *chosen,
            read_study_samples(section, chosen[0].robot, study.prepare, torque=False),
            ",".join(section.files),
            engine,
        )
        for section in list_logs_of(study, "validate") or study.log
    ]


def replay_samples(
    player: ReplaySetting,
    beside: Callable[[], ReplaySetting] | None,
    samples: Samples,
    name: str,
    engine: str,
) -> Replay:
    """The same on a log that was read."""
    robot, model = player.robot, player.model
    refuse_springs(robot, "replay knows")
    simulation = find_loop(player, samples, engine)
    samples = fill_missing_torque(samples, simulation, robot.passive)
    exported, said = (model, ()) if engine == OURS else player.near()
    if engine != OURS:
        said += describe_found_law(simulation)
    bias = np.zeros(robot.n) if simulation.bias is None else np.array(simulation.bias)
    squares, count, notes = np.zeros((3, robot.n)), 0, tuple[str, ...]()
    aside: dict[str, Array] = {}
    simulated = samples.measured.copy()
    problem = Problem.of(player.base, samples)
    auxiliary = build_auxiliary_model(problem, simulation)
    for start, stop, begun in auxiliary.loops[0]:
        loop = auxiliary.begin(0, start, begun, model.theta)[0]
        measured = samples.measured[start:stop]
        here = rollout(loop, model.theta)
        motions = [measured - here.measured]
        simulated[start:stop] = here.measured
        if engine != OURS:
            there = ENGINES[engine](exported, build_drive(loop), model)
            motions += [measured - bias - there.q, there.q - here.q]
            simulated[start:stop] = there.q + bias
            notes = there.notes
            for words, q in there.otherwise:
                own = np.sum((measured - bias - q) ** 2, axis=0)
                aside[words] = aside.get(words, np.zeros(robot.n)) + own
        squares[: len(motions)] += [np.sum(motion**2, axis=0) for motion in motions]
        count += stop - start
    rms = np.sqrt(squares / count)
    nominal, reason = measure_file_error(beside, samples, engine)
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
            loop.describe(),
        ),
        (*robot.warnings, *samples.warnings, *reason),
        thin_positions(samples, simulated, POINTS),
        list_position_groups(robot)[-robot.n :],
    )


def find_loop(player: ReplaySetting, log: Samples, engine: str) -> Simulation:
    """The law along a log; other engines have targets that are held between samples."""
    found, robot = player.find_loop(log), player.robot
    return found if engine == OURS else suit_loop(found, robot, log, held=True)


def describe_found_law(simulation: Simulation) -> tuple[str, ...]:
    """What was found of the law, which no model of a robot has."""
    control, found = simulation.controller, []
    if control.delay > 1e-6:
        found.append(f"a delay of the targets of {format_number(1e3 * control.delay, 3)} ms")
    if np.any(control.gain != 1.0):
        found.append("drive gains")
    found += control.parts
    if simulation.bias is not None and np.any(np.array(simulation.bias) != 0.0):
        found.append("encoder biases")
    if simulation.mount is not None:
        found.append("a compliant mount, rigid in other engines")
    if not found:
        return ()
    return (f"of the control law, not of the model: {', '.join(found)}",)


def measure_file_error(
    beside: Callable[[], ReplaySetting] | None, log: Samples, engine: str
) -> tuple[Array | None, tuple[str, ...]]:
    """Error of a robot's file as it is, and why it has none."""
    if beside is None:
        return None, ()
    try:
        player = beside()
    except InputError as error:
        return None, (str(error),)
    problem, theta, count = Problem.of(player.base, log), player.model.theta, 0
    squares = np.zeros(player.robot.n)
    try:
        auxiliary = build_auxiliary_model(problem, find_loop(player, log, engine))
        for start, stop, loop in auxiliary.loops[0]:
            motion = rollout(auxiliary.begin(0, start, loop, theta)[0], theta)
            squares += np.sum((log.measured[start:stop] - motion.measured) ** 2, axis=0)
            count += stop - start
    except RolloutError as error:
        return None, (f"the file of {player.robot.name} cannot be replayed unchanged: {error}",)
    return np.sqrt(squares / count), ()
