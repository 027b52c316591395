"""Design of a trajectory for a study's robot, after what its logs already tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.progress import Progress, silent
from dynident.excitation.excite import Excitation, excite
from dynident.regression.problem import Problem
from dynident.regression.weighted import weighted_solution
from dynident.study.elements import build_elements
from dynident.study.excitation import build_obstacles
from dynident.study.study import Study, study_robot, study_samples


def excite_study(study: Study, given: dict[str, Any], progress: Progress = silent) -> Excitation:
    """Design a trajectory for a study's robot.

    Parameters
    ----------
    study : Study
        What its logs tell already is known beforehand.
    given : dict
        Options over those of ``[excitation]``.
    progress : callable, optional

    Raises
    ------
    InputError, ComputationError
    """
    robot = study_robot(study.robot)
    elements = build_elements(study.element, robot)
    logs = [log for log in study.log if log.use == "identify"]
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
