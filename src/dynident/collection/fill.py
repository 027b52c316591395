"""Logs that a folder lacks are reduced and put there; what has changed or is withdrawn goes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dynident.collection.folder import (
    HEAD,
    Collected,
    Entry,
    Statement,
    choose_sources,
    leave_out,
    pack_statement,
    read_sources,
)
from dynident.collection.reduce import take_key
from dynident.collection.source import Source, name_source_file
from dynident.core.errors import InputError
from dynident.core.files import write_files
from dynident.core.progress import Progress
from dynident.core.side_by_side import Engine, Lost, run_side_by_side
from dynident.core.text import suggest_nearest

Section = Mapping[str, Any]
"""A ``[[log]]`` as plain data."""


class Task(NamedTuple):
    """A log to be reduced, as plain data that cross processes; the study is JSON, without logs."""

    study: str
    section: Section
    folder: str
    key: str
    fingerprint: str


class Reduced(NamedTuple):
    """The file of a source, or why there is none."""

    content: bytes
    reason: str = ""


def fill_folder(
    folder: Path,
    statement: Statement,
    sections: Sequence[Section],
    left: Sequence[Entry],
    study: str,
    work: Callable[[Task], Reduced],
    *,
    engine: Engine,
    strict: bool,
    withdraw: Sequence[str],
    progress: Progress,
) -> Collected:
    """Reduce the logs that a folder does not have as they are now.

    Parameters
    ----------
    left : sequence of Entry
        What is no log.
    study : str
        JSON of the model and preparation, for `work`.
    work : callable
        Reduces one log; a function of a module.
    """
    logs, left = key_sections(sections, left)
    refuse_left_out(left, strict)
    write_files({folder / HEAD: pack_statement(statement, folder)})
    there, _ = read_sources(folder, statement)
    notes = withdraw_sources(folder, there, withdraw)
    known = {source.about.key for source in there}  # what is withdrawn now is not read again
    tasks = [
        Task(study, section, os.path.abspath(folder), key, statement.fingerprint)
        for key, section in sorted(logs.items())
        if key not in known
    ]
    fresh = set()
    for k, made in run_side_by_side(work, tasks, engine, progress, "collecting"):
        if isinstance(made, Lost) or made.reason:
            left.append(leave_out(name_section(tasks[k].section), made.reason))
            refuse_left_out(left, strict)
            continue
        write_files({folder / name_source_file(tasks[k].key): made.content})
        fresh.add(tasks[k].key)
    notes += remove_changed(folder, there, {key: logs[key] for key in fresh})
    entries = list_entries(folder, statement, fresh, left)
    refuse_left_out([entry for entry in entries if entry.state == "left out"], strict)
    return Collected(folder, tuple(entries), tuple(notes))


def key_sections(
    sections: Sequence[Section], left: Sequence[Entry]
) -> tuple[dict[str, Section], list[Entry]]:
    """Logs by what they hold, each once, and what is left out."""
    logs: dict[str, Section] = {}
    left = [*left]
    for section in sorted(sections, key=lambda each: (name_section(each), each["files"])):
        try:
            key = take_key(section["files"], describe_layout(section))
        except InputError as error:
            left.append(leave_out(name_section(section), error))
            continue
        if key in logs:
            words = f"has the contents of {name_section(logs[key])}"
            left.append(leave_out(name_section(section), words))
        logs.setdefault(key, section)
    return logs, left


def refuse_left_out(left: Sequence[Entry], strict: bool) -> None:
    """Refuse the first log that is left out, where that was asked for."""
    if strict and left:
        raise InputError(f"{left[0].name}: {left[0].reason}")


def name_section(section: Section) -> str:
    """What a log is called."""
    return section.get("name") or "+".join(Path(name).name for name in section["files"])


def describe_layout(section: Section) -> str:
    """All of a log but its files."""
    told = {key: v for key, v in section.items() if key not in ("files", "name", "use")}
    return json.dumps(told, sort_keys=True)


def withdraw_sources(folder: Path, there: Sequence[Source], names: Sequence[str]) -> list[str]:
    """Remove sources by their names; what went, in words."""
    known = [source.name for source in there]
    for name in names:
        if name not in known:
            raise InputError(f"{folder}: has no source {name!r}{suggest_nearest(name, known)}")
    gone = [source for source in there if source.name in names]
    for source in gone:
        (folder / name_source_file(source.about.key)).unlink()
    return [f"{source.name} is withdrawn" for source in gone]


def remove_changed(
    folder: Path, there: Sequence[Source], fresh: Mapping[str, Section]
) -> list[str]:
    """Remove what was read from files that hold something else now; what went, in words."""

    def place(section: Section, beside: Path) -> tuple[str, ...]:
        paths = ((beside / name).resolve() for name in section["files"])
        return (describe_layout(section), *map(str, paths))

    again = {place(section, Path()): key for key, section in fresh.items()}
    notes = []
    for source in there:
        own = source.about
        if again.get(place(own.section, folder), own.key) != own.key:
            (folder / name_source_file(own.key)).unlink(missing_ok=True)
            notes.append(f"{source.name} has changed: its earlier factors went")
    return notes


def list_entries(
    folder: Path, statement: Statement, fresh: Collection[str], left: Sequence[Entry]
) -> list[Entry]:
    """All that a folder holds, of which some keys are fresh, and what is left out; by name."""
    found, damaged = read_sources(folder, statement)
    usable, others = choose_sources(found)
    used = [
        Entry(
            source.name,
            "read" if source.about.key in fresh else "there",
            "",
            source.factors.rows,
            source.about.own_percent,
            (folder / name_source_file(source.about.key)).stat().st_size,
        )
        for source in usable
    ]
    return sorted((*used, *left, *damaged, *others), key=lambda entry: entry.name)
