"""What a log must be before anyone works with it, and what looks odd about it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import NoReturn

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers, find_column_extremes
from dynident.core.errors import InputError
from dynident.core.text import format_count, quote_key
from dynident.filters.clock import MOST_CUT
from dynident.readers import Table, column_names
from dynident.readers.column_names import find_joint_series, find_likely_columns
from dynident.readers.presets import find_layout
from dynident.robot.model import Joint, Robot

Reach = tuple[Array, Array]
"""The smallest and the largest value of each joint."""
Spot = tuple[Table, int]
"""Where a column was read: a table, and which of its columns."""

LARGEST = 1e12
"""No encoder count, angle or torque is larger."""

LEAP = 1e3
"""Nothing that is measured is so many times larger than all else in its column."""

RARE = 0.01
"""The part of a log's samples that may stand alone so far out."""

FIRST = 3
"""Places that a note names."""

SHORTEST = 50
"""Logs of fewer samples are refused."""

SAME_RATE = 1e-2
"""Rates that differ by more than this part are different rates."""

SLOWEST = 0.01
"""A robot that is logged at less [Hz] is logged in another unit of time."""

PARTS = {"ms": 1e3, "us": 1e6, "ns": 1e9}
"""Of a second."""

USUAL = 10.0
"""The least rate at which robots are logged [Hz]."""

MARGIN = 1.2
"""Limits may be exceeded by this factor, for files state them roughly."""

FAR = 5.0
"""What is so many times further than the limits is in another unit, where it fits in that."""

TURNS = 1.5
"""A revolute joint that goes further than so many turns may be logged in degrees."""

SAME_COURSE = 0.99
"""Correlation of positions with the integrals of speeds from which both are of one motion."""

ALIKE = 0.05
"""Numbers of joints that differ by no more than this part of the largest are one number."""

ANGLES = {"rad": 1.0, "deg": np.pi / 180.0, "rev": 2.0 * np.pi}
SPEED_UNITS = {"deg": 1.0 / ANGLES["deg"], "rev": 1.0 / ANGLES["rev"], "rad": ANGLES["deg"]}
"""By how many times too fast a robot seems whose speeds are in a unit and read in rad, or deg."""

LOOKED_AT = 100_000
"""Samples at most that speeds are compared in."""

MOST_NAMED = 8
"""Kinds of columns that a message names."""


class UnitError(InputError):
    """A signal is not in the unit that it is taken to be in; in another it may be right."""

    def __init__(self, words: str, signal: str, unit: str) -> None:
        super().__init__(words)
        self.signal, self.unit = signal, unit


def join_file_names(tables: Sequence[Table]) -> str:
    """What a message calls files side by side."""
    return "+".join(dict.fromkeys(str(table.path) for table in tables))


def list_column_names(tables: Sequence[Table]) -> list[str]:
    """Of all columns that have one."""
    return [name for table in tables for name in table.titles]


def refuse_unequal_rows(tables: Sequence[Table]) -> None:
    """Refuse files side by side whose rows do not match."""
    first = tables[0]
    for other in tables[1:]:
        if (other.topic or first.topic) and other.path != first.path:
            called = other.path if other.topic else first.path
            raise InputError(
                f"{called}: has topics with a clock each, and cannot be put side by side with "
                "another file; stack = 'time' puts them one after another"
            )
        if other.topic is None and other.samples != first.samples:
            raise InputError(
                f"{other.path}: has {other.samples} rows of samples, {first.path} has "
                f"{first.samples}; files side by side need the same rows "
                "(stack = 'time' puts them one after another)"
            )


def find_bad_values(values: Array, *, leaps: bool = True) -> Booleans:
    """Values that no sensor gave, shape (samples, columns): not finite, or of no sensible size.

    Absurd is a magnitude of `LARGEST` or more, and, with `leaps`, one that stands alone: it is
    more than `LEAP` times as large as the next smaller one of its column (and than 1), and with
    all that are larger still it is one of at most `RARE` of the samples.
    """
    bad = np.zeros(values.shape, dtype=bool)
    low, high = find_column_extremes(values)
    rare = max(1, int(RARE * len(values)))
    for column in np.flatnonzero(~((low >= -LEAP) & (high <= LEAP))):
        size = np.abs(values[:, column])
        bad[:, column] = ~(size < LARGEST)
        if not leaps:
            continue
        top = np.sort(np.where(bad[:, column], 0.0, size))[-rare - 1 :]
        jumps = np.flatnonzero(top[1:] > LEAP * np.maximum(top[:-1], 1.0))
        if jumps.size:
            bad[:, column] |= size >= top[jumps[0] + 1]
    return bad


