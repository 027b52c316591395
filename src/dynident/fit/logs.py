"""The logs of a fit: at hand, or in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dynident.core.errors import InputError
from dynident.core.plain import ADDED
from dynident.core.words import format_common_values
from dynident.dynamics.idim import Idim
from dynident.fit.copies import LogMarks, mark_log
from dynident.fit.figures import tell_torque_source
from dynident.recording.prepare import Samples
from dynident.recording.recording import COMMANDED
from dynident.regression.generalised import GeneralisedSamples
from dynident.regression.standing import measure_borne_weight

Use = Literal["identify", "validate"]


class Logs(Protocol):
    """The logs that were fitted, and those held out; an `InputError` where they are gone."""

    @property
    def fitted(self) -> tuple[GeneralisedSamples, ...]:
        """What was fitted."""
        ...

    @property
    def held_out(self) -> tuple[GeneralisedSamples, ...]:
        """What was not."""
        ...


@dataclass(frozen=True)
class LogsAtHand:
    """Logs in memory."""

    fitted: tuple[GeneralisedSamples, ...]
    held_out: tuple[GeneralisedSamples, ...] = ()


@dataclass(frozen=True)
class LogsGone:
    """Logs that nothing is known of but words."""

    reason: str

    @property
    def fitted(self) -> tuple[GeneralisedSamples, ...]:
        """Nothing."""
        raise InputError(self.reason)

    held_out = fitted


@dataclass(frozen=True)
class LogWords:
    """A log in words."""

    name: str
    use: Use
    words: str
    """Name, length and rate."""
    cutoffs: str
    """Bandwidth, filters and decimation."""
    torque: str
    """``"measured"`` or ``"law"``. Whence its torque is."""
    borne_kg: float | None = None
    """What contacts bear of a floating robot while it stands, where that is known [kg]."""
    marks: LogMarks | None = field(default=None, metadata=ADDED)
    """By which a copy of it is known; None of fits made before there were any."""


def put_logs_into_words(
    idim: Idim, logs: Sequence[GeneralisedSamples], use: Use
) -> tuple[LogWords, ...]:
    """Logs in words."""
    return tuple(
        LogWords(
            log.name,
            use,
            describe_log(log),
            describe_cutoffs(log),
            tell_torque_source(log),
            measure_borne_weight(idim, log),
            mark_log(log),
        )
        for log in logs
    )


def describe_log(samples: Samples) -> str:
    """A log's name, length and rate."""
    if samples.averaging is not None:
        return f"{samples.name} ({samples.averaging.words})"
    if samples.rests is not None:
        return f"{samples.name} ({len(samples.q)} poses held, by side of approach)"
    seconds = sum(stop - start for start, stop in samples.runs) / samples.rate
    derived = ", torque of the law" if tell_torque_source(samples) == "law" else ""
    return f"{samples.name} ({seconds:.4g} s at {samples.rate:g} Hz{derived})"


def describe_cutoffs(samples: GeneralisedSamples) -> str:
    """Bandwidth, filters and decimation of a log."""
    text = (
        f"bandwidth {format_common_values(samples.bandwidth)} Hz, positions below "
        f"{format_common_values(samples.position_hz)} Hz, torques below "
        f"{format_common_values(f.cutoff for f in samples.filters)} Hz, one sample in "
        f"{format_common_values(f.step for f in samples.filters)}"
    )
    if any(samples.drop_below):
        text += (
            f", slower rows dropped below {format_common_values(samples.drop_below)} rad/s or m/s"
        )
    if samples.torque == COMMANDED and samples.left_out is not None:
        stands = 100.0 * samples.left_out[:, samples.joint_rows].mean()
        text += f", without what joints do that stand ({stands:.0f} % of all)"
    return text
