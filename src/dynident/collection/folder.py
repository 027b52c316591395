"""A folder of sources: the model and preparation that all of them state, and which are of use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dynident.collection.source import Source, read_source
from dynident.core.errors import InputError
from dynident.core.files import read_file
from dynident.core.plain import from_plain, to_plain
from dynident.core.state_files import take_fingerprint
from dynident.core.text import format_count
from dynident.core.version import VERSION
from dynident.core.words import format_entry, format_number, format_percent, format_table
from dynident.dynamics.idim import Idim
from dynident.dynamics.plain import make_model, put_model
from dynident.fit.copies import is_alike
from dynident.fit.json import relate_path
from dynident.fit.provenance import RobotFiles, carry_robot_files, restore_robot_files

SCHEMA = "dynident.collection/1"
HEAD = "collection.json"
"""The file that says what all sources of a folder state."""


@dataclass(frozen=True)
class FolderStatement:
    """What all sources of a folder state."""

    fingerprint: str
    """Of the model, the preparation and the program."""
    study: dict[str, Any]
    """Without logs; names of files as seen from the folder."""
    model: Idim


def pack_statement(statement: FolderStatement, folder: Path) -> bytes:
    """The head of a folder, with the text of the robot's files."""
    files = carry_robot_files(statement.model.robot)
    seen = relate_path(files.folder, folder) if files.files else ""
    source = Path(files.files[0].name) if files.files else None
    model = statement.model.of(replace(statement.model.robot, source=source))
    document = {
        "schema": SCHEMA,
        "fingerprint": statement.fingerprint,
        "study": statement.study,
        "model": put_model(model),
        "robot_files": to_plain(RobotFiles, replace(files, folder=seen)),
    }
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def state_together(
    folder: Path, model: Idim, told: dict[str, Any], parts: list[str]
) -> FolderStatement:
    """What all sources of a folder state, refused where the folder states something else.

    Parameters
    ----------
    told : dict
        The study without its logs, names of files as seen from the folder.
    parts : list of str
        What shapes factors beside the model.
    """
    text = json.dumps(put_model(model.of(replace(model.robot, source=None))))
    statement = FolderStatement(take_fingerprint([VERSION, text, *parts]), told, model)
    known = read_statement(folder)
    if known is not None and known.fingerprint != statement.fingerprint:
        odd = [f"[{k}]" for k in sorted({*told, *known.study}) if told.get(k) != known.study.get(k)]
        raise InputError(
            f"{folder}: holds factors of another model, preparation or version "
            f"({', '.join(odd) or 'their files'} differ); give another folder, or remove this one"
        )
    return statement


def read_statement(folder: Path) -> FolderStatement | None:
    """The head of a folder, with the robot as it was; None where there is none yet."""
    path = folder / HEAD
    if not path.is_file():
        return None
    try:
        found = json.loads(read_file(path))
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error})") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(f"{path}: is not a head of factors, {SCHEMA!r}; collect them again")
    try:
        model = make_model(found["model"])
        files: RobotFiles = from_plain(RobotFiles, found["robot_files"], f"{path}: robot_files")
        files = replace(files, folder=str(folder / files.folder))
        source = restore_robot_files(files, str(path))
        model = model.of(replace(model.robot, source=source))
        return FolderStatement(found["fingerprint"], found["study"], model)
    except KeyError as error:
        raise InputError(f"{path}: {error.args[0]!r} is missing; collect it again") from error


@dataclass(frozen=True)
class LogEntry:
    """What became of one log.

    Attributes
    ----------
    state : {"read", "there", "left out"}
        Whether it was read now, was there before, or does not count, for a reason.
    rows, size : int
        Fitted rows, and bytes of its file; 0 of what is left out.
    own_percent : float
        Error of its own least-squares answer [%].
    warnings : tuple of str
        What was noticed in it as it was read.
    """

    name: str
    state: Literal["read", "there", "left out"]
    reason: str = ""
    rows: int = 0
    own_percent: float = float("nan")
    size: int = 0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class CollectedFactors:
    """What a folder of factors holds, and what became of each log that was given.

    Attributes
    ----------
    entries : tuple of LogEntry
        Ordered by name.
    notes : tuple of str
        What went.
    """

    folder: Path
    entries: tuple[LogEntry, ...]
    notes: tuple[str, ...] = ()

    @property
    def left_out(self) -> tuple[LogEntry, ...]:
        """Logs that do not count, with the reasons."""
        return tuple(entry for entry in self.entries if entry.state == "left out")

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "folder": str(self.folder)}

    def summary(self) -> str:
        """Plain text of at most 80 columns."""
        used = [entry for entry in self.entries if entry.state != "left out"]
        states = [str(entry.state) for entry in used]
        size = sum(entry.size for entry in used)
        lines = format_entry(
            "factors",
            f"{self.folder}: {format_count(len(used), 'source')} of "
            f"{sum(entry.rows for entry in used)} rows in {size / 1000.0:.0f} kB; "
            f"{sum(entry.state == 'read' for entry in used)} read now, "
            f"{len(self.left_out)} left out",
        )
        if used:
            columns = [
                ("state", states),
                ("rows", [str(entry.rows) for entry in used]),
                ("own error %", [format_percent(entry.own_percent) for entry in used]),
                ("kB", [format_number(entry.size / 1000.0, 3) for entry in used]),
            ]
            lines += ["", *format_table("source", [entry.name for entry in used], columns)]
        for entry in self.left_out:
            lines += format_entry("left out", f"{entry.name}: {entry.reason}")
        return "\n".join(lines)


def read_sources(folder: Path, statement: FolderStatement) -> tuple[list[Source], list[LogEntry]]:
    """The sources of a folder, ordered by their contents; and the files that are none of them."""
    found: list[Source] = []
    left: list[LogEntry] = []
    for path in folder.glob("*.npz"):
        try:
            found.append(read_source(path, statement.fingerprint))
        except InputError as error:
            left.append(leave_out(path.name, f"{error}; collect its log again, or remove it"))
    return sorted(found, key=lambda source: source.about.key), left


def choose_sources(sources: Sequence[Source]) -> tuple[list[Source], list[LogEntry]]:
    """The sources that count: what is there twice, under whatever names, counts once."""
    left: list[LogEntry] = []
    first: list[Source] = []
    for source in sources:
        twin = next((other for other in first if is_same_log(source, other)), None)
        if twin is None:
            first.append(source)
        else:
            left.append(leave_out(source.name, f"has the samples of {twin.name}"))
    return first, left


def is_same_log(source: Source, other: Source) -> bool:
    """Whether two sources are of the same samples, as of other units, formats or digits."""
    own, facts = source.about.facts, other.about.facts
    marks = own.words.marks, facts.words.marks
    alike = marks[0] is not None and marks[1] is not None and is_alike(marks[0], marks[1])
    return alike or own.digest == facts.digest


def leave_out(name: str, reason: object) -> LogEntry:
    """A log that does not count."""
    return LogEntry(name, "left out", str(reason).removeprefix(f"{name}: "))
