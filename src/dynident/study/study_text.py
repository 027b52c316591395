"""A study as text: what was given by flags, to be kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from dynident.consistency.constraints import serialise_constraint
from dynident.consistency.symmetries import find_symmetries
from dynident.core.schema import replace_file_names
from dynident.robot.model import Robot
from dynident.study.study import LogSection, PrepareSection, Study


def render_study(study: Study, folder: Path) -> str:
    """A study as TOML that `read_study` takes; keys at their defaults are left out.

    Its file names, seen from the current directory, become relative to the folder.
    """
    beside = replace_file_names(study, lambda name: Path(os.path.relpath(name, folder)).as_posix())
    data = beside.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    if "friction" in study.robot.model_fields_set:
        data["robot"]["friction"] = study.robot.friction  # stated, and so not decided again
    return tomlkit.dumps(data)


def render_run_studies(
    study: Study, folder: Path, runs: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Studies of logs that are to be recorded, ``log.csv`` in a folder a run, by file name.

    The robot and its loops are the study's, its friction is stated. `runs`: keys of ``[prepare]``
    by the folders of the runs.
    """
    robot = study.robot.model_copy(update={"friction": study.robot.friction})
    model, made = Study(robot=robot, loop=study.loop, element=study.element), {}
    for run, prepare in runs.items():
        log = LogSection(files=(str(folder / run / "log.csv"),))
        own = model.model_copy(update={"log": (log,), "prepare": PrepareSection(**prepare)})
        made[f"{run}/study.toml"] = render_study(own, folder / run)
    return made


def list_symmetries(model: Robot) -> list[dict[str, Any]]:
    """Links that mirror each other by the file's inertials, as a study states it."""
    return [serialise_constraint(each) for each in find_symmetries(model)]
