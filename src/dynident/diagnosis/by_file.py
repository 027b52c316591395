"""What the robot file's inertials say of a log that any bodies explain.

Bodies that nobody knows go with a clock that is wrong, or gravity along another axis: least squares
leaves what it did, or little more. Those of the file do not, with drives that take energy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from scipy.linalg import orth

from dynident.core.arrays import Array
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.diagnoses import DIAGNOSES, suspect_orders
from dynident.diagnosis.scene import TINY, Scene
from dynident.diagnosis.screening import build_problem
from dynident.diagnosis.signs import Sign
from dynident.diagnosis.sized import TURN, build_offset_family
from dynident.diagnosis.suspicion import (
    LogCase,
    Reading,
    Suspected,
    Suspicion,
    suspect_scaled_joint,
)
from dynident.instants.squares import average_errors

BY_FILE = ", if the robot file's inertials are right"
NOTHING = "the torques contain none of the robot's"
ASKED = (
    "torque sign",
    "torque order",
    "position sign",
    "position order",
    "joint order",
    "position unit",
    "reversed time",
    "gravity",
    "mounting",
    "rate",
)
"""Diagnoses whose readings need no number."""


def find_by_file(scene: Scene) -> Suspected | None:
    """The reading that the robot file speaks for, and bodies of their own not against.

    A joint of which the file's torque explains nothing has no say between readings: one that takes
    its motion away would seem better. Of clocks about as good, the one that is least wrong.
    """
    if not scene.robot.has_nominal or not scene.plain:
        return None
    alone = scene.among(())
    brief, n = alone.brief, scene.n
    case = LogCase(brief, np.zeros(brief.base.count), np.zeros(n), frozenset(scene.robot.driven))
    readings = [each for name in ASKED for each in DIAGNOSES[name].suspect(case)]
    scaled = measure_file_scale(alone).suspicion(scene)
    readings += [] if scaled is None else [scaled]
    now = measure_errors(brief, np.eye(n)[None])[0]
    errors = np.array(list(measure_readings(brief, readings)))
    most = measure_errors(brief, np.eye(n)[None], bodies=False)[0]
    before = average_errors(now)
    if before < limit.AS_FILED:
        return None
    said = [average_errors(each) for each in np.minimum(errors, most)]
    quiet = average_errors(np.minimum(now, most))
    rate = scene.log.rate
    most_left = [
        limit.BY_FILE_SLOWER if (each.rate or rate) < rate else limit.BY_FILE for each in readings
    ]
    hopeful = [
        k
        for k, each in enumerate(errors)
        if average_errors(each) <= most_left[k] * before and said[k] <= limit.WORTH_AGAINST * quiet
    ]
    times = measure_inertia(alone)
    off = {k: abs(np.log(s.rate / rate / times**0.5)) for k, s in enumerate(readings) if s.rate}
    if not hopeful and times > limit.QUICK and off:
        hopeful = [min(off, key=off.__getitem__)]
    if not hopeful:
        zero = find_zero(alone)
        if zero is None:
            return None
        readings, hopeful = [*readings, zero], [len(readings)]
        errors = np.vstack([errors, *measure_readings(brief, [zero])])
        if average_errors(errors[-1]) > limit.WORTH_SURE * before:
            return None  # other joints contradict it
        said.append(0.0)
    free, told = average_errors(alone.problem.free_errors()), []
    least = min(said[k] for k in hopeful)
    for k in hopeful:
        if said[k] <= (1.0 + limit.OTHER) * least:
            read = build_problem(alone, readings[k].reading)
            left = average_errors(read.free_errors())
            if read.as_many_as(alone.problem) and left <= limit.TIED * free:
                told.append((abs(np.log((readings[k].rate or rate) / rate)), left, k))
    if not told:
        return None
    best = min(told)[-1]
    return Suspected(readings[best], before, average_errors(errors[best]))


def find_missing_bodies(s: Scene) -> Sign | None:
    """What torques are that hold little of the file's weight where that is most.

    Those that move the file's bodies, where that tells, are freed of gravity alone. Others are what
    a model of the robot leaves of them; unless several joints have some of all that the file asks
    for, as in other units, or about that with positions in another or torques in another order.
    """
    parts = split_file_torque(s)
    borne = np.std(parts[0], axis=0)
    heavy = (borne > limit.HEAVY * np.max(borne)) & np.any(s.tau, axis=0)
    if s.n < 2 or not np.any(heavy):
        return None
    shares = measure_shares(s, parts)
    of_weight, of_motion = shares.size.T
    most = np.abs(of_weight) + ERRORS * shares.error[:, 0]
    tells = shares.error[:, 1] < 0.5 * limit.MOVED
    if np.median(most[heavy]) > limit.BORNE or not np.any(tells):
        return None
    if np.median(of_motion[tells]) > limit.MOVED:
        # in another unit they have as little of what moves them
        own = heavy & tells & (of_motion != 0.0)
        little = np.median(most[own] / np.abs(of_motion[own])) <= limit.BORNE if any(own) else True
        return Sign("gravity", f"{NOTHING} weight{BY_FILE}") if little else None
    case = LogCase(s, np.zeros(s.base.count), np.zeros(s.n), frozenset(range(s.n)))
    orders = suspect_orders("torque order", "the torques", ("tau",), case)
    otherwise = chain(DIAGNOSES["position unit"].suspect(case), orders)
    read = (each.reading.of(s) for each in otherwise)
    explained = measure_file_torque(s) > 0.0 or any(
        is_near_one(measure_file_torque(each)) for each in read
    )
    if explained or find_other_side(s) is not None:
        return None
    if np.any(measure_swing(parts)[heavy] < limit.SWINGING):
        words = f"little of the robot's weight and motion is in the torques{BY_FILE}"
        return Sign("free swing", f"{words}: they balance, as in a free swing")
    return Sign("external torque", f"{NOTHING} weight and motion{BY_FILE}")


def measure_swing(parts: Array) -> Array:
    """Share of each joint's weight that its motion does not balance, times a number, shape (n,).

    `parts`: see `split_file_torque`. That number is the error of the file's inertia. One, of
    weight that grows with the motion or that no motion is like.
    """
    weight, moved = (part - np.mean(part, axis=0) for part in parts)
    size, square = np.sum(weight**2, axis=0), np.sum(moved**2, axis=0)
    both = -np.sum(weight * moved, axis=0)
    alike = both / np.maximum(square, TINY)
    share = np.sqrt(np.maximum(size - alike * both, 0.0) / np.maximum(size, TINY))
    near = (alike > 0.0) & (np.abs(np.log(np.maximum(alike, TINY))) < np.log(limit.OFF_SWING))
    return np.where(near, share, 1.0)


def measure_file_torque(s: Scene) -> float:
    """How many times several joints have all that the file's bodies ask for; 0 where none do."""
    whole = measure_shares(s, np.sum(split_file_torque(s), axis=0)[None])
    alike = whole.size[whole.told > limit.SEEN, 0]
    return float(np.median(alike)) if len(alike) > 1 and np.all(alike > 0.0) else 0.0


