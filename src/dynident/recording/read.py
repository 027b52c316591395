"""Files to a `Recording`: which column is what, in which unit, on which side and clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError, check_type
from dynident.filters.clock import ClockOptions
from dynident.filters.turns import LostTurns
from dynident.readers import Table, measure_log, read_tables
from dynident.readers.column_names import Columns as CalledColumns
from dynident.readers.column_names import describe_columns, find_columns
from dynident.readers.frames import is_frame, read_frame, take_path
from dynident.readers.orientation import drop_repeated_orientations
from dynident.readers.presets import find_layout
from dynident.readers.table import TIME
from dynident.readers.units import find_units
from dynident.recording import checks
from dynident.recording.checks import ANGLES, Spot, join_file_names, list_column_names
from dynident.recording.floating import (
    BASE,
    FloatingOptions,
    choose_floating,
    find_logged_robot,
    list_floating_columns,
    refuse_idle_keys,
)
from dynident.recording.pieces import sample_in_pieces
from dynident.recording.recording import Recording
from dynident.recording.signals import (
    ASIDE,
    OPTIONAL,
    LogRequest,
    Side,
    SignalPlaces,
    Units,
    build_recording,
    find_every_turn,
    put_on_joints,
    sample_signals,
)
from dynident.robot.model import Robot

File = str | PathLike[str]
Frame = Any
"""A DataFrame of pandas or polars, or an Arrow table: none of these libraries is needed."""
Files = File | Frame | Sequence[File | Frame]
"""What `read_log` takes."""
Column = str | int
Columns = Mapping[str, Column | Sequence[Column]]

SIGNALS = ("time", "q", "tau", *OPTIONAL, "current")
"""What `columns` may map."""


def read_log(
    files: Files,
    robot: Robot,
    *,
    rate: float | None = None,
    columns: Columns | None = None,
    units: Units | None = None,
    side: Side = "joint",
    name: str | None = None,
    stack: Literal["side", "time"] = "side",
    clock: Literal["auto", "stamps", "uniform", "rate"] = "auto",
    bridge: float | None = None,
    bad_rows: Literal["refuse", "cut"] = "refuse",
    torque: bool = True,
    floating: FloatingOptions | None = None,
    pieces: bool = False,
) -> Recording:
    """Read one log of a robot's motion from one or several files.

    Without `columns` these are read: ``q_<joint>`` and ``tau_<joint>`` (or ``current_<joint>``,
    multiplied by the drives' gains), ``time`` or ``t``, and optionally ``dq_``, ``ddq_``,
    ``qref_`` and ``dqref_``; ``temp_``, or one ``temp`` for all drives, and ``known_``. Other
    names of positions, torques and time are recognised if they are unambiguous, such as
    ``positions_*``; `warnings` say so.

    >>> log = di.read_log("run1.csv", robot)

    Parameters
    ----------
    files : path, DataFrame, or sequence of them
        A DataFrame (pandas, polars), an Arrow table or a Dataset (xarray) is read like a file with
        the same columns; a time index of pandas is its time. Files are
        CSV, TXT, TSV or DAT (also compressed by gzip), Parquet, NPZ, MAT, HDF5, ROS bags, MCAP.
    robot : Robot
    rate : float, optional
        Samples per second [Hz]; required without a time column.
    columns : mapping, optional
        For each of ``time q tau dq ddq qref dqref temp known current`` the columns in joint
        order (for ``temp`` one suffices for all joints):
        names, or 1-based positions counted over all files side by side.
        ``"file.csv:name"`` is a column of one file, ``"file.csv:*"`` all of its columns
        except the time, ``"positions_*"`` and ``"/arm/*/effort"`` all with matching names: in
        joint order if the star stands for the joints' names, else in the file's
        order. ``"/joint_states:q_*"`` are those of one topic of a bag.
    units : mapping, optional
        For ``q dq ddq qref dqref`` one of ``rad deg rev m mm`` (velocities per second,
        accelerations per second squared), or one per joint. A unit of angle applies to
        revolute joints, one of length to prismatic ones (to all on the motor
        side). The default for velocities and references is q's unit. ``time`` is in
        ``s ms us ns``, ``temp`` in ``degC`` or ``K``, a base's ``base_rpy`` in ``rad deg rev``;
        ``known`` is in Nm or N on the joints.
    side : {"joint", "motor"}, a sequence of them, or a mapping
        Side of the gears on which the log was measured, for all joints or for each;
        a mapping states motions (``q``) and torques (``tau``) separately, by default the joints'.
    name : str, optional
        Name of the log in messages; the files' names by default.
    stack : {"side", "time"}
        Whether several files have different signals of the same samples, or follow one
        another as separate segments.
    clock : {"auto", "stamps", "uniform", "rate"}
        For time stamps with jitter: whether they are the sampling instants, or arrival times
        of equidistant samples; by default whichever makes the positions smoother. "rate" is for
        stamps of a clock that is wrong by a factor: `rate` then counts.
    bridge : float, optional
        Gaps up to this length are bridged by a cubic spline, longer ones divide the log [s]; 0.01 s
        or two periods by default, which loses no information at the usual bandwidth.
    bad_rows : {"refuse", "cut"}
        Treatment of rows with values that are not finite or implausibly large, or with
        time stamps that repeat or go backward.
    torque : bool
        Whether a column of torque or current is required.
    floating : FloatingOptions, optional
        For floating bases or contacts: interpretation of their columns.
    pieces : bool
        Whether the signals of a long log stay in a temporary file and are read on demand, some
        samples at a time, so that memory does not grow with the log. Steps that need all of it
        read it as a whole (`sample_in_pieces`).

    Returns
    -------
    Recording
        SI units, joint side, uniform clock; its `warnings` list what was changed and noticed.

    Raises
    ------
    InputError
        If a file is missing or is not a table of finite numbers, columns are missing or
        ambiguous, time goes backward, there is no clock, the units cannot be right, or too many
        rows are bad to be cut.
    """
    check_type("read_log", robot, Robot, "dynident.load_robot(file) makes one")
    given: list[Any] = [files]
    if isinstance(files, Iterable) and not (
        isinstance(files, (str, PathLike, Mapping)) or is_frame(files)
    ):
        given = [*files]
    paths = [each if is_frame(each) else take_path(each) for each in given]
    label = name or "+".join(path.name if isinstance(path, Path) else "frame" for path in paths)
    try:
        clocking = ClockOptions(clock, bridge, bad_rows)
    except InputError as error:
        raise InputError(f"{label or 'log'}: {error}") from error
    if not paths:
        raise InputError(f"{label or 'log'}: no files")
    checks.refuse_unknown_words(label, "stack", (stack,), ("side", "time"))
    wanted = choose_floating(floating)
    floats = robot.floating
    refuse_idle_keys(label, wanted, robot)
    robot = find_logged_robot(robot)
    names = robot.joint_names
    request = LogRequest(
        label, names, robot, rate, units or {}, side, clocking, floating=wanted, pieces=pieces
    )
    torque = torque and not floats  # its base's equations take none
    log = _Log((), request, robot, columns or {}, torque)
    known = (*SIGNALS, *list_floating_columns(robot))
    checks.refuse_unknown_words(label, "columns", log.columns, known)
    groups = [paths] if stack == "side" else [[path] for path in paths]
    found = []
    for group in groups:
        places = _locate_in_files(group, log)
        request = replace(request, units={**places.units, **log.request.units})
        found.append(sample_in_pieces(places, request) or sample_signals(places, request))
    sizes = [measure_log(path) for path in paths if isinstance(path, Path)]
    whole = sum(sizes) if len(sizes) == len(paths) else None
    return build_recording(found, replace(request, size=whole))


def take_log(log: Recording | Files, robot: Robot, torque: bool = True) -> Recording:
    """A log as it is, or read of files or frames with the columns' usual names."""
    return log if isinstance(log, Recording) else read_log(log, robot, torque=torque)


@dataclass(frozen=True)
class ColumnLayout:
    """Which columns of a table are what, for rows that are yet to come."""

    places: dict[str, tuple[int, ...]]
    """Columns of each signal, time among them where there is one."""
    absent: tuple[int, ...]
    """Joints that may have no columns."""
    request: LogRequest
    notes: tuple[str, ...] = ()
    """What was noticed and taken."""

    def signals(self, values: Array) -> dict[str, Array]:
        """SI units on the joints' side of rows, shape (samples, columns); time as a column."""
        found = {}
        for signal, columns in self.places.items():
            key = "tau" if signal == "current" else signal
            found[key] = put_on_joints(values[:, columns], signal, self.absent, self.request)
        return found

    def turns(self) -> dict[str, LostTurns]:
        """What jumps by a turn in angles of joints, as samples come."""
        return find_every_turn(self.places, self.request, si=True)


def find_column_layout(
    table: Table,
    robot: Robot,
    columns: Columns | None = None,
    units: Units | None = None,
    side: Side = "joint",
    floating: FloatingOptions | None = None,
) -> ColumnLayout:
    """Which columns of a table are what, by its names: as `read_log` takes them."""
    name = str(table.path)
    own = (robot.joint_names, robot, None, units or {}, side, ClockOptions())
    request = LogRequest(name, *own, floating=FloatingOptions() if floating is None else floating)
    log = _Log([table], request, robot, columns or {}, torque=not robot.floating)
    checks.refuse_unknown_words(name, "columns", log.columns, SIGNALS)
    log, of_columns = _recognise_columns(log)
    time = _locate_time(log)
    spots, noticed = _locate_signals(log, time)
    spots, repeated = drop_repeated_orientations(spots)
    places = {signal: tuple(index for _, index in found) for signal, found in spots.items()}
    if time is not None:
        places["time"] = (time[1],)
    units, of_units = _find_units(log, spots, time)
    request = replace(request, units={**units, **request.units})
    notes = (*of_columns, *noticed, *(f"{name}: {note}" for note in repeated), *of_units)
    layout = ColumnLayout(places, _list_absent_places(log), request, notes)
    layout.signals(np.zeros((1, table.width)))  # units that cannot be are refused here
    return layout


@dataclass(frozen=True)
class _Log:
    """Files that share their samples, and what the caller said of their columns.

    `timing` are the columns of time, which a star does not mean.
    """

    tables: Sequence[Table]
    request: LogRequest
    robot: Robot
    columns: Columns
    torque: bool = True
    timing: Sequence[Spot] = ()

    @property
    def called(self) -> str:
        return join_file_names(self.tables)

    @property
    def names(self) -> list[str]:
        return list_column_names(self.tables)


def _locate_in_files(paths: Sequence[Path | Frame], log: _Log) -> SignalPlaces:
    """Where the signals are in files that share their samples."""
    name, whole = log.request.name, log.request.clocking.bad_rows == "refuse"
    tables = [
        table
        for path in paths
        for table in (
            read_tables(path, whole) if isinstance(path, Path) else (read_frame(path, name),)
        )
    ]
    checks.refuse_unequal_rows(tables)
    log, of_columns = _recognise_columns(replace(log, tables=tables))
    time = _locate_time(log)
    spots, notes = _locate_signals(log, time)
    units, of_units = _find_units(log, spots, time)
    log = replace(log, request=replace(log.request, units={**units, **log.request.units}))
    notes = (*of_columns, *notes, *of_units, *_warn_of_locked_motion(log))
    table = spots["q"][0][0]
    if time is None and table.topic is not None:
        time = (table, table.titles.index("time"))
    if time is not None and table.topic is not None and time[0] is not table:
        raise InputError(
            f"{table.called}: the clock of the positions is their topic's; leave columns.time out"
        )
    if time is None and log.request.rate is None:
        checks.refuse_no_time(tables, TIME)
    times = [] if time is None else [time]
    if time is not None and time[0].topic is None and "time" not in log.columns:
        times = _list_time_columns(tables)
    used = dict.fromkeys(table for chosen in spots.values() for table, _ in chosen)
    ends = (f"{name}: {table.cut_off}; this row is cut" for table in used if table.cut_off)
    notes = (*notes, *ends, *(note for table in used for note in table.notes))
    return SignalPlaces(times, spots, notes, _list_absent_places(log), units)


def find_called_columns(
    names: Sequence[str], robot: Robot, rate: float | None = None, topics: bool = False
) -> tuple[list[str], CalledColumns]:
    """The joints that a log has, none where that is not clear, and the columns of its signals.

    Those that are called as they are by default are left out; what a recorder wrote is for its
    preset. `robot`: whose columns the log has.
    """
    joints = [j for j, own in zip(robot.joint_names, robot.passive, strict=True) if not own]
    if not names or find_layout(names, joints, topics) is not None:
        return joints, {}
    counted = all(joint.parent == k for k, joint in enumerate(robot.joints))
    moved, columns = find_columns(names, joints, counted)
    if rate is not None:
        columns.pop("time", None)
    return moved, columns


def _recognise_columns(log: _Log) -> tuple[_Log, tuple[str, ...]]:
    """A log with the columns that their names tell, where none are stated, and words of them."""
    names, topics = {*log.names}, log.tables[0].topic is not None
    moved, columns = find_called_columns(log.names, log.robot, log.request.rate, topics)
    usual = ({f"{signal}_{joint}" for joint in moved} for signal in ("tau", "current"))
    borne = "tau" in columns or any(own <= names for own in usual)
    whole = len(moved) == sum(not own for own in log.robot.passive)
    if not (log.torque or log.robot.floating or "q" in columns):
        columns.pop("tau", None)  # of logs that are read as they are without
    if log.columns or not (columns and whole and (borne or not log.torque)):
        return log, ()
    said = f"{log.request.name}: columns: {describe_columns(columns)}"
    return replace(log, columns=columns), (said,)


def _find_units(
    log: _Log, spots: Mapping[str, Sequence[Spot]], time: Spot | None
) -> tuple[Units, tuple[str, ...]]:
    """Units that the tables state, and what is said of them."""
    timed = {**spots, **({} if time is None else {"time": [time]})}
    units = find_units(timed, log.request.units, log.columns, log.robot.joint_names)
    listed = [
        f"{s} in {each if isinstance(each, str) else ', '.join(each)}" for s, each in units.items()
    ]
    said = f"{log.request.name}: {'; '.join(listed)}, as its columns say"
    return units, (said,) if listed else ()


def _list_absent_places(log: _Log) -> tuple[int, ...]:
    """Places of joints that may have no columns: locked ones, and passive ones of loops."""
    names = log.robot.joint_names
    passive = [j for j, own in zip(names, log.robot.passive, strict=True) if own]
    return tuple(names.index(j) for j in (*list_absent_joints(log), *passive) if j in names)


# time


def _locate_time(log: _Log) -> Spot | None:
    """The time column, but for tables with a clock each, of which q's decides."""
    if "time" not in log.columns:
        own = (spot for spot in _list_time_columns(log.tables) if spot[0].topic is None)
        return next(own, None)
    found = _find_columns(log, log.columns["time"], "time")
    if len(found) != 1:
        raise InputError(f"{log.called}: columns.time names {len(found)} columns, not one")
    return found[0]


def _list_time_columns(tables: Sequence[Table]) -> list[Spot]:
    """The columns that are called time, at most one a table."""
    named = ((table, [n for n in TIME if n in table.titles]) for table in tables)
    spots = [(table, table.titles.index(names[0])) for table, names in named if names]
    return [(table, index) for table, index in spots if index not in table.words]


# columns


def _locate_signals(log: _Log, time: Spot | None) -> tuple[dict[str, list[Spot]], tuple[str, ...]]:
    """Where each signal's columns are, and what is left aside."""
    robot, columns, name, tables = log.robot, log.columns, log.request.name, log.tables
    log = replace(log, timing=[*_list_time_columns(tables), *([time] if time else [])])
    defaults = {s: [f"{s}_{joint}" for joint in robot.joint_names] for s in SIGNALS}
    known = {*log.names}
    if "temp" in known and not known & {*defaults["temp"]}:
        defaults["temp"] = ["temp"] * robot.n  # one of all drives
    torque = "tau"
    if "tau" not in columns and ("current" in columns or not known & {*defaults["tau"]}):
        torque = "current" if "current" in columns or known & {*defaults["current"]} else "tau"
    warnings = []
    if torque == "tau" and {"tau", "current"} <= columns.keys():
        warnings.append(f"{name}: columns names tau and current; current is not used")
    moved = [j for j in robot.joint_names if j not in list_absent_joints(log)]
    driven = {robot.joint_names[j] for j in robot.driven}
    found: dict[str, list[Spot]] = {}
    borne = log.torque or torque in columns or known & {*defaults[torque]}
    for signal in ("q", *((torque,) if borne else ()), *OPTIONAL):
        within, wanted = tables, _to_list(columns.get(signal, ()))
        every = signal not in columns and {f"{signal}_{joint}" for joint in moved} <= known
        here = moved if every else [j for j in moved if j in driven]
        if signal not in columns:
            wanted = [c for c, j in zip(defaults[signal], robot.joint_names) if j in here]
            # of topics that speak of the same joints the one of the positions is meant
            own = [t for t, _ in found.get("q", ()) if t.topic is not None]
            if {*wanted} <= {*list_column_names(own)}:
                within = [t for t in tables if t in own]
        present = sum(column in known for column in wanted if isinstance(column, str))
        if signal in OPTIONAL and signal not in columns and present < len(here):
            if present:
                warnings.append(f"{name}: {signal}_ has {present} of {robot.n} joints; not used")
            continue
        spots = _find_columns(replace(log, tables=within), wanted, signal)
        if signal == "temp" and len(spots) == 1:
            spots *= len(here)
        called = signal
        if signal == "current" and np.all(robot.drives.gain == 1.0):
            called, taken = _name_currents(log, spots)
            warnings.append(f"{name}: {taken}")
        if len(spots) not in (len(here), len(moved)):
            told = f"the robot has {len(here)} joints ({', '.join(here)})"
            told += _explain_missing_joints(robot, spots)
            raise InputError(f"{log.called}: columns.{signal} names {len(spots)} columns, {told}")
        distinct = len({(id(table), index) for table, index in spots})
        if distinct < len(spots) and not (signal == "temp" and distinct == 1):
            raise InputError(f"{join_file_names(tables)}: columns.{signal} names a column twice")
        found[called] = spots
    for signal, columns_of in list_floating_columns(robot).items():
        spots = _locate_floating_signal(log, signal, columns_of)
        if spots:
            found[signal] = spots
    return found, (*warnings, *_warn_of_unread_columns(log))


def _name_currents(log: _Log, spots: Sequence[Spot]) -> tuple[str, str]:
    """As what signal currents are taken whose drives state no gain, and the words for it."""
    signed = any(np.any(table.take([index]) < 0.0) for table, index in spots)
    if signed or "current" in log.columns or log.torque:
        return "current", "currents taken as torques, because every drive's gain is 1"
    return "unsigned", "currents without a sign are taken as sizes, not as torques"


def _warn_of_unread_columns(log: _Log) -> tuple[str, ...]:
    """Notes on columns of bases and contacts that the robot does not have."""
    robot, name, known = log.robot, log.request.name, {*log.names}
    notes = []
    columns = [column for names in BASE.values() for column in names if column in known]
    if columns and not robot.floating:
        notes.append(f"{name}: set floating = true to use its columns of a base ({columns[0]} ...)")
    contacts = [contact.name for contact in robot.contacts]
    of_joints = {f"{signal}_{joint}" for signal in SIGNALS for joint in robot.joint_names}
    others = [
        column.partition("_")[2]
        for column in sorted(known - of_joints)
        if column.partition("_")[0] in ("fx", "contact")
    ]
    strangers = [each for each in dict.fromkeys(others) if each and each not in contacts]
    if strangers and (robot.floating or contacts):
        notes.append(
            f"{name}: has columns of {', '.join(strangers)}, which "
            f"{'is' if len(strangers) == 1 else 'are'} no [[contact]]; not used"
        )
    return tuple(notes)


def _warn_of_locked_motion(log: _Log) -> tuple[str, ...]:
    """Notes on joints that the robot has locked, where the log has them elsewhere."""
    wanted, unit = log.columns.get("q", "q_*"), log.request.units.get("q", "rad")
    if not isinstance(wanted, str) or not isinstance(unit, str) or log.request.motors["q"].any():
        return ()
    notes = []
    for joint, value in log.robot.locked.items():
        name = wanted.replace("*", joint)
        for table in log.tables if "*" in wanted else ():
            index = table.names.index(name) if table.names and name in table.names else -1
            if index < 0 or index in table.words:
                continue
            low, high = (f(table.take([index])) * ANGLES.get(unit, 1.0) for f in (np.min, np.max))
            # of which kind it was the robot does not say: another unit than its own has no zero
            far = max(value - low, high - value) if unit in ("rad", "m") else high - low
            if far > ASIDE:
                notes.append(
                    f"{log.request.name}: {joint} is locked at {value:g}, but the log has it from "
                    f"{low:.3g} to {high:.3g}: the model holds it still; leave it unlocked, or "
                    "lock it where it was"
                )
    return tuple(notes)


def list_absent_joints(log: _Log) -> tuple[str, ...]:
    """Locked joints that the log has no position of."""
    if "q" in log.columns:
        return ()
    locked, known = log.request.floating.locked or {}, log.names
    return tuple(joint for joint in locked if f"q_{joint}" not in known)


def _locate_floating_signal(log: _Log, signal: str, names: Sequence[str]) -> list[Spot]:
    """Columns of a base's or a contact's signal; none where the log has none of them."""
    known = log.names
    present = [name for name in names if name in known]
    if signal not in log.columns and len(present) < len(names):
        if present:
            missing = next(name for name in names if name not in known)
            point = "; a point has no moments: kind = 'point'" if missing[:2] == "mx" else ""
            raise InputError(
                f"{log.called}: has {present[0]} but no {missing}{point}; name "
                f"all {len(names)} columns in columns.{signal}, or leave {present[0]} out"
            )
        return []
    spots = _find_columns(log, log.columns.get(signal, names), signal)
    if len(spots) != len(names):
        raise InputError(
            f"{log.called}: columns.{signal} names {len(spots)} columns, not "
            f"{len(names)} ({', '.join(names)})"
        )
    return spots


def _find_columns(log: _Log, wanted: Column | Iterable[Column], signal: str) -> list[Spot]:
    """The columns that one or more entries of `columns` mean; all of them hold numbers."""
    found = [spot for entry in _to_list(wanted) for spot in _match_columns(log, entry, signal)]
    for table, index in found:
        if index in table.words:
            raise InputError(table.words[index])
    return found


def _match_columns(log: _Log, wanted: Column, signal: str) -> list[Spot]:
    if isinstance(wanted, Integral):  # NumPy's, too
        return [_find_column_at(log.tables, int(wanted), signal)]
    if not isinstance(wanted, str):
        raise InputError(
            f"{log.called}: columns.{signal}: {wanted!r} is neither the name "
            "of a column nor a position, which counts from 1"
        )
    within, column = _resolve_table_prefix(log.tables, wanted)
    everything = [(table, index) for table in within for index in range(table.width)]
    if column == "*":
        taken = {(id(table), index) for table, index in log.timing}
        return [s for s in everything if (id(s[0]), s[1]) not in taken and s[1] not in s[0].words]
    names = [table.names[index] if table.names else "" for table, index in everything]
    joints = log.robot.joint_names
    if "*" in column and column not in names:
        prefix, _, suffix = column.partition("*")
        named = [
            (spot, name[len(prefix) :].removesuffix(suffix))
            for spot, name in zip(everything, names, strict=True)
            if name.startswith(prefix) and name[len(prefix) :].endswith(suffix)
        ]
        hits = [spot for spot, _ in named]
        if not hits:
            checks.refuse_missing_column(within, column, signal, joints)
        own = [f"{prefix}{joint}{suffix}" for joint in joints]
        if {*own} <= {*names}:  # what the star stands for are the joints' names: they say the order
            return _find_columns(replace(log, tables=within), own, signal)
        counted = [spot for spot, end in named if end.isdecimal()]
        # Position* is Position1 ... Position7 beside PositionCmptd1 ...
        return counted if len(counted) == len(joints) else hits
    hits = [spot for spot, name in zip(everything, names, strict=True) if name == column]
    least = min((table.rank for table, _ in hits), default=0)
    hits = [spot for spot in hits if spot[0].rank == least]
    if not hits and column.isdecimal():
        return [_find_column_at(within, int(column), signal)]
    if len(hits) > 1:
        places = " and ".join(
            f"'{t.path.name}:{i + 1}'" if t.topic is None else f"'{t.topic}:{column}'"
            for t, i in hits
        )
        often = "twice" if len(hits) == 2 else f"{len(hits)} times"
        raise InputError(
            f"{join_file_names(within)}: has {column!r} {often}; write {places} in columns"
        )
    if not hits:
        names = log.names
        missing = [j for j in joints if f"{signal}_{j}" not in names]
        partly = signal not in log.columns and len(missing) < log.robot.n
        checks.refuse_missing_column(within, column, signal, joints, missing if partly else ())
    return hits


def _explain_missing_joints(robot: Robot, spots: Sequence[Spot]) -> str:
    """What to do where there are fewer columns than joints; which are missing, by their names."""
    if len(spots) >= robot.n:
        return ""
    ends = tuple(table.titles[index] for table, index in spots if table.names)
    missing = tuple(j for j in robot.joint_names if not any(end.endswith(j) for end in ends))
    if len(missing) + len(spots) == robot.n:
        return checks.suggest_locking(missing)
    return "; those that did not move and are not in the log may be locked (--locked)"


def _resolve_table_prefix(tables: Sequence[Table], wanted: str) -> tuple[Sequence[Table], str]:
    """The tables that an entry speaks of, and the column without the names of file and topic."""
    ways: tuple[Callable[[Table], str], ...] = (
        lambda table: table.path.name,
        lambda table: str(table.path),
        lambda table: table.topic or "",
    )
    for called in ways:
        own = [t for t in tables if called(t) and wanted.startswith(f"{called(t)}:")]
        if len({table.path for table in own}) == 1:
            tables, wanted = own, wanted[len(called(own[0])) + 1 :]
    return tables, wanted


def _find_column_at(tables: Sequence[Table], position: int, signal: str) -> Spot:
    """The column at a 1-based position, counted over all tables."""
    index = position - 1
    for table in tables:
        if 0 <= index < table.width:
            return table, index
        index -= table.width
    total = sum(table.width for table in tables)
    raise InputError(
        f"{join_file_names(tables)}: columns.{signal} asks for column {position}; "
        f"there are 1 to {total}"
    )


def _to_list(columns: Column | Iterable[Column]) -> Sequence[Column]:
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        return [columns]
    return list(columns)
