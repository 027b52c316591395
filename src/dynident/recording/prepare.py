"""From a recording to samples that a regressor can use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, Unpack, cast

import numpy as np
from pydantic import AfterValidator, Field

from dynident.core.arrays import Array, Booleans, freeze_array
from dynident.core.errors import InputError, check_type
from dynident.core.options import (
    NotNegatives,
    Of,
    Options,
    Positives,
    broadcast_to_joints,
    build_all_options,
    refuse_extreme,
)
from dynident.core.schema import Number
from dynident.filters.blocks import (
    LONG,
    LongSignal,
    SignalCourse,
    count_memory,
    cut_into_blocks,
    cut_signal,
    find_run_extremes,
)
from dynident.filters.clock import SHORTEST
from dynident.filters.filters import (
    DecimationFilter,
    count_filter_edge,
    differentiate_twice,
    filter_by_cutoff,
)
from dynident.filters.outliers import filter_by_median, replace_outliers
from dynident.recording.floating import BaseMotion, filter_base_motion
from dynident.recording.keywords import PrepareOptions
from dynident.recording.periods import FINER, Averaging, PeriodError, average_periods
from dynident.recording.recording import OriginalSamples, Recording, Torque
from dynident.robot.drives import find_moving_joints
from dynident.robot.model import LAW, Equations

BANDWIDTH = 10.0
"""Assumed joint bandwidth where none is given: "usually less than 10 Hz" [Hz]."""
POSITION_FACTOR = 5.0
TORQUE_FACTOR = 2.0

STRETCH = 1 << 20
"""Samples, about, that are looked at together for what signals show: 17 minutes at 1 kHz."""
MOST = 10**9
"""No count is larger: more samples than a log has."""


def check_odd_window(value: int) -> int:
    """Refuse windows without a middle, and of one sample."""
    if value < 3 or value % 2 == 0:
        raise ValueError(f"has to be odd and at least 3, got {value}")
    return value


Whole = Annotated[int, Field(strict=True, ge=1, le=MOST)]
Count = Annotated[int, Field(strict=True, ge=0, le=MOST)]
Seconds = Annotated[Number, Field(gt=0.0), AfterValidator(refuse_extreme)]
Period = Seconds | Literal["found", "none"]
Odd = Annotated[Whole, AfterValidator(check_odd_window)]


@dataclass(frozen=True)
class Preparation(Options):
    """How a recording becomes samples."""

    bandwidth: Annotated[
        Positives | None,
        "of the joints' position control, or of the rigid motion; by default 10, or a "
        "twentieth of the rate where that is less, with a warning [Hz]",
    ] = None
    position_hz: Annotated[
        Positives | None,
        "cutoff of the zero-phase Butterworth filter of the positions; 5 bandwidths by "
        "default (ardiani2024, II-C) [Hz]",
    ] = None
    torque_hz: Annotated[
        Positives | None,
        "cutoff of the parallel decimation filter; 2 bandwidths by default [Hz]",
    ] = None
    decimation: Annotated[
        Whole | None,
        "keep one sample in so many; omega_nyquist / omega_torque by default (brunot2019, 3.1)",
    ] = None
    drop_below: Annotated[
        NotNegatives,
        "rows are not fitted whose joint, or whose coupled drive, is slower [rad/s or m/s]",
    ] = 0.0
    median: Annotated[
        Odd | None, "odd window of a median filter that precedes, against outliers of the position"
    ] = None
    torque_median: Annotated[
        Odd | None, "odd window of medians by which outliers of the torque are found and left out"
    ] = None
    derivatives: Annotated[
        Literal["differences", "measured"],
        "of the position; or take the log's own dq and, where it has it, ddq",
    ] = "differences"
    period: Annotated[
        Period,
        "of a motion that repeats, over whose periods motion and torque are averaged (Swevers "
        "1997) [s]; `found` looks for it in the log",
    ] = "none"
    warmup: Annotated[
        Count, "periods left out at the start of a log that is averaged", Of("period")
    ] = 0
    rests: Annotated[
        Seconds | None,
        "instead of the motion the poses that were held, by side of approach; shortest rest [s]",
    ] = None


@dataclass(frozen=True)
class Samples:
    """Filtered motion and raw torque at full rate, before decimation.

    Writable signals are copied, so later changes to them have no effect.

    >>> samples.q.shape == samples.ddq.shape == (1600, 2)
    True

    Attributes
    ----------
    name : str
    rate : float
        [Hz]
    q, dq, ddq : ndarray, shape (samples, n)
        Positions after the zero-phase filter and their derivatives.
    tau : ndarray, shape (samples, n)
        Torques as measured.
    measured : ndarray, shape (samples, n)
        Positions as measured.
    segments : tuple of (start, stop)
        Runs that are fitted: without gaps and filter edges.
    runs : tuple of (start, stop)
        Runs without gaps, including filter edges.
    filters : tuple of DecimationFilter
        Per joint, of its torque and regressor columns.
    bandwidth, position_hz : tuple of float
        Per joint [Hz].
    drop_below : tuple of float
        Speeds below which a row is not fitted, per joint [rad/s or m/s]; zeros keep all.
    moving : ndarray of bool, shape (samples, n)
        Whether all drives with friction on a joint are that fast: other rows are not fitted.
    decimation, median : int or None
    derivatives : str
        As they were asked for.
    qref, dqref : ndarray, shape (samples, n), or None
        References, where the log has them.
    repairs : tuple of str
        Repairs of the recording, as in a study.
    warnings : tuple of str
    joints : tuple of str, or None
        Names of the joints whose columns these are, where they are known.
    averaging : Averaging or None
        For a periodic log: the signals are then the mean period, resampled to a whole number of
        samples, and repeated before and after as far as the filters need.
    temp : ndarray, shape (samples, n), or None
        Temperatures of the drives, as measured [deg C].
    known : ndarray, shape (samples, n), or None
        Known torques on the joints, as measured [Nm or N].
    torque : {"measured", "none", "law", "commanded"}
        Whence `tau` is.
    base : BaseMotion or None
        Of a floating robot.
    wrenches : mapping of str to ndarray, shape (samples, 3 or 6)
        Of contacts by name, as logged [N, Nm].
    touching : mapping of str to ndarray of bool, shape (samples,)
        Which contacts bear, where that is known.
    equations : {"full", "joints", "base", "null-space"}, or None
        Of motion, that the log is to state.
    contact_speed : float
        A contact that is slower touches, where nothing else says so [m/s].
    locked : mapping of str to float
        Joints that were held at a value [rad or m].
    asked : BaseMotion or None
        Reference motion of a floating base.
    kept : ndarray of bool, shape (samples,), or None
        Samples at which rows may be centred, where these are not all (`only`).
    torque_median, rests : int or float, or None
        As they were asked for; a `Problem` averages over rests.
    left_out : ndarray of bool, shape (samples, n), or None
        Outliers of the torque, dropped before rows are filtered; `tau` has medians there.
    size : int or None
        Of the files that it was read from [bytes].
    unsigned : ndarray, shape (samples, n), or None
        Sizes of currents, of a log without torque [as logged].
    sampled : OriginalSamples or None
        Original samples, if `measured` and `tau` were interpolated to the clock.
    of_motors : bool
        Whether signals were taken on the motors' side of the gears.
    """

    name: str
    rate: float
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    measured: Array
    segments: tuple[tuple[int, int], ...]
    runs: tuple[tuple[int, int], ...]
    filters: tuple[DecimationFilter, ...]
    bandwidth: tuple[float, ...]
    position_hz: tuple[float, ...]
    drop_below: tuple[float, ...]
    moving: Booleans
    decimation: int | None = None
    median: int | None = None
    derivatives: Literal["differences", "measured"] = "differences"
    qref: Array | None = None
    dqref: Array | None = None
    repairs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    joints: tuple[str, ...] | None = None
    averaging: Averaging | None = None
    temp: Array | None = None
    known: Array | None = None
    torque: Torque = "measured"
    base: BaseMotion | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    touching: Mapping[str, Booleans] = field(default_factory=dict)
    equations: Equations | None = None
    contact_speed: float = 0.02
    tared: bool = False
    locked: Mapping[str, float] = field(default_factory=dict)
    asked: BaseMotion | None = None
    kept: Booleans | None = None
    torque_median: int | None = None
    left_out: Booleans | None = None
    rests: float | None = None
    size: int | None = None
    sampled: OriginalSamples | None = None
    unsigned: Array | None = None
    of_motors: bool = False

    def __repr__(self) -> str:
        """One line, for a prompt."""
        widths = ", ".join(f"{hz:g}" for hz in dict.fromkeys(self.bandwidth))
        return (
            f"<{type(self).__name__} {self.name}: {self.measured.shape[1]} joints, "
            f"{len(self.q)} samples at {self.rate:g} Hz, bandwidth {widths} Hz>"
        )

    def __post_init__(self) -> None:
        for label in ("q", "dq", "ddq", "tau", "measured", "qref", "dqref", "temp", "known",
                      "unsigned"):  # fmt: skip
            signal = getattr(self, label)
            if signal is not None and not isinstance(signal, LongSignal):
                object.__setattr__(self, label, freeze_array(signal))
        if self.moving.flags.writeable:
            object.__setattr__(self, "moving", self.moving.copy())
            self.moving.setflags(write=False)

    @property
    def whole_period(self) -> bool:
        """Whether its rows are those of a whole mean period, each once, of periods alike."""
        if self.averaging is None or not self.averaging.settled:
            return False
        return self.segments in (self.runs, (self.averaging.inner,))

    def within(self, segments: tuple[tuple[int, int], ...]) -> Self:
        """The same log of which only some stretches, each of one of its segments, are rows."""
        return replace(self, segments=segments)

    def only(self, ranges: Sequence[tuple[int, int]]) -> Self:
        """The same log of which only rows centred in some ranges of samples are fitted.

        Filters see all of it, as before.

        Parameters
        ----------
        ranges : sequence of (start, stop)
            First sample, and the one after the last.

        Raises
        ------
        InputError
            When a range is empty or not of the log, or the log was averaged over periods.
        """
        if self.averaging is not None:
            raise InputError(f"{self.name}: is a mean of periods; keep does not go with period")
        inside = np.zeros(len(self.q), dtype=bool)
        for start, stop in ranges:
            if not 0 <= start < stop <= len(self.q):
                raise InputError(
                    f"{self.name}: samples {start}-{stop} are not of the log's {len(self.q)}"
                )
            inside[start:stop] = True
        kept = inside if self.kept is None else self.kept & inside
        return replace(self, moving=self.moving & inside[:, None], kept=kept)

    def cut(self, start: int, stop: int) -> Self | None:
        """Some samples of it, at hand, filtered as in the whole log; None where none is fitted.

        Of logs of fixed robots, neither averaged nor of poses that were held.
        """
        some, changed = slice(start, stop), dict[str, Any]()
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, np.ndarray | LongSignal) and len(value) == len(self.q):
                changed[name] = cut_signal(cast(Array, value), some)
        for name in ("measured", "tau"):  # which are looked at column by column, more than once
            changed[name] = freeze_array(changed[name])
        for name in ("runs", "segments"):
            inside = ((max(a, start) - start, min(b, stop) - start) for a, b in getattr(self, name))
            changed[name] = tuple((a, b) for a, b in inside if b - a >= SHORTEST)
        changed["sampled"] = None if self.sampled is None else self.sampled.rows(start, stop)
        return replace(self, **changed) if changed["segments"] else None

    def stretches(self) -> Iterator[tuple[int, Self]]:
        """A long log a stretch at a time, for what has to see all of it at once; where each begins.

        That then takes no more memory the longer a log is. Others are one stretch.
        """
        whole = self.base is not None or self.averaging is not None or self.rests is not None
        count = 1 if whole or self.wrenches else max(1, round(len(self.q) / STRETCH))
        if count == 1:
            yield 0, self
            return
        edges = [len(self.q) * k // count for k in range(count + 1)]
        for start, stop in pairwise(edges):
            found = self.cut(start, stop)
            if found is not None:
                yield start, found

    @property
    def peaks(self) -> Array:
        """The largest torque of each equation within its runs, shape (equations,) [Nm or N]."""
        low, high = find_run_extremes(self.tau, self.runs)
        return np.asarray(np.maximum(-low, high).max(axis=0))

    def filter_of(self, group: int) -> DecimationFilter:
        """The torque filter of a group of rows; combinations of equations have the first one."""
        return self.filters[group if group < len(self.filters) else 0]

    def undecimated(self) -> Self:
        """As with a row at every sample."""
        every = DecimationFilter.design(self.rate, self.rate)
        return replace(self, filters=(every,) * len(self.filters))

    def of_joints(self, names: Sequence[str]) -> Self:
        """The columns of these joints, in this order; as they are where no names are known."""
        if self.joints is None or self.joints == tuple(names):
            return self
        for name in names:
            if name not in self.joints:
                raise InputError(
                    f"{self.name}: no column of joint {name!r}; there are "
                    f"{', '.join(map(repr, self.joints))}"
                )
        places = [self.joints.index(name) for name in names]
        signals = (
            "q", "dq", "ddq", "tau", "measured", "moving", "qref", "dqref", "temp", "known",
            "left_out", "unsigned",
        )  # fmt: skip
        lists = ("filters", "bandwidth", "position_hz", "drop_below")
        found = {key: getattr(self, key) for key in signals}
        changed: dict[str, Any] = {k: v if v is None else v[:, places] for k, v in found.items()}
        changed |= {key: tuple(getattr(self, key)[k] for k in places) for key in lists}
        if self.averaging is not None:
            changed["averaging"] = self.averaging.of_joints(places)
        if self.sampled is not None:
            own = self.sampled
            changed["sampled"] = OriginalSamples(own.at, own.q[:, places], own.tau[:, places])
        return replace(self, **changed, joints=tuple(names))

    def along(self, q: Array, dq: Array, ddq: Array) -> Self:
        """The same log on another motion: rows are filtered and dropped alike."""
        averaging = None if self.averaging is None else self.averaging.along(q, dq, ddq)
        return replace(self, q=q, dq=dq, ddq=ddq, averaging=averaging)

    def driven(self, tau: Array) -> Self:
        """The same log with other torques."""
        return replace(self, tau=tau, sampled=None)

    @property
    def joint_torque(self) -> Array:
        """Torques of the joints as measured, shape (samples, n) [Nm or N]."""
        return self.tau

    @property
    def rough(self) -> bool:
        """Whether the positions of some joint pass no filter: its cutoff is above all they hold."""
        return max(self.position_hz) >= 0.5 * self.rate

    @property
    def preparation(self) -> Preparation:
        """What made them, in numbers, for another recording: all but what is this motion's own.

        A period is: preparing another recording by them averages nothing.
        """
        return Preparation(
            self.bandwidth,
            self.position_hz,
            tuple(f.cutoff for f in self.filters[-len(self.bandwidth) :]),
            self.decimation,
            self.drop_below,
            self.median,
            self.torque_median,
            self.derivatives,
            rests=self.rests,
        )

    def settings(self) -> dict[str, object]:
        """What shaped these samples, for a result to report."""
        return {
            "log": self.name,
            "rate_hz": self.rate,
            "samples": sum(stop - start for start, stop in self.runs),
            "segments": len(self.runs),
            "bandwidth_hz": list(self.bandwidth),
            "position_hz": list(self.position_hz),
            "torque_hz": [f.cutoff for f in self.filters],
            "decimation": [f.step for f in self.filters],
            "drop_below": list(self.drop_below),
            "median": self.median,
            "torque_median": self.torque_median,
            "torque_outliers": []
            if self.left_out is None or self.torque != "measured"
            else self.left_out.sum(0).tolist(),
            "derivatives": self.derivatives,
            "repaired": list(self.repairs),
            "rests": self.rests,
            "torque": self.torque,
            "averaging": None if self.averaging is None else self.averaging.settings(),
        }


def prepare(
    recording: Recording,
    bandwidth: float | Sequence[float] | Array | None = None,
    **options: Unpack[PrepareOptions],
) -> Samples:
    """Filter and differentiate a recording.

    >>> samples = di.prepare(log, bandwidth=5.0)

    Parameters
    ----------
    recording : Recording
    bandwidth : float or sequence of float, optional
        Of the joints [Hz]; by default 10, at most a twentieth of the rate, with a warning.
    **options
        Those of `Preparation`: position_hz, torque_hz, decimation, drop_below, median,
        torque_median, derivatives, period, warmup, rests.

    Raises
    ------
    InputError
        If an option is out of range, the log is too short for its filters, or it is to be
        averaged but does not repeat.
    """
    given = {"bandwidth": bandwidth, **options}
    return prepare_by_options(recording, *build_all_options("prepare", [Preparation], given))


def prepare_by_options(recording: Recording, wanted: Preparation) -> Samples:
    """The same, by options that stand together."""
    check_type("prepare", recording, Recording, "dynident.read_log(files, robot) makes one")
    cutoffs, assumed = choose_cutoffs(recording, wanted)
    runs, dropped = find_long_runs(recording, wanted)
    recording, left_out, odd = replace_torque_outliers(recording, wanted, runs)
    notes = [*recording.warnings, *assumed, *dropped, *odd]
    if wanted.period != "none":
        return _prepare_mean_period(recording, wanted, runs, cutoffs, notes)
    q, dq, ddq = filter_motion(recording, wanted, runs, cutoffs.position)
    moving = np.broadcast_to(True, q.shape)
    if any(cutoffs.slow):
        moving = np.zeros(q.shape, dtype=bool)
        for own, _, _ in cut_into_blocks(runs, 0):
            moving[own] = find_moving_joints(dq[own], cutoffs.slow, recording.drives)
        moving.setflags(write=False)
    base = asked = None
    if recording.base is not None:
        measured = wanted.derivatives == "measured"
        around = (runs, len(moving), recording.rate, max(cutoffs.position))
        base = filter_base_motion(recording.base, *around, measured, recording.name)
        told = (recording.base.asked_position, recording.base.asked_orientation)
        if recording.base.asked is not None:
            asked = filter_base_motion(recording.base.asked, *around, False, recording.name)
        elif any(each is not None for each in told):
            notes.append(
                f"{recording.name}: what was asked of the base takes its position and its "
                "orientation, baseref_px ... baseref_qw; what the log has of them is not used"
            )
    filters = tuple(
        DecimationFilter.design(hz, recording.rate, wanted.decimation) for hz in cutoffs.torque
    )
    segments, short = trim_filter_edges(recording, runs, cutoffs, filters)
    return Samples(
        q=q,
        dq=dq,
        ddq=ddq,
        measured=recording.q,
        segments=segments,
        runs=runs,
        filters=filters,
        moving=moving,
        warnings=(*notes, *short),
        base=base,
        asked=asked,
        left_out=left_out,
        **_list_settings(recording, wanted, cutoffs),
        **{label: getattr(recording, label) for label in AS_LOGGED},
    )


AS_LOGGED = (
    "rate", "tau", "qref", "dqref", "temp", "known", "torque", "wrenches", "touching", "equations",
    "contact_speed", "tared", "locked", "sampled", "unsigned",
)  # fmt: skip
"""What samples have as their recording has it, where nothing is averaged."""


def _list_settings(recording: Recording, wanted: Preparation, cutoffs: Cutoffs) -> dict[str, Any]:
    """What samples tell of their recording and of how they were prepared."""
    return {
        "name": recording.name,
        "repairs": recording.repairs,
        "of_motors": recording.of_motors,
        "joints": recording.joints,
        "size": recording.size,
        "bandwidth": cutoffs.bandwidth,
        "position_hz": cutoffs.position,
        "drop_below": cutoffs.slow,
        "decimation": wanted.decimation,
        "median": wanted.median,
        "torque_median": wanted.torque_median,
        "rests": wanted.rests,
        "derivatives": wanted.derivatives,
    }


@dataclass(frozen=True)
class Cutoffs:
    """What a preparation leaves open, per joint [Hz]; `slow` are speeds [rad/s or m/s]."""

    bandwidth: tuple[float, ...]
    position: tuple[float, ...]
    torque: tuple[float, ...]
    slow: tuple[float, ...]


def describe_assumed_bandwidth(name: str, hz: float) -> str:
    """What is said where a log's preparation states no bandwidth."""
    return f"{name}: no joint bandwidth was given; {hz:g} Hz is assumed (set bandwidth)"


