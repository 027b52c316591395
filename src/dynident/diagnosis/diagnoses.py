"""What can be wrong with a log: each a way to read its columns otherwise.

A diagnosis proposes suspicions: what may be wrong, how to mend it, and a `Reading` of a snapshot
as it would be then. Whether one of them explains the log, `examine` finds out. To add a
diagnosis: a function and a line in `DIAGNOSES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.linalg import eigh, solve_triangular

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError
from dynident.core.inertia import INERTIAL
from dynident.diagnosis.moments import RIDGE, Moments, Normal, scaled_normal
from dynident.diagnosis.snapshot import Snapshot
from dynident.dynamics.base import BaseParameters, base_parameters
from dynident.dynamics.idim import Packing, build_idim
from dynident.dynamics.inverse import inverse_dynamics
from dynident.recording.filters import first_order_lowpass
from dynident.recording.mend import Mending, later, shortest, toml
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
            torque = later(torque, self.delay * snapshot.rate)
        found = replace(snapshot, torque=torque)
        return found if self.change is None else self.change(found)


def with_base(snapshot: Snapshot, base: BaseParameters, packing: Packing) -> Snapshot:
    """A snapshot of another robot, and those beside it; `packing` is of its base parameters."""
    beside = tuple(other.of(base, packing) for other in snapshot.beside)
    return replace(snapshot.of(base, packing), beside=beside)


def with_robot(base: BaseParameters, robot: Robot) -> BaseParameters:
    """Base parameters of a robot that differs in what they do not depend on."""
    return replace(base, idim=base.idim.of(robot))


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
    unit : str, tuple of str, or None
        Of the positions, all or each, where that is what was wrong.
    rate : float or None
        Of the log, where that is what was wrong [Hz].
    gravity : tuple of float, or None
        Of the robot, where that is what was wrong [m/s^2].
    advice : str
        What else to do.
    error : float
        Standard error of a delay or an offset [s, rad or m]; 0 for none.
    freedom : int
        Numbers that were fitted for it: of what explains a log alike, the least is believed.
    measure : callable, optional
        The same suspicion of a snapshot with its size and words.
    """

    diagnosis: str
    what: str
    reading: Reading
    mending: Mending | None = None
    unit: str | tuple[str, ...] | None = None
    rate: float | None = None
    gravity: tuple[float, ...] | None = None
    advice: str = ""
    error: float = 0.0
    freedom: int = 0
    measure: Callable[[Snapshot], Suspicion] | None = None

    @property
    def sure(self) -> bool:
        """Whether its size is far beyond its standard error."""
        if self.mending is None or self.error <= 0.0:
            return False
        sizes = np.concatenate(
            [np.atleast_1d(self.mending.delay), np.atleast_1d(self.mending.offset)]
        )
        return float(np.max(np.abs(sizes))) > SURE * self.error

    @property
    def mend(self) -> str:
        """What to do, in words."""
        lines = () if self.mending is None else self.mending.lines()
        if self.unit is not None:
            lines = (f"units = {{ q = {toml(self.unit)} }}",)
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
    bad : frozenset of int
        Joints that may be others, or turned round: that are not explained well.
    """

    snapshot: Snapshot
    own: Moments
    beta: Array
    errors: Array
    bad: frozenset[int]

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

    def rubs(self, parameter: int) -> bool:
        """Whether a standard parameter is one of friction."""
        idim = self.snapshot.base.idim
        return idim.drive_columns[parameter - idim.inertial].friction is not None

    @cached_property
    def of_others(self) -> Array:
        """The best consistent model of the logs beside it."""
        first, *others = (other.normal for other in self.snapshot.beside)
        for other in others:
            first = first.and_those_of(other)
        return consistent(first)


def mended(diagnosis: str, what: str, mending: Mending, n: int, error: float = 0.0) -> Suspicion:
    """A suspicion that a log's table can mend."""
    freedom = int(error > 0.0)
    reading = Reading.of_mending(mending, n)
    return Suspicion(diagnosis, what, reading, mending, error=error, freedom=freedom)


