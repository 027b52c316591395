"""The search for a trajectory: a barrier method from several starts, and a proof.

Every start is a random motion shrunk into the limits. What is found on the search's grid is
proved on a finer one and between its points; instants at which a limit is exceeded there
are put on the grid, and the search goes on. What still cannot be proved is shrunk until it can.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import ComputationError, InputError, name_missing_package
from dynident.core.progress import Progress, ignore_progress
from dynident.core.side_by_side import HERE, Engine, LostTask, run_side_by_side
from dynident.core.threads import limit_to_one_thread
from dynident.excitation.certificate import FINER, Proof, certify_trajectory
from dynident.excitation.clearance import Clearance
from dynident.excitation.criteria import CRITERIA, CriterionNeeds
from dynident.excitation.drawn import MotionDraw
from dynident.excitation.information import (
    Experiment,
    WeightedMotion,
    build_quadrature,
    sample_motion,
)
from dynident.excitation.interior import Program, minimise_program
from dynident.excitation.limits import Limits, NominalTorques
from dynident.excitation.linkage import PassiveJoints
from dynident.excitation.options import TrajectoryShape
from dynident.excitation.trajectories import Trajectory, TrajectoryFamily
from dynident.robot.closure import Closure

PLACE = 1e-4
"""How far a trajectory may begin from where it is asked to [rad or m]."""
PLACES = 300
"""At which the robot is stood, before it is said that there is none to move about."""
GRID = 0.3
"""Of the shortest time in which a trajectory changes by its size: the search's grid."""
PENALTY = 100.0
"""Of a limit that is exceeded by its own size, where a search knows no constraints."""
PROVABLE = 1e-3
"""Share of the torques, and half of it in metres, that the search leaves for the proof."""
NEARLY = 0.02
"""A share of the limit within which an instant is looked at in the next round."""
NARROWER = 0.85
"""Share of its points' distances that a motion that is drawn is tried with next, and of its limits
that one is searched in next whose chain may end on the way."""
ROUNDS = 8
"""Of proof and further search, after which a trajectory is shrunk."""
LONGER, LEAST = 0.5, 5.0
"""Share of the time of the search that a proof has beyond it, and what it has at least [s]."""
MOST_ENTRIES = 20_000_000
"""Of the constraints' slopes: with more of them a single step takes many seconds."""


