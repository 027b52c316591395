"""A robot tracked along a log, a growing file or standard input, and resumed where it stopped."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from dynident.consistency.knowledge import Knowledge
from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.files import write_files
from dynident.core.kept import Kept, Origin, packed, read_kept
from dynident.core.options import chosen
from dynident.core.threads import one_thread
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.estimators.recursive import Drift, Forgetting
from dynident.estimators.tracker import Alarm, Event, Known, Tracker, Tracking
from dynident.recording.causal import CausalFilter
from dynident.recording.mend import Mending
from dynident.recording.prepare import BANDWIDTH, TORQUE_FACTOR, prepare
from dynident.recording.read import Layout, layout_of
from dynident.recording.readers.table import Table, column_label
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.regression.weighted import weighted_solution
from dynident.robot.model import Robot
from dynident.study.stored import StoredResult, relocated
from dynident.study.study import LogSection, Study, study_idim, study_recording, study_robot

SCHEMA = "dynident.track/1"
STANDARD_INPUT = "standard input"
HEAD = 32
"""Rows of a stream by whose stamps its rate is told."""
WAIT = 0.1
"""Between two looks at a file that grows [s]."""
GAP = 1.5
"""Periods between two stamps from which samples are missing."""
BLOCK = 1 << 16

Stopped = Callable[[], bool]
"""Whether the run has been asked to end."""


class Sample(NamedTuple):
    """One sample of a stream.

    Attributes
    ----------
    time : float
        [s]
    values : ndarray, shape (4 n,)
        ``[q | dq | ddq | tau]``; NaN where the stream has no derivatives.
    fresh : bool
        Whether a new run of the log begins with it.
    """

    time: float
    values: Array
    fresh: bool


class Row(NamedTuple):
    """An estimate at one time.

    Attributes
    ----------
    time : float
        Of the motion that it follows, a filter's lag before the last sample [s].
    samples : int
        Taken in so far.
    beta, std : ndarray, shape (base parameters,)
    load : (float, float), or None
        Mass of a load and its standard deviation, where one is carried [kg].
    theta : ndarray or None
        Consistent standard parameters, where they are followed.
    """

    time: float
    samples: int
    beta: Array
    std: Array
    load: tuple[float, float] | None
    theta: Array | None


class Noticed(NamedTuple):
    """A change of the load.

    Attributes
    ----------
    time : float
        [s]
    event : Event
    """

    time: float
    event: Event


@dataclass(frozen=True)
class Setting:
    """What is tracked, and how.

    Attributes
    ----------
    base : BaseParameters
    study : Study
        Whose preparation and tracking count.
    section : LogSection or None
        How the log is laid out; as robots name their columns without.
    sigma : ndarray or None
        Where it is known before the log is.
    start : Known or None
    """

    base: BaseParameters
    study: Study
    section: LogSection | None
    sigma: Array | None
    start: Known | None

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.idim.robot

    @property
    def measured(self) -> bool:
        """Whether derivatives are the stream's own."""
        prepare = self.study.prepare.model_dump(exclude_none=True)
        return prepare.get("derivatives") == "measured"

    @property
    def cutoff(self) -> float:
        """Of the causal filter [Hz]."""
        given = getattr(self.study.track, "cutoff", None)
        if given is not None:
            return float(given)
        prepare = self.study.prepare.model_dump(exclude_none=True)
        torque = prepare.get("torque_hz")
        if torque is not None:
            return float(np.max(torque))
        return TORQUE_FACTOR * float(np.max(prepare.get("bandwidth", BANDWIDTH)))


def setting(study: Study, section: LogSection | None, result: StoredResult | None) -> Setting:
    """What is tracked by a study, or by a stored result.

    Raises
    ------
    InputError
    """
    if result is None:
        idim = study_idim(study, study_robot(study))
        base, start, sigma = base_parameters(idim), None, None
    else:
        base = result.base
        values = np.array([row.value for row in result.document.parameters])
        std = np.array([row.std or 0.0 for row in result.document.parameters])
        if not np.all(std > 0.0):
            raise InputError(f"{result.path}: parameters without error cannot be followed")
        start, sigma = Known(values, np.diag(std**2)), result.sigma()
    given = study.track.model_dump(exclude_none=True).get("sigma")
    if given is not None:
        sigma = np.broadcast_to(np.asarray(given, dtype=float), base.idim.robot.n).copy()
    return Setting(base, study, section, sigma, start)


