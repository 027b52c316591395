"""Columns of tables to a `Recording`: units, sides, one clock, and what is refused or cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers, check_rate
from dynident.core.errors import InputError, refuse_unknown
from dynident.core.text import format_count
from dynident.filters.blocks import find_extremes, join_signals
from dynident.filters.clock import (
    GAP,
    Clock,
    ClockOptions,
    find_clock,
    find_ordered_samples,
    make_even_clock,
    resample_to_clock,
)
from dynident.filters.turns import LostTurns
from dynident.readers import Table
from dynident.readers.orientation import (
    ORIENTATIONS,
    TURN,
    convert_orientations,
    drop_repeated_orientations,
)
from dynident.recording import checks
from dynident.recording.checks import ANGLES, Spot
from dynident.recording.floating import (
    BASE,
    QUATERNIONS,
    FloatingOptions,
    LoggedBase,
    extract_base,
    extract_contacts,
)
from dynident.recording.recording import OriginalSamples, Recording, Torque
from dynident.robot.closure import Closure
from dynident.robot.model import Robot
from dynident.robot.rotations import remove_sign_flips

Units = Mapping[str, str | Sequence[str]]
JointSides = str | Sequence[str]
Side = JointSides | Mapping[str, JointSides]
"""Of motions (``q``) and torques (``tau``), or of both."""
Columns = tuple[Sequence[Spot], Array, bool]
"""Where columns were read, their values, and whether a value that stands far out is bad."""

OPTIONAL = ("dq", "ddq", "qref", "dqref", "temp", "known")

UNITED = ("time", "q", *OPTIONAL[:-1], "base_rpy")
"""Signals that have units; a base's angles and those that it is asked for share theirs."""

SIDED = ("q", "tau")
"""What may be on either side of the drives' gears: motions, and torques."""

PER_JOINT = ("q", "tau", "current", "unsigned", *OPTIONAL)

LENGTHS = {"m": 1.0, "mm": 1e-3}
TEMPERATURES = {"degC": 0.0, "K": 273.15}
"""What a temperature of 0 deg C is in a unit."""
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
OFF_LOOP = 2e-3
"""Rms by which a passive joint may be logged beside its loop unsaid [rad or m]."""
ASIDE = 0.02
"""A joint that is farther from where it is said to be is not locked [rad or m]."""

UNIT_OF = {"dq": "q", "ddq": "q", "qref": "q", "dqref": "qref"}
"""Whose unit a signal has when it has none of its own."""


@dataclass(frozen=True)
class LogRequest:
    """What the caller said of a log."""

    name: str
    """What messages call the log."""
    joints: tuple[str, ...]
    """Names of the joints, in the order of the columns."""
    robot: Robot | None
    """Whose joints they are, where that is known."""
    rate: float | None
    """[Hz]"""
    units: Units
    side: Side
    clocking: ClockOptions
    named: bool = True
    """Whether `joints` are the joints' own names."""
    floating: FloatingOptions = field(default_factory=FloatingOptions)
    pieces: bool = False
    """Whether what is long stays in a temporary file."""
    size: int | None = None
    """Of the log's files, where it is in files [bytes]."""
    motors: Mapping[str, Booleans] = field(init=False, repr=False)
    """By ``q`` and ``tau``, whether motions and torques are those of motors, a joint each."""

    def __post_init__(self) -> None:
        checks.refuse_unknown_words(self.name, "units", self.units, UNITED)
        if self.rate is not None:
            check_rate(self.rate, self.name)
        elif self.clocking.clock == "rate":
            raise InputError(f"{self.name}: clock = 'rate' needs a rate")
        sides = self.side if isinstance(self.side, Mapping) else dict.fromkeys(SIDED, self.side)
        checks.refuse_unknown_words(self.name, "side", sides, SIDED)
        motors = {
            kind: checks.find_motor_sides(self.name, sides.get(kind, "joint"), self.robot)
            for kind in SIDED
        }
        object.__setattr__(self, "motors", motors)


