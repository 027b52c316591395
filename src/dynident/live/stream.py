"""Samples one after another: of a log, of a file that grows, of standard input."""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.errors import InputError
from dynident.live.channels import (
    Channels,
    collect_recorded_signals,
    collect_signals,
    find_channels,
)
from dynident.readers.orientation import ORIENTATIONS, convert_orientations
from dynident.readers.table import Table, label_column
from dynident.readers.text import WIDEST, is_comment
from dynident.readers.units import read_units
from dynident.recording.floating import FloatingOptions, LoggedBase, extract_base, extract_contacts
from dynident.recording.read import ColumnLayout
from dynident.recording.recording import Recording
from dynident.robot.model import Robot

HEAD = 32
"""Rows of a stream by whose stamps its rate is told."""
JOINTS = ("q", "dq", "ddq", "tau", "qref")
OTHER = 0.05
"""By what part steps between stamps differ from a stream's period where its rate is another."""
MISSING = 1.5
"""Periods between two stamps from which samples are missing."""
WAIT = 0.1
"""Between two looks at a file that grows [s]."""
BLOCK = 1 << 16

Stopped = Callable[[], bool]
"""Whether the run has been asked to end."""


class Sample(NamedTuple):
    """One sample of a stream."""

    time: float
    """[s]"""
    values: Array
    """Of the signals of its `Channels`, shape (columns,)."""
    fresh: bool
    """Whether a new run of the log begins with it."""


def stream_recording(recording: Recording, channels: Channels) -> Iterator[Sample]:
    """The samples of a log that was read as a whole, before any filter."""
    values = channels.pack(collect_recorded_signals(recording))
    for start, stop in recording.segments:
        begin = recording.find_time(start)
        for k in range(start, stop):
            yield Sample(begin + (k - start) / recording.rate, values[k], k == start)