def describe_unmeasured(name: str, signal: str, values: Array) -> str:
    """Why a signal that a log need not have is not used: nobody measured it; empty if it is."""
    lost = int(np.sum(~np.isfinite(values).all(axis=1)))
    if not lost and values.any():
        return ""
    words = f"not a number in {format_count(lost, 'row')}" if lost else "zero in every row"
    return f"{name}: {signal} is {words}, and is not used"


def refuse_bad_values(values: Array, bad: Booleans, origin: Sequence[Spot]) -> None:
    """Refuse signals with values that no sensor gave."""
    if not bad.any():
        return
    rows = np.flatnonzero(bad.any(axis=1))
    sample = int(rows[0])
    column = int(np.argmax(bad[sample]))
    table, index = origin[column]
    more = f", nor are values in {rows.size - 1} more rows" if rows.size > 1 else ""
    words = (
        f"{table.place(sample, index)}: {values[sample, column]} is not a finite number of "
        f"sensible size{more}"
    )
    if rows.size == len(values) and table.names and column_names.TIME.search(table.names[index]):
        times = values[np.isfinite(values[:, column]), column]
        step = float(np.median(np.diff(times))) if times.size > 1 else 0.0
        unit = find_time_unit(1.0 / step) if step > 0.0 else "ns"
        advice = f"is it in {unit}? then set units = {{ time = {unit!r} }}"
        raise UnitError(f"{words}; {advice}", "time", unit)
    raise InputError(f"{words}; set bad_rows = 'cut', or split the log there")


def describe_cut_rows(
    name: str, table: Table, bad: Integers, late: Integers, samples: int
) -> tuple[str, ...]:
    """A note on the rows that are cut, with the first places; refused where they are too many.

    `bad` are samples with values that no sensor gave, `late` those whose time does not go forward.
    """
    kinds = (
        (bad, "with values that are not finite numbers of sensible size"),
        (late, "whose time repeats or goes back"),
    )
    parts = []
    for found, what in kinds:
        if found.size:
            first = ", ".join(str(table.row(int(sample))) for sample in found[:FIRST])
            more = ", ..." if found.size > FIRST else ""
            parts.append(f"{found.size} {what} (row {first}{more})")
    count = len(bad) + len(late)
    said = f"{format_count(count, 'row')} of {samples} cut: {', '.join(parts)}"
    if count > MOST_CUT * samples:
        raise InputError(
            f"{table.called}: {said}: too many to be cut; check the columns, or leave the time out "
            "and give a rate"
        )
    return (f"{name}: {said}",) if count else ()


def suggest_locking(missing: Sequence[str]) -> str:
    """What to do about joints that are not in a log, by their names."""
    if not missing:
        return ""
    values = ", ".join(f"{quote_key(name)} = 0.0" for name in missing)
    return (
        f"; if {' and '.join(missing)} did not move, lock {'it' if len(missing) == 1 else 'them'} "
        f"(--locked {shlex.quote(','.join(missing))}, or locked = {{ {values} }} of the robot)"
    )


def show_file(files: Sequence[str], signal: str) -> str:
    """How all columns of the file that is called as a signal are mapped to it."""
    fit = [file for file in files if column_names.is_called_as(file.partition(".")[0], signal)]
    return repr(f"{fit[0] if len(fit) == 1 else 'FILE'}:*")