@dataclass(frozen=True)
class SignalPlaces:
    """Where the signals of a log are."""

    times: Sequence[Spot]
    """Sequence of (table, column). Time stamps; the first ones decide, those of other tables have
    to agree."""
    signals: Mapping[str, Sequence[Spot]]
    """Mapping of str to sequence of (table, column). For ``q``, ``tau`` or ``current`` and what
    else there is, a column a joint."""
    notes: tuple[str, ...] = ()
    absent: tuple[int, ...] = ()
    """Joints without columns, which were locked, or whose positions loops give."""
    units: Units = field(default_factory=dict)
    """That the tables state of signals."""


@dataclass(frozen=True)
class TablePiece:
    """Tables that share their samples, read."""

    rate: float
    signals: dict[str, Array]
    segments: tuple[tuple[int, int], ...]
    starts: tuple[float, ...]
    """When each segment begins, by the time stamps [s]."""
    warnings: tuple[str, ...]
    sampled: OriginalSamples | None = None
    turned: frozenset[str] = frozenset()
    """Joints whose positions jumped by a turn."""


def build_recording(pieces: Sequence[TablePiece], request: LogRequest) -> Recording:
    """Pieces, one after another, as a recording."""
    piece = pieces[0] if len(pieces) == 1 else _join_pieces(request.name, pieces)
    label, robot = request.name, request.robot
    q, speeds = piece.signals["q"], piece.signals.get("dq")
    torque: Torque = "measured" if "tau" in piece.signals else "none"
    tau = piece.signals["tau"] if torque == "measured" else np.zeros_like(q)
    checks.refuse_short_log(label, len(q))
    said: tuple[str, ...] = ()
    if robot is not None and robot.loops:
        q, said = close_logged_chain(label, robot, q, piece)
        if speeds is not None and not np.any(speeds[:, robot.passive]):  # were not logged
            speeds = Closure(robot).move(q, speeds, np.zeros_like(q))[0]
    moved, borne = (find_extremes(signal) for signal in (q, tau))
    doubts = _check_reach(request, torque, moved, borne, piece.turned)
    warnings = [*piece.warnings, *said, *doubts]
    if speeds is not None and speeds.shape == q.shape:
        run = max(piece.segments, key=lambda own: own[1] - own[0])
        joints = request.joints
        warnings += checks.warn_of_other_speeds(label, joints, q, speeds, piece.rate, run)
    _, ddq, qref, dqref, temp, known = (piece.signals.get(signal) for signal in OPTIONAL)
    base: LoggedBase | None = None
    wrenches: dict[str, Array] = {}
    touching: dict[str, Booleans] = {}
    if robot is not None:
        base = extract_base(piece.signals, robot, request.floating, label)
        wrenches, touching = extract_contacts(piece.signals, robot, request.floating)
    for signal in piece.signals.values():
        if isinstance(signal, np.ndarray):
            signal.setflags(write=False)  # ours, and so no recording copies them
    return Recording(
        label,
        piece.rate,
        q,
        tau,
        speeds,
        ddq,
        qref,
        dqref,
        temp=temp,
        unsigned=piece.signals.get("unsigned"),
        known=known,
        segments=piece.segments,
        stamps=tuple((a, time) for (a, _), time in zip(piece.segments, piece.starts, strict=True)),
        warnings=tuple(warnings),
        drives=None if robot is None else robot.drives,
        joints=request.joints if request.named else None,
        torque=torque,
        base=base,
        wrenches=wrenches,
        touching=touching,
        equations=request.floating.equations,
        contact_speed=request.floating.contact_speed,
        tared=request.floating.tared,
        locked=check_locked_positions(label, q, request),
        size=request.size,
        sampled=piece.sampled,
        of_motors=any(bool(side.any()) for side in request.motors.values()),
    )


