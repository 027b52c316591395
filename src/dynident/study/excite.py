"""Design of a trajectory for a study's robot, after what its logs already tell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.progress import Progress, silent
from dynident.excitation.excite import Excitation, excite
from dynident.regression.problem import Problem
from dynident.regression.weighted import weighted_solution
from dynident.study.elements import build_elements
from dynident.study.excitation import build_obstacles, read_trajectory
from dynident.study.study import Study, study_robot, study_samples


def excite_study(
    study: Study,
    given: dict[str, Any],
    after: Sequence[Path] = (),
    progress: Progress = silent,
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
    progress : callable, optional

    Raises
    ------
    InputError, ComputationError
    """
    robot = study_robot(study)
    elements = build_elements(study.element, robot)
    logs = [log for log in study.log if log.use == "identify"]
    earlier = [read_trajectory(path)[0] for path in after]
    for path, each in zip(after, earlier, strict=True):
        if each.C.shape[1] != robot.n:
            raise InputError(f"{path}: moves {each.C.shape[1]} joints, the robot has {robot.n}")
    known = None
    if logs:
        samples = [study_samples(log, robot, study.prepare) for log in logs]
        problem = Problem(
            robot, samples, study.robot.friction, study.robot.rotor, elements=elements
        )
        known = information_of(problem)
    return excite(
        robot,
        study.robot.friction,
        rotor=study.robot.rotor,
        elements=elements,
        obstacles=build_obstacles(study.obstacle),
        known=known,
        after=earlier,
        progress=progress,
        **{**study.excitation.model_dump(exclude_none=True), **given},
    )


def information_of(problem: Problem) -> Array:
    """What logs tell of the base parameters, under their own residuals.

    Returns
    -------
    ndarray, shape (count, count)
        ``X' W X`` of weighted least squares.
    """
    factors = problem.factors
    _, sigma, _ = weighted_solution(factors)
    total = np.zeros((problem.base.count,) * 2)
    for group, each in zip(factors.groups, sigma, strict=True):
        X = group.factor[:, :-1] / each
        total += X.T @ X
    return total
