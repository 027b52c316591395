"""Data selection: the blocks of logs from ordinary work that tell the most (Venture et al. 2009).

A robot at work stands still, repeats itself and moves joints that hardly tell of the others. Logs
are cut into blocks, of which each is a small factor, and blocks are taken one by one: always the
one that adds most to the mean, over the sub-chains of the robot, of the log-determinant of what is
known of the sub-chain's parameters, per parameter. A sub-chain is a joint with all that it carries,
or a floating base with the whole robot: the far links, which move few torques, count in all of
them. The criterion is monotone and submodular, so that no other choice of as many blocks gains more
than 1 / (1 - 1/e) times as much (Nemhauser, Wolsey and Fisher 1978), and gains only shrink: most
need not be computed again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from dynident.core.arrays import Array, Booleans
from dynident.core.errors import InputError, check_type
from dynident.core.factors import UNEXCITED, System, triangularise_rows
from dynident.core.options import Options
from dynident.core.schema import Number
from dynident.core.threads import limit_to_one_thread
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.parameters import Parameter
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem
from dynident.regression.rows import Rows
from dynident.regression.weighted import solve_wls
from dynident.robot.model import Robot
from dynident.robot.rotations import convert_quaternions

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

START = 0.01
"""Share of what all rows know, with which the choice begins: what is missing then has a gain."""
SAME = 0.75
"""Share of a block's instants that have to be repeats for the block to be one."""
DENSE = 4
"""Instants of what was chosen for one of a row, among which repeats are looked for."""
POOR = 30.0
"""Relative standard deviation from which a parameter is poorly known [%]."""
INFLATED = 10.0
"""Standard deviation over that with all others known, from which motion does not tell it apart."""
PARTNER = 0.5
"""Correlation from which another parameter is named beside it."""


Place = tuple[int, int, int]
"""Of a block: the log, its first sample, and the one after its last."""


@dataclass(frozen=True)
class SelectionOptions(Options):
    """Which blocks of the logs are taken."""

    block: Annotated[
        Annotated[Number, Field(gt=0.0, le=1e6)], "length of the blocks that logs are cut into [s]"
    ] = 1.0
    gain: Annotated[
        Annotated[Number, Field(gt=0.0, lt=1.0)],
        "least share by which the next block has to lower the standard deviations, in the mean "
        "over sub-chains and parameters; the choice ends there",
    ] = 0.02
    repeat: Annotated[
        Annotated[Number, Field(ge=0.0, le=1e6)],
        "how near, in standard deviations of q, dq and ddq, an instant has to be to one that was "
        "chosen for it to be a repeat; 0 takes repeats too",
    ] = 0.1
    by: Annotated[
        Literal["information", "error", "tracking"],
        "which block is next: the one that gains most, or most times its mean square of what the "
        "fit to all rows leaves (error), or of the controller's lag behind qref (tracking)",
    ] = "information"


@dataclass(frozen=True)
class LogBlock:
    """A block of a log.

    Attributes
    ----------
    log : int
        Which of the logs.
    start, stop : int
        Its samples: first, and one after the last.
    rows : int
    gain : float
        By what share it lowered the standard deviations when it was chosen.
    """

    log: int
    start: int
    stop: int
    rows: int
    gain: float = 0.0


@dataclass(frozen=True)
class SubChain:
    """What the rows know of a joint with all that it carries, before and after the choice.

    Attributes
    ----------
    joint : str
        Or the base link, where it floats.
    columns : tuple of int
        Base parameters.
    condition_all, condition : float
        Condition numbers of their weighted columns, at unit length: of all rows, and of those
        that were chosen.
    information : float
        Of a chosen row over that of a row among all: geometric mean over the parameters.
    """

    joint: str
    columns: tuple[int, ...]
    condition_all: float
    condition: float
    information: float


@dataclass(frozen=True)
class WeakParameter:
    """A base parameter that the chosen rows know poorly, and what would move it.

    Attributes
    ----------
    name, joint : str
    words : str
    """

    name: str
    joint: str
    words: str


