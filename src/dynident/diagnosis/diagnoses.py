"""What can be wrong with a log: each a way to read its columns otherwise.

A diagnosis proposes suspicions: what may be wrong, how to mend it, and a `Reading` of a snapshot
as it would be then. Whether one of them explains the log, `examine` finds out. To add a
diagnosis: a function and a line in `DIAGNOSES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dynident.core.arrays import Array
from dynident.diagnosis.moments import moments
from dynident.diagnosis.snapshot import Snapshot
from dynident.dynamics.idim import build_idim
from dynident.dynamics.inverse import inverse_dynamics
from dynident.recording.mend import Mending, shortest
from dynident.robot.model import Robot

Motion = Callable[[Snapshot], Snapshot]


@dataclass(frozen=True, eq=False)
class Reading:
    """One way to read a log.

    Attributes
    ----------
    torque : ndarray, shape (n, n)
        Row j: the combination of the logged torques that is joint j's.
    delay : ndarray, shape (n,)
        By which joint j's torque then lags the motion [s].
    motion : callable, optional
        The snapshot as it would have been.
    weightless : bool
        Whether gravity is not in the torques.
    """

    torque: Array
    delay: Array
    motion: Motion | None = None
    weightless: bool = False

    @classmethod
    def plain(cls, n: int) -> Reading:
        """The log as it stands."""
        return cls(np.eye(n), np.zeros(n))

    @classmethod
    def of_mending(cls, mending: Mending, n: int) -> Reading:
        """The log as a mending would leave it."""
        torque = mending.signs("tau", n)[:, None] * np.eye(n)[mending.places("tau", n)]
        delay = np.zeros(n) + mending.delay
        places, sign = mending.places("q", n), mending.signs("q", n)
        offset = np.zeros(n) + mending.offset

        def motion(s: Snapshot) -> Snapshot:
            q, dq, ddq = (sign * x[:, places] for x in (s.q, s.dq, s.ddq))
            return s.along(q + offset, dq, ddq)

        still = np.all(sign == 1.0) and np.all(offset == 0.0) and np.all(places == np.arange(n))
        return cls(torque, delay, None if still else motion)

    @property
    def combines(self) -> bool:
        """Whether it only combines the torques as they are logged."""
        return self.motion is None and not self.weightless and not np.any(self.delay)

    def of(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, read in this way."""
        base, torque = snapshot.base, snapshot.torque @ self.torque.T
        if np.any(self.delay != 0.0):
            torque = later(torque, self.delay * snapshot.samples.rate)
        if self.weightless:
            idim = base.idim
            robot = replace(idim.robot, gravity=np.zeros(3))
            base = replace(base, idim=build_idim(robot, idim.friction, idim.rotor))
        found = replace(snapshot, base=base, torque=torque)
        return found if self.motion is None else self.motion(found)


def later(torque: Array, samples: Array) -> Array:
    """Each column as it stands so many samples later, between samples linearly."""
    place = np.arange(len(torque), dtype=float)
    pairs = zip(samples, torque.T, strict=True)
    return np.column_stack([np.interp(place + lag, place, column) for lag, column in pairs])


@dataclass(frozen=True, eq=False)
class Suspicion:
    """What may be wrong.

    Attributes
    ----------
    diagnosis : str
        Name in `DIAGNOSES`.
    what : str
        In words: ``torque of elbow has the other sign``.
    reading : Reading
        What undoes it.
    mending : Mending or None
        The same for the log's table in a study.
    unit : str or None
        Of the positions, where that is what was wrong.
    advice : str
        What else to do.
    """

    diagnosis: str
    what: str
    reading: Reading
    mending: Mending | None = None
    unit: str | None = None
    advice: str = ""

    @property
    def mend(self) -> str:
        """What to do, in words."""
        lines = () if self.mending is None else self.mending.lines()
        if self.unit is not None:
            lines = (f'units = {{ q = "{self.unit}" }}',)
        return f"add {', '.join(lines)} to [[log]]" if lines else self.advice


