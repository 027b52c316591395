"""A source: one log as its factors, with what is said of it, in a small file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dynident.core.arrays import Integers
from dynident.core.errors import InputError
from dynident.core.factors import Factors, GroupFactor, fix_signs
from dynident.core.plain import from_plain, to_plain
from dynident.core.state_files import StateOrigin, pack_state_file, read_state_file
from dynident.diagnosis.examine import Finding
from dynident.fit.facts import LogFacts
from dynident.regression.rows import RowGroup

SCHEMA = "dynident.source/1"


@dataclass(frozen=True)
class SourceDescription:
    """What is said of a source."""

    key: str
    """SHA-256 of its files' contents and of how they are laid out."""
    section: dict[str, Any]
    """Its ``[[log]]``; names of files as seen from the source's folder."""
    facts: LogFacts
    findings: tuple[Finding, ...]
    """What the doctor found in this log alone."""
    groups: tuple[RowGroup, ...]
    own_percent: float
    """Error of its own least-squares answer on its rows [%]."""
    stamp: str = ""
    """What a store says of the versions of its files, where they are in one."""


@dataclass(frozen=True, eq=False)
class Source:
    """One log as its factors."""

    about: SourceDescription
    parameters: tuple[str, ...]
    """Names of the base parameters that its columns are of."""
    factors: Factors
    runs: tuple[Factors, ...]
    """Of equal runs of time, for error bars."""

    @property
    def name(self) -> str:
        """Of the log."""
        return self.about.facts.name


def name_source_file(key: str) -> str:
    """The file of a source."""
    return f"{key[:20]}.npz"


def pack_source(source: Source, robot: str, fingerprint: str) -> bytes:
    """A source as a file: a text, and the upper triangles one after another.

    Of each group there is one of all rows, then one of each run, all with the columns of the first.
    """
    parts = (source.factors, *source.runs)
    places = [group.columns for group in source.factors.groups]
    blocks = [
        [fix_signs(part.groups[g].factor[:, [*columns, -1]]) for part in parts]
        for g, columns in enumerate(places)
    ]
    arrays = {
        "triangles": np.concatenate([b[list_places(*b.shape)] for own in blocks for b in own]),
        "heights": np.array([[len(block) for block in own] for own in blocks]),
        "rows": np.array([[part.groups[g].rows for part in parts] for g in range(len(places))]),
        "columns": np.concatenate(places),
        "widths": np.array([len(columns) for columns in places]),
    }
    about = {"source": to_plain(SourceDescription, source.about)}
    origin = StateOrigin(robot, source.parameters, fingerprint)
    return pack_state_file(SCHEMA, origin, about, arrays)


@cache
def list_places(height: int, width: int) -> tuple[Integers, Integers]:
    """Where the numbers of an upper triangle, or trapezoid, stand."""
    return np.triu_indices(height, m=width)


def read_source(path: Path, fingerprint: str) -> Source:
    """Read the file of a source, refused where it is damaged or of another preparation."""
    kept = read_state_file(path, SCHEMA, ("source",), "dynident collect")
    if kept is None:
        raise InputError(f"{path}: no such file")
    if kept.about["fingerprint"] != fingerprint:
        raise InputError(f"{path}: was collected by another model or preparation")
    about: SourceDescription = from_plain(
        SourceDescription, kept.about["source"], f"{path}: source"
    )
    names = tuple(kept.about["parameters"])
    try:
        groups = list(unpack_groups(about.groups, kept.arrays, len(names)))
    except (KeyError, ValueError, IndexError) as error:
        raise kept.damaged from error
    whole, *runs = (Factors(tuple(part)) for part in zip(*groups, strict=True))
    return Source(about, names, whole, tuple(runs))


def unpack_groups(
    groups: Sequence[RowGroup], arrays: Mapping[str, Any], count: int
) -> Iterator[list[GroupFactor]]:
    """Of each group the factor of all rows and those of the runs."""
    numbers, place = arrays["triangles"], 0
    own = np.split(arrays["columns"], np.cumsum(arrays["widths"])[:-1])
    told = zip(groups, own, arrays["heights"].tolist(), arrays["rows"].tolist(), strict=True)
    for group, columns, heights, counts in told:
        found = []
        for height, rows in zip(heights, counts, strict=True):
            block = np.zeros((height, len(columns) + 1))
            where = list_places(*block.shape)
            block[where] = numbers[place : place + len(where[0])]
            place += len(where[0])
            factor = np.zeros((height, count + 1))
            factor[:, [*columns, count]] = block
            found.append(GroupFactor(group.name, factor, rows, group.noise))
        yield found
    if place != len(numbers):
        raise ValueError("its arrays do not have the stated shapes")