@dataclass(frozen=True)
class DesignTask:
    """What is asked of a trajectory."""

    experiment: Experiment
    family: TrajectoryFamily
    limits: Limits
    nominal: NominalTorques | None
    """None where nothing is known of the torques."""
    clearance: Clearance | None
    criterion: str
    """Name in `CRITERIA`."""
    asked: CriterionNeeds
    start: Array | None = None
    """Position at the first instant [rad or m], shape (n,)."""
    redraw: Callable[[np.random.Generator], TrajectoryShape] | None = None
    """Gives each start but the first a shape of its own, from its random numbers."""
    drawn: MotionDraw | None = None
    """What draws random motions that are taken as they are, instead of searching from one."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.experiment.base.idim.robot.joint_names

    @property
    def closure(self) -> Closure | None:
        """What gives the motion of passive joints."""
        return self.experiment.base.idim.structure.closure

    @property
    def driven(self) -> Integers:
        """Joints whose coefficients are searched."""
        return np.arange(len(self.names)) if self.closure is None else self.closure.driven

    def hold_passive(self, place: Array) -> Limits:
        """The limits, with passive joints where they are."""
        limits, held = self.limits, self.experiment.base.idim.robot.passive
        return replace(
            limits,
            lower=np.where(held, place, limits.lower),
            upper=np.where(held, place, limits.upper),
            speed=np.where(held, 1.0, limits.speed),
        )

    def along(self, C: Array) -> Trajectory:
        """The trajectory of some coefficients."""
        return Trajectory(self.family, C, self.closure)

    @property
    def step(self) -> float:
        """Of the grid of the search [s]."""
        return GRID * self.family.quickest

    def value(self, trajectory: Trajectory) -> float:
        """The criterion of a trajectory, Coulomb friction with its exact sign."""
        exact = replace(self.experiment, width=None)
        motion = sample_motion(trajectory, 0.25 * self.step)
        return CRITERIA[self.criterion].evaluate(exact.information(motion), self.asked)[0]


@dataclass(frozen=True)
class Design:
    """A trajectory that was found, and what is proved of it.

    Attributes
    ----------
    task : DesignTask
    trajectory : Trajectory
    value : float
        Of the criterion.
    certificate : Proof
    history : tuple of (float, float)
        Seconds and best value so far, at the end of each start.
    stopped : str
        Why the search ended.
    """

    task: DesignTask
    trajectory: Trajectory
    value: float
    certificate: Proof
    history: tuple[tuple[float, float], ...]
    stopped: str


@dataclass(frozen=True)
class SearchClock:
    """How long may be searched and proved, begun at a reading of the monotonic clock [s]."""

    begun: float = 0.0
    seconds: float = np.inf

    @property
    def spent(self) -> float:
        """Since it was begun [s]."""
        return time.monotonic() - self.begun

    @property
    def left(self) -> float:
        """For further steps, negative afterwards [s]."""
        return self.seconds - self.spent

    @property
    def end(self) -> float:
        """Reading of the clock at which no proof goes on [s]."""
        return self.begun + self.seconds + max(LONGER * self.seconds, LEAST)


class Start(NamedTuple):
    """A search from one random motion, the random numbers of which its number gives.

    Of other processes, whose beginning takes its time, each start has a clock of its own.
    """

    task: DesignTask
    seed: int
    number: int
    iterations: int
    seconds: float
    clock: SearchClock | None


Found = tuple[float, Trajectory, Proof]
"""A value of the criterion, and whose it is."""
LATE, NOTHING = "the time ran out", ""
"""Why a start has none; else it met no place to move about, and says why."""


def refuse_size(family: TrajectoryFamily, n: int) -> None:
    """Refuse more coefficients than can be searched."""
    coefficients = family.count * n
    instants = round(family.length / (GRID * family.quickest))
    if 5 * n * instants * coefficients > MOST_ENTRIES:
        raise InputError(
            f"excitation: {coefficients} coefficients at {instants} instants are too many to "
            "search; choose fewer harmonics, intervals or points"
        )


@limit_to_one_thread
def design_trajectory(
    task: DesignTask,
    starts: int = 4,
    seed: int = 0,
    seconds: float = 30.0,
    iterations: int = 300,
    polish: bool = False,
    progress: Progress = ignore_progress,
    engine: Engine = HERE,
) -> Design:
    """Find a trajectory.

    Parameters
    ----------
    starts : int
        Random motions from which it begins, each with random numbers of its own.
    seed : int
        Of the starts. The answer depends on it alone, unless the time runs out.
    seconds : float
        After which no further step is begun; the best so far is the answer. What is being
        proved then has half as long again, or 5 s. In other processes each start has as long [s].
    iterations : int
        Most iterations of the barrier method from each start.
    polish : bool
        Search on by CMA-ES from the best, on the criterion with its kinks.
    engine : Engine
        What runs the starts.
    """
    refuse_size(task.family, len(task.names))
    clock = SearchClock(time.monotonic(), seconds)
    tasks = [
        Start(task, seed, k, iterations, seconds, clock if engine == HERE else None)
        for k in range(starts)
    ]
    ended: dict[int, Found | str] = {}
    history: list[tuple[float, float]] = []
    stopped = f"all {starts} starts were searched"

    def tell(stage: str, share: float) -> None:
        progress(f"{stage}, best {history[-1][1]:.4g}" if history else stage, share)

    try:
        for k, own in run_side_by_side(search_from_start, tasks, engine, tell, "searching"):
            ended[k] = own.reason if isinstance(own, LostTask) else own
            if k == 0 and isinstance(own, str) and own:
                break  # where the first meets no place to move about the others hardly do
            found = [each[0] for each in ended.values() if isinstance(each, tuple)]
            if found and own != LATE:
                history.append((clock.spent, min(found)))
    except KeyboardInterrupt:
        if not history:
            raise
        stopped = f"stopped by hand after {len(ended)} of {starts} starts"
    if late := sum(each == LATE for each in ended.values()):
        stopped = f"{LATE} after {starts - late} of {starts} starts"
    best = choose_best_start(ended, clock)
    task = replace(task, family=best[1].family)
    if polish:
        progress("polishing", 0.0)
        polished = polish_trajectory(task, best, seed, max(clock.left, 1.0))
        best = min(best, polished, key=lambda each: each[0])
        history.append((clock.spent, best[0]))
    return Design(task, best[1], best[0], best[2], tuple(history), stopped)


@limit_to_one_thread
def search_from_start(start: Start) -> Found | str:
    """The trajectory of one start, or why there is none."""
    task = start.task
    compile_kernels(task)
    clock = start.clock or SearchClock(time.monotonic(), start.seconds)
    if start.number and clock.left < 0.0:
        return LATE
    rng = np.random.default_rng([start.seed, 0, start.number])
    try:
        if start.number and task.redraw is not None:
            task = replace(task, family=task.redraw(rng).family())
        found = search_trajectory(task, rng, start.iterations, clock)
    except ComputationError as error:
        return str(error)
    return NOTHING if found is None else (task.value(found[0]), *found)


def choose_best_start(ended: dict[int, Found | str], clock: SearchClock) -> Found:
    """The best of what starts led to, of equal ones the first, whichever was ready first."""
    found, reasons = [], []
    for _, own in sorted(ended.items(), key=lambda each: each[0]):
        if isinstance(own, tuple):
            found.append(own)
        elif own not in (LATE, NOTHING):
            reasons.append(own)
    if found:
        return min(found, key=lambda each: each[0])
    if reasons:
        raise ComputationError(reasons[0])
    raise ComputationError(
        f"no trajectory was proved to keep the limits in {clock.seconds:g} s; allow more time, or "
        "choose fewer harmonics, intervals or points"
        if clock.left < 0.0
        else f"none of {len(ended)} starts led to a trajectory within the limits; allow more time "
        "or starts, a smaller clearance, or another initial pose"
    )


def polish_trajectory(task: DesignTask, best: Found, seed: int, seconds: float) -> Found:
    """What CMA-ES makes of a trajectory (Hansen 2016): no worse, and proved likewise.

    Limits are penalties on the search's grid, a little narrower than they are.
    """
    with name_missing_package("polish needs the package cma: pip install 'dynident[excite]'"):
        from cma import CMAEvolutionStrategy
    value, trajectory, certificate = best
    times = np.union1d(task.family.grid(task.step), find_worst_instants(task, trajectory))
    program = build_program(task, task.limits.within(np.full((4, len(task.names)), 0.999)), times)
    shape = trajectory.C.shape
    size = np.maximum(np.abs(trajectory.C), 0.1 * np.abs(trajectory.C).mean())

    def worth(z: Array) -> float:
        C = trajectory.C + size * z.reshape(shape)
        over = max(0.0, measure_violation(program, C))
        return task.value(task.along(C)) + PENALTY * over * (1.0 + over)

    clock = SearchClock(time.monotonic(), seconds)
    settings = {"seed": seed + 1, "verbose": -9, "verb_log": 0}
    search = CMAEvolutionStrategy(np.zeros(trajectory.C.size), 0.003, settings)
    while not search.stop() and clock.left > 0.0:
        points = search.ask()
        search.tell(points, [worth(point) for point in points])
    found = task.along(trajectory.C + size * search.result.xbest.reshape(shape))
    kept = prove_trajectory(task, found, clock)
    slight = None if kept.ok else shrink_slightly(task, found, kept, clock)
    if slight is not None:
        found, kept = slight
    return (task.value(found), found, kept) if kept.ok else (value, trajectory, certificate)


def compile_kernels(task: DesignTask) -> None:
    """Have all kernels compiled, which on their first use takes longer than a search."""
    family = task.family
    C = np.ones((family.count, len(task.names))) * family.scale[:, None]
    C *= np.arange(1.0, C.size + 1.0).reshape(C.shape) / C.size
    build_program(task, task.limits, family.grid(task.step)[:2]).evaluate(C.ravel())


def search_trajectory(
    task: DesignTask, rng: np.random.Generator, iterations: int, clock: SearchClock
) -> tuple[Trajectory, Proof] | None:
    """From one random start to a trajectory that is proved to keep the limits, or None."""
    if task.drawn is not None:
        return draw_motion(task, task.drawn, rng, clock)
    shares = np.ones((4, len(task.names)))
    times = task.family.grid(task.step)
    program = build_program(task, task.limits, times)
    C = draw_random_start(task, program, rng, clock)
    barrier = 0.1
    for k in range(ROUNDS):
        most = iterations if k == 0 else iterations // 2
        z = minimise_program(program, C.ravel(), most, clock.left, barrier=barrier)
        C = z.reshape(C.shape)
        trajectory = task.along(C)
        certificate = prove_trajectory(task, trajectory, clock)
        if certificate.ok:
            return trajectory, certificate
        slight = shrink_slightly(task, trajectory, certificate, clock)
        if slight is not None:
            return slight
        if clock.left < 0.0:
            break
        if certificate.kept[0].what == "loop":
            shares *= NARROWER
        else:
            found = certificate.shares(task.names)[:4]
            shares /= np.where(found > 1.0, 1.001 * np.minimum(found, 2.0), 1.0)
            times = np.union1d(times, find_worst_instants(task, trajectory))
        barrier = 0.01
        program = build_program(task, task.limits.within(shares), times)
        inside = shrink_into_constraints(program, C, fit_standstill(task, C))
        if inside is None:
            break
        C = inside
    return shrink_trajectory(task, task.along(C), clock)


def draw_motion(
    task: DesignTask, drawn: MotionDraw, rng: np.random.Generator, clock: SearchClock
) -> tuple[Trajectory, Proof] | None:
    """A random motion, as wide as it is proved to keep the limits, or None."""
    program = build_program(task, task.limits, task.family.grid(task.step))
    for place in draw_places(task, rng):
        if not can_stand(task, place):
            continue
        away = drawn.draw(rng, place, task.hold_passive(place))
        for share in NARROWER ** np.arange(24):
            if clock.left < 0.0:
                return None
            C = drawn.follow(place + share * away)
            if C is None or measure_violation(program, C) >= 0.0:
                continue
            trajectory = task.along(C)
            certificate = prove_trajectory(task, trajectory, clock)
            if certificate.ok:
                return trajectory, certificate
    return None


def shrink_slightly(
    task: DesignTask, trajectory: Trajectory, certificate: Proof, clock: SearchClock
) -> tuple[Trajectory, Proof] | None:
    """The trajectory a little smaller, where that is all that is missing."""
    worst = max(each.share for each in certificate.kept)
    return (
        shrink_trajectory(task, trajectory, clock, (0.999 / worst, 0.997 / worst))
        if worst < 1.01
        else None
    )


def find_worst_instants(task: DesignTask, trajectory: Trajectory) -> Array:
    """Instants between those of the search at which torques or distances are the worst."""
    times = task.family.grid(task.step / FINER)
    orders = trajectory.follow(times)
    found = []
    if task.nominal is not None:
        tau = np.abs(task.nominal.torque(*orders)) + task.nominal.steady
        share = tau / task.limits.torque
        found += [find_peaks(share[:, j], 1.0 - NEARLY) for j in range(share.shape[1])]
    if task.clearance is not None:
        distance = task.clearance.distances(orders[0]).min(axis=1)
        found.append(find_peaks(-distance, -(task.limits.clearance + 1e-3 * NEARLY)))
    return np.concatenate([times[:0], *(times[each] for each in found)])


def find_peaks(values: Array, least: float) -> Integers:
    """Where values are above a least one, and no smaller than beside."""
    before = np.concatenate([[-np.inf], values[:-1]])
    after = np.concatenate([values[1:], [-np.inf]])
    return np.flatnonzero((values > least) & (values >= before) & (values >= after))


def shrink_into_constraints(program: Program, C: Array, still: Array) -> Array | None:
    """Coefficients shrunk towards standing still until all constraints are kept, or None."""
    share = 1.0
    for _ in range(24):
        smaller = still + share * (C - still)
        if measure_violation(program, smaller) < 0.0:
            return smaller
        share *= 0.97 if share > 0.8 else 0.8
    return None


def measure_violation(program: Program, C: Array) -> float:
    """By how much a constraint is broken at worst, over its unit; negative inside of all."""
    _, _, c, _ = program.evaluate(C.ravel())
    return float(np.max(np.maximum(program.low - c, c - program.high) / program.unit))


def prove_trajectory(task: DesignTask, trajectory: Trajectory, clock: SearchClock) -> Proof:
    """The certificate of a trajectory under the task's own limits."""
    return certify_trajectory(
        trajectory, task.limits, task.nominal, task.clearance, task.names, task.step, clock.end
    )