def refuse_missing_column(
    tables: Sequence[Table],
    column: str,
    signal: str,
    joints: Sequence[str],
    missing: Sequence[str] = (),
) -> NoReturn:
    """Refuse a column that is not there.

    `missing` are those of the robot's joints that have no column, where others have one.
    """
    for table in tables:
        for key, reason in table.skipped:
            if column in (key, f"{key}_*"):
                raise InputError(f"{table.path}: {key!r} cannot be {signal}: it {reason}")
    names = list_column_names(tables)
    if not names:
        whole = [table.path.name for table in tables if table.width == len(joints)]
        example = show_file(whole, signal) if whole and len(tables) > 1 else "[1, 2]"
        raise InputError(
            f"{join_file_names(tables)}: has no header, so no column {column!r}; give positions, "
            f"like columns = {{ {signal} = {example} }}"
        )
    near = get_close_matches(column, dict.fromkeys(names), n=3, cutoff=0.5) or names[:6]
    shown = f"the nearest are {', '.join(map(repr, near))}"
    series = {} if missing else find_joint_series(names, joints)
    likely = None if missing else find_likely_columns(names, joints, signal)
    wanted = "[...]"
    if series:
        shown = f"it has {', '.join(map(repr, [*series][:MOST_NAMED]))}, one a joint"
    if likely is not None:
        wanted = (
            repr(likely) if isinstance(likely, str) else f"[{likely[0]!r}, ..., {likely[-1]!r}]"
        )
    of_joints = [table.path.name for table in tables if {*joints} <= {*table.titles}]
    if len(joints) > 1 and len({*of_joints}) > 1:  # a file a signal
        shown = f"{', '.join(of_joints)} each have columns of the joints' names alone"
        wanted = show_file(of_joints, signal)
    blind = signal == "tau" and any(name.startswith("qref_") for name in names)
    hint = "; without torques cloe fits positions, and clie the law's torque" if blind else ""
    layout = find_layout(names, joints, tables[0].topic is not None)
    if layout is not None and layout.columns:
        hint += f"; they look like {layout.preset.called}: preset = {layout.name!r} reads them"
    else:
        moved, columns = column_names.find_columns(names, joints, counted=False)
        if signal in columns or (moved and missing):
            hint += "; dynident init writes a study that reads it"
    raise InputError(
        f"{join_file_names(tables)}: no column {column!r} for {signal}; {shown}; "
        f"columns = {{ {signal} = {wanted} }} maps other names{hint}{suggest_locking(missing)}"
    )


def refuse_no_time(tables: Sequence[Table], names: Sequence[str]) -> NoReturn:
    """Refuse a log without a time column, which has one of some names, where no rate is given."""
    for table in tables:
        for column, said in table.words.items():
            if table.titles[column] in names:
                raise InputError(said)
    reasons = (entry for table in tables for entry in table.skipped if entry[0] in names)
    reason = "".join(f" ({name!r} {reason})" for name, reason in reasons)
    near = [name for name in list_column_names(tables) if column_names.TIME.search(name)]
    hint = f", like columns = {{ time = {near[0]!r} }}" if near else ""
    raise InputError(
        f"{join_file_names(tables)}: has no time column{reason}; name it in columns{hint}, or set "
        "rate"
    )


