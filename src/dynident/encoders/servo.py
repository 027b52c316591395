"""Which parts of a position servo a log of encoders tells: those that predict what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynident.core.arrays import Array, Booleans, Integers
from dynident.core.factors import Compression, measure_columns, stack_weighted_groups
from dynident.encoders.errors import differentiate_readings
from dynident.encoders.unknowns import FROM_ZERO, Unknowns
from dynident.estimators.closed_loop import Simulation
from dynident.regression.problem import Problem
from dynident.regression.statistics import is_clearly_positive
from dynident.simulation.loop import LoopColumn

PARTS = ("deadband", "punch", "integral", "damping", "limit", "speed_limit")
"""What a servo may have beside stiffness and delay, each of all joints."""
START_DELAY = 1.0
"""Of the targets, where the iterations start [samples]."""
BLOCKS = 5
"""Motions that are left out in turn, or stretches of equal length where there are fewer."""
SURE = 1.0
"""Standard errors of the blocks' difference by which a part has to pay."""
LEAST = 0.01
"""Share of the squared errors by which it has to lower them, too."""
START_BACKLASH = 5e-3
"""Where a search for one begins that is not told [rad or m]."""
MOSTLY = 95.0
"""Percentile of the speeds at which a limit of them is looked for first."""
DEPENDENT = 1e-6
"""Share of the largest direction below which columns count as dependent."""


@dataclass(frozen=True, eq=False)
class ErrorBlocks:
    """Linearised errors of blocks of time, in units of each joint's."""

    triangles: tuple[Array, ...]
    """Factors of ``[Psi | e]``, one a block, shape (columns + 1, columns + 1)."""

    def measure(self, columns: Integers, positive: Integers) -> Array:
        """Squared errors of each block where the others fit these columns, shape (blocks,).

        Those among `positive` are no less than nothing.
        """
        squares = []
        for k, left in enumerate(self.triangles):
            rest = np.vstack([each for i, each in enumerate(self.triangles) if i != k])
            step = solve_non_negative(rest[:, columns], rest[:, -1], np.isin(columns, positive))
            squares.append(float(np.sum((left[:, -1] - left[:, columns] @ step) ** 2)))
        return np.array(squares)


def solve_non_negative(A: Array, b: Array, positive: Booleans) -> Array:
    """Least squares under ``x >= 0`` of some: the most negative is left out until none is."""
    x, used = np.zeros(A.shape[1]), np.ones(A.shape[1], dtype=bool)
    while True:
        norms = measure_columns(A[:, used])
        x[:] = 0.0
        x[used] = np.linalg.lstsq(A[:, used] / norms, b, rcond=DEPENDENT)[0] / norms
        scaled = np.where(positive, x * measure_columns(A), 0.0)
        if np.min(scaled, initial=0.0) >= 0.0:
            return x
        used[int(np.argmin(scaled))] = False


def linearise_blocks(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array, sigma: Array
) -> ErrorBlocks:
    """One rollout of all logs with its sensitivities, block by block."""
    names, count = problem.robot.joint_names, len(x) + 1
    ends = np.cumsum([0, *(len(log.measured) for log in problem.samples)])
    found = [Compression(names, [count] * len(names)) for _ in range(max(BLOCKS, len(ends) - 1))]
    for index, sample, by, error in differentiate_readings(problem, simulation, unknowns, x):
        block = np.full(len(sample), index)
        if len(problem.samples) < BLOCKS:
            block = (BLOCKS * (ends[index] + sample)) // ends[-1]
        for k in np.unique(block):
            rows = block == k
            found[k].add(tuple(
                np.column_stack([by[rows, j], error[rows, j]]) for j in range(len(names))
            ))  # fmt: skip
    groups = [each.groups for each in found]
    full = [own for own in groups if all(group.rows for group in own)]
    return ErrorBlocks(tuple(stack_weighted_groups(own, sigma) for own in full))


def list_columns(kinds: Sequence[str], n: int) -> tuple[LoopColumn, ...]:
    """Parameters of the loop of some kinds: of all joints, but for the delay."""
    return tuple(
        LoopColumn(kind, j)
        for kind in dict.fromkeys(kinds)
        for j in range(1 if kind == "delay" else n)
    )


