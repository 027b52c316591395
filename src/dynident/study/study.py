"""The study: one TOML file (or the command line's flags) that says what to identify."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from dynident.api import EVERY_METHOD
from dynident.consistency.constraints.sections import ConstraintSection, build_constraints
from dynident.core.errors import InputError, check_type, name_section_in_errors
from dynident.core.options import build_option_section, collect_options, read_options
from dynident.core.progress import Progress, ignore_progress
from dynident.core.schema import (
    File,
    Flag,
    Name,
    Number,
    Spec,
    Vector3,
    join_names,
    list_file_names,
    make_choice_validator,
    read_toml,
    replace_file_names,
    validate_data,
)
from dynident.decide.decision import DecisionOptions
from dynident.decide.selection import SelectionOptions
from dynident.dynamics.idim import Idim, build_idim
from dynident.estimators.closed_loop import Simulation
from dynident.excitation.sections import ExcitationSection, ObstacleSection
from dynident.friction import DEFAULT_FRICTION
from dynident.friction.models import FRICTIONS
from dynident.friction.names import build_friction, split_friction_names
from dynident.methods import DEFAULT_METHOD, ESTIMATORS, TORQUE_FREE
from dynident.methods.options import list_all_options, list_option_names, name_methods_with_option
from dynident.online.recursive import Drift, Forgetting, RowWeights
from dynident.online.tracker import AlarmOptions, TrackerSettings
from dynident.readers import READERS, read_tables
from dynident.readers.presets import PRESETS, PresetLayout, find_layout, find_stated_layout
from dynident.readers.stores import is_remote
from dynident.readers.table import Table
from dynident.recording.commanded import DriveLaw, command_torque
from dynident.recording.floating import FloatingOptions, find_logged_robot
from dynident.recording.options import CLOCKING, LOG_OPTIONS
from dynident.recording.prepare import Count, Period, Preparation, Samples, prepare
from dynident.recording.read import read_log
from dynident.recording.recording import Recording
from dynident.recording.repairs import LogRepair, repair_recording
from dynident.recording.signals import SIDED
from dynident.regression.elements import ElementSection, build_elements
from dynident.regression.problem import Problem
from dynident.robot import load_robot
from dynident.robot.contacts import ContactSpec, parse_contacts
from dynident.robot.load import LOADERS
from dynident.robot.mjcf import list_model_files
from dynident.robot.model import Robot
from dynident.robot.sensing import add_sensors
from dynident.robot.spec import DriveSpec, LoopSpec, RobotSpec, TransmissionSpec
from dynident.study.loop import (
    ControllerSection,
    GroundSection,
    NoiseSection,
    ReferenceSection,
    SimulationSection,
    build_simulation,
)


def check_row_range(rows: tuple[int, int]) -> tuple[int, int]:
    """Refuse ranges of rows that are empty."""
    if rows[0] >= rows[1]:
        raise ValueError(f"is [first, one after the last], got {list(rows)}")
    return rows


NOTES = logging.getLogger(__name__)
Log = TypeVar("Log")

IDENTIFYING = {
    name: replace(option, words=f"of {name_methods_with_option(name)}: {option.words}")
    for name, option in (
        list_all_options() | collect_options([*EVERY_METHOD, DecisionOptions])
    ).items()
}
TRACKING = collect_options([TrackerSettings, RowWeights, Forgetting, Drift, AlarmOptions])
SELECTING = collect_options([SelectionOptions])
PREPARING = collect_options([Preparation])
"""Options that are keys of a section, and flags of its command."""


def list_names() -> dict[str, tuple[str, ...]]:
    """Names that some keys may have."""
    return {"method": (*ESTIMATORS,), "friction": (*FRICTIONS,), "preset": (*PRESETS,)}


def check_friction_names(friction: str) -> str:
    """Refuse friction models that are not known."""
    try:
        for name in split_friction_names(friction):
            build_friction(name)
    except InputError as error:
        raise ValueError(str(error)) from error
    return friction


Friction = Annotated[Name, BeforeValidator(join_names), AfterValidator(check_friction_names)]
Range = Annotated[tuple[Count, Count], AfterValidator(check_row_range)]
Sides = Literal["joint", "motor"] | tuple[Literal["joint", "motor"], ...]
Column = Name | Annotated[int, Field(strict=True, ge=1)]


def list_one(given: object) -> object:
    """One name as a list of names."""
    return (given,) if isinstance(given, str) else given


class RobotSection(Spec):
    """``[robot]``: the file and what it leaves open."""

    file: File
    """URDF, MJCF or robot TOML, relative to the study."""
    friction: Friction = DEFAULT_FRICTION
    """Friction model, or a list of them: one a joint."""
    rotor: Flag | None = None
    """Whether drives have a rotor inertia Ia; unless friction is "none". False where torque is
    measured on the link's side."""
    gravity: Vector3 | None = None
    """[m/s^2]"""
    floating: Flag = False
    locked: dict[str, Number] = Field(default_factory=dict)
    """Joints that stay at a value and are not in the log."""
    beyond: Name | None = None
    """The link that a force/torque sensor holds: the limb from there on is identified."""
    sensor: Annotated[tuple[Name, ...], BeforeValidator(list_one)] = ()
    """Links that such sensors hold, whose wrenches are fitted beside the joints' torques."""
    transmission: TransmissionSpec | None = None
    drive: tuple[DriveSpec, ...] = ()


