"""Whether rows at standstill are left out, by rows that were left out in turn."""

from __future__ import annotations

import numpy as np

from dynident.consistency.feasible_set import FeasibleSet
from dynident.core.arrays import Array, Integers
from dynident.core.factors import Factors, merge_all
from dynident.decide.decision import BLOCKS, FREE, STANDSTILL, Decision, compute_gain_percent
from dynident.decide.folds import Folds
from dynident.regression.blocks import factor_parts, label_blocks
from dynident.regression.problem import Problem

SHARES = (0.01, 0.03, 0.06)
"""Gates that are tried, as shares of each joint's largest speed."""

LEAST = 3
"""Blocks in which a joint has to move."""


def choose_standstill(problem: Problem, admitted: FeasibleSet, sigma: Array) -> Decision:
    """The speed below which rows are no longer fitted: zero where leaving them out does not pay.

    All rows are predicted, those at standstill too, whatever was fitted. The value is a list of
    speeds, one a joint [rad/s or m/s].
    """
    fastest = find_fastest_joints(problem)
    gates = [tuple(float(f"{share * speed:.2g}") for speed in fastest) for share in SHARES]
    nothing = Decision(STANDSTILL, "0", 0.0, "leaving out slow rows is not clearly better")
    parts = factor_speeds(problem, gates)
    every = tuple(merge_all(blocks) for blocks in zip(*parts, strict=True))
    folds = Folds.of(every, admitted, sigma)
    chosen = np.arange(folds.columns)
    first = held = folds.leave(folds.fit(chosen))
    value: tuple[float, ...] | None = None
    for k, gate in enumerate(gates, 1):
        moving = tuple(merge_all(blocks) for blocks in zip(*parts[k:], strict=True))
        if np.any(np.sum([block.counts > 0 for block in moving], axis=0) < LEAST):
            break  # of some joint next to nothing would be left
        after = folds.leave(Folds.of(moving, admitted, sigma).fit(chosen))
        if held.pays(after, worth=FREE):
            held, value = after, gate
    if value is None:
        return nothing
    gain = compute_gain_percent(first.squares, held.squares)
    told = f"[{', '.join(f'{speed:g}' for speed in value)}]"
    return Decision(STANDSTILL, told, gain, "slower rows are left out [rad/s or m/s]")


def find_fastest_joints(problem: Problem) -> list[float]:
    """Largest speed of each joint [rad/s or m/s]."""
    speeds = [
        np.abs(log.dq[a:b, log.joint_rows]) for log in problem.samples for a, b in log.segments
    ]
    found: list[float] = np.max([np.max(own, axis=0) for own in speeds], axis=0).tolist()
    return found


def factor_speeds(
    problem: Problem, gates: list[tuple[float, ...]]
) -> tuple[tuple[Factors, ...], ...]:
    """Factors of each block, of rows slower than all gates, then those between two of them."""
    n, drives = problem.robot.n, problem.robot.drives
    before = problem.robot.dof - n
    blocks = label_blocks(problem, BLOCKS)
    classes = []
    for log in problem.samples:
        passed = [log.find_moving_joints(gate, drives) for gate in gates]
        classes.append(np.sum(passed, axis=0))

    def label(log: int, group: int, sample: Integers) -> Integers:
        joint = group - before
        own = classes[log][sample, joint] if 0 <= joint < n else np.full(len(sample), len(gates))
        return np.asarray(blocks(log, group, sample) + BLOCKS * own)

    found = factor_parts(problem, label, BLOCKS * (len(gates) + 1))
    return tuple(found[BLOCKS * k : BLOCKS * (k + 1)] for k in range(len(gates) + 1))
