"""A source: one log as its factors, with what is said of it, in a small file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.kept import Origin, pack_state_file, read_state_file
from dynident.core.plain import from_plain, to_plain
from dynident.diagnosis.examine import Finding
from dynident.fit.facts import LogFacts
from dynident.regression.factors import Factors, GroupFactor, fix_signs
from dynident.regression.rows import RowGroup

SCHEMA = "dynident.source/1"


@dataclass(frozen=True)
class About:
    """What is said of a source.

    Attributes
    ----------
    key : str
        SHA-256 of its files' contents and of how they are laid out.
    section : dict
        Its ``[[log]]``; names of files as seen from the source's folder.
    facts : LogFacts
    findings : tuple of Finding
        What the doctor found in this log alone.
    groups : tuple of RowGroup
    own_percent : float
        Error of its own least-squares answer on its rows [%].
    """

    key: str
    section: dict[str, Any]
    facts: LogFacts
    findings: tuple[Finding, ...]
    groups: tuple[RowGroup, ...]
    own_percent: float


@dataclass(frozen=True, eq=False)
class Source:
    """One log as its factors.

    Attributes
    ----------
    about : About
    parameters : tuple of str
        Names of the base parameters that its columns are of.
    factors : Factors
    runs : tuple of Factors
        Of equal runs of time, for error bars.
    """

    about: About
    parameters: tuple[str, ...]
    factors: Factors
    runs: tuple[Factors, ...]

    @property
    def name(self) -> str:
        """Of the log."""
        return self.about.facts.name


@dataclass(frozen=True)
class Shape:
    """Where the numbers of a group's factor stand.

    Attributes
    ----------
    columns : tuple of int
        Base parameters that act in it.
    heights, rows : tuple of int
        Of the factor of all rows, then of each run: its lines, and the rows that it stands for.
    """

    columns: tuple[int, ...]
    heights: tuple[int, ...]
    rows: tuple[int, ...]


def name_source_file(key: str) -> str:
    """The file of a source."""
    return f"{key[:20]}.npz"


def pack_source(source: Source, robot: str, fingerprint: str) -> bytes:
    """A source as a file: one text and the upper triangles one after another."""
    parts = (source.factors, *source.runs)
    shapes, numbers = [], []
    for g in range(len(source.about.groups)):
        own = [part.groups[g] for part in parts]
        columns = source.factors.groups[g].columns
        blocks = [fix_signs(group.factor[:, [*columns, -1]]) for group in own]
        numbers += [block[np.triu_indices(len(block), m=block.shape[1])] for block in blocks]
        heights, rows = [len(block) for block in blocks], [group.rows for group in own]
        shapes.append(Shape(tuple(columns.tolist()), tuple(heights), tuple(rows)))
    about = {
        "source": to_plain(About, source.about),
        "shapes": to_plain(tuple[Shape, ...], tuple(shapes)),
    }
    origin = Origin(robot, source.parameters, fingerprint)
    return pack_state_file(SCHEMA, origin, about, {"triangles": np.concatenate(numbers)})


def read_source(path: Path, fingerprint: str) -> Source:
    """Read the file of a source, refused where it is damaged or of another preparation."""
    kept = read_state_file(path, SCHEMA, ("source", "shapes"), "dynident collect")
    if kept is None:
        raise InputError(f"{path}: no such file")
    if kept.about["fingerprint"] != fingerprint:
        raise InputError(f"{path}: was collected by another model or preparation")
    about: About = from_plain(About, kept.about["source"], f"{path}: source")
    shapes: tuple[Shape, ...] = from_plain(tuple[Shape, ...], kept.about["shapes"], str(path))
    names = tuple(kept.about["parameters"])
    try:
        groups = list(unpack_groups(about.groups, shapes, kept.arrays["triangles"], len(names)))
    except (KeyError, ValueError, IndexError) as error:
        raise kept.damaged from error
    whole, *runs = (Factors(tuple(part)) for part in zip(*groups, strict=True))
    return Source(about, names, whole, tuple(runs))


def unpack_groups(
    groups: Sequence[RowGroup], shapes: Sequence[Shape], numbers: Array, count: int
) -> Iterator[list[GroupFactor]]:
    """Of each group the factor of all rows and those of the runs."""
    place = 0
    for group, shape in zip(groups, shapes, strict=True):
        found = []
        for height, rows in zip(shape.heights, shape.rows, strict=True):
            block = np.zeros((height, len(shape.columns) + 1))
            where = np.triu_indices(len(block), m=block.shape[1])
            block[where] = numbers[place : place + len(where[0])]
            place += len(where[0])
            factor = np.zeros((height, count + 1))
            factor[:, [*shape.columns, count]] = block
            found.append(GroupFactor(group.name, factor, rows, group.noise))
        yield found
    if place != len(numbers):
        raise ValueError("there are other numbers than its shapes say")