Files = Annotated[tuple[File, ...], Field(min_length=1), BeforeValidator(list_one)]
"""One file or several."""


class LogFiles(Spec):
    """``[[log]]``: files of one recording and where its signals are.

    It has the options of `ClockOptions`, `LogRepair`, `DriveLaw` and `FloatingOptions`, too.
    """

    files: Files
    """Relative to the study; a file may give one by its name alone."""
    preset: Annotated[Name, make_choice_validator(PRESETS)] | None = None
    """Whose recorder wrote it, a name in `dynident.readers.presets.PRESETS`: columns, units and
    what effort is. What is stated besides goes before it."""
    use: Literal["identify", "validate"] = "identify"
    rate: Annotated[Number, Field(gt=0.0)] | None = None
    """[Hz], where there is no time column."""
    columns: dict[str, Column | tuple[Column, ...]] | None = None
    units: dict[str, Name | tuple[Name, ...]] | None = None
    """`columns`, `units`: see `dynident.recording.read.read_log`."""
    side: Sides | dict[Annotated[Name, make_choice_validator(SIDED)], Sides] = "joint"
    stack: Literal["side", "time"] = "side"
    """Several files side by side, or one after another."""
    rows: Range | None = None
    """First sample and the one after the last."""
    keep: Annotated[tuple[Range, ...], Field(min_length=1)] | None = None
    """Ranges of samples, as of `rows`, in which alone rows are fitted; filters see all."""
    period: Period | None = None
    warmup: Count | None = None
    """`period`, `warmup`: this log's own, instead of those of ``[prepare]``."""
    name: Name | None = None


class MethodSection(Spec):
    """``[identify]``: the method; its options are keys beside it, see `IdentifySection`."""

    method: Annotated[Name, make_choice_validator(ESTIMATORS)] = DEFAULT_METHOD
    """Name in `dynident.methods.ESTIMATORS`."""

    def options(self) -> dict[str, Any]:
        """What was given beside the method; the random generator's seed where it has one."""
        given = self.model_dump(exclude={"method"}, exclude_none=True)
        if "seed" not in list_option_names(self.method):
            given.pop("seed", None)  # of the bootstrap alone: harmless elsewhere
        return given


if TYPE_CHECKING:
    LogSection = LogFiles
    PrepareSection = Spec
    IdentifySection = MethodSection
    TrackSection = Spec
    SelectSection = Spec
else:
    LogSection = build_option_section("LogSection", LogFiles, collect_options(LOG_OPTIONS))
    PrepareSection = build_option_section("PrepareSection", Spec, PREPARING)
    IdentifySection = build_option_section("IdentifySection", MethodSection, IDENTIFYING)
    TrackSection = build_option_section("TrackSection", Spec, TRACKING)
    SelectSection = build_option_section("SelectSection", Spec, SELECTING)


def tell_logs_apart(logs: tuple[LogSection, ...]) -> tuple[LogSection, ...]:
    """Logs whose files have the same names, under names with the folders that tell them apart."""

    def label(log: LogSection, depth: int) -> str:
        return log.name or "+".join("/".join(Path(f).parts[-depth:]) for f in log.files)

    found, alike = list(logs), defaultdict[str, list[LogSection]](list)
    for log in logs:
        alike[label(log, 1)].append(log)
    for k, log in enumerate(logs):
        same = {o.files: o for o in alike[label(log, 1)] if o.files != log.files}.values()
        if log.name is not None or not same:
            continue
        deepest = max(len(Path(f).parts) for f in log.files)
        depths = (d for d in range(2, deepest) if all(label(o, d) != label(log, d) for o in same))
        name = label(log, next(depths, deepest))
        found[k] = log.model_copy(update={"name": name})
    return tuple(found)


