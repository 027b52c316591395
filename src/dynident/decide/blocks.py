"""Blocks in time that are held out, and the errors of models on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.factors import Factors
from dynident.core.text import format_one_line
from dynident.decide.decision import BLOCKS
from dynident.dynamics.base import BaseParameters
from dynident.dynamics.equations import PLAIN
from dynident.recording.prepare import Samples, count_felt_samples
from dynident.regression.problem import Problem
from dynident.regression.rows import RowGroup

Span = tuple[int, int, int]
"""A log, a sample of it, and the one after the last."""
Model = tuple[BaseParameters, Array]
"""Base parameters, and values of the standard ones."""
Fold = tuple[Problem, Problem]
"""The first model on logs that are fitted, and on logs that are scored."""


def split_into_blocks(logs: Sequence[Samples], count: int) -> list[list[Span]]:
    """Contiguous blocks of equal length of all that a fit may use of some logs, in time order."""
    stretches = [(k, a, b) for k, log in enumerate(logs) for a, b in log.segments]
    ends = np.cumsum([0, *(b - a for _, a, b in stretches)])
    found = []
    for low, high in pairwise(np.linspace(0, ends[-1], count + 1).round().astype(int).tolist()):
        spans = []
        for (k, a, _), first, last in zip(stretches, ends[:-1], ends[1:], strict=True):
            start, stop = max(low, int(first)), min(high, int(last))
            if start < stop:
                spans.append((k, a + start - int(first), a + stop - int(first)))
        found.append(spans)
    return found


def last_long_enough(logs: Sequence[Samples]) -> bool:
    """Whether most rows of a block share no filter's window with the next block."""
    windows = sum(2 * max(own.half for own in log.filters) + 1 for log in logs)
    return 2 * BLOCKS * windows <= sum(len(log.q) for log in logs)


def lack_rows(problem: Problem, parts: Iterable[Factors]) -> bool:
    """Whether an equation that a whole log states has no row in some part of the logs."""
    stated = PLAIN.rows(problem.robot)
    return any(np.min(part.counts[stated], initial=np.inf) < 1 for part in parts)


def complement_spans(logs: Sequence[Samples], spans: Sequence[Span]) -> list[Span]:
    """What is left beside a block, but for the samples at its ends that filters mix with it."""
    left = []
    for k, log in enumerate(logs):
        guard = count_felt_samples(log.position_hz, log.rate)
        for start, stop in log.segments:
            first = start
            for a, b in ((a, b) for i, a, b in spans if i == k and start <= a and b <= stop):
                left.append((k, first, a - guard))
                first = b + guard
            left.append((k, first, stop))
    return left


def cut_logs(logs: Sequence[Samples], spans: Sequence[Span]) -> tuple[Samples, ...]:
    """Logs of which only some stretches are rows, where these are long enough for a row."""
    found = []
    for k, log in enumerate(logs):
        shortest = 2 * max(own.half for own in log.filters) + 1
        segments = tuple((a, b) for i, a, b in spans if i == k and b - a >= shortest)
        if segments:
            found.append(log.within(segments))
    return tuple(found)


def find_row_kind(group: RowGroup) -> str:
    """What errors of a group of rows are counted with: combinations free of the same contacts."""
    return group.name.rpartition(" ")[0] if group.noise else group.name


def build_folds(
    problem: Problem, fitted: Sequence[Samples], held_out: Sequence[Samples], blocks: int
) -> tuple[Fold, ...]:
    """Blocks that are scored, with what is fitted then.

    Refuses blocks that are too short, or in which no equation of a floating robot's log lasts.
    """
    found = []
    for spans in split_into_blocks(held_out or fitted, blocks):
        other = cut_logs(held_out or fitted, spans)
        own = () if held_out else cut_logs(fitted, complement_spans(fitted, spans))
        if not other or not (own or held_out):
            raise InputError(f"{blocks} blocks are too short for the filters; ask for fewer")
        try:
            found.append((problem if held_out else problem.on(own), problem.on(other)))
        except InputError as error:
            raise InputError(
                f"{format_one_line(error)}; or ask for fewer blocks than {blocks}"
            ) from error
    return tuple(found)


def list_row_kinds(problem: Problem) -> tuple[str, ...]:
    """Kinds of rows of a problem by name: combinations that are free of some contacts are one.

    Rows of links' encoders are none: their errors are of positions.
    """
    bent = {row for row, _ in problem.robot.sprung_rows}
    groups = (group for row, group in enumerate(problem.groups) if row not in bent)
    return tuple(dict.fromkeys(map(find_row_kind, groups)))


def sum_squared_errors(
    base: BaseParameters, theta: Array, near: Problem, kinds: Sequence[str]
) -> tuple[Array, Array, Array, Array, Array]:
    """Sums of squared errors and torques, of errors' sizes, the largest torque, and the rows.

    Each by kind of rows, of which the logs of the problem, of another model, may have some alone.
    """
    problem = near.under(base).expecting(theta)
    beta = base.matrix @ theta
    named = [find_row_kind(group) for group in problem.groups]
    places = [kinds.index(name) if name in kinds else -1 for name in named]
    found = np.zeros((5, len(kinds)))
    for rows in problem.rows():
        for g, columns, X, y in zip(places, problem.columns, rows.X, rows.y, strict=True):
            if g < 0 or not len(y):
                continue
            e = y - X @ beta[columns]
            found[:3, g] += e @ e, y @ y, np.sum(np.abs(e))
            found[3, g] = max(found[3, g], np.max(np.abs(y)))
            found[4, g] += len(y)
    return found[0], found[1], found[2], found[3], found[4]