@dataclass(frozen=True)
class Selection:
    """Blocks that were chosen, and what they are worth.

    Attributes
    ----------
    logs : tuple of str
        Names.
    rates : tuple of float
        Of the logs [Hz].
    blocks : tuple of LogBlock
        In the order of their choice.
    offered, repeats : int
        How many blocks there were, and how many of these were left out as repeats.
    rows_all, rows : int
    names : tuple of str
        Of the base parameters.
    before, after : ndarray, shape (base parameters,)
        Relative standard deviations that all rows and the chosen ones predict, by white errors with
        the sigmas of all; infinite where rows leave a parameter open [%].
    chains : tuple of SubChain
        The whole robot, which the first joint or a floating base carries, first.
    missing : tuple of WeakParameter
    warnings : tuple of str
        What was noticed about the robot's file and the logs.
    """

    logs: tuple[str, ...]
    rates: tuple[float, ...]
    blocks: tuple[LogBlock, ...]
    offered: int
    repeats: int
    rows_all: int
    rows: int
    names: tuple[str, ...]
    before: Array
    after: Array
    chains: tuple[SubChain, ...]
    missing: tuple[WeakParameter, ...]
    warnings: tuple[str, ...]

    def kept(self, log: int) -> tuple[tuple[int, int], ...]:
        """The chosen samples of a log, in order of time, neighbours joined."""
        found: list[tuple[int, int]] = []
        for start, stop in sorted((b.start, b.stop) for b in self.blocks if b.log == log):
            if found and found[-1][1] == start:
                found[-1] = (found[-1][0], stop)
            else:
                found.append((start, stop))
        return tuple(found)

    def of(self, problem: Problem) -> Problem:
        """The problem with the chosen rows alone."""
        kept = [(log, self.kept(k)) for k, log in enumerate(problem.samples)]
        return problem.on([log.only(ranges) for log, ranges in kept if ranges])


@dataclass(frozen=True)
class CandidateBlock:
    """A block on offer, with the factor of its weighted rows, as wide as the base parameters."""

    block: LogBlock
    factor: Array


@limit_to_one_thread
def select_blocks(problem: Problem, selecting: SelectionOptions = SelectionOptions()) -> Selection:
    """Choose the most informative blocks of a problem's logs.

    >>> blocks = di.select_blocks(problem).blocks

    Raises
    ------
    InputError
        When a block is shorter than the step from row to row, or a log was averaged.
    """
    check_type("select_blocks", problem, Problem, "dynident.Problem(robot, samples) makes one")
    _refuse_blocks(problem, selecting.block)
    if problem.idim.loaded and not problem.idim.bearing:
        problem = problem.with_known_loads(problem.idim.nominal)  # near enough to weigh blocks by
    beta, sigma, _ = solve_wls(problem.factors)
    offers = _collect_offers(problem, selecting.block, sigma)
    base = problem.base
    whole = problem.factors.weighted(sigma)
    chains = find_sub_chains(base)
    weights = np.ones(len(offers))
    if selecting.by == "error":
        weights = _measure_errors(problem, offers, selecting.block, beta, sigma)
    elif selecting.by == "tracking":
        weights = _measure_lags(problem, offers)
    taken, repeats = _choose_blocks(
        problem, selecting, offers, whole, list(chains.values()), weights
    )
    blocks = tuple(offer.block for offer in taken)
    R = triangularise_rows(np.vstack([offer.factor for offer in taken]))
    after = System(R, np.zeros(len(R)), 0.0)
    rows = sum(block.rows for block in blocks)
    rows_all = sum(offer.block.rows for offer in offers)
    std = _estimate_std(after)
    return Selection(
        tuple(log.name for log in problem.samples),
        tuple(log.rate for log in problem.samples),
        blocks,
        len(offers),
        repeats,
        rows_all,
        rows,
        base.names,
        _compute_relative_std(_estimate_std(whole), beta),
        _compute_relative_std(std, beta),
        tuple(
            SubChain(
                name_joint(problem.robot, joint),
                columns,
                _compute_condition(whole.A[:, columns]),
                _compute_condition(R[:, columns]),
                _compare_information(R[:, columns], whole.A[:, columns]) * rows_all / rows,
            )
            for joint, columns in chains.items()
        ),
        find_poor_parameters(problem, blocks, after, beta),
        problem.warnings,
    )