def _check_reach(
    request: LogRequest,
    torque: Torque,
    moved: tuple[Array, Array],
    borne: tuple[Array, Array],
    turned: Collection[str],
) -> Iterator[str]:
    """What the least and largest positions and torques of joints make doubtful."""
    label, robot = request.name, request.robot
    yield from checks.warn_of_still_joints(label, request.joints, moved)
    if robot is not None:
        stated = "q" in request.units
        yield from checks.check_positions(label, robot, moved, stated=stated, turned=turned)
    if torque == "measured":
        driven = slice(None) if robot is None else ~robot.passive
        joints = np.array(request.joints)[driven]
        own = (borne[0][driven], borne[1][driven])
        yield from checks.warn_of_dead_channels(label, joints.tolist(), own)
    if robot is not None:
        yield from checks.warn_of_excessive_torques(label, robot, borne)


def close_logged_chain(
    name: str, robot: Robot, q: Array, piece: TablePiece
) -> tuple[Array, tuple[str, ...]]:
    """Positions of a robot with loops: those of passive joints as logged, or as its loops give.

    What was logged of them is held against the loops, and said where it is off.
    """
    closure, found = Closure(robot), np.array(q)
    logged = bool(np.any(q[:, closure.passive]))
    start = closure.start
    for a, b in piece.segments:
        start = closure.settle(q[a], name) if logged else start
        found[a:b] = closure.close(q[a:b], name, piece.rate, start)
        start = found[b - 1]
    if not logged:
        return found, ()
    warnings = []
    for k in closure.passive:
        off = np.concatenate([(q - found)[a:b, k] for a, b in piece.segments])
        rms, mean = float(np.sqrt(np.mean(off**2))), float(np.mean(off))
        if rms > OFF_LOOP:
            warnings.append(
                f"{name}: {robot.joint_names[k]} is logged {rms:.3g} (rms, mean {mean:.3g}) beside "
                "where the loop has it: check zeros of encoders and lengths of the loop; the fit "
                "takes the loop"
            )
    return q, tuple(warnings)


def insert_absent_joints(values: Array, absent: Sequence[int]) -> Array:
    """Columns of all joints, zeros of those that are absent."""
    width = values.shape[1] + len(absent)
    found = np.zeros((len(values), width))
    found[:, [j for j in range(width) if j not in absent]] = values
    return found


def check_locked_positions(name: str, q: Array, request: LogRequest) -> dict[str, float]:
    """Where the joints were that were locked, by name [rad or m]."""
    found = dict(request.floating.locked or {})
    for joint, value in found.items():
        refuse_unknown(joint, request.joints, f"{name}: locked: there is no joint {joint!r}")
        off = float(np.max(np.abs(q[:, request.joints.index(joint)] - value)))
        if off > ASIDE:
            raise InputError(
                f"{name}: {joint} is stated as locked at {value:g}, but the log has it {off:.3g} "
                "away from there"
            )
    return found


def sample_signals(places: SignalPlaces, request: LogRequest) -> TablePiece:
    """Signals in SI units, on the joints' side, on one uniform clock."""
    chosen, repeated = drop_repeated_orientations(places.signals)
    notes = (*places.notes, *(f"{request.name}: {note}" for note in repeated))
    places = replace(places, signals=chosen, notes=notes)
    raw, clock, notes, turned = _take_signals(places, request)
    signals, taken = {}, {}
    for signal in list(raw):
        # one signal at a time, so that a long log never stands in memory twice
        values, called = raw.pop(signal), "tau" if signal == "current" else signal
        if signal in QUATERNIONS:
            values = remove_sign_flips(values)  # between q and -q lies no rotation
        clocked = resample_to_clock(values, clock)
        if clocked is not values and called in ("q", "tau"):
            taken[called] = put_on_joints(values, signal, places.absent, request)
        signals[called] = put_on_joints(clocked, signal, places.absent, request)
    sampled = None
    if len(taken) == 2:
        inside = np.concatenate([np.arange(*run) for run in clock.runs])
        sampled = OriginalSamples(clock.places, taken["q"][inside], taken["tau"][inside])
    said = (*notes, *clock.warnings)
    return TablePiece(
        clock.rate, signals, clock.segments, clock.starts, said, sampled, turned
    )  # fmt: skip


