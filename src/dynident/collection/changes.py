"""Friction from session to session, and the session from which on it is another.

A level that scatters about one that wanders, ``y_t = x_t + e_t`` and ``x_t = x_(t-1) + w_t`` (the
local level of Harvey 1989), in the sessions of all robots: what wanders is no change.
"""

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
ROUGH = 2.33
"""Standard error of a median of so many squares of normal variables, as a share, times the root of
their number."""
STEP = 0.1
"""To which the ratio of wander to scatter is rounded up, so that few sequences are drawn."""
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


def estimate_scatter(levels: Sequence[Array]) -> tuple[Array, Array]:
    """Standard deviations of a session's friction and of its wander until the next, shapes (n,).

    By differences of sessions near each other and half a series apart, of which a change alters
    few; their medians are those of all robots. A wander less than its standard error is none.
    """
    far = max(1, max(map(len, levels)) // 2)
    near, error = measure_differences(levels, 1)
    wide, other = measure_differences(levels, far)
    square = (wide - near) / max(1, far - 1)
    told = square > np.hypot(error, other) / max(1, far - 1)
    square = np.where(told, np.minimum(square, 0.9 * near), 0.0)
    return np.sqrt(0.5 * (near - square)), np.sqrt(square)


def measure_differences(levels: Sequence[Array], lag: int) -> tuple[Array, Array]:
    """Mean square of differences between sessions so far apart, and its standard error."""
    pairs = [each[lag:] - each[:-lag] for each in levels if len(each) > lag]
    squares = np.vstack(pairs) ** 2
    value = np.median(squares, axis=0) / MEDIAN
    return value, ROUGH * value / np.sqrt(len(squares))


def find_changes(
    levels: Array,
    scatter: Array,
    wander: Array,
    joints: Sequence[str],
    sessions: Sequence[str],
) -> tuple[Change, ...]:
    """Joints whose friction is another from some session on.

    The largest difference of means before and after, over its standard error, against as many
    sessions that scatter and wander alike.
    """
    if len(levels) < 2 * FEWEST:
        return ()
    found = []
    for j, joint in enumerate(joints):
        ratio = int(np.ceil(wander[j] / scatter[j] / STEP))
        sizes, errors = step_sizes(levels[:, j] / scatter[j], STEP * ratio)
        k = int(np.argmax(np.abs(sizes) / errors))
        null = draw_largest_steps(len(levels), ratio)
        chance = float(np.mean(null >= np.abs(sizes[k]) / errors[k]))
        if chance * len(joints) < LEVEL:
            before = float(np.mean(levels[: k + FEWEST, j]))
            unit = scatter[j] / before
            found.append(
                Change(joint, sessions[k + FEWEST], sizes[k] * unit, errors[k] * unit, chance)
            )
    return tuple(found)


def step_sizes(sequence: Array, wander: float) -> tuple[Array, Array]:
    """Difference of the means after and before each possible change, and its standard error.

    Parameters
    ----------
    sequence : ndarray, shape (sessions,) or (sessions, sequences)
        Of unit scatter.
    wander : float
        Standard deviation of the level's step to the next session.
    """
    count = len(sequence)
    before = np.arange(FEWEST, count - FEWEST + 1)[:, None]
    later = np.arange(count) >= before
    weights = np.where(later, 1.0 / (count - before), -1.0 / before)
    carried = np.cumsum(weights[:, :0:-1], axis=1)  # what a step of the level moves
    errors = np.sqrt(np.sum(weights**2, axis=1) + wander**2 * np.sum(carried**2, axis=1))
    return weights @ sequence, errors


@cache
def draw_largest_steps(count: int, ratio: int) -> Array:
    """Of so many sessions without a change the largest step over its error, many times."""
    rng = np.random.default_rng(0)
    walks = np.cumsum(rng.normal(scale=STEP * ratio, size=(count, DRAWS)), axis=0)
    sizes, errors = step_sizes(walks + rng.normal(size=(count, DRAWS)), STEP * ratio)
    return np.asarray(np.max(np.abs(sizes) / errors[:, None], axis=0))
