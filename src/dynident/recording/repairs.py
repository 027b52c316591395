"""A log read as it was meant: columns in order, signs, zeros of encoders, delays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.core.options import Options, PerJoint, broadcast_to_joints, list_options
from dynident.filters.shift import shift_in_time
from dynident.recording.recording import Recording

Signal = Literal["q", "tau", "qref"]
MOTION, TORQUE, REFERENCE = ("q", "dq", "ddq"), ("tau",), ("qref", "dqref")
SIGNALS: dict[Signal, tuple[str, ...]] = {"q": MOTION, "tau": TORQUE, "qref": REFERENCE}
"""What `order` and `sign` speak of, with the signals that go along."""
Filtered = Literal["q", "tau"]
SETTLED = 1.0
"""Of its times that are left out behind the start of a logger's filter. What undoes it is right
wherever the filter started, but its time is known to a few per cent: what that errs by decays."""
FILTERED: tuple[Filtered, ...] = ("q", "tau")
"""What a logger may have low-passed, or written later than the rest."""


def check_permutation(order: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse what is not every joint once."""
    if sorted(order) != list(range(1, len(order) + 1)):
        raise ValueError(f"has to have each column once, counted from 1, got {list(order)}")
    return order


def check_signs(values: float | tuple[float, ...]) -> float | tuple[float, ...]:
    """Refuse what is not a sign."""
    if not np.size(values) or not np.all(np.abs(values) == 1.0):
        raise ValueError("has to be 1 or -1, for all joints or for each")
    return values


def check_slowness(values: tuple[float, ...]) -> tuple[float, ...]:
    """Refuse what undoes no low-pass."""
    if not values or not all(0.0 < value < np.inf for value in values):
        raise ValueError("has to be positive numbers, [a], [a, b] or more")
    return values


Order = Annotated[tuple[int, ...], AfterValidator(check_permutation)]
Sign = Annotated[PerJoint, AfterValidator(check_signs)]
Lowpass = Annotated[tuple[float, ...], AfterValidator(check_slowness)]


@dataclass(frozen=True)
class LogRepair(Options):
    """What is done to a log before anything else, in this order, on the joints' side."""

    order: Annotated[
        Mapping[Signal, Order] | None,
        "columns of `q`, `tau` or `qref` in another order: for each joint the place, from 1, at "
        "which its column was read",
    ] = None
    sign: Annotated[
        Mapping[Signal, Sign] | None, "1 or -1 on `q`, `tau` or `qref`, for all joints or for each"
    ] = None
    offset: Annotated[PerJoint, "added to positions and their references [rad or m]"] = 0.0
    delay: Annotated[
        PerJoint, "by which the torque stands later in the log than the motion [s]"
    ] = 0.0
    lag: Annotated[
        PerJoint, "by which the position stands later in the log than the motion [s]"
    ] = 0.0
    unfilter: Annotated[
        Mapping[Filtered, Lowpass] | None,
        "undoes a low-pass of the logger that `q` or `tau` went through: `[a, b]` makes a signal x "
        "`x + a x' + b x''` [s, s^2]; of a first-order one at f Hz it is `[1 / (2 pi f)]`",
    ] = None

    @property
    def given(self) -> dict[str, Any]:
        """What is not as it would be without."""
        return {
            option.name: value
            for option in list_options(LogRepair)
            if (value := getattr(self, option.name)) != option.default
        }

    def then(self, other: LogRepair, n: int) -> LogRepair:
        """Another repair after this one, both as one, of a robot with n joints."""
        order: dict[Signal, tuple[int, ...]] = {}
        sign: dict[Signal, tuple[float, ...]] = {}
        for key in SIGNALS:
            places = other.places(key, n)
            columns = self.places(key, n)[places]
            signs = self.signs(key, n)[places] * other.signs(key, n)
            if np.any(columns != np.arange(n)):
                order[key] = tuple(int(c) + 1 for c in columns)
            if np.any(signs != 1.0):
                sign[key] = tuple(signs.tolist())
        places, own = other.places("q", n), self.sizes
        offset = other.signs("q", n) * own("offset", n)[places] + other.sizes("offset", n)
        delay = own("delay", n)[other.places("tau", n)] + other.sizes("delay", n)
        lag = own("lag", n)[places] + other.sizes("lag", n)
        unfilter: dict[Filtered, tuple[float, ...]] = {}
        for filtered in FILTERED:
            both = np.polymul(self.undoing(filtered), other.undoing(filtered))
            if len(both) > 1:
                unfilter[filtered] = tuple(both[-2::-1].tolist())
        return LogRepair(
            order or None,
            sign or None,
            collapse_equal_values(offset),
            collapse_equal_values(delay),
            collapse_equal_values(lag),
            unfilter or None,
        )

    def places(self, signal: Signal, n: int) -> Integers:
        """Columns of a signal in their order, from 0."""
        order = None if self.order is None else self.order.get(signal)
        if order is None:
            return np.arange(n)
        if len(order) != n:
            raise InputError(f"order.{signal} has {len(order)} columns for {n} joints")
        return np.array(order) - 1

    def signs(self, signal: Signal, n: int) -> Array:
        """Signs of a signal, one a joint."""
        given = 1.0 if self.sign is None else self.sign.get(signal, 1.0)
        return np.array(broadcast_to_joints(given, n, f"sign.{signal}"))

    def sizes(self, option: Literal["offset", "delay", "lag"], n: int) -> Array:
        """Numbers of an option, one a joint."""
        return np.array(broadcast_to_joints(getattr(self, option), n, option))

    def undoing(self, signal: Filtered) -> Array:
        """Polynomial in the derivative that undoes a signal's low-pass, the highest power first."""
        given = () if self.unfilter is None else self.unfilter.get(signal, ())
        return np.array([*reversed(given), 1.0])

    def lines(self) -> tuple[str, ...]:
        """What is given, as TOML."""
        return format_keys(self.given.items())