def choose_cutoffs(recording: Recording, wanted: Preparation) -> tuple[Cutoffs, list[str]]:
    """Cutoffs of a recording, and what is to be said of them."""
    name, n, rate = recording.name, recording.q.shape[1], recording.rate
    nyquist = 0.5 * rate
    bandwidth, notes = wanted.bandwidth, []
    if bandwidth is None:
        bandwidth = min(BANDWIDTH, nyquist / (2.0 * POSITION_FACTOR))
        notes.append(describe_assumed_bandwidth(name, bandwidth))

    def each(key: str, values: float | tuple[float, ...]) -> tuple[float, ...]:
        return broadcast_to_joints(values, n, f"{name}: {key}")

    band = each("bandwidth", bandwidth)
    if max(band) >= nyquist:
        raise InputError(
            f"{name}: a bandwidth of {max(band):g} Hz is at or above the Nyquist frequency of "
            f"{nyquist:g} Hz; it is that of the joints' control, some Hz. Or is the log's time in "
            f"ms, or in minutes, and its rate not {rate:g} Hz?"
        )
    found = Cutoffs(
        band,
        each("position_hz", wanted.position_hz or tuple(POSITION_FACTOR * b for b in band)),
        each("torque_hz", wanted.torque_hz or tuple(TORQUE_FACTOR * b for b in band)),
        each("drop_below", wanted.drop_below),
    )
    longest = max(stop - start for start, stop in recording.segments)
    for kind, values in (("torque", found.torque), ("position", found.position)):
        if min(values) * longest < rate:
            raise InputError(
                f"{name}: {longest} samples at {rate:g} Hz are too short for a {kind} filter "
                f"at {min(values):g} Hz; raise bandwidth or {kind}_hz, or check the unit of time"
            )
    if max(found.position) >= nyquist:
        notes.append(
            f"{name}: the position cutoff of {max(found.position):g} Hz is at or above the "
            f"Nyquist frequency of {nyquist:g} Hz, so positions are not filtered there"
        )
    return found, notes


