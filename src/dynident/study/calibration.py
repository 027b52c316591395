"""How much of a measured log lies inside the band of draws of a model."""

from __future__ import annotations

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import ComputationError, InputError, RolloutError
from dynident.estimators.closed_loop import Simulation, build_auxiliary_model
from dynident.recording.prepare import Samples
from dynident.regression.problem import Problem
from dynident.regression.statistics import NORMAL
from dynident.report.draws import BAND, Calibration, Draws
from dynident.report.fit import Fit
from dynident.simulation.rollout import rollout

SIMULATED = 64
"""Draws that are simulated for a band of positions: its edges within a fifth of a deviation."""


def measure_torque_calibration(fit: Fit, draws: Draws, samples: Samples) -> Calibration:
    """Of the torques of a log, on its fitted rows: filtered and decimated.

    Groups that the fitted logs have no rows of are left out: their noise is not known.

    Parameters
    ----------
    draws : Draws
        Of the fit.
    samples : Samples
        One log.

    Raises
    ------
    InputError
        Where no group has rows both here and there.
    """
    problem = Problem.of(fit.base, samples).expecting(fit.theta)
    known = list_known_noise(fit)
    hits: dict[str, Array] = {}
    counts: dict[str, int] = {}
    for rows in problem.rows():
        for g, (X, y) in enumerate(zip(rows.X, rows.y, strict=True)):
            name = problem.groups[g].name
            if len(y) and name in known:
                found = count_inside_band(X @ draws.beta.T[problem.columns[g]], y, known[name])
                hits[name] = hits.get(name, 0.0) + found
                counts[name] = counts.get(name, 0) + len(y)
    if not counts:
        raise InputError(f"{samples.name}: has no rows of equations that were fitted")
    names = tuple(group.name for group in problem.groups if group.name in counts)
    alone, noisy = np.array([hits[name] / counts[name] for name in names]).T
    return Calibration(samples.name, "torque", names, len(draws), alone, noisy, samples.warnings)


def list_known_noise(fit: Fit) -> dict[str, float]:
    """What a fit left of each group of rows that it had, as one standard deviation [Nm or N].

    Along the measured motion, as another log is held against it: methods that fit torques along a
    simulated motion have left less there.
    """
    fitted = (figure for figure in fit.identification if figure.rows == "fitted")
    measured = {each.name: each.rmse for figure in fitted for each in figure.joints}
    return {
        own.name: float(np.nanmax([own.sigma, measured.get(own.name, 0.0)]))
        for own in fit.residuals
        if own.rows
    }


def measure_position_calibration(
    draws: Draws, problem: Problem, simulation: Simulation, sigma: Array
) -> Calibration:
    """Of the positions of a log: each draw simulated freely from the first sample on.

    Parameters
    ----------
    problem : Problem
        The model on one log.
    simulation : Simulation
        Of the loop, as the study has it.
    sigma : ndarray, shape (n,)
        Root mean square of the positions that the model left of the fitted logs.
    """
    (log,) = problem.samples
    found = []
    for k in range(min(SIMULATED, len(draws))):
        own = Problem.of(draws.shaped(k), problem.samples)
        (loops,) = build_auxiliary_model(own, draws.of_loop(k, simulation)).loops
        try:
            found.append(
                np.vstack([rollout(loop, draws.theta[k]).measured for _, _, loop in loops])
            )
        except RolloutError:
            continue
    if not found:
        raise ComputationError(f"{log.name}: no draw can be simulated along it")
    measured = np.vstack([log.measured[start:stop] for start, stop, _ in loops])
    band = np.array(found)
    alone, noisy = np.array([
        count_inside_band(band[:, :, j].T, measured[:, j], sigma[j])
        for j in range(measured.shape[1])
    ]).T / len(measured)  # fmt: skip
    names = problem.robot.joint_names
    return Calibration(log.name, "position", names, len(found), alone, noisy, log.warnings)


def count_inside_band(drawn: Array, measured: Array, sigma: float) -> Array:
    """How many of the measured rows are inside the band of draws, without noise and with it."""
    low, high = np.quantile(drawn, BAND, axis=1)
    half = NORMAL * np.sqrt(np.var(drawn, axis=1) + sigma**2)
    off = np.abs(measured - np.mean(drawn, axis=1))
    return np.array([np.sum((low <= measured) & (measured <= high)), np.sum(off <= half)])