def signs_of(case: Case) -> Iterator[tuple[str, tuple[float, ...] | float]]:
    """One joint of the other sign, or all."""
    names = case.names
    for j, name in enumerate(names):
        if j not in case.bad:
            continue
        yield f" of {name} has", tuple(-1.0 if k == j else 1.0 for k in range(len(names)))
    if len(names) > 1 and case.bad:
        yield "s of all joints have", -1.0


def orders_of(case: Case, turned: bool = False) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Two joints in each other's place, three in each other's, or all turned round."""
    names = case.names
    n = len(names)
    for i, j in combinations(sorted(case.bad), 2):
        order = list(range(1, n + 1))
        order[i], order[j] = order[j], order[i]
        yield f"of {names[i]} and {names[j]} are in each other's columns", tuple(order)
    for chosen in combinations(sorted(case.bad), 3) if turned else ():
        for i, j, k in (chosen, chosen[::-1]):
            order = list(range(1, n + 1))
            order[i], order[j], order[k] = order[j], order[k], order[i]
            listed = ", ".join(names[joint] for joint in chosen)
            yield f"of {listed} are in each other's columns", tuple(order)
    if n > 2 and len(case.bad) > 1:
        yield "are in the opposite order", tuple(range(n, 0, -1))


def torque_signs(case: Case) -> Iterator[Suspicion]:
    """Torques of the other sign."""
    for which, sign in signs_of(case):
        what = f"the torque{which} the other sign"
        yield mended("torque sign", what, Mending(sign={"tau": sign}), len(case.names))


def torque_orders(case: Case) -> Iterator[Suspicion]:
    """Torque columns in another order; what only combines them is cheap to read."""
    for which, order in orders_of(case, turned=True):
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
    groups = [("the positions are", revolute)] if np.any(revolute) and case.bad else []
    if np.sum(revolute) > 1:
        groups += [
            (f"the position of {case.names[j]} is", np.arange(n) == j)
            for j in sorted(case.bad)
            if revolute[j]
        ]
    for (whose, where), (unit, size) in product(groups, UNITS.items()):
        for factor, what, right in (
            (size, f"{whose} in {unit}", unit),
            (1.0 / size, f"{whose} in rad, not in {unit}", "rad"),
        ):
            scale = np.where(where, factor, 1.0)

            def motion(s: Snapshot, scale: Array = scale) -> Snapshot:
                return s.along(scale * s.q, scale * s.dq, scale * s.ddq)

            others = unit if right == "rad" else "rad"
            units = tuple(right if own else others for own in where)
            yield Suspicion(
                "position unit",
                what,
                replace(Reading.plain(n), change=motion),
                unit=right if np.all(where == revolute) else units,
            )


def absolute_encoders(case: Case) -> Iterator[Suspicion]:
    """A joint's position counted from the base, ``q_(j-1) + q_j``, or the other way round."""
    names = case.names
    for j in sorted(case.bad - {0}):
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
        return s.of(floating, s.motion.packing)

    freedom = 0
    if s.beside:
        beta = case.of_others
        weight = columns_at_rest(s)
        missing, rows = fitted_difference(s, beta, weight)
        if np.linalg.norm(rows @ (beta + missing)) > MISSING * np.linalg.norm(rows @ beta):
            return
        freedom = int(np.linalg.matrix_rank(rows, rtol=SMALLEST))

        def change(s: Snapshot) -> Snapshot:
            q = s.samples.q[:: s.thin]
            still = np.zeros_like(q)
            return replace(
                s, torque=s.torque - base.idim.torque(base.standard(missing), q, still, still)
            )

    yield Suspicion(
        "gravity",
        "gravity is not in the torques",
        replace(Reading.plain(case.n), change=change),
        advice="log the whole torque of the drives, or set gravity = [0, 0, 0] in [robot]",
        freedom=freedom,
    )


SURE = 8.0
"""Standard errors beyond which a size is sure."""
MISSING = 0.5
"""Share of gravity that torques without it have at most."""


