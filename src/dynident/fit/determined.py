"""What the motion of logs tells of a robot: base parameters from the data alone.

Base parameters are structural, of motion that excites all that can be. A log may tell fewer: a
combination whose torque drowns in its noise, or whose regressor is itself noise of the encoders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.core.arrays import Array, Integers
from dynident.core.factors import Factors
from dynident.core.text import format_combination, format_count
from dynident.core.words import format_entry, format_number, format_table
from dynident.dynamics.base import TOLERANCE, BaseParameters, draw_random_rows, order_for_keeping
from dynident.filters.filters import differentiate_twice, filter_by_cutoff
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.problem import Problem, refuse_springs
from dynident.regression.weighted import solve_wls

CLEARLY = 3.0
"""Standard deviations of its noise by which a column has to stand out."""
SEED = 0


@dataclass(frozen=True)
class ToldCombinations:
    """Combinations of structural base parameters that some logs tell apart."""

    base: BaseParameters
    """The structural ones."""
    kept: Integers
    """Which of them stand for the combinations."""
    K: Array
    """Shape (count, structural count). ``told = K @ beta``; a column of zeros acts on no torque
    that stands out."""
    std: Array
    """Shape (count,). What the noise makes of their estimates: ``(X^T Omega^-1 X)^-1``."""

    @property
    def count(self) -> int:
        """How many the logs tell."""
        return len(self.kept)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the structural base parameters that stand for them."""
        return tuple(self.base.names[k] for k in self.kept)

    @property
    def regroupings(self) -> tuple[str, ...]:
        """Each as a combination of structural base parameters."""
        names = self.base.names
        return tuple(
            format_combination((row[i], names[i]) for i in (k, *np.setdiff1d(range(len(row)), k)))
            for k, row in zip(self.kept, self.K, strict=True)
        )

    @property
    def unseen(self) -> tuple[str, ...]:
        """Structural base parameters without a torque that stands out."""
        return tuple(self.base.names[k] for k in np.flatnonzero(~self.K.any(axis=0)))


def find_told_parameters(problem: Problem) -> ToldCombinations:
    """Rank and grouping of the rows of some logs, by the size of their noise.

    Columns of the weighted rows are kept in the order of the structural base parameters' own, each
    where what those before it leave of it is `CLEARLY` more than noise: of the torque, were the
    parameter so large that random states would show it as the largest torque of the logs; and
    of the regressor, by the columns of the same motion with another draw of the positions' noise.
    """
    refuse_springs(problem.robot, "what a motion determines knows")
    base, factors = problem.base, problem.factors
    _, sigma, _ = solve_wls(factors)
    A = factors.weighted(sigma).A
    norms = np.linalg.norm(A, axis=0)
    least = np.maximum.reduce(
        [
            TOLERANCE * norms,
            CLEARLY / find_largest_values(base, factors),
            CLEARLY * measure_column_noise(problem, sigma),
        ]
    )
    place = {int(k): i for i, k in enumerate(base.kept)}
    kept: list[int] = []
    basis = np.zeros((0, len(A)))
    for k in (place[k] for k in order_for_keeping(base.idim) if k in place):
        rest = A[:, k] - (basis @ A[:, k]) @ basis
        rest -= (basis @ rest) @ basis  # twice is enough
        size = float(np.linalg.norm(rest))
        if size > least[k]:
            kept.append(k)
            basis = np.vstack([basis, rest / size])
    chosen = np.sort(np.array(kept, dtype=np.int64))
    Q, R = np.linalg.qr(A[:, chosen])
    inverse = np.linalg.inv(R)
    K = inverse @ (Q.T @ A)
    K[:, norms <= least] = 0.0
    # terms of which the largest value of the parameter makes no torque that stands out
    K[np.abs(K) * norms[chosen][:, None] < least] = 0.0
    K[:, chosen] = np.eye(len(chosen))
    return ToldCombinations(base, chosen, K, np.linalg.norm(inverse, axis=1))


def find_largest_values(base: BaseParameters, factors: Factors) -> Array:
    """Values that would make the largest joint torque of the logs at random states."""
    rows = np.concatenate([draw_random_rows(base.idim, SEED, each) for each in base.observed])
    effect = np.sqrt(np.mean(rows[:, base.kept] ** 2, axis=0))
    torque = np.sqrt(np.max(factors.squared_torques / np.maximum(factors.counts, 1.0)))
    return np.asarray(torque / effect)


def measure_column_noise(problem: Problem, sigma: Array) -> Array:
    """Lengths of what noise of the positions adds to the weighted columns, by one draw of it."""
    rng = np.random.default_rng(SEED)
    other = problem.along([add_position_noise(log, rng) for log in problem.samples])
    squares = np.zeros(problem.base.count)
    for one, two in zip(problem.rows(), other.rows(), strict=True):
        parts = zip(problem.columns, one.X, two.X, sigma, strict=True)
        for columns, X, Y, scale in parts:
            squares[columns] += np.sum(((Y - X) / scale) ** 2, axis=0)
    return np.sqrt(squares)


def add_position_noise(
    log: GeneralisedSamples, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """The motion of a log with noise as large as that which its position filter took away.

    White noise, filtered and differentiated as the positions were.
    """
    n = log.measured.shape[1]
    share = np.minimum(np.array(log.position_hz) / (0.5 * log.rate), 0.9)
    motion = log.q.copy(), log.dq.copy(), log.ddq.copy()
    for start, stop in log.runs:
        run = slice(start, stop)
        left = log.measured[run] - log.q[run, log.q.shape[1] - n :]
        white = rng.normal(size=left.shape) * np.sqrt(np.mean(left**2, axis=0) / (1.0 - share))
        noise = filter_by_cutoff(white, log.position_hz, log.rate)
        for signal, added in zip(
            motion, (noise, *differentiate_twice(noise, log.rate)), strict=True
        ):
            signal[run, signal.shape[1] - n :] += added
    return motion


def format_told_parameters(found: ToldCombinations, logs: str) -> str:
    """What logs tell: the combinations with what their noise makes of them, and what is unseen."""
    title = f"{found.count} of {format_count(found.base.count, 'base parameter')}"
    table = format_table(
        "determined", list(found.names), [("std", [format_number(value, 2) for value in found.std])]
    )
    pairs = zip(found.names, found.regroupings, strict=True)
    lines = [*table, ""]
    lines += [line for name, text in pairs if text != name for line in format_entry(name, text)]
    if found.unseen:
        lines += format_entry("not seen", ", ".join(found.unseen))
    return "\n".join([*lines, *format_entry("determined", f"{title}, by the motion of {logs}")])


def serialise_told_parameters(found: ToldCombinations) -> dict[str, Any]:
    """The same as plain data."""
    rows = zip(found.names, found.regroupings, found.std.tolist(), strict=True)
    return {
        "count": found.count,
        "parameters": [{"name": name, "regrouping": text, "std": std} for name, text, std in rows],
        "unseen": list(found.unseen),
    }
