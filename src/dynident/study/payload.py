"""A load from a log with it and a result without it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.dynamics.base import BaseParameters
from dynident.estimators.payload import identify_load
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.results.identification import Identification
from dynident.results.payload import Payload
from dynident.robot.geometry import frame_placement
from dynident.study.stored import StoredResult, relocated
from dynident.study.study import study_samples

HEAVIEST = 1e6
"""Of a known load [kg]."""


def payload(
    fit: Identification,
    log: Recording | Samples,
    link: str | None = None,
    *,
    mass: float | None = None,
    gains: Literal["all", "joint"] = "all",
    frame: str | None = None,
    seed: int = 0,
) -> Payload:
    """Mass, centre and inertia of a load, from a log with it and a fit without it.

    Parameters
    ----------
    fit : Identification
        Of torques, without the load.
    log : Recording or Samples
        With it. A recording is prepared as the fit's logs were.
    link : str, optional
        What carries it: a moving link, or a frame of the URDF that is fixed to one; the last
        moving link by default.
    mass : float, optional
        Of the load, where it is known [kg]: then the drives' gains are told.
    gains : {"all", "joint"}
        One gain in all, or one a joint.
    frame : str, optional
        In which the load is told, on the same link; `link` by default.
    seed : int
        Of the draws that the intervals are of.

    Raises
    ------
    InputError
        For fits of positions, unknown links and frames, masses that are none.
    ComputationError
        When the log tells nothing of a load.
    """
    if fit.estimate.fitted is not None:
        raise InputError(f"{fit.method} fitted positions: a load needs logs with torque")
    samples = log if isinstance(log, Samples) else fit.prepare(log)
    covariance = fit.estimate.covariance.matrix
    return found(fit.base, fit.estimate.beta, covariance, samples, link, mass, gains, frame, seed)


def stored_payload(
    stored: StoredResult,
    text: str,
    link: str | None = None,
    *,
    mass: float | None = None,
    gains: Literal["all", "joint"] = "all",
    frame: str | None = None,
    seed: int = 0,
) -> tuple[Payload, tuple[str, ...]]:
    """The same of a stored result and a log's files, and what was noticed about these.

    Parameters
    ----------
    stored : StoredResult
    text : str
        The log's files, laid out as the result's first log; commas between those side by side.
    link, mass, gains, frame, seed
        As of `payload`.

    Raises
    ------
    InputError, ComputationError
    """
    if stored.document.fitted:
        raise InputError(f"{stored.path}: was fitted to positions: a load needs logs with torque")
    beta = np.array([row.value for row in stored.document.parameters])
    section = relocated(stored.study.log[0], text.split(","))
    samples = study_samples(section, stored.idim.robot, stored.study.prepare)
    result = found(stored.base, beta, stored.covariance(), samples, link, mass, gains, frame, seed)
    return result, (*stored.warnings, *samples.warnings)


def found(
    base: BaseParameters,
    beta: Array,
    covariance: Array,
    samples: Samples,
    link: str | None,
    mass: float | None,
    gains: str,
    frame: str | None,
    seed: int,
) -> Payload:
    """A load in a frame; see `payload`."""
    robot = base.idim.robot
    if mass is not None and not 0.0 < mass < HEAVIEST:
        raise InputError(f"a load of {mass:g} kg is none; give its mass")
    if gains != "all" and mass is None:
        raise InputError("gains are told by a load of known mass; give the mass")
    carrier = robot.links[-1] if link is None else link
    body, rotation, translation = frame_placement(robot, carrier)
    seen = carrier if frame is None else frame
    if frame is not None:
        other, rotation, translation = frame_placement(robot, frame)
        if other != body:
            raise InputError(f"frame {frame!r} is on {other}, and the load on {body}")
    problem = Problem.of(base, samples)
    load = identify_load(problem, beta, covariance, body, mass, gains == "joint", seed)
    return Payload(load, samples.name, seen, rotation, translation)
