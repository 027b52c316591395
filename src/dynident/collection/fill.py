"""Logs that a folder lacks are reduced and put there; what has changed or is withdrawn goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dynident.collection.folder import (
    HEAD,
    CollectedFactors,
    FolderStatement,
    LogEntry,
    choose_sources,
    leave_out,
    pack_statement,
    read_sources,
)
from dynident.collection.portable_study import pack_model
from dynident.collection.reduce import describe_layout, take_key, take_stamp
from dynident.collection.source import Source, name_source_file
from dynident.core.arrays import Array
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.files import write_files
from dynident.core.progress import Progress
from dynident.core.side_by_side import Engine, LostTask, run_side_by_side
from dynident.fit.copies import LogMarks, find_marked
from dynident.readers.stores import is_remote

Section = Mapping[str, Any]
"""A ``[[log]]`` as plain data."""


class ReductionTask(NamedTuple):
    """A log to be reduced, as plain data that cross processes; the study is without logs.

    Who reads a log of a store finds its key, for nobody else has its contents.
    """

    study: str
    section: Section
    folder: str
    key: str
    stamp: str
    fingerprint: str


class ReducedSource(NamedTuple):
    """The file of a source with its key, or why there is none."""

    content: bytes
    key: str
    reason: str = ""
    marks: LogMarks | None = None
    """By which copies of its log are known."""
    trace: Array | None = None
    """What marks are of it at all its samples; None of what is too long."""


class KeptLog(NamedTuple):
    """A log of the folder."""

    section: Section
    """Files named as seen from here."""
    name: str
    marks: LogMarks | None
    held: bool
    """Whether it was there before."""


def fill_folder(
    folder: Path,
    statement: FolderStatement,
    sections: Sequence[Section],
    left: Sequence[LogEntry],
    study: str,
    work: Callable[[ReductionTask], ReducedSource],
    *,
    engine: Engine,
    strict: bool,
    withdraw: Sequence[str],
    progress: Progress,
) -> CollectedFactors:
    """Reduce the logs that a folder does not have as they are now.

    Parameters
    ----------
    left : sequence of LogEntry
        What is not a log.
    study : str
        JSON of the model and preparation, for `work`.
    work : callable
        Reduces one log; a function of a module.
    """
    logs, left = key_sections(sections, left)
    refuse_left_out(left, strict)
    head = {folder / HEAD: pack_statement(statement, folder)}
    there, _ = read_sources(folder, statement)
    notes = withdraw_sources(folder, there, withdraw)
    if there:
        write_files(head)
    # what is withdrawn now is not read again
    held = {source.about.key: source for source in there}
    known = {*held, *(source.about.stamp for source in there)}
    place, text = os.path.abspath(folder), pack_model(study, statement.model)
    tasks = [
        ReductionTask(text, log.section, place, log.key, log.stamp, statement.fingerprint)
        for log in logs
        if not known & {log.key, log.stamp} - {""}
    ]
    fresh: dict[str, Section] = {}
    kept = {key: keep_source(source, folder) for key, source in held.items()}
    for k, made in run_side_by_side(work, tasks, engine, progress, "collecting"):
        section = tasks[k].section
        if isinstance(made, LostTask) or made.reason:
            left.append(leave_out(name_section(section), made.reason))
            refuse_left_out(left, strict)
            continue
        source, twin = held.get(made.key), fresh.get(made.key)
        # a source of this very log is one that its store has anew
        if source is not None and (
            locate_section(source.about.section, folder) != locate_section(section, Path())
        ):
            left.append(tell_of_twin(section, source.name))
            continue
        if twin is not None:  # whichever was ready first, the first in order counts
            section, later = sorted((section, twin), key=order_sections)
            left.append(tell_of_twin(later, name_section(section)))
        own = KeptLog(section, name_section(section), made.marks, False)
        others = {key: each for key, each in kept.items() if key != made.key}
        better, worse = find_copies(own, made.trace, others)
        if better is not None:
            left.append(tell_of_copy(own.name, better.name))
            continue
        for key in worse:
            other = kept.pop(key)
            (folder / name_source_file(key)).unlink(missing_ok=True)
            fresh.pop(key, None)
            left.append(tell_of_copy(other.name, own.name))
        kept[made.key] = own
        if section is not twin:
            if not (there or fresh):  # a folder is none before it has a source
                write_files(head)
            write_files({folder / name_source_file(made.key): made.content})
            fresh[made.key] = section
    notes += remove_changed(folder, there, fresh)
    entries = list_entries(folder, statement, fresh, left)
    refuse_left_out([entry for entry in entries if entry.state == "left out"], strict)
    return CollectedFactors(folder, tuple(entries), tuple(notes))


class SourceLog(NamedTuple):
    """A log by what it holds, or by what a store says of it."""

    section: Section
    key: str
    stamp: str


def key_sections(
    sections: Sequence[Section], left: Sequence[LogEntry]
) -> tuple[list[SourceLog], list[LogEntry]]:
    """Logs ordered by their keys, each once, and what is left out."""
    logs: list[SourceLog] = []
    first: dict[str, Section] = {}
    left = [*left]
    for section in sorted(sections, key=order_sections):
        layout, key, stamp = describe_layout(section), "", ""
        try:
            if any(map(is_remote, section["files"])):
                stamp = take_stamp(section["files"], layout)
            else:
                key = take_key(section["files"], layout)
        except InputError as error:
            left.append(leave_out(name_section(section), error))
            continue
        if key in first:
            left.append(tell_of_twin(section, name_section(first[key])))
            continue
        if key:
            first[key] = section
        logs.append(SourceLog(section, key, stamp))
    return sorted(logs, key=lambda log: (log.key, log.stamp, order_sections(log.section))), left


def order_sections(section: Section) -> tuple[str, list[str]]:
    """Which of two logs comes first, wherever they were found."""
    return name_section(section), section["files"]


def tell_of_twin(section: Section, name: str) -> LogEntry:
    """A log that is left out because another one holds the same."""
    return leave_out(name_section(section), f"has the contents of {name}")


def tell_of_copy(name: str, other: str) -> LogEntry:
    """A log that is left out because another one has its samples, and maybe more."""
    return leave_out(name, f"has the samples of {other}")


def keep_source(source: Source, folder: Path) -> KeptLog:
    """A log that the folder had before."""
    files = [f if is_remote(f) else str(folder / f) for f in source.about.section["files"]]
    section = {**source.about.section, "files": files}
    return KeptLog(section, source.name, source.about.facts.words.marks, True)


def find_copies(
    own: KeptLog, trace: Array | None, kept: Mapping[str, KeptLog]
) -> tuple[KeptLog | None, list[str]]:
    """Which log of a folder has all samples of another one, and keys of those that have fewer.

    In other units, formats or digits, too. Of equal ones that counts which was there before, or is
    the first in order. What was read of the same files earlier is not a copy.
    """
    if own.marks is None or trace is None:
        return None, []
    place, worse = locate_section(own.section, Path()), list[str]()
    marked = [(key, each, each.marks) for key, each in kept.items() if each.marks is not None]
    found = find_marked(trace, [marks for _, _, marks in marked])
    for key, other, marks in (marked[k] for k in found):
        if locate_section(other.section, Path()) == place:
            continue
        first = other.held or order_sections(other.section) < order_sections(own.section)
        if marks.samples > own.marks.samples or (marks.samples == own.marks.samples and first):
            return other, []
        worse.append(key)
    return None, worse


def refuse_left_out(left: Sequence[LogEntry], strict: bool) -> None:
    """Refuse the first log that is left out, where that was asked for."""
    if strict and left:
        raise InputError(f"{left[0].name}: {left[0].reason}")


def name_section(section: Section) -> str:
    """What a log is called."""
    return section.get("name") or "+".join(Path(name).name for name in section["files"])


def withdraw_sources(folder: Path, there: Sequence[Source], names: Sequence[str]) -> list[str]:
    """Remove sources by their names; what went, in words."""
    known = [source.name for source in there]
    for name in names:
        refuse_unknown(name, known, f"{folder}: has no source {name!r}")
    gone = [source for source in there if source.name in names]
    for source in gone:
        (folder / name_source_file(source.about.key)).unlink()
    return [f"{source.name} is withdrawn" for source in gone]


def remove_changed(
    folder: Path, there: Sequence[Source], fresh: Mapping[str, Section]
) -> list[str]:
    """Remove what was read from files that hold something else now; what went, in words."""
    again = {locate_section(section, Path()): key for key, section in fresh.items()}
    notes = []
    for source in there:
        own = source.about
        if again.get(locate_section(own.section, folder), own.key) != own.key:
            (folder / name_source_file(own.key)).unlink(missing_ok=True)
            notes.append(f"{source.name} has changed: its earlier factors went")
    return notes


def locate_section(section: Section, beside: Path) -> tuple[str, ...]:
    """How a log is laid out and where its files are, named as seen from a folder."""
    files = section["files"]
    places = (each if is_remote(each) else str((beside / each).resolve()) for each in files)
    return (describe_layout(section), *places)


def list_entries(
    folder: Path, statement: FolderStatement, fresh: Collection[str], left: Sequence[LogEntry]
) -> list[LogEntry]:
    """All that a folder holds, of which some keys are fresh, and what is left out; by name."""
    found, damaged = read_sources(folder, statement)
    usable, others = choose_sources(found)
    used = [
        LogEntry(
            source.name,
            "read" if source.about.key in fresh else "there",
            "",
            source.factors.rows,
            source.about.own_percent,
            (folder / name_source_file(source.about.key)).stat().st_size,
            source.about.facts.warnings,
        )
        for source in usable
    ]
    return sorted((*used, *left, *damaged, *others), key=lambda entry: entry.name)