def split_file_torque(s: Scene) -> Array:
    """What the file's bodies ask for as their weight, and to move them, shape (2, instants, n)."""
    idim, still = s.base.idim, np.zeros_like(s.q)
    weight = idim.torque(idim.nominal, s.q, still, still)
    return np.array([weight, idim.torque(idim.nominal, s.q, s.dq, s.ddq) - weight])


ERRORS = 2.0
"""Standard errors that what is told of a weight may be larger."""


def measure_readings(s: Scene, readings: Sequence[Suspicion]) -> Iterator[Array]:
    """What the file's inertials leave of the joints under each reading, shapes (n,)."""
    combined = [each.reading.torque for each in readings if each.reading.combines]
    errors = iter(measure_errors(s, np.reshape(combined, (-1, s.n, s.n))))
    for each in readings:
        if each.reading.combines:
            yield next(errors)
        else:
            yield measure_errors(each.reading.of(s), np.eye(s.n)[None])[0]


def measure_errors(s: Scene, torques: Array, bodies: bool = True) -> Array:
    """What the file's inertials leave of each joint with a drive of its own, shape (k, n).

    Its friction takes energy. Combinations of the torques have the shape (k, n, n), see `Reading`.
    """
    idim = s.base.idim
    known = idim.torque(idim.nominal, s.q, s.dq, s.ddq) if bodies else np.zeros_like(s.q)
    errors = np.zeros((len(torques), s.n))
    for j, at in enumerate(s.moving.T):
        drive = build_drive_columns(s, j)
        y = s.tau[at] @ torques[:, j].T
        rest, size = y - known[at, j, None], np.linalg.norm(y, axis=0)
        if s.logged_torque is not None:
            size = np.full_like(size, np.linalg.norm(s.logged_torque[s.instant][at, j]))
        found = np.linalg.lstsq(drive, rest, rcond=limit.UNSEEN)[0]
        left = rest - drive @ found
        rubs = drive[:, RUBS] @ found[RUBS]
        gives = np.sum(drive[:, RUBS[:1]] * rubs, axis=0) < 0.0
        if np.any(gives):
            plain = np.delete(drive, RUBS, axis=1)
            own = np.linalg.lstsq(plain, rest[:, gives], rcond=limit.UNSEEN)[0]
            left[:, gives] = rest[:, gives] - plain @ own
        told = size > 0.0
        errors[told, j] = np.linalg.norm(left, axis=0)[told] / size[told]
    return errors