class Study(Spec):
    """A whole study; unknown keys are refused with the nearest valid one.

    >>> di.read_study("study.toml").robot.friction
    'coulomb-viscous'

    Attributes
    ----------
    robot : RobotSection
    log : tuple of LogSection
    contact : tuple of ContactSpec
        Frames on which external forces act.
    loop : tuple of LoopSpec
        Closed kinematic loops of the robot.
    prepare : PrepareSection
    identify : IdentifySection
    element : tuple of ElementSection
        Torques on joints in addition to friction.
    constraint : tuple of ConstraintSection
        Known facts about the robot's parameters.
    controller : ControllerSection, optional
        For methods that simulate the closed loop, and for `dynident simulate`.
    reference : ReferenceSection
    ground : GroundSection
        What a floating robot stands on, of `dynident simulate`.
    noise : NoiseSection
        Of `dynident simulate`.
    simulation : SimulationSection
    track : TrackSection
        Of `dynident track`.
    excitation : ExcitationSection
        Of `dynident excite`.
    obstacle : tuple of ObstacleSection
        What stands around the robot, likewise.
    select : SelectSection
        Of `dynident select`.
    """

    robot: RobotSection
    log: Annotated[tuple[LogSection, ...], AfterValidator(tell_logs_apart)] = ()
    contact: tuple[ContactSpec, ...] = ()
    loop: tuple[LoopSpec, ...] = ()
    prepare: PrepareSection = PrepareSection.model_construct()
    identify: IdentifySection = IdentifySection.model_construct()
    element: tuple[ElementSection, ...] = ()
    constraint: tuple[ConstraintSection, ...] = ()
    controller: ControllerSection | None = None
    reference: ReferenceSection = ReferenceSection.model_construct()
    ground: GroundSection = GroundSection.model_construct()
    noise: NoiseSection = NoiseSection.model_construct()
    simulation: SimulationSection = SimulationSection.model_construct()
    track: TrackSection = TrackSection.model_construct()
    excitation: ExcitationSection = ExcitationSection.model_construct()
    obstacle: tuple[ObstacleSection, ...] = ()
    select: SelectSection = SelectSection.model_construct()


def read_study(path: str | Path, use: str | None = "identify") -> Study:
    """Read a study and make its file names relative to the current directory.

    Logs with a `preset` get its columns and units, as far as the study does not state them.

    >>> study = di.read_study("study.toml")

    Parameters
    ----------
    path : str or Path
    use : str, optional
        Refuse studies without a log of this use.

    Raises
    ------
    InputError
        One line with the file, the key and what is valid there.
    """
    return fill_presets(parse_study(path, use))


def parse_study(path: str | Path, use: str | None = "identify") -> Study:
    """A study as it stands in its file; see `read_study`."""
    path = Path(path)
    for what, kinds in (("robot", LOADERS), ("log", READERS)):
        if path.suffix.lower() in kinds.keys() - {".toml", ".txt"}:
            raise InputError(
                f"{path}: is a {what}, not a study (docs/study.md), a TOML file that names both; "
                "take --robot and --log instead of one, where a command has them"
            )
    data = read_toml(path)
    if "robot" not in data and data.keys() & RobotSpec.model_fields.keys():
        raise InputError(f"{path}: is a robot, not a study: give it as --robot, with --log")
    study = validate_data(Study, data, path)
    if use is not None and not list_logs_of(study, use):
        raise InputError(f'{path}: no [[log]] has use = "{use}"')
    try:
        build_constraints(study.constraint)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return replace_file_names(study, lambda name: str(path.parent / name))


def fill_presets(study: Study) -> Study:
    """A study whose logs with a preset have its columns and units, which notes say."""
    study, layouts = recognise_layouts(study, stated=True)
    for layout in layouts:
        for key, words in (*layout.words, ("columns", layout.signals)):
            NOTES.info("%s: %s: %s", layout.name, key, words)
    return study


