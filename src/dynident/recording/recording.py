"""A log as it was measured: joint signals on one uniform clock, nothing filtered yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dynident.core.arrays import Array, Booleans, check_rate, freeze_array
from dynident.core.errors import InputError
from dynident.filters.blocks import LongSignal, cut_signal, find_run_extremes
from dynident.plots.overview import Overview, render_overview_card
from dynident.plots.panels import Panels
from dynident.plots.recordings import plot_recording, plot_recording_spectra
from dynident.recording.floating import LoggedBase, find_logged_robot
from dynident.recording.overview import build_overview, match_joints
from dynident.robot.drives import Drives
from dynident.robot.model import Equations, Robot

if TYPE_CHECKING:
    from dynident.plots.panels import Given

SIGNALS = ("q", "tau", "dq", "ddq", "qref", "dqref", "temp", "known", "unsigned")
"""What a recording can hold."""

Torque = Literal["measured", "none", "law", "commanded"]
COMMANDED: Literal["commanded"] = "commanded"
"""Of torques that a log's stated law made, which are fitted as measured ones are."""
"""Whence torques are: of sensors or currents; nowhere, and zeros; or a controller's law along the
measured motion."""


@dataclass(frozen=True, eq=False)
class OriginalSamples:
    """Samples as they were taken, where the clock of their recording has others."""

    at: Array
    """Shape (taken,). Where each is among the recording's samples: 2.5 is half a period after
    sample 2."""
    q: Array
    tau: Array
    """`q`, `tau`: positions and torques there [rad or m, Nm or N], shape (taken, n)."""

    def rows(self, start: int, stop: int) -> OriginalSamples:
        """Those within samples ``start:stop`` of the recording, which is then cut so."""
        inside = (self.at >= start) & (self.at < stop)
        return OriginalSamples(self.at[inside] - start, self.q[inside], self.tau[inside])


