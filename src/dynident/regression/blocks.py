"""Factors of runs of time, for what is judged by the rows that were left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.errors import InputError
from dynident.core.factors import Factors, fix_signs, merge_all, triangularise_rows
from dynident.filters.blocks import take_every
from dynident.regression.problem import Problem, Regression
from dynident.regression.rows import Rows

Label = Callable[[int, int, Integers], Integers]
"""Which part rows belong to, by their log, group and samples: an index."""

RUNS = 5
"""Equal runs of time of each log, whose factors are kept beside that of all of its rows."""
STATES = 12
"""Clusters of speed, and of position, with as many samples each."""
TYPICAL = 5000
"""Samples at least, where there are more, that quantiles are taken of."""


def factor_blocks(problem: Problem, count: int) -> tuple[Factors, ...]:
    """Factors of equal runs of time, each log cut into as many."""
    left = problem.source.left
    if left is None:
        return factor_parts(problem, label_blocks(problem, count), count)
    if count != RUNS:
        raise InputError(f"factors are kept of {RUNS} runs of time a log, not of {count}")
    return tuple(merge_all(each) for each in zip(*left.blocks, strict=True))


def factor_runs(rows: Regression) -> tuple[tuple[Factors, ...], ...]:
    """Factors of `RUNS` equal runs of time, of each log by itself."""
    if rows.source.left is not None:
        return rows.source.left.blocks
    label = label_blocks(rows, RUNS)
    return tuple(factor_parts(rows, label, RUNS, [log]) for log in enumerate(rows.passes()))


def label_blocks(problem: Regression, count: int) -> Label:
    """Which of so many equal runs of time rows are in."""
    edges = [np.linspace(0.0, len(log.q), count + 1)[1:-1] for log in problem.samples]
    return lambda log, group, sample: np.searchsorted(edges[log], sample, side="right")


def label_states(rows: Regression) -> list[dict[int, Label]]:
    """Clusters of the speed and of the position of the joint of each group that has one.

    Each cluster has as many samples that may be fitted as another, of all logs.
    """
    names, logs = rows.idim.robot.joint_names, rows.samples
    first = (rows.idim.tree.dof - len(names), 0)
    signals = [(log.dq, log.measured) for log in logs]
    steps = [max(1, len(log.q) // TYPICAL) for log in logs]
    some = [take_every(own, step) for own, step in zip(signals, steps, strict=True)]
    moving = [log.moving[::step] for log, step in zip(logs, steps, strict=True)]

    def label(way: int, g: int, j: int) -> Label:
        column = first[way] + j
        few = [own[way][kept[:, g], column] for own, kept in zip(some, moving, strict=True)]
        x = np.concatenate(few)
        edges = np.quantile(x, np.arange(1, STATES) / STATES) if len(x) else x
        return lambda k, group, sample: np.searchsorted(edges, signals[k][way][sample, column])

    joints = {g: names.index(own.name) for g, own in enumerate(rows.groups) if own.name in names}
    return [{g: label(way, g, j) for g, j in joints.items()} for way in range(2)]


def factor_parts(
    rows: Regression,
    label: Label,
    count: int,
    logs: Iterable[tuple[int, Iterable[Rows]]] | None = None,
) -> tuple[Factors, ...]:
    """Factors of parts of the rows, which a label tells apart; of some logs with their numbers."""
    parts = [rows.begin_factors() for _ in range(count)]
    for k, stretches in enumerate(rows.passes()) if logs is None else logs:
        for stretch in stretches:
            labels = [label(k, g, sample) for g, sample in enumerate(stretch.sample)]
            blocks: tuple[Array, ...] = stretch.blocks
            for number, part in enumerate(parts):
                inside = [own == number for own in labels]
                part.add([b[i] for b, i in zip(blocks, inside, strict=True)])
    return tuple(rows.end_factors(part) for part in parts)


SOLE = 0.01
"""Share of what a direction is told that other runs have to tell for its errors to be judged."""


def factorise_run_sum(rows: Regression, weights: Array) -> tuple[Array, str]:
    """F of ``S = F^T F``, the variance of ``sum_t u_t`` by the scatter of runs of time, and words.

    Errors may have any correlation that is shorter than a run, over time and between groups: the
    scores ``v_b = sum_t u_t`` of each run about the least-squares answer, in coordinates in which
    those of white errors have unit variance. What a fit has taken from its own runs is given back
    (Bell and McCaffrey 2002: CR2), and few runs are shrunk towards equal variances by as much as
    their own scatter says (Ledoit and Wolf 2004), so that the sum knows all directions. The
    weights are the sigmas that weighted the rows; F is triangular, and the same whatever the runs'
    order.
    """
    system = rows.factors.weighted(weights)
    inverse = system.inverse()
    scores = whiten_runs(rows, weights)
    seen = system.A @ inverse
    count, rank = len(scores), float(np.trace(seen))
    squares = np.sum(scores**2, axis=1)
    if count < 2 or rank < 0.5:
        raise InputError(
            "covariance 'blocks' takes rows in two runs of time at least; give longer logs"
        )
    scatter = scores.T @ scores / count
    level = float(np.sum(squares)) / count / rank
    # d^2 and b^2 of Ledoit and Wolf (2004): how far S is from its target, and from its mean
    apart = float(np.sum((scatter - level * seen) ** 2))
    unsure = float(np.sum(squares**2) / count - np.sum(scatter**2)) / count
    share = min(1.0, unsure / apart) if apart > 0.0 else 1.0
    half = np.vstack([np.sqrt(1.0 - share) * scores, np.sqrt(share * level * count) * seen])
    words = f"scatter between {count} runs of time, {100.0 * share:.0f} % of it shared alike"
    return fix_signs(triangularise_rows(half @ system.A)), words


def measure_run_inflation(rows: Regression, weights: Array) -> float:
    """Variance of the scores over that of white errors with these sigmas, by runs of time."""
    rank = rows.factors.weighted(weights).condition()[1]
    return float(np.sum(whiten_runs(rows, weights) ** 2)) / rank


def whiten_runs(rows: Regression, weights: Array) -> Array:
    """Scores of all runs that have rows, shape (runs, parameters), of unit variance if white."""
    system = rows.factors.weighted(weights)
    beta, inverse = system.solve(), system.inverse()
    found = [whiten_run(run, beta, inverse, weights) for log in factor_runs(rows) for run in log]
    return np.array([v for v in found if v is not None])


def whiten_run(run: Factors, beta: Array, inverse: Array, weights: Array) -> Array | None:
    """Scores of one run, shape (parameters,); None where it has no rows."""
    if not run.rows:
        return None
    F, group = run.stacked
    F = F / weights[group][:, None]
    Q = F[:, :-1] @ inverse
    scores = Q.T @ (F[:, -1] - F[:, :-1] @ beta)
    share, axes = np.linalg.eigh(Q.T @ Q)
    return np.asarray(axes @ ((axes.T @ scores) / np.sqrt(np.maximum(1.0 - share, SOLE))))
