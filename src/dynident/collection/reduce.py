"""From log files to a source: which there are, what they hold, and their factors."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from dynident.collection.source import Source, SourceDescription
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.factors import merge_all
from dynident.core.state_files import hash_file, take_fingerprint
from dynident.diagnosis.examine import Finding
from dynident.diagnosis.signs import NUMBERS
from dynident.fit.facts import gather_log_facts
from dynident.fit.figures import score_fitted_rows
from dynident.readers import READERS
from dynident.readers.bags import METADATA
from dynident.readers.lerobot import is_dataset, list_episodes
from dynident.readers.stores import is_remote, list_remote_files, stamp_remote_file
from dynident.regression.blocks import factor_runs
from dynident.regression.problem import Problem
from dynident.regression.standing import check_bearing

Examine = Callable[..., Sequence[Finding]]
"""What is wrong with the logs of a problem, beside others, by standard parameters that fit them."""


class FoundFiles(NamedTuple):
    """A log's files, and what of its section is its own."""

    files: tuple[str, ...]
    own: Mapping[str, Any] = MappingProxyType({})


def list_logs(text: str) -> list[FoundFiles]:
    """The logs that a text names: a dataset's episodes, or what files stand for."""
    if is_dataset(Path(text)):
        episodes = list_episodes(Path(text))
        return [FoundFiles((str(e.file),), {"rows": e.rows, "name": e.name}) for e in episodes]
    return [FoundFiles(files) for files in list_log_files(text)]


def list_log_files(text: str) -> list[tuple[str, ...]]:
    """Files of the logs that a text names: some side by side, a folder, a pattern or one file."""
    path = Path(text)
    if "," in text and not path.exists():
        return [tuple(text.split(","))]
    if is_remote(text):
        return [(name,) for name in list_remote_files(text, tuple(READERS))]
    if path.is_dir() and not (path / METADATA).is_file():
        names = (str(each) for each in sorted(path.iterdir()) if each.is_file())
        return [(name,) for name in names if name.lower().endswith(tuple(READERS))]
    if glob.has_magic(text) and not os.path.lexists(text):
        return [(name,) for name in sorted(glob.glob(text, recursive=True))]
    return [(text,)]


def describe_layout(section: Mapping[str, Any]) -> str:
    """All of a log but its files."""
    told = {key: v for key, v in section.items() if key not in ("files", "name", "use")}
    return json.dumps(told, sort_keys=True)


def take_key(files: Iterable[str], layout: str) -> str:
    """SHA-256 of a log's contents and layout; whatever its files are called."""
    paths = map(Path, files)
    within = (sorted(path.rglob("*")) if path.is_dir() else [path] for path in paths)
    every = (path for each in within for path in each if not path.is_dir())
    return take_fingerprint([layout, *map(hash_file, every)])


def take_stamp(files: Iterable[str], layout: str) -> str:
    """What is known of a log in a store without its contents; empty where that is nothing."""
    told = [stamp_remote_file(n) if is_remote(n) else hash_file(Path(n)).hex() for n in files]
    return take_fingerprint([layout, *files, *told]) if all(told) else ""


def reduce_problem(
    problem: Problem,
    key: str,
    section: dict[str, Any],
    examine: Examine | None,
    stamp: str = "",
) -> Source:
    """The factors of the one log of a problem, with what is said of it.

    Parameters
    ----------
    key, section, stamp
        See `SourceDescription`.
    examine : callable, optional
        What is wrong with the log of a problem, by standard parameters that fit it.
    """
    (log,), base = problem.samples, problem.base
    borne = check_bearing(problem.idim, log)
    (raw,) = factor_runs(problem)
    problem.source.release()  # there is no other pass
    runs = tuple(merge_all([run]) for run in raw)  # triangles of the columns that are not zero
    factors = merge_all(runs)
    if not factors.rows:
        raise InputError("no rows are left to fit; lower drop_below or use a longer log")
    beta = factors.weighted(factors.ones).solve()
    facts = gather_log_facts(problem.idim, log)
    facts = replace(facts, warnings=(*facts.warnings, *borne))
    own = score_fitted_rows(factors, beta).overall_percent
    findings = () if examine is None else find_faults(problem, base.standard(beta), examine)
    about = SourceDescription(key, section, facts, findings, problem.groups, own, stamp)
    return Source(about, base.names, factors, runs)


def find_faults(problem: Problem, theta: Array, examine: Examine) -> tuple[Finding, ...]:
    """What is wrong with the one log of a problem; with a long one in any of its stretches."""
    (log,) = problem.samples
    found: dict[tuple[str, str], Finding] = {}
    for start, part in log.stretches():
        for each in examine(problem.on(part), (), theta):
            since = f", from {start / log.rate:.0f} s on" if start else ""
            alike = (each.diagnosis, NUMBERS.sub("", each.what))
            found.setdefault(alike, replace(each, what=each.what + since))
    return tuple(found.values())
