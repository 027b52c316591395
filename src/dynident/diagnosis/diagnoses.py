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
from scipy import signal

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.inertia import INERTIAL
from dynident.diagnosis.moments import Moments, Normal
from dynident.diagnosis.snapshot import Snapshot
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import build_idim
from dynident.dynamics.inverse import inverse_dynamics
from dynident.recording.mend import Mending, later, shortest
from dynident.robot.model import Robot

Change = Callable[[Snapshot], Snapshot]


@dataclass(frozen=True, eq=False)
class Reading:
    """One way to read a log.

    Attributes
    ----------
    torque : ndarray, shape (n, n)
        Row j: the combination of the logged torques that is joint j's.
    delay : ndarray, shape (n,)
        By which joint j's torque then lags the motion [s].
    change : callable, optional
        The snapshot as it would have been: its motion, or its robot.
    """

    torque: Array
    delay: Array
    change: Change | None = None

    @classmethod
    def plain(cls, n: int) -> Reading:
        """The log as it stands."""
        return cls(np.eye(n), np.zeros(n))

    @classmethod
    def of_mending(cls, mending: Mending, n: int) -> Reading:
        """The log as a mending would leave it."""
        torque = mending.signs("tau", n)[:, None] * np.eye(n)[mending.places("tau", n)]
        delay = mending.delays(n)
        places, sign = mending.places("q", n), mending.signs("q", n)
        offset = mending.offsets(n)

        def motion(s: Snapshot) -> Snapshot:
            q, dq, ddq = (sign * x[:, places] for x in (s.q, s.dq, s.ddq))
            return s.along(q + offset, dq, ddq)

        still = np.all(sign == 1.0) and np.all(offset == 0.0) and np.all(places == np.arange(n))
        return cls(torque, delay, None if still else motion)

    @property
    def combines(self) -> bool:
        """Whether it only combines the torques as they are logged."""
        return self.change is None and not np.any(self.delay)

    def of(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, read in this way."""
        torque = snapshot.torque @ self.torque.T
        if np.any(self.delay != 0.0):
            torque = later(torque, self.delay * snapshot.samples.rate)
        found = replace(snapshot, torque=torque)
        return found if self.change is None else self.change(found)


def with_base(snapshot: Snapshot, base: BaseParameters) -> Snapshot:
    """A snapshot of another robot, and those beside it."""
    beside = tuple(replace(other, base=base) for other in snapshot.beside)
    return replace(snapshot, base=base, beside=beside)


def with_robot(base: BaseParameters, robot: Robot) -> BaseParameters:
    """Base parameters of a robot that differs in what they do not depend on."""
    return replace(base, idim=build_idim(robot, base.idim.friction, base.idim.rotor))


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
    error : float
        Standard error of a delay or an offset [s, rad or m]; 0 for none.
    freedom : int
        Numbers that were fitted for it: of what explains a log alike, the least is believed.
    """

    diagnosis: str
    what: str
    reading: Reading
    mending: Mending | None = None
    unit: str | None = None
    advice: str = ""
    error: float = 0.0
    freedom: int = 0

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
    own : Moments
        Of the log as it stands.
    beta : ndarray, shape (p,)
        Its best consistent model.
    errors : ndarray, shape (groups,)
        Relative errors of that, of the log's joints and of those beside it.
    """

    snapshot: Snapshot
    own: Moments
    beta: Array
    errors: Array

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


def mended(diagnosis: str, what: str, mending: Mending, n: int, error: float = 0.0) -> Suspicion:
    """A suspicion that a log's table can mend."""
    freedom = int(error > 0.0)
    reading = Reading.of_mending(mending, n)
    return Suspicion(diagnosis, what, reading, mending, error=error, freedom=freedom)


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
                reading = replace(Reading.plain(n), change=motion)
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
                replace(Reading.plain(len(names)), change=motion),
                advice=f"write the position of {names[j]} relative to its parent into the log",
            )


def reversed_time(case: Case) -> Iterator[Suspicion]:
    """A log that runs backwards."""
    yield Suspicion(
        "reversed time",
        "time runs backwards",
        replace(Reading.plain(case.n), change=lambda s: s.along(s.q, -s.dq, s.ddq)),
        advice="turn the log's rows round",
    )