def put_on_joints(values: Array, signal: str, absent: Sequence[int], request: LogRequest) -> Array:
    """A signal in SI units with columns of all joints, of which some may be missing."""
    if signal not in PER_JOINT or not absent or values.shape[1] == len(request.joints):
        return convert_to_si(values, signal, request)
    values = convert_to_si(insert_absent_joints(values, absent), signal, request)
    locked = request.floating.locked or {}
    for j in absent:  # loops give the positions of passive ones
        values[:, j] = locked.get(request.joints[j], 0.0) if signal in ("q", "qref") else 0.0
    return values


def _take_signals(
    places: SignalPlaces, request: LogRequest
) -> tuple[dict[str, Array], Clock, tuple[str, ...], frozenset[str]]:
    """Signals as they stand in the tables, their clock, warnings, and joints that turned."""
    name = request.name
    table = places.signals["q"][0][0]
    samples = table.samples
    stamps = [_read_stamps(spot, request) for spot in places.times]
    merger = _Merger(table, stamps[0] if stamps else None, request)
    signals, unmeasured = dict[str, Array](), tuple[str, ...]()
    for signal, spots in places.signals.items():
        angles = signal.endswith("_rpy")
        values = merger.take(spots, _find_turn(request) if angles else None)
        if signal == "dq" and (unknown := checks.describe_unmeasured(name, signal, values)):
            unmeasured = (unknown,)
            continue
        signals[signal] = values
        if angles:
            signals[signal] = convert_to_si(signals[signal], signal, request)
    columns: list[Columns] = [
        ([spot], time[:, None], False) for spot, time in zip(places.times, stamps, strict=True)
    ]
    columns += [(places.signals[signal], values, True) for signal, values in signals.items()]
    for signal in ORIENTATIONS:
        if signal in signals:
            _mark_invalid_orientations(
                request, places.signals[signal], signals[signal], merger.there, signal
            )
    kept, cut = _find_good_samples(request, columns, merger.there, stamps[:1])
    if len(kept) < samples:
        stamps = [values[kept] for values in stamps]
        columns.clear()
        for signal in [*signals]:
            signals[signal] = signals[signal][kept]
    signals = convert_orientations(signals, request.floating.quaternion)
    notes = (*places.notes, *unmeasured, *merger.notes(), *cut)
    turning = find_every_turn(signals, request)
    for signal, turns in turning.items() if len(kept) else ():
        if signals[signal].shape[1] < len(turns.joints):
            turns.leave_out(places.absent)
        signals[signal] = turns.undo(signals[signal])
        notes += turns.describe()
    turned = turning["q"].turned
    for spot, other in list(zip(places.times, stamps, strict=True))[1:]:
        checks.refuse_other_clock(stamps[0], places.times[0], other, spot, kept)
    if not stamps and len(kept) == samples:
        return signals, make_even_clock(float(request.rate or 0.0), samples), notes, turned
    where, index = places.times[0] if stamps else places.signals["q"][0]
    clock = find_clock(
        stamps[0] if stamps else kept / float(request.rate or 0.0),
        signals["q"],
        name,
        lambda sample: where.place(int(kept[sample]), index),
        request.clocking,
    )
    if request.clocking.clock == "rate" and request.rate is not None:
        clock = clock.at_rate(request.rate)
    said = (*notes, *checks.check_rate(name, clock.rate, request.rate))
    return signals, clock, said, turned


def _mark_invalid_orientations(
    request: LogRequest, origin: Sequence[Spot], values: Array, there: Booleans, signal: str
) -> None:
    """Make orientations that are not rotations no numbers, so that they are cut; or refuse them."""
    form = ORIENTATIONS[signal]
    bad = form.find_invalid(values) & there
    if not bad.any():
        return
    if request.clocking.bad_rows == "refuse":
        sample = int(np.flatnonzero(bad)[0])
        more = int(np.sum(bad)) - 1
        others = f", nor are those of {format_count(more, 'more row')}" if more else ""
        table, index = origin[0]
        raise InputError(
            f"{table.place(sample, index)}: {form.describe(values[sample])} and is not a "
            f"rotation{others}; check columns.{signal}; where poses are missing set "
            "bad_rows = 'cut'"
        )
    values[bad] = np.nan


