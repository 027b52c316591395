"""What can be asked of `protocol`, beside the limits and the search of `excite`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from dynident.core.options import Options, Positives, collect_options
from dynident.core.schema import Name, Number, make_choice_validator
from dynident.excitation.options import Count, Positive, SearchBudget, TrajectoryLimits, Usual
from dynident.experiments.steps import QUESTIONS

Length = Annotated[Number, Field(ge=0.0, le=100.0), Usual]
Asked = Annotated[Name, make_choice_validator(QUESTIONS)]


@dataclass(frozen=True)
class ProtocolPlan(Options):
    """What a protocol is to answer, and with what."""

    questions: Annotated[
        tuple[Asked, ...],
        f"what is asked: {', '.join(f'{k} ({each.words})' for k, each in QUESTIONS.items())}",
    ] = tuple(QUESTIONS)
    sigma: Annotated[
        Positives | None,
        "standard deviation of the torques' noise per sample, assumed white; 1 % of the largest "
        "torques unless given [Nm or N]",
    ] = None
    rate: Annotated[Positive, "samples a second, of the motions and of the logs [Hz]"] = 1000.0
    mass: Annotated[
        Positive | None,
        "known mass, held at the last link; unless given as much as takes a fifth of what the "
        "weakest drive has for it at the far length [kg]",
    ] = None
    lengths: Annotated[
        tuple[Length, Length],
        "two distances of the mass from the last joint's axis [m]",
    ] = (0.1, 0.3)
    period: Annotated[Positive, "period of the series for bodies [s]"] = 10.0
    periods: Annotated[Count, "periods of each series"] = 3
    sweeping: Annotated[Positive, "time of a run of sweeps [s]"] = 30.0
    damping: Annotated[
        Positive,
        "ratio kd/kp of the controller, for the predicted errors of its gains [s]",
    ] = 0.05


FAMILIES: tuple[type[Options], ...] = (ProtocolPlan, TrajectoryLimits, SearchBudget)
OWN = ("load", "load_centre", "initial", "polish")
"""Options of `excite` that a protocol decides."""
SHARED = {*collect_options((TrajectoryLimits, SearchBudget)), "sigma", "rate"} - {*OWN}
"""Keys of ``[excitation]`` that count for a protocol, too."""
PLANNING = {name: option for name, option in collect_options(FAMILIES).items() if name not in OWN}
"""Options of `dynident protocol`."""
