"""A load from a log with it and a result without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Unpack

from dynident.core.errors import InputError, check_type
from dynident.core.options import Options, build_all_options
from dynident.core.schema import Name
from dynident.loads.keywords import PayloadOptions
from dynident.loads.load import LoadOptions, bear_load, identify_load
from dynident.loads.payload import Payload
from dynident.recording.prepare import Samples
from dynident.recording.read import Files
from dynident.recording.recording import Recording
from dynident.regression.problem import Problem, refuse_springs, require_torque
from dynident.report.fit import Fit
from dynident.robot.geometry import locate_frame


@dataclass(frozen=True)
class PlacementOptions(Options):
    """Where a load is."""

    link: Annotated[
        Name | None,
        "what carries the load: a moving link, or a frame of the URDF that is fixed to one; by "
        "default the last moving link",
    ] = None
    frame: Annotated[
        Name | None,
        "frame of the URDF, on the same link, in which the load is reported: the flange; `link` "
        "by default",
    ] = None


FAMILIES: tuple[type[Options], ...] = (PlacementOptions, LoadOptions)
"""All that `payload` can be told."""


def payload(
    fit: Fit,
    log: Recording | Samples | Files,
    link: str | None = None,
    anyway: bool = False,
    **options: Unpack[PayloadOptions],
) -> Payload:
    """Mass, centre and inertia of a load, from a log with it and a fit without it.

    >>> load = di.payload(fit, held_out, "fore")

    Parameters
    ----------
    fit : Fit
        Of torques, without the load.
    log : Recording, Samples, path, DataFrame, or sequence of paths or frames
        With it; prepared as the fit's logs were, see `Fit.prepare`.
    link : str, optional
        Link that carries it: a moving link, or a frame of the URDF that is fixed to one; the last
        moving link by default.
    anyway : bool
        Also of a refuted result.
    **options
        Those of `PlacementOptions` and `LoadOptions`: frame, mass, gains, gain_error, seed.

    Raises
    ------
    InputError
        For fits of positions, unknown links and frames, a frame that is not on the link of the
        load, and options that are not admitted.
    ComputationError
        For a refuted result; if the log does not determine a load.
    """
    check_type("payload", fit, Fit, "dynident.identify and read_result give one")
    fit.require_trust("a load", anyway)
    refuse_springs(fit.robot, "a load is found by torques, which know")
    placing, loading = build_all_options("payload", FAMILIES, {"link": link, **options})
    if fit.estimate.fitted is not None:
        raise InputError(
            f"{fit.method} fitted positions: a load is found by torques, beside a result of logs "
            "with torque"
        )
    samples = fit.prepare(log)
    robot, frame = fit.robot, placing.frame
    carrier = robot.links[-1] if placing.link is None else placing.link
    body, rotation, translation = locate_frame(robot, carrier)
    if frame is not None:
        other, rotation, translation = locate_frame(robot, frame)
        if other != body:
            raise InputError(f"frame {frame!r} is on {other}, and the load on {body}")
    covariance = fit.estimate.covariance.matrix
    problem = Problem.of(fit.base, samples)
    require_torque(problem)
    beta = fit.estimate.beta
    problem = bear_load(problem, fit.theta[: problem.idim.plain], beta, covariance, body)
    load = identify_load(problem, beta, covariance, body, loading)
    return Payload(load, samples.name, frame or carrier, rotation, translation)