class Follower:
    """The causal filter, the tracker and what is written when.

    Parameters
    ----------
    setting : Setting
    sigma : ndarray, shape (n,)
    rate : float
        Of the stream [Hz].

    Raises
    ------
    InputError
        When options contradict each other or do not fit the rate.
    """

    def __init__(self, setting: Setting, sigma: Array, rate: float) -> None:
        track = setting.study.track.model_dump(exclude_none=True)
        prepare = setting.study.prepare.model_dump(exclude_none=True)
        options: Tracking = chosen(Tracking, track)
        n = setting.robot.n
        self.rate, self.sigma = rate, sigma
        self.filter = CausalFilter(n, setting.cutoff, rate, setting.measured)
        self.step = max(1, int(0.5 * rate / setting.cutoff + 1e-9))
        self.tracker = Tracker(
            setting.base,
            sigma,
            rate / self.step,
            forgetting=chosen(Forgetting, track),
            drift=chosen(Drift, track),
            alarm=chosen(Alarm, track),
            drop_below=prepare.get("drop_below", 0.0),
            start=setting.start,
            knowledge=Knowledge() if options.consistent else None,
            turnover=self.filter.turnover,
        )
        self.each = max(1, round(options.every * rate / self.step))
        self._setting = setting
        self._counts = np.zeros(2, dtype=np.int64)  # samples taken, phase of the decimation
        self._last = np.zeros(1)  # time of the last sample

    @property
    def taken(self) -> int:
        """Samples of the stream so far."""
        return int(self._counts[0])

    def feed(self, sample: Sample) -> list[Row | Noticed]:
        """Take in one sample of the stream; what is to be written.

        Raises
        ------
        InputError
            When it is not finite.
        """
        counts = self._counts
        gap = sample.time - self._last[0] > GAP / self.rate
        if counts[0] and (sample.fresh or gap):
            self.filter.restart()
        self._last[0] = sample.time
        out = self.filter.push(sample.values)
        counts[0] += 1
        if out is None:
            return []
        counts[1] = (counts[1] + 1) % self.step
        if counts[1]:
            return []
        n = len(self.sigma)
        found: list[Row | Noticed] = []
        at = sample.time - self.filter.lag
        event = self.tracker.update(out[:n], out[n : 2 * n], out[2 * n : 3 * n], out[3 * n :])
        if event is not None:
            found.append(Noticed(at, event))
        if self.tracker.samples % self.each == 0:
            found.append(self.row(at))
        return found

    def row(self, at: float) -> Row:
        """The estimate as it is."""
        tracker = self.tracker
        load = tracker.load
        return Row(
            at,
            self.taken,
            tracker.beta,
            tracker.std,
            None if load is None else (load.mass, float(load.std[0])),
            tracker.theta if tracker.consistent else None,
        )

    def stored(self) -> bytes:
        """The state as a file."""
        arrays = {**self.tracker.state(), **self.filter.state()}
        arrays |= {"counts": self._counts, "last": self._last}
        about = {"rate": self.rate, "sigma": self.sigma.tolist()}
        return packed(SCHEMA, self.origin, about, arrays)

    @property
    def origin(self) -> Origin:
        """All that a state has to fit."""
        base = self._setting.base
        rates = f"{self.tracker.fingerprint} {self._setting.cutoff!r} {self.rate!r} {self.step}"
        return Origin(base.idim.robot.name, base.names, rates)

    def restore(self, state: Kept) -> None:
        """Go on from a stored state.

        Raises
        ------
        InputError
            When it is of another robot, or of other options.
        """
        state.require(self.origin, "sigma, rate, cutoff, ageing or prior")
        arrays = dict(state.arrays)
        try:
            self._counts[:] = arrays.pop("counts")
            self._last[:] = arrays.pop("last")
            own = self.filter.state()
            self.filter.restore({name: arrays.pop(name) for name in own})
            self.tracker.restore(arrays)
        except (KeyError, ValueError, InputError) as error:
            raise state.damaged from error


