"""A log of a floating robot as the doctor reads it: signals, and the equations that they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.diagnosis.moments import Normal
from dynident.diagnosis.snapshot import ENOUGH, MOST, THIN, low_passed, steady
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.contacts import pulled
from dynident.dynamics.equations import SINGULAR, contact_jacobian, touched
from dynident.dynamics.parameters import Packing
from dynident.recording.floating import BaseMotion
from dynident.regression.generalised import GeneralisedSamples
from dynident.robot.model import Robot

Signals = dict[str, Array]
"""Of a log by name, shapes (samples, columns)."""
Reading = Callable[[Signals], Signals]

MOTION = ("q", "dq", "ddq", "pose", "twist", "acceleration")
JOINTS, BASE = MOTION[:3], MOTION[3:]
WRENCHES = "wrench "
"""Beginning of the names of wrenches: then the contact's."""


@dataclass(frozen=True, eq=False)
class Design:
    """The regressor along one motion at the instants, and how right-hand sides are combined.

    Attributes
    ----------
    q : ndarray, shape (instants, coordinates)
        Of all equations.
    rows : tuple of (columns, X)
        Per group: base parameters, and its rows.
    taken : tuple of ndarray
        Per set of contacts: directions of the scaled equations that it acts on, which its group
        is projected across.
    count : int
        Rows that say something.
    XX : ndarray, shape (groups, p, p)
    """

    q: Array
    rows: tuple[tuple[Integers, Array], ...]
    taken: tuple[Array, ...]
    count: int
    XX: Array


@dataclass(frozen=True, eq=False)
class Scene:
    """A log of a floating robot below its torques' cutoff, and instants at which it is looked at.

    Attributes
    ----------
    base : BaseParameters
    log : GeneralisedSamples
    thin : int
        Of so many samples of the log, one is kept.
    signals : dict
        Kept samples of joints, base and wrenches, before they are made equations.
    instant : ndarray of int, shape (instants,)
        Kept sample of each.
    shown : ndarray of bool, shape (instants, dof)
        Equations that hold without any combination.
    sets : tuple of tuple of str
        Unmeasured contacts that act somewhere in any of the logs.
    member : ndarray of int, shape (instants,)
        Which of these acts; -1 for none.
    packing : Packing
        Of the base parameters' columns.
    """

    base: BaseParameters
    log: GeneralisedSamples
    thin: int
    signals: Signals
    instant: Integers
    shown: Booleans
    sets: tuple[tuple[str, ...], ...]
    member: Integers
    packing: Packing

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.base.idim.robot

    @property
    def rate(self) -> float:
        """Of the signals [Hz]."""
        return self.log.rate / self.thin

    @property
    def wrenches(self) -> tuple[str, ...]:
        """Contacts that are measured."""
        return tuple(n.removeprefix(WRENCHES) for n in self.signals if n.startswith(WRENCHES))

    @cached_property
    def design(self) -> Design:
        """That of the log as it stands."""
        return self.designed(self.signals)

    @cached_property
    def normal(self) -> Normal:
        """The least-squares problem of the log as it stands."""
        return self.read(self.signals)

    def acting(self, names: tuple[str, ...]) -> Integers:
        """Equations that a set of contacts acts on, and that the log would state."""
        tree = self.base.idim.tree
        found = touched(tree, self.robot, names) & self.log.observed.rows(self.robot)
        return np.flatnonzero(found)

    def motion(self, signals: Signals) -> tuple[Array, Array, Array]:
        """Of all equations, at the instants."""
        parts = tuple(signals[label][self.instant] for label in JOINTS)
        base = self.log.base
        if base is None:
            return parts  # type: ignore[return-value]
        pose, twist, acceleration = (signals[label][self.instant] for label in BASE)
        own = BaseMotion(pose, twist, acceleration, base.proper, base.oriented, base.still)
        moved = own.motion(self.robot.gravity)
        return tuple(np.hstack(pair) for pair in zip(moved, parts, strict=True))  # type: ignore[return-value]

    def designed(self, signals: Signals) -> Design:
        """The regressor along the motion of some signals."""
        idim = self.base.idim
        packing = self.packing
        q, dq, ddq = self.motion(signals)
        packed = np.empty((len(q), packing.width))
        around = {each: self.signal(signals, each.contact) for each in self.log.observed.sensors}
        idim.fill(packing, q, dq, ddq, packed, conditions=Conditions(wrenches=around))
        rows = [
            (columns, packed[self.shown[:, i], entries])
            for i, (entries, columns) in enumerate(packing.joints)
        ]
        count = int(np.sum(self.shown))
        taken = []
        for k, names in enumerate(self.sets):
            some, acting = self.member == k, self.acting(names)
            scale = self.scale[acting]
            J = contact_jacobian(idim.tree, self.robot, names, q[some])[:, :, acting]
            U, s, _ = np.linalg.svd(np.swapaxes(J, 1, 2) / scale[:, None], full_matrices=False)
            U = U * (s > SINGULAR * s[:, :1])[:, None, :]
            columns = np.unique(np.concatenate([packing.joints[i][1] for i in acting]))
            X = np.zeros((len(U), len(acting), len(columns)))
            for place, i in enumerate(acting):
                entries, own = packing.joints[i]
                X[:, place, np.searchsorted(columns, own)] = packed[some, entries] / scale[place]
            rows.append((columns, across(U, X).reshape(-1, len(columns))))
            taken.append(U)
            count += int(len(acting) * len(U) - np.sum(U**2))
        XX = np.zeros((len(rows), self.base.count, self.base.count))
        for own_XX, (columns, X) in zip(XX, rows, strict=True):
            own_XX[np.ix_(columns, columns)] = X.T @ X
        return Design(q, tuple(rows), tuple(taken), count, XX)

    @property
    def scale(self) -> Array:
        """By which equations are combined; one where nothing is."""
        return np.ones(self.robot.dof) if self.log.scale is None else self.log.scale

    def signal(self, signals: Signals, contact: str) -> Array:
        """A contact's wrench at the instants."""
        return signals[WRENCHES + contact][self.instant]

    def sides(self, design: Design, signals: Signals) -> list[Array]:
        """Right-hand sides of the groups."""
        first = self.robot.dof - self.robot.n
        tau = np.hstack([np.zeros((len(self.instant), first)), signals["tau"][self.instant]])
        for contact in self.robot.contacts:
            if contact.name in self.wrenches:
                wrench = self.signal(signals, contact.name)
                tau += pulled(self.base.idim.tree, self.robot, contact, design.q, wrench)
        found = [tau[self.shown[:, i], i] for i in range(tau.shape[1])]
        for k, names in enumerate(self.sets):
            acting = self.acting(names)
            y = tau[self.member == k][:, acting] / self.scale[acting]
            found.append(across(design.taken[k], y[:, :, None]).ravel())
        return found

    def read(self, signals: Signals) -> Normal:
        """The least-squares problem of some signals."""
        told = [name for name in signals if name in MOTION or self.log.observed.sensors]
        same = all(signals[name] is self.signals[name] for name in told)
        design = self.design if same else self.designed(signals)
        sides = self.sides(design, signals)
        Xy = np.zeros((len(sides), self.base.count))
        for own, (columns, X), y in zip(Xy, design.rows, sides, strict=True):
            own[columns] = X.T @ y
        squares = np.array([float(y @ y) for y in sides])
        sizes = np.concatenate([self.borne, np.zeros(len(squares) - len(self.borne))])
        return Normal(
            self.base, design.XX, Xy, squares, design.count, np.where(sizes > 0.0, sizes, squares)
        )

    @cached_property
    def borne(self) -> Array:
        """Squares of the motors' torques where contacts take most of them, shape (dof,).

        Zero of what is counted in its own size: the base's wrench and what no measured contact
        acts on. What is left beside measured contacts is small, and each reading another share
        of it.
        """
        first = self.robot.dof - self.robot.n
        found = np.zeros(self.robot.dof)
        if self.wrenches:
            tau = self.signals["tau"][self.instant] ** 2 * self.shown[:, first:]
            acting = touched(self.base.idim.tree, self.robot, self.wrenches)[first:]
            found[first:] = np.where(acting, np.sum(tau, axis=0), 0.0)
        return found

    def as_read(self, reading: Reading) -> Scene:
        """The log, read otherwise."""
        return replace(self, signals=reading(self.signals))