def find_long_runs(
    recording: Recording, wanted: Preparation
) -> tuple[tuple[tuple[int, int], ...], list[str]]:
    """Runs without gaps that are long enough to be filtered, and what is to be said of others."""
    name = recording.name
    lengths = [stop - start for start, stop in recording.segments]
    runs = tuple(
        run for run, length in zip(recording.segments, lengths, strict=True) if length >= SHORTEST
    )
    if not runs:
        raise InputError(f"{name}: has {max(lengths)} samples in a run; {SHORTEST} are needed")
    for key in ("median", "torque_median"):
        if (getattr(wanted, key) or 0) > min(stop - start for start, stop in runs):
            raise InputError(f"{name}: {key} = {getattr(wanted, key)} is longer than the log")
    if wanted.derivatives == "measured" and recording.dq is None:
        raise InputError(f"{name}: derivatives = 'measured', but the log has no dq")
    lost = sum(length for length in lengths if length < SHORTEST)
    dropped = f"{name}: runs of fewer than {SHORTEST} samples dropped, {lost} together"
    return runs, [dropped] if lost else []


def replace_torque_outliers(
    recording: Recording, wanted: Preparation, runs: tuple[tuple[int, int], ...]
) -> tuple[Recording, Booleans | None, list[str]]:
    """A recording with medians in the place of outliers of its torque, which, and what to say."""
    if wanted.torque_median is None or recording.torque != "measured":
        return recording, None, []
    tau, found = replace_outliers(recording.tau, runs, wanted.torque_median)
    if not found.any():
        return recording, None, []
    joints = recording.joints or [f"joint {k + 1}" for k in range(found.shape[1])]
    counts = zip(joints, np.sum(found, axis=0).tolist(), strict=True)
    told = ", ".join(f"{count} of {joint}" for joint, count in counts if count)
    note = f"{recording.name}: torque outliers, which do not count: {told}"
    return replace(recording, tau=tau, sampled=None), found, [note]


