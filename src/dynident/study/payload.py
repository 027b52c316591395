"""A load from a log with it and a result without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from dynident.core.arrays import Array
from dynident.core.errors import InputError
from dynident.core.options import Options, build_all_options
from dynident.core.schema import Name
from dynident.dynamics.base import BaseParameters
from dynident.estimators.payload import Loading, identify_load
from dynident.recording.prepare import Samples
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem
from dynident.results.identification import Identification
from dynident.results.payload import Payload
from dynident.robot.geometry import locate_frame
from dynident.study.stored import StoredResult
from dynident.study.study import read_study_samples


@dataclass(frozen=True)
class Placing(Options):
    """Where a load is."""

    link: Annotated[
        Name | None,
        "what carries it: a moving link, or a frame of the URDF that is fixed to one; the last "
        "moving link unless given",
    ] = None
    frame: Annotated[
        Name | None,
        "of the URDF, on the same link, in which the load is told: the flange; `link` unless given",
    ] = None


FAMILIES: tuple[type[Options], ...] = (Placing, Loading)
"""All that `payload` can be told."""


def payload(
    fit: Identification, log: Recording | Samples, link: str | None = None, **options: Any
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
    **options
        Those of `Placing` and `Loading`: frame, mass, gains, seed.

    Raises
    ------
    InputError
        For fits of positions, unknown links and frames, and options that are not admitted.
    ComputationError
        When the log tells nothing of a load.
    """
    placing, loading = build_all_options("payload", FAMILIES, {"link": link, **options})
    if fit.estimate.fitted is not None:
        raise InputError(f"{fit.method} fitted positions: a load needs logs with torque")
    samples = log if isinstance(log, Samples) else fit.prepare(log)
    covariance = fit.estimate.covariance.matrix
    return identify_payload(fit.base, fit.estimate.beta, covariance, samples, placing, loading)


def identify_payload_from_stored(
    stored: StoredResult, text: str, **options: Any
) -> tuple[Payload, tuple[str, ...]]:
    """The same of a stored result and a log's files, and what was noticed about these.

    Parameters
    ----------
    stored : StoredResult
    text : str
        The log's files, laid out as the result's first log; commas between those side by side.
    **options
        As of `payload`.

    Raises
    ------
    InputError, ComputationError
    """
    placing, loading = build_all_options("payload", FAMILIES, options)
    if stored.document.fitted:
        raise InputError(f"{stored.path}: was fitted to positions: a load needs logs with torque")
    beta = np.array([row.value for row in stored.document.parameters])
    section = stored.locate_log(text.split(","))
    samples = read_study_samples(section, stored.idim.robot, stored.study.prepare)
    result = identify_payload(stored.base, beta, stored.covariance(), samples, placing, loading)
    return result, (*stored.warnings, *samples.warnings)


def identify_payload(
    base: BaseParameters,
    beta: Array,
    covariance: Array,
    samples: Samples,
    placing: Placing,
    loading: Loading,
) -> Payload:
    """A load in a frame; see `payload`.

    Raises
    ------
    InputError
        For unknown links and frames, and a frame that is not on the link of the load.
    """
    robot, frame = base.idim.robot, placing.frame
    carrier = robot.links[-1] if placing.link is None else placing.link
    body, rotation, translation = locate_frame(robot, carrier)
    if frame is not None:
        other, rotation, translation = locate_frame(robot, frame)
        if other != body:
            raise InputError(f"frame {frame!r} is on {other}, and the load on {body}")
    load = identify_load(Problem.of(base, samples), beta, covariance, body, loading)
    return Payload(load, samples.name, frame or carrier, rotation, translation)