def shrink_trajectory(
    task: DesignTask,
    trajectory: Trajectory,
    clock: SearchClock,
    shares: Sequence[float] = (0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1),
) -> tuple[Trajectory, Proof] | None:
    """The trajectory about its first position, small enough to keep the limits, or None."""
    C = trajectory.C
    still = fit_standstill(task, C)
    for share in shares:
        smaller = task.along(still + share * (C - still))
        if time.monotonic() > clock.end:
            break
        certificate = prove_trajectory(task, smaller, clock)
        if certificate.ok:
            return smaller, certificate
    return None


def fit_standstill(task: DesignTask, C: Array) -> Array:
    """Coefficients of standing where a trajectory begins."""
    family = task.family
    values = family.values(family.grid(task.step))
    where = task.start if task.start is not None else values[0] @ C
    return np.asarray(np.linalg.lstsq(values, np.tile(where, (len(values), 1)), rcond=None)[0])


def draw_random_start(
    task: DesignTask, program: Program, rng: np.random.Generator, clock: SearchClock = SearchClock()
) -> Array:
    """Coefficients of a random motion about a random place, shrunk into the limits."""
    family, limits = task.family, task.limits
    n = len(task.names)
    times = family.grid(task.step)
    Phi = [family.values(times, order) for order in range(4)]
    ones = np.linalg.lstsq(Phi[0], np.ones(len(times)), rcond=None)[0]
    for place in draw_places(task, rng):
        if not can_stand(task, place):
            continue
        C = rng.normal(size=(family.count, n)) * family.scale[:, None]
        C[:, np.setdiff1d(np.arange(n), task.driven)] = 0.0
        anchor = Phi[0][0] if task.start is not None else Phi[0].mean(axis=0)
        C -= np.outer(ones, anchor @ C)
        for j in task.driven:
            room = [min(limits.upper[j] - place[j], place[j] - limits.lower[j])]
            room += [limits.of_order(order)[1][j] for order in (1, 2, 3)]
            most = [np.abs(each @ C[:, j]).max() for each in Phi]
            C[:, j] *= 0.7 * min(a / max(b, 1e-12) for a, b in zip(room, most, strict=True))
        still = np.outer(ones, place)
        if measure_violation(program, still) < 0.0:
            found = shrink_into_constraints(program, still + C, still)
            if found is not None:
                return found
        elif task.start is not None:
            break
        if clock.left < 0.0:
            raise ComputationError(
                f"no motion within the limits was met in {clock.seconds:g} s; allow more time, or "
                "choose fewer harmonics, intervals or points"
            )
    raise ComputationError(
        f"{task.experiment.base.idim.robot.name}: standing still already breaks the limits, "
        f"{'at the initial pose' if task.start is not None else 'wherever it was tried'}: "
        f"{describe_broken_limits(task, place)}"
    )