class StreamPace:
    """Whether the samples of a stream go on to come at its rate [Hz], by their latest stamps."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._latest = deque[float](maxlen=HEAD)

    def check(self, stamp: float, place: str) -> None:
        """Refuse stamps at another rate than that by whose period speeds are differences [s].

        The middle of the steps bears late and missing samples, their mean bears coarse stamps and
        late samples, that of the short ones coarse stamps and missing samples: all have to say so.
        """
        self._latest.append(stamp)
        if len(self._latest) < HEAD:
            return
        steps = np.diff(self._latest) * self.rate
        middle, short = float(np.median(steps)), steps[steps <= MISSING]
        told = np.array([middle, np.mean(steps), np.mean(short) if len(short) else middle])
        if np.min(np.abs(told - 1.0)) > OTHER:
            raise InputError(
                f"{place}: samples come at {self.rate / middle:.4g} Hz, and not at "
                f"{self.rate:.4g} Hz, the stream's rate"
            )


class StreamLines:
    """Lines of a file, of one that grows or of a pipe, until it ends or the run is stopped.

    Parameters
    ----------
    grows : bool
        Wait for more at the end of a file.
    """

    def __init__(self, file: IO[bytes], name: str, grows: bool, stopped: Stopped) -> None:
        self.name, self.number, self.ended = name, 0, True
        self._file, self._grows, self._stopped = file, grows, stopped

    def __iter__(self) -> Iterator[str]:
        """Lines; `number` counts them from 1, and the last one needs no end."""
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
                    self.ended = False
                    yield self._decode(rest)
                return
            *whole, rest = (rest + block).split(b"\n")
            if len(rest) > WIDEST:
                raise InputError(
                    f"{self.name}, line {self.number + len(whole) + 1}: is longer than {WIDEST} "
                    "characters; is this text with a row a line?"
                )
            for line in whole:
                yield self._decode(line)
                if self._stopped():
                    return

    def _decode(self, line: bytes) -> str:
        """The next line as text."""
        self.number += 1
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8").strip("\r")
        except UnicodeDecodeError as error:
            raise InputError(f"{self.name}, line {self.number}: is not UTF-8 text") from error


@dataclass
class TextStream:
    """Samples of delimited text with a header, or of JSON lines, as they come.

    Parameters
    ----------
    find_layout : callable
        Where a table's columns are.
    rate : float or None
        [Hz]; told from the stamps of the first rows without.
    floating : FloatingOptions
        How columns of a base and of contacts are meant.
    measured : bool
        Whether derivatives are the stream's own.
    instruments : bool
        Whether the reference is followed, too.
    taken : int
        Samples before the first of them, of a stream that goes on.
    channels : Channels or None
        Which signals its samples hold; known from the first of them on.
    notes : tuple of str
        What was noticed of its columns; likewise.
    """

    lines: StreamLines
    robot: Robot
    find_layout: Callable[[Table], ColumnLayout]
    rate: float | None
    floating: FloatingOptions
    measured: bool = False
    instruments: bool = False
    taken: int = 0
    channels: Channels | None = None
    notes: tuple[str, ...] = ()

    def samples(self) -> Iterator[Sample]:
        """One after another; the rate is known from the first of them on."""
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
        pace = StreamPace(self.rate)
        for count, (at, values) in enumerate(chain(head, rows), self.taken):
            if at is not None:
                pace.check(at, f"{self.lines.name}, line {self.lines.number}")
            yield Sample(count / self.rate if at is None else at, values, False)

    def _rows(self) -> Iterator[tuple[float | None, Array]]:
        layout: ColumnLayout | None = None
        names: tuple[str, ...] | None = None
        delimiter: str | None = ","
        last: float | None = None
        head = False
        floating, turned, turning = self.floating, None, None
        for line in self.lines:
            text = line.strip()
            if not text or is_comment(text):
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
                    cells = split_row(text, delimiter)
                    head = not all(is_number(cell) for cell in cells)
                    names = tuple(cells) if head else tuple(str(k + 1) for k in range(len(cells)))
                    layout = self._layout(names if head else None, len(cells))
                    if head:
                        continue
                if head:  # another line of the header, of units
                    head, units = False, read_units(split_row(text, delimiter))
                    if units:
                        layout = self._layout(names, units=units)
                        continue
                numbers = self._cells(text, delimiter, names or (), place)
            values = np.array(numbers)
            bad = np.flatnonzero(~np.isfinite(values))
            if len(bad):
                where = label_column(names, int(bad[0]))
                raise InputError(f"{place}, {where}: {values[bad[0]]} is not a finite number")
            signals = layout.signals(values[None, :])
            turning = layout.turns() if turning is None else turning
            signals |= {signal: each.undo(signals[signal]) for signal, each in turning.items()}
            at = float(signals["time"][0, 0]) if "time" in signals else None
            if at is not None and last is not None and at <= last:
                raise InputError(f"{place}: time goes from {last:.9g} s to {at:.9g} s")
            last = at
            for signal, form in ORIENTATIONS.items():
                if signal in signals and form.find_invalid(signals[signal])[0]:
                    raise InputError(f"{place}: {signal} is not {form.what}")
            signals = convert_orientations(signals, floating.quaternion)
            base = extract_base(signals, self.robot, floating, self.lines.name)
            contacts = extract_contacts(signals, self.robot, floating)
            if self.channels is None:
                self.channels = self._find_channels(signals, base, *contacts)
            every = collect_signals({name: signals.get(name) for name in JOINTS}, base, *contacts)
            if "base orientation" in every:  # a quaternion and its negative turn alike
                if turned is not None and np.sum(turned * every["base orientation"]) < 0.0:
                    every["base orientation"] = -every["base orientation"]
                turned = every["base orientation"]
            yield at, self.channels.pack(every)[0]

    def _find_channels(
        self,
        signals: Mapping[str, Array],
        base: LoggedBase | None,
        wrenches: Mapping[str, Array],
        touching: Mapping[str, Booleans],
    ) -> Channels:
        """What the first sample shows."""
        q, floating = signals["q"], self.floating
        head = Recording(
            self.lines.name,
            1.0,
            q,
            signals.get("tau", np.zeros_like(q)),
            signals.get("dq"),
            signals.get("ddq"),
            qref=signals.get("qref"),
            torque="measured" if "tau" in signals else "none",
            base=base,
            wrenches=wrenches,
            touching=touching,
            equations=floating.equations,
            locked=dict(floating.locked or {}),
        )
        return find_channels(self.robot, head, self.measured, False, self.instruments)

    def _layout(
        self,
        names: tuple[str, ...] | None,
        columns: int | None = None,
        units: Mapping[int, str] | None = None,
    ) -> ColumnLayout:
        width = len(names) if names is not None else columns or 0
        table = Table(Path(self.lines.name), names, np.zeros((1, width)), units=units or {})
        layout = self.find_layout(table)
        self.notes = layout.notes
        return layout

    def _cells(
        self, text: str, delimiter: str | None, names: tuple[str, ...], place: str
    ) -> list[float]:
        cells = text.split(delimiter)
        if len(cells) != len(names):
            if len(cells) < len(names) and not self.lines.ended:
                raise InputError(f"{place}: stops in the middle of the line")
            raise InputError(f"{place}: has {len(cells)} columns where the first has {len(names)}")
        numbers = []
        for k, cell in enumerate(cells):
            try:
                numbers.append(float(cell))
            except ValueError as error:
                what = f"{cell.strip()!r} is not a number" if cell.strip() else "is empty"
                raise InputError(f"{place}, {label_column(names, k)}: {what}") from error
        return numbers

    def _json(self, text: str, place: str) -> dict[str, float]:
        """Numbers by column; a list holds those of all joints."""
        try:
            found = json.loads(text)
            joints = self.robot.joint_names
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


def split_row(text: str, delimiter: str | None) -> list[str]:
    """Cells of a line."""
    return [cell.strip().strip('"') for cell in text.split(delimiter)]


def is_number(cell: str) -> bool:
    """Whether a cell is one."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def open_text(name: str) -> IO[bytes]:
    """A file of text to be followed."""
    if "," in name:
        raise InputError(f"{name}: only one file can be followed while it grows")
    try:
        return open(name, "rb", buffering=0)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror})") from error
