"""The file of a fleet: what is to be said of some robots and not of others."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import NamedTuple

from dynident.collection.member import Site
from dynident.core.errors import InputError
from dynident.core.schema import File, Name, Spec, read_toml, validate_data


class SiteSpec(Spec):
    """``[[site]]``: robots with the same tool."""

    name: Name
    robots: tuple[Name, ...]
    tool: Name


class FleetSpec(Spec):
    """A file of a fleet."""

    study: File | None = None
    robots: tuple[File, ...]
    site: tuple[SiteSpec, ...] = ()


class FleetFile(NamedTuple):
    """What a file of a fleet says: the study of logs, a folder a robot, and sites."""

    study: Path | None
    folders: list[Path]
    sites: tuple[Site, ...]


def read_fleet(path: str | Path) -> FleetFile:
    """Read the file of a fleet; names and patterns in it are as seen from its folder.

    Raises
    ------
    InputError
        For keys that there are not, and patterns without a folder.
    """
    path = Path(path)
    spec = validate_data(FleetSpec, read_toml(path), path)
    folders: list[Path] = []
    for pattern in spec.robots:
        found = [Path(each) for each in sorted(glob.glob(str(path.parent / pattern)))]
        found = [each for each in found if each.is_dir()]
        if not found:
            raise InputError(f"{path}: robots: no folder is called {pattern!r}")
        folders += [each for each in found if each not in folders]
    study = None if spec.study is None else path.parent / spec.study
    sites = tuple(Site(each.name, each.robots, each.tool) for each in spec.site)
    return FleetFile(study, folders, sites)