def draw_places(task: DesignTask, rng: np.random.Generator) -> Iterator[Array]:
    """Positions to move about: the middle first, then anywhere, closer and closer to the ends."""
    lower, upper = task.limits.lower, task.limits.upper
    if task.closure is not None:
        yield from draw_closed_places(task, task.closure, rng)
        return
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    for attempt in range(PLACES):
        wide = 0.9 * attempt / PLACES
        yield (
            middle + wide * half * rng.uniform(-1.0, 1.0, len(middle))
            if task.start is None
            else task.start
        )


def draw_closed_places(
    task: DesignTask, closure: Closure, rng: np.random.Generator
) -> Iterator[Array]:
    """The same of a closed chain: where it is assembled first, and as far as it can be closed."""
    if task.start is not None:
        start = np.where(closure.robot.passive, closure.start, task.start)
        yield closure.settle(start, "the initial pose")
        return
    yield closure.start
    yield from closure.draw(PLACES, rng)


def can_stand(task: DesignTask, place: Array) -> bool:
    """Whether standing at a place keeps what the search asks for."""
    limits = task.limits
    if np.any(place <= limits.lower) or np.any(place >= limits.upper):
        return False
    if np.any(compute_standing_torque(task, place) >= (1.0 - PROVABLE) * limits.torque):
        return False
    if task.clearance is None:
        return True
    least, _ = task.clearance.smooth(place[None], task.clearance.unseen(1))
    return bool(least[0] > limits.clearance + 0.5 * PROVABLE)