def without_gravity(case: Case) -> Iterator[Suspicion]:
    """Torques from which the controller's gravity compensation was taken out.

    Where another log tells what gravity asks for, what is missing of it is found by least squares
    and given back: the controller's idea of gravity need not be that of the robot.
    """
    robot = case.robot
    if not np.any(robot.gravity):
        return
    s, base = case.snapshot, case.snapshot.base
    floating = with_robot(base, replace(robot, gravity=np.zeros(3)))

    def change(s: Snapshot) -> Snapshot:
        return replace(s, base=floating)

    freedom = 0
    if s.beside:
        beta = of_others(s)
        weight = columns_at_rest(s)
        missing, rows = fitted_difference(s, beta, weight)
        if np.linalg.norm(rows @ (beta + missing)) > MISSING * np.linalg.norm(rows @ beta):
            return
        freedom = int(np.linalg.matrix_rank(rows, rtol=SMALLEST))

        def change(s: Snapshot) -> Snapshot:
            still = np.zeros_like(s.samples.q)
            theta = base.standard(missing)
            return replace(s, torque=s.torque - base.idim.torque(theta, s.samples.q, still, still))

    yield Suspicion(
        "gravity",
        "gravity is not in the torques",
        replace(Reading.plain(case.n), change=change),
        advice="log the whole torque of the drives, or set gravity = [0, 0, 0] in [robot]",
        freedom=freedom,
    )


MISSING = 0.5
"""Share of gravity that torques without it have at most."""


def predicted(s: Snapshot, beta: Array) -> Array:
    """A model's torques, shape (instants, n)."""
    return s.base.idim.torque(s.base.standard(beta), s.q, s.dq, s.ddq)


def of_others(s: Snapshot) -> Array:
    """The best consistent model of the logs beside a snapshot."""
    first, *others = (other.normal for other in s.beside)
    for other in others:
        first = first.and_those_of(other)
    return consistent(first)


def consistent(normal: Normal) -> Array:
    """The best consistent model, or else that of least squares."""
    try:
        return normal.consistent()
    except ComputationError:
        return normal.system().solve()


def columns_at_rest(s: Snapshot) -> Array:
    """Columns of gravity, shape (instants, n, p)."""
    still = np.zeros_like(s.q)
    idim, kept = s.base.idim, np.array(s.base.kept)
    columns = np.zeros((*s.q.shape, s.base.count))
    bodies = np.flatnonzero(kept < idim.inertial)
    columns[:, :, bodies] = idim.regressor(s.q, still, still)[:, :, kept[bodies]]
    return columns


def fitted_difference(s: Snapshot, beta: Array, columns: Array) -> tuple[Array, Array]:
    """What of some columns stands in a snapshot's torques beyond a model, and their rows.

    Parameters
    ----------
    s : Snapshot
    beta : ndarray, shape (p,)
    columns : ndarray, shape (instants, n, k)

    Returns
    -------
    size : ndarray, shape (k,)
    rows : ndarray, shape (instants n, k)
        The columns, each joint counted in its torque.
    """
    scale: Array = np.where(s.moving, 1.0 / root_mean_square(s.tau), 0.0)
    rows = (scale[:, :, None] * columns).reshape(-1, columns.shape[2])
    rest = np.ravel(scale * (s.tau - predicted(s, beta)))
    return np.asarray(np.linalg.lstsq(rows, rest, rcond=SMALLEST)[0]), rows


SMALLEST = 1e-6
"""Singular value over the largest below which a combination of columns is none."""


def loads(case: Case) -> Iterator[Suspicion]:
    """Something at the last link that is not there in the other logs."""
    s = case.snapshot
    if not s.beside:
        return
    idim = s.base.idim
    last = slice(idim.inertial - PER_BODY, idim.inertial)
    columns = idim.regressor(s.q, s.dq, s.ddq)[:, :, last]
    size, rows = fitted_difference(s, of_others(s), columns)
    theta = np.zeros(len(idim.parameters))
    theta[last] = size

    def change(s: Snapshot) -> Snapshot:
        log = s.samples
        return replace(s, torque=s.torque - idim.torque(theta, log.q, log.dq, log.ddq))

    word = "more" if size[0] > 0.0 else "less"
    yield Suspicion(
        "load",
        f"the last link carries {abs(size[0]):.2g} kg {word} than in the other log",
        replace(Reading.plain(case.n), change=change),
        advice="identify from logs with one load",
        freedom=int(np.linalg.matrix_rank(rows, rtol=SMALLEST)),
    )