def _refuse_blocks(problem: Problem, seconds: float) -> None:
    """Refuse logs of which no block can be left out, and blocks shorter than a row."""
    for log in problem.samples:
        if log.averaging is not None:
            raise InputError(
                f"{log.name}: is the mean of its periods, of which no block can be left out; "
                "leave period out"
            )
        if seconds * log.rate < (step := max(f.step for f in log.filters)):
            raise InputError(
                f"{log.name}: block = {seconds:g} s is shorter than the {step / log.rate:g} s "
                "between rows"
            )


def find_sub_chains(base: BaseParameters) -> dict[int, tuple[int, ...]]:
    """Base parameters of each joint with all that it carries, by the joint's place.

    A floating base is before them all, at -1. What is not known of sensors of forces is the whole
    robot's, which the first of all carries.
    """
    robot = base.idim.robot
    numbers = [base.idim.parameters[k].number for k in base.kept]
    found = {}
    first = -1 if robot.floating else 0
    for joint in range(first, robot.n):
        carried = find_carried_joints(robot, joint) | ({robot.n} if joint == first else set())
        columns = tuple(k for k, number in enumerate(numbers) if number - 1 in carried)
        if columns:
            found[joint] = columns
    return found


def find_carried_joints(robot: Robot, joint: int) -> set[int]:
    """A joint, or the base at -1, and those beyond it."""
    found = {joint}
    for k, other in enumerate(robot.joints):
        if other.parent - 1 in found:
            found.add(k)
    return found


def name_joint(robot: Robot, joint: int) -> str:
    """Name of a joint by its place; of the base link where there is none."""
    return robot.joint_names[joint] if 0 <= joint < robot.n else robot.base_link


def _collect_offers(problem: Problem, seconds: float, sigma: Array) -> list[CandidateBlock]:
    """The blocks of all logs with the factors of their weighted rows."""
    p = problem.base.count
    pending: dict[Place, list[Array]] = {}
    counts: dict[Place, int] = {}
    for place, g, rows, here in _walk_blocks(problem, seconds):
        wide = np.zeros((int(here.sum()), p))
        wide[:, problem.columns[g]] = rows.X[g][here] / sigma[g]
        kept = pending.setdefault(place, [])
        kept.append(wide)
        counts[place] = counts.get(place, 0) + len(wide)
        if sum(map(len, kept)) > 2 * p:
            pending[place] = [triangularise_rows(np.vstack(kept))]
    return [
        CandidateBlock(
            LogBlock(*place, counts[place]), triangularise_rows(np.vstack(pending[place]))
        )
        for place in sorted(pending)
    ]


def _walk_blocks(problem: Problem, seconds: float) -> Iterator[tuple[Place, int, Rows, Booleans]]:
    """Blocks stretch by stretch: their place, a group, rows, and which of them are the block's."""
    for number, (log, stretches) in enumerate(zip(problem.samples, problem.passes(), strict=True)):
        length = max(1, round(seconds * log.rate))
        for rows in stretches:
            for g in range(len(problem.columns)):
                starts = rows.sample[g] // length * length
                for start in np.unique(starts).tolist():
                    stop = min(start + length, len(log.q))
                    yield (number, start, stop), g, rows, starts == start


def _measure_errors(
    problem: Problem, offers: Sequence[CandidateBlock], seconds: float, beta: Array, sigma: Array
) -> Array:
    """Mean squares of the weighted residuals of each block, over their mean."""
    sums: dict[Place, float] = {}
    for place, g, rows, here in _walk_blocks(problem, seconds):
        left = ((rows.y[g] - rows.X[g] @ beta[problem.columns[g]]) / sigma[g]) ** 2
        sums[place] = sums.get(place, 0.0) + float(np.sum(left[here]))
    blocks = [offer.block for offer in offers]
    return scale_weights([sums[b.log, b.start, b.stop] / b.rows for b in blocks])


def _measure_lags(problem: Problem, offers: Sequence[CandidateBlock]) -> Array:
    """Mean squares of each block's distance from its reference, joints alike, over their mean."""
    for log in problem.samples:
        if log.qref is None:
            raise InputError(f"{log.name}: by = 'tracking' needs qref; choose by error or without")
    lags = [log.q - log.qref for log in problem.samples if log.qref is not None]
    size = np.sqrt(np.mean(np.vstack(lags) ** 2, axis=0))
    size[size == 0.0] = 1.0
    blocks = [offer.block for offer in offers]
    return scale_weights(
        [float(np.mean((lags[b.log][b.start : b.stop] / size) ** 2)) for b in blocks]
    )