def _read_stamps(spot: Spot, request: LogRequest) -> Array:
    """Time stamps [s]."""
    return spot[0].take([spot[1]])[:, 0] * _find_unit(spot[0].called, request, "time", TIMES)


def _find_unit(called: str, request: LogRequest, key: str, known: Mapping[str, float]) -> float:
    """What is known of the unit of a log's time or temperatures; of the first if none is given."""
    unit = request.units.get(key, next(iter(known)))
    if not isinstance(unit, str) or unit not in known:
        raise InputError(f"{called}: units.{key} = {unit!r}; known are {', '.join(known)}")
    return known[unit]


def _find_good_samples(
    request: LogRequest,
    columns: Sequence[Columns],
    there: Booleans,
    stamps: Sequence[Array],
) -> tuple[Integers, tuple[str, ...]]:
    """The samples that are good, and a note on those that are not."""
    (table, _), samples = columns[0][0][0], len(there)
    bad = _find_bad_rows(request, columns, there)
    good = ~bad & there
    kept = np.flatnonzero(good)
    if request.clocking.bad_rows == "refuse":
        return kept, ()
    late = np.zeros(samples, dtype=bool)
    for time in stamps:
        late[kept[~find_ordered_samples(time[kept])]] = True
    note = checks.describe_cut_rows(
        request.name, table, np.flatnonzero(bad), np.flatnonzero(late), samples
    )
    return np.flatnonzero(good & ~late), note


def _find_bad_rows(
    request: LogRequest, columns: Sequence[Columns], there: Booleans | None = None
) -> Booleans:
    """Rows with values that no sensor gave, of those that are there; or their refusal."""
    bad = np.zeros(len(columns[0][1]), dtype=bool)
    for origin, values, leaps in columns:
        found = checks.find_bad_values(values, leaps=leaps)
        if not found.any():
            continue
        if there is not None:
            found &= there[:, None]
        if request.clocking.bad_rows == "refuse":
            checks.refuse_bad_values(values, found, origin)
        bad |= found.any(axis=1)
    return bad


class _Merger:
    """Columns of tables with other clocks on the clock of one of them.

    Between two samples of a table that has a clock of its own its signals are interpolated
    linearly. Before its first and behind its last sample, and where it pauses for more than
    `GAP` periods, nothing is known of them: such samples are not `there`.
    """

    def __init__(self, base: Table, time: Array | None, request: LogRequest) -> None:
        self.base, self.time, self.request = base, time, request
        self.there = np.ones(base.samples, dtype=bool)
        self.others: dict[int, tuple[Table, float]] = {}

    def take(self, spots: Sequence[Spot], turn: float | None = None) -> Array:
        """Copies of columns, side by side, with as many rows as the base has.

        Values that a `turn` apart mean the same are interpolated the short way.
        """
        if all(table is spots[0][0] for table, _ in spots) and spots[0][0].topic is None:
            return spots[0][0].take([index for _, index in spots])
        values = np.empty((self.base.samples, len(spots)))
        tables = {id(table): table for table, _ in spots}
        for table in tables.values():
            own = [k for k, spot in enumerate(spots) if spot[0] is table]
            taken = table.take([spots[k][1] for k in own])
            if table is not self.base and table.topic is not None:
                taken = self._moved(table, taken, [spots[k] for k in own], turn)
            values[:, own] = taken
        return values

    def _moved(
        self, table: Table, values: Array, spots: Sequence[Spot], turn: float | None
    ) -> Array:
        """Signals of another clock at the base's instants."""
        assert self.time is not None
        clock = (table, table.titles.index("time"))
        time = _read_stamps(clock, self.request)
        columns = (([clock], time[:, None], False), (spots, values, True))
        kept = np.flatnonzero(~_find_bad_rows(self.request, columns))
        kept = kept[find_ordered_samples(time[kept])]
        dropped = len(time) - len(kept)
        if dropped and self.request.clocking.bad_rows == "refuse":
            late = int(np.flatnonzero(~np.isin(np.arange(len(time)), kept))[0])
            raise InputError(
                f"{table.place(late, clock[1])}: time {time[late]!r} repeats or goes back; "
                "set bad_rows = 'cut'"
            )
        if len(kept) < 2:
            raise InputError(
                f"{table.called}: a time column needs two time stamps, found {len(kept)}"
            )
        time, values = time[kept], values[kept]
        if turn is not None:
            values = np.unwrap(values, axis=0, period=turn)
        period = float(np.median(np.diff(time)))
        after = np.searchsorted(time, self.time, side="left")
        hit = time[np.minimum(after, len(time) - 1)] == self.time
        inside = (after > 0) & (after < len(time))
        step = time[np.clip(after, 1, len(time) - 1)] - time[np.clip(after, 1, len(time) - 1) - 1]
        self.there &= hit | (inside & (step <= GAP * period))
        self.others[id(table)] = (table, 1.0 / period)
        if not self.there.any():
            raise InputError(f"{table.called}: has no sample at the times of {self.base.called}")
        return np.column_stack([np.interp(self.time, time, column) for column in values.T])

    def notes(self) -> list[str]:
        """What was interpolated, and how many samples are lost by it."""
        if not self.others:
            return []
        lost = int(np.sum(~self.there))
        said = ", ".join(f"{table.topic} ({rate:.4g} Hz)" for table, rate in self.others.values())
        left = f"; {format_count(lost, 'sample')} before, behind or in its gaps left out"
        left = left if lost else ""
        return [
            f"{self.request.name}: {said} put on the clock of {self.base.topic} by linear "
            f"interpolation{left}"
        ]


