"""A log of a floating robot as the doctor reads it: signals, and the equations that they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.diagnosis.moments import Normal
from dynident.diagnosis.snapshot import (
    BRIEF,
    ENOUGH,
    MOST,
    THIN,
    find_steady_instants,
    low_pass_columns,
)
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.conditions import Conditions
from dynident.dynamics.contacts import apply_levers, evaluate_levers
from dynident.dynamics.equations import SINGULAR, mark_touched_equations
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
    rows : tuple of (columns, X)
        Per group: base parameters, and its rows.
    levers : dict of ndarray, shapes (instants, components, dof)
        Of contacts that are measured or in a set, by name.
    untouched : tuple of ndarray, shapes (instants of the set, combinations, equations)
        Per set of contacts: combinations of the equations on which it does not act, orthonormal
        for scaled ones, which are the rows of its group; zero where it acts on one more.
    count : int
        Rows that say something.
    XX : ndarray, shape (groups, p, p)
    """

    rows: tuple[tuple[Integers, Array], ...]
    levers: dict[str, Array]
    untouched: tuple[Array, ...]
    count: int
    XX: Array


@dataclass(frozen=True, eq=False)
class Scene:
    """A log of a floating robot below its torques' cutoff, and instants at which it is looked at.

    Attributes
    ----------
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

    @cached_property
    def brief(self) -> Scene:
        """The same at fewer instants."""
        some = slice(None, None, max(1, len(self.instant) // BRIEF))
        return replace(
            self, instant=self.instant[some], shown=self.shown[some], member=self.member[some]
        )

    @cached_property
    def acting(self) -> tuple[Integers, ...]:
        """Of each set of contacts: equations that it acts on, and that the log would state."""
        stated = self.log.observed.rows(self.robot)
        tree = self.base.idim.tree
        return tuple(
            np.flatnonzero(mark_touched_equations(tree, self.robot, names) & stated)
            for names in self.sets
        )

    @cached_property
    def columns(self) -> tuple[Integers, ...]:
        """Of each set of contacts: base parameters of these equations."""
        joints = self.packing.joints
        return tuple(
            np.unique(np.concatenate([joints[i][1] for i in acting])) for acting in self.acting
        )

    @cached_property
    def entries(self) -> tuple[Integers, ...]:
        """Of each set of contacts: where its rows are packed, one beyond the end for zeros."""
        found = []
        for acting, columns in zip(self.acting, self.columns, strict=True):
            places = np.full((len(acting), len(columns)), self.packing.width)
            for row, i in zip(places, acting, strict=True):
                slots, own = self.packing.joints[i]
                row[np.searchsorted(columns, own)] = np.arange(slots.start, slots.stop)
            found.append(places)
        return tuple(found)

    @cached_property
    def squared(self) -> tuple[Integers, ...]:
        """Of each group: where products of its columns are in a flat matrix of all."""
        every = [columns for _, columns in self.packing.joints] + list(self.columns)
        return tuple((self.base.count * own[:, None] + own).ravel() for own in every)

    def moves(self, signals: Signals) -> bool:
        """Whether signals make another regressor than those of the log."""
        told = [name for name in signals if name in MOTION or self.log.observed.sensors]
        return any(signals[name] is not self.signals[name] for name in told)

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
        arms = {
            contact.name: evaluate_levers(idim.tree, self.robot, contact, q)
            for contact in self.robot.contacts
            if contact.name in (*self.wrenches, *chain(*self.sets))
        }
        ended = np.hstack([packed, np.zeros((len(q), 1))])
        untouched = []
        for k, (names, acting) in enumerate(zip(self.sets, self.acting, strict=True)):
            some, scale = self.member == k, self.scale[acting, None]
            J = np.concatenate([arms[name][some][:, :, acting] for name in names], axis=1)
            N, combinations = find_null_spaces(np.swapaxes(J, 1, 2) / scale)
            N /= scale.T
            X = N @ np.take(ended[some], self.entries[k], axis=1)
            rows.append((self.columns[k], X.reshape(-1, X.shape[2])))
            untouched.append(N)
            count += combinations
        p = self.base.count
        XX = np.zeros((len(rows), p, p))
        for own, (_, X), places in zip(XX.reshape(-1, p * p), rows, self.squared, strict=True):
            own[places] = (X.T @ X).ravel()
        return Design(tuple(rows), arms, tuple(untouched), count, XX)

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
                tau += apply_levers(design.levers[contact.name], contact, wrench)
        found = [tau[self.shown[:, i], i] for i in range(tau.shape[1])]
        for k, (acting, N) in enumerate(zip(self.acting, design.untouched, strict=True)):
            y = tau[self.member == k][:, acting]
            found.append((N @ y[:, :, None]).ravel())
        return found

    def read(self, signals: Signals) -> Normal:
        """The least-squares problem of some signals."""
        design = self.designed(signals) if self.moves(signals) else self.design
        sides = self.sides(design, signals)
        Xy = np.zeros((len(sides), self.base.count))
        for own, (columns, X), y in zip(Xy, design.rows, sides, strict=True):
            own[columns] = X.T @ y
        squares = np.array([float(y @ y) for y in sides])
        sizes = np.concatenate([self.borne, np.zeros(len(squares) - len(self.borne))])
        return Normal(
            self.base,
            (design.XX,),
            Xy,
            squares,
            design.count,
            np.where(sizes > 0.0, sizes, squares),
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
            acting = mark_touched_equations(self.base.idim.tree, self.robot, self.wrenches)[first:]
            found[first:] = np.where(acting, np.sum(tau, axis=0), 0.0)
        return found

    def as_read(self, reading: Reading) -> Scene:
        """The log, read otherwise."""
        return replace(self, signals=reading(self.signals))


def find_null_spaces(A: Array) -> tuple[Array, int]:
    """Combinations of rows of matrices that are zero, instant by instant.

    Parameters
    ----------
    A : ndarray, shape (instants, m, k)

    Returns
    -------
    N : ndarray, shape (instants, combinations, m)
        Orthonormal, as many as some matrix has; the first are zero where a matrix has fewer.
    count : int
        Those that are not.
    """
    Q, R = np.linalg.qr(A, mode="complete")
    zero = np.arange(A.shape[1]) >= A.shape[2] + np.zeros((len(A), 1))
    doubtful = ~has_independent_columns(R[:, : A.shape[2]])  # whose rank singular values tell
    if np.any(doubtful):
        Q[doubtful], s, _ = np.linalg.svd(A[doubtful])
        zero[doubtful, : s.shape[1]] = s <= SINGULAR * s[:, :1]
    first = Q.shape[2] - int(np.max(np.sum(zero, axis=1), initial=0))
    N = np.swapaxes(Q * zero[:, None], 1, 2)[:, first:]
    return np.ascontiguousarray(N), int(np.sum(zero))


def has_independent_columns(R: Array) -> Booleans:
    """Whether columns of triangular matrices surely are, in less time than singular values take.

    The largest singular value over the least is at most ``||R|| ||R^-1||`` (Frobenius).
    """
    if R.shape[1] != R.shape[2]:
        return np.zeros(len(R), dtype=bool)
    size = np.linalg.norm(R, axis=(1, 2))
    found = np.min(np.abs(np.diagonal(R, axis1=1, axis2=2)), axis=1) > SINGULAR * size
    inverse = np.linalg.norm(np.linalg.inv(R[found]), axis=(1, 2))
    found[found] = SINGULAR * size[found] * inverse < 1.0
    return np.asarray(found)


def take_scene(
    base: BaseParameters,
    log: GeneralisedSamples,
    sets: tuple[tuple[str, ...], ...],
    most: int = MOST,
) -> Scene:
    """Low-pass a log's signals alike, and keep some of its instants.

    Parameters
    ----------
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
        label: low_pass_columns(own, log, (cutoff,) * own.shape[1], thin)
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
    even = find_steady_instants(
        signals["dq"], instant, log.rate / thin, joints, base.idim.structure.turning
    )
    even = np.hstack([np.ones((len(sample), first), dtype=bool), even])
    scene = Scene(
        base, log, thin, signals, instant, log.moving[sample] & even, sets, member,
        base.idim.packing(base.kept),
    )  # fmt: skip
    for k, acting in enumerate(scene.acting):
        own = np.all(even[:, acting], axis=1)
        here = member == k
        if here.any() and np.mean(own[here]) >= ENOUGH:
            member[here & ~own] = -1
    return scene


TINY = float(np.finfo(float).tiny)
