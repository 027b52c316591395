"""A fit followed along joint states as they come, by `dynident.Tracker` and its causal filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.inertia import to_com
from dynident.core.words import format_number
from dynident.live.channels import Channels, collect_signals, find_channels
from dynident.live.messages import EVENTS, Message, NoticedChange
from dynident.live.stream import HEAD, Sample, StreamPace
from dynident.online.tracker import LoadEstimate
from dynident.recording.recording import Recording
from dynident.report.fit import Fit
from dynident.robot.model import Robot
from dynident.study.track import LogFollower, begin_following
from dynident.study.tracked import build_fit_setting

from .readings import NANOSECONDS, Reading


@dataclass(frozen=True)
class Status:
    """What a diagnostic message says."""

    warns: bool
    """Whether something is carried that the model does not have."""
    words: str
    values: tuple[tuple[str, str], ...]
    """Names and values."""


@dataclass(frozen=True, eq=False)
class CarriedLoad:
    """A load as messages have it, in the frame of the link that carries it."""

    link: str
    mass: float
    """[kg]"""
    com: Array
    """Shape (3,). [m]; NaN of a load without a positive mass."""
    inertia: Array
    """Shape (3, 3). About the centre of mass [kg m^2]; likewise."""
    force: Array
    torque: Array
    """`force`, `torque`: its weight, which acts on the link, about the frame's origin [N, Nm],
    shape (3,)."""


class Following:
    """A fit followed reading by reading.

    Parameters
    ----------
    fit : Fit
        What is known before the first reading. Its sigmas weigh the samples.
    rate : float, optional
        Of the readings [Hz]; told from the stamps of the first ones by default.
    **options
        Keys of ``[track]``: every, cutoff, link, memory, ...
    """

    def __init__(self, fit: Fit, rate: float | None = None, **options: Any) -> None:
        self.fit, self.rate = fit, rate
        self.setting = build_fit_setting(fit, **options)
        self.follower: LogFollower | None = None
        self.left_out = 0
        self._channels: Channels | None = None
        self._pace: StreamPace | None = None
        self._waiting: list[Reading] = []
        self._first = self._last = 0
        self._event: NoticedChange | None = None
        self._q = np.zeros(fit.robot.n)
        named = self.setting.study.track.model_dump().get("link")
        self.link = named or fit.robot.links[-1]

    def take(self, reading: Reading) -> list[Message]:
        """Take in one reading; what is to be published.

        Raises
        ------
        InputError
            For readings without effort or at another rate than they began, and a fit that cannot
            be followed.
        """
        if reading.tau is None:
            raise InputError("the joint states have no effort: nothing to follow")
        finite = np.all(np.isfinite(reading.q)) and np.all(np.isfinite(reading.tau))
        if reading.stamp <= self._last or not finite:
            self.left_out += 1
            return []
        if self._last == 0:
            self._first = reading.stamp
        self._last = reading.stamp
        if self.follower is None:
            self._waiting.append(reading)
            if self.rate is None and len(self._waiting) < HEAD:
                return []
            self._begin()
            waiting, self._waiting = self._waiting, []
            return [each for past in waiting for each in self._feed(past)]
        return self._feed(reading)

    def _begin(self) -> None:
        first = self._waiting[0]
        if self.rate is None:
            span = self._waiting[-1].stamp - first.stamp
            self.rate = (len(self._waiting) - 1) * NANOSECONDS / span
        assert first.tau is not None
        log = Recording("joint states", self.rate, first.q[None], first.tau[None])
        self._channels = find_channels(
            self.fit.robot, log, self.setting.measured, False, self.setting.instruments
        )
        self._pace = StreamPace(self.rate)
        self.follower = begin_following(self.setting, self._channels, None, None, self.rate)

    def _feed(self, reading: Reading) -> list[Message]:
        assert self.follower is not None
        assert self._channels is not None
        assert reading.tau is not None
        joints = {"q": reading.q[None], "tau": reading.tau[None]}
        values = self._channels.pack(collect_signals(joints, None, {}, {}))[0]
        self._q = reading.q
        assert self._pace is not None
        time = (reading.stamp - self._first) / NANOSECONDS
        self._pace.check(time, f"joint states, at {time:.3f} s")
        found = self.follower.feed(Sample(time, values, False))
        for each in found:
            if isinstance(each, NoticedChange):
                self._event = each
        return found

    @property
    def load(self) -> CarriedLoad | None:
        """What is carried now, where something is."""
        found = None if self.follower is None else self.follower.tracker.load
        return None if found is None else weigh_load(self.fit.robot, self.link, found, self._q)

    def describe(self) -> Status:
        """Parameters with their standard deviations, the load, and what was noticed last."""
        if self.follower is None:
            return Status(False, "waits for joint states", ())
        tracker = self.follower.tracker
        load, event = tracker.load, self._event
        words = "follows the model"
        values = [("samples", str(self.follower.taken)), ("left out", str(self.left_out))]
        if load is not None:
            words = f"carries {format_estimate(load.mass, float(load.std[0]))} kg on {self.link}"
            values.append(("load [kg]", format_estimate(load.mass, float(load.std[0]))))
        if event is not None:
            values.append(("noticed", f"{EVENTS[event.event.kind]} at {event.time:.3f} s"))
        columns = (self.follower.base.names, tracker.beta, tracker.std)
        values += [(name, format_estimate(*each)) for name, *each in zip(*columns, strict=True)]
        return Status(load is not None, words, tuple(values))


def format_estimate(value: float, std: float) -> str:
    """A value and its standard deviation."""
    return f"{format_number(value)} +- {format_number(std, 2)}"


def weigh_load(robot: Robot, link: str, load: LoadEstimate, q: Array) -> CarriedLoad:
    """A load in the frame of its link, with its weight there at a configuration."""
    down = turn_into_link(robot, link, q).T @ np.asarray(robot.gravity)
    com, inertia = np.full(3, np.nan), np.full((3, 3), np.nan)
    if load.mass > 0.0:
        _, com, inertia = to_com(load.phi)
    torque = np.cross(load.phi[1:4], down)
    return CarriedLoad(link, load.mass, com, inertia, load.mass * down, torque)


def turn_into_link(robot: Robot, link: str, q: Array) -> Array:
    """Axes of a link in those of the base of a fixed robot, as columns, shape (3, 3)."""
    rotation, body = np.eye(3), robot.links.index(link) + 1
    while body:
        joint = robot.joints[body - 1]
        turned = joint.rotation
        if joint.kind == "revolute":
            turned = turned @ pin.exp3(joint.axis * q[body - 1])
        rotation, body = turned @ rotation, joint.parent
    return rotation
