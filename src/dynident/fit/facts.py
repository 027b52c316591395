"""What a verdict asks of each log beside its rows: kept with their factors, it needs no samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynident.diagnosis.signs import find_signs
from dynident.dynamics.equations import Observability
from dynident.dynamics.idim import Idim
from dynident.filters.blocks import cut_into_blocks, find_run_extremes
from dynident.fit.figures import collect_log_settings
from dynident.fit.logs import LogWords, put_logs_into_words
from dynident.fit.provenance import hash_log
from dynident.fit.verdict import Reason, list_limit_reasons, list_sign_reasons
from dynident.recording.floating import measure_base_turn
from dynident.recording.prepare import Preparation
from dynident.regression.generalised import GeneralisedSamples
from dynident.robot.model import Robot


@dataclass(frozen=True)
class LogFacts:
    """One log, its rows aside."""

    name: str
    digest: str
    """`name`, `digest`: SHA-256 of its positions and torques."""
    size: int | None
    """Of its files [bytes]."""
    words: LogWords
    settings: dict[str, Any]
    """All that shaped it."""
    preparation: Preparation
    observed: Observability
    """What it can show."""
    stated: tuple[bool, ...]
    """Which equations of motion it states anywhere."""
    lowpass_hz: float
    """Largest cutoff of its torques [Hz]."""
    motion: float
    """The farthest that anything moves [rad or m]."""
    rough: bool
    """Whether its positions pass no filter."""
    warnings: tuple[str, ...]
    reasons: tuple[Reason, ...]
    """What its signals say against any model of it."""
    temperature: tuple[float, ...] | None = None
    """Mean of each drive, where it has any [deg C]."""


def gather_log_facts(idim: Idim, log: GeneralisedSamples) -> LogFacts:
    """What is asked of a log that is fitted."""
    (words,) = put_logs_into_words(idim, [log], "identify")
    lowpass_hz = max(f.cutoff for f in log.filters)
    low, high = find_run_extremes(log.q, log.runs)
    # nobody knows where the base of a limb is, but how it turns
    turned = measure_base_turn(log.base, log.runs) if log.base else 0.0
    spans = [log.stated[a:b].any(axis=0) for a, b in log.segments]
    return LogFacts(
        log.name,
        hash_log(log),
        log.size,
        words,
        collect_log_settings(log, lowpass_hz),
        log.preparation,
        log.observed,
        tuple(np.any(spans, axis=0).tolist()),
        lowpass_hz,
        max(float(np.max(high - low, initial=0.0)), turned),
        log.rough,
        log.warnings,
        tuple(list_log_reasons(idim.robot, log)),
        measure_temperature(log),
    )


def measure_temperature(log: GeneralisedSamples) -> tuple[float, ...] | None:
    """Mean temperature of each drive, block by block."""
    if log.temp is None:
        return None
    sums = [np.sum(log.temp[own], axis=0) for own, _, _ in cut_into_blocks(log.runs, 0)]
    return tuple((np.sum(sums, axis=0) / sum(b - a for a, b in log.runs)).tolist())


def list_log_reasons(robot: Robot, log: GeneralisedSamples) -> list[Reason]:
    """What the signals of a log say against any model of it."""
    low, high = find_run_extremes(log.joint_torque, log.runs)
    peaks = np.maximum(-low, high).max(axis=0)
    limits = np.array([joint.effort for joint in robot.joints])
    signs = [] if log.rests is not None else find_signs(robot, log)
    return [
        *list_limit_reasons(log.name, peaks, limits),
        *list_sign_reasons(log.name, robot.joint_names, signs),
    ]
