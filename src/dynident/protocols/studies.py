"""A protocol of a study's robot, and the studies of what is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dynident.core.progress import Progress, ignore_progress
from dynident.protocols.options import PLANNING
from dynident.protocols.protocol import Protocol, protocol
from dynident.study.elements import build_elements
from dynident.study.excitation import build_obstacles
from dynident.study.study import LogSection, Study, load_study_robot
from dynident.study.written import render_study

LEFT = ("periods",)
"""Keys of ``[excitation]`` that say something else of a protocol."""


def plan_study(
    study: Study, given: dict[str, Any], progress: Progress = ignore_progress
) -> Protocol:
    """A protocol of a study's robot, with its ``[excitation]`` and its obstacles.

    Parameters
    ----------
    given : dict
        Options over those of ``[excitation]``.
    """
    robot = load_study_robot(study)
    stated = study.excitation.model_dump(exclude_none=True)
    shared = {k: v for k, v in stated.items() if k in PLANNING and k not in LEFT}
    return protocol(
        robot,
        study.robot.friction,
        rotor=study.robot.rotor,
        elements=build_elements(study.element, robot),
        obstacles=build_obstacles(study.obstacle),
        progress=progress,
        **{**shared, **given},
    )


def render_run_studies(found: Protocol, study: Study, folder: Path) -> dict[str, str]:
    """A study of each run's log, by name: the robot is the study's, its friction is stated."""
    said = {**study.robot.model_dump(), "friction": study.robot.friction}
    robot = type(study.robot).model_validate(said)
    made = {}
    for name in found.folders.values():
        log = LogSection(files=(str(folder / name / "log.csv"),))
        own = Study(robot=robot, log=(log,), element=study.element)
        made[f"{name}/study.toml"] = render_study(own, folder / name)
    return made
