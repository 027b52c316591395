"""Factors of runs of time, for what is judged by the rows that were left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.regression.factors import Factors
from dynident.regression.problem import Problem

Label = Callable[[int, int, Integers], Integers]
"""Which part rows belong to, by their log, group and samples: an index."""


def factor_blocks(problem: Problem, count: int) -> tuple[Factors, ...]:
    """Factors of equal runs of time, each log cut into as many."""
    return factor_parts(problem, label_blocks(problem, count), count)


def label_blocks(problem: Problem, count: int) -> Label:
    """Which of so many equal runs of time rows are in."""
    edges = [np.linspace(0.0, len(log.q), count + 1)[1:-1] for log in problem.samples]
    return lambda log, group, sample: np.searchsorted(edges[log], sample, side="right")


def factor_parts(problem: Problem, label: Label, count: int) -> tuple[Factors, ...]:
    """Factors of parts of the rows, which a label tells apart."""
    parts: list[list[tuple[Array, ...]]] = [[] for _ in range(count)]
    for k, stretches in enumerate(problem.passes()):
        for rows in stretches:
            labels = [label(k, g, sample) for g, sample in enumerate(rows.sample)]
            for part, blocks in enumerate(parts):
                inside = [own == part for own in labels]
                blocks.append(tuple(b[i] for b, i in zip(rows.blocks, inside, strict=True)))
    return tuple(problem.compress(part) for part in parts)
