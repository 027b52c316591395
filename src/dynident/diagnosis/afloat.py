"""The doctor on logs of floating robots: what may be wrong with torques, wrenches, and the base.

As of robots on fixed bases each suspicion is another reading of the log, which has to explain it
clearly better. Here a reading changes signals: of the joints, of the contacts, of the base. The
equations that the log states are written anew with them, at some instants: those of the base's
wrench and of the joints, and the projection of all those on which contacts act that nothing
measures. Each equation, and each set of contacts, is a group of its own, counted in its own size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations

import numpy as np
from scipy.optimize import minimize_scalar

from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.errors import ComputationError
from dynident.core.threads import one_thread
from dynident.diagnosis.examine import (
    DOUBTFUL,
    SOUND,
    TIED,
    USUAL,
    WORTH,
    Finding,
    better,
    mean,
)
from dynident.diagnosis.moments import Normal
from dynident.diagnosis.snapshot import ENOUGH, FEW, MOST, THIN, low_passed, steady
from dynident.diagnosis.suspicion import consistent
from dynident.dynamics.base import BaseParameters, observed_base
from dynident.dynamics.contacts import contact_motion, pulled
from dynident.dynamics.equations import SINGULAR, contact_jacobian, touched
from dynident.dynamics.idim import Conditions, Packing, build_idim
from dynident.recording.floating import BaseMotion, to_rpy
from dynident.recording.mend import Mending
from dynident.recording.prepare import Samples
from dynident.regression.generalised import GeneralisedSamples
from dynident.robot.model import Robot

Signals = dict[str, Array]
"""Of a log by name, shapes (samples, columns)."""
Reading = Callable[[Signals], Signals]

MOTION = ("q", "dq", "ddq", "pose", "twist", "acceleration")
JOINTS, BASE = MOTION[:3], MOTION[3:]
WRENCHES = "wrench "
"""Beginning of the names of wrenches: then the contact's."""
ROUNDS = 3
"""Findings of all logs together at most."""
CLOSE = 6
"""Suspects that are fitted with consistent bodies."""
LATE, ASKEW = 0.02, 0.05
"""Delays and offsets that are tried first [s, rad or m]."""
FINE, MANY = 100.0, 20
"""How much finer these are found, and by how many readings at most."""
LONGEST, WIDEST = 0.25, 0.6
"""Delays and offsets that are believed at most [s, rad or m]."""
SCALES = {"in kN": 1000.0, "in kgf": 9.81, "1000 times too large": 1e-3}
"""Units that wrenches may have been logged in: what they are in N, or Nm."""


@dataclass(frozen=True, eq=False)
class Suspicion:
    """What may be wrong with a log.

    Attributes
    ----------
    diagnosis : str
        Name in `DIAGNOSES`.
    what : str
        In words.
    reading : callable
        The log's signals as they would have been.
    mending : Mending or None
        What undoes it in the log's table.
    advice : str
        What else to do.
    freedom : int
        Numbers that were fitted for it.
    """

    diagnosis: str
    what: str
    reading: Reading
    mending: Mending | None = None
    advice: str = ""
    freedom: int = 0

    @property
    def mend(self) -> str:
        """What to do, in words."""
        if self.mending is None:
            return self.advice
        return f"add {', '.join(self.mending.lines())} to [[log]]"


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
    even = steady(signals["dq"], instant, log.rate / thin, joints, base)
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


# what may be wrong


