"""Fits in files: read back, with their logs where these are, and at work on other logs."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dynident.api import measure_held_out_log
from dynident.consistency.knowledge import Knowledge
from dynident.consistency.nearest import describe_base_shift, nearest_to_base
from dynident.core.errors import InputError
from dynident.core.plain import from_plain
from dynident.core.schema import list_file_names, replace_file_names, validate_data
from dynident.decide.decision import Decision
from dynident.dynamics.base import BaseParameters
from dynident.estimators.closed_loop import HELD, Simulation, fill_missing_torque
from dynident.fit.figures import check_lowpass
from dynident.fit.json import read_document
from dynident.fit.logs import LogsGone, Use
from dynident.fit.result import ValidationFigures
from dynident.fit.warnings import warn_of_fitted_log
from dynident.fit.zoo import find_zoo_entry
from dynident.methods import TORQUE_FREE
from dynident.readers import list_titles
from dynident.readers.column_names import has_columns
from dynident.readers.stores import is_remote
from dynident.recording.prepare import Samples
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem
from dynident.regression.standing import check_bearing
from dynident.report.difference import Difference
from dynident.report.fit import Fit, restore_fit
from dynident.robot.mjcf import list_model_files
from dynident.robot.model import Robot
from dynident.study.study import (
    LogSection,
    PrepareSection,
    Study,
    build_study_simulation,
    fill_preset,
    read_study_logs,
    read_study_samples,
)


@dataclass(frozen=True)
class StudyLogs:
    """The logs of a study, read when they are asked for."""

    study: Study
    base: BaseParameters
    torque: bool
    """Whether they have to have torque."""

    @cached_property
    def fitted(self) -> tuple[GeneralisedSamples, ...]:
        """What was fitted; an `InputError` where it cannot be read any more."""
        return self._read("identify")

    @cached_property
    def held_out(self) -> tuple[GeneralisedSamples, ...]:
        """What was not; likewise."""
        return self._read("validate")

    def _read(self, use: Use) -> tuple[GeneralisedSamples, ...]:
        study, robot = self.study, self.base.idim.robot
        found = read_study_logs(study, robot, use, self.torque)
        if not self.torque and study.controller is not None and found:
            loop = build_study_simulation(study, robot, found)
            found = [fill_missing_torque(log, loop, robot.passive) for log in found]
        return Problem.of(self.base, found).samples if found else ()


def read_result(path: str | Path) -> Fit:
    """Read a result.json: the fit as it was, of the robot as it was.

    The robot's files are in it; its logs are read again when they are needed, where they still are.

    >>> di.read_result("out/result.json") == fit
    True

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    InputError
        When it is missing, not JSON, of another schema, damaged or edited.
    """
    path = Path(path)
    document = read_document(path)
    settings = document.get("settings")
    told = settings.get("study") if isinstance(settings, dict) else None
    own = document["state"].get("settings") if isinstance(document["state"], dict) else None
    if isinstance(own, dict):
        from_plain(list[Decision], own.get("decided", []), f"{path}: state.settings.decided")
    if told is None:
        gone = LogsGone(f"{path}: was made without a study, so its logs are not known")
        return restore_fit(document, path, None, gone)
    study = validate_data(Study, told, f"{path}: settings.study")
    study = replace_file_names(study, lambda name: os.path.normpath(path.parent / name))
    fit = restore_fit(document, path, study, LogsGone(""))
    logs = StudyLogs(study, fit.base, fit.method not in TORQUE_FREE)
    return replace(fit, logs=logs)


def read_zoo(name: str) -> Fit:
    """Read an entry of the zoo, by its name: the fit of a robot to a public log.

    Its logs are in the project's repository, beside the study that it was made by.

    >>> di.read_zoo("kr300").verdict.state
    'trusted'

    Parameters
    ----------
    name : str
        Of `dynident.fit.zoo.ZOO`; ``dynident zoo`` lists them.

    Raises
    ------
    InputError
        When there is no such entry; the nearest is named.
    """
    return read_result(find_zoo_entry(name).result)


def build_study_loop(study: Study, robot: Robot, log: Samples) -> Simulation:
    """The loop of a study along a log, as it is simulated and replayed."""
    return suit_loop(build_study_simulation(study, robot, [log]), robot, log)


def suit_loop(simulation: Simulation, robot: Robot, log: Samples, held: bool = False) -> Simulation:
    """A loop with what its study leaves open, as suits a log.

    Targets go smoothly between samples, as identification takes logs with torque; they are `held`
    where there is none, and where the law is late or follows slowly.
    """
    control = simulation.controller
    late = control.delay > 0.0 and control.rate is None
    if not (held or late or log.torque != "measured" or np.any(np.isfinite(control.speed_limit))):
        return simulation
    found = simulation.of_encoders(robot.floating or bool(robot.loops))
    return found.smoothed(log) if found.targets == HELD else found


def find_study(fit: Fit) -> Study | None:
    """The study that a fit was made by."""
    return fit.study if isinstance(fit.study, Study) else None


def list_fit_inputs(fit: Fit) -> tuple[str | Path, ...]:
    """All files that a fit was made of, where they were."""
    study = find_study(fit)
    return (*list_model_files(fit.robot), *(() if study is None else list_file_names(study)))


def rebuild_loop(fit: Fit, samples: Samples, fitted: bool = True) -> Simulation:
    """The loop of a fit along another log: what was `fitted` of it as found, or as it is told."""
    study, loop = find_study(fit), fit.simulation
    if study is not None and study.controller is not None:
        loop = build_study_simulation(study, fit.robot, [samples])
    if loop is None:
        raise InputError(
            f"{fit.robot.name}: was identified without a [controller], whose law it takes: "
            "identify it by a study that has one"
        )
    found = fit.estimate.fitted if fitted else None
    loop = suit_loop(loop, fit.robot, samples, fit.estimate.fitted is not None)
    return (
        loop if found is None else loop.with_values(dict(zip(found.names, found.values.tolist())))
    )


@dataclass(frozen=True)
class LogLayout:
    """How a log is laid out and prepared otherwise than those of a fit."""

    keys: Mapping[str, Any]
    """Of a ``[[log]]``."""
    prepare: Mapping[str, Any]
    """Of ``[prepare]``."""


AS_FITTED = LogLayout({}, {})


def read_fit_log(
    fit: Fit, files: Sequence[str], layout: LogLayout = AS_FITTED, torque: bool | None = None
) -> Samples:
    """Another log, laid out as the first of a fit's study and prepared as that was.

    Its files are side by side. It has to have torque where the fit's method needs it, by default.
    """
    study, needed = find_study(fit), fit.method not in TORQUE_FREE if torque is None else torque
    known = study if study is not None and study.log else asdict(fit.preparation)
    return read_other_log(known, fit.robot, files, layout, needed)


def read_other_log(
    known: Study | Mapping[str, Any], robot: Robot, files: Sequence[str], layout: LogLayout,
    torque: bool,
) -> Samples:  # fmt: skip
    """A log, laid out and prepared as the first of a study, or prepared as is known."""
    logs = known.log if isinstance(known, Study) else ()
    section = fill_preset(relocate_log_section(logs, files, layout.keys), robot)
    found = known.prepare.model_dump() if isinstance(known, Study) else known
    prepare = validate_data(PrepareSection, {**found, **layout.prepare}, "command line")
    return read_study_samples(section, robot, prepare, torque)


def relocate_log_section(
    logs: Sequence[LogSection], files: Sequence[str], told: Mapping[str, Any]
) -> LogSection:
    """A log section that reads other files laid out as a log, but for keys that are told.

    As the first log whose columns they have; where they have those of none, their own are
    recognised by their names, or are those of a preset that is told. Where there is no log, the
    keys are all that is known.
    """
    if not logs:
        keys = {"files": tuple(files), "use": "validate", **told}
        return validate_data(LogSection, keys, "command line: log")
    alike = [own for own in logs if len(own.files) == len(files)]
    if not alike and not {"columns", "preset"} & {*told}:
        raise InputError(
            f"{','.join(files)}: the result's log has {len(logs[0].files)} files side by side; "
            "give as many, separated by commas, or state the columns of these"
        )
    alike = alike or [*logs]
    section, here = alike[0], [Path(file) for file in files if not is_remote(file)]
    if "columns" not in told or "preset" in told:
        titles = [title for file in here for title in list_titles(file)]
        section = choose_layout(alike, titles, ",".join(files), told)
    old = section.files
    names = {Path(a).name: Path(b).name for a, b in zip(old, files, strict=False)}

    def renamed(column: str | int) -> str | int:
        if isinstance(column, str) and ":" in column:
            file, _, rest = column.partition(":")
            return f"{names.get(file, file)}:{rest}"
        return column

    columns = section.columns and {
        signal: tuple(renamed(c) for c in where) if isinstance(where, tuple) else renamed(where)
        for signal, where in section.columns.items()
    }
    update = {"files": tuple(files), "columns": columns, "rows": None, "use": "validate"}
    # a period is a log's own: another may have no such
    own = section.model_copy(update=update | {"name": None, "keep": None, "period": "none"})
    if not told:
        return own
    return validate_data(
        LogSection, {**own.model_dump(exclude_none=True), **told}, "command line: log"
    )


OF_COLUMNS = ("side", "law_kp", "order", "sign", "offset", "delay", "lag", "unfilter", "units")
"""Keys of a log that may be of its columns alone."""


def choose_layout(
    logs: Sequence[LogSection], names: Sequence[str], called: str, told: Collection[str] = ()
) -> LogSection:
    """The first log whose columns are among some names; of none the first, without its columns.

    What may be of these alone is refused beside others, unless it is told. A preset that is told
    has columns and units of its own.
    """
    for own in logs if "preset" not in told else ():
        if has_columns(names, {"q": "q_*", **(own.columns or {})}):
            return own
    first, usual = logs[0], LogSection(files=logs[0].files)
    known = {*told, "units"} if "preset" in told else {*told}
    keys = [key for key in OF_COLUMNS if key not in known]
    stated = [key for key in keys if getattr(first, key) != getattr(usual, key)]
    if stated:
        raise InputError(
            f"{called}: has other columns than {','.join(first.files)}, whose "
            f"{', '.join(stated)} may not be theirs; state columns = {{ q = [...] }}, or units"
        )
    units = None if "units" in known else first.units
    return first.model_copy(update={"columns": None, "units": units})


@dataclass(frozen=True)
class LogErrors:
    """Errors of a fit on a log."""

    figures: ValidationFigures
    warnings: tuple[str, ...]
    """What was noticed about the log."""
    samples: tuple[GeneralisedSamples, ...]
    """The log as errors are of it; none where they are of positions alone."""


def measure_log(
    fit: Fit,
    files: Sequence[str],
    lowpass_hz: float | None = None,
    layout: LogLayout = AS_FITTED,
) -> LogErrors:
    """Errors of a fit, and of the robot file's inertials, on another log: see `read_fit_log`.

    The low-pass is that of the fit by default [Hz].
    """
    samples = read_fit_log(fit, files, layout)
    loop = None if fit.estimate.fitted is None else rebuild_loop(fit, samples)
    if samples.torque != "measured" and fit.method in TORQUE_FREE:
        samples = fill_missing_torque(
            samples, loop or rebuild_loop(fit, samples), fit.robot.passive
        )
    problem = Problem.of(fit.base, samples)
    lowpass = lowpass_hz or fit.lowpass_hz
    borne = [note for log in problem.samples for note in check_bearing(problem.idim, log)]
    odd = fit.inconsistencies if fit.phi is not None else ()
    figures = measure_held_out_log(
        ",".join(files), problem, loop, fit.theta, lowpass, fit.settings["score"],
        fit.estimate.fitted,
    )  # fmt: skip
    return LogErrors(
        figures,
        (
            *fit.robot.warnings,
            *(f"{each} is not physically consistent" for each in odd),
            *samples.warnings,
            *borne,
            *check_lowpass(lowpass, [samples]),
            *warn_of_fitted_log(fit, problem.samples[0]),
            *figures.hindered,
        ),
        problem.samples if figures.entries else (),
    )


def compare_on_logs(
    one: Fit, other: Fit | None, logs: Sequence[Sequence[str]], layout: LogLayout = AS_FITTED
) -> tuple[Difference, tuple[str, ...]]:
    """A fit beside another one or its robot file, also on other logs, and what was noticed there.

    Each prepares a log as it did its own; errors of all samples are below the lower of the two
    low-passes in both.
    """
    found = one.compare(other)
    fits = (one,) if other is None else (one, other)
    lowpass_hz = min(fit.lowpass_hz for fit in fits)
    told = [[measure_log(fit, files, lowpass_hz, layout) for fit in fits] for files in logs]
    figures = tuple((own[0].figures, own[-1].figures) for own in told)
    noticed = dict.fromkeys(note for own in told for each in own for note in each.warnings)
    return replace(found, logs=figures), tuple(noticed)


def repair_fit(fit: Fit, **options: Any) -> tuple[Fit, str]:
    """A fit with the consistent links that are nearest to its base parameters, and how near.

    Their standard deviations are the measure. What is consistent stays as it is.
    """
    if fit.phi is not None and fit.consistent:
        return fit, "nothing to repair: the links are consistent"
    beta, std = fit.estimate.beta, fit.estimate.covariance.std
    point = nearest_to_base(fit.base, beta, std, Knowledge(**options))
    words = f"repaired: {describe_base_shift(fit.base, beta, std, point.beta)}"
    return replace(fit, estimate=replace(fit.estimate, theta=point.theta)), words
