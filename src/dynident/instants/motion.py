"""A log's motion at some instants, with the rows of the regressor there.

Each equation, and each set of contacts that bear unmeasured, is a group of its own. Of such a set
the rows are combinations of the equations on which it does not act.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.errors import InputError
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.columns import fill_rows
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.contacts import evaluate_levers
from dynident.dynamics.parameters import Packing
from dynident.filters.blocks import take_every
from dynident.filters.filters import DecimationFilter
from dynident.filters.shift import shift_in_time
from dynident.instants.null_spaces import find_null_spaces
from dynident.instants.squares import Factor
from dynident.recording.floating import BaseMotion
from dynident.regression.generalised import GeneralisedSamples
from dynident.robot.model import Robot

Signals = dict[str, Array]
"""Of a log by name, shapes (samples, columns)."""
JOINTS, BASE = ("q", "dq", "ddq"), ("pose", "twist", "acceleration")
WRENCHES = "wrench "
"""Beginning of the names of wrenches: then the contact's."""
ENOUGH = 0.3
"""Share of a joint's instants that has to keep its direction."""
FILTER_REACH = 1.0
"""How far a filter looks, in periods of its cutoff."""


@dataclass(frozen=True, eq=False)
class Instants:
    """Where a log is looked at, and which rows there may be fitted."""

    log: GeneralisedSamples
    thin: int
    """Of so many samples of the log, one is kept."""
    place: Integers
    """Kept sample of each, shape (instants,)."""
    turns: Array
    """How all that rubs turns with the joints, shape (gears, n)."""
    speeds: Array
    """Of the joints, shape (kept samples, n)."""
    sets: dict[tuple[str, ...], Integers] = field(default_factory=dict)
    """By the names of unmeasured contacts that bear somewhere in any of the logs: equations that
    they act on, and that the log would state."""
    lag: Array | None = None
    """So many kept samples later the speeds are those of this motion, shape (n,)."""
    settling: float = 0.0
    """How long after the beginning of a segment they are not right [s]."""

    @property
    def rate(self) -> float:
        """Of the kept samples [Hz]."""
        return self.log.rate / self.thin

    @cached_property
    def positions(self) -> Array:
        """Of the joints above the torque's cutoff, too, shape (kept samples, n)."""
        return take_every((self.log.q,), self.thin)[0]

    @cached_property
    def steady(self) -> Booleans:
        """Equations whose joints keep their direction, shape (instants, dof)."""
        log, n = self.log, self.speeds.shape[1]
        speeds = self.speeds if self.lag is None else shift_in_time(self.speeds, self.lag)
        found = np.ones((len(self.place), len(log.filters)), dtype=bool)
        found[:, -n:] = find_steady_instants(
            speeds, self.place, self.rate, log.filters[-n:], self.turns
        )
        sample = self.place * self.thin
        for start, _ in log.segments if self.settling else ():
            unsettled = (sample >= start) & (sample < start + self.settling * log.rate)
            found &= ~unsettled[:, None]
        return found

    @cached_property
    def moving(self) -> Booleans:
        """Rows that may be fitted without any combination, shape (instants, dof)."""
        return np.asarray(self.log.moving[self.place * self.thin] & self.steady)

    @cached_property
    def member(self) -> Integers:
        """Which of the sets bears, -1 for none, shape (instants,)."""
        sample, found = self.place * self.thin, np.full(len(self.place), -1)
        for (start, stop), names in zip(self.log.segments, self.log.sets, strict=True):
            if names in self.sets:
                found[(start <= sample) & (sample < stop)] = [*self.sets].index(names)
        for k, acting in enumerate(self.sets.values()):
            steady, here = np.all(self.steady[:, acting], axis=1), found == k
            if here.any() and np.mean(steady[here]) >= ENOUGH:
                found[here & ~steady] = -1
        return found


