"""What plots take of logs and results, whatever holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from dynident.core.arrays import Array, Booleans, Integers


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """What it is called."""


class Timed(Named, Protocol):
    """What a log has over time."""

    @property
    def time(self) -> Array:
        """Shape (samples,) [s]."""

    @property
    def breaks(self) -> Integers:
        """Samples before which there is a gap."""


class Channel(Named, Protocol):
    """A joint, or what else has a signal of its own, and the signal's unit."""

    @property
    def unit(self) -> str:
        """Of its torque or position."""


class Stretch(Protocol):
    """Samples equally far apart; NaN at gaps."""

    @property
    def step(self) -> float:
        """Between them [s]."""

    @property
    def measured(self) -> Array:
        """[Nm or N]."""

    @property
    def residual(self) -> Array:
        """[Nm or N]."""


class Torques(Timed, Protocol):
    """Torques of one log over time; arrays have shape (samples, channels)."""

    @property
    def measured(self) -> Array:
        """[Nm or N]."""

    @property
    def predicted(self) -> Array:
        """[Nm or N]."""

    @property
    def nominal(self) -> Array | None:
        """Of the robot file's inertials alone [Nm or N]."""

    @property
    def parts(self) -> Mapping[str, Array]:
        """What the prediction is the sum of [Nm or N]."""

    @property
    def speed(self) -> Array:
        """[rad/s or m/s]."""

    @property
    def friction(self) -> Array:
        """Of the model, not low-passed [Nm or N]."""

    @property
    def torque(self) -> str:
        """What is called measured."""

    @property
    def scored(self) -> Booleans | None:
        """Samples that no filter's edge reaches, shape (samples,); None is all."""

    @property
    def fitted(self) -> Booleans | None:
        """Where there are rows that were fitted; None is everywhere."""

    @property
    def position(self) -> Array | None:
        """Of the joints, the last channels [rad or m]."""

    @property
    def temperature(self) -> Array | None:
        """Likewise [°C]."""

    @property
    def stretch(self) -> Stretch | None:
        """What spectra are of."""


class Positions(Timed, Protocol):
    """Positions of one log beside those of a simulation; arrays have shape (samples, n)."""

    @property
    def measured(self) -> Array:
        """[rad or m]."""

    @property
    def simulated(self) -> Array:
        """[rad or m]."""


class Correlated(Named, Protocol):
    """Residuals of one channel and their correlation with themselves."""

    @property
    def rows(self) -> int:
        """How many residuals there are."""

    @property
    def correlation(self) -> Array:
        """With the same 1, 2, ... rows later."""


class Interval(Named, Protocol):
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


class Stance(Protocol):
    """A contact that bears for a while."""

    @property
    def contact(self) -> str:
        """Its name."""

    @property
    def since(self) -> float:
        """[s]"""

    @property
    def until(self) -> float:
        """[s]"""

    @property
    def track(self) -> Array:
        """Where it was meanwhile, from above, shape (samples, 2) [m]."""


class Ground(Timed, Protocol):
    """What bears a floating robot over a log."""

    @property
    def contacts(self) -> Sequence[str]:
        """All of the robot."""

    @property
    def forces(self) -> Mapping[str, Array]:
        """Of each measured contact, upwards [N]."""

    @property
    def total(self) -> Array:
        """What sensors measured together, upwards [N]."""

    @property
    def asked(self) -> Array:
        """What the model takes for its motion [N]."""

    @property
    def weight(self) -> float:
        """Of the model [N]."""

    @property
    def path(self) -> Array:
        """Of the base from above, shape (samples, 2) [m]."""

    @property
    def stances(self) -> Sequence[Stance]:
        """Where contacts stood."""


class Log(Named, Protocol):
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
    def segments(self) -> tuple[tuple[int, int], ...]:
        """Runs without a gap."""

    @property
    def joints(self) -> tuple[str, ...] | None:
        """Names of the joints."""

    @property
    def torque(self) -> str:
        """Whence torques are."""

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