RUBS = [1, 2]
"""Of a drive's columns, those of friction: speed and its sign."""


def find_zero(s: Scene) -> Suspicion | None:
    """The encoder's zero that explains most of what the file's torques leave.

    Of joints that tell, with drives and a scale of their own. What other bodies than the file's do
    to a zero is its error: `ZERO_BLUR` of the zero that would leave all squares twice as large, and
    `ZERO_LEAST` at least. It has to be half as large where the last links may have any tool.
    """
    idim, known = s.base.idim, s.base.idim.torque(s.base.idim.nominal, s.q, s.dq, s.ddq)
    carrying = np.isin(np.arange(1, s.n + 1), [joint.parent for joint in s.robot.joints])
    units = np.eye(len(idim.parameters))[: 10 * s.n][np.repeat(~carrying, 10)]
    tools = np.array([idim.torque(unit, s.q, s.dq, s.ddq) for unit in units])
    told = np.flatnonzero(measure_shares(s, known[None]).told > limit.SEEN).tolist()
    turned = (s.along(s.q + turn, s.dq, s.ddq) for turn in TURN * np.eye(s.n))
    slopes = np.array([idim.torque(idim.nominal, m.q, m.dq, m.ddq) - known for m in turned])
    blur, found = np.maximum(s.problem.free_errors()[: s.n], limit.OTHER), list[Array]()
    for carried in (tools, tools[:0]):
        both = np.zeros((0, s.n + 1))
        for j in told:
            at = s.moving[:, j]
            free = np.vstack([build_drive_columns(s, j).T, known[at, j], carried[:, at, j]]).T
            Q = orth(free / np.maximum(np.linalg.norm(free, axis=0), TINY), limit.UNSEEN)
            tau = s.tau[at, j]
            x = np.column_stack([slopes[:, at, j].T / TURN, tau])
            both = np.vstack([both, (x - Q @ (Q.T @ x)) / (blur[j] * np.linalg.norm(tau))])
        X, y = both[:, :-1], both[:, -1]
        size, square = X.T @ y, np.sum(X**2, axis=0)
        found.append(np.divide(size, square, out=np.zeros(s.n), where=square > TINY))
    held, size = found
    rest = np.linalg.norm(y[:, None] - X * size, axis=0)
    twice = np.divide(rest, np.sqrt(square), out=np.full(s.n, np.inf), where=square > TINY)
    error = np.maximum(limit.ZERO_BLUR * twice, limit.ZERO_LEAST)
    twice[(np.abs(size) > limit.LARGEST_ZERO) | ~carrying] = np.inf
    best = int(np.argmax(np.abs(size) / twice))
    sure = abs(size[best]) > limit.ZERO_SURE * error[best]
    if not sure or held[best] * size[best] < limit.ZERO_HELD * size[best] ** 2:
        return None
    return build_offset_family(s.n, best).tell(s, size[best : best + 1], error[best : best + 1])


def measure_inertia(s: Scene) -> float:
    """How many times the file's inertia is in a log's torques, over how many its weight is.

    That is the square of how much faster time runs than the log says. One where fewer than two
    joints tell.
    """
    shares = measure_shares(s, split_file_torque(s))
    middles = []
    for size, error in zip(shares.size.T, shares.error.T, strict=True):
        some = np.abs(size) > limit.TELLING * error
        if np.count_nonzero(some) < 2:
            return 1.0
        middles.append(find_middle(size[some], 1.0 / (error[some] ** 2 + limit.OTHER**2)))
    return middles[1] / middles[0] if min(middles) > 0.0 else 1.0


@dataclass(frozen=True, eq=False)
class FileShares:
    """How many times some torques stand in those of a log, with drives beside, joint by joint."""

    size: Array
    error: Array
    """`size`, `error`: with standard errors, infinite where a joint has nothing of it, shape (n,
    k)."""
    told: Array
    """Share that they explain of the square that drives leave, shape (n,)."""