def read_state(path: Path) -> tuple[Kept, int] | None:
    """A state file, and the samples that it has seen; None where there is none yet.

    Raises
    ------
    InputError
        When it is something else.
    """
    what = "dynident track"
    kept = read_kept(path, SCHEMA, ("rate", "sigma"), what)
    if kept is None:
        return None
    counts = kept.arrays.get("counts")
    if counts is None or counts.shape != (2,):
        raise InputError(f"{path}: is no state file of {what}")
    return kept, int(counts[0])


# sources


def recorded(recording: Recording, measured: bool) -> Iterator[Sample]:
    """The samples of a log that was read as a whole, before any filter.

    Raises
    ------
    InputError
        When velocities are to be the log's own, and it has none.
    """
    n = recording.q.shape[1]
    values = np.zeros(4 * n)
    if measured and (recording.dq is None or recording.ddq is None):
        raise InputError(
            f"{recording.name}: derivatives = 'measured' of a stream needs both dq and ddq"
        )
    for start, stop in recording.segments:
        for k in range(start, stop):
            values[:n], values[3 * n :] = recording.q[k], recording.tau[k]
            if measured and recording.dq is not None and recording.ddq is not None:
                values[n : 2 * n], values[2 * n : 3 * n] = recording.dq[k], recording.ddq[k]
            yield Sample(k / recording.rate, values, k == start)


class Lines:
    """Lines of a file, of one that grows or of a pipe, until it ends or the run is stopped.

    Parameters
    ----------
    file : binary file
    name : str
    grows : bool
        Wait for more at the end of a file.
    stopped : callable
    """

    def __init__(self, file: IO[bytes], name: str, grows: bool, stopped: Stopped) -> None:
        self.name, self.number = name, 0
        self._file, self._grows, self._stopped = file, grows, stopped

    def __iter__(self) -> Iterator[str]:
        """Whole lines; `number` counts them from 1.

        Raises
        ------
        InputError
            When the stream ends in the middle of a line, or is no text.
        """
        handle, rest = self._file.fileno(), b""
        while not self._stopped():
            if not self._grows and not select.select([handle], [], [], WAIT)[0]:
                continue
            block = os.read(handle, BLOCK)
            if not block:
                if self._grows:
                    time.sleep(WAIT)
                    continue
                if rest.strip():
                    raise InputError(
                        f"{self.name}, line {self.number + 1}: stops in the middle of the line"
                    )
                return
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                self.number += 1
                try:
                    yield line.decode("utf-8-sig" if self.number == 1 else "utf-8").strip("\r")
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"{self.name}, line {self.number}: is not UTF-8 text"
                    ) from error
                if self._stopped():
                    return


