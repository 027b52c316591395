"""What a log has over time, as it is drawn: torques, positions, and what bears a robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers


@dataclass(frozen=True)
class TorqueSeries:
    """Torques of one log at every sample, after the low-pass of the figure.

    Attributes
    ----------
    name : str
    time : ndarray, shape (samples,)
        From the log's first sample [s].
    measured, predicted : ndarray, shape (samples, n)
        Measured is NaN where a floating robot's log does not state an equation.
    nominal : ndarray, shape (samples, n), or None
        Of the robot file's inertials alone.
    parts : dict of str to ndarray, shape (samples, n)
        ``inertia`` (with rotors), ``velocity`` (Coriolis, centrifugal), ``gravity``
        and ``friction``, which add up to the prediction.
    speed : ndarray, shape (samples, n)
        Of the joints, as the fit has it [rad/s or m/s].
    friction : ndarray, shape (samples, n)
        The model's, not low-passed.
    torque : {"measured", "law"}
        What `measured` is where the log has no torque: what the law commands.
    scored : ndarray of bool, shape (samples,), or None
        What the all-samples errors count: what no filter's edge reaches. None is all.
    fitted : ndarray of bool, shape (samples, n), or None
        Where there are rows that were fitted: neither edges nor standstill, nor what was left
        out. None is everywhere.
    position, temperature : ndarray, or None
        Of the joints, as the fit has them [rad or m], [°C].
    breaks : ndarray of int
        Samples before which there is a gap.
    even : ndarray of bool, shape (samples,), or None
        Samples that are equally far apart; the others are the lowest and highest between them.
        None is all.
    stretch : Stretch or None
        What spectra are of.
    """

    name: str
    time: Array
    measured: Array
    predicted: Array
    nominal: Array | None
    parts: dict[str, Array]
    speed: Array
    friction: Array
    torque: str = "measured"
    scored: Booleans | None = None
    fitted: Booleans | None = None
    position: Array | None = None
    temperature: Array | None = None
    breaks: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    even: Booleans | None = None
    stretch: Stretch | None = None

    @property
    def evenly(self) -> TorqueSeries:
        """The samples that are equally far apart, for all that is not a line over time."""
        if self.even is None:
            return self
        few: dict[str, Any] = {
            name: value[self.even]
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray) and name not in ("breaks", "even")
        }
        few["parts"] = {name: part[self.even] for name, part in self.parts.items()}
        few["breaks"] = np.cumsum(self.even)[self.breaks - 1]
        return replace(self, **few, even=None)


@dataclass(frozen=True)
class Stretch:
    """Samples of some time, as close to each other as a low-pass leaves anything."""

    step: float
    """Between them [s]."""
    measured: Array
    residual: Array
    """`measured`, `residual`: shape (samples, n). [Nm or N]; NaN at gaps and at filters' edges."""


@dataclass(frozen=True)
class PositionSeries:
    """Positions of one log beside those of a free simulation."""

    name: str
    time: Array
    """From the log's first sample [s], shape (samples,)."""
    measured: Array
    simulated: Array
    """`measured`, `simulated`: shape (samples, n). [rad or m]"""
    breaks: Integers
    """Samples before which there is a gap."""


@dataclass(frozen=True)
class Stance:
    """A contact that bears for a while."""

    contact: str
    since: float
    until: float
    """`since`, `until`: [s]"""
    track: Array
    """Shape (samples, 2). Where its frame was meanwhile, from above [m]; empty where nobody knows
    it."""


@dataclass(frozen=True)
class GroundSeries:
    """What bears a floating robot over a log."""

    name: str
    """Of the log."""
    contacts: tuple[str, ...]
    """All of the robot."""
    time: Array
    """Shape (samples,). [s]"""
    breaks: Integers
    """Samples before which there is a gap."""
    forces: Mapping[str, Array]
    """Shapes (samples,). Of each measured contact, upwards on the robot [N]; low-passed."""
    total: Array
    asked: Array
    """`total`, `asked`: shape (samples,). Upwards on the base's rows: what sensors measured
    together, and what the model takes for its motion [N]."""
    weight: float
    """Of the model [N]."""
    path: Array
    """Shape (samples, 2). Of the base from above [m]; empty where nobody knows it."""
    stances: tuple[Stance, ...]
