"""``dynident collect``: a study's logs to factors in a folder, and a folder to a fit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Unpack

from dynident.collection.fill import ReducedSource, ReductionTask, fill_folder
from dynident.collection.folder import (
    HEAD,
    CollectedFactors,
    FolderStatement,
    LogEntry,
    choose_sources,
    leave_out,
    read_sources,
    read_statement,
    state_together,
)
from dynident.collection.identify import identify_sources
from dynident.collection.portable_study import unpack_model
from dynident.collection.reduce import describe_layout, list_logs, reduce_problem, take_key
from dynident.collection.source import Source, pack_source
from dynident.core.compiled import tells_compilations
from dynident.core.errors import DynidentError, InputError
from dynident.core.options import read_options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.schema import list_file_names, read_toml, replace_file_names, validate_data
from dynident.core.side_by_side import Runner, choose_engine
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import BaseParameters, find_observed_base
from dynident.dynamics.equations import Observability
from dynident.dynamics.idim import Idim
from dynident.estimators.closed_loop import lacks_torque
from dynident.fit.copies import TRACED, trace_log
from dynident.fit.doctor import find_log_faults
from dynident.fit.json import relate_path
from dynident.methods.keywords import IdentifyOptions
from dynident.readers.lerobot import cut_episode
from dynident.readers.stores import fetch_files, forget_listings
from dynident.recording.prepare import Preparation
from dynident.regression.generalised import generalise_samples
from dynident.regression.problem import Problem, refuse_springs, require_torque
from dynident.report.fit import Fit
from dynident.robot.load import LOADERS
from dynident.study.fits import relocate_log_section
from dynident.study.recognise import Words, recognise
from dynident.study.run import collect_study_options
from dynident.study.study import (
    LogSection,
    Study,
    build_study_idim,
    fill_preset,
    list_logs_of,
    load_study_robot,
    pack_study,
    prepare_study_recording,
    read_study,
    read_torque_recording,
    tell_logs_apart,
)


@tells_compilations
def collect(
    study: Study | str | Path,
    sources: Sequence[str | Path] = (),
    output: str | Path = "factors",
    *,
    workers: int = 1,
    engine: Runner = None,
    strict: bool = False,
    withdraw: Sequence[str] = (),
    layout: Mapping[str, Any] | None = None,
    progress: Progress = ignore_progress,
) -> CollectedFactors:
    """Reduce logs to their factors, one small file a log, of which `identify_factors` makes a fit.

    What is there already with the same contents, model and preparation is not read again.

    >>> collected = di.collect("study.toml", ["run1.csv", "run2.csv"], "kept")

    Parameters
    ----------
    study : Study, str or Path
        The model and the preparation, and how the logs are laid out: a study or its file, or a
        robot's file with the usual friction and preparation.
    sources : sequence of str or Path
        Log files, with commas between those side by side, patterns (``runs/*.csv``) and folders,
        laid out as the study's first log. By default the logs that the study fits.
    output : str or Path
        Folder of the factors.
    workers : int
        Processes of this machine.
    engine : Engine, distributed.Client or str, optional
        What reads the logs instead: a Dask cluster by a client or its scheduler's address.
    strict : bool
        Refuse the first log that cannot be used, instead of naming it.
    withdraw : sequence of str
        Names of sources that go from the folder.
    layout : mapping, optional
        Keys of a ``[[log]]`` that hold for all sources.
    progress : callable
        See `Progress`.

    Returns
    -------
    CollectedFactors
        What became of each log.

    Raises
    ------
    InputError
        For a model or a preparation that takes rows, a folder of another one, and where neither
        sources nor the study name a log.
    """
    told, folder = (
        study if isinstance(study, Study) else read_model_study(Path(study)),
        Path(output),
    )
    statement = state_model(told, folder)
    sections, left = find_sections(told, sources, layout or {})
    if not (sections or left or withdraw):
        raise InputError("no log is given: name log files, or a study that has some")
    placed = [replace_file_names(section, os.path.abspath) for section in sections]
    plain = [section.model_dump(mode="json", exclude_none=True) for section in placed]
    text = pack_study(told.model_copy(update={"log": ()}))
    return fill_folder(
        folder, statement, plain, left, text, reduce_log,
        engine=choose_engine(workers, engine), strict=strict, withdraw=withdraw, progress=progress,
    )  # fmt: skip


def read_model_study(path: Path) -> Study:
    """A study, or that of a robot's file, which as TOML has no ``[robot]``."""
    suffix = path.suffix.lower()
    is_study = suffix == ".toml" and path.is_file() and "robot" in read_toml(path)
    if is_study or suffix not in LOADERS:
        return read_study(path, None)
    return validate_data(Study, {"robot": {"file": str(path)}}, path)


def state_model(study: Study, folder: Path) -> FolderStatement:
    """What all sources of a folder state by a study, refused where the folder states another."""
    idim = build_study_idim(study, load_study_robot(study))
    refuse_springs(idim.robot, "factors keep")
    wanted = read_options(Preparation, study.prepare)
    if idim.nonlinear or idim.loaded:
        raise InputError(
            f"friction {idim.friction!r} has shapes or depends on loads, which takes rows: collect "
            "with friction that is linear, as coulomb-viscous or cube-root, or identify the logs"
        )
    if wanted.rests is not None or wanted.period != "none":
        raise InputError(
            "[prepare] period and rests average over logs, whose errors factors do not keep: leave "
            "them out, or identify the logs themselves"
        )
    seen = replace_file_names(study, lambda name: relate_path(name, folder))
    told = seen.model_dump(mode="json", exclude_none=True, exclude={"log"})
    return state_together(folder, idim, told, [repr(wanted), str(asks_doctor(study))])


def asks_doctor(study: Study) -> bool:
    """Whether logs are looked at, too."""
    return study.identify.options().get("doctor") is not False


def find_sections(
    study: Study, sources: Sequence[str | Path], layout: Mapping[str, Any]
) -> tuple[list[LogSection], list[LogEntry]]:
    """The logs to be reduced, under names that tell them apart, and what is not a log."""
    forget_listings([*map(str, sources), *list_file_names(study)])
    if not sources:
        return list_logs_of(study, "identify"), []
    found: list[LogSection] = []
    left: list[LogEntry] = []
    for text in map(str, sources):
        try:
            logs = list_logs(text)
        except InputError as error:
            left.append(leave_out(text, error))
            continue
        if not logs:
            left.append(leave_out(text, "no log file is there"))
        for files, own in logs:
            try:
                found.append(lay_out(study, files, {**layout, **own}))
            except InputError as error:
                left.append(leave_out(",".join(files), error))
    return list(tell_logs_apart(tuple(found))), left


def recognise_sources(
    study: Study, sources: Sequence[str | Path], layout: Mapping[str, Any]
) -> tuple[Study, tuple[Words, ...]]:
    """A robot by what columns of its first log are called: its base and absent joints; words."""
    sections, _ = find_sections(study, sources[:1], layout)
    told, said = recognise(study.model_copy(update={"log": tuple(sections[:1])}))
    return told.model_copy(update={"log": ()}), said


def lay_out(study: Study, files: tuple[str, ...], layout: Mapping[str, Any]) -> LogSection:
    """A log that is laid out as the first of a study."""
    section = relocate_log_section(study.log, files, layout)
    whole = {"period": None} if study.log else {}
    return section.model_copy(update={"use": "identify", **whole})


@limit_to_one_thread
def reduce_log(task: ReductionTask) -> ReducedSource:
    """Read, prepare and reduce one log."""
    section = LogSection.model_validate(task.section)
    study, idim = open_model(task.study)
    try:
        if section.period not in (None, "none"):
            raise InputError("period averages over the log, whose errors factors do not keep")
        with (
            fetch_files(section.files) as files,
            cut_episode(files, section.rows) as (cut, rows),
        ):
            key = task.key or take_key(files, describe_layout(task.section))
            local = section.model_copy(update={"files": cut, "rows": rows})
            local = fill_preset(local, idim.robot)
            filled = {key: getattr(local, key) for key in ("preset", "columns", "units")}
            recording = read_torque_recording(study, local, idim.robot, pieces=True)
            samples = prepare_study_recording(local, recording, study.prepare)
            log = generalise_samples(idim, samples)
            problem = Problem.of(find_base(task.study, log.observed), log)
            if lacks_torque(log):
                raise InputError("has no torque")
            require_torque(problem)
            examine = find_log_faults if asks_doctor(study) else None
            placed = replace_file_names(
                section.model_copy(update=filled), lambda name: relate_path(name, Path(task.folder))
            )
            told = placed.model_dump(mode="json", exclude_none=True)
            source = reduce_problem(problem, key, told, examine, task.stamp)
    except DynidentError as error:
        return ReducedSource(b"", "", str(error))
    content = pack_source(source, idim.robot.name, task.fingerprint)
    trace = trace_log(log) if len(log.measured) <= TRACED else None
    return ReducedSource(content, key, "", source.about.facts.words.marks, trace)


@cache
def open_model(text: str) -> tuple[Study, Idim]:
    """A study and its model, once a process."""
    told, idim = unpack_model(text)
    return Study.model_validate_json(told), idim


@cache
def find_base(text: str, observed: Observability) -> BaseParameters:
    """What one kind of logs determines, likewise."""
    return find_observed_base(open_model(text)[1], (observed,))


@tells_compilations
def identify_factors(
    folder: str | Path,
    method: str | None = None,
    *,
    progress: Progress = ignore_progress,
    engine: Runner = None,
    **options: Unpack[IdentifyOptions],
) -> Fit:
    """Identify a robot from a folder of factors that `collect` made, without its logs.

    >>> fit = di.identify_factors("factors", "wls")

    Parameters
    ----------
    folder : str or Path
    method : str, optional
        One of `dynident.methods.FACTORED`; that of the study by default.
    progress : callable
        See `Progress`.
    engine : Engine, distributed.Client or str, optional
        As of `identify`.
    **options
        Those of the method, by name; the study's by default.

    Raises
    ------
    InputError
        For methods and options that need rows, and a folder without factors.
    ComputationError
        When no trustworthy answer came out.
    """
    folder = Path(folder)
    statement = read_statement(folder)
    if statement is None:
        raise InputError(f"{folder}: holds no factors; dynident collect makes them")
    found, damaged = read_sources(folder, statement)
    sources, others = choose_sources(found)
    left = [f"{entry.name} is left out: {entry.reason}" for entry in (*damaged, *others)]
    if not sources:
        raise InputError("; ".join([f"{folder}: holds no source that can be merged", *left]))
    study = restore_study(folder, statement, sources)
    given = {**collect_study_options(study), **{k: v for k, v in options.items() if v is not None}}
    chosen = method or study.identify.method
    own = choose_engine(1, engine)
    fit = identify_sources(statement.model, sources, chosen, given, progress, own)
    return replace(fit, study=study, warnings=(*left, *fit.warnings))


def restore_study(folder: Path, statement: FolderStatement, sources: Sequence[Source]) -> Study:
    """The study of some sources, files named as seen from here."""
    told = {**statement.study, "log": [source.about.section for source in sources]}
    study = validate_data(Study, told, folder / HEAD)
    return replace_file_names(study, lambda name: os.path.normpath(folder / name))