def filter_motion(
    recording: Recording,
    wanted: Preparation,
    runs: tuple[tuple[int, int], ...],
    cutoffs: tuple[float, ...],
) -> tuple[Array, ...]:
    """Filtered q, and dq and ddq, run by run; those of a long log as they are read."""
    compute = partial(filter_stretch, recording, wanted, cutoffs)
    if len(recording.q) > LONG:
        memory = max(count_memory(hz, recording.rate) for hz in cutoffs) + (wanted.median or 0) + 4
        samples, columns = recording.q.shape
        course = SignalCourse(samples, columns, runs, memory, compute)
        part = range(len(recording.q))
        return tuple(cast(Array, LongSignal(course, k, part)) for k in range(3))
    motion = tuple(np.empty_like(recording.q) for _ in range(3))
    for run in runs:
        for signal, own in zip(motion, compute(slice(*run)), strict=True):
            signal[slice(*run)] = own
    for signal in motion:
        signal.setflags(write=False)  # ours, and so they are not copied
    return motion


def filter_stretch(
    recording: Recording, wanted: Preparation, cutoffs: tuple[float, ...], some: slice
) -> tuple[Array, Array, Array]:
    """The same of some samples of a run; cutoffs are those of the positions [Hz]."""
    rate = recording.rate
    q = filter_by_cutoff(filter_by_median(recording.q[some], wanted.median), cutoffs, rate)
    dq, ddq = differentiate_twice(q, rate)
    if wanted.derivatives == "measured" and recording.dq is not None:
        dq = filter_by_cutoff(recording.dq[some], cutoffs, rate)
        if recording.ddq is not None:
            ddq = filter_by_cutoff(recording.ddq[some], cutoffs, rate)
        else:
            ddq = differentiate_twice(dq, rate)[0]
    return q, dq, ddq