@dataclass(frozen=True, eq=False)
class MotionAt:
    """A motion of a robot at some instants, with the regressor along it."""

    base: BaseParameters
    packing: Packing
    """Of the base parameters' columns."""
    at: Instants
    q: Array
    dq: Array
    ddq: Array
    """`q`, `dq`, `ddq`: of the joints, below the torque's cutoff, shape (instants, n)."""
    beside: Signals = field(default_factory=dict)
    """At the instants: the motion of a base that is not fixed, and wrenches of sensors of which
    something is estimated."""

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.idim.robot

    def along(self, q: Array, dq: Array, ddq: Array) -> MotionAt:
        """Another motion, of a robot with loops that of its driven joints.

        Where the loops cannot be closed along it, nothing is told, and no row is left.
        """
        closure = self.base.idim.structure.closure
        if closure is None:
            return replace(self, q=q, dq=dq, ddq=ddq)
        try:
            q, dq, ddq = closure.follow(q, dq, ddq)
        except InputError:
            return replace(self, at=replace(self.at, settling=np.inf))
        return replace(self, q=q, dq=dq, ddq=ddq)

    @cached_property
    def coordinates(self) -> tuple[Array, Array, Array]:
        """Of all equations."""
        base = self.at.log.base
        if not self.robot.floating or base is None:
            return self.q, self.dq, self.ddq
        pose, twist, acceleration = (self.beside[label] for label in BASE)
        own = BaseMotion(pose, twist, acceleration, base.proper, base.oriented, base.still)
        moved = own.motion(self.robot.gravity)
        q, dq, ddq = map(np.hstack, zip(moved, (self.q, self.dq, self.ddq), strict=True))
        return q, dq, ddq

    @property
    def conditions(self) -> Conditions:
        """What sensors of which something is estimated feel."""
        sensors = self.at.log.observed.sensors
        return Conditions(wrenches={s: self.beside[WRENCHES + s.contact] for s in sensors})

    @cached_property
    def levers(self) -> Signals:
        """Of contacts that are measured or in a set, shapes (instants, components, dof)."""
        names = {*self.at.log.wrenches, *chain(*self.at.sets)}
        return {
            c.name: evaluate_levers(self.base.idim.tree, self.robot, c, self.coordinates[0])
            for c in self.robot.contacts
            if c.name in names
        }

    @cached_property
    def untouched(self) -> tuple[tuple[Array, int], ...]:
        """Per set of contacts: scaled combinations of the equations on which it does not act.

        Orthonormal, shape (instants of the set, combinations, equations), zero where it acts on
        one more; and how many are not.
        """
        found = []
        for k, (names, acting) in enumerate(self.at.sets.items()):
            some = self.at.member == k
            J = np.concatenate([self.levers[name][some][:, :, acting] for name in names], axis=1)
            found.append(find_null_spaces(np.swapaxes(J, 1, 2) / self.scale[acting, None]))
        return tuple(found)

    @property
    def scale(self) -> Array:
        """By which equations are combined; one where nothing is."""
        scale = self.at.log.scale
        return np.ones(self.robot.dof) if scale is None else scale

    @cached_property
    def rows(self) -> tuple[tuple[Integers, Array], ...]:
        """Per group its columns among the base parameters, and its rows of the regressor there."""
        q, dq, ddq = self.coordinates
        packed = np.empty((len(q), self.packing.width))
        fill_rows(self.base.idim, self.packing, q, dq, ddq, packed, conditions=self.conditions)
        found = [
            (columns, packed[self.at.moving[:, i], entries])
            for i, (entries, columns) in enumerate(self.packing.joints)
        ]
        for k, (N, _) in enumerate(self.untouched):
            some, acting = self.at.member == k, [*self.at.sets.values()][k]
            columns = np.unique(np.concatenate([self.packing.joints[i][1] for i in acting]))
            stated = np.zeros((len(N), len(acting), len(columns)))
            for row, i in enumerate(acting):
                slots, own = self.packing.joints[i]
                stated[:, row, np.searchsorted(columns, own)] = packed[some, slots] / self.scale[i]
            found.append((columns, (N @ stated).reshape(-1, len(columns))))
        return tuple(found)

    @property
    def groups(self) -> int:
        """Equations, and sets of contacts."""
        return self.robot.dof + len(self.at.sets)

    @property
    def count(self) -> int:
        """Rows that say something."""
        return int(np.sum(self.at.moving)) + sum(count for _, count in self.untouched)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """Of the groups' rows."""
        return tuple(Factor(columns, *np.linalg.qr(X)) for columns, X in self.rows)

    def spread(self, values: Array) -> tuple[Array, ...]:
        """Right-hand sides of all equations: as they are, and what no set of contacts adds to.

        The latter are projections, which change steadily with the motion as combinations do not.
        Values have the shape (instants, dof).
        """
        found = [values]
        for k, (acting, (N, _)) in enumerate(
            zip(self.at.sets.values(), self.untouched, strict=True)
        ):
            own = values[self.at.member == k][:, acting] / self.scale[acting]
            found.append(np.einsum("tca,tc->ta", N, np.einsum("tca,ta->tc", N, own)))
        return tuple(found)

    def gather(self, spread: Sequence[Array]) -> list[Array]:
        """What stands in the rows of each group, of what was spread."""
        first, *others = spread
        found = [first[at, i] for i, at in enumerate(self.at.moving.T)]
        combined = zip(self.untouched, others, strict=True)
        return found + [np.einsum("tca,ta->tc", N, own).ravel() for (N, _), own in combined]

    @cached_property
    def when(self) -> list[Integers]:
        """The instant of each row of each group."""
        found = [np.flatnonzero(at) for at in self.at.moving.T]
        for k, (N, _) in enumerate(self.untouched):
            found.append(np.repeat(np.flatnonzero(self.at.member == k), N.shape[1]))
        return found

    def predict(self, beta: Array) -> Array:
        """A model's right-hand sides of all equations, shape (instants, dof)."""
        idim, theta = self.base.idim, self.base.standard(beta)
        return idim.torque(theta, *self.coordinates, conditions=self.conditions)


def find_steady_instants(
    dq: Array, place: Integers, rate: float, filters: Sequence[DecimationFilter], turns: Array
) -> Booleans:
    """Instants about which all that rubs on a joint turns one way for as long as the filter looks.

    Coulomb friction turns within the filter elsewhere, and the sign at one instant is not what
    the filter makes of it. What hardly keeps any direction leaves no instants out.
    """
    keep = np.ones((len(place), dq.shape[1]), dtype=bool)
    last = len(dq) - 1
    turned = np.zeros((len(turns), len(dq)), dtype=np.int32)
    for own, gear in zip(turned, turns, strict=True):
        sign = np.sign(dq @ gear)
        np.cumsum(sign[1:] != sign[:-1], out=own[1:])
    for j, filtered in enumerate(filters):
        reach = int(np.ceil(FILTER_REACH * rate / filtered.cutoff))
        before, after = np.maximum(place - reach, 0), np.minimum(place + reach, last)
        for own in turned[turns[:, j] != 0.0]:
            steadily = own[before] == own[after]
            if np.mean(steadily) >= ENOUGH:
                keep[:, j] &= steadily
    return keep
