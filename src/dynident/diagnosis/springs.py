"""Springs and counterweights of which a robot's file knows nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array
from dynident.diagnosis import thresholds as limit
from dynident.diagnosis.scene import Scene
from dynident.diagnosis.sized import (
    SizedReading,
    differentiate_residuals,
    score_products,
    sum_column_products,
    suspect_families,
)
from dynident.diagnosis.suspicion import LogCase, Reading, Suspicion, fit_consistent_model
from dynident.instants.squares import add_prior


def suspect_springs(case: LogCase) -> Iterator[Suspicion]:
    """A spring, or a counterweight, at a joint, of which the file knows nothing.

    Masses that no body has may do the same. So where a consistent model leaves clearly more than
    any, what it leaves is asked for a spring, too.
    """
    s, n = case.scene, case.n
    yield from suspect_families(case, [build_spring_family(n, j) for j in s.robot.driven])
    free = s.problem.free_errors()[:n]
    forced = np.flatnonzero(case.errors[:n] > limit.FORCED * np.maximum(free, np.finfo(float).tiny))
    if np.sqrt(np.mean(case.errors**2)) < limit.WRONG_ALTOGETHER:
        for j in forced[np.argsort(-case.errors[forced])][: limit.MOST_FORCED]:
            family = build_spring_family(n, int(j))
            told = family.tell(s, fit_under_constraints(s, family, case.beta), np.zeros(1))
            if told is not None:
                yield told


@dataclass(frozen=True, eq=False)
class FoundSpring:
    """A spring at a joint that the logs show, or the logs and the robot file together."""

    joint: int
    size: float
    error: float
    """`size`, `error`: with its standard error [Nm/rad or N/m]."""
    by_file: bool
    """Whether it takes the file's inertials to tell it from other bodies."""
    beta: Array
    """What is believed without it, shape (p,)."""

    def suspicion(self, s: Scene) -> Suspicion:
        """The same as what is told of other springs."""
        family = build_spring_family(s.n, self.joint)
        found = family.tell(s, np.array([self.size]), np.array([self.error]))
        assert found is not None
        words = ", if the robot file's inertials are right" if self.by_file else ""
        return replace(found, what=found.what + words)


def find_sure_spring(s: Scene) -> FoundSpring | None:
    """The spring that what is known speaks for most, if it is far more than noise.

    Bodies that the log alone allows may do what a spring does, and then no error falls with it.
    What is believed of the bodies is rows beside those of the log: ``||(y - X beta - k c) /
    sigma||^2 + ||P theta - t||^2`` falls by the square of the number k over its standard error.
    Logs beside the scene have the spring, too.
    """
    problem, families = s.problem, [(build_spring_family(s.n, j), np.zeros(1)) for j in range(s.n)]
    columns = differentiate_residuals(s, np.zeros(0), families)
    rows = np.concatenate([np.sum(each.moving, axis=0) for each in (s, *s.beside)])
    noise = np.maximum(problem.free_errors(), limit.FAINTEST) ** 2 * problem.squares
    weights = np.divide(rows, noise, out=np.zeros_like(noise), where=noise > 0.0)
    products, blind, cross = sum_column_products(s, weights, columns)
    system = problem.weigh(weights)
    free = score_products(system, products, blind, cross)
    found, beta = free, problem.system.solve()
    believed = add_prior(s.base, system)
    if believed is not None:
        B = s.base.matrix
        found, beta = score_products(believed, B.T @ products, blind, cross), B @ believed.solve()
    gained = found.gained
    j = int(np.argmax(gained))
    if gained[j] < max(limit.SURE**2, limit.SPRING_SHARE * (found.rest - free.rest)):
        return None
    size = float(found.cross[j] / found.blind[j, j])
    error = float(found.blind[j, j] ** -0.5)
    return FoundSpring(j, size, error, bool(free.gained[j] < limit.SURE**2), beta)


def fit_under_constraints(s: Scene, family: SizedReading, beta: Array) -> Array:
    """A number of which the torque is a linear function, by the best consistent models.

    The product of the column with what these leave falls with the number, and is zero at the best.
    `beta` is the best consistent model of the scene without it.
    """
    from scipy.optimize import brentq  # a quarter of a second that few runs need

    (column,) = differentiate_residuals(s, beta, [(family, np.zeros(1))])
    weights = s.problem.scale.reshape(-1, s.n)
    torques = [None if own is None else own[0] for own in column]

    def times_column(logs: tuple[Scene, ...], values: Sequence[Array | None]) -> float:
        return sum(
            float(np.sum(w * own * value * known.moving))
            for known, own, w, value in zip(logs, torques, weights, values, strict=True)
            if own is not None and value is not None
        )

    def slope(size: float) -> float:
        moved = family.read(s, np.array([size]))
        best, logs = fit_consistent_model(moved.problem), (moved, *moved.beside)
        return times_column(logs, [known.rest(best) for known in logs])

    logs = (s, *s.beside)
    now = times_column(logs, [known.rest(beta) for known in logs])
    square = times_column(logs, torques)
    low, high, at_low = 0.0, now / square if square > 0.0 else 0.0, now
    for _ in range(DOUBLINGS):
        at_high = slope(high)
        if at_high * at_low <= 0.0:
            break
        low, high, at_low = high, 2.0 * high, at_high
    else:
        return np.array([low])
    found = brentq(slope, low, high, xtol=max(CLOSE * abs(high), TINY), rtol=CLOSE)
    return np.array([float(found)])


TINY = np.finfo(float).tiny
DOUBLINGS, CLOSE = 7, 0.01
"""How often a number is doubled in search of one that is too large, and how closely it is found."""


def build_spring_family(n: int, joint: int) -> SizedReading:
    """A spring at a joint, in all logs [Nm/rad or N/m]."""

    def read(s: Scene, size: Array) -> Scene:
        torque = s.torque.copy()
        torque[:, joint] -= size[0] * s.motion.at.positions[:, joint]
        return s.driven(torque).among(read(other, size) for other in s.beside)

    def tell(s: Scene, size: Array, error: Array) -> Suspicion:
        own = s.robot.joints[joint]
        unit = "Nm/rad" if own.kind == "revolute" else "N/m"
        much = f"{size[0]:.3g} ± {error[0]:.2g}" if error[0] > 0.0 else f"about {size[0]:.3g}"
        falls = size[0] < 0.0 and own.kind == "revolute"  # which no spring's torque does
        kind = "'ripple' and order 1, a counterweight," if falls else "'spring'"
        return Suspicion(
            "spring",
            f"a spring of {much} {unit} pulls at {own.name}",
            Reading.plain(n, lambda known: read(known, size)),
            advice=f"add an [[element]] of kind {kind} at {own.name}",
            freedom=2,  # where it is, too
            error=float(error[0]),
        )

    return SizedReading(read, tell, 1.0, np.inf)