def count_felt_samples(position_hz: Iterable[float], rate: float) -> int:
    """Samples at each end of a run in which filters and differences feel the end."""
    return max(2, *(count_filter_edge(hz, rate) for hz in position_hz))


def trim_filter_edges(
    recording: Recording,
    runs: tuple[tuple[int, int], ...],
    cutoffs: Cutoffs,
    filters: tuple[DecimationFilter, ...],
) -> tuple[tuple[tuple[int, int], ...], list[str]]:
    """What of each run the edges of the filters leave to be fitted, and what is to be said."""
    name, rate = recording.name, recording.rate
    margin = count_felt_samples(cutoffs.position, rate)
    longest = 2 * max(f.half for f in filters) + 1
    segments, notes = [], []
    for start, stop in runs:
        if stop - start - 2 * margin >= longest:
            segments.append((start + margin, stop - margin))
        else:
            notes.append(
                f"{name}: samples {start}-{stop} are too short for the filters and are not fitted"
            )
    if not segments:
        raise InputError(
            f"{name}: {len(recording.q)} samples at {rate:g} Hz are too short for a torque filter "
            f"at {min(cutoffs.torque):g} Hz (it needs {longest + 2 * margin}); raise bandwidth or "
            "torque_hz"
        )
    return tuple(segments), notes