# units and sides


def convert_to_si(values: Array, signal: str, request: LogRequest) -> Array:
    """A signal in SI units on the joints' side; `values` are the caller's to give away."""
    if signal == "time":
        return values * _find_unit(request.name, request, "time", TIMES)
    if signal == "temp":
        values -= _find_unit(request.name, request, "temp", TEMPERATURES)
        return values
    if signal.endswith("_rpy"):
        return values * (TURN / _find_turn(request))
    if signal == "known" or signal in BASE or signal.startswith(("wrench_", "contact_")):
        return values  # in SI units, and of no drive
    gauges = () if request.robot is None else request.robot.gauges
    for gauge in gauges:
        if signal == gauge.signal:  # encoders of links are in the unit of q, and of no drive
            turned = _find_unit_factors("q", request)[gauge.place] if "offs" in gauge.terms else 1.0
            return values * turned
    values *= _find_unit_factors(signal, request)
    return _convert_to_joint_side(values, signal, request)


def _find_turn(request: LogRequest) -> float:
    """A turn in the unit of a base's roll, pitch and yaw."""
    return TURN / _find_unit(request.name, request, "base_rpy", ANGLES)


def _find_unit_factors(signal: str, request: LogRequest) -> Array:
    """What each joint's column is multiplied by to be in SI units or, of current, torque."""
    name, robot, n = request.name, request.robot, len(request.joints)
    if signal == "current":
        assert robot is not None
        return robot.drives.gain
    key = signal
    while key not in request.units and key in UNIT_OF:
        key = UNIT_OF[key]
    factors = np.ones(n)
    if key not in request.units:
        return factors
    stated = request.units[key]
    units = [stated] * n if isinstance(stated, str) else list(stated)
    if len(units) != n:
        raise InputError(f"{name}: units.{key} has {len(units)} units for {n} joints")
    checks.refuse_unknown_words(name, f"units.{key}", units, (*ANGLES, *LENGTHS))
    scales = {**ANGLES, **LENGTHS}
    if robot is None:
        return np.array([scales[unit] for unit in units])
    matching = 0
    for index, (unit, joint) in enumerate(zip(units, robot.joints, strict=True)):
        if request.motors["q"][index] or (unit in ANGLES) == (joint.kind == "revolute"):
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