def recognise_layouts(study: Study, stated: bool = False) -> tuple[Study, tuple[PresetLayout, ...]]:
    """A study whose logs have the columns and units of the recorders that wrote them.

    Logs with a preset have its layout, and unless only `stated` ones count, those without columns
    the one that is recognised. What is stated stays: a column, with its unit, and units. Where
    torque is measured behind the gears, drives have no rotor inertia; where currents are fitted,
    no drive is stated and the robot's torque constants were published, drives have these.

    Returns
    -------
    Study
    tuple of Layout
        Each once.
    """
    if stated and all(log.preset is None for log in study.log):
        return study, ()
    whole = find_logged_robot(load_study_robot(update_section(study, "robot", locked={})))
    joints = whole.joint_names
    logs, found = [], dict[str, PresetLayout]()
    for log in study.log:
        chosen = log.preset is not None or not (stated or log.columns)
        layout = find_log_layout(log, joints) if chosen else None
        if layout is None:
            logs.append(log)
            continue
        logs.append(take_layout(log, layout, study.robot.locked, joints))
        if not study.robot.drive:
            layout = layout.of_robot(whole.name, joints)
        found[layout.name] = layout
    robot = study.robot
    for own in (layout.constants for layout in found.values()):
        if own is not None:
            gains = zip(joints, own.gains, strict=True)
            known = [(joint, gain) for joint, gain in gains if joint not in robot.locked]
            drives = tuple(DriveSpec(joint=joint, gain=gain) for joint, gain in known)
            robot = robot.model_copy(update={"drive": drives})
    behind = any(own.effort is not None and own.effort.link_side for own in found.values())
    if behind and robot.rotor is None:
        robot = robot.model_copy(update={"rotor": False})
    return study.model_copy(update={"log": tuple(logs), "robot": robot}), tuple(found.values())


def take_layout(
    log: LogSection, layout: PresetLayout, locked: Mapping[str, float], joints: Sequence[str]
) -> LogSection:
    """A log with the columns and units of a recorder, but for those that it states."""
    columns = {**layout.leave_out(locked, joints), **(log.columns or {})}
    units = {**layout.units, **(log.units or {})}
    told = {"preset": None, "columns": columns or None, "units": units or None}
    return log.model_copy(update=told)


def fill_preset(log: LogSection, robot: Robot, names: Sequence[str] | None = None) -> LogSection:
    """A log of a robot that is known already, with what its preset says of columns and units.

    `names`: of its columns, where no file has them.
    """
    if log.preset is None:
        return log
    whole = find_logged_robot(robot)
    if whole.locked and whole.source is not None:  # recorders number all joints
        whole = find_logged_robot(load_robot(whole.source))
    if names is None:
        names = [name for table in read_heads(log) for name in table.titles]
    layout = find_preset_layout(log, log.preset, names, whole.joint_names)
    for key, words in (*layout.words, ("columns", layout.signals)):
        NOTES.info("%s: %s: %s", layout.name, key, words)
    return take_layout(log, layout, robot.locked, whole.joint_names)


def find_log_layout(log: LogSection, joints: Sequence[str]) -> PresetLayout | None:
    """The layout of a log's preset, or the one that is recognised."""
    tables = read_heads(log)
    names = [name for table in tables for name in table.titles]
    if log.preset is None:
        return find_layout(names, joints, tables[0].topic is not None)
    return find_preset_layout(log, log.preset, names, joints)


def read_heads(log: LogSection) -> list[Table]:
    """The tables of a log, of which the names of columns are wanted."""
    return [table for file in log.files for table in read_tables(Path(file), whole=False)]


def find_preset_layout(
    log: LogSection, preset: str, names: Sequence[str], joints: Sequence[str]
) -> PresetLayout:
    """The layout of a log's preset, by the names of its columns."""
    try:
        return find_stated_layout(preset, names, joints, log.columns or {})
    except InputError as error:
        raise InputError(f"{','.join(log.files)}: {error}") from error


def pack_study(study: Study) -> str:
    """A study as JSON that a process reads wherever it stands."""
    placed = replace_file_names(study, os.path.abspath)
    return placed.model_dump_json(exclude_none=True)


def find_section_of_key(key: str, first: str) -> str | None:
    """The section of a study that has a key; of several the one that is looked at first."""
    for name in (first, "identify", "prepare", "simulation"):
        if key in type(Study.model_fields[name].default).model_fields:
            return name
    return None


def list_input_files(study: Study) -> tuple[str | Path, ...]:
    """All files that a study is read from, but for itself."""
    return (*list_file_names(study), *list_model_files(load_study_robot(study)))