def _prepare_mean_period(
    recording: Recording,
    wanted: Preparation,
    runs: tuple[tuple[int, int], ...],
    cutoffs: Cutoffs,
    notes: list[str],
) -> Samples:
    """The mean period of a recording that repeats."""
    _refuse_averaging(recording)
    beside = {"temperatures": recording.temp, "known torques": recording.known}
    told = " and ".join(name for name, signal in beside.items() if signal is not None)
    if told:  # friction that asks for them says that the log has none
        recording = replace(recording, temp=None, known=None)
        notes = [*notes, f"{recording.name}: {told} are not averaged over periods, and left out"]
    q = recording.q.copy()
    for start, stop in runs:
        q[start:stop] = filter_by_median(q[start:stop], wanted.median)
    # one step for all joints divides the period: every part of it then has as many rows
    step = min(
        DecimationFilter.design(hz, recording.rate, wanted.decimation).step for hz in cutoffs.torque
    )
    measured = wanted.derivatives == "measured"
    mean, touching, more = average_periods(
        recording, q, runs, wanted.period, wanted.warmup, cutoffs.position, step, measured
    )
    rate = mean.samples / mean.period
    if min(cutoffs.torque) * mean.period < 1.0:
        raise PeriodError(
            f"{recording.name}: a period of {mean.period:g} s is too short for a torque filter at "
            f"{min(cutoffs.torque):g} Hz",
            "raise bandwidth or torque_hz",
        )
    filters = tuple(DecimationFilter.design(hz, rate, FINER * step) for hz in cutoffs.torque)
    half = max(f.half for f in filters)
    # filters of one length see the same rows
    filters = tuple(
        DecimationFilter(f.cutoff, f.step, np.pad(f.taps, half - f.half)) for f in filters
    )
    mean = replace(mean, wrapped=half)
    means = {label: mean.mean(label) for label in ("q", "dq", "ddq", "tau", "qref", "dqref")}
    assert means["q"] is not None
    assert means["dq"] is not None
    whole = ((0, len(means["q"])),)
    return Samples(
        rate=rate,
        **means,  # type: ignore[arg-type]
        measured=means["q"],
        segments=whole,
        runs=whole,
        filters=filters,
        moving=find_moving_joints(means["dq"], cutoffs.slow, recording.drives),
        warnings=(*notes, *more),
        averaging=mean,
        touching={
            name: bears.take(np.arange(-half, mean.samples + half), mode="wrap")
            for name, bears in touching.items()
        },
        equations=recording.equations,
        contact_speed=recording.contact_speed,
        tared=recording.tared,
        **_list_settings(recording, wanted, cutoffs),
    )


def _refuse_averaging(recording: Recording) -> None:
    """Refuse the mean period of what has no torque, or more than motion and torque."""
    if recording.base is not None or recording.wrenches.keys() - {LAW} or recording.locked:
        raise InputError(
            f"{recording.name}: floating bases, measured wrenches and locked joints are not "
            "averaged over periods; leave period out"
        )
    if recording.torque != "measured":
        raise InputError(
            f"{recording.name}: has no torque to average over periods; leave period out"
        )