def find_every_turn(
    names: Collection[str], request: LogRequest, *, si: bool = False
) -> dict[str, LostTurns]:
    """What jumps by a turn in those of some signals that are angles of joints, positions first.

    In their units or in SI. Others begin on the turn of the positions.
    """
    gauges = () if request.robot is None else request.robot.gauges
    links = [gauge.signal for gauge in gauges if "offs" in gauge.terms]
    found: dict[str, LostTurns] = {}
    for signal in ("q", "qref", *links):
        if signal in names:
            found[signal] = find_turns(signal, request, found.get("q"), si=si)
    return found


def find_turns(
    signal: str, request: LogRequest, beside: LostTurns | None, *, si: bool
) -> LostTurns:
    """What jumps by a turn in angles of joints; motors may move as far."""
    turn, robot, name = np.full(len(request.joints), np.inf), request.robot, request.name
    gauges = () if robot is None else robot.gauges
    places = [gauge.place for gauge in gauges if gauge.signal == signal]
    if robot is not None:
        angles = np.array([joint.kind == "revolute" for joint in robot.joints])
        angles &= ~request.motors["q"] | bool(places)
        unit = _find_unit_factors("q" if places else signal, request)
        turn[angles] = TURN if si else TURN / unit[angles]
    own = places or range(len(turn))
    return LostTurns(turn[[*own]], f"{name}: {signal}", [request.joints[j] for j in own], beside)


def _convert_to_joint_side(values: Array, signal: str, request: LogRequest) -> Array:
    torque = signal in ("tau", "current")
    motors = request.motors["tau" if torque else "q"]
    if not motors.any():
        return values
    assert request.robot is not None
    drives = request.robot.drives
    if signal in ("q", "qref"):
        found = drives.position_to_joint(values)
    elif torque:
        found = drives.torque_to_joint(values)
    else:
        found = drives.rate_to_joint(values)
    if not motors.all():
        found = np.where(motors, found, values)
    return np.ascontiguousarray(found)


# several pieces


def _join_pieces(name: str, pieces: Sequence[TablePiece]) -> TablePiece:
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
    starts: list[float] = []
    signals, end = {}, -np.inf
    for offset, piece in zip(np.cumsum([0, *counts[:-1]]).tolist(), pieces, strict=True):
        segments += [(start + offset, stop + offset) for start, stop in piece.segments]
        late = max(end - piece.starts[0], 0.0)  # files that count anew go on
        starts += [late + own for own in piece.starts]
        end = starts[-1] + (segments[-1][1] - segments[-1][0]) / piece.rate
    for signal in dict.fromkeys([*("q", "tau", *OPTIONAL), *pieces[0].signals]):
        parts = [piece.signals.pop(signal) for piece in pieces if signal in piece.signals]
        if signal == "tau" and 0 < len(parts) < len(pieces):
            raise InputError(f"{name}: some files have torques and some have none")
        if len(parts) == len(pieces):
            signals[signal] = join_signals(parts)
        elif parts:
            warnings.append(f"{name}: {signal} is in {len(parts)} of {len(pieces)} files; not used")
    rate = float(np.average(rates, weights=counts))
    sampled = _join_sampled(signals, pieces, counts)
    said, turned = dict.fromkeys(warnings), frozenset[str]().union(*(p.turned for p in pieces))
    return TablePiece(
        rate, signals, tuple(segments), tuple(starts), tuple(said), sampled, turned
    )  # fmt: skip


def _join_sampled(
    signals: Mapping[str, Array], pieces: Sequence[TablePiece], counts: Sequence[int]
) -> OriginalSamples | None:
    """What was measured of all pieces; None where that is all that they have."""
    if "tau" not in signals or all(piece.sampled is None for piece in pieces):
        return None
    ends = np.cumsum([0, *counts])
    parts = [
        OriginalSamples(np.arange(b - a), signals["q"][a:b], signals["tau"][a:b])
        if piece.sampled is None
        else piece.sampled
        for piece, a, b in zip(pieces, ends, ends[1:], strict=False)
    ]
    at = [part.at + a for part, a in zip(parts, ends, strict=False)]
    signs = [np.vstack([getattr(part, name) for part in parts]) for name in ("q", "tau")]
    return OriginalSamples(np.concatenate(at), *signs)