def predicted(s: Snapshot, beta: Array) -> Array:
    """A model's torques, shape (instants, n)."""
    return s.base.idim.torque(s.base.standard(beta), s.q, s.dq, s.ddq)


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
    size, rows = fitted_difference(s, case.of_others, columns)
    theta = np.zeros(len(idim.parameters))
    theta[last] = size

    def change(s: Snapshot) -> Snapshot:
        log = s.samples
        q, dq, ddq = (signal[:: s.thin] for signal in (log.q, log.dq, log.ddq))
        return replace(s, torque=s.torque - idim.torque(theta, q, dq, ddq))

    word = "more" if size[0] > 0.0 else "less"
    yield Suspicion(
        "load",
        f"the last link carries {abs(size[0]):.2g} kg {word} than in the other log",
        replace(Reading.plain(case.n), change=change),
        advice="identify from logs with one load",
        freedom=int(np.linalg.matrix_rank(rows, rtol=SMALLEST)),
    )


PER_BODY = len(INERTIAL)


STANDARD = 9.81
"""Gravity of a robot whose file has none [m/s^2]."""


def without_friction(case: Case) -> Iterator[Suspicion]:
    """Torques from which a controller's friction compensation was taken out.

    Where another log tells what friction asks for: what is missing of it is found by least
    squares and given back.
    """
    s = case.snapshot
    idim, kept = s.base.idim, np.array(s.base.kept)
    own = [k for k in range(idim.inertial, len(idim.parameters)) if case.rubs(k)]
    places = np.flatnonzero(np.isin(kept, own))
    if not s.beside or not len(places):
        return
    columns = np.zeros((*s.q.shape, s.base.count))
    columns[:, :, places] = idim.regressor(s.q, s.dq, s.ddq)[:, :, kept[places]]
    beta = case.of_others
    missing, rows = fitted_difference(s, beta, columns)
    if np.linalg.norm(rows @ (beta + missing)) > MISSING * np.linalg.norm(rows @ beta):
        return
    theta = np.zeros(len(idim.parameters))
    theta[kept] = missing

    def change(s: Snapshot) -> Snapshot:
        q, dq, ddq = (x[:: s.thin] for x in (s.samples.q, s.samples.dq, s.samples.ddq))
        return replace(s, torque=s.torque - idim.torque(theta, q, dq, ddq))

    yield Suspicion(
        "friction",
        "friction is not in the torques",
        replace(Reading.plain(case.n), change=change),
        advice="log the whole torque of the drives, or set friction = 'none' in [robot]",
        freedom=len(places),
    )


def springs(case: Case) -> Iterator[Suspicion]:
    """A spring, or a counterweight, at a joint, of which the file knows nothing."""
    s, n = case.snapshot, case.n
    found = s.moments(np.hstack([s.tau, s.q]))
    torque = np.eye(n, 2 * n)
    normal = found.read(torque)
    rest = normal.system().rest
    for j, joint in enumerate(case.robot.joints):
        column = np.zeros((n, 2 * n))
        column[j, n + j] = 1.0
        blind, cross = found.left_over(torque, column)
        if blind <= UNSEEN * found.squares(column, normal.scale) or rest <= 0.0:
            continue
        if 1.0 - cross**2 / blind / rest > PROMISING:
            continue
        stiffness = float(cross / blind)

        def change(s: Snapshot, j: int = j, stiffness: float = stiffness) -> Snapshot:
            torque = s.torque.copy()
            torque[:, j] -= stiffness * s.samples.q[:: s.thin, j]
            beside = tuple(change(other, j, stiffness) for other in s.beside)
            return replace(s, torque=torque, beside=beside)

        unit = "Nm/rad" if joint.kind == "revolute" else "N/m"
        yield Suspicion(
            "spring",
            f"a spring of about {stiffness:.3g} {unit} pulls at {joint.name}",
            replace(Reading.plain(n), change=change),
            advice=f"add an [[element]] of kind 'spring' at {joint.name}",
            freedom=1,
        )