PER_BODY = len(INERTIAL)


def mountings(case: Case) -> Iterator[Suspicion]:
    """Gravity along another axis: on a wall, on the ceiling."""
    now = case.robot.gravity
    size = float(np.linalg.norm(now))
    if size == 0.0:
        return
    idim = case.snapshot.base.idim
    skew = replace(case.robot, gravity=np.array([0.31, -0.47, 0.83]) * size)
    base = base_parameters(build_idim(skew, idim.friction, idim.rotor))
    for axis in (*np.eye(3), *-np.eye(3)):
        gravity = size * axis
        if np.allclose(gravity, now):
            continue
        robot = replace(case.robot, gravity=gravity)

        def change(s: Snapshot, robot: Robot = robot) -> Snapshot:
            return with_base(s, with_robot(base, robot))

        along = ", ".join(f"{g:g}" for g in gravity + 0.0)
        yield Suspicion(
            "mounting",
            f"the robot is mounted otherwise: gravity is along [{along}]",
            replace(Reading.plain(case.n), change=change),
            advice=f"set gravity = [{along}] in [robot]",
        )


def root_mean_square(x: Array) -> Array:
    """Of each column; never zero."""
    return np.asarray(np.sqrt(np.mean(x**2, axis=0)) + np.finfo(float).tiny)


WORST = 3
"""Joints whose drives may be coupled otherwise: those with the largest errors."""


def coupled_drives(case: Case) -> Iterator[Suspicion]:
    """A drive that turns with the joint before, too, and the file does not say so; or does."""
    names, turns = case.names, case.robot.drives.turns
    worst = set(np.argsort(-case.errors[: case.n])[:WORST].tolist())
    for j in range(1, case.n):
        if not {j - 1, j} <= worst and case.n > WORST:
            continue
        for share in (0.0,) if turns[j, j - 1] != 0.0 else (1.0, -1.0):
            other = turns.copy()
            other[j, j - 1] = share
            robot = replace(case.robot, drives=replace(case.robot.drives, turns=other))

            def change(s: Snapshot, robot: Robot = robot) -> Snapshot:
                known = s.base.idim
                return with_base(s, base_parameters(build_idim(robot, known.friction, known.rotor)))

            row = f"{{ {names[j - 1]} = {share:g}, {names[j]} = 1 }}"
            word = f"turns with {names[j - 1]}, too" if share else "turns alone"
            yield Suspicion(
                "coupled drive",
                f"the drive of {names[j]} {word}",
                replace(Reading.plain(case.n), change=change),
                advice=f"write row = {row} of [[drive]] {names[j]} in the robot file",
            )


RATES = (2.0, 4.0, 5.0, 10.0, 60.0, 1000.0)
"""By how many times a rate may be wrong: rows left out, minutes, milliseconds."""


def rates(case: Case) -> Iterator[Suspicion]:
    """A time axis that is another: inertia and gravity do not go together."""
    for factor in (*RATES, *(1.0 / rate for rate in RATES)):

        def change(s: Snapshot, factor: float = factor) -> Snapshot:
            return s.along(s.q, factor * s.dq, factor**2 * s.ddq)

        right = factor * case.snapshot.samples.rate
        yield Suspicion(
            "rate",
            f"time runs {factor:.4g} times as fast as the log says",
            replace(Reading.plain(case.n), change=change),
            advice=f"set rate = {right:.6g} in [[log]], or the unit of its time",
        )


SCALES = np.geomspace(1.0 / 300.0, 300.0, 39)
"""Factors of a joint's torque that are tried first."""
CLOSER = 4
"""Times the steps between factors are halved about the best."""