def format_keys(keys: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
    """Keys with their values, as lines of a log's table."""
    return tuple(f"{key} = {format_toml(value)}" for key, value in keys)


def tell_repair(lines: Iterable[str]) -> str:
    """What to do with lines that repair a log."""
    return f"add {', '.join(lines)} to [[log]]"


def format_toml(value: Any) -> str:
    """Numbers, words, lists and tables of them as TOML has them."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {format_toml(own)}" for key, own in value.items()) + " }"
    if isinstance(value, tuple):
        return "[" + ", ".join(format_toml(own) for own in value) + "]"
    return f'"{value}"' if isinstance(value, str) else f"{value:.6g}"


def collapse_equal_values(values: Array) -> float | tuple[float, ...]:
    """One number where all agree."""
    if np.all(values == values[0]):
        return float(values[0])
    return tuple(values.tolist())


def repair_recording(recording: Recording, repair: LogRepair) -> Recording:
    """Read a recording's columns as they were meant.

    What is delayed by no whole number of samples is interpolated linearly; what was `sampled`
    beside the clock is left out; samples at the ends of
    segments of which not all signals are in the log are left out, and those of a filter that is
    undone while it settled.
    """
    if not repair.given:
        return recording
    n, name = recording.q.shape[1], recording.name
    signals = {
        label: signal
        for labels in SIGNALS.values()
        for label in labels
        if (signal := getattr(recording, label)) is not None
    }
    changed: dict[str, Array] = {}
    try:
        for key, labels in SIGNALS.items():
            places, sign = repair.places(key, n), repair.signs(key, n)
            if np.any(places != np.arange(n)) or np.any(sign != 1.0):
                changed |= {k: sign * signals[k][:, places] for k in labels if k in signals}
        offset, delay, lag = (repair.sizes(each, n) for each in ("offset", "delay", "lag"))
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    if np.any(offset != 0.0):
        positions = {k: {**signals, **changed}[k] for k in ("q", "qref") if k in signals}
        changed |= {label: signal + offset for label, signal in positions.items()}
    segments = recording.segments
    for filtered, late in zip(FILTERED, (lag, delay), strict=True):
        undoing, shift = repair.undoing(filtered), late * recording.rate
        if len(undoing) == 1 and not np.any(shift):
            continue
        for label in SIGNALS[filtered]:
            if label in signals:
                own = np.array(changed.get(label, signals[label]))
                for start, stop in recording.segments:
                    quick = undo_lowpass(own[start:stop], undoing, recording.rate)
                    own[start:stop] = shift_in_time(quick, shift)
                changed[label] = own
        settling = SETTLED * recording.rate * (undoing[-2] if len(undoing) > 1 else 0.0)
        # a shift by whole samples, but for rounding, costs no further one
        before = int(np.ceil(max(settling, -float(np.min(shift))) - 1e-9))
        behind = int(np.ceil(max(0.0, float(np.max(shift))) - 1e-9))
        cut = ((start + before, stop - behind) for start, stop in segments)
        segments = tuple((start, stop) for start, stop in cut if start < stop)
        if not segments:
            raise InputError(f"{name}: delay is longer than the log")
    for signal in changed.values():
        signal.setflags(write=False)  # ours, and so the recording does not copy it
    return replace(
        recording,
        segments=segments,
        repairs=repair.lines(),
        sampled=None,
        **changed,  # type: ignore[arg-type]
    )


def undo_lowpass(columns: Array, polynomial: Array, rate: float) -> Array:
    """A polynomial in the derivative, the highest power first, of each column."""
    found: Array = polynomial[0] * columns
    for factor in polynomial[1:]:
        slope = np.gradient(found, 1.0 / rate, axis=0) if len(found) > 1 else 0.0
        found = slope + factor * columns
    return found
