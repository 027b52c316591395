"""A log at a glance: what is told of it before anything is fitted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dynident.core.arrays import Array
from dynident.core.text import format_count
from dynident.core.words import format_entry, format_number, format_percent, format_table
from dynident.plots.card import render_card
from dynident.plots.document import build_column_table

LEVELS = 200_000
"""Samples in which steps of a signal are looked for."""
ROUNDING = 1e-12
"""Share of a signal's size below which two values are one."""
WHOLE = 0.05
"""By how much of a step differences of a signal in steps may miss a multiple of it."""
MOST = 0.99
"""Share of the differences that are multiples of the step."""

UNITS = {
    "rad": ("rad/s", "Nm"),
    "m": ("m/s", "N"),
    "rad or m": ("rad/s or m/s", "Nm or N"),
}
"""Of speed and torque, by the unit of a joint's position."""

Range = tuple[float, float]
"""Lowest and highest value."""


@dataclass(frozen=True)
class JointOverview:
    """One joint of a log; NaN of what the log or the robot does not tell.

    Attributes
    ----------
    name : str
    unit : str
        Of its position: ``rad`` or ``m``, ``rad or m`` where the robot is not known.
    position, speed, torque : (float, float)
        Lowest and highest value [rad or m], [rad/s or m/s], [Nm or N]; where no speed was
        measured, of differences of the position over 20 ms.
    limits : (float, float)
        Of the position, by the robot's file; infinite where it states none [rad or m].
    speed_limit, torque_limit : float
        By the robot's file [rad/s or m/s], [Nm or N].
    torque_rms : float
        Root mean square [Nm or N].
    resting : float
        Share of the samples, from 0 to 1, in which it is slower than a hundredth of its largest
        speed.
    position_step, torque_step : float
        Of which the signal's values are multiples: an encoder's resolution, or that of the file;
        NaN where there is no such step [rad or m], [Nm or N].
    """

    name: str
    unit: str
    position: Range
    limits: Range
    speed: Range
    speed_limit: float
    torque: Range
    torque_limit: float
    torque_rms: float
    resting: float
    position_step: float
    torque_step: float

    @property
    def range_share(self) -> float:
        """Share of the range between its limits that the position covers."""
        low, high = self.limits
        width = high - low
        covered = self.position[1] - self.position[0]
        return covered / width if math.isfinite(width) and width > 0.0 else math.nan

    @property
    def speed_share(self) -> float:
        """Largest speed, relative to its limit."""
        return find_share(self.speed, self.speed_limit)

    @property
    def torque_share(self) -> float:
        """Largest torque, relative to its limit."""
        return find_share(self.torque, self.torque_limit)


@dataclass(frozen=True)
class Overview:
    """A log at a glance; `print` shows it as text.

    Attributes
    ----------
    name : str
    rate : float
        Samples per second [Hz].
    samples : int
    duration : float
        Of motion in all segments [s].
    segments : int
        Runs without a gap; of how long the gaps are `warnings` tell.
    longest : float
        Of these runs [s].
    torque : {"measured", "none", "law"}
        Whence torques are.
    signals : tuple of str
        What else it has: ``dq ddq qref dqref temp known``, ``base``, and contacts.
    joints : tuple of JointOverview
    warnings : tuple of str
        What was noticed and done when it was read.
    """

    name: str
    rate: float
    samples: int
    duration: float
    segments: int
    longest: float
    torque: str
    signals: tuple[str, ...]
    joints: tuple[JointOverview, ...]
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        """One line, for a prompt."""
        return (
            f"<Overview of {self.name}: {format_count(len(self.joints), 'joint')}, "
            f"{self.duration:.4g} s at {self.rate:g} Hz; print() shows it>"
        )

    def __str__(self) -> str:
        """Text of at most 80 columns."""
        names = [joint.name for joint in self.joints]
        lines = [
            *format_entry("log", f"{self.name}: {describe_extent(self)}"),
            *format_entry("signals", describe_signals(self)),
        ]
        for stub, columns in list_columns(self):
            lines += ["", *format_table(stub, names, columns)]
        for warning in self.warnings:
            lines += format_entry("warning", warning)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Tables that fold, for a notebook."""
        return render_overview_card(self, unfolded=True)


def find_range(signal: Array) -> Range:
    """Lowest and highest value."""
    return float(np.min(signal)), float(np.max(signal))


def find_share(reached: Range, limit: float) -> float:
    """What is reached on either side of zero, relative to a limit; NaN where there is none."""
    largest = max(abs(reached[0]), abs(reached[1]))
    return largest / limit if math.isfinite(limit) and limit > 0.0 else math.nan


def find_step(signal: Array) -> float:
    """The step of which differences between a signal's values are multiples; NaN of none."""
    values = np.unique(signal[:LEVELS])
    changes = np.diff(values)
    changes = changes[changes > ROUNDING * np.max(np.abs(values), initial=0.0)]
    if not len(changes):
        return math.nan
    step = float(np.min(changes))
    # the least difference is known to its rounding alone, which multiples multiply
    near = changes[changes < 1.5 * step]
    step = float(np.mean(near))
    multiples = changes / step
    missed = np.abs(multiples - np.round(multiples))
    return step if np.mean(missed < WHOLE) >= MOST else math.nan


