"""What may be wrong with a log, and how it is read then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dynident.core.arrays import Array, Booleans
from dynident.core.errors import ComputationError
from dynident.diagnosis.scene import Scene
from dynident.filters.shift import shift_in_time
from dynident.instants.squares import LeastSquares
from dynident.recording.repairs import (
    LogRepair,
    format_keys,
    format_toml,
    tell_repair,
    undo_lowpass,
)
from dynident.robot.model import Robot

Change = Callable[[Scene], Scene]


@dataclass(frozen=True, eq=False)
class Reading:
    """One way to read a log."""

    torque: Array
    """Shape (n, n). Row j: the combination of the logged torques that is joint j's."""
    delay: Array
    """By which joint j's torque then lags the motion [s], shape (n,)."""
    change: Change | None = None
    """The scene as it would have been: its motion, or its robot."""
    slowness: tuple[float, ...] = ()
    """a, or a and b, of a low-pass ``1 / (1 + a s + b s^2)`` of the torque that the change undoes;
    empty for none [s, s^2]."""

    @classmethod
    def plain(cls, n: int, change: Change | None = None) -> Reading:
        """The log as it stands, or with a change of the scene alone."""
        return cls(np.eye(n), np.zeros(n), change)

    @classmethod
    def of_repair(cls, repair: LogRepair, n: int) -> Reading:
        """The log as a repair would leave it."""
        torque = repair.signs("tau", n)[:, None] * np.eye(n)[repair.places("tau", n)]
        places, sign = repair.places("q", n), repair.signs("q", n)
        offset, delay, lag = (repair.sizes(each, n) for each in ("offset", "delay", "lag"))
        quick = repair.unfilter or {}
        still = np.all(sign == 1.0) and np.all(offset == 0.0) and np.all(places == np.arange(n))

        def change(s: Scene) -> Scene:
            if "q" in quick:
                s = s.quickened(quick["q"])
            if np.any(lag):
                s = s.lagged(lag)
            if not still:
                q, dq, ddq = (sign * x[:, places] for x in (s.q, s.dq, s.ddq))
                s = s.along(q + offset, dq, ddq)
            if "tau" in quick:
                s = s.driven(undo_lowpass(s.torque, repair.undoing("tau"), s.rate))
            return s

        none = still and not quick and not np.any(lag)
        return cls(torque, delay, None if none else change, quick.get("tau", ()))

    @property
    def touched(self) -> Booleans:
        """Joints whose torque is another, shape (n,)."""
        return np.asarray(np.any(self.torque != np.eye(len(self.torque)), axis=1))

    @property
    def combines(self) -> bool:
        """Whether it only combines the torques as they are logged."""
        return self.change is None and not np.any(self.delay)

    @property
    def turns_torques(self) -> bool:
        """Whether all that it does is to turn signs of torques."""
        turned = bool(np.all(np.abs(self.torque) == np.eye(len(self.torque))))
        return self.combines and turned

    def of(self, scene: Scene) -> Scene:
        """The scene, read in this way."""
        found = scene
        if np.any(self.touched):
            found = found.driven(found.torque @ self.torque.T)
        if np.any(self.delay != 0.0):
            found = found.driven(shift_in_time(found.torque, self.delay * found.rate))
        return found if self.change is None else self.change(found)

    def errors(self, scene: Scene, problem: LeastSquares, beta: Array) -> Array:
        """What a model leaves of the torques of a scene under this reading, as shares of them.

        What undoes a low-pass of the torque raises the noise in it, as no other reading does: so
        that they compare, what is left is counted behind that low-pass, of which the whole course
        of the motion has to be known. `problem` is the scene's under this reading.
        """
        errors = problem.errors(beta)
        if self.slowness and scene.course is not None:
            errors[: scene.n] = scene.errors_behind(self.slowness, beta)
        return errors