def torque_scales(case: Case) -> Iterator[Suspicion]:
    """The torque of one joint in another unit, or on the other side of its gear."""

    def left(j: int, factor: float) -> float:
        torque = np.eye(case.n)
        torque[j, j] = factor
        return case.own.read(torque).free()

    for j, name in enumerate(case.names):
        errors = [left(j, factor) for factor in SCALES]
        best, step = float(SCALES[int(np.argmin(errors))]), float(SCALES[1] / SCALES[0])
        for _ in range(CLOSER):
            step = np.sqrt(step)
            best = min((best / step, best, best * step), key=lambda factor: left(j, factor))
        torque = np.eye(case.n)
        torque[j, j] = best
        yield Suspicion(
            "torque scale of a joint",
            f"the torque of {name} is {1.0 / best:.3g} times what the others ask for",
            replace(Reading.plain(case.n), torque=torque),
            freedom=1,
            advice=f"check the gain, the unit and the reduction of {name}",
        )


OTHER = 0.1
"""By how much a torque has to be off those that other logs ask for."""


def foreign_scales(case: Case) -> Iterator[Suspicion]:
    """Torques in another unit than those of the other logs, or on the other side of gears.

    Each joint's factor is that on the torque which the other logs' model asks for; then on that
    which all logs' model asks for, once this log is read so.
    """
    s = case.snapshot
    if not s.beside:
        return
    beta = of_others(s)
    for _ in range(SETTLED):
        asked = np.where(s.moving, predicted(s, beta), 0.0)
        factor = np.sum(asked * s.tau, axis=0) / (np.sum(asked**2, axis=0) + np.finfo(float).tiny)
        if not np.all(np.abs(factor) > 0.0):
            return
        beta = consistent(case.own.read(np.diag(1.0 / factor)))
    off = np.abs(np.abs(factor) - 1.0) > OTHER
    joint = np.flatnonzero(off)
    reading = replace(Reading.plain(case.n), torque=np.diag(1.0 / factor))
    if len(joint) == 1:
        j = int(joint[0])
        reading = replace(reading, torque=np.diag(np.where(off, 1.0 / factor, 1.0)))
        yield Suspicion(
            "torque scale of a joint",
            f"the torque of {case.names[j]} is {factor[j]:.3g} times that of the other log",
            reading,
            freedom=1,
            advice=f"check the gain, the unit and the reduction of {case.names[j]}",
        )
    elif len(joint):
        alike = np.ptp(factor) <= OTHER * abs(float(np.mean(factor)))
        times = f"{np.median(factor):.3g}" if alike else ", ".join(f"{f:.3g}" for f in factor)
        yield Suspicion(
            "torque scale",
            f"the torques are {times} times those of the other log",
            reading,
            freedom=1 if alike else case.n,
            advice="check their unit, gains and the side of the reduction in both logs",
        )


SETTLED = 3
"""Rounds after which factors of torques are settled."""

SLOWEST, QUICKEST, SLOWNESSES = 0.3, 6.0, 9
"""Cutoffs of a logger's filter that are looked for [Hz], and how many; a quicker one is a delay."""
LEFT = 0.3
"""Share of the torque's spread that has to be left behind a filter: little is soon explained."""


def slow_loggers(case: Case) -> Iterator[Suspicion]:
    """Torque, or positions, that went through a first-order filter of the logger."""
    quickest = min(QUICKEST, 0.2 * case.snapshot.samples.rate)
    if quickest <= SLOWEST:
        return
    for name, undo in (("torque", undone), ("position", done)):

        def left(hz: float, undo: Callable[[Snapshot, float], Snapshot] = undo) -> float:
            return undo(case.snapshot, hz).normal.free()

        grid = np.geomspace(SLOWEST, quickest, SLOWNESSES)
        best = min(grid.tolist(), key=left)
        step = float(grid[1] / grid[0])
        for _ in range(CLOSER):
            step = np.sqrt(step)
            best = min((best / step, best, best * step), key=left)

        spread = np.std(case.snapshot.torque, axis=0)
        if np.sum(np.std(undo(case.snapshot, best).torque, axis=0)) < LEFT * np.sum(spread):
            continue

        def change(
            s: Snapshot,
            best: float = best,
            undo: Callable[[Snapshot, float], Snapshot] = undo,
        ) -> Snapshot:
            return undo(s, best)

        yield Suspicion(
            f"slow {name}",
            f"the {name}s went through a low-pass at about {best:.2g} Hz",
            replace(Reading.plain(case.n), change=change),
            freedom=1,
            advice=f"log the {name}s without that filter, or the others through the same",
        )