@dataclass(frozen=True)
class Recording:
    """Joint-side signals in SI units, sampled uniformly within each segment.

    Writable signals are copied, so later changes to them have no effect.

    >>> print(log.overview(robot))
    log ...

    Attributes
    ----------
    name : str
        Its name in messages: usually the file.
    rate : float
        Samples per second [Hz].
    q, tau : ndarray, shape (samples, n)
        Joint positions [rad or m] and torques [Nm or N].
    dq, ddq : ndarray, shape (samples, n), or None
        Measured derivatives where the log has them.
    qref, dqref : ndarray, shape (samples, n), or None
        References where the log has them.
    segments : tuple of (start, stop)
        Runs of samples without a gap.
    warnings : tuple of str
        What was noticed and changed while reading.
    drives : Drives or None
        The robot's, if known: `prepare` drops rows in which a coupled drive is at rest.
    repairs : tuple of str
        Repairs made while reading, as in a study: ``delay = 0.012``.
    joints : tuple of str, or None
        Names of the joints whose columns these are, where they are known: a `Problem` takes the
        columns of its robot's joints.
    temp : ndarray, shape (samples, n), or None
        Temperatures of the drives, where the log has them [deg C].
    known : ndarray, shape (samples, n), or None
        Torques on the joints that are known, where the log has them [Nm or N].
    torque : {"measured", "none", "law", "commanded"}
        Whence `tau` is; of a log without torques it holds zeros.
    base : LoggedBase or None
        Signals of a floating base.
    wrenches : mapping of str to ndarray, shape (samples, 3 or 6)
        Of contacts by name, as logged [N, Nm].
    touching : mapping of str to ndarray of bool, shape (samples,)
        Which contacts bear, where that is known.
    equations : {"full", "joints", "base", "null-space"}, or None
        That the log is to state; what it can by default.
    contact_speed : float
        A contact that is slower touches, where nothing else says so [m/s].
    locked : mapping of str to float
        Joints that were held at a value while it was taken [rad or m].
    size : int or None
        Of the files that it was read from [bytes]; None of one from memory.
    sampled : OriginalSamples or None
        Original samples, if `q` and `tau` were interpolated to the clock.
    unsigned : ndarray, shape (samples, n), or None
        Sizes of currents, of a log without torque [as logged].
    stamps : tuple of (sample, time)
        Time stamps where segments begin, from which `find_time` counts [s].
    of_motors : bool
        Whether signals of it were taken on the motors' side of the gears.

    Raises
    ------
    InputError
        If signals are not finite or differ in shape, or a segment is outside of them.
    """

    name: str
    rate: float
    q: Array
    tau: Array
    dq: Array | None = None
    ddq: Array | None = None
    qref: Array | None = None
    dqref: Array | None = None
    segments: tuple[tuple[int, int], ...] = ()
    warnings: tuple[str, ...] = ()
    drives: Drives | None = None
    repairs: tuple[str, ...] = ()
    joints: tuple[str, ...] | None = None
    temp: Array | None = None
    known: Array | None = None
    torque: Torque = "measured"
    base: LoggedBase | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    touching: Mapping[str, Booleans] = field(default_factory=dict)
    equations: Equations | None = None
    contact_speed: float = 0.02
    tared: bool = False
    locked: Mapping[str, float] = field(default_factory=dict)
    size: int | None = None
    sampled: OriginalSamples | None = None
    unsigned: Array | None = None
    stamps: tuple[tuple[int, float], ...] = ()
    of_motors: bool = False

    def __post_init__(self) -> None:
        check_rate(self.rate, self.name)
        for label in SIGNALS:
            if getattr(self, label) is not None:
                object.__setattr__(self, label, self._signal(label))
        if self.drives is not None and len(self.drives.turns) != self.q.shape[1]:
            raise InputError(
                f"{self.name}: has {self.q.shape[1]} joints, but its drives belong to a robot "
                f"with {len(self.drives.turns)}"
            )
        if self.joints is not None:
            object.__setattr__(self, "joints", tuple(self.joints))
            if len(self.joints) != self.q.shape[1] or len({*self.joints}) < len(self.joints):
                raise InputError(
                    f"{self.name}: has {self.q.shape[1]} columns of joints, named "
                    f"{', '.join(map(str, self.joints)) or 'none'}; each needs a name of its own"
                )
        samples = len(self.q)
        if not self.segments:
            object.__setattr__(self, "segments", ((0, samples),))
        end = 0
        for start, stop in self.segments:
            if not end <= start < stop <= samples:
                raise InputError(
                    f"{self.name}: segment ({start}, {stop}) is empty, outside the {samples} "
                    "samples or before the end of the last one"
                )
            end = stop
            for label in SIGNALS:
                self._refuse_non_finite(label, start, stop)

    def _signal(self, label: str) -> Array:
        """A signal as read-only numbers that fit the positions."""
        try:
            signal: Array = getattr(self, label)
            signal = signal if isinstance(signal, LongSignal) else freeze_array(signal)
        except (TypeError, ValueError) as error:
            what = "is not an array of numbers"
            raise InputError(f"{self.name}: {label} {what} ({error})") from error
        if signal.ndim != 2 or 0 in signal.shape:
            raise InputError(
                f"{self.name}: {label} has shape {signal.shape}; it needs a row a sample and a "
                "column a joint"
            )
        if signal.shape != self.q.shape:
            raise InputError(f"{self.name}: {label} has shape {signal.shape}, q has {self.q.shape}")
        return signal

    def _refuse_non_finite(self, label: str, start: int, stop: int) -> None:
        signal = getattr(self, label)
        if signal is None or np.isfinite(find_run_extremes(signal, [(start, stop)])).all():
            return
        sample, joint = (np.argwhere(~np.isfinite(signal[start:stop]))[0] + [start, 0]).tolist()
        raise InputError(
            f"{self.name}: {label}[{sample}, {joint}] is {signal[sample, joint]}, no finite "
            "number; leave such samples out with segments"
        )

    def __repr__(self) -> str:
        """One line, for a prompt."""
        return (
            f"<Recording {self.name}: {self.q.shape[1]} joints, {len(self.q)} samples, "
            f"{self.duration:.4g} s at {self.rate:g} Hz>"
        )

    @property
    def duration(self) -> float:
        """Seconds of motion in all segments."""
        return sum(stop - start for start, stop in self.segments) / self.rate

    def find_time(self, sample: int) -> float:
        """When a sample was taken, by the log's time stamps; from 0 on in a log without [s]."""
        before = (own for own in self.stamps if own[0] <= sample)
        at, time = max(before, default=(0, 0.0))
        return time + (sample - at) / self.rate

    def _repr_html_(self) -> str:
        """How much there is of it, and tables that fold, for a notebook."""
        return render_overview_card(build_overview(self))

    def overview(self, robot: Robot | None = None) -> Overview:
        """What the log holds at a glance, before anything is fitted.

        Ranges of positions, speeds and torques beside the robot's limits, the rate, segments
        between gaps, rest, and the steps in which its sensors count.

        Parameters
        ----------
        robot : Robot, optional
            Whose limits and units are told; the joints are matched by name, where the log has
            names.

        Returns
        -------
        Overview
            ``print(log.overview(robot))`` shows it.

        Raises
        ------
        InputError
            When the robot has not the joints of the log.
        """
        return build_overview(self, robot)

    def plot(self, axes: Given = None, *, robot: Robot | None = None) -> Panels:
        """Draw positions, with references where there are any, and torques over time.

        Of long logs the lowest and the highest value of each stretch are drawn, so that no spike
        is missed. A gap that cut the log when it was read takes no time.

        Parameters
        ----------
        axes : Axes or sequence of Axes, optional
            Two a joint, position and torque; one a joint where the log has no torques. A new
            figure's by default.
        robot : Robot, optional
            Whose units are written.

        Returns
        -------
        tuple of Axes
            Joint by joint: time [s], position [rad or m], torque [Nm or N].

        Raises
        ------
        InputError
            When the axes are of another number, or the robot has not the joints of the log.
        """
        return plot_recording(axes, *self._name_axes(robot), self)

    def spectrum(
        self, axes: Given = None, *, robot: Robot | None = None, bandwidth: float | None = None
    ) -> Panels:
        """Draw at which frequencies positions and torques are, and a bandwidth beside them.

        Amplitude densities by Welch's method, of the longest segment. A `bandwidth` below which
        the motion is, and above which there is noise alone, is what `prepare` takes.

        Parameters
        ----------
        axes : Axes or sequence of Axes, optional
            As many as of `plot`.
        robot : Robot, optional
            Whose units are written.
        bandwidth : float, optional
            A dashed line [Hz].

        Returns
        -------
        tuple of Axes
            Joint by joint: frequency [Hz], position and torque [their units by the root of Hz].

        Raises
        ------
        InputError
            When the axes are of another number, or the robot has not the joints of the log.
        """
        return plot_recording_spectra(axes, *self._name_axes(robot), self, bandwidth)

    def _name_axes(self, robot: Robot | None) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
        """Names of the joints, and units of their positions and torques."""
        robot = None if robot is None else find_logged_robot(robot)
        names, places = match_joints(self, robot)
        if robot is None or places is None:
            return names, [("rad or m", "Nm or N")] * len(names)
        straight = [robot.joints[place].kind == "prismatic" for place in places]
        return names, [("m", "N") if each else ("rad", "Nm") for each in straight]

    def rows(self, start: int, stop: int) -> Recording:
        """The same log cut to samples ``start:stop``.

        Raises
        ------
        InputError
            When the range is empty, outside the log or between its segments.
        """
        samples = len(self.q)
        if not 0 <= start < stop <= samples:
            raise InputError(
                f"{self.name}: rows {start}-{stop} are outside the log's {samples} samples"
            )
        inside = ((max(a, start) - start, min(b, stop) - start) for a, b in self.segments)
        kept, cut = tuple((a, b) for a, b in inside if a < b), slice(start, stop)
        if not kept:
            raise InputError(f"{self.name}: rows {start}-{stop} are in no segment of the log")
        signals: dict[str, Any] = {
            label: None if (own := getattr(self, label)) is None else cut_signal(own, cut)
            for label in SIGNALS
        }
        return replace(
            self,
            name=f"{self.name}[{start}:{stop}]",
            **signals,
            segments=kept,
            stamps=tuple((at - start, time) for at, time in self.stamps),
            base=None if self.base is None else self.base.rows(start, stop),
            wrenches={name: own[start:stop] for name, own in self.wrenches.items()},
            touching={name: own[start:stop] for name, own in self.touching.items()},
            sampled=None if self.sampled is None else self.sampled.rows(start, stop),
        )