@dataclass(frozen=True, eq=False)
class Case:
    """A log that is looked at.

    Attributes
    ----------
    snapshot : Snapshot
    beta : ndarray, shape (p,)
        The best consistent model of the log as it stands.
    """

    snapshot: Snapshot
    beta: Array

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.snapshot.base.idim.robot

    @property
    def n(self) -> int:
        """Joints."""
        return self.robot.n

    @property
    def names(self) -> tuple[str, ...]:
        """Of the joints."""
        return self.robot.joint_names


@dataclass(frozen=True)
class Diagnosis:
    """A kind of damage.

    Attributes
    ----------
    suspects : callable
        Suspicions about a case.
    always : bool
        Whether it is looked for in logs that are explained well, too: what costs little.
    """

    suspects: Callable[[Case], Iterator[Suspicion]]
    always: bool = False


def mended(diagnosis: str, what: str, mending: Mending, n: int) -> Suspicion:
    """A suspicion that a log's table can mend."""
    return Suspicion(diagnosis, what, Reading.of_mending(mending, n), mending)


def signs_of(case: Case) -> Iterator[tuple[str, tuple[float, ...] | float]]:
    """One joint of the other sign, or all."""
    names = case.names
    for j, name in enumerate(names):
        yield f" of {name} has", tuple(-1.0 if k == j else 1.0 for k in range(len(names)))
    if len(names) > 1:
        yield "s of all joints have", -1.0


def orders_of(case: Case) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Two joints in each other's place, or all turned round."""
    names = case.names
    n = len(names)
    for i, j in combinations(range(n), 2):
        order = list(range(1, n + 1))
        order[i], order[j] = order[j], order[i]
        yield f"of {names[i]} and {names[j]} are in each other's columns", tuple(order)
    if n > 2:
        yield "are in the opposite order", tuple(range(n, 0, -1))


def torque_signs(case: Case) -> Iterator[Suspicion]:
    """Torques of the other sign."""
    for which, sign in signs_of(case):
        what = f"the torque{which} the other sign"
        yield mended("torque sign", what, Mending(sign={"tau": sign}), len(case.names))


def torque_orders(case: Case) -> Iterator[Suspicion]:
    """Torque columns in another order."""
    for which, order in orders_of(case):
        yield mended(
            "torque order", f"the torques {which}", Mending(order={"tau": order}), len(order)
        )


def position_signs(case: Case) -> Iterator[Suspicion]:
    """Positions of the other sign."""
    for which, sign in signs_of(case):
        what = f"the position{which} the other sign"
        mending = Mending(sign={"q": sign, "qref": sign})
        yield mended("position sign", what, mending, len(case.names))


def position_orders(case: Case) -> Iterator[Suspicion]:
    """Position columns in another order."""
    for which, order in orders_of(case):
        yield mended(
            "position order", f"the positions {which}", Mending(order={"q": order}), len(order)
        )


def joint_orders(case: Case) -> Iterator[Suspicion]:
    """All columns of joints in another order."""
    for which, order in orders_of(case):
        mending = Mending(order={"q": order, "tau": order, "qref": order})
        yield mended("joint order", f"positions and torques {which}", mending, len(order))


UNITS = {"deg": np.pi / 180.0, "rev": 2.0 * np.pi}
"""Units of angle that logs have, in rad."""


def position_units(case: Case) -> Iterator[Suspicion]:
    """Positions in degrees or revolutions that were taken for radians, or the other way."""
    revolute = np.array([joint.kind == "revolute" for joint in case.robot.joints])
    n = len(revolute)
    for unit, size in UNITS.items():
        for factor, what, right in (
            (size, f"the positions are in {unit}", unit),
            (1.0 / size, f"the positions are in rad, not in {unit}", "rad"),
        ):
            scale = np.where(revolute, factor, 1.0)

            def motion(s: Snapshot, scale: Array = scale) -> Snapshot:
                return s.along(scale * s.q, scale * s.dq, scale * s.ddq)

            if np.any(revolute):
                reading = replace(Reading.plain(n), motion=motion)
                yield Suspicion("position unit", what, reading, unit=right)


