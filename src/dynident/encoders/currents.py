"""The scale of currents without a sign: what a count is worth, by the torques of the fitted law.

Of a servo that logs the size of its current, ``|i| = (|tau| - t0) / k`` above a threshold t0 below
which it shows none. The torques are as large as the gain says, whose error is that of k, too: a
joint whose gain neither weight nor inertia tells has no scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from dynident.core.arrays import Array
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.regression.problem import Problem
from dynident.simulation.rollout import rollout

BLOCKS = 10
"""Of each log, within which errors may be alike."""
LEAST = 100
"""Samples with a current that a scale takes."""
NORMAL = 1.96
"""Of a 95 % interval."""


@dataclass(frozen=True)
class CurrentScale:
    """What a count of a joint's current is worth, by the law's torques."""

    joint: str
    value: float
    std: float
    """`value`, `std`: Nm or N a count, and its standard error, with that of the gain."""
    threshold: float
    """Torque below which no current shows [Nm or N]."""
    spread: float
    """The part of the error, as a share, that is not the gain's."""

    @property
    def told(self) -> bool:
        """Whether the interval of 95 % is above zero."""
        return bool(self.value > NORMAL * self.std)


def describe_scales(scales: Sequence[CurrentScale]) -> str:
    """Which joints tell what a count is worth, and which do not."""
    told = ", ".join(
        f"{own.value:.3g} +- {NORMAL * own.std:.2g} Nm at {own.joint}" for own in scales if own.told
    )
    left = ", ".join(own.joint for own in scales if not own.told)
    words = [f"a count of current is {told}"] * bool(told)
    words += [f"what a count of current is at {left} is not told"] * bool(left)
    return "; ".join(words)


def scale_currents(
    problem: Problem, simulation: Simulation, theta: Array, gain_errors: Mapping[int, float]
) -> tuple[CurrentScale, ...]:
    """Torque a count of each joint, of logs that have currents without a sign; empty of others.

    Parameters
    ----------
    simulation : Simulation
        As it was fitted.
    theta : ndarray, shape (standard parameters,)
    gain_errors : mapping of int to float
        Standard errors of fitted gains, as shares of these, by joint.
    """
    logs = [k for k, log in enumerate(problem.samples) if log.unsigned is not None]
    if not logs:
        return ()
    n, loops = problem.robot.n, build_auxiliary_model(problem, simulation).loops
    pairs: list[list[Array]] = [[] for _ in range(n)]
    for k in logs:
        counts = problem.samples[k].unsigned
        assert counts is not None
        parts = [
            np.stack([np.abs(rollout(loop, theta).tau), np.asarray(counts[start:stop])], axis=-1)
            for start, stop, loop in loops[k]
        ]
        for block in np.array_split(np.concatenate(parts), BLOCKS):
            for j in range(n):
                pairs[j].append(block[block[:, j, 1] > 0.0, j])
    names = problem.robot.joint_names
    return tuple(scale_joint(names[j], own, gain_errors.get(j, 0.0)) for j, own in enumerate(pairs))


def scale_joint(joint: str, blocks: list[Array], gain_error: float) -> CurrentScale:
    """The scale of one joint, its error by leaving out one block after another.

    `blocks`: of torques and currents, shapes (samples, 2).
    """
    blocks = [own for own in blocks if len(own)]
    if sum(map(len, blocks)) < LEAST or len(blocks) < 3:
        return CurrentScale(joint, np.nan, np.inf, np.nan, np.inf)
    sums = np.array([sum_moments(own) for own in blocks])
    slope, threshold = fit_line(sums.sum(axis=0))
    left = np.array([fit_line(sums.sum(axis=0) - own)[0] for own in sums])
    count = len(blocks)
    std = float(np.sqrt((count - 1) * np.mean((left - slope) ** 2)))
    within = float(special.stdtrit(count - 1, 0.975)) * std / NORMAL  # as wide as Student's t
    relative = np.hypot(within / abs(slope), gain_error)
    return CurrentScale(joint, 1.0 / slope, abs(relative / slope), threshold, within / abs(slope))


def sum_moments(pairs: Array) -> Array:
    """``1, tau, i, tau^2, tau i`` over samples."""
    tau, i = pairs.T
    return np.array([len(pairs), tau.sum(), i.sum(), tau @ tau, tau @ i])


def fit_line(sums: Array) -> tuple[float, float]:
    """Slope of currents over torques, and the torque where they begin."""
    count, tau, i, squares, both = sums
    slope = (both - tau * i / count) / (squares - tau**2 / count)
    return float(slope), float((tau - i / slope) / count)
