"""``dynident fleet``: folders of factors, one a robot, to the type and its odd robots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from dynident.collection.fleet import (
    OpenedFleet,
    describe_fleet,
    identify_member,
    identify_type,
    weigh,
)
from dynident.collection.folder import HEAD
from dynident.collection.member import Site
from dynident.collection.sites import FleetFile, read_fleet
from dynident.core.compiled import tells_compilations
from dynident.core.errors import InputError
from dynident.core.progress import Progress, ignore_progress
from dynident.core.side_by_side import Engine
from dynident.methods.keywords import IdentifyOptions
from dynident.report.fit import Fit
from dynident.report.fleet import Fleet
from dynident.study.collect import collect, restore_study
from dynident.study.run import collect_study_options
from dynident.study.study import Study


def read_given(study: Path | None, folders: Sequence[Path]) -> FleetFile:
    """The study, folders and sites that are meant, by themselves or by the file of a fleet."""
    if len(folders) != 1 or folders[0].suffix != ".toml":
        return FleetFile(study, [*folders], ())
    if study is not None:
        raise InputError(f"--study: {folders[0]} says which; leave it out")
    return read_fleet(folders[0])


@tells_compilations
def identify_fleet(
    folders: Sequence[str | Path],
    method: str | None = None,
    *,
    sites: Sequence[Site] = (),
    progress: Progress = ignore_progress,
    **options: Unpack[IdentifyOptions],
) -> Fleet:
    """Identify robots of one type together, from folders of factors that `collect` made.

    >>> fleet = di.identify_fleet(["factors", "second", "third"])

    Parameters
    ----------
    folders : sequence of str or Path
        One a robot, of one model and preparation.
    method : str, optional
        One of `dynident.methods.FACTORED`; that of their study by default.
    sites : sequence of Site
        Robots that carry the same tool.
    progress : callable
        See `Progress`.
    **options
        Those of the method, by name; the study's by default.

    Returns
    -------
    Fleet
        The type as a fit, and what is said of each robot.

    Raises
    ------
    InputError
        For folders of different models, and methods and options that need rows.
    ComputationError
        Where most robots contradict each other, and where no trustworthy answer came out.
    """
    robots = weigh(folders, sites, progress)
    fit = identify_type(robots, *choose_method(robots, method, options), progress)
    return describe_fleet(robots, fit)


@tells_compilations
def identify_robot(
    folders: Sequence[str | Path],
    name: str,
    method: str | None = None,
    *,
    sites: Sequence[Site] = (),
    progress: Progress = ignore_progress,
    **options: Unpack[IdentifyOptions],
) -> Fit:
    """Identify one robot of a fleet, from its own logs and what the others tell of its type.

    Parameters and errors are those of `identify_fleet`; the name of a robot is its folder's.

    >>> fit = di.identify_robot(["factors", "second", "third"], "third")
    """
    robots = weigh(folders, sites, progress)
    return identify_member(robots, name, *choose_method(robots, method, options), progress)


def choose_method(
    robots: OpenedFleet, method: str | None, options: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The method and its options: what is given, else what the robots' study states."""
    study = restore_study(robots.folder, robots.statement, [])
    given = {key: value for key, value in options.items() if value is not None}
    return method or study.identify.method, {**collect_study_options(study), **given}


def collect_robots(
    study: Study, folders: Sequence[Path], output: Path, engine: Engine, progress: Progress
) -> tuple[list[Path], list[str]]:
    """Folders of factors made of folders of logs, under the same names, and what is left out."""
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: is not a folder; give each robot a folder of its logs")
    made = [each if (each / HEAD).is_file() else output / each.resolve().name for each in folders]
    left = []
    for folder, target in zip(folders, made, strict=True):
        if target != folder:
            found = collect(study, [folder], target, engine=engine, progress=progress)
            left += [f"{target.name}: {each.name}: {each.reason}" for each in found.left_out]
    return made, left