def undone(s: Snapshot, hz: float) -> Snapshot:
    """Torque before a first-order filter."""
    slope = np.gradient(s.torque, 1.0 / s.samples.rate, axis=0)
    return replace(s, torque=s.torque + slope / (2.0 * np.pi * hz))


def done(s: Snapshot, hz: float) -> Snapshot:
    """Torque behind the first-order filter that the positions went through."""
    b, a = signal.butter(1, hz, fs=s.samples.rate)
    start = signal.lfilter_zi(b, a)[:, None] * s.torque[:1]
    return replace(s, torque=signal.lfilter(b, a, s.torque, axis=0, zi=start)[0])


def drifts(case: Case) -> Iterator[Suspicion]:
    """Torques whose zero moves along the log."""
    s, n = case.snapshot, case.n
    ramp = np.linspace(-1.0, 1.0, len(s.torque))
    found = s.moments(np.column_stack([s.tau, ramp[s.instant]]))
    size = found.extra(np.eye(n, n + 1))

    def change(s: Snapshot) -> Snapshot:
        return replace(s, torque=s.torque - ramp[:, None] * size)

    worst = int(np.argmax(np.abs(size) / root_mean_square(s.tau)))
    yield Suspicion(
        "drift",
        f"the torques drift, that of {case.names[worst]} by {2.0 * size[worst]:.3g}",
        replace(Reading.plain(n), change=change),
        freedom=n,
        advice="let the sensors and drives warm up, or fit a shorter stretch of the log",
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
    error = delay_error(case.snapshot, delay, chosen)
    yield mended(
        "delay",
        f"{whose} {word} the motion by {1e3 * abs(best):.2f} ± {1e3 * error:.2f} ms",
        Mending(delay=shortest(np.round(delay, 6))),
        n,
        error,
    )


def delay_error(snapshot: Snapshot, delay: Array, joints: Sequence[int]) -> float:
    """Standard error of a delay [s]."""
    n = len(delay)
    read = Reading(np.eye(n), delay).of(snapshot)
    slope = np.gradient(read.torque, 1.0 / snapshot.samples.rate, axis=0)
    found = read.moments(np.hstack([read.tau, slope[read.instant]]))
    late = np.zeros((n, 2 * n))
    late[list(joints), n + np.array(joints)] = 1.0
    return standard_error(read, found, late)


def standard_error(snapshot: Snapshot, found: Moments, column: Array) -> float:
    """Of the size of one more column, about its best: ``s sqrt(c / (v^T M v))``.

    s^2 is the variance of a row's residual, each joint in its own torque; c the sum of the
    residuals' correlations.

    Parameters
    ----------
    snapshot : Snapshot
    found : Moments
        Of the snapshot's torques and the columns.
    column : ndarray, shape (n, m)
        v as a combination of them.
    """
    n = len(column)
    normal = found.read(np.eye(n, column.shape[1]))
    seen, _ = found.left_over(np.eye(n, column.shape[1]), column)
    system = normal.system()
    beta = np.asarray(np.linalg.solve(system.A, system.b), dtype=np.float64)
    base = snapshot.base
    predicted = base.idim.torque(base.standard(beta), snapshot.q, snapshot.dq, snapshot.ddq)
    scale = np.sqrt(normal.scale[:n])
    rest = np.where(snapshot.moving, (snapshot.tau - predicted) * scale, 0.0)
    variance = float(np.sum(rest**2)) / max(1, found.rows - base.count)
    if seen <= 0.0:
        return np.inf
    return float(np.sqrt(variance * correlation(rest) / seen))


FARTHEST = 0.05
"""Share of the instants over which residuals are correlated at most."""


def correlation(rest: Array) -> float:
    """Sum of the correlations of residuals, with weights that fall to zero; at least 1."""
    length = max(1, int(FARTHEST * len(rest)))
    square = float(np.sum(rest**2))
    if square == 0.0:
        return 1.0
    sums = [float(np.sum(rest[k:] * rest[:-k])) for k in range(1, length)]
    weights = 1.0 - np.arange(1, length) / length
    return max(1.0, 1.0 + 2.0 * float(weights @ np.array(sums)) / square)


def single_delays(case: Case) -> Iterator[Suspicion]:
    """The torque of one joint alone, where its slope in time promises something."""
    if case.n == 1:
        return
    s, n = case.snapshot, case.n
    slope = np.gradient(s.torque, 1.0 / s.samples.rate, axis=0)
    found = s.moments(np.hstack([s.tau, slope[s.instant]]))
    torque = np.eye(n, 2 * n)
    rest = found.read(torque).system().rest
    for j in range(n):
        column = np.zeros((n, 2 * n))
        column[j, n + j] = 1.0
        blind, cross = found.left_over(torque, column)
        if blind > 0.0 and cross**2 / blind > (1.0 - PROMISING) * rest:
            yield from delays(case, (j,))


def best_delay(snapshot: Snapshot, joints: Sequence[int]) -> float:
    """The delay of some joints' torques that least squares explains best [s]."""
    n = snapshot.q.shape[1]

    def left(times: Array) -> Array:
        moved = [snapshot.delayed(time)[:, list(joints)] for time in times]
        found = snapshot.moments(np.hstack([snapshot.tau, *moved]))
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
            beta = moved.normal.system().solve()
            (step,) = offset_steps(moved, beta, (j,))
            if step is None:
                break
            offset[j] += step.size
        error = offset_error(case, offset, j)
        turn = 180.0 / np.pi if case.robot.joints[j].kind == "revolute" else 1.0
        unit = "deg" if turn != 1.0 else "m"
        yield mended(
            "encoder offset",
            f"the position of {name} lacks {turn * offset[j]:.2f} ± {turn * error:.2f} {unit}",
            Mending(offset=shortest(np.round(offset, 6))),
            case.n,
            error,
        )


def offset_error(case: Case, offset: Array, joint: int) -> float:
    """Standard error of an encoder's zero [rad or m]."""
    s, n = case.snapshot, case.n
    moved = s.along(s.q + offset, s.dq, s.ddq)
    beta = moved.normal.system().solve()
    found = moved.moments(np.hstack([moved.tau, torque_slope(moved, beta, joint)]))
    return standard_error(moved, found, np.eye(n, 2 * n, n))


def torque_slope(snapshot: Snapshot, beta: Array, joint: int) -> Array:
    """By how much a model's torques grow with a joint's position, shape (instants, n)."""
    base = snapshot.base
    phi, _ = base.idim.split(base.standard(beta))
    sides = []
    for turn in (TURN, -TURN):
        q = snapshot.q.copy()
        q[:, joint] += turn
        sides.append(inverse_dynamics(base.idim.tree, phi, q, snapshot.dq, snapshot.ddq))
    return np.asarray((sides[0] - sides[1]) / (2.0 * TURN))


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
    n = snapshot.q.shape[1]
    slopes = [torque_slope(snapshot, beta, joint) for joint in joints]
    found = snapshot.moments(np.hstack([snapshot.tau, *slopes]))
    columns = found.XY.shape[2]
    torque = np.eye(n, columns)
    normal = found.read(torque)
    rest = normal.system().rest
    steps: list[Step | None] = []
    for k in range(len(joints)):
        slope = np.eye(n, columns, n * (k + 1))
        blind, cross = found.left_over(torque, slope)
        if blind <= UNSEEN * found.squares(slope, normal.scale) or rest <= 0.0:
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
    "delay of a joint": Diagnosis(single_delays, always=True),
    "drift": Diagnosis(drifts, always=True),
    "position sign": Diagnosis(position_signs),
    "position order": Diagnosis(position_orders),
    "joint order": Diagnosis(joint_orders),
    "position unit": Diagnosis(position_units),
    "absolute encoder": Diagnosis(absolute_encoders),
    "reversed time": Diagnosis(reversed_time),
    "gravity": Diagnosis(without_gravity),
    "mounting": Diagnosis(mountings),
    "coupled drive": Diagnosis(coupled_drives),
    "rate": Diagnosis(rates),
    "torque scale of a joint": Diagnosis(torque_scales),
    "load": Diagnosis(loads),
    "torque scale": Diagnosis(foreign_scales),
    "slow logger": Diagnosis(slow_loggers),
}
"""What is looked for."""
