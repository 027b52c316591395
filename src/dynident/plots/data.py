"""What plots take of logs and results, whatever holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dynident.core.arrays import Array, Booleans


class NamedItem(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """What it is called."""


class Channel(NamedItem, Protocol):
    """A joint, or what else has a signal of its own, and the signal's unit."""

    @property
    def unit(self) -> str:
        """Of its torque or position."""


class CorrelatedResiduals(NamedItem, Protocol):
    """Residuals of one channel and their correlation with themselves."""

    @property
    def rows(self) -> int:
        """How many residuals there are."""

    @property
    def correlation(self) -> Array:
        """With the same 1, 2, ... rows later."""


class Interval(NamedItem, Protocol):
    """A parameter with its error bars."""

    @property
    def value(self) -> float:
        """In SI units."""

    @property
    def std(self) -> float:
        """Its standard deviation."""

    @property
    def low(self) -> float:
        """Where its 95 % interval begins."""

    @property
    def high(self) -> float:
        """Where that ends."""

    @property
    def relative_percent(self) -> float:
        """The standard deviation, relative to the value [%]."""

    @property
    def literature_percent(self) -> float:
        """The same by the literature's formula [%]."""

    @property
    def weak(self) -> bool:
        """Whether the interval contains zero."""


class PlottedLog(NamedItem, Protocol):
    """What is asked of a log: a `Recording`."""

    @property
    def rate(self) -> float:
        """Samples per second [Hz]."""

    @property
    def q(self) -> Array:
        """Positions, shape (samples, n) [rad or m]."""

    @property
    def tau(self) -> Array:
        """Torques, likewise [Nm or N]."""

    @property
    def dq(self) -> Array | None:
        """Speeds, likewise [rad/s or m/s]."""

    @property
    def qref(self) -> Array | None:
        """References of the positions, likewise [rad or m]."""

    @property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """Runs without a gap."""

    @property
    def joints(self) -> tuple[str, ...] | None:
        """Names of the joints."""

    @property
    def torque(self) -> str:
        """Whence torques are: ``measured``, ``none`` or ``law``."""

    @property
    def base(self) -> object:
        """Of a floating robot, what there is of its base."""

    @property
    def wrenches(self) -> Mapping[str, Array]:
        """Of contacts by name."""

    @property
    def touching(self) -> Mapping[str, Booleans]:
        """Which contacts bear."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was noticed when it was read."""
