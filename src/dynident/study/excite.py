"""Design of a trajectory for a study's robot, after what its logs already tell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynident.control.reference import Reference
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import collect_options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.side_by_side import Engine
from dynident.excitation.excite import Excitation, excite
from dynident.excitation.options import FAMILIES
from dynident.excitation.sections import build_obstacles, read_trajectory
from dynident.excitation.trajectories import Trajectory
from dynident.regression.elements import build_elements
from dynident.regression.problem import Problem
from dynident.regression.weighted import solve_wls
from dynident.robot.model import Robot
from dynident.study.study import (
    LogSection,
    PrepareSection,
    Study,
    build_study_problem,
    load_study_robot,
    read_study_logs,
    read_study_samples,
)

EXCITING = collect_options(FAMILIES)
"""Options that are keys of ``[excitation]``, and flags of `dynident excite`."""


def excite_study(
    study: Study,
    given: dict[str, Any],
    after: Sequence[Path] = (),
    task: Path | None = None,
    progress: Progress = ignore_progress,
    engine: Engine | None = None,
) -> Excitation:
    """Design a trajectory for a study's robot.

    Parameters
    ----------
    study : Study
        What its logs tell already is known beforehand.
    given : dict
        Options over those of ``[excitation]``.
    after : sequence of Path
        Files of trajectories that this one is to complement.
    task : Path, optional
        File of the motion whose torques are to be predicted, instead of the study's.
    """
    shared = describe_experiment(study)
    robot: Robot = shared["robot"]
    logs = read_study_logs(study, robot, "identify")
    earlier = [read_robot_trajectory(path, robot)[0] for path in after]
    known = None
    if logs:
        known = compute_information_matrix(build_study_problem(study, robot, logs))
    options = {**study.excitation.model_dump(exclude_none=True), **given}
    file = options.pop("task", None)
    if task is None and file is not None:
        task = Path(file)
    return excite(
        **shared,
        known=known,
        after=earlier,
        task=None if task is None else read_task(task, robot, study.prepare),
        engine=engine,
        progress=progress,
        **options,
    )


def describe_experiment(study: Study) -> dict[str, Any]:
    """What `excite` and `protocol` are told of a study's robot and of what stands around it."""
    robot = load_study_robot(study)
    return {
        "robot": robot,
        "friction": study.robot.friction,
        "rotor": study.robot.rotor,
        "elements": build_elements(study.element, robot),
        "obstacles": build_obstacles(study.obstacle),
    }


def read_task(path: Path, robot: Robot, settings: PrepareSection) -> Reference:
    """A motion from a trajectory.json, or from a log that is prepared as the study says.

    Of a log with gaps its runs one after another: of a task only its instants count.
    """
    if path.suffix.lower() == ".json":
        found, rate, periods = read_robot_trajectory(path, robot)
        return found.reference(rate, periods)
    samples = read_study_samples(LogSection(files=(str(path),)), robot, settings, torque=False)
    chosen = np.concatenate([np.arange(start, stop) for start, stop in samples.segments])
    return Reference(samples.rate, samples.q[chosen], samples.dq[chosen], samples.ddq[chosen])


def read_robot_trajectory(path: Path, robot: Robot) -> tuple[Trajectory, float, int]:
    """A designed trajectory of a robot, with its rate [Hz] and its periods."""
    found = read_trajectory(path)
    joints = found[0].C.shape[1]
    if joints != robot.n:
        raise InputError(f"{path}: moves {joints} joints, the robot has {robot.n}")
    return found


def compute_information_matrix(problem: Problem) -> Array:
    """``X' W X`` of logs' base parameters, weighted by their own residuals."""
    factors = problem.factors
    _, sigma, _ = solve_wls(factors)
    total = np.zeros((problem.base.count,) * 2)
    for group, each in zip(factors.groups, sigma, strict=True):
        X = group.factor[:, :-1] / each
        total += X.T @ X
    return total
