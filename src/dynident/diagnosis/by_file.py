"""What the robot file's inertials say of a log that any bodies explain.

Bodies that nobody knows go with a clock that is wrong, or gravity along another axis: least squares
leaves what it did, or little more. Those of the file do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.diagnoses import STANDARD, suspect_mountings, suspect_rates
from dynident.diagnosis.scene import TINY, Scene
from dynident.diagnosis.screening import average_errors
from dynident.diagnosis.suspicion import Case, Suspicion, make_mendable_suspicion
from dynident.recording.mend import Mending, Signal


@dataclass(frozen=True, eq=False)
class ByFile:
    """A reading of a log under which the file's inertials explain it much better.

    Attributes
    ----------
    before, after : float
        Mean error of the joints with the file's inertials.
    """

    suspicion: Suspicion
    before: float
    after: float


def find_by_file(scene: Scene) -> ByFile | None:
    """The reading that the robot file speaks for, and bodies of their own not against.

    Of clocks that are about as good, the one that is least wrong.
    """
    if not scene.robot.has_nominal or not scene.plain:
        return None
    alone = scene.among(())
    brief = alone.brief
    whole = brief.base.idim.torque(brief.base.idim.nominal, brief.q, brief.dq, brief.ddq)
    readings, torques = zip(*list_whole_log_readings(brief, whole), strict=True)
    before, *after_all = measure_errors(brief, np.array([whole, *torques])).tolist()
    known = [*zip(after_all, readings, strict=True)]
    hopeful = [each for each in known if each[0] <= limit.BY_FILE * before]
    times = measure_inertia(alone)
    if not hopeful and times > limit.QUICK:
        clocks = [each for each in known if each[1].rate is not None]
        off = [abs(np.log((s.rate or 1.0) / scene.log.rate / times**0.5)) for _, s in clocks]
        hopeful = [clocks[int(np.argmin(off))]]
    if not hopeful:
        return None
    free, told = average_errors(alone.problem.free_errors()), []
    for error, suspicion in hopeful:
        read = suspicion.reading.of(alone).problem
        left = average_errors(read.free_errors())
        if read.as_many_as(alone.problem) and left <= limit.TIED * free:
            told.append((error, left, suspicion))
    if not told:
        return None
    least, rate = min(error for error, _, _ in told), scene.log.rate
    after, _, best = min(
        (each for each in told if each[0] <= (1.0 + limit.OTHER) * least),
        key=lambda each: (abs(np.log((each[2].rate or rate) / rate)), each[1], each[0]),
    )
    return ByFile(best, before, after)


def measure_inertia(s: Scene) -> float:
    """How many times the file's inertia is in a log's torques, over how many its weight is.

    That is the square of how much faster time runs than the log says. One where fewer than two
    joints tell.
    """
    idim, still = s.base.idim, np.zeros_like(s.q)
    weight = idim.torque(idim.nominal, s.q, still, still)
    rest = idim.torque(idim.nominal, s.q, s.dq, s.ddq) - weight
    shares = measure_shares(s, np.array([weight, rest]))
    middles = []
    for size, error in zip(shares.size.T, shares.error.T, strict=True):
        some = np.abs(size) > limit.TELLING * error
        if np.count_nonzero(some) < 2:
            return 1.0
        middles.append(find_middle(size[some], 1.0 / (error[some] ** 2 + limit.OTHER**2)))
    return middles[1] / middles[0] if min(middles) > 0.0 else 1.0


@dataclass(frozen=True, eq=False)
class Shares:
    """How many times some torques stand in those of a log, with drives beside, joint by joint.

    Attributes
    ----------
    size, error : ndarray, shape (n, k)
        With standard errors, infinite where a joint has nothing of it.
    told : ndarray, shape (n,)
        Share that they explain of the square that drives leave.
    """

    size: Array
    error: Array
    told: Array


def measure_shares(s: Scene, parts: Array) -> Shares:
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
    return Shares(size, error, told)


def build_drive_columns(s: Scene, joint: int) -> Array:
    """What a drive adds to the rows of a joint: inertia, viscous and Coulomb friction, a zero."""
    at = s.moving[:, joint]
    dq = s.dq[at, joint]
    return np.column_stack([s.ddq[at, joint], dq, np.sign(dq), np.ones_like(dq)])


def find_middle(values: Array, weights: Array) -> float:
    """The weighted median of some values."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(below, 0.5 * below[-1])]])


@dataclass(frozen=True, eq=False)
class FileScale:
    """How many times the file's torques are in a log's.

    Attributes
    ----------
    every : float
        Of all joints, the middle one of those that tell.
    joint : int or None
        That has another one by itself.
    own : float
        Of that joint, over that of the others.
    """

    every: float
    joint: int | None = None
    own: float = 1.0


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


def list_whole_log_readings(s: Scene, whole: Array) -> Iterator[tuple[Suspicion, Array]]:
    """Readings of a log that change all joints alike, and the file's torque under each.

    As the log stands, that is `whole`. Beside drives, a torque of the other sign is that of bodies
    turned round.
    """
    idim, n, still = s.base.idim, s.n, np.zeros_like(s.q)
    case = Case(s, np.zeros(s.base.count), np.zeros(n), frozenset(range(n)))
    weight = idim.torque(idim.nominal, s.q, still, still)
    for told in suspect_rates(case):
        assert told.rate is not None
        yield told, weight + (told.rate / s.log.rate) ** 2 * (whole - weight)
    size = float(np.linalg.norm(s.robot.gravity)) or STANDARD
    hung = [idim.of(replace(s.robot, gravity=size * axis)) for axis in np.eye(3)]
    weights = np.array([each.torque(idim.nominal, s.q, still, still) for each in hung]) / size
    for told in suspect_mountings(case):
        turned = np.tensordot(np.array(told.gravity), weights, 1)
        yield told, whole - weight + turned
    yield suspect_turned(n, "torque", ("tau",)), -whole
    mirrored = idim.torque(idim.nominal, -s.q, -s.dq, -s.ddq)
    yield suspect_turned(n, "position", ("q", "qref")), mirrored


def suspect_turned(n: int, what: str, signals: tuple[Signal, ...]) -> Suspicion:
    """All joints' signals of the other sign."""
    told = f"the {what}s of all joints have the other sign"
    mending = Mending(sign=dict.fromkeys(signals, -1.0))
    return make_mendable_suspicion(f"{what} sign", told, mending, n)


def measure_errors(s: Scene, known: Array) -> Array:
    """Mean error of the joints with some torques, and drives of their own, shape (k,).

    All readings of a whole log leave the span of what drives do. Torques have the shape (k,
    instants, n).
    """
    errors = np.zeros((len(known), s.n))
    for j, at in enumerate(s.moving.T):
        Q = np.linalg.qr(build_drive_columns(s, j))[0]
        rest: Array = s.tau[at, j] - known[:, at, j]
        size = float(np.linalg.norm(s.tau[at, j]))
        if size > 0.0:
            errors[:, j] = np.linalg.norm(rest - (rest @ Q) @ Q.T, axis=1) / size
    return np.array([average_errors(own) for own in errors])