def compute_standing_torque(task: DesignTask, place: Array) -> Array:
    """What standing at a place takes at most, zero where nothing is known of the torques."""
    if task.nominal is None:
        return np.zeros(len(task.limits.torque))
    zero = np.zeros((1, len(place)))
    tau = np.abs(task.nominal.torque(place[None], zero, zero))[0]
    return np.asarray(tau + task.nominal.steady)


def describe_broken_limits(task: DesignTask, place: Array) -> str:
    """What standing at a place breaks, in words."""
    words = []
    if task.nominal is not None:
        tau = compute_standing_torque(task, place)
        for name, value, most in zip(task.nominal.rows, tau, task.limits.torque, strict=True):
            if value > most:
                words.append(f"{name} needs {value:.3g} of {most:.3g} Nm")
    if task.clearance is not None:
        distances = task.clearance.distances(place[None])[0]
        near = np.flatnonzero(distances < task.limits.clearance)
        words += [
            f"{task.clearance.pairs[k].name} are {1e3 * distances[k]:.0f} mm apart, "
            f"{1e3 * task.limits.clearance:.0f} asked"
            for k in near[np.argsort(distances[near])][:3]
        ]
    outside = (place < task.limits.lower) | (place > task.limits.upper)
    words += [f"{name} is outside of its range" for name in np.array(task.names)[outside]]
    return "; ".join(words) or "the limits leave no room to move"


