"""Long logs to signals without ever holding one: through a temporary file, some rows at a time."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array, find_column_extremes
from dynident.core.store import Store
from dynident.filters.blocks import LONG, open_stored_signal
from dynident.filters.clock import EvenClock, find_even_clock
from dynident.recording.checks import LARGEST, LEAP, check_rate
from dynident.recording.signals import (
    PER_JOINT,
    LogRequest,
    SignalPlaces,
    TablePiece,
    convert_to_si,
    find_every_turn,
)


def sample_in_pieces(places: SignalPlaces, request: LogRequest) -> TablePiece | None:
    """Signals of a long log in SI units, on the joints' side, on the uniform clock of its stamps.

    None where that takes the whole log: where it is short, or not in one table whose file is read
    in order (as CSV, Parquet, NPZ and HDF5 are); where it has signals of a base or of contacts, no
    torques or locked joints; where values are not finite numbers, or some stand alone by their
    size; where jumps by a turn are followed by others; and where time stamps jitter, go back or
    have gaps that are bridged.
    """
    spots = [spot for own in (places.times, *places.signals.values()) for spot in own]
    table, samples = spots[0][0], spots[0][0].samples
    if (
        not request.pieces
        or samples <= LONG
        or table.topic is not None
        or any(other is not table for other, _ in spots)
        or places.absent
        or (request.robot is not None and request.robot.loops)
        or request.floating.locked
        or not {*places.signals} <= {*PER_JOINT}
        or not {"tau", "current"} & {*places.signals}
    ):
        return None
    pieces = table.pieces([index for _, index in spots])
    if pieces is None:
        return None
    stamps, n = Store(1), len(request.joints)
    held, sizes = {signal: Store(n) for signal in places.signals}, _Sizes()
    turning = find_every_turn(places.signals, request)
    for values in pieces:
        time, *own = np.split(
            values, np.cumsum([len(places.times), *(len(x) for x in places.signals.values())])[:-1],
            axis=1,
        )  # fmt: skip
        if not sizes.take(np.hstack(own)):
            return None
        if places.times:
            time = convert_to_si(time[:, :1], "time", request)
            if not np.all(np.abs(time) < LARGEST):
                return None
            stamps.append(time)
        for (signal, store), part in zip(held.items(), own, strict=True):
            going = turning[signal].undo(part) if signal in turning else part
            store.append(convert_to_si(going, signal, request))
    if sizes.leap or any(each.doubtful for each in turning.values()):
        return None
    clock: EvenClock | None = EvenClock(float(request.rate or 0.0), ((0, samples),), (0.0,))
    jumps = (note for each in turning.values() for note in each.describe())
    notes: tuple[str, ...] = (*places.notes, *jumps)
    if places.times:
        where, index = places.times[0]
        clock = find_even_clock(
            stamps, request.name, lambda sample: where.place(sample, index), request.clocking
        )
        if clock is None:
            return None
        if request.clocking.clock == "rate" and request.rate is not None:
            clock = clock.at_rate(request.rate)
        notes = (*notes, *check_rate(request.name, clock.rate, request.rate))
    opened = {
        "tau" if signal == "current" else signal: open_stored_signal(store)
        for signal, store in held.items()
    }
    assert clock is not None
    said = (*notes, *clock.warnings)
    turned = turning["q"].turned
    return TablePiece(clock.rate, opened, clock.runs, clock.starts, said, turned=turned)


class _Sizes:
    """Which powers of ten the values of each column have, so far."""

    def __init__(self) -> None:
        self.met: dict[int, set[int]] = {}

    def take(self, values: Array) -> bool:
        """Take in some rows; False where a value is not a finite number of sensible size."""
        low, high = find_column_extremes(values)
        if not np.all((low > -LARGEST) & (high < LARGEST)):
            return False
        for column in np.flatnonzero((low < -LEAP) | (high > LEAP)).tolist():
            size = np.maximum(np.abs(values[:, column]), 1.0)
            powers = np.unique(np.floor(np.log10(size)).astype(int)).tolist()
            self.met.setdefault(column, {0}).update(powers)
        return True

    @property
    def leap(self) -> bool:
        """Whether values may be more than `LEAP` times as large as all others of their column."""
        most = round(np.log10(LEAP))
        gaps = (np.diff(sorted(met)) for met in self.met.values())
        return any(np.any(each >= most) for each in gaps)