def measure_shares(s: Scene, parts: Array) -> FileShares:
    """Least squares of each joint's torque by parts of it, shape (k, instants, n).

    Standard errors count as many residuals as their correlation leaves independent.
    """
    size = np.zeros((s.n, len(parts)))
    error, told = np.full_like(size, np.inf), np.zeros(s.n)
    for j, at in enumerate(s.moving.T):
        Q = np.linalg.qr(build_drive_columns(s, j))[0]
        X, y = parts[:, at, j].T, s.tau[at, j]
        there = np.maximum(np.linalg.norm(X, axis=0), np.linalg.norm(y))
        X, y = X - Q @ (Q.T @ X), y - Q @ (Q.T @ y)
        some = np.linalg.norm(X, axis=0) > limit.UNSEEN * there
        count = len(y) - Q.shape[1] - np.count_nonzero(some)
        if not np.any(some) or count <= 0:
            continue
        size[j, some] = np.linalg.lstsq(X[:, some], y, rcond=None)[0]
        rest = y - X @ size[j]
        square = float(rest @ rest) + TINY
        rho = float(np.clip(rest[1:] @ rest[:-1] / square, 0.0, 1.0 - 1.0 / len(y)))
        spread = square / count * (1.0 + rho) / (1.0 - rho)
        inverse = np.linalg.pinv(X[:, some].T @ X[:, some], hermitian=True)
        error[j, some] = np.sqrt(np.diag(inverse) * spread)
        told[j] = 1.0 - square / (float(y @ y) + TINY)
    return FileShares(size, error, told)


def build_drive_columns(s: Scene, joint: int) -> Array:
    """What a drive adds to the rows of a joint: inertia, viscous and Coulomb friction, a zero.

    And what elements add that act there, as a spring that is known of.
    """
    at, idim = s.moving[:, joint], s.base.idim
    dq = s.dq[at, joint]
    found = np.column_stack([s.ddq[at, joint], dq, np.sign(dq), np.ones_like(dq)])
    first = len(idim.frictions) - len(idim.elements)
    for k, each in enumerate(idim.drive_columns, idim.inertial):
        if each.friction is not None and each.friction >= first and each.turns[joint]:
            unit = np.eye(1, len(idim.parameters), k)[0]
            own = idim.torque(unit, s.q, s.dq, s.ddq)[at, joint]
            rest = own - found @ np.linalg.lstsq(found, own, rcond=limit.UNSEEN)[0]
            if np.linalg.norm(rest) > limit.UNSEEN * np.linalg.norm(own):
                found = np.column_stack([found, own])
    return found


def find_middle(values: Array, weights: Array) -> float:
    """The weighted median of some values."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(below, 0.5 * below[-1])]])


@dataclass(frozen=True, eq=False)
class FileScale:
    """How many times the file's torques are in a log's."""

    every: float
    """Of all joints, the middle one of those that tell."""
    joint: int | None = None
    """That has another one by itself."""
    own: float = 1.0
    """Of that joint, over that of the others."""

    def suspicion(self, s: Scene) -> Suspicion | None:
        """What to read otherwise, and where it is far off; None where it is not."""
        if is_near_one(self.every) or self.every <= 0.0:
            if self.joint is None:
                return None
            return suspect_scaled_joint(s.robot, self.joint, self.own, "what the others imply")
        return find_other_side(s) or Suspicion(
            "torque scale",
            f"the torques are {self.every:.3g} times what the rigid bodies require",
            replace(Reading.plain(s.n), torque=np.eye(s.n) / self.every),
            freedom=1,
            advice="check their unit, gains and the side of the reduction, and the unit of time",
        )


def is_near_one(times: float, most: float = limit.BEYOND) -> bool:
    """Whether torques are about what the file's inertials ask for."""
    return 1.0 / most <= abs(times) <= most


def find_other_side(s: Scene) -> Suspicion | None:
    """The side of the gears on which torques are about what the file's inertials ask for.

    Of gears that are alike only their size tells a side from a unit, and has to agree better.
    """
    sides = DIAGNOSES["torque side"]
    case = LogCase(s, np.zeros(s.base.count), np.zeros(s.n), frozenset())
    told = measure_shares(s, np.sum(split_file_torque(s), axis=0)[None]).told > limit.SEEN
    for each in sides.suspect(case) if sides.applies(s) else ():
        gears = np.diag(each.reading.torque)[told]
        most = limit.AGREEING if np.allclose(gears, gears[:1]) else limit.BEYOND
        if is_near_one(measure_file_torque(each.reading.of(s)), most):
            return each
    return None


def measure_file_scale(s: Scene) -> FileScale:
    """How many times the robot file's torques are in a log's, with drives of their own.

    Something at the end of the chain that the file does not know changes all joints before it, and
    the last most. So one joint has another scale by itself only where later ones agree with all.
    """
    idim = s.base.idim
    shares = measure_shares(s, idim.torque(idim.nominal, s.q, s.dq, s.ddq)[None])
    size, told = shares.size[:, 0], shares.told
    some = np.flatnonzero(told > limit.SEEN)
    if not len(some):
        return FileScale(1.0)
    every = find_middle(size[some], told[some])
    off = np.abs(np.log(np.maximum(size[some] / every, TINY)))
    for k, j in enumerate(some[:-1]):
        if off[k] > np.log(limit.APART_BY_FILE) and np.all(off[k + 1 :] < np.log(limit.AGREEING)):
            return FileScale(every, int(j), float(size[j] / every))
    return FileScale(every)