def mountings(case: Case) -> Iterator[Suspicion]:
    """Gravity along another axis: on a wall, on the ceiling; or there at all."""
    now = case.robot.gravity
    size = float(np.linalg.norm(now)) or STANDARD
    idim = case.snapshot.base.idim
    skew = replace(case.robot, gravity=np.array([0.31, -0.47, 0.83]) * size)
    base = base_parameters(idim.of(skew))
    packing = idim.packing(base.kept)
    for axis in (*np.eye(3), *-np.eye(3)):
        gravity = size * axis
        if np.allclose(gravity, now):
            continue
        robot = replace(case.robot, gravity=gravity)

        def change(s: Snapshot, robot: Robot = robot) -> Snapshot:
            return with_base(s, with_robot(base, robot), packing)

        along = ", ".join(f"{g:g}" for g in gravity + 0.0)
        yield Suspicion(
            "mounting",
            f"the robot is mounted otherwise: gravity is along [{along}]",
            replace(Reading.plain(case.n), change=change),
            gravity=tuple(gravity.tolist()),
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

            @cache
            def coupled(robot: Robot = robot) -> tuple[BaseParameters, Packing]:
                known = case.snapshot.base.idim
                other = build_idim(robot, known.friction, known.rotor, elements=known.elements)
                base = base_parameters(other)
                return base, other.packing(base.kept)

            def change(s: Snapshot, of: Callable[[], Any] = coupled) -> Snapshot:
                return with_base(s, *of())

            row = f"{{ {names[j - 1]} = {share:g}, {names[j]} = 1 }}"
            word = f"turns with {names[j - 1]}, too" if share else "turns alone"
            yield Suspicion(
                "coupled drive",
                f"the drive of {names[j]} {word}",
                replace(Reading.plain(case.n), change=change),
                advice=f"write row = {row} of [[drive]] {names[j]} in the robot file",
            )


RATES = (2.0, 3.0, 4.0, 5.0, 8.0, 10.0, 60.0, 1000.0, 1e6)
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
            rate=right,
            advice=f"set rate = {right:.6g} in [[log]], or the unit of its time",
        )


SCALES = np.geomspace(1.0 / 300.0, 300.0, 2001)
"""Factors of a joint's torque that are tried."""