def absolute_encoders(case: Case) -> Iterator[Suspicion]:
    """A joint's position counted from the base, ``q_(j-1) + q_j``, or the other way round."""
    names = case.names
    for j in range(1, len(names)):
        for share, word in ((-1.0, "has"), (1.0, "lacks")):
            turn = np.eye(len(names))
            turn[j, j - 1] = share

            def motion(s: Snapshot, turn: Array = turn) -> Snapshot:
                return s.along(s.q @ turn.T, s.dq @ turn.T, s.ddq @ turn.T)

            yield Suspicion(
                "absolute encoder",
                f"the position of {names[j]} {word} that of {names[j - 1]} in it",
                replace(Reading.plain(len(names)), motion=motion),
                advice=f"write the position of {names[j]} relative to its parent into the log",
            )


def reversed_time(case: Case) -> Iterator[Suspicion]:
    """A log that runs backwards."""
    yield Suspicion(
        "reversed time",
        "time runs backwards",
        replace(Reading.plain(case.n), motion=lambda s: s.along(s.q, -s.dq, s.ddq)),
        advice="turn the log's rows round",
    )


def without_gravity(case: Case) -> Iterator[Suspicion]:
    """Torques from which the controller's gravity compensation was taken out."""
    if np.any(case.robot.gravity):
        yield Suspicion(
            "gravity",
            "gravity is not in the torques",
            replace(Reading.plain(case.n), weightless=True),
            advice="log the whole torque of the drives, or set gravity = [0, 0, 0] in [robot]",
        )


LATEST, COARSE = 0.1, 0.008
"""Delays that are looked for, and the steps of the first search [s]."""
SHORTEST_DELAY = 0.2
"""In samples."""
FINER = (8.0, 8.0, 8.0)
"""Factors of the searches after the first."""


def delays(case: Case, joints: Sequence[int] | None = None) -> Iterator[Suspicion]:
    """Torques that stand later or earlier in the log than the motion."""
    names = case.names
    n = len(names)
    chosen = tuple(range(n)) if joints is None else tuple(joints)
    best = best_delay(case.snapshot, chosen)
    if abs(best) * case.snapshot.samples.rate < SHORTEST_DELAY:
        return
    delay = np.zeros(n)
    delay[list(chosen)] = best
    whose = f"the torque of {names[chosen[0]]}" if len(chosen) < n else "the torque"
    word = "lags" if best > 0.0 else "leads"
    yield mended(
        "delay",
        f"{whose} {word} the motion by {1e3 * abs(best):.2f} ms",
        Mending(delay=shortest(np.round(delay, 6))),
        n,
    )


def single_delays(case: Case) -> Iterator[Suspicion]:
    """The torque of one joint alone."""
    if case.n > 1:
        for j in range(case.n):
            yield from delays(case, (j,))


def best_delay(snapshot: Snapshot, joints: Sequence[int]) -> float:
    """The delay of some joints' torques that least squares explains best [s]."""
    n = snapshot.q.shape[1]

    def left(times: Array) -> Array:
        moved = [snapshot.delayed(time)[:, list(joints)] for time in times]
        found = moments(snapshot, np.hstack([snapshot.tau, *moved]))
        errors = []
        for k in range(len(times)):
            reading = np.eye(n, found.XY.shape[2])
            for i, j in enumerate(joints):
                reading[j] = 0.0
                reading[j, n + k * len(joints) + i] = 1.0
            errors.append(found.read(reading).free())
        return np.array(errors)

    step = COARSE
    times = np.arange(-LATEST, LATEST + 0.5 * step, step)
    centre = 0.0
    for finer in (*FINER, 1.0):
        errors = left(times)
        k = int(np.clip(np.argmin(errors), 1, len(times) - 2))
        a, b, c = errors[k - 1 : k + 2]
        bend = a - 2.0 * b + c
        shift = float(np.clip(0.5 * (a - c) / bend, -1.0, 1.0)) if bend > 0.0 else 0.0
        centre = float(np.clip(times[k] + shift * step, -LATEST, LATEST))
        step /= finer
        times = centre + step * np.array([-1.0, 0.0, 1.0])
    return centre