def scale_weights(squares: Sequence[float]) -> Array:
    """Mean squares over their mean, none quite zero."""
    found = np.array(squares)
    return np.asarray(np.maximum(found / max(float(found.mean()), np.finfo(float).tiny), 1e-6))


class _Knowledge:
    """What is known of each sub-chain, in coordinates in which all rows know one of everything."""

    def __init__(self, whole: System, chains: Sequence[tuple[int, ...]]) -> None:
        self.columns = [list(columns) for columns in chains]
        self.images = [_build_whitening(whole.A[:, columns]) for columns in self.columns]
        self.factors = [np.sqrt(START) * np.eye(image.shape[1]) for image in self.images]

    def gain(self, factor: Array) -> float:
        """What a block adds: mean of ``log det(I + V V^T)`` per parameter, ``V = A R^-1``."""
        total = 0.0
        for columns, image, known in zip(self.columns, self.images, self.factors, strict=True):
            V = np.linalg.solve(known.T, (factor[:, columns] @ image).T)
            gram = V @ V.T if V.shape[0] < V.shape[1] else V.T @ V
            total += float(np.linalg.slogdet(np.eye(len(gram)) + gram)[1]) / image.shape[1]
        return total / len(self.columns)

    def add(self, factor: Array) -> None:
        """Take a block in."""
        self.factors = [
            triangularise_rows(np.vstack([known, factor[:, columns] @ image]))
            for columns, image, known in zip(self.columns, self.images, self.factors, strict=True)
        ]


def _build_whitening(A: Array) -> Array:
    """Directions that the rows excite, scaled to one: ``(A image)^T (A image) = I``."""
    norms = np.linalg.norm(A, axis=0)
    norms[norms == 0.0] = 1.0
    _, s, vt = np.linalg.svd(A / norms, full_matrices=False)
    rank = int(np.sum(s > s[0] / UNEXCITED))
    return np.asarray((vt[:rank] / s[:rank, None]).T / norms[:, None])


def _choose_blocks(
    problem: Problem,
    selecting: SelectionOptions,
    offers: Sequence[CandidateBlock],
    whole: System,
    chains: Sequence[tuple[int, ...]],
    weights: Array,
) -> tuple[list[CandidateBlock], int]:
    """The blocks that were taken, those first whose gain times weight is largest; repeats left."""
    known = _Knowledge(whole, chains)
    past = _Past(problem, selecting.repeat)
    # gains only shrink: one that is still the largest after it was renewed is the largest
    heap = [(-weights[k] * known.gain(offer.factor), k, 0) for k, offer in enumerate(offers)]
    heapq.heapify(heap)
    taken: list[CandidateBlock] = []
    repeats = 0
    while heap:
        size, k, renewed = heapq.heappop(heap)
        if renewed < len(taken):
            heapq.heappush(heap, (-weights[k] * known.gain(offers[k].factor), k, len(taken)))
            continue
        share = 1.0 - float(np.exp(0.5 * size / weights[k]))
        if taken and share < selecting.gain:
            if selecting.by == "information":
                break
            continue  # one of less weight may gain more
        block, factor = offers[k].block, offers[k].factor
        if past.has(block):
            repeats += 1
            continue
        known.add(factor)
        past.add(block)
        taken.append(CandidateBlock(replace(block, gain=share), factor))
    return taken, repeats


def stack_motion(log: GeneralisedSamples, gravity: Array) -> Array:
    """Motion as rows see it, shape (samples, coordinates).

    Positions, velocities and accelerations; of a base that moves its proper acceleration, angular
    velocity and angular acceleration, as rows know neither its place nor its speed.
    """
    base = log.base
    if base is None:
        return np.hstack([log.q, log.dq, log.ddq])
    proper = base.acceleration[:, :3]
    if not base.proper:
        proper = proper - np.einsum("tji,j->ti", convert_quaternions(base.pose[:, 3:]), gravity)
    n = len(log.bandwidth)
    own = [getattr(log, label)[:, -n:] for label in ("q", "dq", "ddq")]
    return np.hstack([proper, base.twist[:, 3:], base.acceleration[:, 3:], *own])