def torque_scales(case: Case) -> Iterator[Suspicion]:
    """The torque of one joint in another unit, or on the other side of its gear.

    The joint's rows lose weight as its torque grows. In the basis that makes the normal matrix
    G the unit matrix and that joint's share of it diagonal, the error is a sum for each factor.
    """
    normal = case.own.read(np.eye(case.n))
    weights = normal.scale
    G, lengths = scaled_normal(normal.XX, weights)
    b = weights @ normal.Xy / lengths
    for j, name in enumerate(case.names):
        if weights[j] == 0.0:
            continue
        own = weights[j] * normal.XX[j] / np.outer(lengths, lengths)
        shares, basis = eigh(own, G)
        part = basis.T @ (weights[j] * normal.Xy[j] / lengths)
        rest = basis.T @ b - part
        seen = 1.0 + shares * (SCALES[:, None] ** -2.0 - 1.0)
        explained = (rest + part / SCALES[:, None]) ** 2 / np.maximum(seen, RIDGE)
        factor = float(SCALES[int(np.argmax(np.sum(explained, axis=1)))])
        torque = np.eye(case.n)
        torque[j, j] = factor
        yield Suspicion(
            "torque scale of a joint",
            f"the torque of {name} is {1.0 / factor:.3g} times what the others ask for",
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
    beta = case.of_others
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

SLOWEST, QUICKEST, SLOWNESSES = 0.3, 6.0, (9, 5, 5)
"""Cutoffs of a logger's filter that are looked for [Hz], and how many; a quicker one is a delay."""
LEFT = 0.3
"""Share of the torque's spread that has to be left behind a filter: little is soon explained."""


def slow_loggers(case: Case) -> Iterator[Suspicion]:
    """Torque, or positions, that went through a first-order filter of the logger."""
    quickest = min(QUICKEST, 0.2 * case.snapshot.rate)
    if quickest <= SLOWEST:
        return
    s, n = case.snapshot, case.n
    for name, undo in (("torque", undone), ("position", done)):
        best, ratio = float(np.sqrt(SLOWEST * quickest)), np.sqrt(quickest / SLOWEST)
        for count in SLOWNESSES:
            grid = best * np.geomspace(1.0 / ratio, ratio, count)
            found = s.moments(np.hstack([undo(s, hz).tau for hz in grid]))
            left = [found.read(np.eye(n, count * n, k * n)).free() for k in range(count)]
            best, ratio = float(grid[int(np.argmin(left))]), ratio ** (2.0 / (count - 1))
            if min(left) > PROMISING * s.normal.free():
                break
        else:
            yield from slow_logger(s, name, undo, best)


def slow_logger(
    s: Snapshot, name: str, undo: Callable[[Snapshot, float], Snapshot], best: float
) -> Iterator[Suspicion]:
    """A logger's filter at a cutoff, if it leaves enough of the torque."""
    spread = np.std(s.torque, axis=0)
    if np.sum(np.std(undo(s, best).torque, axis=0)) < LEFT * np.sum(spread):
        return
    yield Suspicion(
        f"slow {name}",
        f"the {name}s went through a low-pass at about {best:.2g} Hz",
        replace(Reading.plain(s.n), change=lambda known: undo(known, best)),
        freedom=1,
        advice=f"log the {name}s without that filter, or the others through the same",
    )


def undone(s: Snapshot, hz: float) -> Snapshot:
    """Torque before a first-order filter."""
    slope = np.gradient(s.torque, 1.0 / s.rate, axis=0)
    return replace(s, torque=s.torque + slope / (2.0 * np.pi * hz))


def done(s: Snapshot, hz: float) -> Snapshot:
    """Torque behind the first-order filter that the positions went through."""
    return replace(s, torque=first_order_lowpass(s.torque, hz, s.rate))


def drifts(case: Case) -> Iterator[Suspicion]:
    """Torques whose zero moves along the log; beside other logs it may stand elsewhere, too."""
    s, n = case.snapshot, case.n
    ramp = np.linspace(-1.0, 1.0, len(s.torque))
    zero = np.column_stack([ramp, np.ones_like(ramp)]) if s.beside else ramp[:, None]
    count = zero.shape[1]
    found = s.moments(np.hstack([s.tau, zero[s.instant]]))
    size = found.extra(np.eye(n, n + count), count)

    def change(s: Snapshot) -> Snapshot:
        return replace(s, torque=s.torque - zero @ size.T)

    worst = int(np.argmax(np.abs(size[:, 0]) / root_mean_square(s.tau)))
    yield Suspicion(
        "drift",
        f"the torques drift, that of {case.names[worst]} by {2.0 * size[worst, 0]:.3g}",
        replace(Reading.plain(n), change=change),
        freedom=n * count,
        advice="let the sensors and drives warm up, or fit a shorter stretch of the log",
    )


LATEST, COARSE = 0.1, 0.008
"""Delays that are looked for, and the steps of the first search [s]."""
SHORTEST_DELAY = 0.2
"""In samples."""
REFINED, FINER = np.linspace(-1.0, 1.0, 9), 3
"""Places of the searches after the first, in their steps, and how many there are."""


def delays(case: Case) -> Iterator[Suspicion]:
    """Torques that stand later or earlier in the log than the motion: all, or one joint's."""
    s, n = case.snapshot, case.n
    every = tuple(range(n))
    times = np.arange(-LATEST, LATEST + 0.5 * COARSE, COARSE)
    together, single = late_errors(s, times, every)
    now = s.normal.system().rest
    yield from delay_of(s, every, together, times)
    for j in every if n > 1 else ():
        if vertex(times, single[j])[1] < PROMISING * now:
            yield from delay_of(s, (j,), single[j], times)


def delay_of(
    s: Snapshot, joints: tuple[int, ...], errors: Array, times: Array
) -> Iterator[Suspicion]:
    """The delay of some joints' torques, by finer searches after a first one."""
    best, _ = vertex(times, errors)
    step = float(times[1] - times[0])
    for _ in range(FINER):
        grid = np.clip(best + step * REFINED, -LATEST, LATEST)
        together, single = late_errors(s, grid, joints)
        best, _ = vertex(grid, together if len(joints) == s.n else single[joints[0]])
        step *= float(REFINED[1] - REFINED[0])
    if abs(best) * s.samples.rate >= SHORTEST_DELAY:
        yield Suspicion(
            "delay",
            "",
            Reading(np.eye(s.n), np.where(np.isin(np.arange(s.n), joints), best, 0.0)),
            measure=lambda known: measured_delay(known, joints, best),
        )


def measured_delay(s: Snapshot, joints: tuple[int, ...], start: float) -> Suspicion:
    """A delay by steps of Gauss and Newton, with its standard error."""
    delay, chosen = np.zeros(s.n), list(joints)
    delay[chosen], error = start, np.inf
    for _ in range(DELAY_TURNS):
        read = Reading(np.eye(s.n), delay).of(s)
        slope = np.gradient(read.torque, 1.0 / s.rate, axis=0)[s.instant]
        column = np.zeros_like(slope)
        column[:, chosen] = slope[:, chosen]
        step, error = one_more_column(read, -column)
        delay[chosen] = np.clip(delay[chosen] + np.clip(step, -COARSE, COARSE), -LATEST, LATEST)
    size = float(delay[chosen[0]])
    names = s.base.idim.robot.joint_names
    whose = f"the torque of {names[chosen[0]]}" if len(chosen) < s.n else "the torque"
    word = "lags" if size > 0.0 else "leads"
    return mended(
        "delay",
        f"{whose} {word} the motion by {1e3 * abs(size):.2f} ± {1e3 * error:.2f} ms",
        Mending(delay=shortest(np.round(delay, 6))),
        s.n,
        error,
    )


def late_errors(s: Snapshot, times: Array, joints: Sequence[int]) -> tuple[Array, dict[int, Array]]:
    """Squared errors of least squares with torques as they stand later in the log.

    Parameters
    ----------
    s : Snapshot
    times : ndarray, shape (m,)
        [s]
    joints : sequence of int
        Which are late.

    Returns
    -------
    together : ndarray, shape (m,)
        With all of these joints late.
    single : dict of ndarray, shape (m,)
        With one of them late.
    """
    normal, moved = s.normal, [s.delayed(time) for time in times]
    weights = normal.scale
    scaled, lengths = scaled_normal(normal.XX, weights)
    L = np.linalg.cholesky(scaled)
    solved = solve_triangular(L, (weights[:, None] * normal.Xy / lengths).T, lower=True)
    total, squares = np.sum(solved, axis=1), weights * normal.squares
    projected: Array = np.repeat(total[:, None], len(times), axis=1)
    size: Array = np.full(len(times), np.sum(squares))
    single = {}
    for j in joints:
        own = np.column_stack([torque[:, j] for torque in moved])
        products = weights[j] * s.motion.products(j, own) / lengths[:, None]
        change = solve_triangular(L, products, lower=True) - solved[:, [j]]
        more = weights[j] * np.sum(own[s.moving[:, j]] ** 2, axis=0) - squares[j]
        single[j] = np.sum(squares) + more - np.sum((total[:, None] + change) ** 2, axis=0)
        projected, size = projected + change, size + more
    return size - np.sum(projected**2, axis=0), single


def vertex(places: Array, values: Array) -> tuple[float, float]:
    """Place and value of the smallest of evenly spaced values, by a parabola about it."""
    k = int(np.clip(np.argmin(values), 1, len(values) - 2))
    a, b, c = values[k - 1 : k + 2]
    bend = a - 2.0 * b + c
    shift = float(np.clip(0.5 * (a - c) / bend, -1.0, 1.0)) if bend > 0.0 else 0.0
    value = b - 0.25 * (a - c) * shift if bend > 0.0 else min(a, b, c)
    return float(places[k] + shift * (places[1] - places[0])), float(value)


def one_more_column(s: Snapshot, column: Array) -> tuple[float, float]:
    """How much of a column is in a snapshot's torques beyond any model, with its standard error.

    Rows are weighed by what least squares leaves of each joint. The error is that of a sandwich
    with the correlations of neighbouring instants, their weights falling to zero.

    Parameters
    ----------
    s : Snapshot
    column : ndarray, shape (instants, n)

    Returns
    -------
    size, error : float
        The error is infinite where the model has the column already.
    """
    beta = s.normal.system().solve()
    A, y, instants = [], [], []
    for known in (s, *s.beside):
        own = column if known is s else np.zeros_like(known.tau)
        rest = known.tau - predicted(known, beta)
        for j, (columns, X) in enumerate(known.motion.rows):
            at = known.moving[:, j]
            sigma = float(root_mean_square(rest[at, j])) if np.any(at) else 1.0
            rows = np.zeros((int(np.sum(at)), s.base.count))
            rows[:, columns] = X / sigma
            A.append(rows)
            y.append(np.column_stack([rest[at, j], own[at, j]]) / sigma)
            if known is s:
                instants.append(np.flatnonzero(at))
    rows, both = np.vstack(A), np.vstack(y)
    lengths = np.sqrt(np.sum(rows**2, axis=0))
    left, values, _ = np.linalg.svd(
        rows / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False
    )
    span = left[:, values > SMALLEST * values[0]]
    before = float(np.sum(both[:, 1] ** 2))
    both = both - span @ (span.T @ both)
    seen = float(np.sum(both[:, 1] ** 2))
    if seen <= UNSEEN * before:
        return 0.0, np.inf
    size = float(both[:, 0] @ both[:, 1]) / seen
    scores = np.zeros(len(s.instant))
    count = sum(len(at) for at in instants)
    every = both[:, 1] * (both[:, 0] - size * both[:, 1])
    np.add.at(scores, np.concatenate(instants), every[:count])
    others = float(np.sum(every[count:] ** 2))
    return size, float(np.sqrt(np.sum(scores**2) * correlation(scores) + others) / seen)


FARTHEST = 0.05
"""Share of the instants over which residuals are correlated at most."""


def correlation(scores: Array) -> float:
    """Sum of the correlations of a sequence, with weights that fall to zero; at least 1."""
    length = max(1, int(FARTHEST * len(scores)))
    square = float(np.sum(scores**2))
    if square == 0.0:
        return 1.0
    sums = [float(np.sum(scores[k:] * scores[:-k])) for k in range(1, length)]
    weights = 1.0 - np.arange(1, length) / length
    return max(1.0, 1.0 + 2.0 * float(weights @ np.array(sums)) / square)


TURN = 1e-4
"""Half of the step of differences [rad or m]."""
TURNS, DELAY_TURNS = 4, 2
"""Steps of Gauss and Newton, and those after a search."""


def encoder_offsets(case: Case) -> Iterator[Suspicion]:
    """An encoder whose zero is elsewhere, by a few steps of Gauss and Newton."""
    first = offset_steps(case.snapshot, case.beta, range(case.n))
    for j, step in enumerate(first):
        if step is None or step.left > PROMISING:
            continue
        offset = np.zeros(case.n)
        s = case.snapshot.brief
        for _ in range(TURNS):
            moved = s.along(s.q + offset, s.dq, s.ddq)
            beta = moved.normal.system().solve()
            (again,) = offset_steps(moved, beta, (j,))
            if again is None:
                break
            offset[j] += again.size

        def measure(s: Snapshot, j: int = j, offset: Array = offset) -> Suspicion:
            return measured_offset(s, j, offset)

        reading = Reading.of_mending(Mending(offset=shortest(offset)), case.n)
        yield Suspicion("encoder offset", "", reading, measure=measure)


def measured_offset(s: Snapshot, joint: int, offset: Array) -> Suspicion:
    """An encoder's zero with its standard error [rad or m]."""
    moved = s.along(s.q + offset, s.dq, s.ddq)
    column = torque_slope(moved, moved.normal.system().solve(), joint)
    step, error = one_more_column(moved, column)
    offset = offset.copy()
    offset[joint] += np.clip(step, -LARGEST_STEP, LARGEST_STEP)
    own = s.base.idim.robot.joints[joint]
    turn, unit = (180.0 / np.pi, "deg") if own.kind == "revolute" else (1.0, "m")
    return mended(
        "encoder offset",
        f"the position of {own.name} lacks {turn * offset[joint]:.2f} ± {turn * error:.2f} {unit}",
        Mending(offset=shortest(np.round(offset, 6))),
        s.n,
        error,
    )


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

DIAGNOSES: dict[str, Callable[[Case], Iterator[Suspicion]]] = {
    "torque sign": torque_signs,
    "torque order": torque_orders,
    "delay": delays,
    "encoder offset": encoder_offsets,
    "drift": drifts,
    "position sign": position_signs,
    "position order": position_orders,
    "joint order": joint_orders,
    "position unit": position_units,
    "absolute encoder": absolute_encoders,
    "reversed time": reversed_time,
    "gravity": without_gravity,
    "mounting": mountings,
    "coupled drive": coupled_drives,
    "rate": rates,
    "torque scale of a joint": torque_scales,
    "load": loads,
    "friction": without_friction,
    "spring": springs,
    "torque scale": foreign_scales,
    "slow logger": slow_loggers,
}
"""What is looked for."""