def load_study_robot(study: Study, closed_as: Robot | None = None) -> Robot:
    """The robot of a study, with its contacts; its loops are those of another one, where told."""
    check_type("a function of studies", study, Study, "dynident.read_study(path) reads one")
    section = study.robot
    robot = load_robot(
        section.file,
        floating=section.floating,
        gravity=section.gravity,
        drives=section.drive,
        transmission=section.transmission,
        locked=section.locked or None,
        loops=study.loop if closed_as is None else (),
        closed_as=closed_as,
    )
    return add_sensors(robot, study.contact, section.beyond, section.sensor)


def update_section(study: Study, section: str, **values: Any) -> Study:
    """A study with other values in one of its sections."""
    own = getattr(study, section).model_copy(update=values)
    return study.model_copy(update={section: own})


def list_logs_of(study: Study, use: str | None) -> list[LogSection]:
    """The logs that a study fits, or holds out; all for no use."""
    return [section for section in study.log if use in (None, section.use)]


def state_contacts(study: Study, texts: Sequence[str]) -> Study:
    """A study with contacts as the command line says them, instead of its own."""
    return study.model_copy(update={"contact": parse_contacts(texts)})


def build_study_idim(study: Study, robot: Robot) -> Idim:
    """The model of a study."""
    elements = build_elements(study.element, robot)
    return build_idim(robot, study.robot.friction, study.robot.rotor, elements=elements)


def build_study_problem(
    study: Study, robot: Robot, logs: Sequence[Samples], progress: Progress = ignore_progress
) -> Problem:
    """The problem of a study's model on logs."""
    section, elements = study.robot, build_elements(study.element, robot)
    return Problem(
        robot, logs, section.friction, section.rotor, elements=elements, progress=progress
    )


def read_study_problem(study: Study, progress: Progress = ignore_progress) -> Problem:
    """The problem of a study on the logs that it fits."""
    robot = load_study_robot(study)
    logs = read_study_logs(study, robot, "identify", progress=progress)
    return build_study_problem(study, robot, logs, progress)


def build_study_simulation(study: Study, robot: Robot, logs: Sequence[Samples]) -> Simulation:
    """The closed loop behind logs, of a study with a controller."""
    assert study.controller is not None
    return build_simulation(study.controller, study.reference, study.simulation, robot, tuple(logs))


def build_study_law(study: Study, robot: Robot, logs: Sequence[Samples]) -> Simulation | None:
    """The loop whose law torques of logs with targets have to obey, where its gains are stated."""
    section = study.controller
    if section is None or section.gains == "identify" or all(log.qref is None for log in logs):
        return None
    return build_study_simulation(study, robot, logs)


def read_study_logs(
    study: Study,
    robot: Robot,
    use: str | None = None,
    torque: bool = True,
    progress: Progress = ignore_progress,
) -> list[Samples]:
    """Read and prepare a study's logs: all, or those of one use.

    `torque`: they have to have it, even where the study's method does without.
    """
    needed = torque and study.identify.method not in TORQUE_FREE
    sections = list_logs_of(study, use)
    logs = read_each_log(
        sections, lambda own: read_study_samples(own, robot, study.prepare, needed), progress
    )
    if torque:
        refuse_missing_torque(study, logs)
    return logs


def read_torque_recording(
    study: Study, section: LogSection, robot: Robot, pieces: bool = False
) -> Recording:
    """Read and repair one log, laid out as a study says, that has to have torque likewise."""
    needed = study.identify.method not in TORQUE_FREE
    recording = read_study_recording(section, robot, needed, pieces)
    refuse_missing_torque(study, [recording])
    return recording


def refuse_missing_torque(study: Study, logs: Iterable[Samples | Recording]) -> None:
    """Refuse logs that the study's method alone can take: without torque, or with its size."""
    method = study.identify.method
    for log in logs:
        if log.torque == "none" and method in TORQUE_FREE:
            raise InputError(
                f"{log.name}: has no torque with a sign, which this command takes; dynident "
                f"identify does without by {method}, and has errors of held-out logs, too"
            )


OF_ROWS = ("rows", "use", "name", "keep", "period", "warmup")
"""Keys of a log that are of rows of its files, not of these."""