def bound_coefficients(task: DesignTask, limits: Limits) -> tuple[Array, Array, Array, Array]:
    """Limits that are linear in the coefficients: rows, what they are from and to, their sizes."""
    family, n, driven = task.family, len(task.names), task.driven
    times = family.grid(task.step)
    Phi = [family.values(times, order) for order in range(4)]
    bounded: list[tuple[Array, Array, Array, Array]] = []
    for order in range(4):
        bottom, top = limits.of_order(order)
        for j in driven[np.isfinite(top[driven])].tolist():
            rows, one = np.zeros((len(times), family.count * n)), np.ones(len(times))
            rows[:, j::n] = Phi[order]
            half = 0.5 * (top[j] - bottom[j])
            bounded.append((rows, bottom[j] * one, top[j] * one, half * one))
    if task.start is not None:
        first = np.asarray(np.kron(Phi[0][:1], np.eye(n)), dtype=float)[driven]
        where = task.start[driven]
        bounded.append((first, where - PLACE, where + PLACE, np.ones(len(driven))))
    linear, low, high, unit = zip(*bounded, strict=True)
    return np.vstack(linear), np.concatenate(low), np.concatenate(high), np.concatenate(unit)


def build_program(task: DesignTask, limits: Limits, hard: Array) -> Program:
    """The search as a smooth program in the coefficients, row by row of C.

    Torques and distances are looked at at the instants `hard` [s].
    """
    family, n = task.family, len(task.names)
    linear, low, high, unit = bound_coefficients(task, limits)
    none = np.zeros(len(limits.torque))
    torque = np.isfinite(limits.torque) if task.nominal is not None else none > 0.0
    steady = none if task.nominal is None else task.nominal.steady
    most = np.tile(((1.0 - PROVABLE) * limits.torque - steady)[torque], len(hard))
    watched = task.clearance is not None
    apart = np.full(len(hard) if watched else 0, limits.clearance + PROVABLE * 0.5)
    At = [family.values(hard, order) for order in range(3)]
    seen = task.clearance.unseen(len(hard)) if task.clearance is not None else None
    middles, duration = build_quadrature(family, task.step)
    Psi = [family.values(middles, order) for order in range(3)]
    criterion = CRITERIA[task.criterion].evaluate
    linkage = None if task.closure is None else PassiveJoints(task.closure, limits, len(hard))

    def evaluate(z: Array) -> tuple[float, Array, Array, Array]:
        C = z.reshape(family.count, n)
        states = [(phi[0] @ C, phi[1] @ C, phi[2] @ C) for phi in (Psi, At)]
        if linkage is not None:
            try:
                states = [linkage.follow(*each) for each in states]
            except InputError:  # no chain closes along it
                return np.inf, np.zeros(len(z)), beyond, np.zeros((len(beyond), len(z)))
        motion = WeightedMotion(*states[0], duration=duration)
        try:
            f, by_M = criterion(task.experiment.information(motion), task.asked)
        except ComputationError:  # a motion that tells nothing still keeps limits, or not
            f, by_M = np.inf, np.zeros((len(task.asked.scale),) * 2)
        pulls = task.experiment.pull(motion, by_M)
        gradient = sum(phi.T @ pull for phi, pull in zip(Psi, pulls, strict=True))
        q, dq, ddq = states[1]
        c, jacobian = [linear @ z], [linear]
        if linkage is not None:
            values, passive = linkage.watch(q, dq, ddq)
            c.append(values)
            jacobian.append(spread_slopes(passive))
        if np.any(torque):
            assert task.nominal is not None
            c.append(task.nominal.torque(q, dq, ddq)[:, torque].ravel())
            slopes = task.nominal.slopes(q, dq, ddq)
            jacobian.append(spread_slopes([each[:, torque] for each in slopes]))
        if task.clearance is not None and seen is not None:
            least, slope = task.clearance.smooth(q, seen)
            if linkage is not None:
                slope = linkage.pull(slope)
            c.append(least)
            jacobian.append(np.einsum("tk,tl->tkl", At[0], slope).reshape(len(q), -1))
        return f, np.ravel(gradient), np.concatenate(c), np.vstack(jacobian)

    def spread_slopes(slopes: Sequence[Array]) -> Array:
        """Slopes of rows by position, speed and acceleration as those by the coefficients."""
        rows = sum(
            np.einsum("tk,tjl->tjkl", phi, slope, optimize=True)
            for phi, slope in zip(At, slopes, strict=True)
        )
        return np.reshape(rows, (-1, family.count * n))

    held = [np.zeros(0)] * 3 if linkage is None else linkage.bounds
    ends = (
        np.concatenate([low, held[0], -most, apart]),
        np.concatenate([high, held[1], most, np.full(len(apart), np.inf)]),
        np.concatenate([unit, held[2], most, np.full(len(apart), 0.1)]),
    )
    beyond = np.where(np.isfinite(ends[1]), ends[1], ends[0] - 2.0 * ends[2]) + ends[2]
    return Program(evaluate, *ends)