def refuse_unknown_words(name: str, what: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse words that are not among the known ones."""
    for key in given:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(
                f"{name}: {what}: {key!r} is unknown; {hint}known are {', '.join(known)}"
            )


def refuse_other_clock(
    time: Array, spot: Spot, other: Array, other_spot: Spot, kept: Integers
) -> None:
    """Refuse files side by side whose samples were not taken at the same times [s].

    `kept` says of which samples of the files the time stamps are.
    """
    apart = np.abs(other - time)
    period = abs(float(np.median(np.diff(time)))) if len(time) > 1 else np.inf
    rows = np.flatnonzero(apart > 0.5 * period)
    if rows.size:
        row = int(rows[0])
        raise InputError(
            f"{other_spot[0].place(int(kept[row]), other_spot[1])}: is {apart[row]:.4g} s off the "
            f"time in {spot[0].called}; align the files, or name one clock in columns.time"
        )


def refuse_short_log(name: str, samples: int) -> None:
    """Refuse a log that is too short for any filter."""
    if samples < SHORTEST:
        raise InputError(f"{name}: has {samples} samples; at least {SHORTEST} are needed")


def find_time_unit(found: float) -> str:
    """The unit of times that say such a rate as if in seconds: the first in which it is usual."""
    return next((unit for unit, parts in PARTS.items() if found * parts >= USUAL), "ns")


def check_rate(name: str, found: float, stated: float | None) -> tuple[str, ...]:
    """Compare a stated rate with the time column's [Hz]; return warnings."""
    if found < SLOWEST:
        unit = find_time_unit(found)
        words = (
            f"{name}: the time column says one sample in {1.0 / found:.3g} s; if it is not in "
            f"seconds, set units = {{ time = {unit!r} }}"
        )
        raise UnitError(words, "time", unit)
    if stated is None or abs(found / stated - 1.0) <= SAME_RATE:
        return ()
    return (
        f"{name}: rate = {stated:g} Hz, but the time column says {found:.6g} Hz; time is used "
        "(clock = 'rate' takes the rate)",
    )


def find_motor_sides(name: str, side: str | Sequence[str], robot: Robot | None) -> Booleans:
    """Which joints' signals were taken on the motors' side, shape (n,), or (1,) without a robot."""
    sides = [side] if isinstance(side, str) else list(side)
    refuse_unknown_words(name, "side", sides, ("joint", "motor"))
    motors = np.array([one == "motor" for one in sides], dtype=bool)
    if robot is None:
        if motors.any():
            raise InputError(f"{name}: side = 'motor' needs the robot, which has the transmission")
        return np.zeros(1, dtype=bool)
    n = robot.n
    if len(sides) != n and not isinstance(side, str):
        raise InputError(
            f"{name}: side has {len(sides)} values; give one, or one for each of {n} joints"
        )
    turned = np.any(robot.drives.reduction != np.eye(n), axis=1) | (robot.drives.zero != 0.0)
    if isinstance(side, str):
        motors = np.repeat(motors, n)
        if motors.any() and not turned.any():
            raise InputError(
                f"{name}: side = 'motor', but {robot.name} has no transmission, so that both sides "
                "are one; give [robot.transmission] a reduction, or leave side out"
            )
        return motors
    names = robot.joint_names
    for joint in np.flatnonzero(motors & ~turned)[:1]:
        raise InputError(
            f"{name}: side of {names[joint]} is 'motor', but it has no transmission, so that both "
            "sides are one; give [robot.transmission] a reduction, or call it 'joint'"
        )
    coupled = (robot.drives.reduction != 0.0) & (motors[:, None] != motors)
    for drive, joint in np.argwhere(coupled)[:1]:
        raise InputError(
            f"{name}: {names[drive]} and {names[joint]} are coupled by the transmission, so they "
            "need the same side"
        )
    return motors


def warn_of_still_joints(name: str, joints: Sequence[str], reach: Reach) -> tuple[str, ...]:
    """Look for joints that never move, by the extremes of their positions; return warnings."""
    return tuple(
        f"{name}: {joint} never moves (q = {low:.6g}): its own parameters cannot be identified"
        for joint, low, high in zip(joints, *reach, strict=True)
        if low == high
    )


def check_positions(
    name: str, robot: Robot, reach: Reach, *, stated: bool, turned: Collection[str] = ()
) -> tuple[str, ...]:
    """Look for wrong units and positions outside the limits [rad or m]; return warnings.

    Where the caller `stated` the unit nothing is refused, nor where joints `turned`: what jumps by
    a turn of its unit is in that unit.
    """
    return tuple(
        warning
        for joint, low, high in zip(robot.joints, *reach, strict=True)
        for warning in _check_range(
            name, robot, joint, (float(low), float(high)), stated, joint.name in turned
        )
    )


def warn_of_dead_channels(name: str, joints: Sequence[str], reach: Reach) -> tuple[str, ...]:
    """Look for dead channels, by the extremes of the torques; return warnings."""
    dead: dict[float, list[str]] = {}
    for joint, low, high in zip(joints, *reach, strict=True):
        if low == high:
            dead.setdefault(float(low), []).append(joint)
    return tuple(
        f"{name}: tau of {', '.join(own)} is {value:.6g} in every sample: no sensor does that, "
        f"nothing fitted to {'this joint' if len(own) == 1 else 'these joints'} can be trusted; "
        f"check {'its column' if len(own) == 1 else 'their columns'}"
        for value, own in dead.items()
    )


def warn_of_other_speeds(
    name: str, joints: Sequence[str], q: Array, dq: Array, rate: float, run: tuple[int, int]
) -> Iterator[str]:
    """Look for speeds that are a multiple of how fast the positions change; yield warnings.

    Of a run of samples the integrals of the speeds are held against the positions, for differences
    of these would be noise; both without their straight lines, as speeds have offsets.
    """
    own = slice(run[0], min(run[1], run[0] + LOOKED_AT))
    speeds = np.asarray(dq[own])
    count = len(speeds)
    lines = np.linalg.qr(np.column_stack([np.ones(count), np.linspace(-1.0, 1.0, count)]))[0]
    went, said = (
        course - lines @ (lines.T @ course)
        for course in (np.asarray(q[own]), (np.cumsum(speeds, axis=0) - 0.5 * speeds) / rate)
    )
    both, squares = np.sum(went * said, axis=0), np.sum(went**2, axis=0)
    told = both**2 > SAME_COURSE**2 * squares * np.sum(said**2, axis=0)
    factors = both[told] / squares[told]
    off = (factors < 1.0 / MARGIN) | (factors > MARGIN)
    if not off.any():
        return
    factor = float(np.median(factors))
    if off.all() and factor > 0.0 and np.ptp(factors) <= ALIKE * np.max(factors):
        unit = next((u for u, x in SPEED_UNITS.items() if abs(factor / x - 1.0) < ALIKE), None)
        advice = f"if dq is right, set rate = {factor * rate:.3g} and clock = 'rate'"
        if unit is not None:
            advice = f"set units = {{ dq = {unit!r} }}"
        yield f"{name}: dq says that all joints move {factor:.3g} times as fast as q does; {advice}"
        return
    named = [joint for joint, tells in zip(joints, told, strict=True) if tells]
    parts = [
        f"{joint} moves {size:.3g} times"
        for joint, size, wrong in zip(named, factors, off, strict=True)
        if wrong
    ]
    yield (
        f"{name}: dq says that {', '.join(parts)} as fast as q does; check its units, signs and "
        "columns"
    )


def warn_of_excessive_torques(name: str, robot: Robot, reach: Reach) -> tuple[str, ...]:
    """Look for torques that the joints cannot bear, by their extremes; return warnings."""
    return tuple(
        f"{name}: tau of {joint.name} reaches {peak:.4g}, its effort limit is "
        f"{joint.effort:.4g}; check the side (joint or motor) and the gain"
        for joint, peak in zip(robot.joints, np.maximum(-reach[0], reach[1]), strict=True)
        # files that know no effort limit often state 0
        if 0.0 < MARGIN * joint.effort < peak
    )


def _check_range(
    name: str,
    robot: Robot,
    joint: Joint,
    reach: tuple[float, float],
    stated: bool,
    turned: bool,
) -> Iterator[str]:
    """Warn of or refuse positions that do not fit the joint."""
    peak = max(abs(reach[0]), abs(reach[1]))
    limit = max(abs(joint.lower), abs(joint.upper))
    limited = joint.lower < joint.upper and bool(np.isfinite(limit))
    beyond = max(reach[1] - joint.upper, joint.lower - reach[0]) if limited else 0.0
    # a continuous joint may turn for ever, a limited one as far as its limits
    if beyond <= 0.0 and (limited or turned or peak <= 2.0 * np.pi * TURNS):
        return
    angle = joint.kind == "revolute"
    small = np.pi / 180.0 if angle else 1e-3
    unit, small_unit = ("rad", "deg") if angle else ("m", "mm")
    fits = not limited or (joint.lower <= small * reach[0] and small * reach[1] <= joint.upper)
    fits &= angle or peak > FAR * limit  # what is small in metres is next to nothing in millimetres
    bounds = f", limits {joint.lower:.4g} to {joint.upper:.4g}" if limited else ""
    below = limited and joint.lower - reach[0] > reach[1] - joint.upper
    far = reach[0] if below else reach[1] if limited else peak
    what = f"{name}: q of {joint.name} reaches {far:.5g} {unit}{bounds}"
    try_this = f"set units = {{ q = '{small_unit}' }}"
    if np.any(robot.drives.reduction != np.eye(robot.n)):
        try_this += " or, for motor positions, side = 'motor'"
    if turned:
        yield f"{what}: outside its limits; check the zero"
    elif stated:
        yield f"{what}; check the unit and the zero"
    elif limited and angle and (peak > 4.0 * np.pi or (peak > FAR * limit and fits)):
        looks = "looks like degrees" if fits else "is not an angle of this joint"
        words = f"{what}: {looks}; {try_this} (or 'rad' if it really is)"
        if fits and peak > 4.0 * np.pi:  # less might be radians, and the file's limits wrong
            raise UnitError(words, "q", small_unit)
        raise InputError(words)
    elif fits and (not limited or beyond > (MARGIN - 1.0) * limit):
        looks = "degrees" if angle else "millimetres"
        turns = "" if limited else f"; if it turned {reach[1] - reach[0]:.3g} rad, nothing is wrong"
        yield f"{what}: looks like {looks}; if so, {try_this}{turns}"
    elif limited:
        yield f"{what}: outside its limits; check the zero and the unit"
