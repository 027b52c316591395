"""Friction from session to session, and the session from which on it is another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from dynident.collection.member import Member
from dynident.core.arrays import Array
from dynident.dynamics.idim import Idim
from dynident.regression.factors import System, triangularise_rows
from dynident.report.fleet import Change

LEVEL = 0.01
"""Chance that a change is told of a robot without one, all its joints together."""
FEWEST = 2
"""Sessions before and after a change."""
DRAWS = 20_000
"""Sequences without a change, from which chances are counted."""
MEDIAN = 0.4549364231195724
"""Of the square of a standard normal variable."""


def measure_levels(member: Member, beta: Array) -> Array:
    """Friction of each joint in each session over that of all sessions, shape (sessions, n).

    Coulomb and viscous friction of a drive are multiplied alike; offsets are free in each session,
    all else is the robot's.

    Parameters
    ----------
    beta : ndarray, shape (p,)
        Base parameters of the robot.
    """
    base = member.problem.base
    friction, offsets = list_friction_columns(base.idim, base.matrix, beta)
    levels = []
    for part in member.parts:
        triangle = member.whiten(part)
        columns = triangle[:, :-1] @ np.column_stack([friction, offsets])
        rows = np.column_stack([columns, triangle[:, -1] - triangle[:, :-1] @ beta])
        R = np.zeros((rows.shape[1], rows.shape[1]))
        reduced = triangularise_rows(rows)
        R[: len(reduced)] = reduced
        levels.append(System.of(R).solve()[: friction.shape[1]])
    return 1.0 + np.array(levels)


def list_friction_columns(idim: Idim, matrix: Array, beta: Array) -> tuple[Array, Array]:
    """What multiplied friction and offsets do to base parameters, a column a joint."""
    n = idim.robot.n
    values = np.linalg.pinv(matrix[:, idim.inertial :]) @ beta
    friction, offsets = np.zeros((2, len(beta), n))
    for place, parameter in enumerate(idim.parameters[idim.inertial :]):
        column, j = matrix[:, idim.inertial + place], parameter.number - 1
        if parameter.symbol == "off":
            offsets[:, j] += column
        elif not parameter.symbol.startswith("Ia"):
            friction[:, j] += column * values[place]
    return friction, offsets


def estimate_scatter(levels: Sequence[Array]) -> Array:
    """Standard deviation of a session's friction, of each joint, shape (n,).

    By differences of sessions that follow each other, of which a change alters one; their median is
    that of all robots.
    """
    squares = np.vstack([np.diff(each, axis=0) ** 2 for each in levels if len(each) > 1])
    return np.asarray(np.sqrt(np.median(squares, axis=0) / (2.0 * MEDIAN)))


def find_changes(
    levels: Array, scatter: Array, joints: Sequence[str], sessions: Sequence[str]
) -> tuple[Change, ...]:
    """Joints whose friction is another from some session on.

    The largest difference of means before and after, over its standard error, against as many
    sessions that scatter alike.
    """
    if len(levels) < 2 * FEWEST:
        return ()
    null = draw_largest_steps(len(levels))
    found = []
    for j, joint in enumerate(joints):
        sizes, errors = step_sizes(levels[:, j] / scatter[j])
        k = int(np.argmax(np.abs(sizes) / errors))
        chance = float(np.mean(null >= np.abs(sizes[k]) / errors[k]))
        if chance * len(joints) < LEVEL:
            before = float(np.mean(levels[: k + FEWEST, j]))
            unit = scatter[j] / before
            found.append(
                Change(joint, sessions[k + FEWEST], sizes[k] * unit, errors[k] * unit, chance)
            )
    return tuple(found)


def step_sizes(sequence: Array) -> tuple[Array, Array]:
    """Difference of the means after and before each possible change, and its standard error.

    Parameters
    ----------
    sequence : ndarray, shape (sessions,) or (sessions, sequences)
        Of unit variance.
    """
    count = len(sequence)
    before = np.arange(FEWEST, count - FEWEST + 1)
    sums = np.cumsum(sequence, axis=0)
    head = sums[before - 1]
    shape = (-1,) + (1,) * (sequence.ndim - 1)
    n, m = before.reshape(shape), (count - before).reshape(shape)
    errors = np.sqrt(1.0 / before + 1.0 / (count - before))
    return (sums[-1] - head) / m - head / n, errors


@cache
def draw_largest_steps(count: int) -> Array:
    """Of so many sessions without a change the largest step over its error, many times."""
    sequences = np.random.default_rng(0).normal(size=(count, DRAWS))
    sizes, errors = step_sizes(sequences)
    return np.asarray(np.max(np.abs(sizes) / errors[:, None], axis=0))