def number_equations(logs: Sequence[GeneralisedSamples]) -> list[Array]:
    """What each sample of some logs states, by number: equations of one kind and one set free."""
    known: dict[tuple[str, tuple[str, ...]], int] = {}
    found = []
    for log in logs:
        numbers = np.zeros(len(log.q))
        for (start, stop), names in zip(log.segments, log.sets, strict=True):
            key = log.observed.equations, names
            numbers[start:stop] = known.setdefault(key, len(known))
        found.append(numbers)
    return found


class _Past:
    """Motion of what was chosen, among which repeats are looked for.

    The same motion is not a repeat where its rows are of other equations.
    """

    def __init__(self, problem: Problem, near: float) -> None:
        self.logs, self.near = problem.samples, near
        self.motions = [stack_motion(log, problem.robot.gravity) for log in self.logs]
        self.stated = number_equations(self.logs)
        used = [
            motion[a:b]
            for log, motion in zip(self.logs, self.motions, strict=True)
            for a, b in log.segments
        ]
        self.scale = np.std(np.vstack(used), axis=0)
        self.moving = self.scale > 0.0
        self.trees: list[cKDTree] = []

    @property
    def reach(self) -> float:
        """How far apart repeats are at most: `near` is the root mean square over coordinates."""
        return self.near * float(np.sqrt(self.moving.sum()))

    def _points(self, block: LogBlock, dense: int) -> Array:
        log = self.logs[block.log]
        step = max(1, min(f.step for f in log.filters) // dense)
        some = slice(block.start, block.stop, step)
        motion = self.motions[block.log][some][:, self.moving] / self.scale[self.moving]
        apart = 2.0 * self.reach * self.stated[block.log][some]
        return np.column_stack([motion, apart])

    def has(self, block: LogBlock) -> bool:
        """Whether most of a block's instants are near to ones that were chosen."""
        if not self.near or not self.trees:
            return False
        points = self._points(block, 1)
        seen = np.zeros(len(points), dtype=bool)
        for tree in self.trees:
            seen |= np.isfinite(tree.query(points, distance_upper_bound=self.reach)[0])
        return bool(seen.mean() >= SAME)

    def add(self, block: LogBlock) -> None:
        """Take a block in."""
        if self.near:
            from scipy.spatial import cKDTree  # a tenth of a second that few runs need

            self.trees.append(cKDTree(self._points(block, DENSE)))


def _compute_condition(A: Array) -> float:
    """Condition number with columns of unit length."""
    norms = np.linalg.norm(A, axis=0)
    if np.any(norms == 0.0) or len(A) < A.shape[1]:
        return np.inf
    s = np.linalg.svd(A / norms, compute_uv=False)
    return float(s[0] / s[-1]) if s[-1] > 0.0 else np.inf


def _compare_information(A: Array, whole: Array) -> float:
    """Geometric mean of the information of some rows over that of all, direction by direction."""
    s = np.linalg.svd(A @ _build_whitening(whole), compute_uv=False)
    if not len(s) or s[-1] <= 0.0 or len(A) < len(s):
        return 0.0
    return float(np.exp(2.0 * np.mean(np.log(s))))


def _estimate_std(system: System) -> Array:
    """Standard deviations by white errors; infinite where a parameter is left open."""
    std = np.linalg.norm(system.inverse(), axis=1)
    _, rank, weak = system.condition()
    if rank < len(std):
        std = np.where(weak > 1.0 / np.sqrt(UNEXCITED), np.inf, std)
    return np.asarray(std)


def _compute_relative_std(std: Array, beta: Array) -> Array:
    """Standard deviations over values [%]."""
    return np.asarray(100.0 * std / np.maximum(np.abs(beta), np.finfo(float).tiny))


MOVES = {
    **dict.fromkeys(("Ia", "Iam", "Izz"), "fast accelerations of {joint}"),
    **dict.fromkeys(
        ("Ixx", "Iyy", "Ixy"),
        "turning {link} across its own axis: {before} fast, at several angles of {joint}",
    ),
    **dict.fromkeys(("Ixz", "Iyz"), "{joint} and {before} accelerating at once"),
    "m": "many poses under gravity, and fast accelerations of {before}",
    **dict.fromkeys(("mx", "my"), "large angles of {joint}, and of {before}, under gravity"),
    "mz": "large angles of {before} under gravity",
    **dict.fromkeys(("fv", "fvm"), "{joint} at several speeds, slow and fast"),
    **dict.fromkeys(("fc", "fcm"), "{joint} in both directions, without long stops"),
    "off": "{joint} in both directions at like speeds",
}
"""What moves a parameter, by its symbol."""
MOVES_BASE = {
    "m": "many poses of the legs, and {joint} heaving",
    **dict.fromkeys(("mx", "my", "mz"), "{joint} rolling and pitching far under gravity"),
}
"""The same of a floating base; its moments of inertia have one answer."""
TURNING = "{joint} rolling, pitching and yawing fast, each by itself"
SENSED = "{joint} rolling and pitching far, under several loads on the sensor"
"""What moves that which is not known of a sensor of forces."""
OTHERS = "{joint} over its whole range of speeds and loads"


def find_poor_parameters(
    problem: Problem, blocks: Sequence[LogBlock], system: System, beta: Array
) -> tuple[WeakParameter, ...]:
    """Base parameters that the weighted rows of some blocks know poorly, the worst first.

    One is poor where it is open, where motion does not tell it apart from others (its standard
    deviation is `INFLATED` times what it would be were they known), or where even then it would be
    above `POOR` percent of its value: it is small, or hardly moves any torque.
    """
    base, robot = problem.base, problem.robot
    inverse = system.inverse()
    covariance = inverse @ inverse.T
    std = _estimate_std(system)
    lengths = np.linalg.norm(system.A, axis=0)
    alone = np.divide(1.0, lengths, out=np.full(len(lengths), np.inf), where=lengths > 0.0)
    own = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    correlation = np.abs(covariance / np.outer(own, own))
    fastest = np.max(
        [np.max(np.abs(problem.samples[b.log].dq[b.start : b.stop]), axis=0) for b in blocks],
        axis=0,
    )
    found = []
    for k, name in enumerate(base.names):
        parameter = base.idim.parameters[base.kept[k]]
        inflation = std[k] / alone[k] if np.isfinite(alone[k]) else np.inf
        weak = 100.0 * alone[k] > POOR * abs(beta[k])
        if not weak and inflation < INFLATED:
            continue
        order = np.argsort(-correlation[k], kind="stable")
        partners = [base.names[i] for i in order if i != k and correlation[k, i] > PARTNER][:2]
        if not np.isfinite(alone[k]):
            state = "affects no torque"
        elif inflation >= INFLATED:
            beside = f" from {' and '.join(partners)}" if partners else ""
            state = f"cannot be separated{beside}"
        else:
            state = "is small, or has little effect on any torque"
        joint = name_joint(robot, parameter.number - 1)
        words = f"{state}; needs {describe_wanted_motion(robot, parameter, fastest)}"
        found.append((-float(min(inflation, 1e300)), k, WeakParameter(name, joint, words)))
    return tuple(each for _, _, each in sorted(found, key=lambda item: item[:2]))


def describe_wanted_motion(robot: Robot, parameter: Parameter, fastest: Array) -> str:
    """Motion that would tell a parameter, beside the speed that was reached [m/s or rad/s]."""
    place = parameter.number - 1
    name = name_joint(robot, place)
    if not 0 <= place < robot.n:
        own = MOVES_BASE.get(parameter.symbol, TURNING)
        moves = (own if parameter.number == 0 else SENSED).format(joint=name)
        turned = f" ({name} turned at {np.max(fastest[3:6]):.2g} rad/s)" if robot.floating else ""
        return moves + turned
    joint = robot.joints[place]
    unit = "m/s" if joint.kind == "prismatic" else "rad/s"
    before = [robot.joint_names[k] for k in robot.list_carriers(place)[1:3]]
    moves = MOVES.get(parameter.symbol, OTHERS).format(
        joint=name, link=joint.link, before=" or ".join(before) or "the base"
    )
    return f"{moves} ({name} reached {fastest[robot.dof - robot.n + place]:.2g} {unit})"