def torque_signs(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Torques of the other sign: one joint's, or all."""
    names, n = scene.robot.joint_names, scene.robot.n
    if scene.log.torque == "none":
        return
    each = [(f" of {names[j]} has", np.where(np.arange(n) == j, -1.0, 1.0)) for j in sorted(bad)]
    for which, sign in [*each, ("s of all joints have", -np.ones(n))]:
        mending = Mending(sign={"tau": -1.0 if np.all(sign < 0.0) else tuple(sign.tolist())})
        yield Suspicion(
            "torque sign", f"the torque{which} the other sign", scaled("tau", sign), mending
        )


def torque_orders(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Torque columns in another order: two joints', two limbs', or sorted by another rule."""
    if scene.log.torque == "none":
        return
    for what, order in orders(scene.robot, bad):
        places = np.array(order) - 1

        def reading(s: Signals, places: Integers = places) -> Signals:
            return {**s, "tau": s["tau"][:, places]}

        yield Suspicion(
            "torque order", f"the torques {what}", reading, Mending(order={"tau": order})
        )


def orders(robot: Robot, bad: frozenset[int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Orders that columns of joints may have been written in, in words."""
    names, n = robot.joint_names, robot.n
    seen = {tuple(range(1, n + 1))}

    def new(order: list[int]) -> bool:
        fresh = tuple(order) not in seen
        seen.add(tuple(order))
        return fresh

    for i, j in combinations(sorted(bad), 2):
        order = list(range(1, n + 1))
        order[i], order[j] = order[j], order[i]
        if new(order):
            yield f"of {names[i]} and {names[j]} are in each other's columns", tuple(order)
    limbs = alike(robot)
    for one, other in combinations(limbs, 2):
        order = list(range(1, n + 1))
        for i, j in zip(one, other, strict=True):
            order[i], order[j] = order[j], order[i]
        if new(order):
            ends = f"{names[one[0]]} ... {names[one[-1]]} and {names[other[0]]} ... "
            yield f"of {ends}{names[other[-1]]} are in each other's columns", tuple(order)
    if len(limbs) > 1 and sorted(j for limb in limbs for j in limb) == list(range(n)):
        # all first joints, then all second ones
        column = {j: k for k, j in enumerate(j for own in zip(*limbs, strict=True) for j in own)}
        order = [column[j] + 1 for j in range(n)]
        if new(order):
            yield "are sorted by joints, not by limbs", tuple(order)
    order = sorted(range(n), key=names.__getitem__)
    order = [order.index(j) + 1 for j in range(n)]
    if new(order):
        yield "are sorted by name", tuple(order)
    if new(list(range(n, 0, -1))):
        yield "are in the opposite order", tuple(range(n, 0, -1))


def alike(robot: Robot) -> list[tuple[int, ...]]:
    """Chains of as many joints from the base on, of the commonest length."""
    limbs = []
    for j, joint in enumerate(robot.joints):
        if joint.parent == 0:
            limb = [j]
            while after := [k for k, o in enumerate(robot.joints) if o.parent == limb[-1] + 1]:
                limb.append(after[0])
            limbs.append(tuple(limb))
    lengths = [len(limb) for limb in limbs]
    usual = max(set(lengths), key=lambda length: (lengths.count(length), length))
    return [limb for limb in limbs if len(limb) == usual]


def position_signs(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """A joint's position of the other sign."""
    names, n = scene.robot.joint_names, scene.robot.n
    for j in sorted(bad):
        sign = np.where(np.arange(n) == j, -1.0, 1.0)

        def reading(s: Signals, sign: Array = sign) -> Signals:
            return {**s, **{label: sign * s[label] for label in JOINTS}}

        given = tuple(sign.tolist())
        yield Suspicion(
            "position sign",
            f"the position of {names[j]} has the other sign",
            reading,
            Mending(sign={"q": given, "qref": given}),
        )


def encoder_offsets(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """A joint's encoder whose zero is elsewhere: by how much, is fitted."""
    names, n = scene.robot.joint_names, scene.robot.n
    for j in sorted(bad):

        def shifted(size: float, j: int = j) -> Reading:
            return lambda s: {**s, "q": s["q"] + size * (np.arange(n) == j)}

        size = fitted_size(scene, shifted, ASKEW, WIDEST)
        if size is None:
            continue
        unit = "m" if scene.robot.joints[j].kind == "prismatic" else "rad"
        offset = tuple(round(size, 6) if k == j else 0.0 for k in range(n))
        yield Suspicion(
            "encoder offset",
            f"the zero of {names[j]} is {-size:.3g} {unit} off",
            shifted(size),
            Mending(offset=offset),
            freedom=1,
        )


def delays(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Torques, wrenches or the base that stand later in the log than the joints' motion."""
    wrenches = tuple(WRENCHES + name for name in scene.wrenches)
    groups: list[tuple[str, str, tuple[str, ...]]] = []
    if scene.log.torque != "none":
        groups.append(("torque delay", "the torques stand", ("tau",)))
    if wrenches:
        groups.append(("wrench delay", "the contacts' wrenches stand", wrenches))
    if scene.log.base is not None and not scene.log.base.still:
        groups.append(("base delay", "the base's motion stands", BASE))
    for diagnosis, what, labels in groups:

        def later(size: float, labels: tuple[str, ...] = labels) -> Reading:
            return lambda s: {
                **s,
                **{label: moved(s[label], size * scene.rate) for label in labels},
            }

        size = fitted_size(scene, later, LATE, LONGEST)
        if size is None:
            continue
        word = "later" if size > 0.0 else "earlier"
        milliseconds = f"{1000.0 * abs(size):.3g} ms"
        own = diagnosis == "torque delay"
        yield Suspicion(
            diagnosis,
            f"{what} {milliseconds} {word} in the log than the joints' positions",
            later(size),
            Mending(delay=round(size, 6)) if own else None,
            f"shift these columns by {milliseconds}, or set one clock for all sensors",
            freedom=1,
        )


def wrench_signs(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Wrenches of the world on the robot that were logged as the robot's on the world."""
    groups: list[tuple[str, ...]] = [(name,) for name in scene.wrenches]
    if len(groups) > 1:
        groups.append(scene.wrenches)
    for names in groups:

        def reading(s: Signals, names: tuple[str, ...] = names) -> Signals:
            return {**s, **{WRENCHES + name: -s[WRENCHES + name] for name in names}}

        stated = {c.name: c.sign for c in scene.robot.contacts}
        yield Suspicion(
            "wrench sign",
            f"the wrench{'es' * (len(names) > 1)} of {', '.join(names)} "
            f"{'has' if len(names) == 1 else 'have'} the other sign",
            reading,
            advice=f"set sign = {-stated[names[0]]:.0f} in [[contact]] {', '.join(names)}",
        )


def wrench_orders(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Two contacts' wrenches in each other's columns."""
    for one, other in combinations(scene.wrenches, 2):
        a, b = WRENCHES + one, WRENCHES + other
        if scene.signals[a].shape != scene.signals[b].shape:
            continue

        def reading(s: Signals, a: str = a, b: str = b) -> Signals:
            return {**s, a: s[b], b: s[a]}

        yield Suspicion(
            "wrench order",
            f"the wrenches of {one} and {other} are in each other's columns",
            reading,
            advice=f"name them in columns: wrench_{one} as those of {other}, wrench_{other} as "
            f"those of {one}",
        )


def wrench_axes(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Wrenches in the world's axes that were taken for the frame's, or the other way round."""
    base = scene.log.base
    if base is None or not base.oriented or not scene.wrenches:
        return
    contacts = [c for c in scene.robot.contacts if c.name in scene.wrenches]
    axes = contacts[0].axes

    def reading(s: Signals) -> Signals:
        found = dict(s)
        q = np.hstack([s["pose"], s["q"]])
        for contact in contacts:
            turn = contact_motion(scene.base.idim.tree, scene.robot, contact, q).turn
            if contact.axes == "frame":
                turn = np.swapaxes(turn, 1, 2)
            parts = s[WRENCHES + contact.name].reshape(len(q), -1, 3)
            found[WRENCHES + contact.name] = np.einsum("tij,tkj->tki", turn, parts).reshape(
                len(q), -1
            )
        return found

    right = "world" if axes == "frame" else "frame"
    yield Suspicion(
        "wrench axes",
        f"the wrenches are in the axes of the {'world' if right == 'world' else 'frames'}",
        reading,
        advice=f'set axes = "{right}" in [[contact]]',
    )


def wrench_units(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """Wrenches that were logged in another unit."""
    for unit, size in SCALES.items() if scene.wrenches else ():

        def reading(s: Signals, size: float = size) -> Signals:
            return {k: size * x if k.startswith(WRENCHES) else x for k, x in s.items()}

        yield Suspicion(
            "wrench unit",
            f"the wrenches are {unit}",
            reading,
            advice="write them into the log in N and Nm",
        )


def mountings(scene: Scene, bad: frozenset[int]) -> Iterator[Suspicion]:
    """An inertial unit with its axes along others of the base; an orientation would tell."""
    base = scene.log.base
    if base is None or not base.proper or base.oriented or base.turn is None or base.mount is None:
        return
    mount = base.mount
    for R in turns():

        def reading(s: Signals, R: Array = R) -> Signals:
            rate, spin = s["twist"][:, 3:], s["acceleration"][:, 3:]
            felt = (s["acceleration"][:, :3] + lever(rate, spin, mount)) @ R.T
            rate, spin = rate @ R.T, spin @ R.T
            return {
                **s,
                "twist": np.hstack([s["twist"][:, :3], rate]),
                "acceleration": np.hstack([felt - lever(rate, spin, mount), spin]),
            }

        rpy = ", ".join(f"{round(angle, 6) + 0.0:g}" for angle in to_rpy(R @ base.turn))
        yield Suspicion(
            "unit mounting",
            "the inertial unit is turned otherwise in the base",
            reading,
            advice=f"set imu_rpy = [{rpy}] in [[log]]",
        )


def turns() -> Iterator[Array]:
    """All right-angled turns but none."""
    axes = (*np.eye(3), *-np.eye(3))
    for first, second in permutations(axes, 2):
        R = np.column_stack([first, second, np.cross(first, second)])
        if not first @ second and not np.array_equal(R, np.eye(3)):
            yield R


def lever(rate: Array, spin: Array, place: Array) -> Array:
    """Acceleration of a place in a body beyond that of its origin."""
    return np.asarray(np.cross(spin, place) + np.cross(rate, np.cross(rate, place)))


def scaled(label: str, factor: Array) -> Reading:
    """One signal times something."""
    return lambda s: {**s, label: factor * s[label]}


def moved(signal: Array, samples: float) -> Array:
    """Columns as they stand so many samples later, between samples linearly."""
    place = np.arange(len(signal), dtype=float)
    return np.column_stack([np.interp(place + samples, place, column) for column in signal.T])


def fitted_size(
    scene: Scene, reading: Callable[[float], Reading], size: float, limit: float
) -> float | None:
    """The size at which least squares leaves least, by parabolas; None where it leaves no less."""

    def left(x: float) -> float:
        return float(scene.read(reading(x)(scene.signals)).free())

    before, below, above = left(0.0), left(-size), left(size)
    bend = below - 2.0 * before + above
    if bend > 0.0:
        best = float(np.clip(0.5 * size * (below - above) / bend, -2.0 * size, 2.0 * size))
    else:
        best = size if above < below else -size
    if min(left(best), below, above) > HOPEFUL * before:
        return None
    around = (best - 2.0 * size, best + 2.0 * size)
    found = minimize_scalar(
        left, bounds=around, method="bounded", options={"xatol": size / FINE, "maxiter": MANY}
    )
    return float(found.x) if abs(found.x) <= limit and found.fun <= HOPEFUL * before else None


ASTRAY = 0.05
"""Error of combinations from which joints that are in them may be others, or turned round."""
POOR = 0.25
"""Error of the base's wrench from which something is looked for in passing."""
HOPEFUL = 0.9
"""Share of the squared error that a size has to leave at most to be looked at closely."""

DIAGNOSES: dict[str, Callable[[Scene, frozenset[int]], Iterator[Suspicion]]] = {
    "torque sign": torque_signs,
    "torque order": torque_orders,
    "position sign": position_signs,
    "encoder offset": encoder_offsets,
    "delay": delays,
    "wrench sign": wrench_signs,
    "wrench order": wrench_orders,
    "wrench axes": wrench_axes,
    "wrench unit": wrench_units,
    "unit mounting": mountings,
}
"""Suspicions of a log by name, joints that are not explained well given."""


# which of them it is


@one_thread
def examine_floating(
    base: BaseParameters, logs: Sequence[Samples], thorough: bool = False
) -> tuple[tuple[Finding, ...], ...]:
    """Find what is wrong with some logs of one robot, each beside the others.

    Parameters
    ----------
    base : BaseParameters
        Of what all of them show.
    logs : sequence of Samples
        As a problem has them.
    thorough : bool
        Look at more instants, for everything, even where all is explained well, and for more than
        one thing.

    Returns
    -------
    tuple of tuple of Finding
        One each of the logs, the first found first; each is of the logs after those before it
        were mended.
    """
    base = of_an_instant(base)
    stated = [stating(log) for log in logs]
    sets = tuple(dict.fromkeys(names for log in stated for names in log.sets if names))
    scenes = [take_scene(base, log, sets, MOST if thorough else FEW) for log in stated]
    found: list[list[Finding]] = [[] for _ in scenes]
    for _ in range(ROUNDS if thorough else 1):
        explained = [
            own for k in range(len(scenes)) if (own := explanation(scenes, k, thorough)) is not None
        ]
        if not explained:
            break
        place, finding, reading = min(explained, key=lambda own: own[1].share)
        found[place].append(finding)
        scenes[place] = scenes[place].as_read(reading)
    return tuple(tuple(own) for own in found)


def stating(log: Samples) -> GeneralisedSamples:
    """A log with what its equations are, where they are the torques of a fixed robot's joints."""
    if isinstance(log, GeneralisedSamples):
        return log
    fields = {name: getattr(log, name) for name in log.__dataclass_fields__}
    return GeneralisedSamples(**fields, sets=((),) * len(log.segments))


def of_an_instant(base: BaseParameters) -> BaseParameters:
    """The model with friction that depends on the motion of an instant alone."""
    idim = base.idim
    if not any(f.model.state or f.model.needs for f in idim.frictions):
        return base
    plain = [each for each in idim.elements if not (each.model.state or each.model.needs)]
    return observed_base(build_idim(idim.robot, USUAL, idim.rotor, elements=plain), base.observed)


def together(scenes: Sequence[Scene], place: int, own: Normal) -> Normal:
    """One log in some reading, and all others as they stand."""
    for k, scene in enumerate(scenes):
        if k != place:
            own = own.and_those_of(scene.normal)
    return own


def explanation(
    scenes: Sequence[Scene], place: int, thorough: bool
) -> tuple[int, Finding, Reading] | None:
    """The reading of one log that explains all best, where it is clearly better than none."""
    scene = scenes[place]
    normal = together(scenes, place, scene.normal)
    beta = consistent(normal)
    errors = normal.errors(beta)
    before = mean(errors)
    if before < SOUND:
        return None
    bad = frozenset(range(scene.robot.n))
    if not thorough:
        first, dof = scene.robot.dof - scene.robot.n, scene.robot.dof
        poor = frozenset(np.flatnonzero(errors[first:dof] > DOUBTFUL).tolist())
        if not np.any(errors[dof : dof + len(scene.sets)] > ASTRAY):
            if not poor and (not first or mean(errors[:first]) < POOR):
                return None
            bad = poor
    hopeful: list[tuple[float, int, Suspicion, Normal]] = []
    for diagnosis in DIAGNOSES.values():
        for suspicion in diagnosis(scene, bad):
            read = together(scenes, place, scene.read(suspicion.reading(scene.signals)))
            free = read.free_errors()
            if read.as_many_as(normal) and better(free, errors, WORTH):
                hopeful.append((mean(free), len(hopeful), suspicion, read))
    explained = []
    for _, number, suspicion, read in sorted(hopeful, key=lambda own: own[:2])[:CLOSE]:
        try:
            left = read.errors(read.consistent())
        except ComputationError:
            continue
        if better(left, errors, WORTH):
            explained.append((left, number, suspicion))
    if not explained:
        return None
    least = min(mean(left) for left, *_ in explained)
    explained.sort(key=lambda own: (mean(own[0]) > TIED * least, own[2].freedom, mean(own[0])))
    (left, _, best), *others = explained
    other = f"{others[0][2].what} ({100.0 * mean(others[0][0]):.3g} %)" if others else ""
    finding = Finding(
        scene.log.name, best.diagnosis, best.what, best.mend, 100.0 * before, 100.0 * mean(left),
        other, best.mending,
    )  # fmt: skip
    return place, finding, best.reading