def read_study_recordings(
    study: Study,
    robot: Robot,
    torque: bool = True,
    progress: Progress = ignore_progress,
    late: bool = False,
) -> list[Recording]:
    """Read all of a study's logs: files of which one has other rows than the last, once.

    `torque`: see `read_study_logs`. `late`: logs whose drives' law does not say how late it has its
    targets are left without torque.
    """
    needed = torque and study.identify.method not in TORQUE_FREE
    last: tuple[dict[str, Any], Recording] | None = None

    def read(section: LogSection) -> Recording:
        nonlocal last
        files = section.model_dump(exclude={*OF_ROWS}) | {"named": section.name is not None}
        if last is None or last[0] != files or last[1].warnings:  # which say the log's name
            last = files, read_whole_recording(section, robot, needed, late=late)
        elif section.name is not None:
            last = files, replace(last[1], name=section.name)
        return take_rows(section, last[1])

    logs = read_each_log(study.log, read, progress)
    if torque:
        refuse_missing_torque(study, logs)
    return logs


def read_each_log(
    sections: Sequence[LogSection], read: Callable[[LogSection], Log], progress: Progress
) -> list[Log]:
    """What becomes of some logs, one after another."""
    found = []
    progress("reading", 0.0)
    for k, section in enumerate(sections, 1):
        found.append(read(section))
        progress("reading", k / len(sections))
    return found


def read_study_samples(
    section: LogSection, robot: Robot, settings: PrepareSection, torque: bool = True
) -> Samples:
    """Read and prepare one log of a study."""
    return prepare_study_recording(section, read_study_recording(section, robot, torque), settings)


def prepare_study_recording(
    section: LogSection, recording: Recording, settings: PrepareSection
) -> Samples:
    """Prepare one log of a study that was read."""
    given = settings.model_dump(exclude_none=True)
    if section.period == "none":  # a warm-up of the others is none of its own
        given.pop("warmup", None)
    own = {"period": section.period, "warmup": section.warmup}
    given |= {key: value for key, value in own.items() if value is not None}
    if section.warmup and given.get("period", "none") == "none":
        raise InputError(f"{recording.name}: warmup applies only with period; leave it out")
    samples = prepare(recording, **given)
    if section.keep is None:
        return samples
    first = 0 if section.rows is None else section.rows[0]
    if any(start < first for start, _ in section.keep):
        raise InputError(f"{samples.name}: keep begins before rows = {list(section.rows or ())}")
    return samples.only([(start - first, stop - first) for start, stop in section.keep])


def read_study_recording(
    section: LogSection, robot: Robot, torque: bool = True, pieces: bool = False
) -> Recording:
    """Read and repair one log of a study; without torque only where that may be."""
    return take_rows(section, read_whole_recording(section, robot, torque, pieces))


def take_rows(section: LogSection, recording: Recording) -> Recording:
    """The rows of its files that a section asks for."""
    return recording if section.rows is None else recording.rows(*section.rows)


def read_law(section: LogSection) -> DriveLaw:
    """The law that a log section states."""
    with name_section_in_errors(f"[[log]] {section.name or ','.join(section.files)}"):
        return read_options(DriveLaw, section)


def read_whole_recording(
    section: LogSection,
    robot: Robot,
    torque: bool = True,
    pieces: bool = False,
    late: bool = False,
) -> Recording:
    """Read and repair the files of a section."""
    if section.preset is not None:
        raise InputError(
            f"{','.join(section.files)}: its preset is filled in by dynident.read_study, or "
            "dynident.study.study.fill_presets"
        )
    for name in filter(is_remote, section.files):
        raise InputError(f"{name}: is in a store, from which dynident collect reads alone")
    law = read_law(section)
    recording = read_log(
        section.files,
        robot,
        rate=section.rate,
        columns=section.columns,
        units=section.units,
        side=section.side,
        name=section.name,
        stack=section.stack,
        torque=torque and law.law_kp is None,
        floating=read_options(FloatingOptions, section),
        pieces=pieces,
        **asdict(read_options(CLOCKING, section)),
    )
    repair = read_options(LogRepair, section)
    repaired = repair_recording(recording, repair)
    if law.law_kp is None or (late and law.law_delay is None):
        return repaired
    if law.law_delay is None:
        raise InputError(
            f"{recording.name}: law_kp needs law_delay, by which targets come late; dynident "
            "identify finds it, and its --write-study states it"
        )
    if repair.sizes("delay", robot.n).any():
        raise InputError(
            f"{recording.name}: law_kp gives the torque, but delay shifts a logged one; "
            "change law_delay"
        )
    return command_torque(repaired, law)
