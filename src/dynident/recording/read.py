"""Files to a `Recording`: which column is what, in which unit, on which side and clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.recording import checks
from dynident.recording.clock import Clock, Clocking, even_clock, find_clock, in_order, onto_clock
from dynident.recording.readers import Table, read_table
from dynident.recording.recording import Recording
from dynident.robot.model import Robot

File = str | PathLike[str]
Column = str | int
Columns = Mapping[str, Column | Sequence[Column]]
Units = Mapping[str, str | Sequence[str]]
Spot = tuple[Table, int]

OPTIONAL = ("dq", "ddq", "qref", "dqref")
SIGNALS = ("time", "q", "tau", *OPTIONAL, "current")
"""What `columns` may map."""

TIME = ("time", "t")
"""Names that a time column has by itself."""

ANGLES = {"rad": 1.0, "deg": np.pi / 180.0, "rev": 2.0 * np.pi}
LENGTHS = {"m": 1.0, "mm": 1e-3}
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

UNIT_OF = {"dq": "q", "ddq": "q", "qref": "q", "dqref": "qref"}
"""Whose unit a signal has when it has none of its own."""


def read_log(
    files: File | Sequence[File],
    robot: Robot,
    *,
    rate: float | None = None,
    columns: Columns | None = None,
    units: Units | None = None,
    side: Literal["joint", "motor"] = "joint",
    name: str | None = None,
    stack: Literal["side", "time"] = "side",
    clock: Literal["auto", "stamps", "uniform"] = "auto",
    bridge: float | None = None,
    bad_rows: Literal["refuse", "cut"] = "refuse",
) -> Recording:
    """Read one log of a robot's motion from one or several files.

    Without `columns` a log has ``q_<joint>`` and ``tau_<joint>`` (or ``current_<joint>``,
    multiplied by the drives' gains), ``time`` or ``t``, and where it has them ``dq_``,
    ``ddq_``, ``qref_`` and ``dqref_``.

    Parameters
    ----------
    files : path or sequence of paths
        CSV, TXT, TSV, DAT, Parquet, NPZ or MAT (up to version 7).
    robot : Robot
    rate : float, optional
        Samples per second [Hz]; needed where there is no time column.
    columns : mapping, optional
        For each of ``time q tau dq ddq qref dqref current`` the columns in joint order:
        names, or 1-based positions counted over all files side by side.
        ``"file.csv:name"`` is a column of one file, ``"file.csv:*"`` all of its columns
        but the time, ``"positions_*"`` all whose names begin so, in the file's order.
    units : mapping, optional
        For ``q dq ddq qref dqref`` one of ``rad deg rev m mm`` (velocities per second,
        accelerations per second squared), or one a joint. One unit of angle holds for
        the revolute joints, one of length for the prismatic ones (for all on the motor
        side). Velocities and references are taken to be in q's unit. ``time`` is in
        ``s ms us ns``.
    side : {"joint", "motor"}
        Whether the log was taken before or behind the drives' reduction.
    name : str, optional
        What messages call the log; the files' names by default.
    stack : {"side", "time"}
        Whether several files hold different signals of the same samples, or follow one
        another, each a segment of its own.
    clock : {"auto", "stamps", "uniform"}
        Where time stamps jitter: whether they are the samples' instants, or those of their
        arrival and the samples equidistant; by default what makes the positions smoother.
    bridge : float, optional
        Gaps of up to this are bridged by a cubic spline, longer ones cut the log [s]; 0.01 s or
        two periods by default, which hides nothing from the filters at the usual bandwidth.
    bad_rows : {"refuse", "cut"}
        What is done with rows whose values are no finite numbers of sensible size, and whose
        time stamps repeat or go backward.

    Returns
    -------
    Recording
        SI units, joint side, uniform clock; its `warnings` say what was done and noticed.

    Raises
    ------
    InputError
        When a file is missing or no table of finite numbers, columns are missing or
        ambiguous, time goes backward, there is no clock, the units cannot be right, or so many
        rows are bad that they cannot be cut.
    """
    paths = [Path(files)] if isinstance(files, (str, PathLike)) else [Path(f) for f in files]
    label = name or "+".join(path.name for path in paths)
    try:
        clocking = Clocking(clock, bridge, bad_rows)
    except InputError as error:
        raise InputError(f"{label or 'log'}: {error}") from error
    request = _Request(robot, rate, columns or {}, units or {}, side, clocking)
    if not paths:
        raise InputError(f"{label or 'log'}: no files")
    checks.refuse_unknown(label, "stack", (stack,), ("side", "time"))
    checks.refuse_unknown(label, "side", (side,), ("joint", "motor"))
    checks.refuse_unknown(label, "columns", request.columns, SIGNALS)
    checks.refuse_unknown(label, "units", request.units, ("time", "q", *OPTIONAL))
    if rate is not None and not 0.0 < rate < np.inf:
        raise InputError(f"{label}: rate = {rate} is no sample rate; give it in Hz")
    groups = [paths] if stack == "side" else [[path] for path in paths]
    pieces = [_read_piece(group, label, request) for group in groups]
    piece = pieces[0] if len(pieces) == 1 else _follow(label, pieces)
    q, tau = piece.signals["q"], piece.signals["tau"]
    checks.refuse_short(label, len(q))
    warnings = (
        *piece.warnings,
        *checks.check_positions(label, robot, q, stated="q" in request.units),
        *checks.check_torques(label, robot, tau),
    )
    dq, ddq, qref, dqref = (piece.signals.get(signal) for signal in OPTIONAL)
    for signal in piece.signals.values():
        signal.setflags(write=False)  # ours, and so no recording copies them
    return Recording(
        label,
        piece.rate,
        q,
        tau,
        dq,
        ddq,
        qref,
        dqref,
        segments=piece.segments,
        warnings=warnings,
        drives=robot.drives,
    )


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are what, for rows that are yet to come.

    Attributes
    ----------
    places : dict of str to tuple of int
        Columns of each signal, time among them where there is one.
    factors : dict of str to ndarray
        What they are multiplied by to be in SI units.
    request : _Request
    """

    places: dict[str, tuple[int, ...]]
    factors: dict[str, Array]
    request: _Request

    def signals(self, values: Array) -> dict[str, Array]:
        """SI units on the joints' side of rows, shape (samples, columns); time as a column."""
        found = {}
        for signal, columns in self.places.items():
            scaled = values[:, columns] * self.factors[signal]
            key = "tau" if signal == "current" else signal
            found[key] = scaled if key == "time" else _joint_side(scaled, signal, self.request)
        return found


def layout_of(
    table: Table,
    robot: Robot,
    columns: Columns | None = None,
    units: Units | None = None,
    side: str = "joint",
) -> Layout:
    """Which columns of a table are what, by its names: as `read_log` takes them.

    Raises
    ------
    InputError
        When columns are missing or ambiguous, or units do not fit.
    """
    name = str(table.path)
    request = _Request(robot, None, columns or {}, units or {}, side, Clocking())
    checks.refuse_unknown(name, "columns", request.columns, SIGNALS)
    checks.refuse_unknown(name, "units", request.units, ("time", "q", *OPTIONAL))
    time = _time_spot([table], request)
    spots, _ = _spots([table], time, name, request)
    places = {signal: tuple(index for _, index in found) for signal, found in spots.items()}
    factors = {signal: _factors(name, signal, request) for signal in spots}
    if time is not None:
        places["time"], factors["time"] = (time[1],), np.array([_unit_of_time(time, request)])
    return Layout(places, factors, request)


@dataclass(frozen=True)
class _Request:
    """What the caller said of the files."""

    robot: Robot
    rate: float | None
    columns: Columns
    units: Units
    side: str
    clocking: Clocking


@dataclass(frozen=True)
class _Piece:
    """Files that share their samples, read."""

    rate: float
    signals: dict[str, Array]
    segments: tuple[tuple[int, int], ...]
    warnings: tuple[str, ...]


def _read_piece(paths: Sequence[Path], name: str, request: _Request) -> _Piece:
    raw, clock, noticed = _read_raw(paths, name, request)
    signals = {}
    for signal in list(raw):
        # one signal at a time, so that a long log never stands in memory twice
        values = onto_clock(raw.pop(signal), clock)
        values *= _factors(name, signal, request)
        signals["tau" if signal == "current" else signal] = _joint_side(values, signal, request)
    return _Piece(clock.rate, signals, clock.segments, (*noticed, *clock.warnings))


def _read_raw(
    paths: Sequence[Path], name: str, request: _Request
) -> tuple[dict[str, Array], Clock, tuple[str, ...]]:
    """Signals as they stand in the files, their clock, and warnings."""
    tables = [read_table(path) for path in paths]
    checks.refuse_unequal(tables)
    time_spot = _time_spot(tables, request)
    spots, warnings = _spots(tables, time_spot, name, request)
    if time_spot is None and request.rate is None:
        found = (entry for table in tables for entry in table.skipped if entry[0] in TIME)
        reason = "".join(f" ({name!r} {reason})" for name, reason in found)
        raise InputError(
            f"{checks.called(tables)}: has no time column{reason}; name it in columns, or set rate"
        )
    times = [] if time_spot is None else _times(tables, time_spot, request)
    stamps = [_take([spot])[:, 0] * _unit_of_time(spot, request) for spot in times]
    signals = {signal: _take(chosen) for signal, chosen in spots.items()}
    columns = [([spot], time[:, None], False) for spot, time in zip(times, stamps, strict=True)]
    columns += [(spots[signal], values, True) for signal, values in signals.items()]
    samples = len(tables[0].values)
    kept, cut = _kept(name, request, columns, stamps[:1])
    if len(kept) < samples:
        stamps = [values[kept] for values in stamps]
        columns.clear()
        for signal in spots:
            signals[signal] = signals[signal][kept]
    for spot, other in list(zip(times, stamps, strict=True))[1:]:
        checks.refuse_other_clock(stamps[0], times[0], other, spot, kept)
    warnings += cut
    if time_spot is None and len(kept) == samples:
        return signals, even_clock(float(request.rate or 0.0), samples), warnings
    table, index = time_spot or spots["q"][0]
    clock = find_clock(
        stamps[0] if stamps else kept / float(request.rate or 0.0),
        signals["q"],
        name,
        lambda sample: table.place(int(kept[sample]), index),
        request.clocking,
    )
    return signals, clock, (*warnings, *checks.check_rate(name, clock.rate, request.rate))


def _take(spots: Sequence[Spot]) -> Array:
    """Copies of columns, side by side."""
    values = np.empty((len(spots[0][0].values), len(spots)))
    for column, (table, index) in enumerate(spots):
        values[:, column] = table.values[:, index]
    return values


def _kept(
    name: str,
    request: _Request,
    columns: Sequence[tuple[Sequence[Spot], Array, bool]],
    stamps: Sequence[Array],
) -> tuple[Integers, tuple[str, ...]]:
    """The samples that are good, and a note on those that are not."""
    (table, _), samples = columns[0][0][0], len(columns[0][1])
    refuse = request.clocking.bad_rows == "refuse"
    bad, late = np.zeros(samples, dtype=bool), np.zeros(samples, dtype=bool)
    for origin, values, leaps in columns:
        found = checks.bad_values(values, leaps=leaps)
        if refuse:
            checks.refuse_bad(values, found, origin)
        bad |= found.any(axis=1)
    kept = np.flatnonzero(~bad)
    if refuse:
        return kept, ()
    for time in stamps:
        late[kept[~in_order(time[kept])]] = True
    note = checks.cut_rows(name, table, np.flatnonzero(bad), np.flatnonzero(late), samples)
    return np.flatnonzero(~bad & ~late), note


# time


def _time_spot(tables: Sequence[Table], request: _Request) -> Spot | None:
    if "time" not in request.columns:
        return next(iter(_own_times(tables)), None)
    found = [s for c in _listed(request.columns["time"]) for s in _find(tables, c, "time", ())]
    if len(found) != 1:
        raise InputError(
            f"{checks.called(tables)}: columns.time names {len(found)} columns, not one"
        )
    return found[0]


def _own_times(tables: Sequence[Table]) -> list[Spot]:
    """The columns that are called time, at most one a file."""
    named = ((table, [n for n in TIME if n in (table.names or ())]) for table in tables)
    return [(table, (table.names or ()).index(names[0])) for table, names in named if names]


def _times(tables: Sequence[Table], spot: Spot, request: _Request) -> list[Spot]:
    """The time column and, unless it was named, those of the files beside it."""
    return [spot] if "time" in request.columns else _own_times(tables)


def _unit_of_time(spot: Spot, request: _Request) -> float:
    unit = request.units.get("time", "s")
    if not isinstance(unit, str) or unit not in TIMES:
        raise InputError(f"{spot[0].path}: units.time = {unit!r}; known are {', '.join(TIMES)}")
    return TIMES[unit]


# columns


def _spots(
    tables: Sequence[Table], time: Spot | None, name: str, request: _Request
) -> tuple[dict[str, list[Spot]], tuple[str, ...]]:
    """Where each signal's columns are, and what is left aside."""
    robot, columns = request.robot, request.columns
    used = [*_own_times(tables), *([time] if time else [])]
    defaults = {s: [f"{s}_{joint}" for joint in robot.joint_names] for s in SIGNALS}
    known = {column for table in tables for column in table.names or ()}
    torque = "tau"
    if "tau" not in columns and ("current" in columns or not known & {*defaults["tau"]}):
        torque = "current" if "current" in columns or known & {*defaults["current"]} else "tau"
    warnings = []
    if torque == "tau" and {"tau", "current"} <= columns.keys():
        warnings.append(f"{name}: columns names tau and current; current is not used")
    if torque == "current" and np.all(robot.drives.gain == 1.0):
        warnings.append(f"{name}: currents taken as torques, for every drive's gain is 1")
    found = {}
    for signal in ("q", torque, *OPTIONAL):
        wanted = _listed(columns[signal]) if signal in columns else defaults[signal]
        present = len(known & {*defaults[signal]})
        if signal in OPTIONAL and signal not in columns and present < robot.n:
            if present:
                warnings.append(f"{name}: {signal}_ has {present} of {robot.n} joints; not used")
            continue
        spots = [spot for column in wanted for spot in _find(tables, column, signal, used)]
        if len(spots) != robot.n:
            raise InputError(
                f"{checks.called(tables)}: columns.{signal} names {len(spots)} columns, "
                f"the robot has {robot.n} joints ({', '.join(robot.joint_names)})"
            )
        if len({(table.path, index) for table, index in spots}) < len(spots):
            raise InputError(f"{checks.called(tables)}: columns.{signal} names a column twice")
        found[signal] = spots
    return found, tuple(warnings)


def _find(tables: Sequence[Table], wanted: Column, signal: str, used: Iterable[Spot]) -> list[Spot]:
    """The columns that an entry of `columns` means."""
    if isinstance(wanted, Integral):  # NumPy's, too
        return [_at(tables, int(wanted), signal)]
    if not isinstance(wanted, str):
        raise InputError(
            f"{checks.called(tables)}: columns.{signal}: {wanted!r} is neither the name of a "
            "column nor a position, which counts from 1"
        )
    within, column = _of_file(tables, wanted)
    everything = [(table, index) for table in within for index in range(table.values.shape[1])]
    if column == "*":
        taken = {(table.path, index) for table, index in used}
        return [spot for spot in everything if (spot[0].path, spot[1]) not in taken]
    names = [table.names[index] if table.names else "" for table, index in everything]
    if column.endswith("*"):
        hits = [s for s, n in zip(everything, names, strict=True) if n.startswith(column[:-1])]
        if not hits:
            checks.refuse_missing(within, column, signal)
        return hits
    hits = [spot for spot, name in zip(everything, names, strict=True) if name == column]
    if not hits and column.isdecimal():
        return [_at(within, int(column), signal)]
    if len(hits) > 1:
        places = " and ".join(f"'{t.path.name}:{i + 1}'" for t, i in hits)
        raise InputError(
            f"{checks.called(within)}: has {column!r} twice; write {places} in columns"
        )
    if not hits:
        checks.refuse_missing(within, column, signal)
    return hits


def _of_file(tables: Sequence[Table], wanted: str) -> tuple[Sequence[Table], str]:
    """The tables that an entry speaks of, and the column without the file's name."""
    for called in (lambda table: table.path.name, lambda table: str(table.path)):
        own = [table for table in tables if wanted.startswith(f"{called(table)}:")]
        if len(own) == 1:
            return own, wanted[len(called(own[0])) + 1 :]
    return tables, wanted


def _at(tables: Sequence[Table], position: int, signal: str) -> Spot:
    """The column at a 1-based position, counted over all tables."""
    index = position - 1
    for table in tables:
        if 0 <= index < table.values.shape[1]:
            return table, index
        index -= table.values.shape[1]
    total = sum(table.values.shape[1] for table in tables)
    raise InputError(
        f"{checks.called(tables)}: columns.{signal} asks for column {position}; "
        f"there are 1 to {total}"
    )


# units and sides


def _factors(name: str, signal: str, request: _Request) -> Array:
    """What each joint's column is multiplied by to be in SI units or, of current, torque."""
    robot = request.robot
    if signal == "current":
        return robot.drives.gain
    key = signal
    while key not in request.units and key in UNIT_OF:
        key = UNIT_OF[key]
    factors = np.ones(robot.n)
    if key not in request.units:
        return factors
    stated = request.units[key]
    units = [stated] * robot.n if isinstance(stated, str) else list(stated)
    if len(units) != robot.n:
        raise InputError(f"{name}: units.{key} has {len(units)} units for {robot.n} joints")
    checks.refuse_unknown(name, f"units.{key}", units, (*ANGLES, *LENGTHS))
    scales = {**ANGLES, **LENGTHS}
    matching = 0
    for index, (unit, joint) in enumerate(zip(units, robot.joints, strict=True)):
        if request.side == "motor" or (unit in ANGLES) == (joint.kind == "revolute"):
            factors[index] = scales[unit]
            matching += 1
        elif not isinstance(stated, str):
            raise InputError(
                f"{name}: units.{key} = {unit!r} for {joint.name}, a {joint.kind} joint"
            )
    if not matching:
        raise InputError(
            f"{name}: units.{key} = {stated!r}, but every joint is {robot.joints[0].kind}"
        )
    return factors


def _joint_side(values: Array, signal: str, request: _Request) -> Array:
    if request.side == "joint":
        return values
    drives = request.robot.drives
    if signal in ("q", "qref"):
        return np.ascontiguousarray(drives.position_to_joint(values))
    if signal in ("tau", "current"):
        return np.ascontiguousarray(drives.torque_to_joint(values))
    return np.ascontiguousarray(drives.rate_to_joint(values))


# several pieces, and messages


def _follow(name: str, pieces: Sequence[_Piece]) -> _Piece:
    """Pieces one after another, each with its own segments."""
    rates = [piece.rate for piece in pieces]
    if max(rates) > (1.0 + checks.SAME_RATE) * min(rates):
        listed = ", ".join(f"{rate:.6g}" for rate in rates)
        raise InputError(
            f"{name}: the files' rates differ ({listed} Hz); read them as several logs"
        )
    warnings = [warning for piece in pieces for warning in piece.warnings]
    counts = [len(piece.signals["q"]) for piece in pieces]
    segments: list[tuple[int, int]] = []
    signals = {}
    for offset, piece in zip(np.cumsum([0, *counts[:-1]]).tolist(), pieces, strict=True):
        segments += [(start + offset, stop + offset) for start, stop in piece.segments]
    for signal in ("q", "tau", *OPTIONAL):
        parts = [piece.signals.pop(signal) for piece in pieces if signal in piece.signals]
        if len(parts) == len(pieces):
            signals[signal] = np.concatenate(parts)
        elif parts:
            warnings.append(f"{name}: {signal} is in {len(parts)} of {len(pieces)} files; not used")
    rate = float(np.average(rates, weights=counts))
    return _Piece(rate, signals, tuple(segments), tuple(dict.fromkeys(warnings)))


def _listed(columns: Column | Iterable[Column]) -> Sequence[Column]:
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        return [columns]
    return list(columns)