TURN = 1e-4
"""Half of the step of differences [rad or m]."""
TURNS = 4
"""Steps towards an encoder's zero."""


def encoder_offsets(case: Case) -> Iterator[Suspicion]:
    """An encoder whose zero is elsewhere, by a few steps of Gauss and Newton."""
    steps = offset_steps(case.snapshot, case.beta, range(case.n))
    for j, name in enumerate(case.names):
        first = steps[j]
        if first is None or first.left > PROMISING:
            continue
        offset = np.zeros(case.n)
        for _ in range(TURNS):
            s = case.snapshot
            moved = s.along(s.q + offset, s.dq, s.ddq)
            beta = moments(moved).read(np.eye(case.n)).system().solve()
            (step,) = offset_steps(moved, beta, (j,))
            if step is None:
                break
            offset[j] += step.size
        revolute = case.robot.joints[j].kind == "revolute"
        size = f"{np.degrees(offset[j]):.3g} deg" if revolute else f"{offset[j]:.3g} m"
        yield mended(
            "encoder offset",
            f"the position of {name} lacks {size}",
            Mending(offset=shortest(np.round(offset, 6))),
            case.n,
        )


@dataclass(frozen=True)
class Step:
    """By how much a joint's position should be moved.

    Attributes
    ----------
    size : float
        [rad or m]
    left : float
        Share of the squared error that it would leave.
    """

    size: float
    left: float


def offset_steps(snapshot: Snapshot, beta: Array, joints: Sequence[int]) -> tuple[Step | None, ...]:
    """Steps towards the encoders' zeros, each alone; None where nothing tells.

    The torque moves with a joint's position by its slope along the model beta; what the
    regressor leaves of that slope meets what it leaves of the torque.
    """
    base, n = snapshot.base, snapshot.q.shape[1]
    phi, _ = base.idim.split(base.standard(beta))
    slopes = []
    for joint in joints:
        sides = []
        for turn in (TURN, -TURN):
            q = snapshot.q.copy()
            q[:, joint] += turn
            sides.append(inverse_dynamics(base.idim.tree, phi, q, snapshot.dq, snapshot.ddq))
        slopes.append((sides[0] - sides[1]) / (2.0 * TURN))
    found = moments(snapshot, np.hstack([snapshot.tau, *slopes]))
    columns = found.XY.shape[2]
    torque = np.eye(n, columns)
    scale = found.read(torque).scale
    rest, _ = found.left_over(torque, torque, scale)
    steps: list[Step | None] = []
    for k in range(len(joints)):
        slope = np.eye(n, columns, n * (k + 1))
        blind, cross = found.left_over(torque, slope, scale)
        if blind <= UNSEEN * found.squares(slope, scale) or rest <= 0.0:
            steps.append(None)
        else:
            size = float(np.clip(cross / blind, -LARGEST_STEP, LARGEST_STEP))
            steps.append(Step(size, max(0.0, 1.0 - cross**2 / blind / rest)))
    return tuple(steps)


UNSEEN = 1e-6
"""Share of a column that the regressor leaves, below which it has it already."""
LARGEST_STEP = 0.3
"""[rad or m]"""
PROMISING = 0.8
"""Share of the squared error that a first step has to leave at most."""

DIAGNOSES: dict[str, Diagnosis] = {
    "torque sign": Diagnosis(torque_signs, always=True),
    "torque order": Diagnosis(torque_orders, always=True),
    "delay": Diagnosis(delays, always=True),
    "encoder offset": Diagnosis(encoder_offsets, always=True),
    "delay of a joint": Diagnosis(single_delays),
    "position sign": Diagnosis(position_signs),
    "position order": Diagnosis(position_orders),
    "joint order": Diagnosis(joint_orders),
    "position unit": Diagnosis(position_units),
    "absolute encoder": Diagnosis(absolute_encoders),
    "reversed time": Diagnosis(reversed_time),
    "gravity": Diagnosis(without_gravity),
}
"""What is looked for."""