@dataclass(frozen=True, eq=False)
class Suspicion:
    """What may be wrong with a log, and the reading that undoes it."""

    diagnosis: str
    """``torque sign``; near its name in `DIAGNOSES`."""
    what: str
    """In words: ``torque of elbow has the opposite sign``."""
    reading: Reading
    repair: LogRepair | None = None
    """The same as the reading for the log's table in a study."""
    advice: str = ""
    """What else to do."""
    freedom: int = 0
    """Numbers that were fitted for it: of what explains a log alike, the least is believed."""
    unit: str | tuple[str, ...] | None = None
    """Of the positions, all or each, where that is what was wrong."""
    rate: float | None = None
    """Of the log, where that is what was wrong [Hz]."""
    keys: tuple[tuple[str, Any], ...] = ()
    """Keys of a base's sensors in the log's table, with what is right."""
    gravity: tuple[float, ...] | None = None
    """Of the robot, where that is what was wrong [m/s^2]."""
    error: float = 0.0
    """Largest standard error of what was measured; 0 for none."""
    sure: float = 0.0
    """How many standard errors by noise what was measured is from none, all of it."""
    fast: bool = False
    """Whether it may be in the torques above half of their cutoff alone."""
    measure: Callable[[Scene], Suspicion | None] | None = None
    """The same suspicion of a scene with its size and words; None if it is none."""

    @property
    def turns_all(self) -> bool:
        """Whether it reads the torques, or the positions, of all joints otherwise."""
        touched = self.reading.touched
        signs = (self.repair or LogRepair()).signs("q", len(touched))
        return bool(np.all(touched) or np.all(signs < 0.0))

    @property
    def lines(self) -> tuple[str, ...]:
        """What undoes it in the log's table."""
        if self.unit is not None:
            return (f"units = {{ q = {format_toml(self.unit)} }}",)
        if self.repair is not None:
            return self.repair.lines()
        return format_keys(self.keys)

    @property
    def remedy(self) -> str:
        """What to do, in words."""
        return tell_repair(self.lines) if self.lines else self.advice


class Suspected(NamedTuple):
    """A suspicion that more than the log speaks for, with joints' mean errors before and after."""

    suspicion: Suspicion
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class LogCase:
    """A log that is looked at."""

    scene: Scene
    beta: Array
    """Its best consistent model, shape (p,)."""
    errors: Array
    """Relative errors of that, of the log's joints and of those beside it, shape (groups,)."""
    bad: frozenset[int]
    """Joints that may be others, or turned round: that are not explained well."""

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.scene.robot

    @property
    def n(self) -> int:
        """Joints."""
        return self.robot.n

    @property
    def names(self) -> tuple[str, ...]:
        """Of the joints."""
        return self.robot.joint_names

    @cached_property
    def of_others(self) -> Array:
        """The best consistent model of the logs beside it."""
        problem = self.scene.others.problem
        assert problem is not None
        return fit_consistent_model(problem)


def make_repairable_suspicion(
    diagnosis: str, what: str, repair: LogRepair, n: int, freedom: int = 0, error: float = 0.0
) -> Suspicion:
    """A suspicion whose repair a log's table in a study has keys for."""
    reading = Reading.of_repair(repair, n)
    return Suspicion(diagnosis, what, reading, repair, error=error, freedom=freedom)


def suspect_scaled_joint(robot: Robot, joint: int, times: float, than: str) -> Suspicion:
    """The torque of a joint that is so many times what something else says."""
    name, torque = robot.joint_names[joint], np.eye(robot.n)
    torque[joint, joint] = 1.0 / times
    return Suspicion(
        "torque scale of a joint",
        f"the torque of {name} is {times:.3g} times {than}",
        replace(Reading.plain(robot.n), torque=torque),
        freedom=1,
        advice=f"check the gain, the unit and the reduction of {name}",
    )


def suspect_gravities(robot: Robot, size: float) -> Iterator[tuple[Robot, Suspicion]]:
    """Robots with gravity along other axes, and what is told of each but for its reading."""
    for axis in (*np.eye(3), *-np.eye(3)):
        gravity = size * axis
        if np.allclose(gravity, robot.gravity):
            continue
        along = ", ".join(f"{g:g}" for g in gravity + 0.0)
        yield (
            replace(robot, gravity=gravity),
            Suspicion(
                "mounting",
                f"the robot is mounted differently: gravity is along [{along}]",
                Reading.plain(robot.n),
                gravity=tuple(gravity.tolist()),
                advice=f"set gravity = [{along}] in [robot]",
            ),
        )


def fit_consistent_model(problem: LeastSquares) -> Array:
    """The best consistent model, or else that of least squares."""
    try:
        return problem.consistent()
    except ComputationError:
        return problem.system.solve()


def compute_column_rms(x: Array) -> Array:
    """Of each column; never zero."""
    return np.asarray(np.sqrt(np.mean(x**2, axis=0)) + np.finfo(float).eps)