def across(U: Array, x: Array) -> Array:
    """What of x is orthogonal to U, instant by instant."""
    return np.asarray(x - U @ (np.swapaxes(U, 1, 2) @ x))


def take_scene(
    base: BaseParameters,
    log: GeneralisedSamples,
    sets: tuple[tuple[str, ...], ...],
    most: int = MOST,
) -> Scene:
    """Low-pass a log's signals alike, and keep some of its instants.

    Parameters
    ----------
    base : BaseParameters
    log : GeneralisedSamples
    sets : tuple of tuple of str
        Unmeasured contacts that act somewhere in any of the logs.
    most : int
        How many instants.
    """
    n, first = base.idim.robot.n, base.idim.robot.dof - base.idim.robot.n
    signals = {label: getattr(log, label)[:, -n:] for label in JOINTS}
    signals["tau"] = log.reference[:, -n:]
    if log.base is not None:
        signals |= {label: getattr(log.base, label) for label in BASE}
    signals |= {WRENCHES + name: own for name, own in log.wrenches.items()}
    cutoff = min(f.cutoff for f in log.filters)
    thin = max(1, int(log.rate / (THIN * cutoff)))
    signals = {
        label: low_passed(own, log, (cutoff,) * own.shape[1], thin)
        for label, own in signals.items()
    }
    if log.base is not None:
        pose = signals["pose"].copy()
        pose[:, 3:] /= np.maximum(np.linalg.norm(pose[:, 3:], axis=1, keepdims=True), TINY)
        signals["pose"] = pose
    # as rows are: none about which the contacts change
    half = log.filters[0].half
    inner = [(a + half, b - half) for a, b in log.segments]
    length = sum(b - a for a, b in inner)
    step = max(min(f.step for f in log.filters), -(-length // most))
    sample = np.concatenate([np.arange(a, b, step) for a, b in inner])
    member = np.full(len(sample), -1)
    for (a, b), names in zip(log.segments, log.sets, strict=True):
        if names in sets:
            member[(a <= sample) & (sample < b)] = sets.index(names)
    instant = sample // thin
    joints = replace(log, filters=log.filters[first:])
    even = steady(signals["dq"], instant, log.rate / thin, joints, base.idim.turning)
    even = np.hstack([np.ones((len(sample), first), dtype=bool), even])
    scene = Scene(
        base, log, thin, signals, instant, log.moving[sample] & even, sets, member,
        base.idim.packing(base.kept),
    )  # fmt: skip
    for k, names in enumerate(sets):
        own = np.all(even[:, scene.acting(names)], axis=1)
        here = member == k
        if here.any() and np.mean(own[here]) >= ENOUGH:
            member[here & ~own] = -1
    return scene


TINY = float(np.finfo(float).tiny)