@dataclass
class TextStream:
    """Samples of delimited text with a header, or of JSON lines, as they come.

    Parameters
    ----------
    lines : Lines
    setting : Setting
    rate : float or None
        [Hz]; told from the stamps of the first rows without.
    taken : int
        Samples before the first of them, of a stream that goes on.
    """

    lines: Lines
    setting: Setting
    rate: float | None
    taken: int = 0

    def samples(self) -> Iterator[Sample]:
        """One after another; the rate is known from the first of them on.

        Raises
        ------
        InputError
            With the line and the column.
        """
        rows = self._rows()
        head: list[tuple[float | None, Array]] = []
        for row in rows:
            head.append(row)
            if self.rate is not None or len(head) == HEAD:
                break
        if self.rate is None:
            stamps = [at for at, _ in head]
            if None in stamps or len(head) < 2:
                raise InputError(
                    f"{self.lines.name}: has no time column, or only one row; give --rate"
                )
            self.rate = (len(head) - 1) / float(np.diff([stamps[0], stamps[-1]])[0])
        for count, (at, values) in enumerate(chain(head, rows), self.taken):
            yield Sample(count / self.rate if at is None else at, values, False)

    def _rows(self) -> Iterator[tuple[float | None, Array]]:
        layout: Layout | None = None
        names: tuple[str, ...] | None = None
        delimiter: str | None = ","
        last: float | None = None
        n = self.setting.robot.n
        for line in self.lines:
            text = line.strip()
            if not text or text[0] in "#%":
                continue
            place = f"{self.lines.name}, line {self.lines.number}"
            if text[0] == "{":
                named = self._json(text, place)
                if layout is None:
                    names = tuple(named)
                    layout = self._layout(names)
                if names is None or set(named) != set(names):
                    raise InputError(f"{place}: has other keys than the first line")
                numbers = [named[name] for name in names]
            else:
                if layout is None:
                    delimiter = next((mark for mark in ";\t," if mark in text), None)
                    cells = [cell.strip().strip('"') for cell in text.split(delimiter)]
                    head = not all(is_number(cell) for cell in cells)
                    names = tuple(cells) if head else tuple(str(k + 1) for k in range(len(cells)))
                    layout = self._layout(names if head else None, len(cells))
                    if head:
                        continue
                numbers = self._cells(text, delimiter, names or (), place)
            values = np.array(numbers)
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                where = column_label(names, int(bad[0]))
                raise InputError(f"{place}, {where}: {values[bad[0]]} is not a finite number")
            signals = layout.signals(values[None, :])
            at = float(signals["time"][0, 0]) if "time" in signals else None
            if at is not None and last is not None and at <= last:
                raise InputError(f"{place}: time goes from {last:.9g} s to {at:.9g} s")
            last = at
            sample = np.zeros(4 * n)
            parts = ("q", "dq", "ddq", "tau")
            for k, signal in enumerate(parts):
                if signal in signals:
                    sample[k * n : (k + 1) * n] = signals[signal][0]
            yield at, sample

    def _layout(self, names: tuple[str, ...] | None, columns: int | None = None) -> Layout:
        width = len(names) if names is not None else columns or 0
        table = Table(Path(self.lines.name), names, np.zeros((1, width)))
        section = self.setting.section
        if section is None:
            return layout_of(table, self.setting.robot)
        return layout_of(table, self.setting.robot, section.columns, section.units, section.side)

    def _cells(
        self, text: str, delimiter: str | None, names: tuple[str, ...], place: str
    ) -> list[float]:
        cells = text.split(delimiter)
        if len(cells) != len(names):
            raise InputError(f"{place}: has {len(cells)} columns where the first has {len(names)}")
        numbers = []
        for k, cell in enumerate(cells):
            try:
                numbers.append(float(cell))
            except ValueError as error:
                what = f"{cell.strip()!r} is not a number" if cell.strip() else "is empty"
                raise InputError(f"{place}, {column_label(names, k)}: {what}") from error
        return numbers

    def _json(self, text: str, place: str) -> dict[str, float]:
        """Numbers by column; a list holds those of all joints."""
        try:
            found = json.loads(text)
            joints = self.setting.robot.joint_names
            named: dict[str, float] = {}
            for key, value in found.items():
                if isinstance(value, list):
                    if len(value) != len(joints):
                        raise InputError(
                            f"{place}: {key} has {len(value)} values for {len(joints)} joints"
                        )
                    pairs = zip(joints, value, strict=True)
                    named |= {f"{key}_{joint}": float(each) for joint, each in pairs}
                else:
                    named[key] = float(value)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"{place}: is not a JSON object of numbers") from error
        return named


