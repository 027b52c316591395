"""A log at the instants of its rows: all that a diagnosis looks at, and cheap to look at again.

Each equation, and each set of contacts that bear unmeasured, is a group of its own. Of such a set
the rows are combinations of the equations on which it does not act.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.diagnosis import thresholds as limit
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.contacts import apply_levers
from dynident.dynamics.equations import mark_touched_equations
from dynident.dynamics.parameters import Packing
from dynident.filters.blocks import low_pass_signals, take_every
from dynident.filters.filters import (
    count_filter_edge,
    filter_by_cutoff,
    interpolate_rows,
    subtract_lowpass,
)
from dynident.instants.motion import BASE, JOINTS, WRENCHES, Instants, MotionAt, Signals
from dynident.instants.squares import Columns, LeastSquares, factorise, join
from dynident.recording.prepare import BANDWIDTH, TORQUE_FACTOR, Samples
from dynident.recording.repairs import SETTLED
from dynident.regression.generalised import GeneralisedSamples, generalise_samples
from dynident.robot.model import Robot

TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class OtherLogs:
    """Logs of the same robot beside one, which the same model has to explain."""

    scenes: tuple[Scene, ...] = ()

    @cached_property
    def problem(self) -> LeastSquares | None:
        """Theirs; None without any."""
        return join([scene.problem for scene in self.scenes])


@dataclass(frozen=True, eq=False)
class Scene:
    """A log below its torques' cutoff, at some instants."""

    motion: MotionAt
    signals: Signals
    """Shapes (kept samples, columns). Of the whole log, so that they can be looked at later or
    earlier: torques, measured wrenches, the motion of a base that is not fixed."""
    course: Array | None
    """Shape (3, kept samples, n). Position, velocity and acceleration of the joints likewise; None
    where the motion is read otherwise than it is logged."""
    blur: Array
    """Share of each group's torque that any model leaves, as far as the drives' limits tell, shape
    (groups,)."""
    logged_torque: Array | None = None
    """Shape (kept samples, n). Of joints whose torques something was added to: errors stay shares
    of these."""
    others: OtherLogs = OtherLogs()

    @property
    def beside(self) -> tuple[Scene, ...]:
        """Other logs of the same robot, which the same model has to explain."""
        return self.others.scenes

    @property
    def log(self) -> GeneralisedSamples:
        """The log."""
        return self.motion.at.log

    @property
    def thin(self) -> int:
        """Of so many samples of the log, one is kept."""
        return self.motion.at.thin

    @property
    def instant(self) -> Integers:
        """Kept sample of each instant, shape (instants,)."""
        return self.motion.at.place

    @property
    def base(self) -> BaseParameters:
        """What the motion's regressor is of."""
        return self.motion.base

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.motion.robot

    @property
    def plain(self) -> bool:
        """Whether all groups are the torques of a fixed robot's joints, and all are stated."""
        robot = self.robot
        return not robot.floating and not robot.contacts and self.base.all_stated

    @property
    def q(self) -> Array:
        """Positions, shape (instants, n)."""
        return self.motion.q

    @property
    def dq(self) -> Array:
        """Velocities, shape (instants, n)."""
        return self.motion.dq

    @property
    def ddq(self) -> Array:
        """Accelerations, shape (instants, n)."""
        return self.motion.ddq

    @property
    def moving(self) -> Booleans:
        """Rows that may be fitted, shape (instants, dof)."""
        return self.motion.at.moving

    @property
    def n(self) -> int:
        """Joints."""
        return self.robot.n

    @property
    def groups(self) -> int:
        """Of the log alone."""
        return self.motion.groups

    @property
    def rate(self) -> float:
        """Of the signals [Hz]."""
        return self.motion.at.rate

    @property
    def torque(self) -> Array:
        """Of the joints as measured, shape (kept samples, n)."""
        return self.signals["tau"]

    @property
    def logged(self) -> tuple[Array, Array, Array]:
        """The joints' q, dq and ddq above the torque's cutoff, too, shapes (kept samples, n)."""
        q, dq, ddq = take_every((self.log.q, self.log.dq, self.log.ddq), self.thin)
        return q, dq, ddq

    @property
    def tau(self) -> Array:
        """Torque at the instants, shape (instants, n)."""
        return self.torque[self.instant]

    @property
    def wrenches(self) -> tuple[str, ...]:
        """Contacts that are measured."""
        return tuple(c.name for c in self.robot.contacts if WRENCHES + c.name in self.signals)

    @property
    def applied(self) -> Array:
        """What torques and wrenches do in each equation, shape (instants, dof)."""
        first = self.robot.dof - self.n
        found = np.hstack([np.zeros((len(self.instant), first)), self.tau])
        for contact in self.robot.contacts:
            if contact.name in self.wrenches:
                wrench = self.signals[WRENCHES + contact.name][self.instant]
                found += apply_levers(self.motion.levers[contact.name], contact, wrench)
        return found

    @cached_property
    def sides(self) -> list[Array]:
        """Right-hand sides of the groups."""
        return self.motion.gather(self.motion.spread(self.applied))

    def rest(self, beta: Array) -> Array:
        """What a model leaves of all equations, shape (instants, dof)."""
        return np.asarray(self.applied - self.motion.predict(beta))

    def driven(self, torque: Array) -> Scene:
        """With other torques."""
        return replace(self, signals={**self.signals, "tau": torque})

    def relieved(self, theta: Array, q: Array, dq: Array, ddq: Array) -> Scene:
        """With the torques but for what standard parameters ask for along a motion."""
        less = self.driven(self.torque - self.base.idim.torque(theta, q, dq, ddq))
        return replace(less, logged_torque=self.torque)

    def saying(self, signals: Signals) -> Scene:
        """With other signals."""
        found = replace(self, signals={**self.signals, **signals})
        if self.motion.beside.keys() & signals.keys():
            beside = {name: found.signals[name][self.instant] for name in self.motion.beside}
            return replace(found, motion=replace(self.motion, beside=beside))
        return found

    def lagged(self, seconds: Array) -> Scene:
        """With each joint's motion as it stands so many seconds later; needs the course."""
        assert self.course is not None
        lag = seconds * self.rate
        q, dq, ddq = self.course[:, self.instant]
        for j in np.flatnonzero(lag):
            moved = interpolate_rows(self.course[:, :, j].T, self.instant + lag[j])
            q[:, j], dq[:, j], ddq[:, j] = moved.T
        at = replace(self.motion.at, speeds=self.course[1], lag=lag)
        return replace(self, motion=replace(self.motion, at=at)).along(q, dq, ddq)

    def quickened(self, slowness: Sequence[float]) -> Scene:
        """With a low-pass undone that the motion went through; needs the course.

        The slowness is a, b, ...: a signal x was ``x + a x' + b x'' + ...`` [s, s^2, ...].
        """
        assert self.course is not None
        derivatives = [*self.course]
        for _ in slowness:
            derivatives.append(np.gradient(derivatives[-1], 1.0 / self.rate, axis=0))
        course = [
            derivatives[k] + sum(a * derivatives[k + 1 + i] for i, a in enumerate(slowness))
            for k in range(3)
        ]
        return self.following(np.array(course), SETTLED * slowness[0])

    def quicker(self, factor: float) -> Scene:
        """With a clock that runs so many times as fast.

        What was filtered in the log's own time has then been filtered so many times as lightly: it
        is filtered once more where that is far off, the course is known, and the log long enough.
        """
        plain = self.along(self.q, factor * self.dq, factor**2 * self.ddq)
        usual = TORQUE_FACTOR * BANDWIDTH  # of a log in seconds; another's may be far below
        cutoffs = tuple(min(f.cutoff, max(f.cutoff, usual) / factor) for f in self.log.filters)
        low = self.below(cutoffs) if factor >= limit.FAR_OFF else None
        if low is None or low.course is None:
            return plain
        return low.following(np.array([1.0, factor, factor**2])[:, None, None] * low.course)

    def below(self, cutoffs: tuple[float, ...]) -> Scene | None:
        """Low-passed once more [Hz]; None without the course, or of a log too short for that."""
        if self.course is None or (
            min(cutoffs) * len(self.torque) < limit.CUTOFF_PERIODS * self.rate
        ):
            return None
        torque, *course = (x.copy() for x in (self.torque, *self.course))
        for start, stop in self.log.runs:
            own = slice(-(-start // self.thin), -(-stop // self.thin))
            for x in (torque, *course):
                x[own] = filter_by_cutoff(x[own], cutoffs, self.rate)
        low = self.driven(torque).following(np.array(course))
        return replace(low, course=np.array(course))

    def errors_behind(self, slowness: Sequence[float], beta: Array) -> Array:
        """What a model leaves of torques that went through a low-pass, if it goes through it, too.

        Needs the course. The low-pass is ``1 / (1 + a s + b s^2)``, its slowness a, or a and b [s,
        s^2]. What is left are shares of the joints' torques, shape (n,); 0 where there is none.
        """
        assert self.course is not None
        model = self.base.idim.torque(self.base.standard(beta), *self.course)
        left = np.zeros_like(model)
        for start, stop in trim_edges(self.log):
            own = slice(start // self.thin, stop // self.thin + 1)
            left[own] = subtract_lowpass(self.torque[own], model[own], slowness, self.rate)
        rest, square = (
            np.sum(x[self.instant] ** 2 * self.moving, axis=0) for x in (left, self.torque)
        )
        share = np.zeros(self.n)
        np.divide(rest, square, out=share, where=square > 0.0)
        return np.asarray(np.sqrt(share))

    def following(self, course: Array, settling: float = 0.0) -> Scene:
        """The same torques on another course of the motion, that settles first [s]."""
        at = replace(self.motion.at, speeds=course[1], lag=None, settling=settling)
        return replace(self, motion=replace(self.motion, at=at)).along(*course[:, self.instant])

    @cached_property
    def columns(self) -> Columns:
        """All that least squares needs of a fixed robot's log, and of those beside it."""
        return self.factorise(self.tau)

    def factorise(self, torques: Array) -> Columns:
        """The same of other columns that a reading may combine, shape (instants, m)."""
        factors = self.motion.factors
        pairs = [own.split(torques[at]) for own, at in zip(factors, self.moving.T, strict=True)]
        sides, rests = tuple(z for z, _ in pairs), tuple(factorise(rest) for _, rest in pairs)
        rows, beside = self.motion.count, self.others.problem
        return Columns(self.base, factors, sides, rests, rows, self.blur, beside)

    @cached_property
    def problem(self) -> LeastSquares:
        """The least-squares problem of the log as it stands, and of those beside it."""
        factors, borne = self.motion.factors, self.contact_squares
        pairs = [own.split(y) for own, y in zip(factors, self.sides, strict=True)]
        sides = tuple(z for z, _ in pairs)
        rests = np.array([float(rest @ rest) for _, rest in pairs])
        squares = np.array([float(y @ y) for y in self.sides])
        sizes = np.where(borne > 0.0, borne, squares)
        if self.logged_torque is not None:
            sizes = np.sum(self.logged_torque[self.instant] ** 2 * self.moving, axis=0)
        count, beside = self.motion.count, self.others.problem
        return LeastSquares(self.base, factors, sides, rests, count, self.blur, sizes, beside)

    @cached_property
    def clear_groups(self) -> Booleans:
        """Groups of all logs of which noise is little, if they are joints' torques; else all."""
        blur = np.concatenate([each.blur for each in (self, *self.beside)])
        return np.asarray((blur < limit.DROWNED) | (not self.plain))

    @property
    def contact_squares(self) -> Array:
        """Squares of the motors' torques where contacts take most of them, shape (groups,).

        Zero of what is counted in its own size: the base's wrench and what no measured contact
        acts on. What is left beside measured contacts is small, and each reading another share
        of it.
        """
        found = np.zeros(self.groups)
        if self.wrenches:
            tree, dof = self.base.idim.tree, self.robot.dof
            first = dof - self.n
            acting = mark_touched_equations(tree, self.robot, self.wrenches)[first:]
            squares = np.sum(self.tau**2 * self.moving[:, first:], axis=0)
            found[first:dof] = np.where(acting, squares, 0.0)
        return found

    @cached_property
    def brief(self) -> Scene:
        """The same at fewer instants."""
        some = slice(None, None, max(1, len(self.instant) // limit.BRIEF))
        m = self.motion
        at = replace(m.at, place=m.at.place[some])
        beside = {name: own[some] for name, own in m.beside.items()}
        motion = replace(m, at=at, q=m.q[some], dq=m.dq[some], ddq=m.ddq[some], beside=beside)
        return replace(self, motion=motion).among(other.brief for other in self.beside)

    @cached_property
    def lowered(self) -> Scene | None:
        """All logs below half their torques' cutoffs; None where one is not known there."""
        logs = (self, *self.beside) if self.plain else ()
        low = [s.below(tuple(0.5 * f.cutoff for f in s.log.filters)) for s in logs]
        known = [s for s in low if s is not None]
        return known[0].among(known[1:]) if known and len(known) == len(low) else None

    def among(self, others: Iterable[Scene]) -> Scene:
        """The log beside others."""
        return replace(self, others=OtherLogs(tuple(others)))

    def along(self, q: Array, dq: Array, ddq: Array) -> Scene:
        """The same torques on another motion."""
        return replace(self, motion=self.motion.along(q, dq, ddq), course=None)

    def of(self, base: BaseParameters, packing: Packing) -> Scene:
        """The same log of another robot; `packing` is of its base parameters."""
        return replace(self, motion=replace(self.motion, base=base, packing=packing))


def take_scene(
    base: BaseParameters,
    samples: Samples,
    sets: Sequence[tuple[str, ...]] = (),
    most: int = limit.MOST,
) -> Scene:
    """Low-pass a log's signals alike, and keep some of its instants, as many as `most`.

    Sets are unmeasured contacts that bear somewhere in any of the logs.
    """
    log = generalise_samples(base.idim, samples)
    robot, tree, n = base.idim.robot, base.idim.tree, base.idim.robot.n
    cutoffs = tuple(f.cutoff for f in log.filters[-n:])
    if robot.floating or log.wrenches or sets:  # which equations have in common
        cutoffs = (min(cutoffs),) * n
    thin = max(1, int(log.rate / (limit.THIN * max(cutoffs))))
    raw = {label: getattr(log, label) for label in JOINTS} | {"tau": log.reference}
    raw = {label: x if x.shape[1] == n else x[:, -n:] for label, x in raw.items()}
    dead = np.ptp(raw["tau"], axis=0) == 0.0
    if np.any(dead):  # what is one number throughout says nothing of its joint, nor of others
        raw["tau"] = np.where(dead, 0.0, raw["tau"])
    if robot.floating and log.base is not None:
        raw |= {label: getattr(log.base, label) for label in BASE}
    raw |= {WRENCHES + name: own for name, own in log.wrenches.items()}
    each = [(cutoffs * own.shape[1])[: own.shape[1]] for own in raw.values()]
    course = np.zeros((len(JOINTS), -(-len(log.q) // thin), n))
    found = low_pass_signals([*raw.values()], log.runs, log.rate, each, thin, course)
    signals = dict(zip(raw, found, strict=True))
    if "pose" in signals:
        turn = signals["pose"][:, 3:]
        turn /= np.maximum(np.linalg.norm(turn, axis=1, keepdims=True), TINY)
    half = log.filters[0].half if sets else 0  # no rows about which the contacts change
    inner = [(start + half, stop - half) for start, stop in log.segments]
    length = sum(stop - start for start, stop in inner)
    step = max(min(f.step for f in log.filters), -(-length // most))
    sample = np.concatenate(
        [np.arange(start + min(step, stop - start) // 2, stop, step) for start, stop in inner]
    )
    clear = np.zeros(len(log.q), dtype=bool)
    for start, stop in trim_edges(log):
        clear[start:stop] = True
    place = sample[clear[sample]] // thin
    signals = {label: own for label, own in signals.items() if label not in JOINTS}
    stated = log.observed.rows(robot)
    acting = {s: np.flatnonzero(mark_touched_equations(tree, robot, s) & stated) for s in sets}
    at = Instants(log, thin, place, base.idim.structure.turning, course[1], acting)
    felt = (*BASE, *(WRENCHES + sensor.contact for sensor in log.observed.sensors))
    beside = {label: own[place] for label, own in signals.items() if label in felt}
    q, dq, ddq = course[:, place]  # low-passed: loops are not quite closed
    motion = MotionAt(base, base.idim.packing(base.kept), at, q, dq, ddq, beside)
    scene = Scene(motion.along(q, dq, ddq), signals, course, np.ones(motion.groups))
    return replace(scene, blur=estimate_blur(scene)) if scene.plain else scene


def estimate_blur(s: Scene) -> Array:
    """Share of each joint's torque that any model leaves, shape (n,).

    That of friction, cables and seals which no model has goes with a drive's size.
    """
    square = np.sum(s.tau**2 * s.moving, axis=0)
    strength = np.sqrt(square / np.maximum(1, s.moving.sum(axis=0)))
    effort = measure_unexplained_effort(s.robot, strength, np.ones(s.n))
    rough = np.hypot(limit.BLUR, limit.ROUGH_DRIVE / np.maximum(effort, TINY))
    return np.asarray(np.minimum(rough, 1.0))


def measure_unexplained_effort(robot: Robot, torque: Array, errors: Array) -> Array:
    """What is left of the joints' rms torques, as shares of their drives' effort limits.

    Infinite for joints without a limit, and of all where no drive is at work: then limits or
    torques may be in another unit.
    """
    limits = np.array([joint.effort for joint in robot.joints])
    known = np.isfinite(limits) & (limits > 0.0)
    work: Array = np.divide(torque, limits, out=np.zeros(robot.n), where=known)
    if not np.any(work > limit.AT_WORK):
        return np.full(robot.n, np.inf)
    return np.where(known, work * errors, np.inf)


def trim_edges(samples: Samples) -> list[tuple[int, int]]:
    """What of each run the edges of the torque's low-pass leave."""
    margin = count_filter_edge(min(f.cutoff for f in samples.filters), samples.rate)
    edges = [(start + margin, stop - margin) for start, stop in samples.runs]
    return [(start, stop) for start, stop in edges if start < stop]