def widen(
    unknowns: Unknowns, x: Array, more: Sequence[LoopColumn], start: dict[str, Array]
) -> tuple[Unknowns, Array]:
    """The unknowns with more of the loop, and the values from which a search begins."""
    own = list(more)
    added = [start[each.kind][each.joint] for each in own]
    k = unknowns.asked
    values = np.concatenate([x[:k], added, x[k:]])
    wider = replace(unknowns, own=(*unknowns.own, *own), unit=np.ones(len(values)))
    return wider, values


def begin_loop(problem: Problem, simulation: Simulation) -> dict[str, Array]:
    """Values of a loop's parameters where a search begins.

    A speed limit that is not told begins at the speeds that joints seldom exceed.
    """
    control, n = simulation.controller, problem.robot.n
    found = control.parameters()
    speeds = np.vstack([log.dq[:, -n:] for log in problem.samples])
    fast = np.maximum(np.percentile(np.abs(speeds), MOSTLY, axis=0), 1e-2)
    told = found["speed_limit"]
    found["speed_limit"] = np.where(np.isfinite(told), told, fast)
    found["backlash"] = np.where(found["backlash"] > 0.0, found["backlash"], START_BACKLASH)
    found["bias"] = np.zeros(n) if simulation.bias is None else np.array(simulation.bias)
    found["delay"] = np.array([control.delay or START_DELAY / problem.samples[0].rate])
    return found


def choose_parts(
    problem: Problem, simulation: Simulation, unknowns: Unknowns, x: Array, sigma: Array
) -> tuple[tuple[LoopColumn, ...], str]:
    """Parts with which blocks that were left out are predicted better by a standard error.

    About an estimate without them the errors are linear in all of them, so that one rollout tells,
    and one more where a limit of the speed is not known. The best is taken, then the best beside
    it, until none pays.

    Returns
    -------
    columns : tuple of LoopColumn
        Of `PARTS`.
    words : str
        What was tried, and by how much it pays.
    """
    asked = {each.kind for each in unknowns.own}
    start = begin_loop(problem, simulation)
    open_ = [k for k in PARTS if k not in asked and np.all(np.isfinite(start[k]))]
    known = [k for k in open_ if np.all(np.isfinite(simulation.controller.parameter(k)))]
    n = problem.robot.n

    def widened(kinds: Sequence[str]) -> tuple[ErrorBlocks, Unknowns]:
        """Linearised errors with some parts more."""
        wider, values = widen(unknowns, x, list_columns(kinds, n), start)
        return linearise_blocks(problem, simulation, wider, values, sigma), wider

    def place(wider: Unknowns, kinds: Sequence[str]) -> Integers:
        """Columns of all that was asked, and of some parts."""
        own = (*unknowns.own, *list_columns(kinds, n))
        every = [len(wider.columns) + wider.own.index(each) for each in own]
        return np.array([*range(len(wider.columns)), *every], dtype=np.int64)

    blocks, wider = widened(known)
    positive = np.array(
        [len(wider.columns) + i for i, each in enumerate(wider.own) if each.kind in FROM_ZERO],
        dtype=np.int64,
    )
    chosen: list[str] = []
    gains: dict[str, float] = {}
    plain = now = blocks.measure(place(wider, ()), positive)
    while left := [k for k in known if k not in chosen]:
        tried = {kind: blocks.measure(place(wider, [*chosen, kind]), positive) for kind in left}
        best = min(left, key=lambda kind: float(np.sum(tried[kind])))
        if not pays(now, tried[best]):
            break
        chosen.append(best)
        gains[best] = 100.0 * (1.0 - float(np.sqrt(np.sum(tried[best]) / np.sum(now))))
        now = tried[best]
    for kind in (k for k in open_ if k not in known):
        other, wider = widened([kind])
        there = other.measure(place(wider, [kind]), positive[:0])
        if pays(plain, there):
            chosen.append(kind)
            gains[kind] = 100.0 * (1.0 - float(np.sqrt(np.sum(there) / np.sum(plain))))
    told = ", ".join(f"{kind} ({gains[kind]:.2g} %)" for kind in chosen) or "no part"
    rest = ", ".join(kind for kind in open_ if kind not in chosen)
    words = f"of the servo {told} lowers the error of blocks left out by a standard error"
    return list_columns(chosen, n), words + (f", {rest} do not" if rest else "")


def pays(before: Array, after: Array) -> bool:
    """Whether squared errors of blocks fall by more than a standard error of their difference."""
    fall = before - after
    return is_clearly_positive(fall, SURE) and bool(np.sum(fall) > LEAST * np.sum(before))