def is_number(cell: str) -> bool:
    """Whether a cell is one."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def log_sigma(setting: Setting, recording: Recording) -> Array:
    """Sigma of each joint, of least squares on a whole log."""
    # sigma is that of single samples, also where a batch would average periods
    given = setting.study.prepare.model_dump(exclude_none=True, exclude={"period", "warmup"})
    samples = prepare(recording, **given)
    return weighted_solution(Problem.of(setting.base, samples).factors)[1]


@one_thread
def track(
    setting: Setting,
    source: str | None,
    write: Callable[[Row | Noticed], None],
    *,
    stream: IO[bytes] | None = None,
    follow: bool = False,
    rate: float | None = None,
    state: Path | None = None,
    stopped: Stopped = lambda: False,
) -> Follower:
    """Follow a log or a stream from where its state says to its end.

    Parameters
    ----------
    setting : Setting
    source : str or None
        A log's files, separated by commas; None for the study's own log.
    write : callable
        Given every estimate and event when it comes.
    stream : binary file, optional
        Read instead of a log: standard input.
    follow : bool
        Wait for more at the end of the log, a file of text.
    rate : float, optional
        Of a stream without time [Hz].
    state : Path, optional
        Read, where it exists, before the first sample, and written after the last.
    stopped : callable
        Asked between samples.

    Raises
    ------
    InputError
        Also in the middle of a stream: the state then is that after the last good sample.
    """
    earlier, past = (None if state is None else read_state(state)) or (None, 0)
    follower: Follower | None = None
    section = setting.section
    if earlier is not None:
        rate = float(earlier.about["rate"])
    sigma = setting.sigma
    if sigma is None and earlier is not None:
        sigma = np.array(earlier.about["sigma"], dtype=float)
    opened: IO[bytes] | None = None
    text: TextStream | None = None
    try:
        if stream is not None or follow:
            if sigma is None:
                raise InputError(
                    "a stream has no log that tells its sigma: give --sigma, or a result to start "
                    "from"
                )
            refuse_mending(section)
            name = STANDARD_INPUT
            if stream is None:
                name = source or ",".join(section.files if section is not None else ())
                stream = opened = open_text(name)
            if rate is None and section is not None:
                rate = section.rate
            text = TextStream(Lines(stream, name, follow, stopped), setting, rate)
            samples = text.samples()
        else:
            whole = whole_log(setting, source, rate)
            rate = whole.rate
            if sigma is None:
                sigma = log_sigma(setting, whole)
            samples = recorded(whole, setting.measured)
        # what a state has taken from a file is passed over; a pipe goes on where it went on
        if text is not None and opened is None:
            text.taken, past = past, 0
        for k, sample in enumerate(samples):
            if follower is None:
                follower = Follower(setting, sigma, float((text.rate if text else rate) or 0.0))
                if earlier is not None:
                    follower.restore(earlier)
            if k < past:
                continue
            for each in follower.feed(sample):
                write(each)
            if stopped():
                break
    finally:
        if opened is not None:
            opened.close()
        if follower is not None and state is not None:
            write_files({state: follower.stored()})
    if follower is None:
        raise InputError(f"{text.lines.name if text else source}: has no samples")
    return follower


def open_text(name: str) -> IO[bytes]:
    """A file of text to be followed.

    Raises
    ------
    InputError
    """
    if "," in name:
        raise InputError(f"{name}: only one file can be followed while it grows")
    try:
        return open(name, "rb", buffering=0)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror})") from error


def whole_log(setting: Setting, source: str | None, rate: float | None) -> Recording:
    """A log read as a whole, laid out as the study has it.

    Raises
    ------
    InputError
    """
    section = setting.section
    if source is not None:
        files = tuple(source.split(","))
        section = LogSection(files=files) if section is None else relocated(section, files)
    if section is None:
        raise InputError("no log is given")
    if rate is not None and section.rate is None:
        section = section.model_copy(update={"rate": rate})
    return study_recording(section, setting.robot)


def refuse_mending(section: LogSection | None) -> None:
    """Refuse to take a stream as a log that has to be mended, or of which a part counts.

    Raises
    ------
    InputError
    """
    if section is None:
        return
    if section.mending() != Mending() or section.rows is not None:
        raise InputError(
            "[[log]]: a stream is taken as it comes; leave rows, order, sign, offset and delay out"
        )