# words


def describe_extent(found: Overview) -> str:
    """How much there is of a log."""
    runs = "" if found.segments == 1 else (
        f" in {found.segments} segments, the longest {found.longest:.4g} s"
    )  # fmt: skip
    return f"{found.samples} samples at {found.rate:g} Hz, {found.duration:.4g} s{runs}"


def describe_signals(found: Overview) -> str:
    """What there is in a log."""
    torque = {"measured": "tau", "none": "no torque", "law": "torque of the law"}[found.torque]
    return ", ".join(("q", torque, *found.signals))


def list_columns(found: Overview) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Tables of a log's joints: what each is of, and its columns."""
    joints = found.joints

    def numbers(values: Iterable[float]) -> list[str]:
        return [format_number(value, 3) for value in values]

    def shares(values: Iterable[float]) -> list[str]:
        return [format_percent(100.0 * value) for value in values]

    position = [
        ("from", numbers(j.position[0] for j in joints)),
        ("to", numbers(j.position[1] for j in joints)),
        ("limits", numbers(j.limits[0] for j in joints)),
        ("to", numbers(j.limits[1] for j in joints)),
        ("% used", shares(j.range_share for j in joints)),
        ("step", numbers(j.position_step for j in joints)),
        ("unit", [j.unit for j in joints]),
    ]
    speed = [
        ("from", numbers(j.speed[0] for j in joints)),
        ("to", numbers(j.speed[1] for j in joints)),
        ("limit", numbers(j.speed_limit for j in joints)),
        ("% used", shares(j.speed_share for j in joints)),
        ("% at rest", shares(j.resting for j in joints)),
        ("unit", [UNITS[j.unit][0] for j in joints]),
    ]
    torque = [
        ("from", numbers(j.torque[0] for j in joints)),
        ("to", numbers(j.torque[1] for j in joints)),
        ("rms", numbers(j.torque_rms for j in joints)),
        ("limit", numbers(j.torque_limit for j in joints)),
        ("% used", shares(j.torque_share for j in joints)),
        ("step", numbers(j.torque_step for j in joints)),
        ("unit", [UNITS[j.unit][1] for j in joints]),
    ]
    found_tables = [("position", position), ("speed", speed)]
    return found_tables + ([] if found.torque == "none" else [("torque", torque)])


def render_overview_card(found: Overview, unfolded: bool = False) -> str:
    """A log as a notebook shows it."""
    names = [joint.name for joint in found.joints]
    tables = [
        (f"{stub.capitalize()}s", build_column_table("joint", names, columns, ("unit",)))
        for stub, columns in list_columns(found)
    ]
    lines, level = (
        (describe_extent(found), describe_signals(found)),
        "note" if found.warnings else "",
    )
    return render_card(found.name, lines, tables, found.warnings, level, unfolded)
